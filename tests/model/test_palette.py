"""The palette: a colour has one meaning, is in one place, and is seen on light and dark."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from barrierlab.model.render import palette

ROOT = Path(__file__).parents[2]
A_MARK, A_TEXT = 3.0, 4.5
"""The contrasts that WCAG 2.1 asks for: 1.4.11 of graphics, 1.4.3 of text."""


def contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG has it."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG has it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", palette.MARKS)
def test_a_mark_is_seen_on_light_and_dark(name: str) -> None:
    """A reader of a dark notebook, or of a printed page, would miss it."""
    for paper in palette.PAGE["paper"]:
        assert contrast(palette.MARKS[name][0], paper) >= (A_MARK if name != "stored" else 2.5)


@pytest.mark.parametrize("name", ["ink", "dim", "good", "bad"])
def test_what_is_written_can_be_read(name: str) -> None:
    """A verdict would be too pale to read."""
    for colour, paper in zip(palette.PAGE[name], palette.PAGE["paper"], strict=True):
        assert contrast(colour, paper) >= A_TEXT


def test_no_two_meanings_share_a_colour() -> None:
    """A colour in one picture would say something else in the next."""
    colours = [colour for colour, _ in palette.MARKS.values()]
    assert all(one != other for one, other in combinations(colours, 2))


def test_colours_stand_in_one_place() -> None:
    """A picture would go its own way, and its colours mean what no legend says."""
    colour = re.compile(r'"#[0-9a-fA-F]{6}"')
    found = [
        f"{path.relative_to(ROOT)}: {match}"
        for package in ("model", "sim")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name != "palette.py"
        for match in colour.findall(path.read_text(encoding="utf-8"))
    ]
    assert found == ['sim/sweep/figures.py: "#010203"'], "that one stands for the ink of the page"


def test_notebooks_draw_in_these_colours() -> None:
    """A wait of a barrier would have another colour in a notebook than in the report and in the explorable run."""
    known = {colour for colour, _ in palette.MARKS.values()} | {*palette.SERIES, *palette.MORE_SERIES}
    found = {
        f"{path.name}: {match}"
        for path in sorted((ROOT / "notebooks").glob("*.py"))
        for match in re.findall(r"#[0-9a-fA-F]{6}\b", path.read_text(encoding="utf-8"))
        if match not in known
    }
    assert not found


def test_a_page_has_every_colour_for_light_and_dark() -> None:
    """A picture inside of it would fall back to black, on black."""
    text = palette.css(".run", ".dark .run", ".light .run")
    for name in palette.PAGE:
        assert text.count(f"--{name}:") == 4
    for name in palette.MARKS:
        assert text.count(f"--{name}:") == 1
