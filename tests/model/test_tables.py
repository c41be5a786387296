"""The tables as such: exactly one row applies, and every small edit of one is noticed.

An edit is a row with one action dropped, two neighbours swapped, or one guard dropped. It is noticed if in some
reachable situation it makes the gate do or be anything else than what the machine of `impl` does and is, or if it
leaves more than one row for a situation. What is not noticed stands in `equivalent_mutations.txt`, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from barrierlab.impl.errors import ClosedInputError, InputIndexError, UnknownMessageError
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, Event
from barrierlab.model.checkpoint.gate_scopes import SCOPES
from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.checkpoint.refinement import Effects, GateMove, GateSteps, Point, Refinement, captured, run
from barrierlab.model.checkpoint.tables.actions import deliver, ignore
from barrierlab.model.checkpoint.tables.aligned import ALIGNED
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.tables.guards import barrier, event
from barrierlab.model.checkpoint.tables.stimuli import (
    Abort,
    Arrival,
    ClockReading,
    Drained,
    Effect,
    Failed,
    Forwarded,
    Overtaking,
    SnapshotComplete,
    Stimulus,
    Taken,
)
from barrierlab.model.explore.checker import explore
from barrierlab.model.explore.table import Row, Table, TableError
from tests.model.mutations import edits

HARMLESS = {
    line.split(" : ")[0].strip(): line.split(" : ")[1].strip()
    for line in Path(__file__).with_name("equivalent_mutations.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}


# Exactly one row.


def test_rows_that_are_used_are_counted() -> None:
    """Nobody could say which situations a run has been in."""
    table = Table(*ALIGNED.rows)
    gate, _ = GateState.new(table, GateRules()).step(Arrival(0, CheckpointBarrier(1, 1)))
    gate.step(Arrival(0, Event("a", 1)))
    gate.step(Arrival(0, Event("a", 1)))
    assert table.used == {"first barrier": 1, "message behind the barrier": 2}
    assert ALIGNED.changed("event", then=()).used == {}


@pytest.mark.parametrize("rows", [(), (Row("a", (event,), ()), Row("b", (), ()))], ids=["none", "two"])
def test_anything_but_one_row_is_an_error(rows: tuple[Row, ...]) -> None:
    """A table could leave open what happens, or say two things."""
    with pytest.raises(TableError, match=r"^arrive 0 a1 at .*: (none|b, a) of the rows apply; allowed: exactly"):
        GateState.new(Table(*rows), GateRules()).step(Arrival(0, Event("a", 1)))


def test_two_rows_of_one_name_are_an_error() -> None:
    """A defect would change one of them and mean the other."""
    with pytest.raises(TableError, match="two rows are called a; allowed: one of each name"):
        Table(Row("a", (event,), ()), Row("a", (barrier,), ()))


def test_a_changed_row_changes_nothing_else() -> None:
    """A defect would be in more than the row that it names."""
    changed = ALIGNED.changed("event", then=(ignore,))
    assert changed.row("event") == Row("event", ALIGNED.row("event").when, (ignore,))
    assert [row for row in changed.rows if row.name != "event"] == [row for row in ALIGNED.rows if row.name != "event"]
    assert ALIGNED.row("event").then == (deliver,)
    assert ALIGNED.changed("event", when=(event,)).row("event") == Row("event", (event,), (deliver,))
    with pytest.raises(TableError, match=r"no row is called 'last'; there are event, .*; name one"):
        ALIGNED.changed("last", then=())


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_table_prints_itself(protocol: str) -> None:
    """The documentation would say something else than the table does."""
    head, rule, *lines = PROTOCOLS[protocol].table.lines()
    assert (head, rule) == ("| situation | when | then |", "| --- | --- | --- |")
    for row, line in zip(PROTOCOLS[protocol].table.rows, lines, strict=True):
        name, when, then = (cell.strip() for cell in line.strip("|").split("|"))
        assert name == row.name
        assert [phrase.replace(" ", "_") for phrase in when.split(", ")] == [each.__name__ for each in row.when]
        names = [each.__name__ for each in row.then]
        assert [phrase.replace(" ", "_") for phrase in then.split(", ")] == (names or ["nothing"])


def test_no_guard_is_tied_to_what_it_is_asked_about() -> None:
    """A row that asks in another order would raise instead of answering."""
    guards = {guard for each in PROTOCOLS.values() for row in each.table.rows for guard in row.when}
    stimuli = {stimulus for scope in SCOPES for stimulus in scope.stimuli}
    stimuli |= {Drained(0, Event("a", 1)), Taken(), Failed(), Forwarded()}
    scope = next(scope for scope in SCOPES if scope.protocol == "aligned_with_timeout")
    aligning, _ = run(
        GateState.new(PROTOCOLS["aligned_with_timeout"].table, scope.rules),
        GateMove(Arrival(0, CheckpointBarrier(1, 1))),
    )
    recording, _ = run(aligning, GateMove(ClockReading(1)))
    assert (aligning.aligning, recording.recording) == (True, True)
    for gate in (aligning, recording):
        for stimulus in stimuli:
            if isinstance(stimulus, Arrival | Overtaking) and stimulus.input_id == 2:
                continue  # of a gate with three inputs
            for guard in guards:
                assert type(guard(gate, stimulus)) is bool, (guard, stimulus)


# What cannot happen.


def test_a_gate_refuses_what_its_channels_cannot_give() -> None:
    """A fault of a driver would look like one of the protocol."""
    gate = GateState.new(ALIGNED, GateRules())
    for input_id in (-1, 2):
        with pytest.raises(InputIndexError):
            gate.step(Arrival(input_id, Event("a", 1)))
    with pytest.raises(UnknownMessageError):
        gate.step(Arrival(0, "no message"))  # type: ignore[arg-type]
    with pytest.raises(UnknownMessageError):
        gate.step(Overtaking(0, Event("a", 1)))  # type: ignore[arg-type]
    ended, _ = gate.step(Arrival(0, EndOfInput()))
    waiting, _ = gate.step(Arrival(0, CheckpointBarrier(1, 1)))
    holding, _ = waiting.step(Arrival(0, EndOfInput()))
    for each in (ended, holding):
        with pytest.raises(ClosedInputError):
            each.step(Arrival(0, Event("a", 1)))


def test_an_image_that_is_asked_for_is_answered_first() -> None:
    """The image would hold what came after the barriers."""
    gate, (*_, asked) = GateState.new(ALIGNED, GateRules(1)).step(Arrival(0, CheckpointBarrier(1, 1)))
    assert str(asked) == "snapshot barrier 1"
    with pytest.raises(TableError, match="while the image is taken; allowed: the answer to that"):
        gate.step(Arrival(0, Event("a", 1)))
    gate, effects = gate.step(Taken())
    assert [str(effect) for effect in effects] == ["forward barrier 1", "complete 1", "resume 1"]
    for answer in (Taken(), Forwarded()):
        with pytest.raises(TableError, match="none of the rows apply"):
            gate.step(answer)


def test_a_step_leaves_the_gate_as_it_was() -> None:
    """A user who explores would go back to a gate that is not the same any more."""
    gate = GateState.new(ALIGNED, GateRules())
    before = repr(gate)
    gate.step(Arrival(0, CheckpointBarrier(1, 1)))[0].step(Abort(3))
    assert repr(gate) == before


def test_effects_read_as_lines() -> None:
    """A difference would print as tuples."""
    part = SnapshotComplete(CheckpointBarrier(1, 1), False, False, ())
    effects = [Effect("buffer", 0, Event("a", 1)), Effect("complete", -1, part), Effect("decline", -1, (2, "expired"))]
    assert [str(effect) for effect in effects] == ["buffer 0 a1", "complete 1", "decline 2 expired"]


# Every edit is noticed.


class Watched(Table):
    """A table that tells which of its rows applied, and where."""

    def __init__(self, table: Table) -> None:
        super().__init__(*table.rows)
        self.looked_up: list[tuple[GateState, Stimulus, str]] = []

    def row_for(self, gate: GateState, stimulus: Stimulus) -> Row:
        """The row, told."""
        row = super().row_for(gate, stimulus)
        self.looked_up.append((gate, stimulus, row.name))
        return row


class Noticing(Refinement):
    """A table's gate without a machine; each move is made under the edits that have not been noticed so far.

    An edit that shows is struck off: one of actions, by row and name, or one of guards, by name.
    """

    def notice(self, table: Watched, actions: dict[str, dict[str, Table]], guards: dict[str, tuple[str, Row]]) -> None:
        """Notice these."""
        self.watched, self.actions, self.guards = table, actions, guards

    def moves(self, point: Point) -> list[GateMove]:
        """All that may happen."""
        moves = super().moves(point)
        self.watched.looked_up.clear()
        return moves

    def after(self, point: Point, move: GateMove) -> Point:
        """The table's next gate."""
        assert isinstance(point, GateState)
        after, effects = run(point, move)
        looked_up = self.watched.looked_up
        for name in dict.fromkeys(name for _, _, name in looked_up):
            edited = self.actions.get(name, {})
            for edit in [edit for edit, table in edited.items() if shows(table, point, move, after, effects)]:
                del edited[edit]
        for gate, stimulus, name in looked_up:
            for edit, (of, row) in list(self.guards.items()):
                if of != name and all(guard(gate, stimulus) for guard in row.when):
                    del self.guards[edit]
        looked_up.clear()
        return after


def shows(table: Table, gate: GateState, move: GateMove, after: GateState, effects: Effects) -> bool:
    """Return whether a move comes out otherwise under this table, as far as a machine would have to show it."""
    try:
        otherwise, others = run(replace(gate, table=table), move)
    except (AssertionError, TableError, IndexError, RecursionError):
        return True
    return effects != others or (after != otherwise and captured(after) != captured(otherwise))


def unnoticed(protocol: str) -> Iterator[str]:
    """The edits of a table that show in no reachable situation of any scope."""
    sound = PROTOCOLS[protocol].table
    actions: dict[str, dict[str, Table]] = {}
    guards: dict[str, tuple[str, Row]] = {}
    for edit, name, edited in edits(sound):
        if edited.row(name).when == sound.row(name).when:
            actions.setdefault(name, {})[edit] = edited
        else:
            guards[edit] = name, edited.row(name)
    for scope in SCOPES:
        if scope.protocol == protocol:
            table = Watched(sound)
            noticing = Noticing(GateState.new(table, scope.rules), GateSteps(scope.stimuli, scope.answers))
            noticing.notice(table, actions, guards)
            explore(noticing)
    yield from guards
    for left in actions.values():
        yield from left


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_edit_is_noticed_or_listed_as_harmless(protocol: str) -> None:
    """A row could be wrong in a way that no comparison shows; or the list could claim what is not so any more."""
    found = {f"{protocol}: {edit}" for edit in unnoticed(protocol)}
    listed = {edit for edit in HARMLESS if edit.startswith(f"{protocol}: ")}
    assert sorted(found - listed) == []
    assert sorted(listed - found) == []


def test_harmless_edits_have_reasons() -> None:
    """A claim would have nothing behind it."""
    assert len(HARMLESS) > 10
    assert [name for name, reason in HARMLESS.items() if len(reason.split()) < 4] == []
    assert {name.split(": ")[0] for name in HARMLESS} <= set(PROTOCOLS)
