"""The error of the simulation itself, by kind of figure: what is left between predicted and measured of other jobs.

A figure is off by `floor`, in its unit, and by `share` of what is predicted: two standard deviations, fitted by maximum
likelihood to the residuals of measured runs, each predicted without its own configuration. Beside them stands the
variance of the simulated runs, by their Qn (Rousseeuw and Croux, 1993), which half of them may lie anywhere without
changing much: a run in which everything was slow is the likelihood's to weigh. Either part is Student's: the error with
as many degrees of freedom as there are configurations, the chance with those of so few simulated runs.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import combinations
from statistics import median

from barrierlab.model.checkpoint.protocols import Protocol

LEVEL = 0.95  # of either end
QN = 2.2219  # standard deviations, of a normal distribution, in a quarter of all differences
OF_FEW = {2: 0.399, 3: 0.994, 4: 0.512, 5: 0.844, 6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}  # Croux and Rousseeuw, 1992
EFFICIENCY = 0.6  # of Qn of some nine values, beside a standard deviation, of a normal distribution
TIMES = ("end to end", "start delay", "alignment", "imbalance")
CLOCK = 1 / 12  # ms squared: of a clock of whole milliseconds


@dataclass(frozen=True, slots=True)
class Residual:
    """One figure of one measured run: its kind, its configuration, the simulated values, and the measured one."""

    kind: str
    configuration: str
    simulated: tuple[float, ...]
    measured: float

    @property
    def predicted(self) -> float:
        """The median of the simulated values."""
        return median(self.simulated)


@dataclass(frozen=True, slots=True)
class ErrorTerm:
    """The error of one kind of figure, and how many configurations say so. `quantile` is Student's."""

    floor: float
    share: float
    configurations: int
    quantile: float

    def half_width(self, simulated: Sequence[float]) -> float:
        """Return half the interval of a figure with these simulated values."""
        own = (self.floor**2) + (self.share * median(simulated)) ** 2
        return math.sqrt(self.quantile**2 * own + quantile_of_runs(len(simulated)) ** 2 * chance(simulated))


@cache
def quantile_of_runs(count: int) -> float:
    """Return Student's quantile for the chance of so many runs, of which Qn knows as much as `EFFICIENCY` of them."""
    from scipy.stats import t

    return float(t.ppf(LEVEL, max(1.0, EFFICIENCY * (count - 1))))


def chance(simulated: Sequence[float]) -> float:
    """Return the variance of a further run about the median of these."""
    return scale(simulated) ** 2 * (1 + 1 / len(simulated))


def scale(values: Sequence[float]) -> float:
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
        found = "unaligned, saturated" if is_saturated else "unaligned, below saturation"
    elif not is_saturated:
        found = "below saturation"
    else:
        found = "timeout, saturated" if protocol.goes_unaligned else f"{protocol.name}, saturated"
    return f"{found}, debloated" if is_saturated and is_debloated else found


def kind_of(statistic: str, operator: str, regime_of_it: str) -> str:
    """Return the kind of a figure: bytes of a job and of an operator are two, times are one."""
    of = " of an operator" if operator and statistic in ("persisted", "processed") else ""
    return f"{statistic}{of}: {regime_of_it}"


def fitted(residuals: Sequence[Residual]) -> ErrorTerm:
    """Return the likeliest error of residuals of one kind; each configuration counts once.

    Of one configuration all that it was off counts as error: that it was chance cannot be seen.
    """
    from scipy.stats import t

    rows = Counter(each.configuration for each in residuals)
    clock = CLOCK if residuals[0].kind.split(":")[0] in TIMES else 0.0
    found = [
        (
            each.measured - each.predicted,
            each.predicted,
            (chance(each.simulated) if len(rows) > 1 else 0.0) + clock,
            1 / rows[each.configuration],
        )
        for each in residuals
    ]
    largest = max(abs(off) for off, _, _, _ in found) or 1.0
    floors = [largest * 1e-3, *(largest * 10 ** (step / 8 - 2.5) for step in range(25))]
    shares = [0.0, *(10 ** (step / 8 - 2.7) for step in range(25))]

    def unlikelihood(floor: float, share: float) -> float:
        total = 0.0
        for off, size, known, weight in found:
            spread = known + floor**2 + (share * size) ** 2
            total += weight * (math.log(spread) + off**2 / spread)
        return total

    floor, share = min(((a, b) for a in floors for b in shares), key=lambda pair: unlikelihood(*pair))
    return ErrorTerm(float(f"{floor:.4g}"), float(f"{share:.4g}"), len(rows), round(float(t.ppf(LEVEL, len(rows))), 4))


def fit_all(residuals: Sequence[Residual]) -> dict[str, ErrorTerm]:
    """Return the error of each kind."""
    by_kind: dict[str, list[Residual]] = {}
    for each in residuals:
        by_kind.setdefault(each.kind, []).append(each)
    return {kind: fitted(rows) for kind, rows in sorted(by_kind.items())}


def text_of(terms: Mapping[str, ErrorTerm]) -> str:
    """Return the terms as TOML."""
    lines = ["# The error of the simulation by kind of figure (python -m tests.leave_one_out); ms or bytes."]
    for kind, term in terms.items():
        lines += ["", f'["{kind}"]', f"floor = {term.floor}", f"share = {term.share}"]
        lines += [f"configurations = {term.configurations}", f"quantile = {term.quantile}"]
    return "\n".join(lines) + "\n"


@cache
def shipped() -> Mapping[str, ErrorTerm]:
    """The errors on the measured cluster of sim/data/flink."""
    text = (files("barrierlab.sim") / "data" / "flink" / "errors.toml").read_text(encoding="utf-8")
    return {
        kind: ErrorTerm(table["floor"], table["share"], table["configurations"], table["quantile"])
        for kind, table in tomllib.loads(text).items()
    }
