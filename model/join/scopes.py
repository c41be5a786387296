"""The standard scopes of joins: every order in which frames, maps and moments come, and the stage runs between them.

In each the code of `impl.join` is explored beside its reference (`model.join.lockstep`), and the journals of some runs
are judged by the invariants. Without overwriting, staleness, restarts and changed maps the outputs are a function of
the inputs: one outcome. With them time decides (defect J-12).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations_with_replacement, product
from time import monotonic

from barrierlab.impl.join import (
    ClockDomain,
    Frame,
    InvalidMergeMap,
    JoinBarrier,
    JoinConfig,
    JoinStage,
    LatenessScope,
    LatestValueJoinBarrier,
    MergeMap,
    OnFailure,
    PendingPolicy,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    SequenceMergeRule,
    StageConfig,
    TimestampJoinBarrier,
    TimestampMergeMapAnnounce,
    TimestampMergeRule,
    TimestampSource,
)
from barrierlab.model.checkpoint.check import REFINES, NamedScope, Outcome, ScopeViolation, limits
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.explore.checker import BROKEN, HOLDS, NonDeterministicError, explore
from barrierlab.model.join.history import JoinEntry, text
from barrierlab.model.join.invariants import judge_join
from barrierlab.model.join.late import SCOPES as LATE_JOIN
from barrierlab.model.join.lockstep import (
    FINISH,
    POLL,
    JoinLockstep,
    JoinMove,
    ScriptStep,
    accepts,
    begins,
    comes,
    commits,
    declares,
    described,
    enters,
    observes,
    offers,
    processes,
    says,
    time,
)
from barrierlab.model.join.reference import MOST, Wanted
from barrierlab.model.join.tables import TABLES

OUT = 9
WALKS = 12
"""Runs of a scope without a restore, drawn with the seeds from 0 on; together about a quarter of what it costs."""

Script = Sequence[JoinMove]


@dataclass(frozen=True, slots=True)
class JoinScope(NamedScope):
    """A join, and what comes to it.

    Attributes
    ----------
    of : str
        What happens in it.
    map : SequenceMergeMapAnnounce or TimestampMergeMapAnnounce or None
        What was announced before; None if nothing was.
    scripts : sequence of sequence of JoinMove
        What keeps its order: the frames of a stream, what is announced, the moments of the clock.
    barrier : str
        ``"latest"``, or ``"newest"``, which is the latest value by timestamp; if not given, it is of the map's kind.
    outs : sequence of int
        The outputs that are asked about after each move.
    config : JoinConfig
    stage : StageConfig
        Its slots are set from `slots`.
    slots : int
        Of every stream's ring.
    reads : sequence of Wanted
        The reads that are tried at the rings after each move.
    has_stage : bool
        Whether the stage makes attempts; else the barrier alone is asked.
    is_confluent : bool
        Whether all orders give the same outputs.
    """

    of: str
    map: MergeMap | None
    scripts: Sequence[Script]
    barrier: str = ""
    outs: Sequence[int] = range(4)
    config: JoinConfig = field(default=JoinConfig(OUT))
    stage: StageConfig = field(default=StageConfig())
    slots: int = 8
    reads: Sequence[Wanted] = ()
    has_stage: bool = True
    is_confluent: bool = False
    protocol: str = "join"

    def system(self) -> JoinLockstep:
        """The code beside its reference, to explore."""
        before = () if self.map is None else (says(self.map),)
        return JoinLockstep(
            self._stage,
            dict.fromkeys((1, 2, 3), self.slots),
            before,
            self.scripts,
            self.outs,
            self.reads,
            self.has_stage,
            self.is_confluent,
        )

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Explore it, then walk it without a restore; `components` are of no concern to joins."""
        begun, system = monotonic(), self.system()
        try:
            result = explore(system, system.properties, limits=limits(seconds))
        except NonDeterministicError as error:  # two states of the code that look the same do not behave the same
            return replace(self.outcome(begun, 0, self.violation(0, str(error))), why=f"{REFINES}: {error}")
        verdict, why, violations = result.verdict, result.why, []
        for broken in result.violations:
            violations.append(self._violation(broken.moves, system.journal(broken.moves), broken.reason))
        if verdict == HOLDS and self.is_confluent and len(system.outcomes) != 1:
            reason = f"{len(system.outcomes)} outcomes of the same frames"
            violations.append(self.violation(0, reason, invariant="ORDER"))
        for turn in range(WALKS) if verdict == HOLDS else ():
            run, journal, reason_of = system.walk(turn)
            wrong = self._judged(journal)
            if reason_of is not None or wrong:
                violations.append(self._violation(run, journal, reason_of or wrong))
                break
        if violations:
            verdict, why = BROKEN, f"{violations[0].invariant}: {violations[0].reason}"
        counts, elapsed = result.counts, monotonic() - begun
        return Outcome(self.name, "join", verdict, why, counts.states, counts.transitions, elapsed, tuple(violations))

    def _stage(self) -> JoinStage:
        barrier: JoinBarrier
        kind = SequenceMergeMapAnnounce if self.map is None else type(self.map)
        if self.barrier not in ("", "latest", "newest"):
            raise ValueError(
                f"barrier is {self.barrier!r}; allowed: 'latest', 'newest', or '' for that of the map's kind"
            )
        if self.barrier:
            barrier = LatestValueJoinBarrier(self.config, kind, self.barrier == "newest")
        else:
            barrier = (SequenceJoinBarrier if kind is SequenceMergeMapAnnounce else TimestampJoinBarrier)(self.config)
        chosen = self.stage
        slots = tuple((stream, self.slots) for stream in (1, 2, 3))
        return JoinStage(barrier, StageConfig(chosen.on_failure, chosen.pending, chosen.most_pending, slots))

    def _judged(self, journal: Sequence[JoinEntry]) -> str:
        """Return the first violation that the invariants find in a journal; empty if there is none."""
        wrong = judge_join(journal, self.system().spec).violations
        return str(wrong[0]) if wrong else ""

    def _violation(self, run: Sequence[ScriptStep], journal: Sequence[JoinEntry], reason: str) -> ScopeViolation:
        """The run as text: its moves, its journal, and what is wrong: an invariant by name, if one is broken."""
        wrong = self._judged(journal)
        invariant = wrong.partition(":")[0] or REFINES
        lines = [f"# {self.name}.", *(f"> {step}" for step in run), *map(text, journal)]
        if wrong:
            lines.append(f"! {wrong}")
        if reason != wrong:
            lines.append(f"! {REFINES}: {reason}")
        return ScopeViolation(invariant, self.name, len(run), reason, "".join(f"{line}\n" for line in lines))


# Short ways to write a scope.

barrier_alone = partial(JoinScope, has_stage=False)
in_any_order = partial(JoinScope, is_confluent=True)
at, window = SequenceMergeRule.at_offset, SequenceMergeRule.in_window
at_ns, window_ns = TimestampMergeRule.at_offset, TimestampMergeRule.in_window
SLOT = TimestampSource.SLOT_HEADER
MONOTONIC, REALTIME = ClockDomain


def numbers(*rules: SequenceMergeRule, epoch: int = 1, stale: int | None = None) -> SequenceMergeMapAnnounce:
    """A sequence map."""
    return SequenceMergeMapAnnounce(OUT, epoch, rules, stale)


def times(
    *rules: TimestampMergeRule, epoch: int = 1, stale: int | None = None, late: int | None = None
) -> TimestampMergeMapAnnounce:
    """A timestamp map."""
    return TimestampMergeMapAnnounce(OUT, epoch, MONOTONIC, rules, stale, late)


def frame(stream: int, seq: int, at: int | None = None, captured: int | None = None, epoch: int = 1) -> Frame:
    """A frame; its times are its number where nothing is given."""
    at = seq if at is None else at
    return Frame(stream, epoch, seq, at, at if captured is None else captured)


def frames(stream: int, *seqs: int, epoch: int = 1) -> Script:
    """Return a script in which frames come; their times are their numbers."""
    return tuple(comes(frame(stream, seq, epoch=epoch)) for seq in seqs)


def moments(*at: int) -> Script:
    """Return a script in which the clock goes on."""
    return tuple(map(time, at))


def wanted(*outs: int) -> Script:
    """Return a script in which outputs are wanted, one after another."""
    return tuple(map(offers, outs))


def done(*outs: int) -> Script:
    """Return a script in which outputs are dealt with, one after another."""
    return tuple(map(accepts, outs))


def _each(move: Callable[..., JoinMove], stream: int, by: str, *values: int | tuple[int | None, int] | None) -> Script:
    """Return the moves of a stream one after another; a pair is a value with its epoch."""
    return tuple(move(stream, by, *(value if isinstance(value, tuple) else (value,))) for value in values)


seen, passed = partial(_each, observes), partial(_each, processes)


_LOCKSTEP = numbers(at(1), at(2))
_ABSENT = StageConfig(OnFailure.ABSENT)
_THREE = range(3)

CONFLUENT = (
    in_any_order("lockstep", _LOCKSTEP, (frames(1, 0, 1, 2), frames(2, 0, 1, 2))),
    in_any_order("offset", numbers(at(1), at(2, -1)), (frames(1, 0, 1, 2), frames(2, 0, 1, 2))),
    in_any_order("window", numbers(at(1), window(2, 2)), (frames(1, 0, 1, 2), frames(2, 0, 1, 2))),
    in_any_order("a dropped frame", _LOCKSTEP, (frames(1, 0, 1, 2), frames(2, 0, 2))),
    in_any_order("a dropped frame is absent", _LOCKSTEP, (frames(1, 0, 1, 2), frames(2, 0, 2)), stage=_ABSENT),
    in_any_order("three inputs", numbers(at(1), at(2), at(3)), (frames(1, 0, 1), frames(2, 0, 1), frames(3, 0, 1))),
    in_any_order("announced again and again", _LOCKSTEP, (frames(1, 0, 1), frames(2, 0, 1), (says(_LOCKSTEP),) * 2)),
    in_any_order(
        "times in lockstep", times(at_ns(1), at_ns(2)), (frames(1, 0, 1, 2), frames(2, 0, 1, 2), wanted(1, 2))
    ),
)

_BACK_AND_FORTH = seen(1, "seq", 0, 2, 1, 2)
SEQUENCE = (
    barrier_alone(
        "cursors",
        numbers(at(1), at(2, -1)),
        (_BACK_AND_FORTH, (observes(2, "seq", 1), observes(3, "seq", 1)), done(1, 0, 2)),
    ),
    barrier_alone(
        "epochs of an input",
        numbers(at(1), at(2, 1)),
        (seen(1, "seq", 2, (0, 3), (3, 2), (MOST, 4)), seen(2, "seq", 3, (1, 2), (2, 1))),
    ),
    barrier_alone(
        "cursors of a stage before",
        numbers(at(1), window(2, 2), stale=1),
        (
            (*seen(1, "seq", 1, 2), processes(1, "seq", 0, 2)),
            (*passed(1, "seq", 0, 2, 1), processes(3, "seq", 1)),
            (observes(2, "seq", 2), processes(2, "seq", 1)),
            moments(2),
        ),
        config=JoinConfig(OUT, use_processed=True),
    ),
    barrier_alone(
        "cursors of a stage before that do not count",
        numbers(at(1)),
        ((observes(1, "seq", 2),), passed(1, "seq", 0, (1, 2), (1, 1))),
    ),
    barrier_alone(
        "the ends of the range",
        numbers(at(1, 2**31 - 1), at(2, 1 - 2**31), window(3, 2**32 - 2)),
        (
            seen(1, "seq", 2**31, MOST - 1, MOST),
            seen(2, "seq", 0, MOST + 1, MOST - 2**31),
            seen(3, "seq", -1, 2**32 - 2, MOST - 1),
        ),
        outs=(
            *(-1, 0, 1, 2**31 - 2, 2**31 - 1, 2**31, 2**32 - 4, 2**32 - 3, 2**32 - 2),
            *(MOST - 2**31, MOST - 2**31 + 1, MOST - 2**31 + 2, MOST - 1, MOST, MOST + 1),
        ),
    ),
    barrier_alone(
        "a stale input",
        numbers(at(1), at(2, -1), stale=2),
        (seen(1, "seq", 1, 1, (0, 2)), seen(2, "seq", 0, 1), moments(1, 2, 3, 4, 5)),
        outs=_THREE,
    ),
)
_NONE = InvalidMergeMap(SequenceMergeMapAnnounce, OUT, 1, "no rules")
_NO_TIMES = InvalidMergeMap(TimestampMergeMapAnnounce, OUT, 1, "no rules")
_STRANGE = SequenceMergeMapAnnounce(OUT + 1, 5, (at(1),))
MAPS = (
    barrier_alone(
        "maps of other epochs, outputs and kinds",
        None,
        (
            (says(numbers(at(1), epoch=2)), says(numbers(at(1), epoch=1)), says(numbers(at(1), epoch=3))),
            (says(_STRANGE), says(times(at_ns(1), epoch=7))),
            seen(1, "seq", 0, 1),
            (accepts(0), enters(2), enters(MOST), enters(3)),
        ),
        outs=_THREE,
    ),
    barrier_alone(
        "no map in force",
        numbers(at(1), at(2), stale=2),
        (
            (says(_NONE), says(_NONE), says(numbers(at(1), at(2), stale=2))),
            (observes(1, "seq", 0), observes(2, "seq", 0)),
            (says(_NO_TIMES), says(InvalidMergeMap(SequenceMergeMapAnnounce, OUT + 1, 1, "no rules"))),
            moments(3),
        ),
        outs=_THREE,
    ),
    barrier_alone(
        "an announce that is no map, of another epoch",
        numbers(at(1), epoch=2),
        (
            (says(_NONE), says(InvalidMergeMap(SequenceMergeMapAnnounce, OUT, 3, "no rules"))),
            (observes(1, "seq", 0), enters(3), says(_NONE)),
        ),
        outs=_THREE,
    ),
    barrier_alone(
        "a changed map within its epoch",
        numbers(at(1), at(2), stale=1),
        (
            (says(numbers(at(1, -1), at(3), stale=2)), says(numbers(at(1), at(2), stale=1))),
            seen(1, "seq", (0, 2), (1, 2)),
            seen(2, "seq", (0, 3), (5, 2)),
            moments(1, 2, 3),
        ),
        outs=_THREE,
    ),
    barrier_alone(
        "a new epoch of the output",
        numbers(at(1), at(2), stale=2),
        (
            seen(1, "seq", 1, 2),
            seen(2, "seq", (1, 2), (4, 1)),
            (accepts(1), enters(2), says(numbers(at(2), at(1), epoch=2, stale=2))),
            moments(1, 3),
        ),
        outs=_THREE,
    ),
    barrier_alone(
        "an epoch that is known before",
        None,
        ((says(numbers(at(1), epoch=2)), says(numbers(at(1), epoch=3))), (observes(1, "seq", 0),)),
        config=JoinConfig(OUT, epoch=3),
        outs=_THREE,
    ),
)
TIMESTAMP = (
    barrier_alone(
        "lateness",
        times(at_ns(1), window_ns(2, 3), late=2),
        (seen(1, "frame", 0, 1, 2, 3, 4), seen(2, "frame", 1, 2, 3, 3)),
        outs=range(7),
    ),
    barrier_alone(
        "lateness of windows",
        times(at_ns(1, -1), at_ns(1, 1, SLOT), window_ns(2, 2), late=1),
        (seen(1, "frame", 0, 1, 2), seen(1, "slot", 1, 2, 3), seen(2, "frame", 1, 2)),
        outs=range(5),
        config=JoinConfig(OUT, lateness_scope=LatenessScope.WINDOWS),
    ),
    barrier_alone(
        "times that go back",
        times(at_ns(1), at_ns(2), at_ns(2, 0, SLOT), stale=2),
        (
            seen(1, "frame", 2, 1, 3, None),
            (*seen(2, "slot", 2, 1), observes(2, "frame", 1, 2), observes(2, "slot", 0, 1)),
            (says(times(at_ns(1, 1), at_ns(2), stale=2)),),
            moments(3),
        ),
    ),
    barrier_alone(
        "a rejected stream and a new epoch of the output",
        times(at_ns(1), at_ns(2)),
        (
            seen(1, "frame", 2, 1, 3, (0, 2)),
            (observes(2, "frame", 3),),
            (enters(2), says(times(at_ns(1), at_ns(2), epoch=2))),
        ),
    ),
    barrier_alone(
        "times that are absent",
        times(at_ns(1), at_ns(2, 0, SLOT), stale=1),
        (
            seen(1, "frame", None, 1, (None, 2)),
            (observes(2, "slot", MOST), observes(2, "frame", 1), *seen(2, "slot", 1, 1)),
            moments(1, 2),
        ),
        outs=_THREE,
    ),
    barrier_alone(
        "times of a stage before",
        times(at_ns(1), window_ns(2, 2), late=1),
        (
            seen(1, "frame", 2, 1, (2, 2)),
            (*passed(1, "frame", 1, 2, (0, 2)), processes(1, "slot", 3)),
            (processes(2, "frame", 3), *seen(2, "frame", 2, 3)),
        ),
        outs=range(5),
        config=JoinConfig(OUT, use_processed=True),
    ),
    barrier_alone(
        "the ends of the range of times",
        times(at_ns(1, 2**63 - 1), at_ns(2, 1 - 2**63), window_ns(3, 2**64 - 2), late=2**63),
        (seen(1, "frame", 0, MOST - 1, MOST), seen(2, "frame", 0, MOST + 1, MOST - 1), seen(3, "frame", -1, MOST - 1)),
        outs=(-1, 0, 1, 2**63 - 2, 2**63 - 1, 2**63, 2**63 + 1, 2**63 + 2, MOST - 2, MOST - 1, MOST, MOST + 1),
    ),
    barrier_alone(
        "output times in order", times(at_ns(1)), ((observes(1, "frame", 2),), done(1, 1, 0, 2), done(-1, MOST + 1))
    ),
    barrier_alone(
        "clocks",
        times(at_ns(1), at_ns(2)),
        (
            (declares(1, MONOTONIC), declares(2, REALTIME), declares(2, MONOTONIC)),
            (declares(3, REALTIME), says(times(at_ns(1), at_ns(3)))),
            (observes(1, "frame", 1), observes(2, "frame", 1)),
        ),
        outs=range(2),
        config=JoinConfig(OUT, clock_domain=MONOTONIC),
    ),
    JoinScope(
        "an output by another clock",
        times(at_ns(1)),
        ((observes(1, "frame", 1), declares(1, REALTIME)), (offers(1),)),
        outs=range(2),
        config=JoinConfig(OUT, clock_domain=REALTIME),
    ),
)
LATEST = (
    barrier_alone(
        "the latest value",
        numbers(at(1, -3), window(2, 4), stale=2),
        (seen(1, "seq", 1, 1, 0, (0, 2)), seen(2, "seq", 0, 3, MOST), moments(1, 2, 3, 5), done(1, 1)),
        "latest",
        outs=_THREE,
    ),
    barrier_alone(
        "the ends of the range of the latest value",
        numbers(at(1), at(2)),
        (seen(1, "seq", -1, 0, -1), seen(2, "seq", MOST + 1, MOST - 1, MOST + 1)),
        "latest",
        (-1, 0, MOST, MOST + 1),
    ),
    barrier_alone(
        "the latest value by timestamp",
        times(at_ns(1), at_ns(2, 0, SLOT), at_ns(1, 5, SLOT), late=3),
        (
            seen(1, "frame", 1, 1, 0, (None, 2)),
            (*seen(2, "slot", 2, 1), observes(2, "frame", 1)),
            seen(1, "slot", 1, (0, 2)),
        ),
        "newest",
        outs=_THREE,
    ),
    barrier_alone(
        "the latest value and a map of the other kind",
        numbers(at(1)),
        (
            (says(times(at_ns(1), at_ns(2), epoch=2)), says(numbers(at(2)))),
            (observes(2, "seq", 1), observes(1, "seq", 1)),
        ),
        "latest",
        outs=range(2),
    ),
    barrier_alone(
        "the latest value of the streams of a timestamp map",
        times(at_ns(1), at_ns(1, 5, SLOT), at_ns(2)),
        (seen(1, "seq", 1, 2), seen(2, "seq", 2, 2), (says(times(at_ns(2), at_ns(3))), observes(3, "seq", 0))),
        "latest",
        outs=_THREE,
    ),
    JoinScope(
        "ticks, and a frame that is gone",
        _LOCKSTEP,
        (frames(1, 0, 1), frames(2, 0, 1), wanted(1, 2, 3)),
        "latest",
        slots=1,
    ),
    JoinScope(
        "ticks by the newest time, in any order",
        times(at_ns(1), at_ns(2)),
        (
            (comes(frame(1, 0, 5)), comes(frame(1, 1, 3)), comes(frame(1, 2, 5))),
            (comes(frame(2, 0, 1)), comes(frame(2, 0, 2, epoch=2))),
            wanted(1, 2),
        ),
        "newest",
    ),
    JoinScope(
        "ticks without a stale input",
        numbers(at(1), at(2), stale=1),
        (frames(1, 0, 1), frames(2, 0), wanted(1, 1, 2), moments(1, 2)),
        "latest",
        outs=_THREE,
    ),
)

_LATE_WRITER = tuple(
    move(each)
    for each, moves in ((frame(1, 0), (begins, described, commits)), (frame(1, 2), (begins, commits, described)))
    for move in moves
)
_NO_TIME = Frame(1, 1, 1, None, None)
_QUEUE, _REPLACE, _HOLD = (StageConfig(pending=pending, most_pending=2) for pending in PendingPolicy)
_WANTED = wanted(2, 1, 3, 3)
_PENDING = times(at_ns(1), window_ns(2, 1))
STAGE = (
    JoinScope("overwritten slots", _LOCKSTEP, (frames(1, 0, 1, 2), frames(2, 0, 1, 2)), slots=2),
    JoinScope(
        "a restart", _LOCKSTEP, (frames(1, 0, 1), (*frames(2, 0), *frames(2, 0, epoch=2), *frames(2, 5))), slots=4
    ),
    JoinScope("an overrun stage", numbers(at(1)), (frames(1, 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12),), slots=3),
    JoinScope(
        "an overrun stage of two inputs",
        numbers(at(1), at(2, 1)),
        (frames(1, 0, 1, 2, 3, 4), frames(2, 1, 3, 4, 5)),
        slots=2,
    ),
    JoinScope(
        "an overrun stage that goes without",
        numbers(at(1), at(2, -1)),
        (frames(1, 1, 2, 3, 4), frames(2, 0, 1, 2, 3)),
        slots=2,
        stage=_ABSENT,
    ),
    JoinScope(
        "an overrun stage without an input that was never seen",
        numbers(at(1), at(2), stale=1),
        (frames(1, 0, 1, 2, 3, 4), moments(2)),
        slots=2,
    ),
    JoinScope(
        "an output time before its window, of which the input is stale",
        times(at_ns(1), window_ns(2, 3), stale=1),
        (frames(1, 1), wanted(1, 2), moments(2), (enters(2),)),
        outs=_THREE,
    ),
    JoinScope("a writer in between", numbers(at(1), at(2)), (_LATE_WRITER, frames(2, 0, 1, 2)), slots=2),
    JoinScope(
        "frames dropped inside a window",
        numbers(at(1), window(2, 3)),
        (frames(1, 2, 3, 4), (*frames(2, 0, 2), described(frame(2, 3)), *frames(2, 4))),
        outs=range(5),
        slots=4,
    ),
    JoinScope(
        "a map that changes while it is read",
        _LOCKSTEP,
        (
            frames(1, 0, 1, 2),
            frames(2, 0, 1),
            (says(numbers(at(1), at(2, -1))), says(_NONE), says(numbers(at(1), epoch=2))),
        ),
    ),
    JoinScope(
        "a map that is out of force while it is read",
        numbers(at(1)),
        ((*frames(1, 0), POLL, says(_NONE), says(numbers(at(1))), FINISH),),
        has_stage=False,  # its moves are in the script: another order comes to the same state with another map object
    ),
    JoinScope(
        "output times that wait", _PENDING, (frames(1, 1, 2, 3), frames(2, 1, 2), (offers(0), *_WANTED)), stage=_QUEUE
    ),
    JoinScope(
        "output times that take the place of another",
        _PENDING,
        (frames(1, 1, 2, 3), frames(2, 1, 2), _WANTED),
        stage=_REPLACE,
    ),
    JoinScope("output times that are held", _PENDING, (frames(1, 1, 2, 3), frames(2, 1, 2), _WANTED), stage=_HOLD),
    JoinScope(
        "an output time whose map changes",
        times(at_ns(1), at_ns(2)),
        (
            frames(1, 1, 2),
            frames(2, 1),
            wanted(1, 2),
            (says(times(at_ns(1), at_ns(2, -1))), says(times(at_ns(1), epoch=2))),
        ),
        outs=_THREE,
    ),
    JoinScope(
        "frames of a time window",
        times(at_ns(1), window_ns(2, 15, SLOT), late=5),
        (
            (comes(frame(1, 0, 20)), comes(frame(1, 1, 115))),
            (*(comes(frame(2, seq, at)) for seq, at in ((0, 10), (5, 100))), comes(frame(2, 6, 90, 110))),
            wanted(20, 115),
        ),
        outs=(14, 15, 20, 110, 115),
        slots=4,
    ),
    JoinScope(
        "outputs without a stale input",
        numbers(at(1), at(2), stale=1),
        (frames(1, 0, 1), (*frames(2, 1), *frames(2, 0, epoch=2)), moments(1, 2, 3)),
        outs=_THREE,
        slots=2,
        stage=_ABSENT,
    ),
    JoinScope(
        "output times without a stale input",
        times(at_ns(1), at_ns(2), stale=1),
        (frames(1, 1, 2), frames(2, 1), wanted(1, 2), moments(1, 2, 3)),
        outs=_THREE,
    ),
    barrier_alone(
        "slots",
        None,
        (
            tuple(move(each) for each in (frame(1, 0), _NO_TIME, frame(1, 3)) for move in (begins, commits)),
            tuple(move(each) for each in (frame(1, 0, 10, 9, 2), frame(1, 2, 12, 9, 2)) for move in (begins, commits)),
        ),
        slots=3,
        reads=tuple(
            Wanted(1, epoch, by, *ends)
            for epoch, by, ends in product(
                (1, 2), ("seq", "frame", "slot"), combinations_with_replacement((0, 1, 2, 3, 4, 9, 10, 12), 2)
            )
        ),
    ),
    barrier_alone(
        "slots of an older epoch, by time",
        None,
        (
            tuple(move(each) for each in (frame(1, 2, 2), frame(1, 4, 4)) for move in (begins, commits)),
            tuple(move(each) for each in (frame(1, 0, 9, 9, 2),) for move in (begins, commits)),
        ),
        slots=3,
        reads=tuple(
            Wanted(1, epoch, by, *ends)
            for epoch, by, ends in product((1, 2), ("frame", "slot"), ((0, 9), (0, 3), (3, 9)))
        ),
    ),
)
SMALL = (*CONFLUENT, *SEQUENCE, *MAPS, *TIMESTAMP, *LATEST, *STAGE, *LATE_JOIN, *TABLES)
WIDE = (
    in_any_order("lockstep, six frames each", _LOCKSTEP, (frames(1, *range(6)), frames(2, *range(6)))),
    in_any_order(
        "three inputs, three frames each",
        numbers(at(1), at(2), at(3, -1)),
        tuple(frames(stream, 0, 1, 2) for stream in (1, 2, 3)),
    ),
)
