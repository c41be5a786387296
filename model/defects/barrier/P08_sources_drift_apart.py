"""Each source has a timer of its own, and who was once late stays behind for ever.

Source
    F-DCKP-001, `poll_barrier`: one barrier when ``elapsed >= interval``; "Open Questions": "initial design is
    per-source timers". Entry P-08.
What goes wrong
    b cannot poll from 15 to 44. From then on it is three checkpoints behind a, so each alignment holds a back for 25
    units of time, and a's next barriers come in behind the one that waits (entry A-05).
Repair
    The coordinator's ids, triggered when it is time for all; a slow source costs one checkpoint its time (protocol
    rule 2).
"""

from __future__ import annotations

from barrierlab.impl import (
    Acknowledge,
    BarrierInjectorConfig,
    CheckpointBarrierInjector,
    CheckpointCoordinator,
    CoordinatorConfig,
    Inject,
    Publish,
)
from barrierlab.impl.checkpoint.actions import Actions
from barrierlab.model.defects.kinds.documented_injector import DocumentedInjector
from barrierlab.model.defects.kinds.witness import Witness


def polls(name: str, now_ns: int) -> bool:
    """Return whether nothing keeps a source from it."""
    return name == "a" or not 15 <= now_ns < 45


def documented() -> tuple[str, ...]:
    """The last id of each source, at 60."""
    injectors = {name: DocumentedInjector(BarrierInjectorConfig(10, name)) for name in "ab"}
    emitted = dict.fromkeys(injectors, 0)
    for now_ns in range(1, 61):
        for name, injector in injectors.items():
            barrier = injector.poll_barrier(now_ns) if polls(name, now_ns) else None
            emitted[name] = barrier.checkpoint_id if barrier else emitted[name]
    return tuple(f"{name} is at {checkpoint_id}" for name, checkpoint_id in emitted.items())


def sound() -> tuple[str, ...]:
    """The same, with a coordinator that has the interval."""
    injectors = {name: CheckpointBarrierInjector(BarrierInjectorConfig(None, name)) for name in "ab"}
    coordinator = CheckpointCoordinator(CoordinatorConfig(10), injectors, injectors)
    emitted = dict.fromkeys(injectors, 0)

    def carry_out(actions: Actions, now_ns: int) -> None:
        for action in actions:
            if type(action) is Inject:
                injectors[action.source].coordinator_handle().inject(action.command)
            elif type(action) is Publish:
                carry_out(coordinator.published(action.checkpoint_id, now_ns), now_ns)

    for now_ns in range(1, 61):
        carry_out(coordinator.on_time(now_ns), now_ns)
        for name, injector in injectors.items():
            barrier = injector.poll_barrier(now_ns) if polls(name, now_ns) else None
            if barrier is not None:
                emitted[name] = barrier.checkpoint_id
                carry_out(coordinator.acknowledge(Acknowledge(name, barrier.checkpoint_id), now_ns), now_ns)
    return tuple(f"{name} is at {checkpoint_id}" for name, checkpoint_id in emitted.items())


DEFECT = Witness(
    kind="timing",
    broken=documented,
    right=sound,
    right_lines=("a is at 4", "b is at 4"),
)
