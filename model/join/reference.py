"""A join by its document alone, as values: what a barrier answers, what a stage does, what lies in a ring.

It is the reference beside which `model.join.lockstep` explores the code of `impl.join`, of which nothing is imported
here. Every answer is computed anew from the few values that the document names: no bound, no cursor that is the lesser
of two, nothing that could go stale. Source: merge-map-join-barrier, sections 6 to 10; where it is silent, protocol
rules 27 to 33. Times are integer nanoseconds; answers are the words of `impl.join`'s enumerations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from barrierlab.model.join.history import ALLOWS, FrameFacts, JoinSpec, MapFacts, RuleFacts

MOST = 2**64 - 1
"""The highest number of 64 bits; as a value it stands for null (rule 27)."""
REFUSED = "refused"
"""The answer to what only a mistaken caller asks; the code raises an error."""


class Input(NamedTuple):
    """One rule, and what is known of its stream by the rule's measure.

    Attributes
    ----------
    rule : RuleFacts
    observed, processed : int or None
        The highest value in the stream's epoch; None if there is none.
    is_rejected : bool
        Whether a time went back (section 8.2).
    fresh_ns : int
        When `observed` last came, at first when the map was applied (rule 32).
    failed : int or None
        The tick of the latest value at which the newest frame could not be read.
    """

    rule: RuleFacts
    fresh_ns: int
    observed: int | None = None
    processed: int | None = None
    is_rejected: bool = False
    failed: int | None = None


class Known(NamedTuple):
    """A barrier's knowledge: the map in force, the output's epoch, its last output, its inputs, epochs and clocks."""

    map: MapFacts | None = None
    epoch: int | None = None
    last: int | None = None
    inputs: tuple[Input, ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()
    clocks: tuple[tuple[int, str], ...] = ()


class Wanted(NamedTuple):
    """A read of an attempt: the newest frame from `first` to `last` by that measure, in that epoch of the stream."""

    stream: int
    epoch: int
    by: str
    first: int
    last: int


class BarrierReference:
    """A barrier's answers (sections 7 to 9).

    Parameters
    ----------
    spec : JoinSpec
    out : int
        The output stream.

    Attributes
    ----------
    known : Known
        Its whole state, a value.
    """

    def __init__(self, spec: JoinSpec, out: int) -> None:
        self.spec = spec
        self.out = out
        self.known = Known(epoch=spec.epoch)

    # The map (section 6.4; rules 28, 31, 33).

    def announce(self, out: int, facts: MapFacts, now_ns: int) -> str:
        """Take a map; return the word for what becomes of it."""
        known = self.known
        if facts.kind != self.spec.map_kind:
            return "other kind"
        if out != self.out:
            return "other output"
        if known.epoch is not None and facts.epoch < known.epoch:
            return "older epoch"
        if facts == known.map:
            return "unchanged"
        self.begin_epoch(facts.epoch)
        before = {(each.rule.stream, each.rule.by): each for each in self.known.inputs}
        inputs = []
        for rule in self._rules(facts):
            stays = before.get((rule.stream, rule.by))
            if stays is None:
                inputs.append(Input(rule, now_ns))
            elif stays.observed is None and not stays.is_rejected:
                inputs.append(stays._replace(rule=rule, fresh_ns=now_ns))
            else:
                inputs.append(stays._replace(rule=rule))
        self.known = self.known._replace(map=facts, inputs=tuple(inputs))
        return "applied"

    def announce_invalid(self, kind: str, out: int, epoch: int) -> str:
        """Take an announce that is no map: the map of that output and epoch is out of force until replaced."""
        if kind != self.spec.map_kind:
            return "other kind"
        if out != self.out:
            return "other output"
        if self.known.map is None or epoch != self.known.epoch:
            return "not in force"
        self.known = self.known._replace(map=None)
        return "invalidated"

    def begin_epoch(self, epoch: int) -> bool | str:
        """Enter an epoch of the output; return whether it is newer, and so needs a new map and new observations."""
        if not 0 <= epoch < MOST:
            return REFUSED
        known = self.known
        if known.epoch is not None and epoch <= known.epoch:
            return False
        forgotten = tuple(Input(each.rule, each.fresh_ns) for each in known.inputs)
        self.known = known._replace(map=None, epoch=epoch, last=None, inputs=forgotten)
        return True

    def declare_clock(self, stream: int, clock: str) -> None:
        """Set the clock of a stream's times."""
        self.known = self.known._replace(clocks=_with(self.known.clocks, stream, clock))

    # The inputs (sections 4, 8.2; rules 27, 31).

    def observe(self, stream: int, epoch: int, by: str, value: int | None, now_ns: int) -> str:
        """Take a number or a time of a stream; return the word for what becomes of it."""
        if not self._follows(stream, by):
            return "not an input"
        if value is not None and not 0 <= value <= MOST:
            return REFUSED
        if not self._enter(stream, epoch):
            return "older epoch"
        if value is None or value == MOST:
            return "null"
        each = self._input(stream, by)
        timed = by != "seq"
        if each.is_rejected:
            return "rejected"
        if each.observed is not None and (value < each.observed or (value == each.observed and not timed)):
            if timed and self.spec.barrier == "timestamp":
                self._put(each._replace(observed=None, is_rejected=True))
                return "rejected"
            return "behind"
        self._put(each._replace(observed=value, fresh_ns=now_ns))
        return "taken"

    def process(self, stream: int, epoch: int, by: str, value: int) -> str:
        """Note that a stage before the join has processed a stream up to a value; return the word for that."""
        if not self._follows(stream, by):
            return "not an input"
        if not self._enter(stream, epoch):
            return "older epoch"
        each = self._input(stream, by)
        if each.processed is not None and value <= each.processed:
            return "behind"
        self._put(each._replace(processed=value))
        return "rejected" if each.is_rejected else "taken"

    def fail(self, stream: int, tick: int) -> None:
        """Note that the newest frame of a stream could not be read: it is absent for that tick (section 9.1)."""
        for each in self.known.inputs:
            if each.rule.stream == stream:
                self._put(each._replace(failed=tick))

    def epoch_of(self, stream: int) -> int | None:
        """The epoch of an input; None of what is none."""
        if all(each.rule.stream != stream for each in self.known.inputs):
            return None
        return dict(self.known.epochs).get(stream)

    # Answers (sections 7.1, 7.4, 8.1, 9.1; rules 29, 30, 32).

    def clocks_differ(self) -> bool:
        """Return whether the output or an input is known to have another clock than the map in force (section 8.2)."""
        known = self.known
        if known.map is None or known.map.clock is None:
            return False
        clocks = [clock for stream, clock in known.clocks if any(each.rule.stream == stream for each in known.inputs)]
        if self.spec.clock is not None:
            clocks.append(self.spec.clock)
        return any(clock != known.map.clock for clock in clocks)

    def need(self, rule: RuleFacts, out: int) -> int | None:
        """The least value that makes a rule ready for `out`; None if there is none, or none yet."""
        assert self.known.map is not None
        late = self.known.map.lateness_ns
        if self.spec.barrier == "latest":
            return 0
        if rule.offset is not None:
            need = out + rule.offset
            return None if not 0 <= need <= MOST else need - (late if self.spec.lateness_for_all else 0)
        assert rule.window is not None
        reach = rule.window - 1 if rule.by == "seq" else rule.window
        return None if out < reach else max(out - late, out - reach)  # of a map that is none: not an empty window

    def is_stale(self, each: Input, now_ns: int) -> bool:
        """Return whether nothing of an input came for longer than the timeout (section 7.4)."""
        timeout_ns = None if self.known.map is None else self.known.map.stale_ns
        return timeout_ns is not None and now_ns - each.fresh_ns > timeout_ns

    def has(self, each: Input, out: int, now_ns: int) -> bool:
        """Return whether an input has what it owes to `out`."""
        need = self.need(each.rule, out)
        if need is None or each.observed is None or each.observed < need:
            return False
        if self.spec.barrier == "latest":
            return each.failed != out and not self.is_stale(each, now_ns)
        return not self.spec.use_processed or (each.processed is not None and each.processed >= need)

    def ready(self, out: int, now_ns: int) -> str:
        """Return the answer to: may `out` be attempted?"""
        if not 0 <= out <= MOST:
            return REFUSED
        if self.known.map is None:
            return "no map"
        if self.clocks_differ():
            return "clocks differ"
        if not self.comes_after(out):
            return "passed"
        if self.missing(out, now_ns):
            return "waiting"
        has = [self.has(each, out, now_ns) for each in self.known.inputs]
        return "no live input" if not any(has) else "ready" if all(has) else "degraded"

    def missing(self, out: int, now_ns: int) -> tuple[int, ...]:
        """Return the streams that `out` waits for, each once."""
        return self._lacking(out, now_ns, stale=False)

    def absent(self, out: int, now_ns: int) -> tuple[int, ...]:
        """Return the streams that `out` goes without, each once."""
        return self._lacking(out, now_ns, stale=True)

    def is_possible(self, out: int) -> bool:
        """Return whether frames could come that make `out` ready with all inputs."""
        return all(self.need(each.rule, out) is not None for each in self.known.inputs)

    def next_deadline_ns(self, out: int, now_ns: int) -> int | None:
        """Return the first moment at which an input that `out` waits for is stale."""
        if self.known.map is None or self.known.map.stale_ns is None:
            return None
        waits = [e for e in self.known.inputs if not self.has(e, out, now_ns) and not self.is_stale(e, now_ns)]
        return min((each.fresh_ns + self.known.map.stale_ns + 1 for each in waits), default=None)

    def reads(self, out: int, now_ns: int) -> tuple[Wanted, ...]:
        """Return what an attempt looks for, at each input that has what it owes."""
        epochs = dict(self.known.epochs)
        wanted = []
        for each in self.known.inputs:
            rule = each.rule
            if not self.has(each, out, now_ns):
                continue
            if self.spec.barrier == "latest":
                assert each.observed is not None
                first = last = each.observed
            else:
                first, last = self.span(rule, out)
            wanted.append(Wanted(rule.stream, epochs[rule.stream], rule.by, first, last))
        return tuple(wanted)

    def comes_after(self, out: int) -> bool:
        """Return whether an output comes after the last one; times may be equal (section 8.2, rule 30)."""
        last = self.known.last
        return last is None or out > last or (out == last and self.spec.barrier == "timestamp")

    def span(self, rule: RuleFacts, out: int) -> tuple[int, int]:
        """Return the values that an attempt at `out` may take; of a time at an offset, the newest that is not newer."""
        if rule.offset is not None:
            last = out + rule.offset
            return (last if rule.by == "seq" else 0), last
        assert rule.window is not None
        return (out - rule.window + 1 if rule.by == "seq" else out - rule.window), out

    def first_possible(self) -> int:
        """Return the first output that can ever be ready (sections 6.2.1, 6.2.2)."""
        assert self.known.map is not None
        return max(rule.window - 1 if rule.window is not None else -(rule.offset or 0) for rule in self.known.map.rules)

    def accept(self, out: int) -> str:
        """Accept that an output is dealt with; only later ones are from here on (rule 30)."""
        if self.known.map is None or not 0 <= out <= MOST or not self.comes_after(out):
            return REFUSED
        self.known = self.known._replace(last=out)
        return "accepted"

    # Inside.

    def _rules(self, facts: MapFacts) -> tuple[RuleFacts, ...]:
        """A rule for each input; of the latest value the stream and the measure alone (section 9.1)."""
        if self.spec.barrier != "latest":
            return facts.rules
        keys = [(rule.stream, rule.by if self.spec.by_timestamp else "seq") for rule in facts.rules]
        return tuple(RuleFacts(stream, by, None, None) for stream, by in dict.fromkeys(keys))

    def _lacking(self, out: int, now_ns: int, stale: bool) -> tuple[int, ...]:
        found = [
            each.rule.stream
            for each in self.known.inputs
            if not self.has(each, out, now_ns) and self.is_stale(each, now_ns) is stale
        ]
        return tuple(dict.fromkeys(found))

    def _follows(self, stream: int, by: str) -> bool:
        return any(each.rule.stream == stream and each.rule.by == by for each in self.known.inputs)

    def _input(self, stream: int, by: str) -> Input:
        return next(each for each in self.known.inputs if (each.rule.stream, each.rule.by) == (stream, by))

    def _put(self, new: Input) -> None:
        key = new.rule.stream, new.rule.by
        inputs = tuple(new if (each.rule.stream, each.rule.by) == key else each for each in self.known.inputs)
        self.known = self.known._replace(inputs=inputs)

    def _enter(self, stream: int, epoch: int) -> bool:
        """Enter an epoch: a newer one makes all of the stream unobserved (rule 31); return whether it counts."""
        before = dict(self.known.epochs).get(stream)
        if before is not None and epoch < before:
            return False
        if epoch != before:
            inputs = tuple(
                Input(each.rule, each.fresh_ns) if each.rule.stream == stream else each for each in self.known.inputs
            )
            self.known = self.known._replace(inputs=inputs, epochs=_with(self.known.epochs, stream, epoch))
        return True


def _with(pairs: tuple[tuple[int, Any], ...], key: int, value: object) -> tuple[tuple[int, Any], ...]:
    return tuple(sorted({**dict(pairs), key: value}.items()))


class Slot(NamedTuple):
    """The content of one slot: the frame begun last, whether it is whole, and how many were begun."""

    frame: FrameFacts
    is_whole: bool
    begun: int


class FoundFrame(NamedTuple):
    """A frame that was found whole: its place, and how many frames had been begun there."""

    place: int
    begun: int
    frame: FrameFacts


class RingReference:
    """A stream's slots: frame n lies in slot n modulo their number (sections 5, 7.2).

    Attributes
    ----------
    lying : tuple of (int, Slot)
        Its whole state, a value: place and what lies there.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.lying: tuple[tuple[int, Slot], ...] = ()

    def begin(self, frame: FrameFacts) -> None:
        """Begin a frame: what lay in its slot is gone."""
        place = frame.seq % self.slots
        before = dict(self.lying).get(place)
        self.lying = _with(self.lying, place, Slot(frame, False, 1 if before is None else before.begun + 1))

    def commit(self, frame: FrameFacts) -> None:
        """Note that a frame is written, unless another was begun in its slot."""
        place = frame.seq % self.slots
        slot = dict(self.lying).get(place)
        if slot is not None and slot.frame == frame:
            self.lying = _with(self.lying, place, slot._replace(is_whole=True))

    def holds(self, frame: FrameFacts) -> bool:
        """Return whether a frame lies whole in its slot."""
        return any(slot.is_whole and slot.frame == frame for _, slot in self.lying)

    def open(self, read: Wanted) -> FoundFrame | str:
        """Return the newest whole frame that is asked for; the word for why there is none."""
        found = [
            FoundFrame(place, slot.begun, slot.frame)
            for place, slot in self.lying
            if slot.is_whole and self._is_asked_for(slot.frame, read)
        ]
        if found:
            return max(found, key=lambda each: each.frame.seq)
        return self._why_not(read) if read.by == "seq" else "missing"

    def close(self, found: FoundFrame) -> FrameFacts | str:
        """The frame, if nothing was begun in its slot since."""
        return found.frame if dict(self.lying)[found.place].begun == found.begun else "overwritten"

    def _is_asked_for(self, frame: FrameFacts, read: Wanted) -> bool:
        value = frame.by(read.by)
        return frame.epoch == read.epoch and value is not None and read.first <= value <= read.last

    def _why_not(self, read: Wanted) -> str:
        """Return the word for the lowest number that says why: its slot has a later frame, or one that is not whole."""
        lying = dict(self.lying)
        for seq in range(max(read.first, read.last - self.slots + 1), read.last + 1):
            slot = lying.get(seq % self.slots)
            if slot is None:
                continue
            if (slot.frame.epoch, slot.frame.seq) > (read.epoch, seq):
                return "overwritten"
            if self._is_asked_for(slot.frame, read):
                return "not committed"
        return "missing"


class ReferenceAttempt(NamedTuple):
    """An attempt: its output, reads and absent streams, the map under which it began, what its reads opened."""

    out: int
    reads: tuple[Wanted, ...]
    absent: tuple[int, ...]
    map: MapFacts
    opened: tuple[FoundFrame | str, ...]


class Stage(NamedTuple):
    """The knowledge of a stage beside its barrier.

    Attributes
    ----------
    wanted : tuple of int
        Output times or ticks that wait.
    next : int
        Of a sequence join: no output below it is asked for.
    counted : int or None
        The epoch in which `next` counts.
    overruns : int
        How many there were in a row.
    attempt : ReferenceAttempt or None
    """

    wanted: tuple[int, ...] = ()
    next: int = 0
    counted: int | None = None
    overruns: int = 0
    attempt: ReferenceAttempt | None = None


class JoinReference:
    """A stage around a barrier, and the rings of its inputs.

    Parameters
    ----------
    spec : JoinSpec
    out : int
    pending : str or None
        What becomes of a new output time while one waits: ``"queue"``, ``"replace"`` or ``"hold"`` (J-09, J-24). None
        is ``"replace"`` for the latest value (section 9.1), and ``"queue"`` for times.
    most_pending : int
    """

    def __init__(self, spec: JoinSpec, out: int, pending: str | None = None, most_pending: int = 1024) -> None:
        self.spec = spec
        self.pending = pending or ("replace" if spec.barrier == "latest" else "queue")
        self.most_pending = most_pending
        self.barrier = BarrierReference(spec, out)
        self.rings = {stream: RingReference(slots) for stream, slots in spec.slots.items()}
        self.stage = Stage()

    @property
    def value(self) -> tuple[Known, Stage, tuple[tuple[tuple[int, Slot], ...], ...]]:
        """The whole state."""
        return self.barrier.known, self.stage, tuple(ring.lying for ring in self.rings.values())

    @value.setter
    def value(self, value: tuple[Known, Stage, tuple[tuple[tuple[int, Slot], ...], ...]]) -> None:
        self.barrier.known, self.stage, rings = value
        for ring, lying in zip(self.rings.values(), rings, strict=True):
            ring.lying = lying

    def offer(self, value: int) -> tuple[object, ...]:
        """Ask for an output time or tick; return what is skipped for it."""
        wanted = self.stage.wanted
        gone: tuple[int, ...] = ()
        word = ""
        if wanted and self.pending == "hold":
            return (("skip", value, value, "held", ()),)
        if self.pending == "replace":
            gone, wanted, word = wanted, (), "replaced"
        elif len(wanted) >= self.most_pending:
            gone, wanted, word = wanted[:1], wanted[1:], "overflow"
        self.stage = self.stage._replace(wanted=(*wanted, value))
        return tuple(("skip", old, old, word, ()) for old in gone)

    def next_out(self) -> int | None:
        """Return the output to ask for next: the first one wanted; of a sequence join the one after the last."""
        known, stage = self.barrier.known, self.stage
        if self.spec.barrier != "sequence":
            return stage.wanted[0] if stage.wanted else None
        least = stage.next
        if known.map is not None:
            if known.epoch != stage.counted:
                least = 0
            least = max(least, self.barrier.first_possible())
            self.stage = stage = stage._replace(counted=known.epoch, next=least)
        if known.last is not None:
            least = max(least, known.last + 1)
        self.stage = stage._replace(next=least)
        return least

    def poll(self, now_ns: int) -> object:
        """Return what is next, as a tuple that begins with a word; None if nothing is wanted."""
        stage, barrier = self.stage, self.barrier
        if stage.attempt is None:
            out = self.next_out()
            stage = self.stage
            if out is None:
                return None
            answer = barrier.ready(out, now_ns)
            if self.spec.barrier != "sequence":
                word = "passed" if answer == "passed" else ""
                if answer == "waiting" and not barrier.is_possible(out):
                    word = "impossible"
                if word:
                    self.stage = stage._replace(wanted=stage.wanted[1:])
                    return "skip", out, out, word, ()
            if answer not in ALLOWS:
                return "answer", answer
            reads = barrier.reads(out, now_ns)
            opened = tuple(self.rings[read.stream].open(read) for read in reads)
            assert barrier.known.map is not None
            attempt = ReferenceAttempt(out, reads, barrier.absent(out, now_ns), barrier.known.map, opened)
            self.stage = stage = stage._replace(wanted=stage.wanted[1:], attempt=attempt)
        attempt = stage.attempt  # type: ignore[assignment]
        return "attempt", attempt.out, attempt.reads, attempt.absent

    def finish(self) -> object:
        """End the reads: return an output, or what is skipped (sections 5, 6.4, 7.2, 9.1)."""
        stage, barrier = self.stage, self.barrier
        attempt = stage.attempt
        assert attempt is not None
        out = attempt.out
        self.stage = stage = stage._replace(attempt=None)
        if barrier.known.map != attempt.map:
            if self.spec.barrier != "sequence":
                self.stage = stage._replace(wanted=(out, *stage.wanted))
            return "skip", out, out, "map changed", ()
        frames: list[tuple[int, FrameFacts]] = []
        misses: list[tuple[int, str]] = []
        for read, opened in zip(attempt.reads, attempt.opened, strict=True):
            what = opened if isinstance(opened, str) else self.rings[read.stream].close(opened)
            if not isinstance(what, str) and barrier.epoch_of(read.stream) != read.epoch:
                what = "older epoch"
            if isinstance(what, str):
                misses.append((read.stream, what))
            else:
                frames.append((read.stream, what))
        if not misses or (frames and self.spec.goes_without):
            barrier.accept(out)
            self.stage = stage._replace(overruns=0)
            return "emit", out, tuple(frames), tuple(dict.fromkeys((*attempt.absent, *(each for each, _ in misses))))
        if self.spec.barrier == "latest":
            for stream, _ in misses:
                barrier.fail(stream, out)
            return "skip", out, out, "next tick", tuple(misses)
        last = out
        if self.spec.barrier == "sequence":
            if any(why == "overwritten" for _, why in misses):
                margin = 0 if not stage.overruns else 2 ** (stage.overruns - 1)  # 0, 1, 2, 4, ...
                last = max(out, self.after_overrun(self.spec.slots, not self.spec.goes_without, margin) - 1)
                self.stage = stage._replace(overruns=stage.overruns + 1)
            else:
                self.stage = stage._replace(overruns=0)
        barrier.accept(last)
        return "skip", out, last, "failed", tuple(misses)

    def after_overrun(self, slots: Mapping[int, int], need_all: bool, margin: int) -> int:
        """Return where an overrun stage goes on (section 6.2.2, MAY; defect J-21).

        It is `margin` outputs above the first of which no slot is overwritten for sure, and not above the newest output
        of which all inputs, or one, is observed.
        """
        spans = []
        for each in self.barrier.known.inputs:
            count = slots.get(each.rule.stream)
            if each.observed is not None and count is not None:
                newest = each.observed - (each.rule.offset or 0)
                spans.append((newest - count + 1, newest))
        if not spans:
            return 0
        firsts, lasts = [first for first, _ in spans], [last for _, last in spans]
        floor, most = (max(firsts), min(lasts)) if need_all else (min(firsts), max(lasts))
        return max(0, min(floor + margin, most))

    def next_deadline_ns(self, now_ns: int) -> int | None:
        """Return when `poll` may answer otherwise though nothing came."""
        out = self.next_out()
        return None if out is None or self.stage.attempt is not None else self.barrier.next_deadline_ns(out, now_ns)
