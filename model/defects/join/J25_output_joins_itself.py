"""A map may have a rule for its own output.

Source
    merge-map-join-barrier, section 6.2: "each rule MUST identify an input stream", any.
What goes wrong
    Output 5 needs output 5: it is never ready.
Repair
    Such a map is refused (protocol rule 28).
"""

from __future__ import annotations

from typing import Any

from barrierlab.impl.errors import MergeMapError
from barrierlab.impl.join import SequenceMergeMapAnnounce
from barrierlab.model.defects.kinds.join import OUT, JoinComponents, JoinDefect, at, numbers, show, world


def unchecked(out: int, epoch: int, rules: Any, stale: int | None) -> SequenceMergeMapAnnounce:
    """A map with whatever inputs."""
    said = SequenceMergeMapAnnounce(out, epoch, (at(1),), stale)
    object.__setattr__(said, "rules", rules)
    return said


def witness(components: JoinComponents) -> str:
    """All else is there."""
    try:
        it = world(components, "sequence", numbers(components, at(1), at(OUT)))
    except MergeMapError:
        return "refused"
    show(it, 1, *range(8))
    it.run(0)
    return "outputs" if it.outcomes else "nothing"


DEFECT = JoinDefect("liveness", "value", JoinComponents(sequence_map=unchecked), witness, "refused", "nothing")
