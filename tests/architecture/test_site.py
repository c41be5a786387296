"""The pages of docs are a site: each is in a table of contents, and each key that is listed has a meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from docs.generated import PARTS, SECTIONS, allowed
from docs.meanings import MEANINGS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {str(path.relative_to(DOCS).with_suffix("")): path for path in DOCS.glob("**/*.md")}
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def listed(page: str) -> Iterator[str]:
    """The pages in the tables of contents of a page, by name."""
    for block in TOCTREE.findall(PAGES[page].read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                parts: list[str] = []
                for part in (PurePosixPath(page).parent / line).parts:
                    parts = parts[:-1] if part == ".." else [*parts, part]
                name = "/".join(parts)
                if name.endswith("*"):
                    yield from sorted(each for each in PAGES if PurePosixPath(each).match(name))
                else:
                    yield name


def test_every_page_is_in_one_table_of_contents() -> None:
    """A reader would not find it, and `make docs` would fail: add its name to the index of a section in docs."""
    found = ["index", *(name for page in PAGES for name in listed(page))]
    assert sorted(found) == sorted(PAGES)


def test_what_is_generated_is_asked_for() -> None:
    """A part of the reference would be printed for nobody."""
    asked = re.findall(r"^```\{generated\} (\w+)\n```$", "\n".join(p.read_text() for p in PAGES.values()), re.MULTILINE)
    assert sorted(asked) == sorted(PARTS)
    for name, part in PARTS.items():
        assert sum(1 for _ in part()) > 50, name


def test_every_key_has_a_meaning() -> None:
    """The page of keys would name one and leave its reader to guess; and none is explained that there is not."""
    assert {name: set(known) for name, (_, known, _) in SECTIONS.items()} == {n: set(m) for n, m in MEANINGS.items()}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_says_what_is_allowed(section: str) -> None:
    """A reader that takes anything would let a typing error run."""
    known = SECTIONS[section][1]
    assert [key for key, reader in known.items() if allowed(reader) == "anything"] == []


def test_the_makefile_builds_it_strictly() -> None:
    """A broken link would be a line that scrolls by."""
    assert "sphinx -q -W --keep-going -n -b html docs out/docs" in (DOCS.parent / "Makefile").read_text()


def test_decisions_are_numbered_one_after_the_other() -> None:
    """A page that cites a decision by its number would mean either of two."""
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert [page.name[:5] for page in pages] == [f"{number:04}-" for number in range(1, len(pages) + 1)]
    for number, page in enumerate(pages, 1):
        assert page.read_text(encoding="utf-8").startswith(f"# {number}. "), page.name
