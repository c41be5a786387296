"""A window may be shorter than the lateness.

Source
    merge-map-join-barrier, example A.4.3: a lateness of 50 ms, and a window of 10 ms for the IMU.
What goes wrong
    With the IMU last seen at 55 ms the output for 100 ms is ready, and its window of 90 to 100 ms is empty.
Repair
    Such a map is refused (protocol rule 28).
"""

from __future__ import annotations

from typing import Any

from barrierlab.impl.errors import MergeMapError
from barrierlab.impl.join import ClockDomain, TimestampMergeMapAnnounce
from barrierlab.model.defects.kinds.join import (
    JoinComponents,
    JoinDefect,
    JoinWorld,
    at_ns,
    show,
    times,
    window_ns,
    world,
)


def unchecked(
    out: int, epoch: int, clock: ClockDomain, rules: Any, stale: int | None, late: int | None
) -> TimestampMergeMapAnnounce:
    """A map with whatever lateness."""
    said = TimestampMergeMapAnnounce(out, epoch, clock, rules, stale, None)
    object.__setattr__(said, "lateness_ns", late)
    return said


def witness(components: JoinComponents) -> JoinWorld:
    """The map of A.4.3 if it is one, else with the lateness that its windows allow."""
    rules = (at_ns(1), window_ns(2, 50), window_ns(3, 10))
    it = world(components, "timestamp")
    try:
        it.announce(times(components, *rules, late=50), 0)
    except MergeMapError:
        it.announce(times(components, *rules, late=10), 0)
    for stream, seen in ((1, 100), (2, 95), (3, 55)):
        show(it, stream, 0, stamp=seen)
    it.ask(100, 0)
    return it


DEFECT = JoinDefect("safety", "READY", JoinComponents(timestamp_map=unchecked), witness)
