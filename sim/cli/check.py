"""The command `check`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from barrierlab.model.checkpoint.asked import JUDGES
from barrierlab.model.checkpoint.capabilities import STRICT
from barrierlab.model.checkpoint.check import reach_of, verdict_of
from barrierlab.model.explore.checker import HOLDS, UNDECIDED
from barrierlab.model.suites.standard import SCOPES
from barrierlab.sim.check.ledger import DIRECTORY
from barrierlab.sim.check.program import LIMIT_S
from barrierlab.sim.check.report import as_json, junit, markdown, save, show, violations_of, workflow_commands
from barrierlab.sim.check.runner import BUDGETS_S, PROTOCOLS, SPREADS, CheckError, make_folder, plan, run
from barrierlab.sim.check.sarif import sarif
from barrierlab.sim.cli.choices import FILE, KnownName
from barrierlab.sim.core.budget import SECONDS
from barrierlab.sim.core.files import write
from barrierlab.sim.core.status import OF_VERDICT, stdout_console
from barrierlab.sim.sweep.progress import ProgressWatch


@click.command("check")
@click.option("--scope", default="small", show_default=True, help=f"{', '.join(SCOPES)}, or the name of one scope.")
@click.option("--protocol", "protocols", multiple=True, type=KnownName(PROTOCOLS), help="Only this one; repeatable.")
@click.option(
    "--impl",
    "implementations",
    metavar="MODULE:CLASS",
    multiple=True,
    help="Check this class of your own: an aligner, or what its attribute role says; repeatable, one of each role.",
)
@click.option(
    "--exec",
    "command",
    metavar="COMMAND",
    help="Check the aligner of a program in any language, which answers JSON lines; if not given, --impl or ours.",
)
@click.option(
    "--exec-timeout",
    "limit_s",
    type=SECONDS,
    help=f"Seconds that the program has for an answer, of CPU time or of doing nothing; {LIMIT_S:g} by default.",
)
@click.option(
    "--judge",
    type=click.Choice(JUDGES),
    help="Of --impl and --exec: the invariants of whole dataflows (the default), or the table of its protocol as well.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with 3 if an invariant that a scope asks for had nothing to judge, if a fault struck nothing in any "
    "scope, or if --impl or --exec does not declare several inputs, aborts, ends or recovery.",
)
@click.option(
    "--budget",
    "budget_s",
    type=SECONDS,
    help="Seconds of wall time, such as 60s, then undecided; by default no limit, and 3600 of full.",
)
@click.option("--master", default="processes", show_default=True, help="processes[N], or a Spark master.")
@click.option(
    "--spread",
    type=click.Choice(SPREADS),
    default=SPREADS[0],
    show_default=True,
    help="Share the scopes among workers; or, on Spark, the states of each, for one that is larger than memory.",
)
@click.option(
    "--save",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep verdicts and counterexamples there.",
)
@click.option("--resume", is_flag=True, help="Take over what --save has decided.")
@click.option(
    "--changed",
    is_flag=True,
    help="Check only what has changed since the verdicts in the ledger, and say which are kept.",
)
@click.option(
    "--ledger",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Where the ledger of --changed is; {DIRECTORY} in the working directory, if it is not given.",
)
@click.option("--junit", "junit_file", type=FILE, help="Write JUnit XML there.")
@click.option("--sarif", "sarif_file", type=FILE, help="Write SARIF 2.1.0 there, for code scanning.")
@click.option("--github", is_flag=True, help="Print annotations of GitHub Actions; in a workflow they are always.")
@click.option("--markdown", "markdown_file", type=FILE, help="Write a summary in Markdown there.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON object on stdout.")
def check_command(
    scope: str,
    protocols: tuple[str, ...],
    implementations: tuple[str, ...],
    command: str | None,
    limit_s: float | None,
    judge: str | None,
    strict: bool,
    budget_s: float | None,
    master: str,
    spread: str,
    directory: Path | None,
    resume: bool,
    changed: bool,
    ledger: Path | None,
    junit_file: Path | None,
    sarif_file: Path | None,
    github: bool,
    markdown_file: Path | None,
    json_wanted: bool,
) -> None:
    """Explore every interleaving of small scopes; a violation prints the shortest counterexample.

    Scopes: tiny takes seconds, small half a minute on two cores, full an hour; what is not decided by then is said.
    In GitHub Actions each violation is an annotation at the class statement of --impl, and the summary page gets the
    Markdown.

    An external aligner declares what it does not take part in (barrierlab.model.checkpoint.capabilities): scopes that
    need that are not asked, and the verdict names them.

    An invariant of which nothing came about in any scope (no watermark, no restore, ...) is vacuous, and named; so is a
    fault that struck nothing.

    The exit status is the verdict's: 0 holds, 1 a violation, 3 undecided (2: the input is wrong).

    Example: barrierlab check --impl my_engine.aligner:Aligner --protocol aligned --scope tiny
    """
    if resume and directory is None:
        raise CheckError("--resume needs --save DIR: the folder that was given when it was begun")
    if changed and resume:
        raise CheckError("--changed and --resume: give one of them; --changed takes its verdicts from the ledger")
    if ledger is not None and not changed:
        raise CheckError(f"--ledger {ledger} needs --changed, which keeps its verdicts there")
    implementation = ",".join(implementations)
    if command is not None:
        if implementation:
            raise CheckError(f"--impl {implementation} and --exec {command!r}: give one of them")
        for option, is_given in (("--changed", changed), ("--resume", resume)):
            if is_given:
                raise CheckError(f"{option} with --exec: nobody sees what a program depends on; leave {option} out")
        if not master.startswith("processes"):
            raise CheckError(f"--master {master} with --exec: a program runs on this machine; allowed: processes[N]")
        chosen = plan(scope, protocols, command, judge or "", limit_s or LIMIT_S)
    elif limit_s is not None:
        raise CheckError("--exec-timeout needs --exec COMMAND: a class is called, and not waited for")
    else:
        chosen = plan(scope, protocols, implementation, judge or "")
    for option, path in (("--junit", junit_file), ("--sarif", sarif_file), ("--markdown", markdown_file)):
        if path is not None and not path.parent.is_dir():
            raise CheckError(f"{option} {path}: there is no folder {path.parent}; give a file in a folder that exists")
    budget_s = budget_s or BUDGETS_S.get(chosen.group)
    kept_in = (ledger or DIRECTORY) if changed else directory
    if directory is not None:
        make_folder(directory, "--save")
    try:
        with ProgressWatch(len(chosen.names), what="scopes") as watch:
            outcomes = run(
                chosen, master, budget_s, kept_in, resume, watch.tick, _say, is_ledger=changed, spread=spread
            )
    except KeyboardInterrupt:
        if command is not None:
            _say("interrupted: nothing is kept of a program")
            sys.exit(130)
        kept = f"go on with --save {directory} --resume" if directory else "with --save DIR it could go on from here"
        _say(f"interrupted: {'the same command goes on from here' if changed else kept}")
        sys.exit(130)
    if json_wanted:
        click.echo(json.dumps(as_json(outcomes, chosen), indent=2))
    else:
        show(stdout_console(), outcomes, chosen)
    if directory is not None:
        for path in save(outcomes, directory, chosen):
            click.echo(f"written: {path}", err=True)
    verdict = verdict_of(outcomes)
    falls_short = reach_of(outcomes).falls_short or not STRICT.isdisjoint(chosen.undeclared)
    lacks = strict and verdict == HOLDS and falls_short
    status = OF_VERDICT[UNDECIDED if lacks else verdict]
    if junit_file is not None:
        write(junit_file, junit(outcomes, chosen), CheckError, "--junit")
    if sarif_file is not None:
        write(sarif_file, sarif(outcomes, violations_of(outcomes), chosen, status), CheckError, "--sarif")
    if markdown_file is not None:
        write(markdown_file, markdown(outcomes, chosen), CheckError, "--markdown")
    if github or os.environ.get("GITHUB_ACTIONS"):
        for line in workflow_commands(outcomes, chosen):
            click.echo(line, err=json_wanted)
    if os.environ.get("GITHUB_ACTIONS") and (page := os.environ.get("GITHUB_STEP_SUMMARY")):
        with Path(page).open("a", encoding="utf-8") as summary:
            summary.write(markdown(outcomes, chosen))
    sys.exit(status)


def _say(line: str) -> None:
    click.echo(f"barrierlab: {line}", err=True)
