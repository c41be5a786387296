"""The executor of a partition around an operator: it carries a gate's effects out, in order, into its outbox.

The outbox is first in, first out: what an operator gave for earlier messages leaves before the barrier (defect P-11),
and the driver offers nothing while something is in it, which is backpressure. Barrier, watermark, cancel and end go to
every output; events where the exchange of each out-edge says. Protocol rules 4, 5, 8 and 9.

A task that has finished has a final snapshot: it stands for its part of every later checkpoint (FLIP-147). A new task
that is restored (rule 22) goes on behind its cut. Its watermark is where it was, and is a lower bound: its inputs begin
anew, for watermarks are no state of a channel (defect U-10).

Unaligned, the barrier leaves ahead of the outbox, and of what the driver lets it pass in the output channels; all of
that is recorded by the sender, as the state of those channels (rule 16). Neither waits for room, so a driver may offer
a barrier ahead of its place while something is in the outbox.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Protocol
from zlib import crc32

from barrierlab.impl.checkpoint.alignment import BarrierAligner
from barrierlab.impl.checkpoint.gate import Gate
from barrierlab.impl.checkpoint.injector import CheckpointBarrierInjector
from barrierlab.impl.checkpoint.recorder import InFlightChannelData, channel_data
from barrierlab.impl.checkpoint.recovery import TaskRestore
from barrierlab.impl.checkpoint.report import Acknowledge, Decline, Tell, digest, silent
from barrierlab.impl.checkpoint.transactions import SinkWriter
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.checks import check_number
from barrierlab.impl.errors import LimitError, NotFinishedError, NotRecordingError, SequenceError, SnapshotFailedError
from barrierlab.impl.messages import (
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
    size_of,
)
from barrierlab.impl.reasons import Reason


class Operator(Protocol):
    """The user code that a task runs. It outputs events and knows nothing of barriers (F-DCKP-001, compatibility
    note).
    """

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """Return the outputs of `event`."""

    def on_watermark(self, timestamp_ms: int) -> Iterable[Event]:
        """Return the outputs of the task's watermark, the least of its open inputs; it never goes back."""

    def on_end(self, input_id: int) -> Iterable[Event]:
        """Return the outputs of the end of this input; called once for each input."""

    def checkpoint(self) -> object:
        """Return an immutable image of the state: no later change may show in it (defect P-12)."""

    def restore(self, image: object) -> None:
        """Restore the state from an image."""


EXCHANGE_KINDS = ("forward", "rebalance", "hash", "broadcast")


class OutputExchange:
    """The rule that distributes the events of one out-edge over its channels.

    Parameters
    ----------
    kind : str
        ``forward`` (the one channel), ``rebalance`` (in turn), ``hash`` (by a stable hash of the key), ``broadcast``.
    channels : sequence of int
        The task's output channels that belong to this edge.
    start : int
        Where a rebalance begins.

    Raises
    ------
    LimitError
        If the kind is unknown, or the number of channels does not suit it.
    """

    __slots__ = ("_all", "_each", "_next", "channels", "kind")

    def __init__(self, kind: str, channels: Sequence[int], start: int = 0) -> None:
        if kind not in EXCHANGE_KINDS:
            raise LimitError("kind", kind, ", ".join(EXCHANGE_KINDS))
        check_number("start", start, 0)
        for channel in channels:
            check_number("a channel", channel, 0)
        if not channels or (kind == "forward" and len(channels) != 1):
            raise LimitError("channels", list(channels), "exactly one for forward, one or more for the others")
        self.kind = kind
        self.channels = list(channels)
        self._all = tuple(channels)
        self._each = tuple((channel,) for channel in channels)
        self._next = start % len(channels)

    def select(self, event: Event) -> tuple[int, ...]:
        """Return the channels that get `event`."""
        if self.kind == "hash":
            return self._each[crc32(str(event.key).encode()) % len(self._each)]
        if self.kind == "rebalance":
            chosen = self._each[self._next]
            self._next = (self._next + 1) % len(self._each)
            return chosen
        return self._all

    def capture(self) -> int:
        """Return the state for `restore`."""
        return self._next

    def restore(self, value: int) -> None:
        """Restore what `capture` returned."""
        self._next = value


class Task:
    """The common part of sources and operator tasks: outputs, outbox, reports.

    Attributes
    ----------
    outputs : tuple of int
        Its output channels.
    outbox : deque of (int, StreamMessage)
        What is to be sent, with its output channel, in order.
    reports : list of Acknowledge or Decline
        What the coordinator is to get; the driver takes them out.
    tell : callable
        Called for each effect at its moment with a verb, an input index (else -1) and a subject.
    finished : bool
        Whether the end of input went to every output.
    watermark_ms : int or None
        The highest watermark that it has reached.
    size_of : callable
        The measure of a message in bytes: its aligner's, where it can go unaligned.
    max_inflight_buffer_bytes : int
        The most that a part may record as in flight, on the way in and out together (protocol rule 18).
    """

    __slots__ = (
        "_aborted",
        "_ahead_id",
        "_closed",
        "_only",
        "_overtaken",
        "exchanges",
        "finished",
        "max_inflight_buffer_bytes",
        "name",
        "outbox",
        "outputs",
        "reports",
        "size_of",
        "tell",
        "watermark_ms",
    )

    def __init__(self, name: str, exchanges: Iterable[OutputExchange] = (), tell: Tell = silent) -> None:
        self.name = name
        self.exchanges = list(exchanges)
        self.outbox: deque[tuple[int, StreamMessage]] = deque()
        self.reports: list[Acknowledge | Decline] = []
        self.tell = tell
        self.finished = False
        self.watermark_ms: int | None = None
        self.size_of: Callable[[StreamMessage], int] = size_of
        self.max_inflight_buffer_bytes = UnalignedCheckpointConfig().max_inflight_buffer_bytes
        self.outputs = tuple(channel for exchange in self.exchanges for channel in exchange.channels)
        self._closed: set[int] = set()
        self._only = self.outputs[0] if len(self.outputs) == 1 else None  # of one channel there is nothing to choose
        self._aborted = 0  # the highest id
        self._ahead_id = 0  # of the last barrier that went ahead
        self._overtaken: dict[int, list[Event]] | None = None  # what that passed, by output, until it is acknowledged

    def close_output(self, output: int) -> None:
        """Close an output that has no reader any more: checkpoints are declined from now on (protocol rule 5).

        Raises
        ------
        LimitError
            If there is no such output.
        """
        if output not in self.outputs:
            raise LimitError("output", output, ", ".join(map(str, self.outputs)) or "none: there are no outputs")
        self._closed.add(output)
        self.outbox = deque(entry for entry in self.outbox if entry[0] != output)

    def decline(self, checkpoint_id: int, reason: Reason) -> None:
        """Report to the coordinator that this task aborts the checkpoint."""
        self.tell("decline", -1, (checkpoint_id, reason))
        self.reports.append(Decline(self.name, checkpoint_id, reason))

    def cancel(self, checkpoint_id: int) -> None:
        """Send the cancel marker to every output."""
        self.tell("cancel", -1, checkpoint_id)
        self._aborted = max(self._aborted, checkpoint_id)
        if self._ahead_id <= checkpoint_id:
            self._overtaken = None
        self.send_to_all(CancelBarrier(checkpoint_id))

    def forward(self, barrier: CheckpointBarrier) -> None:
        """Send the barrier to every output."""
        self.tell("forward", -1, barrier)
        self.send_to_all(barrier)

    def forward_ahead(self, barrier: CheckpointBarrier) -> None:
        """Send the barrier to every output ahead of the outbox, behind barriers that went ahead before (rule 16)."""
        self.tell("forward", -1, barrier)
        outbox = self.outbox
        first = [outbox.popleft() for _ in range(self._ahead())]
        self._ahead_id = barrier.checkpoint_id
        self._overtaken = {}
        passed: dict[int, list[StreamMessage]] = {}
        for output, message in outbox:
            passed.setdefault(output, []).append(message)
        for output, messages in passed.items():
            self.capture_overtaken(output, messages, barrier.checkpoint_id)
        first.extend((output, barrier) for output in self.outputs if output not in self._closed)
        outbox.extendleft(reversed(first))

    def capture_overtaken(self, output: int, messages: Iterable[StreamMessage], checkpoint_id: int) -> None:
        """Record what the barrier passed inside an output channel, oldest first; it stays there (protocol rule 16).

        To be called when the barrier has left the outbox and before the reports are taken. What it passed is ahead of
        the outbox in the channel, and what it passes later is ahead of that. If that is more than may be in flight,
        the checkpoint is declined after all, and cancelled behind its barrier (rule 18).

        Raises
        ------
        LimitError
            If there is no such output.
        NotRecordingError
            If the acknowledgement has been taken.
        """
        if output not in self.outputs:
            raise LimitError("output", output, ", ".join(map(str, self.outputs)) or "none: there are no outputs")
        events = [message for message in messages if type(message) is Event]
        if not events or checkpoint_id <= self._aborted:
            return
        part = None
        if self._overtaken is None or checkpoint_id != self._ahead_id:
            part = self._amend(output, events, checkpoint_id)
        else:
            self._overtaken[output] = events + self._overtaken.get(output, [])
        for event in events:
            self.tell("capture_output", output, (checkpoint_id, event))
        if part is None:
            self._note_output(sum(map(self.size_of, events)))
        elif self.declines_for_size(part):
            self.reports.remove(part)

    def declines_for_size(self, part: Acknowledge) -> bool:
        """Return whether `part` has recorded more than may be in flight: then it is declined and cancelled (rule
        18)."""
        recorded_bytes = sum(data.size_bytes for data in (*part.inflight, *part.inflight_output))
        if recorded_bytes <= self.max_inflight_buffer_bytes:
            return False
        self.decline(part.checkpoint_id, Reason.IN_FLIGHT_LIMIT)
        self.cancel(part.checkpoint_id)
        return True

    def convert_to_unaligned(self, checkpoint_id: int) -> None:
        """Let an aligned barrier that is still in an output channel overtake: its timeout has passed (FLINK-27251).

        The part becomes unaligned although its inputs were aligned; `capture_overtaken` then takes what the barrier
        passed. To be called while the acknowledgement has not been taken; nothing happens if there is none.
        """
        for index, report in enumerate(self.reports):
            if type(report) is Acknowledge and report.checkpoint_id == checkpoint_id:
                self.reports[index] = replace(report, is_unaligned=True, was_threshold_triggered=True)
                self._ahead_id = checkpoint_id

    def prioritise_barrier(self, output: int, barrier: CheckpointBarrier) -> bool:
        """Move an aligned barrier in the outbox of this output to the front, flagged unaligned: its timeout has passed.

        It stays behind barriers that went ahead before, and where it is if it would pass an older one that is still
        wanted, whose checkpoint that would cost (rule 6). What it passes in the outbox on its way to this output is
        recorded (protocol rule 16); the driver then lets it pass what is in the channel. To be called while the
        acknowledgement has not been taken (Flink: FLINK-27251).

        Returns
        -------
        bool
            Whether it was there.
        """
        passed: list[StreamMessage] = []
        for place, (to, message) in enumerate(self.outbox):
            if to != output:
                continue
            if type(message) is CheckpointBarrier and message.checkpoint_id == barrier.checkpoint_id:
                if message.is_unaligned:
                    return False
                if any(type(each) is CheckpointBarrier and self._is_passed_over(each, barrier) for each in passed):
                    return False
                del self.outbox[place]
                self.outbox.insert(self._ahead(), (output, barrier))
                self.convert_to_unaligned(barrier.checkpoint_id)
                self.capture_overtaken(output, passed, barrier.checkpoint_id)
                return True
            passed.append(message)
        return False

    def _ahead(self) -> int:
        """Return how many barriers at the front of the outbox went ahead before."""
        ahead = takewhile(lambda entry: type(entry[1]) is CheckpointBarrier and entry[1].is_unaligned, self.outbox)
        return sum(1 for _ in ahead)

    def _is_passed_over(self, older: CheckpointBarrier, barrier: CheckpointBarrier) -> bool:
        return older.is_aligned and self._aborted < older.checkpoint_id < barrier.checkpoint_id

    def _amend(self, output: int, events: list[Event], checkpoint_id: int) -> Acknowledge:
        """Replace the acknowledgement of a complete part, which was not taken yet.

        It is unaligned by that, although its inputs may have been aligned (protocol rule 19).
        """
        for index, report in enumerate(self.reports):
            if type(report) is Acknowledge and report.checkpoint_id == checkpoint_id:
                record = {data.input_id: list(data.events) for data in report.inflight_output}
                record[output] = events + record.get(output, [])
                record_of = channel_data(record, self.size_of)
                self.reports[index] = amended = replace(report, is_unaligned=True, inflight_output=record_of)
                return amended
        raise NotRecordingError(checkpoint_id, output)

    def _note_output(self, size_bytes: int) -> None:
        """Count the size of what the barrier overtook."""

    def notify(self, checkpoint_id: int, now_ns: int) -> None:
        """Take the notification that a checkpoint is complete. A sink that writes to the external system commits."""

    def final_snapshot(self) -> Acknowledge:
        """Return this task's part of every later checkpoint; its id is the last that the task knew.

        Of that one and those before it the task has given its part already, or given it up.

        Raises
        ------
        NotFinishedError
            If the task goes on.
        SnapshotFailedError
            If the operator cannot give its image now. Nothing changes; to be asked again.
        """
        if not self.finished:
            raise NotFinishedError(self.name)
        try:
            return self._last_part()
        except SnapshotFailedError as error:
            raise SnapshotFailedError(
                error.actual, error.reason, "ask for the final snapshot again: the task stays"
            ) from error

    def _last_part(self) -> Acknowledge:
        raise NotImplementedError

    def take_overtaken(self) -> tuple[InFlightChannelData, ...]:
        overtaken, self._overtaken = self._overtaken, None
        return channel_data(overtaken or {}, self.size_of)

    def send(self, event: Event) -> None:
        closed = self._closed
        if self._only is not None and not closed:
            self.outbox.append((self._only, event))
            return
        outbox = self.outbox
        for exchange in self.exchanges:
            for channel in exchange.select(event):
                if not closed or channel not in closed:
                    outbox.append((channel, event))

    def send_to_all(self, message: StreamMessage) -> None:
        for channel in self.outputs:
            if channel not in self._closed:
                self.outbox.append((channel, message))

    def _capture_outputs(self) -> Hashable:
        return (
            tuple(self.outbox),
            tuple(self.reports),
            self.finished,
            self.watermark_ms,
            tuple(sorted(self._closed)),
            tuple(exchange.capture() for exchange in self.exchanges),
            self._aborted,
            self._ahead_id,
            None
            if self._overtaken is None
            else tuple((output, tuple(events)) for output, events in sorted(self._overtaken.items())),
        )

    def _restore_outputs(self, value: Hashable) -> None:
        (
            outbox,
            reports,
            self.finished,
            self.watermark_ms,
            closed,
            exchanges,
            self._aborted,
            self._ahead_id,
            overtaken,
        ) = value  # type: ignore[misc]
        self._overtaken = None if overtaken is None else {i: list(events) for i, events in overtaken}  # type: ignore[has-type]
        self.outbox = deque(outbox)  # type: ignore[has-type]
        self.reports = list(reports)  # type: ignore[has-type]
        self._closed = set(closed)  # type: ignore[has-type]
        for exchange, captured in zip(self.exchanges, exchanges, strict=True):  # type: ignore[has-type]
            exchange.restore(captured)


class OperatorTask(Task):
    """A task with inputs: the port of its gate.

    Parameters
    ----------
    name : str
    operator : Operator
    aligner : BarrierAligner
        Its number of inputs is the task's. An `UnalignedCheckpointer` is one too.
    exchanges : iterable of OutputExchange
        One for each out-edge.
    tell : callable, optional
        Verbs: deliver, end, buffer, block, resume, snapshot, forward, complete, decline, cancel, ignore; and of
        unaligned parts capture, with an input, and capture_output, with an output: id and event.
    """

    __slots__ = (
        "_announced",
        "_image",
        "_image_digest",
        "_image_ended",
        "_image_watermark_ms",
        "_input_watermarks",
        "gate",
        "operator",
    )

    def __init__(
        self,
        name: str,
        operator: Operator,
        aligner: BarrierAligner,
        exchanges: Iterable[OutputExchange] = (),
        tell: Tell = silent,
    ) -> None:
        super().__init__(name, exchanges, tell)
        self.operator = operator
        self._announced = True  # whether the outputs have the watermark; not so after a recovery
        self._input_watermarks: dict[int, int | None] = dict.fromkeys(range(aligner.config.num_inputs))  # open ones
        self._image: object = None
        self._image_digest = ""
        self._image_watermark_ms: int | None = None
        self._image_ended: tuple[int, ...] = ()
        self.gate = Gate(aligner, self)
        if self.gate.unaligned is not None:
            self.max_inflight_buffer_bytes = self.gate.unaligned.unaligned.max_inflight_buffer_bytes
            self.size_of = self.gate.unaligned.size_of

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        """`Gate.offer`."""
        return self.gate.offer(input_id, message, now_ns)

    def offer_overtaking(
        self, input_id: int, barrier: CheckpointBarrier, ahead: Sequence[StreamMessage], now_ns: int
    ) -> bool:
        """`Gate.offer_overtaking`."""
        return self.gate.offer_overtaking(input_id, barrier, ahead, now_ns)

    def drain_next(self, now_ns: int) -> bool:
        """`Gate.drain_next`."""
        return self.gate.drain_next(now_ns)

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> bool:
        """`Gate.abort`."""
        return self.gate.abort(checkpoint_id, reason, now_ns)

    def on_time(self, now_ns: int) -> bool:
        """`Gate.on_time`."""
        return self.gate.on_time(now_ns)

    def next_deadline_ns(self) -> int | None:
        """`Gate.next_deadline_ns`."""
        return self.gate.next_deadline_ns()

    def can_take(self, input_id: int) -> bool:
        """`Gate.can_take`."""
        return self.gate.can_take(input_id)

    # The gate's port.

    def deliver(self, input_id: int, message: Event | Watermark) -> None:
        """Give an event to the operator; a watermark counts if it advances the least of the open inputs."""
        self.tell("deliver", input_id, message)
        if type(message) is Event:
            self.apply(input_id, message)
        else:
            assert type(message) is Watermark
            known = self._input_watermarks[input_id]
            if known is None or message.timestamp_ms > known:
                self._input_watermarks[input_id] = message.timestamp_ms
                self._advance()

    def apply(self, input_id: int, event: Event) -> None:
        """Give an event to the operator without `tell`: the driver has recorded it itself.

        It may do so where `Gate.offer` would deliver the event at once: its input is among `BarrierAligner.free`.
        """
        for output in self.operator.process(input_id, event):
            self.send(output)

    def end_input(self, input_id: int) -> None:
        """Give the end to the operator; the end of the last input is forwarded."""
        self.tell("end", input_id, EndOfInput())
        del self._input_watermarks[input_id]
        for output in self.operator.on_end(input_id):
            self.send(output)
        if self._input_watermarks:
            self._advance()
        else:
            self.send_to_all(EndOfInput())
            self.finished = True

    def _advance(self) -> None:
        """Advance the task's watermark, the least of its open inputs; it never goes back.

        After a recovery it is passed on once more when the inputs have reached it again: it may have been in flight.
        """
        least: int | None = None
        for timestamp_ms in self._input_watermarks.values():
            if timestamp_ms is None:
                return
            if least is None or timestamp_ms < least:
                least = timestamp_ms
        if least is None:
            return
        reached = self.watermark_ms
        if reached is None or least > reached:
            self.watermark_ms = least
            for output in self.operator.on_watermark(least):
                self.send(output)
        elif self._announced or least < reached:
            return
        self._announced = True
        self.send_to_all(Watermark(least))

    def snapshot(self, barrier: CheckpointBarrier) -> None:
        """Take the operator's snapshot.

        Raises
        ------
        SnapshotFailedError
            If an output is closed (protocol rule 5), or the operator raises it.
        """
        if self._closed:
            raise SnapshotFailedError(f"output {min(self._closed)} of {self.name} is closed", Reason.OUTPUT_CLOSED)
        self._image = self.operator.checkpoint()
        self._image_digest = digest(self._image)
        self._image_watermark_ms = self.watermark_ms
        self._image_ended = self._ended()
        self.tell("snapshot", -1, (barrier.checkpoint_id, self._image_digest))

    def _ended(self) -> tuple[int, ...]:
        return tuple(i for i in range(self.gate.aligner.config.num_inputs) if i not in self._input_watermarks)

    def forward(self, barrier: CheckpointBarrier) -> None:
        """Send the barrier to every output; that of an unaligned part overtakes everything."""
        machine = self.gate.unaligned
        if machine is not None and machine.is_unaligned:
            self.forward_ahead(barrier)
        else:
            super().forward(barrier)

    def _note_output(self, size_bytes: int) -> None:
        self.gate.note_output(size_bytes)

    def complete(self, barrier: CheckpointBarrier) -> None:
        """Acknowledge with the snapshot and the in-flight events."""
        checkpoint_id = barrier.checkpoint_id
        self.tell("complete", -1, checkpoint_id)
        report = Acknowledge(
            self.name,
            checkpoint_id,
            self._image_digest,
            image=self._image,
            watermark_ms=self._image_watermark_ms,
            ended=self._image_ended,
            prepared=self._prepared(),
        )
        machine = self.gate.unaligned
        if machine is not None and machine.is_unaligned:
            report = replace(
                report,
                is_unaligned=True,
                was_threshold_triggered=machine.was_threshold_triggered,
                inflight=machine.inflight_data(),
                inflight_output=self.take_overtaken(),
            )
        self.reports.append(report)
        self._image, self._image_digest = None, ""

    def record(self, input_id: int, message: Event, checkpoint_id: int) -> None:
        """Report it to `tell` alone: the aligner has it."""
        self.tell("capture", input_id, (checkpoint_id, message))

    def buffer(self, input_id: int, message: StreamMessage) -> None:
        """Report it to `tell` alone: the aligner has it."""
        self.tell("buffer", input_id, message)

    def block(self, input_id: int, checkpoint_id: int) -> None:
        """Report it to `tell` alone."""
        self.tell("block", input_id, checkpoint_id)

    def resume(self, checkpoint_id: int) -> None:
        """Report it to `tell` alone: the driver calls `drain_next`."""
        self.tell("resume", -1, checkpoint_id)

    def ignore(self, input_id: int, message: StreamMessage) -> None:
        """Report it to `tell` alone."""
        self.tell("ignore", input_id, message)

    def _prepared(self) -> tuple[str, ...]:
        """Return the transactions that a part contains."""
        return ()

    # The end, and a new beginning.

    def _last_part(self) -> Acknowledge:
        image = self.operator.checkpoint()
        return Acknowledge(
            self.name,
            self.gate.aligner.last_terminated_id,
            digest(image),
            image=image,
            watermark_ms=self.watermark_ms,
            ended=self._ended(),
            finished=True,
            prepared=self._prepared(),
        )

    def recover(self, part: TaskRestore, checkpoint_id: int) -> str:
        """Restore a new task to its cut. The driver puts the in-flight events into the channels.

        Parameters
        ----------
        part : TaskRestore
        checkpoint_id : int
            Of the checkpoint; barriers up to it are stale. 0 is the beginning: the operator's state is that of a new
            one, and stays so.

        Returns
        -------
        str
            The digest of the operator's state as it is now.

        Raises
        ------
        InputIndexError
            If an input that ended is none.
        """
        self.gate.aligner.recover(checkpoint_id, part.ended)
        if checkpoint_id:
            self.operator.restore(part.image)
        for input_id in part.ended:
            del self._input_watermarks[input_id]
        self.watermark_ms = part.watermark_ms
        self._announced = part.watermark_ms is None
        self.finished = part.finished
        return digest(self.operator.checkpoint())

    # Capture and restore.

    def capture(self) -> Hashable:
        """Return the state for `restore`. The operator's image must be hashable for the whole to be."""
        return (
            self._capture_outputs(),
            self.gate.capture(),
            self.operator.checkpoint(),
            self._announced,
            tuple(self._input_watermarks.items()),
            self._image,
            self._image_digest,
            self._image_watermark_ms,
            self._image_ended,
        )

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        (
            outputs,
            gate,
            image,
            self._announced,
            watermarks,
            self._image,
            self._image_digest,
            self._image_watermark_ms,
            self._image_ended,
        ) = value  # type: ignore[misc]
        self._restore_outputs(outputs)  # type: ignore[has-type]
        self.gate.restore(gate)  # type: ignore[has-type]
        self.operator.restore(image)  # type: ignore[has-type]
        self._input_watermarks = dict(watermarks)  # type: ignore[has-type]


class SinkTask(OperatorTask):
    """An operator task without outputs, which may write what it takes to the external system.

    Parameters
    ----------
    name : str
    operator : Operator
    aligner : BarrierAligner
        One that always aligns: what is prepared at a barrier is all that came before it (protocol rule 14).
    tell : callable, optional
    writer : SinkWriter, optional
        Gets each event after the operator; prepares at the snapshot, and at the end; commits when it is notified.
    """

    __slots__ = ("writer",)

    def __init__(
        self,
        name: str,
        operator: Operator,
        aligner: BarrierAligner,
        tell: Tell = silent,
        writer: SinkWriter | None = None,
    ) -> None:
        super().__init__(name, operator, aligner, (), tell)
        self.writer = writer

    def apply(self, input_id: int, event: Event) -> None:
        """Apply an event as every task does, and write it."""
        for output in self.operator.process(input_id, event):
            self.send(output)
        if self.writer is not None:
            self.writer.write(event)

    def snapshot(self, barrier: CheckpointBarrier) -> None:
        """Take the snapshot as every task does, and prepare what was written since the last one."""
        super().snapshot(barrier)
        if self.writer is not None:
            self.writer.prepare(barrier.checkpoint_id)

    def end_input(self, input_id: int) -> None:
        """Process the end as every task does; at that of the last input, prepare what was written since the last
        snapshot.
        """
        super().end_input(input_id)
        if self.finished and self.writer is not None:
            self.writer.prepare_last()

    def notify(self, checkpoint_id: int, now_ns: int) -> None:
        """Commit the transactions that the checkpoint covers."""
        if self.writer is not None:
            self.writer.on_complete(checkpoint_id)

    def _prepared(self) -> tuple[str, ...]:
        return () if self.writer is None else self.writer.prepared

    def recover(self, part: TaskRestore, checkpoint_id: int) -> str:
        """Recover as every task does, and settle the transactions: commit those that the part contains, roll back the
        others.

        Raises
        ------
        InputIndexError
            As before.
        TransactionError
            If one that the part speaks of was rolled back: a recovery read the store before it was settled.
        """
        state = super().recover(part, checkpoint_id)
        if self.writer is not None:
            self.writer.recover(part.prepared, checkpoint_id)
        return state

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return super().capture(), None if self.writer is None else self.writer.capture()

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        task, writer = value  # type: ignore[misc]
        super().restore(task)  # type: ignore[has-type]
        if self.writer is not None:
            self.writer.restore(writer)  # type: ignore[has-type]


class SourceTask(Task):
    """A task without inputs: its injector says when it cuts.

    Attributes
    ----------
    position : int
        The sequence of the next event; 1 at first.
    last_terminated_id : int
        The highest id emitted or aborted here.
    """

    __slots__ = ("injector", "last_terminated_id", "position")

    def __init__(
        self,
        name: str,
        injector: CheckpointBarrierInjector | None = None,
        exchanges: Iterable[OutputExchange] = (),
        tell: Tell = silent,
    ) -> None:
        super().__init__(name, exchanges, tell)
        self.injector = injector or CheckpointBarrierInjector()
        self.position = 1
        self.last_terminated_id = 0

    def emit(self, event: Event) -> None:
        """Send the next event.

        Raises
        ------
        SequenceError
            If its sequence is not `position`, or the source has ended.
        """
        if event.sequence != self.position or self.finished:
            raise SequenceError(event, self.position)
        self.position += 1
        self.send(event)

    def emit_watermark(self, timestamp_ms: int) -> None:
        """Send a watermark to every output."""
        if self.watermark_ms is None or timestamp_ms > self.watermark_ms:
            self.watermark_ms = timestamp_ms
        self.send_to_all(Watermark(timestamp_ms))

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        """Capture the position and send the barrier in one step, if one is due (protocol rule 4).

        A flagged barrier goes ahead of the outbox, whose events the position has passed: they are recorded (rule 16).

        Returns
        -------
        CheckpointBarrier or None
            The barrier that was sent; and behind it a cancel, if it passed more than may be in flight (rule 18). None
            if there is none, if its id was aborted before, if the source has ended (that end is a standing barrier),
            or if an output is closed (then the checkpoint is declined, rule 5).
        """
        barrier = self.injector.poll_barrier(now_ns)
        if barrier is None or self.finished or barrier.checkpoint_id <= self.last_terminated_id:
            return None
        checkpoint_id = barrier.checkpoint_id
        self.last_terminated_id = checkpoint_id
        if self._closed:
            self.decline(checkpoint_id, Reason.OUTPUT_CLOSED)
            self.cancel(checkpoint_id)
            return None
        image_digest = digest(self.position)
        self.tell("snapshot", -1, (checkpoint_id, image_digest))
        report = Acknowledge(
            self.name, checkpoint_id, image_digest, self.position, self.position, watermark_ms=self.watermark_ms
        )
        if barrier.is_unaligned:
            self.forward_ahead(barrier)
            report = replace(report, is_unaligned=True, inflight_output=self.take_overtaken())
            if self.declines_for_size(report):
                return barrier
        else:
            self.forward(barrier)
        self.tell("complete", -1, checkpoint_id)
        self.reports.append(report)
        return barrier

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> bool:
        """Abort a checkpoint by order of the coordinator: skip it if it is still to come, and send the cancel (rule
        10).
        """
        if checkpoint_id <= self.last_terminated_id or self.finished:
            return False
        self.last_terminated_id = checkpoint_id
        self.cancel(checkpoint_id)
        return True

    def end(self) -> None:
        """End the source: send the end to every output, once."""
        if not self.finished:
            self.send_to_all(EndOfInput())
            self.finished = True

    def _last_part(self) -> Acknowledge:
        position, watermark_ms, last_terminated_id = self.position, self.watermark_ms, self.last_terminated_id
        image_digest = digest(position)
        return Acknowledge(
            self.name, last_terminated_id, image_digest, position, position, watermark_ms=watermark_ms, finished=True
        )

    def recover(self, part: TaskRestore, checkpoint_id: int) -> str:
        """Restore a new source to its cut: the driver continues with the event at `position`, unless it has finished.

        Returns
        -------
        str
            The digest of its state, which is its position.
        """
        assert part.position is not None, (
            "a source's part has a position: `barrierlab.impl.checkpoint.recovery.plan` sees to that"
        )
        self.position = part.position
        self.watermark_ms = part.watermark_ms
        self.finished = part.finished
        self.last_terminated_id = checkpoint_id
        return digest(self.position)

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return self._capture_outputs(), self.injector.capture(), self.position, self.last_terminated_id

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        outputs, injector, self.position, self.last_terminated_id = value  # type: ignore[misc]
        self._restore_outputs(outputs)  # type: ignore[has-type]
        self.injector.restore(injector)  # type: ignore[has-type]
