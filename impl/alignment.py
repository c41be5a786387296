"""The aligner of a task: an input waits behind its barrier until every other open input has delivered its own.

Invariant: a snapshot holds all that came before the barriers, and nothing that came after one.

F-DCKP-002, sound by protocol rules 6 to 13. Unlike there, everything that comes behind a barrier is held whole and in
order - watermarks and further barriers too - and what was held steps through the same aligner again when it is
released; a completed or given-up id is remembered; ends of input count as barriers; limits are checked before a
message is taken; deadlines count from the trigger of the checkpoint.

What the caller owes: apply a message that passes before offering the next one; at TRIGGER_SNAPSHOT take the image of
the state, forward the barrier, and then call `complete_alignment`; afterwards call `drain_next` until it gives None
before offering anything new; look at `aborts` after each call and empty it. `impl.gate.Gate` does all that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum

from impl.errors import (
    CheckpointIdError,
    ClosedInputError,
    InputCountError,
    InputIndexError,
    LimitError,
    NotTriggeredError,
    UnknownMessageError,
)
from impl.messages import (
    MAX_U64,
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
)
from impl.messages import (
    size_of as default_size_of,
)
from impl.reasons import Reason

MAX_INPUTS = 128


@dataclass(frozen=True, slots=True)
class BarrierAlignerConfig:
    """How many inputs, and how much may wait. Limits are inclusive: exactly the limit is allowed (protocol rule 7).

    Attributes
    ----------
    num_inputs : int
        1 to 128.
    max_buffer_per_input : int
        How many messages one input may hold; after that it is not read any more.
    max_buffer_memory_bytes : int
        How many bytes all inputs together may hold; one message more costs the checkpoint.
    alignment_timeout_ns : int
        How long after its trigger a checkpoint is given up if barriers are missing here.

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
        if not 1 <= self.num_inputs <= MAX_INPUTS:
            raise InputCountError(self.num_inputs, MAX_INPUTS)
        for name in ("max_buffer_per_input", "max_buffer_memory_bytes", "alignment_timeout_ns"):
            if getattr(self, name) < 1:
                raise LimitError(name, getattr(self, name), "1 or more")


class AlignmentAction(Enum):
    """What the caller is to do with the message it gave, or got from `drain_next`."""

    PASS_THROUGH = "apply the event"
    WATERMARK_PASS_THROUGH = "apply the watermark"
    BUFFERED = "nothing: it is held behind its input's barrier"
    BLOCKED = "nothing: the barrier is in, its input waits now"
    TRIGGER_SNAPSHOT = "the last barrier or end is in: snapshot, forward `aligner.barrier`, complete_alignment"
    DRAIN_BUFFERED = "apply the event, which was held"
    INPUT_ENDED = "apply the end of this input"
    IGNORED = "nothing: a barrier or cancel marker that is stale or a duplicate"
    ABORTED = "nothing more than `aligner.aborts` says: the message was taken"
    REFUSED = "keep the message: over a limit. If `aligner.aborts` has something, release and offer it again"


# One global each: a lookup on the enum costs more than the test it serves.
_PASS = AlignmentAction.PASS_THROUGH
_WATERMARK = AlignmentAction.WATERMARK_PASS_THROUGH
_BUFFERED = AlignmentAction.BUFFERED
_BLOCKED = AlignmentAction.BLOCKED
_TRIGGER = AlignmentAction.TRIGGER_SNAPSHOT
_DRAIN = AlignmentAction.DRAIN_BUFFERED
_ENDED = AlignmentAction.INPUT_ENDED
_IGNORED = AlignmentAction.IGNORED
_ABORTED = AlignmentAction.ABORTED
_REFUSED = AlignmentAction.REFUSED


@dataclass(frozen=True, slots=True)
class BarrierAlignerMetrics:
    """What the document lists; events only, and time in nanoseconds."""

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
    last_done : int
        The highest id completed or given up here; 0 at first. Barriers up to it do nothing any more (rule 6).
    triggered : bool
        Whether every barrier is in and the snapshot is not ended yet.
    aborts : list of (int, Reason)
        What was given up since the caller last emptied the list; each closes every older id too (rule 10).

    Examples
    --------
    >>> from impl import BarrierAligner, CheckpointBarrier, Event
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

    __slots__ = (
        "_blocked",
        "_bytes_left",
        "_controls",
        "_first_ns",
        "_max_per_input",
        "_missing",
        "_open",
        "_queues",
        "_ready",
        "_size_of",
        "_triggers_ns",
        "_waits",
        "aborts",
        "alignments_completed",
        "barrier",
        "config",
        "events_released",
        "last_done",
        "max_alignment_duration_ns",
        "triggered",
    )

    def __init__(
        self, config: BarrierAlignerConfig | None = None, size_of: Callable[[StreamMessage], int] = default_size_of
    ) -> None:
        self.config = config or BarrierAlignerConfig()
        num_inputs = self.config.num_inputs
        self.barrier: CheckpointBarrier | None = None
        self.last_done = 0
        self.triggered = False
        self.aborts: list[tuple[int, Reason]] = []
        self.alignments_completed = 0
        self.events_released = 0
        self.max_alignment_duration_ns = 0
        self._size_of = None if size_of is default_size_of else size_of
        self._max_per_input = self.config.max_buffer_per_input
        self._bytes_left = self.config.max_buffer_memory_bytes
        self._controls = 0  # how many of the held messages are no events
        # All that is held or not released yet, by input. An input that waits (is blocked, or has such messages) has
        # its queue in `_waits`, one that does not has None there, and one whose end has come is not in there at all.
        # Dicts, so that an index out of range, a negative one too, never aliases another input.
        self._queues: dict[int, deque[StreamMessage]] = {i: deque() for i in range(num_inputs)}
        self._waits: dict[int, deque[StreamMessage] | None] = dict.fromkeys(range(num_inputs))
        self._ready: deque[int] = deque()  # not blocked, something to release; in turn
        self._blocked: list[int] = []  # in order of their barriers
        self._open = (1 << num_inputs) - 1  # bit set of the inputs whose end has not taken effect
        self._missing = 0  # bit set of the inputs that the current checkpoint waits for
        self._first_ns = 0  # when the current checkpoint's first barrier came
        self._triggers_ns: dict[int, int] = {}

    # Messages in.

    def process_message(self, input_id: int, message: StreamMessage, now_ns: int = 0) -> AlignmentAction:
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
        AlignmentAction
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
        try:
            queue = self._waits[input_id]
        except KeyError:
            raise self._no_input(input_id, message) from None
        if type(message) is Event:
            if queue is None:
                return _PASS
            if self._size_of is None:
                left = self._bytes_left - message.size_bytes
                if left >= 0 and len(queue) < self._max_per_input:
                    queue.append(message)
                    self._bytes_left = left
                    return _BUFFERED
            return self._hold(input_id, message)
        if queue is None:
            return self._step(input_id, message, now_ns)
        barrier = self.barrier
        if barrier is not None and not self.triggered and self._is_blocked(input_id):
            if type(message) is CheckpointBarrier and message.checkpoint_id <= barrier.checkpoint_id:
                return self._disagrees(message)
            if type(message) is CancelBarrier and message.checkpoint_id == barrier.checkpoint_id:
                return self._step(input_id, message, now_ns)
        return self._hold(input_id, message)

    def _no_input(self, input_id: int, message: StreamMessage) -> InputIndexError | ClosedInputError:
        if input_id in self._queues:
            return ClosedInputError(input_id, message)
        return InputIndexError(input_id, self.config.num_inputs)

    def _hold(self, input_id: int, message: StreamMessage) -> AlignmentAction:
        """Put `message` behind what its input holds, unless that passes a limit (protocol rule 7)."""
        queue = self._queues[input_id]
        size = (self._size_of or default_size_of)(message)
        if len(queue) >= self._max_per_input:
            return _REFUSED
        if size > self._bytes_left:
            if self.barrier is not None and not self.triggered:
                self._give_up(self.barrier.checkpoint_id, Reason.BUFFER_LIMIT)
            return _REFUSED
        queue.append(message)
        self._bytes_left -= size
        if type(message) is not Event:
            self._controls += 1
            if type(message) is EndOfInput:
                del self._waits[input_id]
        return _BUFFERED

    def _step(self, input_id: int, message: StreamMessage, now_ns: int) -> AlignmentAction:
        """What a control message does whose turn it is."""
        kind = type(message)
        if kind is CheckpointBarrier:
            return self._on_barrier(input_id, message, now_ns)  # type: ignore[arg-type]
        if kind is Watermark:
            return _WATERMARK
        if kind is CancelBarrier:
            return self._on_cancel(message.checkpoint_id)  # type: ignore[union-attr]
        if kind is EndOfInput:
            return self._on_end(input_id, now_ns)
        raise UnknownMessageError(message)

    def _on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignmentAction:
        """Protocol rule 6. The input is not blocked."""
        current = self.barrier
        checkpoint_id = barrier.checkpoint_id
        if current is None:
            if checkpoint_id <= self.last_done:
                return _IGNORED
        elif checkpoint_id <= current.checkpoint_id:
            if checkpoint_id < current.checkpoint_id or (barrier is not current and barrier != current):
                return self._disagrees(barrier)
            return self._deliver(input_id, now_ns)
        else:
            self._give_up(current.checkpoint_id, Reason.SUBSUMED)
        self.barrier = barrier
        self._first_ns = now_ns
        self._missing = self._open
        return self._deliver(input_id, now_ns)

    def _disagrees(self, barrier: CheckpointBarrier) -> AlignmentAction:
        """A barrier up to the current one that changes nothing, unless it contradicts the current one (A-16)."""
        current = self.barrier
        assert current is not None
        if barrier.checkpoint_id < current.checkpoint_id or barrier == current:
            return _IGNORED
        self._give_up(current.checkpoint_id, Reason.BARRIER_MISMATCH)
        return _ABORTED

    def _deliver(self, input_id: int, now_ns: int) -> AlignmentAction:
        """The current barrier is in on this input: it waits from here on."""
        self._blocked.append(input_id)
        self._waits[input_id] = self._queues[input_id]
        self._missing &= ~(1 << input_id)
        return _BLOCKED if self._missing else self._all_in(now_ns)

    def _all_in(self, now_ns: int) -> AlignmentAction:
        self.triggered = True
        duration_ns = now_ns - self._first_ns
        if duration_ns > self.max_alignment_duration_ns:
            self.max_alignment_duration_ns = duration_ns
        return _TRIGGER

    def _on_end(self, input_id: int, now_ns: int) -> AlignmentAction:
        """Protocol rule 13: a closed input has delivered, for the current and for every later id."""
        bit = 1 << input_id
        self._open &= ~bit
        self._waits.pop(input_id, None)
        if self.barrier is None or not self._missing & bit:
            return _ENDED
        self._missing &= ~bit
        return _ENDED if self._missing else self._all_in(now_ns)

    def _on_cancel(self, checkpoint_id: int) -> AlignmentAction:
        """Protocol rule 10."""
        if self._is_closed(checkpoint_id):
            return _IGNORED
        self._give_up(checkpoint_id, Reason.CANCELLED)
        return _ABORTED

    # How a checkpoint ends.

    def complete_alignment(self) -> None:
        """The snapshot is taken and the barrier forwarded: let go of what is held.

        Raises
        ------
        NotTriggeredError
            If no snapshot is under way. Nothing changes.
        """
        barrier = self.barrier
        if barrier is None or not self.triggered:
            raise NotTriggeredError("complete_alignment()")
        self.alignments_completed += 1
        self._end(barrier.checkpoint_id)

    def fail_alignment(self, reason: Reason = Reason.SNAPSHOT_FAILED) -> tuple[int, Reason]:
        """The snapshot failed (protocol rule 9): let go of what is held; the caller declines and sends the cancel.

        Returns
        -------
        tuple of (int, Reason)
            What is given up.

        Raises
        ------
        NotTriggeredError
            If no snapshot is under way. Nothing changes.
        """
        barrier = self.barrier
        if barrier is None or not self.triggered:
            raise NotTriggeredError("fail_alignment()")
        self._end(barrier.checkpoint_id)
        return barrier.checkpoint_id, reason

    def abort(self, checkpoint_id: int, reason: Reason) -> bool:
        """The coordinator gives `checkpoint_id` up, and with it all that is older (protocol rule 10).

        Returns
        -------
        bool
            Whether that was news: False if the id was done with, or a newer one is under way.

        Raises
        ------
        CheckpointIdError
            If the id is out of range.
        """
        if not 1 <= checkpoint_id <= MAX_U64:
            raise CheckpointIdError(checkpoint_id)
        if self._is_closed(checkpoint_id):
            return False
        self._give_up(checkpoint_id, reason)
        return True

    def _is_closed(self, checkpoint_id: int) -> bool:
        current = self.barrier
        return checkpoint_id <= self.last_done or (current is not None and checkpoint_id < current.checkpoint_id)

    def _give_up(self, checkpoint_id: int, reason: Reason) -> None:
        self.aborts.append((checkpoint_id, reason))
        self._end(checkpoint_id)

    def _end(self, checkpoint_id: int) -> None:
        """Nothing is under way any more; what was held is released from here on, input by input in turn."""
        self.last_done = checkpoint_id
        self.barrier = None
        self.triggered = False
        self._missing = 0
        if self._triggers_ns:
            self._triggers_ns = {i: ns for i, ns in self._triggers_ns.items() if i > checkpoint_id}
        ready = []
        for input_id in self._blocked:
            if self._queues[input_id]:
                ready.append(input_id)
            else:
                self._waits[input_id] = None
        self._blocked.clear()
        if ready:
            self._ready.extend(sorted(ready))

    # What was held.

    def drain_next(self, now_ns: int = 0) -> tuple[int, StreamMessage, AlignmentAction] | None:
        """Take one held message that may go, round robin over the inputs, and step it again (protocol rule 8).

        Returns
        -------
        tuple of (int, StreamMessage, AlignmentAction) or None
            The input, the message, and what to do with it; None if nothing may go.
        """
        if not self._ready:
            return None
        input_id = self._ready.popleft()
        queue = self._queues[input_id]
        message = queue.popleft()
        self._bytes_left += (self._size_of or default_size_of)(message)
        if type(message) is Event:
            self.events_released += 1
            action = _DRAIN
        else:
            self._controls -= 1
            action = self._step(input_id, message, now_ns)
        if not self._is_blocked(input_id):
            if queue:
                self._ready.append(input_id)
            elif type(message) is not EndOfInput:
                self._waits[input_id] = None
        return input_id, message, action

    def drain_runs(self) -> list[tuple[int, deque[StreamMessage]]]:
        """All that may go, as whole queues, if they hold nothing but events; otherwise nothing.

        The fast path: no message is touched. An empty list says to call `drain_next` until that gives None.
        """
        if self._controls:
            return []
        runs = [(input_id, self._queues[input_id]) for input_id in self._ready]
        self._ready.clear()
        for input_id, queue in runs:
            self.events_released += len(queue)
            self._queues[input_id] = deque()
            self._waits[input_id] = None
        self._bytes_left = self.config.max_buffer_memory_bytes - self._held_bytes()
        return runs

    def drained(self, now_ns: int = 0) -> list[tuple[int, Event]]:
        """Release the events up to the first message that is none, in the document's form: (input, event) pairs.

        Control messages are stepped as by `drain_next`; if one of them wants something of the caller (a snapshot, an
        abort, a watermark, an end), use `drain_next` instead, which says so.
        """
        events: list[tuple[int, Event]] = []
        while self._ready and type(self._queues[self._ready[0]][0]) is Event:
            step = self.drain_next(now_ns)
            assert step is not None
            input_id, message, _ = step
            assert type(message) is Event
            events.append((input_id, message))
        return events

    # Time.

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None:
        """Say when `checkpoint_id` was triggered: its deadline counts from there (protocol rule 11).

        A checkpoint of which that is never said counts from its first barrier here.
        """
        if checkpoint_id > self.last_done:
            self._triggers_ns[checkpoint_id] = triggered_ns

    def next_deadline_ns(self) -> int | None:
        """When the current checkpoint is given up unless its barriers are in; None if nothing waits."""
        barrier = self.barrier
        if barrier is None or self.triggered:
            return None
        return self._triggers_ns.get(barrier.checkpoint_id, self._first_ns) + self.config.alignment_timeout_ns

    def on_time(self, now_ns: int) -> bool:
        """Give the current checkpoint up if its deadline has come. Needs no data (protocol rule 11)."""
        deadline_ns = self.next_deadline_ns()
        if deadline_ns is None or now_ns < deadline_ns:
            return False
        assert self.barrier is not None
        self._give_up(self.barrier.checkpoint_id, Reason.EXPIRED)
        return True

    def check_timeout(self, now_ns: int) -> int | None:
        """For how long the current checkpoint has been under way, if that is its timeout or more; else None."""
        deadline_ns = self.next_deadline_ns()
        if deadline_ns is None or now_ns < deadline_ns:
            return None
        return now_ns - deadline_ns + self.config.alignment_timeout_ns

    # Questions.

    @property
    def has_released(self) -> bool:
        """Whether `drain_next` has something to give."""
        return bool(self._ready)

    def is_aligning(self) -> bool:
        """Whether a checkpoint is under way: from its first barrier until its snapshot is ended or it is given up."""
        return self.barrier is not None

    def aligned_input_count(self) -> int:
        """How many inputs have delivered the current checkpoint, closed ones among them; 0 between checkpoints."""
        return 0 if self.barrier is None else self.config.num_inputs - self._missing.bit_count()

    def buffered_event_count(self) -> int:
        """How many events are held or not released yet."""
        return sum(type(message) is Event for queue in self._queues.values() for message in queue)

    def buffered_bytes(self) -> int:
        """How many bytes are held or not released yet."""
        return self.config.max_buffer_memory_bytes - self._bytes_left

    def is_buffer_limit_exceeded(self) -> bool:
        """Whether no input could hold one byte more. Limits are kept, so nothing is ever really beyond one."""
        return self._bytes_left < 1 or any(len(queue) >= self._max_per_input for queue in self._queues.values())

    def is_blocked(self, input_id: int) -> bool:
        """Whether this input has delivered the current barrier.

        Raises
        ------
        InputIndexError
            If there is no such input.
        """
        if input_id not in self._queues:
            raise InputIndexError(input_id, self.config.num_inputs)
        return self._is_blocked(input_id)

    def _is_blocked(self, input_id: int) -> bool:
        return self.barrier is not None and bool(self._open & ~self._missing & 1 << input_id)

    def can_take(self, input_id: int) -> bool:
        """Whether this input may be read: it has not ended, and there is room for one message more.

        Raises
        ------
        InputIndexError
            If there is no such input.
        """
        if input_id not in self._queues:
            raise InputIndexError(input_id, self.config.num_inputs)
        return input_id in self._waits and len(self._queues[input_id]) < self._max_per_input

    def metrics(self) -> BarrierAlignerMetrics:
        """The document's counters."""
        held = self.buffered_event_count()
        return BarrierAlignerMetrics(
            self.alignments_completed,
            self.events_released + held,
            self.max_alignment_duration_ns,
            held,
            self.is_aligning(),
        )

    # Capture and restore.

    def capture(self) -> Hashable:
        """All that `restore` needs, as a value."""
        return (
            self.barrier,
            self.last_done,
            self.triggered,
            tuple(self.aborts),
            tuple(tuple(queue) for queue in self._queues.values()),
            tuple(self._waits),
            tuple(self._ready),
            tuple(self._blocked),
            self._open,
            self._missing,
            self._first_ns,
            tuple(sorted(self._triggers_ns.items())),
            (self.alignments_completed, self.events_released, self.max_alignment_duration_ns),
        )

    def restore(self, value: Hashable) -> None:
        """Be as the aligner of the same configuration was that gave `value`."""
        (
            self.barrier,
            self.last_done,
            self.triggered,
            aborts,
            queues,
            unended,
            ready,
            blocked,
            self._open,
            self._missing,
            self._first_ns,
            triggers,
            (self.alignments_completed, self.events_released, self.max_alignment_duration_ns),
        ) = value  # type: ignore[misc]
        self.aborts = list(aborts)  # type: ignore[has-type]
        self._queues = dict(enumerate(map(deque, queues)))  # type: ignore[has-type]
        self._ready = deque(ready)  # type: ignore[has-type]
        self._blocked = list(blocked)  # type: ignore[has-type]
        self._triggers_ns = dict(triggers)  # type: ignore[has-type]
        self._waits = {
            i: self._queues[i] if self._queues[i] or i in self._blocked else None
            for i in unended  # type: ignore[has-type]
        }
        self._controls = sum(type(message) is not Event for queue in self._queues.values() for message in queue)
        self._bytes_left = self.config.max_buffer_memory_bytes - self._held_bytes()

    def _held_bytes(self) -> int:
        size_of = self._size_of or default_size_of
        return sum(size_of(message) for queue in self._queues.values() for message in queue)
