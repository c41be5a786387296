"""The history of a run: a journal of entries, grouped by channel, by task and by checkpoint.

A journal is a flat list of entries ``(time_ns, verb, node, channel, subject)`` in the order in which they happened.
A verb that begins with ``>`` is a *move*, one thing that a whole dataflow can do; the entries up to the next move are
its *effects*. `MOVES` and `EFFECTS` say what each verb means and what its subject is.

This module and `invariants` are the specification. They import nothing of the code under test: a message is known
by the name of its class, and all that is asked of one is a barrier's ``checkpoint_id``, ``epoch`` and
``flags``, a watermark's ``timestamp_ms``, and an event's ``source``, ``sequence`` and ``size_bytes``.

Sent, for a cut, means *caused*: what a task had given off when it took its snapshot belongs before the cut even if it
entered its channel a little later, from the outbox, and before the task took anything new (protocol rules 4 and 8).
An unaligned barrier may be sent ahead of that, and taken ahead of what was sent before it (rule 16).

What a task does is watched as it is read (`model.spec.watch`): the state that judging needs, and what it breaks of ID
and WM.

A ``>restore`` begins a new *attempt* of the job. A `History` is of one attempt; `model.spec.attempts` takes a whole run
apart. What is restored in a channel counts as sent there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, cast

from barrierlab.model.spec.messages import UNALIGNED_FLAG, MessageView, kind_of, size_of
from barrierlab.model.spec.topology import Topology
from barrierlab.model.spec.watch import TaskWatch

Entry = tuple[int, str, str, str | None, object]

COORDINATOR = "coordinator"

# verb: who, what it is about, what it means
MOVES = {
    ">emit": "source, -, event: the source makes an event",
    ">watermark": "source, -, timestamp in ms: the source makes a watermark",
    ">inject": "source, -, id: the source takes the command of a checkpoint",
    ">deliver": "task, channel, late or -: the task takes the head of a channel; late, when it is to go unaligned",
    ">overtake": "task, channel, -: the task takes the first barrier of a channel ahead of its place",
    ">drain": "task, -, late or -: the first message that is buffered and may go steps again",
    ">poll": "task, -, channels or -: the reading loop of the task goes round while these channels are readable",
    ">push": "task, -, -: the outbox goes on, now that there is room",
    ">trigger": "coordinator, -, id: a checkpoint begins",
    ">ack": "task, -, id: the task's acknowledgement is with the coordinator",
    ">decline": "task, -, id: the task's refusal is with the coordinator",
    ">expire": "task or coordinator, -, id or -: its deadline for a checkpoint passes",
    ">abort": "task, -, id: the coordinator's abort reaches the task",
    ">finish": "task, -, -: the task has nothing more to do; the coordinator knows, or will hear of it",
    ">finished": "task, -, -: that the task has nothing more to do is with the coordinator",
    ">stall": "task, -, -: the task stands still",
    ">resume": "task, -, -: the task goes on",
    ">stuck": "source, -, -: it has had events to give off for long, and nothing in the job can move",
    ">publish": "coordinator, -, id: the writing of a checkpoint's manifest has ended",
    ">notify": "task, -, id: the announcement that a checkpoint is complete reaches the task",
    ">crash": "task or coordinator, -, late or -: gone with all that is not stored; late, if a manifest still is",
    ">restore": "coordinator, -, id: every task begins again from a checkpoint; from the beginning if the id is 0",
}
EFFECTS = {
    "take": "task, channel, message: it leaves the channel",
    "deliver": "task, channel, message: an event or a watermark takes effect",
    "end": "task, channel, message: the end of an input takes effect",
    "buffer": "task, channel, message: it waits behind the barrier",
    "ignore": "task, channel, message: a stale or duplicate one has no effect",
    "block": "task, channel, id: the barrier of a checkpoint takes effect; the channel waits",
    "resume": "task, -, id: no channel waits for the checkpoint any more",
    "snapshot": "task, -, (id, digest of the state): the task takes its part of a checkpoint",
    "capture": "task, channel, (id, message): it is recorded as in flight, by the receiver or by the sender",
    "forward": "task, -, barrier: it goes to every output",
    "send": "task, channel, message: it enters the channel",
    "complete": "task, -, id: the task's part is whole",
    "decline": "task, -, (id, reason): the task aborts a checkpoint",
    "cancel": "task, -, id: a cancel marker goes to every output",
    "completed": "coordinator, -, id: the checkpoint is complete",
    "aborted": "coordinator, -, (id, reason): the checkpoint is aborted",
    "restored": "task, -, (id, digest): its state is that of its part of the checkpoint",
    "restored_in_flight": "task, channel, message: it was in flight, and is again: ahead of all that is sent",
    "write": "sink, -, event: it becomes visible in the external system, at once",
    "upsert": "sink, -, event: it becomes visible under its name, in the place of an earlier one",
    "prepare": "sink, -, (transaction, count): so many events can become visible together, and survive a crash",
    "commit": "sink, -, (transaction, events): they become visible; none if they have been already",
    "rollback": "sink, -, transaction: its events never become visible",
}

SHORT = {
    "pass": "task, channel, event: >deliver, take and deliver of an event that takes effect as soon as it is taken",
    "push": "task, channel, event: >push, and send of the event that goes first",
}
"""Verbs that stand for several entries, which are most of a timed run: 7 rows of a message in place of 16.

`expanded` gives the entries. A history can be read from either.
"""
SENDS, DELIVERS = ("send", "push"), ("deliver", "pass")
"""The verbs of a row with which a message enters a channel, and with which one takes effect."""
CHANGES_STATE = frozenset((*DELIVERS, "end", ">emit"))
"""The verbs of a row after which the state of its task may be another."""


def changes_of_state(steps: list[Entry]) -> list[tuple[str | None, object]]:
    """Return those of these steps of a task that change its state: channel and message."""
    return [(step[3], step[4]) for step in steps if step[1] in CHANGES_STATE]


def expanded(rows: Iterable[Entry]) -> Iterator[Entry]:
    """Yield the entries for which `rows` stand, in order."""
    for row in rows:
        verb = row[1]
        if verb == "pass":
            at_ns, _, node, channel, event = row
            yield at_ns, ">deliver", node, channel, None
            yield at_ns, "take", node, channel, event
            yield at_ns, "deliver", node, channel, event
        elif verb == "push":
            at_ns, _, node, channel, event = row
            yield at_ns, ">push", node, None, None
            yield at_ns, "send", node, channel, event
        else:
            yield row


def entry_count(rows: Iterable[Entry]) -> int:
    """Return for how many entries `rows` stand."""
    return sum(3 if row[1] == "pass" else 2 if row[1] == "push" else 1 for row in rows)


class HistoryError(ValueError):
    """Text that is no journal: an entry names something that the topology lacks, or an unknown verb."""


class ChannelHistory:
    """The traffic of one channel.

    Attributes
    ----------
    sender, receiver : TaskHistory
    sent, taken : list of message
        What entered the channel, and what left it, in order.
    applied : list of message
        What took effect at the receiver, in order: events, watermarks, barriers, the end. (For the barrier of an id
        that was never sent here: the id.)
    restored_in_flight : list of message
        Those of `sent` that a restore put there.
    ignored : list of message
        What was taken and had no effect, in order.
    waiting : deque of message
        What is buffered at the receiver when the journal ends.
    forgotten, ahead_of_made : int
        How many events have been judged and forgotten; and how many of `sent` its source made before the first of its
        `made`, which are left.
    cuts_settled, cuts_in_flight : int
        Of the checkpoints that are settled, those with something sent before the cut, and with something in flight.
    deepest, most_buffered : int
        The most messages that were in the channel, and buffered at the receiver, at a time; `deepest_ns` and
        `most_buffered_ns` are the first times of that.
    """

    __slots__ = (
        "ahead",
        "ahead_of_made",
        "applied",
        "applied_controls",
        "barriers",
        "cuts_in_flight",
        "cuts_settled",
        "deepest",
        "deepest_ns",
        "end",
        "forgotten",
        "ignored",
        "input",
        "most",
        "most_buffered",
        "most_buffered_ns",
        "output",
        "receiver",
        "restored_in_flight",
        "sender",
        "sent",
        "sent_controls",
        "taken",
        "taken_controls",
        "waiting",
    )

    def __init__(self, sender: TaskHistory, receiver: TaskHistory) -> None:
        self.sender, self.receiver = sender, receiver
        self.sent: list[object] = []
        self.taken: list[object] = []
        self.applied: list[object] = []
        self.ignored: list[object] = []
        self.restored_in_flight: list[object] = []
        self.waiting: deque[object] = deque()
        self.barriers: dict[int, object] = {}  # the first sent of each id
        self.ahead: set[int] = set()  # barriers on their way that go ahead of all, and need no room (rule 16)
        self.end: int | None = None  # how many messages had been sent with the first end of input
        self.sent_controls: list[int] = []  # the places of those that are no events
        self.taken_controls: list[int] = []
        self.applied_controls: list[int] = []
        self.input = self.output = 0  # the place among the channels of the receiver, and of the sender
        self.forgotten = self.cuts_settled = self.cuts_in_flight = 0
        self.ahead_of_made = 0
        self.deepest = self.deepest_ns = 0
        self.most = 0  # so many more may have been sent than taken without more being in the channel than ever
        self.most_buffered = self.most_buffered_ns = 0

    def deepens(self, at_ns: int) -> None:
        """Note that more may be in the channel than ever. What a restore put there needs no room."""
        depth = len(self.sent) - len(self.taken) - len(self.ahead)
        depth -= max(0, len(self.restored_in_flight) - len(self.taken))
        if depth > self.deepest:
            self.deepest, self.deepest_ns = depth, at_ns
            self.most = depth + len(self.ahead)


class Cut:
    """One task's snapshot for one checkpoint.

    Attributes
    ----------
    sent, applied : dict of str to int
        Per output channel how many events were sent, per input channel how many were applied, before the cut.
    step, made : int
        Where the snapshot stands in the task's `TaskHistory.steps`, and how many events it had made, as a source.
    digest : str
        Of the state that was kept.
    ended : frozenset of str
        The channels whose end had taken effect.
    at_ns : int
        When.
    is_closed, is_right : bool
        Whether `sent` is complete: what left the outbox later is counted, too; and whether the digest has been judged
        to be right.
    """

    __slots__ = (
        "applied",
        "at_ns",
        "checkpoint_id",
        "digest",
        "ended",
        "is_closed",
        "is_right",
        "made",
        "sent",
        "step",
        "task",
    )

    def __init__(self, task: str, checkpoint_id: int, digest: str, step: int, made: int, at_ns: int) -> None:
        self.task = task
        self.checkpoint_id = checkpoint_id
        self.digest = digest
        self.step = step
        self.made = made
        self.at_ns = at_ns
        self.is_closed = self.is_right = False
        self.ended: frozenset[str] = frozenset()
        self.sent: dict[str, int] = {}
        self.applied: dict[str, int] = {}


class ExternalEffect(NamedTuple):
    """A sink's effect on the external system: a ``write``, ``upsert``, ``prepare``, ``commit`` or ``rollback``.

    `newest_complete` is the newest checkpoint that was complete by then; the restored one, if none was since.
    """

    at_ns: int
    verb: str
    subject: object
    newest_complete: int


class Suspect(NamedTuple):
    """A message that was sent on another side of barriers than its cause came on: FWD, if one of them is complete."""

    sent: Entry
    came: Entry
    side: int
    cause: int


class TaskHistory(TaskWatch):
    """The steps of one task, which is watched meanwhile.

    Attributes
    ----------
    steps : list of Entry
        Its ``>emit``, ``deliver``, ``end``, ``block``, ``snapshot`` and ``send`` entries, in order; a row of `SHORT`
        stands for its own.
    made : list of event
        The events that it made, if it is a source, in order.
    controls : list of Entry
        Of `steps`, those about other messages than events.
    cuts : list of Cut
        Every snapshot, in order; a second one of the same id too.
    buffered_bytes, most_buffered_bytes, most_buffered_bytes_ns : int
        Bytes buffered when the journal ends, the most at a time, and when first.
    recorded_bytes : dict of int to int
        By checkpoint, the bytes that it recorded as in flight, on the way in and on the way out.
    finished_ns : int or None
        When it had nothing more to do: a source when it says so, another task with the end of its last input.
    restored : list of (id, digest)
        What it was restored to; once, where the history begins with a restore.
    outside : list of ExternalEffect
        A sink's effects on the external system, in order.
    notified : list of (id, time, newest complete id by then)
        The announcements that reached it.
    breaches : list of (invariant, reason, time)
        What it has broken of ID and WM.
    suspects : list of Suspect
        What it may have broken of FWD.
    """

    __slots__ = (
        "breaches",
        "buffered_bytes",
        "came",
        "controls",
        "cuts",
        "finished_ns",
        "made",
        "most_buffered_bytes",
        "most_buffered_bytes_ns",
        "notified",
        "outside",
        "recorded_bytes",
        "restored",
        "steps",
        "suspects",
    )

    def __init__(self, name: str, topology: Topology, start: Start | None) -> None:
        super().__init__(name, topology.inputs(name), topology.outputs(name))
        self.begun, self.unaligned, self.aborted = set(), set(), set()
        self.breaches: list[tuple[str, str, int]] = []
        self.suspects: list[Suspect] = []
        self.came: Entry | None = None  # what took effect last
        self.steps: list[Entry] = []
        self.made: list[object] = []
        self.controls: list[Entry] = []
        self.cuts: list[Cut] = []
        self.buffered_bytes = self.most_buffered_bytes = self.most_buffered_bytes_ns = 0
        self.recorded_bytes: dict[int, int] = {}
        self.finished_ns: int | None = None
        self.restored: list[tuple[int, str]] = []
        self.outside: list[ExternalEffect] = []
        self.notified: list[tuple[int, int, int]] = []
        if start is not None:
            self.newest, ended = start.checkpoint_id, start.ended.get(name, ())
            self.last_in, self.last_out = (self.newest,) * len(self.inputs), (self.newest,) * len(self.outputs)
            self.open = tuple(channel not in ended for channel in self.inputs)
            if name in start.finished:
                self.finished_ns = start.at_ns

    @property
    def ended(self) -> frozenset[str]:
        """Return the channels whose end was processed."""
        return frozenset(channel for channel, is_open in zip(self.inputs, self.open, strict=True) if not is_open)

    def breaks(self, invariant: str, reason: str) -> None:
        """Note that an invariant does not hold, in the last step."""
        self.breaches.append((invariant, reason, self.steps[-1][0]))


class Start(NamedTuple):
    """The start of a restore.

    Attributes
    ----------
    at_ns : int
        When.
    checkpoint_id : int
        What is restored; 0 is the beginning.
    newest_id : int
        The highest id that any attempt before has triggered.
    ended : mapping of str to frozenset of str
        By task, the channels whose end took effect before its cut.
    finished : frozenset of str
        The tasks that had nothing more to do.
    """

    at_ns: int
    checkpoint_id: int
    newest_id: int
    ended: Mapping[str, frozenset[str]]
    finished: frozenset[str]


class Completion(NamedTuple):
    """The time of a checkpoint's completion; and by task, the arguments of `model.spec.equations.lacking` then."""

    at_ns: int
    tasks: Mapping[str, tuple[bool, bool, bool, bool]]


class History:
    """The journal of one attempt, grouped. Made by `of`, or by `begin`.

    Attributes
    ----------
    start : Start or None
        The restore that it begins with; None for the first attempt.
    channels : dict of str to ChannelHistory
    tasks : dict of str to TaskHistory
    cuts : dict of (task, id) to Cut
        The first snapshot of each.
    recorded : dict of (channel, id) to list of message
        What was recorded as in flight; nothing in aligned checkpoints. What the receiver recorded, and behind it what
        the sender did, in the order in which it was sent (what it never sent is not in flight, but in its outbox).
    unsent : dict of (channel, id) to list of message
        What the sender recorded and never sent: it was in its outbox when the attempt ended.
    triggers : list of (id, time)
        As the coordinator began them.
    ends : list of (id, verb, time)
        Every ``"completed"`` and ``"aborted"`` of the coordinator, in order.
    overtaking : bool
        Whether any barrier may have gone ahead of its place.
    completed : dict of id to Completion
        When each was completed first, and how far each task was.
    aborted : dict of id to (time, reason)
    acks : dict of (task, id) to time
    crashes : list of (who, time, how much of it was noted by then)
        See `noted`.
    stuck : list of (source, time)
        When nothing could move any more though the source had events to give off.
    settled : set of int
        The complete checkpoints of which all has been judged and forgotten (`model.spec.settled`).
    out_of_place : list of Entry
        Every ``restored`` and ``restored_in_flight`` outside of a restore, or after something had run.
    end_ns : int
        The time of the last entry.
    """

    __slots__ = (
        "_event",
        "_events",
        "_previous",
        "aborted",
        "acks",
        "channels",
        "completed",
        "crashes",
        "cuts",
        "end_ns",
        "ends",
        "newest_complete",
        "out_of_place",
        "overtaking",
        "recorded",
        "recorded_by_sender",
        "settled",
        "start",
        "stuck",
        "tasks",
        "topology",
        "triggers",
        "unsent",
    )

    def __init__(self, topology: Topology, start: Start | None = None) -> None:
        self.topology = topology
        self.start = start
        self.tasks = {task: TaskHistory(task, topology, start) for task in topology.tasks}
        ends = {channel: topology.ends(channel) for channel in topology.channels}
        self.channels = {
            channel: ChannelHistory(self.tasks[sender], self.tasks[receiver])
            for channel, (sender, receiver) in ends.items()
        }
        for task in self.tasks.values():
            for index, channel in enumerate(task.inputs):
                self.channels[channel].input = index
            for index, channel in enumerate(task.outputs):
                self.channels[channel].output = index
        self.cuts: dict[tuple[str, int], Cut] = {}
        self.recorded: dict[tuple[str, int], list[object]] = {}
        self.recorded_by_sender: dict[tuple[str, int], list[object]] = {}
        self.unsent: dict[tuple[str, int], list[object]] = {}
        self.triggers: list[tuple[int, int]] = []
        self.ends: list[tuple[int, str, int]] = []
        self.completed: dict[int, Completion] = {}
        self.aborted: dict[int, tuple[int, str]] = {}
        self.acks: dict[tuple[str, int], int] = {}
        self.overtaking = False
        self.crashes: list[tuple[str, int, int]] = []
        self.stuck: list[tuple[str, int]] = []
        self.out_of_place: list[Entry] = []
        self.newest_complete = 0
        self.end_ns = 0
        self._events: dict[tuple[str, str], list[object]] = {}
        self._event: type | None = None  # the class of events, once one has been seen
        self._previous: Entry | None = None  # the last entry read
        self.settled: set[int] = set()
        if start is not None:
            self.newest_complete, self.end_ns = start.checkpoint_id, start.at_ns

    @classmethod
    def of(cls, entries: Iterable[Entry], topology: Topology) -> History:
        """Read the history of a run on `topology` from its journal `entries`, if nothing was restored in it.

        Raises
        ------
        HistoryError
            If an entry names a verb, a task or a channel that there is not, or begins another attempt.
        """
        history, restore = cls.begin(iter(entries), topology)
        if restore is not None:
            raise HistoryError(
                f"the journal has a second attempt, from restore {restore[4]} on; read it by "
                "`barrierlab.model.spec.attempts.Run.of`"
            )
        return history

    @classmethod
    def begin(
        cls, entries: Iterator[Entry], topology: Topology, start: Start | None = None
    ) -> tuple[History, Entry | None]:
        """Read the history of one attempt; return it with the ``>restore`` that begins the next, behind which
        `entries` then are.

        Raises
        ------
        HistoryError
            As `of`.
        """
        history = cls(topology, start)
        restore = history.read(entries)
        history.close()
        return history, restore

    def read(self, entries: Iterator[Entry]) -> Entry | None:
        """Continue to read, to the end of `entries` or to the ``>restore`` that ends this attempt, which is returned.

        Raises
        ------
        HistoryError
            As `of`.
        """
        try:
            return self._read(entries)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise HistoryError(f"no journal of this topology: {error.args[0]!r} has no place in it") from error

    def close(self) -> None:
        """Complete the snapshots by what was read behind them: no entry will follow."""
        for name, task in self.tasks.items():
            for cut in task.cuts:
                self.close_cut(name, cut)
        self.place_what_senders_recorded()

    def close_cut(self, name: str, cut: Cut) -> None:
        """Complete one snapshot, once."""
        if not cut.is_closed:
            cut.is_closed = True
            if name in self.topology.sources:
                self._close_source(name, cut)
            else:
                self._close(name, cut)

    def place_what_senders_recorded(self) -> None:
        """Add to `recorded`, and to `unsent`, what senders recorded of their channels."""
        places: dict[str, dict[object, int]] = {}
        recorded_by_sender, self.recorded_by_sender = self.recorded_by_sender, {}
        for (channel, checkpoint_id), messages in recorded_by_sender.items():
            if channel not in places:
                places[channel] = {message: index for index, message in enumerate(self.channels[channel].sent)}
            place = places[channel]
            sent = sorted((message for message in messages if message in place), key=place.__getitem__)
            self.recorded.setdefault((channel, checkpoint_id), []).extend(sent)
            if len(sent) < len(messages):
                self.unsent[channel, checkpoint_id] = [message for message in messages if message not in place]

    def events(self, channel: str, which: str) -> list[object]:
        """Return the events among the messages `which` of a channel: ``"sent"``, ``"taken"``, ``"applied"``..."""
        events = self._events.get((channel, which))
        if events is None:
            kept = self.channels[channel]
            if which == "sent":
                events = without(kept.sent, kept.sent_controls)
            elif which == "taken":
                events = without(kept.taken, kept.taken_controls)
            elif which == "applied":
                events = without(kept.applied, kept.applied_controls)
            else:
                events = [m for m in getattr(kept, which) if kind_of(m) == "Event"]
            self._events[channel, which] = events
        return events

    def changed(self) -> None:
        """Drop the kept answers of `events`: the messages have changed."""
        self._events.clear()

    def noted(self, who: str) -> int:
        """Return the number of steps of a task, or of the coordinator, so far."""
        if who == COORDINATOR:
            return len(self.triggers) + len(self.ends)
        task = self.tasks[who]
        return len(task.steps) + len(task.outside)

    def _read(self, entries: Iterator[Entry]) -> Entry | None:
        """Read in one pass, up to the restore that ends this attempt.

        The frequent verbs are here, in the order of their frequency; `_RARE` has the others. A row of `SHORT` is read
        as it stands, since most are.
        """
        channels = self.channels
        event, previous = self._event, self._previous
        self.changed()
        verb: str
        node: str
        name: str | None
        for entry in entries:
            at_ns, verb, node, name, subject = entry
            if verb == "push" or verb == "send":
                channel = channels[name]  # type: ignore[index]
                task = channel.sender
                if node != task.name:
                    raise self._misplaced(entry)
                sent = channel.sent
                sent.append(subject)
                is_control = type(subject) is not event
                if is_control:
                    if kind_of(subject) == "Event":
                        event, is_control = type(subject), False
                    else:
                        _send_control(channel, entry)
                if len(sent) - len(channel.taken) > channel.most:
                    channel.deepens(at_ns)
                task.steps.append(entry)
                cause = task.cause
                if cause is not None and cause != task.last_out[channel.output]:
                    _suspect(task, entry, task.last_out[channel.output], cause)
                if is_control:
                    _watch_control(channel, entry)
            elif verb == "pass" or verb == "deliver":
                channel = channels[name]  # type: ignore[index]
                task = channel.receiver
                if node != task.name:
                    raise self._misplaced(entry)
                if verb == "pass":
                    channel.taken.append(subject)
                channel.applied.append(subject)
                if channel.waiting:
                    _let_go(channel, subject)
                task.steps.append(entry)
                task.cause, task.came = task.last_in[channel.input], entry
                if type(subject) is not event:
                    if kind_of(subject) == "Event":
                        event = type(subject)
                    else:
                        _deliver_control(channel, entry)
            elif verb == "take":
                channel = channels[name]  # type: ignore[index]
                if node != channel.receiver.name:
                    raise self._misplaced(entry)
                channel.taken.append(subject)
                if type(subject) is not event and kind_of(subject) != "Event":
                    _take_control(channel, subject)
            elif verb == ">deliver" or verb == ">drain" or verb == ">push":
                if name is not None and name not in channels:
                    raise self._misplaced(entry)
            elif verb == ">emit":
                task = self.tasks[node]
                task.steps.append(entry)
                task.made.append(subject)
            elif verb == "buffer":
                _buffer(self._into(entry), subject, at_ns)
            elif verb == ">restore":
                self._ends_with(previous)
                return entry
            else:
                if name is not None and name not in channels:
                    raise self._misplaced(entry)
                _RARE[verb](self, entry, previous)
            previous = entry
        self._ends_with(previous)
        self._event, self._previous = event, previous
        return None

    def _into(self, entry: Entry) -> ChannelHistory:
        """Return the channel of an entry of its receiver."""
        channel = self.channels[entry[3]]  # type: ignore[index]
        if entry[2] != channel.receiver.name:
            raise self._misplaced(entry)
        return channel

    def _misplaced(self, entry: Entry) -> LookupError:
        """Return the entry's fault: an unknown channel or task, or a step on a channel of others."""
        _, verb, node, channel, _ = entry
        unknown = channel if channel not in self.channels else node if node not in self.tasks else None
        return LookupError(unknown or f"{node} {verb} {channel}")

    def _ends_with(self, last: Entry | None) -> None:
        if last is not None:
            self.end_ns = last[0]

    def _close(self, name: str, cut: Cut) -> None:
        """Count also what the task had emitted by its cut and sent before it took anything new."""
        steps = self.tasks[name].steps
        for step in range(cut.step + 1, len(steps)):
            _, verb, _, channel, subject = steps[step]
            if verb in SENDS:
                if kind_of(subject) == "Event":
                    cut.sent[channel] += 1  # type: ignore[index]
            elif verb in DELIVERS or verb == "end":
                break

    def _close_source(self, name: str, cut: Cut) -> None:
        """Count what the source had made by its cut, whenever it was sent."""
        for channel in self.topology.outputs(name):
            cut.sent[channel] = before = self.sent_before(channel)
            if cut.made:
                last = _sequence(self.tasks[name].made[cut.made - 1])
                cut.sent[channel] = bisect_right(self.events(channel, "sent"), last, before, key=_sequence)

    def sent_before(self, channel: str) -> int:
        """Return how many of the events sent on a source's channel are none of those in its `made`."""
        return len(self.events(channel, "restored_in_flight")) + self.channels[channel].ahead_of_made


def without(messages: list[object], places: list[int]) -> list[object]:
    """`messages` but for those at `places`, which are in order."""
    found: list[object] = []
    begin = 0
    for place in places:
        found += messages[begin:place]
        begin = place + 1
    found += messages[begin:]
    return found


def _sequence(event: object) -> int:
    return cast(MessageView, event).sequence


def _suspect(task: TaskHistory, sent: Entry, side: int, cause: int) -> None:
    if kind_of(sent[4]) in ("Event", "Watermark"):
        task.suspects.append(Suspect(sent, cast(Entry, task.came), side, cause))


def _goes_ahead(message: object) -> bool:
    return kind_of(message) == "CheckpointBarrier" and bool(cast(MessageView, message).flags & UNALIGNED_FLAG)


def let_go(waiting: deque[object], message: object) -> list[object]:
    """Take out of `waiting` what waits no more once `message` has taken effect, and return it in order.

    That is barriers and cancels ahead of it, which had no effect, and `message` itself if it waited.
    """
    gone = []
    while waiting and waiting[0] != message and kind_of(waiting[0]) in ("CheckpointBarrier", "CancelBarrier"):
        gone.append(waiting.popleft())
    if message in waiting:  # the first, unless something overtook it
        waiting.remove(message)
        gone.append(message)
    return gone


def _buffer(channel: ChannelHistory, message: object, at_ns: int) -> None:
    task = channel.receiver
    channel.waiting.append(message)
    if len(channel.waiting) > channel.most_buffered:
        channel.most_buffered, channel.most_buffered_ns = len(channel.waiting), at_ns
    task.buffered_bytes += size_of(message)
    if task.buffered_bytes > task.most_buffered_bytes:
        task.most_buffered_bytes, task.most_buffered_bytes_ns = task.buffered_bytes, at_ns


def _let_go(channel: ChannelHistory, message: object) -> None:
    """`message` is applied."""
    for gone in let_go(channel.waiting, message):
        channel.receiver.buffered_bytes -= size_of(gone)


# What is no event: seldom sent, taken and delivered.


def _send_control(channel: ChannelHistory, entry: Entry) -> None:
    """Note that the last of `sent` is no event."""
    channel.sent_controls.append(len(channel.sent) - 1)
    if _goes_ahead(entry[4]):
        channel.ahead.add(cast(MessageView, entry[4]).checkpoint_id)
        channel.most = channel.deepest + len(channel.ahead)


def _watch_control(channel: ChannelHistory, entry: Entry) -> None:
    """Note that something else than an event was sent, and its cause has been asked for."""
    task, subject, kind = channel.sender, entry[4], kind_of(entry[4])
    task.controls.append(entry)
    if kind == "CheckpointBarrier":
        checkpoint_id = cast(MessageView, subject).checkpoint_id
        channel.barriers.setdefault(checkpoint_id, subject)
        task.bars_output(channel.output, checkpoint_id)
    elif kind == "EndOfInput" and channel.end is None:
        channel.end = len(channel.sent)
    elif kind == "Watermark":
        task.marks_output(channel.output, subject)


def _take_control(channel: ChannelHistory, subject: object) -> None:
    channel.taken_controls.append(len(channel.taken) - 1)
    if kind_of(subject) == "CheckpointBarrier":
        # Sent aligned, it may have turned unaligned on its way: what takes effect is what was taken.
        channel.barriers[cast(MessageView, subject).checkpoint_id] = subject
        channel.ahead.discard(cast(MessageView, subject).checkpoint_id)
        channel.most = channel.deepest + len(channel.ahead)


def _deliver_control(channel: ChannelHistory, entry: Entry) -> None:
    task, subject = channel.receiver, entry[4]
    if entry[1] == "pass":
        _take_control(channel, subject)
    task.controls.append(entry)
    channel.applied_controls.append(len(channel.applied) - 1)
    if kind_of(subject) == "Watermark":
        task.promises(channel.input, cast(MessageView, subject).timestamp_ms)
        task.advance()


# The rare verbs, each with the entry and the one before it.


def _nothing(history: History, entry: Entry, previous: Entry | None) -> None:
    """Ignore a move or an effect that groups nothing."""


def _end(history: History, entry: Entry, previous: Entry | None) -> None:
    channel, subject = history._into(entry), entry[4]
    task = channel.receiver
    channel.applied_controls.append(len(channel.applied))
    channel.applied.append(subject)
    _let_go(channel, subject)
    task.steps.append(entry)
    task.controls.append(entry)
    task.cause, task.came = task.last_in[channel.input], entry
    task.ends(channel.input)
    task.advance()
    if not any(task.open):
        task.finished_ns = entry[0]


def _ignore(history: History, entry: Entry, previous: Entry | None) -> None:
    _, _, node, name, subject = entry
    channel = history._into(entry)
    channel.ignored.append(subject)
    if previous is None or previous[1:4] != ("take", node, name):
        _let_go(channel, subject)


def _block(history: History, entry: Entry, previous: Entry | None) -> None:
    channel, checkpoint_id = history._into(entry), cast(int, entry[4])
    task = channel.receiver
    barrier = channel.barriers.get(checkpoint_id, checkpoint_id)
    channel.applied_controls.append(len(channel.applied))
    channel.applied.append(barrier)
    _let_go(channel, barrier)
    task.steps.append(entry)
    task.controls.append(entry)
    task.bars(channel.input, checkpoint_id, None if barrier is checkpoint_id else cast(MessageView, barrier).epoch)


def _resume(history: History, entry: Entry, previous: Entry | None) -> None:
    history.tasks[entry[2]].frees(cast(int, entry[4]))


def _snapshot(history: History, entry: Entry, previous: Entry | None) -> None:
    checkpoint_id, digest = cast(tuple[int, str], entry[4])
    name, task = entry[2], history.tasks[entry[2]]
    cut = Cut(name, checkpoint_id, digest, len(task.steps), len(task.made), entry[0])
    for channels, counts in ((history.topology.inputs(name), cut.applied), (history.topology.outputs(name), cut.sent)):
        for channel in channels:
            kept = history.channels[channel]
            counts[channel] = (
                len(kept.applied) - len(kept.applied_controls)
                if counts is cut.applied
                else len(kept.sent) - len(kept.sent_controls)
            )
    cut.ended = task.ended
    task.cuts.append(cut)
    task.steps.append(entry)
    task.snaps(checkpoint_id)
    history.cuts.setdefault((name, checkpoint_id), cut)


def _capture(history: History, entry: Entry, previous: Entry | None) -> None:
    checkpoint_id, message = cast(tuple[int, object], entry[4])
    name = cast(str, entry[3])
    sender = history.channels[name].sender
    by_sender = sender.name == entry[2]
    recorded = history.recorded_by_sender if by_sender else history.recorded
    recorded_bytes = (sender if by_sender else history._into(entry).receiver).recorded_bytes
    recorded.setdefault((name, checkpoint_id), []).append(message)
    recorded_bytes[checkpoint_id] = recorded_bytes.get(checkpoint_id, 0) + size_of(message)


def _decline(history: History, entry: Entry, previous: Entry | None) -> None:
    history.tasks[entry[2]].aborts(cast(tuple[int, str], entry[4])[0])


def _cancel(history: History, entry: Entry, previous: Entry | None) -> None:
    history.tasks[entry[2]].aborts(cast(int, entry[4]))


def _forward(history: History, entry: Entry, previous: Entry | None) -> None:
    history.tasks[entry[2]].forwards(entry[4])
    if _goes_ahead(entry[4]):
        history.overtaking = True


def _overtake(history: History, entry: Entry, previous: Entry | None) -> None:
    history.overtaking = True


def _trigger(history: History, entry: Entry, previous: Entry | None) -> None:
    history.triggers.append((cast(int, entry[4]), entry[0]))


def _ack(history: History, entry: Entry, previous: Entry | None) -> None:
    history.acks.setdefault((entry[2], cast(int, entry[4])), entry[0])


def _finish(history: History, entry: Entry, previous: Entry | None) -> None:
    task = history.tasks[entry[2]]
    if task.finished_ns is None:
        task.finished_ns = entry[0]


def _completed(history: History, entry: Entry, previous: Entry | None) -> None:
    checkpoint_id = cast(int, entry[4])
    history.ends.append((checkpoint_id, "completed", entry[0]))
    history.newest_complete = max(history.newest_complete, checkpoint_id)
    if checkpoint_id not in history.completed:
        tasks = {}
        for name, task in history.tasks.items():
            part = name, checkpoint_id
            finished = task.finished_ns is not None
            tasks[name] = part in history.cuts, checkpoint_id in task.begun, part in history.acks, finished
        history.completed[checkpoint_id] = Completion(entry[0], tasks)


def _aborted(history: History, entry: Entry, previous: Entry | None) -> None:
    checkpoint_id, reason = cast(tuple[int, str], entry[4])
    history.ends.append((checkpoint_id, "aborted", entry[0]))
    history.aborted.setdefault(checkpoint_id, (entry[0], reason))


def _crash(history: History, entry: Entry, previous: Entry | None) -> None:
    history.crashes.append((entry[2], entry[0], history.noted(entry[2])))


def _stuck(history: History, entry: Entry, previous: Entry | None) -> None:
    history.stuck.append((entry[2], entry[0]))


def _notify(history: History, entry: Entry, previous: Entry | None) -> None:
    history.tasks[entry[2]].notified.append((cast(int, entry[4]), entry[0], history.newest_complete))


def _restored(history: History, entry: Entry, previous: Entry | None) -> None:
    checkpoint_id, digest = cast(tuple[int, str], entry[4])
    history.tasks[entry[2]].restored.append((checkpoint_id, digest))
    _in_its_place(history, entry)


def _restored_message(history: History, entry: Entry, previous: Entry | None) -> None:
    channel, message = history.channels[cast(str, entry[3])], entry[4]
    _in_its_place(history, entry)
    channel.sent.append(message)
    channel.restored_in_flight.append(message)
    kind = kind_of(message)
    if kind != "Event":
        channel.sent_controls.append(len(channel.sent) - 1)
        if kind == "CheckpointBarrier":
            channel.barriers.setdefault(cast(MessageView, message).checkpoint_id, message)
        elif kind == "EndOfInput" and channel.end is None:
            channel.end = len(channel.sent)


def _in_its_place(history: History, entry: Entry) -> None:
    """Note an entry out of place: everything is restored before anything runs (protocol rule 22)."""
    if history.start is None or any(task.steps for task in history.tasks.values()):
        history.out_of_place.append(entry)


def _outside(history: History, entry: Entry, previous: Entry | None) -> None:
    history.tasks[entry[2]].outside.append(ExternalEffect(entry[0], entry[1], entry[4], history.newest_complete))


_RARE: dict[str, Callable[[History, Entry, Entry | None], None]] = {
    **dict.fromkeys(
        (
            ">poll",
            ">watermark",
            ">decline",
            ">finished",
            ">expire",
            ">abort",
            ">stall",
            ">resume",
            ">inject",
            ">publish",
        ),
        _nothing,
    ),
    "complete": _nothing,
    **dict.fromkeys(("write", "upsert", "prepare", "commit", "rollback"), _outside),
    ">crash": _crash,
    ">stuck": _stuck,
    ">notify": _notify,
    "restored": _restored,
    "restored_in_flight": _restored_message,
    ">overtake": _overtake,
    "end": _end,
    "ignore": _ignore,
    "block": _block,
    "resume": _resume,
    "snapshot": _snapshot,
    "capture": _capture,
    "decline": _decline,
    "cancel": _cancel,
    "forward": _forward,
    ">trigger": _trigger,
    ">ack": _ack,
    ">finish": _finish,
    "completed": _completed,
    "aborted": _aborted,
}
