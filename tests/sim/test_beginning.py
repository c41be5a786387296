"""The cost of a checkpoint to a task: the work before its barrier leaves, and channel state to write."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from scipy.stats import theilslopes

from barrierlab.sim import load, run
from barrierlab.sim.sweep.measured import DATA, compare, load_measured, mean_of, statistics_of
from tests.breadth import first
from tests.sim.support import SKEWED, scenario, with_changes

JOBS = {job.name: job for job in load_measured()}
# The time from task to task that the scenarios have of the aligned runs, as work of the task and not as a slow link.
HOP = {"dist": "lognormal", "mean": 0.0048, "cv": 0.9}
AT_THE_TASK = {
    "channel.default.barrier_latency_s": 0.0,
    "channel.default.unaligned_barrier_latency_s": 0.0,
    "checkpoint.begin_s": HOP,
}


def processed_bytes(name: str) -> float:
    """Return the bytes that were processed while barriers were waited for, of a measured run."""
    with (DATA / "runs.csv").open(encoding="utf-8") as rows:
        return next(float(row["processed_bytes_mean"]) for row in csv.DictReader(rows) if row["run"] == name)


@pytest.mark.parametrize(
    "name",
    [
        "R_chain_sat_4ms_unaligned",
        *(
            pytest.param(f"R_chain_{each}_timeout", marks=pytest.mark.slow)
            for each in ("sat_4ms", "sat_16ms", "rho090")
        ),
    ],
)
def test_what_is_processed_meanwhile_is_as_measured(name: str) -> None:
    """A task would go on with its records while it takes part: 1.7 to 3 times as many bytes as on the cluster."""
    job, usual, moved, found = JOBS[name], [], [], []
    for seed in first((1, 2)):
        for extra, values in (({}, usual), (AT_THE_TASK, moved)):
            result = run(load(job.scenario, job.settings | extra), seed)
            assert result.verdict == "holds", result.violations
            values.append(fmean(row["processed_bytes"] for row in result.checkpoint_rows() if row["steady"]))
        found.append(statistics_of(result.checkpoint_rows(), result.task_rows()))
    slack = 12_000  # three records of 4 KB among eight tasks
    assert abs(fmean(moved) - processed_bytes(name)) <= max(slack, 0.15 * processed_bytes(name))
    assert abs(fmean(moved) - processed_bytes(name)) < abs(fmean(usual) - processed_bytes(name))
    cells = compare({name: mean_of(found)})
    assert [(cell.statistic, cell.ratio) for cell in cells if cell.good is False] == []


def test_one_law_for_aligned_and_unaligned_barriers() -> None:
    """Two laws would be read off the rows where one says the same: unaligned barriers would take 11 ms a hop."""
    job = JOBS["R_union_slowmerge_sat_unaligned"]
    results = [run(load(job.scenario, job.settings | AT_THE_TASK), seed) for seed in first((1, 2))]
    means = mean_of([statistics_of(r.checkpoint_rows(), r.task_rows()) for r in results])
    assert means["end to end"] == pytest.approx(job.values["end to end"], rel=0.15)


def test_the_pieces_of_the_path_add_up(tmp_path: Path) -> None:
    """The work would be nowhere on the critical path, or be a full output."""
    changes: dict[str, Any] = {
        "checkpoint": {"begin_s": 0.03, "sync_s": 0.01, "channel_state_s": 0.02, "channel_state_bytes_per_s": 1e5}
    }
    for unaligned in (False, True):
        if unaligned:
            changes["protocol"] = "unaligned"
        result = run(scenario(tmp_path, with_changes(SKEWED, changes)), 2)
        assert result.verdict == "holds", result.violations
        for row in result.checkpoint_rows():
            if row["status"] == "COMPLETED":
                path = result.critical_path(row["checkpoint_id"])
                assert sum(piece.duration_ns for piece in path) / 1e6 == pytest.approx(row["end_to_end_duration_ms"])
                begun = [piece for piece in path if piece.waits_for == "to begin its part"]
                assert sum(piece.duration_ns for piece in begun) / 1e6 == pytest.approx(30 * len(begun))
                assert len(begun) >= 2  # of a source, and of what its barrier reaches


def test_channel_state_takes_a_time_and_time_by_its_size(tmp_path: Path) -> None:
    """A large state in flight would be written as fast as none."""
    changes = {
        "protocol": "unaligned",
        "checkpoint": {"async_s": 0.001, "channel_state_s": 0.02, "channel_state_bytes_per_s": 1e5},
    }
    result = run(scenario(tmp_path, with_changes(SKEWED, changes)), 2)
    rows = [row for row in result.task_rows() if row["end_to_end_ms"] is not None]
    assert any(row["persisted_bytes"] for row in rows)
    for row in rows:
        persisted = row["persisted_bytes"]
        assert row["async_ms"] == pytest.approx(1 + (20 + persisted / 100 if persisted else 0))


# Of the rows of operators (not of sources) that wrote channel state, async less alignment grows with the bytes: 3.9 to
# 4.9 ms and 143 to 162 MB a second (Theil and Sen), within a process and on the network alike.
WRITE = {"checkpoint.channel_state_s": 0.0044, "checkpoint.channel_state_bytes_per_s": 150e6}


def test_the_law_of_channel_state_is_read_off_the_rows() -> None:
    """It would be fitted to one run."""
    with (DATA / "subtasks.csv").open(encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["mode"] == "unaligned"
            and not row["task"].startswith("source")
            and float(row["subtask_persisted_bytes"]) > 0
        ]
    for topology in ("local", "remote"):
        own = [row for row in rows if row["topology"] == topology]
        found = theilslopes(
            [float(row["async_ms"]) - float(row["alignment_ms"]) for row in own],
            [float(row["subtask_persisted_bytes"]) for row in own],
        )
        assert found.intercept == pytest.approx(4.4, abs=0.6)
        assert 1e3 / found.slope == pytest.approx(150e6, rel=0.1)


@pytest.mark.parametrize(
    ("name", "rel"),
    [("L_chain_sat_4ms_unaligned", 0.2), pytest.param("L_chain_sat_4ms_timeout", 0.03, marks=pytest.mark.slow)],
)
def test_what_is_written_within_a_process_makes_the_duration(name: str, rel: float) -> None:
    """Local unaligned checkpoints would be a third too short: they have no hops, but data to write."""
    job = JOBS[name]
    without, with_it = (
        mean_of([statistics_of(r.checkpoint_rows(), r.task_rows()) for r in results])["end to end"]
        for results in (
            [run(load(job.scenario, job.settings | extra), seed) for seed in (1, 2)] for extra in ({}, WRITE)
        )
    )
    assert with_it == pytest.approx(job.values["end to end"], rel=rel)
    assert abs(with_it - job.values["end to end"]) < abs(without - job.values["end to end"])


def test_the_gate_that_has_waited_longest_is_next() -> None:
    """The thin input of a union would be read too soon: on the cluster a gate stands in line once it has data."""
    job = JOBS["R_union_slowmerge_sat_timeout"]
    ratios = {}
    for inputs in ("by_buffer", "in_line"):
        settings = job.settings | AT_THE_TASK | {"operator.merge.inputs": inputs}
        results = [run(load(job.scenario, settings), 1)]
        assert {result.verdict for result in results} == {"holds"}
        means = mean_of([statistics_of(r.checkpoint_rows(), r.task_rows()) for r in results])
        ratios[inputs] = means["start delay of merge"] / job.values["start delay of merge"]
    assert ratios["by_buffer"] < 0.7 < ratios["in_line"] < 1.1


def test_a_barrier_that_has_left_overtakes_when_its_task_has_begun_to() -> None:
    """After a timeout barriers would overtake for nothing: all at 300 ms sharp, where the cluster has 303 to 308."""
    delays = {}
    for begin_s in (0.0, 0.02):
        links = {f"channel.default.{name}barrier_latency_s": 0.0 for name in ("", "unaligned_")}
        work = {"checkpoint.begin_s": 0.0, "checkpoint.unaligned_begin_s": begin_s, "until_s": 14.0}
        result = run(load("flink_chain", {"mode": "aligned_with_timeout", **links, **work}), 1)
        assert result.verdict == "holds", result.violations
        rows = [row for row in result.task_rows() if row["operator"] == "fast" and row["steady"]]
        delays[begin_s] = {round(row["start_delay_ms"]) for row in rows}
        assert rows
    # At 300 ms those few that lie with their receiver by then: it is its own to turn, and to begin with.
    assert (delays[0.0], delays[0.02]) == ({300}, {300, 320})


@pytest.mark.parametrize(("protocol", "begin_s"), [("aligned", 0.01), ("unaligned", 0.02)])
def test_an_unaligned_part_has_a_beginning_of_its_own(protocol: str, begin_s: float, tmp_path: Path) -> None:
    """One law would be drawn for both, at a sink as well, which sends no barrier that says which it is."""
    changes = {
        "protocol": protocol,
        "operator": {"sink": {"aligns": False}},
        "checkpoint": {"begin_s": 0.01, "unaligned_begin_s": 0.02},
    }
    result = run(scenario(tmp_path, with_changes(SKEWED, changes)), 1)
    completed = [row["checkpoint_id"] for row in result.checkpoint_rows() if row["status"] == "COMPLETED"]
    parts = [part for each in completed for part in result.record(each).parts.values()]
    assert {part.begin_ns for part in parts} == {round(1e9 * begin_s)}
    assert len(parts) == 4 * len(completed) > 0
