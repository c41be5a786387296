"""Every reachable state of a system, breadth first: the first violation that is found ends a shortest run.

A system is anything with `start`, `moves` and `after`; its states are hashable values, equal if and only if they behave
the same and are judged the same. States are remembered whole, not by a fingerprint, so ``holds`` is never luck. What
is cheapest is a flat tuple of small integers, each the index of a part of the state in a table that the system keeps:
it hashes in C, what one part does is worked out once, and among the states seen it is four bytes each (`packing`).

The form is Stateright's (three methods, properties of three kinds, pinned counts); the three verdicts are Maelstrom's.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)
M = TypeVar("M")

HOLDS = "holds"
BROKEN = "broken"
UNDECIDED = "undecided"

NEVER = "never happened"
_STATES_BETWEEN_CHECKS = 256
_SECONDS_BETWEEN_REPORTS = 0.1
STATM = Path("/proc/self/statm")
"""Its second number says how many pages of the process are in memory."""


class System(Protocol[S, M]):
    """A system that can be explored. A move's `str` is its line of text."""

    def start(self) -> S:
        """Return the state in which every run begins."""

    def moves(self, state: S) -> Sequence[M]:
        """Return the moves that can be made now, always in the same order."""

    def after(self, state: S, move: M) -> S:
        """The state that the move leads to."""


@dataclass(frozen=True)
class Always(Generic[S]):
    """Asked of every state: `check` says what is wrong with it, or None."""

    name: str
    check: Callable[[S], str | None]


@dataclass(frozen=True)
class Quiescent(Generic[S]):
    """Asked of every state without moves; a deadlock is a state that may not be one.

    With `spares`, of every state, too, from which only moves lead that need never be made.
    """

    name: str
    check: Callable[[S], str | None]
    spares: Callable[[Any], bool] | None = None

    def is_asked(self, moves: Sequence[Any]) -> bool:
        """Return whether it is asked of a state from which `moves` lead."""
        return not moves or (self.spares is not None and all(map(self.spares, reversed(moves))))


@dataclass(frozen=True)
class Sometimes(Generic[S]):
    """Asked of states until it is so once: a model that does nothing breaks nothing else."""

    name: str
    seen: Callable[[S], bool]


@dataclass(frozen=True)
class SometimesMove(Generic[S, M]):
    """The same, asked of a state, a move, and the state after it."""

    name: str
    seen: Callable[[S, M, S], bool]


Property = Always[S] | Quiescent[S] | Sometimes[S] | SometimesMove[S, M]


@dataclass(frozen=True, slots=True)
class ExplorationLimits:
    """The limits of an exploration; None is no limit. Over one, nothing can hold any more.

    Attributes
    ----------
    states : int or None
        Distinct states that are remembered.
    depth : int or None
        Moves in a run.
    seconds : float or None
        Of wall time.
    memory_bytes : int or None
        What the whole process occupies.
    """

    states: int | None = None
    depth: int | None = None
    seconds: float | None = None
    memory_bytes: int | None = None


class Counts(NamedTuple):
    """The numbers of what was looked at.

    Attributes
    ----------
    states : int
        Distinct ones; under a symmetry, distinct representatives.
    transitions : int
        Moves that were made, those that led to a known state among them.
    depth : int
        How many moves the longest of the shortest runs has.
    seconds : float
        Of wall time.
    """

    states: int
    transitions: int
    depth: int
    seconds: float


@dataclass(frozen=True)
class Broken(Generic[S, M]):
    """A property that does not hold.

    Attributes
    ----------
    property, reason : str
        Its name, and what is wrong.
    moves : tuple of M
        A run from the start that ends in it; no shorter one does. None if something never happened.
    state : S or None
        Where that run ends.
    """

    property: str
    reason: str
    moves: tuple[M, ...] = ()
    state: S | None = None

    def __str__(self) -> str:
        """As the end of a trace has it."""
        return f"{self.property}: {self.reason}"


@dataclass(frozen=True)
class Exploration(Generic[S, M]):
    """The findings of an exploration.

    Attributes
    ----------
    verdict : str
        ``"holds"``: every reachable state was seen. ``"broken"``. ``"undecided"``: it ended early and found nothing.
    why : str
        In a line: what is broken, or what ended the exploration.
    violations : tuple of Broken
        One a property, shortest runs first.
    unseen : tuple of str
        What was to happen sometimes, and had not when it ended.
    counts : Counts
    """

    verdict: str
    why: str
    violations: tuple[Broken[S, M], ...]
    unseen: tuple[str, ...]
    counts: Counts


class UndecidedError(Exception):
    """A question about a state would take too much to answer: the exploration ends, and has found nothing."""


class NonDeterministicError(Exception):
    """A run that was found cannot be reproduced: the system, its symmetry or its reduction is not a function."""

    def __init__(self, place: int, found: object, instead: object) -> None:
        super().__init__(
            f"move {place} of the run should lead to {found!r}, and there is only {instead!r}; allowed: `moves`, "
            "`after`, `canonical` and `ample` that give the same for the same state; look for chance, for the order "
            "of a set, for something kept outside the state, and for a `canonical` that is no symmetry"
        )


def explore(
    system: System[S, M],
    properties: Sequence[Property[S, M]] = (),
    *,
    limits: ExplorationLimits | None = None,
    collect: bool = False,
    canonical: Callable[[S], S] | None = None,
    ample: Callable[[S, Sequence[M]], Sequence[M]] | None = None,
    acyclic: bool = False,
    packing: struct.Struct | None = None,
    progress: Callable[[Counts], None] | None = None,
) -> Exploration[S, M]:
    """Visit every state that `system` can reach, and ask the properties.

    Parameters
    ----------
    system : System
    properties : sequence of Always, Quiescent, Sometimes and SometimesMove
    limits : ExplorationLimits, optional
        By default none.
    collect : bool
        Whether to go on after a violation, and find a shortest run for each property that is broken.
    canonical : callable, optional
        The representative of the states that are the same but for a symmetry; only it is visited.
    ample : callable, optional
        Some of a state's moves, at least one, such that a run of others can be put off without a difference: none of
        the others, nor what they lead to before one of these, depends on these, and none of these alone changes what
        a property asks (Clarke, Grumberg and Peled, "Model Checking", 10.3: C0, C1, C2). That nothing is put off for
        ever (C3) is seen to here: if these lead to no new state, all moves are made. Runs are then shortest among
        those that are left.
    acyclic : bool
        Whether no run comes back to a state, so that nothing can be put off for ever: C3 is left out.
    packing : struct.Struct, optional
        By which states that are tuples of numbers are packed, where they are seen or still to be explored; by default
        they are kept as they are.
    progress : callable, optional
        Told the counts about ten times a second.

    Returns
    -------
    Exploration
        Ctrl-C ends an exploration as a limit does.

    Raises
    ------
    NonDeterministicError
        If the run to a violation cannot be reproduced.

    Examples
    --------
    >>> class Clock:
    ...     def start(self): return 11
    ...     def moves(self, hour): return ("tick",)
    ...     def after(self, hour, move): return hour % 12 + 1
    >>> result = explore(Clock(), [Always("before three", lambda hour: f"it is {hour}" if hour == 3 else None)])
    >>> result.verdict, result.why, result.violations[0].moves
    ('broken', 'before three: it is 3', ('tick', 'tick', 'tick', 'tick'))
    """
    exploration = _Exploration(
        system, properties, limits or ExplorationLimits(), collect, canonical, ample, acyclic, packing, progress
    )
    try:
        ended = exploration.run()
    except UndecidedError as error:
        ended = str(error)
    except KeyboardInterrupt:
        ended = "interrupted"
    return exploration.result(ended)


@dataclass(slots=True)
class _Frame(Generic[S, M]):
    """A state on the path of a search depth first."""

    state: S
    moves: Iterator[M]
    lowest: int
    move: M | None = None
    leads_out: bool = False


class _Exploration(Generic[S, M]):
    """One call of `explore`: states by number, in the order in which they were found."""

    def __init__(
        self,
        system: System[S, M],
        properties: Sequence[Property[S, M]],
        limits: ExplorationLimits,
        collect: bool,
        canonical: Callable[[S], S] | None,
        ample: Callable[[S, Sequence[M]], Sequence[M]] | None,
        acyclic: bool,
        packing: struct.Struct | None,
        progress: Callable[[Counts], None] | None,
    ) -> None:
        self.system = system
        self.limits = limits
        self.collect = collect
        self.canonical = canonical
        self.ample = ample
        self.acyclic = acyclic
        self.packing = packing
        self.progress = progress
        self.always = [(each.check, each) for each in properties if isinstance(each, Always)]
        self.quiescent = [each for each in properties if isinstance(each, Quiescent)]
        self.states_to_see = [each for each in properties if isinstance(each, Sometimes)]
        self.moves_to_see = [each for each in properties if isinstance(each, SometimesMove)]
        self.found: list[tuple[Always[S] | Quiescent[S], int, S]] = []  # a property, and the number of a state, and it
        self.seen: set[Any] = set()
        self.parents = array("I")  # of each state, the number of the one that it was found from
        self.choices = array("I")  # and which of its moves, as `_in_order` has them
        self.transitions = 0
        self.depth = 0
        self.started = self.reported = monotonic()

    def run(self) -> str:
        """Explore until all is seen; return an empty text, or what ended it."""
        start = self._representative(self.system.start())
        level = [self._packed(start)]
        self.seen.add(level[0])
        self._find(start, 0, 0)
        first = 0  # the number of the first state of the level
        while level and not self._is_over():
            if self.depth == self.limits.depth:
                more = self._only_rest(level, first)
                return f"the limit of {self.limits.depth} moves is reached" if more else ""
            following: list[Any] = []
            for begin in range(0, len(level), _STATES_BETWEEN_CHECKS):
                chunk = level[begin : begin + _STATES_BETWEEN_CHECKS]
                if not self._expand(chunk, first + begin, following):
                    return f"the limit of {self.limits.states} states is reached"
                if self._is_over():
                    self._only_rest(level[begin:], first + begin)
                    break
                if ended := self._look_up():
                    return ended
            first += len(level)
            level = following
            self.depth += bool(level)
        return ""

    def _is_over(self) -> bool:
        return bool(self.found) and not self.collect

    def _packed(self, state: Any) -> Any:
        return state if self.packing is None else self.packing.pack(*state)

    def _unpacked(self, kept: Any) -> Any:
        return kept if self.packing is None else self.packing.unpack(kept)

    def _expand(self, states: list[Any], first: int, following: list[Any]) -> bool:
        """Make the moves of `states`, each as it is kept, and find what they lead to; False if there is no room for one
        more.
        """
        after, moves_of, seen, find = self.system.after, self.system.moves, self.seen, self._find
        canonical, ample, moves_to_see, found = self.canonical, self.ample, self.moves_to_see, self.found
        packing, most = self.packing, self.limits.states
        spares = any(each.spares for each in self.quiescent)
        for number, kept in enumerate(states, first):
            state: Any = kept if packing is None else packing.unpack(kept)
            moves = moves_of(state)
            if spares or not moves:
                self._rest(state, number, moves)
            first_ones = len(moves)
            if ample is not None:
                moves, first_ones = self._in_order(state, moves)
            known = len(seen)
            choice = -1
            for choice, move in enumerate(moves):
                if choice == first_ones and len(seen) > known:
                    choice -= 1
                    break
                reached: Any = after(state, move)
                if moves_to_see:
                    self._see(state, move, reached)
                if canonical is not None:
                    reached = canonical(reached)
                known_as = reached if packing is None else packing.pack(*reached)
                if known_as not in seen:
                    if len(seen) == most:
                        return False
                    seen.add(known_as)
                    following.append(known_as)
                    find(reached, number, choice)
            self.transitions += choice + 1
            if found and not self.collect:
                return True
        return True

    def _in_order(self, state: S, moves: Sequence[M]) -> tuple[Sequence[M], int]:
        """The ample ones of `moves`, then the others if they may be needed; and how many are ample."""
        if self.ample is None or len(moves) < 2:
            return moves, len(moves)
        first = self.ample(state, moves)
        if self.acyclic:
            return first, len(first)
        return (*first, *(move for move in moves if move not in first)), len(first)

    def _find(self, state: S, parent: int, choice: int) -> None:
        """Note how a new state was found, and ask of it what is asked of every state."""
        self.parents.append(parent)
        self.choices.append(choice)
        for check, each in self.always:
            if check(state) is not None:
                self._break(each, len(self.parents) - 1, state)
        if self.states_to_see:
            self.states_to_see = [each for each in self.states_to_see if not each.seen(state)]

    def _see(self, state: S, move: M, reached: S) -> None:
        left = [each for each in self.moves_to_see if not each.seen(state, move, reached)]
        self.moves_to_see[:] = left  # in place: `_expand` looks into it

    def _rest(self, state: S, number: int, moves: Sequence[M]) -> None:
        asked = [each for each in self.quiescent if each.is_asked(moves)]
        if not asked:
            return
        for each in asked:
            if each.check(state) is not None:
                self._break(each, number, state)
        # What is asked at rest may take long, and as many states as are looked at in one go may all be at rest.
        if self.limits.seconds is not None and monotonic() - self.started >= self.limits.seconds:
            raise UndecidedError(f"the limit of {self.limits.seconds:g} s is reached")

    def _only_rest(self, level: list[Any], first: int) -> bool:
        """Ask what is asked at rest, where nothing more is explored: a violation here is shorter than those below.

        Whether any of these states has moves.
        """
        more = False
        for number, kept in enumerate(level, first):
            state = self._unpacked(kept)
            moves = self.system.moves(state)
            more = more or bool(moves)
            self._rest(state, number, moves)
        return more

    def _break(self, broken: Always[S] | Quiescent[S], number: int, state: S) -> None:
        self.found.append((broken, number, state))
        if isinstance(broken, Always):
            self.always = [each for each in self.always if each[1] is not broken]
        else:
            self.quiescent = [each for each in self.quiescent if each is not broken]

    def _look_up(self) -> str:
        """Tell the progress between two chunks, and return which limit is passed, or an empty text."""
        now, limits = monotonic(), self.limits
        if self.progress is not None and now - self.reported >= _SECONDS_BETWEEN_REPORTS:
            self.reported = now
            self.progress(self._counts())
        if limits.seconds is not None and now - self.started >= limits.seconds:
            return f"the limit of {limits.seconds:g} s is reached"
        if limits.memory_bytes is not None and resident_bytes() > limits.memory_bytes:
            return f"the limit of {limits.memory_bytes} bytes of memory is reached"
        return ""

    def _counts(self) -> Counts:
        return Counts(len(self.seen), self.transitions, self.depth, monotonic() - self.started)

    def result(self, ended: str) -> Exploration[S, M]:
        """Return what there is to say, all seen or not."""
        unseen = (*(each.name for each in self.states_to_see), *(each.name for each in self.moves_to_see))
        found = sorted(self.found, key=lambda each: len(self._choices_to(each[1])))
        violations = [self._broken(*each) for each in (found if self.collect else found[:1])]
        if not ended and not self._is_over():
            violations += [Broken(name, NEVER) for name in unseen]
        if violations:
            verdict, why = BROKEN, str(violations[0])
        elif ended:
            verdict, why = UNDECIDED, ended
        else:
            verdict, why = HOLDS, "every reachable state was seen"
        return Exploration(verdict, why, tuple(violations), unseen, self._counts())

    def _choices_to(self, number: int) -> list[int]:
        choices = []
        while number:
            choices.append(self.choices[number])
            number = self.parents[number]
        return choices[::-1]

    def _broken(self, broken: Always[S] | Quiescent[S], number: int, state: S) -> Broken[S, M]:
        moves, real = self._run_to(number, state)
        reason = broken.check(real)
        if reason is None:
            raise NonDeterministicError(len(moves), f"{broken.name} broken by {state}", f"no fault in {real}")
        return Broken(broken.name, reason, moves, real)

    def _run_to(self, number: int, state: S) -> tuple[tuple[M, ...], S]:
        """The moves that lead to the state of that number, and where they really lead: `state` but for a symmetry."""
        run: list[M] = []
        real = self.system.start()
        visited = self._representative(real)
        for place, choice in enumerate(self._choices_to(number), 1):
            moves, _ = self._in_order(visited, self.system.moves(visited))
            if choice >= len(moves):
                raise NonDeterministicError(place, f"move {choice} of {visited}", list(moves))
            visited = self._representative(self.system.after(visited, moves[choice]))
            if self.canonical is None:
                move, real = moves[choice], visited
            else:
                move, real = self._really(real, visited, place)
            run.append(move)
        if visited != state:
            raise NonDeterministicError(len(run), state, visited)
        return tuple(run), real

    def _really(self, real: S, visited: S, place: int) -> tuple[M, S]:
        """Return a move of the state `real` to one of which `visited` is the representative, and that state."""
        for move in self.system.moves(real):
            reached = self.system.after(real, move)
            if self._representative(reached) == visited:
                return move, reached
        raise NonDeterministicError(place, visited, real)

    def _representative(self, state: S) -> S:
        return state if self.canonical is None else self.canonical(state)


def traps(
    start: S,
    moves_of: Callable[[S], Sequence[M]],
    after: Callable[[S, M], S],
    may_never_happen: Callable[[M], bool] = lambda move: False,
    limits: ExplorationLimits | None = None,
) -> Iterator[tuple[tuple[M, ...], tuple[S, ...]]]:
    """The states that a run never leaves any more: one without moves, or several that it goes round for ever.

    That is so for a fair run, in which a move that is possible again and again is made at some time. The sets are the
    strongly connected components that nothing leads out of (Tarjan 1972), in the order in which a search depth first
    is through with them; so the first comes without any other being looked at.

    Parameters
    ----------
    start : S
    moves_of, after : callable
        As of a `System`.
    may_never_happen : callable, optional
        Whether a move is one that even a fair run need not make, such as a fault. It does not lead out.
    limits : ExplorationLimits, optional
        Of states and seconds.

    Yields
    ------
    (tuple of M, tuple of S)
        A run from `start` to the set, and its states.

    Raises
    ------
    UndecidedError
        If a limit is reached.

    Examples
    --------
    >>> steps = {"a": "ab", "b": "c", "c": "b"}
    >>> list(traps("a", lambda state: steps[state], lambda state, move: move))
    [(('b',), ('b', 'c'))]
    """
    limits, begun = limits or ExplorationLimits(), monotonic()
    order: dict[S, int] = {}
    is_open: set[S] = set()  # come to, and in no set so far
    waiting: list[S] = []  # the same, in order
    starts: list[tuple[tuple[M, ...], S]] = [((), start)]
    while starts:
        behind, root = starts.pop()
        if root in order:
            continue
        path: list[_Frame[S, M]] = [_Frame(root, iter(moves_of(root)), len(order))]
        order[root] = len(order)
        is_open.add(root)
        waiting.append(root)
        while path:
            frame = path[-1]
            move = next(frame.moves, None)
            if move is not None:
                reached = after(frame.state, move)
                if may_never_happen(move):
                    if reached not in order:
                        starts.append(((*behind, *_moves_along(path), move), reached))
                elif reached not in order:
                    path.append(_Frame(reached, iter(moves_of(reached)), len(order), move))
                    order[reached] = len(order)
                    is_open.add(reached)
                    waiting.append(reached)
                    if limits.states is not None and len(order) > limits.states:
                        raise UndecidedError(f"after {limits.states} states it has not come to rest")
                    if limits.seconds is not None and monotonic() - begun >= limits.seconds:
                        raise UndecidedError(f"the limit of {limits.seconds:g} s is reached")
                elif reached in is_open:
                    frame.lowest = min(frame.lowest, order[reached])
                else:
                    frame.leads_out = True
                continue
            whole = frame.lowest == order[frame.state]
            if whole:
                found: list[S] = []
                while frame.state not in found[-1:]:
                    found.append(waiting.pop())
                found.reverse()
                is_open.difference_update(found)
                if not frame.leads_out:
                    yield (*behind, *_moves_along(path)), tuple(found)
            path.pop()
            if path:
                path[-1].leads_out |= whole or frame.leads_out
                path[-1].lowest = min(path[-1].lowest, frame.lowest)


def _moves_along(path: Sequence[_Frame[S, M]]) -> Iterator[M]:
    return (frame.move for frame in path if frame.move is not None)


def resident_bytes() -> int:
    """Return how much memory this process occupies; where that is not known, the most that it ever did."""
    import resource  # not everywhere, and not needed without a limit of memory

    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        unit_bytes = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit_bytes
