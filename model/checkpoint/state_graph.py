"""The states of a scope around one run of it, and every move between them: what else could have happened.

The run is found again in the world by what its moves did, so that a trace is enough. Then the states next to it are
explored, those nearest first and without any reduction, until there are as many as a page holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from barrierlab.model.checkpoint.task_transitions import Note
from barrierlab.model.checkpoint.world import Move, World, WorldState
from barrierlab.model.explore.checker import UndecidedError
from barrierlab.model.spec.history import Entry

MOST_STATES = 5_000


@dataclass(slots=True)
class Edge:
    """A move of a state.

    Attributes
    ----------
    text : str
    notes : list of Note
        What happens: entries of a journal without their time, the move first.
    target : int or None
        The state that it leads to; None if that is not among those that are kept.
    """

    text: str
    notes: list[Note]
    target: int | None


@dataclass(slots=True)
class StateGraph:
    """States by number, those of the run first.

    Attributes
    ----------
    edges : list of list of Edge
        By state.
    wrong : dict of int to str
        What is broken in a state.
    path : list of (int, int or None)
        The run: each state, and the place of the move that it takes there; None at its end.
    """

    edges: list[list[Edge]] = field(default_factory=list)
    wrong: dict[int, str] = field(default_factory=dict)
    path: list[tuple[int, int | None]] = field(default_factory=list)

    @property
    def is_all(self) -> bool:
        """Return whether the scope has no other states."""
        return all(edge.target is not None for its in self.edges for edge in its)


def state_graph(world: World, entries: Sequence[Entry], most: int = MOST_STATES, reason: str = "") -> StateGraph | None:
    """Return the states around a run, or None if it is no run of this world.

    Parameters
    ----------
    world : World
    entries : sequence of Entry
        The run: what happens in a move has one time.
    most : int
        How many states are kept.
    reason : str
        What is broken where the run ends, if it breaks something.
    """
    states = [world.start()]
    choices: list[int | None] = []
    for _, group in groupby(entries, key=lambda entry: entry[0]):
        its = [entry[1:] for entry in group]
        steps = enumerate(_steps(world, states[-1]))
        found = next(((choice, after) for choice, (_, after, notes) in steps if notes == its), None)
        if found is None:
            return None
        choices.append(found[0])
        states.append(found[1])
    numbers = {state: number for number, state in enumerate(dict.fromkeys(states))}
    graph = _explored(world, numbers, most)
    graph.path = [(numbers[state], choice) for state, choice in zip(states, [*choices, None], strict=True)]
    if reason:
        graph.wrong.setdefault(numbers[states[-1]], reason)
    return graph


def _explored(world: World, numbers: dict[WorldState, int], most: int) -> StateGraph:
    """The states of the run, which `numbers` has, and those nearest to it, which it gets."""
    graph = StateGraph()
    order = list(numbers)
    on_run = set(order)
    for number, state in enumerate(order):  # which grows meanwhile
        graph.edges.append([])
        if (broken := world.broken(state)) is not None:
            graph.wrong[number] = broken
            if state not in on_run:
                continue  # what a machine does behind a violation says nothing
        for move, after, notes in _steps(world, state):
            target = numbers.get(after)
            if target is None and len(order) < most:
                target = numbers[after] = len(order)
                order.append(after)
            graph.edges[number].append(Edge(move.text, notes, target))
        if not graph.edges[number] and number not in graph.wrong:
            try:
                stuck = world.liveness_violation(state)
            except UndecidedError:
                stuck = None
            if stuck is not None:
                graph.wrong[number] = stuck
    return graph


def _steps(world: World, state: WorldState) -> Iterator[tuple[Move, WorldState, list[Note]]]:
    """Yield each move, what it leads to and what it does; where nothing else can happen, a source may end."""
    moves = world.moves(state)
    if not any(not move.is_fault for move in moves):
        moves = [*moves, *(move for move in world.close_sources(state) if move not in moves)]
    for move in moves:
        yield move, *world.noted(state, move)
