"""The tests that take longest, which `make check` leaves to `make test`.

`python -m tests.longest` measures each quick test in turn and writes `longest.txt` anew, in some ten minutes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

NAMES = Path(__file__).with_name("longest.txt")
LEAST_S = 0.4
"""A test is named if one of its rows takes so many seconds of CPU time or more, with the processes that it starts."""


def function_of(nodeid: str) -> str:
    """Return the name of a test without its row.

    >>> function_of("tests/model/test_world.py::test_a_run[aligned]")
    'tests/model/test_world.py::test_a_run'
    """
    return nodeid.partition("[")[0]


def names() -> frozenset[str]:
    """Return the names in `longest.txt`."""
    return frozenset(NAMES.read_text(encoding="utf-8").splitlines())


class Measuring:
    """Notes which tests take long."""

    def __init__(self) -> None:
        self.long: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Read the CPU time before and behind a test."""
        begun = sum(os.times()[:4])
        ran = yield
        if sum(os.times()[:4]) - begun >= LEAST_S:
            self.long.add(function_of(item.nodeid))
        return ran


def main() -> int:
    """Run all quick tests that need no Spark in this process; exit status 1, and nothing written, if one fails."""
    measuring = Measuring()
    status = pytest.main(["-q", "-p", "no:xdist", "-m", "not slow and not spark"], plugins=[measuring])
    if status == pytest.ExitCode.OK:
        NAMES.write_text("".join(f"{name}\n" for name in sorted(measuring.long)), encoding="utf-8")
        print(f"{len(measuring.long)} tests are named in {NAMES}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
