"""A defect looked for by random runs, and the run made small: what a property test of a team would find.

Hypothesis draws which of the moves is made; it draws the same on every machine.
"""

from __future__ import annotations

from typing import NamedTuple

from barrierlab.model.checkpoint.world import World
from barrierlab.model.defects.kinds.barrier import BarrierDefect

RUNS = 300
_LONGEST = 60


class RandomRuns(NamedTuple):
    """The result of random runs.

    Attributes
    ----------
    runs : int
        How many were made until one broke something; 0 if none did.
    steps : int
        Of the smallest that was found then.
    """

    runs: int
    steps: int


class _Broken(Exception):
    """A run broke something."""


def by_random_runs(defect: BarrierDefect) -> RandomRuns:
    """Look for a defect so; its scope is that of its entry."""
    from hypothesis import HealthCheck, Phase, given, settings  # an import of half a second
    from hypothesis import strategies as st

    world = World(defect.bounds, defect.components)
    made, first, smallest = 0, 0, 0

    @settings(
        max_examples=RUNS,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.integers(0, 11), max_size=_LONGEST))
    def runs(choices: list[int]) -> None:
        nonlocal made, first, smallest
        made += 1
        steps = _broken_after(world, choices)
        if steps is not None:
            first = first or made
            smallest = steps if not smallest else min(smallest, steps)
            raise _Broken

    try:
        runs()
    except _Broken:
        return RandomRuns(first, smallest)
    return RandomRuns(0, 0)


def _broken_after(world: World, choices: list[int]) -> int | None:
    """Return after how many moves a run breaks something; None if it does not."""
    state, made = world.start(), 0
    for choice in choices:
        moves = world.moves(state)
        if not moves:
            break
        state, made = world.after(state, moves[choice % len(moves)]), made + 1
        if world.broken(state):
            return made
    for move in world.settle(state)[0]:
        state, made = world.after(state, move), made + 1
        if world.broken(state):
            return made
    return made if world.liveness_violation(state) else None
