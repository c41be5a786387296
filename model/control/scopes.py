"""The standard scopes of barrier control signals: every interleaving of small pipelines."""

from __future__ import annotations

from dataclasses import dataclass, replace

from barrierlab.impl.control import BarrierControlSignalKind, Carrier, CountingAligner, InstantControlSignal
from barrierlab.model.checkpoint.check import NamedScope, Outcome, ScopeViolation, limits, outcome_of
from barrierlab.model.checkpoint.components import Components
from barrierlab.model.control.topology import ControlWiring
from barrierlab.model.control.world import ControlBounds, ControlWorld, Processors, as_text, properties
from barrierlab.model.explore.checker import explore

JOIN = ControlWiring("a->join b->join")
DIRECT = ControlWiring("a->join b->join", "direct")
DIAMOND = ControlWiring("a->x a->y x->join y->join")
TAIL = ControlWiring("a->join b->join join->sink")
BATCHED = Processors({"join": "batch"}, {"join": {"batch_count": 2}})

_SYNC, _END = BarrierControlSignalKind.SYNC_TEST, BarrierControlSignalKind.STREAM_GRACEFUL_END
_QUICK = InstantControlSignal.STREAM_QUICK_END
SD, SC = (_SYNC, Carrier.DATA), (_SYNC, Carrier.CONTROL)
ED, EC = (_END, Carrier.DATA), (_END, Carrier.CONTROL)
QD, QC = (_QUICK, Carrier.DATA), (_QUICK, Carrier.CONTROL)


@dataclass(frozen=True, slots=True)
class ControlScope(NamedScope):
    """A pipeline to explore.

    Attributes
    ----------
    of : str
        What happens in it.
    bounds : ControlBounds
    states : int
        How many there are: the number moves when the meaning does.
    """

    of: str
    bounds: ControlBounds
    states: int
    protocol: str = "control"

    def check(self, components: Components, seconds: float | None) -> Outcome:
        """Explore it; `components` are of no concern to control signals."""
        world = ControlWorld(self.bounds)
        result = explore(world, properties(world), limits=limits(seconds))
        violations = []
        for broken in result.violations:
            trace = f"# {self.name}.\n{as_text(world.journal(broken.moves))}! {broken}\n"
            violations.append(ScopeViolation(broken.property, self.name, len(broken.moves), broken.reason, trace))
        return replace(outcome_of(self.name, self.protocol, result), violations=tuple(violations))


SMALL = (
    ControlScope("two syncs on data", ControlBounds(JOIN, (SD, SD), capacity=1), 398),
    ControlScope("two syncs on control", ControlBounds(JOIN, (SC, SC), events=0), 46),
    ControlScope(
        "three syncs on control, read one ahead",
        ControlBounds(JOIN, (SC, SC, SC), events=0, make_processor=Processors(options={"max_ahead": 1})),
        108,
    ),
    ControlScope("a sync on each", ControlBounds(JOIN, (SD, SC), capacity=1), 1009),
    ControlScope("a sync on data, an end on control", ControlBounds(JOIN, (SD, EC), capacity=1), 4992),
    ControlScope("a sync on control, an end on data", ControlBounds(JOIN, (SC, ED), capacity=1), 3852),
    ControlScope("control straight from the head", ControlBounds(DIRECT, (SD, EC), capacity=1), 5067),
    ControlScope("a quick end on control", ControlBounds(JOIN, (SD, QC), capacity=1), 7536),
    ControlScope("a quick end on data", ControlBounds(JOIN, (SC, QD), capacity=1), 6348),
    ControlScope("a diamond", ControlBounds(DIAMOND, (SD, EC), capacity=1), 4607),
    ControlScope(
        "data may pass",
        ControlBounds(JOIN, (SD, SD), hold_data=False, make_processor=Processors(options={"hold_data": False})),
        593,
    ),
    ControlScope("a processor breaks down", ControlBounds(JOIN, (SD, ED), events=0, capacity=1, may_fail=("b",)), 1508),
    ControlScope(
        "counted, where nobody is ahead",
        ControlBounds(
            JOIN,
            (SD,),
            hold_data=False,
            make_processor=Processors(options={"make_aligner": CountingAligner, "hold_data": False}),
        ),
        109,
    ),
)
WIDE = (
    ControlScope(
        "a batch below, an end on control", ControlBounds(TAIL, (SD, EC), capacity=1, make_processor=BATCHED), 9007
    ),
    ControlScope(
        "a batch below, an end on data", ControlBounds(TAIL, (SC, ED), capacity=1, make_processor=BATCHED), 7161
    ),
    ControlScope("a sync on each, an end", ControlBounds(JOIN, (SD, SC, EC), capacity=1), 15899),
    ControlScope(
        "two events each in a batch", ControlBounds(TAIL, (EC,), events=2, capacity=1, make_processor=BATCHED), 14089
    ),
    ControlScope(
        "a processor breaks down among data", ControlBounds(JOIN, (SD, ED), capacity=1, may_fail=("b",)), 12091
    ),
    ControlScope("two syncs and a quick end", ControlBounds(JOIN, (SC, SC, QD)), 76078),
)
