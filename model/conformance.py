"""A test suite for an aligner of one's own: a case for each small scope, to be run by whatever runs tests.

It needs no test framework. With pytest one file is enough::

    import pytest

    from model.conformance import cases
    from my_package.my_module import MyAligner

    @pytest.mark.parametrize("case", cases(MyAligner), ids=str)
    def test_my_aligner(case):
        case.check()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from model.check import Outcome, Scope, Violation
from model.explore import HOLDS
from model.foreign import PROTOCOLS, ForeignError, goes_unaligned, parts_of
from model.gate_scopes import SCOPES as GATES
from model.parts import Parts
from model.scopes import SCOPES
from model.topology import suggestion


@dataclass(frozen=True, repr=False)
class Case:
    """One scope in which an aligner is checked.

    Attributes
    ----------
    kind : type
        The aligner.
    scope : Scope
    """

    kind: type
    scope: Scope

    def __str__(self) -> str:
        """What is checked, in words."""
        return self.scope.name

    def __repr__(self) -> str:
        return f"<{self.kind.__name__}: {self.scope.name}>"

    def check(self, seconds: float | None = None) -> None:
        """Explore the scope, for so long at most.

        Raises
        ------
        AssertionError
            If something is broken: what, why, and a shortest run that comes to it. If the exploration did not end.
            If the class cannot stand in at all: in one line, what it lacks.
        """
        __tracebackhide__ = True  # pytest shows the test that failed, and not this
        try:
            outcome = self.scope.check(_parts(self.kind, self.scope.protocol), seconds)
        except ForeignError as error:
            raise AssertionError(str(error)) from None
        if outcome.verdict != HOLDS:
            raise AssertionError(report(outcome))


def cases(kind: type, scope: str = "tiny") -> list[Case]:
    """Every case for an aligner: aligned, and if it goes unaligned, in every other mode.

    Parameters
    ----------
    kind : type
        As `model.foreign.Aligner` and `model.foreign.UnalignedAligner` say.
    scope : str, optional
        ``tiny`` takes seconds, ``small`` minutes, ``full`` hours.

    Raises
    ------
    ValueError
        If there is no such scope.
    """
    if scope not in SCOPES:
        raise ValueError(f"there is no scope {scope!r}; {suggestion(scope, list(SCOPES))}")
    protocols = PROTOCOLS if goes_unaligned(kind) else PROTOCOLS[:1]
    return [
        Case(kind, each)
        for source in SOURCES
        for protocol in protocols
        for each in source(scope)
        if each.protocol == protocol
    ]


def report(outcome: Outcome) -> str:
    """What came out, for a reader: what is broken and why, and the run; of several, one after the other."""
    if not outcome.violations:
        return f"{outcome.name}: {outcome.verdict}: {outcome.why}"
    return "\n\n".join(_told(violation) for violation in outcome.violations)


def _told(violation: Violation) -> str:
    moves = f"{violation.steps} move{'s' * (violation.steps != 1)}"
    line = f"{violation.invariant} is broken after {moves}: {violation.reason} ({violation.scope})"
    return f"{line}\n\n{violation.trace}".rstrip("\n")


@cache
def _parts(kind: type, protocol: str) -> Parts:
    """The class is looked at once."""
    return parts_of(kind, protocol)


# Where cases come from.


def _worlds(scope: str) -> Iterable[Scope]:
    """Whole dataflows, and the kept stories of them."""
    return (each for each in SCOPES[scope]() if each not in GATES)


def _gates(scope: str) -> Iterable[Scope]:
    """One gate alone, compared with the table of its protocol: those of the scope, and all that do not take long."""
    inside = list(SCOPES[scope]())
    return (each for each in GATES if each in inside or not each.slow)


SOURCES: tuple[Callable[[str], Iterable[Scope]], ...] = (_gates, _worlds)
"""All of them."""
