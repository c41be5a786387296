"""The coordinator: triggers checkpoints, gathers what the tasks report, and decides how each one ends.

Ids and epochs come from here alone, increase strictly from 1, and a failed attempt burns its id (protocol rule 2).
A checkpoint completes when every task has acknowledged or finished; that drops every older one (rule 20). Giving one up
gives up all that is older too (rule 10). Flink: `CheckpointCoordinator`, for the names and the pacing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from impl.errors import LimitError, UnknownTaskError
from impl.injector import InjectBarrierCommand
from impl.reasons import Reason
from impl.task import Acknowledge, Decline


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """When to checkpoint, and when to give up.

    Attributes
    ----------
    interval_ns : int or None
        From one trigger to the next; None triggers only on demand.
    min_pause_ns : int
        From a completion to the next trigger, at least.
    timeout_ns : int
        From a checkpoint's trigger until it is given up.
    max_concurrent : int
        How many may be under way at once.
    tolerable_failures : int or None
        How many may fail in a row before no more are triggered; None tolerates any number.
    first_trigger_ns : int or None
        When the first is due; None is one interval after 0.
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
        for name, least in (
            ("interval_ns", 1),
            ("min_pause_ns", 0),
            ("timeout_ns", 1),
            ("max_concurrent", 1),
            ("tolerable_failures", 0),
            ("first_trigger_ns", 0),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise LimitError(name, value, f"{least} or more")


@dataclass(frozen=True, slots=True)
class Inject:
    """Leave this command at the injector of this source."""

    source: str
    command: InjectBarrierCommand


@dataclass(frozen=True, slots=True)
class AbortTask:
    """Tell this task that the checkpoint, and every older one, is given up."""

    task: str
    checkpoint_id: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Completed:
    """The checkpoint is complete; its parts, by task name."""

    checkpoint_id: int
    parts: tuple[Acknowledge, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aborted:
    """The checkpoint is given up."""

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


Action = Inject | AbortTask | Completed | Aborted | Refused | Ignored
Actions = tuple[Action, ...]


class PendingCheckpoint:
    """A checkpoint under way.

    Attributes
    ----------
    triggered_ns : int
    outstanding : set of str
        The tasks that have neither acknowledged nor finished.
    parts : dict
        The acknowledgements, by task.
    """

    __slots__ = ("outstanding", "parts", "triggered_ns")

    def __init__(self, triggered_ns: int, outstanding: Iterable[str], parts: Iterable[Acknowledge] = ()) -> None:
        self.triggered_ns = triggered_ns
        self.outstanding = set(outstanding)
        self.parts = {part.task: part for part in parts}


class CheckpointCoordinator:
    """Decides over the checkpoints of one job.

    Parameters
    ----------
    config : CoordinatorConfig
    tasks : iterable of str
        Every task, sources and sinks among them.
    sources : iterable of str
        Those that get the commands.

    Attributes
    ----------
    pending : dict of int to PendingCheckpoint
        By id, oldest first.
    last_completed : int
        The newest complete id; 0 at first.
    failures_in_row : int
        Checkpoints given up since the last completion.
    scheduling : bool
        Whether triggers come by the interval; false once `stop_scheduler` was called.

    Examples
    --------
    >>> from impl import Acknowledge, CheckpointCoordinator, CoordinatorConfig
    >>> coordinator = CheckpointCoordinator(CoordinatorConfig(interval_ns=None), ["a", "sink"], ["a"])
    >>> coordinator.trigger(0)
    (Inject(source='a', command=InjectBarrierCommand(checkpoint_id=1, epoch=1, is_unaligned=False)),)
    >>> coordinator.acknowledge(Acknowledge("a", 1), 5)
    ()
    >>> coordinator.acknowledge(Acknowledge("sink", 1), 9)
    (Completed(checkpoint_id=1),)
    """

    __slots__ = (
        "_completed_ns",
        "_next_id",
        "_triggered_ns",
        "config",
        "failures_in_row",
        "finished_tasks",
        "last_completed",
        "pending",
        "scheduling",
        "sources",
        "tasks",
    )

    def __init__(self, config: CoordinatorConfig, tasks: Iterable[str], sources: Iterable[str]) -> None:
        self.config = config
        self.tasks = tuple(tasks)
        self.sources = tuple(sources)
        for source in self.sources:
            self._known(source)
        self.pending: dict[int, PendingCheckpoint] = {}
        self.finished_tasks: set[str] = set()
        self.last_completed = 0
        self.failures_in_row = 0
        self.scheduling = True
        self._next_id = 1
        self._triggered_ns: int | None = None
        self._completed_ns: int | None = None

    # Triggers.

    def trigger(self, now_ns: int) -> Actions:
        """Begin a checkpoint: a command for every source that has not ended, or Refused."""
        reason = self._refusal(now_ns)
        if reason is not None:
            return (Refused(reason),)
        checkpoint_id = self._next_id
        self._next_id += 1
        self._triggered_ns = now_ns
        open_tasks = [task for task in self.tasks if task not in self.finished_tasks]
        self.pending[checkpoint_id] = PendingCheckpoint(now_ns, open_tasks)
        # Epochs come from the same allocator as ids.
        command = InjectBarrierCommand(checkpoint_id, checkpoint_id, self.config.unaligned)
        return tuple(Inject(source, command) for source in self.sources if source not in self.finished_tasks)

    def request(self, now_ns: int) -> Actions:
        """A periodic injector asks (protocol rule 2): the same as `trigger`, so it may be refused."""
        return self.trigger(now_ns)

    def stop_scheduler(self) -> None:
        """No more triggers by the interval; what is pending goes on (Flink: `stopCheckpointScheduler`)."""
        self.scheduling = False

    def _refusal(self, now_ns: int) -> Reason | None:
        tolerable = self.config.tolerable_failures
        if tolerable is not None and self.failures_in_row > tolerable:
            return Reason.TOO_MANY_FAILURES
        if self.finished_tasks.issuperset(self.sources):
            return Reason.SOURCES_FINISHED
        if len(self.pending) >= self.config.max_concurrent:
            return Reason.TOO_MANY_PENDING
        if self._completed_ns is not None and now_ns < self._completed_ns + self.config.min_pause_ns:
            return Reason.MIN_PAUSE
        return None

    def _next_trigger_ns(self) -> int | None:
        """max(previous trigger + interval, previous completion + pause); None if none is to come as things are."""
        interval_ns = self.config.interval_ns
        if interval_ns is None or not self.scheduling:
            return None
        if self._triggered_ns is not None:
            due_ns = self._triggered_ns + interval_ns
        else:
            due_ns = interval_ns if self.config.first_trigger_ns is None else self.config.first_trigger_ns
        if self._completed_ns is not None:
            due_ns = max(due_ns, self._completed_ns + self.config.min_pause_ns)
        return due_ns if self._refusal(due_ns) is None else None

    # Time.

    def next_deadline_ns(self) -> int | None:
        """When `on_time` will next have something to do; may be in the past; None if never as things are."""
        deadlines = [pending.triggered_ns + self.config.timeout_ns for pending in self.pending.values()]
        trigger_ns = self._next_trigger_ns()
        if trigger_ns is not None:
            deadlines.append(trigger_ns)
        return min(deadlines, default=None)

    def on_time(self, now_ns: int) -> Actions:
        """Give up what is too late by now, then begin what is due."""
        actions: Actions = ()
        for checkpoint_id, pending in list(self.pending.items()):
            if now_ns >= pending.triggered_ns + self.config.timeout_ns:
                actions += self.abort(checkpoint_id, Reason.EXPIRED, now_ns)
        trigger_ns = self._next_trigger_ns()
        if trigger_ns is not None and now_ns >= trigger_ns:
            actions += self.trigger(now_ns)
        return actions

    # Reports.

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Actions:
        """A task's part is whole; Ignored if that is late, a duplicate, or about nothing under way.

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
        return () if pending.outstanding else self._complete(report.checkpoint_id, now_ns)

    def decline(self, report: Decline, now_ns: int) -> Actions:
        """A task gives its part up, so the whole is given up; Ignored if it is not under way.

        Raises
        ------
        UnknownTaskError
            If the job has no such task.
        """
        self._known(report.task)
        if report.checkpoint_id not in self.pending:
            return (Ignored(report.task, report.checkpoint_id),)
        return self.abort(report.checkpoint_id, report.reason, now_ns)

    def finished(self, task: str, now_ns: int) -> Actions:
        """A task has ended: that counts as its acknowledgement, now and later (protocol rule 13).

        Raises
        ------
        UnknownTaskError
            If the job has no such task.
        """
        self._known(task)
        self.finished_tasks.add(task)
        actions: Actions = ()
        for checkpoint_id, pending in list(self.pending.items()):
            pending.outstanding.discard(task)
            if not pending.outstanding:
                actions += self._complete(checkpoint_id, now_ns)
        return actions

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> Actions:
        """Give a checkpoint up, and all that is older; every task that has not ended is told once."""
        if checkpoint_id not in self.pending:
            return ()
        given_up = [older for older in self.pending if older <= checkpoint_id]
        for older in given_up:
            del self.pending[older]
        self.failures_in_row += len(given_up)
        told = tuple(AbortTask(task, checkpoint_id, reason) for task in self.tasks if task not in self.finished_tasks)
        return (*(Aborted(older, reason) for older in given_up), *told)

    def _complete(self, checkpoint_id: int, now_ns: int) -> Actions:
        """Protocol rule 20: every older one is dropped; the tasks know, for theirs has been overtaken."""
        parts = self.pending.pop(checkpoint_id).parts
        older = [each for each in self.pending if each < checkpoint_id]
        for each in older:
            del self.pending[each]
        self.last_completed = checkpoint_id
        self._completed_ns = now_ns
        self.failures_in_row = 0
        completed = Completed(checkpoint_id, tuple(parts[task] for task in sorted(parts)))
        return (completed, *(Aborted(each, Reason.SUBSUMED) for each in older))

    def _known(self, task: str) -> None:
        if task not in self.tasks:
            raise UnknownTaskError(task, self.tasks)

    # Capture and restore.

    def capture(self) -> Hashable:
        """All that `restore` needs."""
        pending = tuple(
            (i, p.triggered_ns, tuple(sorted(p.outstanding)), tuple(p.parts.values())) for i, p in self.pending.items()
        )
        return (
            pending,
            tuple(sorted(self.finished_tasks)),
            self.last_completed,
            self.failures_in_row,
            self.scheduling,
            self._next_id,
            self._triggered_ns,
            self._completed_ns,
        )

    def restore(self, value: Hashable) -> None:
        """Be as the coordinator of the same job was that gave `value`."""
        (
            pending,
            finished_tasks,
            self.last_completed,
            self.failures_in_row,
            self.scheduling,
            self._next_id,
            self._triggered_ns,
            self._completed_ns,
        ) = value  # type: ignore[misc]
        self.pending = {i: PendingCheckpoint(ns, tasks, parts) for i, ns, tasks, parts in pending}  # type: ignore[has-type]
        self.finished_tasks = set(finished_tasks)  # type: ignore[has-type]
