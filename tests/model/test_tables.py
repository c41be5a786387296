"""The tables as such: exactly one row applies, and every row is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import pytest

from impl.errors import ClosedInputError, InputIndexError, UnknownMessageError
from impl.messages import CheckpointBarrier, EndOfInput, Event
from model.explore import explore
from model.refine import Effects, Move, Point, Refinement, run
from model.tables import ALIGNED, Gate, Row, Rules, Table, TableError
from model.tables.actions import deliver, ignore
from model.tables.guards import barrier, event
from model.tables.happenings import Abort, Arrival, Effect, Forwarded, Happening, Overtaking, Part, Taken
from tests.model.gate_scopes import SCOPES, TABLES


class Watched(Table):
    """A table that notes which of its rows applied, and where, as long as somebody listens."""

    def __init__(self, table: Table) -> None:
        super().__init__(*table.rows)
        self.looked_up: list[tuple[Gate, Happening, str]] | None = None

    def row_for(self, gate: Gate, happening: Happening) -> Row:
        """The row, noted."""
        row = super().row_for(gate, happening)
        if self.looked_up is not None:
            self.looked_up.append((gate, happening, row.name))
        return row


@dataclass
class Seen:
    """What can be seen of a table in its scopes: by the rows that they use, moves; and by the row, situations."""

    moves: dict[str, list[tuple[Gate, Move, Gate, Effects]]] = field(default_factory=dict)
    situations: dict[str, list[tuple[Gate, Happening]]] = field(default_factory=dict)


class Listening(Refinement):
    """A table's gate without a machine; where its rows applied is noted."""

    def listen(self, table: Watched, found: Seen) -> Listening:
        """Note it there."""
        self.watched, self.found = table, found
        return self

    def after(self, point: Point, move: Move) -> Point:
        """The table's next gate."""
        assert isinstance(point, Gate)
        self.watched.looked_up = looked_up = []
        after, effects = run(point, move)
        self.watched.looked_up = None
        for gate, happening, name in looked_up:
            self.found.situations.setdefault(name, []).append((gate, happening))
        for name in sorted({name for _, _, name in looked_up}):
            self.found.moves.setdefault(name, []).append((point, move, after, effects))
        return after


@cache
def seen(protocol: str, slow: bool = False) -> Seen:
    """Every reachable move, and every reachable situation, of the scopes."""
    found = Seen()
    for scope in SCOPES:
        if scope.protocol == protocol and slow >= scope.slow:
            table = Watched(TABLES[protocol])
            explore(Listening(table, scope.rules, scope.happenings, scope.answers).listen(table, found))
    return found


# Exactly one row, and every row.


@pytest.mark.parametrize("protocol", TABLES)
@pytest.mark.slow
def test_every_row_is_used(protocol: str) -> None:
    """A row would stand there for a situation that cannot come about, and nobody would know whether it is right."""
    assert {row.name for row in TABLES[protocol].rows} - set(seen(protocol).situations) == set()


def test_rows_that_are_used_are_counted() -> None:
    """Nobody could say which situations a run has been in."""
    table = Table(*ALIGNED.rows)
    gate, _ = Gate.new(table, Rules()).step(Arrival(0, CheckpointBarrier(1, 1)))
    gate.step(Arrival(0, Event("a", 1)))
    gate.step(Arrival(0, Event("a", 1)))
    assert table.used == {"first barrier": 1, "message behind the barrier": 2}
    assert ALIGNED.changed("event", then=()).used == {}


@pytest.mark.parametrize("rows", [(), (Row("a", (event,), ()), Row("b", (), ()))], ids=["none", "two"])
def test_anything_but_one_row_is_an_error(rows: tuple[Row, ...]) -> None:
    """A table could leave open what happens, or say two things."""
    with pytest.raises(TableError, match=r"^arrive 0 a1 at .*: (none|b, a) of the rows apply; allowed: exactly"):
        Gate.new(Table(*rows), Rules()).step(Arrival(0, Event("a", 1)))


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


@pytest.mark.parametrize("protocol", TABLES)
def test_a_table_prints_itself(protocol: str) -> None:
    """The documentation would say something else than the table does."""
    head, rule, *lines = TABLES[protocol].lines()
    assert (head, rule) == ("| situation | when | then |", "| --- | --- | --- |")
    for row, line in zip(TABLES[protocol].rows, lines, strict=True):
        name, when, then = (cell.strip() for cell in line.strip("|").split("|"))
        assert name == row.name
        assert [phrase.replace(" ", "_") for phrase in when.split(", ")] == [each.__name__ for each in row.when]
        names = [each.__name__ for each in row.then]
        assert [phrase.replace(" ", "_") for phrase in then.split(", ")] == (names or ["nothing"])


def test_no_guard_is_tied_to_what_it_is_asked_about() -> None:
    """A row that asks in another order would raise instead of answering."""
    situations = [each for cases in seen("fallback").situations.values() for each in cases[:: len(cases) // 20 + 1]]
    guards = {guard for table in TABLES.values() for row in table.rows for guard in row.when}
    for gate, happening in situations:
        for guard in guards:
            assert type(guard(gate, happening)) is bool, guard


# What cannot happen.


def test_a_gate_refuses_what_its_channels_cannot_give() -> None:
    """A fault of a driver would look like one of the protocol."""
    gate = Gate.new(ALIGNED, Rules())
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
    gate, (*_, asked) = Gate.new(ALIGNED, Rules(1)).step(Arrival(0, CheckpointBarrier(1, 1)))
    assert str(asked) == "snapshot barrier 1"
    with pytest.raises(TableError, match="while the image is taken; allowed: the answer to that"):
        gate.step(Arrival(0, Event("a", 1)))
    gate, effects = gate.step(Taken())
    assert [str(effect) for effect in effects] == ["forward barrier 1", "complete 1", "resume 1"]
    for answer in (Taken(), Forwarded()):
        with pytest.raises(TableError, match="none of the rows apply"):
            gate.step(answer)


def test_a_step_leaves_the_gate_as_it_was() -> None:
    """Who explores would go back to a gate that is not the same any more."""
    gate = Gate.new(ALIGNED, Rules())
    before = repr(gate)
    gate.step(Arrival(0, CheckpointBarrier(1, 1)))[0].step(Abort(3))
    assert repr(gate) == before


def test_effects_read_as_lines() -> None:
    """A difference would print as tuples."""
    part = Part(CheckpointBarrier(1, 1), False, False, ())
    effects = [Effect("hold", 0, Event("a", 1)), Effect("complete", -1, part), Effect("decline", -1, (2, "expired"))]
    assert [str(effect) for effect in effects] == ["hold 0 a1", "complete 1", "decline 2 expired"]
