"""Any pipeline, any script, any schedule: what is too wide to be searched is drawn."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barrierlab.model.control.invariants import judge
from barrierlab.model.control.topology import ControlWiring
from barrierlab.model.control.world import ControlBounds, ControlWorld, Processors
from tests.breadth import examples
from tests.control.support import CONTROL, DATA, GRACEFUL, QUICK, SYNC

AS_USUAL = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow]}

GRAPHS = st.sampled_from(
    [
        "a->join b->join c->join join->sink",
        "a->x a->y b->y x->join y->join join->sink",
        "a->x x->y y->sink b->sink",
        "a->left b->right left->join right->join a->join",
        "a->x b->x x->one x->two one->out two->out",
    ]
)
CARRIERS = st.sampled_from([DATA, CONTROL])
SCRIPTS = st.tuples(
    st.lists(st.tuples(st.just(SYNC), CARRIERS), max_size=5),
    st.sampled_from([(), ((GRACEFUL, DATA),), ((GRACEFUL, CONTROL),), ((QUICK, DATA),), ((QUICK, CONTROL),)]),
)
OPERATORS = st.dictionaries(
    st.sampled_from(["join", "x", "y", "sink", "one"]), st.sampled_from(["batch", "filter", "union", "window"])
)


@settings(max_examples=examples(80), **AS_USUAL)
@given(
    *(GRAPHS, st.sampled_from(["along", "direct"]), SCRIPTS, OPERATORS),
    *(st.integers(0, 4), st.integers(1, 3), st.booleans(), st.data()),
)
def test_any_schedule_holds(graph, control, script, kinds, events, capacity, hold_data, data) -> None:
    """Some pipeline, in some order, would complete too early, reorder, hang, or lose an event in a graceful end.

    Its journal is judged a second time as a whole, by what reads journals of simulations.
    """
    wiring = ControlWiring(graph, control)
    kinds = {name: kind for name, kind in kinds.items() if name in wiring.processors}
    parameters = {name: {"batch_count": 3} for name, kind in kinds.items() if kind == "batch"}
    processors = Processors(kinds, parameters, {"hold_data": hold_data})
    bounds = ControlBounds(wiring, (*script[0], *script[1]), events, capacity, hold_data, processors)
    world = ControlWorld(bounds)
    state, run = world.start(), []
    random = data.draw(st.randoms(use_true_random=False))
    while moves := world.moves(state):
        run.append(random.choice(moves))
        state = world.after(state, run[-1])
    assert world.violations(state) == ()
    assert world.quiescent(state) == ()
    verdict = judge(world.journal(run), wiring, hold_data, processors.discarding)
    assert (verdict.verdict, verdict.violations) == ("holds", ())


@settings(max_examples=40, **AS_USUAL)
@given(GRAPHS, SCRIPTS, st.integers(0, 3), st.sampled_from(["a", "b", "join", "x", "y", "left"]), st.data())
def test_any_breakdown_leaves_nobody_waiting(graph, script, events, victim, data) -> None:
    """A processor that breaks down would leave a barrier pending below it, or its senders blocked."""
    wiring = ControlWiring(graph)
    may_fail = (victim,) if victim in wiring.processors else ()
    world = ControlWorld(ControlBounds(wiring, (*script[0], *script[1]), events, 1, may_fail=may_fail))
    state = world.start()
    random = data.draw(st.randoms(use_true_random=False))
    while moves := world.moves(state):
        state = world.after(state, random.choice(moves))
    assert world.violations(state) == ()
    assert world.quiescent(state) == ()
