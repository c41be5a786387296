"""A protocol as data: rows that name a situation and list, in order, what is done about it.

Exactly one row applies whatever happens; `Table.row_for` checks that on every step. The idea is h11's, whose state
machine is a dictionary that its documentation is drawn from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from barrierlab.model.checkpoint.tables.stimuli import Effect

V = TypeVar("V")  # what the rows are about, as a value: a gate, or the upstreams of a processor
H = TypeVar("H")  # what can happen there

Step = tuple[V, tuple[Effect, ...]]
Guard = Callable[[V, H], bool]
Action = Callable[[V, H], Step[V]]


class TableError(Exception):
    """Not exactly one row applies, or there is none of that name: a fault of the table, or of the driver."""


@dataclass(frozen=True, slots=True)
class Row(Generic[V, H]):
    """A row: if every guard of `when` holds, the actions of `then` are done, in order."""

    name: str
    when: tuple[Guard[V, H], ...]
    then: tuple[Action[V, H], ...]

    def __str__(self) -> str:
        """Return the row in Markdown."""
        return f"| {self.name} | {phrase(self.when)} | {phrase(self.then) or 'nothing'} |"


class Table(Generic[V, H]):
    """Rows, of which exactly one applies to anything that can happen.

    Attributes
    ----------
    rows : tuple of Row
    theory : str
        The idea of the protocol, its invariant and its sources, to be read before the rows.
    not_said : str
        What belongs to the protocol and is not in the rows, and where it is.
    used : Counter of str
        How often each row has applied.

    Raises
    ------
    TableError
        If two rows have one name.
    """

    def __init__(self, *rows: Row[V, H], theory: str | None = None, not_said: str = "") -> None:
        self.rows, self.theory, self.not_said = rows, theory or "", not_said
        self.used: Counter[str] = Counter()
        names = [row.name for row in rows]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise TableError(f"two rows are called {', '.join(twice)}; allowed: one of each name; rename one")
        self._tree: _Branch[V, H] = _Branch()
        for row in rows:
            self._tree.add(row, row.when)

    def row_for(self, value: V, stimulus: H) -> Row[V, H]:
        """The row that applies.

        Raises
        ------
        TableError
            If none applies, or several do.
        """
        found: list[Row[V, H]] = []
        self._tree.find(value, stimulus, found)
        if len(found) != 1:
            names = ", ".join(row.name for row in found) or "none"
            raise TableError(f"{stimulus} at {value}: {names} of the rows apply; allowed: exactly one; mend the guards")
        self.used[found[0].name] += 1
        return found[0]

    def row(self, name: str) -> Row[V, H]:
        """The row of that name.

        Raises
        ------
        TableError
            If there is none.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise TableError(f"no row is called {name!r}; there are {', '.join(row.name for row in self.rows)}; name one")

    def changed(
        self, name: str, then: Sequence[Action[V, H]] | None = None, when: Sequence[Guard[V, H]] | None = None
    ) -> Table[V, H]:
        """This table with other actions, or other guards, in one row: how a defect is written down.

        Raises
        ------
        TableError
            If there is no such row.
        """
        old = self.row(name)
        new = replace(
            old,
            then=old.then if then is None else tuple(then),
            when=old.when if when is None else tuple(when),
        )
        rows = (new if row is old else row for row in self.rows)
        return Table(*rows, theory=self.theory, not_said=self.not_said)

    def lines(self, states: Mapping[str, str] | None = None) -> Iterator[str]:
        """Yield the table in Markdown; with the states in which each row applies, by the row's name."""
        if states is None:
            yield from ("| situation | when | then |", "| --- | --- | --- |", *map(str, self.rows))
            return
        yield from ("| state | situation | when | then |", "| --- | --- | --- | --- |")
        yield from (f"| {states[row.name]} {row}" for row in self.rows)


class Traced(Table[V, H]):
    """A table that keeps what was looked up in it: the value and the row that applied, in order."""

    def __init__(self, table: Table[V, H]) -> None:
        super().__init__(*table.rows)
        self.found: list[tuple[V, Row[V, H]]] = []

    def row_for(self, value: V, stimulus: H) -> Row[V, H]:
        """Return the row that applies, and keep it."""
        self.found.append((value, super().row_for(value, stimulus)))
        return self.found[-1][1]


class _Branch(Generic[V, H]):
    """Rows by what they ask in turn, so that what many of them ask first is asked once."""

    __slots__ = ("branches", "rows")

    def __init__(self) -> None:
        self.rows: list[Row[V, H]] = []
        self.branches: dict[Guard[V, H], _Branch[V, H]] = {}

    def add(self, row: Row[V, H], when: Sequence[Guard[V, H]]) -> None:
        """Put the row where the guards `when` lead."""
        if not when:
            self.rows.append(row)
            return
        first, *others = when
        self.branches.setdefault(first, _Branch()).add(row, others)

    def find(self, value: V, stimulus: H, found: list[Row[V, H]]) -> None:
        """Add to `found` the rows of which every guard holds."""
        found += self.rows
        for guard, branch in self.branches.items():
            if guard(value, stimulus):
                branch.find(value, stimulus, found)


def phrase(functions: Sequence[Callable[..., object]]) -> str:
    """The names of guards or actions, as words."""
    return ", ".join(function.__name__.replace("_", " ") for function in functions)
