"""The examples of `docs/engines`, in four languages, and the page about their lines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import barrierlab.sim.check.process as sim_check_process
from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.sim.check.process import Process
from barrierlab.sim.check.program import _ANSWERS, _EFFECTS, _KINDS, end_programs
from barrierlab.sim.check.runner import check_one, plan
from tests.sim.support import barrierlab

ROOT = Path(__file__).parents[2]
ENGINES = ROOT / "docs" / "engines"
PAGE = (ENGINES / "protocol.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ENGINES / "protocol.schema.json").read_text(encoding="utf-8"))
ABORT = "aligned: a->s b->s; events 1, checkpoints 1; abort"
TWIN = "barrierlab.model.defects.engines.aligners:LeavesInChannel"
CARGO = Path.home() / ".cargo" / "bin"
PATH = f"{os.environ.get('PATH', '')}{os.pathsep}{CARGO}"
BUILT: dict[str, tuple[tuple[str, ...], str]] = {
    "python": ((), f"{sys.executable} {ENGINES}/python/aligner.py"),
    "javascript": ((), f"node {ENGINES}/javascript/aligner.js"),
    "rust": (
        ("rustc", "--edition", "2021", "-O", "-o", "{out}/aligner", f"{ENGINES}/rust/aligner.rs"),
        "{out}/aligner",
    ),
    "java": (("javac", "-d", "{out}", f"{ENGINES}/java/Aligner.java"), "java -cp {out} Aligner"),
}
"""By language, the command that builds it, and the one that runs it."""


@pytest.fixture(autouse=True)
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No program is left."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", PATH)
    yield
    end_programs()


def built(language: str, folder: Path) -> str:
    """The command of an example; skips if the toolchain is not there, and says so."""
    build, run = BUILT[language]
    for tool in (*build[:1], run.split()[0]):
        if not tool.startswith("{") and shutil.which(tool, path=PATH) is None:
            pytest.skip(f"docs/engines/{language}: {tool} is not installed")
    if build:
        subprocess.run([word.format(out=folder) for word in build], check=True)
    return run.format(out=folder)


def counts(implementation: str, limit_s: float, scope: str) -> list[tuple[str, str, int, int]]:
    """Return what each scope came to."""
    chosen = plan(scope, ("aligned",), implementation, "", limit_s)
    found = [check_one(chosen, name) for name in chosen.names]
    return [(each.name, each.verdict, each.states, each.transitions) for each in found]


@pytest.mark.slow
@pytest.mark.parametrize("language", list(BUILT))
def test_an_example_has_the_counts_of_its_twin_and_its_bug_is_found(
    language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A team would begin with an aligner that is not sound, or with a bug that nobody finds."""
    command = built(language, tmp_path)
    assert counts(command, 10.0, "tiny") == counts(TWIN, 0.0, "tiny")
    status, out, _ = barrierlab(capsys, "check", "--exec", f"{command} bug", "--scope", ABORT, "--json")
    (violation,) = json.loads(out)["violations"]
    assert (status, violation["invariant"], violation["steps"]) == (1, "LIVE", 14)


def test_every_example_is_in_the_table() -> None:
    """One would be there that no test runs."""
    assert {path.name for path in ENGINES.iterdir() if path.is_dir()} == set(BUILT)


# The schema.


def recorded(command: str, scope: str, protocol: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every line of a check, and every answer."""
    lines: list[bytes] = []
    ask = Process.answers

    def answers(self: Process, asked: list[bytes], times: int = 1) -> Iterator[bytes]:
        lines.extend(asked)
        for answer in ask(self, asked, times):
            lines.append(answer)
            yield answer

    monkeypatch.setattr(sim_check_process.Process, "answers", answers)
    chosen = plan(scope, (protocol,), command, "", 10.0)
    for name in chosen.names:
        check_one(chosen, name)
    return [json.loads(line) for line in lines]


SERVE = f"{sys.executable} tests/sim/serve.py"
CONVERSATIONS = [
    (f"{sys.executable} docs/engines/python/aligner.py bug", ABORT, "aligned"),
    (
        f"{SERVE} docs.aligner.unaligned:RecordingAligner",
        "aligned_with_timeout: a->s b->s; events 1, checkpoints 1; abort",
        "aligned_with_timeout",
    ),
    (f"{SERVE} tests.sim.serve:FirstSeen", "aligned: a->s b->s; events 1, checkpoints 1; closed input", "aligned"),
]


@pytest.mark.slow
def test_every_line_of_a_conversation_is_as_the_schema_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A team that writes its reader by the schema would meet lines that it does not know."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{ROOT}")
    lines: dict[str, Any] = {}
    for command, scope, protocol in CONVERSATIONS:
        for line in recorded(command, scope, protocol, monkeypatch):
            shape = {**line, "step": 0, "state": "", "message": None}
            lines.setdefault(json.dumps(shape), line)  # lines of one shape are one
    wrong = [error.message for line in lines.values() for error in of_the_schema().iter_errors(line)]
    assert wrong == []
    assert {line["do"] for line in lines.values() if "do" in line} == set(_done())
    effects = {effect[0] for line in lines.values() for effect in line.get("effects", ())}
    assert effects == set(_EFFECTS)


def _done() -> list[str]:
    table = PAGE[PAGE.index("| `make` |") : PAGE.index("A message has a `number`")]
    return ["hello", *re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)]


def test_the_page_and_the_schema_name_what_there_is() -> None:
    """One of them would be of another version."""
    definitions = SCHEMA["$defs"]
    assert [each["properties"]["do"]["const"] for each in definitions["question"]["oneOf"]] == _done()
    assert set(definitions["effects"]["properties"]) == {"step", *_KINDS}
    assert {each["prefixItems"][0]["const"] for each in definitions["effect"]["oneOf"]} == set(_EFFECTS)
    assert set(definitions["hello"]["properties"]["capabilities"]["properties"]) == set(Capabilities.__slots__)
    assert set(re.findall(r'\["(\w+)",', PAGE)) == set(_EFFECTS)
    assert set(_ANSWERS) < set(_done())
    for name in _KINDS:
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize(
    "line",
    [
        {"step": 1, "do": "look", "state": ""},
        {"step": 1, "do": "offer", "input": 0, "now_ns": 0},
        {"step": 1, "state": "", "effects": [["block", 0]]},
        {"step": 1, "state": "", "effects": [], "colour": "red"},
        {"step": -1, "state": "", "effects": []},
        {"state": "", "effects": []},
        {"step": 1, "version": 1, "kind": "aligner", "reads": "nothing", "restores": True},
    ],
    ids=str,
)
def test_the_schema_refuses_what_is_none(line: dict[str, Any]) -> None:
    """It would hold of anything."""
    assert not of_the_schema().is_valid(line)


def of_the_schema() -> Any:
    """Return what tells whether a line is of the schema, which is one itself."""
    from jsonschema import Draft202012Validator  # takes seconds to import: not in every worker that collects tests

    Draft202012Validator.check_schema(SCHEMA)
    return Draft202012Validator(SCHEMA)
