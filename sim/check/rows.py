"""States as rows of numbers, in sorted runs on disk: what is new among many, without any of them in a set.

A state is kept whole. Rows are sorted by a hash of theirs, and compared in full where two hashes are equal.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

State = tuple[int, ...]
Array = Any
"""Of numpy; its types say no more about a shape."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class SortedRows(NamedTuple):
    """Some states, sorted by hash.

    Attributes
    ----------
    hashes : array of uint64
    rows : array of uint32
        A state each.
    """

    hashes: Array
    rows: Array


def rows_of(states: Iterable[State], width: int) -> Array:
    """States as an array of rows."""
    return np.array(array("I", chain.from_iterable(states)), dtype=np.uint32).reshape(-1, width)


def states_of(rows: Array) -> Iterator[State]:
    """Yield the rows as tuples."""
    return zip(*(rows[:, column].tolist() for column in range(rows.shape[1])), strict=True)


def numbers(values: Sequence[int]) -> Array:
    """Return whole numbers as an array of them: of its own, numpy makes fractions of large ones among small ones."""
    return np.array(values, dtype=np.uint64)


def hashes_of(rows: Array) -> Array:
    """Return a number for each row, equal for equal rows, in every process."""
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in range(rows.shape[1]):
        hashes ^= rows[:, column]
        hashes *= _ODD
        hashes ^= hashes >> _SHIFT
    return hashes


def distinct(rows: Array) -> SortedRows:
    """Sort rows, each once.

    >>> distinct(rows_of([(1, 2), (3, 4), (1, 2)], 2)).rows.shape
    (2, 2)
    """
    hashes = hashes_of(rows)
    order = np.argsort(hashes, kind="stable")
    hashes, rows = hashes[order], rows[order]
    if len(rows) > 1:
        near = hashes[1:] == hashes[:-1]
        same = near & (rows[1:] == rows[:-1]).all(axis=1)
        if (near & ~same).any():  # two rows of one hash: equal ones need not be side by side
            rows = np.unique(rows, axis=0)
            hashes = hashes_of(rows)
            order = np.argsort(hashes, kind="stable")
            return SortedRows(hashes[order], rows[order])
        first = np.concatenate(([True], ~same))
        hashes, rows = hashes[first], rows[first]
    return SortedRows(hashes, rows)


def without(run: SortedRows, known: SortedRows) -> SortedRows:
    """Leave out of a run what is in another."""
    if not len(known.hashes) or not len(run.hashes):
        return run
    places: Array = np.searchsorted(known.hashes, run.hashes)
    inside = np.minimum(places, len(known.hashes) - 1)
    near = (places < len(known.hashes)) & (known.hashes[inside] == run.hashes)
    is_known = near.copy()
    is_known[near] = (known.rows[inside[near]] == run.rows[near]).all(axis=1)
    for at in np.flatnonzero(near & ~is_known).tolist():  # another row of the same hash comes first
        place = int(places[at])
        while place < len(known.hashes) and known.hashes[place] == run.hashes[at]:
            is_known[at] |= bool((known.rows[place] == run.rows[at]).all())
            place += 1
    return SortedRows(run.hashes[~is_known], run.rows[~is_known])


def merged(runs: Sequence[SortedRows]) -> SortedRows:
    """Return several runs, of which no two have a state in common, as one."""
    hashes = np.concatenate([run.hashes for run in runs])
    order = np.argsort(hashes, kind="stable")
    return SortedRows(hashes[order], np.concatenate([run.rows for run in runs])[order])


def save(path: Path, rows: Array) -> None:
    """Write an array, whole or not at all."""
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("wb") as file:
        np.save(file, rows)
    unfinished.replace(path)


def load(path: Path) -> Array:
    """Read an array, page by page as it is looked at."""
    return np.load(path, mmap_mode="r")


class Visited:
    """The states of one partition that were found in earlier levels: sorted runs on disk, few and of growing size.

    Parameters
    ----------
    folder : Path
    partition : int
    level : int
        That which is looked for now. What an attempt wrote for it that did not come to its end is written again.
    """

    def __init__(self, folder: Path, partition: int, level: int) -> None:
        self._folder, self._partition, self._level = folder, partition, level
        listed = folder / f"runs-{partition}-{level - 1}.txt"
        self._names = listed.read_text().split() if level else []

    def new(self, rows: Array) -> SortedRows:
        """Return those of the rows that were not found before, each once."""
        run = distinct(rows)
        for name in self._names:
            run = without(run, self._run(name))
        return run

    def add(self, run: SortedRows) -> None:
        """Keep the states of this level, and merge runs so that each is at least twice as large as the one behind."""
        runs, names = [run], [*self._names]
        size = len(run.hashes)
        while names and len(load(self._folder / f"{names[-1]}.hashes")) < 2 * size:
            runs.append(self._run(names.pop()))
            size += len(runs[-1].hashes)
        whole = merged(runs) if len(runs) > 1 else run
        name = f"run-{self._partition}-{self._level}"
        save(self._folder / f"{name}.hashes", whole.hashes)
        save(self._folder / f"{name}.rows", whole.rows)
        listed = self._folder / f"runs-{self._partition}-{self._level}.txt"
        unfinished = listed.with_suffix(".part")
        unfinished.write_text("\n".join([*names, name]))
        unfinished.replace(listed)

    def _run(self, name: str) -> SortedRows:
        return SortedRows(load(self._folder / f"{name}.hashes"), load(self._folder / f"{name}.rows"))
