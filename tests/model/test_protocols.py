"""The registry of checkpoint protocols: one object answers what a mode means, and an unknown name means nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barrierlab.model.checkpoint.protocols import PROTOCOLS, ProtocolError, protocol_of
from barrierlab.model.checkpoint.scope import Bounds, BoundsError
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.trace import TraceError, judged
from barrierlab.sim.scenario.load import load

ROOT = Path(__file__).resolve().parents[2]
COMPARISON = re.compile(rf'(mode|protocol) [!=]= "({"|".join(PROTOCOLS)})"')


def test_no_file_compares_the_name_of_a_protocol():
    """A comparison of names would be a place where another protocol silently is taken for one of the two sides."""
    files = [path for floor in ("impl", "model", "sim") for path in (ROOT / floor).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in files
        for line in path.read_text().splitlines()
        if COMPARISON.search(line)
    ]
    assert len(files) > 100
    assert found == []


def test_an_unknown_name_is_refused_with_those_that_there_are():
    """It was taken for unaligned by whoever only asked whether it is aligned."""
    with pytest.raises(ProtocolError, match=f"^there is no mode 'alined'; allowed: {', '.join(PROTOCOLS)}$"):
        protocol_of("alined")
    with pytest.raises(BoundsError, match="there is no mode 'quick'"):
        Bounds("a->s", mode="quick")
    with pytest.raises(TraceError, match="there is no mode 'quick'"):
        judged("topology: a->s\nmode: quick\n\n")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_gives_the_gate_and_the_table_of_its_name(name):
    """Its machine and its table begin in the same state, and it is registered by the name that it has."""
    protocol = PROTOCOLS[name]
    config = Bounds("a->s", mode=name, guarantee="at_least_once").protocol.unaligned_config(7)
    assert protocol.name == name
    assert (config is not None) is protocol.goes_unaligned
    assert config is None or config.max_inflight_buffer_bytes == 7
    assert GateState.new(protocol.table, GateRules()).pending is None


def test_a_scenario_with_a_timeout_for_its_alignment_is_of_another_protocol():
    """The simulation asks the same objects; its two keys together say which."""
    for chosen, name in (
        ("aligned", "aligned"),
        ("unaligned", "unaligned"),
        ("aligned_with_timeout", "aligned_with_timeout"),
    ):
        assert load("crash_and_recover", {"mode": chosen}).mode is PROTOCOLS[name]
