"""The command `table`."""

from __future__ import annotations

import json

import click

from barrierlab.model.suites.tables import TABLES


@click.command("table")
@click.argument("name", metavar="NAME", type=click.Choice(list(TABLES)))
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def table_command(name: str, as_json: bool) -> None:
    """Print what the protocol NAME does in each situation, in Markdown: a checkpoint protocol, or control.

    Exactly one row applies to whatever happens at a task's inputs, or of control at a processor's upstreams; its
    actions are done in order.

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
