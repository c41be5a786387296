"""Sources as an engine may bring them: a sound one, one over `impl`'s, and some with one mistake each."""

from __future__ import annotations

from barrierlab.impl import CheckpointBarrier
from barrierlab.model.checkpoint.interfaces import SourcePort
from docs.parts.source import Log, Planted


class CutsBehind(Log):
    """Takes the position of the last record for that of the next."""

    def on_barrier(self, barrier: CheckpointBarrier) -> None:
        self.at -= 1
        super().on_barrier(barrier)
        self.at += 1


class SeeksOneFurther(Log):
    """Goes on behind the record that it is to go on with."""

    def recover(self, position: int, checkpoint_id: int, finished: bool) -> None:
        super().recover(position + 1, checkpoint_id, finished)


class ForwardsNothing(Log):
    """Takes its part, and keeps the barrier."""

    def on_barrier(self, barrier: CheckpointBarrier) -> None:
        self.port.snapshot(barrier.checkpoint_id, self.at)


class ReadsBehindTheEnd(Log):
    """Forwards barriers behind its end."""

    def finish(self) -> None:
        self.port.end()


class BarrierBeforeTheRecord(Log):
    """Sends the record that it has counted behind the barrier."""

    def __init__(self, name: str, port: SourcePort) -> None:
        super().__init__(name, port)
        self.kept = 0

    def read_next(self) -> None:
        if self.kept:
            self.port.send(self.port.read(self.kept))
        self.kept, self.at = self.at, self.at + 1


PLANTED: dict[type, tuple[str, str]] = {
    CutsBehind: ("aligned: a->s; events 1, checkpoints 1; no fault", "CUT"),
    SeeksOneFurther: ("aligned: a->s; events 1, checkpoints 1; crash", "REC"),
    Planted: ("aligned: a->s; events 1, checkpoints 1; no fault", "LIVE"),
    ForwardsNothing: ("aligned: a->s; events 1, checkpoints 1; no fault", "LIVE"),
    ReadsBehindTheEnd: ("aligned: a->s; events 1, checkpoints 1; closed input", "FIFO"),
    BarrierBeforeTheRecord: ("aligned: a->s; events 2, checkpoints 2; no fault", "NOLOSS"),
}
"""With one mistake, and where it comes out."""
