"""An input that has ended is waited for.

Source
    F-DCKP-002, "Non-Goals": "Dynamic addition/removal of input channels during alignment"; there is no end of input
    among its messages. Entry A-15.
What goes wrong
    From the end of one input on, every checkpoint waits for a barrier that nobody will send, until it expires.
Repair
    An end counts as delivered, for the current and every later checkpoint, and may itself complete one (rule 13).
"""

from barrierlab.impl import AlignerAction, AlignmentAction, BarrierAligner
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class WaitsForAll(BarrierAligner):
    """The number of inputs is what it was at first."""

    def on_end(self, input_id: int, now_ns: int) -> AlignerAction:
        self.inputs.takes.pop(input_id, None)
        self.free.discard(input_id)
        return AlignmentAction.INPUT_ENDED


DEFECT = BarrierDefect(
    breaks="LIVE",
    bounds=Bounds("a->join b->join", events=0, closes=True),
    components=with_aligner(WaitsForAll),
    title="a ends, and then checkpoint 1 is triggered. b delivers its barrier, and waits for a for ever.",
)
