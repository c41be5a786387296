"""A stream's slots in shared memory: a ring that its writer overwrites, and that a reader looks into once.

Nothing here waits and nothing holds a writer back (merge-map-join-barrier, sections 5, 7.2). A reader opens a slot,
copies, and closes it: if another write of the slot began in between, or was never whole, the read has failed and is not
repeated. That is a sequence lock as a value: `open` and `close` compare a counter that is odd while a frame is
being written.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import NamedTuple

from barrierlab.impl.checks import check_number
from barrierlab.impl.join.inputs import Read
from barrierlab.impl.join.merge_map import TimestampSource


class Frame(NamedTuple):
    """A frame as its slot and its descriptor tell it; `slot_ns` is when it was captured, `frame_ns` when it came."""

    stream_id: int
    epoch: int
    seq: int
    frame_ns: int | None
    slot_ns: int | None


class Miss(Enum):
    """The reason why a read found no frame."""

    MISSING = "missing"
    OVERWRITTEN = "overwritten"
    NOT_COMMITTED = "not committed"
    OLDER_EPOCH = "older epoch"


class Opened(NamedTuple):
    """A slot that is being read: its place and its counter when the reading began."""

    place: int
    counter: int
    frame: Frame


class SlotRing:
    """The slots of one stream.

    Parameters
    ----------
    slots : int
        A frame with number n lies in slot n modulo this.

    Raises
    ------
    LimitError
        If there is not at least one slot.
    """

    __slots__ = ("_counters", "_frames", "_newest", "slots")

    def __init__(self, slots: int) -> None:
        check_number("slots", slots, 1)
        self.slots = slots
        self._frames: list[Frame | None] = [None] * slots
        self._counters = [0] * slots
        self._newest: Frame | None = None  # of the frames written, the highest number of the newest epoch

    def begin(self, frame: Frame) -> None:
        """Begin to write `frame` into its slot: what lay there is gone."""
        place = frame.seq % self.slots
        self._frames[place] = frame
        self._counters[place] += 1 + self._counters[place] % 2

    def commit(self, frame: Frame) -> None:
        """`frame` is written: it can be read from now on."""
        place = frame.seq % self.slots
        if self._frames[place] is frame and self._counters[place] % 2:
            self._counters[place] += 1
            newest = self._newest
            if newest is None or (frame.epoch, frame.seq) > (newest.epoch, newest.seq):
                self._newest = frame

    def publish(self, frame: Frame) -> None:
        """`begin` and `commit`."""
        self.begin(frame)
        self.commit(frame)

    def holds(self, frame: Frame) -> bool:
        """Return whether `frame` lies whole in its slot: its header can be read."""
        place = frame.seq % self.slots
        return self._frames[place] is frame and self._counters[place] % 2 == 0

    def open(self, read: Read) -> Opened | Miss:
        """Look for the newest frame that `read` asks for: newest first, at each slot once."""
        return self._open_number(read) if read.source is None else self._open_time(read)

    def close(self, opened: Opened) -> Frame | Miss:
        """The frame, if its slot stayed as it was."""
        return opened.frame if self._counters[opened.place] == opened.counter else Miss.OVERWRITTEN

    def capture(self) -> Hashable:
        """Return the state for `restore`, but the number of slots."""
        return tuple(self._frames), tuple(self._counters), self._newest

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        frames, counters, self._newest = value  # type: ignore[misc]
        self._frames, self._counters = list(frames), list(counters)  # type: ignore[has-type]

    def _open_number(self, read: Read) -> Opened | Miss:
        epoch, first, last = read.epoch, read.first, read.last
        found: Opened | None = None
        why = Miss.MISSING
        for seq in range(last, max(first, last - self.slots + 1) - 1, -1):
            if found is not None and found.frame.seq >= seq:
                break
            place = seq % self.slots
            frame = self._frames[place]
            if frame is None or (frame.epoch, frame.seq) < (epoch, first):
                continue
            if (frame.epoch, frame.seq) > (epoch, seq):
                why = Miss.OVERWRITTEN
            elif self._counters[place] % 2:
                why = Miss.NOT_COMMITTED
            elif found is None or frame.seq > found.frame.seq:  # it may be older than `seq`: numbers were dropped
                found = Opened(place, self._counters[place], frame)
        return found or why

    def _open_time(self, read: Read) -> Opened | Miss:
        by_slot, newest = read.source is TimestampSource.SLOT_HEADER, self._newest
        found: Opened | None = None
        if newest is None:
            return Miss.MISSING
        for seq in range(newest.seq, newest.seq - self.slots, -1):
            if found is not None and found.frame.seq >= seq and read.epoch == newest.epoch:
                break
            place = seq % self.slots
            frame = self._frames[place]
            if frame is None or frame.epoch != read.epoch or self._counters[place] % 2:
                continue
            at_ns = frame.slot_ns if by_slot else frame.frame_ns
            if at_ns is None or not read.first <= at_ns <= read.last:
                continue
            if found is None or frame.seq > found.frame.seq:
                found = Opened(place, self._counters[place], frame)
        return found or Miss.MISSING
