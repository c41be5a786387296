"""An external source in the place of `impl.checkpoint.task.SourceTask` in whole dataflows.

The records are those that the scope has; the source says which of them it reads, what it sends, and where it cuts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, cast

from barrierlab.impl.checkpoint.injector import CheckpointBarrierInjector
from barrierlab.impl.checkpoint.recovery import TaskRestore
from barrierlab.impl.checkpoint.report import Acknowledge, Tell, digest, silent
from barrierlab.impl.checkpoint.task import OutputExchange, SourceTask
from barrierlab.impl.messages import CheckpointBarrier, Event, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.hosting import ExternalError, Hosted, brief, examine_class
from barrierlab.model.checkpoint.interfaces import Source, SourcePort

_OPTIONAL = {"aborts": ("abort",), "ends": ("finish",), "recovery": ("recover",)}


def examine(kind: type) -> None:
    """Look at a class before anything is explored: `model.checkpoint.hosting.examine_class`."""
    examine_class(kind, Source, _OPTIONAL, "name, port", lambda: ExternalSource(kind, "a"))


class ExternalSource(SourceTask):
    """Adapts an external source to the interface of `impl`.

    Parameters
    ----------
    kind : type
    name : str
    injector, exchanges, tell
        As those of `impl.checkpoint.task.SourceTask`.
    """

    __slots__ = ("_hosted", "cut", "forwarded", "record")

    def __init__(
        self,
        kind: type,
        name: str,
        injector: CheckpointBarrierInjector | None = None,
        exchanges: Iterable[OutputExchange] = (),
        tell: Tell = silent,
    ) -> None:
        super().__init__(name, injector, exchanges, tell)
        port: SourcePort = _Port(self)
        self._hosted = Hosted(lambda: kind(name, port), (port,))
        self.record: Event | None = None  # the next one of the log, while it may be read
        self.cut: tuple[int, int] | None = None  # checkpoint and position, while a barrier is handled
        self.forwarded: CheckpointBarrier | None = None

    def _its_position(self) -> int:
        position = self._hosted.machine.position()
        if type(position) is not int:
            name = type(self._hosted.machine).__name__
            raise ExternalError(f"{name}.position answered {brief(position)}; allowed: a number from 1 on")
        return position

    def emit(self, event: Event) -> None:
        """`Source.read_next`."""
        self.record = event
        self._hosted.machine.read_next()
        self.record, self.position = None, self._its_position()

    def emit_watermark(self, timestamp_ms: int) -> None:
        """`Source.emit_watermark`."""
        self._hosted.machine.emit_watermark(timestamp_ms)

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        """`Source.on_barrier`, if a command is there; and the acknowledgement of what it has taken."""
        barrier = self.injector.poll_barrier(now_ns)
        if barrier is None:
            return None
        self.cut = self.forwarded = None
        self._hosted.machine.on_barrier(barrier)
        forwarded = cast("CheckpointBarrier | None", self.forwarded)  # by the port, as `cut`
        cut, self.cut, self.forwarded = cast("tuple[int, int] | None", self.cut), None, None
        if cut is not None:
            self._acknowledge(*cut, is_ahead=forwarded is not None and forwarded.is_unaligned)
        return forwarded

    def _acknowledge(self, checkpoint_id: int, position: int, is_ahead: bool) -> None:
        report = Acknowledge(
            self.name, checkpoint_id, digest(position), position, position, watermark_ms=self.watermark_ms
        )
        if is_ahead:
            report = replace(report, is_unaligned=True, inflight_output=self.take_overtaken())
            if self.declines_for_size(report):
                return
        self.tell("complete", -1, checkpoint_id)
        self.reports.append(report)

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> bool:
        """`Source.abort`, and whether that was news."""
        sent = len(self.outbox)
        self._hosted.machine.abort(checkpoint_id)
        self.last_terminated_id = max(self.last_terminated_id, checkpoint_id)
        return len(self.outbox) > sent

    def end(self) -> None:
        """`Source.finish`."""
        self._hosted.machine.finish()

    def recover(self, part: TaskRestore, checkpoint_id: int) -> str:
        """`Source.recover`, and the digest of its position."""
        position = 1 if part.position is None else part.position
        self._hosted.machine.recover(position, checkpoint_id, part.finished)
        self.position = self._its_position()
        self.watermark_ms, self.finished, self.last_terminated_id = part.watermark_ms, part.finished, checkpoint_id
        return digest(self.position)

    def capture(self) -> Hashable:
        """Return all of it."""
        return super().capture(), self._hosted.capture()

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        task, inner = value
        super().restore(task)
        self._hosted.restore(inner)


class _Port:
    """The port of a source: `SourcePort`."""

    def __init__(self, task: ExternalSource) -> None:
        self._task = task

    def read(self, position: int) -> Event:
        record = self._task.record
        if record is None or type(position) is not int or position < 1:
            raise ExternalError(f"read({brief(position)}); allowed: a position from 1 on, while read_next is called")
        if position == record.sequence:
            return record
        return Event(record.source, position, timestamp_ms=record.timestamp_ms + position - record.sequence)

    def send(self, message: Event | Watermark) -> None:
        task = self._task
        if type(message) is Event:
            task.send(message)
            return
        if type(message) is not Watermark:
            raise ExternalError(f"send({brief(message)}); allowed: an Event or a Watermark")
        if task.watermark_ms is None or message.timestamp_ms > task.watermark_ms:
            task.watermark_ms = message.timestamp_ms
        task.send_to_all(message)

    def snapshot(self, checkpoint_id: int, position: int) -> None:
        task = self._task
        task.tell("snapshot", -1, (checkpoint_id, digest(position)))
        task.cut = checkpoint_id, position
        task.last_terminated_id = max(task.last_terminated_id, checkpoint_id)

    def forward(self, barrier: CheckpointBarrier) -> None:
        task = self._task
        if type(barrier) is not CheckpointBarrier:
            raise ExternalError(f"forward({brief(barrier)}); allowed: the barrier")
        task.forwarded = barrier
        if barrier.is_unaligned:
            task.forward_ahead(barrier)
        else:
            task.forward(barrier)

    def cancel(self, checkpoint_id: int) -> None:
        self._task.cancel(checkpoint_id)

    def end(self) -> None:
        if self._task.finished:
            raise ExternalError("end(); allowed: once")
        SourceTask.end(self._task)
