"""Checkpoint statistics under Flink's names (`/jobs/:id/checkpoints`): times in ms, sizes in bytes.

start delay: trigger to the first barrier at this subtask. alignment: first to last barrier at this subtask. end to end:
trigger to the last acknowledgement. processed: bytes taken between first and last barrier. persisted: bytes written as
channel state, 0 when aligned. sync and async: the two parts of the snapshot. checkpointed: bytes of the states as text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from impl import Acknowledge

NS_PER_MS = 1e6


@dataclass(slots=True)
class TaskPart:
    """One subtask's part of one checkpoint. Times are simulated nanoseconds."""

    first_barrier_ns: int
    bytes_before: int
    last_barrier_ns: int
    snapshot_ns: int | None = None
    processed_bytes: int = 0
    sync_ns: int = 0
    async_ns: int = 0
    state_bytes: int = 0
    persisted_bytes: int = 0
    is_unaligned: bool = False
    acknowledged_ns: int | None = None


@dataclass(slots=True)
class CheckpointRecord:
    """One checkpoint, from its trigger on."""

    checkpoint_id: int
    triggered_ns: int
    status: str = "IN_PROGRESS"
    ended_ns: int | None = None
    failure: str | None = None
    parts: dict[str, TaskPart] = field(default_factory=dict)


class Metrics:
    """Collects what happens; `model` judges it, this only measures it."""

    def __init__(self) -> None:
        self.checkpoints: dict[int, CheckpointRecord] = {}
        self.refusals: dict[str, int] = {}

    def triggered(self, checkpoint_id: int, now_ns: int) -> None:
        self.checkpoints[checkpoint_id] = CheckpointRecord(checkpoint_id, now_ns)

    def barrier(self, task: str, checkpoint_id: int, now_ns: int, bytes_taken: int) -> None:
        """A barrier took effect at `task`: the first one of a checkpoint, or a later one."""
        parts = self.checkpoints[checkpoint_id].parts
        part = parts.get(task)
        if part is None:
            parts[task] = TaskPart(now_ns, bytes_taken, now_ns)
        else:
            part.last_barrier_ns, part.processed_bytes = now_ns, bytes_taken - part.bytes_before

    def snapshot(self, task: str, checkpoint_id: int, now_ns: int, sync_ns: int) -> None:
        """The task takes its image."""
        part = self.checkpoints[checkpoint_id].parts[task]
        part.snapshot_ns, part.sync_ns = now_ns, sync_ns

    def async_part(self, report: Acknowledge, async_ns: int) -> None:
        """The part that is saved while the task goes on, and how many bytes it saves."""
        part = self.checkpoints[report.checkpoint_id].parts[report.task]
        part.async_ns, part.state_bytes = async_ns, len(repr(report.image))
        part.is_unaligned = report.is_unaligned
        part.persisted_bytes = sum(data.size_bytes for data in (*report.inflight, *report.inflight_output))

    def acknowledged(self, task: str, checkpoint_id: int, now_ns: int) -> None:
        self.checkpoints[checkpoint_id].parts[task].acknowledged_ns = now_ns

    def completed(self, checkpoint_id: int, now_ns: int) -> None:
        self._end(checkpoint_id, now_ns, "COMPLETED", None)

    def aborted(self, checkpoint_id: int, now_ns: int, reason: str) -> None:
        self._end(checkpoint_id, now_ns, "FAILED", reason)

    def _end(self, checkpoint_id: int, now_ns: int, status: str, failure: str | None) -> None:
        record = self.checkpoints[checkpoint_id]
        record.status, record.ended_ns, record.failure = status, now_ns, failure

    def refused(self, reason: str) -> None:
        """A trigger that the coordinator did not start."""
        self.refusals[reason] = self.refusals.get(reason, 0) + 1
