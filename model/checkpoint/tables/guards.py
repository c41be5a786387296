"""The guards of a row: each answers for anything that can happen, and its name reads as a phrase."""

from __future__ import annotations

from barrierlab.impl.messages import (
    UNALIGNED_FLAG,
    CancelBarrier,
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
)
from barrierlab.model.checkpoint.tables.gate import GateState
from barrierlab.model.checkpoint.tables.stimuli import (
    ARRIVALS,
    NO_INPUT,
    Abort,
    Arrival,
    ClockReading,
    Drained,
    DrainOne,
    Failed,
    Forwarded,
    OutputPassed,
    Overtaking,
    Stimulus,
    Taken,
    TriggerNoted,
)

# Kinds as tuples, as `ARRIVALS`.
_BARRIERS = (CheckpointBarrier, CancelBarrier)
_IN_TURN = (Arrival, Drained)
_OFFERS = (*ARRIVALS, Drained)
_DATED = (*ARRIVALS, Drained, ClockReading)
_ABOUT_A_CHECKPOINT = (CheckpointBarrier, CancelBarrier, Abort, TriggerNoted)

# What a stimulus is about.


def message_of(stimulus: Stimulus) -> StreamMessage | None:
    """Return the message that is offered, if one is."""
    return stimulus.message if isinstance(stimulus, _OFFERS) else None


def input_of(stimulus: Stimulus) -> int:
    """The input of that message, or `NO_INPUT`."""
    return stimulus.input_id if isinstance(stimulus, _OFFERS) else NO_INPUT


def checkpoint_of(stimulus: Stimulus) -> int:
    """The checkpoint that a barrier, a cancel marker, an abort or a trigger is about; 0, which is none, for others."""
    about = message_of(stimulus) or stimulus
    return about.checkpoint_id if isinstance(about, _ABOUT_A_CHECKPOINT) else 0


def time_of(stimulus: Stimulus) -> int:
    """Return when it happens; 0 where that does not matter."""
    return stimulus.at_ns if isinstance(stimulus, _DATED) else 0


def overtaken(gate: GateState, stimulus: Stimulus) -> tuple[Event, ...]:
    """Return the events that a barrier has passed: those that its input still holds, and those of the channel."""
    if not isinstance(stimulus, Overtaking):
        return ()
    passed = (*gate.buffered[stimulus.input_id], *stimulus.ahead)
    return tuple(message for message in passed if type(message) is Event)


def size_of_all(gate: GateState, events: tuple[Event, ...]) -> int:
    """Return what events count in bytes."""
    return sum(map(gate.rules.size_of, events))


def flagged(barrier: CheckpointBarrier) -> CheckpointBarrier:
    """The barrier with the flag that asks for an unaligned part."""
    return CheckpointBarrier(barrier.checkpoint_id, barrier.epoch, barrier.flags | UNALIGNED_FLAG)


# What happens.


def event(gate: GateState, stimulus: Stimulus) -> bool:
    return type(message_of(stimulus)) is Event


def watermark(gate: GateState, stimulus: Stimulus) -> bool:
    return type(message_of(stimulus)) is Watermark


def barrier(gate: GateState, stimulus: Stimulus) -> bool:
    return type(message_of(stimulus)) is CheckpointBarrier


def cancel(gate: GateState, stimulus: Stimulus) -> bool:
    return type(message_of(stimulus)) is CancelBarrier


def end(gate: GateState, stimulus: Stimulus) -> bool:
    return type(message_of(stimulus)) is EndOfInput


def drain(gate: GateState, stimulus: Stimulus) -> bool:
    return isinstance(stimulus, DrainOne)


def image_taken(gate: GateState, stimulus: Stimulus) -> bool:
    return isinstance(stimulus, Taken) and gate.taking


def image_failed(gate: GateState, stimulus: Stimulus) -> bool:
    return isinstance(stimulus, Failed) and gate.taking


def barrier_gone(gate: GateState, stimulus: Stimulus) -> bool:
    return isinstance(stimulus, Forwarded) and gate.taking and gate.unaligned


def output_passed(gate: GateState, stimulus: Stimulus) -> bool:
    return isinstance(stimulus, OutputPassed)


def abort(gate: GateState, stimulus: Stimulus) -> bool:
    return isinstance(stimulus, Abort)


def trigger(gate: GateState, stimulus: Stimulus) -> bool:
    return isinstance(stimulus, TriggerNoted)


def clock(gate: GateState, stimulus: Stimulus) -> bool:
    return isinstance(stimulus, ClockReading)


# Which checkpoint it is about.


def of_an_older_checkpoint(gate: GateState, stimulus: Stimulus) -> bool:
    checkpoint_id = checkpoint_of(stimulus)
    return checkpoint_id <= gate.last_terminated_id or (
        gate.pending is not None and checkpoint_id < gate.pending.checkpoint_id
    )


def of_the_pending_checkpoint(gate: GateState, stimulus: Stimulus) -> bool:
    return gate.pending is not None and checkpoint_of(stimulus) == gate.pending.checkpoint_id


def of_a_newer_checkpoint(gate: GateState, stimulus: Stimulus) -> bool:
    return not of_an_older_checkpoint(gate, stimulus) and not of_the_pending_checkpoint(gate, stimulus)


def of_no_older_checkpoint(gate: GateState, stimulus: Stimulus) -> bool:
    return not of_an_older_checkpoint(gate, stimulus)


def of_none_that_is_done(gate: GateState, stimulus: Stimulus) -> bool:
    return checkpoint_of(stimulus) > gate.last_terminated_id


def of_one_that_is_done(gate: GateState, stimulus: Stimulus) -> bool:
    return checkpoint_of(stimulus) <= gate.last_terminated_id


def no_contradiction(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether epoch and flags are as pending; the flag alone may differ where a task may have switched."""
    barrier, pending = message_of(stimulus), gate.pending
    if not of_the_pending_checkpoint(gate, stimulus) or type(barrier) is not CheckpointBarrier or pending is None:
        return True
    return barrier == pending if gate.rules.flag_matters else flagged(barrier) == flagged(pending)


def a_contradiction(gate: GateState, stimulus: Stimulus) -> bool:
    return not no_contradiction(gate, stimulus)


# How things stand.


def between_checkpoints(gate: GateState, stimulus: Stimulus) -> bool:
    return gate.pending is None


def during_a_checkpoint(gate: GateState, stimulus: Stimulus) -> bool:
    return gate.pending is not None


def while_aligning(gate: GateState, stimulus: Stimulus) -> bool:
    return gate.aligning


def while_recording(gate: GateState, stimulus: Stimulus) -> bool:
    return gate.recording


def of_an_aligned_part(gate: GateState, stimulus: Stimulus) -> bool:
    return not gate.unaligned


def of_an_unaligned_part(gate: GateState, stimulus: Stimulus) -> bool:
    return gate.unaligned


def while_the_barrier_leaves(gate: GateState, stimulus: Stimulus) -> bool:
    return gate.unaligned and gate.taking


def with_an_open_input(gate: GateState, stimulus: Stimulus) -> bool:
    return len(gate.ended) < gate.rules.num_inputs


def with_every_input_ended(gate: GateState, stimulus: Stimulus) -> bool:
    return not with_an_open_input(gate, stimulus)


def its_barrier_in(gate: GateState, stimulus: Stimulus) -> bool:
    return input_of(stimulus) in gate.arrived


def its_barrier_missing(gate: GateState, stimulus: Stimulus) -> bool:
    return input_of(stimulus) not in gate.arrived


def last_outstanding(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether no other open input is without its barrier (of the checkpoint that begins, if none is pending)."""
    inputs = frozenset(range(gate.rules.num_inputs))
    return inputs - gate.ended - gate.arrived <= {input_of(stimulus)}


def others_to_come(gate: GateState, stimulus: Stimulus) -> bool:
    return not last_outstanding(gate, stimulus)


def every_barrier_in(gate: GateState, stimulus: Stimulus) -> bool:
    return not gate.missing()


def barriers_to_come(gate: GateState, stimulus: Stimulus) -> bool:
    return bool(gate.missing())


# Whether a message has its turn.


def is_early_news(gate: GateState, stimulus: Arrival) -> bool:
    """Return whether it is about the pending checkpoint, or an older one, and is heeded although its input waits."""
    if gate.pending is None or not gate.is_blocked(stimulus.input_id):
        return False
    checkpoint_id, pending_id = checkpoint_of(stimulus), gate.pending.checkpoint_id
    if type(stimulus.message) is CheckpointBarrier:
        return checkpoint_id <= pending_id
    return type(stimulus.message) is CancelBarrier and checkpoint_id == pending_id


def is_for_later(gate: GateState, stimulus: Arrival | Drained) -> bool:
    """Return whether it is of a newer checkpoint, and its barrier is in while others are missing (protocol rule 17)."""
    newer = isinstance(stimulus.message, _BARRIERS) and of_a_newer_checkpoint(gate, stimulus)
    return newer and gate.recording and stimulus.input_id in gate.arrived


def ends_what_is_counted(gate: GateState, stimulus: Arrival) -> bool:
    """Return whether it is an end behind its input's barrier, where no input waits: an ended task sends no barrier."""
    is_end = type(stimulus.message) is EndOfInput
    return is_end and not gate.rules.blocks and gate.aligning and stimulus.input_id in gate.arrived


def takes_effect(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether it is the message's turn: nothing waits before it, and nothing keeps it waiting."""
    if isinstance(stimulus, Overtaking):
        return not may_not_overtake(gate, stimulus) and not too_much_overtaken(gate, stimulus)
    return isinstance(stimulus, _IN_TURN) and not has_to_wait(gate, stimulus)


def has_to_wait(gate: GateState, stimulus: Stimulus) -> bool:
    if isinstance(stimulus, Drained):
        return is_for_later(gate, stimulus)
    if not isinstance(stimulus, Arrival) or is_early_news(gate, stimulus):
        return False
    ahead = bool(gate.buffered[stimulus.input_id]) or gate.is_blocked(stimulus.input_id)
    return ahead or is_for_later(gate, stimulus) or ends_what_is_counted(gate, stimulus)


def may_not_overtake(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether it is offered ahead of its place, wrongly: nothing may be, or its input has an older one in."""
    if not isinstance(stimulus, Overtaking):
        return False
    behind_an_older = of_a_newer_checkpoint(gate, stimulus) and stimulus.input_id in gate.arrived
    return not gate.rules.may_overtake or behind_an_older


def too_much_overtaken(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether it may overtake, but what it has passed is more than may be recorded (protocol rule 18)."""
    if not isinstance(stimulus, Overtaking) or may_not_overtake(gate, stimulus):
        return False
    if of_an_older_checkpoint(gate, stimulus) or stimulus.input_id in gate.arrived:
        return False
    recorded = gate.in_flight_bytes if of_the_pending_checkpoint(gate, stimulus) else 0
    return recorded + size_of_all(gate, overtaken(gate, stimulus)) > gate.rules.max_inflight_buffer_bytes


# Whether there is room.


def is_full(gate: GateState, stimulus: Stimulus) -> bool:
    input_id = input_of(stimulus)
    return input_id != NO_INPUT and len(gate.buffered[input_id]) >= gate.rules.max_buffer_per_input


def is_over(gate: GateState, stimulus: Stimulus) -> bool:
    message = message_of(stimulus)
    size_bytes = 0 if message is None else gate.rules.size_of(message)
    return gate.buffered_bytes() + size_bytes > gate.rules.max_buffer_memory_bytes


def with_room(gate: GateState, stimulus: Stimulus) -> bool:
    return not is_full(gate, stimulus) and not is_over(gate, stimulus)


def too_much_buffered(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether only the end of the alignment can make room (protocol rule 7)."""
    return not is_full(gate, stimulus) and is_over(gate, stimulus) and gate.aligning and not gate.line


def without_room(gate: GateState, stimulus: Stimulus) -> bool:
    return not with_room(gate, stimulus) and not too_much_buffered(gate, stimulus)


def something_to_drain(gate: GateState, stimulus: Stimulus) -> bool:
    return bool(gate.line)


def nothing_to_drain(gate: GateState, stimulus: Stimulus) -> bool:
    return not gate.line


def in_flight(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether it was sent before its sender's cut, and comes in after this task's."""
    return gate.recording and its_barrier_missing(gate, stimulus)


def not_in_flight(gate: GateState, stimulus: Stimulus) -> bool:
    return not in_flight(gate, stimulus)


def within_the_limit(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether what is recorded, with what is added now, is not more than may be (protocol rule 18)."""
    added_bytes = stimulus.size_bytes if isinstance(stimulus, OutputPassed) else 0
    message = message_of(stimulus)
    if type(message) is Event:
        added_bytes = gate.rules.size_of(message)
    return gate.in_flight_bytes + added_bytes <= gate.rules.max_inflight_buffer_bytes


def over_the_limit(gate: GateState, stimulus: Stimulus) -> bool:
    return not within_the_limit(gate, stimulus)


# Who goes unaligned, and when.


def who_may_overtake(gate: GateState, stimulus: Stimulus) -> bool:
    return gate.rules.may_overtake


def who_may_not_overtake(gate: GateState, stimulus: Stimulus) -> bool:
    return not gate.rules.may_overtake


def asking_to_go_unaligned(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether it is flagged, or goes ahead of its place, or all are to be unaligned; and this task may."""
    barrier = message_of(stimulus)
    if not gate.rules.may_overtake or type(barrier) is not CheckpointBarrier:
        return False
    return barrier.is_unaligned or isinstance(stimulus, Overtaking) or gate.rules.force_unaligned


def asking_for_nothing(gate: GateState, stimulus: Stimulus) -> bool:
    return not asking_to_go_unaligned(gate, stimulus)


def overdue(gate: GateState, stimulus: Stimulus) -> bool:
    """Return whether it comes later than the threshold after the trigger: strictly (Flink: R8)."""
    if not gate.rules.may_overtake:
        return False
    triggered_ns = gate.triggered_ns()
    if triggered_ns is None:
        triggered_ns = dict(gate.triggers).get(checkpoint_of(stimulus), time_of(stimulus))
    return time_of(stimulus) - triggered_ns > gate.rules.alignment_timeout_threshold_ns


def in_time(gate: GateState, stimulus: Stimulus) -> bool:
    return not overdue(gate, stimulus)


def too_late(gate: GateState, stimulus: Stimulus) -> bool:
    expires_ns = gate.expires_ns()
    return expires_ns is not None and time_of(stimulus) >= expires_ns


def time_to_switch(gate: GateState, stimulus: Stimulus) -> bool:
    switches_ns = gate.switches_ns()
    return not too_late(gate, stimulus) and switches_ns is not None and time_of(stimulus) >= switches_ns


def nothing_due(gate: GateState, stimulus: Stimulus) -> bool:
    return not too_late(gate, stimulus) and not time_to_switch(gate, stimulus)
