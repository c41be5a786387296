"""Each draw follows its law, and sources emit when they should."""

from __future__ import annotations

import itertools
import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from barrierlab.sim import run
from barrierlab.sim.core.distributions import NS_PER_S, Arrivals, Distribution, KeyChooser, constant, stream
from tests.sim.support import emitted, scenario

DRAWS = 40_000
Z = stats.norm.isf(1e-6)  # streams are fixed, so a test passes always or never; this is how unlucky they may be

# law, its mean, variance and fourth central moment by the variance squared (kurtosis)
DISTRIBUTIONS: dict[str, tuple[Distribution, float, float, float]] = {
    "uniform": (Distribution("uniform", (0.002, 0.006)), 0.004, 0.004**2 / 12, 1.8),
    "exponential": (Distribution("exponential", (0.004,)), 0.004, 0.004**2, 9.0),
    "lognormal": (
        Distribution("lognormal", (0.004, 0.5)),
        0.004,
        0.002**2,
        stats.lognorm(math.sqrt(math.log(1.25))).stats("k") + 3,
    ),
    "gamma": (Distribution("gamma", (0.004, 0.5)), 0.004, 0.002**2, 3 + 6 / 4),
    "empirical": (Distribution("empirical", (0.001, 0.002, 0.009)), 0.004, 38e-6 / 3, 1.5),
}
ONE: dict[str, Any] = {
    "topology": "a->sink",
    "until_s": 20.0,
    "source": {"a": {"rate_per_s": 50.0}},
    "operator": {"sink": {"kind": "sink"}},
    "checkpoint": {"interval_s": 7.0},
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_law_has_its_mean_and_variance(name: str) -> None:
    """Service times would not be those that the scenario asks for, and every prediction with them wrong."""
    law, mean, variance, kurtosis = DISTRIBUTIONS[name]
    draw = law.sampler(stream(1, "node", name))
    values = [draw() / NS_PER_S for _ in range(DRAWS)]
    assert law.mean == pytest.approx(mean)
    assert abs(statistics.fmean(values) - mean) < Z * math.sqrt(variance / DRAWS)
    assert abs(statistics.pvariance(values) - variance) < Z * variance * math.sqrt((kurtosis - 1) / DRAWS)


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("uniform", stats.uniform(0.002, 0.004)),
        ("exponential", stats.expon(scale=0.004)),
        ("gamma", stats.gamma(4, scale=0.001)),
        ("lognormal", stats.lognorm(math.sqrt(math.log(1.25)), scale=0.004 / math.sqrt(1.25))),
    ],
)
def test_a_law_has_its_shape(name: str, exact: Any) -> None:
    """Two moments could be right and the tail wrong."""
    draw = DISTRIBUTIONS[name][0].sampler(stream(2, "node", name))
    assert stats.kstest([draw() / NS_PER_S for _ in range(DRAWS)], exact.cdf).pvalue > 1e-6


def test_a_constant_is_itself_and_an_empirical_law_keeps_to_its_list() -> None:
    """A number in a scenario would come out as another."""
    assert {constant(0.0042).sampler(stream(1, "n", "p"))() for _ in range(9)} == {4_200_000}
    draw = Distribution("empirical", (3.0, 5.0, 5.0)).sampler(stream(1, "n", "p"), 1.0)
    values = [draw() for _ in range(9000)]
    assert set(values) == {3, 5}
    assert stats.binomtest(values.count(5), 9000, 2 / 3).pvalue > 1e-6


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.5])
def test_keys_follow_zipf(skew: float) -> None:
    """Key skew would make another subtask the busy one than asked for."""
    choose = KeyChooser(20, skew, stream(1, "a", "keys"))
    drawn = [choose() for _ in range(DRAWS)]
    weights = [1 / (key + 1) ** skew for key in range(20)]
    expected = [DRAWS * weight / sum(weights) for weight in weights]
    assert stats.chisquare([drawn.count(key) for key in range(20)], expected).pvalue > 1e-6
    assert max(drawn) < 20


def test_streams_differ_by_seed_node_and_purpose_alone() -> None:
    """Two nodes would move in step, or one name give two streams."""
    firsts = {stream(*name).random() for name in ((1, "a", "x"), (2, "a", "x"), (1, "b", "x"), (1, "a", "y"))}
    assert len(firsts) == 4
    assert stream(1, "a", "x").random() == stream(1, "a", "x").random()


@pytest.mark.parametrize("kind", ["deterministic", "poisson", "bursty"])
def test_arrivals_have_their_long_run_rate(kind: str) -> None:
    """The load would be another than the scenario says."""
    counts = []
    for seed in range(30):
        arrivals = Arrivals(kind, 100.0, 0.2, 0.6, stream(seed, "a", "arrivals"))
        last, count = 0, 0
        while (at := arrivals.next()) <= 100 * NS_PER_S:
            assert at >= last
            last, count = at, count + 1
        counts.append(count)
    if kind == "deterministic":
        assert set(counts) == {10_000}
        return
    if kind == "poisson":  # the counts of a Poisson process are as variable as their mean
        assert stats.chi2.sf(29 * statistics.variance(counts) / 10_000, 29) > 1e-6
    else:
        assert statistics.variance(counts) > 5 * 10_000
    half_width = stats.t.isf(1e-6, 29) * statistics.stdev(counts) / math.sqrt(30)
    assert abs(statistics.fmean(counts) - 10_000) < half_width
    assert half_width < 1500


def test_bursts_come_at_the_higher_rate_and_then_nothing() -> None:
    """A bursty source would be a slow Poisson source, and shake no buffer."""
    arrivals = Arrivals("bursty", 100.0, 0.5, 1.5, stream(1, "a", "arrivals"))
    times = [arrivals.next() / NS_PER_S for _ in range(20_000)]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert statistics.median(gaps) == pytest.approx(math.log(2) / 400, rel=0.1)  # 400 a second while on
    assert sum(gap > 0.25 for gap in gaps) > 40


def test_gaps_of_a_poisson_source_are_exponential() -> None:
    """Arrivals would be more regular than asked for, and queues too short."""
    arrivals = Arrivals("poisson", 50.0, 1.0, 1.0, stream(3, "a", "arrivals"))
    times = [arrivals.next() / NS_PER_S for _ in range(10_000)]
    assert stats.kstest([b - a for a, b in itertools.pairwise(times)], stats.expon(scale=0.02).cdf).pvalue > 1e-6


def test_a_source_emits_when_its_events_fall_due(tmp_path: Path) -> None:
    """The events of a source would lag behind, or run ahead of, what its law says."""
    result = run(scenario(tmp_path, ONE, source={"a": {"arrivals": "poisson"}}), 4)
    arrivals = Arrivals("poisson", 50.0, 1.0, 1.0, stream(4, "a", "arrivals"))
    times = [at for at, _ in emitted(result)]
    assert len(times) > 800
    assert times == [arrivals.next() for _ in times]
    assert [e.timestamp_ms for _, e in emitted(result)] == [at // 1_000_000 for at in times]


def test_a_finite_source_ends_and_the_job_with_it(tmp_path: Path) -> None:
    """A finite job would run for ever, lose its last events, or end with a checkpoint that never does."""
    result = run(scenario(tmp_path, ONE, source={"a": {"events": 123}}), 4)
    assert result.verdict == "holds"
    row = result.run_row()
    assert (row["events_in"], row["events_out"]) == (123, 123)
    assert row["sim_duration_s"] == pytest.approx(123 / 50)
    assert [e[1] for e in result.entries if e[2] == "sink"][-4:] == ["end", "prepare", ">notify", "commit"]


def test_a_source_without_events_ends_at_once(tmp_path: Path) -> None:
    """An empty input would hang the job."""
    result = run(scenario(tmp_path, ONE, source={"a": {"events": 0}}), 4)
    assert (result.verdict, result.run_row()["events_in"]) == ("holds", 0)


def test_a_finite_job_that_time_cuts_off_is_not_broken(tmp_path: Path) -> None:
    """A job whose sources have ended, with events still on their way at the end, would be called broken."""
    result = run(scenario(tmp_path, ONE, source={"a": {"events": 900}}, operator={"sink": {"service_s": 0.05}}), 4)
    assert result.run_row()["events_out"] < 900
    assert result.verdict == "holds", result.violations


@pytest.mark.parametrize(
    ("catch_up_s", "at_once"),
    # 50 a second, standing still for 5 s: those of the seconds that the bucket keeps, and the one that waits
    [(0.0, 1), (1.0, 51), (2.0, 101), (None, 251)],
)
def test_a_stalled_source_catches_up_as_its_bucket_allows(
    catch_up_s: float | None, at_once: int, tmp_path: Path
) -> None:
    """After backpressure a source would flood its job, or never make up for it."""
    stalled = scenario(
        tmp_path,
        ONE,
        source={"a": {"catch_up_s": catch_up_s}},
        fault=[{"kind": "stall", "task": "a", "at_s": 5.001, "for_s": 5.0}],
    )
    times = [at for at, _ in emitted(run(stalled, 4))]
    end = 10_001_000_000
    assert not [at for at in times if 5_001_000_000 <= at < end]
    burst = [at for at in times if at == end]
    assert len(burst) in (at_once - 1, at_once)
    after = [at for at in times if end < at <= end + 5 * NS_PER_S]
    assert len(after) == 250  # then its rate again


def test_the_catch_up_of_a_bucket_is_whole(tmp_path: Path) -> None:
    """One event more than the bucket's permits would leave it: with an empty bucket two at once."""
    stalled = scenario(
        tmp_path,
        ONE,
        source={"a": {"catch_up_s": 0.0}},
        fault=[{"kind": "stall", "task": "a", "at_s": 5.0, "for_s": 5.0}],
    )
    times = [at for at, _ in emitted(run(stalled, 4))]
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert min(gaps) >= NS_PER_S // 50 - 1


def test_watermarks_trail_the_newest_event(tmp_path: Path) -> None:
    """Watermarks would promise what still comes, or stand still."""
    result = run(
        scenario(tmp_path, ONE, source={"a": {"watermark_interval_s": 0.5, "out_of_order_s": 0.1}}, until_s=5.0), 4
    )
    marks = [(e[0], e[4]) for e in result.entries if e[1] == ">watermark"]
    assert len(marks) == 9
    newest = {at: max(e.timestamp_ms for t, e in emitted(result) if t < at) for at, _ in marks}
    # the lateness is taken off twice: once from the event's own time, once as what may still come
    assert all(mark == newest[at] - 100 for at, mark in marks)
    assert [mark for _, mark in marks] == sorted({mark for _, mark in marks})
    assert result.verdict == "holds"


def test_a_periodic_source_asks_in_time_though_it_has_nothing_to_emit(tmp_path: Path) -> None:
    """An idle source would take no checkpoints, or only when an event happens to come (protocol rule 4)."""
    idle = scenario(
        tmp_path, ONE, source={"a": {"rate_per_s": 0.01, "trigger": "periodic"}}, checkpoint={"interval_s": 3.0}
    )
    result = run(idle, 4)
    triggers = [row["trigger_timestamp_ms"] for row in result.checkpoint_rows()]
    assert triggers == [3000.0, 6000.0, 9000.0, 12000.0, 15000.0, 18000.0]
    assert result.verdict == "holds"


@given(
    kind=st.sampled_from(["deterministic", "poisson", "bursty"]),
    rate_per_s=st.floats(1e3, 3e9),
    read=st.integers(0, 20),
    at_ns=st.integers(0, 100_000),
    most=st.one_of(st.just(math.inf), st.integers(0, 50)),
)
def test_arrivals_are_counted_as_they_are_drawn(
    kind: str, rate_per_s: float, read: int, at_ns: int, most: float
) -> None:
    """The backlog of a source that is held back would be wrong by one, or take hours to count."""
    drawn, counted = (Arrivals(kind, rate_per_s, 1e-5, 1e-5, stream(1, "a", "arrivals")) for _ in range(2))
    for _ in range(read):
        drawn.next()
        counted.next()
    expected = 0
    while expected < most and drawn.next() <= at_ns:
        expected += 1
    assert counted.count_by(at_ns, most) == expected


def test_a_billion_equal_gaps_are_not_drawn() -> None:
    """A run of two seconds would be counted for hours."""
    arrivals = Arrivals("deterministic", 1e9, 1.0, 1.0, stream(1, "a", "arrivals"))
    assert arrivals.count_by(10**15, math.inf) == 10**15
