"""Writes of a sink to the external system: when each is seen there, and that it is seen once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl import Event, Ledger, LimitError, SinkTask, SinkWriter, TransactionError
from barrierlab.impl.checkpoint.recovery import TaskRestore
from tests.breadth import examples
from tests.impl.support import END, Union, aligner, barrier, event


def names(events) -> list[str]:
    """Short forms."""
    return [str(each) for each in events]


def sink(guarantee="exactly_once", ledger=None, num_inputs=1):
    """A sink with a writer, the external system, and what it tells of that."""
    told: list[tuple[str, str]] = []

    def tell(verb, index, subject):
        if verb in ("write", "upsert", "deliver"):
            told.append((verb, str(subject)))
        elif verb == "commit":
            told.append((verb, f"{subject[0]}: {' '.join(names(subject[1]))}"))
        elif verb in ("prepare", "rollback"):
            told.append((verb, str(subject)))

    ledger = ledger or Ledger()
    writer = SinkWriter("s", ledger, guarantee, tell)
    return SinkTask("s", Union(), aligner(num_inputs), tell, writer), ledger, told


def test_what_is_written_is_seen_once_its_checkpoint_is_complete():
    """If it fails, a reader sees what a recovery writes again, or waits for what is complete (rule 20)."""
    task, ledger, told = sink()
    for message in (event("a1"), event("a2"), barrier(1), event("a3")):
        task.offer(0, message, 0)
    assert ledger.visible("s") == ()
    assert task.reports[0].prepared == ("s-1",)
    task.notify(1, 5)
    assert names(ledger.visible("s")) == ["a1", "a2"]
    assert [each for each in told if each[0] != "deliver"] == [("prepare", "('s-1', 2)"), ("commit", "s-1: a1 a2")]
    task.notify(1, 6)
    assert told[-1] == ("commit", "s-1: a1 a2")
    assert len(told) == 5


def test_an_abort_rolls_nothing_back():
    """If it fails, what came before an aborted checkpoint is lost, though no source sends it again."""
    task, ledger, _ = sink()
    for message in (event("a1"), barrier(1), event("a2")):
        task.offer(0, message, 0)
    task.abort(1, "expired", 1)
    task.offer(0, barrier(2), 2)
    assert task.reports[-1].prepared == ("s-1", "s-2")
    task.notify(2, 3)
    assert names(ledger.visible("s")) == ["a1", "a2"]


def test_the_end_is_prepared_and_seen_with_a_checkpoint_that_has_the_final_part():
    """If it fails, the last events of a job that ends are never seen; or they are seen twice after a recovery.

    Checkpoint 1, of which the sink took its part before the end, may complete after the end: it does not cover that.
    """
    task, ledger, told = sink()
    for message in (event("a1"), barrier(1), event("a2"), END):
        task.offer(0, message, 0)
    assert task.final_snapshot().prepared == ("s-1", "s-final-2")
    assert told[-1] == ("prepare", "('s-final-2', 1)")
    task.notify(1, 1)
    assert names(ledger.visible("s")) == ["a1"]
    assert task.final_snapshot().prepared == ("s-final-2",)
    task.notify(2, 2)
    assert names(ledger.visible("s")) == ["a1", "a2"]
    assert task.final_snapshot().prepared == ()


def test_recovery_commits_what_the_checkpoint_has_and_rolls_back_the_rest():
    """If it fails, what was prepared when the sink died is lost, or stays for ever, or is seen twice (rule 22)."""
    first, ledger, _ = sink()
    for message in (event("a1"), barrier(1), event("a2"), barrier(2), event("a3"), END):
        first.offer(0, message, 0)
    part = first.reports[0]
    again, _, told = sink(ledger=ledger)
    again.recover(TaskRestore("s", part.image, prepared=part.prepared), 1)
    assert told == [("commit", "s-1: a1"), ("rollback", "s-2"), ("rollback", "s-final-3")]
    for message in (event("a2"), event("a3"), END):
        again.offer(0, message, 0)
    assert again.final_snapshot().prepared == ("s-final-4",)
    again.notify(1, 0)  # late, of what was restored
    assert names(ledger.visible("s")) == ["a1"]
    again.notify(3, 0)
    assert names(ledger.visible("s")) == ["a1", "a2", "a3"]


@pytest.mark.parametrize(("guarantee", "verb"), [("at_least_once", "write"), ("idempotent", "upsert")])
def test_sinks_without_transactions_write_at_once(guarantee, verb):
    """If it fails, a guarantee is given that nobody asked for, or not the one that was."""
    task, ledger, told = sink(guarantee)
    for message in (event("a1"), barrier(1), event("a2")):
        task.offer(0, message, 0)
    assert task.reports[0].prepared == ()
    again, _, _ = sink(guarantee, ledger)
    again.recover(TaskRestore("s", (event("a1"),)), 1)
    again.offer(0, event("a2"), 0)
    assert told == [("deliver", "a1"), (verb, "a1"), ("deliver", "a2"), (verb, "a2")]
    assert names(ledger.visible("s")) == (["a1", "a2", "a2"] if verb == "write" else ["a1", "a2"])


def test_a_transaction_that_was_rolled_back_cannot_be_committed():
    """If it fails, a manifest that lands late brings events back that have been written again."""
    ledger = Ledger()
    ledger.prepare("s", "s-1", [event("a1")])
    ledger.prepare("t", "t-1", [event("a1")])
    assert ledger.roll_back_others("s", ()) == ("s-1",)
    with pytest.raises(TransactionError, match=r"commit of transaction s-1, which was rolled back"):
        ledger.commit("s-1")
    with pytest.raises(TransactionError, match=r"commit of transaction s-9, which was never prepared"):
        ledger.commit("s-9")
    with pytest.raises(TransactionError, match=r"prepare of transaction s-1, which was rolled back"):
        ledger.prepare("s", "s-1", [event("a2")])
    assert names(ledger.commit("t-1")) == ["a1"]
    assert ledger.commit("t-1") == ()
    ledger.prepare("t", "t-2", [event("a2")])
    ledger.prepare("t", "t-3", [event("a2")])
    assert ledger.roll_back_others("t", ("t-2",)) == ("t-3",)  # and what is committed stays so
    assert ledger.commit("t-1") == ()
    assert (ledger.visible("s"), names(ledger.visible("t"))) == ((), ["a1"])


def test_there_are_three_guarantees():
    """If it fails, a sink writes in a way that nobody has defined."""
    with pytest.raises(LimitError, match="exactly_once, at_least_once, idempotent"):
        SinkWriter("s", Ledger(), "twice", lambda verb, index, subject: None)


KINDS = ["event"] * 6 + ["part"] * 3 + ["complete"] * 3 + ["doubt", "fail", "fail", "end"]
MOVES = st.lists(st.tuples(st.sampled_from(KINDS), st.booleans()), max_size=40)


class Reader:
    """A sink, what it does with a source that can send again, and what a reader may see of that.

    The coordinator completes or aborts the newest part; the store may be in doubt. After the end there is one part
    more for it to complete, without a barrier.
    """

    def __init__(self) -> None:
        self.task, self.ledger, _ = sink()
        self.sent = 0  # events sent so far, of those that survive
        self.cuts: dict[int, tuple] = {0: (0, None)}  # by id: events ahead, part
        self.newest = 0
        self.complete = 0  # the newest complete checkpoint that was announced or restored

    def move(self, kind: str, yes: bool) -> None:
        """Something happens."""
        over = self.task.finished
        if kind == "event" and not over:
            self.sent += 1
            self.task.offer(0, Event("a", self.sent), 0)
        elif kind == "part":
            self.newest += 1
            if not over:
                self.task.offer(0, barrier(self.newest), 0)
            part = self.task.final_snapshot() if over else self.task.reports.pop()
            self.cuts[self.newest] = (self.sent, part)
        elif kind == "complete" and self.newest in self.cuts and self.newest > self.complete:
            self.complete = self.newest
            self.task.notify(self.newest, 0)
        elif kind == "doubt" and self.newest > self.complete and yes:
            self.cuts.pop(self.newest, None)  # it was not there
        elif kind == "fail":
            self.fail(yes)
        elif kind == "end" and not over:
            self.task.offer(0, END, 0)

    def fail(self, newest: bool) -> None:
        """Go on from the newest checkpoint that is complete, be it only in the store, or from the announced one."""
        at = max(self.cuts) if newest else self.complete
        self.cuts = {n: cut for n, cut in self.cuts.items() if n <= at}
        self.task, _, _ = sink(ledger=self.ledger)
        self.sent, part = self.cuts[at]
        self.complete = at
        restore = TaskRestore("s", None)
        if part is not None:
            ended = (0,) if part.finished else ()
            restore = TaskRestore("s", part.image, ended=ended, finished=part.finished, prepared=part.prepared)
        self.task.recover(restore, at)

    def may_see(self) -> list[str]:
        """Return the events ahead of the cut of the newest complete checkpoint."""
        return [f"a{n}" for n in range(1, self.cuts[self.complete][0] + 1)]


@given(MOVES)
@settings(max_examples=examples(300), deadline=None)
def test_a_reader_sees_what_was_ahead_of_the_newest_complete_cut(moves):
    """If it fails, some chain of aborts, doubts, failures and ends makes an event be seen twice, or never (rule 20)."""
    reader = Reader()
    for kind, yes in moves:
        reader.move(kind, yes)
        assert names(reader.ledger.visible("s")) == reader.may_see()


@given(MOVES, MOVES)
@settings(max_examples=examples(200), deadline=None)
def test_a_sink_with_its_writer_and_the_ledger_are_what_they_captured(before, after):
    """If it fails, a run that is restored commits something else."""

    def play(reader, part):
        for kind, yes in part:
            reader.move(kind, yes)
        return reader.task.capture(), reader.ledger.capture()

    first, second = Reader(), Reader()
    values = play(first, before)
    play(second, [("event", True), ("part", True), ("end", True)])
    second.ledger.restore(values[1])
    second.task.restore(values[0])
    second.sent, second.newest, second.complete, second.cuts = (
        first.sent,
        first.newest,
        first.complete,
        dict(first.cuts),
    )
    assert (second.task.capture(), second.ledger.capture()) == values
    assert hash(values) == hash((first.task.capture(), first.ledger.capture()))
    assert play(second, after) == play(first, after)


@given(st.lists(st.tuples(st.sampled_from(["write", "upsert", "prepare", "commit", "roll back"]), st.integers(1, 4))))
def test_the_outside_is_what_it_captured(moves):
    """If it fails, what a reader sees changes when a run is restored."""

    def play(ledger, part):
        for kind, n in part:
            try:
                if kind == "write":
                    ledger.write("s", Event("a", n))
                elif kind == "upsert":
                    ledger.upsert("t", Event("a", n, value=n))
                elif kind == "prepare":
                    ledger.prepare("s", f"s-{n}", [Event("a", n)])
                elif kind == "commit":
                    ledger.commit(f"s-{n}")
                else:
                    ledger.roll_back_others("s", [f"s-{n}"])
            except TransactionError:
                pass
        return ledger.capture(), ledger.visible("s"), ledger.visible("t"), ledger.count("s")

    first, second = Ledger(), Ledger()
    play(first, moves[: len(moves) // 2])
    value = first.capture()
    second.write("s", Event("b", 1))
    second.restore(value)
    assert (second.capture(), hash(second.capture())) == (value, hash(value))
    assert play(second, moves[len(moves) // 2 :]) == play(first, moves[len(moves) // 2 :])
