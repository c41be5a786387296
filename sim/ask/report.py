"""The report on an answer: a directory with the page, the answer as JSON, and its runs, which `rerun` makes again."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from barrierlab.model.join.invariants import JOIN_INVARIANTS
from barrierlab.model.spec.invariants import INVARIANTS, MEANING, RUN_INVARIANTS
from barrierlab.sim.ask.analyses import INTERVALS
from barrierlab.sim.ask.answer import Answer, text_of
from barrierlab.sim.ask.bench import Bench, Number, QuestionError
from barrierlab.sim.ask.facts import Facts
from barrierlab.sim.ask.levers import LEVERS, Changes
from barrierlab.sim.ask.pictures import PICTURES, rows_of
from barrierlab.sim.ask.question import QUESTIONS
from barrierlab.sim.core.amounts import percent
from barrierlab.sim.core.files import check_writable, write
from barrierlab.sim.sweep import figures
from barrierlab.sim.sweep.join.report import drawn_of_join
from barrierlab.sim.sweep.page import PageTable, Section, figure_of, render_page
from barrierlab.sim.sweep.report import DRAWN, FIRST, LAST, words_of
from barrierlab.sim.sweep.rerun import ANSWER
from barrierlab.sim.sweep.run_drawings import JOB_WORDS, Drawn, checkpoint_of, drawn_again, job_of
from barrierlab.sim.sweep.store import keep_scenarios, versions

FOUND: tuple[Section, ...] = (("change", "What would change it"), ("numbers", "Numbers"))
SECTIONS = (*FIRST, *FOUND, *LAST)
"""The sections of every answer; those of what is drawn stand behind the first two."""
REPORT = "report.html"


def make_room(directory: Path) -> None:
    """Make the directory of an answer, before the first run of it.

    Raises
    ------
    QuestionError
        If something else is there, or it cannot be written.
    """
    try:
        if directory.exists() and any(directory.iterdir()) and not (directory / ANSWER).is_file():
            raise QuestionError(f"--out {directory} holds something else than an answer: name another directory")
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise QuestionError(f"--out {directory}: {error.strerror or error}: name another directory") from None
    for name in (ANSWER, REPORT):
        check_writable(directory / name, QuestionError, "--out")


def keep(answer: Answer, bench: Bench, directory: Path) -> Path:
    """Write an answer with its runs and its report into a directory that is there; the path of the report.

    Raises
    ------
    QuestionError
        If it cannot be written.
    """
    try:
        if bench.source.endswith(".toml"):
            keep_scenarios(directory, [Path(bench.source)])
    except OSError as error:
        raise QuestionError(f"--out {directory}: {error.strerror or error}: name another directory") from None
    runs = [_row(run_id, settings, facts, bench) for run_id, settings, facts in bench.kept()]
    kept = {**answer.as_json(), "runs_made": runs, "versions": versions()}
    write(directory / ANSWER, json.dumps(kept, indent=1, allow_nan=False) + "\n", QuestionError, "--out")
    write(directory / REPORT, page(answer, bench, directory), QuestionError, "--out")
    return directory / REPORT


def _row(run_id: str, settings: Mapping[str, Any], facts: Any, bench: Bench) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "part": "",
        "scenario": bench.scenario.name,
        "parameters": json.dumps(settings, sort_keys=True),
        "seed": facts.seed,
        "status": "OK",
        "verdict": facts.verdict,
        "journal_digest": facts.digest,
    }


def page(answer: Answer, bench: Bench, directory: Path) -> str:
    """Return the report on an answer that is in `directory`, as HTML."""
    question, runs = answer.question, bench.kept()
    chart, words = PICTURES[question.analysis["name"]](bench, question.analysis, answer.found)
    behind = PageTable.of(
        "Points of the figure", ["series", chart.x or "variant", chart.y, "from, to"], rows_of(chart), 1
    )
    drawn = (drawn_join_of if question.of_joins else drawn_of)(bench, shown_changes(answer), directory)
    verdicts = Counter(facts.verdict for _, _, facts in runs)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    command = ["barrierlab", "ask", question.name, "--scenario", bench.source, "--out", directory.name]
    commands = [shlex.join(command if bench.source != question.scenario else [*command[:3], *command[5:]])]
    if runs:
        commands.append(f"barrierlab rerun {shlex.quote(directory.name)} {runs[0][0]}   # any run of this page")
    return render_page(
        "answer.html.j2",
        (*FIRST, *((d.id, d.title) for d in drawn), *SECTIONS[len(FIRST) :]),
        title=f"{question.name}: {question.question}",
        about=f"An answer from {len(runs)} simulated runs of {bench.scenario.name}, each judged by the invariants.",
        question=question.question,
        asked=PageTable(
            "What was asked",
            ["of", "asked in public", "held right by"],
            [(bench.scenario.title, question.asked, question.oracle)],
            3,
        ),
        answer=[answer.sentence, *(f"Note: {note}." for note in answer.notes)],
        shown=figure_of(partial(figures.chart, chart), "answerfigure", words, behind),
        drawn=drawn,
        change=answer.change,
        moves=_moves(answer),
        numbers=_numbers(answer),
        verdict=f"0 violations in {len(runs)} runs",
        is_bad=False,
        history=f"Each run's whole history was judged: {counted}. A run that breaks an invariant ends the question.",
        invariants=_invariants(runs, question.of_joins),
        violations=PageTable("Violations", [], []),
        stopped="",
        errors=PageTable("Runs that stopped", [], []),
        commands="\n".join(commands),
        versions=PageTable("Versions", ["software", "version"], list(versions().items()), 2),
        text_of="The question, as it is asked",
        text=(QUESTIONS / f"{question.name}.toml").read_text(encoding="utf-8"),
        runs=PageTable.of(
            "All runs",
            ["settings", "seed", "verdict", "digest of its journal"],
            [(run, (words_of(settings), f.seed, f.verdict, f.digest)) for run, settings, f in runs],
        ),
    )


def _moves(answer: Answer) -> PageTable:
    rows = [
        (LEVERS[m.lever][0] if m.lever in LEVERS else m.lever, percent(m.factor - 1, sign=True), text_of(m.by))
        for m in answer.moves
    ]
    head = ["what", "by", "the answer's number changes by"]
    return PageTable("Seed by seed; intervals hold for all of these at once (Bonferroni)", head, rows, 2)


def _numbers(answer: Answer) -> PageTable:
    rows = [
        (
            name.replace("_", " "),
            text_of(each) if isinstance(each, Number) else each,
            each.n if isinstance(each, Number) else "",
        )
        for name, each in answer.found.numbers.items()
    ]
    return PageTable(
        "The numbers of the answer, the first is the one that it ends in", ["number", "value", "runs"], rows, 2
    )


def _invariants(runs: Sequence[tuple[str, Any, Facts]], of_joins: bool) -> PageTable:
    meaning = JOIN_INVARIANTS if of_joins else MEANING
    rows = []
    for name in JOIN_INVARIANTS if of_joins else (*INVARIANTS, *RUN_INVARIANTS):
        judged = [run for run, _, facts in runs if name not in facts.vacuous]
        rows.append((judged[0] if judged else "", (name, meaning.get(name, ""), len(judged), 0)))
    head = ["invariant", "holds when", "runs with something to judge", "violations"]
    return PageTable.of("Violations by invariant, and a run that had something to judge", head, rows, 2)


def shown_changes(answer: Answer) -> Changes:
    """Return the changes of the runs that are drawn: the first variant, or the one at a crossing, or the last."""
    options = answer.question.analysis
    if options["name"] == "barriers":
        advised = answer.found.case if answer.found.case != "none" else answer.found.rows[-1]["barrier"]
        return {"barrier": advised, **options.get("at", {})}
    if options["name"] == "interval":
        return {"checkpoint.interval_s": float(f"{answer.found.rows[len(INTERVALS) // 2]['interval_s']:.6g}")}
    if options["name"] == "growth":
        return {**options.get("at", {}), options["lever"]: options["values"][-1]}
    if options["name"] != "crossover":
        return {**options.get("at", {}), **options.get("a", {})}
    lever = options["lever"]
    value = min((row[lever] for row in answer.found.rows), key=lambda x: abs(x - answer.found.answer.at))
    return {**options.get("at", {}), lever: round(value) if options.get("whole") else float(f"{value:.6g}")}


def drawn_join_of(bench: Bench, changes: Changes, directory: Path) -> list[Drawn]:
    """Return the join of the run with these changes whose wait is in the middle, its median output, and its worst."""
    runs = [facts for facts in bench.known(changes) if facts.join is not None and facts.join.wait_p99_ms is not None]
    if not runs:
        return []
    facts = sorted(runs, key=lambda each: each.join.wait_p99_ms if each.join and each.join.wait_p99_ms else 0.0)
    middle = facts[len(facts) // 2]
    of_run = f"{bench.scenario.name}, {words_of(changes)}, seed {middle.seed}"
    return drawn_of_join(directory, bench.run_id(changes, middle.seed), of_run)


def drawn_of(bench: Bench, changes: Changes, directory: Path) -> list[Drawn]:
    """The job of the runs with these changes, a typical checkpoint of them, and the worst."""
    runs = [facts for facts in bench.known(changes) if facts.durations_ms]
    if not runs:
        return []
    every = sorted(duration for facts in runs for duration in facts.durations_ms)
    of_many = f"of {len(every)} steady checkpoints of {bench.scenario.name} ({words_of(changes)}), {len(runs)} runs"

    def drawn(section: Section, at_ms: float, which: str, above: Mapping[Section, str]) -> list[Drawn]:
        """Return the checkpoint that takes so long, behind the sections on the job of its run."""
        facts = min(runs, key=lambda each: min(abs(d - at_ms) for d in each.durations_ms))
        run_id = bench.run_id(changes, facts.seed)

        def draw(result: Any) -> list[Drawn]:
            rows = [
                row
                for row in result.checkpoint_rows()
                if row["steady"]
                and row["status"] == "COMPLETED"
                and row["end_to_end_duration_ms"] in facts.durations_ms
            ]
            row = min(rows, key=lambda row: abs(row["end_to_end_duration_ms"] - at_ms))
            words = (
                f"{which} {of_many}: checkpoint {row['checkpoint_id']} under seed {facts.seed}. "
                f"It took {row['end_to_end_duration_ms']:.1f} ms."
            )
            jobs = [job_of(job, result, run_id, said) for job, said in above.items()]
            return [*jobs, checkpoint_of(section, result, row["checkpoint_id"], run_id, words)]

        return drawn_again(directory, run_id, {**above, section: f"{which} {of_many}."}, draw)

    return [
        *drawn(DRAWN[1], every[len(every) // 2], "The median", {DRAWN[0]: JOB_WORDS}),
        *drawn(DRAWN[2], every[-1], "The longest", {}),
    ]
