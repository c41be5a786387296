"""One run of a join: streams come in time, the stage joins what is there, and the journal is judged.

The classes are those of `impl.join`, through `model.join.world`; here is only when things happen. SimPy keeps the clock
(`docs/decisions`, 4): an event where time passes, callbacks in the order of causes. Maps travel as bytes, and may be
lost. Time is integer nanoseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from barrierlab.impl.join import (
    ClockDomain,
    Frame,
    InvalidMergeMap,
    Joined,
    MergeMapAuthority,
    MergeMapJoiner,
    SequenceJoinBarrier,
    SequenceMergeMapRequest,
    Skipped,
    SkipReason,
    TimestampMergeMapRequest,
    Undecodable,
    decode,
    encode,
)
from barrierlab.impl.join.merge_map import MergeMapRequest
from barrierlab.model.join.history import text as entry_text
from barrierlab.model.join.invariants import judge_join
from barrierlab.model.join.world import JoinWorld
from barrierlab.model.render.html import facts
from barrierlab.model.render.streams import lay_out_join
from barrierlab.model.render.svg import Svg, svg
from barrierlab.model.render.trace_picture import PART
from barrierlab.sim.checkpoint.coverage import NO_OUTPUT, Coverage
from barrierlab.sim.checkpoint.judged import JudgedRun, frame
from barrierlab.sim.checkpoint.metrics import NS_PER_MS
from barrierlab.sim.core.clock import Clock
from barrierlab.sim.core.distributions import NS_PER_S, Distribution, stream
from barrierlab.sim.join import figures
from barrierlab.sim.join.scenario import OUT_STREAM, InputSettings, JoinScenario, make_stage, maps
from barrierlab.sim.scenario.settings import ns
from barrierlab.sim.sweep.tables import SKIPS, skip_column

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FIRST_EPOCH = 1


class JoinEngine:
    """The streams, the stage and the control stream of one run, and the clock between them."""

    def __init__(self, scenario: JoinScenario, seed: int) -> None:
        self.scenario, self.seed = scenario, seed
        self.clock = Clock()
        self.until_ns = ns(scenario.until_s)
        slots = {number: scenario.inputs[name].slots for name, number in scenario.streams.items()}
        self.world = JoinWorld(make_stage(scenario), slots)
        self.inputs = [Producer(self, name, number) for name, number in scenario.streams.items()]
        self.measures = Measures(self)
        self.published = 0
        self._service = self.draw(scenario.join.service_s, "join", "service")
        self._serving = False
        self._measured = 0
        self._ticks = 0
        self._deadline_ns: int | None = None
        self._control = Control(self)

    def draw(self, dist: Distribution, node: str, purpose: str) -> Callable[[], int]:
        """A sampler with a random stream of its own, in nanoseconds."""
        return dist.sampler(stream(self.seed, node, purpose))

    def run(self) -> None:
        """Run to the scenario's end."""
        for producer in self.inputs:
            producer.start()
        self._control.start()
        tick_s = self.scenario.join.tick_s
        if tick_s is not None:
            self.clock.after(ns(tick_s), lambda: self._tick(ns(tick_s)))
        self.clock.run(self.until_ns)
        self.clock.now = self.until_ns

    # The stage.

    def arrived(self, producer: Producer, frame: Frame) -> None:
        """Bring a frame's descriptor to the stage; its slot header is read at once, if it is still there."""
        ring = self.world.rings[frame.stream_id]
        header_is_there = ring.holds(frame)
        seen = frame if header_is_there else frame._replace(slot_ns=None)
        self.measures.arrived(frame, self.clock.now)
        self.world.observe(seen, self.clock.now)
        join = self.scenario.join
        if join.drive == producer.name:
            if join.barrier == "latest":
                self.wants(self._next_tick())
            else:
                at_ns = seen.slot_ns if producer.settings.source == "slot_header" else seen.frame_ns
                if at_ns is not None:
                    self.wants(at_ns)
        self.go()

    def wants(self, out: int) -> None:
        """Ask for an output."""
        self.measures.wanted(out, self.clock.now)
        self.world.offer(out, self.clock.now)
        self._measure()

    def _next_tick(self) -> int:
        """Return the next tick; ticks of the latest value are counted: two frames may come at one time."""
        self._ticks += 1
        return self._ticks

    def _tick(self, tick_ns: int) -> None:
        latest = self.scenario.join.barrier == "latest"
        out = self._next_tick() if latest else self.clock.now - ns(self.scenario.join.budget_s)
        if out >= 0:
            self.wants(out)
        self.clock.after(tick_ns, lambda: self._tick(tick_ns))
        self.go()

    def go(self) -> None:
        """Do what can be done now."""
        while not self._serving and self.world.try_next(self.clock.now):
            self._measure()
            self._serving = True
            service_ns = self._service()
            if service_ns:
                self.clock.after(service_ns, self._served)
                return
            self._end()
        self._measure()
        self._watch_deadline()

    def _served(self) -> None:
        self._end()
        self.go()

    def _end(self) -> None:
        self._serving = False
        self.world.end(self.clock.now)
        self._measure()

    def _measure(self) -> None:
        """Measure what became of outputs since the last time."""
        outcomes = self.world.outcomes
        for outcome in outcomes[self._measured :]:
            if isinstance(outcome, Joined):
                self.measures.joined(outcome, self.clock.now)
            else:
                self.measures.skipped(outcome, self.clock.now)
        self._measured = len(outcomes)

    def _watch_deadline(self) -> None:
        """Ask again when an input will be stale: nothing else may come."""
        due_ns = self.world.stage.next_deadline_ns(self.clock.now)
        if due_ns is not None and due_ns != self._deadline_ns and due_ns > self.clock.now:
            self._deadline_ns = due_ns
            self.clock.after(due_ns - self.clock.now, self.go)


class Producer:
    """One stream: captures frames, makes them ready, writes them into slots and sends descriptors, all in order."""

    def __init__(self, engine: JoinEngine, name: str, number: int) -> None:
        self.engine, self.name, self.number = engine, name, number
        self.settings: InputSettings = engine.scenario.inputs[name]
        settings = self.settings
        self._gap_ns = NS_PER_S / settings.rate_per_s
        self._jitter = engine.draw(settings.jitter_s, name, "jitter")
        self._delay = engine.draw(settings.delay_s, name, "delay")
        self._write = engine.draw(settings.write_s, name, "write")
        self._latency = engine.draw(settings.latency_s, name, "latency")
        self._chance = stream(engine.seed, name, "drops")
        self._epoch, self._seq = FIRST_EPOCH, 0
        self._count = 0
        self._written_ns = self._arrives_ns = self._captured_ns = 0
        self._stop_ns = engine.until_ns if settings.stop_at_s is None else ns(settings.stop_at_s)
        self._down_until_ns = 0

    def start(self) -> None:
        """Begin to capture."""
        settings = self.settings
        if settings.clock_domain is not None:
            self.engine.world.declare_clock(self.number, ClockDomain[settings.clock_domain], 0)
        for at_s in settings.restart_at_s:
            self.engine.clock.after(ns(at_s), self._restart)
        self._next()

    def _restart(self) -> None:
        """Start the producer again: a new epoch, from frame 0, after a pause."""
        self._epoch += 1
        self._seq = 0
        self._down_until_ns = self.engine.clock.now + ns(self.settings.restart_s)

    def _next(self) -> None:
        """Capture the next frame when it is due, a little late; frames do not overtake one another."""
        due_ns = ns(self.settings.phase_s) + round(self._count * self._gap_ns) + self._jitter()
        self._count += 1
        self._captured_ns = max(due_ns, self._captured_ns)
        if self._captured_ns < self._stop_ns:
            self.engine.clock.after(max(self._captured_ns - self.engine.clock.now, 0), self._capture)

    def _capture(self) -> None:
        engine = self.engine
        dropped = self._chance.random() < self.settings.drop
        delay_ns, write_ns, latency_ns = self._delay(), self._write(), self._latency()
        if engine.clock.now >= self._down_until_ns:
            seq = self._seq
            self._seq += 1
            if not dropped:
                begins_ns = max(engine.clock.now + delay_ns, self._written_ns)
                self._written_ns = begins_ns + write_ns
                self._arrives_ns = max(self._written_ns + latency_ns, self._arrives_ns)
                frame = Frame(self.number, self._epoch, seq, self._written_ns, engine.clock.now)
                engine.clock.after(begins_ns - engine.clock.now, lambda: engine.world.begin(frame))
                engine.clock.after(self._written_ns - engine.clock.now, lambda: self._commit(frame))
                engine.clock.after(self._arrives_ns - engine.clock.now, lambda: engine.arrived(self, frame))
        self._next()

    def _commit(self, frame: Frame) -> None:
        self.engine.world.commit(frame, self.engine.clock.now)
        self.engine.published += 1


class Control:
    """The control stream: an authority that says the map, a joiner that asks for it, and bytes between them."""

    def __init__(self, engine: JoinEngine) -> None:
        self.engine = engine
        join = engine.scenario.join
        self._authority = MergeMapAuthority(ns(join.announce_interval_s))
        by_number = join.barrier == "sequence" or (join.barrier == "latest" and not join.by_timestamp)
        kind: type[MergeMapRequest] = SequenceMergeMapRequest if by_number else TimestampMergeMapRequest
        self._joiner = MergeMapJoiner(kind, OUT_STREAM, ns(join.request_interval_s), join.most_requests)
        self._latency = engine.draw(join.control_latency_s, "control", "latency")
        self._loss = stream(engine.seed, "control", "loss")
        self._is_there = False

    def start(self) -> None:
        """Start the authority, which says its maps now and with each epoch; the join comes when it comes, and asks."""
        join = self.engine.scenario.join
        self._publish(FIRST_EPOCH)
        for number, at_s in enumerate(join.epoch_at_s, FIRST_EPOCH + 1):
            self.engine.clock.after(ns(at_s), partial(self._publish, number))
        self.engine.clock.after(ns(join.joins_at_s), self._join)

    def _publish(self, epoch: int) -> None:
        for merge_map in maps(self.engine.scenario, epoch):
            self._carry(
                [encode(said) for said in self._authority.publish(merge_map, self.engine.clock.now)], self._hear
            )
        if epoch == FIRST_EPOCH:
            self._again()

    def _again(self) -> None:
        self._carry([encode(said) for said in self._authority.on_time(self.engine.clock.now)], self._hear)
        due_ns = self._authority.next_deadline_ns()
        assert due_ns is not None
        self.engine.clock.after(max(due_ns - self.engine.clock.now, 1), self._again)

    def _join(self) -> None:
        self._is_there = True
        self._ask(self._joiner.start(0, self.engine.clock.now))

    def _ask(self, request: MergeMapRequest | None) -> None:
        if request is not None:
            self._carry([encode(request)], self._answer)
        due_ns = self._joiner.next_deadline_ns()
        if due_ns is not None:
            self.engine.clock.after(
                max(due_ns - self.engine.clock.now, 0), lambda: self._ask(self._joiner.on_time(self.engine.clock.now))
            )

    def _answer(self, data: bytes) -> None:
        request = decode(data)
        assert isinstance(request, SequenceMergeMapRequest | TimestampMergeMapRequest)
        self._carry([encode(said) for said in self._authority.on_request(request)], self._hear)

    def _hear(self, data: bytes) -> None:
        if not self._is_there:
            return
        said = decode(data)
        assert not isinstance(said, Undecodable | InvalidMergeMap | SequenceMergeMapRequest | TimestampMergeMapRequest)
        self._joiner.heard(said)
        self.engine.world.announce(said, self.engine.clock.now)
        self.engine.go()

    def _carry(self, messages: list[bytes], to: Callable[[bytes], None]) -> None:
        for data in messages:
            latency_ns = self._latency()
            if self._loss.random() >= self.engine.scenario.join.control_loss:
                self.engine.clock.after(latency_ns, partial(to, data))


class Measures:
    """The measures of each output that is wanted after the warm-up and before the cool-down.

    A sequence is wanted when the first of its frames is here; one that is skipped, when it is skipped.
    """

    def __init__(self, engine: JoinEngine) -> None:
        scenario = engine.scenario
        self.from_ns = ns(scenario.warmup_s)
        self.to_ns = ns(scenario.until_s - scenario.cooldown_s)
        self.wanted_count = 0
        self.waits_ns: list[int] = []
        self.ages_ns: list[int] = []
        self.skews_ns: list[int] = []
        self.complete = 0
        self.outputs = 0
        self.skips: dict[SkipReason, int] = {}
        self.last_ns: dict[int, int] = {}  # of each stream, when its last frame arrived
        self._wanted_ns: dict[int, deque[int]] = {}  # of outputs that are not out: the same time may be wanted twice
        self._arrived_ns: dict[tuple[int, int, int], int] = {}
        self._shift_ns = {
            number: ns(scenario.inputs[name].offset_s or 0.0) for name, number in scenario.streams.items()
        }
        self._by_sequence = isinstance(engine.world.stage.barrier, SequenceJoinBarrier)

    @property
    def seconds(self) -> float:
        """Return how long it is measured, in seconds."""
        return (self.to_ns - self.from_ns) / NS_PER_S

    def counts(self, at_ns: int) -> bool:
        """Return whether what is wanted then counts."""
        return self.from_ns <= at_ns <= self.to_ns

    def arrived(self, frame: Frame, now_ns: int) -> None:
        """Note that a frame is here."""
        self.last_ns[frame.stream_id] = now_ns
        if self._by_sequence:
            self._arrived_ns[frame.stream_id, frame.epoch, frame.seq] = now_ns

    def wanted(self, out: int, now_ns: int) -> None:
        """Note that an output is wanted."""
        self.wanted_count += self.counts(now_ns)
        self._wanted_ns.setdefault(out, deque()).append(now_ns)

    def skipped(self, outcome: Skipped, now_ns: int) -> None:
        """Note that outputs were passed over; or an attempt was, and its output is wanted still."""
        first, last, reason, _ = outcome
        since_ns = now_ns
        if not self._by_sequence:
            waiting = self._wanted_ns[first]
            if reason is SkipReason.MAP_CHANGED:
                since_ns = waiting[0]
            else:
                since_ns = waiting.pop() if reason is SkipReason.HELD else waiting.popleft()
        if self.counts(since_ns):
            self.skips[reason] = self.skips.get(reason, 0) + last - first + 1

    def waiting(self, engine: JoinEngine) -> int:
        """Return how many outputs are not out at the end; of sequences those of which a frame has come."""
        if not self._by_sequence:
            return sum(self.counts(at_ns) for each in self._wanted_ns.values() for at_ns in each)
        barrier, next_out = engine.world.stage.barrier, engine.world.stage.next_out() or 0
        settings = {number: engine.scenario.inputs[name] for name, number in engine.scenario.streams.items()}
        first_ns: dict[int, int] = {}
        for (number, epoch, seq), at_ns in self._arrived_ns.items():
            out = seq - (settings[number].offset or 0)
            if out >= next_out and barrier.epoch_of(number) in (None, epoch):
                first_ns[out] = min(at_ns, first_ns.get(out, at_ns))
        return sum(map(self.counts, first_ns.values()))

    def joined(self, outcome: Joined, now_ns: int) -> None:
        """Note that an output came out."""
        frames = outcome.frames
        if self._by_sequence:
            since_ns = min(self._arrived_ns.pop((f.stream_id, f.epoch, f.seq), now_ns) for f in frames)
        else:
            since_ns = self._wanted_ns[outcome.out].popleft()
        if not self.counts(since_ns):
            return
        captured = [frame.slot_ns for frame in frames if frame.slot_ns is not None]
        aligned = [f.slot_ns - self._shift_ns[f.stream_id] for f in frames if f.slot_ns is not None]
        self.outputs += 1
        self.complete += not outcome.absent
        self.waits_ns.append(now_ns - since_ns)
        self.ages_ns.append(now_ns - min(captured))
        self.skews_ns.append(max(aligned) - min(aligned))


class JoinResult(JudgedRun):
    """One run of a join, judged. Times are milliseconds unless the name says otherwise.

    Attributes
    ----------
    scenario : JoinScenario
    seed : int
    entries : list of JoinEntry
        The journal (`model.join.history`).
    verdict : str
        ``holds`` or ``broken``.
    violations : list of Violation

    Examples
    --------
    >>> from barrierlab.sim import load, run
    >>> run(load("lockstep_cameras"), seed=1).verdict
    'holds'
    """

    def __init__(self, scenario: JoinScenario, seed: int, engine: JoinEngine) -> None:
        self.scenario, self.seed = scenario, seed
        self.entries = engine.world.entries
        self._engine = engine
        judged = judge_join(self.entries, engine.world.spec)
        self.verdict = judged.verdict
        self.violations = list(judged.violations)
        self._violation_count = len(judged.violations) + sum(judged.more.values())

    def __repr__(self) -> str:
        row = self.join_rows()[0]
        counts = f"{row['outputs']} outputs of {row['wanted']} wanted"
        return f"<JoinResult: {self.scenario.name}, seed {self.seed}: {self.verdict}; {counts}>"

    def _repr_html_(self) -> str:
        row = {name: value for name, value in self.join_rows()[0].items() if value is not None}
        return self.shown("", [*self.warnings, self.waiting_line], facts(row))

    def spacetime(self) -> Svg:
        """The frames and the outputs, drawn in their order; of a long run the part around the first that is skipped."""
        names = {number: name for name, number in self.scenario.streams.items()}
        drawn = lay_out_join(self.trace(), names)
        return svg(drawn.part(PART), self.scenario.title, map(str, self.violations))

    def timeline(self) -> Figure:
        """Draw how long each output waited."""
        return figures.timeline(self.scenario.title, self.entries)

    def queues(self) -> Figure:
        """The frames that wait for those of other streams, over time, drawn."""
        return figures.queues(
            self.scenario.title, self.entries, {number: name for name, number in self.scenario.streams.items()}
        )

    def journal_text(self) -> str:
        """Return the entries, a line each."""
        return "\n".join(map(entry_text, self.entries))

    def run_row(self) -> dict[str, Any]:
        """One row for the whole run, as runs of jobs have."""
        measures = self._engine.measures
        return {
            "scenario": self.scenario.name,
            "seed": self.seed,
            "verdict": self.verdict,
            "violations": self._violation_count,
            "progress": self.coverage.progress,
            "falls_short": self.coverage.falls_short,
            "checkpoints_completed": 0,
            "checkpoints_failed": 0,
            "events_in": self._engine.published,
            "events_out": measures.outputs,
            "throughput_per_s": measures.outputs / measures.seconds,
            "sim_duration_s": self.scenario.until_s,
            "journal_digest": self.digest,
            "journal_entries": len(self.entries),
        }

    def checkpoint_rows(self) -> list[dict[str, Any]]:
        """None: a join takes no checkpoints."""
        return []

    def task_rows(self) -> list[dict[str, Any]]:
        """None."""
        return []

    def join_rows(self) -> list[dict[str, Any]]:
        """One row: what came out, how long it waited, how old it was, and how far apart its frames were."""
        measures, join = self._engine.measures, self.scenario.join
        skips = {skip_column(reason): measures.skips.get(reason, 0) for reason in SKIPS}
        skipped, waiting = sum(skips.values()), measures.waiting(self._engine)
        by_sequence = join.barrier == "sequence"
        wanted = measures.outputs + skipped + waiting if by_sequence else measures.wanted_count
        return [
            {
                "barrier": join.barrier,
                "lateness_ms": None if join.barrier != "timestamp" else (join.lateness_s or 0.0) * 1000,
                "wanted": wanted,
                "outputs": measures.outputs,
                "complete": measures.complete,
                "degraded": measures.outputs - measures.complete,
                "skipped": skipped,
                **skips,
                "waiting": waiting,
                "output_rate_per_s": measures.outputs / measures.seconds,
                "complete_share": measures.complete / wanted if wanted else 0.0,
                **_spread("wait", measures.waits_ns),
                **_spread("age", measures.ages_ns),
                **_spread("skew", measures.skews_ns),
            }
        ]

    def skip_counts(self) -> dict[str, int]:
        """Outputs that were passed over, and attempts that a changed map made void, of those that count, by why."""
        return {reason.value: count for reason, count in self._engine.measures.skips.items()}

    @property
    def waits_for(self) -> list[str]:
        """The inputs that the next output lacks at the end of the run, if one is wanted and not being read."""
        stage, now_ns = self._engine.world.stage, self._engine.clock.now
        out = stage.next_out()
        if out is None or stage.attempt is not None or stage.barrier.active is None:
            return []
        missing = stage.barrier.missing(out, now_ns)
        return [name for name, number in self.scenario.streams.items() if number in missing]

    @property
    def waiting_line(self) -> str:
        """Return how many outputs wait at the end, and for which streams; empty if none does."""
        measures = self._engine.measures
        waiting = measures.waiting(self._engine)
        if not waiting:
            return ""
        lacks = []
        for name in self.waits_for:
            last_ns = measures.last_ns.get(self.scenario.streams[name])
            since = "no frame of it came" if last_ns is None else f"its last frame came at {last_ns / NS_PER_S:.3f} s"
            lacks.append(f"{name} ({since})")
        if self._engine.world.stage.barrier.active is None:
            lacks = ["a map"]
        return f"{waiting} waiting at the end" + (f", for {' and '.join(lacks)}" if lacks else "")

    @property
    def coverage(self) -> Coverage:
        """The limits of the verdict: whether anything came out that could be judged."""
        if any(verb == "emit" for _, verb, _, _ in self.entries):
            return Coverage()
        return Coverage(progress=NO_OUTPUT, headline="no output came out: what comes out was not judged")

    def trace(self) -> str:
        """The journal as text, under what it is of, a line an entry."""
        fields = {"join": self.scenario.join.barrier, "scenario": self.scenario.name, "seed": self.seed}
        head = [f"# {' '.join(self.scenario.title.split())}", *(f"{key}: {value}" for key, value in fields.items()), ""]
        return "\n".join([*head, *map(entry_text, self.entries), *(f"! {v}" for v in self.violations)]) + "\n"

    def measured(self) -> dict[str, Any]:
        """Return what came out, what did not, and what it waits for."""
        return {
            **self.coverage.as_json(),
            "join": self.join_rows()[0] | {"skips": self.skip_counts(), "waits_for": self.waits_for},
            "frames": self._engine.published,
        }

    @property
    def outputs(self) -> pd.DataFrame:
        """The outputs, a row each: out, at_ms, absent, and the frames' numbers by input."""
        names = {number: name for name, number in self.scenario.streams.items()}
        rows = []
        for at_ns, verb, _, subject in self.entries:
            if verb == "emit":
                out, frames, absent = cast("tuple[int, tuple[Any, ...], tuple[int, ...]]", subject)
                seqs = {names[number]: frame.seq for number, frame in frames}
                missing = " ".join(names[each] for each in absent)
                rows.append({"out": out, "at_ms": at_ns / NS_PER_MS, "absent": missing, **seqs})
        return frame(rows)


def _spread(name: str, values_ns: list[int]) -> dict[str, float | None]:
    """Mean, median and 99th percentile of some times, in milliseconds: an order statistic, rounded up."""
    ordered = sorted(values_ns)
    if not ordered:
        return {f"{name}_mean_ms": None, f"{name}_p50_ms": None, f"{name}_p99_ms": None}

    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / NS_PER_MS

    mean = sum(ordered) / len(ordered) / NS_PER_MS
    return {f"{name}_mean_ms": mean, f"{name}_p50_ms": at(0.5), f"{name}_p99_ms": at(0.99)}


KINDS = JoinEngine, JoinResult
