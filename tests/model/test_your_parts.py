"""The page `docs/your-parts.md` shows what there is, and what comes out."""

from __future__ import annotations

import inspect
import re
from itertools import pairwise
from pathlib import Path

import pytest

import docs.parts.coordinator
import docs.parts.source
import docs.parts.store
import docs.parts.writer
from barrierlab.model.checkpoint import interfaces
from barrierlab.model.checkpoint.capabilities import EXTENT
from barrierlab.model.checkpoint.external_parts import ROLES, External
from barrierlab.model.storage.scopes import WORLDS as STORES
from barrierlab.sim.check.report import summary
from barrierlab.sim.check.runner import check_one, plan
from tests.model.test_external_coordinators import WORLDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your-parts.md").read_text(encoding="utf-8")
BLOCKS: dict[str, list[str]] = {}
for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
    BLOCKS.setdefault(language, []).append(block)
COMMAND, VERDICT, *RUNS = BLOCKS[""]
SCOPES = WORLDS | {each.name: each for each in STORES}
SHOWN = {
    docs.parts.coordinator.Planted: "aligned: a->s; events 1, checkpoints 1; closed input",
    docs.parts.writer.Planted: "aligned: a->s; events 1, checkpoints 1; crash",
    docs.parts.source.Planted: "aligned: a->s; events 1, checkpoints 1; no fault",
    docs.parts.store.Planted: "store: a killed process, then a crash",
}
SHAPES = [
    *(interfaces.Coordinator, interfaces.TwoPhaseWriter, interfaces.AtLeastOnceWriter, interfaces.IdempotentWriter),
    *(interfaces.Source, interfaces.CheckpointStore, interfaces.ExternalSystem, interfaces.SourcePort),
]


@pytest.mark.parametrize(("at", "kind"), list(enumerate(SHOWN)), ids=[kind.__module__ for kind in SHOWN])
def test_the_bug_and_its_run_are_what_the_page_shows(at: int, kind: type) -> None:
    """A reader would learn from a run that never comes out."""
    scope = SCOPES[SHOWN[kind]]
    (violation,) = scope.check(External.of([kind]).parts(scope.protocol), None).violations
    assert RUNS[at] == violation.trace
    assert BLOCKS["python"][at] == inspect.getsource(kind).rstrip("\n") + "\n"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_page_names_every_method(shape: type) -> None:
    """A team would learn from an error what it must have."""
    names = [name for name in vars(shape) if not name.startswith("_") and callable(getattr(shape, name))]
    assert 3 <= len(names) <= 8
    assert [name for name in names if f"`{name}(" not in PAGE] == []


def test_the_page_names_every_role() -> None:
    """A class could not say what it is."""
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \| \[", PAGE, re.MULTILINE) == list(ROLES)
    assert {shape.role for shape in SHAPES if hasattr(shape, "role")} == set(ROLES) - {"aligner"}


def test_the_command_of_the_page_is_one() -> None:
    """The first thing that a reader tries would fail, or say something else."""
    words = COMMAND.split()
    assert words[:2] == ["barrierlab", "check"]
    chosen = plan(words[-1], (), ",".join(word for before, word in pairwise(words) if before == "--impl"))
    line = summary([check_one(chosen, chosen.names[0])], chosen)
    counts = f"{len(chosen.names)} of {len(chosen.names) + len(chosen.not_asked)} scopes"
    assert f"verdict: holds for {counts} (" in VERDICT
    assert f"not asked: size ({EXTENT['size']})" in line
    assert VERDICT.split("; not asked: ")[1].strip() == line.split("; not asked: ")[1]


def test_every_file_that_the_page_names_is_there() -> None:
    """A link would lead nowhere."""
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert len(links) >= 6
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []
