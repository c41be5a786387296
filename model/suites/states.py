"""The states of a protocol, and the rows that lead from one to another: seen by exploring its table, written nowhere.

A state is what a reader calls the situation of the inputs: ``idle``, ``aligning``, ``recording`` (`GateState.state`,
`Upstreams.state`). The explorer runs a table through its small scopes, and each use of a row is an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

from barrierlab.impl.control import Carrier
from barrierlab.model.checkpoint.gate_scopes import SCOPES as GATES
from barrierlab.model.checkpoint.refinement import GateSteps, run
from barrierlab.model.checkpoint.tables.gate import GateState
from barrierlab.model.control.refinement import SCOPES as UPSTREAMS
from barrierlab.model.control.refinement import open_to
from barrierlab.model.control.upstreams import ControlStimulus, Upstreams
from barrierlab.model.errors import InputError
from barrierlab.model.explore.checker import explore
from barrierlab.model.explore.table import Row, Traced
from barrierlab.model.suites.tables import TABLES


class StateEdge(NamedTuple):
    """A row that applied in `state` and led to `reached`."""

    state: str
    row: str
    reached: str


class _Observed:
    """The values of a table and all that may happen to them, as a system to explore that notes its edges."""

    def __init__(
        self,
        table: Traced[Any, Any],
        start: Any,
        moves: Callable[[Any], Sequence[Any]],
        after: Callable[[Any, Any], Any],
    ) -> None:
        self.edges: set[StateEdge] = set()
        self.moves = moves
        self._table, self._start, self._after = table, start, after

    def start(self) -> Any:
        """Return the value at which nothing has happened."""
        return self._start

    def after(self, value: Any, move: Any) -> Any:
        """Return the value after the move, and note each row that applied on the way."""
        self._table.found.clear()
        reached = self._after(value, move)
        states = [*(before.state for before, _ in self._table.found), reached.state]
        for (_, row), (state, to) in zip(self._table.found, pairwise(states), strict=True):
            self.edges.add(StateEdge(state, row.name, to))
        return reached


def _open_to(stimuli: Sequence[ControlStimulus], upstreams: Upstreams) -> list[ControlStimulus]:
    return open_to(upstreams, stimuli)


def _systems(name: str) -> Iterator[_Observed]:
    table: Traced[Any, Any] = Traced(TABLES[name])
    for gate in GATES:
        if gate.protocol == name and not gate.slow:
            steps = GateSteps(gate.stimuli, gate.answers)
            yield _Observed(
                table, GateState.new(table, gate.rules), steps.moves, lambda value, move: run(value, move)[0]
            )
    for scope in UPSTREAMS:
        if name == scope.protocol:
            start = Upstreams(table, Carrier.CONTROL, scope.expected)
            yield _Observed(table, start, partial(_open_to, scope.stimuli), lambda value, move: value.step(move)[0])


@cache
def edges(name: str) -> tuple[StateEdge, ...]:
    """Return all edges of the protocol's table, in the order of its rows.

    Parameters
    ----------
    name : str
        One of `TABLES`.
    """
    found: set[StateEdge] = set()
    for system in _systems(name):
        explore(system)
        found |= system.edges
    rows: Sequence[Row[Any, Any]] = TABLES[name].rows
    order = {row.name: place for place, row in enumerate(rows)}
    return tuple(sorted(found, key=lambda edge: (order[edge.row], edge)))


def states_of_rows(name: str) -> dict[str, str]:
    """Return of each row the states in which it applies, in a phrase.

    Raises
    ------
    InputError
        If a row applies in no scope that is explored, as in a table that is new.
    """
    of: dict[str, list[str]] = {row.name: [] for row in TABLES[name].rows}
    for edge in edges(name):
        if edge.state not in of[edge.row]:
            of[edge.row].append(edge.state)
    if unused := [row for row, states in of.items() if not states]:
        raise InputError(
            f"table {name!r}: no quick scope uses {', '.join(unused)}; allowed: each row in one; add what uses it to "
            "model/checkpoint/gate_scopes.py (of control, model/control/refinement.py)"
        )
    return {row: ", ".join(states) for row, states in of.items()}


def page(name: str) -> Iterator[str]:
    """Yield the lines of a page in Markdown: the theory, the table with its states, what the table does not say."""
    table = TABLES[name]
    title, _, theory = table.theory.strip().partition("\n")
    yield from (f"# {title}", *theory.splitlines(), "")
    yield from table.lines(states_of_rows(name))
    yield from ("", "What this table does not say:", "", *table.not_said.splitlines())


def mermaid(name: str) -> Iterator[str]:
    """Yield the lines of a state diagram in Mermaid: an arrow for each pair of states, labelled with its rows.

    Rows that leave a state as it is stand in a note beside it. A label of Mermaid may buffer no colon.
    """
    arrows: dict[tuple[str, str], list[str]] = {}
    for edge in edges(name):
        arrows.setdefault((edge.state, edge.reached), []).append(edge.row.replace(":", ","))
    yield "stateDiagram-v2"
    yield "    [*] --> idle"
    for (state, reached), rows in arrows.items():
        if state != reached:
            yield f"    {state} --> {reached}: {', '.join(rows)}"
    for (state, reached), rows in arrows.items():
        if state == reached:
            yield f"    note right of {state}: stays on {', '.join(rows)}"
