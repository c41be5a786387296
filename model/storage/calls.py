"""Any order of calls of a store: the one in memory, the one in a directory, and a reference in folders.

Each folder is empty, holds an attempt, or is complete. What the two stores answer is compared after each call, errors
by their kind, and all that can be asked then. Protocol rules 2, 20 and 22.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from barrierlab.impl.errors import BarrierError
from barrierlab.impl.storage.snapshot import Manifest, StoredSnapshot, TaskSnapshot, files_of
from barrierlab.impl.storage.store import DirectoryStore, MemoryStore, SnapshotStore
from barrierlab.model.checkpoint.component import CallStimulus, ComponentScope, Reference, Under, stimulus
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.storage.files import EMPTY, Direct
from barrierlab.model.storage.world import PATH

MOST_ID = 3
COMPLETE = ("complete", "without parts")


def content(checkpoint_id: int) -> TaskSnapshot:
    """The one part of a checkpoint."""
    return TaskSnapshot("a", 0, b"%d" % checkpoint_id)


def part(checkpoint_id: int) -> StoredSnapshot:
    """Return the entry of a checkpoint's only part in the manifest."""
    return files_of(content(checkpoint_id))[0]


class StoreReference(Reference):
    """The stores as the rules have them.

    Attributes
    ----------
    folders : dict of int to str
        By id: ``empty``, ``begun`` (something is in it, and it is not complete), ``complete``, or ``without parts``.
    attempts : dict of int to bool
        What is under way here, and whether its part is written.
    """

    def __init__(self) -> None:
        self.folders: dict[int, str] = {}
        self.attempts: dict[int, bool] = {}

    def stimuli(self) -> Sequence[CallStimulus]:
        """Return every call."""
        return MOVES

    def call(self, move: CallStimulus) -> tuple[str, ...]:
        """Return the answer to a call, or the error, and what can be asked then: of one store and of the other."""
        answer = getattr(self, move.verb)(*move.arguments)
        complete = self.complete
        loaded = ["NotCompleteError"] * MOST_ID
        for checkpoint_id in complete:
            loaded[checkpoint_id - 1] = "whole" if self.folders[checkpoint_id] == "complete" else "empty"
        latest = complete[0] if complete else 0
        line = _line(answer, complete, max(self.folders, default=0), self.leftovers, tuple(loaded), latest)
        return tuple(f"{name}: {line}" for name in STORES)

    @property
    def complete(self) -> tuple[int, ...]:
        """Return the complete ones, newest first."""
        return tuple(i for i, state in reversed(self.folders.items()) if state in COMPLETE)

    @property
    def leftovers(self) -> tuple[int, ...]:
        """Return failed attempts, newest first; an empty folder of the highest id is none."""
        others = [i for i, state in self.folders.items() if state not in COMPLETE and i not in self.attempts]
        return tuple(i for i in reversed(others) if i < max(self.folders) or self.folders[i] != "empty")

    def _remove(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Remove what is in these; the folder of the highest stays."""
        for checkpoint_id in ids:
            if checkpoint_id == max(self.folders):
                self.folders[checkpoint_id] = "empty"
            else:
                del self.folders[checkpoint_id]
        return tuple(ids)

    def retain(self, newest: int) -> tuple[int, ...]:
        """Keep so many complete ones."""
        return self._remove(self.complete[newest:])

    def clean(self) -> tuple[int, ...]:
        """Remove failed attempts."""
        return self._remove(self.leftovers)

    def begin(self, n: int) -> str | None:
        """Begin an attempt: ids increase."""
        if n in self.complete:
            return "CompletedError"
        if n <= max(self.folders, default=0):
            return "RegressingIdError"
        self.folders[n], self.attempts[n] = "begun", False
        return None

    def write(self, n: int) -> str:
        """Write the part of an attempt, once."""
        if self.attempts.get(n, True):
            return self._refusal(n)
        self.attempts[n] = True
        return "a part"

    def complete_with(self, n: int, parts: int) -> str | None:
        """Complete an attempt with the parts that it has; what is older is no attempt any more."""
        if self.attempts.get(n) is not bool(parts):
            return self._refusal(n)
        self.folders[n] = COMPLETE[not parts]
        self.attempts = {i: written for i, written in self.attempts.items() if i > n}
        return None

    def abandon(self, n: int) -> str | bool:
        """Give an attempt up."""
        if n not in self.attempts:
            return self._refusal(n) if n in self.complete else False
        del self.attempts[n]
        self._remove((n,))
        return True

    def _refusal(self, n: int) -> str:
        return "CompletedError" if n in self.complete and n not in self.attempts else "AttemptError"


VERBS = ("begin", "write", "complete_with", "abandon")
MOVES = (
    *(stimulus(verb, i, *([1] if verb == "complete_with" else [])) for i in range(1, MOST_ID + 1) for verb in VERBS),
    stimulus("complete_with", 1, 0),
    *(stimulus("retain", 1), stimulus("retain", 2), stimulus("clean")),
)
STORES = ("the store in memory", "the directory")


def _line(answer: object, *stands: object) -> str:
    return f"{answer}; completed, highest, leftovers, loaded, latest: {', '.join(map(str, stands))}"


class Stores(Under):
    """Both stores, with the verbs of `StoreReference`."""

    machines: Sequence[object] = ()

    def __init__(self, components: Components) -> None:
        self._memory, self._disk = MemoryStore(), Direct(EMPTY)
        self._directory = DirectoryStore(PATH, self._disk.port)
        self._seen: dict[Hashable, tuple[object, ...]] = {}  # by what is captured of a store

    def capture(self) -> tuple[Hashable, Hashable]:
        """Return what is stored, and what the stores remember."""
        files = tuple((i, tuple(files.items())) for i, files in self._memory.medium.files.items())
        return (files, self._memory.capture()), (self._disk.tree, self._directory.capture())

    def restore(self, value: Any) -> None:
        """Restore the stores of which `value` was captured."""
        (files, memory), (tree, directory) = value
        self._memory, self._disk = MemoryStore(), Direct(tree)
        self._memory.medium.files = {i: dict(each) for i, each in files}
        self._memory.restore(memory)
        self._directory = DirectoryStore(PATH, self._disk.port)
        self._directory.restore(directory)

    def call(self, move: CallStimulus) -> tuple[str, ...]:
        """Return the answer of each store to a call, and what can be asked of it then."""
        stores = self._memory, self._directory
        answers = [_answer(partial(_made, store, move)) for store in stores]
        lines = []
        for name, store, answer, captured in zip(STORES, stores, answers, self.capture(), strict=True):
            if captured not in self._seen:
                self._seen[captured] = seen(store)
            lines.append(f"{name}: {_line(answer, *self._seen[captured])}")
        return tuple(lines)


def _made(store: SnapshotStore, move: CallStimulus) -> object:
    """Make a call of a store."""
    arguments: tuple[Any, ...] = move.arguments
    if move.verb == "write":
        (number,) = arguments
        return "a part" if store.write(number, content(number)) == part(number) else "another"
    if move.verb != "complete_with":
        return getattr(store, move.verb)(*arguments)
    number, parts = arguments
    store.complete(Manifest(number, number, False, (part(number),) * parts))
    return None


def _answer(call: Callable[[], object]) -> object:
    try:
        return call()
    except BarrierError as error:
        return type(error).__name__
    except Exception as error:  # whatever the code under test does
        return f"{type(error).__name__}: {error}"


def seen(store: SnapshotStore) -> tuple[object, ...]:
    """Return all that can be asked without changing anything that matters."""
    loaded = []
    for checkpoint_id in range(1, MOST_ID + 1):
        found = _answer(lambda i=checkpoint_id: store.load(i).snapshots)  # type: ignore[misc]
        loaded.append("whole" if found == (content(checkpoint_id),) else "empty" if found == () else found)
    latest = _answer(lambda: store.latest_usable().checkpoint.manifest.checkpoint_id)
    return store.completed(), store.highest_id(), store.leftovers(), tuple(loaded), latest if type(latest) is int else 0


SCOPE = ComponentScope("store: any order of calls", 150, Stores, StoreReference, "store", "CALLS")
