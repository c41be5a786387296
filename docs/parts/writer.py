"""A sink writer in two phases, with transactions that are named after their checkpoints; and one with a bug."""

from __future__ import annotations

from collections.abc import Sequence

from barrierlab.impl import Event
from barrierlab.model.checkpoint.interfaces import ExternalSystem


class TwoPhase:
    """Transactions named after their checkpoints."""

    role = "two_phase_writer"

    def __init__(self, sink: str, external: ExternalSystem) -> None:
        self.sink, self.external = sink, external
        self.open: list[Event] = []
        self.waiting: list[tuple[str, int]] = []
        self.newest = self.number = 0

    def write(self, event: Event) -> None:
        self.open.append(event)

    def pre_commit(self, checkpoint_id: int) -> None:
        self.newest = checkpoint_id
        self._prepare(f"{self.sink}-{checkpoint_id}", checkpoint_id)

    def finish(self) -> None:
        self._prepare(f"{self.sink}-last-{self.external.count()}", self.newest + 1)

    def _prepare(self, name: str, committed_from: int) -> None:
        if self.open:
            self.external.prepare(name, self.open)
            self.waiting.append((name, committed_from))
            self.open = []

    def prepared(self) -> list[str]:
        return [name for name, _ in self.waiting]

    def commit(self, checkpoint_id: int) -> None:
        while self.waiting and self.waiting[0][1] <= checkpoint_id:
            self.external.commit(self.waiting.pop(0)[0])

    def abort(self, checkpoint_id: int) -> None: ...

    def recover(self, prepared: Sequence[str], checkpoint_id: int) -> None:
        self.newest = checkpoint_id
        for name in prepared:
            self.external.commit(name)
        for name in self.external.prepared():
            self.external.roll_back(name)


class Planted(TwoPhase):
    """Commits when it takes its part, and not when the checkpoint is complete."""

    def pre_commit(self, checkpoint_id: int) -> None:
        super().pre_commit(checkpoint_id)
        super().commit(checkpoint_id)
