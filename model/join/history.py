"""The history of a join: a journal of entries, and the words in which it is written.

An entry is ``(time_ns, verb, stream, subject)``; `VERBS` says what each verb means and what its subject is. An output
stream's entries tell what it got and what it did, an input's what there was and what of it was seen. A map is
written as `MapFacts`, a frame as a tuple, so that this module and `join_invariants` import nothing of the code under
test: they are the specification.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

JoinEntry = tuple[int, str, int, object]

VERBS = {
    "publish": "input, frame: it lies whole in its slot",
    "observe": "input, frame: its descriptor has come to the join",
    "process": "input, (epoch, by, value): a stage before the join has processed it up to this value",
    "clock": "input, text: by which clock its timestamps are",
    "announce": "output, MapFacts: a map has come, in force or not",
    "invalid": "output, (kind, epoch): an announce has come that is no map",
    "epoch": "output, number: the output stream is in this epoch",
    "ask": "output, (value, answer, absent streams): what the barrier answers",
    "emit": "output, (value, frames, absent streams): an output",
    "skip": "output, (first, last, reason): these outputs will not come",
    "again": "output, (value, reason): this attempt is gone; the output, or a later one, may still come",
}
ALLOWS = ("ready", "degraded")
"""The answers that allow an attempt."""


class FrameFacts(NamedTuple):
    """One frame of an input: its stream's epoch, its number, and its times by descriptor and by slot header."""

    epoch: int
    seq: int
    frame_ns: int | None
    slot_ns: int | None

    def by(self, key: str) -> int | None:
        """Its number (``"seq"``) or one of its times (``"frame"``, ``"slot"``)."""
        return {"seq": self.seq, "frame": self.frame_ns, "slot": self.slot_ns}[key]


class RuleFacts(NamedTuple):
    """One rule: ``by`` is ``"seq"``, ``"frame"`` or ``"slot"``; of `offset` and `window` one is None."""

    stream: int
    by: str
    offset: int | None
    window: int | None


@dataclass(frozen=True, slots=True)
class MapFacts:
    """One map: ``kind`` is ``"sequence"`` or ``"timestamp"``; times in nanoseconds."""

    kind: str
    epoch: int
    rules: tuple[RuleFacts, ...]
    stale_ns: int | None = None
    lateness_ns: int = 0
    clock: str | None = None


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """The configuration of a join, as far as what is right depends on it.

    Attributes
    ----------
    barrier : str
        ``"sequence"``, ``"timestamp"`` or ``"latest"``.
    map_kind : str
        Whose rules count: ``"sequence"`` or ``"timestamp"``.
    by_timestamp : bool
        Of the latest value: whether the newest frame is the one of the latest time.
    use_processed : bool
    lateness_for_all : bool
        Whether the lateness is for all rules, or for windows only.
    goes_without : bool
        Whether an output may be emitted without a frame that could not be read.
    clock : str or None
        Of the output's times.
    epoch : int or None
        Of the output, where it is known before a map.
    slots : dict
        Of each input, how many slots it has.
    """

    barrier: str
    map_kind: str
    by_timestamp: bool = False
    use_processed: bool = False
    lateness_for_all: bool = True
    goes_without: bool = False
    clock: str | None = None
    epoch: int | None = None
    slots: dict[int, int] = field(default_factory=dict)


def text(entry: JoinEntry) -> str:
    """Return one line for `entry`.

    >>> text((5, "observe", 1, FrameFacts(1, 7, None, None)))
    '0.000000005 observe 1 FrameFacts(epoch=1, seq=7, frame_ns=None, slot_ns=None)'
    """
    at_ns, verb, stream, subject = entry
    return f"{at_ns // 10**9}.{at_ns % 10**9:09d} {verb} {stream} {subject}"
