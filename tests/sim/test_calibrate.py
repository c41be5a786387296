"""Cost profiles: what the rows of measured checkpoints say, with intervals; and what they do not say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest

from barrierlab.sim import load
from barrierlab.sim.sweep.measured import DATA
from barrierlab.sim.twin.answers import TwinError, answers_of
from barrierlab.sim.twin.calibrate import (
    acknowledgements,
    beginnings,
    calibrate,
    channel_state,
    commands,
    differences,
    disturbed,
    lengthened,
    observed_from,
    slopes,
    snapshots,
    unaligned_beginnings,
    ways,
    writes,
)
from barrierlab.sim.twin.import_flink import job_of
from barrierlab.sim.twin.observed import ObservedCheckpoint, ObservedJob, Subtask, observed_in, senders_of
from barrierlab.sim.twin.predict import simulated
from barrierlab.sim.twin.profile import Cost, Profile, ScalarCost, read_profile
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
    assert out.startswith(f"{of_both}: 8 costs from 59 checkpoints of 6 runs\n")
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
    "channel.default.barrier_latency_s": 0.0,
    "channel.default.unaligned_barrier_latency_s": 0.0,
    "checkpoint.begin_s": {"dist": "gamma", "mean": 0.009, "cv": 0.5},
    "checkpoint.unaligned_begin_s": {"dist": "gamma", "mean": 0.015, "cv": 0.5},
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
    assert found["begin"].mean_s == pytest.approx(0.009, rel=0.35)
    assert "unaligned_begin" not in found
    unaligned = calibrate([_simulated("unaligned")]).costs
    assert unaligned["unaligned_begin"].mean_s == pytest.approx(0.015, rel=0.2)
    assert unaligned["acknowledgement"].mean_s == pytest.approx(0.020, rel=0.2)


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
    assert beginnings(run, checkpoint) == pytest.approx([7.8, 9.8, 1.8, 0.8])  # less a buffer's 0.2, and sync
    assert beginnings(replace(run, is_local=True), checkpoint) == pytest.approx([8.0, 10.0, 2.0, 1.0])
    assert unaligned_beginnings(run, checkpoint) == []
    assert beginnings(replace(run, busy={"b": 0.4}), checkpoint) == []  # a queue may stand ahead of the barrier
    assert beginnings(replace(run, pressed={"a": 0.9}), checkpoint) == []
    unaligned = replace(run, mode="unaligned")
    assert unaligned_beginnings(unaligned, checkpoint) == pytest.approx([4.8])  # the mean of 14 and 8, less 5 and 1.2
    assert unaligned_beginnings(replace(unaligned, busy={"b": 0.4}), checkpoint) == []  # it may finish a record
    # Two may have sent it: one after 0.8 ms, or one after 4.8. Of four senders that took longer, a quarter had 0.8.
    assert lengthened(unaligned) == 1.0
    assert acknowledgements(unaligned, checkpoint) == [90.0, 86.0, 81.0, 87.0]  # it aligns in its async part
    # Of b's parts 6 and 3 ms align, of which 1 ms is the sync part and 2 are its beginning.
    assert writes(unaligned, checkpoint, begin_ms=2.0) == pytest.approx([4.0, 4.0, 1.0, 4.0])
    assert channel_state(unaligned, checkpoint, begin_ms=2.0) == []
    state = replace(checkpoint, subtasks=tuple(replace(each, persisted_bytes=1e5) for each in rows))
    assert writes(unaligned, state, begin_ms=2.0) == []
    rate = ScalarCost("", 1e8, 1e8, 1e8, 9)
    found = channel_state(unaligned, state, begin_ms=2.0, write_ms=1.0, rate=rate)
    assert found == pytest.approx([2.0, 2.0, -1.0, 2.0])


def test_a_beginning_of_which_the_shortest_of_two_is_seen() -> None:
    """Of two senders the first barrier alone is seen: the mean would be half as long as it is."""
    random = Random(1)
    checkpoints = []
    for number in range(400):
        late, begun = random.uniform(0.0, 4.0), [random.expovariate(0.1) for _ in range(2)]
        first = min(begun[0], late + begun[1])
        rows = (_row("a", 0, 0.0), _row("a", 1, late), _row("b", 0, first), _row("b", 1, first))
        checkpoints.append(ObservedCheckpoint(number, 100.0, 0.0, 0.0, rows))
    run = ObservedJob(
        "", "unaligned", {"a": (), "b": ("a",)}, {"a": 2, "b": 2}, True, {"b": 0.0}, {}, {}, tuple(checkpoints)
    )
    shortest = [each for checkpoint in checkpoints for each in unaligned_beginnings(run, checkpoint)]
    assert fmean(shortest) < 7.0
    assert lengthened(run) * fmean(shortest) == pytest.approx(10.0, rel=0.12)
    assert calibrate([run]).costs["unaligned_begin"].mean_s == pytest.approx(0.010, rel=0.12)


def test_a_run_beside_something_else_on_the_machine_is_set_aside() -> None:
    """Costs would be those of whatever else ran: 145 ms were predicted of an unaligned checkpoint of 76."""
    runs = observed_from([str(DATA / "second")], load("flink_chain"), debloated=True)
    slow = [run for run in runs if "debloat1000ms" in run.name]
    others = [run for run in runs if run not in slow]
    assert (len(slow), disturbed(runs), disturbed(others)) == (6, slow, [])
    profile = calibrate(runs)
    assert profile.undetermined["disturbed"] == "6 runs, whose records took 5 % longer than in the quickest: set aside"
    assert profile.costs == calibrate(others).costs
    assert "disturbed" not in calibrate(others).undetermined
    assert disturbed(slow[:1]) == []
    steady, late = others[0], slow[0]
    assert disturbed([steady, late, late]) == []  # most of them are: that is how the cluster is
    assert disturbed([steady, late]) == disturbed([steady, steady, late]) == [late]
    assert disturbed([steady, steady, replace(late, busy={**late.busy, "slow": 0.5})]) == []  # it was woken late
    other_work = replace(late, setup={**late.setup, "slow_service_ms": "18.0"})
    assert disturbed([steady, steady, other_work]) == []
    answers = [replace(run, setup={"interval_ms": "2000"}) for run in (steady, late)]  # which do not say what was asked
    assert disturbed(answers) == answers[1:]
    assert disturbed([answers[0], replace(answers[1], parallelism={**late.parallelism, "slow": 4})]) == []


def test_a_timeout_shows_what_unaligned_parts_cost() -> None:
    """Of a run with a timeout nothing would be read: 304 ms were predicted of 373, on the very job it was fitted on."""
    start = {"source": 5.0, "fast": 308.0, "slow": 316.0}
    rows = tuple(
        Subtask(name, index, at, 0.0, 0.0, 300.0 if name == "source" else 40.0, at + 360.0, 1e5, 0.0)
        for name, at in start.items()
        for index in (0, 1)
    )
    checkpoints = tuple(ObservedCheckpoint(number, 370.0, 0.0, 0.0, rows) for number in range(3))
    senders = {"source": (), "fast": ("source",), "slow": ("fast",)}
    run = ObservedJob(
        "",
        "aligned_with_timeout",
        senders,
        dict.fromkeys(senders, 2),
        True,
        {"fast": 0.0, "slow": 1.0},
        {},
        {},
        checkpoints,
    )
    assert calibrate([run]).undetermined["unaligned_begin"]  # nobody says how long the timeout is
    run = replace(run, setup={"timeout_ms": "300"})
    # What had left by 300 ms begins to overtake then; at slow, which may finish a record, nothing is to be seen.
    assert unaligned_beginnings(run, checkpoints[0]) == [8.0]
    assert acknowledgements(run, checkpoints[0]) == [60.0] * 2 + [320.0] * 4
    found = calibrate([run])
    assert found.costs["unaligned_begin"].mean_s == pytest.approx(0.008, rel=0.5)
    assert found.costs["channel_state"].mean_s == pytest.approx(0.040)
    assert "begin" not in found.costs  # of aligned parts the rows of such checkpoints are none
    soon = tuple(replace(each, end_to_end_ms=290.0) for each in checkpoints)
    assert writes(replace(run, checkpoints=soon), soon[0])[:2] == [300.0] * 2


def _walk(noise: float, drift: float, seed: int, jitter_ms: float = 0.0) -> ObservedJob:
    """Return a run of 40 checkpoints, two seconds apart, of two subtasks with services of 4 ms and full queues."""
    random, apart = Random(seed), 0.0
    checkpoints = []
    for number in range(40):
        now = apart + random.gauss(0.0, jitter_ms)
        rows = (_row("a", 0, 0.0), _row("b", 0, 500.0 + now / 2), _row("b", 1, 500.0 - now / 2))
        checkpoints.append(ObservedCheckpoint(number, 600.0, 0.0, 0.0, rows))
        apart += 1000 * (2.0 * drift + random.gauss(0.0, noise * (2 * 2.0 * 0.004) ** 0.5))
    senders, services = {"a": (), "b": ("a",)}, {"b": (0.004, 0.004)}
    alone = ObservedJob("", "aligned", senders, {"a": 1, "b": 2}, False, {"b": 1.0}, {}, services, tuple(checkpoints))
    return replace(alone, period_s=(2.0, 0.5))


def test_unequal_subtasks_are_distinguished_from_noise() -> None:
    """A steady difference would be chance, which another run does not have; or chance would be a faster subtask."""
    noisy = calibrate([_walk(0.1, 0.0, seed) for seed in range(6)]).numbers
    assert noisy["service_noise"].value == pytest.approx(0.1, rel=0.15)
    assert noisy["service_noise"].low < 0.1 < noisy["service_noise"].high
    assert noisy["subtask_spread"].low <= noisy["subtask_spread"].value < 0.003
    uneven = calibrate([_walk(0.02, drift, drift) for drift in (0.02, -0.01, 0.03, -0.02)]).numbers["subtask_spread"]
    speeds = (0.02**2 + 0.01**2 + 0.03**2 + 0.02**2) / 4  # of two that are apart by as much, each has half of it
    assert uneven.value == pytest.approx((speeds / 2) ** 0.5, rel=0.05)
    assert uneven.low > 0.005
    one = calibrate([_walk(0.1, 0.0, 1)])
    assert "service_noise" in one.numbers
    assert "one run" in one.undetermined["subtask_spread"]
    starved = replace(_walk(0.1, 0.0, 1), busy={"b": 0.9})  # a queue that runs empty forgets
    assert differences(starved) == []
    assert "taken as alike" in calibrate([starved]).undetermined["service_noise"]


def test_chance_in_where_a_barrier_comes_is_no_noise_of_services() -> None:
    """Queues would walk apart by what is anew in each checkpoint: twice as fast as these do."""
    runs = [_walk(0.05, 0.0, seed, 8.0) for seed in range(6)]
    assert calibrate(runs).numbers["service_noise"].value == pytest.approx(0.05, rel=0.2)
    near = [each.noise for run in runs for each in differences(run) if each.checkpoints == 1]
    assert fmean(each**2 for each in near) ** 0.5 > 0.1
    still = [_walk(0.0, 0.0, seed, 8.0) for seed in range(6)]
    assert calibrate(still).numbers["service_noise"].value < 0.03
    assert differences(replace(runs[0], aligning=("b",))) == []  # a sender for each queue: no walk


def test_channel_state_has_a_time_and_a_rate() -> None:
    """A state of a gigabyte would be written as fast as one of a kilobyte."""
    random = Random(1)
    checkpoints = []
    for number in range(40):
        sizes = [0.0, *(random.uniform(1e5, 9e5) for _ in range(3))]
        rows = tuple(
            Subtask(
                "a",
                index,
                2.0,
                0.0,
                0.0,
                1.0 + (5.0 + size / 1e5 + random.gauss(0.0, 0.5) if size else 0.0),
                50.0,
                size,
                0.0,
            )
            for index, size in enumerate(sizes)
        )
        checkpoints.append(ObservedCheckpoint(number, 100.0, 0.0, 0.0, rows))
    run = ObservedJob("", "unaligned", {"a": ()}, {"a": 4}, False, {}, {}, {}, tuple(checkpoints))
    found = calibrate([run])
    rate = found.numbers["channel_state_rate"]
    assert 0.9e8 < rate.low < rate.value < rate.high < 1.1e8
    assert found.costs["channel_state"].mean_s == pytest.approx(0.005, rel=0.1)
    assert found.costs["write"].mean_s == pytest.approx(0.001, rel=0.01)
    same = replace(run, checkpoints=tuple(replace(each, subtasks=each.subtasks[:2]) for each in checkpoints[:4]))
    assert "too few" in calibrate([same]).undetermined["channel_state_rate"]


def test_a_number_is_set_where_a_job_has_none(tmp_path: Path) -> None:
    """A spread that somebody wrote down would be overruled; or a job with other names would have none."""
    number = ScalarCost("operator.*.service_noise", 0.1, 0.1, 0.1, 9)
    cost = Cost("checkpoint.sync_s", (0.01,), 0.01, 0.01, 0.01, 9, (1.0,))
    profile = Profile({"snapshot": cost}, {"service_noise": number}, (), (), (), 0, {})
    job = load("flink_chain", {"operator.slow.service_noise": 0.3})
    noise = {name: value for name, value in profile.settings(job, 1).items() if "noise" in name}
    assert noise == {"operator.fast.service_noise": 0.1, "operator.sink.service_noise": 0.1}
    path = tmp_path / "costs.toml"
    path.write_text(profile.text())
    assert read_profile(path) == profile
    path.write_text(profile.text().replace("service_noise", "service_s"))
    with pytest.raises(TwinError, match="no cost profile"):
        read_profile(path)


def test_a_number_is_drawn_around_its_value() -> None:
    """Draws would be high where the upper side is long: a noise of 0.13, known to 0.67, would be 0.28 on average."""
    number, random = ScalarCost("", 0.13, 0.06, 0.67, 8), Random(1)
    drawn = sorted(number.drawn(random) for _ in range(2000))
    assert drawn[1000] == pytest.approx(0.13, rel=0.05)
    assert (drawn[100], drawn[1900]) == (pytest.approx(0.06, rel=0.1), pytest.approx(0.67, rel=0.15))
    spread = [ScalarCost("", 0.0, 0.0, 0.002, 8).drawn(random) for _ in range(200)]
    assert (min(spread), sum(each == 0 for each in spread) / 200) == (0.0, pytest.approx(0.5, abs=0.1))


def test_what_is_taken_off_a_barrier_s_way_is_the_way_of_a_buffer() -> None:
    """It would be nowhere: a remote job had a tenth too little in its first queue, and as much more at the source."""
    senders = {"a": (), "b": ("a",)}
    run = ObservedJob("", "aligned", senders, {"a": 1, "b": 1}, False, {}, {}, {}, ())
    found = calibrate([run]).numbers["buffer"]
    assert "buffer" not in calibrate([replace(run, is_local=True)]).numbers
    profile = Profile({}, {"buffer": found}, (), (), (), 0, {})
    remote, local = ({"channel.default.latency_s": 0.0, "channel.default.local": place} for place in (False, True))
    names = ("source->fast", "fast->slow", "slow->sink")
    assert profile.settings(load("flink_chain", remote), 1) == {f"channel.{name}.latency_s": 0.0002 for name in names}
    for settings in (local, {}):  # of a process, and of a job with a value of its own
        assert profile.settings(load("flink_chain", settings), 1) == {}


def test_the_way_to_the_next_task_is_spent_once() -> None:
    """A barrier would wait at the task and on the link, of a scenario that has the link's law."""
    begin, unaligned = (
        Cost(f"checkpoint.{name}begin_s", (0.01,), 0.01, 0.01, 0.01, 9, (1.0,)) for name in ("", "unaligned_")
    )
    links = {f"channel.default.{name}barrier_latency_s" for name in ("", "unaligned_")}
    for cost, without in ((begin, links), (unaligned, {"channel.default.unaligned_barrier_latency_s"})):
        settings = Profile({"x": cost}, {}, (), (), (), 0, {}).settings(load("flink_chain"), 1)
        assert {key for key, value in settings.items() if value == 0.0} == without


def test_runs_are_drawn_from_the_fast_to_the_slow() -> None:
    """Of a few seeds all would be runs in which the machine was slow."""
    profile = Profile({"x": Cost("x", (0.01,), 0.01, 0.01, 0.01, 9, (3.0, 0.5, 1.0, 2.0, 4.0))}, {}, (), (), (), 0, {})
    factors = [profile.costs["x"].factors[profile._run(seed)] for seed in range(1, 11)]
    assert factors[0] == 2.0
    assert set(factors[:7]) == {0.5, 1.0, 2.0, 3.0, 4.0}


def test_runs_of_a_job_s_own_kind_are_drawn_where_there_are_some(tmp_path: Path) -> None:
    """A saturated job would have the costs of threads that sleep between their records, 1.7 times as long."""
    cost = Cost("x", (0.01,), 0.01, 0.01, 0.01, 9, (0.5, 2.0, 0.6, 3.0, 0.7, 1.0))
    service = replace(cost, sets="operator.slow.service_s", factors=(1.0, 1.1))
    kinds = (True, False, True, False, True, False)
    profile = Profile({"x": cost, "service_slow": service}, {}, (), (), (), 0, {}, kinds)
    assert profile.alike(True).costs["x"].factors == (0.5, 0.6, 0.7)
    assert profile.alike(False).costs["x"].factors == (2.0, 3.0, 1.0)
    assert profile.alike(True).costs["service_slow"] == service
    few = replace(profile, saturated=(True, False, True, False, False, False))
    assert few.alike(True) == few  # two say nothing of how far apart they are
    assert replace(profile, saturated=()).alike(True).costs == profile.costs
    path = tmp_path / "costs.toml"
    path.write_text(profile.text())
    assert read_profile(path) == profile


def test_how_far_runs_are_apart_counts_once() -> None:
    """A run ten times as slow would draw values of both runs, ten times as long: the largest of eight tasks is late."""
    rows = (4.0, 5.0, 6.0)
    checkpoints = [
        tuple(ObservedCheckpoint(n, 99.0, 0.0, 0.0, (_row("a", 0, slow * rows[n % 3]),)) for n in range(30))
        for slow in (1.0, 10.0)
    ]
    runs = [ObservedJob(str(each[0]), "aligned", {"a": ()}, {"a": 1}, False, {}, {}, {}, each) for each in checkpoints]
    command = calibrate(runs).costs["command"]
    assert command.mean_s == pytest.approx(0.0275)
    assert command.factors == (pytest.approx(2 / 11, abs=1e-3), pytest.approx(20 / 11, abs=1e-3))
    assert min(command.values_s) == pytest.approx(0.0275 * 0.8)
    assert max(command.values_s) == pytest.approx(0.0275 * 1.2)


def test_a_slow_run_with_many_bytes_does_not_make_bytes_slow() -> None:
    """Slow runs would be taken for runs of many bytes: of one cluster a byte took three times as long, or less than
    nothing, as the one or the other configuration was left out."""
    random = Random(1)
    fast, slow = (
        [
            (size, late + size / 1e5 + random.gauss(0.0, 0.3))
            for size in (random.uniform(low, 3 * low) for _ in range(40))
        ]
        for low, late in ((1e5, 0.0), (4e5, 40.0))
    )
    low, middle, high = slopes([fast, slow])
    assert low < 1e-5 < high
    assert middle == pytest.approx(1e-5, rel=0.05)
    assert slopes([[*fast, *slow]])[1] > 3e-5
    assert slopes([[(1.0, 1.0), (2.0, 3.0)], [(1.0, 9.0)]]) == (2.0, 2.0, 2.0)


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
    for name in ("unaligned_begin", "flush_lateness", "channel_state", "channel_state_rate", "speed_slow_sink"):
        assert f"not determined: {name}: " in out


def test_checkpoints_that_failed_are_counted(tmp_path: Path) -> None:
    """Costs would be of the few checkpoints that were quick enough, and a reader think of all."""
    answers = json.loads(CHAINED.read_text(encoding="utf-8"))
    (place,) = (path for path in answers if path.endswith("/checkpoints"))
    history = answers[place]["history"]
    for each in (done := [each for each in history if each["status"] == "COMPLETED"])[:2]:
        each["status"] = "FAILED"
    (partly := tmp_path / "partly.json").write_text(json.dumps(answers), encoding="utf-8")
    runs = [observed_in(found, job_of(found, None)) for found in map(answers_of, ([str(partly)], [str(CHAINED)]))]
    assert [run.failed for run in runs] == [2, 0]
    assert calibrate(runs[:1]).undetermined["failed"] == f"2 of {len(done)} checkpoints, which are in no cost"
    assert "failed" not in calibrate(runs[1:]).undetermined


def test_services_of_a_table_are_costs_where_its_runs_agree(tmp_path: Path) -> None:
    """A record of 4 ms that takes 4.1 would be one of 4; and runs of 4 and of 40 ms would make one of 22."""
    runs = {run.name: run for run in observed_from([str(DATA / "third")], load("flink_chain"))}
    alike = [run for name, run in runs.items() if name.startswith("R_chain_sat_4ms")]
    profile = calibrate(alike)
    assert profile.costs["service_slow"].mean_s == pytest.approx(0.00412, abs=0.00002)
    large = [run for name, run in runs.items() if name.startswith("R_chain_sat_rec41003")]
    both = calibrate([*alike, *large])
    assert "service_slow" not in both.costs
    assert both.undetermined["service_slow"].startswith("4.05 to 40.8 ms for a record in these runs")
    assert (profile.configurations, both.configurations) == (1, 2)
    (tmp_path / "costs.toml").write_text(both.text(), encoding="utf-8")
    assert read_profile(tmp_path / "costs.toml") == both


def test_a_barrier_that_keeps_its_place_is_no_cost_of_an_unaligned_one() -> None:
    """From a job with exchanges of one to one, unaligned checkpoints of another would be predicted to take seconds."""
    runs = observed_from([str(DATA / "third")], load("flink_chain"))
    forward = [run for run in runs if "forward" in run.name and not run.always_aligns]
    assert {run.aligning for run in forward} == {("fast", "slow")}
    assert {run.aligning for run in runs if run not in forward and "forward" not in run.name} == {()}
    assert not [rows for run in forward for each in run.checkpoints if (rows := unaligned_beginnings(run, each))]
    profile = calibrate(forward)
    assert "unaligned_begin" in profile.undetermined
    assert profile.costs["acknowledgement"].mean_s < 0.02  # with the alignment in it, it were a second


def test_a_part_that_waits_for_others_of_its_process_says_nothing_of_writes() -> None:
    """Subtasks of a process write into one file: the source's 570 ms, until another has aligned, would be its work."""
    answers = answers_of([str(CHAINED.with_name("forward_local_saturated_unaligned.json"))])
    run = observed_in(answers, job_of(answers, None))
    waited = [each.async_ms for checkpoint in run.checkpoints for each in checkpoint.of("source")]
    assert fmean(each for each in waited if each is not None) > 500
    rows = [[row for each in run.checkpoints for row in writes(of, each)] for of in (run, replace(run, is_local=False))]
    assert max(rows[0], default=0.0) < 10 < 500 < max(rows[1])  # where each has a file of its own, it is work
    local = next(run for run in observed_from([str(DATA / "sixth")], load("flink_chain")) if "4ms_unal" in run.name)
    last = [
        [row for each in local.checkpoints for row in channel_state(of, each)]
        for of in (local, replace(local, is_local=False))
    ]
    assert 0 < fmean(last[0]) < 0.8 * fmean(last[1])


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
