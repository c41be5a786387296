"""The options that several commands have, and the choice of a name that may have had another name before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from barrierlab.model.renamed import renamed
from barrierlab.sim.core.budget import SECONDS

FILE = click.Path(dir_okay=False, path_type=Path)
Option = Callable[[Callable[..., Any]], Callable[..., Any]]
GivenSettings = dict[str, Any]


def settings_option(of: str = "A parameter or key of the scenario; repeatable.") -> Option:
    """Return the option ``--set KEY=VALUE``, whose value is a mapping."""
    read: Any = lambda ctx, param, pairs: read_settings(pairs)  # noqa: E731
    return click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", callback=read, help=of)


def read_settings(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return KEY=VALUE pairs as a mapping; a value is TOML where it can be, else text.

    Raises
    ------
    ScenarioError
        If a pair has no '='.
    """
    import tomllib

    from barrierlab.sim.scenario.file import ScenarioError

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


def budget_option(like: str = "60s") -> Option:
    """``--budget TIME``, behind which a command ends undecided."""
    text = f"Seconds of wall time, such as {like}, then status 3; no limit by default."
    return click.option("--budget", "budget_s", type=SECONDS, help=text)


class KnownName(click.Choice[str]):
    """One of some names; an older name of one is refused with that of today."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail in one line."""
        if new := renamed(str(value), self.choices):
            self.fail(f"{value!r} is called {new!r} now", param, ctx)
        return super().convert(value, param, ctx)
