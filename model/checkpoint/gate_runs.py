"""Long runs of one gate that is never restored, beside its table: what `restore` works out may drift in such a one.

An explored gate is put into each state before each move (`model.checkpoint.refinement`), so that a field that `restore`
computes is always right there. Here it lives: ids grow without end and leave some out, time goes on, every event has a
name of its own, and beside effects and state whatever the machine counts is compared, too. The runs are drawn by a
fixed seed, and of a run that goes wrong all is left out that does not matter.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from barrierlab.impl.checkpoint.gate import Gate as Implementation
from barrierlab.impl.checkpoint.recorder import channel_data
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointer
from barrierlab.impl.messages import (
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
    size_of,
)
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.check import NamedScope, Outcome, ScopeViolation
from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.checkpoint.gate_scopes import A_SINK, FALLING_BACK, UNALIGNED_ONLY, gate_of, rules
from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.checkpoint.refinement import (
    GateMachine,
    GateMove,
    SnapshotAnswer,
    captured,
    explained,
    fields_that_differ,
    finished,
    listed,
)
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.tables.stimuli import (
    ARRIVALS,
    Abort,
    Arrival,
    ClockReading,
    DrainOne,
    OutputPassed,
    Overtaking,
    Stimulus,
    TriggerNoted,
)
from barrierlab.model.errors import RAISED
from barrierlab.model.explore.checker import UNDECIDED
from barrierlab.model.explore.shorten import shortened

RecoveredStart = tuple[int, tuple[int, ...]]
"""The last id that is done with, and the inputs that have ended, where a recovered gate goes on."""
NEW: RecoveredStart = (0, ())
MOVES = 60
"""In a run: some five checkpoints, and long enough to fill every limit and to empty it again."""


@dataclass(frozen=True)
class RunScope(NamedScope):
    """A gate, and how often it is driven from its beginning.

    Attributes
    ----------
    of, protocol : str
    rules : GateRules
    runs : int
        How many: 3,600 moves, in a third of a second, in which nine of ten mistakes show that were planted in an
        aligner (`make mutants`).
    enabled : bool
        Whether the task may go unaligned, if it is no sink; if not, what asks for that is counted.
    """

    kind = " runs"
    of: str
    protocol: str
    rules: GateRules
    runs: int = 60
    enabled: bool = True

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Make the runs, up to the first in which machine and table part."""
        if components != SOUND and self.rules.size_of is not size_of:  # another's aligner gets no sizes
            return replace(self, rules=replace(self.rules, size_of=size_of)).check(components, seconds)
        begun, made = monotonic(), 0
        shortest: tuple[RecoveredStart, list[GateMove | Drain]] | None = None
        for number in range(self.runs):
            if seconds is not None and monotonic() - begun > seconds:
                why = f"{number} of {self.runs} runs were made in {seconds:.0f} s"
                return self.outcome(begun, made, why, UNDECIDED)
            start, moves = self._drawn(random.Random(f"{self.name} {number}"))
            made += len(moves)
            parted = self._parts_at(components, start, moves)
            if parted is not None and (shortest is None or parted[0] + 1 < len(shortest[1])):
                shortest = start, moves[: parted[0] + 1]
        if shortest is None:
            return self.outcome(begun, made, f"machine and table agree in {self.runs} runs")
        return self.outcome(begun, made, self._violation(components, *shortest))

    def gate(self, start: RecoveredStart) -> GateState:
        """The table's gate, as it begins."""
        last_terminated_id, ended = start
        return replace(
            GateState.new(protocol_of(self.protocol).table, self.rules),
            last_terminated_id=last_terminated_id,
            ended=frozenset(ended),
        )

    def _drawn(self, chance: random.Random) -> tuple[RecoveredStart, list[GateMove | Drain]]:
        """Return a run that the table can make, drawn by `chance`."""
        start = chance.choice((NEW, NEW, (3, ()), (2, (chance.randrange(self.rules.num_inputs),))))
        gate = self.gate(start)
        moves, now_ns = list[GateMove | Drain](), 0
        for number in range(MOVES):
            now_ns = _later(chance, gate, now_ns)
            if gate.line and not gate.recording and chance.random() < 0.15:
                drain = Drain(chance.random() < 0.7)
                moves.append(drain)
                gate, _ = drain.step(gate)
                continue
            move = GateMove(_any_stimulus(chance, gate, now_ns, number), _any_answer(chance))
            moves.append(move)
            gate, _ = finished(gate.step(move.stimulus), move.answer)
        return start, moves

    def _parts_at(
        self, components: Components, start: RecoveredStart, moves: Sequence[GateMove | Drain]
    ) -> tuple[int, str] | None:
        """The number of the move at which machine and table part, and how; None if they do not."""
        live = _Live(self, components, start)
        for at, move in enumerate(moves):
            difference = live.difference(move)
            if difference is not None:
                return at, difference
        return None

    def _violation(
        self, components: Components, start: RecoveredStart, moves: list[GateMove | Drain]
    ) -> ScopeViolation:
        """The run without all that it needs not: no move of it can be left out, and no answer."""
        moves, reason = shortened(moves, partial(self._parts_at, components, start), _without_answer)
        recovered = [f"recover {start[0]}, ended {list(start[1])}"] if start != NEW else []
        return self.violation(len(moves), reason, *recovered, *moves)


def _later(chance: random.Random, gate: GateState, now_ns: int) -> int:
    """A time from now on: often the very moment at which the gate's clock will do something."""
    rules = gate.rules
    limit_ns = rules.alignment_timeout_threshold_ns if rules.may_overtake else rules.alignment_timeout_ns
    due = [triggered_ns + limit_ns for _, triggered_ns in gate.triggers]
    if (deadline_ns := gate.next_deadline_ns()) is not None:
        due.append(deadline_ns)
    if due and chance.random() < 0.1:
        return max(now_ns, chance.choice(due))
    return now_ns + chance.choice((0, 0, 0, 1, 1, 2))


def _without_answer(move: GateMove | Drain) -> Sequence[GateMove | Drain]:
    return (GateMove(move.stimulus),) if isinstance(move, GateMove) and move.answer != SnapshotAnswer() else ()


@dataclass(frozen=True, slots=True)
class Drain:
    """All events that may drain are taken at once, as whole queues or in the document's form: for `impl` alone."""

    as_runs: bool

    def __str__(self) -> str:
        return "drain_runs()" if self.as_runs else "drained()"

    def step(self, gate: GateState) -> tuple[GateState, list[tuple[int, Event]]]:
        """The gate afterwards, and what goes, with its input."""
        gone: list[tuple[int, Event]] = []
        if self.as_runs:
            if gate.recording or any(type(message) is not Event for messages in gate.buffered for message in messages):
                return gate, gone
            gone = [(i, message) for i in gate.line for message in gate.buffered[i] if type(message) is Event]
            buffered = tuple(() if i in gate.line else messages for i, messages in enumerate(gate.buffered))
            return replace(gate, buffered=buffered, line=()), gone
        while gate.line and type(event := gate.buffered[gate.line[0]][0]) is Event:
            gone.append((gate.line[0], event))
            gate, _ = gate.step(DrainOne())
        return gate, gone

    def made(self, machine: Implementation) -> list[tuple[int, Event]]:
        """Drain the machine; return the events that go, each with its input."""
        if not self.as_runs:
            return machine.aligner.drained()
        return [(i, event) for i, queue in machine.aligner.drain_runs() for event in queue if type(event) is Event]


def _any_stimulus(chance: random.Random, gate: GateState, now_ns: int, number: int) -> Stimulus:
    """Return a random stimulus that is possible now, more often one that makes progress."""
    open_inputs = [each for each in range(gate.rules.num_inputs) if gate.is_open(each)]
    newest = gate.pending.checkpoint_id if gate.pending is not None else gate.last_terminated_id + 1
    near = chance.choice((newest, newest, newest, newest, newest + 1, newest + 2, max(1, newest - 1)))
    barrier = CheckpointBarrier(near, chance.choice((1,) * 15 + (2,)), chance.choice((0, 0, 0, 1)))
    what = chance.randrange(100)
    if what < 20 and gate.line:
        return DrainOne(now_ns)
    if what < 24:
        return TriggerNoted(near, max(0, now_ns - chance.choice((0, 0, 1))))
    if what < 29 or not open_inputs:
        rest: tuple[Stimulus, ...] = (DrainOne(now_ns), ClockReading(now_ns), Abort(near), OutputPassed(1))
        return chance.choice(rest)
    input_id = chance.choice(open_inputs)
    event = Event("abc"[input_id], number + 1, size_bytes=chance.choice((1, 1, 2)))
    if what < 58:
        return Arrival(input_id, event, now_ns)
    if what < 82:
        return Arrival(input_id, barrier, now_ns)
    if what < 88:
        ahead: tuple[StreamMessage, ...] = (Watermark(number), event, event, event, event)[: chance.randrange(6)]
        return Overtaking(input_id, barrier, ahead, now_ns)
    others: tuple[StreamMessage, ...] = (Watermark(number), Watermark(number), CancelBarrier(near), EndOfInput())
    return Arrival(input_id, chance.choice(others), now_ns)


def _any_answer(chance: random.Random) -> SnapshotAnswer:
    failure = Reason.SNAPSHOT_FAILED if chance.random() < 0.1 else None
    return SnapshotAnswer(failure, chance.choice((0, 0, 0, 1, 2)))


class _Live:
    """A table's gate, and a machine beside it that goes its own way."""

    def __init__(self, scope: RunScope, components: Components, start: RecoveredStart) -> None:
        self.gate = scope.gate(start)
        self.is_ours = components == SOUND
        make = protocol_of(scope.protocol).make_machine
        self._machine = partial(
            GateMachine, scope.rules, partial(gate_of, components, enabled=scope.enabled, make=make)
        )
        self.machine = self._machine()
        self.counted = _Counts(scope.enabled)
        if start != NEW:
            self.machine.gate.aligner.recover(*start)

    def difference(self, move: GateMove | Drain) -> str | None:
        """Return how the machine makes the next move otherwise than the table; None if it does not."""
        if isinstance(move, Drain):
            return self._drained(move) if self.is_ours and not self.gate.recording else None
        gate, machine, stimulus = self.gate, self.machine, move.stimulus
        if isinstance(stimulus, ARRIVALS) and not gate.is_open(stimulus.input_id):
            return None
        first = gate.step(stimulus)
        self.gate, expected = after, _ = finished(first, move.answer)
        try:
            effects = machine.made(move)
        except RAISED as error:  # whatever it raises, that is another effect
            return explained(gate, move, expected, f"raised {type(error).__name__}: {error}")
        if effects != expected:
            return explained(gate, move, expected, f"'{listed(effects)}'")
        try:
            wrong = machine.misstatement_now(after, _asked(after, stimulus))
            if wrong is None and self.is_ours:
                wrong = machine.misanswered(move, effects)
            if wrong is None and self.is_ours:
                wrong = fields_that_differ(captured(after), machine.gate.capture())
            if wrong is None and self.is_ours:
                self.counted.count(gate, first[0], move, effects)
                wrong = _miscounted(self.counted, after, machine.gate, _time_of(stimulus))
        except RAISED as error:  # as above
            wrong = f"it was asked something, and raised {type(error).__name__}: {error}"
        return None if wrong is None else f"{move}: {wrong}"

    def _drained(self, drain: Drain) -> str | None:
        state = self.machine.gate.capture()
        step_by_step, at_once = self._machine().gate, self._machine().gate
        for gate in (step_by_step, at_once):
            gate.restore(state)
        count = 0
        while step_by_step.drain_next(0):
            count += 1
        if (found := at_once.drain_all(0)) != count or at_once.capture() != step_by_step.capture():
            return f"drain_all: {count} go one by one, and {found} at once, or another state is left"
        self.gate, expected = drain.step(self.gate)
        gone = drain.made(self.machine.gate)
        if gone != expected:
            return f"{drain}: by the table {_listed(expected)} go, of the machine {_listed(gone)}"
        wrong = fields_that_differ(captured(self.gate), self.machine.gate.capture())
        return None if wrong is None else f"{drain}: {wrong}"


def _listed(gone: Sequence[tuple[int, Event]]) -> str:
    return ", ".join(f"{event} of {input_id}" for input_id, event in gone) or "none"


def _time_of(stimulus: Stimulus) -> int:
    return getattr(stimulus, "at_ns", 0)


def _asked(gate: GateState, stimulus: Stimulus) -> Iterator[tuple[int, CheckpointBarrier, int]]:
    """Barriers that might want to overtake now: of this checkpoint and of the next one, flagged and not."""
    newest = gate.pending.checkpoint_id if gate.pending is not None else gate.last_terminated_id + 1
    for input_id in range(gate.rules.num_inputs):
        for checkpoint_id in (newest, newest + 1):
            yield input_id, CheckpointBarrier(checkpoint_id, 1, input_id % 2), _time_of(stimulus)


class _Counts:
    """The counts that the documents ask of a machine, worked out from what the table says."""

    def __init__(self, enabled: bool) -> None:
        self.completed = self.buffered = self.unaligned = self.switched = self.in_flight_bytes = self.longest_ns = 0
        self.enabled, self.in_vain = enabled, set[int]()

    def count(
        self, before: GateState, first: GateState, move: GateMove, effects: Sequence[tuple[str, int, object]]
    ) -> None:
        """Count a move: the gate before it, and when it has asked for an image, if it has."""
        size_of = before.rules.size_of
        completed = sum(verb == "complete" for verb, _, _ in effects)
        self.completed += completed
        self.buffered += sum(verb == "buffer" and type(subject) is Event for verb, _, subject in effects)
        if not self.enabled and asks(before, move.stimulus):
            self.in_vain |= {subject for verb, _, subject in effects if verb == "block" and isinstance(subject, int)}
        if first.taking:
            self.unaligned += first.unaligned
            self.switched += first.switched
            self.in_flight_bytes += first.in_flight_bytes
            if first.unaligned and move.answer.failure is None:
                self.in_flight_bytes += move.answer.passed_bytes
            if not first.missing():
                self.longest_ns = max(self.longest_ns, _time_of(move.stimulus) - first.first_ns)
            return
        if completed:
            self.longest_ns = max(self.longest_ns, _time_of(move.stimulus) - before.first_ns)
        for verb, _, subject in effects:
            if verb == "record" and isinstance(subject, tuple):
                self.in_flight_bytes += size_of(subject[1])
        if isinstance(move.stimulus, OutputPassed) and before.unaligned:
            self.in_flight_bytes += move.stimulus.size_bytes

    def of_unaligned(self) -> tuple[int, ...]:
        """Return the counters of an unaligned machine: parts, switches, bytes in flight, mismatched flags."""
        return self.unaligned, self.switched, self.in_flight_bytes, len(self.in_vain)


def asks(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether it is a barrier that asks for an unaligned part, or drains one."""
    message = getattr(stimulus, "message", None)
    if isinstance(stimulus, DrainOne) and gate.line:
        message = gate.buffered[gate.line[0]][0]
    return type(message) is CheckpointBarrier and message.is_unaligned


def _miscounted(counted: _Counts, gate: GateState, machine: Implementation, now_ns: int) -> str | None:
    """Return what the machine answers otherwise than counted, of the questions that only `impl` is asked."""
    aligner, limits, metrics = machine.aligner, gate.rules, machine.aligner.metrics()
    events = sum(type(message) is Event for messages in gate.buffered for message in messages)
    expires_ns, triggered_ns = gate.expires_ns(), gate.triggered_ns()
    is_late = expires_ns is not None and triggered_ns is not None and now_ns >= expires_ns
    full = max(map(len, gate.buffered)) >= limits.max_buffer_per_input
    asked: list[tuple[str, object, object]] = [
        ("alignments_completed", counted.completed, metrics.alignments_completed),
        ("total_events_buffered", counted.buffered, metrics.total_events_buffered),
        ("current_buffered", events, metrics.current_buffered),
        ("max_alignment_duration_ns", counted.longest_ns, metrics.max_alignment_duration_ns),
        ("is_aligning", gate.pending is not None, metrics.is_aligning),
        ("buffered_bytes()", gate.buffered_bytes(), aligner.buffered_bytes()),
        (
            "aligned_input_count()",
            0 if gate.pending is None else limits.num_inputs - len(gate.missing()),
            aligner.aligned_input_count(),
        ),
        (
            "is_buffer_limit_exceeded()",
            full or gate.buffered_bytes() >= limits.max_buffer_memory_bytes,
            aligner.is_buffer_limit_exceeded(),
        ),
        (
            f"check_timeout({now_ns})",
            now_ns - triggered_ns if is_late and triggered_ns is not None else None,
            aligner.check_timeout(now_ns),
        ),
        ("may_overtake", limits.may_overtake, machine.may_overtake),
    ]
    if isinstance(aligner, UnalignedCheckpointer):
        switches_ns = gate.switches_ns()
        counts = aligner.metrics()
        shown = (counts.unaligned_count, counts.threshold_switches, counts.total_inflight_bytes, counts.flag_mismatches)
        record = channel_data(dict(enumerate(gate.record)), limits.size_of)
        asked += [
            ("the counts of unaligned parts", counted.of_unaligned(), shown),
            (
                f"should_switch_to_unaligned({now_ns})",
                switches_ns is not None and now_ns >= switches_ns,
                aligner.should_switch_to_unaligned(now_ns),
            ),
            ("inflight_data()", record, aligner.inflight_data()),
            ("is_in_unaligned_mode", gate.recording, counts.is_in_unaligned_mode),
        ]
    for what, meant, found in asked:
        if meant != found:
            return f"{what}: by the table it is {meant}, the machine says {found}"
    return None


def twice(message: StreamMessage) -> int:
    """A size of the caller's own."""
    return 2 * size_of(message)


LITTLE = {"buffered": 3, "buffered_bytes": 40, "timeout": 9}
"""Room for a barrier and some events; a timeout that some checkpoints reach."""
SOON = {"alignment_timeout_threshold_ns": 2, "max_inflight_buffer_bytes": 5}
"""A threshold that comes before that, and one event more than a barrier passes here."""

SCOPES = (
    RunScope("two inputs", "aligned", rules(2, **LITTLE | {"buffered_bytes": 28})),
    RunScope("three inputs", "aligned", rules(3, **LITTLE)),
    RunScope("two inputs", "unaligned", rules(2, **LITTLE, **(UNALIGNED_ONLY | SOON))),
    RunScope("three inputs", "unaligned", rules(3, **LITTLE, **(UNALIGNED_ONLY | SOON))),
    RunScope("two inputs", "aligned_with_timeout", rules(2, **LITTLE, **(FALLING_BACK | SOON))),
    RunScope("three inputs", "aligned_with_timeout", rules(3, **LITTLE, **(FALLING_BACK | SOON))),
    RunScope("a sink", "aligned_with_timeout", rules(2, **LITTLE, **(A_SINK | SOON))),
    RunScope("not enabled", "aligned_with_timeout", rules(2, **LITTLE, **(A_SINK | SOON)), enabled=False),
    RunScope("sizes of the caller's own", "aligned", replace(rules(2, **LITTLE), size_of=twice)),
    RunScope(
        "sizes of the caller's own",
        "aligned_with_timeout",
        replace(rules(2, **LITTLE, **(FALLING_BACK | SOON)), size_of=twice),
    ),
)
