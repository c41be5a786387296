"""All that a store accepts can be restored: what a part reports comes back from `plan`, or is refused when stored.

The values are drawn from all that Python has, plain or not: a job's own types decide, and nobody checks them before.
"""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barrierlab.impl import (
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    InFlightChannelData,
    LimitError,
    Manifest,
    MemoryStore,
    PlainValueError,
    Watermark,
    Wiring,
    decode,
    encode,
    plan,
    snapshot_of,
)
from barrierlab.impl.checkpoint.report import Acknowledge
from tests.impl.test_encoding import told

WIRING = Wiring({"a": ("a", 0), "t": ("t", 0)}, {"a": [], "t": ["a>t"]}, {"a": ["a>t"], "t": []})
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
ODD = st.sampled_from([[], {}, {1}, frozenset(), deque(), object(), 1j, bytearray(b"x"), range(3), Event, ...])
ANY = PLAIN | ODD
EVENTS = st.builds(Event, ANY, ANY, ANY, ANY, ANY, ANY, ANY) | st.builds(Event, st.text(), st.integers(), key=PLAIN)
MESSAGES = EVENTS | st.builds(Watermark, ANY) | st.just(EndOfInput()) | st.just(CancelBarrier(1))
REPORTS = st.builds(
    Acknowledge,
    st.just("t"),
    st.just(1),
    image=PLAIN | EVENTS | st.tuples(MESSAGES),
    inflight=st.lists(EVENTS | MESSAGES, max_size=2).map(lambda each: (InFlightChannelData(0, tuple(each), 1),)),
    watermark_ms=st.none() | st.integers() | ANY,
    ended=st.sampled_from([(), (0,), (0, 0), (-1,), (False,)]) | st.tuples(ODD | st.text() | st.floats()),
    finished=st.booleans() | ANY,
    prepared=st.just(()) | st.tuples(st.text()) | st.tuples(ANY),
)


def flying(*events: object) -> Acknowledge:
    """A part with these in flight."""
    return Acknowledge("t", 1, image=(), inflight=(InFlightChannelData(0, events, 1),))  # type: ignore[arg-type]


@given(REPORTS)
@example(flying(Event("a", 2, key=True)))  # type: ignore[arg-type]
@example(flying(Event("a", 2, key=None)))  # type: ignore[arg-type]
@example(flying(Event("a", 2, key=("x", 1.5))))  # type: ignore[arg-type]
@example(flying(Event("a", 2, key=b"x", value=0.5)))  # type: ignore[arg-type]
@example(flying(Event("a", True)))
@example(flying(Event("a", 1.0)))  # type: ignore[arg-type]
@example(flying(Watermark(1)))
@example(Acknowledge("t", 1, image=(), watermark_ms=1.5))  # type: ignore[arg-type]
@example(Acknowledge("t", 1, image=Watermark(1.5)))  # type: ignore[arg-type]
@example(Acknowledge("t", 1, image=(), ended=(0, 0)))
@example(Acknowledge("t", 1, image=(), prepared=(1,)))  # type: ignore[arg-type]
def test_what_is_stored_comes_back(report: Acknowledge) -> None:
    """A complete checkpoint that is called usable would not be, when the job has failed (rule 22)."""
    store = MemoryStore()
    store.begin(1)
    source = store.write(1, snapshot_of(Acknowledge("a", 1, position=3), "a", 0))
    refused = ""
    try:
        part = store.write(1, snapshot_of(report, "t", 0))
    except (LimitError, PlainValueError) as error:
        refused = str(error)
    if refused:
        assert len(refused.splitlines()) == 1
        return
    store.complete(Manifest(1, 1, True, (source, part)))
    restore = plan(store.latest_usable().checkpoint, WIRING)
    task = restore.tasks["t"]
    assert told(task.image) == told(report.image)
    assert (task.watermark_ms, task.ended, task.finished, task.prepared) == (
        report.watermark_ms,
        report.ended,
        report.finished,
        report.prepared,
    )
    restored_in_flight = [message for message in restore.channels["a>t"] if type(message) is Event]
    assert told(tuple(restored_in_flight)) == told(tuple(event for data in report.inflight for event in data.events))


@given(st.builds(Event, st.text(), st.integers(), st.integers(), PLAIN, PLAIN, st.integers(), st.integers()))
def test_an_event_with_any_plain_key_comes_back(event: Event) -> None:
    """A job keyed by a date, a pair or nothing could not be restored."""
    assert told(decode(encode(event))) == told(event)


@pytest.mark.parametrize(
    "event",
    [
        Event(1, 1),  # type: ignore[arg-type]
        Event("a", 1.0),  # type: ignore[arg-type]
        Event("a", True),
        Event("a", 1, None),  # type: ignore[arg-type]
        Event("a", 1, timestamp_ms=1.5),  # type: ignore[arg-type]
        Event("a", 1, size_bytes=None),  # type: ignore[arg-type]
        Watermark(1.5),  # type: ignore[arg-type]
        Watermark(True),
        Watermark(None),  # type: ignore[arg-type]
    ],
)
def test_a_message_that_would_not_come_back_is_refused(event: object) -> None:
    """It would be found when the checkpoint is needed, and not when it is taken."""
    with pytest.raises(LimitError):
        encode(event)


def test_a_barrier_comes_back() -> None:
    """As do all messages."""
    for message in (CheckpointBarrier(2**64 - 1, 0, 1), CancelBarrier(3), EndOfInput(), Watermark(-1)):
        assert decode(encode(message)) == message
