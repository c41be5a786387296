"""The command `run`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from barrierlab.sim.checkpoint.estimate import announcement
from barrierlab.sim.checkpoint.result import run
from barrierlab.sim.cli.choices import FILE, budget_option, settings_option
from barrierlab.sim.cli.console import exit_status, show
from barrierlab.sim.core.budget import budget
from barrierlab.sim.core.files import check_writable, write
from barrierlab.sim.core.status import RAISED, VIOLATION, raised_by_machine, stdout_console
from barrierlab.sim.scenario.file import ScenarioError
from barrierlab.sim.scenario.load import load
from barrierlab.sim.scenario.settings import Scenario


@click.command("run")
@click.argument("scenario")
@click.option("--seed", type=click.IntRange(min=0), help="Random seed; the scenario's own by default.")
@settings_option()
@click.option("--trace", type=FILE, help="Write the journal there, as text.")
@click.option("--events", type=FILE, help="Write the journal there as it goes, as Parquet, and keep none of it.")
@budget_option()
@click.option("--strict", is_flag=True, help="Status 3 for a run that judged less than the scenario asks for.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def run_command(
    scenario: str,
    seed: int | None,
    settings: dict[str, Any],
    trace: Path | None,
    events: Path | None,
    budget_s: float | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Simulate SCENARIO once: its checkpoints, control signals or joined outputs, and the verdict of the invariants.

    SCENARIO is the name of a shipped one (barrierlab scenarios) or a TOML file.

    Example: barrierlab run flink_chain --set level=sat_4ms --seed 1
    """
    loaded = load(scenario, settings)
    check_writable(trace, ScenarioError, "--trace")
    check_writable(events, ScenarioError, "--events")
    if events is not None and trace is not None:
        raise ScenarioError("--trace is of a journal that is kept, which --events does not: give one of them")
    if budget_s is None and (long := announcement(loaded)):
        click.echo(f"barrierlab: {loaded.name}: {long}", err=True)
    console = stdout_console()
    try:
        with budget(budget_s):
            with status(f"simulating {loaded.name}"):
                result: Any = run(loaded, seed) if events is None else _streamed(events, loaded, seed)
            if trace is not None:
                write(trace, result.trace(), ScenarioError, "--trace")
            if as_json:
                shown = json.dumps(result.as_json(), indent=2, allow_nan=False) + "\n"
            else:
                with console.capture() as capture:  # whole or not at all, since the budget may end it
                    show(console, result)
                shown = capture.get()
    except Exception as error:
        if machine := raised_by_machine(error):
            _show_raised(machine, as_json)
            sys.exit(VIOLATION)
        raise
    click.echo(shown, nl=False)
    sys.exit(exit_status(result, strict))


def _streamed(events: Path, scenario: Any, seed: int | None) -> Any:
    """Simulate with the journal going to a file."""
    from barrierlab.sim.checkpoint.streamed import run_streamed
    from barrierlab.sim.sweep.journal import EventsFile

    if not isinstance(scenario, Scenario):
        raise ScenarioError(f"--events is of the journal of a job, and {scenario.name} is none: leave it out")
    with EventsFile(events) as file:
        return run_streamed(scenario, seed, file.write)


def _show_raised(machine: str, as_json: bool) -> None:
    """Print that a machine of the system under test raised: there is no more of that run."""
    violation = {"invariant": RAISED, "reason": machine}
    if as_json:
        click.echo(json.dumps({"verdict": "broken", "violations": [violation]}, indent=2))
    else:
        click.echo(f"! {RAISED}: {machine}\nverdict: broken (1 violations)")


@contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with a text on a terminal; give what changes the text."""
    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield lambda text: None
        return
    with errors.status(text) as shown:
        yield shown.update
