"""The check that an aligner of control signals does what the table says, by effect, and by state for `impl`'s.

As `model.checkpoint.refinement`, of the other table. Machine and table step side by side from the start, so that any
aligner can be compared, whatever its captures mean; of `IdentityAligner` it is known: `captured` says it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from barrierlab.impl.control import (
    BarrierControlSignal,
    BarrierControlSignalKind,
    Carrier,
    ControlAligner,
    ControlSignalError,
    IdentityAligner,
    InstantControlSignal,
    align_control_signal,
)
from barrierlab.impl.control.processor import MakeControlAligner
from barrierlab.impl.errors import ClosedInputError, InputIndexError
from barrierlab.impl.messages import EndOfInput
from barrierlab.model.checkpoint.check import NamedScope, Outcome, outcome_of
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.refinement import Effects, GateDifference, listed, refines
from barrierlab.model.checkpoint.tables.stimuli import NO_INPUT, Effect
from barrierlab.model.control.table import CONTROL
from barrierlab.model.control.upstreams import AbortAll, Closed, ControlStimulus, Delivered, Upstreams
from barrierlab.model.explore.checker import Always, ExplorationLimits, explore
from barrierlab.model.explore.table import Table

UpstreamsPair = tuple[Upstreams, Hashable] | GateDifference

CARRIER = Carrier.CONTROL  # only errors tell one from the other


def made(aligner: ControlAligner, stimulus: ControlStimulus) -> Effects:
    """Return what an aligner does when that happens, in the words of `ControlProcessor`."""
    match stimulus:
        case Delivered(upstream, barrier):
            try:
                complete = align_control_signal(aligner, upstream, barrier)
            except ControlSignalError as error:
                return (Effect("fail", upstream, error.actual),)
            arrived = Effect("arrive", upstream, barrier)
            return (arrived,) if complete is None else (arrived, Effect("complete", NO_INPUT, complete))
        case Closed(upstream):
            completed = [Effect("complete", NO_INPUT, barrier) for barrier in aligner.close(upstream)]
            return Effect("close", upstream, EndOfInput()), *completed
        case AbortAll():
            return tuple(Effect("abort", NO_INPUT, barrier) for barrier in aligner.abort())


def captured(upstreams: Upstreams) -> Hashable:
    """Return what `impl.control.IdentityAligner.capture` gives in this state."""
    order = tuple(barrier for barrier, _ in upstreams.pending)
    ahead = tuple(delivered(upstreams, upstream) for upstream in range(upstreams.expected))
    return upstreams.last_terminated_id, order, ahead, tuple(sorted(upstreams.closed))


def delivered(upstreams: Upstreams, upstream: int) -> int:
    """Return how many of the pending barriers this upstream has delivered."""
    return sum(upstream in arrived for _, arrived in upstreams.pending)


def open_to(upstreams: Upstreams, stimuli: Iterable[ControlStimulus]) -> list[ControlStimulus]:
    """Return those of the stimuli that may happen: an upstream that has closed delivers nothing more."""
    return [each for each in stimuli if isinstance(each, AbortAll) or each.upstream not in upstreams.closed]


class ControlRefinement:
    """The table's upstreams and an aligner that keeps step, as a system to explore.

    Parameters
    ----------
    stimuli : iterable of ControlStimulus
        What can happen, over and over; an upstream that has closed takes no more of it.
    expected : int
        How many upstreams there are.
    table : Table, optional
    make : callable, optional
        Makes the aligner, from the number of upstreams and the carrier.
    """

    def __init__(
        self,
        stimuli: Iterable[ControlStimulus],
        expected: int,
        table: Table[Upstreams, ControlStimulus] = CONTROL,
        make: MakeControlAligner = IdentityAligner,
    ) -> None:
        self.stimuli = tuple(stimuli)
        self.aligner = make(expected, CARRIER)
        self._start = Upstreams(table, CARRIER, expected), self.aligner.capture()

    def start(self) -> UpstreamsPair:
        """Return the initial state."""
        return self._start

    def moves(self, pair: UpstreamsPair) -> list[ControlStimulus]:
        """Return the moves possible now."""
        if isinstance(pair, GateDifference):
            return []
        return open_to(pair[0], self.stimuli)

    def after(self, pair: UpstreamsPair, stimulus: ControlStimulus) -> UpstreamsPair:
        """The table's next value and the aligner's next state, if they have done the same."""
        assert isinstance(pair, tuple)
        upstreams, capture = pair
        after, expected = upstreams.step(stimulus)
        try:
            self.aligner.restore(capture)
            effects = made(self.aligner, stimulus)
            reached = self.aligner.capture()
        except Exception as error:  # whatever another's code raises: that is another effect
            raised = f"{type(error).__name__}: {error}"
            return GateDifference(f"{stimulus}: the table says '{listed(expected)}', the aligner raised {raised}")
        if effects != expected:
            return GateDifference(f"{stimulus}: the table says '{listed(expected)}', the aligner '{listed(effects)}'")
        return after, reached

    @property
    def effects(self) -> Always[UpstreamsPair]:
        """Return the property that the aligner does what the table says."""
        return Always("refinement", refines)

    @property
    def properties(self) -> tuple[Always[UpstreamsPair], ...]:
        """That; and that an `IdentityAligner` is in the state that the table means, and answers what it is asked."""
        return self.effects, Always("state", self._elsewhere), Always("answers", self._misstatement)

    def _elsewhere(self, pair: UpstreamsPair) -> str | None:
        if isinstance(pair, GateDifference):
            return None
        meant, found = captured(pair[0]), pair[1]
        return None if found == meant else f"the table means {meant}, the aligner is in {found}"

    def _misstatement(self, pair: UpstreamsPair) -> str | None:
        if isinstance(pair, GateDifference):
            return None
        upstreams, capture = pair
        self.aligner.restore(capture)
        asked = [("last_terminated_id", upstreams.last_terminated_id, self.aligner.last_terminated_id)]
        for upstream in range(upstreams.expected):
            asked.append((f"ahead({upstream})", delivered(upstreams, upstream), self.aligner.ahead(upstream)))
        for what, meant, found in asked:
            if meant != found:
                return f"{what}: the table says {meant}, the aligner {found}"
        if align_control_signal(self.aligner, 0, QUICK) is not QUICK or self.aligner.capture() != capture:
            return f"{QUICK}: it is to be processed now, whoever sent it, and the aligner keeps it"
        return self._taken_although_wrong(upstreams, capture)

    def _taken_although_wrong(self, upstreams: Upstreams, capture: Hashable) -> str | None:
        """Ask for what a driver must not ask: of an upstream that is none, or has closed."""
        barrier, closed = SYNC.with_id(upstreams.last_terminated_id + 1), upstreams.closed
        for upstream in (-1, upstreams.expected, *sorted(closed)):
            for stimulus in (Delivered(upstream, barrier), Closed(upstream)):
                meant = ClosedInputError if upstream in closed else InputIndexError
                try:
                    made(self.aligner, stimulus)
                except meant:
                    if self.aligner.capture() == capture:
                        continue
                    return f"{stimulus}: it is refused, and leaves {self.aligner.capture()} where {capture} was"
                except Exception as error:  # whatever it raises instead
                    return f"{stimulus}: the table raises {meant.__name__}, the aligner {type(error).__name__}"
                return f"{stimulus}: the table raises {meant.__name__}, the aligner takes it"
        return None


# Small numbers of upstreams, ids and kinds, with all that can happen.

SYNC, END = BarrierControlSignalKind.SYNC_TEST, BarrierControlSignalKind.STREAM_GRACEFUL_END
QUICK = InstantControlSignal.STREAM_QUICK_END


@dataclass(frozen=True)
class ControlTableScope(NamedScope):
    """So many upstreams, what they can deliver, and how many states that makes: it moves when meaning does."""

    kind = " table"
    of: str
    expected: int
    barriers: tuple[BarrierControlSignal, ...]
    states: int
    transitions: int

    @property
    def stimuli(self) -> tuple[ControlStimulus, ...]:
        """Return every barrier from every upstream, at any time and again; each close; and the abort of all."""
        upstreams = range(self.expected)
        delivered = [Delivered(upstream, barrier) for barrier in self.barriers for upstream in upstreams]
        return *delivered, *map(Closed, upstreams), AbortAll()

    protocol: str = "control"

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Return whether the aligner of `impl` does what the table says; `components` are of no concern to control
        signals."""
        refinement = ControlRefinement(self.stimuli, self.expected)
        result = explore(refinement, refinement.properties, limits=ExplorationLimits(seconds=seconds))
        return outcome_of(self.name, self.protocol, result)

    def __str__(self) -> str:
        return self.of


def barriers(
    ids: int, *kinds: BarrierControlSignalKind, payloads: Iterable[Hashable] = (None,)
) -> tuple[BarrierControlSignal, ...]:
    """Return each kind with each id from 1 on, and each payload."""
    return tuple(kind.with_id(n, payload) for n in range(1, ids + 1) for kind in kinds for payload in payloads)


SCOPES = (
    ControlTableScope("one upstream, three ids, two kinds", 1, barriers(3, SYNC, END), 8, 36),
    ControlTableScope("two upstreams, three ids, two kinds", 2, barriers(3, SYNC, END), 160, 1_784),
    ControlTableScope("two upstreams, two ids, two payloads", 2, barriers(2, SYNC, payloads=("a", "b")), 52, 412),
    ControlTableScope("three upstreams, two ids, two kinds", 3, barriers(2, SYNC, END), 420, 4_410),
    ControlTableScope("three upstreams, three ids", 3, barriers(3, SYNC), 506, 4_358),
    ControlTableScope("three upstreams, three ids, two kinds", 3, barriers(3, SYNC, END), 1_880, 27_332),
)
