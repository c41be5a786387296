"""The promises of intervals: as often as they say, and never what cannot be; and the sentence for no effect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from barrierlab.sim.ask.analyses import _quantile_of
from barrierlab.sim.sweep.analyse import LEAST_RUNS, quantile_ranks, t_interval
from barrierlab.sim.sweep.outcome import outcome
from barrierlab.sim.sweep.summary import answer, mean_pieces
from tests import breadth


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_quantile_intervals_hold_for_checkpoints_that_are_alike(quantile: float, alike: float) -> None:
    """Checkpoints of one run would count as independent: intervals for 95 % would hold in 88 of 100."""
    random = np.random.default_rng(7)
    runs, each, tries = 6, 25, 1500 if breadth.is_whole else 500
    truth = np.quantile(random.normal(size=1_000_000), quantile)
    covered = bounded = 0
    for _ in range(tries):
        own = random.normal(size=(runs, 1)) * alike**0.5 + random.normal(size=(runs, each)) * (1.0 - alike) ** 0.5
        values = np.sort(own.ravel())
        off = (own <= np.quantile(values, quantile)).sum(axis=1) - quantile * each
        low, high = quantile_ranks(runs * each, quantile, runs, float(np.square(off).sum()))
        above = values[high - 1] if high else np.inf
        covered += (values[low - 1] if low else -np.inf) <= truth <= above
        bounded += bool(low and high)
    assert covered / tries >= 0.93
    if alike == 0.0:  # or it holds because it says nothing
        assert bounded / tries >= 0.93


def test_few_runs_have_no_interval() -> None:
    """Two seeds would make an interval of Student's, a dozen times as wide as what they show."""
    assert t_interval(LEAST_RUNS - 1, 3.0, 1.0) == {"n": 4, "at": 3.0, "low": None, "high": None}
    assert t_interval(LEAST_RUNS, 3.0, 1.0)["low"] == pytest.approx(1.7584, abs=1e-3)
    assert quantile_ranks(1000, 0.5, LEAST_RUNS - 1, 1.0) == (0, 0)


def test_intervals_keep_to_what_is_possible() -> None:
    """A wait would be reported as perhaps below zero, or a share as above one."""
    assert t_interval(5, 1.0, 10.0, least=0.0)["low"] == 0.0
    assert t_interval(5, 0.99, 0.5, most=1.0)["high"] == 1.0


def analysis(*changes: tuple[float, float]) -> dict[str, Any]:
    """An analysis with differences of such a mean and deviation, over five seeds."""
    count = len(changes)
    differences = [
        {
            "value": str(number),
            "from": "0",
            "end_to_end_ms": t_interval(5, at, deviation),
            "adjusted_ms": t_interval(5, at, deviation, 1.0 - 0.05 / count),
            "start_delay_ms": t_interval(5, at, 0.0),
            "alignment_ms": t_interval(5, 0.0, 0.0),
        }
        for number, (at, deviation) in enumerate(changes, 1)
    ]
    values = [{"value": str(number)} for number in range(len(changes) + 1)]
    effects = [
        {
            "part": "p",
            "axis": "rate",
            "drawn": False,
            "values": values,
            "without_checkpoints": [],
            "differences": differences,
        }
    ]
    return {
        "sweep": {"parts": []},
        "pieces": [],
        "completion": [],
        "runs": {**outcome([], 0), "failures": 0, "duplicates": 0},
        "effects": effects,
        "measured": [],
    }


def test_an_effect_that_is_none_is_not_told_as_one() -> None:
    """The strongest lever would be a difference whose interval holds 0."""
    (none,) = answer(analysis((0.4, 2.9)))
    assert none == (
        "Nothing changes the duration more than chance does: the only difference, rate from 0 to 1, is +0.4 ms "
        "(95 % interval -3 to 4 ms)."
    )
    (one,) = answer(analysis((40.0, 10.0)))
    assert one.startswith(
        "What changes the duration most is rate: from 0 to 1 lengthens it by 40 ms (95 % interval 28 to 52 ms)"
    )


def test_what_shortens_a_checkpoint_does_so_by_as_much_as_its_interval_says() -> None:
    """A reader would see a checkpoint that is 40 ms shorter, with an interval from -52 to -28 ms."""
    (one,) = answer(analysis((-40.0, 10.0)))
    assert "shortens it by 40 ms (95 % interval 28 to 52 ms)" in one


def test_the_strongest_of_many_has_a_wider_interval() -> None:
    """Of twenty differences that are chance, one would be reported as an effect."""
    alone, of_many = answer(analysis((10.0, 7.0)))[0], answer(analysis((10.0, 7.0), *[(1.0, 7.0)] * 19))[0]
    assert alone.startswith("What changes the duration most")
    assert of_many.startswith("Nothing changes the duration more than chance does: the largest of 20 differences")
    assert "adjusted for 20 differences" in of_many


def test_a_difference_that_may_be_chance_hides_none_that_is_not() -> None:
    """One axis of much noise, and a whole sweep would be said to change nothing."""
    (text,) = answer(analysis((100.0, 90.0), (50.0, 5.0)))
    assert text.startswith("What changes the duration most is rate: from 0 to 2 lengthens it by 50 ms")
    assert text.endswith("A larger one, rate from 0 to 1, is +100.0 ms, which may be chance.")


def test_an_answer_says_which_axes_it_does_not_compare() -> None:
    """The listed axis would be called the strongest, beside a drawn one that changes the duration tenfold."""
    for sure, change in ("What changes the duration most", (40.0, 10.0)), ("Nothing changes the duration", (0.4, 2.9)):
        found = analysis(change)
        bins = [{"value": "0.1"}, {"value": "0.9"}]
        found["effects"].append(
            {**found["effects"][0], "axis": "load", "drawn": True, "values": bins, "differences": []}
        )
        text, besides = answer(found)
        assert text.startswith(sure)
        assert besides == "Not compared are axes whose values are drawn: load."


def test_what_changes_nothing_at_all_is_told_as_that() -> None:
    """A difference of nothing would be the largest, and be said to be chance."""
    (none,) = answer(analysis((0.0, 0.0), (0.0, 0.0)))
    assert none == "Of what is compared nothing changes the duration: rate."
    assert answer(analysis((0.0, 1.0)))[0].startswith("Nothing changes the duration more than chance does")


def test_an_axis_of_all_parts_is_named_once() -> None:
    """A sweep of three parts that are drawn would end in a line of eighteen axes."""
    found = analysis((40.0, 10.0))
    axis = {**found["effects"][0], "differences": []}
    load = {**axis, "axis": "load"}
    others = [load, {**load, "part": "q"}, {**axis, "part": "q"}]
    found["effects"] += others
    alone = "no two runs with checkpoints differ in that alone, as those of a grid do"
    assert answer(found)[1:] == [f"Not compared: load, rate of part “q”; {alone}."]


def test_too_few_seeds_leave_chance_open() -> None:
    """Two seeds would name the strongest effect."""
    found = analysis((10.0, 7.0))
    for key in ("end_to_end_ms", "adjusted_ms"):
        found["effects"][0]["differences"][0][key] = t_interval(2, 10.0, 7.0)
    assert answer(found) == [
        (
            "The only difference is that of rate from 0 to 1: +10.0 ms; 2 seeds are too few for an interval "
            "(5 are needed), so it may be chance."
        )
    ]


def test_one_seed_is_one() -> None:
    """The sentence would be of several."""
    found = analysis((10.0, 7.0))
    found["effects"][0]["differences"][0]["adjusted_ms"] = t_interval(1, 10.0, None)
    assert "+10.0 ms; 1 seed is too few for an interval" in answer(found)[0]


def test_an_answer_says_of_what_state_it_is() -> None:
    """The mean of a transient, or of an overloaded job, would stand there as that of the job."""
    rows = [{"steady_state": "not stationary", "piles_up_share": 0.2}, {"steady_state": "too short to judge"}] * 2
    found = analysis((40.0, 10.0)) | {"runs": {**outcome(rows, 4), "failures": 0, "duplicates": 0}}
    assert answer(found)[0] == (
        "Of 4 runs 2 are not stationary (MSER-5 and drift), so that a longer run would have other durations; "
        "2 are too short to judge (fewer than 20 checkpoints after the warm-up); 2 are overloaded."
    )


def test_every_figure_weighs_runs_alike() -> None:
    """One page would show two numbers for one mean: a run with many checkpoints counted more in the bars."""
    pieces = {"start_delay_ms": 1.0, "alignment_ms": 0.0, "sync_ms": 0.0, "rest_ms": 0.0}
    cells = [
        {"runs": 2, "n": 90, "end_to_end_ms": 10.0, **pieces},
        {"runs": 2, "n": 10, "end_to_end_ms": 30.0, **pieces},
        {"runs": 4, "n": 20, "end_to_end_ms": 50.0, **pieces},
    ]
    found = mean_pieces(cells)
    assert (found["n"], found["end_to_end_ms"], found["start_delay_ms"]) == (120, 35.0, 1.0)


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_an_answer_pools_runs_as_a_bootstrap_over_them_does(quantile: float) -> None:
    """An answer's quantile would be as sure as if all checkpoints were of runs of their own: a third of the width."""
    from scipy.stats import bootstrap

    random = np.random.default_rng(11)
    own = [
        100.0 + 10.0 * random.normal() + 5.0 * random.normal(size=random.integers(15, 30)) for _ in range(40)
    ]  # of unequal numbers of checkpoints
    facts: Any = [SimpleNamespace(durations_ms=tuple(each)) for each in own]
    found = _quantile_of(facts, quantile)

    def pooled(runs: Any) -> float:
        return float(np.quantile(np.concatenate([own[run] for run in runs]), quantile))

    resampled = bootstrap(
        (np.arange(40),), pooled, n_resamples=2000, vectorized=False, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    width = resampled.high - resampled.low
    assert found.at == pytest.approx(pooled(range(40)))
    assert found.low is not None
    assert found.high is not None
    assert found.low < resampled.low + 0.25 * width
    assert found.high > resampled.high - 0.25 * width
    assert found.high - found.low < 2.0 * width
    alone = quantile_ranks(sum(map(len, own)), quantile, 40, 0.0)
    values = np.sort(np.concatenate(own))
    assert values[alone[1] - 1] - values[alone[0] - 1] < 0.5 * width
