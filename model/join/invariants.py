"""The meaning of a correct join, over its journal alone.

The one that matters is READY, in both directions: an output is called ready exactly when each input that is not absent
was really observed, in the map's epoch and its own, at or beyond what its rule requires::

    ready(out)  ==  for each rule: observed(stream) >= required(rule, out) - lateness,  or the stream is stale

and one input at least is there. Too much on the left breaks READY, too little breaks LIVE. What comes out is judged
beside that: ORDER, ABSENT, MAP, CLOCK, CHOICE. Source: merge-map-join-barrier, sections 6 to 9, as read in protocol
rules 27 to 33; the arithmetic is that of `model.join.reference`, on whole numbers without limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from barrierlab.model.join.history import ALLOWS, FrameFacts, JoinEntry, JoinSpec, MapFacts, RuleFacts
from barrierlab.model.join.reference import MOST, BarrierReference, Input
from barrierlab.model.spec.invariants import MOST_LISTED, Verdict, Violation

JOIN_INVARIANTS = {
    "READY": "an output is called ready only if each input not absent was observed at or beyond its requirement",
    "LIVE": "an output is not kept back when all that it needs is there",
    "ORDER": "outputs of an epoch come in order, and sequences and ticks not twice",
    "ABSENT": "only a stale input is absent, or one whose frame was gone where that is allowed; one input is there",
    "MAP": "nothing comes out without a map of the output's epoch, of the kind that counts",
    "CLOCK": "nothing comes out of inputs that are known to have another clock than the map",
    "CHOICE": "each frame of an output was published, is of its stream's epoch, is what its rule asks for, and whole",
}


class _Judge:
    """Reads a journal from the beginning, and says what is wrong as it goes.

    What is known, required and stale it asks `model.join.reference`; what is said about it here is what may follow.
    """

    def __init__(self, spec: JoinSpec) -> None:
        self.spec = spec
        self.barrier = BarrierReference(spec, out=0)
        self.published: dict[tuple[int, int, int], FrameFacts] = {}  # by stream, epoch and number
        self.places: dict[tuple[int, int], FrameFacts] = {}  # what lies in each slot of each stream
        self.asked: dict[int, dict[RuleFacts, int]] = {}  # outputs called ready: the newest that each rule could have

    # What is reported.

    def step(self, entry: JoinEntry) -> Iterator[Violation]:
        at_ns, verb, number, subject = entry
        barrier = self.barrier
        if verb == "publish":
            frame = cast(FrameFacts, subject)
            self.published[number, frame.epoch, frame.seq] = frame
            if number in self.spec.slots:
                self.places[number, frame.seq % self.spec.slots[number]] = frame
        elif verb == "observe":
            frame = cast(FrameFacts, subject)
            for by in ("seq", "frame", "slot"):
                barrier.observe(number, frame.epoch, by, frame.by(by), at_ns)
        elif verb == "process":
            epoch, by, value = cast(tuple[int, str, int], subject)
            barrier.process(number, epoch, by, value)
        elif verb == "clock":
            barrier.declare_clock(number, cast(str, subject))
        elif verb == "announce":
            barrier.announce(barrier.out, cast(MapFacts, subject), at_ns)
        elif verb == "invalid":
            kind, epoch = cast(tuple[str, int], subject)
            barrier.announce_invalid(kind, barrier.out, epoch)
        elif verb == "epoch":
            barrier.begin_epoch(cast(int, subject))
        elif verb == "ask":
            yield from self.ask(*cast(tuple[int, str, tuple[int, ...]], subject), at_ns)
        elif verb == "emit":
            yield from self.emit(*cast(tuple[int, tuple[tuple[int, FrameFacts], ...], tuple[int, ...]], subject), at_ns)
        elif verb == "skip":
            first, last, reason, _ = cast(tuple[int, int, str, object], subject)
            if reason == "failed":
                yield from self.in_order(first, last, at_ns)
        elif verb == "again":
            out, _, streams = cast(tuple[int, str, tuple[int, ...]], subject)
            for stream in streams:
                barrier.fail(stream, out)

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.barrier.known.inputs

    # What is answered, and what comes out.

    def ask(self, out: int, answer: str, absent: tuple[int, ...], at_ns: int) -> Iterator[Violation]:
        self.asked.pop(out, None)
        if answer in ALLOWS:
            yield from self.may(out, absent, at_ns)
            self.asked[out] = {each.rule: self.newest(each, out) for each in self.inputs}
        elif self.barrier.ready(out, at_ns) in ALLOWS:
            yield Violation("LIVE", f"output {out} is kept back ({answer}), and all that it needs is there", at_ns)

    def may(self, out: int, absent: Sequence[int], at_ns: int) -> Iterator[Violation]:
        """READY, ABSENT, MAP and CLOCK of an output that is called ready."""
        barrier = self.barrier
        if barrier.known.map is None:
            yield Violation("MAP", f"output {out} is called ready without a map of epoch {barrier.known.epoch}", at_ns)
            return
        if barrier.clocks_differ():
            yield Violation("CLOCK", f"output {out} is called ready, and clocks are known to differ", at_ns)
        there = 0
        for each in self.inputs:
            stream, has = each.rule.stream, barrier.has(each, out, at_ns)
            there += has
            if stream in absent:
                if not barrier.is_stale(each, at_ns) and not has:
                    yield Violation("ABSENT", f"stream {stream} is absent from output {out}, and is not stale", at_ns)
            elif not has:
                seen = "nothing" if each.observed is None else str(each.observed)
                need = barrier.need(each.rule, out)
                yield Violation(
                    "READY",
                    f"output {out} is called ready; of stream {stream} {seen} is observed, "
                    f"{'nothing would be enough' if need is None else f'{need} is required'}",
                    at_ns,
                )
        if not there:
            yield Violation("ABSENT", f"output {out} is called ready without any input", at_ns)

    def in_order(self, out: int, last: int, at_ns: int) -> Iterator[Violation]:
        """ORDER of an output, or of those up to `last`; later ones follow."""
        if not self.barrier.comes_after(out):
            yield Violation("ORDER", f"output {out} after {self.barrier.known.last}", at_ns)
        self.barrier.known = self.barrier.known._replace(last=last)

    def emit(
        self, out: int, frames: tuple[tuple[int, FrameFacts], ...], absent: tuple[int, ...], at_ns: int
    ) -> Iterator[Violation]:
        yield from self.in_order(out, out, at_ns)
        asked = self.asked.get(out)
        self.asked = {}
        if self.barrier.known.map is None:
            epoch = self.barrier.known.epoch
            yield Violation("MAP", f"output {out} comes out without a map of epoch {epoch}", at_ns)
            return
        if asked is None:
            yield Violation("READY", f"output {out} comes out and was not called ready", at_ns)
        if not frames:
            yield Violation("ABSENT", f"output {out} comes out without any input", at_ns)
        if not self.spec.goes_without:
            wanted = {each.rule.stream for each in self.inputs} - set(absent)
            for number in sorted(wanted - {number for number, _ in frames}):
                yield Violation("ABSENT", f"output {out} comes out without stream {number}, which is not absent", at_ns)
        for number, frame in frames:
            yield from self.chosen(number, frame, out, asked or {}, at_ns)

    def newest(self, each: Input, out: int) -> int:
        """The highest observed value that the rule asks for; -1 if there is none."""
        low, high = self.range_of(each.rule, out)
        best = -1 if each.observed is None else each.observed
        return best if low <= best <= high else -1

    def range_of(self, rule: RuleFacts, out: int) -> tuple[int, int]:
        """Return which values an attempt at `out` may take."""
        if self.spec.barrier == "latest":
            return 0, MOST
        return self.barrier.span(rule, out)

    def chosen(
        self, number: int, frame: FrameFacts, out: int, asked: dict[RuleFacts, int], at_ns: int
    ) -> Iterator[Violation]:
        said, epoch = f"frame {frame.seq} of stream {number} for output {out}", self.barrier.epoch_of(number)
        rules = [each.rule for each in self.inputs if each.rule.stream == number]
        if self.published.get((number, frame.epoch, frame.seq)) != frame:
            yield Violation("CHOICE", f"{said} was never published", at_ns)
        if frame.epoch != epoch:
            yield Violation("CHOICE", f"{said} is of epoch {frame.epoch}, its stream in {epoch}", at_ns)
        if not any(self.fits(rule, frame, out) for rule in rules):
            yield Violation("CHOICE", f"{said} is none that its rule asks for", at_ns)
        if self.overwritten(number, frame):
            yield Violation("CHOICE", f"{said} was overwritten before it came out", at_ns)
        if len(rules) == 1:
            rule, best = rules[0], asked.get(rules[0], -1)
            value = frame.by(rule.by)
            if value is not None and value < best and not self.overwritten_value(rule, best):
                yield Violation("CHOICE", f"{said} is not the newest: {best} was observed", at_ns)

    def fits(self, rule: RuleFacts, frame: FrameFacts, out: int) -> bool:
        low, high = self.range_of(rule, out)
        value = frame.by(rule.by)
        return value is not None and low <= value <= high

    def overwritten(self, number: int, frame: FrameFacts) -> bool:
        slots = self.spec.slots.get(number)
        return slots is not None and self.places.get((number, frame.seq % slots)) != frame

    def overwritten_value(self, rule: RuleFacts, value: int) -> bool:
        """Return whether no frame of this value lies whole in its slot."""
        epoch = self.barrier.epoch_of(rule.stream)
        if rule.stream in self.spec.slots:
            lying = [frame for (stream, _), frame in self.places.items() if stream == rule.stream]
        else:
            lying = [frame for (stream, of, _), frame in self.published.items() if (stream, of) == (rule.stream, epoch)]
        return all(frame.by(rule.by) != value for frame in lying)


def violations(entries: Sequence[JoinEntry], spec: JoinSpec) -> list[Violation]:
    """Return all violations in a journal, in its order."""
    judge = _Judge(spec)
    return [violation for entry in entries for violation in judge.step(entry)]


def judge_join(entries: Sequence[JoinEntry], spec: JoinSpec) -> Verdict:
    """Return what the invariants say about a join's journal: holds, or broken and how."""
    found: dict[str, list[Violation]] = {name: [] for name in JOIN_INVARIANTS}
    for violation in violations(entries, spec):
        found[violation.invariant].append(violation)
    listed = tuple(violation for each in found.values() for violation in each[:MOST_LISTED])
    more = {name: len(each) - MOST_LISTED for name, each in found.items() if len(each) > MOST_LISTED}
    return Verdict("broken" if listed else "holds", listed, more)
