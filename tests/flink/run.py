"""Jobs on real clusters of Apache Flink: run in several modes, and what their REST servers answered is saved.

    python -m tests.flink.run --work DIR --out DIR
    python -m tests.flink.run --work DIR --version 2.3.0 --group debloat200 --out DIR

Of each version a cluster of one task manager (local channels) and one of eight (a task manager for each subtask of the
chain, all channels remote) is started on the loopback device; each job of a group (`tests.flink.jobs`) runs there until
it has completed enough checkpoints. `barrierlab import --save` reads the answers; samples of its metrics lie beside
them. At the end the costs of a cluster are read off one run (`tests.flink.predictions`), all others are predicted, and
measured stands beside predicted. Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from barrierlab.sim.twin.answers import FlinkAnswers
from barrierlab.sim.twin.import_flink import job_of
from barrierlab.sim.twin.observed import observed_in, saved_text
from tests.flink.cluster import LOOPBACK, PORT, build, cluster, install, job, upload
from tests.flink.jobs import GROUPS, WARM_UP, Group
from tests.flink.predictions import show
from tests.flink.samples import Sampler

VERSIONS = ("2.3.0", "1.20.3")
SEEDS = 5  # of each prediction


def main() -> None:
    """Run every job on every version, and save the answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="a folder for environments, logs and checkpoints")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the answers, one of each version in it")
    parser.add_argument("--version", action="append", choices=VERSIONS, help="both, if none is given")
    parser.add_argument("--group", action="append", choices=GROUPS, help="local and remote, if none is given")
    given = parser.parse_args()
    work = given.work.resolve()
    for version in given.version or VERSIONS:
        out = given.out / version
        out.mkdir(parents=True, exist_ok=True)
        for group in given.group or ("local", "remote"):
            run_jobs(GROUPS[group], install(version, work), work / version, out)
        show(out, SEEDS)


def run_jobs(of: Group, flink: Path, work: Path, out: Path) -> None:
    """Run the jobs of a group on a cluster of their own, and save what it answers about them."""
    is_alone = of.slots == 1
    work.mkdir(parents=True, exist_ok=True)
    jar = build(flink, work)
    with cluster(flink, work, of.managers, of.slots, of.options):
        name = upload(jar)
        with job(name, WARM_UP.arguments(WARM_UP.modes[0], is_alone), WARM_UP.checkpoints):
            pass
        for each in of.jobs:
            for label, mode in each.runs():
                sampler, began = Sampler(label), time.monotonic()
                with job(name, each.arguments(mode, is_alone), each.checkpoints, watch=sampler) as number:
                    save(number, out / f"{label}.json", time.monotonic() - began)
                sampler.save(out / f"{label}.csv")


def save(number: str, path: Path, took_s: float) -> None:
    """Save what the cluster answers about a job."""
    url = f"http://{LOOPBACK}:{PORT}"
    answers = FlinkAnswers(url, {}, url)
    observed = observed_in(answers, job_of(answers, number))
    path.write_text(saved_text(answers), encoding="utf-8")
    mean = sum(each.end_to_end_ms for each in observed.steady) / len(observed.steady)
    print(
        f"{path.name}: {len(observed.checkpoints)} checkpoints, the last ones {mean:.0f} ms; {took_s:.0f} s", flush=True
    )


if __name__ == "__main__":
    main()
