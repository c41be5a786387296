"""An event is before the barrier if its sequence number is not greater.

Source
    F-DCKP-002, "Algorithm/Flow": "all events from ALL inputs with sequence number <= barrier have been processed". A
    barrier has an id and no sequence number. Entry A-21.
What goes wrong
    By the letter event 1 is before checkpoint 1, wherever it is in its channel. It passes on an input that waits, and
    the snapshot has what its source sends again.
Repair
    Read it as "ahead of the barrier on that channel": the invariant of `impl.checkpoint.alignment`.
"""

from barrierlab.impl import AlignerAction, AlignmentAction, BarrierAligner, Event, StreamMessage
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class ComparesNumbers(BarrierAligner):
    """The invariant to the letter."""

    def process_message(self, input_id: int, message: StreamMessage, now_ns: int = 0) -> AlignerAction:
        current = self.barrier
        if current is not None and type(message) is Event and message.sequence <= current.checkpoint_id:
            return AlignmentAction.PASS_THROUGH
        return super().process_message(input_id, message, now_ns)


DEFECT = BarrierDefect(
    breaks="CUT",
    bounds=Bounds("a->join b->join", events=1),
    components=with_aligner(ComparesNumbers),
    title="a1 comes behind a's barrier 1. Its number is not greater, so it passes into the snapshot.",
)
