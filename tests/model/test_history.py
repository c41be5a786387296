"""A history groups a journal: what it counts is what the invariants rest on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import barrierlab.model.spec.history
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, Event, Watermark, size_of
from barrierlab.model.checkpoint.trace import read, topology_of
from barrierlab.model.spec.equations import lacking
from barrierlab.model.spec.history import History, HistoryError
from barrierlab.model.spec.messages import size_of as counted_size_of
from barrierlab.model.spec.topology import Topology
from barrierlab.model.spec.watch import TaskWatch

TRACES = Path(__file__).parents[1] / "traces"


def history(name: str) -> History:
    """Of a kept trace."""
    head, entries = read((TRACES / f"{name}.trace").read_text())
    return History.of(entries, topology_of(head))


def texts(messages: object) -> list[str]:
    """Messages by name."""
    return [str(message) for message in messages]  # type: ignore[attr-defined]


def test_channels_keep_what_went_through_them() -> None:
    """FIFO and NOLOSS would compare the wrong lists."""
    kept = history("an_input_waits_behind_its_barrier").channels["a->join"]
    assert texts(kept.sent) == texts(kept.taken) == texts(kept.applied) == ["a1", "barrier 1", "a2"]
    assert (kept.deepest, kept.most_buffered, list(kept.waiting), kept.ignored) == (3, 1, [], [])


def test_a_cut_counts_events_before_it() -> None:
    """The equation would be asked of the wrong numbers."""
    cuts = history("an_input_waits_behind_its_barrier").cuts
    assert cuts["a", 1].sent == {"a->join": 1}
    assert cuts["join", 1].applied == {"a->join": 1, "b->join": 0}
    assert cuts["join", 1].sent == {"join->sink": 1}
    assert cuts["sink", 1].applied == {"join->sink": 1}
    assert cuts["join", 1].digest == "cccc"


def test_what_waits_in_the_outbox_is_before_the_cut() -> None:
    """Backpressure at the moment of a snapshot would look like a lost message."""
    assert history("an_outbox_lags_behind_the_cut").cuts["a", 1].sent == {"a->sink": 2}


def test_what_an_end_gave_off_is_before_the_cut_it_completes() -> None:
    """An end that lets a window go and completes an alignment in one step would look like an orphan."""
    topology = Topology.parse("a->win b->win win->s")
    end, out, barrier = EndOfInput(), Event("win", 1), CheckpointBarrier.aligned(1, 1)
    entries = [
        (0, "send", "b", "b->win", end),
        (0, "take", "win", "b->win", end),
        (0, "end", "win", "b->win", end),
        (0, "snapshot", "win", None, (1, "d")),
        (0, "forward", "win", None, barrier),
        (0, "send", "win", "win->s", out),
        (0, "send", "win", "win->s", barrier),
        (0, "send", "a", "a->win", Event("a", 1)),
        (0, "take", "win", "a->win", Event("a", 1)),
        (0, "deliver", "win", "a->win", Event("a", 1)),
        (0, "send", "win", "win->s", Event("win", 2)),
    ]
    assert History.of(entries, topology).cuts["win", 1].sent == {"win->s": 1}


def test_an_ignored_message_is_not_applied() -> None:
    """A stale barrier would count as one that took effect."""
    kept = history("an_aborted_checkpoint_leaves_nothing_behind")
    assert texts(kept.channels["b->join"].ignored) == ["barrier 1"]
    assert kept.channels["b->join"].applied == []
    assert kept.tasks["join"].aborted == {1}
    assert kept.aborted == {1: (7_000_000, "expired")}


def test_what_is_held_counts_until_it_takes_effect() -> None:
    """BOUND would count too much or too little."""
    kept = history("the_second_barrier_keeps_its_place")
    assert kept.channels["a->join"].most_buffered == 2
    assert kept.tasks["join"].most_buffered_bytes == 1 + size_of(CheckpointBarrier.aligned(2, 2))
    assert kept.tasks["join"].buffered_bytes == 0
    assert kept.tasks["join"].blocked == (0, 0)


def test_sizes_are_those_of_the_code() -> None:
    """A limit in bytes would be counted in other bytes by the judge than by the judged."""
    for message in (Event("a", 1, size_bytes=7), Watermark(1), CheckpointBarrier.aligned(1, 1), EndOfInput()):
        assert counted_size_of(message) == size_of(message)


def test_a_task_has_finished_with_its_last_input() -> None:
    """A task that has ended would be blamed for a missing snapshot, or one that has not would be excused."""
    kept = history("an_ended_input_stands_for_its_barrier")
    assert kept.tasks["b"].finished_ns == 2_000_000
    assert kept.tasks["join"].finished_ns == 11_000_000
    assert not any(list(lacking(*task)) for task in kept.completed[1].tasks.values())


@pytest.mark.parametrize(
    ("entry", "came"),
    [
        ((0, "sent", "a", "a->s", Event("a", 1)), "'sent'"),
        ((0, "send", "a", "a->t", Event("a", 1)), "'a->t'"),
        ((0, "deliver", "t", "a->s", Event("a", 1)), "'t'"),
        ((0, "send", "s", "a->s", Event("a", 1)), "'s send a->s'"),
        ((0, "take", "a", "a->s", Event("a", 1)), "'a take a->s'"),
        ((0, "deliver", "a", "a->s", Event("a", 1)), "'a deliver a->s'"),
        ((0, "buffer", "a", "a->s", Event("a", 1)), "'a buffer a->s'"),
        ((0, "ignore", "a", "a->s", CheckpointBarrier(1, 1)), "'a ignore a->s'"),
        ((0, "block", "a", "a->s", 1), "'a block a->s'"),
        ((0, "end", "a", "a->s", EndOfInput()), "'a end a->s'"),
        ((0, "capture", "b", "a->s", (1, Event("a", 1))), "'b capture a->s'"),
    ],
)
def test_what_is_no_journal(entry: tuple, came: str) -> None:
    """A journal of another dataflow would be judged as if it were of this one."""
    with pytest.raises(HistoryError, match=f"{came} has no place in it"):
        History.of([entry], Topology.parse("a->s b->s"))


def test_a_promise_is_not_taken_back() -> None:
    """A task would be blamed for the watermark of a sender that went back."""
    watch = TaskWatch("s", ("a->s",), ())
    watch.promises(0, 5)
    watch.promises(0, 3)
    assert watch.least_promise() == 5


def test_every_verb_is_understood() -> None:
    """A verb that the trace can write would stop the judge."""
    source = ast.parse(Path(barrierlab.model.spec.history.__file__).read_text())
    known = {node.value for node in ast.walk(source) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for verb in [*barrierlab.model.spec.history.MOVES, *barrierlab.model.spec.history.EFFECTS]:
        assert verb in known
        assert verb in barrierlab.model.spec.history._RARE or verb in (
            *("send", "take", "deliver", "buffer"),
            *(">deliver", ">drain", ">push", ">emit", ">restore"),
        )
