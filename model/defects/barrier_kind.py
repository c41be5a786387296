"""What a defect of the barrier documents (F-DCKP-001, 002, 006) is: a world with one part changed, or a few calls.

The modules beside this one that make one are the entries P-, A- and U-.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

from model.defects.found import Found
from model.explore import Always, AtRest, Limits, explore
from model.parts import SOUND, Parts
from model.setup import Setup
from model.world import State, World

BOUND = Limits(states=2_000_000)


@dataclass(frozen=True, slots=True)
class BarrierDefect:
    """Machines at their document's word, and the small scope in which they go wrong.

    Attributes
    ----------
    entry, kind : str
        As of `model.defects.found.Defect`.
    breaks : str
        The invariant that a shortest counterexample breaks; a name in `model.invariants.RUN_INVARIANTS`, or ``RAISED``.
    setup : Setup
        The sound machines hold in it.
    parts : Parts
        One of which is changed.
    title : str
        What the kept trace begins with: what happens in it, in a sentence or two.
    """

    entry: str
    kind: str
    breaks: str
    setup: Setup
    parts: Parts
    title: str

    def as_documented(self) -> Found:
        """The shortest run that breaks something."""
        return self._explored(self.parts)

    def sound(self) -> Found:
        """Every run of the sound machines."""
        return self._explored(SOUND)

    def sound_on_the_same_run(self) -> frozenset[str]:
        """What the sound machines break on the run that shows the defect, as far as they can go along with it."""
        world = World(self.setup, self.parts)
        violation = explore(world, _properties(world), limits=BOUND).violations[0]
        return run_along(World(self.setup), map(str, violation.moves))

    def _explored(self, parts: Parts) -> Found:
        begun = monotonic()
        world = World(self.setup, parts)
        result = explore(world, _properties(world), limits=BOUND)
        if result.verdict == "undecided":
            raise ValueError(f"{self.entry}: {result.why}; make its scope smaller")
        if not result.violations:
            return Found(states=result.counts.states, seconds=monotonic() - begun)
        violation = result.violations[0]
        rests = violation.property == "at rest"
        return Found(
            broken_by(violation.reason),
            len(violation.moves),
            result.counts.states,
            monotonic() - begun,
            world.trace(violation.moves, rests, self.title),
        )


@dataclass(frozen=True, slots=True)
class Witness:
    """A defect of a value, a time or an interface, which a few calls show.

    Attributes
    ----------
    entry, kind : str
        As of `model.defects.found.Defect`.
    broken, right : callable
        The same calls, to what is as documented and to what is sound; what came of each, a line each.
    wrong_lines, right_lines : tuple of str
        What comes of them.
    """

    entry: str
    kind: str
    broken: Callable[[], tuple[str, ...]]
    right: Callable[[], tuple[str, ...]]
    wrong_lines: tuple[str, ...]
    right_lines: tuple[str, ...]
    breaks: str = "value"

    def as_documented(self) -> Found:
        """What comes of the calls, if it is what it is said to be."""
        return _of_calls(self.broken(), self.right_lines)

    def sound(self) -> Found:
        """The same of the sound code."""
        return _of_calls(self.right(), self.right_lines)


def _of_calls(lines: tuple[str, ...], right: tuple[str, ...]) -> Found:
    if lines == right:
        return Found()
    return Found(frozenset({"value"}), len(lines), 0, 0.0, "".join(f"{line}\n" for line in lines))


def broken_by(reason: str) -> frozenset[str]:
    """The invariants in a reason of `World.broken` or `World.unsettled`: ``"CUT: ...; FIFO: ..."``."""
    return frozenset(part.partition(": ")[0] for part in reason.split("; ") if part.partition(": ")[0].isupper())


def run_along(world: World, moves: Iterable[str]) -> frozenset[str]:
    """What is broken after those of `moves` that a world can make, in order, and when all has come to rest."""
    state = world.start()
    for text in moves:
        state = _made(world, state, text)
    while going_on := [move for move in world.moves(state) if not move.is_fault]:
        state = world.after(state, going_on[0])
    reason = world.broken(state) or world.unsettled(state)
    return broken_by(reason) if reason else frozenset()


def _made(world: World, state: State, text: str) -> State:
    found = [move for move in world.moves(state) if str(move) == text]
    return world.after(state, found[0]) if found else state


def _properties(world: World) -> list[Always[State] | AtRest[State]]:
    return [Always("always", world.broken), AtRest("at rest", world.unsettled)]
