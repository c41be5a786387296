"""The position of a source is read when the reader is already further.

Source
    F-DCKP-001, "Barrier Injection Flow": nothing says when the position of a source is captured. One implementation
    had five variants of this. Entry P-10.
What goes wrong
    The reader fetches the next event while the barrier goes out, and the position that is acknowledged is behind it.
    After a restore that event is in no state and is not emitted again. (Read too early, it is emitted twice.)
Repair
    Capture the position in the step that emits the barrier, and carry it with the acknowledgement (protocol rule 4).
"""

from dataclasses import replace

from barrierlab.impl import Acknowledge, CheckpointBarrier, SourceTask
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


class PositionsLate(SourceTask):
    """A source that acknowledges the position of the reader, which is one event ahead."""

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        barrier = super().poll(now_ns)
        if barrier is not None:
            report = self.reports[-1]
            assert isinstance(report, Acknowledge)
            position = self.position + 1
            self.reports[-1] = replace(report, position=position, image=position)
        return barrier


DEFECT = BarrierDefect(
    breaks="REC",
    bounds=Bounds("a->s", events=1, crashes=1, guarantee="exactly_once"),
    components=Components(source=PositionsLate),
    title="a's reader has a1 in hand when the barrier goes out. The job fails, comes back, and does not make a1 again.",
)
