"""The command `barrierlab`.

Exit status: 0 the invariants hold; 1 a violation was found; 2 the input is wrong (one line on stderr); 3 undecided.
With `--json`, stdout is one JSON object and nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from model.tables import TABLES
from sim.engines import Engine, all_shipped, engine_of
from sim.joins import JoinResult
from sim.result import Result, run
from sim.scenario import ScenarioError, load, shipped_joins
from sim.show import ShowError, show_command
from sim.sweep.commands import COMMANDS
from sim.sweep.errors import SweepError

EXIT = {"holds": 0, "broken": 1, "undecided": 3}


class Commands(click.Group):
    """The commands, in the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="barrierlab")
def cli() -> None:
    """Prove, break and predict the checkpoints of stream processors.

    Example: barrierlab run flink_chain --set level=sat_4ms
    """


def read_settings(pairs: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE pairs as a mapping; a value is TOML where it can be, else text.

    Raises
    ------
    ScenarioError
        If a pair has no '='.
    """
    import tomllib

    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ScenarioError(f"--set {pair!r}: allowed: KEY=VALUE, such as --set level=sat_4ms")
        try:
            settings[key.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[key.strip()] = value.strip()
    return settings


@cli.command("run")
@click.argument("scenario")
@click.option("--seed", type=click.IntRange(min=0), help="Random seed; the scenario's own by default.")
@click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="A parameter or key of the scenario; repeatable."
)
@click.option("--trace", type=click.Path(dir_okay=False, path_type=Path), help="Write the journal there, as text.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def run_command(scenario: str, seed: int | None, pairs: tuple[str, ...], trace: Path | None, as_json: bool) -> None:
    """Simulate SCENARIO once: its checkpoints, control signals or joined outputs, and the verdict of the invariants.

    SCENARIO is the name of a shipped one (barrierlab scenarios) or a TOML file.

    Example: barrierlab run flink_chain --set level=sat_4ms --seed 1
    """
    engine = engine_of(scenario, CHECKPOINTS)
    loaded = engine.load(scenario, read_settings(pairs))
    result = _with_status(f"simulating {loaded.name}", lambda: engine.run(loaded, seed))
    if trace is not None:
        try:
            trace.write_text(result.trace(), encoding="utf-8")
        except OSError as error:
            raise ScenarioError(
                f"--trace {trace}: cannot be written: {error.strerror}; give a file in a folder that exists"
            ) from error
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2, allow_nan=False))
    else:
        engine.show(Console(width=None if sys.stdout.isatty() else 120), result)
    sys.exit(EXIT[result.verdict])


def _with_status(text: str, work: Any) -> Any:
    """Do `work`, with a spinner on a terminal."""
    errors = Console(stderr=True)
    if not errors.is_terminal:
        return work()
    with errors.status(text):
        return work()


def _show(console: Console, result: Result) -> None:
    table = Table(title=f"{result.scenario.title} (seed {result.seed})", title_justify="left")
    for name in (
        "checkpoint",
        "status",
        "trigger s",
        "end to end ms",
        "start delay ms",
        "alignment ms",
        "processed B",
        "slowest task",
    ):
        table.add_column(name, justify="left" if name in ("status", "slowest task") else "right")
    for row in result.checkpoint_rows():
        table.add_row(
            str(row["checkpoint_id"]),
            row["status"] if row["failure_reason"] is None else f"{row['status']}: {row['failure_reason']}",
            f"{row['trigger_timestamp_ms'] / 1000:.3f}",
            _ms(row["end_to_end_duration_ms"]),
            _ms(row["start_delay_max_ms"]),
            _ms(row["alignment_max_ms"]),
            str(row["processed_bytes"]),
            row["critical_task"] or "",
        )
    console.print(table)
    if result.recovery_rows():
        _show_recoveries(console, result)
    row = result.run_row()
    console.print(
        f"{row['sim_duration_s']:.1f} s simulated; {row['events_in']} events emitted, {row['events_out']} at sinks "
        f"({row['throughput_per_s']:.1f} a second); busiest task: {row['bottleneck']}; "
        f"most back-pressured: {100 * row['backpressure_max']:.0f} % of the time",
        highlight=False,
    )
    _show_verdict(console, result)


def _show_verdict(console: Console, result: Result | JoinResult) -> None:
    for violation in result.violations:
        console.print(f"! {violation.invariant}: {violation.reason}", highlight=False)
    console.print(f"verdict: {result.verdict} ({len(result.violations)} violations)", highlight=False)


def _show_recoveries(console: Console, result: Result) -> None:
    table = Table(title="Failures", title_justify="left")
    for name in (
        "cause",
        "failed s",
        "noticed s",
        "from checkpoint",
        "runs again s",
        "down ms",
        "replayed",
        "catch-up ms",
    ):
        table.add_column(name, justify="left" if name == "cause" else "right")
    for row in result.recovery_rows():
        table.add_row(
            row["cause"],
            _s(row["failed_at_ms"]),
            _s(row["detected_ms"]),
            "" if row["checkpoint_id"] is None else str(row["checkpoint_id"] or "none: begin"),
            _s(row["restored_ms"]),
            _ms(row["downtime_ms"]),
            str(row["events_replayed"]),
            _ms(row["catch_up_ms"]),
        )
    console.print(table)
    run = result.run_row()
    console.print(
        f"{run['events_replayed']} events replayed; {run['duplicates']} written to the outside more than once",
        highlight=False,
    )


def _s(value_ms: float | None) -> str:
    return "" if value_ms is None else f"{value_ms / 1000:.3f}"


def _show_join(console: Console, result: JoinResult) -> None:
    row = result.join_rows()[0]
    table = Table(title=f"{result.scenario.title} (seed {result.seed}): {row['barrier']} join", title_justify="left")
    table.add_column("of each output")
    for name in ("mean ms", "median ms", "99 % ms"):
        table.add_column(name, justify="right")
    for name, words in (
        ("wait", "waited since it was wanted"),
        ("age", "age of its oldest frame"),
        ("skew", "between its oldest and newest frame"),
    ):
        table.add_row(words, *(_ms(row[f"{name}_{which}_ms"]) for which in ("mean", "p50", "p99")))
    console.print(table)
    skips = ", ".join(f"{count} {reason}" for reason, count in result.skip_counts().items()) or "none"
    console.print(
        f"{row['outputs']} outputs ({row['output_rate_per_s']:.1f} a second), {row['complete']} of them complete, of "
        f"{row['wanted']} wanted; skipped: {skips}",
        highlight=False,
    )
    _show_verdict(console, result)


def _show_either(console: Console, result: Result | JoinResult) -> None:
    if isinstance(result, JoinResult):
        _show_join(console, result)
    else:
        _show(console, result)


CHECKPOINTS = Engine(load, run, _show_either)


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


@cli.command("scenarios")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def scenarios_command(as_json: bool) -> None:
    """List what is shipped: scenarios, with the parameters that --set takes.

    Example: barrierlab scenarios
    """
    found = all_shipped(CHECKPOINTS) | {name: load(name) for name in shipped_joins()}
    if as_json:
        rows = {
            name: {"title": s.title, "topology": str(s.topology), "parameters": s.parameters}
            for name, s in found.items()
        }
        click.echo(json.dumps({"scenarios": rows}, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else 120)
    for name, scenario in found.items():
        console.print(f"[bold]{name}[/bold]: {scenario.title}", highlight=False)
        console.print(f"  {scenario.topology}", highlight=False, markup=False)
        for parameter, text in scenario.parameters.items():
            console.print(f"  --set {parameter}=...  {text}", highlight=False, markup=False)


@cli.command("table")
@click.argument("name", metavar="NAME", type=click.Choice(list(TABLES)))
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def table_command(name: str, as_json: bool) -> None:
    """Print what the protocol NAME does in each situation, in Markdown: aligned, unaligned or fallback.

    Exactly one row applies to whatever happens at a task's inputs; its actions are done in order.

    Example: barrierlab table aligned
    """
    if not as_json:
        click.echo("\n".join(TABLES[name].lines()))
        return
    rows = [
        {"name": row.name, "when": [guard.__name__ for guard in row.when], "then": [each.__name__ for each in row.then]}
        for row in TABLES[name].rows
    ]
    click.echo(json.dumps({"table": name, "rows": rows}, indent=2))


for command in (*COMMANDS, show_command):
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command; a wrong input is one line on stderr and status 2."""
    try:
        cli.main(args=arguments, standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        hint = f" ({error.ctx.command_path} --help)" if error.ctx is not None else ""
        click.echo(f"barrierlab: {error.format_message()}{hint}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("barrierlab: interrupted", err=True)
        sys.exit(130)
    except (ScenarioError, SweepError, ShowError) as error:
        click.echo(f"barrierlab: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
