"""A sweep file (TOML) becomes a list of runs: axes times seeds, the same list every time.

A sweep has parts; a part takes one scenario and varies its settings by any of four tables, each combination with
each seed:

    [[part]]
    name = "skewed join"
    scenario = "skewed_join"             # a shipped one, or a path beside the sweep file
    seeds = { first = 1, last = 6 }      # or a list
    set = { "until_s" = 30.0 }           # the same for all runs
    grid = { load = [0.5, 0.9], skew = [1, 8] }                       # every combination
    list = [{ buffers = 16, mode = "aligned" }, { buffers = 64, mode = "aligned" }]   # these combinations
    [part.latin_hypercube]               # or [part.random]: drawn with the sweep's own seed
    samples = 20
    axes."source.a.rate_per_s" = { low = 10.0, high = 1000.0, scale = "log" }
    axes.skew = { choices = [1, 2, 4, 8] }

Bounds that are whole numbers give whole numbers. No setting is drawn twice: `random` draws another in its place.

`measured = true` in place of `scenario` plans the jobs that were measured on a real Flink cluster
(`sim.sweep.measured`); `modes = ["unaligned"]` takes those of some ways to align.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from barrierlab.sim.core.files import read_text
from barrierlab.sim.scenario.readers import suggest
from barrierlab.sim.sweep.errors import SweepError

Scalar = str | int | float | bool
RunSettings = dict[str, Scalar]

SHIPPED = files("barrierlab.sim") / "scenarios" / "sweeps"
MOST_RUNS = 1_000_000
MOST_LOADED = 2000
"""Of a part with more settings than this not all are tried before anything runs."""
MOST_DRAWS = 100
"""For each sample that is wanted: of few settings, or unlikely ones, the last is drawn late."""


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run of a sweep. `source` is what `sim.load` takes; `scenario` is its name."""

    run_id: str
    part: str
    scenario: str
    source: str
    parameters: RunSettings
    seed: int
    is_join: bool = False


@dataclass(frozen=True)
class Axis:
    """A parameter of a part: `values` in the order of the file, or None where they are drawn from a range."""

    name: str
    kind: str
    values: tuple[Scalar, ...] | None


@dataclass(frozen=True)
class SweepPart:
    """The runs of one scenario, and the axes they span."""

    name: str
    measured: bool
    axes: tuple[Axis, ...]
    runs: tuple[SweepRun, ...]


@dataclass(frozen=True)
class SweepPlan:
    """A whole sweep. `digest` tells two sweeps apart: it covers the file and the scenarios it names."""

    name: str
    title: str
    question: str
    text: str
    parts: tuple[SweepPart, ...]

    @property
    def runs(self) -> list[SweepRun]:
        """Return all runs, in the order of the file."""
        return [run for part in self.parts for run in part.runs]

    @property
    def scenario_files(self) -> list[Path]:
        """The files of the scenarios that do not come with the package."""
        sources = dict.fromkeys(part.runs[0].source for part in self.parts if not part.measured)
        return [Path(source) for source in sources if source.endswith(".toml")]

    @property
    def is_of_joins(self) -> bool:
        """Return whether these are runs of joins; a plan has such runs or runs of jobs, never both."""
        return self.parts[0].runs[0].is_join

    @property
    def digest(self) -> str:
        """The same for two plans exactly when they plan the same runs in the same words."""
        return short_hash([self.text, [run.run_id for run in self.runs]])


def shipped_sweeps() -> list[str]:
    """Names of the sweeps that come with the package."""
    return sorted(f.name.removesuffix(".toml") for f in SHIPPED.iterdir() if f.name.endswith(".toml"))


def short_hash(value: object) -> str:
    """Sixteen hexadecimal digits that stand for a value of plain types, on any machine."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def parameters_text(parameters: Mapping[str, Scalar]) -> str:
    """Parameters as the canonical JSON that the tables hold."""
    return json.dumps(parameters, sort_keys=True, ensure_ascii=False)


def toml_text(value: Any) -> str:
    """A value of plain types as TOML, in one line.

    >>> toml_text({"dist": "gamma", "cv": 0.5, "all": [True, 1]})
    '{ "dist" = "gamma", "cv" = 0.5, "all" = [true, 1] }'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(name)} = {toml_text(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def set_options(settings: Mapping[str, Any]) -> list[str]:
    """The options of `barrierlab run` that give these settings; a text has no quotes there.

    >>> set_options({"level": "sat_4ms", "flag": True})
    ['--set', 'level=sat_4ms', '--set', 'flag=true']
    """
    pairs = (f"{key}={each if isinstance(each, str) else toml_text(each)}" for key, each in settings.items())
    return [part for pair in pairs for part in ("--set", pair)]


def run_id_of(loaded: Any, settings: Mapping[str, Any], seed: int) -> str:
    """The id of a run: a digest of its scenario's name and text, of what is set in it, and of the seed."""
    return next(_ids(loaded.name, _text_digest(loaded), settings, [seed]))


def _text_digest(loaded: Any) -> str:
    return hashlib.blake2b(loaded.text.encode(), digest_size=16).hexdigest()


def _ids(name: str, text: str, settings: Mapping[str, Any], seeds: Iterable[int]) -> Iterator[str]:
    """The ids of the runs with these settings: `short_hash` of [name, text, settings, seed]."""
    begin = json.dumps([name, text, dict(settings)], sort_keys=True, separators=(",", ":"), ensure_ascii=False)[:-1]
    for seed in seeds:
        yield hashlib.blake2b(f"{begin},{seed}]".encode(), digest_size=8).hexdigest()


def load_plan(sweep: str | Path) -> SweepPlan:
    """The plan of a shipped sweep or of a file; SweepError in one line if it is not a good one.

    Every combination of settings is loaded once, so that a bad one is found before anything runs. Of a part with more
    than `MOST_LOADED` of them every value that an axis lists is, and so many combinations spread over all: what is bad
    in another one is reported as the error of its run.
    """
    path = Path(sweep)
    if path.suffix != ".toml" and not path.is_file():
        if str(sweep) not in shipped_sweeps():
            raise SweepError(
                f"there is no sweep {str(sweep)!r}: give the path of a .toml file, or one of "
                f"{', '.join(shipped_sweeps())}{suggest(str(sweep), shipped_sweeps())}"
            )
        path = Path(str(SHIPPED / f"{sweep}.toml"))
    text = read_text(path, SweepError, f"give a TOML file or one of {', '.join(shipped_sweeps())}")
    return plan_of(text, path.stem, path)


def plan_of(text: str, name: str, path: Path) -> SweepPlan:
    """Return the plan that a sweep file's text describes. `path` is named in errors; scenarios are sought beside it."""
    try:
        return _plan(text, name, path)
    except tomllib.TOMLDecodeError as error:
        raise SweepError(f"{path.name}: not TOML: {error}") from None
    except _Wrong as error:
        raise SweepError(f"{path.name}: {error}") from None


class _Wrong(Exception):
    """An error in the file, without its name."""


def _plan(text: str, name: str, path: Path) -> SweepPlan:
    data = tomllib.loads(text)
    _keys("", data, {"title", "question", "seed", "part"}, {"part"})
    seed = _whole("seed", data.get("seed", 0), 0)
    tables = data["part"]
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables) or not tables:
        raise _Wrong("part: at least one table is needed, written [[part]]")
    parts = tuple(_part(table, number, seed, path) for number, table in enumerate(tables, 1))
    _no_twins([p.name for p in parts], "two parts are called {!r}: give each a name of its own")
    seen: set[str] = set()
    for run in (run for p in parts for run in p.runs):
        if run.run_id in seen:
            words = f"{run.scenario} {parameters_text(run.parameters)} seed {run.seed}"
            raise _Wrong(f"this run is planned twice: {words}")
        seen.add(run.run_id)
    if len({run.is_join for p in parts for run in p.runs}) > 1:
        raise _Wrong("joins and jobs are in one sweep, and no answer is about both: give each a file of its own")
    title, question = (_text(key, data.get(key, "")) for key in ("title", "question"))
    return SweepPlan(name, title or name, question, text, parts)


def _part(table: dict[str, Any], number: int, sweep_seed: int, path: Path) -> SweepPart:
    at = f"part {number}: "
    _keys(
        at,
        table,
        {"name", "scenario", "measured", "modes", "seeds", "set", "grid", "list", "random", "latin_hypercube"},
        {"seeds"},
    )
    measured = table.get("measured", False)
    if not isinstance(measured, bool):
        raise _Wrong(f"{at}measured: {measured!r} is given; true or false is allowed")
    if measured == ("scenario" in table):
        raise _Wrong(f"{at}exactly one of scenario = NAME and measured = true is needed")
    seeds = _seeds(at, table["seeds"])
    if measured:
        from barrierlab.sim.sweep.measured import MODES, load_measured

        _keys(at, table, {"name", "measured", "modes", "seeds", "set"}, set())
        modes = _some_of(f"{at}modes", table.get("modes", list(MODES)), MODES)
        found = [(job.scenario, job.settings) for job in load_measured() if job.mode in modes]
        jobs, settings_count = iter(found), len(found)
        axes: tuple[Axis, ...] = ()
        name = _text(f"{at}name", table.get("name", "measured jobs"))
    elif "modes" in table:
        raise _Wrong(f"{at}modes goes with measured = true only")
    else:
        scenario = _text(f"{at}scenario", table["scenario"])
        name = _text(f"{at}name", table.get("name", scenario))
        stream = [sweep_seed, zlib.crc32(name.encode())]
        choices = [
            _grid(f"{at}grid", table.get("grid", {})),
            _listed(f"{at}list", table.get("list", [{}])),
            _drawn(f"{at}random", table.get("random"), stream, latin=False),
            _drawn(f"{at}latin_hypercube", table.get("latin_hypercube"), stream, latin=True),
        ]
        axes = tuple(axis for found, _ in choices for axis in found)
        _no_twins([axis.name for axis in axes], f"{at}{{!r}} is varied twice")
        settings_count = math.prod(len(rows) for _, rows in choices)
        count = settings_count * len(seeds)
        if count > MOST_RUNS:
            raise _Wrong(f"{at}{count} runs are planned; at most {MOST_RUNS} are allowed: take fewer values or seeds")
        jobs = ((scenario, _merged(rows)) for rows in itertools.product(*(rows for _, rows in choices)))
    if not name:
        raise _Wrong(f"{at}name: an empty text is given; a part is called something, as its folder is")
    fixed = _settings(f"{at}set", table.get("set", {}))
    if both := fixed.keys() & {axis.name for axis in axes}:
        raise _Wrong(f"{at}set: {min(both)!r} is an axis as well: take it out of one of them")
    tried = _Tried(settings_count, [axis.name for axis in axes if axis.values is not None])
    runs = tuple(_runs(at, name, ((scenario, fixed | row) for scenario, row in jobs), seeds, path, tried))
    return SweepPart(name, measured, axes, runs)


class _Tried:
    """The settings of a part that are loaded before anything runs: all, or each listed value and some of all."""

    def __init__(self, count: int, axes: Sequence[str]) -> None:
        self._every, self._axes = max(1, count // MOST_LOADED), axes
        self._number, self._seen = 0, set[tuple[str, Scalar]]()

    def __call__(self, settings: RunSettings) -> bool:
        """Return whether to try these, which are the next."""
        self._number += 1
        values = {(name, settings[name]) for name in self._axes}
        is_new = not values <= self._seen
        self._seen |= values
        return is_new or (self._number - 1) % self._every == 0


def _runs(
    at: str,
    part: str,
    jobs: Iterable[tuple[str, RunSettings]],
    seeds: Sequence[int],
    path: Path,
    tried: Callable[[RunSettings], bool],
) -> Iterator[SweepRun]:
    from barrierlab.sim.control.scenario import ControlScenario
    from barrierlab.sim.join.scenario import JoinScenario
    from barrierlab.sim.scenario.file import ScenarioError
    from barrierlab.sim.scenario.load import load

    known: dict[str, tuple[str, str, str, bool]] = {}
    for scenario, settings in jobs:
        if tried(settings) or scenario not in known:
            source = str((path.parent / scenario).resolve()) if scenario.endswith(".toml") else scenario
            try:
                loaded = load(source, settings=settings)
            except ScenarioError as error:
                raise _Wrong(f"{at}{error}") from None
            if isinstance(loaded, ControlScenario):
                raise _Wrong(f"{at}scenario: {scenario!r} is of control signals; allowed: one of a job or of a join")
            known[scenario] = source, loaded.name, _text_digest(loaded), isinstance(loaded, JoinScenario)
        source, name, text, is_join = known[scenario]
        for seed, run_id in zip(seeds, _ids(name, text, settings, seeds), strict=True):
            yield SweepRun(run_id, part, name, source, settings, seed, is_join)


# The four ways to vary settings: each gives its axes and its rows.


def _grid(at: str, table: object) -> tuple[list[Axis], list[RunSettings]]:
    axes = {name: _values(f"{at}.{name}", values) for name, values in _table(at, table).items()}
    rows = [dict(zip(axes, row, strict=True)) for row in itertools.product(*axes.values())]
    return [Axis(name, "grid", tuple(values)) for name, values in axes.items()], rows


def _listed(at: str, rows: object) -> tuple[list[Axis], list[RunSettings]]:
    if not isinstance(rows, list) or not rows:
        raise _Wrong(f"{at}: {rows!r} is given; a list of tables is allowed, such as [{{ load = 0.5, skew = 2 }}]")
    read = [_settings(at, row) for row in rows]
    if any(row.keys() != read[0].keys() for row in read):
        raise _Wrong(f"{at}: all tables must have the same keys ({', '.join(read[0])})")
    return [Axis(name, "list", tuple(dict.fromkeys(row[name] for row in read))) for name in read[0]], read


def _drawn(at: str, table: object, stream: list[int], *, latin: bool) -> tuple[list[Axis], list[RunSettings]]:
    if table is None:
        return [], [{}]
    import numpy as np

    table = _table(at, table)
    _keys(f"{at}: ", table, {"samples", "axes"}, {"samples", "axes"})
    samples = _whole(f"{at}.samples", table["samples"], 1)
    ranges = {
        name: _Range.read(f"{at}.axes.{name}", value) for name, value in _table(f"{at}.axes", table["axes"]).items()
    }
    if not ranges:
        raise _Wrong(f"{at}.axes: at least one axis is needed")
    count = math.prod(each.count for each in ranges.values())
    if samples > min(count, MOST_RUNS):
        why = f"{count}: the axes have no more settings" if count < MOST_RUNS else f"{MOST_RUNS} runs"
        raise _Wrong(f"{at}.samples: {samples} is given; allowed: at most {why}")
    numbers = np.random.default_rng([*stream, latin])
    if latin:
        from scipy.stats import qmc

        units = iter(qmc.LatinHypercube(len(ranges), rng=numbers).random(samples))
    else:
        units = (numbers.random(len(ranges)) for _ in range(MOST_DRAWS * samples))
    rows: dict[str, RunSettings] = {}
    for unit in units:
        row = {name: ranges[name].at(float(u)) for name, u in zip(ranges, unit, strict=True)}
        rows.setdefault(parameters_text(row), row)
        if len(rows) == samples:
            break
    else:
        raise _Wrong(
            f"{at}.samples: {samples} is given, and only {len(rows)} different settings came: take fewer samples"
        )
    kind = "latin_hypercube" if latin else "random"
    return [Axis(name, kind, r.choices) for name, r in ranges.items()], list(rows.values())


@dataclass(frozen=True)
class _Range:
    """The range of an axis: [low, high], evenly or evenly in the logarithm, or one of some choices."""

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    whole: bool = False
    choices: tuple[Scalar, ...] | None = None

    @staticmethod
    def read(at: str, table: object) -> _Range:
        table = _table(at, table)
        _keys(f"{at}: ", table, {"low", "high", "scale", "choices"}, set())
        if "choices" in table:
            if len(table) > 1:
                raise _Wrong(f"{at}: choices stand alone, without low, high and scale")
            return _Range(choices=tuple(_values(f"{at}.choices", table["choices"])))
        low, high, scale = table.get("low"), table.get("high"), table.get("scale", "linear")
        if scale not in ("linear", "log"):
            raise _Wrong(f"{at}.scale: {scale!r} is given; linear or log is allowed{suggest(scale, ['linear', 'log'])}")
        numbers = [isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in (low, high)]
        if low is None or high is None or not all(numbers) or not low < high or (scale == "log" and low <= 0):
            raise _Wrong(
                f"{at}: low = {low!r}, high = {high!r} is given; two numbers, low < high, are needed (low > 0 for log)"
            )
        return _Range(low, high, scale == "log", type(low) is int and type(high) is int)

    @property
    def count(self) -> float:
        """Return how many values it has."""
        if self.choices is not None:
            return len(self.choices)
        return self.high - self.low + 1 if self.whole else math.inf

    def at(self, u: float) -> Scalar:
        """The value at `u` of [0, 1). Whole bounds give whole numbers, both bounds included."""
        if self.choices is not None:
            return self.choices[int(u * len(self.choices))]
        low, high = self.low, self.high + self.whole
        value = low * (high / low) ** u if self.log else low + u * (high - low)
        return min(int(value), int(self.high)) if self.whole else min(value, self.high)


# Reading values strictly.


def _keys(at: str, table: Mapping[str, Any], allowed: set[str], needed: set[str]) -> None:
    for key in table:
        if key not in allowed:
            raise _Wrong(f"{at}unknown key {key!r}; allowed: {', '.join(sorted(allowed))}{suggest(key, allowed)}")
    for key in sorted(needed - table.keys()):
        raise _Wrong(f"{at}key {key!r} is missing")


def _table(at: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"{at}: {value!r} is given; a table is needed")
    return value


def _settings(at: str, value: object) -> RunSettings:
    return {name: _scalar(f"{at}.{name}", v) for name, v in _table(at, value).items()}


def _scalar(at: str, value: object) -> Scalar:
    if not isinstance(value, str | int | float | bool):
        raise _Wrong(f"{at}: {value!r} is given; a text, number or truth value is allowed")
    return value


def _values(at: str, values: object) -> list[Scalar]:
    if not isinstance(values, list) or not values:
        raise _Wrong(f"{at}: {values!r} is given; a list of at least one value is allowed")
    read = [_scalar(at, value) for value in values]
    _no_twins([repr(v) for v in read], f"{at}: {{}} stands there twice")
    return read


def _some_of(at: str, values: object, known: Sequence[str]) -> list[Scalar]:
    for value in (read := _values(at, values)):
        if value not in known:
            raise _Wrong(f"{at}: {value!r} is given; allowed: {', '.join(known)}{suggest(str(value), known)}")
    return read


def _seeds(at: str, value: object) -> list[int]:
    if isinstance(value, dict):
        _keys(f"{at}seeds: ", value, {"first", "last"}, {"first", "last"})
        first, last = (_whole(f"{at}seeds.{key}", value[key], 0) for key in ("first", "last"))
        if last < first:
            raise _Wrong(f"{at}seeds: last = {last} is less than first = {first}")
        if last - first >= MOST_RUNS:
            raise _Wrong(f"{at}seeds: {last - first + 1} are given; at most {MOST_RUNS} runs are allowed")
        return list(range(first, last + 1))
    seeds = [_whole(f"{at}seeds", seed, 0) for seed in (value if isinstance(value, list) else [value])]
    if not isinstance(value, list) or not seeds:
        raise _Wrong(f"{at}seeds: {value!r} is given; a list, or {{ first = 1, last = 6 }}, is allowed")
    _no_twins([str(s) for s in seeds], f"{at}seeds: {{}} stands there twice")
    return seeds


def _whole(at: str, value: object, least: int) -> int:
    if type(value) is not int or value < least:
        raise _Wrong(f"{at}: {value!r} is given; a whole number of at least {least} is allowed")
    return value


def _text(at: str, value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"{at}: {value!r} is given; a text is allowed")
    return value


def _merged(rows: Sequence[RunSettings]) -> RunSettings:
    return {name: value for row in rows for name, value in row.items()}


def _no_twins(names: Sequence[str], message: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise _Wrong(message.format(name))
        seen.add(name)
