"""The breadth of a search at random: all of it in `make test-full`, a part in `make test`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

IN_TEN = 2
"""So many tenths of the examples does a property see in a run without slow tests."""

is_whole = True


def first(values: Sequence[T], count: int = 1) -> Sequence[T]:
    """Return the values that something is asked of: all of them, or the first ones alone."""
    return values if is_whole else values[:count]


def examples(count: int) -> int:
    """Return how many examples a property is asked of, of `count`."""
    return count if is_whole else max(10, count * IN_TEN // 10)
