"""Runs are computed once each, on Spark or on processes, and survive whatever stops a sweep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_runs import contents, plan_with

from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.execute import chunks_of, execute
from barrierlab.sim.sweep.plan import load_plan
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.tables import TABLES

HERE = Path(__file__).parent
FAKE = "fake_runs:compute"


def test_chunks_hold_every_run_once():
    """A run that is in no chunk would never be computed."""
    runs = load_plan("aligned_under_backpressure").runs
    for workers in (1, 2, 64):
        chunks = chunks_of(runs, workers)
        assert sorted(r.run_id for chunk in chunks for r in chunk) == sorted(r.run_id for r in runs)
        assert max(map(len, chunks)) <= 256
        assert len(chunks) >= min(len(runs), 8 * workers)


def test_a_killed_sweep_computes_nothing_twice(tmp_path, in_process, monkeypatch):
    """After a kill -9 only the runs that were not stored are computed; none is lost and none is there twice."""
    log, pipe = tmp_path / "computed", tmp_path / "pipe"
    os.mkfifo(pipe)
    plan = plan_with(*range(1, 9), 99)  # 99 waits for a writer that never comes
    store = Store.create(tmp_path / "out", plan)
    code = f"""
from barrierlab.sim.sweep.execute import execute
from barrierlab.sim.sweep.progress import ProgressWatch
from barrierlab.sim.sweep.store import Store
from fake_runs import plan_with
if __name__ == "__main__":
    plan = plan_with(*range(1, 9), 99)
    with ProgressWatch(len(plan.runs)) as watch:
        execute(plan, Store({str(store.directory)!r}), "processes[2]", watch.tick, {FAKE!r})
"""
    script = tmp_path / "sweep.py"
    script.write_text(code)
    environ = {
        **os.environ,
        "PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parents[1] / 'src'}",
        "COMPUTED": str(log),
        "NEVER": str(pipe),
    }
    with subprocess.Popen(
        [sys.executable, script], env=environ, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as sweep:
        for line in sweep.stderr:
            if int(line.split()[0]) >= 3:
                break
        os.killpg(sweep.pid, signal.SIGKILL)
    stored = store.done()
    assert 3 <= len(stored) < 9
    log.unlink()

    monkeypatch.setenv("COMPUTED", str(log))
    monkeypatch.setenv("NEVER", os.devnull)
    store.continue_with(plan)
    execute(plan, store, "processes[2]", simulate=FAKE)
    planned = {run.run_id for run in plan.runs}
    assert sorted(log.read_text().split()) == sorted(planned - stored)
    assert store.done() == planned
    assert store.count() == store.read("runs").num_rows == 9


def test_half_written_chunks_do_not_count(tmp_path, in_process):
    """A chunk of which one table was not stored yet is no chunk; a draft of a file is no file."""
    plan = plan_with(1, 2, 3)
    store = Store.create(tmp_path / "out", plan)
    execute(plan, store, "processes[1]", simulate=FAKE)
    lost = Path(store.files("runs")[0])
    whole = contents(store)
    lost.rename(lost.with_name(f".{lost.name}.123"))
    assert (store.count(), len(store.done()), store.read("checkpoints").num_rows) == (2, 2, 4)
    store.continue_with(plan)
    execute(plan, store, "processes[1]", simulate=FAKE)
    assert contents(store) == whole
    assert [f.name for f in store.directory.rglob(".*")] == []


def test_a_second_sweep_in_a_directory_is_refused(tmp_path, in_process):
    """Two sweeps would compute everything twice, and each would remove what the other is just writing."""
    plan = plan_with(1, 2)
    first, second = Store.create(tmp_path / "out", plan), Store(tmp_path / "out")
    with first.writing():
        with pytest.raises(SweepError, match=rf"another sweep is writing here \(process {os.getpid()} on "):
            execute(plan, second, "processes[1]", simulate=FAKE)
        assert second.count() == 0
    execute(plan, second, "processes[1]", simulate=FAKE)
    assert second.count() == 2


def test_the_lock_of_a_sweep_that_was_killed_is_free(tmp_path):
    """Nobody could go on after a kill -9."""
    store = Store.create(tmp_path / "out", plan_with(1))
    code = f"""
import os, signal
from barrierlab.sim.sweep.store import Store
with Store({str(store.directory)!r}).writing():
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    with store.writing():
        pass


def test_what_another_laid_into_the_directory_stays(tmp_path, in_process):
    """Notes beside the results would be gone after the next sweep; or they would be counted as chunks."""
    store = Store.create(tmp_path / "out", plan_with(1))
    notes = store.directory / "runs" / "notes.txt"
    notes.write_text("mine")
    execute(plan_with(1), store, "processes[1]", simulate=FAKE)
    assert (store.count(), notes.read_text()) == (1, "mine")


@pytest.mark.parametrize("table", TABLES)
def test_a_chunk_counts_only_with_all_its_tables(tmp_path, in_process, table):
    """A run would count as done whose rows are lost, and --resume would never bring them back."""
    plan = plan_with(1, 2)
    store = Store.create(tmp_path / "out", plan)
    execute(plan, store, "processes[1]", simulate=FAKE)
    whole = contents(store)
    Path(store.files(table)[0]).unlink()
    assert store.count() == len(store.done()) == 1
    execute(plan, store, "processes[1]", simulate=FAKE)
    assert contents(store) == whole


def test_a_run_that_is_there_twice_is_read_once(tmp_path, in_process):
    """Two sweeps into one directory at once must not count a run twice."""
    plan = plan_with(1, 2)
    store = Store.create(tmp_path / "out", plan)
    execute(plan, store, "processes[1]", simulate=FAKE)
    before = {table: store.read(table) for table in TABLES}
    assert not store.has_twins()
    rows = {table: before[table].to_pylist() for table in TABLES}
    store.write_chunk(rows)  # both runs again, as one chunk
    assert store.has_twins()
    assert len(store.files("runs")) == 3
    for table in TABLES:
        assert store.read(table).equals(before[table])


def test_a_run_that_raises_is_a_row_with_its_error(tmp_path, in_process):
    """One bad run must not cost the others, and its error must not be lost."""
    plan = plan_with(1, 13, 2)
    store = Store.create(tmp_path / "out", plan)
    execute(plan, store, "processes[1]", simulate=FAKE)
    rows = {row["status"]: row for row in store.read("runs").to_pylist()}
    assert store.count() == 3
    assert rows["ERROR"]["error"].startswith("ZeroDivisionError: thirteen (in fake_runs.py, line ")
    assert rows["ERROR"]["verdict"] is None
    assert rows["OK"]["error"] is None
    assert rows["ERROR"]["run_id"] not in store.read("checkpoints").column("run_id").to_pylist()


def test_another_sweep_is_not_continued(tmp_path):
    """Mixing two sweeps in one directory would answer neither."""
    store = Store.create(tmp_path / "out", plan_with(1))
    with pytest.raises(SweepError, match="was begun with another sweep"):
        store.continue_with(plan_with(1, 2))
    with pytest.raises(SweepError, match="is there already: continue with --resume"):
        Store.create(tmp_path / "out", plan_with(1))
    with pytest.raises(SweepError, match="is not the directory of a sweep"):
        Store.open(tmp_path)


@pytest.mark.parametrize("master", ["locl[2]", "processes[0]", "", "http://x"])
def test_an_unknown_master_is_told_in_one_line(tmp_path, master):
    """A slip in --master must not end in a stack trace of the JVM."""
    with pytest.raises(SweepError, match=r"--master is .*; allowed: local"):
        execute(plan_with(1), Store(tmp_path), master)
