"""The smallest buffer pools that a configuration allows: a job must not stand still on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barrierlab.sim import ScenarioError, run
from barrierlab.sim.ask.measures import edge_bytes
from tests.sim.support import scenario, with_changes

SMALLEST: dict[str, Any] = {
    "topology": "src->sink",
    "until_s": 20.0,
    "source": {"src": {"rate_per_s": 100.0}},
    "operator": {"sink": {"kind": "sink"}},
    "channel": {"default": {"form": "network", "exclusive_buffers": 1, "floating_buffers": 0}},
    "checkpoint": {"interval_s": 5.0, "timeout_s": 3.0},
}
JOIN = {
    "topology": "src->join b->join join->sink",
    "source": {"b": {"rate_per_s": 100.0}},
    "operator": {"join": {"kind": "join", "parallelism": 2}},
}


@pytest.mark.parametrize("changes", [{}, JOIN], ids=["chain", "join"])
def test_one_buffer_a_channel_is_enough(changes: dict[str, Any], tmp_path: Path) -> None:
    """The only buffer of a pool would be the one being filled: its task would wait for a free one for ever.

    Apache Flink, `NettyShuffleUtils.getMinMaxNetworkBuffersPerResultPartition`: one more than there are channels.
    """
    one, two = (
        run(
            scenario(tmp_path, with_changes(SMALLEST, changes), channel={"default": {"exclusive_buffers": count}})
        ).run_row()
        for count in (1, 2)
    )
    sources = 2 if changes else 1
    assert one["events_in"] == two["events_in"] == 1999 * sources
    assert one["checkpoints_completed"] == two["checkpoints_completed"] == 3


def test_a_channel_needs_two_buffers_at_least(tmp_path: Path) -> None:
    """With one, a task is back-pressured by the buffer that it is filling itself."""
    with pytest.raises(ScenarioError, match="most_buffers is 1; allowed: a whole number of at least 2"):
        scenario(tmp_path, SMALLEST, channel={"default": {"most_buffers": 1}})


@pytest.mark.parametrize(
    ("wide", "thin", "receivers"),
    [(1, 3, 2), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((4, 1, 2), (1, 1, 4)))],
)
def test_inputs_of_unequal_width_hold_what_their_buffers_hold(
    wide: int, thin: int, receivers: int, tmp_path: Path
) -> None:
    """Buffers are counted by the channels at either end: a wide input would be taken for a thin one."""
    job = scenario(
        tmp_path,
        {
            "topology": "a->m b->m m->sink",
            "until_s": 30.0,
            "warmup_s": 15.0,
            "source": {
                name: {"parallelism": count, "rate_per_s": 2000.0 / count, "record_bytes": 4096, "catch_up_s": 1.0}
                for name, count in (("a", wide), ("b", thin))
            },
            "operator": {
                "m": {"kind": "union", "parallelism": receivers, "service_s": 0.004},
                "sink": {"kind": "sink", "parallelism": receivers, "aligns": False},
            },
            "channel": {
                "default": {
                    "form": "network",
                    "exchange": "rebalance",
                    "latency_s": {"dist": "lognormal", "mean": 0.0002, "cv": 0.9},
                }
            },
            "checkpoint": {"interval_s": 3.0, "hold": "channel"},
        },
    )
    result = run(job, 1)
    assert result.verdict == "holds", result.violations
    most_ms = 1e3 * (edge_bytes(job, "a->m") + edge_bytes(job, "b->m")) / (receivers * 4096 / 0.004)
    steady = [row["end_to_end_duration_ms"] for row in result.checkpoint_rows() if row["steady"]]
    assert len(steady) >= 4
    for duration_ms in steady:
        assert 0.88 * most_ms < duration_ms < most_ms
