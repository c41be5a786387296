"""The command `table`."""

from __future__ import annotations

import json

import click

from barrierlab.model.suites.states import edges, mermaid, page, states_of_rows
from barrierlab.model.suites.tables import TABLES
from barrierlab.sim.cli.choices import KnownName


@click.command("table")
@click.argument("name", metavar="NAME", type=KnownName(list(TABLES)))
@click.option(
    "--format",
    "kind",
    type=click.Choice(["markdown", "mermaid"]),
    default="markdown",
    show_default=True,
    help="A page with theory and table, or a state diagram.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def table_command(name: str, kind: str, as_json: bool) -> None:
    """Print what the protocol NAME does in each situation: a checkpoint protocol, or control.

    Exactly one row applies to whatever happens at a task's inputs, or of control at a processor's upstreams; its
    actions are done in order. The states in which a row applies are those that the explorer has seen.

    Example: barrierlab table aligned
    """
    if not as_json:
        click.echo("\n".join(mermaid(name) if kind == "mermaid" else page(name)))
        return
    states = states_of_rows(name)
    rows = [
        {
            "name": row.name,
            "states": states[row.name].split(", "),
            "when": [guard.__name__ for guard in row.when],
            "then": [each.__name__ for each in row.then],
        }
        for row in TABLES[name].rows
    ]
    found = {"table": name, "rows": rows, "edges": [edge._asdict() for edge in edges(name)]}
    click.echo(json.dumps(found, indent=2))
