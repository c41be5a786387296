"""The page on joins speaks of code and tests that there are."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "join.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]
SENTENCES = [row for row in ROWS if len(row) == 4 and row[0] not in ("section", "---")]
EXAMPLES = [row for row in ROWS if len(row) == 3 and row[0].startswith("A.")]


def names(cell: str) -> list[str]:
    """Return what stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def functions_in(file: str) -> set[str]:
    """The tests in a file."""
    tree = ast.parse((Path(__file__).parent / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", SENTENCES, ids=lambda row: f"{row[0]} {row[1][:40]}")
def test_a_sentence_has_code_and_a_test(row: list[str]) -> None:
    """A reader would look for what was renamed, or never was."""
    code, tests = names(row[2]), names(row[3])
    assert code
    assert tests
    for name in code:
        module, _, path = name.partition(".")
        found: object = import_module(f"barrierlab.impl.join.{module}")
        for part in path.split("."):
            found = getattr(found, part)
    for name in tests:
        file, _, test = name.partition("::")
        assert test in functions_in(file), name


def test_every_test_that_is_named_exists() -> None:
    """As above, for the rest of the page."""
    for name in re.findall(r"`(test_\w+\.py::\w+)`", PAGE):
        file, _, test = name.partition("::")
        assert test in functions_in(file), name


def test_all_examples_are_there() -> None:
    """An example of the appendix could be forgotten."""
    expected = [f"A.3.{n}" for n in range(1, 5)] + [f"A.4.{n}" for n in range(1, 7)] + [f"A.5.{n}" for n in range(1, 4)]
    assert [row[0] for row in EXAMPLES] == expected
    assert {test.partition("::")[2] for row in EXAMPLES for test in names(row[2])} == {
        name for name in functions_in("test_examples.py") if name.startswith("test_a_")
    }


def test_all_sections_with_a_must_are_there() -> None:
    """A section could be forgotten. These have a MUST or a SHOULD (9.2 and 9.3 among them)."""
    sections = {section for row in SENTENCES for section in row[0].split(", ")}
    assert sections == {
        *("4", "5", "6.2", "6.2.1", "6.2.2", "6.3", "6.3.1", "6.3.2", "6.4", "7.1", "7.2", "7.3", "7.4"),
        *("8.1", "8.2", "8.3", "8.4", "9.1", "9.2", "9.3", "10.1", "10.3", "10.4", "10.5", "14"),
    }
    assert len(SENTENCES) > 45
