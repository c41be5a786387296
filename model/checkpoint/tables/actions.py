"""What a row can do: each action gives the next gate and its effects, and a row does its actions in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from barrierlab.impl.messages import CancelBarrier, CheckpointBarrier, EndOfInput, Event
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.tables.gate import Gate
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
    Effect,
    Failed,
    OutputPassed,
    Part,
    Release,
    Released,
    Stimulus,
    Triggered,
)

T = TypeVar("T")
Step = tuple[Gate, tuple[Effect, ...]]

# Messages.


def deliver(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (Effect("deliver", input_of(stimulus), message_of(stimulus)),)


def hold(gate: Gate, stimulus: Stimulus) -> Step:
    input_id, message = input_of(stimulus), message_of(stimulus)
    assert message is not None
    held = with_input(gate.held, input_id, (*gate.held[input_id], message))
    return replace(gate, held=held), (Effect("hold", input_id, message),)


def refuse(gate: Gate, stimulus: Stimulus) -> Step:
    """It stays in its channel."""
    return gate, (Effect("refuse", input_of(stimulus), message_of(stimulus)),)


def ignore(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (Effect("ignore", input_of(stimulus), message_of(stimulus)),)


def end_input(gate: Gate, stimulus: Stimulus) -> Step:
    input_id = input_of(stimulus)
    ended = replace(gate, ended=gate.ended | {input_id}, arrived=gate.arrived - {input_id})
    return ended, (Effect("end", input_id, EndOfInput()),)


# How a checkpoint begins and goes on.


def begin(gate: Gate, stimulus: Stimulus) -> Step:
    barrier = message_of(stimulus)
    assert type(barrier) is CheckpointBarrier
    assert gate.pending is None
    return replace(gate, pending=barrier, first_ns=time_of(stimulus)), ()


def mark(gate: Gate, stimulus: Stimulus) -> Step:
    """The barrier of this input is in; what the input holds is behind it."""
    input_id = input_of(stimulus)
    line = tuple(each for each in gate.line if each != input_id)
    return replace(gate, arrived=gate.arrived | {input_id}, line=line if gate.aligning else gate.line), ()


def block(gate: Gate, stimulus: Stimulus) -> Step:
    assert gate.pending is not None
    return gate, (Effect("block", input_of(stimulus), gate.pending.checkpoint_id),)


def pass_the_flag_on(gate: Gate, stimulus: Stimulus) -> Step:
    """Who cannot go unaligned hands the wish on to those behind it."""
    barrier, pending = message_of(stimulus), gate.pending
    assert type(barrier) is CheckpointBarrier
    assert pending is not None
    return replace(gate, pending=flagged(pending) if barrier.is_unaligned else pending), ()


def snapshot(gate: Gate, stimulus: Stimulus) -> Step:
    """Ask for the image; the answer is `Taken` or `Failed`."""
    return replace(gate, taking=True), (Effect("snapshot", NO_INPUT, gate.pending),)


def forward(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (Effect("forward", NO_INPUT, gate.pending),)


# How it goes unaligned.


def go_unaligned(gate: Gate, stimulus: Stimulus) -> Step:
    assert gate.pending is not None
    return replace(gate, pending=flagged(gate.pending), unaligned=True), ()


def switch(gate: Gate, stimulus: Stimulus) -> Step:
    gate, _ = go_unaligned(gate, stimulus)
    return replace(gate, switched=True), ()


def record(gate: Gate, stimulus: Stimulus) -> Step:
    event = message_of(stimulus)
    assert type(event) is Event
    return recorded(gate, input_of(stimulus), (event,)), told(gate, input_of(stimulus), (event,))


def record_what_it_passed(gate: Gate, stimulus: Stimulus) -> Step:
    return recorded(gate, input_of(stimulus), overtaken(gate, stimulus)), ()


def tell_what_it_passed(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, told(gate, input_of(stimulus), overtaken(gate, stimulus))


def tell_what_was_passed(gate: Gate, stimulus: Stimulus) -> Step:
    """Nothing else has been recorded when the barrier has just gone."""
    effects = tuple(effect for input_id, events in enumerate(gate.record) for effect in told(gate, input_id, events))
    return gate, effects


def count_output(gate: Gate, stimulus: Stimulus) -> Step:
    assert isinstance(stimulus, OutputPassed)
    return replace(gate, in_flight_bytes=gate.in_flight_bytes + stimulus.size_bytes), ()


def start_recording(gate: Gate, stimulus: Stimulus) -> Step:
    """Nothing waits for the others any more."""
    return wait_with_what_is_newer(replace(gate, taking=False, line=(*gate.line, *waiting(gate))), stimulus)


def wait_with_what_is_newer(gate: Gate, stimulus: Stimulus) -> Step:
    """An input whose barrier is in, and that has one of a newer checkpoint next, waits with it (protocol rule 17)."""
    if not gate.recording or gate.pending is None:
        return gate, ()
    pending_id, line = gate.pending.checkpoint_id, []
    for input_id in gate.line:
        first = gate.held[input_id][0]
        newer = isinstance(first, CheckpointBarrier | CancelBarrier) and first.checkpoint_id > pending_id
        if not newer or gate.is_missing(input_id):
            line.append(input_id)
    return replace(gate, line=tuple(line)), ()


# How it ends.


def complete(gate: Gate, stimulus: Stimulus) -> Step:
    """Acknowledge the part."""
    assert gate.pending is not None
    part = Part(gate.pending, gate.unaligned, gate.switched, gate.record)
    return gate, (Effect("complete", NO_INPUT, part),)


def decline_failed(gate: Gate, stimulus: Stimulus) -> Step:
    assert isinstance(stimulus, Failed)
    return gate, (declined(gate, stimulus.reason),)


def decline_subsumed(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (declined(gate, Reason.SUBSUMED),)


def decline_expired(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (declined(gate, Reason.EXPIRED),)


def decline_contradiction(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (declined(gate, Reason.BARRIER_MISMATCH),)


def decline_too_much_held(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (declined(gate, Reason.BUFFER_LIMIT),)


def decline_too_much_in_flight(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (declined(gate, Reason.IN_FLIGHT_LIMIT),)


def decline_it(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (Effect("decline", NO_INPUT, (checkpoint_of(stimulus), Reason.IN_FLIGHT_LIMIT)),)


def send_cancel(gate: Gate, stimulus: Stimulus) -> Step:
    assert gate.pending is not None
    return gate, (Effect("cancel", NO_INPUT, gate.pending.checkpoint_id),)


def send_cancel_of_it(gate: Gate, stimulus: Stimulus) -> Step:
    return gate, (Effect("cancel", NO_INPUT, checkpoint_of(stimulus)),)


def resume(gate: Gate, stimulus: Stimulus) -> Step:
    assert gate.pending is not None
    return gate, (Effect("resume", NO_INPUT, gate.pending.checkpoint_id),)


def resume_for_it(gate: Gate, stimulus: Stimulus) -> Step:
    """What resumes is what waited: a cancel of a newer checkpoint closes the pending one silently (rule 10)."""
    waits = gate.rules.blocks and gate.pending is not None and gate.aligning
    return resume(gate, stimulus) if waits else (gate, (Effect("resume", NO_INPUT, checkpoint_of(stimulus)),))


def close(gate: Gate, stimulus: Stimulus) -> Step:
    """The pending checkpoint is done with, and so is every older one; what waits may go."""
    assert gate.pending is not None
    return closed(gate, gate.pending.checkpoint_id), ()


def close_up_to_it(gate: Gate, stimulus: Stimulus) -> Step:
    return closed(gate, checkpoint_of(stimulus)), ()


def look_up_again(gate: Gate, stimulus: Stimulus) -> Step:
    """The gate has changed: another row applies now."""
    return gate.step(stimulus)


# Releases, triggers.


def let_one_go(gate: Gate, stimulus: Stimulus) -> Step:
    """The first message of the input whose turn it is; the input is back in line before that takes effect."""
    assert isinstance(stimulus, Release)
    input_id, *others = gate.line
    message, *rest = gate.held[input_id]
    line = (*others, input_id) if rest else tuple(others)
    gate = replace(gate, held=with_input(gate.held, input_id, tuple(rest)), line=line)
    return gate.step(Released(input_id, message, stimulus.at_ns))


def note_the_trigger(gate: Gate, stimulus: Stimulus) -> Step:
    assert isinstance(stimulus, Triggered)
    triggers = dict(gate.triggers) | {stimulus.checkpoint_id: stimulus.at_ns}
    return replace(gate, triggers=tuple(sorted(triggers.items()))), ()


# What they share.


def with_input(each: tuple[T, ...], input_id: int, value: T) -> tuple[T, ...]:
    """`each`, but for one input."""
    return (*each[:input_id], value, *each[input_id + 1 :])


def waiting(gate: Gate) -> tuple[int, ...]:
    """The inputs that hold something and are not in line."""
    return tuple(i for i, messages in enumerate(gate.held) if messages and i not in gate.line)


def recorded(gate: Gate, input_id: int, events: tuple[Event, ...]) -> Gate:
    """The gate with these events in the record."""
    size_bytes = gate.in_flight_bytes + size_of_all(gate, events)
    record = with_input(gate.record, input_id, (*gate.record[input_id], *events))
    return replace(gate, record=record, in_flight_bytes=size_bytes)


def told(gate: Gate, input_id: int, events: tuple[Event, ...]) -> tuple[Effect, ...]:
    """That events are recorded."""
    assert gate.pending is not None
    return tuple(Effect("record", input_id, (gate.pending.checkpoint_id, event)) for event in events)


def declined(gate: Gate, reason: Reason) -> Effect:
    """That the pending checkpoint is aborted here."""
    assert gate.pending is not None
    return Effect("decline", NO_INPUT, (gate.pending.checkpoint_id, reason))


def closed(gate: Gate, checkpoint_id: int) -> Gate:
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
