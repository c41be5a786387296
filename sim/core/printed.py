"""Tables and lines on a console, as every command prints them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.console import Console
from rich.table import Table


def table_of(names: Iterable[str], left: Collection[str] = (), title: str | None = None) -> Table:
    """Return a table with these columns: numbers, but for those on the left, which are words."""
    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name, justify="left" if name in left else "right")
    return table


def say(console: Console, *lines: str) -> None:
    """Print lines as they are, however long."""
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
