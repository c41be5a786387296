"""All entries of the second catalogue, and the sound schemes beside them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from barrierlab.model.checkpoint.protocols import EXACT
from barrierlab.model.defects.engines import channels, coordination, gates, recoveries
from barrierlab.model.defects.engines.aligners import Alternating, EpochMerge, FlinkCount, Jet
from barrierlab.model.defects.engines.kind import EngineEntry

TRACES = Path(__file__).with_name("traces")
"""The folder of the shortest run of each entry, as ``ID.trace``."""

SOUND: dict[str, tuple[type, tuple[str, ...]]] = {
    "Hazelcast Jet, as it is now": (Jet, ("aligned",)),
    "Flink's aligned gate, since FLINK-1775": (FlinkCount, ("aligned",)),
    "Flink's alternating controller, since FLINK-22638": (Alternating, EXACT),
    "RisingWave's merge, which compares epochs": (EpochMerge, ("aligned",)),
}
"""Schemes of engines that hold in every dataflow of `barrierlab.model.suites.standard.small` that they declare to take
part in."""


@cache
def reports() -> tuple[EngineEntry, ...]:
    """Every entry, in the order of its row."""
    modules = (gates, channels, coordination, recoveries)
    return tuple(sorted((each for module in modules for each in module.ENTRIES), key=lambda each: (each.row, each.id)))
