"""Joins in simulated time: what is shipped holds, laws hold, and what each key does can be seen."""

from __future__ import annotations

import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import barrierlab.sim.join.engine as sim_join_engine
from barrierlab.impl.join import Skipped, SkipReason
from barrierlab.model.defects.join.J02_ready_taken_for_present import TakesReadyForThere
from barrierlab.model.defects.join.J19_any_frame_suffices import COMPONENTS as LOWER_BOUND
from barrierlab.sim import ScenarioError, load, run
from barrierlab.sim.join.engine import JoinResult
from barrierlab.sim.join.scenario import make_stage
from barrierlab.sim.scenario.load import SHIPPED, shipped
from tests.breadth import first
from tests.sim.support import barrierlab, toml, with_changes

MS = 1_000_000
SHORT = {
    "camera_imu_lidar": {"until_s": 3.0, "warmup_s": 1.0},
    "fast_data_slow_config": {"until_s": 3.0, "warmup_s": 1.5},
    "lockstep_cameras": {"until_s": 12.0},
}
PAIR: dict[str, Any] = {
    "until_s": 4.0,
    "join": {"barrier": "sequence"},
    "input": {"a": {"rate_per_s": 50.0, "slots": 16}, "b": {"rate_per_s": 50.0, "slots": 16, "delay_s": 0.003}},
}


def joined(folder: Path, seed: int = 1, **changes: Any) -> JoinResult:
    """The run of `PAIR`, with changes."""
    path = folder / "pair.toml"
    path.write_text(toml(with_changes(PAIR, changes)), encoding="utf-8")
    result = run(load(path), seed)
    assert isinstance(result, JoinResult)
    return result


def row(result: JoinResult) -> dict[str, Any]:
    """Return what is measured."""
    return result.join_rows()[0]


def emitted(result: JoinResult) -> list[tuple[int, int, dict[int, Any], tuple[int, ...]]]:
    """Time, value, frames by stream, who was absent."""
    return [
        (at_ns, subject[0], dict(subject[1]), subject[2])  # type: ignore[index]
        for at_ns, verb, _, subject in result.entries
        if verb == "emit"
    ]


def _each_choice(name: str) -> list[dict[str, Any]]:
    parameters = tomllib.loads((SHIPPED / "join" / f"{name}.toml").read_text()).get("parameters", {})
    own = {key: list(table["choices"]) for key, table in parameters.items() if "choices" in table}
    rows = max((len(choices) for choices in own.values()), default=1)
    wheels = {key: itertools.cycle(choices) for key, choices in own.items()}
    return [{key: next(wheel) for key, wheel in wheels.items()} for _ in range(rows)]


@pytest.mark.parametrize(
    ("name", "settings"),
    [(name, settings) for name in shipped("join") for settings in _each_choice(name)],
    ids=lambda case: case if isinstance(case, str) else "-".join(map(str, case.values())),
)
def test_a_shipped_join_holds(name: str, settings: dict[str, Any]) -> None:
    """A newcomer's first join would be broken, or put nothing out."""
    result = run(load(name, {**settings, **SHORT[name]}), seed=2)
    assert result.verdict == "holds", result.violations
    outputs = row(result)["outputs"]
    assert outputs > 0 or settings.get("barrier") == "sequence"  # which cannot join streams of different rates


def test_the_same_seed_gives_the_same_journal(tmp_path: Path) -> None:
    """Two runs could not be compared, nor a failure shown again."""
    changes = {"input": {"a": {"latency_s": {"dist": "exponential", "mean": 0.01}, "drop": 0.1}}}
    first, again, other = (joined(tmp_path, seed, **changes) for seed in (1, 1, 2))
    assert first.digest == again.digest
    assert first.entries == again.entries
    assert first.digest != other.digest


def test_another_input_changes_no_number_of_the_others(tmp_path: Path) -> None:
    """Two settings could not be compared under the same arrivals."""
    law = {"dist": "exponential", "mean": 0.01}

    def frames(result: JoinResult) -> list[Any]:
        return [entry for entry in result.entries if entry[1] == "publish" and entry[2] == 1]

    two = joined(tmp_path, input={"a": {"delay_s": law}})
    three = joined(tmp_path, input={"a": {"delay_s": law}, "c": {"rate_per_s": 20.0, "delay_s": law}})
    assert frames(two) == frames(three)


# Laws.


@pytest.mark.parametrize("lateness_ms", [0, 30, 60, 100])
def test_the_longest_wait_is_the_slowest_stream_less_the_lateness(lateness_ms: int) -> None:
    """A budget would be wrong: the wait is the lidar's period and delay, less the camera's delay and the lateness."""
    settings = {"jitter": "none", "lateness_s": lateness_ms / 1000, "join.service_s": 0.0, "until_s": 22.0}
    result = run(load("camera_imu_lidar", settings), seed=1)
    period, lidar, camera = 1000 / 9.7, 50 + 5 + 0.5, 8 + 2 + 0.5
    assert result.verdict == "holds"
    waits = result._engine.measures.waits_ns
    assert max(waits) / MS == pytest.approx(period + lidar - camera - lateness_ms, abs=0.6)
    assert min(waits) >= 0


@pytest.mark.parametrize("lateness_ms", [0, 100])
def test_a_lateness_up_to_the_period_costs_no_alignment(lateness_ms: int) -> None:
    """The free part of the budget would not be free: the newest frame before an output is at most a period old."""
    settings = {"jitter": "none", "lateness_s": lateness_ms / 1000, "until_s": 22.0}
    result = run(load("camera_imu_lidar", settings), seed=1)
    skews = result._engine.measures.skews_ns
    assert max(skews) / MS < 1000 / 9.7
    assert sum(skews) / len(skews) / MS == pytest.approx(1000 / 9.7 / 2, rel=0.05)


def test_dropped_frames_cost_their_outputs_and_no_others(tmp_path: Path) -> None:
    """A join would lose more than its cameras do, or put out what one of them never saw."""
    result = joined(tmp_path, until_s=20.0, input={"a": {"drop": 0.05}, "b": {"drop": 0.05}})
    there = [{e[3].seq for e in result.entries if e[1] == "publish" and e[2] == n} for n in (1, 2)]  # type: ignore[attr-defined]
    outs = [out for _, out, _, _ in emitted(result)]
    assert outs == sorted(there[0] & there[1])[: len(outs)]
    assert len(outs) >= 890
    assert result.skip_counts()["failed"] == outs[-1] + 1 - len(outs)
    assert result.verdict == "holds"


def test_a_pair_waits_for_the_slower_one(tmp_path: Path) -> None:
    """A wait in the tables would be something else."""
    measured = row(joined(tmp_path, warmup_s=0.5))  # what came before the map was of no input
    assert measured["wait_mean_ms"] == measured["wait_p99_ms"] == 3.0
    assert measured["age_p50_ms"] == 3.0
    assert measured["skew_p99_ms"] == 0.0
    assert measured["complete_share"] == 1.0
    assert measured["output_rate_per_s"] == pytest.approx(50.0, rel=0.01)


# What keys do.


def test_a_camera_that_begins_anew_alone_stops_a_sequence_join() -> None:
    """Frames of before and after a restart would be taken for a pair (rule 31)."""
    alone = run(load("lockstep_cameras", {"restart": "alone", "until_s": 14.0}), seed=1)
    assert alone.verdict == "holds"
    assert max(at_ns for at_ns, *_ in emitted(alone)) < 10.1e9
    together = run(load("lockstep_cameras", {"restart": "together", "until_s": 14.0}), seed=1)
    assert together.verdict == "holds"
    last = emitted(together)[-1]
    assert last[0] > 13.9e9
    assert {frame.epoch for frame in last[2].values()} == {2}
    assert last[1] < 250  # it counts from the start again


def test_a_configuration_that_stops_is_absent_once_it_is_stale() -> None:
    """Outputs would stop with it, or go on with it as if it were fresh (example A.5.1)."""
    settings = {"stop_at_s": 0.9, "stale_timeout_s": 1.0, "input.config.rate_per_s": 2.0, "input.config.phase_s": 0.3}
    result = run(load("fast_data_slow_config", {**settings, **SHORT["fast_data_slow_config"], "warmup_s": 0.0}), seed=1)
    assert result.verdict == "holds"
    outputs = emitted(result)
    last_seen = max(e[0] for e in result.entries if e[1] == "observe" and e[2] == 2)
    assert last_seen < 0.9e9
    assert {absent for at_ns, _, _, absent in outputs if at_ns <= last_seen + 1e9} == {()}
    assert {absent for at_ns, _, _, absent in outputs if at_ns > last_seen + 1.001e9} == {(2,)}
    assert outputs[-1][0] > 2.99e9
    measured = row(result)
    assert measured["degraded"] == measured["outputs"] - measured["complete"] > 500


def test_a_late_joiner_gets_its_map_though_messages_are_lost(tmp_path: Path) -> None:
    """It would wait for ever for one that was lost (section 10.3)."""
    join = {"joins_at_s": 1.0, "control_loss": 0.6, "control_latency_s": 0.01, "announce_interval_s": 100.0}
    result = joined(tmp_path, join=join, seed=3)
    first = emitted(result)[0]
    applied = next(at_ns for at_ns, verb, *_ in result.entries if verb == "announce")
    assert applied > 1.02e9
    assert first[0] >= applied
    assert result.skip_counts()["failed"] >= 30  # what was overwritten before it came
    assert result.verdict == "holds"
    never = joined(tmp_path, join={**join, "control_loss": 0.999, "most_requests": 2})
    assert emitted(never) == []


def test_soft_state_reaches_who_never_asks_in_vain(tmp_path: Path) -> None:
    """The map would be said once (section 10.1)."""
    join = {"joins_at_s": 1.0, "announce_interval_s": 0.5}
    result = joined(tmp_path, join=join)
    announced = [at_ns for at_ns, verb, *_ in result.entries if verb == "announce"]
    assert len(announced) == 8  # the answer at 1.0 s, and every half second from then on
    assert result.verdict == "holds"


def test_a_new_epoch_of_the_output_needs_its_map(tmp_path: Path) -> None:
    """Outputs of before and after would be of one count (section 6.4)."""
    result = joined(
        tmp_path, join={"barrier": "timestamp", "drive": "a", "epoch_at_s": [2.0], "control_latency_s": 0.05}
    )
    epochs = [entry[3].epoch for entry in result.entries if entry[1] == "announce"]  # type: ignore[attr-defined]
    assert epochs == sorted(epochs)
    assert set(epochs) == {1, 2}
    assert result.verdict == "holds"
    assert emitted(result)[-1][0] > 3.9e9


@pytest.mark.parametrize("barrier", ["sequence", "timestamp", "latest"])
def test_what_a_changed_map_makes_void_is_not_skipped(tmp_path: Path, barrier: str) -> None:
    """An output that comes out at its second attempt would count twice, and a join seem to lose what it does not."""
    drive = {} if barrier == "sequence" else {"drive": "a"}
    join = {"barrier": barrier, **drive, "epoch_at_s": [1.0, 2.0, 3.0], "service_s": 0.03}
    result = joined(tmp_path, join=join)
    found, counts = row(result), result.skip_counts()
    assert counts.pop("map changed") == 3
    assert found["skipped"] == sum(counts.values()) > 0
    assert found["outputs"] == found["complete"] + found["degraded"]
    if barrier == "sequence":
        assert found["wanted"] == found["outputs"] + found["skipped"] + found["waiting"]
        assert found["waiting"] == 16  # its stage is too slow: what lies in the slots
    else:
        assert found["wanted"] == 200


def test_clocks_that_differ_stop_the_join(tmp_path: Path) -> None:
    """Times of two clocks would be compared (section 8.2)."""
    changes: dict[str, Any] = {
        "join": {"barrier": "timestamp", "drive": "a"},
        "input": {"b": {"clock_domain": "MONOTONIC"}},
    }
    assert len(emitted(joined(tmp_path, **changes))) > 150
    changes["input"]["b"]["clock_domain"] = "REALTIME_SYNCED"
    refused = r"goes by times of different clocks.*MONOTONIC; a has MONOTONIC, b has REALTIME_SYNCED; give all the same"
    with pytest.raises(ScenarioError, match=refused):
        joined(tmp_path, **changes)
    by_number = {"barrier": "latest", "drive": "a"}
    assert len(emitted(joined(tmp_path, **{**changes, "join": by_number}))) > 150
    with pytest.raises(ScenarioError, match=refused):
        joined(tmp_path, **{**changes, "join": {**by_number, "by_timestamp": True}})


def test_a_pipeline_clock_works_if_it_is_held_or_read_behind(tmp_path: Path) -> None:
    """Example A.4.1 would be said to work as it is written (defect J-09)."""
    clock = {"barrier": "timestamp", "drive": "clock", "tick_s": 0.01}
    streams = {name: {"rate_per_s": 1000.0, "delay_s": 0.015, "slots": 64} for name in "ab"}
    shares = {
        words: row(joined(tmp_path, until_s=1.0, warmup_s=0.2, join={**clock, **more}, input=streams))["complete_share"]
        for words, more in (
            ("as written", {"pending": "replace"}),
            ("held", {"pending": "hold"}),
            ("behind", {"pending": "replace", "budget_s": 0.0151}),
            ("too little behind", {"pending": "replace", "budget_s": 0.003}),
            ("with lateness", {"pending": "replace", "lateness_s": 0.0151}),
        )
    }
    # Of `source` frame_descriptor a frame is as old as its arrival: nothing is late by that. So the source decides.
    assert shares == dict.fromkeys(shares, pytest.approx(1.0, abs=0.02))
    slots = {name: {**each, "source": "slot_header"} for name, each in streams.items()}
    by_capture = {
        words: row(joined(tmp_path, until_s=1.0, warmup_s=0.2, join={**clock, **more}, input=slots))["complete_share"]
        for words, more in (
            ("as written", {"pending": "replace"}),
            ("held", {"pending": "hold"}),
            ("behind", {"pending": "replace", "budget_s": 0.0151}),
            ("too little behind", {"pending": "replace", "budget_s": 0.003}),
            ("with lateness", {"pending": "replace", "lateness_s": 0.0151}),
        )
    }
    assert by_capture["as written"] == by_capture["too little behind"] == 0.0
    assert by_capture["held"] == pytest.approx(0.5, abs=0.02)  # every second tick comes while one is held
    assert by_capture["behind"] == by_capture["with lateness"] == pytest.approx(1.0, abs=0.02)


def test_a_slow_stage_is_overrun_and_goes_on(tmp_path: Path) -> None:
    """A stage that is slower than its streams would put nothing out (defect J-21)."""
    result = joined(tmp_path, join={"service_s": 0.05}, input={"a": {"slots": 8}, "b": {"slots": 8}})
    assert result.verdict == "holds"
    assert 20 < row(result)["outputs"] < 80
    assert result.skip_counts()["failed"] > 100


def test_a_slot_that_is_gone_before_its_descriptor_comes_has_no_time(tmp_path: Path) -> None:
    """The descriptor's time would stand in for it (defect J-20)."""
    late = {"rate_per_s": 50.0, "slots": 2, "latency_s": 0.1, "source": "slot_header"}
    result = joined(tmp_path, join={"barrier": "timestamp", "drive": "a"}, input={"b": late})
    seen = [entry[3] for entry in result.entries if entry[1] == "observe" and entry[2] == 2]
    assert {frame.slot_ns for frame in seen[:-2]} == {None}  # type: ignore[attr-defined]
    assert emitted(result) == []
    assert result.verdict == "holds"


@pytest.mark.parametrize(
    ("part", "changed", "changes", "invariant"),
    [
        ("barrier", LOWER_BOUND.sequence, {"input": {"b": {"window": 3}}}, "READY"),
        ("stage", TakesReadyForThere, {"input": {"b": {"drop": 0.1}}}, "CHOICE"),
    ],
    ids=["LowerBound", "TakesReadyForThere"],
)
def test_a_join_that_is_broken_on_purpose_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, changed: Any, changes: Any, invariant: str
) -> None:
    """The verdict of a simulated run would be worth nothing."""

    def broken(scenario: Any) -> Any:
        stage = make_stage(scenario)
        if part == "barrier":
            return type(stage)(changed(stage.barrier.config), stage.config)
        return changed(stage.barrier, stage.config)

    assert joined(tmp_path, **changes).verdict == "holds"
    monkeypatch.setattr(sim_join_engine, "make_stage", broken)
    result = joined(tmp_path, **changes)
    assert result.verdict == "broken"
    assert invariant in {violation.invariant for violation in result.violations}


# The command.


def test_a_join_is_run_and_shown(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`barrierlab run camera_imu_lidar` would fail, or say nothing of use."""
    few = ["--set", "until_s=3.0", "--set", "cooldown_s=1.0", "--set", "warmup_s=1.0", "--seed", "1"]
    status, out, err = barrierlab(capfd, "run", "camera_imu_lidar", *few, "--trace", str(tmp_path / "t.txt"))
    assert (status, err) == (0, "")
    assert "camera, IMU and lidar (seed 1): timestamp join" in out
    assert "30 outputs (30.0 a second), 30 of them complete, of 30 wanted; skipped: none" in " ".join(out.split())
    assert out.splitlines()[-1] == "verdict: holds (0 violations)"
    trace = (tmp_path / "t.txt").read_text().splitlines()
    assert trace[:5] == ["# camera, IMU and lidar", "join: timestamp", "scenario: camera_imu_lidar", "seed: 1", ""]
    assert any(" emit 1000 " in line for line in trace)
    status, out, _ = barrierlab(capfd, "run", "camera_imu_lidar", *few, "--json")
    found = json.loads(out)
    assert found["verdict"] == "holds"
    assert found["join"]["barrier"] == "timestamp"
    assert found["join"]["skips"] == {}


def test_a_title_is_a_line_of_the_journal(tmp_path: Path) -> None:
    """The file that `run --trace` writes would be no trace for `show`, or have a violation that nobody found."""
    result = joined(tmp_path, title="two\n! CUT: lines")
    assert result.trace().startswith("# two ! CUT: lines\njoin: sequence\n")


def test_joins_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    """Nobody would know of them."""
    status, out, _ = barrierlab(capfd, "scenarios", "--json")
    rows = json.loads(out)["scenarios"]
    assert set(shipped("join")) <= set(rows)
    assert rows["lockstep_cameras"]["topology"] == "left->sequence right->sequence"
    status, out, _ = barrierlab(capfd, "scenarios")
    assert "camera_imu_lidar: camera, IMU and lidar" in out


def test_what_came_out_is_a_frame(tmp_path: Path) -> None:
    """A notebook could not go on from it."""
    frame = joined(tmp_path, until_s=0.5).outputs
    assert list(frame.columns) == ["out", "at_ms", "absent", "a", "b"]
    assert list(frame["a"]) == list(frame["out"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"join": {"barier": "sequence"}}, "[join] has no key 'barier'; allowed: barrier"),
        ({"join": {"barrier": "time"}}, "[join] barrier is 'time'; allowed: 'sequence' or 'timestamp' or 'latest'"),
        ({"join": {"barrier": "timestamp"}}, "[join] has no key 'drive'; give 'clock' or an input: a, b"),
        ({"input": {"clock": {}}}, "[input.clock] has the name of what else sets output times"),
        ({"join": {"barrier": "timestamp", "drive": "c"}}, "[join] drive is 'c'; allowed: clock, a, b"),
        ({"join": {"drive": "a"}}, "[join] drive is given with a sequence barrier"),
        ({"join": {"barrier": "timestamp", "drive": "clock"}}, "[join] tick_s goes with drive = 'clock'"),
        ({"join": {"barrier": "timestamp", "drive": "a", "tick_s": 1.0}}, "[join] tick_s goes with drive = 'clock'"),
        ({"join": {"by_timestamp": True}}, "[join] by_timestamp goes with barrier"),
        ({"join": {"lateness_ms": 3}}, "has no key 'lateness_ms': its unit is wrong; did you mean 'lateness_s'?"),
        ({"join": {"control_loss": 1.0}}, "allowed: a share of at least 0 and less than 1"),
        ({"join": {"epoch_at_s": [2.0, 1.0]}}, "allowed: times that rise"),
        ({"join": {"epoch_at_s": 2.0}}, "allowed: a list of times in seconds"),
        ({"input": {"a": {"offset": 0, "window": 3}}}, "[input.a] has both offset and window"),
        ({"input": {"a": {"offset_s": 0.0, "window_s": 0.3}}}, "[input.a] has both offset_s and window_s"),
        ({"input": {"a": {"offset": 0.5}}}, "[input.a] offset is 0.5; allowed: a whole number"),
        ({"input": {"a": {"window": 2**32}}}, "[input.a] window is 4294967296; allowed: a whole number of at least 1"),
        ({"input": {"a": {"window_s": 1e12}}}, "[input.a] window_s is 1000000000000.0; allowed: a number of at least"),
        ({"join": {"stale_timeout_s": 1e12}}, "[join] stale_timeout_s is 1000000000000.0; allowed: a number of at"),
        ({"input": {"a": {"offset_s": "x"}}}, "allowed: a number from -1e+09 to 1e+09"),
        ({"input": {"a": {"source": "slot"}}}, "allowed: 'frame_descriptor' or 'slot_header'"),
        ({"input": {"a": {"drop": -0.1}}}, "allowed: a share"),
        ({"warmup_s": 3.0, "cooldown_s": 1.0}, "measures nothing"),
        ({"input": {}, "until_s": 1.0, "extra": 1}, "has no key 'extra'"),
        (
            {"input": {"a": {"offset": 2**31}}},
            "[input.a] offset is 2147483648; allowed: a whole number from -2147483647 to 2147483647",
        ),
        (
            {"join": {"barrier": "timestamp", "drive": "a", "lateness_s": 0.2}, "input": {"b": {"window_s": 0.1}}},
            "[input.b] window_s is 0.1; allowed: at least lateness_s, 0.2: a shorter window may be empty",
        ),
    ],
)
def test_a_slip_in_a_join_is_one_line(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    """A traceback, or a run of something else than was meant."""
    with pytest.raises(ScenarioError) as raised:
        joined(tmp_path, **changes)
    assert words in str(raised.value)
    assert str(raised.value).startswith("pair.toml: ")
    assert "\n" not in str(raised.value)


def test_a_join_without_inputs_is_none(tmp_path: Path) -> None:
    """It would run, and be ready always."""
    path = tmp_path / "none.toml"
    path.write_text('until_s = 1.0\n[join]\nbarrier = "sequence"\n', encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"has no table \[input.NAME\]"):
        load(path)
    with pytest.raises(ScenarioError, match="did you mean 'lockstep_cameras'"):
        load("lockstep_camera")
    with pytest.raises(ScenarioError, match="setting 'channel\\.x' is neither a parameter"):
        load("lockstep_cameras", {"channel.x": 1})


@pytest.mark.parametrize("barrier", ["timestamp", "latest", "sequence"])
@pytest.mark.parametrize("pending", [None, "hold", "replace"])
def test_what_waits_for_a_dead_stream_is_counted_and_the_stream_is_named(
    tmp_path: Path, barrier: str, pending: str | None
) -> None:
    """Most of what was wanted would be lost without a word, and nobody could see which sensor is dead."""
    more = {} if barrier == "sequence" else {"drive": "a"} | ({"pending": pending} if pending else {})
    result = joined(tmp_path, until_s=5.0, join={"barrier": barrier, **more}, input={"b": {"stop_at_s": 2.0}})
    found = row(result)
    skips = sum(count for reason, count in result.skip_counts().items() if reason != "map changed")
    assert found["outputs"] + skips + found["waiting"] == found["wanted"] >= 100
    stage = result._engine.world.stage
    if barrier == "latest":
        assert (found["waiting"], result.waits_for) == (0, [])  # the last frame of b is as good as any
    else:
        waiting = found["waiting"] if barrier == "sequence" else len(stage.wanted)
        assert found["waiting"] == waiting >= 1
        assert result.waits_for == ["b"]
        assert result.waiting_line.startswith(f"{waiting} waiting at the end, for b (its last frame came at 1.9")
    assert result.as_json()["join"]["waits_for"] == result.waits_for


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "fast_data_slow_config")) for name in shipped("join")],
)
def test_every_output_that_is_wanted_is_accounted_for(name: str) -> None:
    """Outputs would be lost without a word: neither out nor skipped nor waiting."""
    for settings in first(_each_choice(name)):
        result = run(load(name, settings), 2)
        assert isinstance(result, JoinResult)
        found = row(result)
        skips = sum(count for reason, count in result.skip_counts().items() if reason != "map changed")
        assert found["outputs"] + skips + found["waiting"] == found["wanted"]


def test_the_same_time_may_be_wanted_twice(tmp_path: Path) -> None:
    """An output that is wanted twice, and waits, would be counted at the time of the second wish for both."""
    join = {"barrier": "timestamp", "drive": "a", "lateness_s": 0.0}
    result = joined(tmp_path, until_s=2.0, warmup_s=0.5, join=join, input={"a": {"rate_per_s": 30.0}})
    engine = result._engine
    measures = sim_join_engine.Measures(engine)
    for at_ns in (0, 10**9):
        measures.wanted(7, at_ns)
    assert (measures.wanted_count, measures.waiting(engine)) == (1, 1)
    measures.skipped(Skipped(7, 7, SkipReason.OVERFLOW), 10**9)
    assert (measures.skips, measures.waiting(engine)) == ({}, 1)  # the first of them, before what is measured
    measures.skipped(Skipped(7, 7, SkipReason.OVERFLOW), 10**9)
    assert (measures.skips, measures.waiting(engine)) == ({SkipReason.OVERFLOW: 1}, 0)


def test_a_join_of_which_nothing_comes_out_says_so(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A join that never put anything out would hold, and with --strict be taken for tested."""
    streams = {"b": {"rate_per_s": 1.0, "stop_at_s": 0.5, "phase_s": 1.0}}
    file = tmp_path / "nothing.toml"
    file.write_text(toml(with_changes(PAIR, {"input": streams})), encoding="utf-8")
    assert barrierlab(capfd, "run", str(file))[0] == 0
    status, out, _ = barrierlab(capfd, "run", str(file), "--strict")
    assert status == 3
    assert "for b (no frame of it came)" in " ".join(out.split())
    assert "verdict: holds, but no output came out: what comes out was not judged (0 violations)" in out
