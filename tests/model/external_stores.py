"""Stores of checkpoints as an engine may bring them: a sound one, and some with one mistake each."""

from __future__ import annotations

from collections.abc import Sequence

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
    """What is discarded is still listed while its parts go."""

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


PLANTED: dict[type, tuple[str, str]] = {
    FlushesNoPart: ("store: the first checkpoint, and a crash", "WHOLE"),
    WritesTheListInPlace: ("store: the first checkpoint, and a crash", "WHOLE"),
    FlushesNoRename: ("store: the first checkpoint, and a crash", "KEPT"),
    RemovesPartsFirst: ("store: three checkpoints, and a crash", "WHOLE"),
    ForgetsIds: ("store: all that can be asked", "IDS"),
    Planted: ("store: a killed process, then a crash", "KEPT"),
    CallsNoIdItsOwn: ("store: the first checkpoint, and a crash", "IDS"),
}
"""With one mistake, and where it comes out."""
