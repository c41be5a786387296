"""Timed channels, and the simpler of their two forms.

A channel is a queue of buffers at the sender, a link, a queue of buffers at the receiver, with credit between. The
sender calls `push`, which refuses what finds no room; the receiver gets `on_arrival`, asks `readable`, takes a buffer's
messages with `open`, and says `close` when it has taken the last of them. `SpscChannel` here is the documents' queue;
`sim.channels.network` has the form with buffers and credit.

Invariant: a channel is first in, first out and loses nothing. What takes time asks the `Clock`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from barrierlab.impl import CheckpointBarrier, Event, StreamMessage
from barrierlab.sim.core.clock import Clock

MessageChunk = list[StreamMessage]


class Channel(Protocol):
    """The channel as nodes use it, in either form."""

    on_arrival: Callable[[], None]
    on_overtaking: Callable[[], None]
    on_departure: Callable[[int], None]
    on_announcement: Callable[[CheckpointBarrier], None]
    opened_bytes: int
    goes_on: bool

    def accepts(self, message: StreamMessage) -> bool:
        """Return whether `push` has room for `message` now."""

    def push(self, message: StreamMessage) -> bool:
        """Put `message` behind all that was pushed before; return False, and do nothing, if `accepts` does."""

    def restored_in_flight(self, messages: Iterable[StreamMessage]) -> None:
        """Put back what was in flight, after a restart: it is at the receiver, ahead of all that will be pushed."""

    @property
    def queued(self) -> int:
        """Messages that were pushed, and not handed to the receiver's reader yet."""

    def flush(self) -> None:
        """Flush, by the timer: what waits for company may leave."""

    def readable(self) -> bool:
        """Return whether the receiver may open a buffer."""

    def in_transit(self) -> bool:
        """Return whether something is on the link, either way."""

    def open(self) -> MessageChunk:
        """The next buffer's messages, in order."""

    def close(self) -> None:
        """Note that the last message of the opened buffer has been taken."""

    def resume(self) -> None:
        """Note that the receiver goes on reading behind a barrier."""

    def overtake(self, barrier: CheckpointBarrier) -> list[Event]:
        """Send `barrier` past all that lies here; the events that it passed at the sender."""

    def prioritise_barrier(self, barrier: CheckpointBarrier) -> list[Event] | None:
        """Send `barrier` past all in the place of the one of its id; None unless that still lies at the sender."""

    def prioritise_received(self, barrier: CheckpointBarrier) -> bool:
        """Let `barrier` pass all in the place of the one of its id; return whether that lay at the receiver."""

    def take_overtaking(self, unread: MessageChunk) -> tuple[CheckpointBarrier, list[Event]]:
        """Return the barrier that has overtaken, and the events it has passed at the receiver: still to be taken.

        `unread` is what the reader has opened and not taken yet.
        """


def nobody() -> None:
    """Do nothing: nobody listens."""


def no_matter(what: object) -> None:
    """Do nothing: nobody waits for a barrier."""


class Overtakers:
    """The barriers that have overtaken at a receiver, each with the place up to which it has passed messages.

    A place is a count of all messages that were put before the reader; what comes after it is behind the barrier,
    however late the task gets to handle it.
    """

    __slots__ = ("_passed", "opened")

    def __init__(self) -> None:
        self._passed: deque[tuple[CheckpointBarrier, int]] = deque()
        self.opened = 0  # messages handed to the reader so far

    def put(self, barrier: CheckpointBarrier, queued: int) -> None:
        """`barrier` has passed the next `queued` messages that the reader will open, and all opened before."""
        self._passed.append((barrier, self.opened + queued))

    def take(self, unread: MessageChunk, queued: MessageChunk) -> tuple[CheckpointBarrier, list[Event]]:
        """The oldest barrier, and the events of `unread` and `queued` that it has passed."""
        barrier, place = self._passed.popleft()
        passed = [*unread, *queued][: place - (self.opened - len(unread))]
        return barrier, [message for message in passed if type(message) is Event]


class SpscChannel:
    """The documents' single-producer single-consumer queue: bounded, one message a buffer; a full one holds its sender.

    `latency` draws the nanoseconds until the receiver sees a message; messages keep their order (F-STREAM-002, as
    F-DCKP-001 uses it).

    Attributes
    ----------
    queue : deque of StreamMessage
        Always the same one.
    held : int
        Places that are taken though nothing is in the queue: by what is on its way, or has left early.
    overtakers : Overtakers
    """

    opened_bytes = 0  # nobody measures what is read here
    goes_on = False  # a message is read whole

    __slots__ = (
        "_clock",
        "_due_ns",
        "_in_transit",
        "_latency",
        "_prioritised",
        "capacity",
        "held",
        "on_announcement",
        "on_arrival",
        "on_departure",
        "on_overtaking",
        "on_room",
        "overtakers",
        "queue",
    )

    def __init__(self, capacity: int, clock: Clock, latency: Callable[[], int] | None = None) -> None:
        self.capacity = capacity
        self.queue: deque[StreamMessage] = deque()
        self.on_arrival: Callable[[], None] = nobody
        self.on_overtaking: Callable[[], None] = nobody
        self.on_departure: Callable[[int], None] = no_matter
        self.on_announcement: Callable[[CheckpointBarrier], None] = no_matter
        self.overtakers = Overtakers()
        self.on_room: Callable[[], None] = nobody
        self._clock, self._latency = clock, latency
        self._in_transit: deque[StreamMessage] = deque()
        self.held = 0
        self._prioritised: set[int] = set()  # barriers that left their place in the queue, and hold it until taken
        self._due_ns = 0

    @property
    def is_direct(self) -> bool:
        """Return whether a message is at the receiver as soon as it is pushed, by the methods of this very class."""
        return self._latency is None and type(self) is SpscChannel

    def accepts(self, message: StreamMessage) -> bool:
        """Return whether there is room."""
        return len(self.queue) + self.held < self.capacity

    def push(self, message: StreamMessage) -> bool:
        """Put `message` in, if there is room."""
        if len(self.queue) + self.held >= self.capacity:
            return False
        if self._latency is None:
            self.queue.append(message)
            self.on_arrival()
        else:
            self._in_transit.append(message)
            self.held += 1
            self._due_ns = max(self._due_ns, self._clock.now + self._latency())
            self._clock.after(self._due_ns - self._clock.now, self._arrive)
        return True

    def restored_in_flight(self, messages: Iterable[StreamMessage]) -> None:
        """Put what was in flight into the queue, however much it is: the sender waits until there is room again."""
        self.queue.extend(messages)
        if self.queue:
            self.on_arrival()

    def _arrive(self) -> None:
        self.held -= 1
        self.queue.append(self._in_transit.popleft())
        self.on_arrival()

    def in_transit(self) -> bool:
        """Return whether a message is on its way."""
        return bool(self._in_transit)

    def readable(self) -> bool:
        """Return whether a message is there."""
        return bool(self.queue)

    def open(self) -> MessageChunk:
        """The next buffer: one message."""
        return [self.take()]

    def take(self) -> StreamMessage:
        """The next message."""
        message = self.queue.popleft()
        self.overtakers.opened += 1
        if type(message) is CheckpointBarrier:
            self.on_departure(message.checkpoint_id)
        self.on_room()
        return message

    def close(self) -> None:
        """Note that the buffer that was opened has been read to its end."""

    def resume(self) -> None:
        """Do nothing, as nothing stops behind a barrier here: the queue fills up."""

    def flush(self) -> None:
        """Do nothing: no message waits for company here."""

    @property
    def queued(self) -> int:
        return len(self.queue) + len(self._in_transit)

    # Overtaking: the whole queue is the receiver's side, and what is on its way is before the barrier, too.

    def overtake(self, barrier: CheckpointBarrier) -> list[Event]:
        """Show `barrier` to the receiver at once; the sender has nothing of its own that it passed."""
        self.overtakers.put(barrier, len(self.queue) + len(self._in_transit))
        self.on_overtaking()
        return []

    def prioritise_barrier(self, barrier: CheckpointBarrier) -> list[Event] | None:
        """Return None: nothing lies at the sender."""
        return None

    def prioritise_received(self, barrier: CheckpointBarrier) -> bool:
        """Let `barrier` pass what is before the barrier of its id in the queue."""
        for place, message in enumerate(self.queue):
            if type(message) is CheckpointBarrier and message.checkpoint_id == barrier.checkpoint_id:
                del self.queue[place]
                self.overtakers.put(barrier, place)
                self._prioritised.add(barrier.checkpoint_id)
                self.held += 1
                self.on_departure(barrier.checkpoint_id)
                self.on_overtaking()
                return True
        return False

    def take_overtaking(self, unread: MessageChunk) -> tuple[CheckpointBarrier, list[Event]]:
        """Return the barrier that has overtaken, and what it has passed."""
        barrier, passed = self.overtakers.take(unread, [*self.queue, *self._in_transit])
        if barrier.checkpoint_id in self._prioritised:
            self._prioritised.remove(barrier.checkpoint_id)
            self.held -= 1
            self.on_room()
        return barrier, passed
