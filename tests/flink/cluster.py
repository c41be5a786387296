"""A standalone cluster of Apache Flink on the loopback device, and the benchmark jobs that run on it.

Needs a JDK and an index of packages, from which `apache-flink-libraries` comes into an environment of its own. Each
process is a child of this one, and ends with it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LOOPBACK, PORT = "127.0.0.1", 18081
OPENS = [f"java.base/{name}" for name in ("java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch")]
OPENS += [f"java.base/java.{name}" for name in ("lang.reflect", "text", "time", "util", "util.concurrent")]
OPENS += [f"java.base/java.util.concurrent.{name}" for name in ("atomic", "locks")]
OPTIONS = [f"--add-opens={name}=ALL-UNNAMED" for name in OPENS]
MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
WORKER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
PROGRAMS = {
    MANAGER: ["-Xmx512m", "-XX:TieredStopAtLevel=1"],
    WORKER: ["-Xmx320m", "-XX:MaxDirectMemorySize=192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k"],
}
MODES = {
    "aligned": {"execution.checkpointing.unaligned.enabled": "false"},
    "unaligned": {"execution.checkpointing.unaligned.enabled": "true"},
    "timeout": {
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.aligned-checkpoint-timeout": "300 ms",
    },
}
EVERY_2_S = {
    "execution.checkpointing.interval": "2 s",
    "execution.checkpointing.min-pause": "500 ms",
    "execution.checkpointing.timeout": "120 s",
}


def install(version: str, work: Path) -> Path:
    """Return the folder of Flink's libraries of that version, installed below `work` if they are not yet there."""
    env = work / f"env-{version}"
    python = env / "bin" / "python"
    found = list(env.glob("lib/python*/site-packages/pyflink"))
    if not found:
        _run([sys.executable, "-m", "venv", str(env)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "setuptools<81", "wheel"])
        libraries = f"apache-flink-libraries=={version}"  # a source archive: needs what is installed above
        _run([*pip, "--no-deps", "--no-build-isolation", libraries])
        found = list(env.glob("lib/python*/site-packages/pyflink"))
    return found[0]


def _run(command: Sequence[str]) -> None:
    """Run a command; what it says is with the error, if it fails."""
    subprocess.run(command, check=True, capture_output=True, text=True)


def build(flink: Path, work: Path) -> Path:
    """Return the jar of the benchmark jobs, compiled against that Flink."""
    classes, jar = work / "classes", work / "bench.jar"
    shutil.rmtree(classes, ignore_errors=True)
    subprocess.run(["javac", "-cp", f"{flink}/lib/*", "-d", str(classes), str(HERE / "Bench.java")], check=True)
    subprocess.run(["jar", "cfe", str(jar), "Bench", "-C", str(classes), "."], check=True)
    return jar


def ask(path: str, data: bytes | None = None, method: str | None = None, kind: str = "application/json") -> Any:
    """Return the answer of the cluster's REST server."""
    request = urllib.request.Request(f"http://{LOOPBACK}:{PORT}{path}", data, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else {}


@contextmanager
def cluster(
    flink: Path, work: Path, managers: int, slots: int, options: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a cluster of so many task managers, of so many slots each, with more options."""
    conf = work / "conf"
    shutil.rmtree(conf, ignore_errors=True)
    for name in ("conf", "checkpoints", "tmp"):
        (work / name).mkdir(parents=True, exist_ok=True)
    settings = {
        "jobmanager.bind-host": LOOPBACK,
        "jobmanager.rpc.address": LOOPBACK,
        "taskmanager.bind-host": LOOPBACK,
        "taskmanager.host": LOOPBACK,
        "taskmanager.numberOfTaskSlots": slots,
        "taskmanager.cpu.cores": slots,
        "taskmanager.memory.task.heap.size": "192m",
        "taskmanager.memory.task.off-heap.size": "0m",
        "taskmanager.memory.managed.size": "0m",
        "taskmanager.memory.network.min": "64m",
        "taskmanager.memory.network.max": "64m",
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "96m",
        "taskmanager.memory.jvm-metaspace.size": "160m",
        "taskmanager.memory.jvm-overhead.min": "128m",
        "taskmanager.memory.jvm-overhead.max": "128m",
        "rest.address": LOOPBACK,
        "rest.bind-address": LOOPBACK,
        "rest.port": PORT,
        "execution.checkpointing.dir": f"file://{work}/checkpoints",
        "state.backend.type": "hashmap",
        "io.tmp.dirs": work / "tmp",
        "metrics.fetcher.update-interval": 500,
        **(options or {}),
    }
    (conf / "config.yaml").write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
    (conf / "log4j2.properties").write_text("rootLogger.level = WARN\n")
    common = [*OPTIONS, f"-Dlog4j.configurationFile={conf}/log4j2.properties", "-cp", f"{flink}/lib/*"]
    log = (work / "cluster.log").open("ab")
    running = []
    try:
        for program in [MANAGER, *[WORKER] * managers]:
            command = ["java", *PROGRAMS[program], *common, program, "--configDir", str(conf)]
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
        _await_slots(managers * slots)
        yield
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait()
        log.close()


def _await_slots(wanted: int) -> None:
    for _ in range(180):
        time.sleep(1)
        try:
            if ask("/overview")["slots-available"] == wanted:
                return
        except OSError:
            pass  # it is not up yet
    raise TimeoutError(f"{wanted} slots were not there after 180 s")


def upload(jar: Path) -> str:
    """Return the name under which the cluster has the jar."""
    mark = "boundary"
    head = f'--{mark}\r\nContent-Disposition: form-data; name="jarfile"; filename="bench.jar"\r\n\r\n'
    body = head.encode() + jar.read_bytes() + f"\r\n--{mark}--\r\n".encode()
    return Path(ask("/jars/upload", body, "POST", f"multipart/form-data; boundary={mark}")["filename"]).name


@contextmanager
def job(
    jar: str,
    arguments: Sequence[str],
    checkpoints: int,
    limit_s: float = 150,
    watch: Callable[[str], None] = lambda number: None,
) -> Iterator[str]:
    """Run a job until it has completed so many checkpoints; give its id, and cancel it then.

    `watch` is called with the id now and then, as soon as the job runs.
    """
    body = json.dumps({"entryClass": "Bench", "programArgsList": list(arguments)}).encode()
    number = ask(f"/jars/{jar}/run", body, "POST")["jobid"]
    end = time.monotonic() + limit_s
    while ask(f"/jobs/{number}/checkpoints").get("counts", {}).get("completed", 0) < checkpoints:
        state = ask(f"/jobs/{number}")["state"]
        if state in ("FAILED", "CANCELED", "FINISHED") or time.monotonic() > end:
            raise RuntimeError(f"the job is {state}, and has not {checkpoints} checkpoints: {arguments}")
        if state == "RUNNING":
            watch(number)
        time.sleep(0.25)
    try:
        yield number
    finally:
        ask(f"/jobs/{number}?mode=cancel", method="PATCH")
        while ask(f"/jobs/{number}")["state"] not in ("CANCELED", "FAILED", "FINISHED"):
            time.sleep(0.3)
