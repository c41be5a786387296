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
from barrierlab.model.checkpoint.tables.happenings import (
    NO_INPUT,
    Effect,
    Failed,
    Happening,
    OutputPassed,
    Part,
    Release,
    Released,
    Triggered,
)

T = TypeVar("T")
Step = tuple[Gate, tuple[Effect, ...]]

# Messages.


def deliver(gate: Gate, happening: Happening) -> Step:
    return gate, (Effect("deliver", input_of(happening), message_of(happening)),)


def hold(gate: Gate, happening: Happening) -> Step:
    input_id, message = input_of(happening), message_of(happening)
    assert message is not None
    held = with_input(gate.held, input_id, (*gate.held[input_id], message))
    return replace(gate, held=held), (Effect("hold", input_id, message),)


def refuse(gate: Gate, happening: Happening) -> Step:
    """It stays in its channel."""
    return gate, (Effect("refuse", input_of(happening), message_of(happening)),)


def ignore(gate: Gate, happening: Happening) -> Step:
    return gate, (Effect("ignore", input_of(happening), message_of(happening)),)


def end_input(gate: Gate, happening: Happening) -> Step:
    input_id = input_of(happening)
    ended = replace(gate, ended=gate.ended | {input_id}, arrived=gate.arrived - {input_id})
    return ended, (Effect("end", input_id, EndOfInput()),)


# How a checkpoint begins and goes on.


def begin(gate: Gate, happening: Happening) -> Step:
    barrier = message_of(happening)
    assert type(barrier) is CheckpointBarrier
    assert gate.pending is None
    return replace(gate, pending=barrier, first_ns=time_of(happening)), ()


def mark(gate: Gate, happening: Happening) -> Step:
    """The barrier of this input is in; what the input holds is behind it."""
    input_id = input_of(happening)
    line = tuple(each for each in gate.line if each != input_id)
    return replace(gate, arrived=gate.arrived | {input_id}, line=line if gate.aligning else gate.line), ()


def block(gate: Gate, happening: Happening) -> Step:
    assert gate.pending is not None
    return gate, (Effect("block", input_of(happening), gate.pending.checkpoint_id),)


def pass_the_flag_on(gate: Gate, happening: Happening) -> Step:
    """Who cannot go unaligned hands the wish on to those behind it."""
    barrier, pending = message_of(happening), gate.pending
    assert type(barrier) is CheckpointBarrier
    assert pending is not None
    return replace(gate, pending=flagged(pending) if barrier.is_unaligned else pending), ()


def snapshot(gate: Gate, happening: Happening) -> Step:
    """Ask for the image; the answer is `Taken` or `Failed`."""
    return replace(gate, taking=True), (Effect("snapshot", NO_INPUT, gate.pending),)


def forward(gate: Gate, happening: Happening) -> Step:
    return gate, (Effect("forward", NO_INPUT, gate.pending),)


# How it goes unaligned.


def go_unaligned(gate: Gate, happening: Happening) -> Step:
    assert gate.pending is not None
    return replace(gate, pending=flagged(gate.pending), unaligned=True), ()


def switch(gate: Gate, happening: Happening) -> Step:
    gate, _ = go_unaligned(gate, happening)
    return replace(gate, switched=True), ()


def record(gate: Gate, happening: Happening) -> Step:
    event = message_of(happening)
    assert type(event) is Event
    return recorded(gate, input_of(happening), (event,)), told(gate, input_of(happening), (event,))


def record_what_it_passed(gate: Gate, happening: Happening) -> Step:
    return recorded(gate, input_of(happening), overtaken(gate, happening)), ()


def tell_what_it_passed(gate: Gate, happening: Happening) -> Step:
    return gate, told(gate, input_of(happening), overtaken(gate, happening))


def tell_what_was_passed(gate: Gate, happening: Happening) -> Step:
    """Nothing else has been recorded when the barrier has just gone."""
    effects = tuple(effect for input_id, events in enumerate(gate.record) for effect in told(gate, input_id, events))
    return gate, effects


def count_output(gate: Gate, happening: Happening) -> Step:
    assert isinstance(happening, OutputPassed)
    return replace(gate, in_flight_bytes=gate.in_flight_bytes + happening.size_bytes), ()


def start_recording(gate: Gate, happening: Happening) -> Step:
    """Nothing waits for the others any more."""
    return wait_with_what_is_newer(replace(gate, taking=False, line=(*gate.line, *waiting(gate))), happening)


def wait_with_what_is_newer(gate: Gate, happening: Happening) -> Step:
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


def complete(gate: Gate, happening: Happening) -> Step:
    """Acknowledge the part."""
    assert gate.pending is not None
    part = Part(gate.pending, gate.unaligned, gate.switched, gate.record)
    return gate, (Effect("complete", NO_INPUT, part),)


def decline_failed(gate: Gate, happening: Happening) -> Step:
    assert isinstance(happening, Failed)
    return gate, (declined(gate, happening.reason),)


def decline_subsumed(gate: Gate, happening: Happening) -> Step:
    return gate, (declined(gate, Reason.SUBSUMED),)


def decline_expired(gate: Gate, happening: Happening) -> Step:
    return gate, (declined(gate, Reason.EXPIRED),)


def decline_contradiction(gate: Gate, happening: Happening) -> Step:
    return gate, (declined(gate, Reason.BARRIER_MISMATCH),)


def decline_too_much_held(gate: Gate, happening: Happening) -> Step:
    return gate, (declined(gate, Reason.BUFFER_LIMIT),)


def decline_too_much_in_flight(gate: Gate, happening: Happening) -> Step:
    return gate, (declined(gate, Reason.IN_FLIGHT_LIMIT),)


def decline_it(gate: Gate, happening: Happening) -> Step:
    return gate, (Effect("decline", NO_INPUT, (checkpoint_of(happening), Reason.IN_FLIGHT_LIMIT)),)


def send_cancel(gate: Gate, happening: Happening) -> Step:
    assert gate.pending is not None
    return gate, (Effect("cancel", NO_INPUT, gate.pending.checkpoint_id),)


def send_cancel_of_it(gate: Gate, happening: Happening) -> Step:
    return gate, (Effect("cancel", NO_INPUT, checkpoint_of(happening)),)


def resume(gate: Gate, happening: Happening) -> Step:
    assert gate.pending is not None
    return gate, (Effect("resume", NO_INPUT, gate.pending.checkpoint_id),)


def resume_for_it(gate: Gate, happening: Happening) -> Step:
    """What resumes is what waited: a cancel of a newer checkpoint closes the pending one silently (rule 10)."""
    waits = gate.rules.blocks and gate.pending is not None and gate.aligning
    return resume(gate, happening) if waits else (gate, (Effect("resume", NO_INPUT, checkpoint_of(happening)),))


def close(gate: Gate, happening: Happening) -> Step:
    """The pending checkpoint is done with, and so is every older one; what waits may go."""
    assert gate.pending is not None
    return closed(gate, gate.pending.checkpoint_id), ()


def close_up_to_it(gate: Gate, happening: Happening) -> Step:
    return closed(gate, checkpoint_of(happening)), ()


def look_up_again(gate: Gate, happening: Happening) -> Step:
    """The gate has changed: another row applies now."""
    return gate.step(happening)


# Releases, triggers.


def let_one_go(gate: Gate, happening: Happening) -> Step:
    """The first message of the input whose turn it is; the input is back in line before that takes effect."""
    assert isinstance(happening, Release)
    input_id, *others = gate.line
    message, *rest = gate.held[input_id]
    line = (*others, input_id) if rest else tuple(others)
    gate = replace(gate, held=with_input(gate.held, input_id, tuple(rest)), line=line)
    return gate.step(Released(input_id, message, happening.at_ns))


def note_the_trigger(gate: Gate, happening: Happening) -> Step:
    assert isinstance(happening, Triggered)
    triggers = dict(gate.triggers) | {happening.checkpoint_id: happening.at_ns}
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
    """That the pending checkpoint is given up here."""
    assert gate.pending is not None
    return Effect("decline", NO_INPUT, (gate.pending.checkpoint_id, reason))


def closed(gate: Gate, checkpoint_id: int) -> Gate:
    """The gate between checkpoints, with everything up to that id done; what waits is in line, input by input."""
    return replace(
        gate,
        pending=None,
        arrived=frozenset(),
        line=(*gate.line, *waiting(gate)),
        last_done=checkpoint_id,
        first_ns=0,
        triggers=tuple(each for each in gate.triggers if each[0] > checkpoint_id),
        taking=False,
        unaligned=False,
        switched=False,
        record=((),) * gate.rules.num_inputs,
        in_flight_bytes=0,
    )
