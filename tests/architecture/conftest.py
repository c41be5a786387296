"""The trees of all modules, kept while these tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.syntax import nodes_of, tree_of


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Forget the trees behind the last of these tests: they are some hundred MB."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        nodes_of.cache_clear()
        tree_of.cache_clear()
