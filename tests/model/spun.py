"""Run Spin on a model, by the command lines that `export` prints."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from barrierlab.model.render.promela import commands

LACKS = [name for name in ("spin", "cc") if shutil.which(name) is None]
needs_spin = pytest.mark.skipif(bool(LACKS), reason=f"needs {' and '.join(LACKS)}: apt install spin gcc")


class Spun(NamedTuple):
    """The verdict of Spin on a model.

    Attributes
    ----------
    states : int
    broken : str
        The invariant; empty if all hold.
    run : tuple of str
        The moves of a shortest run to that.
    """

    states: int
    broken: str
    run: tuple[str, ...]


def spun(model: str, folder: Path) -> Spun:
    """Explore a model in a folder of its own."""
    (folder / "model.pml").write_text(model, encoding="utf-8")
    *explores, replays = commands("model.pml")
    for line in explores:
        found = _run(line, folder)
    counted = re.search(r"^ *(\d+) states, stored", found, re.MULTILINE)
    assert counted is not None, found
    errors = re.search(r"errors: (\d+)", found)
    assert errors is not None, found
    states = int(counted[1])
    if errors[1] == "0":
        assert "not completed" not in found, found
        return Spun(states, "", ())
    assert "assertion violated" in found, found
    # Spin warns, in the same stream, where a clock of coarse steps dates the model no earlier than the run.
    lines = [line.strip() for line in _run(replays, folder).splitlines() if not line.startswith("spin: warning")]
    verdict = next(at for at, line in enumerate(lines) if line.startswith("! "))
    return Spun(states, lines[verdict].removeprefix("! "), tuple(lines[:verdict]))


def _run(line: str, folder: Path) -> str:
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0 or line.startswith("spin -t"), done.stdout + done.stderr
    return done.stdout
