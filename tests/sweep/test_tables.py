"""The tables are declared once, and everything that reads or writes them agrees."""

from __future__ import annotations

import pytest

from barrierlab.sim.sweep.execute import rows_of, simulate
from barrierlab.sim.sweep.plan import load_plan
from barrierlab.sim.sweep.tables import RUNS, TABLES


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_arrow_and_spark_see_the_same_table(table):
    """A column that one of them takes for another type would be misread or lost."""
    from pyspark.sql.pandas.types import from_arrow_schema

    assert from_arrow_schema(table.arrow()) == table.spark()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_column_is_explained(table):
    """A reader of the data dictionary would not know what a column is, or in which unit."""
    for column in table.columns:
        assert column.meaning
        for suffix, unit in (("_ms", "ms"), ("_s", "s"), ("_bytes", "B"), ("_ns", "ns"), ("per_s", "1/s")):
            if column.name.endswith(suffix) and not (suffix == "_s" and column.name.endswith("per_s")):
                assert column.unit == unit


def test_a_simulated_run_fills_every_column():
    """A statistic that the simulation has and the tables lack, or the other way round, would go unnoticed."""
    run = load_plan("smoke").runs[0]
    rows = rows_of(run, simulate)
    for name in ("runs", "checkpoints", "tasks"):
        missing = {c.name for c in TABLES[name].columns} ^ set(rows[name][0])
        assert missing == ({"error"} if name == "runs" else set())
        assert TABLES[name].from_rows(rows[name]).num_rows == len(rows[name])
    assert rows["runs"][0]["status"] == "OK"


def test_an_unknown_column_is_refused():
    """A value without a declared column must not vanish in silence."""
    with pytest.raises(KeyError, match="no column durration"):
        RUNS.from_rows([{"run_id": "1", "durration": 1}])
