"""External classes of several kinds together: the dataflows are made of them, and of the machines of `impl`.

A class says by its attribute ``role`` what it is; without one it is an aligner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, cast

from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.impl.checkpoint.report import Tell
from barrierlab.impl.checkpoint.transactions import Ledger, SinkWriter
from barrierlab.model.checkpoint import external_coordinator, external_source, external_writer
from barrierlab.model.checkpoint.capabilities import DIFFERENCES, DRAINS_FIRST, Capabilities
from barrierlab.model.checkpoint.check import Scope, WorldScope
from barrierlab.model.checkpoint.components import SOUND, Components, MakeCoordinator
from barrierlab.model.checkpoint.external import capabilities_of, parts_of
from barrierlab.model.checkpoint.external_writer import GUARANTEES
from barrierlab.model.checkpoint.hosting import ExternalError, brief, declared_by, role_of
from barrierlab.model.checkpoint.protocols import EXACT, PROTOCOLS
from barrierlab.model.storage import external_store
from barrierlab.model.storage.scopes import StoreScope

ALIGNER = "aligner"
COORDINATOR = "coordinator"
SOURCE = "source"
STORE = "store"
ROLES = (ALIGNER, COORDINATOR, *GUARANTEES, SOURCE, STORE)
_OF_IMPL: dict[type, str] = {CheckpointCoordinator: COORDINATOR}
"""A class that inherits from one of these needs no attribute."""


@dataclass(frozen=True)
class External:
    """External classes, one of a role at most.

    Parameters
    ----------
    kinds : sequence of type

    Attributes
    ----------
    of_role : dict of str to type

    Raises
    ------
    ExternalError
        If two have one role, or a role or a declaration is none.
    """

    of_role: dict[str, type]

    @classmethod
    def of(cls, kinds: Sequence[type]) -> External:
        """Return the parts, found by their roles."""
        found: dict[str, type] = {}
        for kind in kinds:
            role = role_of(kind) or next((role for base, role in _OF_IMPL.items() if issubclass(kind, base)), ALIGNER)
            if role not in ROLES:
                raise ExternalError(f"{kind.__name__}.role is {brief(kind.role)}; allowed: {', '.join(ROLES)}")  # type: ignore[attr-defined]
            if role in found:
                raise ExternalError(
                    f"{found[role].__name__} and {kind.__name__} are both of role {role!r}; allowed: one of each role"
                )
            found[role] = kind
        return cls(found)

    @property
    def aligner(self) -> type | None:
        """The aligner among them."""
        return self.of_role.get(ALIGNER)

    @property
    def reducible(self) -> bool:
        """Return whether the reduction of the exploration is for such machines."""
        return set(self.of_role) <= {ALIGNER}

    @property
    def capabilities(self) -> Capabilities:
        """The part of the protocol that all of them take on, with the differences of each."""
        declared = [
            capabilities_of(kind) if role == ALIGNER else declared_by(kind) for role, kind in self.of_role.items()
        ]
        values: dict[str, Any] = {
            field.name: (any if field.name in DIFFERENCES else all)(getattr(each, field.name) for each in declared)
            for field in fields(Capabilities)
        }
        if self.aligner is None:
            values["reads_on"] = DRAINS_FIRST.reads_on
        return Capabilities(**values)

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols in which they have something to do, and ``store``."""
        of_worlds = tuple(PROTOCOLS) if self.aligner is None else EXACT
        return (*(of_worlds if set(self.of_role) - {STORE} else ()), *(STORE for role in self.of_role if role == STORE))

    @property
    def able(self) -> tuple[str, ...]:
        """Return those that they can do."""
        unaligned = self.capabilities.unaligned
        return tuple(
            name for name in self.protocols if name == STORE or unaligned or not PROTOCOLS[name].goes_unaligned
        )

    def parts(self, protocol: str) -> Components:
        """Return the sound parts, with these in their places.

        Raises
        ------
        ExternalError
            If one of them cannot stand in.
        """
        if protocol == STORE:
            external_store.examine(self.of_role[STORE])
            return replace(SOUND, store=self.of_role[STORE])
        parts = SOUND if self.aligner is None else parts_of(self.aligner, protocol)
        coordinator = self.of_role.get(COORDINATOR)
        if coordinator is not None:
            external_coordinator.examine(coordinator)
            make = partial(external_coordinator.ExternalCoordinator, coordinator)
            parts = replace(parts, coordinator=cast(MakeCoordinator, make))
        source = self.of_role.get(SOURCE)
        if source is not None:
            external_source.examine(source)
            parts = replace(parts, source=partial(external_source.ExternalSource, source))
        writers = {GUARANTEES[role]: kind for role, kind in self.of_role.items() if role in GUARANTEES}
        for guarantee, kind in writers.items():
            external_writer.examine(kind, guarantee)
        if writers:
            parts = replace(parts, writer=partial(_writer, writers), sink=external_writer.ExternalSinkTask)
        return replace(parts, capabilities=self.capabilities, reducible=self.reducible)

    def takes_part(self, scope: Scope) -> bool:
        """Return whether one of them has anything to do in a scope."""
        if isinstance(scope, StoreScope):
            return STORE in self.of_role and scope.has_one_writer
        if not {ALIGNER, COORDINATOR, SOURCE}.isdisjoint(self.of_role):
            return True
        return isinstance(scope, WorldScope) and scope.bounds.guarantee in {
            GUARANTEES.get(each) for each in self.of_role
        }


def _writer(writers: dict[str, type], sink: str, ledger: Ledger, guarantee: str, tell: Tell) -> SinkWriter:
    """Make the writer of a sink: another's, if one of that guarantee was brought."""
    if guarantee not in writers:
        return SinkWriter(sink, ledger, guarantee, tell)
    return cast(SinkWriter, external_writer.ExternalWriter(writers[guarantee], sink, ledger, guarantee, tell))
