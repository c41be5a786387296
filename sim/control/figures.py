"""Pictures of one run of control signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barrierlab.model.render import palette
from barrierlab.sim.checkpoint.figures import drawing, finished, label_bars
from barrierlab.sim.checkpoint.metrics import NS_PER_MS
from barrierlab.sim.control.metrics import BarrierRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def timeline(title: str, processors: Sequence[str], name: str, record: BarrierRecord) -> Figure:
    """One bar a processor, from when a signal was sent: until its first copy is there, and until its last one is."""
    names = [processor for processor in processors if processor in record.first_ns]
    figure, axes = drawing(8, 1.2 + 0.32 * len(names))
    for place, processor in enumerate(names):
        first = (record.first_ns[processor] - record.sent_ns) / NS_PER_MS
        last = (record.complete_ns.get(processor, record.first_ns[processor]) - record.sent_ns) / NS_PER_MS
        axes.barh(place, first, color=palette.START_DELAY, label="start delay" if place == 0 else None)
        axes.barh(place, last - first, left=first, color=palette.ALIGNMENT, label="alignment" if place == 0 else None)
        axes.plot([last], [place], marker="|", color=palette.INK, markersize=9)
    label_bars(axes, names, "ms since the signal was sent")
    return finished(figure, axes, f"{title}: {name}", columns=2)
