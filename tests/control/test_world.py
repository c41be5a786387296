"""All interleavings of small pipelines: the protocol holds, and every way to break it is found with a shortest run.

The numbers of states are pinned: they move when the meaning does.
"""

from __future__ import annotations

import pytest

from impl.control import ControlProcessor, CountingAligner, IdentityAligner
from model.control_invariants import judge
from model.control_wiring import ControlWiring
from model.control_world import ControlWorld, Processors, Setup
from tests.control.support import CONTROL, DATA, GRACEFUL, QUICK, SYNC, explore

JOIN = ControlWiring("a->join b->join")
DIRECT = ControlWiring("a->join b->join", "direct")
DIAMOND = ControlWiring("a->x a->y x->join y->join")
TAIL = ControlWiring("a->join b->join join->sink")
BATCHED = Processors({"join": "batch"}, {"join": {"batch_count": 2}})

SD, SC, ED, EC, QD, QC = (
    *((SYNC, DATA), (SYNC, CONTROL)),
    *((GRACEFUL, DATA), (GRACEFUL, CONTROL)),
    *((QUICK, DATA), (QUICK, CONTROL)),
)

SCOPES = {
    "two syncs on data": (Setup(JOIN, (SD, SD), capacity=1), 398),
    "two syncs on control": (Setup(JOIN, (SC, SC), events=0), 46),
    "three syncs on control, read one ahead": (
        Setup(JOIN, (SC, SC, SC), events=0, make_processor=Processors(options={"max_ahead": 1})),
        108,
    ),
    "a sync on each": (Setup(JOIN, (SD, SC), capacity=1), 1009),
    "a sync on data, an end on control": (Setup(JOIN, (SD, EC), capacity=1), 4992),
    "a sync on control, an end on data": (Setup(JOIN, (SC, ED), capacity=1), 3852),
    "control straight from the head": (Setup(DIRECT, (SD, EC), capacity=1), 5067),
    "a quick end on control": (Setup(JOIN, (SD, QC), capacity=1), 7536),
    "a quick end on data": (Setup(JOIN, (SC, QD), capacity=1), 6348),
    "a diamond": (Setup(DIAMOND, (SD, EC), capacity=1), 4607),
    "data may pass": (
        Setup(JOIN, (SD, SD), hold_data=False, make_processor=Processors(options={"hold_data": False})),
        593,
    ),
    "a processor breaks down": (Setup(JOIN, (SD, ED), events=0, capacity=1, may_fail=("b",)), 1508),
    "counted, where nobody is ahead": (
        Setup(
            JOIN,
            (SD,),
            hold_data=False,
            make_processor=Processors(options={"make_aligner": CountingAligner, "hold_data": False}),
        ),
        109,
    ),
}
WIDE = {
    "a batch below, an end on control": (Setup(TAIL, (SD, EC), capacity=1, make_processor=BATCHED), 9007),
    "a batch below, an end on data": (Setup(TAIL, (SC, ED), capacity=1, make_processor=BATCHED), 7161),
    "a sync on each, an end": (Setup(JOIN, (SD, SC, EC), capacity=1), 15899),
    "two events each in a batch": (Setup(TAIL, (EC,), events=2, capacity=1, make_processor=BATCHED), 14089),
    "a processor breaks down among data": (Setup(JOIN, (SD, ED), capacity=1, may_fail=("b",)), 12091),
    "two syncs and a quick end": (Setup(JOIN, (SC, SC, QD)), 76078),
}


@pytest.mark.parametrize("name", SCOPES)
def test_every_interleaving_holds(name: str) -> None:
    """Some schedule would complete a barrier too early, reorder, hang, or lose an event in a graceful end."""
    setup, states = SCOPES[name]
    found = explore(ControlWorld(setup))
    assert (found.violations, found.states) == ((), states), found.moves


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDE)
def test_every_interleaving_of_wider_scopes_holds(name: str) -> None:
    """The same, where more meets: what is small enough for every day may be too small."""
    setup, states = WIDE[name]
    found = explore(ControlWorld(setup))
    assert (found.violations, found.states) == ((), states), found.moves


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

    def _forward(self, carrier, signal):
        super()._forward(carrier, signal)
        if signal.is_terminal:
            self.later()


class OtherChannel(ControlProcessor):
    """Forwards on the channel on which the signal did not come."""

    def _forward(self, carrier, signal):
        super()._forward(carrier.other, signal)


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
        Setup(JOIN, (SC,), events=0, make_processor=Processors(options={"make_aligner": ForwardsFirst})),
        *("ALL", 3),
    ),
    "a close counts for another": (
        Setup(
            ControlWiring("a->join b->join c->join"),
            (SC,),
            events=0,
            make_processor=Processors(options={"make_aligner": CountsClosedTwice}),
            may_fail=("b",),
        ),
        *("ALL", 5),
    ),
    "no flush": (Setup(TAIL, (ED,), capacity=1, make_processor=broken(KeepsWhatItHas)), *("NOLOSS", 13)),
    "no wait for the fence": (Setup(TAIL, (EC,), capacity=1, make_processor=broken(EndsAtOnce)), *("NOLOSS", 8)),
    "a late flush": (Setup(TAIL, (ED,), capacity=1, make_processor=broken(FlushesLate)), *("NOLOSS", 14)),
    "the other channel": (Setup(JOIN, (SC,), events=0, make_processor=broken(OtherChannel)), *("ALL", 2)),
    "no end": (Setup(JOIN, (ED,), events=0, make_processor=broken(IgnoresTheEnd)), *("LIVE", 11)),
    "an open end": (Setup(JOIN, (EC,), events=0, make_processor=broken(LeavesItOpen)), *("LIVE", 7)),
    "one stops the other": (
        Setup(JOIN, (SC, SD), events=0, make_processor=Processors(options={"max_ahead": 1}, make=StopsBothChannels)),
        *("LIVE", 8),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_found(name: str) -> None:
    """The search would hold whatever the code does. The run is a shortest one: its length is pinned."""
    setup, invariant, length = BROKEN[name]
    world = ControlWorld(setup)
    found = explore(world)
    assert (found.invariants, len(found.moves)) == ({invariant}, length), (found.violations, found.moves)
    journal = world.journal(found.moves)
    assert invariant in {v.invariant for v in judge(journal, setup.wiring, discards=()).violations}


class Cyclic(ControlWiring):
    """Both graphs have no cycle, and together they have one."""

    def _sorted(self, edges):
        return ("a", "b")


def test_a_cycle_through_both_channels_waits_for_itself() -> None:
    """A wiring that is refused could as well be allowed: here is what it does."""
    found = explore(ControlWorld(Setup(Cyclic("a->b", "head->b b->a"), (ED,), events=0)))
    assert found.invariants == {"LIVE"}
    assert {"a has not ended, although a terminal signal was sent"} <= {v.reason for v in found.violations}


def test_an_upstream_that_breaks_down_makes_a_graceful_end_a_half_one() -> None:
    """A closed upstream counts as delivered (protocol rule 26): the end is complete, and data is missing.

    Who asked for the end sees it only in `failure`. That is the rule's price, and is to stay visible.
    """
    world = ControlWorld(Setup(JOIN, (ED,), may_fail=("b",)))
    state = world.start()
    for move in ("emit b", "fail b", "signal", "deliver head->a", "deliver head=>a", "deliver a->join"):
        state = world.after(state, move)
    while moves := [move for move in world.moves(state) if not move.startswith(("emit", "fail"))]:
        state = world.after(state, moves[0])
    assert world.at_rest(state) == ()


def test_a_state_is_found_again_from_another_order() -> None:
    """Independent moves would give different states, and the search never end."""
    world = ControlWorld(Setup(JOIN, (SD,)))
    one = world.after(world.after(world.start(), "emit a"), "emit b")
    other = world.after(world.after(world.start(), "emit b"), "emit a")
    assert one == other
    assert hash(one) == hash(other)
    assert world.moves(one) == world.moves(other)


def test_backpressure_reaches_the_source() -> None:
    """A channel would grow beyond its capacity."""
    world = ControlWorld(Setup(ControlWiring("a->sink"), (), events=5, capacity=1))
    state = world.start()
    for _ in range(2):
        state = world.after(state, "emit a")
    assert world.moves(state) == ("deliver a->sink",)
