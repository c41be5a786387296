"""The test of predictions on a real cluster: calibrated on one configuration, all others predicted.

    python -m tests.flink.predictions ANSWERS [--version 2.3.0] [--seeds 5]

ANSWERS is the folder that `tests.flink.run` writes. Each run is imported as a scenario, as a user would. How long an
operator works for a record is the job's own; all other costs are those of the cluster. Errors of the simulation are
those of the shipped measurements.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, stdev
from tempfile import TemporaryDirectory

from barrierlab.sim.core.amounts import percent
from barrierlab.sim.twin.answers import answers_of
from barrierlab.sim.twin.calibrate import calibrate
from barrierlab.sim.twin.import_flink import Imported, job_of, scenario_of
from barrierlab.sim.twin.observed import ObservedJob, observed_in
from barrierlab.sim.twin.predict import Predicted, beside, predict

CALIBRATED_ON = {"local": "chain_local_saturated_aligned", "remote": "chain_remote_saturated_aligned"}
"""The run of a cluster's kind that costs are read off."""
SHOWN = (("end to end", ""), ("persisted", ""))


@dataclass(frozen=True)
class SavedRun:
    """One run of which there are answers: its scenario, and what was measured."""

    name: str
    imported: Imported
    observed: ObservedJob

    @property
    def kind(self) -> str:
        """local or remote, as its channels are."""
        return "local" if self.observed.is_local else "remote"

    def services(self) -> dict[str, float]:
        """Return how long each of its operators works for a record, by key: a profile has those of other jobs."""
        operators = tomllib.loads(self.imported.text)["operator"]
        return {f"operator.{name}.service_s": keys["service_s"] for name, keys in operators.items()}


@dataclass(frozen=True)
class Beside:
    """A statistic of one run, predicted, and between its checkpoints the standard deviation of what was measured."""

    run: str
    row: Predicted
    spread: float

    @property
    def error(self) -> float | None:
        """Return how far off the prediction is, by what was measured; None where that is nothing."""
        return self.row.median / self.row.measured - 1 if self.row.measured else None


def saved_runs(folder: Path) -> list[SavedRun]:
    """Return the runs of a folder, by name."""
    found = []
    for path in sorted(folder.glob("*.json")):
        answers = answers_of([str(path)])
        job = job_of(answers, None)
        found.append(SavedRun(path.stem, scenario_of(job, answers.where), observed_in(answers, job)))
    return found


def predicted(run: SavedRun, calibrated_on: Sequence[SavedRun], seeds: int) -> list[Beside]:
    """Return the statistics of a run, predicted from the costs of others."""
    profile = calibrate([each.observed for each in calibrated_on])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "job.toml"
        path.write_text(run.imported.text, encoding="utf-8")
        rows = beside(predict(str(path), run.services(), profile, seeds), [run.observed])
    return [Beside(run.name, row, _spread(run.observed, row)) for row in rows if (row.statistic, row.operator) in SHOWN]


def _spread(observed: ObservedJob, row: Predicted) -> float:
    values = [
        each.end_to_end_ms if row.statistic == "end to end" else each.persisted_bytes or 0.0 for each in observed.steady
    ]
    return stdev(values) if len(values) > 1 else 0.0


def all_predicted(runs: Sequence[SavedRun], seeds: int) -> Iterator[Beside]:
    """Yield the predictions of the runs of each kind of cluster from the one that it is calibrated on."""
    by_name = {run.name: run for run in runs}
    for run in runs:
        source = by_name.get(CALIBRATED_ON[run.kind])
        if source is not None and run is not source:
            yield from predicted(run, [source], seeds)


def table(found: Iterable[Beside]) -> str:
    """Return measured beside predicted as Markdown, and below it how many are inside and the median error."""
    head = ("run", "statistic", "measured", "predicted", "90 % interval", "error", "")
    lines = [_line(head), "|---|---|---:|---:|---:|---:|---|"]
    rows = [each for each in found if each.row.measured or each.row.median]
    for each in rows:
        row, digits, factor = each.row, *((3, 1e-6) if each.row.unit == "B" else (0, 1.0))
        low, high, middle, measured, spread = (
            f"{value * factor:.{digits}f}"
            for value in (row.low, row.high, row.median, row.measured or 0.0, each.spread)
        )
        statistic = f"{row.statistic}, {'MB' if row.unit == 'B' else 'ms'}"
        off = "" if each.error is None else percent(each.error, 1, sign=True)
        inside = {True: "inside", False: "outside", None: ""}[row.is_inside]
        lines.append(_line((each.run, statistic, f"{measured} ± {spread}", middle, f"{low} to {high}", off, inside)))
    errors = [abs(each.error) for each in rows if each.error is not None]
    judged = [each.row.is_inside for each in rows if each.row.is_inside is not None]
    if errors:
        off = f"median error {percent(median(errors), 1)}, largest {percent(max(errors), 1)}"
        lines.append(f"\n{sum(judged)} of {len(judged)} inside; {off}")
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def show(folder: Path, seeds: int) -> None:
    """Print the predictions of the runs of a folder, of the kinds of cluster whose run to calibrate on is there."""
    runs = saved_runs(folder)
    sources = [name for name in CALIBRATED_ON.values() if name in {run.name for run in runs}]
    if not sources:
        print(f"{folder.name}: nothing is predicted, as no run is {' or '.join(CALIBRATED_ON.values())}", flush=True)
        return
    print(f"{folder.name}: calibrated on {' and '.join(sources)}\n")
    print(table(all_predicted(runs, seeds)), flush=True)


def main() -> None:
    """Print measured beside predicted of each version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--version", action="append")
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    versions = given.version or sorted(path.name for path in given.answers.iterdir() if re.match(r"\d", path.name))
    for version in versions:
        show(given.answers / version, given.seeds)


if __name__ == "__main__":
    main()
