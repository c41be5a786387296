"""The snapshot is taken while events that have passed wait for the operator.

Source
    F-DCKP-002, `AlignmentAction`: `PassThrough` returns the event, and nothing says that it must be applied before the
    next message is given to the aligner. Its invariant asks for that. Entry A-08.
What goes wrong
    A caller that collects actions and carries out `TriggerSnapshot` first has a state without an event that the
    source's position has passed: it is lost.
Repair
    The caller's obligation is stated: what passes is applied before the next message is offered (protocol rule 8).
"""

from barrierlab.impl import Event, OperatorTask, Watermark
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


class AppliesInBatches(OperatorTask):
    """A task that collects what passes. A snapshot is urgent: it is taken first, then what came before it is done."""

    batch: tuple[tuple[int, Event | Watermark], ...] = ()
    cut_by: tuple[int, int] | None = None

    def deliver(self, input_id: int, message: Event | Watermark) -> None:
        self.buffer(input_id, message)
        self.batch = (*self.batch, (input_id, message))

    def block(self, input_id: int, checkpoint_id: int) -> None:
        self.cut_by = (input_id, checkpoint_id)

    def resume(self, checkpoint_id: int) -> None:
        self._apply()
        super().resume(checkpoint_id)

    def end_input(self, input_id: int) -> None:
        self._apply()
        super().end_input(input_id)

    def _apply(self) -> None:
        for input_id, message in self.batch:
            super().deliver(input_id, message)
        if self.cut_by is not None:
            super().block(*self.cut_by)
        self.batch, self.cut_by = (), None


DEFECT = BarrierDefect(
    breaks="CUT",
    bounds=Bounds("a->s", events=1),
    components=Components(task=AppliesInBatches),
    title="a1 passes, and waits for the operator of s. The barrier behind it comes in, and the image is without a1.",
)
