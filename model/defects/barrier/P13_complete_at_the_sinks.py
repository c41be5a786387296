"""A checkpoint is called complete when its barriers have come to the sinks.

Source
    F-DCKP-001, "Summary": a checkpoint "completes when all barriers have traversed the entire DAG"; the compatibility
    note emits ``CheckpointComplete`` right after forwarding. Entry P-13.
What goes wrong
    A task in between may still be writing its part, or fail to: the checkpoint counts as complete, sinks commit, and
    there is nothing to restore it from.
Repair
    Complete is what every task has acknowledged as durable, and every sink has prepared (protocol rule 20).
"""

from barrierlab.impl import Acknowledge, CheckpointCoordinator, Publish
from barrierlab.impl.checkpoint.actions import Actions
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components


class CompletesWithTheSink(CheckpointCoordinator):
    """The last task of a chain has seen the barrier: that is enough."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Actions:
        actions = super().acknowledge(report, now_ns)
        pending = self.pending.get(report.checkpoint_id)
        if report.task == self.tasks[-1] and pending is not None and not pending.publishing:
            pending.publishing = True
            return (Publish(report.checkpoint_id, pending.sorted_parts()),)
        return actions


DEFECT = BarrierDefect(
    breaks="ONCE",
    bounds=Bounds("a->s", events=1),
    components=Components(coordinator=CompletesWithTheSink),
    title="s has acknowledged checkpoint 1, and a has not yet: it is completed without a's part.",
)
