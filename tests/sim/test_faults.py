"""Faults: each kind is felt, at its time and where it strikes; none of them makes a checkpoint wrong."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barrierlab.sim import load, run
from barrierlab.sim.checkpoint.faults import FaultEffect, Slowness, times_ns
from barrierlab.sim.core.distributions import Randoms
from barrierlab.sim.scenario.settings import Fault, constant
from tests.sim.support import FAILING, MODES, NETWORK, emitted, moves, scenario, statuses, toml, with_changes

ROOT = Path(__file__).parents[2]
SEED = 5
# Nothing waits for long: what a fault costs stands out.
CALM = with_changes(
    FAILING, {"source": {"a": {"rate_per_s": 40.0}, "b": {"rate_per_s": 20.0}}, "store": {"manifest_s": 0.0}}
)


def ended_ms(result: Any, column: str = "end_to_end_duration_ms") -> list[float]:
    """A column of the checkpoints, by id."""
    return [row[column] for row in result.checkpoint_rows()]


# kind: its keys; what the checkpoint triggered at 1.8 s, while it lasts, is like, compared with the run without it
LASTING: dict[str, tuple[dict[str, Any], str, float]] = {
    "slow_store": ({"factor": 5.0}, "end_to_end_duration_ms", 115),
    "late_ack": ({"task": "map", "added_s": 0.15}, "end_to_end_duration_ms", 130),
    "slow_link": ({"channel": "work->map", "added_s": 0.1}, "end_to_end_duration_ms", 90),
    "stall": ({"task": "map"}, "start_delay_max_ms", 90),
}


@pytest.mark.parametrize("kind", LASTING)
def test_what_is_slow_delays_the_checkpoint_that_meets_it(kind: str, tmp_path: Path) -> None:
    """A fault would not be felt, be felt by the wrong checkpoint, or never be over."""
    keys, column, least_ms = LASTING[kind]
    slow = {"kind": kind, "at_s": 1.75, "for_s": 0.15, **keys}
    usual, result = run(scenario(tmp_path, CALM), SEED), run(scenario(tmp_path, CALM, fault=[slow]), SEED)
    assert result.verdict == "holds", result.violations
    before, after = ended_ms(usual, column), ended_ms(result, column)
    assert after[2] > before[2] + least_ms
    assert after[:2] == before[:2]
    assert max(after[3:]) < max(before) + least_ms / 2


def test_a_slow_network_link_sends_its_bytes_slower(tmp_path: Path) -> None:
    """A slow link would only be far away, and carry as much as ever."""
    wire = {"channel": {"default": {**NETWORK, "latency_s": 0.0, "bytes_per_s": 100_000.0}}}
    slow = {"kind": "slow_link", "channel": "a->work", "at_s": 1.7, "for_s": 1.0, "factor": 40.0}
    base = with_changes(CALM, {"channel": None})
    usual = run(scenario(tmp_path, base, **wire), SEED)
    result = run(scenario(tmp_path, base, **wire, fault=[slow]), SEED)
    assert result.verdict == "holds", result.violations
    assert ended_ms(result)[2] > ended_ms(usual)[2] + 5
    assert ended_ms(result)[6] == pytest.approx(ended_ms(usual)[6], abs=15)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"kind": "failing_store"}, "store failed"),
        ({"kind": "failing_store", "in_doubt": True}, "store in doubt"),
        ({"kind": "full_store"}, "store failed"),
        ({"kind": "full_store", "capacity_bytes": 10_000_000}, None),
        ({"kind": "lost_ack", "task": "map"}, "expired"),
    ],
    ids=lambda value: " ".join(map(str, value.values())) if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("mode", MODES)
def test_what_fails_for_a_while_costs_the_checkpoints_of_that_while(
    keys: dict[str, Any], reason: str | None, mode: str, tmp_path: Path
) -> None:
    """A store that comes back would not be used, or a checkpoint that was not stored be called complete."""
    job = with_changes(CALM, {**MODES[mode], "checkpoint": {**MODES[mode].get("checkpoint", {}), "timeout_s": 0.5}})
    result = run(scenario(tmp_path, job, fault=[{**keys, "at_s": 1.7, "for_s": 1.4}]), SEED)
    assert result.verdict == "holds", result.violations
    failed = "COMPLETED" if reason is None else f"FAILED: {reason}"
    found = statuses(result)
    assert found[:5] == ["COMPLETED", "COMPLETED", failed, failed, failed]
    assert found[5:] == ["COMPLETED"] * len(found[5:])
    assert len(found) >= 9


def test_a_cancelled_checkpoint_is_aborted_and_nothing_else(tmp_path: Path) -> None:
    """Whoever aborts a checkpoint would stop the job, or the checkpoints after it."""
    cancel = {"kind": "cancel_checkpoint", "every_s": 1.8, "first_s": 1.82}
    for mode in MODES.values():
        result = run(scenario(tmp_path, with_changes(CALM, mode), fault=[cancel]), SEED)
        assert result.verdict == "holds", result.violations
        found = statuses(result)
        assert [i + 1 for i, status in enumerate(found) if status == "FAILED: cancelled"] == [3, 6, 9]
        assert set(found) == {"COMPLETED", "FAILED: cancelled"}
        assert result.run_row()["failures"] == 0


def test_a_slow_recovery_lasts_longer(tmp_path: Path) -> None:
    """A restart that takes long would cost no more than one that does not."""
    crash = {"kind": "crash", "task": "map", "at_s": 2.0}
    slow = {"kind": "slow_recovery", "at_s": 2.05, "for_s": 0.1, "factor": 3.0, "added_s": 0.1}
    usual = run(scenario(tmp_path, CALM, fault=[crash]), SEED).recovery_rows()[0]
    result = run(scenario(tmp_path, CALM, fault=[crash, slow]), SEED)
    assert result.verdict == "holds", result.violations
    assert usual["downtime_ms"] == 400.0
    assert result.recovery_rows()[0]["downtime_ms"] == 100.0 + 3 * 300.0 + 100.0


def test_too_many_failed_checkpoints_fail_the_job(tmp_path: Path) -> None:
    """A job would run on for ever without a checkpoint, although it knew how many it may fail."""
    job = with_changes(CALM, {"checkpoint": {"tolerable_failures": 1}})
    result = run(scenario(tmp_path, job, fault=[{"kind": "failing_store", "at_s": 1.7, "for_s": 1.4}]), SEED)
    assert result.verdict == "holds", result.violations
    row = result.recovery_rows()[0]
    assert row["cause"] == "too many failures"
    assert row["failed_at_ms"] == row["detected_ms"]
    assert row["checkpoint_id"] == 2
    assert statuses(result)[-1] == "COMPLETED"


def test_a_cancelled_checkpoint_is_no_failure(tmp_path: Path) -> None:
    """A job would be failed because somebody cancels its checkpoints, which Flink does not count."""
    job = with_changes(CALM, {"checkpoint": {"tolerable_failures": 0, "async_s": 0.3}})
    result = run(scenario(tmp_path, job, fault=[{"kind": "cancel_checkpoint", "every_s": 0.7}]), SEED)
    assert result.verdict == "holds", result.violations
    assert statuses(result).count("FAILED: cancelled") >= 2
    assert result.recovery_rows() == []


# When.


def fault(**when: float) -> Fault:
    """A crash at such times."""
    return Fault("crash", "crash x", task="x", **when)


def test_when_a_fault_strikes() -> None:
    """A fault would strike at other times than the scenario says."""
    assert list(times_ns(fault(at_s=2.5), Random(1))) == [2_500_000_000]
    every = times_ns(fault(every_s=2.0), Random(1))
    assert [next(every) for _ in range(3)] == [2_000_000_000, 4_000_000_000, 6_000_000_000]
    first = times_ns(fault(every_s=2.0, first_s=0.5), Random(1))
    assert [next(first) for _ in range(3)] == [500_000_000, 2_500_000_000, 4_500_000_000]
    assert list(times_ns(fault(rate_per_s=0.0), Random(1))) == []
    often = times_ns(fault(rate_per_s=4.0), Random(1))
    count = sum(1 for _ in itertools.takewhile(lambda at_ns: at_ns < 1000_000_000_000, often))
    assert count == pytest.approx(4000, rel=0.05)  # 3 sigma


def test_nothing_strikes_once_the_time_is_up(tmp_path: Path) -> None:
    """A run would never come to an end that can be judged."""
    result = run(scenario(tmp_path, CALM, fault=[{"kind": "crash", "task": "all", "every_s": 1.9}]), SEED)
    assert result.verdict == "holds", result.violations
    assert [entry[0] for entry in moves(result, ">crash")][::6] == [1_900_000_000, 3_800_000_000, 5_700_000_000]
    assert result.recovery_rows()[-1]["restored_ms"] == 6100.0
    assert result.duration_ns >= 6_100_000_000


def test_what_is_slow_twice_is_slower() -> None:
    """Of two faults at a time one would not count, or the end of one end both."""
    slow = Slowness()
    assert slow.slowed(100) == 100
    end_first = slow.add(2.0, lambda: 5, FaultEffect())
    end_second = slow.add(3.0, lambda: 7, FaultEffect())
    assert slow.slowed(100) == 612
    end_first()
    assert slow.slowed(100) == 307
    end_second()
    assert slow.slowed(100) == 100


def test_equal_faults_have_streams_of_their_own(tmp_path: Path) -> None:
    """Two crashes a second of one kind would always be one crash at one time."""
    often = {"kind": "crash", "task": "map", "rate_per_s": 1.0}
    faults = scenario(tmp_path, CALM, fault=[often, often, {**often, "task": "sink"}]).faults
    assert [each.name for each in faults] == ["crash map", "crash map #2", "crash sink"]
    randoms = Randoms(1)
    times = [next(times_ns(each, randoms.stream(each.name, "times"))) for each in faults]
    assert len(set(times)) == 3


def test_a_fault_changes_no_event(tmp_path: Path) -> None:
    """Two configurations could not be compared under the same arrivals."""
    usual = dict.fromkeys(event for _, event in emitted(run(scenario(tmp_path, CALM), SEED)))
    crash = {"kind": "crash", "task": "all", "rate_per_s": 1.0}
    result = run(scenario(tmp_path, CALM, fault=[crash]), SEED)
    assert len(moves(result, ">restore")) >= 2
    repr_of = {event: repr(event) for event in usual}
    made = [event for _, event in emitted(result)]
    assert len(made) > len(set(made))
    assert all(repr_of.get(event, repr(event)) == repr(event) for event in made)
    assert len(usual.keys() & set(made)) > 300


# Errors of a user are in test_scenario_errors.py; a parameter may set a fault.


def test_a_setting_reaches_a_fault(tmp_path: Path) -> None:
    """A sweep could not vary how often a job fails."""
    path = tmp_path / "small.toml"
    data = with_changes(CALM, {"fault": [{"kind": "crash", "task": "map", "rate_per_s": 0.0}]})
    path.write_text(toml(data), encoding="utf-8")
    assert load(path, {"fault.0.rate_per_s": 2.0}).faults[0].rate_per_s == 2.0
    assert load(path).faults[0].for_s == constant(0.0)


# Determinism.

DIGEST = """
import sys
from barrierlab.sim import load, run
print(run(load(sys.argv[1]), 3).digest)
"""


def test_the_same_seed_gives_the_same_journal_in_another_process(tmp_path: Path) -> None:
    """A failure that was found could not be looked at again."""
    job = with_changes(FAILING, MODES["timeout"])
    faults = [
        {"kind": "crash", "task": "work", "rate_per_s": 0.5},
        {"kind": "coordinator_crash", "rate_per_s": 0.3},
        {"kind": "failing_store", "rate_per_s": 0.4, "for_s": {"dist": "exponential", "mean": 0.5}, "in_doubt": True},
        {"kind": "slow_link", "channel": "work->map", "every_s": 1.0, "for_s": 0.3, "added_s": 0.02},
    ]
    small = scenario(tmp_path, job, fault=faults)
    here = run(small, 3)
    assert here.verdict == "holds", here.violations
    assert len(here.recovery_rows()) >= 2
    printed = {
        subprocess.run(
            [sys.executable, "-c", DIGEST, str(tmp_path / "small.toml")],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for hash_seed in ("1", "77")
    }
    assert printed == {here.digest}
