"""The outputs of earlier records are still in the operator's batch when the barrier goes out.

Source
    F-DCKP-001, "Barrier Propagation Through Operators", step 2c: "snapshot operator state ... forward barrier"; nothing
    is said of outputs that are not sent yet. Entry P-11.
What goes wrong
    The batch leaves behind the barrier: the source's position is behind the record, the next task's snapshot has not
    got what came of it, and after a restore nobody makes it again.
Repair
    Flush what came of earlier messages, then take the image and forward (protocol rule 8).
"""

from barrierlab.impl import Event, OperatorTask
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


class BatchingTask(OperatorTask):
    """Keeps its outputs back until a batch is full, or nothing more comes."""

    batch: tuple[Event, ...] = ()

    def send(self, event: Event) -> None:
        self.batch = (*self.batch, event)

    def resume(self, checkpoint_id: int) -> None:
        super().resume(checkpoint_id)
        self.flush()

    def end_input(self, input_id: int) -> None:
        self.flush()
        super().end_input(input_id)

    def flush(self) -> None:
        """Send the batch."""
        for event in self.batch:
            super().send(event)
        self.batch = ()


DEFECT = BarrierDefect(
    breaks="FWD",
    bounds=Bounds("a->x x->s", events=1),
    components=Components(task=BatchingTask),
    title="x has taken a1 and keeps what came of it; the barrier passes, and a1 follows it to s.",
)
