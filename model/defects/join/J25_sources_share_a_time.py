"""Two rules of one stream with different timestamp sources share a processed time.

Source
    merge-map-join-barrier, section 8.1: "processed_time[r.stream_id]", by stream alone.
What goes wrong
    The stage before has processed up to 100 by the descriptor, 60 by the slot header; 100 counts for both.
Repair
    A cursor for each stream and source (protocol rule 28).
"""

from __future__ import annotations

from barrierlab.impl.join import Frame, Observed, TimestampJoinBarrier, TimestampSource
from barrierlab.model.defects.kinds.join import SLOT, JoinComponents, JoinDefect, JoinWorld, at_ns, times, world


class ByStreamAlone(TimestampJoinBarrier):
    """A barrier in which one source has what the other has."""

    def process_time(self, stream_id: int, epoch: int, source: TimestampSource, timestamp_ns: int) -> Observed:
        for each in TimestampSource:
            super().process_time(stream_id, epoch, each, timestamp_ns)
        return Observed.TAKEN


def witness(components: JoinComponents) -> JoinWorld:
    """One frame later is observed; the one before it is processed."""
    it = world(components, "timestamp", times(components, at_ns(1), at_ns(1, 0, SLOT)), use_processed=True)
    for frame in (Frame(1, 1, 0, 100, 60), Frame(1, 1, 1, 140, 100)):
        it.publish(frame, 0)
        it.observe(frame, 0)
    it.process(Frame(1, 1, 0, 100, 60), 0)
    it.ask(100, 0)
    return it


DEFECT = JoinDefect("safety", "READY", JoinComponents(timestamp=ByStreamAlone), witness)
