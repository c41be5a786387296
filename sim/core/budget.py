"""How long a run may take: a budget of wall time, and an estimate before it begins."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
import networkx as nx

from barrierlab.sim.scenario.settings import Scenario

STEPS_PER_S = 100_000
"""About so many steps are simulated in a second on one core, the verdict included (`make bench` measures it)."""
LONG_S = 600.0
"""A run that takes longer is announced."""


class BudgetError(Exception):
    """The budget was used up before the verdict: a line that says so."""


class Seconds(click.ParamType):
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
"""So often a run is asked to end that has not ended: what an object's finaliser raises, Python drops."""


@contextmanager
def budget(seconds: float | None) -> Iterator[None]:
    """Raise BudgetError in the main thread once `seconds` of wall time have passed, whatever is being done then."""
    if seconds is None:
        yield
        return

    def stop(*_: object) -> None:
        raise BudgetError(f"--budget {seconds:g}s is used up, and nothing was judged: give more, or a shorter run")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def steps(scenario: Any) -> float:
    """Return about how many steps a run has, an event, watermark or barrier at a task being one; 0 where unknown.

    What operators make of events, and what is replayed after a crash, is not counted.
    """
    if not isinstance(scenario, Scenario):
        return 0.0
    until_s, topology = scenario.until_s, scenario.topology
    graph, per_s = topology.graph(), 0.0
    for name, source in scenario.sources.items():
        for task in topology.tasks_of(name):
            behind = nx.descendants(graph, task)
            operators = {topology.operator_of(each) for each in behind}
            per_s += source.rate_per_s * (1 + len(operators))
            per_s += (1 + len(behind)) / source.watermark_interval_s if source.watermark_interval_s else 0.0
    if scenario.checkpoint.interval_s:
        per_s += (len(topology.tasks) + len(topology.channels)) / scenario.checkpoint.interval_s
    per_s += sum(each.rate_per_s or (1 / each.every_s if each.every_s else 0.0) for each in scenario.faults)
    return per_s * until_s


def announcement(scenario: Any) -> str | None:
    """Return a line about a run that will take long; None of any other."""
    expected = steps(scenario)
    seconds = expected / STEPS_PER_S
    if seconds < LONG_S:
        return None
    return (
        f"about {expected:.0e} steps, at {STEPS_PER_S:,} a second some {_span(seconds)}; a shorter until_s, lower "
        "rates or longer intervals make fewer, --budget 60s ends it"
    )


def _span(seconds: float) -> str:
    for unit, size in (("years", 365 * 86_400.0), ("days", 86_400.0), ("hours", 3_600.0)):
        if seconds >= size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds / 60:.0f} minutes"
