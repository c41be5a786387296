"""The answers of the three barriers: sections 6 to 9, as protocol rules 27 to 33 read them."""

from __future__ import annotations

from typing import Any

import pytest

from barrierlab.impl.errors import LimitError, NoMapError, OutputOrderError, StreamIdError
from barrierlab.impl.join import (
    ClockDomain,
    InvalidMergeMap,
    JoinBarrier,
    JoinConfig,
    LatenessScope,
    LatestValueJoinBarrier,
    MapChange,
    Observed,
    Read,
    Readiness,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    TimestampJoinBarrier,
    TimestampMergeMapAnnounce,
)
from tests.join.support import (
    FRAME,
    MS,
    OUT,
    SLOT,
    S,
    at,
    at_ns,
    latest,
    numbers,
    sequence,
    times,
    timestamp,
    window,
    window_ns,
)

MAX = 2**64 - 1
READY, WAITING, DEGRADED = Readiness.READY, Readiness.WAITING, Readiness.DEGRADED


def told(barrier: JoinBarrier, stream: int, value: Any, now: int = 0, epoch: int = 1) -> Observed:
    """An observation of whatever kind the barrier goes by."""
    if isinstance(barrier, TimestampJoinBarrier):
        return barrier.observe_time(stream, epoch, FRAME, value, now)
    assert isinstance(barrier, SequenceJoinBarrier | LatestValueJoinBarrier)
    return barrier.observe(stream, epoch, value, now)


BOTH = pytest.mark.parametrize(
    ("make", "said"),
    [(sequence, numbers(at(1), at(2))), (timestamp, times(at_ns(1), at_ns(2)))],
    ids=["sequence", "timestamp"],
)
ALL = pytest.mark.parametrize(
    ("make", "said"),
    [
        (sequence, numbers(at(1), at(2))),
        (timestamp, times(at_ns(1), at_ns(2))),
        (latest, numbers(at(1), at(2))),
    ],
    ids=["sequence", "timestamp", "latest"],
)

# Rule 27: what was not observed, and numbers at their ends.


@ALL
def test_nothing_is_ready_of_what_was_not_observed(make: Any, said: Any) -> None:
    """Output 0 would be made of nothing, as a cursor that begins at 0 says (defect J-01)."""
    barrier = make(said)
    assert barrier.ready(0, 0) is WAITING
    told(barrier, 1, 0)
    assert (barrier.ready(0, 0), barrier.missing(0, 0)) == (WAITING, (2,))
    told(barrier, 2, 0)
    assert barrier.ready(0, 0) is READY


def test_lateness_does_not_make_nothing_ready() -> None:
    """At 3 s, less 5 s, nothing at all would be enough (defect J-01)."""
    barrier = timestamp(times(at_ns(1), late=5 * S))
    assert barrier.ready(3 * S, 0) is WAITING
    told(barrier, 1, 0)
    assert barrier.ready(3 * S, 0) is READY


@pytest.mark.parametrize(("offset", "possible"), [(1, MAX - 1), (2**31 - 1, MAX - 2**31 + 1)])
def test_a_sum_that_does_not_fit_is_not_ready(offset: int, possible: int) -> None:
    """It would wrap round to 0, which everybody has (defect J-17)."""
    barrier = sequence(numbers(at(1, offset)))
    assert told(barrier, 1, MAX - 1) is Observed.TAKEN
    assert barrier.ready(possible - 1, 0) is READY
    assert barrier.ready(possible, 0) is WAITING  # it needs MAX, which stands for null
    assert barrier.is_possible(possible)
    for out in (possible + 1, MAX):
        assert barrier.ready(out, 0) is WAITING
        assert not barrier.is_possible(out)


def test_a_time_that_does_not_fit_is_not_ready_for_all_the_lateness() -> None:
    """The requirement would fit again once the lateness is taken off it."""
    barrier = timestamp(times(at_ns(1, 5), late=100))
    told(barrier, 1, MAX - 1)
    assert barrier.ready(MAX - 5, 0) is READY
    assert barrier.ready(MAX - 4, 0) is WAITING


@pytest.mark.parametrize(
    ("barrier", "first"),
    [
        (sequence(numbers(at(1, -3))), 3),
        (sequence(numbers(window(1, 5))), 4),
        (timestamp(times(at_ns(1, -3))), 3),
        (timestamp(times(window_ns(1, 5))), 5),
        (timestamp(times(window_ns(1, 5), late=5)), 5),
    ],
)
def test_before_the_first_output_nothing_is_ready(barrier: JoinBarrier, first: int) -> None:
    """A rule would ask for a number below 0, or a window reach below it (sections 6.2, 6.3)."""
    told(barrier, 1, 1000)
    assert [barrier.ready(out, 0) for out in (0, first - 1, first)] == [WAITING, WAITING, READY]
    assert [barrier.is_possible(out) for out in (0, first - 1, first)] == [False, False, True]


@ALL
def test_what_stands_for_null_is_no_value(make: Any, said: Any) -> None:
    """One null would be more than everything, and each frame after it a step back (defect J-17)."""
    barrier = make(said)
    assert told(barrier, 1, MAX) is Observed.NULL
    assert barrier.missing(0, 0) == (1, 2)
    assert told(barrier, 1, 7) is Observed.TAKEN
    assert told(barrier, 1, MAX) is Observed.NULL
    assert told(barrier, 1, 8) is Observed.TAKEN
    with pytest.raises(LimitError):
        told(barrier, 1, MAX + 1)
    with pytest.raises(LimitError):
        told(barrier, 1, -1)
    assert told(barrier, 1, 9) is Observed.TAKEN


def test_a_frame_without_a_timestamp_makes_nothing_ready() -> None:
    """Section 8.2: an absent timestamp is not ready. It belongs to its epoch all the same."""
    barrier = timestamp(times(at_ns(1, 0, SLOT)))
    assert barrier.observe_time(1, 1, SLOT, None, 0) is Observed.NULL
    assert barrier.ready(0, 0) is WAITING
    barrier.observe_time(1, 1, SLOT, 50, 0)
    assert barrier.observe_time(1, 1, SLOT, None, 0) is Observed.NULL
    assert barrier.ready(50, 0) is READY
    assert barrier.observe_time(1, 2, SLOT, None, 0) is Observed.NULL
    assert barrier.ready(50, 0) is WAITING  # the stream has restarted


@ALL
@pytest.mark.parametrize("out", [-1, MAX + 1])
def test_an_output_out_of_range_is_a_slip_of_the_driver(make: Any, said: Any, out: int) -> None:
    """It would be answered with waiting, for ever."""
    barrier = make(said)
    with pytest.raises(LimitError, match="output"):
        barrier.ready(out, 0)


# Rules 28, 31 and 33: maps and epochs.


@ALL
def test_without_a_map_all_is_blocked(make: Any, said: Any) -> None:
    """Section 7.3: a late joiner would make outputs by no rule. What it sees before the map is of no input."""
    barrier = make() if make is not latest else latest()
    assert told(barrier, 1, 5) is Observed.NOT_AN_INPUT
    assert barrier.ready(0, 0) is Readiness.NO_MAP
    assert (barrier.missing(0, 0), barrier.absent(0, 0), barrier.reads(0, 0)) == ((), (), ())
    assert barrier.announce(said, 0) is MapChange.APPLIED
    assert barrier.ready(0, 0) is WAITING
    with pytest.raises(NoMapError):
        (make() if make is not latest else latest()).accept(0)


@ALL
def test_the_same_map_again_changes_nothing(make: Any, said: Any) -> None:
    """Readiness would flap with each re-announce (defect J-13), and stale clocks start again."""
    barrier = make(said)
    for stream in (1, 2):
        told(barrier, stream, 5)
    before = barrier.capture()
    assert barrier.announce(said, 10 * S) is MapChange.UNCHANGED
    assert barrier.capture() == before
    assert barrier.ready(5, 0) is READY


@BOTH
def test_another_map_of_the_epoch_replaces_it(make: Any, said: Any) -> None:
    """Section 6.4: the new rules count at once. What was observed of an input that stays is still true."""
    barrier = make(said)
    for stream in (1, 2):
        told(barrier, stream, 5)
    barrier.accept(3)
    third = at(3) if make is sequence else at_ns(3)
    changed = (numbers if make is sequence else times)(said.rules[0], third)
    assert barrier.announce(changed, 0) is MapChange.APPLIED
    assert (barrier.ready(5, 0), barrier.missing(5, 0)) == (WAITING, (3,))
    assert told(barrier, 2, 9) is Observed.NOT_AN_INPUT
    told(barrier, 3, 5)
    assert barrier.ready(5, 0) is READY
    assert barrier.ready(2, 0) is Readiness.PASSED
    assert barrier.announce(said, 0) is MapChange.APPLIED  # the wire has no revision: a delayed one is believed
    assert barrier.missing(5, 0) == (2,)


@ALL
def test_a_newer_epoch_of_the_output_needs_new_observations(make: Any, said: Any) -> None:
    """Outputs count from the start again; what was seen of the inputs before would make them all ready at once."""
    barrier = make(said)
    for stream in (1, 2):
        told(barrier, stream, 700, epoch=4)
    barrier.accept(600)
    newer = type(said)(**{name: getattr(said, name) for name in said.__dataclass_fields__} | {"epoch": 2})
    assert barrier.begin_epoch(2)
    assert barrier.ready(0, 0) is Readiness.NO_MAP
    assert barrier.announce(said, 0) is MapChange.OLDER_EPOCH
    assert barrier.announce(newer, 0) is MapChange.APPLIED
    assert (barrier.ready(0, 0), barrier.missing(0, 0)) == (WAITING, (1, 2))
    assert told(barrier, 1, 701, epoch=3) is Observed.OLDER_EPOCH  # the input's epoch is its own, and is kept
    for stream in (1, 2):
        told(barrier, stream, 701, epoch=4)
    assert barrier.ready(0, 0) is READY
    barrier.accept(0)
    assert not barrier.begin_epoch(2)
    assert not barrier.begin_epoch(1)
    assert barrier.last_out == 0


@ALL
def test_a_map_of_a_newer_epoch_takes_it_along(make: Any, said: Any) -> None:
    """A joiner that missed the change of epoch would ignore every map from then on."""
    barrier = make(said)
    newer = type(said)(**{name: getattr(said, name) for name in said.__dataclass_fields__} | {"epoch": 7})
    assert barrier.announce(newer, 0) is MapChange.APPLIED
    assert (barrier.epoch, barrier.active) == (7, newer)
    assert barrier.announce(said, 0) is MapChange.OLDER_EPOCH
    assert barrier.active == newer


def invalid(kind: Any, out: int, epoch: int) -> InvalidMergeMap:
    """An announce that was none."""
    return InvalidMergeMap(kind, out, epoch, "two rules for stream 1")


@BOTH
def test_an_invalid_announce_blocks_its_own_output_and_epoch_alone(make: Any, said: Any) -> None:
    """A peer's slip would stop a join that it has nothing to do with, or not stop the one that it has (J-13)."""
    barrier = make(said)
    kinds = (SequenceMergeMapAnnounce, TimestampMergeMapAnnounce)
    mine, other = kinds if make is sequence else kinds[::-1]
    for stream in (1, 2):
        told(barrier, stream, 5)
    for bad, change in (
        (invalid(other, OUT, 1), MapChange.OTHER_KIND),
        (invalid(mine, OUT + 1, 1), MapChange.OTHER_OUTPUT),
        (invalid(mine, OUT, 2), MapChange.NOT_IN_FORCE),
        (invalid(mine, OUT, 0), MapChange.NOT_IN_FORCE),
    ):
        assert barrier.announce_invalid(bad) is change
        assert barrier.ready(5, 0) is READY
    assert barrier.announce_invalid(invalid(mine, OUT, 1)) is MapChange.INVALIDATED
    assert barrier.ready(5, 0) is Readiness.NO_MAP
    assert barrier.announce_invalid(invalid(mine, OUT, 1)) is MapChange.NOT_IN_FORCE
    told(barrier, 1, 6)
    assert barrier.announce(said, 0) is MapChange.APPLIED
    assert barrier.ready(5, 0) is READY
    assert barrier.missing(6, 0) == (2,)


def test_maps_of_both_kinds_live_side_by_side() -> None:
    """The later one would erase the one that the configured barrier goes by (rule 33; defect J-26)."""
    by_number, by_time = numbers(at(1)), times(at_ns(1))
    for barrier, mine, other in (
        (sequence(by_number), by_number, by_time),
        (timestamp(by_time), by_time, by_number),
        (latest(by_number), by_number, by_time),
        (latest(by_time), by_time, by_number),
    ):
        assert barrier.announce(other, 0) is MapChange.OTHER_KIND
        assert barrier.active == mine
    external = SequenceMergeMapAnnounce(OUT + 1, 9, (at(1),))
    assert sequence(by_number).announce(external, 0) is MapChange.OTHER_OUTPUT


def test_a_known_epoch_is_required_of_the_first_map() -> None:
    """A map of before the join's own epoch would count (section 6.4)."""
    barrier = sequence(epoch=5)
    assert barrier.announce(numbers(at(1), epoch=4), 0) is MapChange.OLDER_EPOCH
    assert barrier.ready(0, 0) is Readiness.NO_MAP
    assert barrier.announce(numbers(at(1), epoch=5), 0) is MapChange.APPLIED
    with pytest.raises(LimitError, match="epoch"):
        JoinConfig(OUT, epoch=-1)
    with pytest.raises(LimitError, match="epoch"):
        barrier.begin_epoch(MAX)


@ALL
def test_an_input_that_begins_anew_is_unobserved(make: Any, said: Any) -> None:
    """A restarted camera's frame 0 would count as its frame 12034 of before (rule 31; defect J-05)."""
    barrier = make(said)
    for stream in (1, 2):
        told(barrier, stream, 12034, epoch=1)
    told(barrier, 2, 0, epoch=2)
    assert barrier.epoch_of(2) == 2
    if make is not latest:
        assert barrier.missing(12034, 0) == (2,)
    assert told(barrier, 2, 12035, epoch=1) is Observed.OLDER_EPOCH
    assert barrier.ready(0, 0) is READY
    reads = barrier.reads(0, 0)
    assert [(read.stream_id, read.epoch) for read in reads] == [(1, 1), (2, 2)]
    assert barrier.epoch_of(3) is None
    with pytest.raises(LimitError, match="epoch"):
        told(barrier, 2, 1, epoch=MAX)


def test_both_sources_of_a_stream_begin_anew_together() -> None:
    """The slot header's time of the old epoch would stand beside the descriptor's of the new one."""
    barrier = timestamp(times(at_ns(1), at_ns(1, 0, SLOT)))
    barrier.observe_time(1, 1, FRAME, 100, 0)
    barrier.observe_time(1, 1, SLOT, 100, 0)
    assert barrier.ready(100, 0) is READY
    barrier.observe_time(1, 2, FRAME, 100, 0)
    assert barrier.ready(100, 0) is WAITING
    barrier.observe_time(1, 2, SLOT, 100, 0)
    assert barrier.ready(100, 0) is READY


# Rule 29: readiness to the letter.


def test_lateness_is_map_wide_and_the_other_reading_has_a_name() -> None:
    """Section 8.1 takes it off the camera's requirement too, example A.4.2 does not (defect J-06)."""
    said = times(at_ns(1), window_ns(2, 10 * MS), late=10 * MS)
    answers = {}
    for scope in LatenessScope:
        barrier = timestamp(said, lateness_scope=scope)
        told(barrier, 1, 91 * MS)
        told(barrier, 2, 90 * MS)
        answers[scope.value] = barrier.ready(100 * MS, 0), barrier.missing(100 * MS, 0)
    assert answers == {"map": (READY, ()), "windows": (WAITING, (1,))}


@BOTH
def test_processed_cursors_gate_where_that_is_configured(make: Any, said: Any) -> None:
    """The join would go ahead of the stage before it (sections 7.1, 8.1)."""
    barrier = make(said, use_processed=True)
    free = make(said)

    def process(it: Any, stream: int, value: int, epoch: int = 1) -> Observed:
        if make is sequence:
            return it.process(stream, epoch, value)
        return it.process_time(stream, epoch, FRAME, value)

    for it in (barrier, free):
        assert process(it, 1, 3) is Observed.TAKEN  # before its observation, as the two come on different ways
        told(it, 1, 5)
        told(it, 2, 5)
        assert process(it, 2, 9) is Observed.TAKEN
        assert process(it, 2, 8) is Observed.BEHIND
        assert process(it, 3, 9) is Observed.NOT_AN_INPUT
        assert process(it, 2, 9, epoch=0) is Observed.OLDER_EPOCH
    assert (barrier.missing(5, 0), free.ready(5, 0)) == ((1,), READY)
    assert barrier.ready(3, 0) is READY
    process(barrier, 1, 5)
    assert barrier.ready(5, 0) is READY
    told(barrier, 1, 6)
    told(barrier, 2, 6)
    assert barrier.missing(6, 0) == (1,)
    process(barrier, 1, 2, epoch=2)
    assert barrier.missing(2, 0) == (1,)
    told(barrier, 1, 2, epoch=2)
    assert barrier.ready(2, 0) is READY


def test_a_cursor_does_not_go_back() -> None:
    """A descriptor that comes late would take readiness away again."""
    barrier = sequence(numbers(at(1)))
    told(barrier, 1, 8)
    assert told(barrier, 1, 7) is Observed.BEHIND
    assert told(barrier, 1, 8) is Observed.BEHIND
    assert barrier.ready(8, 0) is READY


def test_what_is_read_is_what_the_rules_name() -> None:
    """The attempt would look for other frames than the gate waited for."""
    barrier = sequence(numbers(at(1, -2), window(2, 5), at(3, 4)))
    for stream in (1, 2, 3):
        told(barrier, stream, 50, epoch=stream)
    assert barrier.reads(40, 0) == (Read(1, 1, None, 38, 38), Read(2, 2, None, 36, 40), Read(3, 3, None, 44, 44))
    by_time = timestamp(times(at_ns(1, -2), window_ns(2, 5), late=4))
    for stream in (1, 2):
        told(by_time, stream, 50)
    assert by_time.reads(40, 0) == (Read(1, 1, FRAME, 0, 38), Read(2, 1, FRAME, 35, 40))
    newest = latest(times(at_ns(1), at_ns(2, 0, SLOT)), by_timestamp=True)
    newest.observe_time(1, 1, FRAME, 7, 0)
    newest.observe_time(2, 1, SLOT, 3, 0)
    assert newest.reads(40, 0) == (Read(1, 1, FRAME, 7, 7), Read(2, 1, SLOT, 3, 3))


# Section 8.2: sources, order and clocks.


def test_a_stream_whose_times_go_back_is_rejected_for_its_epoch() -> None:
    """It would stall the join or misorder it; one bad frame is not to cost it for ever either (defect J-15)."""
    barrier = timestamp(times(at_ns(1), at_ns(2)))
    for stream in (1, 2):
        told(barrier, stream, 200)
    assert told(barrier, 1, 200) is Observed.TAKEN  # monotonic, not strictly
    assert told(barrier, 1, 199) is Observed.REJECTED
    for value in (300, 400):
        assert told(barrier, 1, value) is Observed.REJECTED
    assert (barrier.ready(0, 0), barrier.missing(200, 0)) == (WAITING, (1,))
    assert barrier.process_time(1, 1, FRAME, 400) is Observed.REJECTED
    assert told(barrier, 1, 100, epoch=2) is Observed.TAKEN
    assert barrier.ready(100, 0) is READY
    told(barrier, 1, 50, epoch=2)
    assert barrier.begin_epoch(2)
    barrier.announce(times(at_ns(1), at_ns(2), epoch=2), 0)
    assert told(barrier, 1, 60, epoch=2) is Observed.TAKEN


def test_a_rejected_stream_becomes_stale() -> None:
    """A staleness policy would not help against the input that needs it most: its frames do not count."""
    barrier = timestamp(times(at_ns(1), at_ns(2), stale=10))
    told(barrier, 1, 200, now=0)
    told(barrier, 1, 100, now=5)
    told(barrier, 1, 300, now=9)
    told(barrier, 2, 300, now=11)
    assert (barrier.ready(300, 11), barrier.absent(300, 11)) == (DEGRADED, (1,))


def test_clocks_that_are_known_to_differ_reject_the_join() -> None:
    """Times of two clocks would be compared (section 8.2). Rules do not say theirs, so it is set (defect J-16)."""
    barrier = timestamp(times(at_ns(1), at_ns(2)))
    for stream in (1, 2):
        told(barrier, stream, 200)
    barrier.declare_clock(1, ClockDomain.MONOTONIC)
    barrier.declare_clock(3, ClockDomain.REALTIME_SYNCED)  # no input
    assert barrier.ready(200, 0) is READY
    barrier.declare_clock(2, ClockDomain.REALTIME_SYNCED)
    assert barrier.ready(200, 0) is Readiness.CLOCKS_DIFFER
    assert not Readiness.CLOCKS_DIFFER.may_attempt
    barrier.declare_clock(2, ClockDomain.MONOTONIC)
    assert barrier.ready(200, 0) is READY
    mine = timestamp(times(at_ns(1)), clock_domain=ClockDomain.REALTIME_SYNCED)
    told(mine, 1, 200)
    assert mine.ready(200, 0) is Readiness.CLOCKS_DIFFER
    mine.announce(times(at_ns(1), clock=ClockDomain.REALTIME_SYNCED), 0)
    assert mine.ready(200, 0) is READY
    by_number = sequence(numbers(at(1)), clock_domain=ClockDomain.REALTIME_SYNCED)
    told(by_number, 1, 1)
    assert by_number.ready(1, 0) is READY
    with pytest.raises(StreamIdError):
        barrier.declare_clock(0, ClockDomain.MONOTONIC)


# Rule 30: order of outputs.


@ALL
def test_asking_is_free(make: Any, said: Any) -> None:
    """Output 10 asked for too early would forbid output 9 for good (defect J-14)."""
    barrier = make(said)
    for stream in (1, 2):
        told(barrier, stream, 9)
    before = barrier.capture()
    for out in (10, 9, 3, 1000, 3):
        barrier.ready(out, 0)
    assert barrier.capture() == before
    assert barrier.ready(9, 0) is READY


@pytest.mark.parametrize(
    ("barrier", "again"),
    [
        (sequence(numbers(at(1))), False),
        (latest(numbers(at(1))), False),
        (timestamp(times(at_ns(1))), True),
    ],
)
def test_outputs_come_in_order(barrier: JoinBarrier, again: bool) -> None:
    """Two outputs would change places, or one come twice where it may not (rule 30)."""
    told(barrier, 1, 50)
    barrier.accept(5)
    assert (barrier.ready(5, 0) is READY) is again
    if again:
        barrier.accept(5)
    else:
        with pytest.raises(OutputOrderError, match="output 5 accepted after 5; allowed: more than 5"):
            barrier.accept(5)
    assert barrier.ready(4, 0) is Readiness.PASSED
    with pytest.raises(OutputOrderError, match="output 4 accepted after 5"):
        barrier.accept(4)
    with pytest.raises(LimitError):
        barrier.accept(MAX + 1)
    with pytest.raises(OutputOrderError):
        barrier.accept(-1)
    barrier.accept(MAX)
    assert barrier.last_out == MAX


# Rule 32: staleness.


@ALL
def test_an_input_is_stale_when_longer_silent_than_the_timeout(make: Any, said: Any) -> None:
    """Section 7.4: "exceeds". It is named; the other one is there."""
    stale = type(said)(**{n: getattr(said, n) for n in said.__dataclass_fields__} | {"stale_timeout_ns": 10})
    barrier = make(stale)
    told(barrier, 1, 5, now=3)
    told(barrier, 2, 4, now=3)
    told(barrier, 1, 6, now=13)
    assert barrier.ready(6, 13) is (READY if make is latest else WAITING)
    assert barrier.ready(6, 14) is DEGRADED
    assert DEGRADED.may_attempt
    assert (barrier.absent(6, 14), barrier.missing(6, 14)) == ((2,), ())
    assert [read.stream_id for read in barrier.reads(6, 14)] == [1]
    told(barrier, 2, 6, now=14)
    assert (barrier.ready(6, 14), barrier.absent(6, 14)) == (READY, ())


@ALL
def test_an_input_that_was_never_seen_is_stale_in_time(make: Any, said: Any) -> None:
    """It would block for ever though the policy is there for dead inputs: its clock starts with the map (J-11)."""
    stale = type(said)(**{n: getattr(said, n) for n in said.__dataclass_fields__} | {"stale_timeout_ns": 10})
    barrier = make(stale, 100)
    told(barrier, 1, 5, now=108)
    assert barrier.ready(5, 110) is WAITING
    assert barrier.next_deadline_ns(5, 110) == 111
    assert (barrier.ready(5, 111), barrier.absent(5, 111)) == (DEGRADED, (2,))
    assert barrier.next_deadline_ns(5, 111) is None


@ALL
def test_one_input_at_least_must_be_live(make: Any, said: Any) -> None:
    """An output would be made of nothing: "all inputs that are not stale" is all of none (defect J-11)."""
    stale = type(said)(**{n: getattr(said, n) for n in said.__dataclass_fields__} | {"stale_timeout_ns": 10})
    barrier = make(stale)
    told(barrier, 1, 5, now=0)
    assert barrier.ready(9, 11) is Readiness.NO_LIVE_INPUT
    assert barrier.absent(9, 11) == (1, 2)
    assert barrier.reads(9, 11) == ()


@ALL
def test_without_a_timeout_a_missing_input_blocks(make: Any, said: Any) -> None:
    """Section 7.4: the default is deterministic."""
    barrier = make(said)
    told(barrier, 1, 5)
    assert barrier.ready(5, MAX) is WAITING
    assert barrier.next_deadline_ns(5, 0) is None


def test_a_clock_that_goes_back_makes_nothing_stale() -> None:
    """In 64 bits the difference would wrap round to five hundred years (defect J-17)."""
    barrier = sequence(numbers(at(1), at(2), stale=10), 1000)
    told(barrier, 1, 5, now=1000)
    assert barrier.ready(5, 0) is WAITING


def test_what_does_not_advance_does_not_refresh() -> None:
    """A camera that repeats its last frame would never count as stopped (section 7.4: "stops advancing")."""
    barrier = sequence(numbers(at(1), at(2), stale=10))
    told(barrier, 1, 5, now=0)
    told(barrier, 1, 5, now=9)
    told(barrier, 2, 6, now=9)
    assert (barrier.ready(6, 11), barrier.absent(6, 11)) == (DEGRADED, (1,))


def test_a_stale_input_that_has_what_is_needed_is_not_absent() -> None:
    """Frames that are there would be left out, because their stream was faster than the others and then ended."""
    barrier = sequence(numbers(at(1), at(2), stale=10))
    told(barrier, 1, 100, now=0)
    told(barrier, 2, 6, now=50)
    assert (barrier.ready(6, 50), barrier.absent(6, 50)) == (READY, ())


# Section 9: the latest value.


def test_the_latest_value_ignores_what_rules_say() -> None:
    """Section 9.1: parameters do not count, and nothing is aligned."""
    barrier = latest(numbers(at(1, -5), window(2, 100)))
    told(barrier, 1, 0)
    told(barrier, 2, 77)
    assert barrier.ready(0, 0) is READY
    assert [(read.first, read.last) for read in barrier.reads(0, 0)] == [(0, 0), (77, 77)]


def test_a_frame_that_could_not_be_read_costs_its_tick_alone() -> None:
    """Section 9.1: that input is absent for the tick, which is not ready; a later one tries again."""
    barrier = latest(numbers(at(1), at(2)))
    told(barrier, 1, 5)
    told(barrier, 2, 5)
    assert barrier.ready(8, 0) is READY
    barrier.fail(2, 8)
    barrier.fail(77, 8)
    assert (barrier.ready(8, 0), barrier.missing(8, 0)) == (WAITING, (2,))
    assert barrier.ready(9, 0) is READY


def test_the_newest_by_time_may_not_be_the_newest_by_number() -> None:
    """Section 9.2: by one of them, the same for all inputs; of equal times the last one is the newest."""
    by_time = latest(times(at_ns(1, 0, SLOT)), by_timestamp=True)
    assert by_time.observe_time(1, 1, FRAME, 99, 0) is Observed.NOT_AN_INPUT
    assert by_time.observe_time(1, 1, SLOT, 50, 0) is Observed.TAKEN
    assert by_time.observe_time(1, 1, SLOT, 40, 0) is Observed.BEHIND  # reordered, and not rejected: nothing is aligned
    assert by_time.observe_time(1, 1, SLOT, 50, 3) is Observed.TAKEN
    assert by_time.observe_time(1, 1, SLOT, None, 3) is Observed.NULL
    assert by_time.reads(0, 0)[0].last == 50
    by_number = latest(times(at_ns(1), at_ns(1, 0, SLOT)))
    assert by_number.observe(1, 1, 3, 0) is Observed.TAKEN
    assert by_number.observe_time(1, 1, FRAME, 50, 0) is Observed.NOT_AN_INPUT
    assert len(by_number.reads(0, 0)) == 1


def test_what_makes_no_sense_with_the_latest_value_is_refused() -> None:
    """It would be configured, and have no effect."""
    with pytest.raises(LimitError, match="by_timestamp"):
        LatestValueJoinBarrier(JoinConfig(OUT), SequenceMergeMapAnnounce, by_timestamp=True)
    with pytest.raises(LimitError, match="use_processed"):
        LatestValueJoinBarrier(JoinConfig(OUT, use_processed=True))


def test_a_changed_map_changes_the_inputs_of_the_latest_value() -> None:
    """Section 6.4 names the other two barriers only; this one takes its inputs from the same map (defect J-22)."""
    barrier = latest(numbers(at(1), at(2)))
    told(barrier, 1, 5)
    told(barrier, 2, 5)
    barrier.announce(numbers(at(1), at(3)), 0)
    assert (barrier.ready(0, 0), barrier.missing(0, 0)) == (WAITING, (3,))


# As a value.


@ALL
def test_a_barrier_is_restored_as_it_was(make: Any, said: Any) -> None:
    """An exploration would go on from another state than it came to."""
    stale = type(said)(**{n: getattr(said, n) for n in said.__dataclass_fields__} | {"stale_timeout_ns": 10})
    barrier = make(stale)
    told(barrier, 1, 5, now=1)
    told(barrier, 2, 7, now=2, epoch=3)
    barrier.accept(4)
    barrier.declare_clock(1, ClockDomain.MONOTONIC)
    other = type(barrier)(barrier.config)
    other.restore(barrier.capture())
    assert other.capture() == barrier.capture()
    hash(barrier.capture())
    for it in (barrier, other):
        told(it, 1, 8, now=20)
        assert (it.ready(8, 21), it.absent(8, 21), it.ready(4, 21)) == (DEGRADED, (2,), it.ready(4, 21))
        assert it.last_out == 4


# What breaking the code on purpose found to be untested.


def test_a_changed_map_gives_an_unseen_input_its_time_again() -> None:
    """It would be absent at once under a map that has only just come (rule 32: the clock starts with the map)."""
    barrier = sequence(numbers(at(1), at(2), stale=10))
    barrier.announce(numbers(at(1), at(2, -1), stale=10), 100)
    told(barrier, 1, 5, now=105)
    assert barrier.ready(5, 110) is WAITING
    assert (barrier.ready(5, 111), barrier.absent(5, 111)) == (DEGRADED, (2,))


def test_a_stream_keeps_its_epoch_when_its_rule_changes_the_source() -> None:
    """A delayed frame of before its restart would count again."""
    barrier = timestamp(times(at_ns(1)))
    told(barrier, 1, 50, epoch=2)
    barrier.announce(times(at_ns(1, 0, SLOT)), 0)
    assert barrier.observe_time(1, 1, SLOT, 90, 0) is Observed.OLDER_EPOCH
    assert barrier.observe_time(1, 2, SLOT, 90, 0) is Observed.TAKEN


def test_a_stream_keeps_its_epoch_while_it_is_no_input() -> None:
    """As above: a map without the stream comes in between."""
    barrier = sequence(numbers(at(1), at(2)))
    assert barrier.observe(2, 2, 5, 0) is Observed.TAKEN
    barrier.announce(numbers(at(1)), 0)
    barrier.announce(numbers(at(1), at(2)), 0)
    assert barrier.observe(2, 1, 9, 0) is Observed.OLDER_EPOCH
    assert barrier.observe(2, 2, 0, 0) is Observed.TAKEN


def test_an_overrun_goes_on_within_what_is_there() -> None:
    """Outputs that could be made would be skipped for a margin that there is no room for."""
    barrier = sequence(numbers(at(1), at(2, -2)))
    assert barrier.after_overrun({1: 8, 2: 8}) == 0
    for stream, seen in ((1, 100), (2, 90)):
        told(barrier, stream, seen)
    assert barrier.after_overrun({}) == 0
    assert barrier.after_overrun({2: 8}) == 85
    assert [barrier.after_overrun({1: 8, 2: 12}, margin=m) for m in (0, 1, 5)] == [92, 92, 92]  # 92 is the newest of 2
    assert [barrier.after_overrun({1: 16, 2: 16}, margin=m) for m in (0, 3, 50)] == [85, 88, 92]
    assert [barrier.after_overrun({1: 8, 2: 8}, False, margin=m) for m in (0, 3, 50)] == [85, 88, 100]
