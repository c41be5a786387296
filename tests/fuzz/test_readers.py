"""The fuzzed readers, under Hypothesis; `make fuzz` runs the same inputs under coverage guidance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz import readers
from tests.fuzz.readers import READERS, one_input, seeds

SEEDS = st.sampled_from(seeds())


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A well-formed input with some bytes changed, taken out and put in."""
    data = bytearray(draw(SEEDS))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8))
        data = data or bytearray(b"\0")
    return bytes(data)


def test_every_reader_is_reached() -> None:
    """The fuzzer would have nothing to start from, and find nothing but bad checksums."""
    assert [one_input(seed) for seed in seeds()] == [True] * 2 * len(READERS)


@given(mutated())
def test_any_bytes_are_what_was_written_or_damaged(data: bytes) -> None:
    """A damaged file would be taken for another one, or end recovery with an error that nobody expects."""
    one_input(data)


@given(st.integers(0, 9), st.binary(max_size=300))
def test_bytes_from_nowhere_do_no_harm(reader: int, data: bytes) -> None:
    """The same, from further away."""
    one_input(bytes([reader]) + data)


def test_a_reader_that_takes_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check would pass whatever the readers do."""
    again, put_right, written = READERS[4]
    monkeypatch.setattr(readers, "READERS", (*READERS[:4], (lambda data: again(data[:-1]), put_right, written)))
    with pytest.raises(AssertionError, match="not written so"):
        one_input(seeds()[8] + b"\0")
