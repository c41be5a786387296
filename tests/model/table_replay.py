"""A journal as a run of the tables: what each task's gate did, from what came to it.

What came to a task is in the journal: messages in the order in which it took them, drains, deadlines, aborts. A
table's gate that gets the same must have the same effects, and have recorded the same by the time a part is whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from barrierlab.impl.messages import CheckpointBarrier, Event, StreamMessage
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.refinement import Effects, SnapshotAnswer, finished
from barrierlab.model.checkpoint.tables.gate import GateRules, GateState
from barrierlab.model.checkpoint.tables.stimuli import (
    NO_INPUT,
    Abort,
    Arrival,
    ClockReading,
    DrainOne,
    Effect,
    OutputPassed,
    Overtaking,
    SnapshotComplete,
    Stimulus,
    TriggerNoted,
)
from barrierlab.model.explore.table import Table
from barrierlab.model.spec.history import Entry
from barrierlab.model.spec.topology import Topology

# The effects of a gate, as a journal has them. (What is recorded stands elsewhere in some journals: see
# `SnapshotComplete`.)
VERBS = frozenset(
    ("deliver", "end", "buffer", "ignore", "block", "resume", "snapshot", "forward", "complete", "decline", "cancel")
)
Line = tuple[str, int, object]
NOTHING: Effects = ()


class Departure(NamedTuple):
    """The place where a journal and the tables part.

    Attributes
    ----------
    at_ns : int
    task, move : str
    table, journal : str
        What the table says, and what the journal has.
    """

    at_ns: int
    task: str
    move: str
    table: str
    journal: str

    def __str__(self) -> str:
        """In a line."""
        return (
            f"{self.task} at {self.at_ns} ns, {self.move}: the table says '{self.table}', the journal '{self.journal}'"
        )


def departures(
    entries: Iterable[Entry], topology: Topology, protocols: Mapping[str, tuple[Table[GateState, Stimulus], GateRules]]
) -> Iterator[Departure]:
    """Return the places where the tasks' tables depart from the journal; of each task only the first.

    Parameters
    ----------
    entries : iterable of Entry
        A whole journal.
    topology : Topology
    protocols : mapping of str to (Table, GateRules)
        Of each task with inputs that is asked about, its table, and the rules of its gate.
    """
    replay = _Replay(list(entries), topology, protocols)
    for move, effects in _moves(replay.entries):
        yield from replay.make(move, effects)


def _moves(entries: Sequence[Entry]) -> Iterator[tuple[Entry, list[Entry]]]:
    """Each move, with its effects."""
    move: Entry | None = None
    effects: list[Entry] = []
    for entry in entries:
        if entry[1].startswith(">"):
            if move is not None:
                yield move, effects
            move, effects = entry, []
        else:
            effects.append(entry)
    if move is not None:
        yield move, effects


class _Replay:
    """The gates of all tasks, and what lies in the channels, as far as the journal has been read."""

    def __init__(
        self,
        entries: list[Entry],
        topology: Topology,
        protocols: Mapping[str, tuple[Table[GateState, Stimulus], GateRules]],
    ) -> None:
        self.entries = entries
        self.topology = topology
        self.protocols = protocols
        self.gates = {task: GateState.new(*protocol) for task, protocol in protocols.items()}
        self.lost: set[str] = set()  # tasks of whose gate nobody knows any more what came to it
        self.in_hand: dict[str, tuple[int, StreamMessage]] = {}
        self.channels: dict[str, list[StreamMessage]] = defaultdict(list)  # sent and not taken
        self.aborted: Counter[str] = Counter()  # by task, the highest id that it has cancelled
        self.ended: dict[tuple[str, int], frozenset[int]] = {}  # by task and checkpoint, the inputs ended at the cut
        self.captured: dict[tuple[str, str, int], list[object]] = defaultdict(list)  # by task, channel, checkpoint
        # By channel, what will be taken: in its turn, and ahead of it.
        self.coming: dict[str, deque[StreamMessage]] = defaultdict(deque)
        self.overtaking: dict[str, deque[StreamMessage]] = defaultdict(deque)
        move = ""
        for _, verb, node, channel, subject in entries:
            if verb.startswith(">"):
                move = verb
            elif verb == "capture":
                checkpoint_id, event = cast(tuple[int, object], subject)
                self.captured[node, cast(str, channel), checkpoint_id].append(event)
            elif verb == "take":
                self._takes(move)[cast(str, channel)].append(cast(StreamMessage, subject))

    def make(self, move: Entry, entries: list[Entry]) -> Iterator[Departure]:
        """Make one move; where it departs."""
        at_ns, verb, task, _, subject = move
        if verb == ">trigger":
            for name, gate in self.gates.items():
                self.gates[name], _ = gate.step(TriggerNoted(cast(int, subject), at_ns))
        elif verb == ">restore":
            self._restore(cast(int, subject))
        elif task in self.gates and task not in self.lost:
            yield from self._compare(move, [entry for entry in entries if entry[2] == task])
        self._move_messages(verb, entries)

    def _stimuli(self, move: Entry, entries: list[Entry]) -> list[Stimulus]:
        """Return what the move means for the gate of its task: one thing, or one of several, or nothing."""
        at_ns, verb, task, channel, subject = move
        match verb:
            case ">drain" if self.gates[task].line:
                return [DrainOne(at_ns)]
            case ">drain":
                return [Arrival(*self.in_hand[task], at_ns)]
            case ">expire":
                return [ClockReading(at_ns)]
            case ">abort":
                return [Abort(cast(int, subject))]
            case ">deliver" if channel is not None:
                input_id = self.topology.inputs(task).index(channel)
                return [Arrival(input_id, message, at_ns) for message in self._offered(channel, entries)]
            case ">overtake" if channel is not None:
                barrier = cast(CheckpointBarrier, self._taken(entries))
                input_id = self.topology.inputs(task).index(channel)
                return [Overtaking(input_id, barrier, self._ahead(channel, barrier), at_ns)]
        return []

    def _taken(self, entries: list[Entry]) -> StreamMessage | None:
        return next((cast(StreamMessage, entry[4]) for entry in entries if entry[1] == "take"), None)

    def _offered(self, channel: str, entries: list[Entry]) -> list[StreamMessage]:
        """Return what was taken; if it was refused before that, the next that is, in its turn or ahead of it."""
        taken = self._taken(entries)
        if taken is not None:
            return [taken]
        if not any(entry[1] in VERBS for entry in entries):
            return []
        return [messages[0] for messages in (self.coming[channel], self.overtaking[channel]) if messages]

    def _is_past_telling(self, move: Entry, entries: list[Entry]) -> bool:
        """Return whether the journal does not say what came to the task.

        Of a checkpoint that it has aborted, a sender does not say what its barrier passed; and what was refused at the
        end of a journal is never named.
        """
        _, verb, _, channel, _ = move
        if verb == ">overtake" and channel is not None:
            barrier = cast(CheckpointBarrier, self._taken(entries))
            return self.aborted[self.topology.ends(channel)[0]] >= barrier.checkpoint_id
        return verb == ">deliver" and any(entry[1] in VERBS for entry in entries) and not self._stimuli(move, entries)

    def _ahead(self, channel: str, barrier: CheckpointBarrier) -> tuple[StreamMessage, ...]:
        """Return the receiver's queue ahead of a barrier: what was sent before it, but what its sender kept."""
        kept = self.captured[self.topology.ends(channel)[0], channel, barrier.checkpoint_id]
        ahead: list[StreamMessage] = []
        for message in self.channels[channel]:
            if type(message) is CheckpointBarrier and message.checkpoint_id == barrier.checkpoint_id:
                break
            if message not in kept:
                ahead.append(message)
        return tuple(ahead)

    def _compare(self, move: Entry, entries: list[Entry]) -> Iterator[Departure]:
        """Step the gate of the task, and lay its effects beside the journal's."""
        at_ns, _, task, _, _ = move
        if self._is_past_telling(move, entries):
            self.lost.add(task)
            return
        journal = [self._line(entry) for entry in entries if entry[1] in VERBS]
        departure: Departure | None = None
        stimuli: Sequence[Stimulus | None] = self._stimuli(move, entries) or (None,)
        for stimulus in stimuli:
            gate, effects = self._made(task, stimulus, entries)
            table = [line for effect in effects for line in self._lines(task, effect)]
            if table == journal:
                self.gates[task] = gate
                self._keep_in_hand(task, stimulus, effects, entries)
                return
            departure = departure or Departure(at_ns, task, str(stimulus), _listed(table), _listed(journal))
        assert departure is not None
        self.lost.add(task)
        yield departure

    def _made(self, task: str, stimulus: Stimulus | None, entries: list[Entry]) -> tuple[GateState, Effects]:
        """Return what the gate of the task makes of it, and of what its barrier passes on the way out."""
        gate, effects = self.gates[task], NOTHING
        if stimulus is not None:
            answer = self._answer(task, entries)
            step = gate.step(stimulus)
            if step[0].taking and step[0].pending is not None:
                self.ended[task, step[0].pending.checkpoint_id] = step[0].ended
            gate, effects = finished(step, answer)
            if answer.failure is not None:  # an image that was not taken is not in the journal
                effects = tuple(effect for effect in effects if effect.verb != "snapshot")
        for size_bytes in self._passed(task, entries, behind="send"):
            gate, more = gate.step(OutputPassed(size_bytes))
            effects += more
        return gate, effects

    def _answer(self, task: str, entries: list[Entry]) -> SnapshotAnswer:
        """Return whether the image was taken, and what the barrier passed in the outbox, as the journal says."""
        verbs = [entry[1] for entry in entries]
        failure = next((cast(tuple[int, Reason], entry[4])[1] for entry in entries if entry[1] == "decline"), None)
        passed_bytes = sum(self._passed(task, entries, behind="forward"))
        return SnapshotAnswer(None if "snapshot" in verbs else failure, passed_bytes)

    def _passed(self, task: str, entries: list[Entry], behind: str) -> Iterator[int]:
        """Return what a barrier passed right behind each ``forward``, in the outbox, or each ``send``, in a channel."""
        outputs, size_bytes, follows = self.topology.outputs(task), 0, False
        for entry in entries:
            if follows and entry[1] == "capture" and entry[3] in outputs:
                size_bytes += cast(tuple[int, Event], entry[4])[1].size_bytes
                continue
            if size_bytes:
                yield size_bytes
            size_bytes, follows = 0, entry[1] == behind
        if size_bytes:
            yield size_bytes

    def _keep_in_hand(self, task: str, stimulus: Stimulus | None, effects: Effects, entries: list[Entry]) -> None:
        """A message that was taken from its channel, and that the gate refused, is offered again."""
        if not isinstance(stimulus, Arrival):
            return
        if not effects or effects[0].verb != "refuse":
            self.in_hand.pop(task, None)
        elif self._taken(entries) is not None:
            self.in_hand[task] = stimulus.input_id, stimulus.message

    def _line(self, entry: Entry) -> Line:
        """An effect in the journal: a digest is left out."""
        _, verb, task, channel, subject = entry
        if verb == "snapshot":
            subject = cast(tuple[int, str], subject)[0]
        elif verb == "decline":
            subject = tuple(map(str, cast(tuple[int, Reason], subject)))
        return verb, NO_INPUT if channel is None else self.topology.inputs(task).index(channel), subject

    def _lines(self, task: str, effect: Effect) -> Iterator[Line]:
        """The same of a table's; behind a whole part, what is recorded otherwise."""
        verb, input_id, subject = effect
        if verb == "snapshot":
            yield verb, input_id, cast(CheckpointBarrier, subject).checkpoint_id
        elif verb == "decline":
            yield verb, input_id, tuple(map(str, cast(tuple[int, Reason], subject)))
        elif verb == "complete":
            part = cast(SnapshotComplete, subject)
            yield verb, input_id, part.barrier.checkpoint_id
            for channel, events in zip(self.topology.inputs(task), part.record, strict=True):
                if list(events) != self.captured[task, channel, part.barrier.checkpoint_id]:
                    yield "record", self.topology.inputs(task).index(channel), events
        elif verb in VERBS:
            yield verb, input_id, subject

    def _move_messages(self, move: str, entries: list[Entry]) -> None:
        """Follow the messages that enter and leave the channels."""
        for _, verb, node, channel, subject in entries:
            if verb == "cancel":
                self.aborted[node] = max(self.aborted[node], cast(int, subject))
            elif verb == "send" or verb == "restored_in_flight":
                self.channels[cast(str, channel)].append(cast(StreamMessage, subject))
            elif verb == "take":
                self._leave(self.channels[cast(str, channel)], cast(StreamMessage, subject))
                self._takes(move)[cast(str, channel)].popleft()

    def _takes(self, move: str) -> dict[str, deque[StreamMessage]]:
        return self.overtaking if move == ">overtake" else self.coming

    def _leave(self, channel: list[StreamMessage], message: StreamMessage) -> None:
        """A barrier may have been flagged on its way."""
        for place, each in enumerate(channel):
            same_id = type(each) is type(message) is CheckpointBarrier and each.checkpoint_id == message.checkpoint_id
            if each == message or same_id:
                del channel[place]
                return

    def _restore(self, checkpoint_id: int) -> None:
        """A new attempt: every gate is a new one that goes on from its cut; one that had no cut had finished."""
        self.in_hand.clear()
        self.channels.clear()
        self.lost.clear()
        for task, protocol in self.protocols.items():
            gate = GateState.new(*protocol)
            everything = frozenset(range(gate.rules.num_inputs))
            ended = self.ended.get((task, checkpoint_id), everything) if checkpoint_id else frozenset()
            self.gates[task] = replace(gate, last_terminated_id=checkpoint_id, ended=ended)


def _listed(lines: Sequence[Line]) -> str:
    return "; ".join(str(Effect(*line)) for line in lines) or "nothing"
