"""The simulation predicts the measured jobs of the real cluster, however they align."""

from __future__ import annotations

import pytest

from barrierlab.sim import load, run
from barrierlab.sim.sweep.measured import (
    END_TO_END,
    TIMEOUT,
    MeasuredJob,
    MeasuredStatistic,
    compare,
    load_measured,
    mean_of,
    statistics_of,
)

JOBS = {job.name: job for job in load_measured()}
# Those that are quick to simulate, of each scenario, topology and mode, under saturation and below.
QUICK = [
    "L_chain_sat_4ms_aligned",
    "V_p1_chain_sat_aligned",
    "R_chain_rho090_aligned",
    "R_union_slowmerge_sat_aligned",
    "R_union_slowmerge_rho080_aligned",
    "R_chain_sat_4ms_unaligned",
    "L_chain_sat_4ms_unaligned",
    "R_chain_sat_4ms_timeout",
    "R_chain_rho090_timeout",
]


def _compared(job: MeasuredJob, seeds: range, until_s: float | None = None) -> list[MeasuredStatistic]:
    """The cells of one measured run, predicted from some seeds."""
    found = []
    for seed in seeds:
        result = run(load(job.scenario, {**job.settings, **({} if until_s is None else {"until_s": until_s})}), seed)
        assert result.verdict == "holds", result.violations
        steady = [row for row in result.checkpoint_rows() if row["steady"]]
        assert {row["status"] for row in steady} == {"COMPLETED"}
        if job.mode == TIMEOUT:
            assert {row["checkpoint_type"] for row in steady} == {
                "UNALIGNED_CHECKPOINT" if job.saturated else "CHECKPOINT"
            }
        found.append(statistics_of(steady, result.task_rows()))
    return compare({job.name: mean_of(found)})


@pytest.mark.parametrize("name", QUICK)
def test_a_measured_job_is_predicted(name: str) -> None:
    """A change would take the simulation away from what was measured, and only the long suite would say so."""
    cells = _compared(JOBS[name], range(1, 2), 20.0)
    judged = [cell for cell in cells if cell.good is not None]
    assert {END_TO_END.name} <= {cell.statistic for cell in judged}
    for cell in judged:
        if cell.target.startswith("±"):  # one short run: the tolerance of the long one, and half as much again
            short = cell.unit == "ms" and cell.measured < 200  # of which one run says little
            assert short or cell.ratio == pytest.approx(1.0, abs=0.15), cell
        else:
            assert cell.good, cell


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_every_measured_job_is_predicted_within_its_targets(name: str) -> None:
    """The table of the README would not be true."""
    cells = _compared(JOBS[name], range(1, 4))
    assert [cell for cell in cells if cell.good is not None]
    assert [cell for cell in cells if cell.good is False] == []
