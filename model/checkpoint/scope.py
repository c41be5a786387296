"""The parts of a world: which dataflow, how far it goes, which faults, and whose machines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator, CoordinatorConfig
from barrierlab.impl.checkpoint.injector import BarrierInjectorConfig
from barrierlab.impl.checkpoint.report import Tell
from barrierlab.impl.checkpoint.task import OutputExchange, Task
from barrierlab.impl.messages import Event
from barrierlab.model.checkpoint.components import AlignerSettings, Components
from barrierlab.model.checkpoint.protocols import Protocol, ProtocolError, protocol_of
from barrierlab.model.checkpoint.task_transitions import TIMEOUT_NS
from barrierlab.model.spec.invariants import Limits
from barrierlab.model.spec.topology import Topology


class BoundsError(ValueError):
    """No world can be made so: the message says what came, what is allowed and what to do."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The parts of a world, and how far it goes: a small scope, in which most faults already show.

    Attributes
    ----------
    topology : str
        As `Topology.parse` reads it.
    mode : str
        A name in `model.checkpoint.protocols.PROTOCOLS`: barriers wait; are flagged and go ahead; and so on.
    events, watermarks : int
        How many events each source makes, and after how many of them a watermark follows.
    first_timestamp_ms : tuple of (str, int)
        Of a source's first event, where not 1; each has one more than the one before it.
    checkpoints : int
    capacity : int
        Messages that a channel has room for.
    cancels, expiries : int
        How many checkpoints the coordinator aborts; how many deadlines of tasks pass that cost the checkpoint.
    aborts_one : tuple of (int, int) or None
        Instead of `cancels`, the one checkpoint that is aborted, and when: as soon as it is triggered, behind 0; or as
        soon as that older one has completed. Any other time comes to the same as one of these
        (`model.checkpoint.partial_order`).
    may_expire : tuple of str
        The only tasks whose deadlines may cost the checkpoint; all if empty.
    closes : bool
        Whether sources may end before they have made all their events. (Once nothing moves any more all of them end.)
    crashes : int
        How many times the job fails, and is restored from the newest complete checkpoint.
    checkpoints_again : int
        How many checkpoints are triggered after that.
    guarantee : str
        What sinks write to the external system, ``exactly_once``, ``at_least_once`` or ``idempotent``; empty: nothing.
    emits : bool
        Whether operators between sources and sinks also make an event of their own at each watermark, and at each end.
    sender_records : bool
        Whether a flagged barrier passes what is in a channel at its sender, which then records it, or at its receiver.
    parallelism : tuple of (str, int)
        Tasks of an operator, where not 1.
    exchanges : tuple of (str, str)
        How the events of an edge are spread, where not as usual.
    max_buffer_per_input, max_buffer_memory_bytes, max_inflight_buffer_bytes : int
        The limits of the gates.
    """

    topology: str
    mode: str = "aligned"
    events: int = 2
    watermarks: int = 0
    first_timestamp_ms: tuple[tuple[str, int], ...] = ()
    checkpoints: int = 1
    capacity: int = 100
    cancels: int = 0
    expiries: int = 0
    aborts_one: tuple[int, int] | None = None
    may_expire: tuple[str, ...] = ()
    closes: bool = False
    crashes: int = 0
    checkpoints_again: int = 1
    guarantee: str = ""
    emits: bool = False
    sender_records: bool = False
    parallelism: tuple[tuple[str, int], ...] = ()
    exchanges: tuple[tuple[str, str], ...] = ()
    max_buffer_per_input: int = 100
    max_buffer_memory_bytes: int = 10_000
    max_inflight_buffer_bytes: int = 10_000

    def __post_init__(self) -> None:
        try:
            refused = self.protocol.refused_sink(self.guarantee)
        except ProtocolError as error:
            raise BoundsError(str(error)) from error
        if refused is not None:
            raise BoundsError(f"guarantee {refused}")

    @property
    def protocol(self) -> Protocol:
        """The protocol that the mode names."""
        return protocol_of(self.mode)

    @property
    def recovers(self) -> bool:
        """Return whether there is anything that a restore could come back to, or that is visible in the external
        system."""
        return bool(self.crashes or self.guarantee)

    def graph(self) -> Topology:
        """The dataflow.

        Raises
        ------
        TopologyError
            If the text describes none.
        """
        return Topology.parse(self.topology, dict(self.parallelism), dict(self.exchanges))

    def limits(self, topology: Topology) -> Limits:
        """Return what BOUND asks for."""
        capacities = dict.fromkeys(topology.channels, self.capacity)
        buffered = (self.max_buffer_per_input, self.max_buffer_memory_bytes)
        return Limits(capacities, *buffered, self.max_inflight_buffer_bytes, self.protocol.consistency)

    def script(self, source: str) -> tuple[Event | int, ...]:
        """Return what a source makes: events, and the timestamps of watermarks."""
        script: list[Event | int] = []
        first_ms = dict(self.first_timestamp_ms).get(source, 1)
        for n in range(1, self.events + 1):
            timestamp_ms = first_ms + n - 1
            script.append(Event(source, n, timestamp_ms=timestamp_ms))
            if n <= self.watermarks:
                script.append(timestamp_ms)
        return tuple(script)


class Tally:
    """An operator that passes every event on, and counts what it has seen, input by input.

    Parameters
    ----------
    inputs : int
    name : str
        If given, it also makes an event at each watermark and at each end, named after it: `Bounds.emits`.
    """

    __slots__ = ("counts", "made", "name", "watermark_ms")

    def __init__(self, inputs: int, name: str = "") -> None:
        self.name = name
        self.counts = [0] * inputs
        self.watermark_ms: int | None = None
        self.made = 0

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """The event itself."""
        self.counts[input_id] += 1
        return (event,)

    def on_watermark(self, timestamp_ms: int) -> Iterable[Event]:
        """Return the counts so far, if it emits."""
        self.watermark_ms = timestamp_ms
        return self._made(timestamp_ms)

    def on_end(self, input_id: int) -> Iterable[Event]:
        """Return the counts so far, if it emits."""
        return self._made(self.watermark_ms or 0)

    def _made(self, timestamp_ms: int) -> Iterable[Event]:
        if not self.name:
            return ()
        self.made += 1
        return (Event(self.name, self.made, value=tuple(self.counts), timestamp_ms=timestamp_ms),)

    def checkpoint(self) -> object:
        """``(counts, watermark)``, and how many events it has made, if it emits."""
        counts = tuple(self.counts), self.watermark_ms
        return (*counts, self.made) if self.name else counts

    def restore(self, image: object) -> None:
        """Take the state of `image` on."""
        counts, self.watermark_ms, *made = image  # type: ignore[misc]
        self.counts = list(counts)  # type: ignore[has-type]
        self.made = made[0] if made else 0  # type: ignore[has-type]


def make_operator(bounds: Bounds, topology: Topology, name: str) -> Tally:
    """Return what the task `name` runs; a sink never emits."""
    return Tally(len(topology.inputs(name)), name if bounds.emits and topology.outputs(name) else "")


def make_coordinator(
    bounds: Bounds, topology: Topology, components: Components, first_id: int = 1
) -> CheckpointCoordinator:
    """The coordinator of a world: any number of checkpoints may be under way."""
    config = CoordinatorConfig(interval_ns=None, max_concurrent=1000, unaligned=bounds.protocol.settings.is_flagged)
    return components.coordinator(config, topology.tasks, topology.sources, first_id)


def make_task(bounds: Bounds, topology: Topology, components: Components, name: str, tell: Tell) -> Task:
    """The task `name` of a world."""
    exchanges = [OutputExchange(kind, outputs) for _, kind, outputs in topology.output_groups(name)]
    components = bounds.protocol.machines(components)
    unaligned = bounds.protocol.unaligned_config(bounds.max_inflight_buffer_bytes)
    inputs, is_sink = len(topology.inputs(name)), not topology.outputs(name)
    if not inputs:
        return components.make_source(
            name, components.injector(BarrierInjectorConfig(None, name)), unaligned, exchanges, tell
        )
    operator = make_operator(bounds, topology, name)
    config = BarrierAlignerConfig(inputs, bounds.max_buffer_per_input, bounds.max_buffer_memory_bytes, TIMEOUT_NS)
    if is_sink and bounds.guarantee:
        writer = components.writer(name, components.ledger(), bounds.guarantee, tell)
        return components.make_sink(name, operator, AlignerSettings(config, unaligned, True), writer, tell)
    return components.make_task(name, operator, AlignerSettings(config, unaligned, is_sink), exchanges, tell)
