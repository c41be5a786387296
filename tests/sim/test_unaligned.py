"""Unaligned checkpoints in time: what a barrier passes is recorded, once, and nothing else is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barrierlab.impl import CheckpointBarrier, Task
from barrierlab.impl.checkpoint.recorder import Recorder
from barrierlab.sim import ScenarioError, load, run
from barrierlab.sim.channels.network import NetworkChannel

QUEUES = """
topology = "a->join b->join join->map map->sink"
until_s = 8.0
protocol = "unaligned"
[source.a]
rate_per_s = 300.0
arrivals = "poisson"
watermark_interval_s = 0.1
[source.b]
rate_per_s = 60.0
arrivals = "poisson"
watermark_interval_s = 0.1
[operator.join]
kind = "join"
window_ms = 200
parallelism = 2
service_s = {{ dist = "exponential", mean = 0.004 }}
[operator.map]
service_s = {{ dist = "exponential", mean = 0.006 }}
[operator.sink]
kind = "sink"
[channel.default]
{channel}
[channel."a->join"]
exchange = "hash"
[channel."b->join"]
exchange = "hash"
[checkpoint]
interval_s = 0.7
hold = "{hold}"
aligned_checkpoint_timeout_s = {timeout}
"""
SPSC = "capacity = 32"
NETWORK = 'form = "network"\nsegment_bytes = 400\nlatency_s = { dist = "exponential", mean = 0.002 }'
LOCAL = 'form = "network"\nsegment_bytes = 400\nlocal = true'


def queues(folder: Path, channel: str = SPSC, hold: str = "aligner", timeout: float = 0.0) -> Path:
    """A job with a slow end, as a scenario file."""
    path = folder / "queues.toml"
    path.write_text(QUEUES.format(channel=channel, hold=hold, timeout=timeout), encoding="utf-8")
    return path


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
@pytest.mark.parametrize("timeout", [0.0, pytest.param(0.02, marks=pytest.mark.slow), 0.1])
@pytest.mark.parametrize(
    ("channel", "hold"),
    [(SPSC, "aligner"), (SPSC, "channel"), (NETWORK, "channel"), (NETWORK, "aligner"), (LOCAL, "channel")],
    ids=["queue", "queue, blocked", "network", "network, held", "local"],
)
def test_any_channel_any_timeout_holds(tmp_path: Path, channel: str, hold: str, timeout: float, seed: int) -> None:
    """A checkpoint that goes unaligned on some form of channel would lose or double what is in flight."""
    scenario = load(queues(tmp_path, channel, hold, timeout))
    result = run(scenario, seed)
    assert result.verdict == "holds", result.violations[:3]
    assert sum(row["status"] == "COMPLETED" for row in result.checkpoint_rows()) >= 5
    kinds = [row["checkpoint_type"] for row in result.checkpoint_rows()]
    persisted = [row["persisted_bytes"] for row in result.checkpoint_rows()]
    assert all(kind == "UNALIGNED_CHECKPOINT" for kind, size in zip(kinds, persisted, strict=True) if size)
    if timeout == 0.0:
        assert set(kinds) == {"UNALIGNED_CHECKPOINT"}
    if timeout < 0.1:
        assert sum(persisted) > 0


def test_disabled_is_aligned(tmp_path: Path) -> None:
    """A user who has not asked for unaligned checkpoints would pay for them."""
    path = queues(tmp_path)
    result = run(load(path, {"protocol": "aligned"}), 1)
    assert {row["checkpoint_type"] for row in result.checkpoint_rows()} == {"CHECKPOINT"}
    assert {row["persisted_bytes"] for row in result.checkpoint_rows()} == {0}


def test_sinks_align(tmp_path: Path) -> None:
    """A sink would commit less than came before the barrier."""
    result = run(load(queues(tmp_path, NETWORK, "channel")), 1)
    at_sink = [row for row in result.task_rows() if row["operator"] == "sink"]
    assert at_sink
    assert {row["persisted_bytes"] for row in at_sink} == {0}
    captured = [entry for entry in result.entries if entry[1] == "capture"]
    assert captured
    assert not [entry for entry in captured if entry[2] == "sink"]


def test_a_sink_may_say_that_it_need_not_align(tmp_path: Path) -> None:
    """A sink that commits nothing would make the tasks before it wait, and what they have sent it would be missing."""
    path = queues(tmp_path, NETWORK, "channel")
    captured: dict[bool, Counter[str]] = {}
    for aligns in (True, False):
        result = run(load(path, {"operator.sink.aligns": aligns, "operator.sink.service_s": 0.006}), 1)
        assert result.verdict == "holds"
        captured[aligns] = Counter(e[2] for e in result.entries if e[1] == "capture" and e[3] == "map->sink")
    assert captured[True]["sink"] == 0 < captured[False]["sink"]
    assert captured[True]["map"] < captured[False]["map"]  # all that is in the channel, not in its outbox alone


def drop_passed(self: Task, output: int, messages: object, checkpoint_id: int) -> None:
    """Broken: what the barrier passes on its way out is recorded nowhere."""


def record_nothing(self: Recorder, input_id: int, event: object) -> bool:
    """Broken: what comes before the last barrier is processed, and not recorded."""
    return True


def passed_nothing(self: NetworkChannel, unread: list[object]) -> tuple[object, list[object]]:
    """Broken: what lies at the receiver ahead of the barrier is not told."""
    return self._overtakers.take([], [])


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [
        (Task, "capture_overtaken", drop_passed),
        (Recorder, "record", record_nothing),
        (NetworkChannel, "take_overtaking", passed_nothing),
    ],
    ids=["at the sender", "after the snapshot", "at the receiver"],
)
def test_in_flight_data_that_is_not_recorded_breaks_the_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: type, name: str, broken: Callable[..., object]
) -> None:
    """Lost in-flight data would go unseen."""
    scenario = load(queues(tmp_path, NETWORK, "channel", 0.02 if name == "record" else 0.0))
    assert run(scenario, 1).verdict == "holds"
    monkeypatch.setattr(where, name, broken)
    result = run(scenario, 1)
    assert {violation.invariant for violation in result.violations} == {"CUT"}
    assert "is lost to checkpoint" in result.violations[0].reason


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    """Two unaligned checkpoints at a time, of which one would wait behind what the other recorded."""
    with pytest.raises(ScenarioError, match="max_concurrent is 2; allowed: 1 with unaligned"):
        load(queues(tmp_path), {"checkpoint.max_concurrent": 2})


# Services of a fifth of a second, queues of two, and a map that sends three events for one: they wait in its outbox.
OUTBOX = """
topology = "a->map map->slow slow->sink"
until_s = 20.0
protocol = "unaligned"
[source.a]
rate_per_s = 20.0
[operator.map]
kind = "flat_map"
fanout = 3
[operator.slow]
service_s = 0.2
[operator.sink]
kind = "sink"
[channel.default]
capacity = 2
[checkpoint]
interval_s = 3.0
aligned_checkpoint_timeout_s = 0.35
"""


def test_a_barrier_in_an_outbox_turns_unaligned_in_time(tmp_path: Path) -> None:
    """The timeout would hold for every barrier but one that waits where its channel is full (FLINK-27251)."""
    path = tmp_path / "outbox.toml"
    path.write_text(OUTBOX, encoding="utf-8")
    result = run(load(path), 1)
    assert result.verdict == "holds", result.violations
    rows = result.checkpoint_rows()
    assert len(rows) >= 6
    assert {row["checkpoint_type"] for row in rows} == {"UNALIGNED_CHECKPOINT"}
    starts = [row["start_delay_ms"] for row in result.task_rows() if row["operator"] == "slow"]
    assert max(starts) <= 350.0 + 3 * 200.0  # the map ends its step first: three events, each waits for its place
    assert sum(row["persisted_bytes"] for row in rows) > 0


ON_ITS_WAY = """
topology = "a->map map->sink"
until_s = 5.0
protocol = "{protocol}"
[source.a]
rate_per_s = 20.0
[operator.map]
kind = "map"
[operator.sink]
kind = "sink"
[channel.default]
form = "network"
latency_s = 0.001
barrier_latency_s = 0.01
{own}
[checkpoint]
interval_s = 1.0
hold = "channel"
aligned_checkpoint_timeout_s = 0.0
"""


@pytest.mark.parametrize(
    ("protocol", "own", "hop_ms"),
    [
        ("aligned", "unaligned_barrier_latency_s = 0.03", 11.0),
        ("unaligned", "unaligned_barrier_latency_s = 0.03", 31.0),
        ("unaligned", "", 11.0),
    ],
)
def test_a_barrier_that_overtakes_may_take_its_own_time(tmp_path: Path, protocol: str, own: str, hop_ms: float) -> None:
    """Cuts would be as close together as those of aligned checkpoints, and less of what is under way be outside."""
    path = tmp_path / "way.toml"
    path.write_text(ON_ITS_WAY.format(protocol=protocol, own=own), encoding="utf-8")
    rows = run(load(str(path)), 1).task_rows()
    delays = {row["operator"]: row["start_delay_ms"] for row in rows if row["checkpoint_id"] == 2}
    assert delays == {"a": 0.0, "map": pytest.approx(hop_ms), "sink": pytest.approx(2 * hop_ms)}


@pytest.mark.parametrize("topology", ["L", pytest.param("R", marks=pytest.mark.slow)])
def test_too_much_in_flight_fails_the_checkpoint(topology: str) -> None:
    """A checkpoint would write whatever lies in the channels, sources' too; or never end (protocol rule 18)."""
    settings = {"mode": "unaligned", "topology": topology, "until_s": 8.0, "warmup_s": 2.0}
    most = max(row["persisted_bytes"] for row in run(load("flink_chain", settings), 1).task_rows())
    for limit, status in ((most, "COMPLETED"), (most - 1, "FAILED"), (1000, "FAILED")):
        result = run(load("flink_chain", settings | {"checkpoint.max_inflight_bytes": limit}), 1)
        ended = [row for row in result.checkpoint_rows() if row["status"] != "IN_PROGRESS"]
        assert result.verdict != "broken"
        assert status in {row["status"] for row in ended}
        assert {row["failure_reason"] for row in ended if row["status"] == "FAILED"} <= {"in-flight limit"}


# At 2 s a watermark ends a window of as many keys as there were events. A buffer takes ten results, and the sink 50 ms
# for one: ten buffers of the sender and ten of the receiver are full at once, and the barrier comes at 2.1 s.
BURST = """
topology = "src->win win->sink"
until_s = 2.5
protocol = "unaligned"
[source.src]
rate_per_s = {rate}
keys = 1_000_000
watermark_interval_s = 2.0
[operator.win]
kind = "window"
window_ms = 1990
[operator.sink]
kind = "sink"
service_s = 0.005
aligns = {aligns}
[channel.default]
form = "network"
exchange = "rebalance"
segment_bytes = 1000
overdraft_buffers = {overdraft}
[channel."src->win"]
segment_bytes = 32768
[checkpoint]
interval_s = 2.1
interruptible_timers = {interruptible}
"""


def start_of_the_burst(
    folder: Path, rate: float, overdraft: int, aligns: bool = True, interruptible: bool = False
) -> float:
    """The start delay of the operator that fires its windows, in ms."""
    path = folder / "burst.toml"
    values = {"aligns": str(aligns).lower(), "interruptible": str(interruptible).lower()}
    path.write_text(BURST.format(rate=rate, overdraft=overdraft, **values), encoding="utf-8")
    result = run(load(path), 1)
    assert result.verdict == "holds", result.violations[:3]
    (delay,) = [row["start_delay_ms"] for row in result.task_rows() if row["operator"] == "win"]
    return float(delay)


@pytest.mark.parametrize("aligns", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_no_barrier_is_taken_in_the_middle_of_a_step(tmp_path: Path, aligns: bool) -> None:
    """A task that fires very many windows would take the barrier with its results half out (FLINK-26762)."""
    # 240 results are 24 buffers: 20 are there, two more are free by 2.1 s, the other two at 2.15 and 2.2 s
    assert start_of_the_burst(tmp_path, 120.0, 0, aligns) == pytest.approx(100.0, abs=10.0)
    assert start_of_the_burst(tmp_path, 120.0, 1, aligns) == pytest.approx(50.0, abs=10.0)
    assert start_of_the_burst(tmp_path, 120.0, 5, aligns) == 0.0
    # ten times as many: 215 buffers more, of which five are overdraft
    assert start_of_the_burst(tmp_path, 1200.0, 5, aligns) == pytest.approx(10_645.0, abs=60.0)


def test_timers_may_be_interruptible(tmp_path: Path) -> None:
    """The option by which a barrier need not wait for all timers of a watermark would do nothing (FLINK-20217)."""
    assert start_of_the_burst(tmp_path, 1200.0, 0, interruptible=True) == 0.0
    assert start_of_the_burst(tmp_path, 1200.0, 0, interruptible=False) > 10_000.0


# Two subtasks each; `heavy` and `after` are slow, and there are always records for them.
POINTWISE = """
topology = "a->heavy b->heavy heavy->after after->sink"
until_s = 9.0
protocol = "unaligned"
[source.a]
rate_per_s = 60.0
parallelism = 2
catch_up_s = 1.0
[source.b]
rate_per_s = 30.0
parallelism = 2
catch_up_s = 1.0
[operator.heavy]
kind = "union"
parallelism = 2
service_s = 0.02
[operator.after]
kind = "map"
parallelism = 2
service_s = 0.021
[operator.sink]
kind = "sink"
[channel.default]
form = "network"
exchange = "rebalance"
segment_bytes = 1000
[checkpoint]
interval_s = 4.0
hold = "channel"
"""


def pointwise(folder: Path, **exchanges: str) -> Any:
    """The job, with other exchanges where they are given: `a="forward"` is that of ``a->heavy``."""
    path = folder / "pointwise.toml"
    path.write_text(POINTWISE, encoding="utf-8")
    edges = {"a": "a->heavy", "b": "b->heavy", "heavy": "heavy->after", "after": "after->sink"}
    return load(path, {f'channel."{edges[name]}".exchange': kind for name, kind in exchanges.items()})


def kinds_of(result: Any) -> dict[str, bool]:
    """By operator, whether any of its parts recorded what was in flight into it."""
    tasks = {e[2] for e in result.entries if e[1] == "capture" and e[3] in result.scenario.topology.inputs(e[2])}
    return {name: any(result.scenario.topology.operator_of(t) == name for t in tasks) for name in ("heavy", "after")}


@pytest.mark.parametrize(
    ("exchanges", "records"),
    [
        ({}, {"heavy": True, "after": True}),
        ({"a": "forward"}, {"heavy": False, "after": True}),  # and not b->heavy either
        ({"b": "broadcast"}, {"heavy": False, "after": True}),
        ({"heavy": "forward"}, {"heavy": True, "after": False}),
        ({"a": "forward", "heavy": "forward"}, {"heavy": False, "after": False}),
        ({"a": "hash", "b": "hash", "heavy": "auto"}, {"heavy": True, "after": True}),
    ],
)
def test_an_operator_with_a_pointwise_input_aligns(
    tmp_path: Path, exchanges: dict[str, str], records: dict[str, bool]
) -> None:
    """Checkpoints would pass what no barrier of Flink overtakes (FLINK-21945), or differ at one operator's inputs."""
    scenario = pointwise(tmp_path, **exchanges)
    result = run(scenario, 1)
    assert result.verdict == "holds", result.violations[:3]
    assert kinds_of(result) == records
    aligned = [name for name, does in records.items() if not does]
    warned = [text for text in result.warnings if "aligns on all" in text]
    assert [name for name in records if any(repr(name) in text for text in warned)] == aligned
    for edge, channel in scenario.channels.items():
        named = any(f"{edge} is {channel.exchange}" in text for text in warned)
        assert named == (channel.exchange in ("forward", "broadcast"))
    for row in result.checkpoint_rows():
        assert row["status"] == "COMPLETED"
        assert (row["persisted_bytes"] > 0) == any(records.values())
    flags = {e[4].is_unaligned for e in result.entries if e[1] == "take" and type(e[4]) is CheckpointBarrier}
    assert flags == {True}  # also at those that align: a gate whose flags differ would abort (protocol rule 6)


def test_all_pointwise_is_as_aligned(tmp_path: Path) -> None:
    """A job of forward edges would hear that unaligned checkpoints make it fast."""
    forward = dict.fromkeys(("a", "b", "heavy"), "forward")
    unaligned = run(pointwise(tmp_path, **forward), 1)
    aligned = run(load(tmp_path / "pointwise.toml", {**unaligned.scenario.settings, "protocol": "aligned"}), 1)
    durations = [[row["end_to_end_duration_ms"] for row in each.checkpoint_rows()] for each in (unaligned, aligned)]
    assert durations[0] == durations[1]
    assert min(durations[0]) > 1000.0
    assert aligned.scenario.warnings == ()


def test_an_exchange_left_to_auto_is_pointed_out(tmp_path: Path) -> None:
    """A user who leaves the exchange of equal parallelism open would not hear that Flink takes forward, and aligns."""
    texts = run(pointwise(tmp_path, heavy="auto"), 1).warnings
    assert [text.split(",")[0] for text in texts if "exchange" in text] == [
        "'after' goes unaligned",
    ]
    assert "heavy->after is left to auto" in texts[0]
    one = {f"{table}.parallelism": 1 for table in ("source.a", "source.b", "operator.heavy", "operator.after")}
    assert load(tmp_path / "pointwise.toml", {"channel.default.exchange": "auto", **one}).warnings == ()


def test_a_part_waits_for_all_its_barriers_to_leave(tmp_path: Path) -> None:
    """A barrier that waits for a sink's full queue would come too late to record what it passes elsewhere."""
    path = tmp_path / "two.toml"
    path.write_text(TWO_WAYS, encoding="utf-8")
    result = run(load(path), 1)
    assert result.verdict == "holds", result.violations[:3]
    left = {
        (e[2], e[4].checkpoint_id): e[0] for e in result.entries if e[1] == "send" and type(e[4]) is CheckpointBarrier
    }
    acknowledged = {(e[2], e[4]): e[0] for e in result.entries if e[1] == ">ack"}
    assert len([key for key in left if key[0] == "work"]) >= 5
    assert all(acknowledged[key] >= at_ns for key, at_ns in left.items())
    assert any(e[1] == "capture" and e[3] == "work->next" for e in result.entries)


TWO_WAYS = """
topology = "a->work work->sink work->next next->out"
until_s = 8.0
protocol = "unaligned"
[source.a]
rate_per_s = 60.0
catch_up_s = 1.0
[operator.work]
kind = "map"
[operator.next]
kind = "map"
service_s = { dist = "exponential", mean = 0.019 }
[operator.sink]
kind = "sink"
service_s = { dist = "exponential", mean = 0.02 }
[operator.out]
kind = "sink"
[channel.default]
capacity = 4
[channel."work->next"]
form = "network"
segment_bytes = 400
[checkpoint]
interval_s = 1.0
"""
