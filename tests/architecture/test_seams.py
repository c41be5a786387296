"""Whatever a class of another module changes or reads of a class is public: a private name belongs to its module."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]

REMAINING: dict[str, tuple[int, int, str]] = {
    "impl/control/sender.py": (1, 11, "the head and the processor are one machine in three files"),
    "impl/control/aligner.py": (1, 1, "its defects"),
    "impl/control/head.py": (0, 1, "its defect of two heads"),
    "impl/control/processor.py": (2, 0, "its defects"),
    "impl/join/barrier.py": (
        20,
        23,
        "a form with blanks, which three kinds and their defects fill in",
    ),
    "impl/join/late_join.py": (0, 1, "its defect"),
    "impl/join/sequence.py": (2, 0, "its defects"),
    "impl/join/stage.py": (1, 1, "its defects"),
    "impl/join/timestamp.py": (3, 0, "its defects"),
    "impl/storage/store.py": (2, 1, "a store with a full disk fails inside one step of another"),
    "model/storage/world.py": (4, 3, "the world of an external store differs in what it calls, not in what it asks"),
    "sim/scenario/load.py": (0, 14, "one reader in three files, by wing"),
}
"""By module whose private names others use: methods overridden, names used, and why that is kept."""


def sources() -> dict[str, str]:
    """The text of each module, by its place."""
    paths = (path for floor in ("impl", "model", "sim") for path in sorted((ROOT / floor).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


class Class:
    """A class of a module: its bases by name, and its private methods, fields, and what it uses of itself."""

    def __init__(self, module: str, node: ast.ClassDef) -> None:
        self.module, self.name = module, node.name
        heads = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
        self.bases = [ast.unparse(head).rpartition(".")[2] for head in heads]
        self.methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef) and is_private(each.name)}
        self.fields: set[str] = set()
        self.used: set[str] = set()
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and is_private(each.attr) and ast.unparse(each.value) in OF_ITSELF:
                self.used.add(each.attr)
                if isinstance(each.ctx, ast.Store):
                    self.fields.add(each.attr)


OF_ITSELF = {"self", "cls", "super()"}


def is_private(name: str) -> bool:
    """Return whether a name has one underscore in front."""
    return name.startswith("_") and not name.startswith("__")


def findings(modules: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield of what a class overrides or uses elsewhere: the other module, `overrides` or `uses`, and where."""
    classes = [
        Class(module, node)
        for module, text in modules.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    ]
    by_name = {each.name: each for each in classes}

    def above(each: Class, seen: frozenset[str] = frozenset()) -> Iterator[Class]:
        for name in each.bases:
            if name in by_name and name not in seen and by_name[name] is not each:
                yield by_name[name]
                yield from above(by_name[name], seen | {name})

    for each in classes:
        own = each.methods | {name for name in each.fields if not any(name in base.fields for base in above(each))}
        for name in sorted(each.methods | each.used):
            of = next((base for base in above(each) if name in base.methods | base.fields), None)
            if of is None or of.module == each.module:
                continue
            kind = "overrides" if name in each.methods else "uses" if name not in own else None
            if kind is not None:
                yield of.module, kind, f"{each.module}: {each.name} {kind} {of.name}.{name}"


def counted(found: list[tuple[str, str, str]]) -> dict[str, tuple[int, int]]:
    """By module, how many of its private methods are overridden, and how many of its private names are used."""
    counts = Counter((module, kind) for module, kind, _ in found)
    return {module: (counts[module, "overrides"], counts[module, "uses"]) for module, _ in counts}


def test_no_class_reaches_into_another_module() -> None:
    """A repair inside one machine would change another, or make a defect of the catalogue a different one."""
    found = list(findings(sources()))
    assert [where for module, _, where in found if module not in REMAINING] == []
    remaining = {module: (overridden, used) for module, (overridden, used, _) in REMAINING.items()}
    assert counted(found) == remaining


def test_what_reaches_is_found() -> None:
    """The test above would be silent whatever there is."""
    modules = {
        "a.py": "class A:\n  def __init__(self): self._x = self._own = 1\n  def _m(self): self._own",
        "b.py": "class B(A):\n  def _m(self): super()._m(); self._x; self._mine\n  def f(self): self._mine = self._m()",
        "c.py": "class C(B): f = 1",
    }
    assert [where for *_, where in findings(modules)] == ["b.py: B overrides A._m", "b.py: B uses A._x"]


def orphans(modules: Mapping[str, str], machines: set[str]) -> Iterator[str]:
    """The private methods of classes below a machine that no class above has, and that they do not call."""
    nodes = {
        node.name: (module, node)
        for module, text in modules.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }
    classes = {name: Class(module, node) for name, (module, node) in nodes.items()}

    def above(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
        bases = {base for base in classes[name].bases if base in classes and base not in seen and base != name}
        return bases.union(*(above(base, seen | bases) for base in bases))

    for name, each in classes.items():
        if each.module.startswith("impl/") or not (ancestors := above(name)) & machines:
            continue
        known = each.used.union(*(classes[base].methods for base in ancestors))
        yield from (f"{each.module}: {name}.{method}" for method in sorted(each.methods - known))


def test_no_override_is_of_a_method_that_is_gone() -> None:
    """A defect or a planted mistake would be the sound machine, once its hook has another name."""
    tests = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    machines = {"BarrierAligner", "CheckpointBarrierInjector", "CheckpointCoordinator", "Gate", "Task"}
    assert list(orphans({**sources(), **tests}, machines)) == []


def test_an_override_of_a_method_that_is_gone_is_found() -> None:
    """The test above would be silent whatever there is."""
    modules = {
        "impl/a.py": "class A:\n  def _m(self): ...",
        "b.py": "class B(A):\n  def _m(self): self._own()\n  def _own(self): ...\n  def _gone(self): ...",
    }
    assert list(orphans(modules, {"A"})) == ["b.py: B._gone"]
