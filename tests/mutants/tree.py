"""A copy of the product in which a mistake is planted, and what `check` says to it."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("impl", "model", "sim")
WORKER = Path(__file__).with_name("worker.py")
WORDING = "STORY"
"""The invariant of which a break may mean no more than other words: `barrierlab.model.checkpoint.scripted_scopes`."""


class MutantError(ValueError):
    """A mistake that cannot be planted: one line, with what to do."""


class Tree:
    """A copy of the package in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "src", folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        # Compiled once, and compared by content from then on: a mutant may be as long and as old as what it replaces.
        compiled = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "barrierlab"]
        subprocess.run(compiled, cwd=folder, check=True)

    @contextmanager
    def planted(self, changed: Mapping[str, str]) -> Iterator[None]:
        """With other sources for some modules, by their paths in the repository."""
        before = {path: self._place(path).read_text(encoding="utf-8") for path in changed}
        try:
            self._write(changed)
            yield
        finally:
            self._write(before)

    def _write(self, sources: Mapping[str, str]) -> None:
        for path, source in sources.items():
            self._place(path).write_text(source, encoding="utf-8")

    def _place(self, path: str) -> Path:
        return self.folder / "barrierlab" / path

    def check(self, group: str, scopes: Sequence[tuple[str, float]], limit_s: float) -> list[dict[str, Any]]:
        """The outcomes of scopes, in their order, up to the first that is broken.

        Parameters
        ----------
        group : str
            As `barrierlab check --scope`.
        scopes : sequence of (str, float)
            Names, and how many seconds of CPU time each may take. Empty: all of the group.
        limit_s : float
            The same for what comes ahead of the first.
        """
        order = {"group": group, "scopes": scopes, "limit_s": limit_s, "wording": WORDING}
        done = subprocess.run(
            [sys.executable, "-B", "-P", str(WORKER)],
            input=json.dumps(order),
            env={**os.environ, "PYTHONPATH": str(self.folder), "PYTHONHASHSEED": "0"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        outcomes = [line for line in lines if "verdict" in line]
        begun = lines[-1]["scope"] if lines and "verdict" not in lines[-1] else ""
        if done.returncode == -signal.SIGPROF:
            outcomes.append({"scope": begun, "verdict": "broken", "invariant": "TIMEOUT", "why": "it does not end"})
        elif done.returncode:
            why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            outcomes.append({"scope": begun, "verdict": "broken", "invariant": "RAISED", "why": why})
        return outcomes


def patched(patch: Path) -> dict[str, str]:
    """The sources of the modules that a kept patch changes, with the change.

    Raises
    ------
    MutantError
        If it does not apply to the tree as it is.
    """
    paths = [line.removeprefix("+++ b/").strip() for line in _lines(patch) if line.startswith("+++ b/")]
    missing = [path for path in paths if not (ROOT / path).is_file()]
    if missing or not paths:
        raise MutantError(f"{patch.name} changes {missing or 'nothing'}; allowed: modules that are there; rewrite it")
    with TemporaryDirectory(prefix="barrierlab-patch-") as name:
        folder = Path(name)
        for path in paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)
        apply = ["git", "apply", str(patch.resolve())]
        env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}  # a folder like any other, in no repository
        done = subprocess.run(apply, cwd=folder, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["git says nothing"])[-1]
            raise MutantError(f"{patch.name} does not apply: {why}; the code has moved: make the change again there")
        return {path: (folder / path).read_text(encoding="utf-8") for path in paths}


def changed_functions(before: str, after: str) -> set[int] | None:
    """The lines of all functions in which two sources differ; None if they differ outside of functions, too."""
    functions = [
        set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for node in ast.walk(ast.parse(before))
        if isinstance(node, ast.FunctionDef)
    ]
    changed: set[int] = set()
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    for tag, first, last, _, _ in matcher.get_opcodes():
        if tag != "equal":
            place = set(range(first + 1, max(first + 1, last) + 1))  # an insertion is at the line that it comes before
            around = [lines for lines in functions if place <= lines and min(lines) not in place]
            if not around:
                return None
            changed |= min(around, key=len)
    return changed


def comment_of(patch: Path) -> str:
    """Return what is wrong with the mutant, in the words of the patch's first line."""
    return _lines(patch)[0].removeprefix("# ")


def _lines(patch: Path) -> list[str]:
    return patch.read_text(encoding="utf-8").splitlines()


def marked(source: str) -> str:
    """A module that notes which of its statements are reached: their first lines, in `reached_lines`."""
    tree = ast.parse(source)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        _mark(function)
    at = 1 + max((i for i, each in enumerate(tree.body) if _is_at_the_top(each)), default=-1)
    tree.body[at:at] = ast.parse("reached_lines: set[int] = set()").body
    return ast.unparse(ast.fix_missing_locations(tree))


def _is_at_the_top(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _mark(node: ast.AST) -> None:
    """A mark ahead of each statement in the blocks of `node`, those of functions in it aside."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        for each in block:
            if not isinstance(each, ast.FunctionDef | ast.ClassDef):
                _mark(each)
        if name not in ("handlers", "cases"):
            setattr(node, name, [new for each in block for new in (*_mark_of(each), each)])


def _mark_of(statement: ast.stmt) -> list[ast.stmt]:
    return ast.parse(f"reached_lines.add({statement.lineno})").body
