"""The head and a processor of control signals as their documents say, to be held beside `impl.control`.

Source: barrier-control-signals, "Processor Integration", "Terminal Semantics" and "`barrier_id` Allocation"; protocol
rules 24 to 26. Alignment is the table's (`model.control.table`), or the document's count. Each call gives the effects
in their order, tellings and messages in one list, and raises what must be refused before it has changed anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from barrierlab.impl.checkpoint.task import Operator
from barrierlab.impl.control import (
    AfterEndError,
    BarrierControlSignal,
    BarrierControlSignalKind,
    BarrierIdError,
    BarrierOverlapError,
    Carrier,
    DuplicateBarrierError,
    InstantControlSignal,
    Message,
)
from barrierlab.impl.errors import ClosedInputError, InputIndexError, UnknownMessageError
from barrierlab.impl.messages import MAX_U64, EndOfInput, Event
from barrierlab.model.checkpoint.tables.stimuli import NO_INPUT, Effect
from barrierlab.model.control.upstreams import AbortAll, Closed, ControlStimulus, Delivered, Upstreams

SENT = "sent"
"""The verb of an effect that is a message to one output; the others are those of
`barrierlab.impl.control.outlets.TellSignal`."""

ReferenceEffect = tuple[str, Carrier | None, int, object]
"""Verb, carrier (None: neither), upstream or output (else -1), subject."""

TERMINAL = (BarrierControlSignalKind.STREAM_GRACEFUL_END, InstantControlSignal.STREAM_QUICK_END)
"""The kinds behind which nothing is sent ("Terminal Semantics")."""


def is_terminal(signal: BarrierControlSignal | InstantControlSignal) -> bool:
    """Return True if a processor ends with `signal`."""
    return (signal.kind if isinstance(signal, BarrierControlSignal) else signal) in TERMINAL


@dataclass(frozen=True, slots=True)
class Counted:
    """The document's alignment as a value: copies are counted, whoever sent them (defects S-01, S-03, S-08)."""

    carrier: Carrier
    expected: int
    last_terminated_id: int = 0
    pending: BarrierControlSignal | None = None
    copies: int = 0

    def step(self, stimulus: ControlStimulus) -> tuple[Counted, tuple[Effect, ...]]:
        """Return the value after `stimulus`, and the effects, as `Upstreams.step` does."""
        if isinstance(stimulus, Closed):
            return self, (Effect("close", stimulus.upstream, EndOfInput()),)
        if isinstance(stimulus, AbortAll):
            if self.pending is None:
                return self, ()
            return self._done(self.pending), (Effect("abort", NO_INPUT, self.pending),)
        barrier, upstream = stimulus.barrier, stimulus.upstream
        if barrier.barrier_id <= self.last_terminated_id:
            reason = DuplicateBarrierError(self.carrier, barrier, self.last_terminated_id).actual
            return self, (Effect("fail", upstream, reason),)
        first = self.pending or barrier
        if first.key != barrier.key:
            return self, (Effect("fail", upstream, BarrierOverlapError(self.carrier, first, barrier).actual),)
        arrived = Effect("arrive", upstream, barrier)
        if self.copies + 1 < self.expected:
            return replace(self, pending=first, copies=self.copies + 1), (arrived,)
        return self._done(first), (arrived, Effect("complete", NO_INPUT, first))

    def _done(self, barrier: BarrierControlSignal) -> Counted:
        return Counted(self.carrier, self.expected, barrier.barrier_id)


@dataclass
class Outputs:
    """The outputs of a node, its end, and the effects of the call that is under way.

    Attributes
    ----------
    name : str
    outputs : dict of Carrier to int
        How many downstreams there are on each channel.
    outbox : dict of Carrier to list of (int, Message)
        What is to be sent, with its output.
    """

    name: str
    outputs: dict[Carrier, int]
    outbox: dict[Carrier, list[tuple[int, Message]]] = field(default_factory=lambda: {each: [] for each in Carrier})
    ended: bool = False
    effects: list[ReferenceEffect] = field(default_factory=list)

    def tell(self, verb: str, carrier: Carrier | None, index: int, subject: object) -> None:
        """Note an effect."""
        self.effects.append((verb, carrier, index, subject))

    def send(self, carrier: Carrier, message: Message) -> None:
        """Send a message to every output of a channel."""
        for output in range(self.outputs[carrier]):
            self.outbox[carrier].append((output, message))
            self.tell(SENT, carrier, output, message)

    def forward(self, carrier: Carrier, signal: BarrierControlSignal | InstantControlSignal) -> None:
        """Send a signal to every output of a channel, and say so first."""
        self.tell("forward", carrier, -1, signal)
        self.send(carrier, signal)

    def end(self, cause: object) -> None:
        """Close every output of both channels."""
        self.tell("end", None, -1, str(cause))
        self.ended = True
        for carrier in Carrier:
            self.send(carrier, EndOfInput())

    def check_not_ended(self, came: object) -> None:
        """Raise AfterEndError behind the end."""
        if self.ended:
            raise AfterEndError(self.name, came)


@dataclass
class ReferenceHead(Outputs):
    """The head: ids from `next_id` on, each once, whichever channel carries them."""

    next_id: int = 1

    def signal(
        self, what: BarrierControlSignalKind | InstantControlSignal, carrier: Carrier, payload: object
    ) -> object:
        """Send a signal, and return it if it is a barrier; a terminal one closes both channels behind it."""
        self.check_not_ended(what)
        signal: BarrierControlSignal | InstantControlSignal
        if isinstance(what, InstantControlSignal):
            signal = what
        else:
            if not 1 <= self.next_id <= MAX_U64:
                raise BarrierIdError(self.next_id)
            signal = BarrierControlSignal(what, self.next_id, payload, fenced=what in TERMINAL)
            self.next_id += 1
        self.forward(carrier, signal)
        if what in TERMINAL:
            self.end(signal)
        return signal if isinstance(signal, BarrierControlSignal) else None


@dataclass
class ReferenceProcessor(Outputs):
    """A processor: two channels that align each on its own, and an operator between them.

    Attributes
    ----------
    upstreams : dict of Carrier to Upstreams or Counted
    most_ahead : dict of Carrier to int
        How many barriers an upstream may be ahead of the others before it is not read (protocol rule 25).
    operator : Operator
    closed : set of (Carrier, int)
        The upstreams that have closed.
    terminal : (Carrier, BarrierControlSignal), optional
        The complete terminal barrier that waits for its fence (protocol rule 26).
    failure : str
        How the reason begins for which the processor has ended without a terminal signal.
    """

    upstreams: dict[Carrier, Upstreams | Counted] = field(default_factory=dict)
    most_ahead: dict[Carrier, int] = field(default_factory=dict)
    operator: Operator = None  # type: ignore[assignment]  # always given: those of the base have defaults
    closed: set[tuple[Carrier, int]] = field(default_factory=set)
    terminal: tuple[Carrier, BarrierControlSignal] | None = None
    failure: str = ""

    def can_take(self, carrier: Carrier, upstream: int) -> bool:
        """Return True if an upstream is read: nothing waits in the outbox, and it is not too far ahead."""
        return self.ended or (not self.outbox[carrier] and self._ahead(carrier, upstream) < self.most_ahead[carrier])

    def offer(self, carrier: Carrier, upstream: int, message: Message) -> bool:
        """Take a message, or return False and leave it."""
        self._check(carrier, upstream, message)
        if self.ended:
            self._take_in_vain(carrier, upstream, message)
            return True
        if isinstance(message, InstantControlSignal):
            self.forward(carrier, message)
            if is_terminal(message):
                self.end(message)
            return True
        if not self.can_take(carrier, upstream):
            return False
        if isinstance(message, Event):
            self.tell("deliver", carrier, upstream, message)
            for event in self.operator.process(upstream, message):
                self.send(Carrier.DATA, event)
        elif isinstance(message, BarrierControlSignal):
            self._step(carrier, Delivered(upstream, message))
        else:
            self._step(carrier, Closed(upstream))
        return True

    def emit(self, event: Event) -> None:
        """Send an event that comes from outside."""
        self.check_not_ended(event)
        self.send(Carrier.DATA, event)

    def fail(self, reason: str, carrier: Carrier | None = None, upstream: int = -1) -> None:
        """End without a terminal signal, and without what the operator still has."""
        self.check_not_ended(reason)
        self.failure = reason
        self.tell("fail", carrier, upstream, reason)
        self.end("failure")

    def end(self, cause: object) -> None:
        """Abort what is pending on either channel, then close every output (defect S-07)."""
        for carrier in Carrier:
            self.upstreams[carrier], effects = self.upstreams[carrier].step(AbortAll())
            for effect in effects:
                self.tell(effect.verb, carrier, -1, effect.subject)
        super().end(cause)

    def _ahead(self, carrier: Carrier, upstream: int) -> int:
        upstreams = self.upstreams[carrier]
        if isinstance(upstreams, Counted):  # a count cannot tell
            return 0
        return sum(upstream in arrived for _, arrived in upstreams.pending)

    def _open(self, carrier: Carrier) -> list[int]:
        return [each for each in range(self.upstreams[carrier].expected) if (carrier, each) not in self.closed]

    def _check(self, carrier: Carrier, upstream: int, message: object) -> None:
        expected = self.upstreams[carrier].expected
        if not 0 <= upstream < expected:
            raise InputIndexError(upstream, expected)
        if (carrier, upstream) in self.closed:
            raise ClosedInputError(upstream, message)
        is_event_on_data = isinstance(message, Event) and carrier is Carrier.DATA
        if not is_event_on_data and not isinstance(message, BarrierControlSignal | InstantControlSignal | EndOfInput):
            raise UnknownMessageError(message)

    def _take_in_vain(self, carrier: Carrier, upstream: int, message: Message) -> None:
        """Take what comes behind the end: nothing has an effect, and what is lost is reported."""
        if isinstance(message, EndOfInput):
            self.closed.add((carrier, upstream))
        elif not isinstance(message, InstantControlSignal):
            self.tell("drop" if isinstance(message, Event) else "abort", carrier, upstream, message)

    def _step(self, carrier: Carrier, stimulus: Delivered | Closed) -> None:
        """Carry out the effects of a copy or an end, one after the other."""
        self.upstreams[carrier], effects = self.upstreams[carrier].step(stimulus)
        for effect in effects:
            if effect.verb == "fail":
                assert isinstance(stimulus, Delivered)
                self.fail(str(effect.subject), carrier, stimulus.upstream)
                self.failure += "; allowed: "  # and more words, as each error has them
                return
            if effect.verb == "complete" and self.ended:  # behind a terminal barrier that one end has completed, too
                self.tell("abort", carrier, -1, effect.subject)
                continue
            self.tell(effect.verb, carrier, effect.input_id, effect.subject)
            if effect.verb == "close":
                self._close(carrier, effect.input_id)
            elif effect.verb == "complete":
                assert isinstance(effect.subject, BarrierControlSignal)
                self._complete(carrier, effect.subject)
        if isinstance(stimulus, Closed) and not self.ended:
            self._end_if_fenced()
            if not self.ended and not any(map(self._open, Carrier)):
                self.end("every upstream has closed")

    def _close(self, carrier: Carrier, upstream: int) -> None:
        self.closed.add((carrier, upstream))
        if carrier is Carrier.DATA:
            for event in self.operator.on_end(upstream):
                self.send(Carrier.DATA, event)

    def _complete(self, carrier: Carrier, barrier: BarrierControlSignal) -> None:
        if is_terminal(barrier):
            self.terminal = carrier, barrier
            self._end_if_fenced()
        else:
            self.forward(carrier, barrier)

    def _end_if_fenced(self) -> None:
        """End with the terminal barrier, once the other channel has closed if it is fenced by that (rule 26)."""
        if self.terminal is None:
            return
        carrier, barrier = self.terminal
        still_open = self._open(Carrier.DATA)
        if barrier.fenced and self._open(carrier.other):
            return
        self.tell("flush", Carrier.DATA, -1, len(still_open))
        for upstream in still_open:
            for event in self.operator.on_end(upstream):
                self.send(Carrier.DATA, event)
        self.forward(carrier, barrier)
        self.end(barrier)
