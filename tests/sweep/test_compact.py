"""Small files become large ones; a crash at any step loses nothing and doubles nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fake_runs import compute

from barrierlab.sim.sweep import compact as module
from barrierlab.sim.sweep.analyse import READ, analyse
from barrierlab.sim.sweep.compact import compact
from barrierlab.sim.sweep.engines import engine_for
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.execute import execute, rows_of
from barrierlab.sim.sweep.plan import plan_of
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.tables import TABLES

NAMES = ("a/b c", "d=e%'f", "1")
PLAN = plan_of(
    "".join(
        f'[[part]]\nname = "{name}"\nscenario = "diamond"\nseeds = {{ first = {number}, last = {number + 2} }}\n'
        'grid = { "source.source.rate_per_s" = [1.0, 2.0] }\n'
        for number, name in zip((1, 11, 21), NAMES, strict=True)
    ),
    "parts",
    Path("parts.toml"),
)
FAKE = "fake_runs:compute"


def in_chunks(directory: Path) -> Store:
    """The runs of the plan, two in a chunk, those of all parts mixed."""
    store = Store.create(directory, PLAN)
    runs = sorted(PLAN.runs, key=lambda run: run.run_id)
    for first in range(0, len(runs), 2):
        rows = {name: [] for name in store.tables}
        for run in runs[first : first + 2]:
            for table, found in rows_of(run, compute).items():
                rows[table] += found
        store.write_chunk(rows)
    return store


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """Groups of rows that end in the middle of a run; and files of a few groups."""
    monkeypatch.setattr(module, "ROWS_IN_GROUP", 5)
    monkeypatch.setattr(module, "TARGET_BYTES", 2000)
    monkeypatch.setattr(module, "LEAST_BYTES", 1000)


def tables(store: Store) -> dict[str, list[dict[str, object]]]:
    """All rows of each table."""
    return {name: store.read(name).to_pylist() for name in store.tables}


def files(store: Store) -> dict[str, bytes]:
    """The large files, by name."""
    return {str(f.relative_to(store.directory)): f.read_bytes() for f in store.directory.glob("*/part=*/*.parquet")}


def test_the_rows_are_the_same_in_fewer_files(tmp_path):
    """Rows would be lost or doubled at the border of two files; or a reader would open thousands of empty ones."""
    store = in_chunks(tmp_path / "out")
    before, many = tables(store), len(list(store.directory.rglob("*.parquet")))
    with engine_for(store, READ, "duckdb", None) as sql:
        said = analyse(sql, store)
    compact(store)
    assert tables(store) == before
    assert store.count() == len(store.done()) == len(PLAN.runs) == 18
    found = list(store.directory.rglob("*.parquet"))
    assert len(found) < many
    assert min(pq.read_metadata(file).num_rows for file in found) > 0
    assert {file.parent.name for file in found} == {"part=a%2Fb c", "part=d%3De%25%27f", "part=1"}
    assert not (store.directory / "compacting").exists()
    with engine_for(store, READ, "duckdb", None) as sql:
        assert analyse(sql, store) == said
    several = list((store.directory / "checkpoints" / "part=1").iterdir())
    assert len(several) > 1
    assert min(file.stat().st_size for file in several) >= 1000
    once = files(store)
    compact(store)
    assert files(store) == once


class Killed(BaseException):
    """The end of a process: nothing after it has any effect."""


def dies_at(patch: pytest.MonkeyPatch, step: int) -> list[int]:
    """Let the process die before its n-th change of a file. Gives what counts them."""
    count = [0]

    def dying(real):
        def call(*arguments, **options):
            count[0] += 1
            if count[0] >= step:
                raise Killed
            return real(*arguments, **options)

        return call

    for owner, name in (
        *((os, each) for each in ("replace", "unlink", "mkdir", "rmdir", "fsync")),
        (Path, "unlink"),
        (shutil, "rmtree"),
        (pq.ParquetWriter, "write_table"),
    ):
        patch.setattr(owner, name, dying(getattr(owner, name)))
    return count


@pytest.mark.parametrize("stride", [60, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crash_at_any_step_loses_and_doubles_nothing(tmp_path, monkeypatch, stride):
    """Power fails once in a hundred thousand runs, and then it is always here."""
    whole = in_chunks(tmp_path / "whole")
    before = tables(whole)
    shutil.copytree(whole.directory, tmp_path / "chunks")
    compact(whole)
    step, steps = 1, 1
    while True:
        store = Store(tmp_path / f"out{step}")
        shutil.copytree(tmp_path / "chunks", store.directory)
        with monkeypatch.context() as patch:
            count = dies_at(patch, step)
            try:
                compact(store)
            except Killed:
                pass
            else:
                break
        steps = max(steps, count[0])
        assert tables(store) == before, step  # of who only reads
        assert (store.count(), store.has_twins()) == (18, False), step
        execute(PLAN, store, "processes[1]", simulate="nothing:to_compute")
        compact(store)
        assert files(store) == files(whole), step
        left = {str(f.relative_to(store.directory)) for f in store.directory.rglob("*.parquet")}
        assert left == set(files(whole)), step
        shutil.rmtree(store.directory)
        step += stride
    assert steps > 50


@pytest.mark.parametrize("table", ["runs", pytest.param("checkpoints", marks=pytest.mark.slow)])
def test_the_runs_of_a_lost_file_are_computed_again(tmp_path, in_process, table):
    """A part of the answer would be missing, in silence; or the whole sweep would have to be run again."""
    store = in_chunks(tmp_path / "out")
    compact(store)
    before = tables(store)
    lost = Path(store.files(table)[1])
    lost.unlink()
    with pytest.raises(SweepError, match=re.escape(f"{lost} is missing: `barrierlab sweep ... --resume` computes")):
        store.read("runs")
    missing = len(PLAN.runs) - len(store.done())
    assert 0 < missing < 12
    assert store.count() == len(PLAN.runs) - missing
    execute(PLAN, store, "processes[1]", simulate=FAKE)
    with pytest.raises(SweepError, match="is missing"):
        store.read("runs")
    compact(store)
    assert tables(store) == before
    assert not store.lost()


def test_a_sweep_that_goes_on_after_that_is_brought_together_anew(tmp_path):
    """Rows added afterwards would stay in small files, or be read twice."""
    store = in_chunks(tmp_path / "out")
    before = tables(store)
    rows = {name: [row for row in before[name] if row["run_id"] < "8"] for name in TABLES}
    rest = {name: [row for row in before[name] if row["run_id"] >= "6"] for name in TABLES}  # some in both
    other = Store.create(tmp_path / "other", PLAN)
    other.write_chunk(rows)
    compact(other)
    other.write_chunk(rest)
    assert other.has_twins()
    assert tables(other) == before
    compact(other)
    assert tables(other) == before
    assert not other.has_twins()


def test_no_room_is_one_line_and_loses_nothing(tmp_path, monkeypatch):
    """A full disk at the very end would cost the sweep."""
    store = in_chunks(tmp_path / "out")
    before = tables(store)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(SweepError, match="cannot be brought together: No space left on device; all runs are"):
            compact(store)
    assert tables(store) == before
    compact(store)
    assert tables(store) == before


def test_the_lines_of_the_page_read_a_part(tmp_path, monkeypatch):
    """A reader of the documentation would get an error, or all parts."""
    store = in_chunks(tmp_path / "out" / "big")
    compact(store)
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(# DuckDB.*?)```", page, re.DOTALL)
    lines = [line for line in block.replace("skewed join", "1").splitlines() if " = " in line]
    assert len(lines) == 3
    for line in lines:
        words: dict[str, object] = {}
        exec(f"import duckdb, polars, pandas\n{line}", words)
        found = words[line.split(" = ")[0]]
        assert len(found) == 12, line
    assert "polars" in sys.modules


def test_a_damaged_index_is_one_line(tmp_path):
    """A traceback, that asks for a report of it; or rows that are not looked for, so that what is left holds."""
    store = in_chunks(tmp_path / "out")
    compact(store)
    path = store.directory / "compacted.json"
    index = json.loads(path.read_bytes())
    entry = index["tables"]["runs"][0]
    damaged = [[], None, *({key: value for key, value in index.items() if key != name} for name in ("runs", "tables"))]
    damaged += [{**index, "absorbed": [5]}, {**index, "tables": {"runs": index["tables"]["runs"]}}]
    wrong = [5, [5], *([{**entry, name: 5}] for name in ("file", "part", "first", "last"))]
    damaged += [{**index, "tables": {**index["tables"], "runs": entries}} for entries in wrong]
    for text in ("", "{", *map(json.dumps, damaged)):
        path.write_text(text)
        with pytest.raises(SweepError, match=r"compacted.json: damaged; the sweep has to be started afresh"):
            store.count()
