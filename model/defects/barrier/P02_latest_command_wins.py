"""A command that a source has not claimed gives way to the next, and nobody is notified.

Source
    F-DCKP-001, `BarrierInjectorHandle::inject`: "this overwrites it (latest-wins semantics)"; the planned test
    `test_injector_duplicate_coordinator_signal_latest_wins` asks for it. Entry P-02.
What goes wrong
    Source a emits barriers 1 and 2, the slower b only 2. Checkpoint 1 can never align, and is under way until a
    timeout; with an aligner that compares no ids, b's barrier 2 counts for 1 (entry A-01). (An aligner that lets a
    newer barrier end an older alignment, protocol rule 6, keeps the damage to that time.)
Repair
    The handle says which id was replaced, and the coordinator aborts that checkpoint at once (protocol rule 3).
"""

from __future__ import annotations

from collections.abc import Callable

from barrierlab.impl import (
    BarrierInjectorConfig,
    CheckpointBarrierInjector,
    CheckpointCoordinator,
    CoordinatorConfig,
    Inject,
    Reason,
)
from barrierlab.model.defects.kinds.documented_injector import DocumentedInjector
from barrierlab.model.defects.kinds.witness import Witness


def run(make: Callable[[BarrierInjectorConfig], CheckpointBarrierInjector]) -> tuple[str, ...]:
    """Checkpoints 1 and 2; b does not poll in between."""
    coordinator = CheckpointCoordinator(CoordinatorConfig(None, max_concurrent=2), ["a", "b", "join"], ["a", "b"])
    injectors = {name: make(BarrierInjectorConfig(None, name)) for name in "ab"}
    emitted: dict[str, list[str]] = {name: [] for name in "ab"}
    for awake in ("a", "ab"):
        for action in coordinator.trigger(0):
            if type(action) is Inject:
                outcome = injectors[action.source].coordinator_handle().inject(action.command)
                for replaced in outcome.replaced:
                    coordinator.abort(replaced, Reason.REPLACED, 0)
        for name in awake:
            barrier = injectors[name].poll_barrier(0)
            emitted[name] += [str(barrier.checkpoint_id)] if barrier else []
    lines = [f"{name} emits {', '.join(ids)}" for name, ids in emitted.items()]
    return (*lines, f"under way: {', '.join(map(str, coordinator.pending))}")


DEFECT = Witness(
    kind="liveness",
    broken=lambda: run(DocumentedInjector),
    right=lambda: run(CheckpointBarrierInjector),
    right_lines=("a emits 1, 2", "b emits 2", "under way: 2"),
)
