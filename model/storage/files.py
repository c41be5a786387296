"""A file system as a value, with what POSIX promises and no more: names and bytes that were not flushed may be lost.

What is done to the names in a folder - made, renamed, removed - is kept from the folder's flush on, what is written to
a file from the file's flush on. Before that a crash keeps any part of it: each change to a folder or not, and of a file
the old bytes, the new ones, or half of them. A rename is one change. (POSIX.1-2017, `fsync`, `rename`.)
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

from barrierlab.impl.storage.files import NotAFileError

MOST_SUBSETS = 5
"""Of so many unflushed changes every subset is taken; of more, none, all, each alone, and all but each."""


class File(NamedTuple):
    """The bytes of a file as they are, and as they are kept."""

    content: bytes = b""
    durable: bytes = b""


class Change(NamedTuple):
    """A change to the names of a folder: one that goes, and one that comes, with the number of its node."""

    gone: str = ""
    come: str = ""
    node: int = 0


class Folder(NamedTuple):
    """The names of a folder as they are, as they are kept, and the changes between."""

    names: tuple[tuple[str, int], ...] = ()
    durable: tuple[tuple[str, int], ...] = ()
    changes: tuple[Change, ...] = ()


class SymbolicLink(NamedTuple):
    """A symbolic link: the path of what it stands for, from the root."""

    to: str


FileNode = File | Folder | SymbolicLink
Tree = tuple[FileNode, ...]
"""Nodes; the first is the root, and every node is reachable from it, now or after a crash."""

EMPTY: Tree = (Folder(),)


class FileCall(NamedTuple):
    """A request to the file system."""

    verb: str
    path: str
    argument: object = None

    def __str__(self) -> str:
        return f"{self.verb.replace('_', ' ')} {self.path or '.'}"


class FileAnswer(NamedTuple):
    """The answer: a value, or the number of an error."""

    value: object = None
    error: int = 0

    def given(self, call: FileCall) -> object:
        """The value, or the error raised."""
        if self.error in (errno.EISDIR, errno.ELOOP) and call.verb in ("read", "reopen"):
            raise NotAFileError(self.error, "something else than a file", call.path)
        if self.error:
            raise OSError(self.error, os.strerror(self.error), call.path)
        return self.value


class _Fails(Exception):
    """The call fails with this error number."""


def carried_out(tree: Tree, call: FileCall) -> tuple[Tree, FileAnswer]:
    """The file system after a call, and the answer."""
    nodes = list(tree)
    try:
        value = _CALLS[call.verb](nodes, call)
    except _Fails as failure:
        return tree, FileAnswer(error=failure.args[0])
    return _packed(nodes), FileAnswer(value)


def half_written(tree: Tree, call: FileCall) -> Tree:
    """The file system after a write that failed: half of it is there."""
    data = call.argument
    assert isinstance(data, bytes)
    return carried_out(tree, call._replace(argument=data[: len(data) // 2]))[0]


def _find(nodes: list[FileNode], path: str) -> int:
    """The node of a path; a link that is not the last of it stands for what it names."""
    at = 0
    for name in path.split("/") if path not in ("", ".") else ():
        at = _followed(nodes, at)
        folder = nodes[at]
        if not isinstance(folder, Folder):
            raise _Fails(errno.ENOTDIR)
        found = dict(folder.names).get(name)
        if found is None:
            raise _Fails(errno.ENOENT)
        at = found
    return at


def _followed(nodes: list[FileNode], at: int) -> int:
    node = nodes[at]
    return _find(nodes, node.to) if isinstance(node, SymbolicLink) else at


def _folder(nodes: list[FileNode], path: str) -> tuple[int, Folder]:
    at = _followed(nodes, _find(nodes, path))
    folder = nodes[at]
    if not isinstance(folder, Folder):
        raise _Fails(errno.ENOTDIR)
    return at, folder


def _file(nodes: list[FileNode], path: str) -> tuple[int, File]:
    at = _find(nodes, path)
    file = nodes[at]
    if not isinstance(file, File):
        raise _Fails(errno.EISDIR if isinstance(file, Folder) else errno.ELOOP)
    return at, file


def _change(nodes: list[FileNode], path: str, new: FileNode | None, gone: str = "", node: int = -1) -> None:
    """Change the names of the folder that `path` is in: `new` or `node` has its last name now, or nothing has."""
    parent, _, name = path.rpartition("/")
    at, folder = _folder(nodes, parent)
    if new is not None:
        nodes.append(new)
        node = len(nodes) - 1
    names = dict(folder.names)
    names.pop(gone, None)
    if node >= 0:
        names[name] = node
    change = Change(gone, name if node >= 0 else "", max(node, 0))
    nodes[at] = Folder(tuple(sorted(names.items())), folder.durable, (*folder.changes, change))


def _has(nodes: list[FileNode], path: str) -> bool:
    try:
        _find(nodes, path)
    except _Fails:
        return False
    return True


def _names(nodes: list[FileNode], call: FileCall) -> object:
    return tuple(name for name, _ in _folder(nodes, call.path)[1].names)


def _exists(nodes: list[FileNode], call: FileCall) -> object:
    return _has(nodes, call.path)


def _is_folder(nodes: list[FileNode], call: FileCall) -> object:
    return isinstance(nodes[_find(nodes, call.path)], Folder)


def _make_folder(nodes: list[FileNode], call: FileCall) -> object:
    if _has(nodes, call.path):
        raise _Fails(errno.EEXIST)
    _change(nodes, call.path, Folder())
    return None


def _flush_folder(nodes: list[FileNode], call: FileCall) -> object:
    at, folder = _folder(nodes, call.path)
    nodes[at] = Folder(folder.names, folder.names)
    return None


def _create(nodes: list[FileNode], call: FileCall) -> object:
    if _has(nodes, call.path):
        if isinstance(nodes[_find(nodes, call.path)], Folder):
            raise _Fails(errno.EISDIR)
        _remove(nodes, call)
    _change(nodes, call.path, File())
    return None


def _link(nodes: list[FileNode], call: FileCall) -> object:
    assert isinstance(call.argument, str)
    _change(nodes, call.path, SymbolicLink(call.argument))
    return None


def _reopen(nodes: list[FileNode], call: FileCall) -> object:
    at, file = _file(nodes, call.path)
    nodes[at] = File(b"", file.durable)
    return None


def _write(nodes: list[FileNode], call: FileCall) -> object:
    if _has(nodes, call.path):  # else it is open, and has no name any more
        at, file = _file(nodes, call.path)
        assert isinstance(call.argument, bytes)
        nodes[at] = File(file.content + call.argument, file.durable)
    return None


def _flush(nodes: list[FileNode], call: FileCall) -> object:
    if _has(nodes, call.path):
        at, file = _file(nodes, call.path)
        nodes[at] = File(file.content, file.content)
    return None


def _rename(nodes: list[FileNode], call: FileCall) -> object:
    assert isinstance(call.argument, str)
    node = _find(nodes, call.path)
    if _has(nodes, call.argument) and isinstance(nodes[_find(nodes, call.argument)], Folder):
        raise _Fails(errno.EISDIR)
    _change(nodes, call.argument, None, call.path.rpartition("/")[2], node)
    return None


def _read(nodes: list[FileNode], call: FileCall) -> object:
    assert isinstance(call.argument, int)
    return _file(nodes, call.path)[1].content[: call.argument]


def _remove(nodes: list[FileNode], call: FileCall) -> object:
    node = nodes[_find(nodes, call.path)]
    if isinstance(node, Folder) and node.names:
        raise _Fails(errno.ENOTEMPTY)
    _change(nodes, call.path, None, call.path.rpartition("/")[2])
    return None


_CALLS: dict[str, Callable[[list[FileNode], FileCall], object]] = {
    "names": _names,
    "exists": _exists,
    "is_folder": _is_folder,
    "make_folder": _make_folder,
    "flush_folder": _flush_folder,
    "create": _create,
    "reopen": _reopen,
    "write": _write,
    "flush": _flush,
    "link": _link,
    "rename": _rename,
    "read": _read,
    "remove": _remove,
}
READS = ("names", "exists", "is_folder", "read")


def _packed(nodes: list[FileNode]) -> Tree:
    """Return the nodes that can be reached, in one order for each file system."""
    order: dict[int, int] = {0: 0}
    waiting = [0]
    for at in waiting:
        node = nodes[at]
        if isinstance(node, Folder):
            inner = [number for _, number in (*node.names, *node.durable)]
            for number in (*inner, *(change.node for change in node.changes if change.come)):
                if number not in order:
                    order[number] = len(order)
                    waiting.append(number)
    if waiting == [*range(len(nodes))]:
        return tuple(nodes)
    return tuple(_renumbered(nodes[at], order) for at in waiting)


def _renumbered(node: FileNode, order: dict[int, int]) -> FileNode:
    if not isinstance(node, Folder):
        return node
    return Folder(
        tuple((name, order[number]) for name, number in node.names),
        tuple((name, order[number]) for name, number in node.durable),
        tuple(change._replace(node=order[change.node]) if change.come else change for change in node.changes),
    )


def after_crash(tree: Tree) -> tuple[Tree, ...]:
    """Return every file system that a crash may leave, each once: all that is in it is kept."""
    places = [
        (at, turn) for at, node in enumerate(tree) if isinstance(node, Folder) for turn in range(len(node.changes))
    ]
    unflushed = any(isinstance(node, File) and node.content != node.durable for node in tree)
    found: dict[Tree, None] = {}
    for kept, fate in product(_subsets(places), _FATES if unflushed else _FATES[:1]):
        found[_packed([_kept(node, at, kept, fate) for at, node in enumerate(tree)])] = None
    return tuple(found)


def _subsets(places: list[tuple[int, int]]) -> Iterator[frozenset[tuple[int, int]]]:
    every = frozenset(places)
    if len(places) <= MOST_SUBSETS:
        for bits in product((False, True), repeat=len(places)):
            yield frozenset(place for place, bit in zip(places, bits, strict=True) if bit)
        return
    yield from (frozenset(), every)
    for place in places:
        yield from (frozenset((place,)), every - {place})


def _old(file: File) -> bytes:
    return file.durable


def _new(file: File) -> bytes:
    return file.content


def _torn(file: File) -> bytes:
    return file.content[: len(file.content) // 2]


_FATES = (_old, _new, _torn)


def _kept(node: FileNode, at: int, kept: frozenset[tuple[int, int]], fate: Callable[[File], bytes]) -> FileNode:
    if isinstance(node, File):
        content = node.content if node.content == node.durable else fate(node)
        return File(content, content)
    if isinstance(node, SymbolicLink):
        return node
    names = dict(node.durable)
    for turn, change in enumerate(node.changes):
        if (at, turn) in kept:
            names.pop(change.gone, None)
            if change.come:
                names[change.come] = change.node
    entries = tuple(sorted(names.items()))
    return Folder(entries, entries)


class FilesPort:
    """`impl.storage.files.Files` whose calls another carries out: `ask` gives what comes of each, or raises."""

    def __init__(self, ask: Callable[[FileCall], object]) -> None:
        self.ask = ask

    def names(self, folder: str) -> list[str]:
        """`Files.names`."""
        found = self.ask(FileCall("names", folder))
        assert isinstance(found, tuple)
        return list(found)

    def exists(self, path: str) -> bool:
        """`Files.exists`."""
        return self.ask(FileCall("exists", path)) is True

    def is_folder(self, path: str) -> bool:
        """`Files.is_folder`."""
        return self.ask(FileCall("is_folder", path)) is True

    def make_folder(self, path: str) -> None:
        """`Files.make_folder`."""
        self.ask(FileCall("make_folder", path))

    def flush_folder(self, path: str) -> None:
        """`Files.flush_folder`."""
        self.ask(FileCall("flush_folder", path))

    def create(self, path: str) -> OpenFile:
        """`Files.create`."""
        self.ask(FileCall("create", path))
        return OpenFile(self.ask, path)

    def reopen(self, path: str) -> OpenFile:
        """`Files.reopen`."""
        self.ask(FileCall("reopen", path))
        return OpenFile(self.ask, path)

    def rename(self, path: str, to: str) -> None:
        """`Files.rename`."""
        self.ask(FileCall("rename", path, to))

    def read(self, path: str, most: int) -> bytes:
        """`Files.read`."""
        found = self.ask(FileCall("read", path, most))
        assert isinstance(found, bytes)
        return found

    def remove(self, path: str) -> None:
        """`Files.remove`."""
        self.ask(FileCall("remove", path))


class OpenFile:
    """A file that is being written. It has no name of its own: one that was removed meanwhile takes nothing."""

    def __init__(self, ask: Callable[[FileCall], object], path: str) -> None:
        self.ask, self.path = ask, path

    def write(self, data: bytes, /) -> None:
        """`Writing.write`."""
        self.ask(FileCall("write", self.path, bytes(data)))

    def flush(self) -> None:
        """`Writing.flush`."""
        self.ask(FileCall("flush", self.path))

    def close(self) -> None:
        """Make no call: nothing depends on it."""


class Direct:
    """A file system on which calls are carried out at once."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.port = FilesPort(self.ask)

    def ask(self, call: FileCall) -> object:
        """Carry it out."""
        self.tree, answer = carried_out(self.tree, call)
        return answer.given(call)
