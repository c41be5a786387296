"""The standard scopes of joins: every order in which frames and maps come, and the stage runs between them.

Without overwriting, staleness, restarts and changed maps the outputs are a function of the inputs: one outcome. With
them time decides (defect J-12), and what holds of each order is what `model.join_invariants` asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from impl.join import (
    Frame,
    JoinConfig,
    JoinStage,
    MergeMap,
    OnFailure,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    SequenceMergeRule,
    StageConfig,
)
from model.check import Outcome, Violation
from model.explore import BROKEN, HOLDS, UNDECIDED
from model.join_confluence import Move, TooManyStatesError, explore
from model.join_world import JoinWorld
from model.parts import Parts

OUT = 9


@dataclass(frozen=True, slots=True)
class JoinScope:
    """A sequence join, and what comes to it.

    Attributes
    ----------
    of : str
        What happens in it.
    rules : tuple of SequenceMergeRule
    scripts : tuple of tuple of Frame or MergeMap
        What keeps its order: the frames of a stream, or what is announced.
    states : int
        How many there are: the number moves when the meaning does.
    slots : int
        Of every stream's ring.
    on_failure : OnFailure
    is_confluent : bool
        Whether all orders give the same outputs.
    """

    of: str
    rules: tuple[SequenceMergeRule, ...]
    scripts: tuple[tuple[Frame | MergeMap, ...], ...]
    states: int
    slots: int = 8
    on_failure: OnFailure = OnFailure.SKIP
    is_confluent: bool = True

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return f"join: {self.of}"

    @property
    def protocol(self) -> str:
        """``join``."""
        return "join"

    def check(self, parts: Parts, seconds: float | None) -> Outcome:
        """Explore it; `parts` are of no concern to joins."""
        begun = monotonic()
        verdict, why, states, transitions = HOLDS, "every reachable state was seen", 0, 0
        violations: tuple[Violation, ...] = ()
        try:
            found = explore(self._world, [list(map(_move, script)) for script in self.scripts])
        except TooManyStatesError as error:
            verdict, why = UNDECIDED, str(error)
        else:
            states, transitions = found.states, found.transitions
            reasons = list(found.violations)
            if self.is_confluent and not found.is_confluent and not reasons:
                reasons = [f"ORDER: {len(found.outcomes)} outcomes of the same frames"]
            if reasons:
                verdict, why = BROKEN, reasons[0]
                violations = tuple(_violation(self.name, reason) for reason in reasons)
        seconds = monotonic() - begun
        return Outcome(self.name, self.protocol, verdict, why, states, transitions, seconds, violations)

    def _world(self) -> JoinWorld:
        rings = dict.fromkeys({rule.input_stream_id for rule in self.rules}, self.slots)
        config = StageConfig(slots=tuple(sorted(rings.items())), on_failure=self.on_failure)
        world = JoinWorld(JoinStage(SequenceJoinBarrier(JoinConfig(OUT)), config), rings)
        world.announce(SequenceMergeMapAnnounce(OUT, 1, self.rules, None), 0)
        return world


def _move(item: Frame | MergeMap) -> Move:
    """A frame is published and announced to the join; or a map is announced."""

    def comes(world: JoinWorld) -> None:
        if isinstance(item, Frame):
            world.publish(item, 0)
            world.observe(item, 0)
        else:
            world.announce(item, 0)

    return comes


def _violation(scope: str, text: str) -> Violation:
    invariant, _, reason = text.partition(": ")
    return Violation(invariant, scope, 0, reason)


def _frames(stream: int, *seqs: int, epoch: int = 1) -> tuple[Frame, ...]:
    return tuple(Frame(stream, epoch, seq, seq, seq) for seq in seqs)


at, window = SequenceMergeRule.at_offset, SequenceMergeRule.in_window
_LOCKSTEP = (at(1, 0), at(2, 0))
_TWICE = (SequenceMergeMapAnnounce(OUT, 1, _LOCKSTEP, None),) * 2

SMALL: Sequence[JoinScope] = (
    JoinScope("lockstep", _LOCKSTEP, (_frames(1, 0, 1, 2), _frames(2, 0, 1, 2)), 44),
    JoinScope("offset", (at(1, 0), at(2, -1)), (_frames(1, 0, 1, 2), _frames(2, 0, 1, 2)), 32),
    JoinScope("window", (at(1, 0), window(2, 2)), (_frames(1, 0, 1, 2), _frames(2, 0, 1, 2)), 26),
    JoinScope("a dropped frame", _LOCKSTEP, (_frames(1, 0, 1, 2), _frames(2, 0, 2)), 30),
    JoinScope("a dropped frame is absent", _LOCKSTEP, (_frames(1, 0, 1, 2), _frames(2, 0, 2)), 30, 8, OnFailure.ABSENT),
    JoinScope(
        "three inputs", (at(1, 0), at(2, 0), at(3, 0)), (_frames(1, 0, 1), _frames(2, 0, 1), _frames(3, 0, 1)), 45
    ),
    JoinScope("announced again and again", _LOCKSTEP, (_frames(1, 0, 1), _frames(2, 0, 1), _TWICE), 57),
    JoinScope(
        "overwritten slots", _LOCKSTEP, (_frames(1, 0, 1, 2), _frames(2, 0, 1, 2)), 83, slots=2, is_confluent=False
    ),
    JoinScope(
        "a restart",
        _LOCKSTEP,
        (_frames(1, 0, 1), (*_frames(2, 0), *_frames(2, 0, epoch=2))),
        23,
        slots=4,
        is_confluent=False,
    ),
)
WIDE: Sequence[JoinScope] = (
    JoinScope("lockstep, six frames each", _LOCKSTEP, (_frames(1, *range(6)), _frames(2, *range(6))), 231),
    JoinScope(
        "three inputs, three frames each",
        (at(1, 0), at(2, 0), at(3, -1)),
        tuple(_frames(n, 0, 1, 2) for n in (1, 2, 3)),
        0,
    ),
)
