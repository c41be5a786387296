"""Runs for a question: under common random numbers, on processes of this machine, until a number is precise enough."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ALL_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from math import inf
from statistics import fmean, stdev
from typing import Any, TypeVar, cast

from barrierlab.model.errors import InputError
from barrierlab.sim.ask.facts import Facts, facts_of
from barrierlab.sim.ask.levers import Changes, settings_of
from barrierlab.sim.checkpoint.estimate import steps
from barrierlab.sim.join.scenario import JoinScenario
from barrierlab.sim.scenario.file import ScenarioError
from barrierlab.sim.scenario.load import load
from barrierlab.sim.scenario.settings import Scenario

CONFIDENCE = 0.95
BATCH = 5  # runs before there is an interval, as in sweeps, and that many more while it is too wide
MOST = 40  # runs of one setting: an interval that is too wide then is given as it is
MOST_STEPS = 2_000_000  # of one run: some twenty seconds
T = TypeVar("T")
Call = tuple[str, Mapping[str, Any], int, bool]
"""A run: what `load` takes, settings, seed, and whether the digest of its journal is wanted."""


class OutOfTimeError(Exception):
    """The budget is used up."""


class NothingToSayError(Exception):
    """No run gives the number: a line that says why."""


class BrokenRunError(Exception):
    """A run broke an invariant: a line that says which."""


@dataclass(frozen=True, slots=True)
class Number:
    """A mean over runs with its 95 % interval; no bounds from fewer than `BATCH` runs, or where there is no chance."""

    at: float
    low: float | None
    high: float | None
    unit: str
    n: int


def mean_of(values: Sequence[float], unit: str, confidence: float = CONFIDENCE, least: float = -inf) -> Number:
    """Return the mean of independent values with Student's interval, which is not below `least`."""
    from scipy.stats import t

    n, mean = len(values), fmean(values)
    if n < BATCH:
        return Number(mean, None, None, unit, n)
    half = float(t.ppf(0.5 + confidence / 2, n - 1)) * stdev(values) / n**0.5
    return Number(mean, max(mean - half, least), mean + half, unit, n)


class Serial:
    """Runs one after another, in this process."""

    def __call__(self, calls: Sequence[Call], until: float) -> Iterable[Facts]:
        """Return the facts of each run, in order; OutOfTimeError once the clock is past `until`."""
        for call in calls:
            if time.monotonic() > until:
                raise OutOfTimeError
            yield facts_of(*call)

    def close(self) -> None:
        """Do nothing: nothing is held."""


class Processes:
    """Runs on processes, which end at once when they are not wanted any more."""

    def __init__(self, count: int) -> None:
        from barrierlab.sim.sweep.execute import in_worker

        self._pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=in_worker)

    def __call__(self, calls: Sequence[Call], until: float) -> Iterable[Facts]:
        """Return the facts of each run, in order; OutOfTimeError once the clock is past `until`."""
        waiting = [self._pool.submit(facts_of, *call) for call in calls]
        left = None if until == inf else max(0.0, until - time.monotonic())
        if wait(waiting, left, ALL_COMPLETED).not_done:
            raise OutOfTimeError
        return [each.result() for each in waiting]

    def close(self) -> None:
        """End the processes, whatever they do."""
        children = list(getattr(self._pool, "_processes", {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for child in children:
            child.terminate()
        for child in children:
            child.join()


class Bench:
    """One scenario, and runs of it with changes.

    Parameters
    ----------
    source : str
        What `load` takes.
    settings : mapping
        Of the scenario, for all runs.
    always : mapping
        Changes for all runs (`sim.ask.levers`).
    checkpoints : int
        So many intervals does a run last after its warm-up, if it has an interval and is given no other end.
    precision : float
        Half the interval of a number, at most, as a share of it.
    keeps : bool
        Whether the runs are kept, to be repeated: with the digests of their journals.
    of_joins : bool
        Whether the scenario is a join.

    Attributes
    ----------
    source : str
    scenario : Scenario or JoinScenario
        With what is the same in all runs.
    """

    def __init__(
        self,
        source: str,
        settings: Mapping[str, Any],
        always: Changes,
        checkpoints: int,
        precision: float,
        runner: Serial | Processes,
        until: float = inf,
        keeps: bool = False,
        of_joins: bool = False,
    ) -> None:
        self.source, self._settings, self._checkpoints = source, dict(settings), checkpoints
        self._keeps = keeps
        self.precision, self._runner, self._until = precision, runner, until
        self._kept: dict[tuple[str, int], Facts] = {}
        self.on_runs: Callable[[int], object] = int
        self.cut_short = False
        self.shortened = False
        loaded = load(source, self._settings)
        if not isinstance(loaded, JoinScenario if of_joins else Scenario):
            wrong = (
                ("is no join", "[join] and inputs") if of_joins else ("takes no checkpoints", "sources and operators")
            )
            raise ScenarioError(f"{loaded.name}: {wrong[0]}; allowed: a scenario with {wrong[1]}")
        self._of_joins = of_joins
        self._always = {**settings_of(loaded, always)}
        self.scenario: Any = load(source, self._settings | self._always)

    @property
    def runs(self) -> int:
        """Return how many runs there were."""
        return len(self._kept)

    def run_id(self, changes: Changes, seed: int) -> str:
        """Return the id of a run with changes: that of the same run in a sweep."""
        from barrierlab.sim.sweep.plan import run_id_of

        return run_id_of(self.scenario, self.settings(changes), seed)

    def kept(self) -> list[tuple[str, dict[str, Any], Facts]]:
        """Return the id, the settings and the facts of every run that there was."""
        from barrierlab.sim.sweep.plan import run_id_of

        found = [(json.loads(name), facts) for (name, _), facts in self._kept.items()]
        return [(run_id_of(self.scenario, settings, facts.seed), settings, facts) for settings, facts in found]

    def shortest_window_s(self) -> float:
        """Return the shortest window of a join's rules: where there is one, no lateness may be larger."""
        windows = [each.window_s for each in self.scenario.inputs.values() if each.window_s is not None]
        if not windows:
            raise NothingToSayError(
                f"{self.scenario.name} has no window_s, up to which a budget is looked for: give one"
            )
        return float(min(windows))

    def loaded(self, changes: Changes) -> Scenario:
        """Return the scenario with changes, as long as a run of it is."""
        return cast("Scenario", load(self.source, self.settings(changes)))

    def settings(self, changes: Changes) -> dict[str, Any]:
        """Return all settings of a run with changes, its length among them."""
        found = self._settings | self._always | settings_of(self.scenario, changes)
        if not self._of_joins and "until_s" not in changes and "until_s" not in self._always:
            try:
                scenario = load(self.source, found, kind=Scenario)
            except ScenarioError as refused:
                raise ScenarioError(f"{refused} (the question sets {', '.join(changes or self._always)})") from refused
            interval_s = scenario.checkpoint.interval_s
            if interval_s is not None:
                until_s = max(scenario.warmup_s + self._checkpoints * interval_s, interval_s)
                per_s = steps(scenario) / scenario.until_s
                longest_s = MOST_STEPS / per_s if per_s else inf
                self.shortened |= longest_s < until_s
                found["until_s"] = min(until_s, max(longest_s, scenario.warmup_s + interval_s))
        return found

    def facts(self, changes: Changes, seeds: Iterable[int]) -> list[Facts]:
        """Return the facts of the runs of these seeds, each run once.

        Raises
        ------
        OutOfTimeError
            If the budget is used up first.
        BrokenRunError
            If a run breaks an invariant.
        """
        settings = self.settings(changes)
        name = json.dumps(settings, sort_keys=True)
        seeds = list(seeds)
        missing = [seed for seed in seeds if (name, seed) not in self._kept]
        for found in self._runner([(self.source, settings, seed, self._keeps) for seed in missing], self._until):
            if found.verdict == "broken":
                raise BrokenRunError(f"seed {found.seed}: {found.broken}")
            self._kept[name, found.seed] = found
            self.on_runs(len(self._kept))
        return [self._kept[name, seed] for seed in seeds]

    def check_time(self) -> None:
        """Raise OutOfTimeError if the budget is used up: for what is computed beside `facts`."""
        if time.monotonic() > self._until:
            raise OutOfTimeError

    def known(self, changes: Changes) -> list[Facts]:
        """Return the facts of the runs with changes that there were."""
        name = json.dumps(self.settings(changes), sort_keys=True)
        return [facts for (settings, _), facts in self._kept.items() if settings == name]

    def values(
        self, variants: Sequence[Changes], value: Callable[..., float | None], seeds: Iterable[int]
    ) -> list[float]:
        """Return a value for each seed, from the facts of each variant under that seed; seeds without one are out."""
        seeds = list(seeds)
        by_variant = [self.facts(changes, seeds) for changes in variants]
        found = (value(*facts) for facts in zip(*by_variant, strict=True))
        return [each for each in found if each is not None]

    def until_precise(
        self, more: Callable[[range], Sequence[T]], number: Callable[[list[T]], Number], most: int = MOST
    ) -> list[T]:
        """Return what `more` gives of batches of seeds, until their number is precise, or `most` seeds are used.

        Where the budget ends that, it is what there is by then.
        """
        found: list[T] = []
        for first in range(1, most + 1, BATCH):
            try:
                found += more(range(first, first + BATCH))
            except OutOfTimeError:
                if not found:
                    raise
                self.cut_short = True
                break
            if not found:
                break
            so_far = number(found)
            if so_far.high is not None and so_far.high - so_far.at <= self.precision * abs(so_far.at):
                break
        return found

    def replicate(
        self,
        variants: Sequence[Changes],
        value: Callable[..., float | None],
        unit: str,
        least: float = -inf,
        most: int = MOST,
    ) -> Number:
        """Return the mean of a value over seeds, of as many as make it precise, or of `most`.

        Raises
        ------
        NothingToSayError
            If no run has one.
        """
        mean = partial(mean_of, unit=unit, least=least)
        values = self.until_precise(partial(self.values, variants, value), mean, most)
        if not values:
            raise NothingToSayError("no run gives a number: no checkpoint completed, or what it is compared with is 0")
        return mean(values)


class QuestionError(InputError):
    """A question that cannot be asked: one line."""
