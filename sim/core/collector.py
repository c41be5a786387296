"""Python's collector of garbage, paused where what is made stays alive."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Look for no garbage meanwhile: a journal, or a table of states, only grows until the run ends, and walking it
    again and again costs up to a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
