"""The time since the last frame is taken modulo 2**64.

Source
    merge-map-join-barrier, section 7.4: "local monotonic time since its last observed frame".
What goes wrong
    Read a nanosecond before the frame was noted, by another thread, the difference is five hundred years: stale.
Repair
    A clock that went back is no time (protocol rule 27).
"""

from __future__ import annotations

from functools import partial

from barrierlab.impl.join import JoinConfig, SequenceJoinBarrier
from barrierlab.impl.join.inputs import SequenceInput
from barrierlab.impl.join.sequence import sequence_inputs
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class WrapsDifference(SequenceInput):
    """Sixty-four bits, and the borrow is lost."""

    __slots__ = ()

    def is_stale(self, now_ns: int) -> bool:
        return (now_ns - self.fresh_ns) % 2**64 > self.timeout_ns


def barrier(config: JoinConfig) -> SequenceJoinBarrier:
    """A barrier of such inputs."""
    return SequenceJoinBarrier(config, partial(sequence_inputs, make=WrapsDifference))


def witness(components: JoinComponents) -> JoinWorld:
    """Asked with a time of just before the last frame."""
    it = world(components, "sequence", numbers(components, at(1), at(2), stale=1000))
    show(it, 1, 0, 1, now=50)
    show(it, 2, 0, now=50)
    it.ask(1, 49)
    return it


DEFECT = JoinDefect("safety", "ABSENT", JoinComponents(sequence=barrier), witness)
