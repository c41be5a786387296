"""A cost profile: what a cluster itself costs, as few named distributions, apart from any job.

A profile is TOML. Each table [cost.NAME] has the key of a scenario that it sets, a distribution in seconds, its mean,
and an interval that holds the mean of a further run with 90 %; each [number.NAME] a number, such as a rate, with an
interval of 90 %. [calibrated] says on what it was fitted, [undetermined] what the data do not say, in words.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from barrierlab.sim.core.distributions import Distribution
from barrierlab.sim.core.files import read_text
from barrierlab.sim.scenario.settings import Scenario
from barrierlab.sim.twin.answers import TwinError

HINT = "give a cost profile, as barrierlab calibrate writes it"
SAME_WORK = 0.1
"""A job's own service may differ by this share from the one calibrated on, and still be that of the same work."""
Z_END = 1.6449  # standard deviations from the middle to either end of an interval of 90 %, of a normal distribution
BUFFERS = "channel.*.latency_s"  # of every channel on the network
LEAST_ALIKE = 3  # runs of a job's own kind: of fewer nobody knows how far apart they are
GOLDEN = (5**0.5 - 1) / 2
EVERY = "operator.*."  # of a key: that of every operator of the job
OF_LINKS = ("channel.default.barrier_latency_s", "channel.default.unaligned_barrier_latency_s")
AT_THE_TASK = {"checkpoint.begin_s": OF_LINKS, "checkpoint.unaligned_begin_s": OF_LINKS[1:]}
"""The way from task to task is spent once: by the task that begins its part, and then by no link."""


C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Cost:
    """One cost: `values_s` are quantiles of equal weight; the interval is of a further run's mean.

    `factors` are the effects of the runs that it was fitted on: by how much each was slower than the mean run.
    """

    sets: str
    values_s: tuple[float, ...]
    mean_s: float
    low_s: float
    high_s: float
    count: int
    factors: tuple[float, ...]

    def drawn(self, run: int, own: Distribution | None = None) -> dict[str, Any]:
        """Return the distribution, or a job's own, as a scenario has it, as slow as one of the runs was, in turn."""
        factor = self.factors[run % len(self.factors)]
        values = self.values_s if own is None else (own.mean,)
        return {"dist": "empirical", "values": [value * factor for value in values]}


@dataclass(frozen=True, slots=True)
class ScalarCost:
    """A cost that is one number: the key of a scenario that it sets, the value, and an interval of 90 %."""

    sets: str
    value: float
    low: float
    high: float
    count: int

    def drawn(self, random: Random) -> float:
        """Return a number as it may be: half of all are below the value, and a twentieth beyond either end.

        By factors, as a rate or a spread is known, however far apart the ends are.
        """
        z = random.gauss(0.0, 1.0) / Z_END
        end = self.high if z > 0 else self.low
        found = self.value * (end / self.value) ** abs(z) if self.low else self.value + abs(z) * (end - self.value)
        return float(f"{max(0.0, found):.4g}")


@dataclass(frozen=True, slots=True)
class Profile:
    """The costs by name; the modes, parallelisms and places calibrated on; and what is undetermined.

    `saturated` says of each run, in the order of the effects, whether an operator of it was at work all along;
    `configurations` are the jobs, with their rates, sizes and place, whatever their mode.
    """

    costs: Mapping[str, Cost]
    numbers: Mapping[str, ScalarCost]
    modes: tuple[str, ...]
    parallelism: tuple[int, ...]
    local: tuple[bool, ...]
    checkpoints: int
    undetermined: Mapping[str, str]
    saturated: tuple[bool, ...] = ()
    configurations: int = 1

    def alike(self, is_saturated: bool) -> Profile:
        """Return the profile with the effects of those runs alone that were saturated, or were not, if there are some.

        Where all threads sleep between records they are woken later: below saturation costs are longer.
        """
        places = [place for place, each in enumerate(self.saturated) if each is is_saturated]
        if len(places) < LEAST_ALIKE or len(places) == len(self.saturated):
            return self
        costs = {
            name: replace(cost, factors=tuple(cost.factors[place] for place in places))
            if len(cost.factors) == len(self.saturated)
            else cost
            for name, cost in self.costs.items()
        }
        return replace(self, costs=costs, saturated=(is_saturated,) * len(places))

    def settings(self, scenario: Scenario, seed: int) -> dict[str, Any]:
        """Return the settings of one run: each cost that the job has a place for, all as in one measured run.

        An operator that works longer or shorter for a record than the one calibrated on keeps its own work, as slow as
        that run was.
        """
        run = self._run(seed)
        links = {link for cost in self.costs.values() for link in AT_THE_TASK.get(cost.sets, ())}
        found: dict[str, Any] = dict.fromkeys(sorted(links), 0.0)
        for name, number in self.numbers.items():
            value = number.drawn(Random(f"{name} {seed}"))
            found |= dict.fromkeys(_keys(number.sets, scenario), value)
        other = {cost.sets: own for cost, own in self._other_work(scenario)}
        costs = [cost for cost in self.costs.values() if _keys(cost.sets, scenario)]
        return found | {cost.sets: cost.drawn(run, other.get(cost.sets)) for cost in costs}

    def _run(self, seed: int) -> int:
        """Return the measured run that a seed stands for.

        The runs are in the order of their slowness, and the golden ratio leads through them: of however many seeds, as
        many are slow as runs were.
        """
        count = max((len(cost.factors) for cost in self.costs.values()), default=1)
        slowness = [sum(cost.factors[run % len(cost.factors)] for cost in self.costs.values()) for run in range(count)]
        place = (0.5 + (seed - 1) * GOLDEN) % 1.0
        return sorted(range(count), key=slowness.__getitem__)[int(place * count)]

    def _other_work(self, scenario: Scenario) -> Iterator[tuple[Cost, Distribution]]:
        """Yield the services of which the job's own is more than `SAME_WORK` from the one calibrated on.

        Where that is less than as much of the job's longest service, nothing waits for the difference.
        """
        longest_s = max((each.service_s.mean for each in scenario.operators.values()), default=0.0)
        for cost in self.costs.values():
            kind, _, rest = cost.sets.partition(".")
            name, _, key = rest.partition(".")
            if kind == "operator" and key == "service_s" and name in scenario.operators:
                own = scenario.operators[name].service_s
                if abs(own.mean - cost.mean_s) > SAME_WORK * max(cost.mean_s, longest_s):
                    yield cost, own

    def outside(self, scenario: Scenario) -> Iterator[str]:
        """Yield a line for each way in which a job is not what was calibrated on."""
        mode = scenario.mode.name
        if mode not in self.modes:
            yield f"mode {mode}: calibrated on {', '.join(self.modes)} alone"
        for cost, own in self._other_work(scenario):
            name = cost.sets.split(".")[1]
            yield f"{name} works {own.mean * 1e3:.3g} ms for a record: calibrated on {cost.mean_s * 1e3:.3g} ms"
        counts = {scenario.topology.parallelism(name) for name in scenario.topology.operators}
        if extra := sorted(counts - set(self.parallelism)):
            yield f"parallelism {', '.join(map(str, extra))}: calibrated on {', '.join(map(str, self.parallelism))}"
        places = {channel.local for channel in scenario.channels.values()}
        for place in sorted(places - set(self.local)):
            here, there = ("local", "remote") if place else ("remote", "local")
            yield f"{here} channels: calibrated on {there} ones alone"

    def text(self) -> str:
        """Return the profile as TOML."""
        lines = [
            "# A cost profile: what a cluster itself costs, in seconds (barrierlab calibrate).",
            "# From low_s to high_s is the mean of a further run, with 90 %; from low to high a number.",
            "",
        ]
        names = ["modes", "parallelism", "local", "checkpoints", "configurations"] + ["saturated"] * bool(
            self.saturated
        )
        tables = {"calibrated": {name: getattr(self, name) for name in names}}
        tables |= {f"cost.{name}": asdict(cost) for name, cost in self.costs.items()}
        tables |= {f"number.{name}": asdict(number) for name, number in self.numbers.items()}
        for name, table in (tables | {"undetermined": self.undetermined}).items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()), ""]
        return "\n".join(lines)


def read_profile(path: Path) -> Profile:
    """Return the profile in a file.

    Raises
    ------
    TwinError
        If it is none; one line.
    """
    try:
        data = tomllib.loads(read_text(path, TwinError, HINT))
    except ValueError as error:
        if isinstance(error, TwinError):
            raise
        raise TwinError(f"{path}: not TOML: {error}; {HINT}") from error
    try:
        about = data["calibrated"]
        if extra := sorted(set(data) - {"calibrated", "cost", "number", "undetermined"}):
            raise ValueError(f"with the key {extra[0]}")
        return Profile(
            {str(name): _cost(table) for name, table in data["cost"].items()},
            {str(name): _number(table) for name, table in data.get("number", {}).items()},
            tuple(map(str, about["modes"])),
            tuple(map(int, about["parallelism"])),
            tuple(map(bool, about["local"])),
            int(about["checkpoints"]),
            {str(name): str(why) for name, why in data["undetermined"].items()},
            tuple(map(bool, about.get("saturated", ()))),
            int(about.get("configurations", 1)),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as wrong:
        what = f"the key {wrong} is missing" if isinstance(wrong, KeyError) else f"{type(wrong).__name__} {wrong}"
        raise TwinError(f"{path}: no cost profile: {what}; {HINT}") from wrong


@cache
def shipped_profile(is_local: bool) -> Profile:
    """Return the profile of the measured cluster, within a process or between processes."""
    place = "local" if is_local else "remote"
    return read_profile(Path(str(files("barrierlab.sim") / "data" / "flink" / f"costs_{place}.toml")))


def _keys(sets: str, scenario: Scenario) -> list[str]:
    """Return the keys of a job that a cost sets: of an operator that it has, and that has no value of its own."""
    if sets == BUFFERS:
        edges = scenario.channels.items()
        return [f"channel.{edge}.latency_s" for edge, each in edges if not each.local and not each.latency_s.mean]
    if sets.startswith(EVERY):
        field = sets.removeprefix(EVERY)
        own = {name: getattr(settings, field) for name, settings in scenario.operators.items()}
        return [f"operator.{name}.{field}" for name, value in own.items() if not value]
    return [sets] if not sets.startswith("operator.") or sets.split(".")[1] in scenario.operators else []


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "tuple[float, ...]": lambda values: tuple(map(float, values)),
}
"""By the type of a field: how it is read."""


def _read(kind: Callable[..., C], table: Mapping[str, Any], of: str) -> C:
    """Return the cost of a kind that a table has, a key for each of its fields."""
    readers = {field.name: _READERS[str(field.type)] for field in fields(kind)}  # type: ignore[arg-type]
    if extra := sorted(set(table) - set(readers)):
        raise ValueError(f"with the key {extra[0]} of {of}")
    return kind(**{name: read(table[name]) for name, read in readers.items()})


def _number(table: Mapping[str, Any]) -> ScalarCost:
    found = _read(ScalarCost, table, "a number")
    sets = found.sets
    if "*" in sets and sets != BUFFERS and sets.removeprefix(EVERY) not in ("subtask_spread", "service_noise"):
        raise ValueError(f"with the key {sets}")
    if not 0 <= found.low <= found.value <= found.high < 1e15:
        raise ValueError(f"{sets} is not within its interval")
    return found


def _cost(table: Mapping[str, Any]) -> Cost:
    found = _read(Cost, table, "a cost")
    numbers = (*found.values_s, *found.factors, found.mean_s, found.low_s, found.high_s)
    if not found.values_s or not found.factors or not all(0 <= each < 1e9 for each in numbers):
        raise ValueError(f"{found.sets} has no values, or one below 0")
    return found
