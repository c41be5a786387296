"""The barrier leaves behind the records that waited behind it.

Source
    F-DCKP-002, "Aligned Checkpoint Flow", step 5: (c) processes the drained events, (d) then forwards the barrier. Its
    own goals have them the other way round. Entry A-04.
What goes wrong
    What comes of post-barrier records reaches the next task ahead of the barrier, so its snapshot has them and this
    task's has not: orphans, and duplicates after a recovery.
Repair
    Forward right after the image, before anything buffered is drained (protocol rule 8).
"""

from barrierlab.impl import CheckpointBarrier, OperatorTask
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


class DrainsFirst(OperatorTask):
    """Drains what is buffered, and forwards then."""

    late: CheckpointBarrier | None = None

    def forward(self, barrier: CheckpointBarrier) -> None:
        self.late = barrier

    def resume(self, checkpoint_id: int) -> None:
        super().resume(checkpoint_id)
        self.gate.drain_all(0)
        if self.late is not None:
            super().forward(self.late)
            self.late = None


DEFECT = BarrierDefect(
    breaks="FWD",
    bounds=Bounds("a->join b->join join->s", events=1),
    components=Components(task=DrainsFirst),
    title="a1 waits behind a's barrier. b's barrier ends that; a1 goes on to s, and the barrier follows it.",
)
