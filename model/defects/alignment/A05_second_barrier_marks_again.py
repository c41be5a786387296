"""A barrier that comes in behind another marks its input once more, and is gone.

Source
    F-DCKP-002, "Data Structures": `buffers` hold events only, and `process_message` handles a barrier at once,
    whether its input is blocked or not. Entry A-05.
What goes wrong
    Whenever an input is more than one checkpoint ahead, its second barrier is swallowed. All behind it is drained
    with the rest, and the next checkpoint waits for it for ever. (With A-01 it completes, and its cut is wrong.)
Repair
    Hold whole messages, barriers too, and let them step through the aligner again when drained (rules 7 and 8).
"""

from barrierlab.impl import AlignerAction, AlignmentAction, BarrierAligner, CheckpointBarrier, StreamMessage
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class HoldsNoBarrier(BarrierAligner):
    """A bit that is set twice is set."""

    def process_message(self, input_id: int, message: StreamMessage, now_ns: int = 0) -> AlignerAction:
        if type(message) is CheckpointBarrier and self.is_blocked(input_id):
            return AlignmentAction.IGNORED
        return super().process_message(input_id, message, now_ns)


DEFECT = BarrierDefect(
    breaks="LIVE",
    bounds=Bounds("a->join b->join", events=0, checkpoints=2),
    components=with_aligner(HoldsNoBarrier),
    title="a's barrier 2 comes in while a waits for checkpoint 1, and is lost. Checkpoint 2 waits for it for ever.",
)
