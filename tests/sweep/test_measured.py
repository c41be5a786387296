"""The measured jobs: that we read the measurements rightly, and judge predictions as promised."""

from __future__ import annotations

import csv
from statistics import fmean

import pytest

from sim import load
from sim.sweep.measured import DATA, END_TO_END, compare, load_measured, markdown, statistics_of


def rows_of(name):
    """The rows of one file of measurements."""
    with (DATA / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_one_rule_gives_the_columns_of_the_runs():
    """Mean over steady checkpoints of the largest value over subtasks: the rule by which predictions are taken too."""
    largest, totals = {}, {}
    for row in rows_of("subtasks.csv"):
        if row["steady"] == "1":
            totals.setdefault(row["run"], {})[row["ckpt_id"]] = float(row["ckpt_e2e_ms"])
            for column in ("start_delay_ms", "alignment_ms"):
                per_checkpoint = largest.setdefault((row["run"], row["task"], column), {})
                value = float(row[column])
                per_checkpoint[row["ckpt_id"]] = max(value, per_checkpoint.get(row["ckpt_id"], 0.0))
    checked = 0
    for run in rows_of("runs.csv"):
        assert fmean(totals[run["run"]].values()) == pytest.approx(float(run["e2e_ms_mean"]), abs=0.051)
        for prefix, column in (("delay_ms_", "start_delay_ms"), ("align_ms_", "alignment_ms")):
            for name in run:
                values = largest.get((run["run"], name.removeprefix(prefix), column))
                if name.startswith(prefix) and run[name] and values:
                    assert fmean(values.values()) == pytest.approx(float(run[name]), abs=0.051), (run["run"], name)
                    checked += 1
    assert checked >= 100


def test_statistics_of_a_run_follow_the_same_rule():
    """Warm-up and failed checkpoints do not count; the slowest subtask does."""
    checkpoints = [
        {"checkpoint_id": 1, "steady": False, "status": "COMPLETED", "end_to_end_duration_ms": 1000.0},
        {"checkpoint_id": 2, "steady": True, "status": "COMPLETED", "end_to_end_duration_ms": 10.0},
        {"checkpoint_id": 3, "steady": True, "status": "COMPLETED", "end_to_end_duration_ms": 20.0},
        {"checkpoint_id": 4, "steady": True, "status": "FAILED", "end_to_end_duration_ms": 1000.0},
    ]
    delays = {1: (900.0, 900.0), 2: (4.0, 6.0), 3: (9.0, 8.0), 4: (900.0, 900.0)}
    tasks = [
        {"checkpoint_id": number, "operator": "slow", "start_delay_ms": delay, "alignment_ms": 0.0}
        for number, pair in delays.items()
        for delay in pair
    ]
    assert statistics_of(checkpoints, tasks) == {END_TO_END: 15.0, "start delay of slow": 7.5}
    assert statistics_of(checkpoints[:1], tasks) == {}


def test_every_aligned_run_is_a_job_that_can_be_loaded():
    """Each aligned run of the file without debloating is simulated by a shipped scenario, at its measured rates."""
    jobs = {job.name: job for job in load_measured()}
    expected = [r for r in rows_of("runs.csv") if r["mode"] == "aligned" and not r["debloat_target_ms"]]
    assert list(jobs) == [r["run"] for r in expected]
    for row in expected:
        scenario = load(jobs[row["run"]].scenario, settings=jobs[row["run"]].settings)
        source = scenario.sources["sourceA" if row["dag"] == "union" else "source"]
        slow = scenario.operators["merge" if row["dag"] == "union" else "slow"]
        assert source.rate_per_s * source.parallelism == float(row["rate_A"])
        assert source.parallelism == int(row["parallelism"])
        assert source.record_bytes.mean == float(row["record_bytes"])
        assert slow.service_s.mean == pytest.approx(
            float(row["slow_service_ms"] if row["dag"] == "chain" else row["merge_service_ms"]) / 1e3
        )
        edge = next(iter(scenario.channels.values()))
        assert edge.segment_bytes == int(row["segment_bytes"])
        assert edge.local == (row["topology"] == "local")
        assert jobs[row["run"]].saturated == ("sat" in row["run"])


def test_cells_are_judged_by_the_targets():
    """Ten per cent under saturation; below it a window for the whole duration; a missing prediction fails."""
    measured = {job.name: job.values_ms for job in load_measured()}
    sat, calm = "R_chain_sat_4ms_aligned", "R_chain_rho050_aligned"

    def judged(job, **factors):
        cells = compare(
            {job: {name: value * factors.get(name.split()[-1], 1.0) for name, value in measured[job].items()}}
        )
        return {cell.statistic.split()[-1]: cell.good for cell in cells}

    assert judged(sat) == {"end": True, "fast": True, "slow": True}
    assert judged(sat, end=1.09, fast=0.91, slow=1.11) == {"end": True, "fast": True, "slow": False}
    assert judged(calm) == {"end": True, "fast": None, "slow": None}
    assert judged(calm, end=0.3) == {"end": False, "fast": None, "slow": None}
    assert [cell.good for cell in compare({sat: {}})] == [False] * 3


def test_the_table_has_a_line_for_each_cell():
    """The table in the documentation is this one."""
    job = load_measured()[0]
    lines = markdown(compare({job.name: {END_TO_END: 2 * job.values_ms[END_TO_END]}})).splitlines()
    assert len(lines) == 2 + len(job.values_ms)
    assert "| 2.00 | ± 10% | **missed** |" in lines[2]
