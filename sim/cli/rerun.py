"""The command `rerun`."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barrierlab.sim.cli.choices import FILE, budget_option
from barrierlab.sim.core.budget import budget
from barrierlab.sim.core.files import check_writable, write
from barrierlab.sim.core.status import OF_VERDICT, RAISED, VIOLATION, WRONG

if TYPE_CHECKING:
    from barrierlab.sim.sweep.rerun import Rerun


@click.command("rerun")
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("run_id")
@click.option("--scenario", type=FILE, help="Its file, if no copy was kept.")
@click.option("--trace", type=FILE, help="Write the journal there, as text.")
@budget_option()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")
def rerun_command(
    directory: Path, run_id: str, scenario: Path | None, trace: Path | None, budget_s: float | None, as_json: bool
) -> None:
    """Make one run of DIRECTORY again, by the id that every row of a report has, and check that it comes out the same.

    DIRECTORY is that of a sweep, or of an answer (`ask --out`).

    The first characters of RUN_ID are enough if no other run begins so. Status 0 says that the digest of its journal is
    the one that was stored, and that it holds; 1 that it breaks an invariant now as then; 2 that it came out otherwise.

    Example: barrierlab rerun out/demo 5f3c09a17b2e44d1
    """
    from barrierlab.sim.sweep.errors import SweepError
    from barrierlab.sim.sweep.rerun import changed_versions, kept_runs, rerun

    kept = kept_runs(directory)
    check_writable(trace, SweepError, "--trace")
    begin = time.monotonic()
    with budget(budget_s):
        found = rerun(kept, run_id, scenario)
    took_s = time.monotonic() - begin
    if trace is not None:
        if found.result is None:
            raise SweepError(f"--trace: run {found.run.run_id} did not come to its end, and has no journal")
        write(trace, found.result.trace(), SweepError, "--trace")
    if found.differs:
        raise SweepError(_otherwise(found, directory, changed_versions(kept.versions)))
    if as_json:
        click.echo(json.dumps({"run_id": found.run.run_id, "same": True, "reproduce": command_of(found), **found.row}))
    else:
        _show(found, took_s)
    status = found.row["status"]
    sys.exit(VIOLATION if status == RAISED else WRONG if status == "ERROR" else OF_VERDICT[found.row["verdict"]])


def command_of(found: Rerun) -> str:
    """Return the command that makes the same run without its directory."""
    from barrierlab.sim.sweep.plan import set_options

    run = found.run
    return shlex.join(["barrierlab", "run", run.source, *set_options(run.parameters), "--seed", str(run.seed)])


def _show(found: Rerun, took_s: float) -> None:
    run, row = found.run, found.row
    words = ", ".join(f"{name}={value}" for name, value in run.parameters.items()) or "as it is"
    click.echo(f"run {run.run_id}: {run.scenario}, {words}, seed {run.seed}: rerun in {took_s:.1f} s")
    if row["status"] != "OK":
        click.echo(f"it stopped with the same error as then: {row['error']}")
        return
    click.echo(f"digest {row['journal_digest']}: the same as when it was stored, of {row['journal_entries']} entries")
    violations = f" ({row['violations']} violations)" if row["violations"] else ""
    click.echo(f"verdict: {row['verdict']}{violations}, as then")
    for violation in found.result.violation_rows()[:5]:
        click.echo(f"! {violation['invariant']}: {violation['reason']}")
    click.echo(f"the same without a directory: {command_of(found)}")


def _otherwise(found: Rerun, directory: Path, versions: str) -> str:
    """Return the line on a run that came out otherwise."""
    then, now = found.differs.get("journal_digest", (None, None))
    what = f"its digest is {now}, and {then} is stored" if now != then else "its history is the same"
    if now == then:
        name, (then, now) = next(iter(found.differs.items()))
        what += f", but not what is stored of it ({name}: {then!r} is stored, {now!r} came out)"
    why = versions or (
        f"no version differs, so a file in {directory} is damaged, or the source of barrierlab has changed"
    )
    return f"run {found.run.run_id} came out otherwise: {what}; {why}"
