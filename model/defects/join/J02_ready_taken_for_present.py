"""An output that is ready is made without looking whether its frames are there.

Source
    merge-map-join-barrier, sections A.3.1 and A.3.4: output "only when both streams reach the same seq".
What goes wrong
    The cursor is at 8 though frame 7 was dropped: output 7 is made of a frame that never was.
Repair
    Ready allows one attempt, which looks for exactly that frame, and skips the output if it is not there (rule 29).
"""

from __future__ import annotations

from collections.abc import Sequence

from barrierlab.impl.join import Frame, Joined, JoinStage, Miss, Skipped
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, show, world


class TakesReadyForThere(JoinStage):
    """A stage that takes what was not found to be what was asked for."""

    def finish(self, found: Sequence[Frame | Miss], now_ns: int) -> Joined | Skipped:
        reads = self.attempt.reads if self.attempt is not None else ()
        frames = [
            Frame(read.stream_id, read.epoch, read.last, None, None) if isinstance(what, Miss) else what
            for read, what in zip(reads, found, strict=True)
        ]
        return super().finish(frames, now_ns)


def witness(components: JoinComponents) -> JoinWorld:
    """The first frame of stream 2 is dropped on its way."""
    it = world(components, "sequence", numbers(components, at(1), at(2)))
    show(it, 1, 0, 1)
    show(it, 2, 1)
    it.run(0)
    return it


DEFECT = JoinDefect("safety", "CHOICE", JoinComponents(stage=TakesReadyForThere), witness)
