"""A sweep of joins: planned, run and stored as any other, and answered without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sim.sweep.joins import answer, budget, cells_of
from sim.sweep.plan import load_plan
from tests.sim.support import barrierlab

SMALL = """
question = "Which barrier, and what lateness budget?"
[[part]]
name = "small"
scenario = "camera_imu_lidar"
seeds = [1]
set = { until_s = 6.0, jitter = "none" }
list = [
    { barrier = "latest", lateness_s = 0.0 },
    { barrier = "timestamp", lateness_s = 0.0 },
    { barrier = "timestamp", lateness_s = 0.1 },
    { barrier = "timestamp", lateness_s = 0.15 },
]
"""


def test_a_sweep_of_joins_answers_its_question(capfd: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """A hundred runs would end in numbers, and nobody would know which barrier to take."""
    file, out = tmp_path / "small.toml", tmp_path / "out"
    file.write_text(SMALL)
    status, stdout, _ = barrierlab(capfd, "sweep", str(file), "--out", str(out), "--master", "processes[2]")
    assert status == 0
    assert "timestamp with a lateness of 100 ms: 99 % wait at most 4" in stdout
    assert "for a skew of at most 10" in stdout
    assert "costs no alignment; latest if waiting is worse than skew" in stdout
    assert stdout.splitlines()[-2] == "0 violations in 4 runs"
    status, again, _ = barrierlab(capfd, "analyse", str(out))
    assert again.splitlines()[-1] == "0 violations in 4 runs"
    assert "timestamp with a lateness of 100 ms" in again
    status, stdout, _ = barrierlab(capfd, "analyse", str(out), "--json")
    found = json.loads(stdout)
    assert [(c["barrier"], c["lateness_ms"]) for c in found["cells"]] == [
        ("latest", None),
        ("timestamp", 0.0),
        ("timestamp", 100.0),
        ("timestamp", 150.0),
    ]
    status, _, err = barrierlab(capfd, "report", str(out))
    assert status == 2
    assert "is a sweep of joins, which has no report" in err


def test_the_shipped_sweep_asks_over_lateness_jitter_and_rate() -> None:
    """The question of the scenario would not be the one that is asked."""
    plan = load_plan("which_join")
    assert plan.question == "Which barrier, and what lateness budget?"
    names = {axis.name for part in plan.parts for axis in part.axes}
    assert {"jitter", "lidar_rate_per_s", "barrier", "lateness_s"} <= names
    assert len(plan.runs) == 96


def run_of(number: int, barrier: str, lateness: float | None, skew: float, share: float = 1.0, **also: Any) -> Any:
    """A row of `joins`, and the parameters of its run."""
    row = {"run_id": str(number), "barrier": barrier, "lateness_ms": lateness, "wanted": 100, "complete": 100 * share}
    times = dict.fromkeys(["wait_p99_ms", "age_p99_ms", "wait_mean_ms", "skew_mean_ms"], 50.0 - (lateness or 0.0) / 10)
    return row | times | {"skew_p99_ms": skew}, {"barrier": barrier, "lateness_s": lateness, **also}


def cells(*runs: Any) -> list[dict[str, Any]]:
    """The cells of these runs."""
    return cells_of([row for row, _ in runs], {row["run_id"]: given for row, given in runs})


def test_the_budget_is_the_largest_lateness_that_costs_nothing() -> None:
    """It would be the one that waits least, whatever it costs."""
    runs = [
        run_of(n, "timestamp", late, skew)
        for n, (late, skew) in enumerate([(0, 100), (50, 101), (100, 104), (150, 140)])
    ]
    best = budget(cells(*runs))
    assert best is not None
    assert best["lateness_ms"] == 100
    assert budget(cells(run_of(1, "latest", None, 5))) is None
    assert budget(cells(run_of(1, "timestamp", 0, 5, share=0.9))) is None


def test_what_loses_outputs_is_not_recommended() -> None:
    """A barrier that puts nothing out waits least."""
    runs = [run_of(1, "sequence", None, 1, share=0.5), run_of(2, "latest", None, 9), run_of(3, "timestamp", 0, 4)]
    (sentence,) = answer(cells(*runs))
    assert sentence.startswith("all: timestamp with a lateness of 0 ms")
    assert sentence.endswith("not sequence: fewer than 99% of the outputs come out complete")
    (exact,) = answer(cells(run_of(1, "sequence", None, 1), run_of(2, "latest", None, 9)))
    assert exact.startswith("all: sequence joins them exactly: 99 % wait at most 50 ms for a skew of at most 1 ms")


def test_streams_are_told_apart_by_what_varies() -> None:
    """Cells of different streams would be averaged, or each have a long name that says nothing."""
    runs = [run_of(n, "latest", None, 5.0 + n, jitter=j, until_s=9) for n, j in enumerate(["low", "high", "low"])]
    found = cells(*runs)
    assert [(c["streams"], c["runs"], c["skew_p99_ms"]) for c in found] == [
        ("jitter=high", 1, 6.0),
        ("jitter=low", 2, 6.0),
    ]
    none = dict(run_of(1, "sequence", None, 0.0)[0], skew_p99_ms=None, wanted=0, complete=0)
    (empty,) = cells_of([none], {"1": {}})
    assert (empty["skew_p99_ms"], empty["complete_share"]) == (None, 0.0)
