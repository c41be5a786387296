"""Settings that change nothing are named, and those alone: the same runs, with and without them, say which they are."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from barrierlab.sim import load, run
from tests.sim.support import barrierlab

JOB = {"until_s": 2.5, "warmup_s": 0.0, "checkpoint.interval_s": 0.5, "load": "0.9"}
NETWORK = {**JOB, "channel.default.form": "network", "channel.default.latency_s": 0.001}
FULL = {**NETWORK, "load": "1.1", "skew": 8, "channel.default.segment_bytes": 500}
LOCAL = {**NETWORK, "channel.default.local": True}
UNALIGNED = {
    **JOB,
    "protocol": "unaligned",
    "checkpoint.trigger_latency_s": {"dist": "uniform", "low": 0.0, "high": 0.1},
}
UNALIGNED_NETWORK = {**UNALIGNED, "channel.default.form": "network"}
JOIN = {"until_s": 2.5, "warmup_s": 0.0, "cooldown_s": 0.0}
TICKS = {**JOIN, "join.drive": "clock", "join.tick_s": 0.05, "jitter": "none", "lateness_s": 0.0}
LATEST, SEQUENCE = {**JOIN, "barrier": "latest"}, {**JOIN, "barrier": "sequence"}
BY_NUMBER = {**LATEST, "join.by_timestamp": False}
NO_LATENESS, LATE = {**JOIN, "lateness_s": 0.0}, {**JOIN, "lateness_s": 0.1}
BUSY = {**JOIN, "join.service_s": 0.1}
RESTARTED = {**JOIN, "input.lidar.restart_at_s": [1.0]}


IDLE: list[tuple[str, dict[str, Any], str, Any, dict[str, Any]]] = [
    ("skewed_join", JOB, "source.a.on_s", 0.1, {**JOB, "source.a.arrivals": "bursty"}),
    ("skewed_join", JOB, "source.a.off_s", 0.1, {**JOB, "source.a.arrivals": "bursty"}),
    ("skewed_join", JOB, "source.a.service_noise", 1.0, {**JOB, "source.a.service_s": 0.001}),
    ("skewed_join", JOB, "source.a.subtask_spread", 1.0, {**JOB, "source.a.service_s": 0.001}),
    ("skewed_join", JOB, "operator.sink.service_noise", 1.0, {**JOB, "operator.sink.service_s": 0.001}),
    ("skewed_join", JOB, "operator.sink.subtask_spread", 1.0, {**JOB, "operator.sink.service_s": 0.001}),
    ("skewed_join", JOB, "channel.default.segment_bytes", 500, NETWORK),
    ("skewed_join", JOB, "channel.default.exclusive_buffers", 1, FULL),
    ("skewed_join", JOB, "channel.default.floating_buffers", 0, FULL),
    ("skewed_join", JOB, "channel.default.most_buffers", 2, FULL),
    ("skewed_join", JOB, "channel.default.flush_timeout_s", 0.5, NETWORK),
    ("skewed_join", JOB, "channel.default.flush_late_s", 0.5, NETWORK),
    ("skewed_join", JOB, "channel.default.bytes_per_s", 1e5, NETWORK),
    ("skewed_join", JOB, "channel.default.barrier_latency_s", 0.1, NETWORK),
    ("skewed_join", JOB, "channel.default.unaligned_barrier_latency_s", 0.1, UNALIGNED_NETWORK),
    ("skewed_join", JOB, "channel.default.local", True, NETWORK),
    ("skewed_join", NETWORK, "channel.default.capacity", 3, JOB),
    ("skewed_join", LOCAL, "channel.default.bytes_per_s", 1e5, NETWORK),
    ("skewed_join", LOCAL, "channel.default.barrier_latency_s", 0.1, NETWORK),
    ("skewed_join", JOB, "checkpoint.aligned_checkpoint_timeout_s", 0.001, UNALIGNED),
    ("skewed_join", JOB, "checkpoint.max_inflight_bytes", 1, UNALIGNED),
    ("skewed_join", {**JOB, "checkpoint.hold": "channel"}, "checkpoint.max_buffer_per_input", 1, JOB),
    ("skewed_join", JOB, "buffer_debloat.period_s", 0.5, {**NETWORK, "buffer_debloat.enabled": True}),
    (
        "skewed_join",
        JOB,
        "watermark_alignment.update_interval_s",
        0.5,
        {**JOB, "watermark_alignment.max_drift_s": 0.01},
    ),
    ("camera_imu_lidar", LATE, "join.budget_s", 0.1, TICKS),
    ("camera_imu_lidar", SEQUENCE, "join.pending", "hold", LATE),
    ("camera_imu_lidar", LATEST, "join.most_pending", 1, BUSY),
    ("camera_imu_lidar", {**BUSY, "join.pending": "replace"}, "join.most_pending", 1, BUSY),
    ("camera_imu_lidar", {**LATEST, "input.imu.slots": 2}, "join.on_failure", "absent", {**BUSY, "input.imu.slots": 2}),
    ("camera_imu_lidar", LATEST, "join.lateness_s", 0.1, NO_LATENESS),
    ("camera_imu_lidar", NO_LATENESS, "join.lateness_scope", "windows", {**LATE, "join.drive": "imu"}),
    ("camera_imu_lidar", BY_NUMBER, "input.imu.window_s", 0.3, LATE),
    ("lockstep_cameras", {"until_s": 2.0}, "join.epoch_at_s", [2.0], {"until_s": 2.5}),
    ("lockstep_cameras", {"until_s": 2.0}, "input.left.stop_at_s", 2.0, {"until_s": 2.5}),
    ("lockstep_cameras", {"until_s": 2.0}, "input.left.restart_at_s", [2.0], {"until_s": 2.5}),
    ("camera_imu_lidar", JOIN, "input.lidar.restart_s", 1.0, RESTARTED),
]


@cache
def run_with(name: str, settings: str) -> tuple[str, frozenset[str]]:
    """Return the digest of a run with settings in JSON, which more than one row may have, and the keys it names."""
    result = run(load(name, json.loads(settings)), seed=1)
    lines = [line.split(": without effect: ") for line in result.warnings]
    return result.digest, frozenset(each.split(" ")[0] for keys, *why in lines if why for each in keys.split(", "))


@pytest.mark.parametrize(
    ("name", "settings", "key", "value", "acting"), IDLE, ids=[f"{row[2]} {n}" for n, row in enumerate(IDLE)]
)
def test_what_changes_nothing_is_named(
    name: str, settings: dict[str, Any], key: str, value: Any, acting: dict[str, Any]
) -> None:
    """A person would turn a key, see no difference, and think that it makes none in the world."""

    def ran(these: dict[str, Any]) -> tuple[str, bool]:
        """The digest of the run, and whether the key is named."""
        digest, idle = run_with(name, json.dumps(these))
        return digest, key in idle

    without, _ = ran(settings)
    assert ran({**settings, key: value}) == (without, True)
    without, _ = ran(acting)
    with_it, is_idle = ran({**acting, key: value})
    assert with_it != without
    assert not is_idle


@pytest.mark.parametrize(
    ("name", "options", "line"),
    [
        (
            "camera_imu_lidar",
            ["until_s=4", "join.most_pending=2", "join.pending=hold"],
            'join.most_pending: without effect: of output times one waits, unless pending = "queue"',
        ),
        (
            "sync_under_skew",
            ["source.a.on_s=2", "source.b.off_s=2"],
            'source.a.on_s, source.b.off_s: without effect: only arrivals = "bursty" are on and off',
        ),
        (
            "diamond",
            ["until_s=4", "checkpoint.aligned_checkpoint_timeout_s=1", "checkpoint.max_inflight_bytes=1"],
            (
                "checkpoint.aligned_checkpoint_timeout_s, checkpoint.max_inflight_bytes: without effect: no barrier "
                "overtakes: the protocol is 'aligned'"
            ),
        ),
    ],
)
def test_a_run_says_which_settings_change_nothing(
    capsys: pytest.CaptureFixture[str], name: str, options: list[str], line: str
) -> None:
    """The kinds of scenarios would each have a way of their own to say so, or none."""
    arguments = ["run", name, *(part for option in options for part in ("--set", option))]
    _, out, _ = barrierlab(capsys, *arguments)
    assert f"warning: {line}" in " ".join(out.split())
    _, out, _ = barrierlab(capsys, *arguments, "--json")
    assert line in json.loads(out)["warnings"]
