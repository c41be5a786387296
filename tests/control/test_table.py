"""The table of control signals: `impl` does what it says in every reachable state, and every row of it matters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl.control import (
    BarrierControlSignal,
    ControlSignalError,
    CountingAligner,
    IdentityAligner,
)
from barrierlab.impl.errors import ClosedInputError, InputIndexError
from barrierlab.model.checkpoint.refinement import GateDifference
from barrierlab.model.control.refinement import SCOPES, ControlRefinement, ControlTableScope, delivered, made
from barrierlab.model.control.scopes import SMALL, ControlScope
from barrierlab.model.control.table import CONTROL
from barrierlab.model.control.upstreams import AbortAll, Closed, Delivered, Upstreams
from barrierlab.model.control.world import ControlWorld, Processors, properties
from barrierlab.model.explore.checker import explore
from barrierlab.model.explore.table import Table, TableError
from tests.breadth import examples
from tests.control.support import CONTROL as ON_CONTROL
from tests.control.support import DATA, graceful, sync
from tests.model.mutations import edits

# The aligner of `impl` beside the table.


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_aligner_and_table_agree_in_every_reachable_state(scope: ControlTableScope) -> None:
    """In some order of copies, closes and aborts, however rare, the code would do otherwise than the table says."""
    refinement = ControlRefinement(scope.stimuli, scope.expected)
    result = explore(refinement, refinement.properties)
    assert result.verdict == "holds", result.violations
    assert (result.counts.states, result.counts.transitions) == (scope.states, scope.transitions)


def test_every_row_is_used() -> None:
    """A row would describe what cannot happen, and nobody would have compared it."""
    used: Counter[str] = Counter()
    for scope in SCOPES:
        if scope.states < 500:
            table = Table(*CONTROL.rows)
            explore(ControlRefinement(scope.stimuli, scope.expected, table))
            used += table.used
    assert set(used) == {row.name for row in CONTROL.rows}


LONG = [Delivered(upstream, make(n)) for upstream in range(4) for n in range(1, 8) for make in (sync, graceful)]
STEPS = st.lists(st.sampled_from([*LONG, *LONG[::2], *LONG[::2], Closed(0), Closed(3), AbortAll()]), max_size=60)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(STEPS)
def test_long_runs_of_many_upstreams_agree(stimuli) -> None:
    """The aligner would part from the table where more upstreams and ids than can be explored meet."""
    refinement = ControlRefinement(stimuli, 4)
    pair = refinement.start()
    for stimulus in stimuli:
        if stimulus in refinement.moves(pair):
            pair = refinement.after(pair, stimulus)
            assert not isinstance(pair, GateDifference), pair
    assert [each.check(pair) for each in refinement.properties] == [None] * 3


def test_what_a_driver_must_not_do_is_the_same_error() -> None:
    """A wiring mistake would pass in the model, or fail with other words than in the code."""
    upstreams, _ = Upstreams(CONTROL, ON_CONTROL, 2).step(Closed(1))
    aligner = IdentityAligner(2, ON_CONTROL)
    aligner.close(1)
    for stimulus in (Delivered(2, sync(1)), Closed(-1), Delivered(1, sync(1)), Closed(1)):
        with pytest.raises((InputIndexError, ClosedInputError)) as of_table:
            upstreams.step(stimulus)
        with pytest.raises(type(of_table.value)) as of_aligner:
            made(aligner, stimulus)
        assert str(of_table.value) == str(of_aligner.value)


def test_an_error_names_the_carrier() -> None:
    """A user who reads a journal would look for the fault on the wrong channel."""
    for carrier in (DATA, ON_CONTROL):
        upstreams, _ = Upstreams(CONTROL, carrier, 2).step(Delivered(0, sync(2)))
        _, effects = upstreams.step(Delivered(1, sync(1)))
        assert [str(effect) for effect in effects] == [
            f"fail 1 barrier overlap on {carrier} channel: SyncTest 1 while SyncTest 2 is pending"
        ]


# Aligners with one thing wrong. Each must be distinguished, by a shortest run.


class ForgetsWhatIsDone(IdentityAligner):
    """The highest completed id is not kept (S-02)."""

    __slots__ = ()

    def _take_completed(self) -> tuple[BarrierControlSignal, ...]:
        completed = super()._take_completed()
        self.last_terminated_id = 0
        return completed


class CountsAClosedUpstreamTwice(IdentityAligner):
    """An upstream that delivers and closes stands for another one as well."""

    __slots__ = ()

    def _take_completed(self) -> tuple[BarrierControlSignal, ...]:
        completed = super()._take_completed()
        if self._order and sum(map(bool, self._ahead)) + len(self._closed) >= self.expected_upstreams:
            completed = (*completed, self._order.popleft())
            self.last_terminated_id = completed[-1].barrier_id
            self._ahead = [max(count - 1, 0) for count in self._ahead]
        return completed


class LooksAtTheIdAlone(IdentityAligner):
    """Two barriers of one id are one, whatever their kinds."""

    __slots__ = ()

    def align(self, upstream: int, barrier: BarrierControlSignal) -> BarrierControlSignal | None:
        place = self._ahead[upstream]
        if place < len(self._order) and self._order[place].barrier_id == barrier.barrier_id:
            barrier = self._order[place]
        return super().align(upstream, barrier)


class ForwardsTheLastCopy(IdentityAligner):
    """Anything that is forwarded is what completed it (S-11)."""

    __slots__ = ()

    def align(self, upstream: int, barrier: BarrierControlSignal) -> BarrierControlSignal | None:
        return None if super().align(upstream, barrier) is None else barrier


class TakesAClosedUpstreamForMissing(IdentityAligner):
    """An upstream that closes without the barrier leaves it pending (S-08)."""

    __slots__ = ()

    def close(self, upstream: int) -> tuple[BarrierControlSignal, ...]:
        self._check(upstream, "close")
        self._closed.add(upstream)
        return ()


DUPLICATE = "fail 0 duplicate barrier on control channel: SyncTest 1 after barrier 1"
OVERLAP = "fail 1 barrier overlap on control channel: StreamGracefulEnd 1 while SyncTest 1 is pending"
ARRIVED = "arrive 1 SyncTest 1 (b)"
BROKEN = (
    (
        CountingAligner,  # the document's (S-01)
        ["deliver 0 SyncTest 1", "deliver 0 SyncTest 1"],
        f"the table says '{DUPLICATE}', the aligner 'arrive 0 SyncTest 1; complete SyncTest 1'",
    ),
    (
        ForgetsWhatIsDone,
        ["deliver 0 SyncTest 1", "deliver 1 SyncTest 1", "deliver 0 SyncTest 1"],
        f"the table says '{DUPLICATE}', the aligner 'arrive 0 SyncTest 1'",
    ),
    (
        CountsAClosedUpstreamTwice,
        ["deliver 0 SyncTest 1", "close 0"],
        "the table says 'close 0 end', the aligner 'close 0 end; complete SyncTest 1'",
    ),
    (
        TakesAClosedUpstreamForMissing,
        ["deliver 0 SyncTest 1", "close 1"],
        "the table says 'close 1 end; complete SyncTest 1', the aligner 'close 1 end'",
    ),
    (
        LooksAtTheIdAlone,
        ["deliver 0 SyncTest 1", "deliver 1 StreamGracefulEnd 1"],
        f"the table says '{OVERLAP}', the aligner 'arrive 1 StreamGracefulEnd 1; complete SyncTest 1'",
    ),
    (
        ForwardsTheLastCopy,
        ["deliver 0 SyncTest 1 (a)", "deliver 1 SyncTest 1 (b)"],
        f"the table says '{ARRIVED}; complete SyncTest 1 (a)', the aligner '{ARRIVED}; complete SyncTest 1 (b)'",
    ),
)


@pytest.mark.parametrize(("make", "moves", "reason"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_broken_aligner_is_told_apart_by_a_shortest_run(make, moves: list[str], reason: str) -> None:
    """The comparison would pass whatever an aligner does."""
    shortest = None
    for scope in SCOPES:
        if scope.expected == 2:
            refinement = ControlRefinement(scope.stimuli, scope.expected, make=make)
            for broken in explore(refinement, (refinement.effects,)).violations:
                if shortest is None or len(broken.moves) < len(shortest.moves):
                    shortest = broken
    assert shortest is not None
    assert [str(move) for move in shortest.moves] == moves
    assert shortest.reason == f"{moves[-1]}: {reason}"


class KeepsItToItself(IdentityAligner):
    """Nobody is ever ahead, as far as it says: a processor would read on without limit."""

    __slots__ = ()

    def ahead(self, upstream: int) -> int:
        return 0


@pytest.mark.parametrize(
    ("make", "moves", "broken", "reason"),
    [
        (
            ForgetsWhatIsDone,
            ["deliver 0 SyncTest 1", "deliver 1 SyncTest 1"],
            "state",
            "the table means (1, (), (0, 0), ()), the aligner is in (0, (), (0, 0), ())",
        ),
        (KeepsItToItself, ["deliver 0 SyncTest 1"], "answers", "ahead(0): the table says 1, the aligner 0"),
    ],
    ids=["state", "answers"],
)
def test_what_has_no_effect_yet_is_seen_too(make, moves: list[str], broken: str, reason: str) -> None:
    """A field that an aligner forgets would go unseen until it matters, perhaps further away than a scope reaches."""
    scope = SCOPES[1]
    refinement = ControlRefinement(scope.stimuli, scope.expected, make=make)
    found = explore(refinement, refinement.properties).violations[0]
    assert ([str(move) for move in found.moves], found.property, found.reason) == (moves, broken, reason)


def test_what_an_aligner_raises_is_a_difference() -> None:
    """An aligner that breaks down would end the comparison instead of failing it."""

    class Breaks(IdentityAligner):
        def abort(self):
            raise KeyError("pending")

    refinement = ControlRefinement([AbortAll()], 1, make=Breaks)
    (broken,) = explore(refinement, (refinement.effects,)).violations
    assert broken.reason == "abort all: the table says 'nothing', the aligner raised KeyError: 'pending'"


# The table itself.


def test_no_guard_is_tied_to_what_it_is_asked_about() -> None:
    """A row that asks in another order would raise instead of answering."""
    guards = {guard for row in CONTROL.rows for guard in row.when}
    begun, _ = Upstreams(CONTROL, DATA, 2).step(Delivered(0, sync(2)))
    for upstreams in (Upstreams(CONTROL, DATA, 2), begun):
        for stimulus in SCOPES[1].stimuli:
            for guard in guards:
                assert type(guard(upstreams, stimulus)) is bool, (guard, stimulus)


def is_noticed(table) -> bool:
    """Return whether a table shows in some reachable state to be another one."""
    for scope in SCOPES:
        refinement = ControlRefinement(scope.stimuli, scope.expected, table)
        try:
            if explore(refinement, refinement.properties).verdict == "broken":
                return True
        except (TableError, AssertionError, ValueError):  # not one row, or an action where it cannot be done
            return True
    return False


def test_every_small_edit_is_noticed() -> None:
    """A row could be wrong in a way that no comparison shows. None is harmless: everything in this table matters."""
    edited = list(edits(CONTROL))
    assert len(edited) > 40
    assert [edit for edit, _, table in edited if not is_noticed(table)] == []


# The table in the place of the aligner, in whole pipelines.


class TableAligner:
    """An `impl.control.ControlAligner` that looks everything up."""

    def __init__(self, expected_upstreams, carrier) -> None:
        self.expected_upstreams, self.carrier = expected_upstreams, carrier
        self.value = Upstreams(CONTROL, carrier, expected_upstreams)

    def align(self, upstream, barrier):
        completed = self._step(Delivered(upstream, barrier), "complete")
        return completed[0] if completed else None

    def close(self, upstream):
        return self._step(Closed(upstream), "complete")

    def abort(self):
        return self._step(AbortAll(), "abort")

    def ahead(self, upstream) -> int:
        return delivered(self.value, upstream)

    def capture(self):
        return self.value

    def restore(self, value) -> None:
        self.value = value

    def _step(self, stimulus, asked: str):
        self.value, effects = self.value.step(stimulus)
        for effect in effects:
            if effect.verb == "fail":
                raise ControlSignalError(str(effect.subject), "what the table allows", "see the table")
        return tuple(effect.subject for effect in effects if effect.verb == asked)


WITH_IDENTITY = [scope for scope in SMALL if scope.states < 2_000 and "counted" not in scope.of]


@pytest.mark.parametrize("scope", WITH_IDENTITY, ids=lambda scope: scope.of)
def test_pipelines_that_go_by_the_table_are_the_same(scope: ControlScope) -> None:
    """The table would be right about an aligner alone, and not about the processors that rest on it."""
    processors = scope.bounds.make_processor
    assert isinstance(processors, Processors)
    by_the_table = replace(processors, options=processors.options | {"make_aligner": TableAligner})
    world = ControlWorld(replace(scope.bounds, make_processor=by_the_table))
    result = explore(world, properties(world))
    assert (result.verdict, result.counts.states) == ("holds", scope.states)
