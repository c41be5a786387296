"""A store with a file a part, and a list of their names that is written last; and one with a bug."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Files:
    """A file a part, and a list of their names that is written last; ids that were begun are files that stay."""

    role = "store"

    def __init__(self, folder: str, files: Any) -> None:
        self.folder, self.files = folder, files
        if not files.exists(folder):
            files.make_folder(folder)
        files.flush_folder("")
        self._settle()
        self.open: list[int] = []

    def _settle(self) -> None:
        """Flush the folder: a name that the last process gave may not be durable yet."""
        self.files.flush_folder(self.folder)

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _write(self, name: str, data: bytes) -> None:
        file = self.files.create(self._path(name))
        file.write(data)
        file.flush()
        self.files.flush_folder(self.folder)

    def begin(self, checkpoint_id: int) -> None:
        self._write(f"{checkpoint_id}.begun", b"")
        self.open.append(checkpoint_id)

    def put(self, checkpoint_id: int, name: str, data: bytes) -> None:
        self._write(f"{checkpoint_id}.part.{name}", data)

    def complete(self, checkpoint_id: int, names: Sequence[str]) -> None:
        self._write(f"{checkpoint_id}.new", " ".join(names).encode())
        self.files.rename(self._path(f"{checkpoint_id}.new"), self._path(f"{checkpoint_id}.complete"))
        self.files.flush_folder(self.folder)
        self.open = [each for each in self.open if each != checkpoint_id]

    def discard(self, checkpoint_id: int) -> None:
        names = [name for name in self.files.names(self.folder) if name.startswith(f"{checkpoint_id}.")]
        for last in ("new", "complete"):
            if f"{checkpoint_id}.{last}" in names:
                self.files.remove(self._path(f"{checkpoint_id}.{last}"))
        self.files.flush_folder(self.folder)
        for name in names:
            if ".part." in name:
                self.files.remove(self._path(name))
        self.files.flush_folder(self.folder)
        self.open = [each for each in self.open if each != checkpoint_id]

    def _ids(self, suffix: str) -> list[int]:
        return [
            int(name.partition(".")[0])
            for name in self.files.names(self.folder)
            if name.partition(".")[2].startswith(suffix)
        ]

    def list(self) -> list[int]:
        return self._ids("complete")

    def get(self, checkpoint_id: int) -> dict[str, bytes]:
        names = self.files.read(self._path(f"{checkpoint_id}.complete"), 1000).decode().split()
        return {name: self.files.read(self._path(f"{checkpoint_id}.part.{name}"), 1000) for name in names}

    def highest_id(self) -> int:
        return max(self._ids("begun"), default=0)

    def leftovers(self) -> set[int]:
        return {*self._ids("part"), *self._ids("new")} - {*self._ids("complete"), *self.open}


class Planted(Files):
    """Takes what is listed for durable."""

    def _settle(self) -> None: ...
