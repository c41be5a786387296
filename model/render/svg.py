"""A trace as a space-time diagram in SVG: one file, nothing else needed to look at it.

Time runs to the right, a line is a process, an arrow is a message. The cut of one checkpoint is the dashed line through
the snapshots of all tasks. A message that crosses it from left to right is in flight and has to be recorded (orange);
one that crosses it from right to left is an orphan, and one in flight that nobody recorded is lost: both are red.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import shorten

from barrierlab.model.render import palette
from barrierlab.model.render.html import in_xml
from barrierlab.model.render.spacetime import FAULTY, MARKS, SIGNS, Arrow, Fate, Mark, SpaceTime
from barrierlab.model.spec.history import COORDINATOR

MOST_STEPS = 600
STEP, ROW, LEFT, TOP = 26, 76, 110, 74  # pixels
WIDE = 10  # of a letter of the title, at most, more or less

_COLOURS = {
    Fate.AHEAD: palette.AHEAD,
    Fate.BEHIND: palette.BEHIND,
    Fate.IN_FLIGHT: palette.IN_FLIGHT,
    Fate.ORPHAN: palette.WRONG,
    Fate.LOST: palette.WRONG,
    Fate.TWICE: palette.WRONG,
    Fate.EARLY: palette.WRONG,
    None: palette.AHEAD,
}
_BARRIER, _CONTROL, _HELD, _INK, _BAD = palette.INK, palette.CONTROL, palette.ALIGNMENT, palette.INK, palette.BAD
_STYLE = "".join(
    f".brl-picture {rule}"  # in a page with others it must not be theirs
    for rule in (
        f"text{{font:12px system-ui,sans-serif;fill:{palette.INK};paint-order:stroke;stroke:#fff;stroke-width:3px}}",
        ".s{font-size:10px}",
        ".t{font-size:15px;font-weight:600}",
        f".good{{fill:{palette.GOOD}}}",
        f".bad{{fill:{palette.BAD};font-weight:600}}",
        f".g{{fill:{palette.DIM}}}",
    )
)
_SIGNS = {"snapshot", "completed", "aborted", "decline", "cancel", ">crash", "commit", "rollback", "prepare"}


class TooLongError(ValueError):
    """A picture of so many steps would show nothing: it says how many, how many there may be, and what to do."""


class Svg(str):
    """The text of an SVG file, which a notebook shows as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def svg(drawn: SpaceTime, title: str, verdicts: Iterable[str] = ()) -> Svg:
    """The space-time diagram as the text of an SVG file.

    Parameters
    ----------
    drawn : SpaceTime
    title : str
        What stands on top: a file's name, or the first comment of a trace.
    verdicts : iterable of str
        Violations, called out below the picture; none is "holds".

    Raises
    ------
    TooLongError
        If the trace has more than `MOST_STEPS` steps.
    """
    steps = len(drawn.times_ns)
    if steps > MOST_STEPS:
        raise TooLongError(
            f"the trace has {steps} steps and a picture holds {MOST_STEPS}; use --format perfetto, or a shorter run"
        )
    rows = {process: TOP + 40 + ROW * index for index, process in enumerate(drawn.processes)}
    called_out = list(verdicts)
    width = max(LEFT + STEP * (steps + 5), 760)
    bottom = TOP + 40 + ROW * len(drawn.processes)
    legend = _legend(drawn, bottom)
    height = bottom + 62 + 20 * max(1, len(called_out))
    faulty = [arrow for arrow in drawn.arrows if arrow.fate in FAULTY]
    body = [
        *_lines(drawn, rows, width),
        *_bars(drawn, rows),
        *_restores(drawn, rows),
        *_cut(drawn, rows),
        *(line for arrow in drawn.arrows if arrow.fate not in FAULTY for line in _arrow(arrow, rows, steps)),
        *(line for arrow in faulty for line in _arrow(arrow, rows, steps)),
        *(line for mark in drawn.marks for line in _mark(mark, rows, drawn.cut)),
        *_labels(drawn, rows, steps),
        *legend,
        *_verdicts(called_out, bottom + 62),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="brl-picture" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img"><title>{in_xml(title)}</title>'
        f"<style>{_STYLE}</style>{_MARKERS}"
        f'<rect width="100%" height="100%" fill="#fff"/>'
    )
    words = [f'<text class="t" x="16" y="26">{in_xml(shorten(title, width // WIDE, placeholder=" ..."))}</text>']
    cut = "" if drawn.checkpoint_id is None else f"the cut of checkpoint {drawn.checkpoint_id}; "
    words.append(f'<text class="g" x="16" y="46">{cut}from left to right: order, not time</text>')
    return Svg("\n".join([head, *words, *body, "</svg>"]) + "\n")


def _tip(colour: str) -> str:
    return f"tip{colour[1:]}"


_MARKERS = (
    "<defs>"
    + "".join(
        f'<marker id="{_tip(colour)}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0 0 10 5 0 10z" fill="{colour}"/></marker>'
        for colour in sorted({*_COLOURS.values(), _BARRIER, _CONTROL})
    )
    + "</defs>"
)


def _x(step: float) -> float:
    return LEFT + STEP * (step + 1)


def _lines(drawn: SpaceTime, rows: dict[str, int], width: int) -> Iterable[str]:
    ends = {mark.process: mark.step for mark in drawn.marks if mark.kind == ">crash"}
    for process, y in rows.items():
        last = width - 8 if process not in ends or drawn.restores else _x(ends[process])
        dash = ' stroke-dasharray="2 4"' if process == COORDINATOR else ""
        yield f'<line x1="{LEFT}" y1="{y}" x2="{last}" y2="{y}" stroke="{palette.LINE}" stroke-width="2"{dash}/>'
        yield f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{in_xml(process)}</text>'


def _held(drawn: SpaceTime) -> Iterable[tuple[Arrow, int, int]]:
    """The messages that their receiver buffered behind a barrier, from which step to which."""
    for arrow in drawn.arrows:
        if arrow.taken is None or arrow.applied == arrow.taken or arrow.kind == "CheckpointBarrier":
            continue
        last = next((step for step in (arrow.applied, arrow.gone) if step is not None), len(drawn.times_ns) - 1)
        if last - arrow.taken > 1:
            yield arrow, arrow.taken, last


def _bars(drawn: SpaceTime, rows: dict[str, int]) -> Iterable[str]:
    """A bar on the receiver's line for as long as it buffered a message."""
    for arrow, first, last in _held(drawn):
        y = rows[arrow.receiver]
        yield (
            f'<line x1="{_x(first)}" y1="{y}" x2="{_x(last)}" y2="{y}" stroke="{_HELD}" stroke-width="7" '
            f'stroke-opacity=".7"><title>{in_xml(str(arrow.message))} is buffered</title></line>'
        )


def _restores(drawn: SpaceTime, rows: dict[str, int]) -> Iterable[str]:
    top, bottom = min(rows.values()) - 26, max(rows.values()) + 20
    for step in drawn.restores:
        x = _x(step)
        yield f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="{palette.RESTORED}" stroke-width="3"/>'


def _cut(drawn: SpaceTime, rows: dict[str, int]) -> Iterable[str]:
    places = [(_x(drawn.cut[process]), y) for process, y in rows.items() if process in drawn.cut]
    if not places:
        return
    (first, top), (last, bottom) = places[0], places[-1]
    points = " ".join(f"{x},{y}" for x, y in [(first, top - 30), *places, (last, bottom + 26)])
    yield f'<polyline points="{points}" fill="none" stroke="{_INK}" stroke-width="1.6" stroke-dasharray="6 4"/>'


def _arrow(arrow: Arrow, rows: dict[str, int], steps: int) -> Iterable[str]:
    if arrow.kind in ("CheckpointBarrier", "ControlSignal"):
        colour, wide = _BARRIER, 2.4
    elif arrow.kind == "Event":
        colour, wide = _COLOURS[arrow.fate], 3.0 if arrow.fate in FAULTY else 1.5
    else:
        colour, wide = _CONTROL, 1.2
    x1, y1, x2, y2 = _ends(arrow, rows, steps)
    dash = (
        ' stroke-dasharray="5 3"' if arrow.taken is None or arrow.restored_in_flight or arrow.fate is Fate.LOST else ""
    )
    name = in_xml(str(arrow.message))
    said = in_xml(arrow.fate.value) if arrow.fate is not None else "ignored" if arrow.ignored else "message"
    yield (
        f'<line x1="{x1}" y1="{y1:g}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{wide}"{dash} '
        f'marker-end="url(#{_tip(colour)})"><title>{name} on {in_xml(arrow.channel)}: {said}</title></line>'
    )
    if arrow.recorded_by:
        yield f'<circle cx="{x2:.1f}" cy="{y2:.1f}" r="7" fill="none" stroke="{palette.IN_FLIGHT}" stroke-width="2"/>'


def _mark(mark: Mark, rows: dict[str, int], cut: dict[str, int]) -> Iterable[str]:
    x, y = _x(mark.step), rows.get(mark.process)
    if y is None:
        return
    text = in_xml(mark.text)
    if mark.kind == "snapshot":
        yield f'<rect x="{x - 5}" y="{y - 9}" width="10" height="18" rx="2" fill="{_INK}"><title>{text}</title></rect>'
    elif mark.kind == ">crash":
        cross = f"M{x - 8} {y - 8}l16 16m0-16l-16 16"
        yield f'<path d="{cross}" stroke="{_BAD}" stroke-width="3"><title>crash</title></path>'
    elif mark.kind == ">emit":
        colour = palette.AHEAD if mark.step <= cut.get(mark.process, mark.step) else palette.BEHIND
        yield f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"><title>{text} is made</title></circle>'
    else:
        yield f'<circle cx="{x}" cy="{y}" r="3.5" fill="{palette.PAPER}" stroke="{_INK}"><title>{text}</title></circle>'


def _ends(arrow: Arrow, rows: dict[str, int], steps: int) -> tuple[float, float, float, float]:
    """Return where an arrow begins, and where it ends."""
    end = next((step for step in (arrow.taken, arrow.gone) if step is not None), steps)
    start = arrow.sent if arrow.sent is not None else max(end - 1, 0)
    y1, y2 = float(rows[arrow.sender]), float(rows[arrow.receiver])
    if arrow.restored_in_flight:
        y1 = y2 - 34  # it comes out of the checkpoint
    elif arrow.taken is None:
        y2 = y1 + (y2 - y1) * 0.8  # it never arrives
    return _x(start), y1, _x(end), y2


def _labels(drawn: SpaceTime, rows: dict[str, int], steps: int) -> Iterable[str]:
    """The words of marks and arrows, each in the first of its places in which no other stands yet."""
    taken: list[tuple[float, float, float]] = []
    for kind, text, places in _words(drawn, rows, steps):
        wide = (8 if "bad" in kind else 6) * len(text)
        free = (place for place in places if not any(_meet((*place, wide), other) for other in taken))
        x, y = next(free, places[0])
        taken.append((x, y, wide))
        yield f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{in_xml(text)}</text>'


def _meet(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Return whether two lines of words, of which each has a place and a width, run into each other."""
    return abs(one[1] - other[1]) < 11 and one[0] < other[0] + other[2] and other[0] < one[0] + one[2]


def _words(
    drawn: SpaceTime, rows: dict[str, int], steps: int
) -> Iterable[tuple[str, str, Sequence[tuple[float, float]]]]:
    """The class, the text and the possible places of each label, the best place first."""
    for step in drawn.restores:
        yield "s good", "the job is restored", [(_x(step) + 5, min(rows.values()) - 22.0)]
    for mark in (mark for mark in drawn.marks if mark.process in rows):
        x, y = _x(mark.step), rows[mark.process]
        if mark.process == COORDINATOR:
            yield "s g", mark.text, [(x - 4, y + 20 + 12 * line) for line in range(4)]
        elif mark.kind in _SIGNS:
            yield "s g", mark.text, [(x - 8, y + line) for line in (-14, 24, -26, 36)]
    for arrow in sorted(drawn.arrows, key=lambda arrow: arrow.fate not in FAULTY):
        x1, y1, x2, y2 = _ends(arrow, rows, steps)
        name, is_barrier = str(arrow.message), arrow.kind == "CheckpointBarrier"
        text = f"B{name.split()[1]}" if is_barrier else name.replace("watermark", "W")
        if arrow.fate in FAULTY and arrow.fate is not None:
            text += f" {arrow.fate.value.split(':')[0].removeprefix('an ')}"
        best = 0.62 if is_barrier else 0.3  # two messages that leave together stay readable
        along = (best, 0.45, 0.75, 0.2, 0.55, 0.85)
        kind = "bad" if arrow.fate in FAULTY else "s"
        yield kind, text, [(x1 + (x2 - x1) * at + 4, y1 + (y2 - y1) * at - 3) for at in along]


def _legend(drawn: SpaceTime, y: int) -> list[str]:
    fates = [fate for fate in Fate if any(arrow.fate is fate for arrow in drawn.arrows)]
    entries = [(_COLOURS[fate], fate.value) for fate in fates]
    if drawn.signs is SIGNS and any(arrow.kind == "Event" and arrow.fate is None for arrow in drawn.arrows):
        entries.append((_COLOURS[None], "event of a channel that is not cut at both ends"))
    kinds = {arrow.kind for arrow in drawn.arrows}
    if "ControlSignal" in kinds:
        entries.append((_BARRIER, "control signal"))
    elif "CheckpointBarrier" in kinds or drawn.signs is SIGNS:  # a join has none
        entries.append((_BARRIER, "barrier"))
    lines, x = [], 16
    for colour, words in entries:
        lines.append(f'<line x1="{x}" y1="{y + 16}" x2="{x + 22}" y2="{y + 16}" stroke="{colour}" stroke-width="3"/>')
        lines.append(f'<text class="s" x="{x + 28}" y="{y + 20}">{in_xml(words)}</text>')
        x += 44 + 6 * len(words)
    signs = "; ".join(f"{sign}: {meaning}" for sign, meaning in _signs(drawn))
    lines.append(f'<text class="s g" x="16" y="{y + 38}">{signs}</text>')
    return lines


def _signs(drawn: SpaceTime) -> Iterable[tuple[str, str]]:
    """Return the signs of a picture, and of those that not every picture has, the ones that are in this one."""
    there = {
        "black bar": any(mark.kind == "snapshot" for mark in drawn.marks),
        "dashed": bool(drawn.cut),
        "broad": any(_held(drawn)),
        "ring": any(arrow.recorded_by for arrow in drawn.arrows),
    }
    yield from ((sign, meaning) for sign, meaning in drawn.signs if there.get(sign, True))
    if any(mark.kind == ">emit" for mark in drawn.marks):
        yield "dot", "an event is made"
    small = dict.fromkeys(
        MARKS[mark.kind].format("n")
        for mark in drawn.marks
        if mark.process != COORDINATOR and mark.kind in MARKS and mark.kind not in (*_SIGNS, ">emit")
    )
    if small:
        yield "circle", ", or ".join(small)
    if any(arrow.taken is None and arrow.gone is None for arrow in drawn.arrows):
        yield "arrow in dashes", "never taken"


def _verdicts(called_out: Sequence[str], y: int) -> Iterable[str]:
    if not called_out:
        yield f'<text class="good" x="16" y="{y}">the invariants hold</text>'
    for index, verdict in enumerate(called_out):
        yield f'<text class="bad" x="16" y="{y + 20 * index}">! {in_xml(verdict)}</text>'
