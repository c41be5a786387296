"""REC: what the kept traces do not show of a run that was restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from barrierlab.model.checkpoint.trace import TraceError, judged, read
from barrierlab.model.spec.history import Entry
from barrierlab.model.spec.invariants import RUN_INVARIANTS, Verdict, judge_run
from barrierlab.model.spec.topology import Topology
from tests.model.test_invariants import verdict_of

LINE = Topology.parse("a->s")
TRACES = Path(__file__).parents[1] / "traces"
EXACTLY = {"s": "exactly_once"}

EVENT = "> emit a a{0}\n    a send a->s a{0}\n> deliver a->s\n    s take a->s a{0}\n    s deliver a->s a{0}\n"
CHECKPOINT = """> trigger {0}
> inject a {0}
    a snapshot {0} a{0}
    a send a->s barrier {0}
> deliver a->s
    s take a->s barrier {0}
    s block a->s {0}
    s snapshot {0} s{0}
    s prepare s-{0} {1}
    s resume {0}
> ack a {0}
> ack s {0}
"""
COMPLETE = "> publish {0}\n    coordinator completed {0}\n"
RESTORE = "> crash a\n> restore {0}\n    a restored {0} a{0}\n    s restored {0} s{0}\n"


def taken(checkpoint_id: int, prepared: int) -> str:
    """A checkpoint that is not complete yet."""
    return CHECKPOINT.format(checkpoint_id, prepared)


def complete(checkpoint_id: int, prepared: int) -> str:
    """A complete checkpoint."""
    return taken(checkpoint_id, prepared) + COMPLETE.format(checkpoint_id)


def told(text: str, **options: object) -> list[str]:
    """The reasons of REC."""
    return [v.reason for v in judge(text, **options).violations if v.invariant == "REC"]


def judge(text: str, **options: object) -> Verdict:
    """The verdict on the moves in `text`."""
    return judge_run(entries_of(text), **{"topology": LINE, **options})  # type: ignore[arg-type]


def entries_of(text: str) -> list[Entry]:
    """The journal of the moves in `text`, all at one time."""
    lines = [f"{line} @ 0.001000000" if line.startswith("> ") else line for line in text.strip().splitlines()]
    return read("\n" + "\n".join(lines))[1]


def event(number: int) -> str:
    """An event crosses."""
    return EVENT.format(number)


def restore(checkpoint_id: int) -> str:
    """A crash, and back."""
    return RESTORE.format(checkpoint_id)


def kept(name: str, *changes: tuple[str, str]) -> list[str]:
    """The reasons of REC for a kept trace with some of its text changed."""
    text = (TRACES / f"{name}.trace").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return [v.reason for v in judged(text).violations if v.invariant == "REC"]


def test_rec_is_asked() -> None:
    """The invariant could be written and never be asked."""
    assert list(RUN_INVARIANTS) == ["REC"]


def test_a_run_without_sinks_that_promise_anything_is_not_asked_about_the_outside() -> None:
    """A scenario without guarantees could not be judged."""
    assert judge(event(1) + complete(1, 0) + event(2) + restore(1) + event(2)).verdict == "holds"


# Which checkpoint may be restored.


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (event(1) + restore(7), "checkpoint 7 was restored, but it was never triggered"),
        (event(1) + taken(1, 0) + restore(1), "checkpoint 1 was restored, but it was never completed"),
        (
            event(1) + taken(1, 0).replace("> ack s 1\n", "") + restore(1),
            "checkpoint 1 was restored, but s had not acknowledged it",
        ),
        (
            event(1) + taken(1, 0) + "> publish 1\n    coordinator aborted 1 store failed\n" + restore(1),
            "checkpoint 1 was restored, but it was aborted: store failed",
        ),
    ],
)
def test_a_checkpoint_that_is_not_complete_is_not_restored(text: str, reason: str) -> None:
    """A job would go on from states that do not belong together, and nobody would say that this was the cause."""
    assert reason in told(text)


@pytest.mark.parametrize(
    "text",
    [
        taken(1, 0) + "> crash coordinator\n" + restore(1),
        taken(1, 0) + "> publish 1\n    coordinator aborted 1 store in doubt\n" + restore(1),
        taken(1, 0) + "> crash s\n" + COMPLETE.format(1) + restore(1),
    ],
    ids=["the coordinator was gone", "in doubt", "published after the crash"],
)
def test_a_manifest_that_was_written_counts(text: str) -> None:
    """A sound recovery would be called broken when the coordinator never heard how its last checkpoint ended."""
    assert judge(event(1) + text + event(2)).verdict == "holds"


def test_the_states_of_a_checkpoint_in_doubt_are_weighed() -> None:
    """Anything that nobody announced and is restored all the same would be believed as it is."""
    text = event(1) + event(2) + taken(1, 0) + "> crash coordinator\n" + restore(1)
    found = judge(text, fold=lambda task: lambda stretch: f"{task}{len(stretch)}").violations
    assert [str(violation) for violation in found] == [
        "CUT: the state of a in checkpoint 1 is a1; what took effect before the cut makes a2",
        "CUT: the state of s in checkpoint 1 is s1; what took effect before the cut makes s2",
    ]


# What is restored.


def test_what_is_restored_is_asked_of_every_task() -> None:
    """One task would go on from another cut than the others."""
    name = "restored_from_an_aligned_cut"
    assert kept(name, ("    a restored 1 aa02\n", "")) == [
        "a was never restored when the job went back to checkpoint 1"
    ]
    again = "    a restored 1 aa02\n    a restored 1 aa02\n"
    assert kept(name, ("    a restored 1 aa02\n", again)) == [
        "a was twice restored when the job went back to checkpoint 1"
    ]
    assert kept(name, ("a restored 1", "a restored 3")) == [
        "a was restored from checkpoint 3, the job from checkpoint 1"
    ]
    assert kept("what_was_in_flight_is_restored", ("s restored 1 5500", "s restored 1 5501")) == [
        "the state of s restored from checkpoint 1 is 5501; it was 5500"
    ]


def test_the_beginning_is_the_state_of_nothing() -> None:
    """A job that restarts from the initial state with what it had would be right."""
    text = event(1) + "> crash s\n> restore 0\n    a restored 0 a0\n    s restored 0 s1\n" + event(1)
    fold = lambda task: lambda stretch: f"{task[0]}{len(stretch)}"  # noqa: E731
    assert told(text, fold=fold) == ["the state of s restored from the beginning is s1; it was s0"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("    s restored_in_flight a->s a2\n", "", "a2 was not restored in a->s, and was in flight in checkpoint 1"),
        ("in_flight a->s a2\n", "in_flight a->s a1\n", "a1 was restored in a->s twice, and was in flight once"),
        (
            "in_flight a->s a2\n",
            "in_flight a->s a2\n    s restored_in_flight a->s a7\n",
            "a7 was restored in a->s once, and was in flight never",
        ),
        (
            "in_flight a->s a2\n",
            "in_flight a->s a2\n    s restored_in_flight a->s cancel 1\n",
            "cancel 1 was restored in a->s: the cut has been made, and no barrier is part of it",
        ),
        (
            "in_flight a->s a2\n",
            "in_flight a->s a2\n    s restored_in_flight a->s end\n",
            "the end was restored in a->s once, and was in flight never",
        ),
    ],
)
def test_what_is_restored_is_what_was_in_flight(old: str, new: str, reason: str) -> None:
    """An event would be lost, doubled or made up in the restore itself."""
    assert reason in kept("what_was_in_flight_is_restored", (old, new))


def test_the_end_is_restored_last() -> None:
    """A receiver would close an input that still has events."""
    end = "    s restored_in_flight a->s end\n"
    assert kept("a_finished_task_stays_finished", (end, "")) == [
        "the end was restored in a->s never, and was in flight once"
    ]
    first = "    s restored_in_flight a->s a1\n"
    assert "a1 was restored in a->s behind the end" in kept(
        "a_finished_task_stays_finished", (first + end, end + first)
    )


def test_a_finished_task_does_nothing_more() -> None:
    """A source that had ended would make an event that no checkpoint knows of."""
    more = "> emit a a2 @ 0.090000000\n    a send a->s a2\n"
    text = (TRACES / "a_finished_task_stays_finished.trace").read_text() + more
    reasons = [v.reason for v in judged(text).violations if v.invariant == "REC"]
    assert "a runs although it had finished in checkpoint 1" in reasons


def test_nothing_is_restored_where_nothing_is_restored() -> None:
    """A task could be given a state in the middle of a run."""
    assert told(event(1) + "    s restored 1 d\n") == ["s was restored though nothing was to be restored"]
    assert told("> push a\n    s restored_in_flight a->s a1\n") == [
        "a1 was restored in a->s though nothing was to be restored"
    ]
    late = event(1) + complete(1, 0) + restore(1) + event(2) + "    s restored 1 s1\n"
    assert "s was restored after the job had begun to run" in told(late)


def test_what_the_source_had_in_its_outbox_is_not_forgotten() -> None:
    """Its position has passed them, so nobody makes them again: a2 would be lost (protocol rule 16)."""
    name = "what_was_in_flight_is_restored"
    taken_later = "    s take a->s a2\n    s deliver a->s a2\n"
    changes = ("    a capture a->s 1 a2\n", ""), ("    s restored_in_flight a->s a2\n", ""), (taken_later, "")
    assert kept(name, *changes) == ["a made a2 before its cut in checkpoint 1, and neither sent nor recorded it"]


PROMISE = """
> watermark a 5
    a send a->m watermark 5
    m take a->m watermark 5
    m deliver a->m watermark 5
    m send m->s watermark 5
    m send m->s a1
> trigger 1
> inject a 1
    a snapshot 1 d
    a send a->m barrier 1
    m take a->m barrier 1
    m block a->m 1
    m snapshot 1 d
    m resume 1
    m send m->s barrier 1
    s take m->s watermark 5
    s deliver m->s watermark 5
    s take m->s a1
    s deliver m->s a1
    s take m->s barrier 1
    s block m->s 1
    s snapshot 1 d
    s resume 1
> ack a 1
> ack m 1
> ack s 1
    coordinator completed 1
> crash m
> restore 1
    a restored 1 d
    m restored 1 d
    s restored 1 d
> watermark a 3
    a send a->m watermark 3
    m take a->m watermark 3
    m deliver a->m watermark 3
    m send m->s watermark 3
"""


def test_an_operator_keeps_its_promise() -> None:
    """A window that was sent would be filled again: its watermark would have gone back with the restore."""
    topology = Topology.parse("a->m m->s")
    assert told(PROMISE, topology=topology) == [
        "watermark 3 was sent on m->s after a restore; before its cut m sent watermark 5"
    ]
    again = PROMISE.replace("watermark 3", "watermark 5").replace("watermark a 3", "watermark a 5")
    assert judge(again, topology=topology).verdict == "holds"  # it may have been in flight


def test_a_promise_is_one_to_a_channel() -> None:
    """Anything that was promised on one channel would bind on another, where it may still be in the outbox."""
    topology = Topology.parse("a->m m->s m->t")
    text = PROMISE.replace(
        "    m send m->s watermark 5\n", "    m send m->s watermark 5\n    m send m->t watermark 2\n"
    )
    at_t = (
        "    t take m->t watermark 2\n    t deliver m->t watermark 2\n    t take m->t barrier 1\n    t block m->t 1\n"
    )
    barrier = "    m send m->t barrier 1\n" + at_t + "    t snapshot 1 d\n    t resume 1\n"
    text = text.replace("    m send m->s barrier 1\n", "    m send m->s barrier 1\n" + barrier)
    text = text.replace("> ack s 1\n", "> ack s 1\n> ack t 1\n").replace(
        "    s restored", "    t restored 1 d\n    s restored"
    )
    text = text.replace("    m send m->s watermark 3\n", "    m send m->t watermark 3\n")
    assert judge(text, topology=topology).verdict == "holds"
    assert told(text.replace("m send m->t watermark 3", "m send m->t watermark 1"), topology=topology) == [
        "watermark 1 was sent on m->t after a restore; before its cut m sent watermark 2"
    ]


@pytest.mark.parametrize(("exchange", "is_lost"), [("broadcast", True), ("rebalance", False)])
def test_each_channel_of_a_broadcast_has_every_event(exchange: str, is_lost: bool) -> None:
    """An event that one of several receivers never gets would count as sent; or what only one is to get, as lost."""
    topology = Topology.parse("a->s", {"s": 2}, {"a->s": exchange})
    text = """
> emit a a1
    a send a->s[0] a1
> trigger 1
> inject a 1
    a snapshot 1 d
    a forward barrier 1 unaligned
    a send a->s[0] barrier 1 unaligned
    a send a->s[1] barrier 1 unaligned
> deliver a->s[0]
    s[0] take a->s[0] a1
    s[0] deliver a->s[0] a1
    s[0] take a->s[0] barrier 1 unaligned
    s[0] block a->s[0] 1
    s[0] snapshot 1 d
    s[0] resume 1
> deliver a->s[1]
    s[1] take a->s[1] barrier 1 unaligned
    s[1] block a->s[1] 1
    s[1] snapshot 1 d
    s[1] resume 1
> ack a 1
> ack s[0] 1
> ack s[1] 1
    coordinator completed 1
> crash a
> restore 1
    a restored 1 d
    s[0] restored 1 d
    s[1] restored 1 d
"""
    lost = ["a made a1 before its cut in checkpoint 1, and neither sent nor recorded it"]
    assert told(text, topology=topology) == (lost if is_lost else [])


def test_ids_go_on_over_the_whole_run() -> None:
    """A part of the attempt before would be taken for one of a new checkpoint of the same id."""
    text = event(1) + complete(1, 0) + taken(2, 0) + restore(1) + complete(2, 0)
    assert "ID: checkpoint 2 was triggered after 2; ids begin with 1 and strictly increase" in [
        str(violation) for violation in judge(text).violations
    ]


def test_an_attempt_that_a_crash_ends_owes_nothing() -> None:
    """Every crash in the middle of a checkpoint would break LIVE; or a checkpoint after the last one would not."""
    pending = "> trigger 2\n> inject a 2\n    a snapshot 2 a2\n    a send a->s barrier 2\n"
    text = event(1) + complete(1, 0) + pending + restore(1) + event(2)
    assert judge(text).verdict == judge(text, cut_off=True).verdict == "holds"
    found = judge(text + pending.replace("2", "3"))
    assert "LIVE: checkpoint 3 was triggered and never ends" in map(str, found.violations)
    assert judge(text + pending.replace("2", "3"), cut_off=True).verdict == "undecided"
    assert judge(text + pending.replace("2", "3") + "> crash a\n").verdict == "holds"
    unasked = event(1) + complete(1, 0) + pending + restore(1).removeprefix("> crash a\n")  # the job fell by itself
    assert judge(unasked + event(2)).verdict == "holds"


def test_what_comes_again_comes_from_where_it_was() -> None:
    """A channel could lose in an attempt what its restore had restored."""
    taken_twice = "    s take a->s a1\n    s deliver a->s a1\n"
    name = "what_was_in_flight_is_restored"
    assert kept(name, (taken_twice, taken_twice + taken_twice)) == ["a1 took effect twice on a->s, and was sent once"]
    lost = "a1 was sent on a->s and never took effect, though what came after it did"
    assert kept(name, (taken_twice, "")) == [lost]
    assert kept(name, (taken_twice.replace("a1", "a2"), "")) == [lost.replace("a1", "a2")]
    wrongly = "a2 was restored in a->s twice, and was in flight once"  # what follows from that is not told again
    assert kept(
        name, ("in_flight a->s a2\n", "in_flight a->s a2\n    s restored_in_flight a->s a2\n"), (taken_twice, "")
    ) == [wrongly]


# What is visible.


@pytest.mark.parametrize("guarantees", [{"s": "twice"}, {"a": "exactly_once"}, {"t": "exactly_once"}])
def test_a_guarantee_that_there_is_not(guarantees: dict[str, str]) -> None:
    """A word mistyped in a scenario would promise nothing, and hold."""
    with pytest.raises(ValueError, match="the sinks are s, and they may be exactly_once, at_least_once, idempotent"):
        judge(event(1), guarantees=guarantees)
    text = "topology: a->s\nguarantees: s=twice\n\n"
    with pytest.raises(TraceError, match="t: no sink guarantees s=twice; the sinks are s"):
        judged(text, "t")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            event(1) + taken(1, 1) + "    s commit s-1 a1\n" + COMPLETE.format(1),
            "a1 became visible at s with s-1, and no complete checkpoint has it",
        ),
        (
            event(1) + complete(1, 1) + event(2) + "> notify s 1\n    s commit s-1 a1 a2\n",
            "a2 became visible at s with s-1, and no complete checkpoint has it",
        ),
        (
            event(1) + complete(1, 1) + "> notify s 1\n",
            "a1 is not visible at s, though checkpoint 1 was announced to it",
        ),
        (
            event(1) + taken(1, 1) + "> notify s 1\n",
            "checkpoint 1 was announced to s before it was complete",
        ),
        (
            event(1) + complete(1, 1) + "> notify s 1\n    s commit s-1 a1\n    s commit s-1 a1\n",
            "a1 became visible at s twice; once is right",
        ),
        (
            event(1) + event(2) + complete(1, 2) + "> notify s 1\n    s commit s-1 a2 a1\n",
            "a2 became visible at s in another place than it took effect",
        ),
        (
            event(1) + complete(1, 1) + "> notify s 1\n    s commit s-1 a1\n    s commit s-x a9\n",
            "a9 became visible at s once; never is right",
        ),
        (event(1) + "    s write a1\n", "s is exactly_once, but did write a1"),
        (
            event(1) + complete(1, 1) + "> notify s 1\n    s commit s-1 a1\n" + event(2) + complete(2, 1) + restore(2),
            "a2 is not visible at s, though checkpoint 2 was restored",
        ),
        (
            event(1)
            + complete(1, 1)
            + event(2)
            + complete(2, 1)
            + restore(2)
            + "    s commit s-1 a1\n    s rollback s-2\n",
            "a2 is not visible at s, though checkpoint 2 was restored (s-2 was rolled back)",
        ),
        (
            event(1)
            + complete(1, 1)
            + event(2)
            + complete(2, 1)
            + "> notify s 2\n    s commit s-1 a1\n    s commit s-2 a2\n"
            + restore(1),
            (
                "checkpoint 1 was restored behind checkpoint 2, which was announced to s, and a2 is visible already, "
                "so it comes again"
            ),
        ),
    ],
)
def test_what_an_exactly_once_sink_shows(text: str, reason: str) -> None:
    """The external system would see an event twice, too early, in another order, or never."""
    assert reason in told(text, guarantees=EXACTLY)


def test_a_fall_back_names_the_newest_that_was_announced() -> None:
    """The reader would look for the cause at a checkpoint that was restored after all."""
    notify = "> notify s {0}\n    s commit s-{0} a{0}\n"
    text = event(1) + complete(1, 1) + notify.format(1)
    on = event(2) + complete(2, 1) + notify.format(2) + event(3) + complete(3, 1) + notify.format(3)
    assert told(text + restore(1), guarantees=EXACTLY) == []
    later = event(2) + complete(4, 1) + "> notify s 4\n    s commit s-4\n"
    assert told(text + on + restore(1) + later, guarantees=EXACTLY) == [
        (
            "checkpoint 1 was restored behind checkpoint 3, which was announced to s, and a2 is visible already, "
            "so it comes again"
        ),
        "a3 became visible at s once; never is right",
    ]
    early = event(1) + complete(1, 1) + notify.format(1) + event(2) + taken(2, 1) + "    s commit s-2 a2\n"
    assert told(early + restore(1), guarantees=EXACTLY) == [
        "a2 became visible at s with s-2, and no complete checkpoint has it",
        "checkpoint 1 was restored and a2 is visible already, so it comes again",
        "a2 became visible at s once; never is right",
    ]


def test_an_exactly_once_sink_may_lag_behind() -> None:
    """A sink that has not heard of a checkpoint yet, or hears of an older one first, would be called wrong."""
    text = event(1) + complete(1, 1) + event(2) + complete(2, 1)
    assert judge(text, guarantees=EXACTLY).verdict == "holds"
    heard_again = (
        restore(2) + "    s commit s-1 a1\n    s commit s-2 a2\n" + event(3) + "> notify s 2\n    s commit s-2\n"
    )
    assert judge(text + heard_again, guarantees=EXACTLY).verdict == "holds"
    older = "> notify s 1\n    s commit s-1 a1\n> notify s 2\n    s commit s-2 a2\n> notify s 1\n    s commit s-1\n"
    assert judge(text + older, guarantees=EXACTLY).verdict == "holds"


def test_a_transaction_is_found_over_several_attempts() -> None:
    """After the second restore nobody would miss what the attempt before it had prepared, or miss the wrong one."""
    text = event(1) + complete(1, 1) + restore(1) + "    s commit s-1 a1\n" + event(2) + complete(2, 1) + restore(2)
    assert judge(text + "    s commit s-2 a2\n", guarantees=EXACTLY).verdict == "holds"
    assert told(text + "    s rollback s-2\n", guarantees=EXACTLY) == [
        "a2 is not visible at s, though checkpoint 2 was restored (s-2 was rolled back)"
    ]


def test_a_restore_that_a_crash_interrupts_owes_nothing() -> None:
    """A second crash in the middle of a recovery would be blamed for what the next recovery does."""
    text = event(1) + complete(1, 1) + restore(1).replace("    s restored 1 s1\n", "")
    assert told(text, guarantees=EXACTLY) == [
        "s was never restored when the job went back to checkpoint 1",
        "a1 is not visible at s, though checkpoint 1 was restored",
    ]
    again = restore(1) + "    s commit s-1 a1\n"
    assert judge(text + again, guarantees=EXACTLY).verdict == "holds"


FINISH = "> finish a\n    a send a->s end\n> deliver a->s\n    s take a->s end\n    s end a->s end\n"


def test_the_last_of_a_job_is_shown() -> None:
    """The end of every job would be lost for the external system (FLIP-147); or one that was cut off would be blamed
    for it."""
    text = event(1) + FINISH
    assert told(text, guarantees=EXACTLY) == ["a1 is not visible at s, and the job has ended"]
    assert told(text, guarantees=EXACTLY, cut_off=True) == []
    assert told(text + "> crash s\n", guarantees=EXACTLY) == []
    last = "    s prepare s-final 1\n> trigger 1\n> publish 1\n    coordinator completed 1\n> notify s 1\n"
    assert judge(text + last + "    s commit s-final a1\n", guarantees=EXACTLY).verdict == "holds"
    assert told(text + last, guarantees=EXACTLY) == [
        "a1 is not visible at s, though checkpoint 1 was announced to it",
        "a1 is not visible at s, and the job has ended",
    ]


def test_no_transaction_is_left_prepared_when_the_job_has_ended() -> None:
    """Nobody would ever commit it or roll it back, and a reader that waits for its end sees nothing behind it."""
    text = event(1) + complete(1, 1) + "> notify s 1\n    s commit s-1 a1\n" + event(2) + taken(2, 1) + restore(1)
    last = event(2) + FINISH + "    s prepare s-final 1\n> trigger 3\n> publish 3\n    coordinator completed 3\n"
    last += "> notify s 3\n    s commit s-final a2\n"
    assert told(text + last, guarantees=EXACTLY) == [
        "s-2 of s is neither committed nor rolled back, and the job has ended"
    ]
    assert judge(text + "    s rollback s-2\n" + last, guarantees=EXACTLY).verdict == "holds"
    assert told(text + last, guarantees=EXACTLY, cut_off=True) == []
    assert told(text + last + "> crash s\n", guarantees=EXACTLY) == []


@pytest.mark.parametrize(
    ("guarantee", "text", "reason"),
    [
        ("at_least_once", event(1), "a1 took effect once at s and was shown never"),
        (
            "at_least_once",
            event(1) + "    s write a1\n    s write a1\n",
            "a1 took effect once at s and was shown twice",
        ),
        (
            "at_least_once",
            event(1) + "    s write a1\n    s write a9\n",
            "a9 took effect never at s and was shown once",
        ),
        ("at_least_once", event(1) + "    s commit s-1 a1\n", "s is at_least_once, but did commit s-1"),
        ("idempotent", event(1) + "    s write a1\n", "s is idempotent, but did write a1"),
        (
            "at_least_once",
            event(1) + event(2) + "    s write a2\n    s write a1\n",
            "a2 was shown by s in another place than it took effect",
        ),
    ],
)
def test_what_a_sink_shows_at_once(guarantee: str, text: str, reason: str) -> None:
    """A sink could lose events, or show what never reached it, under the weakest guarantee there is."""
    lost = ["a1 took effect once at s and was shown never"] if "s commit" in text or guarantee == "idempotent" else []
    assert told(text, guarantees={"s": guarantee}) == list(dict.fromkeys([reason, *lost]))


def test_what_an_idempotent_sink_shows_comes_again() -> None:
    """The external system would keep an event that is no effect of the run, under a name that nothing overwrites (rule
    23)."""
    other = event(2).replace("a2", "a2.1") + "    s upsert a2.1\n"
    text = complete(1, 0) + other + restore(1)
    again = event(1) + "    s upsert a1\n"
    twice = complete(1, 0) + other + restore(1) + other + restore(1)
    assert told(text + again, guarantees={"s": "idempotent"}) == [
        "a made a2.1 after a start from the beginning, where a1 was due"
    ]
    for before in (text, twice):
        reasons = told(before + again + FINISH, guarantees={"s": "idempotent"})
        assert reasons[-1:] == ["a2.1 is visible at s, and never came again"]
        assert len(reasons) == before.count("s restored") + 1


def test_a_verdict_of_one_history_may_ask_about_the_outside_too() -> None:
    """`judge` would take no guarantees."""
    verdict = verdict_of(event(1), guarantees={"s": "at_least_once"})
    assert [v.invariant for v in verdict.violations] == ["REC"]
