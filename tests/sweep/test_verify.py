"""The second judge: stored journals asked in SQL say what the first judge says, of sound runs and of mutants.

All journals are in one sweep that is judged once: a query costs the same for one run as for a hundred.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_runs import contents, plan_with

import barrierlab.sim.sweep.verify.judge as sim_sweep_verify_judge
from barrierlab.impl.messages import CheckpointBarrier, Event, Watermark
from barrierlab.model.spec.history import COORDINATOR, Entry
from barrierlab.model.spec.invariants import INVARIANTS, RUN_INVARIANTS, Limits, Verdict, judge_run
from barrierlab.model.spec.messages import kind_of
from barrierlab.model.spec.topology import Topology
from barrierlab.sim import load
from barrierlab.sim import run as simulated
from barrierlab.sim.sweep.errors import SweepError
from barrierlab.sim.sweep.execute import execute
from barrierlab.sim.sweep.journal import channel_rows, journal_columns
from barrierlab.sim.sweep.outcome import outcome
from barrierlab.sim.sweep.plan import plan_of
from barrierlab.sim.sweep.report import example_of
from barrierlab.sim.sweep.store import Store
from barrierlab.sim.sweep.tables import TABLES
from barrierlab.sim.sweep.verify.judge import ELSEWHERE, reproduce, verify
from barrierlab.sim.sweep.verify.queries import QUERIES
from tests.sim.support import barrierlab

SHORT = {"until_s": 1.0, "source.a.events": 25, "checkpoint.interval_s": 0.15}
SOUND: dict[str, tuple[str, dict[str, object]]] = {
    "aligned": ("survive_anything", {**SHORT, "trouble": "nothing"}),
    "union": ("survive_anything", {**SHORT, "shape": "union", "mode": "unaligned"}),
    "hash": ("survive_anything", {**SHORT, "shape": "hash", "mode": "aligned_with_timeout", "channels": "network"}),
    "join": ("survive_anything", {**SHORT, "shape": "join", "trouble": "crashes"}),
    "diamond": ("survive_anything", {**SHORT, "shape": "diamond", "mode": "unaligned", "load": "saturated"}),
    "store": ("survive_anything", {**SHORT, "trouble": "store", "guarantee": "at_least_once"}),
    "coordinator": ("survive_anything", {**SHORT, "shape": "fan_out", "trouble": "coordinator"}),
    "tracked": ("tracked", {"until_s": 3.6, "checkpoint.interval_s": 0.5}),
    "skewed": ("skewed_join", {"until_s": 1.5, "checkpoint.interval_s": 0.4}),
}
FEW = ("union", "hash", "join", "diamond", "tracked")
OF_QUICK = ("CUT", "NOLOSS", "LIVE")
"""Queries that are laid beside one another on both engines in a run without slow tests: each takes Spark a second."""
EDITS, MANY_EDITS = 2, 24  # of each sound run


class Journal:
    """A journal, and what its judge must know."""

    def __init__(
        self, entries: list[Entry], topology: Topology, limits: Limits | None = None, cut_off: bool = False
    ) -> None:
        self.entries, self.topology, self.limits, self.cut_off = entries, topology, limits or Limits(), cut_off

    def judged(self) -> Verdict:
        """Return what the first judge says; of states and of the external system nothing."""
        return judge_run(self.entries, self.topology, self.limits, None, self.cut_off)

    def with_entries(self, entries: list[Entry]) -> Journal:
        """The same job with another journal."""
        return Journal(entries, self.topology, self.limits, self.cut_off)


# Journals bent on purpose.

LINE = Topology.parse("a->s")
TWO = Topology.parse("a->j b->j")


def line(events: int = 4) -> list[Entry]:
    """Events that cross from `a` to `s`, a checkpoint behind the second, a watermark, and the end."""
    made: list[tuple[str, str, str | None, object]] = []
    for n in range(1, events + 1):
        event = Event("a", n)
        made += [(">emit", "a", None, event), ("send", "a", "a->s", event)]
        made += [("take", "s", "a->s", event), ("deliver", "s", "a->s", event)]
        if n == 2:
            barrier = CheckpointBarrier.aligned(1, 1)
            made += [(">trigger", COORDINATOR, None, 1), (">inject", "a", None, 1), ("snapshot", "a", None, (1, "d"))]
            made += [("forward", "a", None, barrier), ("send", "a", "a->s", barrier), ("take", "s", "a->s", barrier)]
            made += [("block", "s", "a->s", 1), ("snapshot", "s", None, (1, "d")), ("resume", "s", None, 1)]
            made += [(">ack", "a", None, 1), (">ack", "s", None, 1), ("completed", COORDINATOR, None, 1)]
        if n == 3:
            mark = Watermark(5)
            made += [("send", "a", "a->s", mark), ("take", "s", "a->s", mark), ("deliver", "s", "a->s", mark)]
    return [(at, *rest) for at, rest in enumerate(made)]


def without(entries: list[Entry], verb: str, node: str, text: str) -> list[Entry]:
    """`entries` less the one of this verb, task and subject."""
    (index,) = [i for i, e in enumerate(entries) if (e[1], e[2], str(e[4])) == (verb, node, text)]
    return entries[:index] + entries[index + 1 :]


def moved(entries: list[Entry], verb: str, node: str, text: str, places: int) -> list[Entry]:
    """`entries` with one of them some places later, or earlier."""
    (index,) = [i for i, e in enumerate(entries) if (e[1], e[2], str(e[4])) == (verb, node, text)]
    rest = entries[:index] + entries[index + 1 :]
    return [*rest[: index + places], entries[index], *rest[index + places :]]


def doubled(entries: list[Entry], verb: str, node: str) -> list[Entry]:
    """`entries` with the first one of this verb and task twice."""
    index = next(i for i, e in enumerate(entries) if e[1:3] == (verb, node))
    return [*entries[: index + 1], *entries[index:]]


def early_cause() -> list[Entry]:
    """`m` takes an event, lets the barrier go, and sends what the event causes."""
    event, barrier = Event("a", 1), CheckpointBarrier.aligned(1, 1)
    steps: list[tuple[str, str, str | None, object]] = [
        (">emit", "a", None, event),
        ("send", "a", "a->m", event),
        (">trigger", COORDINATOR, None, 1),
        ("snapshot", "a", None, (1, "d")),
        ("send", "a", "a->m", barrier),
        ("take", "m", "a->m", event),
        ("deliver", "m", "a->m", event),
        ("take", "m", "a->m", barrier),
        ("block", "m", "a->m", 1),
        ("snapshot", "m", None, (1, "d")),
        ("send", "m", "m->s", barrier),
        ("resume", "m", None, 1),
        ("send", "m", "m->s", event),
        ("take", "s", "m->s", barrier),
        ("block", "s", "m->s", 1),
        ("snapshot", "s", None, (1, "d")),
        ("resume", "s", None, 1),
        *((">ack", task, None, 1) for task in ("a", "m", "s")),
        ("completed", COORDINATOR, None, 1),
        ("take", "s", "m->s", event),
        ("deliver", "s", "m->s", event),
    ]
    return [(at, *rest) for at, rest in enumerate(steps)]


def restored(checkpoint_id: int) -> list[Entry]:
    """A line that goes on from its checkpoint; one that it has is not triggered again."""
    first = line()
    later = [
        (">restore", COORDINATOR, None, 1),
        ("restored", "a", None, (1, "d")),
        ("restored", "s", None, (1, "d")),
        (">emit", "a", None, Event("a", 3)),
        (">trigger", COORDINATOR, None, checkpoint_id),
        ("aborted", COORDINATOR, None, (checkpoint_id, "expired")),
    ]
    return first + [(len(first) + at, *rest) for at, rest in enumerate(later)]


def overtaken(recorded: tuple[int, ...] = (1, 2), aborted: bool = False) -> list[Entry]:
    """The barrier passes two events of a byte each, which `s` records so; or `s` aborts the checkpoint for it."""
    events, barrier = [Event("a", n) for n in (1, 2)], CheckpointBarrier.new_unaligned(1, 1)
    steps: list[tuple[str, str, str | None, object]] = []
    for event in events:
        steps += [(">emit", "a", None, event), ("send", "a", "a->s", event)]
    steps += [
        (">trigger", COORDINATOR, None, 1),
        ("snapshot", "a", None, (1, "d")),
        ("forward", "a", None, barrier),
        ("send", "a", "a->s", barrier),
        (">overtake", "s", "a->s", None),
        ("take", "s", "a->s", barrier),
        ("block", "s", "a->s", 1),
        ("snapshot", "s", None, (1, "d")),
        *(("capture", "s", "a->s", (1, events[n - 1])) for n in recorded),
        ("resume", "s", None, 1),
    ]
    if aborted:
        steps += [("decline", "s", None, (1, "in-flight limit")), ("aborted", COORDINATOR, None, (1, "declined"))]
    else:
        steps += [*((">ack", task, None, 1) for task in "as"), ("completed", COORDINATOR, None, 1)]
    for event in events:
        steps += [("take", "s", "a->s", event), ("deliver", "s", "a->s", event)]
    return [(at, *rest) for at, rest in enumerate(steps)]


MUTANTS: dict[str, tuple[set[str], Journal]] = {
    "sound": (set(), Journal(line(), LINE, Limits({"a->s": 1}))),
    "cut too early": ({"CUT"}, Journal(moved(line(), "snapshot", "a", "(1, 'd')", -6), LINE)),
    "cut too late": (
        {"CUT"},
        Journal(moved(moved(line(), "completed", COORDINATOR, "1", 11), "snapshot", "s", "(1, 'd')", 7), LINE),
    ),
    "capture of nothing": ({"CUT"}, Journal([*line(), (90, "capture", "s", "a->s", (1, Event("a", 3)))], LINE)),
    "swapped": ({"FIFO"}, Journal(moved(moved(line(5), "take", "s", "a4", 4), "deliver", "s", "a4", 5), LINE)),
    "snapshot twice": ({"ONCE"}, Journal(doubled(line(), "snapshot", "s"), LINE)),
    "no snapshot": ({"ONCE"}, Journal(without(line(), "snapshot", "s", "(1, 'd')"), LINE)),
    "no acknowledgement": ({"ONCE"}, Journal([e for e in line() if e[1:3] != (">ack", "s")], LINE)),
    "cause behind": ({"CUT", "FWD"}, Journal(early_cause(), Topology.parse("a->m m->s"))),
    "lost at the gate": ({"NOLOSS"}, Journal(without(line(), "deliver", "s", "a4"), LINE)),
    "in hand": (set(), Journal(without(line(), "deliver", "s", "a4"), LINE, cut_off=True)),
    "swallowed watermark": (
        {"NOLOSS"},
        Journal([e for e in line(3) if e[1] != "deliver" or e[4] != Watermark(5)], LINE),
    ),
    "watermark back": ({"WM"}, Journal([*line(), (90, "send", "a", "a->s", Watermark(4))], LINE)),
    "promised too much": ({"WM"}, Journal([(0, "send", "m", "m->s", Watermark(4))], Topology.parse("a->m m->s"))),
    "id again": ({"ID"}, Journal(restored(1), LINE)),
    "next id": (set(), Journal(restored(2), LINE)),
    "stuck": ({"LIVE"}, Journal([*line(), (90, ">stuck", "a", None, None)], LINE)),
    "never ends": ({"LIVE"}, Journal([*line(), (90, ">trigger", COORDINATOR, None, 2)], LINE)),
    "undecided": (set(), Journal([*line(), (90, ">trigger", COORDINATOR, None, 2)], LINE, cut_off=True)),
    "still blocked": ({"LIVE"}, Journal(without(line(), "resume", "s", "1"), LINE, cut_off=True)),
    "never finishes": ({"LIVE"}, Journal([*line(), (90, ">finish", "a", None, None)], LINE)),
    "too deep": (
        {"BOUND"},
        Journal([*line(), *((90, "send", "a", "a->s", Watermark(9)) for _ in "12")], LINE, Limits({"a->s": 1})),
    ),
    "as much as may be": (set(), Journal(overtaken(), LINE, Limits(max_inflight_buffer_bytes=2))),
    "recorded too much": ({"BOUND"}, Journal(overtaken(), LINE, Limits(max_inflight_buffer_bytes=1))),
    "aborted for it": (set(), Journal(overtaken(aborted=True), LINE, Limits(max_inflight_buffer_bytes=1))),
    "recorded in another order": ({"CUT"}, Journal(overtaken((2, 1)), LINE)),
    "recorded in part": ({"CUT"}, Journal(overtaken((2,)), LINE)),
    "held too many": (
        {"BOUND"},
        Journal(
            [
                (n, verb, node, channel, Event("a", n))
                for n in (1, 2)
                for verb, node, channel in (
                    (">emit", "a", None),
                    ("send", "a", "a->j"),
                    ("take", "j", "a->j"),
                    ("buffer", "j", "a->j"),
                )
            ],
            TWO,
            Limits({}, 1, 100),
            cut_off=True,
        ),
    ),
}


def edited(journal: Journal, chance: random.Random) -> Journal:
    """`journal` after one small edit at random."""
    entries = list(journal.entries)
    verbs = chance.choice(["send", "take", "deliver", "block", "resume", "snapshot", "buffer", "capture", "completed"])
    places = [i for i, e in enumerate(entries) if e[1] == verbs] or range(len(entries))
    index = chance.choice(places)
    edit = chance.choice(["drop", "double", "later", "swap"])
    if edit == "drop" and entries[index][1] != ">restore":
        del entries[index]
    elif edit == "double" and entries[index][1] != ">restore":
        entries.insert(index, entries[index])
    elif edit == "later":
        entries.insert(min(len(entries), index + chance.randint(1, 12)), entries.pop(index))
    else:
        like = [i for i in places if i > index and entries[i][3] == entries[index][3]]
        if like:
            other = like[0]
            one, two = entries[index], entries[other]
            entries[index], entries[other] = (one[0], *two[1:]), (two[0], *one[1:])
    return journal.with_entries(entries)


def random_journals(names: Iterable[str], seed: int, edits: int) -> dict[str, Journal]:
    """Sound runs of these names, and so many of each with an edit at random; by run id."""
    found: dict[str, Journal] = {}
    chance = random.Random(seed)
    for name in names:
        scenario, settings = SOUND[name]
        result = simulated(load(scenario, settings), seed)
        assert result.verdict != "broken", result.violations
        sound = Journal(result.entries, result.scenario.topology, result.limits, result._engine.cut_off)
        found[f"sound {name}"] = sound
        for number in range(edits):
            found[f"edited {name} {number}"] = edited(sound, chance)
    return found


@pytest.fixture(scope="module")
def journals() -> dict[str, Journal]:
    """Those, and what is bent on purpose."""
    return random_journals(FEW, 3, EDITS) | {f"bent {name}": journal for name, (_, journal) in MUTANTS.items()}


def rows_of_journal(run_id: str, journal: Journal, told: Verdict | None = None) -> dict[str, list[dict[str, object]]]:
    """Return the row that a sweep would have stored of the run: judged by the judge of this journal, or by another."""
    told = told or journal.judged()
    about = {"run_id": run_id, "scenario": "bent", "parameters": '{"load": 0.5}', "seed": 1, "status": "OK"}
    row = {**about, "verdict": told.verdict, "violations": len(told.violations), "cut_off": journal.cut_off}
    row["consistency"] = journal.limits.consistency
    violations = [
        {"run_id": run_id, "number": n, "invariant": v.invariant, "reason": v.reason, "at_ns": v.at_ns}
        for n, v in enumerate(told.violations)
    ]
    return {
        "runs": [{**row, "journal_entries": len(journal.entries)}],
        "violations": violations,
        "events": [{"run_id": run_id, **journal_columns(journal.entries)}],
        "channels": [{"run_id": run_id, **each} for each in channel_rows(journal.topology, journal.limits)],
    }


def stored(directory: Path, kept: Iterator[dict[str, list[dict[str, object]]]]) -> Store:
    """A sweep of these runs."""
    store = Store.create(directory, plan_with(1), keeps_events=True)
    rows: dict[str, list[dict[str, object]]] = {table: [] for table in store.tables}
    for each in kept:
        for table, found in each.items():
            rows[table] += found
    store.write_chunk(rows)
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, journals: dict[str, Journal]) -> Store:
    """All of them as one sweep. Of `bent in hand` and `bent sound` the first judge is made to say what is not so."""
    wrong = {"bent sound": journals["bent snapshot twice"].judged(), "bent no snapshot": Verdict("holds")}
    kept = (rows_of_journal(run_id, journal, wrong.get(run_id)) for run_id, journal in journals.items())
    return stored(tmp_path_factory.mktemp("verify") / "out", kept)


@pytest.fixture(scope="module")
def found(store: Store) -> dict[str, object]:
    """Return what SQL says of them."""
    return verify(store, "duckdb")


@pytest.fixture(scope="module")
def by_run(found: dict[str, object], journals: dict[str, Journal]) -> dict[str, set[str]]:
    """Return what SQL finds broken, by run."""
    return broken_by_run(found, journals)


def broken_by_run(found: dict[str, object], journals: dict[str, Journal]) -> dict[str, set[str]]:
    """The invariants that are broken, by run."""
    broken: dict[str, set[str]] = {run_id: set() for run_id in journals}
    for row in found["violations"]:
        broken[row["run_id"]].add(row["invariant"])
    return broken


def asked(verdict: Verdict) -> set[str]:
    """Return what the first judge finds broken, of what both are asked."""
    return {violation.invariant for violation in verdict.violations} & set(QUERIES)


def test_sound_runs_hold(by_run: dict[str, set[str]]) -> None:
    """A false alarm: of a run that failed and was restored, went unaligned, timed out, or ended in the middle."""
    assert {name: broken for name, broken in by_run.items() if name.startswith("sound") and broken} == {}


def test_each_invariant_is_judged_here_or_elsewhere() -> None:
    """A second judge would be silent about an invariant that is new, and agree with the first on all runs."""
    assert {*QUERIES, *ELSEWHERE} == {*INVARIANTS, *RUN_INVARIANTS}


def test_each_invariant_is_seen_to_fail(by_run: dict[str, set[str]]) -> None:
    """A query could hold because it cannot fail, or because it asks of too little."""
    assert {name: by_run[f"bent {name}"] for name in MUTANTS} == {name: broken for name, (broken, _) in MUTANTS.items()}
    assert set().union(*(broken for broken, _ in MUTANTS.values())) == set(QUERIES)


def test_the_two_judges_agree(by_run: dict[str, set[str]], journals: dict[str, Journal]) -> None:
    """One of them reads the words otherwise than the other, and a broken run passes with one of them."""
    told = {name: asked(journal.judged()) for name, journal in journals.items()}
    assert by_run == told
    assert sum(bool(broken) for name, broken in told.items() if name.startswith("edited")) >= len(FEW)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("begins", "queries"),
    [("bent", OF_QUICK), *(pytest.param(each, tuple(QUERIES), marks=pytest.mark.slow) for each in ("bent", ""))],
    ids=["bent, some queries", "bent", "all"],
)
def test_the_same_sql_gives_the_same_rows_on_both_engines(
    begins: str,
    queries: tuple[str, ...],
    spark: object,
    tmp_path: Path,
    journals: dict[str, Journal],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A verdict would hang on the size of a sweep, or on the machine."""
    monkeypatch.setattr(sim_sweep_verify_judge, "QUERIES", {name: QUERIES[name] for name in queries})
    kept = (rows_of_journal(run_id, journal) for run_id, journal in journals.items() if run_id.startswith(begins))
    store = stored(tmp_path / "out", kept)
    found = verify(store, "duckdb")
    assert verify(store, "spark", "local[2]") == {**found, "engine": "Spark"}
    assert all(found["invariants"].values())


def test_batches_of_runs_are_judged_as_all_at_once(
    store: Store, found: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run at the border of two batches would be judged by half, or by none, or twice."""
    judged: list[int] = []
    monkeypatch.setattr(sim_sweep_verify_judge, "MOST_ENTRIES", 5000)
    assert verify(store, "duckdb", tick=judged.append) == found
    assert len(judged) > 3
    assert judged[-1] == found["runs"]


@pytest.mark.slow
def test_the_two_judges_agree_on_many_runs(tmp_path: Path) -> None:
    """The same, where an edit meets what is rare."""
    journals = random_journals(SOUND, 5, MANY_EDITS)
    kept = (rows_of_journal(run_id, journal) for run_id, journal in journals.items())
    by_run = broken_by_run(verify(stored(tmp_path / "out", kept), "duckdb"), journals)
    assert by_run == {name: asked(journal.judged()) for name, journal in journals.items()}


def test_a_run_on_which_the_judges_differ_is_named(found: dict[str, object], store: Store) -> None:
    """A judge that is wrong would not be noticed: neither one that finds nothing, nor one that finds too much."""
    again = f"barrierlab rerun {store.directory} 'bent {{}}'".format
    assert sorted(found["disagreements"], key=lambda row: row["run_id"]) == [
        {"run_id": "bent no snapshot", "here": ["ONCE"], "where_it_ran": [], "reproduce": again("no snapshot")},
        {"run_id": "bent sound", "here": [], "where_it_ran": ["ONCE"], "reproduce": again("sound")},
    ]
    json.dumps(found, allow_nan=False)


def test_a_journal_that_is_not_whole_is_not_judged(tmp_path: Path) -> None:
    """A lost part of the events would look like lost events, or hide some."""
    rows = rows_of_journal("short", Journal(line(), LINE))
    rows["runs"][0]["journal_entries"] = 99
    with pytest.raises(SweepError, match=r"has \d+ of 99 events of run short: sweep it again"):
        verify(stored(tmp_path / "out", iter([rows])), "duckdb")


def test_the_command_prints_what_is_found(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    store: Store,
    found: dict[str, object],
) -> None:
    """Scripts go by the exit status, machines by the JSON, people by what they read."""
    import barrierlab.sim.sweep.commands as commands
    import barrierlab.sim.sweep.verify.judge as module

    monkeypatch.setattr(module, "verify", lambda *_: found)
    status, out, _ = barrierlab(capfd, "verify", str(store.directory), "--json")
    told = json.loads(out)
    assert told.pop("outcome")["broken"] > 0
    assert (status, told) == (1, found)
    status, out, _ = barrierlab(capfd, "verify", str(store.directory))
    total = sum(found["invariants"].values())
    assert status == 1
    assert "! CUT: checkpoint 1 on a->s: " in out
    assert "! the judges disagree on run bent sound: here holds, where it ran ONCE" in out
    assert out.splitlines()[-1] == f"{total} violations in {found['runs']} runs; the judges disagree on 2"
    sound = found | {"invariants": dict.fromkeys(QUERIES, 0), "violations": [], "disagreements": []}
    monkeypatch.setattr(module, "verify", lambda *_: sound)
    assert barrierlab(capfd, "verify", str(store.directory))[0] == 1  # broken where it ran
    held = outcome([{"status": "OK", "verdict": "holds"}] * 40, 40)
    monkeypatch.setattr(commands, "_outcome", lambda _: held)
    status, out, _ = barrierlab(capfd, "verify", str(store.directory))
    assert (status, out.splitlines()[-1]) == (0, f"0 violations in {found['runs']} runs")


# What needs no JVM.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["verify", "{}/nowhere"], "is not the directory of a sweep"),
        (["verify", "{}/without"], "has no events: sweep it with --events"),
        (["verify", "{}/without", "--master", "nowhere"], "--master is 'nowhere'; allowed"),
        (
            ["sweep", "smoke", "--out", "{}/without", "--resume", "--events", "--master", "processes"],
            "without --events",
        ),
        (
            ["sweep", "which_join", "--out", "{}/joins", "--events", "--master", "processes"],
            "are joins, which keep no events of a job",
        ),
    ],
)
def test_wrong_input_is_one_line_and_status_2(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
) -> None:
    """A sweep half with events would be judged by half; a slip would end in a stack trace."""
    from barrierlab.sim.sweep.plan import load_plan

    Store.create(tmp_path / "without", load_plan("smoke"))
    status, out, err = barrierlab(capfd, *[argument.format(tmp_path) for argument in arguments])
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert words in err


SMALL = '[[part]]\nscenario = "survive_anything"\nseeds = [1]\nset = { until_s = 0.6 }\n'


def test_events_are_stored_on_request_only(tmp_path: Path, in_process: None) -> None:
    """A sweep would be many times its size; or lack what was asked for, or mix runs with and without."""
    plan = plan_of(SMALL, "small", Path("small.toml"))
    stores = {keeps: Store.create(tmp_path / str(keeps), plan, keeps) for keeps in (False, True)}
    for store in stores.values():
        execute(plan, store, "processes[1]")
    assert list(stores[False].tables) == list(TABLES)
    assert sorted(each.name for each in stores[False].directory.iterdir() if each.is_dir()) == sorted(TABLES)
    assert contents(stores[False]) == contents(stores[True])
    (run,) = stores[True].read("runs").to_pylist()
    events = stores[True].read("events").to_pylist()
    result = simulated(load("survive_anything", {"until_s": 0.6}), seed=1)
    assert [(e["at_ns"], e["verb"], e["node"], e["channel"]) for e in events] == [e[:4] for e in result.entries]
    assert [e["number"] for e in events] == list(range(run["journal_entries"]))
    of_events = [(e["source"], e["sequence"]) for e in events if e["kind"] == "Event" and e["verb"] == "send"]
    sent = [e[4] for e in result.entries if e[1] == "send" and kind_of(e[4]) == "Event"]
    assert of_events == [(event.source, event.sequence) for event in sent]
    assert {e["channel"] for e in stores[True].read("channels").to_pylist()} == set(result.scenario.topology.channels)
    stores[True].continue_with(plan, keeps_events=True)
    for keeps, store in stores.items():
        with pytest.raises(SweepError, match=f"was begun {'with' if keeps else 'without'} --events"):
            store.continue_with(plan, keeps_events=not keeps)


def test_how_to_reproduce_a_run() -> None:
    """The line that is printed would not make the run again."""
    assert reproduce(Store("my sweep"), "5f3c09a1") == "barrierlab rerun 'my sweep' 5f3c09a1"
    analysis: Any = {
        "sweep": {"parts": [{"name": "p", "seeds": [7]}]},
        "cells": [
            {"part": "p", "scenario": "a file of one's own", "parameters": {}},
            {"part": "p", "scenario": "diamond", "parameters": {"a b": "x y", "flag": True, "dist": {"cv": 0.5}}},
        ],
    }
    assert example_of(analysis) == """diamond --set 'a b=x y' --set flag=true --set 'dist={ "cv" = 0.5 }' --seed 7"""
