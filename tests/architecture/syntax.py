"""The syntax of a module, parsed once for all tests that read the code."""

from __future__ import annotations

import ast
from functools import cache


@cache
def tree_of(text: str) -> ast.Module:
    """The tree of a module's text; nobody changes it."""
    return ast.parse(text)


@cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """Every node of a module's text."""
    return tuple(ast.walk(tree_of(text)))
