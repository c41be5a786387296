"""The coordinator of the world as a table: what it is, times what it hears, gives what it is then, and what it wants.

As `model.checkpoint.task_transitions` for tasks. Its monitor knows which checkpoints were begun, have ended, and what
was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from barrierlab.impl.checkpoint.actions import (
    Aborted,
    AbortTask,
    Completed,
    CoordinatorAction,
    Inject,
    Notify,
    Publish,
    Refused,
    Triggered,
)
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.impl.checkpoint.report import Acknowledge, Decline
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.monitor import raised
from barrierlab.model.checkpoint.task_transitions import NOW_NS, CoordinatorOrder, Finished, Note
from barrierlab.model.errors import RAISED
from barrierlab.model.explore.intern import Interner
from barrierlab.model.explore.memo import Memo
from barrierlab.model.spec import equations
from barrierlab.model.spec.history import COORDINATOR
from barrierlab.model.spec.watch import Breach


class CoordinatorMonitor(NamedTuple):
    """The state of the coordinator that judging needs.

    Attributes
    ----------
    triggered, completed : int
        The last checkpoint that was begun, and the last that was completed.
    limit : int
        The last that may be triggered, from outside, in this attempt.
    ended : frozenset of int
    acknowledged : frozenset of (int, str)
        Checkpoint and task, of those that have not ended.
    """

    triggered: int = 0
    completed: int = 0
    limit: int = 0
    ended: frozenset[int] = frozenset()
    acknowledged: frozenset[tuple[int, str]] = frozenset()

    def acknowledged_by(self, checkpoint_id: int) -> frozenset[str]:
        """Return the tasks whose part of a checkpoint has come."""
        return frozenset(task for number, task in self.acknowledged if number == checkpoint_id)


class Decision(NamedTuple):
    """A decision of the coordinator.

    Attributes
    ----------
    cell : int
    orders : tuple of (str, CoordinatorOrder)
        What is on its way to which task.
    ends : tuple of (int, bool)
        Checkpoints that have ended, and whether they are complete.
    acknowledged : frozenset of str
        Of a checkpoint that was completed, who had acknowledged.
    broken : tuple of (str, str)
    notes : tuple of Note
    aborts : bool
        Whether tasks get the order to abort a checkpoint.
    parts : tuple of Acknowledge
        Of a checkpoint that was completed.
    """

    cell: int
    orders: tuple[tuple[str, CoordinatorOrder], ...]
    ends: tuple[tuple[int, bool], ...]
    acknowledged: frozenset[str]
    broken: tuple[Breach, ...]
    notes: tuple[Note, ...]
    aborts: bool
    parts: tuple[Acknowledge, ...]


class CoordinatorTransitions:
    """All cells of the coordinator, and the steps between them.

    Parameters
    ----------
    make : callable
        Given the id of its first checkpoint, makes the coordinator.
    limit : int
        How many checkpoints are triggered from outside.
    stores : bool
        Whether manifests are written in their own time, and sinks notified of it; else at once, and nobody is notified.

    Attributes
    ----------
    outstanding : list of dict of int to frozenset of str
        Of the checkpoints that have not ended, the tasks whose part is missing, by cell.
    monitors : list of CoordinatorMonitor
        By cell.
    publishing : list of int
        The checkpoint whose manifest is being written, by cell; 0 is none.
    start : int
    """

    def __init__(self, make: Callable[[int], CheckpointCoordinator], limit: int, stores: bool) -> None:
        self._make, self._stores = make, stores
        self.coordinator = make(1)
        self._cells: Interner[tuple[Hashable, CoordinatorMonitor]] = Interner()
        self.outstanding: list[dict[int, frozenset[str]]] = []
        self.monitors: list[CoordinatorMonitor] = []
        self.publishing: list[int] = []
        self._decide: Memo[Decision | None] = Memo(self._decided)
        self.start = self._captured(CoordinatorMonitor(limit=limit))

    def trigger(self, cell: int) -> Decision | None:
        """Trigger a checkpoint; None if it is refused."""
        return self._decide[cell, "trigger"]

    def abort_checkpoint(self, cell: int, checkpoint_id: int) -> Decision | None:
        """Abort a checkpoint by the coordinator's own clock."""
        return self._decide[cell, checkpoint_id]

    def hear(self, cell: int, task: str, report: object) -> Decision | None:
        """Return what the coordinator decides when the report of `task` comes."""
        return self._decide[cell, (task, report) if type(report) is Finished else report]

    def published(self, cell: int) -> Decision | None:
        """Return what it decides when the manifest is written."""
        return self._decide[cell, "published"]

    def suspend(self, cell: int) -> Decision | None:
        """Return what it decides when the job has failed."""
        return self._decide[cell, "suspend"]

    def parts(self, cell: int) -> tuple[Acknowledge, ...]:
        """Return the parts of the checkpoint that is being published."""
        self.coordinator.restore(self._cells.values[cell][0])
        return self.coordinator.pending[self.publishing[cell]].sorted_parts()

    def lost(self, cell: int) -> int:
        """Lose the coordinator, and what only it knew; another one begins above every id that was ever begun."""
        monitor = self.monitors[cell]
        ended = monitor.ended | frozenset(self.outstanding[cell])
        self.coordinator = self._make(monitor.triggered + 1)
        return self._captured(monitor._replace(ended=ended, acknowledged=frozenset()))

    def resume(
        self, cell: int, checkpoint_id: int, finished: Mapping[str, Acknowledge], again: int, forgets: bool
    ) -> int:
        """Let the job go on, restored: `again` checkpoints are to come, newer ones than any before.

        With `forgets`, which of those before was completed last is forgotten, but for the restored one.
        """
        machine, monitor = self._cells.values[cell]
        self.coordinator.restore(machine)
        self.coordinator.resume(checkpoint_id, NOW_NS, finished)
        monitor = monitor._replace(limit=monitor.triggered + again)
        return self._captured(monitor._replace(completed=checkpoint_id) if forgets else monitor)

    def decisions(self) -> Iterator[tuple[bool, Decision]]:
        """Yield each decision that was ever taken, and whether it was an abort asked from outside."""
        for (_, what), decision in self._decide.items():
            if decision is not None:
                yield type(what) is int, decision

    def differences(self) -> Iterator[str | None]:
        """Make every decision a second time; yield a line of what differs, or None, for each."""
        self.coordinator = self._make(1)
        return self._decide.differences(COORDINATOR, lambda key: str(key[1]), _words)

    def _decided(self, cell: int, what: Any) -> Decision | None:
        """Return the decision on `what`: a word, a checkpoint to abort, a report, or a task with its last report."""
        coordinator, publishing = self.coordinator, self.publishing[cell]
        does: Callable[[], tuple[CoordinatorAction, ...]]
        note: Note | None = None
        if what == "trigger":
            does = partial(coordinator.trigger, NOW_NS)
        elif what == "suspend":
            does = partial(coordinator.suspend, NOW_NS, Reason.JOB_FAILED)
        elif what == "published":
            note, does = (">publish", COORDINATOR, None, publishing), partial(coordinator.published, publishing, NOW_NS)
        elif type(what) is int:
            note, does = (">expire", COORDINATOR, None, what), partial(coordinator.abort, what, Reason.EXPIRED, NOW_NS)
        elif type(what) is Acknowledge:
            note, does = (">ack", what.task, None, what.checkpoint_id), partial(coordinator.acknowledge, what, NOW_NS)
        elif type(what) is Decline:
            note, does = (">decline", what.task, None, what.checkpoint_id), partial(coordinator.decline, what, NOW_NS)
        else:
            task, finished = what
            note, does = (">finished", task, None, None), partial(coordinator.finished, task, NOW_NS, finished.part)
        machine, monitor = self._cells.values[cell]
        coordinator.restore(machine)
        try:
            actions = does() if self._stores else self._published(does())
        except RAISED as error:  # as in `TaskTransitions`
            broken, notes = (raised(COORDINATOR, error),), () if note is None else (note,)
            return Decision(cell, (), (), frozenset(), broken, notes, False, ())
        refused = len(actions) == 1 and type(actions[0]) is Refused
        return None if refused else self._carried_out(monitor, what, note, actions)

    def _published(self, actions: tuple[CoordinatorAction, ...]) -> tuple[CoordinatorAction, ...]:
        """Write each manifest at once, where nothing is ever restored; return the actions that remain."""
        carried_out: list[CoordinatorAction] = []
        for action in actions:
            if type(action) is Publish:
                carried_out += self._published(self.coordinator.published(action.checkpoint_id, NOW_NS))
            else:
                carried_out.append(action)
        return tuple(carried_out)

    def _carried_out(
        self, monitor: CoordinatorMonitor, what: object, note: Note | None, actions: tuple[CoordinatorAction, ...]
    ) -> Decision:
        broken: list[Breach] = []
        notes: list[Note] = [] if note is None else [note]
        orders: list[tuple[str, CoordinatorOrder]] = []
        ends: list[tuple[int, bool]] = []
        if type(what) is Acknowledge:
            monitor = monitor._replace(acknowledged=monitor.acknowledged | {(what.checkpoint_id, what.task)})
        acknowledged: frozenset[str] = frozenset()
        parts: tuple[Acknowledge, ...] = ()
        for action in actions:
            if type(action) is Triggered:
                late = equations.triggered_late(action.checkpoint_id, monitor.triggered)
                if late is not None:
                    broken.append(("ID", late))
                monitor = monitor._replace(triggered=max(monitor.triggered, action.checkpoint_id))
                notes.append((">trigger", COORDINATOR, None, action.checkpoint_id))
            elif type(action) is Inject:
                orders.append((action.source, action))
            elif type(action) is AbortTask:
                orders.append((action.task, action))
            elif type(action) is Notify:
                if self._stores:
                    orders.append((action.task, action))
            elif type(action) is Completed:
                broken += _ended(monitor, action.checkpoint_id, "completed")
                acknowledged |= monitor.acknowledged_by(action.checkpoint_id)
                if action.checkpoint_id not in monitor.ended:  # else what would be judged is forgotten
                    ends.append((action.checkpoint_id, True))
                parts = action.parts
                notes.append(("completed", COORDINATOR, None, action.checkpoint_id))
                monitor = _without(monitor, action.checkpoint_id)._replace(completed=action.checkpoint_id)
            elif type(action) is Aborted:
                broken += _ended(monitor, action.checkpoint_id, "aborted")
                ends.append((action.checkpoint_id, False))
                notes.append(("aborted", COORDINATOR, None, (action.checkpoint_id, str(action.reason))))
                monitor = _without(monitor, action.checkpoint_id)
        aborts = any(type(action) is AbortTask for action in actions)
        return Decision(
            self._captured(monitor),
            tuple(orders),
            tuple(ends),
            acknowledged,
            tuple(broken),
            tuple(notes),
            aborts,
            parts,
        )

    def _captured(self, monitor: CoordinatorMonitor) -> int:
        """Capture without the order in which parts came, and how many checkpoints have failed: neither matters."""
        coordinator = self.coordinator
        coordinator.failures_in_row = 0
        coordinator.final_snapshots = dict(sorted(coordinator.final_snapshots.items()))
        for pending in coordinator.pending.values():
            pending.parts = dict(sorted(pending.parts.items()))
        number = self._cells.number((coordinator.capture(), monitor))
        if number == len(self.monitors):
            self.monitors.append(monitor)
            self.publishing.append(next((n for n, its in coordinator.pending.items() if its.publishing), 0))
            self.outstanding.append({n: frozenset(its.outstanding) for n, its in coordinator.pending.items()})
        return number


def _words(decision: Decision | None) -> Iterator[str]:
    """Yield the effects of a decision, and the state that the coordinator was left in."""
    if decision is not None:
        for verb, who, _, subject in decision.notes:
            yield f"{verb} {who} {subject}"
        for task, order in decision.orders:
            yield f"{order} to {task}"
        yield f"state {decision.cell}"


def _without(monitor: CoordinatorMonitor, checkpoint_id: int) -> CoordinatorMonitor:
    return monitor._replace(
        ended=monitor.ended | {checkpoint_id},
        acknowledged=frozenset(each for each in monitor.acknowledged if each[0] != checkpoint_id),
    )


def _ended(monitor: CoordinatorMonitor, checkpoint_id: int, verb: str) -> list[Breach]:
    if checkpoint_id in monitor.ended:
        return [("LIVE", reason) for reason in equations.ended_again(checkpoint_id, verb, "had ended")]
    if verb != "completed":
        return []
    reasons = equations.completed_out_of_turn(checkpoint_id, monitor.completed, checkpoint_id <= monitor.triggered)
    return [("ID", reason) for reason in reasons]
