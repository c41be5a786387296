"""A defect of the barrier documents (F-DCKP-001, 002, 006): a world with one component changed, or a few calls.

Where steps are finer than those of the world, it is a system of its own. The modules beside this one that make one are
the entries P-, A- and U-; what most of them say it with is imported from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Generic

from barrierlab.model.checkpoint.check import ALWAYS, QUIESCENT, properties
from barrierlab.model.checkpoint.components import (
    SOUND,
)
from barrierlab.model.checkpoint.components import (
    Components as Components,
)
from barrierlab.model.checkpoint.components import (
    with_aligner as with_aligner,
)
from barrierlab.model.checkpoint.components import (
    with_gate as with_gate,
)
from barrierlab.model.checkpoint.scope import Bounds as Bounds
from barrierlab.model.checkpoint.tables.driven import driven_by as driven_by
from barrierlab.model.checkpoint.world import Move, World, WorldState
from barrierlab.model.defects.kinds.found import Found, kind_of
from barrierlab.model.explore.checker import Always, Exploration, ExplorationLimits, M, S, System, explore

BOUND = ExplorationLimits(states=2_000_000)


@dataclass(frozen=True, slots=True)
class BarrierDefect:
    """Machines at their document's word, and the small scope in which they go wrong.

    Attributes
    ----------
    breaks : str
        The invariant that a shortest counterexample breaks; a name in `model.spec.invariants.RUN_INVARIANTS`, or
        ``RAISED``.
    bounds : Bounds
        The sound machines hold in it.
    components : Components
        One of which is changed.
    title : str
        What the kept trace begins with: what happens in it, in a sentence or two.
    sound_components : Components
        What the sound machines are put beside: those of `components` that are circumstances, such as a coordinator that
        says everything twice. By default all is sound.
    kind : str
        If not given, that of what it breaks.
    entry : str
        Its id, if it is of the second catalogue; the first has it from the name of the module.
    """

    breaks: str
    bounds: Bounds
    components: Components
    title: str
    sound_components: Components = SOUND
    kind: str = ""
    entry: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.kind or kind_of(self.breaks))

    def as_documented(self) -> Found:
        """The shortest run that breaks something."""
        return self._explored(self.components)

    def sound(self) -> Found:
        """Every run of the sound machines."""
        return self._explored(self.sound_components)

    def sound_on_the_same_run(self) -> frozenset[str]:
        """Return what the sound machines break on the run that shows the defect, as far as they can go along with
        it."""
        world = World(self.bounds, self.components)
        violation = explore(world, properties(world), limits=BOUND).violations[0]
        return run_along(World(self.bounds, self.sound_components), map(str, violation.moves))

    def _explored(self, components: Components) -> Found:
        begun = monotonic()
        world = World(self.bounds, components)
        result = explore(world, properties(world), limits=BOUND)
        if result.verdict == "undecided":
            raise ValueError(f"{self.title} {result.why}; make its scope smaller")
        if not result.violations:
            return Found(states=result.counts.states, seconds=monotonic() - begun)
        violation = result.violations[0]
        moves, rests, broken = list(violation.moves), violation.property == QUIESCENT, broken_by(violation.reason)
        if "RAISED" not in broken and world.judged(moves, rests).verdict == "holds":
            # It is certain, but the journal shows it only when all has run on: what was lost is yet to be sent.
            moves, rests = moves + _enabled_fair_moves(world, moves), True
        steps = len(violation.moves)
        trace = world.trace(moves, rests, self.title)
        return Found(broken, steps, result.counts.states, monotonic() - begun, trace)


@dataclass(frozen=True, slots=True)
class SystemDefect(Generic[S, M]):
    """A machine with finer steps than the world has, as a system of its own, and every order of its moves.

    Attributes
    ----------
    breaks, title : str
        As of `BarrierDefect`.
    broken, right : System
        As documented, and sound.
    wrong : callable
        Given any state, what is wrong with it, ``"LIVE: ..."``; None if nothing.
    """

    breaks: str
    broken: System[S, M]
    right: System[S, M]
    wrong: Callable[[S], str | None]
    title: str

    @property
    def kind(self) -> str:
        """The kind of what it breaks."""
        return kind_of(self.breaks)

    def as_documented(self) -> Found:
        """The shortest run that breaks something."""
        return self._explored(self.broken)

    def sound(self) -> Found:
        """Every run of the sound machine."""
        return self._explored(self.right)

    def _explored(self, system: System[S, M]) -> Found:
        return found_in(self.title, explore(system, [Always(ALWAYS, self.wrong)], limits=BOUND))


def found_in(title: str, result: Exploration[S, M]) -> Found:
    """Return what the exploration of a system came to, its run under a title."""
    states, seconds = result.counts.states, result.counts.seconds
    if not result.violations:
        return Found(states=states, seconds=seconds)
    violation = result.violations[0]
    lines = [f"# {title}", "", *(f"> {move}" for move in violation.moves), f"! {violation.reason}"]
    trace = "".join(f"{line}\n" for line in lines)
    return Found(broken_by(violation.reason), len(violation.moves), states, seconds, trace)


def broken_by(reason: str) -> frozenset[str]:
    """The invariants in a reason of `World.broken` or `World.liveness_violation`: ``"CUT: ...; FIFO: ..."``."""
    return frozenset(part.partition(": ")[0] for part in reason.split("; ") if part.partition(": ")[0].isupper())


def run_along(world: World, moves: Iterable[str]) -> frozenset[str]:
    """Return what is broken after those of `moves` that a world can make, in order, and when all has come to rest."""
    state = world.start()
    for text in moves:
        state = _made(world, state, text)
    _, state = world.settle(state)
    reason = world.broken(state) or world.liveness_violation(state)
    return broken_by(reason) if reason else frozenset()


def _enabled_fair_moves(world: World, moves: Iterable[Move]) -> list[Move]:
    """Return what can follow those moves, without another fault, until all has come to rest."""
    state = world.start()
    for move in moves:
        state = world.after(state, move)
    return world.settle(state)[0]


def _made(world: World, state: WorldState, text: str) -> WorldState:
    found = [move for move in world.moves(state) if str(move) == text]
    return world.after(state, found[0]) if found else state
