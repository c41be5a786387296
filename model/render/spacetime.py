"""A trace laid out in space and time: a line for each process, an arrow for each message, a mark for each event.

This is what every picture of a trace is drawn from, whatever its format. Places in time are steps, not seconds: an
untimed counterexample and a timed run read alike, and nothing hides because it happened at one instant.

A message belongs to a side of the cut at its sender and to one at its receiver. Sent ahead of the cut and taken behind
it, it is in flight, and has to be recorded; sent behind and taken ahead, it is an orphan, which no consistent cut has
(Chandy and Lamport 1985; Mattern 1989).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain

from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.history import COORDINATOR, Entry, History
from barrierlab.model.spec.messages import kind_of
from barrierlab.model.spec.topology import Topology


class Fate(Enum):
    """The side of a message towards the cut that the picture is about."""

    AHEAD = "ahead of the cut"
    BEHIND = "behind the cut"
    IN_FLIGHT = "in flight, recorded"
    ORPHAN = "an orphan: taken ahead of the cut, sent behind it"
    LOST = "lost: sent ahead of the cut, taken behind it, not recorded"
    TWICE = "counted twice: taken ahead of the cut, and recorded as in flight"
    EARLY = "an orphan: sent behind the cut, and recorded as in flight"


FAULTY = (Fate.ORPHAN, Fate.LOST, Fate.TWICE, Fate.EARLY)


@dataclass(slots=True)
class Arrow:
    """A message from the step at which it was sent to the one at which it took effect.

    Attributes
    ----------
    kind : str
        Of the message: ``"Event"``, ``"CheckpointBarrier"``...
    sent, taken, applied : int or None
        Steps; None if the trace does not show it. A message that is taken and applied later was buffered between.
    gone : int or None
        The step at which the job was restored while this was on its way, or buffered.
    ignored : bool
        Whether it was taken and had no effect.
    recorded_by : set of int
        The checkpoints that recorded it as in flight.
    restored_in_flight : bool
        Whether it came out of a checkpoint, not from its sender.
    fate : Fate or None
        Of an event on a channel of the cut; None for the others.
    """

    channel: str
    sender: str
    receiver: str
    message: object
    kind: str
    sent: int | None
    taken: int | None = None
    applied: int | None = None
    gone: int | None = None
    ignored: bool = False
    recorded_by: set[int] = field(default_factory=set)
    restored_in_flight: bool = False
    fate: Fate | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened at one process: a snapshot, a completion, a crash.

    Attributes
    ----------
    kind : str
        The verb of the journal.
    text : str
        For a reader.
    """

    process: str
    step: int
    kind: str
    text: str


SIGNS = (
    ("black bar", "snapshot"),
    ("dashed", "cut"),
    ("broad", "buffered behind its barrier"),
    ("ring", "recorded"),
)
"""The signs of a picture of a dataflow with checkpoints."""


@dataclass(slots=True)
class SpaceTime:
    """A trace, laid out.

    Attributes
    ----------
    processes : tuple of str
        The tasks in the order of the topology, and the coordinator.
    times_ns : list of int
        Of each step.
    arrows : list of Arrow
        By the step at which they were sent.
    marks : list of Mark
    restores : list of int
        The steps at which the whole job was restored.
    checkpoint_id : int or None
        The one whose cut the picture is about.
    cut : dict of str to int
        The step of each task's snapshot for it.
    step_of_entry : list of int
        The step of each entry of the journal; of the whole of it alone.
    focus : int
        The first step that is of interest where there is no cut.
    signs : tuple of (str, str)
        For the legend: a sign, and what it means.
    """

    processes: tuple[str, ...]
    times_ns: list[int] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    restores: list[int] = field(default_factory=list)
    checkpoint_id: int | None = None
    cut: dict[str, int] = field(default_factory=dict)
    step_of_entry: list[int] = field(default_factory=list)
    focus: int = 0
    signs: tuple[tuple[str, str], ...] = SIGNS

    def part(self, most: int) -> SpaceTime:
        """Return so many steps of it at most, from a little ahead of what is of interest."""
        count = len(self.times_ns)
        if count <= most:
            return self
        first = max(0, min(self.focus - most // 6, count - most))
        last = first + most - 1
        return self._with(
            range(first, last + 1),
            [arrow for arrow in self.arrows if _touches(arrow, first, last)],
            [mark for mark in self.marks if first <= mark.step <= last],
        )

    def steps_around_cut(self, margin: int = 12) -> range:
        """Return the steps from the trigger of the checkpoint to its end, and `margin` on either side; all without."""
        if self.checkpoint_id is None:
            return range(len(self.times_ns))
        own = [m.step for m in self.marks if m.text in self._names_of_cut()] + list(self.cut.values())
        first, last = min(own, default=0) - margin, max(own, default=0) + margin
        return range(max(first, 0), min(last, len(self.times_ns) - 1) + 1)

    def around_cut(self) -> SpaceTime:
        """Return the part of it at the steps around the cut."""
        if self.checkpoint_id is None:
            return self
        steps = self.steps_around_cut()
        first, last = steps[0], steps[-1]
        return self._with(
            steps,
            [arrow for arrow in self.arrows if _touches(arrow, first, last)],
            [mark for mark in self.marks if first <= mark.step <= last],
        )

    def without_events(self) -> SpaceTime:
        """The walk of the checkpoint's barrier alone, and the events that are in flight, lost or orphans at its cut."""
        fates = (*FAULTY, Fate.IN_FLIGHT)
        arrows = [
            a for a in self.arrows if a.fate in fates or _checkpoint_of(a.message) == self.checkpoint_id is not None
        ]
        marks = [m for m in self.marks if m.kind != ">emit" and str(self.checkpoint_id) in m.text.split()]
        steps = {mark.step for mark in marks} | set(self.cut.values()) | set(self.restores)
        steps |= {step for arrow in arrows for step in (arrow.sent, arrow.taken, arrow.applied) if step is not None}
        return self._with(sorted(steps), arrows, marks)

    def _with(self, steps: Sequence[int], arrows: list[Arrow], marks: list[Mark]) -> SpaceTime:
        """Return the diagram with these arrows and marks alone, at these steps, which become 0, 1, 2..."""

        def place(step: int | None) -> int | None:
            return None if step is None or step > steps[-1] else bisect_left(steps, step)

        times_ns = [self.times_ns[step] for step in steps]
        drawn = SpaceTime(self.processes, times_ns, checkpoint_id=self.checkpoint_id, signs=self.signs)
        drawn.arrows = [
            replace(a, sent=place(a.sent), taken=place(a.taken), applied=place(a.applied), gone=place(a.gone))
            for a in arrows
        ]
        drawn.marks = [replace(mark, step=bisect_left(steps, mark.step)) for mark in marks]
        drawn.restores = [bisect_left(steps, step) for step in self.restores if steps[0] <= step <= steps[-1]]
        drawn.cut = {process: bisect_left(steps, step) for process, step in self.cut.items()}
        return drawn

    def _names_of_cut(self) -> set[str]:
        return {MARKS[verb].format(self.checkpoint_id) for verb in (">trigger", "completed", "aborted")}


MARKS = {
    ">emit": "{}",
    ">trigger": "trigger {}",
    ">inject": "command {}",
    ">finish": "finished",
    ">crash": "crash",
    ">stall": "stalls",
    ">stuck": "is stuck",
    ">expire": "time is up",
    ">notify": "notified: {} is complete",
    "snapshot": "snapshot {}",
    "complete": "part {} whole",
    "decline": "declines {}",
    "cancel": "cancels {}",
    "completed": "{} complete",
    "aborted": "{} aborted",
    "restored": "back at {}",
    "prepare": "prepares {}",
    "commit": "commits {}",
    "rollback": "rolls {} back",
    "write": "writes {}",
    "upsert": "writes {}",
}
"""The verbs that become marks, and what a reader sees."""


def lay_out(entries: Sequence[Entry], topology: Topology, checkpoint_id: int | None = None) -> SpaceTime:
    """The journal `entries` in space and time.

    Parameters
    ----------
    entries : sequence of Entry
    topology : Topology
    checkpoint_id : int, optional
        Whose cut to draw; the last one that completed, or else the last that any task took part in.

    Raises
    ------
    HistoryError
        If the journal is not one of `topology`.
    """
    drawn = SpaceTime((*topology.tasks, COORDINATOR))
    layout = _Layout(drawn, topology)
    for entry in entries:
        layout.add(entry)
    drawn.step_of_entry = layout.steps
    _choose_cut(drawn, checkpoint_id)
    for attempt, (first, last) in zip(Run.of(entries, topology).attempts, _attempts(entries), strict=True):
        if first < last:
            _judge_fates(drawn, attempt.history, layout.steps[first], layout.steps[last - 1])
    return drawn


class _Layout:
    """The state of the laying out: what is on its way on each channel, and what is buffered."""

    def __init__(self, drawn: SpaceTime, topology: Topology) -> None:
        self.drawn = drawn
        self.topology = topology
        self.on_way: dict[str, deque[Arrow]] = {}
        self.buffered: dict[str, list[Arrow]] = {}
        self.latest: dict[tuple[str, object], Arrow] = {}
        self.awaited: dict[tuple[str, object], set[int]] = {}  # recorded by its sender while it is in the outbox
        self.steps: list[int] = []  # of each entry

    def add(self, entry: Entry) -> None:
        """Add the next entry: a step of its own if it shows."""
        at_ns, verb, node, channel, subject = entry
        drawn = self.drawn
        shows = verb in MARKS or verb in ("send", "take", "deliver", "block", "end", "restored_in_flight", ">restore")
        if shows or not drawn.times_ns:
            drawn.times_ns.append(at_ns)
        step = len(drawn.times_ns) - 1
        self.steps.append(step)
        if verb in MARKS:
            what = subject[0] if isinstance(subject, tuple) else subject
            text = MARKS[verb].format("" if what is None else what).strip()
            drawn.marks.append(Mark(node, step, verb, text))
        elif verb == ">restore":
            drawn.restores.append(step)
            for arrow in chain(*self.on_way.values(), *self.buffered.values()):
                arrow.gone = step
            self.on_way.clear()
            self.buffered.clear()
            self.latest.clear()
            self.awaited.clear()
        elif channel is not None:
            self._on_channel(verb, channel, subject, step)

    def _on_channel(self, verb: str, channel: str, subject: object, step: int) -> None:
        if verb in ("send", "restored_in_flight"):
            sender, receiver = self.topology.ends(channel)
            arrow = Arrow(
                channel,
                sender,
                receiver,
                subject,
                kind_of(subject),
                step,
                restored_in_flight=verb == "restored_in_flight",
            )
            self.drawn.arrows.append(arrow)
            self.on_way.setdefault(channel, deque()).append(arrow)
            self.latest[channel, subject] = arrow
            arrow.recorded_by = self.awaited.pop((channel, subject), set())
        elif verb == "take":
            arrow = self._arrived(channel, subject)
            arrow.taken = step
            self.buffered.setdefault(channel, []).append(arrow)
        elif verb in ("deliver", "end", "block", "ignore"):
            for arrow in self.buffered.get(channel, []):
                if arrow.message == subject or (verb == "block" and _checkpoint_of(arrow.message) == subject):
                    arrow.applied, arrow.ignored = step, verb == "ignore"
                    self.buffered[channel].remove(arrow)
                    break
        elif verb == "capture" and isinstance(subject, tuple):
            checkpoint_id, message = subject
            recorded = self.latest.get((channel, message))
            by = self.awaited.setdefault((channel, message), set()) if recorded is None else recorded.recorded_by
            by.add(checkpoint_id)

    def _arrived(self, channel: str, message: object) -> Arrow:
        """The first of its like on the channel: only a barrier is ever taken ahead of others."""
        on_way = self.on_way.setdefault(channel, deque())
        for arrow in on_way:
            if arrow.message == message or _checkpoint_of(arrow.message) == _checkpoint_of(message) is not None:
                on_way.remove(arrow)
                return arrow
        sender, receiver = self.topology.ends(channel)
        arrow = Arrow(channel, sender, receiver, message, kind_of(message), None)  # taken twice, or from nowhere
        self.drawn.arrows.append(arrow)
        return arrow


def _checkpoint_of(message: object) -> int | None:
    """Return the checkpoint of a barrier: it may be sent aligned and received unaligned."""
    return getattr(message, "checkpoint_id", None) if kind_of(message) == "CheckpointBarrier" else None


def _choose_cut(drawn: SpaceTime, wanted: int | None) -> None:
    snapshots = [mark for mark in drawn.marks if mark.kind == "snapshot"]
    completed = [mark.text.split()[0] for mark in drawn.marks if mark.kind == "completed"]
    ids = [*completed, *(mark.text.split()[-1] for mark in snapshots if not completed)]
    drawn.checkpoint_id = wanted if wanted is not None else int(ids[-1]) if ids else None
    for mark in snapshots:
        if mark.text == f"snapshot {drawn.checkpoint_id}":
            drawn.cut.setdefault(mark.process, mark.step)


def _attempts(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """Return where each attempt begins and ends: a restore begins one."""
    starts = [0, *(index for index, entry in enumerate(entries) if entry[1] == ">restore")]
    return list(zip(starts, [*starts[1:], len(entries)], strict=True))


def _judge_fates(drawn: SpaceTime, history: History, begins: int, ends: int) -> None:
    """Give each event of the attempt in which the cut was taken its side, by the counts of the history."""
    checkpoint_id = drawn.checkpoint_id
    if checkpoint_id is None:
        return
    for channel in history.topology.channels:
        sender, receiver = (history.cuts.get((task, checkpoint_id)) for task in history.topology.ends(channel))
        if sender is None or receiver is None:
            continue
        events = [
            arrow
            for arrow in drawn.arrows
            if arrow.channel == channel and arrow.kind == "Event" and begins <= _first_step(arrow) <= ends
        ]
        applied = sorted((arrow for arrow in events if arrow.applied is not None), key=_applied_step)
        ahead = {id(arrow) for arrow in applied[: receiver.applied[channel]]}
        for index, arrow in enumerate(events):
            is_ahead, is_recorded = id(arrow) in ahead, checkpoint_id in arrow.recorded_by
            if index < sender.sent[channel]:
                taken = Fate.TWICE if is_recorded else Fate.AHEAD
                arrow.fate = taken if is_ahead else Fate.IN_FLIGHT if is_recorded else Fate.LOST
            else:
                arrow.fate = Fate.ORPHAN if is_ahead else Fate.EARLY if is_recorded else Fate.BEHIND


def _first_step(arrow: Arrow) -> int:
    step = arrow.sent if arrow.sent is not None else arrow.taken
    assert step is not None, "an arrow begins somewhere"
    return step


def _touches(arrow: Arrow, first: int, last: int) -> bool:
    """Return whether any of an arrow is to be seen between the steps `first` and `last`."""
    end = next((step for step in (arrow.applied, arrow.gone, arrow.taken) if step is not None), None)
    return _first_step(arrow) <= last and (end is None or end >= first)


def _applied_step(arrow: Arrow) -> int:
    assert arrow.applied is not None
    return arrow.applied
