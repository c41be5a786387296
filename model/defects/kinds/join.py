"""A defect of joins: the sound components with one of them changed, and a run that shows the difference.

What the J-entries say theirs with is imported from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from barrierlab.impl.join import (
    ClockDomain,
    Frame,
    JoinConfig,
    Joined,
    JoinStage,
    LatestValueJoinBarrier,
    MergeMap,
    MergeMapAuthority,
    MergeMapJoiner,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    SequenceMergeRule,
    StageConfig,
    TimestampJoinBarrier,
    TimestampMergeMapAnnounce,
    TimestampMergeRule,
    TimestampSource,
)
from barrierlab.model.defects.kinds.found import Found
from barrierlab.model.join.history import text
from barrierlab.model.join.invariants import judge_join
from barrierlab.model.join.world import JoinWorld as JoinWorld

OUT = 9
SLOT = TimestampSource.SLOT_HEADER


@dataclass(frozen=True, slots=True)
class JoinComponents:
    """The parts of a join; a defect changes one of them."""

    sequence: Callable[[JoinConfig], SequenceJoinBarrier] = SequenceJoinBarrier
    timestamp: Callable[[JoinConfig], TimestampJoinBarrier] = TimestampJoinBarrier
    latest: Callable[..., LatestValueJoinBarrier] = LatestValueJoinBarrier
    stage: Callable[..., JoinStage] = JoinStage
    sequence_map: Callable[..., SequenceMergeMapAnnounce] = SequenceMergeMapAnnounce
    timestamp_map: Callable[..., TimestampMergeMapAnnounce] = TimestampMergeMapAnnounce
    sequence_rule: Callable[..., SequenceMergeRule] = SequenceMergeRule.at_offset
    authority: Callable[[], MergeMapAuthority] = MergeMapAuthority
    joiner: Callable[..., MergeMapJoiner] = MergeMapJoiner


@dataclass(frozen=True, slots=True)
class JoinDefect:
    """A change to the sound join, and what a run of it shows.

    Attributes
    ----------
    kind : str
        ``safety``, ``liveness``, ``timing``, ``value`` or ``contradiction`` (both readings can be had).
    breaks : str
        The invariant that its run breaks (`model.join.invariants`), or ``value``.
    changed : JoinComponents
    witness : callable
        Given components, runs them: a world, whose journal is judged, or for ``value`` what came out.
    right, wrong : object
        For ``value``: what comes out of the sound components, and of the changed ones.
    """

    kind: str
    breaks: str
    changed: JoinComponents
    witness: Callable[[JoinComponents], Any]
    right: object = field(default=None)
    wrong: object = field(default=None)

    def as_documented(self) -> Found:
        """Return what the changed components come to."""
        return self._run(self.changed)

    def sound(self) -> Found:
        """Return what the sound components come to on the same run."""
        return self._run(JoinComponents())

    def _run(self, components: JoinComponents) -> Found:
        begun, result = monotonic(), self.witness(components)
        if self.breaks == "value":
            if result == self.right:
                return Found(seconds=monotonic() - begun)
            return Found(frozenset({"value"}), 1, 0, monotonic() - begun, f"{result}\n")
        violations = judge_join(result.entries, result.spec).violations
        if not violations:
            return Found(seconds=monotonic() - begun)
        lines = [*map(text, result.entries), *(f"! {violation}" for violation in violations)]
        broken = frozenset(violation.invariant for violation in violations)
        trace = "".join(f"{line}\n" for line in lines)
        return Found(broken, len(result.entries), 0, monotonic() - begun, trace)


# Short ways to write a witness.


def numbers(
    components: JoinComponents, *rules: SequenceMergeRule, epoch: int = 1, stale: int | None = None
) -> MergeMap:
    """A sequence map, as these components make it."""
    return components.sequence_map(OUT, epoch, rules, stale)


def times(
    components: JoinComponents,
    *rules: TimestampMergeRule,
    epoch: int = 1,
    stale: int | None = None,
    late: int | None = None,
) -> MergeMap:
    """A timestamp map, as these components make it."""
    return components.timestamp_map(OUT, epoch, ClockDomain.MONOTONIC, rules, stale, late)


at = SequenceMergeRule.at_offset
at_ns, window_ns = TimestampMergeRule.at_offset, TimestampMergeRule.in_window


def world(
    components: JoinComponents,
    barrier: str,
    merge_map: MergeMap | None = None,
    slots: int = 8,
    config: StageConfig | None = None,
    **options: Any,
) -> JoinWorld:
    """A world of these components around a barrier, ``"sequence"``, ``"timestamp"`` or ``"latest"``."""
    rings = dict.fromkeys((1, 2, 3), slots)
    make = {"sequence": components.sequence, "timestamp": components.timestamp, "latest": components.latest}[barrier]
    settings = config or StageConfig(slots=tuple(rings.items()))
    it = JoinWorld(components.stage(make(JoinConfig(OUT, **options)), settings), rings)
    if merge_map is not None:
        it.announce(merge_map, 0)
    return it


def show(it: JoinWorld, stream: int, *seqs: int, now: int = 0, epoch: int = 1, stamp: int | None = None) -> JoinWorld:
    """Frames of a stream are published and observed; their time is their number, or `stamp`."""
    for seq in seqs:
        at_ns_ = seq if stamp is None else stamp
        frame = Frame(stream, epoch, seq, at_ns_, at_ns_)
        it.publish(frame, now)
        it.observe(frame, now)
    return it


def outs(it: JoinWorld) -> list[int]:
    """Return what came out."""
    return [outcome.out for outcome in it.outcomes if isinstance(outcome, Joined)]
