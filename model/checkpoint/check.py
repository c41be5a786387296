"""Scopes explored to a verdict: the sound machines, or another's in their place.

A scope that is broken is explored once more without reduction, so that the run that is shown is a shortest one.

LIVE is asked where a run ends, and where it goes round for ever: there, too, no checkpoint may be open, nothing may be
left in a channel, and the job must come to its end when the sources do. The premise is that runs are fair: a move that
is possible again and again is made at some time (strong fairness), be it a delivery, a drain or a report. A fault
need never happen; a state in which only faults can follow is not asked in a scope with faults, but in the one without.
It is if only a crash can: what sinks show is asked in no scope without one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from struct import Struct
from time import monotonic
from typing import Protocol, TypeVar

from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.checkpoint.partial_order import Ample, can_be_planned, plans
from barrierlab.model.checkpoint.premises import asked_for, premises_of, struck
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import Move, World, WorldState
from barrierlab.model.errors import RAISED
from barrierlab.model.explore.checker import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    Always,
    Broken,
    Exploration,
    ExplorationLimits,
    Quiescent,
    UndecidedError,
    explore,
    traps,
)
from barrierlab.model.render.html import block, paragraph
from barrierlab.model.render.svg import Svg
from barrierlab.model.render.trace_picture import picture_of
from barrierlab.model.spec.invariants import PREMISES

MOST_STATES = 100_000_000
"""The most states that an exploration keeps; over it, it is undecided. Most machines have no memory for so many."""
LEAST_MEMORY_BYTES = 2 << 30
"""So much each exploration may occupy on any machine; on a large one, its share."""


@dataclass(frozen=True, slots=True, repr=False)
class ScopeViolation:
    """A property that does not hold in a scope.

    Attributes
    ----------
    invariant : str
    scope : str
    steps : int
        Moves until then.
    reason : str
    trace : str
        The run as text, where there is one.
    reads_on : bool
        Whether in that run a task takes a message while it has something to drain.
    """

    invariant: str
    scope: str
    steps: int
    reason: str
    trace: str = ""
    reads_on: bool = False

    def __repr__(self) -> str:
        return f"<ScopeViolation: {self.invariant}: {self.reason} ({self.scope}; {self.steps} steps)>"

    def _repr_html_(self) -> str:
        said = f"{self.invariant}: {self.reason} ({self.steps} steps)"
        return block(self.scope, "broken", paragraph(said), self.picture() or "")

    def picture(self) -> Svg | None:
        """The run as a space-time diagram; None if nothing is sent in it."""
        try:
            return picture_of(self.trace)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """The outcome of the exploration of one scope.

    Attributes
    ----------
    name, protocol : str
    verdict : str
        ``holds``, ``broken`` or ``undecided``.
    why : str
        In a line.
    states, transitions : int
    seconds : float
        Of wall time.
    violations : tuple of ScopeViolation
    premises : dict of str to int
        By invariant, how many different things there were to judge (`model.checkpoint.premises`); empty if not counted.
    asked_for : tuple of str
        The invariants that the scope sets something for.
    struck : dict of str to int
        By fault of the scope, at how many different places it could strike.
    kept : bool
        Whether it is the verdict of an earlier check, taken over because nothing has changed on which it depends.
    """

    name: str
    protocol: str
    verdict: str
    why: str
    states: int
    transitions: int
    seconds: float
    violations: tuple[ScopeViolation, ...] = ()
    premises: Mapping[str, int] = field(default_factory=dict)
    asked_for: tuple[str, ...] = ()
    struck: Mapping[str, int] = field(default_factory=dict)
    kept: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        first = "".join(f"; {each.invariant}: {each.reason}" for each in self.violations[:1])
        return f"<Outcome: {self.name}: {self.verdict}, {self.states} states{first}>"

    def _repr_html_(self) -> str:
        counts = f"{self.states:,} states, {self.transitions:,} transitions, {self.seconds:.2f} s"
        shown = [violation._repr_html_() for violation in self.violations[:3]]
        return block(self.name, self.verdict, paragraph(f"{counts}\n{self.why}"), *shown)


class Scope(Protocol):
    """A scope that can be checked.

    Attributes
    ----------
    name, protocol : str
    """

    @property
    def name(self) -> str: ...

    @property
    def protocol(self) -> str: ...

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Explore it, for so long at most."""


NOT_REPEATABLE = "RAISED"
"""The name of what is broken where a machine goes by more than it captures: nothing that was explored of it counts."""
_STEPS_BETWEEN_CHECKS = 64
REFINES = "TABLE"
"""The name of what is broken where a machine does not do what its table says."""

S = TypeVar("S", bound=Hashable)
M = TypeVar("M")


class NamedScope:
    """A scope that is called after its protocol, its kind and what happens in it."""

    __slots__ = ()
    kind: str = ""
    of: str
    protocol: str

    @property
    def name(self) -> str:
        """The name that a report gives it."""
        return f"{self.protocol}{self.kind}: {self.of}"

    def violation(self, steps: int, reason: str, *lines: object, invariant: str = REFINES) -> ScopeViolation:
        """Return the violation of a run of so many steps: it parts, or breaks an invariant; `lines` say how it went."""
        text = (f"# {self.name}.", *lines, f"! {invariant}: {reason}")
        return ScopeViolation(invariant, self.name, steps, reason, "".join(f"{line}\n" for line in text))

    def outcome(self, begun: float, made: int, found: str | ScopeViolation, verdict: str = HOLDS) -> Outcome:
        """Return what so many cases or moves came to: what is wrong, or why it holds."""
        wrong = () if isinstance(found, str) else (found,)
        why = found if isinstance(found, str) else found.reason
        its = BROKEN if wrong else verdict, why, made, made, monotonic() - begun, wrong
        return Outcome(self.name, self.protocol, *its)


TriedCase = tuple[str, str | None]
"""A case that was tried, and what is wrong with what it came to; None if nothing is."""


def compared(cases: Iterable[tuple[str, object, object]]) -> Iterator[TriedCase]:
    """Yield cases of which each has what the code answers, and what its document says."""
    for tried, found, meant in cases:
        yield tried, None if found == meant else f"the code answers {found!r}, the document {meant!r}"


@dataclass(frozen=True, slots=True)
class CaseScope(NamedScope):
    """Cases that need no order.

    Attributes
    ----------
    of : str
        What they are of.
    cases : callable
        Tries them, one after another.
    states : int
        How many there are: the number moves when the meaning does.
    invariant : str
        What is broken where one is wrong.
    """

    of: str
    cases: Callable[[], Iterator[TriedCase]]
    states: int
    protocol: str
    kind: str = " table"
    invariant: str = REFINES

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Try the cases until one is wrong; `components` are of no concern to them."""
        begun, number, tried = monotonic(), 0, ""
        try:
            for number, (tried, wrong) in enumerate(self.cases(), 1):
                if wrong is not None:
                    violation = self.violation(1, f"{tried}: {wrong}", tried, invariant=self.invariant)
                    return self.outcome(begun, number, violation)
                if _left(seconds, begun) == 0.0:
                    return self.outcome(begun, number, f"{number} cases were tried in {seconds:.0f} s", UNDECIDED)
        except RAISED as error:  # whatever the code under test raises is what is wrong with it
            reason = f"the case behind {tried!r} raises {type(error).__name__}: {error}"
            return self.outcome(begun, number, self.violation(1, reason, invariant=self.invariant))
        return self.outcome(begun, number, "every case was tried")


def outcome_of(
    name: str, protocol: str, result: Exploration[S, M], hint: str = "", invariant: str = REFINES
) -> Outcome:
    """Return what it came to when a machine was explored beside its table, or another model.

    `invariant` is the name of what is broken; empty if each reason begins with one.
    """
    counts, violations = result.counts, []
    for broken in result.violations:
        named = f"{invariant}: {broken.reason}" if invariant else broken.reason
        what, _, reason = named.partition(": ")
        trace = "".join(f"{line}\n" for line in (f"# {name}.", *map(str, broken.moves), f"! {named}"))
        violations.append(ScopeViolation(what, name, len(broken.moves), reason, trace))
    return Outcome(
        *(name, protocol, result.verdict, result.why + hint),
        *(counts.states, counts.transitions, counts.seconds),
        tuple(violations),
    )


def verdict_of(outcomes: Sequence[Outcome]) -> str:
    """Return broken if one is; undecided if one is, or there are none; holds if all do."""
    verdicts = {outcome.verdict for outcome in outcomes}
    if BROKEN in verdicts:
        return BROKEN
    return HOLDS if verdicts == {HOLDS} else UNDECIDED


@dataclass(frozen=True, slots=True)
class WorldScope:
    """A dataflow, and what happens in it.

    Attributes
    ----------
    name : str
        Dataflow, extent, fault.
    bounds : Bounds
    """

    name: str
    bounds: Bounds

    @property
    def protocol(self) -> str:
        """The mode of its barriers."""
        return self.bounds.mode

    def check(self, components: Components, seconds: float | None, explores: Explores | None = None) -> Outcome:
        """Explore it reduced; and whole, if it is broken, or if the reduction was not for such machines.

        With `explores`, somewhere else than here: each plan is then a world of its own.
        """
        begun = monotonic()
        if not components.reducible or not can_be_planned(self.bounds, components):
            return self._whole(components, seconds, begun, explores=explores)
        states = transitions = 0
        worlds: list[World] = []
        for planned in plans(self.bounds):
            shares = explores is None and bool(worlds)
            # They share their tables.
            world = worlds.pop().planned(planned) if shares else World(planned, components, forgets=True)
            worlds.append(world)
            ample = Ample(world, self.bounds)
            result = (explores or explored)(world, _left(seconds, begun), ample)
            states += result.counts.states
            transitions += result.counts.transitions
            if result.verdict == BROKEN:
                return self._whole(components, seconds, begun, (world, result), explores)
            if result.verdict == HOLDS and ample.reduction_unsound:
                return self._whole(components, seconds, begun, explores=explores)
            if result.verdict == UNDECIDED:
                return self._outcome(worlds, UNDECIDED, result.why, states, transitions, begun)
        why = "every reachable state was seen"
        return self._outcome(worlds, HOLDS, why, states, transitions, begun, seconds=seconds)

    def _whole(
        self,
        components: Components,
        seconds: float | None,
        begun: float,
        broken: tuple[World, Exploration[WorldState, Move]] | None = None,
        explores: Explores | None = None,
    ) -> Outcome:
        """Explore it without reduction, unless there is no time for that and it is known to be broken."""
        world = World(self.bounds, components)
        result = (explores or explored)(world, _left(seconds, begun), None)
        if result.verdict == HOLDS and not all(table.is_acyclic() for table in world.tables):
            result = _gone_round(world, result, seconds, begun)
        if result.verdict == UNDECIDED and broken is not None:
            world, result = broken  # a run is known, though it may not be a shortest one
        violations = tuple(
            violation_of(world, self.name, broken.moves, broken.property, broken.reason) for broken in result.violations
        )
        return self._outcome(
            *([world], result.verdict, result.why, result.counts.states, result.counts.transitions, begun, violations),
            seconds,
        )

    def _made_again(self, world: World, why: str, seconds: float | None, begun: float) -> tuple[str, str]:
        """Verdict and reason after every step of an external machine was repeated: what was looked up must be so."""
        for number, difference in enumerate(world.differences()):
            if difference is not None:
                return BROKEN, difference
            if number % _STEPS_BETWEEN_CHECKS == 0 and _left(seconds, begun) == 0.0:
                return UNDECIDED, "the time limit was reached while every step was made a second time"
        return HOLDS, why

    def _outcome(
        self,
        worlds: Sequence[World],
        verdict: str,
        why: str,
        states: int,
        transitions: int,
        begun: float,
        violations: tuple[ScopeViolation, ...] = (),
        seconds: float | None = None,
    ) -> Outcome:
        for world in worlds:
            if verdict == HOLDS and world.components != SOUND:
                verdict, why = self._made_again(world, why, seconds, begun)
                if verdict == BROKEN:
                    violations = (ScopeViolation(NOT_REPEATABLE, self.name, 0, why),)
        premises = _most([premises_of(world) for world in worlds])
        has_struck = _most([struck(self.bounds, world) for world in worlds])
        return Outcome(
            *(self.name, self.protocol, verdict, why, states, transitions, monotonic() - begun, violations),
            *(premises, asked_for(self.bounds), has_struck),
        )


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of the verdict over several scopes.

    Attributes
    ----------
    vacuous : tuple of str
        The invariants that had nothing to judge in any scope that counts, and are not broken.
    asked_for : tuple of str
        Those of them that a scope sets something for.
    idle : tuple of str
        The faults that could strike nowhere, in whichever scope they were.
    """

    vacuous: tuple[str, ...]
    asked_for: tuple[str, ...]
    idle: tuple[str, ...]

    @property
    def falls_short(self) -> bool:
        """Return whether it judged less than the scopes ask for."""
        return bool(self.asked_for or self.idle)


def reach_of(outcomes: Sequence[Outcome]) -> Reach:
    """Return what a verdict over `outcomes` did not judge; nothing is vacuous where nothing was counted."""
    counted = [outcome for outcome in outcomes if outcome.premises]
    broken = {violation.invariant for outcome in counted for violation in outcome.violations}
    met = {name for outcome in counted for name, count in outcome.premises.items() if count}
    vacuous = tuple(name for name in PREMISES if counted and name not in met | broken)
    asked = {name for outcome in counted for name in outcome.asked_for}
    faults = dict.fromkeys(name for outcome in outcomes for name in outcome.struck)
    idle = tuple(name for name in faults if not any(outcome.struck.get(name) for outcome in outcomes))
    return Reach(vacuous, tuple(name for name in vacuous if name in asked), idle)


def violation_of(world: World, scope: str, moves: Sequence[Move], asked: str, reason: str) -> ScopeViolation:
    """Return what a run of a world breaks, with its trace."""
    invariant, _, why = reason.partition(": ")
    title = f"{invariant} is broken: {scope}."
    trace = world.trace(moves, asked == QUIESCENT, title)
    return ScopeViolation(invariant, scope, len(moves), why, trace, world.reads_on_in(moves))


ALWAYS, QUIESCENT = "always", "at rest"


def properties(world: World) -> list[Always[WorldState] | Quiescent[WorldState]]:
    """Return what `model.explore.checker.explore` is to ask of a world."""
    spares = _is_crash if world.bounds.crashes else None
    return [Always(ALWAYS, world.broken), Quiescent(QUIESCENT, world.liveness_violation, spares)]


def _is_crash(move: Move) -> bool:
    return move.kind == "crash"


def _most(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """By name, the most that any of several worlds has."""
    return {name: max(each[name] for each in counts) for name in counts[0]}


Explores = Callable[[World, float | None, Ample | None], Exploration[WorldState, Move]]
"""A way to explore a world, for so many seconds at most, reduced or not."""


def limits(seconds: float | None) -> ExplorationLimits:
    """Return how far a scope is explored in so many seconds: one on each core does not use up the memory."""
    try:
        physical_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError):  # not told everywhere
        physical_bytes = 0
    share_bytes = 4 * physical_bytes // (5 * (os.cpu_count() or 1))
    return ExplorationLimits(MOST_STATES, seconds=seconds, memory_bytes=max(LEAST_MEMORY_BYTES, share_bytes))


def explored(world: World, seconds: float | None, ample: Ample | None) -> Exploration[WorldState, Move]:
    """Explore a world here, its states in memory."""
    return explore(
        world,
        properties(world),
        limits=limits(seconds),
        ample=None if ample is None else ample.moves,
        acyclic=True,
        packing=Struct(f"{len(world.start())}I"),
    )


def _gone_round(
    world: World, result: Exploration[WorldState, Move], seconds: float | None, begun: float
) -> Exploration[WorldState, Move]:
    """Ask where runs go round for ever what is asked at rest; return a shortest run there if something is wrong."""
    wrong: dict[WorldState, str] = {}
    known: tuple[Move, ...] = ()
    try:
        longest = ExplorationLimits(seconds=_left(seconds, begun))
        for run, states in traps(world.start(), world.moves, world.after, lambda move: move.is_fault, longest):
            if len(states) == 1 and not world.moves(states[0]):
                continue  # at rest
            reasons = [world.liveness_violation(state) for state in states]
            if None not in reasons:
                known = known if wrong else run
                wrong |= {
                    state: f"{reason}; it goes round for ever" for state, reason in zip(states, reasons, strict=True)
                }
    except UndecidedError as error:
        if not wrong:
            return replace(result, verdict=UNDECIDED, why=str(error))
    if not wrong:
        return result
    shortest = explore(world, [Always(QUIESCENT, wrong.get)], limits=limits(_left(seconds, begun)))
    if shortest.verdict == BROKEN:
        return shortest
    reason = next(iter(wrong.values()))
    return replace(result, verdict=BROKEN, why=f"{QUIESCENT}: {reason}", violations=(Broken(QUIESCENT, reason, known),))


def _left(seconds: float | None, begun: float) -> float | None:
    return None if seconds is None else max(0.0, seconds - (monotonic() - begun))
