"""The compiled build of the package does what the source does: the same tests, journals and counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCENARIOS = (
    *("diamond", "backlog", "crash_and_recover", "flink_chain", "flink_join", "flink_union", "hot_key", "nexmark_q5"),
    *("nexmark_q8", "random_crashes", "skewed_join", "store_outage", "survive_anything", "tracked", "word_count"),
)
JOURNALS = """
import sys
from hashlib import sha256
from barrierlab.sim import load, run
from barrierlab.sim.core.build import BUILD
print(BUILD)
for name in sys.argv[1:]:
    result = run(load(name, {"until_s": 4.0}), seed=3)
    print(name, len(result.entries), result.digest, result.verdict)
"""


@pytest.fixture(scope="session")
def hook() -> Any:
    """The hook of the build, as a module."""
    pytest.importorskip("hatchling")
    spec = spec_from_file_location("barrierlab_hatch_build", ROOT / "src" / "hatch_build.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def compiled(hook: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the compiled wheel of this source, and unpack it."""
    pytest.importorskip("mypyc")
    pytest.importorskip("setuptools")
    if missing := hook.missing_tool():
        pytest.skip(f"no {missing}")
    folder = tmp_path_factory.mktemp("compiled")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "wheel")]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"BARRIERLAB_COMPILED": "1"}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    [wheel] = (folder / "wheel").glob("*.whl")
    assert "-none-any" not in wheel.name, "a wheel with machine code in it is of one machine"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def python(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the package at `path` before every other."""
    environment = os.environ | {"PYTHONPATH": f"{path}{os.pathsep}{ROOT}", "CI": "true"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("folder", ["tests/impl", "tests/model", "tests/sim"])
def test_the_quick_tests_pass(compiled: Path, folder: str, tmp_path: Path) -> None:
    """A class that is compiled would do something else than its source says."""
    tests = [str(ROOT / name) for name in OF_RUNS] if folder == "tests/sim" else [folder]
    quick = ("-q", "-x", "-p", "no:cacheprovider", "-o", "pythonpath=.", "-m", "not slow and not spark", *tests)
    own = f"--basetemp={tmp_path / 'own'}"  # two runs that tidy one folder of old files get into each other's way
    done = python(compiled, "-m", "pytest", own, *quick, *(f"--deselect={each}" for each in OF_THE_SOURCE))
    assert done.returncode == 0, done.stdout[-6000:]


# Those of the simulator itself: the others are of commands, pages and sweeps.
OF_RUNS = (
    *("tests/sim/test_engine.py", "tests/sim/test_direct.py", "tests/sim/test_workload.py", "tests/sim/test_laws.py"),
    *("tests/sim/test_determinism.py", "tests/sim/test_debloating.py", "tests/sim/test_standstill.py"),
    *("tests/sim/test_broken_on_purpose.py", "tests/sim/test_broken_recovery.py", "tests/sim/test_streamed.py"),
    *("tests/sim/test_recovery_laws.py", "tests/sim/test_joins.py", "tests/sim/test_faults.py"),
)

# They put another method into a class, or another class into a module, which compiled code does not look up; or look
# for files beside the source.
OF_THE_SOURCE = (
    *(
        f"tests/sim/test_broken_on_purpose.py::test_the_broken_run_is_found[{name}]"
        for name in ("drain_before_forward", "drain_before_forward_cuts_wrong", "image_after_release", "snapshot_twice")
    ),
    "tests/model/test_cases.py::test_every_trace_in_the_repository_is_run",
    "tests/model/test_forgotten.py::test_what_is_forgotten_changes_no_run",
    "tests/model/test_forgotten.py::test_what_is_forgotten_too_early_is_noticed",
    "tests/model/test_gate_runs.py::test_what_drifts_is_told_by_a_short_run",
    "tests/model/test_gate_runs.py::test_a_run_is_the_same_each_time",
    "tests/model/test_history.py::test_every_verb_is_understood",
    "tests/model/test_refine.py::test_a_broken_machine_is_told_apart",
    "tests/model/test_repeatable.py::test_what_does_not_do_the_same_twice_is_told_so",
    "tests/model/test_schemes.py::test_a_look_that_is_left_out_is_missed",
    "tests/model/test_unaligned_schemes.py::test_a_look_that_is_left_out_is_missed",
)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_is_copied_is_whole(compiled: Path) -> None:
    """A writer or an aligner of one's own is copied by the explorer: with less than it has, it would be another."""
    both = [python(path, "-c", COPIES) for path in (compiled, ROOT / "src")]
    assert [done.returncode for done in both] == [0, 0], [done.stderr[-2000:] for done in both]
    assert both[0].stdout == both[1].stdout
    assert "False" not in both[0].stdout


COPIES = """
import copy, pickle
from barrierlab.impl import *
from barrierlab.impl.checkpoint.tracked import BarrierTracker

class Mine(BarrierAligner):
    def __init__(self):
        super().__init__()
        self.own = [1]

class Slotted(UnalignedCheckpointer):
    __slots__ = ("own",)
    def __init__(self):
        super().__init__()
        self.own = [1]

def fed(machine):
    machine.process_message(0, CheckpointBarrier(1, 1))
    machine.process_message(0, Event("a", 1))
    return machine

def contents(it):
    return it.capture() if hasattr(it, "capture") else it, getattr(it, "own", None)

messages = Event("a", 1, value=[1]), CheckpointBarrier(3, 4, 1), Watermark(3), CancelBarrier(4), EndOfInput()
machines = BarrierAligner(), UnalignedCheckpointer(), BarrierTracker(), Mine(), Slotted()
values = BarrierAlignerConfig(), CheckpointBarrierInjector(), PackedBarrierCmd.new(1, 2)
for it in (*messages, *map(fed, machines), *values):
    for way in (copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))):
        its = way(it)
        print(type(it).__name__, contents(its) == contents(it))
        if hasattr(it, "free") and way is copy.deepcopy:
            print("one set of the free inputs:", its.free is its.inputs.free)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_journals_are_the_same(compiled: Path) -> None:
    """A run would differ between two installations of one version."""
    both = [python(path, "-c", JOURNALS, *SCENARIOS) for path in (compiled, ROOT / "src")]
    assert [done.returncode for done in both] == [0, 0], [done.stderr[-2000:] for done in both]
    first, second = (done.stdout.splitlines() for done in both)
    assert (first[0], second[0]) == ("compiled", "pure Python")
    assert first[1:] == second[1:]
    assert len(first) == 1 + len(SCENARIOS)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_trace_is_the_same_byte_for_byte(compiled: Path, tmp_path: Path) -> None:
    """A journal that is kept would say more or less than one of the other build."""
    for name in ("crash_and_recover", "flink_union"):
        kept = []
        for number, path in enumerate((compiled, ROOT / "src")):
            file = tmp_path / f"{name}_{number}.trace"
            done = python(path, "-m", "barrierlab", "run", name, "--set", "until_s=4", "--trace", str(file))
            assert done.returncode == 0, done.stderr
            kept.append(file.read_bytes())
        assert kept[0] == kept[1], name


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("protocol", ["aligned", "unaligned"])
def test_a_check_counts_the_same(compiled: Path, protocol: str) -> None:
    """A state would be missed, or told apart from one that is equal."""
    first, second = (counts(path, protocol) for path in (compiled, ROOT / "src"))
    assert first == second
    assert len(first) > 5


def counts(path: Path, protocol: str) -> list[Any]:
    """Return the scopes of a check with their counts."""
    done = python(path, "-m", "barrierlab", "check", "--protocol", protocol, "--scope", "tiny", "--json")
    assert done.returncode == 0, done.stderr
    scopes = json.loads(done.stdout)["scopes"]
    return [{key: value for key, value in scope.items() if key != "seconds"} for scope in scopes]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_exploration_counts_the_same(compiled: Path) -> None:
    """The compiled explorer would pass by a state of a world with faults, or find a longer run to a violation."""
    both = [python(path, "-c", EXPLORATIONS) for path in (compiled, ROOT / "src")]
    assert [done.returncode for done in both] == [0, 0], [done.stderr[-2000:] for done in both]
    first, second = (done.stdout.splitlines() for done in both)
    assert (first[0], second[0]) == ("True", "False"), "the world is to be compiled in one build, and not in the other"
    assert first[1:] == second[1:]
    assert {line.split()[0] for line in first[1:]} == {"holds", "broken"}


EXPLORATIONS = """
from barrierlab.impl import BarrierAligner
from barrierlab.impl.checkpoint.alignment import AlignmentAction
from barrierlab.model.checkpoint import world
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.explore.checker import Always, Quiescent, explore

class Hasty(BarrierAligner):
    def on_barrier(self, input_id, barrier, now_ns):
        action = super().on_barrier(input_id, barrier, now_ns)
        return self.all_in(now_ns) if action is AlignmentAction.BLOCKED else action

print(hasattr(world.World, "__mypyc_attrs__"))
bounds = Bounds("a->join b->join join->s", events=1), Bounds("a->s", events=1, checkpoints=2, crashes=1)
aligners = {}, {"aligner": lambda config, *its: Hasty(config)}
for given in aligners:
    for each in bounds:
        explored = world.World(each, Components(**given))
        asked = Always("always", explored.broken), Quiescent("at rest", explored.liveness_violation)
        found = explore(explored, asked)
        moves = [str(move) for broken in found.violations for move in broken.moves]
        print(found.verdict, found.counts[:3], found.why, moves)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_catalogue_is_caught(compiled: Path) -> None:
    """An interpreted class below a compiled one would not be asked: every defect of it would be a sound aligner."""
    first, second = (python(path, "-m", "barrierlab", "defects", "--json") for path in (compiled, ROOT / "src"))
    assert first.returncode == second.returncode == 0, first.stderr[-2000:]
    assert without_times(json.loads(first.stdout)) == without_times(json.loads(second.stdout))


def without_times(found: Any) -> Any:
    """Return an answer without its seconds."""
    if isinstance(found, dict):
        return {key: without_times(value) for key, value in found.items() if key != "seconds"}
    return [without_times(each) for each in found] if isinstance(found, list) else found


# What the hook does to a copy; it needs no compiler.


def test_the_copy_has_the_lines_of_the_source(hook: Any) -> None:
    """A traceback of the compiled build would name another line."""
    for name in hook.MODULES:
        source = (ROOT / name).read_text(encoding="utf-8")
        copy = hook.prepared(source, name)
        added = len(copy.splitlines()) - len(source.splitlines())
        assert added == (name not in hook.CLOSED_MODULES), name
        for before, after in zip(source.splitlines(), copy.splitlines(), strict=False):
            if before.lstrip().startswith(("return", "raise", "if ", "for ", "while ")):
                assert after == before, name


def test_the_copy_takes_anything_where_the_source_checks(hook: Any) -> None:
    """True would be 1, and the call would be accepted."""
    copy = hook.prepared(SOURCE, hook.OPEN_MODULES[0])
    assert "def take(self, number: _Any, kind: list[int], now_ns: int = 0, value: _Any = None)" in copy
    assert "@_mypyc_attr(allow_interpreted_subclasses=True, serializable=True)\nclass Open:" in copy
    assert "@_mypyc_attr(native_class=False)\n@dataclass(frozen=True)\nclass Value:" in copy
    assert 'number: "int" = 0' in copy


def test_the_copy_takes_what_is_annotated_where_nobody_else_calls(hook: Any) -> None:
    """A call between compiled classes would look its method up by name."""
    copy = hook.prepared(SOURCE, hook.CLOSED_MODULES[0])
    assert "def take(self, number: int, kind: list[int], now_ns: int = 0, value: Value | None = None)" in copy
    assert "\n\nclass Open:" in copy
    assert set(hook.CLOSED_MODULES) <= set(hook.INNER_MODULES)


SOURCE = '''"""A module."""

from __future__ import annotations

from dataclasses import dataclass


class Open:
    """A class."""

    def take(self, number: int, kind: list[int], now_ns: int = 0, value: Value | None = None) -> int:
        return number


@dataclass(frozen=True)
class Value:
    """A value."""

    number: int = 0
'''


def test_no_compiler_is_one_line(hook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of a compiler's errors would stand in its place."""
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    assert hook.missing_tool() == "C compiler (no-such-compiler)"
