"""An event that arrives while buffered ones are handed out takes effect before them.

Source
    F-DCKP-002, `complete_alignment`: the state is reset and the queue is returned as a shared reference; nothing marks
    what of it is consumed, and the variant `DrainBuffered` is never made. Entry A-07.
What goes wrong
    No alignment is under way, so the next event of an input passes, whether what it buffered has been processed or not.
    (And `drain_queue.clear()` at the next completion throws away what is left.)
Repair
    Hand them out one by one; an input with something left to drain passes nothing (protocol rule 8).
"""

from barrierlab.impl import Event, Gate, StreamMessage
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_gate


class PassesBetweenCheckpoints(Gate):
    """A gate that leaves what was buffered to the caller, who comes round to it when it is time to."""

    can_drain = False

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        if type(message) is Event and not self.aligner.is_aligning():
            self.port.deliver(input_id, message)
            return True
        return super().offer(input_id, message, now_ns)

    def next_deadline_ns(self) -> int | None:
        return 0 if self.aligner.can_drain else super().next_deadline_ns()

    def on_time(self, now_ns: int) -> bool:
        return self.drain_next(now_ns) or super().on_time(now_ns)


DEFECT = BarrierDefect(
    breaks="FIFO",
    bounds=Bounds("a->join b->join", events=2),
    components=with_gate(PassesBetweenCheckpoints),
    title="a1 has waited, and is to be processed now that checkpoint 1 is complete. a2 arrives, and passes it.",
)
