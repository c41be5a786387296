"""A master that is not local: the package goes to its workers, and one that does not work ends in a line."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import zipfile
from pathlib import Path

import pytest
from page import alike
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from barrierlab.sim.sweep import session
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.java import find_java
from barrierlab.sim.sweep.session import _check_reachable, _packed
from barrierlab.sim.sweep.store import Store
from tests.sim.support import barrierlab


def test_the_archive_is_the_package():
    """A worker would lack a module, a scenario, a golden trace or a template."""
    names = set(zipfile.ZipFile(_packed()).namelist())
    assert {
        *("barrierlab/__init__.py", "barrierlab/impl/checkpoint/alignment.py", "barrierlab/model/checkpoint/world.py"),
        *("barrierlab/sim/cli/main.py", "barrierlab/sim/scenarios/diamond.toml", "barrierlab/sim/data/flink/runs.csv"),
        *("barrierlab/sim/sweep/log4j2.properties", "barrierlab/sim/scenarios/sweeps/smoke.toml"),
    } <= names
    assert any(name.startswith("barrierlab/model/cases/") and name.endswith(".trace") for name in names)
    assert not any("__pycache__" in name for name in names)


@pytest.mark.parametrize("command", [["sweep", "smoke", "--out", "{}/out"], ["check", "--scope", "tiny"]])
def test_a_master_that_does_not_answer_is_one_line(capfd, tmp_path, monkeypatch, command):
    """A minute of waiting, and then a stack trace of Java and the status of a violation."""
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)  # other tests may have one
    arguments = [argument.format(tmp_path) for argument in command]
    status, out, err = barrierlab(capfd, *arguments, "--master", "spark://127.0.0.1:1")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "--master spark://127.0.0.1:1: nothing answers there (127.0.0.1:1: " in err
    assert not (tmp_path / "out").exists()  # else the same with another master would be refused


@pytest.mark.parametrize("master", ["spark://nowhere.invalid:7077", "spark://127.0.0.1", "spark://127.0.0.1:x"])
def test_an_address_that_is_none_is_told(master):
    """As above."""
    with pytest.raises(SweepError, match="nothing answers there"):
        _check_reachable(master)


def test_a_cluster_that_starts_no_executor_is_one_line(monkeypatch):
    """The command would wait for ever, and say nothing."""
    stopped = threading.Event()

    class Cluster:
        """Accepts a job, and ends it when it is stopped."""

        def parallelize(self, *_):
            return self

        def count(self):
            assert stopped.wait(60)
            raise RuntimeError("the context was stopped")

        def stop(self):
            stopped.set()

    monkeypatch.setattr(session, "_MOST_WAIT_S", 0.05)
    with pytest.raises(SweepError, match=r"--master yarn: no executor has started in 0.05 s: see the logs"):
        session._await_worker(Cluster(), "yarn")
    assert stopped.is_set()


ROOT = str(Path(__file__).parents[2] / "src")


@pytest.fixture
def bare(tmp_path):
    """A Python that has the libraries, and not the package: -S reads no files of site-packages that lead to it."""
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{sysconfig.get_path("purelib")}:$PYTHONPATH" exec "{sys.executable}" -S "$@"\n'
    )
    python.chmod(0o755)
    return python


def command(folder, python, *arguments):
    """Run a command whose workers have that Python; what it prints."""
    environ = {**os.environ, "PYSPARK_PYTHON": str(python), "PYTHONPATH": ROOT, "SPARK_LOCAL_IP": "127.0.0.1"}
    words = [sys.executable, "-m", "barrierlab", *map(str, arguments)]
    found = subprocess.run(words, env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.slow
@pytest.mark.spark
def test_workers_need_the_libraries_and_not_the_package(tmp_path, bare):
    """On a cluster every run would end in ModuleNotFoundError: No module named 'barrierlab'."""
    without = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    bare_import = [bare, "-c", "import simpy, barrierlab"]
    lacking = subprocess.run(bare_import, env=without, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "No module named 'barrierlab'" in lacking.stderr
    command(tmp_path, bare, "sweep", "smoke", "--out", "out", "--master", "local-cluster[2,1,1024]")
    assert Store.open(tmp_path / "out").count() == 8


@pytest.fixture
def standalone(tmp_path):
    """A standalone cluster of the wheel's own Spark, on loopback: a master and a worker with two cores; its URL."""
    import pyspark

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = ["worker.Worker", "--host", "127.0.0.1", "--cores", "2", "--memory", "2g", "--webui-port", "0"]
    worker += ["--work-dir", str(tmp_path / "work"), url]
    environ = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    program = Path(pyspark.__file__).with_name("bin") / "spark-class"
    with contextlib.ExitStack() as stack:
        for name, *options in (master, worker):
            log = stack.enter_context(open(tmp_path / f"{name}.log", "w"))
            words = [program, f"org.apache.spark.deploy.{name}", *options]
            process = stack.enter_context(
                subprocess.Popen(words, stdout=log, stderr=log, env=environ, cwd=tmp_path, start_new_session=True)
            )
            stack.callback(os.killpg, process.pid, signal.SIGTERM)
            while process.poll() is None and name == master[0]:  # a worker that finds no master gives up
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
        yield url


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_a_standalone_cluster_gives_the_same(tmp_path, bare, standalone):
    """Sweeps, analyses and verdicts of a real cluster would be other than those of one machine."""
    on_cluster = ("--master", standalone)
    for out, master in (("there", on_cluster), ("here", ("--master", "processes[2]"))):
        command(tmp_path, bare, "sweep", "smoke", "--events", "--out", out, *master)
    there, here = (Store.open(tmp_path / name) for name in ("there", "here"))
    assert there.count() == here.count() == 8
    for table in here.tables:
        assert there.read(table).equals(here.read(table)), table
    for name in ("analyse", "verify"):
        for store in (there, here):
            (store.directory / "analysis.json").unlink(missing_ok=True)
        found = json.loads(command(tmp_path, bare, name, "there", "--json", *on_cluster))
        plain = json.loads(command(tmp_path, bare, name, "here", "--json", "--engine", "duckdb"))
        assert (found.pop("engine", "Spark"), plain.pop("engine", "DuckDB")) == ("Spark", "DuckDB")
        folders = [each.get("outcome", {}).pop("out", None) for each in (found, plain)]
        assert folders == (["there", "here"] if name == "verify" else [None, None])
        assert alike(found, plain)


@pytest.mark.parametrize("raised", ["a lost connection", "a stack of Java"])
def test_a_cluster_that_dies_ends_in_one_line(raised):
    """A stack trace of Java, and the status of a violation."""
    errors = {
        "a lost connection": Py4JNetworkError("Answer from Java side is empty"),
        "a stack of Java": PySparkException(
            "Job aborted\norg.apache.spark.SparkException: Master removed us\n\tat a.b"
        ),
    }
    with pytest.raises(SweepError) as told, session.spark_failures("the analysis failed", "start the cluster again"):
        raise errors[raised]
    assert str(told.value).startswith("the analysis failed (")
    assert str(told.value).endswith("): start the cluster again")
    assert len(str(told.value).splitlines()) == 1
