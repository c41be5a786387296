"""Whatever the product defines, something of the product uses; or it is a user's, and stands here with the reason."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.syntax import nodes_of, tree_of

ROOT = Path(__file__).parents[2]
CALLED = {
    "a command line of click or rich": "format_commands get_command list_commands on_broken_pipe",
    "the sink's writer of an engine": "roll_back",
    "pytest": "pytest_addoption pytest_collection_modifyitems pytest_configure reportinfo runtest",
    "its name, which is put together": "_move_fail",
    "whoever has the result of a run": "spacetime alignments",
    "Jupyter, and anywidget": "_repr_svg_ _esm _css",
    "whoever reads the catalogue": "sound_on_the_same_run Stash ObsoleteBarrier TRACES",
    "tests.leave_one_out, which writes errors.toml": "fit_all",
}
"""By who uses them: the names that no line of the product has besides their definition."""


def used(source: str) -> Iterator[str]:
    """Every name that is read, passed or written in a string, docstrings aside."""
    documentation = {id(node.value) for node in nodes_of(source) if isinstance(node, ast.Expr)}
    for node in nodes_of(source):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name, asname=str()):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in documentation:
                yield from re.findall(r"\w+", text)
            case ast.MatchClass(kwd_attrs=names):
                yield from names


def defined(tree: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Every function, class, method and value that a module or a class of it defines."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
                yield from defined(node)
            case ast.AnnAssign(target=target) | ast.Assign(targets=[target]):
                yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def unused(texts: dict[str, str]) -> list[str]:
    """Each definition that no line uses, as ``file: name``."""
    uses = Counter(name for text in texts.values() for name in used(text))
    return [
        f"{file}: {name}"
        for file, text in texts.items()
        for name in defined(tree_of(text))
        if not uses[name] and not name.startswith("__")
    ]


def test_what_nobody_uses_is_seen() -> None:
    """The test below would be silent whatever there is."""
    text = (
        '"""of_doc()"""\nclass A:\n    def read(self): ...\n    def lost(self): ...\nB = 1\ndef of_doc(): A().read()\n'
    )
    assert unused({"a.py": text, "b.py": "b = {'c': 'of a B'}"}) == ["a.py: lost", "a.py: of_doc", "b.py: b"]


def test_nothing_is_defined_that_nobody_uses() -> None:
    """Code would be read, kept and tested that does nothing for anybody."""
    texts = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for top in ("impl", "model", "sim")
        for path in sorted((ROOT / top).rglob("*.py"))
    }
    kept = {name for names in CALLED.values() for name in names.split()}
    found = unused(texts)
    assert [each for each in found if each.split()[-1] not in kept] == []
    assert kept - {each.split()[-1] for each in found} == set(), "take these out of CALLED: used by now, or gone"
