"""A machine that goes by more than it captures is no machine that can be explored: every step is made a second time."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from barrierlab.impl.checkpoint.actions import CoordinatorAction
from barrierlab.impl.checkpoint.alignment import AlignerAction, BarrierAligner
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.impl.messages import StreamMessage
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.check import WorldScope
from barrierlab.model.checkpoint.components import SOUND, Components, with_aligner
from barrierlab.model.checkpoint.external import parts_of
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import World
from barrierlab.model.explore.checker import explore
from docs.aligner.aligner import PhasedAligner

THREE = WorldScope("three inputs", Bounds("a->s b->s c->s", events=1, checkpoints=1))


class Honest(BarrierAligner):
    """The sound aligner, under another name."""


class CountsItsCalls(BarrierAligner):
    """Lets go in another order every second call of all its objects: sound each time, and not the same twice."""

    calls = 0

    def drain_next(self, now_ns: int = 0) -> tuple[int, StreamMessage, AlignerAction] | None:
        CountsItsCalls.calls += 1
        if CountsItsCalls.calls % 2 and len(self.inputs.ready) > 1:
            self.inputs.ready.rotate(1)
        return super().drain_next(now_ns)


@pytest.mark.parametrize("components", [SOUND, with_aligner(Honest)], ids=["impl", "another class"])
def test_what_does_the_same_twice_holds(components: Components) -> None:
    """A sound aligner of somebody else would be refused."""
    assert THREE.check(components, None).verdict == "holds"


def test_what_does_not_do_the_same_twice_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that looked answers up after the first time would be one on one half of what the machine does."""
    outcome = THREE.check(with_aligner(CountsItsCalls), None)
    assert (outcome.verdict, [violation.invariant for violation in outcome.violations]) == ("broken", ["RAISED"])
    assert "s does not do the same twice in " in outcome.why
    assert "all that it goes by has to be in `capture`" in outcome.why
    monkeypatch.setattr(
        "barrierlab.model.checkpoint.task_transitions.TaskTransitions.differences", lambda self: iter(())
    )
    assert THREE.check(with_aligner(CountsItsCalls), None).verdict == "holds"


class TellsTheTasksInTurn(CheckpointCoordinator):
    """Tells of an abort in another order every second time: sound each time, and not the same twice."""

    calls = 0

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> tuple[CoordinatorAction, ...]:
        TellsTheTasksInTurn.calls += 1
        return super().abort(checkpoint_id, reason, now_ns)[:: 1 if TellsTheTasksInTurn.calls % 2 else -1]


GIVES_UP = WorldScope("two sources", Bounds("a->s b->s", events=0, checkpoints=1, cancels=1))


def test_a_coordinator_that_does_not_do_the_same_twice_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its decisions, too, are looked up after the first time."""
    outcome = GIVES_UP.check(Components(coordinator=TellsTheTasksInTurn), None)
    assert (outcome.verdict, [violation.invariant for violation in outcome.violations]) == ("broken", ["RAISED"])
    assert outcome.why.startswith("coordinator does not do the same twice in 1: ")
    assert outcome.why.endswith("all that it goes by has to be in `capture`")
    monkeypatch.setattr(
        "barrierlab.model.checkpoint.coordinator_transitions.CoordinatorTransitions.differences", lambda self: iter(())
    )
    assert GIVES_UP.check(Components(coordinator=TellsTheTasksInTurn), None).verdict == "holds"


@pytest.mark.parametrize("fault", [{"cancels": 1}, {"closes": True}, {"crashes": 1, "guarantee": "exactly_once"}])
def test_the_coordinator_of_impl_does_the_same_twice(fault: dict[str, Any]) -> None:
    """Its decisions are not made a second time beside somebody else's aligner: it would have to be shown there."""
    for kind in (CheckpointCoordinator, type("Sub", (CheckpointCoordinator,), {})):
        world = World(Bounds("a->s b->s", events=0, checkpoints=2, **fault), Components(coordinator=kind))
        explore(world)
        decided = list(world.coordinator.differences())
        assert len(decided) > 10
        assert set(decided) == {None}
        assert (len(list(world.differences())) > len(list(chain(*(t.differences() for t in world.tables))))) == (
            kind is not CheckpointCoordinator
        )


def test_beside_an_aligner_of_ones_own_the_coordinator_is_that_of_impl() -> None:
    """A class that is given to a check would bring a coordinator whose decisions nobody makes a second time."""
    assert parts_of(PhasedAligner, "aligned").coordinator is CheckpointCoordinator
    assert parts_of(BarrierAligner, "aligned").coordinator is CheckpointCoordinator


def test_the_time_limit_holds_while_steps_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget would be exceeded without a word."""
    clock = iter(range(10**9))
    monkeypatch.setattr("barrierlab.model.checkpoint.check.monotonic", lambda: 0.0 if next(clock) < 3 else 100.0)
    outcome = THREE.check(with_aligner(Honest), 50.0)
    assert outcome.verdict == "undecided"
