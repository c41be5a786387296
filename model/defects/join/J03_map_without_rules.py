"""A map without rules is a map.

Source
    merge-map-join-barrier, section 6.2: "one or more rules", and a count of 0 that can be decoded all the same.
What goes wrong
    "FOR EACH rule" holds for none: every output is ready, of nothing.
Repair
    Refuse it; what it was to replace is invalid (protocol rule 28).
"""

from __future__ import annotations

from barrierlab.impl.errors import MergeMapError
from barrierlab.impl.join import SequenceJoinBarrier, SequenceMergeMapAnnounce, SequenceMergeRule
from barrierlab.impl.join.merge_map import MAX_U64
from barrierlab.model.defects.kinds.join import OUT, JoinComponents, JoinDefect, at, world
from barrierlab.model.join.world import JoinWorld


class ForEachOfNone(SequenceJoinBarrier):
    """Between no bounds, and with no input that lacks anything."""

    def _set_bounds(self) -> None:
        if self.active is None or self._inputs:
            super()._set_bounds()
            return
        self._least, self._most = 0, MAX_U64


def unchecked(
    out: int, epoch: int, rules: tuple[SequenceMergeRule, ...], stale: int | None
) -> SequenceMergeMapAnnounce:
    """A map with whatever rules."""
    said = SequenceMergeMapAnnounce(out, epoch, (at(1),), stale)
    object.__setattr__(said, "rules", rules)
    return said


def witness(components: JoinComponents) -> JoinWorld:
    """Announce nothing, and ask."""
    it = world(components, "sequence")
    try:
        it.announce(components.sequence_map(OUT, 1, (), None), 0)
    except MergeMapError:
        pass
    it.ask(0, 0)
    return it


DEFECT = JoinDefect("J-03", "safety", "ABSENT", JoinComponents(sequence=ForEachOfNone, sequence_map=unchecked), witness)
