"""The premises of an exploration are those of its runs; and a verdict over scopes names what none of them had."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from barrierlab.model.checkpoint.check import Outcome, WorldScope, reach_of
from barrierlab.model.checkpoint.components import SOUND
from barrierlab.model.checkpoint.premises import FAULTS, asked_for, premises_of
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import World
from barrierlab.model.spec.invariants import PREMISES, SITUATIONS, Verdict

JOIN = "a->join b->join join->s"
BOUNDS: dict[str, Bounds] = {
    "nothing": Bounds("a->s", events=0, checkpoints=0),
    "events": Bounds("a->s", events=2, checkpoints=0),
    "a checkpoint of nothing": Bounds("a->s", events=0),
    "a chain": Bounds("a->s", events=1),
    "watermarks": Bounds("a->m m->s", events=1, watermarks=1, checkpoints=1),
    "a join": Bounds(JOIN, events=1),
    "a join, unaligned": Bounds(JOIN, events=1, mode="unaligned"),
    "a crash": Bounds("a->s", events=1, crashes=1, guarantee="exactly_once"),
    "one aborted": Bounds("a->s b->s", events=1, cancels=1),
}


def a_run(bounds: Bounds, seed: int) -> Verdict:
    """Return what is said of the journal of a run that chance has chosen, to its end."""
    world, chance = World(bounds), random.Random(seed)
    state, taken = world.start(), []
    while moves := world.moves(state):
        taken.append(chance.choice(moves))
        state = world.after(state, taken[-1])
    return world.judged(taken, rests=True)


@pytest.mark.parametrize("name", BOUNDS)
def test_what_no_run_meets_is_counted_as_none_and_all_else_is_not(name: str) -> None:
    """A verdict would be called empty that is not, or said to have judged what never came."""
    bounds = BOUNDS[name]
    outcome = WorldScope("", bounds).check(SOUND, None)
    runs = [a_run(bounds, seed) for seed in range(60)]
    assert list(outcome.premises) == [*PREMISES, *SITUATIONS]
    met = {what for what, count in outcome.premises.items() if count}
    assert met == {what for what in outcome.premises if any(run.premises[what] for run in runs)}
    assert set(outcome.asked_for) <= met


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_strikes_where_it_can(fault: str) -> None:
    """A scope with a fault that never happens would pass for one in which it did no harm."""
    extent: dict[str, Any] = {
        "abort": {"cancels": 1},
        "timeout": {"expiries": 1},
        "closed input": {"closes": True},
        "crash": {"crashes": 1, "guarantee": "exactly_once"},
    }[fault]
    some = WorldScope("", Bounds("a->s b->s", events=1, **extent)).check(SOUND, None)
    assert list(some.struck) == [fault]
    assert some.struck[fault] > 0
    idle: dict[str, Bounds] = {
        "abort": Bounds("a->s", events=1, checkpoints=0, cancels=1),  # nothing to abort
        "timeout": Bounds("a->s", events=1, expiries=1),  # nothing waits
        "closed input": Bounds("a->s", events=0, closes=True),  # no source has anything left
    }
    if fault in idle:
        assert WorldScope("", idle[fault]).check(SOUND, None).struck == {fault: 0}


def test_a_broken_scope_and_one_that_is_explored_whole_are_counted_too() -> None:
    """Anything that is broken would be called empty besides."""
    world = World(BOUNDS["a chain"])
    assert not any(premises_of(world).values())
    assert asked_for(BOUNDS["watermarks"]) == ("CUT", "FIFO", "ONCE", "FWD", "NOLOSS", "WM", "ID", "LIVE")
    late = WorldScope("", replace(BOUNDS["a join"], max_buffer_memory_bytes=1)).check(SOUND, None)  # aborts by itself
    assert late.premises["CUT"] > 0


def outcome(premises: dict[str, int], asked: tuple[str, ...] = (), **struck: int) -> Outcome:
    """One that has judged so much; of what is not named, one thing each."""
    counts = dict.fromkeys(PREMISES, 1) | premises
    return Outcome("x", "aligned", "holds", "", 1, 1, 0.0, (), counts, asked, struck)


def test_what_one_scope_has_judged_is_judged() -> None:
    """A group of scopes would be called empty for each thing that one of them leaves to another."""
    none = outcome({"WM": 0, "REC": 0}, ("REC",), timeout=0)
    assert reach_of([none]).vacuous == ("WM", "REC")
    assert (reach_of([none]).asked_for, reach_of([none]).idle) == (("REC",), ("timeout",))
    assert reach_of([none]).falls_short
    some = outcome({"WM": 0}, timeout=2)
    assert (reach_of([none, some]).vacuous, reach_of([none, some]).asked_for) == (("WM",), ())
    assert reach_of([none, some]).idle == ()
    assert not reach_of([none, some]).falls_short


def test_where_nothing_is_counted_nothing_is_vacuous() -> None:
    """A check of tables alone would be called empty of what it does not ask in these words."""
    table = Outcome("x", "aligned", "holds", "", 1, 1, 0.0)
    assert reach_of([table]) == reach_of([])
    assert not reach_of([table]).vacuous
