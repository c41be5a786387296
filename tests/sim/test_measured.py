"""The simulation predicts the measured jobs of the real cluster, however they align."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barrierlab.sim import load, run
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.measured import (
    DATA,
    END_TO_END,
    TIMEOUT,
    MeasuredJob,
    MeasuredStatistic,
    compare,
    load_measured,
    mean_of,
    measured_in,
    statistics_of,
)
from tests.sim.support import in_one_process

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


MISSED = {
    ("V_debloat200ms_chain_sat_aligned", "start delay of fast, ms"),
    ("V_debloat200ms_chain_sat_unaligned", "persisted, MB"),  # 0.764 of 0.695; on a quiet machine 0.771 of 0.825
    ("R_union_slowmerge_sat_aligned", "start delay of merge, ms"),
}
"""The figures beyond their targets by three seeds (`docs/explanation/measured.md`): 11 % too low, 15 % too high."""


@pytest.mark.parametrize("name", QUICK)
def test_a_measured_job_is_predicted(name: str) -> None:
    """A change would take the simulation away from what was measured, and only the long suite would say so."""
    cells = _compared(JOBS[name], range(1, 2), 20.0)
    judged = [cell for cell in cells if cell.good is not None]
    assert {END_TO_END.name} <= {cell.statistic for cell in judged}
    for cell in judged:
        if cell.target.startswith("±"):  # one short run: the tolerance of the long one, and half as much again
            short = cell.unit == "ms" and cell.measured < 200  # of which one run says little
            slack = 0.30 if (cell.job, f"{cell.statistic}, {cell.unit}") in MISSED else 0.15
            assert short or cell.ratio == pytest.approx(1.0, abs=slack), cell
        else:
            assert cell.good, cell


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_measured_job_is_predicted_within_its_targets_but_for_what_is_said_to_miss(name: str) -> None:
    """A prediction would get worse, or better, and the count of targets in README would still be the old one."""
    cells = _compared(JOBS[name], range(1, 4))
    assert [cell for cell in cells if cell.good is not None]
    missed = {(cell.job, f"{cell.statistic}, {cell.unit}") for cell in cells if cell.good is False}
    assert missed == {(job, statistic) for job, statistic in MISSED if job == name}


def test_another_folder_is_predicted_as_the_shipped_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Runs of the same jobs that somebody else measured could not be laid beside, or would be judged otherwise."""
    head, *rows = (DATA / "runs.csv").read_text(encoding="utf-8").splitlines()
    [row] = [row for row in rows if row.startswith("L_chain_sat_4ms_aligned,")]
    again = row.replace("L_chain_sat_4ms_aligned", "L_chain_sat_4ms_again_aligned")
    (tmp_path / "runs.csv").write_text("\n".join([head, row, again]) + "\n", encoding="utf-8")
    arguments = ("measured", "--data", str(tmp_path), "--seeds", "1")
    status, out, _ = in_one_process(capsys, *arguments, "--json")
    found = json.loads(out)
    assert (status, found["runs"]) == (0, 1)  # measured twice, simulated once
    cells = {(cell["job"], cell["statistic"]): cell for cell in found["cells"]}
    assert {job for job, _ in cells} == {"L_chain_sat_4ms_aligned", "L_chain_sat_4ms_again_aligned"}
    [expected] = [job for job in load_measured() if job.name == "L_chain_sat_4ms_aligned"]
    for statistic, value in expected.values.items():
        one, other = (cells[f"L_chain_sat_4ms_{again}aligned", statistic] for again in ("", "again_"))
        assert (one["measured"], one["predicted"]) == (other["measured"], other["predicted"])
        assert one["measured"] == value


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("local,chain", "local,circle", "row 1: KeyError 'circle'"),
        ("local,chain", "there,chain", "row 1: KeyError 'there'"),
        ("2,4096", "two,4096", "row 1: ValueError"),
        (",715,", ",nan,", "a value below 0"),
        (",715,", ",-715,", "a value below 0"),
        ("e2e_ms_mean", "another", "row 1: KeyError 'e2e_ms_mean'"),
    ],
)
def test_a_row_that_is_no_measured_job_is_one_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    """A slip in a table would be a traceback, or a measurement that cannot be."""
    text = (DATA / "runs.csv").read_text(encoding="utf-8")
    (tmp_path / "runs.csv").write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(SweepError, match=said):
        measured_in(tmp_path)
