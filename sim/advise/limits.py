"""The rest of the advice: how barriers are aligned, how long a checkpoint may take, how many may fail in a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.sim.advise.laws import largest_lag_after_stuck_s
from barrierlab.sim.advise.pieces import NoAdviceError, Pieces, measured
from barrierlab.sim.advise.simulated import SimulatedPoint
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.scenario.settings import Scenario

WORTH = 0.01
"""Of the time lost, as in the band of intervals: a mode that saves less is not worth a change."""
LONGEST = 2.0
"""A timeout is so many times the longest checkpoint seen: the next one is longer by less, and a stuck one is let go."""
RARE = 0.1
"""Of all failures: so few may be restarts that nothing but failed checkpoints in a row caused."""
CONFIDENCE = 0.95
FLINK_TIMEOUT_S = 600.0
MODES = ("aligned", "unaligned")


@dataclass(frozen=True, slots=True)
class TimeoutAdvice:
    """A timeout and a number of tolerable failures; `window_s` is how long a job may go without a checkpoint by them.

    `failing` is the share of checkpoints that fail, at most, with 95 % confidence, of `seen` that were seen.
    """

    timeout_s: float
    tolerable_failures: int
    window_s: float
    failing: float
    seen: int
    longest_s: float
    sentence: str


def in_mode(scenario: Scenario, mode: str) -> Scenario:
    """Return the scenario with barriers that always wait (``aligned``), or never (``unaligned``)."""
    one_at_a_time = protocol_of(mode).goes_unaligned  # as Flink's unaligned checkpoints come
    concurrent = 1 if one_at_a_time else scenario.checkpoint.max_concurrent
    checkpoint = replace(scenario.checkpoint, aligned_checkpoint_timeout_s=0.0, max_concurrent=concurrent)
    return replace(scenario, protocol=mode, checkpoint=checkpoint)


def pieces_by_mode(scenario: Scenario, own: Pieces) -> dict[str, Pieces]:
    """Return the pieces in the scenario's own mode, first, and in each other one in which they can be had.

    At-least-once barriers are not weighed against others: they promise another thing.
    """
    found = {scenario.mode.name: own}
    if not scenario.mode.is_exact:
        return found
    for mode in MODES:
        if mode not in found:
            try:
                found[mode] = measured(in_mode(scenario, mode))
            except NoAdviceError:
                continue
    return found


def better_mode(lost: dict[str, float]) -> str:
    """Return the mode that loses least time; the first, the job's own, if no other saves `WORTH` of what it loses.

    >>> better_mode({"aligned": 0.02, "unaligned": 0.0199}), better_mode({"aligned": 0.02, "unaligned": 0.01})
    ('aligned', 'unaligned')
    """
    own = next(iter(lost))
    best = min(lost, key=lambda mode: lost[mode])
    return best if lost[best] < (1 - WORTH) * lost[own] else own


def share_failing(failed: int, seen: int) -> float:
    """Return the largest share that so few failures do not rule out (Clopper and Pearson, one-sided).

    >>> round(share_failing(0, 100), 4)  # the rule of three
    0.0295
    """
    from scipy.stats import beta

    return 1.0 if failed >= seen else float(beta.ppf(CONFIDENCE, failed + 1, seen - failed))


def tolerable(failing: float, interval_s: float, mtbf_s: float) -> int:
    """Return the fewest failed checkpoints to tolerate in a row, so that restarts by chance alone are `RARE`.

    Checkpoints that fail independently: a run of k + 1 failures begins with every checkpoint with failing ** (k + 1).

    >>> tolerable(0.01, 10.0, 3600.0), tolerable(1e-6, 10.0, 3600.0)
    (1, 0)
    """
    if failing >= 1:
        return 0  # whatever is tolerated, the job fails
    allowed = RARE * interval_s / mtbf_s
    return 0 if failing <= 0 else max(0, math.ceil(math.log(allowed) / math.log(failing)) - 1)


def limits(pieces: Pieces, points: Sequence[SimulatedPoint], mtbf_s: float, interval_s: float) -> TimeoutAdvice:
    """Return the timeout and the tolerable failures, from all checkpoints that were seen."""
    longest_s = max(pieces.longest_s, *(point.longest_s for point in points), 0.0)
    failed = pieces.failed + sum(point.failed for point in points)
    seen = pieces.completed + sum(point.completed for point in points) + failed
    failing = share_failing(failed, seen)
    timeout_s = LONGEST * longest_s
    k = tolerable(failing, interval_s, mtbf_s)
    window_s = (k + 1) * max(interval_s, timeout_s)
    stuck_s = largest_lag_after_stuck_s(interval_s, timeout_s, pieces.duration_s, pieces.down_s)
    default_s = largest_lag_after_stuck_s(interval_s, FLINK_TIMEOUT_S, pieces.duration_s, pieces.down_s)
    checkpoints = "checkpoint" if k == 1 else "checkpoints"
    sentence = (
        f"Let a checkpoint expire after {timeout_s:.3g} s, {LONGEST:g} times the longest of {seen - failed} that "
        f"completed: one that is stuck then costs a failure {stuck_s:.3g} s of lag, not {default_s:.3g} s as with "
        f"Flink's ten minutes. Tolerate {k} failed {checkpoints} in a row: {failed} of {seen} failed, so at most "
        f"{percent(failing, 2)} do, and restarts for that alone stay below a tenth of the failures."
    )
    return TimeoutAdvice(timeout_s, k, window_s, failing, seen, longest_s, sentence)
