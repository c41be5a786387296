"""Reports of a check, for people and for machines: text, JSON, JUnit, Markdown, annotations of GitHub Actions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from rich.console import Console

from barrierlab.model.checkpoint.asked import BEYOND_DATAFLOWS
from barrierlab.model.checkpoint.capabilities import DIFFERENCES, EXTENT, READS_ON, RULES
from barrierlab.model.checkpoint.check import REFINES, Outcome, ScopeViolation, reach_of, verdict_of
from barrierlab.model.checkpoint.scripted_scopes import TELLS
from barrierlab.model.explore.checker import BROKEN, HOLDS, UNDECIDED
from barrierlab.model.spec.invariants import PREMISES
from barrierlab.sim.check.runner import CheckError, CheckPlan, states_of
from barrierlab.sim.check.sarif import place_of, steps_of
from barrierlab.sim.core.files import write
from barrierlab.sim.core.printed import say, table_of


def as_json(outcomes: Sequence[Outcome], chosen: CheckPlan) -> dict[str, Any]:
    """One object: the verdict, the scopes, the violations; of an external aligner, the judge and what is not asked.

    Of each scope also how many different things there were to judge, by invariant, and at how many places its faults
    could strike (`model.checkpoint.premises`); and over all of them what had nothing to judge, and which faults struck
    nothing.
    """
    keys = ("name", "protocol", "verdict", "states", "transitions", "seconds", "premises", "struck", "kept")
    reach = reach_of(outcomes)
    judged: dict[str, Any] = {}
    if chosen.judge:
        judged = {
            "judge": chosen.judge,
            "drains_first": chosen.drains_first,
            "not_asked": [
                {"name": each.name, "protocol": each.protocol, "capability": each.capability}
                for each in chosen.not_asked
            ],
            "left_out": list(chosen.left_out),
            "rules_not_asked": {} if chosen.judge == "table" else BEYOND_DATAFLOWS,
        }
    return {
        "verdict": verdict_of(outcomes),
        "scopes": [{key: getattr(outcome, key) for key in keys} for outcome in outcomes],
        "violations": [
            {key: getattr(each, key) for key in ("invariant", "scope", "steps", "reason", "reads_on")}
            for each in violations_of(outcomes)
        ],
        "vacuous": list(reach.vacuous),
        "vacuous_asked_for": list(reach.asked_for),
        "idle_faults": list(reach.idle),
        "falls_short": reach.falls_short,
        **judged,
    }


def violations_of(outcomes: Sequence[Outcome]) -> list[ScopeViolation]:
    """Return all violations: what a run breaks before what departs from table or scripted case, shortest run first."""
    found = [violation for outcome in outcomes for violation in outcome.violations]
    return sorted(found, key=lambda each: (each.invariant in (REFINES, TELLS), each.steps, each.scope))


def show(console: Console, outcomes: Sequence[Outcome], chosen: CheckPlan) -> None:
    """Show a line a protocol; what is undecided; the shortest counterexample whole, and the others in a line."""
    table = table_of(("protocol", "scopes", "states", "transitions", "seconds", "verdict"), ("protocol", "verdict"))
    for protocol in dict.fromkeys(outcome.protocol for outcome in outcomes):
        its = [outcome for outcome in outcomes if outcome.protocol == protocol]
        table.add_row(protocol, str(len(its)), *_sums(its), verdict_of(its))
    console.print(table)
    for outcome in outcomes:
        if outcome.verdict == UNDECIDED:
            console.print(f"undecided: {outcome.name}: {outcome.why}", highlight=False)
    for place, violation in enumerate(violations_of(outcomes)):
        shown = violation.trace if violation.trace and not place else line_of(violation)
        console.print(shown, highlight=False)
    say(console, *_reach_lines(outcomes), summary(outcomes, chosen))


def _sums(outcomes: Sequence[Outcome]) -> tuple[str, str, str]:
    return (
        f"{sum(outcome.states for outcome in outcomes):,}",
        f"{sum(outcome.transitions for outcome in outcomes):,}",
        f"{sum(outcome.seconds for outcome in outcomes):.1f}",
    )


def _reach_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a line for what a broken verdict may rest on, and for what a verdict says nothing of."""
    violations = violations_of(outcomes)
    if number := sum(each.reads_on for each in violations):
        yield f"hint: in {number} of {len(violations)} counterexamples {READS_ON}"
    if number := sum(outcome.kept for outcome in outcomes):
        yield f"kept: {number} of {len(outcomes)} verdicts, as nothing has changed on which they depend"
    reach = reach_of(outcomes)
    for name in reach.vacuous:
        yield f"vacuous: {name} had nothing to judge ({PREMISES[name]}: 0)"
    for name in reach.idle:
        scopes = [outcome.name for outcome in outcomes if name in outcome.struck]
        others = f" and in {len(scopes) - 1} others" if len(scopes) > 1 else ""
        yield f"struck nothing: {name}, in {scopes[0]!r}{others}"


def line_of(violation: ScopeViolation) -> str:
    """A violation in a line."""
    return f"! {violation.invariant}: {violation.reason} ({violation.scope}; {violation.steps} steps)"


def summary(outcomes: Sequence[Outcome], chosen: CheckPlan) -> str:
    """``verdict: holds (104 scopes, 312,345 states; vacuous: WM; struck nothing: timeout)``.

    Of an external aligner: ``verdict: holds for 7 of 16 scopes (2,178 states); not asked: aborts (rule 10), ...``.
    """
    scopes, total = len(outcomes), len(outcomes) + len(chosen.not_asked)
    counts = [f"{sum(outcome.states for outcome in outcomes):,} states"]
    for verdict in (BROKEN, UNDECIDED):
        if number := sum(outcome.verdict == verdict for outcome in outcomes):
            counts.append(f"{number} {verdict}")
    if number := sum(outcome.kept for outcome in outcomes):
        counts.append(f"{number} kept")
    reach = reach_of(outcomes)
    vacuous = f"; vacuous: {', '.join(reach.vacuous)}" if reach.vacuous else ""
    idle = f"; struck nothing: {', '.join(reach.idle)}" if reach.idle else ""
    verdict, text = verdict_of(outcomes), f"{', '.join(counts)}{vacuous}{idle}"
    if not chosen.not_asked:
        text = f"verdict: {verdict} ({scopes} scopes, {text})"
    elif verdict == HOLDS:
        text = f"verdict: {verdict} for {scopes} of {total} scopes ({text})"
    else:
        text = f"verdict: {verdict} ({scopes} of {total} scopes, {text})"
    if chosen.undeclared:
        rules = RULES | DIFFERENCES | EXTENT
        text += f"; not asked: {', '.join(f'{name} ({rules[name]})' for name in chosen.undeclared)}"
    if chosen.drains_first:
        text += "; of a loop that drains before it reads on (reads_on=False)"
    if chosen.judge == "dataflows":
        text += f"; no invariant of dataflows asks rules {', '.join(BEYOND_DATAFLOWS)}"
    return text


def junit(outcomes: Sequence[Outcome], chosen: CheckPlan) -> str:
    """A test suite, a case a scope: broken is a failure, undecided is an error, what is not asked is skipped.

    Properties of the suite are the version, what was asked, the counts, what was not asked for want of which
    capabilities, what had nothing to judge, and the faults that struck nothing.
    """
    suite = ET.Element(
        "testsuite",
        name="barrierlab check",
        tests=str(len(outcomes) + len(chosen.not_asked)),
        failures=str(sum(outcome.verdict == BROKEN for outcome in outcomes)),
        errors=str(sum(outcome.verdict == UNDECIDED for outcome in outcomes)),
        skipped=str(len(chosen.not_asked)),
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    )
    reach = reach_of(outcomes)
    properties = ET.SubElement(suite, "properties")
    found = {
        "version": version("barrierlab"),
        "implementation": chosen.implementation,
        "judge": chosen.judge,
        "scope": chosen.scope,
        "verdict": verdict_of(outcomes),
        "scopes": str(len(outcomes)),
        "states": str(sum(outcome.states for outcome in outcomes)),
        "transitions": str(sum(outcome.transitions for outcome in outcomes)),
        "kept": str(sum(outcome.kept for outcome in outcomes)),
        "not asked": ", ".join(chosen.undeclared),
        "vacuous": ", ".join(reach.vacuous),
        "struck nothing": ", ".join(reach.idle),
    }
    for name, value in found.items():
        ET.SubElement(properties, "property", name=name, value=value)
    for outcome in outcomes:
        case = ET.SubElement(
            suite, "testcase", classname=outcome.protocol, name=outcome.name, time=f"{outcome.seconds:.3f}"
        )
        for violation in outcome.violations:
            failure = ET.SubElement(case, "failure", type=violation.invariant, message=violation.reason)
            failure.text = violation.trace
        if outcome.verdict == UNDECIDED:
            ET.SubElement(case, "error", type=UNDECIDED, message=outcome.why)
    for each in chosen.not_asked:
        case = ET.SubElement(suite, "testcase", classname=each.protocol, name=each.name, time="0.000")
        ET.SubElement(case, "skipped", message=each.why)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def markdown(outcomes: Sequence[Outcome], chosen: CheckPlan) -> str:
    """Return Markdown for the summary page of a job."""
    lines = [f"### barrierlab: {summary(outcomes, chosen)}", "", "| protocol | scopes | states | seconds | verdict |"]
    lines.append("| --- | ---: | ---: | ---: | --- |")
    for protocol in dict.fromkeys(outcome.protocol for outcome in outcomes):
        its = [outcome for outcome in outcomes if outcome.protocol == protocol]
        states, _, seconds = _sums(its)
        lines.append(f"| {protocol} | {len(its)} | {states} | {seconds} | {verdict_of(its)} |")
    for outcome in outcomes:
        if outcome.verdict == UNDECIDED:
            lines += ["", f"Undecided: {outcome.name}: {outcome.why}"]
    for line in _reach_lines(outcomes):
        lines += ["", line]
    for name in chosen.undeclared:
        names = [each.name for each in chosen.not_asked if each.capability == name]
        names += ["what needs it of each gate"] if name in chosen.left_out else []
        lines += ["", f"Not asked, {'for want of' if name in RULES else 'because of'} {name}: {'; '.join(names)}"]
    for place, violation in enumerate(violations_of(outcomes)):
        lines += ["", f"**{violation.invariant}**: {violation.reason} ({violation.scope}; {violation.steps} steps)"]
        if violation.trace and not place:
            lines += ["", "```", violation.trace.rstrip("\n"), "```"]
    return "\n".join(lines) + "\n"


def workflow_commands(outcomes: Sequence[Outcome], chosen: CheckPlan) -> Iterator[str]:
    """Commands of GitHub Actions: an error a violation, with the first move of its run; a warning for what is open.

    Both are at the class statement of the external class, if there is one.
    """
    place = place_of(chosen)
    at = "" if place is None else f"file={_property(place.file)},line={place.line},"
    for violation in violations_of(outcomes):
        text = "\n".join([line_of(violation).removeprefix("! "), *steps_of(violation.trace)[:1]])
        yield f"::error {at}title={_property(violation.invariant)}::{_data(text)}"
    for outcome in outcomes:
        if outcome.verdict == UNDECIDED:
            yield f"::warning {at}title={UNDECIDED}::{_data(f'{outcome.name}: {outcome.why}')}"
    if verdict_of(outcomes) == HOLDS:
        yield f"::notice title=barrierlab::{_data(summary(outcomes, chosen))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


MOST_WITH_STATES = 5
"""Of how many counterexamples the states around them are explored: it takes a second or two each."""

KEPT = "counterexamples.json"
"""The names of the files that `save` has written into its folder."""


def save(outcomes: Sequence[Outcome], directory: Path, chosen: CheckPlan) -> list[Path]:
    """Write each counterexample: a trace and, where it can be drawn, a picture and a page; return what was written.

    In the pages of the shortest ones (`MOST_WITH_STATES`) other moves than theirs can be taken.

    Those that an earlier check left in the folder are removed: after a repair none stays beside a verdict that holds.
    """
    from barrierlab.model.checkpoint.trace import TraceError
    from barrierlab.model.render.svg import TooLongError
    from barrierlab.sim.cli.show import Shown

    for name in _names(directory / KEPT):
        (directory / name).unlink(missing_ok=True)
    written: list[Path] = []
    drawn = 0
    for number, violation in enumerate(violations_of(outcomes), 1):
        if not violation.trace:
            continue
        path = directory / f"{number:02d}_{violation.invariant}.trace"
        write(path, violation.trace, CheckError, "--save")
        written.append(path)
        try:
            shown = Shown(path, None)
            picture = shown.as_svg()
        except (TraceError, TooLongError, ValueError):
            continue  # what happens at one gate has no channels to draw
        graph = states_of(chosen, violation, shown.entries) if drawn < MOST_WITH_STATES else None
        drawn += 1
        for suffix, text in ((".svg", picture), (".html", shown.page_with(graph))):
            written.append(path.with_suffix(suffix))
            write(written[-1], text, CheckError, "--save")
    write(directory / KEPT, json.dumps([path.name for path in written]), CheckError, "--save")
    return written


def _names(path: Path) -> list[str]:
    """The file names listed in `path`; none if it cannot be read, or names anything but a file beside it."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [name for name in names if isinstance(name, str) and re.fullmatch(r"\d+_\w+\.(trace|svg|html)", name)]
