"""All interleavings of small pipelines: the protocol holds, and every way to break it is found with a shortest run.

The numbers of states are pinned: they move when the meaning does.
"""

from __future__ import annotations

import pytest

from barrierlab.impl.control import ControlProcessor, IdentityAligner
from barrierlab.impl.control.outlets import Outlets
from barrierlab.model.checkpoint.components import SOUND
from barrierlab.model.control.invariants import judge
from barrierlab.model.control.scopes import BATCHED, EC, ED, JOIN, SC, SD, SMALL, TAIL, WIDE, ControlScope
from barrierlab.model.control.topology import ControlWiring
from barrierlab.model.control.world import ControlBounds, ControlWorld, Processors
from tests.control.support import explore


@pytest.mark.parametrize("scope", SMALL, ids=lambda scope: scope.of)
def test_every_interleaving_holds(scope: ControlScope) -> None:
    """Some schedule would complete a barrier too early, reorder, hang, or lose an event in a graceful end."""
    found = scope.check(SOUND, None)
    assert (found.verdict, found.states) == ("holds", scope.states), found.violations


@pytest.mark.slow
@pytest.mark.parametrize("scope", WIDE, ids=lambda scope: scope.of)
def test_every_interleaving_of_wider_scopes_holds(scope: ControlScope) -> None:
    """The same, where more meets: what is small enough for every day may be too small."""
    found = scope.check(SOUND, None)
    assert (found.verdict, found.states) == ("holds", scope.states), found.violations


# Ways to break it, beside those of the catalogue.


class ForwardsFirst(IdentityAligner):
    """Complete with the first copy."""

    def align(self, upstream, barrier):
        first = self.expected_upstreams == 1 or not self._order
        super().align(upstream, barrier)
        return barrier if first else None


class CountsClosedTwice(IdentityAligner):
    """A close stands for one more upstream, whoever it is."""

    def close(self, upstream):
        return super().close(upstream) + self.abort()


class KeepsWhatItHas(ControlProcessor):
    """Ends without a flush."""

    def _flush(self):
        pass


class EndsAtOnce(ControlProcessor):
    """Does not wait for the fence."""

    def _has_drained(self, carrier):
        return True


class FlushesLate(ControlProcessor):
    """Sends the barrier ahead of what the operator still has."""

    def _flush(self):
        self.later = super()._flush

    def _end(self, cause):
        self.later()
        super()._end(cause)


class Crossed(Outlets):
    """Forwards on the channel on which the signal did not come."""

    def forward(self, carrier, signal):
        super().forward(carrier.other, signal)


class OtherChannel(ControlProcessor):
    """A processor with such outlets."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.outlets = Crossed(self.name, *self.outlets.counts.values(), self.tell)


class IgnoresTheEnd(ControlProcessor):
    """Goes on behind a terminal signal."""

    def _end_if_drained(self):
        pass


class LeavesItOpen(ControlProcessor):
    """Ends without a word to those below."""

    def _end(self, cause):
        outbox = {carrier: list(messages) for carrier, messages in self.outbox.items()}
        super()._end(cause)
        for carrier, messages in outbox.items():
            self.outbox[carrier].clear()
            self.outbox[carrier].extend(messages)


class StopsBothChannels(ControlProcessor):
    """One channel that waits keeps the other from being read."""

    def can_take(self, carrier, upstream):
        return super().can_take(carrier, upstream) and super().can_take(carrier.other, upstream)


def broken(make: type[ControlProcessor]) -> Processors:
    """Processors of this make; `join` gathers a batch."""
    return Processors(BATCHED.kinds, BATCHED.parameters, make=make)


BROKEN = {
    "complete with the first copy": (
        ControlBounds(JOIN, (SC,), events=0, make_processor=Processors(options={"make_aligner": ForwardsFirst})),
        *("ALL", 3),
    ),
    "a close counts for another": (
        ControlBounds(
            ControlWiring("a->join b->join c->join"),
            (SC,),
            events=0,
            make_processor=Processors(options={"make_aligner": CountsClosedTwice}),
            may_fail=("b",),
        ),
        *("ALL", 5),
    ),
    "no flush": (ControlBounds(TAIL, (ED,), capacity=1, make_processor=broken(KeepsWhatItHas)), *("NOLOSS", 13)),
    "no wait for the fence": (
        ControlBounds(TAIL, (EC,), capacity=1, make_processor=broken(EndsAtOnce)),
        *("NOLOSS", 8),
    ),
    "a late flush": (ControlBounds(TAIL, (ED,), capacity=1, make_processor=broken(FlushesLate)), *("NOLOSS", 14)),
    "the other channel": (ControlBounds(JOIN, (SC,), events=0, make_processor=broken(OtherChannel)), *("ALL", 2)),
    "no end": (ControlBounds(JOIN, (ED,), events=0, make_processor=broken(IgnoresTheEnd)), *("LIVE", 11)),
    "an open end": (ControlBounds(JOIN, (EC,), events=0, make_processor=broken(LeavesItOpen)), *("LIVE", 7)),
    "one stops the other": (
        ControlBounds(
            JOIN, (SC, SD), events=0, make_processor=Processors(options={"max_ahead": 1}, make=StopsBothChannels)
        ),
        *("LIVE", 8),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found(name: str) -> None:
    """The search would hold whatever the code does. The run is a shortest one: its length is pinned."""
    bounds, invariant, length = BROKEN[name]
    world = ControlWorld(bounds)
    found = explore(world)
    assert (found.invariants, len(found.moves)) == ({invariant}, length), (found.violations, found.moves)
    journal = world.journal(found.moves)
    assert invariant in {v.invariant for v in judge(journal, bounds.wiring, discards=()).violations}


class Cyclic(ControlWiring):
    """Both graphs have no cycle, and together they have one."""

    def _sorted(self, edges):
        return ("a", "b")


def test_a_cycle_through_both_channels_waits_for_itself() -> None:
    """A wiring that is refused could as well be allowed: here is what it does."""
    found = explore(ControlWorld(ControlBounds(Cyclic("a->b", "head->b b->a"), (ED,), events=0)))
    assert found.invariants == {"LIVE"}
    assert {"a has not ended, although a terminal signal was sent"} <= {v.reason for v in found.violations}


def test_an_upstream_that_breaks_down_makes_a_graceful_end_a_half_one() -> None:
    """A closed upstream counts as delivered (protocol rule 26): the end is complete, and data is missing.

    Who asked for the end sees it only in `failure`. That is the rule's price, and is to stay visible.
    """
    world = ControlWorld(ControlBounds(JOIN, (ED,), may_fail=("b",)))
    state = world.start()
    for move in ("emit b", "fail b", "signal", "deliver head->a", "deliver head=>a", "deliver a->join"):
        state = world.after(state, move)
    while moves := [move for move in world.moves(state) if not move.startswith(("emit", "fail"))]:
        state = world.after(state, moves[0])
    assert world.quiescent(state) == ()


def test_a_state_is_found_again_from_another_order() -> None:
    """Independent moves would give different states, and the search never end."""
    world = ControlWorld(ControlBounds(JOIN, (SD,)))
    one = world.after(world.after(world.start(), "emit a"), "emit b")
    other = world.after(world.after(world.start(), "emit b"), "emit a")
    assert one == other
    assert hash(one) == hash(other)
    assert world.moves(one) == world.moves(other)


def test_backpressure_reaches_the_source() -> None:
    """A channel would grow beyond its capacity."""
    world = ControlWorld(ControlBounds(ControlWiring("a->sink"), (), events=5, capacity=1))
    state = world.start()
    for _ in range(2):
        state = world.after(state, "emit a")
    assert world.moves(state) == ("deliver a->sink",)
