"""The formal model: what each protocol is, as a table of situations and what is done about them."""

from model.tables.aligned import ALIGNED
from model.tables.fallback import FALLBACK
from model.tables.gate import Gate, Rules
from model.tables.happenings import Effect, Happening, Part
from model.tables.table import Row, Table, TableError
from model.tables.unaligned import UNALIGNED

TABLES = {"aligned": ALIGNED, "unaligned": UNALIGNED, "fallback": FALLBACK}

__all__ = [
    "ALIGNED",
    "FALLBACK",
    "TABLES",
    "UNALIGNED",
    "Effect",
    "Gate",
    "Happening",
    "Part",
    "Row",
    "Rules",
    "Table",
    "TableError",
]
