"""Every announce is a change of the map, also one that says the same again.

Source
    merge-map-join-barrier, section 6.4: "changes MUST invalidate"; section 10.1: announced again and again.
What goes wrong
    With each re-announce what was observed is forgotten, and readiness flaps.
Repair
    The same map again changes nothing (protocol rule 28).
"""

from __future__ import annotations

from barrierlab.impl.join import MapChange, MergeMap, SequenceJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class EachIsAChange(SequenceJoinBarrier):
    """A barrier that applies each announce from the beginning."""

    def announce(self, merge_map: MergeMap, now_ns: int) -> MapChange:
        self.active = None
        for each in self.inputs:
            each.forget()
        return super().announce(merge_map, now_ns)


def witness(components: JoinComponents) -> JoinWorld:
    """The map is said twice, with a frame between."""
    said = numbers(components, at(1))
    it = world(components, "sequence", said)
    show(it, 1, 5)
    it.announce(said, 1)
    it.ask(5, 1)
    return it


DEFECT = JoinDefect("liveness", "LIVE", JoinComponents(sequence=EachIsAChange), witness)
