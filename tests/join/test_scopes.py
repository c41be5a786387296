"""The scopes of joins: the code does what the document says in each, and a code that does not is shown by its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barrierlab.impl.join import (
    JoinBarrier,
    JoinStage,
    LatestValueJoinBarrier,
    MapChange,
    MergeMapAuthority,
    MergeMapJoiner,
    Miss,
    Observed,
    SequenceJoinBarrier,
    SlotRing,
    TimestampJoinBarrier,
)
from barrierlab.impl.join.inputs import JoinInput
from barrierlab.model.checkpoint.check import Outcome
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.join.scopes import SMALL

STATES = {
    "join: lockstep": 74,
    "join: offset": 56,
    "join: window": 47,
    "join: a dropped frame": 51,
    "join: a dropped frame is absent": 51,
    "join: three inputs": 81,
    "join: announced again and again": 99,
    "join: times in lockstep": 66,
    "join: cursors": 60,
    "join: epochs of an input": 20,
    "join: cursors of a stage before": 235,
    "join: cursors of a stage before that do not count": 8,
    "join: the ends of the range": 64,
    "join: a stale input": 657,
    "join: maps of other epochs, outputs and kinds": 534,
    "join: no map in force": 150,
    "join: an announce that is no map, of another epoch": 12,
    "join: a changed map within its epoch": 1_554,
    "join: a new epoch of the output": 915,
    "join: an epoch that is known before": 7,
    "join: lateness": 30,
    "join: lateness of windows": 48,
    "join: times that go back": 539,
    "join: a rejected stream and a new epoch of the output": 107,
    "join: times that are absent": 134,
    "join: times of a stage before": 80,
    "join: the ends of the range of times": 48,
    "join: output times in order": 30,
    "join: clocks": 48,
    "join: an output by another clock": 6,
    "join: the latest value": 2_310,
    "join: the ends of the range of the latest value": 16,
    "join: the latest value by timestamp": 60,
    "join: the latest value and a map of the other kind": 12,
    "join: the latest value of the streams of a timestamp map": 59,
    "join: ticks, and a frame that is gone": 336,
    "join: ticks by the newest time, in any order": 144,
    "join: ticks without a stale input": 845,
    "join: overwritten slots": 107,
    "join: a restart": 62,
    "join: an overrun stage": 1_173,
    "join: an overrun stage of two inputs": 641,
    "join: an overrun stage that goes without": 250,
    "join: an overrun stage without an input that was never seen": 154,
    "join: an output time before its window, of which the input is stale": 100,
    "join: a writer in between": 241,
    "join: frames dropped inside a window": 82,
    "join: a map that changes while it is read": 901,
    "join: a map that is out of force while it is read": 6,
    "join: output times that wait": 140,
    "join: output times that take the place of another": 114,
    "join: output times that are held": 96,
    "join: an output time whose map changes": 265,
    "join: frames of a time window": 54,
    "join: outputs without a stale input": 1_605,
    "join: output times without a stale input": 826,
    "join: slots": 74,
    "join: slots of an older epoch, by time": 15,
    "late join: an authority": 7_080,
    "late join: a joiner": 1_187,
    "join table: rules": 2_019,
    "join table: maps": 113,
    "join table: settings": 116,
    "join table: messages": 523,
}
"""The states of each scope: a number moves when the meaning does."""
MOST_STATES = 1_000
"""Of a scope that is explored in a run without slow tests."""


def checked(name: str) -> Outcome:
    """The outcome of a scope."""
    scope = next(each for each in SMALL if each.name == name)
    return scope.check(Components(), None)


def test_each_scope_has_a_pinned_number() -> None:
    """A scope could be lost, and nobody would see it."""
    assert [scope.name for scope in SMALL] == list(STATES)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (states > MOST_STATES)) for name, states in STATES.items()]
)
def test_the_code_does_what_the_document_says(name: str) -> None:
    """A join that is ready too early or too late, or skips what it has, would hold."""
    outcome = checked(name)
    assert (outcome.verdict, outcome.why, outcome.states) == ("holds", outcome.why, STATES[name])


def _never_stale(self: JoinInput, now_ns: int) -> bool:
    return False


def _stale_in_time(self: JoinInput, now_ns: int) -> bool:
    return now_ns - self.fresh_ns >= self.timeout_ns


def _any_change(self: JoinBarrier, merge_map: Any, now_ns: int) -> MapChange:
    raise ZeroDivisionError("a fault of the code")


def _taken(self: SequenceJoinBarrier, *args: Any) -> Observed:
    return Observed.BEHIND


def _nothing_fails(self: LatestValueJoinBarrier, stream_id: int, out: int) -> None:
    return None


def _as_opened(self: SlotRing, opened: Any) -> Any:
    return opened.frame


def _nothing_there(self: SlotRing, read: Any) -> Miss:
    return Miss.MISSING


def _never_due(self: MergeMapAuthority, now_ns: int) -> tuple[()]:
    return ()


def _all_heard(self: MergeMapJoiner, merge_map: Any) -> bool:
    self._request = None
    return True


def _first_wanted(self: JoinStage, out: int) -> tuple[()]:
    self.wanted.appendleft(out)
    return ()


WRONG: list[tuple[str, type, str, Callable[..., Any], str, str]] = [
    ("join: a stale input", JoinInput, "is_stale", _never_stale, "TABLE", "ready(0): the code answers waiting"),
    ("join: outputs without a stale input", JoinInput, "is_stale", _stale_in_time, "TABLE", "no live input, the"),
    ("join: no map in force", JoinBarrier, "announce", _any_change, "TABLE", "raises ZeroDivisionError: a fault"),
    ("join: cursors of a stage before", SequenceJoinBarrier, "process", _taken, "TABLE", "the code answers behind"),
    ("join: ticks, and a frame that is gone", LatestValueJoinBarrier, "fail", _nothing_fails, "READY", "ready(1)"),
    ("join: an overrun stage", SlotRing, "close", _as_opened, "CHOICE", "finish: the code answers ('emit'"),
    ("join: frames of a time window", SlotRing, "_open_time", _nothing_there, "TABLE", "finish: the code answers"),
    ("join: output times that wait", JoinStage, "offer", _first_wanted, "TABLE", "the next output: the code answers"),
    ("join: output times in order", TimestampJoinBarrier, "strict", True, "TABLE", "ready(1): the code answers passed"),  # type: ignore[list-item]
    ("late join: an authority", MergeMapAuthority, "on_time", _never_due, "MODEL", "announce_again: the model answers"),
    ("late join: a joiner", MergeMapJoiner, "heard", _all_heard, "MODEL", "out_stream_id=10, epoch=1"),
]


@pytest.mark.parametrize(("name", "of", "attribute", "wrong", "invariant", "reason"), WRONG)
def test_a_code_that_does_something_else_is_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, of: type, attribute: str, wrong: Any, invariant: str, reason: str
) -> None:
    """Nobody could see in which run a join goes wrong, or under which invariant."""
    monkeypatch.setattr(of, attribute, wrong)
    outcome = checked(name)
    assert outcome.verdict == "broken"
    violation = outcome.violations[0]
    assert violation.invariant == invariant, violation
    assert reason in violation.reason
    lines = violation.trace.splitlines()
    assert lines[0] == f"# {name}."
    assert sum(line.startswith("> ") for line in lines) in (violation.steps, 0)
    assert lines[-1] == f"! {'MODEL' if invariant == 'MODEL' else 'TABLE'}: {violation.reason}"


def test_what_restore_computes_anew_may_not_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exploration restores before each move, so it cannot see a field that is stale but for that: a walk can."""
    sound = JoinStage.next_out

    def counts_once(self: JoinStage) -> int | None:
        if self._counted is not None:
            self._counted = self.barrier.active
        return sound(self)

    monkeypatch.setattr(JoinStage, "next_out", counts_once)
    outcome = checked("join: a map that changes while it is read")
    assert outcome.verdict == "broken"
    assert outcome.violations[0].reason.startswith("the next output: the code answers")


def test_a_message_that_is_read_otherwise_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A codec could take what is no map for one."""
    monkeypatch.setattr("barrierlab.impl.join.codec._fits", lambda length, known, version: length >= known)
    outcome = checked("join table: messages")
    assert outcome.verdict == "broken"
    assert outcome.violations[0].reason.startswith("decode(")
    assert outcome.violations[0].trace.endswith(f"! TABLE: {outcome.violations[0].reason}\n")
