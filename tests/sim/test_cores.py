"""Cores that tasks share: a part that begins while others are at work begins later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barrierlab.sim import load, run
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.core.cores import Cores
from barrierlab.sim.twin.calibrate import CORES, at_work, calibrate, share
from barrierlab.sim.twin.observed import ObservedCheckpoint, ObservedJob, Subtask, senders_of
from barrierlab.sim.twin.predict import simulated
from tests.sim.support import SKEWED, scenario, with_changes


def ends(count: float, works: Sequence[tuple[str, int, int, int]]) -> dict[str, int]:
    """Return when each is done in microseconds: a task, when it begins, its work, and what else it does."""
    clock = Clock()
    cores, found = Cores(count, clock), {}

    def begin(task: str, work: int, besides: int) -> None:
        began = clock.now

        def finish(longer_ns: int) -> None:
            found[task] = round(clock.now / 1e3)
            assert clock.now == began + 1000 * (work + besides) + longer_ns

        cores.work(task, 1000 * work, 1000 * besides, finish)

    for task, at, work, besides in works:
        clock.after(1000 * at, partial(begin, task, work, besides))
    clock.run()
    return found


def close(found: dict[str, int], wanted: dict[str, int]) -> bool:
    """Return whether they are the same by some microseconds, by which work is taken as done."""
    return found.keys() == wanted.keys() and all(abs(found[each] - wanted[each]) <= 2 for each in wanted)


def test_works_at_once_share_the_cores_by_hand() -> None:
    """The first to begin would be done first, as in a line; or one that has left would be waited for."""
    assert close(ends(1.0, [("a", 0, 3000, 0), ("b", 0, 3000, 0)]), {"a": 6000, "b": 6000})
    assert close(ends(2.0, [("a", 0, 3000, 0), ("b", 0, 3000, 0)]), {"a": 3000, "b": 3000})
    assert close(ends(2.0, [(each, 0, 3000, 0) for each in "abc"]), dict.fromkeys("abc", 4500))
    # Alone to 1000, at half the speed to 5000 when b is done, and alone again.
    assert close(ends(1.0, [("a", 0, 4000, 0), ("b", 1000, 2000, 0)]), {"a": 6000, "b": 5000})
    assert close(ends(0.5, [("a", 0, 3000, 0)]), {"a": 6000})
    assert close(ends(1.0, [("a", 0, 3000, 1000)]), {"a": 4000})


def test_what_takes_as_long_as_it_takes_counts_and_is_not_slowed() -> None:
    """A task that writes would not be at work, or one that writes and begins be two."""
    clock = Clock()
    cores, found = Cores(1.0, clock), list[int]()
    cores.occupy("b", 0, 2_000_000)
    cores.occupy("a", 0, 9_000_000)
    cores.work("a", 3_000_000, 0, found.append)
    clock.run()
    assert found == [pytest.approx(1_000_000, abs=2000)]
    assert clock.now == pytest.approx(4_000_000, abs=2000)
    later = Cores(1.0, clock)
    assert [later.later(task, 20_000_000, 1000) for task in "abb"] == [1000, 2000, 2000]
    later.clear()
    assert later.later("c", 20_000_000, 1000) == 1000


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 5000)), min_size=1, max_size=6),
    st.sampled_from([0.5, 1.0, 1.7, 3.0, 6.0]),
)
def test_cores_do_no_more_than_they_can(works: list[tuple[int, int]], count: float) -> None:
    """Work would be done sooner than cores can, or a core stand idle beside work."""
    found = ends(count, [(str(task), at, work, 0) for task, (at, work) in enumerate(works)])
    slow = 2 * len(works)
    for task, (at, work) in enumerate(works):
        assert found[str(task)] >= at + work / min(1.0, count) - slow
    first = min(at for at, _ in works)
    assert max(found.values()) - first >= sum(work for _, work in works) / max(count, 1.0) / len(works) - slow
    if count == 1.0:  # never idle, if all is begun before any of it could be done
        at = max(each for each, _ in works)
        assert max(found.values()) <= at + sum(work for _, work in works) + slow
    if count >= len(works):
        assert all(abs(found[str(task)] - at - work) <= slow for task, (at, work) in enumerate(works))


@pytest.mark.parametrize(
    ("protocol", "cores", "found"),
    [("unaligned", 1.0, {10, 20}), ("unaligned", 4.0, {10}), ("unaligned", None, {10}), ("aligned", 1.0, {10})],
)
def test_parts_that_begin_at_once_share_the_cores(
    protocol: str, cores: float | None, found: set[int], tmp_path: Path
) -> None:
    """Nobody would wait for a turn; or aligned parts would, whose rows say nothing of it."""
    checkpoint: dict[str, Any] = {"begin_s": 0.01} | ({} if cores is None else {"cores": cores})
    result = run(scenario(tmp_path, with_changes(SKEWED, {"protocol": protocol, "checkpoint": checkpoint})), 1)
    assert result.verdict == "holds", result.violations
    completed = [row["checkpoint_id"] for row in result.checkpoint_rows() if row["status"] == "COMPLETED"]
    parts = [part for each in completed for part in result.record(each).parts.values()]
    assert {round(part.begin_ns / 1e6) for part in parts} == found


def test_who_is_at_work_on_a_checkpoint_by_hand() -> None:
    """A wait for barriers would count as work, or what has ended by then."""
    rows = (
        Subtask("a", 0, 5.0, 0.0, 1.0, 4.0, 30.0, 1e5, 0.0),  # begins to 9, writes from 6 to 10
        Subtask("a", 1, 5.0, 0.0, 1.0, 20.0, 30.0, 1e5, 0.0),  # writes from 6 to 26
        Subtask("b", 0, 9.5, 6.0, 0.0, 9.0, 30.0, 1e5, 0.0),  # begins to 12.5, writes from 15.5 to 18.5
        Subtask("c", 0, 17.0, 0.0, 0.0, 9.0, 30.0, 0.0, 0.0),
    )
    checkpoint = ObservedCheckpoint(1, 40.0, 0.0, 0.0, rows)
    senders = {"a": (), "b": ("a",), "c": ("b",)}
    run_of_it = ObservedJob(
        "", "unaligned", senders, dict.fromkeys(senders, 1), False, dict.fromkeys("abc", 0.0), {}, {}, (checkpoint,)
    )
    # While a begins its other does; while b does, they write, the one to 10. To wait for barriers is no work.
    to_b, to_c = at_work(run_of_it, checkpoint, 3.0)
    assert [n for _, n in to_b] == [2, 2]
    assert sum(taken for taken, _ in to_b) == pytest.approx(3.3)
    assert [(pytest.approx(taken), n) for taken, n in to_c] == [(0.5, 3), (2.5, 2), (4.3, 2)]
    quiet = replace(checkpoint, subtasks=(rows[0], *rows[2:]))
    assert [n for _, n in at_work(run_of_it, quiet, 3.0)[1]] == [2, 1, 1]
    assert share(((3.0, 4), (1.0, 1)), 2.0) == pytest.approx((3.0 * 0.5 + 1.0) / 4.0)
    assert at_work(replace(run_of_it, mode="aligned"), checkpoint, 3.0) == []


def planted(seed: int, **changes: Any) -> ObservedJob:
    """Return the measurements of a cluster of a job whose parts begin on shared cores."""
    settings = {
        "level": "rho050",
        "mode": "unaligned",
        "until_s": 70.0,
        "checkpoint.sync_s": 0.0,
        "checkpoint.async_s": {"dist": "gamma", "mean": 0.030, "cv": 0.3},
        "channel.default.barrier_latency_s": 0.0,
        "channel.default.unaligned_barrier_latency_s": 0.0,
        "checkpoint.unaligned_begin_s": {"dist": "gamma", "mean": 0.006, "cv": 0.5},
        **changes,
    }
    senders = senders_of(load("flink_chain", settings).topology)
    idle = dict.fromkeys(senders, 0.0)
    checkpoints = tuple(simulated("flink_chain", settings, seed))
    counts = dict.fromkeys(senders, 2)
    return ObservedJob("", "unaligned", senders, counts, False, idle | {"slow": 0.5}, idle, {}, checkpoints)


def test_planted_cores_are_found_again() -> None:
    """Cores would be counted by how slow a run is, or be found where each task has its own."""
    shared = calibrate([planted(1, **{"checkpoint.cores": 2.0})])
    number = shared.numbers["cores"]
    assert number.sets == "checkpoint.cores"
    assert number.low <= 2.0 <= number.high
    assert 1.4 <= number.value <= 2.9
    assert CORES[0] == 1.0
    assert shared.costs["unaligned_begin"].mean_s == pytest.approx(0.006, rel=0.35)
    own = calibrate([planted(1)])
    assert "cores" not in own.numbers
    assert own.undetermined["cores"]
