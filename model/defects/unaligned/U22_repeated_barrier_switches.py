"""A barrier that comes twice makes the task switch, and drops what waited behind it.

Source
    F-DCKP-006, `handle_barrier`, aligning: whatever barrier comes when the threshold has passed switches, also one of
    an input that has delivered; `take_unaligned_snapshot` replaces the state with its buffers. Entry U-22.
What goes wrong
    No input has delivered that had not before, so nothing says that it is time; harmless alone, were not the events
    gone that were buffered.
Repair
    A repeated barrier is ignored (protocol rule 6); the clock switches (rule 15), and what was buffered is drained
    (16).
"""

from barrierlab.impl import (
    BarrierAlignerConfig,
    CheckpointBarrier,
    Event,
    UnalignedCheckpointConfig,
    UnalignedCheckpointer,
)
from barrierlab.model.defects.kinds.documented_unaligned import Documented
from barrierlab.model.defects.kinds.witness import Witness

BARRIER = CheckpointBarrier(1, 1)


def documented() -> tuple[str, ...]:
    """Input 0 of three delivers, a2 comes behind, and then the barrier comes once more, after the threshold."""
    machine = Documented(num_inputs=3, threshold=30)
    machine.handle_barrier(0, BARRIER, now=0)
    machine.handle_event(0, Event("a", 2))
    buffered = sum(map(len, machine.buffers))
    answer = machine.handle_barrier(0, BARRIER, now=31)
    return f"buffered: {buffered}", f"at 31: {answer}", f"buffered: {sum(map(len, machine.buffers))}"


def sound() -> tuple[str, ...]:
    """The same."""
    machine = UnalignedCheckpointer(BarrierAlignerConfig(3), UnalignedCheckpointConfig(True, 30))
    machine.process_message(0, BARRIER, 0)
    machine.process_message(0, Event("a", 2), 0)
    buffered = machine.buffered_event_count()
    answer = machine.process_message(0, BARRIER, 31)
    return f"buffered: {buffered}", f"at 31: {answer.name}", f"buffered: {machine.buffered_event_count()}"


DEFECT = Witness(
    kind="safety",
    broken=documented,
    right=sound,
    right_lines=("buffered: 1", "at 31: IGNORED", "buffered: 1"),
)
