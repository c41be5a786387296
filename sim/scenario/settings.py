"""The settings of a run, as values with units in their names; `sim.scenario.load` reads them from TOML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from barrierlab.impl import BarrierAlignerConfig, CoordinatorConfig, UnalignedCheckpointConfig
from barrierlab.model.checkpoint.operators import KINDS
from barrierlab.model.checkpoint.protocols import Protocol, protocol_of
from barrierlab.model.render.html import block, facts
from barrierlab.model.spec.topology import EXCHANGES, Topology
from barrierlab.sim.core.distributions import NS_PER_S, Distribution, constant
from barrierlab.sim.scenario.readers import TICK_S, distribution, flag, key, number, one_of, tables, text, whole

ZERO, TENTH, ONE, HUNDRED = map(constant, (0.0, 0.1, 1.0, 100.0))


# On these, and on rescale, Flink's barriers keep their place, and on the receiver's other inputs, too: one gate does
# not mix both (FLINK-21945, FLINK-22815).
ALIGNED_EXCHANGES = ("forward", "broadcast")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One source operator. Rates and counts are of each subtask; no `sync_s` of its own is the checkpoint's.

    `subtask_spread` and `service_noise` are as in `OperatorSettings`.
    """

    parallelism: int = key(whole(1, 1000), 1)
    rate_per_s: float = key(number(TICK_S, most=1e9), 100.0)
    arrivals: str = key(one_of("deterministic", "poisson", "bursty"), "deterministic")
    on_s: float = key(number(TICK_S), 1.0)
    off_s: float = key(number(TICK_S), 1.0)
    events: int | None = key(whole(0), None)
    catch_up_s: float | None = key(number(), None)
    service_s: Distribution = key(distribution, ZERO)
    subtask_spread: float = key(number(most=10.0), 0.0)
    service_noise: float = key(number(most=10.0), 0.0)
    sync_s: Distribution | None = key(distribution, None)
    record_bytes: Distribution = key(distribution, HUNDRED)
    keys: int = key(whole(1, 1_000_000), 16)
    key_skew: float = key(number(most=10.0), 0.0)
    watermark_interval_s: float | None = key(number(TICK_S), None)
    out_of_order_s: Distribution = key(distribution, ZERO)
    trigger: str = key(one_of("coordinator", "periodic"), "coordinator")

    def emitted_in(self, seconds: float) -> float:
        """Return about how many events a subtask emits in a time."""
        return min(self.rate_per_s * seconds, math.inf if self.events is None else self.events)


CHAINED = tuple(kind for kind in KINDS if kind not in ("join", "union", "sink"))
"""The kinds of one input that send: what may be chained behind another."""


@dataclass(frozen=True, slots=True)
class ChainedSettings:
    """One operator that is chained behind another: a function call and no channel away (Apache Flink, chaining)."""

    kind: str = key(one_of(*CHAINED), "map")
    service_s: Distribution = key(distribution, ZERO)
    parameters: tuple[tuple[str, float], ...] = ()

    @property
    def sends_each(self) -> float:
        """Return how many events it sends for each that it gets, as declared."""
        return sends_each(self.kind, self.parameters)


def sends_each(kind: str, parameters: tuple[tuple[str, float], ...]) -> float:
    """Return how many events an operator sends for each that it gets, as declared: what is not declared is one."""
    own = dict(parameters)
    return own.get("selectivity", 1.0) * own.get("fanout", 1.0)


OF_SINKS = ("guarantee", "aligns")
"""The keys of operators that only a sink has."""


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """One operator that is not a source; no `sync_s` of its own is the checkpoint's.

    Each subtask has a factor on its service times, drawn once a run, and each service one of its own: lognormal, of
    mean 1 and with these coefficients of variation, `subtask_spread` and `service_noise`. Without them subtasks are
    alike; what is unequal once stays so.
    """

    kind: str = key(one_of(*KINDS), "map")
    parallelism: int = key(whole(1, 1000), 1)
    service_s: Distribution = key(distribution, ZERO)
    subtask_spread: float = key(number(most=10.0), 0.0)
    service_noise: float = key(number(most=10.0), 0.0)
    sync_s: Distribution | None = key(distribution, None)
    inputs: str = key(one_of("auto", "by_buffer", "by_message", "in_line"), "auto")
    chain: tuple[ChainedSettings, ...] = key(tables, ())
    guarantee: str = key(one_of("exactly_once", "at_least_once", "idempotent"), "exactly_once")
    aligns: bool = key(flag, True)
    parameters: tuple[tuple[str, float], ...] = ()

    @property
    def sends_each(self) -> float:
        """Return how many events leave its task for each that comes, as declared."""
        flow = sends_each(self.kind, self.parameters)
        for chained in self.chain:
            flow *= chained.sends_each
        return flow

    @property
    def mean_service_s(self) -> float:
        """Return the mean time that its task takes for an event, with what is chained behind it."""
        flow, spent_s = sends_each(self.kind, self.parameters), self.service_s.mean
        for chained in self.chain:
            spent_s += flow * chained.service_s.mean
            flow *= chained.sends_each
        return spent_s


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """One exchange: how events are distributed, and what its channels are made of.

    `latency_s` is one way of anything; a barrier of the network form takes `barrier_latency_s` more, an unaligned one
    `unaligned_barrier_latency_s`, or as much where that is None. Of the network form: the numbers of buffers are Flink
    2.x's, constants there (`NettyShuffleEnvironmentConfiguration.fromConfiguration`); of overdraft, 1.16 to 1.20 have 5
    (`taskmanager.network.memory.max-overdraft-buffers-per-gate`, FLINK-26762), older ones 0. With `spanning_records` a
    record goes on in the next buffer, as in Flink; without, it begins one of its own. Debloating needs it, and has it.
    """

    exchange: str = key(one_of("auto", *EXCHANGES), "auto")
    form: str = key(one_of("spsc", "network"), "spsc")
    capacity: int = key(whole(), 64)
    latency_s: Distribution = key(distribution, ZERO)
    barrier_latency_s: Distribution = key(distribution, ZERO)
    unaligned_barrier_latency_s: Distribution | None = key(distribution, None)
    local: bool = key(flag, False)
    segment_bytes: int = key(whole(), 32_768)
    exclusive_buffers: int = key(whole(), 2)
    floating_buffers: int = key(whole(0), 8)
    most_buffers: int = key(whole(2), 10)  # a full pool waits for the second: one is filled, one is on its way
    overdraft_buffers: int = key(whole(0), 20)
    flush_timeout_s: float = key(number(TICK_S), 0.1)
    flush_late_s: Distribution = key(distribution, ZERO)
    bytes_per_s: float | None = key(number(1.0), None)
    spanning_records: bool = key(flag, False)


@dataclass(frozen=True, slots=True)
class BufferDebloatSettings:
    """Flink's `taskmanager.network.memory.buffer-debloat.*`, and its `taskmanager.memory.*-segment-size`.

    Names and defaults are those of Flink 2.x. Older versions than 2.1 start with the segment's size (FLINK-36556).
    """

    enabled: bool = key(flag, False)
    period_s: float = key(number(TICK_S), 0.2)
    samples: int = key(whole(), 20)
    target_s: float = key(number(TICK_S), 1.0)
    threshold_percentages: int = key(whole(0, 100), 25)
    min_segment_bytes: int = key(whole(), 256)
    starting_segment_bytes: int = key(whole(), 1024)


@dataclass(frozen=True, slots=True)
class WatermarkAlignmentSettings:
    """Alignment of the watermarks of sources (FLIP-182): `WatermarkStrategy.withWatermarkAlignment`.

    A source whose watermark is further ahead of the group's smallest than `max_drift_s` emits nothing until the next
    update at which it is not. One that has emitted nothing for `idle_after_s` is not waited for
    (`WatermarkStrategy.withIdleness`), nor is one that has ended. No `max_drift_s`: nothing is aligned.
    """

    max_drift_s: float | None = key(number(), None)
    update_interval_s: float = key(number(TICK_S), 1.0)
    idle_after_s: float | None = key(number(TICK_S), None)


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """The times and limits of checkpoints. Names and defaults are Flink's where it has them.

    `command_s` is what the coordinator takes from a trigger until its commands leave: all sources wait for it together.
    `tolerable_failures` alone is not Flink's, which is 0: None says that no number of failed checkpoints fails the job.
    `trigger_latency_s` is the way of a command, of each source on its own. `interruptible_timers` lets an unaligned
    barrier in between the timers of one watermark (FLINK-20217). `begin_s` is the work of a task that begins its part,
    before its barrier leaves: it takes no record then; of an unaligned one `unaligned_begin_s`, or as much where that
    is None. As much it takes after a timeout until a barrier overtakes that had left before. `channel_state_s` and
    `channel_state_bytes_per_s` are what a part with channel state costs to write besides `async_s`. On `cores` all the
    tasks begin and write: unaligned work that begins while more are at work takes so much longer (`sim.core.cores`).
    """

    interval_s: float | None = key(number(TICK_S), 10.0)
    first_s: float | None = key(number(), None)
    min_pause_s: float = key(number(), 0.0)
    timeout_s: float = key(number(TICK_S), 600.0)
    max_concurrent: int = key(whole(), 1)
    tolerable_failures: int | None = key(whole(0), None)
    alignment_timeout_s: float = key(number(TICK_S), 60.0)
    aligned_checkpoint_timeout_s: float = key(number(), 0.0)
    max_inflight_bytes: int = key(whole(), 512 * 1024 * 1024)
    max_buffer_per_input: int = key(whole(), 100_000)
    max_buffer_memory_bytes: int = key(whole(), 256 * 1024 * 1024)
    hold: str = key(one_of("aligner", "channel"), "aligner")
    interruptible_timers: bool = key(flag, False)
    command_s: Distribution = key(distribution, ZERO)
    trigger_latency_s: Distribution = key(distribution, ZERO)
    ack_latency_s: Distribution = key(distribution, ZERO)
    begin_s: Distribution = key(distribution, ZERO)
    unaligned_begin_s: Distribution | None = key(distribution, None)
    sync_s: Distribution = key(distribution, ZERO)
    async_s: Distribution = key(distribution, ZERO)
    channel_state_s: Distribution = key(distribution, ZERO)
    channel_state_bytes_per_s: float | None = key(number(1.0), None)
    cores: float | None = key(number(0.01), None)


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    """The time until a failed job runs again: to be noticed, to be started, to read its state."""

    detection_s: Distribution = key(distribution, TENTH)
    restart_s: Distribution = key(distribution, ONE)
    read_bytes_per_s: float | None = key(number(1.0), None)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The store of checkpoints: what a part costs beyond `async_s`, what a manifest costs, how many are kept."""

    bytes_per_s: float | None = key(number(1.0), None)
    manifest_s: Distribution = key(distribution, ZERO)
    retained: int = key(whole(), 1)


WHEN = ("at_s", "every_s", "first_s", "rate_per_s")
"""The keys that say when a fault happens, whatever its kind."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, its place, and its time: once (`at_s`), again and again (`every_s`), or at random (`rate_per_s`).

    `name` is that of its random streams. `sim.scenario.readers.FAULTS` says which kind takes what.
    """

    kind: str
    name: str
    task: str | None = key(text, None)
    channel: str | None = key(text, None)
    at_s: float | None = key(number(), None)
    every_s: float | None = key(number(TICK_S), None)
    first_s: float | None = key(number(), None)
    rate_per_s: float | None = key(number(most=1e9), None)
    for_s: Distribution = key(distribution, ZERO)
    factor: float = key(number(1.0), 1.0)
    added_s: Distribution = key(distribution, ZERO)
    in_doubt: bool = key(flag, False)
    capacity_bytes: int = key(whole(0), 0)


@dataclass(frozen=True, slots=True, repr=False)
class Scenario:
    """All that one run depends on, besides its seed.

    `formless` are the exchanges of which the file does not say what their channels are made of.
    """

    name: str
    title: str
    topology: Topology
    protocol: str
    until_s: float
    warmup_s: float
    seed: int
    sources: Mapping[str, SourceSettings]
    operators: Mapping[str, OperatorSettings]
    channels: Mapping[str, ChannelSettings]
    checkpoint: CheckpointSettings
    recovery: RecoverySettings = RecoverySettings()
    store: StoreSettings = StoreSettings()
    buffer_debloat: BufferDebloatSettings = BufferDebloatSettings()
    watermark_alignment: WatermarkAlignmentSettings = WatermarkAlignmentSettings()
    faults: tuple[Fault, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    formless: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Scenario: {self.name}, {self.protocol}, {self.until_s:g} s: {self.title}>"

    def _repr_html_(self) -> str:
        its: dict[str, Any] = {
            "protocol": self.protocol,
            "until_s": self.until_s,
            "warmup_s": self.warmup_s,
            "seed": self.seed,
        }
        its["checkpoint.interval_s"] = self.checkpoint.interval_s
        its |= {f"source.{name}.rate_per_s": source.rate_per_s for name, source in self.sources.items()}
        its |= dict(self.settings)
        faults = {"faults": ", ".join(fault.kind for fault in self.faults)} if self.faults else {}
        return block(f"{self.name}: {self.title}", "", self.topology._repr_html_(), facts(its | faults))

    @property
    def mode(self) -> Protocol:
        """The protocol of its barriers; one with a timeout for the alignment is another than one that never aligns."""
        if protocol_of(self.protocol).settings.is_flagged and self.checkpoint.aligned_checkpoint_timeout_s > 0:
            return protocol_of("aligned_with_timeout")
        return protocol_of(self.protocol)

    def aligns(self, task: str) -> bool:
        """Return whether no barrier may overtake on the way into `task`.

        It is a sink, unless that says otherwise; or it has an input that no barrier may overtake on.
        """
        operator = self.topology.operator_of(task)
        return self._is_aligning_sink(operator) or bool(self._inputs_by(operator, *ALIGNED_EXCHANGES))

    @property
    def keeps_its_place(self) -> bool:
        """Return whether somewhere on its way a barrier keeps its place in a channel, whatever the mode."""
        return any(channel.exchange in ALIGNED_EXCHANGES for channel in self.channels.values())

    def _is_aligning_sink(self, operator: str) -> bool:
        return not self.topology.edges_out(operator) and self.operators[operator].aligns

    def _inputs_by(self, operator: str, *exchanges: str) -> list[str]:
        return [edge for edge in self.topology.edges_in(operator) if self.channels[edge].exchange in exchanges]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return where the run is not what its settings seem to ask for, or not as the measured jobs, a line each."""
        not_unaligned = self._not_unaligned() if self.mode.goes_unaligned else ()
        return (*self._unlike_measured(), *not_unaligned, *self._without_watermarks())

    def _unlike_measured(self) -> Iterator[str]:
        """The defaults that matter to checkpoints, and are not what was measured (sim/data/flink)."""
        if self.formless:
            capacity = self.channels[self.formless[0]].capacity
            yield (
                f"{', '.join(self.formless)}: a queue of {capacity} messages, since neither form nor capacity is "
                'given; the measured jobs had form = "network", where more is queued ahead of a barrier'
            )
        left_open = [
            edge
            for edge, channel in self.channels.items()
            if channel.exchange == "auto"
            and self.topology.exchange(edge) == "forward"
            and self.topology.parallelism(edge.split("->")[1]) > 1
        ]
        if left_open and not self.mode.goes_unaligned:
            yield (
                f"{', '.join(left_open)}: the exchange is left to auto, which is forward at equal parallelism, where a "
                "barrier has no others to wait for; the measured jobs had rebalance"
            )

    def _without_watermarks(self) -> Iterator[str]:
        """Yield a line for each operator with a window that no watermark closes."""
        graph = nx.DiGraph(tuple(edge.split("->")) for edge in self.topology.edges)
        for name, operator in self.operators.items():
            before = nx.ancestors(graph, name)
            silent = [
                each for each in self.sources if each in before and self.sources[each].watermark_interval_s is None
            ]
            if silent and "window" in (operator.kind, *(chained.kind for chained in operator.chain)):
                yield (
                    f"{name!r} gives nothing out while {', '.join(silent)} has not ended: a watermark closes a window, "
                    "and without watermark_interval_s a source sends none"
                )

    def _not_unaligned(self) -> Iterator[str]:
        for operator in self.operators:
            if self._is_aligning_sink(operator):
                continue
            pointwise = self._inputs_by(operator, *ALIGNED_EXCHANGES)
            if pointwise:
                named = ", ".join(f"{edge} is {self.channels[edge].exchange}" for edge in pointwise)
                yield (
                    f"{operator!r} aligns on all its inputs, though unaligned checkpoints are asked for: {named}, and "
                    "no barrier overtakes there (FLINK-21945)"
                )
                continue
            left_open = [e for e in self._inputs_by(operator, "auto") if self.topology.exchange(e) == "forward"]
            if left_open and self.topology.parallelism(operator) > 1:
                yield (
                    f"{operator!r} goes unaligned, though the exchange of {', '.join(left_open)} is left to auto: at "
                    'equal parallelism Flink takes forward, and aligns (FLINK-21945); write exchange = "forward", or '
                    "what the job has"
                )


def ns(seconds: float) -> int:
    """Return seconds as integer nanoseconds."""
    return round(seconds * NS_PER_S)


def aligner_config(checkpoint: CheckpointSettings, inputs: int) -> BarrierAlignerConfig:
    """The aligner's configuration for a task with `inputs` input channels."""
    return BarrierAlignerConfig(
        num_inputs=inputs,
        max_buffer_per_input=checkpoint.max_buffer_per_input,
        max_buffer_memory_bytes=checkpoint.max_buffer_memory_bytes,
        alignment_timeout_ns=ns(checkpoint.alignment_timeout_s),
    )


def unaligned_config(scenario: Scenario) -> UnalignedCheckpointConfig | None:
    """Return when a task goes unaligned: Flink's `aligned-checkpoint-timeout`, of which 0 is from the start; None:
    never."""
    checkpoint = scenario.checkpoint
    if not scenario.mode.goes_unaligned:
        return None
    return UnalignedCheckpointConfig(
        alignment_timeout_threshold_ns=ns(checkpoint.aligned_checkpoint_timeout_s),
        max_inflight_buffer_bytes=checkpoint.max_inflight_bytes,
    )


def coordinator_config(scenario: Scenario) -> CoordinatorConfig:
    """The coordinator's configuration. Where a source asks by its own interval, the coordinator has none."""
    checkpoint = scenario.checkpoint
    asked = any(source.trigger == "periodic" for source in scenario.sources.values())
    return CoordinatorConfig(
        interval_ns=None if asked or checkpoint.interval_s is None else ns(checkpoint.interval_s),
        min_pause_ns=ns(checkpoint.min_pause_s),
        timeout_ns=ns(checkpoint.timeout_s),
        max_concurrent=checkpoint.max_concurrent,
        tolerable_failures=checkpoint.tolerable_failures,
        first_trigger_ns=None if checkpoint.first_s is None else ns(checkpoint.first_s),
        unaligned=scenario.mode.settings.is_flagged,
    )
