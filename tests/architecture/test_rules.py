"""Rules that are cited stand in docs/protocol.md, and the runs that it names are those of the catalogue."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/protocol.md").read_text(encoding="utf-8")
CITED = re.compile(r"\b[Rr]ules? (\d+(?:(?:, | and | or | to |, and )\d+)*)")
FLINK = re.compile(r"\bR(\d+)\b")
ENTRY = re.compile(r"([A-Z]-\d\d) \(([^)]*)\)")


def sections() -> dict[str, str]:
    """The text of each rule, by its heading."""
    found = re.split(r"^### (.*)$", PAGE, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def citations() -> list[tuple[str, str]]:
    """Every rule that is cited anywhere: the heading under which it should stand, and where it is cited."""
    found = []
    for folder in ("impl", "model", "sim", "tests", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".py", ".md", ".trace", ".toml") or path == Path(__file__):
                continue
            where, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
            numbers = [n for match in CITED.finditer(text) for n in re.findall(r"\d+", match[1])]
            found += [(f"Rule {number}", where) for number in numbers]
            if folder != "tests":  # where it may be a number of a run or a resistor
                found += [(f"Flink R{match[1]}", where) for match in FLINK.finditer(text)]
    return found


def test_every_rule_that_is_cited_stands_on_the_page() -> None:
    """A reader would look for a rule that is nowhere in the repository."""
    known = sections()
    cited = citations()
    assert len({heading for heading, _ in cited}) > 30
    assert [(heading, where) for heading, where in cited if heading not in known] == []


def test_the_rules_are_numbered_without_a_gap() -> None:
    """A number would mean another rule than the one that was meant when it was cited."""
    numbers = [int(heading.removeprefix("Rule ")) for heading in sections() if heading.startswith("Rule ")]
    assert numbers == list(range(1, 34))


@pytest.mark.parametrize("heading", [heading for heading in sections() if heading.startswith("Rule ")])
def test_a_rule_says_why_and_what_happens_without_it(heading: str) -> None:
    """Nobody could tell whether a rule is needed."""
    assert re.search(r"^Why: \w.*\.$", sections()[heading], re.MULTILINE | re.DOTALL)
    assert re.search(r"^Without it: \w.*\.$", sections()[heading], re.MULTILINE | re.DOTALL)


def test_the_runs_without_a_rule_are_those_of_the_catalogue() -> None:
    """The page would tell of runs of another length, or of entries that are none."""
    catalogue: dict[str, list[str]] = defaultdict(list)
    for line in (ROOT / "docs/defects.md").read_text(encoding="utf-8").splitlines():
        if row := re.match(r"\| ([A-Z]-\d\d) [^|]+ \| ([^|]+) \| (\d+) \|", line):
            catalogue[row[1]].append(f"{row[2].strip()} in {row[3]}")
    told = [(entry, " ".join(words.split())) for text in sections().values() for entry, words in ENTRY.findall(text)]
    assert len({entry for entry, _ in told}) > 80
    assert [
        (entry, words)
        for entry, words in told
        if words != (", ".join(catalogue[entry]) if catalogue[entry] else "listed")
    ] == []
