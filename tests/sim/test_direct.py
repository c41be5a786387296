"""A task whose channels are queues without latency runs by one loop while only events come to it: no run differs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import barrierlab.sim.channels.spsc as barrierlab_spsc
from barrierlab.sim import Scenario, load
from barrierlab.sim.checkpoint.build import JobBuilder
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.checkpoint.result import Result
from barrierlab.sim.checkpoint.tasks import Job
from tests.breadth import examples
from tests.sim.support import toml

TOPOLOGIES = (
    "a->x x->y y->sink",
    "a->x a->y x->z y->z z->sink",
    "a->x b->x x->sink",
    "a->x b->x x->y x->sink y->other",
    "a->sink",
)
FAULTS = (
    {"kind": "crash", "at_s": 0.7},
    {"kind": "stall", "at_s": 0.3, "for_s": 0.2},
    {"kind": "cancel_checkpoint", "rate_per_s": 3.0},
    {"kind": "coordinator_crash", "at_s": 0.6},
)


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A small job of queues, most of them without latency."""
    topology = draw(st.sampled_from(TOPOLOGIES))
    tasks = sorted(set(topology.replace("->", " ").split()))
    protocol = draw(st.sampled_from(("aligned", "aligned", "unaligned", "tracked")))
    services: Any = st.sampled_from((0.0, 0.002, 0.005, {"dist": "exponential", "mean": 0.004}))
    sources, operators = {}, {}
    for task in tasks:
        parallel = draw(st.sampled_from((1, 1, 2)))
        if task in ("a", "b"):
            sources[task] = {
                "rate_per_s": draw(st.sampled_from((100.0, 400.0))),
                "arrivals": draw(st.sampled_from(("poisson", "deterministic"))),
                "service_s": draw(services),
                "parallelism": parallel,
                "trigger": draw(st.sampled_from(("coordinator", "periodic"))),
                **({"watermark_interval_s": 0.05} if draw(st.booleans()) else {}),
                **({"events": 60} if draw(st.booleans()) else {}),
                **({"catch_up_s": 0.1} if draw(st.booleans()) else {}),
            }
            continue
        gathers = topology.count(f"->{task}") > 1
        kinds = ("sink",) if task in ("sink", "other") else ("union",) if gathers else ("map", "flat_map", "aggregate")
        operators[task] = {
            "kind": draw(st.sampled_from(kinds)),
            "service_s": draw(services),
            "parallelism": parallel,
        }
        if kinds == ("sink",):
            guarantees = ("at_least_once", "idempotent") + (("exactly_once",) if protocol != "tracked" else ())
            operators[task]["guarantee"] = draw(st.sampled_from(guarantees))
    channels: dict[str, Any] = {"default": {"capacity": draw(st.sampled_from((1, 2, 8)))}}
    if draw(st.booleans()):
        channels[topology.split()[-1]] = {"latency_s": 0.003}
    checkpoint: dict[str, Any] = {"interval_s": draw(st.sampled_from((0.1, 0.3))), "timeout_s": 0.4}
    if draw(st.booleans()):
        checkpoint["max_buffer_per_input"] = 2
    if draw(st.booleans()):
        checkpoint["hold"] = "channel"
    if draw(st.booleans()):
        checkpoint["begin_s"] = 0.002
    if protocol == "unaligned" and draw(st.booleans()):
        checkpoint["aligned_checkpoint_timeout_s"] = 0.02
    fault = draw(st.sampled_from((None, *FAULTS)))
    return {
        "topology": topology,
        "protocol": protocol,
        "until_s": 1.2,
        "warmup_s": 0.0,
        "source": sources,
        "operator": operators,
        "channel": channels,
        "checkpoint": checkpoint,
        "recovery": {"detection_s": 0.05, "restart_s": 0.05},
        **({"fault": [fault | ({"task": tasks[-1]} if fault["kind"] in ("crash", "stall") else {})]} if fault else {}),
    }


def seen(scenario: Scenario) -> tuple[list[tuple[Any, ...]], list[Any], bool]:
    """The outcome of a run of `scenario`: its rows, all findings and figures, and whether a task ran by that loop."""
    engine = Engine(scenario, 3)
    engine.run()
    result = Result(scenario, 3, engine)
    figures = [dataclasses.asdict(result.judged), result.run_row(), result.task_rows(), result.backpressure()]
    return engine.rows, [*figures, result.digest], any(node._is_direct for node in engine.job.nodes.values())


def both(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run `scenario` with and without the loop; the journals, findings and figures are the same."""
    rows, figures, direct = seen(scenario)
    with monkeypatch.context() as patched:
        patched.setattr(JobBuilder, "_attach_lanes", lambda self, job: None)
        other_rows, other_figures, other_direct = seen(scenario)
    assert not other_direct
    assert list(map(str, rows)) == list(map(str, other_rows))
    assert json.dumps(figures, default=str) == json.dumps(other_figures, default=str)
    return direct


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(job=jobs())
def test_a_run_is_the_same_by_either_loop(job: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wake-up in another order, a row too many or a service not counted would be another simulation."""
    path = tmp_path / "job.toml"
    path.write_text(toml(job), encoding="utf-8")
    both(load(path), monkeypatch)


@pytest.mark.parametrize("name", ["diamond", "random_crashes", "skewed_join", "tracked"])
def test_the_loop_is_used_and_the_run_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shipped scenario that no task runs by the loop would make the comparison one of equals."""
    assert both(load(name, {"until_s": 2.0, "warmup_s": 0.0}), monkeypatch)


def test_the_loop_is_not_taken_where_a_class_is_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate, a task or a channel that does something else must be asked, and is."""
    scenario = load("diamond", {"until_s": 1.0, "warmup_s": 0.0})
    used: list[Job] = []
    attach = JobBuilder._attach_lanes

    def kept(self: JobBuilder, job: Job) -> None:
        used.append(job)
        attach(self, job)

    monkeypatch.setattr(JobBuilder, "_attach_lanes", kept)
    Engine(scenario, 1)
    assert any(any(node._lanes) for node in used[-1].operator_nodes)

    class Other(barrierlab_spsc.SpscChannel):
        """A queue of another's."""

    monkeypatch.setattr("barrierlab.sim.checkpoint.build.SpscChannel", Other)
    Engine(scenario, 1)
    assert not any(node._takes is not None or any(node._lanes) for node in used[-1].nodes.values())
