"""One exploration on Spark, for a scope larger than memory: breadth first, a level a job, its states parted by hash.

Each partition finds out which of the states that were sent to it are new, explores those, and hands on what they lead
to. What it keeps lies in a folder that all workers see: a level's states, and sorted runs of all that were found
(`sim.check.rows`). Nothing is counted twice, and nothing is left out: states are compared whole.

A state is numbers, and every worker has tables of its own in which they stand for something. So workers explore with
closed tables (`model.explore.growth`): a state that needs an entry which is not there is put aside, the driver explores
it once the level is through, and every worker repeats that, in the same order, before it goes on. Tables are therefore
the same everywhere; that repeating comes to the same is checked.
"""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from barrierlab.model.checkpoint.check import properties
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.partial_order import Ample
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import Move, World, WorldState
from barrierlab.model.explore.checker import (
    BROKEN,
    HOLDS,
    UNDECIDED,
    Always,
    Broken,
    Counts,
    Exploration,
    Quiescent,
    System,
    UndecidedError,
)
from barrierlab.model.explore.growth import GROWTH, UnknownPartError
from barrierlab.sim.check.rows import Array, State, Visited, hashes_of, load, numbers, rows_of, save, states_of

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

M = TypeVar("M")
R = TypeVar("R")

MOST_HELD = 1 << 18
"""So many states, at most, that a worker holds before it hands them on."""
_DRIVER = "driver"
_TICK_S = 0.1


@dataclass(frozen=True)
class Subject(Generic[M]):
    """A system as each worker makes it.

    Attributes
    ----------
    system : System
        Its states are tuples of whole numbers, of one length; their tables grow as `model.explore.growth` asks.
    properties : sequence of Always and Quiescent
    ample : callable, optional
        As of `model.explore.checker.explore`, where no run comes back to a state.
    noted, take_note : callable
        What the system has noticed besides its tables, and the same of another worker's.
    """

    system: System[State, M]
    properties: Sequence[Always[State] | Quiescent[State]] = ()
    ample: Callable[[State, Sequence[M]], Sequence[M]] | None = None
    noted: Callable[[], Any] = lambda: None
    take_note: Callable[[Any], None] = lambda noted: None

    def moves(self, state: State) -> Sequence[M]:
        """Return the moves that are made in a state."""
        return self.first_of(state, self.system.moves(state))

    def first_of(self, state: State, moves: Sequence[M]) -> Sequence[M]:
        """Return those of a state's moves that are made."""
        return moves if self.ample is None or len(moves) < 2 else self.ample(state, moves)


class SpreadError(Exception):
    """A system that is none: what every worker repeats leads elsewhere in one of them."""


class Expansion(NamedTuple):
    """The states of a level, or some of them, explored.

    Attributes
    ----------
    transitions : int
    aside : list of tuple
        Those that need what is not in the tables.
    broken : list of (int, tuple)
        The number of a property, and a state in which it does not hold.
    """

    transitions: int
    aside: list[State]
    broken: list[tuple[int, State]]


def expand(subject: Subject[M], states: Iterable[State], hand_on: Callable[[set[State]], None]) -> Expansion:
    """Make the moves of states, and ask what is asked of them."""
    after, moves_of, first_of = subject.system.after, subject.system.moves, subject.first_of
    numbered = list(enumerate(subject.properties))
    always = [(number, each.check) for number, each in numbered if isinstance(each, Always)]
    quiescent = [(number, each) for number, each in numbered if isinstance(each, Quiescent)]
    reached: set[State] = set()
    transitions, aside, broken = 0, [], []
    for state in states:
        try:
            for number, check in always:
                if check(state) is not None:
                    broken.append((number, state))
            moves = moves_of(state)
            made = first_of(state, moves)
            reached.update([after(state, move) for move in made])
            asked = [(number, each.check) for number, each in quiescent if each.is_asked(moves)]
            broken += [(number, state) for number, check in asked if check(state) is not None]
            transitions += len(made)
        except UnknownPartError:
            aside.append(state)
        if len(reached) >= MOST_HELD:
            hand_on(reached)
            reached.clear()
    hand_on(reached)
    return Expansion(transitions, aside, broken)


class _Files:
    """The folder that the driver and all workers see."""

    def __init__(self, folder: str | Path, partitions: int) -> None:
        self.folder = Path(folder)
        self.partitions = partitions

    @property
    def subject(self) -> Path:
        return self.folder / "subject.pickle"

    def sent(self, level: int, to: int) -> list[Path]:
        return sorted(self.folder.glob(f"sent-{level}-{to}-*.rows"))

    def states(self, level: int, partition: int) -> Path:
        return self.folder / f"level-{level}-{partition}.rows"

    def aside(self, level: int, partition: int) -> Path:
        return self.folder / f"aside-{level}-{partition}.rows"

    def repeated(self, level: int) -> Path:
        return self.folder / f"repeated-{level}.rows"

    def led_to(self, level: int) -> Path:
        return self.folder / f"led-to-{level}.hashes"

    def sender(self, level: int, source: int | str, width: int) -> Callable[[set[State]], None]:
        """Return a function that sends states to the partitions of a level."""
        count = 0

        def send(states: set[State]) -> None:
            nonlocal count
            rows = rows_of(states, width)
            partition_of = (hashes_of(rows) >> 33) % self.partitions
            for to in range(self.partitions):
                own = rows[partition_of == to]
                if len(own):
                    save(self.folder / f"sent-{level}-{to}-{source}-{count}.rows", own)
            count += 1

        return send


# In a worker.


class _Replica:
    """The system in this process, with the tables that it has in every other."""

    def __init__(self, files: _Files) -> None:
        path, made = pickle.loads(files.subject.read_bytes())
        sys.path += [each for each in path if each not in sys.path]  # where an external class is found
        make: Callable[[], Subject[Any]] = pickle.loads(made)
        self.files, self.subject = files, make()
        self.width = len(self.subject.system.start())
        self._level = 0

    def catch_up(self, level: int) -> None:
        """Repeat what the driver explored of the levels before."""
        while self._level < level:
            states = states_of(load(self.files.repeated(self._level)))
            found = _digests(self.subject, states, self.width)
            if found != load(self.files.led_to(self._level)).tolist():
                raise SpreadError(
                    f"level {self._level} leads elsewhere when it is repeated; allowed: a system that is a function of "
                    "its states, with tables that are filled in the order in which it is asked"
                )
            self._level += 1


def _digests(subject: Subject[Any], states: Iterable[State], width: int) -> list[int]:
    found: list[int] = []
    expand(subject, states, lambda reached: found.append(_digest(reached, width)))
    return found


def _digest(states: set[State], width: int) -> int:
    return int(hashes_of(rows_of(states, width)).sum())


_replicas: dict[str, _Replica] = {}


def _replica(files: _Files, level: int) -> _Replica:
    key = str(files.folder)
    if key not in _replicas:
        _replicas.clear()
        _replicas[key] = _Replica(files)
        gc.collect()
        gc.freeze()  # what is looked through after each task should not be the tables
    _replicas[key].catch_up(level)
    return _replicas[key]


class Level(NamedTuple):
    """The outcome of one level in one partition.

    Attributes
    ----------
    states, transitions : int
    broken : list of (int, tuple)
    noted : Any
    undecided : str
    """

    states: int
    transitions: int
    broken: list[tuple[int, State]]
    noted: Any
    undecided: str = ""


def explore_level(files: _Files, level: int, partition: int) -> Level:
    """Find out which states are new in a partition, and explore them."""
    replica = _replica(files, level)
    sent = [load(path) for path in files.sent(level, partition)]
    visited = Visited(files.folder, partition, level)
    rows = _joined(sent, replica.width)
    run = visited.new(rows)
    visited.add(run)
    save(files.states(level, partition), run.rows)
    subject, undecided = replica.subject, ""
    expansion = Expansion(0, [], [])
    with GROWTH.closed():
        try:
            send = files.sender(level + 1, partition, replica.width)
            expansion = expand(subject, states_of(run.rows), send)
        except UndecidedError as error:
            undecided = str(error)
    save(files.aside(level, partition), rows_of(expansion.aside, replica.width))
    return Level(len(run.rows), expansion.transitions, expansion.broken, subject.noted(), undecided)


def _joined(arrays: Sequence[Array], width: int) -> Array:
    import numpy as np

    return np.concatenate([rows_of((), width), *arrays])


def step_to(files: _Files, level: int, target: State, partition: int) -> tuple[State, int] | None:
    """Return a state of a level in a partition, and which of its moves leads to `target`; None if none does."""
    subject = _replica(files, level + 1).subject
    for state in states_of(load(files.states(level, partition))):
        for choice, move in enumerate(subject.moves(state)):
            if subject.system.after(state, move) == target:
                return state, choice
    return None


# In the driver.


class Spread(Generic[M]):
    """One exploration.

    Parameters
    ----------
    spark : SparkSession
    make : callable
        Makes the subject, in this process and in the workers; it can be pickled.
    subject : Subject
        What it made here.
    folder : Path
        An empty one that all workers see.
    seconds : float, optional
        Of wall time.
    watch : callable
        Called some times a second; if it raises, the job is cancelled.
    """

    def __init__(
        self,
        spark: SparkSession,
        make: Callable[[], Subject[M]],
        subject: Subject[M],
        folder: Path,
        seconds: float | None = None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        self.context: SparkContext = spark.sparkContext
        self.subject, self.seconds, self.watch = subject, seconds, watch
        self.files = _Files(folder.resolve(), self.context.defaultParallelism)
        self.files.subject.write_bytes(pickle.dumps((sys.path, pickle.dumps(make))))
        self.started = monotonic()

    def explore(self) -> Exploration[State, M]:
        """Visit every state, level by level, until a property is broken."""
        start = self.subject.system.start()
        width, level, states, transitions = len(start), 0, 0, 0
        self.files.sender(0, _DRIVER, width)({start})
        while True:
            found = self._on_all(partial(explore_level, self.files, level))
            counts = Counts(states, transitions, max(0, level - 1), monotonic() - self.started)
            new = sum(each.states for each in found)
            if not new:
                return Exploration(HOLDS, "every reachable state was seen", (), (), counts)
            expansion = self._put_aside(level, width)
            states += new
            transitions += expansion.transitions + sum(each.transitions for each in found)
            for each in found:
                self.subject.take_note(each.noted)
            counts = Counts(states, transitions, level, monotonic() - self.started)
            broken = [*expansion.broken, *(each for part in found for each in part.broken)]
            if broken:
                violation = self._violation(level, *min(broken))
                return Exploration(BROKEN, f"{violation.property}: {violation.reason}", (violation,), (), counts)
            undecided = next((each.undecided for each in found if each.undecided), "")
            if self.seconds is not None and counts.seconds >= self.seconds:
                undecided = undecided or f"the limit of {self.seconds:g} s is reached"
            if undecided:
                return Exploration(UNDECIDED, undecided, (), (), counts)
            level += 1

    def _put_aside(self, level: int, width: int) -> Expansion:
        """Explore what the workers put aside, with open tables; and have them repeat it."""
        paths = [self.files.aside(level, partition) for partition in range(self.files.partitions)]
        rows = _joined([load(path) for path in paths], width)
        send, led_to = self.files.sender(level + 1, _DRIVER, width), []

        def hand_on(reached: set[State]) -> None:
            led_to.append(_digest(reached, width))
            send(reached)

        expansion = expand(self.subject, states_of(rows), hand_on)
        save(self.files.repeated(level), rows)
        save(self.files.led_to(level), numbers(led_to))
        return expansion

    def _violation(self, level: int, number: int, state: State) -> Broken[State, M]:
        choices: list[int] = []
        target = state
        for at in reversed(range(level)):
            steps = self._on_all(partial(step_to, self.files, at, target))
            target, choice = next(step for step in steps if step is not None)
            choices.append(choice)
        moves: list[M] = []
        reached = self.subject.system.start()
        for choice in reversed(choices):
            move = self.subject.moves(reached)[choice]
            moves.append(move)
            reached = self.subject.system.after(reached, move)
        assert reached == state
        broken = self.subject.properties[number]
        return Broken(broken.name, broken.check(state) or "", tuple(moves), state)

    def _on_all(self, work: Callable[[int], R]) -> list[R]:
        """Do something in every partition, as one job."""
        from barrierlab.sim.sweep.session import spark_failures

        count = self.files.partitions
        tasks = self.context.parallelize(range(count), count).map(work)
        with ThreadPoolExecutor(1) as pool:
            job = pool.submit(tasks.collect)
            try:
                while not wait([job], _TICK_S).done:
                    self.watch()
            except BaseException:
                self.context.cancelAllJobs()
                raise
        with spark_failures("a task of Spark failed", "check with --master processes, or with another --impl"):
            return job.result()


def subject_of(
    bounds: Bounds, components: Callable[[], Components], whole: Bounds | None, is_reduced: bool, forgets: bool
) -> Subject[Move]:
    """Return a world as a worker makes it: of a plan of `whole` if it is reduced."""
    world = World(bounds, components(), forgets)
    return _subject(world, Ample(world, whole) if is_reduced else None)


def _subject(world: World, ample: Ample | None) -> Subject[Move]:
    def noted() -> tuple[bool, bool, Any]:
        return world.gave_up, world.was_full, None if ample is None else ample.ahead

    def take_note(other: tuple[bool, bool, Any]) -> None:
        gave_up, was_full, ahead = other
        world.gave_up, world.was_full = world.gave_up or gave_up, world.was_full or was_full
        if ample is not None:
            for where, cells in ahead.items():
                ample.ahead.setdefault(where, set()).update(cells)

    reduced = None if ample is None else ample.moves
    return Subject(world, properties(world), reduced, noted, take_note)


def explored_on(
    spark: SparkSession,
    directory: Path,
    watch: Callable[[], None],
    components: Callable[[], Components],
    world: World,
    seconds: float | None,
    ample: Ample | None,
) -> Exploration[WorldState, Move]:
    """Explore a world that nobody has explored before; `components` makes those of its machines in a worker."""
    whole = None if ample is None else ample.whole
    make = partial(subject_of, world.bounds, components, whole, ample is not None, world.forgets)
    with TemporaryDirectory(prefix="levels-", dir=directory) as folder:
        return Spread(spark, make, _subject(world, ample), Path(folder), seconds, watch).explore()
