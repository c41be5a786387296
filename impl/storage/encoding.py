"""Plain values as bytes, and back: what the images of tasks and the messages in flight are stored as.

One value has one encoding, and every accepted encoding is that of its value, so equal bytes mean equal states. Stored
bytes are not trusted, which is why none of the library's formats is used: a pickle runs what it names and encodes equal
values differently, marshal belongs to one version of Python, JSON has neither tuples nor bytes. A length is compared
with the bytes that are there before anything is made of it, so a damaged one costs nothing.

A tag of one byte, then: ``i`` 8 bytes, ``I`` length and two's complement (only for what does not fit ``i``), ``f`` 8
bytes, ``s`` length and UTF-8, ``b`` length and bytes, ``(`` count and items, ``N``, ``T``, ``F``; messages are ``E``
(the seven fields of an event), ``W`` (timestamp), ``B`` (the 24 bytes of a barrier), ``C`` (id) and ``Z`` (end of
input). Lengths and counts are u32; all numbers are little-endian, as in F-DCKP-001 and F-DCKP-006.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import TYPE_CHECKING

from barrierlab.impl.checks import check_type
from barrierlab.impl.errors import ContractError, DamagedError, LimitError, PlainValueError
from barrierlab.impl.messages import BARRIER_BYTES, CancelBarrier, CheckpointBarrier, EndOfInput, Event, Watermark

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 64  # tuples within tuples
MAX_U32 = 2**32 - 1
_I64 = Struct("<q")
_F64 = Struct("<d")
_U32 = Struct("<I")
# The usual event, for whose reading there is a short way: a tuple of seven that begins with a text; tags and numbers.
_USUAL_EVENT = b"(\x07\0\0\0s"
_TWO_NUMBERS = Struct("<cqcq")
_THREE_NUMBERS = Struct("<cqcqcq")
_LEAST, _MOST = -(2**63), 2**63 - 1
_EVENT_TYPES = (str, int, int, int, int)  # of source, sequence, part, timestamp_ms, size_bytes; the others are free

_EVENT_FIELDS = "a source of type str, sequence, part, timestamp_ms and size_bytes of type int; any plain key and value"


def encode(value: object) -> bytes:
    """Return the encoding of `value`.

    >>> decode(encode((1, ("a", None))))
    (1, ('a', None))

    Raises
    ------
    PlainValueError
        If it, or something in it, is not a plain value. A subclass is none: it would come back as something else.
    LimitError
        If tuples are nested more than `MAX_DEPTH` deep, something has 2**32 bytes or items, or a message has a field
        that it cannot have.
    """
    out: list[bytes] = []
    _put(value, out.append, 0)
    return b"".join(out)


def decode(data: bytes, name: str = "value") -> object:
    """Return the value of which `data` is the encoding.

    Parameters
    ----------
    data : bytes
    name : str
        What an error calls them.

    Raises
    ------
    DamagedError
        If `data` is no encoding of a value, or more than one.
    """
    reader = _ByteReader(data, name)
    value = reader.value(0)
    if reader.at != len(data):
        raise reader.damaged(f"{len(data) - reader.at} bytes more", "nothing behind the value")
    return value


def _length(size: int) -> bytes:
    if size > MAX_U32:
        raise LimitError("the size of a value", size, f"at most {MAX_U32} bytes or items")
    return _U32.pack(size)


def _put(value: object, put: Callable[[bytes], None], depth: int) -> None:
    if type(value) is int:
        if _LEAST <= value <= _MOST:
            put(b"i" + _I64.pack(value))
        else:
            raw = value.to_bytes(_bytes_for(value), "little", signed=True)
            put(b"I" + _length(len(raw)) + raw)
    elif type(value) is str:
        raw = value.encode("utf-8", "surrogatepass")
        put(b"s" + _length(len(raw)) + raw)
    elif type(value) is tuple:
        if depth == MAX_DEPTH:
            raise LimitError("the depth of a value", f"more than {MAX_DEPTH}", f"at most {MAX_DEPTH} nested tuples")
        put(b"(" + _length(len(value)))
        for item in value:
            _put(item, put, depth + 1)
    elif value is None:
        put(b"N")
    elif type(value) is bool:
        put(b"T" if value else b"F")
    elif type(value) is bytes:
        put(b"b" + _length(len(value)) + value)
    elif type(value) is float:
        put(b"f" + _F64.pack(value))
    else:
        _put_message(value, put, depth)


def _put_message(value: object, put: Callable[[bytes], None], depth: int) -> None:
    if type(value) is Event:
        put(b"E")
        fields = (
            value.source,
            value.sequence,
            value.part,
            value.key,
            value.value,
            value.timestamp_ms,
            value.size_bytes,
        )
        if _event_types(fields) != _EVENT_TYPES:
            raise LimitError("the fields of an event", fields, _EVENT_FIELDS)
        _put(fields, put, depth)
    elif type(value) is Watermark:
        check_type("the time of a watermark", value.timestamp_ms, int)
        put(b"W")
        _put(value.timestamp_ms, put, depth)
    elif type(value) is CheckpointBarrier:
        put(b"B" + value.to_bytes())
    elif type(value) is CancelBarrier:
        put(b"C")
        _put(value.checkpoint_id, put, depth)
    elif type(value) is EndOfInput:
        put(b"Z")
    else:
        raise PlainValueError(type(value))


def _event_types(fields: tuple[object, ...]) -> tuple[type, ...]:
    source, sequence, part, _, _, timestamp_ms, size_bytes = fields
    return type(source), type(sequence), type(part), type(timestamp_ms), type(size_bytes)


def _bytes_for(value: int) -> int:
    """The least number of bytes that hold `value` and its sign."""
    return (value if value >= 0 else ~value).bit_length() // 8 + 1


class _ByteReader:
    """Takes values off the front of untrusted bytes; never makes more of them than there are."""

    __slots__ = ("at", "data", "name")

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        self.at = 0

    def damaged(self, found: str, expected: str) -> DamagedError:
        """Return an error that names the place."""
        return DamagedError(self.name, f"{found} at byte {self.at}", expected)

    def past(self, size: int) -> int:
        """Return where the next `size` bytes end; raise if they are not all there."""
        end = self.at + size
        if end > len(self.data):
            raise self.damaged(f"{size} bytes announced", f"the {len(self.data) - self.at} that are left")
        return end

    def value(self, depth: int) -> object:
        """Return the next value."""
        begin = self.at + 1
        tag = self.data[self.at : self.past(1)]
        self.at = begin
        if tag == b"i":
            self.at = self.past(8)
            return _I64.unpack_from(self.data, begin)[0]
        if tag == b"s":
            try:
                return str(self._sized(), "utf-8", "surrogatepass")
            except UnicodeDecodeError as error:
                raise self.damaged("text that is not UTF-8", "UTF-8") from error
        if tag == b"(":
            return self._items(depth)
        if tag == b"N":
            return None
        if tag in (b"T", b"F"):
            return tag == b"T"
        if tag == b"b":
            return self._sized()
        if tag == b"f":
            self.at = self.past(8)
            return _F64.unpack_from(self.data, begin)[0]
        return self._number() if tag == b"I" else self._message(tag, depth)

    def _u32(self) -> int:
        begin = self.at
        self.at = self.past(4)
        size: int = _U32.unpack_from(self.data, begin)[0]
        return size

    def _sized(self) -> bytes:
        size = self._u32()
        begin = self.at
        self.at = self.past(size)
        return self.data[begin : self.at]

    def _items(self, depth: int) -> tuple[object, ...]:
        count = self._u32()
        left = len(self.data) - self.at
        if count > left:
            raise self.damaged(f"{count} items announced", f"at most one in each of the {left} bytes that are left")
        if depth == MAX_DEPTH:
            raise self.damaged("one more nested tuple", f"at most {MAX_DEPTH}")
        return tuple([self.value(depth + 1) for _ in range(count)])

    def _number(self) -> int:
        """Return what follows the tag ``I``."""
        raw = self._sized()
        number = int.from_bytes(raw, "little", signed=True)
        if _LEAST <= number <= _MOST or len(raw) != _bytes_for(number):
            raise self.damaged("a number written too long", "its shortest form")
        return number

    def _message(self, tag: bytes, depth: int) -> object:
        # What follows is looked at first: a message within a message within a message would be endless recursion.
        following = self.data[self.at : self.at + 1]
        if tag == b"E" and following == b"(":
            return self._usual_event(depth) or self._event(depth)
        if tag == b"Z":
            return EndOfInput()
        try:
            if tag == b"B":
                begin, self.at = self.at, self.past(BARRIER_BYTES)
                return CheckpointBarrier.from_bytes(self.data[begin : self.at])
            if tag in (b"W", b"C") and following in (b"i", b"I"):
                number = self.value(depth)
                assert type(number) is int
                return Watermark(number) if tag == b"W" else CancelBarrier(number)
        except ContractError as error:
            raise self.damaged(error.actual, error.expected) from error
        raise self.damaged(f"tag {tag!r} before {following!r}", "a value or a message")

    def _usual_event(self, depth: int) -> Event | None:
        """Decode an event whose key and numbers fit 64 bits, at half the cost; None for any other value."""
        data, begin = self.data, self.at
        if depth == MAX_DEPTH or not data.startswith(_USUAL_EVENT, begin):
            return None
        at = begin + len(_USUAL_EVENT) + 4
        try:
            end = at + _U32.unpack_from(data, at - 4)[0]
            i, sequence, j, part, k, key = _THREE_NUMBERS.unpack_from(data, end)
            source = str(data[at:end], "utf-8", "surrogatepass")
            if not i == j == k == b"i":
                return None
            self.at = end + _THREE_NUMBERS.size
            value = self.value(depth + 1)
            i, timestamp_ms, j, size_bytes = _TWO_NUMBERS.unpack_from(data, self.at)
        except (struct.error, UnicodeDecodeError):
            i = j = b""
        if not i == j == b"i":
            self.at = begin  # the long way says what is wrong
            return None
        self.at += _TWO_NUMBERS.size
        return Event(source, sequence, part, key, value, timestamp_ms, size_bytes)

    def _event(self, depth: int) -> Event:
        fields = self.value(depth)
        if type(fields) is tuple and len(fields) == 7 and _event_types(fields) == _EVENT_TYPES:
            return Event(*fields)
        raise self.damaged("an event of other fields", _EVENT_FIELDS)
