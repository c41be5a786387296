"""Jobs on real clusters of Apache Flink: run in several modes, and what their REST servers answered is saved.

    python -m tests.flink.run --work DIR --version 2.3.0 --version 1.20.3 --out DIR

Of each version a cluster of one task manager (local channels) and one of eight (a task manager for each subtask of the
chain, all channels remote) is started on the loopback device; each job of `JOBS` runs there until it has completed
enough checkpoints. `barrierlab import --save` reads the answers. Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from barrierlab.sim.twin.answers import FlinkAnswers
from barrierlab.sim.twin.import_flink import job_of
from barrierlab.sim.twin.observed import observed_in, saved_text
from tests.flink.cluster import EVERY_2_S, LOOPBACK, MODES, PORT, build, cluster, install, job, upload

VERSIONS = ("2.3.0", "1.20.3")
RHO090 = {"rate": 450, "serviceNanos": 4_000_000}
SATURATED = {"rate": 750, "serviceNanos": 4_000_000}
JOIN = {"rate": 250, "rateB": 750, "serviceNanos": 4_000_000}
UNION = {"rate": 625, "rateB": 60, "mergeNanos": 4_000_000}
# Cluster: task managers, slots of each; and the jobs on it: name, dataflow, settings, checkpoints.
LOCAL = (
    ("chained_local_saturated", "chained", SATURATED, 9, ("aligned",)),
    ("union_local_saturated", "union", UNION, 10, ("timeout",)),
    ("join_local_saturated", "join", JOIN, 9, ("unaligned",)),
    ("chain_local_rho", "chain", RHO090, 10, ("aligned",)),
    ("chain_local_saturated", "chain", SATURATED, 10, ("aligned", "unaligned")),
)
REMOTE = (
    ("chain_remote_rho", "chain", RHO090, 11, tuple(MODES)),
    ("chain_remote_saturated", "chain", SATURATED, 12, tuple(MODES)),
)
CLUSTERS = ((1, 16, LOCAL), (8, 1, REMOTE))
WARM_UP = ("chain", RHO090, 4)  # a job that is thrown away: the first one runs on code that is not yet compiled


def arguments(dag: str, settings: dict[str, int], mode: str, is_alone: bool) -> list[str]:
    """Return the arguments of a job; `is_alone` puts each subtask into a task manager of its own."""
    common = {"dag": dag, "p": 2, "payload": 4079, "iso": int(is_alone)}  # 17 bytes of header make 4096
    pairs = {**common, **settings, **EVERY_2_S, **MODES[mode]}
    return [word for key, value in pairs.items() for word in (f"--{key}", str(value))]


def main() -> None:
    """Run every job on every version, and save the answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="a folder for environments, logs and checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the answers, one of each version in it")
    parser.add_argument("--version", action="append", choices=VERSIONS, help="both, if none is given")
    given = parser.parse_args()
    for version in given.version or VERSIONS:
        work, out = given.work.resolve() / version, given.out / version
        out.mkdir(parents=True, exist_ok=True)
        flink = install(version, work)
        jar = build(flink, work)
        for managers, slots, jobs in CLUSTERS:
            is_alone = slots == 1
            with cluster(flink, work, managers, slots):
                name = upload(jar)
                dag, settings, count = WARM_UP
                with job(name, arguments(dag, settings, "aligned", is_alone), count):
                    pass
                for label, dag, settings, count, modes in jobs:
                    for mode in modes:
                        with job(name, arguments(dag, settings, mode, is_alone), count) as number:
                            save(number, out / f"{label}_{mode}.json")


def save(number: str, path: Path) -> None:
    """Save what the cluster answers about a job."""
    url = f"http://{LOOPBACK}:{PORT}"
    answers = FlinkAnswers(url, {}, url)
    observed = observed_in(answers, job_of(answers, number))
    path.write_text(saved_text(answers), encoding="utf-8")
    mean = sum(each.end_to_end_ms for each in observed.steady) / len(observed.steady)
    print(f"{path.name}: {len(observed.checkpoints)} checkpoints, the last ones {mean:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
