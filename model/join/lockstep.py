"""The code of joins beside its reference: every order of what comes and what the stage does, compared move by move.

Each script is a list of moves that keep their order, such as the frames of one stream or the moments of the clock.
From each state every script may move next, and the stage may begin an attempt or end the one that is under way: so
frames come while an attempt reads. After a move both must have answered the same, and both must answer the same to
every question that can be asked; then the states of both are one state of the exploration.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from random import Random
from typing import NamedTuple

from barrierlab.impl.errors import ContractError
from barrierlab.impl.join import (
    ClockDomain,
    Frame,
    InvalidMergeMap,
    Joined,
    JoinStage,
    MergeMap,
    Miss,
    Read,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    Skipped,
    TimestampSource,
    decode,
    encode,
)
from barrierlab.impl.join.stage import JoinAttempt
from barrierlab.model.explore.checker import Always
from barrierlab.model.join.history import FrameFacts, JoinEntry, JoinSpec
from barrierlab.model.join.reference import MOST, REFUSED, JoinReference, Wanted
from barrierlab.model.join.world import BY, JoinWorld, facts_of, frame_facts

SOURCES = {by: source for source, by in BY.items()}


class JoinPair:
    """The code, its reference, and the time for both.

    Attributes
    ----------
    world : JoinWorld
    reference : JoinReference
    now_ns : int
    """

    def __init__(self, make: Callable[[], JoinStage], slots: dict[int, int]) -> None:
        stage = make()
        self.world = JoinWorld(stage, slots)
        pending, most = stage.config.pending, stage.config.most_pending
        self.reference = JoinReference(self.world.spec, self.world.out, pending and pending.value, most)
        self.now_ns = 0


Answers = tuple[object, object]
"""The answer of the code, and that of the reference."""


@dataclass(frozen=True, slots=True)
class JoinMove:
    """Something that comes to both: its line of text, how it is made, and the frame that is written, if one is."""

    text: str
    make: Callable[[JoinPair], Answers]
    frame: Frame | None = None

    def __str__(self) -> str:
        return self.text


def comes(frame: Frame) -> JoinMove:
    """Return the move in which a frame is published, and its descriptor comes to the stage."""

    def make(pair: JoinPair) -> Answers:
        pair.world.publish(frame, pair.now_ns)
        ring = pair.reference.rings[frame.stream_id]
        ring.begin(frame_facts(frame))
        ring.commit(frame_facts(frame))
        return _observed(pair, frame)

    return JoinMove(f"comes {_name(frame)}", make, frame)


def begins(frame: Frame) -> JoinMove:
    """Return the move in which a writer begins a frame: what lay in its slot is gone."""

    def make(pair: JoinPair) -> Answers:
        pair.world.begin(frame)
        pair.reference.rings[frame.stream_id].begin(frame_facts(frame))
        return None, None

    return JoinMove(f"begins {_name(frame)}", make, frame)


def commits(frame: Frame) -> JoinMove:
    """Return the move in which a writer has written a frame."""

    def make(pair: JoinPair) -> Answers:
        pair.world.commit(frame, pair.now_ns)
        pair.reference.rings[frame.stream_id].commit(frame_facts(frame))
        return None, None

    return JoinMove(f"commits {_name(frame)}", make, frame)


def described(frame: Frame) -> JoinMove:
    """Return the move in which a frame's descriptor comes to the stage."""
    return JoinMove(f"described {_name(frame)}", lambda pair: _observed(pair, frame))


def _observed(pair: JoinPair, frame: Frame) -> Answers:
    pair.world.observe(frame, pair.now_ns)
    facts = frame_facts(frame)
    by_number = pair.world.spec.barrier == "sequence" or (
        pair.world.spec.barrier == "latest" and not pair.world.spec.by_timestamp
    )
    for by in ("seq",) if by_number else ("frame", "slot"):
        pair.reference.barrier.observe(frame.stream_id, frame.epoch, by, facts.by(by), pair.now_ns)
    return None, None


def observes(stream: int, by: str, value: int | None, epoch: int = 1) -> JoinMove:
    """Return the move in which a number or a time comes to the barrier itself, which answers what became of it."""

    def make(pair: JoinPair) -> Answers:
        barrier, source, now_ns = pair.world.stage.barrier, SOURCES.get(by), pair.now_ns
        if source is None:
            found = _answer(lambda: barrier.observe(stream, epoch, value, now_ns))  # type: ignore[attr-defined]
        else:
            found = _answer(lambda: barrier.observe_time(stream, epoch, source, value, now_ns))  # type: ignore[attr-defined]
        if found != REFUSED:
            known = {"seq": 0, "frame": None, "slot": None} | {by: value}
            pair.world.entries.append((now_ns, "observe", stream, FrameFacts(epoch, *known.values())))  # type: ignore[arg-type]
        return found, pair.reference.barrier.observe(stream, epoch, by, value, now_ns)

    return JoinMove(f"observes {stream}, epoch {epoch}: {by} {value}", make)


def processes(stream: int, by: str, value: int, epoch: int = 1) -> JoinMove:
    """Return the move in which a stage before the join has processed a stream up to a value."""

    def make(pair: JoinPair) -> Answers:
        barrier, source = pair.world.stage.barrier, SOURCES.get(by)
        pair.world.entries.append((pair.now_ns, "process", stream, (epoch, by, value)))
        if source is None:
            found = barrier.process(stream, epoch, value)  # type: ignore[attr-defined]
        else:
            found = barrier.process_time(stream, epoch, source, value)  # type: ignore[attr-defined]
        return found.value, pair.reference.barrier.process(stream, epoch, by, value)

    return JoinMove(f"processes {stream}, epoch {epoch}: {by} {value}", make)


def says(said: MergeMap | InvalidMergeMap) -> JoinMove:
    """Return the move in which a map is announced, as bytes; or in which an announce comes that is no map."""

    def make(pair: JoinPair) -> Answers:
        barrier, now_ns = pair.reference.barrier, pair.now_ns
        if isinstance(said, InvalidMergeMap):
            kind = "sequence" if said.kind is SequenceMergeMapAnnounce else "timestamp"
            found = pair.world.announce(said, now_ns)
            return found.value, barrier.announce_invalid(kind, said.out_stream_id, said.epoch)
        heard = decode(encode(said))
        if heard != said:
            return f"the bytes of {said} say {heard}", "the map"
        return pair.world.announce(heard, now_ns).value, barrier.announce(said.out_stream_id, facts_of(said), now_ns)

    if isinstance(said, InvalidMergeMap):
        return JoinMove(f"says no map, epoch {said.epoch} of {said.out_stream_id}", make)
    return JoinMove(f"says {facts_of(said)} of {said.out_stream_id}", make)


def enters(epoch: int) -> JoinMove:
    """Return the move in which the output stream enters an epoch."""

    def make(pair: JoinPair) -> Answers:
        meant = pair.reference.barrier.begin_epoch(epoch)
        try:
            return pair.world.begin_epoch(epoch, pair.now_ns), meant
        except ContractError:
            return REFUSED, meant

    return JoinMove(f"enters epoch {epoch}", make)


def declares(stream: int, domain: ClockDomain) -> JoinMove:
    """Set the clock of a stream."""

    def make(pair: JoinPair) -> Answers:
        pair.world.declare_clock(stream, domain, pair.now_ns)
        pair.reference.barrier.declare_clock(stream, domain.name)
        return None, None

    return JoinMove(f"declares {stream} {domain.name}", make)


def offers(value: int) -> JoinMove:
    """Return the move in which an output time or tick is wanted."""

    def make(pair: JoinPair) -> Answers:
        return tuple(map(in_words, pair.world.offer(value, pair.now_ns))), pair.reference.offer(value)

    return JoinMove(f"offers {value}", make)


def accepts(out: int) -> JoinMove:
    """Return the move in which the barrier learns that an output is dealt with."""

    def make(pair: JoinPair) -> Answers:
        try:
            pair.world.stage.barrier.accept(out)
        except ContractError:
            return REFUSED, pair.reference.barrier.accept(out)
        pair.world.entries.append((pair.now_ns, "skip", pair.world.out, (out, out, "failed", ())))
        return "accepted", pair.reference.barrier.accept(out)

    return JoinMove(f"accepts {out}", make)


def time(now_ns: int) -> JoinMove:
    """Return the move that sets the clock."""

    def make(pair: JoinPair) -> Answers:
        pair.now_ns = now_ns
        return None, None

    return JoinMove(f"time {now_ns}", make)


def _poll(pair: JoinPair) -> Answers:
    return in_words(pair.world.poll(pair.now_ns)), pair.reference.poll(pair.now_ns)


def _finish(pair: JoinPair) -> Answers:
    return in_words(pair.world.end(pair.now_ns)), pair.reference.finish()


POLL, FINISH = JoinMove("poll", _poll), JoinMove("finish", _finish)


def _name(frame: Frame) -> str:
    times = "" if frame.frame_ns is None else f" at {frame.frame_ns}"
    captured = "" if frame.slot_ns is None or frame.slot_ns == frame.frame_ns else f", captured at {frame.slot_ns}"
    return f"{frame.stream_id}.{frame.epoch}.{frame.seq}{times}{captured}"


def _answer(ask: Callable[[], object]) -> object:
    """An enumeration's word; the word for an error of the caller's."""
    try:
        return ask().value  # type: ignore[attr-defined]
    except ContractError:
        return REFUSED


def in_words(answer: object) -> object:
    """Return what the stage answers, in the words of the reference."""
    match answer:
        case Joined(out, frames, absent):
            return "emit", out, tuple((frame.stream_id, frame_facts(frame)) for frame in frames), absent
        case Skipped(first, last, reason, misses):
            return "skip", first, last, reason.value, tuple((stream, miss.value) for stream, miss in misses)
        case JoinAttempt(out, reads, absent):
            return "attempt", out, tuple(starmap(_wanted, reads)), absent
        case None:
            return None
    return "answer", answer.value  # type: ignore[attr-defined]


def _wanted(stream: int, epoch: int, source: TimestampSource | None, first: int, last: int) -> Wanted:
    return Wanted(stream, epoch, "seq" if source is None else BY[source], first, last)


class JoinState(NamedTuple):
    """Both at once; `places` is how far each script is."""

    places: tuple[int, ...]
    now_ns: int
    code: Hashable
    reference: Hashable
    is_reading: bool


class JoinDifference(NamedTuple):
    """The point where the code and its reference part."""

    reason: str


JoinPosition = JoinState | JoinDifference


class ScriptStep(NamedTuple):
    """A move, and the script that it is the next of; None is the stage's own."""

    move: JoinMove
    script: int | None

    def __str__(self) -> str:
        return self.move.text


_OVERRUNS: tuple[tuple[dict[int, int], bool, int], ...] = (
    ({}, True, 0),
    ({1: 2, 2: 2}, True, 0),
    ({1: 2, 2: 2}, False, 1),
    ({1: 3}, True, 2),
)
"""Slots of streams, whether an output needs all, and a margin: where a stage would go on is asked with each."""
_POLL, _FINISH = ScriptStep(POLL, None), ScriptStep(FINISH, None)


@dataclass(eq=False)
class JoinLockstep:
    """The code beside its reference, as a system to explore.

    Parameters
    ----------
    make : callable
        A stage at its beginning.
    slots : dict of int to int
        Of each input stream.
    before : sequence of JoinMove
        What has come when the exploration begins.
    scripts : sequence of sequence of JoinMove
    outs : sequence of int
        The outputs that are asked about after each move.
    reads : sequence of Wanted
        The reads that are tried at the rings after each move.
    has_stage : bool
        Whether the stage makes attempts; else the barrier alone is asked.
    keeps_outcomes : bool
        Whether what came out belongs to a state: only so it shows whether it depends on the order.
    """

    make: Callable[[], JoinStage]
    slots: dict[int, int]
    before: Sequence[JoinMove]
    scripts: Sequence[Sequence[JoinMove]]
    outs: Sequence[int]
    reads: Sequence[Wanted]
    has_stage: bool
    keeps_outcomes: bool

    def __post_init__(self) -> None:
        self._steps = [[ScriptStep(move, number) for move in script] for number, script in enumerate(self.scripts)]
        scripts = (self.before, *self.scripts)
        self._frames = [move.frame for script in scripts for move in script if move.frame is not None]
        self._pair = JoinPair(self.make, self.slots)
        self._agreed: set[JoinState] = set()
        self.outcomes: set[tuple[object, ...]] = set()

    def start(self) -> JoinPosition:
        """Return the position behind the moves of `before`, or the difference that one of them made."""
        pair = self._pair = JoinPair(self.make, self.slots)
        for move in self.before:
            if reason := self._made(pair, move):
                return JoinDifference(reason)
        return self._captured((0,) * len(self._steps))

    def moves(self, state: JoinPosition) -> Sequence[ScriptStep]:
        """The next of each script, and what the stage can do."""
        if isinstance(state, JoinDifference):
            return ()
        steps = [steps[place] for steps, place in zip(self._steps, state.places, strict=True) if place < len(steps)]
        if self.has_stage:
            steps.append(_FINISH if state.is_reading else _POLL)
        return steps

    def after(self, state: JoinPosition, step: ScriptStep) -> JoinPosition:
        """Return both states after the move, or where they differ."""
        assert isinstance(state, JoinState)
        self._restore(state)
        reason = self._made(self._pair, step.move)
        if reason is not None:
            return JoinDifference(reason)
        reached = self._captured(_further(state.places, step))
        if reached not in self._agreed:
            reason = self._differ(self._pair)
            if reason is not None:
                return JoinDifference(reason)
            self._agreed.add(reached)
        return reached

    @property
    def spec(self) -> JoinSpec:
        """Return how the join is configured, for whoever judges its journal."""
        return self._pair.world.spec

    @property
    def properties(self) -> tuple[Always[JoinPosition], ...]:
        """Return the property that both stay alike; `outcomes` keeps the output of each final state."""
        if not self.keeps_outcomes:
            return (Always("lockstep", _parted),)
        return Always("lockstep", _parted), Always("outcomes", self._keep)

    def walk(self, turn: int) -> tuple[list[ScriptStep], list[JoinEntry], str | None]:
        """Walk one run without a restore, so that what `restore` computes anew may drift; return moves, journal,
        difference.

        Parameters
        ----------
        turn : int
            Which run: the seed of the choice among the moves that are possible.
        """
        reason, run = _parted(self.start()), []
        pair, draw = self._pair, Random(turn)
        places = (0,) * len(self._steps)
        for _ in range(4 * sum(map(len, self._steps)) + 4):  # each move, and as often the stage's own
            steps = self.moves(JoinState(places, 0, None, None, pair.world.stage.attempt is not None))
            if reason is not None or not steps:
                break
            step = draw.choice(steps)
            run.append(step)
            places = _further(places, step)
            reason = self._made(pair, step.move) or self._differ(pair)
        self._ask(pair)
        return run, pair.world.entries, reason

    def journal(self, run: Sequence[ScriptStep]) -> list[JoinEntry]:
        """Return what is written down when the moves of a run are made, and what is answered at its end."""
        pair = self._pair = JoinPair(self.make, self.slots)
        for move in (*self.before, *(step.move for step in run)):
            self._made(pair, move)
        self._ask(pair)
        return pair.world.entries

    def _ask(self, pair: JoinPair) -> None:
        """Write down what the barrier answers, so that a judge of the journal sees it."""
        for out in self.outs:
            if 0 <= out <= MOST:
                self._made(pair, JoinMove(f"ask {out}", lambda pair, out=out: (pair.world.ask(out, pair.now_ns), None)))  # type: ignore[misc]

    def _made(self, pair: JoinPair, move: JoinMove) -> str | None:
        """Make a move on both; how their answers differ."""
        try:
            found, meant = move.make(pair)
        except Exception as error:  # whatever the code under test raises is what is wrong with it
            return f"{move}: raises {type(error).__name__}: {error}"
        return None if found == meant else f"{move}: the code answers {found}, the document {meant}"

    def _differ(self, pair: JoinPair) -> str | None:
        """Return how answers differ that can be had for nothing."""
        try:
            for what, found, meant in self._answers(pair):
                if found != meant:
                    return f"{what}: the code answers {found}, the document {meant}"
        except Exception as error:
            return f"a question raises {type(error).__name__}: {error}"
        return None

    def _answers(self, pair: JoinPair) -> Iterator[tuple[str, object, object]]:
        stage, now_ns = pair.world.stage, pair.now_ns
        barrier, meant = stage.barrier, pair.reference.barrier
        in_force = meant.known.map is not None
        yield "the epoch", barrier.epoch, meant.known.epoch
        yield "the map in force", barrier.active is not None, in_force
        yield "the last output", barrier.last_out, -1 if meant.known.last is None else meant.known.last
        yield "clocks differ", barrier.clocks_differ, meant.clocks_differ()
        for stream in self.slots:
            yield f"the epoch of {stream}", barrier.epoch_of(stream), meant.epoch_of(stream)
        for out in self.outs:
            yield f"ready({out})", _answer(partial(barrier.ready, out, now_ns)), meant.ready(out, now_ns)
            if in_force and 0 <= out <= MOST:
                yield f"missing({out})", barrier.missing(out, now_ns), meant.missing(out, now_ns)
                yield f"absent({out})", barrier.absent(out, now_ns), meant.absent(out, now_ns)
                yield f"possible({out})", barrier.is_possible(out), meant.is_possible(out)
                deadline_ns = barrier.next_deadline_ns(out, now_ns)
                yield f"the deadline of {out}", deadline_ns, meant.next_deadline_ns(out, now_ns)
                reads = tuple(starmap(_wanted, barrier.reads(out, now_ns)))
                yield f"the reads of {out}", reads, meant.reads(out, now_ns)
        if self.has_stage:
            yield "the next output", stage.next_out(), pair.reference.next_out()
            yield "the deadline", stage.next_deadline_ns(now_ns), pair.reference.next_deadline_ns(now_ns)
            if isinstance(barrier, SequenceJoinBarrier):
                for slots, need_all, margin in _OVERRUNS:
                    goes_on = barrier.after_overrun(slots, need_all, margin)
                    where = f"after an overrun, slots {slots}, all needed: {need_all}, margin {margin}"
                    yield where, goes_on, pair.reference.after_overrun(slots, need_all, margin)
            if stage.attempt is not None:
                yield "the attempt", in_words(stage.poll(now_ns)), pair.reference.poll(now_ns)
        for frame in self._frames:
            whole = pair.world.rings[frame.stream_id].holds(frame)
            yield f"holds {_name(frame)}", whole, pair.reference.rings[frame.stream_id].holds(frame_facts(frame))
        for wanted in self.reads:
            opened = pair.world.rings[wanted.stream].open(Read(*wanted[:2], SOURCES.get(wanted.by), *wanted[3:]))
            found = opened.value if isinstance(opened, Miss) else frame_facts(opened.frame)
            asked_for = pair.reference.rings[wanted.stream].open(wanted)
            yield str(wanted), found, asked_for if isinstance(asked_for, str) else asked_for.frame

    def _captured(self, places: tuple[int, ...]) -> JoinState:
        pair = self._pair
        if not self.keeps_outcomes:
            pair.world.outcomes = []
        reading = pair.world.stage.attempt is not None
        return JoinState(places, pair.now_ns, pair.world.capture(), pair.reference.value, reading)

    def _restore(self, state: JoinState) -> None:
        pair = self._pair
        pair.now_ns = state.now_ns
        pair.world.restore(state.code)
        pair.reference.value = state.reference  # type: ignore[assignment]

    def _keep(self, state: JoinPosition) -> None:
        ends = tuple(map(len, self._steps))
        if isinstance(state, JoinState) and state.places == ends and not state.is_reading:
            if self.after(state, _POLL) == state:
                self._restore(state)
                self.outcomes.add(tuple(self._pair.world.outcomes))


def _further(places: tuple[int, ...], step: ScriptStep) -> tuple[int, ...]:
    return tuple(place + (number == step.script) for number, place in enumerate(places))


def _parted(state: JoinPosition) -> str | None:
    return state.reason if isinstance(state, JoinDifference) else None
