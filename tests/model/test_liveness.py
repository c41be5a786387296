"""A job in which nothing comes of anything is broken, be it at rest or on and on; and every look has an end."""

from __future__ import annotations

from itertools import count
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import barrierlab.model.checkpoint.check
import barrierlab.model.explore.checker
from barrierlab.model.checkpoint.check import WorldScope
from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.checkpoint.external import parts_of
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import MOST_TO_REST, World
from barrierlab.model.explore.checker import ExplorationLimits, Quiescent, UndecidedError, explore, traps
from tests.breadth import examples
from tests.model.schemes import Scheme, class_of

PAIR = "a->s b->s"
Sound: Any = class_of(Scheme())
GoesRound: Any = class_of(Scheme(goes_round=True))


class RefusesForEver(Sound):
    """Nothing is ever taken from the second of two inputs."""

    def offer(self, i: int, message: Any, now_ns: int) -> bool:
        return i != 1 and bool(super().offer(i, message, now_ns))


class SpinsAtTheEnd(Sound):
    """It says that there is something to drain when all is done, and nothing comes of it."""

    @property
    def can_drain(self) -> bool:
        return all(self.ended)

    def drain_next(self, now_ns: int) -> None:
        self.spins = 1 - self.spins


class CountsAtTheEnd(SpinsAtTheEnd):
    """The same, and it counts how often."""

    def drain_next(self, now_ns: int) -> None:
        self.spins += 1


def components(kind: type) -> Components:
    """The sound components, with such an aligner."""
    return parts_of(kind, "aligned")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (RefusesForEver, "s still waits for checkpoint 1"),
        (GoesRound, "end is left behind in a->s; it goes round for ever"),
    ],
)
def test_a_job_in_which_nothing_moves_on_is_broken(kind: type, reason: str) -> None:
    """Sources would have data, the sink would wait for it, and the job would hold."""
    outcome = WorldScope("", Bounds(PAIR, events=1)).check(components(kind), None)
    (violation,) = outcome.violations
    assert (outcome.verdict, violation.invariant, violation.reason) == ("broken", "LIVE", reason)
    assert "! LIVE: " in violation.trace


@pytest.mark.parametrize("fault", [{}, {"cancels": 1}, {"closes": True}, {"crashes": 1, "guarantee": "exactly_once"}])
def test_one_that_goes_round_when_all_is_done_holds(fault: dict[str, Any]) -> None:
    """Anything that makes no difference to anybody would be a defect."""
    assert WorldScope("", Bounds(PAIR, events=1, **fault)).check(components(SpinsAtTheEnd), None).verdict == "holds"


def test_a_run_that_may_never_come_to_rest_is_undecided() -> None:
    """The exploration would never end, or something would be called broken that may yet end well."""
    outcome = WorldScope("", Bounds(PAIR, events=0)).check(components(CountsAtTheEnd), None)
    assert (outcome.verdict, outcome.why) == ("undecided", f"after {MOST_TO_REST} states it has not come to rest")


def test_what_is_being_published_is_not_aborted_for_ever() -> None:
    """A checkpoint would be aborted again and again that cannot be any more, and nothing else would happen."""
    bounds = Bounds("a->s", events=0, checkpoints=2, cancels=1, crashes=1, guarantee="exactly_once")
    outcome = WorldScope("", bounds).check(SOUND, None)
    assert (outcome.verdict, outcome.states) == ("holds", 677)


@pytest.mark.parametrize("kind", [None, GoesRound])
def test_a_scope_ends_when_its_time_is_over(kind: type | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scope of five seconds would take minutes: what is asked at rest, or where runs go round, would not be timed."""
    ticks = count()
    clock = lambda: next(ticks) / 100  # noqa: E731
    monkeypatch.setattr(barrierlab.model.explore.checker, "monotonic", clock)
    monkeypatch.setattr(barrierlab.model.checkpoint.check, "monotonic", clock)
    bounds = Bounds(PAIR, events=1, closes=True)
    outcome = WorldScope("", bounds).check(SOUND if kind is None else components(kind), 0.3)
    assert outcome.verdict == "undecided"
    assert next(ticks) < 60  # 30 until then


def test_asking_at_rest_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many states may be at rest, and each may take as long as all others together."""
    ticks = count()
    monkeypatch.setattr(barrierlab.model.explore.checker, "monotonic", lambda: float(next(ticks)))

    class Fan:
        """From one state to two hundred that are all at rest."""

        def start(self) -> int:
            return 0

        def moves(self, state: int) -> range:
            return range(1, 201) if state == 0 else range(0)

        def after(self, state: int, move: int) -> int:
            return move

    asked: list[int] = []
    result = explore(Fan(), [Quiescent("rest", lambda state: asked.append(state))], limits=ExplorationLimits(seconds=9))
    assert (result.verdict, result.why) == ("undecided", "the limit of 9 s is reached")
    assert len(asked) < 12


@settings(max_examples=examples(200), derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20), st.sets(st.integers(0, 19)))
def test_traps_are_the_sets_that_nothing_leads_out_of(edges: list[tuple[int, int]], faults: set[int]) -> None:
    """A set of states would be missed in which a run stays for ever, or one be taken for one that can be left."""
    numbered = list(enumerate(edges))

    def moves_of(state: int) -> list[tuple[int, tuple[int, int]]]:
        return [each for each in numbered if each[1][0] == state]

    found = list(traps(0, moves_of, lambda state, move: move[1][1], lambda move: move[0] in faults))
    graph = nx.MultiDiGraph(edges)
    graph.add_node(0)
    reachable = {0, *nx.descendants(graph, 0)}
    fair = nx.DiGraph([edge for at, edge in numbered if at not in faults])
    fair.add_nodes_from(reachable)
    wanted = {frozenset(each) for each in nx.attracting_components(fair.subgraph(reachable))}
    assert {frozenset(states) for _, states in found} == wanted
    assert len(found) == len(wanted)
    for run, states in found:
        at = 0
        for _, (source, target) in run:
            assert source == at
            at = target
        assert at == states[0]


def test_traps_have_limits() -> None:
    """A search in what has no end would have none."""
    for limits in (ExplorationLimits(states=50), ExplorationLimits(seconds=0.0)):
        with pytest.raises(UndecidedError):
            list(traps(0, lambda state: (1,), lambda state, move: state + 1, limits=limits))


def test_a_run_to_rest_goes_round_no_more_than_once() -> None:
    """The journal of a run that goes round would have no end."""
    world = World(Bounds(PAIR, events=0), components(SpinsAtTheEnd))
    moves, state = world.rest(world.start())
    assert world.liveness_violation(state) is None
    assert len(moves) < 30
