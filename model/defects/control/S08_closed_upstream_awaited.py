"""A barrier waits for an upstream that has ended without it.

Source
    barrier-control-signals, "Barrier Alignment Mechanism": "expected upstreams are configured per channel via
    `expected_upstreams = inputs.len()`", once and for all. Entry S-08.
What goes wrong
    One processor breaks down; every barrier is pending below it from then on, the graceful end too.
Repair
    A closed upstream counts as delivered, for the pending barrier and for later ones (protocol rule 26).
"""

from barrierlab.impl.control import BarrierControlSignal, IdentityAligner
from barrierlab.model.defects.kinds.control import JOIN, SD, ControlBounds, ControlDefect, Processors


class Waits(IdentityAligner):
    """Expects as many upstreams as there were."""

    def close(self, upstream: int) -> tuple[BarrierControlSignal, ...]:
        return ()


DEFECT = ControlDefect(
    breaks="LIVE",
    bounds=ControlBounds(JOIN, (SD,), events=0, may_fail=("b",)),
    changed={"make_processor": Processors(options={"make_aligner": Waits})},
)
