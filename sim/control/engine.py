"""One run of control signals in simulated time: the machines of `impl.control` on SimPy, judged and measured.

SimPy keeps the clock; a node that may go on is run at once, so the same scenario and seed give the same journal. A
processor does one thing at a time: it takes control signals first, then data in turn, and an event costs its service
time. A channel is bounded from the moment a message is sent; a full one makes its sender wait, on that channel alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from barrierlab.impl.control import (
    BarrierControlSignalKind,
    Carrier,
    ControlProcessor,
    ControlSourceProcessor,
    InstantControlSignal,
    Message,
)
from barrierlab.impl.messages import Event
from barrierlab.model.control.invariants import ControlEntry, ControlMonitor, text_of, verdict_of
from barrierlab.model.control.operators import DISCARDING
from barrierlab.model.control.topology import CARRIERS, CONTROL, DATA, HEAD
from barrierlab.model.control.world import CARRIER, Processors, as_text, head_of
from barrierlab.model.render.html import facts, table
from barrierlab.model.render.signals import lay_out_signals
from barrierlab.model.render.svg import Svg, svg
from barrierlab.model.render.trace_picture import PART
from barrierlab.sim.checkpoint.coverage import NO_SIGNAL, Coverage
from barrierlab.sim.checkpoint.figures import queues
from barrierlab.sim.checkpoint.judged import JudgedRun, frame
from barrierlab.sim.control import figures
from barrierlab.sim.control.metrics import ControlMetrics
from barrierlab.sim.control.scenario import ALIGNERS, ControlScenario, LinkSettings
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.core.distributions import Arrivals, stream
from barrierlab.sim.scenario.settings import ns

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class TimedChannel:
    """A channel in time: what is sent arrives after the latency, in order."""

    def __init__(self, engine: ControlEngine, name: str, settings: LinkSettings) -> None:
        self.name = name
        self.queue: deque[Message] = deque()
        self.sender: ProcessorChannels
        self.receiver: ProcessorNode
        self._engine = engine
        self._capacity = settings.capacity
        self._latency = settings.latency_s.sampler(stream(engine.seed, name, "latency"))
        self._inside = 0
        self._last_ns = 0

    @property
    def is_full(self) -> bool:
        """Return whether nothing more may be sent."""
        return self._inside == self._capacity

    def send(self, message: Message) -> None:
        """Send the message on its way."""
        engine = self._engine
        self._inside += 1
        self._last_ns = max(engine.clock.now + self._latency(), self._last_ns)
        engine.note("send", self.sender.name, self.name, message)
        engine.clock.after(self._last_ns - engine.clock.now, lambda: self._arrive(message))

    def _arrive(self, message: Message) -> None:
        self.queue.append(message)
        self.receiver.run()

    def take(self) -> Message:
        """Take the message out of the channel."""
        self._inside -= 1
        return self.queue.popleft()


class ProcessorChannels:
    """A machine with its outgoing channels."""

    machine: ControlProcessor | ControlSourceProcessor

    def __init__(self, engine: ControlEngine, name: str) -> None:
        self.engine, self.name = engine, name
        wiring = engine.scenario.wiring
        self.inputs = {kind: [engine.links[c] for c in wiring.inputs(kind, name)] for kind in CARRIER}
        self.outputs = {kind: [engine.links[c] for c in wiring.outputs(kind, name)] for kind in CARRIER}
        for kind in CARRIER:
            for link in self.outputs[kind]:
                link.sender = self

    def tell(self, verb: str, carrier: Carrier | None, index: int, subject: object) -> None:
        """Note in the journal what the machine does."""
        where = None if carrier is None else carrier.value
        if where is not None and index >= 0:
            where = self.inputs[where][index].name
        self.engine.note(verb, self.name, where, subject)

    def run(self) -> None:
        """Go on as far as possible."""
        self.push()

    def push(self) -> None:
        """Empty both outboxes as far as there is room."""
        for kind, carrier in CARRIER.items():
            outbox, outputs = self.machine.outbox[carrier], self.outputs[kind]
            while outbox and not outputs[outbox[0][0]].is_full:
                output, message = outbox.popleft()
                outputs[output].send(message)


class HeadNode(ProcessorChannels):
    """The head, which sends what the scenario says, when it says so."""

    def __init__(self, engine: ControlEngine) -> None:
        super().__init__(engine, HEAD)
        self.machine: ControlSourceProcessor = head_of(engine.scenario.wiring, self.tell)
        for at_s, signal, channel in engine.scenario.signals:
            engine.clock.after(ns(at_s), partial(self._send, signal, channel))

    def _send(self, signal: BarrierControlSignalKind | InstantControlSignal, channel: str) -> None:
        self.engine.note(">signal", HEAD, None, f"{signal} on {channel}")
        if isinstance(signal, InstantControlSignal):
            self.machine.send_instant(signal, CARRIER[channel])
        else:
            self.machine.send(signal, CARRIER[channel])
        self.push()


class ProcessorNode(ProcessorChannels):
    """A processor that serves one message at a time."""

    machine: ControlProcessor

    def __init__(self, engine: ControlEngine, name: str, make: Processors) -> None:
        super().__init__(engine, name)
        scenario = engine.scenario
        self.machine = make(name, scenario.wiring, self.tell)
        operator = scenario.operators.get(name)
        self._service = operator.service_s.sampler(stream(engine.seed, name, "service")) if operator else lambda: 0
        self._turn = dict.fromkeys(CARRIER, 0)
        self._busy = False
        for kind in CARRIER:
            for link in self.inputs[kind]:
                link.receiver = self

    def run(self) -> None:
        """Take what may be taken, until there is nothing or an event keeps the processor busy."""
        self.push()
        while not self._busy and (self._take(CONTROL) or self._take(DATA)):
            self.push()

    def _take(self, kind: str) -> bool:
        """Take the next message of a channel, the inputs in turn."""
        links = self.inputs[kind]
        for step in range(len(links)):
            index = (self._turn[kind] + step) % len(links)
            link = links[index]
            if link.queue and self._may_take(kind, index, link.queue[0]):
                self._turn[kind] = index + 1
                delay_ns = self._service() if type(link.queue[0]) is Event and not self.machine.ended else 0
                if delay_ns:
                    self._busy = True
                    self.engine.clock.after(delay_ns, partial(self._served, kind, index))
                else:
                    self._offer(kind, index)
                return True
        return False

    def _may_take(self, kind: str, index: int, message: Message) -> bool:
        return isinstance(message, InstantControlSignal) or self.machine.can_take(CARRIER[kind], index)

    def _served(self, kind: str, index: int) -> None:
        self._busy = False
        self._offer(kind, index)
        self.run()

    def _offer(self, kind: str, index: int) -> None:
        link = self.inputs[kind][index]
        message = link.take()
        self.engine.note(">deliver", self.name, link.name, None)
        self.engine.note("take", self.name, link.name, message)
        taken = self.machine.offer(CARRIER[kind], index, message)
        assert taken
        link.sender.run()


class ControlSourceNode(ProcessorNode):
    """A processor that events come to from outside, until the scenario's time is up."""

    def __init__(self, engine: ControlEngine, name: str, make: Processors) -> None:
        super().__init__(engine, name, make)
        settings = engine.scenario.sources[name]
        self._most = settings.events
        self._arrivals = Arrivals(
            settings.arrivals, settings.rate_per_s, settings.on_s, settings.off_s, stream(engine.seed, name, "arrivals")
        )
        self._due = 0  # events that have come and are not given off
        self._made = 0
        self._next()

    def _next(self) -> None:
        at_ns = self._arrivals.next()
        enough = self._most is not None and self._made + self._due >= self._most
        if not enough and at_ns <= ns(self.engine.scenario.until_s) and not self.machine.ended:
            self.engine.clock.after(at_ns - self.engine.clock.now, self._come)

    def _come(self) -> None:
        self._due += 1
        self._next()
        self.run()

    def run(self) -> None:
        """Process as any processor does; then give off what has come, unless that is the end of it."""
        super().run()
        while self._due and not self.machine.ended and not self.machine.outbox[Carrier.DATA]:
            self._due -= 1
            self._made += 1
            event = Event(self.name, self._made, timestamp_ms=self.engine.clock.now // 1_000_000)
            self.engine.note(">emit", self.name, None, event)
            self.machine.emit(event)
            self.push()


class ControlEngine:
    """The nodes and channels of one run, and the clock between them."""

    def __init__(
        self, scenario: ControlScenario, seed: int, make: Callable[..., ControlProcessor] = ControlProcessor
    ) -> None:
        self.scenario, self.seed = scenario, seed
        self.clock = Clock()
        self.entries: list[ControlEntry] = []
        control = scenario.control
        kinds = {name: operator.kind for name, operator in scenario.operators.items()}
        parameters = {name: dict(operator.parameters) for name, operator in scenario.operators.items()}
        options = {
            "hold_data": control.hold_data,
            "max_ahead": control.max_ahead,
            "make_aligner": ALIGNERS[control.aligner],
        }
        processors = Processors(kinds, parameters, options, make)
        self.links = {name: TimedChannel(self, name, settings) for name, settings in scenario.links.items()}
        self.head = HeadNode(self)
        self.nodes: dict[str, ProcessorNode] = {}
        for name in scenario.wiring.processors:
            kind = ControlSourceNode if name in scenario.sources else ProcessorNode
            self.nodes[name] = kind(self, name, processors)

    def note(self, verb: str, node: str, where: str | None, subject: object) -> None:
        """Note one entry of the journal."""
        self.entries.append((self.clock.now, verb, node, where, subject))

    def run(self) -> None:
        """Run until nothing more can happen: sources end with the scenario's time, or before."""
        self.clock.run()


class ControlResult(JudgedRun):
    """One run, judged and measured. Times are simulated; milliseconds unless the name says otherwise.

    Attributes
    ----------
    verdict : str
        ``holds`` or ``broken``.
    violations : list of Violation
    metrics : ControlMetrics

    Examples
    --------
    >>> from barrierlab.sim import load, run
    >>> run(load("graceful_shutdown", {"until_s": 12.0}), seed=1).lost_count
    0
    """

    def __init__(self, scenario: ControlScenario, seed: int, engine: ControlEngine) -> None:
        self.scenario, self.seed, self.entries = scenario, seed, engine.entries
        discards = [name for name, operator in scenario.operators.items() if operator.kind in DISCARDING]
        monitor = ControlMonitor(scenario.wiring, scenario.control.hold_data, discards)
        self.metrics = ControlMetrics(scenario.wiring)
        for entry in engine.entries:
            monitor.see(entry)
            self.metrics.see(entry)
        judged = verdict_of(monitor)
        self.verdict, self.violations = judged.verdict, list(judged.violations)
        self.emitted_count = len(monitor.emitted)
        self.lost_count = monitor.lost() if self.metrics.end else 0

    def __repr__(self) -> str:
        counts = f"{len(self.metrics.barriers)} barriers, {self.emitted_count} events, {self.lost_count} lost"
        return f"<ControlResult: {self.scenario.name}, seed {self.seed}: {self.verdict}; {counts}>"

    def _repr_html_(self) -> str:
        barriers = [{k: v for k, v in row.items() if k != "complete_ms"} for row in self.metrics.barrier_rows()]
        end = {name: value for name, value in (self.metrics.end_row() or {}).items() if name != "ended_ms"}
        return self.shown("", self.warnings, table(barriers, caption="barriers"), facts(end))

    def spacetime(self) -> Svg:
        """The events and signals, drawn in their order; of a long run the part around the first signal."""
        drawn = lay_out_signals(self.trace())
        return svg(drawn.part(PART), self.scenario.title, map(str, self.violations))

    def timeline(self, number: int = -1) -> Figure:
        """Draw when a barrier reached each processor, and was complete there: the last one, or that of the number.

        Raises
        ------
        KeyError
            If there is none.
        """
        keys = list(self.metrics.barriers)
        if not -len(keys) <= number < len(keys):
            allowed = f"0 to {len(keys) - 1}" if keys else "none, the run has no barrier"
            raise KeyError(f"there is no barrier {number} in this run; allowed: {allowed}")
        key = keys[number]
        wiring = self.scenario.wiring
        return figures.timeline(self.scenario.title, wiring.processors, text_of(key), self.metrics.barriers[key])

    def queues(self) -> Figure:
        """The messages in the fullest channels over time, drawn."""
        channels = [channel for carrier in CARRIERS for channel in self.scenario.wiring.channels[carrier]]
        return queues(self.scenario.title, channels, self.entries)

    @property
    def barriers(self) -> pd.DataFrame:
        """The barriers as a frame."""
        return frame(self.metrics.barrier_rows())

    @property
    def alignments(self) -> pd.DataFrame:
        """The waits for barriers as a frame, a row for each processor and channel."""
        return frame(self.metrics.alignment_rows())

    @property
    def coverage(self) -> Coverage:
        """The limits of the verdict: whether there was a signal to judge."""
        if self.scenario.signals:
            return Coverage()
        return Coverage(progress=NO_SIGNAL, headline="no signal was sent: nothing was judged but the events")

    def journal_text(self) -> str:
        """Return the entries, a line each."""
        return as_text(self.entries, timed=True)

    def trace(self) -> str:
        """The journal as text, under what it is of."""
        scenario = self.scenario
        head = {"topology": scenario.topology, "control": scenario.control.wiring, "scenario": scenario.name}
        lines = [f"{key}: {value}\n" for key, value in (head | {"seed": str(self.seed)}).items()]
        verdicts = [f"! {violation}\n" for violation in self.violations]
        return "".join([*lines, "\n", self.journal_text(), *verdicts])

    def measured(self) -> dict[str, Any]:
        """Return the barriers, the waits for them, the end and the events."""
        return {
            **self.coverage.as_json(),
            "barriers": self.metrics.barrier_rows(),
            "alignment": self.metrics.alignment_rows(),
            "end": self.metrics.end_row(),
            "events": {"emitted": self.emitted_count, "lost": self.lost_count},
        }


KINDS = ControlEngine, ControlResult
