"""Each shipped scenario holds, and its journals can be written, read and judged again."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from barrierlab.model.checkpoint.trace import judged, read, topology_of
from barrierlab.sim import load, run, shipped
from barrierlab.sim.scenario.load import SHIPPED
from tests.sim.support import SKEWED, scenario, with_changes

SMALL: dict[str, dict[str, Any]] = {
    "diamond": {},
    "skewed_join": {"until_s": 2.5, "warmup_s": 0.0},
    "crash_and_recover": {},
    "tracked": {},
    "store_outage": {},
    "random_crashes": {"until_s": 40.0},
    "backlog": {"until_s": 24.0},
    "nexmark_q3": {"until_s": 5.0, "warmup_s": 0.0},
    "nexmark_q8": {"until_s": 5.0, "warmup_s": 0.0},
    "shuffle_128": {"ways": 8, "until_s": 2.5, "warmup_s": 0.0},
}
SHORT = {"until_s": 2.5, "warmup_s": 0.0}


def _each_choice(name: str) -> list[dict[str, Any]]:
    """Settings in which every choice of every parameter comes at least once."""
    parameters = tomllib.loads((SHIPPED / f"{name}.toml").read_text()).get("parameters", {})
    own = {key: list(table["choices"]) for key, table in parameters.items() if "choices" in table}
    rows = max((len(choices) for choices in own.values()), default=1)
    wheels = {key: itertools.cycle(choices) for key, choices in own.items()}
    return [{key: next(wheel) for key, wheel in wheels.items()} for _ in range(rows)]


CASES = [(name, settings) for name in shipped() for settings in _each_choice(name)]


@pytest.mark.parametrize(
    ("name", "settings"), CASES, ids=lambda case: case if isinstance(case, str) else "-".join(map(str, case.values()))
)
def test_a_shipped_scenario_holds(name: str, settings: dict[str, Any]) -> None:
    """A newcomer's first run would be broken, or take no checkpoint at all."""
    # until_s of the file, or of a choice in it, is long: what is set beside the parameters comes last
    result = run(load(name, {**settings, **SMALL.get(name, SHORT)}), seed=2)
    assert result.verdict == "holds", result.violations
    row = result.run_row()
    assert row["checkpoints_completed"] >= 1
    assert row["events_out"] > 0


def _said(value: Any) -> Any:
    """As a trace says it: an event by its name, also within a transaction."""
    return tuple(map(_said, value)) if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (at % 3 > 0 or name == "backlog"))
        for at, name in enumerate(shipped())
    ],
)
def test_its_journal_is_read_back_and_judged_the_same(name: str) -> None:
    """A trace that someone sends would say something else than the run that it is of."""
    result = run(load(name, SMALL.get(name, SHORT)), seed=2)
    text = result.trace()
    head, entries = read(text)
    assert [tuple(map(_said, e)) for e in entries] == [tuple(map(_said, e)) for e in result.entries]
    assert entries == result.entries
    assert head["scenario"] == name
    assert head["seed"] == "2"
    assert topology_of(head).channels == result.scenario.topology.channels
    again = judged(text)
    assert again.verdict == result.verdict == "holds"
    assert again.violations == ()


def test_a_broken_journal_is_judged_broken_from_its_text() -> None:
    """A trace could lose on the way what is wrong with the run."""
    text = run(load("diamond", {"until_s": 5.0}), seed=2).trace()
    lines = text.splitlines()
    place = next(i for i, line in enumerate(lines) if " meet deliver left->meet source" in line)
    broken = judged("\n".join(lines[:place] + lines[place + 1 :]) + "\n")
    assert broken.verdict == "broken"
    assert {v.invariant for v in broken.violations} >= {"CUT", "NOLOSS"}


def test_a_capacity_is_judged_from_the_text() -> None:
    """A trace would be judged without its limits, so BOUND would say nothing."""
    text = run(load("diamond", {"until_s": 5.0}), seed=2).trace()
    assert "source->left=16" in text
    assert judged(text.replace("source->right=16", "source->right=1")).verdict == "broken"


def test_what_a_sink_promises_is_judged_from_the_text() -> None:
    """A trace would be judged as if its sinks promised nothing, so duplicates would hold where none may be."""
    text = run(load("crash_and_recover", {"guarantee": "at_least_once", "until_s": 2.5}), seed=2).trace()
    assert judged(text).verdict == "holds"
    broken = judged(text.replace("guarantees: sink=at_least_once", "guarantees: sink=exactly_once"))
    assert (broken.verdict, broken.violations[0].invariant) == ("broken", "REC")


def test_a_task_of_a_shuffle_waits_for_the_slowest_of_its_barriers() -> None:
    """The shuffle would show something else than that: of n exponential delays, the last after the first."""
    result = run(load("shuffle_128", {"ways": 32, "until_s": 5.0, "warmup_s": 0.0}), seed=1)
    waits = [row["alignment_ms"] for row in result.task_rows() if row["operator"] == "count"]
    assert len(waits) >= 4 * 32
    assert fmean(waits) == pytest.approx(10.0 * sum(1 / k for k in range(1, 32)), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped())
def test_whole_runs_hold(name: str) -> None:
    """The end of a full run could be broken where the short one is not."""
    for settings in _each_choice(name):
        result = run(load(name, settings), seed=3)
        assert result.verdict == "holds", (settings, result.violations)


def test_a_job_unlike_the_measured_ones_says_so(tmp_path: Path) -> None:
    """A user who writes a measured job down by its rates alone would be promised a third of its checkpoints' time."""
    two = {"operator": {"join": {"parallelism": 2}}, "source": {"a": {"parallelism": 2}}}
    job = with_changes(SKEWED, {"channel": {"default": None, "b->join": None}})
    (queue,) = scenario(tmp_path, job).warnings
    assert "a->join, b->join, join->sink: a queue of 64 messages" in queue
    assert 'form = "network"' in queue
    queue, exchange = scenario(tmp_path, with_changes(job, two)).warnings
    assert "a->join: the exchange is left to auto" in exchange
    for said in ({"form": "network"}, {"form": "spsc"}, {"capacity": 8}):
        assert scenario(tmp_path, with_changes(job, {"channel": {"default": said}})).warnings == ()
    assert (
        scenario(
            tmp_path, with_changes(with_changes(SKEWED, two), {"channel": {"a->join": {"exchange": "rebalance"}}})
        ).warnings
        == ()
    )


@pytest.mark.parametrize("name", [name for name in shipped() if name != "survive_anything"])
def test_shipped_scenarios_say_what_their_channels_are(name: str) -> None:
    """The examples that people copy would rest on defaults that nobody measured."""
    assert load(name).warnings == ()


@pytest.mark.parametrize("chained", [False, True])
def test_a_window_that_no_watermark_closes_is_said(chained: bool, tmp_path: Path) -> None:
    """The tasks behind a window would have nothing to do, and checkpoints be predicted as if they had."""
    window = {"kind": "window", "window_ms": 500}
    own = {"kind": "map", "chain": [window]} if chained else window
    job = {
        "topology": "a->w b->w w->sink",
        "until_s": 3.0,
        "source": {"a": {"rate_per_s": 50.0}, "b": {"rate_per_s": 50.0, "watermark_interval_s": 0.1}},
        "operator": {"w": own, "sink": {"kind": "sink"}},
        "channel": {"default": {"capacity": 8}},
        "checkpoint": {"interval_s": 1.0},
    }
    silent = run(scenario(tmp_path, job), 1)
    (line,) = silent.warnings
    assert line.startswith("'w' gives nothing out while a has not ended: a watermark closes a window, ")
    assert silent.run_row()["events_out"] == 0
    closing = run(scenario(tmp_path, with_changes(job, {"source": {"a": {"watermark_interval_s": 0.1}}})), 1)
    assert closing.warnings == ()
    assert closing.run_row()["events_out"] > 0
