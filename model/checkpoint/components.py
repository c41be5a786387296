"""Whose machines a dataflow is made of: those of `impl`, or another's in their place.

One value says it to all who build tasks: the explored world, the simulation, the defect catalogue, and whoever brings
an aligner of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from barrierlab.impl.checkpoint.alignment import BarrierAligner, BarrierAlignerConfig
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator, CoordinatorConfig
from barrierlab.impl.checkpoint.gate import Gate, GatePort
from barrierlab.impl.checkpoint.injector import CheckpointBarrierInjector
from barrierlab.impl.checkpoint.recovery import Restore, Wiring, plan
from barrierlab.impl.checkpoint.report import Tell
from barrierlab.impl.checkpoint.task import Operator, OperatorTask, OutputExchange, SinkTask, SourceTask
from barrierlab.impl.checkpoint.transactions import Ledger, SinkWriter
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig, UnalignedCheckpointer
from barrierlab.impl.messages import StreamMessage
from barrierlab.impl.messages import size_of as default_size_of
from barrierlab.impl.storage.snapshot import Checkpoint
from barrierlab.model.checkpoint.capabilities import DRAINS_FIRST, Capabilities

MakeCoordinator = Callable[[CoordinatorConfig, Iterable[str], Iterable[str], int], CheckpointCoordinator]
MakeSource = Callable[[str, CheckpointBarrierInjector, Iterable[OutputExchange], Tell], SourceTask]
MakeWriter = Callable[[str, Ledger, str, Tell], SinkWriter]
MakeAligner = Callable[[BarrierAlignerConfig, UnalignedCheckpointConfig | None, bool], BarrierAligner]
MakeMachine = Callable[
    [BarrierAlignerConfig, UnalignedCheckpointConfig | None, bool, Callable[[StreamMessage], int]], BarrierAligner
]
MakeGate = Callable[[GatePort, BarrierAlignerConfig, UnalignedCheckpointConfig | None, bool], Gate]


class AlignerSettings(NamedTuple):
    """The settings of a task's aligner; as of a sink's, no barrier overtakes on its way in."""

    config: BarrierAlignerConfig
    unaligned: UnalignedCheckpointConfig | None
    is_sink: bool


def sound_aligner(
    config: BarrierAlignerConfig,
    unaligned: UnalignedCheckpointConfig | None,
    is_sink: bool,
    size_of: Callable[[StreamMessage], int] = default_size_of,
) -> BarrierAligner:
    """The aligner that the protocol asks for."""
    if unaligned is None:
        return BarrierAligner(config, size_of)
    return UnalignedCheckpointer(config, unaligned, size_of, is_sink)


@dataclass(frozen=True, slots=True)
class Components:
    """The classes that may be another's than those of `impl`.

    Attributes
    ----------
    source : callable
        Given its name, injector, exchanges and a `tell`, makes a source; a type will do.
    task, sink : type
        Of the other tasks; a sink that writes nothing to the external system is a task like others.
    injector : type
        Of sources.
    writer : callable
        Given the name of a sink, the external system, the guarantee and a `tell`, makes what writes there; a type will
        do.
    ledger : type
        Of the external system.
    coordinator : callable
        Given a `CoordinatorConfig`, the tasks, the sources and the first id, makes the coordinator; a type will do.
    aligner : callable
        Given a `BarrierAlignerConfig`, the `UnalignedCheckpointConfig` if the mode has one, and whether it is for a
        sink, makes the aligner of a task.
    gate : callable or None
        Given its port, a task, and all that, makes a gate, such as a table. None: the one that a task comes with.
    plan : callable
        Makes of a complete checkpoint what goes back where.
    store : type or None
        An external store of checkpoints (`model.checkpoint.interfaces.CheckpointStore`), where scopes of the store are
        explored.
    capabilities : Capabilities
        The declaration of external classes.
    reducible : bool
        Whether the reduction of the exploration is for such machines (`model.checkpoint.partial_order`).
    """

    source: MakeSource = SourceTask
    task: type[OperatorTask] = OperatorTask
    sink: type[SinkTask] = SinkTask
    injector: type[CheckpointBarrierInjector] = CheckpointBarrierInjector
    writer: MakeWriter = SinkWriter
    ledger: type[Ledger] = Ledger
    coordinator: MakeCoordinator = CheckpointCoordinator
    aligner: MakeAligner = sound_aligner
    gate: MakeGate | None = None
    plan: Callable[[Checkpoint, Wiring], Restore] = plan
    store: type | None = None
    capabilities: Capabilities = DRAINS_FIRST
    reducible: bool = True

    def make_source(
        self,
        name: str,
        injector: CheckpointBarrierInjector,
        unaligned: UnalignedCheckpointConfig | None,
        exchanges: Iterable[OutputExchange],
        tell: Tell,
    ) -> SourceTask:
        """A task that makes events."""
        task = self.source(name, injector, exchanges, tell)
        if unaligned is not None:
            task.max_inflight_buffer_bytes = unaligned.max_inflight_buffer_bytes
        return task

    def make_task(
        self, name: str, operator: Operator, its: AlignerSettings, exchanges: Iterable[OutputExchange], tell: Tell
    ) -> OperatorTask:
        """A task that passes on what it makes."""
        return self._with_gate(self.task(name, operator, self.aligner(*its), exchanges, tell), its)

    def make_sink(
        self, name: str, operator: Operator, its: AlignerSettings, writer: SinkWriter | None, tell: Tell
    ) -> OperatorTask:
        """Return a task that ends a dataflow, and writes to the external system."""
        return self._with_gate(self.sink(name, operator, self.aligner(*its), tell, writer), its)

    def _with_gate(self, task: OperatorTask, its: AlignerSettings) -> OperatorTask:
        if self.gate is not None:
            task.gate = self.gate(task, *its)
        return task


SOUND = Components()


def with_aligner(kind: type[BarrierAligner]) -> Components:
    """The sound components, with the aligner of another class; a subclass of `UnalignedCheckpointer` goes unaligned."""

    def make(
        config: BarrierAlignerConfig, unaligned: UnalignedCheckpointConfig | None, is_sink: bool
    ) -> BarrierAligner:
        if issubclass(kind, UnalignedCheckpointer):
            return kind(config, unaligned, is_sink=is_sink)
        return kind(config)

    return Components(aligner=make)


def with_gate(kind: type[Gate]) -> Components:
    """The sound components, with the gate of another class around the sound aligner."""
    return Components(
        gate=lambda port, config, unaligned, is_sink: kind(sound_aligner(config, unaligned, is_sink), port)
    )


COUNTERS = (
    *("alignments_completed", "events_drained", "max_alignment_duration_ns", "unaligned_count"),
    *("threshold_switches", "total_inflight_bytes", "flag_mismatches", "barriers_injected"),
)
"""The attributes in which the machines of `impl` only count."""


def reset_counters(machines: Iterable[object]) -> None:
    """Count from 0 again: what differs in that alone is the same."""
    for each in machines:
        for name in COUNTERS:
            if hasattr(each, name):
                setattr(each, name, 0)
