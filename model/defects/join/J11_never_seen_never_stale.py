"""The clock of staleness starts with an input's first frame.

Source
    merge-map-join-barrier, section 7.4: "since its last observed frame", which an input that never came has not.
What goes wrong
    An input that is dead from the start blocks for ever, though the policy is there for dead inputs.
Repair
    The clock starts when the map is applied (protocol rule 32).
"""

from __future__ import annotations

from functools import partial

from barrierlab.impl.join import JoinConfig, SequenceJoinBarrier
from barrierlab.impl.join.inputs import UNOBSERVED, SequenceInput
from barrierlab.impl.join.sequence import sequence_inputs
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class SinceItsFirstFrame(SequenceInput):
    """No frame, no clock."""

    __slots__ = ()

    def is_stale(self, now_ns: int) -> bool:
        return self.observed != UNOBSERVED and super().is_stale(now_ns)


def barrier(config: JoinConfig) -> SequenceJoinBarrier:
    """A barrier of such inputs."""
    return SequenceJoinBarrier(config, partial(sequence_inputs, make=SinceItsFirstFrame))


def witness(components: JoinComponents) -> JoinWorld:
    """Stream 2 never comes."""
    it = world(components, "sequence", numbers(components, at(1), at(2), stale=10))
    show(it, 1, 0, now=15)
    it.ask(0, 20)
    return it


DEFECT = JoinDefect("liveness", "LIVE", JoinComponents(sequence=barrier), witness)
