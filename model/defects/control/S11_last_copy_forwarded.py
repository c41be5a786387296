"""The document does not say which copy of a barrier is forwarded.

Source
    barrier-control-signals, "Processing flow": "`Complete(barrier)` -> return the barrier", which may well be the copy
    that came last. Entry S-11.
What goes wrong
    Kinds that carry something differ from copy to copy; what goes on depends on the slowest upstream.
Repair
    The first copy is the one that is forwarded (protocol rule 26). That settles what is meant, and not what comes:
    which copy is first depends on timing, too. A kind whose payload matters needs a merge.
"""

from barrierlab.impl.control import BarrierControlSignal, Carrier, ControlAligner, CountingAligner
from barrierlab.model.defects.kinds.control import answers, sync
from barrierlab.model.defects.kinds.witness import Witness


class Last(CountingAligner):
    """Returns the copy that completes the barrier."""

    def align(self, upstream: int, barrier: BarrierControlSignal) -> BarrierControlSignal | None:
        return None if super().align(upstream, barrier) is None else barrier


def _run(aligner: ControlAligner) -> tuple[str, ...]:
    return answers(aligner, (0, sync(1, "first")), (1, sync(1, "last")))


DEFECT = Witness(
    kind="value",
    broken=lambda: _run(Last(2, Carrier.DATA)),
    right=lambda: _run(CountingAligner(2, Carrier.DATA)),
    right_lines=("pending", "SyncTest 1 (first)"),
)
