"""After a failed attempt the next output is tried, and nothing else.

Source
    merge-map-join-barrier, sections 5 and 7.2: "drop-on-failure", and no rule for where to go on.
What goes wrong
    Two frames come while one is read. Each output that is tried is overwritten, the distance grows, nothing ever comes.
Repair
    Go on where there are slots, and with each overrun in a row further above the oldest (`JoinStage`).
"""

from __future__ import annotations

from collections.abc import Mapping

from barrierlab.impl.join import SequenceJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at, numbers, outs, show, world


class OneByOne(SequenceJoinBarrier):
    """The next one, wherever there are slots."""

    def after_overrun(self, slots: Mapping[int, int], need_all: bool = True, margin: int = 0) -> int:
        return 0


def witness(components: JoinComponents) -> bool:
    """Two frames in the time of one attempt, after a stall of a whole ring; whether anything comes out."""
    it = world(components, "sequence", numbers(components, at(1)))
    show(it, 1, *range(20))
    for seq in range(20, 200, 2):
        it.try_next(seq)
        show(it, 1, seq, seq + 1, now=seq)
        it.end(seq)
    return bool(outs(it))


DEFECT = JoinDefect("liveness", "value", JoinComponents(sequence=OneByOne), witness, True, False)
