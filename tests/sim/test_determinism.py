"""The same scenario and seed give the same journal; two configurations see the same arrivals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barrierlab.sim import load, run
from tests.sim.support import SKEWED, emitted, scenario

ROOT = Path(__file__).parents[2]
PRINT_TRACES = """
import hashlib, sys
from barrierlab.sim import load, run
for name, settings in (("small.toml", {}), ("flink_union", {"until_s": 3.0})):
    path = sys.argv[1] if name.endswith(".toml") else name
    result = run(load(path, settings), seed=5)
    print(result.digest, hashlib.sha256(result.trace().encode()).hexdigest())
"""
# Every law and every exchange: whatever draws a number is drawn from here.
BUSY: dict[str, Any] = {
    "topology": "a->work b->work work->window window->sink",
    "until_s": 4.0,
    "source": {
        "a": {
            "parallelism": 2,
            "rate_per_s": 80.0,
            "arrivals": "bursty",
            "on_s": 0.2,
            "off_s": 0.3,
            "key_skew": 1.0,
            "record_bytes": {"dist": "lognormal", "mean": 200, "cv": 1.0},
            "watermark_interval_s": 0.1,
            "out_of_order_s": {"dist": "exponential", "mean": 0.01},
        },
        "b": {"rate_per_s": 50.0, "arrivals": "poisson", "watermark_interval_s": 0.1, "trigger": "coordinator"},
    },
    "operator": {
        "work": {"kind": "union", "parallelism": 2, "service_s": {"dist": "gamma", "mean": 0.004, "cv": 0.5}},
        "window": {"kind": "window", "window_ms": 100, "service_s": {"dist": "uniform", "low": 0.001, "high": 0.002}},
        "sink": {"kind": "sink"},
    },
    "channel": {
        "a->work": {"exchange": "hash", "latency_s": {"dist": "exponential", "mean": 0.004}},
        "b->work": {"exchange": "rebalance", "capacity": 4},
        "work->window": {"form": "network", "latency_s": {"dist": "empirical", "values": [0.001, 0.002]}},
    },
    "checkpoint": {
        "interval_s": 0.5,
        "trigger_latency_s": {"dist": "exponential", "mean": 0.002},
        "ack_latency_s": {"dist": "exponential", "mean": 0.002},
        "sync_s": 0.001,
        "async_s": {"dist": "exponential", "mean": 0.01},
    },
}


def test_the_same_seed_gives_the_same_journal(tmp_path: Path) -> None:
    """A run could not be repeated, so a violation that was found could not be looked at."""
    small = scenario(tmp_path, BUSY)
    first, second, other = run(small, 5), run(small, 5), run(small, 6)
    assert first.verdict == "holds", first.violations
    assert first.trace() == second.trace()
    assert first.digest == second.digest
    assert first.trace() != other.trace()


def test_a_run_leaves_nothing_behind_for_the_next(tmp_path: Path) -> None:
    """A run before in the process, as in a sweep, would show in a run."""
    small = scenario(tmp_path, BUSY)
    alone = run(small, 5).digest
    run(load("diamond"), 1)
    run(small, 6)
    assert run(small, 5).digest == alone


def test_other_processes_and_hash_seeds_give_the_same_journal(tmp_path: Path) -> None:
    """A result would hang on the order of a set or on the machine's mood: two people would see two things."""
    small = scenario(tmp_path, BUSY)
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINT_TRACES, str(tmp_path / "small.toml")],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "4242")
    }
    assert len(printed) == 1
    assert run(small, 5).digest == printed.pop().split()[0]


def _arrivals(result: Any, source: str) -> list[Any]:
    """Time, key, size and timestamp of each event until the scenario's end; a checkpoint may let a run go on."""
    return [(at, e.key, e.size_bytes, e.timestamp_ms) for at, e in emitted(result, source) if at < 6_000_000_000]


@pytest.mark.parametrize(
    "changes",
    [
        {"channel": {"default": {"capacity": 300}, "b->join": {"latency_s": 0.0}}},
        {"operator": {"join": {"service_s": {"dist": "gamma", "mean": 0.002, "cv": 2.0}}}},
        {"checkpoint": {"interval_s": 0.7, "async_s": {"dist": "exponential", "mean": 0.1}}},
        {"fault": [{"kind": "stall", "task": "sink", "at_s": 1.0, "for_s": 0.2}]},
    ],
    ids=["buffers", "service", "checkpoints", "stall"],
)
def test_two_configurations_see_the_same_arrivals(changes: dict[str, Any], tmp_path: Path) -> None:
    """A difference between two configurations could be the luck of their arrivals."""
    roomy = {"until_s": 4.0, "channel": {"default": {"capacity": 200}}}
    one = run(scenario(tmp_path, **roomy), 7)
    other = run(scenario(tmp_path, **{**roomy, **changes}), 7)
    assert one.digest != other.digest
    for source in ("a", "b"):
        arrivals = _arrivals(one, source)
        assert len(arrivals) > 100
        assert arrivals == _arrivals(other, source)


def test_a_blocked_source_makes_the_same_events_later(tmp_path: Path) -> None:
    """Backpressure would change what the events are, and not only when they come."""
    free = run(scenario(tmp_path), 7)
    blocked = run(scenario(tmp_path, operator={"join": {"service_s": 0.02}}, channel={"default": {"capacity": 1}}), 7)
    assert blocked.run_row()["backpressure_max"] > 0.2
    events = [(e.key, e.size_bytes) for _, e in emitted(blocked, "a")]
    assert events == [(e.key, e.size_bytes) for _, e in emitted(free, "a")][: len(events)]


def test_a_new_node_changes_no_other_nodes_numbers(tmp_path: Path) -> None:
    """Adding a branch would change what the rest of the job draws, so the branch's effect could not be measured."""
    checkpoint = {
        "interval_s": 0.5,
        "trigger_latency_s": {"dist": "exponential", "mean": 0.01},
        "ack_latency_s": {"dist": "exponential", "mean": 0.01},
        "async_s": {"dist": "exponential", "mean": 0.02},
    }
    one = run(scenario(tmp_path, checkpoint=checkpoint), 7)
    wider = run(
        scenario(
            tmp_path,
            checkpoint=checkpoint,
            topology=SKEWED["topology"] + " c->other other->drain",
            source={"c": {"rate_per_s": 10.0, "arrivals": "poisson"}},
            operator={
                "other": {"kind": "map", "service_s": {"dist": "exponential", "mean": 0.01}},
                "drain": {"kind": "sink"},
            },
        ),
        7,
    )

    def of_old_nodes(result: Any) -> list[Any]:
        """Without what follows a completion: that is the whole job's."""
        old = [e for e in result.entries if e[2] in ("a", "b", "join", "sink")]
        return [e for e in old if e[1] not in (">notify", "commit")]

    assert len(wider.entries) > len(one.entries)
    upto = 5_900_000_000  # a checkpoint that ends the run later may let the old nodes go on
    assert [e for e in of_old_nodes(one) if e[0] < upto] == [e for e in of_old_nodes(wider) if e[0] < upto]
