"""Recovery: whatever crashes, and whenever, every event counts once, and the figures say what it cost."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barrierlab.impl import CheckpointBarrier, EndOfInput
from barrierlab.sim import run
from tests.breadth import examples
from tests.sim.support import (
    CHANNELS,
    FAILING,
    LATE,
    MODES,
    committed,
    delivered,
    emitted,
    moves,
    scenario,
    statuses,
    with_changes,
)

SEED = 4
CRASHES: dict[str, list[dict[str, Any]]] = {
    "an operator's subtask": [{"kind": "crash", "task": "work[0]", "at_s": 2.2}],
    "a source, with a checkpoint under way": [{"kind": "crash", "task": "a", "at_s": 1.82}],
    "the sink, and then all": [
        {"kind": "crash", "task": "sink", "at_s": 2.25},
        {"kind": "crash", "task": "all", "at_s": 4.0},
    ],
    "before the first checkpoint": [{"kind": "crash", "task": "work", "at_s": 0.3}],
    "the coordinator": [{"kind": "coordinator_crash", "at_s": 2.43}],
    "during recovery": [
        {"kind": "crash", "task": "map", "at_s": 2.2},
        {"kind": "crash", "task": "work", "at_s": 2.5},
        {"kind": "coordinator_crash", "at_s": 2.8},
    ],
}


EVERY = [
    pytest.param(channel, mode, crash, marks=[pytest.mark.slow] * ((a + b + c) % 3 > 0))
    for (a, channel), (b, mode), (c, crash) in product(enumerate(CHANNELS), enumerate(MODES), enumerate(CRASHES))
]
"""Two of three are slow; in the others each crash meets each mode and each channel, and these each other."""


@pytest.mark.parametrize(("channel", "mode", "crash"), EVERY)
def test_whatever_crashes_every_event_counts_once(channel: str, mode: str, crash: str, tmp_path: Path) -> None:
    """An event would be lost or counted twice after some crash, in some mode, on some channel."""
    hold = "channel" if len(crash) % 2 else "aligner"
    job = with_changes(
        with_changes(FAILING, MODES[mode]), {"channel": {"default": CHANNELS[channel]}, "checkpoint": {"hold": hold}}
    )
    result = run(scenario(tmp_path, job, fault=CRASHES[crash]), SEED)
    assert result.verdict == "holds", result.violations
    assert len(moves(result, ">restore")) == len(result.recovery_rows()) == (2 if "then" in crash else 1)
    assert statuses(result)[-1] == "COMPLETED"
    visible = Counter(committed(result))
    assert set(visible.values()) == {1}
    assert len(visible) > 500


def test_what_crashes_stops_dead_and_the_others_go_on(tmp_path: Path) -> None:
    """A dead task would still be heard, or its neighbours know at once."""
    job = with_changes(FAILING, {"recovery": {"detection_s": 0.3}})
    result = run(scenario(tmp_path, job, fault=[{"kind": "crash", "task": "work[0]", "at_s": 2.2}]), SEED)
    place = {verb: next(i for i, e in enumerate(result.entries) if e[1] == verb) for verb in (">crash", ">restore")}
    between = result.entries[place[">crash"] + 1 : place[">restore"]]
    assert {e[2] for e in between} >= {"a", "b", "work[1]", "map"}
    assert "work[0]" not in {e[2] for e in between}
    assert max(e[0] for e in between) <= 2_500_000_000
    assert result.entries[place[">restore"]][0] == 2_800_000_000


def test_an_async_part_dies_with_its_task(tmp_path: Path) -> None:
    """A checkpoint would complete with a part that was never saved."""
    job = with_changes(FAILING, {"checkpoint": {"async_s": 0.2}, "recovery": {"detection_s": 1.0}})
    crash = [{"kind": "crash", "task": "map", "at_s": 1.35}]  # it cut at 1.2 s and a little, and saves until 1.4
    result = run(scenario(tmp_path, job, fault=crash), SEED)
    assert result.verdict == "holds", result.violations
    assert [e[2] for e in moves(result, "snapshot") if e[4][0] == 2 and e[2] == "map"] == ["map"]
    assert statuses(result)[:2] == ["COMPLETED", "FAILED: job failed"]
    assert result.recovery_rows()[0]["checkpoint_id"] == 1


def test_sources_replay_the_very_events(tmp_path: Path) -> None:
    """A replay would bring other events than those that were lost."""
    result = run(scenario(tmp_path, fault=CRASHES["an operator's subtask"], base=FAILING), SEED)
    first: dict[Any, str] = {}
    again = 0
    for _, event in emitted(result):
        if event in first:
            again += 1
            assert repr(event) == first[event]
        first.setdefault(event, repr(event))
    assert again == result.run_row()["events_replayed"] > 50
    sequences = [event.sequence for _, event in emitted(result, "a")]
    assert sorted(set(sequences)) == list(range(1, max(sequences) + 1))


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("mode", ["unaligned", "timeout"])
def test_in_flight_data_comes_first_and_once(channel: str, mode: str, tmp_path: Path) -> None:
    """Anything that was in flight would be lost, come twice, or behind what the sender sends anew."""
    slow = {"operator": {"map": {"service_s": {"dist": "exponential", "mean": 0.006}}}}
    job = with_changes(with_changes(FAILING, MODES[mode]), {"channel": {"default": CHANNELS[channel]}, **slow})
    result = run(scenario(tmp_path, job, fault=[{"kind": "crash", "task": "sink", "at_s": 3.2}]), SEED)
    assert result.verdict == "holds", result.violations
    back = moves(result, "restored_in_flight")
    assert len(back) >= 10
    assert "map" in {e[2] for e in back}
    begin = next(i for i, e in enumerate(result.entries) if e[1] == ">restore")
    for name in {e[3] for e in back}:
        expected = [e[4] for e in back if e[3] == name]
        taken = [e[4] for e in result.entries[begin:] if e[1] == "take" and e[3] == name]
        passed = [message for message in taken if type(message) is not CheckpointBarrier]
        assert passed[: len(expected)] == expected
    if channel in ("queue", "late queue"):  # they fill the queue up: the sender has to wait
        assert max(result.attempts.attempts[-1].history.channels[e[3]].deepest for e in back) <= 32


def test_a_finite_job_ends_with_everything_committed(tmp_path: Path) -> None:
    """The last events of a job that ends would never become visible."""
    job = with_changes(FAILING, {"until_s": 30.0, "source": {"a": {"events": 400}, "b": {"events": 100}}})
    whole = run(scenario(tmp_path, job), SEED)
    for name, crash in CRASHES.items():
        result = run(scenario(tmp_path, job, fault=crash), SEED)
        assert result.verdict == "holds", (name, result.violations)
        assert len(committed(result)) == 500
        assert Counter(committed(result)) == Counter(committed(whole))
        row = result.run_row()
        assert (row["events_in"], row["events_out"]) == (500, 500)
        assert statuses(result)[-1] == "COMPLETED"


def test_the_final_checkpoint_is_tried_until_it_is_stored(tmp_path: Path) -> None:
    """A store that fails when a job ends would cost its last results."""
    job = with_changes(FAILING, {"until_s": 30.0, "source": {"a": {"events": 300}, "b": {"events": 100}}})
    outage = {"kind": "failing_store", "at_s": 1.5, "for_s": 3.0}
    for later in ([], [{"kind": "coordinator_crash", "at_s": 4.0}], [{"kind": "crash", "task": "all", "at_s": 2.1}]):
        result = run(scenario(tmp_path, job, fault=[outage, *later]), SEED)
        assert result.verdict == "holds", result.violations
        assert len(committed(result)) == 400
        assert result.duration_ns > 4_500_000_000
        assert "FAILED: store failed" in statuses(result)


# 200 events in two seconds; then a part takes half a second to save, and a manifest 0.3.
BOUNDED: dict[str, Any] = {
    "topology": "a->map map->sink",
    "until_s": 30.0,
    "source": {"a": {"rate_per_s": 100.0, "events": 200}},
    "operator": {"map": {"service_s": 0.003}, "sink": {"kind": "sink"}},
    "checkpoint": {"interval_s": 1.1, "async_s": 0.5, "timeout_s": 5.0},
    "store": {"manifest_s": 0.3},
    "recovery": {"detection_s": 0.1, "restart_s": 0.2},
}


def final(result: Any) -> list[tuple[str, float | None]]:
    """Status and duration in ms of the checkpoints that were triggered when all tasks had ended, from 2 s on."""
    rows = [row for row in result.checkpoint_rows() if row["trigger_timestamp_ms"] > 2000.0]
    return [(row["failure_reason"] or row["status"], row["end_to_end_duration_ms"]) for row in rows]


def test_a_final_part_is_saved_before_its_manifest(tmp_path: Path) -> None:
    """The last checkpoint of a bounded job would be as good as free (FLIP-147)."""
    result = run(scenario(tmp_path, BOUNDED), 1)
    assert final(result) == [("COMPLETED", 800.0)]
    last = [row for row in result.task_rows() if row["checkpoint_id"] == 2]
    assert [(row["operator"], row["async_ms"], row["end_to_end_ms"]) for row in last] == [
        (task, 500.0, 500.0) for task in ("a", "map", "sink")
    ]


@pytest.mark.parametrize("task", ["a", "map", "sink", "all"])
@pytest.mark.parametrize(
    ("at_s", "again", "restored"),
    [
        (2.2, True, 1),  # while final snapshots are saved
        (2.45, True, 1),  # when they would be, but for the dead
        (2.55, False, 2),  # while the manifest is written, which the coordinator does
        (2.75, False, 2),
        (2.9, False, None),  # when all have left
    ],
)
def test_a_task_that_has_ended_can_fail_until_its_end_is_stored(
    tmp_path: Path, task: str, at_s: float, again: bool, restored: int | None
) -> None:
    """A crash while the last checkpoint is taken would cost nothing, or go unmentioned (FLIP-147)."""
    result = run(scenario(tmp_path, BOUNDED, fault=[{"kind": "crash", "task": task, "at_s": at_s}]), 1)
    assert result.verdict == "holds", result.violations
    assert len(committed(result)) == 200
    assert [reason for reason, _ in final(result)] == ["job failed"] * again + ["COMPLETED"]
    rows = result.recovery_rows()
    assert [row["checkpoint_id"] for row in rows] == ([] if restored is None else [restored])
    assert all((row["events_replayed"] > 0) == again for row in rows)


def test_a_task_that_has_ended_can_fail_while_others_go_on(tmp_path: Path) -> None:
    """A task would be gone for good with its end in no checkpoint."""
    job = with_changes(
        BOUNDED, {"topology": "a->map b->map map->sink", "source": {"b": {"rate_per_s": 10.0, "events": 10}}}
    )
    job = with_changes(job, {"operator": {"map": {"kind": "union"}}})
    # b ends at 1 s; checkpoint 1 is triggered at 1.1 s, its manifest written from 1.6 to 1.9 s
    for at_s, restored in ((1.05, [0]), (1.3, [0]), (1.7, [1]), (1.95, [])):
        result = run(scenario(tmp_path, job, fault=[{"kind": "crash", "task": "b", "at_s": at_s}]), 1)
        assert result.verdict == "holds", result.violations
        assert len(committed(result)) == 210
        assert [row["checkpoint_id"] for row in result.recovery_rows()] == restored


def test_a_final_checkpoint_that_fails_is_tried_again(tmp_path: Path) -> None:
    """The last results would stay invisible if the store fails, or takes too long, when the job ends."""
    slow = {"kind": "slow_store", "at_s": 2.0, "for_s": 1.0, "factor": 100.0}
    result = run(scenario(tmp_path, BOUNDED, fault=[slow]), 1)
    assert final(result) == [("expired", 5000.0), ("COMPLETED", 800.0)]
    assert len(committed(result)) == 200
    failing = {"kind": "failing_store", "at_s": 2.4, "for_s": 0.2}
    result = run(scenario(tmp_path, BOUNDED, fault=[failing]), 1)
    assert final(result) == [("store failed", 500.0), ("COMPLETED", 800.0)]
    assert len(committed(result)) == 200


def test_what_had_finished_does_not_run_again(tmp_path: Path) -> None:
    """A source that had ended before the restored checkpoint would send everything again, or be waited for."""
    job = with_changes(FAILING, {"source": {"b": {"events": 30}}})  # ends in the first second
    for mode in MODES.values():
        result = run(scenario(tmp_path, with_changes(job, mode), fault=CRASHES["an operator's subtask"]), SEED)
        assert result.verdict == "holds", result.violations
        begin = next(i for i, e in enumerate(result.entries) if e[1] == ">restore")
        assert "b" not in {e[2] for e in result.entries[begin:] if e[1] in (">emit", "send", ">inject", ">finish")}
        assert [event.sequence for _, event in emitted(result, "b")] == list(range(1, 31))
        assert statuses(result)[-1] == "COMPLETED"


def test_an_end_that_was_under_way_is_restored(tmp_path: Path) -> None:
    """A receiver would wait for ever for a sender that had ended just before the cut."""
    job = with_changes(
        with_changes(FAILING, MODES["unaligned"]), {"source": {"b": {"events": 28}}, "recovery": {"detection_s": 0.02}}
    )
    late = {"channel": {"b->work": {**LATE, "latency_s": 0.5}}, "checkpoint": {"first_s": 0.7, "interval_s": 9.0}}
    job = with_changes(job, late)
    result = run(scenario(tmp_path, job, fault=[{"kind": "crash", "task": "map", "at_s": 1.6}]), SEED)
    assert result.verdict == "holds", result.violations
    assert result.recovery_rows()[0]["checkpoint_id"] == 1
    ends = [e for e in moves(result, "restored_in_flight") if type(e[4]) is EndOfInput]
    assert {e[3] for e in ends} == {"b->work[0]", "b->work[1]"}


def test_a_crash_during_recovery_begins_it_again(tmp_path: Path) -> None:
    """The job would run before all of it is there again, or never."""
    result = run(scenario(tmp_path, FAILING, fault=CRASHES["during recovery"]), SEED)
    (row,) = result.recovery_rows()
    assert row["starts"] == 3
    assert (row["failed_at_ms"], row["detected_ms"]) == (2200.0, 2300.0)
    assert row["restored_ms"] == 2800.0 + 100.0 + 300.0
    assert [e[2] for e in moves(result, ">crash")] == ["map", "work[0]", "work[1]", "coordinator"]


def test_a_new_coordinator_goes_on_above_every_id(tmp_path: Path) -> None:
    """An id would name two checkpoints."""
    result = run(scenario(tmp_path, FAILING, fault=[{"kind": "coordinator_crash", "every_s": 1.4}]), SEED)
    assert result.verdict == "holds", result.violations
    ids = [e[4] for e in moves(result, ">trigger")]
    assert ids == sorted(set(ids))
    assert len(result.recovery_rows()) == 4
    assert statuses(result).count("COMPLETED") >= 4


def test_a_manifest_under_way_is_waited_for(tmp_path: Path) -> None:
    """A manifest that lands after the restore would bring back transactions that were rolled back."""
    slow = {"store": {"manifest_s": 0.9}, "recovery": {"restart_s": 0.1}, "checkpoint": {"interval_s": 2.0}}
    job = with_changes(FAILING, slow)
    result = run(scenario(tmp_path, job, fault=[{"kind": "crash", "task": "map", "at_s": 2.2}]), SEED)
    assert result.verdict == "holds", result.violations
    (row,) = result.recovery_rows()
    assert row["checkpoint_id"] == 1
    assert row["restored_ms"] == moves(result, ">publish")[0][0] / 1e6 > 2900
    assert moves(result, ">notify")[0][4] == 2  # nobody was left to tell of the first


def test_a_coordinator_that_dies_while_it_publishes(tmp_path: Path) -> None:
    """A manifest that was written just before the coordinator died would be overlooked, or one that was not be read."""
    job = with_changes(FAILING, {"store": {"manifest_s": 0.5}, "checkpoint": {"interval_s": 1.0}})
    small = scenario(tmp_path, job, fault=[{"kind": "coordinator_crash", "at_s": 2.3}])
    results = [run(small, seed) for seed in range(1, 9)]
    assert {result.verdict for result in results} == {"holds"}
    assert {result.recovery_rows()[0]["checkpoint_id"] for result in results} == {1, 2}


# What it costs.

# Events at 10 ms, 20 ms, ...; a millisecond each while the source catches up.
PLAIN: dict[str, Any] = {
    "topology": "a->map map->sink",
    "until_s": 10.0,
    "source": {"a": {"rate_per_s": 100.0, "service_s": 0.001}},
    "operator": {"map": {}, "sink": {"kind": "sink"}},
    "checkpoint": {"interval_s": 3.0, "async_s": 0.1},
    "recovery": {"detection_s": 0.5, "restart_s": 1.0},
    "fault": [{"kind": "crash", "task": "map", "at_s": 5.005}],
}


def test_the_figures_of_a_recovery(tmp_path: Path) -> None:
    """The report would say that a failure costs something else than it does."""
    result = run(scenario(tmp_path, PLAIN), 1)
    assert result.verdict == "holds", result.violations
    (row,) = result.recovery_rows()
    restored = moves(result, ">restore")[0]
    assert (row["attempt"], row["cause"], row["starts"], row["checkpoint_id"]) == (2, "crash map", 1, 1)
    assert [row[key] for key in ("failed_at_ms", "detected_ms", "restored_ms")] == [5005.0, 5505.0, 6505.0]
    assert (row["recovery_duration_ms"], row["downtime_ms"]) == (1000.0, 1500.0)
    assert restored[0] == 6_505_000_000
    # It emits until its queue is full, at most until the failure is noticed; what is behind the cut comes again.
    before = [e for e in result.entries if e[1] == ">emit" and e[0] < 5_505_000_000]
    cut = next(e[0] for e in result.entries if e[1] == "snapshot" and e[2] == "a")
    assert row["events_replayed"] == sum(e[0] > cut for e in before)
    # 351 or so are overdue; a thousand a second go out while a hundred come in.
    behind = 650 - sum(e[0] <= cut for e in before)
    assert row["catch_up_ms"] == pytest.approx(behind / 0.9, abs=3)
    assert result.run_row()["failures"] == 1
    assert result.run_row()["recovery_time_max_ms"] == 1500.0
    assert result.run_row()["events_in"] == pytest.approx(1000, abs=2)
    assert result.recoveries.loc[0, "downtime_ms"] == 1500.0


def test_reading_takes_its_time(tmp_path: Path) -> None:
    """A large state would be back as soon as a small one."""
    usual = run(scenario(tmp_path, PLAIN), 1).recovery_rows()[0]
    slow = run(scenario(tmp_path, PLAIN, recovery={"read_bytes_per_s": 2.0}), 1)
    sizes = [row["checkpointed_bytes"] for row in slow.task_rows() if row["checkpoint_id"] == 1]
    late_ms = slow.recovery_rows()[0]["restored_ms"] - usual["restored_ms"]
    assert late_ms == max(sizes) / 2.0 * 1000


def test_a_source_with_a_rate_of_its_own_does_not_catch_up(tmp_path: Path) -> None:
    """A rate limit would be forgotten at a restart."""
    result = run(scenario(tmp_path, PLAIN, source={"a": {"catch_up_s": 0.05}}), 1)
    assert result.verdict == "holds", result.violations
    again = [at for at, _ in emitted(result) if at > 6_505_000_000]
    assert len([at for at in again if at < 6_605_000_000]) <= 16
    assert result.run_row()["events_in"] < 700


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once", "idempotent"])
def test_what_a_sink_promises(guarantee: str, tmp_path: Path) -> None:
    """A sink would show an event twice that promised once, or hide how often it did."""
    result = run(scenario(tmp_path, PLAIN, operator={"sink": {"guarantee": guarantee}}), 1)
    assert result.verdict == "holds", result.violations
    verb = {"exactly_once": "commit", "at_least_once": "write", "idempotent": "upsert"}[guarantee]
    assert {"commit", "write", "upsert"} & {e[1] for e in result.entries} == {verb}
    written = [e[4] for e in moves(result, verb)]
    if guarantee == "exactly_once":
        assert result.run_row()["duplicates"] == 0
        assert set(Counter(committed(result)).values()) == {1}
        assert delivered(result, "sink")[: len(committed(result))][:300] == committed(result)[:300]
    else:
        twice = len(written) - len(set(written))
        assert twice > 150
        assert result.run_row()["duplicates"] == (twice if guarantee == "at_least_once" else 0)


def test_random_streams_go_on_after_a_restart(tmp_path: Path) -> None:
    """Every attempt would draw the same services, so a job that failed once would fail the same way again."""
    service = {"dist": "exponential", "mean": 0.004}
    job = with_changes(PLAIN, {"operator": {"map": {"service_s": service}}, "checkpoint": {"interval_s": 60.0}})
    result = run(scenario(tmp_path, job), 1)
    taken = [e[0] for e in result.entries if e[1] == "deliver" and e[2] == "map" and e[4].sequence <= 300]
    first, second = taken[:300], taken[-300:]
    busy = [after - before for before, after in pairwise(second)]
    assert len(set(busy)) > 200
    assert busy != [after - before for before, after in pairwise(first)]


# Any of it.


GRAPHS = (
    "a->work work->sink",
    "a->work b->work work->map map->sink",
    "a->map a->work map->work work->sink",
)


@st.composite
def jobs(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """A small job with any faults, and a seed."""
    graph = draw(st.sampled_from(GRAPHS))
    names = [name for name in ("a", "b", "work", "map", "sink") if name in graph.replace("->", " ").split()]
    rate, mean = draw(st.sampled_from([60.0, 200.0])), draw(st.sampled_from([0.0, 0.003, 0.008]))
    channel = draw(st.sampled_from(list(CHANNELS)))
    sources = {
        name: {"rate_per_s": rate, "arrivals": "poisson", "parallelism": draw(st.integers(1, 2))}
        | draw(st.sampled_from([{}, {"events": 90}, {"watermark_interval_s": 0.07}]))
        for name in names
        if name in ("a", "b")
    }
    guarantee = draw(st.sampled_from(["exactly_once", "at_least_once", "idempotent"]))
    operators: dict[str, Any] = {"sink": {"kind": "sink", "guarantee": guarantee}}
    for name in set(names) & {"work", "map"}:
        operators[name] = {"kind": draw(st.sampled_from(["union", "flat_map" if "->map" in graph else "map"]))}
        operators[name] |= {"parallelism": draw(st.integers(1, 2))}
        operators[name] |= {"service_s": {"dist": "exponential", "mean": mean} if mean else 0.0}
    where = st.sampled_from([*names, "all"]).map(lambda task: {"task": task})
    at = st.integers(1, 29).map(lambda tenths: {"at_s": tenths / 10 + 0.003})
    lasts = st.sampled_from([{"for_s": 0.2}, {"for_s": 1.0}])
    one = st.one_of(
        st.tuples(st.just({"kind": "crash"}), where, at),
        st.tuples(st.just({"kind": "coordinator_crash"}), at),
        st.tuples(st.just({"kind": "cancel_checkpoint"}), at),
        st.tuples(st.builds(lambda d: {"kind": "failing_store", "in_doubt": d}, st.booleans()), at, lasts),
        st.tuples(st.sampled_from([{"kind": "full_store"}, {"kind": "slow_store", "added_s": 0.3}]), at, lasts),
        st.tuples(st.sampled_from([{"kind": "lost_ack"}, {"kind": "stall"}]), where, at, lasts),
    ).map(lambda parts: {key: value for part in parts for key, value in part.items()})
    faults = draw(st.lists(one, min_size=1, max_size=4))
    job = {
        "topology": graph,
        "until_s": 3.0,
        "source": sources,
        "operator": dict(sorted(operators.items())),
        "channel": {"default": {**CHANNELS[channel], **({"capacity": 4} if "queue" in channel else {})}},
        "checkpoint": {
            "interval_s": 0.4,
            "timeout_s": 0.8,
            "async_s": 0.05,
            "trigger_latency_s": draw(st.sampled_from([0.0, 0.01])),
            "hold": draw(st.sampled_from(["aligner", "channel"])),
        },
        "recovery": {"detection_s": draw(st.sampled_from([0.0, 0.1])), "restart_s": draw(st.sampled_from([0.0, 0.2]))},
        "store": {"manifest_s": draw(st.sampled_from([0.0, 0.15])), "retained": draw(st.integers(1, 2))},
        "fault": faults,
    }
    return with_changes(job, MODES[draw(st.sampled_from(list(MODES)))]), draw(st.integers(0, 99))


def _holds(job: dict[str, Any], seed: int, folder: Path) -> None:
    result = run(scenario(folder, job), seed)
    assert result.verdict == "holds", (result.violations[:3], statuses(result))
    visible = Counter((event, entry[2]) for entry in moves(result, "commit") for event in entry[4][1])
    applied = Counter((event, entry[2]) for entry in moves(result, "deliver") for event in [entry[4]])
    assert all(count <= applied[key] for key, count in visible.items())


@given(drawn=jobs())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_job_survives_any_faults(drawn: tuple[dict[str, Any], int], tmp_path: Path) -> None:
    """Some order of failures that nobody thought of would lose an event, or count it twice."""
    _holds(*drawn, tmp_path)


@pytest.mark.slow
@given(drawn=jobs())
@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_job_survives_any_faults_at_length(drawn: tuple[dict[str, Any], int], tmp_path: Path) -> None:
    """The same, for what comes up once in a thousand."""
    _holds(*drawn, tmp_path)
