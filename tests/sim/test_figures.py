"""The figures that a reader sees were measured last: README, docs, the kept report, picture and JSON agree."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from tests.figures import EXCERPTS, FIGURES, KEPT, PAGES, REPORT, blocks, shown
from tests.measured_picture import PICTURE, dots, picture

ROOT = Path(__file__).parents[2]


def test_pages_show_what_was_measured() -> None:
    """A figure of a page could be older than the others, or typed by hand."""
    figures = json.loads(KEPT.read_text(encoding="utf-8"))["figures"]
    found = {name: lines for page in PAGES for name, lines in blocks(page.read_text(encoding="utf-8")).items()}
    assert found == {name: shown(name, figures) for name in found}
    assert {"demo", *found} == {*FIGURES, *EXCERPTS}  # all of the demo is in its report
    assert len(found["answer"]) == 5


def test_the_picture_is_of_what_was_measured() -> None:
    """The dots of README would be others than the table that it leads to."""
    lines = json.loads(KEPT.read_text(encoding="utf-8"))["figures"]["measured"]["lines"]
    assert PICTURE.read_text(encoding="utf-8") == picture(lines)
    found = list(dots(lines))
    assert sum("✓" in line for line in lines) > 20
    text = "\n".join(line for line in lines if line.startswith("|"))
    zeros = text.count("| 0.000 ✓")  # measured 0 as well
    assert len(found) == text.count("✓") + text.count("✗") - zeros


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_of_its_commands(name: str) -> None:
    """The kept lines would be of other commands than those that are named."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))["figures"][name]
    assert kept["commands"] == [f"barrierlab {' '.join(arguments)}" for arguments in FIGURES[name][0]]
    assert sum(len(re.findall(r"\d", line)) for line in kept["lines"]) > 5


def test_the_kept_report_says_what_readme_says() -> None:
    """The report that README leads to would be of another sweep than the answer beside it."""
    page = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", REPORT.read_text(encoding="utf-8"))).split())
    lines = json.loads(KEPT.read_text(encoding="utf-8"))["figures"]["demo"]["lines"]
    sentences = [line.strip() for line in lines[1:] if line.startswith("  ")]
    assert len(sentences) >= 4
    assert [sentence for sentence in sentences if sentence not in page] == []


def test_no_violation_is_told_of_what_holds() -> None:
    """A figure of a run that broke something would be printed without a word."""
    figures = json.loads(KEPT.read_text(encoding="utf-8"))["figures"]
    assert any(line.startswith("verdict: holds ") for line in figures["check"]["lines"])
    for name in ("demo", "measured", "survive", "joins"):
        assert any("0 violations in " in line for line in figures[name]["lines"]), name
