"""An executor is killed in a sweep, in `analyse` and in `verify` on a cluster: nothing is lost and nothing doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from page import alike

from barrierlab.sim.sweep.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(1200)]
MASTER = "local-cluster[2,1,2048]"
SWEEP = """
[[part]]
name = "small jobs"
scenario = "survive_anything"
seeds = { first = 1, last = 12 }
grid = { trouble = ["nothing", "crashes"] }
set = { until_s = 3.0 }
"""


def command(folder, *arguments, kill_when=None):
    """Run a command, and kill one of its executors once `kill_when` holds; the status and stdout."""
    root = Path(__file__).parents[2]
    environ = {**os.environ, "PYTHONPATH": str(root / "src")}
    words = [sys.executable, "-m", "barrierlab", *map(str, arguments)]
    killed = []
    with (
        open(folder / "stdout", "w+") as out,
        open(folder / "stderr", "w+") as err,
        subprocess.Popen(words, stdout=out, stderr=err, env=environ, cwd=folder, start_new_session=True) as process,
    ):
        since = None
        while process.poll() is None:
            found = executors(process.pid) if kill_when is not None and not killed else []
            since = since or (time.monotonic() if len(found) == 2 else None)
            if found and since is not None and kill_when(time.monotonic() - since):
                os.kill(found[0], signal.SIGKILL)
                killed.append(found[0])
            time.sleep(0.05)
        out.seek(0)
        err.seek(0)
        told = err.read()
        assert bool(killed) == (kill_when is not None), told
        return process.returncode, out.read(), told


def executors(session):
    """The processes of Spark's executors in a session that this test began."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[3]) == session and b"executor.CoarseGrainedExecutorBackend" in words:
            found.append(int(folder.name))
    return sorted(found)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep on a cluster of two executors, one of which is killed when the first runs are stored; and one without."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "small.toml").write_text(SWEEP)
    arguments = ("sweep", "small.toml", "--events", "--out")
    status, _, told = command(
        folder, *arguments, "out", "--master", MASTER, kill_when=lambda s: s > 2 and Store(folder / "out").count() > 0
    )
    assert status == 0, told
    assert command(folder, *arguments, "plain", "--master", "processes[2]")[0] == 0
    return folder


def test_a_sweep_loses_and_doubles_no_run(swept):
    """Runs would be missing or counted twice whenever a machine of a cluster fails."""
    there, here = (Store.open(swept / name) for name in ("out", "plain"))
    assert there.count() == here.count() == 24
    for table in here.tables:
        assert there.read(table).equals(here.read(table)), table
    assert {f.name for f in (swept / "out" / "runs").rglob("*.parquet")} == {"g1-0000.parquet"}


@pytest.mark.parametrize("name", ["verify", "analyse"])
def test_queries_lose_and_double_no_row(swept, name):
    """An answer would be wrong, or there would be none, whenever a machine of a cluster fails."""
    kept = swept / "out" / "analysis.json"
    kept.unlink(missing_ok=True)
    status, out, told = command(
        swept, name, "out", "--json", "--engine", "spark", "--master", MASTER, kill_when=lambda s: s > 6
    )
    assert status == 0, told
    kept.unlink(missing_ok=True)
    status, plain, told = command(swept, name, "out", "--json", "--engine", "duckdb")
    assert status == 0, told
    there, here = json.loads(out), json.loads(plain)
    assert there.pop("engine", "Spark") == "Spark"
    here.pop("engine", None)
    assert alike(there, here)
