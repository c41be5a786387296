"""A watermark brings the task down.

Source
    F-DCKP-006, `process_message`: `unreachable!("watermarks handled before checkpointer")`; the format of what is in
    flight has events only. Entry U-10.
What goes wrong
    Any watermark that does come panics. If it is handled before, as is assumed there, it overtakes what is buffered and
    what is in flight, as at the aligner of F-DCKP-002.
Repair
    A watermark keeps its place among the events, buffered or not. It is not recorded: a task that is restored has the
    watermark of its cut, which is a lower bound, and hears the later ones again (protocol rules 1, 16).
"""

from barrierlab.impl import AlignerAction, StreamMessage, UnalignedCheckpointer, Watermark
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class KnowsNoWatermarks(UnalignedCheckpointer):
    """Trusts that a watermark never comes."""

    def process_message(self, input_id: int, message: StreamMessage, now_ns: int = 0) -> AlignerAction:
        assert type(message) is not Watermark, "watermarks handled before checkpointer"
        return super().process_message(input_id, message, now_ns)


DEFECT = BarrierDefect(
    breaks="RAISED",
    bounds=Bounds("a->x x->s", mode="unaligned", events=1, watermarks=1, checkpoints=1),
    components=with_aligner(KnowsNoWatermarks),
    title="A watermark comes to a task, behind an event and without any barrier.",
)
