"""A stage around a barrier: which output is next, one attempt at it, and what becomes of it.

The document leaves three things to the stage, and they decide what comes out. Here they have names:

* *What a failed attempt is.* Slot validation is single-attempt (section 5); an output of which a frame is gone is
  skipped, or emitted without that input: `OnFailure`. With the latest value it is neither: that tick gives nothing,
  and the next one tries again (section 9.1). (Defects J-02, J-21.)
* *What becomes of an output time while another one waits.* `PendingPolicy` (defects J-09, J-24).
* *Where a sequence join begins and where it goes on.* At the first output that can ever be ready: one that counts from
  0 with an offset of -2 would wait for output 0 for ever; so would a queue behind an output time that is less than a
  window. After an overrun, at the first output of which no slot is overwritten for sure, and with each overrun in a
  row further above it: one by one it might never catch up (defect J-21).

The driver feeds what comes, asks `poll`, reads what an `JoinAttempt` names, each once, and hands the result to
`finish`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from barrierlab.impl.checks import check_number
from barrierlab.impl.errors import LimitError, NoMapError
from barrierlab.impl.join.barrier import JoinBarrier, MapChange, Readiness
from barrierlab.impl.join.inputs import Read
from barrierlab.impl.join.latest import LatestValueJoinBarrier
from barrierlab.impl.join.merge_map import InvalidMergeMap, MergeMap, TimestampSource
from barrierlab.impl.join.ring import Frame, Miss
from barrierlab.impl.join.sequence import SequenceJoinBarrier
from barrierlab.impl.join.timestamp import TimestampJoinBarrier


class OnFailure(Enum):
    """The fate of an output of which a frame could not be read."""

    SKIP = "skip"
    ABSENT = "absent"


class PendingPolicy(Enum):
    """The fate of a new output time while an older one waits.

    QUEUE: it waits behind it. REPLACE: it takes its place, and the older one is skipped. HOLD: it is skipped itself.
    """

    QUEUE = "queue"
    REPLACE = "replace"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class StageConfig:
    """The settings of a stage, given once.

    Attributes
    ----------
    on_failure : OnFailure
        Not asked with the latest value, of which the document says what a failure is.
    pending : PendingPolicy or None
        None is QUEUE, and REPLACE with the latest value, where a tick that is not ready is retried by the next one
        (section 9.1). Not asked with sequences, which follow one another.
    most_pending : int
        So many output times wait at most; one more, and the oldest is skipped.
    slots : tuple of (int, int)
        Stream and number of its slots, where it is known: an overrun sequence join goes on where there are slots.

    Raises
    ------
    LimitError
        If a number is less than 1.
    """

    on_failure: OnFailure = OnFailure.SKIP
    pending: PendingPolicy | None = None
    most_pending: int = 1024
    slots: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("most_pending", self.most_pending), *((f"slots of {s}", n) for s, n in self.slots)):
            check_number(name, value, 1)


class JoinAttempt(NamedTuple):
    """Read each of `reads` once, and tell `finish`; the inputs `absent` are stale."""

    out: int
    reads: tuple[Read, ...]
    absent: tuple[int, ...]


class Joined(NamedTuple):
    """An output: a frame of each input but of those that are absent."""

    out: int
    frames: tuple[Frame, ...]
    absent: tuple[int, ...]


class SkipReason(Enum):
    """The reason why outputs were passed over."""

    FAILED = "failed"
    REPLACED = "replaced"
    HELD = "held"
    OVERFLOW = "overflow"
    PASSED = "passed"
    IMPOSSIBLE = "impossible"
    NEXT_TICK = "next tick"
    MAP_CHANGED = "map changed"


class Skipped(NamedTuple):
    """Outputs from `first` to `last` will not come; of a failed attempt, at which streams and why.

    After MAP_CHANGED and NEXT_TICK it is the attempt that is gone: the output, or a later tick, may still come.
    """

    first: int
    last: int
    reason: SkipReason
    misses: tuple[tuple[int, Miss], ...] = ()


class JoinStage:
    """One output stream's join.

    Parameters
    ----------
    barrier : SequenceJoinBarrier or TimestampJoinBarrier or LatestValueJoinBarrier
    config : StageConfig

    Attributes
    ----------
    attempt : JoinAttempt or None
        What is being read.
    wanted : deque of int
        The outputs that are asked for and not begun, in their order. A sequence join has none: it counts.

    Examples
    --------
    >>> from barrierlab.impl.join import JoinConfig, SequenceMergeMapAnnounce, SequenceMergeRule, SlotRing
    >>> stage = JoinStage(SequenceJoinBarrier(JoinConfig(out_stream_id=9)))
    >>> stage.announce(SequenceMergeMapAnnounce(9, 1, (SequenceMergeRule.at_offset(1, -2),)), 0).name
    'APPLIED'
    >>> ring, frame = SlotRing(4), Frame(1, 1, 0, None, None)
    >>> ring.publish(frame)
    >>> stage.observe(frame, 0)
    >>> attempt = stage.poll(0)
    >>> attempt.out, attempt.reads[0].last
    (2, 0)
    >>> stage.finish([ring.close(ring.open(read)) for read in attempt.reads], 0).frames == (frame,)
    True
    """

    __slots__ = (
        "_counted",
        "_epoch",
        "_map",
        "_margin",
        "_next",
        "_observe",
        "_pending",
        "_slots",
        "attempt",
        "barrier",
        "config",
        "wanted",
    )

    def __init__(self, barrier: JoinBarrier, config: StageConfig | None = None) -> None:
        self.barrier = barrier
        self.config = config or StageConfig()
        self.attempt: JoinAttempt | None = None
        self._map: MergeMap | None = None  # under which the attempt began
        self._slots = dict(self.config.slots)
        self.wanted: deque[int] = deque()
        self._next = 0
        self._margin = 0  # how far above the oldest slots to go on; doubled by each overrun in a row
        self._epoch: int | None = None  # in which `_next` counts
        self._counted: MergeMap | None = None  # the map whose first output `_next` has passed
        by_default = PendingPolicy.REPLACE if isinstance(barrier, LatestValueJoinBarrier) else PendingPolicy.QUEUE
        self._pending = self.config.pending or by_default
        self._observe = self._observer()

    # What comes.

    def announce(self, merge_map: MergeMap, now_ns: int) -> MapChange:
        """Take a map: `JoinBarrier.announce`."""
        return self.barrier.announce(merge_map, now_ns)

    def announce_invalid(self, invalid: InvalidMergeMap) -> MapChange:
        """Take an announce that is no map: `JoinBarrier.announce_invalid`."""
        return self.barrier.announce_invalid(invalid)

    def observe(self, frame: Frame, now_ns: int) -> None:
        """Take a frame descriptor, with the time of the slot header if that could be read."""
        self._observe(frame, now_ns)

    def offer(self, out: int) -> tuple[Skipped, ...]:
        """Offer an output time or tick; return what that skips. Sequence joins are not offered anything: they count."""
        wanted, pending = self.wanted, self._pending
        if wanted and pending is PendingPolicy.HOLD:
            return (Skipped(out, out, SkipReason.HELD),)
        gone: list[Skipped] = []
        if pending is PendingPolicy.REPLACE:
            gone = [Skipped(old, old, SkipReason.REPLACED) for old in wanted]
            wanted.clear()
        elif len(wanted) >= self.config.most_pending:
            old = wanted.popleft()
            gone = [Skipped(old, old, SkipReason.OVERFLOW)]
        wanted.append(out)
        return tuple(gone)

    # What is to be done.

    def next_out(self) -> int | None:
        """Return the output that is next; None if none is wanted."""
        barrier = self.barrier
        if not isinstance(barrier, SequenceJoinBarrier):
            return self.wanted[0] if self.wanted else None
        active = barrier.active
        if active is not None and active is not self._counted:
            self._counted = active
            if barrier.epoch != self._epoch:
                self._epoch, self._next = barrier.epoch, 0
            self._next = max(self._next, active.first_output)
        if self._next <= barrier.last_out:
            self._next = barrier.last_out + 1
        return self._next

    def poll(self, now_ns: int) -> JoinAttempt | Skipped | Readiness | None:
        """Return what is next: an attempt to carry out, an output passed over, why to wait, or None if nothing is
        wanted."""
        if self.attempt is not None:
            return self.attempt
        out = self.next_out()
        if out is None:
            return None
        answer = self.barrier.ready(out, now_ns)
        if self.wanted and answer is Readiness.PASSED:
            return Skipped(self.wanted.popleft(), out, SkipReason.PASSED)
        if self.wanted and answer is Readiness.WAITING and not self.barrier.is_possible(out):
            return Skipped(self.wanted.popleft(), out, SkipReason.IMPOSSIBLE)
        if not answer.may_attempt:
            return answer
        if self.wanted:
            self.wanted.popleft()
        self._map = self.barrier.active
        self.attempt = JoinAttempt(out, self.barrier.reads(out, now_ns), self.barrier.absent(out, now_ns))
        return self.attempt

    def finish(self, found: Sequence[Frame | Miss], now_ns: int) -> Joined | Skipped:
        """Take what the reads of the attempt have found, in their order; return what becomes of the output.

        Raises
        ------
        NoMapError
            If nothing is being attempted.
        LimitError
            If there are not as many results as reads.
        """
        attempt = self.attempt
        if attempt is None:
            raise NoMapError("the end of an attempt that was not begun", "once, after poll has answered an Attempt")
        if len(found) != len(attempt.reads):
            raise LimitError("the number of results", len(found), f"{len(attempt.reads)}, one for each read")
        self.attempt = None
        out = attempt.out
        active = self.barrier.active
        if active is not self._map and active != self._map:  # section 6.4: what was ready is not so any more
            if not isinstance(self.barrier, SequenceJoinBarrier):
                self.wanted.appendleft(out)
            return Skipped(out, out, SkipReason.MAP_CHANGED)
        frames: list[Frame] = []
        misses: list[tuple[int, Miss]] = []
        for read, what in zip(attempt.reads, found, strict=True):
            if isinstance(what, Miss):
                misses.append((read.stream_id, what))
            elif self.barrier.epoch_of(read.stream_id) != read.epoch:  # its stream restarted meanwhile
                misses.append((read.stream_id, Miss.OLDER_EPOCH))
            else:
                frames.append(what)
        if not misses or (frames and self._goes_without):
            self.barrier.accept(out)
            self._margin = 0
            missed = tuple(stream for stream, _ in misses)
            return Joined(out, tuple(frames), tuple(dict.fromkeys((*attempt.absent, *missed))))
        return self._skip(out, tuple(misses))

    def next_deadline_ns(self, now_ns: int) -> int | None:
        """Return when `poll` may answer otherwise though nothing came: an input becomes stale."""
        out = self.next_out()
        return None if out is None or self.attempt is not None else self.barrier.next_deadline_ns(out, now_ns)

    def capture(self) -> Hashable:
        """Return the state for `restore`, but the configuration."""
        wanted = tuple(self.wanted)
        return self.barrier.capture(), self.attempt, self._map, wanted, self._next, self._margin, self._epoch

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        barrier, self.attempt, self._map, wanted, self._next, self._margin, self._epoch = value  # type: ignore[misc]
        self.barrier.restore(barrier)  # type: ignore[has-type]
        self.wanted = deque(wanted)  # type: ignore[has-type]
        self._counted = None  # looked at again, to the same effect

    # Inside.

    @property
    def _goes_without(self) -> bool:
        return self.config.on_failure is OnFailure.ABSENT and not isinstance(self.barrier, LatestValueJoinBarrier)

    def _skip(self, out: int, misses: tuple[tuple[int, Miss], ...]) -> Skipped:
        barrier = self.barrier
        if isinstance(barrier, LatestValueJoinBarrier):
            for stream_id, _ in misses:
                barrier.fail(stream_id, out)
            return Skipped(out, out, SkipReason.NEXT_TICK, misses)
        last = out
        if isinstance(barrier, SequenceJoinBarrier):
            if any(miss is Miss.OVERWRITTEN for _, miss in misses):
                goes_on = barrier.after_overrun(self._slots, self.config.on_failure is OnFailure.SKIP, self._margin)
                last = max(out, goes_on - 1)
                self._margin = max(1, 2 * self._margin)
            else:  # a frame that was dropped says nothing about how fast the stage is
                self._margin = 0
        barrier.accept(last)
        return Skipped(out, last, SkipReason.FAILED, misses)

    def _observer(self) -> Callable[[Frame, int], None]:
        """Return how this barrier learns of a frame: by number or by its two times."""
        barrier = self.barrier
        if isinstance(barrier, SequenceJoinBarrier) or (
            isinstance(barrier, LatestValueJoinBarrier) and not barrier.by_timestamp
        ):

            def by_number(frame: Frame, now_ns: int) -> None:
                barrier.observe(frame.stream_id, frame.epoch, frame.seq, now_ns)

            return by_number
        assert isinstance(barrier, TimestampJoinBarrier | LatestValueJoinBarrier)
        timed = barrier

        def by_times(frame: Frame, now_ns: int) -> None:
            stream_id, epoch, _, frame_ns, slot_ns = frame
            timed.observe_time(stream_id, epoch, TimestampSource.FRAME_DESCRIPTOR, frame_ns, now_ns)
            timed.observe_time(stream_id, epoch, TimestampSource.SLOT_HEADER, slot_ns, now_ns)

        return by_times
