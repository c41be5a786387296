"""An external store of checkpoints in the place of `impl.storage.store`, over a file system that may forget.

Processes use it as `model.storage.world` has it, one writer at a time: every call of the file system is a move, before
and behind which the machine may stop, the process be killed, or the call fail. A store is copied between two
operations; what it does within one depends on what it is then and on the answers of the file system.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from barrierlab.model.checkpoint.hosting import Copy, ExternalError, being_made, brief, check_methods, said
from barrierlab.model.checkpoint.interfaces import CheckpointStore
from barrierlab.model.errors import RAISED
from barrierlab.model.storage.files import EMPTY, Direct, FilesPort, Tree
from barrierlab.model.storage.world import PATH, Client, Done, FoundCheckpoints, StoreBounds

_CANNOT_READ = (OSError, LookupError, ValueError)
"""Raised by `CheckpointStore.get`: the checkpoint is not there any more, or not whole."""


def examine(kind: type) -> None:
    """Look at a class before anything is explored.

    Raises
    ------
    ExternalError
        If it lacks a method, takes other arguments, cannot be made, or cannot be copied.
    """
    check_methods(kind, CheckpointStore)
    disk = Direct(EMPTY)
    with being_made(kind, "folder, files"):
        made = kind(PATH, disk.port)
    try:
        Copy(made, (disk.port,))
    except (TypeError, AttributeError, RecursionError) as error:
        raise ExternalError(f"{kind.__name__} cannot be copied: {said(error)}; allowed: fields that can be") from error


def parts_of(checkpoint_id: int, parts: int) -> dict[str, bytes]:
    """Return the parts of a checkpoint, which follow from its id."""
    return {name: f"{name} of checkpoint {checkpoint_id}".encode() for name in ("a-0", "t-1")[:parts]}


class ExternalCode:
    """Adapts an external store to `model.storage.world`.

    Parameters
    ----------
    bounds : StoreBounds
    kind : type
        A `CheckpointStore`.
    """

    def __init__(self, bounds: StoreBounds, kind: type) -> None:
        self.bounds, self._kind = bounds, kind

    def prepare(self, disk: Direct, begun: list[int]) -> None:
        """Store what the bounds say is there before, and note the ids that were begun."""
        if not self.bounds.before and not self.bounds.left:
            return
        store = self._kind(PATH, disk.port)
        for checkpoint_id in range(1, self.bounds.before + 1):
            store.begin(checkpoint_id)
            begun.append(checkpoint_id)
            parts = parts_of(checkpoint_id, self.bounds.parts)
            for name, data in parts.items():
                store.put(checkpoint_id, name, data)
            store.complete(checkpoint_id, tuple(parts))
        if self.bounds.left:
            left = self.bounds.before + 1
            store.begin(left)
            begun.append(left)
            for name, data in parts_of(left, 1).items():
                store.put(left, name, data)

    def operate(self, client: Client, port: FilesPort) -> Done:
        """Carry out the operation that a process is at."""
        store: Any = None
        try:
            if isinstance(client.store, Copy):
                store = client.store.machine((port,))
                done = self._carry_out(store, client)
            else:
                store, done = self._kind(PATH, port), Done("done", 0)
        except OSError:  # the medium's
            done = Done("failed", client.stage != "complete")
        except RAISED as error:  # whatever the code under test does
            done = Done("raised", said(error))
        return done._replace(store=None if store is None else Copy(store, (port,)))

    def _carry_out(self, store: Any, client: Client) -> Done:
        verb, _, argument = client.work[0].partition(" ")
        checkpoint_id, stage = client.checkpoint_id, client.stage
        if verb == "recover":
            return self._recovered(store)
        if verb == "clean":
            for each in _ids("leftovers", store.leftovers()):
                store.discard(each)
        elif verb == "retain":
            for each in _ids("list", store.list())[int(argument) :]:
                store.discard(each)
        elif not stage:
            checkpoint_id = _number(store) + 1
            store.begin(checkpoint_id)
        elif stage == "write":
            name, data = list(parts_of(checkpoint_id, self.bounds.parts).items())[len(client.parts)]
            store.put(checkpoint_id, name, data)
            return Done("wrote", name)
        elif stage == "complete":
            store.complete(checkpoint_id, client.parts)
        else:
            store.discard(checkpoint_id)
        return Done("done", checkpoint_id)

    def _recovered(self, store: Any) -> Done:
        """Find the newest checkpoint that can be read; if all that were listed have gone meanwhile, look again."""
        listed: tuple[int, ...] | None = None
        while (now := _ids("list", store.list())) and now != listed:
            listed = now
            for checkpoint_id in listed:
                try:
                    found = store.get(checkpoint_id)
                except _CANNOT_READ:
                    continue
                return Done("recovered", (checkpoint_id, self._wrong_in(checkpoint_id, found), ()))
        return Done("none usable")

    def _wrong_in(self, checkpoint_id: int, found: object) -> str:
        if not isinstance(found, Mapping):
            raise ExternalError(f"get answered {brief(found)}; allowed: the parts, by name")
        if dict(found) != parts_of(checkpoint_id, self.bounds.parts):
            return f"WHOLE: of checkpoint {checkpoint_id} was read {brief(dict(found))}"
        return ""

    def look(self, tree: Tree) -> FoundCheckpoints:
        """Look at everything, where nothing fails."""
        try:
            store = self._kind(PATH, Direct(tree).port)
            completed = _ids("list", store.list())
            for checkpoint_id in completed:
                try:
                    found = store.get(checkpoint_id)
                except _CANNOT_READ as error:
                    return FoundCheckpoints(
                        failed=f"WHOLE: checkpoint {checkpoint_id} is listed, and cannot be read: {said(error)}"
                    )
                if wrong := self._wrong_in(checkpoint_id, found):
                    return FoundCheckpoints(failed=wrong)
            return FoundCheckpoints(completed, _number(store), _ids("leftovers", store.leftovers()))
        except RAISED as error:  # whatever the code under test does
            return FoundCheckpoints(failed=f"RAISED: {said(error)}")


def _number(store: Any) -> int:
    answer = store.highest_id()
    if type(answer) is not int:
        _refuse("highest_id", answer, "a number")
    return answer


def _ids(method: str, answer: object) -> tuple[int, ...]:
    """Return what a store lists, newest first."""
    if isinstance(answer, str | bytes) or not isinstance(answer, Iterable):
        _refuse(method, answer, "ids")
    found = tuple(answer)
    for each in found:
        if type(each) is not int:
            _refuse(method, each, "ids")
    return tuple(sorted(found, reverse=True))


def _refuse(method: str, answer: object, allowed: str) -> NoReturn:
    raise ExternalError(f"{method} answered {brief(answer)}; allowed: {allowed}")
