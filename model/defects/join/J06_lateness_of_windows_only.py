"""The lateness is for window rules only.

Source
    merge-map-join-barrier, example A.4.2, which lists the camera's condition without it; sections 8.1 and 8.2 have it
    for all rules.
What goes wrong
    Nothing by itself; but the two readings differ: with 10 ms of lateness and the camera at 91 ms, output 100 ms is
    ready by the one and not by the other.
Repair
    The normative text (protocol rule 29). The example's reading is `JoinConfig.lateness_scope`.
"""

from __future__ import annotations

from dataclasses import replace

from barrierlab.impl.join import JoinConfig, LatenessScope, TimestampJoinBarrier
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at_ns, show, times, window_ns, world


def windows_only(config: JoinConfig) -> TimestampJoinBarrier:
    """The barrier of example A.4.2."""
    return TimestampJoinBarrier(replace(config, lateness_scope=LatenessScope.WINDOWS))


def witness(components: JoinComponents) -> str:
    """The camera at 91, the IMU at 90; what is said of output 100."""
    it = world(components, "timestamp", times(components, at_ns(1), window_ns(2, 10), late=10))
    show(it, 1, 0, stamp=91)
    show(it, 2, 0, stamp=90)
    return str(it.ask(100, 0).value)


DEFECT = JoinDefect("contradiction", "value", JoinComponents(timestamp=windows_only), witness, "ready", "waiting")
