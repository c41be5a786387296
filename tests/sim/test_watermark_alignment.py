"""Sources that are ahead in event time wait for the others, as with Flink's watermark alignment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barrierlab.sim import run
from barrierlab.sim.scenario.file import ScenarioError
from tests.sim.support import scenario, with_changes

# Source a has five times the events that its task can take, so its event time falls behind; b keeps up.
BASE: dict[str, Any] = {
    "topology": "a->slow slow->sink b->fast fast->sink",
    "until_s": 12.0,
    "source": {
        "a": {"rate_per_s": 500.0, "watermark_interval_s": 0.05},
        "b": {"rate_per_s": 100.0, "watermark_interval_s": 0.05},
    },
    "operator": {"slow": {"service_s": 0.01}, "fast": {}, "sink": {"kind": "sink"}},
    "channel": {"default": {"capacity": 16}},
    "checkpoint": {"interval_s": 1.0},
}
ALIGNED = {"watermark_alignment": {"max_drift_s": 0.5, "update_interval_s": 0.2}}


def leads_ms(result: Any, first: str, other: str) -> list[float]:
    """Return by how much the watermark of one source is ahead of another's, whenever the first sends one."""
    sent: dict[str, int] = {}
    leads = []
    for _, verb, node, _, subject in result.entries:
        if verb == ">watermark":
            sent[node] = subject
            if node == first and other in sent:
                leads.append(subject - sent[other])
    return leads


def test_a_source_is_no_further_ahead_than_the_drift(tmp_path: Path) -> None:
    """A job with alignment would buffer, and be predicted, as one without: the thin source would run away."""
    free = run(scenario(tmp_path, BASE), 1)
    held = run(scenario(tmp_path, with_changes(BASE, ALIGNED)), 1)
    assert {free.verdict, held.verdict} == {"holds"}
    assert max(leads_ms(free, "b", "a")) > 5_000
    # what is announced is an update old, and watermarks go by their own interval
    assert 400 < max(leads_ms(held, "b", "a")) <= 500 + 200 + 50 + 20
    row, other = held.run_row(), free.run_row()
    assert row["checkpoints_completed"] == other["checkpoints_completed"] >= 10  # a source that waits takes part
    assert row["events_in"] < other["events_in"]
    assert held.digest == run(scenario(tmp_path, with_changes(BASE, ALIGNED)), 1).digest


def test_a_drift_that_is_never_reached_changes_nothing(tmp_path: Path) -> None:
    """Alignment would cost something where there is nothing to align."""
    changes = {"watermark_alignment": {"max_drift_s": 1000.0, "update_interval_s": 0.2}}
    free = run(scenario(tmp_path, BASE), 1)
    held = run(scenario(tmp_path, with_changes(BASE, changes)), 1)
    assert held.checkpoint_rows() == free.checkpoint_rows()
    assert held.run_row()["events_out"] == free.run_row()["events_out"]


@pytest.mark.parametrize(
    "source",
    [{"events": 50}, {"rate_per_s": 0.2}],
    ids=["ended", "idle"],
)
def test_who_has_nothing_to_emit_is_not_waited_for(source: dict[str, Any], tmp_path: Path) -> None:
    """One source that has ended, or is idle, would stop all others for good."""
    changes = with_changes(ALIGNED, {"source": {"a": source}, "watermark_alignment": {"idle_after_s": 0.5}})
    job = scenario(tmp_path, with_changes(BASE, changes))
    result = run(job, 1)
    assert result.verdict == "holds", result.violations
    assert sum(1 for entry in result.entries if entry[1] == ">emit" and entry[2] == "b") > 0.75 * 100 * 12
    if "rate_per_s" in source:
        strict = with_changes(changes, {"watermark_alignment": {"idle_after_s": None}})
        waits = run(scenario(tmp_path, with_changes(BASE, strict)), 1)
        assert max(leads_ms(waits, "b", "a")) < 800
        assert max(leads_ms(result, "b", "a")) > 4_000


def test_alignment_without_watermarks_is_one_line(tmp_path: Path) -> None:
    """Nothing would be aligned, and nobody would say so."""
    changes = {"source": {name: {"watermark_interval_s": None} for name in "ab"}}
    with pytest.raises(ScenarioError, match=r"max_drift_s is given, and no source sends watermarks; allowed: "):
        scenario(tmp_path, with_changes(BASE, {**changes, **ALIGNED}))


def test_what_waits_for_a_watermark_is_no_overload(tmp_path: Path) -> None:
    """An idle source would stop the others, and the run would say that they are too much for the job."""
    idle = with_changes(ALIGNED, {"source": {"a": {"rate_per_s": 0.01}}})
    held = run(scenario(tmp_path, with_changes(BASE, idle)), 1)
    (line,) = held.warnings
    assert "waits at sources whose watermarks are 0.5 s ahead of that of a; a source without events" in line
    assert held.run_row()["piles_up_share"] == 0.0
    waived = with_changes(idle, {"watermark_alignment": {"idle_after_s": 0.5}})
    assert run(scenario(tmp_path, with_changes(BASE, waived)), 1).warnings == ()

    both = run(scenario(tmp_path, with_changes(BASE, ALIGNED)), 1)  # of 600 a second a has 400 too many, and b waits
    assert both.run_row()["piles_up_share"] == pytest.approx(400 / 600, abs=0.03)
    assert [each.partition(":")[0] for each in both.warnings] == ["overload", "watermark alignment"]
