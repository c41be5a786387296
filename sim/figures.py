"""Pictures of one run, from its checkpoint records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.metrics import NS_PER_MS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sim.result import Result

WAITS, ALIGNS, SAVES = "#9aa5b1", "#d9822b", "#2b7bba"


def timeline(result: Result, checkpoint_id: int | None = None) -> Figure:
    """One bar a task: until its first barrier (start delay), to its last (alignment), to its acknowledgement.

    Parameters
    ----------
    result : Result
    checkpoint_id : int, optional
        The last completed one where not given.

    Raises
    ------
    KeyError
        If the run has no such checkpoint.
    """
    from matplotlib.figure import Figure

    record = result.record(checkpoint_id)
    tasks = [task for task in result.scenario.topology.tasks if task in record.parts]
    figure = Figure(figsize=(8, 1.2 + 0.32 * len(tasks)), layout="constrained")
    axes = figure.subplots()
    for place, task in enumerate(tasks):
        part = record.parts[task]
        first = (part.first_barrier_ns - record.triggered_ns) / NS_PER_MS
        cut = first if part.snapshot_ns is None else (part.snapshot_ns - record.triggered_ns) / NS_PER_MS
        end = cut if part.acknowledged_ns is None else (part.acknowledged_ns - record.triggered_ns) / NS_PER_MS
        axes.barh(place, first, color=WAITS, label="start delay" if place == 0 else None)
        axes.barh(place, cut - first, left=first, color=ALIGNS, label="alignment" if place == 0 else None)
        axes.barh(place, end - cut, left=cut, color=SAVES, label="snapshot and acknowledgement" if place == 0 else None)
        axes.plot([cut], [place], marker="|", color="black", markersize=9)
    axes.set_yticks(range(len(tasks)), tasks)
    axes.invert_yaxis()
    axes.set_xlabel("ms since the trigger")
    axes.set_title(f"{result.scenario.title}: checkpoint {record.checkpoint_id}, {record.status.lower()}", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def topology(result: Result) -> Figure:
    """The graph of the run's tasks, each with the time of its cut in the last completed checkpoint."""
    from matplotlib.figure import Figure

    record = result.record()
    graph = result.scenario.topology
    depth: dict[str, int] = {}
    for task in graph.tasks:
        senders = [graph.ends(channel)[0] for channel in graph.inputs(task)]
        depth[task] = 1 + max((depth.get(sender, 0) for sender in senders), default=-1)
    columns: dict[int, list[str]] = {}
    for task, column in depth.items():
        columns.setdefault(column, []).append(task)
    place = {
        task: (float(column), (len(tasks) - 1) / 2 - row)
        for column, tasks in columns.items()
        for row, task in enumerate(tasks)
    }
    figure = Figure(
        figsize=(1.9 * len(columns) + 0.6, 1.0 + 0.9 * max(map(len, columns.values()))), layout="constrained"
    )
    axes = figure.subplots()
    for channel in graph.channels:
        (x0, y0), (x1, y1) = (place[end] for end in graph.ends(channel))
        axes.annotate(
            "", (x1, y1), (x0, y0), arrowprops={"arrowstyle": "->", "shrinkA": 22, "shrinkB": 22, "color": WAITS}
        )
    for task, (x, y) in place.items():
        part = record.parts.get(task)
        cut = (
            ""
            if part is None or part.snapshot_ns is None
            else f"\ncut at {(part.snapshot_ns - record.triggered_ns) / NS_PER_MS:.1f} ms"
        )
        axes.text(x, y, task + cut, ha="center", va="center", bbox={"boxstyle": "round", "fc": "white", "ec": SAVES})
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(min(y for _, y in place.values()) - 0.6, max(y for _, y in place.values()) + 0.6)
    axes.set_axis_off()
    return figure
