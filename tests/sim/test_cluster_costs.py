"""The costs of the measured cluster itself, as the scenarios have them, are those in the rows of its subtasks."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from barrierlab.sim import load
from barrierlab.sim.sweep.measured import ALIGNED, DATA, MODES, UNALIGNED
from barrierlab.sim.twin.calibrate import Estimator, acknowledgements, commands, ways
from barrierlab.sim.twin.observed import ObservedJob, observed_tables, senders_of

Rows = list[dict[str, Any]]
# From whom a task's barriers come, for those whose two inputs are alike.
HOPS = {
    "chain": {"fast": "source", "slow": "fast", "sink": "slow"},
    "union": {"fastA": "sourceA", "slowB": "sourceB", "sink": "merge"},
}


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    with (DATA / "subtasks.csv").open(encoding="utf-8") as file:
        return tuple(
            {name: float(value) if name.endswith("_ms") and value else value for name, value in row.items()}
            for row in csv.DictReader(file)
        )


def _of(dag: str = "", mode: str = "", topology: str = "remote") -> Rows:
    """The rows of the jobs of this shape, mode and topology, whatever their parallelism and buffers; "" is any."""
    return [
        row
        for row in _rows()
        if row["topology"] == topology and row["dag"].startswith(dag) and mode in ("", row["mode"])
    ]


def _usual(rows: Rows) -> Rows:
    """Those of two subtasks an operator and buffers of a fixed size."""
    return [row for row in rows if row["parallelism"] == "2" and not row["debloat_target_ms"]]


def _end(row: dict[str, Any]) -> float:
    """Return the time at which a subtask's last barrier is in, since the trigger."""
    return row["start_delay_ms"] + row["alignment_ms"]


def _checkpoints(rows: Iterable[dict[str, Any]]) -> Iterator[Rows]:
    """The rows of each checkpoint of each run."""
    for _, found in groupby(rows, key=lambda row: (row["run"], row["ckpt_id"])):
        yield list(found)


def _sources(rows: Rows) -> Rows:
    return [row for row in rows if row["task"].startswith("source")]


def _start_delays(rows: Rows) -> list[float]:
    return [row["start_delay_ms"] for row in _sources(rows)]


@cache
def _runs(scenario: str) -> list[ObservedJob]:
    """The remote runs of a job, those with debloating too."""
    senders = senders_of(load(scenario).topology)
    return [run for run in observed_tables(Path(str(DATA)), senders, debloated=True) if not run.is_local]


def _estimated(estimate: Estimator, *scenarios: str, modes: Sequence[str] = MODES) -> list[float]:
    """The rows of a cost, as calibrate takes them from the runs of these jobs."""
    runs = [run for scenario in scenarios for run in _runs(scenario) if run.mode in modes]
    return [each for run in runs for checkpoint in run.checkpoints for each in estimate(run, checkpoint)]


def _acknowledgements() -> list[float]:
    return _estimated(acknowledgements, "flink_chain", "flink_union", modes=[ALIGNED])


def _unaligned_barriers(dag: str) -> list[float]:
    """From two senders' first barriers, which are passed on at once, to a receiver's first and last."""
    found = []
    for rows in _checkpoints(_usual(_of(dag, UNALIGNED))):
        for task, sender in HOPS[dag].items():
            sent = np.mean([row["start_delay_ms"] for row in rows if row["task"] == sender])
            for row in rows:
                if row["task"] == task:
                    found += [max(row["start_delay_ms"] - sent, 0.0), max(_end(row) - sent, 0.0)]
    return found


DISTRIBUTIONS: list[tuple[str, str, str, Callable[[], list[float]]]] = [
    ("flink_chain", "R", "checkpoint.command_s", lambda: _estimated(commands, "flink_chain")),
    ("flink_chain", "R", "checkpoint.trigger_latency_s", lambda: _estimated(ways, "flink_chain")),
    ("flink_chain", "R", "channel.default.unaligned_barrier_latency_s", lambda: _unaligned_barriers("chain")),
    *(
        (name, "R", key, read)
        for name in ("flink_union", "flink_join")
        for key, read in (
            ("checkpoint.command_s", lambda: _estimated(commands, "flink_chain", "flink_union")),
            ("checkpoint.trigger_latency_s", lambda: _estimated(ways, "flink_chain", "flink_union")),
            ("channel.default.unaligned_barrier_latency_s", lambda: _unaligned_barriers("union")),
        )
    ),
    *((name, "R", "checkpoint.ack_latency_s", _acknowledgements) for name in ("flink_chain", "flink_union")),
    *(
        (name, "L", "checkpoint.trigger_latency_s", lambda: _start_delays(_of(topology="local")))
        for name in ("flink_chain", "flink_union", "flink_join")
    ),
]


@pytest.mark.parametrize(
    ("scenario", "topology", "key", "read"), DISTRIBUTIONS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_law_is_the_one_of_the_rows(scenario: str, topology: str, key: str, read: Callable[[], list[float]]) -> None:
    """A figure in a scenario would be somebody's wish: twenty quantiles, rounded to half a millisecond."""
    text = (files("barrierlab.sim") / "scenarios" / f"{scenario}.toml").read_text(encoding="utf-8")
    law = tomllib.loads(text)["parameters"]["topology"]["choices"][topology][key]
    expected = np.quantile(read(), (np.arange(20) + 0.5) / 20) / 1000
    assert law["dist"] == "empirical"
    assert law["values"] == pytest.approx(list(expected), abs=0.00051)


def _aligned_barriers() -> list[float]:
    """From the ends of two senders' alignments to a receiver's first and last barrier, on ways without a queue."""
    found = []
    for rows in _checkpoints(_usual(_of(mode=ALIGNED))):
        for task, sender in HOPS[rows[0]["dag"].partition("_")[0]].items():
            if task in ("sink", "slowB") or (task != "slow" and "rho" in rows[0]["run"]):
                sent = [_end(row) for row in rows if row["task"] == sender]
                for row in rows:
                    if row["task"] == task:
                        found += [max(row["start_delay_ms"] - min(sent), 0.0), max(_end(row) - max(sent), 0.0)]
    return found


@pytest.mark.parametrize("scenario", ["flink_chain", "flink_union", "flink_join"])
def test_a_barrier_that_waits_its_turn_takes_as_long_as_in_the_aligned_runs(scenario: str) -> None:
    """Barriers of aligned checkpoints would cost what those of unaligned ones cost, or nothing."""
    settings = load(scenario, {"topology": "R"}).channels
    for channel in settings.values():
        mean_ms = 1e3 * (channel.latency_s.mean + channel.barrier_latency_s.mean)
        assert mean_ms == pytest.approx(np.mean(_aligned_barriers()), abs=0.5)


@pytest.mark.parametrize("dag", HOPS)
def test_the_channels_of_a_task_take_their_time_independently(dag: str) -> None:
    """One law a channel could not say both when the first barrier comes and when the last."""
    both = np.reshape(_unaligned_barriers(dag), (-1, 2))
    drawn = np.random.default_rng(1).choice(both.ravel(), (20_000, 2))
    for of_two, measured in ((drawn.min(axis=1), both[:, 0]), (drawn.max(axis=1), both[:, 1])):
        assert of_two.mean() == pytest.approx(measured.mean(), rel=0.10)
