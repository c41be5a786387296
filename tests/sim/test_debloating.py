"""Buffers whose size a gate chooses while the job runs, and records that span them."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from barrierlab.sim import load, run
from barrierlab.sim.channels.debloat import BufferDebloater, ThroughputMeter
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.scenario.file import ScenarioError
from barrierlab.sim.scenario.settings import BufferDebloatSettings
from barrierlab.sim.sweep.measured import DATA, MeasuredJob, mean_of, measured_in, statistics_of
from tests.breadth import first
from tests.sim.support import SKEWED, scenario, with_changes

DEBLOAT = {"buffer_debloat.enabled": True}
NETWORK: dict[str, Any] = {
    "channel": {"default": {"form": "network", "capacity": None, "exchange": "rebalance"}},
    "buffer_debloat": {"enabled": True, "target_s": 0.1},
    "checkpoint": {"hold": "channel"},
}


class Gauge:
    """A channel with so many buffers in use, that hears which size is asked for."""

    def __init__(self) -> None:
        self.in_use, self.asked = 1, list[int]()

    def buffers_in_use(self) -> int:
        return self.in_use

    def resize(self, buffer_bytes: int) -> None:
        self.asked.append(buffer_bytes)

    def starts_with(self, buffer_bytes: int) -> None:
        self.asked.append(buffer_bytes)


def debloater(start: int, **settings: Any) -> tuple[BufferDebloater, Gauge, ThroughputMeter, Clock]:
    """Return a gate of one channel, with segments of 32 KB, that begins with buffers of `start` bytes."""
    clock, gauge = Clock(), Gauge()
    meter = ThroughputMeter(clock)
    chosen = BufferDebloatSettings(True, starting_segment_bytes=start, **settings)
    return BufferDebloater(chosen, 32_768, [gauge], meter), gauge, meter, clock


def advance(clock: Clock, by_ms: int) -> None:
    """Let time pass."""
    clock.after(by_ms * 1_000_000, lambda: None)
    clock.run(clock.now + by_ms * 1_000_000)


def test_sizes_shrink_and_grow_as_flinks_do() -> None:
    """The ramp after a start, and after a change of load, would take another time than the cluster's.

    The numbers are those that a comment in Flink's `BufferSizeEMA` gives, of 20 samples, cut off to whole bytes.
    """
    down, gauge, meter, clock = debloater(32_768, threshold_percentages=0)
    for _ in range(5):
        meter.read(0)
        advance(clock, 200)
        down.adjust()
    assert gauge.asked == pytest.approx([32_768, 29_647, 26_823, 24_268, 21_956, 19_864], abs=3)
    up, gauge, meter, clock = debloater(19_864, threshold_percentages=0)
    for _ in range(6):
        meter.read(10**9)
        advance(clock, 200)
        up.adjust()
    assert gauge.asked == pytest.approx([19_864, 21_755, 23_826, 26_095, 28_580, 31_301, 32_768], abs=5)


def test_a_size_near_the_last_one_is_not_announced() -> None:
    """Senders would get a new size five times a second; or never one that matters."""
    one, gauge, meter, clock = debloater(10_000)
    gauge.in_use = 4
    for _ in range(60):  # 40,000 bytes a second, shared by four buffers: what it has; then more, and then much more
        meter.read(8_000)
        advance(clock, 200)
        one.adjust()
    assert gauge.asked == [10_000]
    for _ in range(60):  # 12,400: 24 % more
        meter.read(9_920)
        advance(clock, 200)
        one.adjust()
    assert gauge.asked == [10_000]
    for _ in range(60):  # 12,600
        meter.read(10_080)
        advance(clock, 200)
        one.adjust()
    assert gauge.asked[1:] == [pytest.approx(12_500, abs=20)]
    assert one.estimated_s == pytest.approx(1.0, rel=0.01)


def test_time_without_data_does_not_count() -> None:
    """A gate that is idle half of the time would take its throughput for half of what it can take."""
    clock = Clock()
    meter = ThroughputMeter(clock)
    meter.read(1_000)
    advance(clock, 100)
    meter.pause()
    advance(clock, 100)
    assert meter.per_s() == pytest.approx(10_000)
    assert meter.per_s() == pytest.approx(10_000)  # nothing since: as before


FIFTH = Path(str(DATA / "fifth"))


@pytest.mark.parametrize("mode", ["aligned", pytest.param("unaligned", marks=pytest.mark.slow)])
def test_the_measured_job_is_predicted(mode: str) -> None:
    """A user would choose a target by durations and bytes that no cluster has: within 15 %, the duration within 10."""
    [job] = [job for job in measured_in(FIFTH) if job.name == f"R_chain_sat_4ms_debloat200ms_{mode}"]
    found = []
    for seed in first((1, 2)):
        result = run(load(job.scenario, job.settings), seed)
        assert result.verdict == "holds", result.violations
        found.append(statistics_of(result.checkpoint_rows(), result.task_rows()))
    means = mean_of(found)
    if job.mode == "aligned":
        for statistic in ("end to end", "start delay of slow", "start delay of fast"):
            assert means[statistic] == pytest.approx(job.values[statistic], rel=0.15)
        assert means["end to end"] == pytest.approx(job.values["end to end"], rel=0.1)
    else:
        assert means["persisted"] == pytest.approx(job.values["persisted"], rel=0.15)
        assert means["end to end"] < 100.0


def _sizes(job: MeasuredJob) -> dict[str, float]:
    """Return the buffer sizes of a measured job by operator: the mean over repeats, subtasks and samples."""
    sizes: dict[str, list[float]] = {}
    with (FIFTH / "buffers.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["run"].startswith(job.setup) and row["run"].endswith(f"_{job.mode}"):
                sizes.setdefault(row["task"], []).append(float(row["debloated_bytes_mean"]))
    return {operator: fmean(values) for operator, values in sizes.items()}


@pytest.mark.parametrize(("target", "seeds"), [("200ms", (1, 2)), ("1000ms", (1, 2, 3))])
@pytest.mark.parametrize("mode", ["aligned", "unaligned"])
def test_buffers_and_durations_at_16_ms_a_record_are_those_of_the_cluster(
    target: str, seeds: tuple[int, ...], mode: str
) -> None:
    """A slow operator would be given buffers, or checkpoints a duration, that no cluster has: within 15 %."""
    [job] = [job for job in measured_in(FIFTH) if job.name == f"R_chain_sat_16ms_debloat{target}_{mode}"]
    means, sizes = [], dict[str, list[float]]()
    for seed in first(seeds):
        result = run(load(job.scenario, {**job.settings, "until_s": 40.0, "warmup_s": 18.0}), seed)
        assert result.verdict == "holds", result.violations
        steady = [row for row in result.checkpoint_rows() if row["steady"]]
        means.append(statistics_of(steady, result.task_rows()))
        for row in result.debloating():
            sizes.setdefault(row["task"].partition("[")[0], []).append(row["debloatedBufferSize"])
    measured, found = _sizes(job), mean_of(means)
    for operator in ("fast", "slow"):
        assert fmean(sizes[operator]) == pytest.approx(measured[operator], rel=0.15), operator
    if mode == "aligned":
        assert found["end to end"] == pytest.approx(job.values["end to end"], rel=0.15)
    else:
        assert found["persisted"] == pytest.approx(job.values["persisted"], rel=0.15)


@pytest.mark.parametrize(
    ("level", "target_s"),
    [*(pytest.param("sat_4ms", target_s, marks=pytest.mark.slow) for target_s in (0.2, 0.4)), ("sat_16ms", 1.0)],
)
def test_each_exchange_holds_about_the_target(level: str, target_s: float) -> None:
    """The target would be a number without a meaning: two exchanges are ahead of the bottleneck, each lasts so long."""
    settings = {"level": level, **DEBLOAT, "buffer_debloat.target_s": target_s}
    result = run(load("flink_chain", settings), 3)
    duration_s = statistics_of(result.checkpoint_rows(), result.task_rows())["end to end"] / 1e3
    assert 1.0 < duration_s / (2 * target_s) < 1.3
    sizes = {row["task"]: row for row in result.debloating()}
    for task in ("slow[0]", "slow[1]", "fast[0]", "fast[1]"):
        assert sizes[task]["estimatedTimeToConsumeBuffersMs"] == pytest.approx(1e3 * target_s, rel=0.3)


def test_a_target_above_the_natural_drain_changes_nothing() -> None:
    """Debloating would slow down, or speed up, a job whose full buffers last less than the target anyway."""
    full = {"level": "sat_4ms", "until_s": 40.0}
    usual = run(load("flink_chain", full), 1)
    other = run(load("flink_chain", full | DEBLOAT | {"buffer_debloat.target_s": 5.0}), 1)
    means = [statistics_of(r.checkpoint_rows(), r.task_rows())["end to end"] for r in (usual, other)]
    assert means[1] == pytest.approx(means[0], rel=0.03)
    assert {round(row["debloatedBufferSize"]) for row in other.debloating()} == {32_768}
    assert usual.debloating() == []


@pytest.mark.parametrize("local", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", [0.0, 0.2, None], ids=["unaligned", "timeout", "aligned"])
def test_any_mode_holds_with_records_of_any_size(mode: float | None, local: bool, tmp_path: Path) -> None:
    """A record in two buffers would be lost, or counted twice, where a barrier overtakes it or a task fails."""
    changes: dict[str, Any] = with_changes(
        NETWORK,
        {
            "channel": {"default": {"local": local, "segment_bytes": 2_000}},
            "source": {name: {"record_bytes": {"dist": "uniform", "low": 10, "high": 60_000}} for name in "ab"},
            "fault": [{"kind": "crash", "task": "join", "at_s": 3.3}],
            "buffer_debloat": {"period_s": 0.05, "samples": 3},
        },
    )
    if mode is not None:
        changes |= {"protocol": "unaligned"}
        changes["checkpoint"] |= {"aligned_checkpoint_timeout_s": mode}
    job = scenario(tmp_path, with_changes(SKEWED, changes))
    result = run(job, 5)
    assert result.verdict == "holds", result.violations
    row = result.run_row()
    assert row["checkpoints_completed"] >= 3
    assert row["failures"] == 1
    assert row["events_out"] == pytest.approx(row["events_in"], rel=0.2)
    assert result.digest == run(job, 5).digest


def test_a_record_may_be_larger_than_all_buffers(tmp_path: Path) -> None:
    """A task would stand still for ever in the middle of a record, or be given buffers that are not there."""
    job = scenario(
        tmp_path,
        {
            "topology": "a->b b->sink",
            "until_s": 5.0,
            "source": {"a": {"rate_per_s": 20.0, "record_bytes": 100_000}},
            "operator": {"b": {"service_s": 0.02}, "sink": {"kind": "sink"}},
            "channel": {"default": {"form": "network", "segment_bytes": 1_000, "spanning_records": True}},
            "checkpoint": {"interval_s": 1.0, "hold": "channel"},
        },
    )
    result = run(job, 1)
    assert result.verdict == "holds", result.violations
    row = result.run_row()
    assert row["events_in"] == pytest.approx(100, abs=2)
    assert row["events_out"] == pytest.approx(row["events_in"], abs=3)
    assert row["checkpoints_completed"] >= 4


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"buffer_debloat.target": 1.0}, "no key 'target': its unit is wrong; did you mean 'target_s'?"),
        ({"buffer_debloat.samples": 0}, r"\[buffer_debloat\] samples is 0; allowed: a whole number of at least 1"),
        ({"buffer_debloat.enabled": "yes"}, "allowed: true or false"),
        (
            {**DEBLOAT, "buffer_debloat.min_segment_bytes": 4096},
            "min_segment_bytes is 4096; allowed: at most starting_segment_bytes, 1024",
        ),
        ({**DEBLOAT, "channel.default.form": "spsc"}, 'allowed: with a channel of form = "network"'),
        ({"segment_bytes": 1024}, "at least a record, 4096 bytes, or any with spanning_records = true"),
    ],
)
def test_a_slip_is_one_line(settings: dict[str, Any], said: str) -> None:
    """A user would get a traceback, or a run that is not what he asked for."""
    with pytest.raises(ScenarioError, match=said):
        load("flink_chain", settings)
