"""The cost of exploring, beside a bare loop over the same states in the same run.

    python -m tests.bench.bench_explore [--repeats N] [--tokens N] [--capacity N] [--events N] [--spread MASTER]

The system is the ring of `tests.model.ring`; the bare loop keeps a set of tuples and two lists, asks the invariant,
and can name no run. Beside it the world: a join of two sources, of the tasks and the coordinator of `impl`, judged in
every state. Processor time; the least of interleaved repeats. With ``--spread``, the ring on Spark as well, its states
parted by hash, beside one process: of either the wall time, once, and a session that has run a job. The ring of 3
tokens and channels for 3 is the large one (``--repeats 1 --tokens 3 --spread local[2]``): 7,520,004 states.
"""

from __future__ import annotations

import argparse
import gc
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, process_time

from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import World
from barrierlab.model.explore.checker import Always, Quiescent, explore
from barrierlab.sim.check.spread import Spread, Subject
from tests.bench.ratios import Ratio
from tests.model.ring import Move, Ring

TARGET_PER_S = 100_000  # states per second of processor time, in CPython
MOST_FLOORS = 1.5
WORLD_TARGET_PER_S = 10_000
MOST_PROCESSES = 3  # the time of one process, on Spark


def bare(ring: Ring) -> int:
    """The floor: breadth first, and nothing besides. How many states there are."""
    moves, after, fault = ring.moves, ring.after, ring.all_tokens
    level = [ring.start()]
    seen = set(level)
    while level:
        following = []
        for state in level:
            for move in moves(state):
                reached = after(state, move)
                if reached not in seen:
                    seen.add(reached)
                    following.append(reached)
                    if fault(reached) is not None:
                        raise AssertionError(reached)
        level = following
    return len(seen)


def explored(ring: Ring) -> int:
    """The same, by the explorer."""
    result = explore(ring, [ring.invariant])
    assert result.verdict == "holds"
    return result.counts.states


def ring_subject(tokens: int, capacity: int) -> Subject[Move]:
    """Return the ring as a worker makes it."""
    ring = Ring(tokens, capacity)
    return Subject(ring, [ring.invariant])


def spread(tokens: int, capacity: int, master: str) -> list[str]:
    """Explore the ring on Spark and in one process; the lines of the table."""
    from barrierlab.sim.sweep.session import spark_session
    from tests.bench.bench_explore import ring_subject as made  # a worker cannot find what is in `__main__`

    spark = spark_session(master)
    spark.sparkContext.parallelize(range(2), 2).map(str).collect()
    make = partial(made, tokens, capacity)
    with TemporaryDirectory() as folder:
        begin = monotonic()
        there = Spread(spark, make, make(), Path(folder)).explore()
        there_s = monotonic() - begin
    spark.stop()
    ring = Ring(tokens, capacity)
    begin = monotonic()
    here = explore(ring, [ring.invariant])
    here_s = monotonic() - begin
    assert there.counts[:3] == here.counts[:3]
    near = "ok" if there_s <= MOST_PROCESSES * here_s else "MISSED"
    target = f"{there_s / here_s:.2f}x one process <= {MOST_PROCESSES}x {near}"
    return [
        f"{'one process':<20} {here_s:7.2f} s {here.counts.states / here_s:10,.0f} states/s",
        f"{'on Spark, ' + master:<20} {there_s:7.2f} s {there.counts.states / there_s:10,.0f} states/s  {target}",
        f"{there.counts.states:,} states, {there.counts.transitions:,} transitions, depth {there.counts.depth}",
    ]


def explored_world(events: int) -> int:
    """Return how many states a world has, its tables empty at first: what each local step costs once is part of it."""
    world = World(Bounds("a->join b->join join->s", events=events))
    result = explore(world, [Always("always", world.broken), Quiescent("at rest", world.liveness_violation)])
    assert result.verdict == "holds"
    return result.counts.states


def measure(repeats: int, tokens: int, capacity: int, events: int) -> tuple[int, float, float, int, float]:
    """Return the states, and the seconds of the bare loop and of the explorer; and the same of the world."""
    floors, spent, worlds, states, world_states = [], [], [], 0, 0
    for _ in range(repeats):
        for work, times in ((bare, floors), (explored, spent)):
            gc.collect()
            ring = Ring(tokens, capacity)
            begin = process_time()
            states = work(ring)
            times.append(process_time() - begin)
        gc.collect()
        begin = process_time()
        world_states = explored_world(events)
        worlds.append(process_time() - begin)
    return states, min(floors), min(spent), world_states, min(worlds)


def ratios() -> list[Ratio]:
    """For the kept table: the explorer beside the bare loop, by the state."""
    states, floor_s, spent_s, world_states, world_s = measure(3, 2, 3, 2)
    floor = "a bare loop over the same states"
    return [
        Ratio("ring, explored", spent_s / floor_s, floor),
        Ratio("world of a join, a state", world_s / world_states * states / floor_s, "a state of that loop"),
    ]


def lines(states: int, floor_s: float, spent_s: float, world_states: int, world_s: float) -> list[str]:
    """The table."""
    fast = "ok" if states / spent_s >= TARGET_PER_S else "MISSED"
    near = "ok" if spent_s <= MOST_FLOORS * floor_s else "MISSED"
    world_fast = "ok" if world_states / world_s >= WORLD_TARGET_PER_S else "MISSED"
    floors = world_s / world_states * states / floor_s
    targets = f">= {TARGET_PER_S:,}/s {fast}  {spent_s / floor_s:.2f}x <= {MOST_FLOORS}x {near}"
    world = f"{'world of impl tasks':<20} {world_s:7.2f} s {world_states / world_s:10,.0f} states/s"
    return [
        f"{'floor: bare loop':<20} {floor_s:7.2f} s {states / floor_s:10,.0f} states/s",
        f"{'explore':<20} {spent_s:7.2f} s {states / spent_s:10,.0f} states/s  {targets}",
        f"{world}  >= {WORLD_TARGET_PER_S:,}/s {world_fast}  {floors:.1f}x the floor for a state",
    ]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="interleaved repeats (default: 3)")
    parser.add_argument("--tokens", type=int, default=2, metavar="N", help="of each process (default: 2)")
    parser.add_argument("--capacity", type=int, default=3, metavar="N", help="of each channel (default: 3)")
    parser.add_argument("--events", type=int, default=2, metavar="N", help="of each source of the world (default: 2)")
    parser.add_argument("--spread", metavar="MASTER", help="of Spark, such as local[2]")
    asked = parser.parse_args()
    if asked.spread is not None:
        print("\n".join(spread(asked.tokens, asked.capacity, asked.spread)))
        return 0
    print("\n".join(lines(*measure(asked.repeats, asked.tokens, asked.capacity, asked.events))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
