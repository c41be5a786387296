"""A join as one thing: a stage, its inputs' rings, and the journal of what happens.

Whoever drives it decides when: the simulation in time, an exploration in every order, a test by hand. What a move
does is the code of `impl.join`, and nothing of it is done again here; the journal is what `join_invariants` judges.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from barrierlab.impl.join import (
    Frame,
    InvalidMergeMap,
    Joined,
    JoinStage,
    LatenessScope,
    LatestValueJoinBarrier,
    MapChange,
    MergeMap,
    Miss,
    OnFailure,
    Opened,
    Readiness,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    Skipped,
    SkipReason,
    SlotRing,
    TimestampSource,
)
from barrierlab.impl.join.merge_map import ClockDomain
from barrierlab.impl.join.stage import JoinAttempt
from barrierlab.model.join.history import FrameFacts, JoinEntry, JoinSpec, MapFacts, RuleFacts

BY = {TimestampSource.FRAME_DESCRIPTOR: "frame", TimestampSource.SLOT_HEADER: "slot"}
_OPEN = (SkipReason.NEXT_TICK, SkipReason.MAP_CHANGED)


def facts_of(merge_map: MergeMap) -> MapFacts:
    """A map in the words of the journal."""
    if isinstance(merge_map, SequenceMergeMapAnnounce):
        rules = tuple(RuleFacts(r.input_stream_id, "seq", r.offset, r.window_size) for r in merge_map.rules)
        return MapFacts("sequence", merge_map.epoch, rules, merge_map.stale_timeout_ns)
    timed = tuple(
        RuleFacts(r.input_stream_id, BY[r.timestamp_source], r.offset_ns, r.window_ns) for r in merge_map.rules
    )
    return MapFacts(
        "timestamp",
        merge_map.epoch,
        timed,
        merge_map.stale_timeout_ns,
        merge_map.lateness_ns or 0,
        merge_map.clock_domain.name,
    )


def spec_of(stage: JoinStage, rings: Mapping[int, SlotRing]) -> JoinSpec:
    """Return how a stage is configured, in the words of the journal."""
    barrier, config = stage.barrier, stage.barrier.config
    latest = isinstance(barrier, LatestValueJoinBarrier)
    if isinstance(barrier, LatestValueJoinBarrier):
        kind = "sequence" if barrier.map_kind is SequenceMergeMapAnnounce else "timestamp"
    else:
        kind = "sequence" if isinstance(barrier, SequenceJoinBarrier) else "timestamp"
    return JoinSpec(
        barrier="latest" if latest else kind,
        map_kind=kind,
        by_timestamp=isinstance(barrier, LatestValueJoinBarrier) and barrier.by_timestamp,
        use_processed=config.use_processed,
        lateness_for_all=config.lateness_scope is LatenessScope.MAP,
        goes_without=stage.config.on_failure is OnFailure.ABSENT and not latest,
        clock=None if config.clock_domain is None else config.clock_domain.name,
        epoch=config.epoch,
        slots={stream_id: ring.slots for stream_id, ring in rings.items()},
    )


def frame_facts(frame: Frame) -> FrameFacts:
    """A frame in the words of the journal."""
    return FrameFacts(frame.epoch, frame.seq, frame.frame_ns, frame.slot_ns)


class JoinWorld:
    """A stage, its rings and its journal.

    Parameters
    ----------
    stage : JoinStage
    slots : dict of int to int
        Stream and number of its slots.

    Attributes
    ----------
    stage : JoinStage
    rings : dict of int to SlotRing
    spec : JoinSpec
    entries : list of JoinEntry
    outcomes : list of Joined or Skipped
        In order.
    """

    def __init__(self, stage: JoinStage, slots: Mapping[int, int]) -> None:
        self.stage = stage
        self.rings = {stream_id: SlotRing(count) for stream_id, count in slots.items()}
        self.out = stage.barrier.config.out_stream_id
        self.spec = spec_of(stage, self.rings)
        self.entries: list[JoinEntry] = []
        self.outcomes: list[Joined | Skipped] = []
        self._opened: list[Opened | Miss] = []

    # The inputs.

    def begin(self, frame: Frame) -> None:
        """Begin a frame, as a writer does."""
        self.rings[frame.stream_id].begin(frame)

    def commit(self, frame: Frame, now_ns: int) -> None:
        """Commit a frame that a writer has written."""
        self.rings[frame.stream_id].commit(frame)
        self.entries.append((now_ns, "publish", frame.stream_id, frame_facts(frame)))

    def publish(self, frame: Frame, now_ns: int) -> None:
        """Begin and commit a frame, at once."""
        self.begin(frame)
        self.commit(frame, now_ns)

    def observe(self, frame: Frame, now_ns: int) -> None:
        """Bring a frame's descriptor to the stage, and the time in its slot header with it."""
        self.entries.append((now_ns, "observe", frame.stream_id, frame_facts(frame)))
        self.stage.observe(frame, now_ns)

    def process(self, frame: Frame, now_ns: int) -> None:
        """Note that a stage before the join has processed a stream up to `frame`."""
        barrier = self.stage.barrier
        if isinstance(barrier, SequenceJoinBarrier):
            self.entries.append((now_ns, "process", frame.stream_id, (frame.epoch, "seq", frame.seq)))
            barrier.process(frame.stream_id, frame.epoch, frame.seq)
            return
        assert not isinstance(barrier, LatestValueJoinBarrier)
        for source, at_ns in zip(TimestampSource, (frame.frame_ns, frame.slot_ns), strict=True):
            if at_ns is not None:
                self.entries.append((now_ns, "process", frame.stream_id, (frame.epoch, BY[source], at_ns)))
                barrier.process_time(frame.stream_id, frame.epoch, source, at_ns)  # type: ignore[attr-defined]

    def declare_clock(self, stream_id: int, domain: ClockDomain, now_ns: int) -> None:
        """Set the clock of a stream."""
        self.entries.append((now_ns, "clock", stream_id, domain.name))
        self.stage.barrier.declare_clock(stream_id, domain)

    # The control stream.

    def announce(self, said: MergeMap | InvalidMergeMap, now_ns: int) -> MapChange:
        """Bring a map to the stage, or what should be one."""
        if isinstance(said, InvalidMergeMap):
            kind = "sequence" if said.kind is SequenceMergeMapAnnounce else "timestamp"
            if said.out_stream_id == self.out:
                self.entries.append((now_ns, "invalid", self.out, (kind, said.epoch)))
            return self.stage.announce_invalid(said)
        if said.out_stream_id == self.out:
            self.entries.append((now_ns, "announce", self.out, facts_of(said)))
        return self.stage.announce(said, now_ns)

    def begin_epoch(self, epoch: int, now_ns: int) -> bool:
        """Enter an epoch of the output stream; return whether it is a newer one."""
        is_newer = self.stage.barrier.begin_epoch(epoch)
        self.entries.append((now_ns, "epoch", self.out, epoch))
        return is_newer

    # The output.

    def offer(self, value: int, now_ns: int) -> tuple[Skipped, ...]:
        """Ask for an output time or tick; return what is skipped for it."""
        gone = self.stage.offer(value)
        for skipped in gone:
            self._note(skipped, now_ns)
        return gone

    def ask(self, value: int, now_ns: int) -> Readiness:
        """Ask the barrier, and nothing more: asking is free."""
        return self._asked(value, self.stage.barrier.ready(value, now_ns), now_ns)

    def poll(self, now_ns: int) -> JoinAttempt | Skipped | Readiness | None:
        """Return what is next; where it is an attempt, it is begun, and its slots are opened. `end` ends it."""
        value = self.stage.next_out()
        answer = self.stage.poll(now_ns)
        if isinstance(answer, Skipped):
            self._note(answer, now_ns)
        elif isinstance(answer, JoinAttempt):
            self._asked(answer.out, Readiness.DEGRADED if answer.absent else Readiness.READY, now_ns)
            self._opened = [self.rings[read.stream_id].open(read) for read in answer.reads]
        elif answer is not None and value is not None:
            self._asked(value, answer, now_ns)
        return answer

    def try_next(self, now_ns: int) -> bool:
        """Begin an attempt at the next output, if it may be; whether one is under way then."""
        while self.stage.attempt is None:
            if not isinstance(self.poll(now_ns), JoinAttempt | Skipped):
                return False
        return True

    def end(self, now_ns: int) -> Joined | Skipped:
        """End the reads of the attempt; return what becomes of it."""
        attempt = self.stage.attempt
        reads = attempt.reads if attempt is not None else ()
        found = [
            what if isinstance(what, Miss) else self.rings[read.stream_id].close(what)
            for read, what in zip(reads, self._opened, strict=True)
        ]
        outcome = self.stage.finish(found, now_ns)
        self._note(outcome, now_ns)
        return outcome

    def run(self, now_ns: int) -> list[Joined | Skipped]:
        """Carry out all attempts that are possible, each ended at once; return their results."""
        before = len(self.outcomes)
        while self.try_next(now_ns):
            self.end(now_ns)
        return self.outcomes[before:]

    def capture(self) -> Hashable:
        """Return the state for `restore`, but the journal."""
        rings = tuple((stream_id, ring.capture()) for stream_id, ring in self.rings.items())
        return self.stage.capture(), rings, tuple(self._opened), tuple(self.outcomes)

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned; the journal restarts from the initial state."""
        stage, rings, opened, outcomes = value  # type: ignore[misc]
        self.stage.restore(stage)  # type: ignore[has-type]
        for stream_id, ring in rings:  # type: ignore[has-type]
            self.rings[stream_id].restore(ring)
        self._opened, self.outcomes, self.entries = list(opened), list(outcomes), []  # type: ignore[has-type]

    def _asked(self, value: int, answer: Readiness, now_ns: int) -> Readiness:
        absent = self.stage.barrier.absent(value, now_ns) if answer is Readiness.DEGRADED else ()
        self.entries.append((now_ns, "ask", self.out, (value, answer.value, absent)))
        return answer

    def _note(self, outcome: Joined | Skipped, now_ns: int) -> None:
        self.outcomes.append(outcome)
        if isinstance(outcome, Joined):
            frames = tuple((frame.stream_id, frame_facts(frame)) for frame in outcome.frames)
            self.entries.append((now_ns, "emit", self.out, (outcome.out, frames, outcome.absent)))
        elif outcome.reason in _OPEN:
            streams = tuple(stream_id for stream_id, _ in outcome.misses)
            self.entries.append((now_ns, "again", self.out, (outcome.first, outcome.reason.value, streams)))
        else:
            misses = tuple((stream_id, miss.value) for stream_id, miss in outcome.misses)
            self.entries.append((now_ns, "skip", self.out, (outcome.first, outcome.last, outcome.reason.value, misses)))
