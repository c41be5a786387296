"""Each equation is asked by the judge of journals and by that of explored states: without it, neither sees a thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from barrierlab.impl.checkpoint.transactions import SinkWriter
from barrierlab.impl.messages import Watermark
from barrierlab.model.checkpoint.check import properties
from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import Move, World
from barrierlab.model.defects.alignment.A03_older_barrier_cancels import DEFECT as OLDER
from barrierlab.model.defects.barrier.P03_retry_emitted_again import DEFECT as RETRY
from barrierlab.model.defects.barrier.P04_older_command_accepted import DEFECT as OLDER_COMMAND
from barrierlab.model.explore.checker import ExplorationLimits, explore
from barrierlab.model.spec import equations
from tests.model.mutants import MUTANTS, MUTANTS_RECOVERING

CHAIN, LONG, JOIN, SHORT_JOIN = "a->s", "a->m m->s", "a->join b->join join->s", "a->s b->s"
SHOWN = Bounds(CHAIN, events=1, guarantee="exactly_once")
LIMITS = ExplorationLimits(states=5_000)
"""The shortest run that breaks something is found in fewer; without the equation, it is enough to look as far."""


class PreparesBackwards(SinkWriter):
    """Anything that becomes visible together comes last first."""

    def prepare(self, checkpoint_id: int) -> None:
        self.open.reverse()
        super().prepare(checkpoint_id)


class ForgetsWhatItHolds(SinkWriter):
    """Nothing is left to prepare, and so nothing stays prepared either."""

    def prepare(self, checkpoint_id: int) -> None:
        self.open.clear()
        super().prepare(checkpoint_id)


ASKED: dict[str, tuple[Callable[..., object], str, Bounds, Components]] = {
    "balanced": (lambda *_: True, "CUT", Bounds(JOIN, events=1), MUTANTS["SnapshotsAtTheFirst"]),
    "lacking": (lambda *_: iter(()), "ONCE", Bounds(CHAIN, events=1), MUTANTS["CompletesEarly"]),
    "separates": (lambda *_: False, "FWD", Bounds(LONG, events=1, watermarks=1), MUTANTS["KeepsTheWatermark"]),
    "barrier_goes_back": (lambda *_: None, "ID", OLDER.bounds, OLDER.components),
    "has_no_effect": (
        lambda *_: True,
        "NOLOSS",
        Bounds(SHORT_JOIN, checkpoints=2),
        MUTANTS["SwallowsTheSecondBarrier"],
    ),
    "cut_again": (lambda *_: iter(()), "ONCE", RETRY.bounds, RETRY.components),
    "cut_goes_back": (lambda *_: iter(()), "ID", OLDER_COMMAND.bounds, OLDER_COMMAND.components),
    "ended_again": (lambda *_: iter(()), "LIVE", Bounds(CHAIN, events=0), MUTANTS["CompletesTwice"]),
    "beyond": (
        lambda *_: iter(()),
        "BOUND",
        Bounds(JOIN, events=2, max_buffer_per_input=1),
        MUTANTS["HoldsWithoutLimit"],
    ),
    "shown_in_turn": (lambda *_: True, "REC", replace(SHOWN, events=2), Components(writer=PreparesBackwards)),
    "shown_enough": (lambda *_: True, "REC", SHOWN, Components(writer=ForgetsWhatItHolds)),
    "uncovered": (lambda *_: (), "REC", SHOWN, MUTANTS_RECOVERING["CommitsAtOnce"]),
    "promised_too_much": (lambda *_: iter(()), "WM", Bounds(JOIN, events=1, watermarks=1), MUTANTS["PromisesTheMost"]),
}
"""By equation: one that lets all pass, the invariant that it is of, and a scope in which a shortest run breaks that."""


def broken_by(world: World) -> tuple[tuple[Move, ...], set[str]]:
    """A shortest run that breaks something, and the invariants that it breaks; none if there is no such run."""
    for found in explore(world, properties(world), limits=LIMITS).violations:
        return found.moves, {reason.partition(":")[0] for reason in found.reason.split("; ")}
    return (), set()


def named(world: World, moves: tuple[Move, ...]) -> set[str]:
    """The invariants that the journal of a run breaks, once all has come to rest."""
    return {violation.invariant for violation in world.judged(moves, rests=True).violations}


@pytest.mark.parametrize("name", ASKED)
def test_both_judges_ask_an_equation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There would be two statements of one truth, and a mistake in one of them would be a verdict."""
    lets_pass, invariant, bounds, parts = ASKED[name]
    world = World(bounds, parts)
    moves, found = broken_by(world)
    assert invariant in found
    assert invariant in named(world, moves)
    monkeypatch.setattr(equations, name, lets_pass)
    assert invariant not in named(world, moves)
    assert invariant not in broken_by(World(bounds, parts))[1]


def test_both_judges_ask_which_barriers_may_overtake(monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier of the unaligned protocol would be let go ahead of its place by one judge alone."""
    bounds = Bounds(JOIN, events=1, mode="unaligned")
    assert broken_by(World(bounds, SOUND)) == ((), set())
    monkeypatch.setattr(equations, "may_overtake", lambda *_: False)
    world = World(bounds, SOUND)
    moves, found = broken_by(world)
    assert found == {"FIFO"}
    assert "FIFO" in named(world, moves)
    monkeypatch.undo()
    assert "FIFO" not in named(world, moves)


def test_both_judges_ask_for_the_least_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task would owe another watermark to the explorer than to a journal."""
    bounds = Bounds(LONG, events=1, checkpoints=0, watermarks=1)
    world = World(bounds)
    run, state = [], world.start()
    while moves := world.moves(state):
        run.append(moves[0])
        state = world.after(state, moves[0])
    sent = world.journal(run, rests=True)
    withheld = [entry for entry in sent if entry[1:4] != ("send", "m", "m->s") or type(entry[4]) is not Watermark]
    reason = "WM: m never sent watermark 1 on m->s"
    assert reason in map(str, world.judge(withheld, cut_off=False).violations)
    assert broken_by(world) == ((), set())
    monkeypatch.setattr(equations, "least_promise", lambda promises: None)
    assert reason not in map(str, world.judge(withheld, cut_off=False).violations)
    assert broken_by(World(bounds))[1] == {"TASK"}
