"""Updates and questions allocate nothing that stays, and cost the same whatever has been seen (section 5)."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from barrierlab.impl.join.barrier import JoinBarrier
from barrierlab.impl.join.merge_map import MAX_U64
from tests.join.support import FRAME, at, at_ns, latest, numbers, sequence, times, timestamp, window, window_ns

FIRST, LAST = 300, 5300  # above the integers that Python keeps


def by_number(make: Any) -> tuple[Callable[[int], object], Any]:
    """One round of a barrier that goes by numbers: two frames, two questions."""
    barrier = make(numbers(at(1), window(2, 3), stale=10**9))

    def step(n: int) -> None:
        barrier.observe(1, 1, n, n)
        barrier.ready(n, n)
        barrier.observe(2, 1, n, n)
        barrier.ready(n, n)

    return step, barrier


def by_time(make: Any) -> tuple[Callable[[int], object], Any]:
    """The same by times."""
    barrier = make(times(at_ns(1), window_ns(2, 5), late=2, stale=10**9))

    def step(n: int) -> None:
        barrier.observe_time(1, 1, FRAME, n, n)
        barrier.ready(n, n)
        barrier.observe_time(2, 1, FRAME, n, n)
        barrier.ready(n, n)

    return step, barrier


EACH = pytest.mark.parametrize(
    ("make", "of"),
    [
        (by_number, sequence),
        (by_number, lambda said: sequence(said, use_processed=True)),
        (by_time, timestamp),
        (by_number, latest),
        (by_time, lambda said: latest(said, by_timestamp=True)),
    ],
    ids=["sequence", "sequence with processed", "timestamp", "latest", "latest by time"],
)


@EACH
def test_nothing_that_is_allocated_stays(make: Any, of: Any) -> None:
    """A join that runs for a month would eat up its memory (section 5: a MUST)."""
    step, _ = make(of)
    for n in range(FIRST):
        step(n)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for n in range(FIRST, LAST):
            step(n)
        now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now - before < 600  # the newest numbers themselves
    assert most - before < 2000  # and nothing much in between


@EACH
def test_a_step_costs_the_same_at_any_time(make: Any, of: Any) -> None:
    """An update would get slower with every frame that came before it. Lines that are run are counted, not time."""
    step, barrier = make(of)

    def lines_of(n: int) -> int:
        count = 0

        def trace(*_: Any) -> Any:
            nonlocal count
            count += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            step(n)
        finally:
            sys.settrace(before)
        return count

    step(0)
    step(10)
    early = lines_of(11)
    for n in range(12, LAST):
        step(n)
    assert lines_of(LAST) == early
    assert len(repr(barrier.capture())) < 2000


@pytest.mark.parametrize("of", [sequence, latest])
@pytest.mark.parametrize("out", [5, MAX_U64])
def test_an_output_that_is_plainly_ready_is_answered_the_short_way(
    of: Any, out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first output that may be asked for, the last, or one of an input as old as it may be would cost more."""
    barrier = of(numbers(at(1, -1), stale=10))
    barrier.accept(4)
    barrier.observe(1, 1, MAX_U64 - 1, 0)
    monkeypatch.setattr(JoinBarrier, "in_full", lambda *_: pytest.fail("the long way"))
    assert barrier.ready(out, 10).name == "READY"
