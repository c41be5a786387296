"""With a state for each checkpoint, an event is held by the oldest, and drained ahead of a barrier that it followed.

Source
    F-DCKP-002: the diagram says "State machine per checkpoint_id", and step 2a "if first barrier for this
    checkpoint_id"; the struct has one `current`. Entry A-18.
What goes wrong
    With one state, barriers behind barriers are lost (A-05). With one for each id they are not; but an input may then
    be aligned in two of them, and what comes next is held by the first in which it is. That drains what the second
    should hold: FIFO breaks, and the cut of the second as soon as it completes.
Repair
    One state, at most one current id, and a barrier behind another keeps its place (protocol rules 6 and 7).
"""

from barrierlab.impl import AlignerAction, BarrierAligner, CheckpointBarrier, Event, StreamMessage
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class ReleasesEventsFirst(BarrierAligner):
    """All events are the older state's; the barriers among them have marked the newer ones, and act behind them."""

    def drain_next(self, now_ns: int = 0) -> tuple[int, StreamMessage, AlignerAction] | None:
        if self.inputs.ready:
            queue = self.inputs.queues[self.inputs.ready[0]]
            while type(queue[0]) is CheckpointBarrier and any(type(each) is Event for each in queue):
                queue.rotate(-1)
        return super().drain_next(now_ns)


DEFECT = BarrierDefect(
    kind="contradiction",
    breaks="FIFO",
    bounds=Bounds("a->join b->join", events=1, checkpoints=2),
    components=with_aligner(ReleasesEventsFirst),
    title="a1 waits behind a's barriers 1 and 2, both noted. b's barrier 1 ends checkpoint 1, and a1 goes ahead of 2.",
)
