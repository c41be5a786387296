"""A time window does not have its lower end.

Source
    merge-map-join-barrier, section 6.3.2: "[out_time - window_ns, out_time]"; a sequence window of N has N values.
What goes wrong
    The two kinds of window differ. By the text adjacent windows share the sample at their seam; read like a sequence
    window, a sample there belongs to the one before only.
Repair
    The text: both ends belong to it.
"""

from __future__ import annotations

from barrierlab.impl.join import Read, TimestampJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, outs, show, times, window_ns, world


class OpenBelow(TimestampJoinBarrier):
    """(out - window, out]."""

    def reads(self, out: int, now_ns: int) -> tuple[Read, ...]:
        return tuple(read._replace(first=read.first + 1) for read in super().reads(out, now_ns))


def witness(components: JoinComponents) -> list[int]:
    """Samples at 20 and 31; windows of 10 that end at 20 and at 30."""
    it = world(components, "timestamp", times(components, window_ns(1, 10)))
    show(it, 1, 0, stamp=20)
    show(it, 1, 1, stamp=31)
    for out in (20, 30):
        it.offer(out, 0)
    it.run(0)
    return outs(it)


DEFECT = JoinDefect("contradiction", "value", JoinComponents(timestamp=OpenBelow), witness, [20, 30], [20])
