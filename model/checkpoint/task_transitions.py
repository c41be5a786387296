"""One task of the world as a table: what it is, times what happens to it, gives what it is then.

Each distinct local step is worked out once (`model.explore.memo`). A *cell* is the value of a task: the machine, what
waits to be sent or reported, and its monitor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from barrierlab.impl.checkpoint.actions import AbortTask, Inject, Notify
from barrierlab.impl.checkpoint.gate import Gate
from barrierlab.impl.checkpoint.injector import CheckpointBarrierInjector
from barrierlab.impl.checkpoint.recovery import TaskRestore
from barrierlab.impl.checkpoint.report import Acknowledge, Decline
from barrierlab.impl.checkpoint.task import OperatorTask, SinkTask, SourceTask, Task
from barrierlab.impl.checkpoint.transactions import Ledger
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointer
from barrierlab.impl.messages import CheckpointBarrier, Event, StreamMessage, Watermark
from barrierlab.model.checkpoint.components import COUNTERS
from barrierlab.model.checkpoint.monitor import CompletedCut, Past, Sends, TaskMonitor, raised
from barrierlab.model.errors import RAISED
from barrierlab.model.explore.intern import Interner, Pool, Shared
from barrierlab.model.explore.memo import Memo
from barrierlab.model.spec import equations
from barrierlab.model.spec.watch import Breach

NOW_NS = 0
THRESHOLD_NS = 1_000
"""The world is untimed: all is triggered at 0, a barrier that comes in time comes at 0, a late one behind this."""
LATE_NS = THRESHOLD_NS + 1
TIMEOUT_NS = 1_000_000
MOST_DRIVEN = 100_000
"""So many steps of a machine are kept whatever its monitor knows, some 150 MB a task; then they are repeated."""


class Finished(NamedTuple):
    """The report of a task that has nothing more to do.

    Attributes
    ----------
    part : Acknowledge or None
        Its part of all that is to come, where that is kept.
    """

    part: Acknowledge | None


CoordinatorOrder = Inject | AbortTask | Notify

Note = tuple[str, str, str | None, object]
"""An entry of a journal, but for its time."""


class TaskState(NamedTuple):
    """A task as a value.

    Attributes
    ----------
    machine : Hashable
        What its ``capture`` gave, but for outbox and reports.
    outbox : tuple of (int, int)
        Output, and number of the message.
    reports : tuple
        What waits until a barrier has left the outbox.
    monitor : tuple
    at : int
        How far a source is in its script.
    finished, end_reported : bool
        Whether it has nothing more to do, and whether that is reported.
    outside : Hashable
        What a sink has prepared outside, and what became of it. It outlives the task.
    """

    machine: Hashable
    outbox: tuple[tuple[int, int], ...]
    reports: tuple[Acknowledge | Decline, ...]
    monitor: tuple[object, ...]
    at: int
    finished: bool
    end_reported: bool
    outside: Hashable


class LocalStep(NamedTuple):
    """The outcome of a local step.

    Attributes
    ----------
    cell : int
    took : bool
        Whether a message that was offered has left its channel.
    place : int
        Where it was there.
    broken : tuple of (str, str)
        What the monitor has against it.
    notes : tuple of Note
    """

    cell: int
    took: bool
    place: int
    broken: tuple[Breach, ...]
    notes: tuple[Note, ...]


class Info(NamedTuple):
    """The moves of a cell.

    Attributes
    ----------
    outbox : tuple of (int, int)
    has_reports : bool
        Whether there is something to tell the coordinator that no barrier holds back.
    can_drain : bool
    takes : tuple of int
        The inputs that may be read, if there is nothing in the outbox; those that are open, if the gate chooses.
    script : object
        What a source does next; None if nothing.
    may_close : bool
        Whether a source may end: not before it has emitted again what it had emitted before a failure.
    expires : str
        ``"switch"`` or ``"abort"``: what a deadline would make of it; else ``""``.
    newest : int
        The last checkpoint of which a barrier has come.
    finished : bool
    """

    outbox: tuple[tuple[int, int], ...]
    has_reports: bool
    can_drain: bool
    takes: tuple[int, ...]
    script: object
    may_close: bool
    expires: str
    newest: int
    finished: bool


class Ability(NamedTuple):
    """The moves of a machine: of `Info`, what does not depend on its monitor."""

    can_drain: bool
    takes: tuple[int, ...]
    expires: str


class MachineStep(NamedTuple):
    """The outcome of a call of a machine, whatever its monitor knows.

    Attributes
    ----------
    took : bool or None
        As the call answered.
    place : int
    local : int
        All of the cell afterwards but for its monitor.
    watched : tuple
        The calls of the monitor that it came to, in order, with their arguments.
    reports : tuple of Acknowledge or Decline
        Those that came about.
    notes : tuple of Note
    error : (str, str) or None
        What it raised.
    """

    took: bool | None
    place: int
    local: int
    watched: tuple[tuple[Callable[..., None], tuple[object, ...]], ...]
    reports: tuple[Acknowledge | Decline, ...]
    notes: tuple[Note, ...]
    error: Breach | None


class TaskTransitions:
    """The states of one task, and the transitions between them.

    Parameters
    ----------
    make : callable
        Given a `tell`, makes the task.
    monitor : TaskMonitor
    messages : Interner
        Of messages, shared by the world.
    reports : Interner
        Of what tasks report, shared by the world.
    script : sequence
        What a source makes, one after the other: events, and timestamps of watermarks.
    keeps_parts : bool
        Whether what is acknowledged is kept whole, for a restore; else who and which, and no more.

    Attributes
    ----------
    cells : Interner of TaskState
    infos : list of Info
        By cell.
    start : int
    step : Memo of (LocalStep or None)
        ``step[call, cell, *arguments]``: what comes of a call (the methods below `_offer` say which there are); None
        if nothing does.
    sent : Memo of LocalStep
        ``sent[cell, count]``: the first `count` messages of the outbox have entered their channels.
    reported : Memo of (int, tuple of int)
        ``reported[cell,]``: the cell without what there is to report, and the numbers of that.
    settled : Memo of int
        ``settled[cell, checkpoint_id, completed]``: the monitor learns that a checkpoint has ended.
    part : Memo of CompletedCut
        ``part[cell, checkpoint_id]``: what the monitor has to say about a checkpoint that completes.
    past : Memo of Past
        ``past[cell, checkpoint_id]``: what a restore of a checkpoint that has just completed must come back to.
    dead : Memo of int
        ``dead[cell,]``: the task is gone, and all that only it knew.
    pulls : bool
        Whether the task's gate reads the channels itself (`model.checkpoint.external.PullAligner`).
    always_aligns : bool
        Whether no barrier ever goes ahead of its place, as `impl`'s aligner says of a sink.
    parts_are_late : bool
        Whether, in any step so far, the task has acknowledged a checkpoint before its part was whole, has changed its
        part afterwards, or has gone on after it had ended: then it matters when the coordinator hears of it.
    """

    def __init__(
        self,
        make: Callable[[Callable[[str, int, object], None]], Task],
        monitor: TaskMonitor,
        messages: Interner[StreamMessage],
        reports: Interner[object],
        script: Sequence[Event | int] = (),
        keeps_parts: bool = False,
    ) -> None:
        self._make = make
        self._renew()
        self.monitor = monitor
        self.messages = messages
        self._reports = reports
        self.cells: Interner[TaskState] = Interner()
        self.infos: list[Info] = []
        self._pool = Pool()  # of machines, reports and what is outside
        self._monitors: Interner[tuple[object, ...]] = Interner()
        self._distinct: dict[Any, Any] = {}  # the infos and abilities that differ, one object each
        # Cells but for their monitors: by number the value, its machine, and what that can do.
        self._local_numbers: dict[Hashable, int] = {}
        self._locals: list[TaskState] = []
        self._machine_of: list[Shared] = []
        self._abilities: list[Ability] = []
        self._local_of: list[int] = []  # by cell
        self._driven: Memo[MachineStep] = Memo(self._drive)
        self._watched: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        self._script, self._keeps_parts = script, keeps_parts
        self._at, self._end_reported, self._place = 0, False, 0
        self._notes: list[Note] = []
        self.step: Memo[LocalStep | None] = Memo(self._take)
        self.sent: Memo[LocalStep] = Memo(self._send)
        self.reported: Memo[tuple[int, tuple[int, ...]]] = Memo(self._report)
        self.settled: Memo[int] = Memo(self._settle)
        self.part: Memo[CompletedCut] = Memo(self._part)
        self.past: Memo[Past] = Memo(self._past)
        self.dead: Memo[int] = Memo(self._die)
        self.pulls = hasattr(getattr(self.task, "gate", None), "poll")
        self.always_aligns = self._aligner is not None and not self._aligner.may_overtake
        self.parts_are_late = False
        self.start = self._captured()

    def _renew(self) -> None:
        """Take a new task in the place of the one before."""
        self.task = self._make(self._tell)
        self._machines = _machines(self.task)
        self._counted = [(each, name) for each in self._machines for name in COUNTERS if hasattr(each, name)]
        injector, gate = getattr(self.task, "injector", None), getattr(self.task, "gate", None)
        is_impl = type(self.task) is SourceTask and type(injector) is CheckpointBarrierInjector
        self._injector: CheckpointBarrierInjector | None = injector if is_impl else None
        self._new_injector = () if self._injector is None else self._injector.capture()
        aligner = gate.aligner if type(gate) is Gate else None
        self._aligner = aligner if type(aligner) is UnalignedCheckpointer else None
        writer = getattr(self.task, "writer", None)
        self._ledger: Ledger | None = None if writer is None else writer.ledger

    # What happens to a cell without a call of its machine.

    def _report(self, cell: int) -> tuple[int, tuple[int, ...]]:
        value = self.cells.values[cell]
        buffered = self._held_back(value.outbox)
        reports: list[object] = [each for each in value.reports if each.checkpoint_id not in buffered]
        kept = tuple(each for each in value.reports if each.checkpoint_id in buffered)
        end_reported = value.finished and not kept
        value = value._replace(reports=kept, end_reported=end_reported)
        if not self._keeps_parts:
            reports = [Acknowledge(r.task, r.checkpoint_id) if type(r) is Acknowledge else r for r in reports]
        if end_reported and not self.cells.values[cell].end_reported:
            reports.append(Finished(self._final_snapshot(cell)))
        return self._number(value, cell), tuple(map(self._reports.number, reports))

    def _final_snapshot(self, cell: int) -> Acknowledge | None:
        if not self._keeps_parts:
            return None
        self._restore_task(cell)
        return self.task.final_snapshot()

    def _settle(self, cell: int, checkpoint_id: int, completed: bool) -> int:
        value = self.cells.values[cell]
        self.monitor.restore(value.monitor)
        self.monitor.settle(checkpoint_id, completed, not value.outbox)
        return self._number(value._replace(monitor=self.monitor.capture()), cell)

    def _part(self, cell: int, checkpoint_id: int) -> CompletedCut:
        self._restore_task(cell)
        return self.monitor.part(checkpoint_id, self.task)

    def _past(self, cell: int, checkpoint_id: int) -> Past:
        self._restore_task(cell)
        return self.monitor.past(checkpoint_id, self.task)

    def _die(self, cell: int) -> int:
        start = self.cells.values[self.start]
        self.monitor.restore(self.cells.values[cell].monitor)
        self.monitor.die(start.monitor)
        dead = start._replace(monitor=self.monitor.capture(), outside=self.cells.values[cell].outside)
        number = self._number(dead, self.start)
        self.infos[number] = self.infos[number]._replace(may_close=not self.monitor.most_made)
        return number

    def recover(self, cell: int, part: TaskRestore, checkpoint_id: int, past: Past, for_good: bool) -> LocalStep:
        """Restore a new task to its cut, where a dead one is; `for_good` if it never has to be again."""
        dead = self.cells.values[cell]
        self._restore_task(self.start)
        self._restore_external(dead.outside)
        self.monitor.restore(dead.monitor)
        self.monitor.go_back(past)
        try:
            state = self.task.recover(part, checkpoint_id)  # type: ignore[attr-defined]
            for what, its in self._watched:
                what(self.monitor, *its)
            self.monitor.came_back(state)
            if for_good and type(self._ledger) is Ledger:
                self._forget_transactions(self._ledger)
            self._at, self._end_reported = self._place_in_script(part), part.finished
            notes: tuple[Note, ...] = (("restored", self.monitor.name, None, (checkpoint_id, state)), *self._notes)
            broken = tuple(self.monitor.broken)
            return LocalStep(self._captured(), True, 0, broken, notes)
        except RAISED as error:  # as in `_take`
            return LocalStep(cell, True, 0, (raised(self.monitor.name, error),), tuple(self._notes))

    def _forget_transactions(self, ledger: Ledger) -> None:
        """Forget what has become of transactions: another recovery would ask, and the names of later ones tell."""
        transactions, written, rows = ledger.capture()  # type: ignore[misc]
        prepared = ledger.prepared(self.monitor.name)
        ledger.restore((tuple(each for each in transactions if each[0] in prepared), written, rows))  # type: ignore[has-type]

    def finished_part(self, cell: int) -> Acknowledge | None:
        """Return the final snapshot of a task that has been restored as finished."""
        return self._final_snapshot(cell) if self.cells.values[cell].finished else None

    def missing(self, cell: int) -> str | None:
        """Return what is wrong with what a sink has shown, or left prepared, now that the job has ended."""
        missing = self._monitored(cell).missing()
        if missing is None and self._ledger is not None:
            self._restore_external(self.cells.values[cell].outside)
            for transaction in self._ledger.prepared(self.monitor.name):
                return equations.left_open(transaction, self.monitor.name)
        return missing

    def _place_in_script(self, part: TaskRestore) -> int:
        """Return the place behind the last event that the source had made; a watermark behind it is emitted again."""
        made = 0 if part.position is None else part.position - 1
        events = [at for at, item in enumerate(self._script, 1) if type(item) is Event]
        return events[made - 1] if made else 0

    def unsent(self, cell: int) -> StreamMessage | None:
        """Return the first of what the task had to send and has not."""
        return self._monitored(cell).unsent()

    def blocked(self, cell: int) -> tuple[int, ...]:
        """Return by input the checkpoint that it waits for; 0 if none."""
        return self._monitored(cell).blocked

    def holds(self, cell: int) -> bool:
        """Return whether something is buffered that has had no effect."""
        return any(self._monitored(cell).waiting)

    def _monitored(self, cell: int) -> TaskMonitor:
        """The monitor, as it was there."""
        self.monitor.restore(self.cells.values[cell].monitor)
        return self.monitor

    # What the steps have in common.

    def edges(self) -> Iterator[tuple[int, int, bool]]:
        """Yield from cell to cell each step that was ever taken, and whether it consumed something.

        That is a message of a channel, an order, what left the outbox just now, or one of the deadlines that bounds
        lets pass. A failure, and what goes back behind it, is no step.
        """
        for (call, cell, *_), step in self.step.items():
            if step is None:
                continue
            if call in ("offer", "overtake"):
                used = step.took
            elif call == "poll":
                used = step.took and step.place >= 0
            else:
                used = call in ("obey", "passes") or (call == "expire" and self.infos[cell].expires == "abort")
            yield cell, step.cell, used
        for (cell, _), sent in self.sent.items():
            yield cell, sent.cell, False
        for (cell,), (after, _) in self.reported.items():
            yield cell, after, False
        for (cell, *_), after in self.settled.items():
            yield cell, after, False

    def steps(self) -> Iterator[tuple[int, StreamMessage | None, LocalStep]]:
        """Yield each step that was ever taken, its cell, and the message that it took, if any."""
        for (call, cell, *arguments), step in self.step.items():
            if step is None:
                continue
            taken: Any = next((note[3] for note in step.notes if note[0] == "take"), None)
            if step.took and call in ("offer", "overtake"):
                offered = arguments[1]
                taken = self.messages.values[offered if call == "offer" else offered[step.place]]
            yield cell, taken, step
        for (cell, _), sent in self.sent.items():
            yield cell, None, sent

    def judged_parts(self) -> Collection[CompletedCut]:
        """Yield each part that was ever judged as one of a complete checkpoint."""
        return self.part.values()

    def ends_early(self) -> int:
        """Return in how many cells a source has ended before it had made all."""
        return sum(call == "close" and self.infos[cell].script is not None for call, cell, *_ in self.step)

    def deadlines(self) -> int:
        """Return in how many cells a deadline may pass that aborts something."""
        return sum(info.expires == "abort" for info in self.infos)

    def is_acyclic(self) -> bool:
        """Return whether no run of steps that use nothing up comes back to a cell.

        A run of the world that comes back to its state has nothing used up: what the first task takes that moves in it,
        in the direction of the channels, nobody makes again, and of orders and deadlines there are so many. A reading
        loop may well be where it was when it has read from each input.
        """
        leads_to: dict[int, set[int]] = {}
        for cell, after, used in self.edges():
            if not used:
                leads_to.setdefault(cell, set()).add(after)
        try:
            TopologicalSorter(leads_to).prepare()
        except CycleError:
            return False
        return True

    def ignores(self, cell: int, order: CoordinatorOrder) -> bool:
        """Return whether an order is nothing to the task as it is."""
        step = self.step["obey", cell, order]
        return step is not None and step.cell == cell and not step.broken

    def ignores_always(self, cells: Iterable[int], order: CoordinatorOrder) -> bool:
        """Return whether an order is nothing to the task in `cells`, and in all that it has ever come to from there."""
        following: dict[int, list[int]] = {}
        for cell, after, _ in self.edges():
            following.setdefault(cell, []).append(after)
        seen, left = set(cells), list(cells)
        while left:
            cell = left.pop()
            if not self.ignores(cell, order):
                return False
            for after in following.get(cell, ()):
                if after not in seen:
                    seen.add(after)
                    left.append(after)
        return True

    def declines_what_is_late(self) -> bool:
        """Return whether each deadline that aborts something does that with the checkpoint that is under way, and says
        so.

        Only then can the coordinator not tell it from what it aborts itself.
        """
        for cell, info in enumerate(tuple(self.infos)):
            if info.expires != "abort":
                continue
            step = self.step["expire", cell]
            declined = [] if step is None else [note[3][0] for note in step.notes if note[0] == "decline"]  # type: ignore[index]
            if len(self.monitor.inputs) < 2 or declined != [info.newest] or not self._is_under_way(cell, info.newest):
                return False
        return True

    def _is_under_way(self, cell: int, checkpoint_id: int) -> bool:
        monitor = self._monitored(cell)
        return checkpoint_id not in monitor.aborted and not monitor.is_whole(checkpoint_id)

    def differences(self) -> Iterator[str | None]:
        """Make every step a second time, by a new machine: what differs in a line, or None, a step."""
        self._renew()
        self._driven.clear()
        return self.step.differences(self.monitor.name, lambda key: str(key[0]), _words)

    # What they are made of.

    def _take(self, call: str, cell: int, *arguments: object) -> LocalStep | None:
        """Let the machine do, and the monitor see it; None if nothing comes of it."""
        if len(self._driven) > MOST_DRIVEN:
            self._driven.clear()
        made = self._driven[self._local_of[cell], call, *arguments]
        if made.error is None:
            try:
                return self._seen(call, cell, made)
            except RAISED as error:
                made = made._replace(error=raised(self.monitor.name, error))
        assert made.error is not None
        return LocalStep(cell, True, made.place, (made.error,), made.notes)

    def _seen(self, call: str, cell: int, made: MachineStep) -> LocalStep | None:
        if made.took is None:
            return None
        monitor = self.monitor
        monitor.restore(self.cells.values[cell].monitor)
        was_whole = {number for number, _ in monitor.cuts if monitor.is_whole(number)}
        for what, its in made.watched:
            what(monitor, *its)
        monitor.moved(bool(self._locals[made.local].outbox))
        self._look_at_parts(call, made, self.cells.values[cell].finished, was_whole)
        after = self._numbered(made.local, monitor.capture())
        if not made.took and after == cell and not made.notes:
            return None
        return LocalStep(after, made.took, made.place, tuple(monitor.broken), made.notes)

    def _drive(self, local: int, call: str, *arguments: object) -> MachineStep:
        """Put the machine back, let it do, and capture it."""
        self._restore_machine(self._locals[local])
        before = len(self.task.reports)
        try:
            took = getattr(self, f"_{call}")(*arguments)
            if took is None:
                return MachineStep(None, self._place, local, (), (), (), None)
            reports, place = tuple(self.task.reports[before:]), self._place
            after = self._local(self._captured_machine())
        except RAISED as error:  # whatever a machine raises on what may happen, it is broken
            self.task.outbox.clear()  # of what was done until then, nothing is to be left for the next step
            self.task.reports.clear()
            return MachineStep(True, self._place, local, (), (), tuple(self._notes), raised(self.monitor.name, error))
        return MachineStep(took, place, after, tuple(self._watched), reports, tuple(self._notes), None)

    def _look_at_parts(self, call: str, made: MachineStep, had_ended: bool, was_whole: set[int]) -> None:
        acknowledged = (each.checkpoint_id for each in made.reports if type(each) is Acknowledge)
        early = any(not self.monitor.is_whole(checkpoint_id) for checkpoint_id in acknowledged)
        # What a barrier passes in a channel is recorded before its part is reported (`World._send`).
        captured: list[Any] = [note[3] for note in made.notes if note[0] == "capture" and call != "passes"]
        late = any(checkpoint_id in was_whole for checkpoint_id, _ in captured)
        goes_on = had_ended and call not in ("obey", "passes") and bool(made.notes)
        self.parts_are_late = self.parts_are_late or early or late or goes_on

    def _restore_task(self, cell: int) -> None:
        value = self.cells.values[cell]
        self._restore_machine(value)
        self.monitor.restore(value.monitor)

    def _restore_machine(self, value: TaskState) -> None:
        machine, extras = value.machine  # type: ignore[misc]
        for each, extra in zip(self._machines, extras, strict=True):  # type: ignore[has-type]
            if extra is not None:
                vars(each).clear()
                vars(each).update((name, _thawed(buffered)) for name, buffered in extra)
        self.task.restore(machine)  # type: ignore[attr-defined, has-type]
        self.task.outbox.extend((output, self.messages.values[message]) for output, message in value.outbox)
        self.task.reports.extend(value.reports)
        self._restore_external(value.outside)
        self._at, self._end_reported, self._notes, self._place = value.at, value.end_reported, [], 0
        self._watched = []

    def _captured(self) -> int:
        return self._numbered(self._local(self._captured_machine()), self.monitor.capture())

    def _captured_machine(self) -> TaskState:
        """Return all but the monitor."""
        task, number = self.task, self.messages.number
        outbox, reports = tuple((output, number(m)) for output, m in task.outbox), tuple(task.reports)
        task.outbox.clear()
        task.reports.clear()
        for counted, name in self._counted:
            setattr(counted, name, 0)  # two cells that differ in nothing else are one
        self._forget_what_is_over()
        extras = tuple(
            tuple((name, _frozen(buffered)) for name, buffered in sorted(vars(each).items()))
            if hasattr(each, "__dict__")
            else None
            for each in self._machines
        )
        machine = task.capture(), extras  # type: ignore[attr-defined]
        return TaskState(machine, outbox, reports, (), self._at, task.finished, self._end_reported, self._outside())

    def _forget_what_is_over(self) -> None:
        """Forget what the machines of `impl` do not look at any more: cells that differ in nothing else are one."""
        if self._injector is not None and self.task.finished:  # no command is anything to a source that has ended
            self._injector.restore(self._new_injector)
        aligner = self._aligner
        if aligner is not None and (aligner.recording or not aligner.may_overtake):
            aligner.count_from(NOW_NS)  # no switch to come; any deadline passes at any time

    def _outside(self) -> Hashable:
        """Return what of the external system makes a difference to the sink. (What is visible is judged as it becomes
        visible.)"""
        if self._ledger is None:
            return None
        transactions, _, _ = self._ledger.capture()  # type: ignore[misc]
        return transactions  # type: ignore[has-type, no-any-return]

    def _restore_external(self, outside: Hashable) -> None:
        if self._ledger is not None:
            self._ledger.restore((outside, (), ()))

    def _number(self, cell: TaskState, like: int) -> int:
        """The number of a cell, of which the machine is as it is in `like`."""
        return self._numbered(self._local(cell, self._local_of[like]), cell.monitor, like)

    def _local(self, value: TaskState, like: int | None = None) -> int:
        """The number of a cell but for its monitor; its machine is as it is in another, or else as it is now."""
        if like is None or value.machine is not self._locals[like].machine:
            machine = self._pool.shared(value.machine)
        else:
            machine = self._machine_of[like]
        parts = [self._pool.shared(each) for each in (value.outbox, value.reports, value.outside)]
        key = machine, *parts, value.at, value.finished, value.end_reported
        number = self._local_numbers.setdefault(key, len(self._locals))
        if number == len(self._locals):
            outbox, reports, outside = [each.value for each in parts]
            self._locals.append(value._replace(machine=machine.value, outbox=outbox, reports=reports, outside=outside))
            self._machine_of.append(machine)
            ability = self._ability() if like is None else self._abilities[like]
            self._abilities.append(self._distinct.setdefault(ability, ability))
        return number

    def _numbered(self, local: int, monitor: tuple[object, ...], like: int | None = None) -> int:
        """The number of a cell: what it can do is as in `like`, or else as the machine and the monitor have it now."""
        seen = self._monitors.number(monitor, monitor)
        monitor = self._monitors.values[seen]
        number = self.cells.number(self._locals[local]._replace(monitor=monitor), (local, seen))
        if number == len(self.infos):
            cell = self.cells.values[number]
            info = self._info(cell, self._abilities[local]) if like is None else self.infos[like]
            has_reports = cell.finished and not cell.end_reported and not cell.reports
            if cell.reports:
                buffered = self._held_back(cell.outbox)
                has_reports = any(each.checkpoint_id not in buffered for each in cell.reports)
            info = info._replace(outbox=cell.outbox, has_reports=has_reports)
            self.infos.append(self._distinct.setdefault(info, info))
            self._local_of.append(local)
        return number

    def _ability(self) -> Ability:
        """Return what the machine can do, as it is now."""
        task = self.task
        if not isinstance(task, OperatorTask):
            return Ability(False, (), "")
        deadline_ns = task.next_deadline_ns()
        expires = "" if deadline_ns is None else "switch" if deadline_ns < TIMEOUT_NS else "abort"
        takes = () if self.pulls else tuple(i for i in range(len(self.monitor.inputs)) if task.can_take(i))
        return Ability(task.gate.can_drain, takes, expires)

    def _info(self, cell: TaskState, its: Ability) -> Info:
        """Return what the machine can do, now that the monitor is as in `cell`."""
        monitor = self.monitor
        script = self._script[cell.at] if cell.at < len(self._script) and not cell.finished else None
        if not monitor.inputs:
            may_close = not cell.finished and monitor.made >= monitor.most_made
            return Info(cell.outbox, False, False, (), script, may_close, "", 0, cell.finished)
        takes = tuple(i for i, is_open in enumerate(monitor.open) if is_open) if self.pulls else its.takes
        return Info(cell.outbox, False, its.can_drain, takes, None, False, its.expires, monitor.newest, cell.finished)

    def _held_back(self, outbox: tuple[tuple[int, int], ...]) -> set[int]:
        """Return the checkpoints whose flagged barrier is still to leave: what it passes belongs to the part."""
        waiting = (self.messages.values[message] for _, message in outbox)
        return {each.checkpoint_id for each in waiting if type(each) is CheckpointBarrier and each.is_unaligned}

    def _tell(self, verb: str, index: int, subject: object) -> None:
        monitor = self.monitor
        self._watch(TaskMonitor.note, verb, index, subject, Sends(tuple(self.task.outbox)))
        channel = None if index < 0 else monitor.outputs[index] if verb == "capture_output" else monitor.inputs[index]
        self._notes.append(("capture" if verb == "capture_output" else verb, monitor.name, channel, subject))

    def _watch(self, what: Callable[..., None], *arguments: object) -> None:
        """Keep a call of the monitor: what the machine does is the same whatever that knows."""
        self._watched.append((what, arguments))

    # The calls of `step`: what happens to a machine.

    def _offer(self, index: int, message: int, late: bool) -> bool:
        """Offer the head of an input; return whether it was taken."""
        assert isinstance(self.task, OperatorTask)
        came = self.messages.values[message]
        self._watch(TaskMonitor.take, index, came)
        took = self.task.offer(index, came, LATE_NS if late else NOW_NS)
        if not took:
            self._watch(TaskMonitor.restored_in_flight)
        return took

    def _drain(self, late: bool) -> bool:
        """Drain the first buffered message that may go."""
        assert isinstance(self.task, OperatorTask)
        return self.task.drain_next(LATE_NS if late else NOW_NS)

    def _poll(self, readable: tuple[int, ...], heads: tuple[int, ...], late: bool) -> bool | None:
        """Go round the reading loop once; the place of the step is the input that is read, -1 if none is."""
        gate: Any = self.task.gate  # type: ignore[attr-defined]
        now_ns, self._place = LATE_NS if late else NOW_NS, -1
        index = gate.poll(readable, now_ns)
        if index is None:
            return False if self._notes else None
        self._place, message = index, self.messages.values[heads[readable.index(index)]]
        self._watch(TaskMonitor.take, index, message)
        self._notes.append(("take", self.monitor.name, self.monitor.inputs[index], message))
        gate.take(index, message, now_ns)
        return True

    def _overtake(self, index: int, queue: tuple[int, ...], late: bool) -> bool | None:
        """Offer the first barrier of an input channel that wants to go ahead of its place; return None if none does."""
        assert isinstance(self.task, OperatorTask)
        gate, now_ns = self.task.gate, LATE_NS if late else NOW_NS
        messages = [self.messages.values[each] for each in queue]
        for at, barrier in enumerate(messages):
            if type(barrier) is not CheckpointBarrier:
                continue
            if late:
                gate.note_trigger(barrier.checkpoint_id, NOW_NS)
            if gate.wants_overtaking(index, barrier, now_ns):
                self._watch(TaskMonitor.take, index, barrier, messages[:at])
                self._place = at
                took = self.task.offer_overtaking(index, barrier, messages[:at], now_ns)
                if not took:
                    self._watch(TaskMonitor.restored_in_flight)
                return took
        return None

    def _expire(self) -> bool:
        """Let the next deadline pass."""
        assert isinstance(self.task, OperatorTask)
        deadline_ns = self.task.next_deadline_ns()
        assert deadline_ns is not None
        return self.task.on_time(deadline_ns)

    def _obey(self, order: CoordinatorOrder) -> bool:
        """Obey a message of the coordinator."""
        task = self.task
        if type(order) is Notify:
            task.notify(order.checkpoint_id, NOW_NS)
            self._watch(TaskMonitor.announced, order.checkpoint_id)
        elif type(order) is AbortTask:
            task.abort(order.checkpoint_id, order.reason, NOW_NS)  # type: ignore[attr-defined]
        else:
            assert isinstance(task, SourceTask)
            assert type(order) is Inject
            task.injector.coordinator_handle().inject(order.command)
            task.poll(NOW_NS)
        return True

    def _emit(self) -> bool:
        """Do what is next in the script of a source."""
        assert isinstance(self.task, SourceTask)
        item = self._script[self._at]
        self._at += 1
        if type(item) is Event:
            self._watch(TaskMonitor.emit, item)
            self.task.emit(item)
        else:
            assert isinstance(item, int)
            self._watch(TaskMonitor.emit, Watermark(item))
            self.task.emit_watermark(item)
        return True

    def _close(self) -> bool:
        """End a source."""
        assert isinstance(self.task, SourceTask)
        self.task.end()
        self._watch(TaskMonitor.finish)
        return True

    def _passes(self, output: int, passed: tuple[int, ...], checkpoint_id: int) -> bool:
        """Record what is in the channel of an output, as a barrier that has just left went ahead of it."""
        messages = [self.messages.values[each] for each in passed]
        self._watch(TaskMonitor.passed, messages)
        self.task.capture_overtaken(output, messages, checkpoint_id)
        return True

    def _send(self, cell: int, count: int) -> LocalStep:
        value = self.cells.values[cell]
        self.monitor.restore(value.monitor)
        self._notes = []
        for at, (output, number) in enumerate(value.outbox[:count], 1):
            message = self.messages.values[number]
            self._notes.append(("send", self.monitor.name, self.monitor.outputs[output], message))
            self.monitor.send(output, message, last=at == len(value.outbox))
        broken, notes = tuple(self.monitor.broken), tuple(self._notes)
        after = self._number(value._replace(outbox=value.outbox[count:], monitor=self.monitor.capture()), cell)
        return LocalStep(after, True, 0, broken, notes)


def _words(step: LocalStep | None) -> Iterator[str]:
    """Yield what a step did, an effect each, and what it was left as."""
    if step is not None:
        for verb, _, channel, subject in step.notes:
            yield " ".join(str(each) for each in (verb, channel, subject) if each is not None)
        yield f"state {step.cell}"


def _machines(task: Task) -> list[object]:
    """Return the objects that a task is made of: attributes that a subclass adds to one are captured with it."""
    parts: list[Any] = [task]
    if isinstance(task, OperatorTask):
        parts += [task.gate, task.gate.aligner, task.operator]
        parts += [task.writer] if isinstance(task, SinkTask) else []
    elif isinstance(task, SourceTask):
        parts += [task.injector]
    return parts


def _frozen(buffered: object) -> object:
    """Return a copy that does not change with `buffered`."""
    return (
        ("list", tuple(buffered))
        if type(buffered) is list
        else ("dict", tuple(buffered.items()))
        if type(buffered) is dict
        else buffered
    )


def _thawed(buffered: object) -> object:
    if type(buffered) is tuple and len(buffered) == 2 and buffered[0] in ("list", "dict"):
        return list(buffered[1]) if buffered[0] == "list" else dict(buffered[1])
    return buffered
