"""The network form of a channel: buffers out of a pool, credit, flush timer, as in Apache Flink.

A sender's channels of one exchange share a pool of buffers of a segment's size; to end a step that it has begun, a
task may overdraw the pool (FLINK-26762). On a remote link the receiver has
exclusive buffers for each channel and floating ones for its gate, and a buffer leaves the sender only against a credit
for one of them. Barriers and ends need neither buffer nor credit; a barrier or a watermark ends the buffer before it. A
full buffer is noticed when the next one is begun or the flush timer fires; partial ones leave when it fires. Where a
barrier's channel is to wait, its sender stops behind the barrier until the receiver resumes it.

Where records span, one that does not fit into what is left of a buffer goes on in the next, and may be larger than a
segment; it is the receiver's when its last byte is. A record that finds no buffer to go on in stops its task. A gate
that debloats says how large its channels' next buffers are to be (`sim.channels.debloat`); a record that begins in one
gets all of it there that a segment holds, whatever the size asked for.

Source: Apache Flink, `PipelinedSubpartition`, `BufferWritingResultPartition`, `LocalBufferPool`, `RemoteInputChannel`,
`BufferManager`; "Network memory tuning guide". Departure: unless they span, a record is not split over two buffers, so
none may be larger than a segment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from barrierlab.impl import CheckpointBarrier, Event, StreamMessage, Watermark, size_of
from barrierlab.sim.channels.spsc import MessageChunk, Overtakers, no_matter, nobody
from barrierlab.sim.core.clock import Clock

# What holds a received chunk.
NO_BUFFER: Final = 0
EXCLUSIVE: Final = 1
FLOATING: Final = 2


class BufferPool:
    """The buffers that the channels of one task and exchange share.

    Available while a buffer is free and no channel has as many as it may have. A step that has begun gets a buffer
    whether or not its channel has many, and `overdraft` more than there are: `free` is below zero then.

    Source: Apache Flink, `LocalBufferPool.requestMemorySegment`.
    """

    __slots__ = ("at_most", "free", "on_room", "overdraft", "size", "unwritten")

    def __init__(self, size: int, overdraft: int = 0) -> None:
        self.size = self.free = size
        self.overdraft = overdraft
        self.at_most = 0
        self.on_room: Callable[[], None] = nobody
        self.unwritten: NetworkChannel | None = None  # it has begun a record, and waits for a buffer to go on in

    def available(self) -> bool:
        """Return whether a task may take its next message: it asks, so that it need not stop in the middle of one."""
        return self.free > 0 and self.at_most == 0

    def grants(self) -> bool:
        """Return whether a step that has begun gets one more buffer."""
        return self.free > -self.overdraft


class Buffer:
    """A segment being filled, sent or read: the messages that end in it, and its bytes.

    `start` and `sent` are how far it has been read, in messages and in bytes; `readers` who still reads it. `goes_on`
    says that behind the last message is a part of one that ends in another buffer.
    """

    __slots__ = ("capacity", "finished", "goes_on", "messages", "needs_segment", "readers", "sent", "size", "start")

    def __init__(self, needs_segment: bool, capacity: int = 0) -> None:
        self.messages: MessageChunk = []
        self.capacity = capacity
        self.size = self.sent = 0
        self.start = 0
        self.readers = 0
        self.finished = self.goes_on = False
        self.needs_segment = needs_segment

    def unsent(self) -> bool:
        """Return whether something was written that has not left."""
        return self.start < len(self.messages) or self.sent < self.size


class NetworkChannel:
    """One channel of the network form: its subpartition at the sender, and its input channel at the receiver.

    Parameters
    ----------
    pool : BufferPool
        The sender's pool, shared with the exchange's other channels of this sender.
    segment_bytes, most_buffers : int
        Size of a buffer; with how many buffers of the pool this channel makes it unavailable.
    gate : ReceiverPool or None
        The receiver's floating buffers; None on a local channel, which is read from the sender's buffers directly.
    exclusive : int
        Receiver buffers of this channel's own.
    latency : callable or None
        Draws the nanoseconds that a buffer, a credit or a resumption takes one way. None takes no time. What is sent in
        one direction arrives in order.
    barrier_latency : callable or None
        Draws the nanoseconds that a barrier, its argument, takes beyond that, which come from the tasks: to take part
        in a checkpoint is more work than to pass on a buffer. None takes no longer than a buffer.
    ns_per_byte : float
        Transfer time of the link.
    stops_behind_barriers : bool
        Whether nothing leaves behind a barrier until `resume`.
    spans : bool
        Whether a record may go on in the next buffer.

    Attributes
    ----------
    opened_bytes : int
        Bytes of the buffer that was opened last.
    goes_on : bool
        Whether a part of one more record is in it, behind the last message.
    """

    __slots__ = (
        "_arrives_ns",
        "_barrier_latency",
        "_clock",
        "_desired_bytes",
        "_flush",
        "_free_exclusive",
        "_free_floating",
        "_gate",
        "_latency",
        "_line_free_ns",
        "_most_buffers",
        "_opened",
        "_overtakers",
        "_pool",
        "_received",
        "_required",
        "_rest",
        "_returns_ns",
        "_segment_bytes",
        "_spans",
        "_stopped",
        "_stops",
        "_subpartition",
        "_used",
        "credit",
        "exclusive",
        "goes_on",
        "ns_per_byte",
        "on_announcement",
        "on_arrival",
        "on_departure",
        "on_overtaking",
        "opened_bytes",
        "waiting_for_floating",
    )

    def __init__(
        self,
        pool: BufferPool,
        segment_bytes: int,
        most_buffers: int,
        clock: Clock,
        gate: ReceiverPool | None = None,
        exclusive: int = 2,
        latency: Callable[[], int] | None = None,
        ns_per_byte: float = 0.0,
        stops_behind_barriers: bool = False,
        barrier_latency: Callable[[CheckpointBarrier], int] | None = None,
        spans: bool = False,
    ) -> None:
        self._pool, self._segment_bytes, self._most_buffers, self._clock = pool, segment_bytes, most_buffers, clock
        self._gate, self._latency, self.ns_per_byte = gate, latency, ns_per_byte
        self._barrier_latency = barrier_latency
        self._subpartition: deque[Buffer] = deque()
        self._used = 0
        self._flush = False
        self._stops, self._stopped = stops_behind_barriers, False
        self._spans, self._desired_bytes = spans, segment_bytes
        self._rest: Any = None  # a message that is not written whole, and its bytes to come: `_write` changes it
        # With what holds it, its bytes, and whether a part of one more record is behind.
        self._received: deque[tuple[MessageChunk, int, int, bool]] = deque()
        self.opened_bytes, self.goes_on = 0, False
        self._opened: Buffer | int = NO_BUFFER
        self.exclusive = exclusive
        self.credit = self._free_exclusive = exclusive
        self._free_floating = 0
        self._required = exclusive
        self._line_free_ns = self._arrives_ns = self._returns_ns = 0
        self.waiting_for_floating = False
        self._overtakers = Overtakers()
        self.on_arrival: Callable[[], None] = nobody
        self.on_overtaking: Callable[[], None] = nobody
        self.on_departure: Callable[[int], None] = no_matter
        self.on_announcement: Callable[[CheckpointBarrier], None] = no_matter

    # The sender's side.

    def accepts(self, message: StreamMessage) -> bool:
        """Return whether `push` may be called now: the message needs no segment, or finds room in one."""
        if type(message) is not Event and type(message) is not Watermark:
            return True
        tail = self._tail()
        if self._spans:
            return tail is not None or self._pool.grants()
        if tail is not None and tail.size + size_of(message) <= self._segment_bytes:
            return True
        return self._pool.grants()

    def push(self, message: StreamMessage) -> bool:
        """Write `message` behind all that was written before, if it needs no segment or finds room in one."""
        kind = type(message)
        if kind is Event or kind is Watermark:
            size = size_of(message)
            tail = self._tail()
            if self._spans:
                if tail is None and not self._pool.grants():
                    return False
                self._write(self._request(size) if tail is None else tail, message, size)
                return True
            if tail is not None and tail.size + size > self._segment_bytes:
                if not self._pool.grants():
                    return False
                self._finish(tail)
                tail = None
            elif tail is None and not self._pool.grants():
                return False
            if tail is None:
                tail = self._request(size)
            tail.messages.append(message)
            tail.size += size
            if kind is Watermark:
                self._finish(tail)
                self._offer()
            elif tail.size >= self._segment_bytes:
                self._finish(tail)
            return True
        tail = self._tail()
        if tail is not None:
            self._finish(tail)
        event = Buffer(needs_segment=False)
        event.messages.append(message)
        event.finished = True
        self._subpartition.append(event)
        self._offer()
        return True

    def _write(self, tail: Buffer, message: StreamMessage, left: int) -> None:
        """Write the last `left` bytes of `message` from `tail` on, as far as there are buffers.

        Where the pool has none to offer, the last buffer grows beyond the size asked for: Apache Flink,
        `BufferWritingResultPartition.append`.
        """
        pool = self._pool
        while True:
            room = tail.capacity - tail.size
            if left >= room and not pool.available():
                tail.capacity = min(self._segment_bytes, tail.capacity + left - room + 1)
                room = tail.capacity - tail.size
            part = min(left, room)
            tail.size += part
            left -= part
            if left == 0:
                tail.messages.append(message)
            tail.goes_on = left > 0
            is_flushed = left == 0 and type(message) is Watermark
            if is_flushed or tail.size >= tail.capacity:
                self._finish(tail)
            if left == 0:
                if is_flushed:
                    self._offer()
                return
            if not pool.grants():
                self._rest, pool.unwritten = (message, left), self
                return
            tail = self._request(left)

    def write_on(self) -> bool:
        """Go on with the message that is not written whole; whether it is now."""
        assert self._rest is not None
        if not self._pool.grants():
            return False
        (message, left), self._rest = self._rest, None
        self._pool.unwritten = None
        self._write(self._request(left), message, left)
        return self._rest is None

    def resize(self, buffer_bytes: int) -> None:
        """Set the size of buffers that the receiver asks for from now on; one that is being filled keeps its own."""
        if self._gate is None:
            self.starts_with(buffer_bytes)
        else:
            self._tell_sender(lambda: self.starts_with(buffer_bytes))

    def starts_with(self, buffer_bytes: int) -> None:
        """Set the size that buffers have until the receiver asks for another."""
        self._desired_bytes = buffer_bytes

    def restored_in_flight(self, messages: Iterable[StreamMessage]) -> None:
        """Put what was in flight ahead of all, in chunks of a segment's size that take neither buffer nor credit.

        Apache Flink, `RecoveredInputChannel`: it has buffers of its own.
        """
        chunks: list[MessageChunk] = []
        room = 0
        for message in messages:
            size = size_of(message)
            if not chunks or size > room:
                chunks.append([])
                room = self._segment_bytes
            chunks[-1].append(message)
            room -= size
        for chunk in chunks:
            if self._gate is not None:
                self._received.append((chunk, NO_BUFFER, sum(map(size_of, chunk)), False))
            else:
                buffer = Buffer(needs_segment=False)
                buffer.messages, buffer.finished = chunk, True
                self._subpartition.append(buffer)
        if chunks:
            self.on_arrival()

    def flush(self) -> None:
        """Flush, by the timer: what has been written may leave although its buffer is not full."""
        if self._subpartition and not self._flush:
            tail = self._subpartition[-1]
            if len(self._subpartition) > 1 or tail.unsent():
                self._flush = True
                self._offer()

    def _tail(self) -> Buffer | None:
        """Return the buffer that is being filled."""
        if self._subpartition:
            tail = self._subpartition[-1]
            if not tail.finished:
                return tail
        return None

    def _request(self, size: int) -> Buffer:
        """Begin a buffer with something of which so many bytes are to be written."""
        pool = self._pool
        pool.free -= 1
        self._used += 1
        if self._used == self._most_buffers:
            pool.at_most += 1
        buffer = Buffer(True, min(self._segment_bytes, max(self._desired_bytes, size)))
        self._subpartition.append(buffer)
        if len(self._subpartition) > 1:
            self._offer()  # the buffer before it is full
        return buffer

    def _recycle(self, buffer: Buffer) -> None:
        """Put a buffer back into the pool, once it is written, sent and read whole."""
        if not buffer.needs_segment or not buffer.finished or buffer.readers or buffer.unsent():
            return
        buffer.needs_segment = False
        if self._used == self._most_buffers:
            self._pool.at_most -= 1
        self._used -= 1
        self._pool.free += 1
        self._pool.on_room()

    def _finish(self, tail: Buffer) -> None:
        tail.finished = True
        if not tail.unsent():  # all of it left in flushes
            self._subpartition.pop()
            self._recycle(tail)

    def _sendable(self) -> bool:
        """Return whether the head may leave, credit apart."""
        if not self._subpartition or self._stopped:
            return False
        head = self._subpartition[0]
        return head.finished or (self._flush and head.unsent())

    def _offer(self) -> None:
        """Send what may be sent; a local receiver is notified and fetches it itself."""
        if self._gate is None:
            if self._sendable():
                self.on_arrival()
            return
        while self._sendable() and (self.credit > 0 or not self._subpartition[0].needs_segment):
            self._send()

    def _slice(self) -> tuple[MessageChunk, Buffer, int]:
        """Take what the head holds that has not left: the messages, their buffer, and the bytes."""
        head = self._subpartition[0]
        if len(self._subpartition) == 1:
            self._flush = False
        chunk = head.messages[head.start :] if head.start else list(head.messages)
        size = head.size - head.sent
        head.start, head.sent = len(head.messages), head.size
        if head.finished:
            self._subpartition.popleft()
        if chunk and type(chunk[0]) is CheckpointBarrier:
            self._stopped = self._stops
            self.on_departure(chunk[0].checkpoint_id)
        return chunk, head, size

    def overtake(self, barrier: CheckpointBarrier) -> list[Event]:
        """Send `barrier` past all that lies here. Like any barrier it ends the buffer that is being filled.

        Returns
        -------
        list of Event
            What it passed at the sender; on a local channel all that is queued is the receiver's.
        """
        tail = self._tail()
        if tail is not None:
            self._finish(tail)
        passed = self._send_ahead(barrier, self._subpartition)
        self._offer()
        return passed

    def _send_ahead(self, barrier: CheckpointBarrier, of: Iterable[Buffer]) -> list[Event]:
        """Send `barrier` past these buffers, without buffer or credit; the events in them that are the sender's."""
        if self._gate is None:
            self._overtakers.put(barrier, sum(len(buffer.messages) - buffer.start for buffer in of))
            self.on_overtaking()
            return []
        passed = _events(of)
        due_ns = max(self._line_free_ns, self._clock.now) + self._on_the_way(barrier)
        self._arrives_ns = max(self._arrives_ns, due_ns)
        if self._arrives_ns == self._clock.now:
            self._receive_overtaking(barrier)
        else:
            self._clock.after(self._arrives_ns - self._clock.now, lambda: self._receive_overtaking(barrier))
        return passed

    def prioritise_barrier(self, barrier: CheckpointBarrier) -> list[Event] | None:
        """Turn the barrier of this id into `barrier`, which overtakes, if it has not left yet (FLINK-27251).

        Returns
        -------
        list of Event or None
            What it passed at the sender; None if it has left.
        """
        ahead = self._take_barrier(barrier.checkpoint_id)
        if ahead is None:
            return None
        self.on_departure(barrier.checkpoint_id)
        return self._send_ahead(barrier, ahead)

    def _take_barrier(self, checkpoint_id: int) -> list[Buffer] | None:
        """Take the barrier's buffer out; the buffers ahead of it."""
        for place, buffer in enumerate(self._subpartition):
            message = None if buffer.needs_segment else buffer.messages[0]
            if type(message) is CheckpointBarrier and message.checkpoint_id == checkpoint_id:
                del self._subpartition[place]
                return list(self._subpartition)[:place]
        return None

    def resume(self) -> None:
        """Note that the receiver goes on reading behind the barrier."""
        if self._stopped:
            self._tell_sender(self._go_on)

    def _tell_sender(self, action: Callable[[], None]) -> None:
        """`action` at the sender, after the way back."""
        if self._latency is None:
            action()
            return
        self._returns_ns = max(self._returns_ns, self._clock.now + self._latency())
        self._clock.after(self._returns_ns - self._clock.now, action)

    def _go_on(self) -> None:
        self._stopped = False
        self._offer()

    def _backlog(self) -> int:
        """Return how many buffers the sender has in store, as it tells the receiver."""
        if self._stopped or not self._subpartition:
            return 0
        stored = sum(buffer.needs_segment for buffer in self._subpartition)
        return stored if self._flush or not self._subpartition[-1].needs_segment else max(stored - 1, 0)

    def buffers_in_use(self) -> int:
        """Return how many buffers wait to be read, at the receiver and, as far as it has heard, at the sender.

        Apache Flink, `InputChannel.getBuffersInUseCount`.
        """
        if self._gate is None:
            return len(self._subpartition)
        return len(self._received) + max(0, self._required - self.exclusive)

    def _on_the_way(self, message: StreamMessage | None) -> int:
        """Return how long a buffer that begins with `message` takes to the receiver, in nanoseconds, transfer apart."""
        way_ns = 0 if self._latency is None else self._latency()
        if self._barrier_latency is not None and type(message) is CheckpointBarrier:
            way_ns += self._barrier_latency(message)
        return way_ns

    def _send(self) -> None:
        takes_buffer = self._subpartition[0].needs_segment
        chunk, head, size = self._slice()
        goes_on = head.goes_on
        if takes_buffer:
            self.credit -= 1
        self._recycle(head)
        backlog = self._backlog()
        now_free = max(self._line_free_ns, self._clock.now)
        self._line_free_ns = now_free + round((size if takes_buffer else sum(map(size_of, chunk))) * self.ns_per_byte)
        if self._latency is None and self._barrier_latency is None and self._line_free_ns == self._clock.now:
            self._receive(chunk, takes_buffer, backlog, size, goes_on)
            return
        due_ns = self._line_free_ns + self._on_the_way(chunk[0] if chunk else None)
        self._arrives_ns = max(self._arrives_ns, due_ns)
        self._clock.after(
            self._arrives_ns - self._clock.now, lambda: self._receive(chunk, takes_buffer, backlog, size, goes_on)
        )

    # The receiver's side.

    def _receive(self, chunk: MessageChunk, takes_buffer: bool, backlog: int, size: int, goes_on: bool) -> None:
        holder = NO_BUFFER
        if takes_buffer:
            if self._free_floating:
                self._free_floating -= 1
                holder = FLOATING
            else:
                self._free_exclusive -= 1
                holder = EXCLUSIVE
        self._received.append((chunk, holder, size, goes_on))
        self._required = backlog + self.exclusive
        gate = self._gate
        assert gate is not None
        while self.needs_floating() and not self.waiting_for_floating:
            if gate.floating == 0:
                gate.wait(self)
                break
            gate.floating -= 1
            self.grant_floating()
        self.on_arrival()
        if chunk and type(chunk[0]) is CheckpointBarrier:
            self.on_announcement(chunk[0])

    def _receive_overtaking(self, barrier: CheckpointBarrier) -> None:
        self._overtakers.put(barrier, sum(len(chunk) for chunk, *_ in self._received))
        self.on_overtaking()

    def prioritise_received(self, barrier: CheckpointBarrier) -> bool:
        """Let `barrier` pass what was received before the barrier of its id; whether that one was there."""
        if self._gate is None:
            return self.prioritise_barrier(barrier) is not None
        ahead = 0
        for place, (chunk, *_) in enumerate(self._received):
            if chunk and type(chunk[0]) is CheckpointBarrier and chunk[0].checkpoint_id == barrier.checkpoint_id:
                del self._received[place]
                self._overtakers.put(barrier, ahead)
                self.resume()
                self.on_overtaking()
                return True
            ahead += len(chunk)
        return False

    def take_overtaking(self, unread: MessageChunk) -> tuple[CheckpointBarrier, list[Event]]:
        """Return the barrier that has overtaken, and what it has passed at the receiver."""
        if self._gate is None:
            queued = [message for buffer in self._subpartition for message in buffer.messages[buffer.start :]]
        else:
            queued = [message for chunk, *_ in self._received for message in chunk]
        return self._overtakers.take(unread, queued)

    def grant_floating(self) -> None:
        """Give one floating buffer of the gate to this channel: a credit more for the sender."""
        self._free_floating += 1
        self._give_credit()

    def needs_floating(self) -> bool:
        """Return whether fewer buffers are free than the sender's backlog asks for."""
        return self._free_exclusive + self._free_floating < self._required

    def _give_credit(self) -> None:
        self._tell_sender(self._credit_arrives)

    def _credit_arrives(self) -> None:
        self.credit += 1
        self._offer()

    def in_transit(self) -> bool:
        """Return whether a buffer, a barrier, a credit or a resumption is on the link."""
        return max(self._arrives_ns, self._returns_ns) > self._clock.now

    def readable(self) -> bool:
        """Return whether the receiver may open a buffer."""
        return self._sendable() if self._gate is None else bool(self._received)

    def open(self) -> MessageChunk:
        """The messages that end in the next buffer, in order; none, if it holds a part of one only."""
        if self._gate is None:
            chunk, buffer, self.opened_bytes = self._slice()
            self.goes_on = buffer.goes_on
            buffer.readers += 1
            self._opened = buffer
        else:
            chunk, self._opened, self.opened_bytes, self.goes_on = self._received.popleft()
        self._overtakers.opened += len(chunk)
        return chunk

    def close(self) -> None:
        """Free the opened buffer: it has been read to its end."""
        holder, self._opened = self._opened, NO_BUFFER
        if isinstance(holder, Buffer):
            holder.readers -= 1
            self._recycle(holder)
        elif holder == FLOATING:
            assert self._gate is not None
            self._gate.recycle()
        elif holder == EXCLUSIVE:
            self._free_exclusive += 1
            if self._free_floating and self._free_exclusive + self._free_floating > self._required:
                assert self._gate is not None
                self._free_floating -= 1  # its credit stays, for the exclusive buffer
                self._gate.recycle()
            else:
                self._give_credit()

    @property
    def queued(self) -> int:
        """Messages that have been written and not yet handed to the receiver's reader."""
        begun = self._rest is not None
        return sum((len(b.messages) - b.start for b in self._subpartition), begun) + sum(
            len(chunk) for chunk, *_ in self._received
        )


def _events(buffers: Iterable[Buffer]) -> list[Event]:
    """Return the events in `buffers` that have not left, in order."""
    return [message for buffer in buffers for message in buffer.messages[buffer.start :] if type(message) is Event]


class ReceiverPool:
    """The floating buffers of one input gate: lent to channels with a backlog, first come, first served."""

    __slots__ = ("_waiting", "floating")

    def __init__(self, floating: int) -> None:
        self.floating = floating
        self._waiting: deque[NetworkChannel] = deque()

    def wait(self, channel: NetworkChannel) -> None:
        channel.waiting_for_floating = True
        self._waiting.append(channel)

    def recycle(self) -> None:
        """Give a free floating buffer to the channel that has waited longest, which waits again if it needs more."""
        while self._waiting:
            channel = self._waiting.popleft()
            channel.waiting_for_floating = False
            if channel.needs_floating():
                channel.grant_floating()
                if channel.needs_floating():
                    self.wait(channel)
                return
        self.floating += 1
