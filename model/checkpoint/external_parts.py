"""External classes of several kinds together: the dataflows are made of them, and of the machines of `impl`.

A class says by its attribute ``role`` what it is; without one it is an aligner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, cast

from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.model.checkpoint import external_coordinator
from barrierlab.model.checkpoint.capabilities import ALL, DIFFERENCES, DRAINS_FIRST, Capabilities
from barrierlab.model.checkpoint.check import Scope
from barrierlab.model.checkpoint.components import SOUND, Components, MakeCoordinator
from barrierlab.model.checkpoint.external import capabilities_of, parts_of
from barrierlab.model.checkpoint.hosting import ExternalError, brief, role_of

ALIGNER = "aligner"
COORDINATOR = "coordinator"
ROLES = (ALIGNER, COORDINATOR)
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
        """Tell them by their roles."""
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
        """Whether the reduction of the exploration is for such machines."""
        return COORDINATOR not in self.of_role

    @property
    def capabilities(self) -> Capabilities:
        """The part of the protocol that all of them take on, with the differences of each."""
        declared = [
            capabilities_of(kind) if role == ALIGNER else _declared(kind) for role, kind in self.of_role.items()
        ]
        values: dict[str, Any] = {
            field.name: (any if field.name in DIFFERENCES else all)(getattr(each, field.name) for each in declared)
            for field in fields(Capabilities)
        }
        if self.aligner is None:
            values["reads_on"] = DRAINS_FIRST.reads_on
        return Capabilities(**values)

    def parts(self, protocol: str) -> Components:
        """Return the sound parts, with these in their places.

        Raises
        ------
        ExternalError
            If one of them cannot stand in.
        """
        parts = SOUND if self.aligner is None else parts_of(self.aligner, protocol)
        coordinator = self.of_role.get(COORDINATOR)
        if coordinator is not None:
            external_coordinator.examine(coordinator, _declared(coordinator))
            make = partial(external_coordinator.ExternalCoordinator, coordinator)
            parts = replace(parts, coordinator=cast(MakeCoordinator, make), reducible=self.reducible)
        return replace(parts, capabilities=self.capabilities)

    def takes_part(self, scope: Scope) -> bool:
        """Return whether one of them has anything to do in a scope."""
        return not {ALIGNER, COORDINATOR}.isdisjoint(self.of_role)


def _declared(kind: type) -> Capabilities:
    """Return the declaration of a class that is no aligner."""
    declared = getattr(kind, "capabilities", ALL)
    if not isinstance(declared, Capabilities):
        raise ExternalError(
            f"{kind.__name__}.capabilities is {brief(declared)}; allowed: a "
            "barrierlab.model.checkpoint.capabilities.Capabilities"
        )
    return declared
