"""The command `check` as a pipeline runs it: SARIF, annotations, JUnit, and the place in the source."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import barrierlab.sim.check.runner as sim_check_runner
import barrierlab.sim.cli.check as sim_cli_check
from barrierlab.model.checkpoint.check import Outcome, ScopeViolation
from barrierlab.model.suites.standard import SCOPES
from barrierlab.sim.check.runner import CheckPlan, check_one, plan
from barrierlab.sim.check.sarif import place_of, sarif
from barrierlab.sim.check.sources import external_modules
from tests.sim.support import barrierlab, in_this_process

Command = Callable[..., tuple[int, str, str]]
TWO_EVENTS = "aligned: a->join b->join join->s; events 2, checkpoints 1; no fault"
MODULE = '''"""An aligner that loses what it holds."""

import dataclasses

from barrierlab.impl.checkpoint.alignment import BarrierAligner


def marked(kind):
    """A decorator."""
    return kind


@marked
@marked
class Forgetful(BarrierAligner):
    """At line 15."""

    def process_message(self, input_id, message, now_ns=0):
        action = super().process_message(input_id, message, now_ns)
        queue = self.inputs.queues[input_id]
        if len(queue) > 1:
            queue.popleft()
        return action


class Outer:
    class Inner(BarrierAligner):
        """At line 27."""


Inner = Outer.Inner


def made():
    class Local(BarrierAligner):
        """At line 35."""

    return Local


Local = made()
Made = type("Made", (BarrierAligner,), {})
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a module of an engine, outside of any pipeline."""
    (tmp_path / "engine_in_ci.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "names_in_ci.py").write_text("from engine_in_ci import Forgetful\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("GITHUB_ACTIONS", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, without processes of its own: status, stdout and stderr."""

    def here(chosen: CheckPlan, master: str, budget_s: float | None, *_: object, **__: object) -> list[Outcome]:
        return [check_one(chosen, name, budget_s) for name in chosen.names]

    monkeypatch.setattr(sim_cli_check, "run", here)
    return lambda *arguments: barrierlab(capsys, "check", *arguments)


BROKEN = ("--impl", "engine_in_ci:Forgetful", "--scope", TWO_EVENTS)

SCHEMA: dict[str, tuple[set[str], dict[str, str]]] = {
    "log": ({"version", "runs"}, {"$schema": "uri", "version": "2.1.0", "runs": "[run"}),
    "run": (
        {"tool"},
        {"tool": "tool", "invocations": "[invocation", "results": "[result", "properties": "bag"},
    ),
    "tool": ({"driver"}, {"driver": "component"}),
    "component": ({"name"}, {"name": "text", "version": "text", "rules": "[descriptor"}),
    "descriptor": ({"id"}, {"id": "text", "shortDescription": "multiformat"}),
    "multiformat": ({"text"}, {"text": "text"}),
    "message": ({"text"}, {"text": "text"}),  # or an id, which is not used
    "invocation": (
        {"executionSuccessful"},
        {"executionSuccessful": "flag", "exitCode": "int", "toolExecutionNotifications": "[notification"},
    ),
    "notification": ({"message"}, {"level": "level", "message": "message"}),
    "result": (
        {"message"},
        {
            "ruleId": "text",
            "ruleIndex": "index",
            "level": "level",
            "message": "message",
            "locations": "[location",
            "codeFlows": "[codeFlow",
            "partialFingerprints": "texts",
            "properties": "bag",
        },
    ),
    "location": (
        set(),
        {"physicalLocation": "physical", "logicalLocations": "[logical", "message": "message"},
    ),
    "physical": ({"artifactLocation"}, {"artifactLocation": "artifact", "region": "region"}),  # or an address
    "artifact": (set(), {"uri": "uri", "uriBaseId": "text"}),
    "region": (set(), {"startLine": "line"}),
    "logical": (set(), {"fullyQualifiedName": "text", "kind": "text"}),
    "codeFlow": ({"threadFlows"}, {"threadFlows": "[threadFlow"}),
    "threadFlow": ({"locations"}, {"locations": "[step"}),
    "step": (set(), {"location": "location"}),
}
"""Of the objects of the schema of SARIF 2.1.0 that are written: the properties that it requires, and of those that it
allows (additionalProperties is false) the ones that are used, each with its type; `[` is an array."""
NOT_EMPTY = {"[threadFlow", "[step"}
"""Arrays with `minItems: 1`."""
VALUES: dict[str, Callable[[Any], bool]] = {
    "2.1.0": lambda value: value == "2.1.0",
    "text": lambda value: isinstance(value, str),
    "texts": lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
    "bag": lambda value: isinstance(value, dict),
    "flag": lambda value: isinstance(value, bool),
    "int": lambda value: type(value) is int,
    "index": lambda value: type(value) is int and value >= -1,
    "line": lambda value: type(value) is int and value >= 1,
    "level": lambda value: value in ("none", "note", "warning", "error"),
    "uri": lambda value: isinstance(value, str) and re.fullmatch(r"[\w.~:/?#@!$&'()*+,;=%-]+", value) is not None,
}


def breaches(value: Any, kind: str = "log", path: str = "$") -> Iterator[str]:
    """Return the place where a value departs from the schema."""
    if kind.startswith("["):
        if not isinstance(value, list) or (kind in NOT_EMPTY and not value):
            yield f"{path}: no array, or an empty one"
            return
        for number, each in enumerate(value):
            yield from breaches(each, kind[1:], f"{path}[{number}]")
    elif kind in VALUES:
        if not VALUES[kind](value):
            yield f"{path}: {value!r} is no {kind}"
    else:
        required, allowed = SCHEMA[kind]
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is no {kind}"
            return
        yield from (f"{path}: no {name}" for name in sorted(required - value.keys()))
        for name, each in value.items():
            if name in allowed:
                yield from breaches(each, allowed[name], f"{path}.{name}")
            else:
                yield f"{path}: {name} is not allowed"


def written(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The log, which is as the schema has it, and its run."""
    log = json.loads(path.read_text(encoding="utf-8"))
    assert list(breaches(log)) == []
    (run,) = log["runs"]
    return log, run


def test_a_violation_is_a_result_at_the_class_statement(folder: Path, check: Command) -> None:
    """Code scanning would refuse the file, or show the alert nowhere."""
    status, out, err = check(*BROKEN, "--sarif", "found.sarif", "--json")
    (violation,) = json.loads(out)["violations"]
    log, run = written(folder / "found.sarif")
    driver = run["tool"]["driver"]
    assert (status, driver["name"], driver["version"]) == (1, "barrierlab", version("barrierlab"))
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 1, "toolExecutionNotifications": []}]
    (result,) = run["results"]
    assert (result["ruleId"], driver["rules"][result["ruleIndex"]]["id"]) == (violation["invariant"],) * 2
    assert "exactly once" in driver["rules"][0]["shortDescription"]["text"] or violation["invariant"] == "FIFO"
    steps = violation["steps"]
    assert result["message"]["text"] == f"{violation['reason']} ({TWO_EVENTS}; {steps} steps)"
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "engine_in_ci.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 15},
    }
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "engine_in_ci.Forgetful"
    flow = result["codeFlows"][0]["threadFlows"][0]["locations"]
    told = [each["location"]["message"]["text"] for each in flow]
    assert "".join(f"{each}\n" for each in told) in result["properties"]["trace"]
    assert all(text.startswith("> ") for text in told)
    assert len(told) == result["properties"]["trace"].count("\n> ") > 3
    assert all("physicalLocation" in each["location"] for each in flow)
    again = check(*BROKEN, "--sarif", "again.sarif")
    fingerprints = written(folder / "again.sarif")[1]["results"][0]["partialFingerprints"]
    assert (again[0], fingerprints) == (1, result["partialFingerprints"])


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        (lambda log: log.pop("version"), "$: no version"),
        (lambda log: log["runs"][0].pop("tool"), "$.runs[0]: no tool"),
        (lambda log: log["runs"][0]["results"][0].pop("message"), "$.runs[0].results[0]: no message"),
        (lambda log: log["runs"][0]["results"][0].update(level="bad"), "$.runs[0].results[0].level: 'bad' is no level"),
        (lambda log: log["runs"][0].update(verdict="broken"), "$.runs[0]: verdict is not allowed"),
        (lambda log: log["runs"][0]["invocations"][0].clear(), "$.runs[0].invocations[0]: no executionSuccessful"),
    ],
)
def test_a_log_that_is_not_as_the_schema_has_it_is_found(damage: Callable[[Any], object], finding: str) -> None:
    """The comparison above would let everything pass."""
    violation = ScopeViolation("CUT", "a scope", 1, "a reason", "> trigger 1\n")
    outcome = Outcome("a scope", "aligned", "broken", "", 1, 1, 0.0, (violation,))
    log = json.loads(sarif([outcome], [violation], CheckPlan("tiny", ("a scope",)), 1))
    assert list(breaches(log)) == []
    damage(log)
    assert list(breaches(log)) == [finding]


def test_what_holds_or_is_undecided_is_no_result(folder: Path, check: Command) -> None:
    """An alert would be opened on what is not broken, or an undecided scope would look like one that holds."""
    sound = ("--impl", "engine_in_ci:Inner", "--protocol", "aligned", "--sarif", "found.sarif")
    scope = "aligned: a->s; events 1, checkpoints 1; abort"
    status, _, _ = check(*sound, "--scope", scope)
    _, run = written(folder / "found.sarif")
    assert (status, run["results"], run["invocations"][0]["exitCode"]) == (0, [], 0)
    assert run["invocations"][0]["toolExecutionNotifications"] == []
    assert (run["properties"]["scope"], run["properties"]["vacuous"]) == (scope, ["FWD", "WM", "REC"])
    status, out, _ = check(*sound, "--scope", scope, "--budget", "0.0001", "--github")
    _, run = written(folder / "found.sarif")
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert (status, run["results"], run["invocations"][0]["exitCode"]) == (3, [], 3)
    assert (told["level"], told["message"]["text"].startswith(f"undecided: {scope}: ")) == ("warning", True)
    (warning,) = [line for line in out.splitlines() if line.startswith("::")]
    assert warning.startswith(f"::warning file=engine_in_ci.py,line=27,title=undecided::{scope}: ")


def test_an_annotation_is_at_the_class_and_has_the_first_move(
    folder: Path, check: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reviewer would look for the class, and for where the run begins."""
    status, out, _ = check(*BROKEN, "--github")
    (line,) = [line for line in out.splitlines() if line.startswith("::")]
    first = next(move for move in out.splitlines() if move.startswith("> "))
    form = r"::error file=engine_in_ci\.py,line=15,title=(\w+)::(\w+): (.*) \((.*); (\d+) steps\)%0A(> .*)"
    found = re.fullmatch(form, line)
    assert found is not None
    assert (status, found[1], found[4], found[6]) == (1, found[2], TWO_EVENTS, first)
    assert [text for text in check(*BROKEN)[1].splitlines() if text.startswith("::")] == []
    status, out, err = check(*BROKEN, "--github", "--json")
    assert json.loads(out)["verdict"] == "broken"
    assert line in err.splitlines()
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder.parent))
    assert f"file={folder.name}/engine_in_ci.py,line=15," in check(*BROKEN, "--github")[1]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("engine_in_ci:Forgetful", 15),  # behind its decorators
        ("names_in_ci:Forgetful", 15),  # where it is written, and not where it is imported
        ("engine_in_ci:Inner", 27),
        ("engine_in_ci:Local", 35),
        ("engine_in_ci:Made", 1),  # of no statement
    ],
)
def test_the_place_is_the_class_statement(name: str, line: int, folder: Path) -> None:
    """The annotation would be at a decorator, at an import, or at another class."""
    place = place_of(plan("tiny", ["aligned"], name))
    assert place is not None
    assert (place.file, place.line) == ("engine_in_ci.py", line)
    if line > 1:
        assert MODULE.splitlines()[line - 1].strip().startswith("class ")


def test_the_machines_of_the_package_have_no_place(folder: Path, check: Command) -> None:
    """An annotation would name a file that is not in the checkout."""
    assert place_of(plan("tiny", ["join"], "")) is None
    status, out, _ = check("--scope", "join: lockstep", "--github", "--sarif", "found.sarif")
    assert (status, written(folder / "found.sarif")[1]["results"]) == (0, [])
    assert next(line for line in out.splitlines() if line.startswith("::")).startswith("::notice title=barrierlab::")


def test_a_suite_of_junit_says_what_was_asked(folder: Path, check: Command) -> None:
    """A report would not say of which version it is, or how far it reaches."""
    little = ("--impl", "tests.model.test_asked:Little", "--scope", "tiny", "--protocol", "aligned")
    assert check(*little, "--junit", "junit.xml")[0] == 0
    properties = ET.parse(folder / "junit.xml").getroot().findall("properties/property")
    found = {each.get("name"): each.get("value") for each in properties}
    assert int(found.pop("states") or 0) > 1000
    assert int(found.pop("transitions") or 0) > 1000
    assert found == {
        "version": version("barrierlab"),
        "implementation": "tests.model.test_asked:Little",
        "judge": "dataflows",
        "scope": "tiny",
        "verdict": "holds",
        "scopes": "7",
        "kept": "0",
        "not asked": "aborts, ends, timeout",
        "vacuous": "WM",
        "struck nothing": "",
    }


@pytest.mark.parametrize(
    ("path", "text"), [("nowhere/found.sarif", "--sarif nowhere/found.sarif: there is no folder nowhere"), (".", "")]
)
def test_a_file_that_cannot_be_written_is_one_line(path: str, text: str, folder: Path, check: Command) -> None:
    """A traceback, or status 1 for what is no violation."""
    status, out, err = check(*BROKEN, "--sarif", path)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert text in err


# The ledger of --changed.

LEDGER = ("--impl", "engine_in_ci:Inner", "--scope", "aligned: a->s; events 1, checkpoints 1; abort", "--changed")
"""A class that holds, in a small scope."""


@pytest.fixture
def changed(capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command with the ledger, as a new process sees the files: status, verdict as JSON, lines on stderr.

    The worker is this process, which forgets what it has loaded.
    """

    monkeypatch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)

    def command(*arguments: str) -> tuple[int, dict[str, Any], list[str]]:
        for name in ("engine_in_ci", "part_in_ci"):
            sys.modules.pop(name, None)
        sim_check_runner._known_keys.clear()
        sim_check_runner._opened.clear()
        status, out, err = barrierlab(capsys, "check", *(arguments or LEDGER), "--json", "--master", "processes[1]")
        return status, json.loads(out or "{}"), [line for line in err.splitlines() if line.startswith("barrierlab: ")]

    return command


def kept(found: dict[str, Any]) -> list[bool]:
    """Of each scope, whether its verdict is kept."""
    return [scope["kept"] for scope in found["scopes"]]


def test_what_has_not_changed_is_not_checked_again(
    folder: Path, changed: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every commit would pay for what no commit has touched; or nobody would see that nothing was checked."""
    status, found, err = changed()
    assert (status, found["verdict"], kept(found), err) == (0, "holds", [False], [])
    assert (folder / ".barrierlab" / ".gitignore").read_text() == "*\n"
    monkeypatch.setattr("barrierlab.sim.sweep.execute.on_processes", None)  # a worker that is started would raise
    status, again, err = changed()
    assert (status, kept(again), err) == (0, [True], [])
    assert [each | {"kept": False} for each in again["scopes"]] == found["scopes"]


def test_a_kept_verdict_says_that_it_is_kept(folder: Path, check: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict of last week would look like one of today."""
    outcome = replace(check_one(plan(LEDGER[3], ["aligned"], LEDGER[1]), LEDGER[3]), kept=True)
    monkeypatch.setattr(sim_cli_check, "run", lambda *_, **__: [outcome])
    files = ("--junit", "junit.xml", "--sarif", "found.sarif", "--markdown", "page.md")
    status, out, _ = check(*LEDGER, *files)
    assert (status, "kept: 1 of 1 verdicts, as nothing has changed on which they depend" in out) == (0, True)
    assert re.search(r"verdict: holds \(1 scopes, \d+ states, 1 kept; ", out.splitlines()[-1])
    assert "1 kept" in (folder / "page.md").read_text()
    assert ET.parse(folder / "junit.xml").getroot().find("properties/property[@name='kept']").get("value") == "1"
    assert written(folder / "found.sarif")[1]["properties"]["kept"] == 1


def test_a_violation_is_kept_with_its_run(folder: Path, changed: Command) -> None:
    """The second pipeline would be green, or red without a reason."""
    first, again = changed(*BROKEN, "--changed"), changed(*BROKEN, "--changed", "--save", "found")
    assert (first[0], again[0], kept(first[1]), kept(again[1])) == (1, 1, [False], [True])
    assert first[1]["violations"] == again[1]["violations"] != []
    (trace,) = (folder / "found").glob("*.trace")
    assert "\n> deliver " in trace.read_text(encoding="utf-8")
    assert [path.name for path in (folder / "found").glob("*.json")] == ["counterexamples.json"]


def test_only_what_a_change_touches_is_checked_again(folder: Path, changed: Command) -> None:
    """A class would keep the verdict of what it was; or one change would cost every class its verdict."""
    (folder / "engine_in_ci.py").write_text(MODULE + "\nimport part_in_ci\n", encoding="utf-8")
    (folder / "part_in_ci.py").write_text("LIMIT = 1\n", encoding="utf-8")
    (folder / "other_in_ci.py").write_text(
        "from barrierlab.impl.checkpoint.alignment import BarrierAligner as Other\n", encoding="utf-8"
    )
    other = ("--impl", "other_in_ci:Other", *LEDGER[2:])
    assert kept(changed()[1]) == kept(changed(*other)[1]) == [False]
    (folder / "part_in_ci.py").write_text("LIMIT = 2\n", encoding="utf-8")
    status, found, err = changed()
    (line,) = err
    assert (status, kept(found)) == (0, [False])
    assert line.startswith("barrierlab: --changed: 1 of 1 kept verdicts do not count: what they depend on has changed")
    assert (kept(changed()[1]), kept(changed(*other)[1])) == ([True], [True])


def only(folder: Path) -> Path:
    """The verdict in the ledger."""
    (path,) = (folder / ".barrierlab").glob("*.json")
    return path


def cut_off(path: Path) -> None:
    """The machine stopped."""
    path.write_bytes(path.read_bytes()[:100])


def emptied(path: Path) -> None:
    """The disk was full."""
    path.write_bytes(b"")


def of_others(path: Path) -> None:
    """Another tool writes there."""
    path.write_text('{"verdict": "holds"}', encoding="utf-8")


def no_text(path: Path) -> None:
    """It is no text at all."""
    path.write_bytes(b"\xff\xfe\x00\x01")


def one_letter(path: Path) -> None:
    """It can be read, and says something else."""
    path.write_text(path.read_text().replace('"states": ', '"states": 1'), encoding="utf-8")


def test_a_damaged_ledger_is_one_line_and_counts_for_nothing(folder: Path, changed: Command) -> None:
    """A pipeline would fail for want of a cache, or a verdict would count that nobody has come to."""
    assert kept(changed()[1]) == [False]
    path = only(folder)
    for damage in (cut_off, emptied, of_others, no_text, one_letter):
        damage(path)
        status, found, err = changed()
        (line,) = err
        assert (status, found["verdict"], kept(found)) == (0, "holds", [False]), damage.__name__
        assert line.startswith(f"barrierlab: --changed: {Path('.barrierlab', path.name)}")
        assert line.endswith("; everything is checked anew")
    assert kept(changed()[1]) == [True]


@pytest.mark.parametrize("scopes", [3, pytest.param(16, marks=pytest.mark.slow)])
def test_one_damaged_verdict_discredits_the_others(
    scopes: int, folder: Path, changed: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash that has damaged one may have damaged what cannot be seen."""

    def holds(_: CheckPlan, name: str, *__: object) -> Outcome:
        sim_check_runner._imported.update(external_modules())  # as where a class is looked at
        return Outcome(name, "aligned", "holds", "", 1, 1, 0.0)

    tiny = [each for each in SCOPES["tiny"]() if each.protocol == "aligned"][:scopes]
    monkeypatch.setitem(SCOPES, "tiny", lambda: iter(tiny))
    monkeypatch.setattr(sim_check_runner, "check_one", holds)
    both = ("--impl", "engine_in_ci:Inner", "--scope", "tiny", "--protocol", "aligned", "--changed")
    assert not any(kept(changed(*both)[1]))
    assert all(kept(changed(*both)[1]))
    cut_off(min((folder / ".barrierlab").glob("*.json")))
    status, found, err = changed(*both)
    assert (status, len(found["scopes"]), any(kept(found)), len(err)) == (0, scopes, False, 1)


def test_a_verdict_under_the_name_of_another_does_not_count(folder: Path, changed: Command) -> None:
    """A scope would hold because another does."""
    other = (*LEDGER[:3], "aligned: a->s; events 1, checkpoints 1; no fault", "--changed")
    changed()
    content = only(folder).read_bytes()
    changed(*other)
    (path,) = (each for each in (folder / ".barrierlab").glob("*.json") if each.read_bytes() != content)
    path.write_bytes(content)
    status, found, err = changed(*other)
    assert (status, kept(found), found["scopes"][0]["name"]) == (0, [False], other[3])
    assert "it was changed, or copied from elsewhere" in err[0]


def test_a_file_that_is_read_while_a_scope_is_explored_leaves_no_key(folder: Path, changed: Command) -> None:
    """The verdict would stay when that file changes, of which no import knows."""
    reads = "def __init__(self, *args):\n            open('limit.txt').close()\n            super().__init__(*args)"
    (folder / "engine_in_ci.py").write_text(
        MODULE.replace('"""At line 27."""', f'"""Reads."""\n\n        {reads}'), encoding="utf-8"
    )
    (folder / "limit.txt").write_text("1", encoding="utf-8")
    assert kept(changed()[1]) == [False]
    status, found, (line,) = changed()
    assert (status, kept(found)) == (0, [False])
    assert "1 of 1 kept verdicts do not count: what they depend on has changed, or was not known" in line


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--changed", "--resume", "--save", "found"), "--changed and --resume: give one of them"),
        (("--ledger", "kept"), "--ledger kept needs --changed"),
        (("--changed", "--ledger", "engine_in_ci.py"), "is a file"),
        (("--changed", "--ledger", "engine_in_ci.py/kept"), "--ledger engine_in_ci.py/kept: cannot be made: "),
    ],
)
def test_a_ledger_that_cannot_be_is_one_line(
    arguments: tuple[str, ...], text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person would be left with a traceback, or with a check of nothing."""
    status, out, err = barrierlab(capsys, "check", *LEDGER[:4], *arguments, "--master", "processes[1]")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert text in err


def test_an_external_class_needs_no_process_of_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipeline would pay for processes more than for the check itself."""
    monkeypatch.setattr("barrierlab.sim.sweep.execute.on_processes", None)
    chosen = ("--impl", "engine_in_ci:Inner", "--scope", LEDGER[3])
    status, out, err = barrierlab(capsys, "check", *chosen, "--json")
    assert (status, json.loads(out)["verdict"]) == (0, "holds")
    assert err.startswith("1 of 1 scopes, ")
