"""Nothing looks at how much is in flight.

Source
    F-DCKP-006, `max_inflight_buffer_bytes`: "If exceeded, the checkpoint fails"; the code names it nowhere else. It
    counts `events.len() * std::mem::size_of::<T>()`, the size of the type and not of what an event carries. Entry U-16.
What goes wrong
    Whatever is in the channels is recorded, and what is counted is too little. (What comes after the snapshot has to
    count as well, which the document does not record at all.)
Repair
    One limit for the whole recording of a checkpoint, queued and later, by the size that the caller gives: over it, the
    checkpoint is declined (protocol rule 18).
"""

from impl.alignment import BarrierAlignerConfig
from impl.messages import CheckpointBarrier, Event
from impl.unaligned import UnalignedCheckpointConfig, UnalignedCheckpointer
from model.defects.unaligned_as_documented import Documented
from model.defects.witness import Witness

BARRIER = CheckpointBarrier.new_unaligned(1, 1)
EVENTS = tuple(Event("b", n, size_bytes=400) for n in (1, 2, 3))
LIMIT = 1000


def documented() -> tuple[str, ...]:
    """Input 1 has 1200 bytes in flight, of which 1000 are allowed."""
    machine = Documented()
    answer = machine.handle_barrier(0, BARRIER, lambda _: EVENTS)
    return str(answer), f"{machine.total_inflight_bytes} bytes counted"


def sound() -> tuple[str, ...]:
    """The same: they come one by one, ahead of the barrier."""
    machine = UnalignedCheckpointer(BarrierAlignerConfig(2), UnalignedCheckpointConfig(True, 30, LIMIT))
    machine.process_message(0, BARRIER)
    machine.begin_recording()
    answers = [machine.process_message(1, event).name for event in EVENTS]
    return " ".join(answers), f"{machine.total_inflight_bytes} bytes counted", *(str(why) for _, why in machine.aborts)


DEFECT = Witness(
    entry="U-16",
    kind="bound",
    broken=documented,
    right=sound,
    wrong_lines=("TakeSnapshot barrier 1 unaligned [1: b1 b2 b3]", "72 bytes counted"),
    right_lines=("RECORDED RECORDED PASS_THROUGH", "800 bytes counted", "in-flight limit"),
)
