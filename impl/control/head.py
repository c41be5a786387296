"""The head of a pipeline: one counter gives the ids of all barriers, whichever channel carries them.

Source: barrier-control-signals, "`barrier_id` Allocation"; the document calls it `ControlSourceProcessor`. With two
heads, keys would meet that were never meant to be one barrier (defect S-12).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from barrierlab.impl.control.errors import BarrierIdError
from barrierlab.impl.control.outlets import Outlets, TellSignal, silent
from barrierlab.impl.control.signals import (
    BarrierControlSignal,
    BarrierControlSignalKind,
    Carrier,
    InstantControlSignal,
    Message,
)
from barrierlab.impl.messages import MAX_U64


class BarrierIdAllocator:
    """Allocates ids from 1 on: "monotonically increasing counter shared by both channels".

    Attributes
    ----------
    next_id : int
        The id that is given next.
    """

    __slots__ = ("next_id",)

    def __init__(self, first_id: int = 1) -> None:
        self.next_id = first_id

    def allocate(self) -> int:
        """Return the next id.

        Raises
        ------
        BarrierIdError
            If all 64-bit ids have been given.
        """
        if type(self.next_id) is not int or not 1 <= self.next_id <= MAX_U64:
            raise BarrierIdError(self.next_id)
        self.next_id += 1
        return self.next_id - 1


class ControlSourceProcessor:
    """Makes control signals and sends each to all downstreams of one channel.

    Behind a terminal signal both channels are closed; of a terminal barrier, the end of the other channel is the fence
    (protocol rule 26).

    Parameters
    ----------
    name : str
    data_outputs, control_outputs : int
        How many downstreams each channel has.
    allocator : BarrierIdAllocator, optional
    tell : callable, optional
        Verbs: forward, end.

    Examples
    --------
    >>> head = ControlSourceProcessor("head", data_outputs=1, control_outputs=1)
    >>> print(head.send(BarrierControlSignalKind.SYNC_TEST, Carrier.DATA))
    SyncTest 1
    >>> print(head.send(BarrierControlSignalKind.SYNC_TEST, Carrier.CONTROL))
    SyncTest 2
    """

    __slots__ = ("allocator", "outlets")

    def __init__(
        self,
        name: str,
        data_outputs: int,
        control_outputs: int,
        allocator: BarrierIdAllocator | None = None,
        tell: TellSignal = silent,
    ) -> None:
        self.outlets = Outlets(name, data_outputs, control_outputs, tell)
        self.allocator = allocator or BarrierIdAllocator()

    @property
    def outbox(self) -> dict[Carrier, deque[tuple[int, Message]]]:
        """Return what is to be sent on each channel, with its output, in order; the driver takes it out."""
        return self.outlets.outbox

    @property
    def ended(self) -> bool:
        """Return whether the end has gone to every output."""
        return self.outlets.ended

    def send(self, kind: BarrierControlSignalKind, carrier: Carrier, payload: Hashable = None) -> BarrierControlSignal:
        """Allocate an id, and send the barrier on one channel ("Channel Carrier Rule").

        Raises
        ------
        AfterEndError
            If a terminal signal has been sent.
        BarrierIdError
            If there is no id left.
        """
        self.outlets.check_open(kind)
        barrier = BarrierControlSignal(kind, self.allocator.allocate(), payload, fenced=kind.is_terminal)
        self.outlets.forward(carrier, barrier)
        if barrier.is_terminal:
            self.outlets.end(barrier)
        return barrier

    def send_instant(self, signal: InstantControlSignal, carrier: Carrier) -> None:
        """Send an instant signal on one channel.

        Raises
        ------
        AfterEndError
            If a terminal signal has been sent.
        """
        self.outlets.check_open(signal)
        self.outlets.forward(carrier, signal)
        if signal.is_terminal:
            self.outlets.end(signal)

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return self.allocator.next_id, self.outlets.capture()

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self.allocator.next_id, outputs = value  # type: ignore[misc]
        self.outlets.restore(outputs)  # type: ignore[has-type]
