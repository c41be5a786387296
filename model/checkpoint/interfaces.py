"""What an engine brings beside its aligner to be checked: a coordinator, a sink's writer, a source, a store.

Each is a class that inherits nothing, says what it is by the attribute ``role``, and has at most ten methods. It has no
clock, no thread and no I/O of its own: the time comes in as nanoseconds, of which only differences count, and effects
go out, as values that are answered or as calls of the port that it is made with. A value that is handed over does not
change any more. `capture` and `restore` may be missing everywhere: then the object is copied, and what it keeps must be
such that it can be. What it does not take part in, it declares (`model.checkpoint.capabilities`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Protocol

from barrierlab.impl.checkpoint.actions import CoordinatorAction
from barrierlab.impl.checkpoint.report import Acknowledge, Decline
from barrierlab.impl.reasons import Reason


class Capturable(Protocol):
    """The state of a machine as a value; for one that has neither method, copies are taken."""

    def capture(self) -> Hashable:
        """Return all that makes a difference, as a value that does not change any more."""

    def restore(self, value: Any) -> object:
        """Be as the object of this class was that captured `value`. The answer is not looked at."""


class Coordinator(Capturable, Protocol):
    """The coordinator of a job, made as ``Class(config, tasks, sources, first_id)``; ``role = "coordinator"``.

    `config` is an `impl.checkpoint.coordinator.CoordinatorConfig`, of which `unaligned` says how barriers are flagged;
    `tasks` are names, sources and sinks among them; `first_id` is above every id that was ever begun. Each method but
    `resume` answers with actions (`impl.checkpoint.actions`), which the driver carries out in that order:

    ==========================================  =================================================================
    action                                      meaning
    ==========================================  =================================================================
    ``Triggered(id)``                           the checkpoint begins; ids increase, and none is used twice (rule 2)
    ``Inject(source, command)``                 the source gets the command to emit a barrier
    ``Publish(id, parts)``                      every part has come: write the manifest, of these reports (rule 20)
    ``Completed(id)``                           the checkpoint is complete: only in the answer to `published`
    ``Notify(task, id)``                        the task is told of that: sinks commit
    ``AbortTask(task, id, reason)``             the task aborts its part, and those of all older ones (rule 10)
    ``Aborted(id, reason)``                     the checkpoint has ended without completing
    ``Refused(reason)``                         nothing is triggered now
    ``Ignored(task, id)``, ``FailJob(reason)``  for the log; they make no difference here
    ==========================================  =================================================================
    """

    role: ClassVar[str] = "coordinator"

    def trigger(self, now_ns: int) -> Iterable[CoordinatorAction]:
        """Begin a checkpoint, if it may be: one that is asked for by a user, or by the interval."""

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Iterable[CoordinatorAction]:
        """Take the report of a task that its part is durable. It may be late, or about nothing under way."""

    def decline(self, report: Decline, now_ns: int) -> Iterable[CoordinatorAction]:
        """Take the report of a task that it aborts its part."""

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> Iterable[CoordinatorAction]:
        """Abort a checkpoint that is under way: its time is up, or a user cancels it."""

    def finished(self, task: str, now_ns: int, part: Acknowledge | None) -> Iterable[CoordinatorAction]:
        """Take the report that a task has ended, with its final snapshot: that of every later checkpoint (rule 13).

        `part` is None where nothing is ever restored. Its `checkpoint_id` is the last checkpoint that the task took
        part in; for that one the acknowledgement is to come. When every task has ended and nothing is under way, one
        checkpoint more is taken, of final snapshots alone, so that sinks commit the last they have (FLIP-147).
        """

    def published(self, checkpoint_id: int, now_ns: int) -> Iterable[CoordinatorAction]:
        """Take the report that the manifest is durable."""

    def suspend(self, now_ns: int, reason: Reason) -> Iterable[CoordinatorAction]:
        """The job has failed: nothing is triggered until `resume`.

        What is pending is aborted, but for a checkpoint whose manifest is being written: `published` may still come.
        """

    def resume(self, checkpoint_id: int, now_ns: int, finished: Mapping[str, Acknowledge]) -> object:
        """The job was restored from that checkpoint, 0 being the beginning; some tasks as finished, with final
        snapshots.

        The answer is not looked at. A coordinator that was lost itself is made anew, and is told this first.
        """
