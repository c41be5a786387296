"""The P-, A- and U-entries: each goes wrong as it says, and the sound code does not, in the same scope and run."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from barrierlab.model.checkpoint.scripted import replay
from barrierlab.model.checkpoint.trace import TraceError, judged
from barrierlab.model.defects.barrier.P01_command_between_load_and_store import (
    COMMANDS,
    POLLS,
    CommandMailbox,
    LoadThenStore,
    lost,
)
from barrierlab.model.defects.catalogue import id_of, modules
from barrierlab.model.defects.kinds.barrier import BarrierDefect, SystemDefect
from barrierlab.model.defects.kinds.witness import Witness
from barrierlab.model.defects.listed import NOT_RUN
from barrierlab.model.spec.invariants import INVARIANTS, RUN_INVARIANTS
from tests.kept import keep

MODULES = dict(modules())
CATALOGUE = {"P": 17, "A": 23, "U": 22, "X": 10}
"""The number of entries of each letter."""
LISTED = {letter: {entry: why for entry, why in NOT_RUN.items() if entry[0] == letter} for letter in CATALOGUE}
"""Those that nothing is run for, with the reason."""
ALL = {
    name: module.DEFECT
    for name, module in MODULES.items()
    if isinstance(module.DEFECT, BarrierDefect | SystemDefect | Witness) and name[0] in "PAU"
}
WORLDS = {name: defect for name, defect in ALL.items() if isinstance(defect, BarrierDefect)}
SYSTEMS = {name: defect for name, defect in ALL.items() if isinstance(defect, SystemDefect)}
WITNESSES = {name: defect for name, defect in ALL.items() if isinstance(defect, Witness)}
KINDS = {"safety", "liveness", "crash", "bound", "timing", "value", "contradiction"}


def kept_run(name: str) -> Path:
    """The run that stands beside the entry."""
    return Path(str(MODULES[name].__file__)).with_suffix(".trace")


def as_the_sound_tell_it(text: str, name: str) -> str | None:
    """None if they cannot make its moves."""
    try:
        return replay(text, name=name)
    except TraceError:
        return None


@pytest.mark.parametrize("name", WORLDS)
def test_a_shortest_run_breaks_what_it_says(name: str, rewrite: bool) -> None:
    """A reader would hear of a failure that does not come, or comes otherwise. The run is kept beside the entry."""
    defect = WORLDS[name]
    found = defect.as_documented()
    assert defect.breaks in found.broken
    keep(kept_run(name), found.trace, rewrite)
    if defect.breaks != "RAISED":  # and there is no journal of what a machine does that raises
        assert defect.breaks in {violation.invariant for violation in judged(found.trace).violations}


@pytest.mark.parametrize("name", WORLDS)
def test_the_kept_run_can_be_made_again(name: str) -> None:
    """The kept run would be of other machines than the entry's; or of any, if the sound ones went the same way."""
    text = kept_run(name).read_text(encoding="utf-8")
    assert replay(text, WORLDS[name].components, name) == text
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


@pytest.mark.parametrize("name", SYSTEMS)
def test_finer_steps_show_it(name: str) -> None:
    """A reader would hear of a failure that does not come, or that comes with the sound machine too."""
    found, sound = SYSTEMS[name].as_documented(), SYSTEMS[name].sound()
    assert found.broken == {SYSTEMS[name].breaks}
    assert found.trace == kept_run(name).read_text(encoding="utf-8")
    assert sound.broken == frozenset(), sound.trace
    assert sound.states > 5


def test_seven_of_forty_five_orders_lose_a_command() -> None:
    """A test with two threads would seldom see what the exploration does: the two steps of a poll look like one."""
    slots = 2 * POLLS + len(COMMANDS)
    orders = [_in_order(set(injected), slots) for injected in combinations(range(slots), len(COMMANDS))]
    assert len(orders) == 45
    assert sum(lost(end) is not None for end in orders) == 7


def _in_order(injected: set[int], slots: int) -> CommandMailbox:
    """Four polls of two steps each, the second of which does nothing if nothing was loaded; and where injects come."""
    system, state, commands, steps = LoadThenStore(), CommandMailbox(), iter(COMMANDS), iter(("load", "store") * POLLS)
    for slot in range(slots):
        move = f"inject {next(commands)}" if slot in injected else next(steps)
        if move != "store" or state.loaded:
            state = system.after(state, move)
    return state


@pytest.mark.parametrize("name", WITNESSES)
def test_a_few_calls_show_it(name: str, rewrite: bool) -> None:
    """A reader would hear of an answer that does not come. What comes of the calls is kept beside the entry."""
    defect = WITNESSES[name]
    keep(kept_run(name).with_suffix(".txt"), defect.as_documented().trace, rewrite)
    assert defect.right() == defect.right_lines
    assert defect.as_documented().broken == {"value"}
    assert defect.sound().broken == frozenset()


@pytest.mark.parametrize("name", ALL)
def test_an_entry_says_source_failure_and_repair(name: str) -> None:
    """The catalogue's page would have a hole."""
    page = MODULES[name].__doc__ or ""
    heads = [line for line in page.splitlines() if line and not line.startswith(" ")][1:]
    assert heads == ["Source", "What goes wrong", "Repair"]
    assert re.search(rf"Entry {id_of(name)}\b", page)
    assert ALL[name].kind in KINDS
    assert ALL[name].breaks in {*INVARIANTS, *RUN_INVARIANTS, "RAISED", "value"}


@pytest.mark.parametrize("letter", LISTED)
def test_every_entry_is_run_or_listed(letter: str) -> None:
    """A defect of the catalogue would be forgotten, or run and said not to be."""
    run = {id_of(name) for name in ALL if name[0] == letter}
    assert not run & LISTED[letter].keys()
    assert run | LISTED[letter].keys() == {f"{letter}-{n:02}" for n in range(1, CATALOGUE[letter] + 1)}


def test_a_contradiction_says_which_entry_shows_the_other_reading() -> None:
    """The catalogue would call a reading wrong and show nobody why."""
    for entry, reading in LISTED["X"].items():
        shown_by = re.findall(r"\b([PAU])-(\d\d)\b", reading)
        assert shown_by or "S-" in reading, entry
        assert all(int(number) <= CATALOGUE[letter] for letter, number in shown_by), entry


def test_a_trace_stands_beside_its_entry() -> None:
    """A run would be kept that nothing makes any more."""
    folders = {Path(str(module.__file__)).parent for module in MODULES.values()}
    assert {path.stem for folder in folders for path in folder.glob("*.t[rx]*")} <= set(MODULES)
