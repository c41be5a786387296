"""All entries of the catalogue, in the order of their ids: those that run, and those that are only listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from textwrap import shorten
from types import ModuleType

from barrierlab.model.defects.kinds.found import Defect, Found
from barrierlab.model.defects.listed import NOT_RUN
from barrierlab.model.render.html import block, paragraph

DOCUMENTS = {
    "P": "F-DCKP-001 barrier protocol",
    "A": "F-DCKP-002 barrier alignment",
    "U": "F-DCKP-006 unaligned checkpoints",
    "S": "barrier control signals",
    "J": "MergeMap and JoinBarrier",
    "X": "between the documents",
}
"""By the first letter of an id."""

ROOMS = {"P": "barrier", "A": "alignment", "U": "unaligned", "S": "control", "J": "join"}
"""The folder of the entries, by the first letter of an id. Of X nothing is run."""

CAUGHT, MISSED, LISTED, UNSOUND = "caught", "missed", "listed", "the sound protocol is broken"


@dataclass(frozen=True, slots=True, repr=False)
class CatalogueEntry:
    """An entry of the catalogue.

    Attributes
    ----------
    id : str
        ``"A-04"``.
    name : str
        Of its module, ``"A04_barrier_after_held_records"``; of one that is listed, its id.
    defect : Defect or None
        None if it is listed.
    page : str
        Its docstring; of one that is listed, the reading that was chosen.
    """

    id: str
    name: str
    defect: Defect | None
    page: str

    @property
    def document(self) -> str:
        """Return which it is about."""
        return DOCUMENTS[self.id[0]]

    @property
    def title(self) -> str:
        """The first line of its page, without the full stop."""
        return self.page.split("\n", 1)[0].rstrip(".")

    def __repr__(self) -> str:
        return f"<CatalogueEntry: {self.id}: {shorten(self.title, 100, placeholder=' ...')}>"

    def _repr_html_(self) -> str:
        breaks = "listed, and not run" if self.defect is None else f"{self.defect.kind}; breaks {self.defect.breaks}"
        return block(f"{self.id}, {self.document}", "", paragraph(breaks), paragraph(self.page))

    def run(self) -> tuple[str, Found]:
        """Return whether it is caught: it breaks what it says, and what is sound does not; and what was found."""
        if self.defect is None:
            return LISTED, Found()
        sound = self.defect.sound()
        if sound.broken:
            return UNSOUND, sound
        found = self.defect.as_documented()
        return (CAUGHT if self.defect.breaks in found.broken else MISSED), found


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Every entry, in the order of the documents."""
    order = "".join(DOCUMENTS)
    return tuple(sorted(_entries(), key=lambda entry: (order.index(entry.id[0]), entry.id, entry.name)))


def entry(word: str) -> CatalogueEntry:
    """Return the entry of this id.

    Raises
    ------
    KeyError
        If there is none.

    >>> entry("A-04").title
    'The barrier leaves behind the records that waited behind it'
    """
    return {each.id: each for each in catalogue()}[word]


def id_of(name: str) -> str:
    """Return the id of an entry by the name of its module.

    >>> id_of("A04_barrier_after_held_records")
    'A-04'
    """
    return f"{name[0]}-{name[1:3]}"


def modules() -> Iterator[tuple[str, ModuleType]]:
    """The modules of all entries that can be run, room by room, each with its name."""
    for room in ROOMS.values():
        folder = files("barrierlab.model.defects") / room
        names = sorted(name for name in (path.name for path in folder.iterdir()) if name[1:3].isdecimal())
        for name in (name.removesuffix(".py") for name in names if name.endswith(".py")):
            yield name, import_module(f"barrierlab.model.defects.{room}.{name}")


def _entries() -> Iterator[CatalogueEntry]:
    for name, module in modules():
        defect: Defect = module.DEFECT
        yield CatalogueEntry(id_of(name), name, defect, (module.__doc__ or "").strip())
    for entry, reading in NOT_RUN.items():
        yield CatalogueEntry(entry, entry, None, reading)
