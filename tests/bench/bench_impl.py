"""The cost of the machines of `impl`, as multiples of an empty bound-method call measured in the same run.

    python -m tests.bench.bench_impl [--repeats N] [--documents]

Each figure is processor time, the least of interleaved repeats, less the loop around it. The documents' targets are
nanoseconds of compiled code; ours are ratios, which move less with the machine. A row without a target is there to be
watched.
"""

from __future__ import annotations

import argparse
import gc
from collections import deque
from itertools import repeat
from time import process_time_ns
from typing import TYPE_CHECKING, NamedTuple

from barrierlab.impl import (
    BarrierAligner,
    BarrierAlignerConfig,
    BarrierInjectorConfig,
    CheckpointBarrier,
    CheckpointBarrierInjector,
    Event,
    Gate,
    InjectBarrierCommand,
    UnalignedCheckpointer,
)
from barrierlab.impl.storage.snapshot import InFlight, decode_in_flight, encode_in_flight
from tests.bench.ratios import Ratio

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 20_000
ROOMY = 2**60
MEGABYTE = 1_000_000


class Row(NamedTuple):
    """One line of the table: a measurement in ns, and what it is to be at most."""

    name: str
    ns: float
    target: float | None  # as a multiple of the floor


class Empty:
    """The floor: a bound method that does nothing with two arguments."""

    __slots__ = ()

    def call(self, input_id: int, message: object) -> None:
        """Nothing."""


class NullPort:
    """A port that does nothing, so that only the gate is measured."""

    def _nothing(self, *_: object) -> None: ...

    deliver = end_input = snapshot = forward = complete = decline = cancel = _nothing
    buffer = block = resume = ignore = record = _nothing


def loop() -> float:
    """The loop alone."""
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        pass
    return (process_time_ns() - begin) / ROUNDS


def of_clock() -> int:
    """The time that asking for the time twice takes, which a measurement between the two includes."""
    return min(-(process_time_ns() - process_time_ns()) for _ in range(100))


def floor() -> float:
    """An empty call."""
    call, event = Empty().call, Event("a", 1)
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        call(0, event)
    return (process_time_ns() - begin) / ROUNDS


def bench_poll_barrier_no_pending() -> float:
    """An idle poll."""
    poll = CheckpointBarrierInjector(BarrierInjectorConfig(None)).poll_barrier
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        poll(0)
    return (process_time_ns() - begin) / ROUNDS


def bench_poll_barrier_with_pending() -> float:
    """A poll that finds a command."""
    injector = CheckpointBarrierInjector(BarrierInjectorConfig(None))
    inject, poll = injector.coordinator_handle().inject, injector.poll_barrier
    spent = 0
    for n in range(1, 2001):
        inject(InjectBarrierCommand(n, n))
        begin = process_time_ns()
        poll(0)
        spent += process_time_ns() - begin
    return spent / 2000 - of_clock()


def bench_barrier_injection_throughput() -> float:
    """Inject and poll, both."""
    injector = CheckpointBarrierInjector(BarrierInjectorConfig(None))
    inject, poll = injector.coordinator_handle().inject, injector.poll_barrier
    commands = [InjectBarrierCommand(n, n) for n in range(1, ROUNDS + 1)]
    begin = process_time_ns()
    for command in commands:
        inject(command)
        poll(0)
    return (process_time_ns() - begin) / ROUNDS


def bench_barrier_processing() -> float:
    """Receive a barrier on one input, snapshot, forward, complete, through a gate."""
    offer = Gate(BarrierAligner(BarrierAlignerConfig(num_inputs=1)), NullPort()).offer
    barriers = [CheckpointBarrier(n, n) for n in range(1, ROUNDS + 1)]
    begin = process_time_ns()
    for barrier in barriers:
        offer(0, barrier, 0)
    return (process_time_ns() - begin) / ROUNDS


def bench_stream_message_push_pop() -> float:
    """Through a queue and out again."""
    queue: deque[Event] = deque()
    push, pop, event = queue.append, queue.popleft, Event("a", 1)
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        push(event)
        pop()
    return (process_time_ns() - begin) / ROUNDS


def bench_pass_through() -> float:
    """An event, nothing under way."""
    process, event = BarrierAligner().process_message, Event("a", 1)
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        process(0, event)
    return (process_time_ns() - begin) / ROUNDS


def bench_pass_through_while_aligning() -> float:
    """An event on the input that is still to deliver."""
    aligner = BarrierAligner()
    aligner.process_message(1, CheckpointBarrier(1, 1))
    process, event = aligner.process_message, Event("a", 1)
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        process(0, event)
    return (process_time_ns() - begin) / ROUNDS


def bench_gate_pass_through() -> float:
    """An event through a gate to its port, nothing under way: what a task pays for each."""
    offer, event = Gate(BarrierAligner(), NullPort()).offer, Event("a", 1)
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        offer(0, event, 0)
    return (process_time_ns() - begin) / ROUNDS


def bench_event_buffering() -> float:
    """An event behind its input's barrier."""
    aligner = BarrierAligner()
    aligner.process_message(0, CheckpointBarrier(1, 1))
    process, event = aligner.process_message, Event("a", 1)
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        process(0, event)
    return (process_time_ns() - begin) / ROUNDS


def bench_single_input_alignment() -> float:
    """A barrier on the only input, and complete."""
    aligner = BarrierAligner(BarrierAlignerConfig(num_inputs=1))
    process, complete = aligner.process_message, aligner.complete_alignment
    barriers = [CheckpointBarrier(n, n) for n in range(1, ROUNDS + 1)]
    begin = process_time_ns()
    for barrier in barriers:
        process(0, barrier)
        complete()
    return (process_time_ns() - begin) / ROUNDS


def bench_two_input_alignment() -> float:
    """A barrier on each of two inputs, and complete."""
    aligner = BarrierAligner()
    process, complete = aligner.process_message, aligner.complete_alignment
    barriers = [CheckpointBarrier(n, n) for n in range(1, ROUNDS + 1)]
    begin = process_time_ns()
    for barrier in barriers:
        process(0, barrier)
        process(1, barrier)
        complete()
    return (process_time_ns() - begin) / ROUNDS


def _holding(events: int) -> BarrierAligner:
    aligner = BarrierAligner(BarrierAlignerConfig(2, 2 * events, ROOMY))
    aligner.process_message(0, CheckpointBarrier(1, 1))
    for sequence in range(events):
        aligner.process_message(0, Event("a", sequence))
    aligner.process_message(1, CheckpointBarrier(1, 1))
    return aligner


def _drain(events: int) -> float:
    aligner = _holding(events)
    begin = process_time_ns()
    aligner.complete_alignment()
    runs = aligner.drain_runs()
    spent = process_time_ns() - begin
    assert sum(len(queue) for _, queue in runs) == events
    return spent / events


def bench_buffer_drain_10k() -> float:
    """Release 10,000 held events as runs; per event."""
    return _drain(10_000)


def bench_alignment_with_100k_buffered() -> float:
    """Release 100,000 held events as runs; per event."""
    return _drain(100_000)


def bench_drain_next_10k() -> float:
    """Release 10,000 held events one by one; per event."""
    aligner = _holding(10_000)
    begin = process_time_ns()
    aligner.complete_alignment()
    while aligner.drain_next() is not None:
        pass
    return (process_time_ns() - begin) / 10_000


def bench_unaligned_trigger() -> float:
    """From a deadline that has passed to the snapshot; of two inputs one has delivered."""
    machine = UnalignedCheckpointer()
    spent = 0
    for n in range(1, 2001):
        machine.process_message(0, CheckpointBarrier(n, n))
        begin = process_time_ns()
        machine.on_time(30 * 10**9)
        spent += process_time_ns() - begin
        machine.begin_recording()
        machine.process_message(1, CheckpointBarrier(n, n))
        machine.complete_alignment()
    return spent / 2000 - of_clock()


def bench_mode_switch() -> float:
    """A whole switch through a gate, with 1,000 events held: snapshot, barrier forwarded, the first event released."""
    gate = Gate(UnalignedCheckpointer(BarrierAlignerConfig(2, ROOMY, ROOMY, ROOMY)), NullPort())
    gate.offer(0, CheckpointBarrier(1, 1), 0)
    for sequence in range(1000):
        gate.offer(0, Event("a", sequence), 0)
    begin = process_time_ns()
    gate.on_time(ROOMY - 1)
    gate.drain_next(0)
    spent = process_time_ns() - begin
    assert gate.unaligned is not None
    assert gate.unaligned.recording
    return spent


def bench_inflight_capture_10k() -> float:
    """Record 10,000 queued events that a barrier overtakes."""
    machine = UnalignedCheckpointer()
    queued = [Event("a", sequence) for sequence in range(10_000)]
    begin = process_time_ns()
    machine.process_overtaking(0, CheckpointBarrier(1, 1), queued)
    spent = process_time_ns() - begin
    assert machine.inflight_bytes == 10_000
    return spent


def bench_record_while_reading() -> float:
    """An event of an input whose barrier is missing, through a gate; each."""
    gate = Gate(UnalignedCheckpointer(), NullPort())
    gate.offer(0, CheckpointBarrier.new_unaligned(1, 1), 0)
    offer, event = gate.offer, Event("a", 1)
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        offer(1, event, 0)
    return (process_time_ns() - begin) / ROUNDS


PAYLOADS = [bytes(100)] * (MEGABYTE // 104)  # a megabyte with the lengths
RECORD = InFlight(0, tuple(PAYLOADS))
FILE = encode_in_flight(0, RECORD)


def bench_inflight_serialize_1mb() -> float:
    """A megabyte of events of 100 bytes into a file."""
    begin = process_time_ns()
    encode_in_flight(0, RECORD)
    return process_time_ns() - begin


def bench_inflight_read_1mb() -> float:
    """The same file, verified and read."""
    begin = process_time_ns()
    decode_in_flight(FILE, 0)
    return process_time_ns() - begin


# Name, what is measured, target as a multiple of the floor (None: watched only), whether the loop is to be taken off.
BENCHES: tuple[tuple[str, Callable[[], float], float | None, bool], ...] = (
    ("bench_poll_barrier_no_pending", bench_poll_barrier_no_pending, 1.6, True),
    ("bench_poll_barrier_with_pending", bench_poll_barrier_with_pending, None, False),
    ("bench_barrier_injection_throughput", bench_barrier_injection_throughput, None, True),
    ("bench_barrier_processing", bench_barrier_processing, None, True),
    ("bench_stream_message_push_pop", bench_stream_message_push_pop, None, True),
    ("bench_pass_through", bench_pass_through, 2.0, True),
    ("bench_pass_through_while_aligning", bench_pass_through_while_aligning, 2.0, True),
    ("bench_gate_pass_through", bench_gate_pass_through, None, True),
    ("bench_event_buffering", bench_event_buffering, 3.0, True),
    ("bench_single_input_alignment", bench_single_input_alignment, None, True),
    ("bench_two_input_alignment", bench_two_input_alignment, 15.0, True),
    ("bench_buffer_drain_10k", bench_buffer_drain_10k, None, False),
    ("bench_alignment_with_100k_buffered", bench_alignment_with_100k_buffered, None, False),
    ("bench_drain_next_10k", bench_drain_next_10k, None, False),
    ("bench_unaligned_trigger", bench_unaligned_trigger, None, False),
    ("bench_mode_switch", bench_mode_switch, None, False),
    ("bench_inflight_capture_10k", bench_inflight_capture_10k, None, False),
    ("bench_record_while_reading", bench_record_while_reading, None, True),
    ("bench_inflight_serialize_1mb", bench_inflight_serialize_1mb, None, False),
    ("bench_inflight_read_1mb", bench_inflight_read_1mb, None, False),
)
# The document's figures in nanoseconds, where Python can be held to them: 1 ms, and 200 MB a second.
MOST_NS = {
    "bench_mode_switch": 1e6,
    "bench_inflight_capture_10k": 1e6,
    "bench_inflight_serialize_1mb": 5e6,
}
DRAIN_NS = 50.0  # 20 million events a second
DRAINS = ("bench_buffer_drain_10k", "bench_alignment_with_100k_buffered")


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
            for name, bench, _target, _less_loop in BENCHES:
                spent[name].append(bench())
            gc.collect()
    finally:
        gc.enable()
    empty = min(loops)
    rows = [
        Row(name, min(spent[name]) - (empty if less_loop else 0.0), target)
        for name, _bench, target, less_loop in BENCHES
    ]
    return min(floors) - empty, rows


def ratios(repeats: int = 15) -> list[Ratio]:
    """For the kept table."""
    floor_ns, rows = measure(repeats)
    return [Ratio(row.name, row.ns / floor_ns, "an empty call") for row in rows]


class Documented(NamedTuple):
    """The figure of a document for one of its benchmarks.

    Attributes
    ----------
    document, figure : str
    unit_ns : float
        What the row's nanoseconds are divided by, to be in the figure's unit.
    unit : str
    carries_events : bool
        Whether it moves messages that each may be a batch of events; else barriers, or bytes.
    """

    document: str
    figure: str
    unit_ns: float
    unit: str
    carries_events: bool = False


D1, D2, D6 = "F-DCKP-001", "F-DCKP-002", "F-DCKP-006"
BATCH = 100  # events: to a document a message is a batch of them, and each machine takes it as one
RECOVERY = "bench_unaligned_recovery_10k_inflight"
DOCUMENTS = {
    "bench_poll_barrier_no_pending": Documented(D1, "< 10 ns", 1, "ns"),
    "bench_poll_barrier_with_pending": Documented(D1, "< 30 ns", 1, "ns"),
    "bench_barrier_processing": Documented(D1, "< 50 ns", 1, "ns"),
    "bench_stream_message_push_pop": Documented(D1, "< 60 ns", 1, "ns", True),
    "bench_barrier_injection_throughput": Documented(D1, "> 50 M/s (20 ns)", 1, "ns"),
    "bench_single_input_alignment": Documented(D2, "< 20 ns", 1, "ns"),
    "bench_two_input_alignment": Documented(D2, "< 100 ns", 1, "ns"),
    "bench_event_buffering": Documented(D2, "< 50 ns", 1, "ns", True),
    "bench_buffer_drain_10k": Documented(D2, "> 20 M/s (50 ns)", 1, "ns", True),
    "bench_alignment_with_100k_buffered": Documented(D2, "none", 1, "ns", True),
    "bench_unaligned_trigger": Documented(D6, "< 100 ns", 1, "ns"),
    "bench_inflight_capture_10k": Documented(D6, "< 1 ms", 1e6, "ms"),
    "bench_inflight_serialize_1mb": Documented(D6, "< 5 ms", 1e6, "ms"),
    "bench_mode_switch": Documented(D6, "< 1 ms", 1e6, "ms"),
    RECOVERY: Documented(D6, "< 50 ms", 1e6, "ms"),
}


def documented(repeats: int = 15) -> list[str]:
    """Return the documents' benchmarks as a table in Markdown, with what an event of a batch costs."""
    from tests.bench import bench_store

    floor_ns, rows = measure(repeats)
    spent = {row.name: row.ns for row in rows}
    spent[RECOVERY] = {row.name: ms * 1e6 for row, ms in bench_store.measure(repeats)}[RECOVERY]
    table = [
        f"| benchmark | document | its figure | here | of an event, {BATCH} a message | as empty calls |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, each in DOCUMENTS.items():
        ns = spent[name]
        batch = f"{ns / BATCH:.2g} ns" if each.carries_events else "-"
        here = f"{_shown(ns / each.unit_ns)} {each.unit}"
        table.append(f"| `{name}` | {each.document} | {each.figure} | {here} | {batch} | {_shown(ns / floor_ns)} |")
    return table


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def missed(row: Row, floor_ns: float) -> bool:
    """Return whether a row is beyond its target."""
    if row.name in DRAINS:
        return row.ns > DRAIN_NS
    if row.name in MOST_NS:
        return row.ns > MOST_NS[row.name]
    return row.target is not None and row.ns > row.target * floor_ns


def lines(floor_ns: float, rows: list[Row]) -> list[str]:
    """The table."""
    table = [f"{'floor: an empty bound-method call':<38} {floor_ns:8.1f} ns"]
    for row in rows:
        mark = "MISSED" if missed(row, floor_ns) else "ok"
        if row.name in DRAINS:
            target = f">= 20 M events/s: {1000 / row.ns:.0f} {mark}"
        elif row.name in MOST_NS:
            rate = f"{1000 * MEGABYTE / row.ns:.0f} MB/s " if row.name.endswith("1mb") else ""
            target = f"<= {MOST_NS[row.name] / 1e6:g} ms: {rate}{mark}"
        else:
            target = "" if row.target is None else f"<= {row.target:g}x {mark}"
        table.append(f"{row.name:<38} {row.ns:8.1f} ns {row.ns / floor_ns:6.1f}x  {target}".rstrip())
    return table


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, metavar="N", help="interleaved repeats (default: 15)")
    parser.add_argument("--documents", action="store_true", help="the documents' fifteen, beside their own figures")
    asked = parser.parse_args()
    print("\n".join(documented(asked.repeats) if asked.documents else lines(*measure(asked.repeats))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
