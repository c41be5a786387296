"""The operators of the tasks of a run, which the simulation and the explorer share.

Each follows `impl.checkpoint.task.Operator`: it gets an event, a watermark of its task or the end of an input, and
answers with the events that this causes. All are deterministic; what looks like chance (a filter's choice) is a stable
hash.
An image taken by `checkpoint` never changes afterwards (protocol rule 8).

An event that only passes keeps its name; one of several that an event becomes gets a part; one that an operator makes
from many is named after the task that made it, ``Event(source=task, sequence=1, 2, ...)``.

State that grows with the data ends with the watermark: a window is dropped once its end has been promised, and what
comes for it later counts as `late`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar
from zlib import crc32

from barrierlab.impl.checkpoint.report import digest
from barrierlab.impl.checkpoint.task import Operator
from barrierlab.impl.messages import Event, Watermark
from barrierlab.model.spec.invariants import RESTORED, Applied, Fold, SameState
from barrierlab.model.spec.topology import Topology, suggestion
from barrierlab.model.spec.watch import TaskWatch, later

GroupKey = int | str
W = TypeVar("W")
Nothing: tuple[Event, ...] = ()

_MIX = 2654435761  # odd, near 2**32 / golden ratio: neighbours in name, whose checksums are alike, come apart


class OperatorError(ValueError):
    """No operator can be made so: the message says what came, what is allowed and what to do."""


class BaseOperator:
    """An operator that passes every event on, sends nothing of its own and remembers nothing, unless a method of its
    class does otherwise."""

    __slots__ = ()

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """The events that `event` on input `input_id` causes."""
        return (event,)

    def on_watermark(self, timestamp_ms: int) -> Iterable[Event]:
        """The events that the task's watermark causes."""
        return Nothing

    def on_end(self, input_id: int) -> Iterable[Event]:
        """The events that the end of input `input_id` causes."""
        return Nothing

    def checkpoint(self) -> object:
        """An immutable image of the state."""
        return ()

    def restore(self, image: object) -> None:
        """Take the state of `image` on."""


class Union(BaseOperator):
    """All inputs become one stream."""

    __slots__ = ()


class Map(BaseOperator):
    """One event in, one out, of the same name; of another size if `size_bytes` is given."""

    __slots__ = ("size_bytes",)

    def __init__(self, size_bytes: int | None = None) -> None:
        self.size_bytes = _at_least("size_bytes", size_bytes, 0) if size_bytes is not None else None

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """`event`, resized."""
        if self.size_bytes is None:
            return (event,)
        return (
            Event(
                event.source, event.sequence, event.part, event.key, event.value, event.timestamp_ms, self.size_bytes
            ),
        )


class FlatMap(BaseOperator):
    """One event in, `fanout` out: its parts. The parts of part p are ``p * fanout + 1 ... p * fanout + fanout``."""

    __slots__ = ("fanout",)

    def __init__(self, fanout: int = 2) -> None:
        self.fanout = _at_least("fanout", fanout, 0)

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """The parts of `event`."""
        first = event.part * self.fanout + 1
        return [
            Event(event.source, event.sequence, part, event.key, event.value, event.timestamp_ms, event.size_bytes)
            for part in range(first, first + self.fanout)
        ]


class Filter(BaseOperator):
    """Lets the share `selectivity` of all events pass, chosen by a stable hash of their names."""

    __slots__ = ("_below",)

    def __init__(self, selectivity: float = 0.5) -> None:
        if isinstance(selectivity, bool) or not isinstance(selectivity, int | float) or not 0 <= selectivity <= 1:
            raise OperatorError(f"selectivity is {selectivity!r}; it must be a number from 0 to 1")
        self._below = selectivity * 2**32

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """`event`, or nothing."""
        name = str(event) if event.part else f"{event}.0"
        return (event,) if crc32(name.encode()) * _MIX % 2**32 < self._below else Nothing


class KeyedAggregate(BaseOperator):
    """Count and sum of values per key; each event in causes its key's new totals, as the value ``(count, sum)``.

    The state grows with the number of keys, not with the number of events. Totals run on for ever, and each was sent
    when it was new, so that neither a watermark nor an end causes anything.
    """

    __slots__ = ("made", "name", "size_bytes", "totals")

    def __init__(self, name: str = "aggregate", size_bytes: int | None = None) -> None:
        self.name = name
        self.size_bytes = _at_least("size_bytes", size_bytes, 0) if size_bytes is not None else None
        self.totals: dict[GroupKey, tuple[int, int | float]] = {}
        self.made = 0

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """The new totals of the event's key."""
        key, size = event.key, self.size_bytes
        count, total = self.totals.get(key, (0, 0))
        self.totals[key] = totals = (count + 1, total + _number(event.value))
        self.made += 1
        size = event.size_bytes if size is None else size
        return (Event(self.name, self.made, 0, key, totals, event.timestamp_ms, size),)

    def checkpoint(self) -> object:
        """``(made, ((key, (count, sum)), ...))``, by key."""
        return self.made, tuple(sorted(self.totals.items(), key=_by_key))

    def restore(self, image: object) -> None:
        """Take the state of `image` on."""
        made, totals = _parts(image)
        self.made, self.totals = made, dict(totals)


class _Windowed(BaseOperator, Generic[W]):
    """The common part of operators on windows of event time: the open windows, and what comes too late for one."""

    __slots__ = ("late", "made", "name", "size_bytes", "watermark_ms", "window_ms", "windows")

    def __init__(self, name: str, window_ms: int, size_bytes: int | None) -> None:
        self.name = name
        self.window_ms = _at_least("window_ms", window_ms, 1)
        self.size_bytes = _at_least("size_bytes", size_bytes, 0) if size_bytes is not None else None
        self.windows: dict[int, dict[GroupKey, W]] = {}  # by start
        self.watermark_ms: int | None = None
        self.made = self.late = 0

    def _window(self, time_ms: int) -> dict[GroupKey, W] | None:
        """The window of an event with this timestamp; None if it is complete, and the event late."""
        start = time_ms - time_ms % self.window_ms
        if self.watermark_ms is not None and start + self.window_ms - 1 <= self.watermark_ms:
            self.late += 1
            return None
        window = self.windows.get(start)
        if window is None:
            window = self.windows[start] = {}
        return window

    def _completed(self, timestamp_ms: int) -> list[int]:
        """Return where the windows begin that this watermark completes."""
        self.watermark_ms = later(self.watermark_ms, timestamp_ms)
        return [start for start in self.windows if start + self.window_ms - 1 <= timestamp_ms]


class TumblingWindow(_Windowed[tuple[int, int | float, int]]):
    """Count and sum of values per key and window of event time; sent when the watermark reaches the window's end.

    A window ``[start, start + window_ms)`` is complete with the watermark of its last millisecond, as in Flink; its
    events carry that timestamp. What comes after that for the window is `late` and dropped. Of each key a window has
    count, sum, and the size of the last event.
    """

    __slots__ = ("inputs_open",)

    def __init__(
        self, name: str = "window", window_ms: int = 1000, inputs: int = 1, size_bytes: int | None = None
    ) -> None:
        super().__init__(name, window_ms, size_bytes)
        self.inputs_open = _at_least("inputs", inputs, 1)

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """Output nothing yet: the event is added to its window."""
        window = self._window(event.timestamp_ms)
        if window is not None:
            count, total, _ = window.get(event.key, (0, 0, 0))
            window[event.key] = (count + 1, total + _number(event.value), event.size_bytes)
        return Nothing

    def on_watermark(self, timestamp_ms: int) -> Iterable[Event]:
        """The windows that `timestamp_ms` completes, by start and key."""
        return self._fire(self._completed(timestamp_ms))

    def on_end(self, input_id: int) -> Iterable[Event]:
        """Return every window that is left, with the last input."""
        self.inputs_open -= 1
        return Nothing if self.inputs_open else self._fire(list(self.windows))

    def checkpoint(self) -> object:
        """``(made, late, watermark, inputs open, ((start, ((key, (count, sum, size)), ...)), ...))``, sorted."""
        windows = tuple((at, tuple(sorted(self.windows[at].items(), key=_by_key))) for at in sorted(self.windows))
        return self.made, self.late, self.watermark_ms, self.inputs_open, windows

    def restore(self, image: object) -> None:
        """Take the state of `image` on."""
        self.made, self.late, self.watermark_ms, self.inputs_open, windows = _parts(image)
        self.windows = {start: dict(totals) for start, totals in windows}

    def _fire(self, starts: list[int]) -> list[Event]:
        events = []
        for start in sorted(starts):
            for key, (count, total, size) in sorted(self.windows.pop(start).items(), key=_by_key):
                self.made += 1
                size = size if self.size_bytes is None else self.size_bytes
                end_ms = start + self.window_ms - 1
                events.append(Event(self.name, self.made, 0, key, (count, total), end_ms, size))
        return events


class WindowedJoin(_Windowed[tuple[list[tuple[str, int]], list[tuple[str, int]]]]):
    """Pairs of events of two sides with one key, in one window of event time; sent as soon as both are there.

    Of each key a window has the events of either side, as name and size.

    Parameters
    ----------
    sides : sequence of int
        For each input of the task, the side 0 or 1 that it belongs to (`Topology.input_sides`).
    """

    __slots__ = ("sides",)

    def __init__(
        self,
        name: str = "join",
        window_ms: int = 1000,
        sides: Sequence[int] = (0, 1),
        size_bytes: int | None = None,
    ) -> None:
        super().__init__(name, window_ms, size_bytes)
        self.sides = tuple(sides)
        if not set(self.sides) <= {0, 1}:
            raise OperatorError(f"sides are {self.sides!r}; a join has two, 0 and 1: give it two edges in")

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """Output one event for each partner that has come already; its value is the names of both, by side."""
        time_ms, key = event.timestamp_ms, event.key
        window = self._window(time_ms)
        if window is None:
            return Nothing
        both = window.get(key)
        if both is None:
            both = window[key] = ([], [])
        side, name = self.sides[input_id], str(event)
        both[side].append((name, event.size_bytes))
        partners = both[1 - side]
        if not partners:
            return Nothing
        events = []
        for partner, size in partners:
            self.made += 1
            size = event.size_bytes + size if self.size_bytes is None else self.size_bytes
            pair = (name, partner) if side == 0 else (partner, name)
            events.append(Event(self.name, self.made, 0, key, pair, time_ms, size))
        return events

    def on_watermark(self, timestamp_ms: int) -> Iterable[Event]:
        """Return nothing; drop the windows that `timestamp_ms` completes."""
        for start in self._completed(timestamp_ms):
            del self.windows[start]
        return Nothing

    def checkpoint(self) -> object:
        """``(made, late, watermark, ((start, ((key, (left, right)), ...)), ...))``, sorted."""
        windows = tuple(
            (at, tuple((k, (tuple(left), tuple(right))) for k, (left, right) in sorted(window.items(), key=_by_key)))
            for at, window in sorted(self.windows.items())
        )
        return self.made, self.late, self.watermark_ms, windows

    def restore(self, image: object) -> None:
        """Take the state of `image` on."""
        self.made, self.late, self.watermark_ms, windows = _parts(image)
        self.windows = {at: {k: (list(left), list(right)) for k, (left, right) in window} for at, window in windows}


class Sink(BaseOperator):
    """Counts what arrives, and keeps the last sequence of each source."""

    __slots__ = ("count", "last")

    def __init__(self) -> None:
        self.count = 0
        self.last: dict[str, int] = {}

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """Return nothing: the dataflow ends here."""
        self.count += 1
        self.last[event.source] = event.sequence
        return Nothing

    def checkpoint(self) -> object:
        """``(count, ((source, last sequence), ...))``, by source."""
        return self.count, tuple(sorted(self.last.items()))

    def restore(self, image: object) -> None:
        """Take the state of `image` on."""
        self.count, last = _parts(image)
        self.last = dict(last)


KINDS: dict[str, Callable[..., BaseOperator]] = {
    "map": Map,
    "flat_map": FlatMap,
    "filter": Filter,
    "aggregate": KeyedAggregate,
    "join": WindowedJoin,
    "union": Union,
    "window": TumblingWindow,
    "sink": Sink,
}


def parameters_of(kind: str) -> list[str]:
    """Return the names of what an operator of `kind` is made of."""
    return [name for name in inspect.signature(KINDS[kind]).parameters if name not in ("args", "kwargs")]


def make(kind: str, **parameters: object) -> BaseOperator:
    """A new operator of `kind`, one of `KINDS`; `parameters` are those of its class.

    `name` (the task's), `inputs` (how many) and `sides` (per input) may be given to every kind, so that a caller
    need not know which ones ask for them.

    Raises
    ------
    OperatorError
        If there is no such kind, or the kind has no such parameter or not such a value.

    Examples
    --------
    >>> [str(part) for part in make("flat_map", fanout=2).process(0, Event("a", 1))]
    ['a1.1', 'a1.2']
    """
    if kind not in KINDS:
        raise OperatorError(f"no operator kind {kind!r}; {suggestion(kind, KINDS)}")
    known = parameters_of(kind)
    given = {name: value for name, value in parameters.items() if name in known}
    for name in parameters:
        if name not in known and name not in ("name", "inputs", "sides"):
            raise OperatorError(f"operator {kind!r} has no parameter {name!r}; {suggestion(name, known)}")
    return KINDS[kind](**given)


def _at_least(name: str, value: int, least: int) -> int:
    if type(value) is not int or value < least:
        raise OperatorError(f"{name} is {value!r}; it must be a whole number from {least} on")
    return value


def _number(value: object) -> int | float:
    """Return what `value` adds to a sum: itself if it is a number, else nothing."""
    return value if isinstance(value, int | float) else 0


def _by_key(item: tuple[GroupKey, object]) -> tuple[bool, GroupKey]:
    """Return the key that orders keys of both kinds: numbers, then texts."""
    return isinstance(item[0], str), item[0]


def _parts(image: object) -> tuple[Any, ...]:
    assert isinstance(image, tuple)
    return image


def no_work(place: int) -> None:
    """Do no work for an event."""


class OperatorChain:
    """Operators of one task, each of which gets what the one before it sends: no channel lies between them.

    Apache Flink, `OperatorChain`. Watermarks and ends pass with the events that they cause, in order.

    Attributes
    ----------
    spend : callable
        Called with a place for each event that the operator there gets; the head's are the task's own.
    """

    __slots__ = ("inputs_open", "operators", "spend")

    def __init__(self, operators: Sequence[Operator], inputs: int) -> None:
        self.operators = tuple(operators)
        self.inputs_open = _at_least("inputs", inputs, 1)
        self.spend: Callable[[int], None] = no_work

    def _pass_on(
        self, events: Iterable[Event], then: Callable[[Operator], Iterable[Event]] | None = None
    ) -> list[Event]:
        """Return what `events` of the head become behind the last; `then` is asked of each operator behind them."""
        for place, operator in enumerate(self.operators[1:], 1):
            sent: list[Event] = []
            for event in events:
                self.spend(place)
                sent.extend(operator.process(0, event))
            if then is not None:
                sent.extend(then(operator))
            events = sent
        return list(events)

    def process(self, input_id: int, event: Event) -> Iterable[Event]:
        """The events that `event` becomes behind the last operator."""
        return self._pass_on(self.operators[0].process(input_id, event))

    def on_watermark(self, timestamp_ms: int) -> Iterable[Event]:
        """The events that the watermark causes, at any of the operators."""
        return self._pass_on(
            self.operators[0].on_watermark(timestamp_ms), lambda operator: operator.on_watermark(timestamp_ms)
        )

    def on_end(self, input_id: int) -> Iterable[Event]:
        """The events that the end causes; behind the head with the last input's alone."""
        self.inputs_open -= 1
        last = None if self.inputs_open else lambda operator: operator.on_end(0)
        return self._pass_on(self.operators[0].on_end(input_id), last)

    def checkpoint(self) -> object:
        """``(inputs open, images)``, in their order."""
        return self.inputs_open, tuple(operator.checkpoint() for operator in self.operators)

    def restore(self, image: object) -> None:
        """Take the states of `image` on."""
        self.inputs_open, images = _parts(image)
        for operator, own in zip(self.operators, images, strict=True):
            operator.restore(own)


def refolding(topology: Topology, make_operator: Callable[[str], Operator]) -> Fold:
    """A fold for `model.spec.invariants.judge`: recomputes every state by a fresh operator of each task.

    Independent of `impl.checkpoint.task`: it gets only what took effect, and keeps the task's watermark itself, the
    least of the open inputs. A source's state is the sequence of its next event. No state is ever restored here: after
    a restore the fold goes on from what it had itself.
    """

    def of_source() -> Callable[[Sequence[Applied]], str]:
        position = 1

        def digest_after(stretch: Sequence[Applied]) -> str:
            nonlocal position
            position += len(stretch) - stretch.count(RESTORED)
            return digest(position)

        return digest_after

    def of_operator(task: str) -> Callable[[Sequence[Applied]], str]:
        operator = make_operator(task)
        if type(operator).checkpoint is BaseOperator.checkpoint:
            return SameState(digest(operator.checkpoint()))
        watch = TaskWatch(task, topology.inputs(task), ())
        index = {channel: i for i, channel in enumerate(watch.inputs)}

        def advance() -> None:
            reached = watch.advance()
            if reached is not None:
                _run(operator.on_watermark(reached))

        def digest_after(stretch: Sequence[Applied]) -> str:
            process = operator.process
            for channel, message in stretch:
                if channel is None:
                    watch.promised = (None,) * len(index)
                elif type(message) is Event:
                    outputs = process(index[channel], message)
                    if outputs is not Nothing:
                        _run(outputs)
                elif type(message) is Watermark:
                    watch.promises(index[channel], message.timestamp_ms)
                    advance()
                else:
                    watch.ends(index[channel])
                    _run(operator.on_end(index[channel]))
                    advance()
            return digest(operator.checkpoint())

        return digest_after

    return lambda task: of_operator(task) if topology.inputs(task) else of_source()


def _run(outputs: Iterable[Event]) -> None:
    """Ask for all outputs, as operators may answer lazily, and keep nothing."""
    for _ in outputs:
        pass
