"""The display of results, scenarios, checks, defects and sweeps: in a line, in a notebook, as pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from jinja2 import Environment, PackageLoader
from matplotlib.colors import to_hex

from barrierlab.model.checkpoint.check import Outcome, ScopeViolation
from barrierlab.model.checkpoint.components import SOUND
from barrierlab.model.defects.catalogue import CatalogueEntry, catalogue
from barrierlab.model.render import palette
from barrierlab.model.render.html import MOST_ROWS, table
from barrierlab.model.render.spacetime import SpaceTime
from barrierlab.model.render.trace_picture import PART, kind_of_trace, lay_out_other, picture_of
from barrierlab.model.spec.topology import Topology
from barrierlab.model.suites.standard import SCOPES
from barrierlab.sim import load, run
from barrierlab.sim.advise.advice import advise
from barrierlab.sim.advise.pieces import Pieces
from barrierlab.sim.ask.analyses import Analysed
from barrierlab.sim.ask.answer import Answer
from barrierlab.sim.ask.bench import Number
from barrierlab.sim.ask.question import Question
from barrierlab.sim.sweep import SweepTables
from barrierlab.sim.sweep.page import PageTable
from barrierlab.sim.sweep.run_drawings import checkpoint_of

RUNS = {"diamond": {"until_s": 4.5}, "lockstep_cameras": {"until_s": 4.0}, "graceful_shutdown": {"until_s": 12.0}}
VOID = {"meta", "br", "hr"}


class Tags(HTMLParser):
    """Return whether tags are closed in their order, and what is written between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        """Nothing is open after it."""

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def entry(name: str) -> CatalogueEntry:
    """An entry of the catalogue."""
    return next(each for each in catalogue() if each.id == name)


def checked() -> Iterator[Outcome]:
    """One scope that holds, and what a broken one would be."""
    yield next(iter(SCOPES["tiny"]())).check(SOUND, None)
    found = entry("A-04").defect
    assert found is not None
    violation = ScopeViolation("CUT", "a <scope>", 13, "a1 is an orphan", found.as_documented().trace)
    yield Outcome("a <scope>", "aligned", "broken", "always: CUT", 12, 34, 0.5, (violation,))
    yield Outcome(
        "another", "aligned", "broken", "x", 1, 1, 0.5, (ScopeViolation("TABLE", "another", 1, "it differs"),)
    )


def an_answer() -> Answer:
    """An answer of two numbers."""
    found = Analysed({"duration": Number(12.0, 11.0, 13.0, "ms", 5)}, "one", rows=[{"mode": "aligned", "ms": 12.0}])
    question = Question("Q0", "How long does a <checkpoint> take?")
    return Answer(question, "diamond", "one", "It takes 12 ms.", "Nothing changes it.", found, (), ("a note",), 5)


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """Every kind of thing that shows itself, by the beginning of its line."""
    found: dict[str, Any] = {}
    for name, settings in RUNS.items():
        scenario = load(name, settings)
        result = run(scenario, seed=1)
        found |= {repr(scenario): scenario, repr(result): result}
    result = run(load("diamond", RUNS["diamond"]), seed=1)
    topology = Topology.parse("a->b b->c", {"b": 3})
    defect = entry("S-01").defect
    assert defect is not None
    others = [
        result.critical_path(),
        topology,
        load("graceful_shutdown").wiring,
        *checked(),
        entry("A-04"),
        entry("X-01"),
    ]
    runs = pd.DataFrame([{"part": "p", "verdict": verdict, "violations": 0} for verdict in ("holds", "undecided")])
    pieces = Pieces(0.5, 1.0, 2.0, 3.0, 4.0, 0.5, "sink", 0.0, False, "", 10, 0, 1.0, (), ())
    others += [result.witness(2), advise(pieces, 3600.0, 10.0), an_answer()]
    others += [defect.as_documented(), SweepTables({"runs": runs, "tasks": pd.DataFrame()})]
    return found | {repr(each): each for each in others}


LINES = """\
<Scenario: diamond, aligned, 4.5 s: A barrier through a diamond>
<Result: diamond, seed 1: holds; 2 of 2 checkpoints completed in 4.5 s>
<JoinScenario: lockstep_cameras, sequence, 4 s: lockstep cameras>
<ControlScenario: graceful_shutdown, along, 12 s: A graceful shutdown>
<Topology: a->b b->c; b=3>
<Outcome: aligned: a->s; events 1, checkpoints 1; no fault: holds, 13 states>
<Outcome: a <scope>: broken, 12 states; CUT: a1 is an orphan>
<CatalogueEntry: A-04: The barrier leaves behind the records that waited behind it>
<Answer: Q0, diamond: It takes 12 ms.>
<SweepTables: undecided, in 1 of 2 runs; rows: runs 2>
""".splitlines()


@pytest.mark.parametrize("line", LINES)
def test_a_thing_is_named_in_a_line(line: str, shown: dict[str, Any]) -> None:
    """A debugger, a log and a failing test would print a page of fields, or an address in memory."""
    assert line in shown


def test_no_line_is_a_page(shown: dict[str, Any]) -> None:
    """The same, of those that change from version to version."""
    assert len(shown) == 19
    assert all(line.startswith("<") and "\n" not in line and len(line) < 160 for line in shown)


def test_each_shows_itself_in_a_notebook(shown: dict[str, Any]) -> None:
    """A cell that ends in a result would show a line, where a table or a picture is wanted."""
    for line, each in shown.items():
        words = Tags(each._repr_html_()).words
        assert words, line
        assert "None" not in words, line
        assert not re.search(r"\bon\w+=|<script", each._repr_html_()), line


def test_what_a_name_has_in_it_is_text(shown: dict[str, Any]) -> None:
    """The name of a scope or a task could end the table that it stands in."""
    (outcome,) = (each for line, each in shown.items() if "a <scope>" in line)
    assert "<scope>" not in outcome._repr_html_()
    assert "a &lt;scope&gt;" in outcome._repr_html_()


def test_a_counterexample_has_its_picture(shown: dict[str, Any]) -> None:
    """A check in a notebook would say that something is broken, and not how."""
    (outcome,) = (each for line, each in shown.items() if "a <scope>" in line)
    assert "a1 orphan" in Tags(outcome._repr_html_()).words
    assert outcome.violations[0].picture().startswith("<svg")
    (other,) = (each for line, each in shown.items() if line.startswith("<Outcome: another"))
    assert "svg" not in other._repr_html_()


def test_styles_of_a_picture_are_its_own() -> None:
    """The letters of all other pictures in a page would change with it."""
    result = run(load("lockstep_cameras", RUNS["lockstep_cameras"]), seed=1)
    (style,) = re.findall(r"<style>(.*?)</style>", result.spacetime())
    assert all(rule.startswith(".brl-picture ") for rule in style.split("}")[:-1])


@pytest.mark.parametrize("name", RUNS)
def test_every_result_has_its_pictures(name: str) -> None:
    """A join or a run of control signals could be read as numbers only."""
    result = run(load(name, RUNS[name]), seed=1)
    for figure in (result.timeline(), result.queues()):
        (axes, *_) = figure.axes
        assert axes.get_xlabel().split(",")[-1].strip().split(" ")[0] in ("ms", "s")
        assert axes.has_data()
    picture = result.spacetime()
    if name != "diamond":
        assert ET.fromstring(picture).tag.endswith("svg")
        assert picture._repr_svg_() == picture


@pytest.mark.parametrize("mode", ["aligned", "unaligned"])
def test_a_timeline_shows_the_alignment_that_the_table_has(mode: str) -> None:
    """An unaligned task cuts at its first barrier: in a notebook it would have no alignment, and in the report one."""
    result = run(load("flink_chain", {"mode": mode, "until_s": 12.0}), seed=1)
    last = result.checkpoints["checkpoint_id"].max()
    rows = result.tasks.query("checkpoint_id == @last")["alignment_ms"]
    (axes,) = result.timeline(int(last)).axes
    drawn = [bar for bars in axes.containers for bar in bars if to_hex(bar.get_facecolor()) == palette.ALIGNMENT]
    assert sorted(round(bar.get_width(), 6) for bar in drawn if bar.get_width()) == sorted(
        round(each, 6) for each in rows if each
    )
    assert rows.max() > 0.0


FRAMES = {"diamond": ("checkpoints", "tasks", "recoveries", "events"), "lockstep_cameras": ("outputs",)}
FRAMES["graceful_shutdown"] = ("barriers", "alignments")
WITHOUT = {
    *("checkpoint_id", "subtask", "steady", "attempt", "starts", "events_replayed", "out", "left", "right", "id"),
    "barriers",
}
"""Columns of numbers that are counted, or name something."""


@pytest.mark.parametrize("name", FRAMES)
def test_a_column_of_a_frame_names_its_unit(name: str) -> None:
    """A reader would take milliseconds for seconds."""
    result = run(load(name, RUNS[name]), seed=1)
    for frame in (getattr(result, each) for each in FRAMES[name]):
        for column, kind in frame.dtypes.items():
            if kind.kind in "if" and frame[column].notna().any():
                assert column in WITHOUT or re.search(r"_(ms|ns|s|bytes)$", str(column)), column


def laid_out(name: str) -> SpaceTime:
    """The journal of a run, laid out."""
    return lay_out_other(run(load(name, RUNS[name]), seed=1).trace())


def test_the_frames_of_a_join_are_arrows_that_wait_for_each_other() -> None:
    """The picture would not show what a join is about."""
    drawn = laid_out("lockstep_cameras")
    assert drawn.processes == ("stream 1", "stream 2", "join")
    used = [arrow for arrow in drawn.arrows if arrow.applied is not None]
    outputs = [mark for mark in drawn.marks if mark.kind == "snapshot"]
    assert len(used) == 2 * len(outputs)
    for mark in outputs:
        frames = [arrow for arrow in used if arrow.applied == mark.step]
        assert {arrow.sender for arrow in frames} == {"stream 1", "stream 2"}
        assert {f"out {arrow.message}" for arrow in frames} == {mark.text}
        assert all(arrow.taken is not None and arrow.taken < mark.step for arrow in frames)


def test_a_signal_is_complete_where_every_copy_is_there() -> None:
    """The bar would be drawn where the signal has not come from everywhere."""
    drawn = laid_out("graceful_shutdown")
    assert drawn.processes[0] == "head"
    for mark in drawn.marks:
        if mark.kind == "snapshot":
            copies = [a for a in drawn.arrows if a.receiver == mark.process and a.message == mark.text]
            assert copies
            assert all(a.taken is not None and a.taken < mark.step for a in copies)


def test_a_long_trace_is_drawn_where_it_matters() -> None:
    """A picture of ten thousand steps would show the first ones, in which nothing happens."""
    whole = laid_out("graceful_shutdown")
    part = whole.part(PART)
    assert len(part.times_ns) == PART < len(whole.times_ns)
    assert any(arrow.kind == "ControlSignal" for arrow in part.arrows)


def test_a_report_has_the_run_around_a_checkpoint_to_explore() -> None:
    """A report would show its worst checkpoint as bars, and not what happened in it."""
    result = run(load("diamond", RUNS["diamond"]), seed=1)
    drawn = checkpoint_of(("worst", "The worst checkpoint"), result, 2, "cafe01", "It took long.")
    assert drawn.explorable.startswith('<div class="brl-run"></div><script type="application/json">')
    page = Environment(loader=PackageLoader("barrierlab.sim.sweep", "templates")).get_template("report.html.j2")
    empty = dict.fromkeys(("asked", "invariants", "violations", "errors", "versions", "runs"), PageTable("", (), ()))
    for parts, count in (([drawn, drawn], 1), ([], 0)):
        text = page.render(drawn=parts, component="<script>all</script>", sections=(), answer=(), **empty)
        assert text.count("<script>all</script>") == count
        assert text.count('<div class="brl-run">') == len(parts)


def test_the_kind_of_a_trace_is_told() -> None:
    """A journal of a join would be read as one of checkpoints, and be called no trace."""
    kinds = [kind_of_trace(run(load(name, settings), seed=1).trace()) for name, settings in RUNS.items()]
    assert kinds == ["", "join", "control"]
    with pytest.raises(ValueError, match="nothing to draw"):
        picture_of("# join table: x.\noffer 1\n! TABLE: y\n")


def test_a_long_table_has_its_beginning_and_its_end() -> None:
    """A notebook would have thousands of lines in a cell."""
    text = table([{"n": number, "x": number / 3} for number in range(1000)])
    assert text.count("<tr>") == MOST_ROWS + 1
    assert "20 of 1000 rows" in text
    assert "999" in text
    assert "0.3333" in text
