"""The work of a run: in proportion to its messages, and hardly more for many channels than for few.

Work is counted in calls and lines of Python, not in seconds: the same on every machine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from barrierlab.sim import Scenario, load
from barrierlab.sim.checkpoint.engine import Engine
from barrierlab.sim.checkpoint.result import Result
from tests.bench.bench_sim import JOBS

SHUFFLE = """
topology = "source->count count->sink"
until_s = {seconds}
source.source = {{ rate_per_s = {rate}, parallelism = {ways}, keys = 1000, service_s = 0.0001 }}
operator.count = {{ kind = "aggregate", service_s = 0.0002, parallelism = {ways} }}
operator.sink = {{ kind = "sink", parallelism = {ways} }}
channel.default.exchange = "hash"
channel."count->sink".exchange = "forward"
checkpoint.interval_s = 0.6
"""


def written(folder: Path, text: str) -> Scenario:
    """The scenario of this text."""
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def work_of(job: Scenario) -> int:
    """The lines and calls of Python that a run of `job` and its judging take."""
    count = 0

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        engine = Engine(job, 1)
        engine.run()
        verdict = Result(job, 1, engine).verdict
    finally:
        sys.settrace(before)
    assert verdict == "holds"
    return count


@pytest.mark.parametrize("name", ["tandem", "join"])
def test_ten_times_the_messages_are_at_most_eleven_times_the_work(name: str, tmp_path: Path) -> None:
    """A run of an hour would take a day."""
    few, many = (work_of(written(tmp_path, JOBS[name](messages)[0])) for messages in (300, 3000))
    assert many <= 11 * few


def test_ten_times_the_channels_are_little_more_work_at_the_same_rate(tmp_path: Path) -> None:
    """A shuffle would cost by its channels, and not by what goes over them."""
    few, many = (
        work_of(written(tmp_path, SHUFFLE.format(ways=ways, rate=4000 / ways, seconds=1.0))) for ways in (5, 16)
    )
    assert many <= 1.5 * few
