"""Control signals, and which channel carries them: instant ones, and barriers with and without an id.

Source: barrier-control-signals, "Signal Model". Unlike there, no wrapper surrounds a signal on the data channel, and a
barrier may have a payload, and a fence on the other channel; neither is part of its key.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

from barrierlab.impl.control.errors import BarrierIdError
from barrierlab.impl.messages import MAX_U64, EndOfInput, Event

BarrierKey = tuple[int, str]
"""The identity that all copies of one barrier share: id and kind."""


class Carrier(Enum):
    """The channel between processors, of two, that carries a message. They are isolated from each other."""

    DATA = "data"
    CONTROL = "control"

    @property
    def other(self) -> Carrier:
        """Return the other of the two channels."""
        return Carrier.CONTROL if self is Carrier.DATA else Carrier.DATA

    def __str__(self) -> str:
        return self.value


class InstantControlSignal(Enum):
    """A signal that is processed as soon as it is received, whoever sent it: it is not aligned."""

    STREAM_QUICK_END = "StreamQuickEnd"

    @property
    def is_terminal(self) -> bool:
        """Return whether a processor ends with it."""
        return self is InstantControlSignal.STREAM_QUICK_END

    def __str__(self) -> str:
        return self.value


class BarrierControlSignalKind(Enum):
    """The purpose of a barrier; an id makes it a signal."""

    STREAM_GRACEFUL_END = "StreamGracefulEnd"
    SYNC_TEST = "SyncTest"

    @property
    def is_terminal(self) -> bool:
        """Return whether a processor ends with it, once it is complete."""
        return self is BarrierControlSignalKind.STREAM_GRACEFUL_END

    def with_id(self, barrier_id: int, payload: Hashable = None) -> BarrierControlSignal:
        """Return the signal of this kind with an id, which the head of the pipeline allocates.

        Raises
        ------
        BarrierIdError
            If the id is not 1 to 2**64 - 1.

        Examples
        --------
        >>> print(BarrierControlSignalKind.SYNC_TEST.with_id(1))
        SyncTest 1
        """
        return BarrierControlSignal(self, barrier_id, payload)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class BarrierControlSignal:
    """A signal that takes effect at a processor once every upstream has delivered its copy.

    Attributes
    ----------
    kind : BarrierControlSignalKind
    barrier_id : int
        1 to 2**64 - 1.
    payload : hashable
        Whatever the signal carries. Copies that differ in it alone are copies of one barrier; the first one to come
        is the one that is forwarded (protocol rule 26).
    fenced : bool
        Of a terminal barrier: whether the end of the other channel, which follows all that is older there, is its fence
        (protocol rule 26). A processor then ends when it has that from every upstream, too: the barrier overtakes
        neither data, if it is on the control channel, nor control signals, if it is on the data channel. The head
        fences every terminal barrier; one that is not fenced is the document's (defect S-06).

    Raises
    ------
    BarrierIdError
        If the id is out of range.
    """

    kind: BarrierControlSignalKind
    barrier_id: int
    payload: Hashable = None
    fenced: bool = False

    def __post_init__(self) -> None:
        if type(self.barrier_id) is not int or not 1 <= self.barrier_id <= MAX_U64:
            raise BarrierIdError(self.barrier_id)

    @property
    def key(self) -> BarrierKey:
        """Return id and kind: `BarrierKey` of the document."""
        return self.barrier_id, self.kind.value

    @property
    def is_terminal(self) -> bool:
        """Return whether a processor ends with it."""
        return self.kind.is_terminal

    def __str__(self) -> str:
        tail = "" if self.payload is None else f" ({self.payload})"
        return f"{self.kind.value} {self.barrier_id}{tail}"


ControlSignal = InstantControlSignal | BarrierControlSignal
Message = Event | ControlSignal | EndOfInput
"""A message of the data channel; on the control channel, the same without events."""
