"""A job and one of its checkpoints as SVG in a page: what is drawn is in rows, what it looks like is here.

Colours are the page's custom properties (`model.render.palette.css`). No colour says anything alone: the bottleneck has
a double frame and the word, a wait has a pattern of its own, and the critical path is a line of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from barrierlab.model.render.graph import layers_of
from barrierlab.sim.core.amounts import percent

WIDE, NARROW = 840, 340
"""Pixels: of a figure on a page, and of one on a telephone."""
_LETTER = 7.0  # about the width of a letter of 12 pixels
_DOTS, _SLANTS = '<circle cx="4" cy="4" r="1.2"/>', '<path d="M-1 1L1 -1M0 8L8 0M7 9L9 7"/>'
_CROSSES, _LINES = '<path d="M0 0L8 8M0 8L8 0"/>', '<path d="M0 4H8"/>'


class WaitKind(NamedTuple):
    """A kind of wait: its words, the name of its colour, and what its bar is filled with."""

    name: str
    words: str
    colour: str
    hatch: str


OF_A_CHECKPOINT = (
    WaitKind("start delay", "start delay: its barrier has not come", "start-delay", ""),
    WaitKind("alignment", "alignment: until its last barrier", "alignment", _SLANTS),
    WaitKind("snapshot", "snapshot, the task stands still", "snapshot", _CROSSES),
    WaitKind("recording", "recording: unaligned, until its last barrier", "dim", _DOTS),
    WaitKind("storage", "storage and acknowledgement", "stored", _LINES),
)
OF_AN_OUTPUT = (
    WaitKind("making", "captured, and not whole in its slot yet", "line", _DOTS),
    WaitKind("way", "on its way to the join", "dim", _LINES),
    WaitKind("wait", "held: the join waits for the others", "alignment", _SLANTS),
)


class JobNode(NamedTuple):
    """An operator, or a source: how much of their time its subtasks were busy and back-pressured, of the fullest."""

    name: str
    parallelism: int
    busy: float
    backpressured: float


class JobEdge(NamedTuple):
    """An edge, and how its events are spread."""

    sender: str
    receiver: str
    exchange: str


class WaitBar(NamedTuple):
    """One row: where, when its first wait begins and each wait ends, in ms since the begin of all; None: never."""

    where: str
    begin_ms: float
    ends_ms: tuple[float | None, ...]


class PathPiece(NamedTuple):
    """One wait on the critical path, in ms since the begin of all."""

    where: str
    what: str
    waits_for: str
    begin_ms: float
    end_ms: float


def _svg(width: float, height: float, parts: Iterable[str], run: str = "") -> str:
    of_run = f' data-run="{escape(run)}"' if run else ""
    head = f'<svg aria-hidden="true"{of_run} width="{width:.0f}" height="{height:.0f}"'
    return "\n".join([f'{head} viewBox="0 0 {width:.0f} {height:.0f}" class="drawn">', *parts, "</svg>"])


def _text(x: float, y: float, words: str, most: float = 1e9, **attributes: object) -> str:
    """Words at a place, cut to so many pixels; whole in a title."""
    letters = max(3, int(most / _LETTER)) if most < 1e9 else len(words)
    shown = words if len(words) <= letters else f"{words[: letters - 1]}…"
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    title = f"<title>{escape(words)}</title>" if shown != words else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{title}{escape(shown)}</text>'


def bottleneck_of(nodes: Sequence[JobNode]) -> str:
    """Return the name of the node that was busy longest."""
    return max(nodes, key=lambda node: node.busy).name


def job(
    nodes: Sequence[JobNode],
    edges: Sequence[JobEdge],
    name: str,
    bottleneck: str,
    run: str = "",
    *,
    labels: Mapping[str, tuple[str, str]] | None = None,
    narrow: bool,
) -> str:
    """The job as boxes and arrows, its bottleneck in a double frame; from the left, or on a telephone from the top.

    `labels` are two lines for each box, in place of its shares.
    """
    by_name = {node.name: node for node in nodes}
    names = layers_of(by_name, [(edge.sender, edge.receiver) for edge in edges])
    layers = [[by_name[each] for each in layer] for layer in names]
    width, tall, gap = (NARROW if narrow else WIDE), 66.0, 46.0
    is_down = narrow or len(layers) * 150 > WIDE
    boxes: dict[str, tuple[float, float, float]] = {}  # left, top, width
    if is_down:
        top = 4.0
        for layer in layers:
            in_row = max(1, min(len(layer), int(width / 108)))
            for first in range(0, len(layer), in_row):
                row = layer[first : first + in_row]
                wide = min(190.0, (width - 8) / len(row) - 10)
                begin = (width - len(row) * (wide + 10)) / 2 + 5
                for place, node in enumerate(row):
                    boxes[node.name] = (begin + place * (wide + 10), top, wide)
                top += tall + (12 if first + in_row < len(layer) else gap)
        height = top - gap + 6
    else:
        wide = min(190.0, (width - 8 - gap * (len(layers) - 1)) / len(layers))
        most = max(map(len, layers))
        height = most * (tall + 14) + 4
        for column, layer in enumerate(layers):
            begin = (height - len(layer) * (tall + 14)) / 2 + 7
            for place, node in enumerate(layer):
                boxes[node.name] = (4 + column * (wide + gap), begin + place * (tall + 14), wide)
    head = f'<marker id="{name}-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
    parts = [f'<defs>{head} orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>']
    for edge in edges:
        (x, y, w), (to_x, to_y, to_w) = boxes[edge.sender], boxes[edge.receiver]
        ends = (x + w / 2, y + tall, to_x + to_w / 2, to_y) if is_down else (x + w, y + tall / 2, to_x, to_y + tall / 2)
        line = "{:.1f} {:.1f}L{:.1f} {:.1f}".format(*ends)
        tip = f"<title>{escape(f'{edge.sender} to {edge.receiver}: {edge.exchange}')}</title>"
        parts.append(f'<path d="M{line}" class="edge" marker-end="url(#{name}-head)">{tip}</path>')
    for node in nodes:
        lines = (labels or {}).get(node.name) or (
            f"busy {percent(node.busy)}",
            f"backpr. {percent(node.backpressured)}",
        )
        parts += _box(node, *boxes[node.name], tall, lines, node.name == bottleneck)
    return _svg(width, height, parts, run)


def _box(
    node: JobNode, x: float, y: float, wide: float, tall: float, lines: tuple[str, str], is_bottleneck: bool
) -> list[str]:
    kind = "box bottleneck" if is_bottleneck else "box"
    parts = [f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall}" rx="4" class="{kind}"/>']
    if is_bottleneck:
        inner = f'x="{x + 3:.1f}" y="{y + 3:.1f}" width="{wide - 6:.1f}" height="{tall - 6}"'
        parts.append(f'<rect {inner} rx="2" class="box"/>')
    room = wide - 14
    count = f" ×{node.parallelism}" if node.parallelism > 1 else ""
    parts.append(_text(x + 8, y + 18, node.name + count, room, font_weight=600))
    parts += [_text(x + 8, y + 35 + 16 * number, line, room) for number, line in enumerate(lines)]
    line = f'y="{y + tall - 9:.1f}" height="4"'
    parts.append(f'<rect x="{x + 8:.1f}" {line} width="{room - 2:.1f}" class="track"/>')
    parts.append(f'<rect x="{x + 8:.1f}" {line} width="{(room - 2) * min(node.busy, 1):.1f}" class="busy"/>')
    return parts


def waits(
    bars: Sequence[WaitBar],
    path: Sequence[PathPiece],
    duration_ms: float,
    kinds: Sequence[WaitKind],
    words: tuple[str, str],
    name: str,
    run: str = "",
    *,
    narrow: bool,
) -> str:
    """Rows of waits, and the critical path: a thick line below those who were waited for, with a foot where it goes on.

    `words` are those of the path, and of the axis.
    """
    rows = list(dict.fromkeys([*(bar.where for bar in bars), *(piece.where for piece in path)]))
    width = NARROW if narrow else WIDE
    label = 0.0 if narrow else min(200.0, 16 + _LETTER * max((len(row) for row in rows), default=0))
    step, in_row = (46.0, 1) if narrow else (34.0, 2)
    head = 22.0 * (-(-len(kinds) // in_row) + 1) + 8
    height = head + step * len(rows) + 36
    left, right = label + 4, width - 14.0
    scale = (right - left) / (duration_ms or 1.0)

    def x(ms: float) -> float:
        return left + max(0.0, min(ms, duration_ms)) * scale

    parts = ["<defs>"]
    for kind in kinds:
        parts.append(
            f'<pattern id="{name}-{kind.colour}" width="8" height="8" patternUnits="userSpaceOnUse">'
            f'<rect width="8" height="8" fill="var(--{kind.colour})"/><g class="hatch">{kind.hatch}</g></pattern>'
        )
    parts.append("</defs>")
    for number, kind in enumerate(kinds):
        at_x, at_y = 4 + (number % in_row) * width / 2, 22.0 * (number // in_row)
        fill = f'class="bar" fill="url(#{name}-{kind.colour})"'
        parts.append(f'<rect x="{at_x}" y="{at_y + 4}" width="22" height="13" {fill}/>')
        parts.append(_text(at_x + 28, at_y + 15, kind.words))
    parts.append(f'<path d="M4 {head - 19:.1f}H26" class="path"/>')
    parts.append(_text(32, head - 15, words[0]))
    for tick in ticks(duration_ms, 4 if narrow else 8):
        parts.append(f'<path d="M{x(tick):.1f} {head:.1f}V{height - 32:.1f}" class="grid"/>')
        parts.append(_text(x(tick), height - 18, f"{tick:g}", text_anchor="middle"))
    parts.append(_text((left + right) / 2, height - 3, words[1], text_anchor="middle"))
    place = {row: head + step * number + (16 if narrow else 4) for number, row in enumerate(rows)}
    for row in rows:
        y = place[row]
        parts.append(_text(4, y - 4, row, width - 8) if narrow else _text(4, y + 14, row, label - 8))
        parts.append(f'<path d="M{left:.1f} {y + 9:.1f}H{right:.1f}" class="grid"/>')
    for bar in bars:
        at = bar.begin_ms
        for kind, end in zip(kinds, bar.ends_ms, strict=True):
            if end is None:
                break
            if end > at:
                box = f'x="{x(at):.1f}" y="{place[bar.where]:.1f}" width="{max(x(end) - x(at), 0.5):.1f}" height="18"'
                tip = escape(f"{bar.where}: {kind.name} {end - at:.1f} ms")
                fill = f'class="bar" fill="url(#{name}-{kind.colour})"'
                parts.append(f"<rect {box} {fill}><title>{tip}</title></rect>")
                at = end
    for number, piece in enumerate(path):
        y = place[piece.where] + 23
        tip = f"{piece.where}: {piece.what} ({piece.waits_for}), {piece.end_ms - piece.begin_ms:.1f} ms"
        line = f"M{x(piece.begin_ms):.1f} {y:.1f}H{max(x(piece.end_ms), x(piece.begin_ms) + 1):.1f}"
        if number + 1 < len(path) and path[number + 1].where != piece.where:
            line += f"V{place[path[number + 1].where] + 23:.1f}"
        parts.append(f'<path d="{line}" class="path"><title>{escape(tip)}</title></path>')
    return _svg(width, height, parts, run)


def ticks(most: float, count: int) -> list[float]:
    """Return round numbers from 0 to at most so much, with at most so many steps between them.

    >>> ticks(523.0, 5), ticks(523.0, 8)
    ([0.0, 200.0, 400.0], [0.0, 100.0, 200.0, 300.0, 400.0, 500.0])
    """
    if most <= 0:
        return [0.0]
    rough = most / count
    size: float = 10.0 ** len(str(int(rough)) if rough >= 1 else "") / 10.0
    while size > rough:
        size /= 10.0
    step = next(size * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if size * factor >= rough)
    return [round(step * number, 10) for number in range(int(most / step + 1e-9) + 1)]


def style() -> str:
    """Return the style of what is drawn here."""
    return """
svg.drawn text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg.drawn .box { fill: var(--soft); stroke: var(--dim); }
svg.drawn .bottleneck { stroke: currentColor; stroke-width: 2.5; }
svg.drawn .edge { fill: none; stroke: currentColor; stroke-width: 1.3; }
svg.drawn .track { fill: var(--line); } svg.drawn .busy { fill: currentColor; }
svg.drawn .grid { stroke: var(--line); fill: none; }
svg.drawn .bar { stroke: currentColor; stroke-width: .8; }
svg.drawn .hatch { stroke: var(--paper); stroke-width: 1.2; fill: var(--paper); }
svg.drawn .path { fill: none; stroke: currentColor; stroke-width: 4; stroke-linejoin: round; }
"""
