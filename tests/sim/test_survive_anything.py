"""The shipped sweep `survive_anything`, run by run: jobs drawn at random, and whatever can fail failing at random."""

from __future__ import annotations

from collections import Counter

import pytest

from barrierlab.sim import load, run
from barrierlab.sim.sweep.plan import SweepRun, load_plan

RUNS = load_plan("survive_anything").runs
QUICK = RUNS[::10]
REST = [each for index, each in enumerate(RUNS) if index % 10]
BATCH = 20


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
    assert len(RUNS) >= 2000
    assert len(QUICK) >= 200
    drawn = {(name, value) for each in QUICK for name, value in each.parameters.items() if isinstance(value, str)}
    all_drawn = {(name, value) for each in RUNS for name, value in each.parameters.items() if isinstance(value, str)}
    assert drawn == all_drawn
    assert {name for name, _ in drawn} == {"shape", "mode", "channels", "trouble", "guarantee", "load"}


def test_unaligned_checkpoints_are_drawn_and_taken() -> None:
    """Exchanges on which no barrier overtakes would leave the mode a name: half of its runs would align everywhere."""
    asked = [load(each.source, each.parameters) for each in QUICK if each.parameters["mode"] != "aligned"]
    overtakes = [
        scenario
        for scenario in asked
        if any(not scenario.aligns(task) for task in scenario.topology.tasks if scenario.topology.inputs(task))
    ]
    assert len(asked) >= len(QUICK) / 2
    assert len(overtakes) >= len(asked) / 2


def test_several_checkpoints_are_under_way_at_once() -> None:
    """What checkpoints do to each other, such as a manifest that waits for an older one, would never be drawn."""
    deepest: Counter[int] = Counter()
    for each in [each for each in RUNS if each.parameters.get("checkpoint.max_concurrent", 1) > 1][::8]:
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


@pytest.mark.parametrize("first", range(0, len(QUICK), BATCH))
def test_every_event_counts_as_promised(first: int) -> None:
    """Some failure at some moment would lose an event, count one twice, or leave a checkpoint that never ends."""
    found = survived(QUICK[first : first + BATCH])
    assert found["recoveries"] > 0
    assert found["replayed"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(REST), BATCH))
def test_every_event_counts_as_promised_in_all_runs(first: int) -> None:
    """The same, for the other nine tenths."""
    survived(REST[first : first + BATCH])
