"""The barrier that takes the newest frame of each input, whatever it is aligned with: an as-of join, best effort."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from barrierlab.impl.errors import LimitError
from barrierlab.impl.join.barrier import JoinBarrier, JoinConfig, Observed, Readiness
from barrierlab.impl.join.inputs import UNOBSERVED, JoinInput, LatestInput
from barrierlab.impl.join.merge_map import (
    MAX_U64,
    NULL_U64,
    MergeMap,
    SequenceMergeMapAnnounce,
    TimestampMergeMapAnnounce,
    TimestampSource,
    check_range,
)


def latest_inputs(merge_map: MergeMap, config: JoinConfig, now_ns: int, by_timestamp: bool) -> Iterator[JoinInput]:
    """The inputs of a map of either kind, each stream, or source of its times, once."""
    keys = [
        (rule.input_stream_id, getattr(rule, "timestamp_source", None) if by_timestamp else None)
        for rule in merge_map.rules
    ]
    for stream_id, source in dict.fromkeys(keys):
        yield LatestInput(stream_id, source, now_ns, merge_map.stale_timeout_ns)


class LatestValueJoinBarrier(JoinBarrier):
    """Ready when each input has a frame of its epoch, and none of them is stale (section 9.1).

    Which inputs there are the map says; the parameters of its rules do not count. An input whose newest frame could
    not be read is absent for that tick, which is not ready; the next one tries again. One that is stale is absent, and
    the tick goes on without it, as in examples A.5.1 and A.5.2, as long as another is live (defect J-10, rule 32).

    Parameters
    ----------
    config : JoinConfig
    map_kind : type
        Whose rules name the inputs: `SequenceMergeMapAnnounce` or `TimestampMergeMapAnnounce` (rule 33).
    by_timestamp : bool
        Whether the newest frame is the one of the latest timestamp, by the source of its rule, and not of the highest
        number. The same for all inputs (section 9.2).

    Raises
    ------
    LimitError
        If timestamps are asked for and a sequence map, which has no clock, or processed cursors, which have no part.

    Examples
    --------
    >>> from barrierlab.impl.join import JoinConfig, SequenceMergeMapAnnounce, SequenceMergeRule
    >>> barrier = LatestValueJoinBarrier(JoinConfig(out_stream_id=9))
    >>> rules = (SequenceMergeRule.at_offset(1), SequenceMergeRule.at_offset(2))
    >>> barrier.announce(SequenceMergeMapAnnounce(9, 1, rules), 0).name
    'APPLIED'
    >>> barrier.observe(1, 1, 700, 0).name, barrier.missing(1, 0)
    ('TAKEN', (2,))
    >>> barrier.observe(2, 1, 3, 0).name, barrier.ready(1, 0).name
    ('TAKEN', 'READY')
    """

    __slots__ = ("by_timestamp",)

    def __init__(
        self, config: JoinConfig, map_kind: type[MergeMap] = SequenceMergeMapAnnounce, by_timestamp: bool = False
    ) -> None:
        if by_timestamp and map_kind is not TimestampMergeMapAnnounce:
            raise LimitError("by_timestamp", by_timestamp, "False with a sequence map, which declares no clock")
        if config.use_processed:
            raise LimitError("use_processed", True, "False with the latest value, which is gated by no cursor")
        self.by_timestamp = by_timestamp
        super().__init__(config, map_kind, partial(latest_inputs, by_timestamp=by_timestamp))

    def observe(self, stream_id: int, epoch: int, seq: int, now_ns: int) -> Observed:
        """Take a frame descriptor of a stream; it counts where the newest frame is the one of the highest number."""
        return self._observe(self.inputs.by_number.get(stream_id), epoch, seq, now_ns)

    def observe_time(
        self, stream_id: int, epoch: int, source: TimestampSource, timestamp_ns: int | None, now_ns: int
    ) -> Observed:
        """Take a timestamp of a stream; it counts where the newest frame is the one of the latest timestamp."""
        by = self.inputs.by_frame if source is TimestampSource.FRAME_DESCRIPTOR else self.inputs.by_slot
        return self._observe(by.get(stream_id), epoch, timestamp_ns, now_ns)

    def fail(self, stream_id: int, out: int) -> None:
        """Mark the newest frame of a stream as unreadable: it is absent for this tick alone (section 9.1)."""
        for each in self.inputs.of_stream.get(stream_id, ()):
            each.failed_tick = out

    def ready(self, out: int, now_ns: int) -> Readiness:
        """Return whether tick `out` may be attempted."""
        if self.least_out <= out <= self.most_out:
            for each in self.inputs.all:
                if each.reached == UNOBSERVED or each.fresh_ns < now_ns - each.timeout_ns or each.failed_tick == out:
                    return self.in_full(out, now_ns)
            return Readiness.READY
        return self.in_full(out, now_ns)

    def _observe(self, each: JoinInput | None, epoch: int, value: int | None, now_ns: int) -> Observed:
        """Observe a frame. Of frames with the same time the last is the newest; a number comes once."""
        if each is None:
            return Observed.NOT_AN_INPUT
        if value is None or epoch != each.epoch or not each.observed < value + self.by_timestamp or value >= NULL_U64:
            if value is not None:
                check_range("a sequence number or timestamp", value, 0, MAX_U64)
            if epoch != each.epoch and not self.inputs.enter_epoch(each.stream_id, epoch):
                return Observed.OLDER_EPOCH
            if value is None or value == NULL_U64:
                return Observed.NULL
            if value + self.by_timestamp <= each.observed:
                return Observed.BEHIND
        each.observed = each.reached = value
        each.fresh_ns = now_ns
        return Observed.TAKEN
