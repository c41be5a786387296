"""Judges a sweep again: the invariants over its stored journals, in Spark SQL, beside what each run's own judge said.

Two judges that share nothing but the words: `model.spec.invariants` in Python, where the run ran, and the queries here.
A run that one calls broken and the other does not is a failure of one of them, and is named.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from barrierlab.model.spec.invariants import OF_A_STATE
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.store import Store, read_file
from barrierlab.sim.sweep.tables import RUNS
from barrierlab.sim.sweep.verify.queries import QUERIES
from barrierlab.sim.sweep.verify.views import VIEWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ELSEWHERE = {
    "REC": "what survives a crash, and what is visible in the external system",
    "CUT": "whether each state is the fold of what took effect before the cut",
}
"""The invariants judged where a run runs, not from its events: that takes the operators themselves."""

MOST_ENTRIES = 2_000_000
"""Journals are judged so many entries at a time, or one by one if they are longer."""

# Everything of a run is in one partition, so nothing is shuffled over and over; and queries are many and short.
_CONF = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.constraintPropagation.enabled": "false",  # checkpointed unions do not survive it
    "spark.sql.cteRecursionLevelLimit": "-1",  # a run may fail as often as it likes
    "spark.sql.cteRecursionRowLimit": "-1",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}

JudgedRow = dict[str, Any]


def verify(spark: SparkSession, store: Store, tick: Callable[[int], None] = lambda done: None) -> JudgedRow:
    """Return SQL's judgement of the runs in `store`, as a plain value that prints as JSON; `tick` is told how many are
    judged.

    Raises
    ------
    SweepError
        If no events are stored, or not all of a run's.
    """
    store.check_events()
    runs = {row["run_id"]: row for row in store.read("runs").to_pylist() if row["status"] == "OK"}
    found: dict[str, dict[str, JudgedRow]] = {name: {} for name in QUERIES}
    judged = 0
    for files, ids in _batches(store, runs):
        for name, rows in _judge(spark, store, files).items():
            found[name] |= rows
        judged += len(ids)
        tick(judged)
    return {
        "sweep": store.manifest()["sweep"],
        "runs": len(runs),
        "entries": sum(row["journal_entries"] for row in runs.values()),
        "invariants": {name: sum(row["violations"] for row in rows.values()) for name, rows in found.items()},
        "elsewhere": ELSEWHERE,
        "violations": [
            {"invariant": name, **row, "reproduce": reproduce(runs[run_id])}
            for name, rows in found.items()
            for run_id, row in sorted(rows.items())
        ],
        "disagreements": list(_disagreements(runs, found, store.read("violations").to_pylist())),
    }


def reproduce(run: Mapping[str, Any]) -> str:
    """The command that makes the run of a row of `runs` again."""
    settings = [f"--set {shlex.quote(f'{key}={_toml(value)}')}" for key, value in json.loads(run["parameters"]).items()]
    return " ".join(["barrierlab run", run["scenario"], f"--seed {run['seed']}", *settings])


def _toml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _batches(store: Store, runs: Mapping[str, JudgedRow]) -> Iterator[tuple[list[str], list[str]]]:
    """The names of chunks to be judged together, with the runs in them; all at once if a run is in several."""
    names: list[str] = []
    ids: list[str] = []
    entries = 0
    at_once = store.has_twins()
    for file in store.files(RUNS.name):
        its = [run_id for run_id in read_file(RUNS, file)["run_id"].to_pylist() if run_id in runs]
        more = sum(runs[run_id]["journal_entries"] for run_id in its)
        if names and entries + more > MOST_ENTRIES and not at_once:
            yield names, ids
            names, ids, entries = [], [], 0
        names.append(file.rpartition("/")[2])
        ids += its
        entries += more
    if names:
        yield names, list(dict.fromkeys(ids))


def _judge(spark: SparkSession, store: Store, names: list[str]) -> dict[str, dict[str, JudgedRow]]:
    """By invariant, what breaks it in each run: how many violations, and the first."""
    session = spark.newSession()  # views and settings of its own
    for key, value in _CONF.items():
        session.conf.set(key, value)
    for table in ("events", "channels", "runs"):
        declared = store.tables[table]
        files = [str(store.directory / table / name) for name in names]
        rows = session.read.schema(declared.spark()).parquet(*files).dropDuplicates(list(declared.key))
        rows.coalesce(1).createOrReplaceTempView(table)
    _are_whole(session, store)
    for name, view in VIEWS.items():
        frame = session.sql(view.sql)
        (frame.localCheckpoint() if view.kept else frame).createOrReplaceTempView(name)
    with ThreadPoolExecutor(spark.sparkContext.defaultParallelism) as pool:
        return dict(zip(QUERIES, pool.map(lambda query: _broken(session, query), QUERIES.values()), strict=True))


def _are_whole(session: SparkSession, store: Store) -> None:
    """SweepError if a run has not as many events as its journal had entries."""
    lacking = session.sql("""
        SELECT run_id, journal_entries, coalesce(count, 0) AS count
        FROM runs LEFT JOIN (SELECT run_id, count(*) AS count FROM events GROUP BY run_id) USING (run_id)
        WHERE status = 'OK' AND coalesce(count, 0) <> journal_entries
    """).first()
    if lacking is not None:
        raise SweepError(
            f"{store.directory} has {lacking['count']} of {lacking['journal_entries']} events of run "
            f"{lacking['run_id']}: sweep it again, into another directory"
        )


def _broken(session: SparkSession, query: str) -> dict[str, JudgedRow]:
    first = "min(struct(at_ns, attempt, reason)) AS first"
    rows = session.sql(f"SELECT run_id, count(*) AS violations, {first} FROM ({query}) GROUP BY run_id").collect()
    return {
        row["run_id"]: {"run_id": row["run_id"], "violations": row["violations"], **row["first"].asDict()}
        for row in rows
    }


def _disagreements(
    runs: Mapping[str, JudgedRow], found: Mapping[str, Mapping[str, JudgedRow]], told: Iterable[JudgedRow]
) -> Iterator[JudgedRow]:
    """The runs that one of the two judges calls broken, and the other does not, as far as both are asked."""
    told = list(told)
    own: dict[str, set[str]] = {run_id: set() for run_id in runs}
    of_states: dict[str, set[str]] = {run_id: set() for run_id in runs}
    for row in told:
        if row["invariant"] in QUERIES and row["run_id"] in runs:
            (of_states if row["reason"].startswith(OF_A_STATE) else own)[row["run_id"]].add(row["invariant"])
    counted = {row["run_id"] for row in told}
    for run_id, run in runs.items():
        here = [name for name in QUERIES if run_id in found[name]]
        there = [name for name in QUERIES if name in own[run_id]]
        unsaid = run["verdict"] == "broken" and run_id not in counted
        if (bool(there) or unsaid) != bool(here) and not (here and of_states[run_id]):
            yield {
                "run_id": run_id,
                "here": here,
                "where_it_ran": there,
                "reproduce": reproduce(run),
            }
