"""The kept scripted cases as scopes of a single run: whether a machine tells each of them word for word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from time import monotonic

from barrierlab.model.checkpoint.check import NamedScope, Outcome, ScopeViolation
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.scripted import ScriptedCaseError, cases, mode_of, replay
from barrierlab.model.explore.checker import BROKEN, HOLDS

TELLS = "STORY"
"""The name of what is broken where a machine tells a scripted case otherwise."""


@dataclass(frozen=True, slots=True)
class ScriptedScope(NamedScope):
    """A scripted case to be replayed.

    Attributes
    ----------
    of : str
        Theme and name.
    protocol : str
    text : str
    """

    kind = " scripted case"
    of: str
    protocol: str
    text: str

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Make its moves, and compare what comes of them."""
        begun = monotonic()
        violations = tuple(self._departures(components))
        verdict, why = (BROKEN, violations[0].reason) if violations else (HOLDS, "it comes out word for word")
        moves = self.text.count("\n> ")
        return Outcome(self.name, self.protocol, verdict, why, moves + 1, moves, monotonic() - begun, violations)

    def _departures(self, components: Components) -> Iterator[ScopeViolation]:
        """Yield what is broken that the scripted case does not say; and the first line that comes out otherwise, if any
        does."""
        try:
            replayed, stopped = replay(self.text, components, self.of), ""
        except ScriptedCaseError as error:
            replayed, stopped = error.made, f"{error}"
        lines, found = self.text.split("\n"), replayed.split("\n")
        for line in found:
            if line.strip().startswith("! ") and line not in lines:  # below `stabilize`, it is indented
                invariant, _, why = line.strip().removeprefix("! ").partition(": ")
                yield ScopeViolation(invariant, self.name, _moves(found), why, replayed)
        # Of a run that stops, the lines are compared that there are; verdicts stand behind them.
        made = [line for line in found if not line.startswith("! ")] if stopped else found
        pairs = zip(lines, made, strict=False) if stopped else zip_longest(lines, made, fillvalue="")
        for number, (expected, line) in enumerate(pairs, 1):
            if expected != line:
                reason = f"line {number}: the scripted case says '{expected.strip()}', the machine '{line.strip()}'"
                yield self._departure(reason, found[:number], replayed)
                return
        if stopped:
            yield self._departure(stopped, found, replayed)

    def _departure(self, reason: str, until: list[str], replayed: str) -> ScopeViolation:
        replayed = replayed if replayed.endswith("\n") else f"{replayed}\n"
        return ScopeViolation(TELLS, self.name, _moves(until), reason, f"{replayed}! {TELLS}: {reason}\n")


def _moves(lines: list[str]) -> int:
    return sum(line.startswith("> ") for line in lines)


def scripted_cases() -> Iterator[ScriptedScope]:
    """Return all that come with the package."""
    for name, text in cases().items():
        yield ScriptedScope(name, mode_of(text, name), text)
