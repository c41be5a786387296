"""Sources of an engine, checked in whole dataflows: mistakes come out, and what is sound holds."""

from __future__ import annotations

from typing import Any

import pytest

from barrierlab.impl import CheckpointBarrier
from barrierlab.impl.checkpoint.recovery import TaskRestore
from barrierlab.model.checkpoint.external_parts import External
from barrierlab.model.checkpoint.external_source import ExternalSource
from barrierlab.model.checkpoint.hosting import ExternalError
from barrierlab.model.checkpoint.interfaces import Capturable, Source
from docs.parts.coordinator import Plain
from docs.parts.source import Log
from docs.parts.writer import TwoPhase
from tests.model.external_sources import PLANTED, EndsTwice, OfImpl
from tests.model.test_external_coordinators import CHAIN, WORLDS, check, outcome

FIRST = "aligned: a->s; events 1, checkpoints 1; no fault"


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_mistake_comes_out(kind: type) -> None:
    """An engine would hear that its source is right."""
    name, invariant = PLANTED[kind]
    found = outcome(kind, name)
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", [invariant]), found.why
    assert f"! {invariant}: " in found.violations[0].trace


def test_a_source_that_raises_at_its_end_comes_to_rest() -> None:
    """A check would go on for ever: what raises has not ended, and would be ended again."""
    (violation,) = outcome(EndsTwice, CHAIN).violations
    assert violation.invariant == "RAISED"
    assert violation.reason.startswith("a: ExternalError: end(); allowed: once (in external_sources.py, line ")


NAMES = [name for name in WORLDS if ": a->s; events 1, " in name]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((Log, name) for name in NAMES),
        *(pytest.param(OfImpl, name, marks=[pytest.mark.slow] * (n % 3 > 0)) for n, name in enumerate(NAMES)),
    ],
)
def test_what_is_sound_holds(kind: type, name: str) -> None:
    """An engine would hear that it is wrong, in one protocol or another."""
    found = outcome(kind, name)
    assert (found.verdict, found.why) == ("holds", "every reachable state was seen")


def test_a_source_that_makes_watermarks_and_is_restored_holds() -> None:
    """Anything that it sends again would be taken for wrong."""
    name = "aligned: a->m m->s; watermarks 1, emits True, events 1, checkpoints 1; closed input and crash"
    assert outcome(Log, name).verdict == "holds"


@pytest.mark.parametrize("finished", [False, True])
def test_a_source_is_told_whether_it_had_finished(finished: bool) -> None:
    """A source that had ended would read on behind a restore, or one that had not would be silent for ever."""
    heard: list[tuple[int, int, bool]] = []

    class Hears(Log):
        def recover(self, *arguments: Any) -> None:
            heard.append(arguments)
            super().recover(*arguments)

    ExternalSource(Hears, "a").recover(TaskRestore("a", None, 3, finished=finished), 2)
    assert heard == [(3, 2, finished)]


def test_all_parts_of_an_engine_stand_in_together() -> None:
    """Anything that one of them makes of another would not be seen."""
    assert WORLDS[CHAIN].check(External.of([Plain, Log, TwoPhase]).parts("aligned"), None).verdict == "holds"


class TakesTheTime(Log):
    """Is not told the time."""

    def on_barrier(self, barrier: CheckpointBarrier, now_ns: int) -> None:  # type: ignore[override]
        ...


class CannotBeMade(Log):
    """Reads no log."""

    def __init__(self, name: str) -> None: ...


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        (
            TakesTheTime,
            "TakesTheTime.on_barrier cannot be called with (barrier): missing a required argument: 'now_ns'",
        ),
        (CannotBeMade, "CannotBeMade cannot be made: TypeError: "),
        (type("Without", (), {"role": "source"}), "Without has no method 'read_next'; a source needs read_next, "),
    ],
)
def test_a_class_that_cannot_stand_in_is_told_so_in_a_line(kind: type, line: str) -> None:
    """An engine would see a traceback, or a counterexample that leads nowhere."""
    with pytest.raises(ExternalError) as failed:
        External.of([kind]).parts("aligned")
    assert str(failed.value).startswith(line)
    assert "\n" not in str(failed.value)


class ReadsFromNowhere(Log):
    """Begins before the log."""

    def read_next(self) -> None:
        self.port.read(0)


class SendsAWord(Log):
    """Sends no message."""

    def read_next(self) -> None:
        self.port.send("a1")  # type: ignore[arg-type]


class ForwardsAnId(Log):
    """Forwards no barrier."""

    def on_barrier(self, barrier: CheckpointBarrier) -> None:
        self.port.forward(barrier.checkpoint_id)  # type: ignore[arg-type]


class IsNowhere(Log):
    """Answers no position."""

    def position(self) -> Any:
        return None


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (ReadsFromNowhere, "read(0); allowed: a position from 1 on, while read_next is called"),
        (SendsAWord, "send('a1'); allowed: an Event or a Watermark"),
        (ForwardsAnId, "forward(1); allowed: the barrier"),
        (IsNowhere, "IsNowhere.position answered None; allowed: a number from 1 on"),
    ],
)
def test_what_it_may_not_do_comes_out_with_the_run(kind: type, why: str) -> None:
    """An engine would not see where its class fails."""
    found = outcome(kind, FIRST)
    assert (found.verdict, [each.invariant for each in found.violations]) == ("broken", ["RAISED"])
    assert why in found.violations[0].reason


def test_the_command_checks_a_source(capsys: pytest.CaptureFixture[str]) -> None:
    """It could only be checked from Python."""
    assert check(capsys, "--impl", "docs.parts.source:Planted", "--scope", FIRST)[0] == 1
    assert check(capsys, "--impl", "docs.parts.source:Log", "--scope", FIRST)[0] == 0


def test_the_interface_has_ten_methods_at_most() -> None:
    """An engine would have to write more than it was asked to."""
    names = {name for shape in (Capturable, Source) for name in vars(shape) if name[0] != "_"}
    assert len({name for name in names if callable(getattr(Source, name))}) == 9
