"""A delayed command of an older checkpoint is emitted behind a newer one.

Source
    F-DCKP-001, "Error Handling": "EpochMismatch: log warning, accept barrier (coordinator is authoritative)", and
    `inject`, which compares nothing. Entry P-04.
What goes wrong
    A retry of checkpoint 1 arrives when 2 has been emitted: barrier 2 and then barrier 1 on one channel. Whoever cuts
    at both has two cuts in the wrong order, and ids that were unique are not.
Repair
    An id that is not above the last one, or an epoch that does not increase with it, is refused (protocol rule 3).
"""

from barrierlab.impl import (
    BarrierInjectorHandle,
    CheckpointBarrier,
    CheckpointBarrierInjector,
    CheckpointCoordinator,
    Inject,
    InjectBarrierCommand,
    InjectOutcome,
    RegressingIdError,
    SourceTask,
)
from barrierlab.impl.checkpoint.actions import Actions
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components
from barrierlab.model.defects.kinds.documented_injector import DocumentedInjector


class RetriesLate(CheckpointCoordinator):
    """Behind each command it says the one before once more."""

    def trigger(self, now_ns: int) -> Actions:
        actions = super().trigger(now_ns)
        commands = [(each.source, each.command.checkpoint_id - 1) for each in actions if type(each) is Inject]
        return (*actions, *(Inject(source, InjectBarrierCommand(n, n)) for source, n in commands if n))


class EmitsOlder(SourceTask):
    """Remembers no id."""

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        self.last_terminated_id = 0
        return super().poll(now_ns)


class LoggingHandle(BarrierInjectorHandle):
    """The sound one; and who injects takes a refusal for an answer."""

    def inject(self, cmd: InjectBarrierCommand) -> InjectOutcome:
        try:
            return super().inject(cmd)
        except RegressingIdError:
            return InjectOutcome.DUPLICATE


class Logging(CheckpointBarrierInjector):
    """The sound one, with such a handle."""

    def coordinator_handle(self) -> BarrierInjectorHandle:
        return LoggingHandle(self.cell)


DEFECT = BarrierDefect(
    breaks="ID",
    bounds=Bounds("a->s", events=0, checkpoints=2),
    components=Components(coordinator=RetriesLate, injector=DocumentedInjector, source=EmitsOlder),
    title="The command of checkpoint 1 is repeated, and comes behind that of 2: a cuts for 1, for 2, and for 1 again.",
    sound_components=Components(coordinator=RetriesLate, injector=Logging),
)
