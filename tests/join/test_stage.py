"""The work of a stage around a barrier: which output is next, and what a failed attempt becomes."""

from __future__ import annotations

from typing import Any

import pytest

from barrierlab.impl.errors import LimitError, NoMapError
from barrierlab.impl.join import (
    InvalidMergeMap,
    Joined,
    JoinStage,
    MapChange,
    Miss,
    OnFailure,
    PendingPolicy,
    Readiness,
    SequenceMergeMapAnnounce,
    Skipped,
    SkipReason,
    StageConfig,
)
from tests.join.support import (
    OUT,
    at,
    at_ns,
    feed,
    frame,
    holds,
    latest,
    numbers,
    outputs,
    sequence,
    skipped,
    times,
    timestamp,
    window,
    window_ns,
    world,
)


def test_a_dropped_frame_skips_its_output_and_no_other() -> None:
    """Ready says only that an attempt may be made: 8 is observed, so 7 is ready, and 7 never was (defect J-02)."""
    it = world(sequence(numbers(at(1), at(2))), slots=16)
    for n in range(10):
        feed(it, frame(1, n), n)
        if n != 7:
            feed(it, frame(2, n), n)
    it.run(10)
    assert [out for out, _, _ in outputs(it)] == [0, 1, 2, 3, 4, 5, 6, 8, 9]
    assert it.outcomes[7] == Skipped(7, 7, SkipReason.FAILED, ((2, Miss.MISSING),))
    assert holds(it)


def test_or_it_goes_without() -> None:
    """With `on_failure = absent` the other inputs come out, and who is missing is named (section 7.4)."""
    it = world(sequence(numbers(at(1), at(2))), slots=16, on_failure=OnFailure.ABSENT)
    for n in range(3):
        feed(it, frame(1, n), n)
        if n != 1:
            feed(it, frame(2, n), n)
    it.run(3)
    assert outputs(it) == [(0, (0, 0), ()), (1, (1,), (2,)), (2, (2, 2), ())]
    assert holds(it)


def test_an_output_of_nothing_is_skipped_even_so() -> None:
    """It would be a line without a column."""
    it = world(sequence(numbers(at(1), at(2))), slots=16, on_failure=OnFailure.ABSENT)
    for stream in (1, 2):
        for n in (0, 2):
            feed(it, frame(stream, n), n)
    it.run(3)
    assert outputs(it) == [(0, (0, 0), ()), (2, (2, 2), ())]
    assert skipped(it) == [(1, 1, "failed")]
    assert holds(it)


def test_an_overrun_stage_goes_on_where_there_are_slots() -> None:
    """One by one it would try what is gone, while as much again is overwritten (defect J-21)."""
    it = world(sequence(numbers(at(1), at(2, -2))), slots=8)
    for n in range(1000):
        for stream in (1, 2):
            feed(it, frame(stream, n), n)
    it.run(1000)
    assert skipped(it) == [
        (2, 993, "failed")
    ]  # 994 - 2 is the oldest of stream 2, and 994 one of the eight of stream 1
    assert [out for out, _, _ in outputs(it)] == list(range(994, 1000))
    assert holds(it)


def test_a_stage_that_is_always_too_slow_still_gets_some() -> None:
    """The oldest slot is the next to be overwritten: a stage that goes back there each time reads nothing, ever."""
    it = world(sequence(numbers(at(1))), slots=16)
    seq = 0
    for _ in range(300):
        for _ in range(3):  # three frames while it reads one
            feed(it, frame(1, seq), seq)
            seq += 1
        if it.stage.attempt is not None:
            it.end(seq)
        it.try_next(seq)
    assert 50 < len(outputs(it)) < 150
    assert holds(it)


def test_a_frame_that_was_dropped_is_no_overrun() -> None:
    """After overruns a stage would skip outputs all of whose frames are there, for a frame that never came."""
    it = world(sequence(numbers(at(1))), slots=4)
    for seqs in ((0, 1, 2, 3, 4), (5, 6), (8,)):
        for seq in seqs:
            feed(it, frame(1, seq), seq)
        assert it.try_next(0)
        it.end(0)
    feed(it, frame(1, 9), 9)
    feed(it, frame(1, 10), 10)
    it.run(10)
    assert skipped(it) == [(0, 0, "failed"), (1, 3, "failed"), (4, 6, "failed"), (7, 7, "failed")]
    assert [out for out, _, _ in outputs(it)] == [8, 9, 10]
    assert holds(it)


def test_an_overrun_stage_that_goes_without_keeps_what_is_half_there() -> None:
    """Skipping to where all is there would lose outputs that one input still has."""
    it = world(sequence(numbers(at(1), at(2, -2))), slots=8, on_failure=OnFailure.ABSENT)
    for n in range(100):
        for stream in (1, 2):
            feed(it, frame(stream, n), n)
    it.run(100)
    assert skipped(it) == [(2, 91, "failed")]
    assert outputs(it)[0] == (92, (92,), (2,))
    assert holds(it)


def test_a_late_joiner_begins_where_there_are_slots() -> None:
    """It would try every output since the stream began (section 7.3)."""
    it = world(sequence(), slots=8)
    for n in range(500):
        feed(it, frame(1, n), n)
    it.run(500)
    assert it.outcomes == []
    it.announce(numbers(at(1)), 501)
    feed(it, frame(1, 500), 502)
    it.run(502)
    assert skipped(it) == [(0, 492, "failed")]
    assert [out for out, _, _ in outputs(it)] == list(range(493, 501))
    assert holds(it)


def test_a_new_epoch_counts_from_the_start() -> None:
    """Its first outputs would be taken for old ones."""
    it = world(sequence(numbers(at(1))), slots=8)
    for n in range(5):
        feed(it, frame(1, n), n)
    it.run(5)
    it.begin_epoch(2, 6)
    assert it.stage.poll(6) is Readiness.NO_MAP
    it.announce(numbers(at(1, -1), epoch=2), 7)
    feed(it, frame(1, 0, epoch=2), 8)
    feed(it, frame(1, 1, epoch=2), 8)
    it.run(8)
    assert outputs(it)[5:] == [(1, (0,), ()), (2, (1,), ())]
    assert holds(it)


@pytest.mark.parametrize("make", [sequence, timestamp], ids=["sequence", "timestamp"])
def test_a_map_that_changes_during_an_attempt_makes_it_void(make: Any) -> None:
    """An output would come out by rules that are not in force any more (section 6.4)."""
    said = numbers(at(1)) if make is sequence else times(at_ns(1))
    it = world(make(said), slots=8)
    feed(it, frame(1, 0, 0), 0)
    it.offer(0, 0) if make is timestamp else None
    assert it.try_next(0)
    assert it.announce(InvalidMergeMap(type(said), OUT, 1, "no rules"), 1) is MapChange.INVALIDATED
    assert it.end(2) == Skipped(0, 0, SkipReason.MAP_CHANGED)
    assert it.run(2) == []
    it.announce(said, 3)
    it.run(3)
    assert outputs(it) == [(0, (0,), ())]
    assert holds(it)


def test_a_stream_that_begins_anew_during_an_attempt_is_a_miss() -> None:
    """A frame of the epoch before would come out (section 9.1)."""
    it = world(latest(numbers(at(1))), slots=8)
    feed(it, frame(1, 5), 0)
    it.offer(1, 0)
    assert it.try_next(0)
    feed(it, frame(1, 0, epoch=2), 1)
    assert it.end(2) == Skipped(1, 1, SkipReason.NEXT_TICK, ((1, Miss.OLDER_EPOCH),))
    it.offer(2, 3)
    it.run(3)
    assert outputs(it) == [(2, (0,), ())]
    assert holds(it)


def offered(pending: PendingPolicy | None, **config: Any) -> list[Any]:
    """Return the fate of the output times 10, 20, 30, while nothing is there until 30 is."""
    it = world(timestamp(times(at_ns(1), window_ns(2, 5))), slots=8, pending=pending, **config)
    for out in (10, 20, 30):
        it.offer(out, out)
        it.run(out)
    for n, stamp in enumerate((9, 10, 19, 20, 29, 30)):
        feed(it, frame(1, n, stamp), 40)
        feed(it, frame(2, n, stamp), 40)
    it.run(40)
    assert holds(it)
    return [out for out, _, _ in outputs(it)] + skipped(it)


def test_what_becomes_of_an_output_time_while_another_waits() -> None:
    """The document leaves it open, and the outputs are others each time (defect J-24)."""
    assert offered(PendingPolicy.QUEUE) == offered(None) == [10, 20, 30]
    assert offered(PendingPolicy.REPLACE) == [30, (10, 10, "replaced"), (20, 20, "replaced")]
    assert offered(PendingPolicy.HOLD) == [10, (20, 20, "held"), (30, 30, "held")]
    assert offered(PendingPolicy.QUEUE, most_pending=2) == [20, 30, (10, 10, "overflow")]


def test_an_output_time_that_can_never_be_ready_does_not_block_the_queue() -> None:
    """A time below a window would be waited for by all that come after it."""
    it = world(timestamp(times(at_ns(1), window_ns(2, 50))), slots=8)
    for n, stamp in enumerate((10, 60)):
        it.offer(stamp, stamp)
        feed(it, frame(1, n, stamp), stamp)
        feed(it, frame(2, n, stamp), stamp)
    it.run(60)
    assert (skipped(it), outputs(it)) == ([(10, 10, "impossible")], [(60, (1, 1), ())])


def test_an_output_time_that_has_passed_is_told() -> None:
    """It would stop the queue, or come out of order."""
    it = world(timestamp(times(at_ns(1))), slots=8)
    feed(it, frame(1, 0, 100), 0)
    for out in (50, 40, 60):
        it.offer(out, 0)
    it.run(0)
    assert [out for out, _, _ in outputs(it)] == []
    assert skipped(it) == [(50, 50, "failed"), (40, 40, "passed"), (60, 60, "failed")]  # nothing is as old as that


def test_a_tick_that_waits_gives_way_to_the_next() -> None:
    """Section 9.1: the join is retried on a subsequent tick; ticks queued up would all show the same."""
    it = world(latest(numbers(at(1))), slots=8)
    for tick in (1, 2, 3):
        it.offer(tick, tick)
        it.run(tick)
    feed(it, frame(1, 0), 4)
    it.run(4)
    assert (outputs(it), skipped(it)) == ([(3, (0,), ())], [(1, 1, "replaced"), (2, 2, "replaced")])


def test_a_stale_input_is_waited_for_until_its_deadline() -> None:
    """Nothing would ask again when nothing comes."""
    it = world(sequence(numbers(at(1), at(2), stale=100)), slots=8)
    feed(it, frame(1, 0), 10)
    it.run(10)
    assert it.stage.next_deadline_ns(10) == 101
    it.run(100)
    assert it.outcomes == []
    it.run(101)
    assert outputs(it) == [(0, (0,), (2,))]
    assert it.stage.next_deadline_ns(101) == 111  # when nothing of stream 1 comes either
    it.run(111)
    assert it.stage.next_deadline_ns(111) is None
    assert holds(it)


def test_the_window_of_one_rule_and_the_offset_of_another() -> None:
    """Both kinds of rule stand in one map (section 6.2)."""
    it = world(sequence(numbers(at(1), window(2, 3))), slots=8)
    for n in range(6):
        feed(it, frame(1, n), n)
        if n != 4:
            feed(it, frame(2, n), n)
    it.run(6)
    assert outputs(it) == [(2, (2, 2), ()), (3, (3, 3), ()), (4, (4, 3), ()), (5, (5, 5), ())]
    assert holds(it)


def test_slips_of_the_driver_are_told() -> None:
    """A result would be taken for another attempt's."""
    stage = JoinStage(sequence(numbers(at(1))))
    with pytest.raises(NoMapError, match="an attempt that was not begun"):
        stage.finish([], 0)
    stage.observe(frame(1, 0), 0)
    attempt = stage.poll(0)
    assert stage.poll(0) is attempt
    with pytest.raises(LimitError, match="the number of results = 0; allowed: 1"):
        stage.finish([], 0)
    assert isinstance(stage.finish([frame(1, 0)], 0), Joined)
    assert JoinStage(timestamp(times(at_ns(1)))).poll(0) is None
    for bad in ({"most_pending": 0}, {"slots": ((1, 0),)}):
        with pytest.raises(LimitError):
            StageConfig(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [sequence, timestamp, latest], ids=["sequence", "timestamp", "latest"])
def test_a_stage_is_restored_in_the_middle_of_an_attempt(make: Any) -> None:
    """An exploration would go on from another state than it came to."""
    said = times(at_ns(1)) if make is timestamp else numbers(at(1))
    it, other = (world(make(said), slots=8) for _ in range(2))
    feed(it, frame(1, 0, 7), 0)
    for out in () if make is sequence else (7, 8):
        it.offer(out, 0)
    assert it.try_next(0)
    other.restore(it.capture())
    assert other.capture() == it.capture()
    hash(it.capture())
    assert other.end(1) == it.end(1)
    assert other.run(2) == it.run(2)
    assert other.capture() == it.capture()


def test_a_map_of_the_other_kind_is_not_for_this_stage() -> None:
    """A sequence stage would run on times."""
    it = world(sequence(), slots=8)
    assert it.announce(times(at_ns(1)), 0) is MapChange.OTHER_KIND
    assert it.announce(InvalidMergeMap(SequenceMergeMapAnnounce, OUT, 1, ""), 0) is MapChange.NOT_IN_FORCE
    assert holds(it)
