"""An external coordinator in the place of `impl.checkpoint.coordinator.CheckpointCoordinator` in whole dataflows.

Its actions also say what the world asks of a coordinator beside its decisions: which checkpoints are under way, whose
part is missing, and what is being published.

A scope is explored whole: the reduction (`model.checkpoint.partial_order`) was argued for the coordinator of `impl`,
and leaves out orders of reports that make no difference to that one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import Any, get_args

from barrierlab.impl.checkpoint.actions import (
    Aborted,
    AbortTask,
    Actions,
    Completed,
    CoordinatorAction,
    FailJob,
    Ignored,
    Inject,
    Notify,
    Publish,
    Refused,
    Triggered,
)
from barrierlab.impl.checkpoint.coordinator import CoordinatorConfig, PendingCheckpoint
from barrierlab.impl.checkpoint.injector import InjectBarrierCommand
from barrierlab.impl.checkpoint.report import Acknowledge, Decline
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.hosting import ExternalError, Hosted, brief, examine_class
from barrierlab.model.checkpoint.interfaces import Coordinator

_OPTIONAL = {"aborts": ("abort",), "ends": ("finished",), "recovery": ("suspend", "resume")}
_ACTIONS: tuple[type, ...] = get_args(CoordinatorAction)


def examine(kind: type) -> None:
    """Look at a class before anything is explored: `model.checkpoint.hosting.examine_class`."""
    config = CoordinatorConfig(interval_ns=None, max_concurrent=1000)
    make = partial(ExternalCoordinator, kind, config, ("a", "s"), ("a",))
    examine_class(kind, Coordinator, _OPTIONAL, "config, tasks, sources, first_id", make)


class ExternalCoordinator:
    """Adapts an external coordinator to the interface of `impl`.

    Parameters
    ----------
    kind : type
    config : CoordinatorConfig
    tasks, sources : iterable of str
    first_id : int

    Attributes
    ----------
    pending : dict of int to PendingCheckpoint
        What is under way, as its actions have it, oldest first.
    final_snapshots : dict
        Stays empty.
    failures_in_row : int
        Stays 0.
    """

    def __init__(
        self, kind: type, config: CoordinatorConfig, tasks: Iterable[str], sources: Iterable[str], first_id: int = 1
    ) -> None:
        self._kind, self._config, self._tasks, self._sources = kind, config, tuple(tasks), tuple(sources)
        self._first_id, self._made = first_id, dict[int, Hosted]()
        self.pending: dict[int, PendingCheckpoint] = {}
        self.final_snapshots: dict[str, Acknowledge] = {}
        self.failures_in_row = 0
        self._finished: frozenset[str] = frozenset()
        self._hosted()

    def _hosted(self) -> Hosted:
        """Return the one that was made with this first id: another may not know it from what it captured."""
        if self._first_id not in self._made:
            make = lambda: self._kind(self._config, self._tasks, self._sources, self._first_id)  # noqa: E731
            self._made[self._first_id] = Hosted(make, (self._config, self._tasks, self._sources))
        return self._made[self._first_id]

    # What it gets.

    def trigger(self, now_ns: int) -> Actions:
        """`Coordinator.trigger`; Refused, if nothing came of it."""
        actions = self._actions_of("trigger", now_ns)
        return actions if any(type(each) not in _NO_EFFECT for each in actions) else (Refused(Reason.JOB_FAILED),)

    def acknowledge(self, report: Acknowledge, now_ns: int) -> Actions:
        """`Coordinator.acknowledge`."""
        if report.checkpoint_id in self.pending:
            self.pending[report.checkpoint_id].outstanding.discard(report.task)
        return self._actions_of("acknowledge", report, now_ns)

    def decline(self, report: Decline, now_ns: int) -> Actions:
        """`Coordinator.decline`."""
        return self._actions_of("decline", report, now_ns)

    def abort(self, checkpoint_id: int, reason: Reason, now_ns: int) -> Actions:
        """`Coordinator.abort`."""
        return self._actions_of("abort", checkpoint_id, reason, now_ns)

    def finished(self, task: str, now_ns: int, part: Acknowledge | None = None) -> Actions:
        """`Coordinator.finished`."""
        self._finished |= {task}
        for checkpoint_id, pending in self.pending.items():
            if part is None or checkpoint_id > part.checkpoint_id:
                pending.outstanding.discard(task)
        return self._actions_of("finished", task, now_ns, part)

    def published(self, checkpoint_id: int, now_ns: int) -> Actions:
        """`Coordinator.published`; the checkpoint is complete with the parts that were published."""
        pending = self.pending[checkpoint_id]
        pending.publishing, parts = False, pending.sorted_parts()
        actions = self._actions_of("published", checkpoint_id, now_ns)
        return tuple(
            Completed(checkpoint_id, parts) if type(each) is Completed and each.checkpoint_id == checkpoint_id else each
            for each in actions
        )

    def suspend(self, now_ns: int, reason: Reason) -> Actions:
        """`Coordinator.suspend`."""
        return self._actions_of("suspend", now_ns, reason)

    def resume(self, checkpoint_id: int, now_ns: int, finished: Mapping[str, Acknowledge]) -> None:
        """`Coordinator.resume`."""
        self._finished = frozenset(finished)
        self._hosted().machine.resume(checkpoint_id, now_ns, finished)

    # What comes of it.

    def _actions_of(self, method: str, *arguments: Any) -> Actions:
        actions = self._looked_at(method, getattr(self._hosted().machine, method)(*arguments))
        for each in actions:
            self._take_note(each)
        return actions

    def _looked_at(self, method: str, answer: Any) -> Actions:
        name = f"{self._kind.__name__}.{method}"
        if isinstance(answer, str | bytes | Mapping) or not (answer is None or isinstance(answer, Iterable)):
            raise ExternalError(f"{name} answered {brief(answer)}; allowed: actions, in a tuple or a list")
        actions = tuple(answer or ())
        for each in actions:
            if type(each) not in _ACTIONS:
                allowed = ", ".join(kind.__name__ for kind in _ACTIONS)
                raise ExternalError(f"{name} answered {brief(each)}; allowed: {allowed}")
            for field, kind, among in _FIELDS[type(each)]:
                value = getattr(each, field)
                if not isinstance(value, kind) or (among and value not in getattr(self, among)):
                    names = f"one of {', '.join(getattr(self, among))}" if among else f"a value of type {kind.__name__}"
                    raise ExternalError(f"{name} answered {brief(each)}, {field} {brief(value)}; allowed: {names}")
            if type(each) is Publish and not all(isinstance(part, Acknowledge) for part in each.parts):
                raise ExternalError(
                    f"{name} publishes {brief(each.parts)}; allowed: reports, as they were acknowledged"
                )
        return actions

    def _take_note(self, action: CoordinatorAction) -> None:
        if type(action) is Triggered:
            open_tasks = [task for task in self._tasks if task not in self._finished]
            self.pending[action.checkpoint_id] = PendingCheckpoint(0, open_tasks)
        elif type(action) is Publish:
            pending = self.pending.setdefault(action.checkpoint_id, PendingCheckpoint(0, ()))
            pending.publishing, pending.parts = True, {part.task: part for part in action.parts}
        elif type(action) is Completed or type(action) is Aborted:
            self.pending.pop(action.checkpoint_id, None)

    def capture(self) -> Hashable:
        """Return all of it, and what was read off its actions."""
        pending = tuple(
            (n, tuple(sorted(p.outstanding)), p.sorted_parts(), p.publishing) for n, p in self.pending.items()
        )
        return self._first_id, self._hosted().capture(), pending, self._finished

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        self._first_id, inner, pending, self._finished = value
        self._hosted().restore(inner)
        self.pending = {n: PendingCheckpoint(0, out, parts, publishing) for n, out, parts, publishing in pending}


_NO_EFFECT = (Refused, Ignored, FailJob)
_FIELDS: dict[type, tuple[tuple[str, type, str], ...]] = {
    Triggered: (("checkpoint_id", int, ""),),
    Inject: (("source", str, "_sources"), ("command", InjectBarrierCommand, "")),
    Publish: (("checkpoint_id", int, ""), ("parts", tuple, "")),
    Completed: (("checkpoint_id", int, ""),),
    Notify: (("task", str, "_tasks"), ("checkpoint_id", int, "")),
    AbortTask: (("task", str, "_tasks"), ("checkpoint_id", int, ""), ("reason", Reason, "")),
    Aborted: (("checkpoint_id", int, ""), ("reason", Reason, "")),
    Refused: (),
    Ignored: (),
    FailJob: (),
}
"""By action: its fields that matter here, their types, and among which names they have to be."""
