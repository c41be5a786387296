"""The report on a sweep of joins: the page of any report, with what is measured of joins in its middle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barrierlab.model.join.invariants import JOIN_INVARIANTS
from barrierlab.sim.checkpoint.metrics import NS_PER_MS
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.sweep import drawings, figures
from barrierlab.sim.sweep.join.analyse import FREE, OUTCOMES, TIMES, answer, budget, by_streams
from barrierlab.sim.sweep.outcome import ResultRow
from barrierlab.sim.sweep.page import PageFigure, PageTable, Section, figure_of
from barrierlab.sim.sweep.report import DICTIONARY, FIRST, LAST, interval_text, page, seeds_text
from barrierlab.sim.sweep.run_drawings import Drawn, drawn_again
from barrierlab.sim.sweep.samples import RunIndex
from barrierlab.sim.sweep.store import Store

if TYPE_CHECKING:
    from barrierlab.sim.join.engine import JoinResult

DRAWN: tuple[Section, ...] = (
    ("job", "The join"),
    ("typical", "A typical output"),
    ("worst", "The worst output"),
)
FOUND: tuple[Section, ...] = (("lateness", "Wait, age and skew by lateness"), ("outputs", "What came out"))
SECTIONS = (*FIRST, *FOUND, *LAST, DICTIONARY)
"""The sections that every report on joins has; those of `DRAWN` stand there if an output came out."""


def render(analysis: ResultRow, store: Store) -> str:
    """The report on an analysis of a sweep of joins in `store`, as HTML."""
    index = RunIndex(store)
    found = analysis["cells"]
    kinds = by_streams(found)
    drawn = _drawn(kinds, store, index)
    figures_of = [_kind(number, index, *kind) for number, kind in enumerate(kinds.items())]
    runs = analysis["runs"]
    return page(
        "joins.html.j2",
        (*FIRST, *((d.id, d.title) for d in drawn), *SECTIONS[len(FIRST) :]),
        analysis,
        store,
        index,
        JOIN_INVARIANTS,
        ("joins", f"{runs['frames']} frames were published, {runs['outputs']} outputs came out and were measured"),
        " --master processes",
        answer=answer(found),
        shown=figures_of[0][1] if figures_of else None,
        drawn=drawn,
        free=percent(FREE - 1),
        kinds=figures_of[1:],
        outputs_figure=_outputs_figure(kinds, index) if kinds else None,
    )


def _times(cell: ResultRow) -> tuple[str, ...]:
    intervals = [cell["intervals"][name] for name in TIMES]
    return (
        figures.cell_name(cell),
        *("–" if interval["at"] is None else interval_text(interval) for interval in intervals),
        seeds_text(cell["seeds"]),
    )


def _kind(number: int, index: RunIndex, streams: str, cells: Sequence[ResultRow]) -> tuple[str, PageFigure]:
    """Return the section on one kind of streams: its name, and a figure with the table behind it."""
    free = budget(cells)
    free_ms = None if free is None else free["lateness_ms"]
    table = PageTable.of(
        f"Streams {streams}: 99th percentiles, ms; means over the seeds, in brackets 95 % intervals. A dash: fewer "
        "than five seeds have no interval, and without outputs there is no time.",
        ["barrier, lateness", "wait", "age", "skew", "seeds"],
        [(index.nearest_in_cell(cell), _times(cell)) for cell in cells],
    )

    draw = partial(figures.against_lateness, cells, free_ms, TIMES, run_of=index.nearest_in_cell)
    words = (
        f"Streams {streams}: 99th percentiles by lateness, {_behind(cells)}. Bars and bands are 95 % intervals over "
        "the seeds by Student’s t; what leaves the figure is in the table."
    )
    return streams, figure_of(draw, f"lateness{number}", words, table)


def _outputs_figure(kinds: Mapping[str, Sequence[ResultRow]], index: RunIndex) -> PageFigure:
    found = [cell for cells in kinds.values() for cell in cells]
    seen = [key for key in OUTCOMES if any(cell["outcomes"][key] for cell in found)]
    draw = partial(figures.what_came_out, kinds, OUTCOMES, run_of=index.nearest_in_cell)
    rows = []
    for cell in found:
        counts = [cell["wanted"], *(cell["outcomes"][key] for key in seen)]
        streams, share = cell["streams"] or "all", percent(cell["complete_share"], 1)
        rows.append((index.nearest_in_cell(cell), (streams, figures.cell_name(cell), share, *map(str, counts))))
    head = ["streams", "barrier, lateness", "share complete", "wanted", *(OUTCOMES[key] for key in seen)]
    words = (
        f"What became of the outputs that were wanted, {_behind(found)}. "
        "The line across the end of “complete” is its 95 % interval over the seeds."
    )
    table = PageTable.of("Outputs wanted, by what became of them", head, rows, 2)
    return figure_of(draw, "outputs", words, table)


def _behind(cells: Sequence[ResultRow]) -> str:
    """Return how much is behind a figure, in words."""
    seeds = sorted({seed for cell in cells for seed in cell["seeds"]})
    runs, wanted = (sum(cell[name] for cell in cells) for name in ("runs", "wanted"))
    behind = f"{wanted} outputs wanted in {runs} run{'' if runs == 1 else 's'}"
    return f"{behind}, seed{'' if len(seeds) == 1 else 's'} {seeds_text(seeds)}"


# The drawings.


def _drawn(kinds: Mapping[str, Sequence[ResultRow]], store: Store, index: RunIndex) -> list[Drawn]:
    """The join of the first kind of streams, with the barrier that is advised, its median output and its worst."""
    for streams, cells in kinds.items():
        chosen = budget(cells) or next((cell for cell in cells if cell["complete_share"] > 0), None)
        if chosen is None:
            continue
        run_id = index.nearest_in_cell(chosen)
        of_run = f"{figures.cell_name(chosen)}, streams {streams}, seed {index.by_id[run_id].seed}"
        return drawn_of_join(store.directory, run_id, of_run)
    return []


def drawn_of_join(directory: Path, run_id: str, of_run: str) -> list[Drawn]:
    """The join of a run of a sweep, or of an answer, its median output and its worst."""
    words = f"The join, {of_run}."
    return drawn_again(
        directory,
        run_id,
        {DRAWN[0]: words},
        lambda result: [drawn_join(DRAWN[0], result, run_id, words), *drawn_outputs(result, run_id, of_run)],
    )


def drawn_join(section: Section, result: JoinResult, run_id: str, words: str) -> Drawn:
    """The section on the join of a run: its streams, and the one that is waited for most."""
    outputs = outputs_of(result)
    last = [output.path[-1].where for output in outputs if output.path]
    scenario = result.scenario
    waited = {name: last.count(name) / len(last) if last else 0.0 for name in scenario.streams}
    output = "output"
    nodes = [drawings.JobNode(name, 1, waited[name], 0.0) for name in scenario.streams]
    edges = [drawings.JobEdge(name, output, scenario.join.barrier) for name in scenario.streams]
    bottleneck = drawings.bottleneck_of(nodes)
    nodes.append(drawings.JobNode(output, 1, 0.0, 0.0))
    labels = {
        name: (f"{scenario.inputs[name].rate_per_s:g} frames/s", f"lets {percent(waited[name])} out") for name in waited
    }
    labels[output] = (f"{scenario.join.barrier} barrier", f"{len(outputs)} came out")
    draw = partial(drawings.job, nodes, edges, bottleneck=bottleneck, run=run_id, labels=labels)
    rows = [
        (run_id, (name, f"{scenario.inputs[name].rate_per_s:g}", percent(waited[name], 1))) for name in scenario.streams
    ]
    head = ["stream", "frames a second", "share of outputs that it was the last to let out"]
    table = PageTable.of("Streams", head, rows)
    caption = f"The join: a stream a box. The one that outputs wait for most often is {bottleneck}, in a double frame."
    return Drawn(*section, words, (figure_of(draw, section[0], caption, table),), run_id)


class Output:
    """An output that came out: its frames, and what let it out, in ms since its oldest frame was captured."""

    def __init__(self, value: int, begin_ns: int, end_ns: int, bars: Sequence[drawings.WaitBar]) -> None:
        self.value, self.begin_ns, self.end_ns, self.bars = value, begin_ns, end_ns, tuple(bars)
        self.path: tuple[drawings.PathPiece, ...] = ()

    @property
    def age_ms(self) -> float:
        """Return how old its oldest frame was."""
        return (self.end_ns - self.begin_ns) / NS_PER_MS


def outputs_of(result: JoinResult) -> list[Output]:
    """The outputs of a run after its warm-up, with the times of their frames, from its journal."""
    names = {number: name for name, number in result.scenario.streams.items()}
    whole: dict[tuple[int, Any], int] = {}
    here: dict[tuple[int, Any], int] = {}
    newest: tuple[int, Any] | None = None
    found = []
    for at_ns, verb, stream, subject in result.entries:
        if verb == "publish":
            whole[stream, subject] = at_ns
        elif verb == "observe":
            here[stream, subject] = at_ns
            newest = (stream, subject)
        elif verb == "emit":
            emitted: Any = subject
            value, frames, _ = emitted
            frames = [(number, frame) for number, frame in frames if frame.slot_ns is not None]
            if not frames or at_ns < result.scenario.warmup_s * 1e9:
                continue
            begin_ns = min(frame.slot_ns for _, frame in frames)

            def since(ns: int, begin_ns: int = begin_ns) -> float:
                return (ns - begin_ns) / NS_PER_MS

            bars = [
                drawings.WaitBar(
                    names[number],
                    since(frame.slot_ns),
                    # A frame may be read from its slot before its descriptor has come.
                    (since(whole[number, frame]), since(here.get((number, frame), at_ns)), since(at_ns)),
                )
                for number, frame in frames
            ]
            output = Output(value, begin_ns, at_ns, bars)
            if newest is not None:
                number, frame = newest
                times = [max(ns, begin_ns) for ns in (frame.slot_ns or begin_ns, whole[newest], here[newest], at_ns)]
                waits = (
                    ("making", "the frame that let it out to be whole"),
                    ("way", "that frame to come"),
                    ("join", "the join to put it out"),
                )
                output.path = tuple(
                    drawings.PathPiece(names[number], what, words, since(begin), since(end))
                    for (what, words), begin, end in zip(waits, times, times[1:], strict=False)
                )
            found.append(output)
    return found


def drawn_outputs(result: JoinResult, run_id: str, of_run: str) -> list[Drawn]:
    """The sections on the output of the median age, and on the oldest."""
    outputs = sorted(outputs_of(result), key=lambda output: (output.age_ms, output.value))
    if not outputs:
        return []
    found = []
    for section, output, which in zip(
        DRAWN[1:], (outputs[len(outputs) // 2], outputs[-1]), ("median", "largest"), strict=True
    ):
        words = (
            f"Of {len(outputs)} outputs the one of the {which} age: {output.age_ms:.1f} ms from the capture of its "
            f"oldest frame until it came out ({of_run})."
        )
        found.append(Drawn(*section, words, (_output_figure(section[0], output, run_id),), run_id))
    return found


def _output_figure(name: str, output: Output, run_id: str) -> PageFigure:
    words = ("what let it out: the newest frame that had come", "ms since the oldest frame was captured")
    draw = partial(drawings.waits, output.bars, output.path, output.age_ms, drawings.OF_AN_OUTPUT, words, run=run_id)
    rows = [
        (run_id, (bar.where, *(f"{ms:.1f}" for ms in (bar.begin_ms, *(end or 0.0 for end in bar.ends_ms)))))
        for bar in output.bars
    ]
    head = ["stream", "captured", "whole", "at the join", "out"]
    last = output.path[-1].where if output.path else "nothing"
    caption = f"Output {output.value}, a frame a row; a frame of {last} let it out."
    return figure_of(draw, name, caption, PageTable.of("Frames, ms since the oldest was captured", head, rows))
