"""The waits of a checkpoint: every nanosecond of them, once, and as the tasks' own statistics have it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from barrierlab.impl import CheckpointBarrier, EndOfInput
from barrierlab.sim import load, run, shipped
from barrierlab.sim.checkpoint.critical_path import (
    ACKNOWLEDGEMENT,
    ALIGNMENT,
    ASYNC,
    COORDINATOR,
    MANIFEST,
    OUTPUT,
    START_DELAY,
    STORE,
    SYNC,
    TRIGGER,
    Piece,
)
from barrierlab.sim.checkpoint.result import Result
from tests.breadth import first
from tests.sim.support import scenario, with_changes
from tests.sim.test_shipped import SHORT, SMALL, _each_choice

CHAIN: dict[str, Any] = {
    "topology": "a->map map->sink",
    "until_s": 4.5,
    "source": {"a": {"rate_per_s": 10.0, "sync_s": 0.02}},
    "operator": {"map": {"sync_s": 0.03}, "sink": {"kind": "sink"}},
    "channel": {"default": {"form": "network", "latency_s": 0.005}},
    "checkpoint": {
        "interval_s": 2.0,
        "command_s": 0.001,
        "trigger_latency_s": 0.002,
        "ack_latency_s": 0.004,
        "sync_s": 0.04,
        "async_s": 0.1,
        "hold": "channel",
    },
    "store": {"manifest_s": 0.06},
}


def explained(result: Result) -> dict[int, tuple[Piece, ...]]:
    """The paths of all completed checkpoints, each without a gap, and at every task within its own statistics."""
    tasks: dict[tuple[int, str], dict[str, Any]] = {}
    topology = result.scenario.topology
    for row in result.task_rows():
        tasks[row["checkpoint_id"], topology.tasks_of(row["operator"])[row["subtask"]]] = row
    paths = {}
    for row in result.checkpoint_rows():
        checkpoint_id = row["checkpoint_id"]
        if row["status"] != "COMPLETED":
            assert "longest_wait" not in row
            with pytest.raises(KeyError, match=f"checkpoint {checkpoint_id} is {row['status']}"):
                result.critical_path(checkpoint_id)
            continue
        record, path = result.record(checkpoint_id), result.critical_path(checkpoint_id)
        assert record.ended_ns is not None
        edges = [record.triggered_ns, *(piece.end_ns for piece in path)]
        assert [piece.begin_ns for piece in path] == edges[:-1]
        assert edges[-1] == record.ended_ns
        assert all(piece.duration_ns > 0 for piece in path)
        spent: defaultdict[tuple[str, str], int] = defaultdict(int)
        for piece in path:
            assert piece.where in (*topology.tasks, COORDINATOR, STORE)
            spent[piece.where, piece.what] += piece.duration_ns
        for (where, what), duration_ns in spent.items():
            column = {START_DELAY: "start_delay_ms", ALIGNMENT: "alignment_ms", SYNC: "sync_ms", ASYNC: "async_ms"}
            if what in column:
                assert duration_ns / 1e6 <= tasks[checkpoint_id, where][column[what]] + 1e-9
        names = ("path_start_delay_ms", "path_alignment_ms", "path_sync_ms", "path_rest_ms")
        assert sum(row[name] for name in names) == pytest.approx(row["end_to_end_duration_ms"])
        paths[checkpoint_id] = path
    return paths


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", shipped())
def test_every_nanosecond_is_explained_once(name: str, seed: int) -> None:
    """A report would leave time out, count it twice, or lay it at the wrong task's door."""
    explained_count = 0
    for settings in first(_each_choice(name)[:4], 2):
        short = SMALL.get(name, {} if name == "survive_anything" else SHORT)
        explained_count += len(explained(run(load(name, settings | short), seed)))
    assert explained_count >= 2


def test_a_path_by_hand(tmp_path: Path) -> None:
    """The pieces would be right in sum and wrong one by one."""
    for row in explained(run(scenario(tmp_path, CHAIN), 1)).values():
        assert [(p.where, p.what, p.waits_for, p.duration_ns / 1e6) for p in row] == [
            (COORDINATOR, TRIGGER, "the command", 1.0),
            (COORDINATOR, TRIGGER, "the way of the command", 2.0),
            ("a", SYNC, "its image", 20.0),
            ("map", START_DELAY, "a->map", 5.0),
            ("map", SYNC, "its image", 30.0),
            ("sink", START_DELAY, "map->sink", 5.0),
            ("sink", SYNC, "its image", 40.0),
            ("sink", ASYNC, "its part to be saved", 100.0),
            ("sink", ACKNOWLEDGEMENT, "the way to the coordinator", 4.0),
            (STORE, MANIFEST, "the manifest", 60.0),
        ]


def test_an_unaligned_barrier_goes_before_the_image_and_waits_for_a_step(tmp_path: Path) -> None:
    """The blocking part of an unaligned snapshot would not be waited for, or its barrier would wait for it."""
    slow = {"source": {"a": {"rate_per_s": 100.0, "catch_up_s": 1.0}}, "operator": {"map": {"service_s": 0.05}}}
    slow["operator"]["sink"] = {"aligns": False}
    result = run(scenario(tmp_path, with_changes(with_changes(CHAIN, slow), {"protocol": "unaligned"})), 1)
    assert result.verdict == "holds"
    for checkpoint_id, path in explained(result).items():
        record = result.record(checkpoint_id)
        sent_ns = {
            e[2]: e[0]
            for e in result.entries
            if e[1] == "send" and type(e[4]) is CheckpointBarrier and e[4].checkpoint_id == checkpoint_id
        }
        assert sent_ns["map"] == record.parts["map"].snapshot_ns
        reported_ns, cut_ns = record.parts["sink"].reported_ns, record.parts["sink"].snapshot_ns
        assert reported_ns is not None
        assert cut_ns is not None
        assert reported_ns - cut_ns == 40_000_000
        (step,) = [piece for piece in path if piece.waits_for == "its step"]
        assert (step.where, step.what) == ("map", START_DELAY)
        assert 0 < step.duration_ns <= 50_000_000


def test_a_merge_that_aligns_is_told_from_a_queue_before_it() -> None:
    """The sink, which acknowledges last, would be said to wait for nearly all of it, whoever aligned before it."""
    result = run(load("flink_union", {"until_s": 16.0, "warmup_s": 9.0}), 1)
    paths = {n: path for n, path in explained(result).items() if result.record(n).triggered_ns > 9e9}
    assert len(paths) >= 2
    for checkpoint_id, path in paths.items():
        spent: defaultdict[str, int] = defaultdict(int)
        for piece in path:
            spent[result.scenario.topology.operator_of(piece.where) if piece.where != COORDINATOR else ""] += (
                piece.duration_ns
            )
        parts, (fast,) = result.record(checkpoint_id).parts, {p.where for p in path if p.where.startswith("fastA")}
        assert sum(
            p.duration_ns for p in path if p.what in (TRIGGER, START_DELAY) and p.where in (fast, COORDINATOR)
        ) == (parts[fast].first_barrier_ns - result.record(checkpoint_id).triggered_ns)
        assert spent["fastA"] + spent["merge"] > 0.95 * sum(piece.duration_ns for piece in path)
        (merge,) = [
            piece
            for piece in path
            if piece.where.startswith("merge") and piece.waits_for != "the way to the coordinator"
        ]
        assert (merge.what, merge.waits_for.startswith("fastA")) == (ALIGNMENT, True)


def test_what_else_a_path_can_hold(tmp_path: Path) -> None:
    """A full output, a timeout, an end of input or an older manifest would be called by another's name."""
    full = {
        "topology": "a->map map->sink",
        "until_s": 9.0,
        "source": {"a": {"rate_per_s": 50.0, "catch_up_s": 1.0}},
        "operator": {"map": {}, "sink": {"kind": "sink", "service_s": 0.1}},
        "channel": {"default": {"capacity": 2}},
        "checkpoint": {"interval_s": 1.0, "max_concurrent": 3},
        "store": {"manifest_s": 1.2},
    }
    found = {
        (p.where, p.what, p.waits_for) for path in explained(run(scenario(tmp_path, full), 1)).values() for p in path
    }
    assert {("map", OUTPUT, "map->sink"), (STORE, MANIFEST, "an older manifest")} <= found
    late = {
        "topology": "a->join b->join join->sink",
        "until_s": 9.0,
        "protocol": "unaligned",
        "source": {"a": {"rate_per_s": 100.0, "catch_up_s": 1.0}, "b": {"rate_per_s": 1.0}},
        "operator": {"join": {"kind": "union", "service_s": 0.02}, "sink": {"kind": "sink"}},
        "channel": {"default": {"form": "network", "segment_bytes": 400, "flush_timeout_s": 0.01}},
        "checkpoint": {"interval_s": 2.0, "aligned_checkpoint_timeout_s": 0.2, "hold": "channel"},
    }
    timeouts = [p for path in explained(run(scenario(tmp_path, late), 1)).values() for p in path]
    assert any(p.waits_for == "its timeout" and p.what == ALIGNMENT and p.where == "join" for p in timeouts)
    # Triggered at 1 s, a source ends at 1.25 s, before its command comes at 1.3 s: its end stands for its barrier.
    early = {"aligned_checkpoint_timeout_s": None, "interval_s": 1.0, "trigger_latency_s": 0.3}
    ends = with_changes(late, {"protocol": "aligned", "source": {"a": {"events": 125}}, "checkpoint": early})
    result = run(scenario(tmp_path, ends), 1)
    (path,) = [path for n, path in explained(result).items() if any(p.waits_for == "its end" for p in path)]
    (until,) = [p for p in path if p.waits_for == "its end"]
    assert (until.where, until.what) == ("a", OUTPUT)
    end_ns = next(e[0] for e in result.entries if e[1] == "send" and e[2] == "a" and type(e[4]) is EndOfInput)
    assert until.end_ns == end_ns
