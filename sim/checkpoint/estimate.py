"""An estimate of how long a run will take, and of its memory, before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

from barrierlab.sim.scenario.settings import Scenario

if TYPE_CHECKING:
    from barrierlab.sim.scenario.load import AnyScenario

STEPS_PER_S = 100_000
"""About so many steps are simulated in a second on one core, the verdict included (`make bench` measures it)."""
BYTES_PER_STEP = 400
"""About so much of the memory does a step's part of the journal take (195 to 630 bytes; more where little happens)."""
LONG_S = 60.0
"""A run that takes longer is announced."""


def steps(scenario: AnyScenario) -> float:
    """Return about how many steps a run has, an event, watermark or barrier at a task being one.

    What operators make of events, and what is replayed after a crash, is not counted.
    """
    if not isinstance(scenario, Scenario):
        return scenario.steps
    until_s, topology = scenario.until_s, scenario.topology
    graph, events, per_s = topology.graph(), 0.0, 0.0
    for name, source in scenario.sources.items():
        for task in topology.tasks_of(name):
            behind = nx.descendants(graph, task)
            operators = {topology.operator_of(each) for each in behind}
            events += source.emitted_in(until_s) * (1 + len(operators))
            per_s += (1 + len(behind)) / source.watermark_interval_s if source.watermark_interval_s else 0.0
    if scenario.checkpoint.interval_s:
        per_s += (len(topology.tasks) + len(topology.channels)) / scenario.checkpoint.interval_s
    per_s += sum(each.rate_per_s or (1 / each.every_s if each.every_s else 0.0) for each in scenario.faults)
    return events + per_s * until_s


def announcement(scenario: AnyScenario) -> str | None:
    """Return a line about a run that will take long; None of any other."""
    expected = steps(scenario)
    seconds = expected / STEPS_PER_S
    if seconds < LONG_S:
        return None
    kept = " without --events FILE" if isinstance(scenario, Scenario) else ""
    return (
        f"about {expected:.0e} steps, at {STEPS_PER_S:,} a second some {_span(seconds)}, and "
        f"{expected * BYTES_PER_STEP / 1e9:,.0f} GB of memory{kept}; "
        "a shorter until_s, lower rates or longer intervals make fewer, --budget 60s ends it"
    )


def _span(seconds: float) -> str:
    for unit, size in (("years", 365 * 86_400.0), ("days", 86_400.0), ("hours", 3_600.0)):
        if seconds >= size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.0f} s" if seconds < 120.0 else f"{seconds / 60:.0f} minutes"
