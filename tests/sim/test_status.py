"""The exit status of every command: 1 is a violation and nothing else, and 0 is only what holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import barrierlab.impl.checkpoint.task as impl_checkpoint_task
import barrierlab.sim.checkpoint.engine as sim_checkpoint_engine
import barrierlab.sim.cli.check as sim_cli_check
import barrierlab.sim.cli.defects as sim_cli_defects
import barrierlab.sim.cli.main as sim_cli_main
import barrierlab.sim.sweep.commands as sweeps
import barrierlab.sim.sweep.execute as sim_sweep_execute
import barrierlab.sim.sweep.report as sim_sweep_report
import barrierlab.sim.sweep.session as sim_sweep_session
import barrierlab.sim.sweep.verify.judge as sim_sweep_verify_judge
from barrierlab.model.checkpoint.check import Outcome, ScopeViolation
from barrierlab.model.defects.catalogue import CatalogueEntry
from barrierlab.model.defects.kinds.found import Found
from barrierlab.sim.cli.main import cli
from barrierlab.sim.core.status import TRACEBACK, of_runs
from barrierlab.sim.sweep.execute import rows_of, simulate
from barrierlab.sim.sweep.outcome import COLUMNS, outcome, verdict_line
from barrierlab.sim.sweep.plan import parameters_text, plan_of
from tests.breadth import first
from tests.sim.support import COMMANDS as ALL
from tests.sim.support import barrierlab

OK = {"status": "OK", "verdict": "holds", "violations": 0}
BROKEN = {"status": "OK", "verdict": "broken", "violations": 2}
UNDECIDED = {"status": "OK", "verdict": "undecided", "violations": 0}
ERROR = {"status": "ERROR", "error": "ZeroDivisionError: thirteen"}
RAISED = {"status": "RAISED", "verdict": "broken", "violations": 1, "error": "ValueError: no"}
SHORT = OK | {"falls_short": True, "vacuous_asked_for": "CUT ONCE", "progress": "no checkpoint completed"}
RUNS: dict[str, tuple[list[dict[str, Any]], int]] = {
    "all hold": ([OK, OK], 0),
    "one is broken": ([OK, BROKEN], 1),
    "one is undecided": ([OK, UNDECIDED], 3),
    "one ended in an error": ([OK, ERROR], 2),
    "a machine raised": ([OK, RAISED], 1),
    "an error and a violation": ([ERROR, BROKEN], 1),
    "an error and one undecided": ([ERROR, UNDECIDED], 2),
    "one judged nothing": ([OK, SHORT], 0),
    "one has not run": ([OK], 3),
}


def _sweep(patch: pytest.MonkeyPatch, rows: list[dict[str, Any]], folder: Path) -> list[str]:
    """A sweep of two runs, of which these rows are stored."""

    def execute(plan: Any, store: Any, *_: Any, **__: Any) -> None:
        tables: dict[str, Any] = {name: [] for name in store.tables}
        tables["runs"] = [{"run_id": run.run_id, **row} for run, row in zip(plan.runs, rows, strict=False)]
        store.write_chunk(tables)

    patch.setattr(sim_sweep_execute, "execute", execute)
    path = folder / "two.toml"
    path.write_text('[[part]]\nscenario = "diamond"\nseeds = [1, 2]\nset = { until_s = 1.0 }\n', encoding="utf-8")
    return ["sweep", str(path), "--out", str(folder / "out"), "--master", "processes"]


def _resume(patch: pytest.MonkeyPatch, rows: list[dict[str, Any]], folder: Path) -> list[str]:
    arguments = _sweep(patch, rows, folder)
    with pytest.raises(SystemExit):
        sim_cli_main.main(arguments)
    patch.setattr(sim_sweep_execute, "execute", lambda *_: None)
    return [*arguments, "--resume"]


def _analysed(patch: pytest.MonkeyPatch, rows: list[dict[str, Any]], folder: Path, command: str) -> list[str]:
    arguments = _sweep(patch, rows, folder)
    with pytest.raises(SystemExit):
        sim_cli_main.main(arguments)

    class OfJobs:
        is_of_joins = False

    analysis = {"runs": outcome(rows, 2), "sweep": {"question": ""}}
    patch.setattr(sweeps, "_analysed", lambda *_: (analysis, OfJobs()))
    patch.setattr(sweeps, "_show_analysis", lambda _: None)
    patch.setattr(sim_sweep_report, "render", lambda *_: "")
    patch.setattr("barrierlab.sim.sweep.summary.answer", lambda _: [])
    return [command, str(folder / "out")]


def _verify(patch: pytest.MonkeyPatch, rows: list[dict[str, Any]], folder: Path) -> list[str]:
    arguments = [*_sweep(patch, rows, folder), "--events"]
    with pytest.raises(SystemExit):
        sim_cli_main.main(arguments)
    found = {"violations": [], "disagreements": [], "invariants": {"CUT": 0}, "elsewhere": {}, "runs": len(rows)}
    patch.setattr(sim_sweep_session, "spark_session", lambda _: None)
    patch.setattr(sim_sweep_verify_judge, "verify", lambda *_: found)
    return ["verify", str(folder / "out")]


def _measured(patch: pytest.MonkeyPatch, rows: list[dict[str, Any]], folder: Path) -> list[str]:
    def execute(plan: Any, store: Any, *_: Any, **__: Any) -> None:
        tables: dict[str, Any] = {name: [] for name in store.tables}
        last = [OK] * (len(plan.runs) - 2) + rows
        tables["runs"] = [
            {"run_id": r.run_id, "scenario": r.scenario, "parameters": parameters_text(r.parameters), **row}
            for r, row in zip(plan.runs, last, strict=False)
        ]
        store.write_chunk(tables)

    patch.setattr(sweeps, "_execute", execute)
    patch.setattr("barrierlab.sim.sweep.measured.predict", lambda *_: {})
    patch.setattr("barrierlab.sim.sweep.measured.compare", lambda *_: [])
    return ["measured", "--seeds", "1"]


COMMANDS: dict[str, Callable[..., list[str]]] = {
    "sweep": _sweep,
    "sweep --resume": _resume,
    "analyse": lambda patch, rows, folder: _analysed(patch, rows, folder, "analyse"),
    "report": lambda patch, rows, folder: [*_analysed(patch, rows, folder, "report"), "--out", str(folder)],
    "verify": _verify,
    "measured": _measured,
}


@pytest.mark.parametrize("which", RUNS)
@pytest.mark.parametrize("command", COMMANDS)
def test_many_runs_end_as_the_worst_of_them(
    command: str, which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script would go on after a sweep of which a run is undecided, or was never judged."""
    rows, expected = RUNS[which]
    arguments = COMMANDS[command](monkeypatch, rows, tmp_path)
    capsys.readouterr()
    status, _, err = barrierlab(capsys, *arguments)
    assert status == expected, err
    if command == "sweep" and which == "one judged nothing":
        strict = [*arguments[:3], str(tmp_path / "strict"), *arguments[4:], "--strict"]
        assert barrierlab(capsys, *strict)[0] == 3


def test_the_line_says_what_the_status_is_of() -> None:
    """A reader would see `0 violations`, and not that half of the runs judged nothing."""
    assert verdict_line(outcome([OK, SHORT, SHORT | {"faults_without_effect": 1}], 3)) == (
        "0 violations in 3 runs, 2 of them short of what was asked for (no checkpoint completed in 2; "
        "CUT vacuous in 2; ONCE vacuous in 2; 1 fault without effect)"
    )
    assert verdict_line(outcome([RAISED, ERROR], 3)) == (
        "1 violation in 1 run; 1 more stopped with an error; 1 of 3 planned runs are not done yet"
    )
    assert of_runs(outcome([SHORT], 1), strict=True) == 3
    assert set(SHORT) <= set(COLUMNS)


VERDICTS = {"holds": 0, "broken": 1, "undecided": 3}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_check_ends_as_its_verdict(
    verdict: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate of a build would let a broken aligner pass."""
    violations = (ScopeViolation("CUT", "a->s", 3, "lost"),) if verdict == "broken" else ()
    made = [Outcome("a->s", "aligned", verdict, "why", 1, 1, 0.0, violations)]
    monkeypatch.setattr(sim_cli_check, "run", lambda *_, **__: made)
    assert barrierlab(capsys, "check", "--scope", "tiny")[0] == VERDICTS[verdict]


class _Defect:
    """An entry of the catalogue that finds what it is set to."""

    entry, kind, breaks = "A-99", "safety", "CUT"

    def __init__(self, documented: str, sound: str) -> None:
        self.found = [Found(frozenset(filter(None, [name]))) for name in (documented, sound)]

    def as_documented(self) -> Found:
        return self.found[0]

    def sound(self) -> Found:
        return self.found[1]


@pytest.mark.parametrize(("documented", "sound", "expected"), [("CUT", "", 0), ("", "", 3), ("CUT", "FIFO", 1)])
def test_defects_ends_as_what_it_finds(
    documented: str, sound: str, expected: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That nothing is found would look like a violation, or a broken sound protocol like a missed entry."""
    entry = CatalogueEntry("A-99", "one", _Defect(documented, sound), "One.")
    monkeypatch.setattr(sim_cli_defects, "catalogue", lambda: (entry,))
    assert barrierlab(capsys, "defects")[0] == expected


TRACES = Path(__file__).parents[1] / "traces"


def test_show_ends_as_its_verdict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A trace that is broken would be shown as one that holds."""
    assert barrierlab(capsys, "show", str(TRACES / "restored_from_an_aligned_cut.trace"))[0] == 0
    assert barrierlab(capsys, "show", str(TRACES / "broken" / "wm_goes_back.trace"))[0] == 1
    open_end = tmp_path / "open.trace"
    open_end.write_text("topology: a->s\ncut_off: yes\n\n> trigger 1\n", encoding="utf-8")
    assert barrierlab(capsys, "show", str(open_end))[0] == 3
    assert barrierlab(capsys, "show", str(tmp_path / "none.trace"))[0] == 2


# What goes wrong with barrierlab itself.

EACH = [["run", "diamond"], ["scenarios"], ["table", "aligned"], ["check"], ["defects"], ["show", "x.trace"]]
EACH += [["export", "--list"]]
EACH += [["witness", "x.trace", "--checkpoint", "1"]]
EACH += [["sweep", "smoke", "--out", "x"], ["analyse", "x"], ["verify", "x"], ["report", "x"], ["measured"]]
EACH += [["rerun", "x", "0123"]]
EACH += [["import", "flink", "x"], ["calibrate", "x", "--from", "y"], ["predict", "x", "--costs", "y"]]
EACH += [["ask", "Q3"], ["advise", "diamond", "--mtbf", "1h"]]


@pytest.mark.parametrize("arguments", EACH, ids=lambda each: each[0])
def test_every_command_is_in_the_table(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of ours would look like a violation, Ctrl-C like a fault, and a traceback tell a user nothing."""

    def raises(error: BaseException) -> None:
        def callback(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(ALL[arguments[0]], "callback", callback)

    for error in (RuntimeError("what is\nthat"), AssertionError(), KeyError("x"), ModuleNotFoundError("nothing")):
        raises(error)
        status, out, err = barrierlab(capsys, *arguments)
        assert (status, out, len(err.splitlines())) == (2, "", 1)
        assert f"internal error: {type(error).__name__}" in err
        assert f"{TRACEBACK}=1 shows where it comes from" in err
    raises(PermissionError(13, "Permission denied", "/there/runs"))
    assert barrierlab(capsys, *arguments) == (2, "", "barrierlab: /there/runs: Permission denied\n")
    raises(KeyboardInterrupt())
    assert barrierlab(capsys, *arguments)[0] == 130
    monkeypatch.setenv(TRACEBACK, "1")
    raises(RuntimeError("here"))
    status, _, err = barrierlab(capsys, *arguments)
    assert status == 2
    assert "Traceback (most recent call last)" in err
    assert "raise error" in err


def test_the_table_has_every_command() -> None:
    """A new command would be in no test of its exit status."""
    assert {each[0] for each in EACH} == set(ALL)


@pytest.mark.parametrize("name", [None, *ALL])
def test_help_says_what_a_status_means(name: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever writes a script would have to look for it."""
    status, out, _ = barrierlab(capsys, *([name] if name else []), "--help")
    assert status == 0
    assert "Exit status: 0 it holds; 1 a violation was found, and nothing else; 2" in " ".join(out.split())


def test_a_machine_that_raises_is_a_violation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A protocol that breaks down in a run would look like a wrong input, or like an error of what drives it."""
    quick = ["run", "diamond", "--set", "until_s=3"]
    with monkeypatch.context() as patch:
        patch.setattr(impl_checkpoint_task, "digest", None)
        status, out, err = barrierlab(capsys, *quick)
        assert (status, err) == (1, "")
        assert out.startswith("! RAISED: TypeError: 'NoneType' object is not callable (in task.py, line ")
        assert out.splitlines()[-1] == "verdict: broken (1 violations)"
        status, out, _ = barrierlab(capsys, *quick, "--json")
        assert (status, json.loads(out)["violations"][0]["invariant"]) == (1, "RAISED")
        run = plan_of('[[part]]\nscenario = "diamond"\nseeds = [1]', "one", Path("one.toml")).runs[0]
        rows = rows_of(run, simulate)
        assert (rows["runs"][0]["status"], rows["runs"][0]["verdict"]) == ("RAISED", "broken")
        assert rows["violations"][0]["invariant"] == "RAISED"
        assert of_runs(outcome(rows["runs"], 1)) == 1
    monkeypatch.setattr(sim_checkpoint_engine.Metrics, "barrier", None)
    status, out, err = barrierlab(capsys, *quick)
    assert (status, out) == (2, "")
    assert err.startswith("barrierlab: internal error: TypeError: ")
    rows = rows_of(run, simulate)
    assert (rows["runs"][0]["status"], of_runs(outcome(rows["runs"], 1))) == ("ERROR", 2)


def test_a_pipe_that_is_closed_ends_a_command_silently() -> None:
    """`barrierlab run diamond | head -1` would end with 1, a violation, or with a traceback."""
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    for arguments in first((["run", "diamond", "--set", "until_s=3.0"], ["table", "aligned"])):
        reads, writes = os.pipe()
        os.close(reads)
        command = [sys.executable, "-m", "barrierlab.sim.cli.main", *arguments]
        done = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, env=here, text=True, check=False)
        os.close(writes)
        assert (done.returncode, done.stderr) == (141, "")


def test_a_usage_error_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A slip in an option would be a violation."""
    assert isinstance(cli, click.Group)
    status, out, err = barrierlab(capsys, "run", "diamond", "--sed", "1")
    assert (status, out) == (2, "")
    assert "No such option" in err
    status, out, _ = barrierlab(capsys, "run", "diamond", "--set", "until_s=2.5", "--strict", "--json")
    assert status == 0
    assert json.loads(out)["falls_short"] is False


def test_a_command_is_asked_for_with_the_list_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    """The first that a newcomer types would print the whole help in one line, as an error."""
    status, out, err = barrierlab(capsys)
    assert (status, out) == (2, "")
    assert "\nCommands:\n  run " in err


@pytest.mark.parametrize("arguments", [["scenarios"], ["scenarios", "--json"], ["--help"]])
def test_a_full_disk_under_the_output_is_wrong_input_in_one_line(arguments: list[str]) -> None:
    """It would pass for a mistake of barrierlab, to be reported."""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "barrierlab.sim.cli.main", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "barrierlab: the output cannot be written: No space left on device; give it a place with room\n"
    )
