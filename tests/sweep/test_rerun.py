"""`barrierlab rerun`: a row of a report leads back to its run, and the run comes out as it did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from barrierlab.sim.sweep.execute import SIMULATE, rows_of, simulate, work_chunk
from barrierlab.sim.sweep.plan import load_plan
from barrierlab.sim.sweep.store import Store
from tests.sim.support import barrierlab

SWEEPS = {
    "jobs": """
        [[part]]
        scenario = "mine.toml"
        seeds = [1, 2]
        grid = { "source.a.rate_per_s" = [20.0, 40] }
        [[part]]
        scenario = "diamond"
        seeds = [1]
        set = { until_s = 1.0 }
    """,
    "joins": """
        [[part]]
        scenario = "camera_imu_lidar"
        seeds = [1]
        set = { until_s = 6.0, jitter = "none" }
        list = [{ barrier = "latest", lateness_s = 0.0 }, { barrier = "timestamp", lateness_s = 0.1 }]
    """,
}
MINE = """
topology = "a->s"
until_s = 2.0
[source.a]
rate_per_s = 10.0
[operator.s]
kind = "sink"
[checkpoint]
interval_s = 1.0
"""


@pytest.fixture(scope="module", params=SWEEPS)
def swept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a sweep, whose own scenario file is gone since."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "mine.toml").write_text(MINE)
    (folder / "sweep.toml").write_text(SWEEPS[request.param])
    plan = load_plan(folder / "sweep.toml")
    Store.create(folder / "out", plan)
    work_chunk(plan.runs, str(folder / "out"), SIMULATE)
    (folder / "mine.toml").unlink()
    return folder / "out"


def ids(directory: Path) -> list[str]:
    """Return the ids of all runs of a sweep."""
    found: list[str] = Store.open(directory).read("runs").column("run_id").to_pylist()
    return found


def rewritten(directory: Path, **changes: Any) -> str:
    """Change the stored row of the first run; its id."""
    file = Store.open(directory).files("runs")[0]
    table = pq.read_table(file)
    rows = table.to_pylist()
    rows[0] |= changes
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), file)
    return str(rows[0]["run_id"])


def test_every_run_is_made_again_with_its_digest(swept: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A number that looks odd could not be looked into."""
    for run_id in ids(swept):
        status, out, err = barrierlab(capfd, "rerun", str(swept), run_id[:6])
        assert (status, err) == (0, "")
        assert f"run {run_id}: " in out
        assert ": the same as when it was stored" in out
    status, out, _ = barrierlab(capfd, "rerun", str(swept), run_id, "--json", "--trace", str(swept / "x.trace"))
    assert status == 0
    found = json.loads(out)
    assert (found["run_id"], found["same"], found["status"]) == (run_id, True, "OK")
    assert (swept / "x.trace").read_text().count("\n") > 10


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("0123", "no run '0123' among "),
        ("", "no run '' among "),
        (None, "; the nearest are "),
    ],
)
def test_an_unknown_id_is_one_line_with_the_nearest(
    swept: Path, capfd: pytest.CaptureFixture[str], given: str | None, words: str
) -> None:
    """A slip of a digit would send a user through a table of thousands."""
    known = ids(swept)[0]
    run_id = f"{known[:-1]}{'0' if known[-1] != '0' else '1'}" if given is None else given
    status, out, err = barrierlab(capfd, "rerun", str(swept), run_id)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert words in err
    assert known in err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"journal_digest": "f" * 32}, "and ffffffffffffffffffffffffffffffff is stored; no version differs"),
        ({"events_out": 7}, "its history is the same, but not what is stored of it (events_out: 7 is stored, "),
    ],
    ids=str,
)
def test_a_run_that_comes_out_otherwise_is_one_line_and_no_violation(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    """A damaged file would be reported as a broken protocol, or as nothing."""
    (tmp_path / "one.toml").write_text('[[part]]\nscenario = "diamond"\nseeds = [1]\nset = { until_s = 1.0 }')
    plan = load_plan(tmp_path / "one.toml")
    store = Store.create(tmp_path / "out", plan)
    store.write_chunk({name: [] for name in store.tables} | rows_of(plan.runs[0], simulate))
    run_id = rewritten(store.directory, **changes)
    status, out, err = barrierlab(capfd, "rerun", str(store.directory), run_id)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert words in err
    manifest = json.loads((store.directory / "manifest.json").read_text())
    manifest["versions"] |= {"numpy": "1.0", "gone": "7"}
    (store.directory / "manifest.json").write_text(json.dumps(manifest))
    status, _, err = barrierlab(capfd, "rerun", str(store.directory), run_id)
    assert status == 2
    assert "numpy 1.0 then, " in err
    assert "gone 7 then, none now" in err


def test_what_was_broken_is_broken_again(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A violation could not be reproduced from the report, or would end in another status than it had."""
    (tmp_path / "one.toml").write_text(
        '[[part]]\nscenario = "diamond"\nseeds = [1]\nset = { "checkpoint.interval_s" = 0.5 }'
    )
    plan = load_plan(tmp_path / "one.toml")
    store = Store.create(tmp_path / "out", plan)
    with pytest.MonkeyPatch.context() as patch:
        from barrierlab.impl.checkpoint.alignment import BarrierAligner

        def fails(*_: Any) -> None:
            raise ZeroDivisionError("planted")

        patch.setattr(BarrierAligner, "on_barrier", fails)
        store.write_chunk({name: [] for name in store.tables} | rows_of(plan.runs[0], simulate))
        status, out, _ = barrierlab(capfd, "rerun", str(store.directory), plan.runs[0].run_id)
    assert "planted" in out
    assert status == 1
    status, _, err = barrierlab(capfd, "rerun", str(store.directory), plan.runs[0].run_id)
    assert (status, len(err.splitlines())) == (2, 1)


def test_a_scenario_that_has_changed_is_another_run(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The digest would differ, and a user would look for the cause in the machine."""
    (tmp_path / "mine.toml").write_text(MINE)
    (tmp_path / "sweep.toml").write_text('[[part]]\nscenario = "mine.toml"\nseeds = [1]')
    plan = load_plan(tmp_path / "sweep.toml")
    store = Store.create(tmp_path / "out", plan)
    work_chunk(plan.runs, str(store.directory), SIMULATE)
    (kept,) = (store.directory / "scenarios").glob("*/mine.toml")
    kept.write_text(MINE.replace("10.0", "11.0"))
    arguments = ["rerun", str(store.directory), plan.runs[0].run_id]
    status, _, err = barrierlab(capfd, *arguments)
    assert (status, len(err.splitlines())) == (2, 1)
    assert "mine.toml is another than the one that was run; give the file as it was then with --scenario" in err
    assert barrierlab(capfd, *arguments, "--scenario", str(tmp_path / "mine.toml"))[0] == 0
