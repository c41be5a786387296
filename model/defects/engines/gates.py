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
from barrierlab.model.defects.engines.kind import Exhibit
from barrierlab.model.defects.engines.loops import JetLoop, StashLoop
from barrierlab.model.defects.kinds.barrier import Bounds, Components


def _aligners(reported: type, repaired: type, **extent: Any) -> tuple[Bounds, Components, Components]:
    """Two aligners of a task with two inputs."""
    bounds = Bounds("a->s b->s", **{"events": 1, **extent})
    return bounds, unexamined(reported, "aligned"), unexamined(repaired, "aligned")


ENTRIES: dict[str, Exhibit] = {
    "FLINK-1775": _aligners(EndForgets, FlinkCount, closes=True),
    "RISINGWAVE-2243": _aligners(OneSide, EpochMerge),
    "HAZELCAST-22207": _aligners(StashLoop, JetLoop),
    "SEATUNNEL-11559": _aligners(NoTombstone, Jet, cancels=1),
    "STORM-984": _aligners(Tuples, Jet),
}
