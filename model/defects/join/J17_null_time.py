"""The null sentinel is taken for a number.

Source
    merge-map-join-barrier, sections 8.2 and 15: timestamps may be null, which on the wire is 2**64 - 1.
What goes wrong
    One frame without a timestamp makes every output ready, and each frame after it is a step back.
Repair
    Null sentinels are no values (protocol rule 27).
"""

from __future__ import annotations

from barrierlab.impl.join import Observed, TimestampJoinBarrier, TimestampSource
from barrierlab.impl.join.merge_map import NULL_U64
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at_ns, show, times, world


class ANumberLikeAnyOther(TimestampJoinBarrier):
    """2**64 - 1 is a time in the year 2554."""

    def observe_time(
        self, stream_id: int, epoch: int, source: TimestampSource, timestamp_ns: int | None, now_ns: int
    ) -> Observed:
        answer = super().observe_time(stream_id, epoch, source, timestamp_ns, now_ns)
        if answer is not Observed.NULL or timestamp_ns is None:
            return answer
        for each in self.inputs.of_stream[stream_id]:
            if each.source is source:
                each.observed = each.reached = timestamp_ns
        return Observed.TAKEN


def witness(components: JoinComponents) -> JoinWorld:
    """A frame whose descriptor has no timestamp."""
    it = world(components, "timestamp", times(components, at_ns(1)))
    show(it, 1, 0, stamp=NULL_U64)
    it.ask(100, 0)
    return it


DEFECT = JoinDefect("safety", "READY", JoinComponents(timestamp=ANumberLikeAnyOther), witness)
