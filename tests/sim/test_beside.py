"""Things beside ours on somebody's path: packages of the names of our folders, and classes written for older names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.breadth import first

ROOT = Path(__file__).parents[2]
SCOPE = "aligned: a->s b->s; events 1, checkpoints 1; abort"


def started(folder: Path, arguments: list[str], *path: str) -> subprocess.CompletedProcess[str]:
    """The command as somebody starts it who works in `folder`, with so much ahead on the path."""
    return subprocess.run(
        [sys.executable, "-m", "barrierlab", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*path, str(ROOT / "src")])},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["run", "diamond"], marks=pytest.mark.slow),
        ["check", "--impl", "model.aligner:PhasedAligner", "--scope", SCOPE, "--master", "processes[1]"],
        pytest.param(["table", "aligned"], marks=pytest.mark.slow),
        pytest.param(["scenarios"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_packages_of_the_same_names_stand_beside_it(arguments: list[str], tmp_path: Path) -> None:
    """A project with a folder called model could not be checked: its package would hide ours, or ours its."""
    for name in ("impl", "model", "sim"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWN = True\n")
    shutil.copy(ROOT / "docs" / "aligner" / "aligner.py", tmp_path / "model" / "aligner.py")
    for path in first(([], [str(tmp_path)])):
        done = started(tmp_path, arguments, *path)
        assert (done.returncode, done.stderr.count("Error")) == (0, 0), done.stderr
        assert done.stdout


@pytest.mark.parametrize("name", first(("impl", "model", "sim")))
def test_a_class_that_uses_an_older_name_is_told_the_new_one(name: str, tmp_path: Path) -> None:
    """Its author would see that a module is not there, and not that it has another name."""
    (tmp_path / "mine.py").write_text(f"from {name}.messages import Event\n")
    done = started(tmp_path, ["check", "--impl", "mine:Mine", "--scope", "tiny"])
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"No module named '{name}" in done.stderr
    assert f"imported as barrierlab.{name}" in done.stderr
