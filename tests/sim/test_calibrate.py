"""Cost profiles: what the rows of measured checkpoints say, with intervals; and what they do not say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barrierlab.sim import load
from barrierlab.sim.sweep.measured import DATA
from barrierlab.sim.twin.answers import TwinError
from barrierlab.sim.twin.calibrate import (
    acknowledgements,
    calibrate,
    commands,
    hops,
    observed_from,
    overtaking_hops,
    snapshots,
    ways,
    writes,
)
from barrierlab.sim.twin.observed import ObservedCheckpoint, ObservedJob, Subtask, senders_of
from barrierlab.sim.twin.predict import simulated
from barrierlab.sim.twin.profile import read_profile
from tests.sim.support import barrierlab

JOBS = ("flink_chain", "flink_union", "flink_join")
CHAINED = Path(__file__).parent / "flink" / "2.x" / "chained_local_saturated_aligned.json"


@pytest.mark.parametrize(("place", "letter"), [("remote", "R"), ("local", "L")])
def test_the_shipped_profile_is_what_the_tables_say(
    place: str, letter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A figure in it would be somebody's wish, or of a version of the estimators that is no more."""
    status, out, err = barrierlab(capsys, "calibrate", *JOBS, "--set", f"topology={letter}", "--from", str(DATA))
    assert (status, err) == (0, "")
    assert out == (DATA / f"costs_{place}.toml").read_text(encoding="utf-8")


def test_a_run_that_two_jobs_find_counts_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The runs of the union, whose operators the join has too, would weigh twice."""
    of_union, of_both, of_twice = (tmp_path / f"{number}.toml" for number in range(3))
    tables = ("--from", str(DATA))
    assert barrierlab(capsys, "calibrate", "flink_union", *tables, "-o", str(of_union))[0] == 0
    out = barrierlab(capsys, "calibrate", "flink_union", "flink_join", *tables, "-o", str(of_both))[1]
    assert out.startswith(f"{of_both}: 7 costs from 59 checkpoints of 6 runs\n")
    barrierlab(capsys, "calibrate", "flink_union", *tables, *tables, "-o", str(of_twice))
    assert of_union.read_text() == of_both.read_text() == of_twice.read_text()


PLANTED: dict[str, Any] = {
    "level": "rho050",
    "until_s": 60.0,
    "checkpoint.command_s": {"dist": "gamma", "mean": 0.012, "cv": 0.5},
    "checkpoint.trigger_latency_s": {"dist": "uniform", "low": 0.0, "high": 0.008},
    "checkpoint.ack_latency_s": {"dist": "gamma", "mean": 0.020, "cv": 0.5},
    "checkpoint.sync_s": 0.003,
    "checkpoint.async_s": {"dist": "gamma", "mean": 0.030, "cv": 0.3},
    "channel.default.barrier_latency_s": {"dist": "gamma", "mean": 0.009, "cv": 0.5},
    "channel.default.unaligned_barrier_latency_s": {"dist": "gamma", "mean": 0.015, "cv": 0.5},
}
MEANS = {"command": 0.012, "acknowledgement": 0.020, "snapshot": 0.003, "write": 0.030}


def _simulated(mode: str) -> ObservedJob:
    """Return the measurements of a cluster with the planted costs, of a chain at half its capacity without queues."""
    settings = {**PLANTED, "mode": mode}
    senders = senders_of(load("flink_chain", settings).topology)
    idle = dict.fromkeys(senders, 0.0)
    checkpoints = tuple(simulated("flink_chain", settings, 1))
    return ObservedJob(
        "planted", mode, senders, dict.fromkeys(senders, 2), False, idle | {"slow": 0.5}, idle, {}, checkpoints
    )


def test_planted_costs_are_found_again() -> None:
    """An estimator would measure something else than what the simulation makes of the cost."""
    found = calibrate([_simulated("aligned")]).costs
    for name, mean in MEANS.items():
        assert found[name].mean_s == pytest.approx(mean, rel=0.15), name
        assert found[name].low_s <= mean * 1.02, name
        assert found[name].high_s >= mean * 0.98, name
    assert found["trigger"].mean_s == pytest.approx(0.008 / 6, rel=0.5)  # of two the later, less the earlier: halved
    # Of two channels that take their time, first and last barrier: what both have on average.
    assert found["hop"].mean_s == pytest.approx(0.009, rel=0.35)
    assert "overtaking_hop" not in found
    assert 0.5 < calibrate([_simulated("unaligned")]).costs["overtaking_hop"].mean_s / 0.015 < 1.5


def _row(operator: str, index: int, start: float, align: float = 0.0, end: float = 100.0) -> Subtask:
    return Subtask(operator, index, start, align, 1.0, 4.0, end, 0.0, 0.0)


def test_each_estimator_on_a_checkpoint_by_hand() -> None:
    """A subtraction the wrong way round would be a plausible number of milliseconds."""
    rows = (_row("a", 0, 5.0), _row("a", 1, 9.0), _row("b", 0, 14.0, 6.0), _row("b", 1, 8.0, 3.0))
    checkpoint = ObservedCheckpoint(1, 100.0, 0.0, 0.0, rows)
    run = ObservedJob(
        "", "aligned", {"a": (), "b": ("a",)}, {"a": 2, "b": 2}, False, {"b": 0.1}, {"a": 0.0}, {}, (checkpoint,)
    )
    assert commands(run, checkpoint) == [5.0]
    assert ways(run, checkpoint) == [0.0, 4.0]
    assert acknowledgements(run, checkpoint) == [90.0, 86.0, 75.0, 84.0]
    assert (snapshots(run, checkpoint), writes(run, checkpoint)) == ([1.0] * 4, [4.0] * 4)
    assert hops(run, checkpoint) == pytest.approx([8.8, 10.8, 2.8, 1.8])
    assert overtaking_hops(run, checkpoint) == []
    assert hops(replace(run, busy={"b": 0.9}), checkpoint) == []  # a queue may stand ahead of the barrier
    assert hops(replace(run, pressed={"a": 0.9}), checkpoint) == []
    unaligned = replace(run, mode="unaligned")
    assert overtaking_hops(unaligned, checkpoint) == [9.0, 11.0, 3.0, 2.0]
    assert acknowledgements(unaligned, checkpoint) == [90.0, 86.0, 81.0, 87.0]  # it aligns in its async part
    assert writes(unaligned, checkpoint) == []


def test_an_interval_narrows_with_checkpoints_and_never_hides_that_there_is_one_alone() -> None:
    """One checkpoint would give a cost as sure as a hundred."""
    many = [ObservedCheckpoint(n, 1.0, 0.0, 0.0, (_row("a", 0, 5.0 + n % 5), _row("b", 0, 9.0))) for n in range(100)]
    run = ObservedJob("", "aligned", {"a": (), "b": ("a",)}, {"a": 1, "b": 1}, False, {}, {}, {}, tuple(many))
    few = calibrate([replace(run, checkpoints=tuple(many[:10]))]).costs["command"]
    all_of_them = calibrate([run]).costs["command"]
    assert few.low_s < all_of_them.low_s < 0.007 < all_of_them.high_s < few.high_s
    one = calibrate([replace(run, checkpoints=tuple(many[:1]))])
    assert not one.costs
    assert "no two checkpoints" in one.undetermined["command"]


def test_a_real_job_gives_its_services_and_what_is_not_determined(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A profile would claim what no row says."""
    job, costs = tmp_path / "job.toml", tmp_path / "costs.toml"
    barrierlab(capsys, "import", "flink", str(CHAINED), "-o", str(job))
    arguments = ("calibrate", str(job), "--set", "source.source_fast.rate_per_s=375", "--from", str(CHAINED))
    status, out, err = barrierlab(capsys, *arguments, "-o", str(costs))
    assert (status, err) == (0, "")
    assert out.startswith(f"{costs}: ")
    profile = read_profile(costs)
    assert profile.text() == costs.read_text()
    assert profile.costs["service_slow_sink"].mean_s == pytest.approx(0.004, rel=0.02)
    assert (profile.modes, profile.local, profile.parallelism, profile.checkpoints) == (("aligned",), (True,), (2,), 9)
    for name in ("overtaking_hop", "flush_lateness", "channel_state_write", "service_spread", "speed_slow_sink"):
        assert f"not determined: {name}: " in out


def test_answers_of_another_job_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The costs of one job's operators would be taken for another's."""
    status, out, err = barrierlab(capsys, "calibrate", "flink_chain", "--from", str(CHAINED))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "has the operators source_fast, slow_sink; the job flink_chain has source, fast, slow, sink" in err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("start_delay_ms", "delay"), "start_delay_ms is None; allowed: a number"),
        (lambda text: text.replace(",source,0,3,", ",source,0,-3,", 1), "start_delay_ms is '-3'; allowed: a number"),
        (lambda text: text.replace(",source,0,3,", ",source,0,inf,", 1), "start_delay_ms is 'inf'; allowed: a number"),
        (lambda text: text[:-30], "no table with a column run and whole rows"),
        (lambda text: "", "no table with a column run and whole rows"),
    ],
    ids=range(5),
)
def test_a_bad_table_is_one_line(change: Any, said: str, tmp_path: Path) -> None:
    """A slip in a table would be a traceback, or a cost below 0."""
    (tmp_path / "runs.csv").write_text((DATA / "runs.csv").read_text())
    (tmp_path / "subtasks.csv").write_text(change((DATA / "subtasks.csv").read_text()))
    with pytest.raises(TwinError, match=said):
        observed_from([str(tmp_path)], load("flink_chain"))


def test_a_file_without_a_table_of_a_profile_names_the_table(tmp_path: Path) -> None:
    """A scenario given as a profile would be answered with the name of a Python exception."""
    path = tmp_path / "job.toml"
    path.write_text('title = "a job"\n')
    with pytest.raises(TwinError, match=r"no cost profile: the key 'calibrated' is missing; give a cost profile"):
        read_profile(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("[calibrated]", "[other]"),
        lambda text: text.replace("[undetermined]", "[other]"),
        lambda text: text.replace("values_s = [0", "values_s = [-1", 1),
        lambda text: text.replace("mean_s = 0", "mean_s = nan #", 1),
        lambda text: text.replace("count = ", "count = inf #", 1),
        lambda text: text.replace("parallelism = [", "parallelism = 2 #", 1),
        lambda text: text.replace('sets = "checkpoint', 'other = "', 1),
    ],
    ids=range(7),
)
def test_a_bad_profile_is_one_line(change: Any, tmp_path: Path) -> None:
    """A slip in a profile would be a traceback."""
    path = tmp_path / "costs.toml"
    path.write_text(change((DATA / "costs_local.toml").read_text(encoding="utf-8")))
    with pytest.raises(TwinError, match=r"no cost profile: .*; give a cost profile, as barrierlab calibrate writes it"):
        read_profile(path)
