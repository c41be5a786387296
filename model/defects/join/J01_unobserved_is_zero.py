"""An input that was not observed counts as observed at 0.

Source
    merge-map-join-barrier, sections 4 and 7.1: "highest sequence observed", and nothing on what it is before.
What goes wrong
    Output 0, and with a lateness every output below it, is ready when nothing was ever seen.
Repair
    Not observed is minus infinity (protocol rule 27).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from barrierlab.impl.join import JoinConfig, MergeMap, SequenceJoinBarrier
from barrierlab.impl.join.inputs import JoinInput
from barrierlab.impl.join.sequence import sequence_inputs
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, at, numbers, world


def from_zero(merge_map: MergeMap, config: JoinConfig, now_ns: int) -> Iterator[JoinInput]:
    """Inputs whose cursors begin at 0."""
    for each in sequence_inputs(merge_map, config, now_ns):
        each.observed = each.reached = 0
        yield each


def witness(components: JoinComponents) -> JoinWorld:
    """Ask for output 0 before anything came."""
    it = world(components, "sequence", numbers(components, at(1)))
    it.ask(0, 0)
    return it


COMPONENTS = JoinComponents(sequence=partial(SequenceJoinBarrier, inputs_of=from_zero))
DEFECT = JoinDefect("safety", "READY", COMPONENTS, witness)
