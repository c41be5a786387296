"""The measured jobs: that we read the measurements rightly, and judge predictions as promised."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean, stdev

import pytest

from barrierlab.sim import load
from barrierlab.sim.sweep.measured import (
    DATA,
    MODES,
    TARGETS,
    compare,
    load_measured,
    markdown,
    mean_of,
    measured_in,
    shown,
    side_by_side,
    statistics_of,
)

SECOND = Path(str(DATA / "second"))


def rows_of(name, folder=DATA):
    """The rows of one file of measurements."""
    with (folder / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("folder", "head", "least"), [(DATA, "", 100), (SECOND, "", 100), (SECOND, "other_", 20)])
def test_one_rule_gives_the_columns_of_the_runs(folder, head, least):
    """Mean over steady checkpoints of the largest value over subtasks: the rule by which predictions are taken too."""
    largest, totals = {}, {}
    for row in rows_of(f"{head}subtasks.csv", folder):
        if row["steady"] == "1":
            totals.setdefault(row["run"], {})[row["ckpt_id"]] = float(row["ckpt_e2e_ms"])
            for column in ("start_delay_ms", "alignment_ms"):
                per_checkpoint = largest.setdefault((row["run"], row["task"], column), {})
                value = float(row[column])
                per_checkpoint[row["ckpt_id"]] = max(value, per_checkpoint.get(row["ckpt_id"], 0.0))
    checked = 0
    for run in rows_of(f"{head}runs.csv", folder):
        assert fmean(totals[run["run"]].values()) == pytest.approx(float(run["e2e_ms_mean"]), abs=0.051)
        for prefix, column in (("delay_ms_", "start_delay_ms"), ("align_ms_", "alignment_ms")):
            for name in run:
                values = largest.get((run["run"], name.removeprefix(prefix), column))
                if name.startswith(prefix) and run[name] and values:
                    assert fmean(values.values()) == pytest.approx(float(run[name]), abs=0.051), (run["run"], name)
                    checked += 1
    assert checked >= least


def test_repeats_are_one_job_with_their_spread():
    """Three runs of one job would be three jobs in a table, and nobody would see how far a cluster is from itself."""
    rows = {row["run"]: row for row in rows_of("runs.csv", SECOND)}
    jobs = {job.name: job for job in measured_in(SECOND)}
    name = "R_chain_sat_16ms_debloat200ms"
    job = jobs[f"{name}_aligned"]
    durations = [float(rows[f"{name}_{number}_aligned"]["e2e_ms_mean"]) for number in (1, 2, 3)]
    assert (job.setup, job.values["end to end"], job.spread["end to end"]) == (
        name,
        pytest.approx(fmean(durations)),
        pytest.approx(stdev(durations)),
    )
    assert jobs["R_chain_sat_4ms_debloat200ms_aligned"].spread == {}
    cells = compare({job.name: job.values}, [job])
    assert shown(cells[0].as_row()) == ("850.1 ± 16.9", "850.1", "✓")


def test_a_load_or_size_that_is_no_level_is_that_of_the_row(tmp_path):
    """A run between two levels, or of records that do not fill a buffer, would be simulated as another one."""
    row = rows_of("runs.csv", SECOND)[0]
    changes = [
        {"run": "L_chain_rho060_aligned", "rate_A": "300", "slow_service_ms": "4", "interval_ms": "5000"},
        {"run": "L_chain_sat_rec50000_aligned", "rate_A": "75", "slow_service_ms": "40", "record_bytes": "50000"},
        {"run": "L_forward_sat_aligned", "dag": "forward", "slow_service_ms": "4"},
    ]
    with (tmp_path / "runs.csv").open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerows(row | change for change in changes)
    load_060, large, forward = (load(job.scenario, settings=job.settings) for job in measured_in(tmp_path))
    assert (load_060.sources["source"].rate_per_s, load_060.checkpoint.interval_s) == (150.0, 5.0)
    assert load_060.operators["slow"].service_s.mean == pytest.approx(0.004)
    assert (large.sources["source"].rate_per_s, large.operators["slow"].service_s.mean) == (37.5, 0.04)
    assert (large.warmup_s, large.until_s) == (9.0, 32.0)  # as old as it was measured, not as jobs of 16 ms are
    assert {channel.spanning_records for channel in large.channels.values()} == {True}
    assert {edge for edge, channel in forward.channels.items() if channel.exchange == "forward"} == {
        "source->fast",
        "fast->slow",
    }


def test_statistics_of_a_run_follow_the_same_rule():
    """Warm-up and failed checkpoints do not count; the slowest subtask does; bytes are of the whole checkpoint."""
    checkpoints = [
        {
            "checkpoint_id": number,
            "steady": steady,
            "status": status,
            "end_to_end_duration_ms": ms,
            "persisted_bytes": b,
        }
        for number, steady, status, ms, b in (
            (1, False, "COMPLETED", 1000.0, 9_000_000),
            (2, True, "COMPLETED", 10.0, 1_000_000),
            (3, True, "COMPLETED", 20.0, 2_000_000),
            (4, True, "FAILED", 1000.0, 9_000_000),
        )
    ]
    delays = {1: (900.0, 900.0), 2: (4.0, 6.0), 3: (9.0, 8.0), 4: (900.0, 900.0)}
    tasks = [
        {"checkpoint_id": number, "operator": "slow", "start_delay_ms": delay, "persisted_bytes": 7_000_000}
        for number, pair in delays.items()
        for delay in pair
    ]
    assert statistics_of(checkpoints, tasks) == {"end to end": 15.0, "persisted": 1.5, "start delay of slow": 7.5}
    assert statistics_of(checkpoints[:1], tasks) == {}
    assert mean_of([{"end to end": 1.0, "persisted": 0.0}, {"end to end": 3.0}]) == {
        "end to end": 2.0,
        "persisted": 0.0,
    }


def test_every_run_is_a_job_that_can_be_loaded():
    """Each run of the file is simulated by a shipped scenario, at its rates, in its mode and with its debloating."""
    jobs = {job.name: job for job in load_measured()}
    expected = rows_of("runs.csv")
    assert list(jobs) == [row["run"] for row in expected]
    for row in expected:
        job = jobs[row["run"]]
        scenario = load(job.scenario, settings=job.settings)
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
        assert job.saturated == ("sat" in row["run"])
        debloat = scenario.buffer_debloat
        assert (debloat.target_s if debloat.enabled else 0.0) == float(row["debloat_target_ms"] or 0.0) / 1e3
        mode, timeout = {  # as the cluster's driver has written it: a measurement is not renamed
            "aligned": ("aligned", 0.0),
            "unaligned": ("unaligned", 0.0),
            "aligned-timeout-300ms": ("aligned_with_timeout", 0.3),
        }[row["mode"]]
        assert job.mode == mode
        assert scenario.checkpoint.aligned_checkpoint_timeout_s == timeout
        assert scenario.protocol == ("aligned" if row["mode"] == "aligned" else "unaligned")
        assert job.values["end to end"] == float(row["e2e_ms_mean"])
        assert job.values["persisted"] == pytest.approx(float(row["persisted_bytes_mean"]) / 1e6)


CHAIN = ("end to end", "persisted", "processed", "start delay of fast", "start delay of slow", "alignment of slow")
UNION = ("end to end", "persisted", "processed", "start delay of merge", "alignment of merge")
# run, its statistics, the target of each
TARGET = {
    "R_chain_sat_4ms_aligned": (CHAIN, ("± 10 %", "–", "–", "± 10 %", "± 10 %", "–")),
    "R_union_slowmerge_sat_aligned": (UNION, ("± 10 %", "–", "–", "± 10 %", "± 10 %")),
    "R_chain_rho050_aligned": (CHAIN, ("50–200 ms", "–", "–", "–", "–", "–")),
    "R_chain_sat_4ms_unaligned": (CHAIN, ("< 100 ms", "± 10 %", "–", "–", "–", "–")),
    "R_chain_rho050_unaligned": (CHAIN, ("–", "± 10 %", "–", "–", "–", "–")),
    "R_chain_sat_4ms_timeout": (CHAIN, ("± 10 %", "± 10 %", "–", "–", "–", "–")),
    "R_chain_rho050_timeout": (CHAIN, ("50–200 ms", "0", "–", "–", "–", "–")),
}


@pytest.mark.parametrize("name", TARGET)
def test_cells_are_judged_by_the_targets(name):
    """Each target is what `TARGETS` says; its bounds count as met, beyond them it is missed, and so without a value."""
    statistics, targets = TARGET[name]
    [job] = [job for job in load_measured() if job.name == name]

    def judged(**values):
        cells = compare({name: {**job.values, **values}})
        assert tuple(cell.statistic for cell in cells) == statistics
        assert tuple(cell.target for cell in cells) == targets
        return [cell.good for cell in cells]

    bounds = {"< 100 ms": (0.0, 99.9, 100.0), "50–200 ms": (50.0, 200.0, 200.1), "0": (0.0, 0.0, 1e-6)}
    for place, (statistic, target) in enumerate(zip(statistics, targets, strict=True)):
        measured = job.values[statistic]
        low, high, beyond = bounds.get(target, (0.9001 * measured, 1.0999 * measured, 1.1001 * measured))
        want = None if target == "–" else True
        assert [judged(**{statistic: value})[place] for value in (low, high)] == [want, want]
        assert judged(**{statistic: beyond})[place] is (want and False)
    assert [cell.good for cell in compare({name: {}})] == [None if target == "–" else False for target in targets]


def test_the_modes_stand_side_by_side():
    """The table in the documentation is this one: a row a job and statistic, with its unit, measured and predicted."""
    jobs = {job.name: job for job in load_measured()}
    predicted = {name: dict(job.values) for name, job in jobs.items()}
    predicted["R_chain_sat_4ms_unaligned"]["persisted"] *= 2
    del predicted["L_chain_sat_4ms_timeout"]["persisted"]
    cells = compare(predicted)
    rows = side_by_side(cell.as_row() for cell in cells)
    setups = {setup for setup, _, _ in rows}
    assert len(setups) == 11
    for setup, words, row in rows:
        for mode, cell in zip(MODES, row, strict=True):
            if cell is None:
                assert setup.startswith("V_")
            else:
                assert (cell["setup"], cell["mode"], f"{cell['statistic']}, {cell['unit']}") == (setup, mode, words)
    assert sum(cell is not None for _, _, row in rows for cell in row) == len(cells)
    lines = markdown(cells).splitlines()
    assert len([line for line in lines if line.startswith("| ")]) == 2 + len(rows)
    assert "| R_chain_sat_4ms | persisted, MB | 0.000 | 0.000 | 3.014 | **6.027 ✗** | 2.382 | 2.382 ✓ |" in lines
    assert "| L_chain_sat_4ms | persisted, MB | 0.000 | 0.000 | 1.422 | 1.422 ✓ | 0.832 | **– ✗** |" in lines
    assert "| V_p1_chain_sat | end to end, ms | 1237.8 | 1237.8 ✓ | 17.5 | 17.5 ✓ |  |  |" in lines
    assert [line.removeprefix("* ") for line in lines if line.startswith("* ")] == list(TARGETS)
    assert shown(None) == ("", "", "")
