"""The tables as such: exactly one row applies, every row is needed, and every small edit of one is noticed.

An edit is a row with one action dropped, two neighbours swapped, or one guard dropped. It is noticed if in some
reachable situation it makes the gate do or be anything else than what the machine of `impl` does and is, or if it
leaves more than one row for a situation. What is not noticed stands in `harmless_edits.txt`, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest

from impl.errors import ClosedInputError, InputIndexError, UnknownMessageError
from impl.messages import CheckpointBarrier, EndOfInput, Event
from model.explore import explore
from model.refine import Effects, Move, Point, Refinement, captured, run
from model.tables import ALIGNED, Gate, Row, Rules, Table, TableError
from model.tables.actions import deliver, ignore
from model.tables.guards import barrier, event
from model.tables.happenings import Abort, Arrival, Effect, Forwarded, Happening, Overtaking, Part, Taken
from tests.model.gate_scopes import SCOPES, TABLES

HARMLESS_FILE = Path(__file__).with_name("harmless_edits.txt")
HARMLESS = {
    line.split(" : ")[0].strip(): line.split(" : ")[1].strip()
    for line in HARMLESS_FILE.read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
}


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


# Every edit is noticed.


def edits(table: Table) -> Iterator[tuple[str, str, Table]]:
    """Each small edit of a table: what it is, in which row, and the table that it makes."""
    for row in table.rows:
        for place, action in enumerate(row.then):
            before, after = row.then[:place], row.then[place + 1 :]
            yield f"{row.name}, without {action.__name__}", row.name, table.changed(row.name, then=before + after)
            if after and after[0] is not action:
                swapped = (*before, after[0], action, *after[1:])
                name = f"{row.name}, {after[0].__name__} before {action.__name__}"
                yield name, row.name, table.changed(row.name, then=swapped)
        for place, guard in enumerate(row.when):
            left = row.when[:place] + row.when[place + 1 :]
            yield f"{row.name}, whether or not {guard.__name__}", row.name, table.changed(row.name, when=left)


def shows(table: Table, gate: Gate, move: Move, after: Gate, effects: Effects) -> bool:
    """Whether a move comes out otherwise under this table, as far as a machine would have to show it."""
    try:
        otherwise, others = run(replace(gate, table=table), move)
    except (AssertionError, TableError, IndexError, RecursionError):
        return True
    return effects != others or (after != otherwise and captured(after) != captured(otherwise))


def is_noticed(protocol: str, row: str, edited: Table) -> bool:
    """Whether an edit of `row` shows in any reachable situation."""
    known, when = seen(protocol, slow=True), edited.row(row).when
    if when == TABLES[protocol].row(row).when:
        return any(shows(edited, *made) for made in known.moves[row])
    return any(
        all(guard(gate, happening) for guard in when)
        for name, situations in known.situations.items()
        if name != row
        for gate, happening in situations
    )


@pytest.mark.slow
@pytest.mark.parametrize("protocol", TABLES)
def test_every_edit_is_noticed_or_listed_as_harmless(protocol: str) -> None:
    """A row could be wrong in a way that no comparison shows; or the list could claim what is not so any more."""
    unnoticed = {
        f"{protocol}: {name}" for name, row, edited in edits(TABLES[protocol]) if not is_noticed(protocol, row, edited)
    }
    listed = {name for name in HARMLESS if name.startswith(f"{protocol}: ")}
    assert sorted(unnoticed - listed) == []
    assert sorted(listed - unnoticed) == []


def test_harmless_edits_have_reasons() -> None:
    """A claim would have nothing behind it."""
    assert [name for name, reason in HARMLESS.items() if len(reason.split()) < 4] == []
    assert {name.split(": ")[0] for name in HARMLESS} <= set(TABLES)
