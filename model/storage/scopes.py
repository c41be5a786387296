"""The standard scopes of the store: small works of one or two processes, with whatever may happen between two calls.

Beside them are any order of calls, and the bytes of what is stored, case by case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from barrierlab.model.checkpoint.check import (
    NOT_REPEATABLE,
    CaseScope,
    NamedScope,
    Outcome,
    ScopeViolation,
    limits,
    outcome_of,
)
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.explore.checker import BROKEN, UNDECIDED, explore
from barrierlab.model.storage import codec
from barrierlab.model.storage.calls import SCOPE as CALLS
from barrierlab.model.storage.external_store import ExternalCode
from barrierlab.model.storage.world import StoreBounds, StoreWorld, properties


@dataclass(frozen=True, slots=True)
class StoreScope(NamedScope):
    """Processes with a store to explore.

    Attributes
    ----------
    of : str
        The processes, and what goes wrong.
    bounds : StoreBounds
    states : int
        How many there are: the number moves when the meaning does.
    """

    of: str
    bounds: StoreBounds
    states: int
    protocol: str = "store"

    @property
    def has_one_writer(self) -> bool:
        """Return whether one process at a time writes."""
        return all(set(work) <= {"open", "recover"} for _, work in self.bounds.clients[1:])

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Explore it, with the external store of `components`, if there is one; that one is to do the same twice."""
        external = None if components.store is None else ExternalCode(self.bounds, components.store)
        world = StoreWorld(self.bounds, external)
        result = explore(world, properties(world), limits=limits(seconds))
        outcome = outcome_of(self.name, self.protocol, result, invariant="")
        if external is None or outcome.verdict == UNDECIDED or not (why := world.difference()):
            return outcome
        return replace(
            outcome, verdict=BROKEN, why=why, violations=(ScopeViolation(NOT_REPEATABLE, self.name, 0, why),)
        )


def _bytes(group: str, states: int) -> CaseScope:
    """Make the scope of a group of `model.storage.codec`: what is stored, case by case."""
    return CaseScope(group, partial(codec.tried, group), states, "store", " bytes", "BYTES")


def one(*work: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return one process that does this."""
    return (("writer", ("open", *work)),)


def beside(work: tuple[str, ...], *other: str, name: str = "other") -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return a writer that does this, and another process."""
    return (*one(*work), (name, ("open", *other)))


AGAIN = ("open", "recover", "retain 1")
EVERYTHING = ("recover", "clean", "take", "retain 1", "drop", "take", "take", "retain 2", "clean")
TAKE = ("take", "retain 1")
THREE = ("clean", *TAKE, "drop", *TAKE)
WORLDS = (
    StoreScope("all that can be asked", StoreBounds(one(*EVERYTHING), 2, left=True, parts=2), 609),
    StoreScope("the first checkpoint, and a crash", StoreBounds(one("take"), 0, crashes=1), 56),
    StoreScope("three checkpoints, and a crash", StoreBounds(one(*THREE), 1, left=True, crashes=1), 327),
    StoreScope("a part with what is in flight, and a crash", StoreBounds(one("take"), 1, parts=2, crashes=1), 106),
    StoreScope("a crash, and one in the work after it", StoreBounds(one("take"), crashes=2, restarts=AGAIN), 1372),
    StoreScope("a killed process, then a crash", StoreBounds(one(*TAKE), crashes=1, kills=1, restarts=AGAIN), 2969),
    StoreScope(
        "a call that fails, then a crash",
        StoreBounds(one("retain 1", *TAKE, "clean"), left=True, crashes=1, fails=1),
        1891,
    ),
    StoreScope("two calls that fail", StoreBounds(one(*TAKE), fails=2), 3472),
    StoreScope("a reader, and retention", StoreBounds(beside(TAKE, "recover", name="reader"), until="rename"), 15689),
    StoreScope("two writers begin", StoreBounds(beside(("take",), "take")), 4287),
    StoreScope(
        "an attempt that another removes", StoreBounds(beside(("take",), "clean"), until="create store/"), 10580
    ),
    StoreScope(
        "an attempt that another removes, and a crash",
        StoreBounds(beside(TAKE, "clean"), until="reopen", crashes=1),
        8003,
    ),
    StoreScope("two writers retain", StoreBounds(beside(TAKE, "retain 1"), until="rename"), 14671),
)
BYTES = (
    _bytes("values", 91),
    _bytes("files", 17),
    _bytes("manifests", 3),
    _bytes("limits", 69),
    _bytes("damage", 8),
    _bytes("links", 16),
    _bytes("the disk of this machine", 203),
)
SCOPES = (*WORLDS, CALLS, *BYTES)
