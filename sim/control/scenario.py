"""A scenario of control signals: TOML to settings, as strict as `sim.scenario.load`, which reads the tables they share.

The table ``[control]`` makes it one. The head is not written: it feeds every source. A channel is named ``a->join``, or
``a=>join`` if it carries control signals; the head's are ``head->a`` and ``head=>a``::

    topology = "a->join b->join"
    [control]
    wiring = "along"                  # or "direct": control signals straight from the head to each processor
    [source.a]
    rate_per_s = 100.0
    [operator.join]
    kind = "batch"
    [channel."b->join"]
    latency_s = 0.2
    [[signal]]
    kind = "SyncTest"
    channel = "data"
    at_s = 1.0
    every_s = 1.0                     # up to until_s
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import networkx as nx

from barrierlab.impl.control import BarrierControlSignalKind, CountingAligner, IdentityAligner, InstantControlSignal
from barrierlab.impl.control.processor import MakeControlAligner
from barrierlab.model.control.operators import KINDS
from barrierlab.model.control.topology import CONTROL, DATA, HEAD, ControlWiring
from barrierlab.model.render.html import block, facts
from barrierlab.model.spec.topology import TopologyError
from barrierlab.sim.core.distributions import Distribution
from barrierlab.sim.scenario.file import Builder
from barrierlab.sim.scenario.idle import lines_of, of_bursts
from barrierlab.sim.scenario.readers import (
    TICK_S,
    TOP,
    ValueReader,
    distribution,
    flag,
    key,
    keys_of,
    number,
    one_of,
    suggest,
    text,
    whole,
)
from barrierlab.sim.scenario.settings import ZERO, OperatorSettings, SourceSettings

ALIGNERS: dict[str, MakeControlAligner] = {"identity": IdentityAligner, "counting": CountingAligner}
SIGNALS: dict[str, BarrierControlSignalKind | InstantControlSignal] = {
    signal.value: signal for signal in (*BarrierControlSignalKind, *InstantControlSignal)
}
MOST_SIGNALS = 100_000

OWN_TOP = {name: TOP[name] for name in ("title", "topology", "until_s", "seed")}
OWN_TABLES = ("parameters", "control", "source", "operator", "channel", "signal")
OWN_SOURCE = {name: keys_of(SourceSettings)[name] for name in ("rate_per_s", "arrivals", "on_s", "off_s", "events")}
OWN_OPERATOR: dict[str, ValueReader] = {"kind": one_of(*KINDS), "service_s": distribution}
PARAMETERS: dict[str, ValueReader] = {
    "selectivity": number(0.0, most=1.0),
    "batch_count": whole(),
    "window_ms": whole(),
}
PARAMETERS_OF = {"filter": ("selectivity",), "batch": ("batch_count",), "window": ("window_ms",)}


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """One channel."""

    capacity: int = key(whole(), 64)
    latency_s: Distribution = key(distribution, ZERO)


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """The wiring of processors for control signals, and how they align."""

    wiring: str = key(text, "along")
    aligner: str = key(one_of(*ALIGNERS), "identity")
    hold_data: bool = key(flag, True)
    max_ahead: int = key(whole(), 1024)
    capacity: int = key(whole(), 64)
    latency_s: Distribution = key(distribution, ZERO)


@dataclass(frozen=True, slots=True)
class SignalSettings:
    """A signal that the head sends at `at_s`; with `every_s`, again and again."""

    kind: str = key(one_of(*SIGNALS))
    channel: str = key(one_of(DATA, CONTROL))
    at_s: float = key(number())
    every_s: float | None = key(number(TICK_S), None)


@dataclass(frozen=True, slots=True, repr=False)
class ControlScenario:
    """All that one run of control signals depends on, besides its seed."""

    engine: ClassVar[str] = "barrierlab.sim.control.engine"
    name: str
    title: str
    wiring: ControlWiring
    until_s: float
    seed: int
    control: ControlSettings
    sources: Mapping[str, SourceSettings]
    operators: Mapping[str, OperatorSettings]
    links: Mapping[str, LinkSettings]
    signals: tuple[tuple[float, BarrierControlSignalKind | InstantControlSignal, str], ...]
    parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<ControlScenario: {self.name}, {self.control.wiring}, {self.until_s:g} s: {self.title}>"

    def _repr_html_(self) -> str:
        its: dict[str, Any] = {"wiring": self.control.wiring, "until_s": self.until_s, "seed": self.seed}
        its |= {f"signal at {at_s:g} s": f"{signal} on {carrier}" for at_s, signal, carrier in self.signals[:10]}
        picture = self.wiring._repr_html_()
        return block(f"{self.name}: {self.title}", "", picture, facts(its | dict(self.settings)))

    @property
    def steps(self) -> float:
        """Return about how many steps a run has, an event at a processor being one; a terminal signal ends it."""
        end_s = min([self.until_s, *(at_s for at_s, signal, _ in self.signals if signal.is_terminal)])
        ends = map(self.wiring.ends, self.wiring.channels[DATA])
        graph = nx.DiGraph((sender, receiver) for sender, _, receiver, _ in ends)
        return sum(
            each.emitted_in(end_s) * (1 + len(nx.descendants(graph, name))) for name, each in self.sources.items()
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the settings that are given and change nothing, a line for each reason."""
        return lines_of(idle for name, source in self.sources.items() for idle in of_bursts(name, source))

    @property
    def topology(self) -> str:
        """The data graph, as written."""
        return self.wiring.text


class ControlBuilder(Builder):
    """Reads a scenario of control signals."""

    def build(self) -> ControlScenario:
        """The scenario, or `ScenarioError`.

        >>> from barrierlab.sim import load
        >>> load("graceful_shutdown").wiring.sinks
        ('collector',)
        """
        top = self.file.begin(OWN_TOP, OWN_TABLES)
        if "topology" not in top:
            self.fail("", "has no key 'topology'; give the graph, such as topology = \"a->join b->join\"")
        control = self.file.settings_of(ControlSettings, "control")
        try:
            wiring = ControlWiring(top["topology"], control.wiring)
        except TopologyError as error:
            self.fail("topology or [control] wiring:", str(error))
        until_s = top.get("until_s", 60.0)
        return ControlScenario(
            **self.common(top, until_s=until_s),
            wiring=wiring,
            control=control,
            sources=self._sources(wiring),
            operators=self._operators(wiring),
            links=self._links(wiring, control),
            signals=self._signals(until_s),
        )

    def _sources(self, wiring: ControlWiring) -> dict[str, SourceSettings]:
        tables = dict(self.file.tables("source"))
        self._check_names("source", tables, list(wiring.sources))
        return {
            name: SourceSettings(**self.file.section(f"source.{name}", tables.get(name, {}), OWN_SOURCE))
            for name in wiring.sources
        }

    def _operators(self, wiring: ControlWiring) -> dict[str, OperatorSettings]:
        tables = dict(self.file.tables("operator"))
        names = [name for name in wiring.processors if name not in wiring.sources]
        self._check_names("operator", tables, names)
        for name in names:
            if name not in tables:
                self.fail("", f"has no table [operator.{name}]; give its kind: {', '.join(KINDS)}")
        kinds = OWN_OPERATOR, PARAMETERS, PARAMETERS_OF
        return {name: OperatorSettings(**self.of_kind(f"operator.{name}", tables[name], *kinds)) for name in names}

    def _links(self, wiring: ControlWiring, control: ControlSettings) -> dict[str, LinkSettings]:
        tables, known = dict(self.file.tables("channel")), keys_of(LinkSettings)
        default = self.file.section("channel.default", tables.pop("default", {}), known)
        common = {DATA: default, CONTROL: {"capacity": control.capacity, "latency_s": control.latency_s}}
        self._check_names("channel", tables, [*wiring.channels[DATA], *wiring.channels[CONTROL]])
        return {
            name: LinkSettings(**common[carrier] | self.file.section(f'channel."{name}"', tables.get(name, {}), known))
            for carrier in (DATA, CONTROL)
            for name in wiring.channels[carrier]
        }

    def _check_names(self, kind: str, tables: Mapping[str, Any], names: list[str]) -> None:
        for name in tables:
            if name not in names:
                allowed = f"allowed: {', '.join(names) or 'none'}" + suggest(name, names)
                self.fail(f'[{kind}."{name}"]', f"is not in the topology; {allowed}; the head, {HEAD!r}, has no table")

    def _signals(
        self, until_s: float
    ) -> tuple[tuple[float, BarrierControlSignalKind | InstantControlSignal, str], ...]:
        """Return the signals of the head, by time; equal times in the order of the file."""
        found: list[tuple[float, BarrierControlSignalKind | InstantControlSignal, str]] = []
        for table in self.file.list_of_tables("signal"):
            for name in ("kind", "channel", "at_s"):
                if name not in table:
                    self.fail("[[signal]]", f"has no key {name!r}; it needs kind, channel and at_s")
            signal = self.file.settings_of(SignalSettings, "[signal]", table)
            if signal.at_s > until_s:
                self.fail("[[signal]] at_s", f"is {signal.at_s:g}; allowed: at most until_s, {until_s:g}")
            count = 1 if signal.every_s is None else int((until_s - signal.at_s) / signal.every_s + 1e-9) + 1
            if len(found) + count > MOST_SIGNALS:
                self.fail("[[signal]]", f"are more than {MOST_SIGNALS} signals; make every_s larger")
            step_s = signal.every_s or 0.0
            found += [(signal.at_s + n * step_s, SIGNALS[signal.kind], signal.channel) for n in range(count)]
        found.sort(key=lambda one: one[0])
        terminal = next((place for place, (_, kind, _) in enumerate(found) if kind.is_terminal), len(found))
        for at_s, kind, _ in found[terminal + 1 :]:
            self.fail(
                "[[signal]]", f"{kind} at {at_s:g} s comes after the end at {found[terminal][0]:g} s; take it out"
            )
        return tuple(found)
