"""The result of a run of any kind: a job's, a join's, that of control signals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from barrierlab.model.render.html import block, paragraph
from barrierlab.model.spec.invariants import Violation
from barrierlab.sim.checkpoint.coverage import Coverage

if TYPE_CHECKING:
    import pandas as pd


class JudgedRun:
    """One run, judged.

    Attributes
    ----------
    seed : int
    verdict : str
    violations : list of Violation
    """

    scenario: Any
    seed: int
    verdict: str
    violations: list[Violation]

    @property
    def coverage(self) -> Coverage:
        """Return how far the verdict reaches."""
        raise NotImplementedError

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return where the run is not what its scenario seems to ask for, a line each."""
        return tuple(self.scenario.warnings)

    def journal_text(self) -> str:
        """Return the entries, a line each."""
        raise NotImplementedError

    def measured(self) -> dict[str, Any]:
        """Return what `as_json` has of this kind of run."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> str:
        """A digest of the journal: equal runs have equal digests, in every process."""
        return hashlib.blake2b(self.journal_text().encode(), digest_size=16).hexdigest()

    def violation_rows(self) -> list[dict[str, Any]]:
        """One row for each violation."""
        return [{"invariant": v.invariant, "reason": v.reason, "at_ns": v.at_ns} for v in self.violations]

    def as_json(self) -> dict[str, Any]:
        """The result as one JSON object: the run, its verdict, and all that was measured."""
        return {
            "scenario": self.scenario.name,
            "seed": self.seed,
            "digest": self.digest,
            "settings": dict(self.scenario.settings),
            "verdict": self.verdict,
            "violations": self.violation_rows(),
            "warnings": list(self.warnings),
            **self.measured(),
        }

    def shown(self, more: str, notes: Iterable[str], *parts: str) -> str:
        """The run as HTML: its name and `more`, the verdict, the first violations, notes, and what is measured."""
        lines = [*(f"! {violation}" for violation in self.violations[:5]), self.coverage.headline, *notes]
        return block(f"{self.scenario.name}, seed {self.seed}{more}", self.verdict, *map(paragraph, lines), *parts)


def frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a frame."""
    import pandas as pd

    return pd.DataFrame(rows)
