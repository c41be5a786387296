"""The figures of a report: SVG to stand inside HTML, the same bytes for the same numbers.

Lines and letters take the colour of the page's text, so a figure reads on light and dark. No colour says anything
alone: bars are hatched, lines have a dash and a marker of their own. Each figure is drawn twice, for a page and for a
telephone, in pixels: text is never made smaller. Where a point stands for runs, its element names one, `data-run`.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from barrierlab.model.render import palette
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.sweep.drawings import NARROW, WIDE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS = 12.0
INK = "#010203"  # stands for the page's text colour until the SVG is written
COLOURS, MORE_COLOURS = palette.SERIES, palette.MORE_SERIES
MARKERS, DASHES = "osD^vP", ("-", "--", "-.", ":", (0, (6, 1)), (0, (1, 1)))
HATCHES = ("", "///", "xxx", "---", "\\\\\\", "+++", "|||", "o", "//", "xx")
BARRIERS = {"latest": COLOURS[1], "sequence": COLOURS[2]}  # those without a lateness
PIECES = {
    "start_delay_ms": "start delay",
    "alignment_ms": "alignment",
    "sync_ms": "snapshot, blocking",
    "rest_ms": "storage, acknowledgement, full outputs",
}
OF_PIECES = (palette.START_DELAY, palette.ALIGNMENT, palette.SNAPSHOT, palette.STORED)
HATCH_OF_PIECES = ("", "///", "xxx", "---")  # as in `sim.sweep.drawings`


class RunMark(NamedTuple):
    """A point that stands for a run: what its element says."""

    run: str
    words: str


RunMarks = dict[str, RunMark]
"""By the id that matplotlib writes."""


def svg_of(figure: Figure, name: str, points: Mapping[str, RunMark] | None = None) -> str:
    """The figure as an SVG element. `name` keeps its ids apart from those of other figures on the page."""
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r'(<svg [^>]*?width=")([\d.]+)pt(" height=")([\d.]+)pt', r"\g<1>\2\3\4", text)
    text = re.sub(r'(<svg [^>]*?height=")([\d.]+)pt("[^>]*?width=")([\d.]+)pt', r"\g<1>\2\3\4", text)
    for gid, point in (points or {}).items():
        tip = f"<title>{escape(point.words)}</title>"
        text = text.replace(f'<g id="{name}-{gid}">', f'<g id="{name}-{gid}" data-run="{escape(point.run)}">{tip}', 1)
    return text.replace(INK, "currentColor").replace("<svg ", '<svg aria-hidden="true" ', 1)


@contextmanager
def _drawing(width: float, height: float, columns: int = 1, rows: int = 1) -> Iterator[tuple[Figure, list[Any]]]:
    """A figure of so many pixels with axes row by row, in the report's style; nothing global is touched."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {
        "font.family": "sans-serif",
        "font.size": LETTERS,
        "xtick.labelsize": LETTERS,
        "ytick.labelsize": LETTERS,
        "axes.labelsize": LETTERS,
        "axes.titlesize": LETTERS,
        "legend.fontsize": LETTERS,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.alpha": 0.25,
        "legend.frameon": False,
        "hatch.linewidth": 0.7,
        **dict.fromkeys(
            ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"), INK
        ),
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
        yield figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _cut(words: str, narrow: bool) -> str:
    """Return as much of a label as there is room for."""
    most = 34 if narrow else 48
    return words if len(words) <= most else f"{words[: most - 1]}…"


class ChartSeries(NamedTuple):
    """Points with the run that each stands for, joined by a line or not; of an interval the bounds besides."""

    name: str
    points: Sequence[tuple[float, float, str]]
    is_line: bool = False
    bounds: Sequence[tuple[float | None, float | None]] = ()


class Chart(NamedTuple):
    """A chart of series, with lines across and their words, on axes that may be logarithmic.

    `ticks` are words along x, at 0, 1, 2 and on.
    """

    x: str
    y: str
    series: Sequence[ChartSeries]
    across: Mapping[str, float] = {}
    upright: Mapping[str, float] = {}
    is_log_x: bool = False
    is_log_y: bool = False
    ticks: Sequence[str] = ()


def chart(drawn: Chart, name: str, *, narrow: bool = False) -> str:
    """A chart: each series with a marker and a dash of its own."""
    marks: RunMarks = {}
    lines = len(drawn.series) + len(drawn.across) + len(drawn.upright)
    height = 300 + (18 * lines if narrow else 18 * (-(-lines // 3)))
    with _drawing(NARROW if narrow else WIDE, height) as (figure, (axes,)):
        for number, series in enumerate(drawn.series):
            colour, marker = (COLOURS + MORE_COLOURS)[number], MARKERS[number % len(MARKERS)]
            xs, ys = [x for x, _, _ in series.points], [y for _, y, _ in series.points]
            dash = DASHES[number % len(DASHES)] if series.is_line else ""
            axes.plot(xs, ys, marker="" if xs else marker, ls=dash, color=colour, lw=1.8)
            for x, (low, high) in zip(xs, series.bounds, strict=False):
                if low is not None and high is not None:
                    axes.plot([x, x], [low, high], color=colour, lw=1.6, marker="_", ms=9)
            for place, (x, y, run) in enumerate(series.points):
                gid = f"c{number}-{place}"
                axes.plot([x], [y], marker, ms=6, color=colour, mec=INK, mew=0.5, gid=gid)
                if run:
                    words = f"{series.name}: {drawn.ticks[int(x)] if drawn.ticks else f'{x:.4g}'}, {y:.4g}; run {run}"
                    marks[gid] = RunMark(run, words)
            axes.plot([], [], marker=marker, ls=dash, color=colour, lw=1.8, ms=6, mec=INK, mew=0.5, label=series.name)
        looks = iter((":", "-.", "--", (0, (6, 1)), (0, (1, 1)), (0, (3, 1, 1, 1, 1, 1))))
        for words, at in drawn.across.items():
            axes.axhline(at, color=INK, lw=1.3, ls=next(looks), label=words)
        for words, at in drawn.upright.items():
            axes.axvline(at, color=INK, lw=1.3, ls=next(looks), label=words)
        for is_log, side, scale in (
            (drawn.is_log_x, axes.xaxis, axes.set_xscale),
            (drawn.is_log_y, axes.yaxis, axes.set_yscale),
        ):
            if is_log:
                scale("log")
                side.set_major_formatter("{x:g}")  # a power of ten would have small letters
                side.set_minor_formatter("")
        if not drawn.is_log_y and all(y >= 0 for series in drawn.series for _, y, _ in series.points):
            axes.set_ylim(bottom=0.0)
        if drawn.ticks:
            axes.set_xticks(
                range(len(drawn.ticks)), [textwrap.fill(each, 14 if narrow else 22) for each in drawn.ticks]
            )
            axes.set_xlim(-0.5, len(drawn.ticks) - 0.5)
        axes.set(xlabel=textwrap.fill(drawn.x, 44) if narrow else drawn.x, ylabel=drawn.y)
        axes.grid(axis="y")
        figure.legend(loc="outside upper left", ncols=1 if narrow else 3)
        return svg_of(figure, name, marks)


def where_the_time_goes(
    bars: Sequence[tuple[str, Mapping[str, float]]],
    name: str,
    runs: Sequence[str] = (),
    *,
    narrow: bool = False,
) -> str:
    """Stacked bars: for each label the mean pieces of a checkpoint's time, in ms; a run that stands for each."""
    height = 110 + (52 if narrow else 30) * len(bars) + (60 if narrow else 0)
    points: RunMarks = {}
    with _drawing(NARROW if narrow else WIDE, height) as (figure, (axes,)):
        left = [0.0] * len(bars)
        for number, (piece, words) in enumerate(PIECES.items()):
            widths = [max(row[piece], 0.0) for _, row in bars]
            if any(width > 0.0005 * max([*left, 1.0]) for width in widths):
                patches = axes.barh(
                    range(len(bars)),
                    widths,
                    left=left,
                    color=OF_PIECES[number],
                    hatch=HATCH_OF_PIECES[number],
                    edgecolor=INK,
                    lw=0.6,
                    label=words,
                    height=0.45 if narrow else 0.7,
                )
                for place, (patch, run) in enumerate(zip(patches, runs, strict=False)):
                    patch.set_gid(f"p{number}-{place}")
                    tip = f"{bars[place][0]}: {words} {widths[place]:.1f} ms; run {run} is nearest to it"
                    points[f"p{number}-{place}"] = RunMark(run, tip)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        for place, total in enumerate(left):
            axes.annotate(f"{total:.0f} ms", (total, place), xytext=(4, 0), textcoords="offset points", va="center")
        labels = [_cut(label, narrow) for label, _ in bars]
        if narrow:
            axes.set_yticks([])
            for place, label in enumerate(labels):
                axes.annotate(label, (0, place - 0.27), xytext=(0, 1), textcoords="offset points", va="bottom")
            axes.set_ylim(-0.9, len(bars) - 0.6)
        else:
            axes.set_yticks(range(len(bars)), labels)
        axes.invert_yaxis()
        axes.margins(x=0.25 if narrow else 0.15)
        axes.set_xlabel("mean time of a checkpoint, ms")
        axes.grid(axis="x")
        figure.legend(loc="outside upper left", ncols=1 if narrow else len(PIECES), columnspacing=1.2)
        return svg_of(figure, name, points)


def effect_of_axes(
    effects: Sequence[Mapping[str, Any]],
    name: str,
    run_at: Callable[[Mapping[str, Any], Mapping[str, Any]], str] = lambda effect, row: "",
    *,
    narrow: bool = False,
) -> str:
    """One panel an axis: mean end-to-end duration and its pieces by value, with 95 % intervals over seeds.

    `run_at` names, for an axis and one of its values, a run that stands for it.
    """
    series = (
        ("end_to_end_ms", "end to end", INK),
        *((p, PIECES[p], c) for p, c in zip(PIECES, OF_PIECES, strict=True)),
    )[:3]
    columns = 1 if narrow else min(3, len(effects))
    rows = -(-len(effects) // columns)
    width = NARROW if narrow else min(WIDE, 280 * columns + 40)
    points: RunMarks = {}
    with _drawing(width, (90 if narrow else 40) + 230 * rows, columns, rows) as (figure, panels):
        for axes in panels[len(effects) :]:
            axes.set_visible(False)
        shown = panels[: len(effects)]
        for number, (axes, effect) in enumerate(zip(shown, effects, strict=True)):
            places = range(len(effect["values"]))
            for which, (statistic, words, colour) in enumerate(series):
                values = effect["values"]
                _intervals(axes, places, [row[statistic] for row in values], which, color=colour, label=words)
                for place, row in enumerate(values):
                    if run := run_at(effect, row):
                        gid = f"e{number}-{which}-{place}"
                        axes.plot([place], [row[statistic]["at"]], MARKERS[which], ms=5, color=colour, gid=gid)
                        tip = f"{effect['axis']} {row['value']}: {words} {row[statistic]['at']:.1f} ms; run {run}"
                        points[gid] = RunMark(run, f"{tip} is nearest to it")
            axes.set_xticks(places, [row["value"] for row in effect["values"]])
            axes.set_xlabel(_cut(effect["axis"] + (" (middle of bins)" if effect["drawn"] else ""), narrow))
            axes.set_ylim(bottom=0.0)
            axes.grid(axis="y")
        top = max(axes.get_ylim()[1] for axes in shown)
        for place, axes in enumerate(shown):
            axes.set_ylim(top=top)
            if place % columns == 0:
                axes.set_ylabel("mean, ms")
        handles, labels = shown[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=1 if narrow else len(series))
        return svg_of(figure, name, points)


def _intervals(
    axes: Any, places: Sequence[float], intervals: Sequence[Mapping[str, Any]], which: int = 0, **style: Any
) -> None:
    """Draw a line through the middles of some intervals, with their bounds as bars where they have any."""
    middle = [i["at"] for i in intervals]
    bars = [[0.0 if i[side] is None else abs(i["at"] - i[side]) for i in intervals] for side in ("low", "high")]
    look = {"marker": MARKERS[which % len(MARKERS)], "ls": DASHES[which % len(DASHES)]} | style
    axes.errorbar(places, middle, bars, ms=5, lw=1.8, capsize=4, **look)


def against_lateness(
    cells: Sequence[Mapping[str, Any]],
    budget_ms: float | None,
    measures: Mapping[str, str],
    name: str,
    run_of: Callable[[Mapping[str, Any]], str] = lambda cell: "",
    *,
    narrow: bool = False,
) -> str:
    """A panel a measure of joins, by the lateness of the timestamp barrier; the others, which have none, lie across."""
    timed = [cell for cell in cells if cell["lateness_ms"] is not None]
    others = [cell for cell in cells if cell["lateness_ms"] is None]
    columns, rows = (1, len(measures)) if narrow else (len(measures), 1)
    points: RunMarks = {}
    with _drawing(NARROW if narrow else WIDE, (120 if narrow else 60) + 230 * rows, columns, rows) as (figure, panels):
        top = 1.0
        for axes, (measure, words) in zip(panels, measures.items(), strict=True):
            known = [cell for cell in timed if cell[measure] is not None]
            places = [cell["lateness_ms"] for cell in known]
            if known:
                _intervals(axes, places, [c["intervals"][measure] for c in known], color=COLOURS[0], label="timestamp")
                for place, cell in enumerate(known):
                    if run := run_of(cell):
                        gid = f"{measure}-{place}"
                        axes.plot([places[place]], [cell[measure]], "o", ms=5, color=COLOURS[0], gid=gid)
                        tip = f"{cell_name(cell)}: {words} {cell[measure]:.1f} ms; run {run} is nearest to it"
                        points[gid] = RunMark(run, tip)
            else:
                axes.set_xticks([])  # nothing here has a lateness
            for number, cell in enumerate((cell for cell in others if cell[measure] is not None), 1):
                colour, interval = BARRIERS[cell["barrier"]], cell["intervals"][measure]
                gid = f"{measure}-{cell['barrier']}"
                dash = "--" if cell["barrier"] == "latest" else "-."
                axes.axhline(cell[measure], color=colour, lw=1.8, ls=dash, label=cell["barrier"], gid=gid)
                if run := run_of(cell):
                    points[gid] = RunMark(run, f"{cell_name(cell)}: {words} {cell[measure]:.1f} ms; run {run}")
                if interval["low"] is not None:
                    axes.axhspan(interval["low"], interval["high"], color=colour, alpha=0.15, lw=0, zorder=-number)
            if budget_ms is not None:
                axes.axvline(budget_ms, color=INK, lw=1.2, ls=":", label=f"budget, {budget_ms:g} ms")
            axes.set_xlabel("lateness, ms")
            axes.set_title(words, loc="left")
            axes.grid(axis="y")
            # Bounds from very few seeds may be far off: the scale is the means', and what sticks out is cut.
            top = max([top, *(1.4 * cell[measure] for cell in cells if cell[measure] is not None)])
        for axes in panels:
            axes.set_ylim(0.0, top)
        for axes in panels if narrow else panels[:1]:
            axes.set_ylabel("99th percentile, ms")
        named = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
        order = sorted(named, key=lambda words: words != "timestamp")
        ncols = 2 if narrow else max(len(order), 1)
        figure.legend([named[words] for words in order], order, loc="outside upper left", ncols=ncols)
        return svg_of(figure, name, points)


def what_came_out(
    kinds: Mapping[str, Sequence[Mapping[str, Any]]],
    outcomes: Mapping[str, str],
    name: str,
    run_of: Callable[[Mapping[str, Any]], str] = lambda cell: "",
    *,
    narrow: bool = False,
) -> str:
    """A panel a kind of streams, a bar a cell: the share of the wanted outputs that each outcome has."""
    seen = [key for key in outcomes if any(cell["outcomes"][key] > 0 for cells in kinds.values() for cell in cells)]
    colours = dict(zip(seen, (COLOURS[2], COLOURS[1], COLOURS[3], COLOURS[0], *MORE_COLOURS), strict=False))
    columns = 1 if narrow else min(2, len(kinds))
    rows = -(-len(kinds) // columns)
    titles = [textwrap.fill(streams, 40) for streams in kinds]  # as much as stands over a panel
    lines = 1 + max((title.count("\n") for title in titles), default=0)
    height = 60 + 20 * len(seen) + rows * (50 + 16 * lines + 24 * max(map(len, kinds.values()), default=1))
    points: RunMarks = {}
    with _drawing(NARROW if narrow else WIDE, height, columns, rows) as (figure, panels):
        for axes in panels[len(kinds) :]:
            axes.set_visible(False)
        for panel, (axes, title, cells) in enumerate(zip(panels, titles, kinds.values(), strict=False)):
            places, left = range(len(cells)), [0.0] * len(cells)
            for number, (key, colour) in enumerate(colours.items()):
                shares = [max(c["outcomes"][key], 0) / max(c["wanted"], 1) for c in cells]
                look = {"color": colour, "hatch": HATCHES[number % len(HATCHES)], "edgecolor": INK, "lw": 0.6}
                patches = axes.barh(places, shares, left=left, label=outcomes[key], height=0.7, **look)
                for patch, cell in zip(patches, cells, strict=True):
                    if run := run_of(cell):
                        gid = f"o{len(points)}-{panel}"
                        patch.set_gid(gid)
                        share = max(cell["outcomes"][key], 0) / max(cell["wanted"], 1)
                        points[gid] = RunMark(run, f"{cell_name(cell)}: {percent(share, 1)} {outcomes[key]}; run {run}")
                left = [a + b for a, b in zip(left, shares, strict=True)]
            for place, cell in zip(places, cells, strict=True):
                interval = cell["intervals"]["complete_share"]
                if interval["low"] is not None:
                    axes.plot(
                        [max(interval["low"], 0.0), min(interval["high"], 1.0)], [place, place], color=INK, marker="|"
                    )
            axes.set_yticks(places, [cell_name(cell) for cell in cells])
            axes.invert_yaxis()
            axes.set_xlim(0.0, 1.0)
            axes.xaxis.set_major_formatter(lambda share, _: percent(share))
            axes.set_title(title, loc="left")
            axes.grid(axis="x")
        handles, labels = panels[0].get_legend_handles_labels()
        labels = [textwrap.fill(label, 44 if narrow else 100) for label in labels]
        figure.legend(handles, labels, loc="outside upper left", ncols=1 if narrow else 2)
        return svg_of(figure, name, points)


def cell_name(cell: Mapping[str, Any]) -> str:
    """A barrier and its lateness, as a label.

    >>> cell_name({"barrier": "timestamp", "lateness_ms": 50.0}), cell_name({"barrier": "latest", "lateness_ms": None})
    ('timestamp, 50 ms', 'latest')
    """
    late = cell["lateness_ms"]
    return str(cell["barrier"]) if late is None else f"{cell['barrier']}, {late:g} ms"


def predicted_against_measured(
    cells: Sequence[Mapping[str, Any]],
    modes: Sequence[str],
    tolerance: float,
    name: str,
    run_of: Callable[[Mapping[str, Any]], str] = lambda cell: "",
    *,
    narrow: bool = False,
) -> str:
    """A panel a unit: predicted over measured, logarithmic, with the band of the targets; what is 0 has no place.

    The colour and the dash of its edge are the mode, the marker the kind of statistic.
    """
    known = [cell for cell in cells if cell["predicted"] and cell["measured"]]
    units = list(dict.fromkeys(cell["unit"] for cell in known)) or ["ms"]
    colours = dict(zip(modes, COLOURS, strict=False))
    kinds = list(dict.fromkeys(_kind(cell) for cell in cells))
    markers = dict(zip(kinds, "osD^v", strict=False))
    columns, rows = (1, len(units)) if narrow else (len(units), 1)
    points: RunMarks = {}
    with _drawing(NARROW if narrow else WIDE, (170 if narrow else 90) + 320 * rows, columns, rows) as (figure, panels):
        for panel, (axes, unit) in enumerate(zip(panels, units, strict=True)):
            mine = [cell for cell in known if cell["unit"] == unit]
            values = [value for cell in mine for value in (cell["predicted"], cell["measured"])] or [1.0, 10.0]
            span = (min(values) / 1.5, max(values) * 1.5)
            band = [[v * (1 + sign * tolerance) for v in span] for sign in (-1, 1)]
            axes.plot(span, span, color=INK, lw=1.0)
            axes.fill_between(span, *band, color=INK, alpha=0.12, lw=0)
            for number, cell in enumerate(mine):
                colour = colours[cell["mode"]]
                dots = axes.scatter(
                    [cell["measured"]],
                    [cell["predicted"]],
                    marker=markers[_kind(cell)],
                    s=60,
                    linewidths=1.4,
                    linestyles=DASHES[list(modes).index(cell["mode"])],
                    edgecolors=colour,
                    facecolors=colour if cell["saturated"] else "none",
                )
                if run := run_of(cell):
                    gid = f"m{panel}-{number}"
                    dots.set_gid(gid)
                    tip = f"{cell['job']}, {cell['statistic']}: {cell['predicted']:.1f} predicted"
                    points[gid] = RunMark(run, f"{tip}, {cell['measured']:.1f} {unit} measured; run {run}")
            axes.set(xscale="log", yscale="log", xlim=span, ylim=span)
            axes.set(xlabel=f"measured, {unit}", ylabel=f"predicted, {unit}")
            for side in (axes.xaxis, axes.yaxis):  # a power of ten would have small letters
                side.set_major_formatter("{x:g}")
                side.set_minor_formatter("")
            axes.grid(which="major")
        handles = [
            panels[0].scatter([], [], edgecolors=colour, facecolors="none", linestyles=dash, lw=1.4, s=60, label=mode)
            for (mode, colour), dash in zip(colours.items(), DASHES, strict=False)
        ]
        handles += [
            panels[0].scatter([], [], marker=marker, s=60, edgecolors=INK, facecolors="none", label=kind)
            for kind, marker in markers.items()
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=2 if narrow else len(modes))
        return svg_of(figure, name, points)


def _kind(cell: Mapping[str, Any]) -> str:
    return str(cell["statistic"]).partition(" of ")[0]
