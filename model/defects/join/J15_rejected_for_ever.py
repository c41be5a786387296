"""A stream that was rejected stays so.

Source
    merge-map-join-barrier, section 8.2: a stream that is not monotonic "MUST be rejected"; until when is not said.
What goes wrong
    One jittered frame costs the input for good, also when its producer has begun anew.
Repair
    Rejected for its epoch: a new one, of the input or of the output, ends it (reading of defect J-15).
"""

from __future__ import annotations

from barrierlab.impl.join import TimestampJoinBarrier
from barrierlab.impl.join.barrier import NEVER, UNOBSERVED
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at_ns, show, times, world
from barrierlab.model.join.world import JoinWorld


class ForEver(TimestampJoinBarrier):
    """A rejection outlives the epoch."""

    def _enter_epoch(self, stream_id: int, epoch: int) -> bool:
        rejected = [each for each in self._of_stream[stream_id] if each.observed == NEVER]
        entered = super()._enter_epoch(stream_id, epoch)
        for each in rejected:
            each.observed, each.reached = NEVER, UNOBSERVED
        return entered


def witness(components: JoinComponents) -> JoinWorld:
    """200, 100: rejected. Then the camera is started again."""
    it = world(components, "timestamp", times(components, at_ns(1)))
    show(it, 1, 0, stamp=200)
    show(it, 1, 1, stamp=100)
    show(it, 1, 0, stamp=300, epoch=2)
    it.ask(300, 0)
    return it


DEFECT = JoinDefect("J-15", "liveness", "LIVE", JoinComponents(timestamp=ForEver), witness)
