"""The interval of checkpoints, and the time to catch up: the simulation gives what the formulas give.

Failures come at random, without memory, so every comparison is a t interval over independent runs: the exact value lies
within the 99.9 % interval, and the interval is narrow, so that a wrong simulation could not hide in it.
"""

from __future__ import annotations

import math
import statistics
from functools import cache
from pathlib import Path

import pytest
from scipy import stats
from scipy.special import lambertw

from barrierlab.sim import Scenario, load
from barrierlab.sim.checkpoint.engine import Engine
from tests.sim.support import scenario

CONFIDENCE = 0.999
NARROW = 0.09
SERVICE_S = 0.1
MEAN_S, COST_S = 60.0, 2.0  # between failures; of a checkpoint, during which its source stands still


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half width."""
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), half


def optimal_period_s(mean_s: float, cost_s: float) -> float:
    """The period, cost included, that loses least; exact for failures without memory, whatever a restart takes."""
    share = cost_s / mean_s
    return float(mean_s * (1 + share + lambertw(-math.exp(-1 - share)).real))


def expected_utilisation(period_s: float, restart_s: float) -> float:
    """Useful time over all time, if all since the last checkpoint is lost and a restart can fail like anything else.

    The barrier waits for the service under way when its checkpoint is triggered, so the work of a period is whole
    services, and the period is longer by the rest of that one.
    """
    work_s = (math.floor((period_s - COST_S) / SERVICE_S + 1e-9) + 1) * SERVICE_S
    rate = 1 / MEAN_S
    return work_s / (MEAN_S * math.exp(rate * restart_s) * (math.exp(rate * (work_s + COST_S)) - 1))


def saturated(folder: Path, period_s: float, restart_s: float, until_s: float) -> Scenario:
    """A source that always has an event, and pauses for a checkpoint `period_s - COST_S` after the last one ended."""
    return scenario(
        folder,
        {
            "topology": "source->sink",
            "until_s": until_s,
            "source": {"source": {"rate_per_s": 1e9, "service_s": SERVICE_S, "sync_s": COST_S}},
            "operator": {"sink": {"kind": "sink"}},
            "checkpoint": {"interval_s": period_s - COST_S, "min_pause_s": period_s - COST_S},
            "recovery": {"detection_s": 0.0, "restart_s": restart_s},
            "fault": [{"kind": "crash", "task": "all", "rate_per_s": 1 / MEAN_S}],
        },
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all, so that what was simulated once is not simulated again."""
    return tmp_path_factory.mktemp("laws")


@cache
def utilisations(
    folder: Path, period_s: float, restart_s: float = 0.0, seeds: int = 16, until_s: float = 3000.0
) -> list[float]:
    """Of each run, what share of its time made events that stayed."""
    small = saturated(folder, period_s, restart_s, until_s)
    found = []
    for seed in range(seeds):
        engine = Engine(small, seed)
        engine.run()
        (source,) = engine.job.source_nodes
        found.append((source.task.position - 1) * SERVICE_S / (engine.clock.now / 1e9))
    return found


PERIODS = (5.0, optimal_period_s(MEAN_S, COST_S), 50.0)


@pytest.mark.parametrize(
    ("mean_s", "cost_s", "exact_s"),
    [
        (86400, 0.5, 294.106),
        (3600, 1, 85.188),
        (3600, 10, 271.703),
        (3600, 60, 677.891),
        (600, 5, 79.163),
        (600, 100, 383.205),
    ],
)
def test_the_formula_for_the_period_is_the_published_one(mean_s: float, cost_s: float, exact_s: float) -> None:
    """The simulation would be held against something else."""
    assert optimal_period_s(mean_s, cost_s) == pytest.approx(exact_s, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("period_s", PERIODS)
def test_what_failures_cost_is_what_the_formula_says(period_s: float, folder: Path) -> None:
    """More or less work would be lost at a failure than what came after the last checkpoint."""
    mean, half = interval(utilisations(folder, period_s))
    exact = expected_utilisation(period_s, 0.0)
    assert half < NARROW, f"{mean:.4f} ± {half:.4f} is too wide to say anything of {exact:.4f}"
    assert abs(mean - exact) <= half, f"{mean:.4f} ± {half:.4f} does not hold {exact:.4f}"


@pytest.mark.slow
def test_a_restart_costs_its_time_and_can_fail_too(folder: Path) -> None:
    """A failure during a recovery would cost nothing, or the whole recovery twice."""
    period_s = PERIODS[1]
    mean, half = interval(utilisations(folder, period_s, 20.0))
    exact = expected_utilisation(period_s, 20.0)
    assert half < NARROW
    assert abs(mean - exact) <= half, f"{mean:.4f} ± {half:.4f} does not hold {exact:.4f}"
    without, _ = interval(utilisations(folder, period_s))
    assert mean + half < without


@pytest.mark.slow
@pytest.mark.parametrize("restart_s", [0.0, 20.0])
@pytest.mark.parametrize("other_s", [PERIODS[0], PERIODS[2]])
def test_the_optimal_period_is_the_best(restart_s: float, other_s: float, folder: Path) -> None:
    """The advice on the interval would be wrong, or hang on how long a restart takes (paired runs, same failures)."""
    best = utilisations(folder, PERIODS[1], restart_s)
    other = utilisations(folder, other_s, restart_s)
    mean, half = interval([a - b for a, b in zip(best, other, strict=True)])
    assert mean - half > 0, f"{mean:.4f} ± {half:.4f} better than {other_s} s"


# Catching up.


def catching_up(folder: Path, rate_per_s: float, capacity_per_s: float, fails_s: float, down_s: float) -> Scenario:
    """A source that can make events faster than they fall due, and one failure."""
    return scenario(
        folder,
        {
            "topology": "source->sink",
            "until_s": 100.0,
            "source": {"source": {"rate_per_s": rate_per_s, "service_s": 1 / capacity_per_s}},
            "operator": {"sink": {"kind": "sink"}},
            "channel": {"default": {"capacity": 1000}},
            "checkpoint": {"interval_s": 10.0},
            "recovery": {"detection_s": 1.0, "restart_s": down_s - 1.0},
            "fault": [{"kind": "crash", "task": "all", "at_s": fails_s}],
        },
    )


@pytest.mark.parametrize(
    ("rate", "capacity", "fails_s", "down_s"),
    [(75.0, 100.0, 35.0, 5.0), (80.0, 100.0, 39.9, 2.0), (50.0, 100.0, 32.5, 5.0), (70.0, 100.0, 31.0, 3.0)],
)
def test_catching_up_takes_what_was_missed_over_what_is_to_spare(
    rate: float, capacity: float, fails_s: float, down_s: float, tmp_path: Path
) -> None:
    """(downtime + age of the checkpoint) * load / (1 - load): lag after a recovery would be reported wrong."""
    engine = Engine(catching_up(tmp_path, rate, capacity, fails_s, down_s), 1)
    engine.run()
    (record,) = engine.recovery.records
    load_factor = rate / capacity
    age_s = fails_s - 30.0  # the last trigger, and what it takes a barrier to pass is nothing here
    exact_s = (down_s + age_s) * load_factor / (1 - load_factor)
    assert record.caught_up_ns is not None
    assert record.restored_ns is not None
    assert record.restored_ns / 1e9 == pytest.approx(fails_s + down_s, abs=1e-9)
    # Whole events, at either end: the remainder of a service, and the gap between two arrivals.
    assert (record.caught_up_ns - record.restored_ns) / 1e9 == pytest.approx(exact_s, abs=3 / (capacity - rate))
    assert record.replayed == pytest.approx(rate * age_s, abs=2)


def test_the_mean_time_to_catch_up_is_that_of_the_mean_age(tmp_path: Path) -> None:
    """Failures at any moment of the interval: mean age = interval / 2 where a checkpoint takes no time."""
    rate, capacity, down_s = 50.0, 100.0, 4.0
    found = []
    for step in range(10):
        engine = Engine(catching_up(tmp_path, rate, capacity, 30.5 + step, down_s), step)
        engine.run()
        record = engine.recovery.records[0]
        assert record.caught_up_ns is not None
        assert record.restored_ns is not None
        found.append((record.caught_up_ns - record.restored_ns) / 1e9)
    assert statistics.fmean(found) == pytest.approx((down_s + 5.0) * 1.0, abs=0.1)


def test_the_shipped_scenario_tells_what_the_formula_needs() -> None:
    """A reader could not check the catch-up time by hand."""
    engine = Engine(load("crash_and_recover"), 1)
    engine.run()
    for record in engine.recovery.records:
        assert record.noticed_ns is not None
        assert record.restored_ns is not None
        assert record.failed_ns < record.noticed_ns < record.restored_ns
