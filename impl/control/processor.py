"""A processor: an operator between a data and a control channel that are isolated from each other.

Source: barrier-control-signals, "Processor Integration" and "Terminal Semantics"; protocol rules 25 and 26. Each
channel has an aligner of its own. A signal that is complete is forwarded on the channel on which it came, behind all
that the processor gave off there before; a terminal barrier, behind what the operator still had (a window, a batch).

What the driver owes: a channel is first in, first out, and loses and repeats nothing (defect S-13). It offers the head
of a channel until it is taken - a message that is refused stays there, which is backpressure - and empties the two
outboxes independently of each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable

from barrierlab.impl.checkpoint.task import Operator
from barrierlab.impl.checks import check_number
from barrierlab.impl.control.aligner import ControlAligner, IdentityAligner
from barrierlab.impl.control.errors import ControlSignalError, UnequalUpstreamsError
from barrierlab.impl.control.outlets import Outlets, TellSignal, silent
from barrierlab.impl.control.signals import (
    BarrierControlSignal,
    Carrier,
    InstantControlSignal,
    Message,
)
from barrierlab.impl.errors import ClosedInputError, InputIndexError, UnknownMessageError
from barrierlab.impl.messages import EndOfInput, Event

MakeControlAligner = Callable[[int, Carrier], ControlAligner]


class ControlProcessor:
    """Processes data and control signals until a terminal signal.

    Parameters
    ----------
    name : str
    operator : Operator
        Told the events, and once of each data upstream that it has ended.
    data_upstreams, control_upstreams : int
        How many there are on each channel; 1 or more.
    data_outputs, control_outputs : int
        How many downstreams each channel has; each gets everything.
    hold_data : bool
        Whether what follows a barrier on the data channel waits until that is complete: the barrier is then a point of
        synchronisation of the data, and otherwise only of itself (protocol rule 25).
    max_ahead : int
        How many barriers an upstream may be ahead of the others on a channel that does not hold; after that it is not
        read any more.
    equal_upstreams : bool
        Whether there must be as many upstreams on one channel as on the other.
    make_aligner : callable, optional
        Makes the aligner of each channel, from the number of upstreams and the channel.
    tell : callable, optional
        Verbs: deliver, arrive, close, complete, flush, forward, abort, drop, fail, end.

    Attributes
    ----------
    failure : str
        Why the processor has ended without a terminal signal; empty if it has not.

    Raises
    ------
    NoUpstreamsError
        If a channel has no upstream.
    UnequalUpstreamsError
        If `equal_upstreams` is asked for and not so.
    LimitError
        If `max_ahead` is less than 1.
    """

    __slots__ = (
        "_aligners",
        "_most_ahead",
        "_open",
        "_terminal",
        "failure",
        "name",
        "operator",
        "outlets",
        "tell",
    )

    def __init__(
        self,
        name: str,
        operator: Operator,
        data_upstreams: int,
        control_upstreams: int,
        data_outputs: int = 1,
        control_outputs: int = 1,
        *,
        hold_data: bool = True,
        max_ahead: int = 1024,
        equal_upstreams: bool = False,
        make_aligner: MakeControlAligner = IdentityAligner,
        tell: TellSignal = silent,
    ) -> None:
        self.name, self.tell = name, tell
        self.outlets = Outlets(name, data_outputs, control_outputs, tell)
        check_number("max_ahead", max_ahead, 1)
        if equal_upstreams and data_upstreams != control_upstreams:
            raise UnequalUpstreamsError(name, data_upstreams, control_upstreams)
        self.operator = operator
        self.failure = ""
        self._aligners = {
            Carrier.DATA: make_aligner(data_upstreams, Carrier.DATA),
            Carrier.CONTROL: make_aligner(control_upstreams, Carrier.CONTROL),
        }
        self._most_ahead = {Carrier.DATA: 1 if hold_data else max_ahead, Carrier.CONTROL: max_ahead}
        self._open = {
            Carrier.DATA: set(range(data_upstreams)),
            Carrier.CONTROL: set(range(control_upstreams)),
        }
        self._terminal: tuple[Carrier, BarrierControlSignal] | None = None  # complete; it may wait for its fence

    @property
    def outbox(self) -> dict[Carrier, deque[tuple[int, Message]]]:
        """Return what is to be sent on each channel, with its output, in order; the driver takes it out."""
        return self.outlets.outbox

    @property
    def ended(self) -> bool:
        """Return whether the end has gone to every output."""
        return self.outlets.ended

    # Messages in.

    def can_take(self, carrier: Carrier, upstream: int) -> bool:
        """Return whether this upstream is read: there is no backpressure, and it does not have to wait for the
        others."""
        if self.ended:
            return True
        return not self.outbox[carrier] and self._aligners[carrier].ahead(upstream) < self._most_ahead[carrier]

    def offer(self, carrier: Carrier, upstream: int, message: Message) -> bool:
        """Take the first message of a channel, or refuse it for now.

        An instant signal is never refused. Behind the end of the processor everything is taken and has no effect.

        Returns
        -------
        bool
            Whether it was taken; if not, it is to be offered again after something else has been taken or sent.

        Raises
        ------
        InputIndexError
            If there is no such upstream. Nothing changes, as with the others.
        ClosedInputError
            If the upstream has closed.
        UnknownMessageError
            If the message is none that this channel carries.
        """
        self._check(carrier, upstream, message)
        if self.ended:
            self._swallow(carrier, upstream, message)
        elif isinstance(message, InstantControlSignal):
            self.outlets.forward(carrier, message)
            if message.is_terminal:
                self._end(message)
        elif not self.can_take(carrier, upstream):
            return False
        elif type(message) is Event:
            self.tell("deliver", carrier, upstream, message)
            self._give_off(self.operator.process(upstream, message))
        elif type(message) is EndOfInput:
            self._close(carrier, upstream)
        else:
            assert isinstance(message, BarrierControlSignal)
            self._align(carrier, upstream, message)
        return True

    def emit(self, event: Event) -> None:
        """Emit an event as a source. The data outbox should be empty.

        Raises
        ------
        AfterEndError
            If the processor has ended.
        """
        self.outlets.check_open(event)
        self.outlets.send(Carrier.DATA, event)

    def fail(self, reason: str, carrier: Carrier | None = None, upstream: int = -1) -> None:
        """Fail: end without a terminal signal, and drop what the operator still has.

        Raises
        ------
        AfterEndError
            If the processor has ended.
        """
        self.outlets.check_open(reason)
        self.failure = reason
        self.tell("fail", carrier, upstream, reason)
        self._end("failure")

    def _check(self, carrier: Carrier, upstream: int, message: Message) -> None:
        if upstream not in self._open[carrier]:
            count = self._aligners[carrier].expected_upstreams
            if 0 <= upstream < count:
                raise ClosedInputError(upstream, message)
            raise InputIndexError(upstream, count)
        known: tuple[type, ...] = (BarrierControlSignal, InstantControlSignal, EndOfInput)
        if carrier is Carrier.DATA:
            known = (*known, Event)
        if not isinstance(message, known):
            raise UnknownMessageError(message)

    def _swallow(self, carrier: Carrier, upstream: int, message: Message) -> None:
        """Discard a message after the end, and report what is lost."""
        if type(message) is Event:
            self.tell("drop", carrier, upstream, message)
        elif type(message) is BarrierControlSignal:
            self.tell("abort", carrier, upstream, message)
        elif type(message) is EndOfInput:
            self._open[carrier].remove(upstream)

    # Alignment.

    def _align(self, carrier: Carrier, upstream: int, barrier: BarrierControlSignal) -> None:
        try:
            completed = self._aligners[carrier].align(upstream, barrier)
        except ControlSignalError as error:
            self.fail(error.actual, carrier, upstream)
            self.failure = str(error)
            return
        self.tell("arrive", carrier, upstream, barrier)
        if completed is not None:
            self._complete(carrier, completed)

    def _close(self, carrier: Carrier, upstream: int) -> None:
        """Close an upstream: it counts as having delivered every barrier (protocol rule 26)."""
        self._open[carrier].remove(upstream)
        self.tell("close", carrier, upstream, EndOfInput())
        if carrier is Carrier.DATA:
            self._give_off(self.operator.on_end(upstream))
        for barrier in self._aligners[carrier].close(upstream):
            if self.ended:
                self._swallow(carrier, -1, barrier)
            else:
                self._complete(carrier, barrier)
        if not self.ended:
            self._end_if_drained()
        if not self.ended and not any(self._open.values()):
            self._end("every upstream has closed")

    def _complete(self, carrier: Carrier, barrier: BarrierControlSignal) -> None:
        self.tell("complete", carrier, -1, barrier)
        if barrier.is_terminal:
            self._terminal = carrier, barrier
            self._end_if_drained()
        else:
            self.outlets.forward(carrier, barrier)

    # The end.

    def _end_if_drained(self) -> None:
        """End if a fenced terminal barrier has waited for all that is older on the other channel (protocol rule 26).

        What the operator still has is given off before the barrier.
        """
        if self._terminal is None:
            return
        carrier, barrier = self._terminal
        if barrier.fenced and not self._has_drained(carrier.other):
            return
        self._flush()
        self.outlets.forward(carrier, barrier)
        self._end(barrier)

    def _has_drained(self, carrier: Carrier) -> bool:
        """Return whether nothing more will come on a channel."""
        return not self._open[carrier]

    def _flush(self) -> None:
        """End every open upstream for the operator: a terminal barrier is complete."""
        self.tell("flush", Carrier.DATA, -1, len(self._open[Carrier.DATA]))
        for upstream in sorted(self._open[Carrier.DATA]):
            self._give_off(self.operator.on_end(upstream))

    def _end(self, cause: object) -> None:
        """Abort and report what is pending on either channel (defect S-07)."""
        for carrier in Carrier:
            for barrier in self._aligners[carrier].abort():
                self.tell("abort", carrier, -1, barrier)
        self.outlets.end(cause)

    def _give_off(self, events: Iterable[Event]) -> None:
        for event in events:
            self.outlets.send(Carrier.DATA, event)

    # Capture and restore.

    def capture(self) -> Hashable:
        """Return the state for `restore`. The operator's image must be hashable for the whole to be."""
        return (
            self.outlets.capture(),
            tuple(self._aligners[carrier].capture() for carrier in Carrier),
            tuple(tuple(sorted(self._open[carrier])) for carrier in Carrier),
            self.operator.checkpoint(),
            self._terminal,
            self.failure,
        )

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` returned."""
        outputs, aligners, still_open, image, self._terminal, self.failure = value  # type: ignore[misc]
        self.outlets.restore(outputs)  # type: ignore[has-type]
        for carrier, captured in zip(Carrier, aligners, strict=True):  # type: ignore[has-type]
            self._aligners[carrier].restore(captured)
        self._open = {carrier: set(upstreams) for carrier, upstreams in zip(Carrier, still_open, strict=True)}  # type: ignore[has-type]
        self.operator.restore(image)  # type: ignore[has-type]
