"""In-flight data as bytes: one file for what was in flight on one channel of one task.

F-DCKP-006, "In-Flight Buffer Persistence Format", made sound by protocol rule 21 (defect U-20): the document's layout
between a head that says what the file is, whose, and how long, and a checksum at the end. Little-endian::

    magic 8 | version u32 | side u32 | subtask u32 | body length u64
    input_id u32 | event_count u64 | (len u32 | data)*            the document's, which is the body
    crc32 u32                                                     of all before it

The checksum sees every change of one byte (of 32 bits in a row), the length every truncation and extension. Nothing is
taken from a number in the file before it is checked against the bytes that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from struct import Struct
from zlib import crc32

from impl.errors import InFlightDataError, LimitError

MAGIC = b"INFLIGHT"
VERSION = 1
SIDES = ("input", "output")
MAX_U32 = 2**32 - 1
_HEAD = Struct("<8sIIIQ")
_BODY = Struct("<IQ")
_U32 = Struct("<I")
_LEAST = _HEAD.size + _BODY.size + _U32.size


@dataclass(frozen=True, slots=True)
class InFlightFile:
    """What such a file says.

    Attributes
    ----------
    subtask_index : int
        Which of the operator's tasks.
    input_id : int
        Its input; on the ``output`` side its output.
    events : tuple of bytes
        In the order of the channel.
    side : str
        ``input``: recorded by the receiver. ``output``: by the sender; on the channel it comes behind the receiver's.
    """

    subtask_index: int
    input_id: int
    events: tuple[bytes, ...]
    side: str = "input"


def encode(input_id: int, events: Sequence[bytes], subtask_index: int = 0, side: str = "input") -> bytes:
    """The file for `events`.

    Raises
    ------
    LimitError
        If `input_id`, `subtask_index` or the length of an event does not fit 32 bits, or there is no such side.

    >>> decode(encode(1, [b"a1", b"a2"], subtask_index=3))
    InFlightFile(subtask_index=3, input_id=1, events=(b'a1', b'a2'), side='input')
    """
    for name, number in (("input_id", input_id), ("subtask_index", subtask_index)):
        if not 0 <= number <= MAX_U32:
            raise LimitError(name, number, f"0 to {MAX_U32}")
    if side not in SIDES:
        raise LimitError("side", side, " or ".join(SIDES))
    lengths = list(map(len, events))
    if max(lengths, default=0) > MAX_U32:
        raise LimitError("the length of an event", max(lengths), f"0 to {MAX_U32}")
    body_bytes = _BODY.size + _U32.size * len(lengths) + sum(lengths)
    head = _HEAD.pack(MAGIC, VERSION, SIDES.index(side), subtask_index, body_bytes)
    parts = chain.from_iterable(zip(map(_U32.pack, lengths), events, strict=True))
    content = b"".join((head, _BODY.pack(input_id, len(lengths)), *parts))
    return content + _U32.pack(crc32(content))


def decode(data: bytes) -> InFlightFile:
    """What `encode` was given.

    Raises
    ------
    InFlightDataError
        If `data` is anything else than what `encode` makes: by one byte, cut off, or longer.
    """
    if len(data) < _LEAST:
        raise _damaged(f"{len(data)} bytes", f"{_LEAST} or more")
    magic, version, side, subtask_index, body_bytes = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise _damaged(f"a file that begins with {magic!r}", f"{MAGIC!r}")
    if version != VERSION:
        raise _damaged(f"version {version}", f"{VERSION}")
    end = len(data) - _U32.size
    if _HEAD.size + body_bytes != end:
        raise _damaged(f"a body of {end - _HEAD.size} bytes", f"{body_bytes}, as the head says")
    (checksum,) = _U32.unpack_from(data, end)
    if crc32(memoryview(data)[:end]) != checksum:
        raise _damaged("a checksum that differs", f"{checksum}, as the end says")
    if side >= len(SIDES):
        raise _damaged(f"side {side}", f"0 to {len(SIDES) - 1}")
    input_id, event_count = _BODY.unpack_from(data, _HEAD.size)
    events: list[bytes] = []
    at = _HEAD.size + _BODY.size
    unpack_length, width = _U32.unpack_from, _U32.size
    while at + width <= end:
        begin = at + width
        at = begin + unpack_length(data, at)[0]
        events.append(data[begin:at])
    if at != end or len(events) != event_count:
        # Also where the last length runs over the end: a slice takes what is there.
        raise _damaged(f"{len(events)} events in {end - _HEAD.size} bytes", f"{event_count} that fill them")
    return InFlightFile(subtask_index, input_id, tuple(events), SIDES[side])


def _damaged(came: str, allowed: str) -> InFlightDataError:
    return InFlightDataError(came, allowed, "do not use this checkpoint; try the next older one")
