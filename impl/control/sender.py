"""The common part of head and processors: an outbox for each channel, and an end behind which nothing is sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

from barrierlab.impl.control.errors import AfterEndError
from barrierlab.impl.control.signals import Carrier, ControlSignal, Message
from barrierlab.impl.messages import EndOfInput

TellSignal = Callable[[str, Carrier | None, int, object], None]
"""Called for each effect at its moment: verb, channel (None: neither), index of the upstream (else -1), subject."""


def silent(verb: str, carrier: Carrier | None, index: int, subject: object) -> None:
    """A `tell` that nobody listens to."""


class Sender:
    """Sends each message to all downstreams of one channel; the two channels never wait for each other.

    Attributes
    ----------
    outbox : dict of Carrier to deque of (int, Message)
        What is to be sent on each channel, with its output, in order; the driver takes it out.
    ended : bool
        Whether the end has gone to every output.
    """

    __slots__ = ("_outputs", "ended", "name", "outbox", "tell")

    def __init__(self, name: str, data_outputs: int, control_outputs: int, tell: TellSignal) -> None:
        self.name = name
        self.tell = tell
        self.ended = False
        self.outbox: dict[Carrier, deque[tuple[int, Message]]] = {carrier: deque() for carrier in Carrier}
        self._outputs = {Carrier.DATA: data_outputs, Carrier.CONTROL: control_outputs}

    def _send(self, carrier: Carrier, message: Message) -> None:
        self.outbox[carrier].extend((output, message) for output in range(self._outputs[carrier]))

    def _forward(self, carrier: Carrier, signal: ControlSignal) -> None:
        self.tell("forward", carrier, -1, signal)
        self._send(carrier, signal)

    def _end(self, cause: object) -> None:
        self.tell("end", None, -1, str(cause))
        self.ended = True
        for carrier in Carrier:
            self._send(carrier, EndOfInput())

    def _check_not_ended(self, actual: object) -> None:
        if self.ended:
            raise AfterEndError(self.name, actual)

    def _capture_outputs(self) -> Hashable:
        return self.ended, *(tuple(self.outbox[carrier]) for carrier in Carrier)

    def _restore_outputs(self, value: Hashable) -> None:
        self.ended, *outboxes = value  # type: ignore[misc]
        self.outbox = {carrier: deque(outbox) for carrier, outbox in zip(Carrier, outboxes, strict=True)}  # type: ignore[has-type]
