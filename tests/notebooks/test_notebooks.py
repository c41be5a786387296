"""Every notebook runs, shows what it says, and is in step with its pair."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(ROOT.glob("notebooks/*.py"))
PUBLIC = {
    "IPython.display",
    "matplotlib.pyplot",
    "pandas",
    "barrierlab",
    "barrierlab.sim.sweep",
    "barrierlab.sim.sweep.measured",
    "tempfile",
}
MOST_S = 60  # of the processor, so that it does not matter what else runs

# What a notebook must show when it is run: texts in its outputs, and how many pictures.
SHOWS = {
    "01_first_cut": (
        6,
        ["'holds'", ">drain", "buffer", "start delay of slow", "± 10%", "join", "throughput_per_s"],
    ),
}

each_notebook = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)


def cells_of(notebook: Any) -> list[tuple[str, str]]:
    """Kind and text of each cell."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def breaches(code: str) -> Iterator[str]:
    """What in `code` a notebook may not do: define something, or reach behind the public API."""
    for node in ast.walk(ast.parse(code)):
        at = f"line {getattr(node, 'lineno', 0)}: "
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield f"{at}a definition belongs into a module"
        elif isinstance(node, ast.Import):
            yield from (f"{at}{alias.name} is not for notebooks" for alias in node.names if alias.name not in PUBLIC)
        elif isinstance(node, ast.ImportFrom) and node.module not in PUBLIC:
            yield f"{at}{node.module} is not for notebooks"
        elif isinstance(node, ast.ImportFrom):
            offered = getattr(import_module(node.module), "__all__", None)
            for name in [alias.name for alias in node.names]:
                if name.startswith("_") or (offered is not None and name not in offered):
                    yield f"{at}{node.module} does not offer {name}"
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            yield f"{at}{node.attr} is private"


def test_there_are_notebooks() -> None:
    """The tests below would pass on nothing."""
    assert {source.stem for source in SOURCES} == SHOWS.keys()
    assert {path.stem for path in ROOT.glob("notebooks/*.ipynb")} == SHOWS.keys()


@each_notebook
def test_the_pair_is_in_step_and_has_no_outputs(source: Path) -> None:
    """Who opens the notebook would see other cells than those that are tested, or results of another day."""
    import jupytext  # here: it takes a second and a half, and whoever runs other tests collects this file, too
    import nbformat

    pair = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    again = f"run: jupytext --to ipynb notebooks/{source.name}"
    nbformat.validate(pair)
    assert cells_of(pair) == cells_of(jupytext.read(source)), again
    assert [cell.source for cell in pair.cells if cell.get("outputs") or cell.get("execution_count")] == [], again


@each_notebook
def test_a_notebook_only_reads(source: Path) -> None:
    """A result would hang on code that no test sees, or on names that may change."""
    assert list(breaches(source.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        ("def f():\n    return 1", "line 1: a definition belongs into a module"),
        ("import pandas\nclass A: ...", "line 2: a definition belongs into a module"),
        ("from barrierlab.impl import Gate", "line 1: barrierlab.impl is not for notebooks"),
        ("import os", "line 1: os is not for notebooks"),
        (
            "from barrierlab.sim.checkpoint.result import Result",
            "line 1: barrierlab.sim.checkpoint.result is not for notebooks",
        ),
        ("from barrierlab import engine", "line 1: barrierlab does not offer engine"),
        ("from pandas import _libs", "line 1: pandas does not offer _libs"),
        ("result._engine", "line 1: _engine is private"),
    ],
)
def test_a_breach_is_found(code: str, finding: str) -> None:
    """The rules above would let everything pass."""
    assert list(breaches(code)) == [finding]


@each_notebook
def test_a_notebook_runs_and_shows_what_it_says(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader would get an error, a warning, an empty place where a picture should be, or another result."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))  # nothing of the user's: our own kernel, no settings
    monkeypatch.delenv("JUPYTER_PATH", raising=False)
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(source)
    work = tmp_path / "work"
    work.mkdir()
    before = os.times()
    resources = {"metadata": {"path": str(work)}}
    NotebookClient(notebook, kernel_name="python3", timeout=10 * MOST_S, resources=resources).execute()
    after = os.times()

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output for output in outputs if output.output_type in ("error", "stream")] == []
    shown = [output.data for output in outputs if "data" in output]
    pictures, texts = SHOWS[source.stem]
    assert sum("image/png" in data for data in shown) == pictures
    assert [data["text/plain"] for data in shown if "Figure" in data["text/plain"] and "image/png" not in data] == []
    text = "\n".join(re.sub(r"<[^>]+>", " ", data.get("text/html", data["text/plain"])) for data in shown)
    assert [wanted for wanted in texts if wanted not in text.replace("&gt;", ">")] == []
    assert "broken" not in text
    assert list(work.iterdir()) == []
    used_s = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    assert 0 < used_s < MOST_S, used_s
