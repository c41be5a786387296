"""The page that lays the document beside the code names only what there is, and leaves nothing out."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from barrierlab.model.control.table import CONTROL

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "control-signals.md").read_text(encoding="utf-8")
SECTIONS = {text.partition("\n")[0]: text.splitlines() for text in PAGE.split("\n## ")}


def rows_of(section: str) -> list[list[str]]:
    """The cells of the table in a section."""
    lines = [line for line in SECTIONS[section] if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


ROWS = rows_of("Sentence by sentence")
SENTENCES = ROWS[2:]


def resolved(name: str) -> object:
    """The object at a dotted name."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(["barrierlab", *parts[:count]]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AttributeError(name)


def functions_of(name: str) -> set[str]:
    """The test functions of a file here."""
    tree = ast.parse((Path(__file__).parent / name).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_table_has_its_columns() -> None:
    """A row would be read under the wrong head."""
    assert ROWS[0] == ["section", "sentence", "as it is", "code", "test"]
    assert [row for row in SENTENCES if len(row) != 5] == []
    assert len(SENTENCES) > 30


@pytest.mark.parametrize("row", SENTENCES, ids=lambda row: row[1][:40])
def test_a_sentence_names_code_and_tests_that_there_are(row: list[str]) -> None:
    """A reader would look for what is not there, or a sentence have nothing behind it."""
    code, tests = re.findall(r"`([^`]+)`", row[3]), re.findall(r"`([^`]+)`", row[4])
    assert code
    assert tests
    for name in code:
        assert resolved(name) is not None
    for name in tests:
        file, _, function = name.partition("::")
        assert function in functions_of(file), name


def test_the_rest_of_the_page_names_what_there_is() -> None:
    """A reader would look for a file or a test that is not there."""
    for name in re.findall(r"`(\w+\.py)::(\w+)`", PAGE):
        assert name[1] in functions_of(name[0]), name
    for path in re.findall(r"`((?:model|sim|tests|impl)/[\w/]+(?:\.py|/))`", PAGE):
        assert (ROOT / path).exists(), path


def test_the_table_of_the_protocol_is_the_one_that_is_compared() -> None:
    """A reader would read another protocol than the one that was held against the code."""
    lines = [line for line in SECTIONS["What one carrier of a processor does"] if line.startswith("|")]
    assert lines == list(CONTROL.lines())


def test_every_section_of_the_document_is_there() -> None:
    """A section would be passed over."""
    assert list(dict.fromkeys(row[0] for row in SENTENCES)) == [
        *("Background", "Design Goals", "Signal Model", "Channel Carrier Rule", "`barrier_id` Allocation"),
        *("Barrier Alignment Mechanism", "Processing flow", "Processor Integration", "Terminal Semantics"),
        "Testing Support",
    ]


def test_every_entry_of_the_catalogue_is_met() -> None:
    """A defect would be nobody's sentence."""
    met = set(re.findall(r"S-\d\d", PAGE))
    assert met >= {f"S-{number:02d}" for number in range(1, 13)} | {"S-14"}
    assert "S13_copy_lost" in PAGE  # S-13, which is of the transport


def test_a_name_that_is_not_there_is_missed() -> None:
    """The search above would find anything."""
    with pytest.raises(AttributeError):
        resolved("barrierlab.impl.control.aligner.NoSuchThing")
    assert "test_no_such_thing" not in functions_of("test_aligner.py")
