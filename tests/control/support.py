"""Common parts of the tests of control signals: short names, a processor that writes down, a search of all runs."""

from __future__ import annotations

from dataclasses import dataclass

from barrierlab.impl.control import (
    BarrierControlSignal,
    BarrierControlSignalKind,
    Carrier,
    ControlProcessor,
    InstantControlSignal,
)
from barrierlab.impl.messages import EndOfInput, Event
from barrierlab.model.control.operators import KINDS
from barrierlab.model.control.world import ControlWorld, PipelineState, properties
from barrierlab.model.explore.checker import ExplorationLimits
from barrierlab.model.explore.checker import explore as search
from barrierlab.model.spec.invariants import Violation

DATA, CONTROL = Carrier.DATA, Carrier.CONTROL
SYNC, GRACEFUL = BarrierControlSignalKind.SYNC_TEST, BarrierControlSignalKind.STREAM_GRACEFUL_END
QUICK = InstantControlSignal.STREAM_QUICK_END
END = EndOfInput()


def sync(barrier_id: int, payload: object = None) -> BarrierControlSignal:
    """A barrier that means nothing."""
    return SYNC.with_id(barrier_id, payload)


def graceful(barrier_id: int) -> BarrierControlSignal:
    """A terminal barrier as the document has it: without a fence."""
    return GRACEFUL.with_id(barrier_id)


def event(name: str, timestamp_ms: int = 0, key: int = 0) -> Event:
    """``event("a1")`` is the first event of source a."""
    return Event(name[0], int(name[1:]), key=key, timestamp_ms=timestamp_ms)


class Bench:
    """A processor, what it told as lines, and what came out of it."""

    def __init__(self, data: int = 2, control: int = 2, operator=None, outputs: int = 1, **options) -> None:
        self.lines: list[str] = []
        operator = KINDS["union"]() if operator is None else operator
        self.processor = ControlProcessor("p", operator, data, control, outputs, outputs, tell=self._tell, **options)

    def _tell(self, verb, carrier, index, subject) -> None:
        self.lines.append(f"{verb} {carrier or '-'} {'' if index < 0 else f'{index} '}{subject}")

    def give(self, carrier: Carrier, upstream: int, *messages) -> list[str]:
        """Offer messages, all of which must be taken, and say what came out on either channel."""
        found = []
        for message in messages:
            assert self.processor.offer(carrier, upstream, message), message
            found += self.out()
        return found

    def out(self) -> list[str]:
        """Return what is in the outboxes, taken out: ``data SyncTest 1``, without the ends of channels."""
        found = []
        for carrier, outbox in self.processor.outbox.items():
            found += [f"{carrier} {message}" for _, message in outbox if type(message) is not EndOfInput]
            outbox.clear()
        return found

    def told(self, *verbs: str) -> list[str]:
        """The lines that begin with one of `verbs`."""
        return [line for line in self.lines if line.split(" ")[0] in verbs]


@dataclass
class Found:
    """The result of a search of all runs: a shortest bad run if there is one, and how much there was to see."""

    violations: tuple[Violation, ...]
    moves: list[str]
    state: PipelineState
    states: int
    transitions: int

    @property
    def invariants(self) -> set[str]:
        """The names of what is broken."""
        return {violation.invariant for violation in self.violations}


def explore(world: ControlWorld, most: int = 100_000) -> Found:
    """Every order of moves, until something is wrong or nothing is new."""
    result = search(world, properties(world), limits=ExplorationLimits(states=most))
    assert result.verdict != "undecided", result.why
    if not result.violations:
        return Found((), [], world.start(), result.counts.states, result.counts.transitions)
    (broken,) = result.violations
    assert broken.state is not None
    violations = world.violations(broken.state) or world.quiescent(broken.state)
    return Found(violations, list(broken.moves), broken.state, result.counts.states, result.counts.transitions)
