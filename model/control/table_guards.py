"""What a row of control signals can ask: each guard answers for anything that can happen."""

from __future__ import annotations

from barrierlab.model.control.upstreams import AbortAll, Closed, ControlHappening, Delivered, Upstreams, upstream_of


def of_a_newer_barrier(upstreams: Upstreams, happening: ControlHappening) -> bool:
    """A copy, and its id is above all that its upstream has delivered, and above all that is done with here."""
    return isinstance(happening, Delivered) and happening.barrier.barrier_id > upstreams.newest(happening.upstream)


def of_no_newer_barrier(upstreams: Upstreams, happening: ControlHappening) -> bool:
    return isinstance(happening, Delivered) and not of_a_newer_barrier(upstreams, happening)


def in_its_turn(upstreams: Upstreams, happening: ControlHappening) -> bool:
    """A copy of the very barrier that its upstream is to deliver next; so its id is above all before."""
    turn = upstreams.turn(upstream_of(happening))
    return isinstance(happening, Delivered) and turn is not None and turn.key == happening.barrier.key


def out_of_turn(upstreams: Upstreams, happening: ControlHappening) -> bool:
    """A copy of another barrier than that."""
    turn = upstreams.turn(upstream_of(happening))
    return isinstance(happening, Delivered) and turn is not None and turn.key != happening.barrier.key


def nothing_pending(upstreams: Upstreams, happening: ControlHappening) -> bool:
    return not upstreams.pending


def something_pending(upstreams: Upstreams, happening: ControlHappening) -> bool:
    return bool(upstreams.pending)


def ahead_of_the_others(upstreams: Upstreams, happening: ControlHappening) -> bool:
    """Its upstream has delivered all that is pending, and somebody else has not."""
    return bool(upstreams.pending) and upstreams.turn(upstream_of(happening)) is None


def the_last_to_come(upstreams: Upstreams, happening: ControlHappening) -> bool:
    """Of the oldest barrier, nobody else's copy is missing."""
    return upstreams.missing() <= {upstream_of(happening)}


def others_to_come(upstreams: Upstreams, happening: ControlHappening) -> bool:
    return not the_last_to_come(upstreams, happening)


def close(upstreams: Upstreams, happening: ControlHappening) -> bool:
    return isinstance(happening, Closed)


def abort(upstreams: Upstreams, happening: ControlHappening) -> bool:
    return isinstance(happening, AbortAll)
