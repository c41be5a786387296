"""Reports of a task to the coordinator, the digest of a state that they carry, and the observer of a task's effects."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from barrierlab.impl.checkpoint.recorder import InFlightChannelData
from barrierlab.impl.reasons import Reason

Tell = Callable[[str, int, object], None]
_DIGEST_BYTES = 8


def silent(verb: str, index: int, subject: object) -> None:
    """Ignore the call: a `tell` that does nothing."""


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """The acknowledgement of a task's part of a checkpoint.

    Attributes
    ----------
    checkpoint_id : int
        0 for a final snapshot, until it stands for one.
    digest : str
        Of the image.
    position : int or None
        A source's: the sequence of the first event behind the barrier (protocol rule 4).
    is_unaligned, was_threshold_triggered : bool
        What the part is (rule 19).
    inflight, inflight_output : tuple of InFlightChannelData
        What was in flight on the inputs, as recorded here, and what the barrier overtook on the outputs. Of a channel,
        what its receiver recorded comes before what its sender did.
    watermark_ms : int or None
        The task's watermark at the cut; of a source, the last one it sent.
    ended : tuple of int
        The inputs whose end took effect before the cut.
    finished : bool
        Whether the task had finished: this is its final snapshot, for every checkpoint after `checkpoint_id`.
    prepared : tuple of str
        A sink's: the transactions that are prepared and not known to be committed.
    """

    task: str
    checkpoint_id: int
    digest: str = ""
    position: int | None = None
    image: object = field(default=None, compare=False, repr=False)
    is_unaligned: bool = field(default=False, repr=False)
    was_threshold_triggered: bool = field(default=False, repr=False)
    inflight: tuple[InFlightChannelData, ...] = field(default=(), repr=False)
    inflight_output: tuple[InFlightChannelData, ...] = field(default=(), repr=False)
    watermark_ms: int | None = field(default=None, repr=False)
    ended: tuple[int, ...] = field(default=(), repr=False)
    finished: bool = field(default=False, repr=False)
    prepared: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Decline:
    """The decline of a checkpoint by a task."""

    task: str
    checkpoint_id: int
    reason: Reason


def digest(state: object) -> str:
    """Return a short name for a state, equal for equal states in every process.

    >>> digest({"b": 1, "a": {2, 1}}) == digest({"a": {1, 2}, "b": 1})
    True
    """
    return blake2b(_canonical(state).encode(), digest_size=_DIGEST_BYTES).hexdigest()


_SETS = (set, frozenset)
_SEQUENCES = (list, tuple, deque)


def _canonical(state: object) -> str:
    if isinstance(state, dict):
        return "{" + ",".join(sorted(f"{_canonical(k)}:{_canonical(v)}" for k, v in state.items())) + "}"
    if isinstance(state, _SETS):
        return "<" + ",".join(sorted(map(_canonical, state))) + ">"
    if isinstance(state, _SEQUENCES):
        return "(" + ",".join(map(_canonical, state)) + ")"
    return repr(state)
