"""A changed map does not concern the latest value.

Source
    merge-map-join-barrier, section 6.4: changes invalidate "SequenceJoinBarrier and TimestampJoinBarrier readiness".
What goes wrong
    The latest value takes its inputs from the same map: it goes on without the input that the new one names.
Repair
    A change concerns all three.
"""

from __future__ import annotations

from barrierlab.impl.join import LatestValueJoinBarrier, MapChange, MergeMap
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class KeepsItsInputs(LatestValueJoinBarrier):
    """The first map says which inputs there are."""

    def announce(self, merge_map: MergeMap, now_ns: int) -> MapChange:
        return MapChange.UNCHANGED if self.active is not None else super().announce(merge_map, now_ns)


def witness(components: JoinComponents) -> JoinWorld:
    """Stream 3 takes the place of stream 2, and has not come."""
    it = world(components, "latest", numbers(components, at(1), at(2)))
    for stream in (1, 2):
        show(it, stream, 0)
    it.announce(numbers(components, at(1), at(3)), 1)
    it.ask(1, 1)
    return it


DEFECT = JoinDefect("safety", "READY", JoinComponents(latest=KeepsItsInputs), witness)
