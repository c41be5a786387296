"""Timed runs: scenarios become journals, journals become verdicts and checkpoint statistics.

>>> from barrierlab.sim import load, run
>>> result = run(load("diamond"), seed=1)
>>> result.verdict
'holds'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barrierlab.sim.checkpoint.result import Result, run
    from barrierlab.sim.scenario.file import ScenarioError
    from barrierlab.sim.scenario.load import load, shipped
    from barrierlab.sim.scenario.settings import Scenario

__all__ = ["Result", "Scenario", "ScenarioError", "load", "run", "shipped"]
_HOME = {
    "Result": "barrierlab.sim.checkpoint.result",
    "Scenario": "barrierlab.sim.scenario.settings",
    "ScenarioError": "barrierlab.sim.scenario.file",
    "load": "barrierlab.sim.scenario.load",
    "run": "barrierlab.sim.checkpoint.result",
    "shipped": "barrierlab.sim.scenario.load",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that a module of `sim` which needs no simulator starts without it."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
