"""Where checkpoints are kept: in memory, or in a directory that survives a crash at any moment.

Invariant: what is listed as complete is what was written, every byte of it, or an error names the file that is not.
An attempt writes each task's part, flushed, into the checkpoint's folder; the checkpoint is complete when its manifest,
written under a temporary name and flushed, has been renamed into place (protocol rule 20; defect P-13). A folder
without a manifest is a leftover: it is ignored, and `clean` removes it. What is complete never changes; `retain`
takes the manifest away first, so that what it removes is a leftover from then on. The folder of the highest id is
never removed, only emptied: it says which ids have been used (protocol rule 2).

A store has one writer and any number of readers, in this process or in others. This is the one module of `impl` that
does I/O, all of it through `Files`. The names within a checkpoint's folder are F-DCKP-006's; see `impl.snapshot`.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from impl.errors import (
    AttemptError,
    CheckpointIdError,
    CompletedError,
    DamagedError,
    LimitError,
    NotCompleteError,
    NoUsableCheckpointError,
    RegressingIdError,
    StoreError,
    StoreFailedError,
)
from impl.manifest import MAX_MANIFEST_BYTES, decode_manifest, encode_manifest
from impl.messages import MAX_U64
from impl.snapshot import Checkpoint, Manifest, Part, StoredFile, TaskSnapshot, files_of, snapshot_from

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFEST = "manifest.json"
MANIFEST_UNFINISHED = "manifest.json.tmp"
_FOLDER = re.compile(r"checkpoint-([1-9][0-9]{0,19})", re.ASCII)


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
    """Where checkpoints are kept: attempts, completion, recovery, retention, over a medium that a subclass provides."""

    def __init__(self) -> None:
        self._attempts: dict[int, dict[tuple[str, int], Part]] = {}
        self._pins: list[int] = []
        self._unusable: set[int] = set()  # complete ones that could not be read whole

    # An attempt.

    def begin(self, checkpoint_id: int) -> None:
        """A checkpoint is under way. Its id is used from now on, whatever becomes of it (protocol rule 2).

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
        with _asking(f"beginning checkpoint {checkpoint_id}"):
            self._make(checkpoint_id)
        self._attempts[checkpoint_id] = {}

    def write(self, checkpoint_id: int, snapshot: TaskSnapshot) -> Part:
        """Keep a task's part; it is durable when this returns, and only then may the task acknowledge.

        Returns
        -------
        Part
            What the manifest must say of it.

        Raises
        ------
        CompletedError, AttemptError
            If the checkpoint is complete, not under way, or has this task's part.
        StoreFailedError
            If the medium refuses. The part may be written again, or the checkpoint declined.
        """
        parts = self._attempt("write", checkpoint_id)
        task = snapshot.operator_id, snapshot.subtask
        if task in parts:
            raise AttemptError(f"a second part of {task[0]}[{task[1]}] for checkpoint {checkpoint_id}", "one a task")
        part, files = files_of(snapshot)
        with _asking(f"writing {task[0]}[{task[1]}] for checkpoint {checkpoint_id}"):
            self._save(checkpoint_id, files)
        parts[task] = part
        return part

    def complete(self, manifest: Manifest) -> None:
        """The checkpoint is complete and durable when this returns; every older one under way is given up (rule 20).

        Raises
        ------
        CompletedError, AttemptError
            If the checkpoint is complete or not under way, or the parts are not exactly those that were written.
        LimitError
            If the manifest is too long.
        StoreFailedError
            If the medium refuses. If it is not `definite`, the checkpoint may be complete or not: complete it again, or
            abandon it; until then no sink may commit or abort what it has prepared.
        """
        checkpoint_id = manifest.checkpoint_id
        parts = self._attempt("complete", checkpoint_id)
        if {(part.operator_id, part.subtask): part for part in manifest.parts} != parts:
            tasks = ", ".join(f"{operator_id}[{subtask}]" for operator_id, subtask in sorted(parts)) or "none"
            raise AttemptError(
                f"a manifest of checkpoint {checkpoint_id} with other parts", f"those that were written: {tasks}"
            )
        self._publish(checkpoint_id, encode_manifest(manifest))
        for other in [other for other in self._attempts if other <= checkpoint_id]:
            del self._attempts[other]

    def abandon(self, checkpoint_id: int) -> bool:
        """Give a checkpoint up and remove what was written; False if it was not under way.

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
        with _asking(f"abandoning checkpoint {checkpoint_id}"):
            self._remove(checkpoint_id)
        del self._attempts[checkpoint_id]
        return True

    # What is complete.

    def completed(self) -> tuple[int, ...]:
        """The ids of the complete checkpoints, newest first. None of them need be readable."""
        with _asking("listing checkpoints"):
            return tuple(sorted(self._published(), reverse=True))

    def highest_id(self) -> int:
        """The highest id that was ever begun, 0 at first: recovery goes on above it (protocol rule 2)."""
        with _asking("listing checkpoints"):
            return max(self._ids(), default=0)

    def load(self, checkpoint_id: int) -> Checkpoint:
        """A complete checkpoint, every byte of it verified (protocol rule 22).

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
            self._unusable.add(checkpoint_id)
            raise
        self._unusable.discard(checkpoint_id)
        return checkpoint

    def latest_usable(self) -> Usable:
        """The newest complete checkpoint that can be read whole, and why each newer one cannot (protocol rule 22).

        Damaged in-flight data makes a checkpoint unusable like any other damage: the source would not send it again
        (defect U-11).

        Raises
        ------
        NoUsableCheckpointError
            If there is none.
        """
        while True:  # each round but the last has seen a checkpoint go
            passed_over: list[Unusable] = []
            for checkpoint_id in self.completed():
                try:
                    return Usable(self.load(checkpoint_id), tuple(passed_over))
                except NotCompleteError:
                    break  # retention was faster, which means that there are newer ones
                except StoreError as error:
                    passed_over.append(Unusable(checkpoint_id, str(error)))
            else:
                raise NoUsableCheckpointError(tuple((each.checkpoint_id, each.why) for each in passed_over))

    # Retention.

    def pin(self, checkpoint_id: int) -> None:
        """Keep a complete checkpoint whatever `retain` is told, for as long as it is being restored.

        Raises
        ------
        NotCompleteError
            If it is not complete.
        """
        if checkpoint_id not in (completed := self.completed()):
            raise NotCompleteError(checkpoint_id, completed)
        self._pins.append(checkpoint_id)

    def unpin(self, checkpoint_id: int) -> None:
        """Take one pin away, if there is one."""
        if checkpoint_id in self._pins:
            self._pins.remove(checkpoint_id)

    def retain(self, newest: int) -> tuple[int, ...]:
        """Remove the complete checkpoints that are older than the `newest` newest ones and not pinned.

        One that could not be read whole does not count: else damage to the newest would cost the last usable one.

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
        if type(newest) is not int or newest < 1:
            raise LimitError("newest", newest, "at least 1 checkpoint")
        completed = self.completed()
        counted = [checkpoint_id for checkpoint_id in completed if checkpoint_id not in self._unusable]
        oldest = counted[newest - 1] if len(counted) >= newest else 0
        removed = tuple(each for each in completed if each < oldest and each not in self._pins)
        for checkpoint_id in removed:
            with _asking(f"removing checkpoint {checkpoint_id}"):
                self._remove(checkpoint_id)
            self._unusable.discard(checkpoint_id)
        return removed

    def leftovers(self) -> tuple[int, ...]:
        """Ids that are neither complete nor under way here, newest first: failed attempts, half removals."""
        with _asking("listing leftovers"):
            ids = self._ids()
            others = set(ids) - set(self._published()) - set(self._attempts)
            return tuple(sorted((each for each in others if each < max(ids) or not self._is_empty(each)), reverse=True))

    def clean(self) -> tuple[int, ...]:
        """Remove the leftovers. Only the writer may: to anybody else its attempts look like some.

        Raises
        ------
        StoreFailedError
            If the medium refuses.
        """
        leftovers = self.leftovers()
        for checkpoint_id in leftovers:
            with _asking(f"removing the leftover {checkpoint_id}"):
                self._remove(checkpoint_id)
        return leftovers

    # Helpers.

    def _not_complete(self, call: str, checkpoint_id: int) -> None:
        if checkpoint_id in self.completed():
            raise CompletedError(call, checkpoint_id)

    def _attempt(self, call: str, checkpoint_id: int) -> dict[tuple[str, int], Part]:
        parts = self._attempts.get(checkpoint_id)
        if parts is None:
            self._not_complete(call, checkpoint_id)
            under_way = ", ".join(map(str, self._attempts)) or "none"
            raise AttemptError(f"{call} of checkpoint {checkpoint_id}, which is not under way", under_way)
        return parts

    def _loaded(self, checkpoint_id: int) -> Checkpoint:
        if checkpoint_id not in (completed := self.completed()):
            raise NotCompleteError(checkpoint_id, completed)
        data = self._read_whole(checkpoint_id, MANIFEST, MAX_MANIFEST_BYTES)
        manifest = decode_manifest(data, self._name(checkpoint_id, MANIFEST))
        if manifest.checkpoint_id != checkpoint_id:
            came = f"the manifest of checkpoint {manifest.checkpoint_id}"
            raise DamagedError(self._name(checkpoint_id, MANIFEST), came, f"that of checkpoint {checkpoint_id}")
        snapshots = []
        for part in manifest.parts:
            files: tuple[StoredFile, ...] = (part.state, *(entry.file for entry in part.in_flight))
            read = {file.path: self._read_whole(checkpoint_id, file.path, file.size_bytes) for file in files}
            snapshots.append(snapshot_from(part, read, self._name(checkpoint_id, "")))
        return Checkpoint(manifest, tuple(snapshots))

    def _read_whole(self, checkpoint_id: int, path: str, most: int) -> bytes:
        """A file, but at most one byte more than it should have."""
        name = self._name(checkpoint_id, path)
        try:
            return self._read(checkpoint_id, path, most + 1)
        except FileNotFoundError as error:
            if checkpoint_id not in (completed := self.completed()):
                raise NotCompleteError(checkpoint_id, completed) from error
            raise DamagedError(name, "no such file", "the file that the manifest names") from error
        except OSError as error:
            raise StoreFailedError(f"reading {name}", error) from error

    def _name(self, checkpoint_id: int, path: str) -> str:
        return f"checkpoint-{checkpoint_id}/{path}"

    # The medium. Each may raise OSError.

    def _make(self, checkpoint_id: int) -> None:
        """An empty folder for an attempt."""
        raise NotImplementedError

    def _save(self, checkpoint_id: int, files: dict[str, bytes]) -> None:
        """Files in it, durable."""
        raise NotImplementedError

    def _publish(self, checkpoint_id: int, manifest: bytes) -> None:
        """The manifest in it, all or nothing, durable. Raises StoreFailedError."""
        raise NotImplementedError

    def _ids(self) -> list[int]:
        """The ids that have a folder."""
        raise NotImplementedError

    def _published(self) -> list[int]:
        """The ids that have a manifest, or may have one."""
        raise NotImplementedError

    def _read(self, checkpoint_id: int, path: str, most: int) -> bytes:
        """The first `most` bytes of a file."""
        raise NotImplementedError

    def _remove(self, checkpoint_id: int) -> None:
        """The manifest first, if there is one; then the rest, but for the folder of the highest id."""
        raise NotImplementedError

    def _is_empty(self, checkpoint_id: int) -> bool:
        """Whether nothing is in the folder."""
        raise NotImplementedError


class MemoryStore(SnapshotStore):
    """Checkpoints as bytes in memory: for simulations and tests, and to say what a directory must do."""

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[int, dict[str, bytes]] = {}

    def _make(self, checkpoint_id: int) -> None:
        self._files[checkpoint_id] = {}

    def _save(self, checkpoint_id: int, files: dict[str, bytes]) -> None:
        self._files[checkpoint_id].update(files)

    def _publish(self, checkpoint_id: int, manifest: bytes) -> None:
        self._files[checkpoint_id][MANIFEST] = manifest

    def _ids(self) -> list[int]:
        return list(self._files)

    def _published(self) -> list[int]:
        return [checkpoint_id for checkpoint_id, files in self._files.items() if MANIFEST in files]

    def _read(self, checkpoint_id: int, path: str, most: int) -> bytes:
        if path not in self._files[checkpoint_id]:
            raise FileNotFoundError(path)
        return self._files[checkpoint_id][path][:most]

    def _remove(self, checkpoint_id: int) -> None:
        if checkpoint_id < max(self._files):
            del self._files[checkpoint_id]
        else:
            self._files[checkpoint_id] = {}

    def _is_empty(self, checkpoint_id: int) -> bool:
        return not self._files[checkpoint_id]


class Writing(Protocol):
    """A file that is being written."""

    def write(self, data: bytes, /) -> object:
        """Add bytes; they may be lost, in part and in any order, until `flush`."""

    def flush(self) -> None:
        """Return when all that was written is durable; the file's name may not be."""

    def close(self) -> None:
        """Nothing more will be written."""


class Files(Protocol):
    """The file system, as little of it as a store needs. Each method may raise OSError.

    What is done to the names in a folder - made, renamed, removed - may be lost, in any order, until `flush_folder`.
    """

    def names(self, folder: str) -> list[str]:
        """The names in a folder."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""

    def make_folder(self, path: str) -> None:
        """Make a folder in one that is there."""

    def flush_folder(self, path: str) -> None:
        """Return when the names in a folder are durable."""

    def create(self, path: str) -> Writing:
        """A new, empty file, in place of one that may be there."""

    def rename(self, path: str, to: str) -> None:
        """Give a file another name in its folder, in one step, in place of one that may be there."""

    def read(self, path: str, most: int) -> bytes:
        """The first `most` bytes of a file, or all if there are fewer."""

    def remove(self, path: str) -> None:
        """Remove a file, or a folder and all that is in it, in any order."""


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_file",)

    def __init__(self, path: str) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115  (`close` closes it)

    def write(self, data: bytes, /) -> None:
        """All of it: the system may take less at a time."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    def flush(self) -> None:
        """By the handle that wrote, for only that one is told of what failed."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Release the handle."""
        self._file.close()


class RealFiles:
    """The file system of the operating system."""

    __slots__ = ()

    def names(self, folder: str) -> list[str]:
        """`Files.names`."""
        return os.listdir(folder)

    def exists(self, path: str) -> bool:
        """`Files.exists`; an error is no answer, unlike with `os.path.exists`."""
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def make_folder(self, path: str) -> None:
        """`Files.make_folder`."""
        os.mkdir(path)

    def flush_folder(self, path: str) -> None:
        """`Files.flush_folder`; where folders cannot be opened (Windows), the system sees to it."""
        if os.name == "nt":
            return
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def create(self, path: str) -> RealFile:
        """`Files.create`."""
        return RealFile(path)

    def rename(self, path: str, to: str) -> None:
        """`Files.rename`."""
        os.replace(path, to)

    def read(self, path: str, most: int) -> bytes:
        """`Files.read`; room is made for what is there, not for what is hoped for."""
        with open(path, "rb") as file:
            return file.read(min(most, os.fstat(file.fileno()).st_size))

    def remove(self, path: str) -> None:
        """`Files.remove`."""
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.remove(path)


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
    StoreFailedError
        If the directory cannot be made.
    """

    def __init__(self, path: str, files: Files | None = None) -> None:
        super().__init__()
        self._path = path
        self._disk = files if files is not None else RealFiles()
        with _asking(f"making the directory {path}"):
            self._ensure_folder(path)

    def _make(self, checkpoint_id: int) -> None:
        self._disk.make_folder(self._at(checkpoint_id))
        self._disk.flush_folder(self._path)

    def _save(self, checkpoint_id: int, files: dict[str, bytes]) -> None:
        paths = {f"{self._at(checkpoint_id)}/{path}": data for path, data in files.items()}
        folders = sorted({os.path.dirname(path) for path in paths})
        for folder in folders:
            self._ensure_folder(folder)
        for path, data in paths.items():
            self._write(path, data)
        for folder in folders:
            self._disk.flush_folder(folder)

    def _publish(self, checkpoint_id: int, manifest: bytes) -> None:
        folder = self._at(checkpoint_id)
        with _asking(f"writing the manifest of checkpoint {checkpoint_id}"):
            self._write(f"{folder}/{MANIFEST_UNFINISHED}", manifest)
        with _asking(f"publishing checkpoint {checkpoint_id}", definite=False):
            self._disk.rename(f"{folder}/{MANIFEST_UNFINISHED}", f"{folder}/{MANIFEST}")
            self._disk.flush_folder(folder)

    def _published(self) -> list[int]:
        # Retention may run meanwhile, and removes one only when a newer one is complete. So the oldest is looked at
        # first, and all again if one was begun: else all that was listed could be gone, and its successor not listed.
        ids = sorted(self._ids())
        while True:
            published = [checkpoint_id for checkpoint_id in ids if self._may_be_complete(checkpoint_id)]
            before, ids = ids, sorted(self._ids())
            if ids[-1:] == before[-1:]:
                return published

    def _may_be_complete(self, checkpoint_id: int) -> bool:
        try:
            return self._disk.exists(f"{self._at(checkpoint_id)}/{MANIFEST}")
        except OSError:
            return True  # `load` will say what is wrong with it, and nobody removes it as a leftover

    def _read(self, checkpoint_id: int, path: str, most: int) -> bytes:
        return self._disk.read(f"{self._at(checkpoint_id)}/{path}", most)

    def _remove(self, checkpoint_id: int) -> None:
        folder, disk = self._at(checkpoint_id), self._disk
        if disk.exists(f"{folder}/{MANIFEST}"):
            disk.remove(f"{folder}/{MANIFEST}")
            disk.flush_folder(folder)  # before anything else goes: it must not look complete then
        if checkpoint_id < max(self._ids()):
            disk.remove(folder)
            disk.flush_folder(self._path)
        else:
            for name in disk.names(folder):
                disk.remove(f"{folder}/{name}")
            disk.flush_folder(folder)

    def _is_empty(self, checkpoint_id: int) -> bool:
        return not self._disk.names(self._at(checkpoint_id))

    def _ids(self) -> list[int]:
        found = (_FOLDER.fullmatch(name) for name in self._disk.names(self._path))
        return [int(match[1]) for match in found if match and int(match[1]) <= MAX_U64]

    def _at(self, checkpoint_id: int) -> str:
        return f"{self._path}/checkpoint-{checkpoint_id}"

    def _ensure_folder(self, path: str) -> None:
        """The folder, with its name and those of the folders around it durable."""
        parent = os.path.dirname(path)
        if not self._disk.exists(path):
            if parent:
                self._ensure_folder(parent)
            self._disk.make_folder(path)
        self._disk.flush_folder(parent or ".")

    def _write(self, path: str, data: bytes) -> None:
        with closing(self._disk.create(path)) as file:
            file.write(data)
            file.flush()


@contextmanager
def _asking(call: str, definite: bool = True) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailedError(call, error, definite) from error
