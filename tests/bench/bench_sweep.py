"""Sweeps at size, each figure beside its target: `python -m tests.bench.bench_sweep [--share 0.1] [NAME ...]`.

Each measurement is a process of its own. CPU and memory are those of it and all that it starts, the JVM and Spark's
workers included. Ratios are of CPU, and of wall time only where both sides are measured here, one after the other.
With `--share` a measurement takes that share of the full size, with `--on` it is made there alone (`loop`, a master,
an engine), and with `--keep DIR` what was made to be measured is kept there, and found there the next time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

RUNS, ROWS, ENTRIES, PLANNED, MODELLED = 20_000, 1_000_000, 10_000_000, 1_000_000, 100_000
RUN_S = 0.005


class Used(NamedTuple):
    """Time and memory of a process and all that it starts."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    said: str


class Asked(NamedTuple):
    """A request of the command line for a figure."""

    share: float
    folder: Path
    on: list[str] | None

    def of(self, *possible: str) -> list[str]:
        """Return where it is measured."""
        return [each for each in possible if self.on is None or each in self.on]


def measured(*arguments: str) -> Used:
    """Run `python -m tests.bench.bench_sweep do ARGUMENTS`, and look at its processes ten times a second.

    Memory is asked for once a second: the kernel walks all pages of a process for it, of a JVM for 10 ms.
    """
    start, cpu, peak, family = time.monotonic(), dict[int, float](), 0.0, set[int]()
    looked = 0
    command = [sys.executable, "-m", "tests.bench.bench_sweep", "do", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        family.add(process.pid)
        while process.poll() is None:
            cpu |= cpu_of(family)
            if looked % 10 == 0:
                peak = max(peak, sum(map(mb_of, sorted(family))))
            looked += 1
            time.sleep(0.1)
        said = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with status {process.returncode}")
    return Used(time.monotonic() - start, sum(cpu.values()), peak, said.strip())


def cpu_of(family: set[int]) -> dict[int, float]:
    """CPU seconds of each process of a family, to which children are added."""
    found = {}
    tick = os.sysconf("SC_CLK_TCK")
    for pid in sorted(int(folder.name) for folder in Path("/proc").glob("[0-9]*")):
        try:
            fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if pid in family or int(fields[1]) in family:
            family.add(pid)
            found[pid] = (int(fields[11]) + int(fields[12])) / tick
    return found


def mb_of(pid: int) -> float:
    """MB of a process, shared pages by their share; 0 if it has ended."""
    try:
        lines = Path("/proc", str(pid), "smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0.0


# What is measured.


def short_run(run: Any) -> dict[str, list[dict[str, Any]]]:
    """Take 5 ms of CPU, and give the rows of a small run: four checkpoints of three tasks."""
    work(RUN_S)
    return rows_of_run(run.seed, 4, 3)


def tiny_run(run: Any) -> dict[str, list[dict[str, Any]]]:
    """Take 1 ms of CPU, and give the rows of `short_run`."""
    work(0.001)
    return rows_of_run(run.seed, 4, 3)


def wordy_run(run: Any) -> dict[str, list[dict[str, Any]]]:
    """Take 1 ms of CPU, and give ten times the rows of `short_run`."""
    work(0.001)
    return rows_of_run(run.seed, 40, 3)


def work(seconds: float) -> None:
    """Take so much CPU."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def rows_of_run(number: int, checkpoints: int, tasks: int) -> dict[str, list[dict[str, Any]]]:
    """Rows whose durations follow from a number."""
    made: dict[str, list[dict[str, Any]]] = {"runs": [], "checkpoints": [], "tasks": [], "joins": [], "violations": []}
    made["runs"].append({"verdict": "holds", "violations": 0, "checkpoints_completed": checkpoints})
    for each in range(1, checkpoints + 1):
        ms = 100.0 + (number * 7919 + each * 104_729) % 1000 / 10
        pieces = {"path_start_delay_ms": ms / 2, "path_alignment_ms": ms / 4, "path_sync_ms": 1.0, "path_rest_ms": 2.0}
        key = {"checkpoint_id": each, "status": "COMPLETED", "steady": True}
        made["checkpoints"].append({**key, "end_to_end_duration_ms": ms, **pieces})
        for task in range(tasks):
            about = {"checkpoint_id": each, "operator": f"op{task}", "subtask": 0, "steady": True}
            made["tasks"].append({**about, "start_delay_ms": ms / 2, "alignment_ms": ms / 4})
    return made


def plan_of_runs(runs: int) -> Any:
    """A plan of so many runs, with a hundred settings."""
    from barrierlab.sim.sweep.plan import plan_of

    rates = [float(rate) for rate in range(1, 101)]
    text = (
        f'[[part]]\nscenario = "diamond"\nseeds = {{ first = 1, last = {max(1, runs // 100)} }}\n'
        f'grid = {{ "source.source.rate_per_s" = {rates} }}\n'
    )
    return plan_of(text, "big", Path("big.toml"))


def do_plan(runs: str) -> None:
    """Plan runs that all differ in their settings."""
    from barrierlab.sim.sweep.plan import plan_of

    text = (
        '[[part]]\nscenario = "diamond"\nseeds = [1]\n[part.random]\n'
        f'samples = {runs}\naxes."source.source.rate_per_s" = {{ low = 1.0, high = 10.0 }}\n'
        "axes.until_s = { low = 3.0, high = 10.0 }\n"
    )
    plan = plan_of(text, "big", Path("big.toml"))
    print(len(plan.runs), plan.digest)


def do_sweep(directory: str, master: str, runs: str, kind: str = "short_run") -> None:
    """Sweep runs, and bring their files together; print the wall time of plan, runs and bringing together."""
    from barrierlab.sim.sweep.compact import compact
    from barrierlab.sim.sweep.execute import execute
    from barrierlab.sim.sweep.session import process_count, spark_session
    from barrierlab.sim.sweep.store import Store

    times = [time.monotonic()]
    plan = plan_of_runs(int(runs))
    store = Store.create(directory, plan)
    times.append(time.monotonic())
    if process_count(master) is None:
        spark_session(master).range(1).count()  # the fixed start
    start = time.monotonic()
    execute(plan, store, master, simulate=f"tests.bench.bench_sweep:{kind}")
    times.append(times[-1] + time.monotonic() - start)
    start = time.monotonic()
    compact(store)
    times.append(times[-1] + time.monotonic() - start)
    print(*(after - before for before, after in pairwise(times)))


def do_loop(runs: str) -> None:
    """The same runs in a plain loop that stores nothing."""
    plan = plan_of_runs(int(runs))
    start = time.monotonic()
    for run in plan.runs:
        short_run(run)
    print(time.monotonic() - start)


def do_rows(directory: str, rows: str) -> None:
    """Make a sweep of so many checkpoint rows, a hundred a run."""
    from barrierlab.sim.sweep.compact import compact
    from barrierlab.sim.sweep.execute import rows_of
    from barrierlab.sim.sweep.store import Store

    plan = plan_of_runs(int(rows) // 100)
    store = Store.create(directory, plan)
    runs = sorted(plan.runs, key=lambda run: run.run_id)
    for first in range(0, len(runs), 200):
        chunk: dict[str, list[dict[str, Any]]] = {table: [] for table in store.tables}
        for run in runs[first : first + 200]:
            for table, found in rows_of(run, lambda run: rows_of_run(run.seed, 100, 1)).items():
                chunk[table] += found
        store.write_chunk(chunk)
    compact(store)


def do_analyse(directory: str, engine: str) -> None:
    """Analyse it."""
    from barrierlab.sim.sweep.analyse import READ, analyse
    from barrierlab.sim.sweep.engines import engine_for
    from barrierlab.sim.sweep.store import Store

    store = Store.open(directory)
    with engine_for(store, READ, engine, None if engine == "duckdb" else "local[2]") as sql:
        found = analyse(sql, store)
    print(found["runs"]["steady_checkpoints"], round(sum(row["p99"]["at"] for row in found["quantiles"]), 6))


def do_journals(directory: str, entries: str) -> None:
    """Make a sweep of so many events: the journals of a few runs, again and again under other ids."""
    from barrierlab.sim import load, run
    from barrierlab.sim.sweep.compact import compact
    from barrierlab.sim.sweep.journal import channel_rows, journal_columns
    from barrierlab.sim.sweep.store import Store

    store = Store.create(directory, plan_of_runs(100), keeps_events=True)
    results = [
        run(load("survive_anything", {"until_s": 4.0, "trouble": each}), seed=1) for each in ("nothing", "crashes")
    ]
    journals = [(len(result.entries), journal_columns(result.entries), result) for result in results]
    made = number = 0
    while made < int(entries):
        chunk: dict[str, list[dict[str, Any]]] = {table: [] for table in store.tables}
        for _ in range(20):
            size, columns, result = journals[number % len(journals)]
            run_id = f"{number:016x}"
            about = {"run_id": run_id, "part": "big", "scenario": "survive_anything", "parameters": "{}", "seed": 1}
            row = {"status": "OK", "verdict": "holds", "journal_entries": size, "cut_off": result._engine.cut_off}
            chunk["runs"].append(about | row | {"consistency": result.limits.consistency})
            chunk["events"].append({"run_id": run_id, **columns})
            chunk["channels"] += [
                {"run_id": run_id, **c} for c in channel_rows(result.scenario.topology, result.limits)
            ]
            made, number = made + size, number + 1
        store.write_chunk(chunk)
    compact(store)


def do_verify(directory: str, engine: str) -> None:
    """Judge it."""
    from barrierlab.sim.sweep.store import Store
    from barrierlab.sim.sweep.verify.judge import verify

    found = verify(Store.open(directory), engine, None if engine == "duckdb" else "local[2]")
    print(found["entries"], len(found["violations"]))


# The figures.


def plan(asked: Asked) -> None:
    """A million runs, all different."""
    runs = int(PLANNED * asked.share)
    show(f"plan {runs:,} runs", measured("plan", str(runs)), "2 min, 1 GB for a million")


def sweep(asked: Asked) -> None:
    """Short runs."""
    runs = max(100, int(RUNS * asked.share) // 100 * 100)
    walls = {}
    for where in asked.of("loop", "processes[2]", "local[1]", "local[2]"):
        if where == "loop":
            loop = measured("loop", str(runs))
            walls[where] = float(loop.said)
            show(f"{runs:,} runs of 5 ms in a plain loop", loop)
            continue
        shutil.rmtree(asked.folder / where, ignore_errors=True)
        used = measured("sweep", str(asked.folder / where), where, str(runs))
        walls[where] = float(used.said.split()[1])
        files = len(list((asked.folder / where).rglob("*.parquet")))
        target = "1.5 GB for 20,000" if where.startswith("local") else ""
        show(f"{runs:,} runs of 5 ms on {where}, stored, in {files} files", used, target)
    if {"loop", "local[1]"} <= set(walls):
        print(f"  overhead over the loop on local[1]: {walls['local[1]'] / walls['loop'] - 1:.1%} (target: 10 %)")
    if {"local[1]", "local[2]"} <= set(walls):
        times = walls["local[1]"] / walls["local[2]"]
        print(f"  local[2] is {times:.2f} times local[1] (target: 1.8, on two free cores)")


def analyse(asked: Asked) -> None:
    """Checkpoint rows."""
    rows = int(ROWS * asked.share)
    folder = made(asked, f"{rows} rows", "rows", rows)
    both = {engine: measured("analyse", str(folder), engine) for engine in asked.of("duckdb", "spark")}
    for engine, used in both.items():
        show(f"analyse {rows:,} checkpoint rows on {engine}", used, "60 s" if engine == "duckdb" else "10 min")
    print(f"  the same rows: {len({used.said for used in both.values()}) == 1}")


def verify(asked: Asked) -> None:
    """Events, of a tenth and of all."""
    for entries in (int(ENTRIES * asked.share / 10), int(ENTRIES * asked.share)):
        folder, said = made(asked, f"{entries} events", "journals", entries), set()
        for engine in asked.of("duckdb", "spark"):
            used = measured("verify", str(folder), engine)
            show(f"verify {entries:,} events on {engine}", used, "5 min for 10 million")
            said.add(used.said)
        print(f"  the same rows: {len(said) == 1}")


def made(asked: Asked, name: str, kind: str, size: int) -> Path:
    """Return the directory of a sweep that is made to be measured, if it is not there."""
    folder = asked.folder / name
    if not folder.exists():
        show(f"make {name}", measured(kind, str(folder), str(size)))
    return folder


def model(asked: Asked) -> None:
    """The cost model of `docs/scale.md`: constants from 2,000 and 10,000 runs, and a hundred thousand beside it."""
    runs, small, large = int(MODELLED * asked.share), 2_000, 10_000
    rows, most_rows = (sum(map(len, rows_of_run(1, checkpoints, 3).values())) for checkpoints in (4, 40))
    for where in asked.of("processes[2]", "local[2]"):
        found = {}
        for kind, count in (("tiny_run", small), ("wordy_run", small), ("tiny_run", large), ("tiny_run", runs)):
            folder = asked.folder / f"{where} {kind} {count}"
            used = measured("sweep", str(folder), where, str(count), kind)
            show(f"{count:,} runs of 1 ms on {where} ({kind})", used)
            found[kind, count] = (*map(float, used.said.split()), used.cpu_s)
            shutil.rmtree(folder)
        few, many, wordy = found["tiny_run", small], found["tiny_run", large], found["wordy_run", small]
        for step, word in enumerate(("planned, s", "run, s", "brought together, s", "CPU, s")):
            a_run = (many[step] - few[step]) / (large - small)
            a_row = (wordy[step] - few[step]) / (small * (most_rows - rows))
            predicted = few[step] + a_run * (runs - small)
            print(
                f"  {word:20} {1e6 * a_run:7.1f} us a run, of it {1e6 * a_row:6.2f} us a row; "
                f"{runs:,} runs: predicted {predicted:7.1f}, measured {found['tiny_run', runs][step]:7.1f}"
            )


def show(what: str, used: Used, target: str = "") -> None:
    """Print a row."""
    told = f"   (target: {target})" if target else ""
    print(f"{what:58} {used.cpu_s:8.1f} s CPU {used.wall_s:8.1f} s wall {used.peak_mb:8.0f} MB{told}", flush=True)


FIGURES = {each.__name__: each for each in (plan, sweep, analyse, verify, model)}


def main() -> None:
    """Measure what is asked for."""
    if sys.argv[1:2] == ["do"]:
        globals()[f"do_{sys.argv[2]}"](*sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*FIGURES, []])
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--on", action="append", help="a plain loop (`loop`), a master or an engine; repeatable")
    parser.add_argument("--keep", type=Path, help="a folder for what is made to be measured")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barrierlab-bench-") as folder:
        for name in given.names or FIGURES:
            FIGURES[name](Asked(given.share, (given.keep or Path(folder)).resolve(), given.on))


if __name__ == "__main__":
    main()
