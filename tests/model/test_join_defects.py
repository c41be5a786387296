"""The defects of joins: each breaks what it says on its witness, and the sound code does not, on the same one."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import pytest

import barrierlab.model.defects
from barrierlab.model.defects.join_kind import JoinDefect, Parts
from barrierlab.model.defects.not_run_j import NOT_RUN
from barrierlab.model.join.history import text
from barrierlab.model.join.invariants import JOIN_INVARIANTS, judge_join

KINDS = {"safety", "liveness", "timing", "value", "contradiction"}


def found() -> list[tuple[str, JoinDefect]]:
    """Every defect of joins, by the name of its module."""
    defects = []
    for module in sorted(m.name for m in pkgutil.iter_modules(barrierlab.model.defects.__path__)):
        names = vars(import_module(f"barrierlab.model.defects.{module}"))
        defects += [(module, value) for name, value in names.items() if isinstance(value, JoinDefect)]
    return defects


DEFECTS = found()
EACH = pytest.mark.parametrize(("name", "defect"), DEFECTS, ids=[name for name, _ in DEFECTS])


def shown(defect: JoinDefect, parts: Parts) -> Any:
    """What the witness shows: the broken invariants, or the value."""
    result = defect.witness(parts)
    if defect.breaks == "value":
        return result
    return {violation.invariant for violation in judge_join(result.entries, result.spec).violations}


@EACH
def test_the_change_breaks_what_it_says(name: str, defect: JoinDefect) -> None:
    """The catalogue would warn of something that does not happen."""
    result = shown(defect, defect.changed)
    if defect.breaks == "value":
        assert result == defect.wrong
    else:
        assert defect.breaks in JOIN_INVARIANTS
        assert defect.breaks in result


@EACH
def test_the_sound_code_holds_on_the_same_run(name: str, defect: JoinDefect) -> None:
    """It would not be the change that breaks it."""
    result = shown(defect, Parts())
    if defect.breaks == "value":
        assert result == defect.right != defect.wrong
    else:
        assert result == set()


@EACH
def test_a_witness_is_short_and_can_be_read(name: str, defect: JoinDefect) -> None:
    """A counterexample that nobody can follow convinces nobody."""
    result = defect.witness(defect.changed)
    if defect.breaks != "value":
        lines = [text(entry) for entry in result.entries]
        assert 1 < len(lines) <= 20
    assert defect.witness.__doc__


@EACH
def test_it_has_its_page(name: str, defect: JoinDefect) -> None:
    """The catalogue page is printed from the docstring."""
    page = import_module(f"barrierlab.model.defects.{name}").__doc__ or ""
    for head in ("\nSource\n", "\nWhat goes wrong\n", "\nRepair\n"):
        assert head in page
    assert defect.kind in KINDS
    changed = [
        field for field in Parts.__dataclass_fields__ if getattr(defect.changed, field) != getattr(Parts(), field)
    ]
    assert 1 <= len(changed) <= 2


def test_every_entry_is_there() -> None:
    """One could be forgotten."""
    entries = {defect.entry for _, defect in DEFECTS} | set(NOT_RUN)
    assert entries == {f"J-{number:02}" for number in range(1, 28)}
