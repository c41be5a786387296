"""Saved answers of a real cluster as tables, and predicted from another cluster's."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from barrierlab.sim.twin.predict import Predicted
from tests.flink.jobs import GROUPS
from tests.flink.predictions import Beside, predicted, saved_runs, show, table
from tests.flink.tables import runs_in, write

ANSWERS = Path(__file__).parents[1] / "sim" / "flink" / "2.x"


def test_a_debloated_job_is_predicted_from_the_costs_of_another_cluster() -> None:
    """Costs would be of one job on one day: read off at 4 ms a record, they predict 16 ms, debloated, within 15 %."""
    runs = {run.name: run for run in saved_runs(ANSWERS)}
    source, job = runs["chain_remote_saturated_aligned"], runs["chain_remote_debloated_aligned"]
    assert (job.imported.fill_in, job.kind) == ({}, "remote")
    assert job.services()["operator.slow.service_s"] == pytest.approx(0.0163, abs=0.0001)
    whole = predicted(job, [source], 2)[0]
    assert whole.row.measured == pytest.approx(858.0)
    assert whole.row.median == pytest.approx(858.0, rel=0.15)


def test_answers_are_kept_as_tables(tmp_path: Path) -> None:
    """The tables that are shipped would be of other columns, or means, than what the cluster answered."""
    (tmp_path / "2.3.0").mkdir()
    label = "chain_sat_16ms_debloat200ms_2_aligned"
    shutil.copy(ANSWERS / "chain_remote_debloated_aligned.json", tmp_path / "2.3.0" / f"{label}.json")
    [run] = runs_in(tmp_path, "2.3.0", GROUPS)
    write([run.row()], tmp_path / "runs.csv")
    write(list(run.subtask_rows()), tmp_path / "subtasks.csv")
    kept = Path(__file__).parents[2] / "sim" / "data" / "flink" / "second"
    for name in ("runs.csv", "subtasks.csv"):
        ours, theirs = (
            [row for row in csv.DictReader(text.splitlines()) if row["run"] == f"R_{label}"]
            for text in ((folder / name).read_text(encoding="utf-8") for folder in (tmp_path, kept))
        )
        assert len(ours) == len(theirs) > 0
        for one, other in zip(ours, theirs, strict=True):
            assert one.items() <= other.items()  # there besides: what was sampled


def test_a_table_says_how_many_are_inside_and_how_far_off_the_rest_is() -> None:
    """The sum below a table would count what nobody measured, or hide the largest miss."""
    rows = [
        Beside("one", Predicted("end to end", "", 110.0, 95.0, 125.0, 100.0), 3.0),
        Beside("one", Predicted("persisted", "", 3e6, 2.5e6, 3.5e6, 2e6), 1e5),
        Beside("two", Predicted("persisted", "", 0.0, 0.0, 0.0, 0.0), 0.0),
    ]
    lines = table(rows).splitlines()
    assert lines[2:4] == [
        "| one | end to end, ms | 100 ± 3 | 110 | 95 to 125 | +10.0 % | inside |",
        "| one | persisted, MB | 2.000 ± 0.100 | 3.000 | 2.500 to 3.500 | +50.0 % | outside |",
    ]
    assert lines[4:] == ["", "1 of 2 inside; median error 30.0 %, largest 50.0 %"]


def test_runs_without_one_to_calibrate_on_are_said_to_be_unpredicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table of nothing would name costs that were read off no run."""
    shutil.copy(ANSWERS / "chain_remote_debloated_aligned.json", tmp_path)
    show(tmp_path, 1)
    told = capsys.readouterr().out
    assert told.endswith(
        ": nothing is predicted, as no run is chain_local_saturated_aligned or chain_remote_saturated_aligned\n"
    )
