"""What a row of control signals can do: each action gives the next value and what came of it."""

from __future__ import annotations

from dataclasses import replace

from barrierlab.impl.control import BarrierControlSignal, BarrierOverlapError, DuplicateBarrierError
from barrierlab.impl.messages import EndOfInput
from barrierlab.model.checkpoint.tables.happenings import NO_INPUT, Effect
from barrierlab.model.control.upstreams import ControlHappening, Delivered, Pending, Upstreams, upstream_of

Step = tuple[Upstreams, tuple[Effect, ...]]

# Copies.


def begin(upstreams: Upstreams, happening: ControlHappening) -> Step:
    """This copy is the one that will be forwarded (protocol rule 26)."""
    return replace(upstreams, pending=(*upstreams.pending, Pending(barrier_of(happening)))), ()


def arrive(upstreams: Upstreams, happening: ControlHappening) -> Step:
    upstream, turn = upstream_of(happening), upstreams.turn(upstream_of(happening))
    pending = tuple(
        Pending(barrier, arrived | {upstream} if barrier is turn else arrived) for barrier, arrived in upstreams.pending
    )
    assert turn is not None
    return replace(upstreams, pending=pending), (Effect("arrive", upstream, barrier_of(happening)),)


def fail_by_duplicate(upstreams: Upstreams, happening: ControlHappening) -> Step:
    barrier, newest = barrier_of(happening), upstreams.newest(upstream_of(happening))
    return upstreams, (failed(happening, DuplicateBarrierError(upstreams.carrier, barrier, newest).came),)


def fail_by_overlap(upstreams: Upstreams, happening: ControlHappening) -> Step:
    barrier, turn = barrier_of(happening), upstreams.turn(upstream_of(happening))
    return upstreams, (failed(happening, BarrierOverlapError(upstreams.carrier, turn, barrier).came),)


# How a barrier ends.


def complete(upstreams: Upstreams, happening: ControlHappening) -> Step:
    """The oldest is done with."""
    (barrier, _), *rest = upstreams.pending
    done = replace(upstreams, pending=tuple(rest), last_done=barrier.barrier_id)
    return done, (Effect("complete", NO_INPUT, barrier),)


def complete_all_that_is_in(upstreams: Upstreams, happening: ControlHappening) -> Step:
    """One after the other: somebody ahead of an upstream that closes waited with several."""
    effects: tuple[Effect, ...] = ()
    while upstreams.pending and not upstreams.missing():
        upstreams, more = complete(upstreams, happening)
        effects += more
    return upstreams, effects


def close_it(upstreams: Upstreams, happening: ControlHappening) -> Step:
    """From now on it counts as having delivered everything (protocol rule 26)."""
    upstream = upstream_of(happening)
    return replace(upstreams, closed=upstreams.closed | {upstream}), (Effect("close", upstream, EndOfInput()),)


def give_up_all(upstreams: Upstreams, happening: ControlHappening) -> Step:
    """A late copy of it is a duplicate, as one of a completed barrier is."""
    barriers = [barrier for barrier, _ in upstreams.pending]
    last_done = max((barrier.barrier_id for barrier in barriers), default=upstreams.last_done)
    effects = tuple(Effect("abort", NO_INPUT, barrier) for barrier in barriers)
    return replace(upstreams, pending=(), last_done=last_done), effects


# What they share.


def barrier_of(happening: ControlHappening) -> BarrierControlSignal:
    """The barrier of which this is a copy."""
    assert isinstance(happening, Delivered)
    return happening.barrier


def failed(happening: ControlHappening, reason: str) -> Effect:
    """That the processor fails, by what came from this upstream."""
    return Effect("fail", upstream_of(happening), reason)
