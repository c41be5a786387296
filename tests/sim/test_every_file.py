"""Every command against every file that it reads and writes, in every way in which a file can be bad.

The rows are a product: a command that is added, or an option that takes a path, fails the first test until it has rows.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import barrierlab.sim.ask.analyses as sim_ask_analyses
import barrierlab.sim.cli.ask as sim_cli_ask
import barrierlab.sim.cli.check as sim_cli_check
from barrierlab.model.checkpoint.check import Outcome
from barrierlab.sim import load
from barrierlab.sim import run as simulated
from barrierlab.sim.ask.bench import Serial
from barrierlab.sim.check.report import KEPT
from barrierlab.sim.check.runner import plan, run
from barrierlab.sim.sweep.execute import rows_of, simulate
from barrierlab.sim.sweep.measured import DATA
from barrierlab.sim.sweep.outcome import outcome
from barrierlab.sim.sweep.plan import load_plan
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.tables import ON_REQUEST, TABLES
from barrierlab.sim.twin.answers import answers_of
from barrierlab.sim.twin.import_flink import job_of, scenario_of
from tests.sim.support import COMMANDS, barrierlab

SCENARIO = """
topology = "a->s"
until_s = 1.0
[source.a]
rate_per_s = 20.0
[operator.s]
kind = "sink"
[checkpoint]
interval_s = 0.4
"""
SWEEP = '[[part]]\nscenario = "job.toml"\nseeds = [1]\n'
ALIGNER = "from barrierlab.impl.checkpoint.alignment import BarrierAligner\n\nclass Mine(BarrierAligner):\n    pass\n"
ANSWERS = Path(__file__).parent / "flink" / "2.x" / "chained_local_saturated_aligned.json"
SCOPE = "aligned: a->s; events 1, checkpoints 1; no fault"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one good file of each kind."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "job.toml").write_text(SCENARIO, encoding="utf-8")
    (folder / "many.toml").write_text(SWEEP, encoding="utf-8")
    (folder / "mine.py").write_text(ALIGNER, encoding="utf-8")
    shutil.copy(ANSWERS, folder / "answers.json")
    answers = answers_of([str(ANSWERS)])
    twin = scenario_of(job_of(answers, None), "").text.replace("# rate_per_s", "rate_per_s")
    (folder / "twin.toml").write_text(twin, encoding="utf-8")
    (folder / "tables").mkdir()
    for name in ("runs.csv", "subtasks.csv"):
        (folder / "tables" / name).write_text((DATA / name).read_text(encoding="utf-8"), encoding="utf-8")
    shutil.copy(str(DATA / "costs_local.toml"), folder / "costs.toml")
    store = Store.create(folder / "swept", load_plan(folder / "many.toml"), keeps_events=True)
    swept = load_plan(folder / "many.toml").runs[0]
    store.write_chunk({name: [] for name in store.tables} | rows_of(swept, simulate))
    answer = {"runs_made": [], "versions": {}}
    (folder / "asked").mkdir()
    (folder / "asked" / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    (folder / "id").write_text(swept.run_id, encoding="utf-8")
    run(plan(SCOPE, (), ""), "processes[1]", None, folder / "kept")
    (folder / "run.trace").write_text(simulated(load(folder / "job.toml")).trace(), encoding="utf-8")
    return folder


@pytest.fixture
def place(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which commands are called."""
    shutil.copytree(good, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    sys.modules.pop("mine", None)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if not (Path(each) / "mine.py").exists()])
    of_run = ("rerun", "swept", (tmp_path / "here" / "id").read_text(encoding="utf-8"))
    TO_FILE["rerun", "trace"] = (*of_run, "--trace")
    READS["rerun", "scenario"] = [(lambda place: place / "job.toml", (*of_run, "--scenario", "job.toml"))]
    return tmp_path / "here"


def _chunk(table: str) -> Callable[[Path], Path]:
    return lambda place: next((place / "swept" / table).glob("*.parquet"))


def _verdict(place: Path) -> Path:
    return next(path for path in (place / "kept").glob("*.json") if path.name != KEPT)


ASK = ("ask", "Q10", "--scenario", "job.toml", "--precision", "50%")
CHECK = ("check", "--scope", SCOPE, "--master", "processes[1]")
READS: dict[tuple[str, str], list[tuple[Callable[[Path], Path], tuple[str, ...]]]] = {
    ("run", "scenario"): [(lambda place: place / "job.toml", ("run", "job.toml"))],
    ("advise", "scenario"): [(lambda place: place / "job.toml", ("advise", "job.toml", "--mtbf", "1h"))],
    ("sweep", "sweep"): [
        (lambda place: place / "many.toml", ("sweep", "many.toml", "--out", "new", "--master", "processes[1]")),
        (lambda place: place / "job.toml", ("sweep", "many.toml", "--out", "new", "--master", "processes[1]")),
    ],
    ("witness", "run_of"): [
        (lambda place: place / "run.trace", ("witness", "run.trace", "--checkpoint", "1")),
        (lambda place: place / "job.toml", ("witness", "job.toml", "--checkpoint", "1")),
    ],
    ("import", "sources"): [(lambda place: place / "answers.json", ("import", "flink", "answers.json"))],
    ("calibrate", "jobs"): [(lambda place: place / "job.toml", ("calibrate", "job.toml", "--from", "tables"))],
    ("calibrate", "sources"): [
        (lambda place: place / "answers.json", ("calibrate", "twin.toml", "--from", "answers.json")),
        (lambda place: place / "tables" / "runs.csv", ("calibrate", "flink_chain", "--from", "tables")),
        (lambda place: place / "tables" / "subtasks.csv", ("calibrate", "flink_chain", "--from", "tables")),
    ],
    ("predict", "name"): [(lambda place: place / "job.toml", ("predict", "job.toml", "--costs", "costs.toml"))],
    ("predict", "costs"): [(lambda place: place / "costs.toml", ("predict", "job.toml", "--costs", "costs.toml"))],
    ("predict", "against"): [
        (
            lambda place: place / "answers.json",
            ("predict", "twin.toml", "--costs", "costs.toml", "--against", "answers.json"),
        ),
    ],
    ("measured", "data"): [
        (lambda place: place / "tables" / "runs.csv", ("measured", "--data", "tables", "--seeds", "1")),
    ],
    ("show", "run_of"): [(lambda place: place / "run.trace", ("show", "run.trace"))],
    ("check", "implementations"): [(lambda place: place / "mine.py", (*CHECK, "--impl", "mine:Mine"))],
    ("check", "directory"): [(_verdict, (*CHECK, "--save", "kept", "--resume"))],
    ("sweep", "directory"): [
        (
            lambda place: place / "swept" / "manifest.json",
            ("sweep", "many.toml", "--out", "swept", "--resume", "--events", "--master", "processes[1]"),
        ),
        (
            _chunk("runs"),
            ("sweep", "many.toml", "--out", "swept", "--resume", "--events", "--master", "processes[1]"),
        ),
    ],
    **{
        (command, "directory"): [
            (lambda place: place / "swept" / "manifest.json", (command, "swept")),
            *((_chunk(table), (command, "swept")) for table in (*TABLES, *ON_REQUEST)),
        ]
        for command in ("analyse", "verify", "report")
    },
}
READS["rerun", "directory"] = [
    (lambda place: place / "swept" / "manifest.json", ("rerun", "swept", "0123")),
    (_chunk("runs"), ("rerun", "swept", "0123")),
    (lambda place: place / "asked" / "answer.json", ("rerun", "asked", "0123")),
]
READS["rerun", "scenario"] = [(lambda place: place / "job.toml", ("rerun", "swept"))]  # and the id, once it is known
"""By command and parameter: which file, and how it is called."""

TO_FILE = {
    ("run", "trace"): ("run", "job.toml", "--trace"),
    ("run", "events"): ("run", "job.toml", "--events"),
    ("witness", "out"): ("witness", "run.trace", "--checkpoint", "1", "--out"),
    ("import", "out"): ("import", "flink", "answers.json", "--out"),
    ("calibrate", "out"): ("calibrate", "flink_chain", "--from", "tables", "--out"),
    ("import", "save"): ("import", "flink", "answers.json", "--save"),
    ("show", "out"): ("show", "run.trace", "--out"),
    ("rerun", "trace"): ("rerun", "swept"),  # and the id, once it is known
    ("ask", "file"): (*ASK, "--json"),
    ("check", "junit_file"): (*CHECK, "--junit"),
    ("check", "sarif_file"): (*CHECK, "--sarif"),
    ("check", "markdown_file"): (*CHECK, "--markdown"),
    ("export", "out"): ("export", "aligned: a->s; events 1, checkpoints 1; no fault", "--out"),
}
TO_FOLDER = {
    ("check", "directory"): (*CHECK, "--save"),
    ("check", "ledger"): (*CHECK, "--changed", "--ledger"),
    ("sweep", "directory"): ("sweep", "many.toml", "--master", "processes[1]", "--out"),
    ("report", "target"): ("report", "swept", "--out"),
    ("ask", "directory"): (*ASK, "--out"),
}
"""The files that are written; `report` needs an analysis, which is kept in the folder for it (`_with_analysis`)."""

NO_FILE = {
    ("table", "name"),
    ("defects", "names"),
    ("import", "engine"),
    ("export", "scope"),
    ("ask", "question"),
    ("rerun", "run_id"),
}
"""Arguments that name no file."""


def _random(path: Path) -> None:
    path.write_bytes(bytes((7 * n * n + 13 * n) % 256 for n in range(4096)))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _unreadable(path: Path) -> None:
    path.unlink()
    path.symlink_to("/proc/self/mem")  # a regular file, and each read of its beginning is EIO


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: max(1, len(content) * 2 // 3 - 1)])


def _other_version(path: Path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"run_id": ["a"], "another": [1]}), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps({"sweep": "of another version"}), encoding="utf-8")
    elif path.suffix == ".py":
        path.write_text("class Other:\n    pass\n", encoding="utf-8")
    else:
        path.write_text(f"of_another_version = 1\n{path.read_text(encoding='utf-8')}", encoding="utf-8")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),  # type: ignore[dict-item, return-value]
    "truncated": _cut,
    "random bytes": _random,
    "of another version": _other_version,
    "a folder": _folder,
    "a pipe": _pipe,
    "unreadable": _unreadable,
}


def _rows() -> Iterator[Any]:
    """All rows; of the tables that a command reads alike, the quick ones are of the first, and one of each other."""
    for key, ways in READS.items():
        alike = key[1] == "directory" and key[0] in ("analyse", "verify", "report")
        for number in range(len(ways)):
            for damage in DAMAGES:
                is_slow = alike and number > 1 and damage != "truncated"
                yield pytest.param(key, number, damage, marks=[pytest.mark.slow] * is_slow)


def _is_another_case(path: Path, damage: str) -> bool:
    """Return whether the result is no error: a chunk without one of its files does not count (and is tested so);
    a verdict that is not there is found again; a module cut after its class is whole."""
    return damage == "missing" and (path.suffix == ".parquet" or path.parent.name == "kept")


def test_every_path_of_every_command_has_rows() -> None:
    """A command could be added that meets a damaged file with a traceback."""
    paths = {
        (command.name, parameter.name)
        for command in COMMANDS.values()
        for parameter in command.params
        if isinstance(parameter.type, click.Path) or isinstance(parameter, click.Argument)
    }
    assert paths - NO_FILE == {*READS, *TO_FILE, *TO_FOLDER} - {("check", "implementations")}


@pytest.mark.parametrize(("key", "number", "damage"), list(_rows()), ids=str)
def test_a_bad_file_is_one_line_and_nothing_is_lost(
    key: tuple[str, str], number: int, damage: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A traceback, a status that says violation, a wait without end, or another file that is gone."""
    find, arguments = READS[key][number]
    path = find(place)
    if _is_another_case(path, damage):
        path.unlink()
        assert Store(place / "swept").count() == (0 if path.suffix == ".parquet" else 1)
        return
    if path.suffix == ".py" and damage == "truncated":
        path.write_text(ALIGNER[:-10], encoding="utf-8")
    else:
        DAMAGES[damage](path)
    before = _files(place)
    status, out, err = barrierlab(capfd, *arguments)
    lines = [line for line in err.splitlines() if not line.startswith("Spark on ")]
    assert (status, out, len(lines)) == (2, "", 1), err
    assert lines[0].startswith("barrierlab: ")
    assert _files(place) == before


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts and path.name != "sweep.lock"
    }


def _with_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `report` have an analysis without a JVM: what it does with its file is asked."""
    import barrierlab.sim.sweep.commands as commands
    from barrierlab.sim.sweep import report, summary

    judged = outcome([{"status": "OK", "verdict": "holds", "violations": 0}], 1)
    analysis = {"sweep": {"question": ""}, "runs": judged}
    monkeypatch.setattr(commands, "_analysed", lambda directory, engine, master: (analysis, Store.open(directory)))
    monkeypatch.setattr(report, "render", lambda analysis, store: "<html></html>\n" * 100)
    monkeypatch.setattr(summary, "answer", lambda analysis: [])


@pytest.mark.parametrize(
    "target", ["/dev/full", "/proc/nothing_here", "a folder", "no/folder/here", "a pipe nobody reads"]
)
@pytest.mark.parametrize("key", TO_FILE, ids=str)
def test_a_file_that_cannot_be_written_is_one_line(
    key: tuple[str, str], target: str, place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback and status 1, which says violation; or half a file."""
    outcome = Outcome(SCOPE, "aligned", "holds", "", 1, 1, 0.0)
    monkeypatch.setattr(sim_cli_check, "run", lambda *_, **__: [outcome])
    monkeypatch.setattr(sim_cli_ask, "Processes", lambda count: Serial())
    monkeypatch.setattr(sim_ask_analyses, "SEEDS", range(1, 2))
    (place / "a folder").mkdir()
    os.mkfifo(place / "a pipe nobody reads")
    before = _files(place)
    status, _, err = barrierlab(capfd, *TO_FILE[key], target)
    assert status == 2, err
    assert target in err.splitlines()[-1]
    assert "Traceback" not in err
    assert _files(place) == before


@pytest.mark.parametrize("target", ["/proc/nothing_here", "job.toml", "job.toml/below"])
@pytest.mark.parametrize("key", TO_FOLDER, ids=str)
def test_a_folder_that_cannot_be_made_is_one_line(
    key: tuple[str, str], target: str, place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above."""
    _with_analysis(monkeypatch)
    monkeypatch.setattr(sim_cli_ask, "Processes", lambda count: Serial())
    before = _files(place)
    status, _, err = barrierlab(capfd, *TO_FOLDER[key], target)
    assert status == 2, err
    assert target in err.splitlines()[-1]
    assert "Traceback" not in err
    assert _files(place) == before


def test_a_full_disk_leaves_the_report_that_was_there(
    place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a report in the place of a whole one."""
    _with_analysis(monkeypatch)
    (place / "swept" / "report.html").write_text("before", encoding="utf-8")

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = _files(place)
    status, _, err = barrierlab(capfd, "report", "swept")
    assert (status, len(err.splitlines())) == (2, 1)
    assert "No space left on device" in err
    assert _files(place) == before
    assert not list((place / "swept").glob(".*"))
