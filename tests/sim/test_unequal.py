"""Subtasks that are not alike: for a whole run, or by the chance of each service."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from barrierlab.sim import load, run
from barrierlab.sim.sweep.measured import load_measured, mean_of, statistics_of
from tests.sim.support import SKEWED, scenario, with_changes

LOCAL = {"level": "sat_4ms", "topology": "L", "until_s": 26.0}


def gap_ms(settings: dict[str, object], seed: int) -> float:
    """Return by how much the start delays of two equal subtasks differ at the end of a run, over three checkpoints."""
    result = run(load("flink_chain", LOCAL | settings), seed)
    assert result.verdict == "holds"
    delays = defaultdict(list)
    for row in result.task_rows():
        if row["operator"] == "slow":
            delays[row["subtask"]].append(row["start_delay_ms"])
    return abs(statistics.fmean(delays[0][-3:]) - statistics.fmean(delays[1][-3:]))


@pytest.mark.slow
def test_equal_subtasks_stand_as_far_apart_as_measured() -> None:
    """Of two equal subtasks the slower one is waited for, on every cluster; it would be predicted on none.

    Measured locally: 392 and 264 ms in one run, and in another from 0 to 208 ms apart, growing.
    """
    assert max(gap_ms({}, seed) for seed in (1, 2, 3)) < 20
    noisy = {"operator.slow.service_noise": 0.1, "operator.slow.subtask_spread": 0.01}
    gaps = sorted(gap_ms(noisy, seed) for seed in range(1, 11))
    assert gaps[0] < 60
    assert gaps[0] < 392 - 264 < gaps[-1]
    assert gaps[-1] > 200


UNEQUAL = {"operator.slow.service_noise": 0.1, "operator.slow.subtask_spread": 0.02}


@pytest.mark.slow
def test_the_pair_of_the_debloated_job_lies_within_what_is_simulated() -> None:
    """The largest miss under saturation would stay: 392 and 264 ms at two equal subtasks, alike in the simulation."""
    aligned, unaligned = (job for job in load_measured() if job.settings.get("buffer_debloat.enabled"))
    pairs = []  # of checkpoints: the shorter delay and the longer
    for seed in range(1, 6):
        result = run(load(aligned.scenario, aligned.settings | UNEQUAL), seed)
        delays = defaultdict(list)
        for row in result.task_rows():
            if row["operator"] == "slow" and row["steady"]:
                delays[row["checkpoint_id"]].append(row["start_delay_ms"])
        pairs += [sorted(each) for each in delays.values()]
    for measured, simulated in zip((264.0, 392.0), zip(*pairs, strict=True), strict=True):
        low, *_, high = statistics.quantiles(simulated, n=20)  # 5 and 95 %
        assert low < measured < high
    # The queue of the faster one is shorter: the unequal job holds less, as the cluster's did.
    persisted = {}
    for name, changes in (("alike", {}), ("unequal", UNEQUAL)):
        results = [run(load(unaligned.scenario, unaligned.settings | changes), seed) for seed in (1, 2, 3)]
        found = mean_of([statistics_of(r.checkpoint_rows(), r.task_rows()) for r in results])
        persisted[name] = found["persisted"] / unaligned.values["persisted"]
    assert persisted["unequal"] == pytest.approx(1.0, abs=0.05)
    assert persisted["alike"] > 1.08


def test_what_is_unequal_stays_so_after_a_restart(tmp_path: Path) -> None:
    """The subtasks of one machine would be fast and slow in turn."""
    changes = {
        "topology": "a->work work->sink",
        "source": {"a": {"parallelism": 2, "rate_per_s": 20.0, "watermark_interval_s": None}, "b": None},
        "operator": {
            "work": {"parallelism": 2, "service_s": 0.02, "subtask_spread": 0.5},
            "join": None,
            "sink": {"kind": "sink"},
        },
        "channel": {"b->join": None, "default": {"exchange": "rebalance"}},
        "until_s": 8.0,
    }
    job = scenario(tmp_path, with_changes(SKEWED, changes))
    crash = scenario(
        tmp_path, with_changes(SKEWED, {**changes, "fault": [{"kind": "crash", "task": "work", "at_s": 4.0}]})
    )

    def services_ms(result: object, since_s: float) -> dict[str, float]:
        begun: dict[str, list[int]] = defaultdict(list)
        for at_ns, verb, node, _, subject in result.entries:  # type: ignore[attr-defined]
            if verb == "send" and node.startswith("work") and at_ns > since_s * 1e9 and hasattr(subject, "sequence"):
                begun[node].append(at_ns - taken[node])
            elif verb == "take" and node.startswith("work"):
                taken[node] = at_ns
        return {node: statistics.median(found) / 1e6 for node, found in begun.items()}

    taken: dict[str, int] = {}
    before = services_ms(run(job, 1), 0.0)
    after = services_ms(run(crash, 1), 6.0)
    assert before == pytest.approx(after)
    assert before["work[0]"] != pytest.approx(before["work[1]"], rel=0.05)
    assert run(crash, 1).digest == run(crash, 1).digest


def test_noise_leaves_the_mean_as_it_is() -> None:
    """Noise would be a slower operator."""
    usual, noisy = (
        run(load("flink_chain", LOCAL | {"operator.slow.service_noise": noise}), 1).throughput_per_s
        for noise in (0.0, 0.3)
    )
    assert noisy == pytest.approx(usual, rel=0.02)
