"""An aligner as a task sees it: messages in, effects out, in the order that the protocol asks for.

The order at a snapshot is protocol rule 8: image of the state, barrier forwarded, part complete, and only then are
the buffered messages drained - by the driver, one at a time, before it offers anything new. If the image cannot be
taken: decline, cancel in the barrier's place, drain (rule 9). Unaligned, the image and the barrier come with the
first barrier or at the switch, and the part is complete when the last is in (rules 16 and 17); a driver may then offer
barriers ahead of their place (`Gate.offer_overtaking`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, Protocol

from barrierlab.impl.checkpoint.alignment import AlignerAction, AlignmentAction, BarrierAligner, UnalignedAction
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointer
from barrierlab.impl.errors import SnapshotFailedError
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.impl.reasons import Reason

_BUFFERED: Final = AlignmentAction.BUFFERED
_BLOCKED: Final = AlignmentAction.BLOCKED
_TRIGGER: Final = AlignmentAction.TRIGGER_SNAPSHOT
_ENDED: Final = AlignmentAction.INPUT_ENDED
_IGNORED: Final = AlignmentAction.IGNORED
_REFUSED: Final = AlignmentAction.REFUSED
_ABORTED: Final = AlignmentAction.ABORTED
_WATERMARK: Final = AlignmentAction.WATERMARK_PASS_THROUGH
_DRAIN: Final = AlignmentAction.DRAIN_BUFFERED
_PASS: Final = AlignmentAction.PASS_THROUGH
_TAKE_SNAPSHOT: Final = UnalignedAction.TAKE_SNAPSHOT
_SWITCHED: Final = UnalignedAction.SWITCHED
_RECORDED: Final = UnalignedAction.RECORDED
_PART_COMPLETE: Final = UnalignedAction.PART_COMPLETE


class GatePort(Protocol):
    """The task that carries the effects out; each method is called when its effect takes place."""

    def deliver(self, input_id: int, message: Event | Watermark) -> None:
        """Process an event or a watermark."""

    def end_input(self, input_id: int) -> None:
        """Process the end of this input."""

    def snapshot(self, barrier: CheckpointBarrier) -> None:
        """Take an immutable image of the state; raise `SnapshotFailedError` if that is not possible."""

    def forward(self, barrier: CheckpointBarrier) -> None:
        """Send the barrier to every output."""

    def complete(self, barrier: CheckpointBarrier) -> None:
        """Acknowledge this task's part of the checkpoint."""

    def decline(self, checkpoint_id: int, reason: Reason) -> None:
        """Decline the checkpoint: report to the coordinator that this task aborts it."""

    def cancel(self, checkpoint_id: int) -> None:
        """Send `CancelBarrier` to every output."""

    def record(self, input_id: int, message: Event, checkpoint_id: int) -> None:
        """Record a copy of the event as in flight. The event is processed now, or later in its order."""

    def buffer(self, input_id: int, message: StreamMessage) -> None:
        """Note that the message is buffered."""

    def block(self, input_id: int, checkpoint_id: int) -> None:
        """Block this input, whose barrier is in, until `resume`."""

    def resume(self, checkpoint_id: int) -> None:
        """Unblock the inputs that wait for this checkpoint."""

    def ignore(self, input_id: int, message: StreamMessage) -> None:
        """Note that the message is ignored."""


class Gate:
    """All inputs of a task, seen through its aligner.

    Parameters
    ----------
    aligner : BarrierAligner
    port : GatePort

    Attributes
    ----------
    unaligned : UnalignedCheckpointer or None
        The aligner, if it is one that can go unaligned.
    """

    __slots__ = ("_blocking", "_free", "aligner", "port", "unaligned")

    def __init__(self, aligner: BarrierAligner, port: GatePort) -> None:
        self.aligner = aligner
        self.port = port
        self._blocking = 0  # the id that inputs wait for; 0 is none
        self._free = aligner.free
        self.unaligned = aligner if isinstance(aligner, UnalignedCheckpointer) else None

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        """Offer the next message of an input.

        Returns
        -------
        bool
            False if a limit forbids to take it: it stays in its channel. (If that made the checkpoint go unaligned,
            or end, there may be something to drain before it is offered again.)

        Raises
        ------
        InputIndexError, ClosedInputError, UnknownMessageError
            As `BarrierAligner.process_message`; nothing changes.
        """
        if type(message) is Event and input_id in self._free:  # what `process_message` would say, one call less
            self.port.deliver(input_id, message)
            return True
        action = self.aligner.process_message(input_id, message, now_ns)
        if action is _BUFFERED:
            self.port.buffer(input_id, message)
            return True
        self._carry_out(input_id, message, action)
        return action is not _REFUSED and action is not _SWITCHED

    def offer_overtaking(
        self, input_id: int, barrier: CheckpointBarrier, ahead: Sequence[StreamMessage], now_ns: int
    ) -> bool:
        """Offer a barrier ahead of its place: it overtakes `ahead`, which stays in the channel, in order.

        This may be done while the outbox is not empty; that is what makes a checkpoint independent of backpressure.

        Returns
        -------
        bool
            False if the barrier may not overtake here (a sink aligns, protocol rule 14): it stays in its place, and
            is offered in its turn. That is sound: what is ahead of it then takes effect before it.

        Raises
        ------
        InputIndexError, ClosedInputError, UnknownMessageError
            As `offer`; nothing changes.
        """
        if self.unaligned is None:
            return False
        action = self.unaligned.process_overtaking(input_id, barrier, ahead, now_ns)
        self._carry_out(input_id, barrier, action)
        return action is not _REFUSED

    @property
    def may_overtake(self) -> bool:
        """Return whether a barrier may ever overtake here."""
        return self.unaligned is not None and self.unaligned.may_overtake

    def wants_overtaking(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        """Return whether this barrier is to go to the front of its channel now:
        `UnalignedCheckpointer.wants_overtaking`."""
        return self.unaligned is not None and self.unaligned.wants_overtaking(input_id, barrier, now_ns)

    def note_output(self, size_bytes: int) -> None:
        """Count the bytes that the barrier overtook on the way out; over the limit, abort (rule 18)."""
        if self.unaligned is not None:
            self.unaligned.note_output(size_bytes)
            self._tell_aborts()

    def drain_next(self, now_ns: int) -> bool:
        """Process one buffered message; return False if none may drain. To be called until then before any `offer`."""
        step = self.aligner.drain_next(now_ns)
        if step is None:
            return False
        self._carry_out(*step)
        return True

    def drain_all(self, now_ns: int) -> int:
        """Drain every buffered message that may drain; return how many."""
        count = 0
        while self.drain_next(now_ns):
            count += 1
        return count

    @property
    def can_drain(self) -> bool:
        """Return whether `drain_next` has something to do."""
        return self.aligner.can_drain

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> bool:
        """Abort a checkpoint by order of the coordinator; return False if it had ended here already."""
        acted = self.aligner.abort(checkpoint_id, reason)
        self._tell_aborts(declines=False)
        return acted

    def on_time(self, now_ns: int) -> bool:
        """Abort what is past its deadline, or switch to unaligned if that is due; return whether anything was done."""
        acted = self.aligner.on_time(now_ns)
        self._tell_aborts()
        if acted and self.aligner.triggered:
            self._begin_unaligned()
        return acted

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        """Record when a checkpoint was triggered: its deadline counts from then, the same on every task (rule 11)."""
        self.aligner.note_trigger(checkpoint_id, triggered_ns)

    def next_deadline_ns(self) -> int | None:
        """Return when `on_time` will next have something to do; None if nothing waits."""
        return self.aligner.next_deadline_ns()

    def can_take(self, input_id: int) -> bool:
        """Return whether this input may be read."""
        return self.aligner.can_take(input_id)

    def is_blocked(self, input_id: int) -> bool:
        """Return whether this input has delivered the current barrier."""
        return self.aligner.is_blocked(input_id)

    def capture(self) -> Hashable:
        """Return the state for `restore`; the port captures itself."""
        return self._blocking, self.aligner.capture()

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self._blocking, aligner = value  # type: ignore[misc]
        self.aligner.restore(aligner)  # type: ignore[has-type]

    def _carry_out(self, input_id: int, message: StreamMessage, action: AlignerAction) -> None:
        """Carry out all but the frequent actions, aborts first: a newer checkpoint begins after the older ended."""
        port = self.port
        if self.aligner.aborts:
            self._tell_aborts()
        if action is _DRAIN or action is _WATERMARK:
            port.deliver(input_id, message)  # type: ignore[arg-type]
        elif action is _BLOCKED:
            self.block_input(input_id)
        elif action is _ENDED:
            port.end_input(input_id)
        elif action is _TRIGGER:
            if type(message) is EndOfInput:
                port.end_input(input_id)
            else:
                self.block_input(input_id)
            self.take_snapshot()
        elif type(action) is UnalignedAction:
            self._carry_out_unaligned(input_id, message, action)
        elif action is _PASS:  # recording has just ended over this event
            port.deliver(input_id, message)  # type: ignore[arg-type]
        elif action is _IGNORED or (action is _ABORTED and type(message) is CheckpointBarrier):
            port.ignore(input_id, message)

    def _carry_out_unaligned(self, input_id: int, message: StreamMessage, action: UnalignedAction) -> None:
        barrier = self.aligner.barrier
        assert barrier is not None
        if action is _RECORDED:
            assert type(message) is Event
            self.port.record(input_id, message, barrier.checkpoint_id)
            self.port.deliver(input_id, message)
            return
        if action is not _SWITCHED:
            if type(message) is EndOfInput:
                self.port.end_input(input_id)
            else:
                self.block_input(input_id)
        if action is _TAKE_SNAPSHOT or action is _SWITCHED:
            self._begin_unaligned()
        else:
            self._capture_overtaken(barrier.checkpoint_id)
            if action is _PART_COMPLETE:
                self._complete_part(barrier)
            if self._blocking:
                self.resume(barrier.checkpoint_id)

    def _begin_unaligned(self) -> None:
        """Begin an unaligned part (protocol rule 16): snapshot, forward the barrier ahead of everything, unblock."""
        barrier, machine = self.aligner.barrier, self.unaligned
        assert barrier is not None
        assert machine is not None
        try:
            self.port.snapshot(barrier)
        except SnapshotFailedError as error:
            checkpoint_id, reason = machine.fail_alignment(error.reason)
            self.port.decline(checkpoint_id, reason)
            self.port.cancel(checkpoint_id)
            self.resume(checkpoint_id)
            return
        self.port.forward(barrier)
        self._capture_overtaken(barrier.checkpoint_id)
        if machine.begin_recording():
            self._complete_part(barrier)
        self._tell_aborts()
        if self._blocking:
            self.resume(barrier.checkpoint_id)

    def _capture_overtaken(self, checkpoint_id: int) -> None:
        assert self.unaligned is not None
        input_id, events = self.unaligned.take_overtaken()
        for event in events:
            self.port.record(input_id, event, checkpoint_id)

    def _complete_part(self, barrier: CheckpointBarrier) -> None:
        """Acknowledge the part before its recorded events are dropped (protocol rule 17)."""
        self.port.complete(barrier)
        self.aligner.complete_alignment()

    # The effects at a barrier. A gate that is broken on purpose overrides these and no others.

    def block_input(self, input_id: int) -> None:
        """Block the input whose barrier is in."""
        barrier = self.aligner.barrier
        assert barrier is not None
        self.port.block(input_id, barrier.checkpoint_id)
        if self.aligner.blocks:
            self._blocking = barrier.checkpoint_id
        else:
            self.port.resume(barrier.checkpoint_id)

    def take_snapshot(self) -> None:
        """Snapshot, forward the barrier and acknowledge, or decline and cancel (protocol rules 8 and 9)."""
        barrier = self.aligner.barrier
        assert barrier is not None
        try:
            self.port.snapshot(barrier)
        except SnapshotFailedError as error:
            checkpoint_id, reason = self.aligner.fail_alignment(error.reason)
            self.port.decline(checkpoint_id, reason)
            self.port.cancel(checkpoint_id)
        else:
            self.port.forward(barrier)
            self._complete_part(barrier)
        self.resume(barrier.checkpoint_id)

    def _tell_aborts(self, declines: bool = True) -> None:
        for checkpoint_id, reason in self.aligner.aborts:
            if declines and reason is not Reason.CANCELLED:
                self.port.decline(checkpoint_id, reason)
            self.port.cancel(checkpoint_id)
            self.resume(checkpoint_id)
        self.aligner.aborts.clear()

    def resume(self, checkpoint_id: int) -> None:
        """Unblock for the id that blocked: a cancel of a newer id ends it without a message of its own (rule 10)."""
        self.port.resume(self._blocking or checkpoint_id)
        self._blocking = 0
