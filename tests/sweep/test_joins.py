"""A sweep of joins: planned, run and stored as any other, and answered without Spark."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from page import names_runs, stands_alone
from scipy import stats

from barrierlab.model.join.invariants import JOIN_INVARIANTS
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.execute import execute
from barrierlab.sim.sweep.figures import against_lateness, what_came_out
from barrierlab.sim.sweep.join.analyse import OUTCOMES, SKIPPED, TIMES, analyse, answer, budget, cells_of
from barrierlab.sim.sweep.join.report import SECTIONS, render
from barrierlab.sim.sweep.plan import load_plan, plan_of
from barrierlab.sim.sweep.report import interval_text
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.tables import TABLES
from tests.sim.support import barrierlab, in_this_process

SMALL = """
question = "Which barrier, and what lateness budget?"
[[part]]
name = "small"
scenario = "camera_imu_lidar"
seeds = [1, 2]
set = { until_s = 6.0, jitter = "none" }
list = [
    { barrier = "latest", lateness_s = 0.0 },
    { barrier = "timestamp", lateness_s = 0.0 },
    { barrier = "timestamp", lateness_s = 0.1 },
    { barrier = "timestamp", lateness_s = 0.15 },
]
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """That sweep, run."""
    plan = plan_of(SMALL, "small", Path("small.toml"))
    store = Store.create(tmp_path_factory.mktemp("joins") / "out", plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)
        execute(plan, store, "processes[2]")
    return store


def test_a_sweep_of_joins_answers_its_question(
    capfd: pytest.CaptureFixture[str], tmp_path: Any, in_process: None
) -> None:
    """A hundred runs would end in numbers, and nobody would know which barrier to take."""
    file, out = tmp_path / "small.toml", tmp_path / "out"
    file.write_text(SMALL)
    status, stdout, _ = barrierlab(capfd, "sweep", str(file), "--out", str(out), "--master", "processes[2]")
    assert status == 0
    assert "timestamp with a lateness of 100 ms: 99 % wait at most 4" in stdout
    assert "for a skew of at most 10" in stdout
    assert "costs no alignment; latest if waiting is worse than skew" in stdout
    assert stdout.splitlines()[-2] == "0 violations in 8 runs"
    status, again, _ = barrierlab(capfd, "analyse", str(out))
    assert (status, again.splitlines()) == (0, stdout.splitlines()[:-1])


def test_an_analysis_of_joins_is_one_json_object(capfd: pytest.CaptureFixture[str], swept: Store) -> None:
    """Machines would have to read a table that is made for eyes."""
    status, stdout, _ = barrierlab(capfd, "analyse", str(swept.directory), "--json", "--master", "processes")
    found = json.loads(stdout)
    assert status == 0
    assert [(c["barrier"], c["lateness_ms"], c["seeds"]) for c in found["cells"]] == [
        ("latest", None, [1, 2]),
        ("timestamp", 0.0, [1, 2]),
        ("timestamp", 100.0, [1, 2]),
        ("timestamp", 150.0, [1, 2]),
    ]
    assert found["invariants"] == dict.fromkeys(JOIN_INVARIANTS, 0)
    assert (found["runs"]["OK"], found["runs"]["holds"], found["runs"]["outputs"]) == (8, 8, 720)


def test_the_report_on_joins_stands_alone_and_says_what_the_analysis_says(
    capfd: pytest.CaptureFixture[str], swept: Store, tmp_path: Any
) -> None:
    """A mailed answer would lack its answer, its numbers, its seeds or the way to get it again."""
    status, stdout, _ = barrierlab(capfd, "report", str(swept.directory), "--out", str(tmp_path))
    assert (status, stdout.splitlines()[-2:]) == (0, ["0 violations in 8 runs", f"report: {tmp_path / 'report.html'}"])
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    stands_alone(text, SECTIONS)
    analysis = analyse(swept)
    assert text == render(analysis, swept)
    assert text.count("<svg") == 2 * 5  # by lateness, the join, two outputs, what came out; for page and telephone
    marks = names_runs(text, swept.done())
    assert marks["tr"] > len(swept.done())
    assert marks["g"] > 20
    assert marks["svg"] == 2 * 3
    plain = html.unescape(re.sub(r"<[^>]+>", "", text))
    (sentence,) = answer(analysis["cells"])
    for words in (
        analysis["sweep"]["question"],
        sentence,
        "0 violations in 8 runs",
        "every one judged by the invariants of joins",
        JOIN_INVARIANTS["CHOICE"],
        "720 outputs wanted in 8 runs, seeds 1, 2. Bars and bands are 95 % intervals",
        "budget, 100 ms",
        "barrierlab sweep small.toml --out out/small --master processes\nbarrierlab report out/small\n",
        "barrierlab rerun out/small ",
        "barrierlab run camera_imu_lidar --set barrier=latest",
    ):
        assert words in plain, words
    best = budget(analysis["cells"])
    assert best is not None
    for name in TIMES:
        interval = best["intervals"][name]
        assert f">{interval_text(interval)}</td>" in text
        assert (interval["n"], interval["low"]) == (2, None)  # two seeds have none
    assert ">180</td>" in text  # outputs wanted of a cell


def test_a_sweep_of_joins_that_has_no_runs_yet_has_a_report(capfd: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """It would be taken for a sweep of jobs, and a JVM started to say that no checkpoint was completed."""
    Store.create(tmp_path / "out", plan_of(SMALL, "small", Path("small.toml")))
    status, stdout, stderr = barrierlab(capfd, "report", str(tmp_path / "out"))
    assert (status, stderr) == (3, "")  # nothing has been judged
    assert "No run has come to its end, so there is nothing to say about barriers." in stdout
    assert "0 violations in 0 runs; 8 of 8 planned runs are not done yet" in stdout
    stands_alone((tmp_path / "out" / "report.html").read_text(encoding="utf-8"), SECTIONS)
    status, stdout, stderr = barrierlab(capfd, "analyse", str(tmp_path / "out"), "--master", "lokal")
    assert (status, stdout, len(stderr.splitlines())) == (2, "", 1)


def test_a_join_that_stopped_with_an_error_stands_in_the_report(tmp_path: Any) -> None:
    """Numbers would be of fewer runs than the reader thinks."""
    plan = plan_of(SMALL, "small", Path("small.toml"))
    store = Store.create(tmp_path / "out", plan)
    rows: dict[str, Any] = {table: [] for table in TABLES}
    about = {"part": "small", "scenario": "camera_imu_lidar", "parameters": "{}", "seed": 1}
    rows["runs"] = [{"run_id": "1", **about, "status": "ERROR", "error": "ZeroDivisionError: thirteen"}]
    store.write_chunk(rows)
    text = render(analyse(store), store)
    assert "1 more stopped with an error" in text
    assert ">ZeroDivisionError: thirteen</td>" in text


def test_joins_and_jobs_are_not_in_one_sweep() -> None:
    """The checkpoints of the one would be left out of what is said of the other, without a word."""
    both = SMALL + '[[part]]\nscenario = "diamond"\nseeds = [1]\n'
    with pytest.raises(SweepError, match=r"both\.toml: joins and jobs are in one sweep"):
        plan_of(both, "both", Path("both.toml"))


def test_the_shipped_sweep_asks_over_lateness_jitter_and_rate() -> None:
    """The question of the scenario would not be the one that is asked."""
    plan = load_plan("which_join")
    assert plan.question == "Which barrier, and what lateness budget?"
    names = {axis.name for part in plan.parts for axis in part.axes}
    assert {"jitter", "lidar_rate_per_s", "barrier", "lateness_s"} <= names
    assert len(plan.runs) == 240


def run_of(
    number: int, barrier: str, lateness: float | None, skew: float | None, share: float = 1.0, **also: Any
) -> Any:
    """A row of `joins`, and one of `runs`; of a run of its own seed if no other is given."""
    row = {"run_id": str(number), "barrier": barrier, "lateness_ms": lateness, "wanted": 100, "complete": 100 * share}
    row |= {"degraded": 0, "skipped": 100 - 100 * share, "skipped_failed": 100 - 100 * share}
    row |= dict.fromkeys(SKIPPED.keys() - row.keys(), 0)
    wait = None if skew is None else 50.0 - (lateness or 0.0) / 10
    times = dict.fromkeys(["wait_p99_ms", "age_p99_ms", "wait_mean_ms", "skew_mean_ms"], wait)
    seed, scenario = also.pop("seed", number), also.pop("scenario", "mine")
    given = json.dumps({"barrier": barrier, "lateness_s": lateness, **also})
    about = {"part": "mine", "scenario": scenario, "parameters": given, "seed": seed}
    return row | times | {"skew_p99_ms": skew}, about


def cells(*runs: Any) -> list[dict[str, Any]]:
    """The cells of these runs."""
    return cells_of([row for row, _ in runs], {row["run_id"]: about for row, about in runs})


def test_the_budget_is_the_largest_lateness_that_costs_nothing() -> None:
    """It would be the one that waits least, whatever it costs."""
    runs = [
        run_of(n, "timestamp", late, skew)
        for n, (late, skew) in enumerate([(0, 100), (50, 101), (100, 104), (150, 140)])
    ]
    best = budget(cells(*runs))
    assert best is not None
    assert best["lateness_ms"] == 100
    assert budget(cells(run_of(1, "latest", None, 5))) is None
    assert budget(cells(run_of(1, "timestamp", 0, 5, share=0.9))) is None


def test_a_budget_is_said_to_gain_what_was_run_without_it() -> None:
    """Of the only lateness that was run it would be said that it costs no alignment, and takes nothing off the wait."""
    said = []
    for tried in ([(50, 95)], [(50, 95), (100, 96)], [(0, 95), (100, 96)], [(50, 95), (100, 200)]):
        (sentence,) = answer(cells(*(run_of(n, "timestamp", late, skew) for n, (late, skew) in enumerate(tried))))
        said.append(sentence.partition("for a skew of at most ")[2])
    assert said == [
        "95 ms",
        "96 ms; that budget takes 5 ms off the wait with 50 ms and costs no alignment",
        "96 ms; that budget takes 10 ms off the wait and costs no alignment",
        "95 ms; a larger budget costs alignment",
    ]


def test_what_loses_outputs_is_not_recommended() -> None:
    """A barrier that puts nothing out waits least."""
    runs = [run_of(1, "sequence", None, 1, share=0.5), run_of(2, "latest", None, 9), run_of(3, "timestamp", 0, 4)]
    (sentence,) = answer(cells(*runs))
    assert sentence.startswith("all: timestamp with a lateness of 0 ms")
    assert sentence.endswith("not sequence: fewer than 99 % of the outputs come out complete")
    (exact,) = answer(cells(run_of(1, "sequence", None, 1), run_of(2, "latest", None, 9)))
    assert exact.startswith("all: sequence joins them exactly: 99 % wait at most 50 ms for a skew of at most 1 ms")
    (near,) = answer(cells(run_of(1, "sequence", None, 0.46)))
    assert near.endswith("for a skew of at most 0.46 ms")  # and not 0 ms


def test_what_only_the_end_of_a_run_cuts_off_is_said() -> None:
    """A barrier that joins all would be called of no use, since a short run ends while its last outputs wait."""
    row, about = run_of(1, "timestamp", 0, 4, share=0.98)
    (sentence,) = answer(cells((row | {"skipped": 0, "skipped_failed": 0}, about)))
    assert "come out complete; timestamp has the others waiting when a run ends: give a cooldown_s" in sentence


def test_streams_are_told_apart_by_what_varies() -> None:
    """Cells of different streams would be averaged, or each have a long name that says nothing."""
    runs = [run_of(n, "latest", None, 5.0 + n, jitter=j, until_s=9) for n, j in enumerate(["low", "high", "low"])]
    found = cells(*runs)
    assert [(c["streams"], c["runs"], c["skew_p99_ms"]) for c in found] == [
        ("jitter=high", 1, 6.0),
        ("jitter=low", 2, 6.0),
    ]
    (empty,) = cells(run_of(1, "sequence", None, None, share=0.0))
    assert (empty["skew_p99_ms"], empty["complete_share"]) == (None, 0.0)
    assert empty["intervals"]["skew_p99_ms"] == {"n": 0, "at": None, "low": None, "high": None}


def test_streams_of_two_scenarios_are_not_one() -> None:
    """A camera with an IMU and three cameras would have a mean wait in common."""
    runs = [run_of(2, "latest", None, 7.0, scenario="b", rate=3), run_of(1, "latest", None, 5.0, scenario="a")]
    found = cells(*runs)
    assert [c["streams"] for c in found] == ["scenario=a", "scenario=b rate=3"]


def test_a_barrier_that_is_set_by_its_key_is_no_kind_of_streams() -> None:
    """Of a scenario without a parameter for it each lateness would be a kind of streams of its own, and no budget."""
    runs = [
        run_of(n, "timestamp", late, 5.0, **{"join.barrier": "timestamp", "join.lateness_s": late / 1000})
        for n, late in enumerate([0.0, 50.0])
    ]
    assert {cell["streams"] for cell in cells(*runs)} == {""}


def test_a_lateness_without_outputs_is_no_measure_of_what_is_saved() -> None:
    """The answer would be a stack trace: where nothing comes out, nothing waits."""
    runs = [run_of(1, "timestamp", 0.0, None, share=0.0), run_of(2, "timestamp", 50.0, 5.0)]
    runs.append(run_of(3, "timestamp", 100.0, 5.0))
    (sentence,) = answer(cells(*runs))
    assert "timestamp with a lateness of 100 ms" in sentence
    assert "that budget takes 5 ms off the wait" in sentence


def test_intervals_are_over_seeds() -> None:
    """A barrier without a lateness, run once for each lateness, would count its runs as chances of their own."""
    seeds = [1, 2, 3, 4, 5]
    twice = [run_of(n, "latest", None, 10.0 * seed, seed=seed) for n, seed in enumerate(seeds * 2)]
    (cell,) = cells(*twice)
    low, high = stats.t.interval(0.95, 4, 30.0, stats.sem([10.0 * seed for seed in seeds]))
    expected = {"n": 5, "at": 30.0, "low": pytest.approx(low), "high": pytest.approx(high)}
    assert cell["intervals"]["skew_p99_ms"] == expected
    assert (cell["runs"], cell["seeds"], cell["skew_p99_ms"]) == (10, seeds, 30.0)


def test_no_wait_is_below_zero() -> None:
    """A wait of 27 ms would come with an interval from -32 to 85 ms."""
    runs = [run_of(n, "latest", None, skew, seed=n) for n, skew in enumerate([0.0, 0.0, 1.0, 0.0, 100.0])]
    (cell,) = cells(*runs)
    assert cell["intervals"]["skew_p99_ms"]["low"] == 0.0
    assert cell["intervals"]["skew_p99_ms"]["high"] > 50.0


def test_every_output_has_one_outcome() -> None:
    """Shares would not add up to the whole, and the figure would show outputs twice or not at all."""
    row, about = run_of(1, "timestamp", 0.0, 5.0, share=0.5)
    row |= {"degraded": 10, "skipped": 30, "skipped_failed": 10, "skipped_held": 20}
    (cell,) = cells((row, about))
    seen = {key: count for key, count in cell["outcomes"].items() if count}
    assert seen == {"complete": 50, "degraded": 10, "skipped_failed": 10, "skipped_held": 20, "waiting": 10}
    assert list(cell["outcomes"]) == list(OUTCOMES)
    svg = what_came_out({"all": [cell]}, OUTCOMES, "f")
    assert [words in svg for words in OUTCOMES.values()] == [key in seen for key in OUTCOMES]


def test_a_figure_of_what_never_came_out_is_empty() -> None:
    """The report on a sweep in which a barrier is of no use at all would be a stack trace."""
    found = cells(run_of(1, "sequence", None, None, share=0.0))
    assert "lateness, ms" in against_lateness(found, None, TIMES, "f")
    found = cells(run_of(1, "sequence", None, None, share=0.0), run_of(2, "latest", None, 5.0))
    svg = against_lateness(found, None, TIMES, "f")
    assert ">latest<" in svg
    assert ">sequence<" not in svg
    assert ">timestamp<" not in svg
