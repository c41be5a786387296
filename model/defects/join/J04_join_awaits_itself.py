"""The processed cursor that gates is the join's own.

Source
    merge-map-join-barrier, section 4: processed time is the latest "processed by the join stage"; 8.1 gates on it.
What goes wrong
    Output 5 needs 5 processed, and 5 is processed when output 5 is made. Nothing ever comes.
Repair
    The cursor is that of a stage before the join, which reports it; the join's own outputs do not count.
"""

from __future__ import annotations

from barrierlab.impl.join import Frame, Observed, SequenceJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class OwnCursor(SequenceJoinBarrier):
    """Only what the join has put out is processed."""

    def process(self, stream_id: int, epoch: int, seq: int) -> Observed:
        return Observed.BEHIND

    def accept(self, out: int) -> None:
        super().accept(out)
        for each in self.inputs:
            each.processed = out + each.aim
            each.reached = min(each.observed, each.processed)


def witness(components: JoinComponents) -> JoinWorld:
    """All is observed, and processed before the join."""
    it = world(components, "sequence", numbers(components, at(1)), use_processed=True)
    show(it, 1, 0)
    it.process(Frame(1, 1, 0, 0, 0), 0)
    it.run(0)
    return it


DEFECT = JoinDefect("liveness", "LIVE", JoinComponents(sequence=OwnCursor), witness)
