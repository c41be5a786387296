"""A checkpoint that has failed at one source is aborted, and nobody behind the other is notified.

Source
    F-DCKP-001, "Error Handling": "BarrierInjectionFailed: log error ... notify coordinator", "BarrierTimeout:
    coordinator aborts checkpoint, starts new one"; all flags but one are reserved, and no marker says it. Entry P-15.
What goes wrong
    The barrier is on one branch and never comes on the other: the input that has delivered it waits for a checkpoint
    that is dead, and the next barrier finds that alignment (entry A-01).
Repair
    A cancel marker in the barrier's place, and the coordinator tells every task (protocol rules 5, 9 and 10).
"""

from barrierlab.impl import AbortTask, CheckpointBarrier, CheckpointCoordinator, Decline, Reason, SourceTask
from barrierlab.impl.checkpoint.actions import Actions
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


class Fails(SourceTask):
    """Source b cannot inject the barrier."""

    def poll(self, now_ns: int) -> CheckpointBarrier | None:
        if self.name == "a":
            return super().poll(now_ns)
        barrier = self.injector.poll_barrier(now_ns)
        if barrier is not None:
            self.last_terminated_id = barrier.checkpoint_id
            self.decline(barrier.checkpoint_id, Reason.OUTPUT_CLOSED)
            self.cancel(barrier.checkpoint_id)
        return None


class SendsNoMarker(Fails):
    """There is none."""

    def cancel(self, checkpoint_id: int) -> None:
        pass


class TellsNobody(CheckpointCoordinator):
    """A coordinator that tells no task of an abort."""

    def decline(self, report: Decline, now_ns: int) -> Actions:
        return tuple(each for each in super().decline(report, now_ns) if type(each) is not AbortTask)


DEFECT = BarrierDefect(
    breaks="LIVE",
    bounds=Bounds("a->join b->join", events=0),
    components=Components(source=SendsNoMarker, coordinator=TellsNobody),
    title="a's barrier is at join when b fails to inject its own. The checkpoint is aborted, and join waits on.",
    sound_components=Components(source=Fails),
)
