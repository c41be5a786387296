"""A slot header that could not be read is replaced by the descriptor's time.

Source
    merge-map-join-barrier, section 8.2: a rule goes by the slot header; sections 5 and 10.2: nobody waits for a slot,
    the descriptor is the availability signal. What a failed read of the header is, is not said.
What goes wrong
    The descriptor's time is that of arrival, later than that of capture: the output is ready too early.
Repair
    A time that could not be read is null: the rule stays as it was until the next frame (reading of defect J-20).
"""

from __future__ import annotations

from barrierlab.impl.join import Frame, JoinStage
from barrierlab.model.defects.kinds.join import SLOT, JoinComponents, JoinDefect, JoinWorld, at_ns, times, world


class StandsIn(JoinStage):
    """One time is as good as another."""

    def observe(self, frame: Frame, now_ns: int) -> None:
        super().observe(frame._replace(slot_ns=frame.slot_ns or frame.frame_ns), now_ns)


def witness(components: JoinComponents) -> JoinWorld:
    """Captured at 80, arrived at 100, and the header could not be read."""
    it = world(components, "timestamp", times(components, at_ns(1, 0, SLOT)))
    frame = Frame(1, 1, 0, 100, None)
    it.publish(frame, 0)
    it.observe(frame, 0)
    it.ask(100, 0)
    return it


DEFECT = JoinDefect("safety", "READY", JoinComponents(stage=StandsIn), witness)
