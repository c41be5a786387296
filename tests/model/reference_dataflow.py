"""A small untimed dataflow: the tasks of `impl` on bounded channels, moved in any order, with a journal.

Each move takes a millisecond. What is broken on purpose is a hook, so that a test can say which sentence it bends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from barrierlab.impl.checkpoint.actions import Aborted, AbortTask, Completed, Inject, Notify, Publish, Triggered
from barrierlab.impl.checkpoint.alignment import BarrierAligner, BarrierAlignerConfig
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator, CoordinatorConfig
from barrierlab.impl.checkpoint.report import Acknowledge
from barrierlab.impl.checkpoint.task import OperatorTask, OutputExchange, SourceTask
from barrierlab.impl.checkpoint.unaligned import UnalignedCheckpointConfig, UnalignedCheckpointer
from barrierlab.impl.messages import CheckpointBarrier, Event, Watermark
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.operators import BaseOperator, make, refolding
from barrierlab.model.spec.history import COORDINATOR, Entry, History
from barrierlab.model.spec.invariants import Limits, Verdict, judge
from barrierlab.model.spec.topology import Topology

NS_PER_MOVE = 1_000_000
FINISHED = "finished"
KINDS = {"map": "map", "flat": "flat_map", "keep": "filter", "sum": "aggregate", "win": "window", "join": "join"}


def topology_named(text: str, **parallelism: int) -> Topology:
    """`text` expanded; an edge into ``sum`` goes by key."""
    hashed = {edge: "hash" for edge in text.split() if edge.endswith("->sum")}
    return Topology.parse(text, parallelism, hashed)


class World:
    """One run in the making.

    Parameters
    ----------
    topology : Topology
        An operator's name says its kind (`KINDS`); others are unions, or sinks where nothing follows.
    choose : callable
        Told how many moves there are, answers which one comes next.
    events, checkpoints, aborts : int
        How many each source makes, how many are triggered, how many of those the coordinator aborts.
    capacity, most_buffered, most_buffered_bytes : int
        Messages a channel has room for; messages an input may buffer, bytes a task may buffer.
    """

    task_class = OperatorTask

    def __init__(
        self,
        topology: Topology,
        choose: Callable[[int], int],
        events: int = 4,
        checkpoints: int = 2,
        aborts: int = 0,
        capacity: int = 2,
        most_buffered: int = 3,
        most_buffered_bytes: int = 1000,
    ) -> None:
        self.topology, self.choose = topology, choose
        self.entries: list[Entry] = []
        self.now = 0
        self.channels: dict[str, deque] = {channel: deque() for channel in topology.channels}
        self.capacity, self.checkpoints, self.aborts = capacity, checkpoints, aborts
        self.left = dict.fromkeys(topology.sources, events)
        self.next_watermark = dict.fromkeys(topology.sources, 2)
        self.limits = Limits(dict.fromkeys(topology.channels, capacity), most_buffered, most_buffered_bytes)
        self.reports: dict[str, deque] = {task: deque() for task in topology.tasks}
        self.orders: dict[str, deque] = {task: deque() for task in topology.tasks}
        self.in_hand: dict[str, tuple] = {}
        self.over: set[str] = set()
        self.coordinator = CheckpointCoordinator(
            CoordinatorConfig(interval_ns=None, max_concurrent=checkpoints or 1, tolerable_failures=checkpoints),
            topology.tasks,
            topology.sources,
        )
        self.tasks = {name: self._task(name) for name in topology.tasks}

    def operator(self, name: str) -> BaseOperator:
        """A new operator for the task `name`."""
        kind = KINDS.get(self.topology.operator_of(name), "union" if self.topology.outputs(name) else "sink")
        own = {"window_ms": 3} if kind in ("window", "join") else {}
        sides, inputs = self.topology.input_sides(name), len(self.topology.inputs(name))
        return make(kind, name=name, inputs=inputs, sides=sides, **own)

    def run(self, most: int = 100_000) -> World:
        """Move until nothing moves, at most `most` times."""
        for _ in range(most):
            moves = self.moves()
            if not moves:
                break
            self.now += NS_PER_MOVE
            moves[self.choose(len(moves))]()
        return self

    def verdict(self, cut_off: bool = False) -> Verdict:
        """Return what the invariants say, with every state computed again."""
        return judge_entries(self.entries, self.topology, self.limits, self, cut_off)

    # The moves.

    def moves(self) -> list[Callable[[], None]]:
        """All that can happen now."""
        moves: list[Callable[[], None]] = []
        if self.coordinator and self.checkpoints and any(self.left.values()):
            moves.append(self.trigger)
        for name, task in self.tasks.items():
            if task.outbox:
                if self.has_room(name):
                    moves.append(lambda name=name: self.push(name))
            elif name in self.left:
                if self.left[name]:
                    moves += [lambda name=name: self.emit(name), lambda name=name: self.watermark(name)]
                elif not task.finished:
                    moves.append(lambda name=name: self.finish(name))
            elif task.gate.can_drain or name in self.in_hand:
                moves.append(lambda name=name: self.drain(name))
            else:
                for index, channel in enumerate(self.topology.inputs(name)):
                    if self.channels[channel] and task.can_take(index):
                        moves.append(lambda name=name, index=index: self.deliver(name, index))
            if self.reports[name]:
                moves.append(lambda name=name: self.hear(name))
            if self.orders[name]:
                moves.append(lambda name=name: self.obey(name))
        if self.aborts and self.coordinator.pending:
            moves.append(self.abort_checkpoint)
        return moves

    def trigger(self) -> None:
        """The coordinator begins a checkpoint."""
        self.checkpoints -= 1
        self.carry_out(self.coordinator.trigger(self.now))

    def abort_checkpoint(self) -> None:
        """The coordinator aborts the newest checkpoint."""
        self.aborts -= 1
        self.carry_out(self.coordinator.abort(max(self.coordinator.pending), Reason.EXPIRED, self.now))

    def emit(self, name: str) -> None:
        """A source makes its next event."""
        task = self.tasks[name]
        at = task.position
        event = Event(name, at, key=at % 3, value=at, timestamp_ms=at, size_bytes=1 + at % 2)
        self.note(">emit", name, None, event)
        self.left[name] -= 1
        task.emit(event)
        self.settle(name)

    def watermark(self, name: str) -> None:
        """A source promises; each promise costs it an event, so that a run ends."""
        self.next_watermark[name] += 2
        self.note(">watermark", name, None, self.next_watermark[name] - 2)
        self.left[name] -= 1
        self.tasks[name].emit_watermark(self.next_watermark[name] - 2)
        self.settle(name)

    def finish(self, name: str) -> None:
        """A source ends."""
        self.note(">finish", name, None, None)
        self.tasks[name].end()
        self.settle(name)

    def deliver(self, name: str, index: int) -> None:
        """A task takes the head of a channel."""
        channel = self.topology.inputs(name)[index]
        self.note(">deliver", name, channel, None)
        message = self.take(channel)
        self.note("take", name, channel, message)
        self.offer(name, index, message)

    def take(self, channel: str) -> object:
        """The head of `channel`."""
        return self.channels[channel].popleft()

    def offer(self, name: str, index: int, message: object) -> None:
        """Give the gate a message; one that it does not take stays in hand."""
        task = self.tasks[name]
        if not task.offer(index, message, self.now):
            self.in_hand[name] = (index, message)
        self.settle(name)

    def drain(self, name: str) -> None:
        """The first buffered message that may go steps again; after those, what is in hand."""
        self.note(">drain", name, None, None)
        task = self.tasks[name]
        if task.gate.can_drain:
            task.drain_next(self.now)
        else:
            self.offer(name, *self.in_hand.pop(name))
        self.settle(name)

    def push(self, name: str) -> None:
        """The outbox goes on."""
        self.note(">push", name, None, None)
        self.settle(name)

    def hear(self, name: str) -> None:
        """A report reaches the coordinator."""
        report = self.reports[name].popleft()
        if report is FINISHED:
            self.carry_out(self.coordinator.finished(name, self.now))
            return
        acknowledges = type(report) is Acknowledge
        self.note(">ack" if acknowledges else ">decline", name, None, report.checkpoint_id)
        answer = self.coordinator.acknowledge if acknowledges else self.coordinator.decline
        self.carry_out(answer(report, self.now))

    def obey(self, name: str) -> None:
        """An order of the coordinator reaches a task."""
        order, task = self.orders[name].popleft(), self.tasks[name]
        if type(order) is AbortTask:
            self.note(">abort", name, None, order.checkpoint_id)
            task.abort(order.checkpoint_id, order.reason, self.now)
        else:
            self.note(">inject", name, None, order.command.checkpoint_id)
            replaced = task.injector.coordinator_handle().inject(order.command).replaced
            task.poll(self.now)
            for checkpoint_id in replaced:
                self.carry_out(self.coordinator.abort(checkpoint_id, Reason.REPLACED, self.now))
        self.settle(name)

    # What they are made of.

    def note(self, verb: str, node: str, channel: str | None, subject: object) -> None:
        """One entry of the journal."""
        self.entries.append((self.now, verb, node, channel, subject))

    def has_room(self, name: str) -> bool:
        """Return whether the head of the outbox can go."""
        return len(self.channels[self.topology.outputs(name)[self.tasks[name].outbox[0][0]]]) < self.capacity

    def settle(self, name: str) -> None:
        """Send what there is room for, and pass the reports on."""
        task = self.tasks[name]
        while task.outbox and self.has_room(name):
            index, message = task.outbox.popleft()
            channel = self.topology.outputs(name)[index]
            self.channels[channel].append(message)
            self.note("send", name, channel, message)
        self.reports[name].extend(task.reports)
        task.reports.clear()
        self.tell_the_end(name)

    def tell_the_end(self, name: str) -> None:
        """That a task has finished reaches the coordinator behind its reports, or it would stand for one of them."""
        if self.tasks[name].finished and not self.tasks[name].reports and name not in self.over:
            self.over.add(name)
            self.reports[name].append(FINISHED)

    def carry_out(self, actions: tuple) -> None:
        """Carry out what the coordinator wants."""
        for action in actions:
            if type(action) is Triggered:
                self.note(">trigger", COORDINATOR, None, action.checkpoint_id)
            elif type(action) is Inject:
                self.orders[action.source].append(action)
            elif type(action) is AbortTask:
                self.orders[action.task].append(action)
            elif type(action) is Publish:
                self.carry_out(self.coordinator.published(action.checkpoint_id, self.now))
            elif type(action) is Notify:
                self.tasks[action.task].notify(action.checkpoint_id, self.now)
            elif type(action) is Completed:
                self.note("completed", COORDINATOR, None, action.checkpoint_id)
            elif type(action) is Aborted:
                self.note("aborted", COORDINATOR, None, (action.checkpoint_id, str(action.reason)))

    def _task(self, name: str) -> SourceTask | OperatorTask:
        exchanges = [OutputExchange(kind, outputs) for _, kind, outputs in self.topology.output_groups(name)]
        inputs, tell = self.topology.inputs(name), self._tell(name)
        if not inputs:
            return SourceTask(name, exchanges=exchanges, tell=tell)
        config = BarrierAlignerConfig(
            num_inputs=len(inputs),
            max_buffer_per_input=self.limits.max_buffer_per_input or 1,
            max_buffer_memory_bytes=self.limits.max_buffer_memory_bytes or 1,
        )
        return self.task_class(name, self.operator(name), self._aligner(name, config), exchanges, tell)

    def _aligner(self, name: str, config: BarrierAlignerConfig) -> BarrierAligner:
        return BarrierAligner(config)

    def _tell(self, name: str) -> Callable[[str, int, object], None]:
        inputs = self.topology.inputs(name)

        def tell(verb: str, index: int, subject: object) -> None:
            self.note(verb, name, inputs[index] if index >= 0 else None, subject)

        return tell


def judge_entries(
    entries: list[Entry], topology: Topology, limits: Limits, world: World, cut_off: bool = False
) -> Verdict:
    """Return what the invariants say of a journal that came from `world`, changed or not."""
    return judge(History.of(entries, topology), topology, limits, refolding(topology, world.operator), cut_off)


class UnalignedWorld(World):
    """The same with barriers that may go ahead of their place.

    A flagged barrier leaves ahead of the outbox, and passes as much of the last that is in the channel as chance will;
    its receiver takes it ahead of the rest when it wants to, outbox or not. It needs no room in a channel: a task that
    aligns may block the very input for whose room the barrier that it waits for waits. A report waits for its barrier.

    Parameters
    ----------
    flagged : bool
        Whether the coordinator asks for unaligned checkpoints.
    threshold_ms : int
        After so many moves a task switches.
    most_in_flight : int
        Bytes that a task may record.
    some_align : bool
        Whether some tasks cannot go unaligned, as chance will. (Sinks never can.)
    """

    def __init__(
        self,
        topology: Topology,
        choose: Callable[[int], int],
        *arguments: int,
        flagged: bool = True,
        threshold_ms: int = 20,
        most_in_flight: int = 1000,
        some_align: bool = False,
        **options: int,
    ) -> None:
        self.threshold_ns, self.most_in_flight, self.some_align = threshold_ms * NS_PER_MOVE, most_in_flight, some_align
        super().__init__(topology, choose, *arguments, **options)
        self.coordinator.config = replace(self.coordinator.config, unaligned=flagged)
        capacity = dict.fromkeys(topology.channels, self.capacity + self.checkpoints)  # barriers need no room
        self.limits = replace(self.limits, channel_capacity=capacity)

    def moves(self) -> list[Callable[[], None]]:
        moves = super().moves()
        for name, task in self.tasks.items():
            if name not in self.left and not task.finished:
                for index in range(len(self.topology.inputs(name))):
                    if self.passed(name, index) is not None:
                        moves.append(lambda name=name, index=index: self.overtake(name, index))
                due_ns = task.next_deadline_ns()
                if due_ns is not None and due_ns <= self.now:
                    moves.append(lambda name=name: self.lapse(name))
        return moves

    def deliver(self, name: str, index: int) -> None:
        channel, task = self.topology.inputs(name)[index], self.tasks[name]
        self.note(">deliver", name, channel, None)
        taken, message = len(self.entries), self.channels[channel].popleft()
        self.note("take", name, channel, message)
        if not task.offer(index, message, self.now):  # it has never left, and other inputs may go on
            del self.entries[taken]
            self.channels[channel].appendleft(message)
        self.settle(name)

    def passed(self, name: str, index: int) -> list | None:
        """Return what is ahead of the first barrier in the channel that is to go ahead now; None if there is none."""
        queue = self.channels[self.topology.inputs(name)[index]]
        for at, message in enumerate(queue):
            if type(message) is CheckpointBarrier and self.tasks[name].gate.wants_overtaking(index, message, self.now):
                return list(queue)[:at]
        return None

    def overtake(self, name: str, index: int) -> None:
        """A task takes the first barrier of a channel ahead of its place."""
        channel, ahead = self.topology.inputs(name)[index], self.passed(name, index)
        barrier = self.channels[channel][len(ahead)]
        self.note(">overtake", name, channel, None)
        del self.channels[channel][len(ahead)]
        self.note("take", name, channel, barrier)
        assert self.tasks[name].offer_overtaking(index, barrier, ahead, self.now)
        self.settle(name)

    def lapse(self, name: str) -> None:
        """A deadline of a task passes."""
        self.note(">expire", name, None, None)
        self.tasks[name].on_time(self.now)
        self.settle(name)

    def carry_out(self, actions: tuple) -> None:
        for action in actions:
            if type(action) is Triggered:
                for name, task in self.tasks.items():
                    if name not in self.left:
                        task.gate.note_trigger(action.checkpoint_id, self.now)
        super().carry_out(actions)

    def has_room(self, name: str) -> bool:
        message = self.tasks[name].outbox[0][1]
        return (type(message) is CheckpointBarrier and message.is_unaligned) or super().has_room(name)

    def settle(self, name: str) -> None:
        task = self.tasks[name]
        while task.outbox and self.has_room(name):
            index, message = task.outbox.popleft()
            channel = self.topology.outputs(name)[index]
            self.note("send", name, channel, message)
            self.enter(name, index, channel, message)
        leaving = {message for _, message in task.outbox if type(message) is CheckpointBarrier and message.is_unaligned}
        waiting = {barrier.checkpoint_id for barrier in leaving}
        self.reports[name].extend(report for report in task.reports if report.checkpoint_id not in waiting)
        task.reports[:] = [report for report in task.reports if report.checkpoint_id in waiting]
        self.tell_the_end(name)

    def enter(self, name: str, index: int, channel: str, message: object) -> None:
        """A message enters a channel: at the end, or a flagged barrier ahead of some of the last events there."""
        queue = self.channels[channel]
        if type(message) is not CheckpointBarrier or not message.is_unaligned:
            queue.append(message)
            return
        most = 0
        while most < len(queue) and type(queue[-1 - most]) in (Event, Watermark):
            most += 1
        at = len(queue) - self.choose(most + 1)
        passed = list(queue)[at:]
        queue.insert(at, message)
        self.tasks[name].capture_overtaken(index, passed, message.checkpoint_id)

    def _tell(self, name: str) -> Callable[[str, int, object], None]:
        tell, outputs = super()._tell(name), self.topology.outputs(name)

        def tell_outputs_too(verb: str, index: int, subject: object) -> None:
            if verb == "capture_output":
                self.note("capture", name, outputs[index], subject)
            else:
                tell(verb, index, subject)

        return tell_outputs_too

    def _aligner(self, name: str, config: BarrierAlignerConfig) -> BarrierAligner:
        enabled = not self.some_align or self.choose(3) > 0
        unaligned = UnalignedCheckpointConfig(enabled, self.threshold_ns, self.most_in_flight)
        return UnalignedCheckpointer(config, unaligned, is_sink=not self.topology.outputs(name))
