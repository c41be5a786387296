"""Joins of streams in shared memory: merge maps, the three barriers, and what a stage around them does.

Source: merge-map-join-barrier, sound by protocol rules 27 to 33. `docs/join.md` maps its sentences to code and tests.
"""

from barrierlab.impl.join.barrier import JoinBarrier as JoinBarrier
from barrierlab.impl.join.barrier import JoinConfig as JoinConfig
from barrierlab.impl.join.barrier import LatenessScope as LatenessScope
from barrierlab.impl.join.barrier import MapChange as MapChange
from barrierlab.impl.join.barrier import Observed as Observed
from barrierlab.impl.join.barrier import Readiness as Readiness
from barrierlab.impl.join.codec import Refusal as Refusal
from barrierlab.impl.join.codec import Undecodable as Undecodable
from barrierlab.impl.join.codec import decode as decode
from barrierlab.impl.join.codec import encode as encode
from barrierlab.impl.join.inputs import Read as Read
from barrierlab.impl.join.late_join import MergeMapAuthority as MergeMapAuthority
from barrierlab.impl.join.late_join import MergeMapJoiner as MergeMapJoiner
from barrierlab.impl.join.latest import LatestValueJoinBarrier as LatestValueJoinBarrier
from barrierlab.impl.join.merge_map import ClockDomain as ClockDomain
from barrierlab.impl.join.merge_map import InvalidMergeMap as InvalidMergeMap
from barrierlab.impl.join.merge_map import MergeMap as MergeMap
from barrierlab.impl.join.merge_map import MergeMapRequest as MergeMapRequest
from barrierlab.impl.join.merge_map import MergeRuleType as MergeRuleType
from barrierlab.impl.join.merge_map import MergeTimeRuleType as MergeTimeRuleType
from barrierlab.impl.join.merge_map import SequenceMergeMapAnnounce as SequenceMergeMapAnnounce
from barrierlab.impl.join.merge_map import SequenceMergeMapRequest as SequenceMergeMapRequest
from barrierlab.impl.join.merge_map import SequenceMergeRule as SequenceMergeRule
from barrierlab.impl.join.merge_map import TimestampMergeMapAnnounce as TimestampMergeMapAnnounce
from barrierlab.impl.join.merge_map import TimestampMergeMapRequest as TimestampMergeMapRequest
from barrierlab.impl.join.merge_map import TimestampMergeRule as TimestampMergeRule
from barrierlab.impl.join.merge_map import TimestampSource as TimestampSource
from barrierlab.impl.join.ring import Frame as Frame
from barrierlab.impl.join.ring import Miss as Miss
from barrierlab.impl.join.ring import Opened as Opened
from barrierlab.impl.join.ring import SlotRing as SlotRing
from barrierlab.impl.join.sequence import SequenceJoinBarrier as SequenceJoinBarrier
from barrierlab.impl.join.stage import JoinAttempt as JoinAttempt
from barrierlab.impl.join.stage import Joined as Joined
from barrierlab.impl.join.stage import JoinStage as JoinStage
from barrierlab.impl.join.stage import OnFailure as OnFailure
from barrierlab.impl.join.stage import PendingPolicy as PendingPolicy
from barrierlab.impl.join.stage import Skipped as Skipped
from barrierlab.impl.join.stage import SkipReason as SkipReason
from barrierlab.impl.join.stage import StageConfig as StageConfig
from barrierlab.impl.join.timestamp import TimestampJoinBarrier as TimestampJoinBarrier
