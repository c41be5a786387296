"""The answers of the coordinator: values that its driver carries out in the order given."""

from __future__ import annotations

from dataclasses import dataclass, field

from barrierlab.impl.checkpoint.injector import InjectBarrierCommand
from barrierlab.impl.checkpoint.report import Acknowledge
from barrierlab.impl.reasons import Reason


@dataclass(frozen=True, slots=True)
class Triggered:
    """A checkpoint begins: the first action of its trigger. Its store's attempt begins here, too."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Inject:
    """Hand this command to the injector of this source."""

    source: str
    command: InjectBarrierCommand


@dataclass(frozen=True, slots=True)
class Publish:
    """Write the manifest now and report the result: every part is durable, and every sink has prepared.

    Attributes
    ----------
    checkpoint_id : int
    parts : tuple of Acknowledge
        By task name. The final snapshot of a task that had finished is among them; it may have to be stored first.
    """

    checkpoint_id: int
    parts: tuple[Acknowledge, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Completed:
    """The checkpoint is complete; its parts, by task name."""

    checkpoint_id: int
    parts: tuple[Acknowledge, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Notify:
    """Notify this task that the checkpoint is complete: a sink commits what it prepared for it and before (rule 20)."""

    task: str
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class AbortTask:
    """Notify this task that the checkpoint, and every older one, is aborted."""

    task: str
    checkpoint_id: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Aborted:
    """The checkpoint is aborted."""

    checkpoint_id: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Refused:
    """No checkpoint was triggered."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Ignored:
    """A report that is late, a duplicate, or about an unknown checkpoint."""

    task: str
    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class FailJob:
    """The job is to fail, and to be recovered: no more checkpoints until `CheckpointCoordinator.resume`."""

    reason: Reason


CoordinatorAction = (
    Triggered | Inject | Publish | Completed | Notify | AbortTask | Aborted | Refused | Ignored | FailJob
)
Actions = tuple[CoordinatorAction, ...]
