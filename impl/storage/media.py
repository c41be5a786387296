"""The media of a store of checkpoints: memory, and a directory that survives a crash at any moment.

Links are never followed below the directory of the store; what is no folder there is somebody else's, and stays. All
I/O goes through `impl.storage.files.Files`.
"""

from __future__ import annotations

import errno
import re
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Protocol

from barrierlab.impl.errors import StoreFailedError
from barrierlab.impl.messages import MAX_U64
from barrierlab.impl.storage.files import Files, RealFiles, Writing, directory

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFEST = "manifest.json"
MANIFEST_UNFINISHED = "manifest.json.tmp"
AGAIN = "mend the medium or the permissions, and do it again"
_FOLDER = re.compile(r"checkpoint-([1-9][0-9]{0,19})", re.ASCII)


class Medium(Protocol):
    """The calls that a store makes. Each may raise OSError."""

    def make(self, checkpoint_id: int) -> None:
        """Make an empty folder for an attempt."""

    def save(self, checkpoint_id: int, files: dict[str, bytes]) -> None:
        """Write files into it, durably."""

    def publish(self, checkpoint_id: int, manifest: bytes) -> None:
        """Write the manifest into it, durably, all or nothing. Raises StoreFailedError."""

    def ids(self) -> list[int]:
        """Return the ids whose names are taken, also by something that is no folder."""

    def published(self) -> dict[int, bool | None]:
        """Return the ids that have a folder, and whether a manifest is in it; None if the medium does not answer."""

    def settle(self, checkpoint_id: int) -> None:
        """Make it durable, before it returns, that the manifest is there."""

    def read(self, checkpoint_id: int, path: str, most: int) -> bytes:
        """Return the first `most` bytes of a file."""

    def remove(self, checkpoint_id: int, leftover: bool = False) -> bool:
        """Remove the manifest first, if there is one; then the rest, but for the folder of the highest id.

        False, and nothing is done, if it was to be a leftover and has a manifest.
        """

    def is_empty(self, checkpoint_id: int) -> bool:
        """Return whether nothing is in the folder."""


class MemoryMedium:
    """Bytes in memory.

    Attributes
    ----------
    files : dict of int to dict of str to bytes
        By checkpoint and path.
    """

    def __init__(self) -> None:
        self.files: dict[int, dict[str, bytes]] = {}

    def make(self, checkpoint_id: int) -> None:
        self.files[checkpoint_id] = {}

    def save(self, checkpoint_id: int, files: dict[str, bytes]) -> None:
        self.files[checkpoint_id].update(files)

    def publish(self, checkpoint_id: int, manifest: bytes) -> None:
        self.files[checkpoint_id][MANIFEST] = manifest

    def ids(self) -> list[int]:
        return list(self.files)

    def published(self) -> dict[int, bool | None]:
        return {checkpoint_id: MANIFEST in files for checkpoint_id, files in self.files.items()}

    def settle(self, checkpoint_id: int) -> None:
        """Do nothing: nothing in memory outlives a crash."""

    def read(self, checkpoint_id: int, path: str, most: int) -> bytes:
        if path not in self.files[checkpoint_id]:
            raise FileNotFoundError(path)
        return self.files[checkpoint_id][path][:most]

    def remove(self, checkpoint_id: int, leftover: bool = False) -> bool:
        if checkpoint_id < max(self.files):
            del self.files[checkpoint_id]
        else:
            self.files[checkpoint_id] = {}
        return True

    def is_empty(self, checkpoint_id: int) -> bool:
        return not self.files[checkpoint_id]


class DirectoryMedium:
    """A folder for each checkpoint, below one directory; every call goes through `Files`."""

    def __init__(self, path: str, files: Files | None = None) -> None:
        self._path = directory(path)
        self._disk = files if files is not None else RealFiles()
        with asking(f"making the directory {self._path!r}", hint=AGAIN):
            self._ensure_directory(self._path)

    def make(self, checkpoint_id: int) -> None:
        folder = self._at(checkpoint_id)
        self._disk.make_folder(folder)
        self._disk.flush_folder(self._path)
        self._disk.create(f"{folder}/{MANIFEST_UNFINISHED}").close()

    def save(self, checkpoint_id: int, files: dict[str, bytes]) -> None:
        at = self._at(checkpoint_id)
        folders = sorted({_folder_of(path) for path in files})
        for folder in folders:
            self._ensure_folder(checkpoint_id, folder)
        for path, data in files.items():
            self._write(self._disk.create(f"{at}/{path}"), data)
        for folder in folders:
            self._disk.flush_folder(f"{at}/{folder}")

    def publish(self, checkpoint_id: int, manifest: bytes) -> None:
        folder = self._at(checkpoint_id)
        unfinished, finished = f"{folder}/{MANIFEST_UNFINISHED}", f"{folder}/{MANIFEST}"
        with asking(f"writing the manifest of checkpoint {checkpoint_id}"):
            self._own(checkpoint_id)
            try:
                self._write(self._disk.reopen(unfinished), manifest)
                renamed = False
            except FileNotFoundError:
                if not self._disk.exists(finished) or self._disk.read(finished, len(manifest) + 1) != manifest:
                    raise  # somebody has removed the attempt
                renamed = True  # by an earlier call, which did not see it through
        with asking(f"publishing checkpoint {checkpoint_id}", definite=False):
            if not renamed:
                self._disk.rename(unfinished, finished)
            self._disk.flush_folder(folder)

    def published(self) -> dict[int, bool | None]:
        # Retention may run meanwhile, and removes one only when a newer one is complete. So the oldest is looked at
        # first, and all again if one was begun: else all that was listed could be gone, and its successor not listed.
        ids = sorted(self.ids())
        while True:
            published: dict[int, bool | None] = {}
            for checkpoint_id in ids:
                folder = self._at(checkpoint_id)
                try:
                    if self._disk.is_folder(folder):
                        published[checkpoint_id] = self._disk.exists(f"{folder}/{MANIFEST}")
                except FileNotFoundError:
                    continue  # removed meanwhile
                except OSError:
                    published[checkpoint_id] = None  # `load` will say what is wrong with it
            before, ids = ids, sorted(self.ids())
            if ids[-1:] == before[-1:]:
                return published

    def settle(self, checkpoint_id: int) -> None:
        self._disk.flush_folder(self._at(checkpoint_id))

    def read(self, checkpoint_id: int, path: str, most: int) -> bytes:
        self._own(checkpoint_id, _folder_of(path))
        return self._disk.read(f"{self._at(checkpoint_id)}/{path}", most)

    def remove(self, checkpoint_id: int, leftover: bool = False) -> bool:
        folder, disk = self._at(checkpoint_id), self._disk
        try:
            if not disk.is_folder(folder):
                return True  # nothing of the store's own is there any more
            names = disk.names(folder)
        except FileNotFoundError:
            return True
        if leftover and MANIFEST in names:
            return False
        if MANIFEST_UNFINISHED in names:
            disk.remove(f"{folder}/{MANIFEST_UNFINISHED}")  # before anything else: nobody can publish it any more
        if MANIFEST in names:
            disk.remove(f"{folder}/{MANIFEST}")
        # Before anything else goes it must not look complete, for good. Who took the manifest away may have been
        # somebody else, who did not come to that.
        disk.flush_folder(folder)
        for name in names:
            if name not in (MANIFEST, MANIFEST_UNFINISHED):
                self._clear(f"{folder}/{name}")
        if checkpoint_id < max(self.published()):
            disk.flush_folder(self._path)  # the folder of the highest id stays, so it must be there for good
            disk.remove(folder)
            disk.flush_folder(self._path)
        else:
            disk.flush_folder(folder)
        return True

    def _clear(self, path: str) -> None:
        """Remove a file, or a folder and all that is in it."""
        left = [path]
        while left:
            at = left[-1]
            inner = self._disk.names(at) if self._disk.is_folder(at) else []
            if inner:
                left.extend(f"{at}/{name}" for name in inner)
            else:
                self._disk.remove(left.pop())

    def is_empty(self, checkpoint_id: int) -> bool:
        return not self._disk.names(self._at(checkpoint_id))

    def ids(self) -> list[int]:
        found = (_FOLDER.fullmatch(name) for name in self._disk.names(self._path))
        return [int(match[1]) for match in found if match and int(match[1]) <= MAX_U64]

    def _at(self, checkpoint_id: int) -> str:
        return f"{self._path}/checkpoint-{checkpoint_id}"

    def _own(self, checkpoint_id: int, path: str = "") -> None:
        """Raise NotADirectoryError unless each folder on the way to this one is the store's own."""
        folder = self._at(checkpoint_id)
        for name in ("", *path.split("/")) if path else ("",):
            folder = f"{folder}/{name}" if name else folder
            if not self._disk.is_folder(folder):
                raise NotADirectoryError(errno.ENOTDIR, "a link or a file in place of a folder", folder)

    def _ensure_folder(self, checkpoint_id: int, path: str) -> None:
        """Make a folder in that of the checkpoint; its name and those of the folders around it are durable."""
        parent, at = _folder_of(path), self._at(checkpoint_id)
        if not self._disk.exists(f"{at}/{path}"):
            if parent:
                self._ensure_folder(checkpoint_id, parent)
            else:
                self._own(checkpoint_id)  # it is not made anew if somebody has removed the attempt
            self._disk.make_folder(f"{at}/{path}")
        self._own(checkpoint_id, path)
        self._disk.flush_folder(f"{at}/{parent}" if parent else at)

    def _ensure_directory(self, path: str) -> None:
        """Make the directory of the store, which may be a link to one."""
        parent = _folder_of(path)
        try:
            self._disk.names(path)
        except FileNotFoundError:
            if parent:
                self._ensure_directory(parent)
            self._disk.make_folder(path)
        self._disk.flush_folder(parent or ".")

    def _write(self, file: Writing, data: bytes) -> None:
        with closing(file):
            file.write(data)
            file.flush()


def _folder_of(path: str) -> str:
    """Return the folder of a path; empty if the path is one name."""
    folder, _, name = path.rpartition("/")
    return folder or ("/" if path != name else "")


@contextmanager
def asking(call: str, definite: bool = True, hint: str = "") -> Iterator[None]:
    """Turn an error of the medium into the one error of the store, which names the call."""
    try:
        yield
    except UnicodeError as error:  # a name that this file system's encoding does not have
        raise StoreFailedError(call, OSError(errno.EINVAL, str(error)), definite, hint) from error
    except OSError as error:
        raise StoreFailedError(call, error, definite, hint) from error
