"""Analysis of a sweep, asked of its tables in SQL, on either engine; a plain value that prints as JSON.

Only steady completed checkpoints of runs without error count. A *cell* is one combination of parameters within a part.
Intervals are for 95 %, need at least five runs (`LEAST_RUNS`), and keep to what is possible: no time is below 0.

* Quantiles over the checkpoints of a cell lie between order statistics, without assuming a distribution. Checkpoints of
  one run are alike, so how many lie below a quantile varies from run to run: by that, and by no less than if they were
  independent, the ranks are apart (Woodruff's interval, clustered by run).
* Means over seeds: each seed gives one mean, Student's t over the seeds.
* Differences between two values of an axis under common random numbers: runs that differ in nothing else are paired,
  averaged within each seed, Student's t over the seeds. `adjusted_ms` holds for all differences of the sweep at once
  (Bonferroni): which of them is the strongest is seen in the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from barrierlab.model.spec.invariants import INVARIANTS, RUN_INVARIANTS
from barrierlab.sim.sweep import measured
from barrierlab.sim.sweep.engines import ENGINES, QueryEngine, choose, engine_for, engine_line, literal
from barrierlab.sim.sweep.outcome import GROUPED, WAYS, outcome
from barrierlab.sim.sweep.plan import short_hash
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.tables import TABLES

QUANTILES = (0.50, 0.90, 0.95, 0.99)
PIECES = ("start_delay_ms", "alignment_ms", "sync_ms", "rest_ms")  # of the critical path; they add up
STATISTICS = ("end_to_end_ms", *PIECES)
CONFIDENCE = 0.95
LEAST_RUNS = 5  # of fewer, Student's t is wide and rests on a normal distribution that nobody can see in them
_BINS = 5  # an axis whose values are drawn is shown in so many bins of about equal count, at most
ASKED = ("sweep", "title", "question", "parts", "versions")  # of the manifest
SHOWN_ERRORS = 50
READ = ("tasks", "checkpoints", "runs", "violations")
"""The tables that it reads, the largest first."""

AnalysisRow = dict[str, Any]
_ByValue = dict[tuple[int, str], AnalysisRow]  # keyed by the number of the axis, and value
_Cells = Mapping[int, AnalysisRow]  # by its number, in the order of part, scenario and parameters


def analysed(
    store: Store, engine: str = "auto", master: str | None = None, tell: Callable[[str], None] = lambda line: None
) -> AnalysisRow:
    """The analysis of the sweep in `store`: the kept one if results and program are the same still, else a new one.

    Parameters
    ----------
    engine, master
        As `engine_for` has them. A kept one counts only if it was made on the engine that is asked for.
    tell : callable
        Told in a line on which engine it is, or was, made, and why.
    """
    program = [Path(str(module)).read_text(encoding="utf-8") for module in (__file__, measured.__file__)]
    made_of = [version("barrierlab"), program, sorted(store.files("runs"))]
    chosen = choose(store, READ, engine, master)
    for made_on in ENGINES[1:] if engine == "auto" and master is None else (chosen,):
        if (kept := store.kept(short_hash([*made_of, made_on]))) is not None:
            tell(f"analysed before, on {made_on}; nothing has changed since")
            return kept
    store.check_files()
    tell(f"analysing on {engine_line(store, READ, engine, master)}")
    with engine_for(store, READ, engine, master) as sql:
        analysis = analyse(sql, store)
    store.keep(short_hash([*made_of, chosen]), analysis)
    return analysis


_CELLS = """
SELECT part, scenario, parameters, row_number() OVER (ORDER BY part, scenario, parameters) AS cell
FROM (SELECT DISTINCT part, scenario, parameters FROM runs) AS found
"""

# The runs without error, each with the number of its cell.
_RAN = """
SELECT run_id, cell, seed, failures, progress FROM runs JOIN cells USING (part, scenario, parameters)
WHERE status = 'OK'
"""

# The steady completed checkpoints, and the pieces of their critical path.
_STEADY = f"""
SELECT run_id, cell, seed, checkpoint_id, end_to_end_duration_ms AS end_to_end_ms,
    {", ".join(f"path_{piece} AS {piece}" for piece in PIECES)}
FROM checkpoints JOIN ran USING (run_id) WHERE steady AND status = 'COMPLETED'
"""

_PER_RUN = f"""
SELECT run_id, cell, seed, count(*) AS n, {", ".join(f"avg({name}) AS {name}" for name in STATISTICS)}
FROM steady GROUP BY run_id, cell, seed
"""

# Each duration with its place among those of its cell.
_RANKED = """
SELECT cell, run_id, end_to_end_ms AS value,
    row_number() OVER (PARTITION BY cell ORDER BY end_to_end_ms, run_id, checkpoint_id) AS place,
    count(*) OVER (PARTITION BY cell) AS n
FROM steady WHERE end_to_end_ms IS NOT NULL
"""


def analyse(sql: QueryEngine, store: Store) -> AnalysisRow:
    """The analysis of the sweep in `store`, whole or as far as it is."""
    manifest = store.manifest()
    sql.load(store, READ)
    for name, query, kept in (
        ("cells", _CELLS, True),
        ("ran", _RAN, True),
        ("steady", _STEADY, True),
        ("per_run", _PER_RUN, True),
        ("ranked", _RANKED, True),
    ):
        sql.view(name, query, kept)
    about = {
        row["cell"]: {"part": row["part"], "scenario": row["scenario"], "parameters": json.loads(row["parameters"])}
        for row in sql.rows("SELECT cell, part, scenario, parameters FROM cells")
    }
    return {
        "sweep": {key: manifest[key] for key in ASKED},
        "confidence": CONFIDENCE,
        "runs": _runs(sql, manifest["runs"]),
        "invariants": _invariants(sql),
        "completion": _completion(sql, about),
        "quantiles": _quantiles(sql, about),
        **_means(sql, about),
        "operators": _operators(sql),
        "effects": _effects(sql, about, manifest["parts"]),
        "measured": _measured(sql),
        "errors": sql.rows(f"""
            SELECT run_id, scenario, parameters, seed, error FROM runs WHERE status <> 'OK' ORDER BY run_id
            LIMIT {SHOWN_ERRORS}
        """),
    }


def _runs(sql: QueryEngine, planned: int) -> AnalysisRow:
    added = ("violations", "checkpoints_completed", "checkpoints_failed", "failures", "events_replayed", "duplicates")
    (row,) = sql.rows(f"SELECT {', '.join(f'coalesce(sum({c}), 0) AS {c}' for c in added)} FROM runs")
    (steady,) = sql.rows("SELECT count(*) AS number FROM steady")
    return {**outcome(sql.rows(GROUPED), planned), **row, "steady_checkpoints": steady["number"]}


def _invariants(sql: QueryEngine) -> dict[str, int]:
    rows = sql.rows("SELECT invariant, count(*) AS number FROM violations GROUP BY invariant")
    return by_invariant({row["invariant"]: row["number"] for row in rows}, (*INVARIANTS, *RUN_INVARIANTS))


def by_invariant(found: Mapping[str, int], known: Iterable[str]) -> dict[str, int]:
    """Violations by invariant: the known ones in their order, also those that held, then any other.

    >>> by_invariant({"FIFO": 2, "NEW": 1}, ["CUT", "FIFO"])
    {'CUT': 0, 'FIFO': 2, 'NEW': 1}
    """
    known = list(known)
    return {name: found.get(name, 0) for name in (*known, *sorted(found.keys() - set(known)))}


def _completion(sql: QueryEngine, about: _Cells) -> list[AnalysisRow]:
    """Return the outcomes of the steady checkpoints of each cell: durations are of the completed ones alone.

    A cell whose checkpoints expire has short durations, of the few that did not: its share says that first.
    """
    ways = "".join(f", count_if(progress = '{way}') AS way{i}" for i, way in enumerate(WAYS))
    rows = sql.rows(f"""
        SELECT * FROM (SELECT cell, count(*) AS runs, sum(failures) AS failures{ways} FROM ran GROUP BY cell) AS by_cell
        LEFT JOIN (
            SELECT cell, count(*) AS triggered, count_if(status = 'COMPLETED') AS completed,
                count_if(status = 'FAILED') AS failed
            FROM checkpoints JOIN ran USING (run_id) WHERE steady GROUP BY cell
        ) AS ended USING (cell)
        ORDER BY cell
    """)
    return [
        {
            **about[row["cell"]],
            **{name: row[name] or 0 for name in ("runs", "failures", "triggered", "completed", "failed")},
            "share": row["completed"] / row["triggered"] if row["triggered"] else None,
            "progress": {way: row[f"way{i}"] for i, way in enumerate(WAYS) if row[f"way{i}"]},
        }
        for row in rows
    ]


def _quantiles(sql: QueryEngine, about: _Cells) -> list[AnalysisRow]:
    """End-to-end quantiles of each cell, with the order statistics that bound them."""
    numbers = range(len(QUANTILES))
    at = [f"{literal(q)} * (n - 1)" for q in QUANTILES]  # between which places, counted from 0
    picked = [
        f"max(CASE WHEN place = 1 + cast(floor({at[i]}) AS bigint) THEN value END) AS low{i}, "
        f"max(CASE WHEN place = 1 + cast(ceil({at[i]}) AS bigint) THEN value END) AS high{i}"
        for i in numbers
    ]
    between = [f"low{i} + (high{i} - low{i}) * ({at[i]} - floor({at[i]})) AS at{i}" for i in numbers]
    sql.view(
        "points",
        f"SELECT cell, n, {', '.join(between)} FROM (SELECT cell, n, {', '.join(picked)} FROM ranked GROUP BY cell, n)"
        " AS picked",
        kept=True,
    )
    off = [
        f"sum(CASE WHEN value <= at{i} THEN 1 ELSE 0 END) - {literal(q)} * count(*) AS off{i}"
        for i, q in enumerate(QUANTILES)
    ]
    rows = sql.rows(f"""
        SELECT cell, n, runs, {", ".join(f"at{i}, spread{i}" for i in numbers)}
        FROM points JOIN (
            SELECT cell, count(*) AS runs, {", ".join(f"sum(off{i} * off{i}) AS spread{i}" for i in numbers)}
            FROM (
                SELECT cell, run_id, {", ".join(off)} FROM ranked JOIN points USING (cell) GROUP BY cell, run_id
            ) AS by_run
            GROUP BY cell
        ) AS clusters USING (cell)
        ORDER BY cell
    """)
    ranks = {
        (row["cell"], i): quantile_ranks(row["n"], q, row["runs"], row[f"spread{i}"])
        for row in rows
        for i, q in enumerate(QUANTILES)
    }
    wanted = sorted({(cell, rank) for (cell, _), both in ranks.items() for rank in both if rank})
    sql.add("wanted", _table("cell long, place long", wanted))
    at_rank = {
        (row["cell"], row["place"]): row["value"]
        for row in sql.rows("SELECT cell, place, value FROM ranked JOIN wanted USING (cell, place)")
    }
    return [
        {
            **about[row["cell"]],
            "n": row["n"],
            **{
                f"p{q * 100:.0f}": {
                    "at": row[f"at{i}"],
                    **dict(
                        zip(
                            ("low", "high"), (at_rank.get((row["cell"], r)) for r in ranks[row["cell"], i]), strict=True
                        )
                    ),
                }
                for i, q in enumerate(QUANTILES)
            },
        }
        for row in rows
    ]


def quantile_ranks(n: int, quantile: float, runs: int, spread: float) -> tuple[int, int]:
    """Ranks (from 1) of the values of a sample of `n` that enclose a quantile; 0 where it is too small for a bound.

    Parameters
    ----------
    runs : int
        From how many the values are.
    spread : float
        Over the runs, the sum of the squares of how many more of its values lie below than the quantile says.

    >>> quantile_ranks(100, 0.5, runs=20, spread=25.0), quantile_ranks(100, 0.5, runs=20, spread=100.0)
    ((39, 62), (28, 73))
    >>> quantile_ranks(10, 0.99, runs=5, spread=0.0), quantile_ranks(100, 0.5, runs=4, spread=0.0)
    ((9, 0), (0, 0))
    """
    from math import ceil, floor

    from scipy.stats import norm, t

    if runs < LEAST_RUNS:
        return 0, 0
    side = 0.5 + CONFIDENCE / 2.0
    alone = float(norm.ppf(side)) * (n * quantile * (1.0 - quantile)) ** 0.5
    half = max(alone, float(t.ppf(side, runs - 1)) * (spread * runs / (runs - 1)) ** 0.5)
    low, high = floor(n * quantile - half), ceil(n * quantile + half) + 1
    return max(low, 0), high if high <= n else 0


def t_interval(
    n: int,
    mean: float,
    deviation: float | None,
    confidence: float = CONFIDENCE,
    least: float = -inf,
    most: float = inf,
) -> AnalysisRow:
    """Return the mean of `n` independent values, which are from `least` to `most`, with Student's interval.

    No bounds with fewer values than `LEAST_RUNS`.
    """
    from scipy.stats import t

    if n < LEAST_RUNS or deviation is None:
        return {"n": n, "at": mean, "low": None, "high": None}
    half = float(t.ppf(0.5 + confidence / 2.0, n - 1)) * deviation / n**0.5
    return {"n": n, "at": mean, "low": max(mean - half, least), "high": min(mean + half, most)}


def _means(sql: QueryEngine, about: _Cells) -> dict[str, list[AnalysisRow]]:
    """Means of each cell, over seeds; and where the time of a checkpoint goes: each run counts alike."""
    rows = sql.rows(f"""
        SELECT cell, count(*) AS runs, sum(n) AS n, {_moments(STATISTICS)} FROM per_run GROUP BY cell ORDER BY cell
    """)
    return {
        "cells": [{**about[row["cell"]], **{s: _interval(row, s, least=0.0) for s in STATISTICS}} for row in rows],
        "pieces": [
            {**about[row["cell"]], "runs": row["runs"], "n": row["n"], **{s: row[f"{s}_mean"] for s in STATISTICS}}
            for row in rows
        ],
    }


def _operators(sql: QueryEngine) -> list[AnalysisRow]:
    """Return a scenario's times by operator: of each checkpoint the largest value over its subtasks, then the mean."""
    return sql.rows("""
        SELECT part, scenario, operator, sum(number) AS n, sum(start_delay) / nullif(sum(delayed), 0) AS start_delay_ms,
            sum(alignment) / nullif(sum(aligned), 0) AS alignment_ms
        FROM (
            SELECT cell, operator, count(*) AS number, sum(start_delay_ms) AS start_delay,
                count(start_delay_ms) AS delayed, sum(alignment_ms) AS alignment, count(alignment_ms) AS aligned
            FROM (
                SELECT cell, operator, run_id, checkpoint_id, max(tasks.start_delay_ms) AS start_delay_ms,
                    max(tasks.alignment_ms) AS alignment_ms
                FROM tasks JOIN steady USING (run_id, checkpoint_id)
                GROUP BY cell, operator, run_id, checkpoint_id
            ) AS largest
            GROUP BY cell, operator
        ) AS by_cell JOIN cells USING (cell)
        GROUP BY part, scenario, operator ORDER BY part, scenario, start_delay_ms, operator
    """)


class _VariedAxis(NamedTuple):
    """An axis of a part: its values as text, or None where they are drawn, and the one that others are compared with.

    That is the first with a steady completed checkpoint.
    """

    part: str
    name: str
    values: Sequence[str] | None
    base: str = ""


def _effects(sql: QueryEngine, about: _Cells, parts: Sequence[AnalysisRow]) -> list[AnalysisRow]:
    """Return of each axis of each part the means over the other axes, and differences from a value of the axis."""
    timed = {row["cell"]: about[row["cell"]] for row in sql.rows("SELECT DISTINCT cell FROM per_run ORDER BY cell")}
    found = {
        (cell["part"], name, text_of(value)) for cell in timed.values() for name, value in cell["parameters"].items()
    }
    axes = []
    for part, axis in ((each["name"], axis) for each in parts for axis in each["axes"]):
        values = axis["values"] and [text_of(value) for value in axis["values"]]
        if values is None or len(values) > 1:
            base = next((value for value in values or () if (part, axis["name"], value) in found), "")
            axes.append(_VariedAxis(part, axis["name"], values, base))
    if not axes:
        return []
    sql.add("settings", _settings(timed, axes))
    moved = ", ".join(STATISTICS)
    # A run for each axis: at which value of it, and in which setting of all others.
    sql.view(
        "along",
        f"SELECT axis, value, is_base, number, others, run_id, seed, {moved} FROM per_run JOIN settings USING (cell)",
        kept=True,
    )
    # Runs of one value share a bin: two bins of one value would have one middle, and be one row of half of them.
    bins = f"""
        SELECT axis, cast(bin AS string) AS value, seed, number, {moved}
        FROM (
            SELECT *, floor({_BINS} * (place - 1) / drawn) AS bin
            FROM (
                SELECT *, rank() OVER (PARTITION BY axis ORDER BY number) AS place,
                    cast(count(*) OVER (PARTITION BY axis) AS double) AS drawn
                FROM along WHERE number IS NOT NULL
            ) AS ranked_numbers
        ) AS binned_numbers
    """
    middles: dict[int, dict[str, float]] = {}
    for row in sql.rows(f"SELECT axis, value, avg(number) AS middle FROM ({bins}) AS binned GROUP BY axis, value"):
        middles.setdefault(row["axis"], {})[row["value"]] = row["middle"]
    names = {(axis, value): name for axis, of_axis in middles.items() for value, name in told_apart(of_axis).items()}
    listed = f"SELECT axis, value, seed, {moved} FROM along WHERE number IS NULL"
    binned = f"SELECT axis, value, seed, {moved} FROM ({bins}) AS binned"
    means = _over_seeds(sql, f"{listed} UNION ALL {binned}", names, least=0.0)
    against = _over_seeds(
        sql,
        f"""
        SELECT there.axis, there.value, there.seed, {", ".join(f"there.{s} - base.{s} AS {s}" for s in STATISTICS)}
        FROM along AS there JOIN along AS base
            ON base.axis = there.axis AND base.seed = there.seed AND base.others = there.others AND base.is_base
        WHERE NOT there.is_base AND there.number IS NULL
        """,
        {},
    )
    return [_effect(number, axis, means, against) for number, axis in enumerate(axes)]


def told_apart(values: Mapping[str, float]) -> dict[str, str]:
    """Return numbers as text, with three significant digits, or as many more as tell them all apart.

    >>> told_apart({"a": 1 / 3, "b": 2 / 3}), told_apart({"a": 12345.6, "b": 12349.8})
    ({'a': '0.333', 'b': '0.667'}, {'a': '12346', 'b': '12350'})
    """
    texts: dict[str, str] = {}
    for digits in range(3, 18):
        texts = {key: f"{float(f'{value:.{digits}g}'):.{max(digits, 6)}g}" for key, value in values.items()}
        if len(set(texts.values())) == len(set(values.values())):
            break
    return texts


def _settings(about: _Cells, axes: Sequence[_VariedAxis]) -> Any:
    """A row for each cell and axis of its part: the value, as a number if it is drawn; others with all else alike."""
    rows: list[tuple[Any, ...]] = []
    numbers: dict[tuple[int, str], int] = {}
    of_part: dict[str, list[tuple[int, _VariedAxis]]] = {}
    for number, axis in enumerate(axes):
        of_part.setdefault(axis.part, []).append((number, axis))
    for cell, words in about.items():
        given = words["parameters"]
        for number, axis in of_part.get(words["part"], ()):
            name = axis.name
            if name not in given:
                continue
            text = text_of(given[name])
            if axis.values is None:
                rows.append((cell, number, text, False, float(given[name]), None))
                continue
            rest = json.dumps({key: value for key, value in given.items() if key != name}, sort_keys=True)
            others = numbers.setdefault((number, f"{words['scenario']} {rest}"), len(numbers))
            rows.append((cell, number, text, text == axis.base, None, others))
    return _table("cell long, axis long, value string, is_base bool, number double, others long", rows)


def _over_seeds(sql: QueryEngine, query: str, names: Mapping[tuple[int, str], str], least: float = -inf) -> _ByValue:
    """Intervals by axis and value, under the name that it is given: averaged within each seed first, then over them."""
    rows = sql.rows(f"""
        SELECT axis, value, {_moments(STATISTICS)}
        FROM (
            SELECT axis, value, seed, {", ".join(f"avg({s}) AS {s}" for s in STATISTICS)}
            FROM ({query}) AS asked GROUP BY axis, value, seed
        ) AS by_seed
        GROUP BY axis, value
    """)
    of_all = 1.0 - (1.0 - CONFIDENCE) / max(len(rows), 1)
    return {
        (row["axis"], names.get((row["axis"], row["value"]), row["value"])): {
            **{s: _interval(row, s, least=least) for s in STATISTICS},
            "adjusted_ms": _interval(row, "end_to_end_ms", of_all, least),
        }
        for row in rows
    }


def _effect(number: int, axis: _VariedAxis, means: _ByValue, against: _ByValue) -> AnalysisRow:
    texts = axis.values
    if texts is None:
        texts = sorted((value for a, value in means if a == number), key=float)
    keys = [(number, text) for text in texts]
    return {
        "part": axis.part,
        "axis": axis.name,
        "drawn": axis.values is None,
        "values": [{"value": key[1], **means[key]} for key in keys if key in means],
        "without_checkpoints": [key[1] for key in keys if key not in means],
        "differences": [{"value": key[1], "from": axis.base, **against[key]} for key in keys if key in against],
    }


def text_of(value: Any) -> str:
    """A parameter's value in words."""
    return value if isinstance(value, str) else json.dumps(value)


def _measured(sql: QueryEngine) -> list[AnalysisRow]:
    """Predicted beside measured, averaged over seeds, for the measured jobs that the sweep has."""
    from barrierlab.sim.sweep.plan import parameters_text

    jobs = {(job.scenario, parameters_text(job.settings)): job.name for job in measured.load_measured()}
    table = [(*key, name) for key, name in jobs.items()]
    sql.add("jobs", _table("scenario string, parameters string, job string", table))
    sql.view("of_jobs", "SELECT run_id, job FROM runs JOIN jobs USING (scenario, parameters) WHERE status = 'OK'")
    by_run = {row["run_id"]: row["job"] for row in sql.rows("SELECT run_id, job FROM of_jobs")}
    if not by_run:
        return []
    checkpoints, tasks = (
        sql.rows(f"SELECT {name}.* FROM {name} JOIN of_jobs USING (run_id) ORDER BY {', '.join(TABLES[name].key)}")
        for name in ("checkpoints", "tasks")
    )
    return [cell.as_row() for cell in measured.compare(measured.predict(by_run, checkpoints, tasks))]


def _moments(statistics: Iterable[str]) -> str:
    return ", ".join(f"count({s}) AS {s}_n, avg({s}) AS {s}_mean, stddev_samp({s}) AS {s}_sd" for s in statistics)


def _interval(row: Any, statistic: str, confidence: float = CONFIDENCE, least: float = -inf) -> AnalysisRow:
    n, mean, deviation = (row[f"{statistic}_{name}"] for name in ("n", "mean", "sd"))
    return t_interval(n, mean, deviation, confidence, least)


def _table(columns: str, rows: Sequence[tuple[Any, ...]]) -> Any:
    """Rows of this process as a table: `columns` has their names and types."""
    import pyarrow as pa

    types = {"long": pa.int64(), "string": pa.string(), "double": pa.float64(), "bool": pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in (column.split() for column in columns.split(", "))])
    by_column = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(by_column, schema, strict=True)], schema=schema
    )
