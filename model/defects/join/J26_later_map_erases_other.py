"""An output has one map: a timestamp map erases the sequence map.

Source
    merge-map-join-barrier, section 6.1: a map for an (output, epoch); that there are two kinds of it comes later.
What goes wrong
    The join that goes by sequences has no map any more, because somebody announced one for times.
Repair
    Both live side by side; the configured barrier goes by its own (protocol rule 33).
"""

from __future__ import annotations

from barrierlab.impl.join import InvalidMergeMap, MapChange, MergeMap, SequenceJoinBarrier
from barrierlab.model.defects.kinds.join import (
    JoinComponents,
    JoinDefect,
    JoinWorld,
    at,
    at_ns,
    numbers,
    show,
    times,
    world,
)


class OneMap(SequenceJoinBarrier):
    """Whatever comes takes the place."""

    def announce(self, merge_map: MergeMap, now_ns: int) -> MapChange:
        change = super().announce(merge_map, now_ns)
        if change is MapChange.OTHER_KIND and self.active is not None:
            before = self.active
            self.announce_invalid(InvalidMergeMap(type(before), before.out_stream_id, before.epoch, "replaced"))
        return change


def witness(components: JoinComponents) -> JoinWorld:
    """A sequence join, and then a timestamp map."""
    it = world(components, "sequence", numbers(components, at(1)))
    show(it, 1, 5)
    it.announce(times(components, at_ns(1)), 1)
    it.ask(5, 1)
    return it


DEFECT = JoinDefect("liveness", "LIVE", JoinComponents(sequence=OneMap), witness)
