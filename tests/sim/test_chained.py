"""Operators of one task: what they do is what they would do as tasks of their own, without the channels between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barrierlab.impl import Event
from barrierlab.model.checkpoint.operators import KINDS, OperatorChain, make
from barrierlab.sim import run
from barrierlab.sim.ask.levers import settings_of
from barrierlab.sim.ask.measures import bottleneck, rates_per_s
from barrierlab.sim.scenario.file import ScenarioError
from barrierlab.sim.scenario.load import NAMING, load
from tests.sim.support import scenario, toml, with_changes

APART: dict[str, Any] = {
    "topology": "a->parse parse->some some->sum sum->sink",
    "until_s": 6.0,
    "source": {"a": {"rate_per_s": 100.0, "watermark_interval_s": 0.1, "keys": 3}},
    "operator": {
        "parse": {"kind": "flat_map", "fanout": 2, "service_s": 0.001},
        "some": {"kind": "filter", "selectivity": 0.5, "service_s": 0.001},
        "sum": {"kind": "window", "window_ms": 500, "service_s": 0.001},
        "sink": {"kind": "sink"},
    },
    "channel": {"default": {"form": "network"}},
    "checkpoint": {"interval_s": 1.0},
}
CHAINED = with_changes(
    APART,
    {
        "topology": "a->parse parse->sink",
        "operator": {
            "parse": {
                "chain": [
                    {"kind": "filter", "selectivity": 0.5, "service_s": 0.001},
                    {"kind": "window", "window_ms": 500, "service_s": 0.001},
                ]
            },
            "some": None,
            "sum": None,
        },
    },
)


def windows(result: Any) -> list[Any]:
    """Return what the windows held: key, count and sum, and time, as they came to the sink."""
    return sorted(
        (subject.timestamp_ms, subject.key, subject.value)
        for _, verb, node, _, subject in result.entries
        if verb == "deliver" and node == "sink" and isinstance(subject, Event)
    )


def test_a_chain_gives_what_its_operators_give(tmp_path: Path) -> None:
    """A chained job would compute something else than the same job without chaining."""
    apart, chained = run(scenario(tmp_path, APART), 1), run(scenario(tmp_path, CHAINED), 1)
    assert {apart.verdict, chained.verdict} == {"holds"}
    both = min(len(windows(apart)), len(windows(chained)))
    assert both > 20
    assert windows(apart)[:both] == windows(chained)[:both]
    # below saturation each network exchange costs some flush timer; a chain has none of it
    slow, fast = (max(row["end_to_end_duration_ms"] for row in result.checkpoint_rows()) for result in (apart, chained))
    assert fast < slow


@pytest.mark.parametrize("unaligned", [False, True])
def test_the_whole_chain_is_restored(unaligned: bool, tmp_path: Path) -> None:
    """A failure would lose the windows of an operator that is not the head."""
    changes: dict[str, Any] = {"fault": [{"kind": "crash", "task": "parse", "at_s": 3.4}]}
    if unaligned:
        changes["protocol"] = "unaligned"
    result = run(scenario(tmp_path, with_changes(CHAINED, changes)), 1)
    assert result.verdict == "holds", result.violations
    assert result.run_row()["failures"] == 1
    usual = dict.fromkeys(windows(run(scenario(tmp_path, CHAINED), 1)))
    assert [each for each in windows(result) if each not in usual] == []


def test_each_operator_takes_its_time_for_what_it_gets(tmp_path: Path) -> None:
    """A chain would be as fast as its head."""
    result = run(scenario(tmp_path, CHAINED), 1)
    row = result.backpressure()["parse"]
    # of each event 1 ms at the head, 2 at the filter, which lets one of two pass: 1 ms at the window
    assert row["busyTimeMsPerSecond"] == pytest.approx(100 * (1 + 2 + 1), rel=0.05)
    loaded = scenario(tmp_path, CHAINED)
    assert bottleneck(loaded) == ("parse", pytest.approx(0.4))
    assert rates_per_s(loaded)["sink"] == pytest.approx(100.0)  # as declared; a window's are not
    path = tmp_path / "chained.toml"
    path.write_text(toml(CHAINED), encoding="utf-8")
    twice = load(path, settings_of(loaded, {"service": 2.0}))
    assert twice.operators["parse"].mean_service_s == pytest.approx(0.008)


def test_an_end_reaches_the_operators_behind_with_the_last_input() -> None:
    """The last windows would be sent twice, or never."""
    chain = OperatorChain((make("union"), make("window", name="t", window_ms=1000, inputs=1)), 2)
    assert chain.process(1, Event("a", 1, 0, 7, 5, 100, 10)) == []
    assert list(chain.on_end(0)) == []
    image = chain.checkpoint()
    other = OperatorChain((make("union"), make("window", name="t", window_ms=1000, inputs=1)), 2)
    other.restore(image)
    for each in (chain, other):
        assert [(event.key, event.value) for event in each.on_end(1)] == [(7, (1, 5))]


@pytest.mark.parametrize("kind", KINDS)
def test_who_makes_events_of_its_own_is_known(kind: str) -> None:
    """Two such operators in one task would name their events alike, and the scenario would load."""
    operator = make(kind, name="own", sides=(0, 1))
    sent = [event for side in (0, 1) for event in operator.process(side, Event("a", 1 + side))]
    sent += operator.on_watermark(10**6)
    assert ("own" in {event.source for event in sent}) is (kind in NAMING)


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ({"chain": 3}, r"\[operator.parse\] chain is 3; allowed: a list of tables"),
        ({"chain": [{"kind": "sink"}]}, r"\[operator.parse.chain\] kind is 'sink'; allowed: 'map' or 'flat_map'"),
        ({"chain": [{"kind": "map", "fanout": 2}]}, r"\[operator.parse.chain\] has no key 'fanout'"),
        (
            {"kind": "window", "fanout": None, "window_ms": 100, "chain": [{"kind": "aggregate"}]},
            "has window and aggregate in one task, which would name their events alike",
        ),
    ],
)
def test_a_slip_in_a_chain_is_one_line(operator: dict[str, Any], said: str, tmp_path: Path) -> None:
    """A user would get a traceback."""
    with pytest.raises(ScenarioError, match=said):
        scenario(tmp_path, with_changes(CHAINED, {"operator": {"parse": operator}}))


@pytest.mark.parametrize(
    ("chain", "key", "said"),
    [
        ([], "chain.0.kind", "asks for table '0'; allowed: none, there is no table"),
        ([{}], "chain.1.kind", "asks for table '1'; allowed: 0 to 0"),
        ([{}], "chain.0", r"ends at a table; name one of its keys: operator\.parse\.chain\.0\.kind"),
    ],
)
def test_a_setting_of_a_chain_that_is_not_there_is_one_line(
    chain: list[dict[str, Any]], key: str, said: str, tmp_path: Path
) -> None:
    """A hint would name a key that only a fault has, or tables from 0 to -1."""
    path = tmp_path / "job.toml"
    path.write_text(toml(with_changes(CHAINED, {"operator": {"parse": {"chain": chain}}})), encoding="utf-8")
    with pytest.raises(ScenarioError, match=said):
        load(path, {f"operator.parse.{key}": "map"})
