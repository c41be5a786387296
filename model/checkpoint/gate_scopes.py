"""Small gates with all that can happen at them, over and over: each scope is finite because ids and limits are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import Gate as Implementation
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.check import Outcome, outcome_of
from barrierlab.model.checkpoint.components import SOUND, Components, MakeMachine, sound_aligner
from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.checkpoint.refinement import (
    Following,
    GateSteps,
    RecordingPort,
    Refinement,
    SnapshotAnswer,
    gate_of_impl,
)
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.tables.stimuli import (
    Abort,
    Arrival,
    ClockReading,
    DrainOne,
    OutputPassed,
    Overtaking,
    Stimulus,
    TriggerNoted,
)
from barrierlab.model.explore.checker import ExplorationLimits, explore
from barrierlab.model.explore.table import Table

EVENT, SECOND = Event("", 1), Event("", 2)  # stand for events of the input's own
WATERMARK = Watermark(1)
END = EndOfInput()
TAKEN, FAILED = SnapshotAnswer(), SnapshotAnswer(Reason.SNAPSHOT_FAILED)
PASSES_ONE, PASSES_MANY = SnapshotAnswer(passed_bytes=1), SnapshotAnswer(passed_bytes=9)
ROOMY = 1_000


def barrier(checkpoint_id: int, epoch: int = 1, flags: int = 0) -> CheckpointBarrier:
    """A barrier; epoch 2 contradicts the others."""
    return CheckpointBarrier(checkpoint_id, epoch, flags)


B1, B2, B3 = barrier(1), barrier(2), barrier(3)
B1_CONTRADICTS, B1_FLAGGED, B2_FLAGGED = barrier(1, epoch=2), barrier(1, flags=1), barrier(2, flags=1)
C1, C2, C3 = CancelBarrier(1), CancelBarrier(2), CancelBarrier(3)


@dataclass(frozen=True)
class GateScope:
    """A gate, what can happen at it, and how many states that makes: their number moves when meaning does."""

    of: str
    protocol: str
    states: int
    rules: GateRules
    stimuli: tuple[Stimulus, ...]
    answers: tuple[SnapshotAnswer, ...] = (TAKEN,)
    slow: bool = False

    @property
    def name(self) -> str:
        """The name that a report gives it."""
        return f"{self.protocol} table: {self.of}"

    def __str__(self) -> str:
        return f"{self.protocol}: {self.of}"

    def refinement(self, table: Table[GateState, Stimulus]) -> Refinement:
        """Such a gate under `table`, and a machine that keeps step."""
        start, steps = GateState.new(table, self.rules), GateSteps(self.stimuli, self.answers)
        return Refinement(start, steps, protocol_of(self.protocol).make_gate)

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Return whether the machine does what the table says: of `impl` state for state, of another effect for
        effect."""
        limits = ExplorationLimits(states=_MOST_TIMES * self.states, seconds=seconds)
        table = protocol_of(self.protocol).table
        if components == SOUND:
            refinement = self.refinement(table)
            return outcome_of(self.name, self.protocol, explore(refinement, refinement.properties, limits=limits))
        start, steps = GateState.new(table, self.rules), GateSteps(self.stimuli, self.answers)
        following = Following(start, steps, partial(gate_of, components), components.capabilities)
        result = explore(following, following.properties, limits=limits)
        hint = ": leave out of capture what only counts" if result.counts.states == limits.states else ""
        return outcome_of(self.name, self.protocol, result, hint)


_MOST_TIMES = 20
"""So many times the states of the table a machine may have."""


def gate_of(
    components: Components,
    rules: GateRules,
    port: RecordingPort,
    enabled: bool = True,
    make: MakeMachine = sound_aligner,
) -> Implementation:
    """Another's gate with these rules; not `enabled`, it may not overtake either, and is no sink."""
    if components == SOUND and enabled:
        return gate_of_impl(rules, port, make)  # which alone gets the measure
    config = BarrierAlignerConfig(
        rules.num_inputs, rules.max_buffer_per_input, rules.max_buffer_memory_bytes, rules.alignment_timeout_ns
    )
    unaligned = None
    if not rules.flag_matters:
        unaligned = UnalignedCheckpointConfig(
            enabled, rules.alignment_timeout_threshold_ns, rules.max_inflight_buffer_bytes, rules.force_unaligned
        )
    is_sink = enabled and not rules.flag_matters and not rules.may_overtake
    if components.gate is not None:
        return components.gate(port, config, unaligned, is_sink)
    return Implementation(components.aligner(config, unaligned, is_sink), port)


def own(input_id: int, message: StreamMessage) -> StreamMessage:
    """The message as one of that input: an event has a name of its own."""
    return Event("abc"[input_id], message.sequence) if type(message) is Event else message


def arrivals(inputs: int, *messages: StreamMessage, at: Sequence[int] = (0,)) -> Iterable[Stimulus]:
    """Each of the messages on each input, at each of the times."""
    return [Arrival(i, own(i, message), ns) for i in range(inputs) for message in messages for ns in at]


def overtakings(inputs: int, *barriers: CheckpointBarrier, past: Sequence[StreamMessage] = (EVENT,)) -> list[Stimulus]:
    """Each of the barriers on each input, ahead of nothing and ahead of what it may pass."""
    return [
        Overtaking(i, barrier, tuple(own(i, each) for each in ahead))
        for i in range(inputs)
        for barrier in barriers
        for ahead in ((), past)
    ]


def rules(
    inputs: int = 2, buffered: int = 1, buffered_bytes: int = ROOMY, timeout: int = 3, **unaligned: int
) -> GateRules:
    """Short timeouts, and room for little."""
    return GateRules(inputs, buffered, buffered_bytes, timeout, **unaligned)  # type: ignore[arg-type]


UNALIGNED_ONLY = {
    "may_overtake": True,
    "flag_matters": False,
    "force_unaligned": True,
    "alignment_timeout_threshold_ns": 1,
    "max_inflight_buffer_bytes": 2,
}
FALLING_BACK = UNALIGNED_ONLY | {"force_unaligned": False}
A_SINK = FALLING_BACK | {"may_overtake": False}

EITHER = (TAKEN, FAILED)


def _scope(
    protocol: str,
    settings: Mapping[str, int],
    of: str,
    states: int,
    stimuli: tuple[Stimulus, ...],
    answers: tuple[SnapshotAnswer, ...] = (TAKEN,),
    slow: bool = False,
    **limits: int,
) -> GateScope:
    return GateScope(of, protocol, states, rules(**limits, **settings), stimuli, answers, slow)


_aligned = partial(_scope, "aligned", {})
_tracked = partial(_scope, "tracked", {"blocks": False})
_unaligned = partial(_scope, "unaligned", UNALIGNED_ONLY)
_with_timeout = partial(_scope, "aligned_with_timeout", FALLING_BACK)
_a_sink = partial(_scope, "aligned_with_timeout", A_SINK)
SCOPES = (
    _aligned(
        "every message, cancelled and aborted",
        7_022,
        (*arrivals(2, EVENT, WATERMARK, END, B1, B2, C1, C2), DrainOne(), Abort(1), Abort(2)),
        EITHER,
        buffered=2,
        slow=True,
    ),
    _aligned(
        "contradictions, deadlines, and what is no concern of it",
        536,
        (
            *arrivals(2, EVENT, WATERMARK, END, B1, B1_CONTRADICTS, B1_FLAGGED, B2),
            *arrivals(2, EVENT, B1, at=(2,)),
            *overtakings(2, B1, B1_CONTRADICTS, past=()),
            *(DrainOne(), Abort(1), Abort(2), OutputPassed(1)),
            *(TriggerNoted(1, 0), TriggerNoted(2, 0), TriggerNoted(2, 1), ClockReading(1), ClockReading(2)),
        ),
        EITHER,
        timeout=2,
    ),
    _aligned(
        "three inputs",
        1_180,
        (*arrivals(3, EVENT, END, B1, B1_CONTRADICTS, B2, C2), DrainOne(), Abort(1)),
        EITHER,
        inputs=3,
    ),
    _aligned(
        "as many bytes as one event", 50, (*arrivals(2, EVENT, END, B1, B2), DrainOne()), buffered=3, buffered_bytes=1
    ),
    _aligned("one input", 6, (*arrivals(1, EVENT, END, B1, B2, C2), DrainOne()), EITHER, inputs=1, buffered=2),
    _aligned("ids that leave some out", 52, (*arrivals(2, B1, B2, B3), DrainOne(), Abort(2))),
    _aligned(
        "two buffered at each input, drained in turn", 40, (*arrivals(2, EVENT, SECOND, B1), DrainOne()), buffered=2
    ),
    _tracked(
        "every message, cancelled and aborted",
        38,
        (
            *arrivals(2, EVENT, WATERMARK, END, B1, B2, C1, C2),
            *overtakings(2, B1, past=()),
            DrainOne(),
            Abort(1),
            Abort(2),
        ),
        EITHER,
    ),
    _tracked(
        "contradictions and deadlines",
        122,
        (
            *arrivals(2, EVENT, END, B1, B1_CONTRADICTS, B2),
            *arrivals(2, EVENT, B1, at=(2,)),
            *(
                DrainOne(),
                Abort(1),
                OutputPassed(1),
                TriggerNoted(1, 0),
                TriggerNoted(2, 1),
                ClockReading(1),
                ClockReading(2),
            ),
        ),
        timeout=2,
    ),
    _tracked(
        "three inputs",
        434,
        (*arrivals(3, EVENT, END, B1, B1_CONTRADICTS, B2, B3, C2), DrainOne(), Abort(1)),
        EITHER,
        inputs=3,
    ),
    _tracked(
        "no room for an end", 144, (*arrivals(3, EVENT, END, B1, B2), DrainOne(), Abort(1)), inputs=3, buffered_bytes=1
    ),
    _tracked("one input", 6, (*arrivals(1, EVENT, END, B1, B2, C2), Abort(1)), inputs=1),
    _unaligned(
        "every message, and barriers that overtake",
        544,
        (
            *arrivals(2, EVENT, WATERMARK, END, B1, B1_CONTRADICTS, B2, C1, C2),
            *arrivals(2, EVENT, at=(2,)),
            *overtakings(2, B1, B1_CONTRADICTS, B2, past=(EVENT, WATERMARK, EVENT)),
            *(DrainOne(), Abort(1), Abort(2), OutputPassed(1)),
            *(TriggerNoted(1, 0), TriggerNoted(1, 1), ClockReading(1), ClockReading(2)),
        ),
        (TAKEN, FAILED, PASSES_ONE, PASSES_MANY),
        timeout=2,
    ),
    _unaligned(
        "three inputs",
        334,
        (*arrivals(3, EVENT, END, B1, B1_CONTRADICTS, C1), *overtakings(3, B1), DrainOne(), ClockReading(3)),
        inputs=3,
    ),
    _unaligned(
        "what is newer waits",
        610,
        (*arrivals(2, B1, B2, C3), *overtakings(2, B1, B2, past=()), DrainOne(), Abort(1)),
        buffered=2,
    ),
    _unaligned(
        "what is newer waits, with events behind it",
        1_614,
        (*arrivals(2, EVENT, B1, B2, C3), *overtakings(2, B1, B2, past=()), DrainOne(), Abort(1)),
        buffered=2,
        slow=True,
    ),
    _unaligned(
        "what is newer waits, at three inputs",
        296,
        (*arrivals(3, B1, B2, C3), *overtakings(3, B2, past=()), DrainOne()),
        inputs=3,
        slow=True,
    ),
    _unaligned(
        "no room to buffer more",
        62,
        (*arrivals(2, EVENT, END, B1, B2), DrainOne(), Abort(1)),
        buffered=2,
        buffered_bytes=24,
    ),
    _unaligned(
        "ids that leave some out",
        90,
        (*arrivals(2, EVENT, B1, B3), *overtakings(2, B1, B2, B3, past=()), DrainOne(), Abort(2)),
    ),
    _unaligned("one input", 6, (*arrivals(1, EVENT, END, B1, B2), DrainOne()), inputs=1),
    _with_timeout(
        "flagged or not, overtaking or not",
        717,
        (
            *arrivals(2, EVENT, END, B1, B1_FLAGGED, B1_CONTRADICTS, B2, C1, C2),
            *overtakings(2, B1, B2, past=(EVENT, EVENT, EVENT)),
            *(DrainOne(), Abort(1), Abort(2), OutputPassed(1), ClockReading(1), ClockReading(3)),
        ),
        (TAKEN, FAILED, PASSES_ONE, PASSES_MANY),
    ),
    _with_timeout(
        "at any time",
        1_252,
        (
            *arrivals(2, B1, B2, at=(0, 2)),
            *arrivals(2, EVENT, END, B1_FLAGGED, B1_CONTRADICTS, C2, at=(3,)),
            *(DrainOne(), Abort(1), TriggerNoted(1, 0), TriggerNoted(2, 0), ClockReading(1), ClockReading(3)),
        ),
        EITHER,
    ),
    _with_timeout(
        "at the threshold, and at the deadline",
        162,
        (
            *arrivals(2, B1, END, at=(0, 1, 2)),
            *arrivals(2, B2, at=(1,)),
            TriggerNoted(1, 0),
            ClockReading(1),
            ClockReading(2),
            ClockReading(3),
        ),
    ),
    _with_timeout(
        "two buffered at each input, drained in turn",
        222,
        (*arrivals(2, EVENT, SECOND, B1), DrainOne(), ClockReading(1)),
        buffered=2,
    ),
    _a_sink(
        "a sink",
        244,
        (
            *arrivals(2, EVENT, WATERMARK, END, B1, B1_FLAGGED, B1_CONTRADICTS, B2),
            *arrivals(2, B2, END, at=(2,)),
            *overtakings(2, B1),
            *(DrainOne(), Abort(1), TriggerNoted(1, 0), ClockReading(1), ClockReading(3)),
        ),
        EITHER,
    ),
    _with_timeout(
        "as many bytes as one event",
        190,
        (*arrivals(2, EVENT, END, B1, B2, C2), *overtakings(2, B1, B2), DrainOne(), Abort(1)),
        (TAKEN, FAILED, PASSES_MANY),
        buffered=3,
        buffered_bytes=1,
    ),
    _a_sink(
        "as many bytes as one event, a sink",
        21,
        (*arrivals(2, EVENT, B1, B2), DrainOne(), Abort(1)),
        buffered=3,
        buffered_bytes=1,
    ),
    _with_timeout(
        "three inputs, late, buffered and newer",
        1_538,
        (
            *arrivals(3, B1, B2, C3),
            *arrivals(3, B2, B2_FLAGGED, at=(2,)),
            *overtakings(3, B2, past=()),
            *(DrainOne(), Abort(1), ClockReading(1)),
        ),
        inputs=3,
        slow=True,
    ),
    _a_sink("a sink with three inputs", 14, (*arrivals(3, B1, B1_FLAGGED), DrainOne()), inputs=3),
    _with_timeout(
        "three inputs, late",
        1_201,
        (
            *arrivals(3, B1),
            *arrivals(3, END, B1, B1_FLAGGED, B1_CONTRADICTS, B2, C1, at=(2,)),
            *overtakings(3, B1),
            *(DrainOne(), Abort(1), ClockReading(1)),
        ),
        inputs=3,
    ),
    _with_timeout(
        "three inputs",
        4_736,
        (*arrivals(3, EVENT, END, B1, B2, C2), *overtakings(3, B1), DrainOne(), Abort(1), ClockReading(1)),
        (TAKEN, FAILED, PASSES_MANY),
        inputs=3,
        slow=True,
    ),
    _with_timeout(
        "two messages buffered",
        1_700,
        (
            *arrivals(2, B1, B2, B2_FLAGGED, C3),
            *overtakings(2, B2, past=()),
            *(DrainOne(), ClockReading(1)),
        ),
        buffered=2,
        slow=True,
    ),
)
