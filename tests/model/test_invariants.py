"""The verdict where no kept trace shows it: bounds, undecided runs, states, corners of the equation."""

from __future__ import annotations

import pytest

from barrierlab.impl.checkpoint.report import digest
from barrierlab.impl.messages import CheckpointBarrier, Event
from barrierlab.model.checkpoint.operators import BaseOperator, make, refolding
from barrierlab.model.checkpoint.trace import judged, read
from barrierlab.model.spec.history import Entry, History
from barrierlab.model.spec.invariants import INVARIANTS, MOST_LISTED, Limits, Verdict, judge
from barrierlab.model.spec.topology import Topology

LINE = Topology.parse("a->s")
PENDING = """topology: a->join b->join

> trigger 1 @ 0.001000000
> inject a 1 @ 0.002000000
    a snapshot 1 aaaa
    a send a->join barrier 1
> deliver a->join @ 0.003000000
    join take a->join barrier 1
    join block a->join 1
"""


def verdict_of(text: str, topology: Topology = LINE, **options: object) -> Verdict:
    """Of the moves in `text`, all in one millisecond."""
    lines = [f"{line} @ 0.001000000" if line.startswith("> ") else line for line in text.strip().splitlines()]
    _, entries = read("\n" + "\n".join(lines))
    return judge(History.of(entries, topology), topology, **options)  # type: ignore[arg-type]


def test_nothing_happened() -> None:
    """An empty run would be an error, or a violation."""
    assert judge(History.of([], LINE), LINE) == Verdict("holds")


def test_all_nine_are_asked() -> None:
    """An invariant could be written and never be asked."""
    assert list(INVARIANTS) == ["CUT", "FIFO", "ONCE", "FWD", "NOLOSS", "WM", "ID", "LIVE", "BOUND"]


def test_a_bound_on_what_is_told() -> None:
    """A run that is wrong throughout would fill the screen, or hide how much is wrong."""
    entries: list[Entry] = [(0, ">emit", "a", None, Event("a", n)) for n in range(1, 31)]
    entries += [(0, "send", "a", "a->s", Event("a", n)) for n in range(1, 31)]
    entries += [(0, "take", "s", "a->s", Event("a", n)) for n in range(1, 31)]
    verdict = judge(History.of(entries, LINE), LINE)
    assert len(verdict.violations) == MOST_LISTED
    assert verdict.more == {"NOLOSS": 30 - MOST_LISTED}


def test_a_pending_checkpoint_of_a_run_that_was_cut_off() -> None:
    """A run stopped in the middle of a checkpoint would be called wrong, or right."""
    assert judged(PENDING).verdict == "broken"
    verdict = judged(PENDING.replace("\n\n", "\ncut_off: yes\n\n"))
    assert (verdict.verdict, verdict.violations) == ("undecided", ())
    assert verdict.undecided == ("checkpoint 1 was triggered and never ends",)


def test_what_is_wrong_stays_wrong_in_a_run_that_was_cut_off() -> None:
    """Cutting a run off would excuse a snapshot that has the wrong events."""
    text = PENDING.replace("\n\n", "\ncut_off: yes\n\n") + "    join snapshot 1 a\n    join snapshot 1 a\n"
    verdict = judged(text)
    assert verdict.verdict == "broken"
    assert [str(violation) for violation in verdict.violations] == ["ONCE: join took 2 snapshots of checkpoint 1"]


@pytest.mark.parametrize(("cut_off", "verdict"), [(True, "holds"), (False, "broken")])
def test_the_last_message_may_be_in_hand(cut_off: bool, verdict: str) -> None:
    """A full gate at the end of a run would look like a lost event; or a lost event like a full gate."""
    text = "> emit a a1\n    a send a->s a1\n> deliver a->s\n    s take a->s a1"
    assert verdict_of(text, cut_off=cut_off).verdict == verdict


def test_only_the_last_message_may_be_in_hand() -> None:
    """An event lost in the middle of a run would be excused with its end."""
    text = """
> emit a a1
    a send a->s a1
> emit a a2
    a send a->s a2
> deliver a->s
    s take a->s a1
> deliver a->s
    s take a->s a2
"""
    assert verdict_of(text, cut_off=True).verdict == "broken"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("> trigger 1\n    coordinator completed 1", "ONCE: checkpoint 1 was completed without a snapshot of a"),
        (
            "> trigger 1\n> inject a 1\n    a snapshot 1 d\n> finish s\n    coordinator completed 1",
            "ONCE: checkpoint 1 was completed without the acknowledgement of a",
        ),
        (
            "> finish a\n> finish s\n> push a\n    coordinator completed 1",
            "ID: checkpoint 1 was completed and never triggered",
        ),
        (
            "> trigger 1\n> finish a\n> finish s\n    coordinator completed 1\n    coordinator aborted 1 expired",
            "LIVE: checkpoint 1 was aborted after it was completed",
        ),
        (
            (
                "> trigger 1\n> trigger 2\n> finish a\n> finish s\n"
                "    coordinator completed 2\n    coordinator completed 1"
            ),
            "ID: checkpoint 1 was completed after 2, which drops every older one",
        ),
        ("> emit a a1\n    a send a->s a1\n    a send a->s a1", "FIFO: a sent a1 on a->s after a1"),
        (
            "> emit a a1\n    a send a->s a1\n    s take a->s a1\n    s deliver a->s a1\n    s deliver a->s a1",
            "NOLOSS: a1 took effect on a->s twice, and was taken once",
        ),
        (
            "> emit a a2\n    a send a->s a2\n> emit a a1\n    a send a->s a1",
            "FIFO: a sent a1 on a->s after a2",
        ),
        ("> push a\n    s take a->s a1", "FIFO: a1 was taken from a->s where nothing more was sent"),
        (
            "> push a\n    s take a->s a1\n    s deliver a->s a1",
            "FIFO: a1 took effect on a->s where nothing more was sent",
        ),
        (
            (
                "> trigger 1\n> inject a 1\n    a send a->s barrier 1\n    s take a->s barrier 1\n    s block a->s 1\n"
                "    s resume 1\n    s block a->s 1\n    s resume 1\n    coordinator aborted 1 expired"
            ),
            "ID: barrier 1 took effect at s on a->s after barrier 1",
        ),
        (
            (
                "> trigger 1\n> trigger 2\n> inject a 2\n    a snapshot 2 d\n> inject a 1\n    a snapshot 1 d\n"
                "    coordinator aborted 1 expired\n    coordinator aborted 2 expired"
            ),
            "ID: a took its snapshot of checkpoint 1 after 2",
        ),
    ],
)
def test_reasons(text: str, reason: str) -> None:
    """One way to be wrong would not be seen, or be reported in other words."""
    assert reason in [str(violation) for violation in verdict_of(text).violations]


def test_bytes_are_bounded() -> None:
    """A task could hold more than its memory."""
    topology = Topology.parse("a->join b->join")
    entries: list[Entry] = []
    for n in (1, 2):
        event = Event("a", n, size_bytes=60)
        entries.append((n, ">emit", "a", None, event))
        entries += [
            (n, verb, node, "a->join", event) for verb, node in (("send", "a"), ("take", "join"), ("buffer", "join"))
        ]
    history = History.of(entries, topology)
    assert judge(history, topology, Limits(max_buffer_memory_bytes=120)).verdict == "holds"
    verdict = judge(history, topology, Limits(max_buffer_memory_bytes=119))
    assert [str(v) for v in verdict.violations] == [
        "BOUND: 120 bytes were buffered at join at a time; at most 119 may be"
    ]
    assert verdict.violations[0].at_ns == 2


@pytest.mark.parametrize("aborted", [False, True])
def test_what_is_recorded_is_bounded(aborted: bool) -> None:
    """A checkpoint could store more in-flight data than was allowed (protocol rule 18); one aborted stores none."""
    topology = Topology.parse("a->b b->s")
    events = [Event("a", n, size_bytes=60) for n in (1, 2)]
    entries: list[Entry] = [(n, ">emit", "a", None, event) for n, event in enumerate(events)]
    entries += [(2, "send", "a", "a->b", event) for event in events]
    entries += [(3, "take", "b", "a->b", events[0]), (3, "deliver", "b", "a->b", events[0])]
    entries += [(4, "snapshot", "b", None, (1, "d")), (4, "capture", "b", "a->b", (1, events[1]))]
    entries += [(4, "capture", "b", "b->s", (1, events[0]))]  # on its way out
    if aborted:
        entries.append((4, "decline", "b", None, (1, "in-flight limit")))
    history = History.of(entries, topology)
    assert judge(history, topology, Limits(max_inflight_buffer_bytes=120)).verdict != "broken"
    found = [str(v) for v in judge(history, topology, Limits(max_inflight_buffer_bytes=119)).violations]
    reason = "BOUND: 120 bytes were recorded at b for checkpoint 1; at most 119 may be"
    assert found == ([] if aborted else [reason])


def completed(image: object, position: int) -> list[Entry]:
    """A run in which `a1` reaches the sink, and both states are kept in checkpoint 1."""
    event, barrier = Event("a", 1), CheckpointBarrier.aligned(1, 1)
    return [
        (0, ">emit", "a", None, event),
        (0, "send", "a", "a->s", event),
        (1, ">trigger", "coordinator", None, 1),
        (1, "snapshot", "a", None, (1, digest(position))),
        (1, "send", "a", "a->s", barrier),
        (2, "take", "s", "a->s", event),
        (2, "deliver", "s", "a->s", event),
        (3, "take", "s", "a->s", barrier),
        (3, "block", "s", "a->s", 1),
        (3, "snapshot", "s", None, (1, digest(image))),
        (3, "resume", "s", None, 1),
        (4, ">ack", "a", None, 1),
        (4, ">ack", "s", None, 1),
        (4, "completed", "coordinator", None, 1),
    ]


def sink(task: str) -> BaseOperator:
    """Return what the task `s` runs."""
    return make("sink")


def test_a_state_is_the_fold_of_what_took_effect() -> None:
    """An image that shows later messages (P-12), or a wrong position (P-10), would pass: every message balances."""
    fold = refolding(LINE, sink)
    image = (1, (("a", 1),))
    assert judge(History.of(completed(image, 2), LINE), LINE, fold=fold).verdict == "holds"
    later = judge(History.of(completed((2, (("a", 2),)), 2), LINE), LINE, fold=fold)
    assert [str(v) for v in later.violations] == [
        (
            f"CUT: the state of s in checkpoint 1 is {digest((2, (('a', 2),)))}; "
            f"what took effect before the cut makes {digest(image)}"
        )
    ]
    position = judge(History.of(completed(image, 3), LINE), LINE, fold=fold)
    assert [violation.invariant for violation in position.violations] == ["CUT"]
    assert position.violations[0].at_ns == 1


def test_a_state_nobody_can_fold_is_not_compared() -> None:
    """A task of an unknown operator would always be wrong."""
    history = History.of(completed((2, ()), 3), LINE)
    assert judge(history, LINE, fold=lambda task: lambda stretch: None).verdict == "holds"


def test_what_has_no_cut_is_not_weighed() -> None:
    """A missing snapshot would be reported as lost events, too, and hide its cause."""
    text = """
> emit a a1
    a send a->s a1
> trigger 1
> inject a 1
    a snapshot 1 d
> ack a 1
> ack s 1
    coordinator completed 1
"""
    assert [str(v) for v in verdict_of(text).violations] == ["ONCE: checkpoint 1 was completed without a snapshot of s"]


GIVEN_UP = """
> trigger 1
> inject a 1
    a snapshot 1 d
    a send a->m barrier 1
    m take a->m barrier 1
    m block a->m 1
    m snapshot 1 d
    m resume 1
    m send m->s barrier 1
    s take m->s barrier 1
    s block m->s 1
    s snapshot 1 d
    s resume 1
> ack a 1
> ack m 1
> ack s 1
    coordinator completed 1
> trigger 2
> inject a 2
    a snapshot 2 d
    a send a->m barrier 2
    m take a->m barrier 2
    m block a->m 2
    m decline 2 snapshot-failed
    m cancel 2
    m resume 2
    m send m->s cancel 2
    s take m->s cancel 2
    s cancel 2
> decline m 2
    coordinator aborted 2 snapshot-failed
> emit a a1
    a send a->m a1
    m take a->m a1
    m deliver a->m a1
    m send m->s a1
    s take m->s a1
    s deliver m->s a1
"""


def test_a_barrier_that_was_aborted_separates_nothing() -> None:
    """After a failed checkpoint every event would seem to leave ahead of the barrier that is not there."""
    assert verdict_of(GIVEN_UP, Topology.parse("a->m m->s")) == Verdict("holds")


def test_a_watermark_may_be_repeated() -> None:
    """An idle source that says again what it said would be called wrong."""
    send = "> watermark a 5\n    a send a->s watermark 5\n    s take a->s watermark 5\n    s deliver a->s watermark 5\n"
    assert verdict_of(2 * send) == Verdict("holds")


def test_a_violation_says_when() -> None:
    """A person would have to look through the whole run for the place."""
    topology = Topology.parse("a->s")
    events = [Event("a", n) for n in (1, 2, 3)]
    entries: list[Entry] = []
    for event in events:
        entries += [(0, ">emit", "a", None, event), (0, "send", "a", "a->s", event), (1, "take", "s", "a->s", event)]
    entries += [(at_ns, "deliver", "s", "a->s", events[n - 1]) for at_ns, n in ((5, 1), (6, 3), (7, 2))]
    (violation,) = judge(History.of(entries, topology), topology).violations
    assert (str(violation), violation.at_ns) == ("FIFO: a3 took effect on a->s where a2 was next", 6)
