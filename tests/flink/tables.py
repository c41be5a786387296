"""Measured runs as tables: the means of a run, each checkpoint's subtasks, and the buffers of each subtask.

    python -m tests.flink.tables ANSWERS --version 2.3.0 --group debloat200 -o FOLDER

The columns are those of sim/data/flink/README.md; runs of several groups go into one folder. Runs of a group whose
answers are not there are left out.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from barrierlab.sim.twin.answers import answers_of
from barrierlab.sim.twin.import_flink import FlinkJob, job_of
from barrierlab.sim.twin.observed import ObservedJob, observed_in
from tests.flink.jobs import GROUPS, HEADER, PAYLOAD, BenchJob, Group

MODES = {"aligned": "aligned", "unaligned": "unaligned", "timeout": "aligned-timeout-300ms"}
PAUSE_S = 0.5
QUEUES = ("estimated_ms", "in_buffers", "in_bytes", "out_buffers", "out_bytes", "records_in_per_s")
SHIPPED = ("chain", "forward", "join", "union")
"""The dataflows of which there is a scenario to simulate them by; runs of others are in tables of their own."""
SUBTASK = {
    "start_delay_ms": "start_delay_ms",
    "alignment_ms": "alignment_ms",
    "sync_ms": "sync_ms",
    "async_ms": "async_ms",
    "subtask_e2e_ms": "end_to_end_ms",
    "subtask_persisted_bytes": "persisted_bytes",
    "subtask_processed_bytes": "processed_bytes",
}
OF_RUN = {
    "busy": "busy_ms_per_s",
    "bp": "pressed_ms_per_s",
    "inB": "in_buffers",
    "inQ": "in_bytes",
    "outB": "out_buffers",
    "outQ": "out_bytes",
    "recs_per_s_per_subtask": "records_in_per_s",
    "debloated_bytes": "debloated_bytes",
    "estimated_ms": "estimated_ms",
}
"""Columns of an operator in runs.csv, and the column of the samples whose mean it is."""


@dataclass(frozen=True)
class MeasuredRun:
    """One run: how it was set up, the checkpoints that the cluster gave, and the samples of its steady part."""

    name: str
    setup: Mapping[str, Any]
    observed: ObservedJob
    failed: int
    samples: Sequence[Mapping[str, str]]

    def row(self) -> dict[str, Any]:
        """Return its row of runs.csv."""
        steady = self.observed.steady
        found: dict[str, Any] = {"run": self.name, **self.setup, "n": len(steady), "failed_ckpts": self.failed}
        for column, values in (
            ("e2e_ms", [each.end_to_end_ms for each in steady]),
            ("persisted_bytes", [each.persisted_bytes or 0.0 for each in steady]),
            ("processed_bytes", [each.processed_bytes or 0.0 for each in steady]),
        ):
            found |= {f"{column}_{name}": short(value) for name, value in summary(values).items()}
        for operator in self.observed.senders:
            rows = [each.of(operator) for each in steady]
            found[f"align_ms_{operator}"] = short(fmean(max(s.alignment_ms or 0.0 for s in row) for row in rows))
            found[f"delay_ms_{operator}"] = short(fmean(max(s.start_delay_ms or 0.0 for s in row) for row in rows))
            services = self.observed.services_s.get(operator, ())
            found[f"{operator}.service_ms"] = " ".join(f"{1e3 * each:.2f}" for each in services)
            for column, sampled in OF_RUN.items():
                if values := self.sampled(operator, sampled):
                    found[f"{operator}.{column}"] = short(fmean(values))
        return found

    def subtask_rows(self) -> Iterable[dict[str, Any]]:
        """Yield its rows of subtasks.csv."""
        steady = {each.id for each in self.observed.steady}
        for each in self.observed.checkpoints:
            whole = {
                "ckpt_id": each.id,
                "steady": int(each.id in steady),
                "ckpt_e2e_ms": short(each.end_to_end_ms),
                "ckpt_persisted_bytes": short(each.persisted_bytes or 0.0),
                "ckpt_processed_bytes": short(each.processed_bytes or 0.0),
            }
            for subtask in each.subtasks:
                own = {column: short(getattr(subtask, field) or 0.0) for column, field in SUBTASK.items()}
                at = {"task": subtask.operator, "subtask": subtask.index}
                yield {"run": self.name, **self.setup, **whole, **at, **own}

    def buffer_rows(self) -> Iterable[dict[str, Any]]:
        """Yield its rows of buffers.csv: of each subtask with a gate that debloats, over the steady part."""
        for operator, index in dict.fromkeys((each["task"], each["subtask"]) for each in self.samples):
            if sizes := self.sampled(operator, "debloated_bytes", index):
                row: dict[str, Any] = {"run": self.name, "task": operator, "subtask": index, "samples": len(sizes)}
                row |= {f"debloated_bytes_{name}": short(value) for name, value in summary(sizes).items()}
                for column in (
                    "estimated_ms",
                    "in_buffers",
                    "in_bytes",
                    "out_buffers",
                    "out_bytes",
                    "records_in_per_s",
                ):
                    row[column] = short(fmean(self.sampled(operator, column, index)))
                yield row

    def sampled(self, operator: str, column: str, index: str | None = None) -> list[float]:
        """Return the samples of a column, of one subtask or of all; no sample is no number."""
        rows = [r for r in self.samples if r["task"] == operator and index in (None, r["subtask"])]
        return [float(row[column]) for row in rows if row[column] not in ("", "NaN")]


def summary(values: Sequence[float]) -> dict[str, float]:
    """Return the mean of values, their standard deviation, the least and the largest."""
    spread = stdev(values) if len(values) > 1 else 0.0
    return {"mean": fmean(values), "sd": spread, "min": min(values), "max": max(values)}


def short(value: float) -> float | int:
    """Return a value with one decimal, as a whole number where that is 0."""
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def read_run(each: BenchJob, group: Group, label: str, mode: str, folder: Path, version: str) -> MeasuredRun | None:
    """Return the run of this label, None if its answers are not there."""
    path = folder / f"{label}.json"
    if not path.exists():
        return None
    answers = answers_of([str(path)])
    job = job_of(answers, None)
    observed = observed_in(answers, job)
    history = answers.get(f"/jobs/{job.id}/checkpoints")["history"]
    settings = {"payload": PAYLOAD, **each.settings}
    options = {**group.options, **each.options}
    every = options.get("execution.checkpointing.interval", "2 s")
    interval_s = float(every.split()[0])
    setup = {
        "version": version,
        "topology": "remote" if group.slots == 1 else "local",
        "dag": each.dag,
        "parallelism": job.vertices[0].parallelism,
        "record_bytes": settings["payload"] + HEADER,
        **{f"rate_{name}": float(settings[key]) if key in settings else "" for name, key in
           (("A", "rate"), ("B", "rateB"), ("C", "rateC"))},
        "slow_service_ms": settings.get("serviceNanos", 0) / 1e6,
        "merge_service_ms": settings.get("mergeNanos", 0) / 1e6,
        "segment_bytes": 32_768,
        "debloat_target_ms": _ms(options.get("taskmanager.network.memory.buffer-debloat.target", "")),
        "interval_ms": round(1e3 * interval_s),
        "mode": MODES[mode],
    }  # fmt: skip
    failed = sum(each["status"] == "FAILED" for each in history)
    samples = _steady(folder / f"{label}.csv", observed, job, interval_s)
    name = f"{'R' if group.slots == 1 else 'L'}_{label}"
    return MeasuredRun(name, setup, observed, failed, samples)


def _ms(said: str) -> str:
    return said.split(maxsplit=1)[0] if said else ""


def _steady(path: Path, observed: ObservedJob, job: FlinkJob, interval_s: float) -> list[dict[str, str]]:
    """Return the samples of the time in which the steady checkpoints were taken, by the names of operators."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = {each.full_name: each.operator for each in job.vertices}
    lasted = sum(max(interval_s, each.end_to_end_ms / 1e3 + PAUSE_S) for each in observed.steady)
    end = max(float(row["t_s"]) for row in rows)
    return [{**row, "task": names.get(row["task"], row["task"])} for row in rows if float(row["t_s"]) >= end - lasted]


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows as a table; columns in the order in which they come first, those of an operator by name."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    columns.sort(key=lambda column: (column.partition(".")[0] if "." in column else "",))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def runs_in(folder: Path, version: str, groups: Iterable[str]) -> list[MeasuredRun]:
    """Return the runs of these groups of which there are answers."""
    found = [
        read_run(each, GROUPS[group], label, mode, folder / version, version)
        for group in groups
        for each in GROUPS[group].jobs
        for label, mode in each.runs()
    ]
    return [run for run in found if run is not None]


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path, help="the folder that tests.flink.run wrote")
    parser.add_argument("--version", default="2.3.0")
    parser.add_argument("--group", action="append", choices=GROUPS, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    runs = runs_in(given.answers, given.version, given.group)
    given.out.mkdir(parents=True, exist_ok=True)
    for head, chosen in (
        ("", [run for run in runs if run.setup["dag"] in SHIPPED]),
        ("other_", [run for run in runs if run.setup["dag"] not in SHIPPED]),
    ):
        if chosen:
            write([run.row() for run in chosen], given.out / f"{head}runs.csv")
            write([row for run in chosen for row in run.subtask_rows()], given.out / f"{head}subtasks.csv")
    if buffers := [row for run in runs for row in run.buffer_rows()]:
        write(buffers, given.out / "buffers.csv")


if __name__ == "__main__":
    main()
