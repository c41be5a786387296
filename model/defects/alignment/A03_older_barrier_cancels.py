"""A stale barrier of a lower id cancels the newer checkpoint that is under way.

Source
    F-DCKP-002, "Error Handling", `UnexpectedBarrier`: "Barrier with mismatched checkpoint_id during alignment: treat
    as new checkpoint (cancel current)", lower or higher. Entry A-03.
What goes wrong
    Checkpoint 1 was aborted and 2 is under way; a barrier 1 that is still in a channel ends 2 and begins 1 again,
    which can never align: the other input has passed it. Ids go back, which breaks first.
Repair
    Only a higher id supersedes (protocol rule 6).
"""

from barrierlab.impl import AlignerAction, BarrierAligner, CheckpointBarrier, Reason
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class AnyOtherSupersedes(BarrierAligner):
    """The table of errors to the letter."""

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignerAction:
        current = self.barrier
        if current is not None and barrier.checkpoint_id < current.checkpoint_id:
            self.abort_here(current.checkpoint_id, Reason.SUBSUMED)
            self.last_terminated_id = barrier.checkpoint_id - 1
        return super().on_barrier(input_id, barrier, now_ns)


DEFECT = BarrierDefect(
    breaks="ID",
    bounds=Bounds("a->join b->join", events=0, checkpoints=2, aborts_one=(1, 0)),
    components=with_aligner(AnyOtherSupersedes),
    title="Checkpoint 1 is aborted, and a's barrier 2 begins the next. b's barrier 1 cancels it and begins 1 again.",
)
