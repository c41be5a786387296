"""The analysis says what numpy and scipy say, and the report says that. On DuckDB: test_spark has both engines."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_runs import SWEEP, plan_with
from page import names_runs, stands_alone
from scipy import stats

from barrierlab.sim.sweep import engines
from barrierlab.sim.sweep.analyse import PIECES, READ, analyse, analysed, quantile_ranks, t_interval
from barrierlab.sim.sweep.engines import choose, engine_for, engine_line
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.execute import execute
from barrierlab.sim.sweep.measured import MODES, load_measured
from barrierlab.sim.sweep.outcome import verdict_line
from barrierlab.sim.sweep.plan import parameters_text, plan_of
from barrierlab.sim.sweep.report import SECTIONS, render
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.summary import answer
from barrierlab.sim.sweep.tables import TABLES
from tests.sim.support import in_this_process

RATE = "source.source.rate_per_s"


def on_duckdb(store):
    """The analysis of a sweep, made in this process."""
    with engine_for(store, READ, "duckdb", None) as sql:
        return analyse(sql, store)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A sweep of runs that cost nothing, one of which raised."""
    plan = plan_of(SWEEP, "two_ways", Path("two_ways.toml"))
    store = Store.create(tmp_path_factory.mktemp("sweep") / "out", plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)
        execute(plan, store, "processes[2]", simulate="fake_runs:compute")
    return store


@pytest.fixture(scope="module")
def analysis(store):
    """The analysis of that sweep."""
    return on_duckdb(store)


@pytest.fixture(scope="module")
def page(analysis, store):
    """The report on it, which takes seconds to draw."""
    return render(analysis, store)


@pytest.fixture(scope="module")
def frame(store):
    """The steady checkpoints by pandas, with parameters as columns."""
    runs, checkpoints, tasks = (store.read(name).to_pandas() for name in ("runs", "checkpoints", "tasks"))
    parameters = pd.DataFrame(runs["parameters"].map(json.loads).tolist())
    runs = pd.concat([runs[["run_id", "part", "seed", "parameters"]], parameters], axis=1)
    tasks = tasks[["run_id", "checkpoint_id", "sync_ms"]]
    return checkpoints.merge(runs, on="run_id").merge(tasks, on=["run_id", "checkpoint_id"])


def test_runs_and_errors_are_counted(analysis):
    """The verdict must be over all runs that ran, and say which did not."""
    runs = analysis["runs"]
    number = len(plan_of(SWEEP, "two_ways", Path("two_ways.toml")).runs)
    assert (runs["planned"], runs["done"], runs["OK"], runs["ERROR"]) == (number, number, number - 1, 1)
    assert (runs["holds"], runs["violations"], runs["steady_checkpoints"]) == (number - 1, 0, 2 * (number - 1))
    assert verdict_line(runs) == f"0 violations in {number - 1} runs; 1 more stopped with an error"
    assert [error["error"].split(" (")[0] for error in analysis["errors"]] == ["ZeroDivisionError: thirteen"]


def test_every_checkpoint_of_that_sweep_completed(analysis):
    """The share that completed would not be of all that were triggered."""
    rows = [row for row in analysis["completion"] if row["part"] == "diamond"]
    assert len(rows) == 6
    assert all((row["runs"], row["triggered"], row["completed"], row["share"]) == (5, 10, 10, 1.0) for row in rows)
    assert "checkpoints completed" not in " ".join(answer(analysis))


def test_what_failed_is_counted_before_durations(tmp_path):
    """The setting whose checkpoints expire would look best: its few durations are short."""
    text = '[[part]]\nscenario = "diamond"\nseeds = [1]\ngrid = { "checkpoint.timeout_s" = [1.0, 2.0, 3.0] }'
    plan = plan_of(text, "loops", Path("loops.toml"))
    store = Store.create(tmp_path / "out", plan)
    rows = {name: [] for name in store.tables}
    for run, done in zip(plan.runs, (0, 1, 4), strict=True):
        about = {"part": run.part, "scenario": run.scenario, "parameters": parameters_text(run.parameters), "seed": 1}
        ends = {"verdict": "holds", "violations": 0, "failures": 3, "progress": "goes on" if done else "restart loop"}
        rows["runs"].append({"run_id": run.run_id, "status": "OK", **about, **ends, "falls_short": not done})
        for number in range(1, 5):
            key = {"run_id": run.run_id, "checkpoint_id": number}
            pieces = {f"path_{piece}": 2.5 for piece in PIECES}
            its = {"status": "COMPLETED", "end_to_end_duration_ms": 10.0, **pieces}
            failed = {"status": "FAILED", "failure_reason": "expired"}
            rows["checkpoints"].append({**key, "steady": True, **(its if number <= done else failed)})
            rows["tasks"].append({**key, "operator": "sink", "subtask": 0, "sync_ms": 1.0})
    store.write_chunk(rows)
    analysis = on_duckdb(store)
    assert [(row["completed"], row["failed"], row["share"]) for row in analysis["completion"]] == [
        (0, 4, 0.0),
        (1, 3, 0.25),
        (4, 0, 1.0),
    ]
    assert [row["progress"] for row in analysis["completion"]] == [{"restart loop": 1}, {}, {}]
    first = answer(analysis)[0]
    assert first.startswith("5 of 12 checkpoints completed, 0 of 4 with diamond checkpoint.timeout_s=1.0; ")
    line = "0 violations in 3 runs, 1 of them short of what was asked for (a restart loop in 1)"
    assert verdict_line(analysis["runs"]) == line
    plain = " ".join(re.sub(r"<[^>]+>", " ", render(analysis, store)).split())
    assert "all times are of completed ones alone" in plain
    assert "restart loop (1 of 1 runs)" in plain


def test_quantiles_are_those_of_numpy(analysis, frame):
    """Quantiles of the end-to-end duration, and the order statistics around them."""
    rows = [row for row in analysis["quantiles"] if row["part"] == "diamond"]
    assert len(rows) == 6
    for row in rows:
        cell = frame[(frame[RATE] == row["parameters"][RATE]) & (frame["warmup_s"] == row["parameters"]["warmup_s"])]
        values = np.sort(cell["end_to_end_duration_ms"])
        assert row["n"] == len(values) == 10
        for name, q in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
            at = np.quantile(values, q)
            off = [(own <= at).sum() - q * len(own) for _, own in cell.groupby("run_id")["end_to_end_duration_ms"]]
            low, high = quantile_ranks(len(values), q, len(off), float(np.square(off).sum()))
            assert row[name]["at"] == pytest.approx(at)
            assert row[name]["low"] == (values[low - 1] if low else None)
            assert row[name]["high"] == (values[high - 1] if high else None)


def test_means_over_seeds_are_those_of_scipy(analysis, frame):
    """Student's interval over seeds, one mean a seed."""
    row = next(r for r in analysis["cells"] if r["parameters"] == {RATE: 2.0, "warmup_s": 1.0})
    cell = frame[(frame["part"] == "diamond") & (frame[RATE] == 2.0) & (frame["warmup_s"] == 1.0)]
    by_seed = cell.groupby("seed")["end_to_end_duration_ms"].mean()
    low, high = stats.t.interval(0.95, len(by_seed) - 1, by_seed.mean(), stats.sem(by_seed))
    assert row["end_to_end_ms"] == {
        "n": 5,
        "at": pytest.approx(by_seed.mean()),
        "low": pytest.approx(low),
        "high": pytest.approx(high),
    }


def test_pieces_add_up(analysis):
    """Start delay, alignment, snapshot and rest are the whole time of a checkpoint, in the shares put in."""
    assert len(analysis["pieces"]) == 16 + len({job.name for job in load_measured()})
    for row in analysis["pieces"]:
        total = row["end_to_end_ms"]
        assert sum(row[piece] for piece in PIECES) == pytest.approx(total)
        assert [row[piece] / total for piece in PIECES] == pytest.approx([0.5, 0.25, 0.125, 0.125])


def test_differences_are_paired_by_seed_and_setting(analysis, frame):
    """Under common random numbers the difference between two values is that of runs which differ in nothing else."""
    effect = next(e for e in analysis["effects"] if (e["part"], e["axis"]) == ("diamond", RATE))
    assert [row["value"] for row in effect["values"]] == ["1.0", "2.0", "5.0"]
    assert [row["value"] for row in effect["differences"]] == ["2.0", "5.0"]
    diamond = frame[frame["part"] == "diamond"]
    table = diamond.groupby([RATE, "warmup_s", "seed"])["end_to_end_duration_ms"].mean().unstack(RATE)
    for row in effect["differences"]:
        by_seed = (table[float(row["value"])] - table[1.0]).groupby("seed").mean()
        expected = t_interval(len(by_seed), by_seed.mean(), by_seed.std())
        assert row["end_to_end_ms"] == pytest.approx(expected)
        assert row["from"] == "1.0"
        of_all = t_interval(
            len(by_seed), by_seed.mean(), by_seed.std(), confidence=1.0 - 0.05 / 3
        )  # 2.0, 5.0; warmup_s
        assert row["adjusted_ms"] == pytest.approx(of_all)
    # Seeds shift every duration alike, so paired differences know no chance at all.
    assert effect["differences"][0]["end_to_end_ms"] == pytest.approx({"n": 5, "at": 15.0, "low": 15.0, "high": 15.0})


def test_drawn_axes_are_shown_in_bins(analysis, frame):
    """An axis without listed values is cut into bins of equal count where no value repeats, named by their middle."""
    effect = next(e for e in analysis["effects"] if e["part"] == "drawn")
    drawn = frame[frame["part"] == "drawn"].groupby([RATE, "seed"])["end_to_end_duration_ms"].mean().reset_index()
    middles = drawn[RATE].sort_values().to_numpy().reshape(5, -1).mean(axis=1)
    assert [row["value"] for row in effect["values"]] == [f"{middle:.3g}" for middle in middles]
    assert effect["differences"] == []


def test_a_value_that_is_drawn_often_is_one_bin_of_all_its_runs(tmp_path, in_process):
    """Two bins of whole numbers would have one middle, and the runs of one of them would be in no row."""
    values = "axes = { capacity = { low = 1, high = 2 }, RATE = { low = 1.0, high = 9.0 } }"
    values = values.replace("capacity", '"channel.default.capacity"').replace("RATE", f'"{RATE}"')
    part = f'[[part]]\nscenario = "diamond"\nseeds = [1]\nrandom = {{ samples = 12, {values} }}'
    plan = plan_of(part, "whole", Path("whole.toml"))
    store = Store.create(tmp_path / "out", plan)
    execute(plan, store, "processes[2]", simulate="fake_runs:compute")
    effect = next(e for e in on_duckdb(store)["effects"] if e["axis"] == "channel.default.capacity")
    runs = pd.DataFrame([run.parameters for run in plan.runs])  # a run takes 10 and 20 times its rate, and its seed
    means = 15.0 * runs.groupby("channel.default.capacity")[RATE].mean() + 1.0
    found = {row["value"]: row["end_to_end_ms"]["at"] for row in effect["values"]}
    assert found == pytest.approx({"1": means[1], "2": means[2]})


def test_a_first_value_without_checkpoints_leaves_the_others_compared(tmp_path, in_process):
    """All settings are compared with the first: where none of its checkpoints completed, a sweep answered nothing."""
    plan = plan_with(13, 2, 5)  # that of 13 raises
    store = Store.create(tmp_path / "out", plan)
    execute(plan, store, "processes[1]", simulate="fake_runs:compute")
    (effect,) = (analysis := on_duckdb(store))["effects"]
    assert [row["value"] for row in effect["values"]] == ["2.0", "5.0"]
    assert [(row["from"], row["value"], row["end_to_end_ms"]["at"]) for row in effect["differences"]] == [
        ("2.0", "5.0", 45.0)
    ]
    *_, strongest, left_out = answer(analysis)
    assert strongest.startswith(f"The only difference is that of {RATE} from 2.0 to 5.0: +45.0 ms")
    assert left_out == f"No steady checkpoint completed with {RATE} 13.0; its differences are from 2.0."


def test_axes_that_only_change_together_are_named(tmp_path, in_process):
    """Two keys change from one table of a list to the next: no difference is due to one of them, and nobody said so."""
    rows = f'[{{ "{RATE}" = 1.0, warmup_s = 0.0 }}, {{ "{RATE}" = 2.0, warmup_s = 1.0 }}, LAST]'
    for last, said in (
        (f'{{ "{RATE}" = 5.0, warmup_s = 2.0 }}', f"{RATE}, warmup_s"),
        (f'{{ "{RATE}" = 1.0, warmup_s = 2.0 }}', f"{RATE}, warmup_s 1.0"),
    ):
        text = f'[[part]]\nscenario = "diamond"\nseeds = [1]\nlist = {rows.replace("LAST", last)}'
        plan = plan_of(text, "together", Path("together.toml"))
        store = Store.create(tmp_path / said.replace(", ", "-"), plan)
        execute(plan, store, "processes[1]", simulate="fake_runs:compute")
        assert answer(on_duckdb(store))[-1] == (
            f"Not compared: {said}; no two runs with checkpoints differ in that alone, as those of a grid do."
        )


def test_the_report_stands_alone(page, store):
    """One file, to be mailed or kept: no script, no link out, every section, well formed, ids unique."""
    stands_alone(page, SECTIONS)
    # Time: three parts, as one raised; axes: two parts; measured. Each for a page and for a telephone.
    assert page.count("<svg") == 2 * 6
    assert "came out otherwise than it is stored, so it is not drawn" in page  # these runs are made up
    marks = names_runs(page, store.done())
    assert marks["tr"] > len(store.done())
    assert marks["g"] > 20
    assert "Two ways &lt;to&gt; ask" in page


def test_the_report_says_what_the_analysis_says(analysis, page):
    """Verdict, answer, error and the way to reproduce stand in the report."""
    plain = re.sub(r"<[^>]+>", "", page)
    assert verdict_line(analysis["runs"]) in plain
    for sentence in answer(analysis):
        assert sentence in plain.replace("&#39;", "'")
    for words in ("ZeroDivisionError: thirteen", "barrierlab sweep two_ways.toml --out", "What does a rate change?"):
        assert words in plain
    assert "50 % of that is start delay" in answer(analysis)[0]
    assert "25 % alignment" in answer(analysis)[0]


@pytest.mark.slow
def test_the_report_is_the_same_every_time(analysis, page, store):
    """No date and no chance in it, so two reports can be compared."""
    assert render(analysis, store) == page


def test_a_small_report_is_the_same_every_time(tmp_path, in_process):
    """As above, of a sweep of two cells, whose runs are made up as well."""
    plan = plan_with(1, 2)
    store = Store.create(tmp_path / "out", plan)
    execute(plan, store, "processes[1]", simulate="fake_runs:compute")
    first, second = (render(on_duckdb(store), store) for _ in range(2))
    assert first == second
    assert first.count("<svg") >= 2


def test_a_report_says_of_each_invariant_in_how_many_runs_it_was_judged(page, store):
    """`0 violations` would be read as a verdict on what no run had: no crash, so no restore."""
    page = " ".join(page.split())
    runs = [row for row in store.read("runs").to_pylist() if row["status"] == "OK"]
    assert len(runs) > 10
    for name, judged in (("REC", 0), ("NOLOSS", len(runs)), ("CUT", len(runs))):
        (shown,) = re.findall(rf'<th scope="row">{name}</th><td [^>]*>[^<]*</td><td [^>]*>(\d+)</td>', page)
        assert int(shown) == judged


def test_an_unfinished_sweep_can_be_analysed(tmp_path):
    """Whoever stops a sweep wants to see what is there, even if that is nothing yet."""
    plan = plan_of(SWEEP, "two_ways", Path("two_ways.toml"))
    store = Store.create(tmp_path / "out", plan)
    empty = on_duckdb(store)
    number = len(plan.runs)
    assert verdict_line(empty["runs"]) == f"0 violations in 0 runs; {number} of {number} planned runs are not done yet"
    assert answer(empty) == [
        "No checkpoint was completed after the warm-up, so there is nothing to say about its time."
    ]
    assert f"{number} of {number} planned runs are not done yet" in render(empty, store)


def test_measured_jobs_stand_beside_their_prediction(analysis, page):
    """Runs that are measured jobs are found by their parameters and compared, with every cell of every job."""
    cells = {(cell["job"], cell["statistic"]): cell for cell in analysis["measured"]}
    assert len(cells) == sum(len(job.values) for job in load_measured())
    assert cells["R_chain_sat_4ms_aligned", "end to end"]["predicted"] == pytest.approx(16.0)
    assert cells["R_chain_sat_4ms_aligned", "start delay of fast"]["predicted"] is None
    assert re.findall(r'scope="colgroup">([^<]*)</th>', page) == list(MODES)
    assert re.findall(r'scope="rowgroup">([^<]*)</th>', page) == list(dict.fromkeys(j.setup for j in load_measured()))
    assert re.search(
        r'<td class="first"[^>]*>1467.5</td><td [^>]*class="bad">16.0<span class="mark">✗</span></td>', page
    )
    json.dumps(analysis, allow_nan=False)


def test_an_analysis_is_kept_until_results_change(tmp_path, monkeypatch):
    """A report must not wait for what is known, nor show what is no longer so."""
    import barrierlab.sim.sweep.analyse as module

    monkeypatch.setattr(module, "analyse", lambda sql, store: {"runs": store.count()})
    plan = plan_of(SWEEP, "two_ways", Path("two_ways.toml"))
    store = Store.create(tmp_path / "out", plan)
    assert analysed(store) == {"runs": 0}
    with monkeypatch.context() as patch:
        patch.setattr(module, "analyse", lambda sql, store: pytest.fail("computed again"))
        assert analysed(store) == {"runs": 0}
    store.write_chunk({table: [] for table in TABLES} | {"runs": [{"run_id": "1"}]})
    assert analysed(store) == {"runs": 1}
    told = []
    assert analysed(store, tell=told.append) == {"runs": 1}
    with monkeypatch.context() as patch:
        patch.setattr(module, "engine_line", lambda *_: "Spark")
        patch.setattr(module, "engine_for", lambda *_: nullcontext())
        patch.setattr(module, "analyse", lambda sql, store: {"runs": "by Spark"})
        assert analysed(store, "spark", tell=told.append) == {"runs": "by Spark"}  # not what DuckDB said of them
    assert analysed(store, tell=told.append) == {"runs": "by Spark"}
    assert told == [
        "analysed before, on duckdb; nothing has changed since",
        "analysing on Spark",
        "analysed before, on spark; nothing has changed since",
    ]
    with monkeypatch.context() as patch:
        patch.setattr(module, "version", lambda name: "another")
        patch.setattr(module, "analyse", lambda sql, store: {"runs": "by another version"})
        assert analysed(store) == {"runs": "by another version"}


def test_what_fits_this_machine_needs_no_spark(store, monkeypatch):
    """A JVM would be started for a few rows, or one process be asked for more than it has memory."""
    assert choose(store, READ) == choose(store, READ, "auto", "processes[2]") == "duckdb"
    assert choose(store, READ, "auto", "local[2]") == choose(store, READ, "spark") == "spark"
    rows = store.rows("tasks")
    assert f"DuckDB in this process, {rows} rows of tasks and {rows} rows of checkpoints in 0." in engine_line(
        store, READ
    )
    monkeypatch.setattr(engines, "memory_bytes", lambda: 1000)
    assert choose(store, READ) == "spark"
    assert "Spark on local[*], " in engine_line(store, READ)
    assert "--engine duckdb" in engine_line(store, READ)


@pytest.mark.parametrize(
    ("engine", "master", "words"),
    [
        ("duck", None, "--engine is 'duck'; allowed: auto, duckdb, spark; did you mean"),
        ("duckdb", "spark://host:7077", "--engine duckdb runs in this process, not on --master spark://host:7077"),
        ("spark", "processes", "--master is 'processes', where no Spark is"),
        ("auto", "nowhere", "--master is 'nowhere'; allowed"),
    ],
)
def test_an_engine_that_cannot_be_had_is_one_line(store, engine, master, words):
    """The other one would answer in silence, or a stack trace."""
    with pytest.raises(SweepError) as told:
        choose(store, READ, engine, master)
    assert str(told.value).startswith(words)
