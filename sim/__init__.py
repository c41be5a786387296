"""Timed runs: scenarios become journals, journals become verdicts and checkpoint statistics.

>>> from barrierlab.sim import load, run
>>> result = run(load("diamond"), seed=1)
>>> result.verdict
'holds'
"""

from barrierlab.sim.checkpoint.result import Result, run
from barrierlab.sim.scenario.load import ScenarioError, load, shipped
from barrierlab.sim.scenario.settings import Scenario

__all__ = ["Result", "Scenario", "ScenarioError", "load", "run", "shipped"]
