"""Errors of a sweep, in one line: what came, what is allowed, what to do."""

from __future__ import annotations

from barrierlab.model.errors import InputError


class SweepError(InputError):
    """A sweep that cannot be planned, run, continued or read. Its text is one line, which the command prints."""
