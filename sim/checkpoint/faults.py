"""Faults of a run: processes like any other, each with its own random streams.

A fault strikes once, again and again, or at random; most kinds last for a while. What is made slow by several faults at
a time is slow by all of them. None strikes once the scenario's time is up: what has begun may end well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from barrierlab.sim.checkpoint.tasks import Job
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.core.distributions import Randoms
from barrierlab.sim.scenario.settings import Fault, Scenario, ns

ALL = "all"


def times_ns(fault: Fault, random: Random) -> Iterator[int]:
    """Yield when the fault strikes, counted from the start of the run, in order."""
    if fault.at_s is not None:
        yield ns(fault.at_s)
    elif fault.every_s is not None:
        at_ns = ns(fault.every_s if fault.first_s is None else fault.first_s)
        while True:
            yield at_ns
            at_ns += ns(fault.every_s)
    elif fault.rate_per_s:
        at_s = 0.0
        while True:
            at_s -= math.log(1.0 - random.random()) / fault.rate_per_s
            yield ns(at_s)


@dataclass(slots=True)
class FaultEffect:
    """The effect of a fault: how often it struck, and how often that, or something while it lasted, met anything.

    `missed` are the strikes that met nothing, of a fault that meets at once what it meets.
    """

    struck: int = 0
    met: int = 0
    missed: int = 0
    last_ns: int = 0  # when it struck last

    def note(self, met: bool) -> None:
        """Note whether a strike met anything."""
        self.met += met
        self.missed += not met


class Slowness:
    """The slowdown of something, by all that slows it just now."""

    __slots__ = ("_causes",)

    def __init__(self) -> None:
        self._causes: list[tuple[float, Callable[[], int], FaultEffect]] = []

    def add(self, factor: float, added: Callable[[], int], effect: FaultEffect) -> Callable[[], None]:
        """Slow it: it takes `factor` as long, and what `added` draws besides, until what is returned is called."""
        cause = factor, added, effect
        self._causes.append(cause)
        return lambda: self._causes.remove(cause)

    @property
    def factor(self) -> float:
        """Return the factor that the usual time is multiplied by."""
        return math.prod(factor for factor, _, _ in self._causes)

    def slowed(self, usual_ns: int) -> int:
        """Return how long it takes now, in nanoseconds."""
        if not self._causes:
            return usual_ns
        slow_ns = round(usual_ns * self.factor) + sum(added() for _, added, _ in self._causes)
        if slow_ns != usual_ns:
            self.note()
        return slow_ns

    def note(self) -> None:
        """Note that something was slow for what slows it just now."""
        for _, _, effect in self._causes:
            effect.met += 1


class Faults:
    """The faults of one run, and what is under way of them.

    Attributes
    ----------
    links : dict of str to Slowness
        By exchange; those that some fault slows.
    store, recovery : Slowness
    acks : dict of str to Slowness
        The way of a task's acknowledgements to the coordinator; those that some fault slows.
    refusing : list of Fault
        Why the store refuses just now: failing_store and full_store.
    effects : dict of str to FaultEffect
        By name of the fault.
    """

    def __init__(self, scenario: Scenario, randoms: Randoms) -> None:
        self._scenario, self._randoms = scenario, randoms
        self.links = {f.channel: Slowness() for f in scenario.faults if f.channel is not None}
        self.store, self.recovery = Slowness(), Slowness()
        self.acks = {task: Slowness() for f in scenario.faults if f.kind == "late_ack" for task in self.tasks_of(f)}
        self.refusing: list[Fault] = []
        self._losing: list[Fault] = []
        self.effects = {fault.name: FaultEffect() for fault in scenario.faults}

    def tasks_of(self, fault: Fault) -> list[str]:
        """Return the subtasks that the fault is about."""
        topology = self._scenario.topology
        return [task for task in topology.tasks if fault.task in (task, topology.operator_of(task), ALL)]

    def loses_ack(self, task: str) -> bool:
        """Return whether what the task acknowledges now is lost on its way."""
        losing = [fault for fault in self._losing if task in self.tasks_of(fault)]
        for fault in losing:
            self.effects[fault.name].met += 1
        return bool(losing)

    def start(
        self,
        clock: Clock,
        job: Job,
        at_once: Mapping[str, Callable[[Fault], bool]],
        link_changed: Callable[[str], None],
    ) -> None:
        """Begin to count: each fault strikes when its time comes.

        Parameters
        ----------
        at_once : mapping of str to callable
            By kind: a fault that does not last; whether it met anything.
        link_changed : callable
            Told an exchange whose links have become slower or faster.
        """
        self._clock, self._job, self._at_once, self._link_changed = clock, job, at_once, link_changed
        for fault in self._scenario.faults:
            self._await(fault, times_ns(fault, self._randoms.stream(fault.name, "times")))

    def _await(self, fault: Fault, times: Iterator[int]) -> None:
        at_ns = next(times, None)
        if at_ns is not None and at_ns < ns(self._scenario.until_s):
            self._clock.schedule(max(at_ns - self._clock.now, 0), lambda: self._strike(fault, times))

    def _strike(self, fault: Fault, times: Iterator[int]) -> None:
        self._await(fault, times)
        kind, effect = fault.kind, self.effects[fault.name]
        effect.struck += 1
        effect.last_ns = self._clock.now
        if kind in self._at_once:
            effect.note(self._at_once[kind](fault))
        elif kind == "stall":
            nodes = [self._job.nodes[task] for task in self.tasks_of(fault)]
            effect.note(any(not node.dead and not node.ended for node in nodes))
            for_ns = self._draw(fault, "duration")
            for node in nodes:
                node.stall(True)
                self._clock.after(for_ns, partial(node.stall, False))
        else:
            over = self._begin(fault)
            self._clock.schedule(self._draw(fault, "duration"), over)

    def _begin(self, fault: Fault) -> Callable[[], None]:
        """Let a fault that lasts begin; what is returned ends it."""
        kind = fault.kind
        if kind in ("failing_store", "full_store", "lost_ack"):
            under_way = self._losing if kind == "lost_ack" else self.refusing
            under_way.append(fault)
            return lambda: under_way.remove(fault)
        effect = self.effects[fault.name]
        added = self._randoms.sampler(fault.added_s, fault.name, "added")
        if kind == "late_ack":
            return _all([self.acks[task].add(fault.factor, added, effect) for task in self.tasks_of(fault)])
        if kind != "slow_link":
            return (self.store if kind == "slow_store" else self.recovery).add(fault.factor, added, effect)
        edge = fault.channel
        assert edge is not None
        end = self.links[edge].add(fault.factor, added, effect)
        self._link_changed(edge)
        return _all([end, lambda: self._link_changed(edge)])

    def _draw(self, fault: Fault, purpose: str) -> int:
        return self._randoms.sampler(fault.for_s, fault.name, purpose)()


def _all(steps: list[Callable[[], None]]) -> Callable[[], None]:
    """Return a function that takes the steps one after the other."""

    def take() -> None:
        for step in steps:
            step()

    return take
