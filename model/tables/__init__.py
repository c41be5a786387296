"""The formal model: what each protocol is, as a table of situations and what is done about them."""

from model.tables.aligned import ALIGNED
from model.tables.control import CONTROL
from model.tables.fallback import FALLBACK
from model.tables.gate import Gate, Rules
from model.tables.happenings import Effect, Happening, Part
from model.tables.table import Row, Table, TableError
from model.tables.unaligned import UNALIGNED
from model.tables.upstreams import ControlHappening, Upstreams

TABLES: dict[str, Table[Gate, Happening] | Table[Upstreams, ControlHappening]] = {
    "aligned": ALIGNED,
    "unaligned": UNALIGNED,
    "fallback": FALLBACK,
    "control": CONTROL,
}

__all__ = [
    "ALIGNED",
    "CONTROL",
    "FALLBACK",
    "TABLES",
    "UNALIGNED",
    "ControlHappening",
    "Effect",
    "Gate",
    "Happening",
    "Part",
    "Row",
    "Rules",
    "Table",
    "TableError",
    "Upstreams",
]
