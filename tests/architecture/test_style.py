"""The debt of every file of the repository to its reader."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.architecture.syntax import nodes_of, tree_of

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for package in ("impl", "model", "sim") for path in ROOT.glob(f"{package}/**/*.py"))
TEXT = {".py", ".toml", ".md", ".txt", ".trace", ".cfg", ".yml", ".yaml", ".json", ".html", ".css", ".in", ""}

# A place on one machine, or an index of packages. (In pieces, so that this file is clean itself.)
PLACES = re.compile(
    "|".join(
        [
            r"(?<![\w.])/" + r"(?:home|root|work|Users|mnt|tmp)/\w",
            r"[A-Z]:" + r"\\Users",
            r"(?:index|extra-index|find-links)" + r"[-_ ]?(?:url)?\s*[=:]?\s*https?://",
            r"https?://[\w.-]*(?:pypi|artifactory|nexus|simple)" + r"[\w.:-]*/(?:simple|repository|artifactory)",
            r"https?://" + r"(?:localhost|127\.0\.0\.1|10\.\d+\.\d+\.\d+|192\.168\.)",
        ]
    )
)
# Programs that show or test such an address on purpose.
MAY_NAME_PLACES = {"tests/architecture/test_style.py"}


def committed() -> list[Path]:
    """The files under version control; in a source archive, which has none, those of the packages."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return [path for path in [*MODULES, *ROOT.glob("*.*"), *ROOT.glob("tests/**/*.*")] if path.is_file()]
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def first_sentence_problem(source: str) -> str | None:
    """Return what is wrong with the first line of a module's docstring."""
    docstring = ast.get_docstring(tree_of(source))
    if not docstring:
        return "the module has no docstring"
    first, _, rest = docstring.partition("\n")
    if not first.rstrip().endswith((".", ":")) or re.search(r"[.!?] [A-Z]", first):
        return f"its docstring begins with {first!r}: write one sentence on the first line"
    if rest and not rest.startswith("\n"):
        return "its docstring has no blank line after the first"
    return None


def test_a_module_says_in_one_sentence_what_it_is() -> None:
    """A newcomer would have to read a module to learn what it is for."""
    found = {str(path.relative_to(ROOT)): first_sentence_problem(path.read_text()) for path in MODULES}
    assert {path: problem for path, problem in found.items() if problem} == {}
    assert len(found) > 300


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1", "the module has no docstring"),
        ('"""Half a\nsentence."""', "its docstring begins with 'Half a': write one sentence on the first line"),
        ('"""One. Two."""', "its docstring begins with 'One. Two.': write one sentence on the first line"),
        ('"""One.\nTwo."""', "its docstring has no blank line after the first"),
        ('"""One.\n\nTwo."""', None),
    ],
)
def test_a_bad_docstring_is_found(source: str, problem: str | None) -> None:
    """The rule above would let everything pass."""
    assert first_sentence_problem(source) == problem


ASKS = re.compile(r"(?:What|Whether|Who|Which|Where|When|How|Why)\b")


def asking(source: str) -> list[str]:
    """The first lines of docstrings that open with a question word, those of constants too."""
    texts = (node.value.value for node in nodes_of(source) if is_text(node))
    return [text.partition("\n")[0] for text in texts if ASKS.match(text)]


def is_text(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Return whether a statement is a text alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def test_a_docstring_opens_with_a_noun_or_a_verb() -> None:
    """A reader would have to guess what a sentence is about that opens with a question and asks none."""
    findings = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in committed()
        if path.suffix == ".py"
        for line in asking(path.read_text(encoding="utf-8"))
    ]
    assert findings == [], "open with a verb or a noun: Return whether ..., The time at which ..."


def test_a_docstring_that_asks_is_found() -> None:
    """The test above would be silent whatever there is."""
    source = '"""One."""\nA = 1\n"""What A is.\n\nMore."""\ndef f():\n    """Whether f."""\n    return "Who?"'
    assert sorted(asking(source)) == ["What A is.", "Whether f."]


def no_parameters(source: str) -> list[str]:
    """The names in sections `Parameters` that no argument has; of a class, of its `__init__`, if it has one."""
    found = []
    for node in nodes_of(source):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        section = (ast.get_docstring(node) or "").partition("Parameters\n----------\n")[2]
        functions = [node] if isinstance(node, ast.FunctionDef) else [each for each in node.body if is_init(each)]
        arguments = {each.arg for function in functions for each in ast.walk(function) if isinstance(each, ast.arg)}
        lines = re.findall(r"^[*\w][\w*, ]*", re.split(r"\n\w+\n---", section)[0], re.MULTILINE)
        names = [name.strip("* ") for line in lines for name in line.split(",")]
        found += [name for name in names if functions and name not in arguments]
    return found


def is_init(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    """Return whether a statement defines how an object is made."""
    return isinstance(node, ast.FunctionDef) and node.name == "__init__"


def test_a_parameter_that_is_explained_is_there() -> None:
    """A reader would pass an argument by the name that it had before."""
    found = {str(path.relative_to(ROOT)): no_parameters(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_parameter_that_is_gone_is_found() -> None:
    """The test above would be silent whatever there is."""
    text = '"""Add.\n\n    Parameters\n    ----------\n    a, *b : int\n        Two.\n    c : int\n    """'
    assert no_parameters(f"def f(a, *b):\n    {text}") == ["c"]
    assert no_parameters(f"class A:\n    {text}\n    def __init__(self, a, c): ...\n    def f(b): ...") == ["b"]


AGAIN = re.compile(
    r"\b(?:(?:is|are|be|been|was|were) (?:told(?! apart)|put back)|(?:said|made) again|beg(?:ins?|an|un) anew)\b"
)
MAY_TELL = ("sim/ask/", "sim/sweep/", "sim/twin/", "sim/cli/", "docs/", "notebooks/")
"""Rooms in which a user is told something, or a message says so."""


def test_no_machine_is_only_talked_to() -> None:
    """A passive would hide who gets an order, and one word would stand for repeated, reproduced and emitted again."""
    findings = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in committed()
        if path.suffix in (".py", ".trace", ".pml")
        and path != Path(__file__)
        and not str(path.relative_to(ROOT)).startswith(MAY_TELL)
        for text in [path.read_text(encoding="utf-8")]
        if AGAIN.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if AGAIN.search(line)
    ]
    assert findings == [], "say who gets it, or which it is: reported, restored, repeated, reproduced, started"


def test_no_committed_file_names_a_place_on_a_machine() -> None:
    """The repository would work, or be installed, on one machine only."""
    findings = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in committed()
        if path.suffix in TEXT and str(path.relative_to(ROOT)) not in MAY_NAME_PLACES
        for text in [path.read_text(errors="replace")]
        if PLACES.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        for match in [PLACES.search(line)]
        if match
    ]
    assert findings == []


@pytest.mark.parametrize(
    "line",
    [
        "see /" + "home/me/notes",
        "--index-" + "url https://example.org/x",
        "https://pypi." + "example.org/simple",
        "http://local" + "host:3141/",
    ],
)
def test_a_place_is_found(line: str) -> None:
    """The pattern above would match nothing."""
    assert PLACES.search(line)


def too_long(text: str) -> list[int]:
    """The numbers of the lines of a page that are longer than 160 characters, outside tables and blocks of code."""
    blocks = 0
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        blocks += line.lstrip().startswith("```")
        if len(line) > 160 and not blocks % 2 and not line.startswith("|"):
            found.append(number)
    return found


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_a_page_can_be_read_and_compared_by_line(page: str) -> None:
    """A change of a word would show as one of a screen, and a terminal would break lines anywhere."""
    assert too_long((ROOT / page).read_text(encoding="utf-8")) == []


def test_a_long_line_is_found() -> None:
    """The test above would be silent whatever there is."""
    long = "x" * 161
    assert too_long(f"{long}\n{long[1:]}\n| {long}\n```\n{long}\n```\n{long}") == [1, 7]


NO_CODE = {"ruff", "slow_task"}
"""Names in CONTRIBUTING of what is a tool, or was only tried."""


def unknown(page: str, files: set[str], words: set[str]) -> list[str]:
    """Return the files and names that a page has in backticks and that there are not."""
    named = dict.fromkeys(re.findall(r"`([\w./]+)`", page))
    is_file = re.compile(r".*\.(py|md|toml|j2)")
    return [
        each
        for each in named
        if not (
            any(f"/{file}".endswith(f"/{each}") for file in files)
            if is_file.fullmatch(each)
            else "/" in each or words.issuperset(each.split("."))
        )
    ]


def test_contributing_names_what_there_is() -> None:
    """A newcomer would look for a function that has another name by now."""
    files = {str(path.relative_to(ROOT)) for path in committed()}
    code = [ROOT / file for file in files if file.endswith(".py")]
    words = NO_CODE.union(*(re.findall(r"\w+", path.read_text(encoding="utf-8")) for path in code))
    assert unknown((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), files, words) == []


def test_a_name_that_is_gone_is_found() -> None:
    """The test above would be silent whatever there is."""
    page = "`Engine.run` in `engine.py`, `Engine.ran`, `gone.py`, `a/b`, `gine.py`"
    assert unknown(page, {"sim/engine.py"}, {"Engine", "run"}) == ["Engine.ran", "gone.py", "gine.py"]


def test_shares_are_written_in_one_form() -> None:
    """One command would say 99 %, and another 99%."""
    by_hand = re.compile(r"\.\d%\}|\.\d[fg]\} ?%")
    modules = [(path, path.read_text()) for path in MODULES if path.name != "amounts.py"]
    assert [str(path.relative_to(ROOT)) for path, source in modules if by_hand.search(source)] == []
