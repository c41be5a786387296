"""The core without the libraries of sweeps, notebooks and random runs; and how fast the command starts."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from barrierlab.sim.core.status import EXTRAS
from tests.sim.support import COMMANDS

ROOT = Path(__file__).parents[2]
ABSENT = sorted(set().union(*EXTRAS.values()))
TRACE = ROOT / "tests" / "traces" / "a_manifest_in_doubt.trace"
ALL = [
    ["run", "diamond"],
    ["run", "crash_and_recover", "--json"],
    ["run", "camera_imu_lidar"],
    ["run", "diamond", "--set", "checkpoint.interval_s=0.3"],  # enough checkpoints for a test of their steadiness
    ["scenarios"],
    ["table", "control"],
    ["check", "--scope", "aligned: a->s b->s; events 1, checkpoints 1; abort", "--master", "processes[1]"],
    ["defects", "A-04"],
    ["export", "aligned: a->s; events 1, checkpoints 1; no fault"],
    ["show", str(TRACE), "--format", "svg"],
    ["witness", "diamond", "--checkpoint", "4"],
    ["import", "flink", str(ROOT / "tests/sim/flink/2.x/chained_local_saturated_aligned.json")],
    ["calibrate", "flink_chain", "--from", str(ROOT / "sim/data/flink")],
]
MISSING = [
    (["sweep", "smoke", "--out", "out/never"], "pyarrow", "sweep"),
    (["measured"], "pyarrow", "sweep"),
    (["advise", "diamond", "--mtbf", "1h"], "scipy", "sweep"),
    (
        ["predict", "diamond", "--costs", str(ROOT / "sim/data/flink/costs_local.toml"), "--seeds", "2"],
        "scipy",
        "sweep",
    ),
]
WITHOUT = f"""
import contextlib, io, json, sys
for name in {ABSENT}:
    sys.modules[name] = None  # as if it were not installed: whoever imports it fails
from barrierlab.sim.cli.main import main
for arguments in json.load(sys.stdin):
    status, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as ended:
            status = ended.code or 0
    print(json.dumps([status, out.getvalue(), err.getvalue()]))
"""


@pytest.fixture(scope="module")
def without() -> dict[str, tuple[int, str, str]]:
    """Status, output and errors of each command in a process that has the core's libraries alone."""
    asked = [*ALL, *(arguments for arguments, _, _ in MISSING)]
    command = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, check=False, cwd=ROOT / "src"
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(asked), done.stderr
    return {" ".join(arguments): tuple(each) for arguments, each in zip(asked, found, strict=True)}


@pytest.mark.parametrize("arguments", ALL, ids=" ".join)
def test_the_core_needs_four_libraries(arguments: list[str], without: dict[str, tuple[int, str, str]]) -> None:
    """Whoever checks an engine in a CI would install half a gigabyte of Spark."""
    status, out, err = without[" ".join(arguments)]
    assert (status, "is not installed" in err) == (0, False), err
    assert out


@pytest.mark.parametrize(
    ("arguments", "library", "extra"), MISSING, ids=lambda each: " ".join(each) if isinstance(each, list) else None
)
def test_a_missing_extra_is_told_in_one_line(
    arguments: list[str], library: str, extra: str, without: dict[str, tuple[int, str, str]]
) -> None:
    """A traceback would say that a module is not there, and not what to install."""
    assert without[" ".join(arguments)] == (
        2,
        "",
        f"barrierlab: this needs {library}, which is not installed: pip install 'barrierlab[{extra}]'\n",
    )
    assert not (ROOT / "src" / "out").exists()


def test_every_extra_is_what_pyproject_says() -> None:
    """The line would name an extra that does not bring the library."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    brought = {
        name: {each.partition(">")[0].partition("=")[0] for each in extras[name] if not each.startswith("barrierlab[")}
        for name in EXTRAS
    }
    along = {"sweep": {"py4j"}}  # with pyspark
    assert {name: names - along.get(name, set()) for name, names in EXTRAS.items()} == brought


def test_the_command_starts_at_once() -> None:
    """Its help would take a second, and every completion of a shell too."""
    program = (
        "import resource, sys\n"
        "from barrierlab.sim.cli.main import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_utime, *sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT / "src")
    seconds, *modules = done.stderr.split()
    assert not {name.partition(".")[0] for name in modules} & {*ABSENT, "networkx", "simpy"}
    assert not [name for name in modules if name.startswith(("barrierlab.impl", "barrierlab.model.checkpoint"))]
    assert float(seconds) < 0.4


def test_each_command_has_a_line_in_the_list() -> None:
    """A command would be there and not be seen."""
    from barrierlab.sim.cli.main import COMMANDS as LISTED

    assert list(COMMANDS) == list(LISTED)
    for name, (_, text) in LISTED.items():
        assert COMMANDS[name].name == name
        assert text[0].isupper()
        assert text.endswith(".")
