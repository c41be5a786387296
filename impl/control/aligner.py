"""The aligner that decides when a barrier control signal is complete: each channel of each processor has one.

Invariant: a barrier is complete when every upstream has delivered it, or has closed before that.

barrier-control-signals, "Barrier Alignment Mechanism", sound by protocol rules 24 to 26. `IdentityAligner` knows who
delivered what; an upstream may be ahead of the others, as skew makes it. `CountingAligner` is the document's: it counts
copies, whoever sent them, and takes skew for an error (defects S-01, S-03). Both remember the last completed id:
otherwise the document's own rule against duplicates could never fire (defect S-02).

A call that raises leaves an aligner as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Protocol

from barrierlab.impl.checks import check_number
from barrierlab.impl.control.errors import BarrierOverlapError, DuplicateBarrierError, NoUpstreamsError
from barrierlab.impl.control.signals import BarrierControlSignal, Carrier, ControlSignal, InstantControlSignal
from barrierlab.impl.errors import ClosedInputError, InputIndexError


class ControlAligner(Protocol):
    """The interface that a processor asks of an aligner.

    Attributes
    ----------
    carrier : Carrier
        The channel it is for; errors name it.
    expected_upstreams : int
    last_terminated_id : int
        The highest id completed or aborted here; 0 at first.
    """

    carrier: Carrier
    expected_upstreams: int
    last_terminated_id: int

    def align(self, upstream: int, barrier: BarrierControlSignal) -> BarrierControlSignal | None:
        """Take one copy; return the barrier that it completes, or None."""

    def close(self, upstream: int) -> tuple[BarrierControlSignal, ...]:
        """Close an upstream; return the barriers that this completes, in order."""

    def ahead(self, upstream: int) -> int:
        """Return how many barriers this upstream has delivered that are not complete."""

    def abort(self) -> tuple[BarrierControlSignal, ...]:
        """Abort every barrier that is not complete; return them in order."""

    def capture(self) -> Hashable:
        """Return the state for `restore`."""

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""


def align_control_signal(aligner: ControlAligner, upstream: int, signal: ControlSignal) -> ControlSignal | None:
    """Return the signal to process now, or None.

    An instant signal is returned as it is. A barrier is swallowed while others are to come, and returned when it is
    complete; the first copy is the one that is returned. Source: "Processing flow" and protocol rules 24 and 26.

    Raises
    ------
    BarrierOverlapError, DuplicateBarrierError, InputIndexError, ClosedInputError
        As `ControlAligner.align`.

    Examples
    --------
    >>> from barrierlab.impl.control import BarrierControlSignalKind, Carrier, IdentityAligner
    >>> aligner = IdentityAligner(2, Carrier.DATA)
    >>> sync = BarrierControlSignalKind.SYNC_TEST.with_id(1)
    >>> align_control_signal(aligner, 0, sync)
    >>> print(align_control_signal(aligner, 1, sync))
    SyncTest 1
    """
    if isinstance(signal, InstantControlSignal):
        return signal
    return aligner.align(upstream, signal)


class IdentityAligner:
    """Aligns by the upstreams that delivered each barrier.

    Every upstream must deliver the same barriers in the same order, with increasing ids. The order is taken from
    whoever is furthest ahead: a barrier that is not an upstream's turn in it is an overlap. A barrier of an upstream
    that has delivered the pending one waits its turn (protocol rule 25); a closed upstream has delivered everything.

    Parameters
    ----------
    expected_upstreams : int
        ``inputs.len()`` of the document.
    carrier : Carrier

    Raises
    ------
    NoUpstreamsError
        If there is not one upstream.
    """

    __slots__ = ("_ahead", "_closed", "_order", "carrier", "expected_upstreams", "last_terminated_id")

    def __init__(self, expected_upstreams: int, carrier: Carrier) -> None:
        if not expected_upstreams:
            raise NoUpstreamsError(carrier)
        check_number("expected_upstreams", expected_upstreams, 1)
        self.carrier = carrier
        self.expected_upstreams = expected_upstreams
        self.last_terminated_id = 0
        self._order: deque[BarrierControlSignal] = deque()  # what is not complete: the first copy of each, by id
        self._ahead = [0] * expected_upstreams  # how much of `_order` each upstream has delivered
        self._closed: set[int] = set()

    def align(self, upstream: int, barrier: BarrierControlSignal) -> BarrierControlSignal | None:
        """Take one copy; return the barrier that it completes, or None.

        There is at most one: this upstream has not delivered what comes after it.

        Raises
        ------
        DuplicateBarrierError
            If its id is not above all that this upstream has delivered.
        BarrierOverlapError
            If another one is this upstream's turn.
        InputIndexError, ClosedInputError
            If there is no such upstream, or it has closed.
        """
        self._check(upstream, barrier)
        place = self._ahead[upstream]
        newest = self._order[place - 1].barrier_id if place else self.last_terminated_id
        if barrier.barrier_id <= newest:
            raise DuplicateBarrierError(self.carrier, barrier, newest)
        if place < len(self._order):
            if self._order[place].key != barrier.key:
                raise BarrierOverlapError(self.carrier, self._order[place], barrier)
        else:
            self._order.append(barrier)
        self._ahead[upstream] = place + 1
        completed = self._take_completed()
        assert len(completed) <= 1
        return completed[0] if completed else None

    def close(self, upstream: int) -> tuple[BarrierControlSignal, ...]:
        """Close an upstream; return the barriers that this completes, in order.

        Raises
        ------
        InputIndexError, ClosedInputError
            If there is no such upstream, or it has closed already.
        """
        self._check(upstream, "close")
        self._closed.add(upstream)
        return self._take_completed()

    def _check(self, upstream: int, message: object) -> None:
        if not 0 <= upstream < self.expected_upstreams:
            raise InputIndexError(upstream, self.expected_upstreams)
        if upstream in self._closed:
            raise ClosedInputError(upstream, message)

    def _take_completed(self) -> tuple[BarrierControlSignal, ...]:
        completed = []
        ahead = self._ahead
        while self._order and all(count or upstream in self._closed for upstream, count in enumerate(ahead)):
            completed.append(self._order.popleft())
            self.last_terminated_id = completed[-1].barrier_id
            ahead[:] = [max(count - 1, 0) for count in ahead]
        return tuple(completed)

    def ahead(self, upstream: int) -> int:
        """Return how many barriers this upstream has delivered that are not complete."""
        return self._ahead[upstream]

    def abort(self) -> tuple[BarrierControlSignal, ...]:
        """Abort every barrier that is not complete; return them in order."""
        aborted = tuple(self._order)
        if aborted:
            self.last_terminated_id = aborted[-1].barrier_id
            self._order.clear()
            self._ahead = [0] * self.expected_upstreams
        return aborted

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return self.last_terminated_id, tuple(self._order), tuple(self._ahead), tuple(sorted(self._closed))

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self.last_terminated_id, order, ahead, closed = value  # type: ignore[misc]
        self._order = deque(order)  # type: ignore[has-type]
        self._ahead = list(ahead)  # type: ignore[has-type]
        self._closed = set(closed)  # type: ignore[has-type]


class CountingAligner:
    """Aligns by the number of copies, whoever sent them, as the document has it.

    So two copies of one upstream are taken for those of two (defect S-01), a barrier of an upstream that is ahead of
    the others is an overlap (S-03), and an upstream that closes without the barrier leaves it pending (S-08).

    Parameters
    ----------
    expected_upstreams : int
    carrier : Carrier

    Raises
    ------
    NoUpstreamsError
        If there is not one upstream.
    """

    __slots__ = ("arrived_count", "carrier", "expected_upstreams", "last_terminated_id", "pending")

    def __init__(self, expected_upstreams: int, carrier: Carrier) -> None:
        if not expected_upstreams:
            raise NoUpstreamsError(carrier)
        check_number("expected_upstreams", expected_upstreams, 1)
        self.carrier = carrier
        self.expected_upstreams = expected_upstreams
        self.last_terminated_id = 0
        self.pending: BarrierControlSignal | None = None
        self.arrived_count = 0

    def align(self, upstream: int, barrier: BarrierControlSignal) -> BarrierControlSignal | None:
        """Take one copy; return the barrier if this completes it.

        Raises
        ------
        BarrierOverlapError
            If another barrier is pending.
        DuplicateBarrierError
            If its id is not above the last completed one: this copy is one more than there are upstreams.
        """
        if barrier.barrier_id <= self.last_terminated_id:
            raise DuplicateBarrierError(self.carrier, barrier, self.last_terminated_id)
        if self.pending is None:
            self.pending = barrier
        elif self.pending.key != barrier.key:
            raise BarrierOverlapError(self.carrier, self.pending, barrier)
        self.arrived_count += 1
        if self.arrived_count < self.expected_upstreams:
            return None
        return self._take_pending()

    def _take_pending(self) -> BarrierControlSignal | None:
        barrier, self.pending, self.arrived_count = self.pending, None, 0
        if barrier is not None:
            self.last_terminated_id = barrier.barrier_id
        return barrier

    def close(self, upstream: int) -> tuple[BarrierControlSignal, ...]:
        """Return nothing: a count does not say whether this upstream has delivered what is pending."""
        return ()

    def ahead(self, upstream: int) -> int:
        """Return 0: a count does not say who delivered."""
        return 0

    def abort(self) -> tuple[BarrierControlSignal, ...]:
        """Abort what is pending; return it."""
        barrier = self._take_pending()
        return () if barrier is None else (barrier,)

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return self.last_terminated_id, self.pending, self.arrived_count

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self.last_terminated_id, self.pending, self.arrived_count = value  # type: ignore[misc]
