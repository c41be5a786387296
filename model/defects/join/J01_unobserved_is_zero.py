"""An input that was not observed counts as observed at 0.

Source
    merge-map-join-barrier, sections 4 and 7.1: "highest sequence observed", and nothing on what it is before.
What goes wrong
    Output 0, and with a lateness every output below it, is ready when nothing was ever seen.
Repair
    Not observed is minus infinity (protocol rule 27).
"""

from __future__ import annotations

from collections.abc import Iterator

from barrierlab.impl.join import MergeMap, SequenceJoinBarrier
from barrierlab.impl.join.barrier import JoinInput
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at, numbers, world
from barrierlab.model.join.world import JoinWorld


class CursorsFromZero(SequenceJoinBarrier):
    """Cursors begin at 0."""

    def _made(self, merge_map: MergeMap, now_ns: int) -> Iterator[JoinInput]:
        for each in super()._made(merge_map, now_ns):
            each.observed = each.reached = 0
            yield each


def witness(components: JoinComponents) -> JoinWorld:
    """Ask for output 0 before anything came."""
    it = world(components, "sequence", numbers(components, at(1)))
    it.ask(0, 0)
    return it


DEFECT = JoinDefect("J-01", "safety", "READY", JoinComponents(sequence=CursorsFromZero), witness)
