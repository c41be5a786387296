"""What storing a checkpoint costs: MB/s of serialising and reading, beside a join and a checksum of the same bytes.

    python -m tests.bench.bench_store [--repeats N]

Each figure is the best of interleaved repeats: processor time, which other work on the machine stretches less than
the clock's, but the clock's where a directory is waited for. The targets are those of F-DCKP-006, "Performance
Targets" and "Benchmarks": in-flight data is serialised at 200 MB/s or more, 1 MB of it in less than 5 ms, and 10,000
events are read back in less than 50 ms. A row without a target is there to be watched.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from tempfile import TemporaryDirectory
from time import perf_counter_ns, process_time_ns
from typing import NamedTuple
from zlib import crc32

from impl import DirectoryStore, Event, InFlight, Manifest, MemoryStore, TaskSnapshot, decode, encode
from impl.snapshot import decode_in_flight, encode_in_flight, encode_state

SMALL = tuple(bytes([n % 256]) * 100 for n in range(10_000))  # 1 MB
LARGE = tuple(bytes([n % 256]) * 32_768 for n in range(256))  # 8 MB
MESSAGES = [Event("a", n, key=n % 100, value=(n, "x")) for n in range(2_000)]
STORED = TaskSnapshot("join", 0, b"".join(SMALL), inputs=(InFlight(0, SMALL),))
MEGABYTE = 1_000_000


class Bench(NamedTuple):
    """A measurement: what it is called, how many bytes it handles, what it may take, and the work itself."""

    name: str
    size: int
    least_mb_per_s: float | None
    most_ms: float | None
    work: Callable[[], object]


def benches(folder: str) -> list[Bench]:
    """All rows, floors first."""
    small, large = InFlight(0, SMALL), InFlight(0, LARGE)
    file, encoded = encode_in_flight(0, small), [encode(message) for message in MESSAGES]
    whole = b"".join(LARGE)
    small_size, large_size = small.size_bytes, large.size_bytes
    stores = {"memory": MemoryStore(), "directory": DirectoryStore(folder)}

    def checkpoint(kind: str) -> None:
        store = stores[kind]
        checkpoint_id = store.highest_id() + 1
        store.begin(checkpoint_id)
        store.complete(Manifest(checkpoint_id, 1, True, (store.write(checkpoint_id, STORED),)))
        store.retain(1)

    checkpoint("memory")
    checkpoint("directory")
    return [
        Bench("floor: join of 10,000 events of 100 bytes", small_size, None, None, lambda: b"".join(SMALL)),
        Bench("floor: join of 256 events of 32 KiB", large_size, None, None, lambda: b"".join(LARGE)),
        Bench("floor: CRC-32", large_size, None, None, lambda: crc32(whole)),
        Bench("bench_inflight_serialize_1mb", small_size, 200, 5, lambda: encode_in_flight(0, small)),
        Bench("bench_inflight_serialize_8mb", large_size, 200, None, lambda: encode_in_flight(0, large)),
        Bench("bench_inflight_read_10k", small_size, None, 50, lambda: decode_in_flight(file, 0)),
        Bench("bench_state_serialize_8mb", large_size, None, None, lambda: encode_state(0, whole)),
        Bench("bench_encode_2k_events", sum(map(len, encoded)), None, None, lambda: [*map(encode, MESSAGES)]),
        Bench("bench_decode_2k_events", sum(map(len, encoded)), None, None, lambda: [*map(decode, encoded)]),
        Bench("bench_checkpoint_2mb_memory", 2 * small_size, None, None, lambda: checkpoint("memory")),
        Bench("bench_checkpoint_2mb_directory", 2 * small_size, None, None, lambda: checkpoint("directory")),
        Bench("bench_load_2mb_directory", 2 * small_size, None, None, stores["directory"].latest_usable),
    ]


def measure(repeats: int) -> list[tuple[Bench, float]]:
    """Each benchmark with its least time in ms."""
    with TemporaryDirectory() as folder:
        rows = benches(folder)
        spent: dict[str, list[int]] = {row.name: [] for row in rows}
        gc.disable()
        try:
            for _ in range(repeats):
                for row in rows:
                    clock = perf_counter_ns if "directory" in row.name else process_time_ns
                    begin = clock()
                    row.work()
                    spent[row.name].append(clock() - begin)
                gc.collect()
        finally:
            gc.enable()
    return [(row, min(spent[row.name]) / 1e6) for row in rows]


def line(row: Bench, ms: float) -> str:
    """A row of the table."""
    speed = row.size / MEGABYTE / ms * 1000
    targets = []
    if row.least_mb_per_s is not None:
        targets.append(f">= {row.least_mb_per_s:g} MB/s {'ok' if speed >= row.least_mb_per_s else 'MISSED'}")
    if row.most_ms is not None:
        targets.append(f"< {row.most_ms:g} ms {'ok' if ms < row.most_ms else 'MISSED'}")
    return f"{row.name:<42} {ms:8.2f} ms {speed:8.0f} MB/s  {', '.join(targets)}".rstrip()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, metavar="N", help="interleaved repeats (default: 15)")
    for row, ms in measure(parser.parse_args().repeats):
        print(line(row, ms))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
