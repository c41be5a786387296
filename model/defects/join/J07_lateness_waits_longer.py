"""A larger lateness waits longer, as in stream processors.

Source
    merge-map-join-barrier, example A.4.4: "to allow late arrivals"; section 8.1 takes it off what is required.
What goes wrong
    The two are opposites. By section 8.1 an output at 10 s with 1 s of lateness is ready when 9 s is observed, by the
    words of the example only at 11 s.
Repair
    The formula (protocol rule 29), documented as slack: a larger one waits less.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from barrierlab.impl.join import JoinConfig, MergeMap, TimestampJoinBarrier
from barrierlab.impl.join.inputs import JoinInput
from barrierlab.impl.join.timestamp import timestamp_inputs
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, show, times, window_ns, world


def waiting_longer(merge_map: MergeMap, config: JoinConfig, now_ns: int) -> Iterator[JoinInput]:
    """Inputs that owe what the rule says, and the lateness more."""
    for each in timestamp_inputs(merge_map, config, now_ns):
        each.slack = -each.slack
        each.shift = each.aim - each.slack
        yield each


def witness(components: JoinComponents) -> int:
    """At which observed time output 10 becomes ready, with a window of 2 and a lateness of 1."""
    it = world(components, "timestamp", times(components, window_ns(1, 2), late=1), slots=32)
    for second in range(20):
        show(it, 1, second, now=second)
        if it.ask(10, second).may_attempt:
            return second
    return -1


COMPONENTS = JoinComponents(timestamp=partial(TimestampJoinBarrier, inputs_of=waiting_longer))
DEFECT = JoinDefect("contradiction", "value", COMPONENTS, witness, 9, 11)
