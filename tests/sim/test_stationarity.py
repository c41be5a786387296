"""Numbers of a steady state: what grows is called so, what does not is left alone."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barrierlab.sim import load, run
from barrierlab.sim.checkpoint.stationarity import NOT_STATIONARY, STATIONARY, TOO_SHORT, mser5, piles_up, steady_state
from tests.sim.support import SKEWED, scenario, with_changes


def noise(count: int, seed: int, cv: float = 0.3) -> list[float]:
    """Durations about 100 ms, independent of each other."""
    random = Random(seed)
    return [max(random.gauss(100.0, 100.0 * cv), 1.0) for _ in range(count)]


def test_mser5_leaves_the_transient_out() -> None:
    """The warm-up would be a matter of taste (White, 1997)."""
    assert mser5([]) == mser5([3.0] * 4) == mser5([3.0] * 40) == 0
    assert mser5([500.0] * 10 + [100.0, 110.0] * 20) == 10
    assert mser5(list(map(float, range(40)))) == 20  # never more than half


@pytest.mark.parametrize("count", [20, 30, 60])
def test_a_steady_run_is_rarely_called_unsteady(count: int) -> None:
    """Nobody would heed a warning that comes with every run."""
    found = [steady_state(noise(count, seed)).verdict for seed in range(200)]
    assert found.count(NOT_STATIONARY) <= 12
    assert set(found) <= {STATIONARY, NOT_STATIONARY}


@pytest.mark.parametrize("count", [20, 30, 60])
def test_a_run_that_still_grows_is_called_so(count: int) -> None:
    """A number would be quoted that is of the length of the run (durations that double, or come in from far off)."""
    for seed in range(50):
        grows = [value * (1.0 + place / count) for place, value in enumerate(noise(count, seed, 0.1))]
        settles = [value * (1.0 - 0.8 * 0.8**place) for place, value in enumerate(noise(count, seed, 0.1))]
        assert steady_state(grows).verdict == NOT_STATIONARY
        if count == 20:  # of a transient of five in sixty, one in a dozen is left, and the mean hardly moves
            assert steady_state(settles).verdict == NOT_STATIONARY
    assert steady_state([1.0] * 10 + [2.0] * 10).verdict == NOT_STATIONARY
    assert steady_state([1.0] * 20).verdict == STATIONARY


def test_too_few_are_not_judged() -> None:
    """Nineteen checkpoints would be called steady."""
    state = steady_state([1.0] * 19)
    assert (state.verdict, state.why) == (TOO_SHORT, "19 checkpoints completed after the warm-up, of at least 20")
    assert steady_state([1.0]).why.startswith("1 checkpoint completed")


def test_what_piles_up() -> None:
    """Load above 1 would not be distinguished from a burst."""
    seconds = 1_000_000_000
    assert piles_up([(0, 0.0), (seconds, 5.0)], 100.0) is None
    assert piles_up([(0, 0.0), (5 * seconds, 50.0), (10 * seconds, 100.0)], 100.0) == pytest.approx(0.1)
    assert piles_up([(0, 0.0), (5 * seconds, 150.0), (10 * seconds, 100.0)], 100.0) == 0.0


def test_overload_is_named(tmp_path: Path) -> None:
    """A user who sees ever longer checkpoints would look for the cause in checkpoints."""
    job = with_changes(
        SKEWED, {"until_s": 12.0, "operator": {"join": {"service_s": 0.008}}}
    )  # 180 a second at 8 ms: load 1.44
    for catch_up in (1.0, None):
        busy = run(scenario(tmp_path, with_changes(job, {"source": {"a": {"catch_up_s": catch_up}}})), 1)
        assert busy.run_row()["piles_up_share"] == pytest.approx(1.0 - 1.0 / 1.44, abs=0.05)
        assert any(text.startswith("overload") and "load about 1.4" in text for text in busy.warnings)
    calm = run(scenario(tmp_path, with_changes(job, {"operator": {"join": {"service_s": 0.005}}})), 1)  # load 0.9
    assert calm.run_row()["piles_up_share"] < 0.05
    assert not any("overload" in text for text in calm.warnings)


def test_a_run_says_whether_it_is_steady() -> None:
    """The headline of a sweep would be of a transient: its runs ended while durations still rose."""
    settings = {"load": "1.1", "skew": "8", "buffers": 256, "checkpoint.interval_s": 1.0}
    short = run(load("skewed_join", settings | {"until_s": 5.5, "warmup_s": 2.0}), 1)
    assert short.steady_state.verdict == short.run_row()["steady_state"] == TOO_SHORT
    rising = run(load("skewed_join", settings | {"until_s": 35.0, "warmup_s": 0.0}), 1)
    assert rising.steady_state.verdict == NOT_STATIONARY
    assert rising.steady_state.left_out >= 5
    assert any(text.startswith("not stationary") for text in rising.warnings)
    steady = run(load("skewed_join", settings | {"until_s": 45.0, "warmup_s": 9.0}), 1)
    assert steady.steady_state.verdict == STATIONARY
    assert not any(text.startswith("not stationary") for text in steady.warnings)
