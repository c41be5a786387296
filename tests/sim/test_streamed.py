"""A run whose journal is not kept: the same verdict, findings, figures and entries, in memory that does not grow."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

import barrierlab.sim.checkpoint.engine
from barrierlab.model.checkpoint.trace import read, topology_of
from barrierlab.model.spec.history import HistoryError
from barrierlab.model.spec.invariants import Limits, judge_run
from barrierlab.model.spec.settled import RunningJudge
from barrierlab.sim import Result, Scenario, load, run
from barrierlab.sim.checkpoint.streamed import Stream, run_streamed
from barrierlab.sim.cli.main import main
from barrierlab.sim.scenario.file import ScenarioError
from tests.bench.bench_sim import JOBS
from tests.breadth import examples
from tests.model.test_recovery import EXACTLY, FINISH, LINE, complete, entries_of, event
from tests.sim.support import SKEWED, scenario, toml
from tests.sim.test_direct import jobs

TRACES = sorted((Path(__file__).parents[1] / "traces" / "broken").glob("*.trace"))
BROKEN = [path for path in TRACES if "\n> restore" not in path.read_text(encoding="utf-8")]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal of a small run would come in one piece."""
    monkeypatch.setattr(barrierlab.sim.checkpoint.engine, "ROWS_IN_PIECE", 200)


def figures(result: Result) -> str:
    """All that a result shows, and how much there was to judge."""
    parts = dataclasses.asdict(result.judged), result.run_row(), result.checkpoint_rows(), result.task_rows()
    return json.dumps([*parts, result.as_json()], default=str)


def compare(job: Scenario, seed: int) -> None:
    """Run `job` with its journal kept and given away."""
    given_away: list[Any] = []
    streamed, kept = run_streamed(job, seed, given_away.extend), run(job, seed)
    assert figures(streamed) == figures(kept)
    assert list(map(str, given_away)) == list(map(str, kept.entries))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(job=jobs())
def test_a_run_is_the_same_whether_its_journal_is_kept_or_not(job: dict[str, Any], tmp_path: Path) -> None:
    """The judge, or a figure, would miss what is forgotten too early."""
    assume("fault" not in job or job["fault"][0]["kind"] in ("stall", "cancel_checkpoint"))
    path = tmp_path / "job.toml"
    path.write_text(toml(job), encoding="utf-8")
    compare(load(path), 3)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("diamond", {}),
        ("flink_union", {"until_s": 4.0, "mode": "unaligned"}),
        ("skewed_join", {"until_s": 6.0, "protocol": "unaligned"}),
        ("hot_key", {"until_s": 3.0}),
    ],
)
def test_a_shipped_run_is_the_same(name: str, changes: dict[str, Any]) -> None:
    """Overtaken data, watermarks and windows are settled otherwise than plain events."""
    compare(load(name, changes), 2)


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_journal_is_found_in_pieces(path: Path) -> None:
    """A violation would be forgotten with what it is about."""
    header, entries = read(path.read_text(encoding="utf-8"))
    topology = topology_of(header)
    judge = RunningJudge(topology, Limits(), lambda task: lambda stretch: None, {})
    for begin in range(0, len(entries), 7):
        judge.read(entries[begin : begin + 7])
    assert judge.verdict(False) == judge_run(entries, topology)


def test_a_transaction_that_was_left_prepared_is_not_forgotten() -> None:
    """It would be dropped with the checkpoint that settles the events that were prepared with it."""
    text = ""
    for number in range(1, 5):
        text += event(number) + complete(number, 1) + f"> notify s {number}\n    s commit s-{number} a{number}\n"
    text = text.replace("    s prepare s-1 1\n", "    s prepare s-0 1\n    s prepare s-1 1\n") + FINISH
    entries = entries_of(text)
    judge = RunningJudge(LINE, Limits(), lambda task: lambda stretch: None, EXACTLY)
    for begin in range(0, len(entries), 7):
        judge.read(entries[begin : begin + 7])
    assert len(judge.history.settled) == 3
    assert [str(violation) for violation in judge.verdict(False).violations] == [
        "REC: s-0 of s is neither committed nor rolled back, and the job has ended"
    ]


def held_of(messages: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The most messages that the judge of a chain of tasks holds at a time."""
    most = 0
    take = Stream.take

    def watched(self: Stream, rows: list[Any]) -> None:
        nonlocal most
        take(self, rows)
        most = max(most, sum(len(kept.sent) for kept in self.judge.history.channels.values()))

    path = folder / "chain.toml"
    path.write_text(JOBS["tandem"](messages)[0], encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(Stream, "take", watched)
        result = run_streamed(load(path, {"checkpoint.interval_s": 0.2}), 1)
    assert result.verdict == "holds"
    assert result.run_row()["events_out"] == messages
    return most


def test_the_judge_holds_no_more_of_a_long_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten million messages would not fit."""
    assert held_of(6000, tmp_path, monkeypatch) == held_of(2000, tmp_path, monkeypatch) < 2000


def test_a_job_that_may_be_restored_is_refused(tmp_path: Path) -> None:
    """Events that come again after a restore would be held against nothing."""
    with pytest.raises(ScenarioError, match="the job may be restored, by a fault or by tolerable_failures"):
        run_streamed(load("crash_and_recover"))
    judge = RunningJudge(load("diamond").topology, Limits(), lambda task: lambda stretch: None, {})
    with pytest.raises(HistoryError, match="the job was restored"):
        judge.read([(0, ">restore", "coordinator", None, 0)])
    with pytest.raises(ScenarioError, match="was given away: run it without --events"):
        run_streamed(scenario(tmp_path, SKEWED, until_s=1.0)).trace()


def status_of(*arguments: str) -> object:
    """The exit status of `barrierlab run`."""
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments])
    return ended.value.code


def test_events_of_a_run_are_a_parquet_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SQL over a run would miss an entry at the seam of two pieces, or find a number twice."""
    import pyarrow.parquet as pq

    path = tmp_path / "events.parquet"
    assert status_of("diamond", "--set", "until_s=3.0", "--events", str(path)) == 0
    shown = capsys.readouterr().out
    kept = run(load("diamond", {"until_s": 3.0}))
    table = pq.read_table(path)
    assert pq.ParquetFile(path).num_row_groups > 5
    assert table["number"].to_pylist() == list(range(len(kept.entries)))
    columns = zip(*(table[name].to_pylist() for name in ("at_ns", "verb", "node", "channel")), strict=True)
    assert list(columns) == [entry[:4] for entry in kept.entries]
    assert f"digest: {kept.digest}" in shown


def test_no_file_is_left_of_a_run_that_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half a journal would be taken for a whole one."""
    path = tmp_path / "events.parquet"
    for arguments in (["crash_and_recover"], ["lockstep_cameras"], ["diamond", "--trace", str(tmp_path / "t")]):
        assert status_of(*arguments, "--events", str(path)) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())
