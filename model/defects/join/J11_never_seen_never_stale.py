"""The clock of staleness starts with an input's first frame.

Source
    merge-map-join-barrier, section 7.4: "since its last observed frame", which an input that never came has not.
What goes wrong
    An input that is dead from the start blocks for ever, though the policy is there for dead inputs.
Repair
    The clock starts when the map is applied (protocol rule 32).
"""

from __future__ import annotations

from barrierlab.impl.join import SequenceJoinBarrier
from barrierlab.impl.join.barrier import UNOBSERVED, JoinInput
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at, numbers, show, world
from barrierlab.model.join.world import JoinWorld


class SinceItsFirstFrame(SequenceJoinBarrier):
    """No frame, no clock."""

    def _is_stale(self, each: JoinInput, now_ns: int) -> bool:
        return each.observed != UNOBSERVED and super()._is_stale(each, now_ns)


def witness(components: JoinComponents) -> JoinWorld:
    """Stream 2 never comes."""
    it = world(components, "sequence", numbers(components, at(1), at(2), stale=10))
    show(it, 1, 0, now=15)
    it.ask(0, 20)
    return it


DEFECT = JoinDefect("J-11", "liveness", "LIVE", JoinComponents(sequence=SinceItsFirstFrame), witness)
