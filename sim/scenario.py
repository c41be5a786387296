"""TOML to settings, strictly: every key is known, has its unit in its name, and is checked before anything runs.

A scenario holds no code. What a user turns is a `[parameters.NAME]` table: either `choices` (a name for a set of
keys and their values) or `sets` (the keys that take the value). `load(name, settings={"level": "sat_4ms"})` applies
them; any other key of the file can be set by its dotted name.
"""

from __future__ import annotations

import copy
import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from impl import BarrierAlignerConfig, CoordinatorConfig
from impl.errors import BarrierError
from model.operators import KINDS
from model.topology import EXCHANGES, Topology, TopologyError
from sim.workload import LAWS, NS_PER_S, Law, constant

SHIPPED = files("sim") / "scenarios"
ZERO, HUNDRED = constant(0.0), constant(100.0)
UNITS = ("_s", "_ms", "_us", "_ns", "_min", "_bytes", "_kb", "_mb", "_per_s", "_per_ms", "_per_min", "_count")


class ScenarioError(ValueError):
    """A scenario that cannot be run. The message is one line: file, key, what came, what is allowed, what to do."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One source operator. Rates and counts are of each subtask."""

    parallelism: int = 1
    rate_per_s: float = 100.0
    arrivals: str = "deterministic"
    on_s: float = 1.0
    off_s: float = 1.0
    events: int | None = None
    catch_up_s: float | None = None
    service_s: Law = ZERO
    record_bytes: Law = HUNDRED
    keys: int = 16
    key_skew: float = 0.0
    watermark_interval_s: float | None = None
    out_of_order_s: Law = ZERO
    trigger: str = "coordinator"


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """One operator that is not a source."""

    kind: str = "map"
    parallelism: int = 1
    service_s: Law = ZERO
    inputs: str = "auto"
    parameters: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """One exchange: how events are distributed, and what its channels are made of."""

    exchange: str = "auto"
    form: str = "spsc"
    capacity: int = 64
    latency_s: Law = ZERO
    local: bool = False
    segment_bytes: int = 32_768
    exclusive_buffers: int = 2
    floating_buffers: int = 8
    most_buffers: int = 10
    flush_timeout_s: float = 0.1
    flush_late_s: Law = ZERO
    bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """When checkpoints are taken, and within which limits. Names and defaults are Flink's where it has them."""

    interval_s: float | None = 10.0
    first_s: float | None = None
    min_pause_s: float = 0.0
    timeout_s: float = 600.0
    max_concurrent: int = 1
    alignment_timeout_s: float = 60.0
    max_buffer_per_input: int = 100_000
    max_buffer_memory_bytes: int = 256 * 1024 * 1024
    hold: str = "aligner"
    trigger_latency_s: Law = ZERO
    ack_latency_s: Law = ZERO
    sync_s: Law = ZERO
    async_s: Law = ZERO


@dataclass(frozen=True, slots=True)
class Stall:
    """`task` does nothing from `at_s` for `for_s`."""

    task: str
    at_s: float
    for_s: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """All that one run depends on, besides its seed."""

    name: str
    title: str
    topology: Topology
    protocol: str
    until_s: float
    warmup_s: float
    seed: int
    sources: Mapping[str, SourceSettings]
    operators: Mapping[str, OperatorSettings]
    channels: Mapping[str, ChannelSettings]
    checkpoint: CheckpointSettings
    stalls: tuple[Stall, ...]
    parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""


# How a key is read: each reader takes the value and gives the setting, or says what is allowed.

Reader = Callable[[Any], Any]


class _Wrong(ValueError):
    """A value that a reader does not take; the text says what is allowed."""


def _number(low: float = 0.0, *, above: bool = False, most: float = float("inf")) -> Reader:
    def read(value: Any) -> float:
        ok = isinstance(value, int | float) and not isinstance(value, bool)
        if not ok or not (low < value if above else low <= value) or not value <= most or value == float("inf"):
            limit = "" if most == float("inf") else f" and at most {most:g}"
            raise _Wrong(f"a number {'above' if above else 'of at least'} {low:g}{limit}")
        return float(value)

    return read


def _whole(low: int = 1, most: int | None = None) -> Reader:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < low or (most is not None and value > most):
            raise _Wrong(f"a whole number of at least {low}" + ("" if most is None else f" and at most {most}"))
        return value

    return read


def _one_of(*names: str) -> Reader:
    def read(value: Any) -> str:
        if value not in names:
            raise _Wrong(" or ".join(map(repr, names)) + _suggest(str(value), names))
        return str(value)

    return read


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong("a text in quotes")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("true or false")
    return value


def _law(value: Any) -> Law:
    """A number, or a table such as `{ law = "gamma", mean = 0.004, cv = 0.5 }` in the unit of the key."""
    if not isinstance(value, dict):
        return constant(_number()(value))
    name = value.get("law")
    if name not in LAWS:
        raise _Wrong(f"a law among {', '.join(LAWS)}" + _suggest(str(name), LAWS))
    wanted = LAWS[name]
    if set(value) != {"law", *wanted}:
        raise _Wrong(f"a law {name!r} with exactly {', '.join(wanted)}")
    if name == "empirical":
        values = value["values"]
        if not isinstance(values, list) or not values:
            raise _Wrong("a list of at least one number in values")
        return Law(name, tuple(_number()(v) for v in values))
    positive = name in ("exponential", "lognormal", "gamma")
    numbers = tuple(_number(above=positive)(value[key]) for key in wanted)
    if name == "uniform" and numbers[0] > numbers[1]:
        raise _Wrong("low of at most high")
    return Law(name, numbers)


_SOURCE: dict[str, Reader] = {
    "parallelism": _whole(1, 1000),
    "rate_per_s": _number(above=True),
    "arrivals": _one_of("deterministic", "poisson", "bursty"),
    "on_s": _number(above=True),
    "off_s": _number(above=True),
    "events": _whole(0),
    "catch_up_s": _number(),
    "service_s": _law,
    "record_bytes": _law,
    "keys": _whole(),
    "key_skew": _number(),
    "watermark_interval_s": _number(above=True),
    "out_of_order_s": _law,
    "trigger": _one_of("coordinator", "periodic"),
}
_OPERATOR: dict[str, Reader] = {
    "kind": _one_of(*KINDS),
    "parallelism": _whole(1, 1000),
    "service_s": _law,
    "inputs": _one_of("auto", "by_buffer", "by_message"),
}
_PARAMETERS: dict[str, Reader] = {
    "fanout": _whole(0, 1000),
    "selectivity": _number(0.0, most=1.0),
    "window_ms": _whole(),
}
_PARAMETERS_OF = {"flat_map": ("fanout",), "filter": ("selectivity",), "join": ("window_ms",), "window": ("window_ms",)}
_CHANNEL: dict[str, Reader] = {
    "exchange": _one_of("auto", *EXCHANGES),
    "form": _one_of("spsc", "network"),
    "capacity": _whole(),
    "latency_s": _law,
    "local": _flag,
    "segment_bytes": _whole(),
    "exclusive_buffers": _whole(),
    "floating_buffers": _whole(0),
    "most_buffers": _whole(),
    "flush_timeout_s": _number(above=True),
    "flush_late_s": _law,
    "bytes_per_s": _number(above=True),
}
_CHECKPOINT: dict[str, Reader] = {
    "interval_s": _number(above=True),
    "first_s": _number(),
    "min_pause_s": _number(),
    "timeout_s": _number(above=True),
    "max_concurrent": _whole(),
    "alignment_timeout_s": _number(above=True),
    "max_buffer_per_input": _whole(),
    "max_buffer_memory_bytes": _whole(),
    "hold": _one_of("aligner", "channel"),
    "trigger_latency_s": _law,
    "ack_latency_s": _law,
    "sync_s": _law,
    "async_s": _law,
}
_STALL: dict[str, Reader] = {"task": _text, "at_s": _number(), "for_s": _number(above=True)}
_TOP: dict[str, Reader] = {
    "title": _text,
    "topology": _text,
    "protocol": _one_of("aligned"),
    "until_s": _number(above=True),
    "warmup_s": _number(),
    "seed": _whole(0),
}
_TABLES = ("parameters", "source", "operator", "channel", "checkpoint", "stall")


def shipped() -> list[str]:
    """The names of the scenarios that come with the package."""
    return sorted(path.name.removesuffix(".toml") for path in SHIPPED.iterdir() if path.name.endswith(".toml"))


def load(name: str | Path, settings: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario called `name`, a shipped one or a TOML file, with `settings` applied.

    Parameters
    ----------
    name : str or Path
        One of `shipped()`, or the path of a file.
    settings : mapping
        Parameter names or dotted keys to values, such as ``{"level": "sat_4ms", "source.a.rate_per_s": 50.0}``.

    Raises
    ------
    ScenarioError
        If there is no such scenario, or anything in it is unknown, of the wrong unit or impossible.

    Examples
    --------
    >>> load("flink_chain", {"level": "rho050"}).sources["source"].rate_per_s
    125.0
    """
    text, file = _read_text(name)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{file}: not TOML: {error}") from error
    return _Builder(file, text, data, dict(settings or {})).build()


def _read_text(name: str | Path) -> tuple[str, str]:
    path = Path(name)
    if path.suffix == ".toml" or len(path.parts) > 1:
        try:
            return path.read_text(encoding="utf-8"), path.name
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise ScenarioError(
                f"{name}: cannot be read: {reason}; give a TOML file or one of the shipped scenarios"
            ) from error
    if str(name) not in shipped():
        raise ScenarioError(
            f"{name}: no scenario of this name; there are {', '.join(shipped())}" + _suggest(str(name), shipped())
        )
    return (SHIPPED / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml"


def _suggest(word: str, known: Mapping[str, Any] | tuple[str, ...] | list[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _stem(key: str) -> str:
    for unit in sorted(UNITS, key=len, reverse=True):
        if key.endswith(unit):
            return key.removesuffix(unit)
    return key


class _Builder:
    """Reads one scenario file. Every fault names the file and the key."""

    def __init__(self, file: str, text: str, data: dict[str, Any], settings: dict[str, Any]) -> None:
        self.file, self.text, self.data, self.settings = file, text, data, settings

    def fail(self, where: str, what: str) -> NoReturn:
        raise ScenarioError(f"{self.file}: {where}{' ' if where else ''}{what}")

    def build(self) -> Scenario:
        self._apply_parameters()
        data = self.data
        for key in data:
            if key not in _TOP and key not in _TABLES:
                self._unknown("", key, [*_TOP, *_TABLES])
        top = {key: self._value("", key, data[key], _TOP) for key in data if key in _TOP}
        if "topology" not in top:
            self.fail("", "has no key 'topology'; give the graph, such as topology = \"a->map map->sink\"")
        operators = {name: self._operator(name, table) for name, table in self._tables("operator")}
        sources = {
            name: SourceSettings(**self._section(f"source.{name}", table, _SOURCE))
            for name, table in self._tables("source")
        }
        channels = dict(self._tables("channel"))
        default = ChannelSettings(**self._section("channel.default", channels.pop("default", {}), _CHANNEL))
        topology = self._topology(top["topology"], sources, operators, default, channels)
        edges = self._channels(topology, default, channels)
        checkpoint = CheckpointSettings(**self._section("checkpoint", self._table("checkpoint"), _CHECKPOINT))
        scenario = Scenario(
            name=self.file.removesuffix(".toml"),
            title=top.get("title", self.file),
            topology=topology,
            protocol=top.get("protocol", "aligned"),
            until_s=top.get("until_s", 60.0),
            warmup_s=top.get("warmup_s", 0.0),
            seed=top.get("seed", 1),
            sources=sources,
            operators=operators,
            channels=edges,
            checkpoint=checkpoint,
            stalls=self._stalls(topology),
            parameters=self._describe_parameters(),
            settings=self.settings,
            text=self.text,
        )
        self._check_whole(scenario)
        return scenario

    # Parameters and settings.

    def _apply_parameters(self) -> None:
        parameters = self.data.get("parameters", {})
        if not isinstance(parameters, dict):
            self.fail("'parameters'", "must be tables such as [parameters.level]")
        wanted = dict(self.settings)
        for name, table in parameters.items():
            if (
                not isinstance(table, dict)
                or not set(table) <= {"default", "choices", "sets", "help"}
                or "default" not in table
            ):
                self.fail(f"[parameters.{name}]", "takes the keys default, choices or sets, and help")
            value = wanted.pop(name, table["default"])
            choices = table.get("choices")
            if choices is not None:
                if str(value) not in choices:
                    self.fail(
                        f"parameter {name!r}",
                        f"is {value!r}; allowed: {', '.join(choices)}" + _suggest(str(value), choices),
                    )
                for key, setting in choices[str(value)].items():
                    self._set(key, setting)
            for key in table.get("sets", ()):
                self._set(key, value)
        for key, value in wanted.items():
            if key.split(".")[0] not in (*_TOP, *_TABLES):
                self.fail(
                    f"setting {key!r}",
                    f"is neither a parameter ({', '.join(parameters) or 'there are none'}) nor a key of the file"
                    + _suggest(key, [*parameters, *_TOP, *_TABLES]),
                )
            self._set(key, value)

    def _describe_parameters(self) -> dict[str, str]:
        texts = {}
        for name, table in self.data.get("parameters", {}).items():
            allowed = f" ({', '.join(table['choices'])})" if "choices" in table else ""
            texts[name] = f"{table.get('help', '')}{allowed}; default {table['default']}"
        return texts

    def _set(self, key: str, value: Any) -> None:
        node = self.data
        parts = _split(key)
        for part in parts[:-1]:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                self.fail(f"setting {key!r}", f"goes through {part!r}, which is not a table")
        node[parts[-1]] = copy.deepcopy(value)

    # Sections.

    def _table(self, name: str) -> dict[str, Any]:
        table = self.data.get(name, {})
        if not isinstance(table, dict):
            self.fail(f"{name!r}", f"must be a table: [{name}]")
        return table

    def _tables(self, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for key, table in self._table(name).items():
            if not isinstance(table, dict):
                self.fail(f"[{name}]", f"holds tables, one for each name: [{name}.{key}]")
            yield key, table

    def _section(self, where: str, table: Mapping[str, Any], readers: Mapping[str, Reader]) -> dict[str, Any]:
        return {key: self._value(where, key, value, readers) for key, value in table.items()}

    def _value(self, where: str, key: str, value: Any, readers: Mapping[str, Reader]) -> Any:
        if key not in readers:
            self._unknown(where, key, list(readers))
        try:
            return readers[key](value)
        except _Wrong as wrong:
            self.fail(f"[{where}] {key}" if where else key, f"is {value!r}; allowed: {wrong}")

    def _unknown(self, where: str, key: str, known: list[str]) -> NoReturn:
        place = f"[{where}]" if where else ""
        same = [name for name in known if _stem(name) == _stem(key)]
        if same:
            self.fail(place, f"has no key {key!r}: its unit is wrong; did you mean {same[0]!r}?")
        self.fail(place, f"has no key {key!r}; allowed: {', '.join(known)}" + _suggest(key, known))

    def _operator(self, name: str, table: dict[str, Any]) -> OperatorSettings:
        where = f"operator.{name}"
        kind = self._value(where, "kind", table.get("kind", "map"), _OPERATOR)
        own = _PARAMETERS_OF.get(kind, ())
        readers = _OPERATOR | {key: _PARAMETERS[key] for key in own}
        values = self._section(where, table, readers)
        parameters = tuple((key, values.pop(key)) for key in own if key in values)
        return OperatorSettings(**values, parameters=parameters)

    def _topology(
        self,
        text: str,
        sources: Mapping[str, SourceSettings],
        operators: Mapping[str, OperatorSettings],
        default: ChannelSettings,
        channels: Mapping[str, dict[str, Any]],
    ) -> Topology:
        both = sorted(set(sources) & set(operators))
        if both:
            self.fail(
                f"[source.{both[0]}]", f"and [operator.{both[0]}] are both there; an operator is one or the other"
            )
        parallelism = {name: s.parallelism for name, s in {**sources, **operators}.items()}
        exchanges = {
            edge: exchange
            for edge in text.split()
            if isinstance(exchange := channels.get(edge, {}).get("exchange", default.exchange), str)
            and exchange != "auto"
        }
        try:
            topology = Topology.parse(text, parallelism=parallelism, exchanges=exchanges, sources=list(sources))
        except TopologyError as error:
            self.fail("topology:", str(error))
        for name in topology.operators:
            if name not in sources and name not in operators:
                self.fail("", f"has no table [operator.{name}]; give its kind: {', '.join(KINDS)}")
        return topology

    def _channels(
        self, topology: Topology, default: ChannelSettings, channels: Mapping[str, dict[str, Any]]
    ) -> dict[str, ChannelSettings]:
        for edge in channels:
            if edge not in topology.edges:
                self.fail(
                    f'[channel."{edge}"]',
                    f"is no exchange; there are {', '.join(topology.edges)}" + _suggest(edge, topology.edges),
                )
        common = {key: getattr(default, key) for key in _CHANNEL}
        return {
            edge: ChannelSettings(**common | self._section(f'channel."{edge}"', channels.get(edge, {}), _CHANNEL))
            for edge in topology.edges
        }

    def _stalls(self, topology: Topology) -> tuple[Stall, ...]:
        tables = self.data.get("stall", [])
        if not isinstance(tables, list):
            self.fail("'stall'", "is a list of tables: [[stall]]")
        stalls = []
        for table in tables:
            if not isinstance(table, dict) or set(table) != set(_STALL):
                self.fail("[[stall]]", f"takes exactly the keys {', '.join(_STALL)}")
            stall = Stall(**self._section("[stall]", table, _STALL))
            known = [*topology.operators, *topology.tasks]
            if stall.task not in known:
                self.fail(
                    "[[stall]] task", f"is {stall.task!r}; allowed: {', '.join(known)}" + _suggest(stall.task, known)
                )
            stalls.append(stall)
        return tuple(stalls)

    def _check_whole(self, scenario: Scenario) -> None:
        """What no single key can show."""
        for name, operator in scenario.operators.items():
            inputs = len(scenario.topology.edges_in(name))
            if operator.kind == "join" and inputs != 2:
                self.fail(f"[operator.{name}]", f"is a join with {inputs} inputs; a join has exactly two")
            if operator.kind == "sink" and scenario.topology.edges_out(name):
                self.fail(f"[operator.{name}]", "is a sink with outputs; a sink has none: choose another kind")
            if operator.kind != "sink" and not scenario.topology.edges_out(name):
                self.fail(f"[operator.{name}]", 'has no output, so it is a sink: write kind = "sink"')
        for edge, channel in scenario.channels.items():
            source = scenario.sources.get(edge.split("->")[0])
            if channel.form == "network" and source is not None and source.record_bytes.mean > channel.segment_bytes:
                self.fail(
                    f'[channel."{edge}"] segment_bytes',
                    f"is {channel.segment_bytes}; allowed: at least a record, {source.record_bytes.mean:g} bytes",
                )
        try:
            aligner_config(scenario.checkpoint, 1)
            coordinator_config(scenario.checkpoint)
        except BarrierError as error:
            self.fail("[checkpoint]", str(error))
        for task in scenario.topology.tasks:
            count = len(scenario.topology.inputs(task))
            if count > 128:
                self.fail("topology", f"gives {task} {count} input channels; allowed: at most 128: lower a parallelism")


def _split(key: str) -> list[str]:
    """The parts of a dotted key; a part in quotes may hold dots and arrows: channel."a->b".capacity."""
    parts, rest = [], key
    while rest:
        if rest.startswith('"') and '"' in rest[1:]:
            part, _, rest = rest[1:].partition('"')
            rest = rest.removeprefix(".")
        else:
            part, _, rest = rest.partition(".")
        parts.append(part)
    return parts


def ns(seconds: float) -> int:
    """Seconds as integer nanoseconds."""
    return round(seconds * NS_PER_S)


def aligner_config(checkpoint: CheckpointSettings, inputs: int) -> BarrierAlignerConfig:
    """The aligner's configuration for a task with `inputs` input channels."""
    return BarrierAlignerConfig(
        num_inputs=inputs,
        max_buffer_per_input=checkpoint.max_buffer_per_input,
        max_buffer_memory_bytes=checkpoint.max_buffer_memory_bytes,
        alignment_timeout_ns=ns(checkpoint.alignment_timeout_s),
    )


def coordinator_config(checkpoint: CheckpointSettings) -> CoordinatorConfig:
    """The coordinator's configuration."""
    return CoordinatorConfig(
        interval_ns=None if checkpoint.interval_s is None else ns(checkpoint.interval_s),
        min_pause_ns=ns(checkpoint.min_pause_s),
        timeout_ns=ns(checkpoint.timeout_s),
        max_concurrent=checkpoint.max_concurrent,
        first_trigger_ns=None if checkpoint.first_s is None else ns(checkpoint.first_s),
    )
