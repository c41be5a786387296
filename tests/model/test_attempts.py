"""A run is taken apart at its restores, and each fold goes on from where the restored cut left it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from barrierlab.impl.checkpoint.report import digest
from barrierlab.impl.messages import CheckpointBarrier, Event
from barrierlab.model.checkpoint.operators import BaseOperator, make, refolding
from barrierlab.model.checkpoint.trace import read, topology_of
from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.history import COORDINATOR, Entry, History, HistoryError
from barrierlab.model.spec.invariants import RESTORED, Applied, judge_attempts, judge_run
from barrierlab.model.spec.topology import Topology

LINE = Topology.parse("a->s")
TRACES = Path(__file__).parents[1] / "traces"


class Job:
    """``a->s`` in a few words: `s` takes each event at once, and every checkpoint is whole in one move."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.position, self.sink = 1, make("sink")
        self.kept: dict[int, tuple[int, object]] = {0: (1, self.sink.checkpoint())}

    def note(self, verb: str, node: str, channel: str | None = None, subject: object = None) -> None:
        """One entry, at the time of its place."""
        self.entries.append((len(self.entries), verb, node, channel, subject))

    def events(self, number: int) -> Job:
        """So many events are made and take effect."""
        for _ in range(number):
            event = Event("a", self.position)
            self.position += 1
            self.note(">emit", "a", None, event)
            self.note("send", "a", "a->s", event)
            self.note("take", "s", "a->s", event)
            self.note("deliver", "s", "a->s", event)
            list(self.sink.process(0, event))
        return self

    def checkpoint(self, checkpoint_id: int) -> Job:
        """Triggered, taken and completed."""
        barrier = CheckpointBarrier.aligned(checkpoint_id, checkpoint_id)
        self.kept[checkpoint_id] = (self.position, self.sink.checkpoint())
        self.note(">trigger", COORDINATOR, None, checkpoint_id)
        self.note("snapshot", "a", None, (checkpoint_id, digest(self.position)))
        self.note("send", "a", "a->s", barrier)
        self.note("take", "s", "a->s", barrier)
        self.note("block", "s", "a->s", checkpoint_id)
        self.note("snapshot", "s", None, (checkpoint_id, digest(self.sink.checkpoint())))
        self.note("resume", "s", None, checkpoint_id)
        self.note(">ack", "a", None, checkpoint_id)
        self.note(">ack", "s", None, checkpoint_id)
        self.note("completed", COORDINATOR, None, checkpoint_id)
        return self

    def restore(self, checkpoint_id: int) -> Job:
        """A crash, and all goes back."""
        self.note(">crash", "s")
        self.position, image = self.kept[checkpoint_id]
        self.sink = make("sink")
        self.sink.restore(image)
        self.note(">restore", COORDINATOR, None, checkpoint_id)
        self.note("restored", "a", None, (checkpoint_id, digest(self.position)))
        self.note("restored", "s", None, (checkpoint_id, digest(self.sink.checkpoint())))
        return self


def sink(task: str) -> BaseOperator:
    """Return what the task `s` runs."""
    return make("sink")


def lines(run: Run) -> list[list[tuple[int, int | None]]]:
    """Of each attempt, the numbers of those that it goes on from, with the checkpoint that ends each."""
    return [[(each.number, upto) for each, upto in attempt.line()] for attempt in run.attempts]


def test_an_attempt_goes_on_from_the_one_that_took_its_checkpoint() -> None:
    """An attempt that never was would count, or one that was would not: with none complete, or after falling back."""
    job = Job().events(2).checkpoint(1).events(2).restore(1).events(1).restore(1).events(3).checkpoint(2).restore(2)
    run = Run.of(job.events(1).restore(1).events(5).restore(0).entries, LINE)
    one, three = (1, 1), (3, 2)
    assert lines(run) == [
        [(1, None)],
        [one, (2, None)],
        [one, (3, None)],
        [one, three, (4, None)],
        [one, (5, None)],
        [(6, None)],
    ]
    assert [attempt.restored_id for attempt in run.attempts] == [0, 1, 1, 2, 1, 0]
    assert [attempt.crashed for attempt in run.attempts] == [True] * 5 + [False]
    assert judge_attempts(run, fold=refolding(LINE, sink)).verdict == "holds"


def test_a_run_of_one_attempt_is_its_history() -> None:
    """The frequent run, without a fault, would be read otherwise than before."""
    entries = Job().events(2).checkpoint(1).entries
    (attempt,) = Run.of(entries, LINE).attempts
    assert attempt.history.cuts.keys() == History.of(entries, LINE).cuts.keys()
    assert (attempt.crashed, attempt.restored_id, attempt.parent) == (False, 0, None)


def test_several_attempts_are_no_single_history() -> None:
    """A caller that knows nothing of restores would count what never happened."""
    with pytest.raises(
        HistoryError, match=r"a second attempt, from restore 1 on; read it by `barrierlab\.model\.spec\.attempts\.Run"
    ):
        History.of(Job().checkpoint(1).restore(1).entries, LINE)


@pytest.mark.parametrize("subject", [None, "1", -1, True])
def test_what_is_restored_has_an_id(subject: object) -> None:
    """A journal that was damaged would be read as another run."""
    with pytest.raises(HistoryError, match="is restored, and is no checkpoint; write its id, or 0"):
        Run.of([(0, ">restore", COORDINATOR, None, subject)], LINE)


class Counted:
    """A fold that counts: how many were begun, and what they got."""

    def __init__(self) -> None:
        self.begun, self.told = Counter[str](), Counter[str]()
        self.marks = 0

    def __call__(self, task: str) -> object:
        self.begun[task] += 1
        digest_after = refolding(LINE, sink)(task)

        def counting(stretch: Sequence[Applied]) -> str | None:
            self.told[task] += len(stretch) - stretch.count(RESTORED)
            self.marks += stretch.count(RESTORED)
            return digest_after(stretch)

        return counting


def test_a_fold_goes_on_from_one_attempt_to_the_next() -> None:
    """The judge would read the whole past again for every attempt: 20 restores, 20 times the time."""
    job = Job()
    for attempt in range(10):
        job.events(5).checkpoint(attempt + 1).events(3).restore(attempt + 1)
    fold = Counted()
    verdict = judge_run(job.events(2).checkpoint(11).entries, LINE, fold=fold)  # type: ignore[arg-type]
    assert verdict.verdict == "holds"
    assert fold.begun == {"a": 1, "s": 1}
    assert fold.told == {"a": 52, "s": 52}  # what survived, once
    assert fold.marks == 20


def test_a_fold_begins_anew_where_it_has_gone_too_far() -> None:
    """After a restore that fell back, the state would be compared with one that has what never happened."""
    job = Job().events(2).checkpoint(1).events(2).checkpoint(2).restore(1).events(1).checkpoint(3)
    fold = Counted()
    assert judge_run(job.entries, LINE, fold=fold).verdict == "holds"  # type: ignore[arg-type]
    assert fold.begun == {"a": 2, "s": 2}


def test_the_state_in_a_later_attempt_is_the_fold_of_what_survived() -> None:
    """A state that lost something in the restore, and says nothing of it there, would pass."""
    job = Job().events(2).checkpoint(1).restore(1)
    job.sink = make("sink")  # restored to nothing, whatever `restored` says
    verdict = judge_run(job.events(2).checkpoint(2).entries, LINE, fold=refolding(LINE, sink))
    assert [violation.invariant for violation in verdict.violations] == ["CUT"]
    assert "the state of s in checkpoint 2 is" in verdict.violations[0].reason


def test_watermarks_begin_anew_in_a_fold() -> None:
    """An input that has promised nothing since the restore would hold no watermark back, or hold it for ever."""
    topology = Topology.parse("a->win b->win win->s")
    fold = refolding(topology, lambda task: make("window" if task == "win" else "sink", inputs=2))("win")
    events = read("\n> push a @ 0.000000000\n    a send a->win watermark 5\n    a send a->win watermark 9\n")[1]
    five, nine = (entry[4] for entry in events[1:])
    before = fold([("a->win", five), ("b->win", nine)])
    assert fold([RESTORED, ("b->win", nine)]) == before  # a has not said anything yet
    assert fold([("a->win", five)]) == before  # it had been at 5 already
    assert fold([("a->win", nine)]) != before


def test_a_cut_knows_which_inputs_had_ended() -> None:
    """An input that ended before the cut would be asked for a promise, or be ended twice, after the restore."""
    head, entries = read((TRACES / "a_finished_task_stays_finished.trace").read_text())
    run = Run.of(entries, topology_of(head))
    start = run.attempts[1].history.start
    assert start is not None
    assert (start.finished, start.ended["s"]) == ({"a"}, frozenset())
    assert run.attempts[1].history.tasks["a"].finished_ns == start.at_ns


def test_a_task_that_ended_behind_its_cut_goes_on() -> None:
    """A source that had ended when it crashed would be blamed for making its last events again."""
    job = Job().events(1).checkpoint(1).events(1)
    job.note(">finish", "a")
    run = Run.of(job.restore(1).events(1).entries, LINE)
    assert run.attempts[1].history.tasks["a"].finished_ns is None
    assert judge_attempts(run, fold=refolding(LINE, sink)).verdict == "holds"


def test_a_watermark_is_no_effect_that_counts() -> None:
    """Anything that a sink shows would be compared with more than events."""
    job = Job().events(1)
    mark = read("\n> watermark a 5 @ 0.000000000\n    a send a->s watermark 5\n")[1][1][4]
    for verb, node in (("send", "a"), ("take", "s"), ("deliver", "s")):
        job.note(verb, node, "a->s", mark)
    (attempt,) = Run.of(job.events(1).entries, LINE).attempts
    assert attempt.applied("s") == [Event("a", 1), Event("a", 2)]


def test_what_is_restored_needs_no_room() -> None:
    """A channel whose record is longer than its capacity would break BOUND after each restore."""
    text = """
> restore 0 @ 0.000000000
    s restored_in_flight a->s a1
    s restored_in_flight a->s a2
    a send a->s a3
    a send a->s a4
    s take a->s a1
    s take a->s a2
    a send a->s a5
"""
    history = Run.of(read(text)[1], LINE).attempts[1].history
    assert history.channels["a->s"].deepest == 3
