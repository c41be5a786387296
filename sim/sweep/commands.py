"""The commands `sweep`, `analyse`, `verify`, `report` and `measured`."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barrierlab.sim.cli.choices import budget_option, settings_option
from barrierlab.sim.core.budget import BudgetError
from barrierlab.sim.core.status import INTERRUPTED, UNDECIDED, VIOLATION, of_runs, stdout_console

if TYPE_CHECKING:
    from barrierlab.sim.sweep.measured import MeasuredJob
    from barrierlab.sim.sweep.plan import SweepPlan
    from barrierlab.sim.sweep.store import Store

_directory = click.argument("directory", type=click.Path(path_type=Path))
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")
_master = click.option(
    "--master", default="local[*]", show_default=True, help="Spark master, or processes[N] for processes without a JVM."
)
_sql_master = click.option("--master", help="Spark master: the queries run there; by default as --engine says.")
_engine = click.option(
    "--engine",
    default="auto",
    show_default=True,
    help="duckdb (in this process) or spark; auto is DuckDB for what fits this machine, Spark with --master.",
)


@click.command("sweep")
@click.argument("sweep")
@click.option("--out", "directory", type=click.Path(path_type=Path), required=True, help="Directory for the results.")
@_master
@click.option("--resume", is_flag=True, help="Go on where a sweep was stopped: compute only what is missing.")
@click.option("--events", is_flag=True, help="Keep the journal of every run, for `verify` and for SQL of your own.")
@budget_option("5m")
@click.option("--strict", is_flag=True, help="Status 3 if a run judged less than its scenario asks for.")
@_json
def sweep_command(
    sweep: str,
    directory: Path,
    master: str,
    resume: bool,
    events: bool,
    budget_s: float | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Run the runs of SWEEP, a shipped sweep or a TOML file, and store their results as Parquet.

    Example: barrierlab sweep aligned_under_backpressure --out out/demo
    """
    import pyarrow as pa  # noqa: F401  (the extra is missed before a Java that it brings)

    from barrierlab.sim.sweep.compact import compact
    from barrierlab.sim.sweep.errors import SweepError
    from barrierlab.sim.sweep.plan import load_plan
    from barrierlab.sim.sweep.session import check_master, process_count, usable_java
    from barrierlab.sim.sweep.store import Store

    check_master(master)
    plan = load_plan(sweep)
    if process_count(master) is None:
        usable_java()  # before there is a directory that would have to be resumed
    if resume and directory.is_dir() and any(directory.iterdir()):
        store, is_new = Store.open(directory), False
        store.continue_with(plan, events)
    else:
        store, is_new = Store.create(directory, plan, events), True
    options = ("" if master == "local[*]" else f" --master {master}") + (" --events" if events else "")
    again = f"barrierlab sweep {sweep} --out {directory}{options} --resume"
    try:
        _execute(plan, store, master, again, budget_s)
    except SweepError:
        if is_new:
            store.discard()
        raise
    compact(store)
    if process_count(master) is None and not plan.is_of_joins:
        from barrierlab.sim.sweep.analyse import analysed
        from barrierlab.sim.sweep.session import is_local

        # Kept in the directory. On a cluster it is asked there, where the files are near.
        analysed(store, "auto", None if is_local(master) else master, _tell)
    found = _outcome(store)
    if as_json:
        click.echo(json.dumps(found))
    else:
        from barrierlab.sim.sweep.outcome import steadiness, verdict_line

        if plan.is_of_joins:
            from barrierlab.sim.sweep.join.analyse import analyse

            _show_joins(analyse(store))
        click.echo(verdict_line(found))
        if text := steadiness(found):
            click.echo(f"warning: {text}")
        click.echo(f"results: {directory}")
    sys.exit(of_runs(found, strict))


def _execute(plan: SweepPlan, store: Store, master: str, again: str, budget_s: float | None = None) -> None:
    """Run what is missing; interrupted, or when the budget is used up, say how to go on and exit with 130 or 3.

    Parameters
    ----------
    again : str
        The command that goes on, or empty if nothing is kept that it could go on from.
    budget_s : float, optional
        Of wall time.
    """
    from barrierlab.sim.sweep.execute import execute
    from barrierlab.sim.sweep.progress import ProgressWatch

    done = len(store.done())
    if done:
        click.echo(f"{done} of {len(plan.runs)} runs are done already", err=True)
    end_s = None if budget_s is None else time.monotonic() + budget_s

    def tick(number: int) -> None:
        watch.tick(number)
        if end_s is not None and time.monotonic() > end_s:
            raise BudgetError

    kept = f"{{}} of {len(plan.runs)} runs are stored; to go on: {again}" if again else "nothing is kept"
    try:
        with ProgressWatch(len(plan.runs), done) as watch:
            execute(plan, store, master, tick)
    except (KeyboardInterrupt, BudgetError) as stopped:
        is_interrupt = isinstance(stopped, KeyboardInterrupt)
        what = "interrupted" if is_interrupt else f"undecided: the budget of {budget_s:g} s is used up"
        click.echo(f"{what}: {kept.format(store.count())}", err=True)
        sys.exit(INTERRUPTED if is_interrupt else UNDECIDED)


def _outcome(store: Store) -> dict[str, Any]:
    """Return the summary of the table `runs`."""
    from barrierlab.sim.sweep.outcome import COLUMNS, outcome

    manifest = store.manifest()
    runs = store.read("runs", COLUMNS).to_pylist()
    return {"sweep": manifest["sweep"], "out": str(store.directory), **outcome(runs, manifest["runs"])}


@click.command("analyse")
@_directory
@_engine
@_sql_master
@_json
def analyse_command(directory: Path, engine: str, master: str | None, as_json: bool) -> None:
    """Print what the sweep in DIRECTORY says: answer, verdict, quantiles, effects.

    The same SQL runs on DuckDB in this process or on Spark; stderr says which, and why.

    Example: barrierlab analyse out/demo --json
    """
    from barrierlab.sim.sweep.outcome import verdict_line

    analysis, store = _analysed(directory, engine, master)
    if as_json:
        click.echo(json.dumps(analysis))
    else:
        (_show_joins if store.is_of_joins else _show_analysis)(analysis)
        click.echo(verdict_line(analysis["runs"]))
    sys.exit(of_runs(analysis["runs"]))


@click.command("report")
@_directory
@click.option(
    "--out",
    "target",
    type=click.Path(path_type=Path),
    help="Directory for report.html; that of the sweep if not given.",
)
@_engine
@_sql_master
def report_command(directory: Path, target: Path | None, engine: str, master: str | None) -> None:
    """Write the report on the sweep in DIRECTORY: one HTML file that needs nothing beside it.

    Example: barrierlab report out/demo
    """
    from barrierlab.sim.core.files import check_writable, write
    from barrierlab.sim.sweep import report, summary
    from barrierlab.sim.sweep.errors import SweepError
    from barrierlab.sim.sweep.join import analyse as joins
    from barrierlab.sim.sweep.join import report as join_report
    from barrierlab.sim.sweep.outcome import verdict_line
    from barrierlab.sim.sweep.store import Store

    path = (target or directory) / "report.html"
    if target is not None:
        Store.open(directory)  # before a folder is made for what is no report
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SweepError(
                f"--out {target}: cannot be made: {error.strerror or error}; name another folder"
            ) from None
    if path.parent.is_dir():  # else there is no sweep, as the error below says
        check_writable(path, SweepError, "" if target is None else "--out")
    analysis, store = _analysed(directory, engine, master)
    if store.is_of_joins:
        text, sentences = join_report.render(analysis, store), joins.answer(analysis["cells"])
    else:
        text, sentences = report.render(analysis, store), summary.answer(analysis)
    write(path, text, SweepError)
    if question := analysis["sweep"]["question"]:
        click.echo(f"\n{question}")
    for sentence in sentences:
        click.echo(f"  {sentence}")
    click.echo(f"\n{verdict_line(analysis['runs'])}")
    click.echo(f"report: {path}")
    sys.exit(of_runs(analysis["runs"]))


def _analysed(directory: Path, engine: str, master: str | None) -> tuple[dict[str, Any], Store]:
    from barrierlab.sim.sweep.analyse import analysed
    from barrierlab.sim.sweep.engines import check_engine
    from barrierlab.sim.sweep.join import analyse as joins
    from barrierlab.sim.sweep.store import Store

    store = Store.open(directory)
    check_engine(engine, master)
    if store.is_of_joins:
        return joins.analyse(store), store  # a row a run: no engine is needed
    return analysed(store, engine, master, _tell), store


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _show_joins(analysis: dict[str, Any]) -> None:
    """Show the table of a sweep of joins, and its answer."""
    from rich.table import Table

    from barrierlab.sim.sweep.join.analyse import TIMES, answer

    found = analysis["cells"]
    table = Table("streams", "barrier", "lateness ms", "complete %", "wait p99 ms", "age p99 ms", "skew p99 ms")
    for cell in found:
        values = [cell[name] for name in TIMES]
        table.add_row(
            cell["streams"],
            cell["barrier"],
            "" if cell["lateness_ms"] is None else f"{cell['lateness_ms']:g}",
            f"{100 * cell['complete_share']:.1f}",
            *("" if value is None else f"{value:.1f}" for value in values),
        )
    stdout_console().print(table)
    if question := analysis["sweep"]["question"]:
        click.echo(question)
    for sentence in answer(found):
        click.echo(f"  {sentence}")


def _show_analysis(analysis: dict[str, Any]) -> None:
    from rich.table import Table

    from barrierlab.sim.sweep.summary import answer

    for sentence in answer(analysis):
        click.echo(sentence)
    names = ("p50 ms", "p90 ms", "p99 ms", "start delay ms", "alignment ms")
    table = Table("scenario", "parameters", "completed", *names, "job")
    pieces, quantiles = ({_cell(row): row for row in analysis[name]} for name in ("pieces", "quantiles"))
    for row in analysis["completion"]:
        cell = _cell(row)
        values = [""] * len(names)
        if cell in quantiles:
            points = [quantiles[cell][p]["at"] for p in ("p50", "p90", "p99")]
            values = [f"{v:.1f}" for v in (*points, pieces[cell]["start_delay_ms"], pieces[cell]["alignment_ms"])]
        words = " ".join(f"{name}={value}" for name, value in row["parameters"].items())
        share = f"{row['completed']} of {row['triggered']}"
        ways = ", ".join(f"{way} ({count} of {row['runs']})" for way, count in row["progress"].items())
        table.add_row(row["scenario"], words, share, *values, ways or "goes on")
    stdout_console(160).print(table)


def _cell(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["part"], row["scenario"], json.dumps(row["parameters"])


@click.command("verify")
@_directory
@_engine
@_sql_master
@_json
def verify_command(directory: Path, engine: str, master: str | None, as_json: bool) -> None:
    """Judge the sweep in DIRECTORY again: the invariants in SQL, over the events that sweep --events stored.

    A second judge, to be laid beside the one of each run. Judged where the runs ran, and not here: REC, and of CUT
    whether each state is the fold of what took effect before the cut. The same SQL runs on DuckDB or on Spark.

    A run that only one of the two judges calls broken is a violation, too.

    Example: barrierlab verify out/smoke
    """
    from barrierlab.sim.sweep.engines import check_engine, engine_line
    from barrierlab.sim.sweep.progress import ProgressWatch
    from barrierlab.sim.sweep.store import Store
    from barrierlab.sim.sweep.verify.judge import ASKED, verify

    store = Store.open(directory)
    check_engine(engine, master)
    store.check_events()
    store.check_files()
    click.echo(f"judging on {engine_line(store, ASKED, engine, master)}", err=True)
    with ProgressWatch(store.count()) as watch:
        found = verify(store, engine, master, watch.tick)
    found = {**found, "outcome": _outcome(store)}
    if as_json:
        click.echo(json.dumps(found))
    else:
        from barrierlab.sim.sweep.outcome import verdict_line

        click.echo(f"where they ran: {verdict_line(found['outcome'])}")
        _show_verified(found)
    sys.exit(VIOLATION if found["violations"] or found["disagreements"] else of_runs(found["outcome"]))


_SHOWN = 10
"""So many violations and disagreements are printed; --json has them all."""


def _show_verified(found: dict[str, Any]) -> None:
    """Show the table of invariants; what broke them first, run by run; where the two judges differ."""
    from rich.table import Table

    table = Table("invariant", "runs", "violations")
    for name, violations in found["invariants"].items():
        table.add_row(name, str(found["runs"]), str(violations))
    stdout_console().print(table)
    for name, words in found["elsewhere"].items():
        click.echo(f"Judged where the runs ran, not here: {words} ({name}).")
    for row in found["violations"][:_SHOWN]:
        click.echo(f"! {row['invariant']}: {row['reason']} (attempt {row['attempt']}, {row['at_ns'] / 1e9:.3f} s)")
        click.echo(f"  run {row['run_id']}, {row['violations']} such: {row['reproduce']}")
    for row in found["disagreements"][:_SHOWN]:
        here, there = (", ".join(row[key]) or "holds" for key in ("here", "where_it_ran"))
        click.echo(f"! the judges disagree on run {row['run_id']}: here {here}, where it ran {there}")
        click.echo(f"  {row['reproduce']}")
    more = [len(found[key]) - _SHOWN for key in ("violations", "disagreements")]
    if any(number > 0 for number in more):
        click.echo(f"and {sum(max(0, number) for number in more)} more lines like these: --json has all")
    disagree = f"; the judges disagree on {len(found['disagreements'])}" if found["disagreements"] else ""
    click.echo(f"{sum(found['invariants'].values())} violations in {found['runs']} runs{disagree}")


def _part_of(job: MeasuredJob) -> str:
    """A measured job as a part of a sweep."""
    from barrierlab.sim.sweep.plan import toml_text

    return f"name = {json.dumps(job.name)}\nscenario = {json.dumps(job.scenario)}\nset = {toml_text(job.settings)}"


@click.command("measured")
@click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="Seeds for each job.")
@click.option("--master", default="processes", show_default=True, help="processes[N], or a Spark master.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="A folder with another runs.csv of the same jobs; sim/data/flink by default.",
)
@settings_option("A parameter or key of all their scenarios; repeatable.")
@_json
def measured_command(seeds: int, master: str, data: Path | None, settings: dict[str, Any], as_json: bool) -> None:
    """Predict every job that was measured on a real Flink cluster, in each way to align; lay it beside the measurement.

    A target that is missed is shown, and is no violation. With --set, what another setting would predict.

    Example: barrierlab measured --set hops=task
    """
    from barrierlab.sim.sweep import measured
    from barrierlab.sim.sweep.plan import parameters_text, plan_of
    from barrierlab.sim.sweep.session import check_master
    from barrierlab.sim.sweep.store import Store

    check_master(master)
    of_data = measured.load_measured() if data is None else measured.measured_in(data)
    if settings:
        of_data = tuple(replace(job, settings={**job.settings, **settings}) for job in of_data)
    once = {(job.scenario, parameters_text(job.settings)): job for job in of_data}  # a job may be measured again
    parts = ["measured = true"] if data is None and not settings else [_part_of(job) for job in once.values()]
    text = "".join(f"[[part]]\n{part}\nseeds = {{ first = 1, last = {seeds} }}\n" for part in parts)
    plan = plan_of(text, "measured", Path("measured.toml"))
    with tempfile.TemporaryDirectory(prefix="barrierlab-") as directory:
        store = Store.create(Path(directory) / "measured", plan)
        _execute(plan, store, master, "")
        found = _outcome(store)
        runs, checkpoints, tasks = (store.read(name).to_pylist() for name in ("runs", "checkpoints", "tasks"))
    done = [row for row in runs if row["status"] == "OK"]
    jobs = {row["run_id"]: once[row["scenario"], row["parameters"]].name for row in done}
    predicted = measured.predict(jobs, checkpoints, tasks)
    same = {job.name: once[job.scenario, parameters_text(job.settings)].name for job in of_data}
    cells = measured.compare({name: predicted[as_] for name, as_ in same.items() if as_ in predicted}, of_data)
    if as_json:
        click.echo(
            json.dumps({"runs": found["done"], "violations": found["violations"], "cells": [c.as_row() for c in cells]})
        )
    else:
        from barrierlab.sim.sweep.outcome import verdict_line

        click.echo(measured.markdown(cells))
        judged = [cell for cell in cells if cell.good is not None]
        click.echo(f"\n{sum(c.good is True for c in judged)} of {len(judged)} targets are met; {verdict_line(found)}")
    sys.exit(of_runs(found))
