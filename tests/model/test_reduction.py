"""The reduction: it saves most states and changes no verdict; and each mutant is found, by a shortest run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from barrierlab.impl.checkpoint.actions import CoordinatorAction
from barrierlab.impl.checkpoint.alignment import AlignerAction, AlignmentAction, BarrierAligner
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.impl.messages import CheckpointBarrier
from barrierlab.model.checkpoint.components import SOUND, Components, with_aligner
from barrierlab.model.checkpoint.monitor import TASK
from barrierlab.model.checkpoint.partial_order import Ample, plans
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import Move, World, WorldState
from barrierlab.model.explore.checker import Always, Exploration, Property, Quiescent, explore
from tests.model.mutants import MUTANTS, MUTANTS_RECOVERING, MUTANTS_UNALIGNED

CHAIN = "a->s"
LONG = "a->b b->s"
JOIN = "a->join b->join join->s"
SHORT_JOIN = "a->join b->join"
DIAMOND = "a->l a->r l->join r->join join->s"
TWO_JOINS = "a->m b->m m->join a->join"
CRASH = Bounds(CHAIN, events=1, crashes=1, guarantee="exactly_once")


class ForgetsTheFinished(CheckpointCoordinator):
    """A task that has finished is asked for the next checkpoint all the same."""

    def trigger(self, now_ns: int) -> tuple[CoordinatorAction, ...]:
        actions = super().trigger(now_ns)
        for pending in self.pending.values():
            pending.outstanding.update(self.finished_tasks)
        return actions


class CountsFromTheSecond(BarrierAligner):
    """The first barrier is enough, if it is the second input's."""

    def on_barrier(self, input_id: int, barrier: CheckpointBarrier, now_ns: int) -> AlignerAction:
        action = super().on_barrier(input_id, barrier, now_ns)
        return self.all_in(now_ns) if action is AlignmentAction.BLOCKED and input_id == 1 else action


MACHINES = {
    "sound": SOUND,
    **MUTANTS,
    **MUTANTS_UNALIGNED,
    **MUTANTS_RECOVERING,
    "ForgetsTheFinished": Components(coordinator=ForgetsTheFinished),
    "CountsFromTheSecond": with_aligner(CountsFromTheSecond),
}


def properties(world: World) -> list[Property[WorldState, Move]]:
    """Return what is asked of every world."""
    return [Always("always", world.broken), Quiescent("at rest", world.liveness_violation)]


def whole(bounds: Bounds, components: Components = SOUND) -> tuple[World, Exploration[WorldState, Move]]:
    """Every run."""
    world = World(bounds, components)
    return world, explore(world, properties(world))


def reduced(bounds: Bounds, components: Components = SOUND, kind: type[Ample] = Ample) -> tuple[str, int]:
    """The verdict of what is left of all runs, and how many states that takes."""
    world, verdicts, states = World(bounds, components, forgets=True), set(), 0
    for planned in map(world.planned, plans(bounds)):
        ample = kind(planned, bounds)
        result = explore(planned, properties(planned), ample=ample.moves, acyclic=True)
        verdicts.add(result.verdict if result.verdict == "broken" or not ample.reduction_unsound else "void")
        states += result.counts.states
    return next(each for each in ("broken", "void", "holds") if each in verdicts), states


# Where each mutant is found: what a shortest run breaks, and how long it is.

FOUND: dict[str, tuple[Bounds, set[str], int]] = {
    "DrainsFirst": (Bounds(JOIN, events=1), {"CUT", "FWD"}, 13),
    "SnapshotsLate": (Bounds(CHAIN, events=1), {"ONCE"}, 5),  # it acknowledges what it has not taken yet
    "AppliesTwice": (Bounds(CHAIN), {"CUT"}, 9),
    "PromisesTheMost": (Bounds(JOIN, events=1, watermarks=1), {"TASK", "WM"}, 4),
    "KeepsTheWatermark": (Bounds(LONG, events=1, watermarks=1), {"FWD"}, 12),
    "NeverGivesUp": (Bounds(TWO_JOINS, events=0, expiries=1), {"LIVE"}, 15),
    "DropsWhatIsHeld": (Bounds(JOIN, events=1, watermarks=1), {"FIFO", "WM"}, 10),
    "ForgetsTheFirst": (Bounds(SHORT_JOIN, events=0, checkpoints=2), {"LIVE"}, 15),
    "SwallowsTheSecondBarrier": (Bounds(SHORT_JOIN, events=0, checkpoints=2), {"NOLOSS"}, 6),
    "WatermarkOvertakes": (Bounds(JOIN, events=1, watermarks=1), {"FIFO", "WM"}, 7),
    "SnapshotsAtTheFirst": (Bounds(JOIN, events=1), {"CUT"}, 10),
    "HoldsWithoutLimit": (Bounds(SHORT_JOIN, events=2, max_buffer_per_input=1), {"BOUND"}, 7),
    "CompletesEarly": (Bounds(CHAIN, events=1), {"ONCE"}, 3),
    "CompletesTwice": (Bounds(CHAIN, events=1), {"LIVE"}, 5),
    "PositionsLate": (Bounds(CHAIN, events=1), {"CUT"}, 5),
    "RecordsNothing": (Bounds(JOIN, events=1, mode="unaligned"), {"CUT"}, 12),
    "PassesUnrecorded": (Bounds(LONG, events=1, mode="unaligned"), {"CUT"}, 8),
    "LeavesTheOutboxUnrecorded": (Bounds(LONG, mode="unaligned", capacity=1), {"CUT"}, 12),
    "RecordsWithoutLimit": (Bounds(LONG, mode="unaligned", max_inflight_buffer_bytes=1), {"BOUND"}, 5),
    "CommitsAtOnce": (CRASH, {"REC"}, 5),
    "NeverCommits": (CRASH, {"REC"}, 9),
    "RollsNothingBack": (CRASH, {"REC"}, 7),
    "WritesTwice": (CRASH, {"REC"}, 9),
    "ForgetsItsState": (replace(CRASH, topology=LONG), {"REC"}, 12),
    "SkipsAnEvent": (CRASH, {"REC"}, 2),
    "LosesWhatIsInFlight": (replace(CRASH, topology=LONG, mode="unaligned"), {"REC"}, 10),
    "ForgetsTheFinished": (Bounds(CHAIN, events=0, closes=True), {"LIVE"}, 6),
    "CountsFromTheSecond": (Bounds(JOIN, events=1), {"CUT"}, 10),
}


SEEN_LATER = {"SwallowsTheSecondBarrier", "LeavesTheOutboxUnrecorded"}
"""The world knows at once what a journal shows when it goes on: see `assert_agree` in the tests of the world."""


GIVES_UP = {"RecordsWithoutLimit"}
"""Scopes in which the sound machine aborts the checkpoint by itself, so that its runs are not to be reduced."""


def test_every_mutant_is_looked_for() -> None:
    """One that nobody explores would not show what the world is blind to."""
    assert {*FOUND} == {*MACHINES} - {"sound"}


@pytest.mark.parametrize("name", FOUND)
def test_a_mutant_is_found_by_a_shortest_run(name: str) -> None:
    """A defect would be missed, misnamed, or shown by a roundabout run; or its trace would not show it."""
    bounds, broken, length = FOUND[name]
    world, result = whole(bounds, MACHINES[name])
    violation = result.violations[0]
    assert set(re.findall(r"(?:^|; )([A-Z]+): ", violation.reason)) == broken
    assert len(violation.moves) == length, list(map(str, violation.moves))
    told = {
        rests: {each.invariant for each in world.judged(violation.moves, rests).violations} for rests in (False, True)
    }
    if violation.property == "at rest" or name in SEEN_LATER:
        assert broken <= told[True]
    else:
        assert told[False] == broken - {TASK}
    assert reduced(bounds, MACHINES[name])[0] == "broken"
    assert reduced(bounds)[0] == ("void" if name in GIVES_UP else "holds")


# The reduced world says what the whole one does.

SCOPES = {
    "chain": Bounds(CHAIN, checkpoints=2),
    "chain, one aborted": Bounds(CHAIN, events=1, cancels=1),
    "chain, it ends early": Bounds(CHAIN, events=1, closes=True),
    "join": Bounds(JOIN, events=1),
    "join, room for one": Bounds(JOIN, events=1, capacity=1),
    "join, a deadline passes": Bounds(JOIN, events=0, expiries=1),
    "join, two checkpoints": Bounds(SHORT_JOIN, events=0, checkpoints=2),
    "join, it ends early": Bounds(SHORT_JOIN, events=0, closes=True),
    "join, watermarks": Bounds(SHORT_JOIN, events=1, watermarks=1),
    "diamond": Bounds(DIAMOND, events=1),
    "unaligned": Bounds(LONG, events=1, mode="unaligned"),
    "unaligned, room for one": Bounds(LONG, mode="unaligned", capacity=1),
    "unaligned, the sender records": Bounds(LONG, mode="unaligned", capacity=1, sender_records=True),
    "unaligned, one aborted": Bounds(LONG, events=1, mode="unaligned", cancels=1),
    "aligned_with_timeout": Bounds(LONG, events=1, mode="aligned_with_timeout"),
    "aligned_with_timeout, join": Bounds(SHORT_JOIN, events=1, mode="aligned_with_timeout"),
    "a crash": CRASH,
    "a crash, two checkpoints": replace(CRASH, checkpoints=2),
    "a crash, unaligned": replace(CRASH, topology=LONG, mode="unaligned"),
    "a crash, idempotent": replace(CRASH, events=2, guarantee="idempotent"),
    "a crash, it ends early": replace(CRASH, closes=True, guarantee="idempotent"),
}
LARGE_SCOPES = {
    "join, one aborted": Bounds(SHORT_JOIN, events=1, cancels=1),
    "join, two, one deadline passes": Bounds(SHORT_JOIN, events=0, checkpoints=2, expiries=1),
    "join, two checkpoints": Bounds(SHORT_JOIN, events=1, checkpoints=2),
    "join, it ends early": Bounds(SHORT_JOIN, events=1, closes=True),
    "join, room for one": Bounds(SHORT_JOIN, events=2, capacity=1),
    "unaligned join": Bounds(JOIN, events=1, mode="unaligned"),
    "unaligned join, room for one": Bounds(JOIN, events=1, mode="unaligned", capacity=1),
    "aligned_with_timeout join": Bounds(JOIN, events=1, mode="aligned_with_timeout"),
    "a crash, a join": replace(CRASH, topology=JOIN),
    "a crash, it ends early": replace(CRASH, closes=True),
}


def fitting(bounds: Bounds) -> Iterator[str]:
    """The machines that a scope has a use for."""
    for name in MACHINES:
        if name in MUTANTS_UNALIGNED:
            fits = bounds.mode != "aligned"
        elif name in MUTANTS_RECOVERING:
            fits = bool(bounds.crashes) and bounds.guarantee == "exactly_once"
        else:
            fits = name == "sound" or bounds.mode == "aligned"
        if fits:
            yield name


MANY_MACHINES = (
    *("join, room for one", "join, watermarks", "diamond"),
    *("join, it ends early", "aligned_with_timeout, join"),
    *("a crash, two checkpoints", "a crash, idempotent", "a crash, it ends early", "a crash, unaligned"),
)
"""Scopes that take seconds, as often as there are machines."""


def assert_same(name: str, reduced_verdict: str, whole_verdict: str) -> None:
    """One verdict; a mutant may also be one that is not to be reduced, and is noticed to be that."""
    assert reduced_verdict == whole_verdict or (reduced_verdict == "void" and name != "sound"), name


@pytest.mark.parametrize(
    "scope", [pytest.param(scope, marks=[pytest.mark.slow] * (scope in MANY_MACHINES)) for scope in SCOPES]
)
def test_the_reduction_changes_no_verdict(scope: str) -> None:
    """A defect would hide in a run that was put off for ever, or a sound machine would be called broken."""
    bounds = SCOPES[scope]
    for name in fitting(bounds):
        assert_same(name, reduced(bounds, MACHINES[name])[0], whole(bounds, MACHINES[name])[1].verdict)


@pytest.mark.slow
@pytest.mark.parametrize("scope", LARGE_SCOPES)
def test_the_reduction_changes_no_verdict_of_larger_scopes(scope: str) -> None:
    """As above, where more can be put off."""
    bounds = LARGE_SCOPES[scope]
    for name in fitting(bounds):
        assert_same(name, reduced(bounds, MACHINES[name])[0], whole(bounds, MACHINES[name])[1].verdict)


def ends(world: World, kind: type[Ample] | None = None) -> set[WorldState]:
    """Return the states in which the runs of a world end."""
    found: set[WorldState] = set()
    ample = None if kind is None else kind(world).moves
    explore(world, [Quiescent("", lambda state: found.add(state))], ample=ample, acyclic=True)
    return found


UNPLANNED = [scope for scope, bounds in SCOPES.items() if not bounds.cancels and not bounds.expiries]


@pytest.mark.parametrize("scope", UNPLANNED)
def test_all_that_ends_is_still_reached(scope: str) -> None:
    """A state that one order of moves alone leads to would never be judged. (Plans trade one end for another.)"""
    world = World(SCOPES[scope])
    assert ends(world, Ample) == ends(world)


class IgnoresOrders(Ample):
    """An order to a task may wait until that has nothing else to do."""

    def moves(self, state: WorldState, moves: Sequence[Move]) -> Sequence[Move]:
        left = [move for move in moves if move.kind != "order"]
        return super().moves(state, left) if left else moves


class ObeysAtOnce(Ample):
    """Every order comes at once."""

    def _may_be_obeyed(self, state: WorldState, move: Move) -> bool:
        return True


class NobodyElse(Ample):
    """Nothing more will come to an input that is empty."""

    def _is_over(self, state: WorldState, at: int) -> bool:
        return True


class TriggersFirst(Ample):
    """Nobody looks at when a checkpoint is begun, though tasks end and the job fails."""

    def moves(self, state: WorldState, moves: Sequence[Move]) -> Sequence[Move]:
        return [move for move in moves if move.kind == "trigger"] or super().moves(state, moves)


class OneAfterTheOther(Ample):
    """A task does all that it can before the next does anything."""

    def moves(self, state: WorldState, moves: Sequence[Move]) -> Sequence[Move]:
        first = next((move.numbers[0] for move in moves if move.kind == "task"), None)
        return [move for move in moves if move.kind == "task" and move.numbers[0] == first] or moves


@pytest.mark.parametrize("kind", [IgnoresOrders, ObeysAtOnce, NobodyElse, TriggersFirst, OneAfterTheOther])
def test_a_reduction_that_is_none_is_noticed(kind: type[Ample]) -> None:
    """The tests above would let any reduction pass."""
    assert any(reduced(bounds, MACHINES[name], kind)[0] != "broken" for name, (bounds, _, _) in FOUND.items())


# What it saves.

STANDARD_JOINS = {
    "aligned": (Bounds(JOIN, events=2), 13_480, 343),
    "two checkpoints": (Bounds(JOIN, events=1, checkpoints=2), 29_759, 378),
    "unaligned": (Bounds(JOIN, events=1, mode="unaligned"), 3_339, 165),
    "aligned_with_timeout": (Bounds(JOIN, events=1, mode="aligned_with_timeout"), 5_056, 295),
    "a deadline passes": (Bounds(JOIN, events=1, expiries=1), 35_549, 534),
}


@pytest.mark.parametrize(("bounds", "states", "left"), STANDARD_JOINS.values(), ids=STANDARD_JOINS)
def test_most_states_are_saved(bounds: Bounds, states: int, left: int) -> None:
    """Larger scopes would be out of reach; or a reduction that saves more than before would go unexamined."""
    assert reduced(bounds) == ("holds", left)
    assert left * 10 < states


@pytest.mark.slow
@pytest.mark.parametrize(("bounds", "states", "left"), STANDARD_JOINS.values(), ids=STANDARD_JOINS)
def test_the_states_that_are_saved_are_there(bounds: Bounds, states: int, left: int) -> None:
    """The number said to be saved would be a number that nobody has counted."""
    result = whole(bounds)[1]
    assert (result.verdict, result.counts.states) == ("holds", states)


TIGHT = {
    "join": Bounds(JOIN, capacity=1),
    "join, two checkpoints": Bounds(JOIN, events=1, capacity=1, checkpoints=2),
    "join, what is buffered is bounded": Bounds(JOIN, capacity=1, max_buffer_per_input=1),
    "diamond": Bounds(DIAMOND, capacity=1, events=2),
    "unaligned": Bounds(JOIN, events=1, capacity=1, mode="unaligned"),
    "the sender records": Bounds(JOIN, events=1, capacity=1, mode="unaligned", sender_records=True),
}


@pytest.mark.parametrize("bounds", TIGHT.values(), ids=TIGHT)
def test_backpressure_never_locks_up(bounds: Bounds) -> None:
    """Tasks that wait for room would wait for each other, with a barrier between them (protocol rules 7 and 16)."""
    assert reduced(bounds)[0] == "holds"


# No symmetry.


def mirrored(value: object) -> str:
    """The text of a value, with the sources a and b exchanged."""
    return re.sub(r"\b[ab](?=\d*\b)", lambda found: "ba"["ab".index(found[0])], str(value))


def test_two_equal_sources_may_be_exchanged() -> None:
    """The claim of `model.checkpoint.partial_order` on symmetry would be wrong: with two inputs, one at most has
    something to drain."""
    world = World(Bounds(JOIN, events=1))
    mirror, level = {world.start(): world.start()}, [world.start()]
    while level:
        following = []
        for state in level:
            other = {str(move): move for move in world.moves(mirror[state])}
            moves = world.moves(state)
            assert sorted(map(mirrored, moves)) == sorted(other)
            for move in moves:
                reached = world.after(state, move)
                there = world.after(mirror[state], other[mirrored(move)])
                if reached not in mirror:
                    following.append(reached)
                assert mirror.setdefault(reached, there) == there
        level = following
    assert len(mirror) == len(set(mirror.values())) == 1_297


def test_equal_sources_may_not_be_exchanged_where_there_are_three() -> None:
    """A symmetry would be tempting that is none: a join drains what it buffered in the order of its inputs.

    Runs of 11 moves that are the same but for the names of a and b: both leave a1 and b1 buffered, and the next move
    has a1 take effect in both. So these two states are not each other's mirror, though all before them are.
    """
    world = World(Bounds("a->join b->join c->join", events=1))
    commands = ["trigger 1", "inject a", "emit a", "inject b", "emit b", "inject c"]
    run = [*commands, *["deliver a->join"] * 2, *["deliver b->join"] * 2, "deliver c->join"]
    states, effects = [world.start()] * 2, []
    for text in run:
        notes = []
        for which, its_text in enumerate((text, mirrored(text))):
            move = next(move for move in world.moves(states[which]) if str(move) == its_text)
            states[which], told = world.noted(states[which], move)
            notes.append([note[:3] for note in told])
        assert str(notes[1]) == mirrored(str(notes[0]))
    for state in states:
        _, told = world.noted(state, world.move("drain join"))
        effects.append([(note[2], str(note[3])) for note in told if note[0] == "deliver"])
    assert effects == [[("a->join", "a1")]] * 2


# What it may be asked.


def test_plans_are_all_ways_to_give_one_checkpoint_up() -> None:
    """A time at which a checkpoint may be aborted would be left out."""
    planned = [
        (each.aborts_one, each.expiries, each.may_expire) for each in plans(Bounds(JOIN, checkpoints=2, expiries=1))
    ]
    joins = [((n, behind), 1, ("join",)) for n, behind in ((1, 0), (2, 0), (2, 1))]
    assert planned == [(None, 0, ()), *joins]
    assert list(plans(CRASH)) == [CRASH]


def test_a_world_that_aborts_by_itself_is_not_reduced_silently() -> None:
    """Anything that a task refuses by itself would be refused at one time only, and that would pass for a verdict."""
    for limit_bytes, reduction_unsound in ((10_000, False), (1, True)):
        world = World(Bounds(SHORT_JOIN, events=1, watermarks=1, max_buffer_memory_bytes=limit_bytes))
        ample = Ample(world)
        assert not ample.reduction_unsound
        explore(world, ample=ample.moves, acyclic=True)
        assert ample.reduction_unsound == world.gave_up == reduction_unsound
