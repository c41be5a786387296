"""Pictures of one run, from its journal and its checkpoint records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barrierlab.impl.messages import CheckpointBarrier, Event
from barrierlab.model.render import palette
from barrierlab.model.render.graph import layers_of
from barrierlab.model.spec.history import Entry
from barrierlab.model.spec.topology import Topology
from barrierlab.sim.checkpoint.metrics import NS_PER_MS, CheckpointRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WAITS, ALIGNS, SAVES = palette.START_DELAY, palette.ALIGNMENT, palette.STORED
AHEAD, BEHIND, BARRIER = palette.AHEAD, palette.BEHIND, palette.INK


def timeline(title: str, graph: Topology, record: CheckpointRecord) -> Figure:
    """One bar a task: until its first barrier (start delay), to its last (alignment), to its acknowledgement.

    An unaligned task cuts at its first barrier, and has an alignment all the same, as Flink counts it.
    """
    tasks = [task for task in graph.tasks if task in record.parts]
    figure, axes = drawing(8, 1.2 + 0.32 * len(tasks))
    for place, task in enumerate(tasks):
        part, since = record.parts[task], record.triggered_ns
        first, last = ((at - since) / NS_PER_MS for at in (part.first_barrier_ns, part.last_barrier_ns))
        end = last if part.acknowledged_ns is None else (part.acknowledged_ns - since) / NS_PER_MS
        for begin, until, colour in ((0.0, first, WAITS), (first, last, ALIGNS), (last, end, SAVES)):
            axes.barh(place, until - begin, left=begin, color=colour)
        if part.snapshot_ns is not None:
            axes.plot([(part.snapshot_ns - since) / NS_PER_MS], [place], "k|", ms=9)
    words = ("start delay", "alignment", "snapshot, storage, acknowledgement")
    for colour, text in zip((WAITS, ALIGNS, SAVES), words, strict=True):
        axes.barh(0, 0.0, color=colour, label=text)
    axes.plot([], [], "k|", ms=9, label="cut (snapshot)")
    label_bars(axes, tasks, "ms since the trigger")
    return finished(figure, axes, f"{title}: checkpoint {record.checkpoint_id}, {record.status.lower()}", columns=4)


def drawing(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure of so many inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def label_bars(axes: Axes, names: Sequence[str], unit: str) -> None:
    """Label one bar each, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel(unit)


def finished(figure: Figure, axes: Axes, title: str, columns: int) -> Figure:
    """Give a figure its title, and a legend of so many columns below it."""
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=columns, frameon=False)
    return figure


def topology(graph: Topology, record: CheckpointRecord) -> Figure:
    """The graph of the run's tasks, each with the time from the trigger to its cut."""
    columns = layers_of(graph.tasks, [graph.ends(channel) for channel in graph.channels])
    place = {
        task: (float(column), (len(tasks) - 1) / 2 - row)
        for column, tasks in enumerate(columns)
        for row, task in enumerate(tasks)
    }
    figure, axes = drawing(1.9 * len(columns) + 0.6, 0.4 + 0.85 * max(map(len, columns)))
    boxes = {}
    for task, (x, y) in place.items():
        part = record.parts.get(task)
        cut = (
            ""
            if part is None or part.snapshot_ns is None
            else f"\ncut at {(part.snapshot_ns - record.triggered_ns) / NS_PER_MS:.1f} ms"
        )
        box = {"boxstyle": "round", "fc": "white", "ec": palette.INK}
        boxes[task] = axes.text(x, y, task + cut, ha="center", va="center", bbox=box).get_bbox_patch()
    for channel in graph.channels:
        sender, receiver = graph.ends(channel)
        ends = {"patchA": boxes[sender], "patchB": boxes[receiver], "shrinkA": 0, "shrinkB": 2}
        axes.annotate(
            "", place[receiver], place[sender], arrowprops={"arrowstyle": "-|>", "color": palette.DIM, **ends}
        )
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(min(y for _, y in place.values()) - 0.6, max(y for _, y in place.values()) + 0.6)
    axes.set_axis_off()
    return figure


def space_time(
    title: str, graph: Topology, record: CheckpointRecord, entries: Sequence[Entry], duration_ns: int
) -> Figure:
    """The walk of one barrier: time runs to the right, a line is a task, an arrow is the barrier on a channel.

    A thin line is an event, from where it was sent to where it took effect, in the colour of its sender's side of the
    cut. A dot is an event that took effect, in the colour of the receiver's side. A grey line that ends in a blue dot
    would be an orphan; a blue line that ends in a grey dot is in flight, which an aligned checkpoint has none of.
    """
    from matplotlib.collections import LineCollection

    tasks = graph.tasks
    length = ((duration_ns if record.ended_ns is None else record.ended_ns) - record.triggered_ns) / NS_PER_MS
    margin = max(0.4 * length, 1.0)
    steps = [step for step in _steps(tasks, record, entries) if -margin <= step.at and step.sent_at <= length + margin]
    figure, axes = drawing(9, 1.4 + 0.55 * len(tasks))
    axes.hlines(range(len(tasks)), -margin, length + margin, color=palette.LINE, zorder=0)
    thin = min(0.8, 60 / (1 + len(steps)) + 0.1)
    for colour, words in ((AHEAD, "event ahead of the barrier"), (BEHIND, "event behind the barrier")):
        lines = [[(s.sent_at, s.sender), (s.at, s.receiver)] for s in steps if s.sent_side == colour]
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=thin, zorder=1))
        dots = [(s.at, s.receiver) for s in steps if s.side == colour]
        axes.plot(*zip(*dots, strict=True) if dots else ([], []), "o", ms=3.5, color=colour, label=words, zorder=2)
    for place, task in enumerate(tasks):
        part = record.parts.get(task)
        if part is not None and part.snapshot_ns is not None:
            first, last, cut = (
                (at - record.triggered_ns) / NS_PER_MS
                for at in (part.first_barrier_ns, part.last_barrier_ns, part.snapshot_ns)
            )
            axes.plot([first, last], [place, place], lw=7, color=ALIGNS, solid_capstyle="butt", zorder=1.5)
            axes.plot([cut], [place], "k|", ms=16, mew=2, zorder=4)
    axes.plot([], [], lw=7, color=ALIGNS, label="alignment")
    axes.plot([], [], "k|", ms=16, mew=2, label="cut (snapshot)")
    for s in steps:
        if s.sent_side == BARRIER:
            arrow = {"arrowstyle": "-|>", "color": BARRIER, "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", (s.at, s.receiver), (s.sent_at, s.sender), arrowprops=arrow, zorder=3)
    axes.plot([], [], lw=1.6, color=BARRIER, label="barrier")
    axes.set_yticks(range(len(tasks)), tasks)
    axes.set(xlim=(-margin, length + margin), ylim=(len(tasks) - 0.5, -0.5), xlabel="ms since the trigger")
    axes.spines.left.set_visible(False)
    axes.tick_params(left=False)
    return finished(figure, axes, f"{title}: checkpoint {record.checkpoint_id}, {record.status.lower()}", columns=5)


class _Step(NamedTuple):
    """One message on its way: place and time (ms since the trigger) at both ends, and the side of the cut there."""

    sender: int
    sent_at: float
    sent_side: str
    receiver: int
    at: float
    side: str


def _steps(tasks: Iterable[str], record: CheckpointRecord, entries: Iterable[Entry]) -> list[_Step]:
    """Return all events and the barriers of one checkpoint, from their sending to their effect."""
    place = {task: number for number, task in enumerate(tasks)}
    sent: dict[tuple[str | None, object], tuple[int, float, str]] = {}
    passed: set[str | None] = set()  # tasks that have cut, channels that the barrier is on or has left
    steps = []
    for at_ns, verb, node, channel, what in entries:
        at = (at_ns - record.triggered_ns) / NS_PER_MS
        side = BEHIND if node in passed else AHEAD
        if verb == ">emit":
            steps.append(_Step(place[node], at, side, place[node], at, side))
        elif verb == "snapshot" and isinstance(what, tuple) and what[0] == record.checkpoint_id:
            passed.add(node)
        elif verb == "send" and type(what) is Event:
            sent[channel, what] = place[node], at, BEHIND if channel in passed else AHEAD
        elif verb == "send" and type(what) is CheckpointBarrier and what.checkpoint_id == record.checkpoint_id:
            passed.add(channel)
            sent[channel, what.checkpoint_id] = place[node], at, BARRIER
        elif (verb == "deliver" and type(what) is Event) or (verb == "block" and what == record.checkpoint_id):
            steps.append(_Step(*sent[channel, what], place[node], at, side))
    return steps


MOST_CHANNELS = 6


def queues(title: str, channels: Iterable[str], entries: Iterable[tuple[int, str, str, str | None, object]]) -> Figure:
    """The messages in each channel over time, of the fullest ones; and below all that is buffered behind a barrier."""
    depths: dict[str, tuple[list[float], list[int]]] = {channel: ([0.0], [0]) for channel in channels}
    held: tuple[list[float], list[int]] = ([0.0], [0])
    waiting: set[tuple[str | None, object]] = set()
    for at_ns, verb, _, channel, subject in entries:
        if verb == ">restore":
            waiting.clear()
            for times, counts in (*depths.values(), held):
                times.append(at_ns / 1e9)
                counts.append(0)
        elif verb in ("send", "take", "restored_in_flight", "lost", "repeated") and channel in depths:
            times, counts = depths[channel]
            times.append(at_ns / 1e9)
            counts.append(max(0, counts[-1] + (-1 if verb in ("take", "lost") else 1)))
        elif verb in ("buffer", "deliver"):
            before = len(waiting)
            (waiting.add if verb == "buffer" else waiting.discard)((channel, subject))
            if len(waiting) != before:
                held[0].append(at_ns / 1e9)
                held[1].append(len(waiting))
    fullest = sorted(depths, key=lambda channel: -max(depths[channel][1]))[:MOST_CHANNELS]
    figure, axes = drawing(9, 3.4)
    for channel, colour in zip(fullest, (*palette.SERIES, *palette.MORE_SERIES), strict=False):
        axes.step(*depths[channel], where="post", lw=1, color=colour, label=channel)
    if len(held[0]) > 1:
        axes.fill_between(*held, step="post", color=palette.ALIGNMENT, alpha=0.6, label="buffered behind a barrier")
    left = len(depths) - len(fullest)
    axes.set(xlabel="s", ylabel="messages", ylim=(0, None))
    rest = f" (the fullest, without {left} others)" if left else ""
    return finished(figure, axes, f"{title}: queues{rest}", columns=4)
