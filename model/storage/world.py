"""Processes that use one store of checkpoints, call by call, over a file system that may forget what was not flushed.

The store is `impl.storage.store.DirectoryStore`; the file system is a value (`model.storage.files`). A move is one call
of one process: ``writer: rename checkpoint-1/manifest.json.tmp``; or that it fails, with or without its effect; or that
a process is killed and its next one comes; or that the machine stops, and everything with it. What a store does between
two calls depends on nothing but what it remembers and what its calls have given, so each operation is carried out again
up to its next call, once for each course that it can take.

What is asked, by name:

* KEPT: what was announced complete is listed and can be read, unless so many newer ones are as retention is to keep.
* WHOLE: what is listed or read is, part by part, what was written for that id. Nothing partial is, ever.
* IDS: no id is given twice, whoever asks, and whatever was forgotten.
* READER: who looks for the latest gets one that is not older than the newest that was announced when he began.
* RAISED: nothing fails but for what the medium did, or another writer.
* DOUBT: what is said to have surely not completed is not found complete, either, whatever a crash leaves.
* LIVE: where nothing fails and nobody disturbs, all is announced, and what is to be removed is gone.
"""

from __future__ import annotations

import errno
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

from barrierlab.impl.errors import (
    CompletedError,
    NoUsableCheckpointError,
    RegressingIdError,
    StoreError,
    StoreFailedError,
)
from barrierlab.impl.storage.encoding import encode
from barrierlab.impl.storage.snapshot import Checkpoint, InFlight, Manifest, StoredSnapshot, TaskSnapshot
from barrierlab.impl.storage.store import DirectoryStore
from barrierlab.model.checkpoint.hosting import brief
from barrierlab.model.errors import RAISED
from barrierlab.model.explore.checker import Always, Quiescent
from barrierlab.model.explore.intern import Interner
from barrierlab.model.storage.files import (
    EMPTY,
    READS,
    Direct,
    FileAnswer,
    FileCall,
    FilesPort,
    Tree,
    after_crash,
    carried_out,
    half_written,
)

PATH = "store"
ALL = 99
"""As many checkpoints as retention keeps before it is asked for less."""


def contents(checkpoint_id: int, parts: int) -> tuple[TaskSnapshot, ...]:
    """The parts of a checkpoint, which follow from its id; the second has something in flight both ways."""
    flying = encode((checkpoint_id,))
    return (
        TaskSnapshot("a", 0, encode(checkpoint_id), position=checkpoint_id),
        TaskSnapshot("t", 1, b"", None, (InFlight(0, (flying, b"")),), (InFlight(1, (flying,)),)),
    )[:parts]


@dataclass(frozen=True, slots=True)
class StoreBounds:
    """A file system, the processes, and what may go wrong.

    Attributes
    ----------
    clients : tuple of (str, tuple of str)
        Name, and what it does, in order: ``open``, ``recover``, ``clean``, ``take`` (a checkpoint), ``drop`` (one that
        is begun and abandoned), ``retain N``. Each begins with ``open``.
    before : int
        So many complete checkpoints are there, all flushed.
    left : bool
        And an attempt that nobody goes on with.
    parts : int
        Of each checkpoint, 1 or 2.
    crashes, kills, fails : int
        How often the machine stops, a process is killed, a call fails.
    restarts : tuple of str
        The work of whoever comes after a process that was killed, and of the one that comes after a crash.
    until : str
        The first process has come so far when the exploration begins: the verb and name of its next call.
    """

    clients: tuple[tuple[str, tuple[str, ...]], ...]
    before: int = 1
    left: bool = False
    parts: int = 1
    crashes: int = 0
    kills: int = 0
    fails: int = 0
    restarts: tuple[str, ...] = ()
    until: str = ""


class Client(NamedTuple):
    """A process between two calls.

    Attributes
    ----------
    name : str
    work : tuple of str
        What it is at, and what is still to do; empty: it has ended.
    stage : str
        Where it is within that.
    checkpoint_id : int
    parts : tuple of StoredSnapshot
    tries : int
        Completions that were left in doubt.
    store : Hashable
        What its store remembers; None before it is opened.
    answers : tuple of FileAnswer
        To the calls of the operation under way.
    newest : int
        The newest id that was announced when the operation began; for who looks for the latest.
    """

    name: str
    work: tuple[str, ...]
    stage: str = ""
    checkpoint_id: int = 0
    parts: tuple[StoredSnapshot, ...] = ()
    tries: int = 0
    store: Hashable = None
    answers: tuple[FileAnswer, ...] = ()
    newest: int = 0


class StoreMonitor(NamedTuple):
    """The memory of the properties.

    Attributes
    ----------
    begun, announced : tuple of int
        Ids that were given, and checkpoints that were called complete.
    kept : int
        The least that retention was asked to keep.
    disturbed : bool
        Whether anything has failed, or anybody else writes.
    wrong : str
        What has been found wrong.
    """

    begun: tuple[int, ...] = ()
    announced: tuple[int, ...] = ()
    kept: int = ALL
    disturbed: bool = False
    wrong: str = ""


class FoundCheckpoints(NamedTuple):
    """The findings of a process that looks at everything: what is complete, the highest id, what is left over."""

    completed: tuple[int, ...] = ()
    highest: int = 0
    leftovers: tuple[int, ...] = ()
    failed: str = ""


class Done(NamedTuple):
    """The end of an operation: a verb, a subject, and what the store remembers then."""

    verb: str
    subject: object = None
    store: Hashable = None


class StoreMove(NamedTuple):
    """A move; `client` is -1 for one of the machine."""

    client: int
    verb: str
    text: str
    choice: int = 0

    def __str__(self) -> str:
        return self.text


StoreState = tuple[int, ...]
"""Indices of file system, monitor and what may still go wrong; then one for each client."""


class _NextError(BaseException):
    """The operation asks something that has not been answered yet."""

    def __init__(self, call: FileCall) -> None:
        super().__init__(call)
        self.call = call


class StoreCode(Protocol):
    """The code under test, as the world uses it."""

    def prepare(self, disk: Direct, begun: list[int]) -> None:
        """Store what the bounds say is there before, and note the ids that were begun."""

    def operate(self, client: Client, port: FilesPort) -> Done:
        """Carry out the operation that a process is at."""

    def look(self, tree: Tree) -> FoundCheckpoints:
        """Look at everything in a file system where nothing fails."""


class CodeOfImpl:
    """The store of `impl`: how it is used, and what it may raise."""

    def __init__(self, bounds: StoreBounds) -> None:
        self.bounds = bounds

    def prepare(self, disk: Direct, begun: list[int]) -> None:
        """Store what the bounds say is there before, and note the ids that were begun."""
        if not self.bounds.before and not self.bounds.left:
            return
        store = DirectoryStore(PATH, disk.port)
        for checkpoint_id in range(1, self.bounds.before + 1):
            store.begin(checkpoint_id)
            begun.append(checkpoint_id)
            parts = tuple(store.write(checkpoint_id, each) for each in contents(checkpoint_id, self.bounds.parts))
            store.complete(Manifest(checkpoint_id, checkpoint_id, self.bounds.parts > 1, parts))
        if self.bounds.left:
            store.begin(self.bounds.before + 1)
            begun.append(self.bounds.before + 1)
            store.write(self.bounds.before + 1, contents(self.bounds.before + 1, 1)[0])

    def operate(self, client: Client, port: FilesPort) -> Done:
        """Carry out the operation that a process is at."""
        store: DirectoryStore | None = None
        try:
            if client.work[0] == "open":
                done = Done("done", 0)
                store = DirectoryStore(PATH, port)
            else:
                quiet = FilesPort(lambda call: ())
                store = DirectoryStore(PATH, quiet)
                quiet.ask = port.ask
                store.restore(client.store)
                done = self._carry_out(store, client)
        except StoreFailedError as error:
            done = Done("failed", error.definite)
        except NoUsableCheckpointError:
            done = Done("none usable")
        except (RegressingIdError, CompletedError):
            done = Done("taken")
        except RAISED as error:  # whatever the code under test does
            done = Done("raised", f"{type(error).__name__}: {error}")
        return done._replace(store=None if store is None else store.capture())

    def _carry_out(self, store: DirectoryStore, client: Client) -> Done:
        verb, _, argument = client.work[0].partition(" ")
        checkpoint_id, stage = client.checkpoint_id, client.stage
        if verb == "recover":
            usable = store.latest_usable()
            wrong = _not_as_written(usable.checkpoint, self.bounds.parts)
            skipped = tuple(each.checkpoint_id for each in usable.passed_over)
            return Done("recovered", (usable.checkpoint.manifest.checkpoint_id, wrong, skipped))
        if verb == "clean":
            store.clean()
        elif verb == "retain":
            store.retain(int(argument))
        elif not stage:
            checkpoint_id = store.highest_id() + 1
            store.begin(checkpoint_id)
        elif stage == "write":
            snapshot = contents(checkpoint_id, self.bounds.parts)[len(client.parts)]
            return Done("wrote", store.write(checkpoint_id, snapshot))
        elif stage == "complete":
            store.complete(Manifest(checkpoint_id, checkpoint_id, self.bounds.parts > 1, client.parts))
        else:
            store.abandon(checkpoint_id)
        return Done("done", checkpoint_id)

    def look(self, tree: Tree) -> FoundCheckpoints:
        """Look at everything in a file system where nothing fails."""
        try:
            store = DirectoryStore(PATH, Direct(tree).port)
            completed = store.completed()
            for checkpoint_id in completed:
                wrong = _not_as_written(store.load(checkpoint_id), self.bounds.parts)
                if wrong:
                    return FoundCheckpoints(failed=wrong)
            if completed:
                usable = store.latest_usable()
                if usable.passed_over or usable.checkpoint.manifest.checkpoint_id != completed[0]:
                    return FoundCheckpoints(failed=f"READER: the latest is not {completed[0]}")
            return FoundCheckpoints(completed, store.highest_id(), store.leftovers())
        except StoreError as error:
            return FoundCheckpoints(failed=f"WHOLE: {error}")
        except RAISED as error:  # whatever the code under test does
            return FoundCheckpoints(failed=f"RAISED: {type(error).__name__}: {error}")


class StoreWorld:
    """The system of bounds, for `model.explore.checker.explore`.

    Parameters
    ----------
    bounds : StoreBounds
    code : StoreCode, optional
        Another's store in the place of that of `impl`.
    """

    def __init__(self, bounds: StoreBounds, code: StoreCode | None = None) -> None:
        self.bounds = bounds
        self.code = code or CodeOfImpl(bounds)
        self.trees: Interner[Tree] = Interner()
        self.monitors: Interner[StoreMonitor] = Interner()
        self.clients: Interner[Client] = Interner()
        self.budgets: Interner[tuple[int, int, int]] = Interner()
        self._asked: dict[int, FileCall | Done] = {}
        self._after: dict[tuple[int, FileCall], tuple[int, FileAnswer]] = {}
        self._left: dict[int, tuple[int, ...]] = {}
        self._found: dict[int, FoundCheckpoints] = {}
        self._judged: dict[tuple[int, ...], str | None] = {}

    # The system.

    def start(self) -> StoreState:
        """Return the state with the checkpoints that are there before, and every process at its beginning."""
        disk = Direct(EMPTY)
        begun: list[int] = []
        try:
            self.code.prepare(disk, begun)
        except RAISED as error:  # whatever the code under test does
            wrong = f"RAISED: before anything happens: {type(error).__name__}: {error}"
            return (
                self.trees.number(disk.tree),
                self.monitors.number(StoreMonitor(wrong=wrong)),
                self.budgets.number((0, 0, 0)),
            )
        return self._begun(disk.tree, tuple(begun))

    def _begun(self, tree: Tree, begun: tuple[int, ...]) -> StoreState:
        writers = [
            work for _, work in self.bounds.clients if any(not each.startswith(("open", "recover")) for each in work)
        ]
        monitor = StoreMonitor(begun, begun[: self.bounds.before], disturbed=len(writers) > 1)
        clients = [self.clients.number(Client(name, work)) for name, work in self.bounds.clients]
        budget = self.bounds.crashes, self.bounds.kills, self.bounds.fails
        state = self._settled(
            [self.trees.number(tree), self.monitors.number(monitor), self.budgets.number(budget), *clients]
        )
        while self.bounds.until:
            move = next((each for each in self.moves(state) if each.client == 0), None)
            if move is None or self.bounds.until in move.text:  # another's store may never come there
                break
            state = self.after(state, move)
        return state

    def moves(self, state: StoreState) -> Sequence[StoreMove]:
        """The next call of each process; and what may go wrong."""
        if self.monitors.values[state[1]].wrong:
            return ()
        crashes, kills, fails = self.budgets.values[state[2]]
        found = []
        for at, index in enumerate(state[3:]):
            client = self.clients.values[index]
            asked = self._next(index) if client.work else None
            if not isinstance(asked, FileCall):
                continue
            found.append(StoreMove(at, "call", f"{client.name}: {asked}"))
            if fails:
                found.append(StoreMove(at, "fail", f"{client.name}: {asked} fails"))
                if asked.verb not in READS:
                    found.append(StoreMove(at, "fail afterwards", f"{client.name}: {asked} is done, and fails"))
            if kills and client.store is not None:
                found.append(StoreMove(at, "kill", f"{client.name} is killed before: {asked}"))
        if crashes and (found or not self.bounds.restarts):
            found += [
                StoreMove(-1, "crash", f"crash, and {self._what_is_left(state[0], k)}", k)
                for k in range(len(self._lefts(state[0])))
            ]
        return found

    def after(self, state: StoreState, move: StoreMove) -> StoreState:
        """The state behind a move."""
        crashes, kills, fails = self.budgets.values[state[2]]
        if move.verb == "crash":
            tree = self._lefts(state[0])[move.choice]
            monitor = self.monitors.values[state[1]]._replace(disturbed=True)
            wrong = self._wrong_now(tree, monitor)
            monitor = monitor._replace(wrong=wrong or "")
            restarts = [self.clients.number(Client("next", self.bounds.restarts))] if self.bounds.restarts else []
            budget = self.budgets.number((crashes - 1, kills, fails))
            return self._settled([tree, self.monitors.number(monitor), budget, *restarts])
        at = 3 + move.client
        changed = list(state)
        client = self.clients.values[state[at]]
        if move.verb == "kill":
            changed[1] = self.monitors.number(self.monitors.values[state[1]]._replace(disturbed=True))
            changed[2] = self.budgets.number((crashes, kills - 1, fails))
            changed[at] = self.clients.number(Client("next", self.bounds.restarts))
            return self._settled(changed)
        asked = self._next(state[at])
        assert isinstance(asked, FileCall)
        changed[0], answer = self._carried_out(state[0], asked)
        if move.verb != "call":
            if move.verb == "fail":
                half = (
                    half_written(self.trees.values[state[0]], asked)
                    if asked.verb == "write"
                    else self.trees.values[state[0]]
                )
                changed[0] = self.trees.number(half)
            answer = FileAnswer(error=errno.EIO)
            changed[1] = self.monitors.number(self.monitors.values[state[1]]._replace(disturbed=True))
            changed[2] = self.budgets.number((crashes, kills, fails - 1))
        changed[at] = self.clients.number(client._replace(answers=(*client.answers, answer)))
        return self._settled(changed)

    # Properties.

    def broken(self, state: StoreState) -> str | None:
        """Return what has been found wrong."""
        return self.monitors.values[state[1]].wrong or None

    def liveness_violation(self, state: StoreState) -> str | None:
        """Return what is wrong where nothing more happens: the next process looks."""
        monitor = self.monitors.values[state[1]]
        return self._wrong_now(state[0], monitor) or self._unfinished(state, monitor)

    def _unfinished(self, state: StoreState, monitor: StoreMonitor) -> str | None:
        if monitor.disturbed:
            return None
        due = tuple(range(1, self.bounds.before + 1)) + self._due()
        if monitor.announced != due:
            return f"LIVE: announced are {monitor.announced}, though nothing failed; due were {due}"
        found, kept = self._look(state[0]), self._due_at_the_end()
        if found.completed != kept:
            return f"LIVE: complete are {found.completed}, though nothing failed; due were {kept}"
        if found.leftovers and self.bounds.clients[0][1][-1] == "clean":
            return f"LIVE: {found.leftovers} was left over by clean"
        return None

    def _due(self) -> tuple[int, ...]:
        """Return the ids of the checkpoints that the one process takes."""
        checkpoint_id, due = self.bounds.before + self.bounds.left, []
        for work in self.bounds.clients[0][1]:
            if work in ("take", "drop"):
                checkpoint_id += 1
                due += [checkpoint_id] * (work == "take")
        return tuple(due)

    def _due_at_the_end(self) -> tuple[int, ...]:
        """Return the ids that are complete when the one process has ended, newest first."""
        taken, complete = iter(self._due()), list(range(1, self.bounds.before + 1))
        for work in self.bounds.clients[0][1]:
            if work == "take":
                complete.append(next(taken))
            elif work.startswith("retain"):
                complete = complete[-int(work.split()[1]) :]
        return tuple(reversed(complete))

    def _wrong_now(self, tree: int, monitor: StoreMonitor) -> str | None:
        """Return what would be wrong if a process came now and looked; every process that was there is no more."""
        key = (tree, self.monitors.number(monitor))
        if key not in self._judged:
            self._judged[key] = self._judge(self._look(tree), monitor)
        return self._judged[key]

    def _judge(self, found: FoundCheckpoints, monitor: StoreMonitor) -> str | None:
        if found.failed:
            return found.failed
        for checkpoint_id in monitor.announced:
            newer = sum(each > checkpoint_id for each in found.completed)
            if checkpoint_id not in found.completed and newer < monitor.kept:
                return f"KEPT: checkpoint {checkpoint_id} was announced, and complete are only {found.completed}"
        strange = [each for each in found.completed if each not in monitor.begun]
        if strange:
            return f"WHOLE: checkpoint {strange[0]} is complete, and was never begun"
        if monitor.begun and found.highest < max(monitor.begun):
            return f"IDS: checkpoint {max(monitor.begun)} was begun, and the next would be {found.highest + 1}"
        return None

    # Looking.

    def _look(self, tree: int) -> FoundCheckpoints:
        if tree not in self._found:
            self._found[tree] = self.code.look(self.trees.values[tree])
        return self._found[tree]

    def _lefts(self, tree: int) -> tuple[int, ...]:
        if tree not in self._left:
            self._left[tree] = tuple(map(self.trees.number, after_crash(self.trees.values[tree])))
        return self._left[tree]

    def _what_is_left(self, tree: int, choice: int) -> str:
        count = len(self._lefts(tree))
        return "nothing is lost" if count == 1 else f"of {count} things that may be left, number {choice + 1} is"

    # One operation.

    def difference(self) -> str:
        """Carry every operation out a second time, the last first; what differs, in a line, or nothing."""
        for index, first in reversed(tuple(self._asked.items())):
            del self._asked[index]
            second = self._next(index)
            if second != first:
                client = self.clients.values[index]
                both = " and then ".join(brief(str(each)) for each in (first, second))
                return f"{client.name}, at {client.work[0]}, does not do the same twice: {both}"
        return ""

    def _carried_out(self, tree: int, call: FileCall) -> tuple[int, FileAnswer]:
        if (tree, call) not in self._after:
            following, answer = carried_out(self.trees.values[tree], call)
            self._after[tree, call] = self.trees.number(following), answer
        return self._after[tree, call]

    def _next(self, index: int) -> FileCall | Done:
        """The call that a process asks next, or how its operation ended."""
        if index not in self._asked:
            client = self.clients.values[index]
            answers = iter(client.answers)

            def ask(call: FileCall) -> object:
                answer = next(answers, None)
                if answer is None:
                    raise _NextError(call)
                return answer.given(call)

            try:
                self._asked[index] = self.code.operate(client, FilesPort(ask))
            except _NextError as waits:
                self._asked[index] = waits.call
        return self._asked[index]

    def _settled(self, state: list[int]) -> StoreState:
        """Return the state when every operation that has ended is followed by the next."""
        for at in range(3, len(state)):
            while (client := self.clients.values[state[at]]).work and isinstance(done := self._next(state[at]), Done):
                monitor = self.monitors.values[state[1]]
                doubt = self._doubt(state[0], client, done)
                client, monitor = self._ended(client, monitor, done)
                monitor = monitor._replace(wrong=monitor.wrong or doubt)
                if client.work and client.work[0].startswith("retain"):
                    monitor = monitor._replace(kept=min(monitor.kept, int(client.work[0].split()[1])))
                state[1], state[at] = self.monitors.number(monitor), self.clients.number(client)
                if monitor.wrong:
                    return tuple(state)
        return tuple(state)

    def _doubt(self, tree: int, client: Client, done: Done) -> str:
        """Return what is wrong with a completion that is said to have surely failed."""
        if client.stage == "complete" and done.verb == "failed" and done.subject is True:
            for left in (tree, *self._lefts(tree)):
                if client.checkpoint_id in self._look(left).completed:
                    return f"DOUBT: checkpoint {client.checkpoint_id} surely failed, and may be found complete"
        return ""

    def _ended(self, client: Client, monitor: StoreMonitor, done: Done) -> tuple[Client, StoreMonitor]:
        """The process and the monitor behind the end of an operation."""
        if done.verb == "raised":
            return client, monitor._replace(wrong=f"RAISED: {client.name}, at {client.work[0]}: {done.subject}")
        client = client._replace(answers=(), store=done.store)
        following = client._replace(work=client.work[1:], stage="", checkpoint_id=0, parts=(), tries=0)
        following = following._replace(newest=max(monitor.announced, default=0))
        if done.verb == "none usable":
            wrong = f"READER: {client.name} found none, and {client.newest} was announced" if client.newest else ""
            return following, monitor._replace(wrong=wrong)
        if done.verb == "recovered":
            checkpoint_id, wrong, skipped = cast("tuple[int, str, tuple[int, ...]]", done.subject)
            if not wrong and checkpoint_id < client.newest and not self.bounds.fails:
                wrong = f"READER: {client.name} got {checkpoint_id}, and {client.newest} was announced"
            if not wrong and skipped and not self.bounds.fails:
                wrong = f"READER: {client.name} passed over {skipped}"
            return following, monitor._replace(wrong=wrong)
        if done.verb in ("failed", "taken"):
            return self._failed(client, following, monitor, done)
        if done.verb == "wrote":
            parts = (*client.parts, cast("StoredSnapshot", done.subject))
            stage = "write" if len(parts) < self.bounds.parts else "complete" if client.work[0] == "take" else "abandon"
            return client._replace(parts=parts, stage=stage), monitor
        checkpoint_id = cast("int", done.subject)
        if client.work[0] in ("take", "drop"):
            if not client.stage:
                if checkpoint_id in monitor.begun:
                    return client, monitor._replace(wrong=f"IDS: {client.name} was given {checkpoint_id} once more")
                monitor = monitor._replace(begun=tuple(sorted((*monitor.begun, checkpoint_id))))
                return client._replace(stage="write", checkpoint_id=checkpoint_id), monitor
            if client.stage == "complete":
                monitor = monitor._replace(announced=tuple(sorted((*monitor.announced, checkpoint_id))))
        return following, monitor

    def _failed(
        self, client: Client, following: Client, monitor: StoreMonitor, done: Done
    ) -> tuple[Client, StoreMonitor]:
        """A careful driver: what is in doubt is completed again once, what failed is abandoned once."""
        if not monitor.disturbed:
            return client, monitor._replace(wrong=f"LIVE: {client.work[0]} {client.stage} failed, and nothing had")
        if client.work[0] == "open":
            return following._replace(work=()), monitor
        if client.stage == "complete" and done.subject is False and not client.tries:
            return client._replace(tries=1), monitor
        if client.stage in ("write", "complete"):
            return client._replace(stage="abandon"), monitor
        return following, monitor


def _not_as_written(checkpoint: Checkpoint, parts: int) -> str:
    checkpoint_id = checkpoint.manifest.checkpoint_id
    if checkpoint.snapshots != contents(checkpoint_id, parts):
        return f"WHOLE: of checkpoint {checkpoint_id} was read {checkpoint.snapshots}"
    return ""


def properties(world: StoreWorld) -> list[Always[StoreState] | Quiescent[StoreState]]:
    """Return what `model.explore.checker.explore` is to ask."""
    return [Always("always", world.broken), Quiescent("at rest", world.liveness_violation)]
