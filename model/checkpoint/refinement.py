"""The check that a gate of `impl` does what its table says: effect for effect, and state for state.

The table is what a protocol is, the machine how it is done (`model.suites.tables`, `impl`). A step of the table's gate
and the same call of the machine must give the same effects, and must leave the machine in the very state that the
table's gate means: `captured` says which. So what agrees on every reachable gate of a scope agrees for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.checkpoint.gate import Gate as Implementation
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig
from barrierlab.impl.errors import SnapshotFailedError
from barrierlab.impl.messages import UNALIGNED_FLAG, CheckpointBarrier, EndOfInput, Event, StreamMessage, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.capabilities import ALL, Capabilities
from barrierlab.model.checkpoint.components import MakeMachine, reset_counters, sound_aligner
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.tables.stimuli import (
    ARRIVALS,
    NO_INPUT,
    Abort,
    Arrival,
    ClockReading,
    DrainOne,
    Effect,
    Failed,
    Forwarded,
    OutputPassed,
    Overtaking,
    SnapshotComplete,
    Stimulus,
    Taken,
    TriggerNoted,
)
from barrierlab.model.errors import RAISED
from barrierlab.model.explore.checker import Always
from barrierlab.model.explore.table import Traced, phrase

Effects = tuple[Effect, ...]
END = EndOfInput()


class SnapshotAnswer(NamedTuple):
    """The outcome, if an image is asked for.

    Attributes
    ----------
    failure : Reason or None
        Why it cannot be taken.
    passed_bytes : int
        What an unaligned barrier then passes on the way out.
    """

    failure: Reason | None = None
    passed_bytes: int = 0


class GateMove(NamedTuple):
    """A stimulus at a gate, with the answer to what it may ask."""

    stimulus: Stimulus
    answer: SnapshotAnswer = SnapshotAnswer()

    def __str__(self) -> str:
        """Return the line of text."""
        failure, passed_bytes = self.answer
        text = f"{self.stimulus}" if failure is None else f"{self.stimulus}, and no image: {failure}"
        return f"{text}, passing {passed_bytes} bytes on the way out" if passed_bytes else text


def run(gate: GateState, move: GateMove) -> tuple[GateState, Effects]:
    """The gate after a whole move: the stimulus, and the answers to what it asked."""
    return finished(gate.step(move.stimulus), move.answer)


def finished(step: tuple[GateState, Effects], answer: SnapshotAnswer) -> tuple[GateState, Effects]:
    """A step, and the answers to what it asked."""
    gate, effects = step
    if gate.taking:
        gate, more = gate.step(Taken() if answer.failure is None else Failed(answer.failure))
        effects += more
    if gate.taking:
        if answer.passed_bytes:
            gate, more = gate.step(OutputPassed(answer.passed_bytes))
            effects += more
        gate, more = gate.step(Forwarded())
        effects += more
    return gate, effects


class RecordingPort:
    """Writes down what a machine asks for, and gives the answers of a move."""

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        self.answer = SnapshotAnswer()
        self.gate: Implementation | None = None

    def _note(self, verb: str, input_id: int, subject: object) -> None:
        self.effects.append(Effect(verb, input_id, subject))

    def deliver(self, input_id: int, message: Event | Watermark) -> None:
        self._note("deliver", input_id, message)

    def end_input(self, input_id: int) -> None:
        self._note("end", input_id, END)

    def snapshot(self, barrier: CheckpointBarrier) -> None:
        self._note("snapshot", NO_INPUT, barrier)
        if self.answer.failure is not None:
            raise SnapshotFailedError("no image", self.answer.failure)

    def forward(self, barrier: CheckpointBarrier) -> None:
        self._note("forward", NO_INPUT, barrier)
        assert self.gate is not None
        machine = self.gate.unaligned
        if self.answer.passed_bytes and machine is not None and machine.is_unaligned:
            self.gate.note_output(self.answer.passed_bytes)

    def complete(self, barrier: CheckpointBarrier) -> None:
        assert self.gate is not None
        machine = self.gate.unaligned
        record: list[tuple[Event, ...]] = [()] * self.gate.aligner.config.num_inputs
        if machine is None:
            self._note("complete", NO_INPUT, SnapshotComplete(barrier, False, False, tuple(record)))
            return
        for data in machine.inflight_data():
            record[data.input_id] = data.events
        part = SnapshotComplete(barrier, machine.is_unaligned, machine.was_threshold_triggered, tuple(record))
        self._note("complete", NO_INPUT, part)

    def decline(self, checkpoint_id: int, reason: Reason) -> None:
        self._note("decline", NO_INPUT, (checkpoint_id, reason))

    def cancel(self, checkpoint_id: int) -> None:
        self._note("cancel", NO_INPUT, checkpoint_id)

    def record(self, input_id: int, message: Event, checkpoint_id: int) -> None:
        self._note("record", input_id, (checkpoint_id, message))

    def buffer(self, input_id: int, message: StreamMessage) -> None:
        self._note("buffer", input_id, message)

    def block(self, input_id: int, checkpoint_id: int) -> None:
        self._note("block", input_id, checkpoint_id)

    def resume(self, checkpoint_id: int) -> None:
        self._note("resume", NO_INPUT, checkpoint_id)

    def ignore(self, input_id: int, message: StreamMessage) -> None:
        self._note("ignore", input_id, message)


def configs_of(
    rules: GateRules, enabled: bool = True
) -> tuple[BarrierAlignerConfig, UnalignedCheckpointConfig | None, bool]:
    """Return what a machine with these rules is made with; if not `enabled`, it may not overtake, and is no sink."""
    config = BarrierAlignerConfig(
        rules.num_inputs, rules.max_buffer_per_input, rules.max_buffer_memory_bytes, rules.alignment_timeout_ns
    )
    unaligned = None
    if not rules.flag_matters:
        unaligned = UnalignedCheckpointConfig(
            enabled, rules.alignment_timeout_threshold_ns, rules.max_inflight_buffer_bytes, rules.force_unaligned
        )
    return config, unaligned, enabled and not rules.flag_matters and not rules.may_overtake


def gate_of_impl(rules: GateRules, port: RecordingPort, make: MakeMachine = sound_aligner) -> Implementation:
    """The gate of `impl` with these rules, around the machine that `make` gives."""
    return Implementation(make(*configs_of(rules), rules.size_of), port)


class GateMachine:
    """A gate of `impl` that can be put into the state of a table's gate; or another's, that can be driven."""

    def __init__(
        self, rules: GateRules, make: Callable[[GateRules, RecordingPort], Implementation] = gate_of_impl
    ) -> None:
        self.port = RecordingPort()
        self.gate = self.port.gate = make(rules, self.port)
        self._captures: dict[GateState, Hashable] = {}
        self.answer: object = None  # to the last move: whether something was done, where that is said

    def difference(self, gate: GateState, move: GateMove) -> str | None:
        """Return how the machine, in the state of `gate`, makes the move otherwise than the table; None if it does
        not."""
        return self.difference_from(gate, move, *run(gate, move))

    def difference_from(self, gate: GateState, move: GateMove, after: GateState, expected: Effects) -> str | None:
        """The same, where the table's answer is known."""
        try:
            self.gate.restore(self._captured(gate))
            effects = self.made(move)
            found = self.gate.capture()
        except RAISED as error:  # a machine that raises does something else, too
            return explained(gate, move, expected, f"raised {type(error).__name__}: {error}")
        if effects != expected:
            return explained(gate, move, expected, f"'{listed(effects)}'")
        if without_counters(found) != without_counters(self._captured(after)):
            return f"{move}: {fields_that_differ(self._captured(after), found)} ({rows_of(gate, move)})"
        return self.misanswered(move, effects)

    def _captured(self, gate: GateState) -> Hashable:
        known = self._captures.get(gate)
        if known is None:
            known = self._captures[gate] = captured(gate)
        return known

    def made(self, move: GateMove) -> Effects:
        """Make the move with the machine; return what it does."""
        self.port.effects, self.port.answer = [], move.answer
        gate, stimulus = self.gate, move.stimulus
        took, self.answer = True, None
        match stimulus:
            case Arrival(input_id, message, at_ns):
                took = gate.offer(input_id, message, at_ns)
            case Overtaking(input_id, barrier, ahead, at_ns):
                took = gate.offer_overtaking(input_id, barrier, ahead, at_ns)
            case DrainOne(at_ns):
                self.answer = gate.drain_next(at_ns)
            case Abort(checkpoint_id):
                self.answer = gate.abort(checkpoint_id, Reason.EXPIRED, 0)
            case TriggerNoted(checkpoint_id, at_ns):
                gate.note_trigger(checkpoint_id, at_ns)
            case ClockReading(at_ns):
                self.answer = gate.on_time(at_ns)
            case OutputPassed(size_bytes):
                gate.note_output(size_bytes)
            case _:
                raise ValueError(f"{stimulus}: only the answer to an effect; allowed: what a driver begins")
        if not took:
            assert isinstance(stimulus, ARRIVALS)
            self.port.effects.insert(0, Effect("refuse", stimulus.input_id, stimulus.message))
        return tuple(self.port.effects)

    def misanswered(self, move: GateMove, effects: Effects) -> str | None:
        """Return a line if the machine answers that it did something and did not, or the other way about; else None.

        A drain, an abort and a deadline say so: what the table does then is never silent.
        """
        if self.answer is None or self.answer is bool(effects):
            return None
        return f"{move}: the machine answers {self.answer}, and did '{listed(effects)}'"

    def misstatement(self, gate: GateState, barriers: Iterable[tuple[int, CheckpointBarrier, int]] = ()) -> str | None:
        """Return what the machine, in the state of `gate`, answers otherwise when it is asked something; None if
        nothing.

        Of each of the `barriers`, an input, a barrier and a time, whether it wants to overtake.
        """
        try:
            self.gate.restore(self._captured(gate))
            return self.misstatement_now(gate, barriers)
        except RAISED as error:  # as above
            return f"it was asked something, and raised {type(error).__name__}: {error}"

    def misstatement_now(
        self,
        gate: GateState,
        barriers: Iterable[tuple[int, CheckpointBarrier, int]] = (),
        capabilities: Capabilities = ALL,
    ) -> str | None:
        """The same, of the state that the machine is in, and only where its declaration permits no other answer."""
        machine = self.gate
        asked: list[tuple[str, object, object]] = [("can_drain", bool(gate.line), machine.can_drain)]
        if capabilities.timeout:
            asked.append(("next_deadline_ns()", gate.next_deadline_ns(), machine.next_deadline_ns()))
        for i in range(gate.rules.num_inputs):
            leaves = capabilities.leaves_in_channel and gate.is_blocked(i)
            is_full = gate.is_open(i) and not gate.can_take(i)
            if not leaves and (capabilities.limits or not is_full):
                asked.append((f"can_take({i})", gate.can_take(i), machine.can_take(i)))
            if hasattr(machine, "is_blocked"):  # which no driver asks, so that another's need not answer
                asked.append((f"is_blocked({i})", gate.is_blocked(i), machine.is_blocked(i)))
        for about in barriers:
            asked.append((f"wants_overtaking{about}", gate.wants_overtaking(*about), machine.wants_overtaking(*about)))
        for what, meant, found in asked:
            if meant != found:
                return f"{what}: the table says {meant}, the machine {found}"
        return None


def listed(effects: Effects) -> str:
    """Effects in a line."""
    return "; ".join(map(str, effects)) or "nothing"


def explained(gate: GateState, move: GateMove, expected: Effects, did: str) -> str:
    """A move that machine and table make otherwise, in a line: what each did, and by which rows of the table."""
    return f"{move}: the table says '{listed(expected)}', the machine {did} ({rows_of(gate, move)})"


def rows_of(gate: GateState, move: GateMove) -> str:
    """Return what the table's rows say to a move, in words: the situation of each, and what is to be done in it."""
    table = Traced(gate.table)
    run(replace(gate, table=table), move)
    return "; ".join(
        f"row '{row.name}': if {phrase(row.when)}, then {phrase(row.then) or 'nothing'}" for _, row in table.found
    )


# The state of a machine that a table's gate means.


def captured(gate: GateState) -> Hashable:
    """Return what `impl.checkpoint.gate.Gate.capture` gives in this state, its counters at 0."""
    rules, pending, inputs = gate.rules, gate.pending, range(gate.rules.num_inputs)
    missing = tuple(filter(gate.is_missing, inputs)) if gate.recording else ()
    waiting = tuple(filter(gate.is_blocked, inputs))
    marked = waiting if rules.blocks else tuple(sorted(gate.arrived))
    takes = tuple(filter(gate.is_open, inputs))
    free = tuple(i for i in takes if not gate.buffered[i] and i not in waiting and i not in missing)
    asked = pending is not None and gate.aligning and pending.is_unaligned and not rules.flag_matters
    barrier = plain(pending) if asked and pending is not None else pending
    aligner = (
        barrier,
        gate.last_terminated_id,
        False,
        (),
        gate.buffered,
        free,
        marked,
        gate.line,
        takes,
        rules.num_inputs - len(gate.ended),
        gate.first_ns,
        gate.triggers,
        (0, 0, 0),
    )
    blocking = pending.checkpoint_id if pending is not None and gate.aligning and rules.blocks else 0
    if rules.flag_matters:
        return blocking, aligner
    record = tuple((i, events) for i, events in enumerate(gate.record) if events or i in missing)
    part = (gate.recording, gate.unaligned, gate.switched, asked, False, missing, record, gate.in_flight_bytes)
    return blocking, (aligner, *part, (0, 0, 0, 0))


def plain(barrier: CheckpointBarrier) -> CheckpointBarrier:
    """The barrier without the flag."""
    return CheckpointBarrier(barrier.checkpoint_id, barrier.epoch, barrier.flags & ~UNALIGNED_FLAG)


def without_counters(capture: Hashable) -> Hashable:
    """Return a capture of a gate without what only counts, and what nobody looks at before it is written again."""
    assert isinstance(capture, tuple)
    blocking, whole = capture
    if not isinstance(whole[0], tuple):
        return blocking, aligner_without_counters(whole)
    aligner, recording, unaligned, switched, asked, _, missing, record, in_flight_bytes, _ = whole
    kept = tuple((i, events) for i, events in record if events)
    part = (recording, unaligned, switched, asked, missing, kept, in_flight_bytes)
    return blocking, (aligner_without_counters(aligner), *part)


def aligner_without_counters(whole: tuple[object, ...]) -> Hashable:
    """The same of an aligner's."""
    *state, first_ns, triggers, _ = whole
    return (*state, first_ns if whole[0] is not None else 0, triggers)


_GATE = ("checkpoint that inputs wait for (0: none)",)
_ALIGNER = (
    *("checkpoint under way", "last id that is done with", "snapshot due", "checkpoints aborted and not reported"),
    *("messages buffered, by input", "free inputs", "inputs that wait", "inputs to drain, in turn", "inputs not ended"),
    *("inputs whose end has not taken effect", "time of the first barrier", "times of the triggers"),
)
_UNALIGNED = (
    *("recording", "unaligned", "switched", "asked to go unaligned", "inputs without their barrier"),
    *("events recorded, by input", "bytes in flight"),
)


def fields_that_differ(meant: Hashable, found: Hashable) -> str | None:
    """In which fields two captures of a gate differ, and what each has there; None if that is only what it counts."""
    pairs = zip(_fields(meant), _fields(found), strict=True)
    parts = [
        f"the table leaves {name}: {_said(own)}, the machine: {_said(other)}"
        for (name, own), (_, other) in pairs
        if own != other
    ]
    return "; ".join(parts) or None


def _fields(capture: Hashable) -> Iterator[tuple[str, object]]:
    """The fields of a capture, by name."""
    blocking, whole = without_counters(capture)  # type: ignore[misc]
    aligner, part = (whole[0], whole[1:]) if isinstance(whole[0], tuple) else (whole, ())  # type: ignore[has-type]
    yield from zip((*_GATE, *_ALIGNER), (blocking, *aligner), strict=True)  # type: ignore[has-type]
    yield from zip(_UNALIGNED[: len(part)], part, strict=True)


def _said(value: object) -> str:
    """A value of a field: messages as in a trace."""
    if isinstance(value, tuple) and not isinstance(value, Effect):
        return f"({', '.join(map(_said, value))})"
    return str(value)


# Every reachable gate.


@dataclass(frozen=True)
class GateDifference:
    """Instead of a gate: where machine and table part."""

    text: str


PERMITTED = GateDifference("")
"""The point where they part as the machine declares: nothing beyond is compared."""

Point = GateState | GateDifference


class GateSteps:
    """All stimuli at a table's gate, repeated, and what the table does with them.

    Parameters
    ----------
    stimuli : sequence of Stimulus
        An input that has ended takes no more of it.
    answers : sequence of SnapshotAnswer
        To each snapshot, any of these.
    """

    def __init__(self, stimuli: Sequence[Stimulus], answers: Sequence[SnapshotAnswer] = (SnapshotAnswer(),)) -> None:
        self.stimuli, self.answers = tuple(stimuli), tuple(answers)
        self.barriers = [
            (each.input_id, each.message, each.at_ns)
            for each in self.stimuli
            if isinstance(each, ARRIVALS) and isinstance(each.message, CheckpointBarrier)
        ]
        self._at: GateState | None = None  # the last one whose moves were asked for,
        self._first: dict[Stimulus, tuple[GateState, Effects]] = {}  # and what the table made of each stimulus there

    def moves(self, gate: GateState) -> list[GateMove]:
        """Return the moves possible now, with each answer to a snapshot that is asked for."""
        moves = []
        for stimulus in self.stimuli:
            if isinstance(stimulus, ARRIVALS) and not gate.is_open(stimulus.input_id):
                continue
            self._first[stimulus] = after, _ = gate.step(stimulus)
            moves += [GateMove(stimulus, answer) for answer in self.answers] if after.taking else [GateMove(stimulus)]
        self._at = gate
        return moves

    def after(self, gate: GateState, move: GateMove) -> tuple[GateState, Effects]:
        """The table's next gate, and the effects."""
        first = self._first[move.stimulus] if gate is self._at else gate.step(move.stimulus)
        return finished(first, move.answer)


class Refinement:
    """A table's gate and a machine of `impl` that keeps step, as a system to explore.

    Parameters
    ----------
    start : GateState
        The table's, where nothing has happened.
    steps : GateSteps
    make : callable, optional
        Makes the machine.
    """

    def __init__(
        self,
        start: GateState,
        steps: GateSteps,
        make: Callable[[GateRules, RecordingPort], Implementation] = gate_of_impl,
    ) -> None:
        self._start, self._steps = start, steps
        self.machine = GateMachine(start.rules, make)

    def start(self) -> Point:
        """Return the initial state."""
        return self._start

    def moves(self, point: Point) -> list[GateMove]:
        """Return the moves possible now."""
        return [] if isinstance(point, GateDifference) else self._steps.moves(point)

    def after(self, point: Point, move: GateMove) -> Point:
        """The table's next gate, if the machine does the same."""
        assert isinstance(point, GateState)
        after, effects = self._steps.after(point, move)
        difference = self.machine.difference_from(point, move, after, effects)
        return after if difference is None else GateDifference(difference)

    @property
    def properties(self) -> tuple[Always[Point], ...]:
        """Return the property that the machine does, and answers, what the table's gate does."""
        return Always("refinement", refines), Always("answers", self._misstatement)

    def _misstatement(self, point: Point) -> str | None:
        return None if isinstance(point, GateDifference) else self.machine.misstatement(point, self._steps.barriers)


def refines(point: object) -> str | None:
    """Return where machine and table part."""
    return point.text or None if isinstance(point, GateDifference) else None


GatePair = tuple[GateState, Hashable] | GateDifference


class Following:
    """A table's gate and another's machine beside it, of which nobody knows what its captures mean.

    They are compared effect for effect and answer for answer. A state is the table's gate with what the machine
    captured there: if `capture` has what only counts, there is no end of them.

    Parameters
    ----------
    start : GateState
    steps : GateSteps
    make : callable
        Makes the machine.
    capabilities : Capabilities, optional
        Its declaration: what it is permitted to do otherwise is compared up to where that begins.
    """

    def __init__(
        self,
        start: GateState,
        steps: GateSteps,
        make: Callable[[GateRules, RecordingPort], Implementation],
        capabilities: Capabilities = ALL,
    ) -> None:
        self._steps, self._capabilities = steps, capabilities
        self.machine = GateMachine(start.rules, make)
        self._start = start, self.machine.gate.capture()  # now: later the machine has been elsewhere

    def start(self) -> GatePair:
        """Return the initial state."""
        return self._start

    def moves(self, pair: GatePair) -> list[GateMove]:
        """Return the moves possible now."""
        return [] if isinstance(pair, GateDifference) else self._steps.moves(pair[0])

    def after(self, pair: GatePair, move: GateMove) -> GatePair:
        """The table's next gate and the machine's next state, if their effects are the same."""
        assert isinstance(pair, tuple)
        gate, capture = pair
        after, expected = self._steps.after(gate, move)
        machine = self.machine
        try:
            machine.gate.restore(capture)
            effects = machine.made(move)
            reset_counters((machine.gate, machine.gate.aligner))
            reached = machine.gate.capture()
        except RAISED as error:  # whatever another's code raises: that is another effect
            return GateDifference(explained(gate, move, expected, f"raised {type(error).__name__}: {error}"))
        if effects != expected:
            if self._is_permitted(gate, move, after, expected, effects):
                return PERMITTED
            return GateDifference(explained(gate, move, expected, f"'{listed(effects)}'"))
        return after, reached

    def _is_permitted(
        self, gate: GateState, move: GateMove, after: GateState, expected: Effects, effects: Effects
    ) -> bool:
        """Return whether the machine declares that it does this otherwise."""
        stimulus = move.stimulus
        if not self._capabilities.limits and any(_is_of_a_limit(effect, stimulus) for effect in expected):
            return True
        if self._capabilities.leaves_in_channel and isinstance(stimulus, Arrival):
            waits = gate.is_blocked(stimulus.input_id) or [effect.verb for effect in expected] == ["buffer"]
            if waits and [effect.verb for effect in effects] == ["refuse"]:
                return True
        if not self._capabilities.keeps_blocked_after_switch or not after.switched:
            return False
        last = max((at for at, effect in enumerate(expected) if effect.verb == "resume"), default=len(expected))
        return (*expected[:last], *expected[last + 1 :]) == effects

    @property
    def properties(self) -> tuple[Always[GatePair], ...]:
        """Return the properties, as a `Refinement` does."""
        return Always("refinement", refines), Always("answers", self._misstatement)

    def _misstatement(self, pair: GatePair) -> str | None:
        if isinstance(pair, GateDifference):
            return None
        gate, capture = pair
        try:
            self.machine.gate.restore(capture)
            return self.machine.misstatement_now(gate, self._steps.barriers, self._capabilities)
        except RAISED as error:  # as above
            return f"it was asked something, and raised {type(error).__name__}: {error}"


def _is_of_a_limit(effect: Effect, stimulus: Stimulus) -> bool:
    """Return whether that comes of a limit: a message is left in its channel, or a checkpoint is declined."""
    match effect:
        case Effect("decline", _, (_, Reason.BUFFER_LIMIT | Reason.IN_FLIGHT_LIMIT)):
            return True
        case Effect("refuse"):
            return isinstance(stimulus, Arrival)
    return False
