"""The one figure of an answer, for each kind of analysis: points that are runs, and the line that decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log10
from statistics import fmean
from typing import Any

from barrierlab.sim.ask.analyses import Analysed
from barrierlab.sim.ask.answer import UNITS_OF_CHARTS
from barrierlab.sim.ask.bench import Bench, Number
from barrierlab.sim.ask.levers import LEVERS, Changes
from barrierlab.sim.ask.measures import MEASURES
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.sweep.figures import Chart, ChartSeries

Picture = tuple[Chart, str]
"""A chart, and what it shows, in words."""


def _unit(name: str) -> tuple[str, float]:
    """Return the words of a measure's axis, and by what its values are divided."""
    unit, size = UNITS_OF_CHARTS[MEASURES[name][0]]
    words = name.replace("_", " ")
    return (f"{words}, {unit}" if unit else words), size


def _by_seed(bench: Bench, changes: Changes, measure: str, size: float) -> list[tuple[float, float, str]]:
    found = []
    for facts in bench.known(changes):
        value = MEASURES[measure][1](facts)
        if value is not None:
            found.append((float(facts.seed), value / size, bench.run_id(changes, facts.seed)))
    return found


def _mean(values: Sequence[tuple[float, float, str]]) -> tuple[float, str]:
    """Return the mean over the seeds, and the run that is nearest to it.

    >>> _mean([(1.0, 2.0, "a"), (2.0, 3.0, "b"), (3.0, 10.0, "c")])
    (5.0, 'b')
    """
    mean = fmean(y for _, y, _ in values)
    return mean, min(values, key=lambda each: abs(each[1] - mean))[2]


def _means(
    bench: Bench, variants: Iterable[tuple[float, Changes]], measure: str, size: float
) -> tuple[list[tuple[float, float, str]], list[tuple[float | None, float | None]]]:
    """Return a point for each place and its changes that have a value, and the least and the most over the seeds."""
    points: list[tuple[float, float, str]] = []
    bounds: list[tuple[float | None, float | None]] = []
    for x, changes in variants:
        if values := _by_seed(bench, changes, measure, size):
            points.append((x, *_mean(values)))
            bounds.append((min(y for _, y, _ in values), max(y for _, y, _ in values)))
    return points, bounds


def of_mean(bench: Bench, options: Mapping[str, Any], found: Analysed) -> Picture:
    """Return a picture of each seed's value of the answer's number, and of their mean."""
    measure = next(iter(options["numbers"].values()))
    words, size = _unit(measure)
    points = _by_seed(bench, {}, measure, size)
    across = {"mean": found.answer.at / size}
    name, closed = next(iter(options.get("closed", {}).items()), ("", ""))
    number = found.numbers.get(name)
    if isinstance(number, Number) and number.unit == found.answer.unit and number.at < 1e9:
        across[f"closed form ({closed.replace('_', ' ')})"] = number.at / size
    chart = Chart("seed", words, [ChartSeries("a run", points)], across)
    return chart, f"{words}: each point is a run of its own seed, {len(points)} of them."


def _differing(a: Changes, b: Changes) -> list[str]:
    """Return the words for two variants: what differs, without the table of a key.

    >>> _differing({"mode": "aligned", "checkpoint.max_concurrent": 1}, {"mode": "aligned"})
    ['max concurrent 1', '']
    """
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    words = {name: name.rpartition(".")[2].replace("_", " ") for name in names}
    return [", ".join(f"{words[name]} {each[name]}" for name in names if name in each) for each in (a, b)]


def of_compare(bench: Bench, options: Mapping[str, Any], found: Analysed) -> Picture:
    """Return a picture of both variants, seed by seed."""
    measure = next(iter(options["numbers"].values()))["measure"]
    words, size = _unit(measure)
    variants = [(options["a"], 0), (options["b"], 1)]
    of_seed: dict[float, list[tuple[float, float, str]]] = {}
    for changes, place in variants:
        for seed, value, run in _by_seed(bench, changes, measure, size):
            of_seed.setdefault(seed, []).append((float(place), value, run))
    means = []
    for place in (0, 1):
        values = [point for points in of_seed.values() for point in points if point[0] == place]
        if values:
            means.append((float(place), *_mean(values)))
    pairs = [ChartSeries(f"seed {seed:.0f}", points, is_line=True) for seed, points in list(of_seed.items())[:5]]
    ticks = _differing(options["a"], options["b"])
    chart = Chart("", words, [*pairs, ChartSeries("mean of all", means, is_line=True)], ticks=ticks)
    return chart, f"{words}: a line joins the two runs of a seed, which differ in nothing else ({len(of_seed)} seeds)."


def of_crossover(bench: Bench, options: Mapping[str, Any], found: Analysed) -> Picture:
    """The measure by the lever, as far as the root finding looked, and what it crosses."""
    lever, measure = options["lever"], options["measure"]
    words, size = _unit(measure)
    base, xs = options.get("at", {}), [row[lever] for row in found.rows]
    variants = [(x, {**base, lever: round(x) if options.get("whole") else float(f"{x:.6g}")}) for x in xs]
    points, bounds = _means(bench, variants, measure, size)
    across: dict[str, float] = {}
    if "target" in options:
        across["target"] = options["target"] / size
    for key, end in (("of_low", "low"), ("of_high", "high")):
        if key in options:
            changes = {**base, lever: options[end]}
            ends = [y for _, y, _ in _by_seed(bench, changes, measure, size)]
            if ends:
                across[f"{options[key]:g} of that at {options[end]:g}"] = options[key] * fmean(ends)
    series = [ChartSeries("mean over the seeds; bar: from the least to the most", points, True, bounds)]
    if "against" in options:
        other = _by_seed(bench, {**options["against"]}, measure, size)
        if other:
            across[", ".join(f"{k} {v}" for k, v in options["against"].items())] = fmean(y for _, y, _ in other)
    upright = {"answer": found.answer.at} if found.case == "found" else {}
    label = LEVERS[lever][0] if lever in LEVERS else lever
    unit = f", {options['unit']}" if options.get("unit") else ""
    chart = Chart(f"{label}{unit}", words, series, across, upright, is_log_x=options.get("scale") == "log")
    return chart, f"{words} by {label}: where it was looked, in the search for the crossing."


def of_quantile(bench: Bench, options: Mapping[str, Any], found: Analysed) -> Picture:
    """The share of checkpoints that take at most so long."""
    changes = options.get("at", {})
    every = sorted(
        (duration, bench.run_id(changes, facts.seed))
        for facts in bench.known(changes)
        for duration in facts.durations_ms
    )
    step = max(1, len(every) // 150)
    points = [
        (duration, 100 * (place + 1) / len(every), run)
        for place, (duration, run) in enumerate(every)
        if place % step == 0 or place + 1 == len(every)
    ]
    upright = {f"{100 * options['quantile']:g} %": found.answer.at}
    for name, label in (("own_timeout", "your timeout"), ("predicted", "closed form")):
        number = found.numbers.get(name)
        if isinstance(number, Number) and number.at < 5 * every[-1][0]:
            upright[label] = number.at
    chart = Chart("a checkpoint takes at most, ms", "share, %", [ChartSeries("a checkpoint", points)], {}, upright)
    return chart, f"The durations of {len(every)} steady checkpoints of {len(bench.known(changes))} runs, in order."


def of_growth(bench: Bench, options: Mapping[str, Any], found: Analysed) -> Picture:
    """The measures by the lever, both logarithmic."""
    lever = options["lever"]
    series = []
    for measure in options["numbers"].values():
        words, size = _unit(measure)
        variants = [(float(value), {**options.get("at", {}), lever: value}) for value in options["values"]]
        points, _ = _means(bench, variants, measure, size)
        series.append(ChartSeries(words, points, is_line=True))
    label = LEVERS[lever][0] if lever in LEVERS else lever
    chart = Chart(label, "mean over the seeds", series, is_log_x=True, is_log_y=True)
    return chart, f"Growth with {label}; a straight line is a power."


def of_interval(bench: Bench, options: Mapping[str, Any], found: Analysed) -> Picture:
    """The cost of an interval: the closed form, and runs with failures where there are some."""
    curve = [(row["interval_s"], 100 * row["lost"], "") for row in found.rows if row["lost"] is not None]
    runs = [(row["interval_s"], 100 * row["simulated"], "") for row in found.rows if row.get("simulated") is not None]
    series = [ChartSeries("closed form", curve, is_line=True)]
    if runs:
        bounds = [row["bounds"] for row in found.rows if row.get("simulated") is not None]
        simulated = [(100 * low, 100 * high) for low, high in bounds]
        series.append(ChartSeries("simulated, with failures", runs, bounds=simulated))
    chart = Chart(
        "interval between checkpoints, s", "lost, % of the time", series, {}, {"best": found.answer.at}, is_log_x=True
    )
    return chart, "What checkpoints and failures cost, by the interval."


def of_barriers(bench: Bench, options: Mapping[str, Any], found: Analysed) -> Picture:
    """Wait and skew of each barrier: means over the seeds."""
    names = [row["barrier"] for row in found.rows]
    variants = [(float(place), {"barrier": name, **options.get("at", {})}) for place, name in enumerate(names)]
    series = []
    for measure, words in (("wait_p99", "wait"), ("skew_p99", "skew"), ("age_p99", "age")):
        points, bounds = _means(bench, variants, measure, 1.0)
        series.append(ChartSeries(words, points, bounds=bounds))
    shown = ", ".join(f"{row['barrier']} {percent(row['share'])}" for row in found.rows)
    chart = Chart("", "99th percentile, ms", series, ticks=names)
    return chart, f"Wait, skew and age of the outputs of each barrier, means over the seeds. Complete: {shown}."


PICTURES: dict[str, Callable[[Any, Mapping[str, Any], Analysed], Picture]] = {
    "mean": of_mean,
    "compare": of_compare,
    "crossover": of_crossover,
    "quantile": of_quantile,
    "growth": of_growth,
    "interval": of_interval,
    "barriers": of_barriers,
}
"""By the name of an analysis."""


def rows_of(chart: Chart) -> list[tuple[str, Sequence[Any]]]:
    """The table behind a chart: a row a point, with its run, or the name of the series where points are of no run."""
    rows: list[tuple[str, Sequence[Any]]] = []
    for series in chart.series:
        for place, (x, y, run) in enumerate(series.points):
            low, high = series.bounds[place] if place < len(series.bounds) else (None, None)
            at = chart.ticks[int(x)] if chart.ticks else _n(x)
            rows.append(
                (
                    run or series.name,
                    (series.name, at, _n(y), "–" if low is None else f"{_n(low)} to {_n(high or 0.0)}"),
                )
            )
    return rows


def _n(value: float) -> str:
    """A number with four digits.

    >>> _n(0.00123456), _n(1234567.0), _n(5.0)
    ('0.001235', '1234567', '5')
    """
    if not value:
        return "0"
    return f"{value:.{max(0, 3 - int(log10(abs(value))))}f}" if abs(value) >= 1000 else f"{value:.4g}"
