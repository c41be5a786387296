"""The clock, and what the engine measures: consistent with itself, and with nothing of the real world in it."""

from __future__ import annotations

import datetime as dt
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.history import SHORT, Entry, TaskHistory, entry_count
from barrierlab.sim import load, run
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.core.clock import Clock
from tests.sim.support import SKEWED, scenario, toml, with_changes
from tests.sim.test_determinism import BUSY


def test_a_timer_can_be_armed_again_and_again() -> None:
    """SimPy would have changed what an event is inside, and services would never end, or end twice."""
    clock = Clock()
    env = clock.env
    fired: list[int] = []
    timer = clock.own_timer(lambda _: fired.append(env.now))
    for delay in (5, 0, 7, 7):
        timer.start(delay)
        env.run()
    assert fired == [5, 5, 12, 19]


def test_a_timer_arms_itself_from_its_own_call() -> None:
    """The flush timer would stop after its first tick."""
    clock = Clock()
    env = clock.env
    fired: list[int] = []

    def tick(_: object) -> None:
        fired.append(env.now)
        if len(fired) < 4:
            timer.start(10)

    timer = clock.own_timer(tick)
    timer.start(3)
    env.run()
    assert fired == [3, 13, 23, 33]


def test_equal_times_keep_the_order_of_their_causes() -> None:
    """Events of one moment would happen in another order on another machine."""
    clock = Clock()
    env = clock.env
    fired: list[str] = []
    timers = {name: clock.own_timer(lambda _, name=name: fired.append(name)) for name in "abc"}
    for name in "cab":
        timers[name].start(5)
    env.run()
    assert fired == ["c", "a", "b"]


@pytest.mark.parametrize("seed", range(8))
def test_calls_come_in_the_order_of_simpy(seed: int) -> None:
    """The clock would call in another order, or at other times, than SimPy calls events of their own."""

    def called(run: Callable[[], object], env: Any, after: Callable[[int, Callable[[], None]], None]) -> list[Any]:
        calls, chance = list[tuple[int, int]](), random.Random(seed)

        def call(number: int) -> None:
            calls.append((number, env.now))
            if len(calls) < 400:
                for one_more in range(chance.choice((1, 1, 1, 2, 3))):
                    after(chance.choice((0, 1, 1, 3)), partial(call, number + 1 + one_more))

        for number in range(seed + 1):  # a single one arms itself, several are due together
            after(number // 3, partial(call, number))
        run()
        return calls

    clock, stepped, env = Clock(), Clock(), simpy.Environment(initial_time=0)
    own = called(clock.run, clock.env, clock.after)
    of_simpy = called(stepped.env.run, stepped.env, stepped.after)
    plain = called(env.run, env, lambda delay, action: env.timeout(delay).callbacks.append(lambda _: action()))
    assert len(plain) >= 400
    assert own == plain
    assert of_simpy == plain


def test_the_pinned_simpy_is_the_one_that_this_was_tested_with() -> None:
    """`Timer` uses an inside matter of SimPy 4.1: another series must be looked at first."""
    from importlib.metadata import version

    assert version("simpy").startswith("4.1.")


def test_real_time_and_global_chance_never_enter_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result would depend on when and where it was computed."""
    path = tmp_path / "busy.toml"
    path.write_text(toml(BUSY), encoding="utf-8")
    small = load(path)
    before = run(small, 3).digest
    asked: list[str] = []

    def refuse(name: str) -> Any:
        def asks(*_: object, **__: object) -> Any:
            asked.append(name)
            raise AssertionError(f"{name} was asked during a run")

        return asks

    with monkeypatch.context() as patch:
        for module in (time, random, np.random):
            for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"):
                if hasattr(module, name):
                    patch.setattr(module, name, refuse(f"{module.__name__}.{name}"))
        for name in ("random", "randrange", "gauss", "expovariate", "choice", "seed"):
            patch.setattr(random, name, refuse(f"random.{name}"))
        patch.setattr(dt, "datetime", None)
        after = run(small, 3).digest
    assert asked == []
    assert after == before


# What is measured.


@pytest.mark.parametrize("base", [SKEWED, BUSY], ids=["skewed", "busy"])
def test_statistics_are_consistent(base: dict[str, Any], tmp_path: Path) -> None:
    """A report would lay out a checkpoint's time in numbers that contradict each other."""
    result = run(scenario(tmp_path, base), 3)
    assert result.verdict == "holds"
    tasks = result.task_rows()
    rows = result.checkpoint_rows()
    assert len(rows) >= 4
    for row in rows:
        own = [t for t in tasks if t["checkpoint_id"] == row["checkpoint_id"]]
        for task in own:
            assert 0 <= task["alignment_ms"] <= row["end_to_end_duration_ms"]
            assert task["start_delay_ms"] >= 0
            assert min(task["processed_bytes"], task["checkpointed_bytes"]) >= 0
            assert task["persisted_bytes"] == 0
            parts = task["start_delay_ms"] + task["alignment_ms"] + task["sync_ms"] + task["async_ms"]
            assert parts <= task["end_to_end_ms"] + 1e-6
        assert row["status"] == "COMPLETED"
        assert len(own) == len(result.scenario.topology.tasks)
        assert row["end_to_end_duration_ms"] == max(t["end_to_end_ms"] for t in own)  # the latest acknowledgement
        assert row["start_delay_max_ms"] == max(t["start_delay_ms"] for t in own)
        assert row["alignment_max_ms"] == max(t["alignment_ms"] for t in own)
        assert row["processed_bytes"] == sum(t["processed_bytes"] for t in own)
        assert row["checkpointed_bytes"] == sum(t["checkpointed_bytes"] for t in own) > 0
        assert row["critical_task"] in result.scenario.topology.tasks
        critical = max(own, key=lambda t: t["end_to_end_ms"])
        assert row["critical_start_delay_ms"] == critical["start_delay_ms"]
        assert row["critical_alignment_ms"] == critical["alignment_ms"]


def test_measures_are_what_the_journal_says(tmp_path: Path) -> None:
    """Start delay, alignment and duration would be measured beside what happened."""
    result = run(scenario(tmp_path, checkpoint={"ack_latency_s": 0.003}), 3)
    for row in result.task_rows():
        task = row["operator"]
        checkpoint_id = row["checkpoint_id"]
        trigger = next(e[0] for e in result.entries if e[1] == ">trigger" and e[4] == checkpoint_id)
        cut = next(e[0] for e in result.entries if e[1] == "snapshot" and e[2] == task and e[4][0] == checkpoint_id)
        acked = next(e[0] for e in result.entries if e[1] == ">ack" and e[2] == task and e[4] == checkpoint_id)
        blocks = [e[0] for e in result.entries if e[1] == "block" and e[2] == task and e[4] == checkpoint_id]
        first = min(blocks, default=cut)
        assert row["start_delay_ms"] == (first - trigger) / 1e6
        assert row["alignment_ms"] == (cut - first) / 1e6
        assert row["end_to_end_ms"] == (acked - trigger) / 1e6
        assert row["processed_bytes"] == sum(
            e[4].size_bytes
            for e in result.entries
            if e[1] == "deliver" and e[2] == task and hasattr(e[4], "size_bytes") and first < e[0] < cut
        )


def test_bytes_processed_during_alignment_are_the_late_inputs(tmp_path: Path) -> None:
    """Rate of the late input times alignment: what was measured on the cluster at a merge."""
    small = scenario(
        tmp_path,
        source={"a": {"rate_per_s": 20.0}, "b": {"rate_per_s": 200.0, "arrivals": "deterministic", "record_bytes": 50}},
        operator={"join": {"service_s": 0.0}},
        channel={"b->join": {"latency_s": 0.1, "capacity": 100}},
    )
    rows = [row for row in run(small, 3).task_rows() if row["operator"] == "join"]
    assert len(rows) >= 4
    for row in rows:
        assert row["alignment_ms"] == pytest.approx(100.0)
        assert row["processed_bytes"] == pytest.approx(200 * 50 * 0.1, abs=50)


def test_time_is_spent_busy_idle_or_blocked_and_in_no_other_way(tmp_path: Path) -> None:
    """Shares of time would not add up to one."""
    result = run(scenario(tmp_path, operator={"join": {"service_s": 0.006}}), 3)
    for name, shares in result.as_json()["backpressure"].items():
        assert sum(shares.values()) == pytest.approx(1000.0), name
        assert min(shares.values()) >= 0
    assert result.as_json()["backpressure"]["a"]["backPressuredTimeMsPerSecond"] > 50


def test_a_run_goes_on_until_its_checkpoints_have_ended(tmp_path: Path) -> None:
    """The last checkpoint would be cut off: most of all the long ones, so that means would be too short."""
    result = run(scenario(tmp_path, checkpoint={"interval_s": 1.9, "async_s": 1.5}), 3)
    rows = result.checkpoint_rows()
    assert [row["status"] for row in rows] == ["COMPLETED"] * 3
    assert 7.2 < result.run_row()["sim_duration_s"] < 7.3  # 3 * 1.9 + 1.5, and the way
    assert max(row["trigger_timestamp_ms"] for row in rows) < 6000


def test_an_engine_that_ends_by_itself_is_not_cut_off(tmp_path: Path) -> None:
    """A finite job's leftovers would be excused as time that was up."""
    finite = with_changes(SKEWED, {"source": {"a": {"events": 100}, "b": {"events": 20}}})
    engine = Engine(scenario(tmp_path, finite), 3)
    engine.run()
    assert not engine.cut_off
    engine = Engine(scenario(tmp_path), 3)
    engine.run()
    assert engine.cut_off


def test_frames_have_the_rows(tmp_path: Path) -> None:
    """A notebook would show other numbers than the tables."""
    result = run(scenario(tmp_path), 3)
    assert result.checkpoints.to_dict("records")[0]["checkpoint_id"] == 1
    assert len(result.tasks) == len(result.task_rows())
    assert len(result.events) == len(result.entries)
    assert list(result.events.columns) == ["at_ms", "verb", "node", "channel", "subject"]
    assert result.record().checkpoint_id == len(result.checkpoint_rows())
    with pytest.raises(KeyError):
        result.record(99)


def test_the_coordinators_lateness_is_all_sources_together(tmp_path: Path) -> None:
    """Each source would be late on its own, and barriers be apart where a real coordinator sends them as one."""
    late = {"dist": "uniform", "low": 0.01, "high": 0.2}
    shared = run(scenario(tmp_path, checkpoint={"command_s": late}), 1)
    starts = {(e[2], e[4]): e[0] for e in shared.entries if e[1] == ">inject"}
    triggers = {e[4]: e[0] for e in shared.entries if e[1] == ">trigger"}
    delays = {(task, i): at - triggers[i] for (task, i), at in starts.items()}
    assert len({i for _, i in delays}) > 3
    for i in triggers:
        assert delays["a", i] == delays["b", i]
        assert 10_000_000 <= delays["a", i] <= 200_000_000
    assert len(set(delays.values())) == len(triggers)  # drawn for each checkpoint
    apart = run(scenario(tmp_path, checkpoint={"command_s": 0.01, "trigger_latency_s": late}), 1)
    starts = {(e[2], e[4]): e[0] for e in apart.entries if e[1] == ">inject"}
    assert any(starts["a", i] != starts["b", i] for _, i in starts)
    assert min(at - triggers[i] for (_, i), at in starts.items()) >= 20_000_000  # one after the other


def test_a_checkpoint_that_there_is_not_is_named() -> None:
    """A user who asks for a picture of it would see a number, and no reason."""
    result = run(load("diamond", {"until_s": 5.0}))
    with pytest.raises(KeyError, match=r"there is no checkpoint 99 in this run; allowed: 1, 2"):
        result.timeline(99)


def steps_of(task: TaskHistory) -> list[Entry]:
    """The steps of a task, each row as the entry of it that is a step."""
    verbs = {"pass": "deliver", "push": "send"}
    return [(at_ns, verbs.get(verb, verb), *rest) for at_ns, verb, *rest in task.steps]  # type: ignore[misc]


@pytest.mark.parametrize("changes", [{}, {"protocol": "unaligned", "channel": {"default": {"capacity": 2}}}])
def test_rows_of_a_journal_tell_what_its_entries_tell(changes: dict[str, Any], tmp_path: Path) -> None:
    """The verdict would be of another journal than the one that is shown, written and stored."""
    small = scenario(tmp_path, until_s=2.0, fault=[{"kind": "crash", "task": "sink", "at_s": 1.2}], **changes)
    engine = Engine(small, 3)
    engine.run()
    assert {row[1] for row in engine.rows} >= SHORT.keys()
    assert entry_count(engine.rows) == len(engine.entries) > 1.5 * len(engine.rows)
    of_rows, of_entries = Run.of(engine.rows, small.topology), Run.of(engine.entries, small.topology)
    assert len(of_rows.attempts) == len(of_entries.attempts) == 2
    for one, other in zip(of_rows.attempts, of_entries.attempts, strict=True):
        assert [steps_of(task) for task in one.history.tasks.values()] == [
            task.steps for task in other.history.tasks.values()
        ]
        for name, channel in one.history.channels.items():
            for what in ("sent", "taken", "applied", "deepest", "deepest_ns", "most_buffered", "waiting"):
                assert getattr(channel, what) == getattr(other.history.channels[name], what), (name, what)
