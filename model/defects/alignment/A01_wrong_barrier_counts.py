"""A barrier of another checkpoint counts as the one that is awaited.

Source
    F-DCKP-002, `handle_barrier`: an id that is not the current one "shouldn't happen in aligned mode. Log warning and
    treat as current". Its error table has it the other way: "treat as new checkpoint (cancel current)". Entry A-01.
What goes wrong
    The late barrier of a checkpoint that was aborted completes the next one: what comes between the two barriers of
    that input is in no snapshot, and its source does not send it again.
Repair
    A lower id is ignored, an equal one marks, a higher one aborts the current checkpoint (protocol rule 6).
"""

from barrierlab.impl import CheckpointBarrier, Event, Gate, StreamMessage
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_gate


class TreatsAsCurrent(Gate):
    """The current barrier goes in for any other, of which no more is said than that it came."""

    other: CheckpointBarrier | None = None

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        current = self.aligner.barrier
        if type(message) is not CheckpointBarrier or current is None or self.is_blocked(input_id):
            return super().offer(input_id, message, now_ns)
        self.other = None if message == current else message
        return super().offer(input_id, current, now_ns)

    def block_input(self, input_id: int) -> None:
        if self.other is None:
            super().block_input(input_id)
        else:
            self.port.ignore(input_id, self.other)
        self.other = None


class OnlyB(Bounds):
    """No other source makes events."""

    def script(self, source: str) -> tuple[Event | int, ...]:
        return super().script(source) if source == "b" else ()


DEFECT = BarrierDefect(
    breaks="CUT",
    bounds=OnlyB("a->join b->join", events=1, checkpoints=2, aborts_one=(1, 0)),
    components=with_gate(TreatsAsCurrent),
    title="Checkpoint 1 is aborted, and a's barrier 2 begins the next. b's barrier 1 is late, and ends it without b1.",
)
