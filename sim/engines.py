"""Which engine runs a scenario: that of a table which it has (`sim.scenario.ENGINES`), or that of checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rich.console import Console

from sim.scenario import ENGINES, read_toml, shipped


@dataclass(frozen=True)
class Engine:
    """What the command line asks of an engine; a module of `ENGINES` has the same three names.

    Attributes
    ----------
    load : callable
        From a name and settings, a scenario with `name`, `title`, `topology` and `parameters`.
    run : callable
        From a scenario and a seed or None, a result with `verdict`, `violations`, `trace()` and `as_json()`.
    show : callable
        Prints a result for people.
    """

    load: Callable[[str, Mapping[str, Any]], Any]
    run: Callable[[Any, int | None], Any]
    show: Callable[[Console, Any], None]


def engine_of(name: str, otherwise: Engine) -> Engine:
    """The engine of the scenario called `name`.

    Raises
    ------
    ScenarioError
        If there is no such scenario.
    """
    data = read_toml(name)[2]
    for table in ENGINES:
        if table in data:
            return engine_for(table)
    return otherwise


def engine_for(table: str) -> Engine:
    """The engine of scenarios with this table."""
    module = import_module(ENGINES[table])
    return Engine(module.load, module.run, module.show)


def all_shipped(otherwise: Engine) -> dict[str, Any]:
    """Every scenario that comes with the package, by name."""
    found = {name: otherwise.load(name, {}) for name in shipped()}
    for table in ENGINES:
        found |= {name: engine_for(table).load(name, {}) for name in shipped(table)}
    return found
