"""The looks of a report: marks that differ without colour, drawings, and in Chromium, where there is one."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, measured, picture, printed
from page import names_runs, stands_alone

from barrierlab.sim.sweep import drawings, figures
from barrierlab.sim.sweep.analyse import READ
from barrierlab.sim.sweep.analyse import analyse as analyse_jobs
from barrierlab.sim.sweep.engines import engine_for
from barrierlab.sim.sweep.execute import SIMULATE, work_chunk
from barrierlab.sim.sweep.join.analyse import analyse
from barrierlab.sim.sweep.join.report import SECTIONS, render
from barrierlab.sim.sweep.plan import plan_of
from barrierlab.sim.sweep.report import DRAWN, FIRST
from barrierlab.sim.sweep.report import render as render_jobs
from barrierlab.sim.sweep.run_drawings import checkpoint_of, drawn_checkpoint, job_of
from barrierlab.sim.sweep.samples import RunIndex
from barrierlab.sim.sweep.store import Store

in_chromium = pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium here, so no page is laid out")
JOBS = """
question = "What does the load change?"
[[part]]
scenario = "skewed_join"
seeds = [1, 2]
set = { until_s = 6.0, warmup_s = 1.0, "checkpoint.interval_s" = 0.5 }
grid = { load = [0.7, 1.1] }
"""
JOINS = """
question = "Which barrier, and what lateness budget?"
[[part]]
scenario = "camera_imu_lidar"
seeds = [1, 2]
set = { until_s = 6.0 }
grid = { jitter = ["none", "high"] }
list = [{ barrier = "latest", lateness_s = 0.0 }, { barrier = "timestamp", lateness_s = 0.1 }]
"""


def swept(text: str, folder: Path) -> Store:
    """A sweep, run in this process."""
    plan = plan_of(text, "small", folder / "small.toml")
    store = Store.create(folder / "out", plan)
    work_chunk(plan.runs, str(store.directory), SIMULATE)
    return store


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A sweep of jobs."""
    return swept(JOBS, tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def joins(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report on a sweep of joins."""
    store = swept(JOINS, tmp_path_factory.mktemp("joins"))
    text = render(analyse(store), store)
    stands_alone(text, SECTIONS)
    names_runs(text, store.done())
    return text


def test_marks_differ_without_colour() -> None:
    """Printed in black and white, or to eyes that see no colours, two series would be one."""
    assert len(set(figures.HATCH_OF_PIECES)) == len(figures.PIECES)
    assert len(set(figures.HATCHES)) == len(figures.HATCHES)
    assert len(set(figures.DASHES)) == len(figures.DASHES) >= len(figures.COLOURS)
    assert len(set(figures.MARKERS)) == len(figures.MARKERS) >= len(figures.COLOURS)
    for kinds in (drawings.OF_A_CHECKPOINT, drawings.OF_AN_OUTPUT):
        assert len({kind.hatch for kind in kinds}) == len(kinds)


def test_a_series_of_a_figure_has_a_hatch_or_a_dash() -> None:
    """The list would be there, and the figure be drawn without it."""
    row = {"start_delay_ms": 3.0, "alignment_ms": 2.0, "sync_ms": 1.0, "rest_ms": 1.0}
    bars = figures.where_the_time_goes([("a", row)], "f", ["run1"])
    assert len(set(re.findall(r"fill: url\(#f-(\w+)\)", bars))) == 3  # the fourth is plain
    assert bars.count('data-run="run1"') == 4
    interval = {"n": 5, "at": 1.0, "low": 0.5, "high": 1.5}
    value = {"value": "1", "end_to_end_ms": interval, "start_delay_ms": interval, "alignment_ms": interval}
    effect = {"part": "p", "axis": "load", "drawn": False, "values": [value, value | {"value": "2"}]}
    lines = figures.effect_of_axes([effect], "f", lambda effect, row: f"run{row['value']}")
    assert len(set(re.findall(r"stroke-dasharray: ([\d., ]+)", lines))) == 2  # the first is whole
    assert re.findall(r'data-run="(run\d)"><title>', lines) == ["run1", "run2"] * 3


def test_text_is_never_made_smaller() -> None:
    """On a telephone a figure for a page would be scaled until nobody can read it."""
    row = {"start_delay_ms": 3.0, "alignment_ms": 2.0, "sync_ms": 1.0, "rest_ms": 1.0}
    for narrow, width in ((False, figures.WIDE), (True, figures.NARROW)):
        svg = figures.where_the_time_goes([("a", row)], "f", narrow=narrow)
        (found,) = re.findall(r'<svg [^>]*viewBox="0 0 ([\d.]+) ', svg)
        assert float(found) <= width
        assert f'width="{found}"' in svg
        assert {float(size) for size in re.findall(r"font(?:-size)?: ([\d.]+)px", svg)} == {figures.LETTERS}


def test_a_run_stands_for_many_by_its_mean(jobs: Store) -> None:
    """A row would lead to a run that shows something else."""
    index = RunIndex(jobs)
    cell = {"part": "skewed_join", "scenario": "skewed_join"}
    for load in (0.7, 1.1):
        found = index.of_cell(
            {**cell, "parameters": {"load": load, "until_s": 6.0, "warmup_s": 1.0, "checkpoint.interval_s": 0.5}}
        )
        assert [run.seed for run in found] in ([1, 2], [2, 1])
        assert index.nearest_of("skewed_join", load=load) in {run.run_id for run in found}
        assert index.nearest_of("skewed_join", load=str(load)) == index.nearest_of("skewed_join", load=load)
    all_of_them = index.checkpoints("skewed_join")
    assert [each.duration_ms for each in all_of_them] == sorted(each.duration_ms for each in all_of_them)
    assert len(all_of_them) > 10


def test_the_drawn_path_is_the_critical_path(jobs: Store) -> None:
    """The line would say that a checkpoint waited for another task."""
    index = RunIndex(jobs)
    worst = index.checkpoints("skewed_join")[-1]
    drawn = drawn_checkpoint(("worst", "The worst checkpoint"), jobs, worst, "The longest.")
    (figure,), (path,) = drawn.figures, drawn.tables
    assert sum(float(row[4]) for row in path.rows) == pytest.approx(worst.duration_ms, abs=0.1 * len(path.rows))
    assert str(figure.wide).count('class="path"') == len(path.rows) + 1  # and one in the legend
    assert figure.table is not None
    assert len(figure.table.rows) == len(re.findall(r'H826.0" class="grid"', str(figure.wide))) == 5  # a line a task
    assert drawn.run == worst.run_id
    gone = drawn_checkpoint(("worst", ""), jobs, worst._replace(run_id="0" * 16), "The longest.")
    assert not gone.figures
    assert "Not drawn: no run '0000000000000000'" in gone.words


def test_each_part_is_drawn(tmp_path: Path) -> None:
    """The answer has a sentence on each part, and all but the first would have nothing behind it."""
    other = JOBS[JOBS.index("[[part]]") :].replace("scenario =", 'name = "other"\nscenario =').replace("1.1", "0.9")
    other = other.replace("[1, 2]", "[3, 4]")
    none = other.replace('"other"', '"none"').replace("= 0.5 }", "= 50.0 }")
    store = swept(JOBS + none + other, tmp_path)
    with engine_for(store, READ, "duckdb", None) as sql:
        analysis = analyse_jobs(sql, store)
    text = render_jobs(analysis, store)
    second = [("job2", "The job, and its bottleneck: other"), ("worst2", "The worst checkpoint: other")]
    stands_alone(text, [*DRAWN, *second, ("typical2", "A typical checkpoint: other")])
    assert text.count('class="brl-run"') == 4
    assert 'id="job3"' not in text  # no checkpoint of the part between them completed
    words = re.findall(r"The longest of the \d+ steady checkpoints of part “(\w+)”: checkpoint", text)
    assert words == ["skewed_join", "other"]
    names_runs(text, store.done())


def test_the_bottleneck_is_marked_once(jobs: Store) -> None:
    """A reader would have to find it in numbers."""
    from barrierlab.sim import load, run

    result: Any = run(
        load("skewed_join", {"load": 1.1, "checkpoint.interval_s": 0.5, "until_s": 6.0, "warmup_s": 1.0}), seed=1
    )
    drawn = job_of(("job", "The job"), result, "run1", "")
    svg = str(drawn.figures[0].wide)
    assert svg.count("box bottleneck") == 1
    assert svg.index("box bottleneck") < svg.index(">join ×2<") < svg.index(">sink<")
    assert "The bottleneck is join" in drawn.figures[0].words
    few = checkpoint_of(("typical", ""), result, 3, "run1", "")
    assert "Checkpoint 3, task by task. Its longest wait: " in few.figures[0].words


def test_an_unaligned_snapshot_is_shown_ahead_of_the_last_barrier() -> None:
    """A reader would see tasks that wait for all their barriers before they take a snapshot: aligned ones."""
    from barrierlab.sim import Scenario, load, run

    settings = {
        "protocol": "unaligned",
        "until_s": 3.0,
        "checkpoint.interval_s": 0.5,
        "checkpoint.sync_s": 0.001,
        "checkpoint.trigger_latency_s": {"dist": "uniform", "low": 0.0, "high": 0.1},  # sources begin apart
    }
    result = run(load("skewed_join", settings, kind=Scenario), seed=1)
    figure = checkpoint_of(("typical", ""), result, 2, "run1", "").figures[0]
    assert figure.table is not None
    begun_ns = result.record(2).triggered_ns
    cuts_ms = {
        node: (at_ns - begun_ns) / 1e6
        for at_ns, verb, node, _, subject in result.entries
        if verb == "snapshot" and subject[0] == 2
    }
    rows = [(str(task), float(last), float(taken)) for task, _, last, taken, _ in figure.table.rows]
    assert {task: taken for task, _, taken in rows} == pytest.approx(
        {t: 1.0 + ms for t, ms in cuts_ms.items()}, abs=0.05
    )
    ahead = [task for task, last, taken in rows if taken < last]
    assert ahead == ["join[0]", "join[1]"]
    tips = re.findall(r"<title>([^:<]*): (snapshot|recording) ", str(figure.wide))
    assert {task for task, kind in tips if kind == "recording"} == set(ahead)
    for task in ahead:
        assert [kind for name, kind in tips if name == task] == ["snapshot", "recording"]


def test_a_wide_job_is_drawn_within_a_telephone() -> None:
    """A job of many operators would stand beside the page."""
    nodes = [drawings.JobNode(f"operator_with_a_long_name_{n}", 128, n / 20, 0.0) for n in range(12)]
    edges = [drawings.JobEdge(nodes[0].name, each.name, "hash") for each in nodes[1:]]
    for chain in (edges, [drawings.JobEdge(a.name, b.name, "forward") for a, b in pairwise(nodes)]):
        for narrow, most in ((True, drawings.NARROW), (False, drawings.WIDE)):
            svg = drawings.job(nodes, chain, "j", drawings.bottleneck_of(nodes), narrow=narrow)
            lefts = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', svg)
            assert max(float(x) + float(width) for x, width in lefts) <= most
            assert svg.count("<title>operator_with_a_long_name_11 ×128</title>") == 1


# In a browser.


@in_chromium
@pytest.mark.slow
@pytest.mark.parametrize(("width", "at_left"), [(400, False), (700, False), (1000, False), (1200, True)])
def test_a_page_fits_and_can_be_read(joins: str, tmp_path: Path, width: int, at_left: bool) -> None:
    """On a telephone a reader would scroll sideways, or need a glass."""
    found = measured(joins, tmp_path, width)
    assert (found["width"], found["scrollWidth"]) == (width, width)
    assert found["wide"] == []
    assert found["scrolled"] == []
    assert found["smallest"][0] >= 11
    assert found["texts"] > 500
    assert found["contentsAtLeft"] == at_left
    assert found["requests"] == 0


@in_chromium
@pytest.mark.slow
def test_a_page_is_dark_where_a_reader_wants_it(joins: str, tmp_path: Path) -> None:
    """Black would stand on black."""
    light = measured(joins, tmp_path, 1200)
    dark = measured(joins, tmp_path, 1200, "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
    assert (light["paper"], light["ink"]) == ("rgb(255, 255, 255)", "rgb(28, 32, 36)")
    assert (dark["paper"], dark["ink"]) == ("rgb(21, 24, 28)", "rgb(230, 232, 235)")


@in_chromium
@pytest.mark.slow
def test_a_page_has_a_picture_and_can_be_printed(joins: str, tmp_path: Path) -> None:
    """It would be empty, or print its contents over its text."""
    (tmp_path / "report.html").write_text(joins, encoding="utf-8")
    assert len(picture(tmp_path / "report.html", tmp_path / "report.png", 1200, 2000)) > 50_000
    pages = printed(tmp_path / "report.html", tmp_path / "report.pdf")
    assert pages.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pages)) >= 4


def test_the_first_sections_are_the_same_in_all_reports() -> None:
    """A reader of two reports would look for the answer in two places."""
    assert SECTIONS[:2] == FIRST
