"""Readers of a task's channels: which one is next, one buffer at a time, and which not while it waits.

Apache Flink, `SingleInputGate`, `UnionInputGate`, `StreamTwoInputProcessor`.
"""

from __future__ import annotations

from collections import deque

from barrierlab.impl import StreamMessage
from barrierlab.sim.channels.spsc import Channel, MessageChunk


class GateReader:
    """The messages of one input gate's channels: round robin over those with data, one buffer at a time.

    Apache Flink, `SingleInputGate.inputChannelsWithData`: a channel that has more goes to the end of the line.
    """

    __slots__ = ("_channels", "_chunk", "_indices", "_line", "_listed", "_open", "_partial", "_place", "blocked")

    def __init__(self, indices: list[int], channels: list[Channel]) -> None:
        self._indices, self._channels = indices, channels
        self._line: deque[int] = deque()
        self._listed = [False] * len(channels)
        self.blocked = [False] * len(channels)
        self._chunk: MessageChunk = []
        self._place = 0
        self._open = -1
        self._partial: dict[int, MessageChunk] = {}

    def notify(self, local: int) -> None:
        """Channel `local` has data."""
        if not self._listed[local] and not self.blocked[local]:
            self._listed[local] = True
            self._line.append(local)

    def in_buffer(self) -> bool:
        """Return whether a buffer is open that has not been read to its end."""
        return self._open >= 0

    def ready(self) -> bool:
        return self._open >= 0 or bool(self._line)

    def take(self) -> tuple[int, StreamMessage]:
        """The next message and the input it is from. The caller has asked `ready`."""
        if self._open < 0:
            local = self._line.popleft()
            self._listed[local] = False
            rest = self._partial.pop(local, None)
            self._chunk = self._channels[local].open() if rest is None else rest
            self._place, self._open = 0, local
            if self._channels[local].readable():
                self.notify(local)
        local = self._open
        message = self._chunk[self._place]
        self._place += 1
        if self._place == len(self._chunk):
            self._open = -1
            self._channels[local].close()
        return self._indices[local], message

    def unread(self, local: int) -> MessageChunk:
        """Return the messages of channel `local` opened and not taken yet."""
        if self._open == local:
            return self._chunk[self._place :]
        return self._partial.get(local, [])

    def recheck(self, local: int) -> None:
        """A barrier was taken out of channel `local`: nothing may be left to read there."""
        if self._listed[local] and local not in self._partial and not self._channels[local].readable():
            self._listed[local] = False
            self._line.remove(local)

    def block(self, local: int) -> None:
        """Take nothing more from channel `local`; what is left of its open buffer is kept for later."""
        self.blocked[local] = True
        if self._open == local:
            self._partial[local] = self._chunk[self._place :]
            self._open = -1
        if self._listed[local]:
            self._listed[local] = False
            self._line.remove(local)

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


class Inbox:
    """All inputs of a task: its gates take turns, by the buffer (union) or by the message (two-input operators).

    Apache Flink, `UnionInputGate` and `StreamTwoInputProcessor`.
    """

    __slots__ = ("_by_message", "_readers", "_turn", "_where")

    def __init__(self, gates: list[list[int]], channels: list[Channel], by_message: bool) -> None:
        self._readers = [GateReader(indices, [channels[i] for i in indices]) for indices in gates]
        self._by_message = by_message
        self._turn = 0
        self._where: dict[int, tuple[GateReader, int]] = {}
        for reader, indices in zip(self._readers, gates, strict=True):
            for local, index in enumerate(indices):
                self._where[index] = (reader, local)

    def notify(self, index: int) -> None:
        reader, local = self._where[index]
        reader.notify(local)

    def take(self) -> tuple[int, StreamMessage] | None:
        """The next message, or None when no input that may be read has one."""
        readers = self._readers
        if len(readers) == 1:
            return readers[0].take() if readers[0].ready() else None
        turn = self._turn
        if not self._by_message and readers[turn].in_buffer():
            return readers[turn].take()
        for step in range(1, len(readers) + 1):
            candidate = (turn + step) % len(readers)
            if readers[candidate].ready():
                self._turn = candidate
                return readers[candidate].take()
        return None

    def block(self, index: int) -> None:
        reader, local = self._where[index]
        reader.block(local)

    def recheck(self, index: int) -> None:
        """A barrier was taken out of input `index`: nothing may be left to read there."""
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

    def resume(self, index: int) -> None:
        """Take from input `index` again."""
        reader, local = self._where[index]
        reader.resume(local)
