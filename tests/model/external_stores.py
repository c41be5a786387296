"""Stores of checkpoints as an engine may bring them: a sound one, and some with one mistake each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from barrierlab.impl.errors import CompletedError, StoreError
from barrierlab.impl.storage.media import MANIFEST, MANIFEST_UNFINISHED, DirectoryMedium
from barrierlab.impl.storage.snapshot import Manifest, StoredSnapshot, TaskSnapshot
from barrierlab.impl.storage.store import SnapshotStore
from docs.parts.store import Files, Planted


class FlushesNoPart(Files):
    """The parts are written, and not flushed."""

    def put(self, checkpoint_id: int, name: str, data: bytes) -> None:
        self.files.create(self._path(f"{checkpoint_id}.part.{name}")).write(data)


class WritesTheListInPlace(Files):
    """The list of parts is written under its own name."""

    def complete(self, checkpoint_id: int, names: Sequence[str]) -> None:
        self._write(f"{checkpoint_id}.complete", " ".join(names).encode())
        self.open = [each for each in self.open if each != checkpoint_id]


class FlushesNoRename(Files):
    """The last name is not flushed."""

    def complete(self, checkpoint_id: int, names: Sequence[str]) -> None:
        self._write(f"{checkpoint_id}.new", " ".join(names).encode())
        self.files.rename(self._path(f"{checkpoint_id}.new"), self._path(f"{checkpoint_id}.complete"))


class RemovesPartsFirst(Files):
    """Anything that is discarded is still listed while its parts go."""

    def discard(self, checkpoint_id: int) -> None:
        names = [name for name in self.files.names(self.folder) if name.startswith(f"{checkpoint_id}.")]
        for name in sorted(names, key=lambda name: ".part." not in name):
            if not name.endswith(".begun"):
                self.files.remove(self._path(name))
        self.files.flush_folder(self.folder)


class ForgetsIds(Files):
    """The highest id is that of what is there."""

    def discard(self, checkpoint_id: int) -> None:
        super().discard(checkpoint_id)
        self.files.remove(self._path(f"{checkpoint_id}.begun"))


class CallsNoIdItsOwn(Files):
    """Goes on with an id of which nothing is flushed."""

    def begin(self, checkpoint_id: int) -> None:
        self.files.create(self._path(f"{checkpoint_id}.begun"))
        self.open.append(checkpoint_id)


class OfImpl:
    """A thin adapter over the store of `impl`: its errors are those of the medium."""

    role = "store"
    medium: type[DirectoryMedium] = DirectoryMedium

    def __init__(self, folder: str, files: Any) -> None:
        with _of_the_medium():
            self.store = SnapshotStore(self.medium(folder, files))
        self.parts: list[StoredSnapshot] = []

    def begin(self, checkpoint_id: int) -> None:
        with _of_the_medium():
            self.store.begin(checkpoint_id)
        self.parts = []

    def put(self, checkpoint_id: int, name: str, data: bytes) -> None:
        operator, _, subtask = name.partition("-")
        with _of_the_medium():
            self.parts.append(self.store.write(checkpoint_id, TaskSnapshot(operator, int(subtask), data)))

    def complete(self, checkpoint_id: int, names: Sequence[str]) -> None:
        with _of_the_medium():
            self.store.complete(Manifest(checkpoint_id, checkpoint_id, False, tuple(self.parts)))

    def discard(self, checkpoint_id: int) -> None:
        with _of_the_medium():
            try:
                if not self.store.abandon(checkpoint_id):
                    self.store.clean()
            except CompletedError as error:
                complete = self.store.completed()
                if checkpoint_id not in complete[1:]:  # of one of them the medium gives no answer now
                    raise OSError(str(error)) from error
                self.store.retain(complete.index(checkpoint_id))

    def list(self) -> tuple[int, ...]:
        with _of_the_medium():
            return self.store.completed()

    def get(self, checkpoint_id: int) -> dict[str, bytes]:
        with _of_the_medium():
            snapshots = self.store.load(checkpoint_id).snapshots
        return {f"{each.operator_id}-{each.subtask}": each.state for each in snapshots}

    def highest_id(self) -> int:
        with _of_the_medium():
            return self.store.highest_id()

    def leftovers(self) -> tuple[int, ...]:
        with _of_the_medium():
            return self.store.leftovers()


@contextmanager
def _of_the_medium() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise OSError(str(error)) from error


class FlushesNoFile(DirectoryMedium):
    """Bytes are written, and not flushed."""

    def _write(self, file: Any, data: bytes) -> None:
        file.write(data)


class FlushesNoAttempt(DirectoryMedium):
    """The folder of an attempt is made, and not flushed."""

    def make(self, checkpoint_id: int) -> None:
        folder = self._at(checkpoint_id)
        self._disk.make_folder(folder)
        self._disk.create(f"{folder}/{MANIFEST_UNFINISHED}").close()


class FlushesNoManifest(DirectoryMedium):
    """The name of the manifest is given, and not flushed."""

    def publish(self, checkpoint_id: int, manifest: bytes) -> None:
        folder = self._at(checkpoint_id)
        self._write(self._disk.reopen(f"{folder}/{MANIFEST_UNFINISHED}"), manifest)
        self._disk.rename(f"{folder}/{MANIFEST_UNFINISHED}", f"{folder}/{MANIFEST}")


class NoFile(OfImpl):
    """With the first of these."""

    medium = FlushesNoFile


class NoAttempt(OfImpl):
    """With the second."""

    medium = FlushesNoAttempt


class NoManifest(OfImpl):
    """With the third."""

    medium = FlushesNoManifest


PLANTED: dict[type, tuple[str, str]] = {
    NoFile: ("store: the first checkpoint, and a crash", "WHOLE"),
    NoAttempt: ("store: the first checkpoint, and a crash", "IDS"),
    NoManifest: ("store: the first checkpoint, and a crash", "KEPT"),
    FlushesNoPart: ("store: the first checkpoint, and a crash", "WHOLE"),
    WritesTheListInPlace: ("store: the first checkpoint, and a crash", "WHOLE"),
    FlushesNoRename: ("store: the first checkpoint, and a crash", "KEPT"),
    RemovesPartsFirst: ("store: three checkpoints, and a crash", "WHOLE"),
    ForgetsIds: ("store: all that can be asked", "IDS"),
    Planted: ("store: a killed process, then a crash", "KEPT"),
    CallsNoIdItsOwn: ("store: the first checkpoint, and a crash", "IDS"),
}
"""With one mistake, and where it comes out."""
