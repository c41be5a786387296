"""`barrierlab advise`: the interval of a job, beside runs with failures, and the other settings."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barrierlab.sim.advise.advice import advise, span
from barrierlab.sim.advise.laws import best_period_s, utilisation
from barrierlab.sim.advise.limits import better_mode, limits, share_failing, tolerable
from barrierlab.sim.advise.pieces import NoAdviceError, Pieces, measured
from barrierlab.sim.advise.simulated import simulated
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.scenario.load import load
from barrierlab.sim.scenario.settings import Fault, Scenario
from tests.sim.support import barrierlab, scenario
from tests.sim.test_advise_laws import ROWS


def job(folder: Path, **changes: Any) -> Scenario:
    """Two tasks, of which the second stands still for two seconds in a checkpoint."""
    base = {
        "topology": "a->s",
        "until_s": 300.0,
        "source": {"a": {"rate_per_s": 2.0}},
        "operator": {"s": {"kind": "sink", "service_s": 0.1}},
        "checkpoint": {"interval_s": 10.0, "sync_s": 2.0, "async_s": 1.0},
        "recovery": {"detection_s": 1.0, "restart_s": 9.0},
    }
    return scenario(folder, base, **changes)


def test_the_advice_is_the_closed_form_of_the_jobs_own_pieces(tmp_path: Path) -> None:
    """The interval would be that of another job."""
    pieces = measured(job(tmp_path))
    assert pieces.cost_s == pytest.approx(2.0)
    assert pieces.down_s == pytest.approx(10.0)
    assert pieces.duration_s == pytest.approx(5.0)  # the source stands still, then the sink, which then writes
    advice = advise(pieces, 3600.0, 10.0)
    assert advice.interval_s == pytest.approx(best_period_s(2.0, 3600.0), rel=1e-9)
    shares = {choice.name: choice.utilisation for choice in advice.choices}
    assert shares["advised"] == max(shares.values())
    assert shares["Flink's default: none"] == 0.0
    assert shares["the scenario's own"] < 0.9 * shares["advised"]
    low_s, high_s = advice.band_s
    assert low_s < advice.interval_s < high_s
    assert f"every {advice.interval_s:.3g} s" in advice.sentence or "min" in advice.sentence


def test_a_lag_is_kept_or_there_is_no_advice(tmp_path: Path) -> None:
    """A job would be further behind after a failure than was asked for."""
    pieces = measured(job(tmp_path))
    advice = advise(pieces, 3600.0, None, 60.0)
    assert advice.interval_s + pieces.duration_s + pieces.down_s == pytest.approx(60.0)
    assert advice.choices[0].catch_up_s == pytest.approx(60.0 * pieces.load / (1 - pieces.load))
    assert advice.limit == "lag below 60 s"
    with pytest.raises(NoAdviceError, match="no interval keeps the lag below 12 s"):
        advise(pieces, 3600.0, None, 12.0)


def test_a_lag_that_the_best_interval_keeps_changes_nothing(tmp_path: Path) -> None:
    """More time would be lost, and a failure cost a longer lag, because a lag was asked for."""
    pieces = measured(job(tmp_path))
    best, advice = (advise(pieces, 3600.0, None, lag_s) for lag_s in (None, 600.0))
    assert (advice.interval_s, advice.limit) == (best.interval_s, "")
    assert advice.choices[0].lag_s is not None
    assert advice.choices[0].lag_s < 600.0
    assert f"at most {span(advice.choices[0].lag_s)} behind; failures four times as rare" in advice.sentence


def test_a_job_that_cannot_keep_up_gets_no_advice(tmp_path: Path) -> None:
    """It would get an interval, and fall behind for ever."""
    with pytest.raises(NoAdviceError, match="saturated: s is busy"):
        measured(job(tmp_path, operator={"s": {"service_s": 0.6}}))
    pieces = measured(job(tmp_path, operator={"s": {"service_s": 0.4}}))
    with pytest.raises(NoAdviceError, match="falls behind for ever"):
        advise(pieces, 15.0, None)


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=[pytest.mark.slow] * (n % 3 > 0 or n == 3)) for n in range(12)]
)
def test_a_thin_source_is_no_saturated_job(number: int, tmp_path: Path) -> None:
    """A job with an event a minute would get no advice but more parallelism, as two of three events came late."""
    random = Random(number)
    rate, load = 10 ** random.uniform(-3.0, -0.7), random.uniform(0.1, 0.7)
    thin = {"a": {"rate_per_s": rate, "arrivals": "poisson"}}

    def pieces(load: float) -> Pieces:
        service_s = {"dist": "exponential", "mean": load / rate}
        return measured(job(tmp_path, source=thin, operator={"s": {"service_s": service_s}}))

    assert pieces(load).load == pytest.approx(load, abs=0.25)
    with pytest.raises(NoAdviceError, match="saturated"):
        pieces(2.0)


def test_a_queue_that_may_be_chance_is_no_saturated_job(tmp_path: Path) -> None:
    """A job that is busy nine tenths of its time would get no advice, as six of a hundred events came late."""
    busy = {"s": {"service_s": {"dist": "exponential", "mean": 3.0}}}
    pieces = measured(job(tmp_path, source={"a": {"rate_per_s": 0.3, "arrivals": "poisson"}}, operator=busy))
    assert pieces.load == pytest.approx(0.9, abs=0.02)


def test_a_task_that_never_waits_is_saturated_however_little_piles_up(tmp_path: Path) -> None:
    """It would get an interval, and fall behind for ever, though by two events of a hundred."""
    with pytest.raises(NoAdviceError, match="saturated: s is busy 100 %"):
        measured(job(tmp_path, operator={"s": {"service_s": 0.51}}, checkpoint={"sync_s": 0.0}))


def test_the_simulation_is_beside_the_closed_form(tmp_path: Path) -> None:
    """The check would be of another job, or say nothing where both part."""
    small = job(tmp_path)
    pieces = measured(small)
    points, times = simulated(small, pieces, 600.0, advise(pieces, 600.0, None).interval_s, 5)
    assert times > 1
    assert [round(point.interval_s / points[0].interval_s) for point in points] == [1, 2, 4]
    for point in points:
        assert abs(point.utilisation - point.closed) < 0.03
        assert point.half_width < 0.05
        assert not point.differs or point.why
    assert all(point.completed > 100 and point.longest_s >= 3.0 for point in points)


def utilisations(folder: Path, cost_s: float, mtbf_s: float, lost_s: float, failures: int, seed: int) -> float:
    """Return the share of a run's time that is work which stays: failures strike as they like, restarts included."""
    period_s = best_period_s(cost_s, mtbf_s)
    found = scenario(
        folder,
        {
            "topology": "a->s",
            "until_s": failures * mtbf_s,
            "source": {"a": {"rate_per_s": 1 / mtbf_s, "sync_s": cost_s}},
            "operator": {"s": {"kind": "sink"}},
            "checkpoint": {"interval_s": period_s - cost_s, "min_pause_s": period_s - cost_s},
            "recovery": {"detection_s": 0.0, "restart_s": lost_s},
        },
    )
    crash = Fault("crash", "crash all", task="all", rate_per_s=1 / mtbf_s)
    engine = Engine(replace(found, faults=(crash,)), seed)
    engine.run()
    records = engine.recovery.records
    ended = [(r.triggered_ns, r.ended_ns) for r in engine.metrics.checkpoints.values() if r.status == "COMPLETED"]
    # Of a period that ended with a complete checkpoint stays what was not the checkpoint; a failure ends all others.
    kept_s = len(ended) * (period_s - cost_s)
    # Control variate: as many failures as expected struck. What one more costs is their closed form's slope.
    struck, expected = sum(record.starts for record in records), engine.clock.now / 1e9 / mtbf_s
    rate = struck / (engine.clock.now / 1e9)
    raw = kept_s / (engine.clock.now / 1e9)
    at, mean = (utilisation(period_s, cost_s, 1 / each, lost_s, exposed=True) for each in (rate, 1 / mtbf_s))
    assert abs(struck - expected) < 5 * math.sqrt(expected)
    return raw - (at - mean)


CHECKPOINTS = 60_000  # of each row, over all seeds: the standard error is below 0.001 in each
SEEDS = range(1, 9)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_simulated_utilisation_is_that_of_the_closed_form(row: tuple[float, ...], tmp_path: Path) -> None:
    """The advice would rest on a formula that the simulated job does not follow."""
    cost_s, mtbf_s, lost_s = row[0], row[1], row[-1]
    period_s = best_period_s(cost_s, mtbf_s)
    failures = math.ceil(CHECKPOINTS * period_s / mtbf_s / len(SEEDS))
    found = [utilisations(tmp_path, cost_s, mtbf_s, lost_s, failures, seed) for seed in SEEDS]
    exact = utilisation(period_s, cost_s, mtbf_s, lost_s, exposed=True)
    assert sum(found) / len(found) == pytest.approx(exact, abs=0.002)


POINTS = 25


def random_job(folder: Path, number: int) -> tuple[Scenario, float]:
    """Return a job and its time between failures.

    Ranges, log-uniform: stop 0.1 to 5 s, writing 0.1 to 20 s, restart 1 to 120 s, failures 100 to 3000 stops apart;
    1 to 3 subtasks of 5 records a second each, load 0.1 to 0.6. (With slower records, durations of few checkpoints vary
    by more than the intervals differ in cost.)
    """
    random = Random(number)

    def log(low: float, high: float) -> float:
        return float(low * (high / low) ** random.random())

    sync_s = log(0.1, 5.0)
    mtbf_s = sync_s * log(100, 3000)
    subtasks, load = random.randint(1, 3), random.uniform(0.1, 0.6)
    found = job(
        folder,
        source={"a": {"rate_per_s": 5.0, "parallelism": subtasks, "arrivals": "poisson"}},
        operator={"s": {"service_s": {"dist": "exponential", "mean": 0.2 * load}, "parallelism": subtasks}},
        checkpoint={"sync_s": sync_s, "async_s": {"dist": "lognormal", "mean": log(0.1, 20.0), "cv": 0.5}},
        recovery={"detection_s": 0.5, "restart_s": log(1.0, 120.0)},
    )
    return found, mtbf_s


def cost_at(found: Scenario, pieces: Pieces, mtbf_s: float, interval_s: float) -> float:
    """Return the share of time lost at an interval: checkpoints simulated, failures integrated out exactly."""
    checkpoint = replace(found.checkpoint, interval_s=interval_s, first_s=None)
    engine = Engine(replace(found, checkpoint=checkpoint, until_s=40 * max(interval_s, pieces.least_s)), 1)
    engine.run()
    done = [r for r in engine.metrics.checkpoints.values() if r.ended_ns is not None]
    period_s = (done[-1].triggered_ns - done[0].triggered_ns) / 1e9 / (len(done) - 1)
    duration_s = sum(r.ended_ns - r.triggered_ns for r in done if r.ended_ns is not None) / 1e9 / len(done)
    stop_s = sum(max(part.sync_ns for part in r.parts.values()) for r in done) / 1e9 / len(done)
    return 1 - utilisation(period_s, stop_s, mtbf_s, pieces.down_s + duration_s - stop_s, exposed=True)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 21))
def test_no_interval_of_a_sweep_costs_one_percent_less(number: int, tmp_path: Path) -> None:
    """The advice would be of the pieces of one short run, and another interval be better in the simulated job."""
    found, mtbf_s = random_job(tmp_path, number)
    pieces = measured(found)
    advised_s = advise(pieces, mtbf_s, None).interval_s
    swept = [max(advised_s * 5 ** (2 * n / (POINTS - 1) - 1), pieces.least_s) for n in range(POINTS)]
    best = min(cost_at(found, pieces, mtbf_s, each_s) for each_s in swept)
    assert cost_at(found, pieces, mtbf_s, advised_s) <= 1.01 * best


def test_a_mode_must_be_worth_a_change() -> None:
    """A job would be changed for a difference that is in the noise, or kept where another mode costs a tenth."""
    assert better_mode({"unaligned": 0.05, "aligned": 0.0496}) == "unaligned"
    assert better_mode({"unaligned": 0.05, "aligned": 0.0494}) == "aligned"


def test_failed_checkpoints_are_tolerated_until_a_run_of_them_is_rare() -> None:
    """Jobs would restart for nothing, or go on for ever without a checkpoint."""
    assert share_failing(0, 58) == pytest.approx(1 - 0.05 ** (1 / 58))
    assert share_failing(3, 3) == 1.0
    for failing in (0.3, 0.1, 0.01):
        k = tolerable(failing, 30.0, 3600.0)
        assert failing ** (k + 1) / 30.0 <= 0.1 / 3600.0 < failing**k / 30.0
    assert tolerable(1.0, 30.0, 3600.0) == 0


def test_the_timeout_is_above_all_that_was_seen(tmp_path: Path) -> None:
    """Sound checkpoints would expire, or a stuck one hold the next up for ten minutes."""
    small = job(tmp_path)
    pieces = measured(small)
    bounds = limits(pieces, [], 3600.0, 60.0)
    assert bounds.timeout_s == pytest.approx(2 * pieces.longest_s)
    assert (bounds.seen, bounds.failing) == (pieces.completed, share_failing(0, pieces.completed))
    assert bounds.window_s == (bounds.tolerable_failures + 1) * 60.0


SMALL = """
topology = "a->s"
until_s = 60.0
[source.a]
rate_per_s = 5.0
[operator.s]
kind = "sink"
[checkpoint]
interval_s = 10.0
sync_s = 0.5
"""


def test_the_command_says_it_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A user would have to guess what to write into the configuration."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    status, out, err = barrierlab(capsys, "advise", str(path), "--mtbf", "10m", "--seeds", "2", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["interval_s"] == pytest.approx(best_period_s(0.5, 600.0))
    assert (found["mode"], set(found["time_lost_by_mode"])) == ("aligned", {"aligned", "unaligned"})
    assert found["limits"]["timeout_s"] > 0.5
    assert len(found["simulated"]) == 3
    status, out, _ = barrierlab(capsys, "advise", str(path), "--mtbf", "10m", "--seeds", "0", "--slo", "lag=30s")
    assert status == 0
    for words in ("Young", "Daly", "five minutes", "Flink's default", "not simulated", "Keep aligned", "Tolerate "):
        assert words in out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["crash_and_recover", "--mtbf", "1h", "--seeds", "1"], 2, "one run has no spread"),
        (["crash_and_recover", "--mtbf", "soon"], 2, "'soon': allowed: a time above 0"),
        (["crash_and_recover", "--mtbf", "1h", "--slo", "60s"], 2, "'60s': allowed: lag=TIME"),
        (["camera_imu_lidar", "--mtbf", "1h"], 2, "takes no checkpoints"),
    ],
    ids=str,
)
def test_a_wrong_word_is_one_line(
    arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip of the pen would end in a traceback."""
    found, out, err = barrierlab(capsys, "advise", *arguments)
    assert (found, out, len(err.splitlines())) == (status, "", 1)
    assert words in err


def test_no_advice_is_undecided(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A script would go on with an interval that there is not."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace('kind = "sink"', 'kind = "sink"\nservice_s = 0.3'), encoding="utf-8")
    status, out, _ = barrierlab(capsys, "advise", str(path), "--mtbf", "1h")
    assert (status, out.startswith("no advice: saturated")) == (3, True)
    status, out, _ = barrierlab(capsys, "advise", str(path), "--mtbf", "1h", "--json")
    assert (status, json.loads(out)["interval_s"]) == (3, None)


def test_a_shipped_scenario_is_advised() -> None:
    """Anything that the help shows would not work."""
    pieces = measured(load("crash_and_recover"))
    assert advise(pieces, 3600.0, 3.0).interval_s == pytest.approx(best_period_s(pieces.cost_s, 3600.0))
