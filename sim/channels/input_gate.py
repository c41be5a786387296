"""Readers of a task's channels: which one is next, one buffer at a time, and which not while it waits.

Apache Flink, `SingleInputGate`, `UnionInputGate`, `StreamTwoInputProcessor`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from barrierlab.impl import StreamMessage
from barrierlab.sim.channels.debloat import ThroughputMeter
from barrierlab.sim.channels.spsc import Channel, MessageChunk, SpscChannel


class GateReader:
    """The messages of one input gate's channels: round robin over those with data, one buffer at a time.

    Apache Flink, `SingleInputGate.inputChannelsWithData`: a channel that has more goes to the end of the line.

    Attributes
    ----------
    line : deque of int
        The channels with data, whose turn it is first; always the same one, as are the next two.
    listed, blocked : list of bool
        By channel, whether it stands in line, and whether it may not.
    meter : ThroughputMeter or None
        It measures what is read, where the gate debloats.
    """

    __slots__ = (
        "_channels",
        "_chunk",
        "_held",
        "_indices",
        "_open",
        "_partial",
        "_place",
        "blocked",
        "line",
        "listed",
        "meter",
    )

    def __init__(self, indices: list[int], channels: list[Channel]) -> None:
        self._indices, self._channels = indices, channels
        self.line: deque[int] = deque()
        self.listed = [False] * len(channels)
        self.blocked = [False] * len(channels)
        self._chunk: MessageChunk = []
        self._place = 0
        self._open = self._held = -1
        self._partial: dict[int, MessageChunk] = {}
        self.meter: ThroughputMeter | None = None

    def notify(self, local: int) -> None:
        """Note that channel `local` has data."""
        if not self.listed[local] and not self.blocked[local]:
            self.listed[local] = True
            self.line.append(local)

    def has_more(self) -> bool:
        """Return whether a channel stands in line, besides the one whose buffer is open."""
        return bool(self.line)

    def in_buffer(self) -> bool:
        """Return whether a buffer is open that holds a message."""
        return self._open >= 0

    def ready(self) -> bool:
        """Return whether there is anything to read, be it a part of a message."""
        return self._open >= 0 or self._held >= 0 or bool(self.line)

    def take(self) -> tuple[int, StreamMessage] | None:
        """Return the next message and the input it is from; None if there is none, or but parts of one."""
        while self._open < 0:
            if self._held >= 0:
                self.let_go()
            if not self.line:
                return None
            self._open_next(self.line.popleft())
        local = self._open
        message = self._chunk[self._place]
        self._place += 1
        if self._place == len(self._chunk):
            self._open = -1
            if self._channels[local].goes_on:
                self._held = local
            else:
                self._channels[local].close()
        return self._indices[local], message

    def let_go(self) -> None:
        """Read a buffer to its end of which but a part of a record is left, behind its last message, if there is one.

        That part is read when the task asks for the next record, and not before: until it has done its work for this
        one, and has room for what that one makes, the buffer is not free. Apache Flink,
        `SpillingAdaptiveSpanningRecordDeserializer.getNextRecord`.
        """
        held, self._held = self._held, -1
        if held >= 0:
            self._channels[held].close()

    def _open_next(self, local: int) -> None:
        """Open a buffer of channel `local`; one in which no message ends is read to its end by that."""
        channel = self._channels[local]
        self.listed[local] = False
        rest = self._partial.pop(local, None)
        if rest is None:
            rest = channel.open()
            if self.meter is not None:
                self.meter.read(channel.opened_bytes)
        if rest:
            self._chunk, self._place, self._open = rest, 0, local
        else:
            channel.close()
        if channel.readable():
            self.notify(local)

    def polled_in_vain(self) -> None:
        """Note that the task found nothing to read here."""
        if self.meter is not None:
            self.meter.pause()

    def unread(self, local: int) -> MessageChunk:
        """Return the messages of channel `local` opened and not taken yet."""
        if self._open == local:
            return self._chunk[self._place :]
        return self._partial.get(local, [])

    def recheck(self, local: int) -> None:
        """Take channel `local` out of the line if a barrier taken out of it has left nothing to read there."""
        if self.listed[local] and local not in self._partial and not self._channels[local].readable():
            self.listed[local] = False
            self.line.remove(local)

    def block(self, local: int) -> None:
        """Take nothing more from channel `local`; what is left of its open buffer is kept for later."""
        self.blocked[local] = True
        if self._open == local:
            self._partial[local] = self._chunk[self._place :]
            self._open = -1
        if self.listed[local]:
            self.listed[local] = False
            self.line.remove(local)

    def unblock(self) -> None:
        """Take from every channel again."""
        for local in range(len(self._channels)):
            if self.blocked[local]:
                self.resume(local)

    def resume(self, local: int) -> None:
        """Take from channel `local` again."""
        channel = self._channels[local]
        self.blocked[local] = False
        channel.resume()
        if local in self._partial or channel.readable():
            self.notify(local)


class QueueReader(GateReader):
    """The reader of a gate whose channels are all queues of messages: nothing is opened before it is taken."""

    __slots__ = ("queues",)

    def __init__(self, indices: list[int], queues: list[SpscChannel]) -> None:
        super().__init__(indices, [*queues])
        self.queues = queues

    def take(self) -> tuple[int, StreamMessage] | None:
        """Return the next message and the input it is from; None if there is none."""
        line = self.line
        if not line:
            return None
        local = line.popleft()
        queue = self.queues[local]
        self.listed[local] = False
        message = queue.take()
        if queue.queue and not self.blocked[local] and not self.listed[local]:
            self.listed[local] = True
            line.append(local)
        return self._indices[local], message


def reader_of(indices: list[int], channels: list[Channel]) -> GateReader:
    """The reader of a gate: the channels of one exchange are all of one form."""
    queues = [channel for channel in channels if isinstance(channel, SpscChannel)]
    return QueueReader(indices, queues) if len(queues) == len(channels) else GateReader(indices, channels)


class Inbox:
    """All inputs of a task: its gates take turns, by the buffer (union) or by the message (two-input operators).

    By the buffer the gate after this one is next, or, `in_line`, the one that has waited longest: a gate that has more
    goes to the end of the line when a buffer of it is opened.

    Apache Flink, `UnionInputGate.inputGatesWithData` and `StreamTwoInputProcessor`.

    Attributes
    ----------
    notify : callable
        Called with an input that has data.
    take : callable
        The next message and its input, or None when no input that may be read has one.
    """

    __slots__ = ("_by_message", "_gates", "_in_line", "_readers", "_turn", "_where", "notify", "take")

    def __init__(
        self, gates: list[list[int]], channels: list[Channel], by_message: bool, in_line: bool = False
    ) -> None:
        self._readers = [reader_of(indices, [channels[i] for i in indices]) for indices in gates]
        self._by_message = by_message
        self._in_line = in_line and len(gates) > 1
        self._gates: deque[GateReader] = deque()
        self._turn = 0
        self._where: dict[int, tuple[GateReader, int]] = {}
        for reader, indices in zip(self._readers, gates, strict=True):
            for local, index in enumerate(indices):
                self._where[index] = (reader, local)
        # What a task with many messages asks most is the one gate's own where there is but one: no call between.
        is_one = len(gates) == 1 and gates[0] == list(range(len(channels)))
        self.notify: Callable[[int], None] = self._readers[0].notify if is_one else self._notify
        self.take: Callable[[], tuple[int, StreamMessage] | None] = self._take_in_turn
        if is_one:
            self.take = self._readers[0].take
        elif self._in_line:
            self.take = self._take_in_line

    def _notify(self, index: int) -> None:
        reader, local = self._where[index]
        reader.notify(local)
        if self._in_line:
            self._line_up(reader)

    def _line_up(self, reader: GateReader) -> None:
        """Send a gate that has data, and does not stand in line, to the end of the line."""
        if reader.has_more() and reader not in self._gates:
            self._gates.append(reader)

    def _take_in_line(self) -> tuple[int, StreamMessage] | None:
        current = self._readers[self._turn]
        if current.in_buffer():
            return current.take()
        current.let_go()
        while self._gates:
            reader = self._gates.popleft()
            taken = reader.take() if reader.ready() else None
            self._line_up(reader)
            if taken is not None:
                self._turn = self._readers.index(reader)
                return taken
        return None

    def _take_measured(self) -> tuple[int, StreamMessage] | None:
        """The next message of the one gate, which is measured."""
        taken = self._readers[0].take()
        if taken is None:
            self._readers[0].polled_in_vain()
        return taken

    def _take_in_turn(self) -> tuple[int, StreamMessage] | None:
        readers, turn = self._readers, self._turn
        if not self._by_message:
            if readers[turn].in_buffer():
                return readers[turn].take()
            readers[turn].let_go()
        for step in range(1, len(readers) + 1):
            candidate = (turn + step) % len(readers)
            reader = readers[candidate]
            if reader.ready():
                self._turn = candidate
                taken = reader.take()
                if taken is not None:
                    return taken
            if self._by_message and reader.meter is not None:  # a union asks only gates that said that they have data
                reader.meter.pause()
        return None

    def queue_of(self, index: int) -> tuple[QueueReader, int] | None:
        """Return the reader of an input that is a queue, and its place there, where whoever pushes may line it up."""
        reader, local = self._where[index]
        return (reader, local) if type(reader) is QueueReader and not self._in_line else None

    @property
    def is_one(self) -> bool:
        """Return whether all inputs are one gate, that is asked directly; its channels have the inputs' numbers."""
        return self.take == self._readers[0].take

    def measure(self, gate: int, meter: ThroughputMeter) -> None:
        """Let `meter` measure what is read of a gate, by its number."""
        self._readers[gate].meter = meter
        if len(self._readers) == 1:
            self.take = self._take_measured

    def block(self, index: int) -> None:
        reader, local = self._where[index]
        reader.block(local)

    def recheck(self, index: int) -> None:
        """Take input `index` out of the line if a barrier taken out of it has left nothing to read there."""
        reader, local = self._where[index]
        reader.recheck(local)

    def unread(self, index: int) -> MessageChunk:
        """Return the messages of input `index` opened and not taken yet."""
        reader, local = self._where[index]
        return reader.unread(local)

    def unblock(self) -> None:
        """Take from every input again."""
        for reader in self._readers:
            reader.unblock()
            if self._in_line:
                self._line_up(reader)

    def resume(self, index: int) -> None:
        """Take from input `index` again."""
        reader, local = self._where[index]
        reader.resume(local)
        if self._in_line:
            self._line_up(reader)
