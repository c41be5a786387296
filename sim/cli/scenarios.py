"""The command `scenarios`."""

from __future__ import annotations

import json
import tomllib

import click
from rich.text import Text

from barrierlab.sim.core.status import stdout_console
from barrierlab.sim.scenario.load import SHIPPED, all_shipped, load


@click.command("scenarios")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def scenarios_command(as_json: bool) -> None:
    """List what is shipped: scenarios, with the parameters that --set takes, and sweeps over them.

    Example: barrierlab scenarios
    """
    sweeps = _sweeps()
    found = {name: load(name) for name in all_shipped()}
    if as_json:
        rows = {
            name: {"title": s.title, "topology": str(s.topology), "parameters": s.parameters}
            for name, s in found.items()
        }
        click.echo(json.dumps({"scenarios": rows, "sweeps": sweeps}, indent=2))
        return
    console = stdout_console()
    for name, scenario in found.items():
        console.print(Text.assemble((name, "bold"), f": {scenario.title}"))
        console.print(f"  {scenario.topology}", highlight=False)
        for parameter, text in scenario.parameters.items():
            console.print(f"  --set {parameter}=...  {text}", highlight=False)
    console.print(Text.assemble(("\nsweeps", "bold"), " (barrierlab sweep NAME):"))
    for name, question in sweeps.items():
        console.print(f"  {name}: {question}", highlight=False)


def _sweeps() -> dict[str, str]:
    """Return the question of each shipped sweep, without the packages of the extra that runs them."""
    texts = {file.name: file.read_text(encoding="utf-8") for file in (SHIPPED / "sweeps").iterdir() if file.is_file()}
    return {
        name.removesuffix(".toml"): " ".join(tomllib.loads(texts[name])["question"].split())
        for name in sorted(texts)
        if name.endswith(".toml")
    }
