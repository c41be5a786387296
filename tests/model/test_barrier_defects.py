"""The P-, A- and U-entries: each goes wrong as it says, and the sound code does not, in the same scope and run."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import model.defects
from model.defects.barrier_kind import BarrierDefect, Witness
from model.invariants import INVARIANTS, RUN_INVARIANTS
from model.story import replay
from model.trace import TraceError, judged
from tests.kept import keep

FOLDER = Path(model.defects.__file__).parent
ALL = {
    name: found
    for name in sorted(module.name for module in pkgutil.iter_modules(model.defects.__path__))
    if isinstance(
        found := getattr(importlib.import_module(f"model.defects.{name}"), "DEFECT", None), BarrierDefect | Witness
    )
    and found.entry[0] in "PAU"
}
WORLDS = {name: defect for name, defect in ALL.items() if isinstance(defect, BarrierDefect)}
WITNESSES = {name: defect for name, defect in ALL.items() if isinstance(defect, Witness)}
KINDS = {"safety", "liveness", "crash", "bound", "timing", "value", "contradiction"}


def as_the_sound_tell_it(text: str, name: str) -> str | None:
    """None if they cannot make its moves."""
    try:
        return replay(text, name=name)
    except TraceError:
        return None


@pytest.mark.parametrize("name", WORLDS)
def test_a_shortest_run_breaks_what_it_says(name: str, rewrite: bool) -> None:
    """A reader would be told of a failure that does not come, or comes otherwise. The run is kept beside the entry."""
    defect = WORLDS[name]
    found = defect.as_documented()
    assert defect.breaks in found.broken
    keep(FOLDER / f"{name}.trace", found.trace, rewrite)
    if defect.breaks != "RAISED":  # and there is no journal of what a machine does that raises
        assert defect.breaks in {violation.invariant for violation in judged(found.trace).violations}


@pytest.mark.parametrize("name", WORLDS)
def test_the_kept_run_can_be_made_again(name: str) -> None:
    """The kept run would be of other machines than the entry's; or of any, if the sound ones went the same way."""
    text = (FOLDER / f"{name}.trace").read_text(encoding="utf-8")
    assert replay(text, WORLDS[name].parts, name) == text
    assert as_the_sound_tell_it(text, name) != text


@pytest.mark.parametrize("name", WORLDS)
def test_the_sound_code_holds_in_the_same_scope(name: str) -> None:
    """The failure would be one of the scope, and not of what was changed."""
    found = WORLDS[name].sound()
    assert found.broken == frozenset(), found.trace
    assert found.states > 5


@pytest.mark.parametrize("name", WORLDS)
def test_the_sound_code_holds_on_the_same_run(name: str) -> None:
    """Another schedule could be what went wrong."""
    assert WORLDS[name].sound_on_the_same_run() == frozenset()


@pytest.mark.parametrize("name", WITNESSES)
def test_a_few_calls_show_it(name: str) -> None:
    """A reader would be told of an answer that does not come."""
    defect = WITNESSES[name]
    assert defect.broken() == defect.wrong_lines
    assert defect.right() == defect.right_lines
    assert defect.as_documented().broken == {"value"}
    assert defect.sound().broken == frozenset()


@pytest.mark.parametrize("name", ALL)
def test_an_entry_says_source_failure_and_repair(name: str) -> None:
    """The catalogue's page would have a hole."""
    page = importlib.import_module(f"model.defects.{name}").__doc__ or ""
    heads = [line for line in page.splitlines() if line and not line.startswith(" ")][1:]
    assert heads == ["Source", "What goes wrong", "Repair"]
    assert re.search(rf"Entry {ALL[name].entry}\b", page)
    assert ALL[name].kind in KINDS
    assert ALL[name].breaks in {*INVARIANTS, *RUN_INVARIANTS, "RAISED", "value"}
