"""The closed forms of the interval: reference rows that were computed elsewhere, and what must be true of any."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from barrierlab.sim.advise.laws import (
    band_s,
    best_period_s,
    catch_up_s,
    daly_work_s,
    largest_lag_after_stuck_s,
    largest_lag_s,
    utilisation,
    young_work_s,
)
from barrierlab.sim.checkpoint.result import run
from barrierlab.sim.scenario.load import load

# cost, time between failures, Young, Daly, the exact work, the exact period, utilisation there, what a restart loses
ROWS = [
    (0.5, 86400, 293.939, 293.606, 293.606, 294.106, 0.996486, 10),
    (1, 3600, 84.853, 84.188, 84.188, 85.188, 0.968543, 30),
    (10, 3600, 268.328, 261.703, 261.703, 271.703, 0.912103, 60),
    (60, 3600, 657.267, 617.876, 617.891, 677.891, 0.801642, 120),
    (5, 600, 77.460, 74.162, 74.163, 79.163, 0.848124, 20),
    (30, 600, 189.737, 170.264, 170.286, 200.286, 0.651081, 60),
    (100, 600, 346.410, 282.951, 283.205, 383.205, 0.479992, 60),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_formulas_give_the_reference_rows(row: tuple[float, ...]) -> None:
    """The advice would be another than the literature's."""
    cost_s, mtbf_s, young, daly, work, period, best, lost_s = row
    assert young_work_s(cost_s, mtbf_s) == pytest.approx(young, abs=6e-4)
    assert daly_work_s(cost_s, mtbf_s) == pytest.approx(daly, abs=6e-4)
    assert best_period_s(cost_s, mtbf_s) == pytest.approx(period, abs=6e-4)
    assert best_period_s(cost_s, mtbf_s) - cost_s == pytest.approx(work, abs=6e-4)
    assert utilisation(best_period_s(cost_s, mtbf_s), cost_s, mtbf_s, lost_s) == pytest.approx(best, abs=6e-7)


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("exposed", [False, True])
def test_no_other_period_is_better_and_the_band_ends_where_it_says(row: tuple[float, ...], exposed: bool) -> None:
    """The optimum would be one of another function, or the band too wide."""
    cost_s, mtbf_s, lost_s = row[0], row[1], row[-1]
    best_s = best_period_s(cost_s, mtbf_s)

    def lost(period_s: float) -> float:
        return 1 - utilisation(period_s, cost_s, mtbf_s, lost_s, exposed)

    assert lost(best_s) <= min(lost(best_s * (1 + by)) for by in (-0.1, -1e-3, 1e-3, 0.1))
    for end_s, further in zip(band_s(cost_s, mtbf_s, lost_s, exposed), (0.99, 1.01), strict=True):
        assert lost(end_s) == pytest.approx(1.01 * lost(best_s), rel=1e-9)
        assert lost(end_s * further) > 1.01 * lost(best_s)


def test_a_tiny_cost_keeps_its_digits() -> None:
    """Near its branch point W0 would give nothing but rounding: an interval of 0 s."""
    for mtbf_s in (1e6, 1e9, 1e15):
        assert best_period_s(1e-3, mtbf_s) == pytest.approx(math.sqrt(2e-3 * mtbf_s), rel=1e-3)
    below, above = (best_period_s(share, 1.0) for share in (0.999e-8, 1.001e-8))
    assert below < above < 1.01 * below
    assert best_period_s(0.0, 3600.0) == 0.0


def test_ends_of_the_range() -> None:
    """An overflow, or work where there is no time for any."""
    assert utilisation(5.0, 5.0, 60.0) == 0.0
    assert utilisation(1e9, 5.0, 60.0) == 0.0
    assert daly_work_s(120.0, 60.0) == 60.0
    low_s, high_s = band_s(1.0, 60.0, 1e9, exposed=True)
    assert (low_s, high_s) == (1.0, math.inf)


def test_the_lag_is_what_is_to_be_read_again_and_what_arrived_meanwhile() -> None:
    """An interval would be said to keep a lag that it does not."""
    assert largest_lag_s(10.0, 1.0, 5.0) == 16.0
    assert catch_up_s(5 + 1 + 10 / 2, 0.8) == pytest.approx(44.0)
    assert catch_up_s(1.0, 1.0) == math.inf


STUCK = """
topology = "a->k"
until_s = 14.0
source.a.rate_per_s = 50.0
operator.k.kind = "sink"
checkpoint = { interval_s = 2.0, timeout_s = TIMEOUT, tolerable_failures = 9 }
recovery = { detection_s = 0.1, restart_s = 1.0 }
[[fault]]
kind = "lost_ack"
task = "k"
at_s = 3.9
for_s = 0.5
[[fault]]
kind = "crash"
task = "k"
at_s = AT
"""


@pytest.mark.parametrize("timeout_s", [0.5, 5.0])
def test_a_stuck_checkpoint_costs_its_own_interval_as_well(timeout_s: float, tmp_path: Path) -> None:
    """A timeout below the interval would seem to make a stuck checkpoint free of charge."""
    next_s = 4.0 + max(2.0, timeout_s)  # the second is stuck, and the job crashes as the third begins
    file = tmp_path / "stuck.toml"
    file.write_text(STUCK.replace("TIMEOUT", str(timeout_s)).replace("AT", str(next_s)))
    result = run(load(file))
    (failure,) = result.recovery_rows()
    assert failure["checkpoint_id"] == 1
    assert [row["failure_reason"] for row in result.checkpoint_rows()][1] == "expired"
    lag_s = failure["restored_ms"] / 1e3 - 2.0  # the state that is restored is of 2 s
    assert largest_lag_after_stuck_s(2.0, timeout_s, 0.0, failure["downtime_ms"] / 1e3) == pytest.approx(lag_s)
