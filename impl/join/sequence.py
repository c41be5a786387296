"""The barrier that gates on sequence numbers: an output is ready when each input has come to the number it owes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from barrierlab.impl.join.barrier import InputsOf, JoinBarrier, JoinConfig, Observed
from barrierlab.impl.join.inputs import UNOBSERVED, JoinInput, SequenceInput
from barrierlab.impl.join.merge_map import MAX_U64, NULL_U64, MergeMap, SequenceMergeMapAnnounce, check_range

_TAKEN = Observed.TAKEN


def sequence_inputs(
    merge_map: MergeMap, config: JoinConfig, now_ns: int, make: Callable[..., JoinInput] = SequenceInput
) -> Iterator[JoinInput]:
    """The inputs of a sequence map."""
    for rule in cast(SequenceMergeMapAnnounce, merge_map).rules:
        below = -1 if rule.window_size is None else rule.window_size - 1
        stale_ns = merge_map.stale_timeout_ns
        yield make(rule.input_stream_id, None, now_ns, stale_ns, rule.offset or 0, 0, below, rule.first_output)


class SequenceJoinBarrier(JoinBarrier):
    """Readiness by observed, and if so configured processed, cursors (section 7.1).

    A cursor is the highest number observed; what was dropped below it does not show (defect J-02). So ready allows an
    attempt, and the attempt looks for exactly the frames that the rules name.

    Examples
    --------
    >>> from barrierlab.impl.join import JoinConfig, SequenceMergeMapAnnounce, SequenceMergeRule
    >>> barrier = SequenceJoinBarrier(JoinConfig(out_stream_id=9))
    >>> rules = (SequenceMergeRule.at_offset(1), SequenceMergeRule.at_offset(2, -2))
    >>> barrier.announce(SequenceMergeMapAnnounce(9, 1, rules), 0).name
    'APPLIED'
    >>> barrier.observe(1, 1, 12034, 0).name, barrier.ready(12034, 0).name, barrier.missing(12034, 0)
    ('TAKEN', 'WAITING', (2,))
    >>> barrier.observe(2, 1, 12032, 0).name, barrier.ready(12034, 0).name
    ('TAKEN', 'READY')
    """

    __slots__ = ()

    def __init__(self, config: JoinConfig, inputs_of: InputsOf = sequence_inputs) -> None:
        super().__init__(config, SequenceMergeMapAnnounce, inputs_of)

    def observe(self, stream_id: int, epoch: int, seq: int, now_ns: int) -> Observed:
        """Observe a frame descriptor of a stream: `epoch` is the stream's own.

        Raises
        ------
        LimitError
            If `seq` is less than 0, or it or a new epoch is out of range.
        """
        each = self.inputs.by_number.get(stream_id)
        if each is None:
            return Observed.NOT_AN_INPUT
        if epoch != each.epoch or not each.observed < seq < NULL_U64:
            return self._observe_unusual(each, epoch, seq, now_ns)
        each.observed = seq
        each.fresh_ns = now_ns
        if not self.config.use_processed or each.processed >= seq:
            each.reached = seq
        else:
            each.reached = each.processed
        return _TAKEN

    def process(self, stream_id: int, epoch: int, seq: int) -> Observed:
        """Note that a stage before the join has processed a stream up to `seq`; that gates if so configured."""
        return self.note_processed(self.inputs.by_number.get(stream_id), epoch, seq)

    def after_overrun(self, slots: Mapping[int, int], need_all: bool = True, margin: int = 0) -> int:
        """Return where a stage goes on that was overrun: `margin` outputs above the first that may have all its slots.

        An attempt below that one fails whatever is done (defect J-21). But its slot is the next to be overwritten, so
        a stage that is steadily too slow needs a margin. It is never beyond what is ready, nor below 0.

        Parameters
        ----------
        slots : mapping of int to int
            Stream and number of its slots, for those that are known.
        need_all : bool
            Whether an output needs every input, or one is enough.
        margin : int
        """
        known = [each for each in self.inputs if each.observed != UNOBSERVED and each.stream_id in slots]
        if not known:
            return 0
        most = max if need_all else min
        floor = most(each.observed - slots[each.stream_id] + 1 - each.aim for each in known)
        newest = (min if need_all else max)(each.observed - each.aim for each in known)
        return max(0, min(floor + margin, newest))

    def _observe_unusual(self, each: JoinInput, epoch: int, seq: int, now_ns: int) -> Observed:
        check_range("seq", seq, 0, MAX_U64)
        if epoch != each.epoch and not self.inputs.enter_epoch(each.stream_id, epoch):
            return Observed.OLDER_EPOCH
        if seq == NULL_U64:
            return Observed.NULL
        if seq <= each.observed:
            return Observed.BEHIND
        return self.observe(each.stream_id, epoch, seq, now_ns)
