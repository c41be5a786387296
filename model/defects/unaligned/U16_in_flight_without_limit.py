"""Nothing looks at how much is in flight.

Source
    F-DCKP-006, `max_inflight_buffer_bytes`: "If exceeded, the checkpoint fails"; the code names it nowhere else. It
    counts `events.len() * std::mem::size_of::<T>()`, the size of the type and not of what an event carries. Entry U-16.
What goes wrong
    Whatever is in the channels is recorded, and what is counted is too little. (What comes after the snapshot has to
    count as well, which the document does not record at all.)
Repair
    One limit for the whole recording of a checkpoint, queued and later, by the size that the caller gives: over it, the
    checkpoint is declined (protocol rule 18).
"""

from dataclasses import replace

from barrierlab.impl import BarrierAlignerConfig, UnalignedCheckpointConfig, UnalignedCheckpointer
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, with_aligner


class RecordsWithoutLimit(UnalignedCheckpointer):
    """The limit is in the configuration, and nowhere else."""

    def __init__(self, config: BarrierAlignerConfig, unaligned: UnalignedCheckpointConfig, is_sink: bool) -> None:
        super().__init__(config, replace(unaligned, max_inflight_buffer_bytes=2**62), is_sink=is_sink)


DEFECT = BarrierDefect(
    breaks="BOUND",
    bounds=Bounds("a->b b->s", mode="unaligned", events=2, max_inflight_buffer_bytes=1),
    components=with_aligner(RecordsWithoutLimit),
    title="One byte may be in flight. The barrier passes a1 and a2, and b records both, a byte each.",
)
