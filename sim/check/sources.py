"""A key for a stored verdict: it changes when anything changes on which the verdict may depend.

The key covers the version of Python and of barrierlab, every file of `impl` and `model` (the machines, the tables, the
scopes, the golden traces), and for an external class every file that importing its module reads outside the standard
library and site-packages. The import is watched in an interpreter of its own, so that nothing which this process has
loaded for other reasons counts. Where a module has no file, or a file is loaded or opened only while a scope is
explored, there is no key, and a verdict without a key is never taken over. What no key covers are the environment
variables, the clock and the network, with which an aligner has no business.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import barrierlab
from barrierlab.model.origin import is_external, is_external_at

_CHECKED = [(Path(barrierlab.__path__[0]) / name).resolve() for name in ("impl", "model")]  # links, in a checkout
_LIST = """
import importlib, json, sys
asked = json.load(sys.stdin)
answer, sys.stdout = sys.stdout, sys.stderr
sys.path[:] = asked["path"]
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
for name in asked["modules"]:
    importlib.import_module(name)
files = [each for each in opened if isinstance(each, str)]
for name, module in list(sys.modules.items()):
    spec = getattr(module, "__spec__", None)
    if name != "__main__" and getattr(spec, "origin", None) not in ("built-in", "frozen"):
        package = sys.modules.get(name.partition(".")[0])
        path = getattr(module, "__file__", None) or getattr(package, "__file__", None)
        if path or not hasattr(module, "__path__"):
            files.append(path or ":" + name)
json.dump(files, answer)
"""
"""Print every file that importing a module opens or loads code from, and ``:name`` of a module that no file made."""


class VerdictKey(NamedTuple):
    """The key of a verdict.

    Attributes
    ----------
    digest : str
        Empty if there is none.
    reason : str
        Why there is none.
    files : frozenset of str
        The external files that it covers.
    """

    digest: str
    reason: str = ""
    files: frozenset[str] = frozenset()


def key_of(implementation: str = "", folder: str = "") -> VerdictKey:
    """Return the key of verdicts on `impl`, or on external classes: ``module:Class``, with commas between them.

    Parameters
    ----------
    implementation : str
    folder : str
        Put before the path on which modules are looked for.
    """
    files: list[Path] = []
    hashed = hashlib.sha256(f"{sys.version}\n{version('barrierlab')}\n".encode())
    _add(hashed, (path for root in _CHECKED for path in root.rglob("*") if path.suffix in (".py", ".trace", ".toml")))
    if implementation:
        modules = list(dict.fromkeys(each.partition(":")[0] for each in implementation.split(",")))
        asked = {"path": [folder, *sys.path] if folder else sys.path, "modules": modules}
        command = [sys.executable, "-c", _LIST]
        listed = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
        if listed.returncode:
            return VerdictKey("", f"importing {', '.join(modules)} alone fails")
        found = json.loads(listed.stdout)
        if unknown := sorted(each[1:] for each in found if each.startswith(":")):
            return VerdictKey("", f"the module {unknown[0]!r} is loaded from no file")
        paths = {Path(each).resolve() for each in found if not each.startswith(":")}
        files = [path for path in paths if path.is_file() and is_external(path)]
        _add(hashed, files)
    return VerdictKey(hashed.hexdigest(), files=frozenset(map(str, files)))


def external_modules() -> set[str]:
    """Return the names of the modules of this process whose code is neither ours nor installed."""
    files = ((name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items()))
    return {name for name, path in files if path and is_external_at(os.path.abspath(path))}


def _add(hashed: hashlib._Hash, paths: Iterable[Path]) -> None:
    for path in sorted(paths):
        content = path.read_bytes()
        hashed.update(f"{path}\n{len(content)}\n".encode() + content)
