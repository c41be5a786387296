"""A single upstream may deliver a barrier again, or an older one.

Source
    barrier-control-signals, "Barrier Alignment Mechanism": "If `expected_upstreams == 1`, the barrier is immediately
    complete", without a look at its id. Entry S-04.
What goes wrong
    Of one upstream, 5, 5 and 3 are three completions.
Repair
    Ids must increase, for each channel (protocol rule 24).
"""

from barrierlab.impl.control import BarrierControlSignal, Carrier, ControlAligner, IdentityAligner
from barrierlab.model.defects.kinds.control import answers, sync
from barrierlab.model.defects.kinds.witness import Witness


class Immediate(IdentityAligner):
    """One upstream needs no alignment."""

    def align(self, upstream: int, barrier: BarrierControlSignal) -> BarrierControlSignal | None:
        return barrier if self.expected_upstreams == 1 else super().align(upstream, barrier)


def _run(aligner: ControlAligner) -> tuple[str, ...]:
    return answers(aligner, (0, sync(5)), (0, sync(5)), (0, sync(3)))


DEFECT = Witness(
    kind="safety",
    broken=lambda: _run(Immediate(1, Carrier.CONTROL)),
    right=lambda: _run(IdentityAligner(1, Carrier.CONTROL)),
    right_lines=(
        "SyncTest 5",
        "duplicate barrier on control channel: SyncTest 5 after barrier 5",
        "duplicate barrier on control channel: SyncTest 3 after barrier 5",
    ),
)
