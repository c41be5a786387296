"""What a timed channel is, and the simpler of its two forms.

A channel is a queue of buffers at the sender, a link, a queue of buffers at the receiver, with credit between. The
sender asks `accepts` and calls `push`; the receiver is told `on_arrival`, asks `readable`, takes a buffer's messages
with `open`, and says `close` when it has taken the last of them. `SpscChannel` here is the documents' queue;
`sim.network` has the form with buffers and credit.

Invariant: a channel is first in, first out and loses nothing. No clock here: what takes time asks the `Clock`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from impl import StreamMessage

Chunk = list[StreamMessage]


class Clock(Protocol):
    """What a channel asks of the engine: the time, and to be called later. Integer nanoseconds."""

    now: int

    def after(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Call `action` once, `delay_ns` from now."""


class Channel(Protocol):
    """What nodes ask of a channel, whatever its form."""

    on_arrival: Callable[[], None]

    def accepts(self, message: StreamMessage) -> bool:
        """Whether `push` may be called with `message` now."""

    def push(self, message: StreamMessage) -> None:
        """Put `message` behind all that was pushed before."""

    def flush(self) -> None:
        """The flush timer: what waits for company may leave."""

    def readable(self) -> bool:
        """Whether the receiver may open a buffer."""

    def open(self) -> Chunk:
        """The next buffer's messages, in order."""

    def close(self) -> None:
        """The last message of the opened buffer has been taken."""

    def resume(self) -> None:
        """The receiver goes on reading behind a barrier."""


def nobody() -> None:
    """Nobody listens."""


class SpscChannel:
    """The documents' single-producer single-consumer queue: bounded, one message a buffer; a full one holds its sender.

    `latency` draws the nanoseconds until the receiver sees a message; messages keep their order (F-STREAM-002, as
    F-DCKP-001 uses it).
    """

    __slots__ = ("_clock", "_due_ns", "_in_transit", "_latency", "capacity", "on_arrival", "on_room", "queue")

    def __init__(self, capacity: int, clock: Clock, latency: Callable[[], int] | None = None) -> None:
        self.capacity = capacity
        self.queue: deque[StreamMessage] = deque()
        self.on_arrival: Callable[[], None] = nobody
        self.on_room: Callable[[], None] = nobody
        self._clock, self._latency = clock, latency
        self._in_transit = 0
        self._due_ns = 0

    def accepts(self, message: StreamMessage) -> bool:
        """Whether `push` may be called now."""
        return len(self.queue) + self._in_transit < self.capacity

    def push(self, message: StreamMessage) -> None:
        """Put `message` in. The caller has asked `accepts`."""
        if self._latency is None:
            self.queue.append(message)
            self.on_arrival()
        else:
            self._in_transit += 1
            self._due_ns = max(self._due_ns, self._clock.now + self._latency())
            self._clock.after(self._due_ns - self._clock.now, lambda: self._arrive(message))

    def _arrive(self, message: StreamMessage) -> None:
        self._in_transit -= 1
        self.queue.append(message)
        self.on_arrival()

    def readable(self) -> bool:
        """Whether a message is there."""
        return bool(self.queue)

    def open(self) -> Chunk:
        """The next buffer: one message."""
        message = self.queue.popleft()
        self.on_room()
        return [message]

    def close(self) -> None:
        """The buffer that was opened has been read to its end."""

    def resume(self) -> None:
        """Nothing stops behind a barrier here: the queue fills up."""

    def flush(self) -> None:
        """Nothing waits for company here."""

    @property
    def queued(self) -> int:
        return len(self.queue) + self._in_transit
