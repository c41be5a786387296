"""A test suite for an external aligner: a case for each small scope, to be run by whatever runs tests.

It needs no test framework; a case that is not asked raises `unittest.SkipTest`, which the frameworks know. With pytest
one file is enough::

    import pytest

    from barrierlab.model.suites.conformance import cases
    from my_package.my_module import MyAligner

    @pytest.mark.parametrize("case", cases(MyAligner), ids=str)
    def test_my_aligner(case):
        case.check()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from unittest import SkipTest

from barrierlab.model.checkpoint.asked import JUDGES, divided
from barrierlab.model.checkpoint.capabilities import READS_ON
from barrierlab.model.checkpoint.check import Outcome, Scope, ScopeViolation
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.external import PROTOCOLS, capabilities_of, parts_of
from barrierlab.model.checkpoint.gate_scopes import SCOPES as GATES
from barrierlab.model.checkpoint.hosting import ExternalError
from barrierlab.model.checkpoint.protocols import protocol_of
from barrierlab.model.explore.checker import HOLDS
from barrierlab.model.spec.topology import suggestion
from barrierlab.model.suites.standard import SCOPES


@dataclass(frozen=True, repr=False)
class ConformanceCase:
    """One scope in which an aligner is checked.

    Attributes
    ----------
    kind : type
        The aligner.
    scope : Scope
    not_asked : str
        Why the scope is not asked of this aligner; empty if it is.
    """

    kind: type
    scope: Scope
    not_asked: str = ""

    def __str__(self) -> str:
        """Return what is checked, in words."""
        return self.scope.name

    def __repr__(self) -> str:
        return f"<{self.kind.__name__}: {self.scope.name}>"

    def check(self, seconds: float | None = None) -> None:
        """Explore the scope, for so long at most.

        Raises
        ------
        unittest.SkipTest
            If the scope is not asked.
        AssertionError
            If something is broken: what, why, and a shortest run that comes to it. If the exploration did not end.
            If the class cannot stand in at all: in one line, what it lacks.
        """
        __tracebackhide__ = True  # pytest shows the test that failed, and not this
        if self.not_asked:
            raise SkipTest(self.not_asked)
        try:
            outcome = self.scope.check(_components(self.kind, self.scope.protocol), seconds)
        except ExternalError as error:
            raise AssertionError(str(error)) from None
        if outcome.verdict != HOLDS:
            raise AssertionError(report(outcome))


def cases(kind: type, scope: str = "tiny", judge: str = JUDGES[0]) -> list[ConformanceCase]:
    """Return every case for an aligner: aligned, and in every other mode if it goes unaligned.

    A case that needs what the class does not declare (`model.checkpoint.capabilities`) is among them, to be skipped.

    Parameters
    ----------
    kind : type
        As `model.checkpoint.external.Aligner` and `model.checkpoint.external.UnalignedAligner` say.
    scope : str, optional
        ``tiny`` takes seconds, ``small`` minutes, ``full`` hours.
    judge : str, optional
        ``dataflows`` asks the invariants of whole dataflows; ``table`` also whether each gate does what the table of
        its protocol says (`model.checkpoint.asked`).

    Raises
    ------
    ValueError
        If there is no such scope or judge.
    """
    if scope not in SCOPES:
        raise ValueError(f"there is no scope {scope!r}; {suggestion(scope, list(SCOPES))}")
    capabilities = capabilities_of(kind)
    protocols = [name for name in PROTOCOLS if capabilities.unaligned or not protocol_of(name).goes_unaligned]
    scopes: list[Scope] = [
        each for source in SOURCES for protocol in protocols for each in source(scope) if each.protocol == protocol
    ]
    asked, others = divided(scopes, capabilities, judge)
    why = {each.name: each.why for each in others}
    judged = {each.name for each in asked} | set(why)
    return [ConformanceCase(kind, each, why.get(each.name, "")) for each in scopes if each.name in judged]


def outcomes(kind: type, scope: str = "tiny", judge: str = JUDGES[0]) -> list[Outcome]:
    """Return what each case that is asked comes to, for a notebook: verdict, states, and the shortest runs.

    Parameters
    ----------
    kind, scope, judge
        As of `cases`.

    Raises
    ------
    ValueError
        If there is no such scope or judge, or the class cannot stand in.
    """
    asked = (case for case in cases(kind, scope, judge) if not case.not_asked)
    return [case.scope.check(_components(kind, case.scope.protocol), None) for case in asked]


def report(outcome: Outcome) -> str:
    """Return what came out, for a reader: what is broken and why, and the run; of several, one after the other."""
    if not outcome.violations:
        return f"{outcome.name}: {outcome.verdict}: {outcome.why}"
    return "\n\n".join(_text_of(violation) for violation in outcome.violations)


def _text_of(violation: ScopeViolation) -> str:
    moves = f"{violation.steps} move{'s' * (violation.steps != 1)}"
    line = f"{violation.invariant} is broken after {moves}: {violation.reason} ({violation.scope})"
    hint = f"\n\nhint: {READS_ON}" if violation.reads_on else ""
    return f"{line}{hint}\n\n{violation.trace}".rstrip("\n")


@cache
def _components(kind: type, protocol: str) -> Components:
    """Return the components of a class, which is looked at once."""
    return parts_of(kind, protocol)


# Where cases come from.


def _worlds(scope: str) -> Iterable[Scope]:
    """Return whole dataflows, and their kept scripted cases."""
    return (each for each in SCOPES[scope]() if each not in GATES)


def _gates(scope: str) -> Iterable[Scope]:
    """Return scopes of one gate alone, compared with the table of its protocol: those of the scope, and all short
    ones.
    """
    inside = list(SCOPES[scope]())
    return (each for each in GATES if each in inside or not each.slow)


SOURCES: tuple[Callable[[str], Iterable[Scope]], ...] = (_gates, _worlds)
"""All of them."""
