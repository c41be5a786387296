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

from barrierlab.impl.join import MergeMap, TimestampJoinBarrier
from barrierlab.impl.join.barrier import JoinInput
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, show, times, window_ns, world


class WaitsLonger(TimestampJoinBarrier):
    """Required: what the rule says, and the lateness more."""

    def _made(self, merge_map: MergeMap, now_ns: int) -> Iterator[JoinInput]:
        for each in super()._made(merge_map, now_ns):
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


DEFECT = JoinDefect("J-07", "contradiction", "value", JoinComponents(timestamp=WaitsLonger), witness, 9, 11)
