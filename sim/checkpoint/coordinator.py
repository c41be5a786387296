"""The checkpoint coordinator in simulated time: its deadlines become timers, its actions travel with a latency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barrierlab.impl import (
    Aborted,
    AbortTask,
    Acknowledge,
    CheckpointBarrier,
    CheckpointCoordinator,
    Completed,
    Decline,
    FailJob,
    Inject,
    Notify,
    Publish,
    Reason,
    Refused,
    Triggered,
)
from barrierlab.impl.checkpoint.actions import Action

if TYPE_CHECKING:
    from barrierlab.sim.checkpoint.engine import Engine
    from barrierlab.sim.checkpoint.faults import Faults
    from barrierlab.sim.checkpoint.storage import Storage

NAME = "coordinator"
CRASHED = "coordinator crashed"
"""Why a checkpoint failed that was pending when its coordinator stopped dead: nobody was left to say so."""
Draw = Mapping[str, Callable[[], int]]


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long things take, in nanoseconds.

    Drawn for each checkpoint: what the coordinator does before its commands leave. Drawn by task: messages to it,
    announcements to it, its answers, the asynchronous part.
    """

    command: Callable[[], int]
    trigger: Draw
    notify: Draw
    ack: Draw
    async_part: Draw


class CoordinatorNode:
    """Drives `CheckpointCoordinator`; messages to one task keep their order, and what one task says does, too.

    Attributes
    ----------
    dead : bool
        It has crashed: it hears and says nothing more, and another one will take over.
    on_the_way : int
        Announcements that have not reached their task yet.
    gone : set of str
        The tasks that have ended and left: a complete checkpoint holds their final part. One that has ended and is not
        among them waits for such a checkpoint, and can fail (Apache Flink, FLIP-147).
    """

    def __init__(
        self, engine: Engine, machine: CheckpointCoordinator, latencies: Latencies, faults: Faults, storage: Storage
    ) -> None:
        self.machine = machine
        self.dead = False
        self.on_the_way = 0
        self.gone: set[str] = set()
        self._engine, self._latencies, self._faults, self._storage = engine, latencies, faults, storage
        self._armed_ns: int | None = None
        self._commands_ns = 0  # when the commands of the newest checkpoint leave
        self._arrives_ns: dict[str, int] = {}
        self._heard_ns: dict[str, int] = {}
        self._ended_ns: dict[str, int] = {}  # when a task's end was heard of
        self._saving: set[int] = set()  # checkpoints of which final parts are being saved, before the manifest
        self._publishing: dict[int, tuple[Acknowledge, ...]] = {}
        self._unsaved: set[tuple[str, int]] = set()  # parts that the store refused

    def start(self) -> None:
        """Count the time to the first checkpoint."""
        self._arm()

    def stop(self) -> None:
        """No new checkpoints; what is pending goes on."""
        self.machine.stop_scheduler()

    def crash(self) -> None:
        """Stop dead. A manifest that is being written is there now, or never will be; what was pending is lost."""
        engine = self._engine
        engine.entries.append((engine.now, ">crash", NAME, None, None))
        self.dead = True
        for checkpoint_id in dict.fromkeys((*self.machine.pending, *self._publishing)):
            engine.metrics.aborted(checkpoint_id, engine.now, CRASHED)
        for checkpoint_id, parts in self._publishing.items():
            self._storage.cut_short(checkpoint_id, parts)

    def at_rest(self) -> bool:
        """Nothing is pending, nothing is being published, and all has been announced."""
        return not self.machine.pending and self.machine.settled and not self.on_the_way

    def has_on_its_way(self) -> bool:
        """Return whether a command, an announcement or an answer travels, or a manifest is being written."""
        last_ns = max(self._commands_ns, *self._arrives_ns.values(), *self._heard_ns.values(), 0)
        return bool(self._publishing) or last_ns > self._engine.now

    def _arm(self) -> None:
        due_ns = self.machine.next_deadline_ns()
        if due_ns is not None and (self._armed_ns is None or due_ns < self._armed_ns):
            self._armed_ns = max(due_ns, self._engine.now)
            self._engine.after(self._armed_ns - self._engine.now, self._deadline)

    def _deadline(self) -> None:
        now = self._engine.now
        if self.dead or self._armed_ns is None or now < self._armed_ns:
            return
        self._armed_ns = None
        self._carry_out(self.machine.on_time(now))

    def request(self) -> None:
        """A source's periodic injector asks for a checkpoint (rule 2)."""
        if self.machine.scheduling and not self.dead:
            self._carry_out(self.machine.request(self._engine.now))

    # What tasks say.

    def report(self, report: Acknowledge | Decline) -> None:
        """A task has something to say: it arrives after the asynchronous part and the way here."""
        task, engine = report.task, self._engine
        delay_ns = self._latencies.ack[task]()
        if type(report) is Acknowledge:
            size_bytes = engine.metrics.sizes(report)
            async_ns = self._storage.write_ns(self._latencies.async_part[task](), size_bytes)
            engine.metrics.async_part(report, engine.now, async_ns)
            if task in self._faults.acks:
                delay_ns = self._faults.acks[task].slowed(delay_ns)
            delay_ns += async_ns
            if self._storage.keeps_bytes:
                engine.after(async_ns, lambda: self._save(report))
            if self._faults.loses_ack(task):
                return
        self._hear_in_order(task, delay_ns, lambda: self._heard(report))

    def _save(self, report: Acknowledge) -> None:
        """The asynchronous part is over: the part is durable now, or has been refused."""
        if not self._engine.nodes[report.task].dead and not self._storage.write(report):
            self._unsaved.add((report.task, report.checkpoint_id))

    def _hear_in_order(self, task: str, delay_ns: int, action: Callable[[], None]) -> None:
        """What one task says is heard in the order in which it was said: its end behind its reports."""
        at_ns = max(self._engine.now + delay_ns, self._heard_ns.get(task, 0))
        self._heard_ns[task] = at_ns

        def hear() -> None:
            if not self.dead and not self._engine.nodes[task].dead:
                action()

        self._engine.after(at_ns - self._engine.now, hear)

    def _heard(self, report: Acknowledge | Decline) -> None:
        engine, now = self._engine, self._engine.now
        if (report.task, report.checkpoint_id) in self._unsaved:
            report = Decline(report.task, report.checkpoint_id, Reason.STORE_FAILED)
        if type(report) is Acknowledge:
            engine.entries.append((now, ">ack", report.task, None, report.checkpoint_id))
            engine.metrics.acknowledged(report.task, report.checkpoint_id, now)
            self._carry_out(self.machine.acknowledge(report, now))
        else:
            engine.entries.append((now, ">decline", report.task, None, report.checkpoint_id))
            self._carry_out(self.machine.decline(report, now))

    def give_up(self, checkpoint_id: int, reason: Reason) -> None:
        """A source says that a newer command replaced this one."""
        if not self.dead:
            self._carry_out(self.machine.abort(checkpoint_id, reason, self._engine.now))

    def cancel(self) -> bool:
        """Give up what is pending; return whether anything was."""
        newest = [] if self.dead else list(self.machine.pending)[-1:]
        for checkpoint_id in newest:
            self._carry_out(self.machine.abort(checkpoint_id, Reason.CANCELLED, self._engine.now))
        return bool(newest)

    def finished(self, part: Acknowledge) -> None:
        """A task has ended, and has nothing more to report but its final part."""
        self._hear_in_order(part.task, self._latencies.ack[part.task](), lambda: self._heard_end(part))

    def _heard_end(self, part: Acknowledge) -> None:
        self._ended_ns[part.task] = self._engine.now
        self._engine.task_ended()
        self._carry_out(self.machine.finished(part.task, self._engine.now, part))

    # A failover.

    def suspend(self, reason: Reason) -> None:
        """The job has failed: what is pending is given up, and nothing begins until `resume`."""
        self._armed_ns = None
        self.on_the_way = 0
        self._carry_out(self.machine.suspend(self._engine.now, reason))
        for checkpoint_id in sorted(self._saving):
            self._not_saved(checkpoint_id, reason)

    def resume(self, checkpoint_id: int, finished: Mapping[str, Acknowledge]) -> None:
        """The job runs again, from this checkpoint; these tasks had finished."""
        self.machine.resume(checkpoint_id, self._engine.now, finished)
        self.gone = set(finished)
        self._arm()

    # What the machine says.

    def _carry_out(self, actions: tuple[Action, ...]) -> None:
        engine, now = self._engine, self._engine.now
        for action in actions:
            kind = type(action)
            if kind is Triggered:
                self._triggered(action.checkpoint_id)
            elif kind is Inject:
                self._later(
                    action.source, self._latencies.trigger, lambda a=action: engine.inject(a), self._commands_ns
                )
            elif kind is AbortTask:
                self._later(action.task, self._latencies.trigger, lambda a=action: self._abort(a))
            elif kind is Publish:
                self._publish(action)
            elif kind is Completed:
                self.gone |= {part.task for part in action.parts if part.finished}
                engine.entries.append((now, "completed", NAME, None, action.checkpoint_id))
                engine.metrics.completed(action.checkpoint_id, now)
            elif kind is Notify:
                self._announce(action)
            elif kind is Aborted:
                self._aborted(action)
            elif kind is Refused:
                engine.metrics.refused(str(action.reason))
            elif kind is FailJob:
                engine.recovery.fail(str(action.reason))
        if not self.dead:
            self._arm()

    def _triggered(self, checkpoint_id: int) -> None:
        engine, now = self._engine, self._engine.now
        engine.entries.append((now, ">trigger", NAME, None, checkpoint_id))
        engine.metrics.triggered(checkpoint_id, now)
        self._commands_ns = now + self._latencies.command()
        engine.metrics.checkpoints[checkpoint_id].commands_ns = self._commands_ns
        self._storage.begin(checkpoint_id)
        for node in engine.operator_nodes:
            node.task.gate.aligner.note_trigger(checkpoint_id, now)
        if engine.switch_ns is not None:
            barrier = CheckpointBarrier.new_unaligned(checkpoint_id, checkpoint_id)
            engine.after(engine.switch_ns, lambda: engine.expedite(barrier))

    def _publish(self, action: Publish) -> None:
        """Write the manifest, once all final parts are saved that no checkpoint holds yet."""
        checkpoint_id, now = action.checkpoint_id, self._engine.now
        final = [part for part in action.parts if part.finished and part.task not in self.gone]
        saved_ns = max((self._save_final(part) for part in final), default=now)
        if saved_ns <= now:
            self._write_manifest(action)
            return
        self._saving.add(checkpoint_id)
        triggered_ns = self._engine.metrics.checkpoints[checkpoint_id].triggered_ns
        expires_ns = max(triggered_ns + self.machine.config.timeout_ns, now)
        if expires_ns < saved_ns:
            self._engine.after(expires_ns - now, lambda: self._not_saved(checkpoint_id, Reason.EXPIRED))
        else:
            self._engine.after(saved_ns - now, lambda: self._saved_final(action, final))

    def _save_final(self, part: Acknowledge) -> int:
        """When the final part of a task that has ended and waits for its last checkpoint will be here, and saved.

        The task does that when it hears of the checkpoint, on its own, as it does its other asynchronous parts.
        """
        task, checkpoint_id, metrics = part.task, part.checkpoint_id, self._engine.metrics
        heard_ns = metrics.checkpoints[checkpoint_id].triggered_ns + self._latencies.trigger[task]()
        began_ns = max(heard_ns, self._ended_ns[task])
        metrics.barrier(task, checkpoint_id, began_ns, 0)
        async_ns = self._storage.write_ns(self._latencies.async_part[task](), metrics.sizes(part))
        metrics.async_part(part, began_ns, async_ns)
        here_ns = began_ns + async_ns + self._latencies.ack[task]()
        metrics.acknowledged(task, checkpoint_id, max(here_ns, self._engine.now))
        return here_ns

    def _saved_final(self, action: Publish, final: list[Acknowledge]) -> None:
        if self.dead or action.checkpoint_id not in self._saving:
            return
        if any(self._engine.nodes[part.task].dead for part in final):
            return  # the job will be known to have failed
        if all(self._storage.write(part) for part in final):
            self._saving.remove(action.checkpoint_id)
            self._write_manifest(action)
        else:
            self._not_saved(action.checkpoint_id, Reason.STORE_FAILED)

    def _not_saved(self, checkpoint_id: int, why: Reason) -> None:
        """A final part was not saved: there will be no manifest, and another try (rule 20)."""
        if not self.dead and checkpoint_id in self._saving:
            self._saving.remove(checkpoint_id)
            self._carry_out(self.machine.publish_failed(checkpoint_id, self._engine.now, definite=True, why=why))

    def _write_manifest(self, action: Publish) -> None:
        """A restart waits for that to end (rule 20)."""
        self._publishing[action.checkpoint_id] = action.parts
        self._engine.metrics.checkpoints[action.checkpoint_id].manifest_ns = self._engine.now
        write_ns = self._storage.publish_ns()
        if write_ns:
            self._engine.schedule(write_ns, lambda: self._published(action))
        else:
            self._published(action)

    def _published(self, action: Publish) -> None:
        if self.dead:
            return
        engine, now, checkpoint_id = self._engine, self._engine.now, action.checkpoint_id
        del self._publishing[checkpoint_id]
        engine.entries.append((now, ">publish", NAME, None, checkpoint_id))
        error = self._storage.publish(checkpoint_id, action.parts)
        if error is None:
            self._carry_out(self.machine.published(checkpoint_id, now))
        else:
            self._carry_out(self.machine.publish_failed(checkpoint_id, now, definite=error.definite))
        if self.machine.settled:
            engine.recovery.settled()

    def _aborted(self, action: Aborted) -> None:
        engine, now, checkpoint_id = self._engine, self._engine.now, action.checkpoint_id
        if action.reason is Reason.EXPIRED:
            engine.entries.append((now, ">expire", NAME, None, checkpoint_id))
        engine.entries.append((now, "aborted", NAME, None, (checkpoint_id, str(action.reason))))
        engine.metrics.aborted(checkpoint_id, now, str(action.reason))
        if action.reason.definite:
            self._storage.abandon(checkpoint_id)

    def _announce(self, action: Notify) -> None:
        """Only sinks do something when a checkpoint is complete."""
        if action.task in self._engine.scenario.topology.sinks:
            self.on_the_way += 1
            self._later(action.task, self._latencies.notify, lambda: self._notify(action))

    def _notify(self, action: Notify) -> None:
        self.on_the_way -= 1
        self._engine.nodes[action.task].notify(action.checkpoint_id)

    def _abort(self, action: AbortTask) -> None:
        self._engine.nodes[action.task].abort(action.checkpoint_id, action.reason)

    def _later(self, task: str, latency: Draw, action: Callable[[], None], leaves_ns: int = 0) -> None:
        at_ns = max(max(self._engine.now, leaves_ns) + latency[task](), self._arrives_ns.get(task, 0))
        self._arrives_ns[task] = at_ns

        def arrive() -> None:
            if not self._engine.nodes[task].dead:
                action()

        self._engine.after(at_ns - self._engine.now, arrive)
