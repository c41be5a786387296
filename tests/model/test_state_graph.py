"""The states around a run: they are those that the explorer sees, and the page takes their moves as the world does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from barrierlab.model.checkpoint.check import properties
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.state_graph import MOST_STATES, state_graph
from barrierlab.model.checkpoint.trace import lines_of
from barrierlab.model.checkpoint.world import World
from barrierlab.model.explore.checker import explore
from barrierlab.model.render.explorable import MODULE, data_of, page
from barrierlab.model.spec.history import Entry
from tests.browser import evaluate

SMALL = Bounds("a->s", events=1, checkpoints=1, cancels=1)
LARGE = Bounds("a->j b->j j->s", events=2, checkpoints=2, mode="unaligned")
FAILS = Bounds("a->s", events=1, checkpoints=1, crashes=1, guarantee="exactly_once")


def any_run(bounds: Bounds, seed: int, most: int = 40) -> list[Entry]:
    """A run of the world, any one."""
    world, draw, taken = World(bounds), random.Random(seed), []
    state = world.start()
    while len(taken) < most and (moves := world.moves(state)):
        taken.append(draw.choice(moves))
        state = world.after(state, taken[-1])
    return world.journal(taken)


@pytest.mark.parametrize("bounds", [SMALL, FAILS], ids=["abort", "crash"])
def test_a_small_scope_is_there_as_a_whole(bounds: Bounds) -> None:
    """A reader would hear that a move cannot be made, or leads nowhere, that the explorer makes."""
    graph = state_graph(World(bounds), any_run(bounds, 1))
    world = World(bounds)
    counts = explore(world, properties(world)).counts
    assert graph is not None
    assert graph.is_all
    ends = [edge for its in graph.edges for edge in its if edge.text.startswith("close ")]
    assert len(graph.edges) >= counts.states
    assert sum(map(len, graph.edges)) - len(ends) >= counts.transitions
    assert not graph.wrong


def test_of_a_large_scope_those_nearest_to_the_run_are_kept() -> None:
    """The moves of the counterexample's own states would be left out."""
    graph = state_graph(World(LARGE), any_run(LARGE, 2), most=500)
    assert graph is not None
    assert (len(graph.edges), graph.is_all) == (500, False)
    on_run = {state for state, _ in graph.path}
    assert all(edge.target is not None for state in on_run for edge in graph.edges[state])


def test_a_run_of_another_machine_is_not_found() -> None:
    """The page of a broken aligner's run would offer the moves of the sound one."""
    entries = any_run(SMALL, 1)
    assert state_graph(World(SMALL), [*entries, (99, ">emit", "a", None, entries[0][4])]) is None


WALKED = """
return value.map(({ data, choices }) => {
  const graph = new its.Graph(data, data.graph), entries = [];
  let state = data.graph.path[0][0];
  for (let number = 1; number <= 60; number++) {
    const moves = graph.moves(state);
    if (!moves || !moves.length) break;
    const move = moves[choices[number % choices.length] % moves.length];
    entries.push(...graph.entries(move, number));
    state = move.to;
    if (state === null) break;
  }
  return { lines: entries.map((entry) => its.lineOf(data, entry)), steps: its.layOut(data, entries).at.length };
});
"""


@pytest.mark.parametrize("bounds", [SMALL, FAILS, LARGE], ids=["abort", "crash", "large"])
def test_the_page_does_what_the_world_does(bounds: Bounds, tmp_path: Path) -> None:
    """A reader who takes another move would see what the machines never do."""
    entries = any_run(bounds, 3)
    graph = state_graph(World(bounds), entries)
    assert graph is not None
    data = data_of(entries, bounds.graph(), "x", graph=graph)
    draw = random.Random(5)
    asked = [{"data": data, "choices": [draw.randrange(100) for _ in range(17)]} for _ in range(20)]
    for its, answer in zip(asked, evaluate(MODULE, WALKED, asked, tmp_path), strict=True):
        number, expected, state = 0, [], graph.path[0][0]
        while number < 60 and graph.edges[state]:
            number += 1
            edge = graph.edges[state][its["choices"][number % 17] % len(graph.edges[state])]
            expected += [(number, *note) for note in edge.notes]
            if edge.target is None:
                break
            state = edge.target
        assert answer["lines"] == [line.lstrip(" >") for line in lines_of(expected)]
        assert answer["steps"] > 3


@pytest.mark.slow
def test_a_page_with_five_thousand_states_is_small() -> None:
    """It could not be sent by mail, or kept for each counterexample."""
    bounds = Bounds("a->j b->j j->s", events=2, checkpoints=2, cancels=1, crashes=1, mode="unaligned", watermarks=1)
    entries = any_run(bounds, 4, 80)
    graph = state_graph(World(bounds), entries)
    assert graph is not None
    assert len(graph.edges) == MOST_STATES == 5_000
    assert len(page(data_of(entries, bounds.graph(), "x", graph=graph)).encode()) < 600_000
