"""The null sentinel is taken for a number.

Source
    merge-map-join-barrier, sections 8.2 and 15: timestamps may be null, which on the wire is 2**64 - 1.
What goes wrong
    One frame without a timestamp makes every output ready, and each frame after it is a step back.
Repair
    Null sentinels are no values (protocol rule 27).
"""

from __future__ import annotations

from barrierlab.impl.join import TimestampJoinBarrier
from barrierlab.impl.join.barrier import JoinInput, Observed
from barrierlab.impl.join.merge_map import NULL_U64
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at_ns, show, times, world
from barrierlab.model.join.world import JoinWorld


class ANumberLikeAnyOther(TimestampJoinBarrier):
    """2**64 - 1 is a time in the year 2554."""

    def _observe_unusual(self, each: JoinInput, epoch: int, timestamp_ns: int | None, now_ns: int) -> Observed:
        if timestamp_ns == NULL_U64 and (epoch == each.epoch or self._enter_epoch(each.stream_id, epoch)):
            each.observed = each.reached = NULL_U64
            return Observed.TAKEN
        return super()._observe_unusual(each, epoch, timestamp_ns, now_ns)


def witness(components: JoinComponents) -> JoinWorld:
    """A frame whose descriptor has no timestamp."""
    it = world(components, "timestamp", times(components, at_ns(1)))
    show(it, 1, 0, stamp=NULL_U64)
    it.ask(100, 0)
    return it


DEFECT = JoinDefect("J-17", "safety", "READY", JoinComponents(timestamp=ANumberLikeAnyOther), witness)
