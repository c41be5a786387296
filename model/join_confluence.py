"""Whether the outputs of a join depend on the order in which things happen: all orders, breadth first.

Each script is a list of moves that keep their order, such as the frames of one stream; a move is a function of the
world. From each state every script may move next, and between any two moves the stage may run or not. States are
values (`JoinWorld.capture`), so equal ones are looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from model.join_invariants import judge_join
from model.join_world import JoinWorld

Move = Callable[[JoinWorld], object]


@dataclass(frozen=True, slots=True)
class Confluence:
    """What all orders come to.

    Attributes
    ----------
    outcomes : frozenset of tuple
        What became of the outputs, once for each way in which it can end.
    states, transitions : int
        How many states there are, and moves that were made.
    violations : tuple of str
        What is wrong with the journal of a step, of the first state in which something is.
    """

    outcomes: frozenset[tuple[object, ...]]
    states: int
    transitions: int
    violations: tuple[str, ...]

    @property
    def is_confluent(self) -> bool:
        """Whether there is one outcome."""
        return len(self.outcomes) == 1


class TooManyStatesError(ValueError):
    """There are more states than were allowed."""


def explore(make: Callable[[], JoinWorld], scripts: Sequence[Sequence[Move]], most: int = 200_000) -> Confluence:
    """Every order of the moves of `scripts`, and of the stage's attempts between them.

    Parameters
    ----------
    make : callable
        A world at its beginning.
    scripts : sequence of sequence of callable
    most : int
        States to look at before giving up.

    Raises
    ------
    TooManyStatesError
        If there are more.
    """
    world = make()
    beginning = (0,) * len(scripts), world.capture()
    paths: dict[tuple[tuple[int, ...], Hashable], list[tuple[int, str, int, object]]] = {beginning: list(world.entries)}
    queue = [beginning]
    outcomes: set[tuple[object, ...]] = set()
    transitions = 0
    for places, state in queue:
        journal = paths[places, state]
        moved = False
        for number, script in enumerate(scripts):
            if places[number] < len(script):
                moved = True
                transitions += 1
                after = tuple(place + (index == number) for index, place in enumerate(places))
                _visit(world, state, after, script[places[number]], journal, paths, queue)
        for step in (_begin, _end):
            if _visit(world, state, places, step, journal, paths, queue):
                moved = True
                transitions += 1
        if not moved or all(place == len(script) for place, script in zip(places, scripts, strict=True)):
            world.restore(state)
            world.run(0)
            outcomes.add(tuple(world.outcomes))
        wrong = judge_join(journal, world.spec).violations
        if wrong:
            return Confluence(frozenset(outcomes), len(paths), transitions, tuple(map(str, wrong)))
        if len(paths) > most:
            raise TooManyStatesError(f"more than {most} states: take shorter scripts, or raise most")
    return Confluence(frozenset(outcomes), len(paths), transitions, ())


def _begin(world: JoinWorld) -> bool:
    return world.stage.attempt is None and world.try_next(0)


def _end(world: JoinWorld) -> bool:
    if world.stage.attempt is None:
        return False
    world.end(0)
    return True


def _visit(
    world: JoinWorld,
    state: Hashable,
    places: tuple[int, ...],
    move: Move,
    journal: list[tuple[int, str, int, object]],
    paths: dict[tuple[tuple[int, ...], Hashable], list[tuple[int, str, int, object]]],
    queue: list[tuple[tuple[int, ...], Hashable]],
) -> bool:
    """Make a move from a state; whether it led anywhere new or known."""
    world.restore(state)
    if move(world) is False:
        return False
    reached = places, world.capture()
    if reached not in paths:
        paths[reached] = journal + world.entries
        queue.append(reached)
    return True
