"""The store of checkpoints: in memory, or in a directory that survives a crash at any moment.

Invariant: what is listed as complete is what was written, every byte of it, or an error names the file that is not.
An attempt writes each task's part, flushed, into the checkpoint's folder; the checkpoint is complete when its manifest,
written under a temporary name and flushed, has been renamed into place (protocol rule 20; defect P-13). A folder
without a manifest is a leftover: it is ignored, and `clean` removes it. What is complete never changes; `retain`
takes the manifest away first, so that what it removes is a leftover from then on. The folder of the highest id is
never removed, only emptied: it says which ids have been used (protocol rule 2).

Any number of processes may read, and writers do not need to know of each other: an id is begun by who makes its folder,
which one of them does; and the unfinished manifest, made by `begin`, is the right to publish. Who removes an attempt
removes that first, and publishing renames it, so that of a writer and one that cleans up behind it one comes too late.

The medium is memory or a directory (`impl.storage.media`). The names within a checkpoint's folder are F-DCKP-006's; see
`impl.storage.snapshot`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from barrierlab.impl.checks import check_number, check_type
from barrierlab.impl.errors import (
    AttemptError,
    CheckpointIdError,
    CompletedError,
    DamagedError,
    NotCompleteError,
    NoUsableCheckpointError,
    RegressingIdError,
    StoreError,
    StoreFailedError,
)
from barrierlab.impl.messages import MAX_U64
from barrierlab.impl.storage.files import Files, NotAFileError
from barrierlab.impl.storage.manifest import MAX_MANIFEST_BYTES, decode_manifest, encode_manifest
from barrierlab.impl.storage.media import AGAIN, MANIFEST, DirectoryMedium, Medium, MemoryMedium, asking
from barrierlab.impl.storage.snapshot import (
    Checkpoint,
    Manifest,
    StoredFile,
    StoredSnapshot,
    TaskSnapshot,
    files_of,
    snapshot_from,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

UNREADABLE = "its checkpoint is unusable until then: go back to an older one"


@dataclass(frozen=True, slots=True)
class Unusable:
    """A complete checkpoint that was passed over, and why: it names the file."""

    checkpoint_id: int
    why: str


@dataclass(frozen=True, slots=True)
class Usable:
    """The newest checkpoint of which every byte is as written, and the newer ones that are not (protocol rule 22)."""

    checkpoint: Checkpoint
    passed_over: tuple[Unusable, ...]


class SnapshotStore:
    """The store of checkpoints: attempts, completion, recovery, retention, over a medium.

    Parameters
    ----------
    medium : Medium
    """

    def __init__(self, medium: Medium) -> None:
        self.medium = medium
        self._attempts: dict[int, dict[tuple[str, int], StoredSnapshot]] = {}
        self._in_doubt: set[int] = set()  # attempts that may be complete on the medium
        self._whole: dict[int, bool] = {}  # complete ones that are known to be whole and durable, or known not to be

    # An attempt.

    def begin(self, checkpoint_id: int) -> None:
        """Begin an attempt. Its id counts as used from now on, whatever the result (protocol rule 2).

        Raises
        ------
        CheckpointIdError, CompletedError, RegressingIdError
            If the id is none, complete, or not above every one that was ever begun.
        StoreFailedError
            If the medium refuses.
        """
        if type(checkpoint_id) is not int or not 1 <= checkpoint_id <= MAX_U64:
            raise CheckpointIdError(checkpoint_id)
        self._not_complete("begin", checkpoint_id)
        if checkpoint_id <= (highest := self.highest_id()):
            raise RegressingIdError(checkpoint_id, highest)
        with asking(f"beginning checkpoint {checkpoint_id}"):
            self.medium.make(checkpoint_id)
        self._attempts[checkpoint_id] = {}

    def write(self, checkpoint_id: int, snapshot: TaskSnapshot) -> StoredSnapshot:
        """Write a task's part; it is durable when this returns, and only then may the task acknowledge.

        Returns
        -------
        StoredSnapshot
            What the manifest must say of it.

        Raises
        ------
        CompletedError, AttemptError
            If the checkpoint is complete, not under way, or has this task's part.
        LimitError
            If an event in flight is too long, or `snapshot` is none.
        StoreFailedError
            If the medium refuses. The part may be written again, or the checkpoint declined.
        """
        check_type("snapshot", snapshot, TaskSnapshot)
        parts = self._attempt("write", checkpoint_id)
        task = snapshot.operator_id, snapshot.subtask
        if task in parts:
            raise AttemptError(f"a second part of {task[0]}[{task[1]}] for checkpoint {checkpoint_id}", "one a task")
        part, files = files_of(snapshot)
        with asking(f"writing {task[0]}[{task[1]}] for checkpoint {checkpoint_id}"):
            self.medium.save(checkpoint_id, files)
        parts[task] = part
        return part

    def complete(self, manifest: Manifest) -> None:
        """Complete a checkpoint: it is durable when this returns; every older attempt is aborted (rule 20).

        Raises
        ------
        CompletedError, AttemptError
            If the checkpoint is complete or not under way, or the parts are not exactly those that were written.
        LimitError
            If the manifest is too long, or is none.
        StoreFailedError
            If the medium refuses. If it is not `definite`, the checkpoint may be complete or not: complete it again, or
            abandon it; until then no sink may commit or abort what it has prepared.
        """
        check_type("manifest", manifest, Manifest)
        checkpoint_id = manifest.checkpoint_id
        parts = self._attempt("complete", checkpoint_id)
        if {(part.operator_id, part.subtask): part for part in manifest.parts} != parts:
            tasks = ", ".join(f"{operator_id}[{subtask}]" for operator_id, subtask in sorted(parts)) or "none"
            raise AttemptError(
                f"a manifest of checkpoint {checkpoint_id} with other parts", f"those that were written: {tasks}"
            )
        data = encode_manifest(manifest)
        try:
            self.medium.publish(checkpoint_id, data)
        except StoreFailedError as error:
            if error.definite and checkpoint_id in self._in_doubt:  # this time; but not what was done before
                raise StoreFailedError(error.call, error.cause, definite=False) from error
            if not error.definite:
                self._in_doubt.add(checkpoint_id)
            raise
        self._whole[checkpoint_id] = True
        for other in [other for other in self._attempts if other <= checkpoint_id]:
            self._forget(other)

    def abandon(self, checkpoint_id: int) -> bool:
        """Abort a checkpoint and remove its files; return False if it was not under way.

        Raises
        ------
        CompletedError
            If it is complete.
        StoreFailedError
            If the medium refuses; it stays under way, and can be abandoned again.
        """
        if checkpoint_id not in self._attempts:
            self._not_complete("abandon", checkpoint_id)
            return False
        with asking(f"abandoning checkpoint {checkpoint_id}", hint=AGAIN):
            self.medium.remove(checkpoint_id)
        self._forget(checkpoint_id)
        return True

    # What is complete.

    def completed(self) -> tuple[int, ...]:
        """Return the ids of the complete checkpoints, newest first. None of them need be readable.

        One that the medium gives no answer about is not among them; `latest_usable` names it.
        """
        return self._listed(True)

    def highest_id(self) -> int:
        """Return the highest id that was ever begun, 0 at first: recovery continues above it (protocol rule 2)."""
        with asking("listing checkpoints", hint=AGAIN):
            return max(self.medium.ids(), default=0)

    def load(self, checkpoint_id: int) -> Checkpoint:
        """Return a complete checkpoint, every byte of it verified (protocol rule 22).

        That it is complete is durable when this returns: who published it may have stopped before that was so.

        Raises
        ------
        NotCompleteError
            If it is not complete, or was removed meanwhile.
        DamagedError
            If a file is missing or not, byte for byte, what was written.
        StoreFailedError
            If the medium refuses.
        """
        try:
            checkpoint = self._loaded(checkpoint_id)
        except NotCompleteError:
            raise
        except StoreError:
            self._whole[checkpoint_id] = False
            raise
        self._whole[checkpoint_id] = True
        return checkpoint

    def latest_usable(self) -> Usable:
        """Return the newest complete checkpoint that can be read whole, and why each newer one cannot (protocol rule
        22).

        Damaged in-flight data makes a checkpoint unusable like any other damage: the source would not send it again
        (defect U-11).

        Raises
        ------
        NoUsableCheckpointError
            If there is none.
        """
        while True:  # each round but the last has seen a checkpoint go
            passed_over: list[Unusable] = []
            for checkpoint_id in self._listed(True, None):
                try:
                    return Usable(self.load(checkpoint_id), tuple(passed_over))
                except NotCompleteError:
                    break  # retention was faster, which means that there are newer ones
                except StoreError as error:
                    passed_over.append(Unusable(checkpoint_id, str(error)))
            else:
                raise NoUsableCheckpointError(tuple((each.checkpoint_id, each.why) for each in passed_over))

    # Retention.

    def retain(self, newest: int) -> tuple[int, ...]:
        """Remove the complete checkpoints that are older than the `newest` newest ones that are whole.

        What this store did not write or read itself it reads first: what is damaged, under way, or not to be looked at
        does not count, or it would cost the last usable one.

        Returns
        -------
        tuple of int
            What was removed, newest first.

        Raises
        ------
        LimitError
            If `newest` is less than 1.
        StoreFailedError
            If the medium refuses.
        """
        check_number("newest", newest, 1)
        settled = [checkpoint_id for checkpoint_id in self.completed() if checkpoint_id not in self._attempts]
        whole = list(islice(filter(self._is_whole, settled), newest))
        oldest = whole[-1] if len(whole) == newest else 0
        removed = tuple(checkpoint_id for checkpoint_id in settled if checkpoint_id < oldest)
        for checkpoint_id in removed:
            with asking(f"removing checkpoint {checkpoint_id}", hint=AGAIN):
                self.medium.remove(checkpoint_id)
            self._whole.pop(checkpoint_id, None)
        return removed

    def leftovers(self) -> tuple[int, ...]:
        """Return ids that are neither complete nor under way here, newest first: failed attempts, half removals."""
        with asking("listing leftovers", hint=AGAIN):
            published = self.medium.published()
            last = max(published, default=0)
            found = [i for i, state in published.items() if state is False and i not in self._attempts]
            return tuple(
                sorted((each for each in found if each < last or not self.medium.is_empty(each)), reverse=True)
            )

    def clean(self) -> tuple[int, ...]:
        """Remove the leftovers, and the attempts of other writers, which look like some.

        Returns
        -------
        tuple of int
            What was removed, newest first.

        Raises
        ------
        StoreFailedError
            If the medium refuses, or if such an attempt is being published meanwhile.
        """
        removed = []
        for checkpoint_id in self.leftovers():
            with asking(f"removing the leftover {checkpoint_id}", hint=AGAIN):
                if self.medium.remove(checkpoint_id, leftover=True):
                    removed.append(checkpoint_id)
        return tuple(removed)

    # Capture and restore.

    def capture(self) -> Hashable:
        """Return the state for `restore` beside the medium."""
        attempts = tuple((checkpoint_id, tuple(parts.values())) for checkpoint_id, parts in self._attempts.items())
        return attempts, tuple(sorted(self._in_doubt)), tuple(sorted(self._whole.items()))

    def restore(self, value: Hashable) -> None:
        """Restore what `capture` of a store over the same medium returned."""
        attempts, in_doubt, whole = value  # type: ignore[misc]
        self._attempts = {i: {(part.operator_id, part.subtask): part for part in parts} for i, parts in attempts}  # type: ignore[has-type]
        self._in_doubt = set(in_doubt)  # type: ignore[has-type]
        self._whole = dict(whole)  # type: ignore[has-type]

    # Helpers.

    def _listed(self, *states: bool | None) -> tuple[int, ...]:
        """Return the ids in one of these states, newest first; attempts of this store only if they are in doubt."""
        with asking("listing checkpoints", hint=AGAIN):
            published = self.medium.published().items()
        under_way = self._attempts.keys() - self._in_doubt
        return tuple(sorted((i for i, state in published if state in states and i not in under_way), reverse=True))

    def _is_whole(self, checkpoint_id: int) -> bool:
        if checkpoint_id not in self._whole:
            try:
                self.load(checkpoint_id)
            except NotCompleteError:
                return False
            except StoreError:
                pass  # `load` has noted it
        return self._whole[checkpoint_id]

    def _forget(self, checkpoint_id: int) -> None:
        """Remove an attempt from those under way."""
        del self._attempts[checkpoint_id]
        self._in_doubt.discard(checkpoint_id)

    def _not_complete(self, call: str, checkpoint_id: int) -> None:
        if checkpoint_id in self.completed():
            raise CompletedError(call, checkpoint_id)

    def _attempt(self, call: str, checkpoint_id: int) -> dict[tuple[str, int], StoredSnapshot]:
        parts = self._attempts.get(checkpoint_id)
        if parts is None:
            self._not_complete(call, checkpoint_id)
            under_way = ", ".join(map(str, self._attempts)) or "none"
            raise AttemptError(f"{call} of checkpoint {checkpoint_id}, which is not under way", under_way)
        return parts

    def _loaded(self, checkpoint_id: int) -> Checkpoint:
        if checkpoint_id not in self._listed(True, None):
            raise NotCompleteError(checkpoint_id, self.completed())
        data = self._read_whole(checkpoint_id, MANIFEST, MAX_MANIFEST_BYTES)
        manifest = decode_manifest(data, self._name(checkpoint_id, MANIFEST))
        if manifest.checkpoint_id != checkpoint_id:
            actual = f"the manifest of checkpoint {manifest.checkpoint_id}"
            raise DamagedError(self._name(checkpoint_id, MANIFEST), actual, f"that of checkpoint {checkpoint_id}")
        snapshots = []
        for part in manifest.parts:
            files: tuple[StoredFile, ...] = (part.state, *(entry.file for entry in part.in_flight))
            read = {file.path: self._read_whole(checkpoint_id, file.path, file.size_bytes) for file in files}
            snapshots.append(snapshot_from(part, read, self._name(checkpoint_id, "")))
        try:
            self.medium.settle(checkpoint_id)
        except FileNotFoundError as error:
            raise NotCompleteError(checkpoint_id, self.completed()) from error
        except OSError as error:
            raise StoreFailedError(f"flushing checkpoint {checkpoint_id}", error, hint=UNREADABLE) from error
        return Checkpoint(manifest, tuple(snapshots))

    def _read_whole(self, checkpoint_id: int, path: str, most: int) -> bytes:
        """Return a file, but at most one byte more than it should have."""
        name = self._name(checkpoint_id, path)
        try:
            return self.medium.read(checkpoint_id, path, most + 1)
        except FileNotFoundError as error:
            if checkpoint_id not in self._listed(True, None):
                raise NotCompleteError(checkpoint_id, self.completed()) from error
            raise DamagedError(name, "no such file", "the file that was written") from error
        except (NotAFileError, NotADirectoryError) as error:
            raise DamagedError(name, f"{error.strerror}", "the file that was written") from error
        except OSError as error:
            raise StoreFailedError(f"reading {name}", error, hint=UNREADABLE) from error

    def _name(self, checkpoint_id: int, path: str) -> str:
        return f"checkpoint-{checkpoint_id}/{path}"


class MemoryStore(SnapshotStore):
    """Checkpoints as bytes in memory: for simulations and tests, and to say what a directory must do."""

    medium: MemoryMedium

    def __init__(self) -> None:
        super().__init__(MemoryMedium())


class DirectoryStore(SnapshotStore):
    """Checkpoints in a directory, ``checkpoint-{id}`` each.

    Parameters
    ----------
    path : str
        The directory; it and its parents are made if need be.
    files : Files
        Another file system, for tests.

    Raises
    ------
    LimitError
        If no directory can have this path.
    StoreFailedError
        If the directory cannot be made, or it is none.
    """

    def __init__(self, path: str, files: Files | None = None) -> None:
        super().__init__(DirectoryMedium(path, files))
