"""The barrier goes ahead of what the source has read and could not push into a full channel.

Source
    F-DCKP-001, "Error Handling": "ChannelFull: apply backpressure (block), barrier has priority over events"; against
    its own "injected between event batches, in-band". Entry P-14.
What goes wrong
    The source has read an event, and waits for room. The barrier is pushed ahead of it, with a position behind it: the
    event is in nobody's state, and is not emitted again.
Repair
    First in, first out behind everything that is already read (protocol rule 4); a flagged barrier that goes ahead
    records what it passes (rule 16).
"""

from barrierlab.impl import CheckpointBarrier, SourceTask
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


class PushesBarriersFirst(SourceTask):
    """The barrier goes to the front of the outbox."""

    def forward(self, barrier: CheckpointBarrier) -> None:
        super().forward(barrier)
        self.outbox.rotate(len(self.outputs))


DEFECT = BarrierDefect(
    breaks="CUT",
    bounds=Bounds("a->s", events=2, capacity=1),
    components=Components(source=PushesBarriersFirst),
    title="a1 fills the channel and a2 waits in a, whose position is behind it. The barrier goes ahead of a2.",
)
