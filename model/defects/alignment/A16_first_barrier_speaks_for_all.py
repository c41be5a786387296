"""Barriers of one id that disagree are taken for the same.

Source
    F-DCKP-002, `handle_barrier`: of every barrier after the first, the id is looked at, and no more. Entry A-16.
What goes wrong
    Two inputs speak of different attempts, or of different kinds of checkpoint; the snapshot bears the fields of
    whichever came first.
Repair
    Epoch or flags that disagree on one id abort the checkpoint (protocol rule 6).
"""

from barrierlab.impl import AlignerAction, BarrierAligner, CheckpointBarrier
from barrierlab.impl.messages import UNALIGNED_FLAG
from barrierlab.model.defects.kinds.witness import Witness


class LooksAtTheId(BarrierAligner):
    """The first barrier goes in for all others of its id."""

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignerAction:
        current = self.barrier
        same = current is not None and current.checkpoint_id == barrier.checkpoint_id
        return super().on_barrier(input_id, current if same and current is not None else barrier, now_ns)


def _run(aligner: BarrierAligner) -> tuple[str, ...]:
    first, second = CheckpointBarrier(1, 4), CheckpointBarrier(1, 5, UNALIGNED_FLAG)
    lines = [aligner.process_message(0, first).name, aligner.process_message(1, second).name]
    if aligner.barrier is not None:
        lines.append(f"{aligner.barrier} of epoch {aligner.barrier.epoch}")
    return (*lines, *(f"{checkpoint_id} is aborted: {reason}" for checkpoint_id, reason in aligner.aborts))


DEFECT = Witness(
    kind="safety",
    broken=lambda: _run(LooksAtTheId()),
    right=lambda: _run(BarrierAligner()),
    right_lines=("BLOCKED", "ABORTED", "1 is aborted: barrier mismatch"),
)
