"""A dataflow as a picture in SVG: senders to the left of receivers, a box for each operator, an arrow for each edge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barrierlab.model.render import palette
from barrierlab.model.render.html import in_xml

_COLUMN, _GAP, _ROW, _BOX, _LETTER, _SMALL = 150, 40, 52, 30, 7.2, 6.0
_STYLE = (
    ".brl-graph text{font:12px system-ui,sans-serif;fill:currentColor}.brl-graph .s{font-size:10px}"
    ".brl-graph rect{fill:none;stroke:currentColor}.brl-graph path{fill:none}"
)


def layers_of(nodes: Iterable[str], edges: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the nodes column by column: each as far right as its longest way from a node that nothing leads to.

    >>> layers_of(["a", "b", "join"], [("a", "join"), ("b", "join")])
    [['a', 'b'], ['join']]
    """
    depth = dict.fromkeys(nodes, 0)
    for _ in depth:  # as long as the longest way
        for sender, receiver in edges:
            depth[receiver] = max(depth[receiver], depth[sender] + 1)
    return [[node for node in depth if depth[node] == column] for column in sorted({*depth.values()})]


def graph_svg(title: str, nodes: Sequence[tuple[str, str]], edges: Iterable[tuple[str, str, str, str]]) -> str:
    """The picture of a graph without circles, in the colour of the page's text.

    Parameters
    ----------
    title : str
        What a screen reader says.
    nodes : sequence of (str, str)
        Names, and what stands in their boxes.
    edges : iterable of (str, str, str, str)
        Sender, receiver, what is written on it, and its colour; without one it has that of the text.
    """
    arrows = list(edges)
    columns = layers_of([name for name, _ in nodes], [arrow[:2] for arrow in arrows])
    most = max(map(len, columns), default=1)
    wide = {name: max(60.0, _LETTER * len(text) + 18) for name, text in nodes}
    gap = max(
        (_SMALL * len(text) + 12 for *_, text, _ in arrows), default=0.0
    )  # what is written on an arrow fits in it
    place, left, width = {}, 12.0, 84.0
    for names in columns:
        widest = max(wide[name] for name in names)
        for row, name in enumerate(names):
            place[name] = (left, 12.0 + _ROW * (row + (most - len(names)) / 2))
        width = left + widest + 12
        left += max(_COLUMN, widest + max(_GAP, gap))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="brl-graph" role="img" width="{width:g}" '
        f'height="{most * _ROW + 4}" viewBox="0 0 {width:g} {most * _ROW + 4}"><title>{in_xml(title)}</title>'
        f"<style>{_STYLE}</style>"
    )
    lines = [head]
    for sender, receiver, text, colour in arrows:
        x1, y1 = place[sender][0] + wide[sender], place[sender][1] + _BOX / 2
        x2, y2 = place[receiver][0], place[receiver][1] + _BOX / 2
        bend = min(40.0, (x2 - x1) / 2)
        stroke = colour or palette.BEHIND
        lines.append(
            f'<path d="M{x1:g} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2 - 2:g} {y2:g}m-6-4l6 4l-6 4" '
            f'stroke="{stroke}" stroke-width="1.6"/>'
        )
        if text:
            lines.append(
                f'<text class="s" x="{(x1 + x2) / 2:g}" y="{(y1 + y2) / 2 - 4:g}" text-anchor="middle">'
                f"{in_xml(text)}</text>"
            )
    for name, text in nodes:
        x, y = place[name]
        lines.append(f'<rect x="{x:g}" y="{y:g}" width="{wide[name]:g}" height="{_BOX}" rx="6"/>')
        lines.append(f'<text x="{x + wide[name] / 2:g}" y="{y + 19:g}" text-anchor="middle">{in_xml(text)}</text>')
    return "\n".join([*lines, "</svg>"])
