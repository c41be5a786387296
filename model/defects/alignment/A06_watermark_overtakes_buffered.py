"""A watermark passes the events that wait on its own input.

Source
    F-DCKP-002, the watermark branch of `process_message`, "audit fix C4": "Watermarks pass through regardless of
    alignment state. They don't carry event data and don't affect snapshot consistency". Entry A-06.
What goes wrong
    The promise that nothing older follows is kept by the channel and broken by the gate: windows close without the
    events that wait, which are late when they come; and the snapshot has seen a watermark from behind the barrier.
Repair
    What comes behind a barrier is buffered whole and in order, watermarks too (protocol rule 7).
"""

from barrierlab.impl import Gate, StreamMessage, Watermark
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_gate


class LetsWatermarksPass(Gate):
    """Only events wait."""

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        if type(message) is Watermark and self.is_blocked(input_id):
            self.port.deliver(input_id, message)
            return True
        return super().offer(input_id, message, now_ns)


DEFECT = BarrierDefect(
    breaks="FIFO",
    bounds=Bounds("a->join b->join", events=1, watermarks=1),
    components=with_gate(LetsWatermarksPass),
    title="a1 waits behind a's barrier. Watermark 1, which says that a1 has been, takes effect before it.",
)
