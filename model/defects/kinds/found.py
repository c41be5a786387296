"""The answer of every defect of the catalogue, whatever it is made of: the invariants it breaks, and the run."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from barrierlab.model.render.html import block, pre
from barrierlab.model.render.trace_picture import picture_of


class Found(NamedTuple):
    """The outcome of a search for a violation.

    Attributes
    ----------
    broken : frozenset of str
        The invariants that the first violation breaks; empty if there is none.
    steps : int
        Moves, or calls, until then; none is shorter where all runs were looked at.
    states : int
        How many were seen; 0 where there is only one run.
    seconds : float
        Of wall time.
    trace : str
        The run as text, the violation at its end; empty if there is none.
    """

    broken: frozenset[str] = frozenset()
    steps: int = 0
    states: int = 0
    seconds: float = 0.0
    trace: str = ""

    def __repr__(self) -> str:
        what = ", ".join(sorted(self.broken)) or "nothing"
        return f"<Found: breaks {what} in {self.steps} steps; {self.states} states>"

    def _repr_html_(self) -> str:
        what = ", ".join(sorted(self.broken))
        try:
            picture = picture_of(self.trace) if self.trace else ""
        except ValueError:
            picture = ""
        verdict = f"broken: {what}" if what else "holds"
        return block(f"{self.steps} steps, {self.states:,} states", verdict, picture or pre(self.trace))


_KINDS = {"LIVE": "liveness", "BOUND": "bound", "RAISED": "crash"}


def kind_of(breaks: str) -> str:
    """Return the kind of a defect by the invariant that it breaks, where nothing else is said."""
    return _KINDS.get(breaks, "safety")


class Defect(Protocol):
    """An entry that can be run.

    Attributes
    ----------
    kind : str
        ``safety``, ``liveness``, ``crash``, ``bound``, ``timing``, ``value`` or ``contradiction``.
    breaks : str
        The invariant, or ``value`` where values show it.
    """

    @property
    def kind(self) -> str: ...

    @property
    def breaks(self) -> str: ...

    def as_documented(self) -> Found:
        """Return what goes wrong with the protocol at its document's word."""

    def sound(self) -> Found:
        """Return what the sound protocol does in the same scope."""
