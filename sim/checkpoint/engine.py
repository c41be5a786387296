"""One run: a scenario and a seed become a journal, and the journal is judged.

Equal times are settled by the order of causes (`Clock`): the same scenario and seed give the same journal on every
machine. Each part is handed what it uses, and none the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from barrierlab.impl import Restore
from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.spec.history import Entry, expanded
from barrierlab.sim.channels.network import NetworkChannel
from barrierlab.sim.checkpoint.build import JobBuilder
from barrierlab.sim.checkpoint.coordinator import NAME, CoordinatorNode, Latencies, switch_ns
from barrierlab.sim.checkpoint.failover import Recovery
from barrierlab.sim.checkpoint.faults import Faults
from barrierlab.sim.checkpoint.metrics import Metrics
from barrierlab.sim.checkpoint.standstill import Standstill
from barrierlab.sim.checkpoint.storage import Storage
from barrierlab.sim.checkpoint.tasks import Job, Node, OperatorNode, Ports, SourceNode
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.core.cores import Cores
from barrierlab.sim.core.distributions import Distribution, Randoms
from barrierlab.sim.scenario.settings import Fault, Scenario, coordinator_config, ns

ROWS_IN_PIECE = 50_000
"""So many rows of a journal that is not kept are given away together."""


class Engine:
    """The parts of one run: what they share, and what ends an attempt and begins another.

    Parameters
    ----------
    scenario : Scenario
    seed : int
    components : Components
    drain : callable, optional
        Gets the journal piece by piece, which is then kept nowhere; for a job that is never restored.

    Attributes
    ----------
    job : Job
        The tasks and channels of the attempt that runs.
    rows : list of Entry
        The journal as it is written, with the rows of `history.SHORT`; with a `drain`, the last part of it.
    cut_off : bool
        Said after `run`: the scenario's time was up while the job still ran.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        components: Components = SOUND,
        drain: Callable[[list[Entry]], None] | None = None,
    ) -> None:
        self._drain = drain
        self.scenario, self.seed, self.components = scenario, seed, components
        self.clock = Clock()
        self.rows: list[Entry] = []
        self.job = Job()
        self.metrics = Metrics()
        self.cut_off = False
        self._randoms = Randoms(seed)
        checkpoint, draw = scenario.checkpoint, self._randoms.sampler
        self.faults = Faults(scenario, self._randoms)
        self._cores = None if checkpoint.cores is None else Cores(checkpoint.cores, self.clock)
        self._builder = JobBuilder(scenario, self._randoms, components, self.faults.links, self._cores)
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
            channel_state=self._draw_each(checkpoint.channel_state_s, "channel state"),
        )
        self.recovery = Recovery(
            self,
            scenario,
            self.clock,
            self.job,
            self.storage,
            components.plan,
            self.faults.recovery,
            draw(scenario.recovery.detection_s, "recovery", "detection"),
            draw(scenario.recovery.restart_s, "recovery", "restart"),
        )
        self.coordinator = self._new_coordinator(first_id=1)
        self._build()
        self.standstill = Standstill(scenario, self.clock, self.rows, self.job, self._is_busy, self.recovery)

    @property
    def entries(self) -> list[Entry]:
        """The journal."""
        return list(expanded(self.rows))

    def _draw_each(self, dist: Distribution, purpose: str) -> dict[str, Callable[[], int]]:
        """Return one stream for each task."""
        return {task: self._randoms.sampler(dist, task, purpose) for task in self.scenario.topology.tasks}

    def _new_coordinator(self, first_id: int) -> CoordinatorNode:
        scenario, topology = self.scenario, self.scenario.topology
        machine = self.components.coordinator(
            coordinator_config(scenario), tuple(topology.tasks), tuple(topology.sources), first_id
        )
        return CoordinatorNode(
            scenario,
            self.clock,
            self.rows,
            self.metrics,
            self.job,
            machine,
            self._latencies,
            self._cores,
            self.faults,
            self.storage,
            self.recovery.fail,
            self.recovery.settled,
        )

    def _build(self) -> None:
        """Put new tasks and channels into the job."""
        ports = Ports(
            self.clock,
            self.rows,
            self.metrics,
            self.coordinator,
            switch_ns(self.scenario),
            self.recovery.caught_up,
        )
        self._builder.build(self.job, ports)

    def _note_queued(self) -> None:
        """Note how many records wait now: in channels, and at sources since they are due."""
        records = float(sum(channel.queued for channel in self.job.channels.values()))
        ahead, sources = 0.0, self.job.source_nodes
        for node in sources:
            settings = self.scenario.sources[self.scenario.topology.operator_of(node.name)]
            held_back = node.held_back_ns() * settings.rate_per_s / 1e9
            if node.pauses():  # no load of the job: it waits for another source's watermark
                ahead += held_back
            else:
                records += held_back
        idle_after_s = self.scenario.watermark_alignment.idle_after_s
        idle_after_ns = None if idle_after_s is None else ns(idle_after_s)
        slowest = min(sources, key=lambda node: node.group_watermark_ms(idle_after_ns)).name if ahead else None
        self.metrics.waiting(self.clock.now, records, ahead, slowest)

    def _link_changed(self, edge: str) -> None:
        """Set the speed of the links of an exchange, which have become slower or faster."""
        for name, channel in self.job.channels.items():
            if isinstance(channel, NetworkChannel) and self.scenario.topology.edge_of(name) == edge:
                channel.ns_per_byte = self._builder.ns_per_byte(edge)

    def _is_busy(self) -> bool:
        """Return whether the job is down, or something is on its way from or to the coordinator."""
        return self.recovery.under_way or self.coordinator.dead or self.coordinator.has_on_its_way()

    # Running.

    def run(self) -> None:
        """Run to the scenario's end, and on until no checkpoint is pending and no restart under way."""
        clock, until_ns = self.clock, ns(self.scenario.until_s)
        self.coordinator.start()
        for node in self.job.nodes.values():
            node.wake()
        clock.schedule(0, lambda: None)
        tasks_of, recovery = self.faults.tasks_of, self.recovery
        at_once: dict[str, Callable[[Fault], bool]] = {
            "crash": lambda fault: recovery.crash(tasks_of(fault), fault.name),
            "coordinator_crash": lambda fault: recovery.crash_coordinator(fault.name),
            "cancel_checkpoint": lambda _: self.coordinator.cancel(),
        }
        self.faults.start(clock, self.job, at_once, self._link_changed)
        self.standstill.start()
        warm_ns = ns(self.scenario.warmup_s)
        for at_ns in (warm_ns, (warm_ns + until_ns) // 2):
            if warm_ns < until_ns:
                clock.schedule(at_ns, self._note_queued)
        clock.schedule(until_ns, self._stop_triggers)
        drain, rows = self._drain, self.rows
        while self.coordinator.running or not self._done():
            clock.step()
            if drain is not None and len(rows) >= ROWS_IN_PIECE:
                self._forget(drain)
            if clock.now >= until_ns:
                self.cut_off = bool(self.coordinator.running) and self._at_rest()
                if self.cut_off or clock.next_ns() > self._last_ns():
                    break
        for node in self.job.nodes.values():
            node.enter(0)
        if self._drain is not None:
            self._forget(self._drain)

    def _forget(self, drain: Callable[[list[Entry]], None]) -> None:
        """Give the journal away, and drop what only a restore would ask for."""
        self.standstill.forget()
        drain(self.rows[:])
        self.rows.clear()
        self._builder.ledger.forget_visible()
        for log in self._builder.logs.values():
            log.forget()

    def _stop_triggers(self) -> None:
        self._note_queued()
        self.coordinator.stop()

    def _done(self) -> bool:
        """Return whether all that was written is committed, now that every task has ended."""
        if self.recovery.under_way:
            return False
        return self.coordinator.machine.ended and self.coordinator.quiescent()

    def _last_ns(self) -> float:
        """Return how long a checkpoint that does not end is waited for; a restart that is under way does end."""
        if self.recovery.under_way:
            return inf
        since_ns = max(ns(self.scenario.until_s), self.recovery.restored_ns)
        return since_ns + 2 * ns(self.scenario.checkpoint.timeout_s)

    def _at_rest(self) -> bool:
        """Return whether the job runs, and every checkpoint has ended, at the coordinator and at each task."""
        if self.recovery.under_way or self.coordinator.dead or not self.coordinator.quiescent():
            return False
        return not any(
            node.task.gate.aligner.is_aligning() or node.task.gate.can_drain for node in self.job.operator_nodes
        )

    # A failover.

    def halt(self) -> None:
        """Cancel every task: this attempt is over."""
        for node in self.job.nodes.values():
            node.enter(0)
            node.dead = True
        if self._cores is not None:
            self._cores.clear()
        self.clock.end_attempt()

    def restart(self, restore: Restore) -> None:
        """Put everything back everywhere; then, and only then, it runs (rule 22)."""
        entries, now, checkpoint_id = self.rows, self.clock.now, restore.checkpoint_id
        entries.append((now, ">restore", NAME, None, checkpoint_id))
        if checkpoint_id:
            self.metrics.restored(checkpoint_id)
        if self.coordinator.dead:
            self.coordinator = self._new_coordinator(self.storage.highest_id() + 1)
            if now >= ns(self.scenario.until_s):
                self.coordinator.stop()
        before = self.job.nodes
        self._build()
        outside: list[Entry] = []  # what sinks do to it
        for task, node in self.job.nodes.items():
            began = len(entries)
            state = node.task.recover(restore.tasks[task], checkpoint_id)
            outside += entries[began:]
            del entries[began:]
            entries.append((now, "restored", task, None, (checkpoint_id, state)))
        topology = self.scenario.topology
        for name, messages in restore.channels.items():
            entries.extend((now, "restored_in_flight", topology.ends(name)[1], name, message) for message in messages)
            self.job.channels[name].restored_in_flight(messages)
        entries += outside
        finished = {}
        for task, node in self.job.nodes.items():
            if node.task.finished:
                node.ended = True
                finished[task] = node.task.final_snapshot()
            if isinstance(node, SourceNode):
                node.seek()
            else:
                self._count_on(node, before[task], checkpoint_id)
            node.wake()
        self.coordinator.resume(checkpoint_id, finished)

    def _count_on(self, node: Node, before: Node, checkpoint_id: int) -> None:
        """Carry over what was applied up to the cut, and all that was written."""
        assert isinstance(node, OperatorNode)
        assert isinstance(before, OperatorNode)
        part = self.metrics.part(node.name, checkpoint_id)
        node.written = before.written
        if node.ended:
            node.applied = before.applied
        elif part is not None:
            node.applied = part.applied
