"""What a row can ask: each guard answers for anything that can happen, and its name reads as a phrase."""

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
from barrierlab.model.checkpoint.tables.gate import Gate
from barrierlab.model.checkpoint.tables.happenings import (
    NO_INPUT,
    Abort,
    Arrival,
    Clock,
    Failed,
    Forwarded,
    Happening,
    OutputPassed,
    Overtaking,
    Release,
    Released,
    Taken,
    Triggered,
)

# What a happening is about.


def message_of(happening: Happening) -> StreamMessage | None:
    """The message that is offered, if one is."""
    return happening.message if isinstance(happening, Arrival | Overtaking | Released) else None


def input_of(happening: Happening) -> int:
    """The input of that message, or `NO_INPUT`."""
    return happening.input_id if isinstance(happening, Arrival | Overtaking | Released) else NO_INPUT


def checkpoint_of(happening: Happening) -> int:
    """The checkpoint that a barrier, a cancel marker, an abort or a trigger is about; 0, which is none, for others."""
    about = message_of(happening) or happening
    return about.checkpoint_id if isinstance(about, CheckpointBarrier | CancelBarrier | Abort | Triggered) else 0


def time_of(happening: Happening) -> int:
    """When it happens; 0 where that does not matter."""
    return happening.at_ns if isinstance(happening, Arrival | Overtaking | Released | Clock) else 0


def overtaken(gate: Gate, happening: Happening) -> tuple[Event, ...]:
    """The events that a barrier has passed: those that its input still holds, and those of the channel."""
    if not isinstance(happening, Overtaking):
        return ()
    passed = (*gate.held[happening.input_id], *happening.ahead)
    return tuple(message for message in passed if type(message) is Event)


def size_of_all(gate: Gate, events: tuple[Event, ...]) -> int:
    """What events count in bytes."""
    return sum(map(gate.rules.size_of, events))


def flagged(barrier: CheckpointBarrier) -> CheckpointBarrier:
    """The barrier with the flag that asks for an unaligned part."""
    return CheckpointBarrier(barrier.checkpoint_id, barrier.epoch, barrier.flags | UNALIGNED_FLAG)


# What happens.


def event(gate: Gate, happening: Happening) -> bool:
    return type(message_of(happening)) is Event


def watermark(gate: Gate, happening: Happening) -> bool:
    return type(message_of(happening)) is Watermark


def barrier(gate: Gate, happening: Happening) -> bool:
    return type(message_of(happening)) is CheckpointBarrier


def cancel(gate: Gate, happening: Happening) -> bool:
    return type(message_of(happening)) is CancelBarrier


def end(gate: Gate, happening: Happening) -> bool:
    return type(message_of(happening)) is EndOfInput


def release(gate: Gate, happening: Happening) -> bool:
    return isinstance(happening, Release)


def image_taken(gate: Gate, happening: Happening) -> bool:
    return isinstance(happening, Taken) and gate.taking


def image_failed(gate: Gate, happening: Happening) -> bool:
    return isinstance(happening, Failed) and gate.taking


def barrier_gone(gate: Gate, happening: Happening) -> bool:
    return isinstance(happening, Forwarded) and gate.taking and gate.unaligned


def output_passed(gate: Gate, happening: Happening) -> bool:
    return isinstance(happening, OutputPassed)


def abort(gate: Gate, happening: Happening) -> bool:
    return isinstance(happening, Abort)


def trigger(gate: Gate, happening: Happening) -> bool:
    return isinstance(happening, Triggered)


def clock(gate: Gate, happening: Happening) -> bool:
    return isinstance(happening, Clock)


# Which checkpoint it is about.


def of_an_older_checkpoint(gate: Gate, happening: Happening) -> bool:
    checkpoint_id = checkpoint_of(happening)
    return checkpoint_id <= gate.last_done or (gate.pending is not None and checkpoint_id < gate.pending.checkpoint_id)


def of_the_pending_checkpoint(gate: Gate, happening: Happening) -> bool:
    return gate.pending is not None and checkpoint_of(happening) == gate.pending.checkpoint_id


def of_a_newer_checkpoint(gate: Gate, happening: Happening) -> bool:
    return not of_an_older_checkpoint(gate, happening) and not of_the_pending_checkpoint(gate, happening)


def of_no_older_checkpoint(gate: Gate, happening: Happening) -> bool:
    return not of_an_older_checkpoint(gate, happening)


def of_none_that_is_done(gate: Gate, happening: Happening) -> bool:
    return checkpoint_of(happening) > gate.last_done


def of_one_that_is_done(gate: Gate, happening: Happening) -> bool:
    return checkpoint_of(happening) <= gate.last_done


def no_contradiction(gate: Gate, happening: Happening) -> bool:
    """Epoch and flags are those of the pending checkpoint; the flag alone is none where a task may have switched."""
    barrier, pending = message_of(happening), gate.pending
    if not of_the_pending_checkpoint(gate, happening) or type(barrier) is not CheckpointBarrier or pending is None:
        return True
    return barrier == pending if gate.rules.flag_matters else flagged(barrier) == flagged(pending)


def a_contradiction(gate: Gate, happening: Happening) -> bool:
    return not no_contradiction(gate, happening)


# How things stand.


def between_checkpoints(gate: Gate, happening: Happening) -> bool:
    return gate.pending is None


def during_a_checkpoint(gate: Gate, happening: Happening) -> bool:
    return gate.pending is not None


def while_aligning(gate: Gate, happening: Happening) -> bool:
    return gate.aligning


def while_recording(gate: Gate, happening: Happening) -> bool:
    return gate.recording


def before_recording(gate: Gate, happening: Happening) -> bool:
    return gate.pending is None or gate.aligning


def of_an_aligned_part(gate: Gate, happening: Happening) -> bool:
    return not gate.unaligned


def of_an_unaligned_part(gate: Gate, happening: Happening) -> bool:
    return gate.unaligned


def while_the_barrier_leaves(gate: Gate, happening: Happening) -> bool:
    return gate.unaligned and gate.taking


def with_an_open_input(gate: Gate, happening: Happening) -> bool:
    return len(gate.ended) < gate.rules.num_inputs


def with_every_input_ended(gate: Gate, happening: Happening) -> bool:
    return not with_an_open_input(gate, happening)


def its_barrier_in(gate: Gate, happening: Happening) -> bool:
    return input_of(happening) in gate.arrived


def its_barrier_missing(gate: Gate, happening: Happening) -> bool:
    return input_of(happening) not in gate.arrived


def the_last_to_come(gate: Gate, happening: Happening) -> bool:
    """No other open input is without its barrier (of the checkpoint that begins, if none is pending)."""
    inputs = frozenset(range(gate.rules.num_inputs))
    return inputs - gate.ended - gate.arrived <= {input_of(happening)}


def others_to_come(gate: Gate, happening: Happening) -> bool:
    return not the_last_to_come(gate, happening)


def every_barrier_in(gate: Gate, happening: Happening) -> bool:
    return not gate.missing()


def barriers_to_come(gate: Gate, happening: Happening) -> bool:
    return bool(gate.missing())


# Whether a message has its turn.


def is_early_news(gate: Gate, happening: Arrival) -> bool:
    """What is said about the pending checkpoint, or an older one, is heeded although its input waits."""
    if gate.pending is None or not gate.is_waiting(happening.input_id):
        return False
    checkpoint_id, pending_id = checkpoint_of(happening), gate.pending.checkpoint_id
    if type(happening.message) is CheckpointBarrier:
        return checkpoint_id <= pending_id
    return type(happening.message) is CancelBarrier and checkpoint_id == pending_id


def is_for_later(gate: Gate, happening: Arrival | Released) -> bool:
    """Of a newer checkpoint, on an input whose barrier is in while others are missing (protocol rule 17)."""
    newer = isinstance(happening.message, CheckpointBarrier | CancelBarrier) and of_a_newer_checkpoint(gate, happening)
    return newer and gate.recording and happening.input_id in gate.arrived


def ends_what_is_counted(gate: Gate, happening: Arrival) -> bool:
    """An end behind the barrier of its input, where inputs do not wait: a task that has ended sends no barrier."""
    is_end = type(happening.message) is EndOfInput
    return is_end and not gate.rules.blocks and gate.aligning and happening.input_id in gate.arrived


def takes_effect(gate: Gate, happening: Happening) -> bool:
    """It is the message's turn: nothing waits before it, and nothing keeps it waiting."""
    if isinstance(happening, Overtaking):
        return not may_not_overtake(gate, happening) and not too_much_overtaken(gate, happening)
    return isinstance(happening, Arrival | Released) and not has_to_wait(gate, happening)


def has_to_wait(gate: Gate, happening: Happening) -> bool:
    if isinstance(happening, Released):
        return is_for_later(gate, happening)
    if not isinstance(happening, Arrival) or is_early_news(gate, happening):
        return False
    ahead = bool(gate.held[happening.input_id]) or gate.is_waiting(happening.input_id)
    return ahead or is_for_later(gate, happening) or ends_what_is_counted(gate, happening)


def may_not_overtake(gate: Gate, happening: Happening) -> bool:
    """It is offered ahead of its place, and must keep that: here nothing may, or its input has an older one in."""
    if not isinstance(happening, Overtaking):
        return False
    behind_an_older = of_a_newer_checkpoint(gate, happening) and happening.input_id in gate.arrived
    return not gate.rules.may_overtake or behind_an_older


def too_much_overtaken(gate: Gate, happening: Happening) -> bool:
    """It may overtake, but what it has passed is more than may be recorded (protocol rule 18)."""
    if not isinstance(happening, Overtaking) or may_not_overtake(gate, happening):
        return False
    if of_an_older_checkpoint(gate, happening) or happening.input_id in gate.arrived:
        return False
    recorded = gate.in_flight_bytes if of_the_pending_checkpoint(gate, happening) else 0
    return recorded + size_of_all(gate, overtaken(gate, happening)) > gate.rules.max_inflight_buffer_bytes


# Whether there is room.


def is_full(gate: Gate, happening: Happening) -> bool:
    input_id = input_of(happening)
    return input_id != NO_INPUT and len(gate.held[input_id]) >= gate.rules.max_buffer_per_input


def is_over(gate: Gate, happening: Happening) -> bool:
    message = message_of(happening)
    size_bytes = 0 if message is None else gate.rules.size_of(message)
    return gate.held_bytes() + size_bytes > gate.rules.max_buffer_memory_bytes


def with_room(gate: Gate, happening: Happening) -> bool:
    return not is_full(gate, happening) and not is_over(gate, happening)


def too_much_held(gate: Gate, happening: Happening) -> bool:
    """Only the end of the alignment can make room (protocol rule 7)."""
    return not is_full(gate, happening) and is_over(gate, happening) and gate.aligning and not gate.line


def without_room(gate: Gate, happening: Happening) -> bool:
    return not with_room(gate, happening) and not too_much_held(gate, happening)


def something_to_release(gate: Gate, happening: Happening) -> bool:
    return bool(gate.line)


def nothing_to_release(gate: Gate, happening: Happening) -> bool:
    return not gate.line


def in_flight(gate: Gate, happening: Happening) -> bool:
    """It was sent before its sender's cut, and comes in after this task's."""
    return gate.recording and its_barrier_missing(gate, happening)


def not_in_flight(gate: Gate, happening: Happening) -> bool:
    return not in_flight(gate, happening)


def within_the_limit(gate: Gate, happening: Happening) -> bool:
    """What is recorded, with what is added now, is not more than may be (protocol rule 18)."""
    added_bytes = happening.size_bytes if isinstance(happening, OutputPassed) else 0
    message = message_of(happening)
    if type(message) is Event:
        added_bytes = gate.rules.size_of(message)
    return gate.in_flight_bytes + added_bytes <= gate.rules.max_inflight_buffer_bytes


def over_the_limit(gate: Gate, happening: Happening) -> bool:
    return not within_the_limit(gate, happening)


# Who goes unaligned, and when.


def who_may_overtake(gate: Gate, happening: Happening) -> bool:
    return gate.rules.may_overtake


def who_may_not_overtake(gate: Gate, happening: Happening) -> bool:
    return not gate.rules.may_overtake


def asking_to_go_unaligned(gate: Gate, happening: Happening) -> bool:
    """It is flagged, or goes ahead of its place, or every checkpoint is to be unaligned; and this task may."""
    barrier = message_of(happening)
    if not gate.rules.may_overtake or type(barrier) is not CheckpointBarrier:
        return False
    return barrier.is_unaligned or isinstance(happening, Overtaking) or gate.rules.force_unaligned


def asking_for_nothing(gate: Gate, happening: Happening) -> bool:
    return not asking_to_go_unaligned(gate, happening)


def overdue(gate: Gate, happening: Happening) -> bool:
    """It comes later than the threshold after the trigger: strictly (Flink: R8)."""
    if not gate.rules.may_overtake:
        return False
    triggered_ns = gate.triggered_ns()
    if triggered_ns is None:
        triggered_ns = dict(gate.triggers).get(checkpoint_of(happening), time_of(happening))
    return time_of(happening) - triggered_ns > gate.rules.alignment_timeout_threshold_ns


def in_time(gate: Gate, happening: Happening) -> bool:
    return not overdue(gate, happening)


def too_late(gate: Gate, happening: Happening) -> bool:
    expires_ns = gate.expires_ns()
    return expires_ns is not None and time_of(happening) >= expires_ns


def time_to_switch(gate: Gate, happening: Happening) -> bool:
    switches_ns = gate.switches_ns()
    return not too_late(gate, happening) and switches_ns is not None and time_of(happening) >= switches_ns


def nothing_due(gate: Gate, happening: Happening) -> bool:
    return not too_late(gate, happening) and not time_to_switch(gate, happening)
