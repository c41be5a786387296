"""Checkpoint statistics under Flink's names (`/jobs/:id/checkpoints`): times in ms, sizes in bytes.

start delay: trigger to the first barrier at this subtask. alignment: first to last barrier at this subtask. end to end:
trigger to the last acknowledgement. processed: bytes taken between first and last barrier. persisted: bytes written as
channel state, 0 when aligned. sync and async: the two parts of the snapshot. checkpointed: bytes of the states as text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barrierlab.impl import Acknowledge

NS_PER_MS = 1e6


def ms_between(since_ns: int | None, until_ns: int | None) -> float | None:
    """Return the milliseconds from one time to another; None if one of them has not come."""
    return None if since_ns is None or until_ns is None else (until_ns - since_ns) / NS_PER_MS


@dataclass(slots=True)
class TaskPart:
    """One subtask's part of one checkpoint. Times are simulated nanoseconds."""

    first_barrier_ns: int
    bytes_before: int
    last_barrier_ns: int
    snapshot_ns: int | None = None
    begin_ns: int = 0  # of work from then until its barrier may leave and its image is taken
    processed_bytes: int = 0
    sync_ns: int = 0
    async_ns: int = 0
    state_bytes: int = 0
    persisted_bytes: int = 0
    is_unaligned: bool = False
    reported_ns: int | None = None  # then its asynchronous part began
    acknowledged_ns: int | None = None
    applied: int = 0  # events, when it took its snapshot


@dataclass(slots=True)
class CheckpointRecord:
    """One checkpoint, from its trigger on.

    Besides how it ended, in simulated nanoseconds: when its commands left, and by source came; by channel, when a
    barrier that overtook came to its receiver; when its manifest was begun.
    """

    checkpoint_id: int
    triggered_ns: int
    status: str = "IN_PROGRESS"
    ended_ns: int | None = None
    failure: str | None = None
    parts: dict[str, TaskPart] = field(default_factory=dict)
    commands_ns: int = 0
    commanded_ns: dict[str, int] = field(default_factory=dict)
    overtook_ns: dict[str, int] = field(default_factory=dict)
    manifest_ns: int | None = None


@dataclass(frozen=True, slots=True)
class BufferSize:
    """The state of a gate's debloating, at one time: the size announced last, and how long what is queued lasts."""

    at_ns: int
    buffer_bytes: int
    estimated_s: float


class Metrics:
    """Collects what happens; `model` judges it, this only measures it."""

    def __init__(self) -> None:
        self.checkpoints: dict[int, CheckpointRecord] = {}
        self.refusals: dict[str, int] = {}
        self.queued: list[tuple[int, float]] = []  # when, and how many records wait anywhere
        self.ahead: list[tuple[int, float]] = []  # when, and how many more wait at sources that watermarks hold back
        self.slowest: str | None = None  # which source they wait for, at the run's end
        self.buffer_sizes: dict[tuple[str, str], list[BufferSize]] = {}  # by task and exchange

    def triggered(self, checkpoint_id: int, now_ns: int, commands_ns: int) -> None:
        """Note that a checkpoint has begun; its commands leave at `commands_ns`."""
        self.checkpoints[checkpoint_id] = CheckpointRecord(checkpoint_id, now_ns, commands_ns=commands_ns)

    def manifest(self, checkpoint_id: int, now_ns: int) -> None:
        """Note that the manifest of a checkpoint is begun."""
        self.checkpoints[checkpoint_id].manifest_ns = now_ns

    def debloated(self, task: str, edge: str, now_ns: int, buffer_bytes: int, estimated_s: float) -> None:
        """Note that a gate has thought about the size of its buffers."""
        self.buffer_sizes.setdefault((task, edge), []).append(BufferSize(now_ns, buffer_bytes, estimated_s))

    def waiting(self, now_ns: int, records: float, ahead: float, slowest: str | None) -> None:
        """Note how many records wait anywhere, and how many more at sources that the watermark of `slowest` holds."""
        self.queued.append((now_ns, records))
        self.ahead.append((now_ns, ahead))
        self.slowest = slowest

    def barrier(self, task: str, checkpoint_id: int, now_ns: int, bytes_taken: int) -> None:
        """Note that a barrier took effect at `task`: the first one of a checkpoint, or a later one."""
        parts = self.checkpoints[checkpoint_id].parts
        part = parts.get(task)
        if part is None:
            parts[task] = TaskPart(now_ns, bytes_taken, now_ns)
        else:
            part.last_barrier_ns, part.processed_bytes = now_ns, bytes_taken - part.bytes_before

    def snapshot(self, task: str, checkpoint_id: int, now_ns: int, sync_ns: int, applied: int) -> None:
        """Note that the task takes its image, having applied so many events."""
        part = self.checkpoints[checkpoint_id].parts[task]
        part.snapshot_ns, part.sync_ns, part.applied = now_ns, sync_ns, applied

    def begins(self, task: str, checkpoint_id: int, begin_ns: int) -> None:
        """Note that the task has so much work to do, or so much more than it had, before its barrier leaves."""
        self.checkpoints[checkpoint_id].parts[task].begin_ns += begin_ns

    def async_part(
        self, report: Acknowledge, began_ns: int, async_ns: int, state_bytes: int, inflight_bytes: int
    ) -> None:
        """Note the bytes that a part has to save, and how long that takes while the task goes on."""
        part = self.checkpoints[report.checkpoint_id].parts[report.task]
        part.reported_ns, part.async_ns = began_ns, async_ns
        part.state_bytes, part.persisted_bytes, part.is_unaligned = state_bytes, inflight_bytes, report.is_unaligned

    def commanded(self, source: str, checkpoint_id: int, now_ns: int) -> None:
        """Note that the command to take a checkpoint has come to a source."""
        self.checkpoints[checkpoint_id].commanded_ns[source] = now_ns

    def overtook(self, channel: str, checkpoint_id: int, now_ns: int) -> None:
        """Note that a barrier which has passed what lies in `channel` is at its receiver, which ends its step first."""
        self.checkpoints[checkpoint_id].overtook_ns[channel] = now_ns

    def part(self, task: str, checkpoint_id: int) -> TaskPart | None:
        """One task's part; None if it has none."""
        record = self.checkpoints.get(checkpoint_id)
        return None if record is None else record.parts.get(task)

    def acknowledged(self, task: str, checkpoint_id: int, now_ns: int) -> None:
        self.checkpoints[checkpoint_id].parts[task].acknowledged_ns = now_ns

    def completed(self, checkpoint_id: int, now_ns: int) -> None:
        self._end(checkpoint_id, now_ns, "COMPLETED", None)

    def aborted(self, checkpoint_id: int, now_ns: int, reason: str) -> None:
        self._end(checkpoint_id, now_ns, "FAILED", reason)

    def restored(self, checkpoint_id: int) -> None:
        """Note that the job goes on from a checkpoint whose manifest was written, though nobody was there to say so."""
        record = self.checkpoints[checkpoint_id]
        record.status, record.failure = "COMPLETED", None

    def _end(self, checkpoint_id: int, now_ns: int, status: str, failure: str | None) -> None:
        record = self.checkpoints[checkpoint_id]
        record.status, record.ended_ns, record.failure = status, now_ns, failure

    def refused(self, reason: str) -> None:
        """Note a trigger that the coordinator did not start."""
        self.refusals[reason] = self.refusals.get(reason, 0) + 1
