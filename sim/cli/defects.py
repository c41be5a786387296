"""The command `defects`: runs the catalogue of what goes wrong, and prints its page."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from barrierlab.model.defects.catalogue import CAUGHT, DOCUMENTS, LISTED, MISSED, UNSOUND, CatalogueEntry, catalogue
from barrierlab.model.defects.engines.kind import STANDINGS, EngineEntry
from barrierlab.model.defects.kinds.barrier import BarrierDefect
from barrierlab.model.defects.kinds.found import Found
from barrierlab.model.errors import InputError
from barrierlab.model.spec.topology import suggestion
from barrierlab.sim.core.printed import table_of
from barrierlab.sim.core.status import HOLDS, UNDECIDED, VIOLATION, stdout_console
from barrierlab.sim.sweep.progress import ProgressWatch


class DefectsError(InputError):
    """An entry that there is not: one line, with what to do."""


@dataclass(frozen=True, slots=True)
class DefectRow:
    """The result of running an entry."""

    entry: CatalogueEntry
    status: str
    found: Found

    def as_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        entry, defect = self.entry, self.entry.defect
        of_engines = {}
        if isinstance(entry, EngineEntry):
            of_engines = {"row": entry.row, "reports": list(entry.reports), "standing": entry.standing}
        return {
            "name": entry.name,
            "id": entry.id,
            "document": entry.document,
            "invariant": None if defect is None else defect.breaks,
            "status": self.status,
            "steps": self.found.steps,
            "states": self.found.states,
            "seconds": round(self.found.seconds, 3),
            **of_engines,
        }


@click.command("defects")
@click.argument("names", nargs=-1, metavar="[NAME|ID]...")
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="The page of the catalogue, with the matrix of detectors."
)
@click.option("--json", "json_wanted", is_flag=True, help="A JSON list on stdout.")
@click.option("--engines", is_flag=True, help="The second catalogue: public reports about engines, each as a scheme.")
def defects_command(names: tuple[str, ...], as_markdown: bool, json_wanted: bool, engines: bool) -> None:
    """Run the catalogue: the protocols at their documents' word, each with the shortest run in which that goes wrong.

    An entry is caught if it breaks the invariant that it names, and the sound protocol, in the same scope, none. With
    one NAME or ID its page and its counterexample are printed. One that is missed leaves the catalogue undecided; a
    violation is what the sound protocol breaks. With --engines it is the catalogue of public reports about engines,
    where sound is the scheme as it was repaired; its ids, such as FLINK-1775, are known without the option, too.

    Example: barrierlab defects A-04
    """
    chosen = _chosen(names, engines)
    rows = []
    with ProgressWatch(len(chosen), what="entries") as watch:
        for done, entry in enumerate(chosen, 1):
            rows.append(DefectRow(entry, *entry.run()))
            watch.tick(done)
    if json_wanted:
        click.echo(json.dumps([row.as_json() for row in rows], indent=2))
    elif as_markdown:
        click.echo("\n".join(engine_page(rows) if engines else page(rows)))
    elif len(names) == 1:
        for row in rows:
            _show_one(row)
    else:
        _show_all(rows)
    found = {row.status for row in rows}
    sys.exit(VIOLATION if UNSOUND in found else UNDECIDED if MISSED in found else HOLDS)


def _chosen(names: Sequence[str], engines: bool) -> list[CatalogueEntry]:
    names = [name.upper() if re.fullmatch(r"[a-z]-\d+", name) else name for name in names]  # a-04 is A-04
    entries: tuple[CatalogueEntry, ...] = () if engines else catalogue()
    if engines or not {*names} <= _words(entries).keys():
        from barrierlab.model.defects.engines.catalogue import (
            reports,  # which looks at a dozen aligners, and takes a moment
        )

        entries += reports()
    if not names:
        return list(entries)
    known = _words(entries)
    for name in names:
        if name not in known:
            raise DefectsError(f"there is no defect {name!r}; {suggestion(name, list(known))}")
    return [entry for entry in entries if entry.id in names or entry.name in names]


def _words(entries: Sequence[CatalogueEntry]) -> dict[str, None]:
    """Return the names that an entry can be called by, in order."""
    return dict.fromkeys(word for entry in entries for word in (entry.id, entry.name))


def _show_one(row: DefectRow) -> None:
    click.echo(f"{row.entry.id} {row.entry.name}: {row.entry.document}: {row.status}\n\n{row.entry.page}\n")
    if row.found.trace:
        click.echo(row.found.trace)


def _show_all(rows: Sequence[DefectRow]) -> None:
    names = ("id", "name", "breaks", "steps", "states", "status")
    table = table_of(names, {*names} - {"steps", "states"})
    for row in rows:
        defect = row.entry.defect
        counts = (str(row.found.steps or ""), str(row.found.states or ""))
        table.add_row(row.entry.id, row.entry.name, "" if defect is None else defect.breaks, *counts, row.status)
    stdout_console().print(table)
    click.echo(summary(rows))


def summary(rows: Sequence[DefectRow]) -> str:
    """Return a line such as ``97 of 97 that can be run are caught; 13 are listed``."""
    run = [row for row in rows if row.status != LISTED]
    caught = sum(row.status == CAUGHT for row in run)
    return f"{caught} of {len(run)} that can be run are caught; {len(rows) - len(run)} are listed"


# The page.


def page(rows: Sequence[DefectRow], all_detectors: bool = True) -> Iterator[str]:
    """`docs/defects.md`; only what the explorer catches, if not `all_detectors` are to look."""
    yield "# What goes wrong when the documents are taken at their word"
    yield ""
    yield "Each entry is a protocol as a document words it, kept beside the sound one so that its failure can be seen."
    yield "This page is printed by `barrierlab defects --markdown`; `barrierlab defects A-04` prints one entry and its"
    yield "shortest counterexample, which is kept beside it as `NAME.trace`."
    yield ""
    yield f"{summary(rows)}."
    yield ""
    yield from _matrix(rows, all_detectors)
    for letter, document in DOCUMENTS.items():
        its = [row for row in rows if row.entry.id[0] == letter]
        if its:
            yield f"## {document[0].upper()}{document[1:]}"
            yield ""
            for row in its:
                yield from _section(row)


_ENGINE_HEAD = """\
# Real engines, real bugs

Public reports of what went wrong in engines that run in the world, each as a scheme of a few lines, written from what
the report says; no code was taken. A scheme is broken as reported and holds as repaired, in the same scope. It says
nothing about the code of an engine as it is today. Where a report is a remark in a review, from a pull request that is
not merged, open or latent, that stands beside it. The repair is the report's where that names one, and otherwise one
with which the scheme holds. The steps are those of a shortest run: of the explored dataflow for rows 1, 10, 13, 17, 18
and 21, of the scheme itself for the others.

This page is printed by `barrierlab defects --engines --markdown`; `barrierlab defects FLINK-1775` prints one entry with
its run, which is kept as `traces/FLINK-1775.trace` beside the schemes.
"""

_SOUND_HEAD = """\
## Sound schemes beside them

These hold in every dataflow of `barrierlab check --scope small` that they declare to take part in (slow tests explore
them). Storm's checkpoint tuples, row 21, lose nothing there, which is enough for at least once.
"""


def engine_page(rows: Sequence[DefectRow]) -> Iterator[str]:
    """`docs/engines.md`."""
    from barrierlab.model.defects.engines.catalogue import SOUND

    yield _ENGINE_HEAD
    yield f"{summary(rows)}."
    yield ""
    yield "| row | entry | engine | reports | what went wrong | breaks | steps | repair |"
    yield "| ---: | --- | --- | --- | --- | --- | ---: | --- |"
    for row in rows:
        entry = row.entry
        assert isinstance(entry, EngineEntry)
        assert entry.defect is not None
        links = ", ".join(f"[{link.rpartition('/')[2]}]({link})" for link in entry.reports)
        standing = "" if entry.standing == "repaired" else f" ({STANDINGS[entry.standing]})"
        yield (
            f"| {entry.row} | {entry.id} | {entry.engine} | {links}{standing} | {entry.wrong} | {entry.defect.breaks} "
            f"| {row.found.steps} | {entry.repair} |"
        )
    yield ""
    yield _SOUND_HEAD
    yield from (f"* {name}: {', '.join(modes)}" for name, (_, modes) in SOUND.items())
    yield ""


def _section(row: DefectRow) -> Iterator[str]:
    entry = row.entry
    if entry.defect is None:
        yield f"### {entry.id}: listed"
        yield ""
        yield entry.page
    else:
        yield f"### {entry.id}: {entry.title}"
        yield ""
        yield f"`{entry.name}`, {entry.defect.kind}; breaks {entry.defect.breaks}"
        before = ""
        for line in entry.page.split("\n")[1:]:
            if line and not line.startswith(" "):  # a heading
                yield from (*([""] if before else []), f"**{line}**", "")
            else:
                yield line.strip()
            before = line
    yield ""


def _matrix(rows: Sequence[DefectRow], all_detectors: bool) -> Iterator[str]:
    yield "## Who catches what"
    yield ""
    yield "Explorer: moves of the shortest run, states that were seen until it was found, its seconds; of a few calls,"
    yield "lines of what came of them. Hypothesis: at which of 300 random runs one broke something, and the moves of"
    yield "the smallest. Simulation: the shipped scenario and the seed with which an invariant breaks, or an error is"
    yield "raised, of 2 and 5 that are tried. A dash: looked for and not found; empty: it does not apply."
    yield ""
    yield "| entry | breaks | explorer: steps | states | seconds | Hypothesis: run | steps | simulation |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"
    for row in rows:
        if row.entry.defect is not None:
            random, simulated = ("", ""), ""
            if all_detectors:
                random, simulated = _random(row.entry), _simulated(row.entry)
            title = row.entry.name.partition("_")[2].replace("_", " ")
            yield (
                f"| {row.entry.id} {title} | {row.entry.defect.breaks} | {row.found.steps} "
                f"| {row.found.states or ''} | {row.found.seconds:.2f} | {random[0]} | {random[1]} | {simulated} |"
            )
    yield ""


def _random(entry: CatalogueEntry) -> tuple[str, str]:
    """Catch it by random runs of the entry's own scope."""
    from barrierlab.sim.check.random_runs import by_random_runs

    if not isinstance(entry.defect, BarrierDefect):
        return "", ""
    found = by_random_runs(entry.defect)
    return (str(found.runs), str(found.steps)) if found.runs else ("-", "-")


_SCENES: dict[str, tuple[dict[str, str], int]] = {
    "crash_and_recover": ({}, 2),
    "survive_anything": ({"shape": "join"}, 5),
}
"""Shipped scenarios in which a defect is looked for: their settings but the mode, and with how many seeds."""


def _simulated(entry: CatalogueEntry) -> str:
    """Catch it by a shipped scenario, with some seeds."""
    from barrierlab.sim.checkpoint.result import run
    from barrierlab.sim.scenario.load import load

    if not isinstance(entry.defect, BarrierDefect):
        return ""
    for name, (settings, seeds) in _SCENES.items():
        scenario = load(name, {"mode": entry.defect.bounds.mode, **settings})
        for seed in range(1, seeds + 1):
            try:
                result = run(scenario, seed, components=entry.defect.components)
            except Exception as error:  # whatever broken code raises in the middle of a run
                return f"{name} {seed}: {type(error).__name__}"
            if result.violations:
                return f"{name} {seed}: {result.violations[0].invariant}"
    return "-"
