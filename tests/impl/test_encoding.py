"""Plain values as bytes: there and back, one encoding each, and nothing but a named error from any other bytes."""

from __future__ import annotations

import struct
import tracemalloc
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrierlab.impl import (
    CancelBarrier,
    CheckpointBarrier,
    DamagedError,
    EndOfInput,
    Event,
    LimitError,
    PlainValueError,
    Watermark,
    decode,
    encode,
)
from barrierlab.impl.storage.encoding import MAX_DEPTH, _ByteReader

TEXT = st.text() | st.text(st.characters(categories=["Cs", "Lu"]))  # lone surrogates too
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False)
    | TEXT
    | st.binary()
)
U64 = st.integers(1, 2**64 - 1)
MESSAGES = (
    st.builds(
        Event, TEXT, st.integers(), st.integers(), st.integers() | TEXT, LEAVES, st.integers(), st.integers(0, 2**40)
    )
    | st.builds(Watermark, st.integers())
    | st.builds(CheckpointBarrier, U64, U64, U64)
    | st.builds(CancelBarrier, U64)
    | st.builds(EndOfInput)
)
VALUES = st.recursive(LEAVES | MESSAGES, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=12)


def told(value: object) -> object:
    """A form in which 1, 1.0 and True, -0.0 and 0.0, and events that differ in what they carry, are different."""
    if isinstance(value, tuple):
        return tuple(map(told, value))
    return type(value), repr(value)


@given(VALUES)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    """A restored task would differ from the one that was captured, be it only in a type."""
    assert told(decode(encode(value))) == told(value)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, b"N"),
        (True, b"T"),
        (-2, b"i\xfe\xff\xff\xff\xff\xff\xff\xff"),
        (2**63, b"I\x09\0\0\0" + bytes(7) + b"\x80\0"),
        (-(2**63) - 1, b"I\x09\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f\xff"),
        (1.5, b"f" + struct.pack("<d", 1.5)),
        ("é", b"s\x02\0\0\0\xc3\xa9"),
        ("\ud800", b"s\x03\0\0\0\xed\xa0\x80"),
        (b"\0", b"b\x01\0\0\0\0"),
        ((None, ()), b"(\x02\0\0\0N(\0\0\0\0"),
        (Watermark(1), b"Wi\x01\0\0\0\0\0\0\0"),
        (CheckpointBarrier(1, 2, 1), b"B" + struct.pack("<QQQ", 1, 2, 1)),
        (EndOfInput(), b"Z"),
    ],
)
def test_the_bytes_are_those_of_the_description(value: object, data: bytes) -> None:
    """A checkpoint of an older version could not be read any more."""
    assert encode(value) == data
    assert told(decode(data)) == told(value)


def test_a_float_keeps_every_bit() -> None:
    """A state with a negative zero or a payload in a NaN would change."""
    for raw in (b"\0" * 7 + b"\x80", b"\x01\0\0\0\0\0\xf8\x7f"):
        assert encode(decode(b"f" + raw)) == b"f" + raw


class Level(IntEnum):
    """A number that is more than one."""

    LOW = 1


@pytest.mark.parametrize("value", [[], {}, set(), object(), Level.LOW, bytearray(), (1, [2]), 1j])
def test_what_is_not_plain_is_refused(value: object) -> None:
    """It would come back as something else, or change after it was captured."""
    with pytest.raises(PlainValueError, match="a value of type") as caught:
        encode(value)
    assert "tuples of these" in caught.value.expected


def nested(depth: int) -> object:
    """A tuple within a tuple within a tuple."""
    value: object = None
    for _ in range(depth):
        value = (value,)
    return value


def test_depth_is_limited_on_both_sides() -> None:
    """A value that could be written could not be read, or a damaged file would exhaust the stack."""
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(LimitError, match="nested tuples"):
        encode(nested(MAX_DEPTH + 1))
    with pytest.raises(DamagedError, match="one more nested tuple"):
        decode(b"(\x01\0\0\0" * (MAX_DEPTH + 1) + b"N")
    for tag in (b"(\x01\0\0\0", b"W", b"C", b"E"):
        with pytest.raises(DamagedError):
            decode(tag * 100_000)


@given(st.binary() | st.binary().map(lambda tail: b"(\x02\0\0\0" + tail))
def test_any_bytes_are_a_value_or_damaged(data: bytes) -> None:
    """A damaged state would raise something that no caller expects, or pass for another state."""
    try:
        again, path = encode(decode(data, "state of join")), None
    except DamagedError as error:
        again, path = None, error.path
    assert (again, path) in ((data, None), (None, "state of join"))


@given(VALUES, st.data())
def test_an_encoding_has_no_neighbour_with_the_same_value(value: object, data: st.DataObject) -> None:
    """Two encodings of one state would have two checksums, or two states one."""
    good = encode(value)
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]
    try:
        other = decode(bad)
    except DamagedError:
        return
    assert encode(other) == bad


@given(VALUES, st.binary(min_size=1, max_size=3))
def test_a_part_or_more_is_damaged(value: object, more: bytes) -> None:
    """A state that was cut off, or runs on, would be taken for whole."""
    good = encode(value)
    for bad in (good[:-1], good + more):
        with pytest.raises(DamagedError):
            decode(bad)


@pytest.mark.parametrize(
    "data",
    [
        b"I\x01\0\0\0\x05",  # a small number in the long form
        b"I\x0a\0\0\0" + bytes(7) + b"\x80\0\0",  # a long one with a needless byte
        b"s\x01\0\0\0\xff",
        b"B" + bytes(24),  # checkpoint 0
        b"C" + encode(0),
        b"C" + encode("1"),
        b"E" + encode(("a", True, 0, 0, None, 0, 1)),
        b"E" + encode(("a", 1)),
        b"?",
        b"",
    ],
)
def test_what_encode_never_writes_is_damaged(data: bytes) -> None:
    """A value would have two encodings, or one come to be that cannot be made."""
    with pytest.raises(DamagedError):
        decode(data)


@pytest.mark.parametrize("tag", [b"(", b"s", b"b", b"I"])
def test_a_length_in_damaged_bytes_makes_no_room(tag: bytes) -> None:
    """One changed byte would ask for four gigabytes."""
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError, match="announced"):
            decode(tag + b"\xff\xff\xff\xff" + bytes(1000))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@given(
    st.builds(Event, TEXT, st.integers(), st.integers(), st.integers(-2, 2) | TEXT, VALUES, st.integers()),
    st.integers(0, 200),
    st.integers(0, 255),
    st.integers(0, 200),
)
def test_the_short_way_to_an_event_is_the_long_way(message: Event, at: int, byte: int, length: int) -> None:
    """Damaged bytes would pass for an event, or be reported as something else, where most events are read."""
    data = encode(message)
    damaged = data[:at] + bytes([byte]) + data[at + 1 :]
    for each in (data, damaged, damaged[:length], damaged + b"N"):
        answers = []
        for usual in (_ByteReader._usual_event, lambda reader, depth: None):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(_ByteReader, "_usual_event", usual)
                try:
                    answers.append(told(decode(each)))
                except DamagedError as error:
                    answers.append(str(error))
        assert answers[0] == answers[1]


@pytest.mark.parametrize("numbers", [(1, 2, 3), (4, 5)], ids=["in front of the value", "behind it"])
def test_the_short_way_to_an_event_asks_whether_its_numbers_are_some(numbers: tuple[int, ...]) -> None:
    """Damaged bytes whose tags are all wrong alike would be an event: a float for a sequence, say."""
    data = encode(Event("a", 1, 2, 3, None, 4, 5))
    for number in numbers:
        as_a_number, as_a_float = (tag + number.to_bytes(8, "little") for tag in (b"i", b"f"))
        assert data.count(as_a_number) == 1
        data = data.replace(as_a_number, as_a_float)
    with pytest.raises(DamagedError, match="an event of other fields"):
        decode(data)
