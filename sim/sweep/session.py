"""A Spark session for sweeps: quiet, on loopback, with the settings that many short Python tasks need."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sim.java import Java, JavaError, find_java
from sim.keys import suggest
from sim.sweep.errors import SweepError

if TYPE_CHECKING:
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
    """How many processes `processes` or `processes[N]` means; None for a Spark master."""
    found = re.fullmatch(rf"{PROCESSES}(?:\[(\d+)\])?", master)
    return (int(found[1]) if found[1] else os.cpu_count() or 1) if found else None


def usable_java() -> Java:
    """The Java that Spark will run on; SweepError if there is none."""
    try:
        return find_java()
    except JavaError as error:
        raise SweepError(str(error)) from None


def spark_session(master: str = "local[*]", say_java: bool = True) -> SparkSession:
    """The running session, or a new one on `master`; says on stderr, in one line, which Java it is.

    SweepError if there is no usable Java.
    """
    from pyspark.sql import SparkSession

    if (running := SparkSession.getActiveSession()) is not None:
        return running
    java = usable_java()
    if say_java:
        print(f"Spark on {java}, master {master}", file=sys.stderr)
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are some python3 of the path
    builder = SparkSession.builder.appName("barrierlab").master(master)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # every socket stays on this machine
        builder = builder.config("spark.sql.shuffle.partitions", str(local_cores(master)))
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    options = f"-Dlog4j2.configurationFile={log} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    builder = builder.config("spark.driver.extraJavaOptions", options)
    return builder.getOrCreate()


def local_cores(master: str) -> int:
    """The cores that a local master uses.

    >>> local_cores("local[3]"), local_cores("local")
    (3, 1)
    """
    inside = re.fullmatch(r"local\[([^,\]]+).*\]", master)
    if inside is None:
        return 1
    return (os.cpu_count() or 1) if inside[1] == "*" else int(inside[1])
