"""The machines of `impl` do what their tables say: on every reachable gate, in long runs, and in simulated journals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barrierlab.impl import BarrierAligner, CheckpointBarrier, Event, UnalignedCheckpointer
from barrierlab.impl.checkpoint.gate import Gate as Implementation
from barrierlab.model.checkpoint.gate_scopes import END, FAILED, SCOPES, TAKEN, WATERMARK, GateScope, arrivals
from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.checkpoint.refinement import GateMachine, GateMove, run
from barrierlab.model.checkpoint.tables.aligned import ALIGNED
from barrierlab.model.checkpoint.tables.aligned_with_timeout import ALIGNED_WITH_TIMEOUT
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.tables.stimuli import (
    Abort,
    Arrival,
    ClockReading,
    DrainOne,
    Overtaking,
    Stimulus,
    TriggerNoted,
)
from barrierlab.model.checkpoint.tables.unaligned import UNALIGNED
from barrierlab.model.explore.checker import explore
from barrierlab.model.explore.table import Table
from barrierlab.model.spec.history import Entry
from barrierlab.sim import load
from barrierlab.sim import run as simulate
from barrierlab.sim.scenario.load import Scenario
from barrierlab.sim.scenario.settings import aligner_config, unaligned_config
from tests.breadth import examples
from tests.model.table_replay import departures

MOST_STATES = 600
"""Scopes with more are left to `make test-full`: each takes seconds, and `barrierlab check` explores them, too."""
QUICK = [
    pytest.param(scope, id=str(scope), marks=[pytest.mark.slow] * (scope.slow or scope.states > MOST_STATES))
    for scope in SCOPES
]


@pytest.mark.parametrize("scope", QUICK)
def test_machine_and_table_agree_on_every_reachable_gate(scope: GateScope) -> None:
    """In some situation, however rare, the code would do something else than the protocol says."""
    refinement = scope.refinement(PROTOCOLS[scope.protocol].table)
    result = explore(refinement, refinement.properties)
    assert result.verdict == "holds", result.violations
    assert result.counts.states == scope.states


# Machines with one thing wrong. Each must be distinguished from the sound table, by a shortest run.


def forgets_what_is_done(patch: pytest.MonkeyPatch) -> None:
    """A barrier that is stale opens its checkpoint again (A-09)."""
    patch.setattr(BarrierAligner, "_is_closed", lambda self, checkpoint_id: False)


def ignores_aborts(patch: pytest.MonkeyPatch) -> None:
    """Anything that the coordinator aborts goes on here."""
    patch.setattr(Implementation, "abort", lambda self, checkpoint_id, reason, now_ns: False)


def never_late(patch: pytest.MonkeyPatch) -> None:
    """A deadline passes and nothing happens (A-10)."""
    patch.setattr(Implementation, "on_time", lambda self, now_ns: False)


def lets_nothing_go(patch: pytest.MonkeyPatch) -> None:
    """Anything that was buffered stays buffered (A-07)."""
    patch.setattr(Implementation, "drain_next", lambda self, now_ns: False)


def records_nothing(patch: pytest.MonkeyPatch) -> None:
    """Anything that was in flight is not part of the checkpoint (U-04)."""
    patch.setattr(UnalignedCheckpointer, "inflight_data", lambda self: ())


BROKEN: tuple[tuple[Callable[[pytest.MonkeyPatch], None], str], ...] = (
    (forgets_what_is_done, "aligned"),
    (ignores_aborts, "aligned"),
    (never_late, "aligned"),
    (lets_nothing_go, "aligned"),
    (records_nothing, "unaligned"),
)


@pytest.mark.parametrize(("breaks", "protocol"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_a_broken_machine_is_told_apart(
    breaks: Callable[[pytest.MonkeyPatch], None], protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison would pass whatever the code does."""
    breaks(monkeypatch)
    for scope in SCOPES:
        if scope.protocol == protocol and not scope.slow:
            refinement = scope.refinement(PROTOCOLS[protocol].table)
            result = explore(refinement, refinement.properties)
            if result.verdict == "broken":
                (found,) = result.violations[:1]
                assert 1 <= len(found.moves) <= 8
                return
    pytest.fail("every scope holds")


# Longer than what can be explored: more ids, more inputs, more room.

INPUTS = 3
BARRIERS = [CheckpointBarrier(n, n, flags) for n in range(1, 7) for flags in (0, 1)]
STIMULI: list[Stimulus] = [
    *arrivals(INPUTS, WATERMARK, END, *BARRIERS, at=(0, 5, 20)),
    *(Arrival(i, Event("abc"[i], n)) for i in range(INPUTS) for n in range(1, 6)),
    *(Abort(n) for n in range(1, 7)),
    *(TriggerNoted(n, at) for n in range(1, 7) for at in (0, 5)),
    *(ClockReading(at) for at in (3, 9, 30)),
    *[DrainOne()] * 20,
]
PASSING: list[Stimulus] = [
    Overtaking(i, barrier, ahead)
    for i in range(INPUTS)
    for barrier in BARRIERS
    if barrier.is_unaligned
    for ahead in ((), (Event("abc"[i], 9),))
]
LARGE = {"num_inputs": INPUTS, "max_buffer_per_input": 4, "max_buffer_memory_bytes": 400, "alignment_timeout_ns": 25}
FALLS_BACK = {
    **LARGE,
    "may_overtake": True,
    "flag_matters": False,
    "alignment_timeout_threshold_ns": 8,
    "max_inflight_buffer_bytes": 60,
}
CASES = [
    (ALIGNED, GateRules(**LARGE), STIMULI),  # type: ignore[arg-type]
    (UNALIGNED, GateRules(**FALLS_BACK | {"force_unaligned": True}), STIMULI + PASSING),  # type: ignore[arg-type]
    (ALIGNED_WITH_TIMEOUT, GateRules(**FALLS_BACK), STIMULI + PASSING),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("table", "rules", "stimuli"), CASES, ids=["aligned", "unaligned", "aligned_with_timeout"])
@given(data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_machine_and_table_agree_in_long_runs(
    table: Table, rules: GateRules, stimuli: list[Stimulus], data: st.DataObject
) -> None:
    """Something that takes many checkpoints, or three inputs, would come out otherwise than the protocol says."""
    gate, machine = GateState.new(table, rules), GateMachine(rules)
    for stimulus in data.draw(st.lists(st.sampled_from(stimuli), max_size=60)):
        if isinstance(stimulus, Arrival | Overtaking) and not gate.is_open(stimulus.input_id):
            continue
        move = GateMove(stimulus, data.draw(st.sampled_from((TAKEN, TAKEN, FAILED))))
        assert machine.difference(gate, move) is None
        gate, _ = run(gate, move)
        assert machine.misstatement(gate) is None


# Journals of simulated runs.


def protocols(scenario: Scenario, table: Table) -> dict[str, tuple[Table, GateRules]]:
    """Of each task with inputs its table and rules, as the simulation sets its gate."""
    found = {}
    for task in scenario.topology.tasks:
        inputs = len(scenario.topology.inputs(task))
        if inputs:
            config = aligner_config(scenario.checkpoint, inputs)
            unaligned = None if table is ALIGNED else unaligned_config(scenario)
            found[task] = table, GateRules.of(config, unaligned, scenario.aligns(task))
    return found


RUNS = [
    ("skewed_join", {"until_s": 12.0}, ALIGNED),
    ("crash_and_recover", {}, ALIGNED),
    ("crash_and_recover", {"mode": "unaligned"}, UNALIGNED),
    ("crash_and_recover", {"mode": "aligned_with_timeout"}, ALIGNED_WITH_TIMEOUT),
]


def journal(name: str, changes: dict[str, object]) -> tuple[Scenario, list[Entry]]:
    """A scenario, and what happened in one run of it."""
    scenario = load(name, changes)
    return scenario, simulate(scenario, 1).entries


@pytest.mark.parametrize(("name", "changes", "table"), RUNS)
def test_a_simulated_run_is_a_run_of_the_tables(name: str, changes: dict[str, object], table: Table) -> None:
    """The simulation would drive the code into something that the protocol does not have."""
    scenario, entries = journal(name, changes)
    assert sum(entry[1] == "snapshot" for entry in entries) > 10
    assert list(departures(entries, scenario.topology, protocols(scenario, table))) == []


@pytest.mark.parametrize("verb", ["buffer", "block", "snapshot", "forward", "complete", "resume", "deliver"])
def test_a_journal_that_lacks_an_effect_departs(verb: str) -> None:
    """A journal would pass whatever it says."""
    scenario, entries = journal("crash_and_recover", {})
    tasks = protocols(scenario, ALIGNED)
    place = next(i for i, entry in enumerate(entries) if entry[1] == verb and entry[2] in tasks)
    lacking = entries[:place] + entries[place + 1 :]
    first = next(departures(lacking, scenario.topology, tasks))
    assert first.task == entries[place][2]
    assert verb in first.table
