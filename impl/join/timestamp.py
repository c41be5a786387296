"""The barrier that gates on timestamps: an output time is ready when each input has come to the time it owes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from barrierlab.impl.join.barrier import InputsOf, JoinBarrier, JoinConfig, LatenessScope, Observed
from barrierlab.impl.join.inputs import NEVER, UNOBSERVED, JoinInput, TimestampInput
from barrierlab.impl.join.merge_map import (
    MAX_U64,
    NULL_U64,
    MergeMap,
    TimestampMergeMapAnnounce,
    TimestampSource,
    check_range,
)

_TAKEN = Observed.TAKEN
_FRAME = TimestampSource.FRAME_DESCRIPTOR


def timestamp_inputs(
    merge_map: MergeMap, config: JoinConfig, now_ns: int, make: Callable[..., JoinInput] = TimestampInput
) -> Iterator[JoinInput]:
    """The inputs of a timestamp map."""
    active = cast(TimestampMergeMapAnnounce, merge_map)
    for_all = config.lateness_scope is LatenessScope.MAP
    for rule in active.rules:
        yield make(
            rule.input_stream_id,
            rule.timestamp_source,
            now_ns,
            active.stale_timeout_ns,
            rule.offset_ns or 0,
            (active.lateness_ns or 0) if for_all or rule.window_ns is not None else 0,
            -1 if rule.window_ns is None else rule.window_ns,
            rule.first_output,
        )


class TimestampJoinBarrier(JoinBarrier):
    """Readiness by observed, and if so configured processed, times, less the lateness (section 8.1).

    Lateness is the map's, for all its rules; `JoinConfig.lateness_scope` has the other reading. A stream whose
    timestamps go back is rejected until its epoch changes, or the output's (section 8.2; defect J-15). A slot header
    that could not be read has no timestamp: the rule stays as it was, until the next frame (defect J-20).

    Examples
    --------
    >>> from barrierlab.impl.join import ClockDomain, JoinConfig
    >>> from barrierlab.impl.join import TimestampMergeMapAnnounce, TimestampMergeRule, TimestampSource
    >>> barrier = TimestampJoinBarrier(JoinConfig(out_stream_id=9))
    >>> rules = (TimestampMergeRule.at_offset(1), TimestampMergeRule.in_window(2, 10_000_000))
    >>> barrier.announce(TimestampMergeMapAnnounce(9, 1, ClockDomain.MONOTONIC, rules, None, 10_000_000), 0).name
    'APPLIED'
    >>> for stream, at_ns in ((1, 20_000_000), (2, 15_000_000)):
    ...     print(barrier.observe_time(stream, 1, TimestampSource.FRAME_DESCRIPTOR, at_ns, 0).name)
    TAKEN
    TAKEN
    >>> barrier.ready(20_000_000, 0).name
    'READY'
    """

    __slots__ = ()

    strict = False

    def __init__(self, config: JoinConfig, inputs_of: InputsOf = timestamp_inputs) -> None:
        super().__init__(config, TimestampMergeMapAnnounce, inputs_of)

    def observe_time(
        self, stream_id: int, epoch: int, source: TimestampSource, timestamp_ns: int | None, now_ns: int
    ) -> Observed:
        """Take a timestamp of a stream. None, and what stands for null on the wire, is no value.

        Raises
        ------
        LimitError
            If the timestamp is less than 0, or it or a new epoch is out of range.
        """
        each = (self.inputs.by_frame if source is _FRAME else self.inputs.by_slot).get(stream_id)
        if each is None:
            return Observed.NOT_AN_INPUT
        if timestamp_ns is None or epoch != each.epoch or not each.observed <= timestamp_ns < NULL_U64:
            return self._observe_unusual(each, epoch, timestamp_ns, now_ns)
        each.observed = timestamp_ns
        each.fresh_ns = now_ns
        if not self.config.use_processed or each.processed >= timestamp_ns:
            each.reached = timestamp_ns
        else:
            each.reached = each.processed
        return _TAKEN

    def process_time(self, stream_id: int, epoch: int, source: TimestampSource, timestamp_ns: int) -> Observed:
        """Note that a stage before the join has processed a stream up to this time; it gates if so configured."""
        by = self.inputs.by_frame if source is _FRAME else self.inputs.by_slot
        return self.note_processed(by.get(stream_id), epoch, timestamp_ns)

    def _observe_unusual(self, each: JoinInput, epoch: int, timestamp_ns: int | None, now_ns: int) -> Observed:
        if timestamp_ns is not None:
            check_range("timestamp_ns", timestamp_ns, 0, MAX_U64)
        if epoch != each.epoch and not self.inputs.enter_epoch(each.stream_id, epoch):
            return Observed.OLDER_EPOCH
        if timestamp_ns is None or timestamp_ns == NULL_U64:
            return Observed.NULL
        if timestamp_ns < each.observed:
            each.observed, each.reached = NEVER, UNOBSERVED
            return Observed.REJECTED
        assert each.source is not None
        return self.observe_time(each.stream_id, epoch, each.source, timestamp_ns, now_ns)
