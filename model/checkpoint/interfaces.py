"""The machines an engine brings to be checked beside its aligner: a coordinator, a sink's writer, a source, a store.

Each is a class that inherits nothing, says what it is by the attribute ``role``, and has at most ten methods. It has no
clock, no thread and no I/O of its own: the time comes in as nanoseconds, of which only differences count, and effects
go out, as values that are answered or as calls of the port that it is made with. A value that is handed over does not
change any more. `capture` and `restore` may be missing everywhere: then the object is copied, and what it keeps must be
such that it can be. What it does not take part in, it declares (`model.checkpoint.capabilities`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from barrierlab.impl.checkpoint.actions import CoordinatorAction
from barrierlab.impl.checkpoint.report import Acknowledge, Decline
from barrierlab.impl.messages import CheckpointBarrier, Event, Watermark
from barrierlab.impl.reasons import Reason


class Capturable(Protocol):
    """The state of a machine as a value; for one that has neither method, copies are taken."""

    def capture(self) -> Hashable:
        """Return all that makes a difference, as a value that does not change any more."""

    def restore(self, value: Any) -> object:
        """Restore what `capture` returned. The answer is ignored."""


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
    ``Notify(task, id)``                        the task is notified of that: sinks commit
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
        """Note that the job has failed: nothing is triggered until `resume`.

        What is pending is aborted, but for a checkpoint whose manifest is being written: `published` may still come.
        """

    def resume(self, checkpoint_id: int, now_ns: int, finished: Mapping[str, Acknowledge]) -> object:
        """Go on with the job, restored from that checkpoint, 0 being the beginning; some tasks as finished, with final
        snapshots.

        The answer is not looked at. A coordinator that was lost itself is made anew, and gets this first.
        """


class ExternalSystem(Protocol):
    """The external system that a sink's writer writes to: what the writer calls. It outlives every task.

    A failure never comes between two calls of one method of a writer: each method is one step.
    """

    def prepare(self, transaction: str, events: Sequence[Event]) -> None:
        """Keep events so that they can be committed whatever happens; nobody sees them yet. A name is used once."""

    def commit(self, transaction: str) -> None:
        """Make a transaction visible; nothing happens the second time. It is an error if it was rolled back."""

    def roll_back(self, transaction: str) -> None:
        """Drop a transaction that is prepared."""

    def prepared(self) -> tuple[str, ...]:
        """Return the transactions of this sink that are prepared, and neither committed nor rolled back."""

    def count(self) -> int:
        """Return how many transactions this sink has ever prepared: for names that are used once."""

    def write(self, event: Event) -> None:
        """Make an event visible."""

    def upsert(self, key: str, event: Event) -> None:
        """Make a row visible, in the place of the one of that key."""


class TwoPhaseWriter(Capturable, Protocol):
    """The writer of a sink that is exactly once, made as ``Class(sink, external)``; ``role = "two_phase_writer"``.

    `sink` is the name of the task, `external` an `ExternalSystem`. What is visible is, in its order, what the sink had
    taken before its cut of a complete checkpoint (rule 20; Flink: `TwoPhaseCommitSinkFunction`).
    """

    role: ClassVar[str] = "two_phase_writer"

    def write(self, event: Event) -> object:
        """Take the next event."""

    def pre_commit(self, checkpoint_id: int) -> object:
        """Prepare what was written since the last time: the sink takes its part of a checkpoint."""

    def finish(self) -> object:
        """Prepare what is left: nothing will be written any more. Every later checkpoint covers it."""

    def prepared(self) -> Iterable[str]:
        """Return the transactions that are prepared and not known to be committed.

        It is asked for when a part is acknowledged, which holds the answer: `recover` gets it.
        """

    def commit(self, checkpoint_id: int) -> object:
        """Commit all that the checkpoint covers, which is complete."""

    def abort(self, checkpoint_id: int) -> object:
        """Note that the coordinator has aborted a checkpoint; roll nothing back: the next complete one covers it."""

    def recover(self, prepared: Sequence[str], checkpoint_id: int) -> object:
        """Commit what the restored part holds, and roll back all else of this sink; 0 is the beginning.

        This is called on a new writer. What was committed before may be among `prepared`.
        """


class AtLeastOnceWriter(Capturable, Protocol):
    """The writer of a sink that is at least once, as `TwoPhaseWriter`; ``role = "at_least_once_writer"``.

    It may keep events back until `flush`.
    """

    role: ClassVar[str] = "at_least_once_writer"

    def write(self, event: Event) -> object:
        """Take the next event."""

    def flush(self) -> object:
        """Make visible what was written: the sink takes its part of a checkpoint, or has come to its end."""

    def recover(self, checkpoint_id: int) -> object:
        """Continue behind a checkpoint; 0 is the beginning. Called on a new writer."""


class IdempotentWriter(Capturable, Protocol):
    """The writer of a sink whose rows replace those of the same key, as `AtLeastOnceWriter`.

    ``role = "idempotent_writer"``.
    """

    role: ClassVar[str] = "idempotent_writer"

    def write(self, key: str, event: Event) -> object:
        """Take the next event, and the key of its row."""

    def flush(self) -> object:
        """As `AtLeastOnceWriter.flush`."""

    def recover(self, checkpoint_id: int) -> object:
        """As `AtLeastOnceWriter.recover`."""


class CheckpointStore(Protocol):
    """The store of checkpoints, made as ``Class(folder, files)``; ``role = "store"``.

    `folder` is a path that may not be there yet, `files` has the calls of a file system
    (`impl.storage.files.Files`), which may each fail with an `OSError`: names that were made, renamed or removed are
    durable from `flush_folder` on, bytes from the file's `flush` on. Before that a crash keeps any part of them. The
    machine may stop between any two of these calls, and a process be killed; the next one makes a new store. A store
    lets the `OSError` through, keeps no file open between two methods, and is copied between them. One process at a
    time writes; another may read. An id that was once begun is never given again.
    """

    role: ClassVar[str] = "store"

    def begin(self, checkpoint_id: int) -> object:
        """Begin an attempt; when this is done its id counts for `highest_id`, whatever happens."""

    def put(self, checkpoint_id: int, name: str, data: bytes) -> object:
        """Store a part; when this is done, it is durable."""

    def complete(self, checkpoint_id: int, names: Sequence[str]) -> object:
        """Make the checkpoint complete, with these parts; when this is done, that is durable. It may be tried again."""

    def discard(self, checkpoint_id: int) -> object:
        """Remove an attempt, or a complete checkpoint that is not retained. Meanwhile it is whole or not listed."""

    def list(self) -> Iterable[int]:
        """Return the ids of what is complete, in any order."""

    def get(self, checkpoint_id: int) -> Mapping[str, bytes]:
        """Return the parts of a complete checkpoint.

        It raises an `OSError`, a `LookupError` or a `ValueError` if that cannot be read whole: a reader then takes an
        older one.
        """

    def highest_id(self) -> int:
        """Return the highest id that was ever begun, also of what is removed; 0 if there is none."""

    def leftovers(self) -> Iterable[int]:
        """Return the ids of attempts that nobody goes on with, of which something is to be removed by `discard`."""


class SourcePort(Protocol):
    """The port that a source calls: the log that it reads, and what is behind it."""

    def read(self, position: int) -> Event:
        """Return the record at a position of the log; the first is at 1."""

    def send(self, message: Event | Watermark) -> None:
        """Send a record on, or a watermark to every output."""

    def snapshot(self, checkpoint_id: int, position: int) -> None:
        """Take the part of a checkpoint, which holds the position of the first record behind its barrier (rule 4)."""

    def forward(self, barrier: CheckpointBarrier) -> None:
        """Send the barrier to every output; a flagged one goes ahead of what was sent and has not left (rule 16)."""

    def cancel(self, checkpoint_id: int) -> None:
        """Send a cancel marker to every output (rule 10)."""

    def end(self) -> None:
        """Send the end to every output."""


class Source(Capturable, Protocol):
    """A source, made as ``Class(name, port)``; ``role = "source"``; `port` is a `SourcePort`."""

    role: ClassVar[str] = "source"

    def read_next(self) -> object:
        """Read the record at the position, send it at once, and go on to the next position."""

    def emit_watermark(self, timestamp_ms: int) -> object:
        """Send a watermark."""

    def on_barrier(self, barrier: CheckpointBarrier) -> object:
        """Take the part of a checkpoint and forward the barrier, both in this step; also if there is nothing to read.

        One whose id was aborted here before is skipped, and so is every one behind the end, which counts as a barrier.
        The part is acknowledged when this returns, if it was taken.
        """

    def abort(self, checkpoint_id: int) -> object:
        """Abort a checkpoint, as the coordinator has: if its barrier is still to come, send the cancel marker."""

    def finish(self) -> object:
        """Send the end: the log ends here."""

    def position(self) -> int:
        """Return the position of the next record."""

    def recover(self, position: int, checkpoint_id: int, finished: bool) -> object:
        """Continue at a position, behind a checkpoint; a source that had ended by then has ended. Called on a new
        source.
        """
