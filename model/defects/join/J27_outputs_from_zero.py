"""A sequence join begins with output 0, and goes on when an output has succeeded.

Source
    merge-map-join-barrier, section 6.2.1: "not ready until out_seq >= -offset"; example A.3.2 has an offset of -2.
What goes wrong
    Output 0 needs frame -2 and is never ready, so 1 is never asked for.
Repair
    Begin with the first output that can ever be ready (`SequenceMergeMapAnnounce.first_output`). Likewise an output
    time below a window does not wait in the queue.
"""

from __future__ import annotations

from barrierlab.impl.join import JoinStage
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at, numbers, outs, show, world


class OutputsFromZero(JoinStage):
    """Zero, one, two."""

    def next_out(self) -> int | None:
        return self.barrier.last_out + 1


def witness(components: JoinComponents) -> list[int]:
    """Example A.3.2: B lags two frames behind."""
    it = world(components, "sequence", numbers(components, at(1), at(2, -2)))
    for seq in range(4):
        show(it, 1, seq)
        show(it, 2, seq)
        it.run(0)
    return outs(it)


DEFECT = JoinDefect("liveness", "value", JoinComponents(stage=OutputsFromZero), witness, [2, 3], [])
