"""Buffered events are drained in the order of their timestamps.

Source
    F-DCKP-002, "All aligned", step 5c, and the first of its open questions: in which order is open. The aligner that
    it evolves from sorts by timestamp. Entry A-22.
What goes wrong
    Timestamps on one channel need not ascend, as where two sources were merged before: events pass each other.
Repair
    Any order that keeps each input's own will do; round robin is chosen (protocol rule 8).
"""

from barrierlab.impl import BarrierAligner, Event
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class SortsByTime(BarrierAligner):
    """The oldest goes first, if nothing but events is buffered."""

    def terminate(self, checkpoint_id: int) -> None:
        for queue in self.inputs.queues.values():
            if all(type(each) is Event for each in queue):
                ordered = sorted(queue, key=lambda event: event.timestamp_ms)  # type: ignore[union-attr]
                queue.clear()
                queue.extend(ordered)
        super().terminate(checkpoint_id)


DEFECT = BarrierDefect(
    breaks="FIFO",
    bounds=Bounds("a->x b->x x->join b->join", events=1, first_timestamp_ms=(("a", 2),)),
    components=with_aligner(SortsByTime),
    title="x has passed a1 on before b1, which is older. Both wait at join, and go the other way round.",
)
