"""The common parts of the tests of joins: short ways to write maps, frames and worlds."""

from __future__ import annotations

from typing import TypeVar

from barrierlab.impl.join import (
    ClockDomain,
    Frame,
    JoinBarrier,
    JoinConfig,
    JoinStage,
    LatestValueJoinBarrier,
    MergeMap,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    SequenceMergeRule,
    StageConfig,
    TimestampJoinBarrier,
    TimestampMergeMapAnnounce,
    TimestampMergeRule,
    TimestampSource,
)
from barrierlab.model.join.invariants import judge_join
from barrierlab.model.join.world import JoinWorld, facts_of

B = TypeVar("B", bound=JoinBarrier)
OUT = 9
MS = 1_000_000
S = 1_000_000_000
FRAME, SLOT = TimestampSource.FRAME_DESCRIPTOR, TimestampSource.SLOT_HEADER


def numbers(*rules: SequenceMergeRule, epoch: int = 1, stale: int | None = None) -> SequenceMergeMapAnnounce:
    """A sequence map."""
    return SequenceMergeMapAnnounce(OUT, epoch, rules, stale)


def times(
    *rules: TimestampMergeRule,
    epoch: int = 1,
    stale: int | None = None,
    late: int | None = None,
    clock: ClockDomain = ClockDomain.MONOTONIC,
) -> TimestampMergeMapAnnounce:
    """A timestamp map."""
    return TimestampMergeMapAnnounce(OUT, epoch, clock, rules, stale, late)


def at(stream: int, offset: int = 0) -> SequenceMergeRule:
    """in_seq = out_seq + offset."""
    return SequenceMergeRule.at_offset(stream, offset)


def window(stream: int, size: int) -> SequenceMergeRule:
    """in_seq_range = [out_seq - size + 1, out_seq]."""
    return SequenceMergeRule.in_window(stream, size)


def at_ns(stream: int, offset: int = 0, source: TimestampSource = FRAME) -> TimestampMergeRule:
    """in_time = out_time + offset."""
    return TimestampMergeRule.at_offset(stream, offset, source)


def window_ns(stream: int, size: int, source: TimestampSource = FRAME) -> TimestampMergeRule:
    """in_time_range = [out_time - size, out_time]."""
    return TimestampMergeRule.in_window(stream, size, source)


def sequence(merge_map: MergeMap | None = None, now: int = 0, **config: object) -> SequenceJoinBarrier:
    """A sequence barrier, with a map in force if one is given."""
    return applied(SequenceJoinBarrier(JoinConfig(OUT, **config)), merge_map, now)  # type: ignore[arg-type]


def timestamp(merge_map: MergeMap | None = None, now: int = 0, **config: object) -> TimestampJoinBarrier:
    """A timestamp barrier."""
    return applied(TimestampJoinBarrier(JoinConfig(OUT, **config)), merge_map, now)  # type: ignore[arg-type]


def latest(merge_map: MergeMap | None = None, now: int = 0, by_timestamp: bool = False) -> LatestValueJoinBarrier:
    """A latest value barrier, for maps of the kind of the one that is given."""
    kind = SequenceMergeMapAnnounce if merge_map is None else type(merge_map)
    return applied(LatestValueJoinBarrier(JoinConfig(OUT), kind, by_timestamp), merge_map, now)


def applied(barrier: B, merge_map: MergeMap | None, now: int) -> B:
    """The barrier, with the map in force if there is one."""
    if merge_map is not None:
        assert barrier.announce(merge_map, now).name == "APPLIED"
    return barrier


def frame(stream: int, seq: int, at: int | None = None, captured: int | None = None, epoch: int = 1) -> Frame:
    """A frame; `at` is the descriptor's time, `captured` the slot header's, the same where not given."""
    return Frame(stream, epoch, seq, at, at if captured is None else captured)


def world(barrier: JoinBarrier, slots: int = 8, streams: tuple[int, ...] = (1, 2, 3), **config: object) -> JoinWorld:
    """A world around `barrier`, with rings of so many slots."""
    rings = dict.fromkeys(streams, slots)
    it = JoinWorld(JoinStage(barrier, StageConfig(slots=tuple(rings.items()), **config)), rings)  # type: ignore[arg-type]
    if barrier.active is not None:
        it.entries.append((0, "announce", OUT, facts_of(barrier.active)))
    return it


def feed(it: JoinWorld, each: Frame, now: int) -> None:
    """Publish a frame, let its descriptor come at once, and do what can be done."""
    it.publish(each, now)
    it.observe(each, now)


def outputs(it: JoinWorld) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Return what came out: the output, the numbers of the frames, who was absent."""
    return [
        (outcome.out, tuple(each.seq for each in outcome.frames), outcome.absent)
        for outcome in it.outcomes
        if hasattr(outcome, "frames")
    ]


def skipped(it: JoinWorld) -> list[tuple[int, int, str]]:
    """Return what was passed over, and why."""
    return [(each.first, each.last, each.reason.value) for each in it.outcomes if hasattr(each, "reason")]


def holds(it: JoinWorld) -> bool:
    """Return whether the invariants hold over the world's journal; shows what does not."""
    verdict = judge_join(it.entries, it.spec)
    assert verdict.violations == (), [str(v) for v in verdict.violations]
    return verdict.verdict == "holds"
