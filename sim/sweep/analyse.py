"""Analysis of a sweep, computed in Spark from its tables; a plain value that prints as JSON.

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
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barrierlab.model.spec.invariants import INVARIANTS, RUN_INVARIANTS
from barrierlab.sim.sweep import measured
from barrierlab.sim.sweep.outcome import COLUMNS, WAYS, outcome
from barrierlab.sim.sweep.plan import short_hash
from barrierlab.sim.sweep.session import spark_failures, spark_session
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUANTILES = (0.50, 0.90, 0.95, 0.99)
PIECES = ("start_delay_ms", "alignment_ms", "sync_ms", "rest_ms")  # of the critical path; they add up
STATISTICS = ("end_to_end_ms", *PIECES)
CONFIDENCE = 0.95
LEAST_RUNS = 5  # of fewer, Student's t is wide and rests on a normal distribution that nobody can see in them
_BINS = 5  # an axis whose values are drawn is shown in so many bins of equal count
ASKED = ("sweep", "title", "question", "parts", "versions")  # of the manifest
SHOWN_ERRORS = 50
_FEW_RUNS = 5000

AnalysisRow = dict[str, Any]
_ByValue = dict[tuple[str, str, str], AnalysisRow]  # keyed by part, axis, value


def analysed(store: Store, master: str) -> AnalysisRow:
    """The analysis of the sweep in `store`: the kept one if results and program are the same still, else a new one."""
    program = [Path(str(module)).read_text(encoding="utf-8") for module in (__file__, measured.__file__)]
    basis = short_hash([version("barrierlab"), program, sorted(store.files("runs"))])
    if (kept := store.kept(basis)) is None:
        store.check_files()
        spark = spark_session(master)
        with spark_failures(
            "the analysis failed", "if a file of the sweep is damaged, remove it and sweep with --resume"
        ):
            kept = analyse(spark, store)
        store.keep(basis, kept)
    return kept


def analyse(spark: SparkSession, store: Store) -> AnalysisRow:
    """The analysis of the sweep in `store`, whole or as far as it is."""
    from pyspark.sql import functions as F

    manifest = store.manifest()
    # To compile a query to byte code takes longer than to run it on a few thousand runs.
    spark.conf.set("spark.sql.codegen.wholeStage", str(manifest["runs"] > _FEW_RUNS).lower())
    runs = read(spark, store, "runs").cache()
    steady = checkpoints(spark, store).cache()
    per_run = steady.groupBy("run_id", "part", "scenario", "parameters", "seed").agg(
        F.count("*").alias("n"), *[F.avg(s).alias(s) for s in STATISTICS]
    )
    per_run = per_run.cache()
    result = {
        "sweep": {key: manifest[key] for key in ASKED},
        "confidence": CONFIDENCE,
        "runs": _runs(runs, manifest["runs"], steady),
        "invariants": _invariants(read(spark, store, "violations")),
        "completion": _completion(spark, store, runs),
        "quantiles": _quantiles(spark, steady),
        "cells": _cells(per_run),
        "pieces": _pieces(per_run),
        "operators": _operators(spark, store, steady),
        "effects": _effects(spark, per_run, manifest["parts"]),
        "measured": _measured(spark, store, runs),
        "errors": _rows(
            runs.where("status <> 'OK'")
            .orderBy("run_id")
            .select("run_id", "scenario", "parameters", "seed", "error")
            .limit(SHOWN_ERRORS)
        ),
    }
    for frame in (runs, steady, per_run):
        frame.unpersist()
    return result


def read(spark: SparkSession, store: Store, table: str) -> DataFrame:
    """One table of the sweep, each key once: equal runs have equal rows, so any of two will do."""
    declared = store.tables[table]
    files = store.files(table)
    if not files:
        return spark.createDataFrame([], declared.spark())
    rows = spark.read.schema(declared.spark()).parquet(*files)
    return rows.dropDuplicates(list(declared.key)) if store.has_twins() else rows


def checkpoints(spark: SparkSession, store: Store) -> DataFrame:
    """The steady completed checkpoints with what their run was, and the pieces of their critical path."""
    from pyspark.sql import functions as F

    runs = read(spark, store, "runs").where("status = 'OK'").select("run_id", "part", "scenario", "parameters", "seed")
    done = read(spark, store, "checkpoints").where("steady and status = 'COMPLETED'")
    return done.join(runs, "run_id").select(
        *runs.columns,
        "checkpoint_id",
        F.col("end_to_end_duration_ms").alias("end_to_end_ms"),
        *[F.col(f"path_{piece}").alias(piece) for piece in PIECES],
    )


def _runs(runs: DataFrame, planned: int, steady: DataFrame) -> AnalysisRow:
    from pyspark.sql import functions as F

    added = ("violations", "checkpoints_completed", "checkpoints_failed", "failures", "events_replayed", "duplicates")
    row = runs.agg(*[F.coalesce(F.sum(c), F.lit(0)).alias(c) for c in added]).first()
    found = outcome(_rows(runs.select(*COLUMNS)), planned)
    return {**found, **(row.asDict() if row is not None else {}), "steady_checkpoints": steady.count()}


def _invariants(violations: DataFrame) -> dict[str, int]:
    found = {row["invariant"]: row["count"] for row in violations.groupBy("invariant").count().collect()}
    return by_invariant(found, (*INVARIANTS, *RUN_INVARIANTS))


def by_invariant(found: Mapping[str, int], known: Iterable[str]) -> dict[str, int]:
    """Violations by invariant: the known ones in their order, also those that held, then any other.

    >>> by_invariant({"FIFO": 2, "NEW": 1}, ["CUT", "FIFO"])
    {'CUT': 0, 'FIFO': 2, 'NEW': 1}
    """
    known = list(known)
    return {name: found.get(name, 0) for name in (*known, *sorted(found.keys() - set(known)))}


def _completion(spark: SparkSession, store: Store, runs: DataFrame) -> list[AnalysisRow]:
    """Return the outcomes of the steady checkpoints of each cell: durations are of the completed ones alone.

    A cell whose checkpoints expire has short durations, of the few that did not: its share says that first.
    """
    from pyspark.sql import functions as F

    cell = ["part", "scenario", "parameters"]
    ran = runs.where("status = 'OK'")
    ways = [F.count_if(F.col("progress") == way).alias(way) for way in WAYS]
    by_cell = ran.groupBy(*cell).agg(F.count("*").alias("runs"), F.sum("failures").alias("failures"), *ways)
    ended = [F.count_if(F.col("status") == word).alias(word.lower()) for word in ("COMPLETED", "FAILED")]
    taken = read(spark, store, "checkpoints").where("steady").join(ran.select("run_id", *cell), "run_id")
    counts = taken.groupBy(*cell).agg(F.count("*").alias("triggered"), *ended)
    rows = _rows(by_cell.join(counts, cell, "left").orderBy(*cell))
    return [
        {
            **_about(row),
            **{name: row[name] or 0 for name in ("runs", "failures", "triggered", "completed", "failed")},
            "share": row["completed"] / row["triggered"] if row["triggered"] else None,
            "progress": {way: row[way] for way in WAYS if row[way]},
        }
        for row in rows
    ]


def _quantiles(spark: SparkSession, steady: DataFrame) -> list[AnalysisRow]:
    """End-to-end quantiles of each cell, with the order statistics that bound them."""
    from pyspark.sql import functions as F

    cell = ["part", "scenario", "parameters"]
    value = F.col("end_to_end_ms")
    points = F.percentile(value, list(QUANTILES))
    sorted_values = F.sort_array(F.collect_list(value))
    cells = (
        steady.groupBy(*cell).agg(F.count(value).alias("n"), points.alias("at"), sorted_values.alias("values")).cache()
    )
    below = [F.sum((value <= F.col("at")[i]).cast("long")) - q * F.count(value) for i, q in enumerate(QUANTILES)]
    by_run = steady.join(cells.select(*cell, "at"), cell).groupBy(*cell, "run_id")
    off = by_run.agg(*[each.alias(f"off{i}") for i, each in enumerate(below)])
    spread = [F.sum(F.pow(f"off{i}", F.lit(2.0))).alias(f"spread{i}") for i in range(len(QUANTILES))]
    clusters = off.groupBy(*cell).agg(F.count("*").alias("runs"), *spread).join(cells.select(*cell, "n"), cell)
    ranks = [
        (
            *(row[name] for name in cell),
            *map(
                list,
                zip(
                    *(quantile_ranks(row["n"], q, row["runs"], row[f"spread{i}"]) for i, q in enumerate(QUANTILES)),
                    strict=True,
                ),
            ),
        )
        for row in clusters.collect()
    ]
    schema = "part string, scenario string, parameters string, low array<int>, high array<int>"
    table = spark.createDataFrame(ranks, schema)
    bounds = [
        F.transform(F.col(side), lambda rank: F.try_element_at(F.col("values"), F.nullif(rank, F.lit(0)))).alias(side)
        for side in ("low", "high")
    ]
    found = cells.join(table, cell).select(*cell, "n", "at", *bounds).orderBy(*cell).collect()
    cells.unpersist()
    return [
        {
            **_about(row),
            "n": row["n"],
            **{
                f"p{q * 100:.0f}": {"at": row["at"][i], "low": row["low"][i], "high": row["high"][i]}
                for i, q in enumerate(QUANTILES)
            },
        }
        for row in found
    ]


def quantile_ranks(
    n: int, quantile: float, runs: int, spread: float, confidence: float = CONFIDENCE
) -> tuple[int, int]:
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
    side = 0.5 + confidence / 2.0
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
    """Mean of `n` independent values, which are from `least` to `most`, with Student's interval.

    No bounds with fewer values than `LEAST_RUNS`.
    """
    from scipy.stats import t

    if n < LEAST_RUNS or deviation is None:
        return {"n": n, "at": mean, "low": None, "high": None}
    half = float(t.ppf(0.5 + confidence / 2.0, n - 1)) * deviation / n**0.5
    return {"n": n, "at": mean, "low": max(mean - half, least), "high": min(mean + half, most)}


def _cells(per_run: DataFrame) -> list[AnalysisRow]:
    """Means of each cell, over seeds."""
    cell = ["part", "scenario", "parameters"]
    found = per_run.groupBy(*cell).agg(*_moments(STATISTICS)).orderBy(*cell).collect()
    return [{**_about(row), **{s: _interval(row, s, least=0.0) for s in STATISTICS}} for row in found]


def _pieces(per_run: DataFrame) -> list[AnalysisRow]:
    """Return where the time of a checkpoint goes: mean pieces of the critical path, for each cell; each run counts
    alike."""
    from pyspark.sql import functions as F

    cell = ["part", "scenario", "parameters"]
    found = (
        per_run.groupBy(*cell)
        .agg(F.count("*").alias("runs"), F.sum("n").alias("n"), *[F.avg(s).alias(s) for s in STATISTICS])
        .orderBy(*cell)
        .collect()
    )
    return [{**_about(row), "runs": row["runs"], "n": row["n"], **{s: row[s] for s in STATISTICS}} for row in found]


def _operators(spark: SparkSession, store: Store, steady: DataFrame) -> list[AnalysisRow]:
    """Return a scenario's times by operator: of each checkpoint the largest value over its subtasks, then the mean."""
    from pyspark.sql import functions as F

    about = steady.select("run_id", "checkpoint_id", "part", "scenario")
    columns = ("start_delay_ms", "alignment_ms")
    tasks = (
        read(spark, store, "tasks")
        .select("run_id", "checkpoint_id", "operator", *columns)
        .join(about, ["run_id", "checkpoint_id"])
    )
    key = ["part", "scenario", "operator"]
    largest = tasks.groupBy(*key, "run_id", "checkpoint_id").agg(*[F.max(c).alias(c) for c in columns])
    found = largest.groupBy(*key).agg(F.count("*").alias("n"), *[F.avg(c).alias(c) for c in columns])
    return _rows(found.orderBy("part", "scenario", "start_delay_ms", "operator"))


def _effects(spark: SparkSession, per_run: DataFrame, parts: Sequence[AnalysisRow]) -> list[AnalysisRow]:
    """Each axis of each part: means over the other axes, and differences from the axis's first value."""
    from pyspark.sql import functions as F

    axes = [(part["name"], axis["name"], axis["values"]) for part in parts for axis in part["axes"]]
    axes = [(part, name, values) for part, name, values in axes if values is None or len(values) > 1]
    if not axes:
        return []
    firsts = [(part, name, text_of(values[0]) if values else None) for part, name, values in axes]
    wanted = spark.createDataFrame(firsts, "part string, axis string, first string")
    settings = F.from_json("parameters", "map<string,string>")
    long = (
        per_run.withColumn("set", settings)
        .select("*", F.explode("set").alias("axis", "value"))
        .join(wanted, ["part", "axis"])
    )
    others = F.to_json(F.map_filter("set", lambda name, _: name != F.col("axis")))
    long = long.withColumn("others", others).drop("set").cache()

    means = _over_seeds(_binned(long), STATISTICS, least=0.0)
    pair = ["part", "axis", "seed", "others"]
    base = long.where("value = first").select(*pair, *[F.col(s).alias(f"{s}_base") for s in STATISTICS])
    differences = [(F.col(s) - F.col(f"{s}_base")).alias(s) for s in STATISTICS]
    paired = long.where("value <> first").join(base, pair).select("part", "axis", "value", "seed", *differences)
    against = _over_seeds(paired, STATISTICS)
    long.unpersist()
    return [_effect(part, name, values, means, against) for part, name, values in axes]


def _binned(long: DataFrame) -> DataFrame:
    """Drawn values in bins of equal count, named by their middle; listed values as they are."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    listed = long.where("first is not null")
    number = F.col("value").cast("double")
    axis = Window.partitionBy("part", "axis")
    bins = long.where("first is null").withColumn("bin", F.ntile(_BINS).over(axis.orderBy(number)))
    named = bins.withColumn(
        "value", F.format_string("%.6g", F.avg(number).over(Window.partitionBy("part", "axis", "bin")))
    )
    return listed.unionByName(named.drop("bin"))


def _over_seeds(frame: DataFrame, statistics: Iterable[str], least: float = -inf) -> _ByValue:
    """Intervals by (part, axis, value): averaged within each seed first, then over the seeds."""
    from pyspark.sql import functions as F

    key = ["part", "axis", "value"]
    by_seed = frame.groupBy(*key, "seed").agg(*[F.avg(s).alias(s) for s in statistics])
    found = by_seed.groupBy(*key).agg(*_moments(statistics)).collect()
    of_all = 1.0 - (1.0 - CONFIDENCE) / max(len(found), 1)
    return {
        (row["part"], row["axis"], row["value"]): {
            **{s: _interval(row, s, least=least) for s in statistics},
            "adjusted_ms": _interval(row, "end_to_end_ms", of_all, least),
        }
        for row in found
    }


def _effect(part: str, name: str, values: Sequence[Any] | None, means: _ByValue, against: _ByValue) -> AnalysisRow:
    if values is None:
        texts = sorted((value for p, a, value in means if (p, a) == (part, name)), key=float)
    else:
        texts = [text_of(value) for value in values]
    keys = [(part, name, text) for text in texts]
    return {
        "part": part,
        "axis": name,
        "drawn": values is None,
        "values": [{"value": key[2], **means[key]} for key in keys if key in means],
        "differences": [{"value": key[2], "from": texts[0], **against[key]} for key in keys if key in against],
    }


def text_of(value: Any) -> str:
    """A parameter's value as Spark reads it out of the JSON of `parameters`."""
    return value if isinstance(value, str) else json.dumps(value)


def _measured(spark: SparkSession, store: Store, runs: DataFrame) -> list[AnalysisRow]:
    """Predicted beside measured, averaged over seeds, for the measured jobs that the sweep has."""
    from barrierlab.sim.sweep.plan import parameters_text

    jobs = {(job.scenario, parameters_text(job.settings)): job.name for job in measured.load_measured()}
    table = spark.createDataFrame(
        [(*key, name) for key, name in jobs.items()], "scenario string, parameters string, job string"
    )
    ids = runs.where("status = 'OK'").join(table, ["scenario", "parameters"]).select("run_id", "job")
    by_run = {row["run_id"]: row["job"] for row in ids.collect()}
    if not by_run:
        return []
    rows = {
        name: _rows(read(spark, store, name).join(ids, "run_id").orderBy(*TABLES[name].key))
        for name in ("checkpoints", "tasks")
    }
    cells = measured.compare(measured.predict(by_run, rows["checkpoints"], rows["tasks"]))
    return [cell.as_row() for cell in cells]


def _moments(statistics: Iterable[str]) -> list[Any]:
    from pyspark.sql import functions as F

    return [
        moment.alias(f"{s}_{name}")
        for s in statistics
        for name, moment in (("n", F.count(s)), ("mean", F.avg(s)), ("sd", F.stddev_samp(s)))
    ]


def _interval(row: Any, statistic: str, confidence: float = CONFIDENCE, least: float = -inf) -> AnalysisRow:
    n, mean, deviation = (row[f"{statistic}_{name}"] for name in ("n", "mean", "sd"))
    return t_interval(n, mean, deviation, confidence, least)


def _about(row: Any) -> AnalysisRow:
    return {"part": row["part"], "scenario": row["scenario"], "parameters": json.loads(row["parameters"])}


def _rows(frame: DataFrame) -> list[AnalysisRow]:
    rows: list[AnalysisRow] = frame.toArrow().to_pylist()
    return rows
