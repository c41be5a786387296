"""The page `docs/your-aligner.md` shows what there is, and what comes out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

import docs.aligner.test_aligner as the_test_file
from barrierlab.model.checkpoint.capabilities import Capabilities
from barrierlab.model.checkpoint.check import WorldScope
from barrierlab.model.checkpoint.external import Aligner, Driven, PullAligner, load, parts_of, pulls
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.defects.engines.aligners import LeavesInChannel
from barrierlab.model.suites.conformance import ConformanceCase, cases
from barrierlab.sim.cli.show import Shown
from docs.aligner.aligner import PhasedAligner
from docs.aligner.planted import PhasedAligner as Planted
from tests.sim.support import barrierlab

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "aligner"
PAGE = (ROOT / "docs" / "your-aligner.md").read_text()
BLOCKS: dict[str, list[str]] = {}
for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
    BLOCKS.setdefault(language, []).append(block)
VERDICT, COMMAND, TRACE, GATE_RUN = BLOCKS[""]
DECLARATION, LOOP, TEST_FILE = BLOCKS["python"]
SHOWN = ("aligned: a->s b->s; events 1, checkpoints 1; abort", "aligned table: one input")


def failure_of(name: str) -> str:
    """The run that the aligner with the bug fails with, in a case."""
    (case,) = [case for case in cases(Planted, judge="table") if str(case) == name]
    with pytest.raises(AssertionError) as failed:
        case.check()
    return str(failed.value).split("\n\n", 1)[1] + "\n"


def test_the_page_shows_the_test_file() -> None:
    """A team would copy a file that nobody has run."""
    assert (FOLDER / "test_aligner.py").read_text() == TEST_FILE
    (mark,) = the_test_file.test_my_aligner.pytestmark
    assert [str(case) for case in mark.args[1]] == [str(case) for case in cases(PhasedAligner)]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=[pytest.mark.slow] * (at % 3 > 0))
        for at, case in enumerate(cases(PhasedAligner, judge="table"))
    ],
)
def test_the_repaired_aligner_passes_that_test(case: ConformanceCase) -> None:
    """The page would promise what is not so."""
    the_test_file.test_my_aligner(case)


@pytest.mark.parametrize(("name", "shown"), [(SHOWN[0], TRACE), (SHOWN[1], GATE_RUN)], ids=SHOWN)
def test_the_runs_of_the_page_are_what_comes_out(name: str, shown: str) -> None:
    """A reader would learn to read what is never shown."""
    assert failure_of(name) == shown


def test_the_trace_and_the_picture_are_kept() -> None:
    """The picture would be of another run. (`barrierlab show` makes it from the trace.)"""
    assert (FOLDER / "planted.trace").read_text() == TRACE
    assert (FOLDER / "planted.svg").read_text() == Shown(FOLDER / "planted.trace", None).as_svg()
    assert "aligner/planted.svg" in PAGE


def test_the_repair_is_the_difference() -> None:
    """The page would leave out what else has to be done."""
    planted, sound = ((FOLDER / name).read_text().splitlines() for name in ("planted.py", "aligner.py"))
    difference = unified_diff(planted[1:], sound[1:], lineterm="", n=4)  # the first line says what the file is
    hunks = re.split(r"^@@.*\n", "".join(f"{line}\n" for line in difference), flags=re.MULTILINE)
    assert hunks[1:] == BLOCKS["diff"]


def test_the_command_names_a_class_that_there_is() -> None:
    """The first thing that a reader tries would fail."""
    words = COMMAND.split()
    assert words[words.index("--judge") + 1] == "table"
    assert words[:2] == ["barrierlab", "check"]
    assert load(words[words.index("--impl") + 1]) is Planted


@pytest.mark.slow
def test_the_command_finds_what_the_page_shows(tmp_path: Path) -> None:
    """A user who has no test suite would be shown something else."""
    words = [
        "-c",
        "import barrierlab.sim.cli.main; barrierlab.sim.cli.main.main()",
        *COMMAND.split()[1:-1],
        str(tmp_path),
    ]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    assert subprocess.run([sys.executable, *words], check=False, cwd=ROOT, env=environment).returncode == 1
    saved = {path.read_text(): path for path in tmp_path.glob("*.trace")}
    assert {TRACE, GATE_RUN} <= set(saved)
    assert saved[TRACE].with_suffix(".svg").read_text() == (FOLDER / "planted.svg").read_text()


def test_the_declaration_of_the_page_is_one() -> None:
    """A team would copy a declaration that there is not."""
    defined: dict[str, Any] = {}
    exec(DECLARATION, defined)
    assert defined["MyAligner"].capabilities == Capabilities(aborts=False, leaves_in_channel=True)
    rows = re.findall(r"^\| `(\w+)=(\w+)` \|", PAGE, re.MULTILINE)
    defaults = {field.name: str(not field.default) for field in fields(Capabilities)}
    assert dict(rows) == defaults  # each is shown as it is not by default


def test_the_loop_of_the_page_holds() -> None:
    """A team would copy a loop that cannot stand in, or that is no loop."""
    defined: dict[str, Any] = {"MyAligner": LeavesInChannel}
    exec(LOOP, defined)
    assert pulls(defined["FirstSeen"])
    scope = WorldScope("two sources", Bounds("a->s b->s", events=1, checkpoints=1))
    assert scope.check(parts_of(defined["FirstSeen"], "aligned"), None).verdict == "holds"


def test_the_verdict_of_the_page_is_what_comes_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader would look for a line that is never printed."""
    monkeypatch.chdir(ROOT)
    arguments = ("--impl", "tests.model.test_asked:Little", "--protocol", "aligned", "--scope", "tiny")
    status, out, _ = barrierlab(capsys, "check", *arguments, "--strict", "--master", "processes[1]")
    lines = [re.sub(r"[\d,]+ states", "... states", text) for text in (out.splitlines()[-1] + "\n", VERDICT)]
    assert (status, lines[0]) == (3, lines[1])


def test_the_page_names_every_method() -> None:
    """A team would learn from an error what it must have."""
    asked = [name for shape in (Aligner, Driven, PullAligner) for name in vars(shape) if not name.startswith("_")]
    assert {"offer", "abort", "poll"} <= set(asked)
    assert [name for name in asked if f"`{name}" not in PAGE] == []


def test_every_file_that_the_page_names_is_there() -> None:
    """A link would lead nowhere."""
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert len(links) >= 5
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []
