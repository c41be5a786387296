"""Runs of a report, repeated to be drawn: the job with its bottleneck, and a checkpoint with its critical path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barrierlab.model.render.explorable import element
from barrierlab.sim.checkpoint.metrics import NS_PER_MS, ms_between
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.sweep import drawings
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.page import PageFigure, PageTable, Section, figure_of
from barrierlab.sim.sweep.rerun import kept_runs, rerun

if TYPE_CHECKING:
    from barrierlab.sim.checkpoint.result import Result
    from barrierlab.sim.sweep.samples import CheckpointSample
    from barrierlab.sim.sweep.store import Store

MOST_BARS = 24
"""Tasks in a drawing; of more, those on the critical path and the last of each operator."""
JOB_WORDS = "The run of the typical checkpoint below."


@dataclass(frozen=True, slots=True)
class Drawn:
    """A section of a report with what is drawn of one run; without figures, its words say why there are none.

    Attributes
    ----------
    explorable : str
        The run around what is drawn, as `model.render.explorable.element` has it; empty where it is not explored.
    """

    id: str
    title: str
    words: str
    figures: tuple[PageFigure, ...] = ()
    run: str = ""
    tables: tuple[PageTable, ...] = ()
    explorable: str = ""


def drawn_again(
    directory: Path, run_id: str, sections: Mapping[Section, str], draw: Callable[[Any], list[Drawn]]
) -> list[Drawn]:
    """Return the result of `draw` for a run that is repeated, or each section with why it is not drawn.

    Parameters
    ----------
    sections : mapping
        The words of each section.
    """
    try:
        found = rerun(kept_runs(directory), run_id)
        if found.result is None or found.differs:
            raise SweepError(f"run {run_id} came out otherwise than it is stored, so it is not drawn")
    except SweepError as error:
        return [Drawn(*section, f"{words} Not drawn: {error}.") for section, words in sections.items()]
    return draw(found.result)


def drawn_checkpoint(section: Section, store: Store, sample: CheckpointSample, words: str) -> Drawn:
    """The section on a checkpoint of a run of a sweep."""
    (drawn,) = drawn_again(
        store.directory,
        sample.run_id,
        {section: words},
        lambda result: [checkpoint_of(section, result, sample.checkpoint_id, sample.run_id, words)],
    )
    return drawn


def job_of(section: Section, result: Result, run_id: str, words: str) -> Drawn:
    """Return the section on the job of a run that is here."""
    topology, spent = result.scenario.topology, result.backpressure()
    names = [*result.scenario.sources, *result.scenario.operators]
    nodes = []
    for name in names:
        tasks = [spent[task] for task in topology.tasks_of(name)]
        busy, pressed = (
            max(task[kind] for task in tasks) / 1e3 for kind in ("busyTimeMsPerSecond", "backPressuredTimeMsPerSecond")
        )
        nodes.append(drawings.JobNode(name, topology.parallelism(name), busy, pressed))
    edges = [
        drawings.JobEdge(edge.partition("->")[0], edge.partition("->")[2], topology.exchange(edge))
        for edge in topology.edges
    ]
    bottleneck = drawings.bottleneck_of(nodes)
    rows = [
        (run_id, (node.name, node.parallelism, percent(node.busy, 1), percent(node.backpressured, 1))) for node in nodes
    ]
    head = ["operator", "subtasks", "busy", "back-pressured"]
    table = PageTable.of("Shares of its time that the fullest subtask of each operator spent so", head, rows)
    draw = partial(drawings.job, nodes, edges, bottleneck=bottleneck, run=run_id)
    caption = (
        f"The job: an operator a box, the way of events an arrow. The bottleneck is {bottleneck}, in a double frame; "
        "the line in a box is how long it was busy."
    )
    return Drawn(*section, words, (figure_of(draw, section[0], caption, table),), run_id)


def checkpoint_of(section: Section, result: Result, checkpoint_id: int, run_id: str, words: str) -> Drawn:
    """Return the section on a checkpoint of a run that is here: its tasks, and its critical path."""
    record = result.record(checkpoint_id)
    begin_ns = record.triggered_ns
    path = [
        drawings.PathPiece(
            p.where, p.what, p.waits_for, (p.begin_ns - begin_ns) / NS_PER_MS, (p.end_ns - begin_ns) / NS_PER_MS
        )
        for p in result.critical_path(checkpoint_id)
    ]
    duration_ms = ((record.ended_ns or begin_ns) - begin_ns) / NS_PER_MS
    bars, rows = [], []
    for task in (task for task in result.scenario.topology.tasks if task in record.parts):
        part = record.parts[task]
        cut_ns = part.last_barrier_ns if part.snapshot_ns is None else part.snapshot_ns
        taken_ns = cut_ns + part.begin_ns + part.sync_ns
        first, last, cut, taken, end = (
            ms_between(begin_ns, at_ns)
            for at_ns in (part.first_barrier_ns, part.last_barrier_ns, cut_ns, taken_ns, part.acknowledged_ns)
        )
        whole = ms_between(begin_ns, max(part.last_barrier_ns, taken_ns))
        bars.append(drawings.WaitBar(task, 0.0, (first, cut, taken, whole, end)))
        rows.append((run_id, (task, *map(_n, (first, last, taken, end)))))
    kept = _kept(bars, {piece.where for piece in path}, result)
    more = f" Of {len(bars)} tasks {len(kept)} are drawn." if len(kept) < len(bars) else ""

    said = ("critical path: what the checkpoint waited for", "ms since the trigger")
    draw = partial(drawings.waits, kept, path, duration_ms, drawings.OF_A_CHECKPOINT, said, run=run_id)
    tasks = PageTable.of(
        f"Tasks in checkpoint {checkpoint_id}, ms since the trigger",
        ["task", "first barrier", "last barrier", "snapshot taken", "acknowledged"],
        rows,
    )
    pieces = PageTable.of(
        f"Critical path of checkpoint {checkpoint_id}: its waits add up to its duration",
        ["where", "wait", "for", "from, ms", "lasts, ms"],
        [(run_id, (p.where, p.what, p.waits_for, _n(p.begin_ms), _n(p.end_ms - p.begin_ms))) for p in path],
        3,
    )
    longest = max(path, key=lambda piece: piece.end_ms - piece.begin_ms, default=None)
    note = (
        ""
        if longest is None
        else f" Its longest wait: {longest.where}, {longest.what}, {_n(longest.end_ms - longest.begin_ms)} ms "
        f"(for {longest.waits_for})."
    )
    figure = figure_of(draw, section[0], f"Checkpoint {checkpoint_id}, task by task.{note}{more}", tasks)
    return Drawn(*section, words, (figure,), run_id, (pieces,), _explorable(result, checkpoint_id))


def _explorable(result: Result, checkpoint_id: int) -> str:
    from markupsafe import Markup

    return Markup(element(result.explorable(checkpoint_id)))  # JSON, with each < escaped


def _kept(bars: list[drawings.WaitBar], on_path: set[str], result: Result) -> list[drawings.WaitBar]:
    if len(bars) <= MOST_BARS:
        return bars
    last: dict[str, drawings.WaitBar] = {}
    for bar in bars:
        operator = result.scenario.topology.operator_of(bar.where)
        end, before = bar.ends_ms[-1] or 0.0, last.get(operator)
        if before is None or end > (before.ends_ms[-1] or 0.0):
            last[operator] = bar
    chosen = [bar for bar in bars if bar.where in on_path or bar in last.values()]
    return chosen[:MOST_BARS]


def _n(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
