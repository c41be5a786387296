"""The glossary speaks of the code that there is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.syntax import nodes_of, tree_of

ROOT = Path(__file__).parents[2]
COLUMNS = ["term", "meaning", "where from", "in code", "do not say"]


def rows() -> list[list[str]]:
    """The cells of the glossary's table, head first."""
    lines = [line for line in (ROOT / "GLOSSARY.md").read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


TERMS = {row[0]: re.findall(r"`([^`]+)`", row[3]) for row in rows()[2:]}


@cache
def names_in_code() -> set[str]:
    """Every name that `impl`, `model` and `sim` define or use, every word they pass about as a text, every module."""
    names: set[str] = set()
    for package in ("impl", "model", "sim"):
        for path in ROOT.glob(f"{package}/**/*.py"):
            names.add(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
            for node in nodes_of(path.read_text()):
                for field in ("name", "id", "attr", "arg"):
                    if isinstance(value := getattr(node, field, None), str):
                        names.add(value)
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                    names.add(node.value)
    return names


ALIAS = re.compile(r"_?[A-Z]\w*[a-z]\w*")


def types_of(text: str) -> Iterator[str]:
    """The classes of a module, those within others too, and its aliases of types: names such as `CutAndPaste`."""
    yield from (node.name for node in nodes_of(text) if isinstance(node, ast.ClassDef))
    for node in tree_of(text).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        yield from (
            each.id for each in targets if isinstance(each, ast.Name) and re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", each.id)
        )


def defined_twice(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """By name, the modules that define a type of it where several do."""
    where: dict[str, list[str]] = {}
    for path, text in texts.items():
        for name in sorted(set(types_of(text))):
            where.setdefault(name, []).append(path)
    return {name: paths for name, paths in where.items() if len(paths) > 1}


def test_a_type_has_a_name_of_its_own() -> None:
    """One name would have two meanings, and who reads it would have to look for its import."""
    paths = sorted(path for package in ("impl", "model", "sim") for path in (ROOT / package).rglob("*.py"))
    assert defined_twice({str(path.relative_to(ROOT)): path.read_text() for path in paths}) == {}


def test_a_second_type_of_one_name_is_found() -> None:
    """The search above would find nothing."""
    texts = {
        "a.py": "class Cut: ...\nRow = tuple[int, int]\n",
        "b.py": "class Other:\n    class Cut: ...\nROW = 1\nRow = int\n",
    }
    assert defined_twice(texts) == {"Cut": ["a.py", "b.py"], "Row": ["a.py", "b.py"]}


def test_the_table_has_its_columns() -> None:
    """A row would be read under the wrong head."""
    table = rows()
    assert table[0] == COLUMNS
    assert [row for row in table if len(row) != len(COLUMNS)] == []


def test_a_term_stands_once() -> None:
    """One word would have two meanings."""
    terms = [row[0] for row in rows()[2:]]
    assert [term for term in terms if terms.count(term) > 1] == []


@pytest.mark.parametrize("term", TERMS)
def test_the_code_knows_the_term(term: str) -> None:
    """A reader would look for a name that the code aborted."""
    assert [name for name in TERMS[term] if name not in names_in_code()] == []


def test_a_name_that_is_not_there_is_missed() -> None:
    """The search above would find anything."""
    assert "BarrierAligner" in names_in_code()
    assert "NoSuchThing" not in names_in_code()


FORMER = {
    "Part": "StoredSnapshot",
    "covered_from": "committed_from",
    "told": "a name for what it holds",
    "was_told": "was_called",
    "_told": "a name for what it does",
    "_put_back": "_restore",
    "ghost": "monitor",
    "Happening": "Stimulus",
    "expedite": "prioritise_barrier",
    "last_done": "last_terminated_id",
    "NotRepeatable": "NonDeterministicModel",
}
"""Names that the code had, and what it says in their place."""


def test_no_former_name_is_back() -> None:
    """One thing would have two names, and a reader would look for the difference."""
    assert {name: FORMER[name] for name in FORMER if name in names_in_code()} == {}
