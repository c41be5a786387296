"""The error of the simulation itself, by kind of figure: what is left between predicted and measured of other jobs.

A figure is off by `floor`, in its unit, and by `share` of what is predicted: two standard deviations, fitted by maximum
likelihood to the residuals of measured runs, each predicted without its own configuration: from all others of its
cluster, or from one alone. Kinds of one statistic and one way to align are a family: those of a figure's own kind count
as they are, and all others of its family together as one configuration (a power prior: Ibrahim and Chen, 2000). Beside
them stands the variance of the simulated runs, by their Qn (Rousseeuw and Croux, 1993), which half of them may lie
anywhere without changing much: a run in which everything was slow is the likelihood's to weigh. Of few runs it is
uncertain itself, and moderated by what is usual in the family (Smyth, 2004). Either part is Student's: the error with
as many degrees of freedom as there are configurations, the chance with those of the runs and of the family.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import combinations
from statistics import fmean, median, variance

from barrierlab.model.checkpoint.protocols import Protocol

LEVEL = 0.95  # of either end
QN = 2.2219  # standard deviations, of a normal distribution, in a quarter of all differences
OF_FEW = {2: 0.399, 3: 0.994, 4: 0.512, 5: 0.844, 6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}  # Croux and Rousseeuw, 1992
EFFICIENCY = 0.6  # of Qn of some nine values, beside a standard deviation, of a normal distribution
TIMES = ("end to end", "start delay", "alignment", "imbalance")
CLOCK = 1 / 12  # ms squared: of a clock of whole milliseconds
BELOW = "below saturation"


@dataclass(frozen=True, slots=True)
class Residual:
    """One figure of one measured run: its kind, its configuration and mode, the simulated values, the measured one."""

    kind: str
    configuration: str
    simulated: tuple[float, ...]
    measured: float
    mode: str = ""

    @property
    def predicted(self) -> float:
        """The median of the simulated values."""
        return median(self.simulated)


@dataclass(frozen=True, slots=True)
class UsualChance:
    """The share of their median by which runs of a family's figures usually differ, and as how many degrees of freedom
    that counts beside those of a figure's own runs."""

    share: float = 0.0
    freedom: float = 0.0

    def moderated(self, simulated: Sequence[float]) -> tuple[float, float]:
        """Return the chance of these runs, moderated by what is usual, and its degrees of freedom."""
        own, usual = freedom_of(len(simulated)), self.freedom if median(simulated) else 0.0
        total = own + usual
        if not total:
            return 0.0, 1.0
        return (own * chance(simulated) + usual * (self.share * median(simulated)) ** 2) / total, max(1.0, total)


@dataclass(frozen=True, slots=True)
class ErrorTerm:
    """The error of one kind of figure, and how many configurations say so. `quantile` is Student's."""

    floor: float
    share: float
    configurations: int
    quantile: float
    usual: UsualChance = UsualChance()

    def half_width(self, simulated: Sequence[float]) -> float:
        """Return half the interval of a figure with these simulated values."""
        own = (self.floor**2) + (self.share * median(simulated)) ** 2
        of_runs, freedom = self.usual.moderated(simulated)
        return math.sqrt(self.quantile**2 * own + quantile_of(freedom) ** 2 * of_runs)


@cache
def quantile_of(freedom: float) -> float:
    """Return Student's quantile of an end."""
    from scipy.stats import t

    return float(t.ppf(LEVEL, freedom))


def freedom_of(count: int) -> float:
    """Return the degrees of freedom of the chance of so many runs: Qn knows as much as `EFFICIENCY` of them do."""
    return max(1.0, EFFICIENCY * (count - 1)) if count > 1 else 0.0


def chance(simulated: Sequence[float]) -> float:
    """Return the variance of a further run about the median of these."""
    return scale(tuple(simulated)) ** 2 * (1 + 1 / len(simulated))


def usual_chance(figures: Sequence[Sequence[float]]) -> UsualChance:
    """Return what the runs of these figures have in common: a variance, as a share, whose logarithm is spread among the
    figures by as much as that of so few runs does not explain (Smyth, 2004). It counts as no more than all their runs;
    of fewer than three figures nothing is usual."""
    from scipy.optimize import brentq
    from scipy.special import digamma, polygamma

    logs, freedoms = [], []
    for simulated in figures:
        if (own := chance(simulated)) and median(simulated):
            freedoms.append(freedom := freedom_of(len(simulated)))
            logs.append(math.log(own / median(simulated) ** 2) - digamma(freedom / 2) + math.log(freedom / 2))
    if len(logs) < 3:
        return UsualChance()
    left = variance(logs) - fmean(polygamma(1, each / 2) for each in freedoms)
    half = sum(freedoms) / 2
    if left > polygamma(1, half):
        half = brentq(lambda each: polygamma(1, each) - left, 1e-3, half)
    share = math.exp((fmean(logs) + digamma(half) - math.log(half)) / 2)
    return UsualChance(float(f"{share:.4g}"), float(f"{2 * half:.4g}"))


@lru_cache(maxsize=4096)  # each figure is fitted beside the others of its family again and again
def scale(values: tuple[float, ...]) -> float:
    """Return Qn: the standard deviation of a normal distribution whose differences are as these; of a single one 0."""
    count, half = len(values), len(values) // 2 + 1
    differences = sorted(abs(a - b) for a, b in combinations(values, 2))
    if not differences:
        return 0.0
    usual = count / (count + (1.4 if count % 2 else 3.8))
    return QN * OF_FEW.get(count, usual) * differences[half * (half - 1) // 2 - 1]


def regime(protocol: Protocol, is_saturated: bool, is_debloated: bool = False) -> str:
    """Return what rules a checkpoint: an alignment that waits for queues, a timeout, what overtakes, or the flush.

    Where queues are saturated it matters besides whether their buffers are of a size that follows the throughput.
    """
    if protocol.settings.is_flagged:
        found = "unaligned, saturated" if is_saturated else f"unaligned, {BELOW}"
    elif not is_saturated:
        found = BELOW
    else:
        found = "timeout, saturated" if protocol.goes_unaligned else f"{protocol.name}, saturated"
    return f"{found}, debloated" if is_saturated and is_debloated else found


def kind_of(statistic: str, operator: str, regime_of_it: str) -> str:
    """Return the kind of a figure: bytes of a job and of an operator are two, times are one."""
    of = " of an operator" if operator and statistic in ("persisted", "processed") else ""
    return f"{statistic}{of}: {regime_of_it}"


def family_of(kind: str) -> str:
    """Return the family of a kind: its statistic, and whether it waits for queues, for a timeout, or for none."""
    statistic, _, rule = kind.partition(": ")
    return f"{statistic}: {BELOW if rule.endswith(BELOW) else rule.partition(', ')[0]}"


def fitted(
    residuals: Sequence[Residual], others: Sequence[Residual] = (), usual: UsualChance = UsualChance()
) -> ErrorTerm:
    """Return the likeliest error of residuals of one kind, beside others of its family.

    Each configuration counts once, the others together as one more. Of one configuration all that it was off counts as
    error: that it was chance cannot be seen.
    """
    import numpy as np

    rows = [(each, 1 / count) for each, count in _with_counts(residuals)]
    configurations = round(sum(weight for _, weight in rows))
    if others:
        shared = len({each.configuration for each in others})
        rows += [(each, 1 / count / shared) for each, count in _with_counts(others)]
        configurations += 1
    clock = CLOCK if rows[0][0].kind.split(":")[0] in TIMES else 0.0
    found = [
        (each.measured - each.predicted, each.predicted, usual.moderated(each.simulated)[0], weight)
        for each, weight in rows
    ]
    off, size, of_runs, weights = np.array(found).T
    known = (of_runs if configurations > 1 else 0.0) + clock
    steps = np.arange(25) / 8
    floors = (np.abs(off).max() or 1.0) * np.append(1e-3, 10 ** (steps - 2.5))
    shares = np.append(0.0, 10 ** (steps - 2.7))
    spread = known + floors[:, None, None] ** 2 + (shares[None, :, None] * size) ** 2
    unlikelihood = (weights * (np.log(spread) + off**2 / spread)).sum(axis=2)
    at_floor, at_share = np.unravel_index(unlikelihood.argmin(), unlikelihood.shape)
    quantile = round(quantile_of(configurations), 4)
    floor, share = (float(f"{each:.4g}") for each in (floors[at_floor], shares[at_share]))
    return ErrorTerm(floor, share, configurations, quantile, usual)


def _with_counts(residuals: Sequence[Residual]) -> list[tuple[Residual, int]]:
    """Return each with how many of them are of its configuration."""
    counts = Counter(each.configuration for each in residuals)
    return [(each, counts[each.configuration]) for each in residuals]


def fit_all(residuals: Sequence[Residual]) -> dict[str, ErrorTerm]:
    """Return the error of each kind."""
    families: dict[str, list[Residual]] = {}
    for each in residuals:
        families.setdefault(family_of(each.kind), []).append(each)
    found = {}
    for rows in families.values():
        usual = usual_chance([each.simulated for each in rows])
        for kind in dict.fromkeys(each.kind for each in rows):
            own, others = ([each for each in rows if (each.kind == kind) is is_own] for is_own in (True, False))
            found[kind] = fitted(own, others, usual)
    return dict(sorted(found.items()))


def text_of(terms: Mapping[str, ErrorTerm]) -> str:
    """Return the terms as TOML."""
    lines = ["# The error of the simulation by kind of figure (python -m tests.leave_one_out); ms or bytes."]
    for kind, term in terms.items():
        lines += ["", f'["{kind}"]', f"floor = {term.floor}", f"share = {term.share}"]
        lines += [f"configurations = {term.configurations}", f"quantile = {term.quantile}"]
        lines += [f"usual = {{ share = {term.usual.share}, freedom = {term.usual.freedom} }}"]
    return "\n".join(lines) + "\n"


@cache
def shipped(configurations: int) -> Mapping[str, ErrorTerm]:
    """The errors on the measured clusters of sim/data/flink, of costs from one configuration or from several."""
    name = "errors.toml" if configurations > 1 else "errors_of_one.toml"
    text = (files("barrierlab.sim") / "data" / "flink" / name).read_text(encoding="utf-8")
    return {
        kind: ErrorTerm(**{**table, "usual": UsualChance(**table["usual"])})
        for kind, table in tomllib.loads(text).items()
    }
