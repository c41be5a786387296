"""A barrier that comes in while the image is saved asks for the image once more.

Source
    F-DCKP-002, `handle_barrier` and `complete_alignment`: all bits stay set until the latter is called, and the
    callback may "initiate an async snapshot and return". Entry A-02.
What goes wrong
    Barrier 2 finds every bit set: checkpoint 1 is triggered again, and barrier 2 is gone, so that 2 never aligns.
Repair
    While a snapshot is under way nothing is taken; the image is one step (protocol rules 8 and 12).
"""

from barrierlab.impl import CheckpointBarrier, Gate, StreamMessage
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_gate


class SavesInItsOwnTime(Gate):
    """The image is saved while messages come in; when that is done is a deadline of this gate."""

    def take_snapshot(self) -> None:
        barrier = self.aligner.barrier
        assert barrier is not None
        self.port.snapshot(barrier)

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        if self.aligner.triggered and type(message) is CheckpointBarrier:
            self.port.ignore(input_id, message)
            self.take_snapshot()
            return True
        return super().offer(input_id, message, now_ns)

    def next_deadline_ns(self) -> int | None:
        return 0 if self.aligner.triggered else super().next_deadline_ns()

    def on_time(self, now_ns: int) -> bool:
        barrier = self.aligner.barrier
        if barrier is None or not self.aligner.triggered:
            return super().on_time(now_ns)
        self.port.forward(barrier)
        self.aligner.complete_alignment()
        self.port.complete(barrier)
        self.resume(barrier.checkpoint_id)
        return True


DEFECT = BarrierDefect(
    breaks="ONCE",
    bounds=Bounds("a->join b->join", events=0, checkpoints=2),
    components=with_gate(SavesInItsOwnTime),
    title="Both barriers 1 are in, and the image is not saved yet. Then a's barrier 2 asks for it again.",
)
