"""What a sweep of joins answers: which barrier, and what lateness budget.

A *cell* is one barrier and lateness over one kind of streams (whatever else the sweep varies); over its seeds, shares
are added up and the 99th percentiles averaged. Two rules make an answer of a table:

* A barrier is *of use* for streams where nearly all outputs that are wanted come out complete (`ENOUGH`).
* The *budget* is the largest lateness whose skew is still that of no lateness, but for a few per cent (`FREE`): it
  takes waiting away and costs nothing in alignment. A larger one trades the one for the other.

Needs no Spark: one row a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.sweep.store import Store

Row = Mapping[str, Any]
ENOUGH = 0.99
FREE = 1.05
_OF_THE_BARRIER = ("barrier", "lateness_s")
_MEASURED = ("wait_p99_ms", "age_p99_ms", "skew_p99_ms", "wait_mean_ms", "skew_mean_ms")


def cells(store: Store) -> list[dict[str, Any]]:
    """The cells of a sweep's runs, in the order of streams, barrier and lateness."""
    parameters = {row["run_id"]: json.loads(row["parameters"]) for row in store.read("runs").to_pylist()}
    return cells_of(store.read("joins").to_pylist(), parameters)


def cells_of(joins: Iterable[Row], parameters: Mapping[str, Row]) -> list[dict[str, Any]]:
    """The cells of some rows of the table `joins`, by the parameters of their runs."""
    groups: dict[tuple[str, str, float], list[Row]] = {}
    names = sorted({name for given in parameters.values() for name in given if name not in _OF_THE_BARRIER})
    varied = [name for name in names if len({repr(given.get(name)) for given in parameters.values()}) > 1]
    for row in joins:
        given = parameters[row["run_id"]]
        streams = " ".join(f"{name}={given.get(name)}" for name in varied)
        lateness = -1.0 if row["lateness_ms"] is None else row["lateness_ms"]
        groups.setdefault((streams, row["barrier"], lateness), []).append(row)
    return [_cell(streams, barrier, rows) for (streams, barrier, _), rows in sorted(groups.items())]


def _cell(streams: str, barrier: str, rows: list[Row]) -> dict[str, Any]:
    wanted = sum(row["wanted"] for row in rows)
    cell = {
        "streams": streams,
        "barrier": barrier,
        "lateness_ms": rows[0]["lateness_ms"],
        "runs": len(rows),
        "complete_share": sum(row["complete"] for row in rows) / wanted if wanted else 0.0,
    }
    for name in _MEASURED:
        values = [row[name] for row in rows if row[name] is not None]
        cell[name] = sum(values) / len(values) if values else None
    return cell


def answer(found: Iterable[Row]) -> list[str]:
    """Which barrier, and what lateness budget, in sentences; one on each kind of streams."""
    by_streams: dict[str, list[Row]] = {}
    for cell in found:
        by_streams.setdefault(cell["streams"], []).append(cell)
    return [f"{streams or 'all'}: {_advice(cells)}" for streams, cells in by_streams.items()]


def budget(found: Iterable[Row]) -> Row | None:
    """The cell of the largest lateness that costs no alignment, among the timestamp cells of one kind of streams."""
    timed = [cell for cell in found if cell["barrier"] == "timestamp" and cell["complete_share"] >= ENOUGH]
    timed.sort(key=lambda cell: cell["lateness_ms"])
    if not timed:
        return None
    least = timed[0]["skew_p99_ms"]
    return [cell for cell in timed if cell["skew_p99_ms"] <= FREE * least][-1]


def _advice(found: list[Row]) -> str:
    of_use = [cell for cell in found if cell["complete_share"] >= ENOUGH]
    useless = sorted({cell["barrier"] for cell in found} - {cell["barrier"] for cell in of_use})
    parts = []
    sequence = next((cell for cell in of_use if cell["barrier"] == "sequence"), None)
    if sequence is not None:
        parts.append(f"sequence joins them exactly: {_cost(sequence)}")
    free = budget(found)
    if free is not None:
        none = min((c for c in found if c["barrier"] == "timestamp"), key=lambda c: c["lateness_ms"])
        saved = none["wait_p99_ms"] - free["wait_p99_ms"]
        parts.append(
            f"timestamp with a lateness of {free['lateness_ms']:g} ms: {_cost(free)}; that budget takes {saved:.0f} ms "
            "off the wait and costs no alignment"
        )
    latest = next((cell for cell in of_use if cell["barrier"] == "latest"), None)
    if latest is not None:
        parts.append(f"latest if waiting is worse than skew: {_cost(latest)}")
    if useless:
        parts.append(f"not {', '.join(useless)}: fewer than {ENOUGH:.0%} of the outputs come out complete")
    return "; ".join(parts)


def _cost(cell: Row) -> str:
    return f"99 % wait at most {cell['wait_p99_ms']:.0f} ms for a skew of at most {cell['skew_p99_ms']:.0f} ms"
