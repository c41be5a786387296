"""The meaning of correct for control signals, over journals alone.

A journal is a list of entries (time in ns, verb, node, channel, subject), moves with a ``>`` before their effects; what
the verbs mean is in `MOVES` and `EFFECTS`. Nothing here knows the code that made it: of a message, its class name is
asked, a barrier's ``barrier_id``, ``kind`` and ``is_terminal``, and an event's ``source``, ``sequence``, ``value``.

=======  ===============================================================================================
ALL      a barrier is complete at a processor only if every upstream has delivered it, or closed before;
         it is forwarded on the channel on which it is complete
ONCE     a barrier is complete at most once for each processor and channel, and ids increase
FIFO     what a channel carries is taken, and takes effect, in its order; a barrier does so when it is complete
LIVE     at rest, the head has sent each signal that it was asked for, on the channel it was asked for; each barrier
         that it sent is complete at every processor; after a quick end or where one broke down, those that came are
         at least aborted; none fails; after a terminal signal each has ended
NOLOSS   without a quick end or a failure, no event comes after the end of a processor, and after a graceful end
         each one that a source made has reached every sink below it, once on every way there
=======  ===============================================================================================

`judge` reads a whole journal. What one processor did is judged by a `ProcessorWatch` of its own, which an explorer
keeps with that processor's state; what a run owes at its end, by `FinalObligations`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from barrierlab.model.control.topology import CARRIERS, DATA, ControlWiring
from barrierlab.model.spec.invariants import MOST_LISTED, Verdict, Violation

ControlEntry = tuple[int, str, str, str | None, object]
SignalKey = tuple[int, str]
"""Id and kind of a barrier."""

# verb: who, where, what it is about: what it means
MOVES = {
    ">signal": "head, -, text: the head sends a control signal",
    ">emit": "source, -, event: the source makes an event",
    ">deliver": "processor, channel, -: the processor takes the head of a channel",
    ">fail": "processor, -, -: the processor breaks down, whatever the protocol does",
    ">lose": "processor, channel, -: the transport loses the head of a channel",
    ">repeat": "processor, channel, -: the transport delivers the head of a channel twice",
}
EFFECTS = {
    "send": "node, channel, message: it enters the channel",
    "take": "processor, channel, message: it leaves the channel",
    "lost": "processor, channel, message: it is gone from the channel",
    "repeated": "processor, channel, message: a copy of it is before it in the channel",
    "deliver": "processor, channel, event: it takes effect",
    "arrive": "processor, channel, barrier: this upstream has delivered it",
    "close": "processor, channel, end: no more will come from this upstream",
    "complete": "processor, data or control, barrier: every upstream has delivered it",
    "flush": "processor, data, count: the operator gets the end of so many upstreams",
    "forward": "node, data or control, signal: it goes to every output",
    "abort": "processor, channel or data or control, barrier: it will not take effect here",
    "drop": "processor, channel, event: it has no effect, the processor has ended",
    "fail": "processor, channel or -, text: the processor cannot go on",
    "end": "node, -, text: the node sends nothing more, for this cause",
}
NAMES = ("ALL", "ONCE", "FIFO", "LIVE", "NOLOSS")


def key_of(barrier: Any) -> SignalKey:
    """Return what copies of one barrier have in common."""
    return barrier.barrier_id, str(barrier.kind)


def text_of(key: SignalKey) -> str:
    """Return a key as barriers are written."""
    return f"{key[1]} {key[0]}"


def rows_of(event: Any) -> Iterator[tuple[str, int]]:
    """The names of the events of sources that `event` stands for: itself, or what it gathers."""
    value = event.value
    if isinstance(value, tuple) and value and all(type(row).__name__ == "Event" for row in value):
        for row in value:
            yield from rows_of(row)
    else:
        yield event.source, event.sequence


class ProcessorWatch:
    """The deeds of one processor, as far as the invariants ask: all that can be judged without looking elsewhere.

    Parameters
    ----------
    name : str
        The processor's.
    wiring : ControlWiring
    hold_data : bool
        As for `ControlMonitor`.

    Attributes
    ----------
    arrived : Counter of (str, int)
        How often each event of a source took effect here; kept at sinks alone.
    dropped : set of (str, int)
        Those that came after the end.
    ended : bool
        Whether the processor has ended.
    broken : bool
        Whether it could not go on.
    """

    __slots__ = (
        "_aborted",
        "_closed",
        "_done",
        "_hold_data",
        "_inputs",
        "_last",
        "_name",
        "_waiting",
        "_wiring",
        "arrived",
        "broken",
        "dropped",
        "ended",
    )

    def __init__(self, name: str, wiring: ControlWiring, hold_data: bool = True) -> None:
        self._name, self._wiring, self._hold_data = name, wiring, hold_data
        self._inputs = {carrier: wiring.inputs(carrier, name) for carrier in CARRIERS}
        channels = [channel for carrier in CARRIERS for channel in self._inputs[carrier]]
        self._waiting: dict[str, list[SignalKey]] = {channel: [] for channel in channels}  # delivered, and not complete
        self._closed: set[str] = set()
        self._last = dict.fromkeys(CARRIERS, 0)  # the highest id that was complete
        self._done: set[tuple[str, SignalKey]] = set()  # complete, by carrier
        self._aborted: set[tuple[str, SignalKey]] = set()
        self.arrived: Counter[tuple[str, int]] = Counter()
        self.dropped: set[tuple[str, int]] = set()
        self.ended = False
        self.broken = False

    def see(self, verb: str, where: Any, subject: Any) -> Iterable[tuple[str, str]]:
        """Read one entry of this processor; the invariants that it breaks, with reasons."""
        read = getattr(self, f"_{verb.replace('>', 'move_')}", None)
        return tuple(read(where, subject) or ()) if read is not None else ()

    def settled(self, carrier: str, key: SignalKey) -> bool:
        """Return whether a barrier is complete or aborted here."""
        return (carrier, key) in self._done or (carrier, key) in self._aborted

    def _move_fail(self, where: None, subject: None) -> None:
        self.broken = True

    def _deliver(self, channel: str, event: Any) -> Iterator[tuple[str, str]]:
        if self._hold_data and self._waiting[channel]:
            barrier = text_of(self._waiting[channel][0])
            yield "FIFO", f"{event} took effect at {self._name} ahead of {barrier}, which came before it on {channel}"
        if self._name in self._wiring.sinks:
            self.arrived.update(rows_of(event))

    def _arrive(self, channel: str, barrier: Any) -> None:
        self._waiting[channel].append(key_of(barrier))

    def _close(self, channel: str, end: Any) -> None:
        self._closed.add(channel)

    def _complete(self, carrier: str, barrier: Any) -> Iterator[tuple[str, str]]:
        key, name, last = key_of(barrier), self._name, self._last[carrier]
        if key[0] <= last:
            yield "ONCE", f"{text_of(key)} is complete at {name} on the {carrier} channel, where {last} was before"
        for channel in self._inputs[carrier]:
            waiting = self._waiting[channel]
            if key not in waiting:
                if channel not in self._closed:
                    yield "ALL", f"{text_of(key)} is complete at {name}, but {channel} has not delivered it"
                continue
            if waiting[0] != key:
                yield "FIFO", f"{text_of(key)} is complete at {name} before {text_of(waiting[0])} of {channel}"
            waiting.remove(key)
        self._last[carrier] = max(last, key[0])
        self._done.add((carrier, key))

    def _forward(self, carrier: str, signal: Any) -> Iterator[tuple[str, str]]:
        if _is_barrier(signal) and (carrier, key_of(signal)) not in self._done:
            yield "ALL", f"{self._name} forwards {signal} on the {carrier} channel, where it is not complete"

    def _abort(self, where: str, barrier: Any) -> None:
        key = key_of(barrier)
        carrier = where if where in CARRIERS else self._wiring.carrier_of(where)
        self._aborted.add((carrier, key))
        for channel in self._inputs[carrier]:
            if key in self._waiting[channel]:
                self._waiting[channel].remove(key)

    def _drop(self, channel: str, event: Any) -> None:
        self.dropped.update(rows_of(event))

    def _fail(self, where: str | None, reason: str) -> Iterator[tuple[str, str]]:
        if not self.broken:
            yield "LIVE", f"{self._name} failed: {reason}"
        self.broken = True

    def _end(self, where: None, cause: str) -> None:
        self.ended = True

    def stuck(self, graceful: bool) -> Iterator[str]:
        """Yield what waits here for ever, if nothing more happens; and what was aborted, if all went well."""
        if graceful:
            for carrier, key in sorted(self._aborted):
                yield f"{text_of(key)} of the {carrier} channel was aborted at {self._name}"
        for channel, waiting in self._waiting.items():
            for key in waiting:
                if self.ended:
                    yield f"{self._name} has ended and neither completed nor aborted {text_of(key)} of {channel}"
                else:
                    yield f"{text_of(key)} of {channel} waits at {self._name} for ever"

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return (
            tuple(tuple(keys) for keys in self._waiting.values()),
            frozenset(self._closed),
            tuple(self._last.values()),
            frozenset(self._done),
            frozenset(self._aborted),
            frozenset(self.arrived.items()),
            frozenset(self.dropped),
            self.ended,
            self.broken,
        )

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        waiting, closed, last, done, aborted, arrived, dropped, self.ended, self.broken = value
        self._waiting = {channel: list(keys) for channel, keys in zip(self._waiting, waiting, strict=True)}
        self._closed, self._done, self._aborted = set(closed), set(done), set(aborted)
        self._last = dict(zip(CARRIERS, last, strict=True))
        self.arrived, self.dropped = Counter(dict(arrived)), set(dropped)


class HeadWatch:
    """The signals that the head has sent.

    Attributes
    ----------
    sent : list of (str, signal)
        With its carrier, in order.
    owed : list of str
        Kind and carrier of each signal that it was asked for and has not sent, in order.
    """

    __slots__ = ("owed", "sent")

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.owed: list[str] = []

    def see(self, verb: str, where: Any, subject: Any) -> Iterable[tuple[str, str]]:
        """Read one entry of the head."""
        if verb == ">signal":
            self.owed.append(subject)
        elif verb == "forward":
            self.sent.append((where, subject))
            kind = f"{subject.kind if _is_barrier(subject) else subject} on {where}"
            if kind in self.owed:
                self.owed.remove(kind)
        return ()

    def capture(self) -> Hashable:
        """Return the state for `restore`."""
        return tuple(self.sent), tuple(self.owed)

    def restore(self, value: Any) -> None:
        """Restore what `capture` returned."""
        sent, owed = value
        self.sent, self.owed = list(sent), list(owed)


def _is_barrier(signal: object) -> bool:
    return type(signal).__name__ == "BarrierControlSignal"


class FinalObligations:
    """The debts of a whole run once nothing more can happen, from what was sent and what each processor has done.

    Parameters
    ----------
    wiring : ControlWiring
    discards : iterable of str
        Processors that drop events on purpose: what is below them need not get every event.
    """

    __slots__ = ("_least", "_most", "_wiring")

    def __init__(self, wiring: ControlWiring, discards: Iterable[str] = ()) -> None:
        self._wiring = wiring
        self._most = {source: _ways(wiring, source, frozenset()) for source in wiring.sources}
        self._least = {source: _ways(wiring, source, frozenset(discards)) for source in wiring.sources}

    def stuck(
        self, head: HeadWatch, left: Mapping[str, Sequence[object]], watches: Mapping[str, ProcessorWatch]
    ) -> Iterator[str]:
        """Yield what breaks LIVE; `left` is in the channels."""
        for channel, messages in left.items():
            if messages:
                yield f"{messages[0]} is never taken from {channel}"
        for signal in head.owed:
            yield f"the head was asked for {signal} and has not sent it"
        graceful = self._graceful(head, watches)
        for watch in watches.values():
            yield from watch.stuck(graceful)
        terminal = False
        for carrier, signal in head.sent:
            terminal = terminal or signal.is_terminal
            if _is_barrier(signal):
                key = key_of(signal)
                for name, watch in watches.items():
                    if not watch.settled(carrier, key) and (graceful or not watch.ended):
                        yield f"{text_of(key)} is never complete at {name}"
        for name, watch in watches.items():
            if terminal and not watch.ended:
                yield f"{name} has not ended, although a terminal signal was sent"

    def missing(
        self, head: HeadWatch, emitted: Iterable[tuple[str, int]], watches: Mapping[str, ProcessorWatch]
    ) -> Iterator[str]:
        """Yield what breaks NOLOSS."""
        if not self._graceful(head, watches):
            return
        for name, watch in watches.items():
            for source, sequence in sorted(watch.dropped):
                yield f"{source}{sequence} came to {name} after its end"
        ended = any(signal.is_terminal for _, signal in head.sent)
        for source, sequence in emitted:
            for sink in self._wiring.sinks:
                count, most = watches[sink].arrived[source, sequence], self._most[source][sink]
                least = self._least[source][sink] if ended else 0
                if count < least:
                    times = "never" if not count else f"only {count} of {least} times"
                    yield f"{source}{sequence} {times} reached {sink}"
                elif count > most:
                    yield f"{source}{sequence} reached {sink} {count} times instead of {most}"

    @staticmethod
    def _graceful(head: HeadWatch, watches: Mapping[str, ProcessorWatch]) -> bool:
        """Return whether nothing may be lost: no quick end was sent, and no processor has broken down."""
        quick = any(signal.is_terminal and not _is_barrier(signal) for _, signal in head.sent)
        return not quick and not any(watch.broken for watch in watches.values())

    def lost(self, emitted: Iterable[tuple[str, int]], watches: Mapping[str, ProcessorWatch]) -> int:
        """Return how many times an event did not reach a sink that it was owed to."""
        return sum(
            max(least - watches[sink].arrived[event], 0)
            for event in emitted
            for sink, least in self._least[event[0]].items()
        )


def _ways(wiring: ControlWiring, source: str, discards: frozenset[str]) -> dict[str, int]:
    """Return how many ways there are from `source` to each sink, without those through what drops events on purpose."""
    ways = dict.fromkeys(wiring.processors, 0) | {source: 1}
    for name in wiring.processors:
        feeders = [wiring.ends(channel)[0] for channel in wiring.inputs(DATA, name)]
        ways[name] += sum(ways[feeder] for feeder in feeders if feeder in ways and feeder not in discards)
    return {sink: ways[sink] for sink in wiring.sinks}


class ControlMonitor:
    """Reads a whole journal.

    Parameters
    ----------
    wiring : ControlWiring
    hold_data : bool
        Whether a barrier on the data channel is a point of synchronisation of the data; if not, data may pass one that
        is not complete.
    discards : iterable of str
        As for `FinalObligations`.

    Attributes
    ----------
    violations : list of Violation
        What was found so far.
    watches : dict of str to ProcessorWatch
        By processor.
    emitted : list of (str, int)
        The events that sources made.
    """

    __slots__ = ("_at_ns", "_ends", "_flight", "_head", "emitted", "violations", "watches")

    def __init__(self, wiring: ControlWiring, hold_data: bool = True, discards: Iterable[str] = ()) -> None:
        self.violations: list[Violation] = []
        self.watches = {name: ProcessorWatch(name, wiring, hold_data) for name in wiring.processors}
        self.emitted: list[tuple[str, int]] = []
        self._ends = FinalObligations(wiring, discards)
        self._head = HeadWatch()
        self._flight: dict[str, deque[object]] = {
            channel: deque() for carrier in CARRIERS for channel in wiring.channels[carrier]
        }
        self._at_ns = 0

    def see(self, entry: ControlEntry) -> None:
        """Read the next entry; what is wrong with it is in `violations` then."""
        self._at_ns, verb, node, where, subject = entry
        if verb == "send":
            assert where is not None
            self._flight[where].append(subject)
        elif verb == "take":
            assert where is not None
            self._see_take(where, subject)
        elif verb == "lost":
            assert where is not None
            self._flight[where].remove(subject)
        elif verb == "repeated":
            assert where is not None
            self._flight[where].appendleft(subject)
        elif verb == ">emit":
            self.emitted.extend(rows_of(subject))
        else:
            for invariant, reason in self.watches.get(node, self._head).see(verb, where, subject):
                self._found(invariant, reason)

    def _see_take(self, channel: str, message: object) -> None:
        flight = self._flight[channel]
        if not flight or flight[0] != message:
            self._found("FIFO", f"{message} was taken from {channel}; next is {flight[0] if flight else 'nothing'}")
        if message in flight:
            flight.remove(message)

    def _found(self, invariant: str, reason: str) -> None:
        self.violations.append(Violation(invariant, reason, self._at_ns))

    def quiescent(self) -> list[Violation]:
        """Return what is wrong if nothing more will happen."""
        stuck = self._ends.stuck(self._head, self._flight, self.watches)
        missing = self._ends.missing(self._head, self.emitted, self.watches)
        return [
            *(Violation("LIVE", reason, self._at_ns) for reason in stuck),
            *(Violation("NOLOSS", reason, self._at_ns) for reason in missing),
        ]

    def lost(self) -> int:
        """Return how many times an event did not reach a sink that it was owed to."""
        return self._ends.lost(self.emitted, self.watches)


def judge(
    entries: Sequence[ControlEntry],
    wiring: ControlWiring,
    hold_data: bool = True,
    discards: Iterable[str] = (),
    cut_off: bool = False,
) -> Verdict:
    """Return what the invariants say about a journal.

    Parameters
    ----------
    entries : sequence of ControlEntry
    wiring : ControlWiring
    hold_data, discards
        As for `ControlMonitor`.
    cut_off : bool
        Whether the run was stopped while something could still happen: what only its end would show is undecided.
    """
    monitor = ControlMonitor(wiring, hold_data, discards)
    for entry in entries:
        monitor.see(entry)
    return verdict_of(monitor, cut_off)


def verdict_of(monitor: ControlMonitor, cut_off: bool = False) -> Verdict:
    """Return the verdict on a journal that `monitor` has read to its end."""
    quiescent = monitor.quiescent()
    found = [*monitor.violations, *([] if cut_off else quiescent)]
    listed: list[Violation] = []
    more: dict[str, int] = {}
    for name in NAMES:
        of_name = [violation for violation in found if violation.invariant == name]
        listed += of_name[:MOST_LISTED]
        if len(of_name) > MOST_LISTED:
            more[name] = len(of_name) - MOST_LISTED
    undecided = tuple(str(violation) for violation in quiescent[:MOST_LISTED]) if cut_off else ()
    verdict = "broken" if listed else "undecided" if undecided else "holds"
    return Verdict(verdict, tuple(listed), more, undecided)
