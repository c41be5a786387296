"""The formal model: what each protocol is, as a table of situations and what is done about them."""

from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.checkpoint.tables.aligned import ALIGNED
from barrierlab.model.checkpoint.tables.aligned_with_timeout import ALIGNED_WITH_TIMEOUT
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.tables.stimuli import Effect, SnapshotComplete, Stimulus
from barrierlab.model.checkpoint.tables.unaligned import UNALIGNED
from barrierlab.model.control.table import CONTROL
from barrierlab.model.control.upstreams import ControlStimulus, Upstreams
from barrierlab.model.explore.table import Row, Table, TableError

TABLES: dict[str, Table[GateState, Stimulus] | Table[Upstreams, ControlStimulus]] = {
    **{name: protocol.table for name, protocol in PROTOCOLS.items()},
    "control": CONTROL,
}

__all__ = [
    "ALIGNED",
    "CONTROL",
    "ALIGNED_WITH_TIMEOUT",
    "TABLES",
    "UNALIGNED",
    "ControlStimulus",
    "Effect",
    "GateState",
    "Stimulus",
    "SnapshotComplete",
    "Row",
    "GateRules",
    "Table",
    "TableError",
    "Upstreams",
]
