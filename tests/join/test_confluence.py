"""Outputs of a join are a function of its inputs: every order of what happens gives the same ones.

As far as that is true: without overwriting, staleness, restarts and changed maps, each of which makes time decide
(defect J-12). For those a pair of orders is shown that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from barrierlab.impl.join import OnFailure, StageConfig
from barrierlab.model.explore.checker import explore
from barrierlab.model.join.lockstep import JoinMove, offers, says
from barrierlab.model.join.scopes import CONFLUENT, JoinScope, at, at_ns, frames, numbers, times
from tests.join.support import frame, sequence, world

LOCKSTEP = numbers(at(1), at(2))
OUTCOMES = {
    "lockstep": ((0, (0, 0)), (1, (1, 1)), (2, (2, 2))),
    "offset": ((1, (1, 0)), (2, (2, 1))),
    "window": ((1, (1, 1)), (2, (2, 2))),
    "a dropped frame": ((0, (0, 0)), (1, 1, "failed"), (2, (2, 2))),
    "three inputs": ((0, (0, 0, 0)), (1, (1, 1, 1))),
    "announced again and again": ((0, (0, 0)), (1, (1, 1))),
    "times in lockstep": ((1, (1, 1)), (2, (2, 2))),
}


def outcomes(scope: JoinScope) -> set[tuple[Any, ...]]:
    """Each outcome of a scope as the outputs and their frames' numbers, or what was passed over."""
    system = replace(scope, is_confluent=True).system()
    assert explore(system, system.properties).verdict == "holds"
    return {
        tuple(
            (o.out, tuple(f.seq for f in o.frames)) if hasattr(o, "frames") else (o.first, o.last, o.reason.value)
            for o in each
        )
        for each in system.outcomes
    }


def scope(of: Any, *scripts: Sequence[JoinMove], slots: int = 8, barrier: str = "") -> JoinScope:
    """A join of map `of`."""
    return JoinScope("of a test", of, scripts, barrier, slots=slots)


@pytest.mark.parametrize("name", OUTCOMES)
@pytest.mark.parametrize("on_failure", OnFailure)
def test_every_order_gives_the_same_outputs(name: str, on_failure: OnFailure) -> None:
    """Two replicas of a join would disagree though they saw the same frames."""
    one = next(each for each in CONFLUENT if each.of == name)
    outcome: Any = OUTCOMES[name]
    if on_failure is OnFailure.ABSENT:
        outcome = tuple((1, (1,)) if each == (1, 1, "failed") else each for each in outcome)
    assert outcomes(replace(one, stage=StageConfig(on_failure))) == {outcome}


def test_an_overwritten_slot_makes_time_decide() -> None:
    """Confluence would be claimed where it does not hold: of two slots the first may be gone when the join looks."""
    found = outcomes(scope(LOCKSTEP, frames(1, 0, 1, 2), frames(2, 0), slots=2))
    assert found == {((0, (0, 0)),), ((0, 0, "failed"),)}


def test_a_scope_that_is_not_confluent_is_broken() -> None:
    """A scope that claims one outcome would hold though time decides."""
    one = replace(scope(LOCKSTEP, frames(1, 0, 1, 2), frames(2, 0), slots=2), is_confluent=True)
    assert [str(each.reason) for each in one.check(None, None).violations] == ["2 outcomes of the same frames"]  # type: ignore[arg-type]


def test_a_restart_makes_time_decide() -> None:
    """As above: an input's new epoch before or after an output is another output."""
    system = replace(
        scope(LOCKSTEP, frames(1, 0), (*frames(2, 0), *frames(2, 0, epoch=2)), slots=4), is_confluent=True
    ).system()
    assert explore(system, system.properties).verdict == "holds"
    frames_of = {o.frames[-1].epoch for outcome in system.outcomes for o in outcome if hasattr(o, "frames")}
    assert frames_of == {1, 2}


def test_a_changed_map_makes_time_decide() -> None:
    """As above: a map of the next epoch cuts the outputs of the one before short."""
    found = outcomes(scope(numbers(at(1)), frames(1, 0, 1), (says(numbers(at(1), epoch=2)),), slots=4))
    outs = {tuple(each[0] for each in outcome if len(each) == 2) for outcome in found}
    assert outs == {(), (0,), (0, 1), (0, 0, 1)}  # the last: in the new epoch again, as frame 0 still lies in its slot


def test_staleness_makes_time_decide() -> None:
    """As above: two replicas that see the same frames in the same order differ, as their clocks say (defect J-12)."""
    found = []
    for asked_at in (10, 11):
        it = world(sequence(numbers(at(1), at(2), stale=10)), slots=4)
        it.publish(frame(1, 0), 0)
        it.observe(frame(1, 0), 0)
        it.run(asked_at)
        it.publish(frame(2, 0), 12)
        it.observe(frame(2, 0), 12)
        it.run(12)
        found.append([(joined_.out, joined_.absent) for joined_ in it.outcomes])  # type: ignore[union-attr]
    assert found == [[(0, ())], [(0, (2,))]]


def test_the_latest_value_is_not_confluent_and_does_not_claim_to_be() -> None:
    """Section 9.3: best effort. The other two have one outcome on the same moves."""
    moves = (frames(1, 0, 1), frames(2, 0, 1), (offers(1),))
    newest = outcomes(scope(numbers(at(1), at(2)), *moves, slots=4, barrier="latest"))
    assert newest == {((1, (a, b)),) for a in (0, 1) for b in (0, 1)}
    assert outcomes(scope(times(at_ns(1), at_ns(2)), *moves, slots=4)) == {((1, (1, 1)),)}
