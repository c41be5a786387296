"""Joins of streams in shared memory: merge maps, the three barriers, and what a stage around them does.

Source: merge-map-join-barrier, sound by protocol rules 27 to 33. `docs/join.md` maps its sentences to code and tests.
"""

from __future__ import annotations

from barrierlab.impl.join.barrier import (
    JoinBarrier,
    JoinConfig,
    LatenessScope,
    MapChange,
    Observed,
    Readiness,
)
from barrierlab.impl.join.codec import Refusal, Undecodable, decode, encode
from barrierlab.impl.join.inputs import Read
from barrierlab.impl.join.late_join import MergeMapAuthority, MergeMapJoiner
from barrierlab.impl.join.latest import LatestValueJoinBarrier
from barrierlab.impl.join.merge_map import (
    ClockDomain,
    InvalidMergeMap,
    MergeMap,
    MergeMapRequest,
    MergeRuleType,
    MergeTimeRuleType,
    SequenceMergeMapAnnounce,
    SequenceMergeMapRequest,
    SequenceMergeRule,
    TimestampMergeMapAnnounce,
    TimestampMergeMapRequest,
    TimestampMergeRule,
    TimestampSource,
)
from barrierlab.impl.join.ring import Frame, Miss, Opened, SlotRing
from barrierlab.impl.join.sequence import SequenceJoinBarrier
from barrierlab.impl.join.stage import (
    JoinAttempt,
    Joined,
    JoinStage,
    OnFailure,
    PendingPolicy,
    Skipped,
    SkipReason,
    StageConfig,
)
from barrierlab.impl.join.timestamp import TimestampJoinBarrier

__all__ = [
    "JoinAttempt",
    "ClockDomain",
    "Frame",
    "InvalidMergeMap",
    "JoinBarrier",
    "JoinConfig",
    "JoinStage",
    "Joined",
    "LatenessScope",
    "LatestValueJoinBarrier",
    "MapChange",
    "MergeMap",
    "MergeMapAuthority",
    "MergeMapJoiner",
    "MergeMapRequest",
    "MergeRuleType",
    "MergeTimeRuleType",
    "Miss",
    "Observed",
    "OnFailure",
    "Opened",
    "PendingPolicy",
    "Read",
    "Readiness",
    "Refusal",
    "SequenceJoinBarrier",
    "SequenceMergeMapAnnounce",
    "SequenceMergeMapRequest",
    "SequenceMergeRule",
    "SkipReason",
    "Skipped",
    "SlotRing",
    "StageConfig",
    "TimestampJoinBarrier",
    "TimestampMergeMapAnnounce",
    "TimestampMergeMapRequest",
    "TimestampMergeRule",
    "TimestampSource",
    "Undecodable",
    "decode",
    "encode",
]
