"""Small gates with all that can happen at them, over and over: each scope is finite because ids and limits are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from barrierlab.impl.checkpoint.gate import Gate as Implementation
from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.model.checkpoint.check import NamedScope, Outcome, outcome_of
from barrierlab.model.checkpoint.components import SOUND, Components, MakeMachine, sound_aligner
from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.checkpoint.refinement import (
    Following,
    GateSteps,
    RecordingPort,
    Refinement,
    SnapshotAnswer,
    configs_of,
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
from barrierlab.model.explore.text_table import rows_of, settings_of

EVENT, WATERMARK, END = Event("", 1), Watermark(1), EndOfInput()  # an event stands for one of the input's own
TAKEN, FAILED = SnapshotAnswer(), SnapshotAnswer(Reason.SNAPSHOT_FAILED)
ROOMY = 1_000
MESSAGES: dict[str, Any] = {
    "event": EVENT,
    "second": Event("", 2),
    "watermark": WATERMARK,
    "end": END,
    **{f"b{n}": CheckpointBarrier(n, 1) for n in (1, 2, 3)},
    **{f"b{n}-flagged": CheckpointBarrier(n, 1, 1) for n in (1, 2)},
    "b1-contradicts": CheckpointBarrier(1, 2),
    **{f"c{n}": CancelBarrier(n) for n in (1, 2, 3)},
}
"""By their words in the table below; what is of an epoch of its own contradicts the others."""
ANSWERS = {
    "taken": TAKEN,
    "failed": FAILED,
    "passes-one": SnapshotAnswer(passed_bytes=1),
    "passes-many": SnapshotAnswer(passed_bytes=9),
}


@dataclass(frozen=True)
class GateScope(NamedScope):
    """A gate, what can happen at it, and how many states that makes: their number moves when meaning does."""

    kind = " table"
    of: str
    protocol: str
    states: int
    rules: GateRules
    stimuli: tuple[Stimulus, ...]
    answers: tuple[SnapshotAnswer, ...] = (TAKEN,)
    slow: bool = False

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
        stimuli = tuple(within(self.stimuli, components.capabilities))
        start, steps = GateState.new(table, self.rules), GateSteps(stimuli, self.answers)
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
    """Return an external gate with these rules; if not `enabled`, it may not overtake either, and is no sink."""
    if components == SOUND and enabled:
        return gate_of_impl(rules, port, make)  # which alone gets the measure
    configs = configs_of(rules, enabled)
    if components.gate is not None:
        return components.gate(port, *configs)
    return Implementation(components.aligner(*configs), port)


def within(stimuli: Iterable[Stimulus], capabilities: Capabilities) -> Iterator[Stimulus]:
    """Yield what can happen within the part of the protocol that is declared."""
    for each in stimuli:
        kind, message = type(each), type(getattr(each, "message", None))
        beyond = (
            (not capabilities.aborts and (kind is Abort or message is CancelBarrier))
            or (not capabilities.ends and message is EndOfInput)
            or (not capabilities.timeout and kind in (ClockReading, TriggerNoted))
        )
        if not beyond:
            yield each


def own(input_id: int, message: StreamMessage) -> StreamMessage:
    """The message as one of that input: an event has a name of its own."""
    return Event("abc"[input_id], message.sequence) if type(message) is Event else message


def arrivals(inputs: int, *messages: StreamMessage, at: Sequence[int] = (0,)) -> Iterable[Stimulus]:
    """Return each of the messages on each input, at each of the times."""
    return [Arrival(i, own(i, message), ns) for i in range(inputs) for message in messages for ns in at]


def overtakings(inputs: int, *barriers: CheckpointBarrier, past: Sequence[StreamMessage] = (EVENT,)) -> list[Stimulus]:
    """Return each of the barriers on each input, ahead of nothing and ahead of what it may overtake."""
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

SETTINGS: dict[str, tuple[str, dict[str, int]]] = {
    "aligned": ("aligned", {}),
    "tracked": ("tracked", {"blocks": False}),
    "unaligned": ("unaligned", UNALIGNED_ONLY),
    "aligned_with_timeout": ("aligned_with_timeout", FALLING_BACK),
    "a sink": ("aligned_with_timeout", A_SINK),
}


def _stimuli(text: str) -> Iterator[Stimulus]:
    """Return the stimuli of ``2 at 0 3: event b1; 2 past nothing: b1; drain; abort 1``, in order."""
    for clause in text.split(";"):
        how, _, words = clause.partition(":")
        messages = [MESSAGES[word] for word in words.split()]
        match how.split():
            case ["drain"]:
                yield DrainOne()
            case ["abort", *ids]:
                yield from (Abort(int(n)) for n in ids)
            case ["pass", size]:
                yield OutputPassed(int(size))
            case ["triggered", *triggers]:
                yield from (TriggerNoted(*map(int, each.split("@"))) for each in triggers)
            case ["clock", *times]:
                yield from (ClockReading(int(ns)) for ns in times)
            case [inputs, "past", *ahead]:
                past = () if ahead == ["nothing"] else tuple(MESSAGES[word] for word in ahead)
                yield from overtakings(int(inputs), *messages, past=past)
            case [inputs, *at]:
                yield from arrivals(int(inputs), *messages, at=[int(ns) for ns in at[1:]] or (0,))


def _scope(kind: str, of: str, states: str, limits: str, answers: str, stimuli: str) -> GateScope:
    (count, *slow), (protocol, settings) = states.split(), SETTINGS[kind]
    answered = tuple(ANSWERS[word] for word in answers.split())
    its = rules(**settings_of(limits), **settings), tuple(_stimuli(stimuli)), answered, bool(slow)
    return GateScope(of, protocol, int(count), *its)


# The gate, what happens, the states, and whether it is slow; its limits; the answers to a snapshot; and what may come,
# on how many inputs, at which times, or past what is in the channel.
_TABLE = """
aligned | every message, cancelled and aborted | 7022 slow | buffered=2 | taken failed |
    2: event watermark end b1 b2 c1 c2; drain; abort 1 2
aligned | contradictions, deadlines, and what is no concern of it | 536 | timeout=2 | taken failed |
    2: event watermark end b1 b1-contradicts b1-flagged b2; 2 at 2: event b1; 2 past nothing: b1 b1-contradicts; drain;
    abort 1 2; pass 1; triggered 1@0 2@0 2@1; clock 1 2
aligned | three inputs | 1180 | inputs=3 | taken failed | 3: event end b1 b1-contradicts b2 c2; drain; abort 1
aligned | as many bytes as one event | 50 | buffered=3, buffered_bytes=1 | taken | 2: event end b1 b2; drain
aligned | one input | 6 | inputs=1, buffered=2 | taken failed | 1: event end b1 b2 c2; drain
aligned | ids that leave some out | 52 |  | taken | 2: b1 b2 b3; drain; abort 2
aligned | two buffered at each input, drained in turn | 40 | buffered=2 | taken | 2: event second b1; drain
tracked | every message, cancelled and aborted | 38 |  | taken failed |
    2: event watermark end b1 b2 c1 c2; 2 past nothing: b1; drain; abort 1 2
tracked | contradictions and deadlines | 122 | timeout=2 | taken |
    2: event end b1 b1-contradicts b2; 2 at 2: event b1; drain; abort 1; pass 1; triggered 1@0 2@1; clock 1 2
tracked | three inputs | 434 | inputs=3 | taken failed | 3: event end b1 b1-contradicts b2 b3 c2; drain; abort 1
tracked | no room for an end | 144 | inputs=3, buffered_bytes=1 | taken | 3: event end b1 b2; drain; abort 1
tracked | one input | 6 | inputs=1 | taken | 1: event end b1 b2 c2; abort 1
unaligned | every message, and barriers that overtake | 544 | timeout=2 | taken failed passes-one passes-many |
    2: event watermark end b1 b1-contradicts b2 c1 c2; 2 at 2: event; 2 past event watermark event: b1 b1-contradicts
    b2; drain; abort 1 2; pass 1; triggered 1@0 1@1; clock 1 2
unaligned | three inputs | 334 | inputs=3 | taken | 3: event end b1 b1-contradicts c1; 3 past event: b1; drain; clock 3
unaligned | what is newer waits | 610 | buffered=2 | taken | 2: b1 b2 c3; 2 past nothing: b1 b2; drain; abort 1
unaligned | what is newer waits, with events behind it | 1614 slow | buffered=2 | taken |
    2: event b1 b2 c3; 2 past nothing: b1 b2; drain; abort 1
unaligned | what is newer waits, at three inputs | 296 slow | inputs=3 | taken | 3: b1 b2 c3; 3 past nothing: b2; drain
unaligned | no room to buffer more | 62 | buffered=2, buffered_bytes=24 | taken | 2: event end b1 b2; drain; abort 1
unaligned | ids that leave some out | 90 |  | taken | 2: event b1 b3; 2 past nothing: b1 b2 b3; drain; abort 2
unaligned | one input | 6 | inputs=1 | taken | 1: event end b1 b2; drain
aligned_with_timeout | flagged or not, overtaking or not | 717 |  | taken failed passes-one passes-many |
    2: event end b1 b1-flagged b1-contradicts b2 c1 c2; 2 past event event event: b1 b2; drain; abort 1 2; pass 1; clock
    1 3
aligned_with_timeout | at any time | 1252 |  | taken failed |
    2 at 0 2: b1 b2; 2 at 3: event end b1-flagged b1-contradicts c2; drain; abort 1; triggered 1@0 2@0; clock 1 3
aligned_with_timeout | at the threshold, and at the deadline | 162 |  | taken |
    2 at 0 1 2: b1 end; 2 at 1: b2; triggered 1@0; clock 1 2 3
aligned_with_timeout | two buffered at each input, drained in turn | 222 | buffered=2 | taken |
    2: event second b1; drain; clock 1
a sink | a sink | 244 |  | taken failed |
    2: event watermark end b1 b1-flagged b1-contradicts b2; 2 at 2: b2 end; 2 past event: b1; drain; abort 1; triggered
    1@0; clock 1 3
aligned_with_timeout | as many bytes as one event | 190 | buffered=3, buffered_bytes=1 | taken failed passes-many |
    2: event end b1 b2 c2; 2 past event: b1 b2; drain; abort 1
a sink | as many bytes as one event, a sink | 21 | buffered=3, buffered_bytes=1 | taken | 2: event b1 b2; drain; abort 1
aligned_with_timeout | three inputs, late, buffered and newer | 1538 slow | inputs=3 | taken |
    3: b1 b2 c3; 3 at 2: b2 b2-flagged; 3 past nothing: b2; drain; abort 1; clock 1
a sink | a sink with three inputs | 14 | inputs=3 | taken | 3: b1 b1-flagged; drain
aligned_with_timeout | three inputs, late | 1201 | inputs=3 | taken |
    3: b1; 3 at 2: end b1 b1-flagged b1-contradicts b2 c1; 3 past event: b1; drain; abort 1; clock 1
aligned_with_timeout | three inputs | 4736 slow | inputs=3 | taken failed passes-many |
    3: event end b1 b2 c2; 3 past event: b1; drain; abort 1; clock 1
aligned_with_timeout | two messages buffered | 1700 slow | buffered=2 | taken |
    2: b1 b2 b2-flagged c3; 2 past nothing: b2; drain; clock 1
"""
SCOPES = tuple(_scope(*cells) for cells in rows_of(_TABLE))
