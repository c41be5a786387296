"""What is wrong with a sweep, in one line: what came, what is allowed, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SweepError(ValueError):
    """A sweep that cannot be planned, run, continued or read. Its text is one line, which the command prints."""


def suggestion(word: object, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name nearest to `word`, or nothing.

    >>> suggestion("sed", ["seeds", "grid"])
    "; did you mean 'seeds'?"
    """
    near = difflib.get_close_matches(str(word), list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
