"""The command `scenarios`."""

from __future__ import annotations

import json

import click

from barrierlab.sim.core.status import stdout_console
from barrierlab.sim.scenario.load import all_shipped, load


@click.command("scenarios")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def scenarios_command(as_json: bool) -> None:
    """List what is shipped: scenarios, with the parameters that --set takes.

    Example: barrierlab scenarios
    """
    found = {name: load(name) for name in all_shipped()}
    if as_json:
        rows = {
            name: {"title": s.title, "topology": str(s.topology), "parameters": s.parameters}
            for name, s in found.items()
        }
        click.echo(json.dumps({"scenarios": rows}, indent=2))
        return
    console = stdout_console()
    for name, scenario in found.items():
        console.print(f"[bold]{name}[/bold]: {scenario.title}", highlight=False)
        console.print(f"  {scenario.topology}", highlight=False, markup=False)
        for parameter, text in scenario.parameters.items():
            console.print(f"  --set {parameter}=...  {text}", highlight=False, markup=False)
