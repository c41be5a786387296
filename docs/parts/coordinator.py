"""A coordinator written from the page alone: one checkpoint at a time, nothing captured; and one with a bug."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barrierlab.impl import Acknowledge, Decline, Reason
from barrierlab.impl.checkpoint.actions import (
    Aborted,
    AbortTask,
    Completed,
    CoordinatorAction,
    Inject,
    Notify,
    Publish,
    Refused,
    Triggered,
)
from barrierlab.impl.checkpoint.coordinator import CoordinatorConfig
from barrierlab.impl.checkpoint.injector import InjectBarrierCommand


class Plain:
    """A coordinator that was written from the page alone: one checkpoint at a time, nothing captured."""

    role = "coordinator"

    def __init__(self, config: CoordinatorConfig, tasks: Iterable[str], sources: Iterable[str], first_id: int) -> None:
        self.flag, self.tasks, self.sources = config.unaligned, list(tasks), list(sources)
        self.next_id, self.current, self.writing = first_id, 0, 0
        self.parts: dict[str, Acknowledge] = {}
        self.ends: dict[str, Acknowledge | None] = {}
        self.is_up, self.is_over = True, False

    def trigger(self, now_ns: int) -> Iterable[CoordinatorAction]:
        if self.current or not self.is_up or all(source in self.ends for source in self.sources):
            return [Refused(Reason.TOO_MANY_PENDING)]
        self.current, self.next_id = self.next_id, self.next_id + 1
        self.parts = {}
        command = InjectBarrierCommand(self.current, self.current, self.flag)
        return [
            Triggered(self.current),
            *(Inject(source, command) for source in self.sources if source not in self.ends),
        ]

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Iterable[CoordinatorAction]:
        if report.checkpoint_id != self.current or self.writing:
            return []
        self.parts[report.task] = report
        return self._look()

    def _look(self) -> Iterable[CoordinatorAction]:
        begun: list[CoordinatorAction] = []
        if not self.current and len(self.ends) == len(self.tasks) and self.is_up and not self.is_over:
            self.current, self.next_id, self.parts = self.next_id, self.next_id + 1, {}
            begun = [Triggered(self.current)]  # of final snapshots alone
        parts = {task: self._part(task) for task in self.tasks}
        if not self.current or self.writing or not all(parts.values()):
            return begun
        self.writing = self.current
        return [*begun, Publish(self.current, tuple(part for part in parts.values() if part is not None))]

    def _part(self, task: str) -> Acknowledge | None:
        end = self.ends.get(task)
        return self.parts.get(task) or (end if end is not None and end.checkpoint_id < self.current else None)

    def decline(self, report: Decline, now_ns: int) -> Iterable[CoordinatorAction]:
        return self.abort(report.checkpoint_id, report.reason, now_ns)

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> Iterable[CoordinatorAction]:
        if checkpoint_id != self.current or self.writing:
            return
        self.current = 0
        yield Aborted(checkpoint_id, reason)
        for task in self.tasks:
            if task not in self.ends:
                yield AbortTask(task, checkpoint_id, reason)
        yield from self._look()

    def finished(self, task: str, now_ns: int, part: Acknowledge | None) -> Iterable[CoordinatorAction]:
        self.ends[task] = Acknowledge(task, 0) if part is None else part
        return self._look()

    def published(self, checkpoint_id: int, now_ns: int) -> Iterable[CoordinatorAction]:
        self.is_over = all(self.parts.get(task) is None for task in self.tasks)
        self.current = self.writing = 0
        yield Completed(checkpoint_id)
        if self.is_up:
            yield from (Notify(task, checkpoint_id) for task in self.tasks)
            yield from self._look()

    def suspend(self, now_ns: int, reason: Reason) -> Iterable[CoordinatorAction]:
        self.is_up = False
        if self.current and not self.writing:
            yield Aborted(self.current, reason)
            self.current = 0

    def resume(self, checkpoint_id: int, now_ns: int, finished: Mapping[str, Any]) -> None:
        self.is_up, self.is_over, self.current, self.writing = True, len(finished) == len(self.tasks), 0, 0
        self.ends = dict(finished)


class Planted(Plain):
    """Takes a task that has ended for one that is to report."""

    def finished(self, task: str, now_ns: int, part: Acknowledge | None) -> Iterable[CoordinatorAction]:
        return []
