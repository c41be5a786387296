"""The S-entries: each goes wrong as it says, and the sound code does not, in the same scope and on the same run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barrierlab.model.control.invariants import NAMES, judge
from barrierlab.model.control.world import ControlWorld, as_text
from barrierlab.model.defects.catalogue import id_of, modules
from barrierlab.model.defects.kinds.control import ControlDefect
from barrierlab.model.defects.kinds.witness import Witness
from barrierlab.model.defects.listed import NOT_RUN
from tests.control.support import explore
from tests.kept import keep

MODULES = dict(modules())
ALL = {
    name: module.DEFECT
    for name, module in MODULES.items()
    if isinstance(module.DEFECT, ControlDefect | Witness) and name[0] == "S"
}
WORLDS = {name: defect for name, defect in ALL.items() if isinstance(defect, ControlDefect)}
WITNESSES = {name: defect for name, defect in ALL.items() if isinstance(defect, Witness)}


def on_the_same_run(world: ControlWorld, moves: list[str]) -> set[str]:
    """The invariants that are broken after those of `moves` that are possible, and on from there to rest."""
    state = world.start()
    for move in moves:
        if move in world.moves(state):
            state = world.after(state, move)
    while enabled_fair_moves := [move for move in world.moves(state) if move.startswith("deliver")]:
        state = world.after(state, enabled_fair_moves[0])
    return {violation.invariant for violation in (*world.violations(state), *world.quiescent(state))}


@pytest.mark.parametrize("name", WORLDS)
def test_a_shortest_run_breaks_what_it_says(name: str) -> None:
    """A reader would hear of a failure that does not come, or comes otherwise. The run is kept beside the entry."""
    defect = WORLDS[name]
    world = ControlWorld(defect.broken)
    found = explore(world)
    assert found.invariants == {defect.breaks}
    entries = world.journal(found.moves)
    text = as_text(entries) + "".join(f"! {violation}\n" for violation in found.violations)
    assert text == Path(str(MODULES[name].__file__)).with_suffix(".trace").read_text(encoding="utf-8")
    quiescent = not world.moves(found.state)
    assert set(found.violations) <= set(judge(entries, defect.broken.wiring, cut_off=not quiescent).violations)


@pytest.mark.parametrize("name", WORLDS)
def test_the_sound_code_holds_in_the_same_scope(name: str) -> None:
    """The failure would be one of the scope, and not of what was changed."""
    defect = WORLDS[name]
    found = explore(ControlWorld(defect.bounds))
    if defect.excuses:  # and then it is one of the transport: the processor says what it was sent
        assert found.invariants <= set(defect.excuses)
        assert "failed: duplicate barrier" in found.violations[0].reason
    else:
        assert found.violations == ()
        assert found.states > 5


@pytest.mark.parametrize("name", WORLDS)
def test_the_sound_code_holds_on_the_same_run(name: str) -> None:
    """Another schedule could be what went wrong."""
    defect = WORLDS[name]
    moves = explore(ControlWorld(defect.broken)).moves
    assert on_the_same_run(ControlWorld(defect.bounds), moves) <= set(defect.excuses)
    assert defect.breaks in on_the_same_run(ControlWorld(defect.broken), moves)


@pytest.mark.parametrize("name", WITNESSES)
def test_a_few_calls_show_it(name: str, rewrite: bool) -> None:
    """A reader would hear of an answer that does not come. What comes of the calls is kept beside the entry."""
    defect = WITNESSES[name]
    keep(Path(str(MODULES[name].__file__)).with_suffix(".txt"), defect.as_documented().trace, rewrite)
    assert defect.right() == defect.right_lines
    assert defect.as_documented().broken == {"value"}


@pytest.mark.parametrize("name", ALL)
def test_an_entry_says_source_failure_and_repair(name: str) -> None:
    """The catalogue's page would have a hole."""
    module = MODULES[name]
    lines = (module.__doc__ or "").splitlines()
    assert [line for line in lines if line and not line.startswith(" ")][1:] == ["Source", "What goes wrong", "Repair"]
    assert f"Entry {id_of(name)}." in module.__doc__
    assert ALL[name].kind in ("safety", "liveness", "contradiction", "value")


def test_every_entry_is_there() -> None:
    """An entry would be forgotten, or run under a reason why it cannot be."""
    entries = {*map(id_of, ALL)}
    listed = {entry for entry in NOT_RUN if entry[0] == "S"}
    assert entries | listed == {f"S-{number:02d}" for number in range(1, 15)}
    assert not entries & listed
    assert {defect.breaks for defect in WORLDS.values()} <= set(NAMES)
    assert all(re.search(r"\.$", reason) for reason in NOT_RUN.values())
