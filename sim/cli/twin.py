"""The commands `import`, `calibrate` and `predict`: a twin of a job that runs on Apache Flink."""

from __future__ import annotations

import json
from pathlib import Path

import click

from barrierlab.sim.core.files import write
from barrierlab.sim.twin.answers import TwinError, answers_of


@click.command("import")
@click.argument("engine", type=click.Choice(["flink"]))
@click.argument("sources", nargs=-1, required=True, metavar="URL|FILES...")
@click.option("--job", "job_id", metavar="ID", help="The job; may be left out where there is one alone.")
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it there, not to stdout.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Keep the answers there, as JSON.")
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
        told = f"{len(job.vertices)} operators, {len(run.checkpoints)} completed checkpoints"
        click.echo(f"{out}: {job.name}, {told}; {len(made.assumed)} values are assumed{missing}")
