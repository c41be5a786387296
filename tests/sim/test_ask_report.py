"""`barrierlab ask --out`: an answer has a page, and every run that it rests on can be reproduced."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, PackageLoader

import barrierlab.sim.ask.analyses as sim_ask_analyses
import barrierlab.sim.ask.bench as sim_ask_bench
import barrierlab.sim.cli.ask as sim_cli_ask
from barrierlab.sim.ask.analyses import ANALYSES
from barrierlab.sim.ask.bench import Serial
from barrierlab.sim.ask.pictures import PICTURES, rows_of
from barrierlab.sim.ask.question import question_of
from barrierlab.sim.ask.report import SECTIONS
from barrierlab.sim.sweep.figures import Chart, ChartSeries
from barrierlab.sim.sweep.join.report import DRAWN as JOIN_DRAWN
from barrierlab.sim.sweep.page import PageTable
from barrierlab.sim.sweep.report import DRAWN
from tests.sim.support import barrierlab
from tests.sim.test_ask import JOB
from tests.sweep.browser import CHROMIUM, measured
from tests.sweep.page import names_runs, stands_alone


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Ask about a small job, in this process; the directory, its answer, and its page."""
    monkeypatch.setattr(sim_cli_ask, "Processes", lambda count: Serial())
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")

    def ask(name: str, *more: str) -> tuple[Path, dict[str, Any], str]:
        out = tmp_path / name
        arguments = ["ask", name, "--scenario", str(tmp_path / "job.toml"), "--out", str(out), *more]
        status, stdout, err = barrierlab(capsys, *arguments)
        assert (status, err) == (0, "")
        assert stdout.splitlines()[-1] == f"report: {out / 'report.html'}"
        kept = json.loads((out / "answer.json").read_text(encoding="utf-8"))
        return out, kept, (out / "report.html").read_text(encoding="utf-8")

    return ask


@pytest.mark.parametrize("name", ["Q10", *(pytest.param(each, marks=pytest.mark.slow) for each in ("Q4", "Q5", "Q13"))])
def test_an_answer_has_a_page(asked: Any, name: str) -> None:
    """It would be a line on a terminal, which nobody can mail, and whose runs nobody can look into."""
    out, kept, text = asked(name)
    stands_alone(text, [*SECTIONS, *DRAWN])
    known = [row["run_id"] for row in kept["runs_made"]]
    assert len(known) == len(set(known)) == kept["runs"]
    marks = names_runs(text, known)
    assert marks["g"] >= 10
    assert marks["tr"] > len(known)
    plain = " ".join(re.sub(r"<[^>]+>", " ", text).replace("&#39;", "'").replace("&gt;", ">").split())
    for words in (kept["answer"], kept["what_would_change_it"], f"barrierlab rerun {name} {known[0]}"):
        assert " ".join(words.split()) in plain
    assert f"--out {name}" in plain
    assert (out / "scenarios").is_dir()
    if name == "Q10":  # each mean names the run that is nearest to it
        assert len(re.findall(r"<title>mean of all: [^<]*; run [0-9a-f]{16}</title>", text)) == 2 * 2


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium here, so no page is laid out")
def test_the_page_of_an_answer_fits_a_telephone(asked: Any, tmp_path: Path) -> None:
    """Labels of the run that is to be explored would stand beyond its edge."""
    shipped = question_of("Q10")
    pairs = [word for key, value in shipped.set.items() for word in ("--set", f"{key}={value}")]
    _, _, text = asked("Q10", "--scenario", shipped.scenario, *pairs)
    found = measured(text, tmp_path, 400)
    assert (found["scrollWidth"], found["wide"], found["scrolled"]) == (400, [], [])
    assert found["smallest"][0] >= 11


def test_points_of_a_closed_form_are_named_as_such() -> None:
    """A dash would stand where a run id is looked for, and nobody would know that there is no such run."""
    chart = Chart("x", "y", [ChartSeries("closed form", [(1.0, 2.0, "")]), ChartSeries("a run", [(1.0, 3.0, "beef")])])
    table = PageTable.of("Points", ["series", "x", "y", "from, to"], rows_of(chart))
    macros = Environment(loader=PackageLoader("barrierlab.sim.sweep", "templates"), autoescape=True)
    text = str(macros.get_template("macros.html.j2").make_module().table(table))
    rows = re.findall(r'<tr( data-run="\w+")?><th scope="row">.*data-head="run" class="t">(.*)</td></tr>', text)
    assert rows == [("", "closed form"), (' data-run="beef"', '<code class="run">beef</code>')]


@pytest.mark.slow
def test_an_answer_on_joins_has_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of joins there would be the sentence alone."""
    monkeypatch.setattr(sim_cli_ask, "Processes", lambda count: Serial())
    arguments = ["ask", "J1", "--set", "until_s=4", "--precision", "50%", "--out", str(tmp_path / "j1")]
    status, _, err = barrierlab(capsys, *arguments)
    assert (status, err) == (0, "")
    kept = json.loads((tmp_path / "j1" / "answer.json").read_text(encoding="utf-8"))
    text = (tmp_path / "j1" / "report.html").read_text(encoding="utf-8")
    stands_alone(text, [*SECTIONS, *JOIN_DRAWN])
    names_runs(text, [row["run_id"] for row in kept["runs_made"]])
    status, out, _ = barrierlab(capsys, "rerun", str(tmp_path / "j1"), kept["runs_made"][-1]["run_id"])
    assert status == 0
    assert ": the same as when it was stored" in out


def test_the_runs_of_an_answer_are_made_again(
    asked: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point of its figure would be a number without a source, and its scenario be lost with the file."""
    monkeypatch.setattr(sim_ask_analyses, "SEEDS", range(1, 2))
    out, kept, _ = asked("Q10")
    (tmp_path / "job.toml").unlink()
    for row in kept["runs_made"][:3]:
        status, stdout, err = barrierlab(capsys, "rerun", str(out), row["run_id"])
        assert (status, err) == (0, "")
        assert f"digest {row['journal_digest']}: the same" in stdout
    kept["runs_made"][0]["journal_digest"] = "0" * 32
    (out / "answer.json").write_text(json.dumps(kept), encoding="utf-8")
    status, _, err = barrierlab(capsys, "rerun", str(out), kept["runs_made"][0]["run_id"])
    assert (status, len(err.splitlines())) == (2, 1)
    assert "no version differs" in err
    whole = kept["runs_made"][0]
    rows: list[Any] = [{k: v for k, v in whole.items() if k != name} for name in whole]
    rows += [5, {**whole, "seed": "1"}, {**whole, "parameters": "{"}, {**whole, "parameters": "[]"}]
    for text in ("{", *(json.dumps({**kept, "runs_made": [row]}) for row in rows)):
        (out / "answer.json").write_text(text, encoding="utf-8")
        status, _, err = barrierlab(capsys, "rerun", str(out), whole["run_id"])
        assert (status, len(err.splitlines())) == (2, 1)
        assert "damaged, or not written by barrierlab ask --out" in err, text


def test_a_run_that_comes_out_otherwise_is_not_drawn(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page would say of a drawing that its run had the digest that is stored, and nobody had looked."""
    keep_facts = sim_ask_bench.facts_of

    def other(*call: Any) -> Any:
        return replace(keep_facts(*call), digest="0" * 32)

    monkeypatch.setattr(sim_ask_bench, "facts_of", other)
    monkeypatch.setattr(sim_ask_analyses, "SEEDS", range(1, 2))
    _, _, text = asked("Q10")
    assert text.count("came out otherwise than it is stored, so it is not drawn.") == len(DRAWN)
    assert "the digest of its journal is the one that was stored" not in text


def test_an_answer_does_not_write_over_other_things(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip would mix a sweep with an answer."""
    monkeypatch.setattr(sim_cli_ask, "Processes", lambda count: Serial())
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine", encoding="utf-8")
    arguments = ["ask", "Q4", "--scenario", str(tmp_path / "job.toml"), "--out", str(tmp_path / "out")]
    status, _, err = barrierlab(capsys, *arguments)
    assert (status, len(err.splitlines())) == (2, 1)
    assert "holds something else than an answer" in err


@pytest.mark.parametrize(("option", "target"), [("--out", "job.toml/below"), ("--json", "no/folder"), ("--json", "a")])
def test_where_nothing_can_be_written_no_run_is_made(
    option: str, target: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs of some minutes would be lost, for a slip that was there to be seen before the first."""
    made: list[Any] = []

    class Counted(Serial):
        def __call__(self, calls: Any, until: float) -> Any:
            made.extend(calls)
            return super().__call__(calls, until)

    monkeypatch.setattr(sim_cli_ask, "Processes", lambda count: Counted())
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8")
    (tmp_path / "a").symlink_to(tmp_path / "no" / "file")
    arguments = ["ask", "Q4", "--scenario", str(tmp_path / "job.toml"), option, str(tmp_path / target)]
    status, out, err = barrierlab(capsys, *arguments)
    assert (status, out, len(err.splitlines()), made) == (2, "", 1, [])
    assert err.startswith(f"barrierlab: {option} {tmp_path / target}")


def test_every_analysis_has_a_picture() -> None:
    """An answer of a new kind would end in a traceback once its page is written."""
    assert set(PICTURES) >= set(ANALYSES)
