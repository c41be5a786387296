"""The head of a pipeline: one counter gives the ids of all barriers, whichever channel carries them.

Source: barrier-control-signals, "`barrier_id` Allocation"; the document calls it `ControlSourceProcessor`. With two
heads, keys would meet that were never meant to be one barrier (defect S-12).
"""

from __future__ import annotations

from collections.abc import Hashable

from barrierlab.impl.control.errors import BarrierIdError
from barrierlab.impl.control.sender import Sender, TellSignal, silent
from barrierlab.impl.control.signals import (
    BarrierControlSignal,
    BarrierControlSignalKind,
    Carrier,
    InstantControlSignal,
)
from barrierlab.impl.messages import MAX_U64


class BarrierIdAllocator:
    """Ids from 1 on, each once: "monotonically increasing counter shared by both channels".

    Attributes
    ----------
    next_id : int
        The id that is given next.
    """

    __slots__ = ("next_id",)

    def __init__(self, first_id: int = 1) -> None:
        self.next_id = first_id

    def allocate(self) -> int:
        """The next id.

        Raises
        ------
        BarrierIdError
            If all 64-bit ids have been given.
        """
        if type(self.next_id) is not int or not 1 <= self.next_id <= MAX_U64:
            raise BarrierIdError(self.next_id)
        self.next_id += 1
        return self.next_id - 1


class ControlSourceProcessor(Sender):
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

    __slots__ = ("_allocator",)

    def __init__(
        self,
        name: str,
        data_outputs: int,
        control_outputs: int,
        allocator: BarrierIdAllocator | None = None,
        tell: TellSignal = silent,
    ) -> None:
        super().__init__(name, data_outputs, control_outputs, tell)
        self._allocator = allocator or BarrierIdAllocator()

    def send(self, kind: BarrierControlSignalKind, carrier: Carrier, payload: Hashable = None) -> BarrierControlSignal:
        """Allocate an id, and send the barrier on one channel ("Channel Carrier Rule").

        Raises
        ------
        AfterEndError
            If a terminal signal has been sent.
        BarrierIdError
            If there is no id left.
        """
        self._check_not_ended(kind)
        barrier = BarrierControlSignal(kind, self._allocator.allocate(), payload, fenced=kind.is_terminal)
        self._forward(carrier, barrier)
        if barrier.is_terminal:
            self._end(barrier)
        return barrier

    def send_instant(self, signal: InstantControlSignal, carrier: Carrier) -> None:
        """Send an instant signal on one channel.

        Raises
        ------
        AfterEndError
            If a terminal signal has been sent.
        """
        self._check_not_ended(signal)
        self._forward(carrier, signal)
        if signal.is_terminal:
            self._end(signal)

    def capture(self) -> Hashable:
        """All that `restore` needs."""
        return self._allocator.next_id, self._capture_outputs()

    def restore(self, value: Hashable) -> None:
        """Be as the head was that gave `value`."""
        self._allocator.next_id, outputs = value  # type: ignore[misc]
        self._restore_outputs(outputs)  # type: ignore[has-type]
