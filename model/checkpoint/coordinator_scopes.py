"""The coordinator alone: ids, manifests that fail or stay in doubt, late and lost reports, pacing, failures in a row.

`CoordinatorReference` is written from protocol rules 2, 3, 10, 13 and 20, from FLIP-147 for the end of a job, and from
Flink's
`CheckpointCoordinator` for the pacing. Of a checkpoint it knows when it began, what came of which task, and whether its
manifest is being written; what follows from a stimulus is found by looking at everything again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator, CoordinatorConfig
from barrierlab.impl.checkpoint.report import Acknowledge, Decline
from barrierlab.impl.errors import NotPublishingError, UnknownTaskError, UnsettledError
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.component import CallStimulus, ComponentScope, Reference, RefusedError, Under, stimulus
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.explore.text_table import rows_of, settings_of

FINAL_RETRY_NS = 1_000_000_000
"""Until the final checkpoint is tried again where there is no interval: as the documentation of the machine has it."""
COUNTED = {"expired", "declined", "store failed", "store in doubt"}
"""Of the reasons that these scopes use, those that count as a failure in a row (Flink: `CheckpointFailureManager`)."""


_PLAIN = (
    *("now", "next_id", "completed", "writing", "finished_tasks", "running", "over", "scheduled", "failures"),
    *("last_trigger", "last_completion", "last_resume", "retry"),
)


@dataclass(frozen=True)
class CoordinatorJob:
    """A job, its settings, and how far a scope goes.

    Attributes
    ----------
    config : CoordinatorConfig
    tasks, sources : tuple of str
    ids : int
        The last checkpoint that is triggered from outside or by time.
    times_ns : tuple of int
        The instants, in order; the clock begins at the first.
    verbs : frozenset of str
        Which stimuli there are, of `CoordinatorReference`.
    reasons : tuple of str
        Why tasks decline, or the driver aborts.
    """

    config: CoordinatorConfig
    tasks: tuple[str, ...]
    sources: tuple[str, ...]
    ids: int
    verbs: frozenset[str]
    times_ns: tuple[int, ...] = (0,)
    reasons: tuple[str, ...] = ("declined",)


class CoordinatorReference(Reference):
    """The coordinator as the rules have it: every verb answers with what it says, and with where it stands then."""

    def __init__(self, job: CoordinatorJob) -> None:
        self.job = job
        self.now = 0  # the place in `times_ns`
        self.next_id, self.completed = 1, 0
        self.began: dict[int, int] = {}  # what is under way, oldest first
        self.missing: dict[int, tuple[str, ...]] = {}
        self.parts: dict[int, dict[str, str]] = {}
        self.writing = 0
        self.finished_tasks: tuple[str, ...] = ()
        self.final_snapshots: dict[str, str] = {}
        self.running, self.over, self.scheduled = True, False, True
        self.failures = 0
        self.last_trigger: int | None = None
        self.last_completion: int | None = None
        self.last_resume: int | None = None
        self.retry: int | None = None
        self.lines: list[str] = []

    # Between two stimuli.

    def capture(self) -> Hashable:
        """Return the state as a value."""
        parts = tuple((n, tuple(sorted(its.items()))) for n, its in self.parts.items())
        under_way = tuple(self.began.items()), tuple(self.missing.items()), parts
        return (*under_way, tuple(sorted(self.final_snapshots.items())), *(getattr(self, name) for name in _PLAIN))

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        began, missing, parts, final_snapshots, *plain = value
        self.began, self.missing, self.final_snapshots = dict(began), dict(missing), dict(final_snapshots)
        self.parts = {n: dict(its) for n, its in parts}
        for name, each in zip(_PLAIN, plain, strict=True):
            setattr(self, name, each)

    def stands(self) -> tuple[str, ...]:
        lines, self.lines = self.lines, []
        under_way = " ".join(f"{n}{'w' if n == self.writing else ''}" for n in self.began)
        return *lines, standing(
            under_way, self.writing == 0, self.over, self.completed, self.failures, self._deadline()
        )

    @property
    def now_ns(self) -> int:
        """The time."""
        return self.job.times_ns[self.now]

    # What may happen.

    def stimuli(self) -> Sequence[CallStimulus]:
        """Return all that a driver, a task or a store may do; also what comes late, twice, or from nobody."""
        return [each for each in self._stimuli() if each.verb in self.job.verbs]

    def _stimuli(self) -> Iterator[CallStimulus]:
        may_begin = self.next_id <= self.job.ids
        ids = range(1, self.next_id + may_begin)
        if may_begin:
            yield from (stimulus("trigger"), stimulus("request"))
        for n in ids:
            for task in self.job.tasks:
                yield stimulus("acknowledge", task, n)
                yield from (stimulus("decline", task, n, reason) for reason in self.job.reasons)
            yield from (stimulus("abort", n, reason) for reason in self.job.reasons)
            yield from (stimulus("published", n), stimulus("doubted", n), stimulus("refused", n))
        if self.next_id <= self.job.ids + 1:  # or final checkpoints come again and again
            for task in self.job.tasks:
                yield from (stimulus("finished", task, n) for n in dict.fromkeys((0, 1, self.next_id - 1)))
                yield stimulus("ended", task)
            yield from (stimulus("resume", self.completed), stimulus("resume", self.completed, *self.job.tasks))
            yield stimulus("resume", 0, *self.job.tasks[:1])
        if self.next_id <= self.job.ids + 2:
            yield stimulus("on_time")
        if self.now + 1 < len(self.job.times_ns):
            yield stimulus("wait")
        yield from (stimulus("suspend"), stimulus("stop_scheduler"), stimulus("nobody"))

    # Triggers.

    def trigger(self) -> None:
        """Begin one, unless there is a reason not to."""
        self._trigger()

    def request(self) -> None:
        """Trigger a checkpoint, as an injector asks for one (rule 2)."""
        self.trigger()

    def _trigger(self) -> None:
        why = self._refusal(self.now_ns)
        if why:
            self.lines.append(f"refused: {why}")
            return
        n = self._begin()
        flag = " unaligned" if self.job.config.unaligned else ""
        sources = [source for source in self.job.sources if source not in self.finished_tasks]
        self.lines += [f"inject {source} {n} epoch {n}{flag}" for source in sources]

    def _refusal(self, at_ns: int) -> str:
        config, last = self.job.config, self.last_completion
        if not self.running:
            return "job failed"
        if self._is_failing():
            return "too many failures"
        if all(source in self.finished_tasks for source in self.job.sources):
            return "sources finished"
        if len(self.began) >= config.max_concurrent:
            return "too many pending"
        return "min pause" if last is not None and at_ns - last < config.min_pause_ns else ""

    def _is_failing(self) -> bool:
        tolerable = self.job.config.tolerable_failures
        return tolerable is not None and self.failures > tolerable

    def _begin(self) -> int:
        n, self.next_id = self.next_id, self.next_id + 1
        self.lines.append(f"triggered {n}")
        self.began[n] = self.last_trigger = self.now_ns
        self.missing[n] = tuple(task for task in self.job.tasks if task not in self.finished_tasks)
        self.parts[n] = {task: f"{task}'s {kind} in {n}" for task, kind in self.final_snapshots.items()}
        return n

    # Reports: what is about nothing under way, or came before, is ignored.

    def acknowledge(self, task: str, n: int) -> None:
        """Take the part of a task."""
        if n not in self.began or task not in self.missing[n]:
            self.lines.append(f"ignored {task} {n}")
        else:
            self._has(n, task)
            self.parts[n][task] = f"{task}'s part in {n}"
            self._look()

    def nobody(self) -> tuple[str, ...]:
        """Refuse each report of a task that the job does not have."""
        return ("UnknownTaskError",) * 4

    def decline(self, task: str, n: int, reason: str) -> None:
        """Note that a part will not come."""
        if n not in self.began or n == self.writing:
            self.lines.append(f"ignored {task} {n}")
        else:
            self._abort(n, reason)

    def finished(self, task: str, last: int) -> None:
        """Note that a task ends: its final snapshot stands for every part of it behind `last` (rule 13, FLIP-147)."""
        self._finished(task, last, f"end behind {last}")

    def ended(self, task: str) -> None:
        """Note that a task ends, without a part."""
        self._finished(task, 0, "")

    def _finished(self, task: str, last: int, kind: str) -> None:
        if not self.running:
            self.lines.append(f"ignored {task} 0")
            return
        self.finished_tasks = tuple(each for each in self.job.tasks if each in (*self.finished_tasks, task))
        if kind:
            self.final_snapshots[task] = kind
        for n in self.began:
            if n > last and task in self.missing[n]:
                self._has(n, task)
                if kind:
                    self.parts[n][task] = f"{task}'s {kind} in {n}"
        self._look()

    def _has(self, n: int, task: str) -> None:
        self.missing[n] = tuple(each for each in self.missing[n] if each != task)

    # What is aborted: it and all that is older (rule 10), except what is being written.

    def abort(self, n: int, reason: str) -> None:
        """Abort a checkpoint, as the driver does."""
        if n in self.began and n != self.writing:
            self._abort(n, reason)

    def _abort(self, n: int, reason: str) -> None:
        was_failing = self._is_failing()
        self._drop(n, reason)
        self.failures += reason in COUNTED
        tasks = [task for task in self.job.tasks if task not in self.finished_tasks]
        self.lines += [f"abort {task} {n}: {reason}" for task in tasks]
        if self._is_failing() and not was_failing:
            self.lines.append("fail the job: too many failures")
        self._look()

    def _drop(self, up_to: int, reason: str) -> None:
        for n in [each for each in self.began if each <= up_to and each != self.writing]:
            self._forget(n)
            self.lines.append(f"aborted {n}: {reason}")

    def _forget(self, n: int) -> None:
        del self.began[n], self.missing[n], self.parts[n]

    # Manifests: one at a time, the oldest first (rule 20).

    def published(self, n: int) -> None:
        """Take a written manifest: the checkpoint is complete, every task is notified, older ones are subsumed."""
        if n != self.writing:
            raise RefusedError("NotPublishingError")
        parts, self.writing = self.parts[n], 0
        self._forget(n)
        self.completed, self.last_completion, self.failures, self.retry = n, self.now_ns, 0, None
        self.lines.append(f"completed {n} of {_joined(parts)}")
        if self.running:
            self.lines += [f"notify {task} {n}" for task in self.job.tasks]
            self.over = len(parts) == len(self.job.tasks) and all("end" in part for part in parts.values())
        self._drop(n, "subsumed")
        self._look()

    def refused(self, n: int) -> None:
        """Take a manifest that surely was not written."""
        self._not_published(n, "store failed")

    def doubted(self, n: int) -> None:
        """Take a manifest of which nobody knows whether it was written."""
        self._not_published(n, "store in doubt")

    def _not_published(self, n: int, reason: str) -> None:
        if n != self.writing:
            raise RefusedError("NotPublishingError")
        self.writing = 0
        if self.running:
            config = self.job.config
            self.retry = self.now_ns + max(config.min_pause_ns, config.interval_ns or FINAL_RETRY_NS)
            self._abort(n, reason)
        else:
            self._forget(n)
            self.lines.append(f"aborted {n}: {reason}")

    def _look(self) -> None:
        """Write what is whole; behind the end of the job comes one checkpoint more, of final snapshots alone."""
        self._write()
        if self._wants_final():
            if len(self.final_snapshots) < len(self.job.tasks):
                self.over = True
            elif self.retry is None or self.now_ns >= self.retry:
                self._begin()
                self._write()

    def _write(self) -> None:
        whole = [n for n in self.began if not self.missing[n]]
        if self.running and whole and not self.writing:
            self.writing = whole[0]
            self.lines.append(f"publish {whole[0]} of {_joined(self.parts[whole[0]])}")

    def _wants_final(self) -> bool:
        all_ended = len(self.finished_tasks) == len(self.job.tasks)
        return self.running and all_ended and not self.began and not self.over and not self._is_failing()

    # Failover.

    def suspend(self) -> None:
        """Abort what is under way, as the job fails: nobody counts that."""
        self.running = False
        self._drop(self.next_id, "job failed")

    def resume(self, n: int, *finished: str) -> None:
        """Let the job go on from checkpoint `n`, in which these tasks had finished."""
        if self.began:
            raise RefusedError("UnsettledError")
        self.running, self.failures, self.completed = True, 0, n
        self.finished_tasks, self.over = finished, len(finished) == len(self.job.tasks)
        self.final_snapshots = dict.fromkeys(finished, f"end behind {n}")
        self.last_trigger = self.last_completion = self.retry = None
        self.last_resume = self.now_ns

    # Time.

    def stop_scheduler(self) -> None:
        """Stop triggers by the clock."""
        self.scheduled = False

    def wait(self) -> None:
        """Let the clock go on, without a word to the coordinator."""
        self.now += 1

    def on_time(self) -> None:
        """Take the time from the driver: abort what is too late, and begin what is due."""
        for n, began_ns in list(self.began.items()):
            if n in self.began and n != self.writing and self.now_ns - began_ns >= self.job.config.timeout_ns:
                self._abort(n, "expired")
        due_ns = self._due()
        if due_ns is not None and self.now_ns >= due_ns:
            self._trigger()
        self._look()

    def _due(self) -> int | None:
        """Return when the clock begins the next checkpoint: an interval behind the last, and a pause behind the last
        that ended."""
        config = self.job.config
        if config.interval_ns is None or not self.scheduled:
            return None
        begins = [self.last_trigger, self.last_resume]
        since_ns = next((each for each in begins if each is not None), None)
        if since_ns is not None:
            due_ns = since_ns + config.interval_ns
        else:
            due_ns = config.interval_ns if config.first_trigger_ns is None else config.first_trigger_ns
        if self.last_completion is not None:
            due_ns = max(due_ns, self.last_completion + config.min_pause_ns)
        return None if self._refusal(due_ns) else due_ns

    def _deadline(self) -> int | None:
        times = [ns + self.job.config.timeout_ns for n, ns in self.began.items() if n != self.writing]
        times += [each for each in (self._due(), self.retry if self._wants_final() else None) if each is not None]
        return min(times, default=None)


def standing(under_way: str, settled: bool, over: bool, completed: int, failures: int, deadline: int | None) -> str:
    """Return where a coordinator stands, as both sides say it."""
    words = (f"under way {under_way or 'nothing'}", "settled" if settled else "writing", "over" if over else "goes on")
    return ", ".join((*words, f"last {completed}", f"{failures} failures", f"next at {deadline}"))


def _joined(parts: dict[str, str]) -> str:
    return ", ".join(parts[task] for task in sorted(parts))


class CoordinatorMachine(Under):
    """A `CheckpointCoordinator` with the verbs of `CoordinatorReference`."""

    refusals = (NotPublishingError, UnsettledError)

    def __init__(self, job: CoordinatorJob, components: Components) -> None:
        self.job, self.now = job, 0
        self.coordinator: CheckpointCoordinator = components.coordinator(job.config, job.tasks, job.sources, 1)

    @property
    def machines(self) -> Sequence[object]:
        """The one."""
        return (self.coordinator,)

    def capture(self) -> Hashable:
        """The time, and what it gives of itself; two parts that came in another order are the same."""
        self.coordinator.final_snapshots = dict(sorted(self.coordinator.final_snapshots.items()))
        for pending in self.coordinator.pending.values():
            pending.parts = dict(sorted(pending.parts.items()))
        return self.now, self.coordinator.capture()

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        self.now, captured = value
        self.coordinator.restore(captured)

    def call(self, move: CallStimulus) -> tuple[str, ...]:
        """Call as any side does, with the actions as lines."""
        return tuple(each if isinstance(each, str) else line(each) for each in super().call(move))

    def stands(self) -> tuple[str, ...]:
        its = self.coordinator
        under_way = " ".join(f"{n}{'w' if pending.publishing else ''}" for n, pending in its.pending.items())
        settled, deadline_ns = its.settled, its.next_deadline_ns()
        return (standing(under_way, settled, its.ended, its.last_completed, its.failures_in_row, deadline_ns),)

    @property
    def now_ns(self) -> int:
        """The time."""
        return self.job.times_ns[self.now]

    def trigger(self) -> Actions:
        return self.coordinator.trigger(self.now_ns)

    def request(self) -> Actions:
        return self.coordinator.request(self.now_ns)

    def acknowledge(self, task: str, n: int) -> Actions:
        return self.coordinator.acknowledge(Acknowledge(task, n, "part"), self.now_ns)

    def nobody(self) -> list[str]:
        its, at_ns, report = self.coordinator, self.now_ns, Acknowledge("nobody", 1)
        calls: tuple[Callable[[], object], ...] = (
            lambda: its.acknowledge(report, at_ns),
            lambda: its.decline(Decline("nobody", 1, Reason.DECLINED), at_ns),
            lambda: its.finished("nobody", at_ns),
            lambda: its.resume(0, at_ns, {"nobody": report}),
        )
        refused = []
        for call in calls:
            try:
                call()
            except UnknownTaskError as error:
                refused.append(type(error).__name__)
        return refused

    def decline(self, task: str, n: int, reason: str) -> Actions:
        return self.coordinator.decline(Decline(task, n, Reason(reason)), self.now_ns)

    def finished(self, task: str, last: int) -> Actions:
        return self.coordinator.finished(task, self.now_ns, _final(task, last))

    def ended(self, task: str) -> Actions:
        return self.coordinator.finished(task, self.now_ns)

    def abort(self, n: int, reason: str) -> Actions:
        return self.coordinator.abort(n, Reason(reason), self.now_ns)

    def published(self, n: int) -> Actions:
        return self.coordinator.published(n, self.now_ns)

    def refused(self, n: int) -> Actions:
        return self.coordinator.publish_failed(n, self.now_ns, definite=True)

    def doubted(self, n: int) -> Actions:
        return self.coordinator.publish_failed(n, self.now_ns, definite=False)

    def suspend(self) -> Actions:
        return self.coordinator.suspend(self.now_ns, Reason.JOB_FAILED)

    def resume(self, n: int, *finished: str) -> None:
        parts = {task: _final(task, n) for task in finished}
        self.coordinator.resume(n, self.now_ns, parts)

    def stop_scheduler(self) -> None:
        self.coordinator.stop_scheduler()

    def wait(self) -> None:
        self.now += 1

    def on_time(self) -> Actions:
        return self.coordinator.on_time(self.now_ns)


def _final(task: str, last: int) -> Acknowledge:
    return Acknowledge(task, last, f"end behind {last}", finished=True)


def line(action: CoordinatorAction) -> str:
    """An action as `CoordinatorReference` tells it."""
    match action:
        case Triggered(n):
            return f"triggered {n}"
        case Inject(source, command):
            flag = " unaligned" if command.is_unaligned else ""
            return f"inject {source} {command.checkpoint_id} epoch {command.epoch}{flag}"
        case Publish(n):
            return f"publish {n} of {_of_parts(action.parts)}"
        case Completed(n):
            return f"completed {n} of {_of_parts(action.parts)}"
        case Notify(task, n):
            return f"notify {task} {n}"
        case AbortTask(task, n, reason):
            return f"abort {task} {n}: {reason}"
        case Aborted(n, reason):
            return f"aborted {n}: {reason}"
        case Refused(reason):
            return f"refused: {reason}"
        case Ignored(task, n):
            return f"ignored {task} {n}"
        case FailJob(reason):
            return f"fail the job: {reason}"


def _of_parts(parts: Sequence[Acknowledge]) -> str:
    """The parts of a checkpoint in the order given; one that is final must say so."""
    return ", ".join(
        f"{part.task}'s {part.digest if part.finished == part.digest.startswith('end') else 'odd'} "
        f"in {part.checkpoint_id}"
        for part in parts
    )


def _scope(name: str, states: str, verbs: str, ids: str, job: str, config: str) -> ComponentScope:
    its = {"tasks": "a", "sources": "a", "times_ns": (0,), "reasons": "declined"} | settings_of(job)
    words = [tuple(its[key].split()) for key in ("tasks", "sources", "reasons")]
    settings = CoordinatorConfig(**{"interval_ns": None, **settings_of(config)})
    of = CoordinatorJob(settings, words[0], words[1], int(ids), frozenset(verbs.split()), its["times_ns"], words[2])
    return ComponentScope(
        f"coordinator: {name}", int(states), partial(CoordinatorMachine, of), partial(CoordinatorReference, of)
    )


# What happens, the states, the verbs, the ids, the job, and the settings of its coordinator.
_TABLE = f"""
three under way, manifests that fail or stay in doubt, and failover | 705
    | trigger acknowledge decline published refused doubted suspend resume nobody | 3 | tasks="a s" | max_concurrent=3
tasks that end | 2030 | trigger acknowledge finished published refused | 2
    | tasks="a b", sources="a b" | max_concurrent=2, unaligned=True
tasks that end without a final snapshot | 191 | trigger acknowledge finished ended published | 1
    | tasks="a b" | max_concurrent=2
the final checkpoint, tried again, and failover | 3638
    | trigger acknowledge finished published refused doubted suspend resume wait on_time | 1
    | times_ns=(0, 5, {FINAL_RETRY_NS}, {FINAL_RETRY_NS + 5}) | min_pause_ns=3, timeout_ns=5, tolerable_failures=2
interval, pause and timeout | 1436 | wait on_time acknowledge published request | 2 | times_ns=(0, 1, 2, 3, 4, 5, 6)
    | interval_ns=3, min_pause_ns=2, timeout_ns=4, max_concurrent=2, first_trigger_ns=1
the clock over a failure of the job | 2242
    | wait on_time acknowledge published suspend resume stop_scheduler decline | 2
    | times_ns=(0, 2, 4, 6, 8) | interval_ns=2, min_pause_ns=4, timeout_ns=4
failures in a row | 394 | trigger acknowledge decline published refused doubted abort suspend resume | 3
    | reasons="declined cancelled" | max_concurrent=2, tolerable_failures=1
"""
SCOPES = tuple(_scope(*cells) for cells in rows_of(_TABLE))
