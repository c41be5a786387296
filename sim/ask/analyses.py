"""The kinds of analysis, by name: each makes runs on a bench, and gives numbers, a case, and what moves its number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp, inf, log
from statistics import fmean
from typing import Any

from barrierlab.sim.ask.bench import (
    BATCH,
    MOST,
    Bench,
    NothingToSayError,
    Number,
    OutOfTimeError,
    QuestionError,
    mean_of,
)
from barrierlab.sim.ask.facts import Facts
from barrierlab.sim.ask.levers import Changes
from barrierlab.sim.ask.measures import CLOSED, MEASURES, OF_SCENARIO, WORDS, Measure
from barrierlab.sim.checkpoint.stationarity import NOT_STATIONARY, OVERLOADED
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.scenario.readers import suggest

SEEDS = range(1, BATCH + 1)
FEW = SEEDS[:2]  # to find about where a change moves a crossing; all say where it is
NEAR = 0.05  # of a crossover: there its slope is taken
TOLERANCE = 0.002  # of the range on which a crossover is sought: less than the interval of any
Cells = dict[str, Any]


@dataclass(slots=True)
class Analysed:
    """The result of an analysis.

    Attributes
    ----------
    numbers : mapping
        By name: a `Number`, or a word; the first is the answer's.
    case : str
        Which sentence.
    moves : callable or None
        Gives, for the facts of a seed with a change, the answer's number as that seed has it: for `what would change`.
    rows : list of mapping
        A table, for the eye.
    notes : list of str
    """

    numbers: dict[str, Number | str]
    case: str
    moves: Callable[[Changes], list[float]] | None = None
    rows: list[Cells] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def answer(self) -> Number:
        """The number that the answer ends in."""
        return next(each for each in self.numbers.values() if isinstance(each, Number))


def _measure(name: str) -> tuple[str, Measure]:
    if name not in MEASURES:
        raise QuestionError(f"no measure {name!r}; allowed: {', '.join(MEASURES)}{suggest(name, MEASURES)}")
    return MEASURES[name]


def _moves(bench: Bench, base: Changes, value: Callable[..., float | None], others: Sequence[Changes] = ()) -> Any:
    """Return the function that gives the answer's number by seed, if all variants are changed."""

    def moved(changes: Changes) -> list[float]:
        return bench.values([{**each, **changes} for each in (base, *others)], value, SEEDS)

    return moved


def _mean(bench: Bench, changes: Changes, measure: str, most: int = MOST) -> Number:
    """Return the mean of a measure with changes."""
    unit, value = _measure(measure)
    return bench.replicate([changes], value, unit, least=0.0, most=most)


def _grows(facts: Sequence[Facts]) -> bool:
    """Return whether in most runs the job falls behind, and durations grow without a steady state."""
    return 2 * sum(f.grows and f.piles_up != 0.0 for f in facts) > len(facts)


def _notes(facts: Sequence[Facts]) -> list[str]:
    """Say that the job falls behind, if it does in most runs; or else that there is no steady state."""
    shares = [f.piles_up for f in facts if f.piles_up is not None and f.piles_up >= OVERLOADED]
    if 2 * len(shares) <= len(facts):
        if _grows(facts) or 2 * sum(f.steady == NOT_STATIONARY for f in facts) <= len(facts):
            return []
        return ["durations change during the runs, though the job keeps up: another warmup_s gives other numbers"]
    return [f"the job falls behind: {percent(fmean(shares))} of what arrives piles up, and buffers are full"]


LOADED = ("predicted", "catch_up_predicted", "load")
"""Closed forms in which the load of the busiest operator is."""


def _skewed(bench: Bench, changes: Changes, names: Mapping[str, str]) -> list[str]:
    """Say that a closed form has the busiest subtask as one of many alike, if keys make them differ."""
    scenario = bench.loaded(changes)
    skewed = [name for name, source in scenario.sources.items() if source.key_skew]
    is_hashed = any(scenario.topology.exchange(edge) == "hash" for edge in scenario.topology.edges)
    if not (skewed and is_hashed and set(LOADED) & set(names.values())):
        return []
    return [f"the closed form spreads keys evenly over subtasks; key_skew of {', '.join(skewed)} does not"]


def _words(facts: Sequence[Facts], names: Mapping[str, str]) -> dict[str, Number | str]:
    return {name: Counter(WORDS[word](f) for f in facts).most_common(1)[0][0] for name, word in names.items()}


def _closed(bench: Bench, changes: Changes, names: Mapping[str, str]) -> dict[str, Number | str]:
    scenario = bench.loaded(changes)
    return {name: Number(CLOSED[form][1](scenario), None, None, CLOSED[form][0], 0) for name, form in names.items()}


def mean(bench: Bench, options: Mapping[str, Any]) -> Analysed:
    """Give the means of some measures, and closed forms beside them. Cases: ``steady``, ``growing``."""
    numbers: dict[str, Number | str] = {name: _mean(bench, {}, measure) for name, measure in options["numbers"].items()}
    facts = bench.facts({}, SEEDS)
    numbers |= _others(bench, {}, options)
    numbers |= _words(facts, options.get("words", {}))
    numbers |= _closed(bench, {}, options.get("closed", {}))
    first = _measure(next(iter(options["numbers"].values())))[1]
    notes = _notes(facts) + _skewed(bench, {}, options.get("closed", {}))
    found = Analysed(numbers, "growing" if _grows(facts) else "steady", _moves(bench, {}, first), notes=notes)
    if "lag_curve" in options:
        lag, until = (numbers[name] for name in options["lag_curve"])
        if isinstance(lag, Number) and isinstance(until, Number):
            parts = (0.0, 0.25, 0.5, 0.75, 1.0)
            found.rows = [{"after the restart, s": until.at * p / 1e3, "lag, s": lag.at * (1 - p) / 1e3} for p in parts]
    return found


def _others(bench: Bench, base: Changes, options: Mapping[str, Any]) -> dict[str, Number | str]:
    """Return the numbers of `others`: tables of a `measure` with the changes `at`; "none" where no run has it."""
    found: dict[str, Number | str] = {}
    for name, each in options.get("others", {}).items():
        number = _number_or_none(bench, {**base, **each.get("at", {})}, each["measure"])
        found[name] = "none" if number is None else number
    return found


WAYS: dict[str, Callable[[float, float], float | None]] = {
    "a": lambda a, b: a,
    "b": lambda a, b: b,
    "difference": lambda a, b: b - a,
    "ratio": lambda a, b: b / a if a else 1.0 if b == a else None,
}
"""By name: what is made of a measure of two variants."""


def _paired(way: str, measure: Measure, first: Facts, second: Facts) -> float | None:
    a, b = measure(first), measure(second)
    return None if a is None or b is None else WAYS[way](a, b)


def compare(bench: Bench, options: Mapping[str, Any]) -> Analysed:
    """Compare two variants seed by seed. Cases: ``more``, ``less``, ``same``: the first number of the second variant.

    `numbers` are tables: `measure`, and `as`: ``a``, ``b``, ``difference`` (b - a), ``ratio`` (b / a).
    """
    variants = [options["a"], options["b"]]
    numbers: dict[str, Number | str] = {}
    for name, each in options["numbers"].items():
        unit, measure = _measure(each["measure"])
        way = each["as"]
        least = -inf if way == "difference" else 0.0
        numbers[name] = bench.replicate(
            variants, partial(_paired, way, measure), "x" if way == "ratio" else unit, least
        )
    for which, changes in zip("ab", variants, strict=True):
        numbers |= _closed(bench, changes, options.get(f"closed_{which}", {}))
    numbers |= _others(bench, {}, options)
    for name, asked in options.get("of_scenario", {}).items():  # of the second variant
        numbers[name] = OF_SCENARIO[asked](bench.loaded(variants[1]))
    name, each = next(iter(options["numbers"].items()))
    first = numbers[name]
    assert isinstance(first, Number)
    same = 1.0 if each["as"] == "ratio" else 0.0
    low, high = (first.at if each is None else each for each in (first.low, first.high))
    case = "more" if low > same else "less" if high < same else "same"
    moved = partial(_paired, each["as"], _measure(each["measure"])[1])
    found = Analysed(numbers, case, _moves(bench, variants[0], moved, variants[1:]))
    found.numbers |= _words(bench.facts(variants[0], SEEDS), options.get("words", {}))
    return found


def crossover(bench: Bench, options: Mapping[str, Any]) -> Analysed:
    """Find where a measure crosses a target, or that of another variant. Cases: ``found``, ``above``, ``below``.

    Root finding under common random numbers: the mean over the same seeds is a function of the lever, and `brentq`
    finds its root between `low` and `high` (bisection, where only `whole` numbers are possible). Each seed's own root
    is as far from that as its value there over the slope; their mean has the interval. `scale` = "log" searches evenly
    in the logarithm. `target` is a number; `of_high` or `of_low` a share of the measure with the lever at an end;
    `against` another variant. Without a change of sign, the measure is ``above`` the target throughout, or ``below``.
    `high` may be the ``shortest window`` of a join.
    `numbers` are measures there; `others` are tables of a `measure` with the changes `at`, and with `root` there, too.
    What would change it is sought anew with each change: a measure that ends at 0 is no line.
    """
    lever, low, high = options["lever"], options["low"], options["high"]
    if high == "shortest window":
        high = bench.shortest_window_s()
    unit, measure = _measure(options["measure"])
    is_log, is_whole = options.get("scale") == "log", options.get("whole", False)
    base = options.get("at", {})
    forward, back = (log, exp) if is_log else (float, float)

    def variant(x: float) -> Cells:
        return {**base, lever: round(back(x)) if is_whole else float(f"{back(x):.6g}")}

    end_of = next((key for key in ("of_low", "of_high") if key in options), "")

    def gap(facts: Facts, other: Facts | None = None, share: float = 1.0) -> float | None:
        value = measure(facts)
        against = options["target"] if other is None else measure(other)
        return None if value is None or against is None else value - share * against

    def gaps(x: float, seeds: Sequence[int], changes: Changes = {}) -> list[float]:  # noqa: B006 - never written to
        variants: list[Changes] = [{**variant(x), **changes}]
        if end_of:
            variants.append({**variant(forward(options[end_of[3:]])), **changes})
            return bench.values(variants, lambda a, b: gap(a, b, options[end_of]), seeds)
        if "against" in options:
            variants.append({**options["against"], **changes})
            return bench.values(variants, gap, seeds)
        return bench.values(variants, gap, seeds)

    def others(at_root: Changes | None) -> dict[str, Number]:
        found = {}
        for name, each in options.get("others", {}).items():
            begin = at_root if each.get("root") else base
            if begin is not None:
                found[name] = _mean(bench, {**begin, **each.get("at", {})}, each["measure"])
        return found

    seen: dict[float, float] = {}

    def height(x: float) -> float:
        if x not in seen:
            values = gaps(x, SEEDS)
            if not values:
                raise NothingToSayError(f"no run with {lever} = {back(x):.3g} gives a number: no checkpoint completed")
            seen[x] = fmean(values)
        return seen[x]

    begin, end = forward(low), forward(high)
    rows: list[Cells] = [{lever: back(x), "gap": height(x)} for x in (begin, end)]
    if height(begin) * height(end) > 0:
        case = "above" if height(begin) > 0 else "below"
        number = Number(low if case == "above" else high, None, None, options.get("unit", ""), BATCH)
        return Analysed({options["as"]: number, **others(None)}, case, None, rows, [])
    if is_whole:
        root, right = _neighbours(height, low, high)
        left = root
    else:
        root = _root(height, begin, end, TOLERANCE * abs(end - begin))
        step = NEAR if is_log else NEAR * abs(root) or NEAR * (end - begin)  # near: the measure need not be a line
        left, right = max(begin, root - step), min(end, root + step)
    slope = (height(right) - height(left)) / (right - left)
    if not slope:
        raise NothingToSayError(f"{options['measure']} does not change with {lever} near {back(root):.3g}")

    def with_change(changes: Changes) -> float | None:
        """Return about where the mean of a few seeds crosses with a change, or None if it does so nowhere."""

        def there(x: float) -> float:
            return fmean(gaps(x, FEW, changes) or [0.0])

        at_root = there(root)
        towards, side = (end, 1) if (at_root < 0) == (slope > 0) else (begin, -1)
        reach = max(4 * (right - root), 1.0) if is_whole else 4 * step
        while at_root:
            other = min(max(root + side * reach, begin), end)
            if at_root * there(other) <= 0:
                low_side, high_side = sorted((root, other))
                if is_whole:
                    return _neighbours(there, round(low_side), round(high_side))[0]
                return _root(there, low_side, high_side, step / 2)
            if other == towards:
                return None
            reach *= 2
        return root

    def roots(changes: Changes, seeds: Sequence[int] = SEEDS) -> list[float]:
        near = with_change(changes) if changes else root
        return [] if near is None else [back(near - each / slope) for each in gaps(near, seeds, changes)]

    mean = partial(mean_of, unit=options.get("unit", ""))
    values = bench.until_precise(partial(roots, {}), mean)
    numbers: dict[str, Number | str] = {options["as"]: mean(values)}
    per = options.get("per")
    if per:  # what a step of the lever is worth at the root
        numbers["slope"] = Number(slope * per, None, None, unit, BATCH)
    numbers |= {name: _mean(bench, variant(root), each) for name, each in options.get("numbers", {}).items()}
    numbers |= others(variant(root))
    numbers |= _closed(bench, variant(root), options.get("closed", {}))
    rows = [{lever: back(x), "gap": seen[x]} for x in sorted(seen)]
    found = Analysed(numbers, "found", roots, rows)
    for part in options.get("shares_of_answer", ()):  # a table of measures along the way to the answer, and beyond
        changes = variant(forward(part * back(root)))
        row: Cells = {lever: part * back(root), "gap": fmean(gaps(forward(part * back(root)), SEEDS))}
        for each in options.get("table", ()):
            there = _number_or_none(bench, changes, each)
            row[each] = None if there is None else there.at
        rows.append(row)
    rows.sort(key=lambda row: row[lever])
    for name, part in options.get("at_shares", {}).items():  # a number there
        there = _number_or_none(bench, variant(forward(part[1] * back(root))), part[0])
        numbers[name] = "none" if there is None else there
    return found


def _neighbours(height: Callable[[float], float], low: int, high: int) -> tuple[float, float]:
    """Return the two whole numbers between which the sign changes."""
    while high - low > 1:
        middle = round((low * high) ** 0.5) if low else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        low, high = (middle, high) if height(low) * height(middle) > 0 else (low, middle)
    return float(low), float(high)


def _root(height: Callable[[float], float], begin: float, end: float, tolerance: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(height, begin, end, xtol=tolerance, rtol=1e-4))


def quantile(bench: Bench, options: Mapping[str, Any]) -> Analysed:
    """Give a quantile of durations, clustered by run, and the means of some measures.

    Cases: ``steady``, ``growing``; ``helps`` and ``useless`` in place of steady if the timeout that the scenario has
    is shorter, or not.
    """
    q = options["quantile"]
    changes = options.get("at", {})
    facts = bench.until_precise(partial(bench.facts, changes), partial(_quantile_of, q=q), most=4 * BATCH)
    number = _quantile_of(facts, q)
    numbers: dict[str, Number | str] = {options["as"]: number}
    numbers |= {name: _quantile_of(facts, other) for name, other in options.get("quantiles", {}).items()}
    for name, measure in options.get("numbers", {}).items():
        unit, value = _measure(measure)
        numbers[name] = mean_of([v for f in facts if (v := value(f)) is not None], unit, least=0.0)
    numbers |= _words(facts, options.get("words", {})) | _closed(bench, changes, options.get("closed", {}))
    timeout_s = bench.scenario.checkpoint.timeout_s
    numbers["own_timeout"] = Number(1e3 * timeout_s, None, None, "ms", 0)
    durations = [each for f in facts for each in f.durations_ms]
    expired = sum(each > 1e3 * timeout_s for each in durations) / len(durations)
    numbers["expired"] = _expired(facts, 1e3 * timeout_s)
    duration, predicted = numbers.get("duration"), numbers.get("predicted")
    if isinstance(duration, Number) and isinstance(predicted, Number) and predicted.at:
        numbers["error"] = Number(duration.at / predicted.at - 1, None, None, "%", duration.n)
    rows: list[Cells] = []
    if "judge_timeout" in options:
        timeouts = [*(1e3 * timeout_s * by for by in (0.5, 1.0, 1.25, 1.5, 2.0)), number.at]
        rows = [
            {
                "timeout, s": at / 1e3,
                "expire, %": 100 * each.at,
                "from": each.low and 100 * each.low,
                "to": each.high and 100 * each.high,
            }
            for at in sorted(timeouts)
            if (each := _expired(facts, at))
        ]
    if _grows(facts):
        case = "growing"
    elif "judge_timeout" in options:
        case = "helps" if expired > 1 - q else "useless"
    else:
        case = "steady"

    def moved(more: Changes) -> list[float]:
        return [_sorted_at(f.durations_ms, q) for f in bench.facts({**changes, **more}, SEEDS) if f.durations_ms]

    notes = _notes(facts) + _skewed(bench, changes, options.get("closed", {}))
    return Analysed(numbers, case, moved, rows, notes)


def _expired(facts: Sequence[Facts], timeout_ms: float) -> Number:
    """Return the share of checkpoints that a timeout would end, with its interval over the runs."""
    shares = [fmean(ms > timeout_ms for ms in f.durations_ms) for f in facts if f.durations_ms]
    number = mean_of(shares, "%", least=0.0)
    return number if number.high is None else replace(number, high=min(number.high, 1.0))


def _sorted_at(values: Sequence[float], q: float) -> float:
    from numpy import quantile as at

    return float(at(values, q))


def _quantile_of(facts: Sequence[Facts], q: float) -> Number:
    from barrierlab.sim.sweep.analyse import quantile_ranks

    values = sorted(each for f in facts for each in f.durations_ms)
    if not values:
        raise NothingToSayError("no run gives a number: no checkpoint completed")
    at = _sorted_at(values, q)
    spread = sum((sum(v <= at for v in f.durations_ms) - q * len(f.durations_ms)) ** 2 for f in facts)
    low, high = quantile_ranks(len(values), q, len(facts), spread)
    return Number(at, values[low - 1] if low else None, values[high - 1] if high else None, "ms", len(facts))


def growth(bench: Bench, options: Mapping[str, Any]) -> Analysed:
    """Give the exponent with which a measure grows with a lever: the slope of logarithms, of each seed.

    `values` are those of the lever; `last` names numbers of the last of them. Case: ``found``.
    """
    from scipy.stats import linregress

    lever, points = options["lever"], options["values"]
    variants = [{**options.get("at", {}), lever: value} for value in points]

    def exponent(measure: Measure, *facts: Facts) -> float | None:
        found = [measure(f) for f in facts]
        if any(each is None or each <= 0 for each in found):
            return None
        return float(linregress([log(p) for p in points], [log(each or 1.0) for each in found]).slope)

    exponents = {name: partial(exponent, _measure(each)[1]) for name, each in options["numbers"].items()}
    numbers: dict[str, Number | str] = {name: bench.replicate(variants, value, "") for name, value in exponents.items()}
    rows = []
    for value, changes in zip(points, variants, strict=True):
        row: Cells = {lever: value}
        for each in options["numbers"].values():
            of_runs = [v for f in bench.facts(changes, SEEDS) if (v := _measure(each)[1](f)) is not None]
            row[each] = fmean(of_runs) if of_runs else None
        for name, number in _closed(bench, changes, options.get("closed", {})).items():
            row[name] = number.at if isinstance(number, Number) else number
        rows.append(row)
    at_end = rows[-1]
    for name, each in options.get("last", {}).items():
        numbers[name] = Number(at_end[each] or 0.0, None, None, _measure(each)[0] if each in MEASURES else "", BATCH)

    def moved(changes: Changes) -> list[float]:
        return bench.values([{**v, **changes} for v in variants], next(iter(exponents.values())), SEEDS)

    return Analysed(numbers, "found", moved, rows)


def interval(bench: Bench, options: Mapping[str, Any]) -> Analysed:
    """Advise the interval between checkpoints for failures `mtbf_s` apart, from the pieces of each seed's short run.

    Cases: ``found``, ``bound``: the shortest possible interval is longer than the best.
    """
    from barrierlab.sim.advise.advice import FIVE_MINUTES_S, Advice, advise, utilisation_at
    from barrierlab.sim.advise.pieces import NoAdviceError, Pieces, measured
    from barrierlab.sim.advise.simulated import simulated

    mtbf_s = options["mtbf_s"]

    def advised(changes: Changes, seeds: Sequence[int]) -> list[tuple[Pieces, Advice]]:
        found = []
        for seed in seeds:
            bench.check_time()
            pieces = measured(replace(bench.loaded(changes), seed=seed))
            found.append((pieces, advise(pieces, mtbf_s, None)))
        return found

    try:
        both = advised({}, SEEDS)
    except NoAdviceError as none:
        raise NothingToSayError(str(none)) from None
    numbers: dict[str, Number | str] = {"best": mean_of([advice.interval_s for _, advice in both], "s")}
    pieces, first = both[0]
    values = {
        "from_s": ("s", first.band_s[0]),
        "to_s": ("s", first.band_s[1]),
        "lost": ("%", 1 - first.choices[0].utilisation),
        "five": ("%", 1 - utilisation_at(pieces, mtbf_s, FIVE_MINUTES_S)),
        "cost": ("s", pieces.cost_s),
        "mtbf": ("s", mtbf_s),
        "replay": ("s", first.interval_s / 2 + pieces.duration_s),
        "duty": ("%", pieces.duration_s / max(first.interval_s, pieces.least_s)),
        "least": ("s", pieces.least_s),
        "pause": ("s", max(first.interval_s - pieces.duration_s, 0.0)),
    }
    numbers |= {name: Number(value, None, None, unit, len(both)) for name, (unit, value) in values.items()}

    def moved(changes: Changes) -> list[float]:
        try:
            return [advice.interval_s for _, advice in advised(changes, SEEDS)]
        except NoAdviceError:
            return []

    best = {"checkpoint.interval_s": float(f"{first.interval_s:.6g}")}
    numbers["duration"] = _mean(bench, best, "duration", most=BATCH)
    curve = [first.interval_s * by for by in INTERVALS]
    rows: list[Cells] = [{"interval_s": at, "lost": 1 - utilisation_at(pieces, mtbf_s, at)} for at in curve]
    notes = [f"not given: {line}" for line in pieces.missing]
    try:
        points, _ = simulated(bench.loaded({}), pieces, mtbf_s, first.interval_s, BATCH, bench.check_time)
        for point in points:
            lost = 1 - point.utilisation
            bounds = (lost - point.half_width, lost + point.half_width)
            rows.append({"interval_s": point.interval_s, "lost": None, "simulated": lost, "bounds": bounds})
        at_best = points[len(points) // 2]
        lost, half = 1 - at_best.utilisation, at_best.half_width
        numbers["simulated"] = Number(lost, max(lost - half, 0.0), lost + half, "%", BATCH)
    except (NoAdviceError, OutOfTimeError) as none:
        numbers["simulated"] = "not done"
        notes.append(str(none) or "not simulated: the budget was used up")
    return Analysed(numbers, "bound" if first.limit else "found", moved, rows, notes)


INTERVALS = tuple(2.0**each for each in range(-4, 5))
"""Of the best interval: where the closed form has it."""

BARRIERS = ("sequence", "timestamp", "latest")


def barriers(bench: Bench, options: Mapping[str, Any]) -> Analysed:
    """Compare the barriers of a join, each with the lateness of `at`. Cases: the barrier that is advised, or ``none``.

    A barrier is of use where nearly all outputs that are wanted come out complete. Sequences that are of use join
    exactly. Else the timestamp barrier is advised if it takes away skew, beyond chance, that the latest value has.
    """
    from barrierlab.sim.scenario.file import ScenarioError
    from barrierlab.sim.sweep.join.analyse import CUT_OFF, ENOUGH, is_cut_off

    variants: dict[str, Changes] = {}
    notes, rows = [], []
    for name in BARRIERS:
        changes: Changes = {"barrier": name, **options.get("at", {})}
        try:
            bench.loaded(changes)
            variants[name] = changes
        except ScenarioError as error:
            notes.append(f"{name} is not possible here: {error}")
    numbers: dict[str, Number | str] = {}
    shares: dict[str, float] = {}
    for name, changes in variants.items():
        share = _mean(bench, changes, "complete_share")
        shares[name] = share.at
        if is_cut_off(share.at, _mean(bench, changes, "waiting_share").at):
            notes.append(f"{name} {CUT_OFF}")
        numbers[f"{name}_share"] = share
        row: Cells = {"barrier": name, "share": share.at}
        for measure in ("wait_p99", "skew_p99"):
            number = _number_or_none(bench, changes, measure)
            numbers[f"{name}_{measure}"] = "no output" if number is None else number
            row[measure] = None if number is None else number.at
        rows.append(row)
    of_use = [name for name in variants if shares[name] >= ENOUGH]
    chosen = next(iter(of_use), "none")
    if {"timestamp", "latest"} <= set(of_use) and chosen == "timestamp":
        saved = partial(_paired, "difference", _measure("skew_p99")[1])
        difference = bench.replicate([variants["timestamp"], variants["latest"]], saved, "ms")
        numbers["saved_skew"] = difference
        chosen = "timestamp" if difference.low is not None and difference.low > 0 else "latest"
    for name in BARRIERS:  # a sentence may name one that is not possible
        for measure in ("share", "wait_p99", "skew_p99"):
            numbers.setdefault(f"{name}_{measure}", "not possible")
    numbers.setdefault("saved_skew", "nothing")
    if chosen == "none":
        first = next((n for n in numbers.values() if isinstance(n, Number)), None)
        if first is None:
            raise NothingToSayError("no barrier is possible here")
        return Analysed({"best_share": first, **numbers}, "none", rows=rows, notes=notes)
    wait = numbers[f"{chosen}_wait_p99"]
    assert isinstance(wait, Number)
    moves = _moves(bench, variants[chosen], _measure("wait_p99")[1])
    return Analysed({"wait": wait, **numbers}, chosen, moves, rows, notes)


def _number_or_none(bench: Bench, changes: Changes, measure: str) -> Number | None:
    try:
        return _mean(bench, changes, measure, most=2 * BATCH)
    except NothingToSayError:
        return None


ANALYSES: dict[str, tuple[Callable[[Bench, Mapping[str, Any]], Analysed], tuple[str, ...]]] = {
    "mean": (mean, ("steady", "growing")),
    "compare": (compare, ("more", "less", "same")),
    "crossover": (crossover, ("found", "above", "below")),
    "quantile": (quantile, ("steady", "growing", "helps", "useless")),
    "growth": (growth, ("found",)),
    "interval": (interval, ("found", "bound")),
    "barriers": (barriers, (*BARRIERS, "none")),
}
"""By name: the function, and the cases that it can come to."""
