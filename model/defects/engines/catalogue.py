"""All entries of the second catalogue, and the sound schemes beside them."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from barrierlab.model.checkpoint.protocols import EXACT
from barrierlab.model.defects.engines import channels, coordination, gates, recoveries
from barrierlab.model.defects.engines.aligners import Alternating, EpochMerge, FlinkCount, Jet
from barrierlab.model.defects.engines.kind import EngineEntry, Exhibit, SchemeDefect, entry
from barrierlab.model.defects.kinds.barrier import BarrierDefect

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
    text = files("barrierlab.model.defects.engines").joinpath("reports.toml").read_text("utf-8")
    shown = {**gates.ENTRIES, **channels.ENTRIES, **coordination.ENTRIES, **recoveries.ENTRIES}
    entries = (_entry(word, shown[word], **its) for word, its in tomllib.loads(text).items())
    return tuple(sorted(entries, key=lambda each: (each.row, each.id)))


def _entry(word: str, shown: Exhibit, kind: str, breaks: str, title: str, **its: Any) -> EngineEntry:
    if callable(shown):
        return entry(defect=SchemeDefect(word, kind, breaks, title, shown), **its)
    bounds, reported, repaired = shown
    return entry(defect=BarrierDefect(breaks, bounds, reported, title, repaired, kind, word), **its)
