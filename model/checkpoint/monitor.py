"""The history of a run, no more of it than judging needs: what the world keeps beside the machines in each state.

`model.spec.invariants` judges a journal, which grows with every move; two states that differ in nothing but how they
came about would never be one. Here the same equations (`model.spec.equations`) are kept up to date instead. For a
channel from u to v, u knows how many events it had sent when it cut, v how many had taken effect when it cut and how
many it recorded; once the checkpoint is complete these numbers must add up, and what they stand for is forgotten. That
the events behind the numbers are the right ones is checked as they pass: a channel is first in, first out, so its next
event is known. Barriers and watermarks are watched as they are along a journal (`model.spec.watch`).

A monitor takes no part in what happens. It gets effects in the words of `model.spec.history.EFFECTS`, and what is
wrong goes to `broken`, in the words of `model.spec.invariants.INVARIANTS`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from barrierlab.impl.checkpoint.recorder import InFlightChannelData
from barrierlab.impl.checkpoint.report import Acknowledge, digest
from barrierlab.impl.checkpoint.task import Operator, Task
from barrierlab.impl.messages import (
    CheckpointBarrier,
    EndOfInput,
    Event,
    StreamMessage,
    Watermark,
    size_of,
)
from barrierlab.impl.reasons import Reason
from barrierlab.model.explore.intern import exact
from barrierlab.model.origin import place_of
from barrierlab.model.spec import equations
from barrierlab.model.spec.history import let_go
from barrierlab.model.spec.invariants import Limits
from barrierlab.model.spec.topology import Topology
from barrierlab.model.spec.watch import Breach, TaskWatch, later, put

TASK = "TASK"
"""The name of what no journal tells: a task sends or reports something else than its operator and its cut ask for."""


def raised(name: str, error: BaseException) -> Breach:
    """Return what is broken when a machine raises that got nothing but what may happen."""
    text = str(error).partition("\n")[0]  # a test runner may write below what an assertion compared
    invariant = getattr(error, "invariant", "")  # what an external class is asked where it is hosted
    return (invariant, text) if invariant else ("RAISED", f"{name}: {type(error).__name__}: {text}{place_of(error)}")


class Sends(NamedTuple):
    """The messages that a task was still to send at some time, by output."""

    outbox: tuple[tuple[int, StreamMessage], ...]


Sender = Task | Sends
"""Whoever has an outbox."""
_ENDED = -1


class CompletedCut(NamedTuple):
    """The account that a task gives of a checkpoint that completes.

    Attributes
    ----------
    has_cut, has_begun, finished : bool
        Whether it has taken its snapshot, a barrier has taken effect or was forwarded, and it has nothing more to do.
    sent, covered, recorded_out : tuple of int
        Events before the cut by output; before it or recorded by input; recorded by output.
    wrong : str
        What CUT has against it.
    is_suspect : bool
        Whether FWD has something against it.
    """

    has_cut: bool
    has_begun: bool
    finished: bool
    sent: tuple[int, ...]
    covered: tuple[int, ...]
    recorded_out: tuple[int, ...]
    wrong: str
    is_suspect: bool


class Past(NamedTuple):
    """A task at its cut, as it must be after a restore.

    Attributes
    ----------
    state : object
        Of the operator.
    sent, applied : tuple of int
        Events by output, and by input.
    recorded, recorded_out : tuple of tuple of Event
        What was in flight, by input and by output.
    open : tuple of bool
        By input, whether its end had not taken effect.
    finished : bool
    made : int
        Events of a source.
    watermark_ms : int or None
    marks : tuple of (int or None)
        The last watermark sent, by output.
    unseen : tuple of Event
        Of a sink, what had taken effect and was not visible in the external system.
    rows : frozenset of Event
        Of an idempotent sink, what had taken effect.
    """

    state: object
    sent: tuple[int, ...]
    applied: tuple[int, ...]
    recorded: tuple[tuple[Event, ...], ...]
    recorded_out: tuple[tuple[Event, ...], ...]
    open: tuple[bool, ...]
    finished: bool
    made: int
    watermark_ms: int | None
    marks: tuple[int | None, ...]
    unseen: tuple[Event, ...]
    rows: frozenset[Event]


class TaskCut(NamedTuple):
    """A task's snapshot for a checkpoint that is not settled.

    Attributes
    ----------
    sent, applied : tuple of int
        Events by output, and by input, before the cut.
    recorded, recorded_out : tuple of int
        Events recorded as in flight by input, and by output.
    recorded_bytes : int
        What they count for.
    wrong : str
        What CUT has against it, if the checkpoint completes.
    past : Past or None
        What a restore must come back to, if anything is ever restored.
    """

    sent: tuple[int, ...]
    applied: tuple[int, ...]
    recorded: tuple[int, ...]
    recorded_out: tuple[int, ...]
    recorded_bytes: int = 0
    wrong: str = ""
    past: Past | None = None


class Owed(NamedTuple):
    """The messages that a task is to send.

    Attributes
    ----------
    message : Event or Watermark
    outputs : tuple of int
        It goes out on one of them.
    """

    message: Event | Watermark
    outputs: tuple[int, ...]


_OWN = (
    *("waiting", "applied", "sent", "made", "finished", "suspects", "settled", "done", "cuts", "state"),
    *("unseen", "covered", "due", "rows", "visible_rows", "most_made", "owed", "has_announced"),
)


class TaskMonitor(TaskWatch):
    """The state of one task that judging needs: its watch, and what a journal tells otherwise.

    Parameters
    ----------
    name : str
    inputs, outputs : sequence of str
        Its channels.
    fold : Operator or None
        An operator of its own, that gets what takes effect; None for a source.
    groups : sequence of (str, tuple of int)
        The outputs by out-edge, with how the edge spreads events.
    limits : Limits
    keeps_past : bool
        Whether a cut keeps what a restore must come back to.
    guarantee : str
        Of a sink that writes to the external system; else empty.
    must_repeat : bool
        Whether a source has to make again what it had made before a failure: it is visible.

    Attributes
    ----------
    broken : list of (str, str)
        What was seen since it was last emptied.
    """

    KEPT: ClassVar[tuple[str, ...]] = (*TaskWatch.KEPT, *_OWN)
    __slots__ = (
        *_OWN,
        "_ahead",
        "_fold",
        "_groups",
        "_guarantee",
        "_keeps_past",
        "_limits",
        "_must_repeat",
        "_over_limit",
        "_passed",
        "_passed_out",
        "_passed_over",
        "_passing",
        "_taken",
        "_to_show",
        "broken",
    )

    def __init__(
        self,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        fold: Operator | None,
        groups: Sequence[tuple[str, tuple[int, ...]]],
        limits: Limits,
        keeps_past: bool = False,
        guarantee: str = "",
        must_repeat: bool = False,
    ) -> None:
        super().__init__(name, inputs, outputs)
        self.broken: list[Breach] = []
        self._fold, self._groups, self._limits = fold, groups, limits
        self._keeps_past, self._guarantee, self._must_repeat = keeps_past, guarantee, must_repeat
        # By input: taken and without effect so far; how many events took effect.
        self.waiting: tuple[tuple[StreamMessage, ...], ...] = ((),) * len(inputs)
        self.applied = (0,) * len(inputs)
        self.sent = (0,) * len(outputs)  # events, by output
        self.made = 0  # events of a source; and the most that it had made when the job failed
        self.most_made = 0
        self.finished = False
        self.suspects: frozenset[int] = frozenset()  # checkpoints that FWD has something against
        self.settled: frozenset[int] = frozenset()
        self.done = 0  # the last complete checkpoint
        self.cuts: tuple[tuple[int, TaskCut], ...] = ()
        self.state: object = fold.checkpoint() if fold is not None else None
        # What is to be sent and is not, in order, by out-edge, with the outputs that still wait for it: it is in the
        # outbox, or kept back by the task. And whether the outputs know the watermark; not so after a recovery.
        self.owed: tuple[tuple[Owed, ...], ...] = ((),) * len(groups)
        self.has_announced = True
        # Of a sink: what took effect and is not visible, in order; how many events the newest complete checkpoint
        # covers; how many those cover that are still to be announced here; what has rows, and which are visible.
        self.unseen: tuple[Event, ...] = ()
        self.covered = 0
        self.due: tuple[tuple[int, int], ...] = ()
        self.rows: frozenset[Event] = frozenset()
        self.visible_rows: frozenset[Event] = frozenset()
        self._to_show: Event | None = None
        self._over_limit: tuple[int, str] | None = None  # the checkpoint whose part is too large, and why
        self._taken: tuple[int, StreamMessage] | None = None
        self._ahead: Sequence[StreamMessage] = ()
        self._passed: Sequence[StreamMessage] = ()
        self._passing: list[tuple[int, CheckpointBarrier]] = []
        self._passed_over: list[tuple[int, object]] = []
        self._passed_out: dict[int, tuple[list[Event], list[Event]]] = {}  # by output: what is there, what is recorded

    # Capture and restore.

    def capture(self) -> tuple[object, ...]:
        """All of it, as a value."""
        return _kept(self)

    def restore(self, value: tuple[object, ...]) -> None:
        """Restore what `capture` returned."""
        # Written out, in the order of `KEPT`: a loop over the names takes several times as long.
        # fmt: off
        (
            self.promised, self.open, self.watermark_ms, self.marks, self.last_in, self.last_out, self.blocked,
            self.newest, self.epoch, self.last_cut, self.cause, self.begun, self.unaligned, self.aborted,
            self.waiting, self.applied, self.sent, self.made, self.finished, self.suspects, self.settled, self.done,
            self.cuts, self.state, self.unseen, self.covered, self.due, self.rows, self.visible_rows, self.most_made,
            self.owed, self.has_announced,
        ) = value  # type: ignore[assignment]
        # fmt: on
        self.broken = []
        self._forget_move()

    def _forget_move(self) -> None:
        self._taken, self._ahead, self._passed, self._passing, self._passed_out = None, (), (), [], {}
        self._to_show, self._passed_over, self._over_limit = None, [], None

    # What the driver says.

    def take(self, index: int, message: StreamMessage, ahead: Sequence[StreamMessage] = ()) -> None:
        """Take a message out of the channel of input `index`; a barrier may leave `ahead` of what stays there."""
        self._taken, self._ahead = (index, message), ahead

    def restored_in_flight(self) -> None:
        """Note that what was taken has not left its channel after all."""
        self._taken = None

    def passed(self, messages: Sequence[StreamMessage]) -> None:
        """Note what a barrier has passed in an output channel."""
        self._passed = messages

    def note(self, verb: str, index: int, subject: Any, task: Sender) -> None:
        """Note an effect of `task`."""
        note = _NOTED.get(verb)
        if note is not None:
            note(self, index, subject, task)

    def moved(self, is_sending: bool) -> None:
        """Judge the move, which is over but for what is sent, if anything is: what was taken has come to something."""
        taken = () if self._taken is None else (self._taken,)
        for index, message in (*taken, *self._passed_over):
            if not equations.has_no_effect(message, self.aborted):
                what = "never took effect" if type(message) is Event else "had no effect"
                self.breaks("NOLOSS", f"{message} was taken from {self.inputs[index]} and {what}")
        for index, barrier in self._passing:
            if not equations.may_overtake(barrier, self.unaligned, self.aborted):
                self.breaks("FIFO", f"{barrier} took effect on {self.inputs[index]} out of its turn")
        if self._to_show is not None:
            self.breaks("REC", f"{self._to_show} took effect at {self.name} and was not shown")
        if self._over_limit is not None and self._over_limit[0] not in self.aborted:
            self.breaks("BOUND", self._over_limit[1])
        for output, (there, recorded) in self._passed_out.items():
            if recorded != there[-len(recorded) :]:
                wrong = f"{self.name} recorded for {self.outputs[output]} what the barrier did not pass"
                self.cuts = tuple((number, cut._replace(wrong=wrong)) for number, cut in self.cuts)
        self._forget_move()
        if not is_sending:
            self._nothing_waits()

    def _nothing_waits(self) -> None:
        """Note that the outbox is empty: what is sent next is the effect of something that is yet to come.

        Not so if the task keeps back what its operator gave, or the watermark that it has reached.
        """
        if self.inputs and any(self.owed):
            return
        self.cause = None
        if self.unaligned:
            self.unaligned = frozenset(n for n in self.unaligned if n > self.done)

    def emit(self, item: Event | Watermark) -> None:
        """Note that a source makes an event, or a watermark."""
        if type(item) is Event:
            self.made += 1
            self._has_made_again()
        else:
            assert type(item) is Watermark
            self.watermark_ms = later(self.watermark_ms, item.timestamp_ms)
        self._owes(item)

    def send(self, output: int, message: StreamMessage, last: bool) -> None:
        """Note that a message enters an output channel; whether it is the `last` of the outbox."""
        kind = type(message)
        if kind is Event or kind is Watermark:
            self._separated(output, message)
            self._pays(output, message)  # type: ignore[arg-type]
        if self.last_out[output] == _ENDED:
            self.breaks("FIFO", f"{message} was sent on {self.outputs[output]} after the end")
        if kind is Event:
            self.sent = put(self.sent, output, self.sent[output] + 1)
            if not self.inputs:
                self._in_sequence(output, message)  # type: ignore[arg-type]
        elif kind is Watermark:
            self.marks_output(output, message)
        elif kind is CheckpointBarrier and self.last_out[output] != _ENDED:
            self.bars_output(output, message.checkpoint_id)  # type: ignore[union-attr]
        elif kind is EndOfInput:
            if not self.inputs and self.made != self._sent_of(output):
                self.breaks("NOLOSS", f"{self.name} made {self.made} events and did not send all of them")
            self.last_out = put(self.last_out, output, _ENDED)
        if last:
            self._nothing_waits()

    def settle(self, checkpoint_id: int, completed: bool, is_idle: bool) -> None:
        """Forget a checkpoint that the coordinator has ended: it is not asked about. `is_idle`: the outbox is empty."""
        if completed and self._guarantee == "exactly_once":
            cut = self._cut(checkpoint_id)
            covered = sum(self.applied if cut is None else cut.applied)
            self.covered = max(self.covered, covered)
            self.due = (*self.due, (checkpoint_id, covered))
        self.cuts = tuple(each for each in self.cuts if each[0] != checkpoint_id)
        self.begun -= {checkpoint_id}
        self.suspects -= {checkpoint_id}
        self.settled |= {checkpoint_id}
        if completed:
            self.done = max(self.done, checkpoint_id)
        if is_idle:
            self._nothing_waits()

    def _has_made_again(self) -> None:
        """Forget how much a source had made when the job failed, once it has made as much."""
        if self.made >= self.most_made:
            self.most_made = 0

    def finish(self) -> None:
        """Note that a source has nothing more to do."""
        self.finished = True

    # What a failure leaves, and what comes back.

    def past(self, checkpoint_id: int, task: Sender) -> Past:
        """Return what a restore of a complete checkpoint must come back to here."""
        cut = self._cut(checkpoint_id)
        if cut is not None and cut.past is not None:
            return cut.past
        return self._past_now(self._cut_now(task))

    def _past_now(self, cut: TaskCut) -> Past:
        return Past(
            self.state,
            cut.sent,
            cut.applied,
            ((),) * len(self.inputs),
            ((),) * len(self.outputs),
            self.open,
            self.finished,
            self.made,
            self.watermark_ms,
            self.marks if self.inputs else (None,) * len(self.outputs),  # a source makes its watermarks again
            self.unseen,
            self.rows,
        )

    def die(self, start: tuple[object, ...]) -> None:
        """Forget the task, which is gone; what is visible in the external system stays."""
        shown, rows = sum(self.applied) - len(self.unseen), self.visible_rows
        most_made = max(self.most_made, self.made) if self._must_repeat else 0
        self.restore(start)
        self.most_made = most_made
        self.visible_rows = rows
        self.covered = shown if self._guarantee != "idempotent" else 0  # until the restore: how many are visible

    def go_back(self, past: Past) -> None:
        """Go back to a cut, as a new task is restored to it."""
        shown, covered = self.covered, sum(past.applied)
        if self._guarantee == "exactly_once" and not equations.shown_in_turn(range(shown), range(covered)):
            self.breaks("REC", f"{self.name} has shown {shown} events, and goes back to {covered}")
            shown = covered
        self.state, self.sent, self.applied, self.open = past.state, past.sent, past.applied, past.open
        self.finished, self.made = past.finished, past.made
        self.watermark_ms, self.marks = past.watermark_ms, past.marks
        self.has_announced = past.watermark_ms is None or not self.inputs
        self._has_made_again()
        self.rows = past.rows
        self.covered = covered if self._guarantee != "idempotent" else 0
        if self._guarantee == "exactly_once":
            self.unseen = past.unseen[shown - (covered - len(past.unseen)) :]

    def came_back(self, its_digest: str) -> None:
        """Judge a restored task: `its_digest` is that of its cut, and all that its checkpoint covers is visible."""
        if digest(self.state if self.inputs else self.made + 1) != its_digest:
            self.breaks("REC", f"the state of {self.name} is not that of its cut")
        if not self._has_shown(sum(self.applied)):
            self.breaks("REC", f"{self.unseen[0]} is not visible at {self.name}, and its checkpoint was restored")

    def announced(self, checkpoint_id: int) -> None:
        """Judge a sink that is notified that a checkpoint is complete: all that it covers is visible."""
        for number, covered in self.due:
            if number == checkpoint_id and not self._has_shown(covered):
                self.breaks("REC", f"checkpoint {checkpoint_id} was announced to {self.name}, and not all is visible")
        self.due = tuple(each for each in self.due if each[0] > checkpoint_id)

    def missing(self) -> str | None:
        """Return what is wrong with what is visible, now that the job has ended."""
        if not self._has_shown(sum(self.applied)):
            return f"{self.unseen[0]} is not visible at {self.name}, and the job has ended"
        for row in sorted(map(str, self.visible_rows - self.rows)):
            return f"{row} is visible at {self.name}, and never came again"
        return None

    def _has_shown(self, due: int) -> bool:
        return equations.shown_enough(range(sum(self.applied) - len(self.unseen)), range(due))

    def _shows(self, event: Event) -> None:
        """Ask that a sink show what took effect: at once, or when a checkpoint that covers it is complete."""
        if self._guarantee == "exactly_once":
            self.unseen = (*self.unseen, event)
        elif self._guarantee:
            self._to_show = event
            if self._guarantee == "idempotent":
                self.rows |= {event}

    def _shown(self, index: int, event: Event, task: Sender) -> None:
        if self._to_show != event:
            self.breaks("REC", f"{event} was shown by {self.name} and did not take effect there just now")
        self._to_show = None
        if self._guarantee == "idempotent":
            self.visible_rows |= {event}

    def _commit(self, index: int, subject: tuple[str, tuple[Event, ...]], task: Sender) -> None:
        transaction, events = subject
        if not equations.shown_in_turn(events, self.unseen):
            self.breaks("REC", f"{transaction} became visible at {self.name} out of its turn")
        if equations.uncovered(events, sum(self.applied) - len(self.unseen), self.covered):
            self.breaks("REC", f"{transaction} became visible at {self.name}, and no complete checkpoint covers it")
        self.unseen = self.unseen[len(events) :]

    # What is asked when a checkpoint completes.

    def part(self, checkpoint_id: int, task: Sender) -> CompletedCut:
        """Return what this task has to say about a checkpoint."""
        cut = self._cut(checkpoint_id)
        has_cut = cut is not None
        if cut is None:
            cut = self._cut_now(task)  # of a finished task, everything is before the cut
        return CompletedCut(
            has_cut,
            checkpoint_id in self.begun,
            self.finished,
            cut.sent,
            tuple(map(sum, zip(cut.applied, cut.recorded, strict=True))),
            cut.recorded_out,
            cut.wrong,
            checkpoint_id in self.suspects,
        )

    def is_whole(self, checkpoint_id: int) -> bool:
        """Return whether nothing more is to come of a part: its snapshot is taken, and no input waits or is waited
        for."""
        has_come = all(
            inside >= checkpoint_id or not is_open for inside, is_open in zip(self.last_in, self.open, strict=True)
        )
        is_cut = checkpoint_id in self.settled or self._cut(checkpoint_id) is not None
        return is_cut and has_come and checkpoint_id not in self.blocked

    def _cut(self, checkpoint_id: int) -> TaskCut | None:
        return next((cut for number, cut in self.cuts if number == checkpoint_id), None)

    def _cut_now(self, task: Sender) -> TaskCut:
        """Return the cut: before it is what was given off and took effect so far; the outbox was given off."""
        sent = list(self.sent)
        for output, message in task.outbox:
            if type(message) is Event:
                sent[output] += 1
        return TaskCut(tuple(sent), self.applied, (0,) * len(self.inputs), (0,) * len(sent))

    def _amend(self, checkpoint_id: int, cut: TaskCut) -> None:
        self.cuts = tuple((number, cut if number == checkpoint_id else each) for number, each in self.cuts)

    # How each effect is judged.

    def breaks(self, invariant: str, reason: str) -> None:
        """Note that an invariant does not hold."""
        self.broken.append((invariant, reason))

    def _event(self, index: int, message: Event | Watermark, task: Sender) -> None:
        fold = self._takes_effect(index, message)
        if type(message) is Event:
            self.applied = put(self.applied, index, self.applied[index] + 1)
            self._shows(message)
            self._gives(fold.process(index, message))
        else:
            assert type(message) is Watermark
            self.promises(index, message.timestamp_ms)
            self.advance()
        self.state = fold.checkpoint()

    def _end(self, index: int, message: StreamMessage, task: Sender) -> None:
        fold = self._takes_effect(index, message)
        self.ends(index)
        self.finished = not any(self.open)
        self._gives(fold.on_end(index))
        self.advance()
        self.state = fold.checkpoint()

    def _takes_effect(self, index: int, message: StreamMessage) -> Operator:
        """Return the operator, as it was before."""
        self._turn_of(index, message)
        self.cause = self.last_in[index]
        assert self._fold is not None
        self._fold.restore(self.state)
        return self._fold

    def advance(self) -> int | None:
        """The watermark of the task, as `model.checkpoint.operators.refolding` has it; its state is the fold's."""
        assert self._fold is not None
        reached = super().advance()
        if reached is not None:
            self._gives(self._fold.on_watermark(reached))
        elif self.has_announced or self.watermark_ms != self.least_promise():
            return None
        assert self.watermark_ms is not None
        self.has_announced = True
        self._owes(Watermark(self.watermark_ms))
        return reached

    def _gives(self, outputs: Iterable[Event]) -> None:
        for event in outputs:
            self._owes(event)

    def _owes(self, message: Event | Watermark) -> None:
        """Owe a watermark to every output; an event to each edge, once, or to each channel of it."""
        owed = []
        for (exchange, outputs), due in zip(self._groups, self.owed, strict=True):
            once = type(message) is Event and exchange != "broadcast"
            new = [Owed(message, outputs)] if once else [Owed(message, (each,)) for each in outputs]
            owed.append((*due, *new))
        self.owed = tuple(owed)

    def _pays(self, output: int, message: Event | Watermark) -> None:
        """Judge a message sent on this output, where it is next: an edge keeps the order of what its task gives."""
        edge = next(at for at, (_, outputs) in enumerate(self._groups) if output in outputs)
        owed = self.owed[edge]
        place = next((at for at, due in enumerate(owed) if output in due.outputs), None)
        if place is None or exact(owed[place].message) != exact(message):
            due = "nothing" if place is None else str(owed[place].message)
            due += " with another payload" if due == str(message) else ""
            self.breaks(TASK, f"{self.name} sent {message} on {self.outputs[output]} where {due} was due")
            place = next((at for at, its in enumerate(owed) if output in its.outputs and its.message == message), None)
        if place is not None:
            self.owed = put(self.owed, edge, (*owed[:place], *owed[place + 1 :]))

    def unsent(self) -> StreamMessage | None:
        """Return the first of what was to be sent and is not."""
        return next((due.message for owed in self.owed for due in owed), None)

    def _buffer(self, index: int, message: StreamMessage, task: Sender) -> None:
        waiting = (*self.waiting[index], message)
        self.waiting = put(self.waiting, index, waiting)
        if self._taken == (index, message):
            self._taken = None
        what = f"messages of {self.inputs[index]} were buffered at a time"
        for reason in equations.beyond(len(waiting), what, self._limits.max_buffer_per_input):
            self.breaks("BOUND", reason)
        buffered, what = sum(map(size_of, chain(*self.waiting))), f"bytes were buffered at {self.name} at a time"
        for reason in equations.beyond(buffered, what, self._limits.max_buffer_memory_bytes):
            self.breaks("BOUND", reason)

    def _ignore(self, index: int, message: StreamMessage, task: Sender) -> None:
        if self._taken == (index, message):
            self._taken = None
        else:
            self._let_go(index, message)

    def _block(self, index: int, checkpoint_id: int, task: Sender) -> None:
        barrier = self._barrier(index, checkpoint_id)
        if barrier is None:
            self.breaks("FIFO", f"barrier {checkpoint_id} took effect on {self.inputs[index]} where it was not next")
        elif self._taken is not None and self._taken[1] is barrier:
            self._taken = None
            if self._ahead or any(not self._excused(each) for each in self.waiting[index]):
                self._passing.append((index, barrier))
        else:
            self._turn_of(index, barrier)
        self.bars(index, checkpoint_id, None if barrier is None else barrier.epoch)
        if checkpoint_id == self.done:
            self.breaks("LIVE", f"{self.name} waits for checkpoint {checkpoint_id}, which was completed")

    def _snapshot(self, index: int, subject: tuple[int, str], task: Sender) -> None:
        checkpoint_id, its_digest = subject
        for reason in equations.cut_again(self.name, checkpoint_id, 1 + (checkpoint_id == self.last_cut)):
            self.breaks("ONCE", reason)
        self.snaps(checkpoint_id)
        if checkpoint_id in self.settled or self._cut(checkpoint_id) is not None:
            return
        cut = self._cut_now(task)
        state = self.state if self._fold is not None else self.made + 1
        if digest(state) != its_digest:
            wrong = f"the state of {self.name} in checkpoint {checkpoint_id} is not what took effect before the cut"
            cut = cut._replace(wrong=wrong)
        if self._keeps_past:
            cut = cut._replace(past=self._past_now(cut))
        self.cuts = (*self.cuts, (checkpoint_id, cut))

    def _capture(self, index: int, subject: tuple[int, Event], task: Sender) -> None:
        """Record the next event of the channel that is behind the cut and not recorded yet."""
        checkpoint_id, event = subject
        cut = self._records_for(checkpoint_id, event)
        if cut is None:
            return
        to_come: list[StreamMessage] = [*self.waiting[index]]
        if self._taken is not None and self._taken[0] == index:
            to_come.append(self._taken[1])
        events = [each for each in (*to_come, *self._ahead) if type(each) is Event]
        at = cut.applied[index] + cut.recorded[index] - self.applied[index]
        if not 0 <= at < len(events) or events[at] != event:
            wrong = f"{event} is recorded in checkpoint {checkpoint_id} of {self.name} where another was next"
            cut = cut._replace(wrong=wrong)
        if cut.past is not None:
            recorded = put(cut.past.recorded, index, (*cut.past.recorded[index], event))
            cut = cut._replace(past=cut.past._replace(recorded=recorded))
        cut = cut._replace(recorded=put(cut.recorded, index, cut.recorded[index] + 1))
        self._records(checkpoint_id, event, cut)

    def _capture_output(self, output: int, subject: tuple[int, Event], task: Sender) -> None:
        """Record an event that the barrier passed on its way out, in channel or outbox: the last before the cut."""
        checkpoint_id, event = subject
        cut = self._records_for(checkpoint_id, event)
        if cut is None:
            return
        if cut.past is not None:
            kept = cut.past.recorded_out[output]
            # What was passed in a channel is reported after what was passed in the outbox, and comes before it.
            order = (*kept, event) if not self._passed else _in_front(kept, event, self._passed)
            cut = cut._replace(past=cut.past._replace(recorded_out=put(cut.past.recorded_out, output, order)))
        cut = cut._replace(recorded_out=put(cut.recorded_out, output, cut.recorded_out[output] + 1))
        self._records(checkpoint_id, event, cut)
        if output not in self._passed_out:
            there = self._passed or [each for where, each in task.outbox if where == output]
            self._passed_out[output] = [each for each in there if type(each) is Event], []
        self._passed_out[output][1].append(event)

    def _records_for(self, checkpoint_id: int, event: Event) -> TaskCut | None:
        """Return the cut that `event` is recorded for; None if the checkpoint has ended."""
        cut = self._cut(checkpoint_id)
        if cut is None and checkpoint_id == self.done:
            self.breaks("CUT", f"{event} was recorded for checkpoint {checkpoint_id} after that was completed")
        return cut

    def _records(self, checkpoint_id: int, event: Event, cut: TaskCut) -> None:
        """`event` is in flight for a checkpoint whose `cut` has counted it."""
        cut = cut._replace(recorded_bytes=cut.recorded_bytes + event.size_bytes)
        self._amend(checkpoint_id, cut)
        what = f"bytes were recorded at {self.name} for checkpoint {checkpoint_id}"
        for reason in equations.beyond(cut.recorded_bytes, what, self._limits.max_inflight_buffer_bytes):
            self._over_limit = checkpoint_id, reason

    def _decline(self, index: int, subject: tuple[int, Reason], task: Sender) -> None:
        checkpoint_id, reason = subject
        most = self._limits.max_inflight_buffer_bytes
        if reason is Reason.IN_FLIGHT_LIMIT and most is not None and checkpoint_id not in self.settled:
            cut = self._cut(checkpoint_id)
            to_come = [*self._ahead, *(() if self._taken is None else (self._taken[1],))]
            counted = sum(map(size_of, to_come)) + (0 if cut is None else cut.recorded_bytes)
            if counted <= most:
                what = f"{self.name} aborted checkpoint {checkpoint_id} over {counted} bytes in flight"
                self.breaks(TASK, f"{what}; {most} may be")
        self.aborts(checkpoint_id)

    def begins(self, checkpoint_id: int) -> None:
        """Note that a checkpoint has come to the task; nobody asks about one that has ended."""
        if checkpoint_id not in self.settled:
            super().begins(checkpoint_id)

    # Turns.

    def _turn_of(self, index: int, message: StreamMessage) -> None:
        """`message` takes effect on an input: it must be the first of what was taken and had none (FIFO, NOLOSS)."""
        waiting = self.waiting[index]
        ahead = waiting[: waiting.index(message)] if message in waiting else waiting
        passed = next((each for each in ahead if not self._excused(each)), None)
        event = next((each for each in ahead if type(each) is Event), None)
        if type(message) is Watermark and event is not None:
            self.breaks("WM", f"{message} took effect on {self.inputs[index]} before {event}, sent ahead of it")
        if message not in waiting:
            if self._taken != (index, message):
                self.breaks("NOLOSS", f"{message} took effect on {self.inputs[index]} and was not taken")
                return
            self._taken = None
        if passed is not None:
            self.breaks("FIFO", f"{message} took effect on {self.inputs[index]} where {passed} was next")
        self._let_go(index, message)

    def _let_go(self, index: int, message: StreamMessage) -> None:
        """Let a message go that waited, and what `model.spec.history.let_go` passes over."""
        waiting: deque[Any] = deque(self.waiting[index])
        self._passed_over += [(index, gone) for gone in let_go(waiting, message) if gone != message]
        self.waiting = put(self.waiting, index, tuple(waiting))

    def _barrier(self, index: int, checkpoint_id: int) -> CheckpointBarrier | None:
        """Return the barrier of a checkpoint that was taken, now or before, and had no effect so far."""
        taken = () if self._taken is None or self._taken[0] != index else (self._taken[1],)
        for each in (*taken, *self.waiting[index]):
            if type(each) is CheckpointBarrier and each.checkpoint_id == checkpoint_id:
                return each
        return None

    def _excused(self, message: StreamMessage) -> bool:
        """Return whether it may be passed over: a barrier or cancel that is aborted, or that need not keep its
        place."""
        if type(message) is CheckpointBarrier:
            return equations.may_overtake(message, self.unaligned, self.aborted)
        return equations.has_no_effect(message, self.aborted)

    # Sending.

    def _separated(self, output: int, message: StreamMessage) -> None:
        """Ask FWD of the checkpoint that was completed last; of those that may be yet, it is asked when they are."""
        side, cause = self.last_out[output], self.cause
        if cause is None or side in (cause, _ENDED):
            return
        ids, permits_orphans = range(min(side, cause) + 1, max(side, cause) + 1), self._limits.permits_orphans
        between = {n for n in ids if equations.separates(n, side, cause, n in self.unaligned, permits_orphans)}
        if self.done in between:
            self.breaks("FWD", f"{self.name} sent {message} on the wrong side of barrier {self.done}")
        self.suspects |= between - self.settled

    def _in_sequence(self, output: int, event: Event) -> None:
        """NOLOSS: a source sends what it made, in order."""
        if event.sequence != self._sent_of(output) or event.sequence > self.made:
            self.breaks("NOLOSS", f"{self.name} sent {event} on {self.outputs[output]} out of its turn")

    def _sent_of(self, output: int) -> int:
        """Return how many events were sent on the edge of an output; of a broadcast on that output."""
        exchange, outputs = next(group for group in self._groups if output in group[1])
        return self.sent[output] if exchange == "broadcast" else sum(self.sent[each] for each in outputs)


_NOTED: dict[str, Callable[[TaskMonitor, int, Any, Sender], None]] = {
    "deliver": TaskMonitor._event,
    "end": TaskMonitor._end,
    "buffer": TaskMonitor._buffer,
    "ignore": TaskMonitor._ignore,
    "block": TaskMonitor._block,
    "resume": lambda monitor, _, checkpoint_id, __: monitor.frees(checkpoint_id),
    "snapshot": TaskMonitor._snapshot,
    "capture": TaskMonitor._capture,
    "capture_output": TaskMonitor._capture_output,
    "forward": lambda monitor, _, barrier, __: monitor.forwards(barrier),
    "decline": TaskMonitor._decline,
    "cancel": lambda monitor, _, checkpoint_id, __: monitor.aborts(checkpoint_id),
    "write": TaskMonitor._shown,
    "upsert": TaskMonitor._shown,
    "commit": TaskMonitor._commit,
}


_kept = attrgetter(*TaskMonitor.KEPT)


def _in_front(kept: tuple[Event, ...], event: Event, passed: Sequence[StreamMessage]) -> tuple[Event, ...]:
    """`event` behind those of `passed` that are in `kept`, and ahead of all others."""
    count = sum(each in passed for each in kept)
    return (*kept[:count], event, *kept[count:])


def differs(part: Acknowledge, past: Past) -> Iterator[Breach]:
    """Yield what a part, as it is stored, says otherwise than its task was at the cut."""
    position = None if past.applied else past.made + 1
    for what, said, was in (
        ("its state", digest(part.image), digest(past.state if position is None else position)),
        ("its position", part.position, position),
        ("its watermark", part.watermark_ms, past.watermark_ms),
        ("inputs that had ended", part.ended, tuple(i for i, is_open in enumerate(past.open) if not is_open)),
        ("that it had finished", part.finished, past.finished),
        ("what was in flight on its inputs", _recorded(part.inflight), dict(_named(past.recorded))),
        ("what was in flight on its outputs", _recorded(part.inflight_output), dict(_named(past.recorded_out))),
    ):
        if said != was:
            yield (
                TASK,
                f"{part.task} stores {said} as {what} in checkpoint {part.checkpoint_id}; at its cut it was {was}",
            )


def _recorded(record: Iterable[InFlightChannelData]) -> dict[int, str]:
    return {data.input_id: " ".join(map(str, data.events)) for data in record}


def _named(record: Iterable[tuple[Event, ...]]) -> Iterator[tuple[int, str]]:
    return ((index, " ".join(map(str, events))) for index, events in enumerate(record) if events)


def completes(
    checkpoint_id: int,
    parts: Mapping[str, CompletedCut],
    acknowledged: Collection[str],
    topology: Topology,
    limits: Limits | None = None,
) -> Iterator[Breach]:
    """Yield what is wrong with a checkpoint that the coordinator has just called complete: the equation, and ONCE.

    Parameters
    ----------
    checkpoint_id : int
    parts : mapping of str to CompletedCut
        Of every task.
    acknowledged : collection of str
        The tasks whose acknowledgement the coordinator has.
    topology : Topology
    limits : Limits, optional
        What was configured: whether there may be orphans.
    """
    permits_orphans, owing = limits is not None and limits.permits_orphans, set()
    for name, part in parts.items():
        for what in equations.lacking(part.has_cut, part.has_begun, name in acknowledged, part.finished):
            yield "ONCE", equations.completed_without(checkpoint_id, what, name)
            if what == equations.SNAPSHOT:
                owing.add(name)
        if part.wrong:
            yield "CUT", part.wrong
        if part.is_suspect:
            yield "FWD", f"{name} sent something on the wrong side of barrier {checkpoint_id}"
    for channel in topology.channels:
        sender, receiver = topology.ends(channel)
        if sender in owing or receiver in owing:
            continue
        output, index = topology.outputs(sender).index(channel), topology.inputs(receiver).index(channel)
        sent = parts[sender].sent[output]
        covered = parts[receiver].covered[index] + parts[sender].recorded_out[output]
        if not equations.balanced(range(sent), range(covered), permits_orphans):
            count = abs(sent - covered)
            events = f"1 event of {channel} is" if count == 1 else f"{count} events of {channel} are"
            what = "lost: sent before the cut, taken after" if sent > covered else "orphaned: taken before the cut"
            yield "CUT", f"{events} {what} in checkpoint {checkpoint_id}"
