"""The choice of a name on the command line that may have had another name before."""

from __future__ import annotations

from typing import Any

import click

from barrierlab.model.renamed import renamed


class KnownName(click.Choice[str]):
    """One of some names; an older name of one is refused with that of today."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail in one line."""
        if new := renamed(str(value), self.choices):
            self.fail(f"{value!r} is called {new!r} now", param, ctx)
        return super().convert(value, param, ctx)
