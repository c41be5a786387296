"""A pipeline under control signals as one untimed transition system: what may happen next, and what comes of it.

The machines are those of `impl.control`; the channels, bounded and first in, first out, are here. A move is a line of
text: ``signal`` (the head sends the next one of its script), ``emit a`` (a source makes an event), ``deliver a->join``
(a processor takes the head of a channel); and where bounds allows it ``fail b``, ``lose a->join`` and ``repeat
a->join``. What a node gives off enters its channels as soon as there is room: that is no move of its own.

A state is a flat tuple of small integers, each the place of a component in a table of this object: one for the head and
each processor (with what the invariants remember of it), for each channel, for how far script and sources are, and for
what has been found wrong. Steps of single machines are remembered, so that each happens once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from barrierlab.impl.control import (
    BarrierControlSignal,
    BarrierControlSignalKind,
    BarrierIdAllocator,
    Carrier,
    ControlProcessor,
    ControlSourceProcessor,
    InstantControlSignal,
    Message,
)
from barrierlab.impl.control.outlets import TellSignal
from barrierlab.impl.messages import EndOfInput, Event
from barrierlab.model.control.invariants import NAMES, ControlEntry, FinalObligations, HeadWatch, ProcessorWatch
from barrierlab.model.control.operators import DISCARDING, KINDS
from barrierlab.model.control.topology import CONTROL, DATA, HEAD, ControlWiring
from barrierlab.model.explore.checker import Always, Property, Quiescent
from barrierlab.model.explore.intern import Interner
from barrierlab.model.explore.memo import Memo
from barrierlab.model.explore.queues import Queues
from barrierlab.model.spec.invariants import Violation

NS_PER_S = 1_000_000_000

PipelineState = tuple[int, ...]
Send = tuple[BarrierControlSignalKind | InstantControlSignal, Carrier]

CARRIER = {DATA: Carrier.DATA, CONTROL: Carrier.CONTROL}


class MakeProcessor(Protocol):
    """Makes the processor called `name`; `tell` is its own."""

    def __call__(self, name: str, wiring: ControlWiring, tell: TellSignal) -> ControlProcessor: ...


class MakeHead(Protocol):
    """Makes the head."""

    def __call__(self, wiring: ControlWiring, tell: TellSignal) -> ControlSourceProcessor: ...


def head_of(
    wiring: ControlWiring, tell: TellSignal, allocator: BarrierIdAllocator | None = None
) -> ControlSourceProcessor:
    """The head of a pipeline."""
    outputs = [len(wiring.outputs(carrier, HEAD)) for carrier in (DATA, CONTROL)]
    return ControlSourceProcessor(HEAD, outputs[0], outputs[1], allocator, tell)


@dataclass(frozen=True, slots=True)
class Processors:
    """The recipe for processors: `kind` says what each computes, `options` go to `ControlProcessor`.

    Attributes
    ----------
    kinds : dict of str to str
        A name in `model.control.operators.KINDS`; ``union`` where not given.
    parameters : dict of str to dict
        Of the operator, by processor.
    options : dict of str to object
        Keyword arguments of `make`.
    make : type
        `ControlProcessor`, or what stands in for it.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, dict[str, int | float]] = field(default_factory=dict)
    options: dict[str, object] = field(default_factory=dict)
    make: Callable[..., ControlProcessor] = ControlProcessor

    def __call__(self, name: str, wiring: ControlWiring, tell: TellSignal) -> ControlProcessor:
        inputs = [len(wiring.inputs(carrier, name)) for carrier in (DATA, CONTROL)]
        outputs = [len(wiring.outputs(carrier, name)) for carrier in (DATA, CONTROL)]
        kind = self.kinds.get(name, "union")
        parameters: dict[str, object] = dict(self.parameters.get(name, {}))
        if kind in ("batch", "window"):
            parameters |= {"name": name, "inputs": inputs[0]}
        return self.make(name, KINDS[kind](**parameters), *inputs, *outputs, **self.options, tell=tell)

    @property
    def discarding(self) -> tuple[str, ...]:
        """The processors that drop events on purpose."""
        return tuple(name for name, kind in self.kinds.items() if kind in DISCARDING)


@dataclass(frozen=True, slots=True)
class ControlBounds:
    """The part that does not change while a pipeline runs.

    Attributes
    ----------
    wiring : ControlWiring
    script : tuple of (kind or instant signal, Carrier)
        What the head sends, in this order.
    events : int
        How many each source makes at most.
    capacity : int
        Of every channel, in messages.
    hold_data : bool
        As the processors are made; the invariants are asked accordingly.
    make_processor, make_head : callable
    may_fail : tuple of str
        Processors that may break down at any time.
    may_lose, may_repeat : tuple of str
        Channels that may lose a barrier, or deliver one twice, at any time.
    """

    wiring: ControlWiring
    script: tuple[Send, ...]
    events: int = 1
    capacity: int = 2
    hold_data: bool = True
    make_processor: MakeProcessor = field(default_factory=Processors)
    make_head: MakeHead = head_of
    may_fail: tuple[str, ...] = ()
    may_lose: tuple[str, ...] = ()
    may_repeat: tuple[str, ...] = ()


RecordedEffect = tuple[str, str | None, object]
"""A verb, a channel or carrier, a subject."""


class _Node:
    """A machine and its watch as a table, of which each step is worked out once (`model.explore.memo`).

    Attributes
    ----------
    step : Memo
        ``step[call, state, *arguments]``: the state after a call of the machine, its effects, and what is wrong there.
    pop : Memo of int
        ``pop[state, kind]``: the state after the first message has left an outbox.
    can_take : Memo of bool
        ``can_take[state, kind, index]``: `ControlProcessor.can_take`.
    ended : list of bool
        By state.
    first : list of dict
        The output and the number of the first message of each outbox, by state.
    """

    __slots__ = ("_machine", "_messages", "_recorded", "_states", "_watch", "can_take", "ended", "first", "pop", "step")

    def __init__(self, name: str, bounds: ControlBounds, messages: Interner[Message]) -> None:
        wiring = bounds.wiring
        inputs = {carrier: wiring.inputs(kind, name) for kind, carrier in CARRIER.items()}
        self._messages = messages
        self._recorded: list[RecordedEffect] = []

        def tell(verb: str, carrier: Carrier | None, index: int, subject: object) -> None:
            where = None if carrier is None else inputs[carrier][index] if index >= 0 else carrier.value
            self._recorded.append((verb, where, subject))

        self._machine = bounds.make_head(wiring, tell) if name == HEAD else bounds.make_processor(name, wiring, tell)
        self._watch = HeadWatch() if name == HEAD else ProcessorWatch(name, wiring, bounds.hold_data)
        self._states: Interner[tuple[Hashable, Hashable]] = Interner()
        self.step: Memo[tuple[int, tuple[RecordedEffect, ...], tuple[Violation, ...]]] = Memo(self._step)
        self.pop: Memo[int] = Memo(self._pop)
        self.can_take: Memo[bool] = Memo(self._can_take)
        self.ended: list[bool] = []
        self.first: list[dict[str, tuple[int, int] | None]] = []
        self._captured()

    def _captured(self) -> int:
        """Return the number of the state that machine and watch are in."""
        machine = self._machine
        number = self._states.number((machine.capture(), self._watch.capture()))
        if number == len(self.ended):
            self.ended.append(machine.ended)
            firsts = {kind: next(iter(machine.outbox[carrier]), None) for kind, carrier in CARRIER.items()}
            number_of = self._messages.number
            self.first.append({kind: each and (each[0], number_of(each[1])) for kind, each in firsts.items()})
        return number

    def _restore(self, state: int) -> None:
        machine, watch = self._states.values[state]
        self._machine.restore(machine)
        self._watch.restore(watch)

    def _step(
        self, call: str, state: int, *arguments: Any
    ) -> tuple[int, tuple[RecordedEffect, ...], tuple[Violation, ...]]:
        """Call the machine; of an offer, the last argument is the number of the message."""
        self._restore(state)
        self._recorded = []
        if call == "fail":
            self._recorded = [(">fail", None, None)]
        elif call in ("send", "send_instant"):
            self._recorded = [(">signal", None, "{} on {}".format(*arguments))]
        elif call == "offer":
            arguments = (*arguments[:-1], self._messages.values[arguments[-1]])
        getattr(self._machine, call)(*arguments)
        recorded = tuple(self._recorded)
        wrong = [pair for entry in recorded for pair in self._watch.see(*entry)]
        return self._captured(), recorded, tuple(Violation(invariant, reason, 0) for invariant, reason in wrong)

    def _pop(self, state: int, kind: str) -> int:
        self._restore(state)
        self._machine.outbox[CARRIER[kind]].popleft()
        return self._captured()

    def _can_take(self, state: int, kind: str, index: int) -> bool:
        self._restore(state)
        assert isinstance(self._machine, ControlProcessor)
        return self._machine.can_take(CARRIER[kind], index)

    def watch(self, state: int) -> ProcessorWatch | HeadWatch:
        """The watch in this state, until the next call."""
        self._watch.restore(self._states.values[state][1])
        return self._watch


class ControlWorld:
    """A pipeline as an explorer asks for it: `start`, `moves` and `after`.

    Examples
    --------
    >>> sync = (BarrierControlSignalKind.SYNC_TEST, Carrier.DATA)
    >>> world = ControlWorld(ControlBounds(ControlWiring("a->sink"), script=(sync,)))
    >>> state = world.after(world.start(), "signal")
    >>> world.moves(state)
    ('emit a', 'deliver head->a')
    >>> print(as_text(world.entries(state, "deliver head->a")), end="")
    > deliver head->a
        a take head->a SyncTest 1
        a arrive head->a SyncTest 1
        a complete data SyncTest 1
        a forward data SyncTest 1
        a send a->sink SyncTest 1
    """

    def __init__(self, bounds: ControlBounds) -> None:
        wiring = bounds.wiring
        self.bounds, self.wiring = bounds, wiring
        self.channels = tuple(channel for kind in CARRIER for channel in wiring.channels[kind])
        self._messages: Interner[Message] = Interner()
        self._queues = Queues()
        self._nodes = {name: _Node(name, bounds, self._messages) for name in (HEAD, *wiring.processors)}
        self._node_at = {name: place for place, name in enumerate(self._nodes)}
        self._channel_at = {name: len(self._nodes) + place for place, name in enumerate(self.channels)}
        self._script_at = len(self._nodes) + len(self.channels)
        self._source_at = {name: self._script_at + 1 + place for place, name in enumerate(wiring.sources)}
        self._ends_of = {channel: (*wiring.ends(channel), wiring.carrier_of(channel)) for channel in self.channels}
        self._found: Interner[tuple[Violation, ...]] = Interner(())
        discarding = bounds.make_processor.discarding if isinstance(bounds.make_processor, Processors) else ()
        self._ends = FinalObligations(wiring, discarding)

    # What an explorer asks.

    def start(self) -> PipelineState:
        """Return the initial state."""
        return (0,) * (len(self._nodes) + len(self.channels) + 1 + len(self.wiring.sources) + 1)

    def moves(self, state: PipelineState) -> tuple[str, ...]:
        """Return what may happen now, always in the same order."""
        bounds = self.bounds
        moves = []
        if state[self._script_at] < len(bounds.script) and not any(self._first(state, HEAD, kind) for kind in CARRIER):
            moves.append("signal")
        for name, place in self._source_at.items():
            if state[place] < bounds.events and not self._ended(state, name) and not self._first(state, name, DATA):
                moves.append(f"emit {name}")
        moves += [f"deliver {channel}" for channel in self.channels if self._takes_from(state, channel)]
        moves += [f"fail {name}" for name in bounds.may_fail if not self._ended(state, name)]
        moves += [f"lose {channel}" for channel in bounds.may_lose if self._barriers_first(state, channel)]
        moves += [f"repeat {channel}" for channel in bounds.may_repeat if self._barriers_first(state, channel) == 1]
        return tuple(moves)

    def after(self, state: PipelineState, move: str) -> PipelineState:
        """The state that `move` leads to."""
        parts = list(state)
        self._run(parts, move, [])
        return tuple(parts)

    # What properties ask.

    def violations(self, state: PipelineState) -> tuple[Violation, ...]:
        """Return what has been wrong on the way to `state`."""
        return self._found.values[state[-1]]

    def quiescent(self, state: PipelineState) -> tuple[Violation, ...]:
        """Return what is wrong with `state` if nothing more can happen."""
        head, watches = HeadWatch(), {}
        for name, node in self._nodes.items():
            watch = node.watch(state[self._node_at[name]])
            if isinstance(watch, HeadWatch):
                head = watch
            else:
                watches[name] = watch
        left = {
            channel: [self._messages.values[each] for each in self._content(state, channel)]
            for channel in self.channels
        }
        emitted = [(name, n + 1) for name, place in self._source_at.items() for n in range(state[place])]
        return (
            *(Violation("LIVE", reason, 0) for reason in self._ends.stuck(head, left, watches)),
            *(Violation("NOLOSS", reason, 0) for reason in self._ends.missing(head, emitted, watches)),
        )

    def entries(self, state: PipelineState, move: str) -> list[ControlEntry]:
        """The journal of one move."""
        entries: list[ControlEntry] = []
        self._run(list(state), move, entries)
        return entries

    def journal(self, moves: Iterable[str]) -> list[ControlEntry]:
        """The journal of a run from the start."""
        entries: list[ControlEntry] = []
        parts = list(self.start())
        for move in moves:
            self._run(parts, move, entries)
        return entries

    # Moves.

    def _run(self, parts: list[int], move: str, entries: list[ControlEntry]) -> None:
        verb, _, where = move.partition(" ")
        if verb == "signal":
            signal, carrier = self.bounds.script[parts[self._script_at]]
            parts[self._script_at] += 1
            call = "send_instant" if isinstance(signal, InstantControlSignal) else "send"
            self._step(parts, entries, HEAD, call, signal, carrier)
        elif verb == "emit":
            parts[self._source_at[where]] += 1
            event = Event(where, parts[self._source_at[where]])
            entries.append((0, ">emit", where, None, event))
            self._step(parts, entries, where, "emit", event)
        elif verb == "fail":
            self._step(parts, entries, where, "fail", "it broke down")
        else:
            self._take(parts, entries, verb, where)

    def _take(self, parts: list[int], entries: list[ControlEntry], verb: str, channel: str) -> None:
        sender, _, receiver, index, kind = self._ends_of[channel]
        queue = parts[self._channel_at[channel]]
        number = self._queues.contents[queue][0]
        first = self._messages.values[number]
        entries.append((0, f">{verb}", receiver, channel, None))
        if verb == "repeat":
            parts[self._channel_at[channel]] = self._queues.number((number, *self._queues.contents[queue]))
            entries.append((0, "repeated", receiver, channel, first))
            return
        parts[self._channel_at[channel]] = self._queues.without(queue)
        if verb == "lose":
            entries.append((0, "lost", receiver, channel, first))
        else:
            entries.append((0, "take", receiver, channel, first))
            self._step(parts, entries, receiver, "offer", CARRIER[kind], index, number)
        self._push(parts, entries, sender)

    def _step(self, parts: list[int], entries: list[ControlEntry], name: str, call: str, *arguments: Hashable) -> None:
        """Call a machine; return what it emits."""
        place = self._node_at[name]
        was_ended = self._ended(parts, name)
        parts[place], recorded, wrong = self._nodes[name].step[call, parts[place], *arguments]
        entries.extend((0, verb, name, where, subject) for verb, where, subject in recorded)
        if wrong:
            parts[-1] = self._found.number((*self._found.values[parts[-1]], *wrong))
        self._push(parts, entries, name)
        if name != HEAD and self._ended(parts, name) and not was_ended:
            for kind in CARRIER:
                for channel in self.wiring.inputs(kind, name):
                    self._take_end(parts, entries, channel)

    def _push(self, parts: list[int], entries: list[ControlEntry], name: str) -> None:
        """Push what is in the outboxes into the channels, as far as there is room."""
        place, node = self._node_at[name], self._nodes[name]
        for kind in CARRIER:
            outputs = self.wiring.outputs(kind, name)
            while (first := node.first[parts[place]][kind]) is not None:
                output, number = first
                channel, message = outputs[output], self._messages.values[number]
                queue = parts[self._channel_at[channel]]
                if len(self._queues.contents[queue]) == self.bounds.capacity:
                    break
                parts[self._channel_at[channel]] = self._queues.put(queue, number)
                parts[place] = node.pop[parts[place], kind]
                entries.append((0, "send", name, channel, message))
                if type(message) is EndOfInput:
                    self._take_end(parts, entries, channel)

    def _take_end(self, parts: list[int], entries: list[ControlEntry], channel: str) -> None:
        """Take the end of a channel for a processor that has ended: nothing comes of it, and nothing after it."""
        _, _, receiver, index, kind = self._ends_of[channel]
        content = self._content(parts, channel)
        if content and self._ended(parts, receiver) and type(self._messages.values[content[0]]) is EndOfInput:
            parts[self._channel_at[channel]] = self._queues.number(())
            entries.append((0, "take", receiver, channel, self._messages.values[content[0]]))
            place = self._node_at[receiver]
            parts[place], _, _ = self._nodes[receiver].step["offer", parts[place], CARRIER[kind], index, content[0]]

    # What a state holds.

    def _content(self, state: Sequence[int], channel: str) -> tuple[int, ...]:
        """The numbers of the messages in a channel."""
        return self._queues.contents[state[self._channel_at[channel]]]

    def _barriers_first(self, state: Sequence[int], channel: str) -> int:
        """Return how many copies of a barrier are first in a channel."""
        content = self._content(state, channel)
        if not content or type(self._messages.values[content[0]]) is not BarrierControlSignal:
            return 0
        return content.count(content[0])

    def _first(self, state: Sequence[int], name: str, kind: str) -> tuple[int, int] | None:
        return self._nodes[name].first[state[self._node_at[name]]][kind]

    def _ended(self, state: Sequence[int], name: str) -> bool:
        return self._nodes[name].ended[state[self._node_at[name]]]

    def _takes_from(self, state: Sequence[int], channel: str) -> bool:
        """Return whether the head of a channel would be taken."""
        content = self._content(state, channel)
        if not content:
            return False
        if isinstance(self._messages.values[content[0]], InstantControlSignal):
            return True
        _, _, receiver, index, kind = self._ends_of[channel]
        return self._nodes[receiver].can_take[state[self._node_at[receiver]], kind, index]


def properties(world: ControlWorld) -> list[Property[PipelineState, str]]:
    """Return what `model.explore.checker.explore` is to ask: each invariant of control signals."""

    def always(name: str) -> Always[PipelineState]:
        return Always(name, lambda state: _first(name, world.violations(state)))

    def quiescent(name: str) -> Quiescent[PipelineState]:
        return Quiescent(name, lambda state: _first(name, world.quiescent(state)))

    return [*map(always, NAMES), quiescent("LIVE"), quiescent("NOLOSS")]


def _first(name: str, violations: Iterable[Violation]) -> str | None:
    """Return why the first of `violations` that breaks an invariant does."""
    return next((violation.reason for violation in violations if violation.invariant == name), None)


def as_text(entries: Iterable[ControlEntry], timed: bool = False) -> str:
    """A journal as lines: a move after ``>``, with its time in seconds if `timed`, and below it what it did.

    >>> print(as_text([(0, ">deliver", "a", "head->a", None), (0, "end", "a", None, "StreamQuickEnd")]), end="")
    > deliver head->a
        a end StreamQuickEnd
    """
    lines = []
    for at_ns, verb, node, where, subject in entries:
        about = "" if subject is None else f" {subject}"
        if verb[0] == ">":
            at = f" @ {at_ns // NS_PER_S}.{at_ns % NS_PER_S:09d}" if timed else ""
            lines.append(f"> {verb[1:]} {where or node}{about}{at}")
        else:
            place = "" if where is None else f" {where}"
            lines.append(f"    {node} {verb}{place}{about}")
    return "\n".join(lines) + "\n"
