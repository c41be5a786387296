"""A window rule is ready as soon as one frame of the window is there.

Source
    merge-map-join-barrier, example A.3.3: "you can accept any of the last 5 frames"; section 6.2.2 gates on the newest.
What goes wrong
    By the normative text output 10 waits for frame 10; by the example's words 6 is enough.
Repair
    The normative text (protocol rule 29): the window widens what may be chosen, not when.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from barrierlab.impl.join import JoinConfig, MergeMap, SequenceJoinBarrier, SequenceMergeRule
from barrierlab.impl.join.inputs import JoinInput
from barrierlab.impl.join.sequence import sequence_inputs
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, JoinWorld, numbers, show, world


def from_the_oldest(merge_map: MergeMap, config: JoinConfig, now_ns: int) -> Iterator[JoinInput]:
    """Inputs that owe the oldest of the window."""
    for each in sequence_inputs(merge_map, config, now_ns):
        each.shift -= max(0, each.below)
        yield each


def witness(components: JoinComponents) -> JoinWorld:
    """9 is observed; output 10 is asked for with a window of 5."""
    it = world(components, "sequence", numbers(components, SequenceMergeRule.in_window(1, 5)))
    show(it, 1, 9)
    it.ask(10, 0)
    return it


COMPONENTS = JoinComponents(sequence=partial(SequenceJoinBarrier, inputs_of=from_the_oldest))
DEFECT = JoinDefect("contradiction", "READY", COMPONENTS, witness)
