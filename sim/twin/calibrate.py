"""A cost profile fitted to measured checkpoints: each cost by an estimator of its own, with an interval of its mean.

Times of Flink's statistics are whole milliseconds, so a cost below one is known to be small and no more. Rows of one
checkpoint hang together, and runs differ by more than their checkpoints do: each run's mean is kept, and an interval is
of a further run's mean, from drawing one run, and whole checkpoints of it anew (bootstrap).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise, product
from math import inf, log, sqrt
from pathlib import Path
from random import Random
from statistics import fmean, median, quantiles, variance
from typing import Any

from barrierlab.sim.core.amounts import percent
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
from barrierlab.sim.twin.profile import BUFFERS, SAME_WORK, Z_END, Cost, Profile, ScalarCost

PLAIN = 0.25  # a run of which a cost is a smaller share of the mean says nothing of how far apart its values are
QUANTILES = 20  # as the shipped scenarios have them: the largest is the mean of the upper twentieth, about
DRAWS = 500  # of the bootstrap: a 90 % interval's ends are then known to a tenth of its width
RESAMPLES = 19  # of the checkpoints of a single run, each of which stands for a run
FREE_BUSY, FREE_PRESSED = 0.2, 0.1  # a receiver below, behind a sender below, has no queue ahead of a barrier
FULL_BUSY = 0.95  # an operator above has a queue at every subtask
SIGMAS = 1.4826  # standard deviations, of a normal distribution, in a median deviation
UNEQUAL = "no two subtasks with a queue all along, in aligned checkpoints that follow each other; taken as alike"
LEAST_MS = 0.5  # a barrier that is in at once, by a clock of whole milliseconds
AT_WORK = 0.9  # of its time: then an operator's records hardly wait for it to be woken
DISTURBED = 0.05  # of a service: so much longer it is beside something else on the machine
FAR = 4  # checkpoints: over so many a walk outweighs what is anew in each; of the ten of a run enough steps are left
FEWEST = 6  # differences between checkpoints, and rows with channel state: fewer say nothing of noise, or of a rate
BUFFER_S = 0.0002  # one way of anything, in the scenarios' `latency_s`: a barrier's own share is what is beyond it

CORES = tuple(round(2 ** (step / 4), 2) for step in range(21))  # so many are tried: 1 to 32
LIKELIER = 1.92  # in logarithms of a likelihood: with one more number 95 of 100 gain less by chance
NEAR = 1.353  # so much less likely are the ends of an interval of 90 %

Crowd = tuple[tuple[float, int], ...]
"""Times, one behind the other, and how many tasks are at work in each."""
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
        pause = (job.checkpoint.interval_s or 0.0, job.checkpoint.min_pause_s)
        runs = [replace(run, period_s=pause) for run in runs if run.checkpoints]
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


def _has_aligned(run: ObservedJob, subtask: Subtask) -> bool:
    """Return whether a part was aligned: its last barrier was in before any could overtake, or none ever can."""
    from_ms, last = run.unaligned_from_ms, subtask.last_barrier_ms
    return from_ms is not None and last is not None and (last < from_ms or subtask.operator in run.aligning)


def _is_unaligned(run: ObservedJob, subtask: Subtask) -> bool:
    """Return whether a part was unaligned from its beginning. One that turned, halfway, is neither."""
    from_ms, start = run.unaligned_from_ms, subtask.start_delay_ms
    is_late = from_ms is not None and start is not None and start >= from_ms
    return is_late and subtask.operator not in run.aligning


def _all_aligned(run: ObservedJob, checkpoint: ObservedCheckpoint) -> bool:
    """Return whether a checkpoint was over before any barrier could overtake."""
    return run.unaligned_from_ms is not None and checkpoint.end_to_end_ms < run.unaligned_from_ms


def acknowledgements(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """Return each subtask's duration less start delay, alignment, sync and async, in which an unaligned one aligns."""
    found = []
    for each in checkpoint.subtasks:
        has_aligned = _has_aligned(run, each)
        parts = (each.start_delay_ms, each.alignment_ms, each.sync_ms, each.async_ms, each.end_to_end_ms)
        start, align, sync, rest, end = (part or 0.0 for part in parts)
        if None not in parts and (has_aligned or _is_unaligned(run, each)):
            found.append(max(0.0, end - start - (align if has_aligned else 0.0) - sync - rest))
    return found


def snapshots(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """The synchronous part of each subtask's snapshot."""
    return [each.sync_ms for each in checkpoint.subtasks if each.sync_ms is not None]


def writes(run: ObservedJob, checkpoint: ObservedCheckpoint, begin_ms: float = 0.0) -> list[float]:
    """Return the asynchronous part of each subtask's snapshot, of parts without channel state; what of an alignment is
    left when it begins is none of it."""
    if _all_aligned(run, checkpoint):
        return [each.async_ms for each in checkpoint.subtasks if each.async_ms is not None]
    return [taken for size, taken in _after_alignment(run, checkpoint, begin_ms) if not size]


def channel_state(
    run: ObservedJob,
    checkpoint: ObservedCheckpoint,
    begin_ms: float = 0.0,
    write_ms: float = 0.0,
    rate: ScalarCost | None = None,
) -> list[float]:
    """Return what a part with channel state takes beyond any other, and beyond the time by its bytes.

    A single one may be below 0; their mean is not.
    """
    per_byte_ms = 1000 / rate.value if rate else 0.0
    return [
        taken - write_ms - per_byte_ms * size for size, taken in _after_alignment(run, checkpoint, begin_ms) if size
    ]


def _after_alignment(run: ObservedJob, checkpoint: ObservedCheckpoint, begin_ms: float) -> list[tuple[float, float]]:
    """Return the bytes that each unaligned part has of channels, and its asynchronous part without the alignment.

    A part begins with its first barrier, and its asynchronous part when it has begun: that much of the alignment is
    over by then. Subtasks of one process write into one file, and each is done when all of them are (Flink's
    `max-subtasks-per-channel-state-file`): there only the part that begins last waits for no other.
    """
    begun_ms = [each.start_delay_ms for each in checkpoint.subtasks if each.start_delay_ms is not None]
    last_ms = max(begun_ms, default=0.0) if run.is_local else 0.0
    found = []
    for each in checkpoint.subtasks:
        size, rest, align, sync = each.persisted_bytes, each.async_ms, each.alignment_ms, each.sync_ms
        if not _is_unaligned(run, each) or (each.start_delay_ms or 0.0) < last_ms:
            continue
        if size is not None and rest is not None and align is not None and sync is not None:
            found.append((size, rest - max(0.0, align - begin_ms - sync)))
    return found


def beginnings(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """Return the times from the senders' alignments to a receiver's first and last barrier, on ways without a queue.

    It is work of the sender, which takes no record meanwhile: what a buffer takes besides is the channel's, and the
    synchronous part of its snapshot is done by then, and a cost of its own.
    """
    found = []
    for operator, (sender,) in _alike(run) if _all_aligned(run, checkpoint) else ():
        if run.busy.get(operator, 1.0) >= FREE_BUSY or run.pressed.get(sender, 1.0) >= FREE_PRESSED:
            continue
        sent = [each.last_barrier_ms for each in checkpoint.of(sender)]
        ends = [each for each in sent if each is not None]
        besides_ms = _buffer_ms(run) + _sync_ms(checkpoint, sender)
        for row in checkpoint.of(operator) if ends and None not in sent else ():
            if row.start_delay_ms is not None and row.last_barrier_ms is not None:
                first, last = row.start_delay_ms - min(ends), row.last_barrier_ms - max(ends)
                found += [max(0.0, first - besides_ms), max(0.0, last - besides_ms)]
    return found


def _buffer_ms(run: ObservedJob) -> float:
    return 0.0 if run.is_local else 1000 * BUFFER_S


def _sync_ms(checkpoint: ObservedCheckpoint, sender: str) -> float:
    known = [each.sync_ms for each in checkpoint.of(sender) if each.sync_ms is not None]
    return fmean(known) if known else 0.0


def unaligned_beginnings(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[float]:
    """Return how much later than the first of its senders began each operator's first barrier is in.

    A barrier that has left by the timeout overtakes from then on, by the same work of its task. With several senders
    that is the shortest of their ways (`lengthened` makes up for it). The last barrier says nothing: a receiver takes
    it when it has begun itself. Of the senders a source alone is done with its snapshot.
    """
    return [first for first, _, _ in _first_arrivals(run, checkpoint)]


def _first_arrivals(run: ObservedJob, checkpoint: ObservedCheckpoint) -> list[tuple[float, list[float], float]]:
    """Return the times from the first sender's beginning to an operator's first barrier, and to each sender's; and when
    that sender began."""
    found = []
    from_ms = run.unaligned_from_ms
    if from_ms is None:
        return []
    for operator, (sender,) in _alike(run):
        if sender in run.aligning:
            continue  # it begins when it has aligned
        sent = [max(from_ms, each.start_delay_ms) for each in checkpoint.of(sender) if each.start_delay_ms is not None]
        rows = checkpoint.of(operator)
        taken = [each.start_delay_ms for each in rows if each.start_delay_ms is not None and _is_unaligned(run, each)]
        if sent and len(taken) == len(rows) and run.busy.get(operator, 1.0) < FREE_BUSY:
            snaps = run.is_flagged and not run.senders[sender]
            besides_ms = _buffer_ms(run) + (_sync_ms(checkpoint, sender) if snaps else 0.0)
            first = max(0.0, fmean(taken) - min(sent) - besides_ms)
            found.append((first, [each - min(sent) for each in sent], min(sent)))
    return found


def at_work(run: ObservedJob, checkpoint: ObservedCheckpoint, begin_ms: float) -> list[Crowd]:
    """Return how many are at work during each of `unaligned_beginnings`, and for how long; the sender is one of them.

    A task is at work while it begins, and while it writes: to the end of its asynchronous part, as long as
    `_after_alignment` says.
    """
    from_ms = run.unaligned_from_ms or 0.0
    spans: list[tuple[Subtask, float, float]] = []
    for each in checkpoint.subtasks:
        start, align, sync, rest = each.start_delay_ms, each.alignment_ms, each.sync_ms, each.async_ms
        if start is None or align is None or sync is None or rest is None or each.operator in run.aligning:
            continue
        spans.append((each, max(from_ms, start), max(from_ms, start) + begin_ms + sync))
        if _is_unaligned(run, each):
            end = start + sync + rest
            spans.append((each, end - max(0.0, rest - max(0.0, align - begin_ms - sync)), end))
    return [_crowd(spans, at_ms, at_ms + first) for first, _, at_ms in _first_arrivals(run, checkpoint)]


def _crowd(spans: Sequence[tuple[Subtask, float, float]], from_ms: float, to_ms: float) -> Crowd:
    """Return how many are at work between two moments, by the spans of work; one begins with the first of them."""
    own = next((task for task, begin, _ in spans if begin == from_ms), None)
    changes = {each for _, begin, end in spans for each in (begin, end) if from_ms < each < to_ms}
    times = pairwise(sorted({from_ms, max(to_ms, from_ms + LEAST_MS), *changes}))
    return tuple(
        (until - since, 1 + len({id(task) for task, begin, end in spans if begin <= since < end and task is not own}))
        for since, until in times
    )


def share(crowd: Crowd, cores: float) -> float:
    """Return the share of a core that each of a crowd has, on average."""
    return sum(taken * min(1.0, cores / count) for taken, count in crowd) / sum(taken for taken, _ in crowd)


def lengthened(run: ObservedJob) -> float:
    """Return by how much the mean beginning is longer than the mean of the shortest of each checkpoint.

    Kaplan and Meier's estimator: when the first barrier is in, one of the senders that have begun has sent it, and the
    others would have taken longer. Which one is not known: each of them with the same chance.
    """
    seen = []  # how long a sender had begun, and with what chance it was the one
    arrivals = [each for checkpoint in run.checkpoints for each in _first_arrivals(run, checkpoint)]
    for first, gaps, _ in arrivals:
        begun = [first - gap for gap in gaps if gap < first] or [first]
        seen += [(each, 1 / len(begun)) for each in begun]
    seen.sort()
    mean = since = 0.0
    share = 1.0  # of the beginnings that take longer
    for place, (after, chance) in enumerate(seen):
        mean += share * (after - since)
        share *= 1 - chance / (len(seen) - place)
        since = after
    shortest = fmean(first for first, _, _ in arrivals) if arrivals else 0.0
    return max(1.0, mean / shortest) if shortest else 1.0


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
    "begin": ("checkpoint.begin_s", beginnings),
    "unaligned_begin": ("checkpoint.unaligned_begin_s", unaligned_beginnings),
}
"""The costs: the key of a scenario that each sets, and what its rows are."""
SETS = {name: sets for name, (sets, _) in ESTIMATORS.items()} | {"channel_state": "checkpoint.channel_state_s"}
UNSEEN = {
    "unaligned_begin": "no two unaligned checkpoints show it; predict takes that of sim/data/flink",
    "channel_state": "no two parts of these runs have any; predict takes that of sim/data/flink, if unaligned_begin is",
}
NEVER = {
    "flush_lateness": "no statistic of a checkpoint shows it; the scenario's own flush_late_s stands",
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
    fitted: dict[str, Cost] = {}
    undetermined = dict(NEVER)
    if set_aside := disturbed(runs):
        runs = [run for run in runs if run not in set_aside]
        longer = f"{percent(DISTURBED)} longer than in the quickest"
        undetermined["disturbed"] = f"{len(set_aside)} runs, whose records took {longer}: set aside"
    if failed := sum(run.failed for run in runs):
        completed = sum(len(run.checkpoints) for run in runs)
        undetermined["failed"] = f"{failed} of {failed + completed} checkpoints, which are in no cost"
    rows, numbers, reasons = _all_rows(runs)
    undetermined |= reasons
    for name, by_run in rows.items():
        if sum(map(len, by_run)) < 2:
            undetermined[name] = UNSEEN.get(
                name, "no two checkpoints of these runs show it; the scenario's own value stands"
            )
        else:
            fitted[name] = _fitted(SETS[name], [found for found in by_run if found])
    of_runs = rows if len(runs) > 1 else _all_rows(_drawn_anew(runs[0]))[0]
    factors = _run_effects({name: list(map(_mean, of_runs[name])) for name in fitted})
    costs = {name: replace(cost, factors=factors[name]) for name, cost in fitted.items()}
    longest_ms = max((1000 * each for run in runs for own in run.services_s.values() for each in own), default=0.0)
    for operator in dict.fromkeys(name for run in runs for name in run.services_s):
        services = [[1000 * each for each in run.services_s.get(operator, ())] for run in runs]
        if not any(services) or not any(run.senders.get(operator) for run in runs):
            continue  # a source's rate is the job's
        means = [fmean(group) for group in services if group]
        if max(means) - min(means) > SAME_WORK * longest_ms:
            undetermined[f"service_{operator}"] = (
                f"{min(means):.3g} to {max(means):.3g} ms for a record in these runs; the job's own stands"
            )
            continue
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
        numbers,
        tuple(dict.fromkeys(run.mode for run in runs)),
        tuple(sorted({count for run in runs for count in run.parallelism.values()})),
        tuple(sorted({run.is_local for run in runs if run.is_local is not None})),
        sum(len(run.checkpoints) for run in runs),
        undetermined,
        tuple(max(run.busy.values()) >= FULL_BUSY for run in runs) if all(run.busy for run in runs) else (),
        len({run.configuration for run in runs}),
    )


def disturbed(runs: Sequence[ObservedJob]) -> list[ObservedJob]:
    """Return the runs whose records took longer than in the quickest run of the same work: something else was at work
    on their machine. If most are so, none.

    The work is that of the operator that works longest: a column of the setup, or else the same job. Where it sleeps
    between records it is woken late, which is no disturbance.
    """
    services: dict[Any, list[tuple[float, ObservedJob]]] = {}
    for run in runs:
        works = {name: fmean(own) for name, own in run.services_s.items() if own and run.senders[name]}
        slowest = max(works, key=works.__getitem__, default="")
        if run.busy.get(slowest, 0.0) >= AT_WORK:
            work = run.setup.get(f"{slowest}_service_ms") or run.configuration
            services.setdefault((slowest, work), []).append((works[slowest], run))
    least = {work: min(service for service, _ in group) for work, group in services.items()}
    found = [
        run for work, group in services.items() for service, run in group if service > (1 + DISTURBED) * least[work]
    ]
    return found if 2 * len(found) <= len(runs) else []


RowsOfRuns = list[list[list[float]]]
"""Rows in ms, those of a checkpoint together, of each run."""


def _all_rows(runs: Sequence[ObservedJob]) -> tuple[dict[str, RowsOfRuns], dict[str, ScalarCost], dict[str, str]]:
    """Return the rows of every cost, and the costs that are one number, or why they are not determined."""
    rows = {name: _rows(runs, estimate) for name, (_, estimate) in ESTIMATORS.items()}
    begin_ms = _beginning_of_each(runs, rows)
    rows["acknowledgement"] = _net(rows["acknowledgement"], begin_ms)
    rows["write"] = [_rows([run], partial(writes, begin_ms=each))[0] for run, each in zip(runs, begin_ms, strict=True)]
    numbers, reasons = _numbers(runs, begin_ms)
    crowds = [
        [found for checkpoint in run.checkpoints if (found := at_work(run, checkpoint, begin))]
        for run, begin in zip(runs, begin_ms, strict=True)
    ]
    cores = _cores(rows["unaligned_begin"], crowds)
    if cores is None:
        reasons["cores"] = "parts begin no later where more tasks are at work, or too few are unaligned; none shared"
    else:
        numbers["cores"] = cores
        rows["unaligned_begin"] = _alone(rows["unaligned_begin"], crowds, cores.value)
    rows["channel_state"] = _channel_state(runs, rows["write"], begin_ms, numbers.get("channel_state_rate"))
    return rows, numbers, reasons


def _drawn_anew(run: ObservedJob) -> list[ObservedJob]:
    """Return runs of this one's checkpoints, drawn anew: of a single run they say how far its costs are known."""
    random = Random("bootstrap")
    count = len(run.checkpoints)
    return [replace(run, checkpoints=tuple(random.choices(run.checkpoints, k=count))) for _ in range(RESAMPLES)]


def _rows(runs: Sequence[ObservedJob], estimate: Estimator) -> RowsOfRuns:
    """Return the rows of a cost, of each checkpoint of each run that shows it."""
    return [[rows for checkpoint in run.checkpoints if (rows := estimate(run, checkpoint))] for run in runs]


def _mean(groups: Iterable[Sequence[float]]) -> float | None:
    flat = [each for group in groups for each in group]
    return fmean(flat) if flat else None


def _beginning_of_each(runs: Sequence[ObservedJob], rows: Mapping[str, RowsOfRuns]) -> list[float]:
    """Return how long the beginning of a part is in each run, on average; that of its like where it does not show.

    The rows of unaligned ones are made as long as `lengthened` says.
    """
    by_run = rows["unaligned_begin"]
    for place, run in enumerate(runs):
        longer = lengthened(run)
        by_run[place] = [[longer * each for each in group] for group in by_run[place]]
    found = []
    for place, run in enumerate(runs):
        names = ("unaligned_begin", "begin") if by_run[place] or run.is_flagged else ("begin", "unaligned_begin")
        known = [
            _mean(rows[names[0]][place]),
            *(_mean(group for each in rows[name] for group in each) for name in names),
        ]
        found.append(next((each for each in known if each is not None), 0.0))
    return found


def _net(rows: RowsOfRuns, begin_ms: Sequence[float]) -> RowsOfRuns:
    """Return the acknowledgements without the work that a part begins with, which is in what the rows have left over.

    Which share of a row it was is not known: all of a run are as much shorter, their mean no less than its shortest.
    """
    found = []
    for groups, begin in zip(rows, begin_ms, strict=True):
        whole, least = _mean(groups) or 0.0, min((each for group in groups for each in group), default=0.0)
        share = max(whole - begin, least) / whole if whole else 1.0
        found.append([[share * each for each in group] for group in groups])
    return found


def _alone(rows: RowsOfRuns, crowds: Sequence[Sequence[Sequence[Crowd]]], cores: float) -> RowsOfRuns:
    """Return the rows as they were if nobody else had been at work on so many cores."""
    return [
        [[each * share(crowd, cores) for each, crowd in zip(*both, strict=True)] for both in zip(*run, strict=True)]
        for run in zip(rows, crowds, strict=True)
    ]


def _cores(rows: RowsOfRuns, crowds: Sequence[Sequence[Sequence[Crowd]]]) -> ScalarCost | None:
    """Return of how many shared cores the rows are the likeliest, each run with a mean of its own; None: of no number.

    Times are taken as exponential, so what says how many cores there are is that rows of one run are longer where
    more are at work. How long those of another run are says nothing: it may have been a slow one. Nor do those say
    anything who begin later than the row does: the longer it takes, the more they are.
    """
    count = sum(len(group) for run in rows for group in run)

    at_first = [[[crowd[:1] for crowd in group] for group in run] for run in crowds]

    def unlikelihood(cores: float) -> float:
        total = 0.0
        for each, crowd in zip(_alone(rows, at_first, cores), at_first, strict=True):
            if mean := _mean(each):
                total += sum(map(len, each)) * log(mean)
                total -= sum(log(share(each, cores)) for group in crowd for each in group)
        return total

    found = {cores: unlikelihood(cores) for cores in CORES}
    value = min(found, key=found.__getitem__)
    if count < FEWEST or unlikelihood(inf) - found[value] < LIKELIER:
        return None
    near = [cores for cores, each in found.items() if each - found[value] < NEAR]
    return ScalarCost("checkpoint.cores", value, near[0], near[-1], count)


def _channel_state(
    runs: Sequence[ObservedJob],
    written: RowsOfRuns,
    begin_ms: Sequence[float],
    rate: ScalarCost | None,
) -> RowsOfRuns:
    """Return the rows of what channel state takes besides any part's write, which is the run's own where it shows."""
    usual = _mean(group for run in written for group in run) or 0.0
    found = []
    for run, groups, begin in zip(runs, written, begin_ms, strict=True):
        own = _mean(groups)
        write = usual if own is None else own
        found += _rows([run], partial(channel_state, begin_ms=begin, write_ms=write, rate=rate))
    return found


def _numbers(runs: Sequence[ObservedJob], begin_ms: Sequence[float]) -> tuple[dict[str, ScalarCost], dict[str, str]]:
    """Return the costs that are one number, and why one is not determined."""
    found: dict[str, ScalarCost] = {}
    why: dict[str, str] = {}
    if any(run.is_local is not True for run in runs):
        found["buffer"] = ScalarCost(BUFFERS, BUFFER_S, BUFFER_S, BUFFER_S, 0)
        why["buffer"] = "no statistic of a checkpoint shows its latency: the longest that full queues leave room for"
    pairs = [
        [pair for checkpoint in run.checkpoints for pair in _after_alignment(run, checkpoint, begin) if pair[0]]
        for run, begin in zip(runs, begin_ms, strict=True)
    ]
    count = sum(map(len, pairs))
    if count < FEWEST or not any(len({size for size, _ in each}) > 1 for each in pairs):
        why["channel_state_rate"] = "too few unaligned parts have channel state; the scenario's own value stands"
    else:
        least, slope, most = slopes(pairs)
        if least <= 0:
            why["channel_state_rate"] = "parts with more bytes take no longer; the scenario's own value stands"
        else:
            rate, low, high = (float(f"{1000 / each:.4g}") for each in (slope, most, least))
            found["channel_state_rate"] = ScalarCost("checkpoint.channel_state_bytes_per_s", rate, low, high, count)
    steps = [step for run in runs if (step := differences(run))]
    if sum(each.checkpoints == 1 for run in steps for each in run) < FEWEST:
        why |= dict.fromkeys(("service_noise", "subtask_spread"), UNEQUAL)
    else:
        found["service_noise"] = _noise(steps)
        if len(steps) < 2:
            why["subtask_spread"] = (
                "one run shows how far apart its own subtasks are, not how far those of other runs are"
            )
        else:
            found["subtask_spread"] = _spread(steps)
    return found, why


def slopes(groups: Sequence[Sequence[tuple[float, float]]]) -> tuple[float, float, float]:
    """Return by how much the second of a pair grows with the first, and an interval of 90 %: low, middle, high.

    Theil and Sen's median of all slopes, between two pairs of one group: a slow run with many bytes would else make
    bytes slow. The ends are those of Kendall's rank correlation, summed over the groups.
    """
    found = sorted(
        (other[1] - one[1]) / (other[0] - one[0])
        for group in groups
        for one, other in combinations(group, 2)
        if other[0] != one[0]
    )
    deviation = sqrt(sum(n * (n - 1) * (2 * n + 5) / 18 for n in map(len, groups)))
    cut = max(0, round((len(found) - Z_END * deviation) / 2))
    return found[min(cut, len(found) // 2)], median(found), found[max(len(found) - 1 - cut, len(found) // 2)]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The growth of one of two equal subtasks' queues against the other's, over so many checkpoints.

    Both are shares of the time between: as it is, and in units of what services that vary by as much as they last would
    make of it.
    """

    checkpoints: int
    drift: float
    noise: float


def differences(run: ObservedJob) -> list[Divergence]:
    """Return the steps by which the queues of subtasks that always have one grow apart, over one checkpoint and `FAR`.

    Round robin deals records out evenly and never brings a difference back, so a difference in speed makes it grow
    steadily, and chance in services by as much to either side: a random walk. Behind exchanges of one to one, whose
    queues have a sender each, it says nothing.
    """
    found = []
    period_s, pause_s = run.period_s
    for operator, senders in run.senders.items() if run.always_aligns else ():
        service_s = run.service_s(operator)
        if not senders or not service_s or run.busy.get(operator, 0.0) < FULL_BUSY or run.parallelism[operator] < 2:
            continue
        if operator in run.aligning:
            continue
        taken_s = [max(period_s, each.end_to_end_ms / 1000 + pause_s) for each in run.checkpoints]
        for place, checkpoints in product(range(len(run.checkpoints)), (1, FAR)):
            both = run.checkpoints[place : place + checkpoints + 1 : checkpoints]
            since_s = sum(taken_s[place : place + checkpoints])
            if len(both) < 2 or both[1].id != both[0].id + checkpoints or since_s <= 0:
                continue
            rows = [{each.index: each.last_barrier_ms for each in one.of(operator)} for one in both]
            for index in range(0, run.parallelism[operator] - 1, 2):
                delays = [at.get(which) for at in rows for which in (index, index + 1)]
                known = [each / 1000 for each in delays if each is not None]
                if len(known) == 4:
                    apart = (known[2] - known[3]) - (known[0] - known[1])
                    found.append(Divergence(checkpoints, apart / since_s, apart / sqrt(2 * since_s * service_s)))
    return found


def _noise(steps: Sequence[Sequence[Divergence]]) -> ScalarCost:
    """Return the spread from service to service: robust, so that a task that once stood still is no noise.

    By which record a barrier comes sets queues apart as well, anew in each checkpoint; that does not grow with the time
    between two, and is none of it: what it adds is the nugget of a variogram (Matheron, 1963).
    """

    def variance_over(checkpoints: int, groups: Sequence[Sequence[Divergence]]) -> float | None:
        steps = [abs(each.noise) for run in groups for each in run if each.checkpoints == checkpoints]
        return (SIGMAS * median(steps)) ** 2 if steps else None

    def estimate(groups: Sequence[Sequence[Divergence]]) -> float:
        near, far = (variance_over(each, groups) for each in (1, FAR))
        if near is None or far is None:
            return sqrt(near or far or 0.0)
        return sqrt(min(near, max(0.0, (FAR * far - near) / (FAR - 1))))

    return _number("service_noise", estimate, steps)


def _spread(steps: Sequence[Sequence[Divergence]]) -> ScalarCost:
    """Return the spread of speed from subtask to subtask: what is steady in the steps of a run, as a random effect."""

    def estimate(groups: Sequence[Sequence[Divergence]]) -> float:
        of_runs = []
        for run in groups:
            drifts = [each.drift for each in run if each.checkpoints == 1]
            if len(drifts) > 1:
                of_runs.append(fmean(drifts) ** 2 - variance(drifts) / len(drifts))
        return sqrt(max(0.0, fmean(of_runs) / 2)) if of_runs else 0.0

    return _number("subtask_spread", estimate, steps)


def _number(
    field: str, estimate: Callable[[Sequence[Sequence[Divergence]]], float], steps: Sequence[Sequence[Divergence]]
) -> ScalarCost:
    """Return a number by an estimator, with an interval from drawing runs, and steps of them, anew."""
    random = Random("bootstrap")
    drawn = []
    for _ in range(DRAWS):
        runs = random.choices(steps, k=len(steps))
        drawn.append(estimate([random.choices(run, k=len(run)) for run in runs]))
    low, *_, high = quantiles(drawn, n=20)
    value = float(f"{estimate(steps):.4g}")
    return ScalarCost(
        f"operator.*.{field}",
        value,
        min(value, float(f"{low:.4g}")),
        max(value, float(f"{high:.4g}")),
        sum(each.checkpoints == 1 for run in steps for each in run),
    )


def _run_effects(means: Mapping[str, Sequence[float | None]]) -> dict[str, tuple[float, ...]]:
    """Return by how much each run is slower than the mean run, cost by cost; on average by none.

    Costs of one run go together: a run in which the machine was slow has all of them long. A run that does not show a
    cost has for it the median of what it has for those that it shows.
    """
    usual = {name: fmean(each for each in values if each is not None) for name, values in means.items()}
    count = max(map(len, means.values()), default=0)
    slowness = [
        median(
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
            slowness[run] if value is None or not usual[name] else max(0.0, value / usual[name])
            for run, value in enumerate(values)
        ]
        found[name] = tuple(round(factor / (fmean(each) or 1.0), 4) for factor in each)
    return found


def _fitted(sets: str, groups: Sequence[Sequence[Sequence[float]]]) -> Cost:
    """Return the cost of rows in ms: those of each checkpoint together, and the checkpoints of each run.

    Its values are as far apart as those of one run are: how far runs are apart is in their effects, and not twice.
    """
    rows = [each for checkpoints in groups for group in checkpoints for each in group]
    usual, inside = fmean(rows), []
    for checkpoints in groups:
        own = _mean(checkpoints) or 0.0
        if own and own >= PLAIN * usual:
            inside += [usual / own * each for group in checkpoints for each in group]
    inside = inside or rows
    values = quantiles(inside, n=2 * QUANTILES, method="inclusive")[::2] if len(inside) > 1 else inside
    if min(values) < 0.0:  # what is left after something else was taken off: with the mean that it has
        above = [max(0.0, each) for each in values]
        values = [each * max(0.0, fmean(rows)) / fmean(above) if any(above) else 0.0 for each in above]
    random = Random("bootstrap")
    sums = [[(sum(group), len(group)) for group in checkpoints] for checkpoints in groups]
    means = []
    for _ in range(DRAWS):
        checkpoints = random.choice(sums)
        totals, counts = zip(*random.choices(checkpoints, k=len(checkpoints)), strict=True)
        means.append(sum(totals) / sum(counts))
    low, *_, high = quantiles(means, n=20)

    def seconds(ms: float) -> float:
        return round(max(0.0, ms) / 1000, 7)

    return Cost(sets, tuple(map(seconds, values)), seconds(fmean(rows)), seconds(low), seconds(high), len(rows), (1.0,))
