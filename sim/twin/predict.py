"""Checkpoints of a job predicted from its scenario and a cost profile, with an interval, beside a measurement.

Each seed draws the job's randomness and, of each cost, a mean within its uncertainty. The interval is of a further run,
without a form of its distribution: of n runs the smallest and the largest hold the next with (n - 1) / (n + 1), which
is 90 % of 19. That the simulation itself may be wrong is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from barrierlab.sim.checkpoint.result import run
from barrierlab.sim.scenario.load import load
from barrierlab.sim.twin.answers import TwinError
from barrierlab.sim.twin.observed import STEADY, ObservedCheckpoint, ObservedJob, Subtask
from barrierlab.sim.twin.profile import Profile

RUNS = 19
WHOLE = {"end to end": "end_to_end_ms", "persisted": "persisted_bytes", "processed": "processed_bytes"}
OF_OPERATOR = {"start delay": "start_delay_ms", "alignment": "alignment_ms"}
OF_OPERATOR |= {"persisted": "persisted_bytes", "processed": "processed_bytes"}
Name = tuple[str, str]
"""A statistic, and the operator it is of, "" for the whole job."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """One statistic, in ms or bytes: the mean over the runs, and between which values a further run is."""

    statistic: str
    operator: str
    mean: float
    low: float
    high: float
    measured: float | None = None

    @property
    def unit(self) -> str:
        """ms or B."""
        return "B" if self.statistic in ("persisted", "processed") else "ms"

    @property
    def is_inside(self) -> bool | None:
        """Return whether the measurement is within the interval, by the millisecond of its clock.

        None without one, and where nothing is predicted and nothing was measured: there is nothing to be right about.
        """
        if self.measured is None or self.measured == self.high == 0:
            return None
        clock = 0.5 if self.unit == "ms" else 0.0
        return self.low - clock <= self.measured <= self.high + clock


def statistics_of(checkpoints: Sequence[ObservedCheckpoint]) -> dict[Name, float]:
    """Return the means over the last `STEADY` checkpoints: of times the largest of an operator's subtasks, of bytes
    the sum over them. A statistic that a checkpoint does not have is left out."""
    found: dict[Name, list[float]] = {}
    for checkpoint in checkpoints[-STEADY:]:
        for name, field in WHOLE.items():
            if (value := getattr(checkpoint, field)) is not None:
                found.setdefault((name, ""), []).append(value)
        for operator in dict.fromkeys(each.operator for each in checkpoint.subtasks):
            for name, field in OF_OPERATOR.items():
                values = [getattr(each, field) for each in checkpoint.of(operator)]
                if None not in values:
                    together = max if field.endswith("_ms") else sum
                    found.setdefault((name, operator), []).append(together(values))
    return {name: fmean(values) for name, values in found.items()}


def simulated(name: str, settings: Mapping[str, Any], seed: int) -> list[ObservedCheckpoint]:
    """Return the completed checkpoints of one simulated run after its warm-up, as a cluster would give them."""
    result = run(load(name, settings), seed)
    rows = [row for row in result.checkpoint_rows() if row["steady"] and row["status"] == "COMPLETED"]
    if not rows:
        raise TwinError(f"{name}: seed {seed}: no checkpoint completed after warmup_s; give it a longer until_s")
    subtasks: dict[int, list[Subtask]] = {}
    columns = ("start_delay_ms", "alignment_ms", "sync_ms", "async_ms", "end_to_end_ms")
    for row in result.task_rows():
        values = (row[column] for column in (*columns, "persisted_bytes", "processed_bytes"))
        subtasks.setdefault(row["checkpoint_id"], []).append(Subtask(row["operator"], row["subtask"], *values))
    return [
        ObservedCheckpoint(
            row["checkpoint_id"],
            row["end_to_end_duration_ms"],
            row["persisted_bytes"],
            row["processed_bytes"],
            tuple(subtasks[row["checkpoint_id"]]),
        )
        for row in rows
    ]


def predict(name: str, settings: Mapping[str, Any], profile: Profile, runs: int = RUNS) -> list[Predicted]:
    """Return every statistic of a job, predicted by so many runs with the seeds 1, 2, ...

    `settings` go before the profile's costs.
    """
    job = load(name, settings)
    found: dict[Name, list[float]] = {}
    for seed in range(1, runs + 1):
        checkpoints = simulated(name, {**profile.settings(job, seed), **settings}, seed)
        for key, value in statistics_of(checkpoints).items():
            found.setdefault(key, []).append(value)
    return [
        Predicted(*key, fmean(values), *_ends(values))
        for key, values in sorted(found.items(), key=lambda each: (each[0][1] != "", 0))
    ]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the order statistics between which a further value is with 90 %, or with what so few values can say."""
    placed = sorted(values)
    cut = max(1, round(0.05 * (len(values) + 1)))
    return placed[cut - 1], placed[-cut]


def beside(predicted: Sequence[Predicted], measured: Sequence[ObservedJob]) -> list[Predicted]:
    """Return the predictions with what was measured, the mean over the runs; those that were measured alone."""
    runs = [statistics_of(each.checkpoints) for each in measured]
    rows = []
    for each in predicted:
        key = (each.statistic, each.operator)
        values = [found[key] for found in runs if key in found]
        if values:
            rows.append(Predicted(*key, each.mean, each.low, each.high, fmean(values)))
    return rows
