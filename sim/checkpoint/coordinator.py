"""The checkpoint coordinator in simulated time: its deadlines become timers, its actions travel with a latency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

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
from barrierlab.impl.checkpoint.actions import CoordinatorAction
from barrierlab.model.spec.history import Entry
from barrierlab.sim.checkpoint.faults import Faults
from barrierlab.sim.checkpoint.metrics import Metrics
from barrierlab.sim.checkpoint.storage import Storage
from barrierlab.sim.checkpoint.tasks import Job, SourceNode
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.core.cores import Cores
from barrierlab.sim.scenario.settings import Scenario, ns

NAME = "coordinator"
CRASHED = "coordinator crashed"
"""The failure reason of a checkpoint pending when its coordinator stopped dead: nobody was left to say so."""
Draw = Mapping[str, Callable[[], int]]


def switch_ns(scenario: Scenario) -> int | None:
    """Return how long after its trigger an aligned checkpoint turns unaligned, in nanoseconds; None: never."""
    return ns(scenario.checkpoint.aligned_checkpoint_timeout_s) if scenario.mode.settings.is_late else None


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies, in nanoseconds.

    Drawn for each checkpoint: what the coordinator does before its commands leave. Drawn by task: messages to it,
    announcements to it, its answers, the asynchronous part, and what channel state adds to that.
    """

    command: Callable[[], int]
    trigger: Draw
    notify: Draw
    ack: Draw
    async_part: Draw
    channel_state: Draw


class CoordinatorNode:
    """Drives `CheckpointCoordinator`; messages to one task keep their order, and what one task says does, too.

    Attributes
    ----------
    dead : bool
        It has crashed: it hears and says nothing more, and another one will take over.
    on_the_way : int
        Announcements that have not reached their task yet.
    gone : set of str
        The tasks that have ended and left: a complete checkpoint holds their final snapshot. One that has ended and is
        not among them waits for such a checkpoint, and can fail (Apache Flink, FLIP-147).
    running : int
        How many tasks of the attempt have not ended, as far as has been heard.
    triggered_ns : dict of int to int
        By checkpoint, when it was triggered.
    """

    def __init__(
        self,
        scenario: Scenario,
        clock: Clock,
        entries: list[Entry],
        metrics: Metrics,
        job: Job,
        machine: CheckpointCoordinator,
        latencies: Latencies,
        cores: Cores | None,
        faults: Faults,
        storage: Storage,
        fail: Callable[[str], None],
        settled: Callable[[], None],
    ) -> None:
        self.machine = machine
        self.running = 0
        self.triggered_ns: dict[int, int] = {}
        self.dead = False
        self.on_the_way = 0
        self.gone: set[str] = set()
        self._sinks, self._switch_ns = scenario.topology.sinks, switch_ns(scenario)
        self._channel_state_bytes_per_s = scenario.checkpoint.channel_state_bytes_per_s
        self._clock, self._entries, self._metrics, self._job = clock, entries, metrics, job
        self._latencies, self._cores, self._faults, self._storage = latencies, cores, faults, storage
        self._fail, self._settled = fail, settled
        self._armed_ns: int | None = None
        self._commands_ns = 0  # when the commands of the newest checkpoint leave
        self._arrives_ns: dict[str, int] = {}
        self._heard_ns: dict[str, int] = {}
        self._ended_ns: dict[str, int] = {}  # when a task's end was heard of
        self._saving: set[int] = set()  # checkpoints of which final snapshots are being saved, before the manifest
        self._publishing: dict[int, tuple[Acknowledge, ...]] = {}
        self._unsaved: set[tuple[str, int]] = set()  # parts that the store refused

    def start(self) -> None:
        """Count the time to the first checkpoint."""
        self.running = len(self._job.nodes)
        self._arm()

    def stop(self) -> None:
        """Begin no new checkpoints; what is pending goes on."""
        self.machine.stop_scheduler()

    def crash(self) -> None:
        """Stop dead. A manifest that is being written is there now, or never will be; what was pending is lost."""
        self._entries.append((self._clock.now, ">crash", NAME, None, None))
        self.dead = True
        for checkpoint_id in dict.fromkeys((*self.machine.pending, *self._publishing)):
            self._metrics.aborted(checkpoint_id, self._clock.now, CRASHED)
        for checkpoint_id, parts in self._publishing.items():
            self._storage.cut_short(checkpoint_id, parts)

    def quiescent(self) -> bool:
        """Return whether nothing is pending or being published, and all has been announced."""
        return not self.machine.pending and self.machine.settled and not self.on_the_way

    def has_on_its_way(self) -> bool:
        """Return whether a command, an announcement or an answer travels, or a manifest is being written."""
        last_ns = max(self._commands_ns, *self._arrives_ns.values(), *self._heard_ns.values(), 0)
        return bool(self._publishing) or last_ns > self._clock.now

    def _arm(self) -> None:
        due_ns = self.machine.next_deadline_ns()
        if due_ns is not None and (self._armed_ns is None or due_ns < self._armed_ns):
            self._armed_ns = max(due_ns, self._clock.now)
            self._clock.after(self._armed_ns - self._clock.now, self._deadline)

    def _deadline(self) -> None:
        now = self._clock.now
        if self.dead or self._armed_ns is None or now < self._armed_ns:
            return
        self._armed_ns = None
        self._carry_out(self.machine.on_time(now))

    def request(self) -> None:
        """Request a checkpoint, as a source's periodic injector does (rule 2)."""
        if self.machine.scheduling and not self.dead:
            self._carry_out(self.machine.request(self._clock.now))

    # What tasks say.

    def report(self, report: Acknowledge | Decline) -> None:
        """Send what a task has to say: it arrives after the asynchronous part and the way here."""
        task = report.task
        delay_ns = self._latencies.ack[task]()
        if type(report) is Acknowledge:
            async_ns = self._begin_to_save(report, self._clock.now)
            if task in self._faults.acks:
                delay_ns = self._faults.acks[task].slowed(delay_ns)
            delay_ns += async_ns
            if self._storage.keeps_bytes:
                self._clock.after(async_ns, lambda: self._save(report))
            if self._faults.loses_ack(task):
                return
        self._hear_in_order(task, delay_ns, lambda: self._heard(report))

    def _begin_to_save(self, report: Acknowledge, began_ns: int) -> int:
        """Begin to save a part; return how long its asynchronous part takes, in nanoseconds."""
        state_bytes = len(repr(report.image))
        inflight_bytes = sum(data.size_bytes for data in (*report.inflight, *report.inflight_output))
        usual_ns = self._latencies.async_part[report.task]()
        if inflight_bytes:
            usual_ns += self._latencies.channel_state[report.task]()
            rate = self._channel_state_bytes_per_s
            usual_ns += 0 if rate is None else round(inflight_bytes / rate * 1e9)
        async_ns = self._storage.write_ns(report, usual_ns, state_bytes + inflight_bytes)
        if self._cores is not None:
            self._cores.occupy(report.task, began_ns, async_ns)
        self._metrics.async_part(report, began_ns, async_ns, state_bytes, inflight_bytes)
        return async_ns

    def _save(self, report: Acknowledge) -> None:
        """Save the part, as its asynchronous part is over: it is durable now, or has been refused."""
        node = self._job.nodes[report.task]
        if not node.dead and not self._storage.write(report):
            self._unsaved.add((report.task, report.checkpoint_id))

    def _hear_in_order(self, task: str, delay_ns: int, action: Callable[[], None]) -> None:
        """Deliver a task's messages in the order in which they were sent: its end behind its reports."""
        at_ns = max(self._clock.now + delay_ns, self._heard_ns.get(task, 0))
        self._heard_ns[task] = at_ns

        def hear() -> None:
            if not self.dead and not self._job.nodes[task].dead:
                action()

        self._clock.after(at_ns - self._clock.now, hear)

    def _heard(self, report: Acknowledge | Decline) -> None:
        now = self._clock.now
        if (report.task, report.checkpoint_id) in self._unsaved:
            report = Decline(report.task, report.checkpoint_id, Reason.STORE_FAILED)
        if isinstance(report, Acknowledge):
            self._entries.append((now, ">ack", report.task, None, report.checkpoint_id))
            self._metrics.acknowledged(report.task, report.checkpoint_id, now)
            self._carry_out(self.machine.acknowledge(report, now))
        else:
            self._entries.append((now, ">decline", report.task, None, report.checkpoint_id))
            self._carry_out(self.machine.decline(report, now))

    def abort_checkpoint(self, checkpoint_id: int, reason: Reason) -> None:
        """Abort a checkpoint, as a source says that a newer command replaced this one."""
        if not self.dead:
            self._carry_out(self.machine.abort(checkpoint_id, reason, self._clock.now))

    def cancel(self) -> bool:
        """Give up what is pending; return whether anything was."""
        newest = [] if self.dead else list(self.machine.pending)[-1:]
        for checkpoint_id in newest:
            self._carry_out(self.machine.abort(checkpoint_id, Reason.CANCELLED, self._clock.now))
        return bool(newest)

    def finished(self, part: Acknowledge) -> None:
        """Note that a task has ended, and has nothing more to report but its final snapshot."""
        self._hear_in_order(part.task, self._latencies.ack[part.task](), lambda: self._heard_end(part))

    def _heard_end(self, part: Acknowledge) -> None:
        self._ended_ns[part.task] = self._clock.now
        self.running -= 1
        self._carry_out(self.machine.finished(part.task, self._clock.now, part))

    # A failover.

    def suspend(self, reason: Reason) -> None:
        """Abort what is pending, as the job has failed; nothing begins until `resume`."""
        self._armed_ns = None
        self.on_the_way = 0
        self._carry_out(self.machine.suspend(self._clock.now, reason))
        for checkpoint_id in sorted(self._saving):
            self._not_saved(checkpoint_id, reason)

    def resume(self, checkpoint_id: int, finished: Mapping[str, Acknowledge]) -> None:
        """Let the job run again, from this checkpoint; these tasks had finished."""
        self.machine.resume(checkpoint_id, self._clock.now, finished)
        self.gone = set(finished)
        self.running = len(self._job.nodes) - len(finished)
        self._arm()

    # What the machine says.

    def _carry_out(self, actions: tuple[CoordinatorAction, ...]) -> None:
        now = self._clock.now
        for action in actions:
            if isinstance(action, Triggered):
                self._triggered(action.checkpoint_id)
            elif isinstance(action, Inject):
                self._later(action.source, self._latencies.trigger, partial(self._inject, action), self._commands_ns)
            elif isinstance(action, AbortTask):
                self._later(action.task, self._latencies.trigger, partial(self._abort, action))
            elif isinstance(action, Publish):
                self._publish(action)
            elif isinstance(action, Completed):
                self.gone |= {part.task for part in action.parts if part.finished}
                self._entries.append((now, "completed", NAME, None, action.checkpoint_id))
                self._metrics.completed(action.checkpoint_id, now)
            elif isinstance(action, Notify):
                self._announce(action)
            elif isinstance(action, Aborted):
                self._aborted(action)
            elif isinstance(action, Refused):
                self._metrics.refused(str(action.reason))
            elif isinstance(action, FailJob):
                self._fail(str(action.reason))
        if not self.dead:
            self._arm()

    def _triggered(self, checkpoint_id: int) -> None:
        now = self._clock.now
        self._entries.append((now, ">trigger", NAME, None, checkpoint_id))
        self.triggered_ns[checkpoint_id] = now
        self._commands_ns = now + self._latencies.command()
        self._metrics.triggered(checkpoint_id, now, self._commands_ns)
        self._storage.begin(checkpoint_id)
        for node in self._job.operator_nodes:
            node.task.gate.aligner.note_trigger(checkpoint_id, now)
        if self._switch_ns is not None:
            barrier = CheckpointBarrier.new_unaligned(checkpoint_id, checkpoint_id)
            self._clock.after(self._switch_ns, lambda: self._prioritise(barrier))

    def _prioritise(self, barrier: CheckpointBarrier) -> None:
        """Let an aligned checkpoint overtake everywhere at once, as its time is up, from the trigger (rule 11)."""
        if barrier.checkpoint_id in self.machine.pending:
            for node in self._job.nodes.values():
                node.prioritise_barrier(barrier)

    def _inject(self, action: Inject) -> None:
        """Bring the command to the source."""
        node = self._job.nodes[action.source]
        assert isinstance(node, SourceNode)
        self._metrics.commanded(action.source, action.command.checkpoint_id, self._clock.now)
        node.inject(action.command)

    def _publish(self, action: Publish) -> None:
        """Write the manifest, once all final snapshots are saved that no checkpoint holds yet."""
        checkpoint_id, now = action.checkpoint_id, self._clock.now
        final = [part for part in action.parts if part.finished and part.task not in self.gone]
        saved_ns = max((self._save_final(part) for part in final), default=now)
        if saved_ns <= now:
            self._write_manifest(action)
            return
        self._saving.add(checkpoint_id)
        expires_ns = max(self.triggered_ns[checkpoint_id] + self.machine.config.timeout_ns, now)
        if expires_ns < saved_ns:
            self._clock.after(expires_ns - now, lambda: self._not_saved(checkpoint_id, Reason.EXPIRED))
        else:
            self._clock.after(saved_ns - now, lambda: self._saved_final(action, final))

    def _save_final(self, part: Acknowledge) -> int:
        """Return when the final snapshot of a task that has ended and waits for its last checkpoint will be here, and
        saved.

        The task does that when it hears of the checkpoint, on its own, as it does its other asynchronous parts.
        """
        task, checkpoint_id = part.task, part.checkpoint_id
        heard_ns = self.triggered_ns[checkpoint_id] + self._latencies.trigger[task]()
        began_ns = max(heard_ns, self._ended_ns[task])
        self._metrics.barrier(task, checkpoint_id, began_ns, 0)
        here_ns = began_ns + self._begin_to_save(part, began_ns) + self._latencies.ack[task]()
        self._metrics.acknowledged(task, checkpoint_id, max(here_ns, self._clock.now))
        return here_ns

    def _saved_final(self, action: Publish, final: list[Acknowledge]) -> None:
        if self.dead or action.checkpoint_id not in self._saving:
            return
        if any(self._job.nodes[part.task].dead for part in final):
            return  # the job will be known to have failed
        if all(self._storage.write(part) for part in final):
            self._saving.remove(action.checkpoint_id)
            self._write_manifest(action)
        else:
            self._not_saved(action.checkpoint_id, Reason.STORE_FAILED)

    def _not_saved(self, checkpoint_id: int, why: Reason) -> None:
        """Note that a final snapshot was not saved: there will be no manifest, and another try (rule 20)."""
        if not self.dead and checkpoint_id in self._saving:
            self._saving.remove(checkpoint_id)
            self._carry_out(self.machine.publish_failed(checkpoint_id, self._clock.now, definite=True, why=why))

    def _write_manifest(self, action: Publish) -> None:
        """Write a manifest; a restart waits for that to end (rule 20)."""
        self._publishing[action.checkpoint_id] = action.parts
        self._metrics.manifest(action.checkpoint_id, self._clock.now)
        write_ns = self._storage.publish_ns()
        if write_ns:
            self._clock.schedule(write_ns, lambda: self._published(action))
        else:
            self._published(action)

    def _published(self, action: Publish) -> None:
        if self.dead:
            return
        now, checkpoint_id = self._clock.now, action.checkpoint_id
        del self._publishing[checkpoint_id]
        self._entries.append((now, ">publish", NAME, None, checkpoint_id))
        error = self._storage.publish(checkpoint_id, action.parts)
        if error is None:
            self._carry_out(self.machine.published(checkpoint_id, now))
        else:
            self._carry_out(self.machine.publish_failed(checkpoint_id, now, definite=error.definite))
        if self.machine.settled:
            self._settled()

    def _aborted(self, action: Aborted) -> None:
        now, checkpoint_id = self._clock.now, action.checkpoint_id
        if action.reason is Reason.EXPIRED:
            self._entries.append((now, ">expire", NAME, None, checkpoint_id))
        self._entries.append((now, "aborted", NAME, None, (checkpoint_id, str(action.reason))))
        self._metrics.aborted(checkpoint_id, now, str(action.reason))
        if action.reason.definite:
            self._storage.abandon(checkpoint_id)

    def _announce(self, action: Notify) -> None:
        """Announce a checkpoint that is complete to the sinks: no other task does anything then."""
        if action.task in self._sinks:
            self.on_the_way += 1
            self._later(action.task, self._latencies.notify, lambda: self._notify(action))

    def _notify(self, action: Notify) -> None:
        self.on_the_way -= 1
        self._job.nodes[action.task].notify(action.checkpoint_id)

    def _abort(self, action: AbortTask) -> None:
        self._job.nodes[action.task].abort(action.checkpoint_id, action.reason)

    def _later(self, task: str, latency: Draw, action: Callable[[], None], leaves_ns: int = 0) -> None:
        at_ns = max(max(self._clock.now, leaves_ns) + latency[task](), self._arrives_ns.get(task, 0))
        self._arrives_ns[task] = at_ns

        def arrive() -> None:
            if not self._job.nodes[task].dead:
                action()

        self._clock.after(at_ns - self._clock.now, arrive)
