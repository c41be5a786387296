"""Files that a person names: read as text or refused in one line, written whole or not at all.

A reader takes only what is a file, so that a folder, a socket or a pipe that nobody writes to is refused instead of
waited for. A writer lays a draft beside the file and renames it, so that a full disk leaves what was there before; what
is no file (a pipe, a device) is written to directly.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def read_bytes(path: Path, error: type[ValueError], hint: str) -> bytes:
    """Return the bytes of a file.

    Parameters
    ----------
    path : Path
    error : type
        Raised, with one line, if it cannot be read.
    hint : str
        What to give instead, as the end of that line.
    """
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                kind = "a folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "no regular file"
                raise error(f"{path}: cannot be read: it is {kind}; {hint}")
            return file.read()
    except OSError as failed:
        raise error(f"{path}: cannot be read: {failed.strerror or failed}; {hint}") from failed
    except ValueError as failed:
        if isinstance(failed, error):
            raise
        raise error(f"{str(path)!r}: cannot be read: {failed}; {hint}") from failed  # a NUL in its name


def read_text(path: Path, error: type[ValueError], hint: str) -> str:
    """Return the text of a file in UTF-8, with or without a byte order mark. The rest is as in `read_bytes`."""
    content = read_bytes(path, error, hint)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as failed:
        raise error(f"{path}: cannot be read: not UTF-8 text; {hint}") from failed


def write(path: Path, content: str | bytes, error: type[ValueError], option: str = "") -> None:
    """Write a file whole or not at all, even if the machine stops.

    Parameters
    ----------
    path : Path
        A folder on the way that is missing is an error.
    content : str or bytes
        A str is written as UTF-8.
    error : type
        Raised, with one line, if it cannot be written.
    option : str
        The option that named the path, as the beginning of that line.
    """
    data = content.encode() if isinstance(content, str) else content
    with _refused(path, error, option):
        replace(path, data)


def check_writable(path: Path | None, error: type[ValueError], option: str = "") -> None:
    """Raise what `write` would raise, before the work of which the result goes there; nothing is left behind.

    That a disk has room, and that somebody reads a pipe, only `write` finds out.

    Parameters
    ----------
    path : Path, optional
        None is no file, as of an option that is not given.
    """
    if path is None:
        return
    with _refused(path, error, option):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.is_file() or not target.exists():
            with tempfile.TemporaryFile(dir=target.parent):
                pass


@contextmanager
def _refused(path: Path, error: type[ValueError], option: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as failed:
        reason = failed.strerror if isinstance(failed, OSError) else failed
        raise error(
            f"{option} {path}: cannot be written: {reason}; give a file in a folder that exists and has room".lstrip()
        ) from failed


def replace(path: Path, data: bytes) -> None:
    """Write as `write` does, and raise what the system says (OSError)."""
    target = Path(os.path.realpath(path))  # a link goes on pointing to the file that it names
    if target.exists() and not target.is_file():
        _write_into(target, data)
        return
    number, draft = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    try:
        with open(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def _write_into(target: Path, data: bytes) -> None:
    """Write into what is no file: a device, or a pipe that somebody reads (else ENXIO, at once)."""
    number = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(number, True)
    with open(number, "wb") as file:
        file.write(data)


def _umask() -> int:
    """Return the mask of permissions of this process, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
