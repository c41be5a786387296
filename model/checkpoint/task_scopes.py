"""A task alone, and the channels that it sends into: outbox, parts, outputs that close, barriers that hurry.

`TaskReference` is written from protocol rules 4, 5, 8 to 10, 13, 16, 18, 19 and 22. It stands for the driver, too: that
lets a flagged barrier pass what is at the end of a channel, hurries an aligned one whose time is up, and takes a report
out once its barrier is on its way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeGuard
from zlib import crc32

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.injector import BarrierInjectorConfig, InjectBarrierCommand
from barrierlab.impl.checkpoint.recovery import TaskRestore
from barrierlab.impl.checkpoint.report import Acknowledge, Decline, digest
from barrierlab.impl.checkpoint.task import OperatorTask, OutputExchange, SourceTask
from barrierlab.impl.checkpoint.transactions import Ledger
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.errors import NotFinishedError
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.component import CallStimulus, ComponentScope, Reference, RefusedError, Under, stimulus
from barrierlab.model.checkpoint.components import AlignerSettings, Components
from barrierlab.model.checkpoint.scope import Tally
from barrierlab.model.explore.text_table import rows_of, settings_of

Queue = tuple[StreamMessage, ...]


@dataclass(frozen=True)
class Shape:
    """A task, and what happens to it.

    Attributes
    ----------
    is_source : bool
        Else it has two inputs, and an operator that also emits at watermarks and ends.
    exchanges : tuple of (str, tuple of int)
        Kind and outputs of each out-edge; a task without any is a sink.
    verbs : frozenset of str
    events, ids : int
        How many events, and how many checkpoints.
    marks : tuple of int
        The timestamps of watermarks that may come.
    is_unaligned : bool
        Whether its barriers may be flagged.
    most_bytes : int
        What may be recorded.
    writes : bool
        Whether it is a sink that writes what it takes to the external system, exactly once.
    """

    is_source: bool
    exchanges: tuple[tuple[str, tuple[int, ...]], ...]
    verbs: frozenset[str]
    events: int = 1
    ids: int = 1
    marks: tuple[int, ...] = ()
    is_unaligned: bool = False
    most_bytes: int = 1_000
    writes: bool = False


class ReportedSnapshot(NamedTuple):
    """A task's report of a checkpoint; declined, if there is a reason."""

    checkpoint_id: int
    state: str = ""
    position: int | None = None
    watermark_ms: int | None = None
    ended: tuple[int, ...] = ()
    finished: bool = False
    is_unaligned: bool = False
    is_switched: bool = False
    inputs: tuple[tuple[int, tuple[Event, ...]], ...] = ()
    outputs: tuple[tuple[int, tuple[Event, ...]], ...] = ()
    image: Any = None
    prepared: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"declines {self.checkpoint_id}: {self.reason}"
        flags = "".join(("u" * self.is_unaligned, "s" * self.is_switched, "f" * self.finished))
        its = f"at {self.position}, watermark {self.watermark_ms}, ended {self.ended}, {flags or 'aligned'}"
        recorded = f"in {_texts(self.inputs)}, out {_texts(self.outputs)}"
        transactions = f"; prepared {' '.join(self.prepared)}" if self.prepared else ""
        return f"part {self.checkpoint_id} {self.state} {self.image}: {its}; {recorded}{transactions}"


def _texts(record: Sequence[tuple[int, Sequence[StreamMessage]]]) -> str:
    return " ".join(f"{at}:{'+'.join(map(str, each))}" for at, each in record) or "nothing"


_MOST_WAITING = 2
"""So much may be in the outbox of a source when another watermark is sent: a source may repeat one for ever."""


class TaskReference(Reference):
    """The task as the rules have it."""

    fixed = ("shape", "outputs")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.outputs = tuple(output for _, outputs in shape.exchanges for output in outputs)
        self.outbox: tuple[tuple[int, StreamMessage], ...] = ()
        self.channels: tuple[Queue, ...] = ((),) * len(self.outputs)
        self.closed: tuple[int, ...] = ()
        self.turns = (0,) * len(shape.exchanges)
        self.reports: tuple[ReportedSnapshot, ...] = ()
        self.stored: ReportedSnapshot | None = None
        self.position, self.mark, self.finished = 1, None, False
        self.last_terminated_id = self.aborted = 0
        self.next_id = 1
        self.operator: Any = ((0, 0), None, 0)
        self.promised: tuple[int | None, ...] = (None, None)
        self.open: tuple[bool, ...] = (True, True)
        self.has_announced = True
        self.recording: ReportedSnapshot | None = None  # its last barrier has not come
        self.unprepared = self.ever = self.visible = 0  # events and transactions of a sink that writes
        self.prepared: tuple[tuple[str, int, int], ...] = ()  # each with the least id that covers it, and its events

    position: int
    mark: int | None
    finished: bool

    def stands(self) -> tuple[str, ...]:
        outbox = " ".join(f"{output}:{message}" for output, message in self.outbox)
        outside = f"{self.unprepared} open, {len(self.prepared)} prepared, {self.visible} visible"
        return standing(outbox, self.channels, self.finished, self.mark), *map(str, self.reports), outside

    def stimuli(self) -> Sequence[CallStimulus]:
        """Return what a gate, a coordinator, a network and a recovery may do."""
        return [each for each in self._stimuli() if each.verb in self.shape.verbs]

    def _stimuli(self) -> Iterator[CallStimulus]:
        shape = self.shape
        may_be_flagged = (False, True) if shape.is_unaligned else (False,)
        begins = self.next_id <= shape.ids
        if shape.is_source:
            if not self.finished and self.position <= shape.events:
                yield stimulus("emit")
            if not self.finished and len(self.outbox) < _MOST_WAITING:
                yield from (stimulus("watermark", ms) for ms in shape.marks)
            if begins:
                yield from (stimulus("barrier", self.next_id, flagged) for flagged in may_be_flagged)
            yield stimulus("end")
        elif not self.finished and not self.outbox:
            for index in (0, 1):
                if self.open[index]:
                    if sum(self.operator[0]) < shape.events:
                        yield stimulus("event", index)
                    yield from (stimulus("promise", index, ms) for ms in shape.marks)
                    if self.recording is None or index == 1:
                        yield stimulus("end_of", index)
            if begins and self.recording is None:
                yield stimulus("barriers", self.next_id)
        if not shape.is_source and shape.is_unaligned and not self.finished:
            if begins and self.recording is None and self.open[0]:
                yield stimulus("first_barrier", self.next_id)
            if self.recording is not None and self.open[1]:
                yield stimulus("last_barrier", self.recording.checkpoint_id)
        if self.recording is None:
            yield from (stimulus("abort", n) for n in range(1, min(self.next_id, shape.ids) + 1))
        yield from (stimulus("close_output", output) for output in self.outputs if output not in self.closed)
        if self.outbox:
            yield stimulus("send")
        if shape.is_unaligned:
            yield from (stimulus("hurry", output, n) for output in self.outputs for n in self._late(output))
        if self.reports and not any(type(each) is CheckpointBarrier for _, each in self.outbox):
            yield stimulus("take")
        yield from (stimulus("complete", n) for n in range(1, self.last_terminated_id + self.finished + 1))
        if self.recording is None:
            yield stimulus("last_part")
        if self.stored is not None and self.recording is None:
            yield stimulus("recover")

    def _late(self, output: int) -> tuple[int, ...]:
        """Return the barriers that may be ordered to go ahead: not flagged in a channel, and their parts not taken."""
        if self.recording is not None or output in self.closed:
            return ()
        waiting = [message for to, message in self.outbox if to == output and type(message) is CheckpointBarrier]
        reported = [part.checkpoint_id for part in self.reports if not part.reason]
        return tuple(
            each.checkpoint_id
            for each in (*filter(_is_aligned, self.channels[output]), *waiting)
            if each.checkpoint_id in reported
        )

    # What is sent.

    def _to_all(self, message: StreamMessage) -> None:
        self.outbox += tuple((output, message) for output in self.outputs if output not in self.closed)

    def _to_edges(self, event: Event) -> None:
        """Send an event once on each edge: round robin, by key, or on every channel; nothing to a closed output."""
        turns = list(self.turns)
        for at, (kind, outputs) in enumerate(self.shape.exchanges):
            if kind == "rebalance":
                chosen = outputs[turns[at] : turns[at] + 1]
                turns[at] = (turns[at] + 1) % len(outputs)
            elif kind == "hash":
                place = crc32(str(event.key).encode()) % len(outputs)
                chosen = outputs[place : place + 1]
            else:
                chosen = outputs
            self.outbox += tuple((output, event) for output in chosen if output not in self.closed)
        self.turns = tuple(turns)

    def _ahead(self, barrier: CheckpointBarrier) -> tuple[tuple[int, tuple[Event, ...]], ...]:
        """Send the barrier ahead of the outbox, behind others that were (rule 16); return what it passes, by output."""
        front = 0
        while front < len(self.outbox) and _is_flagged(self.outbox[front][1]):
            front += 1
        passed = self.outbox[front:]
        own = tuple((output, barrier) for output in self.outputs if output not in self.closed)
        self.outbox = (*self.outbox[:front], *own, *passed)
        return _by_place((output, each) for output, each in passed if type(each) is Event)

    def send(self) -> tuple[str, ...]:
        """Send the first of the outbox into its channel; a flagged barrier goes ahead of the last events there."""
        (output, message), self.outbox = self.outbox[0], self.outbox[1:]
        if self.shape.is_unaligned:  # else nothing passes it there
            queue = self.channels[output]
            place = _end_of_line(queue) if _is_flagged(message) else len(queue)
            self._put(output, (*queue[:place], message, *queue[place:]))
            if _is_flagged(message):
                self._passes(output, queue[place:], message.checkpoint_id)  # type: ignore[union-attr]
        return (f"sent {message} on {output}",)

    def _put(self, output: int, queue: Queue) -> None:
        self.channels = (*self.channels[:output], queue, *self.channels[output + 1 :])

    def hurry(self, output: int, n: int) -> tuple[str, ...]:
        """Send an aligned barrier ahead, out of the outbox or within its channel (FLINK-27251).

        In the outbox it passes none that is still wanted: that would cost the older checkpoint (rule 6).
        """
        flagged = CheckpointBarrier(n, n, 1)
        place = next((at for at, (to, each) in enumerate(self.outbox) if to == output and _is(each, n)), None)
        if place is not None:
            passed = tuple(each for to, each in self.outbox[:place] if to == output)
            wanted = any(_is_aligned(each) and each.checkpoint_id > self.aborted for each in passed)
            if wanted or self.outbox[place] == (output, flagged):
                return ("stays",)
            rest = (*self.outbox[:place], *self.outbox[place + 1 :])
            front = 0
            while front < len(rest) and _is_flagged(rest[front][1]):
                front += 1
            self.outbox = (*rest[:front], (output, flagged), *rest[front:])
        else:
            queue = self.channels[output]
            at = next(at for at, each in enumerate(queue) if _is(each, n))
            start = _end_of_line(queue[:at])
            passed = queue[start:at]
            self._put(output, (*queue[:start], flagged, *passed, *queue[at + 1 :]))
        self._turn(n)
        self._passes(output, passed, n)
        return ("goes ahead",)

    def _turn(self, n: int) -> None:
        self.reports = tuple(
            part._replace(is_unaligned=True, is_switched=True) if part.checkpoint_id == n and not part.reason else part
            for part in self.reports
        )

    def _passes(self, output: int, passed: Queue, n: int) -> None:
        """Add to the part what a barrier passed on its way out, ahead of what it passed before (rule 16)."""
        events = tuple(each for each in passed if type(each) is Event)
        if not events or n <= self.aborted:
            return
        if self.recording is not None and self.recording.checkpoint_id == n:
            self.recording = _with(self.recording, output, events)
            return
        reports, declines = [], []
        for part in self.reports:
            if part.checkpoint_id != n or part.reason:
                reports.append(part)
                continue
            amended = _with(part, output, events)._replace(is_unaligned=True)
            if _recorded_bytes(amended) <= self.shape.most_bytes:
                reports.append(amended)
            else:  # over the limit it is aborted after all (rule 18)
                declines.append(ReportedSnapshot(n, reason="in-flight limit"))
                self._cancel(n)
        self.reports = (*reports, *declines)

    def _cancel(self, n: int) -> None:
        self.aborted = max(self.aborted, n)
        self._to_all(CancelBarrier(n))

    def close_output(self, output: int) -> None:
        """Close an output that has no reader any more (rule 5)."""
        self.closed = tuple(sorted((*self.closed, output)))
        self.outbox = tuple(entry for entry in self.outbox if entry[0] != output)

    # A source.

    def emit(self) -> None:
        """Emit the next event."""
        self.position += 1
        self._to_edges(_event("x", self.position - 1))

    def watermark(self, ms: int) -> None:
        """Promise a watermark; the highest is the task's own."""
        self.mark = ms if self.mark is None else max(self.mark, ms)
        self._to_all(Watermark(ms))

    def barrier(self, n: int, is_flagged: bool) -> None:
        """Claim a command (rule 4)."""
        self.next_id = n + 1
        if self.finished or n <= self.last_terminated_id:
            return
        self.last_terminated_id = n
        if self.closed:
            self.reports += (ReportedSnapshot(n, reason="output closed"),)
            self._cancel(n)
            return
        part = ReportedSnapshot(n, digest(self.position), self.position, self.mark, image=self.position)
        barrier = CheckpointBarrier(n, n, int(is_flagged))
        if not is_flagged:
            self._to_all(barrier)
        else:
            part = part._replace(is_unaligned=True, outputs=self._ahead(barrier))
        if _recorded_bytes(part) > self.shape.most_bytes:
            self.reports += (ReportedSnapshot(n, reason="in-flight limit"),)
            self._cancel(n)
        else:
            self.reports += (part,)

    def end(self) -> None:
        """Send the end, once: no event follows."""
        if not self.finished:
            self._to_all(EndOfInput())
            self.finished = True

    def abort(self, n: int) -> None:
        """Abort a checkpoint that is under way or to come; what is done with is no news (rule 10)."""
        if n > self.last_terminated_id and not self.finished:
            self.last_terminated_id = n
            self._cancel(n)

    # A task with two inputs.

    def event(self, index: int) -> None:
        """Let an event take effect; behind the cut, on an input whose barrier is to come, it is in flight, too."""
        counts, mark, made = self.operator
        event = _event("xy"[index], counts[index] + 1)
        if self.recording is not None and index == 1:
            kept = dict(self.recording.inputs).get(1, ())
            self.recording = self.recording._replace(inputs=((1, (*kept, event)),))
        self.operator = (tuple(n + (at == index) for at, n in enumerate(counts)), mark, made)
        self.unprepared += self.shape.writes
        self._to_edges(event)

    def promise(self, index: int, ms: int) -> None:
        """Take a watermark, which counts if it moves the least of the open inputs on."""
        before = self.promised[index]
        if before is None or ms > before:
            self.promised = tuple(ms if at == index else each for at, each in enumerate(self.promised))
            self._advance()

    def _advance(self) -> None:
        promises = [each for each, is_open in zip(self.promised, self.open, strict=True) if is_open]
        if None in promises or not promises:
            return
        least = min(each for each in promises if each is not None)
        if self.mark is None or least > self.mark:
            self.mark = least
            self._emit_own(least)
        elif self.has_announced or least < self.mark:
            return
        self.has_announced = True
        self._to_all(Watermark(least))

    def _emit_own(self, reached: int | None) -> None:
        counts, mark, made = self.operator
        self.operator = (counts, mark if reached is None else reached, made + 1)
        self._to_edges(Event("m", made + 1, timestamp_ms=self.operator[1] or 0))

    def end_of(self, index: int) -> None:
        """End an input for the operator; the least of the others counts now; and pass the last end on (rule 13)."""
        self.open = tuple(each and at != index for at, each in enumerate(self.open))
        self._emit_own(None)
        if any(self.open):
            self._advance()
        else:
            self._to_all(EndOfInput())
            self.finished = True
            self._prepare(f"t-final-{self.ever + 1}", self.last_terminated_id + 1)
        if self.recording is not None and index == 1:
            self._complete(self.recording)

    def barriers(self, n: int) -> None:
        """Take the barrier on every open input, with nothing between (rule 8)."""
        self.next_id = n + 1
        if n <= self.last_terminated_id:
            return
        self.last_terminated_id = n
        if self._is_cut(n):
            self._to_all(CheckpointBarrier(n, n))
            self.reports += (self._cut(n),)

    def first_barrier(self, n: int) -> None:
        """Take a flagged barrier on the first input: the cut is made, and the second is recorded (rule 16)."""
        self.next_id = n + 1
        if n <= self.last_terminated_id:
            return
        self.last_terminated_id = n
        if self._is_cut(n):
            part = self._cut(n)._replace(is_unaligned=True, outputs=self._ahead(CheckpointBarrier(n, n, 1)))
            self.recording = part
            if not self.open[1]:
                self._complete(part)

    def last_barrier(self, n: int) -> None:
        """Take the barrier on the second input, too (rule 17)."""
        assert self.recording is not None
        self._complete(self.recording)

    def _complete(self, part: ReportedSnapshot) -> None:
        self.reports, self.recording = (*self.reports, part), None

    def _is_cut(self, n: int) -> bool:
        if self.closed:
            self.reports += (ReportedSnapshot(n, reason="output closed"),)
            self._cancel(n)
        return not self.closed

    def _cut(self, n: int) -> ReportedSnapshot:
        ended = tuple(at for at, is_open in enumerate(self.open) if not is_open)
        if n:
            self._prepare(f"t-{n}", n)
        prepared = tuple(name for name, _, _ in self.prepared)
        return ReportedSnapshot(
            n, digest(self.operator), None, self.mark, ended, image=self.operator, prepared=prepared
        )

    def _prepare(self, name: str, committed_from: int) -> None:
        if self.unprepared:
            self.prepared += ((name, committed_from, self.unprepared),)
            self.ever, self.unprepared = self.ever + 1, 0

    def complete(self, n: int) -> None:
        """Complete a checkpoint: what it covers becomes visible (rule 20)."""
        self.visible += sum(events for _, committed_from, events in self.prepared if committed_from <= n)
        self.prepared = tuple(each for each in self.prepared if each[1] > n)

    # Reports, the end, and a new beginning.

    def take(self) -> None:
        """Take the reports, as a driver does; the last part is stored."""
        self.stored = next((part for part in reversed(self.reports) if not part.reason), self.stored)
        self.reports = ()

    def last_part(self) -> tuple[str, ...]:
        """Store what stands for all later parts of a task that has ended (FLIP-147), and return it."""
        if not self.finished:
            raise RefusedError("NotFinishedError")
        if self.shape.is_source:
            part = ReportedSnapshot(0, digest(self.position), self.position, self.mark, image=self.position)
        else:
            part = self._cut(0)
        self.stored = part._replace(checkpoint_id=self.last_terminated_id, finished=True)
        return (str(self.stored),)

    def recover(self) -> tuple[str, ...]:
        """Go on behind the cut as a new task (rule 22); outputs are open again, and nothing is on its way."""
        part = self.stored
        assert part is not None
        self.__init__(self.shape)  # type: ignore[misc]
        n = max(1, part.checkpoint_id)  # a final snapshot stands for the part of a later checkpoint
        self.stored, self.last_terminated_id, self.next_id = part, n, n + 1
        self.mark, self.finished, self.has_announced = part.watermark_ms, part.finished, part.watermark_ms is None
        if part.position is not None:
            self.position = part.position
        else:
            self.operator = part.image
            self.open = tuple(at not in part.ended for at in (0, 1))
        return (part.state,)


def _event(source: str, sequence: int) -> Event:
    return Event(source, sequence, key=sequence, timestamp_ms=sequence)


def _is_flagged(message: StreamMessage) -> bool:
    return type(message) is CheckpointBarrier and message.is_unaligned


def _is_aligned(message: StreamMessage) -> TypeGuard[CheckpointBarrier]:
    return type(message) is CheckpointBarrier and not message.is_unaligned


def _is(message: StreamMessage, n: int) -> bool:
    return type(message) is CheckpointBarrier and message.checkpoint_id == n


def _end_of_line(queue: Queue) -> int:
    """Return where the events and watermarks begin that are last in a channel."""
    place = len(queue)
    while place and type(queue[place - 1]) in (Event, Watermark):
        place -= 1
    return place


def _by_place(events: Iterator[tuple[int, Event]]) -> tuple[tuple[int, tuple[Event, ...]], ...]:
    record: dict[int, tuple[Event, ...]] = {}
    for output, event in events:
        record[output] = (*record.get(output, ()), event)
    return tuple(sorted(record.items()))


def _with(part: ReportedSnapshot, output: int, events: tuple[Event, ...]) -> ReportedSnapshot:
    record = dict(part.outputs)
    record[output] = (*events, *record.get(output, ()))
    return part._replace(outputs=tuple(sorted(record.items())))


def _recorded_bytes(part: ReportedSnapshot) -> int:
    return sum(event.size_bytes for _, events in (*part.inputs, *part.outputs) for event in events)


def standing(outbox: str, channels: Sequence[Queue], finished: bool, mark: int | None) -> str:
    """Return where a task stands, as both sides say it."""
    lines = " | ".join(" ".join(map(str, queue)) for queue in channels)
    return f"outbox [{outbox}], channels [{lines}], {'finished' if finished else 'goes on'}, watermark {mark}"


class TaskMachine(Under):
    """A task of `impl` and its channels, with the verbs of `TaskReference`."""

    refusals = (NotFinishedError,)

    def __init__(self, shape: Shape, components: Components) -> None:
        self.shape, self._components = shape, components
        self.outputs = tuple(output for _, outputs in shape.exchanges for output in outputs)
        self.channels: tuple[Queue, ...] = ((),) * len(self.outputs)
        self.stored: Acknowledge | None = None
        self.ledger: Ledger = components.ledger()
        self.task: Any = self._made()

    def _made(self) -> SourceTask | OperatorTask:
        shape = self.shape
        exchanges = [OutputExchange(kind, outputs) for kind, outputs in shape.exchanges]
        unaligned = UnalignedCheckpointConfig(True, 1_000, shape.most_bytes) if shape.is_unaligned else None
        if shape.is_source:
            injector = self._components.injector(BarrierInjectorConfig(None, "t"))
            return self._components.make_source("t", injector, unaligned, exchanges, _silent)
        aligner = AlignerSettings(BarrierAlignerConfig(2, 100, 10_000, 1_000_000), unaligned, not shape.exchanges)
        if not shape.exchanges:
            writer = self._components.writer("t", self.ledger, "exactly_once", _silent) if shape.writes else None
            return self._components.make_sink("t", Tally(2, "m"), aligner, writer, _silent)
        return self._components.make_task("t", Tally(2, "m"), aligner, exchanges, _silent)

    @property
    def machines(self) -> Sequence[object]:
        """The task, and what it is made of."""
        if self.shape.is_source:
            return (self.task,)
        aligner = self.task.gate.aligner
        owned = (getattr(aligner, name) for name in ("inputs", "recorder") if hasattr(aligner, name))
        return self.task, self.task.gate, aligner, *owned

    def capture(self) -> Hashable:
        """Return what the task gives of itself, and the driver's own."""
        return self.task.capture(), self.channels, self.stored, self.ledger.capture()

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        captured, self.channels, self.stored, ledger = value
        self.task.restore(captured)
        self.ledger.restore(ledger)

    def stands(self) -> tuple[str, ...]:
        outbox = " ".join(f"{output}:{message}" for output, message in self.task.outbox)
        stands = standing(outbox, self.channels, self.task.finished, self.task.watermark_ms)
        writer = self.task.writer if self.shape.writes else None
        opened, prepared = (len(writer.open), len(writer.prepared)) if writer else (0, 0)
        outside = f"{opened} open, {prepared} prepared, {len(self.ledger.visible('t'))} visible"
        return stands, *(str(_part(report)) for report in self.task.reports), outside

    def emit(self) -> None:
        self.task.emit(_event("x", self.task.position))

    def watermark(self, ms: int) -> None:
        self.task.emit_watermark(ms)

    def barrier(self, n: int, is_flagged: bool) -> None:
        self.task.injector.coordinator_handle().inject(InjectBarrierCommand(n, n, is_flagged))
        self.task.poll(0)

    def end(self) -> None:
        self.task.end()

    def abort(self, n: int) -> None:
        self.task.abort(n, Reason.EXPIRED, 0)

    def close_output(self, output: int) -> None:
        self.task.close_output(output)

    def event(self, index: int) -> None:
        counts = self.task.operator.counts
        self._offered((index, _event("xy"[index], counts[index] + 1)))

    def promise(self, index: int, ms: int) -> None:
        self._offered((index, Watermark(ms)))

    def end_of(self, index: int) -> None:
        self._offered((index, EndOfInput()))

    def barriers(self, n: int) -> None:
        ended = self.task.final_snapshot().ended if self.task.finished else self.task._ended()
        self._offered(*((index, CheckpointBarrier(n, n)) for index in (0, 1) if index not in ended))

    def first_barrier(self, n: int) -> None:
        self.task.offer_overtaking(0, CheckpointBarrier(n, n, 1), (), 0)

    def last_barrier(self, n: int) -> None:
        self.task.offer_overtaking(1, CheckpointBarrier(n, n, 1), (), 0)

    def _offered(self, *messages: tuple[int, StreamMessage]) -> None:
        for index, message in messages:
            self.task.offer(index, message, 0)
            while self.task.drain_next(0):
                pass

    def send(self) -> tuple[str, ...]:
        output, message = self.task.outbox.popleft()
        if self.shape.is_unaligned:
            queue = self.channels[output]
            place = _end_of_line(queue) if _is_flagged(message) else len(queue)
            self._put(output, (*queue[:place], message, *queue[place:]))
            if _is_flagged(message):
                self.task.capture_overtaken(output, queue[place:], message.checkpoint_id)
        return (f"sent {message} on {output}",)

    def _put(self, output: int, queue: Queue) -> None:
        self.channels = (*self.channels[:output], queue, *self.channels[output + 1 :])

    def hurry(self, output: int, n: int) -> tuple[str, ...]:
        queue = self.channels[output]
        flagged = CheckpointBarrier(n, n, 1)
        if self.task.prioritise_barrier(output, flagged):
            return ("goes ahead",)
        at = next((at for at, each in enumerate(queue) if _is(each, n)), None)
        if at is None:
            return ("stays",)
        start = _end_of_line(queue[:at])
        self._put(output, (*queue[:start], flagged, *queue[start:at], *queue[at + 1 :]))
        self.task.convert_to_unaligned(n)
        self.task.capture_overtaken(output, queue[start:at], n)
        return ("goes ahead",)

    def take(self) -> None:
        parts = [report for report in self.task.reports if type(report) is Acknowledge]
        self.stored = parts[-1] if parts else self.stored
        self.task.reports.clear()

    def complete(self, n: int) -> None:
        self.task.notify(n, 0)

    def last_part(self) -> tuple[str, ...]:
        self.stored = self.task.final_snapshot()
        return (str(_part(self.stored)),)

    def recover(self) -> tuple[str, ...]:
        part = self.stored
        assert part is not None
        self.channels, self.task = ((),) * len(self.outputs), self._made()
        plan = TaskRestore("t", part.image, part.position, part.watermark_ms, part.ended, part.finished)
        return (self.task.recover(plan, max(1, part.checkpoint_id)),)


def _silent(verb: str, index: int, subject: object) -> None:
    """Do nothing with a report."""


def _part(report: Acknowledge | Decline) -> ReportedSnapshot:
    if type(report) is Decline:
        return ReportedSnapshot(report.checkpoint_id, reason=str(report.reason))
    assert type(report) is Acknowledge
    inputs, outputs = (
        tuple((data.input_id, tuple(data.events)) for data in record)
        for record in (report.inflight, report.inflight_output)
    )
    return ReportedSnapshot(
        *(report.checkpoint_id, report.digest, report.position, report.watermark_ms, report.ended, report.finished),
        *(report.is_unaligned, report.was_threshold_triggered, inputs, outputs, report.image, report.prepared),
    )


def _scope(kind: str, name: str, states: str, verbs: str, exits: str, bounds: str) -> ComponentScope:
    exchanges = []
    for each in filter(None, exits.split(",")):
        how, *outputs = each.split()
        exchanges.append((how, tuple(map(int, outputs))))
    shape = Shape(kind == "source", tuple(exchanges), frozenset(verbs.split()), **settings_of(bounds))
    return ComponentScope(f"task: {name}", int(states), partial(TaskMachine, shape), partial(TaskReference, shape))


# The task, what happens, the states, the verbs, the exchanges with their outputs, and the other bounds of its shape.
_TABLE = """
source | a source that ends and comes back | 660 | emit watermark barrier end abort send take last_part recover
    | forward 0 | marks=(2,)
source | a source whose watermark does not go back | 112 | watermark barrier send take recover
    | forward 0 | events=0, marks=(1, 2)
source | a source whose outputs close | 752 | emit barrier abort close_output send take | forward 0, broadcast 1 | ids=2
source | a source whose barriers go ahead, or hurry | 2904 | emit barrier send take hurry abort
    | forward 0 | events=2, ids=2, is_unaligned=True, most_bytes=1
source | a source of which several barriers hurry | 702 | emit barrier abort hurry
    | forward 0 | ids=3, is_unaligned=True
source | a source of which barriers hurry on one output of two | 405 | emit barrier hurry
    | broadcast 0 1 | events=2, ids=2, is_unaligned=True, most_bytes=1
source | a source that spreads its events | 169 | emit barrier send take
    | rebalance 0 1, hash 2 3 | events=2, is_unaligned=True
operator | two inputs: watermarks, ends and recovery | 2346 | promise end_of barriers send take last_part recover
    | forward 0 | events=0, marks=(1, 2)
operator | two inputs: outputs that close | 781 | event barriers abort close_output send take
    | forward 0, forward 1 | ids=2
operator | two inputs: a barrier goes ahead | 2765
    | event end_of first_barrier last_barrier send take hurry barriers | forward 0 | events=2, is_unaligned=True
operator | a sink that writes nothing | 624 | event promise end_of barriers take last_part | | marks=(1,)
operator | a sink that writes | 1178 | event promise end_of barriers complete take last_part | | marks=(1,), writes=True
"""
SCOPES = tuple(_scope(*cells) for cells in rows_of(_TABLE))
