"""The cost of storing a checkpoint and going on from it, beside a join and a checksum of the same bytes.

    python -m tests.bench.bench_store [--repeats N]

Each figure is the best of interleaved repeats: processor time, which other work on the machine stretches less than
the clock's, but the clock's where a directory is waited for. The targets are those of F-DCKP-006, "Performance
Targets" and "Benchmarks": in-flight data is serialised at 200 MB/s or more, 1 MB of it in less than 5 ms, and a job
is restored with 10,000 events in flight in less than 50 ms. A row without a target is there to be watched.
"""

from __future__ import annotations

import argparse
import gc
from collections import deque
from collections.abc import Callable
from tempfile import TemporaryDirectory
from time import perf_counter_ns, process_time_ns
from typing import NamedTuple
from zlib import crc32

from barrierlab.impl import (
    Acknowledge,
    BarrierAligner,
    BarrierAlignerConfig,
    DirectoryStore,
    Event,
    InFlight,
    InFlightChannelData,
    Manifest,
    MemoryStore,
    OperatorTask,
    SourceTask,
    TaskSnapshot,
    Wiring,
    decode,
    encode,
    plan,
    snapshot_of,
)
from barrierlab.impl.storage.snapshot import decode_in_flight, encode_in_flight, encode_state
from tests.bench.ratios import Ratio

SMALL = tuple(bytes([n % 256]) * 100 for n in range(10_000))  # 1 MB
LARGE = tuple(bytes([n % 256]) * 32_768 for n in range(256))  # 8 MB
MESSAGES = [Event("a", n, key=n % 100, value=(n, "x")) for n in range(2_000)]
STORED = TaskSnapshot("join", 0, b"".join(SMALL), inputs=(InFlight(0, SMALL),))
MEGABYTE = 1_000_000
WIRING = Wiring({"a": ("a", 0), "t": ("t", 0)}, {"a": (), "t": ("a->t",)}, {"a": ("a->t",), "t": ()})


class Bench(NamedTuple):
    """A measurement: what it is called, how many bytes it handles, what it may take, and the work itself."""

    name: str
    size: int
    least_mb_per_s: float | None
    most_ms: float | None
    work: Callable[[], object]


class Counter:
    """An operator with a small state."""

    def process(self, input_id: int, event: Event) -> tuple[Event, ...]:
        return ()

    def on_watermark(self, timestamp_ms: int) -> tuple[Event, ...]:
        return ()

    def on_end(self, input_id: int) -> tuple[Event, ...]:
        return ()

    def checkpoint(self) -> object:
        return self.state

    def restore(self, image: object) -> None:
        self.state = image


def checkpoint_with(count: int) -> MemoryStore:
    """A job of a source and a task whose newest checkpoint has so many events in flight between them."""
    store = MemoryStore()
    events = tuple(Event("a", n, key=n % 100, value=n, timestamp_ms=n) for n in range(1, count + 1))
    record = (InFlightChannelData(0, events, count),) if events else ()
    parts = (
        Acknowledge("a", 1, position=count + 1, image=count + 1),
        Acknowledge("t", 1, image=(1, "state"), is_unaligned=True, inflight=record),
    )
    store.begin(1)
    store.complete(Manifest(1, 1, True, tuple(store.write(1, snapshot_of(part, part.task, 0)) for part in parts)))
    return store


def recover(store: MemoryStore) -> int:
    """Read, plan, restored; how many messages are in the channel then."""
    restore = plan(store.latest_usable().checkpoint, WIRING)
    task = OperatorTask("t", Counter(), BarrierAligner(BarrierAlignerConfig(num_inputs=1)))
    for each in (SourceTask("a"), task):
        each.recover(restore.tasks[each.name], restore.checkpoint_id)
    return len(deque(restore.channels["a->t"]))


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
    nothing, ten_thousand = checkpoint_with(0), checkpoint_with(10_000)
    assert (recover(nothing), recover(ten_thousand)) == (0, 10_000)
    record = ten_thousand.latest_usable().checkpoint.snapshots[1].inputs[0]
    return [
        Bench("floor: join of 10,000 events of 100 bytes", small_size, None, None, lambda: b"".join(SMALL)),
        Bench("floor: join of 256 events of 32 KiB", large_size, None, None, lambda: b"".join(LARGE)),
        Bench("floor: CRC-32", large_size, None, None, lambda: crc32(whole)),
        Bench("bench_inflight_serialize_1mb", small_size, 200, 5, lambda: encode_in_flight(0, small)),
        Bench("bench_inflight_serialize_8mb", large_size, 200, None, lambda: encode_in_flight(0, large)),
        Bench("floor: recovery with nothing in flight", 1, None, None, lambda: recover(nothing)),
        Bench("bench_unaligned_recovery_10k_inflight", record.size_bytes, None, 50, lambda: recover(ten_thousand)),
        Bench("bench_inflight_read_10k", small_size, None, None, lambda: decode_in_flight(file, 0)),
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


FLOORS = {  # the floor of each row: CRC-32 of 8 MB where there is none
    "bench_inflight_serialize_1mb": "floor: join of 10,000 events of 100 bytes",
    "bench_inflight_serialize_8mb": "floor: join of 256 events of 32 KiB",
    "bench_unaligned_recovery_10k_inflight": "floor: recovery with nothing in flight",
}


def ratios(repeats: int = 15) -> list[Ratio]:
    """For the kept table; without what waits for a directory, which no floor here does."""
    spent = {row.name: ms for row, ms in measure(repeats) if "directory" not in row.name}
    found = []
    for name, ms in spent.items():
        if not name.startswith("floor: "):
            floor = FLOORS.get(name, "floor: CRC-32")
            found.append(Ratio(name, ms / spent[floor], floor.removeprefix("floor: ")))
    return found


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
