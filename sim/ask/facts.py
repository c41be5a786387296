"""Facts of one run for a question: plain numbers, taken from its result once, in the process that ran it."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, cast

from barrierlab.model.spec.messages import kind_of
from barrierlab.sim.checkpoint.critical_path import PIECE_OF
from barrierlab.sim.checkpoint.metrics import NS_PER_MS
from barrierlab.sim.checkpoint.result import Result, run
from barrierlab.sim.checkpoint.stationarity import NOT_STATIONARY
from barrierlab.sim.scenario.load import load

if TYPE_CHECKING:
    from barrierlab.sim.join.engine import JoinResult

PIECES = tuple(dict.fromkeys(PIECE_OF.values()))


@dataclass(frozen=True, slots=True)
class JoinFacts:
    """One run of a join, after its warm-up: its row of the table `joins`. Times in ms; None without an output."""

    barrier: str
    lateness_ms: float | None
    complete_share: float
    wait_p99_ms: float | None
    age_p99_ms: float | None
    skew_p99_ms: float | None
    waiting_share: float


@dataclass(frozen=True, slots=True)
class Facts:
    """One run of a job. Times in ms of simulated time, sizes in bytes.

    Of the checkpoints those that were triggered after the warm-up, and that completed, and are not left out by the
    steady-state rule (`sim.checkpoint.stationarity`): `durations_ms`, `persisted`, `path_ms`, `places` and `operators`
    are of those.

    Attributes
    ----------
    grows : bool
        Whether durations have no steady state, and are longer in the second half of all.
    path_ms : mapping
        Of the critical path, by piece, a mean.
    places : mapping
        By piece of the critical path the operator where most of it is waited for (or the coordinator, or the store).
    operators : mapping
        By operator: start delay and alignment, of each checkpoint the largest over its subtasks, then the mean.
    unaligned : int
        Of them, how many hold channel state.
    triggered, failed : int
        After the warm-up, whatever became of them; an open one is triggered only.
    completed_at_ms, triggered_at_ms : tuple of float
        Of all that completed.
    commits_ms : tuple of float
        From when an event was due until a sink committed it.
    open_ms : float
        The longest that a transaction was open: from the first event in it to its commit; 0 without any.
    barriers : float
        That entered a channel, for each checkpoint.
    drain_ms : float or None
        How long what is queued for a gate lasts, of the gate where that is longest; None without debloating.
    vacuous : tuple of str
        The invariants that had nothing to judge.
    digest : str
        Of the journal; empty if the run is not kept.
    join : JoinFacts or None
        Of a run of a join, which has nothing of a job.
    """

    seed: int
    verdict: str
    broken: str
    steady: str
    grows: bool
    piles_up: float | None
    durations_ms: tuple[float, ...]
    persisted: tuple[float, ...]
    path_ms: Mapping[str, float]
    places: Mapping[str, str]
    operators: Mapping[str, tuple[float, float]]
    unaligned: int
    triggered: int
    failed: int
    completed_at_ms: tuple[float, ...]
    triggered_at_ms: tuple[float, ...]
    throughput_per_s: float
    busiest: str
    busy_share: float
    recoveries: tuple[Mapping[str, Any], ...]
    commits_ms: tuple[float, ...]
    open_ms: float
    barriers: float
    duration_ms: float
    state_bytes: float
    drain_ms: float | None
    vacuous: tuple[str, ...] = ()
    digest: str = ""
    join: JoinFacts | None = None


def facts_of(source: str, settings: Mapping[str, Any], seed: int, with_digest: bool = False) -> Facts:
    """Return the facts of a run of the scenario with these settings, with the digest of its journal if it is kept."""
    result = run(load(source, settings), seed)
    found = of_result(result) if isinstance(result, Result) else of_join(cast("JoinResult", result))
    if with_digest:
        found = replace(found, digest=result.digest)
    del result
    gc.collect(0)
    return found


def of_result(result: Result) -> Facts:
    """Return the facts of a run."""
    every = result.checkpoint_rows()
    steady = [row for row in every if row["steady"]]
    whole = [row for row in steady if row["status"] == "COMPLETED"]
    done = whole[result.steady_state.left_out :]
    ids = {row["checkpoint_id"] for row in done}
    backpressure = result.backpressure()
    busiest = max(backpressure, key=lambda name: backpressure[name]["busyTimeMsPerSecond"])
    commits, open_ms = _commits(result)
    recoveries = tuple(result.recovery_rows())
    completed = [r for r in every if r["status"] == "COMPLETED"]
    return Facts(
        seed=result.seed,
        verdict=result.verdict,
        broken="; ".join(f"{v.invariant}: {v.reason}" for v in result.violations[:1]),
        steady=result.steady_state.verdict,
        grows=result.steady_state.verdict == NOT_STATIONARY
        and _is_rising([r["end_to_end_duration_ms"] for r in whole]),
        piles_up=result.piles_up_share,
        durations_ms=tuple(r["end_to_end_duration_ms"] for r in done),
        persisted=tuple(float(r["persisted_bytes"]) for r in done),
        path_ms={p: fmean(r[f"path_{p}_ms"] for r in done) if done else 0.0 for p in PIECES},
        places=_places(result, ids),
        operators=_operators(result, ids),
        unaligned=sum(r["persisted_bytes"] > 0 for r in done),
        triggered=len(steady),
        failed=sum(r["status"] == "FAILED" for r in steady),
        completed_at_ms=tuple(r["trigger_timestamp_ms"] + r["end_to_end_duration_ms"] for r in completed),
        triggered_at_ms=tuple(r["trigger_timestamp_ms"] for r in completed),
        throughput_per_s=result.throughput_per_s,
        busiest=busiest,
        busy_share=backpressure[busiest]["busyTimeMsPerSecond"] / 1e3,
        recoveries=recoveries,
        commits_ms=commits,
        open_ms=open_ms,
        barriers=_barriers(result),
        duration_ms=result.duration_ns / NS_PER_MS,
        state_bytes=max((float(r["checkpointed_bytes"]) for r in every), default=0.0),
        drain_ms=max((row["estimatedTimeToConsumeBuffersMs"] for row in result.debloating()), default=None),
        vacuous=tuple(result.coverage.vacuous),
    )


def _is_rising(durations_ms: Sequence[float]) -> bool:
    half = len(durations_ms) // 2
    return fmean(durations_ms[half:]) > fmean(durations_ms[:half])


def of_join(result: JoinResult) -> Facts:
    """Return the facts of a run of a join."""
    (row,) = result.join_rows()
    row["waiting_share"] = row["waiting"] / row["wanted"] if row["wanted"] else 0.0
    names = ("barrier", "lateness_ms", "complete_share", "wait_p99_ms", "age_p99_ms", "skew_p99_ms", "waiting_share")
    return Facts(
        seed=result.seed,
        verdict=result.verdict,
        broken="; ".join(f"{v.invariant}: {v.reason}" for v in result.violations[:1]),
        steady="",
        grows=False,
        piles_up=None,
        durations_ms=(),
        persisted=(),
        path_ms={},
        places={},
        operators={},
        unaligned=0,
        triggered=0,
        failed=0,
        completed_at_ms=(),
        triggered_at_ms=(),
        throughput_per_s=row["output_rate_per_s"],
        busiest="",
        busy_share=0.0,
        recoveries=(),
        commits_ms=(),
        open_ms=0.0,
        barriers=0.0,
        duration_ms=1e3 * result.scenario.until_s,
        state_bytes=0.0,
        drain_ms=None,
        join=JoinFacts(*(row[name] for name in names)),
    )


def _places(result: Result, ids: set[int]) -> dict[str, str]:
    spent_ns: dict[str, Counter[str]] = defaultdict(Counter)
    for checkpoint_id in sorted(ids):
        for piece in result.critical_path(checkpoint_id):
            spent_ns[PIECE_OF[piece.what]][piece.where.partition("[")[0]] += piece.duration_ns
    return {piece: places.most_common(1)[0][0] for piece, places in spent_ns.items()}


def _operators(result: Result, ids: set[int]) -> dict[str, tuple[float, float]]:
    largest: dict[tuple[str, int], list[float]] = {}
    for row in result.task_rows():
        if row["checkpoint_id"] in ids:
            found = largest.setdefault((row["operator"], row["checkpoint_id"]), [0.0, 0.0])
            found[0] = max(found[0], row["start_delay_ms"])
            found[1] = max(found[1], row["alignment_ms"])
    by_operator: dict[str, list[list[float]]] = defaultdict(list)
    for (operator, _), both in largest.items():
        by_operator[operator].append(both)
    return {name: (fmean(b[0] for b in found), fmean(b[1] for b in found)) for name, found in by_operator.items()}


def _barriers(result: Result) -> float:
    """Return how many barriers entered a channel for each checkpoint that completed."""
    completed = {r["checkpoint_id"] for r in result.checkpoint_rows() if r["status"] == "COMPLETED"}
    sent = sum(
        1
        for _, verb, _, _, subject in result.entries
        if verb == "send"
        and kind_of(subject) == "CheckpointBarrier"
        and getattr(subject, "checkpoint_id", 0) in completed
    )
    return sent / len(completed) if completed else 0.0


def _commits(result: Result) -> tuple[tuple[float, ...], float]:
    """Return the time from each event's making to its commit, after the warm-up, and the longest open transaction."""
    made: dict[tuple[str, int], int] = {}
    first: dict[str, int] = {}  # by sink: when the transaction that is open took its first event
    waits: list[float] = []
    longest = 0
    begin_ns = result.scenario.warmup_s * 1e9
    opened: dict[tuple[str, Any], int] = {}
    for at_ns, verb, node, _, subject in result.entries:
        if verb == ">emit" or (verb == "send" and kind_of(subject) == "Event"):  # of an aggregate: as it sends it
            event: Any = subject
            made.setdefault((event.source, event.sequence), at_ns)
        elif verb == "deliver" and kind_of(subject) == "Event":
            first.setdefault(node, at_ns)
        elif verb == "prepare":
            prepared: Any = subject
            if node in first:
                opened[node, prepared[0]] = first.pop(node)
        elif verb == "commit":
            committed: Any = subject
            transaction, events = committed
            for each in events:
                born = made.get((each.source, each.sequence))
                if born is not None and born >= begin_ns:
                    waits.append((at_ns - born) / NS_PER_MS)
            since = opened.pop((node, transaction), None)
            if since is not None and since >= begin_ns:
                longest = max(longest, at_ns - since)
    return tuple(waits), longest / NS_PER_MS
