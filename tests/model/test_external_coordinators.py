"""A coordinator of an engine, checked in whole dataflows: mistakes come out, and what is sound holds."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from barrierlab.impl import Acknowledge, Decline, Event, Reason
from barrierlab.impl.checkpoint.actions import AbortTask, CoordinatorAction, Notify, Publish, Refused
from barrierlab.model.checkpoint.asked import is_small
from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.model.checkpoint.check import Outcome, WorldScope
from barrierlab.model.checkpoint.external_parts import External
from barrierlab.model.checkpoint.hosting import Copy, ExternalError, Hosted
from barrierlab.model.checkpoint.interfaces import Capturable, Coordinator
from barrierlab.model.suites.standard import SCOPES
from barrierlab.sim.check.report import summary
from barrierlab.sim.check.runner import check_one, plan
from docs.parts.coordinator import Plain
from tests.model.external_coordinators import PLANTED, NoEnds, Sound
from tests.sim.support import barrierlab, in_one_process

WORLDS = {each.name: each for group in ("tiny", "small") for each in SCOPES[group]() if isinstance(each, WorldScope)}
CHAIN = "aligned: a->s; events 1, checkpoints 1; crash"


def outcome(kind: type, name: str) -> Outcome:
    """Return what a class comes to in a scope."""
    scope = WORLDS[name]
    return scope.check(External.of([kind]).parts(scope.protocol), None)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_mistake_comes_out(kind: type) -> None:
    """An engine would hear that its coordinator is right."""
    name, invariant = PLANTED[kind]
    found = outcome(kind, name)
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", [invariant]), found.why
    (violation,) = found.violations
    assert f"! {invariant}: " in violation.trace
    assert violation.steps > 0


@pytest.mark.parametrize("kind", [Sound, Plain])
@pytest.mark.parametrize(
    "name",
    [
        "aligned: a->s; events 1, checkpoints 1; closed input",
        "aligned: a->s b->s; events 1, checkpoints 1; timeout",
        "aligned: a->s; events 2, checkpoints 2; abort",
        CHAIN,
    ],
)
def test_what_is_sound_holds_there(kind: type, name: str) -> None:
    """An engine would hear that it is wrong, whether it captures itself or is copied."""
    found = outcome(kind, name)
    assert (found.verdict, found.why) == ("holds", "every reachable state was seen")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Sound, Plain])
def test_what_is_sound_holds_in_every_tiny_scope(kind: type) -> None:
    """A sound coordinator would be broken where several tasks report at once."""
    names = [each.name for each in SCOPES["tiny"]() if isinstance(each, WorldScope) and is_small(each.bounds)]
    assert [
        name
        for name in names
        if WORLDS[name].check(External.of([kind]).parts(WORLDS[name].protocol), None).verdict != "holds"
    ] == []


def test_it_is_explored_whole() -> None:
    """The reduction leaves out orders of reports: a mistake that needs one of them would hold."""
    name = "aligned: a->s b->s; events 1, checkpoints 1; timeout"
    of_impl, its = (WORLDS[name].check(External.of(kinds).parts("aligned"), None) for kinds in ([], [Sound]))
    assert its.states > 3 * of_impl.states


class OneMethodShort:
    """No coordinator."""

    role = "coordinator"

    def __init__(self, config: object, tasks: object, sources: object, first_id: int) -> None: ...

    def trigger(self, now_ns: int) -> Iterable[CoordinatorAction]:
        return ()


class TakesLess(Plain):
    """A report without the time."""

    def acknowledge(self, report: Acknowledge) -> Iterable[CoordinatorAction]:  # type: ignore[override]
        return ()


class CannotBeMade(Plain):
    """Takes one argument."""

    def __init__(self, config: Any) -> None: ...


class FailsToBeMade(Plain):
    """Needs a cluster."""

    def __init__(self, *arguments: Any) -> None:
        raise RuntimeError("no cluster")


class CapturesOnly(Plain):
    """Cannot go back."""

    def capture(self) -> object:
        return None


class CapturesAList(CapturesOnly):
    """No value."""

    def capture(self) -> object:
        return []

    def restore(self, value: object) -> None: ...


class KeepsAGenerator(Plain):
    """Cannot be copied."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ids = (n for n in range(9))


class DeclaresAWord(Plain):
    """Declares it in description."""

    capabilities = "all"


class OfNoRole(Plain):
    """Misspelt."""

    role = "cordinator"


class SaysOnly(Coordinator):
    """Inherits what the interface says, and does nothing."""

    def __init__(self, *arguments: Any) -> None: ...


@pytest.mark.parametrize(
    ("kinds", "line"),
    [
        ([OneMethodShort], "OneMethodShort has no method 'acknowledge'; a coordinator needs trigger, acknowledge, "),
        ([SaysOnly], "SaysOnly has no method 'trigger'; "),
        ([TakesLess], "TakesLess.acknowledge cannot be called with (report, now_ns): too many positional arguments"),
        ([CannotBeMade], "CannotBeMade cannot be made: TypeError: "),
        (
            [FailsToBeMade],
            "FailsToBeMade cannot be made: RuntimeError: no cluster (in test_external_coordinators.py, line ",
        ),
        ([CapturesOnly], "CapturesOnly has 'capture' alone; allowed: both of capture and restore, or none"),
        ([CapturesAList], "CapturesAList.capture answered []: TypeError: "),
        ([KeepsAGenerator], "KeepsAGenerator cannot be copied: TypeError: cannot pickle 'generator' object; allowed: "),
        ([DeclaresAWord], "DeclaresAWord.capabilities is 'all'; allowed: a barrierlab.model.checkpoint.capabilities."),
        ([OfNoRole], "OfNoRole.role is 'cordinator'; allowed: aligner, coordinator, "),
        ([Plain, Sound], "Plain and Sound are both of role 'coordinator'; allowed: one of each role"),
    ],
)
def test_a_class_that_cannot_stand_in_is_told_so_in_a_line(kinds: list[type], line: str) -> None:
    """An engine would see a traceback, or a counterexample that leads nowhere."""
    with pytest.raises(ExternalError) as failed:
        External.of(kinds).parts("aligned")
    assert str(failed.value).startswith(line)
    assert "\n" not in str(failed.value)


class Raises(Plain):
    """An exception for a report."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Iterable[CoordinatorAction]:
        raise RuntimeError("a part that I do not know")


class AnswersAWord(Plain):
    """A word, which is iterable, too."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Iterable[CoordinatorAction]:
        return "done"  # type: ignore[return-value]


class AnswersNumbers(Plain):
    """No actions."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Iterable[CoordinatorAction]:
        return [1]  # type: ignore[list-item]


class TellsAStranger(Plain):
    """A task that the job does not have."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Iterable[CoordinatorAction]:
        return [Notify("b", 1)]


class PublishesDeclines(Plain):
    """A manifest of what is no part."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Iterable[CoordinatorAction]:
        return [Publish(1, (Decline("a", 1, Reason.DECLINED),))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Raises, "RuntimeError: a part that I do not know"),
        (AnswersAWord, "AnswersAWord.acknowledge answered 'done'; allowed: actions, in a tuple or a list"),
        (AnswersNumbers, "AnswersNumbers.acknowledge answered 1; allowed: Triggered, Inject, Publish"),
        (TellsAStranger, "task 'b'; allowed: one of a, s"),
        (PublishesDeclines, "allowed: reports, as they were acknowledged"),
    ],
)
def test_what_it_may_not_answer_comes_out_with_the_run(kind: type, why: str) -> None:
    """An engine would not see where its class fails."""
    found = outcome(kind, "aligned: a->s; events 1, checkpoints 1; no fault")
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", ["RAISED"])
    assert why in found.violations[0].reason
    assert "> ack a 1" in found.violations[0].trace


class ByChance(Plain):
    """Counts the calls of all its objects, and goes by that."""

    calls = 0

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> Iterable[CoordinatorAction]:
        ByChance.calls += 1
        found = list(super().abort(checkpoint_id, reason, now_ns))
        orders = [each for each in found if type(each) is AbortTask]
        others = [each for each in found if type(each) is not AbortTask]
        return others + orders[:: 1 if ByChance.calls % 2 else -1]


def test_one_that_does_not_do_the_same_twice_is_told_so() -> None:
    """A verdict that looked answers up after the first time would be one on one half of what it does."""
    found = outcome(ByChance, "aligned: a->s; events 1, checkpoints 1; abort")
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", ["RAISED"])
    assert "coordinator does not do the same twice" in found.why


# Copies.


class Held:
    """Something to copy, with a field that is in two places."""

    def __init__(self) -> None:
        self.known = {1: ["a"]}
        self.current = self.known[1]
        self.chance = random.Random(1)
        self.port = PORT


PORT = object()


def test_a_copy_is_told_from_another_by_all_that_it_holds() -> None:
    """Two states would be taken for one, and what follows from the second never be seen."""
    hosted = Hosted(Held, (PORT,))
    start = hosted.capture()
    assert start == hosted.capture()
    assert hash(start) == hash(Hosted(Held, (PORT,)).capture())
    for change in (
        lambda buffered: buffered.current.append("b"),
        lambda buffered: buffered.chance.random(),
        lambda buffered: setattr(buffered, "current", ["a"]),  # no longer the same object
        lambda buffered: buffered.known.update({2: []}),
        lambda buffered: setattr(buffered, "more", True),
    ):
        hosted.restore(start)
        change(hosted.machine)
        assert hosted.capture() != start
    hosted.restore(start)
    assert hosted.capture() == start
    assert hosted.machine.port is PORT
    assert hosted.machine.current is hosted.machine.known[1]
    assert isinstance(start, Copy)
    assert repr(start) == "<a copy of a Held>"


def test_a_copy_goes_back_into_a_machine_with_ports_of_its_own() -> None:
    """The calls of a second machine would go to the port of the first."""

    class Ported:
        def __init__(self, port: object) -> None:
            self.port = port

    first, second = object(), object()
    captured = Hosted(lambda: Ported(first), (first,)).capture()
    hosted = Hosted(lambda: Ported(second), (second,))
    hosted.restore(captured)
    assert hosted.machine.port is second
    assert hosted.capture() == captured


class Nested:
    """Objects in objects, each read by what is made of it on the way."""

    def __init__(self, depth: int) -> None:
        self.inner = [Nested(depth - 1), Nested(depth - 1)] if depth else [Event("a", n) for n in range(depth + 3)]


def test_equal_machines_are_copied_as_equal_however_often() -> None:
    """One state would be taken for two, and a machine for one that does not do the same twice."""
    machine, noise, copies = Nested(4), list[object](), set[Copy]()
    for number in range(50):
        noise += [{"a": number} for _ in range(number)]  # so that memory is used otherwise each time
        del noise[::3]
        copies |= {Copy(machine, ()), Copy(Nested(4), ())}
    assert len(copies) == 1


def test_one_and_true_are_not_the_same() -> None:
    """A flag and a count would be one state."""
    assert Copy([1], ()) != Copy([True], ())
    assert Copy([1], ()) != Copy([1.0], ())
    assert Copy([1], ()) != Copy((1,), ())


def test_the_interface_has_ten_methods_at_most() -> None:
    """An engine would have to write more than it was asked to."""
    methods = [name for shape in (Capturable, Coordinator) for name in vars(shape) if not name.startswith("_")]
    assert len({name for name in methods if callable(getattr(Coordinator, name))}) <= 10


# The command.


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Call it without processes: one takes longer to start than these scopes."""
    return in_one_process(capsys, "check", *arguments)


MODULE = "tests.model.external_coordinators"


def test_the_command_checks_a_coordinator_and_an_aligner_together(capsys: pytest.CaptureFixture[str]) -> None:
    """They would have to be checked one by one."""
    both = ("--impl", "docs.parts.coordinator:Plain", "--impl", "docs.aligner.aligner:PhasedAligner")
    status, out, _ = check(capsys, *both, "--scope", CHAIN)
    assert status == 0
    assert "verdict: holds (1 scopes, " in out
    assert check(capsys, *both, "--scope", CHAIN, "--judge", "table")[0] == 2
    assert check(capsys, "--impl", f"{MODULE}:NotifiesNoSink", *both[2:], "--scope", CHAIN)[0] == 1


def test_a_result_is_at_the_first_of_several_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Code scanning would have nowhere to show it, or the command would end in an error behind its verdict."""
    several = ("--impl", "docs.parts.coordinator:Planted", "--impl", "docs.parts.writer:TwoPhase")
    name = "aligned: a->s; events 1, checkpoints 2; closed input and crash"
    status, _, _ = check(capsys, *several, "--scope", name, "--sarif", str(tmp_path / "found.sarif"))
    (result,) = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    (location,) = result["locations"]
    assert (status, location["logicalLocations"][0]["fullyQualifiedName"]) == (1, "docs.parts.coordinator.Planted")


def test_the_command_says_that_larger_scopes_are_not_asked() -> None:
    """A verdict over a third of a group would look like one over all of it."""
    chosen = plan("tiny", ["aligned_with_timeout"], "docs.parts.coordinator:Plain")
    assert [len(chosen.names), len(chosen.not_asked), chosen.undeclared] == [10, 6, ("size",)]
    assert chosen.not_asked[0].why.startswith("it is one of the larger dataflows, which need the reduction ")
    outcomes = [check_one(chosen, chosen.names[0])]
    assert "not asked: size (larger dataflows, which need the reduction" in summary(outcomes, chosen)


def test_the_command_says_what_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict without ends would look like one with them."""
    assert NoEnds.capabilities == Capabilities(ends=False)
    name = "aligned: a->s; events 1, checkpoints 1; closed input"
    status, out, err = check(capsys, "--impl", f"{MODULE}:NoEnds", "--scope", name)
    assert (status, out) == (2, "")
    assert "nothing is left to ask of --impl " in err
    assert err.endswith("all of it needs what NoEnds does not declare: ends\n")
    status, out, _ = check(capsys, "--impl", f"{MODULE}:NoEnds", "--scope", CHAIN)
    assert (status, "verdict: holds" in out) == (0, True)


class NeverTriggers(Plain):
    """Refuses every checkpoint, and takes no final one."""

    def trigger(self, now_ns: int) -> Iterable[CoordinatorAction]:
        return [Refused(Reason.TOO_MANY_PENDING)]

    def _look(self) -> Iterable[CoordinatorAction]:
        return []


def test_one_that_never_triggers_has_judged_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """It would hold because nothing ever happens, and nobody would say so."""
    name = "aligned: a->s; events 1, checkpoints 1; no fault"
    status, out, _ = check(capsys, "--impl", f"{__name__}:NeverTriggers", "--scope", name, "--strict")
    assert status == 3
    assert "vacuous: CUT had nothing to judge" in out


def test_a_verdict_of_two_classes_is_kept_by_the_sources_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a change in the second of them the old verdict would count. A process notes what it opens."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "of_one.py").write_text(
        "from barrierlab.impl import CheckpointCoordinator\nclass One(CheckpointCoordinator): pass\n"
    )
    (tmp_path / "of_two.py").write_text("from barrierlab.impl import BarrierAligner\nclass Two(BarrierAligner): pass\n")
    arguments = ("--impl", "of_one:One", "--impl", "of_two:Two", "--scope", CHAIN, "--changed")
    assert barrierlab(capsys, "check", *arguments)[0] == 0
    assert "1 kept" in barrierlab(capsys, "check", *arguments)[1]
    (tmp_path / "of_two.py").write_text(
        "from barrierlab.impl import BarrierAligner\nclass Two(BarrierAligner): 'changed'\n"
    )
    status, out, err = barrierlab(capsys, "check", *arguments)
    assert (status, "kept" in out) == (0, False)
    assert "what they depend on has changed" in err
