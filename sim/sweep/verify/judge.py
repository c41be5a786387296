"""Judges a sweep again: the invariants over its stored journals, in SQL, beside what each run's own judge said.

Two judges that share nothing but the words: `model.spec.invariants` in Python, where the run ran, and the queries here.
A run that one calls broken and the other does not is a failure of one of them, and is named. The queries are one text
for both engines, which is asked of runs that are far apart in one go on Spark, and in batches on DuckDB.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from barrierlab.model.spec.invariants import OF_A_STATE
from barrierlab.sim.sweep.engines import QueryEngine, engine_for, quoted
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.verify.queries import QUERIES
from barrierlab.sim.sweep.verify.views import VIEWS

if TYPE_CHECKING:
    import pyarrow as pa

ELSEWHERE = {
    "REC": "what survives a crash, and what is visible in the external system",
    "CUT": "whether each state is the fold of what took effect before the cut",
}
"""The invariants judged where a run runs, not from its events: that takes the operators themselves."""

ASKED = ("events", "channels", "runs")
"""The tables that the queries read, the largest first."""

MOST_ENTRIES = 4_000_000
"""DuckDB judges journals so many entries at a time, or one by one if they are longer: what it keeps fits in memory."""

JudgedRow = dict[str, Any]


def verify(
    store: Store, engine: str = "auto", master: str | None = None, tick: Callable[[int], None] = lambda done: None
) -> JudgedRow:
    """Return SQL's judgement of the runs in `store`, as a plain value that prints as JSON; `tick` gets how many are
    judged.

    Raises
    ------
    SweepError
        If no events are stored, or not all of a run's; or the engine cannot run, or fails.
    """
    store.check_events()
    found: dict[str, dict[str, JudgedRow]] = {name: {} for name in QUERIES}
    rows = store.read("runs", ("run_id", "status", "journal_entries", "verdict"))
    rows = rows.filter(_equal(rows["status"], "OK"))
    judged = 0
    with engine_for(store, ASKED, engine, master, keeps=True) as sql:
        for count, where in _batches(rows) if sql.name == "DuckDB" else [(rows.num_rows, "true")]:
            for name, broken in _judge(sql, store, where).items():
                found[name] |= broken
            judged += count
            tick(judged)
        used = sql.name
    reported = store.read("violations", ("run_id", "number", "invariant", "reason")).to_pylist()
    broken_there = rows.filter(_equal(rows["verdict"], "broken"))["run_id"].to_pylist()
    named = (
        {row["run_id"] for row in reported} | set(broken_there) | {run_id for each in found.values() for run_id in each}
    )
    runs = {row["run_id"]: row for row in store.rows_of_runs(named) if row["status"] == "OK"}
    return {
        "sweep": store.manifest()["sweep"],
        "engine": used,
        "runs": rows.num_rows,
        "entries": sum(rows["journal_entries"].to_pylist()),
        "invariants": {name: sum(row["violations"] for row in rows.values()) for name, rows in found.items()},
        "elsewhere": ELSEWHERE,
        "violations": [
            {"invariant": name, **row, "reproduce": reproduce(store, run_id)}
            for name, rows in found.items()
            for run_id, row in sorted(rows.items())
        ],
        "disagreements": list(_disagreements(store, runs, found, reported)),
    }


def _equal(column: pa.ChunkedArray, value: str) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.equal(column, value)


def reproduce(store: Store, run_id: str) -> str:
    """The command that makes a run again, of a scenario of any origin, and checks its digest."""
    return shlex.join(["barrierlab", "rerun", str(store.directory), run_id])


def _batches(runs: pa.Table) -> Iterator[tuple[int, str]]:
    """The runs, in the order of their ids, cut where they have entries enough: how many, and which, in SQL."""
    first, count, entries = "", 0, 0
    last = ""
    for run_id, more in zip(runs["run_id"].to_pylist(), runs["journal_entries"].to_pylist(), strict=True):
        if count and entries + more > MOST_ENTRIES:
            yield count, f"run_id BETWEEN {quoted(first)} AND {quoted(last)}"
            count, entries = 0, 0
        if not count:
            first = run_id
        last, count, entries = run_id, count + 1, entries + more
    if count:
        yield count, f"run_id BETWEEN {quoted(first)} AND {quoted(last)}"


def _judge(sql: QueryEngine, store: Store, where: str) -> dict[str, dict[str, JudgedRow]]:
    """Return by invariant what breaks it in each run: how many violations, and the first."""
    sql.load(store, ASKED, where)
    _are_whole(sql, store)
    for name, view in VIEWS.items():
        sql.view(name, view.sql, view.kept)
    found = sql.rows_of_each({name: _FIRST.format(query=query) for name, query in QUERIES.items()})
    return {name: {row["run_id"]: row for row in rows} for name, rows in found.items()}


_FIRST = """
SELECT run_id, violations, at_ns, attempt, reason
FROM (
    SELECT run_id, at_ns, attempt, reason, count(*) OVER (PARTITION BY run_id) AS violations,
        row_number() OVER (PARTITION BY run_id ORDER BY at_ns, attempt, reason) AS place
    FROM ({query}) AS broken
) AS placed
WHERE place = 1
"""


def _are_whole(sql: QueryEngine, store: Store) -> None:
    """Raise SweepError if a run has not as many events as its journal had entries."""
    lacking = sql.rows("""
        SELECT run_id, journal_entries, coalesce(found, 0) AS found
        FROM runs LEFT JOIN (SELECT run_id, count(*) AS found FROM events GROUP BY run_id) AS counts USING (run_id)
        WHERE status = 'OK' AND coalesce(found, 0) <> journal_entries ORDER BY run_id LIMIT 1
    """)
    for row in lacking:
        raise SweepError(
            f"{store.directory} has {row['found']} of {row['journal_entries']} events of run "
            f"{row['run_id']}: sweep it again, into another directory"
        )


def _disagreements(
    store: Store,
    runs: Mapping[str, JudgedRow],
    found: Mapping[str, Mapping[str, JudgedRow]],
    reported: Iterable[JudgedRow],
) -> Iterator[JudgedRow]:
    """The runs that one of the two judges calls broken, and the other does not, as far as both are asked."""
    reported = list(reported)
    own: dict[str, set[str]] = {run_id: set() for run_id in runs}
    of_states: dict[str, set[str]] = {run_id: set() for run_id in runs}
    for row in reported:
        if row["invariant"] in QUERIES and row["run_id"] in runs:
            (of_states if row["reason"].startswith(OF_A_STATE) else own)[row["run_id"]].add(row["invariant"])
    counted = {row["run_id"] for row in reported}
    for run_id, run in runs.items():
        here = [name for name in QUERIES if run_id in found[name]]
        there = [name for name in QUERIES if name in own[run_id]]
        unsaid = run["verdict"] == "broken" and run_id not in counted
        if (bool(there) or unsaid) != bool(here) and not (here and of_states[run_id]):
            yield {
                "run_id": run_id,
                "here": here,
                "where_it_ran": there,
                "reproduce": reproduce(store, run_id),
            }
