"""The commands as a user meets them: what they print, where, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.sim.support import COMMANDS, barrierlab


@pytest.mark.parametrize(
    "command",
    [COMMANDS[name] for name in ("sweep", "analyse", "verify", "report", "measured")],
    ids=lambda command: command.name,
)
def test_help_has_an_example(capfd, command):
    """Whoever asks for help wants a line to copy."""
    status, out, _ = barrierlab(capfd, command.name, "--help")
    assert status == 0
    assert f"Example: barrierlab {command.name}" in " ".join(out.split())


def test_a_sweep_prints_one_json_object(capfd, tmp_path, in_process):
    """Machines read stdout, so there must be nothing else on it."""
    out = tmp_path / "out"
    status, stdout, stderr = barrierlab(
        capfd, "sweep", "smoke", "--out", str(out), "--master", "processes[2]", "--json"
    )
    found = json.loads(stdout)
    assert status == 0
    assert (found["planned"], found["done"], found["OK"], found["violations"]) == (8, 8, 8, 0)
    assert "8 of 8 runs" in stderr
    status, stdout, stderr = barrierlab(
        capfd, "sweep", "smoke", "--out", str(out), "--master", "processes[2]", "--resume"
    )
    assert (status, stderr.strip()) == (0, "8 of 8 runs are done already")
    state = "warning: Of 8 runs 8 are too short to judge (fewer than 20 checkpoints after the warm-up)."
    assert stdout.splitlines() == ["0 violations in 8 runs", state, f"results: {out}"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sweep", "smoke", "--out", "{}", "--master", "lokal"], "--master is 'lokal'"),
        (["sweep", "smoek", "--out", "{}/new"], "did you mean 'smoke'"),
        (["sweep", "{}/bad.toml", "--out", "{}/new"], "bad.toml: part 1: unknown key 'seed'"),
        (["sweep", "smoke", "--out", "{}"], "is there already: name another directory"),
        (["sweep", "smoke"], "Missing option '--out'"),
        (["analyse", "{}"], "is not the directory of a sweep"),
        (["report", "{}/nowhere"], "is not the directory of a sweep"),
        (["report", "{}/nowhere", "--out", "{}/new"], "is not the directory of a sweep"),
        (["measured", "--seeds", "0"], "--seeds"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(capfd, tmp_path, arguments, words):
    """No stack trace for a slip; one line that says what was wrong, nothing on stdout."""
    (tmp_path / "bad.toml").write_text('[[part]]\nscenario = "diamond"\nseed = [1]\n')
    status, out, err = barrierlab(capfd, *[argument.format(tmp_path) for argument in arguments])
    assert (status, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("target", ["file/below", "taken", "out"])
def test_where_a_report_cannot_be_written_nothing_is_analysed(capfd, tmp_path, monkeypatch, target):
    """The analysis of a large sweep, and drawings of its runs, would be made for nothing."""
    import barrierlab.sim.sweep.analyse as module
    from barrierlab.sim.sweep.plan import load_plan
    from barrierlab.sim.sweep.store import Store

    Store.create(tmp_path / "out", load_plan("smoke"))
    (tmp_path / "file").touch()
    for folder in ("taken", "out"):
        (tmp_path / folder / "report.html").mkdir(parents=True)
    monkeypatch.setattr(module, "analysed", lambda *_: pytest.fail("it was analysed"))
    options = [] if target == "out" else ["--out", str(tmp_path / target)]
    status, out, err = barrierlab(capfd, "report", str(tmp_path / "out"), *options)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert str(tmp_path / target) in err


def test_ctrl_c_says_how_to_go_on(tmp_path):
    """After Ctrl-C the directory can be resumed, and the command for it is on the screen."""
    out, sweep_file = tmp_path / "out", tmp_path / "many.toml"
    sweep_file.write_text(
        '[[part]]\nscenario = "diamond"\nseeds = { first = 1, last = 400 }\nset = { until_s = 1.0 }\n'
    )
    arguments = ["sweep", str(sweep_file), "--out", str(out), "--master", "processes[1]"]
    with subprocess.Popen(
        [sys.executable, "-m", "barrierlab", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as sweep:
        first = sweep.stderr.readline()
        os.killpg(sweep.pid, signal.SIGINT)
        stdout, stderr = sweep.communicate(timeout=120)
    assert sweep.returncode == 130
    assert " runs, " in first
    assert stdout == ""
    assert stderr.splitlines()[-1].endswith(f"to go on: barrierlab {' '.join(arguments)} --resume")
    assert "Traceback" not in stderr


def test_a_violation_is_status_1(capfd, tmp_path, monkeypatch):
    """Scripts must notice a broken invariant by the exit status alone."""
    import barrierlab.sim.sweep.execute as module

    def broken(plan, store, master, tick):
        rows = {"runs": [], "checkpoints": [], "tasks": [], "violations": [], "joins": []}
        for run in plan.runs:
            rows["runs"].append({"run_id": run.run_id, "status": "OK", "verdict": "broken", "violations": 2})
        store.write_chunk(rows)

    monkeypatch.setattr(module, "execute", broken)
    status, out, _ = barrierlab(capfd, "sweep", "smoke", "--out", str(tmp_path / "out"), "--master", "processes")
    assert (status, out.splitlines()[0]) == (1, "16 violations in 8 runs")


@pytest.mark.parametrize(
    "command", [["sweep", "smoke", "--out", "{}/out"], ["analyse", "{}/begun", "--engine", "spark"]]
)
def test_an_unusable_java_is_one_line_and_leaves_nothing_behind(capfd, tmp_path, monkeypatch, command):
    """Whoever repairs JAVA_HOME and tries again must not get the advice to resume."""
    from barrierlab.sim.sweep.plan import load_plan
    from barrierlab.sim.sweep.store import Store

    Store.create(tmp_path / "begun", load_plan("smoke"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)  # other tests may have one
    status, out, err = barrierlab(capfd, *[argument.format(tmp_path) for argument in command])
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "no program bin/java in it: set JAVA_HOME to a Java 17 or newer" in err
    assert not (tmp_path / "out").exists()
