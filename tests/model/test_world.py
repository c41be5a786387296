"""The world: its monitors say what the journal says, its runs can be read back, and something happens in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.impl.checkpoint.recovery import Restore, Wiring
from barrierlab.impl.reasons import Reason
from barrierlab.impl.storage.snapshot import Checkpoint
from barrierlab.model.checkpoint import task_transitions
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.monitor import TASK
from barrierlab.model.checkpoint.protocols import EXACT as MODES
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import Move, World, WorldState
from barrierlab.model.explore.checker import Always, Property, Quiescent, SometimesMove, explore
from tests.model.mutants import MUTANTS, MUTANTS_RECOVERING, MUTANTS_UNALIGNED

CHAIN = "a->s"
LONG = "a->b b->s"
JOIN = "a->join b->join join->s"
DIAMOND = "a->l a->r l->join r->join join->s"
SHAPES = (
    (CHAIN, ()),
    (LONG, ()),
    (JOIN, ()),
    (DIAMOND, ()),
    (LONG, (("b", 2),)),
    (LONG, (("a", 2), ("b", 2))),
    (LONG, (("s", 2),)),
    (JOIN, (("join", 2),)),
)
CRASH = Bounds(CHAIN, events=2, crashes=1, guarantee="exactly_once")


def properties(world: World) -> list[Property[WorldState, Move]]:
    """Return what is asked of every world."""
    return [Always("always", world.broken), Quiescent("at rest", world.liveness_violation)]


def named(reason: str | None) -> frozenset[str]:
    """The invariants in a reason of `World.broken` or `World.liveness_violation`."""
    return frozenset(re.findall(r"(?:^|; )([A-Z]+): ", reason or ""))


def told(world: World, moves: Sequence[Move], rests: bool = False) -> frozenset[str]:
    """The invariants that the journal of a run breaks."""
    return frozenset(violation.invariant for violation in world.judged(moves, rests).violations)


def assert_agree(world: World, moves: Sequence[Move], state: WorldState) -> None:
    """Compare the monitor at the end of a run with the run's journal: both say the same, and neither before.

    A walk ends with the first violation: `World.broken` is what was broken first, and what a task does behind that is
    nobody's matter. There are four more differences, and no others:

    * TASK: of what an operator gives, and of what a part says, no journal tells.
    * RAISED: what a machine did before it raised is in no journal, so nobody but the world can say so.
    * NOLOSS, of what a task took last: the world knows that the move is over and that nothing came of the message; a
      journal that is cut off may have been cut off before something did (`model.spec.invariants.noloss`). To one that
      is not cut off it is lost.
    * CUT, of what is in an outbox: it was given off before the cut, and nobody recorded it. A journal knows of it when
      it is sent (`model.spec.history`, on what is sent), so it says the same when the run goes on.
    """
    monitor = named(world.broken(state))
    if "RAISED" in monitor or monitor == {TASK}:
        return
    monitor -= {TASK}
    journal = told(world, moves)
    if monitor - journal and monitor - journal <= {"NOLOSS", "CUT"}:
        later = told(world, moves, rests=True)
        assert monitor <= later
        journal = monitor
    assert monitor == journal, (world.broken(state), world.judged(moves).violations, list(map(str, moves)))
    if monitor:
        assert told(world, moves[:-1]) == frozenset(), list(map(str, moves))
    else:
        quiescent = named(world.liveness_violation(state))
        if quiescent == {TASK}:
            return
        assert quiescent == told(world, moves, rests=True), (world.liveness_violation(state), list(map(str, moves)))


def walk(world: World, choices: Sequence[int]) -> tuple[list[Move], WorldState]:
    """A run that `choices` choose, and on to where nothing but a fault can happen, or to where something is broken."""
    state, taken, left = world.start(), [], list(choices)
    while world.broken(state) is None:
        moves = world.moves(state)
        enabled_fair_moves = [move for move in moves if not move.is_fault]
        choice = left.pop(0) if left else 0
        allowed = moves if choice % 16 == 15 else enabled_fair_moves  # mostly no fault, or every job fails at once
        if not allowed and not enabled_fair_moves:
            break
        taken.append(allowed[choice // 16 % len(allowed)] if allowed else enabled_fair_moves[0])
        state = world.after(state, taken[-1])
    return taken, state


@st.composite
def bounds(draw: st.DrawFn, modes: Sequence[str] = MODES, **given: object) -> Bounds:
    """A small one. Where tasks share work, a restore may share it otherwise, so no sink can be idempotent (rule 23)."""
    topology, parallelism = draw(st.sampled_from(SHAPES))
    guarantees = ("", "exactly_once", "at_least_once", "idempotent")
    drawn = {
        "mode": draw(st.sampled_from(modes)),
        "events": draw(st.integers(1, 3)),
        "watermarks": draw(st.integers(0, 2)),
        "checkpoints": draw(st.integers(1, 3)),
        "capacity": draw(st.sampled_from((1, 2, 100))),
        "cancels": draw(st.integers(0, 2)),
        "expiries": draw(st.integers(0, 1)),
        "closes": draw(st.booleans()),
        "emits": draw(st.booleans()),
        "crashes": draw(st.integers(0, 2)),
        "guarantee": draw(st.sampled_from(guarantees[:3] if parallelism else guarantees)),
        "sender_records": draw(st.booleans()),
        "max_buffer_per_input": draw(st.sampled_from((1, 2, 100))),
        "max_buffer_memory_bytes": draw(st.sampled_from((60, 10_000))),
        "max_inflight_buffer_bytes": draw(st.sampled_from((1, 2, 10_000))),
    }
    return Bounds(topology, parallelism=parallelism, **{**drawn, **given})  # type: ignore[arg-type]


CHOICES = st.lists(st.integers(0, 2**10), max_size=100)


def quick(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """So many examples, always the same."""
    return settings(
        max_examples=examples, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )


@quick(60)
@given(bounds(), CHOICES)
def test_the_sound_machines_break_nothing_for_the_monitor_nor_for_the_journal(
    bounds: Bounds, choices: Sequence[int]
) -> None:
    """An exploration would hold where a journal is wrong, or the other way round; or the protocol would be broken."""
    world = World(bounds)
    moves, state = walk(world, choices)
    assert_agree(world, moves, state)
    assert world.broken(state) is None
    assert world.liveness_violation(state) is None


KINDS: dict[str, tuple[Components, dict[str, object]]] = {
    **{name: (components, {"modes": ("aligned",)}) for name, components in MUTANTS.items()},
    **{
        name: (components, {"modes": ("unaligned", "aligned_with_timeout")})
        for name, components in MUTANTS_UNALIGNED.items()
    },
    **{
        name: (components, {"guarantee": "exactly_once", "crashes": 1})
        for name, components in MUTANTS_RECOVERING.items()
    },
}


@pytest.mark.parametrize("name", KINDS)
@quick(5)
@given(data=st.data(), choices=CHOICES)
def test_the_monitor_names_what_the_journal_names(name: str, data: st.DataObject, choices: Sequence[int]) -> None:
    """A defect would be found by an exploration and not in its own trace, or under another name; or not be found."""
    components, given = KINDS[name]
    world = World(data.draw(bounds(**given)), components)  # type: ignore[arg-type]
    assert_agree(world, *walk(world, choices))


# A run, written down.


@quick(20)
@given(bounds(), CHOICES)
def test_a_run_is_read_back_and_gives_the_same_journal(bounds: Bounds, choices: Sequence[int]) -> None:
    """A trace could not be replayed, or would show another run than the one that was found."""
    world, other = World(bounds), World(bounds)
    walk(other, choices[::-1])  # so that its numbers are others
    moves, state = walk(world, choices)
    read, there = [], other.start()
    for move in moves:
        assert str(move) in map(str, other.moves(there))
        read.append(other.move(str(move)))
        there = other.after(there, read[-1])
    journal = world.journal(moves, rests=True)
    assert world.journal(moves, rests=True) == journal
    assert other.journal(read, rests=True) == journal
    assert other.trace(read) == world.trace(moves)
    assert (other.broken(there), other.liveness_violation(there)) == (
        world.broken(state),
        world.liveness_violation(state),
    )


def test_a_line_stands_for_whatever_is_next() -> None:
    """The second command of a source, or a part with another state, would be done for the first when read back."""
    world = World(replace(CRASH, checkpoints=2))
    run = "trigger 1, trigger 2, inject a, emit a, inject a, deliver a->s, ack a 1, ack a 2, ack s 1, publish 1"
    elsewhere, state = world.start(), world.start()
    for text in ["emit a", "emit a", "trigger 1", "trigger 2", "inject a", "inject a", "ack a 1"]:
        world.moves(elsewhere)
        elsewhere = world.after(elsewhere, world.move(text))
    for text in run.split(", "):
        move = next(move for move in world.moves(state) if str(move) == text)
        assert world.after(state, world.move(text)) == world.after(state, move)
        state = world.after(state, move)
    assert world.broken(state) is None


def test_a_line_that_is_none_is_refused() -> None:
    """A trace with a slip would be replayed as another run."""
    with pytest.raises(KeyError, match="emit c"):
        World(Bounds(CHAIN)).move("emit c")


@pytest.mark.parametrize(
    "bounds", [Bounds(LONG, events=1, mode="aligned_with_timeout", cancels=1), CRASH], ids=["cancel", "crash"]
)
def test_two_worlds_of_a_setup_are_the_same(bounds: Bounds) -> None:
    """A count would be luck: states would hang on what was asked before, or on the order of a set."""
    first, second = World(bounds), World(bounds)
    walk(second, [5, 7, 9, 11, 13])
    counts = [explore(world, properties(world)).counts[:3] for world in (first, first, second)]
    assert counts[0] == counts[1] == counts[2]
    states: list[list[WorldState]] = []
    for _ in range(2):
        world, seen = World(bounds), []
        explore(world, [Always("", seen.append)])
        states.append(seen)
    assert states[0] == states[1]


# How many states there are: these move when the meaning of a move does.

SIZES = {
    "chain": (Bounds(CHAIN), 68, 132),
    "chain, one aborted": (Bounds(CHAIN, events=1, cancels=1), 197, 467),
    "chain, one fails": (replace(CRASH, events=1), 246, 461),
    "chain, unaligned, the sender records": (
        Bounds(LONG, mode="unaligned", capacity=1, sender_records=True),
        632,
        1_679,
    ),
    "join": (Bounds(JOIN, events=1), 1_297, 4_209),
    "join, room for one": (Bounds(JOIN, events=1, capacity=1), 2_145, 7_129),
    "join, unaligned": (Bounds(JOIN, events=1, mode="unaligned"), 3_339, 11_425),
    "diamond": (Bounds(DIAMOND, events=1), 1_505, 5_677),
}


@pytest.mark.parametrize(("bounds", "states", "transitions"), SIZES.values(), ids=SIZES)
def test_a_scope_has_so_many_states(bounds: Bounds, states: int, transitions: int) -> None:
    """Moves would be missing, or states that are the same would be two, and nobody would notice."""
    world = World(bounds)
    result = explore(world, properties(world))
    assert result.verdict == "holds", result.why
    assert result.counts[:2] == (states, transitions)


# Something happens.

Notes = Callable[[str, Sequence[tuple[str, str, str | None, object]]], bool]


def does(*verbs: str) -> Notes:
    """Return whether all of it is in the notes of one move."""
    return lambda text, notes: set(verbs) <= {note[0] for note in notes}


def is_late(text: str, notes: Sequence[tuple[str, str, str | None, object]]) -> bool:
    """Return whether a barrier comes behind the threshold, or a deadline does, and what waited goes ahead."""
    return (text.endswith(" late") or text.startswith("expire")) and does("forward")(text, notes)


HAPPENS: dict[str, tuple[Bounds, dict[str, Notes]]] = {
    "aligned": (
        Bounds(JOIN, events=1),
        {
            "an alignment holds something": does("buffer"),
            "what was buffered goes on": lambda text, notes: text.startswith("drain") and does("deliver")(text, notes),
            "a checkpoint completes": does("completed"),
        },
    ),
    "one is aborted": (
        Bounds(CHAIN, events=1, cancels=1),
        {"one aborts": does("aborted"), "a source hears of it": does(">abort"), "a task does": does("cancel")},
    ),
    "a deadline passes": (
        Bounds(JOIN, events=0, expiries=1),
        {"a task refuses": does(">expire", "decline"), "it costs the checkpoint": does(">decline", "aborted")},
    ),
    "unaligned": (
        Bounds(JOIN, events=1, mode="unaligned"),
        {
            "a barrier overtakes": does(">overtake", "take", "capture"),
            "what comes in behind the cut is recorded": lambda text, notes: (
                text.startswith("deliver") and does("capture", "deliver")(text, notes)
            ),
            "a checkpoint completes": does("completed"),
        },
    ),
    "aligned_with_timeout": (
        Bounds(JOIN, events=1, mode="aligned_with_timeout"),
        {
            "a switch happens": is_late,
            "none is needed": lambda text, notes: not text.endswith(" late") and does("block", "forward")(text, notes),
        },
    ),
    "the sender records": (
        Bounds(LONG, mode="unaligned", capacity=1, sender_records=True),
        {"what a barrier passes on its way out": does("forward", "capture", "send")},
    ),
    "a crash": (
        replace(CRASH, checkpoints_again=1),
        {
            "it goes back to a checkpoint": lambda text, notes: text == "restore 1",
            "it goes back to the beginning": lambda text, notes: text == "restore 0",
            "it goes on": does("commit"),
            "another is complete after it": lambda text, notes: text == "publish 2",
            "the manifest is written after it": lambda text, notes: (
                does("completed")(text, notes) and not does(">notify")(text, notes)
            ),
            "the coordinator goes, and its manifest is there": lambda text, notes: text == "crash coordinator late",
        },
    ),
}


@pytest.mark.parametrize(("bounds", "expected"), HAPPENS.values(), ids=HAPPENS)
def test_something_happens(bounds: Bounds, expected: dict[str, Notes]) -> None:
    """A world that does nothing breaks nothing, and would hold."""
    world = World(bounds)

    def seen(happens: Notes) -> Callable[[WorldState, Move, WorldState], bool]:
        return lambda state, move, reached: happens(str(move), world.noted(state, move)[1])

    sometimes = [SometimesMove(name, seen(happens)) for name, happens in expected.items()]
    result = explore(world, [*properties(world), *sometimes])
    assert result.verdict == "holds", [str(violation) for violation in result.violations]


# Failures.


def run_of(world: World, texts: str) -> tuple[list[Move], WorldState]:
    """The run that is written as its moves, between commas."""
    state, taken = world.start(), []
    for text in texts.split(", "):
        taken.append(next(move for move in world.moves(state) if str(move) == text))
        state = world.after(state, taken[-1])
    return taken, state


COMPLETE = "emit a, trigger 1, inject a, deliver a->s, deliver a->s, ack a 1, ack s 1"


def test_a_restored_job_goes_on() -> None:
    """Anything that a crash costs would be lost, or done twice: only what is behind the checkpoint is emitted again."""
    world = World(CRASH)
    moves, state = run_of(world, f"{COMPLETE}, publish 1, notify s 1, emit a, deliver a->s, crash a, restore 1")
    assert [str(move) for move in world.moves(state)] == ["trigger 2", "emit a"]
    on, state = run_of(World(CRASH), ", ".join(map(str, moves)) + ", emit a, deliver a->s")
    made = [str(entry[4]) for entry in world.journal(on) if entry[1] == ">emit"]
    assert made == ["a1", "a2", "a2"]
    assert world.judged([*moves, *map(world.move, ("emit a", "deliver a->s"))], rests=True).verdict == "holds"


@pytest.mark.parametrize(
    ("falls", "restores"),
    [
        ("crash a, publish 1, restore 1", 1),
        ("crash coordinator, restore 0", 0),
        ("crash coordinator late, restore 1", 1),
    ],
)
def test_what_was_being_written_is_there_or_is_not(falls: str, restores: int) -> None:
    """A job would go back to what nobody wrote, or forget what was written (protocol rule 20)."""
    world = World(CRASH)
    moves, state = run_of(world, f"{COMPLETE}, {falls}")
    restored = {entry[4][0] for entry in world.journal(moves) if entry[1] == "restored"}  # type: ignore[index]
    assert restored == {restores}
    assert_agree(world, moves, state)
    assert world.liveness_violation(state) is None


def test_a_manifest_of_too_few_parts_is_seen_when_it_is_there() -> None:
    """A coordinator that is too quick would be excused by a crash: nobody would ask who had acknowledged."""
    world = World(CRASH, MUTANTS["CompletesEarly"])
    for falls, broken in (("crash a, publish 1", "ONCE"), ("crash coordinator late, restore 1", "REC")):
        moves, state = run_of(world, f"trigger 1, inject a, ack a 1, {falls}")
        assert named(world.broken(state)) == {broken}
        assert_agree(world, moves, state)


def test_a_plan_that_raises_breaks_the_restore() -> None:
    """A checkpoint that a job cannot be restored from would end the exploration, and be no counterexample."""

    def raises(checkpoint: Checkpoint, wiring: Wiring) -> Restore:
        raise ValueError("no plan")

    world = World(CRASH, Components(plan=raises))
    result = explore(world, properties(world))
    assert re.fullmatch(r"always: RAISED: coordinator: ValueError: no plan \(in test_world.py, line \d+\)", result.why)
    assert str(result.violations[0].moves[-1]) == "restore 1"
    assert len(world.rest(result.violations[0].state or world.start())[0]) > 0  # and it ends


def test_a_task_may_refuse_what_the_coordinator_has_aborted_already() -> None:
    """A sound source that records too much for a checkpoint that is over would be called broken."""
    bounds = Bounds(CHAIN, mode="unaligned", events=2, cancels=1, sender_records=True, max_inflight_buffer_bytes=1)
    world = World(bounds)
    moves, state = run_of(world, "trigger 1, cancel 1, emit a, emit a, inject a")
    assert [entry[4] for entry in world.journal(moves) if entry[1] == "decline"] == [(1, Reason.IN_FLIGHT_LIMIT)]
    assert world.broken(state) is None


def raises(*_: object) -> Any:
    """Return what no machine should do."""
    raise ValueError("not today")


@pytest.mark.parametrize(
    ("method", "bounds"),
    [
        ("acknowledge", Bounds(CHAIN, events=0)),
        ("trigger", Bounds(CHAIN, events=0)),
        ("abort", Bounds(CHAIN, events=0, cancels=1)),
        ("finished", Bounds(CHAIN, events=0, closes=True)),
        ("published", Bounds(CHAIN, events=0)),
        ("resume", CRASH),
    ],
)
def test_a_coordinator_that_raises_is_a_violation(method: str, bounds: Bounds) -> None:
    """An exploration would end with a traceback, and the run that leads there would be lost."""
    components = Components(coordinator=type("Raises", (CheckpointCoordinator,), {method: raises, "__slots__": ()}))
    world = World(bounds, components)
    result = explore(world, properties(world))
    why = result.why.removeprefix("always: ")
    assert re.fullmatch(r"RAISED: coordinator: ValueError: not today \(in test_world.py, line \d+\)", why)
    assert world.trace(result.violations[0].moves).endswith(f"! {why}\n")


@pytest.mark.parametrize("mode", ["aligned", pytest.param("aligned_with_timeout", marks=pytest.mark.slow)])
def test_steps_of_a_machine_are_forgotten_where_there_are_many(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large scope would end for want of memory; or a step that is repeated would be another one."""
    bounds = Bounds("a->join b->join join->s", events=1, mode=mode)
    found = []
    for most in (task_transitions.MOST_DRIVEN, 3):
        monkeypatch.setattr(task_transitions, "MOST_DRIVEN", most)
        world = World(bounds)
        found.append(explore(world, properties(world), acyclic=True))
        assert max(len(table._driven) for table in world.tables) <= most + 1
    first, again = found
    assert (again.verdict, again.counts[:3]) == (first.verdict, first.counts[:3])
    assert first.counts.states > 1000
