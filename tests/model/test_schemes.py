"""Aligners of every kind come to the same verdict reduced and whole: no shortcut was argued from the code of `impl`."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from barrierlab.impl.messages import CheckpointBarrier
from barrierlab.model.checkpoint.check import WorldScope
from barrierlab.model.checkpoint.components import SOUND as SOUND_PARTS
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.external import ExternalError, parts_of
from barrierlab.model.checkpoint.partial_order import Ample, can_be_planned
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.task_transitions import LocalStep, TaskTransitions
from barrierlab.model.checkpoint.world import World, _differ
from barrierlab.model.explore.checker import explore
from tests.model.schemes import CHOICES, Scheme, class_of
from tests.model.test_reduction import reduced, whole

JOIN = "a->join b->join"
FAULTS: dict[str, dict[str, Any]] = {
    "abort": {"cancels": 1},
    "end": {"closes": True},
    "crash": {"crashes": 1, "guarantee": "exactly_once"},
    "timeout": {"expiries": 1},
}
EXTENTS: dict[str, dict[str, Any]] = {"an event": {"events": 1}, "two checkpoints": {"events": 0, "checkpoints": 2}}

SOUND = {
    "it leaves what waits in its channel": Scheme(),
    "it refuses what waits": Scheme(waits="refused"),
    "it holds what waits": Scheme(waits="buffered"),
    "it drains the highest input first": Scheme(waits="buffered", drains="highest"),
    "it counts barriers": Scheme(counts=True),
    "it has deadlines": Scheme(deadline="declines"),
}
ABORTS = {
    "it forgets an abort that comes first": Scheme(remembers="aligned"),
    "it forgets every id": Scheme(remembers="none"),
    "it forgets every id, and holds": Scheme(remembers="none", waits="buffered"),
    "it obeys only while it aligns": Scheme(obeys="aligning"),
    "it obeys only while it is idle": Scheme(obeys="idle"),
    "it never obeys": Scheme(obeys="never"),
}
ENDS = {
    "an end counts for nothing": Scheme(counts_ends=False),
    "an end completes nothing": Scheme(looks_at_ends=False),
    "it counts barriers, and no ends": Scheme(counts=True, counts_ends=False, waits="buffered"),
}
CUTS = {
    "the first barrier is enough": Scheme(snapshots="first"),
    "it completes what it has not taken": Scheme(completes="early", snapshots="later"),
    "it compares no ids": Scheme(compares_ids=False, waits="buffered"),
}
LATER = {
    "the snapshot comes later": Scheme(snapshots="later"),
    "the barrier goes on later": Scheme(forwards="later"),
    "it goes on later": Scheme(resumes="later"),
}
"""Sound, as no input is read in between; but the reduction is not for all of them."""
DEADLINES = {
    "it aborts silently": Scheme(deadline="silently"),
    "its deadline outlives the checkpoint": Scheme(deadline="kept"),
    "nothing comes of its deadline": Scheme(deadline="nothing"),
}
TURNS = {"it always has something to drain": Scheme(goes_round=True)}
SCHEMES = SOUND | ABORTS | ENDS | CUTS | LATER | DEADLINES | TURNS

BROKEN = {
    *((name, "abort") for name in ("it forgets every id", "it forgets every id, and holds")),
    *((name, "end") for name in ENDS),
    *((name, fault) for name in CUTS for fault in ("abort", "end", "crash") if name != "it compares no ids"),
    ("it aborts silently", "timeout"),
}
"""The choices that are broken with one event and one checkpoint."""

RELEVANT = [
    (name, fault)
    for name, scheme in SCHEMES.items()
    for fault in FAULTS
    if scheme.deadline != "none" or fault != "timeout"
]


@cache
def components(scheme: Scheme) -> Components:
    """The sound components, with such an aligner."""
    return parts_of(class_of(scheme), "aligned")


def verdicts(scheme: Scheme, fault: str, extent: str) -> tuple[str, str]:
    """Of the reduced exploration, `"void"` if that was not for such an aligner; and of the whole one."""
    bounds = Bounds(JOIN, **EXTENTS[extent], **FAULTS[fault])
    return reduced(bounds, components(scheme))[0], whole(bounds, components(scheme))[1].verdict


QUICK = {each for each in BROKEN if each[0] not in CUTS}
QUICK |= BROKEN & set(zip(CUTS, itertools.cycle(("abort", "end", "crash"))))
QUICK |= {*((name, "abort") for name in ABORTS), *((name, "timeout") for name in DEADLINES)}
QUICK |= set(zip(LATER, ("abort", "end", "crash"), strict=True))
QUICK |= {("it leaves what waits in its channel", fault) for fault in FAULTS}


@pytest.mark.parametrize(
    ("name", "fault"), [pytest.param(*each, marks=[pytest.mark.slow] * (each not in QUICK)) for each in RELEVANT]
)
def test_a_scheme_has_one_verdict(name: str, fault: str) -> None:
    """An aligner that is broken would pass, as its runs are put off that break it; or a sound one would not."""
    fast, slow = verdicts(SCHEMES[name], fault, "an event")
    assert slow == ("broken" if (name, fault) in BROKEN else "holds")
    assert fast == slow or (fast == "void" and name not in SOUND)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fault"), RELEVANT)
def test_a_scheme_has_one_verdict_with_two_checkpoints(name: str, fault: str) -> None:
    """As above, where one checkpoint comes behind another."""
    fast, slow = verdicts(SCHEMES[name], fault, "two checkpoints")
    assert fast == slow or (fast == "void" and name not in SOUND)


def test_there_are_enough_of_them() -> None:
    """A test of few schemes, or of sound ones, would let any reduction pass."""
    assert len(set(SCHEMES.values())) == len(SCHEMES) == 25
    assert len(BROKEN) == 12


@pytest.mark.slow
@settings(max_examples=40, derandomize=True)
@given(st.data())
def test_any_scheme_has_one_verdict(data: st.DataObject) -> None:
    """A kind of aligner that nobody has thought of would pass for another reason than that it is sound."""
    names = data.draw(st.lists(st.sampled_from(sorted(CHOICES)), max_size=4, unique=True))
    scheme = Scheme(**{name: data.draw(st.sampled_from(CHOICES[name])) for name in names})  # type: ignore[arg-type]
    fault = data.draw(st.sampled_from(sorted(FAULTS)))
    try:
        components(scheme)
    except ExternalError:
        assume(False)
    fast, slow = verdicts(scheme, fault, data.draw(st.sampled_from(sorted(EXTENTS))))
    assert fast in (slow, "void"), scheme


# Each property of a system that a shortcut rests on is looked at: without that look a verdict is wrong.

LOOKS: dict[str, tuple[Scheme, str]] = {
    "ignores_always": (ABORTS["it forgets every id"], "abort"),
    "declines_what_is_late": (DEADLINES["it aborts silently"], "timeout"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_that_is_left_out_is_missed(look: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be there for nothing, and could be taken out."""
    monkeypatch.setattr(TaskTransitions, look, lambda self, *_: True)
    scheme, fault = LOOKS[look]
    assert verdicts(scheme, fault, "an event") == ("holds", "broken")


def test_an_aligner_that_goes_round_is_not_reduced() -> None:
    """Anything that others may do would be put off for ever."""
    assert reduced(Bounds(JOIN, events=1), components(TURNS["it always has something to drain"]))[0] == "void"


LATE = ("the snapshot comes later", "it completes what it has not taken", "it goes on later")


@pytest.mark.parametrize("name", [*LATE, *SOUND])
def test_a_part_that_is_told_before_it_is_whole_is_noticed(name: str) -> None:
    """It would make a difference when the coordinator hears of it, and it would hear of it at one time only."""
    world = World(Bounds(JOIN, events=0), components(SCHEMES[name]))
    explore(world)
    assert [table.parts_are_late for table in world.tables] == [False, name in LATE, False]
    assert Ample(world).reduction_unsound == (name in LATE)


class ForwardsManyTimes(class_of(Scheme())):  # type: ignore[misc]
    """One barrier goes on as ten."""

    def step(self, what: str, barrier: CheckpointBarrier) -> bool:
        return all(super(ForwardsManyTimes, self).step(what, barrier) for _ in range(10 if what == "forward" else 1))


@pytest.mark.parametrize(("kind", "reduction_unsound"), [(class_of(Scheme()), False), (ForwardsManyTimes, True)])
def test_an_aligner_that_sends_more_than_there_is_room_for_is_not_reduced(kind: type, reduction_unsound: bool) -> None:
    """Anything that a task may do next would depend on another that takes from its output, and nobody would look."""
    world = World(Bounds("a->join b->join join->s", events=1, capacity=5), parts_of(kind, "aligned"))
    ample = Ample(world)
    explore(world, ample=ample.moves, acyclic=True)
    assert (world.was_full, ample.reduction_unsound) == (reduction_unsound, reduction_unsound)


def test_a_deadline_in_front_of_another_task_is_planned_for_the_machines_of_the_package_alone() -> None:
    """A cancel marker that waits behind an older barrier could spoil that, and no plan would show it."""
    external = components(Scheme(deadline="declines"))
    in_line = Bounds("a->m b->m m->join a->join", checkpoints=2, expiries=1)
    assert can_be_planned(in_line, SOUND_PARTS)
    assert not can_be_planned(in_line, external)
    for other in (replace(in_line, checkpoints=1), replace(in_line, expiries=0), replace(in_line, topology=JOIN)):
        assert can_be_planned(other, external)


def test_a_late_message_that_breaks_something_is_another_than_one_in_time() -> None:
    """Anything that is broken only when it is late would never be done, as it leads to the same."""
    in_time = LocalStep(1, True, 0, (), ())
    assert _differ(in_time, in_time._replace(broken=(("FIFO", "why"),)))
    assert not _differ(in_time, in_time)


@pytest.mark.parametrize(("topology", "steps"), [("a->s b->s", 14), ("a->join b->join join->s", 17)])
def test_an_aligner_without_a_tombstone_is_broken_by_whole_dataflows(topology: str, steps: int) -> None:
    """A task would wait for ever for what was aborted before its barrier came, and only tables would show it."""
    outcome = WorldScope("", Bounds(topology, events=1, cancels=1)).check(components(Scheme(remembers="none")), None)
    (violation,) = outcome.violations
    assert (outcome.verdict, violation.invariant, violation.steps) == ("broken", "LIVE", steps)
