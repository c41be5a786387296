"""The defects of joins: each breaks what it says on its witness, and the sound code does not, on the same one."""

from __future__ import annotations

from typing import Any

import pytest

from barrierlab.impl.join import JoinStage, Miss, SequenceJoinBarrier, Skipped, SkipReason
from barrierlab.model.defects.catalogue import id_of, modules
from barrierlab.model.defects.join import J21_overrun_tries_every_output
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect
from barrierlab.model.defects.listed import NOT_RUN
from barrierlab.model.join.history import text
from barrierlab.model.join.invariants import JOIN_INVARIANTS, judge_join

KINDS = {"safety", "liveness", "timing", "value", "contradiction"}


MODULES = dict(modules())


def found() -> list[tuple[str, JoinDefect]]:
    """Every defect of joins, by the name of its module."""
    return [(name, module.DEFECT) for name, module in MODULES.items() if isinstance(module.DEFECT, JoinDefect)]


DEFECTS = found()
EACH = pytest.mark.parametrize(("name", "defect"), DEFECTS, ids=[name for name, _ in DEFECTS])


def shown(defect: JoinDefect, components: JoinComponents) -> Any:
    """Return what the witness shows: the broken invariants, or the value."""
    result = defect.witness(components)
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
    result = shown(defect, JoinComponents())
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
    page = MODULES[name].__doc__ or ""
    for head in ("\nSource\n", "\nWhat goes wrong\n", "\nRepair\n"):
        assert head in page
    assert defect.kind in KINDS
    changed = [
        field
        for field in JoinComponents.__dataclass_fields__
        if getattr(defect.changed, field) != getattr(JoinComponents(), field)
    ]
    assert 1 <= len(changed) <= 2


class ToTheOldest(JoinStage):
    """After a failed attempt it goes on where the oldest slot is: the next to be overwritten."""

    def _skip(self, out: int, misses: tuple[tuple[int, Miss], ...]) -> Skipped:
        assert isinstance(self.barrier, SequenceJoinBarrier)
        last = max(out, self.barrier.after_overrun(self._slots) - 1)
        self.barrier.accept(last)
        return Skipped(out, last, SkipReason.FAILED, misses)


def test_no_overrun_is_cured_by_the_oldest_slot() -> None:
    """The cure that comes to mind first would be taken for one."""
    assert not J21_overrun_tries_every_output.witness(JoinComponents(stage=ToTheOldest))


def test_every_entry_is_there() -> None:
    """One could be forgotten."""
    entries = {id_of(name) for name, _ in DEFECTS} | {entry for entry in NOT_RUN if entry[0] == "J"}
    assert entries == {f"J-{number:02}" for number in range(1, 28)}
