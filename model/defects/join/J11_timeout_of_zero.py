"""A stale timeout may be 0.

Source
    merge-map-join-barrier, sections 7.4 and 15: any number of nanoseconds.
What goes wrong
    Every input is stale a nanosecond after its frame: the slower one of two is never waited for.
Repair
    Zero is refused (protocol rule 32).
"""

from __future__ import annotations

from typing import Any

from barrierlab.impl import LimitError
from barrierlab.impl.join import SequenceMergeMapAnnounce
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at, numbers, show, world


def unchecked(out: int, epoch: int, rules: Any, stale: int | None) -> SequenceMergeMapAnnounce:
    """A map with whatever timeout."""
    said = SequenceMergeMapAnnounce(out, epoch, rules, None)
    object.__setattr__(said, "stale_timeout_ns", stale)
    return said


def witness(components: JoinComponents) -> str:
    """Two cameras a microsecond apart; what is said of output 1 between them."""
    try:
        it = world(components, "sequence", numbers(components, at(1), at(2), stale=0))
    except LimitError:
        return "refused"
    for stream in (1, 2):
        show(it, stream, 0, now=0)
    show(it, 1, 1, now=1000)
    return str(it.ask(1, 1000).value)


DEFECT = JoinDefect("value", "value", JoinComponents(sequence_map=unchecked), witness, "refused", "degraded")
