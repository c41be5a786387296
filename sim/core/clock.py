"""The clock of a simulation: the time, calls that are due later, and who may go on now.

SimPy keeps the time and nothing else: an event exists only where time passes (a service, a link, a timer). Whoever may
go on is run from one first-in-first-out list before the time moves, so equal times are settled by the order of causes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from sys import maxsize
from typing import Any, Final, cast

import simpy
from simpy.events import NORMAL as SIMPY_NORMAL

# A lookup of each would cost more than what it does.
NORMAL: Final[Any] = SIMPY_NORMAL
_PUSH: Final[Any] = heappush
_POP: Final[Any] = heappop
_NEXT: Final[Any] = next


class Timer:
    """An event in the queue of SimPy that is armed again and again: a service costs no new object.

    Timers that are armed one behind the other for the same time stand in the queue as one: the first is there, and
    each of the others follows the one before it. So they fire in the order in which they were armed, as events of
    their own would, and where tasks work in step most of them cost the queue nothing.

    To SimPy an event is what has `callbacks`, and what has not failed; that one may be scheduled again, and what
    `schedule` puts into the queue, are inside matters of SimPy 4.1, kept in this module alone and held by a test.

    Parameters
    ----------
    clock : Clock
    fire : callable or None
        Called with the timer each time it fires.
    node : Runnable or None
        Whose service ends each time it fires.
    """

    __slots__ = ("_clock", "_fire", "_follower", "_ids", "_node", "_ok", "_queue", "_value", "callbacks")

    def __init__(self, clock: Clock, fire: Callable[[Any], None] | None, node: Runnable | None = None) -> None:
        self._clock, self._node = clock, node
        self._queue: list[Any] = clock.env._queue
        self._ids: Iterator[Any] = clock.env._eid
        self._ok, self._value = True, None
        self._follower: Timer | None = None
        self._fire = fire
        self.callbacks: list[Callable[[Any], None]] | None = None

    def start(self, delay_ns: int) -> None:
        """Fire `delay_ns` from now. The caller knows that it is not armed."""
        self.start_at(self._clock.env._now + delay_ns)

    def start_at(self, at_ns: int) -> None:
        """Fire at a time from now on. The caller knows that it is not armed."""
        clock = self._clock
        last = clock.last
        clock.last = self
        if last is not None and at_ns == clock.last_ns:
            last._follower = self
            return
        clock.last_ns = at_ns
        if self.callbacks is None:
            self.callbacks = _CALLBACKS
        _PUSH(self._queue, (at_ns, NORMAL, _NEXT(self._ids), self))  # `schedule`, a call less

    def fire_one(self) -> Timer | None:
        """Fire, and return the one that follows."""
        follower, self._follower = self._follower, None
        if self is self._clock.last:
            self._clock.last = None  # what is armed from here on stands behind all that is in the queue
        node = self._node
        if node is not None:
            node.go(True)
        elif self._fire is not None:
            self._fire(self)
        return follower


def _fire_all(first: Timer) -> None:
    timer: Timer | None = first
    while timer is not None:
        timer = timer.fire_one()


_CALLBACKS: Final[list[Callable[[Any], None]]] = [_fire_all]  # SimPy's own `step` calls them, and forgets the list


class Runnable:
    """Whatever stands in the list of those that may go on, once at a time."""

    __slots__ = ("listed",)

    def __init__(self) -> None:
        self.listed = False

    def run(self) -> None:
        """Do all that can be done now."""
        raise NotImplementedError

    def go(self, served: bool) -> None:
        """Do all that can be done now; `served`: a service ends by this."""
        raise NotImplementedError


class Clock:
    """The time of one run, in integer nanoseconds.

    Attributes
    ----------
    now : int
    stamp : int
        The same, as the one object that all rows of that time have.
    attempt : int
        How many attempts are over; whatever one of those asked to be called for is not called.
    ready : deque of Runnable
        Those that may go on, first come, first served.
    env : simpy.Environment
    last, last_ns : Timer or None, int
        The timer that was armed last, if it has not fired, and for when.
    """

    __slots__ = ("_next", "_queue", "attempt", "env", "last", "last_ns", "now", "ready", "stamp")

    def __init__(self) -> None:
        self.env: Any = simpy.Environment(initial_time=0)  # SimPy types every time as int or float
        self._queue: list[Any] = self.env._queue
        self._next: Timer | None = None  # due at this time, ahead of the queue
        self.last: Timer | None = None
        self.last_ns = 0
        self.now = 0
        self.stamp: Any = 0
        self.attempt = 0
        self.ready: deque[Runnable] = deque()

    def schedule(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Call `action` once, `delay_ns` from now, whatever becomes of this attempt."""
        self._once(delay_ns, self._firing(action, None))

    def after(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Call `action` once, `delay_ns` from now, unless this attempt is over by then."""
        self._once(delay_ns, self._firing(action, self.attempt))

    def timer(self, action: Callable[[], None]) -> Timer:
        """Return a timer that calls `action` each time it fires, while this attempt lasts."""
        return Timer(self, self._firing(action, self.attempt))

    def own_timer(self, fire: Callable[[object], None]) -> Timer:
        """Return a timer of one who sets `now` himself, and asks himself whether the attempt lasts: a call less."""
        return Timer(self, fire)

    def service_timer(self, node: Runnable) -> Timer:
        """Return a timer that ends the services of `node`, which sets `now` itself as well."""
        return Timer(self, None, node)

    def _firing(self, action: Callable[[], None], attempt: int | None) -> Callable[[object], None]:
        env = self.env

        def fire(_: object) -> None:
            if attempt is None or attempt == self.attempt:
                self.now = env.now
                action()

        return fire

    def _once(self, delay_ns: int, fire: Callable[[object], None]) -> None:
        Timer(self, fire).start(delay_ns)

    def end_attempt(self) -> None:
        """Forget who may go on, and every call but those of `schedule`."""
        self.attempt += 1
        self.ready.clear()

    def step(self) -> None:
        """Let the time move to the next call that is due, make it, and let those go on who may by that."""
        ready = self.ready
        timer = self._next
        if timer is None:
            due: tuple[Any, ...] = _POP(self._queue)  # `step` of SimPy, of an event that cannot fail, a call less
            self.env._now = self.stamp = due[0]
            timer = cast(Timer, due[3])
        self._next = timer.fire_one()
        while ready:
            node = ready.popleft()
            node.listed = False
            node.run()

    def next_ns(self) -> float:
        """Return when the next call is due; infinity if none is."""
        return self.env.peek() if self._next is None else self.env.now  # type: ignore[no-any-return]

    def run(self, until_ns: int = maxsize) -> None:
        """Make every call that is due by `until_ns`."""
        while self.next_ns() <= until_ns:
            self.step()
