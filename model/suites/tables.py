"""The formal model: what each protocol is, as a table of situations and what is done about them."""

from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.checkpoint.tables.aligned import ALIGNED
from barrierlab.model.checkpoint.tables.fallback import FALLBACK
from barrierlab.model.checkpoint.tables.gate import Gate, Rules
from barrierlab.model.checkpoint.tables.stimuli import Effect, Part, Stimulus
from barrierlab.model.checkpoint.tables.unaligned import UNALIGNED
from barrierlab.model.control.table import CONTROL
from barrierlab.model.control.upstreams import ControlStimulus, Upstreams
from barrierlab.model.explore.table import Row, Table, TableError

TABLES: dict[str, Table[Gate, Stimulus] | Table[Upstreams, ControlStimulus]] = {
    **{name: protocol.table for name, protocol in PROTOCOLS.items()},
    "control": CONTROL,
}

__all__ = [
    "ALIGNED",
    "CONTROL",
    "FALLBACK",
    "TABLES",
    "UNALIGNED",
    "ControlStimulus",
    "Effect",
    "Gate",
    "Stimulus",
    "Part",
    "Row",
    "Rules",
    "Table",
    "TableError",
    "Upstreams",
]
