"""Writers of sinks of an engine, checked in whole dataflows: mistakes come out, and what is sound holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from barrierlab.impl import Acknowledge, Event
from barrierlab.impl.checkpoint.actions import CoordinatorAction
from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.model.checkpoint.external_parts import External
from barrierlab.model.checkpoint.hosting import ExternalError
from barrierlab.model.checkpoint.interfaces import AtLeastOnceWriter, Capturable, IdempotentWriter, TwoPhaseWriter
from barrierlab.model.checkpoint.scripted import replay
from barrierlab.sim.check.runner import plan
from docs.parts.coordinator import Plain
from docs.parts.writer import Planted, TwoPhase
from tests.model.external_writers import CRASH, PLANTED, SOUND, AtLeastOnce, Idempotent
from tests.model.test_external_coordinators import WORLDS, check, outcome


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_mistake_comes_out(kind: type) -> None:
    """An engine would hear that its sink is right."""
    name, invariant = PLANTED[kind]
    found = outcome(kind, name)
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", [invariant]), found.why
    (violation,) = found.violations
    assert f"! {invariant}: " in violation.trace
    assert violation.steps > 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=[pytest.mark.slow] * (place > 0))
        for kind, names in SOUND.items()
        for place, name in enumerate(names)
    ],
)
def test_what_is_sound_holds(kind: type, name: str) -> None:
    """An engine would hear that it is wrong, though it writes batches, or names its transactions otherwise."""
    found = outcome(kind, name)
    assert (found.verdict, found.why) == ("holds", "every reachable state was seen")


def test_a_coordinator_and_the_writers_stand_in_together() -> None:
    """Anything that the one of an engine makes of the other would not be seen."""
    both = External.of([Plain, TwoPhase, AtLeastOnce, Idempotent])
    assert WORLDS[CRASH].check(both.parts("aligned"), None).verdict == "holds"
    broken = External.of([Plain, Planted])
    assert WORLDS[CRASH].check(broken.parts("aligned"), None).verdict == "broken"


def test_a_writer_is_asked_where_there_is_a_sink_of_its_guarantee() -> None:
    """Scopes in which it has nothing to do would count as judged."""
    for kind, guarantee in ((TwoPhase, "exactly_once"), (AtLeastOnce, "at_least_once"), (Idempotent, "idempotent")):
        chosen = plan("small", (), f"{kind.__module__}:{kind.__name__}")
        assert {WORLDS[name].bounds.guarantee for name in chosen.names} == {guarantee}
        assert len(chosen.names) >= 4


class NoMethod:
    """A writer in two phases without the second."""

    role = "two_phase_writer"

    def __init__(self, sink: str, external: object) -> None: ...

    def write(self, event: Event) -> None: ...

    def pre_commit(self, checkpoint_id: int) -> None: ...


class TakesNoKey(Idempotent):
    """Writes events, not rows."""

    def write(self, event: Event) -> None:  # type: ignore[override]
        ...


class CannotBeMade(AtLeastOnce):
    """Has no external system."""

    def __init__(self, sink: str) -> None: ...


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (NoMethod, "NoMethod has no method 'finish'; a two_phase_writer needs write, pre_commit, finish, prepared, "),
        (TakesNoKey, "TakesNoKey.write cannot be called with (key, event): too many positional arguments"),
        (CannotBeMade, "CannotBeMade cannot be made: TypeError: "),
    ],
)
def test_a_class_that_cannot_stand_in_is_told_so_in_a_line(kind: type, line: str) -> None:
    """An engine would see a traceback, or a counterexample that leads nowhere."""
    with pytest.raises(ExternalError) as failed:
        External.of([kind]).parts("aligned")
    assert str(failed.value).startswith(line)
    assert "\n" not in str(failed.value)


class PreparesUnderANumber(TwoPhase):
    """Names transactions by numbers."""

    def pre_commit(self, checkpoint_id: int) -> None:
        self.external.prepare(checkpoint_id, self.open)  # type: ignore[arg-type]


class SpeaksOfOne(TwoPhase):
    """Answers a name where names are asked for."""

    def prepared(self) -> Iterable[str]:  # type: ignore[override]
        return "s-1"


class SpeaksOfNumbers(TwoPhase):
    """Answers numbers."""

    def prepared(self) -> Iterable[Any]:  # type: ignore[override]
        return [1]


class RollsBackTwice(TwoPhase):
    """Rolls back what is not prepared."""

    def recover(self, prepared: Sequence[str], checkpoint_id: int) -> None:
        self.external.roll_back("s-7")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (PreparesUnderANumber, "prepare of 1; allowed: a name of type str"),
        (SpeaksOfOne, "SpeaksOfOne.prepared answered 's-1'; allowed: names of transactions"),
        (SpeaksOfNumbers, "SpeaksOfNumbers.prepared answered 1; allowed: names of transactions"),
        (RollsBackTwice, "roll back of transaction s-7, which is not prepared; allowed: none"),
    ],
)
def test_what_it_may_not_do_comes_out_with_the_run(kind: type, why: str) -> None:
    """An engine would not see where its class fails."""
    found = outcome(kind, CRASH)
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", ["RAISED"])
    assert why in found.violations[0].reason
    assert "> trigger 1" in found.violations[0].trace or "> restore 0" in found.violations[0].trace


class RaisesAtTheEnd(TwoPhase):
    """Has nothing to finish with."""

    def finish(self) -> None:
        raise KeyError("no transaction")


class KnowsNoEnd(Plain):
    """Has no place for a task that has ended."""

    def finished(self, task: str, now_ns: int, part: Acknowledge | None) -> Iterable[CoordinatorAction]:
        raise KeyError(task)


@pytest.mark.parametrize("kind", [RaisesAtTheEnd, KnowsNoEnd])
def test_what_comes_of_an_exception_at_the_end_is_not_what_is_broken(kind: type) -> None:
    """The shortest run would end with LIVE, of a task that never ends, or with nothing: an engine would look there."""
    components = External.of([kind]).parts("aligned")
    (violation,) = WORLDS[CRASH].check(components, None).violations
    assert re.search(r"KeyError: '.*' \(in test_external_writers\.py, line \d+\)$", violation.reason)
    assert [line for line in violation.trace.splitlines() if line.startswith("!")] == [
        f"! {violation.invariant}: {violation.reason}"
    ]
    assert replay(violation.trace, components) == violation.trace


class NoAborts(TwoPhase):
    """Of an engine that aborts nothing."""

    capabilities = Capabilities(aborts=False)
    abort = None  # type: ignore[assignment]


def test_what_it_does_not_declare_may_be_missing() -> None:
    """An engine would have to write a method that is never called."""
    chosen = plan("small", (), f"{__name__}:NoAborts")
    assert chosen.undeclared[0] == "aborts"
    assert outcome(NoAborts, CRASH).verdict == "holds"
    with pytest.raises(ExternalError, match="has no method 'abort'"):
        External.of([type("Undeclared", (NoAborts,), {"capabilities": Capabilities()})]).parts("aligned")


def test_the_command_checks_a_writer(capsys: pytest.CaptureFixture[str]) -> None:
    """It could only be checked from Python."""
    status, out, _ = check(capsys, "--impl", "docs.parts.writer:Planted", "--scope", CRASH)
    assert status == 1
    assert "REC is broken: aligned: a->s; " in out


@pytest.mark.parametrize("shape", [TwoPhaseWriter, AtLeastOnceWriter, IdempotentWriter])
def test_the_interface_has_ten_methods_at_most(shape: type) -> None:
    """An engine would have to write more than it was asked to."""
    names = {name for each in (Capturable, shape) for name in vars(each) if not name.startswith("_")}
    assert 3 <= len({name for name in names if callable(getattr(shape, name))}) <= 10
