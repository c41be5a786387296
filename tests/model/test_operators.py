"""Operators are deterministic, their images never change, and a restored one goes on as the first would have."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl.checkpoint.report import digest
from barrierlab.impl.messages import Event
from barrierlab.model.checkpoint.operators import KINDS, BaseOperator, OperatorError, make

OWN: dict[str, dict[str, object]] = {"window": {"window_ms": 4}, "join": {"window_ms": 4}}


def new(kind: str) -> BaseOperator:
    """An operator of two inputs."""
    return make(kind, name="t", inputs=2, sides=(0, 1), **OWN.get(kind, {}))


def carried(event: Event) -> tuple[object, ...]:
    """All that an event carries; `==` on events compares names alone."""
    return event.source, event.sequence, event.part, event.key, event.value, event.timestamp_ms, event.size_bytes


def answers(operator: BaseOperator, inputs: list[tuple[int, Event | int]]) -> list[tuple[object, ...]]:
    """All that comes of events and watermarks."""
    outputs: list[Event] = []
    for input_id, what in inputs:
        outputs += operator.process(input_id, what) if isinstance(what, Event) else operator.on_watermark(what)
    return [carried(event) for event in outputs]


def texts(events: object) -> list[str]:
    """Events by name."""
    return [str(event) for event in events]  # type: ignore[attr-defined]


keys = st.integers(0, 3) | st.sampled_from("xyz")
an_input = st.tuples(
    st.integers(0, 1),
    st.builds(
        Event, st.sampled_from("ab"), st.integers(1, 9), key=keys, value=st.integers(), timestamp_ms=st.integers(0, 20)
    )
    | st.integers(0, 20),
)
inputs = st.lists(an_input, max_size=20)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, derandomize=True, deadline=None)
@given(before=inputs, after=inputs)
def test_an_image_stands_still_and_starts_again(
    kind: str, before: list[tuple[int, Event | int]], after: list[tuple[int, Event | int]]
) -> None:
    """A snapshot would hold what came after it, or a restored task would answer otherwise than the one that failed."""
    operator, restored = new(kind), new(kind)
    answers(operator, before)
    image = operator.checkpoint()
    kept = copy.deepcopy(image)
    hash(image)
    first = answers(operator, after)
    assert image == kept
    restored.restore(image)
    assert answers(restored, after) == first
    assert digest(restored.checkpoint()) == digest(operator.checkpoint())


def test_a_map_keeps_the_name() -> None:
    """The lineage of an event would break at a map."""
    (event,) = make("map", size_bytes=9).process(0, Event("a", 1, part=2, key="k", value=5, timestamp_ms=7))
    assert carried(event) == ("a", 1, 2, "k", 5, 7, 9)
    passed = Event("a", 1)
    assert list(make("map").process(0, passed)) == [passed]


def test_parts_of_parts_differ() -> None:
    """Two flat maps in a row would give two events one name, and NOLOSS could not tell them apart."""
    flat = make("flat_map", fanout=2)
    parts = [part for event in flat.process(0, Event("a", 1)) for part in flat.process(0, event)]
    assert texts(parts) == ["a1.3", "a1.4", "a1.5", "a1.6"]
    assert list(make("flat_map", fanout=0).process(0, Event("a", 1))) == []


def test_a_filter_is_a_stable_hash() -> None:
    """Runs would differ between processes, or the share that passes would not be the one that was asked for."""
    events = [Event("a", n) for n in range(1, 2001)]
    passed = [event.sequence for event in events if list(make("filter", selectivity=0.25).process(0, event))]
    assert passed[:5] == [10, 17, 18, 23, 34]
    assert 450 < len(passed) < 550
    assert not any(list(make("filter", selectivity=0).process(0, event)) for event in events)
    assert all(list(make("filter", selectivity=1).process(0, event)) for event in events)


def test_an_aggregate_counts_and_sums_by_key() -> None:
    """Totals would mix keys."""
    operator = make("aggregate", name="sum")
    out = [e for n, key in enumerate("xyx", 1) for e in operator.process(0, Event("a", n, key=key, value=n))]
    assert [(str(e), e.key, e.value) for e in out] == [
        ("sum1", "x", (1, 1)),
        ("sum2", "y", (1, 2)),
        ("sum3", "x", (2, 4)),
    ]


def test_a_window_is_sent_with_the_watermark_of_its_last_millisecond() -> None:
    """A window would be sent before all of it is in, or too late."""
    operator = make("window", name="win", window_ms=10)
    for n, at in enumerate((0, 9, 10), 1):
        assert list(operator.process(0, Event("a", n, value=n, timestamp_ms=at))) == []
    assert list(operator.on_watermark(8)) == []
    (event,) = operator.on_watermark(9)
    assert (str(event), event.value, event.timestamp_ms) == ("win1", (2, 3), 9)
    assert list(operator.process(0, Event("a", 4, timestamp_ms=9))) == []
    assert operator.late == 1
    assert texts(operator.on_end(0)) == ["win2"]


def test_a_window_waits_for_its_last_input() -> None:
    """The end of one input would send windows that another still adds to."""
    operator = make("window", name="win", window_ms=10, inputs=2)
    operator.process(0, Event("a", 1))
    assert list(operator.on_end(0)) == []
    assert texts(operator.on_end(1)) == ["win1"]


def test_a_join_pairs_sides_within_a_window() -> None:
    """Events would be joined with their own side, with another key's or another window's."""
    operator = make("join", name="j", window_ms=10, sides=(0, 0, 1))
    left, right = (
        Event("a", 1, key="k", timestamp_ms=1, size_bytes=3),
        Event("b", 1, key="k", timestamp_ms=9, size_bytes=4),
    )
    assert list(operator.process(0, left)) == []
    assert list(operator.process(1, Event("a", 2, key="other", timestamp_ms=1))) == []
    (pair,) = operator.process(2, right)
    assert carried(pair) == ("j", 1, 0, "k", ("a1", "b1"), 9, 7)
    assert list(operator.process(2, Event("b", 2, key="k", timestamp_ms=10))) == []


def test_a_join_forgets_what_the_watermark_has_passed() -> None:
    """The state of a join would grow for ever."""
    operator = make("join", name="j", window_ms=10)
    operator.process(0, Event("a", 1, timestamp_ms=1))
    operator.process(0, Event("a", 2, timestamp_ms=11))
    operator.on_watermark(9)
    assert list(operator.windows) == [10]
    assert list(operator.process(1, Event("b", 1, timestamp_ms=1))) == []
    assert operator.late == 1


def test_a_sink_counts() -> None:
    """The outputs at the end of the dataflow could not be compared between runs."""
    sink = make("sink")
    for n in (1, 2):
        assert list(sink.process(0, Event("a", n))) == []
    assert sink.checkpoint() == (2, (("a", 2),))


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("flatmap", {}, "no operator kind 'flatmap'; did you mean 'flat_map'?"),
        ("map", {"fanout": 2}, "operator 'map' has no parameter 'fanout'; there are: size_bytes"),
        ("union", {"fanout": 2}, "operator 'union' has no parameter 'fanout'; there are: none"),
        ("window", {"window": 2}, "operator 'window' has no parameter 'window'; did you mean 'window_ms'?"),
        ("window", {"window_ms": 0}, "window_ms is 0; it must be a whole number from 1 on"),
        ("flat_map", {"fanout": 1.5}, "fanout is 1.5; it must be a whole number from 0 on"),
        ("filter", {"selectivity": 1.5}, "selectivity is 1.5; it must be a number from 0 to 1"),
        ("join", {"sides": (0, 1, 2)}, "sides are (0, 1, 2); a join has two, 0 and 1: give it two edges in"),
    ],
)
def test_what_is_no_operator(kind: str, parameters: dict[str, object], message: str) -> None:
    """A scenario with a wrong parameter would run with another one."""
    with pytest.raises(OperatorError) as error:
        make(kind, **parameters)
    assert str(error.value) == message
