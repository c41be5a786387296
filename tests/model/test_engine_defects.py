"""The second catalogue: each scheme is broken as it was reported, and holds as it was repaired, in the same scope."""

from __future__ import annotations

import re
from typing import Any

import pytest

from barrierlab.model.checkpoint.check import WorldScope, properties
from barrierlab.model.checkpoint.external import capabilities_of, parts_of
from barrierlab.model.checkpoint.scope import Bounds
from barrierlab.model.checkpoint.scripted import replay
from barrierlab.model.checkpoint.trace import judged
from barrierlab.model.checkpoint.world import World
from barrierlab.model.defects.catalogue import CAUGHT, MISSED, UNSOUND, catalogue
from barrierlab.model.defects.engines import channels, coordination, gates, recoveries
from barrierlab.model.defects.engines.aligners import Alternating, ObsoleteBarrier, OneSide, Tuples
from barrierlab.model.defects.engines.catalogue import SOUND, TRACES, reports
from barrierlab.model.defects.engines.channels import wakeup
from barrierlab.model.defects.engines.kind import STANDINGS, Scheme, SchemeDefect, entry
from barrierlab.model.defects.kinds.barrier import BarrierDefect
from barrierlab.model.explore.checker import Always, Quiescent, explore
from barrierlab.model.spec.invariants import INVARIANTS, RUN_INVARIANTS
from tests.kept import keep

ALL = {each.id: each for each in reports()}
WORLDS = {name: each.defect for name, each in ALL.items() if isinstance(each.defect, BarrierDefect)}
SCHEMES: dict[str, SchemeDefect[Any]] = {
    name: each.defect for name, each in ALL.items() if isinstance(each.defect, SchemeDefect)
}
ROWS = [*range(1, 19), *range(20, 30)]
"""Of the list of reports that the catalogue was written from."""


@pytest.mark.parametrize("name", ALL)
def test_a_scheme_is_broken_as_reported_and_its_run_is_kept(name: str, rewrite: bool) -> None:
    """A reader would hear of a failure that does not come, or comes otherwise."""
    defect = ALL[name].defect
    assert defect is not None
    found = defect.as_documented()
    assert found.broken == {defect.breaks}
    keep(TRACES / f"{name}.trace", found.trace, rewrite)


@pytest.mark.parametrize("name", ALL)
def test_a_scheme_holds_as_repaired_in_the_same_scope(name: str) -> None:
    """The failure would be one of the scope, and not of what was reported."""
    defect = ALL[name].defect
    assert defect is not None
    found = defect.sound()
    assert found.broken == frozenset(), found.trace
    assert found.states > 5


@pytest.mark.parametrize("name", WORLDS)
def test_the_invariants_of_all_dataflows_find_it_again_in_the_kept_run(name: str) -> None:
    """The kept run would be of other machines, or the repair be one of another schedule."""
    text = (TRACES / f"{name}.trace").read_text(encoding="utf-8")
    assert replay(text, WORLDS[name].components, name) == text
    assert WORLDS[name].breaks in {violation.invariant for violation in judged(text).violations}
    assert WORLDS[name].sound_on_the_same_run() == frozenset()


@pytest.mark.parametrize("name", SCHEMES)
def test_every_move_of_a_scheme_is_made(name: str) -> None:
    """A guard that never holds would make a scheme sound for want of anything that happens in it."""
    made: set[str] = set()
    rules: set[str] = set()
    for repaired in (False, True):
        scheme = SCHEMES[name].scheme(repaired)
        rules |= scheme.rules.keys()
        waiting, seen = [scheme.begin], {scheme.begin}
        while waiting:
            state = waiting.pop()
            for move in scheme.moves(state):
                made.add(move)
                reached = scheme.after(state, move)
                if reached not in seen:
                    seen.add(reached)
                    waiting.append(reached)
    assert made == rules


@pytest.mark.parametrize("name", SCHEMES)
def test_a_fault_need_not_happen(name: str) -> None:
    """A name that is no move would leave a fault out of the scheme, and nobody would notice."""
    schemes = [SCHEMES[name].scheme(repaired) for repaired in (False, True)]
    assert {fault for scheme in schemes for fault in scheme.faults} <= {
        move for scheme in schemes for move in scheme.rules
    }


def test_every_row_has_an_entry_and_every_entry_its_report() -> None:
    """A report would be forgotten, or an entry say of an engine what nobody can look up."""
    assert sorted({each.row for each in ALL.values()}) == ROWS
    assert len(ALL) == len(reports())
    shown = [name for module in (gates, channels, coordination, recoveries) for name in module.ENTRIES]
    assert sorted(shown) == sorted(ALL)
    assert not ALL.keys() & {each.id for each in catalogue()}
    for each in ALL.values():
        assert re.fullmatch(r"[A-Z]+-\d+", each.id)
        assert each.standing in STANDINGS
        assert any(re.search(rf"\b{each.id.rpartition('-')[2]}$", report) for report in each.reports), each.id
        assert each.defect is not None
        assert each.defect.breaks in {*INVARIANTS, *RUN_INVARIANTS, "FRONTIER"}
        assert each.page.count(each.wrong) == each.page.count(each.repair) == 1


def test_what_is_no_defect_of_an_engine_is_marked() -> None:
    """A remark in a review, a race that cannot come, or a documented limit would be reported as a bug."""
    marked = {each.row: each.standing for each in ALL.values() if each.standing != "repaired"}
    expected = "7 latent, 11 open pull request, 17 review remark, 18 open, 21 documented, 23 latent, 28 open"
    assert ", ".join(f"{row} {standing}" for row, standing in marked.items()) == expected


def test_a_trace_stands_beside_its_entry() -> None:
    """A run would be kept that nothing makes any more."""
    assert {path.stem for path in TRACES.glob("*")} == set(ALL)


def test_the_race_of_the_flag_does_not_come_with_one_barrier_at_a_time() -> None:
    """The entry would call broken what Flink says is safe, and is."""
    assert wakeup(False, concurrent=1).explored().verdict == "holds"
    assert wakeup(False, concurrent=2).explored().verdict == "broken"


@pytest.mark.slow
def test_an_obsolete_barrier_ends_the_recording_in_a_dataflow_too() -> None:
    """The scheme would leave out what keeps a dataflow from it. (Checkpoint 1 is aborted once it is triggered.)"""
    bounds = Bounds("a->join b->join join->s", mode="unaligned", events=1, checkpoints=2, aborts_one=(1, 0))
    scope = WorldScope("a join", bounds)
    (violation,) = scope.check(parts_of(ObsoleteBarrier, "unaligned"), None).violations
    assert (violation.invariant, violation.steps) == ("CUT", 23)
    assert " lost: sent before the cut, taken after in checkpoint 2" in violation.reason
    assert scope.check(parts_of(Alternating, "unaligned"), None).verdict == "holds"


# The judge of schemes itself.


def _defect(**asked: Any) -> SchemeDefect[int]:
    rules = {"up": (lambda s: s < 2, lambda s: s + 1), "down": (lambda s: s == 2, lambda s: 1)}
    return SchemeDefect("X-1", "safety", "LIVE", "Goes round.", lambda repaired: Scheme(0, rules, **asked))


@pytest.mark.parametrize(
    ("asked", "broken", "steps"),
    [
        ({}, set(), 0),
        ({"left": lambda s: "LIVE: it does not end"}, {"LIVE"}, 1),  # at neither state of the circle
        ({"left": lambda s: "LIVE: it is at 1" if s == 1 else None}, set(), 0),  # it comes to 2 again and again
        ({"left": lambda s: "LIVE: it is at 1" if s == 1 else None, "faults": ("up",)}, {"LIVE"}, 1),  # it may stay
        ({"wrong": lambda s: "CUT: it is 2" if s == 2 else None}, {"CUT"}, 2),
    ],
)
def test_a_scheme_that_goes_round_for_ever_is_asked_what_is_left(
    asked: dict[str, Any], broken: set[str], steps: int
) -> None:
    """A live lock would hold, or one that only passes a bad state be called one."""
    found = _defect(**asked).as_documented()
    assert (found.broken, found.steps) == (broken, steps)


def test_what_is_missed_or_not_repaired_is_told() -> None:
    """A row would count as caught that shows nothing, or whose repair is none."""

    def status(defect: SchemeDefect[int]) -> str:
        return entry(99, "a_row", "an engine", ["https://example.org/1"], "Nothing.", "None.", defect).run()[0]

    def left(state: int) -> str:
        return "LIVE: it does not end"

    def scheme(repaired: bool) -> Scheme[int]:
        return Scheme(0, {}) if repaired else Scheme(0, {}, left=left)

    assert status(_defect()) == MISSED
    assert status(_defect(left=left)) == UNSOUND
    assert status(SchemeDefect("X-1", "safety", "LIVE", "Rests.", scheme)) == CAUGHT


# Sound schemes.


def test_the_sound_schemes_declare_what_they_are_asked() -> None:
    """The page would say that a scheme holds in a mode that it cannot go."""
    for kind, modes in SOUND.values():
        assert capabilities_of(kind).unaligned == ("unaligned" in modes)


AT_LEAST_ONCE = [
    Bounds("a->s b->s", events=2),
    Bounds("a->s b->s", events=1, closes=True),
    Bounds("a->s b->s c->s", events=1),
    Bounds("a->join b->join join->s", events=2),
    pytest.param(Bounds("a->l a->r l->join r->join join->s", events=1), marks=pytest.mark.slow),
]


def _lost(reason: str | None) -> str | None:
    """Return what of the reasons against a cut is more than that something comes twice."""
    parts = [part for part in (reason or "").split("; ") if part]
    more = [part for part in parts if not part.startswith("FWD: ") and " orphaned: " not in part]
    return more[0] if more else None


@pytest.mark.parametrize("bounds", AT_LEAST_ONCE, ids=lambda bounds: f"{bounds.topology} {bounds.closes}")
def test_what_does_not_block_loses_nothing(bounds: Bounds) -> None:
    """Storm's tuples would be called broken though they do what Storm promises: at least once.

    An event that is in the receiver's state and not in the sender's is sent again; what is lost, or waits for ever,
    would be more than that. (With one checkpoint, all that is wrong with it is reported at once.)
    """
    verdicts = []
    for kind in (Tuples, OneSide):
        world = World(bounds, parts_of(kind, "aligned"))
        exact = explore(world, properties(world))
        asked = [
            Always("nothing is lost", lambda state, world=world: _lost(world.broken(state))),
            Quiescent("all ends", lambda state, world=world: _lost(world.liveness_violation(state))),
        ]
        verdicts.append((exact.verdict, explore(world, asked).verdict))
    assert verdicts == [("broken", "holds"), ("broken", "broken")]
