"""The shipped sweep `survive_anything`, run by run: jobs drawn at random, and whatever can fail failing at random."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from barrierlab.sim import load, run
from barrierlab.sim.sweep.plan import SweepRun, load_plan

BATCH = 20
"""Runs of one test, about."""


@cache
def planned() -> list[SweepRun]:
    """Every run of the sweep."""
    return load_plan("survive_anything").runs


def quick() -> list[SweepRun]:
    """One in twenty; the others are slow tests."""
    return planned()[::20]


def survived(batch: list[SweepRun]) -> Counter[str]:
    """Demand that every run of the batch holds; how many recoveries, replays and repeated writes there were."""
    found: Counter[str] = Counter()
    for each in batch:
        result = run(load(each.source, each.parameters), each.seed)
        assert result.verdict == "holds", (each.parameters, each.seed, [str(v) for v in result.violations[:3]])
        row = result.run_row()
        found["recoveries"] += len(result.recovery_rows())
        found["replayed"] += row["events_replayed"]
        found["duplicates"] += row["duplicates"]
        if each.parameters["guarantee"] == "exactly_once":
            assert row["duplicates"] == 0
    return found


def test_the_sweep_is_large_and_draws_everything() -> None:
    """It would not be what the README promises: 2,000 runs, every shape, mode, channel, trouble and guarantee."""
    assert len(planned()) >= 2000
    assert len(quick()) >= 100
    drawn = {(name, value) for each in quick() for name, value in each.parameters.items() if isinstance(value, str)}
    all_drawn = {
        (name, value) for each in planned() for name, value in each.parameters.items() if isinstance(value, str)
    }
    assert drawn == all_drawn
    assert {name for name, _ in drawn} == {"shape", "mode", "channels", "trouble", "guarantee", "load"}


def test_unaligned_checkpoints_are_drawn_and_taken() -> None:
    """Exchanges on which no barrier overtakes would leave the mode a name: half of its runs would align everywhere."""
    asked = [load(each.source, each.parameters) for each in quick() if each.parameters["mode"] != "aligned"]
    overtakes = [
        scenario
        for scenario in asked
        if any(not scenario.aligns(task) for task in scenario.topology.tasks if scenario.topology.inputs(task))
    ]
    assert len(asked) >= len(quick()) / 2
    assert len(overtakes) >= len(asked) / 2


def test_several_checkpoints_are_under_way_at_once() -> None:
    """Effects of checkpoints on each other, such as a manifest that waits for an older one, would never be drawn."""
    deepest: Counter[int] = Counter()
    for each in [each for each in planned() if each.parameters.get("checkpoint.max_concurrent", 1) > 1][::8]:
        rows = run(load(each.source, each.parameters), each.seed).checkpoint_rows()
        rows = [row for row in rows if row["status"] == "COMPLETED"]
        begins_ns = [round(row["trigger_timestamp_ms"] * 1e6) for row in rows]
        spans = [
            (begin_ns, round(row["end_to_end_duration_ms"] * 1e6))
            for begin_ns, row in zip(begins_ns, rows, strict=True)
        ]
        under_way = max((sum(start <= at < start + lasts for start, lasts in spans) for at, _ in spans), default=0)
        assert under_way <= each.parameters["checkpoint.max_concurrent"]
        deepest[under_way] += 1
    assert deepest[2] > 0
    assert deepest[3] > 0


@pytest.mark.parametrize(
    "batch", [pytest.param(batch, marks=[pytest.mark.slow] * (batch > 0)) for batch in range(100 // BATCH)]
)
def test_every_event_counts_as_promised(batch: int) -> None:
    """Some failure at some moment would lose an event, count one twice, or leave a checkpoint that never ends."""
    found = survived(quick()[batch :: 100 // BATCH])
    assert found["recoveries"] > 0
    assert found["replayed"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(2000 // BATCH))
def test_every_event_counts_as_promised_in_all_runs(batch: int) -> None:
    """The same, for all the others."""
    rest = [each for index, each in enumerate(planned()) if index % 20]
    survived(rest[batch :: 2000 // BATCH])
