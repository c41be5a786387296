"""The simulated check of an advised interval: runs with failures under common random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from barrierlab.impl import Reason
from barrierlab.sim.advise.laws import utilisation
from barrierlab.sim.advise.pieces import NoAdviceError, Pieces
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.checkpoint.estimate import steps
from barrierlab.sim.scenario.settings import Fault, Scenario, ns

FAILURES = 20  # expected in a run; fewer, and a run says little of what a failure costs
FEWEST = 2
EVENTS = 2_000  # of a run, at all tasks: what counts is time, and the closed form knows no events
MOST_PARTS = 40_000  # of checkpoints, each of one subtask, over all runs: some eight seconds
CONFIDENCE = 0.95
SHIFTED = 0.05  # of what failures and checkpoints cost: a reason that weighs less is not worth its line


@dataclass(frozen=True, slots=True)
class SimulatedPoint:
    """The results of the runs at one interval, beside the closed form with the simulated durations.

    Attributes
    ----------
    interval_s, period_s : float
        Asked for, and from trigger to trigger in the mean.
    utilisation, half_width : float
        Mean over the runs, and half of its 95 % interval.
    closed : float
    failures, expected : float
        Over all runs.
    differs : bool
        The closed form is outside the interval.
    why : tuple of str
        What the closed form leaves out and these runs had.
    completed, failed : int
        Checkpoints that ended, but for those that a failure of the job ended.
    longest_s : float
        The longest checkpoint that completed, while the job caught up included; 0 if there is none.
    """

    interval_s: float
    period_s: float
    utilisation: float
    half_width: float
    closed: float
    failures: int
    expected: float
    differs: bool
    why: tuple[str, ...]
    completed: int
    failed: int
    longest_s: float


def thinned(scenario: Scenario, times: float) -> Scenario:
    """Return the scenario with one event of so many, and without an end of its own."""
    sources = {
        name: replace(
            source,
            rate_per_s=source.rate_per_s / times,
            events=None,
            watermark_interval_s=source.watermark_interval_s and source.watermark_interval_s * times,
        )
        for name, source in scenario.sources.items()
    }
    return replace(scenario, sources=sources)


def with_failures(
    scenario: Scenario, mtbf_s: float, intervals_s: Sequence[float], seeds: int
) -> tuple[Scenario, float]:
    """Return the scenario with crashes of the whole job at random, its events thinned; and by what.

    Raises
    ------
    NoAdviceError
        If runs with `FEWEST` failures would be too long.
    """
    crash = Fault("crash", "advise", task="all", rate_per_s=1 / mtbf_s)
    quiet = replace(scenario, faults=(), checkpoint=replace(scenario.checkpoint, interval_s=None))
    checkpoints = sum(mtbf_s / each_s for each_s in intervals_s)  # from a failure to the next
    failures = min(FAILURES, MOST_PARTS / (len(scenario.topology.tasks) * seeds * checkpoints))
    if failures < FEWEST:
        raise NoAdviceError(
            f"not simulated: {FEWEST} failures come with some {FEWEST * checkpoints:.0f} checkpoints, too many for a "
            "quick check; a sweep can run it for as long as wanted"
        )
    until_s = failures * mtbf_s
    times = max(1.0, steps(replace(quiet, until_s=until_s)) / EVENTS)
    return replace(thinned(scenario, times), faults=(crash,), until_s=until_s, warmup_s=0.0), times


def simulated(
    scenario: Scenario,
    pieces: Pieces,
    mtbf_s: float,
    interval_s: float,
    seeds: int,
    before_run: Callable[[], object] = int,
) -> tuple[list[SimulatedPoint], float]:
    """Return the points at half the interval, at it, and at double, and of how many events one is simulated.

    A seed has the same failures at each interval. `before_run` is called before each run, and ends it all if it raises.
    """
    intervals_s = sorted({max(interval_s * by, pieces.least_s) for by in (0.5, 1.0, 2.0)})
    failing, times = with_failures(scenario, mtbf_s, intervals_s, seeds)
    every = range(1, seeds + 1)
    return [_point(failing, pieces, mtbf_s, each_s, every, before_run) for each_s in intervals_s], times


def _point(
    failing: Scenario,
    pieces: Pieces,
    mtbf_s: float,
    interval_s: float,
    seeds: Sequence[int],
    before_run: Callable[[], object],
) -> SimulatedPoint:
    from scipy.stats import t

    checkpoint = replace(failing.checkpoint, interval_s=interval_s, first_s=None)
    engines = [Engine(replace(failing, checkpoint=checkpoint), seed) for seed in seeds]
    for engine in engines:
        before_run()
        engine.run()
    shares = [_useful_share(engine, pieces) for engine in engines]
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(shares) - 1)) * stdev(shares) / math.sqrt(len(shares))
    ended = [r for engine in engines for r in engine.metrics.checkpoints.values()]
    done_s = [(r.ended_ns - r.triggered_ns) / 1e9 for r in ended if r.status == "COMPLETED" and r.ended_ns is not None]
    duration_s = fmean(done_s) if done_s else pieces.duration_s
    failures = [record for engine in engines for record in engine.recovery.records]
    expected = len(engines) * failing.until_s / mtbf_s
    cost_s = duration_s if pieces.is_upper_bound else pieces.cost_s
    period_s = max(interval_s, duration_s + failing.checkpoint.min_pause_s)
    closed = utilisation(period_s, cost_s, mtbf_s, pieces.down_s + duration_s - cost_s, exposed=True)
    mean = fmean(shares)
    struck = sum(record.starts for record in failures)
    why = []
    if abs(duration_s - pieces.duration_s) > SHIFTED * pieces.duration_s:
        why.append(
            f"checkpoints take {duration_s:.3g} s, not {pieces.duration_s:.3g} s as without failures and with all "
            "events; the closed form beside it has that"
        )
    if abs(struck - expected) > SHIFTED * expected:
        why.append(f"{struck} failures struck where {expected:.0f} are expected: more runs (--seeds) tell more")
    if again := struck - len(failures):
        why.append(f"{again} failures struck during a recovery, which began again")
    if failed := sum(r.status == "FAILED" and r.failure != Reason.JOB_FAILED.value for r in ended):
        why.append(f"{failed} checkpoints failed, and a failure after one loses two periods")
    return SimulatedPoint(
        interval_s,
        period_s,
        mean,
        half,
        closed,
        struck,
        expected,
        abs(mean - closed) > half,
        tuple(why),
        len(done_s),
        failed,
        max(done_s, default=0.0),
    )


def _useful_share(engine: Engine, pieces: Pieces) -> float:
    """Return the share of a run's time that is work which stayed.

    Of each attempt stays what was done until the trigger of the checkpoint that is restored next, less what its
    checkpoints stopped.
    """
    checkpoints = engine.metrics.checkpoints
    start_ns, kept_s = 0, 0.0
    end_ns = ns(engine.scenario.until_s)
    for record in engine.recovery.records:
        restored = checkpoints.get(record.checkpoint_id or 0)
        if restored is not None and restored.triggered_ns > start_ns:
            kept_s += _worked_s(engine, pieces, start_ns, restored.triggered_ns)
        start_ns = end_ns if record.restored_ns is None else record.restored_ns
    if start_ns < end_ns:
        kept_s += _worked_s(engine, pieces, start_ns, end_ns)
    return kept_s / (max(end_ns, start_ns) / 1e9)


def _worked_s(engine: Engine, pieces: Pieces, start_ns: int, end_ns: int) -> float:
    stopped_s = 0.0
    for record in engine.metrics.checkpoints.values():
        if start_ns <= record.triggered_ns < end_ns:
            whole_ns = (record.ended_ns or end_ns) - record.triggered_ns
            sync_ns = max((part.sync_ns for part in record.parts.values()), default=0)
            stopped_s += (whole_ns if pieces.is_upper_bound else sync_ns) / 1e9
    return (end_ns - start_ns) / 1e9 - stopped_s
