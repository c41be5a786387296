"""A cost profile fitted to measured checkpoints: each cost by an estimator of its own, with an interval of its mean.

Times of Flink's statistics are whole milliseconds, so a cost below one is known to be small and no more. Rows of one
checkpoint hang together, and runs differ by more than their checkpoints do: each run's mean is kept, and an interval is
of a further run's mean, from drawing one run, and whole checkpoints of it anew (bootstrap).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean, quantiles

from barrierlab.sim.scenario.settings import Scenario
from barrierlab.sim.twin.answers import TwinError, answers_of
from barrierlab.sim.twin.import_flink import job_of
from barrierlab.sim.twin.observed import (
    ObservedCheckpoint,
    ObservedJob,
    Subtask,
    observed_in,
    observed_tables,
    senders_of,
)
from barrierlab.sim.twin.profile import Cost, Profile

QUANTILES = 20  # as the shipped scenarios have them: the largest is the mean of the upper twentieth, about
DRAWS = 500  # of the bootstrap: a 90 % interval's ends are then known to a tenth of its width
FREE_BUSY, FREE_PRESSED = 0.5, 0.1  # a receiver below, behind a sender below, has no queue ahead of a barrier
BUFFER_S = 0.0002  # one way of anything, in the scenarios' `latency_s`: a barrier's own share is what is beyond it

Estimator = Callable[[ObservedJob, ObservedCheckpoint], list[float]]


def observed_from(sources: Sequence[str], job: Scenario, debloated: bool = False) -> list[ObservedJob]:
    """Return the runs of a job that files of answers, or folders of tables, hold, each once.

    Of tables those whose buffers do not keep their size count only if they are asked for.

    Raises
    ------
    TwinError
        If a file is of another job, or a source has no completed checkpoint of it.
    """
    senders = senders_of(job.topology)
    found = []
    for source in sources:
        if Path(source).is_dir():
            runs = observed_tables(Path(source), senders, debloated)
        else:
            answers = answers_of([source])
            runs = [observed_in(answers, job_of(answers, None))]
            if set(runs[0].senders) != set(senders):
                has = ", ".join(runs[0].senders)
                raise TwinError(f"{source}: has the operators {has}; the job {job.name} has {', '.join(senders)}")
        runs = [run for run in runs if run.checkpoints]
        if not runs:
            raise TwinError(f"{source}: has no completed checkpoint of {job.name}; give answers of a run of this job")
        found += runs
    return distinct(found)


def distinct(runs: Sequence[ObservedJob]) -> list[ObservedJob]:
    """Return each measured run once: jobs with the same operators find the same runs in a table."""
    found: list[ObservedJob] = []
    for run in runs:
        if not any((run.name, run.checkpoints) == (other.name, other.checkpoints) for other in found):
            found.append(run)
    return found


def _is_source(run: ObservedJob, subtask: Subtask) -> bool:
    return not run.senders[subtask.operator]


def _source_delays(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    rows = [each.start_delay_ms for each in checkpoint.subtasks if _is_source(run, each)]
    return [each for each in rows if each is not None]


def commands(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """Return the shortest start delay of a checkpoint's sources, a part of every one."""
    delays = _source_delays(run, checkpoint)
    return [min(delays)] if delays else []


def ways(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """Return how much later than the first each source of a checkpoint starts."""
    delays = _source_delays(run, checkpoint)
    return [delay - min(delays) for delay in delays] if len(delays) > 1 else []


def acknowledgements(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """Return each subtask's duration less start delay, alignment, sync and async, in which an unaligned one aligns."""
    found = []
    for each in checkpoint.subtasks if run.always_aligns or run.is_flagged else ():
        parts = (each.start_delay_ms, each.alignment_ms, each.sync_ms, each.async_ms, each.end_to_end_ms)
        start, align, sync, rest, end = (part or 0.0 for part in parts)
        if None not in parts:
            found.append(max(0.0, end - start - (align if run.always_aligns else 0.0) - sync - rest))
    return found


def snapshots(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """The synchronous part of each subtask's snapshot."""
    return [each.sync_ms for each in checkpoint.subtasks if each.sync_ms is not None]


def writes(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """The asynchronous part of each subtask's snapshot; of aligned checkpoints, where it waits for no barrier."""
    return [each.async_ms for each in checkpoint.subtasks if run.always_aligns and each.async_ms is not None]


def hops(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """From the ends of the senders' alignments to a receiver's first and last barrier, on ways without a queue."""
    found = []
    for operator, (sender,) in _alike(run) if run.always_aligns else ():
        if run.busy.get(operator, 1.0) >= FREE_BUSY or run.pressed.get(sender, 1.0) >= FREE_PRESSED:
            continue
        sent = [each.last_barrier_ms for each in checkpoint.of(sender)]
        if not sent or None in sent:
            continue
        ends = [each for each in sent if each is not None]
        for row in checkpoint.of(operator):
            if row.start_delay_ms is not None and row.last_barrier_ms is not None:
                found += [max(row.start_delay_ms - min(ends), 0.0), max(row.last_barrier_ms - max(ends), 0.0)]
    return [max(0.0, each - 1000 * BUFFER_S) for each in found]


def overtaking_hops(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """From the senders' first barriers, which are passed on at once: of the first to a receiver's first, and of the
    last to its last. (Of two ways the sum is exact, whichever was the shorter.)"""
    found = []
    for operator, (sender,) in _alike(run) if run.is_flagged else ():
        sent = [each.start_delay_ms for each in checkpoint.of(sender) if each.start_delay_ms is not None]
        for row in checkpoint.of(operator) if sent else ():
            if row.start_delay_ms is not None and row.last_barrier_ms is not None:
                found += [max(row.start_delay_ms - min(sent), 0.0), max(row.last_barrier_ms - max(sent), 0.0)]
    return found


def _alike(run: ObservedJob) -> Iterator[tuple[str, tuple[str]]]:
    """The operators with one input, whose barriers come alike, and their senders."""
    for operator, senders in run.senders.items():
        if len(senders) == 1:
            yield operator, (senders[0],)


ESTIMATORS: Mapping[str, tuple[str, Estimator]] = {
    "command": ("checkpoint.command_s", commands),
    "trigger": ("checkpoint.trigger_latency_s", ways),
    "acknowledgement": ("checkpoint.ack_latency_s", acknowledgements),
    "snapshot": ("checkpoint.sync_s", snapshots),
    "write": ("checkpoint.async_s", writes),
    "hop": ("channel.default.barrier_latency_s", hops),
    "overtaking_hop": ("channel.default.unaligned_barrier_latency_s", overtaking_hops),
}
"""The costs: the key of a scenario that each sets, and what its rows are."""
NEVER = {
    "flush_lateness": "no statistic of a checkpoint has it; the scenario's own flush_late_s stands",
    "channel_state_write": "an unaligned async part is the wait for the last barriers and the write in one number",
    "service_spread": "counters of busy time and records have no spread from record to record; taken as constant",
}
"""Costs that no data of this kind determine, and why."""


def calibrate(runs: Sequence[ObservedJob]) -> Profile:
    """Return the profile that the runs say.

    Raises
    ------
    TwinError
        If there is no run.
    """
    if not runs:
        raise TwinError("nothing to calibrate on: give files of answers, or a folder of tables, with --from")
    fitted: dict[str, tuple[Cost, list[float | None]]] = {}
    undetermined = dict(NEVER)
    for name, (sets, estimate) in ESTIMATORS.items():
        by_run = [[rows for checkpoint in run.checkpoints if (rows := estimate(run, checkpoint))] for run in runs]
        if sum(map(len, by_run)) < 2:
            undetermined[name] = "no two checkpoints of these runs show it; the scenario's own value stands"
        else:
            means = [fmean(each for group in found for each in group) if found else None for found in by_run]
            fitted[name] = _fitted(sets, [found for found in by_run if found]), means
    factors = _run_effects({name: means for name, (_, means) in fitted.items()})
    costs = {name: replace(cost, factors=factors[name]) for name, (cost, _) in fitted.items()}
    for operator in dict.fromkeys(name for run in runs for name in run.services_s):
        services = [[1000 * each for each in run.services_s.get(operator, ())] for run in runs]
        if not any(services) or not any(run.senders.get(operator) for run in runs):
            continue  # a source's rate is the job's
        flat = [each for group in services for each in group]
        cost = _fitted(f"operator.{operator}.service_s", [[[each] for each in flat]])
        of_each = tuple(round(each / fmean(flat), 4) for each in flat) if any(flat) else (1.0,)
        costs[f"service_{operator}"] = replace(cost, values_s=(cost.mean_s,), factors=of_each)
        speeds = [fmean(group) / each for group in services for each in group if each]
        if speeds:
            undetermined[f"speed_{operator}"] = (
                f"subtasks serve at {min(speeds):.3f} to {max(speeds):.3f} of the mean's speed; simulated alike"
            )
    return Profile(
        costs,
        tuple(dict.fromkeys(run.mode for run in runs)),
        tuple(sorted({count for run in runs for count in run.parallelism.values()})),
        tuple(sorted({run.is_local for run in runs if run.is_local is not None})),
        sum(len(run.checkpoints) for run in runs),
        undetermined,
    )


def _run_effects(means: Mapping[str, Sequence[float | None]]) -> dict[str, tuple[float, ...]]:
    """Return by how much each run is slower than the mean run, cost by cost; on average by none.

    Costs of one run go together: a run in which the machine was slow has all of them long. A run that does not show a
    cost has for it what it has for those that it shows, on average.
    """
    usual = {name: fmean(each for each in values if each is not None) for name, values in means.items()}
    count = max(map(len, means.values()), default=0)
    slowness = [
        fmean(
            [
                value / usual[name]
                for name, values in means.items()
                if usual[name] and (value := values[run]) is not None
            ]
            or [1.0]
        )
        for run in range(count)
    ]
    found = {}
    for name, values in means.items():
        each = [
            slowness[run] if value is None or not usual[name] else value / usual[name]
            for run, value in enumerate(values)
        ]
        found[name] = tuple(round(factor / (fmean(each) or 1.0), 4) for factor in each)
    return found


def _fitted(sets: str, groups: Sequence[Sequence[Sequence[float]]]) -> Cost:
    """Return the cost of rows in ms: those of each checkpoint together, and the checkpoints of each run."""
    rows = [each for checkpoints in groups for group in checkpoints for each in group]
    values = quantiles(rows, n=2 * QUANTILES, method="inclusive")[::2] if len(rows) > 1 else rows
    random = Random("bootstrap")
    means = []
    for _ in range(DRAWS):
        checkpoints = random.choice(groups)
        drawn = random.choices(checkpoints, k=len(checkpoints))
        means.append(fmean(each for group in drawn for each in group))
    low, *_, high = quantiles(means, n=20)

    def seconds(ms: float) -> float:
        return round(ms / 1000, 7)

    return Cost(sets, tuple(map(seconds, values)), seconds(fmean(rows)), seconds(low), seconds(high), len(rows), (1.0,))
