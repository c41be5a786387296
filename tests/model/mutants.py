"""Machines that are bent on purpose, each in the smallest override that does it, to be explored for sound ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from barrierlab.impl.checkpoint.actions import Completed, CoordinatorAction, Publish
from barrierlab.impl.checkpoint.alignment import AlignerAction, AlignmentAction, BarrierAligner, BarrierAlignerConfig
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.impl.checkpoint.gate import Gate
from barrierlab.impl.checkpoint.recovery import TaskRestore
from barrierlab.impl.checkpoint.report import Acknowledge
from barrierlab.impl.checkpoint.task import OperatorTask, SourceTask
from barrierlab.impl.checkpoint.transactions import SinkWriter
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointer
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, Event, StreamMessage, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.components import Components, with_aligner, with_gate
from barrierlab.model.defects.alignment.A04_barrier_after_held_records import DrainsFirst
from barrierlab.model.defects.unaligned.U16_in_flight_without_limit import RecordsWithoutLimit


class SnapshotsLate(OperatorTask):
    """The image is taken in the background: what comes next is in it (P-12)."""

    late: CheckpointBarrier | None = None

    def snapshot(self, barrier: CheckpointBarrier) -> None:
        self.late = barrier

    def deliver(self, input_id: int, message: Event | Watermark) -> None:
        super().deliver(input_id, message)
        if self.late is not None:
            super().snapshot(self.late)
            self.late = None


class NeverGivesUp(BarrierAligner):
    """That a checkpoint is aborted is no news here: its inputs wait on (P-15)."""

    def abort(self, checkpoint_id: int, reason: Reason) -> bool:
        return False

    def on_cancel(self, input_id: int, cancel: CancelBarrier, now_ns: int) -> AlignmentAction:
        return AlignmentAction.IGNORED


class AppliesTwice(OperatorTask):
    """A retry: the operator gets every second event twice."""

    told = 0

    def deliver(self, input_id: int, message: Event | Watermark) -> None:
        super().deliver(input_id, message)
        self.told = (self.told + 1) % 2
        if not self.told and type(message) is Event:
            list(self.operator.process(input_id, message))


class PromisesTheMost(OperatorTask):
    """The task's watermark is the greatest of its inputs."""

    def _advance(self) -> None:
        promises = [promise for promise in self._input_watermarks.values() if promise is not None]
        if promises and (self.watermark_ms is None or max(promises) > self.watermark_ms):
            self.watermark_ms = max(promises)
            self.send_to_all(Watermark(self.watermark_ms))


class LeavesTheOutboxUnrecorded(OperatorTask):
    """The barrier goes ahead of the outbox, which is nobody's state."""

    def capture_overtaken(self, output: int, messages: object, checkpoint_id: int) -> None:
        pass


class DropsWhatIsHeld(BarrierAligner):
    """A full buffer takes the newest and forgets the oldest, as a ring does."""

    def process_message(self, input_id: int, message: StreamMessage, now_ns: int = 0) -> AlignerAction:
        action = super().process_message(input_id, message, now_ns)
        queue = self.inputs.queues[input_id]
        if action is AlignmentAction.BUFFERED and len(queue) > 1:
            queue.popleft()
        return action


class ForgetsTheFirst(BarrierAligner):
    """A barrier that comes in behind another marks its input once more, and is gone (A-05)."""

    def process_message(self, input_id: int, message: StreamMessage, now_ns: int = 0) -> AlignerAction:
        if type(message) is CheckpointBarrier and input_id in self.inputs.blocked:
            return AlignmentAction.PASS_THROUGH if self.barrier is None else AlignmentAction.IGNORED
        return super().process_message(input_id, message, now_ns)


class SwallowsTheSecondBarrier(Gate):
    """A barrier that comes in behind another is taken, and nothing comes of it (A-05)."""

    __slots__ = ()

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        if type(message) is CheckpointBarrier and self.is_blocked(input_id):
            return True
        return super().offer(input_id, message, now_ns)


class WatermarkOvertakes(Gate):
    """Only events are buffered: a watermark passes what waits behind a barrier (A-06)."""

    __slots__ = ()

    def offer(self, input_id: int, message: StreamMessage, now_ns: int) -> bool:
        if type(message) is Watermark and self.is_blocked(input_id):
            self.port.deliver(input_id, message)
            return True
        return super().offer(input_id, message, now_ns)


class KeepsTheWatermark(OperatorTask):
    """A watermark is passed on when the next barrier has been (P-11)."""

    kept: Watermark | None = None

    def send_to_all(self, message: StreamMessage) -> None:
        if type(message) is Watermark:
            self.kept = message
            return
        super().send_to_all(message)
        if type(message) is CheckpointBarrier and self.kept is not None:
            super().send_to_all(self.kept)
            self.kept = None

    def capture(self) -> Hashable:
        return super().capture(), self.kept

    def restore(self, value: Hashable) -> None:
        kept, self.kept = value  # type: ignore[misc]
        super().restore(kept)  # type: ignore[has-type]


class SnapshotsAtTheFirst(BarrierAligner):
    """The first barrier is enough."""

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignerAction:
        action = super().on_barrier(input_id, barrier, now_ns)
        return self.all_in(now_ns) if action is AlignmentAction.BLOCKED else action


class HoldsWithoutLimit(BarrierAligner):
    """The limit of buffered messages is not looked at."""

    def __init__(self, config: BarrierAlignerConfig) -> None:
        super().__init__(replace(config, max_buffer_per_input=1000))


class RecordsNothing(UnalignedCheckpointer):
    """Anything that comes in after the snapshot and before the barrier is not recorded (U-04)."""

    def buffer(self, input_id: int, message: StreamMessage, now_ns: int) -> AlignerAction:
        if type(message) is Event and self.recording and input_id in self.recorder.missing:
            return AlignmentAction.PASS_THROUGH
        return super().buffer(input_id, message, now_ns)


class PassesUnrecorded(UnalignedCheckpointer):
    """The barrier overtakes what is in the channel, and nobody records that (P-16)."""

    def take_overtaken(self) -> tuple[int, list[Event]]:
        super().take_overtaken()
        return -1, []


class CompletesEarly(CheckpointCoordinator):
    """The first acknowledgement is enough (P-13)."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> tuple[CoordinatorAction, ...]:
        actions = super().acknowledge(report, now_ns)
        pending = self.pending.get(report.checkpoint_id)
        if pending is not None and not pending.publishing:
            pending.publishing = True
            return (Publish(report.checkpoint_id),)
        return actions


class CompletesTwice(CheckpointCoordinator):
    """Anything that is published completes it, and completes it once more."""

    def published(self, checkpoint_id: int, now_ns: int) -> tuple[CoordinatorAction, ...]:
        actions = super().published(checkpoint_id, now_ns)
        return (*actions, *(each for each in actions if type(each) is Completed))


class PositionsLate(SourceTask):
    """The barrier goes out, and the position is read behind the next event (P-10)."""

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        self.position += 1
        barrier = super().poll(now_ns)
        self.position -= 1
        return barrier


class CommitsAtOnce(SinkWriter):
    """Anything that is prepared is committed: nobody waits for the checkpoint to be complete."""

    def prepare(self, checkpoint_id: int) -> None:
        super().prepare(checkpoint_id)
        self.on_complete(checkpoint_id)


class NeverCommits(SinkWriter):
    """Anything that is announced is no news here."""

    def on_complete(self, checkpoint_id: int) -> None:
        pass


class RollsNothingBack(SinkWriter):
    """A recovery commits whatever is prepared."""

    def recover(self, prepared: Iterable[str], checkpoint_id: int) -> None:
        transactions, _, _ = self.ledger.capture()
        super().recover([name for name, (_, state, _) in transactions if state == "is prepared"], checkpoint_id)


class WritesTwice(SinkWriter):
    """A retry that is none: every event is written twice."""

    def write(self, event: Event) -> None:
        super().write(event)
        super().write(event)


class ForgetsItsState(OperatorTask):
    """A task that is restored restarts from the initial state."""

    def recover(self, part: TaskRestore, checkpoint_id: int) -> str:
        image = ((0,) * len(part.image[0]), None) if checkpoint_id else None
        return super().recover(replace(part, image=image), checkpoint_id)


class SkipsAnEvent(SourceTask):
    """A source that is restored seeks behind its position (P-10)."""

    def recover(self, part: TaskRestore, checkpoint_id: int) -> str:
        return super().recover(replace(part, position=part.position + 1), checkpoint_id)


class LosesWhatIsInFlight(OperatorTask):
    """Anything that is recorded stays in memory: the part that is acknowledged is without it."""

    def complete(self, barrier: CheckpointBarrier) -> None:
        super().complete(barrier)
        self.reports[-1] = replace(self.reports[-1], inflight=())


TASKS = (DrainsFirst, SnapshotsLate, AppliesTwice, PromisesTheMost, KeepsTheWatermark)
ALIGNERS = (NeverGivesUp, DropsWhatIsHeld, ForgetsTheFirst, SnapshotsAtTheFirst, HoldsWithoutLimit)
GATES = (SwallowsTheSecondBarrier, WatermarkOvertakes)
COORDINATORS = (CompletesEarly, CompletesTwice)

MUTANTS: dict[str, Components] = {
    **{kind.__name__: Components(task=kind) for kind in TASKS},
    **{kind.__name__: with_aligner(kind) for kind in ALIGNERS},
    **{kind.__name__: with_gate(kind) for kind in GATES},
    **{kind.__name__: Components(coordinator=kind) for kind in COORDINATORS},
    PositionsLate.__name__: Components(source=PositionsLate),
}
"""To be explored aligned."""

MUTANTS_UNALIGNED: dict[str, Components] = {
    **{kind.__name__: with_aligner(kind) for kind in (RecordsNothing, PassesUnrecorded, RecordsWithoutLimit)},
    LeavesTheOutboxUnrecorded.__name__: Components(task=LeavesTheOutboxUnrecorded),
}
"""To be explored unaligned."""

MUTANTS_RECOVERING: dict[str, Components] = {
    **{kind.__name__: Components(writer=kind) for kind in (CommitsAtOnce, NeverCommits, RollsNothingBack, WritesTwice)},
    ForgetsItsState.__name__: Components(task=ForgetsItsState),
    SkipsAnEvent.__name__: Components(source=SkipsAnEvent),
    LosesWhatIsInFlight.__name__: Components(task=LosesWhatIsInFlight),
}
"""To be explored with a crash, and a sink that writes exactly once."""
