"""The guards of a row of control signals: each answers for anything that can happen."""

from __future__ import annotations

from barrierlab.model.control.upstreams import AbortAll, Closed, ControlStimulus, Delivered, Upstreams, upstream_of


def of_a_newer_barrier(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    """Return whether it is a copy with an id above all that its upstream has delivered, or that is done with here."""
    return isinstance(stimulus, Delivered) and stimulus.barrier.barrier_id > upstreams.newest(stimulus.upstream)


def of_no_newer_barrier(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    return isinstance(stimulus, Delivered) and not of_a_newer_barrier(upstreams, stimulus)


def in_its_turn(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    """Return whether it is a copy of the barrier that its upstream is to deliver next; its id is above all before."""
    turn = upstreams.turn(upstream_of(stimulus))
    return isinstance(stimulus, Delivered) and turn is not None and turn.key == stimulus.barrier.key


def out_of_turn(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    """Return whether it is a copy of another barrier than that."""
    turn = upstreams.turn(upstream_of(stimulus))
    return isinstance(stimulus, Delivered) and turn is not None and turn.key != stimulus.barrier.key


def nothing_pending(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    return not upstreams.pending


def something_pending(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    return bool(upstreams.pending)


def ahead_of_the_others(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    """Return whether its upstream has delivered all that is pending, and somebody else has not."""
    return bool(upstreams.pending) and upstreams.turn(upstream_of(stimulus)) is None


def last_outstanding(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    """Return whether nobody else's copy of the oldest barrier is missing."""
    return upstreams.missing() <= {upstream_of(stimulus)}


def others_to_come(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    return not last_outstanding(upstreams, stimulus)


def close(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    return isinstance(stimulus, Closed)


def abort(upstreams: Upstreams, stimulus: ControlStimulus) -> bool:
    return isinstance(stimulus, AbortAll)
