"""A defect of barrier-control-signals: a pipeline that breaks an invariant, or values that show it.

The modules beside this one that make one are the entries S-01 to S-13, each as the smallest change of the sound code;
what they say it with is imported from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from barrierlab.impl.control import BarrierControlSignal, BarrierControlSignalKind, ControlAligner, ControlSignalError
from barrierlab.impl.errors import BarrierError
from barrierlab.model.control.scopes import EC as EC
from barrierlab.model.control.scopes import ED as ED
from barrierlab.model.control.scopes import JOIN as JOIN
from barrierlab.model.control.scopes import QD as QD
from barrierlab.model.control.scopes import SC as SC
from barrierlab.model.control.scopes import SD as SD
from barrierlab.model.control.topology import ControlWiring as ControlWiring
from barrierlab.model.control.world import (
    ControlBounds as ControlBounds,
)
from barrierlab.model.control.world import (
    ControlWorld,
    as_text,
    properties,
)
from barrierlab.model.control.world import (
    Processors as Processors,
)
from barrierlab.model.defects.kinds.found import Found, kind_of
from barrierlab.model.explore.checker import ExplorationLimits, explore


@dataclass(frozen=True, slots=True)
class ControlDefect:
    """A pipeline as the document words it, and the sound one in the same scope.

    Attributes
    ----------
    breaks : str
        The invariant that a shortest counterexample of it breaks; a name in `model.control.invariants.NAMES`.
    bounds : ControlBounds
        The sound pipeline holds in them.
    changed : mapping of str to object
        The fields of `bounds` that the document has otherwise.
    excuses : tuple of str
        Invariants that the sound pipeline may break in this scope, because the transport is at fault: a processor that
        is sent what it must not be sent fails, and says why.
    """

    breaks: str
    bounds: ControlBounds
    changed: Mapping[str, Any]
    excuses: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of what it breaks."""
        return kind_of(self.breaks)

    @property
    def broken(self) -> ControlBounds:
        """The pipeline as the document words it."""
        return replace(self.bounds, **self.changed)

    def as_documented(self) -> Found:
        """The shortest run that breaks something."""
        return _explored(self.broken)

    def sound(self) -> Found:
        """Every run of the sound pipeline; what the transport is at fault for is excused."""
        found = _explored(self.bounds)
        return found._replace(broken=found.broken - set(self.excuses))


def _explored(bounds: ControlBounds) -> Found:
    begun, world = monotonic(), ControlWorld(bounds)
    result = explore(world, properties(world), limits=_BOUND)
    if not result.violations:
        return Found(states=result.counts.states, seconds=monotonic() - begun)
    (first,) = result.violations
    assert first.state is not None
    violations = world.violations(first.state) or world.quiescent(first.state)
    text = as_text(world.journal(first.moves)) + "".join(f"! {violation}\n" for violation in violations)
    broken = frozenset(violation.invariant for violation in violations)
    return Found(broken, len(first.moves), result.counts.states, monotonic() - begun, text)


_BOUND = ExplorationLimits(states=200_000)


def sync(barrier_id: int, payload: str | None = None) -> BarrierControlSignal:
    """A barrier that means nothing."""
    return BarrierControlSignalKind.SYNC_TEST.with_id(barrier_id, payload)


def answers(aligner: ControlAligner, *arrivals: tuple[int, BarrierControlSignal]) -> tuple[str, ...]:
    """Return what comes of each arrival: the barrier that is complete, ``pending``, or the error."""
    found = []
    for upstream, barrier in arrivals:
        try:
            completed = aligner.align(upstream, barrier)
            found.append("pending" if completed is None else str(completed))
        except ControlSignalError as error:
            found.append(headline(error))
    return tuple(found)


def headline(error: BarrierError) -> str:
    """Return what came, without what is allowed and what to do."""
    return error.actual
