"""All inputs have the clock of the map, because the map says so.

Source
    merge-map-join-barrier, section 8.2: "all rules MUST use the same clockDomain"; no rule and no frame carries one.
What goes wrong
    An input that is measured by another clock is joined: times of two clocks are compared.
Repair
    The clock of an input is known from its own announce (`JoinBarrier.declare_clock`); if they differ, all is rejected.
"""

from __future__ import annotations

from barrierlab.impl.join import ClockDomain, TimestampJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at_ns, show, times, world


class Vacuous(TimestampJoinBarrier):
    """Compares the map's clock with itself."""

    @property
    def clocks_differ(self) -> bool:
        return False


def witness(components: JoinComponents) -> JoinWorld:
    """Stream 2 is known to have another clock."""
    it = world(components, "timestamp", times(components, at_ns(1), at_ns(2)))
    it.declare_clock(2, ClockDomain.REALTIME_SYNCED, 0)
    for stream in (1, 2):
        show(it, stream, 100)
    it.ask(100, 0)
    return it


DEFECT = JoinDefect("safety", "CLOCK", JoinComponents(timestamp=Vacuous), witness)
