"""A new camera frame sets the output time, whatever became of the one before.

Source
    merge-map-join-barrier, example A.4.2: "when a new camera frame arrives, set out_time = cam.timestamp_ns".
What goes wrong
    Nothing by itself; but other outputs come out than if frames wait for one another, and the text has both in it.
Repair
    `PendingPolicy` names the readings; to queue is the default, since each frame is to be joined.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barrierlab.impl.join import JoinBarrier, JoinStage, PendingPolicy, StageConfig
from barrierlab.model.defects.kinds.join import JoinComponents, JoinDefect, at_ns, outs, show, times, world


def replacing(barrier: JoinBarrier, config: StageConfig) -> JoinStage:
    """A stage that has one output time."""
    return JoinStage(barrier, replace(config, pending=PendingPolicy.REPLACE))


def witness(components: JoinComponents) -> list[int]:
    """Three camera frames before the IMU comes."""
    it = world(components, "timestamp", times(components, at_ns(1), at_ns(2)))
    for seq, stamp in enumerate((10, 20, 30)):
        show(it, 1, seq, stamp=stamp)
        it.offer(stamp, stamp)
        it.run(stamp)
    for seq, stamp in enumerate((10, 20, 30)):
        show(it, 2, seq, stamp=stamp)
        it.run(40)
    return outs(it)


DEFECT: Any = JoinDefect("contradiction", "value", JoinComponents(stage=replacing), witness, [10, 20, 30], [30])
