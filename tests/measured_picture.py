"""The measured comparison as a picture: a dot for each statistic with a target, predicted against measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barrierlab.model.render.palette import SERIES

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "measured.svg"

MODES = dict(zip(("aligned", "unaligned", "aligned with a timeout"), SERIES, strict=False))
PANELS = {
    "duration, ms": (("end to end, ms",), (5.0, 10_000.0)),
    "start delay and alignment, ms": (("start delay of ", "alignment of "), (100.0, 10_000.0)),
    "persisted, MB": (("persisted, MB",), (0.1, 10.0)),
}
"""By the title of a panel: how its statistics begin, and the ends of its logarithmic axes."""
SIDE, LEFT, TOP, GAP = 240, 62, 64, 84
FONT = 'font-family="DejaVu Sans, Helvetica, Arial, sans-serif"'


class Dot(NamedTuple):
    """One statistic of one measured job in one mode."""

    job: str
    statistic: str
    mode: str
    measured: float
    predicted: float
    is_met: bool


def dots(lines: Sequence[str]) -> Iterator[Dot]:
    """Read the rows of the table that `barrierlab measured` prints: what has a target, and is above zero."""
    for line in lines:
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if len(cells) != 2 + 2 * len(MODES) or cells[0] in ("measured job", "---"):
            continue
        job, statistic, *pairs = cells
        for at, mode in enumerate(MODES):
            measured, predicted = pairs[2 * at : 2 * at + 2]
            if predicted.endswith(("✓", "✗")) and float(measured) > 0:
                yield Dot(job, statistic, mode, float(measured), float(predicted[:-1]), predicted.endswith("✓"))


def picture(lines: Sequence[str]) -> str:
    """Return the picture of these lines, as SVG."""
    found = list(dots(lines))
    width, height = LEFT + len(PANELS) * (SIDE + GAP) - GAP + 24, TOP + SIDE + 76
    words = "Predicted against measured on a real cluster of Apache Flink 2.3.0"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" {FONT}>',
        f"<title>{words}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="bold" fill="#1a202c">{words}</text>',
    ]
    for at, (title, (begins, ends)) in enumerate(PANELS.items()):
        own = [dot for dot in found if dot.statistic.startswith(begins)]
        parts += panel(LEFT + at * (SIDE + GAP), title, own, ends)
    x = LEFT
    for mode, colour in MODES.items():
        parts.append(f'<circle cx="{x + 5}" cy="{height - 16}" r="5" fill="{colour}" fill-opacity="0.75"/>')
        parts.append(f'<text x="{x + 16}" y="{height - 12}" font-size="12" fill="#2d3748">{mode}</text>')
        x += 44 + 7 * len(mode)
    met = lines[-1].partition(";")[0]  # what has a target of 0 bytes has no dot
    parts.append(f'<text x="{x}" y="{height - 12}" font-size="12" fill="#2d3748">grey: within 10 %; {met}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def panel(left: float, title: str, found: Sequence[Dot], ends: tuple[float, float]) -> Iterator[str]:
    """One square, both axes logarithmic and alike, with the diagonal and what is within a tenth of it."""
    low, high = map(math.log10, ends)

    def at(value: float) -> float:
        return (math.log10(value) - low) / (high - low) * SIDE

    bottom, tenth = TOP + SIDE, at(ends[0] * 1.1)
    corners = f"{left},{bottom} {left},{bottom - tenth:.1f} {left + SIDE - tenth:.1f},{TOP} {left + SIDE},{TOP}"
    corners += f" {left + SIDE},{TOP + tenth:.1f} {left + tenth:.1f},{bottom}"
    yield f'<text x="{left}" y="{TOP - 12}" font-size="12" fill="#2d3748">{title}</text>'
    yield f'<polygon points="{corners}" fill="#e2e8f0"/>'
    yield f'<path d="M{left} {bottom}L{left + SIDE} {TOP}" stroke="#a0aec0"/>'
    yield f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#718096"/>'
    for power in range(math.ceil(low), math.floor(high) + 1):
        place, text = at(10.0**power), f"{10.0**power:g}"
        yield label(left + place, bottom + 16, text)
        yield label(left - 8 - 3.4 * len(text), bottom - place + 4, text)
    yield label(left + SIDE / 2, bottom + 32, "measured")
    yield label(left - 46, TOP + SIDE / 2, "predicted", turn=-90)
    for dot in found:
        x, y = left + at(dot.measured), bottom - at(dot.predicted)
        words = f"{dot.job}, {dot.mode}, {dot.statistic}: measured {dot.measured:g}, predicted {dot.predicted:g}"
        place = f'cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{MODES[dot.mode]}" fill-opacity="0.75"'
        yield f"<circle {place}><title>{words}</title></circle>"


def label(x: float, y: float, text: str, turn: int = 0) -> str:
    """A word at an axis, its middle at this place, and turned by so many degrees."""
    place = f'x="{x:.1f}" y="{y:.1f}" transform="rotate({turn} {x:.1f},{y:.1f})"'
    return f'<text {place} font-size="11" text-anchor="middle" fill="#4a5568">{text}</text>'
