"""An output sequence may be as great as the last one.

Source
    merge-map-join-barrier, section 8.2: "monotonic non-decreasing", said of times and taken for sequences.
What goes wrong
    Output 3 comes twice.
Repair
    Strictly increasing for sequences (protocol rule 30).
"""

from __future__ import annotations

from barrierlab.impl.join import SequenceJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class NotStrict(SequenceJoinBarrier):
    """Equal is in order."""

    strict = False


def witness(components: JoinComponents) -> JoinWorld:
    """A driver that offers each output while the barrier calls it ready."""
    it = world(components, "sequence", numbers(components, at(1)))
    show(it, 1, 3)
    frame = it.entries[-1][3]
    for _ in range(2):
        if it.ask(3, 0).may_attempt:
            it.stage.barrier.accept(3)
            it.entries.append((0, "emit", it.out, (3, ((1, frame),), ())))
    return it


DEFECT = JoinDefect("safety", "ORDER", JoinComponents(sequence=NotStrict), witness)
