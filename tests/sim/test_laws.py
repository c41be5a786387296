"""The simulation gives what queueing theory gives, where that is exact.

Each comparison is a t interval over independent runs: the exact value lies within the 99.9 % interval, and the interval
is narrow, so that a wrong simulation could not hide in it. Seeds are fixed: a test passes always or never.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from barrierlab.impl import Event
from barrierlab.sim import Scenario, run
from barrierlab.sim.checkpoint.engine import Engine
from tests.sim.support import emitted, scenario

CONFIDENCE = 0.999
NARROW = 0.06


def _interval(values: list[float]) -> tuple[float, float]:
    """Mean and half width."""
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), half


def _agrees(values: list[float], exact: float) -> None:
    mean, half = _interval(values)
    assert half < NARROW * exact, f"{mean:.4f} ± {half:.4f} is too wide to say anything of {exact:.4f}"
    assert abs(mean - exact) <= half, f"{mean:.4f} ± {half:.4f} does not hold {exact:.4f}"


def _entries(small: Scenario, seed: int) -> list[Any]:
    """The journal of a run, not judged: a third of the time."""
    engine = Engine(small, seed)
    engine.run()
    return engine.entries


def _over_seeds(small: Scenario, measure: Callable[[list[Any]], float], seeds: int = 8) -> list[float]:
    return [measure(_entries(small, seed)) for seed in range(seeds)]


# Tandem lines, saturated first station. The source is the first station: its next event is always due, it serves the
# event and then waits, with the event in hand, until the channel has room: blocking after service. The second station
# takes a message out of the channel when it begins to serve it, so a capacity of B is B slots between the two.


def _tandem(folder: Path, slots: int, first: Any, second: Any, until_s: float = 25.0) -> Scenario:
    return scenario(
        folder,
        {
            "topology": "first->second",
            "until_s": until_s,
            "source": {"first": {"rate_per_s": 1e9, "service_s": first}},
            "operator": {"second": {"kind": "sink", "service_s": second}},
            "channel": {"default": {"capacity": slots}},
            "checkpoint": {"interval_s": 1e6},
        },
    )


def _throughput(entries: list[Any]) -> float:
    """Events a second, from the hundredth on."""
    taken = [e[0] for e in entries if e[1] == "deliver"][100:]
    return (len(taken) - 1) / (taken[-1] - taken[0]) * 1e9


def _exponential(mean: float) -> dict[str, Any]:
    return {"dist": "exponential", "mean": mean}


@pytest.mark.parametrize(("slots", "exact"), [(1, 3 / 4), (2, 4 / 5), (5, 7 / 8)])
def test_a_balanced_tandem_blocks_after_service(slots: int, exact: float, tmp_path: Path) -> None:
    """Backpressure would cost more or less throughput than it does: the buffers would be of another size."""
    small = _tandem(tmp_path, slots, _exponential(0.01), _exponential(0.01))
    _agrees([x / 100.0 for x in _over_seeds(small, _throughput)], exact)


@pytest.mark.parametrize(
    ("rates", "exact"), [((150.0, 100.0), 0.876923), ((100.0, 80.0), 0.661247)], ids=["faster first", "slower both"]
)
def test_an_unbalanced_tandem(rates: tuple[float, float], exact: float, tmp_path: Path) -> None:
    """The task that blocks would depend on something else than the rates."""
    small = _tandem(tmp_path, 1, _exponential(1 / rates[0]), _exponential(1 / rates[1]))
    _agrees([x / 100.0 for x in _over_seeds(small, _throughput)], exact)


@pytest.mark.slow
def test_a_tandem_reversed_has_the_same_throughput(tmp_path: Path) -> None:
    """A line would be faster in one direction (reversibility of two stations)."""
    ahead = _over_seeds(_tandem(tmp_path, 2, _exponential(0.01), _exponential(0.0125)), _throughput)
    back = _over_seeds(_tandem(tmp_path, 2, _exponential(0.0125), _exponential(0.01)), _throughput)
    _agrees(ahead, 0.702523 * 100)
    _agrees(back, 0.702523 * 100)


@pytest.mark.parametrize("slots", [1, 5])
@pytest.mark.parametrize(("first", "second"), [(0.01, 0.004), (0.004, 0.01), (0.01, 0.01)])
def test_a_deterministic_tandem_is_as_fast_as_its_slowest(
    first: float, second: float, slots: int, tmp_path: Path
) -> None:
    """Buffers would cost throughput where nothing varies."""
    assert _throughput(_entries(_tandem(tmp_path, slots, first, second, 10.0), 1)) == pytest.approx(100.0, rel=1e-9)


def test_more_room_never_costs_throughput(tmp_path: Path) -> None:
    """A larger buffer would slow a job down (monotonicity, under the same services)."""
    found = [
        _throughput(_entries(_tandem(tmp_path, slots, _exponential(0.01), _exponential(0.01)), 4))
        for slots in (1, 2, 5, 20)
    ]
    assert found == sorted(found)
    assert found[-1] > 1.1 * found[0]


# Single queues with room for all.


def _queue(folder: Path, load: float, service: Any, until_s: float) -> Scenario:
    return scenario(
        folder,
        {
            "topology": "source->server",
            "until_s": until_s,
            "source": {"source": {"rate_per_s": load, "arrivals": "poisson"}},
            "operator": {"server": {"kind": "sink", "service_s": service}},
            "channel": {"default": {"capacity": 10**9}},
            "checkpoint": {"interval_s": 1e6},
        },
    )


def _waits(entries: list[Any]) -> float:
    """The mean time in the queue of those that came once it was warm, in seconds."""
    sent = [e[0] for e in entries if e[1] == "send"]
    taken = [e[0] for e in entries if e[1] == "take"]
    waits = [b - a for a, b in zip(sent, taken, strict=False)][200:]
    return statistics.fmean(waits) / 1e9


@pytest.mark.parametrize(
    ("load", "service", "exact", "until_s"),
    [
        (0.5, 1.0, 0.5, 8000.0),
        pytest.param(0.5, _exponential(1.0), 1.0, 40000.0, marks=pytest.mark.slow),
    ],
    ids=["M/D/1 at 0.5", "M/M/1 at 0.5"],
)
def test_waiting_times_are_pollaczek_khinchines(
    load: float, service: Any, exact: float, until_s: float, tmp_path: Path
) -> None:
    """Queues would grow too long or too short: start delays below saturation would be wrong."""
    _agrees(_over_seeds(_queue(tmp_path, load, service, until_s), _waits, 12), exact)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "service", "exact", "until_s"),
    [(0.8, 1.0, 2.0, 40000.0), (0.8, {"dist": "gamma", "mean": 1.0, "cv": 0.5}, 2.5, 50000.0)],
    ids=["M/D/1 at 0.8", "M/G/1 at 0.8"],
)
def test_waiting_times_at_a_high_load(load: float, service: Any, exact: float, until_s: float, tmp_path: Path) -> None:
    """The same where it is hardest: near saturation, with a service that varies."""
    _agrees(_over_seeds(_queue(tmp_path, load, service, until_s), _waits, 16), exact)


@pytest.mark.slow
def test_departures_of_a_queue_are_poisson(tmp_path: Path) -> None:
    """A second queue in line would not see what Burke's theorem says: W of each alone."""
    small = scenario(
        tmp_path,
        {
            "topology": "source->one one->two",
            "until_s": 30000.0,
            "source": {"source": {"rate_per_s": 0.5, "arrivals": "poisson"}},
            "operator": {
                "one": {"kind": "map", "service_s": _exponential(1.0)},
                "two": {"kind": "sink", "service_s": _exponential(1.0)},
            },
            "channel": {"default": {"capacity": 10**9}},
            "checkpoint": {"interval_s": 1e6},
        },
    )
    _agrees(_over_seeds(small, lambda entries: _waits([e for e in entries if e[3] == "one->two"]), 20), 1.0)


def test_little_holds_on_a_channel(tmp_path: Path) -> None:
    """L = lambda W: what is in a channel, how fast it goes, and how long it stays would contradict each other."""
    result = run(
        scenario(
            tmp_path,
            source={"a": {"events": 700}, "b": {"events": 140}},
            operator={"sink": {"service_s": _exponential(0.004)}},
        ),
        3,
    )
    for channel in ("a->join", "join->sink"):
        # the channel is empty at both ends of the run, so this is exact
        moves = [e for e in result.entries if e[3] == channel and e[1] in ("send", "take")]
        assert len(moves) > 1000
        inside = area = last = 0
        for at, verb, *_ in moves:
            area += inside * (at - last)
            inside, last = inside + (1 if verb == "send" else -1), at
            assert 0 <= inside <= 16
        sent = [(str(e[4]), e[0]) for e in moves if e[1] == "send"]
        taken = [(str(e[4]), e[0]) for e in moves if e[1] == "take"]
        assert [name for name, _ in sent] == [name for name, _ in taken]
        assert inside == 0
        assert area == sum(out - into for (_, into), (_, out) in zip(sent, taken, strict=True)) > 0


# Checkpoints.


def test_a_subtasks_duration_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    """The report would lay a checkpoint's time out in parts that do not add up to it."""
    small = scenario(
        tmp_path,
        checkpoint={"ack_latency_s": 0.007, "sync_s": 0.002, "async_s": {"dist": "exponential", "mean": 0.02}},
    )
    rows = run(small, 3).task_rows()
    assert len(rows) >= 16
    for row in rows:
        parts = row["start_delay_ms"] + row["alignment_ms"] + row["sync_ms"] + row["async_ms"] + 7.0
        assert row["end_to_end_ms"] == pytest.approx(parts, abs=1e-6), row


@pytest.mark.parametrize("inputs", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 8))])
def test_alignment_is_the_range_of_the_barriers_arrivals(inputs: int, tmp_path: Path) -> None:
    """Alignment would not be last barrier less first: E = H(n-1) for exponential ways (order statistics)."""
    small = scenario(
        tmp_path,
        {
            "topology": "source->meet",
            "until_s": 500.0,
            "source": {"source": {"parallelism": inputs, "rate_per_s": 0.001}},
            "operator": {"meet": {"kind": "sink"}},
            "channel": {"default": {"latency_s": _exponential(0.1)}},
            "checkpoint": {"interval_s": 2.0},
        },
    )
    exact = 100.0 * sum(1 / n for n in range(1, inputs))

    def mean_ms(seed: int) -> float:
        return statistics.fmean(r["alignment_ms"] for r in run(small, seed).task_rows() if r["operator"] == "meet")

    values = [mean_ms(seed) for seed in range(10)]
    mean, half = _interval(values)
    assert half < 2 * NARROW * exact
    assert abs(mean - exact) <= half


def test_events_are_conserved_at_every_moment(tmp_path: Path) -> None:
    """In = out + what waits, at any time: events would vanish for a while, or be in two places."""
    result = run(scenario(tmp_path), 3)
    where = Counter[str]()
    most = 0
    for _, verb, node, _, subject in result.entries:
        if type(subject) is not Event:
            continue
        if verb == ">emit":
            where["outbox"] += 1
        elif verb == "send":
            where["outbox"] -= 1
            where["channel"] += 1
        elif verb == "take":
            where["channel"] -= 1
            where["gate"] += 1
        elif verb == "deliver":
            where["gate"] -= 1
            where["sink" if node == "sink" else "outbox"] += 1  # the union passes every event on
        assert min(where.values()) >= 0
        assert where["channel"] <= 3 * 16
        assert where["outbox"] <= 3  # one event in the hand of each task
        most = max(most, where["gate"])
    assert where.total() == len(emitted(result)) > 500
    assert most > 5  # some were held behind a barrier
