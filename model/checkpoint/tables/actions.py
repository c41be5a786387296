"""The actions of a row: each gives the next gate and its effects, and a row does its actions in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.tables.gate import GateState
from barrierlab.model.checkpoint.tables.guards import (
    checkpoint_of,
    flagged,
    input_of,
    message_of,
    overtaken,
    size_of_all,
    time_of,
)
from barrierlab.model.checkpoint.tables.stimuli import (
    NO_INPUT,
    Drained,
    DrainOne,
    Effect,
    Failed,
    OutputPassed,
    SnapshotComplete,
    Stimulus,
    TriggerNoted,
)

T = TypeVar("T")
GateStep = tuple[GateState, tuple[Effect, ...]]

# Messages.


def deliver(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (Effect("deliver", input_of(stimulus), message_of(stimulus)),)


def buffer(gate: GateState, stimulus: Stimulus) -> GateStep:
    input_id, message = input_of(stimulus), message_of(stimulus)
    assert message is not None
    buffered = with_input(gate.buffered, input_id, (*gate.buffered[input_id], message))
    return replace(gate, buffered=buffered), (Effect("buffer", input_id, message),)


def refuse(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Refuse the message: it stays in its channel."""
    return gate, (Effect("refuse", input_of(stimulus), message_of(stimulus)),)


def ignore(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (Effect("ignore", input_of(stimulus), message_of(stimulus)),)


def end_input(gate: GateState, stimulus: Stimulus) -> GateStep:
    input_id = input_of(stimulus)
    ended = replace(gate, ended=gate.ended | {input_id}, arrived=gate.arrived - {input_id})
    return ended, (Effect("end", input_id, EndOfInput()),)


# How a checkpoint begins and goes on.


def begin(gate: GateState, stimulus: Stimulus) -> GateStep:
    barrier = message_of(stimulus)
    assert type(barrier) is CheckpointBarrier
    assert gate.pending is None
    return replace(gate, pending=barrier, first_ns=time_of(stimulus)), ()


def mark(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Mark the barrier of this input as in; what the input holds is behind it."""
    input_id = input_of(stimulus)
    line = tuple(each for each in gate.line if each != input_id)
    return replace(gate, arrived=gate.arrived | {input_id}, line=line if gate.aligning else gate.line), ()


def block(gate: GateState, stimulus: Stimulus) -> GateStep:
    assert gate.pending is not None
    return gate, (Effect("block", input_of(stimulus), gate.pending.checkpoint_id),)


def pass_the_flag_on(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Pass the flag on: who cannot go unaligned hands the wish on to those behind it."""
    barrier, pending = message_of(stimulus), gate.pending
    assert type(barrier) is CheckpointBarrier
    assert pending is not None
    return replace(gate, pending=flagged(pending) if barrier.is_unaligned else pending), ()


def snapshot(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Ask for the image; the answer is `Taken` or `Failed`."""
    return replace(gate, taking=True), (Effect("snapshot", NO_INPUT, gate.pending),)


def forward(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (Effect("forward", NO_INPUT, gate.pending),)


# How it goes unaligned.


def go_unaligned(gate: GateState, stimulus: Stimulus) -> GateStep:
    assert gate.pending is not None
    return replace(gate, pending=flagged(gate.pending), unaligned=True), ()


def switch(gate: GateState, stimulus: Stimulus) -> GateStep:
    gate, _ = go_unaligned(gate, stimulus)
    return replace(gate, switched=True), ()


def record(gate: GateState, stimulus: Stimulus) -> GateStep:
    event = message_of(stimulus)
    assert type(event) is Event
    return recorded(gate, input_of(stimulus), (event,)), captures(gate, input_of(stimulus), (event,))


def record_what_it_passed(gate: GateState, stimulus: Stimulus) -> GateStep:
    return recorded(gate, input_of(stimulus), overtaken(gate, stimulus)), ()


def tell_what_it_passed(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, captures(gate, input_of(stimulus), overtaken(gate, stimulus))


def tell_what_was_passed(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Report what was passed: nothing else has been recorded when the barrier has just gone."""
    effects = tuple(
        effect for input_id, events in enumerate(gate.record) for effect in captures(gate, input_id, events)
    )
    return gate, effects


def count_output(gate: GateState, stimulus: Stimulus) -> GateStep:
    assert isinstance(stimulus, OutputPassed)
    return replace(gate, in_flight_bytes=gate.in_flight_bytes + stimulus.size_bytes), ()


def start_recording(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Begin to record: nothing waits for the others any more."""
    return wait_with_what_is_newer(replace(gate, taking=False, line=(*gate.line, *waiting(gate))), stimulus)


def wait_with_what_is_newer(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Take an input out of the line that has its barrier and one of a newer checkpoint next (protocol rule 17)."""
    if not gate.recording or gate.pending is None:
        return gate, ()
    pending_id, line = gate.pending.checkpoint_id, []
    for input_id in gate.line:
        first = gate.buffered[input_id][0]
        newer = isinstance(first, CheckpointBarrier | CancelBarrier) and first.checkpoint_id > pending_id
        if not newer or gate.is_missing(input_id):
            line.append(input_id)
    return replace(gate, line=tuple(line)), ()


# How it ends.


def complete(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Acknowledge the part."""
    assert gate.pending is not None
    part = SnapshotComplete(gate.pending, gate.unaligned, gate.switched, gate.record)
    return gate, (Effect("complete", NO_INPUT, part),)


def decline_failed(gate: GateState, stimulus: Stimulus) -> GateStep:
    assert isinstance(stimulus, Failed)
    return gate, (declined(gate, stimulus.reason),)


def decline_subsumed(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (declined(gate, Reason.SUBSUMED),)


def decline_expired(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (declined(gate, Reason.EXPIRED),)


def decline_contradiction(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (declined(gate, Reason.BARRIER_MISMATCH),)


def decline_too_much_buffered(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (declined(gate, Reason.BUFFER_LIMIT),)


def decline_too_much_in_flight(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (declined(gate, Reason.IN_FLIGHT_LIMIT),)


def decline_it(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (Effect("decline", NO_INPUT, (checkpoint_of(stimulus), Reason.IN_FLIGHT_LIMIT)),)


def send_cancel(gate: GateState, stimulus: Stimulus) -> GateStep:
    assert gate.pending is not None
    return gate, (Effect("cancel", NO_INPUT, gate.pending.checkpoint_id),)


def send_cancel_of_it(gate: GateState, stimulus: Stimulus) -> GateStep:
    return gate, (Effect("cancel", NO_INPUT, checkpoint_of(stimulus)),)


def resume(gate: GateState, stimulus: Stimulus) -> GateStep:
    assert gate.pending is not None
    return gate, (Effect("resume", NO_INPUT, gate.pending.checkpoint_id),)


def resume_for_it(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Resume what waited, as a cancel of a newer checkpoint closes the pending one silently (rule 10)."""
    waits = gate.rules.blocks and gate.pending is not None and gate.aligning
    return resume(gate, stimulus) if waits else (gate, (Effect("resume", NO_INPUT, checkpoint_of(stimulus)),))


def close(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Close the pending checkpoint, and every older one; what waits may go."""
    assert gate.pending is not None
    return closed(gate, gate.pending.checkpoint_id), ()


def close_up_to_it(gate: GateState, stimulus: Stimulus) -> GateStep:
    return closed(gate, checkpoint_of(stimulus)), ()


def look_up_again(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Look up the row that applies now that the gate has changed."""
    return gate.step(stimulus)


# Drains, triggers.


def drain_one(gate: GateState, stimulus: Stimulus) -> GateStep:
    """Drain the first message of the input whose turn it is; that is back in line before the message takes effect."""
    assert isinstance(stimulus, DrainOne)
    input_id, *others = gate.line
    message, *rest = gate.buffered[input_id]
    line = (*others, input_id) if rest else tuple(others)
    gate = replace(gate, buffered=with_input(gate.buffered, input_id, tuple(rest)), line=line)
    return gate.step(Drained(input_id, message, stimulus.at_ns))


def note_the_trigger(gate: GateState, stimulus: Stimulus) -> GateStep:
    assert isinstance(stimulus, TriggerNoted)
    triggers = dict(gate.triggers) | {stimulus.checkpoint_id: stimulus.at_ns}
    return replace(gate, triggers=tuple(sorted(triggers.items()))), ()


# What they share.


def with_input(each: tuple[T, ...], input_id: int, value: T) -> tuple[T, ...]:
    """`each`, but for one input."""
    return (*each[:input_id], value, *each[input_id + 1 :])


def waiting(gate: GateState) -> tuple[int, ...]:
    """Return the inputs that hold something and are not in line."""
    return tuple(i for i, messages in enumerate(gate.buffered) if messages and i not in gate.line)


def recorded(gate: GateState, input_id: int, events: tuple[Event, ...]) -> GateState:
    """The gate with these events in the record."""
    size_bytes = gate.in_flight_bytes + size_of_all(gate, events)
    record = with_input(gate.record, input_id, (*gate.record[input_id], *events))
    return replace(gate, record=record, in_flight_bytes=size_bytes)


def captures(gate: GateState, input_id: int, events: tuple[Event, ...]) -> tuple[Effect, ...]:
    """Return the effects by which events are recorded."""
    assert gate.pending is not None
    return tuple(Effect("record", input_id, (gate.pending.checkpoint_id, event)) for event in events)


def declined(gate: GateState, reason: Reason) -> Effect:
    """Return the effect by which the pending checkpoint is aborted here."""
    assert gate.pending is not None
    return Effect("decline", NO_INPUT, (gate.pending.checkpoint_id, reason))


def closed(gate: GateState, checkpoint_id: int) -> GateState:
    """The gate between checkpoints, with everything up to that id done; what waits is in line, input by input."""
    return replace(
        gate,
        pending=None,
        arrived=frozenset(),
        line=(*gate.line, *waiting(gate)),
        last_terminated_id=checkpoint_id,
        first_ns=0,
        triggers=tuple(each for each in gate.triggers if each[0] > checkpoint_id),
        taking=False,
        unaligned=False,
        switched=False,
        record=((),) * gate.rules.num_inputs,
        in_flight_bytes=0,
    )
