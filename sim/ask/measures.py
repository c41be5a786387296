"""Numbers of one run, by name, and closed forms of a scenario: what a question's file can ask for."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean

import networkx as nx

from barrierlab.sim.advise.laws import catch_up_s
from barrierlab.sim.ask.facts import Facts
from barrierlab.sim.scenario.settings import ALIGNED_EXCHANGES, ChannelSettings, Scenario

Measure = Callable[[Facts], float | None]


def _mean(values: tuple[float, ...]) -> float | None:
    return fmean(values) if values else None


def _share(facts: Facts, piece: str) -> float | None:
    total = sum(facts.path_ms.values())
    return facts.path_ms[piece] / total if total else None


def age_ms(facts: Facts) -> float | None:
    """Return the mean over time of how old the newest complete checkpoint is, from the first completion on.

    That much is done again if the job fails then.
    """
    if len(facts.completed_at_ms) < 2:
        return None
    ends = sorted(zip(facts.completed_at_ms, facts.triggered_at_ms, strict=True))
    area = newest = 0.0
    for (at, triggered), (later, _) in pairwise(ends):
        newest = max(newest, triggered)
        area += ((later - newest) ** 2 - (at - newest) ** 2) / 2
    return area / (ends[-1][0] - ends[0][0])


def _recovery(facts: Facts, key: str) -> float | None:
    found = [row[key] for row in facts.recoveries if row[key] is not None]
    return fmean(found) if found else None


def _done_before_caught_up(facts: Facts) -> float | None:
    """Return after how many of the restores a checkpoint completed before all was caught up."""
    rows = [row for row in facts.recoveries if row["catch_up_ms"] is not None]
    if not rows:
        return None
    spans = [(row["restored_ms"], row["restored_ms"] + row["catch_up_ms"]) for row in rows]
    return fmean(any(begin < done < end for done in facts.completed_at_ms) for begin, end in spans)


def _loops(facts: Facts) -> list[tuple[bool, float]]:
    """Return of each failure whether no checkpoint completed since the restart before it, and how long that is ago."""
    found, since = [], 0.0
    for row in facts.recoveries:
        failed = row["failed_at_ms"]
        found.append((not any(since < done <= failed for done in facts.completed_at_ms), failed - since))
        since = failed if row["restored_ms"] is None else row["restored_ms"]
    return found


def _loop_share(facts: Facts) -> float | None:
    loops = _loops(facts)
    return fmean(is_loop for is_loop, _ in loops) if loops else None


def _without_progress(facts: Facts) -> float | None:
    """Return the mean time from a restart to the next, if no checkpoint completed between them."""
    return _mean(tuple(ms for is_loop, ms in _loops(facts) if is_loop))


def _lag(facts: Facts) -> float | None:
    """Return how old the sources' positions are at a restart, in the mean: what is to be caught up."""
    found = []
    for row in facts.recoveries:
        if row["restored_ms"] is not None:
            pairs = zip(facts.completed_at_ms, facts.triggered_at_ms, strict=True)
            newest = max((at for done, at in pairs if done <= row["failed_at_ms"]), default=0.0)
            found.append(row["restored_ms"] - newest)
    return fmean(found) if found else None


MEASURES: dict[str, tuple[str, Measure]] = {
    "duration": ("ms", lambda f: _mean(f.durations_ms)),
    "start_delay_share": ("%", lambda f: _share(f, "start_delay")),
    "alignment_share": ("%", lambda f: _share(f, "alignment")),
    "start_delay": ("ms", lambda f: max((d for d, _ in f.operators.values()), default=None)),
    "alignment": ("ms", lambda f: max((a for _, a in f.operators.values()), default=None)),
    "persisted": ("B", lambda f: _mean(f.persisted)),
    "unaligned_share": ("%", lambda f: f.unaligned / len(f.durations_ms) if f.durations_ms else None),
    "failed_share": ("%", lambda f: f.failed / f.triggered if f.triggered else None),
    "throughput": ("/s", lambda f: f.throughput_per_s),
    "busy": ("%", lambda f: f.busy_share),
    "age": ("ms", age_ms),
    "commit_wait": ("ms", lambda f: _mean(f.commits_ms)),
    "commit_wait_most": ("ms", lambda f: max(f.commits_ms, default=None)),
    "open": ("ms", lambda f: f.open_ms or None),
    "failing_every": ("ms", lambda f: f.duration_ms / len(f.recoveries) if f.recoveries else None),
    "catch_up": ("ms", lambda f: _recovery(f, "catch_up_ms")),
    "downtime": ("ms", lambda f: _recovery(f, "downtime_ms")),
    "done_before_caught_up": ("%", _done_before_caught_up),
    "replayed": ("", lambda f: _recovery(f, "events_replayed")),
    "lag": ("ms", _lag),
    "loop_share": ("%", _loop_share),
    "without_progress": ("ms", _without_progress),
    "barriers": ("", lambda f: f.barriers or None),
    "state": ("B", lambda f: f.state_bytes),
    "wait_p99": ("ms", lambda f: f.join.wait_p99_ms if f.join else None),
    "age_p99": ("ms", lambda f: f.join.age_p99_ms if f.join else None),
    "skew_p99": ("ms", lambda f: f.join.skew_p99_ms if f.join else None),
    "complete_share": ("%", lambda f: f.join.complete_share if f.join else None),
    "waiting_share": ("%", lambda f: f.join.waiting_share if f.join else None),
    "drain": ("ms", lambda f: f.drain_ms),
}
"""By name: unit, and the number of one run; None where a run has none."""


NOWHERE = "no operator"


def _largest(facts: Facts) -> str:
    return max(facts.path_ms, key=lambda name: facts.path_ms[name])


def piece(facts: Facts) -> str:
    """Return the largest piece of the critical path, in words."""
    words = {"start_delay": "start delay", "alignment": "alignment", "sync": "the synchronous part"}
    return words.get(_largest(facts), "writing and acknowledgements")


def place(facts: Facts) -> str:
    """Return where most of the largest piece of the critical path is waited for."""
    return facts.places.get(_largest(facts), NOWHERE)


def aligns(facts: Facts) -> str:
    """Return the operator with the longest alignment."""
    return max(facts.operators, key=lambda name: facts.operators[name][1], default=NOWHERE)


def _is_queue(facts: Facts) -> bool:
    """Return whether the longest start delay of an operator is no shorter than the longest alignment."""
    delay, alignment = (max((both[i] for both in facts.operators.values()), default=0.0) for i in (0, 1))
    return delay >= alignment


def cause(facts: Facts) -> str:
    """Return the cause of the longer of start delay and alignment, in words."""
    return (
        "data queued ahead of the barrier"
        if _is_queue(facts)
        else "one input whose barrier comes later than the others'"
    )


def slowest(facts: Facts) -> str:
    """Return where that is: a start delay passes on downstream, so the operator with most of it on the path."""
    return facts.places.get("start_delay", NOWHERE) if _is_queue(facts) else aligns(facts)


WORDS: dict[str, Callable[[Facts], str]] = {
    "busiest": lambda f: f.busiest.partition("[")[0],
    "piece": piece,
    "place": place,
    "aligns": aligns,
    "slowest": slowest,
    "cause": cause,
}
"""By name: a word of one run."""


# Closed forms, of a scenario's settings alone.


def rates_per_s(scenario: Scenario) -> dict[str, float]:
    """Return how many records a second arrive at each operator, as declared; a filter and a flat map change that."""
    topology = scenario.topology
    graph = nx.DiGraph(tuple(edge.split("->")) for edge in topology.edges)
    given: dict[str, float] = {}
    comes: dict[str, float] = {}
    for name in nx.topological_sort(graph):
        if name in scenario.sources:
            source = scenario.sources[name]
            comes[name] = source.rate_per_s * source.parallelism
        else:
            copies = {
                edge: topology.parallelism(name) if topology.exchange(edge) == "broadcast" else 1
                for edge in topology.edges_in(name)
            }
            comes[name] = sum(given[edge.split("->")[0]] * times for edge, times in copies.items())
        given[name] = comes[name] * (scenario.operators[name].sends_each if name in scenario.operators else 1.0)
    return comes


def capacity_per_s(scenario: Scenario, operator: str) -> float:
    """Return how many records a second an operator's subtasks can take; inf without a service time."""
    service_s = scenario.operators[operator].mean_service_s
    return scenario.topology.parallelism(operator) / service_s if service_s else math.inf


def bottleneck(scenario: Scenario) -> tuple[str, float]:
    """Return the operator with the highest load, and that: arrivals over capacity."""
    rates = rates_per_s(scenario)
    loads = {name: rates[name] / capacity_per_s(scenario, name) for name in scenario.operators}
    name = max(loads, key=lambda each: loads[each])
    return name, loads[name]


def edge_bytes(scenario: Scenario, edge: str) -> float:
    """Return the bytes that an exchange holds at most: laws of network buffers, or the capacity of its queues."""
    channel: ChannelSettings = scenario.channels[edge]
    senders, receivers = (scenario.topology.parallelism(name) for name in edge.split("->"))
    channels = len([c for c in scenario.topology.channels if scenario.topology.edge_of(c) == edge])
    if channel.form == "spsc":
        return channels * channel.capacity * record_bytes(scenario)
    per_sender, per_receiver = channels / senders, channels / receivers
    own = min(channel.exclusive_buffers * per_sender + channel.floating_buffers, channel.most_buffers * per_sender)
    of_gate = 0.0 if channel.local else channel.exclusive_buffers * per_receiver + channel.floating_buffers
    record = record_bytes(scenario)
    whole = max(1, channel.segment_bytes // record) * record  # a record is not split, unless it spans
    filled = channel.segment_bytes if channel.spanning_records else whole
    return filled * (senders * own + receivers * of_gate)


def record_bytes(scenario: Scenario) -> float:
    """Return the mean size of a record of the sources."""
    return fmean(source.record_bytes.mean for source in scenario.sources.values())


def inflight_bound(scenario: Scenario) -> float:
    """Return the bytes that all exchanges hold at most."""
    return sum(edge_bytes(scenario, edge) for edge in scenario.topology.edges)


def queued_ahead(scenario: Scenario) -> float:
    """Return the bytes that can be queued ahead of the bottleneck: on all exchanges upstream of it."""
    name, _ = bottleneck(scenario)
    graph = nx.DiGraph(tuple(edge.split("->")) for edge in scenario.topology.edges)
    upstream = {name, *nx.ancestors(graph, name)}
    return sum(edge_bytes(scenario, edge) for edge in scenario.topology.edges if edge.split("->")[1] in upstream)


def snapshot_s(scenario: Scenario) -> float:
    """Return the mean time of a snapshot, from the cut until its manifest is written."""
    checkpoint = scenario.checkpoint
    return checkpoint.sync_s.mean + checkpoint.async_s.mean + scenario.store.manifest_s.mean


def predicted_ms(scenario: Scenario) -> float:
    """Return the duration of a checkpoint in closed form.

    Saturated, what is queued ahead of the bottleneck over its byte rate; else as much of a flush as the bottleneck is
    busy; then the snapshot. Barriers that overtake wait for none of it.
    """
    name, load = bottleneck(scenario)
    if scenario.mode.settings.is_flagged:
        return 1e3 * snapshot_s(scenario)
    if load >= 1:
        waits_s = queued_ahead(scenario) / (capacity_per_s(scenario, name) * record_bytes(scenario))
    else:
        flushes = [c.flush_timeout_s for c in scenario.channels.values() if c.form == "network"]
        waits_s = load * max(flushes, default=0.0)
    return 1e3 * (waits_s + snapshot_s(scenario))


def channels_count(scenario: Scenario) -> float:
    """Return how many channels there are: a barrier crosses each once."""
    return float(len(scenario.topology.channels))


def age_predicted_ms(scenario: Scenario) -> float:
    """Return the mean age of the newest complete checkpoint: its duration, and half a period.

    A period is the interval, or what a checkpoint takes shared among those that may be under way. (The duration is that
    of the snapshot: a barrier's way is not in it.)
    """
    took_s = snapshot_s(scenario)
    return 1e3 * (took_s + period_s(scenario, took_s) / 2)


def period_s(scenario: Scenario, took_s: float) -> float:
    """Return the time from trigger to trigger if a checkpoint takes so long."""
    checkpoint = scenario.checkpoint
    interval_s = checkpoint.interval_s or 0.0
    if checkpoint.max_concurrent > 1:
        return max(interval_s, took_s / checkpoint.max_concurrent)
    return max(interval_s, took_s + checkpoint.min_pause_s)


def commit_predicted_ms(scenario: Scenario) -> float:
    """Return the mean wait until a record is committed: half a period, and a checkpoint (a barrier's way is not in)."""
    took_s = snapshot_s(scenario)
    return 1e3 * (period_s(scenario, took_s) / 2 + took_s)


def open_bound_ms(scenario: Scenario) -> float:
    """Return how long a transaction can be open without a failure: a period, and a checkpoint."""
    return 2 * commit_predicted_ms(scenario) - 1e3 * snapshot_s(scenario)


def catch_up_predicted_ms(scenario: Scenario) -> float:
    """Return the mean time to work a failure off: (down + duration + half a period) rho / (1 - rho), or inf."""
    _, load = bottleneck(scenario)
    recovery, took_s = scenario.recovery, snapshot_s(scenario)
    lag_s = recovery.detection_s.mean + recovery.restart_s.mean + took_s + period_s(scenario, took_s) / 2
    return 1e3 * catch_up_s(lag_s, load)


def expiring(scenario: Scenario) -> float:
    """Return the share of checkpoints that expire: some task writes its state for longer than the timeout.

    Of lognormal and exponential times, and constant ones; the barrier's way is not in it.
    """
    from scipy.stats import expon, lognorm

    checkpoint = scenario.checkpoint
    dist, left_s = checkpoint.async_s, checkpoint.timeout_s - checkpoint.sync_s.mean
    if dist.name == "lognormal":
        mean, cv = dist.parameters
        sigma = math.sqrt(math.log(1 + cv**2))
        one = float(lognorm.sf(left_s, sigma, scale=mean / math.exp(sigma**2 / 2)))
    elif dist.name == "exponential":
        one = float(expon.sf(left_s, scale=dist.mean))
    else:
        one = float(dist.largest > left_s)
    return float(1 - (1 - one) ** len(scenario.topology.tasks))


def failing_every_ms(scenario: Scenario) -> float:
    """Return the mean time from restart to restart, if nothing but expired checkpoints in a row restarts the job.

    A run of k + 1 failures in independent trials takes (1 - p^(k+1)) / ((1 - p) p^(k+1)) trials in the mean (W. Feller,
    An Introduction to Probability Theory, vol. 1, XIII.7): the last ends with its timeout, then the job is down.
    """
    p, checkpoint = expiring(scenario), scenario.checkpoint
    runs = (checkpoint.tolerable_failures if checkpoint.tolerable_failures is not None else 10**9) + 1
    if not 0 < p < 1:
        return math.inf if not p else 1e3 * runs * (checkpoint.interval_s or 0.0)
    trials = (1 - p**runs) / ((1 - p) * p**runs)
    down_s = scenario.recovery.restart_s.mean  # the coordinator itself fails the job: there is nothing to detect
    return 1e3 * (trials * (checkpoint.interval_s or 0.0) + checkpoint.timeout_s + down_s)


def looping(scenario: Scenario) -> float:
    """Return the share of restarts after which no checkpoint completes before the next: k + 1 expire in a row."""
    k = scenario.checkpoint.tolerable_failures
    return 0.0 if k is None else expiring(scenario) ** (k + 1)


def detected_ms(scenario: Scenario) -> float:
    """Return how long a job is without progress before it restarts: k + 1 intervals, and the last one's timeout."""
    checkpoint = scenario.checkpoint
    count = (checkpoint.tolerable_failures or 0) + 1
    return 1e3 * (count * (checkpoint.interval_s or 0.0) + checkpoint.timeout_s)


def lag_predicted_ms(scenario: Scenario) -> float:
    """Return the mean lag at a restart: the time that the job is down, a checkpoint, and half a period."""
    recovery = scenario.recovery
    return 1e3 * (recovery.detection_s.mean + recovery.restart_s.mean) + age_predicted_ms(scenario)


def forced_aligned(scenario: Scenario) -> str:
    """Return the operators that align although unaligned is asked for, with what makes them, in words."""
    found = []
    for name, operator in scenario.operators.items():
        edges = [edge for edge in scenario.topology.edges_in(name) if edge_aligns(scenario, edge)]
        if edges:
            found.append(f"'{name}' ({', '.join(f'{e} is {scenario.channels[e].exchange}' for e in edges)})")
        elif name in scenario.topology.sinks and operator.aligns:
            found.append(f"'{name}' (a sink)")
    return ", ".join(found) or "none"


def edge_aligns(scenario: Scenario, edge: str) -> bool:
    """Return whether no barrier overtakes on an edge."""
    return scenario.channels[edge].exchange in ALIGNED_EXCHANGES


OF_SCENARIO: dict[str, Callable[[Scenario], str]] = {"forced_aligned": forced_aligned}
"""By name: a word of a scenario."""

CLOSED: dict[str, tuple[str, Callable[[Scenario], float]]] = {
    "predicted": ("ms", predicted_ms),
    "inflight_bound": ("B", inflight_bound),
    "queued_ahead": ("B", queued_ahead),
    "channels": ("", channels_count),
    "age_predicted": ("ms", age_predicted_ms),
    "commit_predicted": ("ms", commit_predicted_ms),
    "open_bound": ("ms", open_bound_ms),
    "catch_up_predicted": ("ms", catch_up_predicted_ms),
    "expiring": ("%", expiring),
    "failing_every_predicted": ("ms", failing_every_ms),
    "load": ("", lambda scenario: bottleneck(scenario)[1]),
    "looping": ("%", looping),
    "detected": ("ms", detected_ms),
    "tolerable": ("", lambda scenario: float(scenario.checkpoint.tolerable_failures or 0)),
    "enough": ("", lambda scenario: float((scenario.checkpoint.tolerable_failures or 0) + 1)),
    "lag_predicted": ("ms", lag_predicted_ms),
}
"""By name: unit, and the closed form of a scenario."""
