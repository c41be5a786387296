"""No module imports itself on a detour, and what is measured decides nothing.

Imports inside functions and for types alone count as well: a circle that only a late import opens is one still, for
whoever reads, tests or replaces one of its modules. What does not count is that Python loads a package before its
modules: a package may offer what they define.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import barrierlab.sim.checkpoint.engine
from barrierlab.sim import load, run
from tests.architecture.syntax import nodes_of

ROOT = Path(__file__).parents[2]
TOP = "barrierlab"


@cache
def sources() -> dict[str, str]:
    """The text of each module, by its full name."""
    paths = [path for floor in ("impl", "model", "sim") for path in sorted((ROOT / floor).rglob("*.py"))]
    names = [".".join((TOP, *path.relative_to(ROOT).with_suffix("").parts)) for path in paths]
    return {
        name.removesuffix(".__init__"): path.read_text(encoding="utf-8")
        for name, path in zip(names, paths, strict=True)
    }


@cache
def imports(source: str) -> list[tuple[str, int]]:
    """Whatever a module imports, wherever it does, each by its full name and with the line."""
    found = []
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
        elif isinstance(node, ast.Call) and called(node.func).endswith("import_module"):
            found += [(arg.value, node.lineno) for arg in node.args[:1] if isinstance(arg, ast.Constant)]
    return found


def called(node: ast.expr) -> str:
    """The last name of what is called, if it has one."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def circles(modules: Mapping[str, str]) -> list[str]:
    """Of each set of modules that import one another, one shortest circle, with the lines."""
    lines: dict[tuple[str, str], int] = {}
    for name in modules:
        for other, line in imports(modules[name]):
            while other and other not in modules:  # a name in a module, or of another project
                other = other.rpartition(".")[0]
            if other and other != name:
                lines.setdefault((name, other), line)
    graph = nx.DiGraph(sorted(lines))
    found = []
    for tangle in sorted(sorted(each) for each in nx.strongly_connected_components(graph) if len(each) > 1):
        inner = graph.subgraph(tangle)
        way = min(([a, *nx.shortest_path(inner, b, a)] for a, b in sorted(inner.edges)), key=len)
        found.append(way[0] + "".join(f" -> {b} (line {lines[a, b]})" for a, b in itertools.pairwise(way)))
    return found


def test_no_module_imports_itself_on_a_detour() -> None:
    """Neither of two modules could be read, tested or replaced without the other."""
    modules = sources()
    assert f"{TOP}.impl.checkpoint.task" in modules
    assert circles(modules) == []


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("from barrierlab.sim.checkpoint.engine import Engine\n", 1),
        ("import barrierlab.sim.checkpoint.engine\n", 1),
        ("if TYPE_CHECKING:\n    from barrierlab.sim.checkpoint import engine\n", 2),
        ("def late():\n    from barrierlab.sim.checkpoint.engine import Engine\n", 2),
        ("import_module('barrierlab.sim.checkpoint.engine')\n", 1),
    ],
)
def test_a_planted_circle_is_found(line: str, place: int) -> None:
    """An import for types alone, or inside a function, would hide a circle from the test above."""
    modules = dict(sources())
    modules[f"{TOP}.sim.checkpoint.tasks"] = line + modules[f"{TOP}.sim.checkpoint.tasks"]
    (found,) = circles(modules)
    ends = [f"{TOP}.sim.checkpoint.{name}" for name in ("engine", "tasks")]
    assert all(end in found for end in ends)
    assert f"{ends[0]} (line {place})" in found


def test_a_circle_of_three_is_told_by_its_lines() -> None:
    """A finding would name a tangle, and not where to open it."""
    modules = {"a": "import b", "b": "\nfrom c import x", "c": "import os\nfrom a import y", "d": "import a"}
    assert circles(modules) == ["a -> b (line 1) -> c (line 2) -> a (line 2)"]


# What takes part in a run: it may tell the metrics something, in a statement of its own.
PROTOCOL = (
    *(f"sim/channels/{name}.py" for name in ("spsc", "network", "input_gate")),
    *(f"sim/checkpoint/{name}.py" for name in ("tasks", "coordinator", "storage", "failover", "faults", "standstill")),
    *("sim/checkpoint/build.py", "sim/core/clock.py"),
)


def reads_of_metrics(source: str) -> list[int]:
    """The lines at which metrics are used otherwise than to be given something, or to be handed on as they are."""
    tree = ast.parse(source)
    said = [
        node.value.func for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ]
    told = {id(called.value) for called in said if isinstance(called, ast.Attribute)}
    handed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            handed |= {id(value) for value in values}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
        and (node.attr if isinstance(node, ast.Attribute) else node.id).lstrip("_") == "metrics"
        and isinstance(node.ctx, ast.Load)
        and id(node) not in told | handed
    ]


@pytest.mark.parametrize("path", PROTOCOL)
def test_what_takes_part_in_a_run_reads_no_metrics(path: str) -> None:
    """A measure that is changed, or left out, would change what happens."""
    assert reads_of_metrics((ROOT / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("self.metrics.barrier(task, 1)", []),
        ("self._metrics = metrics", []),
        ("x, self.y = 1, ports.metrics", []),
        ("size = self._metrics.sizes(report)", [1]),
        ("if self.engine.metrics.checkpoints[1].triggered_ns > now: pass", [1]),
        ("metrics = self.metrics\nlate = metrics.checkpoints", [2]),
        ("\nself.metrics.barrier(task, self.metrics.last)", [2]),
        ("self.metrics.checkpoints[1].commands_ns = 3", [1]),
    ],
)
def test_a_read_is_found(line: str, found: list[int]) -> None:
    """The test above would let everything pass."""
    assert reads_of_metrics(line) == found


class Deaf:
    """Metrics that hear nothing and know nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *told: None


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("crash_and_recover", {"recovery.read_bytes_per_s": 1e4}),
        ("store_outage", {}),
        ("diamond", {"protocol": "unaligned", "checkpoint.aligned_checkpoint_timeout_s": 0.001}),
    ],
)
def test_a_run_that_nobody_measures_is_the_same(
    name: str, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything that is measured would decide what happens."""
    settings = load(name, {"until_s": 20.0, **changes})
    heard = run(settings, seed=3)
    assert heard.checkpoints.shape[0] > 3
    monkeypatch.setattr(barrierlab.sim.checkpoint.engine, "Metrics", Deaf)
    engine = barrierlab.sim.checkpoint.engine.Engine(settings, 3)
    engine.run()
    assert engine.entries == heard.entries
