"""The pieces of what an interval costs a job: read off its settings, and measured in a short run without faults."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import fmean

from barrierlab.sim.checkpoint.estimate import steps
from barrierlab.sim.checkpoint.result import Result, run
from barrierlab.sim.checkpoint.stationarity import LEAST, NOT_STATIONARY, OVERLOADED, TOO_SHORT
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.scenario.settings import RecoverySettings, Scenario

CHECKPOINTS = LEAST + 5  # as many as the steady-state rule needs, and a batch of its means that it may leave out
MOST_STEPS = 300_000  # of the short run: some seconds
DEFAULT_INTERVAL_S = 10.0  # where the scenario has none: barrierlab's own default
ARRIVALS = 200  # of fewer, how busy a task is says little
CHANCE = 3.0  # standard deviations of a count of arrivals: what piles up less may be chance
BUSY = 0.99  # of its time: a task that never waits for events is behind them


class NoAdviceError(Exception):
    """There is no interval to advise: a line that says why."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Costs of one checkpoint and one failure. Seconds.

    Attributes
    ----------
    cost_s : float
        A checkpoint stops the work for so long: the longest synchronous part; or, where none is known, `duration_s`.
    duration_s : float
        From the trigger until a checkpoint is complete.
    detection_s, restart_s, read_s : float
        Of a failure.
    load : float
        Of the busiest task, as a share of its time; what it stands still for checkpoints is not in it.
    bottleneck : str
        That task.
    least_s : float
        No period is shorter: Flink triggers one at a time, `min_pause_s` after the last.
    is_upper_bound : bool
        Said of `cost_s`: it is the whole duration.
    steady : str
        What the steady-state rule says of the durations.
    completed, failed : int
        Of the run's checkpoints that ended.
    longest_s : float
        Of those that completed.
    missing : tuple of str
        What is not known: the line to fill in, and what is taken for it.
    warnings : tuple of str
    """

    cost_s: float
    duration_s: float
    detection_s: float
    restart_s: float
    read_s: float
    load: float
    bottleneck: str
    least_s: float
    is_upper_bound: bool
    steady: str
    completed: int
    failed: int
    longest_s: float
    missing: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def down_s(self) -> float:
        """The time from a failure until the job runs again."""
        return self.detection_s + self.restart_s + self.read_s

    @property
    def lost_s(self) -> float:
        """The time a failure loses besides the work since the last checkpoint: `sim.advise.laws`."""
        return self.down_s + self.duration_s - self.cost_s


def short_run(scenario: Scenario) -> Scenario:
    """Return the scenario without its faults, as long as `CHECKPOINTS` checkpoints and `ARRIVALS` take, if short."""
    interval_s = scenario.checkpoint.interval_s or DEFAULT_INTERVAL_S
    quiet = replace(scenario, faults=(), checkpoint=replace(scenario.checkpoint, interval_s=interval_s))
    arrivals_s = ARRIVALS / rate if (rate := _arrivals_per_s(scenario)) else 0.0
    enough_s = max(scenario.until_s, scenario.warmup_s + max(CHECKPOINTS * interval_s, arrivals_s))
    per_s = steps(replace(quiet, until_s=1.0))
    return replace(quiet, until_s=min(enough_s, max(MOST_STEPS / per_s, 1.0)) if per_s else enough_s)


def _arrivals_per_s(scenario: Scenario) -> float:
    return sum(source.rate_per_s * source.parallelism for source in scenario.sources.values())


def _piles_up(result: Result) -> float:
    """Return the share of what arrives that piles up, if that is more than chance makes of so few arrivals."""
    share = result.piles_up_share or 0.0
    arrivals = _arrivals_per_s(result.scenario) * (result.duration_ns / 1e9 - result.scenario.warmup_s)
    return share if share * arrivals > CHANCE * max(arrivals, 0.0) ** 0.5 else 0.0


def measured(scenario: Scenario) -> Pieces:
    """Run the job for a short while, and read the rest off its settings.

    Raises
    ------
    NoAdviceError
        If the job cannot keep up with what arrives, or none of its checkpoints completes.
    """
    result: Result = run(short_run(scenario))
    if result.verdict == "broken":
        raise NoAdviceError(f"the run breaks an invariant ({result.violations[0].invariant}): barrierlab run shows it")
    load, bottleneck = _load(result)
    share = _piles_up(result)
    if share >= OVERLOADED or load >= BUSY:
        piles = f", and {percent(share)} of what arrives piles up" if share else ""
        raise NoAdviceError(
            f"saturated: {bottleneck} is busy {percent(load)} of the time without any failure{piles}; no interval lets "
            "the job keep up: give it more parallelism, or less to do"
        )
    every = result.checkpoint_rows()
    rows = [row for row in every if row["status"] == "COMPLETED" and row["steady"]]
    rows = rows[result.steady_state.left_out :]
    if not rows:
        raise NoAdviceError(
            f"no checkpoint completed after the warm-up in {result.duration_ns / 1e9:g} s without any failure: there "
            "is no duration to weigh; a longer until_s, or a shorter interval_s"
        )
    duration_s = fmean(row["end_to_end_duration_ms"] for row in rows) / 1e3
    cost_s = fmean(row["sync_max_ms"] for row in rows) / 1e3
    pause_s = scenario.checkpoint.min_pause_s
    recovery, rate = scenario.recovery, scenario.recovery.read_bytes_per_s
    state_bytes = max(row["checkpointed_bytes"] for row in result.task_rows())
    steady = result.steady_state
    return Pieces(
        cost_s=cost_s or duration_s,
        duration_s=duration_s,
        detection_s=recovery.detection_s.mean,
        restart_s=recovery.restart_s.mean,
        read_s=state_bytes / rate if rate else 0.0,
        load=load,
        bottleneck=bottleneck,
        least_s=duration_s / most if (most := scenario.checkpoint.max_concurrent) > 1 else duration_s + pause_s,
        is_upper_bound=not cost_s,
        steady=f"{steady.verdict} ({steady.why})",
        completed=sum(row["status"] == "COMPLETED" for row in every),
        failed=sum(row["status"] == "FAILED" for row in every),
        longest_s=max(row["end_to_end_duration_ms"] for row in rows) / 1e3,
        missing=tuple(_missing(scenario, cost_s, duration_s)),
        warnings=(f"durations are not to be trusted: {steady.why}",)
        if steady.verdict in (NOT_STATIONARY, TOO_SHORT)
        else (),
    )


def _load(result: Result) -> tuple[float, str]:
    """Return the largest share of its time that a task spends on events, and that task."""
    topology = result.scenario.topology
    stands_ms: dict[str, float] = defaultdict(float)
    for row in result.task_rows():
        stands_ms[topology.tasks_of(row["operator"])[row["subtask"]]] += row["sync_ms"]
    seconds = result.duration_ns / 1e9
    busy = result.backpressure()
    shares = {task: (each["busyTimeMsPerSecond"] - stands_ms[task] / seconds) / 1e3 for task, each in busy.items()}
    task = max(shares, key=lambda name: shares[name])
    return max(shares[task], 0.0), task


def _missing(scenario: Scenario, cost_s: float, duration_s: float) -> list[str]:
    """Return a line for each piece that the file does not give."""
    said = scenario.text + " ".join(scenario.settings)
    taken = {"detection_s": "from a failure until it is noticed", "restart_s": "until every task is there again"}
    lines = []
    if not cost_s:
        lines.append(
            "[checkpoint] sync_s = ...  (a checkpoint stops a task for so long; without it the whole duration, "
            f"{duration_s:.3g} s, counts as its cost, which is the most it can be)"
        )
    if not ("async_s" in said or "bytes_per_s" in said.replace("read_bytes_per_s", "")):
        lines.append("[checkpoint] async_s = ...  (writing the state; no time is taken)")
    for key, meaning in taken.items():
        if key not in said:
            default = getattr(RecoverySettings(), key).mean
            lines.append(f"[recovery] {key} = ...  ({meaning}; {default:g} s is taken)")
    if scenario.recovery.read_bytes_per_s is None:
        lines.append("[recovery] read_bytes_per_s = ...  (reading the state; no time is taken)")
    return lines
