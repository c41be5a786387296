"""Sources as an engine may bring them: a sound one, one over `impl`'s, and some with one mistake each."""

from __future__ import annotations

from dataclasses import replace

from barrierlab.impl import Acknowledge, CancelBarrier, CheckpointBarrier, EndOfInput, Event, Reason, Watermark
from barrierlab.impl.checkpoint.injector import InjectBarrierCommand
from barrierlab.impl.checkpoint.recovery import TaskRestore
from barrierlab.impl.checkpoint.task import OutputExchange, SourceTask
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


class EndsTwice(Log):
    """Sends its end a second time."""

    def finish(self) -> None:
        super().finish()
        self.port.end()


class OfImpl:
    """A thin adapter over the source of `impl`, with its injector."""

    role = "source"
    of_impl: type[SourceTask] = SourceTask

    def __init__(self, name: str, port: SourcePort) -> None:
        self.name, self.port, self.task = name, port, self.of_impl(name, exchanges=[OutputExchange("forward", (0,))])

    def _pass_on(self) -> None:
        for report in self.task.reports:
            assert type(report) is Acknowledge
            assert report.position is not None
            self.port.snapshot(report.checkpoint_id, report.position)
        for _, message in self.task.outbox:
            if type(message) is CheckpointBarrier:
                self.port.forward(message)
            elif type(message) is CancelBarrier:
                self.port.cancel(message.checkpoint_id)
            elif type(message) is EndOfInput:
                self.port.end()
            else:
                assert isinstance(message, Event | Watermark)
                self.port.send(message)
        self.task.reports.clear()
        self.task.outbox.clear()

    def read_next(self) -> None:
        self.task.emit(self.port.read(self.task.position))
        self._pass_on()

    def emit_watermark(self, timestamp_ms: int) -> None:
        self.task.emit_watermark(timestamp_ms)
        self._pass_on()

    def on_barrier(self, barrier: CheckpointBarrier) -> None:
        command = InjectBarrierCommand(barrier.checkpoint_id, barrier.epoch, barrier.is_unaligned)
        self.task.injector.coordinator_handle().inject(command)
        self.task.poll(0)
        self._pass_on()

    def abort(self, checkpoint_id: int) -> None:
        self.task.abort(checkpoint_id, Reason.CANCELLED, 0)
        self._pass_on()

    def finish(self) -> None:
        self.task.end()
        self._pass_on()

    def position(self) -> int:
        return self.task.position

    def recover(self, position: int, checkpoint_id: int, finished: bool) -> None:
        self.task.recover(TaskRestore(self.name, None, position, finished=finished), checkpoint_id)


class CutsAhead(SourceTask):
    """Its part begins behind the next record."""

    __slots__ = ()

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        self.position += 1
        barrier = super().poll(now_ns)
        self.position -= 1
        return barrier


class BeginsAnew(SourceTask):
    """Goes on at the beginning, whatever the checkpoint says."""

    __slots__ = ()

    def recover(self, part: TaskRestore, checkpoint_id: int) -> str:
        return super().recover(replace(part, position=1), checkpoint_id)


class EndsAndGoesOn(SourceTask):
    """Does not know that it has ended."""

    __slots__ = ()

    def end(self) -> None:
        super().end()
        self.finished = False


class Ahead(OfImpl):
    """With the first of these."""

    of_impl = CutsAhead


class Anew(OfImpl):
    """With the second."""

    of_impl = BeginsAnew


class On(OfImpl):
    """With the third."""

    of_impl = EndsAndGoesOn


PLANTED: dict[type, tuple[str, str]] = {
    Ahead: ("aligned: a->s; events 1, checkpoints 1; no fault", "CUT"),
    Anew: ("aligned: a->s; events 1, checkpoints 1; crash", "REC"),
    On: ("aligned: a->s; events 1, checkpoints 1; closed input", "FIFO"),
    CutsBehind: ("aligned: a->s; events 1, checkpoints 1; no fault", "CUT"),
    SeeksOneFurther: ("aligned: a->s; events 1, checkpoints 1; crash", "REC"),
    Planted: ("aligned: a->s; events 1, checkpoints 1; no fault", "LIVE"),
    ForwardsNothing: ("aligned: a->s; events 1, checkpoints 1; no fault", "LIVE"),
    ReadsBehindTheEnd: ("aligned: a->s; events 1, checkpoints 1; closed input", "FIFO"),
    EndsTwice: ("aligned: a->s; events 1, checkpoints 1; closed input", "RAISED"),
    BarrierBeforeTheRecord: ("aligned: a->s; events 2, checkpoints 2; no fault", "NOLOSS"),
}
"""With one mistake, and where it comes out."""
