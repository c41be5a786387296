"""One HTML file that says what was asked, what came out and how to get it again; it needs nothing beside it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barrierlab.sim.core.files import read_text
from barrierlab.sim.sweep import figures, measured
from barrierlab.sim.sweep.analyse import PIECES
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.outcome import ResultRow, verdict_line
from barrierlab.sim.sweep.plan import shipped_sweeps
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.summary import answer, mean_pieces

SECTIONS = (
    ("asked", "What was asked"),
    ("answer", "Answer"),
    ("verdict", "Verdict of the invariants"),
    ("time", "Where the time goes"),
    ("axes", "Effect of each axis"),
    ("measured", "Predicted against measured"),
    ("errors", "Errors"),
    ("dictionary", "Data dictionary"),
    ("again", "How to reproduce"),
)
MEANING = {
    "CUT": "what a sender had sent before its cut, its receiver had taken before its own",
    "FIFO": "messages of a channel take effect in channel order",
    "ONCE": "a task takes one snapshot a checkpoint",
    "FWD": "a barrier leaves between what pre-barrier and what post-barrier input caused",
    "NOLOSS": "every record taken from a channel is processed exactly once",
    "WM": "a watermark takes effect after all records before it, and never goes back",
    "ID": "checkpoint ids strictly increase at every task",
    "LIVE": "every started checkpoint ends everywhere, and nothing stays blocked",
    "BOUND": "no buffer grows beyond its limit",
    "RAISED": "no machine of the system under test raises",
    "REC": "after a restore every source record has its effect exactly once, on states and outside",
}


def page(
    template: str,
    sections: Sequence[tuple[str, str]],
    analysis: ResultRow,
    store: Store,
    meaning: ResultRow,
    **findings: Any,
) -> str:
    """A report of any kind: what was asked, verdict, errors, dictionary, how to reproduce it; and `findings`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("barrierlab.sim.sweep", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    sweep = analysis["sweep"]
    vacuous = [set(text.split()) for text in store.read("runs")["vacuous"].to_pylist() if text is not None]

    def judged(invariant: str) -> int:
        """Count the runs in which the invariant had something to judge."""
        return sum(invariant not in names for names in vacuous)

    return environment.get_template(template).render(
        sections=sections,
        sweep=sweep,
        runs=analysis["runs"],
        asked=[_asked(part) for part in sweep["parts"]],
        verdict=verdict_line(analysis["runs"]),
        invariants=[
            (name, meaning.get(name, ""), judged(name), count) for name, count in analysis["invariants"].items()
        ],
        errors=[(e["run_id"], e["scenario"], e["parameters"], e["seed"], e["error"]) for e in analysis["errors"]],
        tables=list(reversed(store.tables.values())),
        again=sweep["sweep"] if sweep["sweep"] in shipped_sweeps() else f"{sweep['sweep']}.toml",
        example=_example(analysis),
        text=read_text(store.directory / "sweep.toml", SweepError, "it is the file that was swept: put it back there"),
        **findings,
    )


def render(analysis: ResultRow, store: Store) -> str:
    """The report on an analysis of a sweep of jobs in `store`, as HTML."""
    bars = _bars(analysis)
    return page(
        "checkpoints.html.j2",
        SECTIONS,
        analysis,
        store,
        MEANING,
        answer=answer(analysis),
        time_figures=_time_figures(bars),
        pieces=[_piece(label, row) for rows in bars.values() for label, row in rows],
        operators=[
            (r["part"], r["scenario"], r["operator"], _n(r["start_delay_ms"]), _n(r["alignment_ms"]))
            for r in analysis["operators"]
        ],
        completion=[_completion(row) for row in analysis["completion"]],
        quantiles=[_quantile(row) for row in analysis["quantiles"]],
        axis_figures=_axis_figures(analysis["effects"]),
        differences=[_difference(effect, row) for effect in analysis["effects"] for row in effect["differences"]],
        measured=_side_by_side(analysis["measured"]),
        measured_figure=_measured_figure(analysis["measured"]),
        modes=measured.MODES,
        targets=measured.TARGETS,
    )


def _asked(part: ResultRow) -> tuple[str, str, str, str, int]:
    axes = "; ".join(
        f"{a['name']}: {', '.join(map(str, a['values'])) if a['values'] else 'drawn'}" for a in part["axes"]
    ) or ("as measured" if part["measured"] else "none")
    return part["name"], ", ".join(part["scenarios"]), axes, seeds_text(part["seeds"]), part["runs"]


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds in words.

    >>> seeds_text([1, 2]), seeds_text([3, 4, 5, 6]), seeds_text([1, 7, 9])
    ('1, 2', '3 to 6', '1, 7, 9')
    """
    in_a_row = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if in_a_row else ", ".join(map(str, seeds))


def _bars(analysis: ResultRow) -> dict[str, list[tuple[str, ResultRow]]]:
    """For each part some bars: a measured job each, or a value each of the axis that matters most."""
    names = {(j.scenario, *sorted(j.settings.items())): j.name for j in measured.load_measured()}
    bars: dict[str, list[tuple[str, ResultRow]]] = {}
    for part in analysis["sweep"]["parts"]:
        rows = [row for row in analysis["pieces"] if row["part"] == part["name"]]
        if not rows:
            continue
        effects = [e for e in analysis["effects"] if e["part"] == part["name"] and e["differences"]]
        if part["measured"]:
            keyed = [((r["scenario"], *sorted(r["parameters"].items())), r) for r in rows]
            found = [(names.get(key, r["scenario"]), r) for key, r in keyed]
            order = list(names.values())
            bars[part["name"]] = sorted(found, key=lambda bar: order.index(bar[0]) if bar[0] in order else len(order))
        elif effects:
            axis = max(effects, key=lambda e: max(abs(d["end_to_end_ms"]["at"]) for d in e["differences"]))["axis"]
            values = list(dict.fromkeys(r["parameters"][axis] for r in rows))
            order = next(a["values"] for a in part["axes"] if a["name"] == axis)
            groups = [(v, [r for r in rows if r["parameters"][axis] == v]) for v in sorted(values, key=order.index)]
            bars[part["name"]] = [(f"{part['name']}, {axis} {v}", mean_pieces(group)) for v, group in groups]
        else:
            bars[part["name"]] = [(part["name"], mean_pieces(rows))]
    return bars


def _time_figures(bars: Mapping[str, Sequence[tuple[str, ResultRow]]]) -> list[dict[str, Any]]:
    return [
        figure_of(
            figures.where_the_time_goes(rows, f"time{number}"),
            f"Where the time of a checkpoint goes, {part}: "
            f"means over {sum(r['n'] for _, r in rows)} steady completed checkpoints.",
        )
        for number, (part, rows) in enumerate(bars.items())
    ]


def _axis_figures(effects: Sequence[ResultRow]) -> list[dict[str, Any]]:
    parts = list(dict.fromkeys(e["part"] for e in effects if e["values"]))
    return [
        figure_of(
            figures.effect_of_axes([e for e in effects if e["part"] == part and e["values"]], f"axes{number}"),
            f"Mean duration of a checkpoint and its pieces by each axis of part {part}, "
            "with 95 % intervals over the seeds.",
        )
        for number, part in enumerate(parts)
    ]


def _measured_figure(cells: Sequence[ResultRow]) -> dict[str, Any] | None:
    if not cells:
        return None
    words = (
        f"Predicted against measured, {len(cells)} statistics of {len({c['job'] for c in cells})} runs, except those "
        f"that are 0. On the line the two are equal; the band is {measured.WITHIN}. Filled: saturated; hollow: not."
    )
    return figure_of(figures.predicted_against_measured(cells, measured.MODES, measured.TOLERANCE, "measured"), words)


def figure_of(svg: str, words: str) -> dict[str, Any]:
    """A figure with its caption, as the templates take it."""
    from markupsafe import Markup

    return {"svg": Markup(svg), "words": words}  # drawn here, from numbers and labels that matplotlib escapes


def _piece(label: str, row: ResultRow) -> tuple[str, ...]:
    total = row["end_to_end_ms"]
    shares = [f"{row[p] / total:.0%}" if total else "–" for p in list(PIECES)[:2]]
    return label, str(row["n"]), _n(total), *(_n(row[p]) for p in PIECES), *shares


def _completion(row: ResultRow) -> tuple[str, ...]:
    share = "–" if row["share"] is None else f"{row['share']:.0%}"
    ways = ", ".join(f"{way} ({count} of {row['runs']} runs)" for way, count in row["progress"].items())
    counts = (str(row[name]) for name in ("completed", "triggered", "failed", "failures"))
    return f"{row['scenario']}: {_words(row['parameters'])}", share, *counts, ways or "goes on"


def _quantile(row: ResultRow) -> tuple[str, ...]:
    points = [row[p] for p in ("p50", "p90", "p95", "p99")]
    return f"{row['scenario']}: {_words(row['parameters'])}", str(row["n"]), *(interval_text(p) for p in points)


def _difference(effect: ResultRow, row: ResultRow) -> tuple[str, ...]:
    statistics = [row[s] for s in ("end_to_end_ms", "adjusted_ms", "start_delay_ms", "alignment_ms")]
    return (
        effect["axis"],
        f"{row['from']} → {row['value']}",
        *(interval_text(s, sign=True) for s in statistics),
        str(statistics[0]["n"]),
    )


def _side_by_side(cells: Sequence[ResultRow]) -> dict[str, list[tuple[str, list[tuple[str, str, str]]]]]:
    """By measured job, the rows of the comparison: a statistic, and what each mode shows."""
    jobs: dict[str, list[tuple[str, list[tuple[str, str, str]]]]] = {}
    for setup, words, row in measured.side_by_side(cells):
        jobs.setdefault(setup, []).append((words, [measured.shown(cell) for cell in row]))
    return jobs


def interval_text(interval: ResultRow, *, sign: bool = False) -> str:
    """An interval in words; a dash for a bound that it has not.

    >>> interval_text({"at": 3.0, "low": 2.0, "high": 4.0}), interval_text({"at": 3.0, "low": None, "high": None})
    ('3.0 (2.0 to 4.0)', '3.0 (– to –)')
    """
    low, high = (_n(interval[side], sign=sign) for side in ("low", "high"))
    return f"{_n(interval['at'], sign=sign)} ({low} to {high})"


def _n(value: float | None, *, sign: bool = False) -> str:
    return "–" if value is None else f"{value:{'+' if sign else ''}.1f}".replace("-0.0", "0.0").replace("+0.0", "0.0")


def _words(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items()) or "as it is"


def _example(analysis: ResultRow) -> str:
    """The arguments of `barrierlab run` for the first run of a shipped scenario."""
    parts: Iterable[ResultRow] = analysis["sweep"]["parts"]
    for part, cell in ((p, c) for p in parts for c in analysis["cells"] if c["part"] == p["name"]):
        settings = " ".join(f"--set {shlex.quote(f'{name}={value}')}" for name, value in cell["parameters"].items())
        return f"{cell['scenario']} {settings} --seed {part['seeds'][0]}".replace("  ", " ")
    return ""
