"""The core without the libraries of sweeps, notebooks and random runs; and how fast the command starts."""

from __future__ import annotations

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
WITHOUT = f"""
import sys
for name in {ABSENT}:
    sys.modules[name] = None  # as if it were not installed: whoever imports it fails
from barrierlab.sim.cli.main import main
main(sys.argv[1:])
"""


def without(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process that has the core's libraries alone."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=False, cwd=ROOT / "src"
    )


@pytest.mark.parametrize(
    "arguments",
    [
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
        ["predict", "diamond", "--costs", str(ROOT / "sim/data/flink/costs_local.toml"), "--seeds", "2"],
    ],
    ids=" ".join,
)
def test_the_core_needs_four_libraries(arguments: list[str]) -> None:
    """Whoever checks an engine in a CI would install half a gigabyte of Spark."""
    done = without(*arguments)
    assert (done.returncode, "is not installed" in done.stderr) == (0, False), done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    ("arguments", "library", "extra"),
    [
        (["sweep", "smoke", "--out", "out/never"], "pyarrow", "sweep"),
        (["measured"], "pyarrow", "sweep"),
        (["advise", "diamond", "--mtbf", "1h"], "scipy", "sweep"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else None,
)
def test_a_missing_extra_is_told_in_one_line(arguments: list[str], library: str, extra: str) -> None:
    """A traceback would say that a module is not there, and not what to install."""
    done = without(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"barrierlab: this needs {library}, which is not installed: pip install 'barrierlab[{extra}]'\n"
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
