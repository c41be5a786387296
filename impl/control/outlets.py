"""The outlets of a head or a processor: an outbox for each channel, and an end behind which nothing is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

from barrierlab.impl.control.errors import AfterEndError
from barrierlab.impl.control.signals import Carrier, ControlSignal, Message
from barrierlab.impl.messages import EndOfInput

TellSignal = Callable[[str, Carrier | None, int, object], None]
"""Called for each effect at its moment: verb, channel (None: neither), index of the upstream (else -1), subject."""


def silent(verb: str, carrier: Carrier | None, index: int, subject: object) -> None:
    """Ignore the call: a `tell` that does nothing."""


class Outlets:
    """Sends each message to all downstreams of one channel; the two channels never wait for each other.

    Attributes
    ----------
    name : str
        Of the node whose outlets they are; errors have it.
    counts : dict of Carrier to int
        How many downstreams each channel has.
    outbox : dict of Carrier to deque of (int, Message)
        What is to be sent on each channel, with its output, in order; the driver takes it out.
    ended : bool
        Whether the end has gone to every output.
    """

    __slots__ = ("counts", "ended", "name", "outbox", "tell")

    def __init__(self, name: str, data_outputs: int, control_outputs: int, tell: TellSignal) -> None:
        self.name = name
        self.tell = tell
        self.ended = False
        self.outbox: dict[Carrier, deque[tuple[int, Message]]] = {carrier: deque() for carrier in Carrier}
        self.counts = {Carrier.DATA: data_outputs, Carrier.CONTROL: control_outputs}

    def send(self, carrier: Carrier, message: Message) -> None:
        """Send a message to each downstream of a channel."""
        self.outbox[carrier].extend((output, message) for output in range(self.counts[carrier]))

    def forward(self, carrier: Carrier, signal: ControlSignal) -> None:
        """Send a signal, and report it."""
        self.tell("forward", carrier, -1, signal)
        self.send(carrier, signal)

    def end(self, cause: object) -> None:
        """Close both channels."""
        self.tell("end", None, -1, str(cause))
        self.ended = True
        for carrier in Carrier:
            self.send(carrier, EndOfInput())

    def check_open(self, actual: object) -> None:
        """Raise AfterEndError if both channels are closed."""
        if self.ended:
            raise AfterEndError(self.name, actual)

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return self.ended, *(tuple(self.outbox[carrier]) for carrier in Carrier)

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        self.ended, *outboxes = value  # type: ignore[misc]
        self.outbox = {carrier: deque(outbox) for carrier, outbox in zip(Carrier, outboxes, strict=True)}  # type: ignore[has-type]
