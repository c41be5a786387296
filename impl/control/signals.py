"""Control signals, with what carries them: instant ones, barriers with and without an id, and the fence.

Source: barrier-control-signals, "Signal Model". Unlike there, no wrapper surrounds a signal on the data channel, and a
barrier may have a payload, which is no part of its key. The fence is not in the document: see `Fence`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

from impl.control.errors import BarrierIdError
from impl.messages import MAX_U64, EndOfInput, Event

BarrierKey = tuple[int, str]
"""What copies of one barrier have in common: id and kind."""


class Carrier(Enum):
    """Which of the two channels between processors carries a message. They are isolated from each other."""

    DATA = "data"
    CONTROL = "control"

    @property
    def other(self) -> Carrier:
        """The other one of the two."""
        return Carrier.CONTROL if self is Carrier.DATA else Carrier.DATA

    def __str__(self) -> str:
        return self.value


class InstantControlSignal(Enum):
    """A signal that is processed as soon as it is received, whoever sent it: it is not aligned."""

    STREAM_QUICK_END = "StreamQuickEnd"

    @property
    def is_terminal(self) -> bool:
        """Whether a processor ends with it."""
        return self is InstantControlSignal.STREAM_QUICK_END

    def __str__(self) -> str:
        return self.value


class BarrierControlSignalKind(Enum):
    """What a barrier is for; an id makes it a signal."""

    STREAM_GRACEFUL_END = "StreamGracefulEnd"
    SYNC_TEST = "SyncTest"

    @property
    def is_terminal(self) -> bool:
        """Whether a processor ends with it, once it is complete."""
        return self is BarrierControlSignalKind.STREAM_GRACEFUL_END

    def with_id(self, barrier_id: int, payload: Hashable = None) -> BarrierControlSignal:
        """The signal of this kind with an id, which the head of the pipeline allocates.

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
        Of a terminal barrier: whether a fence goes along on the other channel. A processor then ends when it has that
        from every upstream, too. The head fences each terminal barrier; one that is not fenced is the document's.

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
        if not 1 <= self.barrier_id <= MAX_U64:
            raise BarrierIdError(self.barrier_id)

    @property
    def key(self) -> BarrierKey:
        """`BarrierKey` of the document: id and kind."""
        return self.barrier_id, self.kind.value

    @property
    def is_terminal(self) -> bool:
        """Whether a processor ends with it."""
        return self.kind.is_terminal

    def __str__(self) -> str:
        tail = "" if self.payload is None else f" ({self.payload})"
        return f"{self.kind.value} {self.barrier_id}{tail}"


@dataclass(frozen=True, slots=True)
class Fence:
    """Where one channel stood when a terminal barrier went out on the other (protocol rule 26).

    It is aligned like a barrier, and is no control signal: the barrier itself still travels on one channel only
    ("Channel Carrier Rule"). Whoever has received it from every upstream has all that the terminal barrier must not
    overtake: older data, if the barrier is on the control channel (defect S-06), and older control signals, if it is
    on the data channel, of which the rule does not speak.
    """

    barrier_id: int

    @property
    def key(self) -> BarrierKey:
        """Id and a kind of its own."""
        return self.barrier_id, "Fence"

    def __str__(self) -> str:
        return f"Fence {self.barrier_id}"


ControlSignal = InstantControlSignal | BarrierControlSignal
Alignable = BarrierControlSignal | Fence
Message = Event | ControlSignal | Fence | EndOfInput
"""What travels on the data channel; on the control channel, the same without events."""
