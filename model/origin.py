"""The origin of code: ours, external, or in the standard library and site-packages."""

from __future__ import annotations

import functools
import site
import sys
import sysconfig
from pathlib import Path

_PACKAGE = Path(sys.modules["barrierlab"].__path__[0])  # an import would be one in a circle
# In a checkout these are links.
_OURS = [*((_PACKAGE / name).resolve() for name in ("impl", "model", "sim")), _PACKAGE.resolve()]
_PATHS = sysconfig.get_paths()
_INSTALLED = [
    Path(folder).resolve()
    for folder in (
        *(_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        *(*site.getsitepackages(), site.getusersitepackages()),
    )
]


@functools.cache  # asked of every module after every scope: resolving their links took a tenth of a second each time
def is_external_at(path: str) -> bool:
    """Return whether the file at a path is external (`is_external`)."""
    return is_external(Path(path).resolve())


@functools.cache
def is_ours_at(path: str) -> bool:
    """Return whether the file at a path is one of barrierlab's."""
    resolved = Path(path).resolve()
    return any(resolved.is_relative_to(root) for root in _OURS)


def is_external(path: Path) -> bool:
    """Return whether a file is neither ours nor in the standard library or site-packages, nor compiled from one that
    counts.

    >>> [is_external(Path(name).resolve()) for name in (__file__, site.__file__, "my/aligner.py")]
    [False, False, True]
    """
    return path.suffix != ".pyc" and not any(path.is_relative_to(root) for root in (*_OURS, *_INSTALLED))


def place_of(error: BaseException) -> str:
    """Return the last line of external code on the way to where an exception was raised, in brackets; empty if there
    is none.
    """
    place, at = "", error.__traceback__
    while at is not None:
        path = at.tb_frame.f_code.co_filename
        if is_external_at(path) and Path(path).is_file():  # no "<string>"; and what is compiled may name no file
            place = f" (in {Path(path).name}, line {at.tb_lineno})"
        at = at.tb_next
    return place
