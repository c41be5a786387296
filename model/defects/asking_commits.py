"""Outputs are monotonic over what was asked for.

Source
    merge-map-join-barrier, section 8.2: "out_time MUST be monotonic"; one implementation counts queries.
What goes wrong
    Asking for output 10 too early forbids output 9, which was pending, for good.
Repair
    Monotonic over what was accepted; asking is free (protocol rule 30).
"""

from __future__ import annotations

from barrierlab.impl.join import Readiness, SequenceJoinBarrier
from barrierlab.model.defects.join_kind import JoinDefect, Parts, at, numbers, show, world
from barrierlab.model.join.world import JoinWorld


class Commits(SequenceJoinBarrier):
    """What was asked for counts as put out, up to one below."""

    def ready(self, out: int, now_ns: int) -> Readiness:
        answer = super().ready(out, now_ns)
        self.last_out = max(self.last_out, out - 1)
        self._set_bounds()
        return answer


def witness(parts: Parts) -> JoinWorld:
    """Ask for 10, then for 9, which is there."""
    it = world(parts, "sequence", numbers(parts, at(1)))
    show(it, 1, 9)
    it.ask(10, 0)
    it.ask(9, 0)
    return it


DEFECT = JoinDefect("J-14", "liveness", "LIVE", Parts(sequence=Commits), witness)
