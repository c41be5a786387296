"""One run: a scenario and a seed become a journal, and the journal is judged.

SimPy keeps the clock and nothing else: an event exists only where time passes (a service, a link, a timer). Nodes that
may go on are run from one first-in-first-out list, so equal times are settled by the order of causes: the same scenario
and seed give the same journal on every machine. Time is integer nanoseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import simpy
from simpy.events import NORMAL

from impl import (
    BarrierAligner,
    BarrierInjectorConfig,
    CheckpointBarrier,
    CheckpointBarrierInjector,
    CheckpointCoordinator,
    Event,
    Inject,
    OperatorTask,
    OutputExchange,
    SourceTask,
    UnalignedCheckpointer,
)
from model.history import Entry
from model.operators import make as make_operator
from sim.channel import Channel, SpscChannel
from sim.control import CoordinatorNode
from sim.inbox import Inbox
from sim.metrics import Metrics
from sim.network import BufferPool, NetworkChannel, ReceiverPool
from sim.nodes import Node, OperatorNode, SourceNode
from sim.settings import ChannelSettings, Scenario, aligner_config, coordinator_config, ns, unaligned_config
from sim.workload import Arrivals, KeyChooser, Law, stream

MakeAligner = Callable[..., BarrierAligner]


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

    `cut_off` says after `run` that the scenario's time was up while the job still ran.
    """

    def __init__(self, scenario: Scenario, seed: int, make_aligner: MakeAligner | None = None) -> None:
        self.scenario, self.seed = scenario, seed
        self.env = simpy.Environment(initial_time=0)
        self.now = 0
        self.entries: list[Entry] = []
        self.ready: deque[Node] = deque()
        self.metrics = Metrics()
        self.nodes: dict[str, Node] = {}
        self.operator_nodes: list[OperatorNode] = []
        self.source_nodes: list[SourceNode] = []
        self._running = 0
        self.cut_off = False
        self._make_aligner = make_aligner
        self._sync = self._draw_each(scenario.checkpoint.sync_s, "sync")
        self._woken_ns: dict[Hashable, int] = {}
        protocol_switches = scenario.protocol == "unaligned" and scenario.checkpoint.aligned_timeout_s > 0
        self.switch_ns = ns(scenario.checkpoint.aligned_timeout_s) if protocol_switches else None
        self._build()

    # Time.

    def after(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Call `action` once, `delay_ns` from now."""

        def fire(_: object) -> None:
            self.now = self.env.now
            action()
            self._drain()

        event = simpy.Event(self.env)
        event._ok, event._value = True, None
        event.callbacks = [fire]
        self.env.schedule(event, NORMAL, delay_ns)

    def timer(self, action: Callable[[], None]) -> Timer:
        """A timer that calls `action` each time it fires."""

        def fire(_: object) -> None:
            self.now = self.env.now
            action()
            self._drain()

        return Timer(self.env, fire)

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
        node.inject(action.command)
        node.wake()

    def snapshot_taken(self, task: str, checkpoint_id: int) -> int:
        """The duration of the synchronous part, in nanoseconds."""
        sync_ns = self._sync[task]()
        self.metrics.snapshot(task, checkpoint_id, self.now, sync_ns)
        return sync_ns

    def expedite(self, barrier: CheckpointBarrier) -> None:
        """The time for an aligned checkpoint is up, everywhere at once: it counts from the trigger (rule 11)."""
        if barrier.checkpoint_id in self.coordinator.machine.pending:
            for node in self.nodes.values():
                node.expedite(barrier)

    def finished(self, node: Node) -> None:
        """A task has ended; the coordinator will hear of it."""
        self.coordinator.finished(node.name)

    def task_ended(self) -> None:
        """The coordinator has heard that a task has ended."""
        self._running -= 1

    # Running.

    def run(self) -> None:
        """Run to the scenario's end, and on until no checkpoint is pending."""
        env, until_ns = self.env, ns(self.scenario.until_s)
        self.coordinator.start()
        for node in self.nodes.values():
            node.wake()
        self.after(0, lambda: None)
        for stall in self.scenario.stalls:
            for name in self._tasks_of(stall.task):
                self.after(ns(stall.at_s), lambda n=self.nodes[name]: n.stall(True))
                self.after(ns(stall.at_s + stall.for_s), lambda n=self.nodes[name]: n.stall(False))
        self.after(until_ns, self.coordinator.stop)
        last_ns = until_ns + 2 * ns(self.scenario.checkpoint.timeout_s)
        while self._running and env.peek() <= last_ns and not self.cut_off:
            env.step()
            self.cut_off = self.now >= until_ns and bool(self._running) and self._at_rest()
        for node in self.nodes.values():
            node.enter(0)

    def _at_rest(self) -> bool:
        """Every checkpoint has ended, at the coordinator and at each task."""
        if self.coordinator.machine.pending:
            return False
        return not any(
            node.task.gate.aligner.is_aligning() or node.task.gate.has_released for node in self.operator_nodes
        )

    def _tasks_of(self, name: str) -> list[str]:
        topology = self.scenario.topology
        return [task for task in topology.tasks if name in (task, topology.operator_of(task))]

    # Building.

    def _draw(self, law: Law, node: str, purpose: str, scale: float = 1e9) -> Callable[[], int]:
        return law.sampler(stream(self.seed, node, purpose), scale)

    def _draw_each(self, law: Law, purpose: str) -> dict[str, Callable[[], int]]:
        """One stream for each task."""
        return {task: self._draw(law, task, purpose) for task in self.scenario.topology.tasks}

    def _build(self) -> None:
        topology, checkpoint = self.scenario.topology, self.scenario.checkpoint
        channels: dict[str, Channel] = {}
        pools: dict[str, list[BufferPool]] = {task: [] for task in topology.tasks}
        gates: dict[tuple[str, str], ReceiverPool] = {}
        for task in topology.tasks:
            for edge in topology.edges_out(topology.operator_of(task)):
                settings = self.scenario.channels[edge]
                names = [c for c in topology.outputs(task) if topology.edge_of(c) == edge]
                pool = BufferPool(settings.exclusive_buffers * len(names) + settings.floating_buffers)
                for name in names:
                    receiver = topology.ends(name)[1]
                    gate = gates.setdefault((receiver, edge), ReceiverPool(settings.floating_buffers))
                    channels[name] = self._channel(name, settings, pool, gate)
                if settings.form == "network":
                    pools[task].append(pool)
        for task in topology.tasks:
            outputs = topology.outputs(task)
            node = (
                self._source(task, [channels[c] for c in outputs], outputs)
                if task in topology.sources
                else self._operator(task, [channels[c] for c in outputs], outputs, channels)
            )
            self.nodes[task] = node
            if pools[task]:
                node.attach_pools(pools[task])
                self._start_flushing(node, task)
            for name in outputs:
                if isinstance(channels[name], SpscChannel):
                    channels[name].on_room = node.wake
        for node in self.operator_nodes:
            for index, name in enumerate(topology.inputs(node.name)):
                channels[name].on_arrival = lambda n=node, i=index: n.arrived(i)
                channels[name].on_overtaking = lambda n=node, i=index: n.overtaken(i)
                channels[name].on_announcement = lambda b, n=node, i=index: n.announced(i, b)
        for node in self.nodes.values():
            for index, name in enumerate(topology.outputs(node.name)):
                channels[name].on_departure = lambda c, n=node, i=index: n.departed(i, c)
                node.may_overtake[index] = not self.scenario.aligns(topology.ends(name)[1])
        self._running = len(self.nodes)
        self.channels = channels
        self.coordinator = CoordinatorNode(
            self,
            CheckpointCoordinator(coordinator_config(self.scenario), tuple(topology.tasks), tuple(topology.sources)),
            self._draw_each(checkpoint.trigger_latency_s, "trigger"),
            self._draw_each(checkpoint.ack_latency_s, "ack"),
            self._draw_each(checkpoint.async_s, "async"),
        )

    def _channel(self, name: str, settings: ChannelSettings, pool: BufferPool, gate: ReceiverPool) -> Channel:
        latency = self._draw(settings.latency_s, name, "latency")
        if settings.form == "spsc":
            return SpscChannel(settings.capacity, self, latency if settings.latency_s.mean else None)
        return NetworkChannel(
            pool,
            settings.segment_bytes,
            settings.most_buffers,
            self,
            gate=None if settings.local else gate,
            exclusive=settings.exclusive_buffers,
            latency=latency if settings.latency_s.mean else None,
            ns_per_byte=0.0 if settings.bytes_per_s is None else 1e9 / settings.bytes_per_s,
            stops_behind_barriers=self.scenario.checkpoint.hold == "channel",
        )

    def _start_flushing(self, node: Node, task: str) -> None:
        """One flush timer a task, as in Flink; each starts somewhere in its first period."""
        edges = self.scenario.topology.edges_out(self.scenario.topology.operator_of(task))
        settings = min((self.scenario.channels[edge] for edge in edges), key=lambda s: s.flush_timeout_s)
        period_ns = ns(settings.flush_timeout_s)
        late = self._draw(settings.flush_late_s, task, "flush")

        def tick() -> None:
            timer.start(period_ns + late())
            node.flush()

        timer = self.timer(tick)
        timer.start(round(stream(self.seed, task, "flush phase").random() * period_ns))

    def _exchanges(self, task: str) -> list[OutputExchange]:
        return [
            OutputExchange(kind, indices, stream(self.seed, f"{task} {edge}", "rebalance").randrange(len(indices)))
            for edge, kind, indices in self.scenario.topology.output_groups(task)
        ]

    def _source(self, task: str, outputs: list[Channel], names: list[str]) -> SourceNode:
        settings = self.scenario.sources[self.scenario.topology.operator_of(task)]
        arrivals = Arrivals(
            settings.arrivals, settings.rate_per_s, settings.on_s, settings.off_s, stream(self.seed, task, "arrivals")
        )
        key = KeyChooser(settings.keys, settings.key_skew, stream(self.seed, task, "keys"))
        size = self._draw(settings.record_bytes, task, "sizes", 1.0)
        lateness = self._draw(settings.out_of_order_s, task, "lateness", 1e3)

        def make(sequence: int, due_ns: int) -> Event:
            return Event(task, sequence, 0, key(), sequence, due_ns // 1_000_000 - lateness(), size())

        node = SourceNode(
            self,
            task,
            outputs,
            names,
            arrivals,
            make,
            self._draw(settings.service_s, task, "service"),
            settings.events,
            None if settings.catch_up_s is None else ns(settings.catch_up_s),
            None if settings.watermark_interval_s is None else ns(settings.watermark_interval_s),
            round(settings.out_of_order_s.mean * 1e3),
        )
        interval = self.scenario.checkpoint.interval_s if settings.trigger == "periodic" else None
        injector = CheckpointBarrierInjector(
            BarrierInjectorConfig(periodic_interval_ns=None if interval is None else ns(interval), source_id=task), 0
        )
        node.task = SourceTask(task, injector, self._exchanges(task), node.told)
        node.handle = injector.coordinator_handle()
        self.source_nodes.append(node)
        return node

    def _aligner(self, task: str, inputs: int) -> BarrierAligner:
        config = aligner_config(self.scenario.checkpoint, inputs)
        if self._make_aligner is not None:
            return self._make_aligner(config)
        if self.scenario.protocol == "aligned":
            return BarrierAligner(config)
        return UnalignedCheckpointer(config, unaligned_config(self.scenario), is_sink=self.scenario.aligns(task))

    def _operator(
        self, task: str, outputs: list[Channel], names: list[str], channels: dict[str, Channel]
    ) -> OperatorNode:
        topology, checkpoint = self.scenario.topology, self.scenario.checkpoint
        operator = topology.operator_of(task)
        settings = self.scenario.operators[operator]
        inputs = topology.inputs(task)
        groups = [[i for i, c in enumerate(inputs) if topology.edge_of(c) == e] for e in topology.edges_in(operator)]
        by_message = settings.inputs == "by_message" or (settings.inputs == "auto" and settings.kind == "join")
        node = OperatorNode(
            self,
            task,
            outputs,
            names,
            [channels[c] for c in inputs],
            list(inputs),
            Inbox(groups, [channels[c] for c in inputs], by_message),
            self._draw(settings.service_s, task, "service"),
            checkpoint.hold == "channel",
        )
        aligner = self._aligner(task, len(inputs))
        node.task = OperatorTask(
            task, make_task_operator(self.scenario, task), aligner, self._exchanges(task), node.told
        )
        self.operator_nodes.append(node)
        return node


def make_task_operator(scenario: Scenario, task: str) -> Any:
    """A fresh operator for `task`."""
    topology = scenario.topology
    operator = topology.operator_of(task)
    settings = scenario.operators[operator]
    return make_operator(
        settings.kind,
        name=task,
        inputs=len(topology.inputs(task)),
        sides=topology.input_sides(task),
        **dict(settings.parameters),
    )
