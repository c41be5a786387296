"""Whatever crashes and whenever, what survives is right; whatever is bent in the recovery is seen."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from barrierlab.impl.checkpoint.actions import Notify, Publish
from barrierlab.impl.checkpoint.recovery import Restore, TaskRestore
from barrierlab.impl.checkpoint.report import Acknowledge
from barrierlab.impl.checkpoint.transactions import Ledger, SinkWriter
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, Event
from barrierlab.impl.storage.snapshot import TaskSnapshot
from barrierlab.model.checkpoint.trace import header_of_topology, read, write
from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.history import COORDINATOR, Entry
from barrierlab.model.spec.topology import Topology
from tests.breadth import examples
from tests.model.reference_dataflow import FINISHED, topology_named
from tests.model.reference_recovery import FallibleWorld
from tests.model.test_any_schedule import GRAPHS, JOIN, topologies

WINDOW = 4
GUARANTEES = ("exactly_once", "at_least_once", "idempotent")


@st.composite
def promises(draw: st.DrawFn) -> tuple[Topology, dict[str, str]]:
    """A topology, and what its sinks guarantee.

    Where several tasks share the work, a restore may share it otherwise, so events get other names: no sink could be
    idempotent (protocol rule 23).
    """
    topology = draw(topologies())
    is_narrow = all(topology.parallelism(operator) == 1 for operator in topology.operators)
    kinds = GUARANTEES if is_narrow else GUARANTEES[:2]
    return topology, {sink: draw(st.sampled_from(kinds)) for sink in topology.sinks}


@settings(max_examples=examples(200), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    promised=promises(),
    chance=st.randoms(use_true_random=False),
    falls=st.lists(st.integers(1, 150), max_size=4),
    events=st.integers(1, 8),
    checkpoints=st.integers(0, 5),
    aborts=st.integers(0, 1),
    capacity=st.integers(1, 4),
    flagged=st.booleans(),
    threshold_ms=st.sampled_from((0, 3, 10, 10**6)),
    some_align=st.booleans(),
    doubts=st.integers(0, 2),
    damages=st.integers(0, 2),
    marks=st.integers(0, 6),
)
def test_any_crash_holds(
    promised: tuple[Topology, dict[str, str]], chance: random.Random, falls: list[int], **options: int
) -> None:
    """There would be a schedule and a crash after which an event has its effect twice, never, or too early outside."""
    topology, guarantees = promised
    world = FallibleWorld(topology, chance.randrange, falls=falls, guarantees=guarantees, **options).run()
    verdict = world.verdict()
    assert verdict.verdict == "holds", verdict.violations[0]
    assert has_ended(world)
    head, entries = read(write(world.entries, header_of_topology(topology)))
    assert entries == world.entries


def has_ended(world: FallibleWorld) -> bool:
    """Return whether the job came to its end, and nothing is left anywhere."""
    over = all(task.finished for task in world.tasks.values()) and not any(world.channels.values())
    return over and not world.failed and world.coordinator.ended


def fallen(
    seed: int, world: type[FallibleWorld] = FallibleWorld, graph: int | None = None, **options: object
) -> FallibleWorld:
    """A run of one of the graphs with three crashes, and an exactly-once sink."""
    chance = random.Random(seed)
    topology = topology_named(GRAPHS[seed % len(GRAPHS) if graph is None else graph])
    falls = sorted(chance.randrange(20, 200) for _ in range(3))
    usual = {"events": 8, "checkpoints": 8, "capacity": 4, "falls": falls, "threshold_ms": 5}
    guarantees = dict.fromkeys(topology.sinks, "exactly_once")
    return world(topology, chance.randrange, **{"guarantees": guarantees, **usual, **options}).run(5000)  # type: ignore[arg-type]


def test_crashes_see_everything_happen() -> None:
    """A world in which nothing is ever restored, rolled back or lost would hold for nothing."""
    runs = [fallen(seed, flagged=bool(seed % 2), doubts=seed % 3, damages=seed % 2) for seed in range(60)]
    assert {run.verdict().verdict for run in runs} == {"holds"}
    seen = Counter(entry[1] for run in runs for entry in run.entries)
    for verb in (
        ">crash",
        ">restore",
        "restored",
        "restored_in_flight",
        "prepare",
        "commit",
        "rollback",
        ">notify",
        ">publish",
    ):
        assert seen[verb] > 0, verb
    restored_in_flight = {type(entry[4]) for run in runs for entry in run.entries if entry[1] == "restored_in_flight"}
    assert restored_in_flight == {Event, EndOfInput}
    restores = Counter(entry[4] > 0 for run in runs for entry in run.entries if entry[1] == ">restore")
    assert min(restores[True], restores[False]) > 10
    repeated = [entry for run in runs for entry in run.entries if entry[1] == "commit" and not entry[4][1]]
    assert repeated
    gone = {entry[2] == COORDINATOR for run in runs for entry in run.entries if entry[1] == ">crash"}
    assert gone == {True, False}
    reasons = {entry[4][1] for run in runs for entry in run.entries if entry[1] == "aborted"}
    assert {"store in doubt", "store failed", "job failed"} <= reasons


# Changed journals.

ALWAYS = {">restore", "restored", "restored_in_flight", "write", "commit"}
SURVIVING = {">emit", "send", "take", "deliver"}  # of events


def survives(run: Run, entry: Entry) -> bool:
    """Return whether what an entry says of its task has happened after all."""
    at_ns, _, node, _, _ = entry
    for attempt, checkpoint_id in run.surviving:
        cut = attempt.cut(node, checkpoint_id)
        until = cut.at_ns if cut is not None else attempt.history.end_ns + 1
        if attempt.start_ns <= at_ns < until:
            return True
    return False


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed in (3, 5))) for seed in range(6)])
def test_a_changed_journal_of_a_recovery_is_seen(seed: int) -> None:
    """A restore could lose or double what it restores, or a sink what it shows, and the verdict would hold."""
    guarantee = GUARANTEES[seed % 2]
    world = fallen(seed, flagged=bool(seed % 3), guarantees={"s": guarantee})
    assert world.verdict().verdict == "holds"
    run = Run.of(world.entries, world.topology)
    interrupted = {attempt.start_ns for attempt in run.attempts if attempt.interrupted}
    changed = 0
    for at, entry in enumerate(world.entries):
        is_mute = entry[1] == "commit" and not entry[4][1]  # shows nothing
        if (entry[1] in ALWAYS and not is_mute and entry[0] not in interrupted) or (
            entry[1] in SURVIVING and type(entry[4]) is Event and survives(run, entry)
        ):
            changed += 1
            for copies in (0, 2):
                world.entries[at : at + 1] = [entry] * copies
                verdict = world.verdict().verdict
                world.entries[at : at + copies] = [entry]
                assert verdict == "broken", (copies, entry)
    assert changed > 20


# Bent recoveries: each with the invariants that must see it, sooner or later.


class ForgetsWhatWasInFlight(FallibleWorld):
    """The channels begin empty, as if the source would send it again (U-11)."""

    def in_flight(self, restore: Restore) -> Mapping[str, Sequence[object]]:
        return {}


class PutsBackTwice(FallibleWorld):
    """Receiver and sender both restored what either recorded."""

    def in_flight(self, restore: Restore) -> Mapping[str, Sequence[object]]:
        return {channel: [m for m in messages for _ in range(2)] for channel, messages in restore.channels.items()}


class PutsBackBackwards(FallibleWorld):
    """Anything that the sender recorded comes ahead of what the receiver did."""

    def in_flight(self, restore: Restore) -> Mapping[str, Sequence[object]]:
        return {channel: messages[::-1] for channel, messages in restore.channels.items()}


class PutsBackIntoAnotherChannel(FallibleWorld):
    """The index of the channel is lost."""

    def in_flight(self, restore: Restore) -> Mapping[str, Sequence[object]]:
        names = list(restore.channels)
        return dict(zip(names, [*list(restore.channels.values())[1:], restore.channels[names[0]]], strict=True))


class ReinjectsTheBarrier(FallibleWorld):
    """The barrier is restored behind what it overtook (U-13)."""

    def in_flight(self, restore: Restore) -> Mapping[str, Sequence[object]]:
        if not restore.checkpoint_id:
            return restore.channels
        barrier = CheckpointBarrier.aligned(restore.checkpoint_id, restore.checkpoint_id)
        return {channel: [*messages, barrier] if messages else [] for channel, messages in restore.channels.items()}


class ForgetsTheEnd(FallibleWorld):
    """The end of a sender that had finished is in no record, and nobody puts it back."""

    def in_flight(self, restore: Restore) -> Mapping[str, Sequence[object]]:
        return {c: [m for m in messages if type(m) is Event] for c, messages in restore.channels.items()}


class DoesNotSeek(FallibleWorld):
    """The source begins with its first event, whatever its part says (rule 22)."""

    def restored_task(self, name: str, part: TaskRestore, checkpoint_id: int) -> str:
        return super().restored_task(name, part if part.position is None else replace(part, position=1), checkpoint_id)


class GoesOnWhereItCrashed(FallibleWorld):
    """The source goes on behind what it had made, whatever the checkpoint has of that."""

    def restore(self) -> None:
        self.most = dict.fromkeys(self.left, 1)
        for entry in self.entries:
            if entry[1] == ">emit":
                self.most[entry[2]] = max(self.most[entry[2]], entry[4].sequence + 1)
        super().restore()

    def restored_task(self, name: str, part: TaskRestore, checkpoint_id: int) -> str:
        if part.position is not None and not part.finished:
            part = replace(part, position=self.most[name])
        return super().restored_task(name, part, checkpoint_id)


class ForgetsAState(FallibleWorld):
    """One operator begins with nothing."""

    def restored_task(self, name: str, part: TaskRestore, checkpoint_id: int) -> str:
        said = super().restored_task(name, part, checkpoint_id)
        if name == "s":
            self.tasks[name].operator = self.operator(name)
        return said


class ForgetsTheWatermark(FallibleWorld):
    """A task promises anew what it had promised before its cut, and its window fires again."""

    options = {"graph": WINDOW, "marks": 12}

    def restored_task(self, name: str, part: TaskRestore, checkpoint_id: int) -> str:
        return super().restored_task(name, replace(part, watermark_ms=None), checkpoint_id)


class ForgetsWhatHadEnded(FallibleWorld):
    """An input that had ended before the cut is open again."""

    options = {"graph": JOIN}

    def restored_task(self, name: str, part: TaskRestore, checkpoint_id: int) -> str:
        return super().restored_task(name, replace(part, ended=()), checkpoint_id)


class RunsTheFinishedAgain(FallibleWorld):
    """A source that had finished ends once more."""

    def restored_task(self, name: str, part: TaskRestore, checkpoint_id: int) -> str:
        return super().restored_task(name, replace(part, finished=False), checkpoint_id)


class RunsBeforeAllIsBack(FallibleWorld):
    """Sources start first (U-14)."""

    def in_flight(self, restore: Restore) -> Mapping[str, Sequence[object]]:
        self.channels = {channel: type(self.channels[channel])() for channel in self.channels}
        for name in self.left:
            task = self.tasks[name]
            if not task.finished and task.position <= self.events:
                self.left[name] = 1
                self.emit(name)
        return super().in_flight(restore)


class DoesNotStoreWhatTheBarrierOvertook(FallibleWorld):
    """Only the receivers' records are kept."""

    def snapshot(self, part: Acknowledge) -> TaskSnapshot:
        return super().snapshot(replace(part, inflight_output=()))


class DoesNotStoreTheTransactions(FallibleWorld):
    """The part of a sink does not say what it has prepared."""

    def snapshot(self, part: Acknowledge) -> TaskSnapshot:
        return super().snapshot(replace(part, prepared=()))


class StoresTheLatestImage(FallibleWorld):
    """The state is written when the acknowledgement goes out, not as it was at the cut (P-12)."""

    def snapshot(self, part: Acknowledge) -> TaskSnapshot:
        task = self.tasks.get(part.task)
        if task is not None and part.task not in self.left:
            part = replace(part, image=task.operator.checkpoint())
        return super().snapshot(part)


class FallsBack(FallibleWorld):
    """The newest checkpoint is never read, whoever knows of it."""

    def read(self) -> Restore:
        self.damages, self.announced = 1, set()
        return super().read()


class CommitsAtOnce(SinkWriter):
    """Commits with its own part."""

    def prepare(self, checkpoint_id: int) -> None:
        super().prepare(checkpoint_id)
        self.on_complete(checkpoint_id)


class CommitsWhatItPrepares(FallibleWorld):
    """A sink does not wait for the checkpoint to be complete (P-13)."""

    writer_class = CommitsAtOnce


class KeepsNothing(SinkWriter):
    """Has no transaction to keep."""

    def recover(self, prepared: Sequence[str], checkpoint_id: int) -> None:
        super().recover((), checkpoint_id)


class RollsEverythingBack(FallibleWorld):
    """Whatever was open at the crash is rolled back."""

    writer_class = KeepsNothing


class KeepsEverything(SinkWriter):
    """Keeps what the external system still has."""

    def recover(self, prepared: Sequence[str], checkpoint_id: int) -> None:
        opened = [name for name, known in self.ledger._transactions.items() if known[1] == "is prepared"]
        super().recover([name for name in opened if name.startswith(f"{self.sink}-")], checkpoint_id)


class CommitsEverything(FallibleWorld):
    """Whatever was open at the crash is committed."""

    writer_class = KeepsEverything


class Forgetful(Ledger):
    """Shows a transaction as often as it is committed."""

    def commit(self, transaction: str) -> tuple[Event, ...]:
        self.seen = getattr(self, "seen", {})
        self.seen[transaction] = super().commit(transaction) or self.seen.get(transaction, ())
        return self.seen[transaction]


class CommitsTwice(FallibleWorld):
    """The external system does not know a transaction that it has seen."""

    ledger_class = Forgetful


class AnnouncesTooEarly(FallibleWorld):
    """The tasks are notified before the manifest is written."""

    def carry_out(self, actions: tuple) -> None:
        for action in actions:
            super().carry_out((action,))
            if type(action) is Publish:
                super().carry_out(tuple(Notify(task, action.checkpoint_id) for task in self.topology.tasks))


class TakesNoLastCheckpoint(FallibleWorld):
    """A task that has ended leaves no part behind (before FLIP-147)."""

    def hear(self, name: str) -> None:
        if self.reports[name][0] is FINISHED and not self.is_gone:
            self.reports[name].popleft()
            self.carry_out(self.coordinator.finished(name, self.now))
        else:
            super().hear(name)


class Remembers(SinkWriter):
    """Writes what is not there yet."""

    def write(self, event: Event) -> None:
        if event not in self.ledger.visible(self.sink):
            super().write(event)


class WritesNothingAgain(FallibleWorld):
    """A sink that writes at least once remembers what it wrote, also of what never happened."""

    options = {"guarantees": {"s": "at_least_once"}}

    writer_class = Remembers


MUTANTS = [
    (ForgetsWhatWasInFlight, {"REC"}),
    (PutsBackTwice, {"REC"}),
    (PutsBackBackwards, {"REC"}),
    (PutsBackIntoAnotherChannel, {"REC"}),
    (ReinjectsTheBarrier, {"REC"}),
    (ForgetsTheEnd, {"REC"}),
    (DoesNotSeek, {"REC"}),
    (GoesOnWhereItCrashed, {"REC"}),
    (ForgetsAState, {"CUT"}),
    (ForgetsTheWatermark, {"REC"}),
    (ForgetsWhatHadEnded, {"LIVE"}),
    (RunsTheFinishedAgain, {"REC"}),
    (RunsBeforeAllIsBack, {"REC"}),
    (DoesNotStoreWhatTheBarrierOvertook, {"REC"}),
    (DoesNotStoreTheTransactions, {"REC"}),
    (StoresTheLatestImage, {"REC"}),
    (FallsBack, {"REC"}),
    (CommitsWhatItPrepares, {"REC"}),
    (RollsEverythingBack, {"REC"}),
    (CommitsEverything, {"REC"}),
    (CommitsTwice, {"REC"}),
    (AnnouncesTooEarly, {"REC"}),
    (TakesNoLastCheckpoint, {"REC"}),
    (WritesNothingAgain, {"REC"}),
]


@pytest.mark.parametrize(("bent", "invariants"), MUTANTS, ids=[bent.__name__ for bent, _ in MUTANTS])
def test_a_mutated_recovery_is_seen(bent: type[FallibleWorld], invariants: set[str]) -> None:
    """A mistake that one can make in a recovery would pass; or the sound one would fail under the same schedules."""
    broken: Counter[str] = Counter()
    for seed in range(60):
        options = {"flagged": bool(seed % 2), **bent.options}
        broken.update({violation.invariant for violation in fallen(seed, bent, **options).verdict().violations})
        if invariants <= broken.keys():
            return
    raise AssertionError(broken)


@pytest.mark.slow
def test_a_counterexample_can_be_read() -> None:
    """Anything that is found would be a journal of hundreds of entries, in which nobody sees what went wrong."""
    lengths = []

    def is_broken(drawn: tuple[random.Random, list[int], int]) -> bool:
        chance, falls, events = drawn
        topology, sinks = topology_named("a->s"), {"s": "exactly_once"}
        world = RollsEverythingBack(topology, chance.randrange, events, 2, falls=falls, guarantees=sinks).run(1000)
        if world.verdict().verdict == "holds":
            return False
        lengths.append(len(world.entries))
        return True

    falls = st.lists(st.integers(1, 40), min_size=1, max_size=2)
    find(
        st.tuples(st.randoms(use_true_random=False), falls, st.integers(1, 3)),
        is_broken,
        settings=settings(max_examples=2000, derandomize=True, suppress_health_check=[HealthCheck.too_slow]),
    )
    assert lengths[-1] <= 30
