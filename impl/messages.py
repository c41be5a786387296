"""The messages that travel in band on a channel: events, watermarks, barriers, cancel markers and the end of input.

A channel is first in, first out, and loses nothing; nothing on it is out of band (protocol rule 1). The 24 bytes of a
barrier are those of F-DCKP-001, "API/Interface". Unlike there, no wrapper surrounds an event: `StreamMessage` is the
union of the five classes, and a reader asks ``type(message) is Event``.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING

from barrierlab.impl.checks import check_number
from barrierlab.impl.errors import CheckpointIdError, EpochError, LimitError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_U64 = 2**64 - 1
UNALIGNED_FLAG = 1
_LAYOUT = Struct("<QQQ")


def check_id(checkpoint_id: int) -> None:
    """Raise CheckpointIdError unless this is the id of a checkpoint."""
    if type(checkpoint_id) is not int or not 1 <= checkpoint_id <= MAX_U64:
        raise CheckpointIdError(checkpoint_id)


EVENT_FIELDS = ("key", "part", "sequence", "size_bytes", "source", "timestamp_ms", "value")


class Event:
    """One data element, named for its source and its place there.

    Two events are equal if source, sequence and part are; what they carry does not count. Events are made in
    great numbers, so this is a plain class: nobody changes one, by agreement.

    Attributes
    ----------
    source : str
        The source that made the event, or the one whose event it came from.
    sequence : int
        Its place in the source, counted from 1.
    part : int
        Tells apart the several results of one event; 0 for the event itself.
    key : int or str
        What keyed operators and hash exchanges go by.
    value : object
        The payload.
    timestamp_ms : int
        Event time, in milliseconds.
    size_bytes : int
        What the event counts against a limit in bytes.
    """

    __slots__ = EVENT_FIELDS

    def __init__(
        self,
        source: str,
        sequence: int,
        part: int = 0,
        key: int | str = 0,
        value: object = None,
        timestamp_ms: int = 0,
        size_bytes: int = 1,
    ) -> None:
        self.source = source
        self.sequence = sequence
        self.part = part
        self.key = key
        self.value = value
        self.timestamp_ms = timestamp_ms
        self.size_bytes = size_bytes

    def __eq__(self, other: object) -> bool:
        if type(other) is not Event:
            return NotImplemented
        return self.sequence == other.sequence and self.source == other.source and self.part == other.part

    def __hash__(self) -> int:
        return hash((self.source, self.sequence, self.part))

    def __str__(self) -> str:
        gap = ":" if self.source[-1:].isdigit() else ""  # so that a1 with 2 and a with 12 differ
        name = f"{self.source}{gap}{self.sequence}"
        return f"{name}.{self.part}" if self.part else name

    def __repr__(self) -> str:
        return (
            f"Event({self.source!r}, {self.sequence}, part={self.part}, key={self.key!r}, value={self.value!r}, "
            f"timestamp_ms={self.timestamp_ms}, size_bytes={self.size_bytes})"
        )


@dataclass(frozen=True, slots=True, order=True)
class Watermark:
    """A promise that no later event on this channel is as old as `timestamp_ms` or older."""

    timestamp_ms: int

    def __str__(self) -> str:
        return f"watermark {self.timestamp_ms}"


@dataclass(frozen=True, slots=True)
class CheckpointBarrier:
    """The place in the stream where a checkpoint cuts it: 24 bytes on the wire (F-DCKP-001).

    Attributes
    ----------
    checkpoint_id : int
        1 to 2**64 - 1; 0 is no checkpoint (protocol rule 2).
    epoch : int
        0 to 2**64 - 1 on the wire; the injector admits 48 bits.
    flags : int
        Bit 0: unaligned. Bits 1 to 63 are reserved.

    Raises
    ------
    CheckpointIdError, EpochError, LimitError
        If id, epoch or flags do not fit their eight bytes.
    """

    checkpoint_id: int
    epoch: int
    flags: int = 0

    def __post_init__(self) -> None:
        check_id(self.checkpoint_id)
        if type(self.epoch) is not int or not 0 <= self.epoch <= MAX_U64:
            raise EpochError(self.epoch, f"0 to {MAX_U64}")
        check_number("flags", self.flags, 0, MAX_U64)

    @classmethod
    def aligned(cls, checkpoint_id: int, epoch: int) -> CheckpointBarrier:
        """A barrier to be aligned: `CheckpointBarrier::new` of the document."""
        return cls(checkpoint_id, epoch)

    @classmethod
    def new_unaligned(cls, checkpoint_id: int, epoch: int) -> CheckpointBarrier:
        """A barrier that asks for an unaligned checkpoint."""
        return cls(checkpoint_id, epoch, UNALIGNED_FLAG)

    @property
    def is_unaligned(self) -> bool:
        """Return whether bit 0 of the flags is set."""
        return bool(self.flags & UNALIGNED_FLAG)

    @property
    def is_aligned(self) -> bool:
        """Return whether bit 0 of the flags is clear."""
        return not self.flags & UNALIGNED_FLAG

    def to_bytes(self) -> bytes:
        """Id, epoch, flags as three little-endian 64-bit numbers."""
        return _LAYOUT.pack(self.checkpoint_id, self.epoch, self.flags)

    @classmethod
    def from_bytes(cls, data: bytes) -> CheckpointBarrier:
        """The barrier that `to_bytes` wrote.

        Raises
        ------
        LimitError
            If `data` is not exactly 24 bytes long.
        CheckpointIdError
            If the id is 0.
        """
        if len(data) != _LAYOUT.size:
            raise LimitError("the length of a barrier in bytes", len(data), f"exactly {_LAYOUT.size}")
        return cls(*_LAYOUT.unpack(data))

    def __reduce__(self) -> tuple[type[CheckpointBarrier], tuple[int, int, int]]:
        """Copy by what it is made of, which holds for a compiled class, too."""
        return CheckpointBarrier, (self.checkpoint_id, self.epoch, self.flags)

    def __str__(self) -> str:
        return f"barrier {self.checkpoint_id} unaligned" if self.is_unaligned else f"barrier {self.checkpoint_id}"


@dataclass(frozen=True, slots=True)
class CancelBarrier:
    """In the barrier's place: checkpoint `checkpoint_id`, and every older one, is aborted (protocol rule 10)."""

    checkpoint_id: int

    def __post_init__(self) -> None:
        check_id(self.checkpoint_id)

    def __str__(self) -> str:
        return f"cancel {self.checkpoint_id}"


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """The last message of a channel; a standing barrier for every later checkpoint (protocol rule 4)."""

    def __str__(self) -> str:
        return "end"


StreamMessage = Event | Watermark | CheckpointBarrier | CancelBarrier | EndOfInput

BARRIER_BYTES = _LAYOUT.size
WATERMARK_BYTES = 8
CANCEL_BYTES = 8
END_BYTES = 1


def is_event(message: StreamMessage) -> bool:
    """Return whether `message` is an event."""
    return type(message) is Event


def is_watermark(message: StreamMessage) -> bool:
    """Return whether `message` is a watermark."""
    return type(message) is Watermark


def is_barrier(message: StreamMessage) -> bool:
    """Return whether `message` is a checkpoint barrier. A cancel marker is none."""
    return type(message) is CheckpointBarrier


def as_barrier(message: StreamMessage) -> CheckpointBarrier | None:
    """`message` if it is a barrier, else None."""
    return message if type(message) is CheckpointBarrier else None


def map_event(message: StreamMessage, f: Callable[[Event], Event]) -> StreamMessage:
    """`f` of an event; every other message as it is."""
    return f(message) if type(message) is Event else message


def size_of(message: StreamMessage) -> int:
    """Return what `message` counts against a limit in bytes (protocol rule 7)."""
    kind = type(message)
    if kind is Event:
        return message.size_bytes  # type: ignore[union-attr]
    if kind is CheckpointBarrier:
        return BARRIER_BYTES
    if kind is Watermark:
        return WATERMARK_BYTES
    return CANCEL_BYTES if kind is CancelBarrier else END_BYTES
