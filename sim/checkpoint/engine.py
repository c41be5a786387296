"""One run: a scenario and a seed become a journal, and the journal is judged.

SimPy keeps the clock and nothing else: an event exists only where time passes (a service, a link, a timer). Nodes that
may go on are run from one first-in-first-out list, so equal times are settled by the order of causes: the same scenario
and seed give the same journal on every machine. Time is integer nanoseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from math import inf
from typing import Any

import simpy
from simpy.events import NORMAL

from barrierlab.impl import CheckpointBarrier, Inject, Restore
from barrierlab.model.checkpoint.components import SOUND, Parts
from barrierlab.model.spec.history import Entry
from barrierlab.sim.channels.network import NetworkChannel
from barrierlab.sim.channels.spsc import Channel
from barrierlab.sim.checkpoint.build import Builder, Job
from barrierlab.sim.checkpoint.coordinator import NAME, CoordinatorNode, Latencies
from barrierlab.sim.checkpoint.failover import Recovery
from barrierlab.sim.checkpoint.faults import Faults
from barrierlab.sim.checkpoint.metrics import Metrics
from barrierlab.sim.checkpoint.standstill import Standstill
from barrierlab.sim.checkpoint.storage import Storage
from barrierlab.sim.checkpoint.tasks import Node, OperatorNode, SourceNode
from barrierlab.sim.core.distributions import Law, Randoms
from barrierlab.sim.scenario.settings import Scenario, coordinator_config, ns


class Timer:
    """One SimPy event that is armed again and again: a service costs no new object.

    SimPy documents `Event.callbacks`; that an event with a value may be scheduled again is an inside matter of SimPy
    4.1, kept in this class alone and held by a test.
    """

    __slots__ = ("_callbacks", "_env", "_event")

    def __init__(self, env: simpy.Environment, fire: Callable[[Any], None]) -> None:
        self._env = env
        self._event = simpy.Event(env)
        self._event._ok, self._event._value = True, None
        self._callbacks = [fire]

    def start(self, delay_ns: int) -> None:
        """Fire `delay_ns` from now. The caller knows that it is not armed."""
        self._event.callbacks = self._callbacks
        self._env.schedule(self._event, NORMAL, delay_ns)


class Engine:
    """The nodes and channels of one run, and the clock between them.

    Attributes
    ----------
    attempt : int
        How many times the job has stopped; whatever an older attempt asked to be called for is not called.
    cut_off : bool
        Said after `run`: the scenario's time was up while the job still ran.
    """

    def __init__(self, scenario: Scenario, seed: int, parts: Parts = SOUND) -> None:
        self.scenario, self.seed, self.parts = scenario, seed, parts
        self.env = simpy.Environment(initial_time=0)
        self.now = 0
        self.attempt = 0
        self.entries: list[Entry] = []
        self.ready: deque[Node] = deque()
        self.metrics = Metrics()
        self.cut_off = False
        self._randoms = Randoms(seed)
        self._woken_ns: dict[Hashable, int] = {}
        protocol_switches = scenario.protocol == "unaligned" and scenario.checkpoint.aligned_timeout_s > 0
        self.switch_ns = ns(scenario.checkpoint.aligned_timeout_s) if protocol_switches else None
        checkpoint, draw = scenario.checkpoint, self._randoms.sampler
        self._sync = {task: draw(self._sync_law(task), task, "sync") for task in scenario.topology.tasks}
        self.faults = Faults(scenario, self._randoms)
        self._builder = Builder(scenario, self._randoms, parts, self.faults.links)
        lands = self._randoms.stream("store", "in doubt")
        self.storage = Storage(
            scenario, self.faults, draw(scenario.store.manifest_s, "store", "manifest"), lambda: lands.random() < 0.5
        )
        self._latencies = Latencies(
            command=draw(checkpoint.command_s, NAME, "command"),
            trigger=self._draw_each(checkpoint.trigger_latency_s, "trigger"),
            notify=self._draw_each(checkpoint.trigger_latency_s, "notify"),
            ack=self._draw_each(checkpoint.ack_latency_s, "ack"),
            async_part=self._draw_each(checkpoint.async_s, "async"),
        )
        self.recovery = Recovery(
            self,
            draw(scenario.recovery.detection_s, "recovery", "detection"),
            draw(scenario.recovery.restart_s, "recovery", "restart"),
        )
        self._take(self._builder.build(self))
        self.coordinator = self._new_coordinator(first_id=1)

    def _sync_law(self, task: str) -> Law:
        """A state of its own size takes a time of its own to copy."""
        operator = self.scenario.topology.operator_of(task)
        own = (self.scenario.sources.get(operator) or self.scenario.operators[operator]).sync_s
        return self.scenario.checkpoint.sync_s if own is None else own

    def _draw_each(self, law: Law, purpose: str) -> dict[str, Callable[[], int]]:
        """One stream for each task."""
        return {task: self._randoms.sampler(law, task, purpose) for task in self.scenario.topology.tasks}

    def _new_coordinator(self, first_id: int) -> CoordinatorNode:
        topology = self.scenario.topology
        machine = self.parts.coordinator(
            coordinator_config(self.scenario), tuple(topology.tasks), tuple(topology.sources), first_id
        )
        return CoordinatorNode(self, machine, self._latencies, self.faults, self.storage)

    def _take(self, job: Job) -> None:
        """From now on this is the job."""
        self.nodes: dict[str, Node] = job.nodes
        self.operator_nodes: list[OperatorNode] = job.operator_nodes
        self.source_nodes: list[SourceNode] = job.source_nodes
        self.channels: dict[str, Channel] = job.channels
        self._running = len(job.nodes)

    # Time.

    def schedule(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Call `action` once, `delay_ns` from now, whatever becomes of the job."""

        def fire(_: object) -> None:
            self.now = self.env.now
            action()
            self._drain()

        self._once(delay_ns, fire)

    def after(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Call `action` once, `delay_ns` from now, unless this attempt is over by then."""
        self._once(delay_ns, self._while_it_lasts(action))

    def timer(self, action: Callable[[], None]) -> Timer:
        """A timer that calls `action` each time it fires, while this attempt lasts."""
        return Timer(self.env, self._while_it_lasts(action))

    def _while_it_lasts(self, action: Callable[[], None]) -> Callable[[object], None]:
        attempt = self.attempt

        def fire(_: object) -> None:
            if attempt == self.attempt:
                self.now = self.env.now
                action()
                self._drain()

        return fire

    def _once(self, delay_ns: int, fire: Callable[[object], None]) -> None:
        event = simpy.Event(self.env)
        event._ok, event._value = True, None
        event.callbacks = [fire]
        self.env.schedule(event, NORMAL, delay_ns)

    def wake_at(self, node: Node, due_ns: int) -> None:
        """Run `node` at `due_ns`, if nothing has asked for that already."""
        if self._woken_ns.get(node.name) != due_ns:
            self._woken_ns[node.name] = due_ns
            self.after(due_ns - self.now, node.wake)

    def watch_deadline(self, node: OperatorNode) -> None:
        """Look at the alignment's deadline when it passes."""
        due_ns = node.task.gate.next_deadline_ns()
        if due_ns is not None and self._woken_ns.get((node.name, "deadline")) != due_ns:
            self._woken_ns[(node.name, "deadline")] = due_ns
            self.after(max(due_ns - self.now, 0), node.deadline)

    def _drain(self) -> None:
        """Run every node that may go on, first come, first served."""
        ready = self.ready
        while ready:
            node = ready.popleft()
            node.listed = False
            node.run()

    # What nodes report.

    def inject(self, action: Inject) -> None:
        """The coordinator's command has reached the source."""
        node = self.nodes[action.source]
        assert isinstance(node, SourceNode)
        self.metrics.commanded(action.source, action.command.checkpoint_id, self.now)
        node.inject(action.command)
        node.wake()

    def _note_queued(self) -> None:
        """How many records wait now: in channels, and at sources since they are due."""
        in_channels = sum(channel.queued for channel in self.channels.values())
        rates = self.scenario.sources
        operator_of = self.scenario.topology.operator_of
        at_sources = sum(n.held_back_ns() * rates[operator_of(n.name)].rate_per_s / 1e9 for n in self.source_nodes)
        self.metrics.queued.append((self.now, in_channels + at_sources))

    def snapshot_taken(self, task: str, checkpoint_id: int) -> int:
        """The duration of the synchronous part, in nanoseconds."""
        sync_ns = self._sync[task]()
        node = self.nodes[task]
        applied = node.applied if isinstance(node, OperatorNode) else 0
        self.metrics.snapshot(task, checkpoint_id, self.now, sync_ns, applied)
        return sync_ns

    def expedite(self, barrier: CheckpointBarrier) -> None:
        """The time for an aligned checkpoint is up, everywhere at once: it counts from the trigger (rule 11)."""
        if barrier.checkpoint_id in self.coordinator.machine.pending:
            for node in self.nodes.values():
                node.expedite(barrier)

    def finished(self, node: Node) -> None:
        """A task has ended; the coordinator will hear of it."""
        self.coordinator.finished(node.task.final_part())

    def task_ended(self) -> None:
        """The coordinator has heard that a task has ended."""
        self._running -= 1

    def link_changed(self, edge: str) -> None:
        """The links of an exchange have become slower or faster."""
        for name, channel in self.channels.items():
            if isinstance(channel, NetworkChannel) and self.scenario.topology.edge_of(name) == edge:
                channel.ns_per_byte = self._builder.ns_per_byte(edge)

    # Running.

    def run(self) -> None:
        """Run to the scenario's end, and on until no checkpoint is pending and no restart under way."""
        env, until_ns = self.env, ns(self.scenario.until_s)
        self.coordinator.start()
        for node in self.nodes.values():
            node.wake()
        self.schedule(0, lambda: None)
        self.faults.start(self)
        Standstill(self).start()
        warm_ns = ns(self.scenario.warmup_s)
        for at_ns in (warm_ns, (warm_ns + until_ns) // 2):
            if warm_ns < until_ns:
                self.schedule(at_ns, self._note_queued)
        self.schedule(until_ns, self._stop_triggers)
        while self._running or not self._done():
            env.step()
            if self.now >= until_ns:
                self.cut_off = bool(self._running) and self._at_rest()
                if self.cut_off or env.peek() > self._last_ns():
                    break
        for node in self.nodes.values():
            node.enter(0)

    def _stop_triggers(self) -> None:
        self._note_queued()
        self.coordinator.stop()

    def _done(self) -> bool:
        """Every task has ended, and what they wrote is committed."""
        if self._running or self.recovery.under_way:
            return False
        return self.coordinator.machine.ended and self.coordinator.at_rest()

    def _last_ns(self) -> float:
        """How long a checkpoint that does not end is waited for; a restart that is under way does end."""
        if self.recovery.under_way:
            return inf
        since_ns = max(ns(self.scenario.until_s), self.recovery.restored_ns)
        return since_ns + 2 * ns(self.scenario.checkpoint.timeout_s)

    def _at_rest(self) -> bool:
        """The job runs, and every checkpoint has ended, at the coordinator and at each task."""
        if self.recovery.under_way or self.coordinator.dead or not self.coordinator.at_rest():
            return False
        return not any(
            node.task.gate.aligner.is_aligning() or node.task.gate.has_released for node in self.operator_nodes
        )

    # A failover.

    def halt(self) -> None:
        """Every task is cancelled: this attempt is over."""
        for node in self.nodes.values():
            node.enter(0)
            node.dead = True
        self.attempt += 1
        self.ready.clear()
        self._woken_ns.clear()

    def restart(self, restore: Restore) -> None:
        """Put everything back everywhere; then, and only then, it runs (rule 22)."""
        entries, now, checkpoint_id = self.entries, self.now, restore.checkpoint_id
        entries.append((now, ">restore", NAME, None, checkpoint_id))
        if checkpoint_id:
            self.metrics.restored(checkpoint_id)
        if self.coordinator.dead:
            self.coordinator = self._new_coordinator(self.storage.highest_id() + 1)
            if now >= ns(self.scenario.until_s):
                self.coordinator.stop()
        before = self.nodes
        self._take(self._builder.build(self))
        outside: list[Entry] = []  # what sinks do to it
        for task, node in self.nodes.items():
            began = len(entries)
            state = node.task.recover(restore.tasks[task], checkpoint_id)
            outside += entries[began:]
            del entries[began:]
            entries.append((now, "restored", task, None, (checkpoint_id, state)))
        topology = self.scenario.topology
        for name, messages in restore.channels.items():
            entries.extend((now, "put_back", topology.ends(name)[1], name, message) for message in messages)
            self.channels[name].put_back(messages)
        entries += outside
        finished = {}
        for task, node in self.nodes.items():
            if node.task.finished:
                node.ended = True
                self._running -= 1
                finished[task] = node.task.final_part()
            if isinstance(node, SourceNode):
                node.seek()
            else:
                self._count_on(node, before[task], checkpoint_id)
            node.wake()
        self.coordinator.resume(checkpoint_id, finished)

    def _count_on(self, node: Node, before: Node, checkpoint_id: int) -> None:
        """What was applied up to the cut counts, and everything that was written."""
        assert isinstance(node, OperatorNode)
        assert isinstance(before, OperatorNode)
        part = self.metrics.part(node.name, checkpoint_id)
        node.written = before.written
        if node.ended:
            node.applied = before.applied
        elif part is not None:
            node.applied = part.applied
