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
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class Commits(SequenceJoinBarrier):
    """A barrier that counts all below what was asked for as put out."""

    def ready(self, out: int, now_ns: int) -> Readiness:
        answer = super().ready(out, now_ns)
        if out - 1 > self.last_out:
            self.accept(out - 1)
        return answer


def witness(components: JoinComponents) -> JoinWorld:
    """Ask for 10, then for 9, which is there."""
    it = world(components, "sequence", numbers(components, at(1)))
    show(it, 1, 9)
    it.ask(10, 0)
    it.ask(9, 0)
    return it


DEFECT = JoinDefect("liveness", "LIVE", JoinComponents(sequence=Commits), witness)
