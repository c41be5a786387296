"""Predicted checkpoints: their intervals, what is outside what was calibrated, and a real job beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from barrierlab.sim import load
from barrierlab.sim.sweep.measured import DATA, load_measured
from barrierlab.sim.twin.answers import answers_of
from barrierlab.sim.twin.calibrate import calibrate, observed_from
from barrierlab.sim.twin.errors import shipped
from barrierlab.sim.twin.import_flink import job_of, scenario_of
from barrierlab.sim.twin.observed import ObservedCheckpoint, Subtask, departures
from barrierlab.sim.twin.predict import (
    TAKEN,
    Predicted,
    _ends,
    completed,
    predict,
    simulated_figures,
    statistics_of,
)
from barrierlab.sim.twin.profile import Cost, Profile, read_profile, shipped_profile
from tests.leave_one_out import cases
from tests.sim.support import barrierlab

FLINK = Path(__file__).parent / "flink"
ANSWERS = sorted(FLINK.glob("*/*.json"))
QUICK = ("2.x/chain_remote_debloated_aligned", "2.x/skewed_local_saturated_aligned")
"""The others are unions, of which one is predicted from another job below, and what takes as long and says no more."""
DISTURBED, QUIET_MS = "chain_remote_debloated_aligned", 794
"""Answers of a job that took 858 ms beside other programs, and how long it took in three runs without them
(sim/data/flink/second and fifth)."""
SERVICE = Cost("operator.slow.service_s", (0.0042,), 0.0042, 0.0041, 0.0043, 2, (1.0,))
SHORT: dict[str, Any] = {"until_s": 12.0, "level": "rho050"}


def _profile() -> Profile:
    return read_profile(Path(str(DATA / "costs_remote.toml")))


def test_the_ends_hold_ninety_per_cent_of_nineteen_runs_and_more() -> None:
    """An interval would be called one of 90 % and hold half."""
    assert _ends([float(n) for n in range(19)]) == (0.0, 18.0)
    assert _ends([float(n) for n in range(39)]) == (1.0, 37.0)  # 36 of 40 gaps: 90 %
    assert _ends([2.0, 1.0]) == (1.0, 2.0)


def test_the_statistics_of_a_checkpoint_by_hand() -> None:
    """The mean of a time would be taken where Flink has the largest of the subtasks; or early checkpoints count."""

    def checkpoint(number: int, delay: float) -> ObservedCheckpoint:
        rows = (
            Subtask("a", 0, delay, 2.0, 0.0, 0.0, 9.0, 10.0, 1.0),
            Subtask("a", 1, 1.0, 4.0, 0.0, 0.0, 9.0, 5.0, 2.0),
        )
        return ObservedCheckpoint(number, 10.0 + number, 15.0, None, rows)

    found = statistics_of([checkpoint(n, 3.0 if n > 2 else 500.0) for n in range(1, 9)])
    assert found == {
        ("end to end", ""): 15.5,  # of the last six
        ("persisted", ""): 15.0,
        ("start delay", "a"): 3.0,
        ("imbalance", "a"): 2.0,
        ("alignment", "a"): 4.0,
        ("persisted", "a"): 15.0,
        ("processed", "a"): 3.0,
    }


def test_the_first_checkpoint_of_a_job_is_not_compared() -> None:
    """Queues were filling up: a job of five checkpoints would be said to take 549 ms, of which four took 597."""

    def durations(*numbers: int) -> float:
        checkpoints = [ObservedCheckpoint(number, 100.0 * number, None, None, ()) for number in numbers]
        return statistics_of(checkpoints)["end to end", ""]

    assert durations(1, 2, 3) == 250.0
    assert durations(1, 2, 3, 4, 5, 6) == 400.0
    assert durations(2, 3, 4, 5, 6, 7, 8) == 550.0  # the last six
    assert durations(1) == 100.0  # there is no other


def test_runs_that_differ_widen_the_interval() -> None:
    """The effects of the measured runs would be read and not used."""
    profile = _profile()
    cost = profile.costs["acknowledgement"]
    sure = replace(profile, costs={"acknowledgement": replace(cost, factors=(1.0,))})
    unsure = replace(profile, costs={"acknowledgement": replace(cost, factors=(0.1, 20.0))})
    whole = [predict("flink_chain", SHORT, each, 2, {})[0] for each in (sure, unsure)]
    assert [row.statistic for row in whole] == ["end to end"] * 2
    assert [row.is_known for row in whole] == [False] * 2
    assert whole[0].low <= whole[0].median <= whole[0].high
    assert whole[1].high - whole[1].low > 3 * (whole[0].high - whole[0].low)
    assert predict("flink_chain", SHORT, unsure, 2, {})[0] == whole[1]


def test_the_error_of_the_simulation_widens_the_interval() -> None:
    """An interval would hold the chance of the runs alone, as if nothing were wrong with the simulation."""
    alone, whole = (predict("flink_chain", SHORT, _profile(), 2, errors)[0] for errors in ({}, None))
    assert whole.is_known
    assert whole.median == alone.median
    assert whole.high - whole.low > alone.high - alone.low


def test_costs_from_one_configuration_have_errors_of_their_own() -> None:
    """Costs from one job would seem to carry as far as those from many."""
    several = _profile()
    one = replace(several, configurations=1)
    assert several.configurations > 1
    rows = [predict("flink_chain", SHORT, each, 2)[0] for each in (several, one)]
    assert rows[0].median == rows[1].median
    assert rows == [
        predict("flink_chain", SHORT, several, 2, shipped(count))[0] for count in (several.configurations, 1)
    ]
    assert rows[0].high != rows[1].high


def test_a_job_whose_barriers_keep_their_place_is_ruled_by_its_alignment() -> None:
    """A checkpoint of a second would have the error of one that overtakes, in tens of ms."""
    settings = {**SHORT, "mode": "unaligned"}
    held = {**settings, "channel.source->fast.exchange": "forward"}
    assert simulated_figures("flink_chain", settings, _profile(), 1)[1] == "unaligned, below saturation"
    assert simulated_figures("flink_chain", held, _profile(), 1)[1] == "below saturation"


def test_what_is_set_goes_before_the_profile() -> None:
    """`--set` would be overruled by a file, without a word."""
    fixed = {**SHORT, "checkpoint.ack_latency_s": 0.5}
    whole = predict("flink_chain", fixed, _profile(), 2)[0]
    assert whole.median > 500


def test_an_operator_that_works_longer_than_the_one_calibrated_on_keeps_its_own_work() -> None:
    """A job of 16 ms a record would be predicted with the 4 ms of another job, whose operator has the same name."""
    profile = replace(_profile(), costs={**_profile().costs, "service_slow": SERVICE})
    longer = load("flink_chain", {"operator.slow.service_s": 0.016})
    assert profile.settings(longer, 1)["operator.slow.service_s"] == {"dist": "empirical", "values": [0.016]}
    assert list(profile.outside(longer)) == ["slow works 16 ms for a record: calibrated on 4.2 ms"]
    same = load("flink_chain", {"operator.slow.service_s": 0.004})
    assert profile.settings(same, 1)["operator.slow.service_s"] == {"dist": "empirical", "values": [0.0042]}
    assert list(profile.outside(same)) == []


@pytest.mark.parametrize("path", [pytest.param(each, id=f"{each.parts[-2]} {each.stem}") for each in ANSWERS])
def test_a_job_is_not_outside_of_what_was_calibrated_on_itself(path: Path, tmp_path: Path) -> None:
    """Two estimates of a few microseconds a record would look like other work, and a user would look for it."""
    made = scenario_of(job_of(answers_of([str(path)]), None), str(path))
    job = tmp_path / "job.toml"
    job.write_text(made.text, encoding="utf-8")
    profile = calibrate(observed_from([str(path)], load(job)))
    assert list(profile.outside(load(job))) == []


def test_a_value_is_inside_by_the_clock_of_the_measurement() -> None:
    """A whole millisecond would be outside an interval that is narrower than its clock."""
    row = Predicted("end to end", "", 10.2, 10.1, 10.3)
    assert [replace(row, measured=value).is_inside for value in (None, 9.0, 10.0, 11.0)] == [None, False, True, False]
    nothing = Predicted("persisted", "a", 0.0, 0.0, 0.0, 0.0)
    assert (nothing.is_inside, replace(nothing, measured=1.0).is_inside) == (None, False)


def test_what_was_not_calibrated_is_said() -> None:
    """A prediction of a mode, a parallelism or channels that no row is of would look as sure as any."""
    profile = _profile()
    assert list(profile.outside(load("flink_chain"))) == []
    aligned = replace(profile, modes=("aligned",))
    job = load("flink_chain", {"mode": "unaligned", "parallelism": 3, "topology": "L"})
    assert list(aligned.outside(job)) == [
        "mode unaligned: calibrated on aligned alone",
        "parallelism 3: calibrated on 1, 2",
        "local channels: calibrated on remote ones alone",
    ]


@pytest.mark.parametrize("version", [pytest.param("1.20", marks=pytest.mark.slow), "2.x"])
def test_a_real_union_is_predicted_from_the_costs_of_another_job(
    version: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Anything that was fitted on one job in one mode would not carry to another: the purpose of a profile."""
    chained, union = (
        FLINK / version / f"{name}.json"
        for name in ("chained_local_saturated_aligned", "union_local_saturated_timeout")
    )
    for name, answers in (("chained", chained), ("union", union)):
        barrierlab(capsys, "import", "flink", str(answers), "-o", str(tmp_path / f"{name}.toml"))
    costs = str(tmp_path / "costs.toml")
    rate = ("--set", "source.source_fast.rate_per_s=375")
    assert (
        barrierlab(capsys, "calibrate", str(tmp_path / "chained.toml"), *rate, "--from", str(chained), "-o", costs)[0]
        == 0
    )
    arguments = ("predict", str(tmp_path / "union.toml"), "--costs", costs, "--set", "source.sourceA.rate_per_s=312.5")
    status, out, err = barrierlab(capsys, *arguments, "--seeds", "2", "--against", str(union), "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["outside"] == ["mode aligned_with_timeout: calibrated on aligned alone", TAKEN]
    assert found["holds"] == pytest.approx(0.9)
    rows = {(row["statistic"], row["operator"]): row for row in found["rows"]}
    for key, tolerance in {
        ("end to end", ""): 0.05,
        ("persisted", ""): 0.10,
        ("processed", ""): 0.15,
        ("start delay", "merge"): 0.15,
        ("alignment", "merge"): 0.15,
    }.items():
        assert rows[key]["median"] == pytest.approx(rows[key]["measured"], rel=tolerance), key


def test_a_measurement_in_another_mode_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A prediction of one mode would be laid beside a measurement of another."""
    costs = str(DATA / "costs_local.toml")
    arguments = (
        "predict",
        "flink_chain",
        "--costs",
        costs,
        "--set",
        "mode=unaligned",
        "--set",
        "topology=L",
        "--seeds",
        "2",
    )
    status, out, err = barrierlab(capsys, *arguments, "--set", "until_s=1.0")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "no checkpoint completed after warmup_s" in err
    file = str(FLINK / "2.x" / "chained_local_saturated_aligned.json")
    assert "has the operators source_fast" in barrierlab(capsys, *arguments, "--against", file)[2]
    job = barrierlab(capsys, "predict", "camera_imu_lidar", "--costs", costs)
    assert (job[0], job[1], job[2].count("\n")) == (2, "", 1)
    assert "is no scenario of checkpoints" in job[2]


def test_a_table_for_people_says_what_is_inside(capsys: pytest.CaptureFixture[str]) -> None:
    """A person would have to compare columns."""
    arguments = ("predict", "flink_chain", "--costs", str(DATA / "costs_remote.toml"), "--set", "until_s=12.0")
    status, out, err = barrierlab(capsys, *arguments, "--seeds", "2", "--against", str(DATA))
    assert (status, err) == (0, "")
    assert "90 % from" in out
    assert " measured values are in their intervals" in out
    assert "outside what was calibrated" not in out


def _of_runs(folder: Path, *names: str) -> str:
    """Write the tables of these runs alone."""
    folder.mkdir()
    for table in ("runs.csv", "subtasks.csv"):
        head, *rows = (DATA / table).read_text(encoding="utf-8").splitlines()
        kept = [row for row in rows if row.split(",")[0] in names]
        (folder / table).write_text("\n".join([head, *kept, ""]), encoding="utf-8")
    return str(folder)


def test_runs_of_other_settings_are_left_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The mean of a saturated run and an idle one would be laid beside a prediction as if it were a measurement."""
    idle, full = runs = ("R_chain_rho050_aligned", "R_chain_sat_4ms_aligned")
    one, two = _of_runs(tmp_path / "one", idle), _of_runs(tmp_path / "two", *runs)
    costs = str(DATA / "costs_remote.toml")
    arguments = ("predict", "flink_chain", "--costs", costs, "--set", "until_s=12.0", "--seeds", "2", "--against")
    found = json.loads(barrierlab(capsys, *arguments, two, "--against", two, "--json")[1])
    said = "rate_A is 250, here 750"
    assert (found["measured_runs"], found["left_out"]) == ([full], {idle: said})
    assert f"left out: {idle}: {said}" in barrierlab(capsys, *arguments, two)[1].splitlines()
    status, out, err = barrierlab(capsys, *arguments, one)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"no run has the job's settings: of {idle} {said} (left out: 1); --set them" in err


def test_each_run_of_the_tables_is_one_of_its_own_job_alone() -> None:
    """A column would be compared with another setting, or with none: one run would stand for another."""
    jobs = load_measured()
    for job in jobs:
        scenario = load(job.scenario, job.settings)
        runs = observed_from([str(DATA)], scenario, debloated=True)
        place = job.settings["topology"] == "L"
        same = [run.name for run in runs if run.mode == scenario.mode.name and run.is_local == place]
        alike = [run.name for run in runs if run.name in same and not departures(run, scenario)]
        assert alike == [job.name]
        assert len(same) > 1 or place
    timeout = load("flink_chain", {"mode": "aligned_with_timeout", "checkpoint.aligned_checkpoint_timeout_s": 0.2})
    run = next(run for run in observed_from([str(DATA)], timeout) if run.name == "R_chain_sat_4ms_timeout")
    assert departures(run, timeout) == ["timeout_ms is 300, here 200"]
    wide = load("flink_chain", {"mode": "aligned_with_timeout", "parallelism": 3, "level": "rho050"})
    assert departures(run, wide)[:2] == [f"the parallelism of {name} is 2, here 3" for name in ("source", "fast")]


def test_a_real_remote_chain_is_predicted_in_another_mode(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Whoever asks what a timeout would do to his job would get the figures of another."""
    aligned, timeout = (FLINK / "2.x" / f"chain_remote_saturated_{mode}.json" for mode in ("aligned", "timeout"))
    job, costs = str(tmp_path / "job.toml"), str(tmp_path / "costs.toml")
    rate = ("--set", "source.source.rate_per_s=375")
    barrierlab(capsys, "import", "flink", str(aligned), "-o", job)
    assert barrierlab(capsys, "calibrate", job, *rate, "--from", str(aligned), "-o", costs)[0] == 0
    mode = ("--set", "mode=aligned_with_timeout")  # of 0.3 s, where the job has none
    arguments = ("predict", job, "--costs", costs, *rate, *mode, "--seeds", "5", "--against", str(timeout), "--json")
    found = json.loads(barrierlab(capsys, *arguments)[1])
    assert found["outside"] == ["mode aligned_with_timeout: calibrated on aligned alone", TAKEN]
    rows = {(row["statistic"], row["operator"]): row for row in found["rows"]}
    # What a barrier takes that overtakes no aligned run says: without the usual costs it were 326 ms of 373.
    assert rows["end to end", ""]["median"] == pytest.approx(rows["end to end", ""]["measured"], rel=0.10)
    assert rows["end to end", ""]["inside"]
    for key in (("persisted", ""), ("persisted", "fast"), ("start delay", "fast"), ("start delay", "slow")):
        assert rows[key]["median"] == pytest.approx(rows[key]["measured"], rel=0.10), key


def test_what_no_run_says_is_taken_from_the_measured_cluster(tmp_path: Path) -> None:
    """After a timeout everything would be over at once, with an interval as narrow as if that were known."""
    profile = replace(_profile(), costs={"snapshot": _profile().costs["snapshot"]}, numbers={})
    timeout = {"mode": "aligned_with_timeout"}
    jobs = {}
    for stem in ("chain_remote_saturated_aligned", "chained_local_saturated_aligned"):
        path = FLINK / "2.x" / f"{stem}.json"
        jobs[stem] = tmp_path / f"{stem}.toml"
        jobs[stem].write_text(scenario_of(job_of(answers_of([str(path)]), None), str(path)).text, encoding="utf-8")
    remote, local = jobs.values()
    found, usual = completed(profile, load(remote, timeout)), shipped_profile(False)
    assert found.costs == {name: usual.costs[name] for name in ("snapshot", "unaligned_begin", "channel_state")}
    assert list(found.numbers) == ["channel_state_rate", "cores"]
    assert (
        completed(profile, load(local, timeout)).costs["channel_state"] == shipped_profile(True).costs["channel_state"]
    )
    # An aligned job has none of it, a profile or a job with costs of its own has these.
    for each, other in (
        (profile, {"mode": "aligned"}),
        (profile, {**timeout, "channel.default.unaligned_barrier_latency_s": 0.01}),
        (profile, {**timeout, "checkpoint.unaligned_begin_s": 0.01}),
        (_profile(), timeout),
    ):
        assert completed(each, load(remote, other)) is each


@pytest.mark.slow
def test_equal_subtasks_stand_apart_as_predicted() -> None:
    """Two subtasks would be predicted alike, of which one stood 42 ms, and once 118, behind the other."""
    jobs = cases("first")
    case = next(each for each in jobs if "debloat" in each.configuration and each.settings["mode"] == "aligned")
    others = [run for each in jobs if each.configuration != case.configuration for run in each.runs if not run.is_local]
    profile = calibrate(others)
    unequal, alike = (
        simulated_figures(case.scenario, case.settings, each, 5)[0]["imbalance", "slow"]
        for each in (profile, replace(profile, numbers={}))
    )
    assert median(alike) < case.measured["imbalance", "slow"] / 2 < median(unequal)
    assert min(unequal) < case.measured["imbalance", "slow"] < max(unequal)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(
            path,
            id=f"{path.parent.name}-{path.stem}",
            marks=[] if f"{path.parent.name}/{path.stem}" in QUICK else pytest.mark.slow,
        )
        for path in ANSWERS
    ],
)
def test_an_imported_job_needs_no_line_of_ones_own(
    answers: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whoever has the answers of a job alone could not come to a prediction."""
    job, costs = str(tmp_path / "job.toml"), str(tmp_path / "costs.toml")
    for command in (
        ("import", "flink", str(answers), "-o", job),
        ("calibrate", job, "--from", str(answers), "-o", costs),
        ("predict", job, "--costs", costs, "--seeds", "5", "--against", str(answers), "--json"),
    ):
        status, out, err = barrierlab(capsys, *command)
        assert (status, err) == (0, ""), command
        assert "fill in" not in out
    found = json.loads(out)
    begins_unaligned = "forward" not in answers.stem  # nothing shows how, where no barrier overtakes
    assert (found["outside"], found["left_out"]) == ([] if begins_unaligned else [TAKEN], {})
    rows = {(row["statistic"], row["operator"]): row for row in found["rows"]}
    whole = rows["end to end", ""]
    assert whole["median"] == pytest.approx(whole["measured"], rel=0.35)
    if answers.stem == DISTURBED:  # one of ten, of intervals that hold nine of ten
        assert whole["median"] == pytest.approx(QUIET_MS, rel=0.05)
    else:
        assert whole["inside"]
