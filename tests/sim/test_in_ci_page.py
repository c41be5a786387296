"""The page `docs/in-ci.md`, and the action beside it, show what runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "in-ci.md").read_text(encoding="utf-8")
CHECK, PYTEST = re.findall(r"^```\n(.*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)
ACTION = yaml.safe_load((ROOT / "docs" / "action" / "action.yml").read_text(encoding="utf-8"))
WORKFLOW = yaml.safe_load((ROOT / "docs" / "action" / "workflow.yml").read_text(encoding="utf-8"))
INSTALL_STEP, CHECK_STEP = ACTION["runs"]["steps"]


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a command, outside of any pipeline, with this checkout on the path."""
    for name in ("GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return os.environ | {"PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def in_bash(step: dict[str, Any], inputs: dict[str, str], folder: Path, environment: dict[str, str]) -> Any:
    """Run a step of the action as a runner does: its inputs are in the environment, and nothing is pasted into it."""
    assert step["shell"] == "bash"
    assert "${{" not in step["run"]
    given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
    own = {name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: given[m[1]], v) for name, v in step["env"].items()}
    assert not [value for value in own.values() if "${{" in value]
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=folder, env=environment | own, capture_output=True, text=True, check=False)


def test_the_action_checks_a_class(tmp_path: Path, outside: dict[str, str]) -> None:
    """Whoever uses the action would have a step that fails, or that checks nothing."""
    scope = "aligned: a->s; events 1, checkpoints 1; abort"
    inputs = {"python": sys.executable, "impl": "docs.aligner.aligner:PhasedAligner", "scope": scope}
    done = in_bash(CHECK_STEP, inputs, tmp_path, outside)
    assert (done.returncode, "::notice title=barrierlab::verdict: holds" in done.stdout) == (0, True), done.stderr
    assert json.loads((tmp_path / "barrierlab.sarif").read_text())["runs"][0]["results"] == []
    assert ET.parse(tmp_path / "barrierlab.xml").getroot().get("tests") == "1"
    assert len(list((tmp_path / ".barrierlab").glob("*.json"))) == 1
    planted = inputs | {"impl": "docs.aligner.planted:PhasedAligner", "scope": scope.replace("a->s;", "a->s b->s;")}
    done = in_bash(CHECK_STEP, planted, tmp_path, outside | {"GITHUB_WORKSPACE": str(ROOT)})
    assert done.returncode == 1
    assert "::error file=docs/aligner/planted.py,line=" in done.stdout
    (result,) = json.loads((tmp_path / "barrierlab.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "LIVE"


def test_the_action_installs_the_checkout_that_it_is_in(tmp_path: Path, outside: dict[str, str]) -> None:
    """Another revision would be installed than the one that the workflow names."""
    recorder = tmp_path / "python"
    recorder.write_text('#!/bin/sh\nfor each; do echo "$each"; done\n', encoding="utf-8")
    recorder.chmod(0o755)
    environment = outside | {"GITHUB_ACTION_PATH": str(ROOT / "docs" / "action")}
    done = in_bash(INSTALL_STEP, {"python": str(recorder)}, tmp_path, environment)
    *command, folder = done.stdout.splitlines()
    assert (done.returncode, command) == (0, ["-m", "pip", "install"])
    assert (Path(folder).resolve(), (Path(folder) / "pyproject.toml").is_file()) == (ROOT, True)


def test_the_workflow_uses_the_action() -> None:
    """A copied workflow would give inputs that there are not, or upload files that nobody writes."""
    steps = WORKFLOW["jobs"]["check"]["steps"]
    (ours,) = [step for step in steps if "docs/action@" in step.get("uses", "")]
    assert set(ours["with"]) <= set(ACTION["inputs"])
    assert {name for name, each in ACTION["inputs"].items() if each.get("required")} <= set(ours["with"])
    (upload,) = [step for step in steps if "upload-sarif@" in step.get("uses", "")]
    assert f"--sarif {upload['with']['sarif_file']}" in CHECK_STEP["run"]
    assert upload["if"] == "always()"
    (cache,) = [step for step in steps if "actions/cache@" in step.get("uses", "")]
    assert cache["with"]["path"] == ".barrierlab"


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path: Path, outside: dict[str, str]) -> None:
    """A reader's first try would fail."""
    name, *words = shlex.split(CHECK)
    done = subprocess.run(
        [sys.executable, "-m", name, *words], cwd=tmp_path, env=outside, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "verdict: holds for 16 of 48 scopes" in done.stdout) == (0, True), done.stderr
    name, *words = shlex.split(PYTEST)
    plugin = ["-p", "barrierlab.sim.check.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", name, *plugin, *words],
        cwd=tmp_path,
        env=outside,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "3 passed, 6 skipped" in done.stdout) == (0, True), done.stdout


def test_every_file_that_the_page_names_is_there() -> None:
    """A link would lead nowhere."""
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert len(links) >= 3
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []
