"""The common parts of the tests of `impl`: short names for messages, a port that writes down, and a small dataflow."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from barrierlab.impl import (
    Aborted,
    AbortTask,
    Acknowledge,
    BarrierAligner,
    BarrierAlignerConfig,
    BarrierInjectorConfig,
    CancelBarrier,
    CheckpointBarrier,
    CheckpointBarrierInjector,
    CheckpointCoordinator,
    Completed,
    CoordinatorConfig,
    EndOfInput,
    Event,
    Gate,
    Inject,
    Notify,
    OperatorTask,
    OutputExchange,
    Publish,
    SinkTask,
    SnapshotFailedError,
    SourceTask,
    UnalignedCheckpointConfig,
    UnalignedCheckpointer,
    Watermark,
)

END = EndOfInput()
ROOMY = 2**40


def event(name: str, timestamp_ms: int = 0, size_bytes: int = 1) -> Event:
    """``event("a1")`` is the first event of source a."""
    return Event(name[0], int(name[1:]), timestamp_ms=timestamp_ms, size_bytes=size_bytes)


def barrier(checkpoint_id: int) -> CheckpointBarrier:
    """The aligned barrier of a checkpoint."""
    return CheckpointBarrier(checkpoint_id, checkpoint_id)


def cancel(checkpoint_id: int) -> CancelBarrier:
    """The cancel marker of a checkpoint."""
    return CancelBarrier(checkpoint_id)


def aligner(num_inputs: int = 2, **limits: int) -> BarrierAligner:
    """An aligner with the default limits, or others."""
    return BarrierAligner(BarrierAlignerConfig(num_inputs=num_inputs, **limits))


def drain(machine: BarrierAligner, now_ns: int = 0) -> list[tuple[int, str, str]]:
    """Release until nothing may go: (input, message, action) in readable form."""
    steps = []
    while (step := machine.drain_next(now_ns)) is not None:
        steps.append((step[0], str(step[1]), step[2].name))
    return steps


class Recorder:
    """A port that writes each effect down as a line: ``deliver 0 a1``."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.fails: set[int] = set()

    def deliver(self, input_id, message):
        self.lines.append(f"deliver {input_id} {message}")

    def end_input(self, input_id):
        self.lines.append(f"end {input_id}")

    def snapshot(self, barrier):
        if barrier.checkpoint_id in self.fails:
            raise SnapshotFailedError("disk full")
        self.lines.append(f"snapshot {barrier.checkpoint_id}")

    def forward(self, barrier):
        self.lines.append(f"forward {barrier}")

    def complete(self, barrier):
        self.lines.append(f"complete {barrier.checkpoint_id}")

    def decline(self, checkpoint_id, reason):
        self.lines.append(f"decline {checkpoint_id} {reason}")

    def cancel(self, checkpoint_id):
        self.lines.append(f"cancel {checkpoint_id}")

    def record(self, input_id, message, checkpoint_id):
        self.lines.append(f"record {input_id} {message}")

    def buffer(self, input_id, message):
        self.lines.append(f"buffer {input_id} {message}")

    def block(self, input_id, checkpoint_id):
        self.lines.append(f"block {input_id} {checkpoint_id}")

    def resume(self, checkpoint_id):
        self.lines.append(f"resume {checkpoint_id}")

    def ignore(self, input_id, message):
        self.lines.append(f"ignore {input_id} {message}")

    def take(self) -> list[str]:
        """Return what was written since the last time."""
        lines, self.lines = self.lines, []
        return lines

    def of(self, verb: str) -> list[str]:
        """Return what follows `verb` on its lines."""
        return [line.split(" ", 1)[1] for line in self.lines if line.split(" ", 1)[0] == verb]


def gate(num_inputs: int = 2, **limits: int) -> tuple[Gate, Recorder]:
    """A gate and its port."""
    port = Recorder()
    return Gate(aligner(num_inputs, **limits), port), port


def flagged(checkpoint_id: int) -> CheckpointBarrier:
    """The unaligned barrier of a checkpoint."""
    return CheckpointBarrier.new_unaligned(checkpoint_id, checkpoint_id)


def unaligned(num_inputs: int = 2, is_sink: bool = False, limits=None, **settings) -> UnalignedCheckpointer:
    """A machine with the default settings, or others; `limits` are the aligner's."""
    config = BarrierAlignerConfig(num_inputs=num_inputs, **(limits or {}))
    return UnalignedCheckpointer(config, UnalignedCheckpointConfig(**settings), is_sink=is_sink)


def unaligned_gate(num_inputs: int = 2, is_sink: bool = False, limits=None, **settings) -> tuple[Gate, Recorder]:
    """A gate with such a machine, and its port."""
    port = Recorder()
    return Gate(unaligned(num_inputs, is_sink, limits, **settings), port), port


class Union:
    """An operator whose state is all that it saw, and whose outputs are its inputs."""

    def __init__(self) -> None:
        self.seen: list[Event] = []

    def process(self, input_id, event):
        self.seen.append(event)
        return (event,)

    def on_watermark(self, timestamp_ms):
        return ()

    def on_end(self, input_id):
        return ()

    def checkpoint(self):
        return tuple(self.seen)

    def restore(self, image):
        self.seen = list(image)


class Join(Union):
    """Pairs each event with all that the other side has shown so far."""

    def __init__(self) -> None:
        super().__init__()
        self.sides: tuple[list[Event], list[Event]] = ([], [])

    def process(self, input_id, event):
        self.seen.append(event)
        self.sides[input_id].append(event)
        others = self.sides[1 - input_id]
        return [Event("j", len(self.seen) * 100 + place, value=(event, other)) for place, other in enumerate(others)]

    def checkpoint(self):
        return tuple(map(tuple, self.sides))

    def restore(self, image):
        self.sides = (list(image[0]), list(image[1]))
        self.seen = [*self.sides[0], *self.sides[1]]


@dataclass
class Channel:
    """A bounded first-in, first-out link between an output and an input."""

    sender: str
    output: int
    receiver: str
    input_id: int
    capacity: int
    queue: deque = field(default_factory=deque)


class Dataflow:
    """Sources, operators and sinks under a coordinator, run step by step without time of its own.

    ``Dataflow("a->join b->join join->sink")``. Tasks that nothing reaches are sources, those that reach nothing are
    sinks. `now_ns` is the test's to move.
    """

    def __init__(self, edges: str, operators=None, capacity: int = 4, aligner_config=None, config=None) -> None:
        pairs = [edge.split("->") for edge in edges.split()]
        names = list(dict.fromkeys(name for pair in pairs for name in pair))
        self.now_ns = 0
        self.journal: list[tuple[str, str, int, object]] = []
        self.answers: list[object] = []
        self.completed: list[int] = []
        self.parts: dict[int, dict[str, Acknowledge]] = {}
        self.tasks: dict[str, SourceTask | OperatorTask] = {}
        self.channels: list[Channel] = []
        inputs = dict.fromkeys(names, 0)
        outputs = dict.fromkeys(names, 0)
        for sender, receiver in pairs:
            self.channels.append(Channel(sender, outputs[sender], receiver, inputs[receiver], capacity))
            outputs[sender] += 1
            inputs[receiver] += 1
        self.sources = [name for name in names if not inputs[name]]
        for name in names:
            exchanges = [OutputExchange("forward", [output]) for output in range(outputs[name])]
            operator = (operators or {}).get(name, Union)()
            limits = {"num_inputs": inputs[name], **(aligner_config or {})}
            if not inputs[name]:
                injector = CheckpointBarrierInjector(BarrierInjectorConfig(None, name))
                self.tasks[name] = SourceTask(name, injector, exchanges, self._teller(name))
            elif outputs[name]:
                machine = self._machine(BarrierAlignerConfig(**limits), is_sink=False)
                self.tasks[name] = OperatorTask(name, operator, machine, exchanges, self._teller(name))
            else:
                machine = self._machine(BarrierAlignerConfig(**limits), is_sink=True)
                self.tasks[name] = self._sink(name, operator, machine)
        self.coordinator = CheckpointCoordinator(config or CoordinatorConfig(None), names, self.sources)
        self.handles = {name: self.tasks[name].injector.coordinator_handle() for name in self.sources}

    def _machine(self, limits: BarrierAlignerConfig, is_sink: bool) -> BarrierAligner:
        return BarrierAligner(limits)

    def _sink(self, name, operator, machine) -> SinkTask:
        return SinkTask(name, operator, machine, self._teller(name))

    def _teller(self, name):
        return lambda verb, index, subject: self.journal.append((name, verb, index, subject))

    def emit(self, source: str, count: int = 1) -> None:
        """The next events of a source."""
        task = self.tasks[source]
        for _ in range(count):
            task.emit(Event(source, task.position, timestamp_ms=task.position))

    def trigger(self) -> None:
        """A checkpoint, by the coordinator; the sources have not polled yet."""
        self.act(self.coordinator.trigger(self.now_ns))

    def act(self, actions) -> None:
        """Carry the coordinator's actions out."""
        for action in actions:
            self.answers.append(action)
            if type(action) is Inject:
                self.handles[action.source].inject(action.command)
            elif type(action) is AbortTask:
                self.tasks[action.task].abort(action.checkpoint_id, action.reason, self.now_ns)
            elif type(action) is Publish:
                self.publish(action)
            elif type(action) is Notify:
                self.tasks[action.task].notify(action.checkpoint_id, self.now_ns)
            elif type(action) is Completed:
                self.completed.append(action.checkpoint_id)
                self.parts[action.checkpoint_id] = {part.task: part for part in action.parts}

    def publish(self, action) -> None:
        """Write the manifest, and tell the coordinator."""
        self.act(self.coordinator.published(action.checkpoint_id, self.now_ns))

    def push(self) -> bool:
        """Outboxes into channels, as far as there is room."""
        moved = False
        for name, channels in self._by_sender().items():
            outbox = self.tasks[name].outbox
            while outbox and len(channels[outbox[0][0]].queue) < channels[outbox[0][0]].capacity:
                output, message = outbox.popleft()
                channels[output].queue.append(message)
                moved = True
        return moved

    def _by_sender(self):
        senders: dict[str, dict[int, Channel]] = {}
        for channel in self.channels:
            senders.setdefault(channel.sender, {})[channel.output] = channel
        return senders

    def step(self, stalled=()) -> bool:
        """Everything once: polls, pushes, one release or one message for each task that is not stalled."""
        moved = self.push()
        for name, task in self.tasks.items():
            if name in stalled or task.outbox:
                continue
            if type(task) is SourceTask:
                moved |= task.poll(self.now_ns) is not None
            elif task.drain_next(self.now_ns):
                moved = True
            else:
                moved |= self._take(name, task, stalled)
        return self._report() or moved

    def _take(self, name, task, stalled) -> bool:
        """The next message of the channel whose turn it is."""
        for channel in self.channels:
            if channel.receiver == name and channel.queue and (channel.sender, name) not in stalled:
                if task.can_take(channel.input_id) and task.offer(channel.input_id, channel.queue[0], self.now_ns):
                    channel.queue.popleft()
                    self.channels.remove(channel)
                    self.channels.append(channel)  # to the end of the line
                    return True
        return False

    def _report(self) -> bool:
        moved = False
        for task in self.tasks.values():
            while task.reports:
                self.hear(task.reports.pop(0))
                moved = True
            if task.finished and task.name not in self.coordinator.finished_tasks:
                self.hear_end(task)
                moved = True
        return moved

    def hear(self, report) -> None:
        """The coordinator gets a part."""
        tell = self.coordinator.acknowledge if type(report) is Acknowledge else self.coordinator.decline
        self.act(tell(report, self.now_ns))

    def hear_end(self, task) -> None:
        """The coordinator gets a task's end."""
        self.act(self.coordinator.finished(task.name, self.now_ns))

    def run(self, stalled=()) -> None:
        """Until nothing moves any more."""
        for _ in range(100_000):
            if not self.step(stalled):
                return
        raise AssertionError("the dataflow does not come to rest")

    def on_time(self, now_ns: int) -> None:
        """The clock moves, and every deadline that has passed is looked at."""
        self.now_ns = now_ns
        for name in self.tasks:
            if name not in self.sources:
                self.tasks[name].on_time(now_ns)
        self.act(self.coordinator.on_time(now_ns))

    def said(self, task: str, *verbs: str) -> list[str]:
        """Return what a task did, as lines, if it is one of `verbs`."""
        return [
            f"{verb} {subject}"
            for name, verb, _index, subject in self.journal
            if name == task and (not verbs or verb in verbs)
        ]

    def cut(self, checkpoint_id: int, task: str) -> list[str]:
        """The events in a task's part of a checkpoint."""
        image = self.parts[checkpoint_id][task].image
        return [str(each) for each in image]

    def aborted(self) -> list[tuple[int, str]]:
        """The checkpoints that the coordinator aborted, with reasons."""
        return [(answer.checkpoint_id, str(answer.reason)) for answer in self.answers if type(answer) is Aborted]


class UnalignedDataflow(Dataflow):
    """The same with tasks that may go unaligned, and a driver that lets barriers overtake, on both sides.

    Half of a channel is the sender's queue, and half the receiver's.
    """

    def __init__(self, edges: str, settings=None, **options) -> None:
        self.settings = UnalignedCheckpointConfig(**(settings or {}))
        super().__init__(edges, **options)

    def _machine(self, limits: BarrierAlignerConfig, is_sink: bool) -> BarrierAligner:
        return UnalignedCheckpointer(limits, self.settings, is_sink=is_sink)

    def trigger(self) -> None:
        """As before; the tasks hear of it."""
        for name in self.tasks:
            if name not in self.sources:
                self.tasks[name].gate.note_trigger(self.coordinator._next_id, self.now_ns)
        super().trigger()

    def push(self) -> bool:
        """Flagged barriers first: they need no room, and pass the half of the channel that is the sender's."""
        moved = False
        for name, channels in self._by_sender().items():
            task = self.tasks[name]
            while task.outbox and getattr(task.outbox[0][1], "is_unaligned", False):
                output, message = task.outbox.popleft()
                queue = channels[output].queue
                at = (len(queue) + 1) // 2
                passed = [queue[place] for place in range(at, len(queue))]
                queue.insert(at, message)
                task.capture_overtaken(output, passed, message.checkpoint_id)
                moved = True
        return super().push() or moved

    def _report(self) -> bool:
        """Return what is passed goes into the report, so barriers leave first."""
        moved = self.push()
        return super()._report() or moved

    def step(self, stalled=()) -> bool:
        """Barriers that are to go ahead do so first, also where the outbox is not empty."""
        moved = False
        for name in self.sources:  # also one that is buffered back polls
            moved |= name not in stalled and self.tasks[name].poll(self.now_ns) is not None
        for channel in self.channels:
            task = self.tasks[channel.receiver]
            if channel.receiver in stalled or (channel.sender, channel.receiver) in stalled:
                continue
            for at, message in enumerate(channel.queue):
                if type(message) is CheckpointBarrier and task.gate.wants_overtaking(
                    channel.input_id, message, self.now_ns
                ):
                    del channel.queue[at]
                    ahead = [other for place, other in enumerate(channel.queue) if place < at]
                    assert task.offer_overtaking(channel.input_id, message, ahead, self.now_ns)
                    moved = True
                    break
        return super().step(stalled) or moved


__all__ = [
    "END",
    "ROOMY",
    "Dataflow",
    "Join",
    "Recorder",
    "UnalignedDataflow",
    "Union",
    "Watermark",
    "aligner",
    "barrier",
    "cancel",
    "drain",
    "event",
    "flagged",
    "gate",
    "unaligned",
    "unaligned_gate",
]
