"""The kept stories as scopes of a single run: whether a machine tells each of them word for word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from time import monotonic

from model.check import Outcome, Violation
from model.explore import BROKEN, HOLDS
from model.parts import Parts
from model.story import cases, mode_of, replay
from model.trace import TraceError

TELLS = "STORY"
"""The name of what is broken where a machine tells a story otherwise."""


@dataclass(frozen=True, slots=True)
class StoryScope:
    """A story to be told.

    Attributes
    ----------
    of : str
        Theme and name.
    protocol : str
    text : str
    """

    of: str
    protocol: str
    text: str

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return f"{self.protocol} story: {self.of}"

    def check(self, parts: Parts, seconds: float | None) -> Outcome:
        """Make its moves, and compare what comes of them."""
        begun = monotonic()
        violations = tuple(self._departures(parts))
        verdict, why = (BROKEN, violations[0].reason) if violations else (HOLDS, "it is told word for word")
        moves = self.text.count("\n> ")
        return Outcome(self.name, self.protocol, verdict, why, moves + 1, moves, monotonic() - begun, violations)

    def _departures(self, parts: Parts) -> Iterator[Violation]:
        """The first line that is told otherwise, if there is one."""
        try:
            told = replay(self.text, parts, self.of)
        except TraceError as error:
            yield Violation(TELLS, self.name, 0, str(error))
            return
        lines = zip_longest(self.text.split("\n"), told.split("\n"), fillvalue="")
        for number, (expected, found) in enumerate(lines, 1):
            if expected != found:
                steps = "\n".join(told.split("\n")[:number]).count("\n> ")
                reason = f"line {number}: the story says '{expected.strip()}', the machine '{found.strip()}'"
                yield Violation(TELLS, self.name, steps, reason, told)
                return


def stories() -> Iterator[StoryScope]:
    """All that come with the package."""
    for name, text in cases().items():
        yield StoryScope(name, mode_of(text, name), text)
