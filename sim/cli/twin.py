"""The commands `import`, `calibrate` and `predict`: a twin of a job that runs on Apache Flink."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from barrierlab.sim.cli.choices import FILE, settings_option
from barrierlab.sim.core.files import write
from barrierlab.sim.core.printed import say, table_of
from barrierlab.sim.core.status import stdout_console
from barrierlab.sim.scenario.load import load
from barrierlab.sim.scenario.settings import Scenario
from barrierlab.sim.twin.answers import TwinError, answers_of

LOCAL_STATE = (
    "note: what is queued in a local channel Flink counts as persisted by its sender, the simulation by its receiver; "
    "the sum over the job is the same"
)


@click.command("import")
@click.argument("engine", type=click.Choice(["flink"]))
@click.argument("sources", nargs=-1, required=True, metavar="URL|FILES...")
@click.option("--job", "job_id", metavar="ID", help="The job, or how its id begins; by default the only one.")
@click.option("-o", "--out", type=FILE, help="Write it there, not to stdout.")
@click.option("--save", type=FILE, help="Keep the answers there, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def import_command(
    engine: str, sources: tuple[str, ...], job_id: str | None, out: Path | None, save: Path | None, as_json: bool
) -> None:
    """Write the scenario of a job that runs on Apache Flink 1.20 or 2.x, from its REST server or from saved answers.

    Each value says where it is from; what the answers do not say is assumed, or a line to fill in. Only GET is asked.

    Example: barrierlab import flink answers.json --job 1f0e9c -o job.toml
    """
    from barrierlab.sim.twin.import_flink import job_of, scenario_of
    from barrierlab.sim.twin.observed import observed_in, saved_text

    answers = answers_of(sources)
    job = job_of(answers, job_id)
    run = observed_in(answers, job)
    made = scenario_of(job, answers.where)
    if save is not None:
        write(save, saved_text(answers), TwinError, "--save")
    if out is not None:
        write(out, made.text, TwinError, "--out")
    if as_json:
        found = {"job": job.id, "name": job.name, "version": job.version, "mode": run.mode, "toml": made.text}
        rows = [checkpoint.as_json() for checkpoint in run.checkpoints]
        click.echo(json.dumps({**found, "fill_in": list(made.fill_in), "assumed": made.assumed, "checkpoints": rows}))
    elif out is None:
        click.echo(made.text, nl=False)
    else:
        missing = f"; fill in: {', '.join(made.fill_in)}" if made.fill_in else ""
        summary = f"{len(job.vertices)} operators, {len(run.checkpoints)} completed checkpoints"
        click.echo(f"{out}: {job.name}, {summary}; {len(made.assumed)} values are assumed{missing}")


@click.command("calibrate")
@click.argument("jobs", nargs=-1, required=True, metavar="JOBS...")
@click.option(
    "--from",
    "sources",
    multiple=True,
    required=True,
    type=click.Path(),
    help="Answers, or a folder of tables; repeatable.",
)
@settings_option("A parameter or key of the jobs; repeatable.")
@click.option("-o", "--out", type=FILE, help="Write it there, not to stdout.")
def calibrate_command(
    jobs: tuple[str, ...], sources: tuple[str, ...], settings: dict[str, Any], out: Path | None
) -> None:
    """Fit a cost profile to measured checkpoints of JOBS, scenarios or files: what the cluster itself costs.

    Of tables, the runs with the jobs' operators and channels (local or not) count. What the data do not say is said.

    Example: barrierlab calibrate job.toml --from answers.json -o costs.toml
    """
    from barrierlab.sim.twin.calibrate import calibrate, distinct, observed_from

    runs = []
    for name in jobs:
        job = load_job(name, settings)
        places = {channel.local for channel in job.channels.values()}
        runs += [run for run in observed_from(sources, job) if run.is_local is None or run.is_local in places]
    runs = distinct(runs)
    profile = calibrate(runs)
    if out is None:
        click.echo(profile.text(), nl=False)
        return
    write(out, profile.text(), TwinError, "--out")
    of = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    click.echo(f"{out}: {len(profile.costs)} costs from {profile.checkpoints} checkpoints of {of}")
    for name, why in profile.undetermined.items():
        click.echo(f"not determined: {name}: {why}")


@click.command("predict")
@click.argument("name", metavar="JOB")
@click.option("--costs", type=FILE, required=True, help="A cost profile.")
@settings_option("A parameter or key of the job; repeatable.")
@click.option(
    "--against",
    multiple=True,
    type=click.Path(),
    help="Answers, or a folder of tables, to lay beside it; nothing by default.",
)
@click.option(
    "--seeds",
    "runs",
    type=click.IntRange(2, 999),
    default=19,
    show_default=True,
    help="Runs to simulate.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def predict_command(
    name: str, costs: Path, settings: dict[str, Any], against: tuple[str, ...], runs: int, as_json: bool
) -> None:
    """Predict the checkpoints of JOB, a scenario or a file, with a cost profile; and lay a measurement beside it.

    Of what is measured the runs of the job's mode and settings count, as their mean; the others are left out, and said.
    A value outside its interval is shown, and is no violation.

    Example: barrierlab predict job.toml --costs costs.toml --set mode=unaligned
    """
    from barrierlab.sim.twin.calibrate import observed_from
    from barrierlab.sim.twin.observed import departures
    from barrierlab.sim.twin.predict import TAKEN, beside, completed, predict
    from barrierlab.sim.twin.profile import read_profile

    profile = read_profile(costs)
    job = load_job(name, settings)
    mode, places = job.mode.name, {channel.local for channel in job.channels.values()}
    found = [
        run
        for run in observed_from(against, job, debloated=True)
        if run.mode == mode and (run.is_local is None or run.is_local in places)
    ]
    if against and not found:
        raise TwinError(
            f"{' '.join(against)}: no run of the mode {mode} and the job's channels; give one, or --set mode="
        )
    other = {run.name: ", ".join(which) for run in found if (which := departures(run, job))}
    measured = [run for run in found if run.name not in other]
    if against and not measured:
        first, why = next(iter(other.items()))
        raise TwinError(
            f"{' '.join(against)}: no run has the job's settings: of {first} {why} (left out: {len(other)}); --set them"
        )
    rows = predict(name, settings, profile, runs)
    if against:
        rows = beside(rows, measured)
    outside = list(profile.outside(job))
    if completed(profile, job) is not profile:
        outside.append(TAKEN)
    unknown = list(dict.fromkeys(row.statistic for row in rows if not row.is_known))
    if unknown:
        outside.append(f"{', '.join(unknown)}: no such job was measured; the interval is of the runs alone")
    if as_json:
        listed = [{**asdict(row), "unit": row.unit, "inside": row.is_inside} for row in rows]
        whole = {"job": job.name, "mode": mode, "holds": 0.9, "outside": outside, "rows": listed}
        if against:
            whole |= {"measured_runs": [run.name for run in measured], "left_out": other}
        click.echo(json.dumps(whole))
        return
    heads = ["statistic", "operator", "predicted", "90 % from", "to", *(["measured", ""] if against else [])]
    table = table_of(heads, ("statistic", "operator", ""), f"{job.title}, {mode}: {runs} runs")
    for row in rows:
        cells = [f"{value:,.{1 if row.unit == 'ms' else 0}f}" for value in (row.median, row.low, row.high)]
        place = {True: "inside", False: "outside", None: ""}[row.is_inside]
        beside_it = [] if row.measured is None else [f"{row.measured:,.1f}", place]
        table.add_row(f"{row.statistic}, {row.unit}", row.operator, *cells, *beside_it)
    console = stdout_console()
    console.print(table)
    say(console, *(f"outside what was calibrated: {line}" for line in outside))
    say(console, *(f"left out: {left}: {why}" for left, why in other.items()))
    if against:
        judged = [row.is_inside for row in rows if row.is_inside is not None]
        console.print(f"{sum(judged)} of {len(judged)} measured values are in their intervals", highlight=False)
        if True in places and job.mode.goes_unaligned:
            say(console, LOCAL_STATE)


def load_job(name: str, settings: dict[str, Any]) -> Scenario:
    """Return a scenario of checkpoints.

    Raises
    ------
    TwinError
        If it is one of something else.
    """
    job = load(name, settings)
    if not isinstance(job, Scenario):
        raise TwinError(f"{name}: is no scenario of checkpoints; give one, such as barrierlab import writes")
    return job
