"""Barriers that are counted: what they promise holds, what they do not promise is seen to fail, and nothing more."""

from __future__ import annotations

from typing import Any

import pytest

from barrierlab.impl.checkpoint.tracked import BarrierTracker
from barrierlab.model.checkpoint.check import WorldScope
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.checkpoint.monitor import TaskMonitor
from barrierlab.model.checkpoint.protocols import PROTOCOLS
from barrierlab.model.checkpoint.scope import Bounds, BoundsError
from barrierlab.model.checkpoint.trace import judged
from barrierlab.model.checkpoint.world import World, WorldState
from barrierlab.model.explore.checker import Always, explore
from barrierlab.sim import load, run
from barrierlab.sim.scenario.file import ScenarioError

CRASH: dict[str, Any] = {"events": 1, "crashes": 1, "checkpoints_again": 0, "guarantee": "at_least_once"}


class SnapshotsAtTheFirst(BarrierTracker):
    """Takes the first barrier of a checkpoint for all of them."""

    __slots__ = ()

    def on_barrier(self, input_id: int, barrier: Any, now_ns: int) -> Any:
        action = super().on_barrier(input_id, barrier, now_ns)
        return self.all_in(now_ns) if action.name == "BLOCKED" else action


def test_it_counts_and_never_holds_an_event():
    """An event behind a barrier waited for a slow input, which is what this protocol is chosen against."""
    assert not PROTOCOLS["tracked"].settings.blocks
    bounds = Bounds("a->s b->s", mode="tracked", events=2)
    outcome = WorldScope("two sources", bounds).check(Components(), None)
    assert outcome.verdict == "holds"
    assert (outcome.premises["buffered"], outcome.premises["CUT"] > 0) == (0, True)


def test_of_the_cut_it_keeps_the_half_that_nothing_is_lost():
    """Judged by the whole equation the same machine is broken, by an orphan; a lost event is one under either."""
    tracker = Components(aligner=lambda config, unaligned, is_sink: BarrierTracker(config))
    first = Components(aligner=lambda config, unaligned, is_sink: SnapshotsAtTheFirst(config))
    found = {}
    for name, components in (("sound", tracker), ("first", first)):
        for mode in ("aligned", "tracked"):
            outcome = WorldScope(name, Bounds("a->s b->s", mode=mode, events=1)).check(components, None)
            found[name, mode] = [(each.invariant, each.reason) for each in outcome.violations]
    assert found["sound", "tracked"] == []
    [(invariant, reason)] = found["sound", "aligned"]
    assert (invariant, "orphaned: taken before the cut" in reason) == ("CUT", True)
    [(invariant, reason)] = found["first", "tracked"]
    assert (invariant, "lost: sent before the cut" in reason) == ("CUT", True)


@pytest.mark.parametrize("topology", ["a->s b->s", "a->join b->join join->s"])
def test_a_journal_is_judged_by_what_its_checkpoints_promise(topology):
    """The same run was called broken of one whose head says that it is tracked, or sound of one that says aligned."""
    tracker = Components(aligner=lambda config, unaligned, is_sink: BarrierTracker(config))
    [violation] = WorldScope(topology, Bounds(topology, events=1)).check(tracker, None).violations
    as_aligned, as_tracked = violation.trace, violation.trace.replace("mode: aligned", "mode: tracked")
    assert as_aligned != as_tracked
    assert {each.invariant for each in judged(as_aligned).violations} >= {violation.invariant}
    assert judged(as_tracked).violations == ()


def test_what_is_sent_behind_a_barrier_that_its_cause_came_ahead_of_is_lost_to_it():
    """FWD and CUT: of both halves the one that is kept would be aborted as well."""
    sent_late = LATE.format("tracked")
    assert {each.invariant for each in judged(sent_late).violations} == {"CUT", "FWD"}
    in_time = sent_late.replace(f"{BARRIER}{EVENT}", f"{EVENT}{BARRIER}").replace(TAKES, f"{TAKES_EVENT}{TAKES}")
    assert judged(in_time).violations == ()


BARRIER, EVENT = "    m send m->s barrier 1\n", "    m send m->s a1\n"
TAKES = "> deliver m->s\n    s take m->s barrier 1\n"
TAKES_EVENT = "> deliver m->s\n    s take m->s a1\n    s deliver m->s a1\n"
LATE = f"""topology: a->m m->s
mode: {{}}
cut_off: yes

> trigger 1
> emit a a1
    a send a->m a1
> inject a 1
    a snapshot 1 00
    a forward barrier 1
    a complete 1
    a send a->m barrier 1
> ack a 1
> deliver a->m
    m take a->m a1
    m deliver a->m a1
> deliver a->m
    m take a->m barrier 1
    m block a->m 1
    m snapshot 1 00
    m forward barrier 1
    m complete 1
    m resume 1
{BARRIER}{EVENT}> ack m 1
{TAKES}    s block m->s 1
    s snapshot 1 00
    s forward barrier 1
    s complete 1
    s resume 1
> ack s 1
> publish 1
    coordinator completed 1
"""


def test_the_shortest_run_in_which_one_event_counts_twice():
    """This is what at least once means, and nobody could see it."""
    bounds = Bounds("a->s b->s", mode="tracked", **CRASH)
    world = World(bounds)
    at, place = world.topology.tasks.index("s"), TaskMonitor.KEPT.index("state")

    def counts_twice(state: WorldState) -> str | None:
        table = world.tables[at]
        counts, _ = table.cells.values[state[at]].monitor[place]
        return "an event counts twice" if max(counts) > bounds.events else None

    [broken] = explore(world, [Always("once", counts_twice)]).violations
    moves = [str(move) for move in broken.moves]
    assert moves == TWICE
    trace = world.trace(broken.moves, False, "")
    assert "!" not in trace


TWICE = [
    "trigger 1",
    "inject a",
    "emit a",
    "ack a 1",
    "deliver a->s",
    "deliver a->s",
    "inject b",
    "deliver b->s",
    "ack s 1",
    "ack b 1",
    "crash coordinator late",
    "restore 1",
    "emit a",
    "deliver a->s",
]


@pytest.mark.parametrize("mode", [name for name, each in PROTOCOLS.items() if each.is_exact])
def test_under_every_other_protocol_none_counts_twice(mode):
    """The run above would be one of any protocol, and show nothing."""
    bounds = Bounds("a->s b->s", mode=mode, **CRASH)
    world = World(bounds)
    at, place = world.topology.tasks.index("s"), TaskMonitor.KEPT.index("state")

    def counts_twice(state: WorldState) -> str | None:
        counts, _ = world.tables[at].cells.values[state[at]].monitor[place]
        return "an event counts twice" if max(counts) > bounds.events else None

    assert explore(world, [Always("once", counts_twice)]).verdict == "holds"


def test_a_sink_that_promises_exactly_once_is_refused():
    """It would be believed."""
    line = "guarantee is exactly_once, which no sink can be with tracked barriers: they promise at_least_once"
    with pytest.raises(BoundsError, match=f"^{line}; allowed: at_least_once, idempotent$"):
        Bounds("a->s", mode="tracked", guarantee="exactly_once")
    with pytest.raises(ScenarioError, match=f"operator.sink] {line}"):
        load("tracked", {"operator.sink.guarantee": "exactly_once"})


def test_a_run_in_time_holds_and_counts_some_events_twice():
    """A restore would lose events, or the judge call what was promised broken."""
    tracked, aligned = (run(load("tracked", {"mode": mode})) for mode in ("tracked", "aligned"))
    assert (tracked.verdict, aligned.verdict) == ("holds", "holds")
    assert _taken_too_often(tracked) > 0
    assert _taken_too_often(aligned) == 0


def _taken_too_often(result: Any) -> int:
    """Return how many events took effect at the counting task beyond those that were sent to it, in what survives."""
    attempts, topology = result.attempts, result.scenario.topology
    more = 0
    for channel in topology.inputs("count"):
        took = [each for attempt, cut in attempts.surviving for each in attempt.taken_in(channel, cut)]
        more += len(took) - len(set(took))
    return more
