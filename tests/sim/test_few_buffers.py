"""The smallest buffer pools that a configuration allows: a job must not stand still on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barrierlab.sim import ScenarioError, run
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
