"""Small gates with all that can happen at them, over and over: each scope is finite because ids and limits are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import Gate as Implementation
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.check import Outcome, outcome_of
from barrierlab.model.checkpoint.components import SOUND, MakeMachine, Parts, sound_aligner
from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.checkpoint.refinement import Answer, Following, Port, Refinement, Steps, gate_of_impl
from barrierlab.model.checkpoint.tables.gate import Gate, Rules
from barrierlab.model.checkpoint.tables.stimuli import (
    Abort,
    Arrival,
    Clock,
    OutputPassed,
    Overtaking,
    Release,
    Stimulus,
    Triggered,
)
from barrierlab.model.explore.checker import Limits, explore
from barrierlab.model.explore.table import Table

EVENT, SECOND = Event("", 1), Event("", 2)  # stand for events of the input's own
WATERMARK = Watermark(1)
END = EndOfInput()
TAKEN, FAILED = Answer(), Answer(Reason.SNAPSHOT_FAILED)
PASSES_ONE, PASSES_MANY = Answer(passed_bytes=1), Answer(passed_bytes=9)
ROOMY = 1_000


def barrier(checkpoint_id: int, epoch: int = 1, flags: int = 0) -> CheckpointBarrier:
    """A barrier; epoch 2 contradicts the others."""
    return CheckpointBarrier(checkpoint_id, epoch, flags)


B1, B2, B3 = barrier(1), barrier(2), barrier(3)
B1_CONTRADICTS, B1_FLAGGED, B2_FLAGGED = barrier(1, epoch=2), barrier(1, flags=1), barrier(2, flags=1)
C1, C2, C3 = CancelBarrier(1), CancelBarrier(2), CancelBarrier(3)


@dataclass(frozen=True)
class Scope:
    """A gate, what can happen at it, and how many states that makes: their number moves when meaning does."""

    of: str
    protocol: str
    states: int
    rules: Rules
    stimuli: tuple[Stimulus, ...]
    answers: tuple[Answer, ...] = (TAKEN,)
    slow: bool = False

    @property
    def name(self) -> str:
        """The name that a report gives it."""
        return f"{self.protocol} table: {self.of}"

    def __str__(self) -> str:
        return f"{self.protocol}: {self.of}"

    def refinement(self, table: Table[Gate, Stimulus]) -> Refinement:
        """Such a gate under `table`, and a machine that keeps step."""
        start, steps = Gate.new(table, self.rules), Steps(self.stimuli, self.answers)
        return Refinement(start, steps, protocol_of(self.protocol).make_gate)

    def check(self, parts: Parts, seconds: float | None) -> Outcome:
        """Whether the machine does what the table says: of `impl` state for state, of another effect for effect."""
        limits = Limits(states=_MOST_TIMES * self.states, seconds=seconds)
        table = protocol_of(self.protocol).table
        if parts == SOUND:
            refinement = self.refinement(table)
            return outcome_of(self.name, self.protocol, explore(refinement, refinement.properties, limits=limits))
        start, steps = Gate.new(table, self.rules), Steps(self.stimuli, self.answers)
        following = Following(start, steps, partial(gate_of, parts), parts.capabilities)
        result = explore(following, following.properties, limits=limits)
        hint = ": leave out of capture what only counts" if result.counts.states == limits.states else ""
        return outcome_of(self.name, self.protocol, result, hint)


_MOST_TIMES = 20
"""So many times the states of the table a machine may have."""


def gate_of(
    parts: Parts, rules: Rules, port: Port, enabled: bool = True, make: MakeMachine = sound_aligner
) -> Implementation:
    """Another's gate with these rules; not `enabled`, it may not overtake either, and is no sink."""
    if parts == SOUND and enabled:
        return gate_of_impl(rules, port, make)  # which alone is told how to measure
    config = BarrierAlignerConfig(
        rules.num_inputs, rules.max_buffer_per_input, rules.max_buffer_memory_bytes, rules.alignment_timeout_ns
    )
    unaligned = None
    if not rules.flag_matters:
        unaligned = UnalignedCheckpointConfig(
            enabled, rules.alignment_timeout_threshold_ns, rules.max_inflight_buffer_bytes, rules.force_unaligned
        )
    is_sink = enabled and not rules.flag_matters and not rules.may_overtake
    if parts.gate is not None:
        return parts.gate(port, config, unaligned, is_sink)
    return Implementation(parts.aligner(config, unaligned, is_sink), port)


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


def rules(inputs: int = 2, held: int = 1, held_bytes: int = ROOMY, timeout: int = 3, **unaligned: int) -> Rules:
    """Short timeouts, and room for little."""
    return Rules(inputs, held, held_bytes, timeout, **unaligned)  # type: ignore[arg-type]


UNALIGNED_ONLY = {
    "may_overtake": True,
    "flag_matters": False,
    "force_unaligned": True,
    "alignment_timeout_threshold_ns": 1,
    "max_inflight_buffer_bytes": 2,
}
FALLING_BACK = UNALIGNED_ONLY | {"force_unaligned": False}
A_SINK = FALLING_BACK | {"may_overtake": False}

SCOPES = (
    Scope(
        "every message, cancelled and aborted",
        "aligned",
        7_022,
        rules(held=2),
        (*arrivals(2, EVENT, WATERMARK, END, B1, B2, C1, C2), Release(), Abort(1), Abort(2)),
        (TAKEN, FAILED),
        slow=True,
    ),
    Scope(
        "contradictions, deadlines, and what is no concern of it",
        "aligned",
        536,
        rules(timeout=2),
        (
            *arrivals(2, EVENT, WATERMARK, END, B1, B1_CONTRADICTS, B1_FLAGGED, B2),
            *arrivals(2, EVENT, B1, at=(2,)),
            *overtakings(2, B1, B1_CONTRADICTS, past=()),
            *(Release(), Abort(1), Abort(2), OutputPassed(1)),
            *(Triggered(1, 0), Triggered(2, 0), Triggered(2, 1), Clock(1), Clock(2)),
        ),
        (TAKEN, FAILED),
    ),
    Scope(
        "three inputs",
        "aligned",
        1_180,
        rules(3),
        (*arrivals(3, EVENT, END, B1, B1_CONTRADICTS, B2, C2), Release(), Abort(1)),
        (TAKEN, FAILED),
    ),
    Scope(
        "as many bytes as one event",
        "aligned",
        50,
        rules(held=3, held_bytes=1),
        (*arrivals(2, EVENT, END, B1, B2), Release()),
    ),
    Scope(
        "one input", "aligned", 6, rules(1, held=2), (*arrivals(1, EVENT, END, B1, B2, C2), Release()), (TAKEN, FAILED)
    ),
    Scope(
        "ids that leave some out",
        "aligned",
        52,
        rules(),
        (*arrivals(2, B1, B2, B3), Release(), Abort(2)),
    ),
    Scope(
        "two held at each input, released in turn",
        "aligned",
        40,
        rules(held=2),
        (*arrivals(2, EVENT, SECOND, B1), Release()),
    ),
    Scope(
        "every message, cancelled and aborted",
        "tracked",
        38,
        rules(blocks=False),
        (
            *arrivals(2, EVENT, WATERMARK, END, B1, B2, C1, C2),
            *overtakings(2, B1, past=()),
            Release(),
            Abort(1),
            Abort(2),
        ),
        (TAKEN, FAILED),
    ),
    Scope(
        "contradictions and deadlines",
        "tracked",
        122,
        rules(timeout=2, blocks=False),
        (
            *arrivals(2, EVENT, END, B1, B1_CONTRADICTS, B2),
            *arrivals(2, EVENT, B1, at=(2,)),
            *(Release(), Abort(1), OutputPassed(1), Triggered(1, 0), Triggered(2, 1), Clock(1), Clock(2)),
        ),
    ),
    Scope(
        "three inputs",
        "tracked",
        434,
        rules(3, blocks=False),
        (*arrivals(3, EVENT, END, B1, B1_CONTRADICTS, B2, B3, C2), Release(), Abort(1)),
        (TAKEN, FAILED),
    ),
    Scope(
        "no room for an end",
        "tracked",
        144,
        rules(3, held_bytes=1, blocks=False),
        (*arrivals(3, EVENT, END, B1, B2), Release(), Abort(1)),
    ),
    Scope("one input", "tracked", 6, rules(1, blocks=False), (*arrivals(1, EVENT, END, B1, B2, C2), Abort(1))),
    Scope(
        "every message, and barriers that overtake",
        "unaligned",
        544,
        rules(timeout=2, **UNALIGNED_ONLY),
        (
            *arrivals(2, EVENT, WATERMARK, END, B1, B1_CONTRADICTS, B2, C1, C2),
            *arrivals(2, EVENT, at=(2,)),
            *overtakings(2, B1, B1_CONTRADICTS, B2, past=(EVENT, WATERMARK, EVENT)),
            *(Release(), Abort(1), Abort(2), OutputPassed(1)),
            *(Triggered(1, 0), Triggered(1, 1), Clock(1), Clock(2)),
        ),
        (TAKEN, FAILED, PASSES_ONE, PASSES_MANY),
    ),
    Scope(
        "three inputs",
        "unaligned",
        334,
        rules(3, **UNALIGNED_ONLY),
        (*arrivals(3, EVENT, END, B1, B1_CONTRADICTS, C1), *overtakings(3, B1), Release(), Clock(3)),
    ),
    Scope(
        "what is newer waits",
        "unaligned",
        610,
        rules(held=2, **UNALIGNED_ONLY),
        (*arrivals(2, B1, B2, C3), *overtakings(2, B1, B2, past=()), Release(), Abort(1)),
    ),
    Scope(
        "what is newer waits, with events behind it",
        "unaligned",
        1_614,
        rules(held=2, **UNALIGNED_ONLY),
        (*arrivals(2, EVENT, B1, B2, C3), *overtakings(2, B1, B2, past=()), Release(), Abort(1)),
        slow=True,
    ),
    Scope(
        "what is newer waits, at three inputs",
        "unaligned",
        296,
        rules(3, **UNALIGNED_ONLY),
        (*arrivals(3, B1, B2, C3), *overtakings(3, B2, past=()), Release()),
        slow=True,
    ),
    Scope(
        "no room to hold more",
        "unaligned",
        62,
        rules(held=2, held_bytes=24, **UNALIGNED_ONLY),
        (*arrivals(2, EVENT, END, B1, B2), Release(), Abort(1)),
    ),
    Scope(
        "ids that leave some out",
        "unaligned",
        90,
        rules(**UNALIGNED_ONLY),
        (*arrivals(2, EVENT, B1, B3), *overtakings(2, B1, B2, B3, past=()), Release(), Abort(2)),
    ),
    Scope("one input", "unaligned", 6, rules(1, **UNALIGNED_ONLY), (*arrivals(1, EVENT, END, B1, B2), Release())),
    Scope(
        "flagged or not, overtaking or not",
        "fallback",
        717,
        rules(**FALLING_BACK),
        (
            *arrivals(2, EVENT, END, B1, B1_FLAGGED, B1_CONTRADICTS, B2, C1, C2),
            *overtakings(2, B1, B2, past=(EVENT, EVENT, EVENT)),
            *(Release(), Abort(1), Abort(2), OutputPassed(1), Clock(1), Clock(3)),
        ),
        (TAKEN, FAILED, PASSES_ONE, PASSES_MANY),
    ),
    Scope(
        "at any time",
        "fallback",
        1_252,
        rules(**FALLING_BACK),
        (
            *arrivals(2, B1, B2, at=(0, 2)),
            *arrivals(2, EVENT, END, B1_FLAGGED, B1_CONTRADICTS, C2, at=(3,)),
            *(Release(), Abort(1), Triggered(1, 0), Triggered(2, 0), Clock(1), Clock(3)),
        ),
        (TAKEN, FAILED),
    ),
    Scope(
        "at the threshold, and at the deadline",
        "fallback",
        162,
        rules(**FALLING_BACK),
        (*arrivals(2, B1, END, at=(0, 1, 2)), *arrivals(2, B2, at=(1,)), Triggered(1, 0), Clock(1), Clock(2), Clock(3)),
    ),
    Scope(
        "two held at each input, released in turn",
        "fallback",
        222,
        rules(held=2, **FALLING_BACK),
        (*arrivals(2, EVENT, SECOND, B1), Release(), Clock(1)),
    ),
    Scope(
        "a sink",
        "fallback",
        244,
        rules(**A_SINK),
        (
            *arrivals(2, EVENT, WATERMARK, END, B1, B1_FLAGGED, B1_CONTRADICTS, B2),
            *arrivals(2, B2, END, at=(2,)),
            *overtakings(2, B1),
            *(Release(), Abort(1), Triggered(1, 0), Clock(1), Clock(3)),
        ),
        (TAKEN, FAILED),
    ),
    Scope(
        "as many bytes as one event",
        "fallback",
        190,
        rules(held=3, held_bytes=1, **FALLING_BACK),
        (*arrivals(2, EVENT, END, B1, B2, C2), *overtakings(2, B1, B2), Release(), Abort(1)),
        (TAKEN, FAILED, PASSES_MANY),
    ),
    Scope(
        "as many bytes as one event, a sink",
        "fallback",
        21,
        rules(held=3, held_bytes=1, **A_SINK),
        (*arrivals(2, EVENT, B1, B2), Release(), Abort(1)),
    ),
    Scope(
        "three inputs, late, held and newer",
        "fallback",
        1_538,
        rules(3, **FALLING_BACK),
        (
            *arrivals(3, B1, B2, C3),
            *arrivals(3, B2, B2_FLAGGED, at=(2,)),
            *overtakings(3, B2, past=()),
            *(Release(), Abort(1), Clock(1)),
        ),
        slow=True,
    ),
    Scope(
        "a sink with three inputs",
        "fallback",
        14,
        rules(3, **A_SINK),
        (*arrivals(3, B1, B1_FLAGGED), Release()),
    ),
    Scope(
        "three inputs, late",
        "fallback",
        1_201,
        rules(3, **FALLING_BACK),
        (
            *arrivals(3, B1),
            *arrivals(3, END, B1, B1_FLAGGED, B1_CONTRADICTS, B2, C1, at=(2,)),
            *overtakings(3, B1),
            *(Release(), Abort(1), Clock(1)),
        ),
    ),
    Scope(
        "three inputs",
        "fallback",
        4_736,
        rules(3, **FALLING_BACK),
        (*arrivals(3, EVENT, END, B1, B2, C2), *overtakings(3, B1), Release(), Abort(1), Clock(1)),
        (TAKEN, FAILED, PASSES_MANY),
        slow=True,
    ),
    Scope(
        "two messages held",
        "fallback",
        1_700,
        rules(held=2, **FALLING_BACK),
        (
            *arrivals(2, B1, B2, B2_FLAGGED, C3),
            *overtakings(2, B2, past=()),
            *(Release(), Clock(1)),
        ),
        slow=True,
    ),
)
