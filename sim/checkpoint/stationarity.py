"""Stationarity of what a run measured: a rule for its warm-up, and overload called by its name.

The rule is MSER-5 over the durations of the checkpoints that completed after the scenario's warm-up: in means of five,
leave out as many at the front as make the mean of the rest most certain, at most half (K. P. White, "An effective
truncation heuristic for bias reduction in simulation output", Simulation 69, 1997). A run is not stationary if what is
left out moves the mean by more than `TOLERANCE`, or the second half's mean is further than that from the first's, and
that is more than chance does (ranks of Mann and Whitney for a front, Kendall's for a drift): a longer warm-up or a
longer run would give another number. Fewer than `LEAST` checkpoints are too few for the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pvariance
from typing import NamedTuple

BATCH = 5
LEAST = 20  # four means of five; of fewer, half is not a choice
TOLERANCE = 0.05  # half of what the measured jobs are predicted within
SIGNIFICANCE = 0.01
STATIONARY, NOT_STATIONARY, TOO_SHORT, NOT_JUDGED = "stationary", "not stationary", "too short to judge", "not judged"

OVERLOADED = 0.05  # of what arrives, piling up over the steady time: load 1.05; queues below 1 come and go


class SteadyState(NamedTuple):
    """The rule's verdict on a run.

    Attributes
    ----------
    verdict : str
        `STATIONARY`, `NOT_STATIONARY`, `TOO_SHORT`, or `NOT_JUDGED` where a library is missing.
    checkpoints : int
        How many it saw.
    left_out : int
        How many of those, at the front, it would leave out.
    why : str
        In words.
    """

    verdict: str
    checkpoints: int
    left_out: int
    why: str


def mser5(values: Sequence[float]) -> int:
    """Return how many values to leave out at the front, a multiple of five and at most half of them.

    >>> mser5([9.0] * 5 + [1.0, 2.0, 3.0, 2.0, 1.0] * 5), mser5([1.0, 2.0, 3.0, 2.0, 1.0] * 6)
    (5, 0)
    """
    means = [fmean(values[start : start + BATCH]) for start in range(0, len(values) - BATCH + 1, BATCH)]
    if not means:
        return 0
    return BATCH * min(range(len(means) // 2 + 1), key=lambda n: pvariance(means[n:]) / (len(means) - n))


def steady_state(durations_ms: Sequence[float]) -> SteadyState:
    """Return the rule's verdict on the durations of a run's steady checkpoints, in the order of their triggers."""
    count = len(durations_ms)
    if count < LEAST:
        why = f"{count} checkpoint{'' if count == 1 else 's'} completed after the warm-up, of at least {LEAST}"
        return SteadyState(TOO_SHORT, count, 0, why)
    left_out = mser5(durations_ms)
    mean = fmean(durations_ms)
    for split, is_drift in ((left_out, False), (count // 2, True)):
        if not split:
            continue
        front, rest = durations_ms[:split], durations_ms[split:]
        before, after = fmean(front), fmean(rest)
        moved = after - (before if is_drift else mean)
        if abs(moved) <= TOLERANCE * after:
            continue
        try:
            chance = _chance(durations_ms if is_drift else front, rest, is_drift)
        except ModuleNotFoundError as error:  # the core runs without the libraries of sweeps
            why = f"a test of {count} checkpoints needs {error.name}: pip install 'barrierlab[sweep]'"
            return SteadyState(NOT_JUDGED, count, left_out, why)
        if chance < SIGNIFICANCE:
            why = (
                f"the first {split} of {count} checkpoints after the warm-up take {before:.0f} ms on average, the "
                f"others {after:.0f} ms: warm up longer, and run longer"
            )
            return SteadyState(NOT_STATIONARY, count, left_out, why)
    return SteadyState(STATIONARY, count, left_out, f"by MSER-5 over {count} checkpoints")


def _chance(values: Sequence[float], rest: Sequence[float], is_drift: bool) -> float:
    """Return how often chance alone makes as much of a drift, or as much of a difference to the rest."""
    from scipy.stats import kendalltau, mannwhitneyu

    found = kendalltau(range(len(values)), values) if is_drift else mannwhitneyu(values, rest)
    return float(found.pvalue)


def piles_up(samples: Sequence[tuple[int, float]], arrivals_per_s: float) -> float | None:
    """Return the share of what arrives that piles up.

    `samples` are (time in ns, records queued anywhere): when the warm-up ends, half-way, and at the run's end. None
    where one is missing, since the job ended before; 0 if what is queued does not grow in both halves.
    """
    if len(samples) < 3 or not arrivals_per_s:
        return None
    (begin_ns, begin), (_, middle), (end_ns, end) = samples
    if not begin < middle < end:
        return 0.0
    return (end - begin) / (arrivals_per_s * (end_ns - begin_ns) / 1e9)
