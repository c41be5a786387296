"""TOML to the settings of a join, strictly: streams in shared memory, and the barrier that joins them.

    title = "camera and IMU"
    until_s = 10.0
    [join]
    barrier = "timestamp"          # or sequence, or latest
    drive = "camera"               # whose frames set the output time; or clock, with tick_s
    lateness_s = 0.01
    [input.camera]
    rate_per_s = 30.0
    slots = 8
    [input.imu]
    rate_per_s = 200.0
    window_s = 0.01

An input may have a rule of both kinds, `offset` or `window` for sequence numbers and `offset_s` or `window_s` for
times: each barrier goes by its own (protocol rule 33), so that they can be compared on the same streams.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from barrierlab.impl.errors import BarrierError
from barrierlab.impl.join import (
    ClockDomain,
    JoinBarrier,
    JoinConfig,
    JoinStage,
    LatenessScope,
    LatestValueJoinBarrier,
    OnFailure,
    PendingPolicy,
    SequenceJoinBarrier,
    SequenceMergeMapAnnounce,
    SequenceMergeRule,
    StageConfig,
    TimestampJoinBarrier,
    TimestampMergeMapAnnounce,
    TimestampMergeRule,
    TimestampSource,
)
from barrierlab.model.render.graph import graph_svg
from barrierlab.model.render.html import block, facts
from barrierlab.sim.core.distributions import Distribution
from barrierlab.sim.scenario.file import Builder
from barrierlab.sim.scenario.idle import IdleKey, given, lines_of
from barrierlab.sim.scenario.readers import (
    TICK_S,
    ValueReader,
    WrongValueError,
    distribution,
    flag,
    key,
    number,
    one_of,
    suggest,
    text,
    whole,
)
from barrierlab.sim.scenario.settings import ZERO, ns

OUT_STREAM = 1000
CLOCK = "clock"
MOST_S, MOST_OFFSET, MOST_WINDOW = 1e9, 2**31 - 1, 2**32 - 2
"""The room that a map has, which says times in nanoseconds."""


def share(value: Any) -> float:
    """A share of 0 to 1, 1 not included."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise WrongValueError("a share of at least 0 and less than 1")
    return float(value)


def moments(value: Any) -> tuple[float, ...]:
    """Times in seconds, rising."""
    if not isinstance(value, list):
        raise WrongValueError("a list of times in seconds, such as [10.0, 20.0]")
    read = tuple(number(TICK_S)(each) for each in value)
    if any(later <= earlier for earlier, later in itertools.pairwise(read)):
        raise WrongValueError("times that rise")
    return read


def signed(most: float) -> ValueReader:
    """A number from `-most` to `most`."""

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not -most <= value <= most:
            raise WrongValueError(f"a number from {-most:g} to {most:g}")
        return float(value)

    return read


def whole_signed(value: Any) -> int:
    """A whole number from `-MOST_OFFSET` to `MOST_OFFSET`."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MOST_OFFSET:
        raise WrongValueError(f"a whole number from {-MOST_OFFSET} to {MOST_OFFSET}")
    return value


DOMAINS = one_of(*(domain.name for domain in ClockDomain))


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """A join, and how its map gets to it."""

    barrier: str = key(one_of("sequence", "timestamp", "latest"), "timestamp")
    drive: str | None = key(text, None)
    tick_s: float | None = key(number(TICK_S), None)
    budget_s: float = key(number(), 0.0)
    pending: str | None = key(one_of(*(each.value for each in PendingPolicy)), None)
    most_pending: int = key(whole(), 1024)
    on_failure: str = key(one_of(*(each.value for each in OnFailure)), "skip")
    by_timestamp: bool = key(flag, False)
    lateness_s: float | None = key(number(most=MOST_S), None)
    lateness_scope: str = key(one_of(*(each.value for each in LatenessScope)), "map")
    stale_timeout_s: float | None = key(number(TICK_S, most=MOST_S), None)
    clock_domain: str = key(DOMAINS, "MONOTONIC")
    service_s: Distribution = key(distribution, ZERO)
    epoch_at_s: tuple[float, ...] = key(moments, ())
    announce_interval_s: float = key(number(TICK_S), 1.0)
    request_interval_s: float = key(number(TICK_S), 0.1)
    most_requests: int = key(whole(), 50)
    joins_at_s: float = key(number(), 0.0)
    control_latency_s: Distribution = key(distribution, ZERO)
    control_loss: float = key(share, 0.0)


@dataclass(frozen=True, slots=True)
class InputSettings:
    """One stream: when frames are captured, how they come, how long they stay, and what its rules are."""

    rate_per_s: float = key(number(TICK_S, most=1e9), 30.0)
    phase_s: float = key(number(), 0.0)
    jitter_s: Distribution = key(distribution, ZERO)
    delay_s: Distribution = key(distribution, ZERO)
    write_s: Distribution = key(distribution, ZERO)
    latency_s: Distribution = key(distribution, ZERO)
    drop: float = key(share, 0.0)
    slots: int = key(whole(1, 1_000_000), 8)
    restart_at_s: tuple[float, ...] = key(moments, ())
    restart_s: float = key(number(), 0.0)
    stop_at_s: float | None = key(number(TICK_S), None)
    offset: int | None = key(whole_signed, None)
    window: int | None = key(whole(1, MOST_WINDOW), None)
    offset_s: float | None = key(signed(MOST_S), None)
    window_s: float | None = key(number(TICK_S, most=MOST_S), None)
    source: str = key(one_of(*(each.name.lower() for each in TimestampSource)), "frame_descriptor")
    clock_domain: str | None = key(DOMAINS, None)


@dataclass(frozen=True, slots=True, repr=False)
class JoinScenario:
    """All that one run of a join depends on, besides its seed."""

    engine: ClassVar[str] = "barrierlab.sim.join.engine"
    name: str
    title: str
    until_s: float
    warmup_s: float
    cooldown_s: float
    seed: int
    join: JoinSettings
    inputs: Mapping[str, InputSettings]
    parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    def __repr__(self) -> str:
        return f"<JoinScenario: {self.name}, {self.join.barrier}, {self.until_s:g} s: {self.title}>"

    def _repr_html_(self) -> str:
        its: dict[str, Any] = {"barrier": self.join.barrier, "until_s": self.until_s, "seed": self.seed}
        its |= {f"input.{name}.rate_per_s": each.rate_per_s for name, each in self.inputs.items()}
        nodes = [*((name, name) for name in self.inputs), ("", self.join.barrier)]
        picture = graph_svg(self.topology, nodes, [(name, "", "", "") for name in self.inputs])
        return block(f"{self.name}: {self.title}", "", picture, facts(its | dict(self.settings)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the settings that are given and change nothing, a line for each reason."""
        return lines_of((*self._idle_keys(), *self._too_late()))

    def _idle_keys(self) -> Iterator[IdleKey]:
        join = self.join
        by_number = join.barrier == "sequence" or (join.barrier == "latest" and not join.by_timestamp)
        if join.drive != CLOCK or join.barrier == "latest":
            for key in given(join, "budget_s"):
                yield f"join.{key}", "a budget is taken off the time of a tick: drive by the clock, and join by time"
        if join.barrier == "sequence":
            for key in given(join, "pending", "most_pending"):
                yield f"join.{key}", "sequences follow one another, and none waits behind another"
        elif (join.pending or ("replace" if join.barrier == "latest" else "queue")) != "queue":
            for key in given(join, "most_pending"):
                yield f"join.{key}", 'of output times one waits, unless pending = "queue"'
        if join.barrier == "latest":
            for key in given(join, "on_failure"):
                yield (
                    f"join.{key}",
                    "of the latest values a tick that fails gives nothing, and the next one tries again",
                )
        if join.barrier != "timestamp":
            for key in given(join, "lateness_s", "lateness_scope"):
                yield f"join.{key}", f"a {join.barrier} barrier has no lateness"
        elif not join.lateness_s:
            for key in given(join, "lateness_scope"):
                yield f"join.{key}", "there is no lateness_s"
        for name, each in self.inputs.items():
            numbers, times = ([each.offset, each.window], [each.offset_s, each.window_s])
            own, others = (numbers, times) if by_number else (times, numbers)
            if any(others) and own == [None, None]:
                what = "number" if by_number else "time"
                for key in given(each, *(("offset_s", "window_s") if by_number else ("offset", "window"))):
                    yield (
                        f"input.{name}.{key}",
                        f"it joins by {what}, and a stream without a rule for that has offset 0",
                    )

    def _too_late(self) -> Iterator[IdleKey]:
        over = f"the run ends at {self.until_s:g} s"
        for at_s in self.join.epoch_at_s:
            if at_s >= self.until_s:
                yield f"join.epoch_at_s {at_s:g}", over
        for name, each in self.inputs.items():
            if each.stop_at_s is not None and each.stop_at_s >= self.until_s:
                yield f"input.{name}.stop_at_s {each.stop_at_s:g}", over
            for at_s in each.restart_at_s:
                if at_s >= self.until_s:
                    yield f"input.{name}.restart_at_s {at_s:g}", over
                elif each.stop_at_s is not None and at_s >= each.stop_at_s:
                    yield f"input.{name}.restart_at_s {at_s:g}", f"{name} has stopped for good by then (stop_at_s)"
            if each.restart_s and not each.restart_at_s:
                yield f"input.{name}.restart_s", "without restart_at_s a stream is not started again"

    @property
    def topology(self) -> str:
        """Return who is joined, as the list of scenarios shows it."""
        return " ".join(f"{name}->{self.join.barrier}" for name in self.inputs)

    @property
    def steps(self) -> float:
        """Return about how many steps a run has: four a frame, as long as it takes to publish, observe and join one."""
        return 4 * self.until_s * sum(each.rate_per_s for each in self.inputs.values())

    @property
    def streams(self) -> dict[str, int]:
        """The stream id of each input."""
        return {name: index for index, name in enumerate(self.inputs, 1)}


TOP: dict[str, ValueReader] = {
    "title": text,
    "until_s": number(TICK_S),
    "warmup_s": number(),
    "cooldown_s": number(),
    "seed": whole(0),
}
TABLES = ("parameters", "join", "input")


class JoinBuilder(Builder):
    """Reads a scenario with a table [join]."""

    def build(self) -> JoinScenario:
        top = self.file.begin(TOP, TABLES)
        join = self.file.settings_of(JoinSettings, "join")
        inputs = {
            name: self.file.settings_of(InputSettings, f"input.{name}", table)
            for name, table in self.file.tables("input")
        }
        scenario = JoinScenario(
            **self.common(top, until_s=10.0, warmup_s=0.0, cooldown_s=0.0, text=self.file.text),
            join=join,
            inputs=inputs,
        )
        self._check_join(scenario)
        return scenario

    def _check_join(self, scenario: JoinScenario) -> None:
        """Check what no single key can show."""
        join, inputs = scenario.join, scenario.inputs
        if scenario.warmup_s + scenario.cooldown_s >= scenario.until_s:
            self.fail("", f"measures nothing: warmup_s and cooldown_s leave nothing of until_s = {scenario.until_s:g}")
        if not inputs:
            self.fail("", "has no table [input.NAME]; give each stream one")
        if CLOCK in inputs:
            self.fail(f"[input.{CLOCK}]", "has the name of what else sets output times; give the stream another")
        if join.barrier == "sequence":
            if join.drive is not None:
                self.fail("[join] drive", "is given with a sequence barrier, whose outputs follow one another")
        elif join.drive is None:
            self.fail("[join]", f"has no key 'drive'; give {CLOCK!r} or an input: {', '.join(inputs)}")
        elif join.drive != CLOCK and join.drive not in inputs:
            self.fail(
                "[join] drive",
                f"is {join.drive!r}; allowed: {CLOCK}, {', '.join(inputs)}" + suggest(join.drive, [CLOCK, *inputs]),
            )
        if (join.drive == CLOCK) != (join.tick_s is not None):
            self.fail("[join] tick_s", f"goes with drive = {CLOCK!r}, and with nothing else")
        if join.by_timestamp and join.barrier != "latest":
            self.fail("[join] by_timestamp", 'goes with barrier = "latest", and with nothing else')
        by_time = join.barrier == "timestamp" or join.by_timestamp
        clocks = {name: each.clock_domain or join.clock_domain for name, each in inputs.items()}
        if by_time and any(clock != join.clock_domain for clock in clocks.values()):
            self.fail(
                "[join]",
                f"goes by times of different clocks, of which none says when another has it: the output's is "
                f"{join.clock_domain}; {', '.join(f'{name} has {clock}' for name, clock in clocks.items())}; give all "
                "the same clock_domain, stamp the streams by one clock, or join by number",
            )
        for name, each in inputs.items():
            if each.offset is not None and each.window is not None:
                self.fail(f"[input.{name}]", "has both offset and window; a rule has one of them")
            if each.offset_s is not None and each.window_s is not None:
                self.fail(f"[input.{name}]", "has both offset_s and window_s; a rule has one of them")
            if join.barrier == "timestamp" and ns(each.window_s or MOST_S) < ns(join.lateness_s or 0.0):
                self.fail(
                    f"[input.{name}] window_s",
                    f"is {each.window_s:g}; allowed: at least lateness_s, {join.lateness_s:g}: a shorter window may be "
                    "empty when the rule is met",
                )
        try:
            make_stage(scenario)
            for said in maps(scenario, 1):
                assert said.rules
        except BarrierError as error:
            self.fail("[join]", str(error))


def _time_ns(seconds: float | None) -> int | None:
    return None if seconds is None else ns(seconds)


def maps(scenario: JoinScenario, epoch: int) -> tuple[SequenceMergeMapAnnounce | TimestampMergeMapAnnounce, ...]:
    """Return the authority's maps of the output in an epoch, one of each kind.

    Raises
    ------
    BarrierError
        If the rules make no map.
    """
    join = scenario.join
    numbers, times = [], []
    for name, stream in scenario.streams.items():
        each = scenario.inputs[name]
        source = TimestampSource[each.source.upper()]
        if each.window is not None:
            numbers.append(SequenceMergeRule.in_window(stream, each.window))
        else:
            numbers.append(SequenceMergeRule.at_offset(stream, each.offset or 0))
        if each.window_s is not None:
            times.append(TimestampMergeRule.in_window(stream, ns(each.window_s), source))
        else:
            times.append(TimestampMergeRule.at_offset(stream, ns(each.offset_s or 0.0), source))
    stale, domain = _time_ns(join.stale_timeout_s), ClockDomain[join.clock_domain]
    by_number = SequenceMergeMapAnnounce(OUT_STREAM, epoch, tuple(numbers), stale)
    if join.barrier == "sequence" or (join.barrier == "latest" and not join.by_timestamp):
        return (by_number,)
    lateness = None if join.barrier == "latest" else _time_ns(join.lateness_s)
    return by_number, TimestampMergeMapAnnounce(OUT_STREAM, epoch, domain, tuple(times), stale, lateness)


def make_stage(scenario: JoinScenario) -> JoinStage:
    """The stage of a scenario, without a map."""
    join = scenario.join
    config = JoinConfig(OUT_STREAM, lateness_scope=LatenessScope(join.lateness_scope))
    barrier: JoinBarrier
    if join.barrier == "sequence":
        barrier = SequenceJoinBarrier(config)
    elif join.barrier == "timestamp":
        barrier = TimestampJoinBarrier(config)
    else:
        kind = TimestampMergeMapAnnounce if join.by_timestamp else SequenceMergeMapAnnounce
        barrier = LatestValueJoinBarrier(config, kind, join.by_timestamp)
    slots = tuple((stream, scenario.inputs[name].slots) for name, stream in scenario.streams.items())
    pending = None if join.pending is None else PendingPolicy(join.pending)
    return JoinStage(barrier, StageConfig(OnFailure(join.on_failure), pending, join.most_pending, slots))
