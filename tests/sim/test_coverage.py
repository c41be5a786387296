"""A verdict that judged nothing says so; so does one on a job that does not get on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barrierlab.model.spec.invariants import PREMISES
from barrierlab.sim import run
from barrierlab.sim.checkpoint.coverage import GOES_ON, NONE_COMPLETED, RESTART_LOOP, STANDS_STILL
from barrierlab.sim.scenario.readers import FAULTS
from tests.sim.support import barrierlab, scenario, statuses, toml, with_changes

CHAIN: dict[str, Any] = {
    "topology": "src->map map->sink",
    "until_s": 6.0,
    "source": {"src": {"rate_per_s": 100.0, "watermark_interval_s": 0.5}},
    "operator": {"map": {}, "sink": {"kind": "sink"}},
    "checkpoint": {"interval_s": 1.0, "async_s": 0.1, "trigger_latency_s": 0.01},
    "recovery": {"detection_s": 0.2, "restart_s": 0.5},
}
CRASH = {"kind": "crash", "task": "map", "at_s": 2.5}
# After the crash the job catches up with full queues: barriers take longer than the timeout, and the job fails again.
LOOP: dict[str, Any] = {
    "topology": "log->work work->out",
    "until_s": 100.0,
    "source": {"log": {"rate_per_s": 200.0, "record_bytes": 1000}},
    "operator": {"work": {"service_s": 0.004}, "out": {"kind": "sink"}},
    "channel": {"default": {"form": "network"}},
    "checkpoint": {"interval_s": 5.0, "timeout_s": 2.0, "tolerable_failures": 0},
    "recovery": {"detection_s": 1.0, "restart_s": 10.0},
    "fault": [{"kind": "crash", "task": "work", "at_s": 22.0}],
}


def command(capsys: pytest.CaptureFixture[str], folder: Path, data: dict[str, Any], *options: str) -> tuple[int, str]:
    """Exit status and stdout of `run` on `data`."""
    path = folder / "job.toml"
    path.write_text(toml(data), encoding="utf-8")
    status, out, err = barrierlab(capsys, "run", str(path), *options)
    assert not err
    return status, out


def test_a_run_without_a_checkpoint_judged_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """An interval longer than the run would pass as a proof of consistency."""
    never = with_changes(CHAIN, {"checkpoint": {"interval_s": 200.0}})
    status, out = command(capsys, tmp_path, never)
    assert status == 0
    last = out.splitlines()[-1]
    assert last.startswith(
        "verdict: holds, but no checkpoint completed: nothing was judged (0 violations; vacuous: CUT, "
    )
    assert command(capsys, tmp_path, never, "--strict")[0] == 3
    found = json.loads(command(capsys, tmp_path, never, "--json")[1])
    assert found["vacuous"] == ["CUT", "ONCE", "FWD", "ID", "LIVE", "REC"]
    assert found["vacuous_asked_for"] == ["CUT", "ONCE", "FWD", "ID", "LIVE"]
    assert found["progress"] == NONE_COMPLETED
    assert list(found["premises"])[: len(PREMISES)] == list(PREMISES)


def test_checkpoints_that_all_fail_judged_nothing(tmp_path: Path) -> None:
    """Six checkpoints that expired would look like six that were judged."""
    slow = scenario(tmp_path, CHAIN, checkpoint={"timeout_s": 0.05})
    result = run(slow)
    assert set(statuses(result)) == {"FAILED: expired"}
    assert result.coverage.progress == NONE_COMPLETED
    assert result.coverage.headline == f"no checkpoint completed (of {len(statuses(result))}): nothing was judged"
    assert {"CUT", "ONCE"} <= set(result.coverage.asked_for)


def test_a_usual_run_is_not_short_of_anything(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`--strict` would fail what nobody has asked for: a restore without a crash, or watermarks without a source."""
    status, out = command(capsys, tmp_path, CHAIN, "--strict")
    assert (status, out.splitlines()[-1]) == (0, "verdict: holds (0 violations; vacuous: REC)")
    without = with_changes(CHAIN, {"source": {"src": {"watermark_interval_s": None}}})
    status, out = command(capsys, tmp_path, without, "--strict")
    assert (status, out.splitlines()[-1]) == (0, "verdict: holds (0 violations; vacuous: WM, REC)")
    crashed = with_changes(CHAIN, {"fault": [CRASH]})
    status, out = command(capsys, tmp_path, crashed, "--strict")
    assert (status, out.splitlines()[-1]) == (0, "verdict: holds (0 violations)")


def test_watermarks_that_never_come_are_named(tmp_path: Path) -> None:
    """A scenario with watermarks would hold, and none have taken effect."""
    late = scenario(tmp_path, CHAIN, source={"src": {"watermark_interval_s": 60.0}})
    coverage = run(late).coverage
    assert coverage.asked_for == ("WM",)
    assert coverage.notes == ("WM was asked for, and had nothing to judge (watermarks that took effect at a task: 0)",)
    assert coverage.falls_short


IDLE: dict[str, tuple[dict[str, Any], str]] = {
    "after the end": (
        {**CRASH, "at_s": 30.0},
        "fault crash map: never struck: it is due at 30 s, and the run ended at 6 s",
    ),
    "at random, and never": (
        {"kind": "crash", "task": "map", "rate_per_s": 1e-6},
        "fault crash map: never struck: at random, 1e-06 a second, in 6 s",
    ),
    "no checkpoint pending": (
        {"kind": "cancel_checkpoint", "at_s": 1.5},
        "fault cancel_checkpoint: struck once, at 1.500 s, and met nothing: no checkpoint was pending",
    ),
    "nothing is written": (
        {"kind": "failing_store", "at_s": 1.3, "for_s": 0.2},
        "fault failing_store: struck once, at 1.300 s, and met nothing: nothing was written",
    ),
    "no acknowledgement": (
        {"kind": "lost_ack", "task": "map", "at_s": 1.3, "for_s": 0.2},
        "fault lost_ack map: struck once, at 1.300 s, and met nothing: no acknowledgement was on its way",
    ),
    "room in the store": (
        {"kind": "full_store", "at_s": 0.5, "for_s": 5.0, "capacity_bytes": 10**9},
        "fault full_store: struck once, at 0.500 s, and met nothing: what was written had room",
    ),
    "no restart": (
        {"kind": "slow_recovery", "every_s": 2.0, "for_s": 0.5, "factor": 3.0},
        (
            "fault slow_recovery: struck 2 times, last at 4.000 s, and met nothing: "
            "the job was not restarted meanwhile, or that takes no time"
        ),
    ),
}


@pytest.mark.parametrize("which", IDLE)
def test_a_fault_that_does_nothing_is_named(which: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A run would pass as one that survived a fault that never was."""
    fault, line = IDLE[which]
    with_fault = with_changes(CHAIN, {"fault": [fault]})
    status, out = command(capsys, tmp_path, with_fault)
    assert status == 0
    assert f"note: {line}" in " ".join(out.split())
    assert "1 fault without effect)" in out
    assert command(capsys, tmp_path, with_fault, "--strict")[0] == 3


FELT: dict[str, dict[str, Any]] = {
    "crash": CRASH,
    "coordinator_crash": {"kind": "coordinator_crash", "at_s": 2.5},
    "stall": {"kind": "stall", "task": "map", "at_s": 2.5, "for_s": 0.2},
    "slow_link": {"kind": "slow_link", "channel": "src->map", "at_s": 2.5, "for_s": 0.3, "added_s": 0.1},
    "slow_store": {"kind": "slow_store", "at_s": 0.9, "for_s": 0.5, "factor": 3.0},
    "failing_store": {"kind": "failing_store", "at_s": 0.9, "for_s": 0.5},
    "full_store": {"kind": "full_store", "at_s": 0.9, "for_s": 0.5, "capacity_bytes": 1},
    "late_ack": {"kind": "late_ack", "task": "map", "at_s": 0.9, "for_s": 0.5, "added_s": 0.1},
    "lost_ack": {"kind": "lost_ack", "task": "map", "at_s": 0.9, "for_s": 0.5},
    "cancel_checkpoint": {"kind": "cancel_checkpoint", "at_s": 1.05},
}


@pytest.mark.parametrize("kind", FELT)
def test_a_fault_that_is_felt_is_not_named(kind: str, tmp_path: Path) -> None:
    """A fault would be called idle though it did what it should."""
    coverage = run(scenario(tmp_path, CHAIN, fault=[FELT[kind]], checkpoint={"timeout_s": 2.0})).coverage
    assert coverage.idle_faults == ()


def test_every_kind_of_fault_is_felt_here() -> None:
    """A new kind would be named as one that met nothing, and no test would try it."""
    assert FAULTS.keys() == FELT.keys() | {"slow_recovery"}, "FELT has an example of each kind, which meets something"


def test_a_slow_recovery_is_felt_where_there_is_one(tmp_path: Path) -> None:
    """A fault of the restart would be called idle though the restart took longer."""
    slow = {"kind": "slow_recovery", "at_s": 2.0, "for_s": 2.0, "factor": 3.0}
    assert run(scenario(tmp_path, CHAIN, fault=[CRASH, slow])).coverage.idle_faults == ()


def test_a_crash_of_a_task_that_has_ended_is_named(tmp_path: Path) -> None:
    """A job that was done before it was to crash would pass as one that survived a crash."""
    ended = {"source": {"src": {"events": 50}}, "checkpoint": {"interval_s": 1.0}}
    late = {**CRASH, "at_s": 5.0}
    coverage = run(scenario(tmp_path, with_changes(CHAIN, ended), fault=[late])).coverage
    assert coverage.idle_faults[0].startswith("fault crash map: never struck: it is due at 5 s, and the run ended at ")
    two = {"topology": "src->map map->sink b->map", "source": {"b": {"rate_per_s": 10.0}}}
    gone = {"kind": "crash", "task": "src", "at_s": 3.0}
    coverage = run(scenario(tmp_path, with_changes(with_changes(CHAIN, ended), two), fault=[gone])).coverage
    assert coverage.idle_faults == (
        "fault crash src: struck once, at 3.000 s, and met nothing: the task was down, or had ended",
    )


def test_strikes_that_miss_are_counted(tmp_path: Path) -> None:
    """Three crashes would be reported, and the job have failed twice."""
    often = [CRASH, {**CRASH, "at_s": 2.6}, {"kind": "crash", "task": "map", "every_s": 1.3}]
    coverage = run(scenario(tmp_path, CHAIN, fault=often)).coverage
    assert "fault crash map #2: struck once, at 2.600 s, and met nothing: the task was down, or had ended" in (
        coverage.idle_faults
    )
    assert coverage.notes[-1] == ("fault crash map #3: 1 of 4 strikes met nothing: the task was down, or had ended")


def test_a_warm_up_beyond_the_end_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing would be measured, and nobody told."""
    status, out = command(capsys, tmp_path, with_changes(CHAIN, {"warmup_s": 1e11}))
    assert status == 0
    assert "note: nothing is measured: the warm-up lasts 1e+11 s, and the run 6 s" in out
    assert command(capsys, tmp_path, with_changes(CHAIN, {"warmup_s": 1e11}), "--strict")[0] == 3


# Progress.


def test_a_restart_loop_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A job that fails again and again for ever would hold, with a fifteenth of what comes in."""
    result = run(scenario(tmp_path, LOOP))
    assert result.verdict == "holds"
    assert result.coverage.progress == RESTART_LOOP
    restarts = len(result.recovery_rows())
    assert restarts >= 4
    assert result.coverage.restarts_in_a_row == restarts
    assert result.coverage.headline == (
        f"the job is in a restart loop: {restarts} restarts from checkpoint 4, no checkpoint since"
    )
    row = result.run_row()
    assert row["arrivals_per_s"] == pytest.approx(200, rel=0.01)
    assert row["emitted_per_s"] < 60
    assert row["behind"] > 10_000
    assert row["completed_share"] == 4 / len(result.checkpoint_rows())
    assert row["catch_up_max_ms"] is None
    assert command(capsys, tmp_path, LOOP)[0] == 0
    assert command(capsys, tmp_path, LOOP, "--strict")[0] == 3


def test_a_job_that_gets_out_goes_on(tmp_path: Path) -> None:
    """Each job that ever failed would be called one in a loop."""
    row = run(scenario(tmp_path, LOOP, checkpoint={"timeout_s": 30.0})).run_row()
    assert (row["progress"], row["restarts_in_a_row"], row["falls_short"]) == (GOES_ON, 1, False)
    assert row["behind"] < row["arrivals"] / 2


def test_two_restarts_from_one_checkpoint_are_no_loop(tmp_path: Path) -> None:
    """Bad luck would be called a loop; three in a row, which ended, are reported all the same."""
    often = [{**CRASH, "at_s": at_s} for at_s in (2.2, 2.95, 3.7)]
    job = with_changes(CHAIN, {"recovery": {"detection_s": 0.0, "restart_s": 0.1}, "checkpoint": {"interval_s": 2.0}})
    two = run(scenario(tmp_path, job, fault=often[:2]))
    assert (two.coverage.progress, two.coverage.restarts_in_a_row) == (GOES_ON, 2)
    three = run(scenario(tmp_path, job, fault=often))
    assert (three.coverage.progress, three.coverage.restarts_in_a_row) == (GOES_ON, 3)
    assert three.coverage.notes == (
        "the job was restarted 3 times in a row from one checkpoint, with none completed between",
    )


def test_a_job_that_stands_still_is_named(tmp_path: Path) -> None:
    """A sink that takes nothing while everything waits for it would pass as a slow one."""
    stalled = {"kind": "stall", "task": "sink", "at_s": 2.0, "for_s": 100.0}
    job = with_changes(CHAIN, {"channel": {"default": {"capacity": 4}}, "checkpoint": {"timeout_s": 0.5}})
    coverage = run(scenario(tmp_path, job, fault=[stalled])).coverage
    assert coverage.progress == STANDS_STILL
    assert coverage.headline.startswith("the job stands still: no sink has taken a record since 1.99")
    assert coverage.falls_short


TIGHT = with_changes(
    CHAIN, {"channel": {"default": {"capacity": 4}}, "until_s": 12.0, "checkpoint": {"timeout_s": 0.5}}
)


def stalled(*spans: tuple[float, float], task: str = "sink") -> list[dict[str, Any]]:
    """A fault each: the task takes nothing from one time on, for so long."""
    return [{"kind": "stall", "task": task, "at_s": at_s, "for_s": for_s} for at_s, for_s in spans]


def test_the_longest_standstill_that_ends_within_the_run_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A job that gave nothing out for a third of its run would be reported as one that went on."""
    job = {**TIGHT, "fault": stalled((1.5, 2.5), (6.0, 4.0))}
    result = run(scenario(tmp_path, job))
    assert (result.coverage.progress, result.coverage.falls_short) == (GOES_ON, False)
    note = "the job stood still for 4.010 s at the longest, from 5.990 to 10.000 s: "
    note += "no sink took a record, though events were overdue"
    assert result.coverage.notes == (note,)
    assert result.run_row()["standstill_max_ms"] == 4010.0
    status, out = command(capsys, tmp_path, job, "--strict")
    assert status == 0
    assert f"note: {note} digest: {result.digest} verdict: holds (0 violations" in " ".join(out.split())
    assert json.loads(command(capsys, tmp_path, job, "--json")[1])["longest_standstill_ms"] == 4010.0


def test_a_standstill_lasts_until_the_next_record_the_next_failure_or_the_end(tmp_path: Path) -> None:
    """The time in which a job is down would count, or a standstill would not be over."""
    crashed = {**TIGHT, "fault": [*stalled((4.0, 7.0)), {**CRASH, "at_s": 8.0}]}
    assert 3900.0 < run(scenario(tmp_path, crashed)).run_row()["standstill_max_ms"] < 4100.0
    to_the_end = run(scenario(tmp_path, {**TIGHT, "fault": stalled((1.5, 3.0), (7.0, 100.0))}))
    assert to_the_end.coverage.progress == STANDS_STILL
    assert to_the_end.coverage.notes == ()  # the headline tells of it
    assert to_the_end.run_row()["standstill_max_ms"] > 4900.0
    longer_before = run(scenario(tmp_path, {**TIGHT, "fault": stalled((1.5, 6.0), (8.5, 100.0))}))
    assert longer_before.coverage.progress == STANDS_STILL
    assert [note[:31] for note in longer_before.coverage.notes] == ["the job stood still for 6.010 s"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"operator": {"map": {"service_s": 3.0}}},
        {"operator": {"sink": {"service_s": 3.0}}},
        {"fault": stalled((2.0, 1.5))},
        {"source": {"src": {"rate_per_s": 0.2}}},
        {"recovery": {"restart_s": 6.0}, "fault": [CRASH]},
    ],
    ids=str,
)
def test_a_job_that_is_slow_idle_or_down_never_stood_still(changes: dict[str, Any], tmp_path: Path) -> None:
    """Every slow job would be reported as one that had stopped."""
    result = run(scenario(tmp_path, with_changes(TIGHT, changes)))
    assert result.run_row()["standstill_max_ms"] == 0.0
    assert not [note for note in result.coverage.notes if "stood still" in note]


@pytest.mark.parametrize("late_s", [0.0, 4.5])
def test_a_job_that_is_slow_or_was_down_does_not_stand_still(late_s: float, tmp_path: Path) -> None:
    """An overloaded job, or one that was restarted a moment ago, would be called dead."""
    slow = {"operator": {"map": {"service_s": 0.05}}}
    fault = [{**CRASH, "at_s": late_s}] if late_s else []
    down = {"recovery": {"restart_s": 30.0}, "fault": fault}
    assert run(scenario(tmp_path, with_changes(CHAIN, slow), **down)).coverage.progress == GOES_ON


# A coordinator that is gone.


def test_what_a_coordinator_left_pending_has_failed(tmp_path: Path) -> None:
    """A checkpoint would be in progress for ever, and nobody there to complete it."""
    crash = {"kind": "coordinator_crash", "at_s": 2.05}
    assert statuses(run(scenario(tmp_path, CHAIN, fault=[crash])))[:3] == [
        "COMPLETED",
        "FAILED: coordinator crashed",
        "COMPLETED",
    ]


def test_a_manifest_that_landed_makes_it_complete(tmp_path: Path) -> None:
    """The job would go on from a checkpoint that is shown as failed."""
    job = with_changes(CHAIN, {"store": {"manifest_s": 0.5}, "fault": [{"kind": "coordinator_crash", "at_s": 2.4}]})
    seen = set()
    for seed in range(1, 9):
        result = run(scenario(tmp_path, job), seed)
        (row,) = result.recovery_rows()
        seen.add((row["checkpoint_id"], statuses(result)[1]))
    assert seen == {(1, "FAILED: coordinator crashed"), (2, "COMPLETED")}


# What is no job of checkpoints.


def test_control_without_a_signal_judged_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A scenario that sends no signal would pass as a proof of the protocol of signals."""
    silent: dict[str, Any] = {
        "topology": "a->s",
        "until_s": 2.0,
        "control": {},
        "source": {"a": {"rate_per_s": 10.0}},
        "operator": {"s": {"kind": "sink"}},
    }
    status, out = command(capsys, tmp_path, silent)
    said = "verdict: holds, but no signal was sent: nothing was judged but the events (0 violations)"
    assert (status, out.splitlines()[-1]) == (0, said)
    assert command(capsys, tmp_path, silent, "--strict")[0] == 3
    assert json.loads(command(capsys, tmp_path, silent, "--json")[1])["progress"] == "no signal"
