"""A table as text: a row in each line, its cells between bars; an indented line goes on with the one before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent


def rows_of(text: str) -> Iterator[tuple[str, ...]]:
    """The cells of each row.

    >>> list(rows_of("a | 1\\n  + 2\\nb |"))
    [('a', '1 + 2'), ('b', '')]
    """
    for line in re.sub(r"\n\s+", " ", dedent(text).strip()).splitlines():
        yield tuple(cell.strip() for cell in line.split("|"))
