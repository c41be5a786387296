"""Faults together, and what a part says: each mistake here passes a scope in which only one thing goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from barrierlab.impl.checkpoint.alignment import BarrierAligner
from barrierlab.impl.checkpoint.recovery import Restore, TaskRestore, Wiring, plan
from barrierlab.impl.checkpoint.task import OperatorTask, SourceTask
from barrierlab.impl.checkpoint.transactions import SinkWriter
from barrierlab.impl.messages import EndOfInput, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.impl.storage.snapshot import Checkpoint
from barrierlab.model.checkpoint.check import WorldScope
from barrierlab.model.checkpoint.components import SOUND, Components, with_aligner
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.scripted import replay
from barrierlab.model.suites.standard import small

SCOPES = {scope.name: scope for scope in small() if isinstance(scope, WorldScope)}
PAIR = "a->s b->s; events 1, checkpoints 1"
ENDS = "a->s; events 1, checkpoints 2; closed input and crash"
EMITS = "a->join b->join join->s; watermarks 1, emits True, events 1, checkpoints 1; closed input"


@cache
def sound(scope: str) -> str:
    """Return the verdict on the sound machines, which is the same for every mistake that is tried there."""
    return SCOPES[scope].check(SOUND, None).verdict


class CoversItsLastWithTheOneBefore(SinkWriter):
    """Anything that is written behind the last snapshot is committed with that."""

    def prepare_last(self) -> None:
        self._newest_id -= 1
        super().prepare_last()
        self._newest_id += 1


def ends_twice(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
    """The end of a sender that had finished is restored though it had taken effect."""
    restored = plan(checkpoint, wiring)
    over = {channel for task, part in restored.tasks.items() if part.finished for channel in wiring.outputs[task]}
    channels = {
        name: (*messages, EndOfInput()) if name in over and EndOfInput() not in messages else messages
        for name, messages in restored.channels.items()
    }
    return replace(restored, channels=channels)


class BelievesItHasAnnounced(OperatorTask):
    """After a recovery the watermark is not passed on again."""

    def recover(self, part: TaskRestore, checkpoint_id: int) -> str:
        state = super().recover(part, checkpoint_id)
        self._announced = True
        return state


class HasNoWatermarkAtTheEnd(OperatorTask):
    """An input that ends does not move the watermark on."""

    def _advance(self) -> None:
        if len(self._input_watermarks) == self.gate.aligner.config.num_inputs:
            super()._advance()


class PromisesFirst(OperatorTask):
    """A watermark leaves ahead of the events that it causes."""

    def _advance(self) -> None:
        before = len(self.outbox)
        super()._advance()
        new = [self.outbox.pop() for _ in range(len(self.outbox) - before)][::-1]
        self.outbox.extend(sorted(new, key=lambda each: type(each[1]) is not Watermark))


class ForgetsItsWatermark(SourceTask):
    """A part of a source is without the watermark that it had sent."""

    def poll(self, now_ns: int) -> Any:
        barrier = super().poll(now_ns)
        self.reports[:] = [replace(report, watermark_ms=None) for report in self.reports]  # type: ignore[type-var]
        return barrier


class ForgetsAbortsOnceRestored(BarrierAligner):
    """Behind a checkpoint that was restored an abort is obeyed and not remembered: later barriers align for ever."""

    is_restored = False

    def recover(self, last_terminated_id: int, ended: Iterable[int]) -> None:
        super().recover(last_terminated_id, ended)
        self.is_restored = last_terminated_id > 0

    def abort_here(self, checkpoint_id: int, reason: Reason) -> None:
        remembered = self.last_terminated_id
        super().abort_here(checkpoint_id, reason)
        if self.is_restored:
            self.last_terminated_id = remembered


@pytest.mark.parametrize("fault", [pytest.param("abort", marks=pytest.mark.slow), "timeout"])
def test_an_abort_after_a_restore_is_made(fault: str) -> None:
    """A gate that does not come back whole would be met by no abort: each passes where only one of the two happens."""
    components = with_aligner(ForgetsAbortsOnceRestored)
    alone = replace(SCOPES[f"aligned: {PAIR}; {fault} and crash"].bounds, crashes=0)
    crash = replace(SCOPES[f"aligned: {PAIR}; {fault} and crash"].bounds, cancels=0, expiries=0)
    assert [WorldScope(fault, bounds).check(components, None).verdict for bounds in (alone, crash)] == [
        "holds",
        "holds",
    ]
    outcome = SCOPES[f"aligned: {PAIR}; {fault} and crash"].check(components, None)
    assert (outcome.verdict, outcome.violations[0].invariant) == ("broken", "LIVE"), outcome.why
    assert set(outcome.struck) == {fault, "crash"}
    assert all(outcome.struck.values())


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("aligned: a->m m->s", 1_827),
        ("unaligned: a->m m->s", 1_973),
        ("aligned_with_timeout: a->m m->s", 2_243),
        ("aligned: a->s b->s", 12_509),
    ],
)
def test_states_of_an_abort_and_a_crash(name: str, states: int) -> None:
    """The number moves when meaning does: the checkpoint after the restore may be aborted, too."""
    outcome = SCOPES[f"{name}; events 1, checkpoints 1; abort and crash"].check(SOUND, None)
    assert (outcome.verdict, outcome.states) == ("holds", states)


@pytest.mark.parametrize(
    ("components", "scope", "invariant"),
    [
        (Components(writer=CoversItsLastWithTheOneBefore), f"aligned: {ENDS}", "REC"),
        (Components(plan=ends_twice), f"aligned: {ENDS}", "REC"),
        pytest.param(
            Components(task=BelievesItHasAnnounced),
            "aligned: a->join b->join join->s; watermarks 1, events 1, checkpoints 1; crash",
            "WM",
            marks=pytest.mark.slow,
        ),
        (Components(task=HasNoWatermarkAtTheEnd), f"aligned: {EMITS}", "TASK"),
        (Components(task=PromisesFirst), f"unaligned: {EMITS}", "TASK"),
        (
            Components(source=ForgetsItsWatermark),
            "aligned: a->m m->s; watermarks 1, emits True, events 1, checkpoints 1; closed input and crash",
            "TASK",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_mistake_that_needs_two_faults_is_found(components: Components, scope: str, invariant: str) -> None:
    """A machine would be called sound that breaks as soon as two things go wrong, or a window fires."""
    assert sound(scope) == "holds"
    outcome = SCOPES[scope].check(components, None)
    assert (outcome.verdict, outcome.violations[0].invariant) == ("broken", invariant), outcome.why
    trace = outcome.violations[0].trace
    assert f"! {invariant}: " in trace
    assert replay(trace, components) == trace  # whoever reads the run can make it again


@pytest.mark.parametrize("kind", ["exactly_once", "at_least_once", "idempotent"])
def test_every_guarantee_meets_a_crash_in_small(kind: str) -> None:
    """A sink that promises less would never be asked whether it keeps it."""
    assert any(scope.bounds.guarantee == kind and scope.bounds.crashes for scope in SCOPES.values())


PAIRS: list[Callable[[Bounds], bool]] = [
    lambda bounds: bounds.closes,
    lambda bounds: bool(bounds.watermarks),
    lambda bounds: bounds.sender_records and bounds.capacity == 1,
    lambda bounds: bounds.max_inflight_buffer_bytes == 1,
    lambda bounds: bounds.max_buffer_per_input == 1,
    lambda bounds: bounds.emits,
    lambda bounds: bool(bounds.cancels),
    lambda bounds: bool(bounds.expiries),
]


@pytest.mark.parametrize("with_a_crash", PAIRS)
def test_no_fault_meets_a_crash_only_by_itself(with_a_crash: Callable[[Bounds], bool]) -> None:
    """Anything that two faults do together would be left to chance."""
    assert any(scope.bounds.crashes and with_a_crash(scope.bounds) for scope in SCOPES.values())
