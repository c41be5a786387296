"""The coordinator: triggers checkpoints, gathers what the tasks report, and decides how each one ends.

Ids and epochs come from here alone, increase strictly, also over failures of the job and of the coordinator, and a
failed attempt burns its id (protocol rule 2). When every task has acknowledged or finished, the manifest is written;
the checkpoint is complete once that has ended, which drops every older one, and is then announced (rule 20). Manifests
are written one at a time, the oldest first. Aborting a checkpoint aborts all that is older too (rule 10), except
what is being published: nobody can tell any more what will have become of that.

When every task has finished, one checkpoint more is taken, of their final snapshots, so that sinks commit the last they
have (FLIP-147, simplified: no barrier is needed). Flink: `CheckpointCoordinator`, for the names and the pacing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, cast

from barrierlab.impl.checkpoint.actions import (
    Aborted,
    AbortTask,
    Actions,
    Completed,
    FailJob,
    Ignored,
    Inject,
    Notify,
    Publish,
    Refused,
    Triggered,
)
from barrierlab.impl.checkpoint.injector import MAX_EPOCH, InjectBarrierCommand
from barrierlab.impl.checkpoint.report import Acknowledge, Decline
from barrierlab.impl.checks import check_flag, check_number
from barrierlab.impl.errors import CheckpointIdError, NotPublishingError, UnknownTaskError, UnsettledError
from barrierlab.impl.reasons import Reason

RETRY_NS = 1_000_000_000  # before the final checkpoint is tried again, where there is no interval
_VALUES = (
    *("last_completed", "failures_in_row", "scheduling", "suspended", "ended"),
    *("_next_id", "_triggered_ns", "_completed_ns", "_resumed_ns", "_retry_ns"),
)
"""The attributes of a coordinator that are captured as they are."""
_values_of = attrgetter(*_VALUES)


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """The times of checkpoints, and the limits at which to abort.

    Attributes
    ----------
    interval_ns : int or None
        From one trigger to the next; None triggers only on demand.
    min_pause_ns : int
        From a completion to the next trigger, at least.
    timeout_ns : int
        From a checkpoint's trigger until it is aborted.
    max_concurrent : int
        How many may be under way at once.
    tolerable_failures : int or None
        How many may fail in a row; one more, and the job is to fail. None tolerates any number; Flink's default is 0.
        A checkpoint counts once, if the reason does (`Reason.counts`); what is aborted along with it does not.
    first_trigger_ns : int or None
        When the first is due; None is one interval after 0. After a recovery it is one interval after that.
    unaligned : bool
        Whether barriers are flagged from the start. (A task may switch by itself, flagged or not.)

    Raises
    ------
    LimitError
        If interval, timeout or max_concurrent is less than 1, or another is less than 0.
    """

    interval_ns: int | None = 10_000_000_000
    min_pause_ns: int = 0
    timeout_ns: int = 600_000_000_000
    max_concurrent: int = 1
    tolerable_failures: int | None = None
    first_trigger_ns: int | None = None
    unaligned: bool = False

    def __post_init__(self) -> None:
        check_number("interval_ns", self.interval_ns, 1, or_none="to trigger only on demand")
        check_number("min_pause_ns", self.min_pause_ns, 0)
        check_number("timeout_ns", self.timeout_ns, 1)
        check_number("max_concurrent", self.max_concurrent, 1)
        check_number("tolerable_failures", self.tolerable_failures, 0, or_none="to tolerate any number")
        check_number("first_trigger_ns", self.first_trigger_ns, 0, or_none="for one interval after 0")
        check_flag("unaligned", self.unaligned)


class PendingCheckpoint:
    """A checkpoint under way.

    Attributes
    ----------
    triggered_ns : int
    outstanding : set of str
        The tasks that have neither acknowledged nor finished.
    parts : dict
        The acknowledgements, by task.
    publishing : bool
        Whether its manifest is being written: from `Publish` until the driver says how that ended.
    """

    __slots__ = ("outstanding", "parts", "publishing", "triggered_ns")

    def __init__(
        self,
        triggered_ns: int,
        outstanding: Iterable[str],
        parts: Iterable[Acknowledge] = (),
        publishing: bool = False,
    ) -> None:
        self.triggered_ns = triggered_ns
        self.outstanding = set(outstanding)
        self.parts = {part.task: part for part in parts}
        self.publishing = publishing

    def sorted_parts(self) -> tuple[Acknowledge, ...]:
        """Return the parts, sorted by task name."""
        return tuple(self.parts[task] for task in sorted(self.parts))


class CheckpointCoordinator:
    """Decides over the checkpoints of one job.

    Parameters
    ----------
    config : CoordinatorConfig
    tasks : iterable of str
        Every task, sources and sinks among them.
    sources : iterable of str
        Those that get the commands.
    first_id : int
        The id of the first checkpoint. The coordinator that takes over from a lost one begins above every id that was
        ever begun: `SnapshotStore.highest_id` + 1 (protocol rule 2).

    Attributes
    ----------
    pending : dict of int to PendingCheckpoint
        By id, oldest first; what is being published is among them.
    finished_tasks : set of str
    final_snapshots : dict of str to Acknowledge
        Of those tasks that gave one.
    last_completed : int
        The newest complete id, or the restored one; 0 at first.
    failures_in_row : int
        Checkpoints that failed since the last completion or recovery: `Reason.counts`.
    scheduling : bool
        Whether triggers come by the interval; false once `stop_scheduler` was called.
    suspended : bool
        Whether the job has failed and is not resumed yet.
    ended : bool
        Whether every task has finished and the final checkpoint is complete: the job is over.

    Raises
    ------
    CheckpointIdError, LimitError, UnknownTaskError
        If the first id is less than 1, or more than an epoch can be, or a source is no task.

    Examples
    --------
    >>> from barrierlab.impl import Acknowledge, CheckpointCoordinator, CoordinatorConfig
    >>> coordinator = CheckpointCoordinator(CoordinatorConfig(interval_ns=None), ["a", "sink"], ["a"])
    >>> triggered, inject = coordinator.trigger(0)
    >>> inject
    Inject(source='a', command=InjectBarrierCommand(checkpoint_id=1, epoch=1, is_unaligned=False))
    >>> coordinator.acknowledge(Acknowledge("a", 1), 5)
    ()
    >>> coordinator.acknowledge(Acknowledge("sink", 1), 9)
    (Publish(checkpoint_id=1),)
    >>> coordinator.published(1, 12)
    (Completed(checkpoint_id=1), Notify(task='a', checkpoint_id=1), Notify(task='sink', checkpoint_id=1))
    """

    __slots__ = (
        "_completed_ns",
        "_next_id",
        "_resumed_ns",
        "_retry_ns",
        "_triggered_ns",
        "config",
        "ended",
        "failures_in_row",
        "final_snapshots",
        "finished_tasks",
        "last_completed",
        "pending",
        "scheduling",
        "sources",
        "suspended",
        "tasks",
    )

    def __init__(
        self, config: CoordinatorConfig, tasks: Iterable[str], sources: Iterable[str], first_id: int = 1
    ) -> None:
        self.config = config
        self.tasks = tuple(tasks)
        self.sources = tuple(sources)
        for source in self.sources:
            self._known(source)
        if type(first_id) is not int or first_id < 1:
            raise CheckpointIdError(first_id)
        check_number("first_id", first_id, 1, MAX_EPOCH)
        self.pending: dict[int, PendingCheckpoint] = {}
        self.finished_tasks: set[str] = set()
        self.final_snapshots: dict[str, Acknowledge] = {}
        self.last_completed = 0
        self.failures_in_row = 0
        self.scheduling = True
        self.suspended = False
        self.ended = False
        self._next_id = first_id
        self._triggered_ns: int | None = None
        self._completed_ns: int | None = None
        self._resumed_ns: int | None = None
        self._retry_ns: int | None = None  # the final checkpoint waits until then

    # Triggers.

    def trigger(self, now_ns: int) -> Actions:
        """Begin a checkpoint: Triggered, and a command for every source that has not ended; or Refused."""
        reason = self._refusal(now_ns)
        if reason is not None:
            return (Refused(reason),)
        checkpoint_id = self._begin(now_ns)
        # Epochs come from the same allocator as ids.
        command = InjectBarrierCommand(checkpoint_id, checkpoint_id, self.config.unaligned)
        injects = (Inject(source, command) for source in self.sources if source not in self.finished_tasks)
        return (Triggered(checkpoint_id), *injects)

    def _begin(self, now_ns: int) -> int:
        """Add a pending checkpoint; the final snapshot of a finished task is its part."""
        checkpoint_id = self._next_id
        self._next_id += 1
        self._triggered_ns = now_ns
        open_tasks = [task for task in self.tasks if task not in self.finished_tasks]
        parts = [replace(part, checkpoint_id=checkpoint_id) for part in self.final_snapshots.values()]
        self.pending[checkpoint_id] = PendingCheckpoint(now_ns, open_tasks, parts)
        return checkpoint_id

    def request(self, now_ns: int) -> Actions:
        """Trigger for a periodic injector (protocol rule 2); as `trigger`, it may be refused."""
        return self.trigger(now_ns)

    def stop_scheduler(self) -> None:
        """Stop triggers by the interval; pending checkpoints continue (Flink: `stopCheckpointScheduler`)."""
        self.scheduling = False

    def _refusal(self, now_ns: int) -> Reason | None:
        if self.suspended:
            return Reason.JOB_FAILED
        if self._is_failing():
            return Reason.TOO_MANY_FAILURES
        if self.finished_tasks.issuperset(self.sources):
            return Reason.SOURCES_FINISHED
        if self._next_id > MAX_EPOCH:
            return Reason.IDS_USED_UP
        if len(self.pending) >= self.config.max_concurrent:
            return Reason.TOO_MANY_PENDING
        if self._completed_ns is not None and now_ns < self._completed_ns + self.config.min_pause_ns:
            return Reason.MIN_PAUSE
        return None

    def _is_failing(self) -> bool:
        tolerable = self.config.tolerable_failures
        return tolerable is not None and self.failures_in_row > tolerable

    def _next_trigger_ns(self) -> int | None:
        """max(previous trigger + interval, previous completion + pause); None if none is to come as things are."""
        interval_ns = self.config.interval_ns
        if interval_ns is None or not self.scheduling:
            return None
        if self._triggered_ns is not None:
            due_ns = self._triggered_ns + interval_ns
        elif self._resumed_ns is not None:
            due_ns = self._resumed_ns + interval_ns
        else:
            due_ns = interval_ns if self.config.first_trigger_ns is None else self.config.first_trigger_ns
        if self._completed_ns is not None:
            due_ns = max(due_ns, self._completed_ns + self.config.min_pause_ns)
        return due_ns if self._refusal(due_ns) is None else None

    # Time.

    def next_deadline_ns(self) -> int | None:
        """Return when `on_time` will next have something to do; may be in the past; None if never as things are."""
        timeout_ns = self.config.timeout_ns
        deadlines = [each.triggered_ns + timeout_ns for each in self.pending.values() if not each.publishing]
        trigger_ns = self._next_trigger_ns()
        if trigger_ns is not None:
            deadlines.append(trigger_ns)
        if self._retry_ns is not None and self._wants_final():
            deadlines.append(self._retry_ns)
        return min(deadlines, default=None)

    def on_time(self, now_ns: int) -> Actions:
        """Abort checkpoints whose deadline has passed, then trigger what is due."""
        actions: Actions = ()
        for checkpoint_id, pending in list(self.pending.items()):
            if now_ns >= pending.triggered_ns + self.config.timeout_ns:
                actions += self.abort(checkpoint_id, Reason.EXPIRED, now_ns)
        trigger_ns = self._next_trigger_ns()
        if trigger_ns is not None and now_ns >= trigger_ns:
            actions += self.trigger(now_ns)
        return actions + self._final(now_ns)

    # Reports.

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Actions:
        """Take a subtask's acknowledgement; Ignored if it is late, a duplicate, or its checkpoint is not pending.

        That it is acknowledged means that the part is durable and, of a sink, prepared: the driver stores it before it
        tells the coordinator (protocol rule 20).

        Raises
        ------
        UnknownTaskError
            If the job has no such task. Nothing changes, as with the others.
        """
        self._known(report.task)
        pending = self.pending.get(report.checkpoint_id)
        if pending is None or report.task not in pending.outstanding:
            return (Ignored(report.task, report.checkpoint_id),)
        pending.outstanding.discard(report.task)
        pending.parts[report.task] = report
        return self._publish_next()

    def decline(self, report: Decline, now_ns: int) -> Actions:
        """Take a task's decline: the checkpoint is aborted; Ignored if it is not pending, or being published.

        Raises
        ------
        UnknownTaskError
            If the job has no such task.
        """
        self._known(report.task)
        pending = self.pending.get(report.checkpoint_id)
        if pending is None or pending.publishing:
            return (Ignored(report.task, report.checkpoint_id),)
        return self.abort(report.checkpoint_id, report.reason, now_ns)

    def finished(self, task: str, now_ns: int, part: Acknowledge | None = None) -> Actions:
        """Take the end of a task: it acknowledges every pending and later checkpoint (protocol rule 13).

        Parameters
        ----------
        task : str
        now_ns : int
        part : Acknowledge, optional
            Its `Task.final_snapshot`. It stands as its part of every checkpoint newer than the last that it took part
            in; for that one its acknowledgement is to come, or was lost, and its end is none: it would count what came
            behind the barrier. Without it there is no final checkpoint, and none after this can be restored.

        Raises
        ------
        UnknownTaskError
            If the job has no such task.
        """
        self._known(task)
        if self.suspended:
            return (Ignored(task, 0),)
        self.finished_tasks.add(task)
        if part is not None:
            self.final_snapshots[task] = part
        for checkpoint_id, pending in self.pending.items():
            if task not in pending.outstanding or (part is not None and checkpoint_id <= part.checkpoint_id):
                continue
            pending.outstanding.discard(task)
            if part is not None:
                pending.parts[task] = replace(part, checkpoint_id=checkpoint_id)
        return self._publish_next() + self._final(now_ns)

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> Actions:
        """Abort a checkpoint and every older one; each task that has not ended is notified once.

        Nothing happens if it is not under way, or is being published.
        """
        pending = self.pending.get(checkpoint_id)
        if pending is None or pending.publishing:
            return ()
        return self._abort(checkpoint_id, reason) + self._final(now_ns)

    def _abort(self, checkpoint_id: int, reason: Reason) -> Actions:
        tolerated = not self._is_failing()
        aborted = self._drop(checkpoint_id)
        self.failures_in_row += reason.counts
        orders = (AbortTask(task, checkpoint_id, reason) for task in self.tasks if task not in self.finished_tasks)
        actions: Actions = (*(Aborted(each, reason) for each in aborted), *orders)
        if tolerated and self._is_failing():
            actions += (FailJob(Reason.TOO_MANY_FAILURES),)
        return actions

    def _drop(self, checkpoint_id: int) -> list[int]:
        """Remove pending checkpoints up to this id, except the one being published; return them."""
        dropped = [each for each, its in self.pending.items() if each <= checkpoint_id and not its.publishing]
        for each in dropped:
            del self.pending[each]
        return dropped

    # The manifest.

    @property
    def settled(self) -> bool:
        """Return whether no manifest is being written.

        A job that failed reads the store only then. A manifest that landed later would bring a checkpoint back whose
        transactions have been rolled back.
        """
        return not self._publishing()

    def _publishing(self) -> tuple[int, ...]:
        return tuple(checkpoint_id for checkpoint_id, its in self.pending.items() if its.publishing)

    def _publish_next(self) -> Actions:
        """Publish the oldest fully acknowledged checkpoint, unless another one is being published."""
        if self.settled and not self.suspended:
            for checkpoint_id, pending in self.pending.items():
                if not pending.outstanding:
                    pending.publishing = True
                    return (Publish(checkpoint_id, pending.sorted_parts()),)
        return ()

    def published(self, checkpoint_id: int, now_ns: int) -> Actions:
        """Complete the checkpoint: its manifest is durable; every task is notified, also those that have ended.

        Every older one is dropped (protocol rule 20); the tasks know, for theirs has been overtaken. While the job is
        suspended nobody is notified: its tasks are no more.

        Raises
        ------
        NotPublishingError
            If it is not being published. Nothing changes.
        """
        parts = self._written(f"published({checkpoint_id})", checkpoint_id).sorted_parts()
        del self.pending[checkpoint_id]
        older = self._drop(checkpoint_id)
        self.last_completed = checkpoint_id
        self._completed_ns = now_ns
        self._retry_ns = None
        self.failures_in_row = 0
        actions: Actions = (Completed(checkpoint_id, parts),)
        if not self.suspended:
            actions += tuple(Notify(task, checkpoint_id) for task in self.tasks)
            self.ended = len(parts) == len(self.tasks) and all(part.finished for part in parts)
        actions += tuple(Aborted(each, Reason.SUBSUMED) for each in older)
        return actions + self._publish_next() + self._final(now_ns)

    def publish_failed(
        self, checkpoint_id: int, now_ns: int, definite: bool, why: Reason = Reason.STORE_FAILED
    ) -> Actions:
        """Handle a failed write of the manifest; if not `definite`, the manifest may exist nevertheless.

        `why` says what went wrong for certain, where it is not the store: the driver may not have come to the manifest,
        since the final snapshot of a task that had ended could not be saved before it.

        The checkpoint is aborted either way. That is sound: sinks roll nothing back at that, but only at a recovery,
        which reads what is there.

        Raises
        ------
        NotPublishingError
            If it is not being published. Nothing changes.
        """
        self._written(f"publish_failed({checkpoint_id})", checkpoint_id)
        reason = why if definite else Reason.STORE_IN_DOUBT
        if self.suspended:
            del self.pending[checkpoint_id]
            return (Aborted(checkpoint_id, reason),)
        self._retry_ns = now_ns + max(self.config.min_pause_ns, self.config.interval_ns or RETRY_NS)
        actions = self._abort(checkpoint_id, reason)
        return actions + self._publish_next() + self._final(now_ns)

    def _written(self, call: str, checkpoint_id: int) -> PendingCheckpoint:
        """Take out the checkpoint whose manifest was being written."""
        pending = self.pending.get(checkpoint_id)
        if pending is None or not pending.publishing:
            raise NotPublishingError(call, self._publishing())
        pending.publishing = False
        return pending

    # The end of the job.

    def _wants_final(self) -> bool:
        """Return whether all that is left of the job is its final checkpoint."""
        over = len(self.finished_tasks) == len(self.tasks) and not self.pending
        return over and not (self.suspended or self.ended or self._is_failing())

    def _final(self, now_ns: int) -> Actions:
        """Begin the final checkpoint once nothing else is pending. It needs no barrier: it has every part already."""
        if not self._wants_final():
            return ()
        if len(self.final_snapshots) < len(self.tasks) or self._next_id > MAX_EPOCH:
            self.ended = True
            return ()
        if self._retry_ns is not None and now_ns < self._retry_ns:
            return ()
        checkpoint_id = self._begin(now_ns)
        return (Triggered(checkpoint_id), *self._publish_next())

    # Failover.

    def suspend(self, now_ns: int, reason: Reason) -> Actions:
        """Abort what is pending, and trigger nothing until `resume`: the job has failed.

        What is being published is not: nobody knows yet. `published` or `publish_failed` says it; until then the
        coordinator is not `settled`. None of this counts as a failure in a row.
        """
        self.suspended = True
        return tuple(Aborted(each, reason) for each in self._drop(self._next_id))

    def resume(self, checkpoint_id: int, now_ns: int, finished: Mapping[str, Acknowledge]) -> None:
        """Continue after the job was restored.

        Parameters
        ----------
        checkpoint_id : int
            What it was restored from; 0 is the beginning.
        now_ns : int
            The interval counts from here.
        finished : mapping of str to Acknowledge
            The tasks that were restored as finished, with their final snapshots.

        Raises
        ------
        UnknownTaskError
            If one of them is no task. Nothing changes.
        UnsettledError
            If checkpoints are under way. Nothing changes.
        """
        for task in finished:
            self._known(task)
        if self.pending:
            raise UnsettledError(tuple(self.pending))
        self.suspended = False
        self.finished_tasks = set(finished)
        self.final_snapshots = dict(finished)
        self.ended = len(finished) == len(self.tasks)  # then that was the final checkpoint
        self.last_completed = checkpoint_id
        self.failures_in_row = 0
        self._triggered_ns = self._completed_ns = self._retry_ns = None
        self._resumed_ns = now_ns

    def _known(self, task: str) -> None:
        if task not in self.tasks:
            raise UnknownTaskError(task, self.tasks)

    # Capture and restore.

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        pending = tuple(
            (i, p.triggered_ns, tuple(sorted(p.outstanding)), tuple(p.parts.values()), p.publishing)
            for i, p in self.pending.items()
        )
        return pending, tuple(sorted(self.finished_tasks)), tuple(self.final_snapshots.values()), *_values_of(self)

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` of a coordinator of the same job returned."""
        pending, finished_tasks, final_snapshots, *values = cast("tuple[Any, ...]", value)
        self.pending = {each[0]: PendingCheckpoint(*each[1:]) for each in pending}
        self.finished_tasks = set(finished_tasks)
        self.final_snapshots = {part.task: part for part in final_snapshots}
        for name, each in zip(_VALUES, values, strict=True):
            setattr(self, name, each)
