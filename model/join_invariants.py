"""What a correct join means, over its journal alone.

The one that matters is READY, in both directions: an output is called ready exactly when each input that is not absent
was really observed, in the map's epoch and its own, at or beyond what its rule requires::

    ready(out)  ==  for each rule: observed(stream) >= required(rule, out) - lateness,  or the stream is stale

and one input at least is there. Too much on the left breaks READY, too little breaks LIVE. What comes out is judged
beside that: ORDER, ABSENT, MAP, CLOCK, CHOICE. Source: merge-map-join-barrier, sections 6 to 9, as read in protocol
rules 27 to 33; the arithmetic is done again here, on whole numbers without limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from model.invariants import MOST_TOLD, Verdict, Violation
from model.join_history import ALLOWS, FrameFacts, JoinEntry, JoinSpec, MapFacts, RuleFacts

JOIN_INVARIANTS = {
    "READY": "an output is called ready only if each input not absent was observed at or beyond its requirement",
    "LIVE": "an output is not kept back when all that it needs is there",
    "ORDER": "outputs of an epoch come in order, and sequences and ticks not twice",
    "ABSENT": "only a stale input is absent, or one whose frame was gone where that is allowed; one input is there",
    "MAP": "nothing comes out without a map of the output's epoch, of the kind that counts",
    "CLOCK": "nothing comes out of inputs that are known to have another clock than the map",
    "CHOICE": "each frame of an output was published, is of its stream's epoch, is what its rule asks for, and whole",
}
MAX_U64 = 2**64 - 1


class _Stream:
    """What is known of one input stream."""

    __slots__ = ("best", "epoch", "fresh_ns", "places", "processed", "published", "rejected")

    def __init__(self) -> None:
        self.epoch: int | None = None
        self.published: dict[int, dict[int, FrameFacts]] = {}  # by epoch and number
        self.places: dict[int, FrameFacts] = {}  # what lies in each slot
        self.fresh_ns: dict[str, int] = {}
        self.forget()

    def forget(self) -> None:
        self.best: dict[str, int] = {}
        self.processed: dict[str, int] = {}
        self.rejected: set[str] = set()


class _Judge:
    """Reads a journal from the beginning, and says what is wrong as it goes."""

    def __init__(self, spec: JoinSpec) -> None:
        self.spec = spec
        self.streams: dict[int, _Stream] = {}
        self.clocks: dict[int, str] = {}
        self.map: MapFacts | None = None
        self.map_ns = 0
        self.epoch = spec.epoch
        self.last: int | None = None
        self.asked: dict[int, dict[RuleFacts, int]] = {}  # outputs called ready: the newest that each rule could have
        self.again_at: dict[int, set[int]] = {}  # of the latest value: streams that failed, by tick

    def stream(self, number: int) -> _Stream:
        found = self.streams.get(number)
        if found is None:
            found = self.streams[number] = _Stream()
        return found

    # What is told.

    def step(self, entry: JoinEntry) -> Iterator[Violation]:
        at_ns, verb, number, subject = entry
        if verb == "publish":
            frame = cast(FrameFacts, subject)
            self.stream(number).published.setdefault(frame.epoch, {})[frame.seq] = frame
            if number in self.spec.slots:
                self.stream(number).places[frame.seq % self.spec.slots[number]] = frame
        elif verb == "observe":
            self.observe(number, cast(FrameFacts, subject), at_ns)
        elif verb == "process":
            epoch, by, value = cast(tuple[int, str, int], subject)
            if self.is_input(number) and self.enter(number, epoch):
                known = self.stream(number).processed
                known[by] = max(value, known.get(by, -1))
        elif verb == "clock":
            self.clocks[number] = cast(str, subject)
        elif verb == "announce":
            self.announce(cast(MapFacts, subject), at_ns)
        elif verb == "invalid":
            if subject == (self.spec.map_kind, self.epoch):
                self.map = None
        elif verb == "epoch":
            self.begin_epoch(cast(int, subject))
        elif verb == "ask":
            yield from self.ask(*cast(tuple[int, str, tuple[int, ...]], subject), at_ns)
        elif verb == "emit":
            yield from self.emit(*cast(tuple[int, tuple[tuple[int, FrameFacts], ...], tuple[int, ...]], subject), at_ns)
        elif verb == "skip":
            first, last, reason, _ = cast(tuple[int, int, str, object], subject)
            if reason == "failed":
                yield from self.in_order(first, at_ns)
                self.last = last
        elif verb == "again":
            out, _, streams = cast(tuple[int, str, tuple[int, ...]], subject)
            self.again_at = {out: set(streams)}

    def announce(self, facts: MapFacts, at_ns: int) -> None:
        if facts.kind != self.spec.map_kind or (self.epoch is not None and facts.epoch < self.epoch):
            return
        if facts != self.map:
            self.begin_epoch(facts.epoch)
            if self.map is not None:
                stay = {(rule.stream, self.key(rule)) for rule in self.map.rules}
                for rule in facts.rules:  # what was no input before was not looked at
                    if (rule.stream, self.key(rule)) not in stay:
                        stream = self.stream(rule.stream)
                        stream.rejected.discard(self.key(rule))
                        for known in (stream.best, stream.processed, stream.fresh_ns):
                            known.pop(self.key(rule), None)
            self.map, self.map_ns = facts, at_ns

    def begin_epoch(self, epoch: int) -> None:
        if self.epoch is None or epoch > self.epoch:
            self.epoch, self.map, self.last = epoch, None, None
            for stream in self.streams.values():
                stream.forget()
                stream.fresh_ns.clear()

    def enter(self, number: int, epoch: int) -> bool:
        """Whether a frame of `epoch` counts; a newer one resets its stream."""
        stream = self.stream(number)
        if stream.epoch is not None and epoch < stream.epoch:
            return False
        if epoch != stream.epoch:
            stream.epoch = epoch
            stream.forget()
        return True

    def is_input(self, number: int) -> bool:
        return self.map is not None and any(rule.stream == number for rule in self.map.rules)

    def observe(self, number: int, frame: FrameFacts, at_ns: int) -> None:
        if not self.is_input(number) or not self.enter(number, frame.epoch):
            return
        stream = self.stream(number)
        for by in ("seq", "frame", "slot"):
            value, best = frame.by(by), stream.best.get(by)
            if value is None or value == MAX_U64 or by in stream.rejected:
                continue
            if best is not None and (value < best or (by == "seq" and value == best)):
                if by != "seq" and self.spec.barrier == "timestamp":
                    stream.rejected.add(by)  # section 8.2: such a stream is rejected
                    del stream.best[by]
                continue
            stream.best[by] = value
            stream.fresh_ns[by] = at_ns

    # What is required.

    def key(self, rule: RuleFacts) -> str:
        """By what an input of this rule is measured."""
        return rule.by if self.spec.barrier != "latest" or self.spec.by_timestamp else "seq"

    def required(self, rule: RuleFacts, out: int) -> int | None:
        """The least value that makes the rule ready for `out`; None if nothing does."""
        if self.spec.barrier == "latest":
            return 0
        assert self.map is not None
        if rule.offset is not None:
            need = out + rule.offset
            if not 0 <= need <= MAX_U64:
                return None
            return need - self.map.lateness_ns * self.spec.lateness_for_all
        assert rule.window is not None
        reach = rule.window - 1 if rule.by == "seq" else rule.window
        if out < reach:
            return None
        return max(out - self.map.lateness_ns, out - reach)  # not so late that the window is empty for sure

    def met(self, rule: RuleFacts, out: int, at_ns: int) -> bool:
        stream, key = self.stream(rule.stream), self.key(rule)
        need, best = self.required(rule, out), stream.best.get(key)
        if need is None or best is None or best < need:
            return False
        if self.spec.barrier == "latest":
            return not self.stale(rule, at_ns) and rule.stream not in self.again_at.get(out, ())
        return not self.spec.use_processed or stream.processed.get(key, -MAX_U64) >= need

    def stale(self, rule: RuleFacts, at_ns: int) -> bool:
        assert self.map is not None
        since_ns = self.stream(rule.stream).fresh_ns.get(self.key(rule), self.map_ns)
        return self.map.stale_ns is not None and at_ns - since_ns > self.map.stale_ns

    def clocks_agree(self) -> bool:
        assert self.map is not None
        clock = self.map.clock
        known = [self.clocks.get(rule.stream, clock) for rule in self.map.rules]
        return clock is None or (self.spec.clock in (None, clock) and all(each == clock for each in known))

    # What is answered, and what comes out.

    def ask(self, out: int, answer: str, absent: tuple[int, ...], at_ns: int) -> Iterator[Violation]:
        self.asked.pop(out, None)
        if answer in ALLOWS:
            yield from self.may(out, absent, at_ns)
            rules = () if self.map is None else self.map.rules
            self.asked[out] = {rule: self.newest(rule, out) for rule in rules}
        elif self.map is not None and self.clocks_agree() and (self.last is None or out > self.last):
            rules = self.map.rules
            if all(self.met(r, out, at_ns) or self.stale(r, at_ns) for r in rules) and any(
                self.met(r, out, at_ns) for r in rules
            ):
                yield Violation("LIVE", f"output {out} is kept back ({answer}), and all that it needs is there", at_ns)

    def may(self, out: int, absent: Sequence[int], at_ns: int) -> Iterator[Violation]:
        """READY, ABSENT, MAP and CLOCK of an output that is called ready."""
        if self.map is None:
            yield Violation("MAP", f"output {out} is called ready without a map of epoch {self.epoch}", at_ns)
            return
        if not self.clocks_agree():
            yield Violation("CLOCK", f"output {out} is called ready, and clocks are known to differ", at_ns)
        there = 0
        for rule in self.map.rules:
            met, stale = self.met(rule, out, at_ns), self.stale(rule, at_ns)
            there += met
            if rule.stream in absent:
                if not stale and not met:
                    yield Violation(
                        "ABSENT", f"stream {rule.stream} is absent from output {out}, and is not stale", at_ns
                    )
            elif not met:
                best = self.stream(rule.stream).best.get(self.key(rule))
                seen = "nothing" if best is None else str(best)
                need = self.required(rule, out)
                yield Violation(
                    "READY",
                    f"output {out} is called ready; of stream {rule.stream} {seen} is observed, "
                    f"{'nothing would be enough' if need is None else f'{need} is required'}",
                    at_ns,
                )
        if not there:
            yield Violation("ABSENT", f"output {out} is called ready without any input", at_ns)

    def in_order(self, out: int, at_ns: int) -> Iterator[Violation]:
        strict = self.spec.barrier != "timestamp"
        if self.last is not None and (out < self.last or (strict and out == self.last)):
            yield Violation("ORDER", f"output {out} after {self.last}", at_ns)

    def emit(
        self, out: int, frames: tuple[tuple[int, FrameFacts], ...], absent: tuple[int, ...], at_ns: int
    ) -> Iterator[Violation]:
        yield from self.in_order(out, at_ns)
        self.last = out
        asked = self.asked.get(out)
        self.asked = {}
        if self.map is None:
            yield Violation("MAP", f"output {out} comes out without a map of epoch {self.epoch}", at_ns)
            return
        if asked is None:
            yield Violation("READY", f"output {out} comes out and was not called ready", at_ns)
        if not frames:
            yield Violation("ABSENT", f"output {out} comes out without any input", at_ns)
        if not self.spec.goes_without:
            wanted = {rule.stream for rule in self.map.rules} - set(absent)
            for number in sorted(wanted - {number for number, _ in frames}):
                yield Violation("ABSENT", f"output {out} comes out without stream {number}, which is not absent", at_ns)
        for number, frame in frames:
            yield from self.chosen(number, frame, out, asked or {}, at_ns)

    def newest(self, rule: RuleFacts, out: int) -> int:
        """The highest observed value that the rule asks for; -1 if there is none."""
        low, high = self.range_of(rule, out)
        best = self.stream(rule.stream).best.get(self.key(rule), -1)
        return best if low <= best <= high else -1

    def range_of(self, rule: RuleFacts, out: int) -> tuple[int, int]:
        """Which values an attempt at `out` may take."""
        if self.spec.barrier == "latest":
            return 0, MAX_U64
        if rule.offset is not None:
            return (out + rule.offset if rule.by == "seq" else 0), out + rule.offset
        assert rule.window is not None
        return (out - rule.window + 1 if rule.by == "seq" else out - rule.window), out

    def chosen(
        self, number: int, frame: FrameFacts, out: int, asked: dict[RuleFacts, int], at_ns: int
    ) -> Iterator[Violation]:
        stream, said = self.stream(number), f"frame {frame.seq} of stream {number} for output {out}"
        assert self.map is not None
        rules = [rule for rule in self.map.rules if rule.stream == number]
        if stream.published.get(frame.epoch, {}).get(frame.seq) != frame:
            yield Violation("CHOICE", f"{said} was never published", at_ns)
        if frame.epoch != stream.epoch:
            yield Violation("CHOICE", f"{said} is of epoch {frame.epoch}, its stream in {stream.epoch}", at_ns)
        if not any(self.fits(rule, frame, out) for rule in rules):
            yield Violation("CHOICE", f"{said} is none that its rule asks for", at_ns)
        if self.overwritten(number, frame):
            yield Violation("CHOICE", f"{said} was overwritten before it came out", at_ns)
        if len(rules) == 1:
            rule, best = rules[0], asked.get(rules[0], -1)
            value = frame.by(self.key(rule))
            if value is not None and value < best and not self.overwritten_value(rule, best):
                yield Violation("CHOICE", f"{said} is not the newest: {best} was observed", at_ns)

    def fits(self, rule: RuleFacts, frame: FrameFacts, out: int) -> bool:
        low, high = self.range_of(rule, out)
        value = frame.by(self.key(rule))
        return value is not None and low <= value <= high

    def overwritten(self, number: int, frame: FrameFacts) -> bool:
        slots = self.spec.slots.get(number)
        return slots is not None and self.stream(number).places.get(frame.seq % slots) != frame

    def overwritten_value(self, rule: RuleFacts, value: int) -> bool:
        """Whether no frame of this value lies whole in its slot."""
        stream = self.stream(rule.stream)
        lying = (
            stream.places.values() if rule.stream in self.spec.slots else stream.published[stream.epoch or 0].values()
        )
        return all(frame.by(self.key(rule)) != value for frame in lying)


def violations(entries: Sequence[JoinEntry], spec: JoinSpec) -> list[Violation]:
    """Everything that is wrong in a journal, in its order."""
    judge = _Judge(spec)
    return [violation for entry in entries for violation in judge.step(entry)]


def judge_join(entries: Sequence[JoinEntry], spec: JoinSpec) -> Verdict:
    """What the invariants say about a join's journal: holds, or broken and how."""
    found: dict[str, list[Violation]] = {name: [] for name in JOIN_INVARIANTS}
    for violation in violations(entries, spec):
        found[violation.invariant].append(violation)
    told = tuple(violation for each in found.values() for violation in each[:MOST_TOLD])
    more = {name: len(each) - MOST_TOLD for name, each in found.items() if len(each) > MOST_TOLD}
    return Verdict("broken" if told else "holds", told, more)
