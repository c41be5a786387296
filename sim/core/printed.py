"""Tables and lines on a console, as every command prints them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


def table_of(
    names: Iterable[str], left: Collection[str] = (), title: str | None = None, is_wide: bool = False
) -> Table:
    """Return a table with these columns: numbers, but for those on the left, which are words.

    A wide one has no lines between its columns, so that words at its end have room.
    """
    table = Table(title=title, title_justify="left")
    if is_wide:
        table.box, table.padding, table.pad_edge = SIMPLE_HEAD, (0, 1, 0, 0), False
    for name in names:
        table.add_column(name, justify="left" if name in left else "right")
    return table


def say(console: Console, *lines: str) -> None:
    """Print lines as they are, however long."""
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
