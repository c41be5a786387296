"""Whatever a class of another module changes or reads of a class is public: a private name belongs to its module."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.syntax import nodes_of

ROOT = Path(__file__).parents[2]


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
            if isinstance(each, ast.Attribute) and is_private(each.attr) and is_itself(each.value):
                self.used.add(each.attr)
                if isinstance(each.ctx, ast.Store):
                    self.fields.add(each.attr)


def is_itself(node: ast.expr) -> bool:
    """Return whether an expression is the object or class whose method it stands in."""
    match node:
        case ast.Name(id="self" | "cls") | ast.Call(func=ast.Name(id="super"), args=[], keywords=[]):
            return True
    return False


def is_private(name: str) -> bool:
    """Return whether a name has one underscore in front."""
    return name.startswith("_") and not name.startswith("__")


def findings(modules: Mapping[str, str]) -> Iterator[str]:
    """Yield where a class overrides or uses what is private in another module."""
    classes = [
        Class(module, node)
        for module, text in modules.items()
        for node in nodes_of(text)
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
                yield f"{each.module}: {each.name} {kind} {of.name}.{name}"


def test_no_class_reaches_into_another_module() -> None:
    """A repair inside one machine would change another, or make a defect of the catalogue a different one."""
    assert list(findings(sources())) == []


def test_what_reaches_is_found() -> None:
    """The test above would be silent whatever there is."""
    modules = {
        "a.py": "class A:\n  def __init__(self): self._x = self._own = 1\n  def _m(self): self._own",
        "b.py": "class B(A):\n  def _m(self): super()._m(); self._x; self._mine\n  def f(self): self._mine = self._m()",
        "c.py": "class C(B): f = 1",
    }
    assert list(findings(modules)) == ["b.py: B overrides A._m", "b.py: B uses A._x"]


def orphans(modules: Mapping[str, str], machines: set[str]) -> Iterator[str]:
    """The private methods of classes below a machine that no class above has, and that they do not call."""
    nodes = {
        node.name: (module, node)
        for module, text in modules.items()
        for node in nodes_of(text)
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
    machines = {
        "BarrierAligner",
        "CheckpointBarrierInjector",
        "CheckpointCoordinator",
        "ControlProcessor",
        "ControlSourceProcessor",
        "CountingAligner",
        "DirectoryMedium",
        "Gate",
        "IdentityAligner",
        "JoinBarrier",
        "JoinStage",
        "Outlets",
        "SnapshotStore",
        "Task",
    }
    assert list(orphans({**sources(), **tests}, machines)) == []


def test_an_override_of_a_method_that_is_gone_is_found() -> None:
    """The test above would be silent whatever there is."""
    modules = {
        "impl/a.py": "class A:\n  def _m(self): ...",
        "b.py": "class B(A):\n  def _m(self): self._own()\n  def _own(self): ...\n  def _gone(self): ...",
    }
    assert list(orphans(modules, {"A"})) == ["b.py: B._gone"]
