"""Line-wise edits of a module: each plants one small mistake of meaning, by a fixed operator on its syntax tree.

Not edited is what `check` is not there to judge: texts, annotations, defaults, assertions, what only refuses a wrong
call (`raise`, the condition that leads to nothing else, `__post_init__`, the `strict` of a `zip`), and what only tells
(`__str__`, `metrics`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_PAIRS = (("min", "max"), ("any", "all"), ("append", "appendleft"), ("popleft", "pop"), ("add", "discard"))
_CALLED = {name: other for pair in _PAIRS for name, other in (pair, pair[::-1])}
_NOT_EDITED = ("__repr__", "__str__", "__post_init__", "metrics")
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Continue, ast.Break, ast.Return)


@dataclass(frozen=True)
class Edit:
    """One planted mistake.

    Attributes
    ----------
    line, last_line : int
        Of the statement that it is in, without the statements below that. From 1 on.
    function : str
        Where it is: `Class.method`; empty at the level of the module.
    text : str
        The first line of the place itself, as it is now.
    what : str
        The operator, and what becomes of what.
    source : str
        The module with the mistake.
    in_function : bool
        Whether it shows only where its statement is reached; else as soon as the module is imported.
    """

    line: int
    last_line: int
    function: str
    text: str
    what: str
    source: str
    in_function: bool = True


def edits(source: str) -> list[Edit]:
    """All edits of a module, in the order of their places."""
    places = _Places(source)
    return list(places.in_block(places.tree.body, ""))


class _Places:
    """The places of a module at which something can be edited."""

    def __init__(self, source: str) -> None:
        self.source, self.tree = source.encode(), ast.parse(source)
        self.lines = source.splitlines()
        starts = [0]
        for line in self.source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self.starts = starts

    def in_block(self, block: Sequence[ast.stmt], function: str, in_function: bool = False) -> Iterator[Edit]:
        """Those in a block of statements, and in the blocks below it."""
        for at, statement in enumerate(block):
            if isinstance(statement, ast.ClassDef | ast.FunctionDef):
                if statement.name not in _NOT_EDITED:
                    name = f"{function}.{statement.name}".lstrip(".")
                    yield from self.in_block(statement.body, name, isinstance(statement, ast.FunctionDef))
                continue
            if isinstance(statement, ast.Assert | ast.Raise):
                continue
            if in_function:
                yield from self._statement(statement, block[at + 1] if at + 1 < len(block) else None, function)
                yield from self._expressions(statement, function)
            elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                for edit in self._expressions(statement, function):
                    yield replace(edit, in_function=False)
            for name in ("body", "orelse", "finalbody"):
                yield from self.in_block(getattr(statement, name, ()), function, in_function)
            for handler in getattr(statement, "handlers", ()):
                yield from self.in_block(handler.body, function, in_function)
            for case in getattr(statement, "cases", ()):
                yield from self.in_block(case.body, function, in_function)

    def _statement(self, statement: ast.stmt, following: ast.stmt | None, function: str) -> Iterator[Edit]:
        """Dropped; or done after the effect that follows it."""
        if not isinstance(statement, _SIMPLE) or _is_text(statement):
            return
        if not _is_needed(statement):
            yield self._edit(statement, statement, "pass", "dropped", function)
        if following is not None and _is_effect(statement) and _is_effect(following):
            first, second = self._text(statement), self._text(following)
            between = self.source[self._end(statement) : self._start(following)].decode()
            start, end = self._start(statement), self._end(following)
            made = self.source[:start] + f"{second}{between}{first}".encode() + self.source[end:]
            what = f"swapped: {_line(first)} and {_line(second)}"
            line, text = statement.lineno, self.lines[statement.lineno - 1].strip()
            yield Edit(line, following.end_lineno or line, function, text, what, made.decode())

    def _expressions(self, statement: ast.stmt, function: str) -> Iterator[Edit]:
        """Return what can become another of the expressions of a statement, those of the statements in it aside."""
        if _is_text(statement) or _only_refuses(statement):
            return
        waiting = [each for each in ast.iter_child_nodes(statement) if not isinstance(each, _BLOCKS)]
        if isinstance(statement, ast.AnnAssign):
            waiting = [statement.value] if statement.value is not None else []
        if isinstance(statement, ast.If | ast.While):
            yield from self._negated(statement, statement.test, function)
        if isinstance(statement, ast.AugAssign) and type(statement.op) in _COMPUTED:
            other = deepcopy(statement)
            other.op = _COMPUTED[type(statement.op)]()
            yield self._edit(statement, statement, ast.unparse(other), "computed", function)
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.JoinedStr):  # its parts have no places of their own
                continue
            if isinstance(node, ast.IfExp):
                yield from self._negated(statement, node.test, function)
            if isinstance(node, ast.comprehension):
                for test in node.ifs:
                    yield from self._negated(statement, test, function)
            if isinstance(node, ast.expr):
                for new, operator in _replaced(node):
                    yield self._edit(statement, node, new, operator, function)
            below = ast.iter_child_nodes(node)
            waiting += [each for each in below if not isinstance(each, _BLOCKS) and not _is_strict(each)]

    def _negated(self, statement: ast.stmt, test: ast.expr, function: str) -> Iterator[Edit]:
        if isinstance(test, ast.Compare) and not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            return  # that is what another comparison comes to
        new = test.operand if isinstance(test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), test)
        yield self._edit(statement, test, f"({ast.unparse(new)})", "negated", function)

    def _edit(self, statement: ast.stmt, node: ast.stmt | ast.expr, new: str, operator: str, function: str) -> Edit:
        start, end = self._start(node), self._end(node)
        made = self.source[:start] + new.encode() + self.source[end:]
        what = f"{operator}: {_line(self._text(node))} -> {_line(new)}"
        last = _last_line(statement)
        return Edit(statement.lineno, last, function, self.lines[node.lineno - 1].strip(), what, made.decode())

    def _start(self, node: ast.stmt | ast.expr) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.stmt | ast.expr) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.stmt | ast.expr) -> str:
        return self.source[self._start(node) : self._end(node)].decode()


_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def _replaced(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Return what an expression can become, and by which operator."""
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            other = deepcopy(node)
            other.ops[at] = _COMPARED[type(op)]()
            yield f"({ast.unparse(other)})", "compared"
    elif isinstance(node, ast.BoolOp):
        swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"({ast.unparse(ast.BoolOp(swapped, node.values))})", "and for or"
        for at in range(len(node.values)):
            left = node.values[:at] + node.values[at + 1 :]
            made = left[0] if len(left) == 1 else ast.BoolOp(node.op, left)
            yield f"({ast.unparse(made)})", "without a condition"
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
        yield f"({ast.unparse(ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right))})", "computed"
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield str(not node.value), "constant"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield str(node.value + 1), "constant"
    elif isinstance(node, ast.Name) and node.id in _CALLED and isinstance(node.ctx, ast.Load):
        yield _CALLED[node.id], "called"
    elif isinstance(node, ast.Attribute) and node.attr in _CALLED:
        yield f"{ast.unparse(node.value)}.{_CALLED[node.attr]}", "called"


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_needed(statement: ast.stmt) -> bool:
    """Return whether a function without it does not do something else, but raises: it returns a value, or names one."""
    if isinstance(statement, ast.Return):
        return statement.value is not None
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return not isinstance(statement, ast.AugAssign) and any(
        isinstance(target, ast.Name | ast.Tuple) for target in targets
    )


def _is_effect(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _only_refuses(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], ast.Raise)


def _is_strict(node: ast.AST) -> bool:
    """Return whether it is the `strict` of a `zip`, which only refuses what differs in length."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _last_line(statement: ast.stmt) -> int:
    """The last line of a statement, without the statements in it."""
    below = [each.lineno - 1 for each in ast.iter_child_nodes(statement) if isinstance(each, _BLOCKS[:2])]
    if isinstance(statement, ast.Match):
        below = [statement.subject.end_lineno or statement.lineno]
    return max(statement.lineno, min(below, default=statement.end_lineno or statement.lineno))


def _line(text: str) -> str:
    return " ".join(text.split())
