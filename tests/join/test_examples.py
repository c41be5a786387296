"""The examples of appendix A, each run as it is written, with what comes out; and where that is nothing, why.

Streams, as far as an example names them: 1 is the first, 2 the second, 3 the third. Times are in the example's own
scale. A frame's descriptor arrives some time after its timestamp: no example says so, and all of them hang on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from barrierlab.impl.errors import MergeMapError
from barrierlab.impl.join import (
    ClockDomain,
    JoinConfig,
    LatestValueJoinBarrier,
    PendingPolicy,
    Readiness,
    TimestampMergeMapAnnounce,
)
from barrierlab.model.join.world import JoinWorld
from tests.join.support import (
    MS,
    S,
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

Stimulus = tuple[int, Callable[[int], object]]


def stream(it: JoinWorld, number: int, period: int, until: int, delay: int = 0, first: int = 0) -> Iterable[Stimulus]:
    """A frame every `period`, stamped when it is captured, arriving `delay` later."""
    for seq, captured in enumerate(range(first, until, period)):
        each = frame(number, seq, captured)
        yield captured, lambda now, each=each: it.publish(each, now)
        yield captured + delay, lambda now, each=each: it.observe(each, now)


def clock(it: JoinWorld, period: int, until: int, behind: int = 0) -> Iterable[Stimulus]:
    """An output time at every tick, now or so far behind it, and a question."""

    def tick(now: int) -> None:
        it.offer(now - behind, now)
        it.run(now)

    return [(at_ns, tick) for at_ns in range(period, until, period)]


def play(it: JoinWorld, *stimuli: Iterable[Stimulus], ask_at_arrivals: bool = True) -> JoinWorld:
    """Let it all happen in the order of time; after each arrival do what can be done, or at ticks alone."""
    for now, happen in sorted((h for each in stimuli for h in each), key=lambda h: h[0]):
        happen(now)
        if ask_at_arrivals:
            it.run(now)
    assert holds(it)
    return it


def outs(it: JoinWorld) -> list[int]:
    """The outputs' own values."""
    return [out for out, _, _ in outputs(it)]


# A.3 Sequences.


def test_a_3_1_lockstep_cameras() -> None:
    """Works as written: an output when both have come to it, whoever is ahead."""
    it = world(sequence(numbers(at(1), at(2))))
    for stream_id, seq in ((1, 0), (1, 1), (2, 0), (1, 2), (2, 1), (2, 2), (2, 3)):
        feed(it, frame(stream_id, seq), 0)
        it.run(0)
        seen = {1: -1, 2: -1} | {f[2]: f[3].seq for f in it.entries if f[1] == "observe"}  # type: ignore[attr-defined]
        assert outs(it) == list(range(min(seen.values()) + 1))
    assert outputs(it) == [(n, (n, n), ()) for n in range(3)]
    assert holds(it)


def test_a_3_2_fixed_offset_compensation() -> None:
    """Works from output 2 on. Outputs 0 and 1 need B -2 and -1, so a stage that waits for output 0 waits for ever."""
    barrier = sequence(numbers(at(1), at(2, -2)))
    it = world(barrier)
    for n in range(6):
        feed(it, frame(1, n), n)  # B lags two frames behind: its n - 2 comes with A's n
        if n >= 2:
            feed(it, frame(2, n - 2), n)
        it.run(n)
    assert outputs(it) == [(n, (n, n - 2), ()) for n in range(2, 6)]
    assert skipped(it) == []
    assert barrier.active.first_output == 2  # type: ignore[union-attr]
    fresh = sequence(numbers(at(1), at(2, -2)))
    fresh.observe(1, 1, 100, 0)
    fresh.observe(2, 1, 100, 0)
    assert [fresh.ready(out, 0).name for out in (0, 1, 2)] == ["WAITING", "WAITING", "READY"]


def test_a_3_3_sliding_window_join() -> None:
    """The newest valid frame of five is taken, but none is as good as another: the gate asks for the newest.

    "You can accept any of the last 5 frames" does not hold: with 9 observed output 10 waits. What the window widens is
    the choice, when the newest has not been written yet or was dropped (defect J-19).
    """
    it = world(sequence(numbers(window(1, 5))), slots=8)
    for n in range(10):
        feed(it, frame(1, n), n)
    assert [each.out for each in it.run(10)] == [4, 5, 6, 7, 8, 9]
    assert it.ask(10, 10) is Readiness.WAITING
    it.begin(frame(1, 10))  # begun and announced, and not written yet: the attempt falls back to 9
    it.observe(frame(1, 10), 11)
    assert outputs(it)[-1] == (9, (9,), ())
    it.run(11)
    assert outputs(it)[-1] == (10, (9,), ())
    assert holds(it)


def test_a_3_4_diamond() -> None:
    """Works as written: the output is the pair of what the branches made of one frame, however they are delayed."""
    it = world(sequence(numbers(at(1), at(2))), slots=16)
    play(it, stream(it, 1, 10, 100, delay=3), stream(it, 2, 10, 100, delay=47))
    assert outputs(it) == [(n, (n, n), ()) for n in range(10)]


# A.4 Times.


def a_4_1(pending: PendingPolicy, behind: int = 0, delay: int = 5 * MS, ask_at_arrivals: bool = False) -> JoinWorld:
    """A at out_time, B 2 ms before it; frames every millisecond that take 5 ms; a tick every 10 ms."""
    it = world(timestamp(times(at_ns(1), at_ns(2, -2 * MS))), slots=64, pending=pending)
    frames = [stream(it, number, MS, 200 * MS, delay=delay) for number in (1, 2)]
    return play(it, *frames, clock(it, 10 * MS, 200 * MS, behind), ask_at_arrivals=ask_at_arrivals)


def test_a_4_1_pipeline_clock() -> None:
    """Does not work as written: out_time is now, what is observed is 5 ms old, and the next tick asks for more again.

    It works if an output time is held until it is ready, or if the clock is read a budget behind (defect J-09). To ask
    again at each arrival is enough as long as frames take less than a tick.
    """
    as_written = a_4_1(PendingPolicy.REPLACE)
    assert outputs(as_written) == []
    assert {reason for _, _, reason in skipped(as_written)} == {"replaced"}
    assert len(outputs(a_4_1(PendingPolicy.REPLACE, ask_at_arrivals=True))) == 19
    assert outs(a_4_1(PendingPolicy.REPLACE, delay=11 * MS, ask_at_arrivals=True)) == [
        190 * MS
    ]  # which no tick replaces
    held = a_4_1(PendingPolicy.HOLD, delay=11 * MS, ask_at_arrivals=True)
    assert outs(held) == [tick * MS for tick in range(10, 200, 20)]
    assert outputs(held)[2] == (50 * MS, (50, 48), ())
    budgeted = a_4_1(PendingPolicy.REPLACE, behind=5 * MS)
    assert outs(budgeted) == [tick * MS for tick in range(5, 195, 10)]
    emitted = [entry[0] for entry in budgeted.entries if entry[1] == "emit"]
    assert emitted == [tick * MS for tick in range(10, 200, 10)]  # at the tick: "output cadence is stable"


def test_a_4_2_input_driven() -> None:
    """Works as written: an output at each camera frame, with the newest IMU sample of the last 10 ms."""
    it = world(timestamp(times(at_ns(1), window_ns(2, 10 * MS), late=10 * MS)), slots=64)
    cam = list(stream(it, 1, 33 * MS, 500 * MS, delay=8 * MS, first=33 * MS))
    arrivals = [(now, lambda _, t=now - 8 * MS: it.offer(t, t)) for now, _ in cam[1::2]]
    play(it, cam, stream(it, 2, 5 * MS, 600 * MS, delay=2 * MS), arrivals)
    assert outs(it) == list(range(33 * MS, 500 * MS, 33 * MS))
    for entry in it.entries:
        if entry[1] == "emit":
            out, ((_, camera), (_, imu)), absent = entry[3]  # type: ignore[misc]
            assert camera.frame_ns == out
            assert out - 10 * MS <= imu.frame_ns <= out
            assert absent == ()


def fusion(lidar_window: int, lateness: int) -> JoinWorld:
    """Camera at 30 Hz, lidar at 10 Hz, IMU at 200 Hz."""
    rules = (at_ns(1), window_ns(2, lidar_window), window_ns(3, 10 * MS))
    it = world(timestamp(times(*rules, late=lateness)), slots=64)
    cam = list(stream(it, 1, 33 * MS, 900 * MS, delay=8 * MS, first=132 * MS))
    arrivals = [(now, lambda _, t=now - 8 * MS: it.offer(t, t)) for now, _ in cam[1::2]]
    lidar = stream(it, 2, 100 * MS, 1100 * MS, delay=20 * MS, first=7 * MS)
    return play(it, cam, lidar, stream(it, 3, 5 * MS, 1100 * MS, delay=2 * MS), arrivals)


def test_a_4_3_sensor_fusion() -> None:
    """Cannot be run as written: the lateness of 50 ms is longer than the IMU's window, which may then be empty.

    An IMU that was last seen at 55 ms would make the output for 100 ms ready, and [90, 100] holds no sample of it
    (defect J-08); so the map is refused. With a lateness of 10 ms it runs, and a lidar of 10 Hz is in a window of 50 ms
    for every second camera frame only; that takes a window as long as its period.
    """
    with pytest.raises(MergeMapError, match="lengthen the window or lessen the lateness"):
        fusion(lidar_window=50 * MS, lateness=50 * MS)
    narrow = fusion(lidar_window=50 * MS, lateness=10 * MS)
    frames = range(132 * MS, 900 * MS, 33 * MS)
    assert [out for out in frames if (out - 7 * MS) % (100 * MS) <= 50 * MS] == outs(narrow)
    assert {reason for _, _, reason in skipped(narrow)} == {"failed"}
    wide = fusion(lidar_window=100 * MS, lateness=10 * MS)
    assert outs(wide) == list(frames)
    assert skipped(wide) == []


def test_a_4_4_event_time_window_join() -> None:
    """Cannot be run as written: "up to 5 s of lateness" on windows of 2 s is refused.

    It would be ready for 10 s once 5 s is observed, before anything of [8 s, 10 s] can be there: this lateness waits
    less the larger it is, where Flink's and Beam's waits longer (defect J-07). At 2 s, all that the windows allow, each
    watermark's output comes with the newest frame of its window, late ones only if they are in time.
    """
    rules = (window_ns(1, 2 * S), window_ns(2, 2 * S))
    with pytest.raises(MergeMapError, match="a window of 2000000000 ns on stream 1 with a lateness of 5000000000 ns"):
        times(*rules, late=5 * S)
    waits = {}
    for lateness in (0, 1 * S, 2 * S):
        it = world(timestamp(times(*rules, late=lateness)), slots=64)
        late = stream(it, 2, S // 2, 20 * S, delay=1500 * MS)
        play(it, stream(it, 1, S // 2, 20 * S), late, clock(it, 2 * S, 18 * S))
        assert outs(it) == list(range(2 * S, 18 * S, 2 * S))
        emitted = [entry[0] for entry in it.entries if entry[1] == "emit"]
        waits[lateness] = max(now - out for now, out in zip(emitted, outs(it), strict=True))
    assert waits == {0: 1500 * MS, 1 * S: 500 * MS, 2 * S: 0}


def a_4_5(pending: PendingPolicy, audio_clock: ClockDomain) -> JoinWorld:
    """Video at 25 Hz and audio in blocks of 10 ms, which arrives 20 ms late; out_time from a disciplined clock."""
    merge_map = times(at_ns(1), at_ns(2, -20 * MS), clock=ClockDomain.REALTIME_SYNCED)
    it = world(timestamp(merge_map, clock_domain=ClockDomain.REALTIME_SYNCED), slots=64, pending=pending)
    it.declare_clock(1, ClockDomain.REALTIME_SYNCED, 0)
    it.declare_clock(2, audio_clock, 0)
    video, audio = stream(it, 1, 40 * MS, 1200 * MS, delay=5 * MS), stream(it, 2, 10 * MS, 1200 * MS, delay=20 * MS)
    ticks = clock(it, 40 * MS, 1000 * MS)
    return play(it, video, audio, ticks, ask_at_arrivals=pending is PendingPolicy.HOLD)


def test_a_4_5_audio_video_sync() -> None:
    """As A.4.1: at ptp_now() the video of that time is under way. Held, it works; with another clock, never."""
    assert outs(a_4_5(PendingPolicy.REPLACE, ClockDomain.REALTIME_SYNCED)) == []
    held = a_4_5(PendingPolicy.HOLD, ClockDomain.REALTIME_SYNCED)
    assert outputs(held)[:2] == [(40 * MS, (1, 2), ()), (80 * MS, (2, 6), ())]
    assert len(outs(held)) == 24
    other = a_4_5(PendingPolicy.HOLD, ClockDomain.MONOTONIC)
    assert outs(other) == []
    assert {entry[3][1] for entry in other.entries if entry[1] == "ask"} == {"clocks differ"}  # type: ignore[index]


def a_4_6(pending: PendingPolicy) -> JoinWorld:
    """A stream at 10 Hz; a batch every 10 s that is done 30 s after the time it is of; a tick a second."""
    it = world(timestamp(times(at_ns(1), at_ns(2, -30 * S))), slots=2048, pending=pending)
    batch = stream(it, 2, 10 * S, 60 * S, delay=30 * S)
    ticks = clock(it, S, 80 * S)
    return play(it, stream(it, 1, S // 10, 80 * S), batch, ticks, ask_at_arrivals=pending is PendingPolicy.HOLD)


def test_a_4_6_batch_to_stream_reconciliation() -> None:
    """Works when a result comes, not for each tick: between two the batch has not come to out_time - 30 s.

    And out_time below 30 s can never be ready (section 6.3.1): a stage that waited for one would stand still.
    """
    held = a_4_6(PendingPolicy.HOLD)
    assert outs(held) == sorted([*range(30 * S, 80 * S, 10 * S), *range(31 * S, 72 * S, 10 * S)])
    assert outputs(held)[1] == (31 * S, (310, 0), ())  # held until the batch of 10 s is there, and takes that of 0 s
    assert [out for out, _, reason in skipped(held) if reason == "impossible"] == list(range(S, 30 * S, S))
    assert outs(a_4_6(PendingPolicy.REPLACE)) == list(range(30 * S, 80 * S, 10 * S))


# A.5 The latest value.


def test_a_5_1_fast_data_slow_configuration() -> None:
    """Works, once the first configuration is there, and with the rule that a stale input does not block (defect J-10).

    (Data every 100 ms instead of every millisecond.)
    """
    it = world(latest(numbers(at(1), at(2), stale=60 * S)), slots=8)
    data = list(stream(it, 1, S // 10, 120 * S))
    config = list(stream(it, 2, 10 * S, 40 * S, first=4 * S))  # the last one is of 34 s; then it stops
    play(it, data, config, clock(it, S // 10, 120 * S), ask_at_arrivals=False)
    first, last = outputs(it)[0], outputs(it)[-1]
    assert (first[0], first[1][1]) == (4 * S, 0)
    assert (last[0], len(last[1]), last[2]) == (120 * S - S // 10, 1, (2,))
    alone = [out for out, _, absent in outputs(it) if absent == (2,)]
    assert alone[0] == 94 * S + S // 10  # 60 s after 34 s is not yet longer than the timeout
    assert outs(it) == list(range(4 * S, 120 * S, S // 10))


def test_a_5_2_telemetry_overlay() -> None:
    """Health is optional in so far as it may be stale: metrics wait 5 s for it at first, and then go on without."""
    it = world(latest(numbers(at(1), at(2), stale=5 * S)), slots=8)
    health = stream(it, 2, 2 * S, 13 * S, first=9 * S)
    play(it, stream(it, 1, S, 20 * S), health, clock(it, S, 20 * S), ask_at_arrivals=False)
    marks = {out // S: absent for out, _, absent in outputs(it)}
    assert sorted(marks) == list(range(6, 20))
    assert {at_s for at_s, absent in marks.items() if absent == (2,)} == {6, 7, 8, 17, 18, 19}
    assert outputs(it)[0][1] == (6,)


def test_a_5_3_most_recent_buffer() -> None:
    """Works as written; a frame that is overwritten while it is read costs its tick, and the next one tries again."""
    merge_map = times(at_ns(1), at_ns(2), at_ns(3))
    it = world(LatestValueJoinBarrier(JoinConfig(9), TimestampMergeMapAnnounce, by_timestamp=True), slots=1)
    it.announce(merge_map, 0)
    for number, stamp in ((1, 70), (2, 90), (3, 10)):
        feed(it, frame(number, 0, stamp), 0)
    it.offer(100, 100)
    it.run(100)
    assert outputs(it) == [(100, (0, 0, 0), ())]
    it.offer(200, 200)
    assert it.try_next(200)
    it.publish(frame(2, 1, 150), 201)  # overwritten between look and copy
    it.end(202)
    assert skipped(it) == [(200, 200, "next tick")]
    assert it.ask(200, 202) is Readiness.WAITING
    it.observe(frame(2, 1, 150), 203)
    it.offer(300, 300)
    it.run(300)
    assert outputs(it)[-1] == (300, (0, 1, 0), ())
    assert holds(it)
