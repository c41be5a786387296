"""A job of Apache Flink that runs here is imported, calibrated on and predicted."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.flink.cluster import LOOPBACK, PORT, install
from tests.flink.jobs import SATURATED, BenchJob, Group
from tests.flink.predictions import predicted, saved_runs
from tests.flink.run import run_jobs

ROOT = Path(__file__).parents[2]
VERSION = "2.3.0"
NEEDED_GB = 3
MANY_GB, MANY_CORES = 12, 4
"""With as much, each subtask has a task manager of its own; with less, one has them all."""
JOBS = (BenchJob("chain", "chain", SATURATED, 8, ("aligned", "timeout")),)


def memory_gb() -> float:
    """Return the memory that is free, 0 where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    sizes = {name: rest for name, _, rest in (line.partition(":") for line in lines)}
    return int(sizes["MemAvailable"].split()[0]) / 2**20


def lacking() -> str | None:
    """Return why no cluster can run here, in a line; None if one can."""
    for program in ("java", "javac", "jar"):
        if shutil.which(program) is None:
            return f"no JDK: {program} is not on the path"
    if (found := memory_gb()) < NEEDED_GB:
        return f"{found:.0f} GB of memory are free; {NEEDED_GB} are needed"
    with socket.socket() as probe:
        if probe.connect_ex((LOOPBACK, PORT)) == 0:
            return f"port {PORT} is in use: is another cluster running?"
    return None


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_job_on_a_real_cluster_is_predicted_from_another_mode(tmp_path: Path) -> None:
    """A new release of Flink, or a change of the importer, would be noticed by the first user with a cluster."""
    if reason := lacking():
        pytest.skip(reason)
    try:
        flink = install(VERSION, ROOT / "out" / "flink" / "work")
    except subprocess.CalledProcessError as failed:
        said = (failed.stderr or failed.stdout or "").strip().splitlines() or ["pip says nothing"]
        pytest.skip(f"Apache Flink {VERSION} cannot be installed: {said[-1]}")
    many = memory_gb() >= MANY_GB and (os.cpu_count() or 1) >= MANY_CORES
    run_jobs(Group(8 if many else 1, 1 if many else 16, JOBS), flink, tmp_path / "work", tmp_path)
    aligned, timeout = saved_runs(tmp_path)
    assert (aligned.observed.is_local, aligned.imported.fill_in) == (not many, {})
    found = {each.row.statistic: each for each in predicted(timeout, [aligned], 3)}
    for statistic in ("end to end", "persisted"):  # wide: whatever else runs on the machine is in it
        assert found[statistic].row.median == pytest.approx(found[statistic].row.measured, rel=0.3), statistic
