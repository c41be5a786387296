"""Checkpoints of a job predicted from its scenario and a cost profile, with an interval, beside a measurement.

Each seed draws the job's randomness, and the costs as one measured run had them. The interval is of a further run, and
holds it with 90 %: the chance of the simulated runs, and beside it what the simulation was off by on measured jobs of
this kind (`errors`). Where none of them was measured, it is the runs' ends alone, and `is_known` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.sim.checkpoint.result import run
from barrierlab.sim.checkpoint.stationarity import OVERLOADED
from barrierlab.sim.scenario.load import load
from barrierlab.sim.scenario.settings import Scenario
from barrierlab.sim.twin.answers import TwinError
from barrierlab.sim.twin.errors import ErrorTerm, kind_of, regime, shipped
from barrierlab.sim.twin.observed import ObservedCheckpoint, ObservedJob, Subtask, steady
from barrierlab.sim.twin.profile import Profile, shipped_profile

RUNS = 19
OF_UNALIGNED = ("unaligned_begin", "channel_state")
TAKEN = "what unaligned parts cost: no run calibrated on has one; taken from sim/data/flink, with its spread"
WHOLE = {"end to end": "end_to_end_ms", "persisted": "persisted_bytes", "processed": "processed_bytes"}
OF_OPERATOR = {"start delay": "start_delay_ms", "alignment": "alignment_ms"}
OF_OPERATOR |= {"persisted": "persisted_bytes", "processed": "processed_bytes"}
IMBALANCE = "imbalance"
Name = tuple[str, str]
"""A statistic, and the operator it is of, "" for the whole job."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """One statistic, in ms or bytes: the median of the runs, and between which values a further run is."""

    statistic: str
    operator: str
    median: float
    low: float
    high: float
    measured: float | None = None
    is_known: bool = True

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
    """Return the means over the steady checkpoints: of times the largest of an operator's subtasks, of bytes
    the sum over them; and the imbalance, by how much the start delays of its subtasks are apart. A statistic that a
    checkpoint does not have is left out."""
    found: dict[Name, list[float]] = {}
    for checkpoint in steady(checkpoints):
        for name, field in WHOLE.items():
            if (value := getattr(checkpoint, field)) is not None:
                found.setdefault((name, ""), []).append(value)
        for operator in dict.fromkeys(each.operator for each in checkpoint.subtasks):
            for name, field in OF_OPERATOR.items():
                values = [getattr(each, field) for each in checkpoint.of(operator)]
                if None not in values:
                    together = max if field.endswith("_ms") else sum
                    found.setdefault((name, operator), []).append(together(values))
            delays = [each.start_delay_ms for each in checkpoint.of(operator)]
            known = [each for each in delays if each is not None]
            if 1 < len(known) == len(delays):
                found.setdefault((IMBALANCE, operator), []).append(max(known) - min(known))
    return {name: fmean(values) for name, values in found.items()}


def simulated(name: str, settings: Mapping[str, Any], seed: int) -> list[ObservedCheckpoint]:
    """Return the completed checkpoints of one simulated run after its warm-up, as a cluster would give them."""
    return _simulated(name, settings, seed)[0]


def _simulated(name: str, settings: Mapping[str, Any], seed: int) -> tuple[list[ObservedCheckpoint], bool]:
    """Return the checkpoints, and whether the job was saturated."""
    result = run(load(name, settings, kind=Scenario), seed)
    rows = [row for row in result.checkpoint_rows() if row["steady"] and row["status"] == "COMPLETED"]
    if not rows:
        raise TwinError(f"{name}: seed {seed}: no checkpoint completed after warmup_s; give it a longer until_s")
    subtasks: dict[int, list[Subtask]] = {}
    columns = ("start_delay_ms", "alignment_ms", "sync_ms", "async_ms", "end_to_end_ms")
    for row in result.task_rows():
        values = (row[column] for column in (*columns, "persisted_bytes", "processed_bytes"))
        subtasks.setdefault(row["checkpoint_id"], []).append(Subtask(row["operator"], row["subtask"], *values))
    checkpoints = [
        ObservedCheckpoint(
            row["checkpoint_id"],
            row["end_to_end_duration_ms"],
            row["persisted_bytes"],
            row["processed_bytes"],
            tuple(subtasks[row["checkpoint_id"]]),
        )
        for row in rows
    ]
    return checkpoints, (result.piles_up_share or 0.0) >= OVERLOADED


def completed(profile: Profile, job: Scenario) -> Profile:
    """Return the profile with what unaligned parts cost: of the measured cluster, if neither it nor the job says."""
    own = job.checkpoint.unaligned_begin_s or job.checkpoint.channel_state_s.mean
    links = [channel.unaligned_barrier_latency_s for channel in job.channels.values()]
    if not job.mode.goes_unaligned or any(name in profile.costs for name in OF_UNALIGNED) or own or any(links):
        return profile
    usual = shipped_profile(all(channel.local for channel in job.channels.values()))
    costs = {name: usual.costs[name] for name in OF_UNALIGNED}
    rates = {name: number for name, number in usual.numbers.items() if name in ("channel_state_rate", "cores")}
    return replace(profile, costs={**profile.costs, **costs}, numbers={**profile.numbers, **rates})


def simulated_figures(
    name: str, settings: Mapping[str, Any], profile: Profile, runs: int
) -> tuple[dict[Name, tuple[float, ...]], str]:
    """Return the values of each statistic over so many runs, with the seeds 1, 2, ..., and what rules the job."""
    job = load(name, settings, kind=Scenario)
    profile = completed(profile, job)
    first = _simulated(name, {**profile.settings(job, 1), **settings}, 1)
    whole, profile = profile, profile.alike(first[1])
    found: dict[Name, list[float]] = {}
    saturated = 0
    for seed in range(1, runs + 1):
        is_first = seed == 1 and profile is whole
        found_of_it = first if is_first else _simulated(name, {**profile.settings(job, seed), **settings}, seed)
        checkpoints, is_saturated = found_of_it
        saturated += is_saturated
        for key, value in statistics_of(checkpoints).items():
            found.setdefault(key, []).append(value)
    is_held = job.mode.goes_unaligned and job.keeps_its_place
    protocol = PROTOCOLS["aligned"] if is_held else job.mode
    ruled_by = regime(protocol, 2 * saturated > runs, job.buffer_debloat.enabled)
    return {key: tuple(values) for key, values in found.items()}, ruled_by


def predict(
    name: str,
    settings: Mapping[str, Any],
    profile: Profile,
    runs: int = RUNS,
    errors: Mapping[str, ErrorTerm] | None = None,
) -> list[Predicted]:
    """Return every statistic of a job, predicted by so many runs.

    `settings` go before the profile's costs; `errors` are by kind of figure, None those of the shipped measurements,
    for costs from as many configurations.
    """
    terms = shipped(profile.configurations) if errors is None else errors
    found, ruled_by = simulated_figures(name, settings, profile, runs)
    return [
        _predicted(key, values, terms.get(kind_of(*key, ruled_by)))
        for key, values in sorted(found.items(), key=lambda each: (each[0][1] != "", 0))
    ]


def _predicted(key: Name, values: Sequence[float], term: ErrorTerm | None) -> Predicted:
    middle = median(values)
    if not any(values):  # what cannot be, such as bytes that an aligned checkpoint persists
        return Predicted(*key, 0.0, 0.0, 0.0)
    if term is None:
        return Predicted(*key, middle, *_ends(values), is_known=False)
    half = term.half_width(values)
    return Predicted(*key, middle, max(0.0, middle - half), middle + half)


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
            rows.append(replace(each, measured=fmean(values)))
    return rows
