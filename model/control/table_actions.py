"""The actions of a row of control signals: each gives the next value and what came of it."""

from __future__ import annotations

from dataclasses import replace

from barrierlab.impl.control import BarrierControlSignal, BarrierOverlapError, DuplicateBarrierError
from barrierlab.impl.messages import EndOfInput
from barrierlab.model.checkpoint.tables.stimuli import NO_INPUT, Effect
from barrierlab.model.control.upstreams import ControlStimulus, Delivered, PendingBarrier, Upstreams, upstream_of

UpstreamsStep = tuple[Upstreams, tuple[Effect, ...]]

# Copies.


def begin(upstreams: Upstreams, stimulus: ControlStimulus) -> UpstreamsStep:
    """Begin with this copy, which is the one that will be forwarded (protocol rule 26)."""
    return replace(upstreams, pending=(*upstreams.pending, PendingBarrier(barrier_of(stimulus)))), ()


def arrive(upstreams: Upstreams, stimulus: ControlStimulus) -> UpstreamsStep:
    upstream, turn = upstream_of(stimulus), upstreams.turn(upstream_of(stimulus))
    pending = tuple(
        PendingBarrier(barrier, arrived | {upstream} if barrier is turn else arrived)
        for barrier, arrived in upstreams.pending
    )
    assert turn is not None
    return replace(upstreams, pending=pending), (Effect("arrive", upstream, barrier_of(stimulus)),)


def fail_by_duplicate(upstreams: Upstreams, stimulus: ControlStimulus) -> UpstreamsStep:
    barrier, newest = barrier_of(stimulus), upstreams.newest(upstream_of(stimulus))
    return upstreams, (failed(stimulus, DuplicateBarrierError(upstreams.carrier, barrier, newest).actual),)


def fail_by_overlap(upstreams: Upstreams, stimulus: ControlStimulus) -> UpstreamsStep:
    barrier, turn = barrier_of(stimulus), upstreams.turn(upstream_of(stimulus))
    return upstreams, (failed(stimulus, BarrierOverlapError(upstreams.carrier, turn, barrier).actual),)


# How a barrier ends.


def complete(upstreams: Upstreams, stimulus: ControlStimulus) -> UpstreamsStep:
    """Complete the oldest pending barrier: it is done with."""
    (barrier, _), *rest = upstreams.pending
    done = replace(upstreams, pending=tuple(rest), last_terminated_id=barrier.barrier_id)
    return done, (Effect("complete", NO_INPUT, barrier),)


def complete_all_that_is_in(upstreams: Upstreams, stimulus: ControlStimulus) -> UpstreamsStep:
    """Complete one barrier after the other: somebody ahead of an upstream that closes waited with several."""
    effects: tuple[Effect, ...] = ()
    while upstreams.pending and not upstreams.missing():
        upstreams, more = complete(upstreams, stimulus)
        effects += more
    return upstreams, effects


def close_it(upstreams: Upstreams, stimulus: ControlStimulus) -> UpstreamsStep:
    """Close the upstream: from now on it counts as having delivered everything (protocol rule 26)."""
    upstream = upstream_of(stimulus)
    return replace(upstreams, closed=upstreams.closed | {upstream}), (Effect("close", upstream, EndOfInput()),)


def abort_all(upstreams: Upstreams, stimulus: ControlStimulus) -> UpstreamsStep:
    """Abort every pending barrier: a late copy of one is a duplicate, as one of a completed barrier is."""
    barriers = [barrier for barrier, _ in upstreams.pending]
    last_terminated_id = max((barrier.barrier_id for barrier in barriers), default=upstreams.last_terminated_id)
    effects = tuple(Effect("abort", NO_INPUT, barrier) for barrier in barriers)
    return replace(upstreams, pending=(), last_terminated_id=last_terminated_id), effects


# What they share.


def barrier_of(stimulus: ControlStimulus) -> BarrierControlSignal:
    """Return the barrier of which this is a copy."""
    assert isinstance(stimulus, Delivered)
    return stimulus.barrier


def failed(stimulus: ControlStimulus, reason: str) -> Effect:
    """Return the effect by which the processor fails, by what came from this upstream."""
    return Effect("fail", upstream_of(stimulus), reason)
