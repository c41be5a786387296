"""The aligner that need not wait: a barrier may pass the data that is in its way, which is then recorded as in flight.

Invariant: the snapshot and what is recorded hold, together, all that came before the barriers, and nothing that came
after one.

F-DCKP-006, sound by protocol rules 14 to 19. There are three situations. *Idle*. *Aligning*: the code of
`impl.checkpoint.alignment.BarrierAligner`, with one deadline more, at which it switches. *Recording*: the snapshot is
taken and the barrier forwarded, but barriers are missing; each event of such an input is recorded *and* processed,
until its barrier or its end. Unlike in the document the switch comes by time and not with the next barrier, keeps who
has delivered, and drains what was buffered; recording goes on after the snapshot; and the part is complete only when
the last barrier is in. Watermarks keep their place among the events, but are not recorded (defect U-10).

What the caller owes, beside what an aligner asks: at TAKE_SNAPSHOT and SWITCHED, and when `triggered` is set after
`on_time`, take the image, forward `barrier` ahead of everything, and call `begin_recording`; at PART_COMPLETE, or if
that gave True, acknowledge and call `complete_alignment`. `impl.checkpoint.gate.Gate` does all that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Final

from barrierlab.impl.checkpoint.alignment import (
    AlignerAction,
    AlignmentAction,
    BarrierAligner,
    BarrierAlignerConfig,
    BarrierAlignerMetrics,
    UnalignedAction,
)
from barrierlab.impl.checkpoint.inputs import Room
from barrierlab.impl.checkpoint.recorder import InFlightChannelData, Recorder
from barrierlab.impl.checks import check_flag, check_number
from barrierlab.impl.errors import NotTriggeredError, UnknownMessageError
from barrierlab.impl.messages import UNALIGNED_FLAG, CancelBarrier, CheckpointBarrier, Event, StreamMessage
from barrierlab.impl.messages import size_of as default_size_of
from barrierlab.impl.reasons import Reason

_PASS: Final = AlignmentAction.PASS_THROUGH
_BUFFERED: Final = AlignmentAction.BUFFERED
_BLOCKED: Final = AlignmentAction.BLOCKED
_TRIGGER: Final = AlignmentAction.TRIGGER_SNAPSHOT
_ENDED: Final = AlignmentAction.INPUT_ENDED
_IGNORED: Final = AlignmentAction.IGNORED
_ABORTED: Final = AlignmentAction.ABORTED
_REFUSED: Final = AlignmentAction.REFUSED
_TAKE_SNAPSHOT: Final = UnalignedAction.TAKE_SNAPSHOT
_SWITCHED: Final = UnalignedAction.SWITCHED
_RECORDED: Final = UnalignedAction.RECORDED
_LATE: Final = UnalignedAction.LATE_BARRIER
_PART_COMPLETE: Final = UnalignedAction.PART_COMPLETE


@dataclass(frozen=True, slots=True)
class UnalignedCheckpointConfig:
    """The time at which a task switches to unaligned, and how much it may record.

    Attributes
    ----------
    enabled : bool
        False never goes unaligned, whatever barriers and `force_unaligned` say (protocol rule 14).
    alignment_timeout_threshold_ns : int
        How long after its trigger a checkpoint that is still aligning switches. 0 switches with the first barrier
        that comes later than the trigger.
    max_inflight_buffer_bytes : int
        How much one checkpoint may record here, all inputs and outputs together; one byte more, and it is declined
        (rule 18). Inclusive.
    force_unaligned : bool
        Whether each checkpoint starts unaligned, flagged or not.

    Raises
    ------
    LimitError
        If the threshold is less than 0, or the limit less than 1.
    """

    enabled: bool = True
    alignment_timeout_threshold_ns: int = 30_000_000_000
    max_inflight_buffer_bytes: int = 512 * 1024 * 1024
    force_unaligned: bool = False

    def __post_init__(self) -> None:
        for name, least in (("alignment_timeout_threshold_ns", 0), ("max_inflight_buffer_bytes", 1)):
            check_number(name, getattr(self, name), least)
        check_flag("enabled", self.enabled)
        check_flag("force_unaligned", self.force_unaligned)


@dataclass(frozen=True, slots=True)
class UnalignedCheckpointMetrics(BarrierAlignerMetrics):
    """The document's counters, beside the aligner's.

    Attributes
    ----------
    unaligned_count, threshold_switches : int
        Unaligned snapshots begun here, and how many of them began aligned.
    total_inflight_bytes : int
        Recorded since the beginning, aborted or not.
    is_in_unaligned_mode : bool
        Whether barriers are awaited after the snapshot.
    flag_mismatches : int
        Checkpoints that asked for an unaligned part where that is not enabled (protocol rule 14).
    """

    unaligned_count: int
    threshold_switches: int
    total_inflight_bytes: int
    is_in_unaligned_mode: bool
    flag_mismatches: int


def _plain(barrier: CheckpointBarrier) -> CheckpointBarrier:
    if barrier.is_aligned:
        return barrier
    return CheckpointBarrier(barrier.checkpoint_id, barrier.epoch, barrier.flags & ~UNALIGNED_FLAG)


def _flagged(barrier: CheckpointBarrier) -> CheckpointBarrier:
    if barrier.is_unaligned:
        return barrier
    return CheckpointBarrier(barrier.checkpoint_id, barrier.epoch, barrier.flags | UNALIGNED_FLAG)


class UnalignedCheckpointer(BarrierAligner):
    """An aligner that switches to recording, or starts there.

    Barriers of one id may differ in the flag here: an upstream task may have switched alone (defect U-18).

    Parameters
    ----------
    config : BarrierAlignerConfig
    unaligned : UnalignedCheckpointConfig
    size_of : callable, optional
        As for the aligner; what is recorded is measured with it too.
    is_sink : bool
        A sink always aligns (protocol rule 14): what it commits at a barrier is all that came before it.

    Attributes
    ----------
    unaligned : UnalignedCheckpointConfig
    may_overtake : bool
        Whether a barrier may ever go ahead of its place here: enabled, and no sink.
    recording : bool
        Whether the snapshot is taken and barriers are missing.
    is_unaligned, was_threshold_triggered : bool
        Of the checkpoint under way: whether its part is unaligned, and whether that was a switch (rule 19).
    recorder : Recorder
        What is in flight of that part.

    Examples
    --------
    >>> from barrierlab.impl import CheckpointBarrier, Event, UnalignedCheckpointer
    >>> machine = UnalignedCheckpointer()
    >>> machine.process_message(0, CheckpointBarrier.new_unaligned(1, 1)).name
    'TAKE_SNAPSHOT'
    >>> machine.begin_recording()
    False
    >>> machine.process_message(0, Event("a", 1)).name, machine.process_message(1, Event("b", 1)).name
    ('PASS_THROUGH', 'RECORDED')
    >>> machine.process_message(1, CheckpointBarrier(1, 1)).name
    'PART_COMPLETE'
    >>> [str(event) for data in machine.inflight_data() for event in data.events]
    ['b1']
    >>> machine.complete_alignment()
    """

    mixes_flags: ClassVar[bool] = True

    __slots__ = (
        "_asked",
        "_mismatched",
        "flag_mismatches",
        "is_sink",
        "is_unaligned",
        "recorder",
        "recording",
        "threshold_switches",
        "unaligned",
        "unaligned_count",
        "was_threshold_triggered",
    )

    def __init__(
        self,
        config: BarrierAlignerConfig | None = None,
        unaligned: UnalignedCheckpointConfig | None = None,
        size_of: Callable[[StreamMessage], int] = default_size_of,
        is_sink: bool = False,
    ) -> None:
        super().__init__(config, size_of)
        self.unaligned = unaligned or UnalignedCheckpointConfig()
        self.recorder = Recorder(self.unaligned.max_inflight_buffer_bytes, size_of)
        self.is_sink = is_sink
        self.recording = False
        self.is_unaligned = False
        self.was_threshold_triggered = False
        self.unaligned_count = 0
        self.threshold_switches = 0
        self.flag_mismatches = 0
        self._asked = False  # whether a flagged barrier of the current checkpoint came, and could not be heeded
        self._mismatched = False  # whether that is counted

    @property
    def inflight_bytes(self) -> int:
        """Return how much is recorded so far for the checkpoint under way, outputs among it."""
        return self.recorder.part_bytes

    @property
    def total_inflight_bytes(self) -> int:
        """Return how much was recorded since the beginning, aborted or not."""
        return self.recorder.total_bytes

    @total_inflight_bytes.setter
    def total_inflight_bytes(self, value: int) -> None:
        self.recorder.total_bytes = value

    @property
    def may_overtake(self) -> bool:
        """Return whether a barrier may ever go ahead of its place here."""
        return self.unaligned.enabled and not self.is_sink

    # Barriers.

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignerAction:
        """Handle a barrier (protocol rules 6, 14, 15 and 17)."""
        current = self.barrier
        if self.recording and current is not None:
            missing = self.recorder.missing
            if barrier.checkpoint_id <= current.checkpoint_id:
                return self._on_late_barrier(input_id, barrier, current, now_ns)
            if input_id not in missing:
                return self.on_newer(input_id, barrier, now_ns)
            missing.discard(input_id)
            self.abort_here(current.checkpoint_id, Reason.SUBSUMED)
        action = super().on_barrier(input_id, _plain(barrier), now_ns)
        if action is _IGNORED or action is _ABORTED:
            return action
        asked = barrier.is_unaligned or self.unaligned.force_unaligned
        if asked and self.may_overtake:
            return self._start(switched=False)
        if asked and not self.unaligned.enabled and not self._mismatched:
            self._mismatched = True
            self.flag_mismatches += 1
        self._asked = self._asked or barrier.is_unaligned
        if action is _BLOCKED and self._is_overdue(now_ns):
            return self._start(switched=True)
        return self._passing_the_flag_on(action)

    def _on_late_barrier(
        self, input_id: int, barrier: CheckpointBarrier, current: CheckpointBarrier, now_ns: int
    ) -> AlignerAction:
        """Handle a barrier up to the current one, after the snapshot. The input is in `missing`, or has delivered."""
        if input_id not in self.recorder.missing or _flagged(barrier) != current:
            return self.repeated(barrier, current)
        self.recorder.missing.discard(input_id)
        if not self.inputs.queues[input_id]:
            self.free.add(input_id)
        self._park()
        return self._late(now_ns)

    def _late(self, now_ns: int) -> UnalignedAction:
        if self.recorder.missing:
            return _LATE
        self.note_duration(now_ns)
        self.triggered = True
        return _PART_COMPLETE

    def on_cancel(self, input_id: int, cancel: CancelBarrier, now_ns: int) -> AlignerAction:
        """Handle a cancel (protocol rule 10). A cancel of a newer checkpoint waits as its barrier would."""
        if self.recording and input_id not in self.recorder.missing and self._is_newer(cancel):
            return self.on_newer(input_id, cancel, now_ns)
        return super().on_cancel(input_id, cancel, now_ns)

    def on_end(self, input_id: int, now_ns: int) -> AlignerAction:
        """Handle an end (protocol rule 13). It counts as a barrier for the passive check too (Flink: R8)."""
        missing = self.recorder.missing
        if self.recording:
            self.inputs.close(input_id)
            if input_id not in missing:
                return _ENDED
            missing.discard(input_id)
            return _ENDED if missing else self._late(now_ns)
        action = super().on_end(input_id, now_ns)
        if action is _ENDED and self._is_overdue(now_ns):
            return self._start(switched=True)
        return self._passing_the_flag_on(action)

    def _passing_the_flag_on(self, action: AlignerAction) -> AlignerAction:
        """Return the action, with the flag set for the tasks downstream if this task cannot switch."""
        if action is _TRIGGER and self._asked and self.barrier is not None:
            self.barrier = _flagged(self.barrier)
        return action

    def _is_overdue(self, now_ns: int) -> bool:
        """Return whether the passive check switches: strictly later than the threshold (Flink: R8)."""
        triggered_ns = self.waits_since_ns()
        if triggered_ns is None or self.recording or not self.may_overtake:
            return False
        return now_ns - triggered_ns > self.unaligned.alignment_timeout_threshold_ns

    # Barriers that go ahead of their place.

    def process_overtaking(
        self, input_id: int, barrier: CheckpointBarrier, ahead: Sequence[StreamMessage], now_ns: int = 0
    ) -> AlignerAction:
        """Take a barrier that overtakes what is queued ahead of it (protocol rule 16, defect P-16).

        Its events are recorded at once, and so are those that this input has still to drain. All of that comes
        later, in order, by `process_message` and `drain_next`, and is not recorded again. `take_overtaken` gives it.

        Parameters
        ----------
        input_id : int
        barrier : CheckpointBarrier
            It counts as flagged.
        ahead : sequence of StreamMessage
            What the channel holds ahead of it, oldest first. It stays there.
        now_ns : int

        Returns
        -------
        AlignerAction
            As for a barrier that comes in its turn. REFUSED if it may not overtake - nothing may here, or this input
            has delivered an older one whose part is not complete: it stays in its place, and comes in its turn.

        Raises
        ------
        InputIndexError, ClosedInputError, UnknownMessageError
            As `process_message`; nothing changes.
        """
        self.inputs.check_open(input_id, barrier)
        if type(barrier) is not CheckpointBarrier:
            raise UnknownMessageError(barrier)
        current, checkpoint_id = self.barrier, barrier.checkpoint_id
        if not self.may_overtake or self.triggered:
            return _REFUSED
        if checkpoint_id <= self.last_terminated_id or (current is not None and checkpoint_id < current.checkpoint_id):
            return _IGNORED
        same = current is not None and checkpoint_id == current.checkpoint_id
        if current is not None and self._has_delivered(input_id):
            return self.repeated(barrier, current) if same else _REFUSED
        queue, recorder = self.inputs.queues[input_id], self.recorder
        events = [message for message in (chain(queue, ahead) if queue else ahead) if type(message) is Event]
        size_bytes = recorder.measure(events)
        if size_bytes + (recorder.part_bytes if same else 0) > recorder.limit_bytes:
            self.abort_here(checkpoint_id, Reason.IN_FLIGHT_LIMIT)
            return _ABORTED
        action = self.on_barrier(input_id, _flagged(barrier), now_ns)
        if type(action) is UnalignedAction:
            recorder.record_overtaken(input_id, events, size_bytes)
        return action

    def _has_delivered(self, input_id: int) -> bool:
        """Return whether the current barrier is in on this input and the input has not ended."""
        return input_id not in self.recorder.missing if self.recording else input_id in self.inputs.blocked

    def take_overtaken(self) -> tuple[int, list[Event]]:
        """Take the input and the events that the last barrier overtook. No events if it overtook none, or on a second
        call.
        """
        return self.recorder.take_overtaken()

    def wants_overtaking(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> bool:
        """Return whether this barrier, in its channel, is to be offered now by `process_overtaking`.

        To be asked of the barriers of a channel in order: the first of which it is true goes.
        So while its checkpoint is recording; if it is flagged or `force_unaligned` is set; and, flagged or not, if
        the threshold has passed since the trigger that `note_trigger` gave (Flink: R7, R9; reached is enough). Not so
        while an older barrier of this input is still to be drained: overtaking would cost that its checkpoint.
        """
        current, checkpoint_id = self.barrier, barrier.checkpoint_id
        if (
            not self.may_overtake
            or self.triggered
            or input_id not in self.inputs.takes
            or checkpoint_id <= self.last_terminated_id
        ):
            return False
        if current is not None and (checkpoint_id < current.checkpoint_id or self._has_delivered(input_id)):
            return False
        if self.inputs.has_barrier(input_id):
            return False
        if barrier.is_unaligned or self.unaligned.force_unaligned:
            return True
        if self.recording and current is not None and checkpoint_id == current.checkpoint_id:
            return True
        due_ns = self.overtaking_deadline_ns(barrier)
        return due_ns is not None and now_ns >= due_ns

    def overtaking_deadline_ns(self, barrier: CheckpointBarrier) -> int | None:
        """Return from when on a barrier that is not flagged is to overtake; None if unknown, or never."""
        triggered_ns = self.trigger_noted_ns(barrier.checkpoint_id)
        if triggered_ns is None or not self.may_overtake:
            return None
        return triggered_ns + self.unaligned.alignment_timeout_threshold_ns

    # From aligning to recording.

    def _start(self, switched: bool) -> UnalignedAction:
        """Begin an unaligned part: the snapshot is due now, and until `begin_recording` every message is buffered."""
        assert self.barrier is not None
        self.barrier = _flagged(self.barrier)
        self.triggered = True
        self.is_unaligned = True
        self.was_threshold_triggered = switched
        self.unaligned_count += 1
        self.threshold_switches += switched
        self.recorder.begin(self.free.union(self.inputs.ready))
        self.free.clear()
        return _TAKE_SNAPSHOT

    def begin_recording(self) -> bool:
        """Begin to drain the buffer and to record what is in flight: the snapshot is taken and the barrier forwarded.

        Returns
        -------
        bool
            Whether every barrier is in already, so that the part is complete. If the limit is passed by what the
            barrier overtook in the outputs, the checkpoint is aborted; see `aborts`.

        Raises
        ------
        NotTriggeredError
            If no unaligned snapshot is under way. Nothing changes.
        """
        barrier = self.barrier
        if barrier is None or not self.is_unaligned or not self.triggered or self.recording:
            raise NotTriggeredError("begin_recording()")
        self.recording = True
        self.triggered = False
        self.inputs.unblock_all()
        self.inputs.set_fast(False)  # so that every event of an input that is not free comes by `buffer`
        self._park()
        if self.recorder.is_over():
            self.abort_here(barrier.checkpoint_id, Reason.IN_FLIGHT_LIMIT)
            return False
        self.triggered = not self.recorder.missing
        return self.triggered

    def over_limit(self, current: CheckpointBarrier) -> AlignerAction:
        """Switch to unaligned when the buffer is full (protocol rule 7). While recording, a full buffer is
        backpressure.
        """
        if self.recording:
            return _REFUSED
        if self.may_overtake:
            self._start(switched=True)
            return _SWITCHED
        return super().over_limit(current)

    # Recording.

    def buffer(self, input_id: int, message: StreamMessage, now_ns: int) -> AlignerAction:
        """Record on an input whose barrier is missing; buffer only behind what is still to drain."""
        if not self.recording or input_id not in self.recorder.missing or self.inputs.queues[input_id]:
            return super().buffer(input_id, message, now_ns)
        if type(message) is Event:
            if self.recorder.record(input_id, message):
                return _RECORDED
            self._over_part()
            return _PASS
        return self.step(input_id, message, now_ns)

    def _over_part(self) -> None:
        """Abort the checkpoint: the in-flight events exceed their limit (protocol rule 18)."""
        assert self.barrier is not None
        self.abort_here(self.barrier.checkpoint_id, Reason.IN_FLIGHT_LIMIT)

    def _is_newer(self, message: StreamMessage) -> bool:
        if type(message) is not CheckpointBarrier and type(message) is not CancelBarrier:
            return False
        return self.barrier is not None and message.checkpoint_id > self.barrier.checkpoint_id

    def on_newer(self, input_id: int, message: StreamMessage, now_ns: int) -> AlignerAction:
        """Buffer a message of a newer checkpoint, and all behind it, on an input that has delivered (protocol rule
        17).
        """
        if self.inputs.add(input_id, message) is not Room.ENOUGH:
            return _REFUSED
        self.inputs.block(input_id)
        return _BUFFERED

    def _park(self) -> None:
        """Block inputs whose next message to drain belongs to a newer checkpoint."""
        inputs, missing = self.inputs, self.recorder.missing
        for input_id in [i for i in inputs.ready if i not in missing and self._is_newer(inputs.queues[i][0])]:
            inputs.block(input_id)

    def drain_next(self, now_ns: int = 0) -> tuple[int, StreamMessage, AlignerAction] | None:
        """Drain as the aligner does; events from an input whose barrier is missing are recorded too."""
        step = super().drain_next(now_ns)
        if step is not None and self.recording:
            input_id, message, _ = step
            if input_id in self.recorder.missing:
                self.free.discard(input_id)
                if type(message) is Event:
                    if self.recorder.record(input_id, message):
                        step = input_id, message, _RECORDED
                    else:
                        self._over_part()
            self._park()
        return step

    def drain_runs(self) -> list[tuple[int, deque[StreamMessage]]]:
        """Return nothing while recording: each event must be examined."""
        return [] if self.recording else super().drain_runs()

    def terminate(self, checkpoint_id: int) -> None:
        """End the current checkpoint and its recording."""
        self.free.update(input_id for input_id in self.recorder.missing if not self.inputs.queues[input_id])
        self._asked = self._mismatched = False
        if self.is_unaligned:
            self.is_unaligned = self.was_threshold_triggered = self.recording = False
            self.recorder.clear()
            self.inputs.set_fast(True)
        super().terminate(checkpoint_id)

    def note_output(self, size_bytes: int) -> None:
        """Count the bytes that the barrier overtook on the way out: the limit is for the whole part (protocol rule 18).

        Before `begin_recording` nothing is aborted yet; that does it. Of no unaligned part, it counts nothing.
        """
        if not self.is_unaligned or self.barrier is None:
            return
        self.recorder.count(size_bytes)
        if self.recording and self.recorder.is_over():
            self.abort_here(self.barrier.checkpoint_id, Reason.IN_FLIGHT_LIMIT)

    # How a part ends.

    def complete_alignment(self) -> None:
        """End the part, which is complete and acknowledged.

        Raises
        ------
        NotTriggeredError
            If a barrier is missing. Nothing changes.
        """
        if self.is_unaligned and not self.recording:
            raise NotTriggeredError("complete_alignment()")
        super().complete_alignment()

    def inflight_data(self) -> tuple[InFlightChannelData, ...]:
        """Return what is recorded for the current checkpoint, by input; call it before `complete_alignment`."""
        return self.recorder.data()

    # Time.

    def next_deadline_ns(self) -> int | None:
        """Return when `on_time` will next have something to do: switch, or abort. None if nothing waits."""
        expires_ns, switches_ns = self.expires_ns(), self._switches_ns()
        if expires_ns is None or switches_ns is None:
            return expires_ns
        return min(expires_ns, switches_ns)

    def _switches_ns(self) -> int | None:
        triggered_ns = self.waits_since_ns()
        if triggered_ns is None or self.recording or not self.may_overtake:
            return None
        return triggered_ns + self.unaligned.alignment_timeout_threshold_ns

    def should_switch_to_unaligned(self, now_ns: int) -> bool:
        """Return whether the deadline of the switch has passed: at least one barrier is in, and not all (protocol rule
        15).
        """
        switches_ns = self._switches_ns()
        return switches_ns is not None and now_ns >= switches_ns

    def on_time(self, now_ns: int) -> bool:
        """Abort the current checkpoint if its deadline has passed, or switch if that is due. `triggered` says which."""
        if super().on_time(now_ns):
            return True
        if not self.should_switch_to_unaligned(now_ns):
            return False
        self._start(switched=True)
        return True

    # Questions.

    def aligned_input_count(self) -> int:
        """Return how many inputs have delivered the current checkpoint, closed ones among them; 0 between
        checkpoints."""
        if self.barrier is None or not self.is_unaligned:
            return super().aligned_input_count()
        return self.config.num_inputs - len(self.recorder.missing)

    def metrics(self) -> UnalignedCheckpointMetrics:
        """The document's counters."""
        metrics = super().metrics()
        return UnalignedCheckpointMetrics(
            metrics.alignments_completed,
            metrics.total_events_buffered,
            metrics.max_alignment_duration_ns,
            metrics.current_buffered,
            metrics.is_aligning,
            self.unaligned_count,
            self.threshold_switches,
            self.total_inflight_bytes,
            self.recording,
            self.flag_mismatches,
        )

    # Capture and restore.

    def capture(self) -> Hashable:
        """Return the state as a value for `restore`."""
        return (
            super().capture(),
            self.recording,
            self.is_unaligned,
            self.was_threshold_triggered,
            self._asked,
            self._mismatched,
            *self.recorder.capture(),
            (self.unaligned_count, self.threshold_switches, self.recorder.total_bytes, self.flag_mismatches),
        )

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` of a machine of the same configuration returned."""
        (
            aligner,
            self.recording,
            self.is_unaligned,
            self.was_threshold_triggered,
            self._asked,
            self._mismatched,
            *recorder,
            (self.unaligned_count, self.threshold_switches, self.recorder.total_bytes, self.flag_mismatches),
        ) = value  # type: ignore[misc]
        super().restore(aligner)  # type: ignore[has-type]
        self.recorder.restore(recorder)  # type: ignore[has-type]
        self.inputs.set_fast(not self.recording)
