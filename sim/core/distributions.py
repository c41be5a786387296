"""Laws of arrival, service and size, and the named random streams that they draw from.

A stream is named by (seed, node, purpose) and by nothing else: a new node, or another order of events, changes
no other node's numbers, so two configurations can be compared under the same arrivals (common random numbers).
"""

from __future__ import annotations

import copy
import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from barrierlab.impl import Event

NS_PER_S = 1_000_000_000
DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "constant": ("value",),
    "uniform": ("low", "high"),
    "exponential": ("mean",),
    "lognormal": ("mean", "cv"),
    "gamma": ("mean", "cv"),
    "empirical": ("values",),
}
BLOCK_COUNT = 256


def stream(seed: int, node: str, purpose: str) -> Random:
    """Return the random numbers of one purpose at one node. Text seeds are hashed with SHA-512, the same everywhere."""
    return Random(f"{seed}/{node}/{purpose}")


class Randoms:
    """The named streams of one run, each made once: an attempt goes on where the one before it stopped drawing."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._streams: dict[tuple[str, str], Random] = {}
        self._samplers: dict[tuple[str, str], Callable[[], int]] = {}

    def stream(self, node: str, purpose: str) -> Random:
        """The stream of this name."""
        name = node, purpose
        if name not in self._streams:
            self._streams[name] = stream(self._seed, node, purpose)
        return self._streams[name]

    def sampler(self, dist: Distribution, node: str, purpose: str, scale: float = NS_PER_S) -> Callable[[], int]:
        """`Distribution.sampler` on the stream of this name; it draws ahead, so there is one for each name."""
        name = node, purpose
        if name not in self._samplers:
            self._samplers[name] = dist.sampler(self.stream(node, purpose), scale)
        return self._samplers[name]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A distribution of a non-negative quantity, in the unit of the key that holds it.

    Attributes
    ----------
    name : str
        One of `DISTRIBUTIONS`.
    parameters : tuple of float
        In the order of `DISTRIBUTIONS[name]`; for `empirical`, the values, drawn with equal probability.
    """

    name: str
    parameters: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The expected value, in its own unit."""
        if self.name == "uniform":
            return (self.parameters[0] + self.parameters[1]) / 2
        if self.name == "empirical":
            return math.fsum(self.parameters) / len(self.parameters)
        return self.parameters[0]

    @property
    def largest(self) -> float:
        """The largest value where there is one, else the expected value."""
        return max(self.parameters) if self.name in ("constant", "uniform", "empirical") else self.mean

    def sampler(self, random: Random, scale: float = NS_PER_S) -> Callable[[], int]:
        """A function that draws the next value, times `scale`, rounded to an integer (seconds become nanoseconds).

        Numbers are drawn a block at a time: a draw costs a call and little else.
        """
        if self.name == "constant":
            return round(self.parameters[0] * scale).conjugate  # the number itself; no call costs less
        return _in_blocks(_drawn(self.name, self.parameters, random), scale).__next__


def _drawn(name: str, p: tuple[float, ...], random: Random) -> Callable[[], float]:
    if name == "uniform":
        return lambda: p[0] + (p[1] - p[0]) * random.random()
    if name == "exponential":
        return lambda: -math.log(1.0 - random.random()) * p[0]
    if name == "lognormal":
        sigma = math.sqrt(math.log(1.0 + p[1] ** 2))
        mu = math.log(p[0]) - sigma**2 / 2
        return lambda: random.lognormvariate(mu, sigma)
    if name == "gamma":
        shape = 1.0 / p[1] ** 2
        return lambda: random.gammavariate(shape, p[0] / shape)
    return lambda: p[int(random.random() * len(p))]


def _in_blocks(draw: Callable[[], float], scale: float) -> Iterator[int]:
    while True:
        yield from [round(draw() * scale) for _ in range(BLOCK_COUNT)]


def constant(value: float) -> Distribution:
    """Return the distribution that is always `value`."""
    return Distribution("constant", (value,))


class KeyChooser:
    """Keys 0 .. `count` - 1, key k with a weight of 1 / (k + 1) ** `skew` (Zipf); skew 0 is uniform."""

    def __init__(self, count: int, skew: float, random: Random) -> None:
        weights = [1.0 / (k + 1) ** skew for k in range(count)]
        total = math.fsum(weights)
        self._cumulative = list(itertools.accumulate(w / total for w in weights))[:-1]
        self._random = random.random

    def __call__(self) -> int:
        return bisect_left(self._cumulative, self._random()) if self._cumulative else 0


class Arrivals:
    """The times at which the events of one source subtask fall due: integer nanoseconds, in order.

    `poisson` draws exponential gaps; `deterministic` has equal gaps; `bursty` is Poisson while on, silent while off,
    with exponential on and off times. The long-run rate is `rate_per_s` in all three.
    """

    def __init__(self, kind: str, rate_per_s: float, on_s: float, off_s: float, random: Random) -> None:
        self._gap_ns = NS_PER_S / rate_per_s
        self._count = 0
        self._at_ns = 0.0
        self._random = random
        self._on_ns, self._off_ns = on_s * NS_PER_S, off_s * NS_PER_S
        self._until_ns = 0.0
        self._is_poisson, self._is_bursty = kind == "poisson", kind == "bursty"

    def next(self) -> int:
        """Return when the next event falls due."""
        if self._is_poisson:
            return self._poisson()
        if self._is_bursty:
            return self._bursty()
        self._count += 1
        return round(self._count * self._gap_ns)

    def count_by(self, at_ns: int, most: float) -> int:
        """Return how many of the arrivals to come are due by then, at most `most`; they are drawn, equal gaps not."""
        count = 0
        if not self._is_poisson and not self._is_bursty:
            count = max(int(at_ns / self._gap_ns) - 1 - self._count, 0)  # the last ones are looked at, since they round
            self._count += count
        while count < most and self.next() <= at_ns:
            count += 1
        return int(min(count, most))

    def _poisson(self) -> int:
        self._at_ns += self._exponential(self._gap_ns)
        return round(self._at_ns)

    def _bursty(self) -> int:
        gap_on = self._gap_ns * self._on_ns / (self._on_ns + self._off_ns)
        gap = self._exponential(gap_on)
        while self._at_ns + gap > self._until_ns:  # the burst ends first: what is left of the gap is memoryless
            self._at_ns = self._until_ns + self._exponential(self._off_ns) if self._until_ns else 0.0
            self._until_ns = self._at_ns + self._exponential(self._on_ns)
            gap = self._exponential(gap_on)
        self._at_ns += gap
        return round(self._at_ns)

    def _exponential(self, mean: float) -> float:
        return -math.log(1.0 - self._random.random()) * mean


class EventMaker:
    """Makes the events of one source, each with what is drawn for it."""

    __slots__ = ("_key", "_lateness_ms", "_size_bytes", "_source")

    def __init__(
        self, source: str, key: Callable[[], int], lateness_ms: Callable[[], int], size_bytes: Callable[[], int]
    ) -> None:
        self._source, self._key, self._lateness_ms, self._size_bytes = source, key, lateness_ms, size_bytes

    def make(self, sequence: int, due_ns: int) -> Event:
        """Return the event of a sequence that falls due at a time, in nanoseconds."""
        key = self._key()
        number: Any = sequence  # the same object for both
        timestamp_ms = due_ns // 1_000_000 - self._lateness_ms()
        return Event(self._source, number, 0, key, number, timestamp_ms, self._size_bytes())


class EventLog:
    """The input of a source: outside of the job, so event `n` is the same however often it is read.

    Parameters
    ----------
    arrivals : Arrivals
    maker : EventMaker
    last : int or None
        The last sequence; None if there is always another.

    Attributes
    ----------
    due_ns : list of int
        When each event falls due, the shift apart: of those that were read, and of the next one.
    forgotten : int
        How many events are in neither list any more.
    shift_ns : int
        How far the source's own rate limit has put all that is still to come back.
    """

    __slots__ = ("_arrivals", "_events", "_maker", "_read", "due_ns", "forgotten", "last", "shift_ns")

    def __init__(self, arrivals: Arrivals, maker: EventMaker, last: int | None) -> None:
        self._arrivals, self._maker, self.last = arrivals, maker, last
        self.due_ns = [arrivals.next()]
        self._events: list[Event] = []
        self._read = self.forgotten = 0
        self.shift_ns = 0

    def due_by(self, now_ns: int) -> int:
        """Return how many events have fallen due by then, read or not. What is drawn for that is not remembered."""
        at_ns, most = now_ns - self.shift_ns, math.inf if self.last is None else self.last
        count = min(self.forgotten + bisect_right(self.due_ns, at_ns), most)
        if count == self.forgotten + len(self.due_ns):
            count += copy.deepcopy(self._arrivals).count_by(at_ns, most - count)
        return int(count)

    def read(self, sequence: int, due_ns: int) -> Event:
        """The event; the first who reads it says when it was due. Sequences begin with 1, without a gap."""
        if sequence <= self._read:
            return self._events[sequence - 1 - self.forgotten]
        event = self._maker.make(sequence, due_ns)
        self._events.append(event)
        self._read = sequence
        self.due_ns.append(self._arrivals.next())
        return event

    def forget(self) -> None:
        """Drop the events that were read: nobody will read one again."""
        count = len(self._events)
        self.forgotten += count
        self._events.clear()
        del self.due_ns[:count]
