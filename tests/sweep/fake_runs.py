"""Runs that cost nothing, for the tests of what happens around runs; imported by workers too."""

from __future__ import annotations

import os
from pathlib import Path

from barrierlab.sim.sweep.plan import plan_of
from barrierlab.sim.sweep.tables import TABLES

SWEEP = """
title = "Two ways <to> ask"
question = "What does a rate change?"

[[part]]
name = "diamond"
scenario = "diamond"
seeds = { first = 1, last = 5 }
grid = { "source.source.rate_per_s" = [1.0, 2.0, 5.0], warmup_s = [0.0, 1.0] }

[[part]]
name = "drawn"
scenario = "diamond"
seeds = [1, 2]
set = { until_s = 7.0 }
latin_hypercube = { samples = 10, axes = { "source.source.rate_per_s" = { low = 1.0, high = 10.0 } } }

[[part]]
name = "bad"
scenario = "diamond"
seeds = [1]
set = { "source.source.rate_per_s" = 13.0 }

[[part]]
measured = true
seeds = [1]
"""


def compute(run):
    """Two checkpoints whose durations follow from seed and parameters; `x` = 13 raises, `x` = 99 never ends."""
    if log := os.environ.get("COMPUTED"):
        with open(log, "a") as file:
            file.write(f"{run.run_id}\n")
    x = run.parameters.get("source.source.rate_per_s", 1.0)
    if x == 13.0:
        raise ZeroDivisionError("thirteen")
    if x == 99.0:
        with open(os.environ["NEVER"]):  # a pipe that nobody writes
            pass
    durations = [10.0 * x + run.seed, 20.0 * x + run.seed]
    return {
        "runs": [
            {
                "verdict": "holds",
                "violations": 0,
                "vacuous": "WM REC",
                "checkpoints_completed": 2,
                "journal_digest": str(x),
            }
        ],
        "checkpoints": [
            {
                "checkpoint_id": number,
                "status": "COMPLETED",
                "steady": True,
                "end_to_end_duration_ms": duration,
                "path_start_delay_ms": 0.5 * duration,
                "path_alignment_ms": 0.25 * duration,
                "path_sync_ms": 0.125 * duration,
                "path_rest_ms": 0.125 * duration,
            }
            for number, duration in enumerate(durations, 1)
        ],
        "tasks": [
            {"checkpoint_id": number, "operator": "sink", "subtask": 0, "sync_ms": 0.125 * duration, "steady": True}
            for number, duration in enumerate(durations, 1)
        ],
        "violations": [],
    }


def plan_with(*rates):
    """A plan of one run a rate; `compute` reads the rate as what to do."""
    axis = f'"source.source.rate_per_s" = {list(map(float, rates))}'
    return plan_of(f'[[part]]\nscenario = "diamond"\nseeds = [1]\ngrid = {{ {axis} }}', "rates", Path("rates.toml"))


def contents(store):
    """Every file of results, by its name."""
    return {f"{table}/{Path(f).name}": Path(f).read_bytes() for table in TABLES for f in store.files(table)}
