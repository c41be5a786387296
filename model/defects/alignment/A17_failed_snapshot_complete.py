"""A snapshot that failed is complete like any other.

Source
    F-DCKP-002, `BarrierAlignmentCallback`: `on_alignment_complete` returns nothing, and `alignments_completed` counts
    at the trigger, before there is a snapshot. Entry A-17.
What goes wrong
    A task that could not take its image forwards the barrier and is counted in: the checkpoint completes without it.
Repair
    The image can fail: then the task declines, sends a cancel marker in the barrier's place, and drains (rule 9).
"""

from collections.abc import Callable

from barrierlab.impl import (
    BarrierAligner,
    BarrierAlignerConfig,
    CheckpointBarrier,
    Gate,
    OperatorTask,
    OutputExchange,
    SnapshotFailedError,
)
from barrierlab.model.checkpoint.scope import Tally
from barrierlab.model.defects.kinds.witness import Witness


class Full(Tally):
    """An operator whose state has no room left to be written to."""

    def checkpoint(self) -> object:
        raise SnapshotFailedError("no space left")


class AsksForNoAnswer(Gate):
    """The callback is called, and that was that."""

    def take_snapshot(self) -> None:
        barrier = self.aligner.barrier
        assert barrier is not None
        try:
            self.port.snapshot(barrier)
        except SnapshotFailedError:
            pass
        self.port.forward(barrier)
        self.aligner.complete_alignment()
        self.port.complete(barrier)
        self.resume(barrier.checkpoint_id)


def _run(make: Callable[[BarrierAligner, OperatorTask], Gate]) -> tuple[str, ...]:
    task = OperatorTask("union", Full(1), BarrierAligner(BarrierAlignerConfig(1)), [OutputExchange("forward", [0])])
    task.gate = make(task.gate.aligner, task)
    task.offer(0, CheckpointBarrier(1, 1), 0)
    sent = [f"sent {message}" for _, message in task.outbox]
    return (*sent, *(f"reported to the coordinator: {type(report).__name__}" for report in task.reports))


DEFECT = Witness(
    kind="safety",
    broken=lambda: _run(AsksForNoAnswer),
    right=lambda: _run(Gate),
    right_lines=("sent cancel 1", "reported to the coordinator: Decline"),
)
