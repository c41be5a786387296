"""The plugin of pytest: `pytest --barrierlab-impl MODULE:CLASS` checks an external class, a test each scope.

pytest loads it in every project of an environment that has barrierlab, so it imports nothing more of barrierlab until
that option is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from barrierlab.model.checkpoint.check import Outcome
    from barrierlab.sim.check.runner import CheckPlan

NAME = "barrierlab"
"""Of the node above the tests: ``-k barrierlab`` selects them all."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup(NAME, "barrierlab: a test each scope in which an aligner of your own is checked")
    group.addoption(
        "--barrierlab-impl",
        metavar="MODULE:CLASS",
        action="append",
        default=[],
        help="check this class; repeatable, one of each role",
    )
    group.addoption("--barrierlab-scope", metavar="SCOPE", default="tiny", help="as --scope of barrierlab check; tiny")
    group.addoption("--barrierlab-judge", metavar="JUDGE", default="", help="as --judge of barrierlab check; dataflows")


@pytest.hookimpl(trylast=True)  # when the options of pytest-xdist are settled
def pytest_configure(config: pytest.Config) -> None:
    """End with status 2 where workers are to collect and cannot: pytest-xdist takes that for a test that failed, as a
    violation is one.
    """
    if config.getoption("barrierlab_impl") and config.getoption("tx", None) and not hasattr(config, "workerinput"):
        try:
            _planned(config)
        except ValueError as error:
            pytest.exit(f"barrierlab: {error}", returncode=2)


@pytest.hookimpl(tryfirst=True)  # so that -k and -m select among them
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the tests to those that were collected."""
    if config.getoption("barrierlab_impl"):
        items.extend(session.genitems(Scopes.from_parent(session, name=NAME, nodeid=NAME)))


def _planned(config: pytest.Config) -> CheckPlan:
    """Return the scopes that the options ask for."""
    from barrierlab.sim.check.runner import plan

    option = config.getoption
    return plan(option("barrierlab_scope"), (), ",".join(option("barrierlab_impl")), option("barrierlab_judge"))


class Scopes(pytest.Collector):
    """The scopes that a class is asked; those that it is not asked are skipped."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test each scope.

        Raises
        ------
        CollectError
            In one line, if the class cannot be checked so.
        """
        from barrierlab.sim.check.sarif import place_of

        try:
            chosen = _planned(self.config)
        except ValueError as error:  # of the class, the scope or the judge
            raise self.CollectError(f"barrierlab: {error}") from None
        place = place_of(chosen)
        at = (place.path, place.line - 1) if place is not None else (self.path, None)
        for name in chosen.names:
            yield ScopeTest.from_parent(self, name=name, chosen=chosen, at=at)
        for each in chosen.not_asked:
            yield ScopeTest.from_parent(self, name=each.name, chosen=chosen, at=at, not_asked=each.why)


class NotHeldError(Exception):
    """A scope is broken, or undecided."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.why)
        self.outcome = outcome


class ScopeTest(pytest.Item):
    """One scope, explored when the test is run."""

    def __init__(self, *, chosen: CheckPlan, at: tuple[Path, int | None], not_asked: str = "", **node: Any) -> None:
        super().__init__(**node)
        self._chosen, self._at, self._not_asked = chosen, at, not_asked

    def runtest(self) -> None:
        """Explore it.

        Raises
        ------
        NotHeldError
            If it does not hold.
        """
        from barrierlab.model.explore.checker import HOLDS
        from barrierlab.sim.check.runner import check_one

        if self._not_asked:
            pytest.skip(self._not_asked)
        outcome = check_one(self._chosen, self.name)
        if outcome.verdict != HOLDS:
            raise NotHeldError(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the run as `barrierlab check` prints it, and where its picture is.

        pytest's summary has one line of it: in CI pytest does not cut what it is given, and would print the run again.
        """
        if not isinstance(excinfo.value, NotHeldError):
            return super().repr_failure(excinfo, style)
        from barrierlab.sim.check.report import line_of, violations_of

        outcome = excinfo.value.outcome
        broken = violations_of([outcome])
        headlines = [line_of(each) for each in broken] or [f"{outcome.verdict}: {outcome.name}: {outcome.why}"]
        lines = [each.trace.rstrip("\n") or line_of(each) for each in broken] or headlines
        shown = excinfo.getrepr(style="value")
        (entry,) = shown.reprtraceback.reprentries
        entry.lines = "\n".join([*lines, *(f"written: {path}" for path in self._pictures(outcome))]).splitlines()
        if shown.reprcrash is not None:
            shown.reprcrash.message = headlines[0]
        return shown

    def _pictures(self, outcome: Outcome) -> list[Path]:
        """Write the run and its picture into pytest's cache, unless pytest runs without one."""
        from barrierlab.sim.check.report import save

        cache = getattr(self.config, "cache", None)
        if cache is None or not outcome.violations:
            return []
        identity = f"{self._chosen.implementation}\n{self.name}"
        folder = cache.mkdir(f"{NAME}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}")
        return save([outcome], folder, self._chosen)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the class statement, and the name of the scope."""
        return *self._at, self.name
