"""An aligner of another's is checked like the one of `impl`, and one that cannot stand in is reported so in a line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from barrierlab.impl import BarrierAligner, UnalignedCheckpointer
from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.messages import CheckpointBarrier
from barrierlab.model.checkpoint import external
from barrierlab.model.checkpoint.check import WorldScope
from barrierlab.model.checkpoint.external import PROTOCOLS, ExternalError, ExternalGate, goes_unaligned, load, parts_of
from barrierlab.model.checkpoint.gate_scopes import SCOPES as GATES
from barrierlab.model.checkpoint.gate_scopes import GateScope
from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.trace import judged
from barrierlab.model.suites.standard import SCOPES
from docs.aligner.aligner import PhasedAligner
from docs.aligner.planted import PhasedAligner as Planted
from docs.aligner.unaligned import RecordingAligner
from tests import breadth


@cache
def worlds(name: str) -> list[WorldScope]:
    """The dataflows of a scope."""
    return [scope for scope in SCOPES[name]() if isinstance(scope, WorldScope)]


def of_protocol(scopes: list[Any], protocol: str = "aligned") -> list[Any]:
    """Those that ask for it, to be parametrized with."""
    return [pytest.param(each, id=str(getattr(each, "name", each))) for each in scopes if each.protocol == protocol]


# One that is right.


@pytest.mark.slow
@pytest.mark.parametrize("scope", of_protocol([each for each in worlds("small") if each not in worlds("tiny")]))
def test_a_sound_aligner_holds_in_small_dataflows(scope: WorldScope) -> None:
    """A team would hear of a fault that it has not. (In tiny ones: `test_your_aligner`.)"""
    outcome = scope.check(parts_of(PhasedAligner, "aligned"), None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())


SLOW = [pytest.param(scope, id=scope.name, marks=[pytest.mark.slow] * scope.slow) for scope in GATES]


@pytest.mark.parametrize("scope", [each for each in SLOW if each.values[0].protocol == "aligned"])  # type: ignore[attr-defined]
def test_a_sound_aligner_does_what_the_table_says(scope: GateScope) -> None:
    """An aligner of another form would have states that the comparison takes for others than the table's."""
    outcome = scope.check(parts_of(PhasedAligner, "aligned"), None)
    assert (outcome.verdict, outcome.states) == ("holds", scope.states)


def test_an_aligner_may_inherit_that_of_impl() -> None:
    """Anything that it only counts would make new states of old ones."""

    class Inherited(BarrierAligner):
        """Nothing else."""

    (scope,) = [each for each in GATES if str(each) == "aligned: as many bytes as one event"]
    outcome = scope.check(parts_of(Inherited, "aligned"), None)
    assert (outcome.verdict, outcome.states) == ("holds", scope.states)


# One with a bug.


def test_a_bug_is_refuted_by_a_shortest_run() -> None:
    """An aligner could forget what was aborted, and nobody would notice (A-09)."""
    scope = WorldScope("two sources", Bounds("a->s b->s", events=1, checkpoints=1, cancels=1))
    outcome = scope.check(parts_of(Planted, "aligned"), None)
    (violation,) = outcome.violations
    assert (violation.invariant, violation.reason) == ("LIVE", "s still waits for checkpoint 1")
    moves = [line for line in violation.trace.splitlines() if line.startswith("> ")]
    assert len(moves) == violation.steps == 15
    assert [str(each) for each in judged(violation.trace).violations] == [violation.trace.splitlines()[-1][2:]]


def test_a_bug_parts_from_the_table_in_two_steps() -> None:
    """The comparison with the table would pass whatever another's code does."""
    (scope,) = [each for each in GATES if str(each) == "aligned: one input"]
    (violation,) = scope.check(parts_of(Planted, "aligned"), None).violations
    assert violation.trace.splitlines()[1:3] == [
        "arrive 0 barrier 1, and no image: snapshot failed",
        "arrive 0 barrier 1",
    ]
    assert "the table says 'ignore 0 barrier 1', the machine 'block 0 1;" in violation.reason


# One that goes unaligned.


QUICK = [
    "aligned: one input",
    "unaligned: one input",
    "unaligned: what is newer waits",
    "unaligned: no room to buffer more",
    "aligned_with_timeout: a sink",
    "aligned_with_timeout: as many bytes as one event",
    "aligned_with_timeout: a sink with three inputs",
]
UNALIGNED = [
    pytest.param(each, id=str(each), marks=[pytest.mark.slow] * (str(each) not in QUICK))
    for each in GATES
    if each.protocol in PROTOCOLS
]


@pytest.mark.parametrize("scope", UNALIGNED)
def test_one_that_goes_unaligned_is_compared_with_its_table(scope: GateScope) -> None:
    """Anything that the gate around another's aligner keeps for it would not be what the protocol asks for."""
    outcome = scope.check(parts_of(RecordingAligner, scope.protocol), None)
    assert (outcome.verdict, outcome.states) == ("holds", scope.states)


@pytest.mark.parametrize("crashes", [0, 1])
@pytest.mark.parametrize("mode", ["unaligned", pytest.param("aligned_with_timeout", marks=pytest.mark.slow)])
def test_one_that_goes_unaligned_holds_in_a_dataflow(mode: str, crashes: int) -> None:
    """Its tasks would acknowledge another record than it told, or would not come back from it."""
    bounds = Bounds("a->join b->join join->s", mode, 1, crashes=crashes, guarantee="exactly_once" if crashes else "")
    outcome = WorldScope("a join", bounds).check(parts_of(RecordingAligner, mode), None)
    assert (outcome.verdict, outcome.violations) == ("holds", ())


def test_who_records_nothing_is_refuted() -> None:
    """Anything in flight would be lost, and nobody would notice (U-04)."""

    class RecordsNothing(RecordingAligner):
        def _record(self, input_id: int, events: list[Any]) -> None:
            """Not even a word to the port."""

    bounds = Bounds("a->join b->join join->s", mode="unaligned", events=1, checkpoints=1)
    outcome = WorldScope("a join", bounds).check(parts_of(RecordsNothing, "unaligned"), None)
    assert outcome.violations[0].invariant == "CUT"


def test_it_is_known_who_goes_unaligned() -> None:
    """A class would be asked for what it never promised, or not for what it did."""
    kinds = (PhasedAligner, RecordingAligner, BarrierAligner, UnalignedCheckpointer)
    assert [goes_unaligned(kind) for kind in kinds] == [False, True, False, True]


# Classes that cannot stand in.


class LacksAMethod:
    """No more than this."""

    def __init__(self, port: Any, config: Any) -> None: ...

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        return True


class CannotBeMade(PhasedAligner):
    """Asks for other arguments."""

    def __init__(self, port: Any) -> None:
        super().__init__(port, None)


class AnswersNothing(PhasedAligner):
    """Says not whether it took the message."""

    def offer(self, input_id: int, message: Any, now_ns: int) -> None:
        super().offer(input_id, message, now_ns)


class AnswersAFloat(PhasedAligner):
    """Has deadlines in seconds."""

    def next_deadline_ns(self) -> float | None:
        deadline_ns = super().next_deadline_ns()
        return None if deadline_ns is None else deadline_ns / 1


class HasNoAttribute(PhasedAligner):
    """Does not say whether there is something to drain."""

    can_drain = property()


class CapturesAList(PhasedAligner):
    """Gives a value that can change."""

    def capture(self) -> Any:
        return list(super().capture())


class CapturesItself(PhasedAligner):
    """Gives no value at all."""

    def capture(self) -> Any:
        return self

    def restore(self, value: Any) -> None:
        pass


class ForgetsOnTheWayBack(PhasedAligner):
    """Captures more than it restores."""

    def restore(self, value: Any) -> None:
        super().restore(value)
        self.done = 0


class CapturesTooLittle(PhasedAligner):
    """Leaves out what is done: what it captures looks the same when it is captured again."""

    def capture(self) -> Any:
        return super().capture()[:-1]

    def restore(self, value: Any) -> None:
        super().restore((*value, self.done))


class Raises(PhasedAligner):
    """Cannot abort."""

    def _abort(self, checkpoint_id: int) -> None:
        raise KeyError(checkpoint_id)


class Exits(PhasedAligner):
    """Ends the process, as if all were well."""

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool:
        sys.exit(0)


class ExitsWhenMade(PhasedAligner):
    """The same at once."""

    def __init__(self, port: Any, config: Any) -> None:
        sys.exit(3)


class IsAwaited(PhasedAligner):
    """Does nothing before somebody awaits it."""

    async def abort(self, checkpoint_id: int, reason: Any, now_ns: int) -> None:
        super().abort(checkpoint_id, reason, now_ns)


class TakesMore(PhasedAligner):
    """Wants more than it gets."""

    def __init__(self, port: Any, config: Any, log: Any) -> None:
        super().__init__(port, config)


class CallsWhatThereIsNot(PhasedAligner):
    """Knows the port from elsewhere."""

    def _apply(self, input_id: int, message: Any, now_ns: int) -> None:
        self.port.emit(message)


class CallsByAnOlderName(PhasedAligner):
    """Knows the port from before."""

    def _buffer(self, input_id: int, message: Any) -> bool:
        self.port.hold(input_id, message)
        return True


class BlocksAnInputThatThereIsNot(PhasedAligner):
    """Counts from 7."""

    def _on_barrier(self, input_id: int, barrier: Any, now_ns: int) -> None:
        self.port.block(input_id + 7, barrier.checkpoint_id)


class ForwardsAnId(PhasedAligner):
    """Forwards the id of a barrier."""

    def _on_barrier(self, input_id: int, barrier: Any, now_ns: int) -> None:
        self.port.forward(barrier.checkpoint_id)


class DeclinesInItsOwnWords(PhasedAligner):
    """Has a reason of its own."""

    def _decline(self, reason: Any) -> None:
        super()._decline(f"because of {reason}")


WRONG: list[tuple[type, str, str]] = [
    (Exits, "aligned", "Exits raised SystemExit: 0 (in test_external.py, line "),
    (ExitsWhenMade, "aligned", "ExitsWhenMade cannot be made: SystemExit: 3 (in test_external.py, line "),
    (IsAwaited, "aligned", "IsAwaited.abort is an async def, and nothing awaits it; allowed: a plain method"),
    (TakesMore, "aligned", "TakesMore cannot be made: TypeError: TakesMore.__init__() missing 1 required"),
    (
        CallsWhatThereIsNot,
        "aligned",
        "CallsWhatThereIsNot raised AttributeError: a port has no 'emit'; it has deliver, end_input, snapshot, ",
    ),
    (
        CallsByAnOlderName,
        "aligned",
        "CallsByAnOlderName raised AttributeError: a port has no 'hold', but 'buffer' (in test_external.py, line ",
    ),
    (
        BlocksAnInputThatThereIsNot,
        "aligned",
        "BlocksAnInputThatThereIsNot calls port.block for input 7 at 'arrive 0 barrier 1'; allowed: 0 or 1",
    ),
    (ForwardsAnId, "aligned", "ForwardsAnId calls port.forward with 1 at 'arrive 0 barrier 1'; allowed: a barrier"),
    (DeclinesInItsOwnWords, "aligned", "DeclinesInItsOwnWords calls port.decline with 'because of "),
    (
        LacksAMethod,
        "aligned",
        "LacksAMethod has no method 'drain_next'; aligned checkpoints need offer, drain_next",
    ),
    (PhasedAligner, "unaligned", "PhasedAligner has no method 'offer_overtaking'; unaligned checkpoints need offer,"),
    (
        BarrierAligner,
        "aligned_with_timeout",
        "BarrierAligner goes not unaligned; allowed: a subclass of UnalignedCheckpointer",
    ),
    (CannotBeMade, "aligned", "CannotBeMade cannot be made: TypeError: CannotBeMade.__init__() takes 2"),
    (AnswersNothing, "aligned", "AnswersNothing.offer answered None; allowed: bool"),
    (AnswersAFloat, "aligned", "AnswersAFloat.next_deadline_ns answered 3.0; allowed: int or None"),
    (HasNoAttribute, "aligned", "HasNoAttribute has no attribute 'can_drain'; allowed: a bool, attribute or"),
    (CapturesAList, "aligned", "CapturesAList.capture answered [(<Phase.FLOWING"),
    (CapturesItself, "aligned", "CapturesItself does not restore what it captured: <"),
    (
        ForgetsOnTheWayBack,
        "aligned",
        "ForgetsOnTheWayBack does not restore what it captured: its part 6, 1, becomes 0; ",
    ),
    (CapturesTooLittle, "aligned", "CapturesTooLittle does not restore what it captured: restored after '"),
    (Raises, "aligned", "Raises raised KeyError: 2 (in test_external.py, line "),
]


@pytest.mark.parametrize(("kind", "protocol", "told"), WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_a_class_that_cannot_stand_in_is_told_so_in_a_line(kind: type, protocol: str, told: str) -> None:
    """A team would be shown a traceback, or a counterexample of what it did not mean."""
    with pytest.raises(ExternalError) as raised:
        parts_of(kind, protocol)
    assert str(raised.value).startswith(told)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("field", range(7))
def test_whatever_a_capture_lacks_is_found(field: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that is not captured would be another's, and what is found would be an accident."""
    assert breadth.examples(60) == external._WALKS
    monkeypatch.setattr(external, "_WALKS", 60)  # as many as are shipped: a part of them finds it by luck

    class Lacks(PhasedAligner):
        def capture(self) -> Any:
            whole = super().capture()
            return whole[:field] + whole[field + 1 :]

        def restore(self, value: Any) -> None:
            own = super().capture()[field]
            super().restore((*value[:field], own, *value[field:]))

    with pytest.raises(ExternalError, match="does not restore what it captured"):
        parts_of(Lacks, "aligned")


# What goes wrong only later, where nobody looked before.


class AnswersNothingLater(PhasedAligner):
    """To a barrier that comes when everything is over."""

    def offer(self, input_id: int, message: Any, now_ns: int) -> bool | None:
        took = super().offer(input_id, message, now_ns)
        return took if self.done < 1 or type(message) is not CheckpointBarrier else None


class CapturesAListLater(PhasedAligner):
    """Once a checkpoint is done."""

    def capture(self) -> Any:
        return super().capture() if self.done < 1 else list(super().capture())


class HasNoTimeLater(PhasedAligner):
    """The same."""

    def can_take(self, input_id: int) -> Any:
        return super().can_take(input_id) if self.done < 1 else None


class ExitsLater(PhasedAligner):
    """Ends the process when a second checkpoint completes."""

    def _let_go(self) -> None:
        if self.done > 1:
            sys.exit(0)
        super()._let_go()


class CannotBePutBackLater(PhasedAligner):
    """The same."""

    def restore(self, value: Any) -> None:
        super().restore(value)
        if self.done:
            raise ArithmeticError


LATER: list[tuple[type, str]] = [
    (AnswersNothingLater, "ExternalError: AnswersNothingLater.offer answered None; allowed: bool"),
    (CapturesAListLater, "ExternalError: CapturesAListLater.capture answered [("),
    (HasNoTimeLater, "ExternalError: HasNoTimeLater.can_take answered None; allowed: bool"),
    (CannotBePutBackLater, "ArithmeticError"),
    (ExitsLater, "SystemExit: 0"),
]


@pytest.fixture
def unexamined(monkeypatch: pytest.MonkeyPatch) -> Callable[[type], Any]:
    """The components of a class that nobody has looked at before: what it does wrong is met in the exploration."""
    monkeypatch.setattr("barrierlab.model.checkpoint.external._examine", lambda *_: None)
    return lambda kind: parts_of(kind, "aligned")


@pytest.mark.parametrize(("kind", "told"), LATER, ids=lambda value: getattr(value, "__name__", ""))
def test_a_wrong_answer_deep_in_a_dataflow_is_a_violation(
    kind: type, told: str, unexamined: Callable[[type], Any]
) -> None:
    """The exploration would end with a traceback, and not with a run that leads there."""
    bounds = Bounds("a->s b->s", events=1, checkpoints=2)
    (violation,) = WorldScope("two sources", bounds).check(unexamined(kind), None).violations
    assert (violation.invariant, violation.reason.startswith(f"s: {told}")) == ("RAISED", True), violation.reason
    assert violation.steps > 3
    assert "> deliver" in violation.trace


@pytest.mark.parametrize(("kind", "told"), LATER, ids=lambda value: getattr(value, "__name__", ""))
def test_a_wrong_answer_deep_in_a_gate_is_a_violation(kind: type, told: str, unexamined: Callable[[type], Any]) -> None:
    """As above, where it is compared with the table."""
    (scope,) = [each for each in GATES if str(each) == "aligned: three inputs"]
    (violation,) = scope.check(unexamined(kind), None).violations
    assert f"raised {told}" in violation.reason
    assert len(violation.reason.splitlines()) == 1


def test_what_only_counts_is_said_to_be_left_out() -> None:
    """An exploration without an end would look like one that only takes long."""

    class Counts(PhasedAligner):
        count = 0

        def offer(self, *arguments: Any) -> Any:
            self.count += 1
            return super().offer(*arguments)

        def capture(self) -> Any:
            return self.count, super().capture()

        def restore(self, value: Any) -> None:
            self.count, rest = value
            super().restore(rest)

    (scope,) = [each for each in GATES if str(each) == "aligned: one input"]
    outcome = scope.check(parts_of(Counts, "aligned"), None)
    assert outcome.verdict == "undecided"
    assert outcome.why.endswith("leave out of capture what only counts")


def test_a_new_gate_goes_on_from_a_cut_in_silence() -> None:
    """After a crash, a task would tell the coordinator of what was over long before."""
    told: list[str] = []

    class Port:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: told.append(name)

    gate = ExternalGate(PhasedAligner, Port(), BarrierAlignerConfig(2), None, False)  # type: ignore[arg-type]
    gate.recover(3, (1,))
    assert told == []
    assert (gate.last_terminated_id, gate.can_take(0), gate.can_take(1)) == (3, True, False)
    gate.offer(0, CheckpointBarrier(3, 3), 0)
    gate.offer(0, CheckpointBarrier(4, 4), 0)
    assert told == ["ignore", "block", "snapshot", "forward", "complete", "resume"]


# Which class is meant.


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("docs.aligner.aligner", "allowed: MODULE:CLASS, such as --impl my_package.my_module:MyAligner"),
        ("docs.aligner.nowhere:It", "there is no module 'docs.aligner.nowhere'; allowed: what is installed, or"),
        ("nowhere.aligner:It", "there is no module 'nowhere'; allowed: what is installed, or"),
        ("docs.aligner.aligner:It", "docs.aligner.aligner has no class 'It'; its classes: Phase, PhasedAligner"),
        ("broken_module:It", "importing broken_module failed: ZeroDivisionError: division by zero"),
        ("needs_more:It", "importing needs_more failed: ModuleNotFoundError: No module named 'more'"),
        ("leaves:It", "importing leaves failed: SystemExit: 3"),
    ],
)
def test_a_name_that_means_no_class_is_told_so(
    spec: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip of the keyboard would end in a traceback."""
    for name, text in (("broken_module", "1 / 0"), ("needs_more", "import more"), ("leaves", "raise SystemExit(3)")):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ExternalError) as raised:
        load(spec)
    name = repr(spec) if ":" not in spec else spec
    assert str(raised.value).startswith(f"--impl {name}: {told}")
    assert len(str(raised.value).splitlines()) == 1


def test_a_class_is_found_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A team would have to install its code to check it."""
    (tmp_path / "of_a_team.py").write_text("class Theirs:\n    pass\n")
    monkeypatch.setattr("sys.path", ["elsewhere"])
    assert load("of_a_team:Theirs", str(tmp_path)).__name__ == "Theirs"


def test_protocols_are_those_of_the_tables() -> None:
    """A mode would be left out."""
    assert set(PROTOCOLS) == {scope.protocol for scope in GATES if protocol_of(scope.protocol).is_exact}
