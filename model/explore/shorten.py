"""A run that goes wrong, without whatever it does not need for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

M = TypeVar("M")
Parted = tuple[int, str]
"""The number of the move at which a run goes wrong, and how."""


def shortened(
    moves: list[M],
    parts_at: Callable[[Sequence[M]], Parted | None],
    weaker: Callable[[M], Sequence[M]] = lambda _: (),
) -> tuple[list[M], str]:
    """Return the run from which no move can be left out, nor replaced by a weaker one, and how it goes wrong.

    Parameters
    ----------
    moves : list
        Of a run that goes wrong.
    parts_at : callable
        Makes a run; None if it does not go wrong.
    weaker : callable
        What may stand in the place of a move.
    """
    while True:
        for other in _others(moves, weaker):
            if (parted := parts_at(other)) is not None:
                moves = other[: parted[0] + 1]
                break
        else:
            parted = parts_at(moves)
            assert parted is not None
            return moves, parted[1]


def _others(moves: list[M], weaker: Callable[[M], Sequence[M]]) -> Iterator[list[M]]:
    for at in reversed(range(len(moves))):
        yield [*moves[:at], *moves[at + 1 :]]
        yield from ([*moves[:at], other, *moves[at + 1 :]] for other in weaker(moves[at]))
