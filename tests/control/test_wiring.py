"""Connections of a pipeline, and graphs that are none."""

from __future__ import annotations

import pytest

from barrierlab.model.control.topology import ControlWiring
from barrierlab.model.spec.topology import TopologyError


def test_the_head_feeds_every_source() -> None:
    """A source would never hear of a barrier, and everything below it wait for ever."""
    wiring = ControlWiring("a->join b->join join->sink")
    assert wiring.sources == ("a", "b")
    assert wiring.sinks == ("sink",)
    assert wiring.channels == {
        "data": ("head->a", "head->b", "a->join", "b->join", "join->sink"),
        "control": ("head=>a", "head=>b", "a=>join", "b=>join", "join=>sink"),
    }
    assert wiring.processors == ("a", "b", "join", "sink")
    assert wiring.ends("b=>join") == ("b", 0, "join", 1)
    assert wiring.ends("head->b") == ("head", 1, "b", 0)
    assert wiring.carrier_of("b=>join") == "control"
    assert wiring.outputs("data", "head") == ("head->a", "head->b")


def test_the_control_channel_may_be_connected_otherwise() -> None:
    """Only pipelines in which both channels are alike could be asked about."""
    direct = ControlWiring("a->join b->join", "direct")
    assert direct.inputs("control", "join") == ("head=>join",)
    assert direct.inputs("data", "join") == ("a->join", "b->join")
    written = ControlWiring("a->join b->join", "head->b b->a a->join")
    assert written.inputs("control", "a") == ("b=>a",)
    assert written.processors == ("b", "a", "join")


@pytest.mark.parametrize(
    ("data", "control", "reason"),
    [
        ("head->a", "along", "'head' names the head of the pipeline"),
        ("a->b", "head->b", "'a' has no upstream on the control channel"),
        ("a->b", "head->a head->b head->c", "'c' has no upstream on the data channel"),
        ("a->b", "head->b b->a", "the topology has a cycle, a->b->a"),
        ("a->b", "a->b", "'a' has no upstream on the control channel"),
        ("a=>b", "along", "'a=>b' is no edge"),
    ],
)
def test_what_is_no_pipeline_is_refused(data: str, control: str, reason: str) -> None:
    """A processor would wait for nobody; through a cycle of both channels, a graceful end for itself."""
    with pytest.raises(TopologyError, match=reason):
        ControlWiring(data, control)
