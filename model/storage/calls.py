"""Any order of calls of a store: the one in memory, the one in a directory, and a reference in folders.

Each folder is empty, holds an attempt, or is complete. What the two stores answer is compared after each call, errors
by their kind, and then all that can be asked. Protocol rules 2, 20 and 22.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import NamedTuple

from barrierlab.impl.errors import AttemptError, BarrierError, CompletedError, NotCompleteError, RegressingIdError
from barrierlab.impl.storage.snapshot import Manifest, StoredSnapshot, TaskSnapshot, files_of
from barrierlab.impl.storage.store import DirectoryStore, MemoryStore, SnapshotStore
from barrierlab.model.explore.checker import Always
from barrierlab.model.explore.intern import Interner
from barrierlab.model.storage.files import EMPTY, Direct, Tree
from barrierlab.model.storage.world import PATH

MOST_ID = 3
COMPLETE = ("complete", "without parts")


def content(checkpoint_id: int) -> TaskSnapshot:
    """The one part of a checkpoint."""
    return TaskSnapshot("a", 0, b"%d" % checkpoint_id)


def part(checkpoint_id: int) -> StoredSnapshot:
    """Return its entry in the manifest."""
    return files_of(content(checkpoint_id))[0]


class Right(NamedTuple):
    """The reference.

    Attributes
    ----------
    folders : tuple of (int, str)
        By id: ``empty``, ``begun`` (something is in it, and it is not complete), ``complete``, or ``without parts``.
    attempts : tuple of (int, bool)
        What is under way here, and whether its part is written.
    """

    folders: tuple[tuple[int, str], ...] = ()
    attempts: tuple[tuple[int, bool], ...] = ()

    @property
    def complete(self) -> tuple[int, ...]:
        """Newest first."""
        return tuple(i for i, state in reversed(self.folders) if state in COMPLETE)

    @property
    def highest(self) -> int:
        """The highest id that was begun."""
        return self.folders[-1][0] if self.folders else 0

    @property
    def leftovers(self) -> tuple[int, ...]:
        """Newest first."""
        under_way = dict(self.attempts)
        others = [i for i, state in self.folders if state not in COMPLETE and i not in under_way]
        states = dict(self.folders)
        return tuple(i for i in reversed(others) if i < self.highest or states[i] != "empty")

    def removed(self, ids: Sequence[int]) -> Right:
        """Return the state without the content of these; the folder of the highest stays."""
        kept = [(i, state) for i, state in self.folders if i not in ids or i == self.highest]
        return Right(tuple((i, "empty" if i in ids else state) for i, state in kept), self.attempts)

    def carried_out(self, verb: str, number: int) -> tuple[Right, object]:
        """Return the state after a call, and its answer: a value, or the kind of an error."""
        under_way = dict(self.attempts)
        if verb == "retain":
            older = self.complete[number:]
            return self.removed(older), older
        if verb == "clean":
            return self.removed(self.leftovers), self.leftovers
        if verb == "begin":
            if number in self.complete:
                return self, CompletedError
            if number <= self.highest:
                return self, RegressingIdError
            return Right((*self.folders, (number, "begun")), (*self.attempts, (number, False))), None
        if number not in under_way:
            if number in self.complete:
                return self, CompletedError
            return self, False if verb == "abandon" else AttemptError
        others = tuple(each for each in self.attempts if each[0] != number)
        if verb == "abandon":
            return self.removed((number,))._replace(attempts=others), True
        if verb == "write":
            if under_way[number]:
                return self, AttemptError
            return self._replace(attempts=tuple((i, written or i == number) for i, written in self.attempts)), "a part"
        if (verb == "complete") is not under_way[number]:
            return self, AttemptError
        new = COMPLETE[verb != "complete"]
        folders = tuple((i, new if i == number else state) for i, state in self.folders)
        return Right(folders, tuple(each for each in self.attempts if each[0] > number)), None


class StoreCall(NamedTuple):
    """A call: a verb and an id, or how many to retain. ``complete none`` gives a manifest without parts."""

    verb: str
    number: int

    def __str__(self) -> str:
        return f"{self.verb} {self.number}" if self.number else self.verb


VERBS = ("begin", "write", "complete", "abandon")
MOVES = (
    *(StoreCall(verb, i) for i in range(1, MOST_ID + 1) for verb in VERBS),
    StoreCall("complete none", 1),
    *(StoreCall("retain", 1), StoreCall("retain", 2), StoreCall("clean", 0)),
)
CallState = tuple[int, int, int, int]
"""Indices of the reference, the store in memory, the directory, and of what is wrong."""


def asked(store: SnapshotStore, call: StoreCall) -> object:
    """The answer of a store: a value, or the kind of its error."""
    calls: dict[str, Callable[[], object]] = {
        "begin": lambda: store.begin(call.number),
        "write": lambda: "a part" if store.write(call.number, content(call.number)) == part(call.number) else "another",
        "complete": lambda: store.complete(Manifest(call.number, call.number, False, (part(call.number),))),
        "complete none": lambda: store.complete(Manifest(call.number, call.number, False, ())),
        "abandon": lambda: store.abandon(call.number),
        "retain": lambda: store.retain(call.number),
        "clean": store.clean,
    }
    return _answer(calls[call.verb])


def _answer(call: Callable[[], object]) -> object:
    try:
        return call()
    except BarrierError as error:
        return type(error)
    except Exception as error:  # whatever the code under test does
        return f"{type(error).__name__}: {error}"


def _loaded(store: SnapshotStore, checkpoint_id: int) -> object:
    return store.load(checkpoint_id).snapshots


def seen(store: SnapshotStore) -> tuple[object, ...]:
    """Return all answers of calls that change nothing that matters."""
    loaded = []
    for checkpoint_id in range(1, MOST_ID + 1):
        found = _answer(partial(_loaded, store, checkpoint_id))
        loaded.append("whole" if found == (content(checkpoint_id),) else "empty" if found == () else found)
    latest = _answer(lambda: store.latest_usable().checkpoint.manifest.checkpoint_id)
    return store.completed(), store.highest_id(), store.leftovers(), tuple(loaded), latest if type(latest) is int else 0


class StoreCalls:
    """The system, for `model.explore.checker.explore`."""

    def __init__(self) -> None:
        self.rights: Interner[Right] = Interner()
        self.memories: Interner[Hashable] = Interner()
        self.directories: Interner[tuple[Tree, Hashable]] = Interner()
        self.wrongs: Interner[str] = Interner("")
        self._seen: dict[tuple[str, int], tuple[object, ...]] = {}

    def start(self) -> CallState:
        """Return the initial state: an empty store."""
        disk = Direct(EMPTY)
        store = DirectoryStore(PATH, disk.port)
        memory = MemoryStore()
        return (
            self.rights.number(Right()),
            self.memories.number(_captured(memory)),
            self.directories.number((disk.tree, store.capture())),
            0,
        )

    def moves(self, state: CallState) -> Sequence[StoreCall]:
        """Return every call; none once something is wrong."""
        return () if state[3] else MOVES

    def after(self, state: CallState, move: StoreCall) -> CallState:
        """Return the states of all three, and whether they agree."""
        right, due = self.rights.values[state[0]].carried_out(move.verb, move.number)
        memory = _memory(self.memories.values[state[1]])
        tree, captured = self.directories.values[state[2]]
        disk = Direct(tree)
        store = DirectoryStore(PATH, disk.port)
        store.restore(captured)
        wrong = ""
        due_now = self._due(right)
        indices = []
        for name, each in (("the store in memory", memory), ("the directory", store)):
            came = asked(each, move)
            if came != due or type(came) is not type(due):
                wrong = wrong or f"CALLS: {name} answers {_described(came)} to {move}; right is {_described(due)}"
            if each is memory:
                index = self.memories.number(_captured(memory))
            else:
                index = self.directories.number((disk.tree, store.capture()))
            indices.append(index)
            if (name, index) not in self._seen:
                self._seen[name, index] = seen(each)
            if not wrong and (now := self._seen[name, index]) != due_now:
                wrong = f"CALLS: after {move}, {name} has {_described(now)}; right is {_described(due_now)}"
        return self.rights.number(right), indices[0], indices[1], self.wrongs.number(wrong)

    def _due(self, right: Right) -> tuple[object, ...]:
        complete, states = right.complete, dict(right.folders)
        found = {"complete": "whole", "without parts": "empty"}
        loaded = tuple(found.get(states.get(i, ""), NotCompleteError) for i in range(1, MOST_ID + 1))
        return complete, right.highest, right.leftovers, loaded, complete[0] if complete else 0

    def broken(self, state: CallState) -> str | None:
        """Return what is wrong."""
        return self.wrongs.values[state[3]] or None


def _captured(memory: MemoryStore) -> Hashable:
    files = tuple((i, tuple(files.items())) for i, files in memory.medium.files.items())
    return files, memory.capture()


def _memory(captured: Hashable) -> MemoryStore:
    files, remembered = captured  # type: ignore[misc]
    memory = MemoryStore()
    memory.medium.files = {i: dict(each) for i, each in files}  # type: ignore[has-type]
    memory.restore(remembered)  # type: ignore[has-type]
    return memory


def _described(what: object) -> str:
    return what.__name__ if isinstance(what, type) else str(what)


def properties(system: StoreCalls) -> list[Always[CallState]]:
    """Return what `model.explore.checker.explore` is to ask."""
    return [Always("always", system.broken)]
