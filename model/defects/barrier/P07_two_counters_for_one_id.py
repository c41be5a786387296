"""Sources count checkpoints of their own, and the coordinator counts too.

Source
    F-DCKP-001, `poll_barrier`: ``next_checkpoint_id`` begins with 1 and knows nothing of the coordinator's ids, while
    ``current_epoch`` is overwritten by theirs. Entry P-07.
What goes wrong
    Id 1 stands for two checkpoints, and epochs go back: 1, 9, 10, 3, 4.
Repair
    One allocator, in the coordinator; a periodic source asks for a checkpoint, and never names it (protocol rule 2).
"""

from __future__ import annotations

from barrierlab.impl import (
    BarrierInjectorConfig,
    CheckpointBarrierInjector,
    CheckpointCoordinator,
    CoordinatorConfig,
    Inject,
    InjectBarrierCommand,
)
from barrierlab.impl.checkpoint.actions import Actions
from barrierlab.model.defects.kinds.documented_injector import DocumentedInjector
from barrierlab.model.defects.kinds.witness import Witness

CONFIG = BarrierInjectorConfig(10, "a")


def documented() -> tuple[str, ...]:
    """Return what is polled, in an interval of 10, between commands of the coordinator."""
    injector = DocumentedInjector(CONFIG)
    commands = {11: InjectBarrierCommand(1, 9), 22: InjectBarrierCommand(7, 3)}
    lines = []
    for now_ns in (10, 11, 21, 22, 32):
        if now_ns in commands:
            injector.coordinator_handle().inject(commands[now_ns])
        barrier = injector.poll_barrier(now_ns)
        assert barrier is not None
        lines.append(f"{now_ns}: barrier {barrier.checkpoint_id} of epoch {barrier.epoch}")
    return tuple(lines)


def sound() -> tuple[str, ...]:
    """The same, where the source asks at 10, 21 and 32, and the coordinator wants to at 11 and 22."""
    injector = CheckpointBarrierInjector(CONFIG)
    coordinator = CheckpointCoordinator(CoordinatorConfig(None, max_concurrent=9), ["a"], ["a"])
    lines = []
    for now_ns in (10, 11, 21, 22, 32):
        actions: Actions = ()
        if now_ns in (11, 22):
            actions = coordinator.trigger(now_ns)
        elif injector.due_request(now_ns):
            actions = coordinator.request(now_ns)
        for action in actions:
            if type(action) is Inject:
                injector.coordinator_handle().inject(action.command)
        barrier = injector.poll_barrier(now_ns)
        assert barrier is not None
        lines.append(f"{now_ns}: barrier {barrier.checkpoint_id} of epoch {barrier.epoch}")
    return tuple(lines)


DEFECT = Witness(
    kind="safety",
    broken=documented,
    right=sound,
    right_lines=tuple(f"{at}: barrier {n} of epoch {n}" for n, at in enumerate((10, 11, 21, 22, 32), 1)),
)
