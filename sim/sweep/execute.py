"""Runs the runs of a sweep, on Spark or on processes of this machine; both do the same work on the same chunks.

A worker computes a chunk of runs and stores it for good, then takes the next. Nothing but chunk numbers travels back,
so a sweep that is killed keeps all that was done, on either. On a cluster the directory must be one that every worker
can write.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from barrierlab.sim.core.budget import BudgetError
from barrierlab.sim.core.status import RAISED, raised_by_machine, text_of
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.plan import SweepPlan, SweepRun, parameters_text, short_hash
from barrierlab.sim.sweep.session import (
    check_master,
    is_local,
    local_cores,
    process_count,
    spark_failures,
    spark_session,
)
from barrierlab.sim.sweep.store import SCENARIOS, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = dict[str, list[dict[str, Any]]]
"""By table; a row of a journal's table is a whole journal, as columns."""
RunChunk = Sequence[SweepRun]
C = TypeVar("C")
SIMULATE = "barrierlab.sim.sweep.execute:simulate"
SIMULATE_WITH_EVENTS = "barrierlab.sim.sweep.execute:simulate_with_events"
MOST_IN_CHUNK = 256
FLUSH_S = 2.0
"""The time after which the rows of a worker are stored, or at the end of its chunk: so much is lost if it is killed."""
_TICK_S = 0.25


def execute(
    plan: SweepPlan,
    store: Store,
    master: str,
    tick: Callable[[int], None] = lambda done: None,
    simulate: str | None = None,
) -> None:
    """Compute the runs of `plan` that `store` lacks.

    Parameters
    ----------
    master : str
        A Spark master, or `processes` or `processes[N]`.
    tick : callable
        Told, some times a second, how many runs are done.
    simulate : str, optional
        `module:function` that turns a Run into rows, found by every worker. By default it simulates, and gives the
        events too if `store` keeps them.
    """
    with store.writing():
        _execute(plan, store, master, tick, simulate)


def _execute(plan: SweepPlan, store: Store, master: str, tick: Callable[[int], None], simulate: str | None) -> None:
    processes = process_count(check_master(master))
    simulate = simulate or (SIMULATE_WITH_EVENTS if store.keeps_events else SIMULATE)
    done = store.done()
    missing = [run for run in plan.runs if run.run_id not in done]
    if missing:
        work = partial(work_chunk, directory=str(store.directory.resolve()), simulate=simulate)
        spark = spark_session(master) if processes is None else None
        if spark is not None and not is_local(master):
            missing = _with_kept_scenarios(missing, store)
        with interrupts() as interrupted:
            watch = partial(_watch, store, tick, interrupted)
            if spark is not None:
                on_spark(spark, chunks_of(missing, _cores(spark, master)), work, watch)
            else:
                on_processes(processes or 1, chunks_of(missing, processes or 1), work, watch)
    tick(store.count())


def chunks_of(runs: Iterable[SweepRun], workers: int) -> list[RunChunk]:
    """The runs cut into chunks: many, so that no worker idles; mixed, so that long runs spread."""
    mixed = sorted(runs, key=lambda run: run.run_id)  # an id is a digest, so this order is as good as shuffled
    size = min(MOST_IN_CHUNK, max(1, math.ceil(len(mixed) / (16 * workers))))
    return [mixed[i : i + size] for i in range(0, len(mixed), size)]


def _with_kept_scenarios(runs: Iterable[SweepRun], store: Store) -> list[SweepRun]:
    """The same runs, of the copies of their scenarios that the directory has: workers elsewhere have no others."""
    kept: dict[str, str] = {}
    for run in runs:
        if run.source.endswith(".toml") and run.source not in kept:
            content = Path(run.source).read_bytes().decode(errors="replace")
            copy = store.directory.resolve() / SCENARIOS / short_hash(content) / Path(run.source).name
            kept[run.source] = str(copy) if copy.is_file() else run.source
    return [replace(run, source=kept.get(run.source, run.source)) for run in runs]


def _watch(store: Store, tick: Callable[[int], None], interrupted: Callable[[], bool]) -> None:
    tick(store.count())
    if interrupted():
        raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C, and no more: an exception out of nowhere could leave a lock of the pool taken for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    pressed = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _cores(spark: SparkSession, master: str) -> int:
    return local_cores(master) if master.startswith("local[") else spark.sparkContext.defaultParallelism


# In the worker.

_frozen = False


def work_chunk(chunk: RunChunk, directory: str, simulate: str) -> None:
    """Compute the runs of a chunk and store them."""
    global _frozen  # noqa: PLW0603 - once a process, not once a chunk
    if not _frozen:
        gc.freeze()  # Spark collects garbage after every task: with the libraries loaded 20 ms, frozen nothing
        _frozen = True
    module, _, name = simulate.partition(":")
    compute: Callable[[SweepRun], Rows] = getattr(import_module(module), name)
    store = Store(directory)
    rows: Rows = {table: [] for table in store.tables}
    since = time.monotonic()
    for number, run in enumerate(chunk, 1):
        for table, found in rows_of(run, compute).items():
            rows[table] += found
        if number == len(chunk) or time.monotonic() - since > FLUSH_S:
            store.write_chunk(rows)
            rows, since = {table: [] for table in rows}, time.monotonic()


def rows_of(run: SweepRun, compute: Callable[[SweepRun], Rows]) -> Rows:
    """The rows of one run, each with its run id. A run that raises gives one row in `runs`, with its error.

    Where a machine of the system under test has raised, the run is broken, and the error is a violation, RAISED.
    """
    about: dict[str, Any] = {
        "run_id": run.run_id,
        "part": run.part,
        "scenario": run.scenario,
        "parameters": parameters_text(run.parameters),
        "seed": run.seed,
    }
    try:
        computed = compute(run)
    except Exception as error:
        machine = raised_by_machine(error)
        if machine is None:
            return {"runs": [{**about, "status": "ERROR", "error": text_of(error)}]}
        violation = {"run_id": run.run_id, "number": 0, "invariant": RAISED, "reason": machine}
        broken = {"status": RAISED, "error": machine, "verdict": "broken", "violations": 1}
        return {"runs": [about | broken], "violations": [violation]}
    rows: Rows = {name: [{"run_id": run.run_id, **row} for row in found] for name, found in computed.items()}
    rows["runs"] = [{**computed["runs"][0], **about, "status": "OK"}]
    return rows


def simulate(run: SweepRun) -> Rows:
    """The rows of one simulated run."""
    return _summed_up(_simulated(run))


def simulate_with_events(run: SweepRun) -> Rows:
    """The rows of one simulated run of a job, and its journal."""
    from barrierlab.sim.sweep.journal import channel_rows, journal_columns

    result = _simulated(run)
    return {
        **_summed_up(result),
        "events": [journal_columns(result.entries)],
        "channels": channel_rows(result.scenario.topology, result.limits),
    }


def _simulated(run: SweepRun) -> Any:
    from barrierlab.sim import load
    from barrierlab.sim import run as simulated

    return simulated(load(run.source, settings=run.parameters), seed=run.seed)


def _summed_up(result: Any) -> Rows:
    return {
        "runs": [result.run_row()],
        "checkpoints": result.checkpoint_rows(),
        "tasks": result.task_rows(),
        "joins": result.join_rows(),
        "violations": [{"number": number, **row} for number, row in enumerate(result.violation_rows())],
    }


# The two ways to have chunks computed.


def on_processes(processes: int, chunks: Sequence[C], work: Callable[[C], None], watch: Callable[[], None]) -> None:
    """Execute on processes of this machine. Interrupted, it begins no more chunks."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(processes, len(chunks)), mp_context=context, initializer=in_worker)
    try:
        waiting = {pool.submit(work, chunk) for chunk in chunks}
        while waiting:
            finished, waiting = wait(waiting, _TICK_S, FIRST_COMPLETED)
            watch()  # first, as Ctrl-C ends the workers too
            for future in finished:
                future.result()
    except BudgetError:
        for child in multiprocessing.active_children():
            child.terminate()  # a run that would go on for ever; what is half written counts for nothing
        raise
    except BrokenProcessPool:
        raise SweepError("a worker process died (killed, or out of memory): continue with --resume") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_worker() -> None:
    """Die with the parent, and at Ctrl-C without a word: what is not stored is computed again."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def on_spark(spark: SparkSession, chunks: Sequence[C], work: Callable[[C], None], watch: Callable[[], None]) -> None:
    """Execute on Spark: partitions of some chunks each, to each task its own alone. Interrupted, it cancels the job.

    A task whose executor is lost is run again, by Spark; what it had stored is stored again under the same names, or
    is there twice, and read once.
    """

    def work_all(own: Iterable[C]) -> None:
        for chunk in own:
            work(chunk)

    context = spark.sparkContext
    tasks = context.parallelize(chunks, min(len(chunks), 16 * context.defaultParallelism))
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(tasks.foreachPartition, work_all)
        try:
            while not wait([job], _TICK_S).done:
                watch()
        except BaseException:
            context.cancelAllJobs()
            raise
    with spark_failures("a task of Spark failed", "continue with --resume"):
        job.result()
