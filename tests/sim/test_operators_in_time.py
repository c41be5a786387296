"""Every operator, exchange and way to abort a checkpoint, in simulated time."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from barrierlab.impl import CancelBarrier, CheckpointBarrier
from barrierlab.sim import run
from tests.sim.support import delivered, emitted, scenario, sent, statuses, with_changes

# Two finite sources of two subtasks each, a parallel operator, a sink; six checkpoints or so.
WIDE: dict[str, Any] = {
    "topology": "a->work b->work work->sink",
    "until_s": 10.0,
    "source": {
        name: {
            "rate_per_s": rate,
            "parallelism": 2,
            "arrivals": "poisson",
            "events": events,
            "keys": 8,
            "key_skew": 0.7,
            "watermark_interval_s": 0.05,
        }
        for name, rate, events in (("a", 60.0, 150), ("b", 40.0, 90))
    },
    "operator": {
        "work": {"kind": "union", "parallelism": 2, "service_s": {"dist": "exponential", "mean": 0.002}},
        "sink": {"kind": "sink"},
    },
    "channel": {"default": {"capacity": 4, "latency_s": {"dist": "exponential", "mean": 0.005}}},
    "checkpoint": {"interval_s": 0.4},
}
KINDS = {
    "map": {},
    "flat_map": {"fanout": 3},
    "filter": {"selectivity": 0.4},
    "aggregate": {},
    "join": {"window_ms": 100},
    "union": {},
    "window": {"window_ms": 100},
}
EVENTS = 2 * (150 + 90)


def _wide(folder: Path, kind: str, exchange: str, **changes: Any) -> Any:
    own: dict[str, Any] = {"operator": {"work": {"kind": kind, **KINDS[kind]}}}
    own["channel"] = {"a->work": {"exchange": exchange}, "b->work": {"exchange": exchange}}
    return run(scenario(folder, with_changes(WIDE, own), **changes), 5)


@pytest.mark.parametrize("exchange", ["forward", "rebalance", "hash", "broadcast"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_operator_holds_under_every_exchange(kind: str, exchange: str, tmp_path: Path) -> None:
    """One kind of operator or exchange would lose, double or reorder events, or never end."""
    result = _wide(tmp_path, kind, exchange)
    assert result.verdict == "holds", result.violations
    assert statuses(result).count("COMPLETED") >= 4
    assert "FAILED" not in "".join(statuses(result))
    assert len(emitted(result)) == EVENTS
    at_work = [event for task in ("work[0]", "work[1]") for event in delivered(result, task)]
    assert len(at_work) == EVENTS * (2 if exchange == "broadcast" else 1)
    assert Counter(map(str, at_work)) == Counter(
        str(event) for _, event in emitted(result) for _ in range(2 if exchange == "broadcast" else 1)
    )
    outputs = [event for task in ("work[0]", "work[1]") for event in sent(result, task)]
    assert len(delivered(result, "sink")) == len(outputs)
    expected = {"map": len(at_work), "union": len(at_work), "aggregate": len(at_work), "flat_map": 3 * len(at_work)}
    assert len(outputs) == expected.get(kind, len(outputs))
    assert outputs
    if kind == "filter":
        assert 0.3 < len(outputs) / len(at_work) < 0.5


def test_the_exchanges_choose_as_they_say(tmp_path: Path) -> None:
    """Equal keys would part, or turns not be taken, and parallel state be wrong."""
    keys: dict[str, set[Any]] = {}
    hashed = _wide(tmp_path, "aggregate", "hash")
    for task in ("work[0]", "work[1]"):
        keys[task] = {event.key for event in delivered(hashed, task)}
    assert not keys["work[0]"] & keys["work[1]"]
    assert keys["work[0]"] | keys["work[1]"] == set(range(8))
    turns = _wide(tmp_path, "map", "rebalance")
    for channel in ("a[0]->work[0]", "a[0]->work[1]"):
        numbers = [e[4].sequence for e in turns.entries if e[1] == "send" and e[3] == channel and hasattr(e[4], "key")]
        assert len(numbers) == 75
        assert {b - a for a, b in itertools.pairwise(numbers)} == {2}


def test_skewed_keys_make_one_subtask_the_busy_one(tmp_path: Path) -> None:
    """Key skew would have no effect, so its cost could not be studied."""
    source = {name: {"key_skew": 4.0} for name in ("a", "b")}
    result = _wide(tmp_path, "aggregate", "hash", source=source)
    most, least = sorted((len(delivered(result, "work[0]")), len(delivered(result, "work[1]"))), reverse=True)
    assert most > 5 * least


def test_windows_count_what_was_emitted(tmp_path: Path) -> None:
    """A windowed count would depend on when checkpoints, watermarks and buffers came."""
    result = _wide(tmp_path, "window", "hash")
    expected: dict[Any, list[int]] = {}
    for _, event in emitted(result):
        end = event.timestamp_ms - event.timestamp_ms % 100 + 99
        total = expected.setdefault((end, event.key), [0, 0])
        total[0] += 1
        total[1] += event.value
    found = [event for task in ("work[0]", "work[1]") for event in sent(result, task)]
    assert {(e.timestamp_ms, e.key): list(e.value) for e in found} == expected
    assert len(found) == len(expected) > 100


def test_a_join_pairs_what_was_emitted(tmp_path: Path) -> None:
    """A join would miss or invent pairs, depending on when its inputs came."""
    result = _wide(tmp_path, "join", "hash")
    sides = {"a": Counter[Any](), "b": Counter[Any]()}
    for _, event in emitted(result):
        sides[event.source[0]][(event.timestamp_ms // 100, event.key)] += 1
    pairs = sum(count * sides["b"][place] for place, count in sides["a"].items())
    assert len(delivered(result, "sink")) == pairs > 50


def test_totals_by_key_are_right(tmp_path: Path) -> None:
    """A keyed count would be off after a checkpoint, or mix up keys."""
    result = _wide(tmp_path, "aggregate", "hash")
    last = {event.key: event.value for task in ("work[0]", "work[1]") for event in sent(result, task)}
    expected = Counter(event.key for _, event in emitted(result))
    assert {key: count for key, (count, _) in last.items()} == expected


@pytest.mark.parametrize("form", ["spsc", "network"])
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("hold", ["aligner", "channel"])
def test_every_form_of_channel_holds(form: str, local: bool, hold: str, tmp_path: Path) -> None:
    """One form of the channel, or one way to hold, would lose events or deadlock."""
    channel = {"form": form, "local": local, "segment_bytes": 500, "flush_timeout_s": 0.02}
    if local:
        channel["latency_s"] = 0.0
    result = run(scenario(tmp_path, WIDE, channel={"default": channel}, checkpoint={"hold": hold}), 5)
    assert result.verdict == "holds", result.violations
    assert len(delivered(result, "sink")) == EVENTS
    assert statuses(result).count("COMPLETED") >= 4


# Speed and stalls.

LINE: dict[str, Any] = {
    "topology": "a->work work->sink",
    "until_s": 20.0,
    "source": {"a": {"rate_per_s": 1000.0}},
    "operator": {"work": {"kind": "map", "service_s": 0.008}, "sink": {"kind": "sink", "service_s": 0.001}},
    "channel": {"default": {"capacity": 10}},
    "checkpoint": {"interval_s": 2.0},
}


def test_a_bottleneck_sets_the_pace(tmp_path: Path) -> None:
    """The throughput of a saturated job would not be that of its slowest task."""
    result = run(scenario(tmp_path, LINE), 1)
    row = result.run_row()
    assert row["throughput_per_s"] == pytest.approx(125.0, rel=0.002)
    assert row["bottleneck"] == "work"
    assert row["backpressure_max"] == pytest.approx(1.0, abs=0.01)
    pressure = result.as_json()["backpressure"]
    assert pressure["work"]["busyTimeMsPerSecond"] == pytest.approx(1000, abs=2)
    assert pressure["sink"]["busyTimeMsPerSecond"] == pytest.approx(125, abs=1)
    assert pressure["a"]["idleTimeMsPerSecond"] == pytest.approx(0, abs=2)


def test_a_saturated_checkpoint_takes_as_long_as_what_is_queued(tmp_path: Path) -> None:
    """The law N / C (Barrier travel): the barrier's delay is what is ahead of it, at the bottleneck's pace."""
    result = run(scenario(tmp_path, LINE), 1)
    delays = [row["start_delay_ms"] for row in result.task_rows() if row["operator"] == "work"]
    assert len(delays) >= 8
    # ten in the channel, one in service, one in the source's hand, which is the next to be pushed
    assert all(10 * 8 <= delay <= 12 * 8 for delay in delays), delays


@pytest.mark.parametrize(
    ("task", "stalled"), [("sink", ["sink"]), ("work", ["work[0]", "work[1]"]), ("work[1]", ["work[1]"])]
)
def test_a_stall_delays_checkpoints_and_loses_nothing(task: str, stalled: list[str], tmp_path: Path) -> None:
    """A stall would not be felt, or what it holds up be lost."""
    wide = with_changes(WIDE, {"channel": {"default": {"exchange": "rebalance"}}})
    free = run(scenario(tmp_path, wide), 5)
    result = run(scenario(tmp_path, wide, fault=[{"kind": "stall", "task": task, "at_s": 0.7, "for_s": 0.8}]), 5)
    assert result.verdict == "holds", result.violations
    assert [e[2] for e in result.entries if e[1] == ">stall"] == stalled
    assert len(delivered(result, "sink")) == EVENTS
    between = [e for e in result.entries if e[2] in stalled and 700_000_000 < e[0] < 1_500_000_000]
    assert [e for e in between if e[1] == "take"] == []
    longest = max(row["end_to_end_duration_ms"] for row in result.checkpoint_rows())
    assert longest > 690 > 3 * max(row["end_to_end_duration_ms"] for row in free.checkpoint_rows())


def test_stalls_that_overlap_end_with_the_last(tmp_path: Path) -> None:
    """The end of one stall would end another."""
    stalls = [
        {"kind": "stall", "task": "work[0]", "at_s": 0.5, "for_s": 1.0},
        {"kind": "stall", "task": "work", "at_s": 0.7, "for_s": 0.2},
    ]
    result = run(scenario(tmp_path, WIDE, fault=stalls), 5)
    takes = [e[0] for e in result.entries if e[2] == "work[0]" and e[1] == "take"]
    assert not [at for at in takes if 500_000_000 < at < 1_500_000_000]
    assert result.verdict == "holds", result.violations


# Checkpoints that are aborted.


def _entries(result: Any, verb: str) -> list[tuple[str, Any]]:
    return [(e[2], e[4]) for e in result.entries if e[1] == verb]


@pytest.mark.parametrize("hold", ["aligner", "channel"])
def test_an_alignment_that_is_too_late_is_aborted_by_the_task(hold: str, tmp_path: Path) -> None:
    """A missing barrier would block an input for ever (protocol rule 11)."""
    result = run(
        scenario(
            tmp_path,
            checkpoint={"alignment_timeout_s": 0.2, "hold": hold},
            fault=[{"kind": "stall", "task": "b", "at_s": 1.9, "for_s": 0.6}],
        ),
        3,
    )
    assert statuses(result) == ["COMPLETED", "FAILED: expired", "COMPLETED", "COMPLETED", "COMPLETED"]
    assert ("join", None) in _entries(result, ">expire")
    assert ("join", (2, "expired")) in _entries(result, "decline")
    assert result.verdict == "holds", result.violations
    row = result.checkpoint_rows()[1]
    assert row["end_to_end_duration_ms"] == pytest.approx(200.0)


def test_a_checkpoint_that_is_too_late_is_aborted_by_the_coordinator(tmp_path: Path) -> None:
    """A checkpoint would be pending for ever, and no other begin."""
    result = run(
        scenario(
            tmp_path,
            checkpoint={"timeout_s": 0.3},
            fault=[{"kind": "stall", "task": "sink", "at_s": 1.9, "for_s": 0.6}],
        ),
        3,
    )
    assert statuses(result) == ["COMPLETED", "FAILED: expired", "COMPLETED", "COMPLETED", "COMPLETED"]
    assert ("coordinator", 2) in _entries(result, ">expire")
    assert _entries(result, "decline") == []
    assert {task for task, _ in _entries(result, ">abort")} == {"a", "b", "join", "sink"}
    assert result.verdict == "holds", result.violations


def test_a_cancel_reaches_everybody_behind_the_task_that_gave_up(tmp_path: Path) -> None:
    """Tasks downstream would wait for a barrier that does not come until their own deadline (protocol rule 10)."""
    result = run(
        scenario(
            tmp_path,
            topology="a->join b->join join->left join->right left->meet right->meet meet->sink",
            operator={name: {"kind": "union"} for name in ("left", "right", "meet")},
            checkpoint={"alignment_timeout_s": 0.2, "trigger_latency_s": 0.5},
            fault=[{"kind": "stall", "task": "b", "at_s": 1.9, "for_s": 1.2}],
        ),
        3,
    )
    assert statuses(result)[1] == "FAILED: expired"
    cancels = {(e[2], e[3]) for e in result.entries if e[1] == "take" and e[4] == CancelBarrier(2)}
    behind = {"join->left", "join->right", "left->meet", "right->meet", "meet->sink"}
    assert behind <= {channel for _, channel in cancels}
    assert result.verdict == "holds", result.violations


def test_too_many_bytes_cost_the_checkpoint(tmp_path: Path) -> None:
    """Held bytes would grow beyond their limit, or the event at the limit be lost."""
    result = run(scenario(tmp_path, checkpoint={"max_buffer_memory_bytes": 350}), 3)
    assert set(statuses(result)) == {"FAILED: buffer limit"}
    assert max(task.most_buffered_bytes for task in result.history.tasks.values()) <= 350
    assert result.verdict == "holds", result.violations
    assert delivered(result, "join")[-1].sequence > 100


def test_a_run_that_ends_with_a_refused_message_in_hand_is_not_broken(tmp_path: Path) -> None:
    """A run that ends between the refusal of a message and its second offer would be called broken."""
    verdicts = set()
    for until_s in (1.02, 1.03, 1.035, 1.04, 1.05, 1.06, 1.08):
        small = scenario(tmp_path, checkpoint={"max_buffer_memory_bytes": 350}, until_s=until_s)
        verdicts.add(run(small, 3).verdict)
    assert verdicts == {"holds"}


def test_a_full_input_is_not_read_and_the_checkpoint_completes(tmp_path: Path) -> None:
    """An input at its limit would take more, or deadlock the alignment."""
    result = run(scenario(tmp_path, checkpoint={"max_buffer_per_input": 3}), 3)
    assert set(statuses(result)) == {"COMPLETED"}
    assert max(channel.most_buffered for channel in result.history.channels.values()) == 3
    free = run(scenario(tmp_path), 3)
    assert max(channel.most_buffered for channel in free.history.channels.values()) > 3
    assert result.verdict == "holds", result.violations


def test_periodic_sources_ask_for_their_checkpoints(tmp_path: Path) -> None:
    """A source's own interval would be ignored, or each source begin a checkpoint of its own (protocol rule 2)."""
    periodic = {name: {"trigger": "periodic"} for name in ("a", "b")}
    result = run(scenario(tmp_path, source=periodic, checkpoint={"interval_s": 0.8}), 3)
    assert set(statuses(result)) == {"COMPLETED"}
    assert len(statuses(result)) in (6, 7)
    assert result.verdict == "holds", result.violations
    assert result._metrics.refusals  # the second source that asks learns that one is under way
    assert max(row["trigger_timestamp_ms"] for row in result.checkpoint_rows()) < 6000


def test_a_periodic_source_alone_sets_the_pace_until_the_end(tmp_path: Path) -> None:
    """The coordinator's own interval would double every checkpoint, or a source ask on after the scenario's end."""
    result = run(
        scenario(
            tmp_path,
            source={"a": {"trigger": "periodic"}},
            checkpoint={"interval_s": 0.8, "max_concurrent": 3, "async_s": 1.0},
        ),
        3,
    )
    triggers = [row["trigger_timestamp_ms"] for row in result.checkpoint_rows()]
    assert triggers == [800.0 * n for n in range(1, 8)]
    assert set(statuses(result)) == {"COMPLETED"}
    assert result.verdict == "holds", result.violations


def test_two_checkpoints_may_be_under_way(tmp_path: Path) -> None:
    """A second barrier behind the first would be lost, or end the first."""
    result = run(
        scenario(
            tmp_path,
            channel={"b->join": {"latency_s": 0.7}},
            checkpoint={"interval_s": 0.5, "max_concurrent": 2},
        ),
        3,
    )
    rows = result.checkpoint_rows()
    assert {row["status"] for row in rows} == {"COMPLETED"}
    ends = [row["trigger_timestamp_ms"] + row["end_to_end_duration_ms"] for row in rows]
    assert any(later["trigger_timestamp_ms"] < end for later, end in zip(rows[1:], ends, strict=False))
    held = [e[4] for e in result.entries if e[1] == "buffer" and e[2] == "join"]
    assert any(type(message) is CheckpointBarrier for message in held)
    assert result.verdict == "holds", result.violations


def test_a_command_that_nobody_claimed_gives_way_to_the_next(tmp_path: Path) -> None:
    """A stalled source would emit a barrier of long ago, or the checkpoint that gave way never end (rule 3)."""
    result = run(
        scenario(
            tmp_path,
            checkpoint={"interval_s": 0.5, "max_concurrent": 2, "timeout_s": 30.0},
            fault=[{"kind": "stall", "task": "b", "at_s": 0.9, "for_s": 1.0}],
        ),
        3,
    )
    assert "FAILED: replaced" in statuses(result)
    assert statuses(result)[-1] == "COMPLETED"
    assert result.verdict == "holds", result.violations


def test_a_pause_is_kept_between_checkpoints(tmp_path: Path) -> None:
    """Checkpoints would follow each other without a break when they take long."""
    result = run(scenario(tmp_path, checkpoint={"interval_s": 0.1, "min_pause_s": 0.4, "async_s": 0.2}), 3)
    rows = result.checkpoint_rows()
    assert len(rows) >= 7
    for before, after in itertools.pairwise(rows):
        end = before["trigger_timestamp_ms"] + before["end_to_end_duration_ms"]
        assert after["trigger_timestamp_ms"] == pytest.approx(end + 400.0)
    assert result.verdict == "holds", result.violations


def test_what_is_aborted_shows_in_the_rows(tmp_path: Path) -> None:
    """A failed checkpoint would look like one that took no time."""
    result = run(scenario(tmp_path, checkpoint={"max_buffer_memory_bytes": 350}), 3)
    row = result.checkpoint_rows()[0]
    assert (row["status"], row["failure_reason"], row["persisted_bytes"]) == ("FAILED", "buffer limit", 0)
    assert 0 < row["end_to_end_duration_ms"] < 50
