"""An aligner in any language, `check --exec`: the verdicts of its twin, and a line for all that goes wrong."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barrierlab.impl.checkpoint.alignment import BarrierAlignerConfig
from barrierlab.impl.messages import CheckpointBarrier, EndOfInput, Event
from barrierlab.impl.reasons import Reason
from barrierlab.model.checkpoint.check import Outcome
from barrierlab.sim.check.program import ProgramFault, aligner_of, end_programs
from barrierlab.sim.check.runner import check_one, plan
from tests.sim.support import barrierlab, in_one_process

ROOT = Path(__file__).parents[2]
SMALL = f"{sys.executable} docs/engines/python/aligner.py"
ABORT = "aligned: a->s b->s; events 1, checkpoints 1; abort"
PLAIN = "aligned: a->s b->s; events 1, checkpoints 1; no fault"
UNALIGNED = "unaligned: a->s b->s; events 1, checkpoints 1; crash"
GATE = "aligned_with_timeout table: as many bytes as one event"
LEAVES = "barrierlab.model.defects.engines.aligners:LeavesInChannel"


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The working directory from which the programs are started; all of them are ended."""
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{ROOT}")
    yield
    end_programs()


def faulty(fault: str, *arguments: object) -> str:
    """The command of a program that does one thing wrong."""
    return " ".join(f"'{word}'" for word in (sys.executable, "tests/sim/faulty.py", fault, *arguments))


def served(kind: str) -> str:
    """The command of a program that serves a class."""
    return f"{sys.executable} tests/sim/serve.py {kind}"


def outcomes(implementation: str, limit_s: float, scope: str, protocol: str, judge: str) -> list[Outcome]:
    """Return what each scope came to, but for the time."""
    chosen = plan(scope, (protocol,), implementation, judge, limit_s)
    found = [check_one(chosen, name) for name in chosen.names]
    return [
        Outcome(
            *(each.name, each.protocol, each.verdict, each.why, each.states, each.transitions, 0.0),
            each.violations,
            each.premises,
            each.asked_for,
            each.struck,
        )
        for each in found
    ]


TWINS = [
    pytest.param("docs.aligner.aligner:PhasedAligner", "aligned", ABORT, "dataflows", marks=pytest.mark.slow),
    pytest.param("docs.aligner.aligner:PhasedAligner", "aligned", "tiny", "table", marks=pytest.mark.slow),
    pytest.param("docs.aligner.planted:PhasedAligner", "aligned", ABORT, "dataflows", marks=pytest.mark.slow),
    ("docs.aligner.unaligned:RecordingAligner", "unaligned", UNALIGNED, "dataflows"),
    pytest.param(
        "docs.aligner.unaligned:RecordingAligner", "aligned_with_timeout", GATE, "table", marks=pytest.mark.slow
    ),
    ("tests.sim.serve:FirstSeen", "aligned", ABORT, "dataflows"),
    pytest.param(LEAVES, "aligned", "tiny", "table", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("kind", "protocol", "scope", "judge"), TWINS, ids=lambda each: each.rpartition(":")[2])
def test_a_program_has_the_verdicts_of_its_twin(kind: str, protocol: str, scope: str, judge: str) -> None:
    """A verdict would rest on how a program is asked: scopes, states, moves and shortest runs are the same."""
    assert outcomes(served(kind), 10.0, scope, protocol, judge) == outcomes(kind, 0.0, scope, protocol, judge)


@pytest.mark.slow
def test_a_program_that_cannot_be_restored_has_them_too() -> None:
    """A state that is reached again by what led there would be another one, where much is buffered."""
    kind = "docs.aligner.aligner:PhasedAligner"
    replayed = outcomes(f"{served(kind)} replay", 10.0, "tiny", "aligned", "dataflows")
    assert replayed == outcomes(kind, 0.0, "tiny", "aligned", "dataflows")


@pytest.mark.parametrize("how", ["", pytest.param(" replay", marks=pytest.mark.slow)])
def test_the_small_aligner_has_the_counts_of_its_twin(how: str) -> None:
    """The example would be another aligner, or the replay another check."""
    twin = outcomes(LEAVES, 0.0, "tiny", "aligned", "dataflows")
    assert {each.verdict for each in twin} == {"holds"}
    assert outcomes(f"{SMALL}{how}", 10.0, "tiny", "aligned", "dataflows") == twin


@pytest.mark.parametrize("how", ["bug replay", pytest.param("bug", marks=pytest.mark.slow)])
def test_the_planted_bug_is_found(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The example would be red for nothing, or by a run that is too short to need an exploration."""
    status, out, _ = in_one_process(capsys, "check", "--exec", f"{SMALL} {how}", "--scope", ABORT, "--json")
    (violation,) = json.loads(out)["violations"]
    assert (status, violation["invariant"], violation["steps"]) == (1, "LIVE", 14)


# What goes wrong.

WRONG = [
    ("dies", "dies (exit status 3); its last lines on stderr: first | the heap is full; at step "),
    ("is killed", "dies (signal 9); at step "),
    ("prints", "answers 'debug: here', which is no JSON; at step "),
    ("answers no JSON", """answers "{'step': 1}", which is no JSON; at step """),
    ("answers bytes", "which is no JSON; at step "),
    ("answers a list", "answers '[]'; allowed: an object with the number of the step as 'step'; at step "),
    ("answers another step", "; allowed: 'step': "),
    ("no effects", "answers without 'effects'; needed here: step, state, effects, answer, can_take; at step "),
    ("an answer too many", "answers with 'colour'; allowed: step, state, effects, answer, "),
    ("no call", "answers the effect ['fly', 1]; allowed: a list of the name and its arguments; the names: deliver, "),
    ("no list", "answers the effect 'block'; allowed: a list"),
    ("no input", "answers the effect ['block', 7, 1]; 7 is no input; allowed: the number of an input"),
    ("no id", "answers the effect ['resume', 0]; 0 is no checkpoint_id; allowed: a whole number from 1"),
    ("no message", "999 is no message; allowed: the number of a message that has come"),
    ("no barrier", "{'checkpoint_id': 1} is no barrier; allowed: an object with checkpoint_id, epoch and flags"),
    ("no reason", "'bored' is no reason; allowed: barrier mismatch, "),
    ("too few arguments", "answers the effect ['block', 0]; allowed: ['block', input, checkpoint_id]"),
    ("two inputs too few", "answers 'can_take': []; allowed: true or false for each of 2 inputs"),
    ("numbers for flags", "answers 'can_take': [1, 1]; allowed: true or false for each of 2 inputs"),
    ("state is a list", "answers 'state': []; allowed: a string"),
    (
        "one state for all",
        "gives the state '[[false, false], [false, false], null, 0]' with After(can_drain=False, ",
    ),
    ("counts its calls", "does not answer the same twice: the state "),
    ("is moody", "does not answer the same twice: the effects ["),
    ("restores another", "does not answer the same twice: the state "),
    ("forgets", "an aligner that was never restored answers otherwise than one that was"),
]


class Silence:
    """A port that nobody listens at."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def asked(fault: str, limit_s: float = 10.0) -> None:
    """Ask a program of two barriers, an abort between them, and an end, and ask it all again."""
    kind: Any = aligner_of(faulty(fault), str(ROOT), limit_s)
    aligner = kind(Silence(), BarrierAlignerConfig(2, 100, 10_000, 1_000_000))
    barrier = CheckpointBarrier(1, 1)
    for input_id, message in ((0, Event("a", 1)), (0, barrier), (1, Event("b", 1))):
        aligner.offer(input_id, message, 0)
    aligner.abort(1, Reason.EXPIRED, 0)
    for input_id, message in ((1, barrier), (0, Event("a", 2)), (0, EndOfInput()), (1, EndOfInput())):
        aligner.offer(input_id, message, 0)
    kind.program.take_again()


@pytest.mark.parametrize(("fault", "line"), WRONG, ids=[fault for fault, _ in WRONG])
def test_a_fault_is_one_line_with_its_step(fault: str, line: str) -> None:
    """It would be reported as a violation of the protocol, or as nothing."""
    with pytest.raises(ProgramFault) as told:
        asked(fault)
    assert str(told.value).startswith(f"--exec {faulty(fault)!r} ")
    assert line in str(told.value)
    assert ", after make 2 inputs" in str(told.value)


def test_a_program_without_a_fault_is_asked_to_the_end() -> None:
    """Every line above would be for nothing."""
    asked("nothing")


@pytest.mark.parametrize("fault", ["loops", "waits", "closes"])
def test_a_program_that_gives_no_answer_hangs(fault: str) -> None:
    """The check would wait for ever: for one that computes, for one that waits, and for one that says no more."""
    with pytest.raises(ProgramFault) as told:
        asked(fault, 0.2)
    hangs = "hangs: no answer within 0.2 s (does it flush its output after each line?); at step "
    assert ("closes its output; at step " if fault == "closes" else hangs) in str(told.value)


@pytest.mark.parametrize("fault", ["dies", "forgets"])
def test_a_fault_deep_in_a_run_is_no_violation(fault: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever explores takes an exception of a machine for a violation, with status 1; in a worker, too."""
    master = "processes[1]" if fault == "dies" else "processes"
    chosen = ("check", "--exec", faulty(fault), "--scope", ABORT, "--judge", "table", "--master", master)
    status, out, err = barrierlab(capfd, *chosen)
    (told,) = [each for each in err.splitlines() if " scopes, " not in each]
    assert (status, out) == (2, "")
    assert told.startswith(f"barrierlab: --exec {faulty(fault)!r} ")
    assert dict(WRONG)[fault] in told


HELLOS = [
    ("another version", "answers version 2 of kind 'aligner'; allowed: version 1, kind 'aligner'"),
    ("another kind", "answers version 1 of kind 'coordinator'; allowed: version 1, kind 'aligner'"),
    ("reads nothing", "answers 'reads': 'nothing'; allowed: 'offer' or 'poll'"),
    ("no flag", "answers 'restores': 1; allowed: true or false"),
    ("no capability", "declares 'flies'; allowed: several_inputs, aborts, "),
    ("no declaration", "answers 'capabilities': ['aborts']; allowed: an object of names with true or false"),
    ("a name too many", "answers with 'colour'; allowed: step, version, kind, reads, restores, name, capabilities"),
    ("no name", "answers 'name': 7; allowed: a string"),
    ("exits", "dies (exit status 1); its last lines on stderr: wrong licence"),
]


@pytest.mark.parametrize(("fault", "line"), HELLOS, ids=[fault for fault, _ in HELLOS])
def test_a_wrong_first_answer_is_one_line(fault: str, line: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The first thing that a team tries would fail in a way that says nothing."""
    status, out, err = barrierlab(capfd, "check", "--exec", faulty(fault), "--scope", "tiny")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert line in err
    assert err.endswith("; at step 0, hello\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--exec", ""), "--exec '': allowed: a command, such as './my_aligner --fast'"),
        (("--exec", "'x"), "No closing quotation; allowed: a command"),
        (("--exec", "./there_is_none"), "--exec './there_is_none' cannot be started: No such file or directory"),
        (("--exec", "docs"), "cannot be started: "),
        (("--exec", SMALL, "--impl", LEAVES), ": give one of them"),
        (("--exec", SMALL, "--changed"), "--changed with --exec: nobody sees what a program depends on"),
        (("--exec", SMALL, "--save", "x", "--resume"), "--resume with --exec: nobody sees"),
        (("--exec", SMALL, "--master", "local[2]"), "--master local[2] with --exec: a program runs on this machine"),
        (("--exec", SMALL, "--protocol", "unaligned"), "--protocol unaligned with --exec"),
        (("--exec", SMALL, "--exec-timeout", "soon"), "'soon': allowed: a time above 0"),
        (("--exec-timeout", "2s"), "--exec-timeout needs --exec COMMAND"),
    ],
    ids=lambda each: " ".join(each[-2:]) if isinstance(each, tuple) else "",
)
def test_what_cannot_be_asked_is_one_line(
    arguments: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option would be passed over in silence, or a command that is not there end in a traceback."""
    status, out, err = barrierlab(capsys, "check", "--scope", "tiny", *arguments)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert line in err


def test_every_output_names_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipeline would show a violation of nothing, at no place."""
    names = {"--sarif": "x.sarif", "--junit": "x.xml", "--markdown": "x.md", "--save": "saved"}
    files = [word for option, name in names.items() for word in (option, str(tmp_path / name))]
    status, out, _ = in_one_process(
        capsys, "check", "--exec", f"{SMALL} bug", "--scope", ABORT, "--strict", "--github", *files
    )
    assert status == 1
    assert "::error file=docs/engines/python/aligner.py,line=1,title=LIVE::" in out
    (run,) = json.loads((tmp_path / "x.sarif").read_text())["runs"]
    assert run["properties"]["implementation"] == f"{SMALL} bug"
    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "docs/engines/python/aligner.py"
    assert f'value="{SMALL} bug"' in (tmp_path / "x.xml").read_text()
    assert "**LIVE**" in (tmp_path / "x.md").read_text()
    assert (tmp_path / "saved" / "01_LIVE.trace").exists()


# Processes.


@pytest.mark.slow
def test_a_process_for_each_worker_and_none_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two workers would talk to one program at once."""
    alone = barrierlab(capsys, "check", "--exec", SMALL, "--scope", "tiny", "--json", "--master", "processes")[1]
    both = barrierlab(capsys, "check", "--exec", SMALL, "--scope", "tiny", "--json", "--master", "processes[2]")[1]
    first, second = json.loads(alone), json.loads(both)
    for found in (first, second):
        for scope in found["scopes"]:
            del scope["seconds"]
    assert first == second


@pytest.mark.parametrize("sent", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_no_program_is_left(sent: signal.Signals, tmp_path: Path) -> None:
    """A program that computes for ever would go on when its check was interrupted, or killed."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [*(sys.executable, "-m", "barrierlab", "check", "--exec-timeout", "1h", "--scope", PLAIN)]
    check = subprocess.Popen(
        [*command, "--exec", faulty("loops", pipe), "--master", "processes[1]"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with pipe.open("rb") as lives:
        assert lives.readline() == b"here\n"
        os.killpg(check.pid, sent)
        _, err = check.communicate()
        assert select.select([lives], [], [], 60)[0]
        assert lives.read() == b""
    assert check.returncode == (130 if sent == signal.SIGINT else -signal.SIGKILL)
    if sent == signal.SIGINT:
        assert err.splitlines()[-1] == b"barrierlab: interrupted: nothing is kept of a program"


def test_the_class_of_a_program_declares_what_it_said() -> None:
    """Scopes would be asked that the program does not take part in."""
    kind: Any = aligner_of(SMALL, str(ROOT), 10.0)
    assert kind.__name__ == "small aligner"
    assert (kind.capabilities.timeout, kind.capabilities.leaves_in_channel) == (False, True)
    assert kind.capabilities.unaligned is False
