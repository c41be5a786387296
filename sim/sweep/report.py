"""The report on a sweep of jobs: what was asked, what came out, and how to get it again."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from barrierlab.model.spec.invariants import MEANING
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.core.files import read_text
from barrierlab.sim.scenario.load import all_shipped
from barrierlab.sim.sweep import figures, measured
from barrierlab.sim.sweep.analyse import PIECES
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.outcome import ResultRow, verdict_line
from barrierlab.sim.sweep.page import PageFigure, PageTable, Section, figure_of, render_page
from barrierlab.sim.sweep.plan import set_options, shipped_sweeps
from barrierlab.sim.sweep.run_drawings import JOB_WORDS, Drawn, checkpoint_of, drawn_again, drawn_checkpoint, job_of
from barrierlab.sim.sweep.samples import CheckpointSample, RunIndex
from barrierlab.sim.sweep.store import SCENARIOS, Store
from barrierlab.sim.sweep.summary import answer, mean_pieces

FIRST: tuple[Section, ...] = (("asked", "Question"), ("answer", "Answer"))
LAST: tuple[Section, ...] = (
    ("verdict", "Verdicts, and what they judged"),
    ("environment", "Environment"),
    ("runs", "All runs"),
)
DRAWN: tuple[Section, ...] = (
    ("job", "The job, and its bottleneck"),
    ("typical", "A typical checkpoint"),
    ("worst", "The worst checkpoint"),
)
FOUND: tuple[Section, ...] = (
    ("time", "Where the time goes"),
    ("axes", "Effect of each axis"),
    ("measured", "Predicted against measured"),
)
DICTIONARY: Section = ("dictionary", "Data dictionary")
SECTIONS = (*FIRST, *FOUND, *LAST, DICTIONARY)
"""The sections that every report on jobs has; those of `DRAWN` stand there if a checkpoint completed."""
MOST_VIOLATIONS = 50


def page(
    template: str,
    sections: Sequence[Section],
    analysis: ResultRow,
    store: Store,
    index: RunIndex,
    meaning: ResultRow,
    judged_of: tuple[str, str],
    options: str = "",
    **findings: Any,
) -> str:
    """A report on a sweep of any kind: question, verdicts, errors, environment, all runs, dictionary; and `findings`.

    Parameters
    ----------
    judged_of : (str, str)
        What the invariants are of, and what the judged histories held.
    options : str
        Of the command that sweeps again.
    """
    sweep, runs = analysis["sweep"], analysis["runs"]
    name = sweep["sweep"]
    again = name if name in shipped_sweeps() else f"{name}.toml"
    commands = [f"barrierlab sweep {again} --out out/{name}{options}", f"barrierlab report out/{name}"]
    if index.runs:
        commands.append(f"barrierlab rerun out/{name} {index.runs[0].run_id}   # any run of this page")
    if example := example_of(analysis, own_scenarios(store)):
        commands.append(f"barrierlab run {example}   # one of them, without its directory")
    stopped = (
        f"{runs['ERROR']} run{'' if runs['ERROR'] == 1 else 's'} stopped with an error and count in nothing above."
    )
    return render_page(
        template,
        sections,
        title=sweep["title"],
        about=f"A sweep of {runs['planned']} simulated runs, every one judged by the invariants of {judged_of[0]}.",
        question=sweep["question"] or sweep["title"],
        asked=PageTable(
            "What was run", ["part", "scenarios", "axes", "seeds", "runs"], [_asked(p) for p in sweep["parts"]], 3
        ),
        verdict=verdict_line(runs),
        is_bad=bool(runs["violations"] or runs["undecided"]),
        history=f"Each run's whole history was judged: {judged_of[1]}.",
        invariants=_invariants(analysis["invariants"], store, meaning),
        violations=_violations(store),
        stopped=stopped,
        errors=PageTable.of(
            "Runs that stopped",
            ["scenario", "parameters", "seed", "error"],
            [(e["run_id"], (e["scenario"], e["parameters"], e["seed"], e["error"])) for e in analysis["errors"]],
            4,
        ),
        commands="\n".join(commands),
        versions=PageTable("Versions", ["software", "version"], list(sweep["versions"].items()), 2),
        text_of="The sweep file, as it was run",
        text=read_text(store.directory / "sweep.toml", SweepError, "it is the file that was swept: put it back there"),
        runs=_all_runs(index),
        counts=runs,
        dictionary=[
            (
                (t.name, t.meaning),
                PageTable(
                    f"Columns of {t.name}; key: {', '.join(t.key)}", ["column", "type", "unit", "meaning"], t.columns, 4
                ),
            )
            for t in reversed(store.tables.values())
        ],
        **findings,
    )


def _invariants(found: Mapping[str, int], store: Store, meaning: ResultRow) -> PageTable:
    """The invariants: in how many runs each had something to judge, one of those, and how often it was broken."""
    vacuous = [
        (row["run_id"], set(row["vacuous"].split()))
        for row in store.read("runs").select(["run_id", "vacuous"]).to_pylist()
        if row["vacuous"] is not None
    ]
    judged = {name: [run for run, names in vacuous if name not in names] for name in found}
    rows = [
        (judged[name][0] if judged[name] else "", (name, meaning.get(name, ""), len(judged[name]), count))
        for name, count in found.items()
    ]
    head = ["invariant", "holds when", "runs with something to judge", "violations"]
    return PageTable.of("Violations by invariant, and a run that had something to judge", head, rows, 2)


def _violations(store: Store) -> PageTable:
    rows = store.read("violations").slice(0, MOST_VIOLATIONS).to_pylist()
    cells = [(row["run_id"], (row["invariant"], row["reason"], _n((row["at_ns"] or 0) / 1e9))) for row in rows]
    return PageTable.of(f"Violations, the first {MOST_VIOLATIONS}", ["invariant", "what is wrong", "at, s"], cells, 2)


def _all_runs(index: RunIndex) -> PageTable:
    rows = [
        (
            run.run_id,
            (
                f"{run.scenario}: {words_of(run.parameters)}",
                run.part,
                run.seed,
                run.verdict,
                _n(run.mean_ms),
                run.digest,
            ),
        )
        for run in index.runs
    ]
    head = ["run of", "part", "seed", "verdict", "mean, ms", "digest of its journal"]
    return PageTable.of("All runs that came to their end", head, rows, 2)


def render(analysis: ResultRow, store: Store) -> str:
    """The report on an analysis of a sweep of jobs in `store`, as HTML."""
    index = RunIndex(store)
    bars = _bars(analysis, index)
    times = [_time_figure(number, part, rows) for number, (part, rows) in enumerate(bars.items())]
    drawn = _drawn(analysis, store, index)
    runs = analysis["runs"]
    sections = (*FIRST, *((d.id, d.title) for d in drawn), *SECTIONS[len(FIRST) :])
    return page(
        "checkpoints.html.j2",
        sections,
        analysis,
        store,
        index,
        MEANING,
        (
            "consistent checkpoints",
            f"{runs['checkpoints_completed']} checkpoints completed, {runs['checkpoints_failed']} were aborted",
        ),
        answer=answer(analysis),
        shown=times[0] if times else None,
        drawn=drawn,
        time_figures=times[1:],
        operators=_operators(analysis["operators"], index),
        completion=_completion(analysis["completion"], index),
        quantiles=_quantiles(analysis["quantiles"], index),
        axis_figures=_axis_figures(analysis["effects"], index),
        differences=_differences(analysis["effects"], index),
        measured=_side_by_side(analysis["measured"], index),
        measured_figure=_measured_figure(analysis["measured"], index),
        modes=measured.MODES,
        targets=measured.TARGETS,
    )


def _drawn(analysis: ResultRow, store: Store, index: RunIndex) -> list[Drawn]:
    """Return job, typical and worst checkpoint of each part that has one; the answer has a sentence on it."""
    drawn: list[Drawn] = []
    for part in (part["name"] for part in analysis["sweep"]["parts"]):
        if found := index.checkpoints(part):
            which = f"{len(drawn) // len(DRAWN) + 1}, {part}" if drawn else ""
            many = f"of the {len(found)} steady checkpoints of part “{part}”"
            drawn += _drawn_of(sections_drawn(which), found[len(found) // 2], found[-1], many, store, index)
    return drawn


def sections_drawn(which: str = "") -> list[Section]:
    """Return the sections of what is drawn, of the first part; or of another, by its number and name.

    >>> sections_drawn("2, joins")[1]
    ('typical2', 'A typical checkpoint: joins')
    """
    number, _, part = which.partition(", ")
    return [(f"{section}{number}", f"{title}: {part}" if part else title) for section, title in DRAWN]


def _drawn_of(
    sections: Sequence[Section],
    middle: CheckpointSample,
    worst: CheckpointSample,
    many: str,
    store: Store,
    index: RunIndex,
) -> list[Drawn]:
    job, typical, last = sections
    words = _which(index, middle, f"The median {many}")

    def draw(result: Any) -> list[Drawn]:
        drawn_job = job_of(job, result, middle.run_id, JOB_WORDS)
        return [drawn_job, checkpoint_of(typical, result, middle.checkpoint_id, middle.run_id, words)]

    return [
        *drawn_again(store.directory, middle.run_id, {job: JOB_WORDS, typical: words}, draw),
        drawn_checkpoint(last, store, worst, _which(index, worst, f"The longest {many}")),
    ]


def _which(index: RunIndex, sample: CheckpointSample, words: str) -> str:
    run = index.by_id[sample.run_id]
    of_run = f"{run.scenario}, {words_of(run.parameters)}, seed {run.seed}"
    return f"{words}: checkpoint {sample.checkpoint_id} of {of_run}. It took {_n(sample.duration_ms)} ms."


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


Bars = list[tuple[str, ResultRow, str]]
"""Of each bar the label, the mean pieces, and a run that stands for it."""


def _bars(analysis: ResultRow, index: RunIndex) -> dict[str, Bars]:
    """Return some bars for each part: a measured job each, or a value each of the axis that matters most."""
    names = {(j.scenario, *sorted(j.settings.items())): j.name for j in measured.load_measured()}
    bars: dict[str, Bars] = {}
    for part in analysis["sweep"]["parts"]:
        name = part["name"]
        rows = [row for row in analysis["pieces"] if row["part"] == name]
        if not rows:
            continue
        effects = [e for e in analysis["effects"] if e["part"] == name and e["differences"]]
        if part["measured"]:
            keyed = [((r["scenario"], *sorted(r["parameters"].items())), r) for r in rows]
            found = [(names.get(key, r["scenario"]), r, index.nearest_in_cell(r)) for key, r in keyed]
            order = list(names.values())
            bars[name] = sorted(found, key=lambda bar: order.index(bar[0]) if bar[0] in order else len(order))
        elif effects:
            axis = max(effects, key=lambda e: max(abs(d["end_to_end_ms"]["at"]) for d in e["differences"]))["axis"]
            values = list(dict.fromkeys(r["parameters"][axis] for r in rows))
            order = next(a["values"] for a in part["axes"] if a["name"] == axis)
            groups = [(v, [r for r in rows if r["parameters"][axis] == v]) for v in sorted(values, key=order.index)]
            means = [(v, mean_pieces(group)) for v, group in groups]
            bars[name] = [
                (f"{name}, {axis} {v}", mean, index.nearest_of(name, mean["end_to_end_ms"], **{axis: v}))
                for v, mean in means
            ]
        else:
            bars[name] = [(name, mean_pieces(rows), index.nearest_of(name))]
    return bars


def _time_figure(number: int, part: str, bars: Bars) -> PageFigure:
    head = ["", "checkpoints", "end to end", "start delay", "alignment", "blocking", "rest"]
    rows = [(run, _piece(label, row)) for label, row, run in bars]
    table = PageTable.of("Mean pieces of a checkpoint's time, ms", [*head, "start delay, %", "alignment, %"], rows)
    count = sum(row["n"] for _, row, _ in bars)
    words = (
        f"Where the time of a checkpoint goes, {part}: means over {count} steady completed checkpoints, by what was "
        "waited for on the critical path."
    )
    shown, runs = [(label, row) for label, row, _ in bars], [run for _, _, run in bars]
    return figure_of(partial(figures.where_the_time_goes, shown, runs=runs), f"time{number}", words, table)


def _axis_figures(effects: Sequence[ResultRow], index: RunIndex) -> list[PageFigure]:
    def run_at(effect: ResultRow, row: ResultRow) -> str:
        wanted = {} if effect["drawn"] else {effect["axis"]: row["value"]}
        return index.nearest_of(effect["part"], row["end_to_end_ms"]["at"], **wanted)

    found = []
    for number, part in enumerate(dict.fromkeys(e["part"] for e in effects if e["values"])):
        mine = [e for e in effects if e["part"] == part and e["values"]]
        rows = [
            (
                run_at(effect, row),
                (
                    effect["axis"],
                    row["value"],
                    *(interval_text(row[s]) for s in ("end_to_end_ms", "start_delay_ms", "alignment_ms")),
                ),
            )
            for effect in mine
            for row in effect["values"]
        ]
        head = ["axis", "value", "end to end", "start delay", "alignment"]
        words = (
            f"Mean duration of a checkpoint and its pieces by each axis of part {part}, with 95 % intervals over the "
            "seeds."
        )
        table = PageTable.of("Means by value, ms, with 95 % intervals", head, rows, 2)
        found.append(figure_of(partial(figures.effect_of_axes, mine, run_at=run_at), f"axes{number}", words, table))
    return found


def _run_of_job(index: RunIndex) -> dict[str, str]:
    """Return a run of each measured job."""
    jobs = {job.name: job for job in measured.load_measured()}
    by_settings = {(run.scenario, words_of(run.parameters)): run for run in index.runs}
    found = {name: by_settings.get((job.scenario, words_of(job.settings))) for name, job in jobs.items()}
    return {name: index.nearest_in_cell(run._asdict()) for name, run in found.items() if run is not None}


def _measured_figure(cells: Sequence[ResultRow], index: RunIndex) -> PageFigure | None:
    if not cells:
        return None
    runs = _run_of_job(index)
    words = (
        f"Predicted against measured, {len(cells)} statistics of {len({c['job'] for c in cells})} runs, except those "
        f"that are 0. On the line the two are equal; the band is {measured.WITHIN}. Filled: saturated; hollow: not. "
        "The table behind it is below."
    )

    def run_of(cell: ResultRow) -> str:
        return runs.get(cell["job"], "")

    draw = partial(figures.predicted_against_measured, cells, measured.MODES, measured.TOLERANCE, run_of=run_of)
    return figure_of(draw, "measured", words, None)


def _piece(label: str, row: ResultRow) -> tuple[str, ...]:
    total = row["end_to_end_ms"]
    shares = [percent(row[p] / total) if total else "–" for p in list(PIECES)[:2]]
    return label, str(row["n"]), _n(total), *(_n(row[p]) for p in PIECES), *shares


def _operators(rows: Iterable[ResultRow], index: RunIndex) -> PageTable:
    cells = [
        (
            index.nearest_of(r["part"], scenario=r["scenario"]),
            (r["part"], r["scenario"], r["operator"], _n(r["start_delay_ms"]), _n(r["alignment_ms"])),
        )
        for r in rows
    ]
    words = "What each operator shows: of each checkpoint the largest value over its subtasks, mean, ms"
    return PageTable.of(words, ["part", "scenario", "operator", "start delay", "alignment"], cells, 3)


def _completion(rows: Iterable[ResultRow], index: RunIndex) -> PageTable:
    head = ["combination", "share", "completed", "triggered", "failed", "job failures", "job"]
    cells = [(index.nearest_in_cell(row), _completed(row)) for row in rows]
    return PageTable.of("Steady checkpoints that completed", head, cells)


def _completed(row: ResultRow) -> tuple[str, ...]:
    share = "–" if row["share"] is None else percent(row["share"])
    ways = ", ".join(f"{way} ({count} of {row['runs']} runs)" for way, count in row["progress"].items())
    counts = (str(row[name]) for name in ("completed", "triggered", "failed", "failures"))
    return f"{row['scenario']}: {words_of(row['parameters'])}", share, *counts, ways or "goes on"


def _quantiles(rows: Iterable[ResultRow], index: RunIndex) -> PageTable:
    cells = [(index.nearest_in_cell(row), _quantile(row)) for row in rows]
    head = ["combination", "checkpoints", "p50", "p90", "p95", "p99"]
    return PageTable.of("End-to-end duration, ms", head, cells)


def _quantile(row: ResultRow) -> tuple[str, ...]:
    points = [row[p] for p in ("p50", "p90", "p95", "p99")]
    return f"{row['scenario']}: {words_of(row['parameters'])}", str(row["n"]), *(interval_text(p) for p in points)


def _differences(effects: Iterable[ResultRow], index: RunIndex) -> PageTable:
    rows = []
    for effect in effects:
        for row in effect["differences"]:
            statistics = [row[s] for s in ("end_to_end_ms", "adjusted_ms", "start_delay_ms", "alignment_ms")]
            cells = (
                effect["axis"],
                f"{row['from']} → {row['value']}",
                *(interval_text(s, sign=True) for s in statistics),
                str(statistics[0]["n"]),
            )
            rows.append((index.nearest_of(effect["part"], **{effect["axis"]: row["value"]}), cells))
    head = ["axis", "change", "end to end", "the same, for all of these at once", "start delay", "alignment", "seeds"]
    return PageTable.of(
        "Paired differences from the axis's first value with checkpoints, ms, with 95 % intervals", head, rows, 2
    )


def _side_by_side(
    cells: Sequence[ResultRow], index: RunIndex
) -> list[tuple[str, list[str], list[tuple[str, list[tuple[str, str, str]]]]]]:
    """Return by measured job the run of each mode, and the compared rows: a statistic, and what each mode shows."""
    jobs: dict[str, list[tuple[str, list[tuple[str, str, str]]]]] = {}
    runs, of_job = _run_of_job(index), {}
    names = {(job.setup, job.mode): job.name for job in measured.load_measured()}
    for setup, words, row in measured.side_by_side(cells):
        jobs.setdefault(setup, []).append((words, [measured.shown(cell) for cell in row]))
        of_job[setup] = [runs.get(names.get((setup, mode), ""), "") for mode in measured.MODES]
    return [(setup, of_job[setup], rows) for setup, rows in jobs.items()]


def interval_text(interval: ResultRow, *, sign: bool = False) -> str:
    """An interval in words; a dash for a bound that it has not.

    >>> interval_text({"at": 3.0, "low": 2.0, "high": 4.0}), interval_text({"at": 3.0, "low": None, "high": None})
    ('3.0 (2.0 to 4.0)', '3.0 (– to –)')
    """
    low, high = (_n(interval[side], sign=sign) for side in ("low", "high"))
    return f"{_n(interval['at'], sign=sign)} ({low} to {high})"


def _n(value: float | None, *, sign: bool = False) -> str:
    return "–" if value is None else f"{value:{'+' if sign else ''}.1f}".replace("-0.0", "0.0").replace("+0.0", "0.0")


def words_of(parameters: Mapping[str, Any]) -> str:
    """Settings in words.

    >>> words_of({"load": 0.5, "skew": 2}), words_of({})
    ('load 0.5, skew 2', 'as it is')
    """
    return ", ".join(f"{name} {value}" for name, value in sorted(parameters.items())) or "as it is"


def own_scenarios(store: Store) -> set[str]:
    """The names of the scenarios that were files, of which the directory has copies."""
    return {file.stem for file in (store.directory / SCENARIOS).glob("*/*.toml")}


def example_of(analysis: ResultRow, own: Collection[str] = ()) -> str:
    """The arguments of `barrierlab run` for the first run of a shipped scenario; empty if there is none.

    Parameters
    ----------
    own : collection of str
        Names that are of files, be they those of shipped scenarios or not.
    """
    parts: Iterable[ResultRow] = analysis["sweep"]["parts"]
    shipped = all_shipped().keys() - set(own)
    for part, cell in ((p, c) for p in parts for c in analysis["cells"] if c["part"] == p["name"]):
        if cell["scenario"] not in shipped:
            continue
        return shlex.join([cell["scenario"], *set_options(cell["parameters"]), "--seed", str(part["seeds"][0])])
    return ""
