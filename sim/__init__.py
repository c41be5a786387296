"""Timed runs: scenarios become journals, journals become verdicts and checkpoint statistics.

>>> from sim import load, run
>>> result = run(load("diamond"), seed=1)
>>> result.verdict
'holds'
"""

from sim.result import Result, run
from sim.scenario import ScenarioError, load, shipped
from sim.settings import Scenario

__all__ = ["Result", "Scenario", "ScenarioError", "load", "run", "shipped"]
