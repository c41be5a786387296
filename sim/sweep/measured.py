"""Predicted against measured: the jobs that ran on a real Flink cluster, and what the simulation says of them.

`sim/data/flink/` holds the measurements. Every statistic is taken of a simulated run as it was of the real one: for
each steady checkpoint the largest value over the subtasks of an operator, then the mean over those checkpoints. (That
this one rule gives every column of runs.csv from subtasks.csv is a test.)
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import Any

DATA = files("sim") / "data" / "flink"
TOLERANCE = 0.10  # under saturation, for durations, start delays and the merge's alignment
WINDOW_MS = (50.0, 200.0)  # below saturation, for the whole duration

# Columns of runs.csv: (statistic, column, operator, column of the `tasks` table). The fast operator of a union is
# fastA, which runs.csv leaves out.
STATISTICS = (
    ("start delay of fast", "delay_ms_fast", "fast", "start_delay_ms"),
    ("start delay of slow", "delay_ms_slow", "slow", "start_delay_ms"),
    ("start delay of merge", "delay_ms_merge", "merge", "start_delay_ms"),
    ("alignment of merge", "align_ms_merge", "merge", "alignment_ms"),
)
END_TO_END = "end to end"
_SCENARIOS = {"chain": "flink_chain", "join": "flink_join", "union": "flink_union"}


@dataclass(frozen=True)
class Job:
    """One measured run: how to simulate it, and its mean values in ms by statistic."""

    name: str
    scenario: str
    settings: dict[str, Any]
    saturated: bool
    checkpoints: int
    values_ms: dict[str, float]


@dataclass(frozen=True)
class Cell:
    """One statistic of one job, predicted and measured, in ms. `good` is None where no target is set."""

    job: str
    saturated: bool
    statistic: str
    predicted_ms: float
    measured_ms: float
    target: str
    good: bool | None

    @property
    def ratio(self) -> float:
        """Predicted by measured."""
        return self.predicted_ms / self.measured_ms

    def as_row(self) -> dict[str, Any]:
        """The cell as plain values; NaN, which JSON has not, is None."""
        row = {**asdict(self), "ratio": self.ratio}
        return {name: None if value != value else value for name, value in row.items()}


@cache
def load_measured() -> tuple[Job, ...]:
    """The measured runs with aligned barriers and buffers of fixed size, in the order of the file."""
    with (DATA / "runs.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["mode"] == "aligned" and not row["debloat_target_ms"]]
    return tuple(_job(row) for row in rows)


def _job(row: Mapping[str, str]) -> Job:
    level = _level(row)
    settings = {
        "level": level,
        "topology": {"remote": "R", "local": "L"}[row["topology"]],
        "parallelism": int(row["parallelism"]),
        "record_bytes": int(row["record_bytes"]),
        "segment_bytes": int(row["segment_bytes"]),
        "mode": row["mode"],
    }
    values = {name: float(row[column]) for name, column, _, _ in STATISTICS if row[column]}
    values = {END_TO_END: float(row["e2e_ms_mean"]), **values}
    return Job(row["run"], _SCENARIOS[row["dag"]], settings, level.startswith("sat"), int(row["n"]), values)


def _level(row: Mapping[str, str]) -> str:
    """The level: in the run's name, or (single variations, V_...) by the service time of a saturated chain."""
    name = row["run"]
    for level in ("rho050", "rho080", "rho090"):
        if level in name:
            return level
    return "sat" if row["dag"] == "union" else f"sat_{float(row['slow_service_ms']):g}ms"


def statistics_of(checkpoints: Iterable[Mapping[str, Any]], tasks: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The statistics of one run, in ms, from its rows of the tables `checkpoints` and `tasks`.

    Only steady completed checkpoints count; a statistic of an operator that the job has not is left out.
    """
    done = {
        row["checkpoint_id"]: row["end_to_end_duration_ms"]
        for row in checkpoints
        if row["steady"] and row["status"] == "COMPLETED"
    }
    if not done:
        return {}
    rows = [row for row in tasks if row["checkpoint_id"] in done]
    values = {END_TO_END: fmean(done.values())}
    for name, _, operator, column in STATISTICS:
        largest: dict[int, float] = {}
        for row in rows:
            if row["operator"] == operator and row[column] is not None:
                largest[row["checkpoint_id"]] = max(row[column], largest.get(row["checkpoint_id"], 0.0))
        if largest:
            values[name] = fmean(largest.values())
    return values


def predict(
    jobs: Mapping[str, str], checkpoints: Iterable[Mapping[str, Any]], tasks: Iterable[Mapping[str, Any]]
) -> dict[str, dict[str, float]]:
    """Statistics by job, each the mean over its runs. `jobs` says which run is of which job; rows have a `run_id`."""
    rows: dict[str, tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]] = {
        run_id: ([], []) for run_id in sorted(jobs)
    }
    for place, table in enumerate((checkpoints, tasks)):
        for row in table:
            if row["run_id"] in rows:
                rows[row["run_id"]][place].append(row)
    found: dict[str, list[dict[str, float]]] = {}
    for run_id, pair in rows.items():
        found.setdefault(jobs[run_id], []).append(statistics_of(*pair))
    return {
        job: {
            name: fmean(run[name] for run in runs if name in run)
            for name in dict.fromkeys(n for run in runs for n in run)
        }
        for job, runs in found.items()
    }


def compare(predicted: Mapping[str, Mapping[str, float]]) -> list[Cell]:
    """Predictions beside measurements, for the jobs that `predicted` (job to statistics) has."""
    cells = []
    for job in load_measured():
        if job.name in predicted:
            for statistic, measured in job.values_ms.items():
                cells.append(_cell(job, statistic, predicted[job.name].get(statistic, float("nan")), measured))
    return cells


def _cell(job: Job, statistic: str, predicted: float, measured: float) -> Cell:
    if job.saturated:
        good = abs(predicted / measured - 1.0) <= TOLERANCE
        return Cell(job.name, True, statistic, predicted, measured, f"± {TOLERANCE:.0%}", good)
    if statistic == END_TO_END:
        low, high = WINDOW_MS
        return Cell(job.name, False, statistic, predicted, measured, f"{low:g}–{high:g} ms", low <= predicted <= high)
    return Cell(job.name, False, statistic, predicted, measured, "–", None)


def markdown(cells: Iterable[Cell]) -> str:
    """The comparison as a Markdown table."""
    lines = [
        "| measured run | statistic | measured ms | predicted ms | ratio | target | |",
        "| --- | --- | ---: | ---: | ---: | --- | --- |",
    ]
    for c in cells:
        met = {True: "met", False: "**missed**", None: ""}[c.good]
        lines.append(
            f"| {c.job} | {c.statistic} | {c.measured_ms:.1f} | {c.predicted_ms:.1f} | {c.ratio:.2f} "
            f"| {c.target} | {met} |"
        )
    return "\n".join(lines)
