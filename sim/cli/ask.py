"""The command `ask`."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from math import inf
from pathlib import Path

import click
from rich.console import Console

from barrierlab.sim.ask.answer import Answer, answered, rows_for_people
from barrierlab.sim.ask.bench import Bench, BrokenRunError, NothingToSayError, OutOfTimeError, Processes, QuestionError
from barrierlab.sim.ask.question import names, question_of
from barrierlab.sim.cli.choices import FILE, GivenSettings, settings_option
from barrierlab.sim.cli.run import status
from barrierlab.sim.core.budget import SECONDS, BudgetError
from barrierlab.sim.core.files import check_writable, write
from barrierlab.sim.core.printed import say
from barrierlab.sim.core.status import UNDECIDED, VIOLATION, stdout_console


def _read_precision(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Return the share of ``5%`` or ``0.05``."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%)?", value.strip())
    share = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not 0 < share < 1:
        raise click.BadParameter(f"{value!r}: allowed: a share above 0 and below 100 %, such as 5%", ctx, param)
    return share


@click.command("ask")
@click.argument("question", required=False)
@click.option("--scenario", help="Ask it of this one, shipped or a TOML file; by default of its own.")
@settings_option()
@click.option(
    "--budget",
    "budget_s",
    type=SECONDS,
    help="Wall time, such as 5m: what is known then is the answer; no limit by default.",
)
@click.option("--precision", callback=_read_precision, default="5%", show_default=True, help="Half the interval.")
@click.option(
    "--out",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep report.html, the answer and its runs there, for `rerun`.",
)
@click.option("--json", "file", type=FILE, help="Write the answer there.")
def ask_command(
    question: str | None,
    scenario: str | None,
    settings: GivenSettings,
    budget_s: float | None,
    precision: float,
    directory: Path | None,
    file: Path | None,
) -> None:
    """Answer QUESTION in a sentence: a number, its interval, and what would change it. Without, list the questions.

    Example: barrierlab ask Q3 --precision 10%
    """
    if question is None:
        if scenario is not None or settings or file is not None or directory is not None:
            raise QuestionError(f"there is no question; allowed: {', '.join(names())}")
        _list()
        return
    asked = question_of(question)
    if asked.missing:
        raise QuestionError(f"{asked.name}: not answered yet: {asked.missing}")
    until = inf if budget_s is None else time.monotonic() + budget_s
    runner = Processes(os.cpu_count() or 1)
    try:
        given = {} if scenario is not None else dict(asked.set)
        bench = Bench(
            scenario or asked.scenario,
            given | settings,
            asked.always,
            asked.checkpoints,
            precision,
            runner,
            until,
            keeps=directory is not None,
            of_joins=asked.of_joins,
        )
        check_writable(file, QuestionError, "--json")
        if directory is not None:
            from barrierlab.sim.ask.report import keep, make_room

            make_room(directory)
        with status(f"{asked.name}: {asked.question}") as update:
            bench.on_runs = lambda count: update(f"{asked.name}: {count} runs")
            answer = answered(asked, bench)
    except OutOfTimeError:
        raise BudgetError(f"--budget {budget_s:g}s is used up before there is a number: give more") from None
    except NothingToSayError as nothing:
        click.echo(f"barrierlab: undecided: {asked.name}: {nothing}", err=True)
        sys.exit(UNDECIDED)
    except BrokenRunError as broken:
        click.echo(f"! {broken}\nverdict: broken; barrierlab run shows it")
        sys.exit(VIOLATION)
    finally:
        runner.close()
    if file is not None:
        write(file, json.dumps(answer.as_json(), indent=2, allow_nan=False) + "\n", QuestionError, "--json")
    _show(stdout_console(), answer)
    if directory is not None:
        click.echo(f"report: {keep(answer, bench, directory)}")


def _list() -> None:
    for name in names():
        each = question_of(name)
        click.echo(f"{name}  {each.question}")
        if each.missing:
            click.echo(f"     not answered yet: {each.missing}")
        elif each.also_missing:
            click.echo(f"     but for a part: {each.also_missing}")


def _show(console: Console, answer: Answer) -> None:
    asked = f"{answer.question.name}: {answer.question.question} ({answer.scenario}, {answer.runs} runs)"
    say(console, asked, answer.sentence, answer.change, *(f"note: {note}" for note in answer.notes))
    rows = rows_for_people(answer.found)
    if answer.question.analysis.get("prints_table") and rows:
        from rich.table import Table

        table = Table(*rows[0])
        for row in rows:
            table.add_row(*row.values())
        console.print(table)
