"""The commands, files and Python of README and docs, typed: each does what its page says."""

from __future__ import annotations

import doctest
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, departure, reader, sessions, typed
from tests.sim.support import barrierlab, in_this_process

OWN = {
    "docs/your-aligner.md": "tests/model/test_your_aligner.py",
    "docs/your-engine.md": "tests/sim/test_your_engine_page.py",
    "docs/your-parts.md": "tests/model/test_your_parts.py",
    "docs/in-ci.md": "tests/sim/test_in_ci_page.py",
    "docs/engines/protocol.md": "tests/sim/test_engines.py",
}
"""Pages that have a test of their own for all that they show."""
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
TYPED = [
    page for page in PAGES if str(page.relative_to(ROOT)) not in OWN and any(not b.is_left_out for b in blocks(page))
]


def name_of(page: Path) -> str:
    """A page as its address in the repository."""
    return str(page.relative_to(ROOT))


Types = Callable[[str, Path, dict[str, str]], tuple[int, str, str]]
"""Types a command: exit status, stdout and stderr."""


def in_a_shell(text: str, folder: Path, environment: dict[str, str]) -> tuple[int, str, str]:
    """Type it as a reader would."""
    done = typed(text, folder, environment)
    return done.returncode, done.stdout, done.stderr


def type_all(page: Path, folder: Path, environment: dict[str, str], is_slow: bool, types: Types) -> None:
    """Type the blocks of a page one after the other, beside the repository's own files."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith(".") and entry.name != "out":
            (folder / entry.name).symlink_to(entry)
    for block in blocks(page):
        if not block.is_left_out and (is_slow or not block.is_slow):
            type_one(block, folder, environment, types)


def type_one(block: Block, folder: Path, environment: dict[str, str], types: Types) -> None:
    """Type one block; what is wrong with it is an assertion."""
    kind, _, file = block.note.partition(": ")
    if block.language == "toml":
        tomllib.loads(block.text)
        if kind in ("file", "append"):
            with (folder / file).open("a" if kind == "append" else "x", encoding="utf-8") as target:
                target.write(block.text)
    elif block.language == "python" and ">>>" in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, {}, "page", None, None)
        assert doctest.DocTestRunner().run(test).failed == 0
    elif block.language == "python":
        (folder / "typed.py").write_text(block.text, encoding="utf-8")
        done = typed("python3 typed.py", folder, environment)
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert block.language == "console", f"say `not typed: WHY` above it, or make it a console:\n{block.text}"
        for command, shown in sessions(block.text):
            status, out, err = types(command, folder, environment)
            printed = out or err
            is_refused = bool(shown) and shown[0].startswith("barrierlab: ")
            is_broken = any("verdict: broken" in line for line in shown)
            assert status == (2 if is_refused else int(is_broken)), f"{command}\n{printed}"
            assert not shown or departure(shown, printed) is None, f"{command}\n{printed}"


@pytest.fixture(params=["in this process", pytest.param("in a shell", marks=pytest.mark.slow)])
def types(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Types:
    """The means of typing a command: a shell, or this process, which need not start another one for each."""

    def here(text: str, folder: Path, environment: dict[str, str]) -> tuple[int, str, str]:
        program, *arguments = shlex.split(text)
        if program != "barrierlab" or set(text) & set("|<>;&$*"):
            return in_a_shell(text, folder, environment)
        monkeypatch.chdir(folder)
        monkeypatch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)
        return barrierlab(capfd, *arguments)

    return in_a_shell if request.param == "in a shell" else here


@pytest.mark.parametrize("page", TYPED, ids=name_of)
def test_what_a_page_has_typed_does_what_it_says(
    page: Path, types: Types, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader would type a command that fails, or that prints something else."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    type_all(page, folder, reader(tmp_path, monkeypatch), is_slow=False, types=types)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("page", [page for page in TYPED if any(b.is_slow for b in blocks(page))], ids=name_of)
def test_so_does_what_takes_long(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader would wait for a command that fails, or that prints something else."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    type_all(page, folder, reader(tmp_path, monkeypatch), is_slow=True, types=in_a_shell)


def test_pages_are_typed() -> None:
    """The tests above would pass on nothing."""
    assert len(TYPED) >= 5
    commands = [
        command for page in TYPED for b in blocks(page) if b.language == "console" for command, _ in sessions(b.text)
    ]
    assert len(commands) >= 15
    for page, test in OWN.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")


def test_what_is_not_typed_says_why() -> None:
    """A block would be left out because it fails."""
    notes = [b.note for page in PAGES for b in blocks(page) if b.note.startswith("not typed")]
    assert [note for note in notes if not re.fullmatch(r"not typed: \w.{8,}", note)] == []


@pytest.mark.parametrize(
    ("shown", "printed", "wrong"),
    [
        (["verdict: holds"], "verdict: broken\n", "verdict: holds"),
        (["a", "c"], "a\nb\nc\n", "a"),
        (["a", "...", "c"], "a\nb\nc\n", None),
        (["a"], "a\nb\n", "a"),
        (["...", "a", "b"], "a\nc\na\nb\n", None),
        (["...", "a", "..."], "b\n", "a"),
        (["...", "b"], "a\nb\n", None),
        (["│  4.2 │ holds"], "│  17.3 │ holds\n", None),
    ],
)
def test_a_departure_is_found(shown: list[str], printed: str, wrong: str | None) -> None:
    """The comparison would let everything pass."""
    assert departure(shown, printed) == wrong
