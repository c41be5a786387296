"""A source that waits for data does not look for a command.

Source
    F-DCKP-001, "Barrier Injection Flow": step 1 awaits the next batch, and step 3, "if no event: check for pending
    barrier anyway", is reached only when that comes back. Entry P-09.
What goes wrong
    No data, no barrier: whoever waits for it behind a join waits as long as the source is idle. (A source that has
    ended has left its loop, and never emits one again: entry A-15.)
Repair
    An idle source polls too, and the end of a source is a standing barrier (protocol rule 4).
"""

from barrierlab.impl import CheckpointBarrier, Event, SourceTask
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


class PollsBehindData(SourceTask):
    """Looks for a command when it has emitted an event, and at no other time."""

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        return None

    def emit(self, event: Event) -> None:
        super().emit(event)
        super().poll(0)


DEFECT = BarrierDefect(
    breaks="LIVE",
    bounds=Bounds("a->s", events=1),
    components=Components(source=PollsBehindData),
    title="a has emitted its last event when checkpoint 1 begins, and never looks for the command.",
)
