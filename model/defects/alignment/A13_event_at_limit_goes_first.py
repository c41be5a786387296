"""The event that hits the limit takes effect before those that wait ahead of it.

Source
    F-DCKP-002, "Buffer Memory Management": "On abort: cancel checkpoint, notify coordinator", with nothing on what was
    buffered, nor on the event at hand; no alignment is under way then, and an event passes. Entry A-13.
What goes wrong
    The event that cost the checkpoint overtakes all that its input holds.
Repair
    It is refused and stays in its channel until what was buffered has gone; the other barriers of that checkpoint are
    ignored when they come (protocol rules 6 and 7).
"""

from barrierlab.impl import AlignerAction, AlignmentAction, BarrierAligner, CheckpointBarrier
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class PassesWhatHitTheLimit(BarrierAligner):
    """The checkpoint is aborted first, and then there is no reason to hold anything."""

    def over_limit(self, current: CheckpointBarrier) -> AlignerAction:
        super().over_limit(current)
        return AlignmentAction.PASS_THROUGH


DEFECT = BarrierDefect(
    breaks="FIFO",
    bounds=Bounds("a->join b->join", events=2, max_buffer_memory_bytes=1),
    components=with_aligner(PassesWhatHitTheLimit),
    title="a1 waits, and there is no room for a2. The checkpoint is aborted for it, and a2 takes effect before a1.",
)
