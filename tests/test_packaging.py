"""The installation of a user: the wheel made from the source archive, with the libraries of the core and no others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
COMMANDS = (
    ["--version"],
    ["run", "diamond"],
    ["scenarios"],
    ["table", "aligned"],
    ["defects", "A-04"],
    ["check", "--scope", "tiny", "--protocol", "tracked"],
    ["run", "diamond", "--trace", "run.trace"],
    ["show", "run.trace", "--format", "html"],
)
USER = """
from __future__ import annotations

from impl import OWN
from barrierlab import impl
from barrierlab.impl import BarrierAligner, CheckpointBarrier, UnalignedCheckpointer
from barrierlab.model.spec.invariants import INVARIANTS
from barrierlab.sim import Result, Scenario, load, run
from barrierlab.sim.join.scenario import JoinScenario


class Mine(BarrierAligner):
    def on_cancel(self, input_id: int, cancel: impl.CancelBarrier, now_ns: int) -> impl.AlignerAction:
        return super().on_cancel(input_id, cancel, now_ns)


result: Result = run(load("diamond", kind=Scenario))
anything = load("lockstep_cameras")  # of any of the three kinds
verdict: str = run(anything, seed=1).verdict + f" {anything.until_s:g}"
joined: float = run(load("lockstep_cameras", kind=JoinScenario)).scenario.join.most_pending
print(Mine().process_message(0, CheckpointBarrier(1, 1)).name, len(INVARIANTS) > 0, result.verdict, OWN)
"""


def hatch(folder: Path, target: str, out: Path) -> Path:
    """Return what hatchling makes of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    [made] = out.glob("*.tar.gz" if target == "sdist" else "*.whl")
    return made


def of_core() -> set[str]:
    """The distributions that an installation without extras has, beside barrierlab itself."""
    found: set[str] = set()
    left = ["barrierlab"]
    while left:
        for line in distribution(left.pop()).requires or []:
            each = Requirement(line)
            if (each.marker is None or each.marker.evaluate({"extra": ""})) and each.name not in found:
                found.add(each.name)
                left.append(each.name)
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment in which the wheel is unpacked, beside the core's libraries."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("packaging")
    with tarfile.open(hatch(ROOT, "sdist", folder / "dist")) as archive:
        archive.extractall(folder / "source", filter="data")
    [source] = (folder / "source").iterdir()
    wheel = hatch(source, "wheel", folder / "dist")
    venv.create(folder / "venv", symlinks=True)
    [site] = (folder / "venv").glob("[Ll]ib/**/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    for name in of_core():
        for file in distribution(name).files or []:
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(distribution(name).locate_file(top))
    return folder / "venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder, with packages of the names of ours."""
    folder = tmp_path_factory.mktemp("work")
    for name in ("impl", "model", "sim"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("OWN = True\n", encoding="utf-8")
    (folder / "mine.py").write_text(USER, encoding="utf-8")
    return folder


def of_user(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command as a user gives it, who has no paths of ours."""
    ours = {"PYTHONPATH", "MYPYPATH", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_the_installed_command_runs(installed: Path, work: Path, arguments: list[str]) -> None:
    """A test would try the sources, and only a user would miss a file that the archive leaves out."""
    done = of_user([str(installed), "-m", "barrierlab", *arguments], work)
    assert (done.returncode, done.stderr.count("Error")) == (0, 0), done.stderr
    assert done.stdout


@pytest.mark.slow
def test_a_users_file_runs_and_has_types(installed: Path, work: Path) -> None:
    """An import could not be resolved, what comes from it had no type, or a name that is not there would pass."""
    done = of_user([str(installed), "mine.py"], work)
    assert (done.stdout, done.stderr) == ("BLOCKED True holds True\n", "")
    checked = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull]
    done = of_user([*checked, "--python-executable", str(installed), "mine.py"], work)
    assert re.fullmatch(r"Success: no issues found in 1 source file\n", done.stdout), done.stdout
    (work / "wrong.py").write_text("from barrierlab import loads\nfrom barrierlab.sim import Runs\n", encoding="utf-8")
    done = of_user([*checked, "--python-executable", str(installed), "wrong.py"], work)
    assert done.stdout.count("[attr-defined]") == 2, done.stdout
