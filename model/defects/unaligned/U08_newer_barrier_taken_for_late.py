"""No barrier is asked which checkpoint it is of.

Source
    F-DCKP-006, `handle_barrier`: no state compares ids. Entry U-08.
What goes wrong
    While barriers of checkpoint 1 are missing, that of checkpoint 2 on an input that has delivered counts as a late one
    of checkpoint 1 and is gone. The other inputs' barriers begin checkpoint 2, which waits for the one that is gone.
Repair
    It waits, with all that is behind it, until the part is complete; older ones are ignored (protocol rules 6, 17).
"""

from barrierlab.impl import AlignerAction, AlignmentAction, StreamMessage, UnalignedCheckpointer
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class SwallowsTheNewer(UnalignedCheckpointer):
    """Takes what is of a newer checkpoint, and nothing comes of it."""

    def on_newer(self, input_id: int, message: StreamMessage, now_ns: int) -> AlignerAction:
        return AlignmentAction.IGNORED


DEFECT = BarrierDefect(
    breaks="LIVE",
    bounds=Bounds("a->join b->join join->s", mode="unaligned", events=0, checkpoints=2),
    components=with_aligner(SwallowsTheNewer),
    title="a's barrier of checkpoint 2 comes while b's of checkpoint 1 is missing. It is consumed as a late one.",
)
