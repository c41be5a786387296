"""The inputs of a task: which may be read, which wait, and what each buffers.

The core that every aligner owns and no aligner reaches around: it knows messages, and neither checkpoints nor time.
What an aligner decides - when an input is blocked, and when all of them go on - is in `impl.checkpoint.alignment`,
`impl.checkpoint.unaligned` and `impl.checkpoint.tracked`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import Final

from barrierlab.impl.errors import ClosedInputError, InputIndexError, LimitError, UnknownMessageError
from barrierlab.impl.messages import (
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
)
from barrierlab.impl.messages import size_of as default_size_of

KINDS: Final = frozenset((Event, Watermark, CheckpointBarrier, CancelBarrier, EndOfInput))


class Room(Enum):
    """The answer to a message that is to be buffered (protocol rule 7)."""

    ENOUGH = "it is buffered"
    INPUT_FULL = "its input buffers as many messages as it may"
    OUT_OF_BYTES = "all inputs together would buffer more bytes than they may"


_ENOUGH: Final = Room.ENOUGH


class InputBuffers:
    """The inputs of one task.

    An input is in `free`, or in `blocked`, or in `ready`, or its end has taken effect. Sets and dicts by index: one
    that is out of range, a negative one too, aliases no other (defect A-14). An aligner reads the fields; what changes
    several of them together is a method.

    Parameters
    ----------
    num_inputs : int
    max_messages : int
        How many messages one input may buffer.
    max_bytes : int
        How many bytes all of them together may buffer.
    size_of : callable
        The measure of a message in bytes.

    Attributes
    ----------
    free : set of int
        The inputs on which an event passes. Always the same set.
    blocked : set of int
        Those that wait behind a barrier.
    ready : deque of int
        Those that are not blocked and have messages to drain, in turn.
    queues : dict of int to deque
        The messages of each input that are buffered, or not drained yet.
    takes : dict of int to deque
        The queues of those inputs whose end has not come.
    open_count : int
        How many inputs there are whose end has not taken effect.
    bytes_left : int
        How many bytes more may be buffered.
    fast_limit : int
        How many events an input may buffer without a call of `add`: `max_messages`, or 0 if each must be looked at.
    """

    __slots__ = (
        "_control_count",
        "_is_measured_here",
        "blocked",
        "bytes_left",
        "fast_limit",
        "free",
        "max_bytes",
        "max_messages",
        "open_count",
        "queues",
        "ready",
        "size_of",
        "takes",
    )

    def __init__(
        self, num_inputs: int, max_messages: int, max_bytes: int, size_of: Callable[[StreamMessage], int]
    ) -> None:
        inputs = range(num_inputs)
        self.max_messages: int = max_messages
        self.max_bytes: int = max_bytes
        self.size_of = size_of
        self._is_measured_here = size_of is default_size_of  # an event's size is then read without a call
        self.free = set(inputs)
        self.blocked: set[int] = set()
        self.ready: deque[int] = deque()
        self.queues: dict[int, deque[StreamMessage]] = {i: deque() for i in inputs}
        self.takes = dict(self.queues)
        self.open_count: int = num_inputs
        self.bytes_left: int = max_bytes
        self._control_count = 0  # how many of the buffered messages are no events
        self.set_fast(True)

    def set_fast(self, is_fast: bool) -> None:
        """Allow or forbid that events are buffered without `add`: recording must see each event."""
        self.fast_limit = self.max_messages if is_fast and self._is_measured_here else 0

    # Messages in.

    def check_open(self, input_id: int, message: StreamMessage) -> None:
        """Raise unless this input exists and is open.

        Raises
        ------
        InputIndexError
            If there is no such input.
        ClosedInputError
            If its end has come.
        """
        if input_id not in self.takes:
            raise self._why_not(input_id, message)

    def _why_not(self, input_id: int, message: StreamMessage) -> ClosedInputError | InputIndexError:
        if input_id in self.queues:
            return ClosedInputError(input_id, message)
        return InputIndexError(input_id, len(self.queues))

    def add(self, input_id: int, message: StreamMessage) -> Room:
        """Buffer `message` on its input, unless that exceeds a limit (protocol rule 7).

        Raises
        ------
        InputIndexError, ClosedInputError
            As `check_open`. Nothing changes.
        UnknownMessageError
            If `message` is none of the five kinds. Nothing changes.
        """
        queue = self.takes.get(input_id)
        if queue is None:
            raise self._why_not(input_id, message)
        if type(message) not in KINDS:
            raise UnknownMessageError(message)
        if len(queue) >= self.max_messages:
            return Room.INPUT_FULL
        left = self.bytes_left - self.size_of(message)
        if left < 0:
            return Room.OUT_OF_BYTES
        queue.append(message)
        self.bytes_left = left
        if type(message) is not Event:
            self._control_count += 1
            if type(message) is EndOfInput:
                del self.takes[input_id]
        return _ENOUGH

    # Messages out.

    def pop_next(self) -> tuple[int, StreamMessage]:
        """Take one message of the next input, round robin (protocol rule 8). `ready` must not be empty."""
        input_id = self.ready.popleft()
        queue = self.queues[input_id]
        message = queue.popleft()
        if type(message) is Event:
            self.bytes_left += message.size_bytes if self._is_measured_here else self.size_of(message)
        else:
            self.bytes_left += self.size_of(message)
            self._control_count -= 1
        if queue:
            self.ready.append(input_id)
        elif type(message) is not EndOfInput:
            self.free.add(input_id)
        return input_id, message

    def pop_runs(self) -> list[tuple[int, deque[StreamMessage]]]:
        """Take all that may drain as whole queues, if events alone are buffered; otherwise nothing."""
        if self._control_count:
            return []
        runs = [(input_id, self.queues[input_id]) for input_id in self.ready]
        self.ready.clear()
        for input_id, _ in runs:
            self.queues[input_id] = self.takes[input_id] = deque()
            self.free.add(input_id)
        self.bytes_left = self.max_bytes - self._measure()
        return runs

    # Which may be read.

    def block(self, input_id: int) -> bool:
        """Block this input; what it has still to drain is behind its barrier, or overtaken by it.

        Returns
        -------
        bool
            Whether every input whose end has not taken effect waits now.
        """
        blocked = self.blocked
        blocked.add(input_id)
        self.free.discard(input_id)
        if self.ready and input_id in self.ready:
            self.ready.remove(input_id)
        return len(blocked) >= self.open_count

    def unblock_all(self) -> None:
        """Unblock every input; what they buffered is drained from now on, round robin."""
        queues, blocked = self.queues, self.blocked
        for input_id in blocked:
            if queues[input_id]:
                break
        else:  # nothing is buffered: they are free, all at once
            self.free |= blocked
            blocked.clear()
            return
        buffering = sorted([input_id for input_id in blocked if queues[input_id]])
        self.ready.extend(buffering)
        self.free.update(blocked.difference(buffering))
        blocked.clear()

    def close(self, input_id: int) -> None:
        """Close this input: its end was processed."""
        self.open_count -= 1
        self.free.discard(input_id)
        self.takes.pop(input_id, None)

    def close_all(self, ended: Iterable[int]) -> None:
        """Close inputs that ended before this task began.

        Raises
        ------
        InputIndexError, LimitError
            If one is none, or is named twice. Nothing changes.
        """
        closed = tuple(ended)
        if len(set(closed)) < len(closed):
            raise LimitError("ended", closed, "each input once")
        for input_id in closed:
            if input_id not in self.takes:
                raise InputIndexError(input_id, len(self.queues))
        for input_id in closed:
            self.close(input_id)

    # Questions.

    def check_index(self, input_id: int) -> None:
        """Raise if there is no such input.

        Raises
        ------
        InputIndexError
        """
        if input_id not in self.queues:
            raise InputIndexError(input_id, len(self.queues))

    def can_take(self, input_id: int) -> bool:
        """Return whether there is room for one message more on this input, whose end has not come."""
        self.check_index(input_id)
        return input_id in self.takes and len(self.queues[input_id]) < self.max_messages

    def has_barrier(self, input_id: int) -> bool:
        """Return whether this input buffers a barrier."""
        return bool(self._control_count) and any(type(each) is CheckpointBarrier for each in self.queues[input_id])

    def is_full(self) -> bool:
        """Return whether a limit is reached: not one byte more, or an input full."""
        return self.bytes_left < 1 or any(len(queue) >= self.max_messages for queue in self.queues.values())

    def event_count(self) -> int:
        """Return how many events are buffered or not drained yet."""
        return sum(type(message) is Event for queue in self.queues.values() for message in queue)

    def _measure(self) -> int:
        return sum(self.size_of(message) for queue in self.queues.values() for message in queue)

    # Capture and restore.

    def capture(self) -> tuple[Hashable, ...]:
        """Return the state as a value for `restore`."""
        return (
            tuple(tuple(queue) for queue in self.queues.values()),
            tuple(sorted(self.free)),
            tuple(sorted(self.blocked)),
            tuple(self.ready),
            tuple(sorted(self.takes)),
            self.open_count,
        )

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        queues, free, blocked, ready, takes, self.open_count = value  # type: ignore[misc]
        self.queues = dict(enumerate(map(deque, queues)))  # type: ignore[has-type]
        self.free.clear()  # in place: a gate looks into it
        self.free.update(free)  # type: ignore[has-type]
        self.blocked = set(blocked)  # type: ignore[has-type]
        self.ready = deque(ready)  # type: ignore[has-type]
        self.takes = {i: self.queues[i] for i in takes}  # type: ignore[has-type]
        self._control_count = sum(type(message) is not Event for queue in self.queues.values() for message in queue)
        self.bytes_left = self.max_bytes - self._measure()
