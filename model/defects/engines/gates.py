"""Reports about what a task does with its inputs: aligners of engines in explored dataflows."""

from __future__ import annotations

from typing import Any

from barrierlab.model.checkpoint.external import unexamined
from barrierlab.model.defects.engines.aligners import (
    EndForgets,
    EpochMerge,
    FlinkCount,
    Jet,
    NoTombstone,
    OneSide,
    Tuples,
)
from barrierlab.model.defects.engines.kind import entry
from barrierlab.model.defects.engines.loops import JetLoop, StashLoop
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds


def _defect(entry: str, breaks: str, reported: type, repaired: type, title: str, **extent: Any) -> BarrierDefect:
    """Two aligners of a task with two inputs."""
    bounds = Bounds("a->s b->s", **{"events": 1, **extent})
    its = bounds, unexamined(reported, "aligned"), title, unexamined(repaired, "aligned")
    return BarrierDefect(breaks, *its, entry=entry)


ENTRIES = (
    entry(
        1,
        "an_end_does_not_look_at_the_count",
        "Flink",
        ("https://issues.apache.org/jira/browse/FLINK-1775", "https://github.com/apache/flink/pull/534"),
        "An input ends while the others wait for its barrier, and nobody counts again: they wait for ever.",
        "An end counts as a barrier, and completes the alignment where it is the last.",
        _defect(
            *("FLINK-1775", "LIVE", EndForgets, FlinkCount),
            "a's barrier waits at s for b's; b ends without one.",
            closes=True,
        ),
    ),
    entry(
        10,
        "the_barrier_goes_on_when_one_side_has_it",
        "RisingWave",
        (
            "https://github.com/risingwavelabs/risingwave/issues/2243",
            "https://github.com/risingwavelabs/risingwave/pull/2244",
        ),
        "An operator with two inputs sends the barrier on as soon as one of them has delivered it.",
        "Both sides deliver the barrier of an epoch before it goes on.",
        _defect(
            *("RISINGWAVE-2243", "CUT", OneSide, EpochMerge),
            "s takes its image when a's barrier is in; b's event, sent before b's barrier, comes later.",
        ),
    ),
    entry(
        13,
        "the_next_queue_overtakes_the_stashed_barrier",
        "Hazelcast Jet",
        ("https://github.com/hazelcast/hazelcast/pull/22207", "https://github.com/hazelcast/hazelcast/issues/21908"),
        "The last barrier goes to a stash and its queues wait no more; the same round reads on, and hands out the next "
        "queue's item ahead of the stashed barrier.",
        "The round ends where the last barrier was found.",
        _defect(
            *("HAZELCAST-22207", "CUT", StashLoop, JetLoop),
            "The barrier of both is in the stash, and an event behind it is taken in the same round.",
        ),
    ),
    entry(
        17,
        "an_abort_that_comes_first_is_forgotten",
        "SeaTunnel",
        ("https://github.com/apache/seatunnel/pull/11559",),
        "An abort lets go what waits and leaves no mark: a barrier of the aborted checkpoint that comes later blocks "
        "its input again, and nobody will come to free it.",
        "Ids that were aborted are remembered, and their barriers ignored.",
        _defect(
            *("SEATUNNEL-11559", "LIVE", NoTombstone, Jet),
            "Checkpoint 1 is aborted at s, and its barrier comes behind that.",
            cancels=1,
        ),
        "review remark",
    ),
    entry(
        21,
        "nothing_waits_for_a_checkpoint_tuple",
        "Storm",
        ("https://github.com/apache/storm/pull/984",),
        "A bolt goes on taking from an input that has delivered its checkpoint tuple, so its state holds what will be "
        "sent again. Storm promises no more than at least once, and documents it.",
        "For exactly once, an input that has delivered waits for the others.",
        _defect(
            *("STORM-984", "CUT", Tuples, Jet),
            "a's event behind its barrier is in the state that s saves when b's barrier comes.",
        ),
        "documented",
    ),
)
