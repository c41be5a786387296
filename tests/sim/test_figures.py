"""The figures that a reader sees are those that were measured last: README, the kept report and the kept JSON agree."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from tests.figures import FIGURES, KEPT, README, REPORT, blocks

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", FIGURES)
def test_readme_shows_what_was_measured(name: str) -> None:
    """A figure of README could be older than the others, or typed by hand."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))["figures"][name]
    assert blocks(README.read_text(encoding="utf-8"))[name] == kept["lines"]
    assert kept["commands"] == [f"barrierlab {' '.join(arguments)}" for arguments in FIGURES[name][0]]
    assert sum(len(re.findall(r"\d", line)) for line in kept["lines"]) > 5


def test_the_kept_report_says_what_readme_says() -> None:
    """The report that README shows would be of another sweep than the answer beside it."""
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
