"""The upstreams of a processor on one carrier as a value: a step gives the next one, and what came of it, in order.

What comes of a step bears the verbs of the processor's journal: ``arrive`` (a copy is taken: pending, unless
``complete`` follows), ``complete``, ``close``, ``abort``, and ``fail`` with the reason, which leaves all as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from barrierlab.impl.control import BarrierControlSignal, Carrier
from barrierlab.impl.errors import ClosedInputError, InputIndexError
from barrierlab.model.checkpoint.tables.stimuli import NO_INPUT, Effect
from barrierlab.model.explore.table import Table

# What can happen.


@dataclass(frozen=True, slots=True)
class Delivered:
    """A copy of a barrier comes from an upstream."""

    upstream: int
    barrier: BarrierControlSignal

    def __str__(self) -> str:
        return f"deliver {self.upstream} {self.barrier}"


@dataclass(frozen=True, slots=True)
class Closed:
    """No more will come from an upstream."""

    upstream: int

    def __str__(self) -> str:
        return f"close {self.upstream}"


@dataclass(frozen=True, slots=True)
class AbortAll:
    """The processor aborts whatever is pending, as it does when it ends."""

    def __str__(self) -> str:
        return "abort all"


ControlStimulus = Delivered | Closed | AbortAll


def upstream_of(stimulus: ControlStimulus) -> int:
    """Return the upstream that it is about, or `NO_INPUT`."""
    return NO_INPUT if isinstance(stimulus, AbortAll) else stimulus.upstream


# The value.


class PendingBarrier(NamedTuple):
    """A barrier that is not complete: its first copy, and who has delivered one."""

    barrier: BarrierControlSignal
    arrived: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Upstreams:
    """All upstreams of a processor on one carrier.

    Attributes
    ----------
    table : Table
        What is done. It, the carrier and the number of upstreams never change, and are no part of the value.
    carrier : Carrier
    expected : int
        How many there are.
    pending : tuple of PendingBarrier
        What is not complete, in the order of ids.
    closed : frozenset of int
        Who has closed.
    last_terminated_id : int
        The highest id completed or aborted here; 0 at first.
    """

    table: Table[Upstreams, ControlStimulus] = field(compare=False, repr=False)
    carrier: Carrier = field(compare=False, repr=False)
    expected: int = field(compare=False, repr=False)
    pending: tuple[PendingBarrier, ...] = ()
    closed: frozenset[int] = frozenset()
    last_terminated_id: int = 0

    @property
    def state(self) -> str:
        """The situation of the upstreams as a word: see `model.suites.states`."""
        return "aligning" if self.pending else "idle"

    def step(self, stimulus: ControlStimulus) -> tuple[Upstreams, tuple[Effect, ...]]:
        """The upstreams after `stimulus`, and what came of it.

        Raises
        ------
        InputIndexError, ClosedInputError
            As `impl.control.IdentityAligner.align`.
        TableError
            If not exactly one row applies.

        Examples
        --------
        >>> from barrierlab.impl.control import BarrierControlSignalKind
        >>> from barrierlab.model.control.table import CONTROL
        >>> upstreams = Upstreams(CONTROL, Carrier.DATA, 2)
        >>> sync = BarrierControlSignalKind.SYNC_TEST.with_id(1)
        >>> upstreams, effects = upstreams.step(Delivered(0, sync))
        >>> upstreams, effects = upstreams.step(Delivered(1, sync))
        >>> print(*effects, sep=", ")
        arrive 1 SyncTest 1, complete SyncTest 1
        """
        if not isinstance(stimulus, AbortAll):
            self._check(stimulus)
        upstreams: Upstreams = self
        effects: tuple[Effect, ...] = ()
        for action in self.table.row_for(self, stimulus).then:
            upstreams, more = action(upstreams, stimulus)
            effects += more
        return upstreams, effects

    def _check(self, stimulus: Delivered | Closed) -> None:
        upstream = stimulus.upstream
        if not 0 <= upstream < self.expected:
            raise InputIndexError(upstream, self.expected)
        if upstream in self.closed:
            raise ClosedInputError(upstream, stimulus.barrier if isinstance(stimulus, Delivered) else "close")

    # What rows ask.

    def turn(self, upstream: int) -> BarrierControlSignal | None:
        """Return the pending barrier that this upstream is to deliver next; None if it has delivered all of them."""
        return next((barrier for barrier, arrived in self.pending if upstream not in arrived), None)

    def newest(self, upstream: int) -> int:
        """Return the highest id that this upstream has delivered, or that is done with here."""
        return max(
            (barrier.barrier_id for barrier, arrived in self.pending if upstream in arrived),
            default=self.last_terminated_id,
        )

    def missing(self) -> frozenset[int]:
        """Return who is open and has not delivered the oldest pending barrier; everybody who is open if none is
        pending."""
        arrived = self.pending[0].arrived if self.pending else frozenset()
        return frozenset(range(self.expected)) - arrived - self.closed
