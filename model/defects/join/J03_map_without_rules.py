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
from barrierlab.impl.join import SequenceMergeMapAnnounce, SequenceMergeRule
from barrierlab.model.defects.kinds.join import OUT, JoinComponents, JoinDefect, JoinWorld, at, world


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


DEFECT = JoinDefect("safety", "ABSENT", JoinComponents(sequence_map=unchecked), witness)
