"""The checkpoint protocols, an object each: whoever needs to know what a mode means asks it here, and compares no name.

A protocol is registered once, in `PROTOCOLS`; the explored world, the scopes of its gate, the check of machines, the
scenarios of the simulation and the printed tables take it from there. ``CONTRIBUTING`` shows how one is added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from barrierlab.impl.checkpoint.alignment import BarrierAligner, BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import Gate as Implementation
from barrierlab.impl.checkpoint.tracked import BarrierTracker
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.messages import StreamMessage, size_of
from barrierlab.model.checkpoint.components import Components, MakeMachine, sound_aligner
from barrierlab.model.checkpoint.refinement import RecordingPort, gate_of_impl
from barrierlab.model.checkpoint.tables.aligned import ALIGNED
from barrierlab.model.checkpoint.tables.aligned_with_timeout import ALIGNED_WITH_TIMEOUT
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.tables.stimuli import Stimulus
from barrierlab.model.checkpoint.tables.tracked import TRACKED
from barrierlab.model.checkpoint.tables.unaligned import UNALIGNED
from barrierlab.model.checkpoint.task_transitions import THRESHOLD_NS, TIMEOUT_NS
from barrierlab.model.errors import InputError
from barrierlab.model.explore.table import Table
from barrierlab.model.renamed import renamed
from barrierlab.model.spec.invariants import AT_LEAST_ONCE, EXACTLY_ONCE


class ProtocolError(InputError):
    """An unknown name of a protocol: one line, with the known ones."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of tasks and coordinator in an explored world.

    Attributes
    ----------
    threshold_ns : int or None
        The time from its trigger after which a task takes a checkpoint unaligned; None: it never does.
    is_flagged : bool
        Whether the coordinator asks for unaligned parts from the start, by the flag of its barriers.
    is_late : bool
        Whether a barrier may come behind the threshold, so that it matters when it comes.
    blocks : bool
        Whether an input waits behind its barrier.
    """

    threshold_ns: int | None = None
    is_flagged: bool = False
    is_late: bool = False
    blocks: bool = True


@dataclass(frozen=True, slots=True)
class Protocol:
    """One way for barriers to go through a dataflow.

    Attributes
    ----------
    name : str
        As scopes, traces, scenarios and the command line have it.
    table : Table
        What it does in each situation at the inputs of a task.
    settings : Settings
    make_machine : callable
        The machine of `impl`: given its configurations, whether it is for a sink, and the measure of a message.
    consistency : str
        What a checkpoint of it promises: `EXACTLY_ONCE` or `AT_LEAST_ONCE` of `model.spec.invariants`.
    properties : tuple of str
        What an external aligner must be capable of to follow it (`model.checkpoint.capabilities.RULES`).
    """

    name: str
    table: Table[GateState, Stimulus]
    settings: Settings = Settings()
    make_machine: MakeMachine = sound_aligner
    consistency: str = EXACTLY_ONCE
    properties: tuple[str, ...] = ()

    @property
    def goes_unaligned(self) -> bool:
        """Return whether a barrier may ever go ahead of its place."""
        return self.settings.threshold_ns is not None

    @property
    def always_aligns(self) -> bool:
        """Return whether each input waits behind its barrier, which keeps its place, in every checkpoint."""
        return self.settings.blocks and not self.goes_unaligned

    @property
    def is_exact(self) -> bool:
        """Return whether a checkpoint holds neither lost messages nor orphans."""
        return self.consistency == EXACTLY_ONCE

    def refused_sink(self, guarantee: str) -> str | None:
        """Return why a sink cannot give `guarantee` under this protocol, in a phrase; None if it can."""
        if self.is_exact or guarantee != EXACTLY_ONCE:
            return None
        return (
            f"is {EXACTLY_ONCE}, which no sink can be with {self.name} barriers: they promise {self.consistency}; "
            "allowed: at_least_once, idempotent"
        )

    def unaligned_config(self, max_inflight_buffer_bytes: int) -> UnalignedCheckpointConfig | None:
        """Return how a task of an explored world goes unaligned; None if it does not."""
        threshold_ns = self.settings.threshold_ns
        if threshold_ns is None:
            return None
        return UnalignedCheckpointConfig(True, threshold_ns, max_inflight_buffer_bytes)

    def make_gate(self, rules: GateRules, port: RecordingPort) -> Implementation:
        """Return the gate of `impl` with these rules."""
        return gate_of_impl(rules, port, self.make_machine)

    def machines(self, components: Components) -> Components:
        """Return `components` with the machine of this protocol at the inputs of tasks, unless they bring one."""
        if self.make_machine is sound_aligner or components.gate is not None or components.aligner is not sound_aligner:
            return components
        make = self.make_machine
        return replace(components, aligner=lambda config, ahead, is_sink: make(config, ahead, is_sink, size_of))


def _tracker(
    config: BarrierAlignerConfig,
    unaligned: UnalignedCheckpointConfig | None,
    is_sink: bool,
    size_of: Callable[[StreamMessage], int],
) -> BarrierAligner:
    return BarrierTracker(config, size_of)


_FLAGGED, _IN_TIME = Settings(TIMEOUT_NS, is_flagged=True), Settings(THRESHOLD_NS, is_late=True)

PROTOCOLS: dict[str, Protocol] = {
    each.name: each
    for each in (
        Protocol("aligned", ALIGNED),
        Protocol("unaligned", UNALIGNED, _FLAGGED, properties=("unaligned",)),
        Protocol("aligned_with_timeout", ALIGNED_WITH_TIMEOUT, _IN_TIME, properties=("timeout", "unaligned")),
        Protocol("tracked", TRACKED, Settings(blocks=False), _tracker, AT_LEAST_ONCE),
    )
}
"""All of them, by name."""

EXACT = tuple(each.name for each in PROTOCOLS.values() if each.is_exact)
"""The names of those whose checkpoints hold each message once: what an external aligner can be asked for."""


def protocol_of(name: str) -> Protocol:
    """Return the protocol of that name.

    Raises
    ------
    ProtocolError
        If there is none.
    """
    found = PROTOCOLS.get(name)
    if found is None:
        new = renamed(name, PROTOCOLS)
        allowed = f"it is called {new!r} now" if new else f"allowed: {', '.join(PROTOCOLS)}"
        raise ProtocolError(f"there is no mode {name!r}; {allowed}")
    return found
