"""In-flight data as bytes: what is written is read, and nothing else is taken for it."""

from __future__ import annotations

import pickle
import tracemalloc
from struct import pack
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impl import InFlightDataError, InFlightFile, LimitError
from impl.inflight import decode, encode

SMALL = encode(2, [b"a1", b"", b"a3"], subtask_index=7, side="output")


@given(st.integers(0, 2**32 - 1), st.lists(st.binary(max_size=20)), st.integers(0, 2**32 - 1), st.booleans())
def test_round_trip(input_id, events, subtask_index, sent):
    """If it fails, a checkpoint gives back other events, or another task's."""
    side = "output" if sent else "input"
    data = encode(input_id, events, subtask_index, side)
    assert decode(data) == InFlightFile(subtask_index, input_id, tuple(events), side)


def test_the_layout_is_the_documents():
    """If it fails, another reader of the format finds no events in the body (U-20)."""
    body = pack("<IQ", 2, 3) + pack("<I", 2) + b"a1" + pack("<I", 0) + pack("<I", 2) + b"a3"
    head = pack("<8sIIIQ", b"INFLIGHT", 1, 1, 7, len(body))
    assert head + body + pack("<I", crc32(head + body)) == SMALL


def test_every_changed_byte_is_detected():
    """If it fails, a flipped bit on disk becomes another event after recovery."""
    for at in range(len(SMALL)):
        for change in range(1, 256):
            data = bytearray(SMALL)
            data[at] ^= change
            with pytest.raises(InFlightDataError):
                decode(bytes(data))


def test_every_truncation_and_extension_is_detected():
    """If it fails, a file that was half written counts as whole."""
    for length in range(len(SMALL)):
        with pytest.raises(InFlightDataError):
            decode(SMALL[:length])
    for more in (b"\0", b"INFLIGHT", SMALL):
        with pytest.raises(InFlightDataError):
            decode(SMALL + more)


def sealed(event_count: int, rest: bytes, side: int = 0, more: int = 0) -> bytes:
    """A file with a good checksum over a body that is none."""
    body = pack("<IQ", 0, event_count) + rest
    content = pack("<8sIIIQ", b"INFLIGHT", 1, side, 0, len(body) + more) + body
    return content + pack("<I", crc32(content))


@pytest.mark.parametrize(
    "data",
    [
        sealed(2, pack("<I", 1) + b"a"),
        sealed(0, pack("<I", 1) + b"a"),
        sealed(1, pack("<I", 2) + b"a"),
        sealed(1, pack("<I", 1) + b"a" + b"xy"),
        sealed(0, b"", side=2),
        sealed(2**64 - 1, pack("<I", 2**32 - 1)),
        sealed(0, b"", more=1),
    ],
    ids=["too few", "too many", "runs over", "left over", "no side", "huge", "other length"],
)
def test_a_body_that_does_not_fit_is_detected(data):
    """If it fails, a file that a faulty writer sealed is read as if it were good."""
    with pytest.raises(InFlightDataError, match="older"):
        decode(data)


def test_damaged_lengths_allocate_nothing():
    """If it fails, a few damaged bytes make recovery run out of memory."""
    huge = [sealed(2**64 - 1, pack("<I", 2**32 - 1)), SMALL[:20] + b"\xff" * 8 + SMALL[28:]]
    tracemalloc.start()
    try:
        for data in huge:
            with pytest.raises(InFlightDataError):
                decode(data)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@given(st.binary(max_size=80))
def test_noise_is_no_file(noise):
    """If it fails, any bytes may crash the reader with something else than its error."""
    for data in (noise, SMALL[:28] + noise):
        if data != SMALL:
            with pytest.raises(InFlightDataError):
                decode(data)


@pytest.mark.parametrize(
    ("arguments", "came"),
    [
        ((-1, []), "input_id = -1"),
        ((2**32, []), "input_id"),
        ((0, [], -1), "subtask_index"),
        ((0, [], 0, "both"), "side = 'both'"),
    ],
)
def test_what_does_not_fit_is_not_written(arguments, came):
    """If it fails, a file is written that says something else than was meant."""
    with pytest.raises(LimitError, match=came):
        encode(*arguments)


def test_the_error_survives_a_process_boundary():
    """If it fails, a worker that finds damage reports something unreadable."""
    with pytest.raises(InFlightDataError) as caught:
        decode(b"")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (InFlightDataError, str(caught.value))
