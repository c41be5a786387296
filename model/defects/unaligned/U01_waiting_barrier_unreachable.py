"""The normal path ends in a panic: there is no answer that says that a barrier has to wait.

Source
    F-DCKP-006, `handle_barrier`, idle branch: having begun to align, "signal that this input is now considered aligned
    but no event to pass through", an `unreachable!` inside a `PassThrough`. `handle_event` has another for what is
    buffered. Entry U-01.
What goes wrong
    The first barrier of any aligned checkpoint at a task of two inputs or more brings the task down.
Repair
    Two answers more: the input waits, and the message is buffered (protocol rule 19).
"""

from barrierlab.impl import AlignerAction, AlignmentAction, CheckpointBarrier, UnalignedCheckpointer
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class HasNothingToPass(UnalignedCheckpointer):
    """Has no word for waiting."""

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignerAction:
        action = super().on_barrier(input_id, barrier, now_ns)
        assert action is not AlignmentAction.BLOCKED, "barrier handled, no event to pass"
        return action


DEFECT = BarrierDefect(
    breaks="RAISED",
    bounds=Bounds("a->join b->join join->s", mode="aligned_with_timeout", events=0),
    components=with_aligner(HasNothingToPass),
    title="One barrier comes to a task of two inputs, in good time.",
)
