"""A disk in memory that can stop after any step, and forgets what was not flushed in any way that a real one may.

What was written to a file is kept from `flush` on, what was done to the names in a folder from `flush_folder` on.
Before that a crash may keep each change to a folder or not, whatever their order, and of a file the old content, the
new, half of the new, or as many zeros. A rename is one change.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


class Crash(Exception):
    """The machine stopped."""


@dataclass(eq=False)
class File:
    """Content as it is, and as it would be after a crash."""

    content: bytes = b""
    durable: bytes = b""


@dataclass(eq=False)
class Folder:
    """Names as they are, as they would be after a crash, and the changes between, which may be kept or not."""

    names: dict[str, File | Folder] = field(default_factory=dict)
    durable: dict[str, File | Folder] = field(default_factory=dict)
    changes: list[tuple[str, str | None, tuple[str, File | Folder] | None]] = field(default_factory=list)

    def change(self, kind: str, gone: str | None, come: tuple[str, File | Folder] | None) -> None:
        """Now; durable later."""
        self.changes.append((kind, gone, come))
        self.apply(self.names, gone, come)

    @staticmethod
    def apply(names: dict[str, File | Folder], gone: str | None, come: tuple[str, File | Folder] | None) -> None:
        """One name goes, one comes."""
        if gone is not None:
            names.pop(gone, None)
        if come is not None:
            names[come[0]] = come[1]


@dataclass(frozen=True)
class Fate:
    """What a crash does with what was not flushed: `keeps` is asked for each change with its place and kind."""

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


class Writing:
    """A file that is being written, in two steps."""

    def __init__(self, disk: Disk, path: str, file: File) -> None:
        self.disk, self.path, self.file = disk, path, file

    def write(self, data: bytes, /) -> None:
        """Half of it may be there already when the machine stops, or the disk is full."""
        self.file.content += data[: len(data) // 2]
        self.disk.step("write", self.path)
        self.file.content += data[len(data) // 2 :]
        self.disk.step("write", self.path)

    def flush(self) -> None:
        """What is in the file is kept."""
        self.disk.step("flush", self.path)
        self.file.durable = self.file.content

    def close(self) -> None:
        """Not a step."""


class Disk:
    """`impl.store.Files` in memory.

    Attributes
    ----------
    steps : list of str
        What was done, reads apart.
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
        self.stop_at: int | None = None
        self.fail_at: set[int] = set()
        self.on_read: Callable[[], None] = lambda: None

    def step(self, verb: str, path: str) -> None:
        """Count it, and stop or fail if this is where to."""
        at = len(self.steps)
        if self.stop_at is not None and at >= self.stop_at:
            raise Crash(f"before {verb} {path}")
        self.steps.append(f"{verb} {path}")
        if at in self.fail_at:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    def find(self, path: str) -> File | Folder:
        """What has that path."""
        node: File | Folder = self.root
        for name in path.split("/") if path not in ("", ".") else ():
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
        return list(self.folder(folder).names)

    def exists(self, path: str) -> bool:
        """`Files.exists`."""
        self.on_read()
        try:
            self.find(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def read(self, path: str, most: int) -> bytes:
        """`Files.read`."""
        self.on_read()
        node = self.find(path)
        if not isinstance(node, File):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        return node.content[:most]

    def make_folder(self, path: str) -> None:
        """`Files.make_folder`."""
        folder, name = self.around(path)
        if name in folder.names:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        self.step("make", path)
        folder.change("make", None, (name, Folder()))

    def flush_folder(self, path: str) -> None:
        """`Files.flush_folder`."""
        folder = self.folder(path)
        self.step("flush folder", path)
        folder.durable, folder.changes = dict(folder.names), []

    def create(self, path: str) -> Writing:
        """`Files.create`: a file that is there is emptied."""
        folder, name = self.around(path)
        self.step("create", path)
        file = folder.names.get(name)
        if isinstance(file, File):
            file.content = b""
        else:
            file = File()
            folder.change("create", None, (name, file))
        return Writing(self, path, file)

    def rename(self, path: str, to: str) -> None:
        """`Files.rename`."""
        folder, name = self.around(path)
        other, new_name = self.around(to)
        assert folder is other
        node = self.find(path)
        self.step("rename", path)
        folder.change("rename", name, (new_name, node))

    def remove(self, path: str) -> None:
        """`Files.remove`: each name is a step."""
        folder, name = self.around(path)
        node = self.find(path)
        if isinstance(node, Folder):
            for inner in list(node.names):
                self.remove(f"{path}/{inner}")
        self.step("remove", path)
        folder.change("remove", name, None)

    # What a test does to it.

    def after_crash(self, fate: Fate) -> Disk:
        """The disk that the next process finds."""
        places = iter(range(10**9))

        def kept(node: File | Folder) -> File | Folder:
            if isinstance(node, File):
                content = node.content if node.content == node.durable else fate.content(node.durable, node.content)
                return File(content, content)
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
        """What a file holds."""
        node = self.find(path)
        assert isinstance(node, File)
        return node.content

    def put(self, path: str, content: bytes) -> None:
        """Change a file behind everybody's back."""
        node = self.find(path)
        assert isinstance(node, File)
        node.content = node.durable = content
