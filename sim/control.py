"""The checkpoint coordinator in simulated time: its deadlines become timers, its actions travel with a latency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from impl import (
    Aborted,
    AbortTask,
    Acknowledge,
    CheckpointBarrier,
    CheckpointCoordinator,
    Completed,
    Decline,
    Inject,
    Notify,
    Publish,
    Reason,
    Refused,
    Triggered,
)
from impl.actions import Action

if TYPE_CHECKING:
    from sim.engine import Engine

NAME = "coordinator"


class CoordinatorNode:
    """Drives `CheckpointCoordinator`. Latencies are drawn by task; messages to one task keep their order."""

    def __init__(
        self,
        engine: Engine,
        machine: CheckpointCoordinator,
        trigger_latency: Mapping[str, Callable[[], int]],
        ack_latency: Mapping[str, Callable[[], int]],
        async_part: Mapping[str, Callable[[], int]],
    ) -> None:
        self.machine = machine
        self._engine = engine
        self._trigger_latency, self._ack_latency, self._async = trigger_latency, ack_latency, async_part
        self._armed_ns: int | None = None
        self._arrives_ns: dict[str, int] = {}
        self._heard_ns: dict[str, int] = {}

    def start(self) -> None:
        self._arm()

    def stop(self) -> None:
        """No new checkpoints; what is pending goes on."""
        self.machine.stop_scheduler()

    def _arm(self) -> None:
        due_ns = self.machine.next_deadline_ns()
        if due_ns is not None and (self._armed_ns is None or due_ns < self._armed_ns):
            self._armed_ns = max(due_ns, self._engine.now)
            self._engine.after(self._armed_ns - self._engine.now, self._deadline)

    def _deadline(self) -> None:
        now = self._engine.now
        if self._armed_ns is None or now < self._armed_ns:
            return
        self._armed_ns = None
        self._carry_out(self.machine.on_time(now))

    def request(self) -> None:
        """A source's periodic injector asks for a checkpoint (rule 2)."""
        if self.machine.scheduling:
            self._carry_out(self.machine.request(self._engine.now))

    def report(self, report: Acknowledge | Decline) -> None:
        """A task has something to say: it arrives after the asynchronous part and the way here."""
        delay_ns = self._ack_latency[report.task]()
        if type(report) is Acknowledge:
            async_ns = self._async[report.task]()
            self._engine.metrics.async_part(report, async_ns)
            delay_ns += async_ns
        self._hear_in_order(report.task, delay_ns, lambda: self._heard(report))

    def _hear_in_order(self, task: str, delay_ns: int, action: Callable[[], None]) -> None:
        """What one task says is heard in the order in which it was said: its end behind its reports."""
        at_ns = max(self._engine.now + delay_ns, self._heard_ns.get(task, 0))
        self._heard_ns[task] = at_ns
        self._engine.after(at_ns - self._engine.now, action)

    def _heard(self, report: Acknowledge | Decline) -> None:
        engine, now = self._engine, self._engine.now
        if type(report) is Acknowledge:
            engine.entries.append((now, ">ack", report.task, None, report.checkpoint_id))
            engine.metrics.acknowledged(report.task, report.checkpoint_id, now)
            self._carry_out(self.machine.acknowledge(report, now))
        else:
            engine.entries.append((now, ">decline", report.task, None, report.checkpoint_id))
            self._carry_out(self.machine.decline(report, now))

    def give_up(self, checkpoint_id: int, reason: Reason) -> None:
        """A source says that a newer command replaced this one."""
        self._carry_out(self.machine.abort(checkpoint_id, reason, self._engine.now))

    def finished(self, task: str) -> None:
        """A task has ended, and has nothing more to report: it counts as acknowledged once that is heard."""
        self._hear_in_order(task, self._ack_latency[task](), lambda: self._heard_end(task))

    def _heard_end(self, task: str) -> None:
        self._engine.task_ended()
        self._carry_out(self.machine.finished(task, self._engine.now))

    def _carry_out(self, actions: tuple[Action, ...]) -> None:
        engine, now = self._engine, self._engine.now
        for action in actions:
            kind = type(action)
            if kind is Triggered:
                self._triggered(action.checkpoint_id)
            elif kind is Inject:
                self._later(action.source, lambda a=action: engine.inject(a))
            elif kind is AbortTask:
                self._later(action.task, lambda a=action: self._abort(a.task, a.checkpoint_id, a.reason))
            elif kind is Publish:
                self._carry_out(self.machine.published(action.checkpoint_id, now))
            elif kind is Notify:
                engine.nodes[action.task].task.notify(action.checkpoint_id, now)
            elif kind is Completed:
                engine.entries.append((now, "completed", NAME, None, action.checkpoint_id))
                engine.metrics.completed(action.checkpoint_id, now)
            elif kind is Aborted:
                if action.reason is Reason.EXPIRED:
                    engine.entries.append((now, ">expire", NAME, None, action.checkpoint_id))
                engine.entries.append((now, "aborted", NAME, None, (action.checkpoint_id, str(action.reason))))
                engine.metrics.aborted(action.checkpoint_id, now, str(action.reason))
            elif kind is Refused:
                engine.metrics.refused(str(action.reason))
        self._arm()

    def _triggered(self, checkpoint_id: int) -> None:
        engine, now = self._engine, self._engine.now
        engine.entries.append((now, ">trigger", NAME, None, checkpoint_id))
        engine.metrics.triggered(checkpoint_id, now)
        for node in engine.operator_nodes:
            node.task.gate.aligner.note_trigger(checkpoint_id, now)
        if engine.switch_ns is not None:
            barrier = CheckpointBarrier.new_unaligned(checkpoint_id, checkpoint_id)
            engine.after(engine.switch_ns, lambda: engine.expedite(barrier))

    def _later(self, task: str, action: Callable[[], None]) -> None:
        at_ns = max(self._engine.now + self._trigger_latency[task](), self._arrives_ns.get(task, 0))
        self._arrives_ns[task] = at_ns
        self._engine.after(at_ns - self._engine.now, action)

    def _abort(self, task: str, checkpoint_id: int, reason: Reason) -> None:
        self._engine.nodes[task].abort(checkpoint_id, reason)
