"""Output plus offset is taken modulo 2**64.

Source
    merge-map-join-barrier, section 6.2.1: "in_seq = out_seq + offset", of unsigned numbers.
What goes wrong
    The last output with an offset of 1 needs input 0, which everybody has.
Repair
    Checked arithmetic; what does not fit is not ready (protocol rule 27).
"""

from __future__ import annotations

from barrierlab.impl.join import Readiness, SequenceJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class WrapsSum(SequenceJoinBarrier):
    """Sixty-four bits, and the carry is lost."""

    def ready(self, out: int, now_ns: int) -> Readiness:
        enough = all(each.reached >= (out + each.aim) % 2**64 for each in self.inputs)
        return Readiness.READY if enough and self.active is not None else Readiness.WAITING


def witness(components: JoinComponents) -> JoinWorld:
    """The last output there is."""
    it = world(components, "sequence", numbers(components, at(1, 1)))
    show(it, 1, 7)
    it.ask(2**64 - 1, 0)
    return it


DEFECT = JoinDefect("safety", "READY", JoinComponents(sequence=WrapsSum), witness)
