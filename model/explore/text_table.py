"""A table as text: a row in each line, its cells between bars; an indented line goes on with the one before."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from textwrap import dedent
from typing import Any


def rows_of(text: str) -> Iterator[tuple[str, ...]]:
    """The cells of each row.

    >>> list(rows_of("a | 1\\n  + 2\\nb |"))
    [('a', '1 + 2'), ('b', '')]
    """
    for line in re.sub(r"\n\s+", " ", dedent(text).strip()).splitlines():
        yield tuple(cell.strip() for cell in line.split("|"))


def settings_of(cell: str) -> dict[str, Any]:
    """The values in a cell by their names, as the arguments of a call.

    >>> settings_of("events=2, marks=(1, 2)")
    {'events': 2, 'marks': (1, 2)}
    """
    call = ast.parse(f"dict({cell})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
