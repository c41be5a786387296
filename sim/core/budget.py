"""A budget of wall time for a command."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import click


class BudgetError(Exception):
    """The budget was used up before the verdict: a line that says so."""


class Seconds(click.ParamType):  # type: ignore[type-arg]  # click 8.1 takes none
    """Seconds of wall time: ``60``, ``60s``, ``5m``, ``1h``."""

    name = "SECONDS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds as a float above 0."""
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", value.strip())
        seconds = float(found[1]) * {"m": 60, "h": 3600}.get(found[2], 1) if found else 0.0
        if not 0 < seconds < 1e9:
            self.fail(f"{value!r}: allowed: a time above 0, such as 60s, 5m or 1h", param, ctx)
        return seconds


SECONDS = Seconds()
AGAIN_S = 1.0
"""So often a run is asked to end that has not ended: code of the run may drop what is raised."""
_SOON_S = 1e-3
"""So soon it is asked again where Python itself dropped it: in a finaliser, or in the callback of a weak reference."""


@contextmanager
def budget(seconds: float | None) -> Iterator[None]:
    """Raise BudgetError in the main thread once `seconds` of wall time have passed, whatever is being done then."""
    if seconds is None:
        yield
        return

    def stop(*_: object) -> None:
        raise BudgetError(f"--budget {seconds:g}s is used up, and nothing was judged: give more, or a shorter run")

    def dropped(what: sys.UnraisableHookArgs, /) -> None:
        if what.exc_type is BudgetError:
            signal.setitimer(signal.ITIMER_REAL, _SOON_S, AGAIN_S)
        else:
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, dropped
    before, begun_s = signal.signal(signal.SIGALRM, stop), monotonic()
    left_s, every_s = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook
        if left_s:  # an alarm of the caller's own; it may be due by now
            signal.setitimer(signal.ITIMER_REAL, max(left_s - (monotonic() - begun_s), 1e-6), every_s)
