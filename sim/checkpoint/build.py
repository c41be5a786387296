"""From the settings to the tasks and channels of one attempt, wired together; every restart builds them anew.

What outlives an attempt is handed in: the named random streams, the sources' event logs, what is outside at the sinks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from barrierlab.impl import BarrierInjectorConfig, CheckpointBarrier, OutputExchange
from barrierlab.model.checkpoint.components import AlignerSettings, Components
from barrierlab.model.checkpoint.operators import OperatorChain
from barrierlab.model.checkpoint.operators import make as make_operator
from barrierlab.sim.channels.debloat import BufferDebloater, ThroughputMeter
from barrierlab.sim.channels.input_gate import Inbox
from barrierlab.sim.channels.network import BufferPool, NetworkChannel, ReceiverPool
from barrierlab.sim.channels.spsc import Channel, SpscChannel
from barrierlab.sim.checkpoint.faults import Slowness
from barrierlab.sim.checkpoint.tasks import Job, Lane, Node, OperatorNode, Ports, SourceNode
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.core.cores import Cores
from barrierlab.sim.core.distributions import (
    NS_PER_S,
    Arrivals,
    Distribution,
    EventLog,
    EventMaker,
    KeyChooser,
    Randoms,
)
from barrierlab.sim.scenario.settings import (
    ChannelSettings,
    OperatorSettings,
    Scenario,
    SourceSettings,
    aligner_config,
    ns,
    unaligned_config,
)


class JobBuilder:
    """Builds a scenario's job, as often as it is asked.

    Parameters
    ----------
    scenario : Scenario
    randoms : Randoms
    components : Components
        Whose machines.
    links : mapping of str to Slowness
        The exchanges that a fault slows.
    cores : Cores, optional
        What tasks that begin unaligned parts share.
    """

    def __init__(
        self,
        scenario: Scenario,
        randoms: Randoms,
        components: Components,
        links: Mapping[str, Slowness],
        cores: Cores | None,
    ) -> None:
        self.scenario, self._randoms, self._links = scenario, randoms, links
        self._components, self._cores = scenario.mode.machines(components), cores
        self.ledger = components.ledger()
        self.logs = {task: self._log(task) for task in scenario.topology.sources}
        self.spent_ns = {task: [0, 0, 0] for task in scenario.topology.tasks}
        self._slowness = {task: self._subtask_factor(task) for task in scenario.topology.tasks}

    def draw(self, dist: Distribution, node: str, purpose: str, scale: float = 1e9) -> Callable[[], int]:
        """The next value of `dist` at `node`, for this purpose."""
        return self._randoms.sampler(dist, node, purpose, scale)

    def build(self, job: Job, ports: Ports) -> None:
        """Give `job` tasks and channels that have done nothing yet."""
        topology = self.scenario.topology
        job.nodes, job.operator_nodes, job.source_nodes, job.channels = {}, [], [], {}
        channels = job.channels
        pools: dict[str, list[BufferPool]] = {task: [] for task in topology.tasks}
        gates: dict[tuple[str, str], ReceiverPool] = {}
        for task in topology.tasks:
            for edge in topology.edges_out(topology.operator_of(task)):
                settings = self.scenario.channels[edge]
                names = [c for c in topology.outputs(task) if topology.edge_of(c) == edge]
                # Each channel fills one, and one more is free: Apache Flink, `NettyShuffleUtils`.
                configured = settings.exclusive_buffers * len(names) + settings.floating_buffers
                pool = BufferPool(max(configured, len(names) + 1), settings.overdraft_buffers)
                for name in names:
                    receiver = topology.ends(name)[1]
                    gate = gates.setdefault((receiver, edge), ReceiverPool(settings.floating_buffers))
                    channels[name] = self._channel(ports.clock, name, settings, pool, gate)
                if settings.form == "network":
                    pools[task].append(pool)
        for task in topology.tasks:
            outputs = topology.outputs(task)
            node: Node
            if task in topology.sources:
                node = self._source(ports, task, [channels[c] for c in outputs], outputs)
                job.source_nodes.append(node)
            else:
                node = self._operator(ports, task, [channels[c] for c in outputs], outputs, channels)
                job.operator_nodes.append(node)
                if self.scenario.buffer_debloat.enabled:
                    self._start_debloating(ports, node, channels)
            job.nodes[task] = node
            node.begins, node.cores = self._beginning(task), self._cores
            if pools[task]:
                edges_out = topology.edges_out(topology.operator_of(task))
                node.attach_pools(pools[task], any(self.scenario.channels[edge].spanning_records for edge in edges_out))
                self._start_flushing(ports.clock, node, task)
            for name in outputs:
                channel = channels[name]
                if isinstance(channel, SpscChannel):
                    channel.on_room = node.wake
        if self.scenario.watermark_alignment.max_drift_s is not None:
            self._start_aligning_watermarks(ports.clock, job.source_nodes)
        for each in job.operator_nodes:
            for index, name in enumerate(topology.inputs(each.name)):
                channels[name].on_arrival = partial(each.arrived, index)
                channels[name].on_overtaking = partial(each.overtaken, index)
                channels[name].on_announcement = partial(each.announced, index)
        self._attach_lanes(job)
        for node in job.nodes.values():
            for index, name in enumerate(topology.outputs(node.name)):
                channels[name].on_departure = partial(node.departed, index)
                node.may_overtake[index] = not self.scenario.aligns(topology.ends(name)[1])

    # Channels.

    def _attach_lanes(self, job: Job) -> None:
        """Tell nodes which of their channels are queues without latency, where they have no others on their way out."""
        topology = self.scenario.topology
        outputs: dict[str, Lane] = {}
        inputs: dict[str, Lane] = {}
        for node in job.operator_nodes:
            for index, name in enumerate(topology.inputs(node.name)):
                channel, reads = job.channels[name], node.inbox.queue_of(index)
                if reads is not None and isinstance(channel, SpscChannel) and channel.is_direct:
                    reader, local = reads
                    sender = job.nodes[topology.ends(name)[0]]
                    common = channel, channel.queue, name, reader.listed, reader.blocked, reader.line, local
                    outputs[name], inputs[name] = Lane(*common, node), Lane(*common, sender)
        for each in job.nodes.values():
            its_outputs, its_inputs = topology.outputs(each.name), topology.inputs(each.name)
            if all(isinstance(job.channels[name], SpscChannel) for name in its_outputs):
                takes = (
                    isinstance(each, OperatorNode) and each.inbox.is_one and all(name in inputs for name in its_inputs)
                )
                each.attach_lanes(
                    [outputs.get(name) for name in its_outputs], [inputs[name] for name in its_inputs] if takes else []
                )

    def _channel(
        self, clock: Clock, name: str, settings: ChannelSettings, pool: BufferPool, gate: ReceiverPool
    ) -> Channel:
        edge = self.scenario.topology.edge_of(name)
        latency = self._latency(name, edge, settings)
        if settings.form == "spsc":
            return SpscChannel(settings.capacity, clock, latency)
        return NetworkChannel(
            pool,
            settings.segment_bytes,
            settings.most_buffers,
            clock,
            gate=None if settings.local else gate,
            exclusive=settings.exclusive_buffers,
            latency=latency,
            ns_per_byte=self.ns_per_byte(edge),
            stops_behind_barriers=self.scenario.checkpoint.hold == "channel",
            barrier_latency=self._barrier_latency(name, settings),
            spans=settings.spanning_records,
        )

    def _latency(self, name: str, edge: str, settings: ChannelSettings) -> Callable[[], int] | None:
        drawn = self.draw(settings.latency_s, name, "latency") if settings.latency_s.mean else None
        link = self._links.get(edge)
        if link is None:
            return drawn
        return lambda: link.slowed(0 if drawn is None else drawn())

    def _barrier_latency(self, name: str, settings: ChannelSettings) -> Callable[[CheckpointBarrier], int] | None:
        """Return a barrier's latency beyond a buffer's, by whether it waits its turn or overtakes."""
        of_aligned, of_unaligned = settings.barrier_latency_s, settings.unaligned_barrier_latency_s
        if of_unaligned is None:
            of_unaligned = of_aligned
        if not of_aligned.mean and not of_unaligned.mean:
            return None
        aligned = self.draw(of_aligned, name, "barrier latency")
        unaligned = self.draw(of_unaligned, name, "unaligned barrier latency")
        return lambda barrier: unaligned() if barrier.is_unaligned else aligned()

    def ns_per_byte(self, edge: str) -> float:
        """Return how long a byte takes over the link of this exchange, as it is now."""
        settings = self.scenario.channels[edge]
        link = self._links.get(edge)
        usual = 0.0 if settings.bytes_per_s is None else 1e9 / settings.bytes_per_s
        if link is None:
            return usual
        if usual and link.factor != 1.0:
            link.note()
        return usual * link.factor

    def _start_flushing(self, clock: Clock, node: Node, task: str) -> None:
        """Start one flush timer a task, as in Flink; each starts somewhere in its first period."""
        edges = self.scenario.topology.edges_out(self.scenario.topology.operator_of(task))
        settings = min((self.scenario.channels[edge] for edge in edges), key=lambda s: s.flush_timeout_s)
        period_ns = ns(settings.flush_timeout_s)
        late = self.draw(settings.flush_late_s, task, "flush")

        def tick() -> None:
            timer.start(period_ns + late())
            node.flush()

        timer = clock.timer(tick)
        timer.start(round(self._randoms.stream(task, "flush phase").random() * period_ns))

    def _start_debloating(self, ports: Ports, node: OperatorNode, channels: Mapping[str, Channel]) -> None:
        """Let the gates of a task choose their buffers' size, once a period; tasks begin it at different times."""
        topology, settings, clock = self.scenario.topology, self.scenario.buffer_debloat, ports.clock
        period_ns = ns(settings.period_s)
        debloaters: list[tuple[str, BufferDebloater]] = []
        for gate, edge in enumerate(topology.edges_in(topology.operator_of(node.name))):
            own = [channels[name] for name in topology.inputs(node.name) if topology.edge_of(name) == edge]
            resizable = [channel for channel in own if isinstance(channel, NetworkChannel)]
            if resizable:
                meter = ThroughputMeter(clock)
                node.inbox.measure(gate, meter)
                segment_bytes = self.scenario.channels[edge].segment_bytes
                debloaters.append((edge, BufferDebloater(settings, segment_bytes, resizable, meter)))

        def tick() -> None:
            if node.dead or node.ended:
                return
            timer.start(period_ns)
            for edge, debloater in debloaters:
                debloater.adjust()
                ports.metrics.debloated(node.name, edge, clock.now, debloater.buffer_bytes, debloater.estimated_s)

        timer = clock.timer(tick)
        timer.start(round(self._randoms.stream(node.name, "debloating phase").random() * period_ns))

    def _start_aligning_watermarks(self, clock: Clock, sources: list[SourceNode]) -> None:
        """Announce the smallest watermark of the sources once an interval: FLIP-182, `SourceCoordinator`."""
        settings = self.scenario.watermark_alignment
        assert settings.max_drift_s is not None
        interval_ns, drift_ms = ns(settings.update_interval_s), 1e3 * settings.max_drift_s
        idle_after_ns = None if settings.idle_after_s is None else ns(settings.idle_after_s)

        def tick() -> None:
            running = [source for source in sources if not source.dead]
            if not running:
                return
            timer.start(interval_ns)
            smallest_ms = min(source.group_watermark_ms(idle_after_ns) for source in running)
            for source in running:
                source.allow(smallest_ms + drift_ms)

        timer = clock.timer(tick)
        timer.start(interval_ns)

    # Tasks.

    def _subtask_factor(self, task: str) -> float:
        """Return by how much slower this subtask is than the operator's mean, in this run."""
        operator = self.scenario.topology.operator_of(task)
        settings = self.scenario.sources.get(operator) or self.scenario.operators[operator]
        if not settings.subtask_spread:
            return 1.0
        law = Distribution("lognormal", (1.0, settings.subtask_spread))
        return self.draw(law, task, "subtask's slowness")() / NS_PER_S

    def _service(self, task: str, settings: SourceSettings | OperatorSettings) -> Callable[[], int]:
        """Return a function that draws a service of this subtask, in nanoseconds."""
        drawn, factor = self.draw(settings.service_s, task, "service"), self._slowness[task]
        if settings.service_noise:
            law = Distribution("lognormal", (1.0, settings.service_noise))
            noise = self.draw(law, task, "service noise")
            return lambda: round(drawn() * factor * noise() / NS_PER_S)
        return drawn if factor == 1.0 else lambda: round(drawn() * factor)

    def _sync_law(self, task: str) -> Distribution:
        """Return the law of the time that a copy of the state takes; a state of its own size has its own."""
        operator = self.scenario.topology.operator_of(task)
        own = (self.scenario.sources.get(operator) or self.scenario.operators[operator]).sync_s
        return self.scenario.checkpoint.sync_s if own is None else own

    def _beginning(self, task: str) -> Callable[[bool], int] | None:
        """Return a function that draws the work to begin a part of a task, unaligned or not; None if there is none."""
        aligned, unaligned = self.scenario.checkpoint.begin_s, self.scenario.checkpoint.unaligned_begin_s
        if unaligned is None:
            unaligned = aligned
        if not aligned.mean and not unaligned.mean:
            return None
        draws = self.draw(aligned, task, "beginning"), self.draw(unaligned, task, "unaligned beginning")
        return lambda is_unaligned: draws[is_unaligned]()

    def _chained_work(self, node: OperatorNode, settings: OperatorSettings) -> Callable[[int], None]:
        """Return a function that adds the service of an operator of a chain, by its place, to the step under way."""
        factor = self._slowness[node.name]
        draws = [
            self.draw(chained.service_s, node.name, f"service of chained {place}")
            for place, chained in enumerate(settings.chain, 1)
        ]

        def spend(place: int) -> None:
            node.work_ns += round(draws[place - 1]() * factor)

        return spend

    def _exchanges(self, task: str) -> list[OutputExchange]:
        return [
            OutputExchange(kind, indices, self._randoms.stream(f"{task} {edge}", "rebalance").randrange(len(indices)))
            for edge, kind, indices in self.scenario.topology.output_groups(task)
        ]

    def _log(self, task: str) -> EventLog:
        settings = self.scenario.sources[self.scenario.topology.operator_of(task)]
        arrivals = Arrivals(
            settings.arrivals,
            settings.rate_per_s,
            settings.on_s,
            settings.off_s,
            self._randoms.stream(task, "arrivals"),
        )
        key = KeyChooser(settings.keys, settings.key_skew, self._randoms.stream(task, "keys"))
        size = self.draw(settings.record_bytes, task, "sizes", 1.0)
        lateness = self.draw(settings.out_of_order_s, task, "lateness", 1e3)
        return EventLog(arrivals, EventMaker(task, key, lateness, size), settings.events)

    def _source(self, ports: Ports, task: str, outputs: list[Channel], names: tuple[str, ...]) -> SourceNode:
        settings = self.scenario.sources[self.scenario.topology.operator_of(task)]
        node = SourceNode(
            ports,
            task,
            outputs,
            names,
            self.spent_ns[task],
            self.draw(self._sync_law(task), task, "sync"),
            self.logs[task],
            self._service(task, settings),
            ns(settings.service_s.mean),
            None if settings.catch_up_s is None else ns(settings.catch_up_s),
            None if settings.watermark_interval_s is None else ns(settings.watermark_interval_s),
            round(settings.out_of_order_s.mean * 1e3),
        )
        interval = self.scenario.checkpoint.interval_s if settings.trigger == "periodic" else None
        injector = self._components.injector(
            BarrierInjectorConfig(periodic_interval_ns=None if interval is None else ns(interval), source_id=task),
            ports.clock.now,
        )
        exchanges = self._exchanges(task)
        node.task = self._components.make_source(
            task, injector, unaligned_config(self.scenario), exchanges, node.note_effect
        )
        node.handle = injector.coordinator_handle()
        return node

    def _operator(
        self,
        ports: Ports,
        task: str,
        outputs: list[Channel],
        names: tuple[str, ...],
        channels: dict[str, Channel],
    ) -> OperatorNode:
        topology, checkpoint = self.scenario.topology, self.scenario.checkpoint
        operator = topology.operator_of(task)
        settings = self.scenario.operators[operator]
        inputs = topology.inputs(task)
        groups = [[i for i, c in enumerate(inputs) if topology.edge_of(c) == e] for e in topology.edges_in(operator)]
        by_message = settings.inputs == "by_message" or (settings.inputs == "auto" and settings.kind == "join")
        node = OperatorNode(
            ports,
            task,
            outputs,
            names,
            self.spent_ns[task],
            self.draw(self._sync_law(task), task, "sync"),
            [channels[c] for c in inputs],
            inputs,
            Inbox(groups, [channels[c] for c in inputs], by_message, settings.inputs == "in_line"),
            self._service(task, settings),
            checkpoint.hold == "channel",
            checkpoint.interruptible_timers,
        )
        config, unaligned = aligner_config(checkpoint, len(inputs)), unaligned_config(self.scenario)
        aligner = AlignerSettings(config, unaligned, self.scenario.aligns(task))
        its, components = make_task_operator(self.scenario, task), self._components
        if isinstance(its, OperatorChain):
            its.spend = self._chained_work(node, settings)
        if outputs:
            node.task = components.make_task(task, its, aligner, self._exchanges(task), node.note_effect)
        else:
            writer = components.writer(task, self.ledger, settings.guarantee, node.note_effect)
            node.task = components.make_sink(task, its, aligner, writer, node.note_effect)
        return node


def make_task_operator(scenario: Scenario, task: str) -> Any:
    """A fresh operator for `task`."""
    topology = scenario.topology
    operator = topology.operator_of(task)
    settings = scenario.operators[operator]
    inputs = len(topology.inputs(task))
    head = make_operator(
        settings.kind, name=task, inputs=inputs, sides=topology.input_sides(task), **dict(settings.parameters)
    )
    if not settings.chain:
        return head
    chained = [make_operator(each.kind, name=task, inputs=1, **dict(each.parameters)) for each in settings.chain]
    return OperatorChain((head, *chained), inputs)
