"""With the latest value, a stale input is absent, and an absent input makes readiness false.

Source
    merge-map-join-barrier, section 9.1: "if any required input is absent ... readiness MUST be considered false";
    examples A.5.1 and A.5.2 go on with absent markers.
What goes wrong
    Metrics stop as soon as health does, which the staleness policy is there to prevent.
Repair
    Absent for a frame that could not be read: not ready, the next tick tries again. Absent for staleness: named, and
    the tick goes on with what is live (protocol rule 32).
"""

from __future__ import annotations

from barrierlab.impl.join import LatestValueJoinBarrier, Readiness
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class AbsentIsNotReady(LatestValueJoinBarrier):
    """Section 9.1 for every absence."""

    def ready(self, out: int, now_ns: int) -> Readiness:
        answer = super().ready(out, now_ns)
        return Readiness.WAITING if answer is Readiness.DEGRADED else answer


def witness(components: JoinComponents) -> JoinWorld:
    """Metrics are fresh, health is stale."""
    it = world(components, "latest", numbers(components, at(1), at(2), stale=5))
    show(it, 2, 0, now=0)
    show(it, 1, 0, now=9)
    it.ask(1, 9)
    return it


DEFECT = JoinDefect("contradiction", "LIVE", JoinComponents(latest=AbsentIsNotReady), witness)
