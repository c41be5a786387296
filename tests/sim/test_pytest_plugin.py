"""The plugin of pytest, in a pytest of its own."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import barrierlab.sim.check.report
import barrierlab.sim.check.runner
import barrierlab.sim.check.sarif
import barrierlab.sim.cli.show

pytest_plugins = ["pytester"]
PLUGIN = "barrierlab.sim.check.pytest_plugin"
TWO_EVENTS = "aligned: a->join b->join join->s; events 2, checkpoints 1; no fault"
ABORT = "aligned: a->s; events 1, checkpoints 1; abort"
MODULE = '''
from barrierlab.impl.checkpoint.alignment import BarrierAligner
from barrierlab.impl.checkpoint.coordinator import CheckpointCoordinator
from barrierlab.model.checkpoint.capabilities import Capabilities

class Sound(BarrierAligner):
    pass

class Mine(CheckpointCoordinator):
    pass

class Little(BarrierAligner):
    capabilities = Capabilities(aborts=False)

class Forgetful(BarrierAligner):
    """At line 14."""

    def process_message(self, input_id, message, now_ns=0):
        action = super().process_message(input_id, message, now_ns)
        queue = self.inputs.queues[input_id]
        if len(queue) > 1:
            queue.popleft()
        return action
'''


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """The project of an engine: a module and a test."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the plugin may be installed, or not yet
    for name in ("GITHUB_WORKSPACE", "CI", "BUILD_NUMBER"):  # pytest's summary is another in CI
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(engine_under_pytest=MODULE, test_of_theirs="def test_of_theirs():\n    pass\n")
    pytester.syspathinsert()
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest with the plugin."""
    return project.runpytest_inprocess("-p", PLUGIN, *arguments)


def of(name: str) -> str:
    """The option that names a class of the module."""
    return f"--barrierlab-impl=engine_under_pytest:{name}"


def test_each_scope_is_a_test(project: pytest.Pytester) -> None:
    """A team could not see, select or repeat what it is asked."""
    result = run(project, of("Sound"), "-k", "events and abort or theirs", "-v")
    result.assert_outcomes(passed=4, skipped=6, deselected=39)
    result.stdout.fnmatch_lines([f"barrierlab::{ABORT} PASSED*"])
    assert result.ret == 0


def test_a_scope_that_is_not_asked_is_skipped(project: pytest.Pytester) -> None:
    """A suite would look as if everything had been asked."""
    result = run(project, of("Little"), "-k", "aligned and abort and not unaligned and not aligned_with_timeout", "-rs")
    result.assert_outcomes(skipped=3, deselected=46)
    result.stdout.fnmatch_lines(["*it needs aborts (rule 10), which the class does not declare*"])


def test_several_classes_are_checked_together(project: pytest.Pytester) -> None:
    """A coordinator could not be checked in a suite, or not with an aligner."""
    result = run(project, of("Sound"), of("Mine"), f"--barrierlab-scope={ABORT}", "-k", "barrierlab", "-v")
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines([f"barrierlab::{ABORT} PASSED*"])


@pytest.mark.parametrize("in_ci", ["", "true"])
def test_a_failure_shows_the_run_and_the_picture(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, in_ci: str
) -> None:
    """A team would see that something is broken, and not how; in CI, where pytest cuts no summary, all of it twice."""
    monkeypatch.setenv("CI", in_ci)
    result = run(project, of("Forgetful"), f"--barrierlab-scope={TWO_EVENTS}", "-k", "barrierlab", "--junitxml=j.xml")
    result.assert_outcomes(failed=1, deselected=1)
    assert result.ret == 1
    text = result.stdout.str()
    shown = [line for line in text.splitlines() if line.startswith(("> deliver", "! ", "# "))]
    assert (shown[0].startswith("# "), shown[-1].startswith("! "), "> deliver a->join" in shown) == (True, True, True)
    (summary,) = [line for line in text.splitlines() if line.startswith("FAILED barrierlab::")]
    assert ("- ! FIFO: a2 took" in summary) == (in_ci == "true")  # cut to the width of a terminal elsewhere
    assert "Traceback" not in text
    written = [line.removeprefix("written: ") for line in text.splitlines() if line.startswith("written: ")]
    trace, picture, page = map(Path, written)
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert trace.read_text(encoding="utf-8").rstrip("\n") in text
    failure = ET.parse(project.path / "j.xml").getroot().find(".//failure")
    assert failure is not None
    assert "> deliver a->join" in (failure.text or "")
    without = run(project, of("Forgetful"), f"--barrierlab-scope={TWO_EVENTS}", "-p", "no:cacheprovider")
    without.assert_outcomes(failed=1, passed=1)
    assert "> deliver a->join" in without.stdout.str()
    assert "written: " not in without.stdout.str()


def test_a_test_is_at_the_class_statement(project: pytest.Pytester) -> None:
    """An editor would lead to nowhere."""
    items, _ = project.inline_genitems("-p", PLUGIN, of("Forgetful"), f"--barrierlab-scope={TWO_EVENTS}")
    (item,) = [each for each in items if each.nodeid.startswith("barrierlab::")]
    assert item.location == ("engine_under_pytest.py", 13, TWO_EVENTS)  # counted from 0


def test_what_is_undecided_fails(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scope that nobody has seen to its end would pass."""
    check_one = barrierlab.sim.check.runner.check_one
    monkeypatch.setattr(barrierlab.sim.check.runner, "check_one", lambda chosen, name: check_one(chosen, name, 0.0))
    result = run(project, of("Sound"), f"--barrierlab-scope={ABORT}")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines([f"undecided: {ABORT}: the budget was used up before it began"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--barrierlab-impl=engine_under_pytest:Nope",), "engine_under_pytest has no class 'Nope'; its classes: "),
        (("--barrierlab-impl=no_such_engine:It",), "there is no module 'no_such_engine'"),
        ((of("Sound"), "--barrierlab-scope=tinny"), "there is no scope 'tinny'; did you mean 'tiny'?"),
        ((of("Sound"), "--barrierlab-judge=tables"), "there is no judge 'tables'; allowed: dataflows, table"),
    ],
)
def test_a_wrong_input_is_one_line(arguments: tuple[str, ...], text: str, project: pytest.Pytester) -> None:
    """A suite would be green without a check, or a person left with a traceback."""
    result = run(project, *arguments)
    assert result.ret == 2
    (line,) = [line for line in result.stdout.str().splitlines() if line.startswith("barrierlab: ")]
    assert text in line
    assert "Traceback" not in result.stdout.str()
    result.assert_outcomes(errors=1)


def test_a_wrong_input_is_status_2_where_workers_collect(project: pytest.Pytester) -> None:
    """A class that cannot be checked would be status 1, which means a violation."""
    result = project.runpytest_subprocess("-p", "xdist", "-p", PLUGIN, "-n", "2", of("Nope"))
    assert result.ret == 2
    assert "engine_under_pytest has no class 'Nope'" in result.stderr.str() + result.stdout.str()


def test_without_the_option_nothing_is_collected_or_imported(project: pytest.Pytester) -> None:
    """Every project beside would wait for what it does not use."""
    project.makepyfile(
        test_imports=f"""
        import sys

        def test_what_is_imported():
            found = {{name for name in sys.modules if name.startswith("barrierlab")}}
            assert found == {{"barrierlab", "barrierlab.sim", "barrierlab.sim.check", {PLUGIN!r}}}
            assert not {{"networkx", "simpy", "numpy", "rich", "click"}} & set(sys.modules)
        """
    )
    result = project.runpytest_subprocess("-p", PLUGIN)
    result.assert_outcomes(passed=2)


def test_the_package_declares_the_plugin() -> None:
    """An installation would not know the option."""
    pyproject = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert pyproject["project"]["entry-points"]["pytest11"] == {"barrierlab": PLUGIN}
    assert import_module(PLUGIN).pytest_addoption
