"""Pictures of one run of a join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barrierlab.model.join.history import JoinEntry
from barrierlab.model.render import palette
from barrierlab.sim.checkpoint.figures import drawing, finished
from barrierlab.sim.checkpoint.metrics import NS_PER_MS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def timeline(title: str, entries: Iterable[JoinEntry]) -> Figure:
    """Draw the wait of each output since it was asked for; hollow without a stream, a cross where one is skipped."""
    asked: dict[object, int] = {}
    outs: dict[bool, tuple[list[float], list[float]]] = {True: ([], []), False: ([], [])}
    skipped: list[float] = []
    for at_ns, verb, _, subject in entries:
        detail: Any = subject
        if verb == "ask":
            asked.setdefault(detail[0], at_ns)
        elif verb == "emit":
            value, _, absent = detail
            times, waits = outs[not absent]
            times.append(at_ns / 1e9)
            waits.append((at_ns - asked.get(value, at_ns)) / NS_PER_MS)
        elif verb == "skip":
            skipped.append(at_ns / 1e9)
    figure, axes = drawing(9, 3.2)
    style: dict[str, Any] = {"ls": "", "marker": "o", "ms": 3, "color": palette.SERIES[0]}
    axes.plot(*outs[True], label="complete", **style)
    if outs[False][0]:
        axes.plot(*outs[False], label="without a stream", mfc="none", **style)
    if skipped:
        axes.plot(skipped, [0.0] * len(skipped), ls="", marker="x", color=palette.SERIES[1], label="skipped")
    axes.set(xlabel="s", ylabel="wait, ms")
    return finished(figure, axes, f"{title}: outputs", columns=3)


def queues(title: str, entries: Iterable[JoinEntry], names: Mapping[int, str]) -> Figure:
    """Draw the frames of each stream that are at the join and in no output so far, over time."""
    waiting: dict[int, list[tuple[int, int]]] = {number: [] for number in names}
    drawn: dict[int, tuple[list[float], list[int]]] = {number: ([0.0], [0]) for number in names}
    for at_ns, verb, stream, subject in entries:
        detail: Any = subject
        changed: Sequence[int] = ()
        if verb == "observe" and stream in waiting:
            waiting[stream].append((detail.epoch, detail.seq))
            changed = (stream,)
        elif verb == "emit":
            for number, frame in detail[1]:
                waiting[number] = [each for each in waiting[number] if each > (frame.epoch, frame.seq)]
            changed = [number for number, _ in detail[1]]
        for number in changed:
            drawn[number][0].append(at_ns / 1e9)
            drawn[number][1].append(len(waiting[number]))
    figure, axes = drawing(9, 3.2)
    for (number, name), colour in zip(names.items(), (*palette.SERIES, *palette.MORE_SERIES), strict=False):
        axes.step(*drawn[number], where="post", lw=1, color=colour, label=name)
    axes.set(xlabel="s", ylabel="frames", ylim=(0, None))
    return finished(figure, axes, f"{title}: frames that wait", columns=4)
