"""The colours of all pictures, each with the one thing that it means.

SVG, matplotlib, reports, the explorable run and notebooks take them from here. A mark is of middling lightness, so that
it is seen on white and on black; what is written, and what it is written on, comes twice, for light and for dark pages.
No colour says anything alone: lost is dashed, recorded has a ring, buffered is a broad bar, a snapshot is a bar across.
"""

from __future__ import annotations

# Sides of a cut.
AHEAD = "#3b82c4"
BEHIND = "#868d97"
IN_FLIGHT = "#dd7000"
WRONG = "#d64045"

# Waits of a barrier, in the order in which a checkpoint comes through them.
START_DELAY = "#1f9aa0"
ALIGNMENT = "#b98b00"
SNAPSHOT = "#8a63b8"
STORED = "#b58ad0"

CONTROL = "#9a7b6b"
RESTORED = "#2e9560"

MARKS = {
    "ahead": (AHEAD, "ahead of the cut"),
    "behind": (BEHIND, "behind the cut"),
    "in-flight": (IN_FLIGHT, "in flight: sent ahead of the cut, taken behind it"),
    "wrong": (WRONG, "wrong: an orphan, lost, or a broken invariant"),
    "start-delay": (START_DELAY, "the barrier has not come"),
    "alignment": (ALIGNMENT, "waits behind its barrier: buffered, or aligning"),
    "snapshot": (SNAPSHOT, "the state is being kept, and the task stands still"),
    "stored": (STORED, "the state is being stored and acknowledged, and the task goes on"),
    "control": (CONTROL, "a watermark, a cancel, an end or a control signal"),
    "restored": (RESTORED, "the job is restored"),
}
"""By name: the colour, and what it means wherever it is used. A barrier has the colour of writing."""

SERIES = ("#3b82c4", "#e08a1e", "#3f9d63", "#9467bd")
"""For lines that mean nothing but themselves: apart for colour-blind eyes, and on light and dark."""

MORE_SERIES = ("#56b4e9", "#cc79a7", "#8c8c8c", "#bcbd22", "#8c564b", "#17becf")
"""For more than four of them."""

PAGE = {
    "ink": ("#1c2024", "#e6e8eb"),
    "dim": ("#5b6470", "#a2abb5"),
    "paper": ("#ffffff", "#15181c"),
    "line": ("#d9dde2", "#343a41"),
    "soft": ("#f4f6f8", "#1d2126"),
    "good": ("#1a7f4b", "#5fc98f"),
    "bad": ("#b3261e", "#ff8a80"),
}
"""By name: what a page is written in, on light and on dark."""

INK, DIM, PAPER, LINE, GOOD, BAD = (PAGE[name][0] for name in ("ink", "dim", "paper", "line", "good", "bad"))


def css(selector: str = ":root", dark: str = "", light: str = "") -> str:
    """Return all of them as custom properties of CSS, ``--ink`` and ``--in-flight``, that follow the reader's
    preference.

    Parameters
    ----------
    selector : str
        Of what has them.
    dark, light : str
        Of the same on a page that says by itself which it is, such as one of JupyterLab.
    """
    marks = "".join(f"--{name}:{mark[0]};" for name, mark in MARKS.items())
    by_day, by_night = ("".join(f"--{name}:{pair[at]};" for name, pair in PAGE.items()) for at in (0, 1))
    lines = [
        f"{selector}{{color-scheme:light dark;{marks}{by_day}}}",
        f"@media (prefers-color-scheme:dark){{{selector}{{{by_night}}}}}",
    ]
    for its, scheme, colours in ((dark, "dark", by_night), (light, "light", by_day)):
        if its:
            lines.append(f"{its}{{color-scheme:{scheme};{colours}}}")
    return "\n".join(lines)
