"""A drawn dataflow: boxes that hold their names and do not lie on each other, arrows that lead to the right."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from barrierlab.model.render.graph import graph_svg

RECT = re.compile(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"')
ARROW = re.compile(r'<path d="M([\d.]+) [\d.]+C[\d. ]+ ([\d.]+) [\d.]+m')
TEXTS = st.text("abcdefghij-", max_size=40)


@given(st.lists(TEXTS, min_size=1, max_size=6), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), TEXTS)))
def test_boxes_do_not_overlap_however_long_their_names_are(texts: list[str], pairs: list[tuple[int, int, str]]) -> None:
    """A box of a long name would lie on the next operator's, and its arrows would lead backwards."""
    nodes = [(f"n{number}", text) for number, text in enumerate(texts)]
    edges = [(f"n{one}", f"n{two}", text, "") for one, two, text in pairs if one < two < len(texts)]
    picture = graph_svg("a job", nodes, edges)
    boxes = [tuple(map(float, found)) for found in RECT.findall(picture)]
    assert len(boxes) == len(nodes)
    for number, (x, y, width, height) in enumerate(boxes):
        for left, top, wide, high in boxes[:number]:
            apart = x + width <= left or left + wide <= x or y + height <= top or top + high <= y
            assert apart, picture
    widest = float(re.search(r'width="([\d.]+)"', picture)[1])  # type: ignore[index]
    assert max(x + width for x, _, width, _ in boxes) <= widest
    arrows = ARROW.findall(picture)
    assert len(arrows) == len(edges)
    assert all(float(start) < float(end) for start, end in arrows), picture
