"""The base of all errors of input, which a command prints in one line."""

from __future__ import annotations


class InputError(ValueError):
    """Wrong input: its message is one line with what was given, what is allowed, and what to do."""
