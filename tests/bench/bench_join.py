"""The cost of a join, as multiples of an empty bound-method call with as many arguments, measured in the same run.

    python -m tests.bench.bench_join [--repeats N]

Each figure is processor time, the least of interleaved repeats, less the loop around it. The document asks that the
hot path allocates nothing (section 5): `tests/join/test_hot_path.py` holds that; here is how long it takes, and that a
barrier which has seen a million frames takes no longer than one that has seen none.
"""

from __future__ import annotations

import argparse
import gc
from itertools import repeat
from time import process_time_ns
from typing import TYPE_CHECKING, Any

from barrierlab.impl.join import (
    ClockDomain,
    Frame,
    JoinConfig,
    JoinStage,
    LatestValueJoinBarrier,
    Read,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    SequenceMergeRule,
    SlotRing,
    TimestampJoinBarrier,
    TimestampMergeMapAnnounce,
    TimestampMergeRule,
    TimestampSource,
    decode,
    encode,
)
from tests.bench.bench_impl import Row
from tests.bench.ratios import Ratio

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 2_000  # short, so that some repeat is not interrupted
OUT, FAR = 99, 2**62
FRAME = TimestampSource.FRAME_DESCRIPTOR


class Empty:
    """The floor: a bound method that does nothing with four arguments."""

    __slots__ = ()

    def call(self, stream_id: int, epoch: int, seq: int, now_ns: int) -> None:
        """Nothing."""


def loop() -> float:
    """The loop alone."""
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        pass
    return (process_time_ns() - begin) / ROUNDS


def floor() -> float:
    """An empty call, of numbers as `observe` gets them."""
    call = Empty().call
    begin = process_time_ns()
    for n in range(ROUNDS):
        call(1, 1, n, 0)
    return (process_time_ns() - begin) / ROUNDS


def numbers(inputs: int, stale: int | None = None) -> SequenceMergeMapAnnounce:
    """A map of so many inputs."""
    return SequenceMergeMapAnnounce(OUT, 1, tuple(map(SequenceMergeRule.at_offset, range(1, inputs + 1))), stale)


def times(inputs: int) -> TimestampMergeMapAnnounce:
    """The same by time, with a lateness."""
    rules = tuple(TimestampMergeRule.in_window(n, 1000) for n in range(1, inputs + 1))
    return TimestampMergeMapAnnounce(OUT, 1, ClockDomain.MONOTONIC, rules, None, 10)


def sequence(inputs: int = 2, seen: int = -1, **config: Any) -> SequenceJoinBarrier:
    """A barrier that has seen each input up to a frame."""
    barrier = SequenceJoinBarrier(JoinConfig(OUT, **config))
    barrier.announce(numbers(inputs), 0)
    for stream in range(1, inputs + 1):
        if seen >= 0:
            barrier.observe(stream, 1, seen, 0)
    return barrier


def bench_observe() -> float:
    """A frame descriptor."""
    observe = sequence(seen=0).observe
    begin = process_time_ns()
    for n in range(1, ROUNDS + 1):
        observe(1, 1, n, 0)
    return (process_time_ns() - begin) / ROUNDS


def bench_observe_after_a_million() -> float:
    """A frame descriptor, after a million of them."""
    barrier = sequence(seen=0)
    for n in range(1, 1_000_001, 1000):
        barrier.observe(1, 1, n, 0)
    observe = barrier.observe
    begin = process_time_ns()
    for n in range(1_000_001, 1_000_001 + ROUNDS):
        observe(1, 1, n, 0)
    return (process_time_ns() - begin) / ROUNDS


def bench_observe_with_processed() -> float:
    """A frame descriptor, where processed cursors gate as well."""
    observe = sequence(seen=0, use_processed=True).observe
    begin = process_time_ns()
    for n in range(1, ROUNDS + 1):
        observe(1, 1, n, 0)
    return (process_time_ns() - begin) / ROUNDS


def bench_observe_time() -> float:
    """A timestamp."""
    barrier = TimestampJoinBarrier(JoinConfig(OUT))
    barrier.announce(times(2), 0)
    observe = barrier.observe_time
    observe(1, 1, FRAME, 0, 0)
    begin = process_time_ns()
    for n in range(1, ROUNDS + 1):
        observe(1, 1, FRAME, n, 0)
    return (process_time_ns() - begin) / ROUNDS


def _ready(barrier: Any, out: int) -> float:
    ready = barrier.ready
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        ready(out, 0)
    return (process_time_ns() - begin) / ROUNDS


def bench_ready() -> float:
    """A question about two inputs, which are there."""
    return _ready(sequence(seen=FAR), 1000)


def bench_ready_waiting() -> float:
    """A question about two inputs, which are not: the answer says no more than that."""
    return _ready(sequence(seen=10), 1000)


def bench_ready_8_inputs() -> float:
    """A question about eight inputs, which are there."""
    return _ready(sequence(8, seen=FAR), 1000)


def bench_ready_timestamp() -> float:
    """A question about two windows, which are there."""
    barrier = TimestampJoinBarrier(JoinConfig(OUT))
    barrier.announce(times(2), 0)
    for stream in (1, 2):
        barrier.observe_time(stream, 1, FRAME, FAR, 0)
    return _ready(barrier, 100_000)


def bench_ready_latest() -> float:
    """A tick of two inputs, with a stale timeout."""
    barrier = LatestValueJoinBarrier(JoinConfig(OUT))
    barrier.announce(numbers(2, stale=10**9), 0)
    for stream in (1, 2):
        barrier.observe(stream, 1, 5, 0)
    return _ready(barrier, 1000)


def bench_output() -> float:
    """A whole output of two inputs: two descriptors, a question, two reads, accepted."""
    stage = JoinStage(sequence())
    rings = {1: SlotRing(64), 2: SlotRing(64)}
    frames = [(Frame(1, 1, n, n, n), Frame(2, 1, n, n, n)) for n in range(200)]
    begin = process_time_ns()
    for pair in frames:
        for frame in pair:
            rings[frame.stream_id].publish(frame)
            stage.observe(frame, 0)
        attempt: Any = stage.poll(0)
        stage.finish([rings[r.stream_id].close(rings[r.stream_id].open(r)) for r in attempt.reads], 0)
    return (process_time_ns() - begin) / 200


def bench_read_by_time() -> float:
    """A read by time in a ring of 64 slots, whose newest frame will do."""
    ring = SlotRing(64)
    for n in range(64):
        ring.publish(Frame(1, 1, n, n, n))
    open_, read = ring.open, Read(1, 1, FRAME, 10, 100)
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        open_(read)
    return (process_time_ns() - begin) / ROUNDS


SAID = numbers(2, stale=50)
BYTES = encode(SAID)


def bench_encode() -> float:
    """A map of two rules into 58 bytes."""
    begin = process_time_ns()
    for _ in repeat(None, 200):
        encode(SAID)
    return (process_time_ns() - begin) / 200


def bench_decode() -> float:
    """The same read and checked."""
    begin = process_time_ns()
    for _ in repeat(None, 200):
        decode(BYTES)
    return (process_time_ns() - begin) / 200


# Name, what is measured, target as a multiple of the floor (None: watched only).
BENCHES: tuple[tuple[str, Callable[[], float], float | None], ...] = (
    ("bench_observe", bench_observe, 4.0),
    ("bench_observe_after_a_million", bench_observe_after_a_million, 4.0),
    ("bench_observe_with_processed", bench_observe_with_processed, 6.0),
    ("bench_observe_time", bench_observe_time, 5.0),
    ("bench_ready", bench_ready, 5.0),
    ("bench_ready_waiting", bench_ready_waiting, None),
    ("bench_ready_8_inputs", bench_ready_8_inputs, 12.0),
    ("bench_ready_timestamp", bench_ready_timestamp, 5.0),
    ("bench_ready_latest", bench_ready_latest, 7.0),
    ("bench_output", bench_output, None),
    ("bench_read_by_time", bench_read_by_time, None),
    ("bench_encode", bench_encode, None),
    ("bench_decode", bench_decode, None),
)


def measure(repeats: int) -> tuple[float, list[Row]]:
    """The floor in ns, and a row for each benchmark: the least of interleaved repeats."""
    loops: list[float] = []
    floors: list[float] = []
    spent: dict[str, list[float]] = {name: [] for name, *_ in BENCHES}
    gc.disable()
    try:
        for _ in range(repeats):
            loops.append(loop())
            floors.append(floor())
            for name, bench, _target in BENCHES:
                spent[name].append(bench())
            gc.collect()
    finally:
        gc.enable()
    empty = min(loops)
    return min(floors) - empty, [Row(name, min(spent[name]) - empty, target) for name, _bench, target in BENCHES]


def ratios(repeats: int = 100) -> list[Ratio]:
    """For the kept table."""
    floor_ns, rows = measure(repeats)
    return [Ratio(row.name, row.ns / floor_ns, "an empty call with four arguments") for row in rows]


def lines(floor_ns: float, rows: list[Row]) -> list[str]:
    """The table."""
    table = [f"{'floor: an empty call with four arguments':<40} {floor_ns:8.1f} ns"]
    for row in rows:
        mark = "MISSED" if row.target is not None and row.ns > row.target * floor_ns else "ok"
        target = "" if row.target is None else f"<= {row.target:g}x {mark}"
        table.append(f"{row.name:<40} {row.ns:8.1f} ns {row.ns / floor_ns:6.1f}x  {target}".rstrip())
    return table


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100, metavar="N", help="interleaved repeats (default: 100)")
    print("\n".join(lines(*measure(parser.parse_args().repeats))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
