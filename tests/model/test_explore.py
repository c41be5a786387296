"""The explorer: against counts that other checkers agree on, and on systems small enough to see through."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import count
from mmap import mmap

import pytest

from barrierlab.model.explore.checker import (
    NEVER,
    Always,
    Counts,
    ExplorationLimits,
    NonDeterministicError,
    Property,
    Quiescent,
    Sometimes,
    SometimesMove,
    explore,
    resident_bytes,
)
from tests.model.ring import Move, Ring, least_rotation


class Graph:
    """A system that is written down: from each state its moves, each named for the state that it leads to."""

    def __init__(self, edges: dict[str, str], start: str = "a") -> None:
        self.edges = edges
        self.first = start

    def start(self) -> str:
        """The first state."""
        return self.first

    def moves(self, state: str) -> str:
        """One letter a move."""
        return self.edges.get(state, "")

    def after(self, state: str, move: str) -> str:
        """The move is the state."""
        return move


class Counters:
    """Some counters that know nothing of each other, each counting to `top`, and then over again if `round`."""

    def __init__(self, counters: int, top: int, cyclic: bool = False) -> None:
        self.counters = counters
        self.top = top
        self.cyclic = cyclic

    def start(self) -> tuple[int, ...]:
        """All at zero."""
        return (0,) * self.counters

    def moves(self, state: tuple[int, ...]) -> list[int]:
        """The counters that can go on; the first for ever, if they are cyclic."""
        return [i for i, value in enumerate(state) if value < self.top or (self.cyclic and i == 0)]

    def after(self, state: tuple[int, ...], move: int) -> tuple[int, ...]:
        """One counts."""
        return (*state[:move], (state[move] + 1) % (self.top + 1), *state[move + 1 :])


class Steps:
    """Counters that count up from where each begins, a few steps each."""

    def __init__(self, begins: tuple[int, ...], steps: int) -> None:
        self.begins, self.steps = begins, steps

    def start(self) -> tuple[int, ...]:
        """Each where it begins."""
        return self.begins

    def moves(self, state: tuple[int, ...]) -> list[int]:
        """The counters that can go on."""
        return [i for i, value in enumerate(state) if value < self.begins[i] + self.steps]

    def after(self, state: tuple[int, ...], move: int) -> tuple[int, ...]:
        """One counts."""
        return (*state[:move], state[move] + 1, *state[move + 1 :])


def is_not(state: str) -> Always[str]:
    """A property that one state breaks."""
    return Always(f"not {state}", lambda reached: f"it is {state}" if reached == state else None)


# Counts, from the literature of checkers: three tokens or six in a ring of three, channels of one or three.
RINGS = {
    "one token each, channels of one": (1, 1, 5_249, 12_214, 30),
    "one token each, channels of three": (1, 3, 14_693, 44_635, 32),
    "two tokens each, channels of three": (2, 3, 627_389, 2_300_638, 56),
}


@pytest.mark.parametrize(
    ("tokens", "capacity", "states", "generated", "levels"),
    [pytest.param(*size, id=name, marks=[pytest.mark.slow] * (size[2] > 100_000)) for name, size in RINGS.items()],
)
def test_counts_are_those_of_other_checkers(
    tokens: int, capacity: int, states: int, generated: int, levels: int
) -> None:
    """States would be missed, or visited twice. (Others count the first state as generated, and as a level.)"""
    ring = Ring(tokens, capacity)
    result = explore(ring, [ring.invariant])
    assert result.verdict == "holds"
    assert result.counts[:3] == (states, generated - 1, levels - 1)


def test_the_rings_defect_has_its_shortest_run() -> None:
    """A counterexample would be longer than it need be: other checkers find six moves, and no fewer break it."""
    ring = Ring(1, 3, forgets=True)
    result = explore(ring, [ring.invariant])
    assert result.verdict == "broken"
    assert result.why == "consistent snapshot: 2 tokens are recorded"
    (broken,) = result.violations
    assert len(broken.moves) == 6
    state = ring.start()
    for move in broken.moves:
        assert move in ring.moves(state)
        assert ring.all_tokens(state) is None
        state = ring.after(state, move)
    assert state == broken.state
    assert ring.all_tokens(state) == broken.reason


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize(("tokens", "capacity"), [(1, 1), (1, 2), (1, 3)])
def test_a_symmetry_changes_no_verdict(tokens: int, capacity: int, forgets: bool) -> None:
    """Anything that one of equal states shows would be lost with it, or the run would be none of the system's."""
    ring = Ring(tokens, capacity, forgets)
    whole = explore(ring, [ring.invariant])
    reduced = explore(ring, [ring.invariant], canonical=least_rotation)
    assert (reduced.verdict, reduced.why) == (whole.verdict, whole.why)
    for broken, same in zip(whole.violations, reduced.violations, strict=True):
        assert len(broken.moves) == len(same.moves)
        state = ring.start()
        for move in same.moves:
            assert move in ring.moves(state)
            state = ring.after(state, move)
        assert state == same.state
        assert ring.all_tokens(state) == same.reason


def test_a_symmetry_visits_one_of_equal_states() -> None:
    """A symmetry would cost time and save no states: each stands for three, but the few alike for themselves."""
    ring = Ring(1, 3)
    reduced = explore(ring, [ring.invariant], canonical=least_rotation).counts
    assert reduced.states == (14_693 + 2 * alike(ring)) // 3
    assert reduced.depth == 31


def alike(ring: Ring) -> int:
    """Return how many reachable states are three equal processes."""
    found: set[tuple[int, int, int]] = set()
    explore(ring, [Always("", lambda state: found.add(state) if len(set(state)) == 1 else None)])
    return len(found)


def test_the_shorter_of_two_runs_wins_whatever_is_asked() -> None:
    """A violation at rest would hide behind a longer run to one that is seen when it is found."""
    graph = Graph({"a": "bc", "b": "d"})
    always, quiescent = is_not("d"), Quiescent[str]("not c at rest", lambda state: "it is c" if state == "c" else None)
    result = explore(graph, [always, quiescent])
    assert [(broken.property, broken.moves) for broken in result.violations] == [("not c at rest", ("c",))]


def test_it_stops_at_the_first_violation() -> None:
    """A user who asks for one counterexample would wait for the whole of a large space."""
    graph = Graph({"a": "bc", "b": "d", "c": "e", "d": "f"})
    result = explore(graph, [is_not("b"), is_not("f")])
    assert [broken.property for broken in result.violations] == ["not b"]
    assert result.counts.states < 6


def test_it_collects_a_shortest_run_for_each_property() -> None:
    """Only the first of several faults would ever be seen, or one of them with a roundabout run."""
    graph = Graph({"a": "bc", "b": "d", "c": "de", "d": "e", "e": "f"})
    asked = [is_not("e"), is_not("d"), is_not("x"), Quiescent[str]("never rests", lambda state: f"it rests in {state}")]
    result = explore(graph, asked, collect=True)
    assert [(str(broken), "".join(broken.moves)) for broken in result.violations] == [
        ("not d: it is d", "bd"),
        ("not e: it is e", "ce"),
        ("never rests: it rests in f", "cef"),
    ]
    assert result.counts[:3] == (6, 7, 3)


def test_what_never_happens_is_broken_when_all_is_seen() -> None:
    """A model that does nothing would hold."""
    graph = Graph({"a": "bc", "b": "a"})
    asked: list[Property[str, str]] = [
        Sometimes("gets to c", lambda state: state == "c"),
        Sometimes("gets to d", lambda state: state == "d"),
        SometimesMove("goes back", lambda state, move, reached: (state, move, reached) == ("b", "a", "a")),
        SometimesMove("goes from c", lambda state, move, reached: state == "c"),
    ]
    result = explore(graph, asked)
    assert (result.verdict, result.unseen) == ("broken", ("gets to d", "goes from c"))
    assert [str(broken) for broken in result.violations] == [f"gets to d: {NEVER}", f"goes from c: {NEVER}"]
    assert explore(graph, [asked[0], asked[2]]).verdict == "holds"


def test_what_has_not_happened_yet_is_no_violation() -> None:
    """A limit would make a sound model broken; what is missing is reported all the same."""
    graph = Graph({"a": "b", "b": "c", "c": "d"})
    result = explore(graph, [Sometimes("gets to d", lambda state: state == "d")], limits=ExplorationLimits(depth=2))
    assert (result.verdict, result.unseen, result.violations) == ("undecided", ("gets to d",), ())


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        pytest.param(ExplorationLimits(states=100), "the limit of 100 states is reached", id="states"),
        pytest.param(ExplorationLimits(depth=5), "the limit of 5 moves is reached", id="depth"),
        pytest.param(ExplorationLimits(seconds=0.0), "the limit of 0 s is reached", id="seconds"),
        pytest.param(ExplorationLimits(memory_bytes=1), "the limit of 1 bytes of memory is reached", id="memory"),
    ],
)
def test_over_a_limit_nothing_holds(limits: ExplorationLimits, why: str) -> None:
    """A part of the space would pass for the whole."""
    ring = Ring(1, 1)
    result = explore(ring, [ring.invariant], limits=limits)
    assert (result.verdict, result.why) == ("undecided", why)
    assert result.counts.states < 5_249


@pytest.mark.parametrize(
    "limits", [ExplorationLimits(states=4), ExplorationLimits(depth=2), ExplorationLimits(4, 2, 1e9, 2**62)]
)
def test_exactly_a_limit_is_allowed(limits: ExplorationLimits) -> None:
    """A space that just fits would stay undecided."""
    result = explore(Graph({"a": "bc", "b": "d", "c": "d"}), limits=limits)
    assert result.verdict == "holds"
    assert result.counts[:3] == (4, 4, 2)


def test_a_violation_within_the_limits_is_one() -> None:
    """Anything that is broken would be undecided only because more could not be seen."""
    result = explore(
        Graph({"a": "bc", "b": "d", "d": "e"}), [is_not("c")], limits=ExplorationLimits(depth=1), collect=True
    )
    assert (result.verdict, result.why) == ("broken", "not c: it is c")


def test_rest_is_seen_at_the_limit_of_depth() -> None:
    """Anything that lies at rest at the deepest place that is allowed would not be looked at."""
    quiescent = Quiescent[str]("never rests", lambda state: f"it rests in {state}")
    result = explore(Graph({"a": "b", "b": "cd", "c": "e"}), [quiescent], limits=ExplorationLimits(depth=2))
    assert (result.verdict, result.why) == ("broken", "never rests: it rests in d")


def test_an_interrupt_gives_what_was_seen() -> None:
    """Ctrl-C would lose an hour's work, or pass for a verdict."""

    def interrupt(state: tuple[int, int, int]) -> None:
        if next(calls) == 1_000:
            raise KeyboardInterrupt

    ring, calls = Ring(1, 3), count()
    result = explore(ring, [Always("interrupted", interrupt)])
    assert (result.verdict, result.why) == ("undecided", "interrupted")
    assert 1_000 <= result.counts.states <= 1_001
    ring, calls = Ring(1, 3, forgets=True), count()
    result = explore(ring, [ring.invariant, Always("interrupted", interrupt)], collect=True)
    assert (result.verdict, len(result.violations[0].moves)) == ("broken", 6)


def test_what_cannot_be_packed_is_no_state() -> None:
    """A number that was cut off would stand for another part."""
    with pytest.raises(struct.error):
        explore(Steps((0, 2**32 - 2), 4), packing=struct.Struct("2I"))


def test_packing_changes_nothing() -> None:
    """Neither what is counted, nor the run that is shown, nor the state that it ends in."""
    begins = (0, 255, 70_000)
    counters = Steps(begins, 4)
    asked = [Always("third", lambda state: f"it is {state}" if state[1:] == (begins[1] + 3, begins[2] + 2) else None)]
    for properties in ([], asked):
        plain, packed = (explore(counters, properties, packing=each) for each in (None, struct.Struct("3I")))
        assert packed.counts[:3] == plain.counts[:3]
        assert (packed.verdict, packed.why, packed.violations) == (plain.verdict, plain.why, plain.violations)
    assert packed.verdict == "broken"


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who waits for minutes would see nothing move."""
    times = count()
    monkeypatch.setattr("barrierlab.model.explore.checker.monotonic", lambda: next(times))
    told: list[Counts] = []
    result = explore(Ring(1, 1), progress=told.append)
    assert len(told) > 10
    assert told == sorted(told)
    assert told[-1].states <= result.counts.states


def one_of(counters: Counters) -> Callable[[tuple[int, ...], Sequence[int]], Sequence[int]]:
    """The first counter that can go on: the others neither help nor hinder it."""
    return lambda state, moves: moves[:1]


@pytest.mark.parametrize("counters", range(1, 5))
def test_a_reduction_finds_the_same_rest(counters: int) -> None:
    """A deadlock would be reduced away, or nothing would be saved: of (top + 1)^n states top * n + 1 are enough."""
    system = Counters(counters, 3)
    rests: list[set[tuple[int, ...]]] = []
    for ample in (None, one_of(system)):
        seen: set[tuple[int, ...]] = set()
        result = explore(system, [Quiescent("", seen.add)], ample=ample)
        assert result.verdict == "holds"
        assert result.counts.states == (4**counters if ample is None else 3 * counters + 1)
        rests.append(seen)
    assert rests[0] == rests[1] == {(3,) * counters}


def test_a_reduction_puts_nothing_off_for_ever() -> None:
    """A counter that goes round for ever would hide what another does."""
    system = Counters(2, 3, cyclic=True)
    bad = Always[tuple[int, ...]]("small", lambda state: "too large" if state[1] == 3 else None)
    whole, reduced = explore(system, [bad]), explore(system, [bad], ample=one_of(system))
    assert whole.verdict == reduced.verdict == "broken"
    state = system.start()
    for move in reduced.violations[0].moves:
        assert move in system.moves(state)
        state = system.after(state, move)
    assert state[1] == 3


def test_what_cannot_be_put_off_for_ever_need_not_be_looked_after() -> None:
    """A reduction would be undone wherever two of its runs meet, or be kept where it loses a violation."""
    meeting = Graph({"a": "bc", "b": "d", "c": "de"})
    for acyclic, states in ((False, 5), (True, 4)):
        result = explore(meeting, ample=lambda state, moves: moves if state == "a" else moves[:1], acyclic=acyclic)
        assert result.counts.states == states
    round_again = Graph({"a": "ab"})
    assert explore(round_again, [is_not("b")], ample=lambda state, moves: moves[:1]).verdict == "broken"
    assert explore(round_again, [is_not("b")], ample=lambda state, moves: moves[:1], acyclic=True).verdict == "holds"


def test_a_system_with_chance_is_told_so() -> None:
    """A run would be printed that never was."""

    class Chance(Graph):
        """Leads elsewhere every time."""

        def after(self, state: str, move: str) -> str:
            return move if next(self.calls) % 5 else "x"

        calls = count(1)

    with pytest.raises(NonDeterministicError, match=r"should lead to .*allowed: .*look for chance"):
        explore(Chance({"a": "b", "b": "c", "c": "d", "d": "e"}), [is_not("d")])


def test_a_symmetry_that_is_none_is_told_so() -> None:
    """A run would be printed that is none of the system's."""
    graph = Graph({"a": "bc", "b": "d"})
    with pytest.raises(NonDeterministicError, match="that is no symmetry"):
        explore(graph, [is_not("d")], canonical=lambda state: {"b": "c", "c": "b"}.get(state, state))


def test_memory_is_told() -> None:
    """A limit of memory would never be reached, or always."""
    before = resident_bytes()
    with mmap(-1, 50_000_000) as ballast:  # pages of its own: what malloc gives may have been freed, and be resident
        ballast.write(bytes([1]) * len(ballast))
        assert 2**20 < before < resident_bytes() < 2**40


def test_moves_read_as_text() -> None:
    """A counterexample would print as tuples."""
    assert str(Move("send", 0)) == "send 0"
