"""The allowed imports. The tables are the rule; a finding names the file and the line."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.syntax import nodes_of

ROOT = Path(__file__).parents[2]
PACKAGES = ("impl", "model", "sim")

# Of this project: imports run upward only.
OF_OURS = {"impl": {"impl"}, "model": {"impl", "model"}, "sim": {"impl", "model", "sim"}}
# The specification knows nothing of the code that it judges.
SPECIFICATION = {
    "model/spec",
    *("model/join/history.py", "model/join/invariants.py"),
    *("model/control/invariants.py", "model/control/topology.py"),
}
# Nothing that has a clock, chance, threads or the external system world; and nothing that would run what it reads.
NOT_IN_IMPL = {
    *("time", "datetime", "random", "threading", "asyncio", "os", "io", "logging", "subprocess", "socket"),
    *("concurrent", "multiprocessing", "pathlib", "secrets", "uuid", "shutil", "tempfile", "pickle", "marshal"),
}
# The one module that does I/O, and with what.
IO_IN_IMPL = {"impl/storage/files.py": {"os", "io"}}
OF_OTHERS = {"impl": set[str](), "model": {"networkx"}}
MAY_IMPORT_DEFECTS = {"sim/cli/defects.py", "sim/check/random_runs.py"}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Line and name within barrierlab, else full name, of everything that `source` imports."""
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.removeprefix("barrierlab.")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the whole name, not a relative one"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}".removeprefix("barrierlab.")


def breaches(path: str, source: str) -> Iterator[str]:
    """The imports in `source`, the module at `path` from the root, that break a rule."""
    package = path.partition("/")[0]
    for line, name in imported(source):
        top = name.partition(".")[0]
        where = f"{path}:{line}: "
        if top in PACKAGES and top not in OF_OURS[package]:
            yield f"{where}{package} may not import {top}; it may {', '.join(sorted(OF_OURS[package]))}"
        if (path in SPECIFICATION or path.rpartition("/")[0] in SPECIFICATION) and top == "impl":
            yield f"{where}the specification may not import {name}: it would judge code by itself"
        if package == "impl" and top in NOT_IN_IMPL - IO_IN_IMPL.get(path, set()):
            yield f"{where}impl may not import {top}: it has no clock, chance, thread or I/O"
        if top not in sys.stdlib_module_names and top not in PACKAGES and top not in OF_OTHERS.get(package, {top}):
            others = ", ".join(sorted(OF_OTHERS[package])) or "nothing"
            yield f"{where}{package} may not import {top}; beside the standard library it may {others}"
        if (
            name.startswith("model.defects")
            and not path.startswith("model/defects/")
            and path not in MAY_IMPORT_DEFECTS
        ):
            yield f"{where}only the command line, tests and notebooks may import model.defects"


MODULES = sorted(str(path.relative_to(ROOT)) for package in PACKAGES for path in ROOT.glob(f"{package}/**/*.py"))


def test_a_module_imports_only_what_it_may() -> None:
    """The protocol could read a clock, or the specification be written in terms of the code it judges."""
    assert [breach for path in MODULES for breach in breaches(path, (ROOT / path).read_text())] == []
    assert len(MODULES) > 300


@pytest.mark.parametrize(
    ("path", "source", "finding"),
    [
        (
            "impl/checkpoint/gate.py",
            "import barrierlab.model.checkpoint.trace",
            "impl/checkpoint/gate.py:1: impl may not import model; it may impl",
        ),
        (
            "model/checkpoint/trace.py",
            "\nfrom sim import run",
            "model/checkpoint/trace.py:2: model may not import sim; it may impl, model",
        ),
        (
            "model/spec/history.py",
            "from barrierlab.impl.messages import Event",
            (
                "model/spec/history.py:1: the specification may not import impl.messages.Event: "
                "it would judge code by itself"
            ),
        ),
        (
            "impl/checkpoint/gate.py",
            "def f():\n    from time import time",
            "impl/checkpoint/gate.py:2: impl may not import time: it has no clock, chance, thread or I/O",
        ),
        ("impl/storage/files.py", "import os", None),
        (
            "impl/storage/files.py",
            "import time",
            "impl/storage/files.py:1: impl may not import time: it has no clock, chance, thread or I/O",
        ),
        (
            "model/checkpoint/trace.py",
            "import numpy",
            "model/checkpoint/trace.py:1: model may not import numpy; beside the standard library it may networkx",
        ),
        (
            "sim/checkpoint/engine.py",
            "from barrierlab.model import defects",
            "sim/checkpoint/engine.py:1: only the command line, tests and notebooks may import model.defects",
        ),
    ],
)
def test_a_breach_is_found(path: str, source: str, finding: str | None) -> None:
    """The rules above would find nothing, whatever was imported."""
    assert list(breaches(path, source)) == ([finding] if finding else [])


def test_no_module_of_ours_is_loaded_twice() -> None:
    """A class of one copy would not be that of the other: an `isinstance` or a comparison of enums would fail."""
    loaded: dict[Path, set[str]] = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if path and any(Path(path).resolve().is_relative_to(ROOT / package) for package in PACKAGES):
            loaded.setdefault(Path(path).resolve(), set()).add(name)
    assert {path: names for path, names in loaded.items() if len(names) > 1} == {}


def test_everything_is_imported_by_its_whole_name() -> None:
    """With the root as working folder, `import model` would find a second copy."""
    short = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in (*PACKAGES, "tests", "docs", "notebooks")
        for path in sorted(ROOT.glob(f"{folder}/**/*.py"))
        for node in nodes_of(path.read_text())
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        if name.partition(".")[0] in PACKAGES
    ]
    assert short == []


def opens(source: str) -> bool:
    """Return whether `source` opens a file without importing anything for it."""
    calls = (node.func for node in nodes_of(source) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Name) and called.id == "open" for called in calls)


def test_one_module_of_impl_opens_files() -> None:
    """A machine could read or write behind its driver's back."""
    assert {path for path in MODULES if path.startswith("impl/") and opens((ROOT / path).read_text())} == set(
        IO_IN_IMPL
    )
