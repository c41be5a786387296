"""Every notebook runs, shows what it says, and is in step with its pair."""

from __future__ import annotations

import ast
import html
import itertools
import math
import os
import queue
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pytest

from barrierlab.model.spec.history import MOVES
from docs.generated import MODULES, public
from tests import breadth

ROOT = Path(__file__).parents[2]
SOURCES = sorted(ROOT.glob("notebooks/*.py"))
PUBLIC = {
    *("IPython.display", "ipywidgets", "matplotlib.pyplot", "duckdb", "pandas", "pathlib", "tempfile"),
    *MODULES,  # what the reference lists
}
MOST_S = 60  # of the processor, so that it does not matter what else runs
QUICK = {"01_first_cut", "05_your_aligner"}
"""Those that `make test` runs; `make test-full` runs all."""
DEFINES = {"05_your_aligner"}
"""Those that are about a class of the reader's own."""
SAYS = re.compile(r"Spark on Java .*, master local\[\d\]\n")
"""The words that may be printed beside results."""


class Shows(NamedTuple):
    """Anything that a notebook must show when it is run."""

    pictures: int
    texts: list[str]
    widgets: int = 0
    is_broken: bool = False  # whether something is broken on purpose


SHOWS = {
    "01_first_cut": Shows(
        6, ["'holds'", ">drain", "buffer", "start delay of slow", "± 10 %", "join", "throughput_per_s"]
    ),
    "02_the_orphan_message": Shows(2, ["leaves behind the records", "CUT", "REC", "orphan", "1237", "1297"], 1, True),
    "03_aligned_unaligned_and_the_timeout": Shows(4, ["aligned_with_timeout", "± 10 %", "< 100 ms", "1.6"], 1),
    "04_crash_and_recovery": Shows(2, ["'holds'", "crash count #2", "694", "counted twice in the state"]),
    "05_your_aligner": Shows(1, ["CUT", "aborts (rule 10)", "427", "holds"], is_broken=True),
    "06_the_gallery_of_defects": Shows(5, ["SEATUNNEL-11559", "RisingWave", "caught"], 1, True),
    "07_joins": Shows(2, ["sequence", "timestamp", "latest", "{'holds'}"]),
    "08_a_sweep": Shows(2, ["persisted_mb", "What changes the duration most is", "start delay", "slow"]),
    "09_a_twin_of_your_job": Shows(3, ["not seen", "fitted on", "Take a checkpoint every", "Daly", "flush_lateness"]),
}

each_notebook = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
each_that_runs = pytest.mark.parametrize(
    "source",
    [pytest.param(source, marks=[] if source.stem in QUICK else pytest.mark.slow) for source in SOURCES],
    ids=lambda path: path.stem,
)


def cells_of(notebook: Any) -> list[tuple[str, str]]:
    """Kind and text of each cell."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def breaches(code: str, may_define: bool = False) -> Iterator[str]:
    """Return what in `code` a notebook may not do: define something, or reach behind the public API."""
    for node in ast.walk(ast.parse(code)):
        at = f"line {getattr(node, 'lineno', 0)}: "
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            if not may_define:
                yield f"{at}a definition belongs into a module"
        elif isinstance(node, ast.Import):
            yield from (f"{at}{alias.name} is not for notebooks" for alias in node.names if alias.name not in PUBLIC)
        elif isinstance(node, ast.ImportFrom) and node.module not in PUBLIC:
            yield f"{at}{node.module} is not for notebooks"
        elif isinstance(node, ast.ImportFrom):
            module = import_module(node.module)
            offered = [*public(module), *(name for name in vars(module) if name.isupper())]
            for name in [alias.name for alias in node.names]:
                if name.startswith("_") or (node.module in MODULES and name not in offered):
                    yield f"{at}{node.module} does not offer {name}"
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            yield f"{at}{node.attr} is private"


def test_there_are_notebooks() -> None:
    """The tests below would pass on nothing."""
    assert {source.stem for source in SOURCES} == SHOWS.keys()
    assert {path.stem for path in ROOT.glob("notebooks/*.ipynb")} == SHOWS.keys()


@each_notebook
def test_the_pair_is_in_step_and_has_no_outputs(source: Path) -> None:
    """A user who opens the notebook would see other cells than those that are tested, or results of another day."""
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
    assert list(breaches(source.read_text(encoding="utf-8"), source.stem in DEFINES)) == []


def test_each_leads_on_to_the_next() -> None:
    """A reader would be left at the end of a notebook, or led to a file that there is not."""
    for source, following in itertools.pairwise(SOURCES):
        assert f"]({following.stem}.ipynb)" in source.read_text(encoding="utf-8"), source.stem
    for source in SOURCES:
        links = re.findall(r"\]\(([\w./-]+)\)", source.read_text(encoding="utf-8"))
        assert [link for link in links if not (source.parent / link).is_file()] == []


def test_the_verbs_of_the_journal_are_those_that_there_are() -> None:
    """A reader would look for `hold` and `>release` in a journal that says `buffer` and `>drain`."""
    (row,) = re.findall(
        r"^\| buffer, drain \|.*\| ([^|]+) \|$", (ROOT / "GLOSSARY.md").read_text("utf-8"), re.MULTILINE
    )
    unsaid = set(row.split(", "))
    for source in SOURCES:
        marked = set(re.findall(r"`(>?\w+)`", source.read_text(encoding="utf-8")))
        assert {word for word in marked if word[0] == ">"} <= MOVES.keys(), source.stem
        assert not marked & unsaid, source.stem


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        ("def f():\n    return 1", "line 1: a definition belongs into a module"),
        ("import pandas\nclass A: ...", "line 2: a definition belongs into a module"),
        ("from barrierlab.impl.reasons import Reason", "line 1: barrierlab.impl.reasons is not for notebooks"),
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


def in_less_time(notebook: Any, path: Path) -> None:
    """Let the notebook run its sweep for a third of the time, on one process: the same runs, tables and pictures."""
    shipped = (ROOT / "sim/scenarios/sweeps/aligned_in_small.toml").read_text(encoding="utf-8")
    assert "until_s = 10.0" in shipped
    path.write_text(shipped.replace("until_s = 10.0", "until_s = 4.0, warmup_s = 1.0"), encoding="utf-8")
    for cell in notebook.cells:
        cell.source = cell.source.replace(
            'run_sweep("aligned_in_small", f"{directory}/sweep")',
            f'run_sweep("{path}", f"{{directory}}/sweep", "processes[1]")',
        )


async def looked_for(channel: Any, timeout: float | None = None) -> Any:
    """Return the next message of a kernel, for `AsyncZMQSocketChannel.get_msg`: the wake-up of one that comes while
    another is sent is lost (jupyter/nbclient#312), and a widget's cell then waits until its time limit.
    """
    end_s = math.inf if timeout is None else monotonic() + timeout
    while not await channel.socket.poll(1000 * max(0.0, min(1.0, end_s - monotonic()))):
        if monotonic() >= end_s:
            raise queue.Empty
    return await channel._recv()


@each_that_runs
def test_a_notebook_runs_and_shows_what_it_says(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader would get an error, a warning, an empty place where a picture should be, or another result."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))  # nothing of the user's: our own kernel, no settings
    monkeypatch.delenv("JUPYTER_PATH", raising=False)
    import jupytext
    from jupyter_client.channels import AsyncZMQSocketChannel
    from nbclient import NotebookClient

    monkeypatch.setattr(AsyncZMQSocketChannel, "get_msg", looked_for)
    notebook = jupytext.read(source)
    if not breadth.is_whole:
        in_less_time(notebook, tmp_path / "short.toml")
    work = tmp_path / "work"
    work.mkdir()
    before = os.times()
    resources = {"metadata": {"path": str(work)}}
    NotebookClient(notebook, kernel_name="python3", timeout=10 * MOST_S, resources=resources).execute()
    after = os.times()

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output for output in outputs if output.output_type == "error"] == []
    assert [each.text for each in outputs if each.output_type == "stream" and not SAYS.fullmatch(each.text)] == []
    shown = [output.data for output in outputs if "data" in output]
    wanted = SHOWS[source.stem]
    assert sum("image/png" in data or "<svg" in data.get("text/html", "") for data in shown) == wanted.pictures
    assert sum("application/vnd.jupyter.widget-view+json" in data for data in shown) == wanted.widgets
    assert [data["text/plain"] for data in shown if "Figure" in data["text/plain"] and "image/png" not in data] == []
    kinds = ("text/html", "text/markdown", "text/plain")
    shown_text = [next(data[kind] for kind in kinds if kind in data) for data in shown]
    text = html.unescape(re.sub(r"<[^>]+>", " ", "\n".join(shown_text)))
    assert [each for each in wanted.texts if each not in text] == []
    assert ("broken" in text) == wanted.is_broken
    assert re.findall(r">[^<]*\.\.\.</td>|>nan</td>|>NaN</td>", "\n".join(shown_text)) == [], "cut off, or no number"
    assert list(work.iterdir()) == []
    used_s = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    assert 0 < used_s < MOST_S, used_s
