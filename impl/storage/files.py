"""The file system as a store asks it: the one module of `impl` that does I/O."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Protocol

from barrierlab.impl.errors import LimitError

if TYPE_CHECKING:
    from io import FileIO


class Writing(Protocol):
    """A file open for writing."""

    def write(self, data: bytes, /) -> object:
        """Add bytes; they may be lost, in part and in any order, until `flush`."""

    def flush(self) -> None:
        """Make all that was written durable before it returns; the file's name may not be."""

    def close(self) -> None:
        """Close the file."""


class NotAFileError(OSError):
    """The name of a file belongs to a folder, a link, or a pipe."""


class Files(Protocol):
    """The operations of a file system that a store needs. Each method may raise OSError.

    What is done to the names in a folder - made, renamed, removed - may be lost, in any order, until `flush_folder`.
    But for `names` and `flush_folder`, none follows a link that is the last of its path.
    """

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder."""

    def exists(self, path: str) -> bool:
        """Return whether something has this name."""

    def is_folder(self, path: str) -> bool:
        """Return whether what has this name is a folder. Raises FileNotFoundError if nothing has it."""

    def make_folder(self, path: str) -> None:
        """Make a folder in one that is there."""

    def flush_folder(self, path: str) -> None:
        """Make the names in a folder durable before it returns."""

    def create(self, path: str) -> Writing:
        """Create an empty file, in place of one that may exist."""

    def reopen(self, path: str) -> Writing:
        """Open the file of that name and empty it. Raises FileNotFoundError if there is none."""

    def rename(self, path: str, to: str) -> None:
        """Give a file another name in its folder, in one step, in place of one that may be there."""

    def read(self, path: str, most: int) -> bytes:
        """Return the first `most` bytes of a file, or all if there are fewer. Raises NotAFileError if it is none."""

    def remove(self, path: str) -> None:
        """Remove a file, a link, or an empty folder."""


class RealFile:
    """A file of the operating system, to be written."""

    __slots__ = ("_file",)

    def __init__(self, file: FileIO) -> None:
        self._file = file

    def write(self, data: bytes, /) -> None:
        """Write all of it: the system may take less at a time."""
        rest = memoryview(data)
        while rest:
            taken = self._file.write(rest)
            if not taken:
                raise OSError(errno.EIO, "the system takes nothing and gives no reason")
            rest = rest[taken:]

    def flush(self) -> None:
        """Flush by the handle that wrote: only that one gets the error."""
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
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_folder(self, path: str) -> bool:
        """`Files.is_folder`."""
        return stat.S_ISDIR(os.lstat(path).st_mode)

    def make_folder(self, path: str) -> None:
        """`Files.make_folder`."""
        os.mkdir(path)

    def flush_folder(self, path: str) -> None:
        """`Files.flush_folder`; where folders cannot be opened or flushed, the system sees to it (as PostgreSQL)."""
        if os.name == "nt":
            return
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EBADF, errno.EINVAL):
                raise
        finally:
            os.close(handle)

    def create(self, path: str) -> RealFile:
        """`Files.create`; never by emptying what is there, which may have another name elsewhere."""
        try:
            return RealFile(open(path, "xb", buffering=0))
        except FileExistsError:
            os.unlink(path)
            return RealFile(open(path, "xb", buffering=0))

    def reopen(self, path: str) -> RealFile:
        """`Files.reopen`."""
        file = _opened(path, "r+b")
        file.truncate()
        return RealFile(file)

    def rename(self, path: str, to: str) -> None:
        """`Files.rename`."""
        os.replace(path, to)

    def read(self, path: str, most: int) -> bytes:
        """`Files.read`; room is made for what is there, not for what is hoped for."""
        with _opened(path, "rb") as file:
            left = min(most, os.fstat(file.fileno()).st_size)
            pieces = []
            while left and (piece := file.read(left)):  # the system may give less at a time
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces)

    def remove(self, path: str) -> None:
        """`Files.remove`."""
        if self.is_folder(path):
            os.rmdir(path)
        else:
            os.unlink(path)


_STAY_HERE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # nor wait for the other end of a pipe


def _open_here(path: str, flags: int) -> int:
    return os.open(path, flags | _STAY_HERE)


def _opened(path: str, mode: Literal["rb", "r+b"]) -> FileIO:
    """Open an existing file, which has no other name elsewhere if it is to be written."""
    try:
        file = open(path, mode, buffering=0, opener=_open_here)  # noqa: SIM115  (the caller closes it)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO):  # a link, a folder, a socket
            raise NotAFileError(error.errno, "something else than a file", path) from error
        raise
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or (mode != "rb" and found.st_nlink > 1):
        file.close()
        raise NotAFileError(errno.EINVAL, "something else than a file", path)
    return file


def directory(path: str) -> str:
    """Return the path of a directory, without slashes at its end.

    Raises
    ------
    LimitError
        If no directory can have it.
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    if isinstance(name, str) and name and "\0" not in name:
        with suppress(UnicodeError):
            os.fsencode(name)
            return name.rstrip("/") or "/"
    raise LimitError("path", path, "the path of a directory: text, not empty, without a NUL")
