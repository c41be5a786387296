"""The command `show`: every format of a trace, and one line for what cannot be shown."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from barrierlab.model.checkpoint.scripted import FOLDER
from barrierlab.sim import load
from barrierlab.sim import run as barrierlab_run
from barrierlab.sim.cli.main import main
from tests.sim.support import barrierlab

KEPT = Path(__file__).parents[1] / "traces"
SOUND = KEPT / "an_input_waits_behind_its_barrier.trace"
STORY = FOLDER / "recovery" / "what_was_not_complete_is_rolled_back.trace"
BROKEN = KEPT / "broken" / "fwd_buffered_events_leave_before_the_barrier.trace"


def show(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of the command."""
    return barrierlab(capsys, "show", *arguments)


@pytest.mark.parametrize("form", ["text", "svg", "mermaid", "shiviz", "perfetto", "itf"])
def test_a_scripted_case_is_shown(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The shipped scripted cases, which have no times, would be text that only a test can read."""
    status, out, err = show(capsys, str(STORY), "--format", form)
    assert (status, err) == (0, "")
    if form == "text":
        assert "> deliver a->s\n" in out
        assert " @ " not in out
    elif form == "perfetto":
        times = {event["ts"] for event in json.loads(out)["traceEvents"] if "ts" in event}
        assert min(time for time in times if time) >= 1000, "a step is a millisecond"
    else:
        assert out


@pytest.mark.parametrize(
    ("form", "sign"),
    [
        ("text", "> deliver"),
        ("svg", "<svg"),
        ("html", '<div class="brl-run">'),
        ("mermaid", "sequenceDiagram"),
        ("shiviz", '{"coordinator":1}'),
        ("perfetto", '"traceEvents"'),
        ("itf", '"format": "ITF"'),
    ],
)
@pytest.mark.parametrize(("path", "status"), [(SOUND, 0), (BROKEN, 1)], ids=["sound", "broken"])
def test_every_format_is_printed_and_the_status_is_the_verdict(
    form: str, sign: str, path: Path, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script could not tell a counterexample from a sound run."""
    code, out, err = show(capsys, str(path), "--format", form)
    assert (code, err) == (status, "")
    assert sign in out


def test_the_text_of_a_trace_is_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """Showing would change what is shown."""
    _, out, _ = show(capsys, str(SOUND))
    assert [line for line in out.splitlines() if line] == [
        line for line in SOUND.read_text().splitlines() if line and not (line[0] == "#" and line not in out)
    ]


def test_a_simulated_run_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The trace that `run` writes could not be looked at."""
    trace, picture = tmp_path / "run.trace", tmp_path / "run.svg"
    with pytest.raises(SystemExit):
        main(["run", "diamond", "--set", "until_s=3.0", "--trace", str(trace)])
    capsys.readouterr()
    code, out, _ = show(capsys, str(trace), "--format", "svg", "--out", str(picture), "--checkpoint", "1")
    assert code == 0
    assert str(picture) in out
    assert "the cut of checkpoint 1; from left to right: order, not time" in picture.read_text()
    assert ET.parse(picture).getroot().tag.endswith("svg")
    code, out, _ = show(capsys, str(trace), "--format", "perfetto")
    assert code == 0
    assert len(json.loads(out)["traceEvents"]) > 1000


def test_a_scenario_is_run_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever wants to look at a run would have to write a trace first."""
    out, mine = tmp_path / "diamond.html", tmp_path / "mine.toml"
    settings = ("--set", "until_s=2.5", "--seed", "1")
    assert show(capsys, "diamond", "--format", "html", *settings, "--out", str(out))[0] == 0
    assert data_in(out)["verdict"] == "holds"
    mine.write_text(load("diamond").text, encoding="utf-8")
    _, text, _ = show(capsys, str(mine), *settings)
    assert text == barrierlab_run(load(str(mine), {"until_s": 2.5}), 1).trace()
    status, _, err = show(capsys, str(SOUND), *settings)
    assert (status, err.count("\n")) == (2, 1)
    assert "--seed and --set are of a scenario, and a trace is given" in err


def data_in(page: Path) -> dict[str, Any]:
    """The data of the run that a page shows."""
    found = re.search(r'<script type="application/json">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return json.loads(zlib.decompress(base64.b64decode(data["packed"]))) if "packed" in data else data


def test_a_long_run_is_a_page_of_the_part_around_a_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page would be so large that no browser is quick with it."""
    trace, out = tmp_path / "run.trace", tmp_path / "run.html"
    trace.write_text(barrierlab_run(load("diamond", {"until_s": 3.0}), seed=1).trace(), encoding="utf-8")
    assert show(capsys, str(trace), "--format", "html", "--out", str(out))[0] == 0
    whole = out.stat().st_size
    assert data_in(out)["note"] == ""
    assert show(capsys, str(trace), "--format", "html", "--checkpoint", "1", "--out", str(out))[0] == 0
    assert out.stat().st_size < whole < 600_000
    assert data_in(out)["note"].startswith("The part around checkpoint 1: entries ")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a run that is too long for pictures."""
    path = tmp_path_factory.mktemp("long") / "long.trace"
    path.write_text(barrierlab_run(load("diamond", {"until_s": 5.0})).trace(), encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["text", "svg", "mermaid", "shiviz", "perfetto", "itf"])
def test_a_checkpoint_is_shown_alike_in_every_format(form: str, long: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--checkpoint would mean something in a picture, and nothing elsewhere."""
    first, second = (show(capsys, str(long), "--format", form, "--checkpoint", n)[1] for n in "12")
    assert first != second
    assert max(len(first), len(second)) < 60_000
    assert "barrier 1" in first or form in ("itf", "shiviz")
    for text, own, other in ((first, "1", "2"), (second, "2", "1")):
        assert {"text": f"snapshot {own} ", "itf": f'"#bigint": "{own}"'}.get(form, f"snapshot {own}") in text
        assert f"barrier {other}" not in text


def test_of_a_long_trace_the_states_around_the_checkpoint_are_given(
    long: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of a minute would be states of gigabytes, or none, as the memory is full."""
    part = show(capsys, str(long), "--format", "itf")[1]
    assert part == show(capsys, str(long), "--format", "itf", "--checkpoint", _last_complete(long))[1]


def _last_complete(path: Path) -> str:
    return [line.split()[-1] for line in path.read_text(encoding="utf-8").splitlines() if " completed " in line][-1]


def test_a_part_of_a_trace_is_no_trace(long: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rest of a run would be judged as if nothing had been ahead of it."""
    status, out, _ = show(capsys, str(long), "--checkpoint", "1")
    assert (status, out.splitlines()[0].partition(",")[0]) == (0, "long.trace: the part around checkpoint 1")
    whole = long.read_text(encoding="utf-8")
    moves = out.split("\n\n", 1)[1]
    assert moves.startswith("> ")
    assert moves in whole
    part = tmp_path / "part.trace"
    part.write_text(out, encoding="utf-8")
    status, _, err = show(capsys, str(part))
    assert (status, "is no field of a header" in err) == (2, True)


def test_mermaid_draws_what_it_can(long: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mermaid refuses a text of more than 50,000 characters, and a person would see an error instead of a run."""
    _, out, _ = show(capsys, str(long), "--format", "mermaid")
    assert len(out) <= 50_000
    assert "title the part around checkpoint 2" in out
    _, out, _ = show(capsys, str(STORY), "--format", "mermaid")
    assert "title" not in out


EMITTED = "topology: a->b\n\n> emit a a1 @ 1.000000000\n"


def test_a_mistyped_scenario_is_no_missing_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever mistypes a scenario's name would be asked for a trace."""
    status, out, err = show(capsys, "diamnod", "--seed", "3")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("barrierlab: diamnod: no scenario of this name; there are ")
    assert err.endswith("; did you mean 'diamond'?\n")


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (None, (), "cannot be read: No such file or directory; give a trace"),
        ("", (), "has no moves"),
        ("topology: a->b\n\n> emit a a1 @ 1.000000000\n> emit c c1 @ 1.000000000\n", (), "has no place in it"),
        (f"{EMITTED}    a send a->c a1\n", (), "'a->c' has no place in it"),
        (f"{EMITTED}> deliver a->c @ 2.000000000\n", ("--format", "html"), "'a->c' has no place in it"),
        (f"{EMITTED}> overtake a->c @ 2.000000000\n", ("--format", "html"), "'a->c' has no place in it"),
        (f"{EMITTED}    a forward barrier 0\n", (), "'barrier 0' stands where there is to be "),
        ("topology: a->b\n\nnonsense\n", (), "bad.trace:3: 'nonsense' is no line of a trace"),
        ("a: b\n\n> emit a a1 @ 1.000000000\n", (), "the header has no line 'topology"),
        ("topology: a->a\n\n> emit a a1 @ 1.000000000\n", (), "bad.trace: "),
        ("topology: a->b\n\n> emit a a1 @ 1.000000000\n", ("--checkpoint", "7"), "the trace has no snapshot"),
        ("topology: a->b\n\n> emit a a1 @ 1.000000000\n", ("--out", "/"), "'/' is a directory"),
        ("topology: a->b\n\n> emit a a1 @ 1.000000000\n", ("--format", "png"), "'png' is not one of 'text', 'svg'"),
    ],
    ids=[
        *("no file", "empty", "no such task", "no such channel", "of a move", "of a rare one", "no such barrier"),
        *("no line", "no topology", "cycle", "no checkpoint", "folder", "format"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    text: str | None, arguments: tuple[str, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person would get a traceback, or no word on what to do."""
    path = tmp_path / "bad.trace"
    if text is not None:
        path.write_text(text)
    code, out, err = show(capsys, str(path), *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_a_pipe_that_closes_is_no_error() -> None:
    """`barrierlab show ... | head` would end in a traceback."""
    command = f"{sys.executable} -m barrierlab show {SOUND} --format svg | head -c 10"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=KEPT.parents[1])
    assert done.stdout == "<svg xmlns"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("scenario", "until_s", "of"),
    [("lockstep_cameras", 2.0, "a join"), ("graceful_shutdown", 20.0, "control signals")],
    ids=["join", "control"],
)
def test_a_journal_without_channels_is_shown_as_it_is(
    scenario: str, until_s: float, of: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace of `run --trace` could not be shown, for a reason that has nothing to do with it."""
    file, other = tmp_path / "run.trace", tmp_path / "other.txt"
    assert barrierlab(capsys, "run", scenario, "--set", f"until_s={until_s}", "--trace", str(file))[0] == 0
    text = file.read_text()
    assert show(capsys, str(file)) == (0, text, "")
    assert show(capsys, str(file), "--out", str(other))[0] == 0
    assert other.read_text() == text
    file.write_text(f"{text}! LIVE: output 3 is kept back\n")
    assert show(capsys, str(file))[0] == 1
    status, out, err = show(capsys, str(file), "--format", "svg")
    assert (status, err) == (1, "")
    assert ET.fromstring(out).tag.endswith("svg")
    assert "! LIVE: output 3 is kept back" in out
    status, out, err = show(capsys, str(file), "--format", "perfetto")
    assert (status, out) == (2, "")
    assert err == f"barrierlab: {file}: a journal of {of} has no perfetto; allowed: text, svg\n"
    status, out, err = show(capsys, str(file), "--checkpoint", "1")
    assert (status, out) == (2, "")
    assert err == f"barrierlab: {file}: a journal of {of} has no checkpoints; leave --checkpoint out\n"


@pytest.mark.parametrize("title", ["join: cursors", "late join: a joiner", "join table: maps", "control: a diamond"])
def test_a_counterexample_without_channels_is_shown_as_it_is(
    title: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file that `check --save` writes beside a verdict could not be shown."""
    file = tmp_path / "counterexample.trace"
    file.write_text(f"# {title}.\n> poll\n! TABLE: poll: the code answers None\n")
    assert show(capsys, str(file)) == (1, file.read_text(), "")
