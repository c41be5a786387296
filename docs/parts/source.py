"""A source that reads a log, record by record; and one with a bug."""

from __future__ import annotations

from barrierlab.impl import CheckpointBarrier, Watermark
from barrierlab.model.checkpoint.interfaces import SourcePort


class Log:
    """Reads a log, record by record."""

    role = "source"

    def __init__(self, name: str, port: SourcePort) -> None:
        self.port, self.at, self.done, self.has_ended = port, 1, 0, False

    def read_next(self) -> None:
        self.port.send(self.port.read(self.at))
        self.at += 1

    def emit_watermark(self, timestamp_ms: int) -> None:
        self.port.send(Watermark(timestamp_ms))

    def on_barrier(self, barrier: CheckpointBarrier) -> None:
        if not self.has_ended and barrier.checkpoint_id > self.done:
            self.done = barrier.checkpoint_id
            self.port.snapshot(self.done, self.at)
            self.port.forward(barrier)

    def abort(self, checkpoint_id: int) -> None:
        if not self.has_ended and checkpoint_id > self.done:
            self.done = checkpoint_id
            self.port.cancel(checkpoint_id)

    def finish(self) -> None:
        self.has_ended = True
        self.port.end()

    def position(self) -> int:
        return self.at

    def recover(self, position: int, checkpoint_id: int, finished: bool) -> None:
        self.at, self.done, self.has_ended = position, checkpoint_id, finished


class Planted(Log):
    """Sends a barrier with the next record only, and an idle source never."""

    def __init__(self, name: str, port: SourcePort) -> None:
        super().__init__(name, port)
        self.waiting: list[CheckpointBarrier] = []

    def on_barrier(self, barrier: CheckpointBarrier) -> None:
        self.waiting.append(barrier)

    def read_next(self) -> None:
        for barrier in self.waiting:
            super().on_barrier(barrier)
        self.waiting = []
        super().read_next()
