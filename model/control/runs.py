"""Long runs of a head and of a processor of control signals that live, each beside its reference; and wrong values.

In the explored pipeline (`model.control.world`) a machine is put into its state before each step, channels never bring
what is wrong, and of what a machine tells only the invariants' part counts. Here it lives, its calls are drawn by a
fixed seed, wrong ones among them, and whatever comes of a call is compared in order: what is reported, what is sent on
which output, what is answered or refused. Now and then it is captured, and a new machine goes on in its place.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from barrierlab.impl.control import (
    BarrierControlSignal,
    BarrierControlSignalKind,
    BarrierIdAllocator,
    BarrierIdError,
    Carrier,
    ControlProcessor,
    ControlSourceProcessor,
    CountingAligner,
    IdentityAligner,
    InstantControlSignal,
    NoUpstreamsError,
    UnequalUpstreamsError,
)
from barrierlab.impl.control.outlets import TellSignal
from barrierlab.impl.errors import ContractError, LimitError
from barrierlab.impl.messages import MAX_U64, EndOfInput, Event, Watermark
from barrierlab.model.checkpoint.check import CaseScope, NamedScope, Outcome, ScopeViolation, compared
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.control.operators import Batch
from barrierlab.model.control.reference import SENT, Counted, ReferenceEffect, ReferenceHead, ReferenceProcessor
from barrierlab.model.control.table import CONTROL
from barrierlab.model.control.upstreams import Upstreams
from barrierlab.model.explore.checker import UNDECIDED
from barrierlab.model.explore.shorten import shortened

SYNC, GRACEFUL = BarrierControlSignalKind.SYNC_TEST, BarrierControlSignalKind.STREAM_GRACEFUL_END
QUICK = InstantControlSignal.STREAM_QUICK_END
MOVES = 60
"""In a run at most: some ten barriers."""
BEHIND_THE_END = 8
"""Calls of a node that has ended: each kind of message, and what must be refused."""


@dataclass(frozen=True, slots=True)
class DriverCall:
    """A call of a machine by its driver; ``pop`` takes the first message out of an outbox, ``renew`` restores."""

    verb: str
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.verb, *map(str, self.arguments)))


RENEW = DriverCall("renew")


class ProcessorPair:
    """A reference, and a machine beside it that goes its own way.

    Parameters
    ----------
    reference : Outputs
    make : callable
        Makes the machine; it tells what it does.
    """

    def __init__(
        self,
        reference: ReferenceHead | ReferenceProcessor,
        make: Callable[[TellSignal], ControlSourceProcessor | ControlProcessor],
    ) -> None:
        self.reference, self._make = reference, make
        self._effects: list[ReferenceEffect] = []
        self._sent = dict.fromkeys(Carrier, 0)  # how much of each outbox stands in `_effects`
        self._machine = make(self._tell)

    def _tell(self, verb: str, carrier: Carrier | None, index: int, subject: object) -> None:
        self._note_sent()
        self._effects.append((verb, carrier, index, subject))

    def _note_sent(self) -> None:
        for carrier, outbox in self._machine.outbox.items():
            for output, message in list(outbox)[self._sent[carrier] :]:
                self._effects.append((SENT, carrier, output, message))
            self._sent[carrier] = len(outbox)

    def difference(self, call: DriverCall) -> str | None:
        """Return how the machine takes a call otherwise than the reference; None if it does not."""
        try:
            if call == RENEW:
                return self._renewed()
            if call.verb == "pop":
                return self._popped(*call.arguments)
            return self._called(call)
        except Exception as error:  # whatever a machine raises that the reference does not
            return f"{call}: the machine raised {type(error).__name__}: {error}"

    def _renewed(self) -> str | None:
        value = self._machine.capture()
        self._machine = self._make(self._tell)
        self._machine.restore(value)
        found = self._machine.capture()
        return None if found == value else f"restored from {value}, the machine captures {found}"

    def _popped(self, carrier: object) -> str | None:
        assert isinstance(carrier, Carrier)
        outbox = self.reference.outbox[carrier]
        if outbox:  # it may be empty where moves ahead of this were left out
            meant, found = outbox.pop(0), self._machine.outbox[carrier].popleft()
            self._sent[carrier] -= 1
            if found != meant:
                return f"pop {carrier}: {meant} is first, of the machine {found}"
        return None

    def _called(self, call: DriverCall) -> str | None:
        reference, machine, before = self.reference, self._machine, self._machine.capture()
        reference.effects, self._effects = [], []
        meant, is_refused = _answer(reference, call)
        found, _ = _answer(machine, call)
        self._note_sent()
        wrong = [
            ("answer", meant, found),
            ("effects", _listed(reference.effects), _listed(self._effects)),
            ("ended", reference.ended, machine.ended),
        ]
        wrong += [
            (f"{carrier} outbox", list(reference.outbox[carrier]), list(machine.outbox[carrier])) for carrier in Carrier
        ]
        if is_refused:
            wrong.append(("state behind a call that is refused", before, machine.capture()))
        if isinstance(reference, ReferenceProcessor) and isinstance(machine, ControlProcessor):
            meant = reference.failure
            wrong.append(("failure", meant, machine.failure[: len(meant) or None]))
            for carrier, upstreams in reference.upstreams.items():
                for each in range(upstreams.expected):
                    asked = f"can_take({carrier}, {each})"
                    wrong.append((asked, reference.can_take(carrier, each), machine.can_take(carrier, each)))
        for what, of_reference, of_machine in wrong:
            if of_reference != of_machine:
                return f"{call}: {what}: by the reference it is {of_reference}, the machine has {of_machine}"
        return None


def _answer(node: object, call: DriverCall) -> tuple[str, bool]:
    """Return what a call gives, and whether it is refused."""
    verb = call.verb
    if verb == "signal" and isinstance(node, ControlSourceProcessor):
        is_instant = isinstance(call.arguments[0], InstantControlSignal)
        verb, arguments = ("send_instant", call.arguments[:2]) if is_instant else ("send", call.arguments)
    else:
        arguments = call.arguments
    try:
        return repr(getattr(node, verb)(*arguments)), False
    except ContractError as error:
        return f"refused: {type(error).__name__}", True


def _listed(effects: Sequence[ReferenceEffect]) -> list[str]:
    return [
        f"{verb} {'-' if carrier is None else carrier} {index} {subject!r}" for verb, carrier, index, subject in effects
    ]


@dataclass(frozen=True)
class ControlRunScope(NamedScope):
    """A node, and how often it is driven from its beginning.

    Attributes
    ----------
    of : str
    pair : callable
        Makes it and its reference; given the chance.
    draw : callable
        A call that may come next.
    runs : int
        So many that every planted mistake shows that any number of them has shown; a half never restores.
    """

    kind = " runs"
    of: str
    pair: Callable[[random.Random], ProcessorPair]
    draw: Callable[[random.Random, ReferenceHead | ReferenceProcessor, int], DriverCall]
    runs: int = 150
    protocol: str = "control"

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Make the runs, up to the first in which machine and reference part; `components` are of no concern to
        them."""
        begun, made = monotonic(), 0
        for number in range(self.runs):
            if seconds is not None and monotonic() - begun > seconds:
                why = f"{number} of {self.runs} runs were made in {seconds:.0f} s"
                return self.outcome(begun, made, why, UNDECIDED)
            calls, difference = self._run(number)
            made += len(calls)
            if difference is not None:
                return self.outcome(begun, made, self._violation(number, calls))
        return self.outcome(begun, made, f"machine and reference agree in {self.runs} runs")

    def _run(self, number: int) -> tuple[list[DriverCall], str | None]:
        """Return the calls of a run, up to the first that the machine takes otherwise, and how it does."""
        chance = random.Random(f"{self.name} {number}")
        pair, calls, behind = self.pair(random.Random(number)), list[DriverCall](), 0
        while len(calls) < MOVES and behind < BEHIND_THE_END:
            behind += pair.reference.ended
            restores = number % 2 == 1 and chance.random() < 0.1
            calls.append(RENEW if restores else self.draw(chance, pair.reference, len(calls)))
            difference = pair.difference(calls[-1])
            if difference is not None:
                return calls, difference
        return calls, None

    def _replayed(self, number: int, calls: Sequence[DriverCall]) -> tuple[int, str] | None:
        """Return the place of the first call that the machine takes otherwise, and how; None if there is none."""
        pair = self.pair(random.Random(number))
        differences = enumerate(map(pair.difference, calls))
        return next(((at, difference) for at, difference in differences if difference is not None), None)

    def _violation(self, number: int, calls: list[DriverCall]) -> ScopeViolation:
        """Return the run without each call that it does not need."""
        calls, reason = shortened(calls, partial(self._replayed, number))
        return self.violation(len(calls), reason, *calls)


# A processor.


def processor(
    chance: random.Random, data: int, control: int, *, hold_data: bool = True, max_ahead: int = 2, counted: bool = False
) -> ProcessorPair:
    """Make a processor of a batch with so many upstreams, two data outputs and one of control."""
    inputs, outputs = {Carrier.DATA: data, Carrier.CONTROL: control}, {Carrier.DATA: 2, Carrier.CONTROL: 1}
    aligner = CountingAligner if counted else IdentityAligner
    reference = ReferenceProcessor("p", outputs)
    for carrier, expected in inputs.items():
        reference.upstreams[carrier] = Counted(carrier, expected) if counted else Upstreams(CONTROL, carrier, expected)
        reference.most_ahead[carrier] = 1 if hold_data and carrier is Carrier.DATA else max_ahead
    reference.operator = Batch("p", 3, data)

    def make(tell: TellSignal) -> ControlProcessor:
        options = {"hold_data": hold_data, "max_ahead": max_ahead, "make_aligner": aligner, "tell": tell}
        return ControlProcessor("p", Batch("p", 3, data), data, control, *outputs.values(), **options)  # type: ignore[arg-type]

    return ProcessorPair(reference, make)


def call_of_processor(chance: random.Random, reference: ReferenceHead | ReferenceProcessor, number: int) -> DriverCall:
    """Draw a call: most lead on, some are wrong."""
    assert isinstance(reference, ReferenceProcessor)
    full = [carrier for carrier, outbox in reference.outbox.items() if outbox]
    if full and chance.random() < 0.5:
        return DriverCall("pop", (chance.choice(full),))
    what = chance.randrange(100)
    if what < 3:
        return DriverCall("emit", (Event("s", number),))
    if what < 4 or (what < 10 and reference.ended):
        return DriverCall("fail", ("it broke down",))
    carrier = chance.choice(list(Carrier))
    upstreams = reference.upstreams[carrier]
    upstream = chance.randrange(upstreams.expected)
    if what < 14:
        upstream = chance.choice((-1, upstreams.expected, upstream))
        message: object = chance.choice((Event("a", number), Watermark(number), EndOfInput(), SYNC, None))
    elif (carrier, upstream) in reference.closed and what < 90:  # an offer to it is refused: a few are enough
        return call_of_processor(chance, reference, number)
    elif what < 16:
        message = QUICK
    elif what < 28:
        message = EndOfInput()
    elif what < 55 and carrier is Carrier.DATA:
        message = Event("ab"[upstream % 2], number)
    else:
        message = _barrier(chance, upstreams, upstream)
    return DriverCall("offer", (carrier, upstream, message))


def _barrier(chance: random.Random, upstreams: Upstreams | Counted, upstream: int) -> BarrierControlSignal:
    """Draw a barrier: most often the one that is this upstream's turn."""
    if isinstance(upstreams, Counted):
        turn, newest = upstreams.pending, upstreams.last_terminated_id
    else:
        turn, newest = upstreams.turn(upstream), upstreams.newest(upstream)
    payload = chance.choice((None, None, "x"))
    if turn is not None and chance.random() < 0.95:
        return BarrierControlSignal(turn.kind, turn.barrier_id, payload, turn.fenced)
    kind = chance.choice((SYNC,) * 6 + (GRACEFUL,))
    barrier_id = max(1, newest + chance.choice((1,) * 9 + (2,) * 3 + (0,)))
    return BarrierControlSignal(kind, barrier_id, payload, kind is GRACEFUL and chance.random() < 0.7)


# A head.


def head(chance: random.Random) -> ProcessorPair:
    """Make a head with two data outputs and one of control, whose ids begin with 1, later, or near the last one."""
    first_id = chance.choice((None, 7, MAX_U64 - 3))
    reference = ReferenceHead("head", {Carrier.DATA: 2, Carrier.CONTROL: 1}, next_id=first_id or 1)

    def make(tell: TellSignal) -> ControlSourceProcessor:
        return ControlSourceProcessor("head", 2, 1, None if first_id is None else BarrierIdAllocator(first_id), tell)

    return ProcessorPair(reference, make)


def call_of_head(chance: random.Random, reference: ReferenceHead | ReferenceProcessor, number: int) -> DriverCall:
    """Draw a signal, or a message that goes."""
    full = [carrier for carrier, outbox in reference.outbox.items() if outbox]
    if full and chance.random() < 0.5:
        return DriverCall("pop", (chance.choice(full),))
    what = chance.choice((SYNC,) * 12 + (GRACEFUL, QUICK))
    return DriverCall("signal", (what, chance.choice(list(Carrier)), chance.choice((None, "x"))))


# Wrong values.


GivenCase = tuple[str, Callable[[], object], type[Exception] | None]
"""Values that something is made from; what makes it; and what it must be refused with, or None: it must be taken."""


def _processor_of(data: int, control: int, **options: object) -> ControlProcessor:
    return ControlProcessor("p", Batch("p"), data, control, **options)  # type: ignore[arg-type]


def _given() -> Iterator[GivenCase]:
    wrong: tuple[object, ...] = (-1, 1.0, float("nan"), True, "2")
    for kind in (IdentityAligner, CountingAligner):
        name = kind.__name__
        yield (f"{name}: 1 upstream", partial(kind, 1, Carrier.DATA), None)
        yield (f"{name}: no upstream", partial(kind, 0, Carrier.DATA), NoUpstreamsError)
        for value in wrong:
            made = partial(kind, value, Carrier.DATA)  # type: ignore[arg-type]
            yield (f"{name}: {value!r} upstreams", made, LimitError)
    yield ("a processor: max_ahead 1", partial(_processor_of, 1, 1, max_ahead=1), None)
    for value in (0, *wrong):
        yield (f"a processor: max_ahead {value!r}", partial(_processor_of, 1, 1, max_ahead=value), LimitError)
    for data, control in ((0, 1), (1, 0)):
        made_of = partial(_processor_of, data, control)
        yield (f"a processor: {data} data, {control} control upstreams", made_of, NoUpstreamsError)
    equal = partial(_processor_of, equal_upstreams=True)
    yield ("a processor: 2 and 2 upstreams, to be equal", partial(equal, 2, 2), None)
    yield ("a processor: 2 and 1 upstreams", partial(_processor_of, 2, 1), None)
    yield ("a processor: 2 and 1 upstreams, to be equal", partial(equal, 2, 1), UnequalUpstreamsError)
    for value in (1, MAX_U64):
        yield (f"barrier id {value}", partial(SYNC.with_id, value), None)
        yield (f"an allocator from {value} on", BarrierIdAllocator(value).allocate, None)
    for value in (0, MAX_U64 + 1, *wrong):
        yield (f"barrier id {value!r}", partial(SYNC.with_id, value), BarrierIdError)  # type: ignore[arg-type]
        allocate = BarrierIdAllocator(value).allocate  # type: ignore[arg-type]
        yield (f"an allocator from {value!r} on", allocate, BarrierIdError)


def _values() -> Iterator[tuple[str, object, object]]:
    """Everything that is made from numbers, from the least, the most and from what is none: taken, or refused."""
    for of, make, error in _given():
        found = "taken"
        try:
            make()
        except Exception as raised:  # whatever it raises
            found = f"refused: {type(raised).__name__}"
        yield of, found, "taken" if error is None else f"refused: {error.__name__}"


SCOPES = (
    ControlRunScope("a processor that holds data", partial(processor, data=2, control=2), call_of_processor),
    ControlRunScope("three upstreams", partial(processor, data=3, control=1), call_of_processor),
    ControlRunScope("data may pass", partial(processor, data=2, control=2, hold_data=False), call_of_processor),
    ControlRunScope("copies are counted", partial(processor, data=2, control=2, counted=True), call_of_processor),
    ControlRunScope("the head", head, call_of_head),
    CaseScope("taken and refused", lambda: compared(_values()), 44, "control", " values"),
)
