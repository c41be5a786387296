"""A disk in memory that can stop after any step, and forgets what was not flushed in any way that a real one may.

What was written to a file is kept from `flush` on, what was done to the names in a folder from `flush_folder` on.
Before that a crash may keep each change to a folder or not, whatever their order, and of a file the old content, the
new, half of the new, or as many zeros. A rename is one change.

Any call may fail, reading ones too, with any error, before or after it took place; a write that fails has written half.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from barrierlab.impl.storage.files import NotAFileError

Answer = TypeVar("Answer")


class Crash(Exception):
    """The machine stopped."""


@dataclass(eq=False)
class File:
    """Content as it is, and as it would be after a crash."""

    content: bytes = b""
    durable: bytes = b""


@dataclass(eq=False)
class Odd:
    """A link, a pipe, a device: somebody else's, and nothing to look into."""


@dataclass(eq=False)
class Folder:
    """Names as they are, as they would be after a crash, and the changes between, which may be kept or not."""

    names: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    changes: list[tuple[str, str | None, tuple[str, Node] | None]] = field(default_factory=list)

    def change(self, kind: str, gone: str | None, come: tuple[str, Node] | None) -> None:
        """Now; durable later."""
        self.changes.append((kind, gone, come))
        self.apply(self.names, gone, come)

    @staticmethod
    def apply(names: dict[str, Node], gone: str | None, come: tuple[str, Node] | None) -> None:
        """One name goes, one comes."""
        if gone is not None:
            names.pop(gone, None)
        if come is not None:
            names[come[0]] = come[1]


Node = File | Folder | Odd


@dataclass(frozen=True)
class Fate:
    """The fate of unflushed changes in a crash: `keeps` is asked for each change with its place and kind."""

    name: str
    keeps: Callable[[int, str], bool]
    content: Callable[[bytes, bytes], bytes]

    def __str__(self) -> str:
        return self.name


def old(durable: bytes, now: bytes) -> bytes:
    """Nothing was written."""
    return durable


def new(durable: bytes, now: bytes) -> bytes:
    """All was written."""
    return now


def torn(durable: bytes, now: bytes) -> bytes:
    """The first half was written."""
    return now[: len(now) // 2]


def zeros(durable: bytes, now: bytes) -> bytes:
    """The length was written, the bytes were not."""
    return bytes(len(now))


FATES = [
    Fate("nothing is kept", lambda at, kind: False, old),
    Fate("all is kept", lambda at, kind: True, new),
    Fate("names are kept and files torn", lambda at, kind: True, torn),
    Fate("names are kept and files zero", lambda at, kind: True, zeros),
    Fate("names are kept and files empty", lambda at, kind: True, old),
    Fate("files are kept and names are not", lambda at, kind: False, new),
    Fate("every other change is kept", lambda at, kind: at % 2 == 0, new),
    Fate("the others are", lambda at, kind: at % 2 == 1, torn),
    Fate("only what is done last is kept", lambda at, kind: at > 1, new),
    Fate("only removals are kept", lambda at, kind: kind == "remove", new),
    Fate("only renames are kept", lambda at, kind: kind == "rename", zeros),
    Fate("all but removals is kept", lambda at, kind: kind != "remove", new),
]


@dataclass(frozen=True)
class Fault:
    """The failure of a call: an error number; and whether it takes place all the same, as over a network."""

    number: int
    takes_place: bool = False

    def __str__(self) -> str:
        return f"{errno.errorcode[self.number]}{' afterwards' if self.takes_place else ''}"


class Writing:
    """A file that is being written, in two steps."""

    def __init__(self, disk: Disk, path: str, file: File) -> None:
        self.disk, self.path, self.file = disk, path, file

    def write(self, data: bytes, /) -> None:
        """Half of it may be there already when the machine stops, or the disk is full."""

        def half() -> None:
            self.file.content += data[: len(data) // 2]

        def whole() -> None:
            half()
            self.disk.step("write", self.path)
            self.file.content += data[len(data) // 2 :]
            self.disk.step("write", self.path)

        self.disk.call("write", self.path, whole, half)

    def flush(self) -> None:
        """Anything that is in the file is kept."""

        def keep() -> None:
            self.disk.step("flush", self.path)
            self.file.durable = self.file.content

        self.disk.call("flush", self.path, keep)

    def close(self) -> None:
        """Not a step."""


class Disk:
    """`impl.storage.files.Files` in memory.

    Attributes
    ----------
    steps : list of str
        What was done, reads apart.
    calls : list of str
        What was asked, reads among it.
    faults : dict of int to Fault
        Calls, from 0, that fail.
    stop_at : int or None
        The step, from 0, that is not done any more: `Crash`, from then on for ever.
    fail_at : set of int
        Steps that fail as on a full disk.
    on_read : callable
        Called before anything is read.
    """

    def __init__(self, root: Folder | None = None) -> None:
        self.root = root or Folder()
        self.steps: list[str] = []
        self.calls: list[str] = []
        self.faults: dict[int, Fault] = {}
        self.stop_at: int | None = None
        self.fail_at: set[int] = set()
        self.on_read: Callable[[], None] = lambda: None

    def call(
        self, verb: str, path: str, effect: Callable[[], Answer], half: Callable[[], None] = lambda: None
    ) -> Answer:
        """Count it, and carry it out, or fail if this is where to."""
        fault = self.faults.get(len(self.calls))
        self.calls.append(f"{verb} {path}")
        if fault is None:
            return effect()
        if fault.takes_place:
            effect()
        else:
            half()
        raise OSError(fault.number, os.strerror(fault.number), path)

    def step(self, verb: str, path: str) -> None:
        """Count it, and stop or fail if this is where to."""
        at = len(self.steps)
        if self.stop_at is not None and at >= self.stop_at:
            raise Crash(f"before {verb} {path}")
        self.steps.append(f"{verb} {path}")
        if at in self.fail_at:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    def find(self, path: str) -> Node:
        """Return the file or folder of that path."""
        node: Node = self.root
        for name in path.lstrip("/").split("/") if path not in ("", ".", "/") else ():
            if not isinstance(node, Folder):
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
            if name not in node.names:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            node = node.names[name]
        return node

    def folder(self, path: str) -> Folder:
        """The folder of that path."""
        node = self.find(path)
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
        return node

    def around(self, path: str) -> tuple[Folder, str]:
        """The folder that `path` is in, and its name there."""
        parent, _, name = path.rpartition("/")
        return self.folder(parent), name

    # `Files`.

    def names(self, folder: str) -> list[str]:
        """`Files.names`."""
        self.on_read()
        return self.call("names", folder, lambda: list(self.folder(folder).names))

    def exists(self, path: str) -> bool:
        """`Files.exists`."""
        self.on_read()
        return self.call("exists", path, lambda: self._has(path))

    def _has(self, path: str) -> bool:
        try:
            self.find(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_folder(self, path: str) -> bool:
        """`Files.is_folder`."""
        self.on_read()
        return self.call("is_folder", path, lambda: isinstance(self.find(path), Folder))

    def read(self, path: str, most: int) -> bytes:
        """`Files.read`."""
        self.on_read()
        return self.call("read", path, lambda: self._file(path).content[:most])

    def _file(self, path: str) -> File:
        node = self.find(path)
        if not isinstance(node, File):
            raise NotAFileError(errno.EISDIR, "something else than a file", path)
        return node

    def make_folder(self, path: str) -> None:
        """`Files.make_folder`."""
        self.call("make", path, lambda: self._make(path))

    def _make(self, path: str) -> None:
        folder, name = self.around(path)
        if name in folder.names:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        self.step("make", path)
        folder.change("make", None, (name, Folder()))

    def flush_folder(self, path: str) -> None:
        """`Files.flush_folder`."""
        self.call("flush folder", path, lambda: self._flush(path))

    def _flush(self, path: str) -> None:
        folder = self.folder(path)
        self.step("flush folder", path)
        folder.durable, folder.changes = dict(folder.names), []

    def create(self, path: str) -> Writing:
        """`Files.create`: what is there has another name from then on, or none."""
        return self.call("create", path, lambda: self._create(path))

    def _create(self, path: str) -> Writing:
        folder, name = self.around(path)
        if name in folder.names:
            self._remove(path)
        self.step("create", path)
        file = File()
        folder.change("create", None, (name, file))
        return Writing(self, path, file)

    def reopen(self, path: str) -> Writing:
        """`Files.reopen`."""
        return self.call("reopen", path, lambda: self._reopen(path))

    def _reopen(self, path: str) -> Writing:
        file = self._file(path)
        self.step("reopen", path)
        file.content = b""
        return Writing(self, path, file)

    def rename(self, path: str, to: str) -> None:
        """`Files.rename`."""
        self.call("rename", path, lambda: self._rename(path, to))

    def _rename(self, path: str, to: str) -> None:
        folder, name = self.around(path)
        other, new_name = self.around(to)
        assert folder is other
        node = self.find(path)
        self.step("rename", path)
        folder.change("rename", name, (new_name, node))

    def remove(self, path: str) -> None:
        """`Files.remove`."""
        self.call("remove", path, lambda: self._remove(path))

    def _remove(self, path: str) -> None:
        folder, name = self.around(path)
        node = self.find(path)
        if isinstance(node, Folder) and node.names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self.step("remove", path)
        folder.change("remove", name, None)

    # What a test does to it.

    def after_crash(self, fate: Fate) -> Disk:
        """The disk that the next process finds."""
        places = iter(range(10**9))

        def kept(node: Node) -> Node:
            if isinstance(node, File):
                content = node.content if node.content == node.durable else fate.content(node.durable, node.content)
                return File(content, content)
            if isinstance(node, Odd):
                return node
            names = dict(node.durable)
            for kind, gone, come in node.changes:
                if fate.keeps(next(places), kind):
                    Folder.apply(names, gone, come)
            names = {name: kept(inner) for name, inner in names.items()}
            return Folder(names, dict(names))

        root = kept(self.root)
        assert isinstance(root, Folder)
        return Disk(root)

    def copy(self) -> Disk:
        """As it is, all of it flushed."""
        return self.after_crash(FATES[1])

    def files(self, path: str = "") -> Iterator[str]:
        """The paths of all files."""
        for name, node in self.folder(path).names.items():
            inner = f"{path}/{name}" if path else name
            if isinstance(node, Folder):
                yield from self.files(inner)
            else:
                yield inner

    def content(self, path: str) -> bytes:
        """Return what a file holds."""
        node = self.find(path)
        assert isinstance(node, File)
        return node.content

    def plant(self, path: str) -> None:
        """Put something that is no file and no folder there, in place of what is there."""
        folder, name = self.around(path)
        folder.names[name] = folder.durable[name] = Odd()

    def put(self, path: str, content: bytes) -> None:
        """Change a file behind everybody's back."""
        node = self.find(path)
        assert isinstance(node, File)
        node.content = node.durable = content
