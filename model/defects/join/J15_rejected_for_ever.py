"""A stream that was rejected stays so.

Source
    merge-map-join-barrier, section 8.2: a stream that is not monotonic "MUST be rejected"; until when is not said.
What goes wrong
    One jittered frame costs the input for good, also when its producer has restarted.
Repair
    Rejected for its epoch: a new one, of the input or of the output, ends it (reading of defect J-15).
"""

from __future__ import annotations

from barrierlab.impl.join import Observed, TimestampJoinBarrier, TimestampSource
from barrierlab.impl.join.inputs import NEVER
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at_ns, show, times, world


class ForEver(TimestampJoinBarrier):
    """A rejection outlives the epoch."""

    def observe_time(
        self, stream_id: int, epoch: int, source: TimestampSource, timestamp_ns: int | None, now_ns: int
    ) -> Observed:
        if any(each.observed == NEVER for each in self.inputs.of_stream[stream_id]):
            return Observed.REJECTED
        return super().observe_time(stream_id, epoch, source, timestamp_ns, now_ns)


def witness(components: JoinComponents) -> JoinWorld:
    """200, 100: rejected. Then the camera is started again."""
    it = world(components, "timestamp", times(components, at_ns(1)))
    show(it, 1, 0, stamp=200)
    show(it, 1, 1, stamp=100)
    show(it, 1, 0, stamp=300, epoch=2)
    it.ask(300, 0)
    return it


DEFECT = JoinDefect("liveness", "LIVE", JoinComponents(timestamp=ForEver), witness)
