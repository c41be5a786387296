"""Scopes in Spin: the rules stated a second time, in Promela, have as many states, the same verdict, runs as long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from barrierlab.model.checkpoint.check import properties
from barrierlab.model.checkpoint.components import SOUND, Components
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.world import Move, World, WorldState
from barrierlab.model.defects.catalogue import catalogue
from barrierlab.model.defects.kinds.barrier import BarrierDefect, broken_by
from barrierlab.model.explore.checker import Exploration, explore
from barrierlab.model.render.promela import promela, refusal
from barrierlab.sim.cli.export import exportable
from tests.model.promela_planted import FORGETS_WHAT_IT_ABORTED, PLANTED, Edits, planted
from tests.model.spun import Spun, needs_spin, spun

PAIR, JOIN, ONE = "a->s b->s", "a->join b->join join->s", "events 1, checkpoints 1"
CERTIFIED = {
    f"aligned: {JOIN}; {ONE}; no fault": 1297,
    f"aligned: {JOIN}; {ONE}, capacity 1; no fault": 2145,
    f"aligned: {JOIN}; events 2, checkpoints 1; no fault": 13480,
    f"aligned: {JOIN}; events 1, checkpoints 2; no fault": 29759,
    f"aligned: {JOIN}; max buffer per input 1, events 2, checkpoints 1; no fault": 12436,
    f"aligned: {PAIR}; events 2, checkpoints 1, capacity 1; no fault": 4397,
    f"aligned: a->s b->s c->s; {ONE}; no fault": 8072,
    f"aligned: a->l a->r l->join r->join join->s; {ONE}; no fault": 1505,
    f"aligned: a->s a->t b->s b->t; {ONE}; no fault": 4679,
    f"aligned: {PAIR}; {ONE}; abort": 9589,
    "aligned: a->s; events 2, checkpoints 2; abort": 5694,
    f"unaligned: {PAIR}; {ONE}; abort": 9589,
    "unaligned: a->s; events 2, checkpoints 2; abort": 5694,
    f"unaligned: {JOIN}; {ONE}; no fault": 3339,
    f"unaligned: {JOIN}; {ONE}, capacity 1; no fault": 4298,
    f"unaligned: {JOIN}; events 2, checkpoints 1; no fault": 56464,
    f"unaligned: a->l a->r l->join r->join join->s; {ONE}; no fault": 7294,
    f"unaligned: {PAIR}; events 2, checkpoints 1, capacity 1; no fault": 5736,
    "aligned: a->s; events 2, checkpoints 2; crash, at least once": 1524,
    f"aligned: {PAIR}; events 1, checkpoints 2; crash, at least once": 15217,
    "unaligned: a->m m->s; events 1, checkpoints 2; crash, at least once": 2457,
    "unaligned: a->m a->s m->s; events 1, checkpoints 2; crash, at least once": 8284,
}
"""By scope: how many states there are, without reduction."""
COMBINED = {
    "an unaligned join, and a crash": (Bounds(JOIN, mode="unaligned", events=1, crashes=1), 21160),
    "little room, and a crash": (Bounds("a->m m->s", mode="unaligned", events=2, capacity=1, crashes=1), 4030),
    "an abort and a crash": (Bounds("a->m m->s", mode="unaligned", events=1, crashes=1, cancels=1), 13872),
    "two crashes": (Bounds("a->s", events=1, crashes=2), 641),
}
"""Bounds that no scope of `check` has, as sinks write nothing to the external system."""


def _defect(entry: str) -> BarrierDefect:
    its = [each.defect for each in catalogue() if each.id == entry]
    return next(defect for defect in its if isinstance(defect, BarrierDefect))


def _explored(world: World) -> Exploration[WorldState, Move]:
    return explore(world, properties(world))


def test_there_is_something_to_certify() -> None:
    """A dozen scopes would be a dozen trifles."""
    assert len(CERTIFIED) >= 12
    assert min(CERTIFIED.values()) >= 500
    assert sum(name.endswith("abort") for name in CERTIFIED) >= 3
    assert sum("crash" in name for name in CERTIFIED) >= 2
    assert sum(name.startswith("unaligned") for name in CERTIFIED) >= 2


@pytest.mark.slow
@needs_spin
@pytest.mark.parametrize("name", CERTIFIED)
def test_spin_agrees(name: str, tmp_path: Path) -> None:
    """The explorer, or the machines, would leave something out, and nobody else would ever have looked."""
    _is_counted_alike(exportable()[name], CERTIFIED[name], tmp_path)


@pytest.mark.slow
@needs_spin
@pytest.mark.parametrize("name", COMBINED)
def test_spin_agrees_where_faults_meet(name: str, tmp_path: Path) -> None:
    """The same where a crash meets what a barrier has passed, an abort, or another crash."""
    _is_counted_alike(*COMBINED[name], tmp_path)


def _is_counted_alike(bounds: Bounds, states: int, folder: Path) -> None:
    found = _explored(World(bounds))
    assert (found.counts.states, found.verdict) == (states, "holds")
    assert spun(promela(bounds, "whole"), folder) == Spun(states, "", ())


@pytest.mark.slow
@needs_spin
@pytest.mark.parametrize("entry", PLANTED)
def test_a_defect_is_found_there_too(entry: str, tmp_path: Path) -> None:
    """Two checkers that call everything sound agree, too."""
    defect = _defect(entry)
    bounds = replace(defect.bounds, guarantee="")  # the model's sinks write nothing to the external system
    _is_found_there_too(bounds, defect.components, defect.breaks, PLANTED[entry], tmp_path)


@pytest.mark.slow
@needs_spin
def test_an_abort_that_is_forgotten_is_found_there_too(tmp_path: Path) -> None:
    """None of those would be of a checkpoint that is aborted."""
    forgets = _defect("A-09")
    aborted = replace(forgets.bounds, expiries=0, cancels=1)
    _is_found_there_too(aborted, forgets.components, "LIVE", FORGETS_WHAT_IT_ABORTED, tmp_path)


def _is_found_there_too(bounds: Bounds, components: Components, breaks: str, edits: Edits, folder: Path) -> None:
    """Sound, both hold with as many states; planted, both break the same, and Spin's run is one of the world's."""
    sound = promela(bounds, "sound")
    (folder / "sound").mkdir()
    found = _explored(World(bounds, SOUND))
    assert (found.verdict, spun(sound, folder / "sound")) == ("holds", Spun(found.counts.states, "", ()))
    world = World(bounds, components)
    violation = _explored(world).violations[0]
    there = spun(planted(sound, edits), folder)
    assert breaks in broken_by(violation.reason)
    assert (there.broken, len(there.run)) == (breaks, len(violation.moves)), (there, violation.moves)
    state = world.start()
    for text in there.run:
        state = world.after(state, world.move(text))
    reason = world.broken(state) or world.liveness_violation(state)
    assert breaks in broken_by(reason or "")


def test_a_model_is_the_same_text_each_time() -> None:
    """Whoever keeps one could not tell what has changed; and the bounds would be another scope's."""
    bounds = exportable()["aligned: a->s; events 1, checkpoints 1; abort"]
    model = promela(bounds, "title")
    assert model == promela(bounds, "title")
    head, _, rest = model.partition("/* The rules of docs/protocol.md")
    assert head.startswith("/* title\n *\n *   spin -o2 -a FILE && cc -w ")
    values = dict(line.split(" ", 2)[1:] for line in head.splitlines() if line.startswith("#define"))
    bounds_of = {"TASKS": "2", "CHANNELS": "1", "CHECKPOINTS": "1", "CRASHES": "0", "IDS": "1", "EVENTS": "1"}
    assert values.items() >= (bounds_of | {"CANCELS": "1", "CAPACITY": "3", "UNALIGNED": "0"}).items()
    processes = rest[rest.index("active proctype") :]
    assert processes.splitlines()[:5] == [
        "active proctype coordinator() {",
        "end:	do",
        r'	:: d_step { CAN_TRIGGER -> printf("trigger %d\n", triggered + 1); trigger() }',
        r'	:: d_step { CAN_CANCEL(1) -> printf("cancel 1\n"); cancel(1) }',
        r'	:: d_step { CAN_HEAR(T_a, ACK) -> reports[T_a]?h, n; printf("ack a %d\n", n); hear_ack(T_a) }',
    ]
    assert [line for line in processes.splitlines() if line.startswith("active")] == [
        *("active proctype coordinator() {", "active proctype task_a() {", "active proctype task_s() {"),
        "active proctype at_rest() {",
    ]


@pytest.mark.parametrize("name", [*PLANTED, ""])
def test_each_edit_has_its_place(name: str) -> None:
    """A planted defect would be none, and in the quick tests nobody would notice."""
    edits = PLANTED.get(name, FORGETS_WHAT_IT_ABORTED)
    sound = promela(Bounds(JOIN, mode="unaligned", cancels=1, crashes=1), "")
    assert planted(sound, edits) != sound


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        (
            Bounds("a->s", mode="aligned_with_timeout"),
            "its protocol is aligned_with_timeout; allowed: aligned, unaligned",
        ),
        (Bounds("a->s", expiries=1), "a deadline passes"),
        (Bounds("a->s", closes=True), "a source ends early"),
        (
            Bounds("a->s", crashes=1, guarantee="exactly_once"),
            "its sinks are exactly_once; allowed: at_least_once",
        ),
        (Bounds("a->s", parallelism=(("a", 2),)), "an operator has several tasks"),
        (Bounds("a->s b->s", events=50), "it has 100 events; at most 99 can be told apart"),
        (Bounds("a->s", checkpoints=50), "it has 50 checkpoints; at most 49 can be told apart"),
        (Bounds(" ".join(f"a{n}->s" for n in range(40))), "it has 324 queues; at most 255 can be told apart"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_not_stated_is_refused(bounds: Bounds, reason: str) -> None:
    """The model would be of less than the scope, and its count would be taken for the scope's."""
    assert refusal(bounds) == reason


def test_every_field_of_a_scope_is_stated_or_refused() -> None:
    """A new kind of fault would silently be left out of the model."""
    from barrierlab.model.render.promela import _NOT_STATED

    stated = {"topology", "mode", "events", "checkpoints", "capacity", "cancels", "max_buffer_per_input"}
    stated |= {"crashes", "checkpoints_again", "guarantee"}
    idle = {"may_expire", "first_timestamp_ms"}  # of no meaning without what is refused
    assert stated | idle | set(_NOT_STATED) == set(Bounds.__dataclass_fields__)


def test_the_page_says_what_agrees() -> None:
    """A count would have changed, and the page would still claim the old one."""
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert [(row[0].strip("`"), row[1]) for row in rows if row[0].startswith(("`aligned", "`unaligned"))] == [
        (name, f"{states:,}") for name, states in CERTIFIED.items()
    ]
    assert [row[0] for row in rows if row[0][1:2] == "-" and row[0][0] in "APU"] == sorted(PLANTED)


@pytest.mark.parametrize("entry", PLANTED)
def test_the_page_says_how_long_a_run_is(entry: str) -> None:
    """The same of the lengths."""
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    defect = _defect(entry)
    assert f"\n| {entry} | {defect.breaks} | {defect.as_documented().steps} |\n" in page
