"""Control signals in simulated time: the same machines, judged by the same invariants, measured to the nanosecond."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from barrierlab.impl.control import ControlProcessor
from barrierlab.sim import Scenario, ScenarioError, load, run
from barrierlab.sim.control.engine import ControlResult
from barrierlab.sim.control.scenario import ControlScenario
from barrierlab.sim.scenario.load import SHIPPED, shipped
from tests.control.test_world import EndsAtOnce, KeepsWhatItHas
from tests.sim.support import barrierlab, toml, with_changes

JOIN: dict[str, Any] = {
    "topology": "a->join b->join join->sink",
    "until_s": 4.0,
    "control": {"latency_s": 0.001},
    "source": {"a": {"rate_per_s": 100.0}, "b": {"rate_per_s": 10.0}},
    "operator": {"join": {"kind": "union"}, "sink": {"kind": "sink"}},
    "channel": {"default": {"latency_s": 0.01}, "b->join": {"latency_s": 0.1}, "b=>join": {"latency_s": 0.05}},
    "signal": [
        {"kind": "SyncTest", "channel": "data", "at_s": 1.0},
        {"kind": "SyncTest", "channel": "control", "at_s": 1.0},
        {"kind": "StreamGracefulEnd", "channel": "data", "at_s": 3.0},
    ],
}


def mutant_run(tmp_path: Path, changes: dict[str, Any] | None = None, **options) -> ControlResult:
    """A run of `JOIN`, changed."""
    path = tmp_path / "join.toml"
    path.write_text(toml(with_changes(JOIN, changes or {})), encoding="utf-8")
    return run(load(path), **options)


def choices(name: str) -> list[dict[str, Any]]:
    """Every combination of the choices of a shipped scenario."""
    tables = tomllib.loads((SHIPPED / "control" / f"{name}.toml").read_text()).get("parameters", {})
    own = {key: list(table["choices"]) for key, table in tables.items() if "choices" in table}
    return [dict(zip(own, values, strict=True)) for values in itertools.product(*own.values())]


@pytest.mark.parametrize(
    ("name", "settings"),
    [(name, settings) for name in shipped("control") for settings in choices(name)],
    ids=lambda case: case if isinstance(case, str) else "-".join(case.values()),
)
def test_a_shipped_scenario_holds(name: str, settings: dict[str, Any]) -> None:
    """A newcomer's first run would be broken, or a graceful end lose something."""
    result = run(load(name, settings), seed=3)
    assert result.verdict == "holds", result.violations
    assert result.emitted_count > 500
    end = result.metrics.end_row()
    assert end is not None
    if "Graceful" in end["signal"]:
        assert result.lost_count == 0
        assert set(end["ended_ms"]) == set(result.scenario.wiring.processors)


def test_a_wait_is_what_the_way_of_the_slower_one_is_longer(tmp_path: Path) -> None:
    """A wait would be measured from the wrong moment, or at the wrong place."""
    rows = {(row["processor"], row["channel"]): row for row in mutant_run(tmp_path).metrics.alignment_rows()}
    data, control = rows["join", "data"], rows["join", "control"]
    assert (data["barriers"], data["wait_max_ms"], data["wait_mean_ms"]) == (2, 90.0, 90.0)
    assert (control["barriers"], control["wait_max_ms"]) == (1, 49.0)
    assert rows["sink", "data"]["wait_max_ms"] == 0.0


def test_skew_is_from_the_first_processor_to_the_last(tmp_path: Path) -> None:
    """A sync would seem simultaneous that is not."""
    first, second, end = mutant_run(tmp_path).metrics.barrier_rows()
    assert (first["kind"], first["channel"], first["sent_ms"]) == ("SyncTest", "data", 1000.0)
    assert first["complete_ms"] == {"a": 10.0, "b": 10.0, "join": 110.0, "sink": 120.0}
    assert (first["first_ms"], first["last_ms"], first["skew_ms"]) == (10.0, 120.0, 110.0)
    assert (first["wait_max_ms"], first["wait_max_at"]) == (90.0, "join")
    assert second["complete_ms"] == {"a": 1.0, "b": 1.0, "join": 51.0, "sink": 52.0}
    assert end["kind"] == "StreamGracefulEnd"


def test_a_graceful_end_takes_as_long_as_what_is_ahead_of_it(tmp_path: Path) -> None:
    """The time that closing a pipeline takes would be reported wrong.

    The sink needs 30 ms for an event and gets one each 10 ms: at 3 s it is far behind, and works that off.
    """
    slow = {
        "operator": {"sink": {"service_s": 0.03}},
        "source": {"b": {"events": 0}},
        "channel": {"default": {"capacity": 1000}},
    }
    result = mutant_run(tmp_path, slow)
    end = result.metrics.end_row()
    assert end is not None
    # a1 comes to the sink after 10 ms, and two ways of 10 ms; it ends with its 300th service.
    arrived = Counter(verb for _, verb, node, _, _ in result.entries if node == "sink")["deliver"]
    assert result.emitted_count == arrived == 300
    assert end["drain_ms"] == pytest.approx(30.0 + 300 * 30.0 - 3000.0)
    assert (end["last"], result.lost_count, result.verdict) == ("sink", 0, "holds")
    assert end["fence_wait_max_ms"] == 0.0


def test_an_end_on_the_control_channel_waits_for_the_data(tmp_path: Path) -> None:
    """The end would overtake data (defect S-06), or the wait for it not be seen."""
    changes = {
        "operator": {"sink": {"service_s": 0.03}},
        "channel": {"default": {"capacity": 1000}},
        "signal": [{"kind": "StreamGracefulEnd", "channel": "control", "at_s": 3.0}],
    }
    result = mutant_run(tmp_path, changes)
    end = result.metrics.end_row()
    assert end is not None
    assert (result.verdict, result.lost_count) == ("holds", 0)
    assert end["fence_wait_max_ms"] > 5000.0
    broken = mutant_run(tmp_path, changes, make=EndsAtOnce)
    assert {violation.invariant for violation in broken.violations} == {"NOLOSS"}
    assert broken.lost_count > 100


def test_a_quick_end_waits_for_no_data(tmp_path: Path) -> None:
    """A quick end would be stuck behind what it is to cut off, and what it costs not be counted."""
    changes = {
        "operator": {"sink": {"service_s": 0.03}},
        "channel": {"default": {"capacity": 2}},
        "signal": [{"kind": "StreamQuickEnd", "channel": "control", "at_s": 3.0}],
    }
    result = mutant_run(tmp_path, changes)
    end = result.metrics.end_row()
    assert end is not None
    assert end["drain_ms"] <= 3 * 1.0 + 30.0  # the way, and the service that is under way
    dropped_ms = [at_ns / 1e6 - 3000.0 for at_ns, verb, node, *_ in result.entries if (verb, node) == ("drop", "sink")]
    assert dropped_ms
    assert max(dropped_ms) <= end["ended_ms"]["sink"] + 10.0  # what is on its way then; it costs no service
    assert result.verdict == "holds"
    assert result.lost_count > 0


def test_a_quick_end_on_the_data_channel_waits_for_no_barrier(tmp_path: Path) -> None:
    """A processor that waits for the slower branch could not be ended quickly."""
    signals = [JOIN["signal"][0], {"kind": "StreamQuickEnd", "channel": "data", "at_s": 1.005}]
    result = mutant_run(tmp_path, {"signal": signals, "source": {"a": {"rate_per_s": 10.0}}})
    end = result.metrics.end_row()
    assert end is not None
    (sync,) = result.metrics.barrier_rows()
    assert sync["complete_ms"] == {"a": 10.0, "b": 10.0}
    assert end["ended_ms"] == {"a": 10.0, "b": 10.0, "join": 20.0, "sink": 30.0}
    assert result.verdict == "holds"


def test_a_channel_keeps_its_order(tmp_path: Path) -> None:
    """A message could overtake another one whose latency is longer."""
    law = {"dist": "exponential", "mean": 0.05}
    result = mutant_run(tmp_path, {"channel": {"default": {"latency_s": law}}, "control": {"latency_s": law}})
    assert (result.verdict, result.lost_count) == ("holds", 0)


def test_inputs_are_served_in_turn(tmp_path: Path) -> None:
    """One upstream could keep the others out for as long as it has something."""
    changes = {"source": {"b": {"rate_per_s": 100.0}}, "operator": {"join": {"service_s": 0.02}}, "signal": []}
    taken = [
        where
        for at_ns, verb, node, where, _ in mutant_run(tmp_path, changes).entries
        if (verb, node) == ("deliver", "join") and at_ns > 10**9
    ]
    assert all(one != other for one, other in itertools.pairwise(taken[:100]))


def test_a_window_of_time_gathers_what_is_in_it(tmp_path: Path) -> None:
    """Events would have no time, and a window never end but with the pipeline."""
    result = mutant_run(tmp_path, {"operator": {"join": {"kind": "window", "window_ms": 1000}}})
    windows = [subject for _, verb, node, _, subject in result.entries if (verb, node) == ("deliver", "sink")]
    assert len(windows) >= 4
    assert max(len(window.value) for window in windows) <= 111
    assert (result.verdict, result.lost_count) == ("holds", 0)


def test_signals_come_again_until_the_time_is_up(tmp_path: Path) -> None:
    """One would be missing, or too many."""
    signals = [{"kind": "SyncTest", "channel": "control", "at_s": 1.0, "every_s": 1.0}]
    rows = mutant_run(tmp_path, {"signal": signals}).metrics.barrier_rows()
    assert [row["sent_ms"] for row in rows] == [1000.0, 2000.0, 3000.0, 4000.0]


def test_a_full_channel_makes_its_sender_wait(tmp_path: Path) -> None:
    """A channel would hold more than it may, or backpressure of data reach the control channel."""
    changes = {"operator": {"sink": {"service_s": 0.03}}, "channel": {"default": {"capacity": 2}}}
    result = mutant_run(tmp_path, changes)
    inside: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for _, verb, _, where, _ in result.entries:
        inside[str(where)] += {"send": 1, "take": -1}.get(verb, 0)
        most[str(where)] = max(most[str(where)], inside[str(where)])
    assert most["a->join"] == most["join->sink"] == 2
    assert (result.verdict, result.lost_count) == ("holds", 0)
    control = next(row for row in result.metrics.barrier_rows() if row["channel"] == "control")
    assert control["complete_ms"]["join"] == 51.0


def test_data_may_pass_if_it_is_not_held(tmp_path: Path) -> None:
    """`hold_data` would make no difference, or be judged by what it does not promise."""

    def passed(result: ControlResult) -> int:
        """Events of `a` that take effect at `join` while the sync is pending there."""
        return sum(
            1000 < at_ns / 1e6 - 20 < 1090
            for at_ns, verb, node, where, _ in result.entries
            if (verb, node, where) == ("deliver", "join", "a->join")
        )

    held, free = mutant_run(tmp_path), mutant_run(tmp_path, {"control": {"hold_data": False}})
    assert (passed(held), passed(free)) == (0, 8)
    assert held.verdict == free.verdict == "holds"


def test_what_is_broken_is_judged_broken(tmp_path: Path) -> None:
    """The verdict would hold whatever the code does."""
    changes = {"operator": {"join": {"kind": "batch", "batch_count": 7}}}
    assert mutant_run(tmp_path, changes).verdict == "holds"
    broken = mutant_run(tmp_path, changes, make=KeepsWhatItHas)
    assert {violation.invariant for violation in broken.violations} == {"NOLOSS"}
    counting = mutant_run(tmp_path, {"control": {"aligner": "counting"}})
    assert {violation.invariant for violation in counting.violations} == {"FIFO"}


def test_what_is_filtered_on_purpose_is_not_lost(tmp_path: Path) -> None:
    """A filter would break the verdict."""
    result = mutant_run(tmp_path, {"operator": {"join": {"kind": "filter", "selectivity": 0.5}}})
    assert (result.verdict, result.lost_count) == ("holds", 0)


def test_without_an_end_a_run_comes_to_rest(tmp_path: Path) -> None:
    """A run would never end, or what a batch still has be called lost."""
    result = mutant_run(
        tmp_path, {"signal": JOIN["signal"][:2], "operator": {"join": {"kind": "batch", "batch_count": 7}}}
    )
    assert (result.verdict, result.lost_count, result.metrics.end_row()) == ("holds", 0, None)
    assert result.emitted_count == 400 + 40


def test_the_same_seed_gives_the_same_journal() -> None:
    """A run could not be looked at again."""
    scenario = load("sync_under_skew", {"until_s": 3.0, "signal": []})
    one, again, other = run(scenario, 1), run(scenario, 1), run(scenario, 2)
    assert one.trace() == again.trace()
    assert one.trace() != other.trace()


def test_longer_service_on_one_branch_is_longer_waiting_at_the_other() -> None:
    """The scenario would not show what its comment says."""

    def wait_ms(skew: float) -> float:
        signals = [{"kind": "SyncTest", "channel": "data", "at_s": 0.5, "every_s": 0.5}]
        scenario = load("sync_under_skew", {"skew": skew, "until_s": 10.0, "signal": signals})
        rows = run(scenario, seed=1).metrics.alignment_rows()
        return next(row["wait_mean_ms"] for row in rows if (row["processor"], row["channel"]) == ("meet", "data"))

    assert wait_ms(0.002) < wait_ms(0.006) < wait_ms(0.009) < wait_ms(0.0105)


def test_skew_is_an_error_as_documented() -> None:
    """The choice of aligner would make no difference (defect S-03)."""
    settings = {"skew": 0.0115}
    assert run(load("sync_under_skew", settings)).verdict == "holds"
    broken = run(load("sync_under_skew", settings | {"aligner": "counting"}))
    assert any(v.reason.startswith("meet failed: barrier overlap on data channel") for v in broken.violations)


# What cannot be run.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"control": {"wirings": "along"}}, "[control] has no key 'wirings'; allowed: wiring, aligner"),
        ({"control": {"wiring": "a->b"}}, "topology or [control] wiring: 'a' has no upstream on the control channel"),
        ({"control": {"wiring": "head->b b->a a->join join->sink b->a"}}, "edge 'b->a' is written 2 times"),
        ({"control": {"aligner": "count"}}, "[control] aligner is 'count'; allowed: 'identity' or 'counting'"),
        ({"control": {"latency_ms": 1}}, "its unit is wrong; did you mean 'latency_s'?"),
        ({"topology": None}, "has no key 'topology'"),
        ({"topology": "head->join a->join b->join join->sink"}, "'head' names the head of the pipeline"),
        (
            {"protocol": "aligned"},
            "has no key 'protocol'; allowed: title, topology, until_s, seed, parameters, control",
        ),
        ({"checkpoint": {}}, "has no key 'checkpoint'"),
        ({"source": {"c": {}}}, """[source."c"] is not in the topology; allowed: a, b"""),
        ({"source": {"a": {"keys": 3}}}, "[source.a] has no key 'keys'; allowed: rate_per_s, arrivals"),
        ({"operator": {"join": None}}, "has no table [operator.join]; give its kind: map, union, filter, batch"),
        ({"operator": {"join": {"kind": "join"}}}, "[operator.join] kind is 'join'; allowed: 'map' or 'union'"),
        ({"operator": {"join": {"batch_count": 3}}}, "[operator.join] has no key 'batch_count'"),
        ({"channel": {"b->sink": {}}}, """[channel."b->sink"] is not in the topology; allowed: head->a"""),
        ({"channel": {"b->join": {"capacity": 0}}}, """[channel."b->join"] capacity is 0; allowed: a whole number"""),
        ({"signal": {"kind": "SyncTest"}}, "'signal' is a list of tables: [[signal]]"),
        ({"signal": [{"kind": "SyncTest"}]}, "[[signal]] has no key 'channel'; it needs kind, channel and at_s"),
        ({"signal": [{"kind": "Sync", "channel": "data", "at_s": 1}]}, "did you mean 'SyncTest'?"),
        ({"signal": [{"kind": "SyncTest", "channel": "both", "at_s": 1}]}, "allowed: 'data' or 'control'"),
        ({"signal": [{"kind": "SyncTest", "channel": "data", "at_s": 5}]}, "at_s is 5; allowed: at most until_s, 4"),
        ({"signal": [{"kind": "SyncTest", "channel": "data", "at_s": 1, "every_s": 1e-6}]}, "more than 100000 signals"),
        (
            {"signal": [*reversed(JOIN["signal"]), {"kind": "SyncTest", "channel": "data", "at_s": 3.5}]},
            "[[signal]] SyncTest at 3.5 s comes after the end at 3 s; take it out",
        ),
    ],
    ids=lambda value: value[-30:] if isinstance(value, str) else "",
)
def test_what_cannot_be_run_is_said_in_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """A mistake in a file would be passed over, or end in a traceback."""
    path = tmp_path / "join.toml"
    path.write_text(toml(with_changes(JOIN, changes)), encoding="utf-8")
    with pytest.raises(ScenarioError) as error:
        load(path)
    assert str(error.value).startswith("join.toml: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_scenario_is_read_as_what_its_tables_say() -> None:
    """A scenario would be run as what it is not."""
    assert type(load("graceful_shutdown")) is ControlScenario
    assert type(load("diamond")) is Scenario
    with pytest.raises(ScenarioError, match=r"there are .*diamond.*; did you mean 'graceful_shutdown'"):
        load("gracefull_shutdown")


# The command.


def test_the_command_runs_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A person would not see what the end took, nor the verdict."""
    status, out, err = barrierlab(capsys, "run", "graceful_shutdown", "--seed", "2")
    assert (status, err) == (0, "")
    assert "A graceful shutdown (seed 2)" in out
    assert "StreamGracefulEnd 1 sent at 10.000 s; drained in " in out
    assert "events emitted, 0 lost" in out
    assert out.rstrip().endswith("verdict: holds (0 violations)")


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """A script could not read it, or would read another run."""
    status, out, err = barrierlab(capsys, "run", "graceful_shutdown", "--set", "channel=data", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found == json.loads(json.dumps(run(load("graceful_shutdown", {"channel": "data"})).as_json()))
    assert set(found) == {
        *("scenario", "seed", "digest", "settings", "verdict", "violations", "barriers", "alignment", "end", "events"),
        *("vacuous", "vacuous_asked_for", "premises", "faults_without_effect", "progress", "notes", "falls_short"),
        "warnings",
    }
    assert found["events"]["lost"] == 0
    assert found["end"]["drain_ms"] > 0
    assert {row["processor"] for row in found["alignment"]} == set(load("graceful_shutdown").wiring.processors)


def test_a_violation_is_shown_and_is_status_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A script would take a broken run for a good one; and nobody could look at it."""
    trace = tmp_path / "broken.trace"
    settings = ("--set", "aligner=counting", "--set", "skew=0.0115")
    status, out, _ = barrierlab(capsys, "run", "sync_under_skew", *settings, "--trace", str(trace))
    assert status == 1
    assert "! LIVE: meet failed: barrier overlap" in out
    text = trace.read_text(encoding="utf-8")
    assert text.startswith("topology: a->work_a b->work_b work_a->meet work_b->meet meet->sink\ncontrol: along\n")
    assert "\n> signal head SyncTest on data @ 1.000000000\n    head forward data SyncTest 1\n" in text
    assert "\n! LIVE: meet failed" in text


def test_a_failed_processor_does_not_hang_the_run(tmp_path: Path) -> None:
    """One that ends early would leave its senders waiting, and the run never come to rest."""

    class Breaks(ControlProcessor):
        """Breaks down at its hundredth event."""

        def offer(self, carrier, upstream, message):
            taken = super().offer(carrier, upstream, message)
            if self.name == "join" and not self.ended and str(message) == "a100":
                self.fail("the disk is full")
            return taken

    result = mutant_run(tmp_path, make=Breaks)
    assert next(v.reason for v in result.violations if v.invariant == "LIVE") == "join failed: the disk is full"
    assert set(result.metrics.end_row()["ended_ms"]) == {"a", "b", "join", "sink"}
