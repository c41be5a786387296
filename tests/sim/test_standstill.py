"""A job that can move no more is broken, not slow; and one that can is not called broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import barrierlab.sim.checkpoint.build
from barrierlab.model.checkpoint.trace import judged
from barrierlab.sim import Scenario, run
from barrierlab.sim.channels.network import BufferPool, NetworkChannel
from barrierlab.sim.channels.spsc import SpscChannel
from tests.sim.support import moves, reasons, scenario, with_changes

NETWORK: dict[str, Any] = {
    "topology": "src->map map->sink",
    "until_s": 10.0,
    "source": {"src": {"rate_per_s": 100.0}},
    "operator": {"map": {"service_s": 0.001}, "sink": {"kind": "sink"}},
    "channel": {"default": {"form": "network", "segment_bytes": 400}},
    "checkpoint": {"interval_s": 4.0, "timeout_s": 3.0},
}
QUEUE = with_changes(NETWORK, {"channel": {"default": {"form": None, "segment_bytes": None, "capacity": 4}}})


class OneBuffer(BufferPool):
    """A pool whose only buffer is the one that is being filled."""

    def __init__(self, size: int, overdraft: int = 0) -> None:
        super().__init__(1, overdraft)


class LosesCredit(NetworkChannel):
    """A channel that gives no credit back."""

    def _give_credit(self) -> None:
        pass


class SaysNothingOfRoom(SpscChannel):
    """A queue that does not wake its sender when there is room again: a lost wake-up."""

    def take(self) -> Any:
        self.overtakers.opened += 1
        return self.queue.popleft()


BROKEN = {
    "a pool of one buffer": (NETWORK, "BufferPool", OneBuffer),
    "a credit that is lost": (NETWORK, "NetworkChannel", LosesCredit),
    "a wake-up that is lost": (QUEUE, "SpscChannel", SaysNothingOfRoom),
}


@pytest.mark.parametrize("which", BROKEN)
def test_a_job_that_can_move_no_more_breaks_live(which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadlock of the channels would pass as a job that holds: four events in twenty seconds."""
    job, name, broken = BROKEN[which]
    fast = with_changes(job, {"operator": {"map": {"service_s": 0.02}}}) if name == "SpscChannel" else job
    made: Scenario = scenario(tmp_path, fast)
    assert run(made).verdict == "holds"
    monkeypatch.setattr(barrierlab.sim.checkpoint.build, name, broken)
    result = run(made)
    assert result.verdict == "broken"
    told = [reason for reason in reasons(result, "LIVE") if "nothing can move any more" in reason]
    assert told == ["nothing can move any more, though src has events to give off"]
    assert judged(result.trace()).verdict == "broken"


WAITING: dict[str, dict[str, Any]] = {
    "a task that is slow": {"operator": {"map": {"service_s": 3.0}}},
    "a task that stalls": {"fault": [{"kind": "stall", "task": "sink", "at_s": 1.0, "for_s": 6.0}]},
    "a long way": {"channel": {"default": {"latency_s": 2.5}}},
    "a job that is down": {"recovery": {"restart_s": 6.0}, "fault": [{"kind": "crash", "task": "map", "at_s": 2.0}]},
    "a command that is late": {
        "topology": "src->map b->map map->sink",
        "source": {"b": {"rate_per_s": 0.05}},
        "checkpoint": {"trigger_latency_s": {"dist": "uniform", "low": 0.0, "high": 3.0}},
        "channel": {"default": {"capacity": 1}},
    },
    "a source that is silent": {"source": {"src": {"rate_per_s": 0.2}}},
    "a source that ends": {"source": {"src": {"events": 50}}},
}


@pytest.mark.parametrize("base", [NETWORK, QUEUE], ids=["network", "queue"])
@pytest.mark.parametrize("which", WAITING)
def test_a_job_that_waits_is_not_stuck(which: str, base: dict[str, Any], tmp_path: Path) -> None:
    """A sound job would be called broken because it is slow, stalled, down or has nothing to do."""
    changes = with_changes({}, WAITING[which])
    if base is NETWORK and "capacity" in changes.get("channel", {}).get("default", {}):
        del changes["channel"]
    result = run(scenario(tmp_path, with_changes(base, changes)), 3)
    assert result.verdict == "holds", result.violations
    assert not moves(result, ">stuck")
