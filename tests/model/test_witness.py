"""The run that passes through a checkpoint (Chandy and Lamport 1985, theorem 1)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from barrierlab.model.checkpoint.trace import read, topology_of
from barrierlab.model.spec.attempts import Run
from barrierlab.model.spec.history import Entry
from barrierlab.model.spec.witness import CutWitness, WitnessError, witness
from barrierlab.sim import load, run
from barrierlab.sim.checkpoint.result import fold_of
from tests.sim.support import barrierlab
from tests.sim.test_survive_anything import planned

ROOT = Path(__file__).parents[2]
BROKEN = [
    path
    for folder in ("model/defects", "tests/traces/broken")
    for path in sorted((ROOT / folder).rglob("*.trace"))
    if re.search(r"^topology: .*^! CUT: ", path.read_text(encoding="utf-8"), re.MULTILINE + re.DOTALL)
]


@cache
def of(name: str, **settings: Any) -> Any:
    """The result of a run of a shipped scenario."""
    return run(load(name, settings))


def passes(result: Any) -> int:
    """Demand that a run passes through each of its checkpoints; how many events were in their channels."""
    in_flight = 0
    for attempt in result.attempts.attempts:
        for checkpoint_id in attempt.complete:
            found = result.witness(checkpoint_id)
            assert found.obstacle == ""
            assert all(recorded == computed for recorded, computed in found.states.values())
            in_flight += sum(map(len, found.channels.values()))
    return in_flight


def bubbled(steps: Sequence[tuple[Entry, bool]]) -> tuple[list[Entry], int]:
    """The steps with those before the cut first, by exchanges of neighbours, and how many that were."""
    steps, count = list(steps), 0
    while places := [n for n in range(len(steps) - 1) if not steps[n][1] and steps[n + 1][1]]:
        for n in places:
            steps[n], steps[n + 1] = steps[n + 1], steps[n]
        count += len(places)
    return [entry for entry, _ in steps], count


@pytest.mark.parametrize(
    ("name", "protocol", "until_s"),
    [("diamond", "aligned", 10.0), ("skewed_join", "unaligned", 10.0), ("crash_and_recover", "aligned", 30.0)],
)
def test_a_run_passes_through_each_of_its_checkpoints(name: str, protocol: str, until_s: float) -> None:
    """A cut that is called consistent would be a state in which the job could never have been."""
    in_flight = passes(of(name, protocol=protocol, until_s=until_s))
    assert (in_flight > 0) == (protocol == "unaligned")


@pytest.mark.slow
def test_every_checkpoint_of_two_hundred_random_runs_is_passed_through() -> None:
    """As above, of any shape, protocol, fault and guarantee."""
    in_flight = checkpoints = 0
    for each in planned()[::10][:200]:
        result = run(load(each.source, each.parameters), each.seed)
        if result.scenario.mode.is_exact:
            in_flight += passes(result)
            checkpoints += sum(len(attempt.complete) for attempt in result.attempts.attempts)
    assert in_flight > 100
    assert checkpoints > 500


def test_tasks_keep_their_order_and_the_exchanges_are_the_inversions() -> None:
    """The reordered run would be another run, or the number a guess."""
    result = of("crash_and_recover")
    found: CutWitness = result.witness(2)
    number = {id(entry): place for place, entry in enumerate(result.entries)}
    first = {id(entry) for entry in found.steps[: found.before]}
    original = sorted(found.steps, key=lambda entry: number[id(entry)])
    assert len(number) == len(result.entries)
    assert len({id(entry) for entry in found.steps}) == len(found.steps)
    for task in result.scenario.topology.tasks:
        assert [e for e in found.steps if e[2] == task] == [e for e in original if e[2] == task]
    bubble, count = bubbled([(entry, id(entry) in first) for entry in original])
    assert (bubble, count) == (list(found.steps), found.exchanges)
    assert count > 100


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_what_breaks_the_cut_has_no_witness(path: Path) -> None:
    """A cut that loses or doubles events would be one that the job could have passed through."""
    head, entries = read(path.read_text(encoding="utf-8"), path.name)
    attempts = Run.of(entries, topology_of(head, path.name))
    complete = [each for attempt in attempts.attempts for each in attempt.complete]
    assert any(witness(entries, attempts, each).obstacle for each in complete)


def test_there_are_broken_cuts() -> None:
    """The test above would ask nothing."""
    assert len(BROKEN) >= 10


def _changed(entries: Sequence[Entry], verb: str, change: Any) -> list[Entry]:
    place = next(n for n, entry in enumerate(entries) if entry[1] == verb)
    return [*entries[:place], *change(entries[place]), *entries[place + 1 :]]


def test_a_wrong_state_and_a_lost_record_are_named() -> None:
    """The witness would compare nothing."""
    result = of("skewed_join", protocol="unaligned", until_s=10.0)
    topology, fold = result.scenario.topology, fold_of(result.scenario)

    def obstacle(entries: Sequence[Entry], checkpoint_id: int) -> str:
        return witness(entries, Run.of(entries, topology), checkpoint_id, fold).obstacle

    wrong = _changed(result.entries, "snapshot", lambda e: [(*e[:4], (e[4][0], "0" * 16))])
    assert obstacle(wrong, 1).endswith(f"there, and {'0' * 16} was recorded")
    capture = next(entry for entry in result.entries if entry[1] == "capture")
    lost = _changed(result.entries, "capture", lambda _: [])
    checkpoint_id, message = capture[4]
    assert obstacle(result.entries, checkpoint_id) == ""
    assert obstacle(lost, checkpoint_id).startswith(f"{capture[3]} holds {message}")


def test_at_least_once_names_the_orphan() -> None:
    """Tracked barriers would be called exact, or what they permit a violation."""
    assert of("tracked").witness(2).obstacle.endswith("an orphan; these two steps cannot be exchanged")


def test_only_a_complete_checkpoint_has_one() -> None:
    """An aborted checkpoint has no cut, and somebody would see one."""
    with pytest.raises(WitnessError, match=r"^checkpoint 99 is not complete; allowed: 1, 2, 3, 4$"):
        of("diamond").witness(99)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The theorem could not be looked at."""
    steps, trace = tmp_path / "steps.txt", tmp_path / "d.trace"
    status, out, _ = barrierlab(capsys, "witness", "diamond", "--checkpoint", "4", "--out", str(steps))
    found = of("diamond").witness(4)
    assert (status, out.splitlines()) == (
        0,
        [
            "checkpoint 4: consistent",
            f"of the {len(found.steps)} steps of attempt 1, {found.before} are before the cut",
            f"{found.exchanges} exchanges of neighbouring steps put those first",
            "there the 5 tasks have the states that were recorded",
            "there the channels hold the events that were recorded: 0",
        ],
    )
    assert steps.read_text().splitlines()[found.before] == "-- the state that checkpoint 4 recorded --"
    trace.write_text(of("diamond").trace(), encoding="utf-8")
    status, out, _ = barrierlab(capsys, "witness", str(trace), "--checkpoint", "4", "--json")
    known = json.loads(out)
    assert (status, known["exchanges"], known["before"]) == (0, found.exchanges, found.before)
    assert {each["computed"] for each in known["states"].values()} == {None}
    _, out, _ = barrierlab(capsys, "witness", str(trace), "--checkpoint", "4")
    assert "a trace does not hold the operators" in out


def test_the_command_ends_as_its_verdict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A script could not tell an inconsistent cut, one that the protocol permits, and wrong input."""
    broken = str(next(path for path in BROKEN if path.stem == "A04_barrier_after_held_records"))
    status, out, _ = barrierlab(capsys, "witness", broken, "--checkpoint", "1")
    assert (status, out.splitlines()[0]) == (1, "checkpoint 1: not consistent")
    status, out, _ = barrierlab(capsys, "witness", "tracked", "--checkpoint", "2")
    assert (status, "the protocol, at least once, permits it" in out) == (0, True)
    status, out, err = barrierlab(capsys, "witness", "diamond", "--checkpoint", "99")
    assert (status, out, "allowed: 1, 2, 3, 4" in err) == (2, "", True)
    status, _, err = barrierlab(capsys, "witness", "lockstep_cameras", "--checkpoint", "1")
    assert (status, "its runs have no checkpoints" in err) == (2, True)
    (trace := tmp_path / "join.trace").write_text(run(load("lockstep_cameras", {"until_s": 1.5})).trace())
    status, _, err = barrierlab(capsys, "witness", str(trace), "--checkpoint", "1")
    assert (status, "a journal of a join has no checkpoints; give a trace of a job" in err) == (2, True)
    status, _, err = barrierlab(capsys, "witness", broken, "--checkpoint", "1", "--seed", "2")
    assert (status, "leave them out" in err) == (2, True)
