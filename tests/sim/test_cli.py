"""The command: what it prints, writes and answers with."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import barrierlab.impl.checkpoint.task as impl_checkpoint_task
from barrierlab.model.checkpoint.check import WorldScope
from barrierlab.model.checkpoint.trace import judged, read
from barrierlab.model.render.promela import commands
from barrierlab.model.suites.standard import SCOPES
from barrierlab.model.suites.states import mermaid, page
from barrierlab.model.suites.tables import TABLES
from barrierlab.sim import load, run, shipped
from barrierlab.sim.cli.export import exportable
from barrierlab.sim.cli.main import cli
from barrierlab.sim.scenario.load import all_shipped
from barrierlab.sim.sweep.plan import shipped_sweeps
from tests.sim.support import COMMANDS, SKEWED, barrierlab, toml
from tests.sim.test_broken_on_purpose import DrainsBeforeForward

QUICK = ["run", "diamond", "--set", "until_s=5.0", "--seed", "3"]


def test_a_short_or_sparse_run_is_no_run_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A run of hundredths of a second, and one of a few events a day, would be of 0.0 s and 0.0 a second."""
    _, out, _ = barrierlab(capsys, "run", "diamond", "--set", "until_s=0.025")
    (line,) = [line for line in out.splitlines() if " s simulated; " in line]
    assert 0.025 <= float(line.split()[0]) < 0.1


def test_json_is_one_object_with_the_fields_of_flinks_rest(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that reads Flink's statistics could not read these."""
    status, out, err = barrierlab(capsys, *QUICK, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert set(found) == {
        *("scenario", "seed", "digest", "settings", "verdict", "violations", "undecided", "checkpoints"),
        *("vacuous", "vacuous_asked_for", "premises", "faults_without_effect", "progress", "notes", "falls_short"),
        "longest_standstill_ms",
        *("recoveries", "throughput", "backpressure", "warnings", "steady_state"),
    }
    assert (found["scenario"], found["seed"], found["verdict"], found["violations"]) == ("diamond", 3, "holds", [])
    assert [checkpoint["id"] for checkpoint in found["checkpoints"]] == [1, 2]
    for checkpoint in found["checkpoints"]:
        assert set(checkpoint) == {
            *("id", "status", "checkpoint_type", "trigger_timestamp", "end_to_end_duration", "processed_data"),
            *("persisted_data", "checkpointed_size", "failure_message", "steady", "tasks"),
        }
        assert (checkpoint["status"], checkpoint["checkpoint_type"]) == ("COMPLETED", "CHECKPOINT")
        assert checkpoint["trigger_timestamp"] == 2000.0 * checkpoint["id"]
        assert {task["name"] for task in checkpoint["tasks"]} == {"source", "left", "right", "meet", "sink"}
        for task in checkpoint["tasks"]:
            assert set(task) == {
                *("name", "subtask", "start_delay", "alignment_duration", "sync", "async", "end_to_end_duration"),
                *("processed_data", "persisted_data", "checkpointed_size"),
            }
    assert found["throughput"]["events_in"] > 500
    assert set(found["backpressure"]) == {"source", "left", "right", "meet", "sink"}


def test_a_failure_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The first command of the README would not say what happened to the job."""
    status, out, _ = barrierlab(capsys, "run", "crash_and_recover", "--set", "guarantee=at_least_once")
    assert status == 0
    table = out[out.index("Failures") :]
    assert "crash count #2" in table
    assert "1500.0" in table
    assert "written to the external system more than once" in table
    status, out, _ = barrierlab(capsys, "run", "crash_and_recover", "--json")
    found = json.loads(out)["recoveries"]
    assert [row["checkpoint_id"] for row in found] == [1, 2]
    assert [row["downtime_ms"] for row in found] == [1500.0, 1500.0]
    assert min(row["events_replayed"] for row in found) > 200


def test_json_is_what_the_library_says(capsys: pytest.CaptureFixture[str]) -> None:
    """The command would run something else than `run(load(...))`."""
    _, out, _ = barrierlab(capsys, *QUICK, "--json")
    assert json.loads(out) == json.loads(json.dumps(run(load("diamond", {"until_s": 5.0}), 3).as_json()))


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """A person would not see what each checkpoint took, nor the verdict."""
    status, out, err = barrierlab(capsys, *QUICK)
    assert (status, err) == (0, "")
    assert "A barrier through a diamond (seed 3)" in out
    assert out.count("COMPLETED") == 2
    assert out.rstrip().endswith("verdict: holds (0 violations; vacuous: WM, REC)")


def test_a_name_in_brackets_is_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The extra that a line asks for, and words of a title, would be taken for a style, and left out."""
    path = tmp_path / "named.toml"
    path.write_text('title = "two [red] streams :key:"\nuntil_s = 1.0\n[join]\nbarrier = "sequence"\n[input.a]\n')
    assert barrierlab(capsys, "run", str(path))[1].startswith("two [red] streams :key: (seed 1)")


def test_a_trace_is_written_and_reads_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A journal could not be kept, shown to somebody and judged again."""
    path = tmp_path / "run.trace"
    status, _, _ = barrierlab(capsys, *QUICK, "--trace", str(path))
    text = path.read_text(encoding="utf-8")
    head, entries = read(text, path.name)
    assert status == 0
    assert (head["scenario"], head["seed"]) == ("diamond", "3")
    assert entries == run(load("diamond", {"until_s": 5.0}), 3).entries
    assert judged(text).verdict == "holds"


def test_a_violation_is_shown_and_is_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A script would take a broken run for a good one."""
    path, trace = tmp_path / "skewed.toml", tmp_path / "broken.trace"
    path.write_text(toml(SKEWED), encoding="utf-8")
    monkeypatch.setattr(impl_checkpoint_task, "Gate", DrainsBeforeForward)
    status, out, _ = barrierlab(capsys, "run", str(path), "--seed", "3", "--trace", str(trace))
    assert status == 1
    assert "! CUT: " in out
    assert "! FWD: " in out
    assert "verdict: broken" in out
    text = trace.read_text()
    assert "\n! FWD: " in text
    assert judged(text).verdict == "broken"
    status, out, _ = barrierlab(capsys, "run", str(path), "--seed", "3", "--json")
    found = json.loads(out)
    assert (status, found["verdict"]) == (1, "broken")
    assert set(found["violations"][0]) == {"invariant", "reason", "at_ns"}


def test_what_is_shipped_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer would not find what there is to run, nor what --set takes."""
    status, out, _ = barrierlab(capsys, "scenarios")
    assert status == 0
    for name in shipped():
        assert f"{name}: {load(name).title}" in " ".join(out.split())
    assert "graceful_shutdown: A graceful shutdown" in out
    assert "--set level=" in out
    status, out, _ = barrierlab(capsys, "scenarios", "--json")
    assert set(json.loads(out)["scenarios"]) == set(all_shipped()) > set(shipped())


def test_a_protocols_table_is_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    """A user who wants to know what a protocol does in a situation would have to read code."""
    status, out, err = barrierlab(capsys, "table", "aligned")
    assert (status, err) == (0, "")
    assert out.splitlines() == list(page("aligned"))
    assert "| snapshotting | image | image taken | forward, complete, resume, close |" in out.splitlines()
    status, out, _ = barrierlab(capsys, "table", "aligned", "--json")
    found = json.loads(out)
    assert (status, found["table"], len(found["rows"])) == (0, "aligned", len(TABLES["aligned"].rows))
    assert found["rows"][0] == {
        "name": "event",
        "states": ["aligning", "draining", "idle"],
        "when": ["event", "takes_effect"],
        "then": ["deliver"],
    }
    status, out, err = barrierlab(capsys, "table", "control")
    assert (status, err) == (0, "")
    assert "| aligning | last copy | in its turn, last outstanding | arrive, complete |" in out.splitlines()
    status, out, _ = barrierlab(capsys, "table", "control", "--json")
    assert {
        "name": "close for the last copy",
        "states": ["aligning"],
        "when": ["close", "something_pending", "last_outstanding"],
        "then": ["close_it", "complete_all_that_is_in"],
    } in json.loads(out)["rows"]
    assert {"state": "aligning", "row": "last copy", "reached": "idle"} in json.loads(out)["edges"]
    status, out, err = barrierlab(capsys, "table", "control", "--format", "mermaid")
    assert (status, out.splitlines(), err) == (0, list(mermaid("control")), "")


def test_a_table_that_there_is_not_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A slip of the pen would end in a traceback, or leave open what there is."""
    status, out, err = barrierlab(capsys, "table", "alined")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert ", ".join(map(repr, TABLES)) in err


def test_every_command_shows_an_example() -> None:
    """A person would have to guess how a command is called."""
    for command in (None, *COMMANDS):
        shown = CliRunner().invoke(cli, [*([command] if command else []), "--help"])
        assert shown.exit_code == 0
        assert "Example: barrierlab " in shown.output, command


SAYS = re.compile(r"default|not given|if no|repeatable|^Write |^Keep ")


def unsaid(option: click.Option) -> str | None:
    """Return what the help of an option leaves open; None if it says what it is, and what is taken without it."""
    if not option.help:
        return "no word on what it is"
    takes = option.required or option.is_flag or option.show_default or SAYS.search(option.help)
    return None if takes else "no word on what is taken if it is not given"


def test_every_option_says_what_it_is_and_its_default() -> None:
    """A person would have to look into the source for what a command does by itself."""
    options = [(name, each) for name, command in COMMANDS.items() for each in command.params]
    found = [(name, each.opts, unsaid(each)) for name, each in options if isinstance(each, click.Option)]
    assert [each for each in found if each[-1]] == []
    assert len(found) > 60
    assert unsaid(click.Option(["--seeds"], default=3, help="Runs.")) is not None


def test_an_example_stands_in_one_line() -> None:
    """Whoever copies it would copy a part."""
    for command, text in COMMANDS.items():
        (example,) = [line for line in (text.help or "").splitlines() if line.startswith("Example: ")]
        assert f"  {example}\n" in CliRunner().invoke(cli, [command, "--help"]).output


def test_examples_name_what_there_is() -> None:
    """An example of the help would fail when it is tried."""
    for command in COMMANDS.values():
        example = next(line for line in (command.help or "").splitlines() if "Example: " in line)
        words = shlex.split(example.split("Example: barrierlab ")[1])
        assert words[0] in COMMANDS
        with COMMANDS[words[0]].make_context(words[0], words[1:], resilient_parsing=False):
            pass


def test_settings_are_read_as_toml_or_text() -> None:
    """`--set parallelism=2` would set a text, or `--set level=sat_4ms` fail."""
    from barrierlab.sim.cli.choices import read_settings

    pairs = ("a=2", "b=2.5", "c=true", 'd="x"', "e=sat_4ms", 'f={ dist = "gamma", mean = 1.0, cv = 0.5 }', "g=a=b")
    assert read_settings(pairs) == {
        "a": 2,
        "b": 2.5,
        "c": True,
        "d": "x",
        "e": "sat_4ms",
        "f": {"dist": "gamma", "mean": 1.0, "cv": 0.5},
        "g": "a=b",
    }


@pytest.mark.parametrize(
    "name",
    ["diamond", *(pytest.param(each, marks=pytest.mark.slow) for each in ("lockstep_cameras", "sync_under_skew"))],
)
def test_a_run_has_a_digest(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two people could not say whether they have seen the same run."""
    digests = []
    for seed in ("1", "1", "2"):
        _, out, _ = barrierlab(capsys, "run", name, "--seed", seed)
        (line,) = [line for line in out.splitlines() if line.startswith("digest: ")]
        digests.append(line.removeprefix("digest: "))
    _, out, _ = barrierlab(capsys, "run", name, "--seed", "1", "--json")
    assert (digests[0], json.loads(out)["digest"]) == (digests[1], digests[0])
    assert digests[2] != digests[0]


def test_scenarios_lists_the_sweeps(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader would have to look into the package for what `sweep` takes."""
    _, out, _ = barrierlab(capsys, "scenarios")
    _, found, _ = barrierlab(capsys, "scenarios", "--json")
    sweeps = json.loads(found)["sweeps"]
    assert list(sweeps) == shipped_sweeps()
    for name, question in sweeps.items():
        assert f"  {name}: {question}" in out.splitlines()


def test_a_defect_has_its_id_in_small_letters_too(capsys: pytest.CaptureFixture[str]) -> None:
    """`defects a-04` would show another one."""
    assert barrierlab(capsys, "defects", "a-04")[:2] == barrierlab(capsys, "defects", "A-04")[:2]


def test_a_scope_is_exported_whole(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Spin would be given another scope, or a user no command to run it by."""
    name, file = "aligned: a->s; events 1, checkpoints 1; abort", tmp_path / "a scope.pml"
    status, out, err = barrierlab(capsys, "export", name, "--to", "promela", "--count")
    *lines, counted = err.splitlines()
    assert (status, lines, counted) == (0, list(commands("FILE")), "here: 197 states, holds")
    assert out.startswith(f"/* {name}\n")
    status, printed, err = barrierlab(capsys, "export", name, "--out", str(file))
    assert (status, printed, file.read_text(encoding="utf-8")) == (0, "", out)
    assert err.splitlines() == list(commands(f"'{file}'"))


@pytest.mark.parametrize(
    ("scope", "reason"),
    [
        (["aligned: a->s; events 1, checkpoints 1; timeout"], "cannot be exported: a deadline passes"),
        (
            ["aligned: a->s; events 1, checkpoints 1; aborts"],
            "did you mean 'aligned: a->s; events 1, checkpoints 1; abort'",
        ),
        (["tiny"], "there is no scope 'tiny'"),
        ([], "export needs SCOPE"),
    ],
    ids=["not stated", "misspelt", "a group", "none"],
)
def test_what_cannot_be_exported_is_one_line(scope: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever has no model would not know why, nor of what there is one."""
    status, out, err = barrierlab(capsys, "export", *scope)
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert reason in err
    assert "barrierlab export --list has those that can be" in err


def test_a_machine_alone_is_not_exported(capsys: pytest.CaptureFixture[str]) -> None:
    """It would be said not to be there."""
    alone = next(scope.name for scope in SCOPES["tiny"]() if not isinstance(scope, WorldScope))
    status, _, err = barrierlab(capsys, "export", alone)
    assert (status, "it is no dataflow with checkpoints" in err) == (2, True)


def test_the_list_has_what_can_be_exported(capsys: pytest.CaptureFixture[str]) -> None:
    """A name in it would be refused."""
    status, out, _ = barrierlab(capsys, "export", "--list")
    names = out.splitlines()
    assert (status, names) == (0, list(exportable()))
    assert len(set(names)) == len(names) > 100
