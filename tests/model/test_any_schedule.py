"""Whatever the order of moves, the protocol holds; whatever is changed in a journal or bent in the protocol is seen."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barrierlab.impl.checkpoint.task import OperatorTask
from barrierlab.impl.messages import CheckpointBarrier, StreamMessage, Watermark
from barrierlab.model.checkpoint.trace import header_of_topology, read, write
from barrierlab.model.defects.alignment.A04_barrier_after_held_records import DrainsFirst
from barrierlab.model.spec.history import COORDINATOR, Entry
from barrierlab.model.spec.topology import Topology
from tests.breadth import examples
from tests.model.mutants import PromisesTheMost
from tests.model.reference_dataflow import UnalignedWorld, World, judge_entries, topology_named

GRAPHS = (
    "a->s",
    "a->map map->s",
    "a->join b->join join->s",
    "a->map a->flat map->u flat->u u->s",
    "a->win win->sum sum->s",
    "a->keep keep->u b->u u->win win->s u->s",
)


JOIN = 2


def topologies() -> st.SearchStrategy[Topology]:
    """One of `GRAPHS`, each operator with one task or two."""

    def wide(text: str) -> st.SearchStrategy[Topology]:
        operators = Topology.parse(text).operators
        return st.fixed_dictionaries(dict.fromkeys(operators, st.sampled_from((1, 1, 2)))).map(
            lambda parallelism: topology_named(text, **parallelism)
        )

    return st.sampled_from(GRAPHS).flatmap(wide)


@settings(max_examples=examples(150), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    topology=topologies(),
    chance=st.randoms(use_true_random=False),
    events=st.integers(1, 8),
    checkpoints=st.integers(0, 4),
    aborts=st.integers(0, 2),
    capacity=st.integers(1, 3),
    most=st.integers(1, 4),
    most_bytes=st.sampled_from((3, 30, 1000)),
)
def test_any_schedule_holds(
    topology: Topology,
    chance: random.Random,
    events: int,
    checkpoints: int,
    aborts: int,
    capacity: int,
    most: int,
    most_bytes: int,
) -> None:
    """There would be an order of moves in which a checkpoint of the sound protocol is inconsistent."""
    world = World(topology, chance.randrange, events, checkpoints, aborts, capacity, most, most_bytes).run()
    verdict = world.verdict()
    assert verdict.verdict == "holds", verdict.violations[0]
    assert not any(world.channels.values())
    text = write(world.entries, header_of_topology(topology))
    head, entries = read(text)
    assert (entries, write(entries, head)) == (world.entries, text)


@settings(max_examples=examples(150), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    topology=topologies(),
    chance=st.randoms(use_true_random=False),
    events=st.integers(1, 8),
    checkpoints=st.integers(1, 4),
    aborts=st.integers(0, 2),
    capacity=st.integers(1, 4),
    most=st.integers(1, 4),
    most_bytes=st.sampled_from((3, 1000)),
    flagged=st.booleans(),
    threshold_ms=st.sampled_from((0, 3, 10, 10**6)),
    most_in_flight=st.sampled_from((3, 1000)),
    some_align=st.booleans(),
)
def test_any_schedule_with_overtaking_holds(topology: Topology, chance: random.Random, **options: int) -> None:
    """There would be an order of moves in which an unaligned checkpoint loses or doubles what was in flight."""
    names = {"most": "most_buffered", "most_bytes": "most_buffered_bytes"}
    world = UnalignedWorld(topology, chance.randrange, **{names.get(n, n): o for n, o in options.items()}).run()
    verdict = world.verdict()
    assert verdict.verdict == "holds", verdict.violations[0]
    assert not any(world.channels.values())
    head, entries = read(write(world.entries, header_of_topology(topology)))
    assert entries == world.entries


def sound(seed: int, world: type[World] = World, graph: int | None = None, **options: int) -> World:
    """A run of one of the graphs, that nobody aborts."""
    chance = random.Random(seed)
    topology = topology_named(GRAPHS[seed % len(GRAPHS) if graph is None else graph])
    return world(topology, chance.randrange, **{"events": 4, "checkpoints": 2, **options}).run()


@cache
def of_sound(seed: int, world: type[World], **options: int) -> str:
    """Return the verdict of such a run, beside which more than one mutant is laid."""
    return sound(seed, world, **options).verdict().verdict


def test_schedules_see_everything_happen() -> None:
    """A world in which nothing is ever buffered, aborted or completed would hold for nothing."""
    options = {"graph": JOIN, "events": 8, "checkpoints": 3}
    runs = [sound(seed, **options, aborts=seed % 2, most_buffered_bytes=(1000, 3)[seed % 2]) for seed in range(30)]
    seen = Counter(entry[1] for run in runs for entry in run.entries)
    for verb in ("completed", "aborted", "buffer", "ignore", "cancel", "decline", "end", "snapshot", ">push", ">drain"):
        assert seen[verb] > 0, verb


def test_schedules_see_barriers_overtake() -> None:
    """A world in which no barrier passes anything, or nothing is recorded, would hold for nothing."""
    options = {"graph": JOIN, "events": 8, "checkpoints": 3, "capacity": 4}
    runs = [
        sound(seed, UnalignedWorld, **options, flagged=bool(seed % 2), aborts=seed % 3, threshold_ms=5)
        for seed in range(30)
    ]
    seen = Counter(entry[1] for run in runs for entry in run.entries)
    for verb in ("completed", "capture", ">overtake", ">expire", "buffer", ">drain", "ignore", ">push"):
        assert seen[verb] > 0, verb
    recorded_by = {entry[2] in run.left for run in runs for entry in run.entries if entry[1] == "capture"}
    assert recorded_by == {True, False}  # by sources and by the join


# Changed journals.

DROPPED = {"take", "deliver", "end", "send", "block", "snapshot", "completed", ">emit", ">trigger"}
DOUBLED = {"take", "deliver", "end", "send", "block", "snapshot", "completed", ">emit", ">trigger"}
SWAPPED = {"take", "deliver", "send", "block", "snapshot", "completed", ">emit", ">trigger", "resume"}


def changed(entries: list[Entry]) -> list[tuple[str, list[Entry]]]:
    """Every journal with one entry dropped or doubled, or two of a kind swapped."""
    journals = []
    for at, entry in enumerate(entries):
        before, after = entries[:at], entries[at + 1 :]
        if entry[1] in DROPPED:
            journals.append((f"dropped {entry}", before + after))
        if entry[1] in DOUBLED:
            journals.append((f"doubled {entry}", [*before, entry, entry, *after]))
        if entry[1] in SWAPPED:
            other = next((i for i, e in enumerate(after) if e[1:4] == entry[1:4] and e[4] != entry[4]), None)
            if other is not None:
                swapped = [*before, after[other], *after[:other], entry, *after[other + 1 :]]
                journals.append((f"swapped {entry}", swapped))
    return journals


@pytest.mark.parametrize("seed", range(12))
def test_a_changed_journal_is_seen(seed: int) -> None:
    """An event could be lost, doubled or reordered, or a snapshot or completion made up, and the verdict would hold."""
    world = sound(seed)
    assert world.verdict().verdict == "holds"
    for change, entries in changed(world.entries):
        verdict = judge_entries(entries, world.topology, world.limits, world)
        assert verdict.verdict == "broken", change


@pytest.mark.parametrize("seed", range(12))
def test_a_changed_record_is_seen(seed: int) -> None:
    """Anything that was in flight could be lost, doubled or reordered in the record, and the verdict would hold."""
    world = sound(seed, UnalignedWorld, events=8, capacity=4)
    assert world.verdict().verdict == "holds"
    completed = {entry[4] for entry in world.entries if entry[1] == "completed"}
    for at, entry in enumerate(world.entries):
        if entry[1] == "capture" and entry[4][0] in completed:
            for copies in (0, 2):
                entries = world.entries[:at] + [entry] * copies + world.entries[at + 1 :]
                assert judge_entries(entries, world.topology, world.limits, world).verdict == "broken", entry


# Bent protocols: each with the invariant that must see it, sooner or later.


class AppliesTwice(OperatorTask):
    """A retry: the operator gets every third event twice."""

    told = 0

    def deliver(self, input_id: int, message: StreamMessage) -> None:
        super().deliver(input_id, message)
        self.told += 1
        if self.told % 3 == 0 and type(message).__name__ == "Event":
            list(self.operator.process(input_id, message))


class WatermarkOvertakes(World):
    """Only events are buffered: a watermark passes what waits behind a barrier (A-05)."""

    def offer(self, name: str, index: int, message: object) -> None:
        if type(message) is Watermark and self.tasks[name].gate.is_blocked(index):
            self.tasks[name].deliver(index, message)
            self.settle(name)
        else:
            super().offer(name, index, message)


class DropsAMessage(World):
    """A channel drops its head when another message waits behind it, now and then."""

    count = 0

    def take(self, channel: str) -> object:
        self.count += 1
        if self.count % 7 == 0 and len(self.channels[channel]) > 1:
            self.channels[channel].popleft()
        return super().take(channel)


class DropsWhatIsHeld(World):
    """A full buffer drops what comes behind the barrier, as a bounded ring would."""

    def offer(self, name: str, index: int, message: object) -> None:
        if type(message).__name__ != "Event" or not self.tasks[name].gate.is_blocked(index):
            super().offer(name, index, message)


class SwallowsTheSecondBarrier(World):
    """A barrier that comes in behind another sets a bit and is gone (A-05)."""

    def offer(self, name: str, index: int, message: object) -> None:
        if type(message) is not CheckpointBarrier or not self.tasks[name].gate.is_blocked(index):
            super().offer(name, index, message)


class BarrierOvertakesTheOutbox(World):
    """The barrier has priority at a source: it passes what waits in the outbox (P-14)."""

    def settle(self, name: str) -> None:
        outbox = self.tasks[name].outbox
        if name in self.left and len(outbox) > 1 and type(outbox[-1][1]) is CheckpointBarrier:
            outbox.appendleft(outbox.pop())
        super().settle(name)


class CompletesEarly(World):
    """The first acknowledgement is enough (P-13)."""

    def hear(self, name: str) -> None:
        checkpoint_id = getattr(self.reports[name][0], "checkpoint_id", 0)
        super().hear(name)
        if checkpoint_id in self.coordinator.pending:
            self.note("completed", COORDINATOR, None, checkpoint_id)


class ForgetsACommand(World):
    """The command of a checkpoint is lost on its way to a source (P-01)."""

    def obey(self, name: str) -> None:
        if name == "b" and self.orders[name][0].__class__.__name__ == "Inject":
            self.orders[name].popleft()
        else:
            super().obey(name)

    def finish(self, name: str) -> None:
        if name != "b":  # the end would stand for the barrier
            super().finish(name)

    def moves(self) -> list:
        moves = super().moves()
        only_the_end_is_left = len(moves) == 1 and not self.left["b"] and not self.tasks["b"].outbox
        return [] if only_the_end_is_left and not self.orders["b"] else moves


class NoRoomNeeded(World):
    """Channels take whatever comes."""

    def has_room(self, name: str) -> bool:
        return True


class HoldsWithoutLimit(World):
    """The limit of buffered messages is not looked at (A-06)."""

    def _task(self, name: str) -> object:
        limits, self.limits = self.limits, type(self.limits)({}, 1000, 1000)
        try:
            return super()._task(name)
        finally:
            self.limits = limits


class PassesUnrecorded(UnalignedWorld):
    """The barrier overtakes what is in the channel, and nobody records that (P-16)."""

    def overtake(self, name: str, index: int) -> None:
        queue, at = self.channels[self.topology.inputs(name)[index]], len(self.passed(name, index) or [])
        queue.rotate(-at)
        self.passed = lambda *of: []
        super().overtake(name, index)
        del self.passed
        queue.rotate(at)


class ReadsTheChannelOnce(UnalignedWorld):
    """Anything that comes in after the snapshot and before the barrier is not recorded (U-04)."""

    def note(self, verb: str, node: str, channel: str | None, subject: object) -> None:
        before = next((entry[1] for entry in reversed(self.entries) if entry[1] != "capture"), "")
        if verb != "capture" or before != "take":
            super().note(verb, node, channel, subject)


class RecordsPastTheBarrier(UnalignedWorld):
    """Anything that is queued is recorded, also behind the barrier (U-05)."""

    def overtake(self, name: str, index: int) -> None:
        queue = self.channels[self.topology.inputs(name)[index]]
        barrier = queue[len(self.passed(name, index) or [])]
        queue.remove(barrier)
        queue.append(barrier)
        self.passed = lambda *of: list(queue)[:-1]
        super().overtake(name, index)
        del self.passed


class LeavesTheOutboxUnrecorded(UnalignedWorld):
    """The barrier goes ahead of the outbox, which is nobody's state."""

    def note(self, verb: str, node: str, channel: str | None, subject: object) -> None:
        if verb != "capture" or self.topology.ends(channel)[0] != node:
            super().note(verb, node, channel, subject)


MUTANTS = [
    (PassesUnrecorded, {"CUT"}),
    (ReadsTheChannelOnce, {"CUT"}),
    (RecordsPastTheBarrier, {"CUT"}),
    (LeavesTheOutboxUnrecorded, {"CUT"}),
    (DrainsFirst, {"FWD", "CUT"}),
    (WatermarkOvertakes, {"WM"}),
    (PromisesTheMost, {"WM"}),
    (DropsAMessage, {"FIFO"}),
    (DropsWhatIsHeld, {"NOLOSS"}),
    (SwallowsTheSecondBarrier, {"FIFO", "NOLOSS"}),
    (BarrierOvertakesTheOutbox, {"CUT"}),
    (AppliesTwice, {"CUT"}),
    (CompletesEarly, {"ONCE"}),
    (ForgetsACommand, {"LIVE"}),
    (NoRoomNeeded, {"BOUND"}),
    (HoldsWithoutLimit, {"BOUND"}),
]


@pytest.mark.parametrize(("bent", "invariants"), MUTANTS, ids=[bent.__name__ for bent, _ in MUTANTS])
def test_a_mutated_protocol_is_seen(bent: type[World] | type[OperatorTask], invariants: set[str]) -> None:
    """A known defect of the documents would pass; or the sound protocol would fail under the same schedules."""
    world = bent if issubclass(bent, World) else type(bent.__name__, (World,), {"task_class": bent})
    options = {"graph": JOIN, "events": 8, "checkpoints": 3, "most_buffered": 2}
    like = UnalignedWorld if issubclass(world, UnalignedWorld) else World
    broken: Counter[str] = Counter()
    for seed in range(40):
        assert of_sound(seed, like, **options) == "holds"
        broken.update({violation.invariant for violation in sound(seed, world, **options).verdict().violations})
        if invariants <= broken.keys():
            return
    raise AssertionError(broken)
