"""Many runs from one file: planned, run on Spark or on processes, stored as Parquet, analysed and reported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["answer", "read", "run_sweep"]


class SweepTables(dict[str, "pd.DataFrame"]):
    """The tables of a sweep, by name."""

    def __repr__(self) -> str:
        rows = ", ".join(f"{name} {len(frame)}" for name, frame in self.items() if len(frame))
        return f"<SweepTables: {self._verdict}; rows: {rows}>"

    def _repr_html_(self) -> str:
        from barrierlab.model.render.html import block, table

        runs = self.get("runs")
        rows = [{"table": name, "rows": len(frame)} for name, frame in self.items()]
        parts = [table(rows)]
        if runs is not None and len(runs):
            counts = runs.groupby(["part", "verdict"], dropna=False).size().reset_index(name="runs")
            parts.insert(0, table(counts.to_dict("records"), caption="runs"))
        return block("sweep", self._verdict, *parts)

    @property
    def _verdict(self) -> str:
        if "runs" not in self or not len(self["runs"]):
            return "undecided, no run is stored"
        runs = self["runs"]
        broken, open_ = (runs["verdict"] == "broken").sum(), (runs["verdict"] != "holds").sum()
        if broken:
            return f"broken, in {broken} of {len(runs)} runs"
        return f"undecided, in {open_} of {len(runs)} runs" if open_ else f"holds, in {len(runs)} runs"


def run_sweep(sweep: str | Path, directory: str | Path, master: str = "processes", events: bool = False) -> SweepTables:
    """Run the runs of a shipped sweep or a TOML file into a new directory; its tables, as `read` gives them.

    With `events` it keeps the journal of every run, too.

    SweepError in one line if the sweep is not a good one or there is something in the directory already.
    """
    from barrierlab.sim.sweep.compact import compact
    from barrierlab.sim.sweep.execute import execute
    from barrierlab.sim.sweep.plan import load_plan
    from barrierlab.sim.sweep.store import Store

    plan = load_plan(sweep)
    store = Store.create(directory, plan, events)
    execute(plan, store, master)
    compact(store)
    return read(directory)


def read(directory: str | Path) -> SweepTables:
    """The tables of a sweep, whole or as far as it is, as pandas frames: runs, checkpoints, tasks, joins, violations.

    And `channels` and `events`, if the sweep keeps its events.

    The others are joined to `runs` by `run_id`. In `runs` every parameter is a column too, behind `parameters`.
    SweepError if `directory` is not that of a sweep.
    """
    import json

    import pandas as pd

    from barrierlab.sim.sweep.store import Store

    store = Store.open(directory)
    frames = {name: store.read(name).to_pandas() for name in reversed(store.tables)}
    set_of_run = pd.DataFrame([json.loads(text) for text in frames["runs"]["parameters"]])
    frames["runs"] = frames["runs"].join(set_of_run, rsuffix="_set")
    return SweepTables(frames)


def answer(directory: str | Path, engine: str = "auto", master: str | None = None) -> list[str]:
    """The sentences with which a sweep of checkpoints answers its question, as `barrierlab report` prints them.

    The queries run on DuckDB or on Spark, on the `master` that is given, as `sim.sweep.analyse.analysed` says.

    SweepError if `directory` is not that of a sweep, or there is no such engine.
    """
    from barrierlab.sim.sweep import summary
    from barrierlab.sim.sweep.analyse import analysed
    from barrierlab.sim.sweep.store import Store

    return list(summary.answer(analysed(Store.open(directory), engine, master)))
