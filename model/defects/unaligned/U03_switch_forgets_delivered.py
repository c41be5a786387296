"""At the switch, only the input whose barrier comes just then has delivered.

Source
    F-DCKP-006, `take_unaligned_snapshot(trigger_input)`: the received barriers are the trigger's, and what the aligned
    attempt knew is replaced. Entry U-03.
What goes wrong
    An input that had delivered before is waited for once more, and its barrier does not come again: the part never
    ends. What comes behind its barrier is recorded as if it were in flight. (In the document what it buffered is
    dropped as well; here it is drained.)
Repair
    All inputs that delivered stay delivered (protocol rule 15): the row "one more, overdue" as it is.
"""

from __future__ import annotations

from dataclasses import replace

from barrierlab.model.checkpoint.tables.actions import block, mark, snapshot, switch
from barrierlab.model.checkpoint.tables.aligned_with_timeout import ALIGNED_WITH_TIMEOUT
from barrierlab.model.checkpoint.tables.gate import GateState
from barrierlab.model.checkpoint.tables.guards import input_of
from barrierlab.model.checkpoint.tables.stimuli import Effect, Stimulus
from barrierlab.model.defects.kinds.barrier import BarrierDefect, Bounds, Components, driven_by


def forget_the_others(gate: GateState, stimulus: Stimulus) -> tuple[GateState, tuple[Effect, ...]]:
    """As if this input's barrier were the first."""
    return replace(gate, arrived=frozenset({input_of(stimulus)})), ()


DEFECT = BarrierDefect(
    breaks="LIVE",
    bounds=Bounds("a->join b->join c->join join->s", mode="aligned_with_timeout", events=0),
    components=Components(
        gate=driven_by(
            ALIGNED_WITH_TIMEOUT.changed("one more, overdue", then=(mark, block, forget_the_others, switch, snapshot))
        )
    ),
    title="a delivers in time, b late: join switches. Then c delivers, and join waits for a, which has delivered.",
)
