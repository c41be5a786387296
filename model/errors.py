"""What a person gave that cannot be used."""

from __future__ import annotations


class InputError(ValueError):
    """Wrong input: its message is one line with what was given, what is allowed, and what to do."""
