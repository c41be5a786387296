"""The standard scopes: what is in them, that they hold for the machines and for the tables, and who is refuted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import networkx as nx
import pytest

import barrierlab.model.checkpoint.check as model_check
from barrierlab.model.checkpoint.check import CaseScope, Outcome, ScopeViolation, WorldScope, verdict_of
from barrierlab.model.checkpoint.components import SOUND, Components, with_aligner
from barrierlab.model.checkpoint.gate_runs import RunScope
from barrierlab.model.checkpoint.gate_scopes import SCOPES as GATES
from barrierlab.model.checkpoint.gate_scopes import GateScope
from barrierlab.model.checkpoint.protocols import EXACT as MODES
from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.tables.driven import driven_by
from barrierlab.model.control.runs import ControlRunScope
from barrierlab.model.defects.alignment.A05_second_barrier_marks_again import DEFECT as A_05
from barrierlab.model.explore.checker import ExplorationLimits
from barrierlab.model.join.scopes import JoinScope
from barrierlab.model.storage.scopes import StoreScope
from barrierlab.model.suites.standard import COMBINED, FAULTS, SCOPES, connected_dataflows, full
from tests.kept import keep
from tests.model.mutants import SnapshotsAtTheFirst

# Rows of what only a simulation's driver asks, or of what sound sources and coordinators never send: the scopes of
# gates have them.
NOT_IN_A_WORLD = {
    "nothing due": "a driver that asks too early",
    "overtaking rejected": "a barrier ahead of its place at a gate that never lets one",
    "nothing to drain": "a driver that asks for nothing",
    "output of no concern": "a driver that tells twice",
    "output beyond the limit": "the limit of bytes lies between input and output",
    "message without room": "the limit is that of inputs with a barrier of the next checkpoint",
    "repeated barrier": "no channel repeats",
    "contradicting barrier": "no epoch contradicts",
    "no image": "a snapshot of a world does not fail",
    "abort when all is over": "a coordinator knows who has ended",
    "barrier gone, too much": "a limit of bytes that the outbox alone passes",
    "first barrier, overdue": "a world hears of the trigger when the barrier overtakes",
    "one more, overdue": "as above",
    "end for one, overdue": "as above",
}


TINY = list(SCOPES["tiny"]())
NAMES_OF_FULL = Path(__file__).with_name("full_scopes.txt")
"""The scopes of ``full``, a line each, in the order in which they are checked."""
HELD_ELSEWHERE = (StoreScope, CaseScope, RunScope, ControlRunScope, GateScope, JoinScope)
"""Kinds of which a test beside their model holds every scope, not those of tiny alone, with its number of states."""


@pytest.mark.parametrize(
    "scope", [each for each in TINY if not isinstance(each, HELD_ELSEWHERE)], ids=lambda scope: scope.name
)
def test_tiny_holds(scope: WorldScope) -> None:
    """The protocol itself would break in a scope of seconds."""
    outcome = scope.check(SOUND, None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())
    assert (outcome.name, outcome.protocol) == (scope.name, scope.protocol)
    assert outcome.states > 5
    assert outcome.transitions >= outcome.states - 1


@pytest.mark.parametrize("group", SCOPES)
def test_every_scope_has_a_name_of_its_own(group: str) -> None:
    """Of two scopes of one name the verdict of one would be lost."""
    names = [scope.name for scope in SCOPES[group]()]
    assert len(names) == len(set(names))


def test_full_asks_exactly_the_scopes_that_are_named(rewrite: bool) -> None:
    """`full` would be decided sooner because it asks less, and nobody would see which scope has gone."""
    keep(NAMES_OF_FULL, "".join(f"{scope.name}\n" for scope in SCOPES["full"]()), rewrite)


def test_full_has_every_dataflow_in_every_mode_with_every_fault() -> None:
    """A fault that needs a shape that was left out would never be seen."""
    forms = [text for operators in (2, 3, 4) for text in connected_dataflows(operators)]
    assert len(forms) == 29  # 1, 4 and 24 connected acyclic graphs of 2, 3 and 4 nodes, but for names (OEIS A101228)
    graphs = [Bounds(text).graph().graph() for text in forms]
    assert not any(nx.is_isomorphic(a, b) for at, a in enumerate(graphs) for b in graphs[:at])
    every = [scope for scope in full() if isinstance(scope, WorldScope) and scope.bounds.checkpoints == 2]
    worlds = [scope for scope in every if scope.protocol in MODES]
    assert {(each.bounds.topology, each.protocol) for each in worlds} == {
        (text, mode) for text in forms for mode in MODES
    }
    one_fault = [each for each in worlds if each.bounds.events == 2]
    assert len(one_fault) == len(forms) * len(MODES) * len(FAULTS)
    assert len(worlds) - len(one_fault) == 5 * len(MODES) * len(COMBINED)  # those of two and three operators


def _of_tables(scopes: Iterable[object]) -> set[tuple[str, str]]:
    """The rows that are used when the tasks of worlds run by tables."""
    for table in (each.table for each in PROTOCOLS.values()):
        table.used.clear()
    for scope in scopes:
        if isinstance(scope, WorldScope):
            protocol = PROTOCOLS[scope.protocol]
            components = Components(gate=driven_by(protocol.table, protocol.settings.blocks))
            assert scope.check(components, None).verdict == "holds", scope.name
    return {(name, row) for name, each in PROTOCOLS.items() for row in each.table.used}


def test_the_tables_hold_in_tiny_worlds() -> None:
    """The protocol as it is printed would not be sound. (With a task behind a join, but for this: the slow test.)"""
    few = (each for each in TINY if "a->join" not in each.name or each.name.endswith("timeout"))
    assert ("aligned_with_timeout", "time to switch") in _of_tables(few)


@pytest.mark.slow
def test_every_row_is_used_in_the_small_worlds_or_has_a_reason_why_not() -> None:
    """A row would stand in a table that no run of a dataflow ever asks."""
    used = {row for _, row in _of_tables(SCOPES["small"]())}
    assert {row.name for each in PROTOCOLS.values() for row in each.table.rows} - used == set(NOT_IN_A_WORLD)


def test_a_broken_machine_is_refuted_by_a_shortest_run_with_a_trace() -> None:
    """A user would hear that a broken aligner holds, or be shown a run that is longer than need be."""
    scope = WorldScope("a join", Bounds("a->join b->join join->s", events=1))
    outcome = scope.check(with_aligner(SnapshotsAtTheFirst), None)
    (violation,) = outcome.violations
    assert (outcome.verdict, violation.invariant, violation.scope) == ("broken", "CUT", "a join")
    assert violation.trace.splitlines()[0] == "# CUT is broken: a join."
    assert violation.trace.count("\n> ") == violation.steps == 10
    assert "! CUT: " in violation.trace


def test_a_machine_that_waits_for_ever_is_refuted() -> None:
    """As above, of what shows only at rest."""
    outcome = WorldScope("a second barrier", A_05.bounds).check(A_05.components, None)
    (violation,) = outcome.violations
    assert violation.invariant == "LIVE"
    assert "! LIVE: " in violation.trace


def test_another_aligner_is_held_against_its_table() -> None:
    """Anything that no dataflow shows, such as a barrier that comes twice, would pass."""
    broken = [scope.name for scope in GATES if scope.states < 100 and _told_apart(scope)]
    assert "aligned table: one input" in broken


def _told_apart(scope: object) -> bool:
    from barrierlab.impl.checkpoint.alignment import BarrierAligner

    class ForgetsWhatIsDone(BarrierAligner):
        """A stale barrier begins its checkpoint again."""

        def _is_closed(self, checkpoint_id: int) -> bool:
            return False

    outcome: Outcome = scope.check(with_aligner(ForgetsWhatIsDone), None)  # type: ignore[attr-defined]
    assert outcome.protocol != "aligned" or outcome.violations or outcome.verdict == "holds"
    return outcome.verdict == "broken" and outcome.violations[0].invariant == "TABLE"


def test_a_sound_aligner_of_another_name_is_not_told_apart() -> None:
    """As above, of what is right: a subclass that changes nothing goes the way of an external one."""
    from barrierlab.impl.checkpoint.alignment import BarrierAligner

    class Same(BarrierAligner):
        """Changes nothing."""

    for scope in GATES:
        if scope.protocol == "aligned" and scope.states < 100:
            assert scope.check(with_aligner(Same), None).verdict == "holds"


def test_time_that_is_up_decides_nothing() -> None:
    """Half an exploration would pass for a whole one."""
    outcome = WorldScope("a join", Bounds("a->join b->join join->s", events=2, checkpoints=2)).check(SOUND, 0.0)
    assert (outcome.verdict, outcome.violations) == ("undecided", ())
    assert "limit of 0 s" in outcome.why


def _outcome(verdict: str) -> Outcome:
    return Outcome(
        "x", "aligned", verdict, "", 1, 1, 0.0, (ScopeViolation("CUT", "x", 1, "why"),) * (verdict == "broken")
    )


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (("holds", "holds"), "holds"),
        (("holds", "undecided"), "undecided"),
        (("undecided", "broken"), "broken"),
        ((), "undecided"),
    ],
)
def test_one_that_is_not_decided_leaves_all_undecided(verdicts: tuple[str, ...], verdict: str) -> None:
    """`holds` would be said of what nobody has looked at."""
    assert verdict_of([_outcome(each) for each in verdicts]) == verdict


def test_a_scope_occupies_no_more_than_its_share_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """One on each core would end for want of memory, and the verdicts of all with it; or a small one decides none."""
    machine = {"SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(model_check.os, "sysconf", machine.__getitem__)
    monkeypatch.setattr(model_check.os, "cpu_count", lambda: 2)
    told = []
    for gibibytes in (1, 10):
        machine["SC_PHYS_PAGES"] = (gibibytes << 30) // 4096
        told.append(model_check.limits(5.0))
    assert told == [ExplorationLimits(100_000_000, None, 5.0, bytes_) for bytes_ in (2 << 30, 4 << 30)]
    monkeypatch.setattr(model_check, "limits", lambda _: ExplorationLimits(memory_bytes=1))
    outcome = next(SCOPES["tiny"]()).check(SOUND, None)
    assert (outcome.verdict, outcome.why) == ("undecided", "the limit of 1 bytes of memory is reached")
