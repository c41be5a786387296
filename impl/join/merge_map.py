"""Merge maps: which inputs an output needs, as rules over sequence numbers or over timestamps.

A map is what its announce says, so the two are one class here: `SequenceMergeMapAnnounce` for sequence joins, and
`TimestampMergeMapAnnounce` for timestamp joins (merge-map-join-barrier, sections 6, 10 and 15). A value of these
classes is sound: what sections 6.2 and 6.3 forbid, what cannot be encoded, and what rule 28 excludes cannot be made.

Rule 28 adds: a map has at least one rule, none of its own output, at most one for a stream (for a stream and a
timestamp source), and no time window shorter than the lateness: such a window may be empty when the rule is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from barrierlab.impl.errors import LimitError, MergeMapError, StreamIdError

NULL_U64 = 2**64 - 1
NULL_U32 = 2**32 - 1
NULL_I32 = -(2**31)
NULL_I64 = -(2**63)
MAX_U64 = 2**64 - 1
MOST_RULES = 65_534
"""More do not fit the group's count (SBE: uint16, whose largest value stands for none)."""


class ClockDomain(IntEnum):
    """The clock that all timestamps of a join are measured by."""

    MONOTONIC = 1
    REALTIME_SYNCED = 2


class TimestampSource(IntEnum):
    """The timestamp that a rule reads: when a frame became available, or when it was captured (section 8.2)."""

    FRAME_DESCRIPTOR = 1
    SLOT_HEADER = 2


class MergeRuleType(IntEnum):
    """The mapping from an output's sequence number to an input's."""

    OFFSET = 0
    WINDOW = 1


class MergeTimeRuleType(IntEnum):
    """The mapping from an output's timestamp to an input's."""

    OFFSET_NS = 0
    WINDOW_NS = 1


def check_stream(name: str, stream_id: int) -> None:
    """Raise StreamIdError if no stream has this id: 0 is none, and neither is what stands for null."""
    if type(stream_id) is not int or not 1 <= stream_id < NULL_U32:
        raise StreamIdError(name, stream_id)


def check_range(name: str, value: int, least: int, most: int) -> None:
    """Raise LimitError if `value` is no whole number from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        raise LimitError(name, value, f"{least} to {most}")


def _check_kind(name: str, value: object, kind: type[IntEnum]) -> None:
    if type(value) is not kind:
        raise MergeMapError(f"{name} = {value!r}", ", ".join(each.name for each in kind), f"give a {kind.__name__}")


def _check_pair(kind: str, takes: str, given: int | None, other: str, against: int | None) -> None:
    """Refuse two parameters unless exactly the rule's own is there (sections 6.2 and 6.3)."""
    if given is None or against is not None:
        came = " and ".join(f"{name} = {value}" for name, value in ((takes, given), (other, against)))
        raise MergeMapError(f"a rule of type {kind} with {came}", f"{takes}, and {other} null", f"give {takes} alone")


@dataclass(frozen=True, slots=True)
class SequenceMergeRule:
    """The part that one input owes to an output, by sequence number (section 6.2).

    Attributes
    ----------
    input_stream_id : int
    rule_type : MergeRuleType
    offset : int or None
        OFFSET: the input's number is the output's plus this; -2**31 + 1 to 2**31 - 1.
    window_size : int or None
        WINDOW: the input's numbers are the output's and the `window_size` - 1 before it; 1 to 2**32 - 2.

    Raises
    ------
    StreamIdError, MergeMapError, LimitError
        If the stream cannot be one, not exactly the type's own parameter is there, or it is out of range.
    """

    input_stream_id: int
    rule_type: MergeRuleType
    offset: int | None = None
    window_size: int | None = None

    def __post_init__(self) -> None:
        check_stream("input stream", self.input_stream_id)
        _check_kind("rule_type", self.rule_type, MergeRuleType)
        if self.rule_type is MergeRuleType.OFFSET:
            _check_pair("OFFSET", "offset", self.offset, "window_size", self.window_size)
            check_range("offset", self.offset, NULL_I32 + 1, 2**31 - 1)  # type: ignore[arg-type]
        else:
            _check_pair("WINDOW", "window_size", self.window_size, "offset", self.offset)
            check_range("window_size", self.window_size, 1, NULL_U32 - 1)  # type: ignore[arg-type]

    @classmethod
    def at_offset(cls, input_stream_id: int, offset: int = 0) -> SequenceMergeRule:
        """in_seq = out_seq + offset."""
        return cls(input_stream_id, MergeRuleType.OFFSET, offset=offset)

    @classmethod
    def in_window(cls, input_stream_id: int, window_size: int) -> SequenceMergeRule:
        """in_seq_range = [out_seq - window_size + 1, out_seq]."""
        return cls(input_stream_id, MergeRuleType.WINDOW, window_size=window_size)

    @property
    def first_output(self) -> int:
        """The first output for which the rule asks for numbers of 0 or more; before it the rule is not ready."""
        if self.window_size is not None:
            return self.window_size - 1
        assert self.offset is not None
        return max(0, -self.offset)


@dataclass(frozen=True, slots=True)
class TimestampMergeRule:
    """The part that one input owes to an output, by time (section 6.3).

    Attributes
    ----------
    input_stream_id : int
    rule_type : MergeTimeRuleType
    timestamp_source : TimestampSource
    offset_ns : int or None
        OFFSET_NS: the input's time is the output's plus this; -2**63 + 1 to 2**63 - 1 ns.
    window_ns : int or None
        WINDOW_NS: the input's times are the output's and up to `window_ns` before it, both ends included;
        1 to 2**64 - 2 ns.

    Raises
    ------
    StreamIdError, MergeMapError, LimitError
        As `SequenceMergeRule`.
    """

    input_stream_id: int
    rule_type: MergeTimeRuleType
    timestamp_source: TimestampSource = TimestampSource.FRAME_DESCRIPTOR
    offset_ns: int | None = None
    window_ns: int | None = None

    def __post_init__(self) -> None:
        check_stream("input stream", self.input_stream_id)
        _check_kind("rule_type", self.rule_type, MergeTimeRuleType)
        _check_kind("timestamp_source", self.timestamp_source, TimestampSource)
        if self.rule_type is MergeTimeRuleType.OFFSET_NS:
            _check_pair("OFFSET_NS", "offset_ns", self.offset_ns, "window_ns", self.window_ns)
            check_range("offset_ns", self.offset_ns, NULL_I64 + 1, 2**63 - 1)  # type: ignore[arg-type]
        else:
            _check_pair("WINDOW_NS", "window_ns", self.window_ns, "offset_ns", self.offset_ns)
            check_range("window_ns", self.window_ns, 1, NULL_U64 - 1)  # type: ignore[arg-type]

    @classmethod
    def at_offset(
        cls, input_stream_id: int, offset_ns: int = 0, source: TimestampSource = TimestampSource.FRAME_DESCRIPTOR
    ) -> TimestampMergeRule:
        """in_time = out_time + offset_ns."""
        return cls(input_stream_id, MergeTimeRuleType.OFFSET_NS, source, offset_ns=offset_ns)

    @classmethod
    def in_window(
        cls, input_stream_id: int, window_ns: int, source: TimestampSource = TimestampSource.FRAME_DESCRIPTOR
    ) -> TimestampMergeRule:
        """in_time_range = [out_time - window_ns, out_time]."""
        return cls(input_stream_id, MergeTimeRuleType.WINDOW_NS, source, window_ns=window_ns)

    @property
    def first_output(self) -> int:
        """The first output time for which the rule asks for times of 0 or more; before it the rule is not ready."""
        if self.window_ns is not None:
            return self.window_ns
        assert self.offset_ns is not None
        return max(0, -self.offset_ns)


def _check_map(
    out_stream_id: int, epoch: int, rules: Sequence[object], streams: Sequence[int], stale_timeout_ns: int | None
) -> None:
    """Check what both kinds of map have in common."""
    check_stream("output stream", out_stream_id)
    check_range("epoch", epoch, 0, NULL_U64 - 1)
    if type(rules) is not tuple or not 1 <= len(rules) <= MOST_RULES:
        raise MergeMapError(
            f"{len(rules)} rules", f"a tuple of 1 to {MOST_RULES}", "give each input that is required a rule"
        )
    if out_stream_id in streams:
        raise MergeMapError(
            f"a rule of stream {out_stream_id} for itself", "other streams", "take the output out of its inputs"
        )
    if stale_timeout_ns is not None:
        check_range("stale_timeout_ns", stale_timeout_ns, 1, NULL_U64 - 1)


def _check_no_twins(keys: Sequence[object], what: str) -> None:
    seen: set[object] = set()
    for key in keys:
        if key in seen:
            raise MergeMapError(f"two rules for {what} {key}", "one", "leave one of them out")
        seen.add(key)


@dataclass(frozen=True, slots=True)
class SequenceMergeMapAnnounce:
    """A sequence map, for one output stream in one epoch (section 10.1).

    Attributes
    ----------
    out_stream_id : int
    epoch : int
        Of the output stream.
    rules : tuple of SequenceMergeRule
    stale_timeout_ns : int or None
        How long after its last frame an input that is missing may be treated as absent; None waits for ever.

    Raises
    ------
    StreamIdError, LimitError, MergeMapError
        If an id or a number is out of range, or the rules are none, of the output itself, or two for one stream.
    """

    out_stream_id: int
    epoch: int
    rules: tuple[SequenceMergeRule, ...]
    stale_timeout_ns: int | None = None

    def __post_init__(self) -> None:
        streams = [rule.input_stream_id for rule in self.rules]
        _check_map(self.out_stream_id, self.epoch, self.rules, streams, self.stale_timeout_ns)
        _check_no_twins(streams, "stream")

    @property
    def first_output(self) -> int:
        """The first output that can ever be ready (sections 6.2.1, 6.2.2): a stage that counts from 0 skips to it."""
        return max(rule.first_output for rule in self.rules)


@dataclass(frozen=True, slots=True)
class TimestampMergeMapAnnounce:
    """A timestamp map, for one output stream in one epoch (section 10.4).

    Attributes
    ----------
    out_stream_id : int
    epoch : int
        Of the output stream.
    clock_domain : ClockDomain
        Of the output's times and of every input's.
    rules : tuple of TimestampMergeRule
    stale_timeout_ns : int or None
        As in a sequence map.
    lateness_ns : int or None
        How much less than required is enough; None is 0. It is not what stream processors call lateness: a larger
        one waits *less* (defect J-07).

    Raises
    ------
    StreamIdError, LimitError, MergeMapError
        As a sequence map; two rules for one stream must differ in their timestamp source; and if a window is
        shorter than the lateness.
    """

    out_stream_id: int
    epoch: int
    clock_domain: ClockDomain
    rules: tuple[TimestampMergeRule, ...]
    stale_timeout_ns: int | None = None
    lateness_ns: int | None = None

    def __post_init__(self) -> None:
        streams = [rule.input_stream_id for rule in self.rules]
        _check_map(self.out_stream_id, self.epoch, self.rules, streams, self.stale_timeout_ns)
        _check_kind("clock_domain", self.clock_domain, ClockDomain)
        _check_no_twins([f"{rule.input_stream_id} by {rule.timestamp_source.name}" for rule in self.rules], "stream")
        if self.lateness_ns is not None:
            check_range("lateness_ns", self.lateness_ns, 0, NULL_U64 - 1)
            for rule in self.rules:
                if rule.window_ns is not None and rule.window_ns < self.lateness_ns:
                    raise MergeMapError(
                        f"a window of {rule.window_ns} ns on stream {rule.input_stream_id} with a lateness of "
                        f"{self.lateness_ns} ns",
                        "windows at least as long as the lateness",
                        "lengthen the window or lessen the lateness: the window may be empty when the rule is met",
                    )

    @property
    def first_output(self) -> int:
        """The first output time that can ever be ready (sections 6.3.1, 6.3.2)."""
        return max(rule.first_output for rule in self.rules)


@dataclass(frozen=True, slots=True)
class SequenceMergeMapRequest:
    """Asks the authority for the sequence map of an output stream in an epoch (section 10.3)."""

    out_stream_id: int
    epoch: int

    def __post_init__(self) -> None:
        check_stream("output stream", self.out_stream_id)
        check_range("epoch", self.epoch, 0, NULL_U64 - 1)


@dataclass(frozen=True, slots=True)
class TimestampMergeMapRequest:
    """Asks the authority for the timestamp map of an output stream in an epoch (section 10.5)."""

    out_stream_id: int
    epoch: int

    def __post_init__(self) -> None:
        check_stream("output stream", self.out_stream_id)
        check_range("epoch", self.epoch, 0, NULL_U64 - 1)


MergeMap = SequenceMergeMapAnnounce | TimestampMergeMapAnnounce
MergeMapRequest = SequenceMergeMapRequest | TimestampMergeMapRequest


@dataclass(frozen=True, slots=True)
class InvalidMergeMap:
    """An announce came that names its output but is no map: what it was to replace is invalid (sections 6.2, 6.3).

    Attributes
    ----------
    kind : type
        `SequenceMergeMapAnnounce` or `TimestampMergeMapAnnounce`.
    out_stream_id, epoch : int
        What it was for.
    reason : str
        Why it is none.
    """

    kind: type[MergeMap]
    out_stream_id: int
    epoch: int
    reason: str
