"""An exploration whose states are parted by hash: as many states as in one process, and runs as short.

Workers are here calls in this process, each with tables of its own; `tests/sweep/test_spark.py` has those of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from barrierlab.model.checkpoint.check import WorldScope
from barrierlab.model.checkpoint.components import SOUND, Components, with_aligner
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.explore.checker import explore
from barrierlab.sim.check import rows as rows_module
from barrierlab.sim.check import spread
from barrierlab.sim.check.rows import SortedRows, distinct, hashes_of, merged, rows_of, states_of, without
from barrierlab.sim.check.spread import Spread, SpreadError, Subject, explored_on
from tests.model.mutants import SnapshotsAtTheFirst
from tests.model.ring import Process, Ring

PARTITIONS = 3


class Jobs:
    """A session of Spark that does each task here."""

    defaultParallelism = PARTITIONS  # noqa: N815 - Spark's name

    def __init__(self) -> None:
        self.levels = 0

    @property
    def sparkContext(self) -> Jobs:  # noqa: N802 - Spark's name
        return self

    def parallelize(self, items: Iterable[int], count: int) -> Jobs:
        self.items = list(items)
        assert len(self.items) == count
        return self

    def map(self, work: Callable[[int], object]) -> Jobs:
        self.work = work
        return self

    def collect(self) -> list[object]:
        self.levels += 1
        return [self.work(item) for item in self.items]


def ring_subject(tokens: int, capacity: int, forgets: bool = False) -> Subject[Any]:
    """The ring as a worker makes it."""
    ring = Ring(tokens, capacity, forgets)
    return Subject(ring, [ring.invariant])


def spread_over(jobs: Any, make: Callable[[], Subject[Any]], folder: Path) -> Any:
    """Explore with the states parted."""
    folder.mkdir(exist_ok=True)
    return Spread(jobs, make, make(), folder).explore()


@pytest.mark.parametrize(("tokens", "poor"), [(1, False), (0, True)])
def test_every_state_is_found_once(tokens: int, poor: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count would be luck: states that share a hash would pass for one, or one state for several."""
    if poor:
        for module in (rows_module, spread):
            monkeypatch.setattr(module, "hashes_of", lambda rows: hashes_of(rows) % np.uint64(7) << np.uint64(33))
    ring = Ring(tokens, 1)
    here = explore(ring, [ring.invariant])
    jobs = Jobs()
    there = spread_over(jobs, partial(ring_subject, tokens, 1), tmp_path / "out")
    assert (there.verdict, there.why) == (here.verdict, here.why)
    assert there.counts[:3] == here.counts[:3]
    assert jobs.levels == here.counts.depth + 2  # a job a level, and one that finds nothing


def test_a_counterexample_is_a_shortest_one(tmp_path: Path) -> None:
    """A run to a violation would go round about, or would be none."""
    ring = Ring(1, 1, forgets=True)
    (here,) = explore(ring, [ring.invariant]).violations
    (there,) = spread_over(Jobs(), partial(ring_subject, 1, 1, True), tmp_path / "out").violations
    assert (there.property, there.reason) == (here.property, here.reason)
    assert len(there.moves) == len(here.moves)
    state = ring.start()
    for move in there.moves:
        assert str(move) in map(str, ring.moves(state))
        state = ring.after(state, move)
    assert ring.all_tokens(state) is not None


def sound() -> Components:
    """Those of `impl`."""
    return SOUND


def broken() -> Components:
    """Those of `impl`, but for a mutant."""
    return with_aligner(SnapshotsAtTheFirst)


SCOPES = {
    "a crash": (Bounds("a->s", events=1, crashes=1, guarantee="exactly_once"), sound),
    "one of two is aborted": (Bounds("a->join b->join", events=0, cancels=1), sound),
    "a join": (Bounds("a->join b->join join->s", events=1, mode="unaligned"), sound),
    "not to be reduced": (Bounds("a->b b->s", events=1, mode="unaligned", max_inflight_buffer_bytes=1), sound),
    "a mutant": (Bounds("a->join b->join join->s", events=1), broken),
}


@pytest.mark.parametrize("name", SCOPES)
def test_a_scope_has_the_same_outcome(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict, a count or a premise would depend on where it was explored."""
    monkeypatch.setattr(spread, "MOST_HELD", 40)
    bounds, make = SCOPES[name]
    scope, components = WorldScope(name, bounds), make()
    here = scope.check(components, None)
    there = scope.check(components, None, partial(explored_on, Jobs(), tmp_path, lambda: None, make))
    assert (there.verdict, there.why.partition(":")[0]) == (here.verdict, here.why.partition(":")[0])
    assert [(each.invariant, each.steps) for each in there.violations] == [
        (each.invariant, each.steps) for each in here.violations
    ]
    if here.verdict == "holds":
        assert (there.states, there.transitions, there.struck) == (here.states, here.transitions, here.struck)
        assert there.premises.keys() == here.premises.keys()
        if not bounds.cancels:  # each plan has tables of its own there
            assert there.premises == here.premises
    assert not list(tmp_path.iterdir())


class Chance(Ring):
    """Numbers its parts as it likes."""

    made = 0

    def __init__(self) -> None:
        super().__init__(1, 1)
        Chance.made += 1
        self.skipped = Chance.made

    def start(self) -> Any:
        if self.skipped > 1:
            self._number(Process(2, ""))
        return super().start()


def chance_subject() -> Subject[Any]:
    """The same as a subject."""
    return Subject(Chance())


def test_tables_that_differ_are_noticed(tmp_path: Path) -> None:
    """Two workers would mean different states by the same numbers, and nobody would see it."""
    Chance.made = 0
    with pytest.raises(SpreadError, match="leads elsewhere when it is repeated"):
        spread_over(Jobs(), chance_subject, tmp_path / "out")


def test_time_that_is_up_decides_nothing(tmp_path: Path) -> None:
    """A level that was begun would pass for the last."""
    make = partial(ring_subject, 1, 1)
    (tmp_path / "out").mkdir()
    result = Spread(Jobs(), make, make(), tmp_path / "out", seconds=0.0).explore()  # type: ignore[arg-type]
    assert (result.verdict, result.why) == ("undecided", "the limit of 0 s is reached")


@pytest.mark.parametrize("most", [3, 1000])
def test_runs_are_sets(most: int) -> None:
    """As the first test says, of each operation alone."""
    random = Random(1)
    for _ in range(30):
        one, other = ([(random.randrange(most), random.randrange(2)) for _ in range(9)] for _ in range(2))
        run, known = distinct(rows_of(one, 2)), distinct(rows_of(other, 2))
        assert sorted(states_of(run.rows)) == sorted(set(one))
        left = without(run, known)
        assert set(states_of(left.rows)) == set(one) - set(other)
        both = merged([known, left])
        assert isinstance(both, SortedRows)
        assert sorted(states_of(both.rows)) == sorted(set(one) | set(other))
        assert (np.diff(both.hashes.astype(float)) >= 0).all()
