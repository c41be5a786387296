"""An external aligner is judged by what whole dataflows do, as far as it takes part."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any
from unittest import SkipTest

import pytest

from barrierlab.impl.checkpoint.alignment import BarrierAligner
from barrierlab.model.checkpoint.asked import BEYOND_DATAFLOWS, divided, is_small, needs, shows
from barrierlab.model.checkpoint.capabilities import READS_ON, RULES, Capabilities
from barrierlab.model.checkpoint.check import Scope, WorldScope, verdict_of
from barrierlab.model.checkpoint.external import ExternalError, capabilities_of, parts_of
from barrierlab.model.checkpoint.gate_runs import SCOPES as RUNS
from barrierlab.model.checkpoint.gate_scopes import SCOPES as GATES
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.scripted_scopes import ScriptedScope, scripted_cases
from barrierlab.model.checkpoint.tables.stimuli import Abort, ClockReading
from barrierlab.model.checkpoint.world import World
from barrierlab.model.defects.engines import aligners
from barrierlab.model.defects.engines.catalogue import SOUND as ENGINES
from barrierlab.model.storage.scopes import WORLDS
from barrierlab.model.suites.conformance import cases
from barrierlab.model.suites.standard import SCOPES
from barrierlab.sim.check.report import as_json, markdown, show
from barrierlab.sim.check.runner import check_one, plan
from barrierlab.sim.core.status import stdout_console
from docs.aligner.aligner import Phase, PhasedAligner
from docs.aligner.unaligned import RecordingAligner
from tests import breadth

TINY = [each for each in SCOPES["tiny"]() if isinstance(each, WorldScope)]
SMALL = [each for each in SCOPES["small"]() if isinstance(each, WorldScope) and each not in TINY]


looked_at = cache(parts_of)


def verdicts(kind: type, scopes: list[WorldScope], protocol: str = "aligned") -> dict[str, Any]:
    """By scope that is asked of a class, the first violation; None if it holds."""
    asked, _ = divided((each for each in scopes if each.protocol == protocol), capabilities_of(kind))
    components = looked_at(kind, protocol)
    outcomes = [each.check(components, None) for each in asked]
    assert {outcome.verdict for outcome in outcomes} <= {"holds", "broken"}
    return {outcome.name: next(iter(outcome.violations), None) for outcome in outcomes}


# Sound schemes, and unsound ones.

SOUND = [kind for kind, modes in ENGINES.values() if modes == ("aligned",)]


@pytest.mark.parametrize("kind", SOUND)
def test_a_sound_scheme_of_another_kind_holds(kind: type) -> None:
    """An engine that leaves messages in the channel would hear of a fault that it has not."""
    assert set(verdicts(kind, TINY).values()) == {None}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOUND)
def test_a_sound_scheme_of_another_kind_holds_in_small_dataflows(kind: type) -> None:
    """As above, where there is more to come."""
    assert set(verdicts(kind, SMALL).values()) == {None}


@pytest.mark.parametrize(
    "protocol",
    [*(pytest.param(each, marks=pytest.mark.slow) for each in ("aligned", "unaligned")), "aligned_with_timeout"],
)
def test_inputs_may_stay_blocked_after_the_switch(protocol: str) -> None:
    """Flink's own controller would be called broken for a difference that nobody downstream can see."""
    assert set(verdicts(aligners.Alternating, TINY, protocol).values()) == {None}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["aligned", "unaligned", "aligned_with_timeout"])
def test_inputs_may_stay_blocked_after_the_switch_in_small_dataflows(protocol: str) -> None:
    """As above, where there is more to come."""
    assert set(verdicts(aligners.Alternating, SMALL, protocol).values()) == {None}


@pytest.mark.parametrize(
    ("kind", "invariant", "steps", "scope"),
    [
        (aligners.OneSide, "CUT", 8, "aligned: a->s b->s; events 1, checkpoints 1; no fault"),
        (aligners.EndForgets, "LIVE", 9, "aligned: a->s b->s; events 1, checkpoints 1; closed input"),
        (aligners.NoTombstone, "LIVE", 14, "aligned: a->s b->s; events 1, checkpoints 1; abort"),
        (aligners.Tuples, "CUT", 10, "aligned: a->s b->s; events 1, checkpoints 1; no fault"),
        (aligners.Stash, "CUT", 11, "aligned: a->s b->s; events 1, checkpoints 1; no fault"),
    ],
)
def test_a_bug_of_an_engine_is_refuted_by_a_dataflow(kind: type, invariant: str, steps: int, scope: str) -> None:
    """Anything that went wrong in the world would hold here."""
    violation = verdicts(kind, [each for each in TINY if each.name == scope])[scope]
    assert (violation.invariant, violation.steps) == (invariant, steps)


# Whether the loop drains what may go before it reads on.


class DrainsFirstGate(aligners.Stash):
    """Its driver never reads on while the stash is full."""

    capabilities = Capabilities(timeout=False, reads_on=False)


TWO_SOURCES = [each for each in TINY if "a->s b->s" in each.name]


def test_a_loop_that_reads_on_is_explored_unless_the_class_declares_that_its_own_does_not() -> None:
    """The world would always release first, and a bug of a reading loop that is not declared would hold."""
    found = verdicts(aligners.Stash, TWO_SOURCES).values()
    assert [each and (each.invariant, each.reads_on) for each in found] == [
        *[("CUT", True), ("CUT", True), ("ONCE", True), ("CUT", True)],
    ]
    assert set(verdicts(DrainsFirstGate, TWO_SOURCES).values()) == {None}
    assert set(verdicts(PhasedAligner, TWO_SOURCES).values()) == {None}  # what it holds keeps its place


def test_a_gate_of_impl_releases_first() -> None:
    """A subclass of the aligner of `impl` would be judged in a loop that nobody drives it by."""
    kind = type("Sub", (BarrierAligner,), {"capabilities": Capabilities()})
    assert not capabilities_of(kind).reads_on
    assert not World(Bounds("a->s b->s"), parts_of(kind, "aligned")).reads_on
    assert World(Bounds("a->s b->s"), parts_of(PhasedAligner, "aligned")).reads_on


def test_a_counterexample_that_rests_on_the_loop_says_what_may_be_declared() -> None:
    """A team whose driver always drains first would look for a bug that it has not."""
    told = []
    for kind in (aligners.Stash, aligners.OneSide):
        case = next(each for each in cases(kind) if each.scope == TWO_SOURCES[0])
        with pytest.raises(AssertionError) as raised:
            case.check()
        told.append(str(raised.value).split("\n\n")[1])
    assert told[0] == f"hint: {READS_ON}"
    assert "reads_on=False" in told[0]
    assert told[1].startswith("# CUT is broken")


@pytest.mark.parametrize(
    ("name", "status", "line"),
    [
        ("aligners:Stash", 1, f"hint: in 1 of 1 counterexamples {READS_ON}"),
        ("aligners:OneSide", 1, ""),
        ("drains_first", 0, "of a loop that drains before it reads on (reads_on=False)"),
    ],
)
def test_a_verdict_says_which_loop_it_is_about(
    name: str, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verdict about a loop that drains first would pass for one about every loop."""
    of_engines = f"barrierlab.model.defects.engines.{name}"
    kind = "tests.model.test_asked:DrainsFirstGate" if name == "drains_first" else of_engines
    chosen = replace(plan("tiny", ["aligned"], kind), names=(TWO_SOURCES[0].name,))
    outcomes = [check_one(chosen, each) for each in chosen.names]
    show(stdout_console(400), outcomes, chosen)
    out = capsys.readouterr().out
    assert verdict_of(outcomes) == ("broken" if status else "holds")
    assert as_json(outcomes, chosen)["drains_first"] == (name == "drains_first")
    assert (line in out) if line else ("reads_on" not in out)
    assert (line in markdown(outcomes, chosen)) if line else ("reads_on" not in markdown(outcomes, chosen))


# What is declared.


def test_a_scope_says_what_it_needs() -> None:
    """A system would be asked for what it does not do, or not for what it does."""
    found = {
        each.name: needs(each) for each in SCOPES["small"]() if each.protocol in ("aligned", "aligned_with_timeout")
    }
    assert found["aligned: a->s; events 2, checkpoints 2; no fault"] == []
    assert found["aligned: a->s; events 2, checkpoints 2; timeout"] == ["aborts", "timeout"]
    assert found["aligned: a->s b->s c->s; events 1, checkpoints 1; closed input"] == ["several_inputs", "ends"]
    assert (
        "limits" in found["aligned: a->join b->join join->s; max buffer per input 1, events 2, checkpoints 1; no fault"]
    )
    assert found["aligned_with_timeout: a->s; events 2, checkpoints 2; no fault"] == ["timeout", "unaligned"]
    assert found["aligned table: one input"] == []
    assert found["aligned runs: two inputs"] == [name for name in RULES if name not in ("unaligned", "recovery")]
    assert found["aligned_with_timeout runs: two inputs"] == [name for name in RULES if name != "recovery"]
    assert found["aligned scripted case: end_of_input/an_end_completes_the_alignment"] == ["several_inputs", "ends"]


GATE = next(each for each in GATES if each.protocol == "aligned" and each.rules.num_inputs == 1)
LATE = "aligned_with_timeout"
CASE = ScriptedScope("a case", "aligned", "topology: a->s\ncheckpoints: 1\n\n")


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        (WorldScope("an abort", Bounds("a->s", checkpoints=1, aborts_one=(1, 0))), ["aborts"]),
        (WorldScope("cancels", Bounds("a->s", checkpoints=1, cancels=1)), ["aborts"]),
        (replace(GATE, stimuli=(Abort(1), ClockReading(1))), []),
        (replace(GATE, rules=replace(GATE.rules, num_inputs=2)), ["several_inputs"]),
        (replace(GATE, protocol="unaligned"), ["unaligned"]),
        (CASE, []),
        (replace(CASE, text=f"{CASE.text}> abort 1\n"), ["aborts"]),
        (replace(CASE, text=f"{CASE.text}    s take a->s cancel 1\n"), ["aborts"]),
        (replace(CASE, text=f"{CASE.text}    s take a->s end\n"), ["ends"]),
        (replace(CASE, text=f"{CASE.text}> expire s 1\n"), ["timeout"]),
    ],
)
def test_each_word_of_a_scope_needs_what_it_is_of(scope: Scope, found: list[str]) -> None:
    """A scope in which one thing alone happens would be asked of a system that does not do it."""
    assert needs(scope) == found


RUN = {protocol: next(each for each in RUNS if each.protocol == protocol) for protocol in ("aligned", LATE)}


@pytest.mark.parametrize(
    ("scope", "found"),
    [
        (RUN["aligned"], ["leaves_in_channel"]),
        (RUN[LATE], ["leaves_in_channel", "keeps_blocked_after_switch"]),
        (CASE, []),
        (replace(CASE, text=f"{CASE.text}    join buffer a->join a1\n"), ["leaves_in_channel"]),
        (replace(CASE, protocol=LATE), ["keeps_blocked_after_switch"]),
        (WorldScope("a world", Bounds("a->s", LATE)), []),
    ],
)
def test_a_scope_shows_what_it_compares(scope: Scope, found: list[str]) -> None:
    """A class would be called wrong for what it is permitted, by the one scope that compares it."""
    assert shows(scope) == found


@pytest.mark.parametrize(
    ("bounds", "small"),
    [
        (Bounds("a->s", "unaligned", events=3, checkpoints=2), True),
        (Bounds("a->m m->s", events=2, checkpoints=2), True),
        (Bounds("a->m m->s", "unaligned", events=2, checkpoints=2), False),
        (Bounds("a->s b->s", events=1, checkpoints=1), True),
        (Bounds("a->s b->s", events=1, checkpoints=2), False),
        (Bounds("a->join b->join join->s", events=1, checkpoints=1), True),
        (Bounds("a->join b->join join->s", events=2, checkpoints=1), False),
        (Bounds("a->join b->join join->s", events=1, checkpoints=1, watermarks=1), False),
        (Bounds("a->join b->join join->s", "unaligned", events=1, checkpoints=1), False),
    ],
)
def test_what_is_explored_without_a_reduction_is_small(bounds: Bounds, small: bool) -> None:
    """A check would run for hours, or leave out what takes seconds."""
    assert is_small(bounds) == small


@pytest.mark.parametrize("name", RULES)
def test_what_is_not_declared_is_not_asked(name: str) -> None:
    """A verdict would be of scopes that mean nothing to the system."""
    asked, others = divided(TINY + SMALL, Capabilities(**{name: False}), "table")
    assert others
    assert {each.capability for each in others} == {name}
    assert [scope.name for scope in asked if name in needs(scope)] == []
    assert len(asked) + len(others) == len(TINY + SMALL)
    assert others[0].why == f"it needs {name} ({RULES[name]}), which the class does not declare"


def test_of_several_that_it_lacks_the_last_is_named() -> None:
    """A scope of a deadline would be said to need aborts alone, and the next check would not ask it either."""
    scope = WorldScope("a deadline", Bounds("a->s b->s", events=2, checkpoints=2, expiries=1))
    assert needs(scope) == ["several_inputs", "aborts", "timeout"]
    declared = Capabilities(aborts=False, timeout=False)
    assert [each.capability for each in divided([scope], declared)[1]] == ["timeout"]
    assert [each.capability for each in divided([scope], declared, reducible=False)[1]] == ["size"]


def test_a_store_is_asked_by_the_judge_of_dataflows() -> None:
    """A store of one's own would be judged by nothing, and hold."""
    [gate, *_] = GATES
    assert divided([*WORLDS, gate], Capabilities(), "dataflows") == ([*WORLDS], [])
    assert divided([*WORLDS, gate], Capabilities(), "table") == ([*WORLDS, gate], [])


class Little:
    """Barriers and events, and nothing else; no method for anything else either."""

    capabilities = Capabilities(aborts=False, ends=False, timeout=False, limits=False, leaves_in_channel=True)

    def __init__(self, port: Any, config: Any) -> None:
        self.port, self.waits = port, [0] * config.num_inputs

    def can_take(self, input_id: int) -> bool:
        return not self.waits[input_id]

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        if not hasattr(message, "checkpoint_id"):
            self.port.deliver(input_id, message)
            return True
        self.port.block(input_id, message.checkpoint_id)
        self.waits[input_id] = message.checkpoint_id
        if all(self.waits):
            self.port.snapshot(message)
            self.port.forward(message)
            self.port.complete(message)
            self.port.resume(message.checkpoint_id)
            self.waits = [0] * len(self.waits)
        return True

    def capture(self) -> Any:
        return tuple(self.waits)

    def restore(self, value: Any) -> None:
        self.waits = list(value)


def test_a_class_may_lack_what_it_does_not_declare() -> None:
    """An engine that knows neither aborts nor ends could not be checked at all."""
    found = verdicts(Little, TINY)
    assert len(found) == 7
    assert set(found.values()) == {None}
    assert any("crash" in name for name in found)


def test_it_is_judged_by_what_is_left() -> None:
    """A user who declares little would always hold."""

    class OneSide(Little):
        def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
            if hasattr(message, "checkpoint_id"):
                self.waits = [message.checkpoint_id] * len(self.waits)
            return super().offer(input_id, message, now_ns)

    class Silent(Little):
        def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
            if hasattr(message, "checkpoint_id"):
                self.waits[input_id] = message.checkpoint_id
                self.port.block(input_id, message.checkpoint_id)
                return True
            return super().offer(input_id, message, now_ns)

    found = verdicts(OneSide, TINY)
    assert {each.invariant for each in found.values() if each is not None} == {"ONCE"}
    assert {each and each.invariant for each in verdicts(Silent, TINY).values()} == {"LIVE"}


@pytest.mark.parametrize(
    ("declared", "method", "hint"),
    [
        (Capabilities(ends=False, timeout=False, leaves_in_channel=True), "abort", "aborts=False"),
        (Capabilities(aborts=False, leaves_in_channel=True), "on_time", "timeout=False"),
        (Capabilities(aborts=False, timeout=False), "drain_next", "leaves_in_channel=True"),
    ],
)
def test_a_method_that_is_missing_is_told_with_what_to_declare(declared: Capabilities, method: str, hint: str) -> None:
    """A team would write methods that its engine has no use for."""
    kind = type("Lacks", (Little,), {"capabilities": declared})
    with pytest.raises(ExternalError) as raised:
        parts_of(kind, "aligned")
    assert f"Lacks has no method {method!r}; " in str(raised.value)
    assert str(raised.value).endswith(f"; or declare capabilities = Capabilities({hint})")
    assert len(str(raised.value).splitlines()) == 1


def test_a_declaration_that_is_none_is_told_so() -> None:
    """A slip would be taken for a declaration of everything."""
    kind = type("Slips", (Little,), {"capabilities": {"aborts": False}})
    with pytest.raises(
        ExternalError,
        match=r"Slips.capabilities is \{'aborts': False\}; allowed: a barrierlab.model.checkpoint.capabilities",
    ):
        parts_of(kind, "aligned")


def test_cases_that_are_not_asked_are_skipped() -> None:
    """A test suite would say that they had passed, or would not name them."""
    found = cases(Little)
    asked, others = ([case for case in found if bool(case.not_asked) == is_not] for is_not in (False, True))
    assert (len(asked), len(others)) == (7, 9)
    for case in asked:
        case.check()
    for case in others:
        with pytest.raises(SkipTest, match="which the class does not declare"):
            case.check()


def test_a_judge_that_there_is_not_is_told_so() -> None:
    """A slip would judge by another than was meant."""
    with pytest.raises(ValueError, match="there is no judge 'tables'; allowed: dataflows, table"):
        cases(Little, judge="tables")


# What no dataflow asks.


class Contradicts(PhasedAligner):
    """Takes copies of a barrier for the same that have the same id."""

    def _on_barrier(self, input_id: int, barrier: Any, now_ns: int) -> None:
        same = self.current is not None and barrier.checkpoint_id == self.current.checkpoint_id
        super()._on_barrier(input_id, self.current if same else barrier, now_ns)


class LastFirst(PhasedAligner):
    """Lets the input go first that has the highest number."""

    @property
    def can_drain(self) -> bool:
        return bool(self.turns)

    def drain_next(self, now_ns: int) -> None:
        if self.turns:
            last = max(self.turns)
            self.turns.remove(last)
            self.turns.appendleft(last)
        super().drain_next(now_ns)


class NeverFails(PhasedAligner):
    """Passes the barrier on whose snapshot has failed."""

    def _decline(self, reason: Any) -> None:
        if str(reason) != "snapshot failed":
            super()._decline(reason)


class EarlyDeadline(PhasedAligner):
    """Counts the deadline from the first barrier."""

    def note_trigger(self, checkpoint_id: int, triggered_ns: int) -> None: ...


class NegativeInput(PhasedAligner):
    """Takes an input that there is not for the last one."""

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        return super().offer(input_id % len(self.phase), message, now_ns)


class LateSwitch(RecordingAligner):
    """Switches one nanosecond too late."""

    def _switches_ns(self) -> int:
        return super()._switches_ns() + 1


class NeverSwitched(RecordingAligner):
    """Never says that it has switched."""

    @property
    def was_threshold_triggered(self) -> bool:
        return False

    @was_threshold_triggered.setter
    def was_threshold_triggered(self, value: bool) -> None: ...


DEVIATIONS: dict[str, type] = {
    "6": Contradicts,
    "8": LastFirst,
    "9": NeverFails,
    "11": EarlyDeadline,
    "12": NegativeInput,
    "15": LateSwitch,
    "19": NeverSwitched,
}


@pytest.mark.parametrize("rule", BEYOND_DATAFLOWS)
def test_the_rules_that_no_dataflow_asks_are_those(rule: str) -> None:
    """A verdict would name a rule that it does judge, or one that the other judge does not judge either."""
    kind = DEVIATIONS[rule]
    protocol = "aligned_with_timeout" if issubclass(kind, RecordingAligner) else "aligned"
    scopes = [each for each in TINY if "a->s b->s" in each.name or "; timeout" in each.name]
    scopes = scopes if breadth.is_whole else scopes[::2]
    assert set(verdicts(kind, scopes, protocol).values()) == {None}
    components = looked_at(kind, protocol)
    gates = [each for each in GATES if each.protocol == protocol and each.states < 700]
    is_broken = any(each.check(components, None).verdict == "broken" for each in gates)
    assert is_broken == (rule != "12")


# What the other judge permits.


class Leaves(PhasedAligner):
    """Leaves what is behind a barrier in its channel; else what the table says."""

    capabilities = Capabilities(leaves_in_channel=True)

    def can_take(self, input_id: int) -> bool:
        return super().can_take(input_id) and self.phase[input_id] is Phase.FLOWING

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        return self.can_take(input_id) and super().offer(input_id, message, now_ns)


class LeavesAndRecords(RecordingAligner):
    """The same, going unaligned: a newer barrier waits in its channel, too, while the older ones are awaited."""

    capabilities = Capabilities(leaves_in_channel=True)

    def can_take(self, input_id: int) -> bool:
        return super().can_take(input_id) and self.phase[input_id] in (Phase.FLOWING, Phase.DRAINING)

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        waits = not self.can_take(input_id) or self._is_for_later(input_id, message)
        return not waits and super().offer(input_id, message, now_ns)


class Keeps(RecordingAligner):
    """Keeps inputs blocked after the switch until all barriers are in; else what the table says."""

    capabilities = Capabilities(keeps_blocked_after_switch=True)

    def _keeps(self) -> bool:
        return self.recording and bool(self.missing) and self.was_threshold_triggered

    def _go_on(self, input_id: int) -> None:
        if not self._keeps():
            super()._go_on(input_id)

    def _resume_or_complete(self) -> None:
        if self.was_threshold_triggered and not self.missing:
            self.port.complete(self.current)
            self._done()
        elif not self._keeps():
            super()._resume_or_complete()

    def _done(self) -> None:
        if self.was_threshold_triggered:
            self.port.resume(self.current.checkpoint_id)
        super()._done()


def of_tables(kind: type, protocol: str) -> dict[str, str]:
    """By gate and scripted case that the judge *table* asks of a class, the verdict."""
    scopes = (
        each for each in (*GATES, *scripted_cases()) if each.protocol == protocol and not getattr(each, "slow", False)
    )
    asked, _ = divided(scopes, capabilities_of(kind), "table")
    components = looked_at(kind, protocol)
    return {each.name: each.check(components, None).verdict for each in asked}


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        (Leaves, "aligned"),
        (LeavesAndRecords, "unaligned"),
        pytest.param(Keeps, "aligned_with_timeout", marks=pytest.mark.slow),
    ],
)
def test_a_permitted_difference_is_permitted(kind: type, protocol: str) -> None:
    """A table would have to be left out for one difference, and with it all else that it says."""
    found = of_tables(kind, protocol)
    assert set(found.values()) == {"holds"}
    assert {each.name for each in GATES if each.protocol == protocol and not each.slow} <= set(found)
    scopes = [each for each in TINY if "a->s b->s" in each.name]
    assert set(verdicts(kind, scopes, protocol).values()) == {None}


@pytest.mark.parametrize(("kind", "protocol"), [(Leaves, "aligned"), (Keeps, "aligned_with_timeout")])
def test_a_difference_that_is_not_declared_is_not_permitted(kind: type, protocol: str) -> None:
    """The tables would say of another scheme that it is that of `impl`."""
    undeclared = type("Undeclared", (kind,), {"capabilities": Capabilities()})
    assert "broken" in of_tables(undeclared, protocol).values()


def test_what_differs_beside_is_found() -> None:
    """A permitted difference would hide all that is wrong beside it."""

    class ContradictsToo(Contradicts, Leaves): ...

    class ForgetsWhatIsInFlight(Keeps):
        def _record(self, input_id: int, events: Any) -> None: ...

    assert "broken" in of_tables(ContradictsToo, "aligned").values()
    assert "broken" in of_tables(ForgetsWhatIsInFlight, "aligned_with_timeout").values()


@pytest.mark.parametrize(
    "lacks", ["aborts", "limits", *(pytest.param(each, marks=pytest.mark.slow) for each in ("ends", "timeout"))]
)
def test_a_table_is_compared_within_what_is_declared(lacks: str) -> None:
    """A sound class would be blamed for what it does not take part in, or hold because no gate was compared."""
    kind = type("Less", (PhasedAligner,), {"capabilities": Capabilities(**{lacks: False})})
    found = of_tables(kind, "aligned")
    assert set(found.values()) == {"holds"}
    assert {each.name for each in GATES if each.protocol == "aligned" and not each.slow} <= set(found)


class NoAborts(PhasedAligner):
    """Is never told to abort."""

    capabilities = Capabilities(aborts=False)


class Roomy(PhasedAligner):
    """Knows no limit."""

    def __init__(self, port: Any, config: Any) -> None:
        super().__init__(port, replace(config, max_buffer_per_input=9, max_buffer_memory_bytes=9_000))


@pytest.mark.parametrize(("limits", "verdict"), [(True, "broken"), (False, "holds")])
def test_without_limits_a_table_is_compared_up_to_the_first(limits: bool, verdict: str) -> None:
    """A class that knows no limit would be blamed for it."""
    kind = type("Declared", (Roomy,), {"capabilities": Capabilities(limits=limits)})
    found = of_tables(kind, "aligned")
    assert found["aligned table: as many bytes as one event"] == verdict
    assert verdict in found.values()


class LittleForgets(PhasedAligner):
    """Takes part in little, and gives a checkpoint up in silence when a newer one comes."""

    capabilities = Capabilities(aborts=False, ends=False, timeout=False, limits=False)

    def _decline(self, reason: Any) -> None:
        self.done = self.current.checkpoint_id
        self.port.resume(self.done)
        self._let_go()


def test_who_declares_little_is_compared_all_the_same() -> None:
    """A class that takes part in little would hold by the table because no gate is compared."""
    found = of_tables(LittleForgets, "aligned")
    assert "broken" in {verdict for name, verdict in found.items() if " table: " in name}
