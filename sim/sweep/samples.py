"""Runs that stand for many: by what a row of a report is about, the run that is nearest to its mean."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from barrierlab.sim.sweep.store import Store


class RunSample(NamedTuple):
    """A run, and the mean duration of its steady checkpoints, if it has any; of a join, its wait."""

    run_id: str
    part: str
    scenario: str
    parameters: Mapping[str, Any]
    seed: int
    digest: str
    verdict: str
    mean_ms: float | None


class CheckpointSample(NamedTuple):
    """A checkpoint of a run, and how long it took."""

    run_id: str
    checkpoint_id: int
    duration_ms: float


class RunIndex:
    """The runs of a sweep that came to their end, by what they are of."""

    def __init__(self, store: Store) -> None:
        runs = store.read("runs").select(
            ["run_id", "part", "scenario", "parameters", "seed", "journal_digest", "verdict", "status"]
        )
        self._checkpoints = _steady(store)
        waits = {row["run_id"]: row["wait_p99_ms"] for row in store.read("joins").to_pylist()}
        means = {**_means(self._checkpoints), **waits}
        self.runs = [
            RunSample(
                row["run_id"],
                row["part"] or "",
                row["scenario"] or "",
                json.loads(row["parameters"] or "{}"),
                row["seed"] or 0,
                row["journal_digest"] or "",
                (row["verdict"] or "") if row["status"] == "OK" else row["status"],
                means.get(row["run_id"]),
            )
            for row in runs.to_pylist()
        ]
        self.by_id = {run.run_id: run for run in self.runs}
        self._of_cell: dict[str, list[RunSample]] = {}
        for run in self.runs:
            self._of_cell.setdefault(_key(run.part, run.scenario, run.parameters), []).append(run)

    def of_cell(self, row: Mapping[str, Any]) -> list[RunSample]:
        """Return the runs of a row with a part, a scenario and parameters."""
        return self._of_cell.get(_key(row["part"], row["scenario"], row["parameters"]), [])

    def nearest_in_cell(self, row: Mapping[str, Any]) -> str:
        """Return the run that stands for a cell."""
        return nearest(self.of_cell(row))

    def nearest_of(self, part: str, at: float | None = None, **wanted: Any) -> str:
        """Return the run that stands for those of a part with these values: nearest to `at`, or to their mean.

        A value may be the text that JSON makes of it. `scenario` is one, too.
        """
        scenario = wanted.pop("scenario", None)
        found = [
            run
            for run in self.runs
            if run.part == part
            and scenario in (None, run.scenario)
            and all(_same(run.parameters.get(name), value) for name, value in wanted.items())
        ]
        return nearest(found, at)

    def checkpoints(self, part: str) -> list[CheckpointSample]:
        """Return the steady completed checkpoints of a part, the shortest first."""
        found = [each for each in self._checkpoints if self.by_id[each.run_id].part == part]
        return sorted(found, key=lambda each: (each.duration_ms, each.run_id, each.checkpoint_id))


def nearest(runs: Sequence[RunSample], at: float | None = None) -> str:
    """Return the id of the run whose mean is nearest to `at`, or to the mean of all; empty if there is none.

    >>> a, b, c = (RunSample(name, "", "", {}, 1, "", "", mean) for name, mean in (("a", 1.0), ("b", 4.0), ("c", 9.0)))
    >>> nearest([a, b, c]), nearest([a, b, c], 8.0), nearest([])
    ('b', 'c', '')
    """
    known = [(run.mean_ms, run.run_id) for run in runs if run.mean_ms is not None]
    if not known:
        return min((run.run_id for run in runs), default="")
    middle = sum(mean for mean, _ in known) / len(known) if at is None else at
    return min(known, key=lambda each: (abs(each[0] - middle), each[1]))[1]


def _key(part: str, scenario: str, parameters: Mapping[str, Any]) -> str:
    return json.dumps([part, scenario, parameters], sort_keys=True)


def _same(value: Any, wanted: Any) -> bool:
    return value == wanted or (isinstance(wanted, str) and not isinstance(value, str) and json.dumps(value) == wanted)


def _steady(store: Store) -> list[CheckpointSample]:
    import pyarrow.compute as pc

    table = store.read("checkpoints").select(["run_id", "checkpoint_id", "steady", "status", "end_to_end_duration_ms"])
    kept = table.filter(pc.and_(table["steady"], pc.equal(table["status"], "COMPLETED")))
    columns = (kept[name].to_pylist() for name in ("run_id", "checkpoint_id", "end_to_end_duration_ms"))
    return [CheckpointSample(*row) for row in zip(*columns, strict=True) if row[2] is not None]


def _means(checkpoints: Iterable[CheckpointSample]) -> dict[str, float]:
    sums: dict[str, list[float]] = {}
    for each in checkpoints:
        total = sums.setdefault(each.run_id, [0.0, 0.0])
        total[0] += each.duration_ms
        total[1] += 1.0
    return {run_id: total / count for run_id, (total, count) in sums.items()}
