"""What a defect of barrier-control-signals is: a pipeline that breaks an invariant, or values that show it.

The modules beside this one that make one are the entries S-01 to S-13, each as the smallest change of the sound code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from impl.control import BarrierControlSignal, BarrierControlSignalKind, ControlAligner, ControlSignalError
from impl.errors import BarrierError
from model.control_world import Setup


@dataclass(frozen=True, slots=True)
class ControlDefect:
    """A pipeline as the document words it, and the sound one in the same scope.

    Attributes
    ----------
    entry : str
        In the catalogue.
    kind : str
        ``safety``, ``liveness`` or ``contradiction``.
    breaks : str
        The invariant that a shortest counterexample of `broken` breaks; a name in `model.control_invariants.NAMES`.
    broken, sound : Setup
    excuses : tuple of str
        Invariants that `sound` may break in this scope, because the transport is at fault: a processor that is sent
        what it must not be sent fails, and says why.
    """

    entry: str
    kind: str
    breaks: str
    broken: Setup
    sound: Setup
    excuses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlWitness:
    """A defect that a few calls show.

    Attributes
    ----------
    entry, kind : str
        As of `ControlDefect`; kind may be ``value``, too.
    broken, sound : callable
        The same calls, to what is as documented and to what is sound: what came of each, a line each.
    wrong, right : tuple of str
        What comes of them.
    """

    entry: str
    kind: str
    broken: Callable[[], tuple[str, ...]]
    sound: Callable[[], tuple[str, ...]]
    wrong: tuple[str, ...]
    right: tuple[str, ...]


NOT_RUN = {
    "S-14": (
        "Kinds share one slot. Rule 24 keeps one order for all kinds of a channel, and rule 25 lets a barrier of "
        "another kind wait like one of another id: it is late, and nothing goes wrong. The overlap that the document "
        "makes of it is S-03."
    ),
}
"""Entries that nothing goes wrong with under the reading chosen, each with the reason."""


def sync(barrier_id: int, payload: str | None = None) -> BarrierControlSignal:
    """A barrier that means nothing."""
    return BarrierControlSignalKind.SYNC_TEST.with_id(barrier_id, payload)


def answers(aligner: ControlAligner, *arrivals: tuple[int, BarrierControlSignal]) -> tuple[str, ...]:
    """What comes of each arrival: the barrier that is complete, ``pending``, or the error."""
    found = []
    for upstream, barrier in arrivals:
        try:
            completed = aligner.align(upstream, barrier)
            found.append("pending" if completed is None else str(completed))
        except ControlSignalError as error:
            found.append(headline(error))
    return tuple(found)


def headline(error: BarrierError) -> str:
    """What came, without what is allowed and what to do."""
    return error.came
