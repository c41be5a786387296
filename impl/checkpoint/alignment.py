"""The aligner of a task: an input waits behind its barrier until every other open input has delivered its own.

Invariant: a snapshot holds all that came before the barriers, and nothing that came after one.

F-DCKP-002, sound by protocol rules 6 to 13. Unlike there, everything that comes behind a barrier is buffered whole and
in order - watermarks and further barriers too - and what was buffered steps through the same aligner again when it is
drained; a completed or aborted id is remembered; ends of input count as barriers; limits are checked before a
message is taken; deadlines count from the trigger of the checkpoint.

What the caller owes: apply a message that passes before offering the next one; at TRIGGER_SNAPSHOT take the image of
the state, forward the barrier, and then call `complete_alignment`; afterwards call `drain_next` until it gives None
before offering anything new; look at `aborts` after each call and empty it. `impl.checkpoint.gate.Gate` does all that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from barrierlab.impl.checkpoint.inputs import InputBuffers, Room
from barrierlab.impl.checks import check_number
from barrierlab.impl.errors import InputCountError, NotTriggeredError, UnknownMessageError
from barrierlab.impl.messages import (
    UNALIGNED_FLAG,
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
    check_id,
)
from barrierlab.impl.messages import (
    size_of as default_size_of,
)
from barrierlab.impl.reasons import Reason

MAX_INPUTS = 128


@dataclass(frozen=True, slots=True)
class BarrierAlignerConfig:
    """The number of inputs, and how much they may buffer. Limits are inclusive: the limit itself is allowed (protocol
    rule 7).

    Attributes
    ----------
    num_inputs : int
        1 to 128.
    max_buffer_per_input : int
        How many messages one input may buffer; after that it is not read any more.
    max_buffer_memory_bytes : int
        How many bytes all inputs together may buffer; one message more costs the checkpoint.
    alignment_timeout_ns : int
        How long after its trigger a checkpoint is aborted if barriers are missing here.

    Raises
    ------
    InputCountError
        If there are less than 1 or more than 128 inputs.
    LimitError
        If one of the others is less than 1.
    """

    num_inputs: int = 2
    max_buffer_per_input: int = 100_000
    max_buffer_memory_bytes: int = 256 * 1024 * 1024
    alignment_timeout_ns: int = 60_000_000_000

    def __post_init__(self) -> None:
        if type(self.num_inputs) is not int or not 1 <= self.num_inputs <= MAX_INPUTS:
            raise InputCountError(self.num_inputs, MAX_INPUTS)
        for name in ("max_buffer_per_input", "max_buffer_memory_bytes", "alignment_timeout_ns"):
            check_number(name, getattr(self, name), 1)


class AlignmentAction(Enum):
    """The action that the caller takes with the message that it offered, or got from `drain_next`."""

    PASS_THROUGH = "apply the event"
    WATERMARK_PASS_THROUGH = "apply the watermark"
    BUFFERED = "nothing: it is buffered behind its input's barrier"
    BLOCKED = "nothing: the barrier is in, its input waits now"
    TRIGGER_SNAPSHOT = "the last barrier or end is in: snapshot, forward `aligner.barrier`, complete_alignment"
    DRAIN_BUFFERED = "apply the event, which was buffered"
    INPUT_ENDED = "apply the end of this input"
    IGNORED = "nothing: a barrier or cancel marker that is stale or a duplicate"
    ABORTED = "nothing more than `aligner.aborts` says: the message was taken"
    REFUSED = "keep the message: over a limit. If `aligner.aborts` has something, drain and offer it again"


class UnalignedAction(Enum):
    """The further actions of `UnalignedCheckpointer`, defined here because `AlignerAction` has both."""

    TAKE_SNAPSHOT = "snapshot at once, forward `machine.barrier` ahead of everything, begin_recording"
    SWITCHED = "keep the message: over the limit in bytes. Do as for TAKE_SNAPSHOT, drain, and offer it again"
    RECORDED = "apply the event, buffered before or not: a copy of it is recorded as in flight"
    LATE_BARRIER = "nothing: the barrier is in, nothing waits for it, others are to come"
    PART_COMPLETE = "the last barrier or end is in: acknowledge the snapshot and what is recorded, complete_alignment"


AlignerAction = AlignmentAction | UnalignedAction

# One global each: a lookup on the enum costs more than the test it serves.
_PASS: Final = AlignmentAction.PASS_THROUGH
_WATERMARK: Final = AlignmentAction.WATERMARK_PASS_THROUGH
_BUFFERED: Final = AlignmentAction.BUFFERED
_BLOCKED: Final = AlignmentAction.BLOCKED
_TRIGGER: Final = AlignmentAction.TRIGGER_SNAPSHOT
_DRAIN: Final = AlignmentAction.DRAIN_BUFFERED
_ENDED: Final = AlignmentAction.INPUT_ENDED
_IGNORED: Final = AlignmentAction.IGNORED
_ABORTED: Final = AlignmentAction.ABORTED
_REFUSED: Final = AlignmentAction.REFUSED
_ENOUGH: Final = Room.ENOUGH
_OUT_OF_BYTES: Final = Room.OUT_OF_BYTES


@dataclass(frozen=True, slots=True)
class BarrierAlignerMetrics:
    """The metrics that the document lists: they count events, and times are in nanoseconds.

    An alignment lasts from the first barrier of a checkpoint to its last, aligned or unaligned.
    """

    alignments_completed: int
    total_events_buffered: int
    max_alignment_duration_ns: int
    current_buffered: int
    is_aligning: bool


class BarrierAligner:
    """Aligns the barriers of one task's inputs.

    Parameters
    ----------
    config : BarrierAlignerConfig
    size_of : callable, optional
        What a message counts in bytes; by default an event's `size_bytes` and a small constant for the others.

    Attributes
    ----------
    barrier : CheckpointBarrier or None
        The checkpoint under way; None between checkpoints.
    last_terminated_id : int
        The highest id completed or aborted here; 0 at first. Barriers up to it do nothing any more (rule 6).
    triggered : bool
        Whether every barrier is in and the snapshot is not ended yet.
    free : set of int
        The inputs on which an event passes. Always the same set: a gate may look into it before it asks.
    inputs : InputBuffers
        What the inputs buffer, and which of them wait.
    blocks : bool
        Whether an input waits behind its barrier. Of the class.
    mixes_flags : bool
        Whether barriers of one id may differ in the flag for unaligned ones. Of the class.
    aborts : list of (int, Reason)
        What was aborted since the caller last emptied the list; each closes every older id too (rule 10).

    Examples
    --------
    >>> from barrierlab.impl import BarrierAligner, CheckpointBarrier, Event
    >>> aligner = BarrierAligner()
    >>> aligner.process_message(0, CheckpointBarrier(1, 1)).name
    'BLOCKED'
    >>> aligner.process_message(0, Event("a", 1)).name
    'BUFFERED'
    >>> aligner.process_message(1, CheckpointBarrier(1, 1)).name
    'TRIGGER_SNAPSHOT'
    >>> aligner.complete_alignment()
    >>> input_id, event, action = aligner.drain_next()
    >>> print(input_id, event, action.name)
    0 a1 DRAIN_BUFFERED
    """

    blocks: ClassVar[bool] = True
    mixes_flags: ClassVar[bool] = False

    __slots__ = (
        "_first_ns",
        "_triggers_ns",
        "aborts",
        "alignments_completed",
        "barrier",
        "config",
        "events_drained",
        "free",
        "inputs",
        "last_terminated_id",
        "max_alignment_duration_ns",
        "triggered",
    )

    def __init__(
        self, config: BarrierAlignerConfig | None = None, size_of: Callable[[StreamMessage], int] = default_size_of
    ) -> None:
        self.config = config or BarrierAlignerConfig()
        self.inputs = InputBuffers(
            self.config.num_inputs, self.config.max_buffer_per_input, self.config.max_buffer_memory_bytes, size_of
        )
        self.free = self.inputs.free
        self.barrier: CheckpointBarrier | None = None
        self.last_terminated_id = 0
        self.triggered = False
        self.aborts: list[tuple[int, Reason]] = []
        self.alignments_completed = 0
        self.events_drained = 0
        self.max_alignment_duration_ns = 0
        self._first_ns = 0  # when the current checkpoint's first barrier came
        self._triggers_ns: dict[int, int] = {}

    # Messages in.

    def process_message(self, input_id: int, message: StreamMessage, now_ns: int = 0) -> AlignerAction:
        """Take the next message of an input.

        Parameters
        ----------
        input_id : int
            0 to `num_inputs` - 1.
        message : StreamMessage
        now_ns : int
            The time, in nanoseconds; only differences count.

        Returns
        -------
        AlignerAction
            What the caller is to do with `message`.

        Raises
        ------
        InputIndexError
            If there is no such input. Nothing changes, as with the others.
        ClosedInputError
            If the input's end has come before.
        UnknownMessageError
            If `message` is none of the five kinds.
        """
        if type(message) is Event:
            if input_id in self.free:
                return _PASS
            inputs = self.inputs
            try:
                queue = inputs.takes[input_id]
            except KeyError:
                return self.buffer(input_id, message, now_ns)  # which says what is wrong
            size_bytes: int = message.size_bytes
            left = inputs.bytes_left - size_bytes
            if left >= 0 and len(queue) < inputs.fast_limit:
                queue.append(message)
                inputs.bytes_left = left
                return _BUFFERED
            return self.buffer(input_id, message, now_ns)
        if input_id in self.free:
            if type(message) is CheckpointBarrier:
                return self.on_barrier(input_id, message, now_ns)
            return self.step(input_id, message, now_ns)
        current = self.barrier
        if current is not None and not self.triggered and self._has_barrier_in(input_id):
            if type(message) is CheckpointBarrier and message.checkpoint_id <= current.checkpoint_id:
                return self.repeated(message, current)
            if type(message) is CancelBarrier and message.checkpoint_id == current.checkpoint_id:
                return self.on_cancel(input_id, message, now_ns)
        return self.buffer(input_id, message, now_ns)

    def _has_barrier_in(self, input_id: int) -> bool:
        return input_id in self.inputs.blocked and input_id in self.inputs.takes

    # The decisions. An aligner of another protocol, or one that is broken on purpose, overrides these and no others.

    def buffer(self, input_id: int, message: StreamMessage, now_ns: int) -> AlignerAction:
        """Buffer `message` on its input, unless that exceeds a limit (protocol rule 7)."""
        room = self.inputs.add(input_id, message)
        if room is _ENOUGH:
            return _BUFFERED
        if room is _OUT_OF_BYTES and self.barrier is not None and not self.triggered and not self.inputs.ready:
            return self.over_limit(self.barrier)
        return _REFUSED

    def over_limit(self, current: CheckpointBarrier) -> AlignerAction:
        """Decide what happens when one message more would exceed the limit in bytes (protocol rule 7)."""
        self.abort_here(current.checkpoint_id, Reason.BUFFER_LIMIT)
        return _REFUSED

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignerAction:
        """Handle a barrier of an unblocked input (protocol rule 6); the input blocks if the barrier counts."""
        current = self.barrier
        if current is None:
            checkpoint_id: int = barrier.checkpoint_id
            if checkpoint_id <= self.last_terminated_id:
                return _IGNORED
            self.barrier = barrier
            self._first_ns = now_ns
        elif barrier is not current:
            checkpoint_id = barrier.checkpoint_id
            if checkpoint_id <= self.last_terminated_id:
                return _IGNORED
            if checkpoint_id > current.checkpoint_id:
                self.abort_here(current.checkpoint_id, Reason.SUBSUMED)
                self.barrier = barrier
                self._first_ns = now_ns
            elif (
                checkpoint_id < current.checkpoint_id
                or barrier.epoch != current.epoch
                or barrier.flags != current.flags
            ):
                return self.repeated(barrier, current)
        inputs = self.inputs
        if inputs.ready:
            return self.all_in(now_ns) if inputs.block(input_id) else _BLOCKED
        blocked = inputs.blocked  # as `InputBuffers.block` where nothing is drained, without the call
        blocked.add(input_id)
        self.free.discard(input_id)
        return _BLOCKED if len(blocked) < inputs.open_count else self.all_in(now_ns)

    def repeated(self, barrier: CheckpointBarrier, current: CheckpointBarrier) -> AlignmentAction:
        """Handle a barrier that is not newer than the current one: it adds nothing, but may contradict the current one
        (A-16).
        """
        if barrier.checkpoint_id < current.checkpoint_id or barrier == current:
            return _IGNORED
        if self.mixes_flags and barrier.epoch == current.epoch:
            if not (barrier.flags ^ current.flags) & ~UNALIGNED_FLAG:
                return _IGNORED
        self.abort_here(current.checkpoint_id, Reason.BARRIER_MISMATCH)
        return _ABORTED

    def all_in(self, now_ns: int) -> AlignmentAction:
        """Complete the alignment: the last barrier, or end, is in, and nothing is recorded."""
        self.triggered = True
        if now_ns - self._first_ns > self.max_alignment_duration_ns:
            self.note_duration(now_ns)
        return _TRIGGER

    def on_end(self, input_id: int, now_ns: int) -> AlignerAction:
        """Handle an end: a closed input counts as delivered, for the current and every later id (protocol rule 13)."""
        self.inputs.close(input_id)
        if self.barrier is None or len(self.inputs.blocked) < self.inputs.open_count:
            return _ENDED
        return self.all_in(now_ns)

    def on_cancel(self, input_id: int, cancel: CancelBarrier, now_ns: int) -> AlignerAction:
        """Handle a cancel (protocol rule 10)."""
        if self._is_closed(cancel.checkpoint_id):
            return _IGNORED
        self.abort_here(cancel.checkpoint_id, Reason.CANCELLED)
        return _ABORTED

    def terminate(self, checkpoint_id: int) -> None:
        """End the current checkpoint, completed or aborted; the buffered messages are drained from now on."""
        self.last_terminated_id = checkpoint_id
        self.barrier = None
        self.triggered = False
        self._first_ns = 0  # of what has ended: no state is to differ in it
        if self._triggers_ns:
            self._triggers_ns = {i: ns for i, ns in self._triggers_ns.items() if i > checkpoint_id}
        self.inputs.unblock_all()

    # Steps that decisions are made of.

    def step(self, input_id: int, message: StreamMessage, now_ns: int) -> AlignerAction:
        """Process a message that is not an event and is next in order; return the action."""
        if type(message) is CheckpointBarrier:
            return self.on_barrier(input_id, message, now_ns)
        if type(message) is Watermark:
            return _WATERMARK
        if type(message) is CancelBarrier:
            return self.on_cancel(input_id, message, now_ns)
        if type(message) is EndOfInput:
            return self.on_end(input_id, now_ns)
        raise UnknownMessageError(message)

    def abort_here(self, checkpoint_id: int, reason: Reason) -> None:
        """Abort by a decision of this task and add the abort to `aborts`."""
        self.aborts.append((checkpoint_id, reason))
        self.terminate(checkpoint_id)

    def note_duration(self, now_ns: int) -> None:
        """Record the duration of the alignment, at its last barrier or end."""
        took_ns = now_ns - self._first_ns
        if took_ns > self.max_alignment_duration_ns:
            self.max_alignment_duration_ns = took_ns

    def recover(self, last_terminated_id: int, ended: Iterable[int]) -> None:
        """Continue from a cut, as a new aligner: barriers up to `last_terminated_id` are stale, and these inputs have
        ended.

        Raises
        ------
        CheckpointIdError, InputIndexError, LimitError
            If the id or an input is none, or an input is named twice. Nothing changes.
        """
        if last_terminated_id or type(last_terminated_id) is not int:  # 0 is the beginning
            check_id(last_terminated_id)
        self.inputs.close_all(ended)
        self.last_terminated_id = last_terminated_id

    # How a checkpoint ends.

    def complete_alignment(self) -> None:
        """Complete the checkpoint: the snapshot is taken, the barrier forwarded, and the buffer may drain.

        Raises
        ------
        NotTriggeredError
            If no snapshot is under way. Nothing changes.
        """
        barrier = self.barrier
        if barrier is None or not self.triggered:
            raise NotTriggeredError("complete_alignment()")
        self.alignments_completed += 1
        self.terminate(barrier.checkpoint_id)

    def fail_alignment(self, reason: Reason = Reason.SNAPSHOT_FAILED) -> tuple[int, Reason]:
        """Fail the checkpoint (protocol rule 9): the buffer may drain; the caller declines and sends the cancel.

        Returns
        -------
        tuple of (int, Reason)
            What is aborted.

        Raises
        ------
        NotTriggeredError
            If no snapshot is under way. Nothing changes.
        """
        barrier = self.barrier
        if barrier is None or not self.triggered:
            raise NotTriggeredError("fail_alignment()")
        self.terminate(barrier.checkpoint_id)
        return barrier.checkpoint_id, reason

    def abort(self, checkpoint_id: int, reason: Reason) -> bool:
        """Abort `checkpoint_id` and every older checkpoint, by order of the coordinator (protocol rule 10).

        Returns
        -------
        bool
            Whether that was news: False if the id was done with, a newer one is under way, or every input has ended.

        Raises
        ------
        CheckpointIdError
            If the id is out of range.
        """
        check_id(checkpoint_id)
        if self._is_closed(checkpoint_id):
            return False
        self.abort_here(checkpoint_id, reason)
        return True

    def _is_closed(self, checkpoint_id: int) -> bool:
        if not self.inputs.open_count:  # every input has ended, and the task with it: nothing may follow on its outputs
            return True
        current = self.barrier
        return checkpoint_id <= self.last_terminated_id or (
            current is not None and checkpoint_id < current.checkpoint_id
        )

    # What was buffered.

    def drain_next(self, now_ns: int = 0) -> tuple[int, StreamMessage, AlignerAction] | None:
        """Take one buffered message, round robin over the inputs, and process it (protocol rule 8).

        Returns
        -------
        tuple of (int, StreamMessage, Action) or None
            The input, the message, and what to do with it; None if nothing may go.
        """
        if not self.inputs.ready:
            return None
        input_id, message = self.inputs.pop_next()
        if type(message) is Event:
            self.events_drained += 1
            return input_id, message, _DRAIN
        return input_id, message, self.step(input_id, message, now_ns)

    def drain_runs(self) -> list[tuple[int, deque[StreamMessage]]]:
        """Take all that may drain, as whole queues, if they hold events alone; otherwise nothing.

        The fast path: no message is touched. An empty list says to call `drain_next` until that gives None.
        """
        runs = self.inputs.pop_runs()
        for _, queue in runs:
            self.events_drained += len(queue)
        return runs

    def drained(self, now_ns: int = 0) -> list[tuple[int, Event]]:
        """Release events, round robin, in the document's form: (input, event) pairs.

        It stops where a watermark, a barrier, a cancel marker or an end is next: `drain_next` says what that wants.
        """
        events: list[tuple[int, Event]] = []
        inputs = self.inputs
        while inputs.ready and type(inputs.queues[inputs.ready[0]][0]) is Event:
            step = self.drain_next(now_ns)
            assert step is not None
            input_id, message, _ = step
            assert type(message) is Event
            events.append((input_id, message))
        return events

    # Time.

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        """Record when `checkpoint_id` was triggered: its deadline counts from then (protocol rule 11).

        A checkpoint of which that is never said counts from its first barrier here.
        """
        if checkpoint_id > self.last_terminated_id:
            self._triggers_ns[checkpoint_id] = triggered_ns

    def next_deadline_ns(self) -> int | None:
        """Return when `on_time` will next have something to do; None if nothing waits."""
        return self.expires_ns()

    def trigger_noted_ns(self, checkpoint_id: int) -> int | None:
        """Return when `checkpoint_id` was triggered, as recorded by `note_trigger`, or None."""
        return self._triggers_ns.get(checkpoint_id)

    def waits_since_ns(self) -> int | None:
        """Return when the checkpoint that waits for barriers was triggered, or None."""
        barrier = self.barrier
        if barrier is None or self.triggered:
            return None
        return self._triggers_ns.get(barrier.checkpoint_id, self._first_ns)

    def count_from(self, now_ns: int) -> None:
        """Take the alignment under way for one whose first barrier came at `now_ns`."""
        self._first_ns = now_ns

    def expires_ns(self) -> int | None:
        """Return the deadline of the current checkpoint."""
        triggered_ns = self.waits_since_ns()
        return None if triggered_ns is None else triggered_ns + self.config.alignment_timeout_ns

    def on_time(self, now_ns: int) -> bool:
        """Abort the current checkpoint if its deadline has come. Needs no data (protocol rule 11)."""
        deadline_ns = self.expires_ns()
        if deadline_ns is None or now_ns < deadline_ns:
            return False
        assert self.barrier is not None
        self.abort_here(self.barrier.checkpoint_id, Reason.EXPIRED)
        return True

    def check_timeout(self, now_ns: int) -> int | None:
        """Return how long the current checkpoint has been pending if that is its timeout or more; else None."""
        deadline_ns = self.expires_ns()
        if deadline_ns is None or now_ns < deadline_ns:
            return None
        return now_ns - deadline_ns + self.config.alignment_timeout_ns

    # Questions.

    @property
    def size_of(self) -> Callable[[StreamMessage], int]:
        """The function that gives the size of a message in bytes."""
        return self.inputs.size_of

    @property
    def can_drain(self) -> bool:
        """Return whether `drain_next` would return a message."""
        return bool(self.inputs.ready)

    def is_aligning(self) -> bool:
        """Return whether a checkpoint is under way: from its first barrier until its snapshot is ended or it is
        aborted."""
        return self.barrier is not None

    def aligned_input_count(self) -> int:
        """Return how many inputs have delivered the current checkpoint, closed ones among them; 0 between
        checkpoints."""
        if self.barrier is None:
            return 0
        return self.config.num_inputs - self.inputs.open_count + len(self.inputs.blocked)

    def buffered_event_count(self) -> int:
        """Return how many events are buffered or not drained yet."""
        return self.inputs.event_count()

    def buffered_bytes(self) -> int:
        """Return how many bytes are buffered or not drained yet."""
        return self.config.max_buffer_memory_bytes - self.inputs.bytes_left

    def is_buffer_limit_exceeded(self) -> bool:
        """Return whether a limit is reached: not one byte more, or an input full. None is ever passed (protocol rule
        7)."""
        return self.inputs.is_full()

    def is_blocked(self, input_id: int) -> bool:
        """Return whether this input has delivered the current barrier.

        Raises
        ------
        InputIndexError
            If there is no such input.
        """
        self.inputs.check_index(input_id)
        return input_id in self.inputs.blocked

    def can_take(self, input_id: int) -> bool:
        """Return whether this input may be read: it has not ended, and there is room for one message more.

        Raises
        ------
        InputIndexError
            If there is no such input.
        """
        return self.inputs.can_take(input_id)

    def metrics(self) -> BarrierAlignerMetrics:
        """The document's counters."""
        buffered = self.buffered_event_count()
        return BarrierAlignerMetrics(
            self.alignments_completed,
            self.events_drained + buffered,
            self.max_alignment_duration_ns,
            buffered,
            self.is_aligning(),
        )

    # Capture and restore.

    def capture(self) -> Hashable:
        """Return the state as a value for `restore`."""
        return (
            self.barrier,
            self.last_terminated_id,
            self.triggered,
            tuple(self.aborts),
            *self.inputs.capture(),
            self._first_ns,
            tuple(sorted(self._triggers_ns.items())),
            (self.alignments_completed, self.events_drained, self.max_alignment_duration_ns),
        )

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` of an aligner of the same configuration returned."""
        (
            self.barrier,
            self.last_terminated_id,
            self.triggered,
            aborts,
            *inputs,
            self._first_ns,
            triggers,
            (self.alignments_completed, self.events_drained, self.max_alignment_duration_ns),
        ) = value  # type: ignore[misc]
        self.aborts[:] = aborts  # type: ignore[has-type]
        self.inputs.restore(inputs)  # type: ignore[has-type]
        self._triggers_ns = dict(triggers)  # type: ignore[has-type]
