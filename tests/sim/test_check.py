"""The command `check`: verdicts for people and machines, an external aligner, and wrong input."""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import barrierlab.sim.check.runner as sim_check_runner
import barrierlab.sim.cli.check as sim_cli_check
from barrierlab.model.checkpoint.check import Outcome
from barrierlab.model.explore.checker import NonDeterministicError
from barrierlab.model.suites.standard import SCOPES
from barrierlab.sim.check.report import KEPT
from barrierlab.sim.check.runner import CheckError, CheckPlan, check_one, plan, run
from tests.sim.support import barrierlab, in_this_process

Command = Callable[..., tuple[int, str, str]]
FORGETFUL = """
from barrierlab.impl.checkpoint.alignment import BarrierAligner

class Forgetful(BarrierAligner):
    def process_message(self, input_id, message, now_ns=0):
        action = super().process_message(input_id, message, now_ns)
        queue = self.inputs.queues[input_id]
        if len(queue) > 1:
            queue.popleft()
        return action

class Same(BarrierAligner):
    pass

class Counts(BarrierAligner):
    calls = 0

    def process_message(self, input_id, message, now_ns=0):
        Counts.calls += 1
        queue = self.inputs.queues[input_id]
        action = super().process_message(input_id, message, now_ns)
        if Counts.calls % 7 == 0 and queue:
            queue.popleft()
        return action

class NoGate:
    def __init__(self, port, config):
        pass
"""
SMALLER = "aligned: a->s b->s; events 2, checkpoints 1, capacity 1; no fault"
TWO_EVENTS = "aligned: a->join b->join join->s; events 2, checkpoints 1; no fault"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of one's own, in which the command is called."""
    (tmp_path / "of_mine.py").write_text(FORGETFUL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path


@pytest.fixture
def apart(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, with one worker, a process of its own: status, stdout and stderr."""
    return lambda *arguments: barrierlab(capsys, "check", *arguments, "--master", "processes[1]")


@pytest.fixture
def check(apart: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same without a process more, where that tells nothing: it takes longer to start than most scopes."""

    monkeypatch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)
    return apart


@pytest.fixture(params=["in this process", pytest.param("apart", marks=pytest.mark.slow)])
def anew(request: pytest.FixtureRequest) -> Iterator[Command]:
    """The command as of a new process: one apart, or this one, which forgets what it has loaded of one's own."""
    command: Command = request.getfixturevalue("apart" if request.param == "apart" else "check")

    def forget() -> None:
        for name in ("mine", "part", "made"):
            sys.modules.pop(name, None)
        sim_check_runner._known_keys.clear()
        sim_check_runner._opened.clear()

    def called(*arguments: str) -> tuple[int, str, str]:
        forget()
        return command(*arguments)

    yield called
    forget()


def test_what_holds_is_said_so_by_protocol(mine: Path, apart: Command) -> None:
    """A person could not tell what was looked at."""
    status, out, err = apart("--scope", "tiny", "--protocol", "join", "--protocol", "control")
    assert status == 0
    assert [line.split()[1] for line in out.splitlines() if "│" in line] == ["control", "join"]
    assert out.splitlines()[-1].startswith("verdict: holds (22 scopes, ")
    assert "22 of 22 scopes" in err


def test_json_has_what_is_promised_and_nothing_else(mine: Path, check: Command) -> None:
    """A machine that reads it would fail."""
    status, out, _ = check("--scope", "tiny", "--protocol", "join", "--json")
    found = json.loads(out)
    assert status == 0
    reach = {"vacuous", "vacuous_asked_for", "idle_faults", "falls_short"}
    assert set(found) == {"verdict", "scopes", "violations", *reach}
    assert (found["verdict"], found["violations"]) == ("holds", [])
    assert {tuple(each) for each in found["scopes"]} == {
        ("name", "protocol", "verdict", "states", "transitions", "seconds", "premises", "struck", "kept")
    }
    assert {each["name"] for each in found["scopes"]} >= {"join: lockstep", "join: offset"}


def test_an_aligner_of_ones_own_is_refuted_in_every_form(
    mine: Path, check: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A team would not see, in its own tools, that its aligner loses events."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(mine / "summary.md"))
    status, out, _ = check(
        *("--impl", "of_mine:Forgetful", "--scope", TWO_EVENTS),
        *("--save", "kept", "--junit", "junit.xml", "--markdown", "page.md"),
    )
    assert status == 1
    assert "! NOLOSS: " in out or "! FIFO: " in out
    assert "> deliver a->join" in out
    assert "verdict: broken (1 scopes, " in out
    (annotation,) = [line for line in out.splitlines() if line.startswith("::error ")]
    assert TWO_EVENTS.replace(":", ":") in annotation
    suite = ET.parse(mine / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert "> deliver a->join" in failure.text
    page = (mine / "page.md").read_text(encoding="utf-8")
    assert page == (mine / "summary.md").read_text(encoding="utf-8")
    assert "| aligned | 1 |" in page
    assert "> deliver a->join" in page
    (trace,) = (mine / "kept").glob("*.trace")
    assert trace.read_text(encoding="utf-8") == failure.text
    assert trace.with_suffix(".svg").read_text(encoding="utf-8").startswith("<svg")
    assert '<div class="brl-run">' in trace.with_suffix(".html").read_text(encoding="utf-8")


def test_an_aligner_that_is_sound_holds_in_the_same_scope(mine: Path, check: Command) -> None:
    """Whatever one brings would be refuted."""
    status, out, _ = check("--impl", "of_mine:Same", "--scope", TWO_EVENTS)
    beyond = "; no invariant of dataflows asks rules 6, 8, 9, 11, 12, 15, 19"
    assert (status, out.splitlines()[-1]) == (
        0,
        f"verdict: holds (1 scopes, 343 states; vacuous: WM, REC){beyond}",
    )
    status, out, _ = check("--impl", "of_mine:Same", "--scope", TWO_EVENTS, "--judge", "table")
    assert (status, out.splitlines()[-1]) == (0, "verdict: holds (1 scopes, 343 states; vacuous: WM, REC)")


def test_what_is_not_asked_is_said_in_every_form(mine: Path, check: Command) -> None:
    """A verdict over half of the scopes would look like one over all of them."""
    little = ("--impl", "tests.model.test_asked:Little", "--scope", "tiny", "--protocol", "aligned")
    status, out, _ = check(*little, "--json", "--junit", "junit.xml", "--markdown", "page.md")
    found = json.loads(out)
    assert (status, found["verdict"], found["judge"], len(found["scopes"])) == (0, "holds", "dataflows", 7)
    assert set(found["rules_not_asked"]) == {"6", "8", "9", "11", "12", "15", "19"}
    not_asked = {each["name"]: each["capability"] for each in found["not_asked"]}
    assert not_asked["aligned: a->s b->s; events 1, checkpoints 1; closed input"] == "ends"
    assert len(not_asked) == 9
    suite = ET.parse(mine / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("skipped"), suite.get("failures")) == ("16", "9", "0")
    skipped = [each.get("message") for each in suite.findall("testcase/skipped")]
    assert "it needs aborts (rule 10), which the class does not declare" in skipped
    page = (mine / "page.md").read_text(encoding="utf-8")
    assert "holds for 7 of 16 scopes" in page
    assert "Not asked, for want of ends: aligned: a->s; events 1, checkpoints 1; closed input; " in page


def test_strict_takes_a_verdict_without_aborts_and_ends_for_undecided(mine: Path, check: Command) -> None:
    """A pipeline would go on with what was hardly asked."""
    little = ("--impl", "tests.model.test_asked:Little", "--scope", "tiny", "--protocol", "aligned", "--strict")
    assert check(*little)[0] == 3
    assert check("--impl", "of_mine:Same", "--scope", TWO_EVENTS, "--strict")[0] == 0
    assert check("--impl", "of_mine:Forgetful", "--scope", TWO_EVENTS, "--strict")[0] == 1


def test_what_is_left_out_of_a_gate_is_said(check: Command) -> None:
    """A verdict over gates at which nothing is aborted would look like one over all that can happen there."""
    scope = "aligned table: ids that leave some out"
    gate = ("--impl", "tests.model.test_asked:NoAborts", "--judge", "table", "--scope", scope)
    status, out, _ = check(*gate)
    assert (status, "not asked: aborts (rule 10)" in out) == (0, True)
    assert check(*gate, "--strict")[0] == 3
    assert json.loads(check(*gate, "--json")[1])["left_out"] == ["aborts"]


def test_what_a_verdict_says_nothing_of_is_said_in_every_form(mine: Path, check: Command) -> None:
    """A check would hold in which no watermark came, and no deadline could pass, as one in which both did."""
    chain = ("--scope", "aligned: a->s; events 1, checkpoints 1; timeout")
    status, out, _ = check(*chain, "--junit", "junit.xml", "--markdown", "page.md")
    said = [
        "vacuous: FWD had nothing to judge (events and watermarks sent by operators at which a barrier took effect: 0)",
        "vacuous: WM had nothing to judge (watermarks that took effect at a task: 0)",
        "vacuous: REC had nothing to judge (restores of the job: 0)",
        f"struck nothing: timeout, in {chain[1]!r}",
    ]
    assert (status, out.splitlines()[-5:-1]) == (0, said)
    assert out.splitlines()[-1].endswith("; vacuous: FWD, WM, REC; struck nothing: timeout)")
    page = (mine / "page.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in said if line not in page] == []
    properties = ET.parse(mine / "junit.xml").getroot().findall("properties/property")
    found = {each.get("name"): each.get("value") for each in properties}
    assert (found["vacuous"], found["struck nothing"]) == ("FWD, WM, REC", "timeout")
    status, out, _ = check(*chain, "--json", "--strict")
    json_found = json.loads(out)
    assert (status, json_found["verdict"], json_found["falls_short"]) == (3, "holds", True)
    assert (json_found["vacuous"], json_found["vacuous_asked_for"]) == (["FWD", "WM", "REC"], [])
    assert json_found["idle_faults"] == ["timeout"]
    (scope,) = json_found["scopes"]
    assert (scope["premises"]["REC"], scope["premises"]["CUT"] > 0, scope["struck"]) == (0, True, {"timeout": 0})


def test_an_aligner_that_hides_what_it_goes_by_is_told_so(mine: Path, check: Command) -> None:
    """It would be explored as if it were what it gives itself away as, to a verdict that is luck."""
    status, out, err = check("--impl", "of_mine:Counts", "--scope", TWO_EVENTS)
    assert (status, out) == (2, "")
    assert err.startswith("barrierlab: Counts does not restore what it captured: ")
    assert len(err.splitlines()) == 1


def test_a_run_that_cannot_be_made_again_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, of what shows only deep in a run: it would end in a worker that is said to have died."""

    class Chance:
        """A scope that finds no run to what it has found."""

        protocol = "aligned"

        def check(self, *_: object) -> None:
            raise NonDeterministicError(3, "one state", "another")

    monkeypatch.setattr(sim_check_runner, "_scopes", lambda group: {"by chance": Chance()})
    outcome = check_one(CheckPlan("tiny", ("by chance",)), "by chance")
    assert (outcome.verdict, outcome.violations[0].invariant) == ("broken", "RAISED")
    assert "look for chance" in outcome.why


def test_what_the_budget_does_not_reach_is_undecided(mine: Path, check: Command) -> None:
    """`holds` would be said of what was not looked at."""
    status, out, _ = check("--scope", "tiny", "--protocol", "aligned", "--budget", "0.0001")
    assert status == 3
    assert "verdict: undecided" in out
    assert "undecided: aligned: a->s; " in out


def test_what_a_scope_leaves_of_its_share_is_for_the_others() -> None:
    """Large scopes would stay undecided with hours of the budget left, as those of `full` did."""
    now_s = 1_000.0
    budget = sim_check_runner.Budget(now_s + 100, workers=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: now_s)
        assert [budget.share_s(scopes) for scopes in (100, 10, 8, 1)] == [8, 80, 100, 100]
        patch.setattr("time.time", lambda: now_s + 90)
        assert budget.share_s(40) == 2
        assert sim_check_runner.Budget.of(None, 2).share_s(40) is None


def test_within_a_budget_the_small_scopes_come_first(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one that comes early would have the share of one among many; and no outcome may change its place."""
    monkeypatch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)
    asked: list[tuple[str, float | None]] = []

    def at_once(chosen: CheckPlan, name: str, seconds: float | None, *_: object) -> Outcome:
        asked.append((name, seconds))
        return Outcome(name, "aligned", "holds", "", 1, 1, 0.0)

    monkeypatch.setattr(sim_check_runner, "check_one", at_once)
    chosen = plan("tiny", ["aligned"], "")
    outcomes = run(chosen, "processes[1]", 1000.0, mine / "kept")
    assert [outcome.name for outcome in outcomes] == list(chosen.names)
    scopes = {scope.name: scope for scope in SCOPES["tiny"]()}
    ranks = [sim_check_runner.size_rank(scopes[name]) for name, _ in asked]
    assert ranks == sorted(ranks)
    shares = [seconds for _, seconds in asked if seconds is not None]
    assert len(shares) == len(chosen.names)
    assert shares[0] < shares[len(shares) // 2] < shares[-2]


@pytest.mark.parametrize(("took_s", "looks"), [(100.0, 2), (600.0, 1)])
def test_what_is_left_of_a_budget_is_for_what_is_undecided(
    took_s: float, looks: int, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest scope of `full` used up its share, and stayed undecided with half an hour left."""
    monkeypatch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)
    asked: list[str] = []

    def at_once(chosen: CheckPlan, name: str, *_: object) -> Outcome:
        asked.append(name)
        decided = name != chosen.names[1] or asked.count(name) == 2
        return Outcome(name, "aligned", "holds" if decided else "undecided", "", 1, 1, took_s)

    monkeypatch.setattr(sim_check_runner, "check_one", at_once)
    chosen = plan("tiny", ["aligned"], "")
    outcomes = run(chosen, "processes[1]", 1000.0, mine / "kept")
    assert [asked.count(name) for name in chosen.names] == [1, looks, *[1] * (len(chosen.names) - 2)]
    assert [each.name for each in outcomes if each.verdict == "undecided"] == [chosen.names[1]][: 2 - looks]


def test_a_check_goes_on_where_it_was(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hours would be lost to an interruption; or an undecided scope would stay so."""
    monkeypatch.setattr("barrierlab.sim.sweep.execute.on_processes", in_this_process)
    chosen = plan("tiny", ["join"], "")
    chosen = replace(chosen, names=chosen.names[:3])
    none = run(chosen, "processes[1]", 0.0001, mine / "kept")
    assert {outcome.verdict for outcome in none} == {"undecided"}
    first = run(chosen, "processes[1]", None, mine / "kept", resume=True)
    assert {outcome.verdict for outcome in first} == {"holds"}
    kept = {path: path.stat().st_mtime_ns for path in (mine / "kept").iterdir()}
    assert run(chosen, "processes[1]", None, mine / "kept", resume=True) == first
    assert {path: path.stat().st_mtime_ns for path in (mine / "kept").iterdir()} == kept
    run(chosen, "processes[1]", None, mine / "kept")
    assert {path.stat().st_mtime_ns for path in (mine / "kept").iterdir()}.isdisjoint(kept.values())


SOUND_ALIGNER = """
from barrierlab.impl.checkpoint.alignment import BarrierAligner
{imports}

class Mine(BarrierAligner):
    def process_message(self, input_id, message, now_ns=0):
        {first}
        action = super().process_message(input_id, message, now_ns)
        if {loses} and len(self.inputs.queues[input_id]) > 1:
            self.inputs.queues[input_id].popleft()
        return action
"""
THREE_FILES = {
    "mine.py": SOUND_ALIGNER.format(
        imports="from pathlib import Path\nimport part\nDATA = Path(__file__).with_name('data.txt').read_text()",
        first="",
        loses="(part.LOSES or DATA == 'loses')",
    ),
    "part.py": "LOSES = False\n",
    "data.txt": "sound",
}
CHANGES = {
    "the class itself": ("mine.py", THREE_FILES["mine.py"].replace("part.LOSES", "True")),
    "a module that it imports": ("part.py", "LOSES = True\n"),
    "a file that it reads": ("data.txt", "loses"),
}


def test_a_kept_verdict_counts_only_for_what_it_is_of(mine: Path, anew: Command) -> None:
    """A broken class would inherit the verdict of a sound one that had its name; after a repair its run would stay."""
    for name, text in THREE_FILES.items():
        (mine / name).write_text(text, encoding="utf-8")
    arguments = ("--impl", "mine:Mine", "--scope", SMALLER, "--save", "kept", "--resume")
    assert anew(*arguments)[0] == 0
    (verdict,) = [each for each in (mine / "kept").glob("*.json") if each.name != KEPT]
    written_ns = verdict.stat().st_mtime_ns
    assert anew(*arguments)[0] == 0
    assert verdict.stat().st_mtime_ns == written_ns  # nothing has changed, so it is taken over
    for change, (name, text) in CHANGES.items():
        (mine / name).write_text(text, encoding="utf-8")
        status, _, err = anew(*arguments)
        assert status == 1, change
        assert "--resume: 1 of 1 kept verdicts do not count: what they depend on has changed" in err
        assert list((mine / "kept").glob("*.trace"))
        (mine / name).write_text(THREE_FILES[name], encoding="utf-8")
        assert anew(*arguments)[0] == 0, change
        assert not [*(mine / "kept").glob("*.trace"), *(mine / "kept").glob("*.svg"), *(mine / "kept").glob("*.html")]


@pytest.mark.parametrize(
    ("imports", "first"),
    [
        pytest.param("import sys, types\nsys.modules['made'] = types.ModuleType('made')", "", marks=pytest.mark.slow),
        ("", "import part"),
    ],
    ids=["a module made of nothing", "a module imported while it runs"],
)
@pytest.mark.parametrize("anew", ["apart"], indirect=True)  # a process that has planned has loaded it before
def test_a_verdict_that_cannot_be_keyed_is_not_taken_over(imports: str, first: str, mine: Path, anew: Command) -> None:
    """It would be reused for whatever the class has become since."""
    (mine / "part.py").write_text("", encoding="utf-8")
    (mine / "mine.py").write_text(SOUND_ALIGNER.format(imports=imports, first=first, loses="False"), encoding="utf-8")
    arguments = ("--impl", "mine:Mine", "--scope", TWO_EVENTS, "--save", "kept", "--resume")
    assert anew(*arguments)[0] == 0
    status, _, err = anew(*arguments)
    assert status == 0
    assert "--resume: 1 of 1 kept verdicts do not count: " in err


def test_a_damaged_verdict_is_one_line(mine: Path, check: Command) -> None:
    """A traceback, or status 1 for what is no violation."""
    arguments = ("--scope", TWO_EVENTS, "--save", "kept", "--resume")
    assert check(*arguments)[0] == 0
    (verdict,) = (each for each in (mine / "kept").glob("*.json") if each.name != KEPT)
    for content in ("", "{", "[]", '{"key": "a"}', '{"key": "a", "violations": 1}', "\x00"):
        verdict.write_text(content, encoding="utf-8")
        status, out, err = check(*arguments)
        assert (status, out, len(err.splitlines())) == (2, "", 1), content
        assert f"{verdict.name} is no verdict that can be read" in err, content


def test_an_interruption_says_how_to_go_on(mine: Path, check: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person would not know whether hours are lost."""

    def interrupted(*_: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sim_cli_check, "run", interrupted)
    status, _, err = check("--scope", "tiny", "--save", "kept")
    assert (status, err.splitlines()[-1]) == (130, "barrierlab: interrupted: go on with --save kept --resume")


WRONG = {
    "scope": (["--scope", "tinny"], "there is no scope 'tinny'; did you mean 'tiny'?"),
    "protocol": (["--protocol", "algined"], "'algined' is not one of"),
    "nothing left": (["--scope", TWO_EVENTS, "--protocol", "join"], "has nothing of join"),
    "no class": (["--impl", "of_mine:Forgetfull"], "of_mine has no class 'Forgetfull'; its classes: Forgetful"),
    "no module": (["--impl", "of_yours:It"], "there is no module 'of_yours'; allowed: what is installed"),
    "no colon": (["--impl", "of_mine"], "allowed: MODULE:CLASS"),
    "no method": (["--impl", "of_mine:NoGate"], "NoGate has no method 'offer'"),
    "goes not unaligned": (["--impl", "of_mine:Same", "--protocol", "unaligned"], "allowed for it: aligned"),
    "no signals": (["--impl", "of_mine:Same", "--protocol", "control"], "allowed for it: aligned"),
    "nothing to ask": (
        ["--impl", "tests.model.test_asked:Little", "--scope", "aligned: a->s; events 1, checkpoints 1; abort"],
        "nothing is left to ask of --impl tests.model.test_asked:Little: all of it needs what Little does not declare:",
    ),
    "too large": (
        ["--impl", "tests.model.external_writers:AtLeastOnce", "--scope", "tiny"],
        "there are only larger dataflows, which need the reduction argued for the machines of impl; take --scope small",
    ),
    "a table alone": (["--impl", "of_mine:Same", "--scope", "aligned table: one input"], "add --judge table"),
    "no judge": (["--impl", "of_mine:Same", "--judge", "tables"], "'tables' is not one of 'dataflows', 'table'"),
    "a judge of nobody": (["--judge", "table"], "--judge table needs --impl MODULE:CLASS"),
    "resume": (["--resume"], "--resume needs --save DIR"),
    "folder": (["--junit", "nowhere/junit.xml"], "there is no folder nowhere"),
    "budget": (["--budget", "0"], "allowed: a time above 0, such as 60s"),
    "save": (["--save", "of_mine.py"], "is a file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_input_is_one_line(name: str, mine: Path, check: Command) -> None:
    """A person would be left with a traceback, or with no word on what to do."""
    arguments, text = WRONG[name]
    status, out, err = check(*arguments)
    assert (status, out) == (2, "")
    assert text in err
    assert len(err.splitlines()) == 1


def test_states_are_spread_on_spark_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Processes would be started that share nothing, and each would explore all of it."""
    status, out, err = barrierlab(capsys, "check", "--scope", SMALLER, "--spread", "states")
    assert (status, out) == (2, "")
    assert "--spread states with --master processes: allowed with a Spark master" in err


def test_a_wrong_master_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """As above."""
    status, _, err = barrierlab(capsys, "check", "--scope", "tiny", "--master", "proceses")
    assert status == 2
    assert "--master is 'proceses'; allowed: " in err


def test_a_folder_that_cannot_be_made_is_told(mine: Path) -> None:
    """As above."""
    with pytest.raises(CheckError, match=r"--save .*: cannot be made"):
        run(plan("tiny", ["join"], ""), "processes[1]", None, mine / "of_mine.py" / "kept")


def test_the_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer would not know how to begin."""
    status, out, _ = barrierlab(capsys, "check", "--help")
    assert status == 0
    assert "Example: barrierlab check --impl my_engine.aligner:Aligner" in out


def test_a_disk_that_is_full_is_one_line(tmp_path: Path) -> None:
    """A verdict that cannot be kept would look like an error of the program. (Semaphores need some bytes.)"""

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    command = [sys.executable, "-B", "-m", "barrierlab", "check", "--scope", TWO_EVENTS, "--master", "processes[1]"]
    done = subprocess.run(
        [*command, "--save", "kept"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        preexec_fn=full,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be written" in done.stderr.splitlines()[-1]
    assert "internal error" not in done.stderr
    assert not list((tmp_path / "kept").glob("*.json"))


def test_a_worker_that_occupies_much_looks_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world of an ended scope is a cycle: thousands would fill the memory, or each wait for a collector."""
    worlds: list[weakref.ref[object]] = []

    class World:
        def __init__(self) -> None:
            self.itself = self
            worlds.append(weakref.ref(self))

    gc.unfreeze()
    gc.collect()
    before = gc.get_freeze_count()  # Python 3.12 freezes what is immortal by itself
    with sim_check_runner._garbage_kept():
        World()
        assert not gc.isenabled()
    gc.collect()
    assert worlds[0]() is not None
    assert gc.get_freeze_count() > before
    monkeypatch.setattr(sim_check_runner, "MOST_GARBAGE_BYTES", 1)
    with sim_check_runner._garbage_kept():
        World()
    assert [world() for world in worlds] == [None, None]
    assert gc.get_freeze_count() == before
    assert gc.isenabled()
    gc.freeze()  # as it was: the tests themselves are not looked through
