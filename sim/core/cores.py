"""The cores that the tasks of a job share: with more of them at work than there are cores, each is slower.

Processor sharing: of `count` cores a task has one for itself while no more are at work, and `count` in n of one while n
are. How much has been done is kept for all of them together, as a clock that runs slower the more are at work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush

from barrierlab.sim.core.clock import Clock

LEAST_NS = 1000  # of work: less is done when it is looked at


class Cores:
    """The cores of one machine, and which tasks are at work: one that does two things at a time counts once.

    Attributes
    ----------
    count : float
        How many there are; less than 1 where a container may use a part of one.
    """

    __slots__ = ("_at_ns", "_at_work", "_changes", "_clock", "_done_ns", "count")

    def __init__(self, count: float, clock: Clock) -> None:
        self.count = count
        self._clock = clock
        self._at_ns, self._done_ns = clock.now, 0.0
        self._at_work: Counter[str] = Counter()
        self._changes: list[tuple[int, int, str]] = []  # a task begins, or ends, what takes as long as it takes

    def done_ns(self) -> float:
        """Return how much a task that has been at work since the start would have done, in nanoseconds of a core."""
        now = self._clock.now
        while self._changes and self._changes[0][0] <= now:
            at_ns, change, task = heappop(self._changes)
            self._pass(at_ns)
            self._change(task, change)
        self._pass(now)
        return self._done_ns

    def work(self, task: str, work_ns: int, besides_ns: int, finish: Callable[[int], None]) -> None:
        """Work for a task on the cores, and something besides, which no other task makes longer.

        `finish` is called when both are done, with how much longer that was than for a task that is alone at work.
        """
        from_ns, done_ns = self._clock.now, self.done_ns()
        self._change(task, 1)
        left_ns, longer_ns = work_ns, 0

        def look() -> None:
            nonlocal from_ns, done_ns, left_ns, longer_ns
            now, done = self._clock.now, self.done_ns()
            left_ns = round(left_ns * (1 - (done - done_ns) / max(1, now - from_ns)))
            from_ns, done_ns = now, done
            if left_ns < LEAST_NS:
                self._change(task, -1)
                finish(longer_ns)
                return
            longer_ns += left_ns
            self._clock.after(left_ns, look)

        self._clock.after(work_ns + besides_ns, look)

    def occupy(self, task: str, at_ns: int, taken_ns: int) -> None:
        """Count a task as at work from a time on, for a time that no other task makes longer."""
        if taken_ns:
            heappush(self._changes, (at_ns, 1, task))
            heappush(self._changes, (at_ns + taken_ns, -1, task))

    def later(self, task: str, at_ns: int, work_ns: int) -> int:
        """Return how long work that begins later takes, beside the tasks that are known by now to be at work then."""
        beside = Counter[str]()
        for change_ns, change, name in self._changes:
            beside[name] += change if change_ns <= at_ns else 0
        others = sum(count > 0 for name, count in beside.items() if name != task)
        taken_ns = round(work_ns * max(1.0, (others + 1) / self.count))
        self.occupy(task, at_ns, taken_ns)
        return taken_ns

    def clear(self) -> None:
        """End all work: the job has failed."""
        self.done_ns()
        self._at_work.clear()
        self._changes.clear()

    def _pass(self, to_ns: int) -> None:
        self._done_ns += (to_ns - self._at_ns) * min(1.0, self.count / max(1, len(self._at_work)))
        self._at_ns = to_ns

    def _change(self, task: str, change: int) -> None:
        self._at_work[task] += change
        if not self._at_work[task]:
            del self._at_work[task]
