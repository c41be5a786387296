"""A machine that goes by more than it captures is no machine that can be explored: every step is made a second time."""

from __future__ import annotations

import pytest

from impl.alignment import Action, BarrierAligner
from impl.messages import StreamMessage
from model.check import WorldScope
from model.parts import SOUND, Parts, with_aligner
from model.setup import Setup

THREE = WorldScope("three inputs", Setup("a->s b->s c->s", events=1, checkpoints=1))


class Honest(BarrierAligner):
    """The sound aligner, under another name."""


class CountsItsCalls(BarrierAligner):
    """Lets go in another order every second call of all its objects: sound each time, and not the same twice."""

    calls = 0

    def drain_next(self, now_ns: int = 0) -> tuple[int, StreamMessage, Action] | None:
        CountsItsCalls.calls += 1
        if CountsItsCalls.calls % 2 and len(self._ready) > 1:
            self._ready.rotate(1)
        return super().drain_next(now_ns)


@pytest.mark.parametrize("parts", [SOUND, with_aligner(Honest)], ids=["impl", "another class"])
def test_what_does_the_same_twice_holds(parts: Parts) -> None:
    """A sound aligner of somebody else would be refused."""
    assert THREE.check(parts, 60.0).verdict == "holds"


def test_what_does_not_do_the_same_twice_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked up after its first time would be a verdict on one half of what the machine does."""
    outcome = THREE.check(with_aligner(CountsItsCalls), 60.0)
    assert (outcome.verdict, [violation.invariant for violation in outcome.violations]) == ("broken", ["RAISED"])
    assert "s does not do the same twice in " in outcome.why
    assert "all that it goes by has to be in `capture`" in outcome.why
    monkeypatch.setattr("model.cells.TaskTable.differences", lambda self: iter(()))
    assert THREE.check(with_aligner(CountsItsCalls), 60.0).verdict == "holds"


def test_the_time_limit_holds_while_steps_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget would be exceeded without a word."""
    clock = iter(range(10**9))
    monkeypatch.setattr("model.check.monotonic", lambda: 0.0 if next(clock) < 3 else 100.0)
    outcome = THREE.check(with_aligner(Honest), 50.0)
    assert outcome.verdict == "undecided"
