"""Fields of a machine that the explorer forgets: no run can tell, move by move and entry by entry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from barrierlab.impl.checkpoint.recovery import TaskRestore
from barrierlab.model.checkpoint.monitor import Past, TaskMonitor
from barrierlab.model.checkpoint.partial_order import Ample
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.task_transitions import NOW_NS, LocalStep, Note, TaskTransitions
from barrierlab.model.checkpoint.world import Move, World, WorldState
from barrierlab.model.explore.checker import explore

SCOPES = {
    "deadlines": Bounds("a->join b->join join->s", events=1, mode="aligned_with_timeout"),
    "deadlines at a sink": Bounds("a->s b->s", events=1, mode="aligned_with_timeout"),
    "ends": Bounds("a->s b->s", events=0, closes=True),
    "a crash": Bounds("a->s", events=1, checkpoints=2, crashes=1, guarantee="exactly_once"),
    "two crashes": Bounds("a->s", events=1, crashes=2, guarantee="exactly_once"),
    "a crash, ends": Bounds("a->s", events=1, crashes=1, guarantee="exactly_once", closes=True),
    "a crash, rows": Bounds("a->s", events=2, crashes=1, guarantee="idempotent", closes=True),
}
_NAMED = ("prepare", "commit", "rollback")
"""The entries that name a transaction."""


def runs_of(world: World, numbers: dict[object, int]) -> tuple[int, int]:
    """Return a number that worlds share if and only if they have the same runs, and how many states it took."""
    number_of: dict[WorldState, int] = {}
    steps: dict[WorldState, list[tuple[str, WorldState]]] = {}
    path = [world.start()]
    while path:
        state = path[-1]
        if state not in steps:
            noted = [(move, *world.noted(state, move)) for move in world.moves(state)]
            steps[state] = [(_text(world, move, notes), reached) for move, reached, notes in noted]
            path += [reached for _, reached in steps[state] if reached not in steps]
            continue
        path.pop()
        if state not in number_of:
            found = frozenset((what, number_of[reached]) for what, reached in steps[state])
            number_of[state] = numbers.setdefault((world.broken(state), found), len(numbers))
    return number_of[world.start()], len(number_of)


def _text(world: World, move: Move, notes: Sequence[Note]) -> str:
    """Return a move and its entries; a sink always aligns, so that it is the same to it when a barrier comes."""
    text = " | ".join((str(move), *map(_entry, notes)))
    is_at_sink = move.kind == "task" and world.topology.tasks[move.numbers[0]] in world.topology.sinks
    return text.replace(" late", "").replace(" None", "") if is_at_sink else text


def _entry(note: Note) -> str:
    verb, node, channel, subject = note
    return f"{verb} {node}" if verb in _NAMED else f"{verb} {node} {channel} {subject}"


def _forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskTransitions, "_forget_what_is_over", lambda table: None)
    monkeypatch.setattr(TaskMonitor, "_has_made_again", lambda monitor: None)


@pytest.mark.parametrize(
    "scope", [pytest.param(name, marks=[pytest.mark.slow] * (name == "a crash, ends")) for name in SCOPES]
)
def test_what_is_forgotten_changes_no_run(scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two states would be taken for one that go on differently: a defect behind one of them would be missed."""
    numbers: dict[object, int] = {}
    runs, states = runs_of(World(SCOPES[scope], forgets=True), numbers)
    _forgets_nothing(monkeypatch)
    all_runs, all_states = runs_of(World(SCOPES[scope]), numbers)
    assert runs == all_runs
    assert states < all_states


def _forgets_arrivals(table: TaskTransitions) -> None:
    if table._aligner is not None:
        table._aligner.count_from(NOW_NS)


def _forgets_what_is_to_come_again(monitor: TaskMonitor) -> None:
    monitor.most_made = 0


def _recovers_for_good(
    table: TaskTransitions, cell: int, part: TaskRestore, number: int, past: Past, _: bool
) -> LocalStep:
    return _recover(table, cell, part, number, past, for_good=True)


_recover = TaskTransitions.recover
FORGETFUL: dict[str, tuple[str, type, str, Callable[..., object]]] = {
    "an arrival that a deadline goes by": ("deadlines", TaskTransitions, "_forget_what_is_over", _forgets_arrivals),
    "what is to come again": ("a crash, rows", TaskMonitor, "_has_made_again", _forgets_what_is_to_come_again),
    "transactions before another crash": ("two crashes", TaskTransitions, "recover", _recovers_for_good),
}


@pytest.mark.parametrize("what", FORGETFUL)
def test_what_is_forgotten_too_early_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would let anything be forgotten."""
    scope, kind, name, forgets = FORGETFUL[what]
    numbers: dict[object, int] = {}
    runs, _ = runs_of(World(SCOPES[scope], forgets=True), numbers)
    monkeypatch.setattr(kind, name, forgets)
    assert runs_of(World(SCOPES[scope], forgets=True), numbers)[0] != runs


def test_nothing_is_kept_of_what_did_not_happen() -> None:
    """The tables of a large scope would hold what barriers leave that were offered to overtake, and did not."""
    world = World(Bounds("a->join b->join join->s", events=1, checkpoints=2, mode="aligned_with_timeout"), forgets=True)
    explore(world, ample=Ample(world).moves, acyclic=True)
    for table in world.tables:
        reached = {after for _, after, _ in table.edges()}
        assert reached | {table.start} == set(range(len(table.cells)))
