"""TOML to settings, strictly: every key is known, has its unit in its name, and is checked before anything runs.

A scenario holds no code. What a user turns is a `[parameters.NAME]` table: either `choices` (a name for a set of
keys and their values) or `sets` (the keys that take the value). `load(name, settings={"level": "sat_4ms"})` applies
them; any other key of the file can be set by its dotted name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from barrierlab.impl.errors import BarrierError
from barrierlab.model.checkpoint.operators import KINDS, parameters_of
from barrierlab.model.spec.topology import Topology, TopologyError, suggestion
from barrierlab.sim.core.files import read_text
from barrierlab.sim.scenario.file import Builder, ScenarioError, ScenarioFile
from barrierlab.sim.scenario.readers import FAULTS, PARAMETERS, PARAMETERS_OF, TABLES, TOP, keys_of, one_of, suggest
from barrierlab.sim.scenario.settings import (
    OF_SINKS,
    WHEN,
    BufferDebloatSettings,
    ChainedSettings,
    ChannelSettings,
    CheckpointSettings,
    Fault,
    OperatorSettings,
    RecoverySettings,
    Scenario,
    SourceSettings,
    StoreSettings,
    WatermarkAlignmentSettings,
    aligner_config,
    coordinator_config,
)

if TYPE_CHECKING:
    from barrierlab.sim.control.scenario import ControlScenario
    from barrierlab.sim.join.scenario import JoinScenario

    AnyScenario = Scenario | JoinScenario | ControlScenario

S = TypeVar("S", bound="AnyScenario")
NAMING = tuple(kind for kind in KINDS if "name" in parameters_of(kind))
"""The kinds that make events of their own, named after their task."""

SHIPPED = files("barrierlab.sim") / "scenarios"
OTHERS = {
    "control": ("signal", "barrierlab.sim.control.scenario", "ControlBuilder"),
    "join": ("input", "barrierlab.sim.join.scenario", "JoinBuilder"),
}
"""The readers of scenarios that are not of checkpoints, by table, with another table that only they have. A folder of
that name has what is shipped."""


def shipped(table: str = "") -> list[str]:
    """The names of the scenarios of checkpoints that come with the package; or of those with a table of `OTHERS`."""
    folder = SHIPPED / table if table else SHIPPED
    return sorted(path.name.removesuffix(".toml") for path in folder.iterdir() if path.name.endswith(".toml"))


def all_shipped() -> dict[str, str]:
    """Return every scenario that comes with the package, and the table of `OTHERS` that it has, or none."""
    return {name: table for table in ("", *OTHERS) for name in shipped(table)}


@overload
def load(name: str | Path, settings: Mapping[str, Any] | None = None) -> AnyScenario: ...


@overload
def load(name: str | Path, settings: Mapping[str, Any] | None = None, *, kind: type[S]) -> S: ...


def load(name: str | Path, settings: Mapping[str, Any] | None = None, *, kind: type | None = None) -> Any:
    """The scenario called `name`, a shipped one or a TOML file, with `settings` applied.

    A file with a table [join] or [input.NAME] is a `JoinScenario`, one with [control] or [[signal]] a
    `ControlScenario`, any other a `Scenario`.

    Parameters
    ----------
    name : str or Path
        One of `all_shipped()`, or the path of a file.
    settings : mapping
        Parameter names or dotted keys to values, such as ``{"level": "sat_4ms", "source.a.rate_per_s": 50.0}``.
    kind : type, optional
        Which of the three it must be: a type checker then knows it for that.

    Raises
    ------
    ScenarioError
        If there is no such scenario, it is of another kind, or anything in it is unknown, of the wrong unit or
        impossible.

    Examples
    --------
    >>> load("flink_chain", {"level": "rho050"}, kind=Scenario).sources["source"].rate_per_s
    125.0
    """
    text, file = _read_text(name)
    try:
        data = deepcopy(_parsed(text))  # what is loaded has settings put into it
    except ValueError as error:  # TOMLDecodeError, and a number of thousands of digits
        raise ScenarioError(f"{file}: not TOML: {error}") from error
    builder: Any = ScenarioBuilder
    for table, (another, module, name_of_builder) in OTHERS.items():
        if table in data or another in data:
            builder = getattr(import_module(module), name_of_builder)
    scenario = builder(ScenarioFile(file, text, data, dict(settings or {}))).build()
    if kind is not None and not isinstance(scenario, kind):
        raise ScenarioError(f"{file}: is a {type(scenario).__name__}; allowed: a {kind.__name__}")
    return scenario


_parsed = lru_cache(maxsize=32)(tomllib.loads)  # a sweep loads one text with thousands of settings


def _read_text(name: str | Path) -> tuple[str, str]:
    path = Path(name)
    if path.suffix == ".toml" or len(path.parts) > 1:
        return read_text(path, ScenarioError, "give a TOML file or one of the shipped scenarios"), path.name
    tables = all_shipped()
    if str(name) not in tables:
        raise ScenarioError(
            f"{name}: no scenario of this name; there are {', '.join(tables)}" + suggest(str(name), tables)
        )
    folder = SHIPPED / tables[str(name)] if tables[str(name)] else SHIPPED
    return (folder / f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml"


class ScenarioBuilder(Builder):
    """Reads a scenario of checkpoints."""

    def build(self) -> Scenario:
        top = self.file.begin(TOP, TABLES)
        if missing := [key for key in top.get("fill_in", ()) if not self.file.has(key)]:
            self.fail("", f"has no {', '.join(missing)}: give it in the file, or with --set {missing[0]}=VALUE")
        if "topology" not in top:
            self.fail("", "has no key 'topology'; give the graph, such as topology = \"a->map map->sink\"")
        operators = {name: self._operator(name, table) for name, table in self.file.tables("operator")}
        sources = {
            name: self.file.settings_of(SourceSettings, f"source.{name}", table)
            for name, table in self.file.tables("source")
        }
        channels = dict(self.file.tables("channel"))
        common = channels.pop("default", {})
        default = self.file.settings_of(ChannelSettings, "channel.default", common)
        topology = self._topology(top["topology"], sources, operators, default, channels)
        edges = self._channels(topology, default, channels)
        debloat = self.file.settings_of(BufferDebloatSettings, "buffer_debloat")
        if debloat.enabled:
            edges = {edge: replace(channel, spanning_records=True) for edge, channel in edges.items()}
        checkpoint = self.file.settings_of(CheckpointSettings, "checkpoint")
        scenario = Scenario(
            **self.common(top, protocol="aligned", until_s=60.0, warmup_s=0.0, text=self.file.text),
            topology=topology,
            sources=sources,
            operators=operators,
            channels=edges,
            formless=tuple(edge for edge in edges if not {"form", "capacity"} & {*common, *channels.get(edge, {})}),
            checkpoint=checkpoint,
            recovery=self.file.settings_of(RecoverySettings, "recovery"),
            store=self.file.settings_of(StoreSettings, "store"),
            buffer_debloat=debloat,
            watermark_alignment=self.file.settings_of(WatermarkAlignmentSettings, "watermark_alignment"),
            faults=self._faults(topology, edges),
        )
        self._check_whole(scenario)
        return scenario

    def _operator(self, name: str, table: dict[str, Any]) -> OperatorSettings:
        where = f"operator.{name}"
        readers = dict(keys_of(OperatorSettings))
        for key in OF_SINKS if table.get("kind") != "sink" else ():
            del readers[key]
        values = self.of_kind(where, table, readers, PARAMETERS, PARAMETERS_OF)
        chain = self._chain(where, values.get("kind", "map"), values.pop("chain", []))
        return OperatorSettings(**values, chain=chain)

    def _chain(self, where: str, head: str, tables: list[dict[str, Any]]) -> tuple[ChainedSettings, ...]:
        """The operators that run behind the head, in its thread."""
        if tables and head == "sink":
            self.fail(f"[{where}] chain", "is given for a sink, which sends nothing on; allowed: on what is before it")
        kinds = keys_of(ChainedSettings), PARAMETERS, PARAMETERS_OF
        found = [ChainedSettings(**self.of_kind(f"{where}.chain", table, *kinds)) for table in tables]
        makers = [kind for kind in (head, *(each.kind for each in found)) if kind in NAMING]
        if len(makers) > 1:
            self.fail(
                f"[{where}] chain",
                f"has {' and '.join(makers)} in one task, which would name their events alike; allowed: one of "
                f"{', '.join(NAMING)}",
            )
        return tuple(found)

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
        parallelism = {name: s.parallelism for name, s in sources.items()}
        named = text.replace("->", " ").split()
        parallelism |= {name: s.parallelism for name, s in operators.items() if name in named}
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
        for name in operators:
            if name not in topology.operators:
                is_one = f"is a table for {name!r}, which no edge of the topology names"
                self.fail(f"[operator.{name}]", f"{is_one}; {suggestion(name, topology.operators)}")
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
                    f"is no exchange; there are {', '.join(topology.edges)}" + suggest(edge, topology.edges),
                )
        known = keys_of(ChannelSettings)
        return {
            edge: replace(default, **self.file.section(f'channel."{edge}"', channels.get(edge, {}), known))
            for edge in topology.edges
        }

    def _faults(self, topology: Topology, channels: Mapping[str, ChannelSettings]) -> tuple[Fault, ...]:
        faults: list[Fault] = []
        for table in self.file.list_of_tables("fault"):
            fault = self._fault(dict(table), topology)
            same = sum(other.name.partition(" #")[0] == fault.name for other in faults)
            faults.append(replace(fault, name=f"{fault.name} #{same + 1}") if same else fault)
            if (
                fault.channel is not None
                and channels[fault.channel].form == "network"
                and channels[fault.channel].local
            ):
                self.fail("[[fault]] channel", f"is {fault.channel!r}, which is local: it has no link to be slow")
        return tuple(faults)

    def _fault(self, table: dict[str, Any], topology: Topology) -> Fault:
        where = "[fault]"
        if "kind" not in table:
            self.fail("[[fault]]", f"has no kind; allowed: {', '.join(FAULTS)}")
        kind = self.file.value(where, "kind", table.pop("kind"), {"kind": one_of(*FAULTS)})
        needed, optional = FAULTS[kind].needs, FAULTS[kind].may_have
        readers = {key: keys_of(Fault)[key] for key in (*needed, *optional, *WHEN)}
        values = self.file.section(where, table, readers)
        missing = [key for key in needed if key not in values]
        if missing:
            self.fail("[[fault]]", f"of kind {kind!r} has no key {missing[0]!r}; it needs {', '.join(needed)}")
        if sum(key in values for key in ("at_s", "every_s", "rate_per_s")) != 1:
            self.fail(
                "[[fault]]", f"of kind {kind!r} takes exactly one of at_s, every_s and rate_per_s: when it happens"
            )
        if "first_s" in values and "every_s" not in values:
            self.fail("[[fault]]", f"of kind {kind!r} takes first_s with every_s only; use at_s for one time")
        if "factor" in optional and not {"factor", "added_s"} & set(values):
            self.fail("[[fault]]", f"of kind {kind!r} takes factor, added_s or both: how slow it is")
        known = {"task": ["all", *topology.operators, *topology.tasks], "channel": list(topology.edges)}
        for key, names in known.items():
            if key in values and values[key] not in names:
                names = list(dict.fromkeys(names))
                self.fail(
                    f"[[fault]] {key}",
                    f"is {values[key]!r}; allowed: {', '.join(names)}" + suggest(values[key], names),
                )
        name = " ".join(str(values[key]) for key in ("task", "channel") if key in values)
        return Fault(kind=kind, name=f"{kind} {name}".strip(), **values)

    def _check_whole(self, scenario: Scenario) -> None:
        """Check what no single key can show."""
        if scenario.mode.goes_unaligned and scenario.checkpoint.max_concurrent > 1:
            allowed = "1 with unaligned checkpoints, which come one at a time"
            self.fail("[checkpoint] max_concurrent", f"is {scenario.checkpoint.max_concurrent}; allowed: {allowed}")
        for name, operator in scenario.operators.items():
            inputs = len(scenario.topology.edges_in(name))
            if operator.kind == "join" and inputs != 2:
                self.fail(f"[operator.{name}]", f"is a join with {inputs} inputs; a join has exactly two")
            refused = scenario.mode.refused_sink(operator.guarantee)
            if operator.kind == "sink" and refused is not None:
                self.fail(f"[operator.{name}] guarantee", refused)
            if operator.kind == "sink" and scenario.topology.edges_out(name):
                self.fail(f"[operator.{name}]", "is a sink with outputs; a sink has none: choose another kind")
            if operator.kind != "sink" and not scenario.topology.edges_out(name):
                self.fail(f"[operator.{name}]", 'has no output, so it is a sink: write kind = "sink"')
        for edge, channel in scenario.channels.items():
            source = scenario.sources.get(edge.split("->")[0])
            if channel.form != "network" or channel.spanning_records or source is None:
                continue
            if source.record_bytes.largest > channel.segment_bytes:
                self.fail(
                    f'[channel."{edge}"] segment_bytes',
                    f"is {channel.segment_bytes}; allowed: at least a record, {source.record_bytes.largest:g} bytes, "
                    "or any with spanning_records = true",
                )
        self._check_debloating(scenario)
        if scenario.watermark_alignment.max_drift_s is not None and not any(
            source.watermark_interval_s is not None for source in scenario.sources.values()
        ):
            self.fail(
                "[watermark_alignment] max_drift_s",
                "is given, and no source sends watermarks; allowed: with a watermark_interval_s of a source",
            )
        try:
            aligner_config(scenario.checkpoint, 1)
            coordinator_config(scenario)
        except BarrierError as error:
            self.fail("[checkpoint]", str(error))
        for task in scenario.topology.tasks:
            count = len(scenario.topology.inputs(task))
            if count > 128:
                self.fail("topology", f"gives {task} {count} input channels; allowed: at most 128: lower a parallelism")

    def _check_debloating(self, scenario: Scenario) -> None:
        debloat = scenario.buffer_debloat
        if not debloat.enabled:
            return
        if not any(channel.form == "network" for channel in scenario.channels.values()):
            self.fail(
                "[buffer_debloat] enabled", 'is true; allowed: with a channel of form = "network", which has buffers'
            )
        if debloat.min_segment_bytes > debloat.starting_segment_bytes:
            self.fail(
                "[buffer_debloat] min_segment_bytes",
                f"is {debloat.min_segment_bytes}; allowed: at most starting_segment_bytes, "
                f"{debloat.starting_segment_bytes}",
            )
