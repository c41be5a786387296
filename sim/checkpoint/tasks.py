"""Sources, operators and sinks in simulated time: each drives its task of `impl` and gives every effect its moment.

A node decides *when*; what happens is the task's. It takes a message only with an empty outbox, serves it for its
service time, then lets the outbox go, channel by channel; an outbox that a full channel holds back is backpressure.
Message, service and outbox are one step, and no barrier is taken within it, not even one that has overtaken: rule 16 of
the protocol would allow that, but a task has one thread. With interruptible timers, a barrier is taken although results
of a watermark are not out yet (Apache Flink, FLINK-20217, keeps the timers; here their results are recorded).
The effects of a message take place when its service begins; nothing else can happen at the task until it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

from barrierlab.impl import (
    Acknowledge,
    BarrierInjectorHandle,
    CheckpointBarrier,
    Decline,
    Event,
    Gate,
    InjectBarrierCommand,
    OperatorTask,
    Reason,
    SinkTask,
    SourceTask,
    StreamMessage,
)
from barrierlab.impl.checkpoint.task import Task
from barrierlab.model.spec.history import Entry
from barrierlab.sim.channels.input_gate import Inbox
from barrierlab.sim.channels.network import BufferPool
from barrierlab.sim.channels.spsc import Channel, SpscChannel
from barrierlab.sim.checkpoint.metrics import Metrics
from barrierlab.sim.core.clock import Clock, Runnable
from barrierlab.sim.core.cores import Cores
from barrierlab.sim.core.distributions import EventLog

IDLE: Final = 0
BUSY: Final = 1
BACKPRESSURED: Final = 2
NEVER_NS: Final = 1 << 61
"""In seventy years: what is due then is not due, and is asked for once more."""
SomeTask = TypeVar("SomeTask", bound=SourceTask | OperatorTask)


def flagged(barrier: CheckpointBarrier) -> CheckpointBarrier:
    """The barrier of an unaligned checkpoint of the same id."""
    return CheckpointBarrier.new_unaligned(barrier.checkpoint_id, barrier.epoch)


class CoordinatorPort(Protocol):
    """The coordinator as tasks see it: they report to it, and ask when a checkpoint was triggered, in nanoseconds."""

    triggered_ns: dict[int, int]

    def request(self) -> None:
        """Request a checkpoint, as a source's periodic injector does (rule 2)."""

    def report(self, report: Acknowledge | Decline) -> None:
        """Report what a task has to say."""

    def abort_checkpoint(self, checkpoint_id: int, reason: Reason) -> None:
        """Abort a checkpoint that a newer command replaced at a source."""

    def finished(self, part: Acknowledge) -> None:
        """Note that a task has ended; this is its final snapshot."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a task to the run around it.

    Attributes
    ----------
    entries : list of Entry
        The journal.
    switch_ns : int or None
        How long after its trigger a checkpoint turns unaligned; None: never.
    caught_up : callable
        Called by a source that has nothing overdue any more, after a restart.
    """

    clock: Clock
    entries: list[Entry]
    metrics: Metrics
    coordinator: CoordinatorPort
    switch_ns: int | None
    caught_up: Callable[[], None]


class Lane(NamedTuple):
    """An output, or an input, that is a queue without latency between two nodes, as `TaskNode.go` uses it.

    Attributes
    ----------
    channel : SpscChannel
    queue : deque of StreamMessage
        The channel's.
    name : str
        The channel's.
    listed, blocked, line : list of bool, list of bool, deque of int
        The receiver's reader's.
    place : int
        Of the channel there.
    other : TaskNode
        The node at the other end.
    """

    channel: SpscChannel
    queue: deque[StreamMessage]
    name: str
    listed: list[bool]
    blocked: list[bool]
    line: deque[int]
    place: int
    other: TaskNode[SourceTask] | TaskNode[OperatorTask]


class TaskNode(Runnable, Generic[SomeTask]):
    """The base of sources and operators: the outbox, the time spent in each state, stalls."""

    __slots__ = (
        "_attempt",
        "_begun_id",
        "_calm",
        "_ends_ns",
        "_free",
        "_is_direct",
        "_lanes",
        "_lanes_in",
        "_line",
        "_outputs",
        "_overtakes_ns",
        "_pools",
        "_service",
        "_shared_ns",
        "_since_ns",
        "_spans",
        "_state",
        "_switch_ns",
        "_sync",
        "_takes",
        "_timer",
        "_unsettled",
        "applied",
        "begin_ns",
        "begins",
        "bytes_taken",
        "clock",
        "coordinator",
        "cores",
        "crashed",
        "dead",
        "ended",
        "entries",
        "input_names",
        "may_overtake",
        "metrics",
        "name",
        "output_names",
        "serving",
        "spent_ns",
        "stalled",
        "task",
        "work_ns",
    )

    task: SomeTask

    def __init__(
        self,
        ports: Ports,
        name: str,
        outputs: list[Channel],
        output_names: Sequence[str],
        spent_ns: list[int],
        sync: Callable[[], int],
        service: Callable[[], int],
    ) -> None:
        super().__init__()
        self.clock, self.entries, self.metrics = ports.clock, ports.entries, ports.metrics
        self.coordinator, self._switch_ns = ports.coordinator, ports.switch_ns
        self.name, self._sync, self._service = name, sync, service
        self.applied = 0  # events, since the start or a restored one's cut; a source applies none
        self._outputs, self.output_names = outputs, output_names
        self._pools: list[BufferPool] = []
        self._spans = False
        self._timer, self._attempt, self._ends_ns = self.clock.service_timer(self), self.clock.attempt, 0
        # Whether there has been nothing but events since all else was asked for: of those only another event can
        # come next, and nothing else need be asked before it. A call may change it: a type checker is not to know.
        self._calm: Any = False
        self._is_direct = False  # whether it runs by `go`
        self._lanes: list[Lane | None] = []  # its outputs; None for one that is pushed to
        self._lanes_in: list[Lane] = []
        self._line: deque[int] = deque()  # its reader's
        self._takes: OperatorTask | None = None  # the task, if it takes from lanes
        self._free: set[int] = set()  # its aligner's, then
        self.bytes_taken = 0
        self.serving = self.ended = False
        self.dead = self.crashed = False  # it does nothing more; and it said so itself
        self.stalled = 0  # how many stalls are under way
        self.work_ns = 0
        self.begins: Callable[[bool], int] | None = None  # draws the work to begin a part, unaligned or not
        self.begin_ns = 0  # of it to be done, before anything is pushed
        self.cores: Cores | None = None  # what it begins an unaligned part on, beside other tasks
        self._shared_ns = 0  # of the service to come: the work to begin an unaligned part
        self._begun_id = 0
        self.spent_ns = spent_ns  # in all attempts
        self._state, self._since_ns = IDLE, self.clock.now
        self.input_names: Sequence[str] = ()
        self.may_overtake: list[bool] = [True] * len(outputs)
        self._unsettled: dict[int, set[int]] = {}  # by checkpoint, the outputs where its barrier still lies
        self._overtakes_ns: dict[int, int] = {}  # of each of them when it overtakes there

    def attach_pools(self, pools: list[BufferPool], spans: bool) -> None:
        """Attach the buffer pools of the network exchanges it writes to, and whether records span buffers in one."""
        self._pools, self._spans = pools, spans
        for pool in pools:
            pool.on_room = self.wake

    def wake(self) -> None:
        """Tell the node that it may be able to go on; while it serves, only the end of that lets it."""
        if not self.listed and not self.serving:
            self.listed = True
            self.clock.ready.append(self)

    def attach_lanes(self, outputs: list[Lane | None], inputs: list[Lane]) -> None:
        """Let the node run by `go`; without `inputs` it asks its gates, or is a source."""
        self._is_direct, self._lanes, self._lanes_in = True, outputs, inputs

    def run(self) -> None:
        """Do all that can be done now."""
        if not self.serving and not self.stalled:
            if self._is_direct:
                self.go(False)
            else:
                self.run_on(False)

    def run_on(self, continues: bool) -> None:
        """Do all that can be done now, whatever that is; `continues`: as part of the move that goes on."""
        raise NotImplementedError

    def go(self, served: bool) -> None:
        """Do all that can be done now: while nothing but events is under way, the same moves as `run_on`, at once.

        A channel's `push` and `take`, its reader, and the wake of the node at its other end are written out here,
        since a simulation spends most of its time in them.
        """
        clock = self.clock
        if served:
            if clock.attempt != self._attempt:
                return
            clock.now = self._ends_ns
            self.serving = False
            if self.stalled or not self._is_direct:
                self.enter(IDLE)
                self.run_on(False)  # at once: whenever the time moves, nobody else is listed
                return
        task: Task = self.task
        now, outbox, entries, me, continues = clock.now, task.outbox, self.entries, self.name, False
        stamp, takes, line, free = clock.stamp, self._takes, self._line, self._free
        while self._calm:
            while outbox:
                index, message = outbox[0]
                lane = self._lanes[index]
                if lane is None:
                    if not self._push(continues):
                        self.enter(BACKPRESSURED)
                        return
                    break
                channel, queue, name, listed, blocked, others_line, place, other = lane
                if len(queue) + channel.held >= channel.capacity:
                    self.enter(BACKPRESSURED)
                    return
                outbox.popleft()
                entries.append((stamp, "send" if continues else "push", me, name, message))
                continues = True
                queue.append(message)
                if not listed[place] and not blocked[place]:
                    listed[place] = True
                    others_line.append(place)
                if not other.listed and not other.serving:
                    other.listed = True
                    clock.ready.append(other)
            continues = True
            if takes is None:
                made = self._make(now)
                if made is None:
                    return
                if not made:
                    break
            elif line:
                index = line[0]
                channel, queue, name, listed, _, _, _, other = self._lanes_in[index]
                message = queue[0]
                if type(message) is not Event or index not in free:
                    break
                queue.popleft()
                channel.overtakers.opened += 1
                if not other.listed and not other.serving:
                    other.listed = True
                    clock.ready.append(other)
                if not queue:
                    line.popleft()
                    listed[index] = False
                elif len(line) > 1:
                    line.rotate(-1)
                entries.append((stamp, "pass", me, name, message))
                self.work_ns += self._service()
                size_bytes: int = message.size_bytes
                self.bytes_taken += size_bytes
                self.applied += 1
                takes.apply(index, message)
                if not self._calm:  # an effect of it was noted
                    self.settle(index)
            else:
                self.enter(IDLE)
                return
            if self.work_ns:
                if self._state != BUSY:
                    self.enter(BUSY)
                self._ends_ns = now + self.work_ns
                self.serving = True
                self._timer.start_at(self._ends_ns)
                self.work_ns = 0
                return
        self.run_on(continues)

    def _make(self, now: int) -> bool | None:
        """Make an event, or take a message of one of several gates, if nothing else is to be done first.

        Returns
        -------
        bool or None
            Whether that was done; None if there is nothing to do: the node is idle, and somebody or something wakes it.
        """
        raise NotImplementedError

    def settle(self, index: int) -> None:
        """Note that an event of an input has taken effect; what that led to may be that no more of it is taken."""
        raise NotImplementedError

    def enter(self, state: int) -> None:
        """Count the time up to now for the state before."""
        now = self.clock.now
        self.spent_ns[self._state] += now - self._since_ns
        self._state, self._since_ns = state, now

    def abort(self, checkpoint_id: int, reason: Reason) -> None:
        """Bring the coordinator's abort to the task."""
        raise NotImplementedError

    def notify(self, checkpoint_id: int) -> None:
        """Bring the announcement that a checkpoint is complete to the task."""
        self._calm = False
        self.entries.append((self.clock.now, ">notify", self.name, None, checkpoint_id))
        self.task.notify(checkpoint_id, self.clock.now)

    def crash(self) -> None:
        """Stop dead: nothing more is done here, and nothing more is said."""
        if self.crashed:
            return
        self.entries.append((self.clock.now, ">crash", self.name, None, None))
        if not self.dead:
            self.enter(IDLE)
            self.stalled += 1
        self.dead = self.crashed = True

    def stall(self, stalled: bool) -> None:
        """Stand still, or go on."""
        if self.dead:
            return
        self.entries.append((self.clock.now, ">stall" if stalled else ">resume", self.name, None, None))
        self.stalled += 1 if stalled else -1
        if not self.stalled:
            self.wake()

    def flush(self) -> None:
        """Flush the outputs of this node, by its timer."""
        if self.dead:
            return
        for channel in self._outputs:
            channel.flush()

    def _serve(self) -> None:
        """Begin the service that the last effects asked for."""
        work_ns, self.work_ns = self.work_ns, 0
        self._begin_service(work_ns)

    def _begin_service(self, work_ns: int) -> None:
        now = self.clock.now
        if self._state != BUSY:
            self.enter(BUSY)
        self._ends_ns = now + work_ns
        self.serving = True
        if self._shared_ns and self.cores is not None:
            self.cores.work(self.name, self._shared_ns, work_ns - self._shared_ns, self._begun)
            self._shared_ns = 0
        else:
            self._timer.start_at(self._ends_ns)

    def _begin_part(self, checkpoint_id: int, is_unaligned: bool) -> None:
        """Begin a part: there is work to do before its barrier leaves."""
        if self.begins is not None:
            self.begin_ns = self.begins(is_unaligned)
            self.metrics.begins(self.name, checkpoint_id, self.begin_ns)
            if self.cores is not None and is_unaligned:
                self._shared_ns, self._begun_id = self.begin_ns, checkpoint_id
            elif self.cores is not None:
                self.cores.occupy(self.name, self.clock.now, self.begin_ns)

    def _snapshot(self, checkpoint_id: int) -> int:
        """Take a snapshot; return how long its synchronous part takes, in nanoseconds."""
        sync_ns = self._sync()
        self.metrics.snapshot(self.name, checkpoint_id, self.clock.now, sync_ns, self.applied)
        return sync_ns

    def _begun(self, longer_ns: int) -> None:
        """End the work to begin a part, which took so much longer than it would alone."""
        self.metrics.begins(self.name, self._begun_id, longer_ns)
        self._ends_ns += longer_ns
        self.go(True)

    def _outputs_available(self) -> bool:
        for pool in self._pools:  # asked before every message: a loop costs half of all() over a generator
            if not pool.available():
                return False
        return True

    def _writes_on(self) -> bool:
        """Write on where a record has begun and waits for a buffer; whether that one is written whole."""
        for pool in self._pools:
            if pool.unwritten is not None and not pool.unwritten.write_on():
                return False
        return True

    def _push(self, continues: bool) -> bool:
        """Let the outbox go as far as the channels have room; whether it is empty then.

        `continues` says that this is part of the move that filled the outbox.
        """
        outbox, outputs, names = self.task.outbox, self._outputs, self.output_names
        entries, now, name = self.entries, self.clock.now, self.name
        if self._spans and not self._writes_on():
            return False
        while outbox:
            index, message = outbox[0]
            is_barrier = type(message) is CheckpointBarrier
            goes = self._admits(index, message) if is_barrier else outputs[index].push(message)
            if not goes:
                if self._unsettled and self._turn_late():
                    continue
                return False
            outbox.popleft()
            if continues:
                entries.append((now, "send", name, names[index], message))
            elif type(message) is Event:
                entries.append((now, "push", name, names[index], message))
            else:
                entries.append((now, ">push", name, None, None))
                entries.append((now, "send", name, names[index], message))
            continues = True
            if is_barrier:
                self._push_barrier(index, message)  # type: ignore[arg-type]
            elif self._spans and not self._writes_on():
                return False
        return True

    def _admits(self, index: int, message: StreamMessage) -> bool:
        """Return whether a barrier may leave by output `index`."""
        return self._outputs[index].accepts(message) or self._overtakes(index, message)

    def _overtakes(self, index: int, message: StreamMessage) -> bool:
        """Return whether `message` passes what is in output `index`. A barrier to a sink that aligns keeps its
        place."""
        return type(message) is CheckpointBarrier and message.is_unaligned and self.may_overtake[index]

    def _push_barrier(self, index: int, barrier: CheckpointBarrier) -> None:
        channel, checkpoint_id = self._outputs[index], barrier.checkpoint_id
        if self._overtakes(index, barrier):
            self.task.capture_overtaken(index, channel.overtake(barrier), checkpoint_id)
            self.departed(index, checkpoint_id)
            return
        channel.push(barrier)
        if index in self._unsettled.get(checkpoint_id, ()) and self._is_late(checkpoint_id):
            self._prioritise_output(index, flagged(barrier))

    def _forwarded(self, barrier: CheckpointBarrier) -> None:
        """Begin a part, as its barrier is on its way out: an aligned one that has not left may yet overtake there."""
        self._begin_part(barrier.checkpoint_id, barrier.is_unaligned)
        if self._switch_ns is not None and not barrier.is_unaligned:
            on_their_way = {index for index, may in enumerate(self.may_overtake) if may}
            if on_their_way:
                self._unsettled[barrier.checkpoint_id] = on_their_way
                late_ns = self.coordinator.triggered_ns[barrier.checkpoint_id] + self._switch_ns
                work_ns = 0 if self.begins is None else self.begins(True)
                if self.cores is not None:
                    work_ns = self.cores.later(self.name, late_ns, work_ns)
                self._overtakes_ns[barrier.checkpoint_id] = late_ns + work_ns

    def _is_late(self, checkpoint_id: int) -> bool:
        """Return whether the time for an aligned checkpoint is up, and the work is done to let its barrier overtake."""
        return self.clock.now >= self._overtakes_ns[checkpoint_id]

    def _turn_late(self) -> bool:
        """Let barriers whose time is up pass what holds the outbox back; whether there are any."""
        late = [(i, outputs) for i, outputs in self._unsettled.items() if self._is_late(i)]
        turned = [
            self.task.prioritise_barrier(index, CheckpointBarrier.new_unaligned(checkpoint_id, checkpoint_id))
            for checkpoint_id, outputs in late
            for index in sorted(outputs)
        ]
        return any(turned)

    def prioritise_barrier(self, barrier: CheckpointBarrier) -> None:
        """Let the barriers of an aligned checkpoint, as its time is up, overtake where they are on their way out."""
        if self.dead or barrier.checkpoint_id not in self._unsettled:
            return
        if not self._is_late(barrier.checkpoint_id):
            wait_ns = self._overtakes_ns[barrier.checkpoint_id] - self.clock.now
            self.clock.after(wait_ns, lambda: TaskNode.prioritise_barrier(self, barrier))
            return
        for index in sorted(self._unsettled[barrier.checkpoint_id]):
            if self.task.prioritise_barrier(index, barrier):
                self.wake()
            else:
                self._prioritise_output(index, barrier)

    def _prioritise_output(self, index: int, barrier: CheckpointBarrier) -> None:
        passed = self._outputs[index].prioritise_barrier(barrier)
        if passed is not None:
            self.task.convert_to_unaligned(barrier.checkpoint_id)
            self.task.capture_overtaken(index, passed, barrier.checkpoint_id)

    def departed(self, index: int, checkpoint_id: int) -> None:
        """Note that a barrier has left output `index`: what it could still pass there is settled."""
        unsettled = self._unsettled.get(checkpoint_id)
        if unsettled is not None:
            unsettled.discard(index)
            if not unsettled:
                del self._unsettled[checkpoint_id], self._overtakes_ns[checkpoint_id]
                self.wake()

    def _report(self) -> None:
        """Tell the coordinator, except of parts whose barrier may yet pass something in an output channel."""
        reports = self.task.reports
        unsettled = {*self._unsettled, *(m.checkpoint_id for _, m in self.task.outbox if type(m) is CheckpointBarrier)}
        waiting = [r for r in reports if type(r) is Acknowledge and r.checkpoint_id in unsettled]
        for report in [r for r in reports if r not in waiting]:
            if type(report) is Acknowledge and report.is_unaligned:
                self._note_captured(report)
            self.coordinator.report(report)
        reports[:] = waiting

    def _end(self) -> None:
        """Say once that the task has ended, when all it had to send and to report is on its way."""
        task = self.task
        if task.finished and not self.ended and not task.outbox and not task.reports:
            self.ended = True
            self.coordinator.finished(task.final_snapshot())

    def _note_captured(self, report: Acknowledge) -> None:
        """Write the in-flight data that the acknowledgement carries into the journal."""
        entries, now, name = self.entries, self.clock.now, self.name
        for names, kept in ((self.input_names, report.inflight), (self.output_names, report.inflight_output)):
            for data in kept:
                for event in data.events:
                    entries.append((now, "capture", name, names[data.input_id], (report.checkpoint_id, event)))


class SourceNode(TaskNode[SourceTask]):
    """A source subtask: events when they fall due, barriers when the coordinator says so, watermarks by the clock."""

    __slots__ = (
        "_alarm",
        "_asked_ns",
        "_catch_up_ns",
        "_due_ns",
        "_lateness",
        "_log",
        "_max_ms",
        "_next_watermark_ns",
        "_on_caught_up",
        "_rings_ns",
        "_usual_service_ns",
        "_watermark_ns",
        "_watermark_sent_ms",
        "_woken_ns",
        "allowed_ms",
        "behind",
        "emitted_ns",
        "handle",
    )

    handle: BarrierInjectorHandle

    def __init__(
        self,
        ports: Ports,
        name: str,
        outputs: list[Channel],
        output_names: Sequence[str],
        spent_ns: list[int],
        sync: Callable[[], int],
        log: EventLog,
        service: Callable[[], int],
        usual_service_ns: int,
        catch_up_ns: int | None,
        watermark_ns: int | None,
        lateness_ms: int,
    ) -> None:
        super().__init__(ports, name, outputs, output_names, spent_ns, sync, service)
        self._log, self._usual_service_ns = log, usual_service_ns
        self._catch_up_ns = catch_up_ns
        self._due_ns = log.due_ns[0] + log.shift_ns
        self._watermark_ns = watermark_ns
        self._next_watermark_ns = None if watermark_ns is None else (self.clock.now // watermark_ns + 1) * watermark_ns
        self._lateness = lateness_ms
        self._max_ms = self._watermark_sent_ms = -1
        self._woken_ns: int | None = None
        self._alarm, self._rings_ns = self.clock.own_timer(self._ring), cast(int | None, None)
        self._on_caught_up = ports.caught_up
        self._asked_ns = 0  # until then neither a request nor a watermark is due
        self.behind = False  # whether it still catches up after a restart
        self.allowed_ms = inf  # its watermark may not be beyond that: watermark alignment
        self.emitted_ns = self.clock.now  # when it emitted last

    def seek(self) -> None:
        """Go on with the event at its position, as the task has been restored."""
        self._due_ns = self._log.due_ns[self.task.position - 1] + self._log.shift_ns
        self.behind = not self.task.finished

    def _make(self, now: int) -> bool | None:
        last = self._log.last
        if now >= self._asked_ns or (last is not None and self.task.position > last):
            return False
        if self._max_ms - self._lateness > self.allowed_ms:  # `pauses`
            return False
        if now < self._due_ns:
            if self.behind:
                return False
            self.enter(IDLE)
            self._wake_at(min(self._asked_ns, self._due_ns))
            return None
        self._emit(now)
        return True

    def run_on(self, continues: bool) -> None:
        if self.stalled:
            return
        task = self.task
        while True:
            if (task.outbox or self._spans) and not self._push(continues):
                self.enter(BACKPRESSURED)
                return
            continues = True
            now = self.clock.now
            if not self._calm or now >= self._asked_ns:
                if task.reports:
                    self._report()
                if task.injector.due_request(now) is not None:
                    self.coordinator.request()
                if task.poll(now) is not None:  # its effects stand behind the move that `note_effect` noted
                    if self.work_ns:
                        self._serve()
                        return
                    continue
                if task.finished:
                    self._end()
                    self.enter(IDLE)
                    if self.behind:
                        self._caught_up()
                    return
                watermark_ns = self._next_watermark_ns
                if watermark_ns is not None and now >= watermark_ns and self._send_watermark(now):
                    continue
                self._calm = not task.reports and not self._unsettled
                self._asked_ns = self._next_asked_ns()
            if self._log.last is not None and task.position > self._log.last:
                self.entries.append((now, ">finish", self.name, None, None))
                task.end()
                self._calm = False
                continue
            if self._pools and not self._outputs_available():
                self.enter(BACKPRESSURED)
                return
            if self.pauses():
                self.enter(IDLE)
                self._wake_at(self._next_due_ns(pauses=True))
                return
            if self._due_ns > now:
                if self.behind:
                    self._caught_up()
                self.enter(IDLE)
                self._wake_at(self._next_due_ns())
                return
            self._emit(now)
            if self.work_ns:
                self._serve()
                return

    def _wake_at(self, due_ns: int | None) -> None:
        """Go on at `due_ns`, if that has not been asked for already; None: somebody wakes it."""
        if due_ns is not None and self._woken_ns != due_ns:
            self._woken_ns = due_ns
            if self._rings_ns is None:
                self._rings_ns = due_ns
                self._alarm.start_at(due_ns)
            else:  # one alarm is set already
                self.clock.after(due_ns - self.clock.now, self.wake)

    def _ring(self, _: object) -> None:
        rings_ns, self._rings_ns = self._rings_ns, None
        if self.clock.attempt == self._attempt and rings_ns is not None:
            self.clock.now = rings_ns
            self.wake()

    def arrivals(self) -> int:
        """Return how many events have fallen due so far, given off or not."""
        return max(self._log.due_by(self.clock.now), self.task.position - 1)

    def overdue_ns(self) -> int:
        """Return since how many nanoseconds the next event waits to be given off; 0 if none does, or it pauses."""
        return 0 if self.pauses() else self._late_ns()

    def _late_ns(self) -> int:
        """Return since how many nanoseconds the next event is due; 0 if none is."""
        if self.task.finished or (self._log.last is not None and self.task.position > self._log.last):
            return 0
        return max(self.clock.now - self._due_ns, 0)

    def held_back_ns(self) -> int:
        """Return how far the source is behind its arrivals, those included that its own rate limit has restored."""
        return self._log.shift_ns + self._late_ns()

    def pauses(self) -> bool:
        """Return whether its events are further ahead than its group allows: watermark alignment."""
        return self._max_ms - self._lateness > self.allowed_ms

    def _next_asked_ns(self) -> int:
        """Return until when nothing is due that is not an event."""
        request_ns, watermark_ns = self.task.injector.next_deadline_ns(), self._next_watermark_ns
        return min(NEVER_NS if request_ns is None else request_ns, NEVER_NS if watermark_ns is None else watermark_ns)

    def _next_due_ns(self, pauses: bool = False) -> int | None:
        """Return when there is something to do again: an event, unless it pauses, a watermark or a request."""
        request_ns = self.task.injector.next_deadline_ns()
        due_ns = (None if pauses else self._due_ns, self._next_watermark_ns, request_ns)
        return min((each for each in due_ns if each is not None), default=None)

    def group_watermark_ms(self, idle_after_ns: int | None) -> float:
        """Return its watermark as its group sees it: inf if it has ended or is idle, or sends none."""
        is_idle = idle_after_ns is not None and self.clock.now - self.emitted_ns >= idle_after_ns
        if self._watermark_ns is None or self.task.finished or is_idle:
            return inf
        return self._watermark_sent_ms

    def allow(self, allowed_ms: float) -> None:
        """Allow watermarks up to where the group announces."""
        self.allowed_ms = allowed_ms
        if not self.pauses():
            self.wake()

    def _emit(self, now: int) -> None:
        log, task = self._log, self.task
        if self._catch_up_ns is not None and self._due_ns < now - self._catch_up_ns:
            late = now - self._catch_up_ns - self._due_ns  # permits older than the bucket holds are gone
            log.shift_ns += late
            self._due_ns += late
        if self.behind and now - self._due_ns <= self._usual_service_ns:
            self._caught_up()
        event = log.read(task.position, self._due_ns)
        self.emitted_ns = now
        self.entries.append((self.clock.stamp, ">emit", self.name, None, event))
        task.emit(event)
        if event.timestamp_ms > self._max_ms:
            self._max_ms = event.timestamp_ms
        self.work_ns = self._service()
        self._due_ns = log.due_ns[task.position - 1 - log.forgotten] + log.shift_ns

    def _caught_up(self) -> None:
        self.behind = False
        self._on_caught_up()

    def _send_watermark(self, now: int) -> bool:
        """Send the watermark that is due: behind the newest event by the lateness of the scenario, and never back."""
        assert self._watermark_ns is not None
        assert self._next_watermark_ns is not None
        self._next_watermark_ns += ((now - self._next_watermark_ns) // self._watermark_ns + 1) * self._watermark_ns
        timestamp_ms = self._max_ms - self._lateness
        if timestamp_ms <= self._watermark_sent_ms:
            return False
        self._watermark_sent_ms, self._calm = timestamp_ms, False
        self.entries.append((now, ">watermark", self.name, None, timestamp_ms))
        self.task.emit_watermark(timestamp_ms)
        return True

    def inject(self, command: InjectBarrierCommand) -> None:
        """Take the coordinator's command; what it replaces is aborted (rule 3)."""
        for replaced in self.handle.inject(command).replaced:
            self.coordinator.abort_checkpoint(replaced, Reason.REPLACED)
        self._calm = False
        self.wake()

    def abort(self, checkpoint_id: int, reason: Reason) -> None:
        """Bring the coordinator's abort to the source."""
        self.entries.append((self.clock.now, ">abort", self.name, None, checkpoint_id))
        self.task.abort(checkpoint_id, reason, self.clock.now)
        self._calm = False
        self.wake()

    def note_effect(self, verb: str, index: int, subject: object) -> None:
        """Note an effect of the source task."""
        if verb == "capture_output":
            return  # noted with the acknowledgement that carries it
        now = self.clock.now
        self._calm = False
        if verb == "snapshot":
            checkpoint_id = subject[0]  # type: ignore[index]
            self.entries.append((now, ">inject", self.name, None, checkpoint_id))
            self.metrics.barrier(self.name, checkpoint_id, now, 0)
            self.work_ns += self._snapshot(checkpoint_id)
        elif verb == "forward":
            self._forwarded(subject)  # type: ignore[arg-type]
            self.work_ns += self.begin_ns
            self.begin_ns = 0
        self.entries.append((now, verb, self.name, self.output_names[index] if index >= 0 else None, subject))


class OperatorNode(TaskNode[OperatorTask]):
    """An operator or sink subtask."""

    __slots__ = (
        "_deadline_ns",
        "_fires_timers",
        "_holds_in_channel",
        "_in_hand",
        "_inputs",
        "_interruptible_timers",
        "_overdue",
        "_overtakers",
        "_taken",
        "inbox",
        "written",
    )

    def __init__(
        self,
        ports: Ports,
        name: str,
        outputs: list[Channel],
        output_names: Sequence[str],
        spent_ns: list[int],
        sync: Callable[[], int],
        inputs: list[Channel],
        input_names: Sequence[str],
        inbox: Inbox,
        service: Callable[[], int],
        holds_in_channel: bool,
        interruptible_timers: bool,
    ) -> None:
        super().__init__(ports, name, outputs, output_names, spent_ns, sync, service)
        self._inputs, self.input_names, self.inbox = inputs, input_names, inbox
        self._overtakers: deque[tuple[int, int]] = deque()  # inputs on which barriers overtook, and when
        self._overdue = False
        self._deadline_ns: int | None = None
        self._holds_in_channel = holds_in_channel
        self._interruptible_timers = interruptible_timers
        self._fires_timers = False  # the last message was a watermark
        self._in_hand: tuple[int, StreamMessage] | None = None
        self._taken: Any = None  # what is offered to the gate, with its input, until that is noted: a call may do so
        self.written = 0  # to the external system, visible at once

    def attach_lanes(self, outputs: list[Lane | None], inputs: list[Lane]) -> None:
        is_usual = type(self.task) in (OperatorTask, SinkTask) and type(self.task.gate) is Gate
        if is_usual:  # else an event may mean something else
            super().attach_lanes(outputs, inputs)
            if inputs:
                self._takes, self._free, self._line = self.task, self.task.gate.aligner.free, inputs[0].line

    def run_on(self, continues: bool) -> None:
        if self.stalled:
            return
        task, clock = self.task, self.clock
        take = self.inbox.take
        while True:
            if not self._calm:
                if not self._attend(continues):
                    return
            elif task.outbox and not self._push(continues):
                self.enter(BACKPRESSURED)
                return
            if self._pools and not self._outputs_available():
                self.enter(BACKPRESSURED)
                return
            continues = True
            now = clock.now
            if not self._calm and self._drain(now):
                pass
            else:
                taken = take()
                if taken is None:
                    self.enter(IDLE)
                    return
                self._offer(taken, now)
            if self.work_ns:
                self._serve()
                return

    def _attend(self, continues: bool) -> bool:
        """Do all that has to be done besides taking a message; return whether one may be taken now, or drained."""
        task = self.task
        while True:
            if self.begin_ns:
                self._begin_service(self.begin_ns)
                self.begin_ns = 0
                return False
            blocked = (bool(task.outbox) or self._spans) and not self._push(continues)
            if self.work_ns:  # the image, behind a barrier that goes ahead of everything
                self._serve()
                return False
            if task.reports:
                self._report()
            if blocked:
                if not self._overtakers or not self._is_interruptible():
                    self.enter(BACKPRESSURED)
                    return False
            else:
                self._end()
                if self._overdue:
                    self.deadline()
                if not self._overtakers:  # asked whether or not the outputs are available
                    self._calm = self._is_calm()
                    self._fires_timers = self._fires_timers and not self._calm
                    return True
            self._take_overtaking(*self._overtakers.popleft())
            continues = True

    def _is_calm(self) -> bool:
        """Return whether nothing is under way but events: no checkpoint, no end, nothing held, nothing to be said."""
        task, gate = self.task, self.task.gate
        under_way = self._spans or task.finished or self._in_hand is not None or task.reports or self._unsettled
        return not under_way and not gate.can_drain and not gate.aligner.is_aligning()

    def _drain(self, now: int) -> bool:
        """Let go what was held; whether there was anything."""
        task = self.task
        if task.gate.can_drain:
            self.entries.append((now, ">drain", self.name, None, None))
            task.drain_next(now)
        elif self._in_hand is not None:  # it was over a limit; what was held before it has gone by now
            self.entries.append((now, ">drain", self.name, None, None))
            index, message = self._in_hand
            self._offered(index, message, task.gate.offer(index, message, now))
        else:
            return False
        return True

    def _make(self, now: int) -> bool | None:
        taken, task = self.inbox.take(), self.task
        if taken is None:
            self.enter(IDLE)
            return None
        index, message = taken
        if type(message) is not Event or index not in task.gate.aligner.free:
            self._offer(taken, now)
            return True
        self.entries.append((now, "pass", self.name, self.input_names[index], message))
        self.work_ns += self._service()
        self.bytes_taken += message.size_bytes
        self.applied += 1
        task.apply(index, message)
        if not self._calm:
            self.settle(index)
        return True

    def _offer(self, taken: tuple[int, StreamMessage], now: int) -> None:
        """Give the gate a message that was taken."""
        index, message = self._taken = taken
        if not self._calm:
            self._note_taken()
        took = self.task.gate.offer(index, message, now)
        if self._taken is not None:
            self._note_taken()
        if not took or not self._calm:  # else an event took effect at once, and takes nobody's room
            self._offered(index, message, took)

    def _note_taken(self) -> None:
        """Note that a message was taken, ahead of what that leads to: of an event, it is its delivery and no more."""
        (index, message), self._taken = self._taken, None
        now, channel = self.clock.now, self.input_names[index]
        self.entries.append((now, ">deliver", self.name, channel, None))
        self.entries.append((now, "take", self.name, channel, message))

    def _is_interruptible(self) -> bool:
        """Return whether a barrier may be taken although the outbox holds results of the last message."""
        if not self._interruptible_timers or not self._fires_timers:
            return False
        return all(pool.unwritten is None for pool in self._pools)

    def _offered(self, index: int, message: StreamMessage, took: bool) -> None:
        """Note that the gate was given a message; one that it did not take stays in hand."""
        if took:
            self._in_hand = None
        else:
            self._in_hand, self._calm = (index, message), False
        self.settle(index)

    def settle(self, index: int) -> None:
        if not self.task.gate.can_take(index):
            self.inbox.block(index)

    def _take_overtaking(self, index: int, came_ns: int) -> None:
        """Bring a barrier that has overtaken in input `index` to the task."""
        barrier, ahead = self._inputs[index].take_overtaking(self.inbox.unread(index))
        now, channel = self.clock.now, self.input_names[index]
        self.metrics.overtook(channel, barrier.checkpoint_id, came_ns)
        self.entries.append((now, ">overtake", self.name, channel, None))
        self.entries.append((now, "take", self.name, channel, barrier))
        took = self.task.offer_overtaking(index, barrier, ahead, now)
        assert took, "one checkpoint at a time: no older part is incomplete when a barrier overtakes"
        self._prioritise_inputs(barrier)

    def overtaken(self, index: int) -> None:
        """Note that a barrier has overtaken in input `index`."""
        self.inbox.recheck(index)
        self._overtakers.append((index, self.clock.now))
        self._calm = False
        self.wake()

    def announced(self, index: int, barrier: CheckpointBarrier) -> None:
        """Let an aligned barrier that has been queued at the receiver overtake, if it is late enough."""
        if self.task.gate.wants_overtaking(index, barrier, self.clock.now):
            self._inputs[index].prioritise_received(flagged(barrier))

    def prioritise_barrier(self, barrier: CheckpointBarrier) -> None:
        super().prioritise_barrier(barrier)
        if not self.dead:
            self._prioritise_inputs(barrier)

    def _prioritise_inputs(self, barrier: CheckpointBarrier) -> None:
        """Let this checkpoint's barriers that lie in the inputs go to the front, if the task is to go unaligned."""
        gate, now = self.task.gate, self.clock.now
        for index, channel in enumerate(self._inputs):
            if gate.wants_overtaking(index, barrier, now):
                channel.prioritise_received(flagged(barrier))

    def arrived(self, index: int) -> None:
        """Note that input `index` has data."""
        self.inbox.notify(index)
        if not self.listed and not self.serving:
            self.listed = True
            self.clock.ready.append(self)

    def note_effect(self, verb: str, index: int, subject: object) -> None:
        """Note an effect of the task: into the journal, and what it means in time."""
        now, taken = self.clock.now, self._taken
        if taken is not None:
            if verb == "deliver" and taken[1] is subject and type(subject) is Event:
                self._taken, verb = None, "pass"
            else:
                self._note_taken()
        if verb == "pass" or verb == "deliver":
            self.entries.append((now, verb, self.name, self.input_names[index], subject))
            if type(subject) is Event:
                self._fires_timers = False
                self.work_ns += self._service()
                self.bytes_taken += subject.size_bytes
                self.applied += 1
            else:
                self._fires_timers, self._calm = True, False
            return
        if verb == "capture" or verb == "capture_output":
            return  # noted with the acknowledgement that carries it
        self.entries.append((now, verb, self.name, self.input_names[index] if index >= 0 else None, subject))
        if verb == "write" or verb == "upsert":
            self.written += verb == "write"
            return
        self._calm = False
        if verb == "block":
            self.metrics.barrier(self.name, subject, now, self.bytes_taken)  # type: ignore[arg-type]
            if self._holds_in_channel:
                self.inbox.block(index)
            self._watch_deadline()
        elif verb == "resume":
            self.inbox.unblock()
            self.wake()
        elif verb == "ignore" and type(subject) is CheckpointBarrier:
            self.inbox.resume(index)
        elif verb == "snapshot":
            self.work_ns += self._snapshot(subject[0])  # type: ignore[index]
        elif verb == "forward":
            self._forwarded(subject)  # type: ignore[arg-type]
        elif verb == "complete":  # by an end of input, it may be, which is a barrier, too
            self.metrics.barrier(self.name, subject, now, self.bytes_taken)  # type: ignore[arg-type]

    def abort(self, checkpoint_id: int, reason: Reason) -> None:
        """Bring the coordinator's abort to the task."""
        self._calm = False
        self.entries.append((self.clock.now, ">abort", self.name, None, checkpoint_id))
        self.task.gate.abort(checkpoint_id, reason, self.clock.now)
        self.wake()

    def _watch_deadline(self) -> None:
        """Look at the alignment's deadline when it passes."""
        due_ns = self.task.gate.next_deadline_ns()
        if due_ns is not None and self._deadline_ns != due_ns:
            self._deadline_ns = due_ns
            self.clock.after(max(due_ns - self.clock.now, 0), self.deadline)

    def deadline(self) -> None:
        """Handle the alignment's deadline, if it has passed. A task that could switch does so between two messages."""
        if self.dead:
            return
        self._calm = False
        self._overdue = (self.serving or bool(self.task.outbox)) and self.task.gate.unaligned is not None
        if self._overdue:
            return
        due_ns = self.task.gate.next_deadline_ns()
        if due_ns is not None and due_ns <= self.clock.now:
            self.entries.append((self.clock.now, ">expire", self.name, None, None))
            self.task.gate.on_time(self.clock.now)
            barrier = self.task.gate.aligner.barrier
            if barrier is not None:
                self._prioritise_inputs(barrier)
            self.wake()


Node = SourceNode | OperatorNode


@dataclass(slots=True)
class Job:
    """The tasks and channels of the attempt that runs; a restart puts others into the same job."""

    nodes: dict[str, Node] = field(default_factory=dict)
    operator_nodes: list[OperatorNode] = field(default_factory=list)
    source_nodes: list[SourceNode] = field(default_factory=list)
    channels: dict[str, Channel] = field(default_factory=dict)
