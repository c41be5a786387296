"""The meaning of correct, over histories alone.

All of consistency is one equation, for each channel from u to v and each completed checkpoint (Chandy and Lamport 1985,
section 2)::

    sent by u before its cut  ==  received by v before its cut  +  recorded as in flight

Too little on the left is an orphan message: taken before the cut, sent after. Too much is a lost one: sent before the
cut, taken after, and not recorded. Aligned checkpoints record nothing, so both sides must be the same events. An
unaligned barrier may go ahead of its place, at its sender and at its receiver; the equation is the same.

Each invariant is a generator of violations. `INVARIANTS` names those that are asked of every attempt of a run, and
`RUN_INVARIANTS` what is asked of the run as a whole; `judge_run` asks them all. Nothing here knows the code that made
the history: see `model.spec.history` for what is asked of a message. Fast where the history is in order, which is one
comparison of lists; the words are found only when something is wrong.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import cast

from barrierlab.model.spec import equations, exactly_once
from barrierlab.model.spec.attempts import Attempt, Run
from barrierlab.model.spec.history import SENDS, ChannelHistory, Cut, Entry, History, changes_of_state, without
from barrierlab.model.spec.messages import MessageView, kind_of
from barrierlab.model.spec.topology import Topology

MOST_LISTED = 20
"""The most violations of one invariant that a verdict spells out; of the others it gives the number."""

OF_A_STATE = "the state of "
"""The beginning of a reason of CUT that is about what a task kept; the others are about messages."""

Applied = tuple[str | None, object]
"""A channel, and a message of it that took effect; for a source no channel, and an event that it made.

`RESTORED` where an attempt ends and the next goes on.
"""

EXACTLY_ONCE, AT_LEAST_ONCE = ("exactly_once", "at_least_once")
"""The promises of a checkpoint: no message is lost to it, nor an orphan in it; or none is lost.

At least once, an effect that was sent before a barrier is in the state, and one behind it may be: CUT then asks that
none is lost, FWD that nothing is sent behind the barrier whose cause came ahead of it, REC that each counts at least
once.
"""

RESTORED: Applied = (None, None)
"""From here on no open input has promised anything yet: watermarks are no state of a channel."""

Fold = Callable[[str], Callable[[Sequence[Applied]], str | None]]
"""Of a task, the function that gets what took effect since it was last asked, and answers the state's digest."""


class SameState:
    """The fold of a task whose state is always the same: nothing is collected for it."""

    __slots__ = ("digest",)

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def __call__(self, stretch: Sequence[Applied]) -> str:
        return self.digest


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a run broke one invariant.

    Attributes
    ----------
    invariant : str
        A name in `INVARIANTS` or `RUN_INVARIANTS`.
    reason : str
        What the history shows, in one line.
    at_ns : int
        When, in nanoseconds of the run, as near as the history tells.
    """

    invariant: str
    reason: str
    at_ns: int

    def __str__(self) -> str:
        return f"{self.invariant}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Limits:
    """The configured limits, inclusive (protocol rules 7 and 18), and the promise of checkpoints.

    None, and a channel that is not named, is without limit. `consistency` is `EXACTLY_ONCE` or `AT_LEAST_ONCE`.
    """

    channel_capacity: Mapping[str, int] = field(default_factory=dict)
    max_buffer_per_input: int | None = None
    max_buffer_memory_bytes: int | None = None
    max_inflight_buffer_bytes: int | None = None
    consistency: str = EXACTLY_ONCE

    @property
    def permits_orphans(self) -> bool:
        """Return whether a message may be received before the cut and sent after it."""
        return self.consistency == AT_LEAST_ONCE


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of all the invariants on a run.

    Attributes
    ----------
    verdict : str
        ``"holds"``, ``"broken"``, or ``"undecided"`` if the run was cut off before something could be seen to end.
    violations : tuple of Violation
        By invariant, at most `MOST_LISTED` each.
    more : dict of str to int
        How many violations beyond those there are, by invariant.
    undecided : tuple of str
        What a longer run would have to show.
    premises : dict of str to int
        How often there was something to judge, by the names in `PREMISES` and `SITUATIONS`; empty if not counted.
    """

    verdict: str
    violations: tuple[Violation, ...] = ()
    more: Mapping[str, int] = field(default_factory=dict)
    undecided: tuple[str, ...] = ()
    premises: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def vacuous(self) -> tuple[str, ...]:
        """Return the invariants whose premise was never met and that are not broken: nothing is known of them."""
        broken = {violation.invariant for violation in self.violations}
        return tuple(name for name in PREMISES if self.premises.get(name) == 0 and name not in broken)


class Case:
    """One attempt as it is judged, with kept answers to repeated questions."""

    __slots__ = ("_first", "_order", "attempt", "cut_off", "history", "limits", "states", "topology")

    def __init__(self, attempt: Attempt, limits: Limits, states: States | None, cut_off: bool) -> None:
        self.attempt = attempt
        self.history = attempt.history
        self.topology = attempt.history.topology
        self.limits = limits
        self.states = states
        self.cut_off = cut_off or attempt.crashed
        self._order: dict[str, tuple[object, object] | None] = {}
        self._first: dict[str, dict[tuple[str | None, object], int]] = {}

    def events(self, channel: str, which: str) -> list[object]:
        """Return the events among the messages `which`, ``"sent"``, ``"taken"``, ``"applied"`` or ``"waiting"``."""
        return self.history.events(channel, which)

    def seen(self, invariant: str) -> Iterator[Violation]:
        """Return the violations that were found when the journal was read."""
        for task in self.history.tasks.values():
            yield from (Violation(*breach) for breach in task.breaches if breach[0] == invariant)

    def out_of_order(self, channel: str) -> tuple[object, object] | None:
        """Return the first message of `channel` that was processed out of order, and the one that was due; or None."""
        if channel not in self._order:
            kept = self.history.channels[channel]
            sent, applied = self.in_place(channel, "sent"), self.in_place(channel, "applied")
            self._order[channel] = _out_of_order(sent, applied, kept.ignored, kept.receiver.aborted)
        return self._order[channel]

    def in_place(self, channel: str, which: str) -> list[object]:
        """Return the messages ``"sent"``, ``"taken"`` or ``"applied"`` without barriers that may overtake.

        CUT asks what those passed.
        """
        kept = self.history.channels[channel]
        messages: list[object] = getattr(kept, which)
        if not self.history.overtaking:
            return messages
        task = kept.receiver
        overtakers = [
            place
            for place in getattr(kept, f"{which}_controls")
            if kind_of(messages[place]) == "CheckpointBarrier"
            and equations.may_overtake(messages[place], task.unaligned, task.aborted)
        ]
        return without(messages, overtakers)

    def when(self, channel: str, message: object) -> int:
        """Return when `message` was first processed on `channel`."""
        receiver = self.history.channels[channel].receiver
        first = self._first.get(receiver.name)
        if first is None:
            first = self._first[receiver.name] = {}
            for at_ns, verb, _, name, subject in receiver.steps:
                if verb not in SENDS and name is not None:
                    first.setdefault((name, subject), at_ns)
        return first.get((channel, message), self.history.end_ns)


Invariant = Callable[[Case], Iterator[Violation]]


def cut(case: Case) -> Iterator[Violation]:
    """Judge CUT: the equation for every channel of every completed checkpoint; each state is the fold of the applied
    events.

    At least once, the left side may be the first part of the right: what is there beyond it are orphans.
    """
    history = case.history
    for channel in case.topology.channels:
        sender, receiver = case.topology.ends(channel)
        sent, applied = case.events(channel, "sent"), case.events(channel, "applied")
        in_step = applied == sent[: len(applied)]
        open_ = _Open(sent, applied)
        for checkpoint_id, at_ns in case.attempt.complete.items():
            sent_count = _before(history, sender, checkpoint_id, channel, len(sent))
            applied_count = _before(history, receiver, checkpoint_id, channel, len(applied))
            if sent_count is None or applied_count is None:
                continue  # ONCE says so
            recorded = history.recorded.get((channel, checkpoint_id), [])
            if in_step and sent_count == applied_count and not recorded:
                continue
            left, right = sent[:sent_count], [*applied[:applied_count], *recorded]
            if not equations.balanced(left, right, case.limits.permits_orphans):
                for reason in _unbalanced(left, right, open_.less(sent_count, applied_count, recorded)):
                    yield Violation("CUT", reason.format(checkpoint_id, receiver), at_ns)
    if case.states is not None:
        for task in case.topology.tasks:
            yield from _folded(case, task, case.states)


def fifo(case: Case) -> Iterator[Violation]:
    """Judge FIFO: messages of a channel are received and processed in the order in which they were sent, the end last.

    What a source sends is in the order of its sequence.
    """
    for channel, kept in case.history.channels.items():
        sent, taken = case.in_place(channel, "sent"), case.in_place(channel, "taken")
        if taken != sent[: len(taken)]:
            index = next(i for i, m in enumerate(taken) if i >= len(sent) or m != sent[i])
            turn = f"{sent[index]} was next" if index < len(sent) else "nothing more was sent"
            yield Violation("FIFO", f"{taken[index]} was taken from {channel} where {turn}", case.history.end_ns)
        for message in kept.sent[kept.end :][:1] if kept.end is not None else ():
            yield Violation("FIFO", f"{message} was sent on {channel} after the end", case.history.end_ns)
        wrong = case.out_of_order(channel)
        if wrong is not None:
            message, turn = wrong[0], f"{wrong[1]} was next" if wrong[1] is not None else "nothing more was sent"
            yield Violation("FIFO", f"{message} took effect on {channel} where {turn}", case.when(channel, message))
    for source in case.topology.sources:
        for channel in case.topology.outputs(source):
            last: MessageView | None = None
            for event in cast(list[MessageView], _made_here(case, channel)):
                if last is not None and event.sequence <= last.sequence:
                    yield Violation("FIFO", f"{source} sent {event} on {channel} after {last}", case.history.end_ns)
                last = event


def once(case: Case) -> Iterator[Violation]:
    """Judge ONCE: at most one snapshot per task and checkpoint; of a completed one exactly one, unless the task had
    finished.

    Each is acknowledged before the checkpoint counts as complete (protocol rule 20).
    """
    for name, task in case.history.tasks.items():
        for checkpoint_id, count in Counter(each.checkpoint_id for each in task.cuts).items():
            for reason in equations.cut_again(name, checkpoint_id, count):
                at_ns = [each.at_ns for each in task.cuts if each.checkpoint_id == checkpoint_id][1]
                yield Violation("ONCE", reason, at_ns)
    for checkpoint_id, completion in case.history.completed.items():
        for what in (equations.SNAPSHOT, equations.ACKNOWLEDGEMENT):
            for name, then in completion.tasks.items():
                if what in equations.lacking(*then):
                    yield Violation("ONCE", equations.completed_without(checkpoint_id, what, name), completion.at_ns)


def fwd(case: Case) -> Iterator[Violation]:
    """Judge FWD: on each output the barrier separates the effects of input before it from those of input behind it.

    Of an unaligned one nothing is asked but that it is sent before what input behind it caused: CUT has the rest; at
    least once, that it is sent behind what input ahead of it caused.
    The cause of what a task sends is the message that took effect last: it takes nothing while its outbox waits. A
    source is its own cause; CUT asks whether its barrier overtook an event.
    """
    completed, permits_orphans = sorted(case.history.completed), case.limits.permits_orphans
    for name, task in case.history.tasks.items():
        for (at_ns, _, _, channel, message), (_, _, _, came_on, cause), side, cause_side in task.suspects:
            low, high = sorted((side, cause_side))
            for between in completed[bisect_right(completed, low) : bisect_right(completed, high)]:
                if equations.separates(between, side, cause_side, between in task.unaligned, permits_orphans):
                    out, into = ("ahead of", "behind") if side < cause_side else ("behind", "ahead of")
                    reason = (
                        f"{name} sent {message} on {channel} {out} barrier {between}, "
                        f"but its cause {cause} came {into} barrier {between} on {came_on}"
                    )
                    yield Violation("FWD", reason, at_ns)
                    break


def noloss(case: Case) -> Iterator[Violation]:
    """Judge NOLOSS: each message received is processed exactly once, or is still buffered; every event made is sent.

    A barrier or cancel may have none of its own if it is ignored, or its checkpoint aborted.
    """
    for channel, kept in case.history.channels.items():
        if kept.taken == [*kept.applied, *kept.waiting]:
            continue
        taken = case.events(channel, "taken")
        settled = case.events(channel, "applied") + case.events(channel, "waiting")
        in_hand = taken[len(settled) :]  # a run that was cut off may end before a full gate took its last message
        if settled != taken and not (case.cut_off and len(in_hand) == 1 and settled == taken[:-1]):
            want, have = Counter(taken), Counter(settled)
            for event in want - have:
                effect = f"took effect {_times(have[event])}" if have[event] else "never took effect"
                reason = f"{event} was taken {_times(want[event])} from {channel} and {effect}"
                yield Violation("NOLOSS", reason, case.history.end_ns)
            for event in have - want:
                reason = f"{event} took effect on {channel} {_times(have[event])}, and was taken {_times(want[event])}"
                yield Violation("NOLOSS", reason, case.when(channel, event))
        yield from _swallowed(case, channel)
    for source in case.topology.sources:
        made = case.history.tasks[source].made
        outputs_of = case.topology.outputs(source)
        for edge, exchange, outputs in case.topology.output_groups(source):
            by_channel = [_made_here(case, outputs_of[index]) for index in outputs]
            for sent in by_channel if exchange == "broadcast" else [_merged(by_channel)]:
                ended = all(case.history.channels[outputs_of[index]].end is not None for index in outputs)
                due = made if ended else made[: len(sent)]  # the last ones may wait in the outbox
                if sent != due:
                    yield from _not_sent(case, source, edge, due, sent)


def wm(case: Case) -> Iterator[Violation]:
    """Judge WM: a watermark overtakes no event and never goes back; a task's is the least of its open inputs.

    No more than that, and once every source has finished no less: what came again after a restore goes on again.
    """
    for channel, kept in case.history.channels.items():
        if case.out_of_order(channel) is not None:
            yield from _overtaken(case, channel, kept)
    yield from case.seen("WM")
    if not case.cut_off and all(case.history.tasks[each].finished_ns is not None for each in case.topology.sources):
        for name, task in case.history.tasks.items():
            for channel, mark in zip(task.outputs, task.marks, strict=True):
                if task.watermark_ms is not None and (mark is None or mark < task.watermark_ms):
                    reason = f"{name} never sent watermark {task.watermark_ms} on {channel}"
                    yield Violation("WM", reason, case.history.end_ns)


def ids(case: Case) -> Iterator[Violation]:
    """Judge ID: ids and epochs processed at a task strictly increase; so do those triggered, and those completed."""
    start = case.history.start
    last = start.newest_id if start is not None else 0
    for checkpoint_id, at_ns in case.history.triggers:
        late = equations.triggered_late(checkpoint_id, last)
        if late is not None:
            yield Violation("ID", late, at_ns)
        last = max(last, checkpoint_id)
    triggered, last = {checkpoint_id for checkpoint_id, _ in case.history.triggers}, 0
    for checkpoint_id, completion in case.history.completed.items():
        for reason in equations.completed_out_of_turn(checkpoint_id, last, checkpoint_id in triggered):
            yield Violation("ID", reason, completion.at_ns)
        last = max(last, checkpoint_id)
    yield from case.seen("ID")


def live(case: Case) -> Iterator[Violation]:
    """Judge LIVE: every triggered checkpoint ends, once; nothing waits for one that has ended; nothing is stuck."""
    history = case.history
    for name, at_ns in history.stuck:
        yield Violation("LIVE", f"nothing can move any more, though {name} has events to give off", at_ns)
    ended: dict[int, str] = {}
    for checkpoint_id, verb, at_ns in history.ends:
        for reason in equations.ended_again(checkpoint_id, verb, ended.get(checkpoint_id)):
            yield Violation("LIVE", reason, at_ns)
        ended.setdefault(checkpoint_id, f"was {verb}")
    for reason in _unsettled(case, surely=True):
        yield Violation("LIVE", reason, history.end_ns)
    if not case.cut_off:
        for reason in _unsettled(case, surely=False):
            yield Violation("LIVE", reason, history.end_ns)
        if all(history.tasks[source].finished_ns is not None for source in case.topology.sources):
            for channel, kept in history.channels.items():
                for message in kept.sent[len(kept.taken) :][:1]:
                    yield Violation("LIVE", f"{message} is left behind in {channel}", history.end_ns)
                for message in list(kept.waiting)[:1]:
                    yield Violation("LIVE", f"{message} of {channel} is buffered for ever", history.end_ns)
            for name, task in history.tasks.items():
                if task.finished_ns is None:
                    yield Violation("LIVE", f"{name} never ends, though every source has", history.end_ns)


def bound(case: Case) -> Iterator[Violation]:
    """Judge BOUND: no configured limit is exceeded."""
    limits = case.limits
    for channel, kept in case.history.channels.items():
        capacity = limits.channel_capacity.get(channel)
        if capacity is not None and kept.deepest > capacity:
            reason = f"{kept.deepest} messages were in {channel} at a time; its capacity is {capacity}"
            yield Violation("BOUND", reason, kept.deepest_ns)
        what = f"messages of {channel} were buffered at a time"
        for reason in equations.beyond(kept.most_buffered, what, limits.max_buffer_per_input):
            yield Violation("BOUND", reason, kept.most_buffered_ns)
    for name, task in case.history.tasks.items():
        what = f"bytes were buffered at {name} at a time"
        for reason in equations.beyond(task.most_buffered_bytes, what, limits.max_buffer_memory_bytes):
            yield Violation("BOUND", reason, task.most_buffered_bytes_ns)
        for cut in task.cuts:
            recorded = task.recorded_bytes.get(cut.checkpoint_id, 0)
            what = f"bytes were recorded at {name} for checkpoint {cut.checkpoint_id}"
            if cut.checkpoint_id not in task.aborted:
                for reason in equations.beyond(recorded, what, limits.max_inflight_buffer_bytes):
                    yield Violation("BOUND", reason, cut.at_ns)


INVARIANTS: dict[str, Invariant] = {
    "CUT": cut,
    "FIFO": fifo,
    "ONCE": once,
    "FWD": fwd,
    "NOLOSS": noloss,
    "WM": wm,
    "ID": ids,
    "LIVE": live,
    "BOUND": bound,
}


def rec(
    run: Run, guarantees: Mapping[str, str], states: States | None, cut_off: bool, repeats: bool = False
) -> Iterator[Violation]:
    """Judge REC: after a restore every source event takes effect exactly once, on states and on the committed output.

    At least once if it `repeats`. See `model.spec.exactly_once`.
    """
    at_start = states.at_start if states is not None else _state_of_the_cut
    for reason, at_ns in exactly_once.reasons(run, guarantees, at_start, cut_off, repeats):
        yield Violation("REC", reason, at_ns)


RUN_INVARIANTS = {"REC": rec}

MEANING = {
    "CUT": "what a sender had sent before its cut, its receiver had taken before its own, or it is recorded",
    "FIFO": "messages of a channel take effect in channel order",
    "ONCE": "a task takes one snapshot a checkpoint",
    "FWD": "a barrier leaves between what came of input ahead of it and what came of input behind it",
    "NOLOSS": "every event taken from a channel is processed exactly once",
    "WM": "a watermark takes effect after all events before it, and never goes back",
    "ID": "checkpoint ids strictly increase at every task",
    "LIVE": "every checkpoint that is begun ends everywhere, and nothing stays blocked",
    "BOUND": "no buffer grows beyond its limit",
    "REC": "after a restore every event of a source has its effect as often as its sink promises, inside and outside",
    "RAISED": "no machine of the system under test raises",
}
"""A sentence for each, as reports have it, and for `RAISED`, which no history shows."""

PREMISES = {
    "CUT": "channels of completed checkpoints with something sent before the cut",
    "FIFO": "channels that carried two messages or more",
    "ONCE": "completed checkpoints, times the tasks",
    "FWD": "events and watermarks sent by operators at which a barrier took effect",
    "NOLOSS": "events that were taken from a channel",
    "WM": "watermarks that took effect at a task",
    "ID": "checkpoints that were triggered, and barriers that took effect",
    "LIVE": "checkpoints that were triggered, and attempts in which every source ended",
    "BOUND": "limits that something was counted against",
    "REC": "restores of the job",
}
"""By invariant, what must occur in a run for it to be asked at all; `Verdict.premises` counts it.

An invariant whose premise was never met holds of nothing: the verdict is vacuous there, and says so.
"""

SITUATIONS = {
    "in flight": "channels of completed checkpoints with something sent, and not taken, before the cut",
    "buffered": "channels of which messages waited behind a barrier",
}
"""The situations that make a run a harder test of CUT and FIFO, which are asked without; counted beside `PREMISES`."""


def judge(
    history: History,
    topology: Topology,
    limits: Limits | None = None,
    fold: Fold | None = None,
    cut_off: bool = False,
    guarantees: Mapping[str, str] | None = None,
) -> Verdict:
    """Judge the `history` of a run of one attempt on `topology` by all invariants.

    The rest is as for `judge_run`.
    """
    assert history.topology is topology
    return judge_attempts(Run.single(history), limits, fold, cut_off, guarantees)


def judge_run(
    entries: Iterable[Entry],
    topology: Topology,
    limits: Limits | None = None,
    fold: Fold | None = None,
    cut_off: bool = False,
    guarantees: Mapping[str, str] | None = None,
) -> Verdict:
    """Judge the journal `entries` of a run on `topology` by all invariants.

    Parameters
    ----------
    entries : iterable of Entry
    topology : Topology
    limits : Limits, optional
        For BOUND; its consistency for CUT, FWD and REC.
    fold : Fold, optional
        For CUT and REC: recomputes each task's state from exactly what took effect before its cut. Asked once per
        snapshot of a complete checkpoint, with what took effect since the one before. None for an answer: not to be
        compared.
    cut_off : bool, optional
        The run was stopped, and did not end by itself: what is pending then may yet end well. It makes the verdict
        undecided instead of broken.
    guarantees : mapping of str to str, optional
        For REC: by sink task, one of `recovery.SHOWS`. A sink that is not named has shown nothing.

    Raises
    ------
    HistoryError
        If the journal is none of this topology.
    ValueError
        If there is no such guarantee, or no such sink.
    """
    return judge_attempts(Run.of(entries, topology), limits, fold, cut_off, guarantees)


def judge_attempts(
    run: Run,
    limits: Limits | None = None,
    fold: Fold | None = None,
    cut_off: bool = False,
    guarantees: Mapping[str, str] | None = None,
    states: States | None = None,
) -> Verdict:
    """Judge the attempts of a journal that has been read, as `judge_run`.

    An attempt that was ended by a crash owes nothing that only a longer one would show. `states` are given instead of
    a `fold` where they have come to a place already (`model.spec.settled`).
    """
    guarantees = guarantees or {}
    for sink, guarantee in guarantees.items():
        if sink not in run.topology.sinks or guarantee not in exactly_once.SHOWS:
            names, kinds = ", ".join(run.topology.sinks), ", ".join(exactly_once.SHOWS)
            raise ValueError(f"no sink guarantees {sink}={guarantee}; the sinks are {names}, and they may be {kinds}")
    states = States(fold) if fold is not None else states
    cases = [Case(attempt, limits or Limits(), states, cut_off) for attempt in run.attempts]
    judged: dict[str, Iterator[Violation]] = {
        name: chain.from_iterable(map(invariant, cases)) for name, invariant in INVARIANTS.items()
    }
    repeats = cases[0].limits.permits_orphans
    judged.update((name, whole(run, guarantees, states, cut_off, repeats)) for name, whole in RUN_INVARIANTS.items())
    violations: list[Violation] = []
    more: dict[str, int] = {}
    for name, found in judged.items():
        for count, violation in enumerate(found):
            if count < MOST_LISTED:
                violations.append(violation)
            else:
                more[name] = more.get(name, 0) + 1
    undecided = tuple(_unsettled(cases[-1], surely=False)) if cut_off and not run.attempts[-1].crashed else ()
    verdict = "broken" if violations else "undecided" if undecided else "holds"
    return Verdict(verdict, tuple(violations), more, undecided, _premises(cases))


def _premises(cases: Sequence[Case]) -> dict[str, int]:
    """Return the counts of `PREMISES` and `SITUATIONS` over all attempts of a run."""
    counts = dict.fromkeys((*PREMISES, *SITUATIONS), 0)
    counts["REC"] = len(cases) - 1
    for case in cases:
        history, limits = case.history, case.limits
        triggered = len(history.triggers)
        ended = all(history.tasks[source].finished_ns is not None for source in case.topology.sources)
        counts["LIVE"] += triggered + (ended and not case.cut_off)
        counts["ID"] += triggered
        counts["ONCE"] += len(history.completed) * len(history.tasks)
        for channel, kept in history.channels.items():
            sender, receiver = case.topology.ends(channel)
            sent, applied = case.events(channel, "sent"), case.events(channel, "applied")
            for checkpoint_id in case.attempt.complete:
                left = _before(history, sender, checkpoint_id, channel, len(sent))
                right = _before(history, receiver, checkpoint_id, channel, len(applied))
                counts["CUT"] += left is not None and left + kept.forgotten > 0
                counts["in flight"] += left is not None and right is not None and left > right
            counts["CUT"] += kept.cuts_settled
            counts["in flight"] += kept.cuts_in_flight
            counts["FIFO"] += len(kept.sent) + kept.forgotten > 1
            counts["NOLOSS"] += len(case.events(channel, "taken")) + kept.forgotten
            counts["buffered"] += kept.most_buffered > 0
            counts["BOUND"] += channel in limits.channel_capacity and kept.deepest > 0
            counts["BOUND"] += limits.max_buffer_per_input is not None and kept.most_buffered > 0
        for task in history.tasks.values():
            marks = Counter(step[1] for step in task.controls if kind_of(step[4]) == "Watermark")
            blocks = sum(step[1] == "block" for step in task.controls)
            counts["WM"] += marks["deliver"]
            counts["ID"] += blocks
            if blocks:
                sent_of = [len(case.events(c, "sent")) + history.channels[c].forgotten for c in task.outputs]
                counts["FWD"] += marks["send"] + sum(sent_of)
            counts["BOUND"] += limits.max_buffer_memory_bytes is not None and task.most_buffered_bytes > 0
            counts["BOUND"] += limits.max_inflight_buffer_bytes is not None and any(task.recorded_bytes.values())
    return counts


class States:
    """The states of all tasks at their cuts, folded from the events applied before.

    A fold goes on from one attempt to the next as long as the next begins where it stands; else it starts from the
    initial state.
    """

    __slots__ = ("_fold", "_stands")

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        # By task: the fold, the attempt and the step that it has come to, and the digest there.
        self._stands: dict[str, tuple[Callable[[Sequence[Applied]], str | None], Attempt, int, str | None]] = {}

    def at(self, attempt: Attempt, task: str, step: int) -> str | None:
        """Return the digest of the state of `task` after this many steps of `attempt`."""
        stands = self._stands.get(task)
        if stands is not None and stands[1] is attempt and stands[2] == step:
            return stands[3]
        stretch: list[Applied] = []
        if stands is not None and stands[1] is attempt and stands[2] < step:
            digest_after, done = stands[0], stands[2]
        elif attempt.parent is None:
            digest_after, done = self._fold(task), 0
        else:
            self.at(attempt.parent, task, attempt.parent.steps(task, attempt.restored_id))
            digest_after, done = self._stands[task][0], 0
            stretch = [RESTORED]
        if type(digest_after) is not SameState:
            stretch += changes_of_state(attempt.history.tasks[task].steps[done:step])
        digest = digest_after(stretch)
        self._stands[task] = digest_after, attempt, step, digest
        return digest

    def stand(self, attempt: Attempt, task: str, fold: Callable[[Sequence[Applied]], str | None], step: int) -> None:
        """Let the fold of a task continue from the step of an attempt that it has reached."""
        self._stands[task] = fold, attempt, step, fold(())

    def at_start(self, attempt: Attempt, task: str) -> str | None:
        """Return the digest of the state to which `task` must be restored."""
        if attempt.parent is None:
            return self._fold(task)(())
        cut = attempt.parent.cut(task, attempt.restored_id)
        return cut.digest if cut is not None else self.at(attempt.parent, task, attempt.parent.steps(task))


def _state_of_the_cut(attempt: Attempt, task: str) -> str | None:
    """Return `States.at_start`, as far as the journal has it."""
    cut = attempt.parent.cut(task, attempt.restored_id) if attempt.parent is not None else None
    return cut.digest if cut is not None else None


# How each looks closer.


def _before(history: History, task: str, checkpoint_id: int, channel: str, everything: int) -> int | None:
    """Return the number of events of `channel` before the cut of `task`: all if it had finished, None if it has no
    cut.
    """
    kept = history.cuts.get((task, checkpoint_id))
    if kept is not None:
        return kept.sent[channel] if channel in kept.sent else kept.applied[channel]
    return everything if history.tasks[task].finished_ns is not None else None


class _Open:
    """The events of a channel that were sent and not applied: kept from one cut to the next."""

    __slots__ = ("_applied", "_counts", "_done", "_sent")

    def __init__(self, sent: list[object], applied: list[object]) -> None:
        self._sent, self._applied = sent, applied
        self._done = (0, 0)
        self._counts: dict[object, int] = {}  # no zeros

    def less(self, sent_count: int, applied_count: int, recorded: list[object]) -> dict[object, int]:
        """Return those before the cuts that have so many events before them, without the `recorded` ones."""
        sent_done, applied_done = self._done
        self._done = sent_count, applied_count
        counts = self._counts
        _add(counts, self._sent[sent_done:sent_count], 1)
        _add(counts, self._sent[sent_count:sent_done], -1)
        _add(counts, self._applied[applied_done:applied_count], -1)
        _add(counts, self._applied[applied_count:applied_done], 1)
        if recorded:
            counts = counts.copy()
            _add(counts, recorded, -1)
        return counts


def _add(counts: dict[object, int], events: list[object], number: int) -> None:
    for event in events:
        count = counts.get(event, 0) + number
        if count:
            counts[event] = count
        else:
            del counts[event]


def _unbalanced(left: list[object], right: list[object], less: Mapping[object, int]) -> Iterator[str]:
    """Yield the reasons why the sides of the equation differ, with room for the checkpoint and the receiver."""
    for event, count in less.items():
        if count < 0:
            yield f"{event} is an orphan in checkpoint {{}} of {{}}: taken before the cut, sent after"
        else:
            yield f"{event} is lost to checkpoint {{}} of {{}}: sent before the cut, taken after"
    if not less:
        event = next(one for one, other in zip(left, right, strict=True) if one != other)
        yield f"{event} is out of order in checkpoint {{}} of {{}}: it was sent in another place than taken"


def _folded(case: Case, task: str, states: States) -> Iterator[Violation]:
    """Check that the state at each cut of `task` for a completed or restored checkpoint is the fold."""
    for kept in case.history.tasks[task].cuts:
        if kept.checkpoint_id in case.attempt.complete and not kept.is_right:
            digest = states.at(case.attempt, task, kept.step)
            if digest is not None and digest != kept.digest:
                yield Violation("CUT", _other_state(task, kept, digest), kept.at_ns)


def _other_state(task: str, kept: Cut, digest: str) -> str:
    return (
        f"{OF_A_STATE}{task} in checkpoint {kept.checkpoint_id} is {kept.digest}; "
        f"what took effect before the cut makes {digest}"
    )


def _out_of_order(
    sent: list[object], applied: list[object], without_effect: list[object], aborted: Container[int]
) -> tuple[object, object] | None:
    """Return `Case.out_of_order`. A barrier or cancel may be skipped if it was ignored, or its checkpoint aborted."""
    if applied == sent[: len(applied)]:
        return None
    ignored = Counter(without_effect)
    turn = iter(sent)
    for message in applied:
        for other in turn:
            if other is message or other == message:
                break
            if kind_of(other) not in ("CheckpointBarrier", "CancelBarrier"):
                return message, other
            if ignored[other]:
                ignored[other] -= 1
            elif not equations.has_no_effect(other, aborted):
                return message, other
        else:
            return message, None
    return None


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _merged(by_channel: list[list[object]]) -> list[object]:
    """Return the events of all channels of a source, in the order in which it made them."""
    if len(by_channel) == 1:
        return by_channel[0]
    return sorted(
        (event for events in by_channel for event in events), key=lambda event: cast(MessageView, event).sequence
    )


def _made_here(case: Case, channel: str) -> list[object]:
    """Return the events of a source's channel that it made in this attempt."""
    return case.events(channel, "sent")[case.history.sent_before(channel) :]


def _not_sent(case: Case, source: str, edge: str, due: list[object], sent: list[object]) -> Iterator[Violation]:
    """Yield where the events that a source `sent` on an edge are not those that were `due`."""
    want, have = Counter(due), Counter(sent)
    for event in (want - have) + (have - want):
        reason = f"{source} made {event} {_times(want[event])} and sent it {_times(have[event])} on {edge}"
        yield Violation("NOLOSS", reason, case.history.end_ns)
    if want == have:
        event = next(one for one, other in zip(due, sent, strict=True) if one != other)
        reason = f"{source} made {event} in another place than it sent it on {edge}"
        yield Violation("NOLOSS", reason, case.history.end_ns)


def _swallowed(case: Case, channel: str) -> Iterator[Violation]:
    """Yield watermarks, barriers, cancels and ends that were received and never processed."""
    kept = case.history.channels[channel]
    settled = Counter(m for m in [*kept.applied, *kept.ignored, *kept.waiting] if kind_of(m) != "Event")
    aborted = kept.receiver.aborted
    for message, count in (Counter(m for m in kept.taken if kind_of(m) != "Event") - settled).items():
        if not equations.has_no_effect(message, aborted):
            if not (case.cut_off and count == 1 and message == kept.taken[-1]):
                yield Violation("NOLOSS", f"{message} was taken from {channel} and had no effect", case.history.end_ns)


def _overtaken(case: Case, channel: str, kept: ChannelHistory) -> Iterator[Violation]:
    """Return events of a channel that were not applied when a watermark sent behind them was."""
    ahead: dict[object, int] = {}  # events sent so far, less those that took effect
    turn = iter(kept.sent)
    for mark in kept.applied:
        if kind_of(mark) == "Event":
            _add(ahead, [mark], -1)
        if kind_of(mark) != "Watermark":
            continue
        for message in turn:
            if message == mark:
                break
            if kind_of(message) == "Event":
                _add(ahead, [message], 1)
        overtaken = [event for event, count in ahead.items() if count > 0]
        for event in overtaken:
            del ahead[event]  # it is enough to say so once
            reason = f"{mark} took effect on {channel} before {event}, which was sent ahead of it"
            yield Violation("WM", reason, case.when(channel, mark))


def _unsettled(case: Case, surely: bool) -> Iterator[str]:
    """Yield what had not ended when the journal did: `surely` says that it can no longer end."""
    history = case.history
    if not surely:
        for checkpoint_id, _ in history.triggers:
            if checkpoint_id not in history.completed and checkpoint_id not in history.aborted:
                yield f"checkpoint {checkpoint_id} was triggered and never ends"
    for name, task in history.tasks.items():
        for channel, checkpoint_id in zip(task.inputs, task.blocked, strict=True):
            if not checkpoint_id:
                continue
            if surely and checkpoint_id in history.completed:
                yield f"{name} still waits on {channel} for checkpoint {checkpoint_id}, which was completed"
            elif not surely and checkpoint_id in history.aborted:
                yield f"{name} still waits on {channel} for checkpoint {checkpoint_id}, which was aborted"
