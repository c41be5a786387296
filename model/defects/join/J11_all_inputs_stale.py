"""An output goes on when all inputs that are not stale are ready, and that may be none.

Source
    merge-map-join-barrier, section 7.4: "proceed if all non-stale inputs are ready".
What goes wrong
    When everything has stopped, outputs come without any input.
Repair
    One input at least must have what it owes (protocol rule 32).
"""

from __future__ import annotations

from barrierlab.impl.join import Readiness, TimestampJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at_ns, show, times, world


class AllOfNone(TimestampJoinBarrier):
    """Nothing is missing where nothing is live."""

    def ready(self, out: int, now_ns: int) -> Readiness:
        answer = super().ready(out, now_ns)
        return Readiness.DEGRADED if answer is Readiness.NO_LIVE_INPUT else answer


def witness(components: JoinComponents) -> JoinWorld:
    """The only input stops at 100; 200 is asked for later than the timeout."""
    it = world(components, "timestamp", times(components, at_ns(1), stale=10))
    show(it, 1, 0, stamp=100, now=5)
    it.ask(200, 20)
    return it


DEFECT = JoinDefect("safety", "ABSENT", JoinComponents(timestamp=AllOfNone), witness)
