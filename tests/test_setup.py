"""The first things a fresh machine meets: the Makefile, the versions, the licence."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests import longest
from tests.conftest import LONGEST

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)


def normal(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_constrained_version_runs_on_the_oldest_python():
    """A pinned version that wants a newer Python than we do makes the set-up fail on a stock Debian."""
    floor = PROJECT["requires-python"].removeprefix(">=") + ".0"
    wrong = {}
    for name in CONSTRAINTS:
        try:
            wanted = metadata(name).get("Requires-Python")
        except PackageNotFoundError:
            continue
        if wanted and not SpecifierSet(wanted).contains(floor):
            wrong[name] = wanted
    assert wrong == {}


def test_every_dependency_is_constrained_to_a_version_it_allows():
    """Otherwise two set-ups of the same commit could differ, or contradict pyproject.toml."""
    versions = {normal(name): version for name, version in CONSTRAINTS.items()}
    extras = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *(line for lines in extras.values() for line in lines)]:
        requirement = Requirement(line)
        if requirement.name == "barrierlab":  # an extra made of others
            assert requirement.extras <= extras.keys(), line
            continue
        assert requirement.specifier.contains(versions[normal(requirement.name)]), line


def test_the_licence_is_the_standard_text():
    """A changed word would make it another licence."""
    digest = hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def test_ci_can_be_run():
    """The entry of continuous integration must be executable."""
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_longest_files_are_there():
    """One that was renamed would be begun last, and nobody would see why the tests take longer."""
    assert [file for file in LONGEST if not (ROOT / file).is_file()] == []


def test_the_long_tests_are_tests():
    """A test that was renamed would be part of `make check` again, unseen."""
    named = [name.split("::")[:2] for name in longest.names()]  # of a class, its name
    gone = [
        (file, name)
        for file, name in named
        if not (ROOT / file).is_file() or not re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8"))
    ]
    assert len(named) > 50
    assert gone == []


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("python", "words"),
    [
        (
            "#!/bin/sh\n[ $1 = --version ] && echo Python 3.9.2\nexit 1\n",
            "Python 3.9.2; Python 3.11 or newer is needed",
        ),
        (None, "Python 3.11 or newer is needed"),
    ],
    ids=["too old", "not there"],
)
def test_a_python_that_will_not_do_is_told_in_one_line(tmp_path, python, words):
    """The first thing a newcomer may meet must not be a stack trace."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    fake = tmp_path / "python3"
    if python is not None:
        fake.write_text(python)
        fake.chmod(0o755)
    make = subprocess.run(["make", f"PYTHON={fake}", "venv"], cwd=tmp_path, capture_output=True, text=True, check=False)
    said = [line for line in make.stderr.splitlines() if "***" not in line]  # make's own closing line
    assert make.returncode == 2
    assert len(said) == 1
    assert words in said[0]
    assert not (tmp_path / ".venv").exists()
