"""The two engines that ask a sweep's tables in SQL: DuckDB for what fits one machine, Spark for any size and cluster.

Both are given the same text. What it may use is what both read alike; where they differ in a default (nulls come first)
it is set here. A *view* may be kept: then it is computed once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from barrierlab.sim.scenario.readers import suggest
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.session import (
    check_master,
    is_local,
    process_count,
    spark_failures,
    spark_session,
    usable_java,
)
from barrierlab.sim.sweep.store import Store, part_of
from barrierlab.sim.sweep.tables import TableSchema

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

ENGINES = ("auto", "duckdb", "spark")
MEMORY_SHARE = 0.1
"""Of the machine's memory: DuckDB takes tables whose files are no larger. In memory they are some ten times that."""
_ROWS_IN_PARTITION = 250_000
"""Spark has at least so many partitions that none has more rows than this, if its runs are short."""
_FEW_ROWS = 1_000_000
"""To compile a query of Spark to byte code takes longer than to run it on fewer rows."""

SqlRow = dict[str, Any]


class QueryEngine(Protocol):
    """The engines that run SQL on the tables of a sweep."""

    name: str

    def load(self, store: Store, names: Sequence[str], where: str = "true") -> None:
        """Make views of these tables, each key once; of the rows alone for which `where` holds."""

    def add(self, name: str, rows: pa.Table) -> None:
        """Make a view of a table of this process."""

    def view(self, name: str, sql: str, kept: bool = False) -> None:
        """Make a view of a query. One that is kept is computed once, at the latest when it is asked for."""

    def rows(self, sql: str) -> list[SqlRow]:
        """The rows that a query gives."""

    def rows_of_each(self, queries: Mapping[str, str]) -> dict[str, list[SqlRow]]:
        """The rows that each of some queries gives."""


class DuckDB:
    """DuckDB in this process: no JVM, all cores. What does not fit in memory goes to a temporary folder."""

    name = "DuckDB"

    def __init__(self, folder: Path) -> None:
        import duckdb

        config: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": str(folder),
            "default_null_order": "nulls_first_on_asc_last_on_desc",
        }
        self._db: duckdb.DuckDBPyConnection = duckdb.connect(":memory:", config=config)
        self._db.execute("SET preserve_insertion_order = false")

    def load(self, store: Store, names: Sequence[str], where: str = "true") -> None:
        """Load as declared. A file is read whenever a query asks for it, and of it the columns that are asked for."""
        has_twins = store.has_twins()
        for name in names:
            declared = store.tables[name]
            columns = ", ".join(column.name for column in declared.columns)
            if files := store.files(name):
                large = [file for file in files if part_of(file) is not None]
                sources = [
                    f"SELECT {columns} FROM read_parquet([{', '.join(map(quoted, some))}], {how})"
                    for some, how in (
                        (large, "hive_partitioning = true, hive_types = {'part': VARCHAR}"),
                        ([file for file in files if part_of(file) is None], "hive_partitioning = false"),
                    )
                    if some
                ]
                source = f"({' UNION ALL '.join(sources)}) AS stored"
            else:
                self._db.register(f"no_{name}", declared.arrow().empty_table())
                source = f"no_{name}"
            distinct = f"DISTINCT ON ({', '.join(declared.key)})" if has_twins else ""
            self._db.execute(
                f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {distinct} {columns} FROM {source} WHERE {where}"
            )

    def add(self, name: str, rows: pa.Table) -> None:
        """Add rows, as declared."""
        self._db.register(name, rows)

    def view(self, name: str, sql: str, kept: bool = False) -> None:
        """Define as declared. One that is kept is a table of the temporary database."""
        self._db.execute(f"CREATE OR REPLACE TEMP {'TABLE' if kept else 'VIEW'} {name} AS {sql}")

    def rows(self, sql: str) -> list[SqlRow]:
        """Ask, as declared."""
        found = self._db.execute(sql)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def rows_of_each(self, queries: Mapping[str, str]) -> dict[str, list[SqlRow]]:
        """Ask as declared: one after another, each on all cores."""
        return {name: self.rows(sql) for name, sql in queries.items()}

    def close(self) -> None:
        """Give its memory back."""
        self._db.close()


class Spark:
    """Spark, on any master. All rows of a run are in one partition, so that what is asked of runs moves no data again.

    Nothing rests on an executor: if one is lost, what it had is computed anew from the files of the sweep.
    """

    name = "Spark"

    def __init__(self, spark: SparkSession, rows: int, folder: Path | None = None, keeps: bool = False) -> None:
        """Begin a session of its own, with views and settings of its own.

        Parameters
        ----------
        rows : int
            How many rows the largest table has.
        folder : Path, optional
            Where views are kept that are on no executor; on a local master they are in this process, as it is.
        keeps : bool
            Cut the plan at a view that is kept, for queries that stand on many of them.
        """
        self._spark = spark.newSession()
        self._keeps, self._folder = keeps, folder
        cores = max(1, spark.sparkContext.defaultParallelism)
        self._partitions = max(cores, -(-rows // _ROWS_IN_PARTITION))
        self._kept: list[DataFrame] = []
        settings = {
            "spark.sql.shuffle.partitions": self._partitions,
            "spark.sql.codegen.wholeStage": str(rows > _FEW_ROWS).lower(),
            "spark.sql.codegen.factoryMode": "FALLBACK" if rows > _FEW_ROWS else "NO_CODEGEN",
            "spark.sql.requireAllClusterKeysForCoPartition": "false",  # what is partitioned by run stays where it is
            "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
            "spark.sql.cteRecursionLevelLimit": "-1",  # a run may fail as often as it likes
            "spark.sql.cteRecursionRowLimit": "-1",
        }
        if keeps:
            settings |= {
                "spark.sql.adaptive.enabled": "false",  # queries are many and short
                "spark.sql.autoBroadcastJoinThreshold": "-1",
                "spark.sql.constraintPropagation.enabled": "false",  # checkpointed unions do not survive it
            }
        for key, value in settings.items():
            self._spark.conf.set(key, str(value))
        if keeps and folder is not None:
            spark.sparkContext.setCheckpointDir(folder.as_uri())

    def load(self, store: Store, names: Sequence[str], where: str = "true") -> None:
        """Load as declared, partitioned by run."""
        has_twins = store.has_twins()
        for name in names:
            declared = store.tables[name]
            if files := store.files(name):
                rows = self._read(files, declared)
            else:
                rows = self._spark.createDataFrame([], declared.spark())
            rows = rows.where(where)
            if self._keeps:
                rows = rows.repartition(self._partitions, "run_id")
            (rows.dropDuplicates(list(declared.key)) if has_twins else rows).createOrReplaceTempView(name)

    def _read(self, files: Sequence[str], declared: TableSchema) -> DataFrame:
        """The rows of files, some of which have their part in their path alone."""
        by_base: dict[str | None, list[str]] = {}
        for file in files:
            base = None if part_of(file) is None else str(Path(file).parents[1])
            by_base.setdefault(base, []).append(file)
        frames = []
        for base, some in by_base.items():
            reader = self._spark.read.schema(declared.spark())
            reader = reader if base is None else reader.option("basePath", base)
            frames.append(reader.parquet(*some).select(*(column.name for column in declared.columns)))
        return reduce(lambda one, other: one.unionAll(other), frames)

    def add(self, name: str, rows: pa.Table) -> None:
        """Add rows, as declared."""
        self._spark.createDataFrame(rows).createOrReplaceTempView(name)

    def view(self, name: str, sql: str, kept: bool = False) -> None:
        """Define a view, as declared."""
        frame = self._spark.sql(sql)
        if kept and not self._keeps:
            self._kept.append(frame := frame.persist())
        elif kept and self._folder is None:
            frame = frame.localCheckpoint()
        elif kept:
            frame = frame.persist()  # else it would be computed for the count, and again to be written
            held, frame = frame, frame.checkpoint()
            held.unpersist()
        frame.createOrReplaceTempView(name)

    def rows(self, sql: str) -> list[SqlRow]:
        """Ask, as declared."""
        found: list[SqlRow] = self._spark.sql(sql).toArrow().to_pylist()
        return found

    def rows_of_each(self, queries: Mapping[str, str]) -> dict[str, list[SqlRow]]:
        """Ask as declared: side by side, as most of the time goes into their plans."""
        with ThreadPoolExecutor(min(8, self._spark.sparkContext.defaultParallelism)) as pool:
            return dict(zip(queries, pool.map(self.rows, queries.values()), strict=True))

    def close(self) -> None:
        """Give back what is cached."""
        for frame in self._kept:
            frame.unpersist()


@contextmanager
def engine_for(
    store: Store, names: Sequence[str], asked: str, master: str | None, keeps: bool = False
) -> Iterator[QueryEngine]:
    """The engine that runs SQL over these tables of `store`; SweepError if it cannot, or fails.

    Parameters
    ----------
    names : sequence of str
        The tables, the largest first.
    asked : str
        One of `ENGINES`. With `auto` it is Spark if a Spark master is given, or the files are large.
    master : str, optional
        Spark's, or `processes`, which has no Spark.
    keeps : bool
        Whether queries stand on many views that are kept.
    """
    chosen = choose(store, names, asked, master)
    hint = "if a file of the sweep is damaged, remove it and sweep with --resume"
    with tempfile.TemporaryDirectory(prefix="barrierlab-sql-") as folder:
        if chosen == "duckdb":
            import duckdb

            engine = DuckDB(Path(folder))
            try:
                yield engine
            except duckdb.Error as error:
                raise SweepError(f"DuckDB failed ({' '.join(str(error).split())[:300]}): {hint}") from error
            finally:
                engine.close()
            return
        master = master or "local[*]"
        shared = None if is_local(master) else store.directory.resolve() / f".spark-{os.getpid()}"
        with spark_failures("the queries failed", hint):
            spark = Spark(spark_session(master), store.rows(names[0]), shared, keeps)
            try:
                yield spark
            finally:
                spark.close()
                if shared is not None:
                    shutil.rmtree(shared, ignore_errors=True)


def check_engine(asked: str, master: str | None) -> None:
    """Raise SweepError if that engine is none, or cannot run there."""
    if asked not in ENGINES:
        raise SweepError(f"--engine is {asked!r}; allowed: {', '.join(ENGINES)}{suggest(asked, ENGINES)}")
    on_spark = master is not None and process_count(check_master(master)) is None
    if asked == "duckdb" and on_spark:
        raise SweepError(f"--engine duckdb runs in this process, not on --master {master}: leave one of them out")
    if asked == "spark" and master is not None and not on_spark:
        raise SweepError(f"--master is {master!r}, where no Spark is: give a Spark master such as local[*]")


def choose(store: Store, names: Sequence[str], asked: str = "auto", master: str | None = None) -> str:
    """`duckdb` or `spark`."""
    check_engine(asked, master)
    if asked != "auto":
        return asked
    if master is not None:
        return "spark" if process_count(master) is None else "duckdb"
    return "duckdb" if _size(store, names) <= MEMORY_SHARE * memory_bytes() else "spark"


def engine_line(store: Store, names: Sequence[str], asked: str = "auto", master: str | None = None) -> str:
    """Return which engine is used, for how much, and how to have the other; SweepError if Spark is, and has no Java."""
    chosen = choose(store, names, asked, master)
    rows = " and ".join(f"{store.rows(name):,} rows of {name}" for name in names[:2])
    size = _size(store, names) / 1e6
    if chosen == "duckdb":
        why = "fits this machine; --engine spark or --master URL for Spark"
        where = "DuckDB in this process"
    else:
        why = "more than a tenth of this machine's memory; --engine duckdb for DuckDB"
        where = f"Spark on {master or 'local[*]'}"
        usable_java()  # before a line that promises it
    if asked != "auto" or master is not None:
        why = "as asked"
    return f"{where}, {rows} in {size:,.1f} MB ({why})"


def _size(store: Store, names: Sequence[str]) -> int:
    return sum(os.path.getsize(file) for name in names for file in store.files(name))


def memory_bytes() -> int:
    """The memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def quoted(text: str) -> str:
    """A text as both engines take it."""
    return "'" + text.replace("'", "''") + "'"


def literal(value: float) -> str:
    """A number as a double of both engines: without an exponent Spark takes it for a decimal.

    >>> literal(0.95)
    '0.95e0'
    """
    return text if "e" in (text := repr(value)) else f"{text}e0"
