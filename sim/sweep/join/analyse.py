"""Analysis of a sweep of joins: which barrier, what lateness budget, and the numbers behind that.

A *cell* is one barrier and lateness over one kind of streams (whatever else the sweep varies). Its outputs are added up
over its seeds; times are 99th percentiles of a run, averaged within each seed and then over the seeds, with Student's
interval for 95 % over the seeds. Two rules make an answer of a table:

* A barrier is *of use* for streams where nearly all outputs that are wanted come out complete (`ENOUGH`).
* The *budget* is the largest lateness whose skew is still that of no lateness, but for a few per cent (`FREE`): it
  takes waiting away and costs nothing in alignment. A larger one trades the one for the other.

Needs no Spark: one row a run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from barrierlab.model.join.invariants import JOIN_INVARIANTS
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.sweep.analyse import ASKED, CONFIDENCE, SHOWN_ERRORS, by_invariant, t_interval
from barrierlab.sim.sweep.outcome import ResultRow, outcome
from barrierlab.sim.sweep.tables import SKIPS, skip_column

if TYPE_CHECKING:
    from barrierlab.sim.sweep.store import Store

ENOUGH = 0.99
CUT_OFF = (
    "has the others waiting when a run ends: give a cooldown_s longer than outputs wait, or see which stream stops"
)
FREE = 1.05
TIMES = {"wait_p99_ms": "wait", "age_p99_ms": "age", "skew_p99_ms": "skew"}
SKIPPED = {skip_column(reason): f"skipped: {words}" for reason, words in SKIPS.items()}
OUTCOMES = {"complete": "complete", "degraded": "with an absent input", **SKIPPED, "waiting": "not out at the end"}
_OF_THE_BARRIER = ("barrier", "lateness_s", "join.barrier", "join.lateness_s")
_MEASURED = (*TIMES, "wait_mean_ms", "skew_mean_ms")


def analyse(store: Store) -> dict[str, Any]:
    """The analysis of the sweep in `store`, whole or as far as it is; a plain value, in the shape of that of jobs."""
    manifest = store.manifest()
    runs, joins = (store.read(name).to_pylist() for name in ("runs", "joins"))
    errors = [row for row in runs if row["status"] != "OK"]
    shown = ("run_id", "scenario", "parameters", "seed", "error")
    return {
        "sweep": {key: manifest[key] for key in ASKED},
        "confidence": CONFIDENCE,
        "runs": {
            **outcome(runs, manifest["runs"]),
            "frames": sum(row["events_in"] or 0 for row in runs),
            "outputs": sum(row["outputs"] for row in joins),
        },
        "invariants": by_invariant(Counter(store.read("violations")["invariant"].to_pylist()), JOIN_INVARIANTS),
        "cells": cells_of(joins, {row["run_id"]: row for row in runs}),
        "errors": [{name: row[name] for name in shown} for row in errors[:SHOWN_ERRORS]],
    }


def cells_of(joins: Iterable[ResultRow], runs: Mapping[str, ResultRow]) -> list[dict[str, Any]]:
    """The cells of some rows of the table `joins`, in the order of streams, barrier and lateness; `runs` by id."""
    set_of_run = {key: {"scenario": r["scenario"]} | json.loads(r["parameters"]) for key, r in runs.items()}
    others = {name for given in set_of_run.values() for name in given} - {"scenario", *_OF_THE_BARRIER}
    names = ["scenario", *sorted(others)]
    varied = [name for name in names if len({repr(given.get(name)) for given in set_of_run.values()}) > 1]
    groups: dict[tuple[str, str, float], list[ResultRow]] = {}
    for row in joins:
        given = set_of_run[row["run_id"]]
        streams = " ".join(f"{name}={given[name]}" for name in varied if name in given)
        lateness = -1.0 if row["lateness_ms"] is None else row["lateness_ms"]
        groups.setdefault((streams, row["barrier"], lateness), []).append(row)
    return [_cell(streams, barrier, rows, runs) for (streams, barrier, _), rows in sorted(groups.items())]


def _cell(streams: str, barrier: str, rows: list[ResultRow], runs: Mapping[str, ResultRow]) -> dict[str, Any]:
    first = runs[rows[0]["run_id"]]
    sums = {name: sum(row[name] or 0 for row in rows) for name in ("wanted", "complete", "degraded", *SKIPPED)}
    wanted, complete = sums.pop("wanted"), sums["complete"]
    share = complete / wanted if wanted else 0.0
    seeds = [runs[row["run_id"]]["seed"] for row in rows]
    intervals = {name: _over_seeds(seeds, [row[name] for row in rows], inf) for name in _MEASURED}
    shares = _over_seeds(seeds, [row["complete"] / row["wanted"] if row["wanted"] else None for row in rows], 1.0)
    return {
        "streams": streams,
        "barrier": barrier,
        "lateness_ms": rows[0]["lateness_ms"],
        "part": first["part"],
        "scenario": first["scenario"],
        "parameters": json.loads(first["parameters"]),
        "seeds": sorted(set(seeds)),
        "runs": len(rows),
        "wanted": wanted,
        "complete_share": share,
        "outcomes": {**sums, "waiting": wanted - complete - sum(row["degraded"] + row["skipped"] for row in rows)},
        **{name: interval["at"] for name, interval in intervals.items()},
        "intervals": {**intervals, "complete_share": shares},
    }


def _over_seeds(seeds: Iterable[int], values: Iterable[float | None], most: float) -> dict[str, Any]:
    """Return mean and interval over seeds, of values up to `most`: runs of one seed count as one, as their streams are
    the same.
    """
    by_seed: dict[int, list[float]] = {}
    for seed, value in zip(seeds, values, strict=True):
        if value is not None:
            by_seed.setdefault(seed, []).append(value)
    means = [fmean(of_seed) for of_seed in by_seed.values()]
    if not means:
        return {"n": 0, "at": None, "low": None, "high": None}
    return t_interval(
        len(means),
        fmean(means),
        stdev(means) if len(means) > 1 else None,
        least=0.0 if min(means) >= 0.0 else -inf,
        most=most,
    )


def by_streams(found: Iterable[ResultRow]) -> dict[str, list[ResultRow]]:
    """The cells of each kind of streams; what nothing tells apart is called `all`."""
    kinds: dict[str, list[ResultRow]] = {}
    for cell in found:
        kinds.setdefault(cell["streams"] or "all", []).append(cell)
    return kinds


def answer(found: Iterable[ResultRow]) -> list[str]:
    """Return which barrier, and what lateness budget, in sentences; one on each kind of streams."""
    sentences = [f"{streams}: {_advice(cells)}" for streams, cells in by_streams(found).items()]
    return sentences or ["No run has come to its end, so there is nothing to say about barriers."]


def budget(found: Iterable[ResultRow]) -> ResultRow | None:
    """The cell of the largest lateness that costs no alignment, among the timestamp cells of one kind of streams."""
    timed = [cell for cell in found if cell["barrier"] == "timestamp" and cell["complete_share"] >= ENOUGH]
    timed.sort(key=lambda cell: cell["lateness_ms"])
    if not timed:
        return None
    least = timed[0]["skew_p99_ms"]
    return [cell for cell in timed if cell["skew_p99_ms"] <= FREE * least][-1]


def _advice(found: list[ResultRow]) -> str:
    of_use = [cell for cell in found if cell["complete_share"] >= ENOUGH]
    useless = sorted({cell["barrier"] for cell in found} - {cell["barrier"] for cell in of_use})
    parts = []
    sequence = next((cell for cell in of_use if cell["barrier"] == "sequence"), None)
    if sequence is not None:
        parts.append(f"sequence joins them exactly: {_cost(sequence)}")
    free = budget(found)
    if free is not None:
        timed = [cell for cell in of_use if cell["barrier"] == "timestamp"]
        parts.append(f"timestamp with a lateness of {free['lateness_ms']:g} ms: {_cost(free)}{_gain(free, timed)}")
    latest = next((cell for cell in of_use if cell["barrier"] == "latest"), None)
    if latest is not None:
        parts.append(f"latest if waiting is worse than skew: {_cost(latest)}")
    if useless:
        parts.append(f"not {', '.join(useless)}: fewer than {percent(ENOUGH)} of the outputs come out complete")
    cut_off = {c["barrier"] for c in found if is_cut_off(c["complete_share"], c["outcomes"]["waiting"], c["wanted"])}
    parts += [f"{name} {CUT_OFF}" for name in useless if name in cut_off]
    return "; ".join(parts)


def _gain(free: ResultRow, timed: list[ResultRow]) -> str:
    """Return what a budget is worth, beside the least lateness that was run; nothing where there was no other."""
    least = min(timed, key=lambda cell: cell["lateness_ms"])
    if least is not free:
        than = f" with {least['lateness_ms']:g} ms" if least["lateness_ms"] else ""
        saved = least["wait_p99_ms"] - free["wait_p99_ms"]
        return f"; that budget takes {saved:.0f} ms off the wait{than} and costs no alignment"
    return "; a larger budget costs alignment" if len(timed) > 1 else ""


def is_cut_off(complete_share: float, waiting: float, wanted: float = 1.0) -> bool:
    """Return whether the outputs that wait when a run ends decide that a barrier is not of use."""
    return complete_share < ENOUGH <= complete_share + (waiting / wanted if wanted else 0.0)


def _cost(cell: ResultRow) -> str:
    wait, skew = (f"{ms:.0f} ms" if ms >= 1 else f"{ms:.2g} ms" for ms in (cell["wait_p99_ms"], cell["skew_p99_ms"]))
    return f"99 % wait at most {wait} for a skew of at most {skew}"
