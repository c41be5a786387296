"""The report on a sweep of joins: the page of any report, with what is measured of joins in its middle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barrierlab.model.join.invariants import JOIN_INVARIANTS
from barrierlab.sim.sweep import figures
from barrierlab.sim.sweep.join.analyse import FREE, OUTCOMES, TIMES, answer, budget, by_streams
from barrierlab.sim.sweep.outcome import ResultRow
from barrierlab.sim.sweep.report import figure_of, interval_text, page, seeds_text
from barrierlab.sim.sweep.store import Store

SECTIONS = (
    ("asked", "What was asked"),
    ("answer", "Answer"),
    ("verdict", "Verdict of the invariants"),
    ("lateness", "Wait, age and skew by lateness"),
    ("outputs", "What came out"),
    ("errors", "Errors"),
    ("dictionary", "Data dictionary"),
    ("again", "How to reproduce"),
)


def render(analysis: ResultRow, store: Store) -> str:
    """The report on an analysis of a sweep of joins in `store`, as HTML."""
    found = analysis["cells"]
    kinds = by_streams(found)
    seen = [key for key in OUTCOMES if any(cell["outcomes"][key] for cell in found)]
    return page(
        "joins.html.j2",
        SECTIONS,
        analysis,
        store,
        JOIN_INVARIANTS,
        answer=answer(found),
        free=f"{FREE - 1:.0%}",
        outcomes=[OUTCOMES[key] for key in seen],
        outputs=[_outputs(cell, seen) for cell in found],
        kinds=[_kind(number, *kind) for number, kind in enumerate(kinds.items())],
        outputs_figure=_outputs_figure(kinds) if kinds else None,
    )


def _times(cell: ResultRow) -> tuple[str, ...]:
    intervals = [cell["intervals"][name] for name in TIMES]
    return (
        figures.cell_name(cell),
        *("–" if interval["at"] is None else interval_text(interval) for interval in intervals),
        seeds_text(cell["seeds"]),
    )


def _outputs(cell: ResultRow, seen: Sequence[str]) -> tuple[str, ...]:
    counts = [cell["wanted"], *(cell["outcomes"][key] for key in seen)]
    return cell["streams"] or "all", figures.cell_name(cell), f"{cell['complete_share']:.1%}", *map(str, counts)


def _kind(number: int, streams: str, cells: Sequence[ResultRow]) -> tuple[str, dict[str, Any], list[tuple[str, ...]]]:
    """Return the section on one kind of streams: its name, a figure and the rows of a table."""
    free = budget(cells)
    svg = figures.against_lateness(cells, None if free is None else free["lateness_ms"], TIMES, f"lateness{number}")
    figure = figure_of(
        svg,
        f"Streams {streams}: 99th percentiles by lateness, {_behind(cells)}. Bars and bands are 95 % intervals over "
        "the seeds by Student’s t; what leaves the figure is in the table.",
    )
    return streams, figure, [_times(cell) for cell in cells]


def _outputs_figure(kinds: Mapping[str, Sequence[ResultRow]]) -> dict[str, Any]:
    return figure_of(
        figures.what_came_out(kinds, OUTCOMES, "outputs"),
        f"What became of the outputs that were wanted, {_behind([c for cells in kinds.values() for c in cells])}. "
        "The line across the end of “complete” is its 95 % interval over the seeds.",
    )


def _behind(cells: Sequence[ResultRow]) -> str:
    """Return how much is behind a figure, in words."""
    seeds = sorted({seed for cell in cells for seed in cell["seeds"]})
    runs, wanted = (sum(cell[name] for cell in cells) for name in ("runs", "wanted"))
    behind = f"{wanted} outputs wanted in {runs} run{'' if runs == 1 else 's'}"
    return f"{behind}, seed{'' if len(seeds) == 1 else 's'} {seeds_text(seeds)}"
