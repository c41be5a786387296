"""Outputs of a sequence join are a function of its inputs: every order of what happens gives the same ones.

As far as that is true: without overwriting, staleness, restarts and changed maps, each of which makes time decide
(defect J-12). For those a pair of orders is shown that differ. The number of states is pinned: it moves when meaning
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from impl.join import Frame, OnFailure, SequenceMergeMapAnnounce
from model.join_confluence import Move, TooManyStatesError, explore
from model.join_world import JoinWorld
from tests.join.support import at, at_ns, frame, latest, numbers, sequence, times, timestamp, window, world


def comes(each: Frame) -> Move:
    """A frame is published and announced."""

    def move(it: JoinWorld) -> None:
        it.publish(each, 0)
        it.observe(each, 0)

    return move


def frames(stream: int, *seqs: int) -> Sequence[Move]:
    """The frames of one stream, in order."""
    return [comes(frame(stream, seq, seq)) for seq in seqs]


def says(said: SequenceMergeMapAnnounce) -> Move:
    """A map is announced."""
    return lambda it: it.announce(said, 0)


def joined(found: Any) -> set[tuple[Any, ...]]:
    """Each outcome as the outputs and their frames' numbers, or what was passed over."""
    return {
        tuple(
            (o.out, tuple(f.seq for f in o.frames)) if hasattr(o, "frames") else (o.first, o.last, o.reason.value)
            for o in each
        )
        for each in found.outcomes
    }


LOCKSTEP = numbers(at(1), at(2))


@pytest.mark.parametrize(
    ("said", "scripts", "states", "outcome"),
    [
        (LOCKSTEP, [frames(1, 0, 1, 2), frames(2, 0, 1, 2)], 44, ((0, (0, 0)), (1, (1, 1)), (2, (2, 2)))),
        (numbers(at(1), at(2, -1)), [frames(1, 0, 1, 2), frames(2, 0, 1, 2)], 32, ((1, (1, 0)), (2, (2, 1)))),
        (numbers(at(1), window(2, 2)), [frames(1, 0, 1, 2), frames(2, 0, 1, 2)], 26, ((1, (1, 1)), (2, (2, 2)))),
        (LOCKSTEP, [frames(1, 0, 1, 2), frames(2, 0, 2)], 30, ((0, (0, 0)), (1, 1, "failed"), (2, (2, 2)))),
        (
            numbers(at(1), at(2), at(3)),
            [frames(1, 0, 1), frames(2, 0, 1), frames(3, 0, 1)],
            45,
            ((0, (0, 0, 0)), (1, (1, 1, 1))),
        ),
        (
            LOCKSTEP,
            [frames(1, 0, 1), frames(2, 0, 1), [says(LOCKSTEP), says(LOCKSTEP)]],
            57,
            ((0, (0, 0)), (1, (1, 1))),
        ),
    ],
    ids=["lockstep", "offset", "window", "a dropped frame", "three inputs", "announced again and again"],
)
@pytest.mark.parametrize("on_failure", OnFailure)
def test_every_order_gives_the_same_outputs(
    said: Any, scripts: Any, states: int, outcome: Any, on_failure: OnFailure
) -> None:
    """Two replicas of a join would disagree though they saw the same frames."""
    found = explore(lambda: world(sequence(said), slots=8, on_failure=on_failure), scripts)
    assert found.violations == ()
    if on_failure is OnFailure.ABSENT:
        outcome = tuple((1, (1,)) if each == (1, 1, "failed") else each for each in outcome)
    assert joined(found) == {outcome}
    assert found.is_confluent
    assert found.states == states


def test_an_overwritten_slot_makes_time_decide() -> None:
    """Confluence would be claimed where it does not hold: of two slots the first may be gone when the join looks."""
    found = explore(lambda: world(sequence(LOCKSTEP), slots=2), [frames(1, 0, 1, 2), frames(2, 0)])
    assert found.violations == ()
    assert joined(found) == {((0, (0, 0)),), ((0, 0, "failed"),)}


def test_a_restart_makes_time_decide() -> None:
    """As above: an input's new epoch before or after an output is another output."""
    restart = [comes(frame(2, 0)), comes(frame(2, 0, epoch=2))]
    found = explore(lambda: world(sequence(LOCKSTEP), slots=4), [frames(1, 0), restart])
    assert found.violations == ()
    frames_of = {each.frames[-1].epoch for outcome in found.outcomes for each in outcome if hasattr(each, "frames")}
    assert frames_of == {1, 2}


def test_a_changed_map_makes_time_decide() -> None:
    """As above: a map of the next epoch cuts the outputs of the one before short."""
    changes = [says(numbers(at(1), epoch=2))]
    found = explore(lambda: world(sequence(numbers(at(1))), slots=4), [frames(1, 0, 1), changes])
    assert found.violations == ()
    outs = {tuple(o.out for o in outcome if hasattr(o, "out")) for outcome in found.outcomes}
    assert outs == {(), (0,), (0, 1), (0, 0, 1)}  # the last: in the new epoch again, as frame 0 still lies in its slot


def test_staleness_makes_time_decide() -> None:
    """As above: two replicas that see the same frames in the same order differ, as their clocks say (defect J-12)."""
    outcomes = []
    for asked_at in (10, 11):
        it = world(sequence(numbers(at(1), at(2), stale=10)), slots=4)
        it.publish(frame(1, 0), 0)
        it.observe(frame(1, 0), 0)
        it.run(asked_at)
        it.publish(frame(2, 0), 12)
        it.observe(frame(2, 0), 12)
        it.run(12)
        outcomes.append([(joined_.out, joined_.absent) for joined_ in it.outcomes])  # type: ignore[union-attr]
    assert outcomes == [[(0, ())], [(0, (2,))]]


def test_the_latest_value_is_not_confluent_and_does_not_claim_to_be() -> None:
    """Section 9.3: best effort. The other two have one outcome on the same moves."""

    def offers(it: JoinWorld) -> None:
        it.offer(1, 0)

    moves = [frames(1, 0, 1), frames(2, 0, 1), [offers]]
    newest = explore(lambda: world(latest(numbers(at(1), at(2))), slots=4), moves)
    assert newest.violations == ()
    assert joined(newest) == {((1, (a, b)),) for a in (0, 1) for b in (0, 1)}
    timed = explore(lambda: world(timestamp(times(at_ns(1), at_ns(2))), slots=4), moves)
    assert timed.violations == ()
    assert joined(timed) == {((1, (1, 1)),)}


def test_a_bound_is_a_bound() -> None:
    """An exploration that is too large would run for hours instead of saying so."""
    with pytest.raises(TooManyStatesError, match="more than 10 states"):
        explore(lambda: world(sequence(LOCKSTEP)), [frames(1, 0, 1, 2), frames(2, 0, 1, 2)], most=10)
