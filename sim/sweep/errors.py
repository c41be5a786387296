"""What is wrong with a sweep, in one line: what came, what is allowed, what to do."""

from __future__ import annotations


class SweepError(ValueError):
    """A sweep that cannot be planned, run, continued or read. Its text is one line, which the command prints."""
