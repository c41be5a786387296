"""A Spark session for sweeps: quiet, on loopback, with the settings that many short Python tasks need."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import barrierlab
from barrierlab.sim.scenario.readers import suggest
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.java import Java, JavaError, find_java

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

PROCESSES = "processes"
_KNOWN = ("local", "local[*]", PROCESSES, f"{PROCESSES}[2]", "spark://host:7077", "yarn", "k8s://https://host:443")

SETTINGS = {
    # Over TCP each task with a Python worker waits 40 ms for a delayed acknowledgement.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.faulthandler.enabled": "true",  # a worker that crashes says where
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16",  # a row is seconds of work: a lost worker loses little
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "2g",
}


def check_master(master: str) -> str:
    """`master` if it is one that can be run on, else SweepError in one line."""
    if not re.fullmatch(r"local(-cluster)?(\[[^\]]+\])?|(spark|k8s|mesos)://.+|yarn|processes(\[[1-9]\d*\])?", master):
        raise SweepError(f"--master is {master!r}; allowed: {', '.join(_KNOWN)}{suggest(master, _KNOWN)}")
    return master


def process_count(master: str) -> int | None:
    """Return how many processes `processes` or `processes[N]` means; None for a Spark master."""
    found = re.fullmatch(rf"{PROCESSES}(?:\[(\d+)\])?", master)
    return (int(found[1]) if found[1] else os.cpu_count() or 1) if found else None


def usable_java() -> Java:
    """The Java that Spark will run on; SweepError if there is none."""
    try:
        return find_java()
    except JavaError as error:
        raise SweepError(str(error)) from None


def spark_session(master: str = "local[*]") -> SparkSession:
    """The running session, or a new one on `master`; says on stderr, in one line, which Java it is.

    On a master that is not local the package goes to the workers with the job; they need its libraries alone.

    SweepError if there is no usable Java, or the master cannot be reached.
    """
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        return running
    _check_reachable(master)
    java = usable_java()
    print(f"Spark on {java}, master {master}", file=sys.stderr)
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are some python3 of the path
    builder = SparkSession.builder.appName("barrierlab").master(master)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # every socket stays on this machine
        builder = builder.config("spark.python.daemon.module", "barrierlab.sim.sweep.daemon")
    if not is_local(master):
        # The archive is laid out beside each executor, whose Python finds it before anything that is installed there.
        builder = builder.config("spark.archives", f"{_packed()}#{_CODE}")
        builder = builder.config("spark.executorEnv.PYTHONPATH", _CODE)
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    options = f"-Dlog4j2.configurationFile={log} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    builder = builder.config("spark.driver.extraJavaOptions", options)
    with spark_failures(f"--master {master}: no session", "give another master"):
        session = builder.getOrCreate()
        if not is_local(master):
            _await_worker(session.sparkContext, master)
    # As many partitions as there are cores; Spark's own 200 cost more than the work of most sweeps.
    session.conf.set("spark.sql.shuffle.partitions", str(max(1, session.sparkContext.defaultParallelism)))
    return session


@contextmanager
def spark_failures(what: str, hint: str) -> Iterator[None]:
    """Turn whatever Spark raises into a SweepError: a line with `what` failed, why, and a `hint` on what to do."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        named = [line for line in lines if re.match(r"(: |Caused by: )?(\w+\.)*\w*(Error|Exception)\b", line)]
        reason = (named or lines or ["no word why"])[-1].removeprefix(": ").removeprefix("Caused by: ")
        raise SweepError(f"{what} ({' '.join(reason.split())[:300]}): {hint}") from error


def is_local(master: str) -> bool:
    """Return whether every worker runs in this process's machine and environment.

    >>> is_local("local[2]"), is_local("local-cluster[2,1,1024]"), is_local("spark://host:7077")
    (True, False, False)
    """
    return re.fullmatch(r"local(\[.*\])?", master) is not None


_MOST_WAIT_S = 180.0
"""So long a cluster may take to start its first executor, image pulls included."""


def _await_worker(context: SparkContext, master: str) -> None:
    """Raise SweepError, and leave no session, if the cluster runs not one task: Spark itself would wait for ever."""
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(context.parallelize([0], 1).count)
        if wait([task], _MOST_WAIT_S).not_done:
            context.stop()
            raise SweepError(
                f"--master {master}: no executor has started in {_MOST_WAIT_S:g} s: see the logs of the cluster, give "
                "it free cores and memory, or give another master"
            )
        task.result()


_CODE = "barrierlab_code"
_PATIENCE_S = 5.0


def _check_reachable(master: str) -> None:
    """Raise SweepError if no host of a standalone master answers: Spark would try for a minute and not say why."""
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _PATIENCE_S).close()
            return
        except (OSError, ValueError) as error:
            reasons.append(f"{address}: {error}")
    raise SweepError(
        f"--master {master}: nothing answers there ({'; '.join(reasons)}): start it, or give another master"
    )


def _packed() -> Path:
    """Write the package into an archive, which is removed when this process ends; return its path."""
    folder = Path(tempfile.mkdtemp(prefix="barrierlab-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with zipfile.ZipFile(folder / f"{_CODE}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        package = Path(barrierlab.__path__[0])
        for root in (package, *(package / name for name in ("impl", "model", "sim"))):  # which may be links
            for path in sorted(root.glob("*" if root == package else "**/*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, package.name / path.relative_to(package))
    return folder / f"{_CODE}.zip"


def local_cores(master: str) -> int:
    """The cores that a local master uses.

    >>> local_cores("local[3]"), local_cores("local")
    (3, 1)
    """
    inside = re.fullmatch(r"local\[([^,\]]+).*\]", master)
    if inside is None:
        return 1
    return (os.cpu_count() or 1) if inside[1] == "*" else int(inside[1])
