"""A quick end leaves a pending barrier in the dark.

Source
    barrier-control-signals, "Terminal Semantics": processors exit on a terminal signal; what becomes of a barrier that
    is pending then, it does not say. Entry S-07.
What goes wrong
    The barrier is neither complete nor aborted: whoever asked for it waits for ever.
Repair
    A terminal signal goes first, and aborts explicitly what is pending on either channel.
"""

from barrierlab.impl.control import BarrierControlSignal, IdentityAligner
from barrierlab.model.defects.kinds.control import JOIN, QD, SC, ControlBounds, ControlDefect, Processors


class Leaves(IdentityAligner):
    """Says nothing of what is not complete."""

    def abort(self) -> tuple[BarrierControlSignal, ...]:
        return ()


DEFECT = ControlDefect(
    breaks="LIVE",
    bounds=ControlBounds(JOIN, (SC, QD), events=0),
    changed={"make_processor": Processors(options={"make_aligner": Leaves})},
)
