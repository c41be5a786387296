"""The closed forms of the interval between checkpoints, in seconds.

Failures come without memory, `mtbf_s` apart in the mean. A checkpoint stops the work for `cost_s`; a period is work and
the checkpoint that ends it, from trigger to trigger, as Flink counts its interval. A failure loses what was done since
the last checkpoint, and `lost_s` more: detection, restart, read, and the time by which a checkpoint completes after the
work goes on.
"""

from __future__ import annotations

import math

SMALL_SHARE = 1e-8
"""Of cost in the time between failures: below it, W0 is so near its branch point that rounding shows, and Daly's series
is the same to within 1e-8."""


def young_work_s(cost_s: float, mtbf_s: float) -> float:
    """Return the work between two checkpoints by J. W. Young (CACM 17, 1974): the first order."""
    return math.sqrt(2 * cost_s * mtbf_s)


def daly_work_s(cost_s: float, mtbf_s: float) -> float:
    """Return the work between two checkpoints by J. T. Daly (FGCS 22, 2006): a higher order."""
    if cost_s >= 2 * mtbf_s:
        return mtbf_s
    half = cost_s / (2 * mtbf_s)
    return young_work_s(cost_s, mtbf_s) * (1 + math.sqrt(half) / 3 + half / 9) - cost_s


def best_period_s(cost_s: float, mtbf_s: float) -> float:
    """Return the period with the largest `utilisation`: exact, and the same whatever a restart takes."""
    from scipy.special import lambertw

    share = cost_s / mtbf_s
    if share < SMALL_SHARE:
        return daly_work_s(cost_s, mtbf_s) + cost_s
    return float(mtbf_s * (1 + share + lambertw(-math.exp(-1 - share)).real))


def utilisation(period_s: float, cost_s: float, mtbf_s: float, lost_s: float = 0.0, exposed: bool = False) -> float:
    """Return the share of all time that is work which stays.

    `exposed`: a failure can strike during what is lost after a failure, too, which then begins again.
    """
    work_s = period_s - cost_s
    if work_s <= 0:
        return 0.0
    ratio = period_s / mtbf_s
    if ratio > 700:  # expm1 overflows beyond
        return 0.0
    lost = math.exp(min(lost_s / mtbf_s, 700)) if exposed else 1 + lost_s / mtbf_s
    return work_s / (mtbf_s * lost * math.expm1(ratio))


def band_s(cost_s: float, mtbf_s: float, lost_s: float = 0.0, exposed: bool = False) -> tuple[float, float]:
    """Return the shortest and longest period that costs at most 1 % more than the best.

    What a period costs is the share of time that is not work which stays: 1 - `utilisation`.
    """
    from scipy.optimize import brentq

    best_s = best_period_s(cost_s, mtbf_s)
    allowed = 1.01 * (1 - utilisation(best_s, cost_s, mtbf_s, lost_s, exposed))
    if best_s <= 0 or allowed >= 1:
        return cost_s, math.inf

    def above(period_s: float) -> float:
        return 1 - utilisation(period_s, cost_s, mtbf_s, lost_s, exposed) - allowed

    longest_s = 2 * best_s
    while above(longest_s) < 0:
        longest_s *= 2
    return float(brentq(above, cost_s, best_s)), float(brentq(above, best_s, longest_s))


def largest_lag_s(period_s: float, duration_s: float, down_s: float) -> float:
    """Return the lag of the sources right after a restart, at worst, in seconds of arrivals.

    The state that is restored is as old as a period and the checkpoint that was not complete yet; arrivals went on
    while the job was down. From there on the lag falls as long as the load is below 1.
    """
    return down_s + duration_s + period_s


def largest_lag_after_stuck_s(interval_s: float, timeout_s: float, duration_s: float, down_s: float) -> float:
    """Return the same where the checkpoint before the one that was not complete yet was stuck until it expired.

    The state that is restored is an interval older then, and the next checkpoint begins when one is due and the stuck
    one has expired.
    """
    return largest_lag_s(interval_s + max(interval_s, timeout_s), duration_s, down_s)


def catch_up_s(lag_s: float, load: float) -> float:
    """Return the time in which a job with this load (arrivals over capacity) is through with a lag; inf from load 1."""
    return lag_s * load / (1 - load) if load < 1 else math.inf
