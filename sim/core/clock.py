"""The clock of a simulation: the time, calls that are due later, and who may go on now.

SimPy keeps the time and nothing else: an event exists only where time passes (a service, a link, a timer). Whoever may
go on is run from one first-in-first-out list before the time moves, so equal times are settled by the order of causes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappush
from sys import maxsize
from typing import Any, Protocol

import simpy
from simpy.events import NORMAL


class Timer:
    """One SimPy event that is armed again and again: a service costs no new object.

    SimPy documents `Event.callbacks`; that an event with a value may be scheduled again, and what `schedule` puts into
    its queue, are inside matters of SimPy 4.1, kept in this module alone and held by a test.
    """

    __slots__ = ("_callbacks", "_env", "_event")

    def __init__(self, env: simpy.Environment, fire: Callable[[Any], None]) -> None:
        self._env = env
        self._event = simpy.Event(env)
        self._event._ok, self._event._value = True, None
        self._callbacks = [fire]

    def start(self, delay_ns: int) -> None:
        """Fire `delay_ns` from now. The caller knows that it is not armed."""
        event, env = self._event, self._env
        event.callbacks = self._callbacks
        heappush(env._queue, (env._now + delay_ns, NORMAL, next(env._eid), event))  # `schedule`, a call less


class Runnable(Protocol):
    """Whatever stands in the list of those that may go on, once at a time."""

    listed: bool

    def run(self) -> None:
        """Do all that can be done now."""


class Clock:
    """The time of one run, in integer nanoseconds.

    Attributes
    ----------
    now : int
    attempt : int
        How many attempts are over; whatever one of those asked to be called for is not called.
    ready : deque of Runnable
        Those that may go on, first come, first served.
    """

    __slots__ = ("_env", "_next", "attempt", "now", "ready")

    def __init__(self) -> None:
        self._env: Any = simpy.Environment(initial_time=0)  # SimPy types every time as int or float
        self._next: Callable[[], None] = self._env.step
        self.now = 0
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
        return Timer(self._env, self._firing(action, self.attempt))

    def own_timer(self, fire: Callable[[object], None]) -> Timer:
        """Return a timer of one who sets `now` himself, and asks himself whether the attempt lasts: a call less."""
        return Timer(self._env, fire)

    def _firing(self, action: Callable[[], None], attempt: int | None) -> Callable[[object], None]:
        env = self._env

        def fire(_: object) -> None:
            if attempt is None or attempt == self.attempt:
                self.now = env.now
                action()

        return fire

    def _once(self, delay_ns: int, fire: Callable[[object], None]) -> None:
        event = simpy.Event(self._env)
        event._ok, event._value = True, None
        event.callbacks = [fire]
        self._env.schedule(event, NORMAL, delay_ns)

    def end_attempt(self) -> None:
        """Forget who may go on, and every call but those of `schedule`."""
        self.attempt += 1
        self.ready.clear()

    def step(self) -> None:
        """Let the time move to the next call that is due, make it, and let those go on who may by that."""
        self._next()
        ready = self.ready
        while ready:
            node = ready.popleft()
            node.listed = False
            node.run()

    def next_ns(self) -> float:
        """Return when the next call is due; infinity if none is."""
        return self._env.peek()  # type: ignore[no-any-return]

    def run(self, until_ns: int = maxsize) -> None:
        """Make every call that is due by `until_ns`."""
        while self._env.peek() <= until_ns:
            self.step()
