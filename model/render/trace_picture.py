"""The picture of a trace, whatever it is a trace of: a dataflow with checkpoints, control signals, or a join."""

from __future__ import annotations

import re
from textwrap import shorten

from barrierlab.model.checkpoint.trace import COMMENT, judged, read, topology_of
from barrierlab.model.render.signals import lay_out_signals
from barrierlab.model.render.spacetime import SpaceTime, lay_out
from barrierlab.model.render.streams import lay_out_join
from barrierlab.model.render.svg import MOST_STEPS, Svg, svg

OF_OTHERS = re.compile(r"^(# (late )?)?(?P<of>join|control)( table)?: ", re.MULTILINE)
"""A field in the head of a journal, or the title of a counterexample, that is not of a dataflow with checkpoints."""


PART = 160
"""Steps of a long trace of signals, or of a join: what a page is wide."""


def kind_of_trace(text: str) -> str:
    """Return ``"join"`` or ``"control"``; empty for one of a dataflow with checkpoints."""
    if text.startswith("> signal "):
        return "control"
    found = OF_OTHERS.search(text.partition("\n\n")[0])
    return "" if found is None else found["of"]


def lay_out_other(text: str) -> SpaceTime:
    """A trace of a join or of control signals, laid out.

    Raises
    ------
    ValueError
        If there is nothing to draw in it, as in one that is the comparison with a table.
    """
    drawn = (lay_out_join if kind_of_trace(text) == "join" else lay_out_signals)(text)
    if not drawn.arrows:
        raise ValueError("no message is sent in it, so that there is nothing to draw; take --format text")
    return drawn


def picture_of(text: str) -> Svg:
    """The space-time diagram of a trace; of a long one the part around what is of interest.

    Raises
    ------
    ValueError
        If it is no trace, or nothing is sent in it.
    """
    if kind_of_trace(text):
        drawn, verdicts = lay_out_other(text), [line[2:] for line in text.splitlines() if line.startswith("! ")]
        return svg(drawn.part(PART), title_of(text), verdicts)
    violations = judged(text).violations  # before anything is laid out: what is no journal has no place in a picture
    head, entries = read(text)
    comment = " ".join(head.get(COMMENT, "trace").split())
    whole = lay_out(entries, topology_of(head))
    part = whole if len(whole.times_ns) <= MOST_STEPS else whole.around_cut()
    drawn = part if len(part.times_ns) <= MOST_STEPS else part.without_events()
    return svg(drawn, title_of(f"# {comment}"), map(str, violations))


def title_of(text: str) -> str:
    """The first sentence of the comments on top of a trace; without one the scenario that its head names."""
    head = text.partition("\n\n")[0].splitlines()
    comments = [line[1:].strip() for line in head if line.startswith("#")]
    named = [line.partition(": ")[2] for line in head if line.startswith("scenario: ")]
    words = " ".join(comments).split(". ")[0].rstrip(".") or " ".join(named) or "control signals"
    return shorten(words, 200, placeholder=" ...")
