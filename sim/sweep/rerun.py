"""A run of a sweep, or of an answer, repeated from its id, and held against what is stored of it."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, NamedTuple

from barrierlab.sim.core.files import read_text
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.execute import rows_of
from barrierlab.sim.sweep.outcome import ResultRow
from barrierlab.sim.sweep.plan import SweepRun, run_id_of
from barrierlab.sim.sweep.store import SCENARIOS
from barrierlab.sim.sweep.tables import RUNS

if TYPE_CHECKING:
    from barrierlab.sim.sweep.store import Store

ANSWER = "answer.json"
"""In a directory of `barrierlab ask --out`: the answer, with its runs."""
LEAST_OF_ID = 4  # so many characters of an id stand for it, if it is the only one that begins so


@dataclass(frozen=True, slots=True)
class Rerun:
    """A run repeated.

    Attributes
    ----------
    row : mapping
        Of the table `runs`, as it came out now.
    differs : mapping
        By column: what is stored, and what came out now; empty if all is the same.
    result : object or None
        Its journal and verdict; None if it did not come to its end.
    """

    run: SweepRun
    row: ResultRow
    differs: Mapping[str, tuple[Any, Any]]
    result: Any


def find_id(run_id: str, known: list[str]) -> str:
    """Return the one of the known ids that is meant: itself, or the only one that begins so.

    >>> find_id("beef", ["beef01", "cafe02"])
    'beef01'

    Raises
    ------
    SweepError
        If there is none, or more than one.
    """
    if run_id in known:
        return run_id
    begins = [each for each in known if each.startswith(run_id)] if len(run_id) >= LEAST_OF_ID else []
    if len(begins) == 1:
        return begins[0]
    if begins:
        raise SweepError(f"{run_id}: {len(begins)} runs begin so ({', '.join(begins[:3])}, ...): give more of the id")
    near = difflib.get_close_matches(run_id, known, n=3, cutoff=0.5)
    hint = f"the nearest are {', '.join(near)}" if near else f"there are {', '.join(known[:3])}" if known else ""
    more = ", ..." if len(known) > 3 and not near else ""
    raise SweepError(f"no run {run_id!r} among {len(known)} that are done; {hint or 'none is done yet'}{more}")


class KeptRuns(NamedTuple):
    """The runs of a directory: what is stored of each, in its order, and the versions that made them."""

    directory: Path
    rows: Callable[[str], ResultRow]
    versions: Mapping[str, str]


def kept_runs(directory: Path) -> KeptRuns:
    """The runs of the directory of a sweep, or of an answer.

    Raises
    ------
    SweepError
        If it is neither.
    """
    from barrierlab.sim.sweep.store import MANIFEST, Store

    if (directory / ANSWER).is_file() and not (directory / MANIFEST).is_file():
        return _of_answer(directory)
    store = Store.open(directory)
    return KeptRuns(directory, lambda run_id: _stored(store, run_id), store.manifest()["versions"])


def _stored(store: Store, run_id: str) -> ResultRow:
    runs = store.read(RUNS.name)
    ids = runs.column("run_id").to_pylist()
    row: ResultRow = runs.slice(ids.index(find_id(run_id, ids)), 1).to_pylist()[0]
    return row


def _of_answer(directory: Path) -> KeptRuns:
    hint = "ask again, into another directory"
    try:
        data = json.loads(read_text(directory / ANSWER, SweepError, hint))
        rows = {row["run_id"]: row for row in data["runs_made"] if _is_whole(row)}
        if len(rows) < len(data["runs_made"]):
            raise TypeError
        return KeptRuns(directory, lambda run_id: rows[find_id(run_id, list(rows))], dict(data["versions"]))
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise SweepError(f"{directory / ANSWER}: damaged, or not written by barrierlab ask --out; {hint}") from None


def _is_whole(row: ResultRow) -> bool:
    """Return whether a run of an answer has all that it takes to repeat it, and to hold it against that."""
    texts = ("run_id", "part", "scenario", "parameters", "status", "verdict", "journal_digest")
    are_of_type = all(isinstance(row[name], str) for name in texts) and isinstance(row["seed"], int)
    return are_of_type and isinstance(json.loads(row["parameters"]), dict)


def rerun(kept: KeptRuns, run_id: str, scenario: Path | None = None) -> Rerun:
    """Make the run of this id again, and compare it with what is stored of it.

    Parameters
    ----------
    scenario : Path, optional
        The file of its scenario, where the sweep has kept no copy.

    Raises
    ------
    SweepError
        If there is no such run, or its scenario is not what it was.
    """
    stored = kept.rows(run_id)
    parameters = json.loads(stored["parameters"])
    source = source_of(kept.directory, stored["run_id"], stored["scenario"], parameters, stored["seed"], scenario)
    run = SweepRun(stored["run_id"], stored["part"], stored["scenario"], source, parameters, stored["seed"])
    results: list[Any] = []

    def compute(run: SweepRun) -> dict[str, list[dict[str, Any]]]:
        from barrierlab.sim import load
        from barrierlab.sim import run as simulated

        results.append(simulated(load(run.source, settings=run.parameters), seed=run.seed))
        return {RUNS.name: [results[0].run_row()]}

    row = RUNS.from_rows(rows_of(run, compute)[RUNS.name]).to_pylist()[0]
    return Rerun(run, row, differences(stored, row), results[0] if results else None)


def differences(stored: ResultRow, row: ResultRow) -> dict[str, tuple[Any, Any]]:
    """Return the columns that are not the same; a number may differ in its last digits, which libraries round.

    >>> differences({"a": 1.0, "b": "x"}, {"a": 1.0 + 1e-15, "b": "y"})
    {'b': ('x', 'y')}
    """

    def same(one: Any, other: Any) -> bool:
        both = isinstance(one, float) and isinstance(other, float)
        return (both and math.isclose(one, other, rel_tol=1e-9)) or one == other

    return {name: (stored[name], row.get(name)) for name in stored if not same(stored[name], row.get(name))}


def source_of(
    directory: Path, run_id: str, name: str, settings: Mapping[str, Any], seed: int, given: Path | None = None
) -> str:
    """Return what `load` takes for the scenario of a run: that of which the run has this id.

    Raises
    ------
    SweepError
        If it is not there, or not what it was.
    """
    from barrierlab.sim.scenario.file import ScenarioError
    from barrierlab.sim.scenario.load import load

    kept = sorted((directory / SCENARIOS).glob(f"*/{name}.toml"))
    reasons = []
    for source in [str(given)] if given is not None else [*map(str, kept), name]:
        try:
            if run_id_of(load(source, dict(settings)), settings, seed) == run_id:
                return source
            reasons.append(f"{source} is another than the one that was run")
        except ScenarioError as error:
            reasons.append(str(error))
    raise SweepError(f"run {run_id}: {reasons[0]}; give the file as it was then with --scenario")


def changed_versions(then: Mapping[str, str]) -> str:
    """Return which of some software is of another version now, in words; empty if none is."""
    found = []
    for name, old in then.items():
        try:
            new = python_version() if name == "python" else version(name)
        except PackageNotFoundError:
            new = "none"
        if new != old:
            found.append(f"{name} {old} then, {new} now")
    return "; ".join(found)
