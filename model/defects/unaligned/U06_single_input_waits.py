"""A task of one input waits for late barriers when there are none to come.

Source
    F-DCKP-006, `handle_barrier`, idle branch: flagged and forced come before the case of a single input, and the
    waiting state looks whether all barriers are in only when another comes. Entry U-06.
What goes wrong
    Every second barrier is taken for the late one of the checkpoint before: its checkpoint never ends.
Repair
    Look whether all are in once the first has been counted (protocol rule 17: complete at once).
"""

from barrierlab.impl import AlignerAction, AlignmentAction, CheckpointBarrier, UnalignedCheckpointer
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class WaitsForNobody(UnalignedCheckpointer):
    """Waits for late barriers also when all are in."""

    waits = False

    def begin_recording(self) -> bool:
        self.waits = super().begin_recording()
        return self.waits

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignerAction:
        if self.waits:
            self.waits = False
            return AlignmentAction.IGNORED
        return super().on_barrier(input_id, barrier, now_ns)


DEFECT = BarrierDefect(
    breaks="LIVE",
    bounds=Bounds("a->x x->s", mode="unaligned", events=0, checkpoints=2),
    components=with_aligner(WaitsForNobody),
    title="x takes its snapshot of checkpoint 1. The barrier of checkpoint 2 is taken for a late one.",
)
