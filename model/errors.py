"""The base of all errors of input, which a command prints in one line."""

from __future__ import annotations


class InputError(ValueError):
    """Wrong input: its message is one line with what was given, what is allowed, and what to do."""


RAISED = (Exception, SystemExit)
"""Whatever code under test may raise: `sys.exit` in it must not end a check, least of all with the status of one that
holds."""
