"""The floor under the aligner's rows of `bench_impl`: what its rules cost where there is nothing else.

    python -m tests.bench.bench_least [--repeats N]

Each class does what one situation asks for, as plainly as CPython lets it, and knows no other situation, error or
message. What is quicker gives up a rule or another row: a list of the inputs takes -1 for the last of them (defect
A-14), one dict that says both whether an event passes and where it is buffered lets it pass slower, and a buffer
without bytes has no limit in them (protocol rule 7). An aligner in two methods leaves no decision that the tracker, the
unaligned aligner or a planted defect could replace.
"""

from __future__ import annotations

import argparse
import gc
from collections import deque
from itertools import repeat
from time import process_time_ns
from typing import TYPE_CHECKING

from barrierlab.impl import AlignmentAction, CheckpointBarrier, Event
from tests.bench.bench_impl import (
    ROOMY,
    ROUNDS,
    bench_event_buffering,
    bench_pass_through,
    bench_two_input_alignment,
    floor,
    loop,
)
from tests.bench.ratios import Ratio

if TYPE_CHECKING:
    from collections.abc import Callable

PASSES = AlignmentAction.PASS_THROUGH
BUFFERED = AlignmentAction.BUFFERED
BLOCKED = AlignmentAction.BLOCKED
TRIGGER = AlignmentAction.TRIGGER_SNAPSHOT


class Passing:
    """Lets an event pass: its kind and its input are looked at."""

    __slots__ = ("free",)

    def __init__(self) -> None:
        self.free = {0, 1}

    def process(self, input_id: int, message: object, now_ns: int = 0) -> AlignmentAction | None:
        """Return what is to be done with the message."""
        if type(message) is Event and input_id in self.free:
            return PASSES
        return None


class Buffering:
    """Buffers an event, unless that exceeds a limit; on a free input it would pass."""

    __slots__ = ("bytes_left", "free", "most", "queues")

    def __init__(self) -> None:
        self.free = {1}
        self.queues: dict[int, deque[Event]] = {0: deque(), 1: deque()}
        self.most = self.bytes_left = ROOMY

    def process(self, input_id: int, message: object, now_ns: int = 0) -> AlignmentAction | None:
        """Return what is to be done with the message."""
        if type(message) is Event:
            if input_id in self.free:
                return PASSES
            queue = self.queues[input_id]
            left = self.bytes_left - message.size_bytes
            if left >= 0 and len(queue) < self.most:
                queue.append(message)
                self.bytes_left = left
                return BUFFERED
        return None


class Aligning:
    """Aligns two inputs, all in two methods."""

    __slots__ = ("barrier", "blocked", "completed", "first_ns", "free", "last_id", "longest_ns", "queues", "triggered")

    def __init__(self) -> None:
        self.free, self.blocked = {0, 1}, set[int]()
        self.queues: dict[int, deque[Event]] = {0: deque(), 1: deque()}
        self.barrier: CheckpointBarrier | None = None
        self.triggered = False
        self.completed = self.first_ns = self.last_id = self.longest_ns = 0

    def process(self, input_id: int, message: object, now_ns: int = 0) -> AlignmentAction | None:
        """Return what is to be done with the message."""
        if type(message) is Event or input_id not in self.free or type(message) is not CheckpointBarrier:
            return None
        if self.barrier is None:
            if message.checkpoint_id <= self.last_id:
                return None
            self.barrier = message
            self.first_ns = now_ns
        elif message is not self.barrier:
            return None
        blocked = self.blocked
        blocked.add(input_id)
        self.free.discard(input_id)
        if len(blocked) < 2:
            return BLOCKED
        self.triggered = True
        if now_ns - self.first_ns > self.longest_ns:
            self.longest_ns = now_ns - self.first_ns
        return TRIGGER

    def complete(self) -> None:
        """Complete the checkpoint."""
        barrier = self.barrier
        if barrier is None or not self.triggered:
            raise AssertionError("no barrier, or not all of them")
        self.completed += 1
        self.last_id = barrier.checkpoint_id
        self.barrier = None
        self.triggered = False
        self.first_ns = 0
        for input_id in self.blocked:
            if self.queues[input_id]:
                raise AssertionError("nothing is buffered here")
        self.free |= self.blocked
        self.blocked.clear()


class Deciding(Aligning):
    """Aligns two inputs, each decision a method that another aligner could override."""

    __slots__ = ()

    def process(self, input_id: int, message: object, now_ns: int = 0) -> AlignmentAction | None:
        """Return what is to be done with the message."""
        if type(message) is Event or input_id not in self.free or type(message) is not CheckpointBarrier:
            return None
        return self.on_barrier(input_id, message, now_ns)

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignmentAction | None:
        """Handle a barrier."""
        if self.barrier is None:
            if barrier.checkpoint_id <= self.last_id:
                return None
            self.barrier = barrier
            self.first_ns = now_ns
        elif barrier is not self.barrier:
            return None
        blocked = self.blocked
        blocked.add(input_id)
        self.free.discard(input_id)
        return BLOCKED if len(blocked) < 2 else self.all_in(now_ns)

    def all_in(self, now_ns: int) -> AlignmentAction:
        """Handle the last barrier."""
        self.triggered = True
        if now_ns - self.first_ns > self.longest_ns:
            self.longest_ns = now_ns - self.first_ns
        return TRIGGER

    def complete(self) -> None:
        """Complete the checkpoint."""
        barrier = self.barrier
        if barrier is None or not self.triggered:
            raise AssertionError("no barrier, or not all of them")
        self.completed += 1
        self.terminate(barrier.checkpoint_id)

    def terminate(self, checkpoint_id: int) -> None:
        """End the checkpoint, completed or aborted."""
        self.last_id = checkpoint_id
        self.barrier = None
        self.triggered = False
        self.first_ns = 0
        for input_id in self.blocked:
            if self.queues[input_id]:
                raise AssertionError("nothing is buffered here")
        self.free |= self.blocked
        self.blocked.clear()


def of_events(machine: Passing | Buffering, action: AlignmentAction) -> float:
    """An event, in ns."""
    process, event = machine.process, Event("a", 1)
    assert process(0, event) is action
    begin = process_time_ns()
    for _ in repeat(None, ROUNDS):
        process(0, event)
    return (process_time_ns() - begin) / ROUNDS


def of_barriers(machine: Aligning) -> float:
    """A barrier on each of two inputs, and complete, in ns."""
    process, complete = machine.process, machine.complete
    barriers = [CheckpointBarrier(n, n) for n in range(1, ROUNDS + 1)]
    begin = process_time_ns()
    for barrier in barriers:
        process(0, barrier)
        process(1, barrier)
        complete()
    spent = process_time_ns() - begin
    assert machine.completed == ROUNDS
    return spent / ROUNDS


# What is there, its floor, and what its name in the table has beside that of `bench_impl`.
PAIRS: tuple[tuple[Callable[[], float], Callable[[], float], str], ...] = (
    (bench_pass_through, lambda: of_events(Passing(), PASSES), ""),
    (bench_event_buffering, lambda: of_events(Buffering(), BUFFERED), ""),
    (bench_two_input_alignment, lambda: of_barriers(Aligning()), ", in two methods"),
    (bench_two_input_alignment, lambda: of_barriers(Deciding()), ", a method a decision"),
)


def measure(repeats: int) -> tuple[float, list[tuple[float, float]]]:
    """Return the ns of an empty call, and those of each pair: the least of interleaved repeats, without the loop."""
    spent: list[tuple[float, ...]] = []
    gc.disable()
    try:
        for _ in range(repeats):
            spent.append((loop(), floor(), *(bench() for pair in PAIRS for bench in pair[:2])))
            gc.collect()
    finally:
        gc.enable()
    empty, *least = map(min, zip(*spent, strict=True))
    call_ns, *both = (ns - empty for ns in least)
    return call_ns, list(zip(both[::2], both[1::2], strict=True))


def ratios(repeats: int = 15) -> list[Ratio]:
    """For the kept table: each row of `bench_impl` as a multiple of what its rules cost alone."""
    _, both = measure(repeats)
    return [
        Ratio(bench.__name__ + which, ns / least_ns, "its rules alone")
        for (bench, _, which), (ns, least_ns) in zip(PAIRS, both, strict=True)
    ]


def main() -> None:
    """Print each pair in empty calls, and its ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    call_ns, both = measure(parser.parse_args().repeats)
    for (bench, _, which), (ns, least_ns) in zip(PAIRS, both, strict=True):
        calls = f"{ns / call_ns:5.2f} and {least_ns / call_ns:5.2f} empty calls"
        print(f"{bench.__name__ + which:46} {ns / least_ns:5.2f} x its rules alone: {calls}")


if __name__ == "__main__":
    main()
