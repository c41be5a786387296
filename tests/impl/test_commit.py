"""What a sink writes to the outside: when it is seen there, and that it is seen once."""

from __future__ import annotations

import pytest

from impl import Ledger, LimitError, SinkTask, SinkWriter, TransactionError
from impl.recovery import TaskRestore
from tests.impl.support import END, Union, aligner, barrier, event


def names(events) -> list[str]:
    """Short forms."""
    return [str(each) for each in events]


def sink(guarantee="exactly_once", ledger=None, num_inputs=1):
    """A sink with a writer, the outside, and what it tells of that."""
    told: list[tuple[str, str]] = []

    def tell(verb, index, subject):
        if verb in ("write", "upsert"):
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
    assert told == [("prepare", "('s-1', 2)"), ("commit", "s-1: a1 a2")]
    task.notify(1, 6)
    assert len(told) == 2


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
    assert task.final_part().prepared == ("s-1", "s-final-2")
    assert told[-1] == ("prepare", "('s-final-2', 1)")
    task.notify(1, 1)
    assert names(ledger.visible("s")) == ["a1"]
    assert task.final_part().prepared == ("s-final-2",)
    task.notify(2, 2)
    assert names(ledger.visible("s")) == ["a1", "a2"]
    assert task.final_part().prepared == ()


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
    assert again.final_part().prepared == ("s-final-4",)
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
    assert told == [(verb, "a1"), (verb, "a2")]
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
    assert (ledger.visible("s"), names(ledger.visible("t"))) == ((), ["a1"])


def test_there_are_three_guarantees():
    """If it fails, a sink writes in a way that nobody has defined."""
    with pytest.raises(LimitError, match="exactly_once, at_least_once, idempotent"):
        SinkWriter("s", Ledger(), "twice", lambda verb, index, subject: None)
