"""Predicted against measured: the jobs that ran on a real Flink cluster, and what the simulation says of them.

`sim/data/flink/` holds the measurements, one run for each job and way to align. Every statistic is taken of a simulated
run as it was of the real one: for each steady checkpoint its own value, or the largest over the subtasks of an
operator, then the mean over those checkpoints. (That this one rule gives the columns of runs.csv from subtasks.csv is a
test.)
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from barrierlab.sim.core.amounts import percent
from barrierlab.sim.core.files import read_text
from barrierlab.sim.sweep.errors import SweepError

DATA = files("barrierlab.sim") / "data" / "flink"
ALIGNED, UNALIGNED, TIMEOUT = MODES = ("aligned", "unaligned", "aligned_with_timeout")
TOLERANCE = 0.10  # under saturation, for durations and what goes with them; always, for what is persisted
WINDOW_MS = (50.0, 200.0)  # below saturation, for the duration of a checkpoint that aligns
MOST_UNALIGNED_MS = 100.0  # under saturation, for the duration of one that does not

WITHIN = f"± {percent(TOLERANCE)}"
TARGETS = (
    f"Aligned, saturated: the duration, the start delays and the merge's alignment {WITHIN}.",
    f"Unaligned, saturated: a duration below {MOST_UNALIGNED_MS:g} ms.",
    f"Aligned with a timeout, saturated: the duration {WITHIN}.",
    "Aligned, with a timeout or without, below saturation, where a flush timer of 100 ms rules: a duration of "
    "{:g} to {:g} ms.".format(*WINDOW_MS),
    f"Persisted, unaligned or with a timeout: {WITHIN}; nothing where the real job persisted nothing.",
)


@dataclass(frozen=True)
class Statistic:
    """A statistic: its column in runs.csv, and in the tables `checkpoints` (no operator) or `tasks`."""

    name: str
    unit: str
    measured: str
    column: str
    operator: str | None = None
    factor: float = 1.0


END_TO_END = Statistic("end to end", "ms", "e2e_ms_mean", "end_to_end_duration_ms")
PROCESSED = Statistic("processed", "MB", "processed_bytes_mean", "processed_bytes", factor=1e-6)
PERSISTED = Statistic("persisted", "MB", "persisted_bytes_mean", "persisted_bytes", factor=1e-6)
ALIKE = Statistic("alignment of slow", "ms", "align_ms_slow", "alignment_ms", "slow")
STATISTICS = (
    END_TO_END,
    PERSISTED,
    PROCESSED,  # a handful of records where barriers come close together
    Statistic("start delay of fast", "ms", "delay_ms_fast", "start_delay_ms", "fast"),
    Statistic("start delay of slow", "ms", "delay_ms_slow", "start_delay_ms", "slow"),
    Statistic("start delay of merge", "ms", "delay_ms_merge", "start_delay_ms", "merge"),
    ALIKE,  # a few ms of chance, since its inputs are alike
    Statistic("alignment of merge", "ms", "align_ms_merge", "alignment_ms", "merge"),
)
_SCENARIOS = {"chain": "flink_chain", "forward": "flink_chain", "join": "flink_join", "union": "flink_union"}
_SATURATED_MS = (1, 4, 16)  # service times of the saturated levels of flink_chain
_DECIMALS = {"ms": 1, "MB": 3}
_REPEAT = re.compile(r"_\d+$")


@dataclass(frozen=True)
class MeasuredJob:
    """One measured run: how to simulate it, and its means by statistic. Runs of one `setup` differ in the mode.

    Of a run that was repeated `values` are the means over the repeats, `spread` their standard deviations.
    """

    name: str
    setup: str
    mode: str
    scenario: str
    settings: dict[str, Any]
    saturated: bool
    checkpoints: int
    values: dict[str, float]
    spread: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasuredStatistic:
    """One statistic of one measured run, predicted and measured, in `unit`. `good` is None where no target is set,
    `spread` where the run was not repeated."""

    job: str
    setup: str
    mode: str
    saturated: bool
    statistic: str
    unit: str
    predicted: float
    measured: float
    target: str
    good: bool | None
    spread: float | None = None

    @property
    def ratio(self) -> float:
        """Predicted by measured; NaN where nothing was measured."""
        return self.predicted / self.measured if self.measured else float("nan")

    def as_row(self) -> dict[str, Any]:
        """The cell as plain values; NaN, which JSON has not, is None."""
        row = {**asdict(self), "ratio": self.ratio}
        return {name: None if value != value else value for name, value in row.items()}


@cache
def load_measured() -> tuple[MeasuredJob, ...]:
    """The measured runs, in the order of the file."""
    with (DATA / "runs.csv").open(encoding="utf-8") as file:
        return tuple(_job(row) for row in csv.DictReader(file))


def measured_in(folder: Path) -> tuple[MeasuredJob, ...]:
    """The measured runs of another folder, whose runs.csv has the columns of sim/data/flink; repeats as one.

    Runs whose names differ in a number before the mode are repeats of each other.

    Raises
    ------
    SweepError
        If it is no such table, or a run is none of the jobs of the shipped scenarios; one line.
    """
    path = folder / "runs.csv"
    hint = "give a folder with a runs.csv as in sim/data/flink"
    rows = list(csv.DictReader(io.StringIO(read_text(path, SweepError, hint))))
    found: dict[str, MeasuredJob] = {}
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise SweepError(f"{path}: row {number}: has more or fewer values than there are columns; {hint}")
        try:
            job = _job(row)
        except (KeyError, ValueError, TypeError, AttributeError) as wrong:
            raise SweepError(f"{path}: row {number}: {type(wrong).__name__} {wrong}; {hint}") from wrong
        if not job.name or job.name in found or not all(0 <= value < math.inf for value in job.values.values()):
            raise SweepError(f"{path}: row {number}: a run that comes twice, or a value below 0; {hint}")
        found[job.name] = job
    if not found:
        raise SweepError(f"{path}: has no run; {hint}")
    return tuple(_together(found.values()))


def _together(jobs: Iterable[MeasuredJob]) -> Iterable[MeasuredJob]:
    """Yield each job once, with the means of its repeats and their spread."""
    groups: dict[str, list[MeasuredJob]] = {}
    for job in jobs:
        groups.setdefault(f"{_REPEAT.sub('', job.setup)} {job.mode}", []).append(job)
    for repeats in groups.values():
        first = repeats[0]
        if len(repeats) == 1 or any(job.settings != first.settings for job in repeats):
            yield from repeats
            continue
        setup = _REPEAT.sub("", first.setup)
        name = f"{setup}{first.name.removeprefix(first.setup)}"
        values = [job.values for job in repeats]
        spread = {key: stdev(each[key] for each in values) for key in first.values if all(key in v for v in values)}
        yield replace(first, name=name, setup=setup, values=mean_of(values), spread=spread)


def _job(row: Mapping[str, str]) -> MeasuredJob:
    level, rates = _level(row)
    mode = TIMEOUT if "timeout" in row["mode"] else row["mode"]  # the driver of the cluster names how long it is, too
    settings = {
        "level": level,
        "topology": {"remote": "R", "local": "L"}[row["topology"]],
        "parallelism": int(row["parallelism"]),
        "record_bytes": int(row["record_bytes"]),
        "segment_bytes": int(row["segment_bytes"]),
        "mode": mode,
        **rates,
    }
    if row["dag"] == "forward":
        settings |= {f"channel.{edge}.exchange": "forward" for edge in ("source->fast", "fast->slow")}
    if int(row["segment_bytes"]) % int(row["record_bytes"]):
        settings["channel.default.spanning_records"] = True
    if target_ms := row.get("debloat_target_ms"):
        settings |= {"buffer_debloat.enabled": True, "buffer_debloat.target_s": float(target_ms) / 1e3}
    if interval_ms := row.get("interval_ms"):
        settings |= {"checkpoint.interval_s": float(interval_ms) / 1e3}
    said = {s: row.get(s.measured, "") if s.operator else row[s.measured] for s in STATISTICS}
    values = {s.name: float(text) * s.factor for s, text in said.items() if text}
    setup = row["run"].rpartition("_")[0]
    saturated = level.startswith("sat")
    return MeasuredJob(row["run"], setup, mode, _SCENARIOS[row["dag"]], settings, saturated, int(row["n"]), values)


def _level(row: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The level: in the run's name, or (single variations, V_...) by the service time of a saturated chain.

    Of a chain whose load or service is no level of it, one that is near, and beside it what differs.
    """
    name, dag, service_ms = row["run"], row["dag"], float(row["slow_service_ms"] or 0)
    for level in ("rho050", "rho080", "rho090"):
        if level in name and (level, dag) != ("rho080", "chain"):
            return level, {}
    if dag == "union":
        return "sat", {}
    rate = {"source.source.rate_per_s": float(row["rate_A"]) / int(row["parallelism"])}
    if re.search(r"_rho\d{3}", name):
        return "rho090", rate
    if service_ms in _SATURATED_MS or dag == "join":
        return f"sat_{service_ms:g}ms", {}
    # Of the levels the one whose runs were as long: ten checkpoints, one every 2 s.
    return "sat_4ms", {**rate, "operator.slow.service_s": service_ms / 1e3}


def statistics_of(checkpoints: Iterable[Mapping[str, Any]], tasks: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The statistics of one run, by name, from its rows of the tables `checkpoints` and `tasks`.

    Only steady completed checkpoints count; a statistic of an operator that the job has not is left out.
    """
    done = {row["checkpoint_id"]: row for row in checkpoints if row["steady"] and row["status"] == "COMPLETED"}
    rows = [row for row in tasks if row["checkpoint_id"] in done]
    values = {}
    for statistic in STATISTICS:
        column, operator = statistic.column, statistic.operator
        found = done.values() if operator is None else [row for row in rows if row["operator"] == operator]
        largest: dict[int, float] = {}
        for row in found:
            if row.get(column) is not None:
                largest[row["checkpoint_id"]] = max(row[column], largest.get(row["checkpoint_id"], 0.0))
        if largest:
            values[statistic.name] = fmean(largest.values()) * statistic.factor
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
    return {job: mean_of(runs) for job, runs in found.items()}


def mean_of(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each statistic's mean over the runs that have it."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: fmean(run[name] for run in runs if name in run) for name in names}


def compare(
    predicted: Mapping[str, Mapping[str, float]], jobs: Sequence[MeasuredJob] | None = None
) -> list[MeasuredStatistic]:
    """Predictions beside measurements, for those of `jobs` (None: the shipped) that `predicted` has, by name."""
    return [
        _cell(job, statistic, predicted[job.name].get(statistic.name, float("nan")), job.values[statistic.name])
        for job in (load_measured() if jobs is None else jobs)
        if job.name in predicted
        for statistic in STATISTICS
        if statistic.name in job.values
    ]


def _cell(job: MeasuredJob, statistic: Statistic, predicted: float, measured: float) -> MeasuredStatistic:
    target, good = _judged(job, statistic, predicted, measured)
    about = (job.name, job.setup, job.mode, job.saturated, statistic.name, statistic.unit)
    return MeasuredStatistic(*about, predicted, measured, target, good, job.spread.get(statistic.name))


def _judged(job: MeasuredJob, statistic: Statistic, predicted: float, measured: float) -> tuple[str, bool | None]:
    """The target, one of `TARGETS` in short, and whether it is met."""
    within = WITHIN, abs(predicted - measured) <= TOLERANCE * measured
    if statistic is PERSISTED:
        if job.mode == ALIGNED:
            return "–", None  # nothing can be
        return within if measured else ("0", predicted == 0.0)
    if statistic is END_TO_END and job.mode == UNALIGNED and job.saturated:
        return f"< {MOST_UNALIGNED_MS:g} ms", predicted < MOST_UNALIGNED_MS
    if statistic is END_TO_END and job.mode != UNALIGNED:
        low, high = WINDOW_MS
        return within if job.saturated else (f"{low:g}–{high:g} ms", low <= predicted <= high)
    if job.mode == ALIGNED and job.saturated and statistic not in (ALIKE, PROCESSED):
        return within
    return "–", None


def side_by_side(cells: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, list[Mapping[str, Any] | None]]]:
    """Cells as rows: the set-up, the statistic with its unit, and the cell of each of `MODES`, None where none is.

    `cells` are as `MeasuredStatistic.as_row` gives them.
    """
    rows: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for cell in cells:
        rows.setdefault((cell["setup"], f"{cell['statistic']}, {cell['unit']}"), {})[cell["mode"]] = cell
    return [(setup, words, [row.get(mode) for mode in MODES]) for (setup, words), row in rows.items()]


def shown(cell: Mapping[str, Any] | None) -> tuple[str, str, str]:
    """The measured and the predicted value of a cell as text, and a mark where there is a target: ✓ met, ✗ missed.

    Beside what was measured repeatedly stands its standard deviation.
    """
    if cell is None:
        return "", "", ""
    digits = _DECIMALS[cell["unit"]]
    predicted = "–" if cell["predicted"] is None else f"{cell['predicted']:.{digits}f}"
    spread = "" if cell.get("spread") is None else f" ± {cell['spread']:.{digits}f}"
    mark = {True: "✓", False: "✗", None: ""}[cell["good"]]
    return f"{cell['measured']:.{digits}f}{spread}", predicted, mark


def markdown(cells: Iterable[MeasuredStatistic]) -> str:
    """The comparison as a Markdown table, and below it what the marks say."""
    head = ["measured job", "statistic", *(words for mode in MODES for words in (f"{mode}: measured", "predicted"))]
    rows = [["---", "---", *["---:"] * (len(head) - 2)]]
    for setup, words, row in side_by_side(cell.as_row() for cell in cells):
        rows.append([setup, words, *(text for cell in row for text in _pair(*shown(cell)))])
    table = "\n".join(f"| {' | '.join(row)} |" for row in [head, *rows])
    return f"{table}\n\n✓ is within its target, ✗ is not, what is unmarked has none.\n" + "".join(
        f"\n* {target}" for target in TARGETS
    )


def _pair(measured: str, predicted: str, mark: str) -> tuple[str, str]:
    text = f"{predicted} {mark}".strip()
    return measured, f"**{text}**" if mark == "✗" else text
