"""The command `export`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

import click

from barrierlab.model.checkpoint.check import WorldScope, limits, properties
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import World
from barrierlab.model.errors import InputError
from barrierlab.model.explore.checker import explore
from barrierlab.model.render.promela import commands, promela, refusal
from barrierlab.model.suites.standard import SCOPES
from barrierlab.sim.cli.choices import FILE
from barrierlab.sim.core.files import write

TARGETS = ("promela",)


class ExportError(InputError):
    """A scope that is not there, or that cannot be exported."""


@click.command("export")
@click.argument("scope", required=False, metavar="SCOPE")
@click.option("--to", type=click.Choice(TARGETS), default=TARGETS[0], show_default=True, help="For which checker.")
@click.option("-o", "--out", type=FILE, help="Write the model there.")
@click.option("--count", is_flag=True, help="Explore the scope here, too, without reduction, and say how many states.")
@click.option("--list", "listed", is_flag=True, help="List the scopes that can be exported.")
def export_command(scope: str | None, to: str, out: Path | None, count: bool, listed: bool) -> None:
    """Write one SCOPE as a model for another checker, which counts its states and judges it by itself.

    SCOPE is the name of one dataflow, as check --scope takes it. The model goes to stdout, or to --out; the command
    lines that run Spin on it go to stderr.

    Example: barrierlab export "aligned: a->s b->s; events 1, checkpoints 1; abort" --out scope.pml
    """
    if listed:
        for name in exportable():
            click.echo(name)
        return
    if scope is None:
        raise ExportError("export needs SCOPE, the name of one scope; barrierlab export --list has those that can be")
    bounds = _bounds_of(scope)
    model = promela(bounds, scope)
    if out is None:
        click.echo(model, nl=False)
    else:
        write(out, model, ExportError, "--out")
    for line in commands(shlex.quote(str(out)) if out else "FILE"):
        click.echo(line, err=True)
    if count:
        world = World(bounds)
        result = explore(world, properties(world), limits=limits(None))
        click.echo(f"here: {result.counts.states} states, {result.verdict}", err=True)


def exportable() -> dict[str, Bounds]:
    """Return the scopes that can be exported, by name, each once."""
    return {scope.name: scope.bounds for scope in _dataflows() if refusal(scope.bounds) is None}


def _dataflows() -> Iterator[WorldScope]:
    for scopes in SCOPES.values():
        yield from (scope for scope in scopes() if isinstance(scope, WorldScope))


def _bounds_of(name: str) -> Bounds:
    found = exportable()
    if name in found:
        return found[name]
    hint = "barrierlab export --list has those that can be"
    for scope in _dataflows():
        if scope.name == name:
            raise ExportError(f"{name!r} cannot be exported: {refusal(scope.bounds)}; {hint}")
    if any(name == scope.name for scopes in SCOPES.values() for scope in scopes()):
        raise ExportError(f"{name!r} cannot be exported: it is no dataflow with checkpoints; {hint}")
    near = get_close_matches(name, found, n=1)
    raise ExportError(f"there is no scope {name!r}; {f'did you mean {near[0]!r}? ' if near else ''}{hint}")
