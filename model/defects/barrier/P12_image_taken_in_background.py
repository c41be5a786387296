"""The state is saved in the background, while the next record changes it.

Source
    F-DCKP-001, "Barrier Propagation Through Operators", step 2c: "trigger async state save", and then forward and go
    on. Entry P-12.
What goes wrong
    A record that came behind the barrier is in the snapshot before it is copied, and the position of the source is in
    front of it: it counts twice after a restore.
Repair
    An immutable image, by copy or copy-on-write, before the next message (protocol rule 8). Writing it may take
    its time.
"""

from barrierlab.impl import CheckpointBarrier, Event, OperatorTask, Watermark
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


class SavesInTheBackground(OperatorTask):
    """The copy is made, and acknowledged, behind the next message."""

    saving: CheckpointBarrier | None = None

    def snapshot(self, barrier: CheckpointBarrier) -> None:
        self.saving = barrier

    def complete(self, barrier: CheckpointBarrier) -> None:
        pass

    def deliver(self, input_id: int, message: Event | Watermark) -> None:
        super().deliver(input_id, message)
        if self.saving is not None:
            super().snapshot(self.saving)
            super().complete(self.saving)
            self.saving = None


DEFECT = BarrierDefect(
    breaks="CUT",
    bounds=Bounds("a->s", events=2),
    components=Components(task=SavesInTheBackground),
    title="s forwards barrier 1 and goes on with a1. Only then is its state copied: a1 is in it, and was sent behind.",
)
