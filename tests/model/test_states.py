"""The states that a table tells of, and its diagram."""

from __future__ import annotations

import pytest

from barrierlab.model.checkpoint.tables.actions import mark
from barrierlab.model.checkpoint.tables.aligned import ALIGNED
from barrierlab.model.errors import InputError
from barrierlab.model.suites.states import StateEdge, edges, mermaid, page, states_of_rows
from barrierlab.model.suites.tables import TABLES

LARGE = ("unaligned", "aligned_with_timeout")


@pytest.mark.parametrize("name", [name for name in TABLES if name not in LARGE])
def test_every_row_has_a_state(name: str) -> None:
    """A row that no exploration reaches would be printed as if it happened."""
    assert list(states_of_rows(name)) == [row.name for row in TABLES[name].rows]
    assert {edge.reached for edge in edges(name)} <= {edge.state for edge in edges(name)}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_every_row_of_the_large_tables_has_a_state(name: str) -> None:
    """As above."""
    test_every_row_has_a_state(name)


def test_a_row_that_no_scope_uses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who adds a protocol would see an internal error, and not which gate is missing."""
    monkeypatch.setitem(TABLES, "new", ALIGNED)
    with pytest.raises(InputError, match=r"^table 'new': no quick scope uses event, .*; add what uses it to model/ch"):
        states_of_rows("new")


def test_the_states_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A diagram would show the protocol as somebody has drawn it once."""
    monkeypatch.setitem(TABLES, "aligned", ALIGNED.changed("last barrier", then=(mark,)))
    without_snapshot = edges.__wrapped__("aligned")  # explored anew, beside those that are kept
    assert StateEdge("aligning", "last barrier", "snapshotting") not in without_snapshot
    assert StateEdge("aligning", "last barrier", "aligning") in without_snapshot


def test_an_aligned_checkpoint_goes_from_state_to_state() -> None:
    """A reader could not tell how a checkpoint begins and ends."""
    ways = {(edge.state, edge.reached) for edge in edges("aligned")}
    assert [(a, b) for a, b in sorted(ways) if a != b] == [
        ("aligning", "draining"),
        ("aligning", "idle"),
        ("aligning", "snapshotting"),
        ("draining", "aligning"),
        ("draining", "idle"),
        ("idle", "aligning"),
        ("idle", "snapshotting"),
        ("snapshotting", "draining"),
        ("snapshotting", "idle"),
    ]
    assert StateEdge("aligning", "last barrier", "snapshotting") in edges("aligned")
    assert states_of_rows("aligned")["message behind the barrier"] == "aligning, draining"


def test_a_diagram_is_mermaid() -> None:
    """A page would show an error where the diagram is to be: a label may buffer no colon."""
    *lines, last = mermaid("control")
    assert lines == [
        "stateDiagram-v2",
        "    [*] --> idle",
        "    idle --> aligning: first copy",
        "    aligning --> idle: last copy, close for the last copy, abort",
        "    note right of idle: stays on only copy, duplicate, close between barriers, abort",
    ]
    assert last.startswith("    note right of aligning: stays on copy ahead of the others, one more copy, last copy, ")
    for line in mermaid("aligned"):
        assert line.count(":") <= 1


def test_a_page_has_theory_table_and_what_is_left_open() -> None:
    """A table alone says neither why nor what else there is."""
    lines = list(page("control"))
    assert lines[0].startswith("# Barrier control signals: ")
    table = lines.index("| state | situation | when | then |")
    assert "Invariant: a barrier is complete when" in " ".join(lines[:table])
    open_ = lines.index("What this table does not say:")
    assert all(line.startswith("- ") for line in lines[open_ + 2 :])
    assert len(lines) > open_ + 2 > table
