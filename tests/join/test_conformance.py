"""Cases of an existing implementation of the same document, restated for these classes.

Under the names that they have there (DarrylGamroth/AeronTensorPool.jl). Where theirs asserts what is not sound, the
sound value is asserted, and the test says so.
"""

from __future__ import annotations

import pytest

from barrierlab.impl.errors import MergeMapError, OutputOrderError
from barrierlab.impl.join import ClockDomain, Observed, Readiness, TimestampMergeMapAnnounce, decode, encode
from tests.join.support import (
    FRAME,
    MS,
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

READY, WAITING = Readiness.READY, Readiness.WAITING


def test_join_barrier_codec_roundtrip() -> None:
    """Theirs: equal fields."""
    said = numbers(at(1), window(2, 4), epoch=2, stale=50)
    assert decode(encode(said)) == said
    timed = TimestampMergeMapAnnounce(7, 3, ClockDomain.MONOTONIC, (at_ns(3),), 100, 10)
    assert decode(encode(timed)) == timed


def test_sequence_readiness() -> None:
    """Theirs: missing 2, missing 1, ready."""
    barrier = sequence(numbers(at(1), at(2)))
    assert (barrier.ready(5, 0), barrier.missing(5, 0)) == (WAITING, (1, 2))
    barrier.observe(1, 1, 5, 0)
    assert (barrier.ready(5, 0), barrier.missing(5, 0)) == (WAITING, (2,))
    barrier.observe(2, 1, 5, 0)
    assert (barrier.ready(5, 0), barrier.missing(5, 0)) == (READY, ())


def test_sequence_processed_cursor() -> None:
    """Theirs: observed alone is not ready, processed is."""
    barrier = sequence(numbers(at(1)), use_processed=True)
    barrier.observe(1, 1, 5, 0)
    assert barrier.ready(5, 0) is WAITING
    assert barrier.process(1, 1, 5) is Observed.TAKEN
    assert barrier.ready(5, 0) is READY


def test_sequence_epoch_resets() -> None:
    """Theirs, and a delayed frame of the older epoch, which there would reset the input again (defect J-05)."""
    barrier = sequence(numbers(at(1)))
    barrier.observe(1, 1, 10, 0)
    assert barrier.ready(10, 0) is READY
    barrier.observe(1, 2, 5, 0)
    assert barrier.ready(10, 0) is WAITING
    assert barrier.observe(1, 1, 11, 0) is Observed.OLDER_EPOCH
    assert barrier.ready(5, 0) is READY
    assert barrier.ready(10, 0) is WAITING


def test_sequence_output_monotonic() -> None:
    """Theirs rejects output 9 once 10 was asked for; here it counts what was accepted (rule 30; defect J-14)."""
    barrier = sequence(numbers(at(1)))
    assert barrier.ready(10, 0) is WAITING
    barrier.observe(1, 1, 10, 0)
    assert barrier.ready(9, 0) is READY
    barrier.accept(10)
    assert barrier.ready(9, 0) is Readiness.PASSED
    assert barrier.ready(10, 0) is Readiness.PASSED
    for old in (9, 10):
        with pytest.raises(OutputOrderError, match=f"output {old} accepted after 10; allowed: more than 10"):
            barrier.accept(old)


def test_timestamp_readiness() -> None:
    """Theirs: missing 1, ready."""
    barrier = timestamp(times(at_ns(1)))
    assert (barrier.ready(100, 0), barrier.missing(100, 0)) == (WAITING, (1,))
    barrier.observe_time(1, 1, FRAME, 100, 0)
    assert barrier.ready(100, 0) is READY


def test_timestamp_stale_input() -> None:
    """Theirs: one stale input, id 7, and ready. Here it is not ready: no input is live (rule 32; defect J-11)."""
    barrier = timestamp(times(at_ns(7), stale=10))
    barrier.observe_time(7, 1, FRAME, 100, 5)
    assert barrier.ready(200, 20) is Readiness.NO_LIVE_INPUT
    assert barrier.absent(200, 20) == (7,)


def test_timestamp_slot_header_source() -> None:
    """Theirs: ready by the slot header. The descriptor's time is another one."""
    barrier = timestamp(times(at_ns(1, 0, SLOT)))
    assert barrier.observe_time(1, 1, FRAME, 500, 0) is Observed.NOT_AN_INPUT
    assert barrier.ready(500, 0) is WAITING
    barrier.observe_time(1, 1, SLOT, 500, 0)
    assert barrier.ready(500, 0) is READY


def test_timestamp_monotonic_enforcement() -> None:
    """Theirs: rejected, not ready."""
    barrier = timestamp(times(at_ns(1)))
    barrier.observe_time(1, 1, FRAME, 200, 0)
    assert barrier.observe_time(1, 1, FRAME, 100, 0) is Observed.REJECTED
    assert barrier.ready(100, 0) is WAITING


def test_timestamp_output_monotonic() -> None:
    """Theirs rejects 100 once 200 was asked for; here once 200 was accepted. An equal time is allowed (section 8.2)."""
    barrier = timestamp(times(at_ns(1)))
    barrier.observe_time(1, 1, FRAME, 200, 0)
    assert barrier.ready(200, 0) is READY
    assert barrier.ready(100, 0) is READY
    barrier.accept(200)
    assert barrier.ready(100, 0) is Readiness.PASSED
    assert barrier.ready(200, 0) is READY
    barrier.accept(200)
    with pytest.raises(OutputOrderError, match="output 100 accepted after 200; allowed: 200 or more"):
        barrier.accept(100)


def test_latest_value_readiness() -> None:
    """Theirs: missing 2, missing 1, ready."""
    barrier = latest(numbers(at(1), at(2)))
    assert (barrier.ready(1, 0), barrier.missing(1, 0)) == (WAITING, (1, 2))
    barrier.observe(1, 1, 3, 0)
    assert (barrier.ready(1, 0), barrier.missing(1, 0)) == (WAITING, (2,))
    barrier.observe(2, 1, 1, 0)
    assert barrier.ready(1, 0) is READY


def test_latest_value_uses_timestamps() -> None:
    """Theirs: by timestamp a number is not enough."""
    barrier = latest(times(at_ns(1)), by_timestamp=True)
    assert barrier.observe(1, 1, 3, 0) is Observed.NOT_AN_INPUT
    assert barrier.ready(1, 0) is WAITING
    barrier.observe_time(1, 1, FRAME, 123, 0)
    assert barrier.ready(1, 0) is READY


def test_aligned_join_a_3_1() -> None:
    """Theirs: both at 12034, ready."""
    barrier = sequence(numbers(at(1), at(2)))
    for stream in (1, 2):
        barrier.observe(stream, 1, 12034, 0)
    assert barrier.ready(12034, 0) is READY


def test_offset_compensation_a_3_2() -> None:
    """Theirs: 12031 is not ready, 12032 is."""
    barrier = sequence(numbers(at(1), at(2, -2)))
    barrier.observe(1, 1, 12034, 0)
    barrier.observe(2, 1, 12031, 0)
    assert barrier.ready(12034, 0) is WAITING
    barrier.observe(2, 1, 12032, 0)
    assert barrier.ready(12034, 0) is READY


def test_sliding_window_a_3_3() -> None:
    """Theirs: with 9 observed, output 10 is not ready: the window widens the choice, not the gate (defect J-19)."""
    barrier = sequence(numbers(window(1, 5)))
    barrier.observe(1, 1, 9, 0)
    assert barrier.ready(10, 0) is WAITING
    barrier.observe(1, 1, 10, 0)
    assert barrier.ready(10, 0) is READY


def test_timestamp_offset_join_a_4_1() -> None:
    """Theirs: an offset of -5 ms at a time of today (the document's text has -2 ms)."""
    barrier = timestamp(times(at_ns(1), at_ns(2, -5 * MS)))
    out = 1_700_000_000_000_000_000
    barrier.observe_time(1, 1, FRAME, out, 0)
    barrier.observe_time(2, 1, FRAME, out - 5 * MS - 1, 0)
    assert barrier.ready(out, 0) is WAITING
    barrier.observe_time(2, 1, FRAME, out - 5 * MS, 0)
    assert barrier.ready(out, 0) is READY


def test_input_driven_a_4_2() -> None:
    """Theirs: lateness 10 ms, camera at 20 ms, IMU at 15 ms, ready for 20 ms."""
    barrier = timestamp(times(at_ns(1), window_ns(2, 10 * MS), late=10 * MS))
    barrier.observe_time(1, 1, FRAME, 20 * MS, 0)
    barrier.observe_time(2, 1, FRAME, 15 * MS, 0)
    assert barrier.ready(20 * MS, 0) is READY


def test_sensor_fusion_a_4_3() -> None:
    """Theirs is ready with the IMU at 55 ms, outside its window of 90 to 100 ms. Here the map is none (defect J-08)."""
    with pytest.raises(MergeMapError, match="a window of 10000000 ns on stream 3 with a lateness of 50000000 ns"):
        times(at_ns(1), window_ns(2, 50 * MS), window_ns(3, 10 * MS), late=50 * MS)
    barrier = timestamp(times(at_ns(1), window_ns(2, 50 * MS), window_ns(3, 10 * MS), late=10 * MS))
    for stream, seen in ((1, 100), (2, 95), (3, 55)):
        barrier.observe_time(stream, 1, FRAME, seen * MS, 0)
    assert (barrier.ready(100 * MS, 0), barrier.missing(100 * MS, 0)) == (WAITING, (3,))
    barrier.observe_time(3, 1, FRAME, 90 * MS, 0)
    assert barrier.ready(100 * MS, 0) is READY


def test_stale_input_degradation_a_5_1() -> None:
    """Theirs: timeout 5 s; at 6 s both have 10; at 12 s only input 1 has 11, and input 2 is stale.

    (Input 1 is as long silent then as to be stale as well, but it has what the output needs, so it is not absent.)
    """
    barrier = sequence(numbers(at(1), at(2), stale=5 * S))
    for stream in (1, 2):
        barrier.observe(stream, 1, 10, 1 * S)
    assert barrier.ready(10, 6 * S) is READY
    barrier.observe(1, 1, 11, 6 * S)
    assert barrier.ready(11, 6 * S) is WAITING
    assert barrier.ready(11, 12 * S) is Readiness.DEGRADED
    assert barrier.absent(11, 12 * S) == (2,)
