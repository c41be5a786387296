"""Coordinators as an engine may bring them: sound ones, and with one mistake each, planted or written from scratch."""

from __future__ import annotations

from barrierlab.impl import Acknowledge, CheckpointCoordinator, Decline, Reason
from barrierlab.impl.checkpoint.actions import (
    Actions,
    Notify,
    Publish,
)
from barrierlab.model.checkpoint.capabilities import Capabilities
from docs.parts.coordinator import Plain, Planted


class Sound(CheckpointCoordinator):
    """The one of `impl`, under another name."""


class FirstReport(CheckpointCoordinator):
    """Completes with the first part that comes."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Actions:
        if report.checkpoint_id in self.pending:
            self.pending[report.checkpoint_id].outstanding.intersection_update({report.task})
        return super().acknowledge(report, now_ns)


class ForgetsTheEnded(CheckpointCoordinator):
    """Waits for the part of a task that has ended."""

    def finished(self, task: str, now_ns: int, part: Acknowledge | None = None) -> Actions:
        self._known(task)
        return ()


class IgnoresDeclines(CheckpointCoordinator):
    """Waits for the part of a task that has declined."""

    def decline(self, report: Decline, now_ns: int) -> Actions:
        return ()


class UsesIdsAgain(CheckpointCoordinator):
    """The id of a checkpoint that was aborted is given again."""

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> Actions:
        actions = super().abort(checkpoint_id, reason, now_ns)
        self._next_id = max([0, self.last_completed, *self.pending]) + 1
        return actions


class CompletesBeforeTheManifest(CheckpointCoordinator):
    """Announces the checkpoint when the manifest is to be written."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Actions:
        actions = super().acknowledge(report, now_ns)
        for each in actions:
            if type(each) is Publish:
                actions += tuple(Notify(task, each.checkpoint_id) for task in self.tasks)
        return actions


class NotifiesNoSink(CheckpointCoordinator):
    """Tells the sources only that a checkpoint is complete."""

    def published(self, checkpoint_id: int, now_ns: int) -> Actions:
        actions = super().published(checkpoint_id, now_ns)
        return tuple(each for each in actions if type(each) is not Notify or each.task in self.sources)


class PublishesWithoutFinalParts(CheckpointCoordinator):
    """Leaves the parts of tasks that have ended out of the manifest."""

    def _publish_next(self) -> Actions:
        return tuple(
            Publish(each.checkpoint_id, tuple(part for part in each.parts if not part.finished))  # type: ignore[union-attr]
            for each in super()._publish_next()
        )


PLANTED: dict[type, tuple[str, str]] = {
    Planted: ("aligned: a->s; events 1, checkpoints 1; closed input", "LIVE"),
    FirstReport: ("aligned: a->s; events 1, checkpoints 1; no fault", "ONCE"),
    ForgetsTheEnded: ("aligned: a->s; events 1, checkpoints 1; closed input", "LIVE"),
    IgnoresDeclines: ("aligned: a->s b->s; events 1, checkpoints 1; timeout", "LIVE"),
    UsesIdsAgain: ("aligned: a->s; events 2, checkpoints 2; abort", "ID"),
    CompletesBeforeTheManifest: ("aligned: a->s; events 1, checkpoints 1; crash", "REC"),
    NotifiesNoSink: ("aligned: a->s; events 1, checkpoints 1; crash", "REC"),
    PublishesWithoutFinalParts: ("aligned: a->m m->s; events 1, checkpoints 2; closed input and crash", "RAISED"),
}
"""With one mistake, and where it comes out."""


class NoEnds(Plain):
    """The same, in an engine of which no source ever ends."""

    capabilities = Capabilities(ends=False)
