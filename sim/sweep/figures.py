"""The figures of a report: SVG to stand inside HTML, the same bytes for the same numbers.

Lines and letters take the colour of the page's text, so a figure reads on light and dark.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from barrierlab.model.render import palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#010203"  # stands for the page's text colour until the SVG is written
COLOURS, MORE_COLOURS = palette.SERIES, palette.MORE_SERIES
BARRIERS = {"latest": COLOURS[1], "sequence": COLOURS[2]}  # those without a lateness
PIECES = {
    "start_delay_ms": "start delay",
    "alignment_ms": "alignment",
    "sync_ms": "snapshot, blocking",
    "rest_ms": "storage, acknowledgement, full outputs",
}
OF_PIECES = (palette.START_DELAY, palette.ALIGNMENT, palette.SNAPSHOT, palette.STORED)


def svg_of(figure: Figure, name: str) -> str:
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
    return text.replace(INK, "currentColor").replace("<svg ", '<svg aria-hidden="true" ', 1)


@contextmanager
def _drawing(width: float, height: float, columns: int = 1, rows: int = 1) -> Iterator[tuple[Figure, list[Any]]]:
    """A figure with axes row by row, in the report's style; without pyplot, so that nothing global is touched."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = {
        "font.family": "sans-serif",
        "font.size": 9.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.alpha": 0.25,
        "legend.frameon": False,
        **dict.fromkeys(
            ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"), INK
        ),
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def where_the_time_goes(bars: Sequence[tuple[str, Mapping[str, float]]], name: str) -> str:
    """Stacked bars: for each label the mean pieces of a checkpoint's time, in ms."""
    with _drawing(8.0, 0.9 + 0.32 * len(bars)) as (figure, (axes,)):
        labels = [label for label, _ in bars]
        left = [0.0] * len(bars)
        for colour, (piece, words) in zip(OF_PIECES, PIECES.items(), strict=True):
            widths = [max(row[piece], 0.0) for _, row in bars]
            if any(width > 0.0005 * max([*left, 1.0]) for width in widths):
                axes.barh(range(len(bars)), widths, left=left, color=colour, label=words, height=0.7)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        for place, total in enumerate(left):
            axes.annotate(f"{total:.0f} ms", (total, place), xytext=(4, 0), textcoords="offset points", va="center")
        axes.set_yticks(range(len(bars)), labels)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_xlabel("mean time of a checkpoint, by what was waited for on its critical path, ms")
        axes.grid(axis="x")
        figure.legend(loc="outside upper left", ncols=len(PIECES))
        return svg_of(figure, name)


def effect_of_axes(effects: Sequence[Mapping[str, Any]], name: str) -> str:
    """One panel an axis: mean end-to-end duration and its pieces by value, with 95 % intervals over seeds."""
    series = (
        ("end_to_end_ms", "end to end", INK),
        *((p, PIECES[p], c) for p, c in zip(PIECES, OF_PIECES, strict=True)),
    )[:3]
    with _drawing(min(9.5, 3.1 * len(effects) + 0.6), 3.2, len(effects)) as (figure, panels):
        for axes, effect in zip(panels, effects, strict=True):
            places = range(len(effect["values"]))
            for statistic, words, colour in series:
                _intervals(axes, places, [row[statistic] for row in effect["values"]], color=colour, label=words)
            axes.set_xticks(places, [row["value"] for row in effect["values"]])
            axes.set_xlabel(effect["axis"] + (" (middle of bins)" if effect["drawn"] else ""))
            axes.set_ylim(bottom=0.0)
            axes.grid(axis="y")
        top = max(axes.get_ylim()[1] for axes in panels)
        for axes in panels:
            axes.set_ylim(top=top)
        panels[0].set_ylabel("mean, ms")
        handles, words = panels[0].get_legend_handles_labels()
        figure.legend(handles, words, loc="outside upper left", ncols=len(series))
        return svg_of(figure, name)


def _intervals(axes: Any, places: Sequence[float], intervals: Sequence[Mapping[str, Any]], **style: Any) -> None:
    """A line through the middles of some intervals, with their bounds as bars where they have any."""
    middle = [i["at"] for i in intervals]
    bars = [[0.0 if i[side] is None else abs(i["at"] - i[side]) for i in intervals] for side in ("low", "high")]
    axes.errorbar(places, middle, bars, marker="o", ms=3.5, lw=1.4, capsize=3, **style)


def against_lateness(
    cells: Sequence[Mapping[str, Any]], budget_ms: float | None, measures: Mapping[str, str], name: str
) -> str:
    """A panel a measure of joins, by the lateness of the timestamp barrier; the others, which have none, lie across."""
    timed = [cell for cell in cells if cell["lateness_ms"] is not None]
    others = [cell for cell in cells if cell["lateness_ms"] is None]
    with _drawing(9.5, 2.9, len(measures)) as (figure, panels):
        top = 1.0
        for axes, (measure, words) in zip(panels, measures.items(), strict=True):
            known = [cell for cell in timed if cell[measure] is not None]
            places = [cell["lateness_ms"] for cell in known]
            if known:
                _intervals(axes, places, [c["intervals"][measure] for c in known], color=COLOURS[0], label="timestamp")
            else:
                axes.set_xticks([])  # nothing here has a lateness
            for cell in (cell for cell in others if cell[measure] is not None):
                colour, interval = BARRIERS[cell["barrier"]], cell["intervals"][measure]
                axes.axhline(cell[measure], color=colour, lw=1.4, ls="--", label=cell["barrier"])
                if interval["low"] is not None:
                    axes.axhspan(interval["low"], interval["high"], color=colour, alpha=0.15, lw=0)
            if budget_ms is not None:
                axes.axvline(budget_ms, color=INK, lw=0.9, ls=":", label=f"budget, {budget_ms:g} ms")
            axes.set_xlabel("lateness, ms")
            axes.set_title(words, loc="left", fontsize=9.0)
            axes.grid(axis="y")
            # Bounds from very few seeds may be far off: the scale is the means', and what sticks out is cut.
            top = max([top, *(1.4 * cell[measure] for cell in cells if cell[measure] is not None)])
        for axes in panels:
            axes.set_ylim(0.0, top)
        panels[0].set_ylabel("99th percentile, ms")
        named = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
        order = sorted(named, key=lambda words: words != "timestamp")
        figure.legend([named[words] for words in order], order, loc="outside upper left", ncols=max(len(order), 1))
        return svg_of(figure, name)


def what_came_out(
    kinds: Mapping[str, Sequence[Mapping[str, Any]]], outcomes: Mapping[str, str], name: str, columns: int = 2
) -> str:
    """A panel a kind of streams, a bar a cell: the share of the wanted outputs that each outcome has."""
    seen = [key for key in outcomes if any(cell["outcomes"][key] > 0 for cells in kinds.values() for cell in cells)]
    colours = dict(zip(seen, (COLOURS[2], COLOURS[1], COLOURS[3], COLOURS[0], *MORE_COLOURS), strict=False))
    columns = min(columns, len(kinds))
    rows = -(-len(kinds) // columns)
    titles = [textwrap.fill(streams, 52) for streams in kinds]  # as much as stands over a panel
    lines = 1 + max(title.count("\n") for title in titles)
    height = 0.7 + rows * (0.55 + 0.15 * lines + 0.24 * max(map(len, kinds.values())))
    with _drawing(9.5, height, columns, rows) as (figure, panels):
        for axes in panels[len(kinds) :]:
            axes.set_visible(False)
        for axes, title, cells in zip(panels, titles, kinds.values(), strict=False):
            places, left = range(len(cells)), [0.0] * len(cells)
            for key, colour in colours.items():
                shares = [max(c["outcomes"][key], 0) / max(c["wanted"], 1) for c in cells]
                axes.barh(places, shares, left=left, color=colour, label=outcomes[key], height=0.7)
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
            axes.xaxis.set_major_formatter("{x:.0%}")
            axes.set_title(title, loc="left", fontsize=9.0)
            axes.grid(axis="x")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=3)
        return svg_of(figure, name)


def cell_name(cell: Mapping[str, Any]) -> str:
    """A barrier and its lateness, as a label.

    >>> cell_name({"barrier": "timestamp", "lateness_ms": 50.0}), cell_name({"barrier": "latest", "lateness_ms": None})
    ('timestamp, 50 ms', 'latest')
    """
    late = cell["lateness_ms"]
    return str(cell["barrier"]) if late is None else f"{cell['barrier']}, {late:g} ms"


def predicted_against_measured(
    cells: Sequence[Mapping[str, Any]], modes: Sequence[str], tolerance: float, name: str
) -> str:
    """A panel a unit: predicted over measured, logarithmic, with the band of the targets; what is 0 has no place.

    The colour is the mode, the marker the kind of statistic.
    """
    known = [cell for cell in cells if cell["predicted"] and cell["measured"]]
    units = list(dict.fromkeys(cell["unit"] for cell in known)) or ["ms"]
    colours = dict(zip(modes, COLOURS, strict=False))
    kinds = list(dict.fromkeys(_kind(cell) for cell in cells))
    markers = dict(zip(kinds, "osD^v", strict=False))
    with _drawing(4.6 * len(units), 4.9, len(units)) as (figure, panels):
        for axes, unit in zip(panels, units, strict=True):
            mine = [cell for cell in known if cell["unit"] == unit]
            values = [value for cell in mine for value in (cell["predicted"], cell["measured"])] or [1.0, 10.0]
            span = (min(values) / 1.5, max(values) * 1.5)
            band = [[v * (1 + sign * tolerance) for v in span] for sign in (-1, 1)]
            axes.plot(span, span, color=INK, lw=0.8)
            axes.fill_between(span, *band, color=INK, alpha=0.12, lw=0)
            for cell in mine:
                colour = colours[cell["mode"]]
                axes.scatter(
                    [cell["measured"]],
                    [cell["predicted"]],
                    marker=markers[_kind(cell)],
                    s=46,
                    edgecolors=colour,
                    facecolors=colour if cell["saturated"] else "none",
                )
            axes.set(xscale="log", yscale="log", xlim=span, ylim=span)
            axes.set(xlabel=f"measured, {unit}", ylabel=f"predicted, {unit}")
            axes.grid(which="major")
        handles = [panels[0].scatter([], [], color=colour, s=46, label=mode) for mode, colour in colours.items()]
        handles += [
            panels[0].scatter([], [], marker=marker, s=46, edgecolors=INK, facecolors="none", label=kind)
            for kind, marker in markers.items()
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=len(modes))
        return svg_of(figure, name)


def _kind(cell: Mapping[str, Any]) -> str:
    return str(cell["statistic"]).partition(" of ")[0]
