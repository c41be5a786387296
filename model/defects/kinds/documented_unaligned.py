"""The `UnalignedCheckpointer` of F-DCKP-006 at its document's word: what the witnesses of the U-entries call.

Line by line, but for the clock, which is an argument, and for its panics: where it says ``unreachable!`` it answers so.
Numbers have 64 bits, as in a release build: a shift by 64 is one by 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barrierlab.impl.messages import CheckpointBarrier, Event

ReadInFlight = Callable[[int], Sequence[Event]]
SIZE_OF_EVENT = 24
"""The answer of `std::mem::size_of` for an event, whatever its payload."""


class DocumentedAnswer(NamedTuple):
    """The document's `UnalignedAction`, by name, with what it carries."""

    name: str
    barrier: CheckpointBarrier | None = None
    inflight: tuple[tuple[int, tuple[Event, ...]], ...] = ()
    input_id: int = -1

    def __str__(self) -> str:
        if self.name == "LateBarrier":
            return f"LateBarrier {self.input_id}"
        if self.barrier is None:
            return self.name
        carried = ", ".join(f"{i}: {' '.join(map(str, events))}" for i, events in self.inflight)
        return f"{self.name} {self.barrier} [{carried}]"


@dataclass(slots=True)
class Documented:
    """The state machine. `state` is ``Idle``, ``AligningWithTimeout`` or ``WaitingForLateBarriers``."""

    num_inputs: int = 2
    enabled: bool = True
    threshold: int = 30
    force_unaligned: bool = False
    state: str = "Idle"
    started: int = 0
    barrier: CheckpointBarrier | None = None
    inputs: int = 0
    buffers: tuple[deque[Event], ...] = ()
    unaligned_count: int = 0
    threshold_switches: int = 0
    total_inflight_bytes: int = 0

    def expected_mask(self) -> int:
        """``(1u64 << num_inputs) - 1``."""
        return ((1 << self.num_inputs % 64) - 1) % 2**64

    def handle_barrier(
        self, input_id: int, barrier: CheckpointBarrier, read_inflight: ReadInFlight = lambda _: (), now: int = 0
    ) -> DocumentedAnswer:
        """A barrier arrives."""
        if self.state == "Idle":
            if barrier.is_unaligned or self.force_unaligned:
                return self._take_unaligned_snapshot(input_id, barrier, read_inflight)
            if self.num_inputs == 1:
                return DocumentedAnswer("TakeSnapshot", barrier)
            self.buffers = tuple(deque() for _ in range(self.num_inputs))
            self.started, self.barrier, self.inputs = now, barrier, 1 << input_id
            self.state = "AligningWithTimeout"
            return DocumentedAnswer("unreachable!")
        assert self.barrier is not None
        self.inputs |= 1 << input_id
        complete = self.inputs == self.expected_mask()
        if self.state == "WaitingForLateBarriers":
            if complete:
                self.state = "Idle"
            return DocumentedAnswer("LateBarrier", input_id=input_id)
        if complete:
            self.state = "Idle"
            return DocumentedAnswer("TakeSnapshot", self.barrier)
        if self.should_switch_to_unaligned(now):
            self.threshold_switches += 1
            return self._take_unaligned_snapshot(input_id, self.barrier, read_inflight)
        return DocumentedAnswer("LateBarrier", input_id=input_id)

    def handle_event(self, input_id: int, event: Event) -> DocumentedAnswer:
        """An event arrives."""
        if self.state == "AligningWithTimeout" and self.inputs & 1 << input_id:
            self.buffers[input_id].append(event)
            return DocumentedAnswer("unreachable!")
        return DocumentedAnswer(f"PassThrough {event}")

    def should_switch_to_unaligned(self, now: int) -> bool:
        """To be "called periodically by the operator's event loop", which can do no more than ask."""
        return self.enabled and self.state == "AligningWithTimeout" and now - self.started > self.threshold

    def _take_unaligned_snapshot(
        self, trigger_input: int, barrier: CheckpointBarrier, read_inflight: ReadInFlight
    ) -> DocumentedAnswer:
        self.unaligned_count += 1
        inflight = []
        for input_id in range(self.num_inputs):
            if input_id != trigger_input and (events := tuple(read_inflight(input_id))):
                self.total_inflight_bytes += len(events) * SIZE_OF_EVENT
                inflight.append((input_id, events))
        self.state, self.barrier, self.inputs = "WaitingForLateBarriers", barrier, 1 << trigger_input
        self.buffers = ()
        return DocumentedAnswer("TakeSnapshot", barrier, tuple(inflight))
