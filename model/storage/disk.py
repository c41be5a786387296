"""The disk of this machine beside its model: each call of a store, on each thing that may have a name there.

`model.storage.files` stands for the disk in all other scopes of the store: what it is wrong about nobody would see
there. A call is made in a folder of its own, and in the model; both must answer the same and leave the same behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from tempfile import TemporaryDirectory

from barrierlab.impl.errors import LimitError
from barrierlab.impl.storage.files import NotAFileError, RealFile, RealFiles, directory
from barrierlab.model.storage.files import EMPTY, Direct, FileCall, FilesPort

LARGE = bytes(range(256)) * 300
"""More than a system call or a buffer is likely to take by halves unseen."""
SET_UP = (
    *(
        FileCall("create", "file"),
        FileCall("write", "file", b"abcde"),
        FileCall("create", "none"),
        FileCall("create", "large"),
    ),
    *(FileCall("write", "large", LARGE), FileCall("make_folder", "empty"), FileCall("make_folder", "full")),
    *(FileCall("create", "full/inner"), FileCall("write", "full/inner", b"x"), FileCall("link", "to_file", "file")),
    *(FileCall("link", "to_folder", "full"), FileCall("link", "to_nothing", "gone")),
)
"""The calls that make what the cases below ask for."""
THINGS = (
    *("file", "none", "large", "empty", "full", "full/inner", "to_file", "to_folder", "to_nothing"),
    *("gone", "gone/inner", "file/inner", "to_folder/inner", "to_folder/new", "to_nothing/inner"),
)
VERBS = ("names", "exists", "is_folder", "make_folder", "flush_folder", "create", "reopen", "remove")
READ_BYTES = (0, 2, 5, 1_000_000)
RENAMED = (("file", "new"), ("file", "none"), ("file", "to_folder"), ("file", "full"), ("gone", "new"))
PATHS: tuple[tuple[object, str | None], ...] = (
    *(("a", "a"), ("a/b//", "a/b"), ("/", "/"), ("//", "/"), (Path("a"), "a"), ("\udc80", "\udc80")),
    *(("", None), ("a\0b", None), ("\ud800", None), (b"a", None), (None, None), (3, None)),
)
"""Paths of a store as they are given, and as they are taken; None where one is refused."""
KINDS = (NotAFileError, FileNotFoundError, FileExistsError, NotADirectoryError, OSError)
"""The errors that a store tells apart; systems differ in the rest."""


def cases() -> Iterator[tuple[str, Callable[[], str | None]]]:
    """Yield each case with a name, and with why disk and model differ, or None."""
    calls = [FileCall(verb, thing) for thing in THINGS for verb in VERBS]
    calls += [FileCall("read", thing, most) for thing in THINGS for most in READ_BYTES]
    calls += [FileCall("rename", path, to) for path, to in RENAMED]
    for call in calls:
        yield f"{call} {call.argument or ''}".strip(), partial(_differs, call)
    for path, text in PATHS:
        yield f"the directory {path!r}", partial(_named, path, text)
    yield "write by halves", _by_halves
    yield "write what is not taken", _not_taken
    yield "flush what cannot be flushed", _unflushed
    yield "flush a folder and a file", _flushed
    yield "create in place of a file with another name", _second_name
    yield "reopen a file with another name", _reopened


def _named(path: object, text: str | None) -> str | None:
    try:
        found = directory(path)  # type: ignore[arg-type]
    except LimitError:
        return None if text is None else "is refused"
    return None if found == text else f"is taken for {found!r}"


def _differs(call: FileCall) -> str | None:
    model = Direct(EMPTY)
    with TemporaryDirectory() as name:
        for each in SET_UP:
            model.ask(each)
            _make(Path(name), each)
        found = _answer(RealFiles(), call, f"{name}/"), _left(Path(name))
        expected = _answer(model.port, call, ""), _listed(model)
    return None if found == expected else f"answers {_short(found)} on the disk, and {_short(expected)} in the model"


def _make(root: Path, call: FileCall) -> None:
    """Make it by calls other than those under test."""
    path = root / call.path
    if call.verb == "link":
        path.symlink_to(root / str(call.argument))
    elif call.verb == "make_folder":
        path.mkdir()
    else:
        path.write_bytes(call.argument if isinstance(call.argument, bytes) else b"")


def _answer(files: FilesPort | RealFiles, call: FileCall, root: str) -> str:
    """Return the answer to a call; a file that it opens is written, and looked at before it is closed."""
    path = root + call.path
    try:
        if call.verb == "rename":
            files.rename(path, f"{root}{call.argument}")
        elif call.verb == "read":
            return repr(files.read(path, call.argument))  # type: ignore[arg-type]
        elif call.verb in ("create", "reopen"):
            file = files.create(path) if call.verb == "create" else files.reopen(path)
            try:
                file.write(b"1")
                file.flush()  # no buffer of this process keeps it back
                first = files.read(path, len(LARGE))
                file.write(LARGE)
                file.flush()
                return repr((first, files.read(path, len(LARGE) + 2)))
            finally:
                file.close()
        else:
            value = getattr(files, call.verb)(path)
            return repr(sorted(value) if isinstance(value, list) else value)
    except OSError as error:
        return next(kind.__name__ for kind in KINDS if isinstance(error, kind))
    return "None"


def _left(root: Path) -> dict[str, bytes | str | None]:
    """Return all below a folder: the bytes of files, the targets of links, nothing of folders."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path).removeprefix(f"{root}/")
        else:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


def _listed(model: Direct, folder: str = "") -> dict[str, bytes | str | None]:
    """The same of the model."""
    found: dict[str, bytes | str | None] = {}
    for name in sorted(model.port.names(folder)):
        path = f"{folder}/{name}".lstrip("/")
        if model.port.is_folder(path):
            found |= {path: None, **_listed(model, path)}
        else:
            try:
                found[path] = model.port.read(path, 10**9)
            except NotAFileError:
                found[path] = next(str(call.argument) for call in SET_UP if call.path == path)
    return dict(sorted(found.items()))


def _short(found: object) -> str:
    text = str(found)
    return text if len(text) <= 300 else f"{text[:300]} ..."


# What no file of a disk does when it is asked to.


class _Halves:
    """A file that takes no more than three bytes at a time, and after `most` none."""

    def __init__(self, most: int) -> None:
        self.taken, self.most, self.closed = b"", most, False

    def write(self, data: memoryview) -> int:
        """As `FileIO.write`."""
        piece = bytes(data[: min(3, self.most - len(self.taken))])
        self.taken += piece
        return len(piece)

    def close(self) -> None:
        """As `FileIO.close`."""
        self.closed = True


def _by_halves() -> str | None:
    under = _Halves(100)
    file = RealFile(under)  # type: ignore[arg-type]
    file.write(b"abcdefgh")
    file.close()
    return None if (under.taken, under.closed) == (b"abcdefgh", True) else f"{under.taken!r}, closed: {under.closed}"


def _not_taken() -> str | None:
    try:
        RealFile(_Halves(5)).write(b"abcdefgh")  # type: ignore[arg-type]
    except OSError:
        return None
    return "what the system does not take is called written"


def _unflushed() -> str | None:
    """Return why a flush that the system refuses, as a pipe has no disk, is no error here; None if it is one."""
    source, sink = os.pipe()
    with FileIO(source, "rb"), FileIO(sink, "wb") as file, suppress(OSError):
        RealFile(file).flush()
        return "nothing is flushed, and nobody gets an error"
    return None


def _flushed() -> str | None:
    """Return why a flush of a folder, or of a file, does not ask the system for that: nothing else would show it."""
    from unittest.mock import patch  # with asyncio and ssl, for which each start of a check would wait

    asked: list[int] = []
    with TemporaryDirectory() as name, patch("os.fsync", lambda handle: asked.append(os.fstat(handle).st_ino)):
        port, path = RealFiles(), f"{name}/file"
        port.flush_folder(name)
        file = port.create(path)
        file.write(b"x")
        file.flush()
        file.close()
        expected = [Path(name).stat().st_ino, Path(path).stat().st_ino]
    return None if asked == expected else f"the system is asked to flush {len(asked)} of the 2"


def _second_name() -> str | None:
    """Return why the bytes of the other name do not stay; None if they do."""
    with TemporaryDirectory() as name:
        one, other = Path(name) / "one", Path(name) / "other"
        one.write_bytes(b"a")
        os.link(one, other)
        RealFiles().create(str(one)).close()
        found = one.read_bytes(), other.read_bytes()
    return None if found == (b"", b"a") else f"the two hold {found}"


def _reopened() -> str | None:
    """Check that neither reopens it as an empty file, and that it may be read."""
    with TemporaryDirectory() as name:
        one, other = Path(name) / "one", Path(name) / "other"
        one.write_bytes(b"a")
        os.link(one, other)
        with suppress(NotAFileError):
            RealFiles().reopen(str(one)).close()
            return "it is reopened"
        return None if RealFiles().read(str(other), 5) == b"a" else "it is emptied"
