"""The recorder of a part: the events in flight, from the snapshot until each barrier is in.

It knows inputs and events; when it begins and ends is the aligner's decision that owns it
(`impl.checkpoint.unaligned`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from barrierlab.impl.messages import Event, StreamMessage
from barrierlab.impl.messages import size_of as default_size_of

_NO_INPUT = -1


@dataclass(frozen=True, slots=True)
class InFlightChannelData:
    """The events in flight on one channel: between the sender's cut and the receiver's.

    Attributes
    ----------
    input_id : int
        The input; in what a sender records, the output.
    events : tuple of Event
        In the order of the channel. (Bytes in the document; `impl.checkpoint.recovery` makes them.)
    size_bytes : int
        What they count.
    """

    input_id: int
    events: tuple[Event, ...]
    size_bytes: int


def channel_data(
    record: Mapping[int, Sequence[Event]], size_of: Callable[[StreamMessage], int]
) -> tuple[InFlightChannelData, ...]:
    """Return what is recorded, channel by channel, without those that have nothing."""
    return tuple(
        InFlightChannelData(channel, tuple(events), sum(map(size_of, events)))
        for channel, events in sorted(record.items())
        if events
    )


class Recorder:
    """The in-flight events of one part, and their size in bytes.

    Parameters
    ----------
    limit_bytes : int
        How much one part may record, outputs among it (protocol rule 18).
    size_of : callable
        The measure of an event in bytes.

    Attributes
    ----------
    missing : set of int
        The inputs whose barrier is missing, from the snapshot on. One of them is not free, so that no event passes
        unrecorded; it is ready if it has messages to drain.
    part_bytes, total_bytes : int
        Recorded for this part, and since the beginning, aborted or not.
    """

    __slots__ = ("_events", "_overtaken", "limit_bytes", "missing", "part_bytes", "size_of", "total_bytes")

    def __init__(self, limit_bytes: int, size_of: Callable[[StreamMessage], int]) -> None:
        self.limit_bytes = limit_bytes
        self.size_of = size_of
        self.missing: set[int] = set()
        self.part_bytes = 0
        self.total_bytes = 0
        self._events: dict[int, list[Event]] = {}
        self._overtaken: tuple[int, list[Event]] | None = None

    def begin(self, missing: set[int]) -> None:
        """Begin to record the inputs whose barriers are missing."""
        self.missing = missing
        self._events = {input_id: [] for input_id in missing}

    def record(self, input_id: int, event: Event) -> bool:
        """Record `event`, unless that exceeds the limit; return whether it was recorded."""
        size_bytes = self.size_of(event)
        if self.part_bytes + size_bytes > self.limit_bytes:
            return False
        self.part_bytes += size_bytes
        self.total_bytes += size_bytes
        self._events[input_id].append(event)
        return True

    def record_overtaken(self, input_id: int, events: list[Event], size_bytes: int) -> None:
        """Record what a barrier overtook on this input; `take_overtaken` returns it."""
        self._events.setdefault(input_id, []).extend(events)
        self._overtaken = input_id, events
        self.count(size_bytes)

    def count(self, size_bytes: int) -> None:
        """Count bytes that are recorded already, or elsewhere; the caller checks the limit."""
        self.part_bytes += size_bytes
        self.total_bytes += size_bytes

    def is_over(self) -> bool:
        """Return whether the part is over its limit."""
        return self.part_bytes > self.limit_bytes

    def measure(self, events: list[Event]) -> int:
        """Return the size of `events` in bytes."""
        if self.size_of is default_size_of:
            return sum([event.size_bytes for event in events])
        return sum(map(self.size_of, events))

    def take_overtaken(self) -> tuple[int, list[Event]]:
        """Take the input and the events that the last barrier overtook. No events if it overtook none, or on a second
        call.
        """
        overtaken, self._overtaken = self._overtaken, None
        return overtaken or (_NO_INPUT, [])

    def data(self) -> tuple[InFlightChannelData, ...]:
        """Return what is recorded, by input."""
        return channel_data(self._events, self.size_of)

    def clear(self) -> None:
        """Drop the part."""
        self.missing = set()
        self._events = {}
        self._overtaken = None
        self.part_bytes = 0

    def capture(self) -> tuple[Hashable, ...]:
        """Return the state for `restore`, as a value; without `total_bytes`, which only counts."""
        return (
            tuple(sorted(self.missing)),
            tuple((input_id, tuple(events)) for input_id, events in sorted(self._events.items())),
            self.part_bytes,
        )

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        missing, events, self.part_bytes = value  # type: ignore[misc]
        self.missing = set(missing)  # type: ignore[has-type]
        self._events = {input_id: list(each) for input_id, each in events}  # type: ignore[has-type]
        self._overtaken = None
