"""The rule against duplicates can never fire.

Source
    barrier-control-signals, "Barrier Alignment Mechanism": "receiving more than `expected_upstreams` for the same key
    is an error"; but the only state, `arrived_count` "for the current key", ends with completion. Entry S-02.
What goes wrong
    The copy that is one too many begins the barrier again. It is pending for ever, and the next barrier, which is
    innocent, is blamed for an overlap.
Repair
    Remember the last completed id (protocol rule 24).
"""

from barrierlab.impl.control import BarrierControlSignal, Carrier, ControlAligner, CountingAligner
from barrierlab.model.defects.kinds.control import answers, sync
from barrierlab.model.defects.kinds.witness import Witness


class Forgets(CountingAligner):
    """Nothing is left of a barrier that is complete."""

    def align(self, upstream: int, barrier: BarrierControlSignal) -> BarrierControlSignal | None:
        completed = super().align(upstream, barrier)
        if completed is not None:
            self.last_terminated_id = 0
        return completed


def _run(aligner: ControlAligner) -> tuple[str, ...]:
    return answers(aligner, (0, sync(1)), (1, sync(1)), (1, sync(1)), (0, sync(2)))


DEFECT = Witness(
    kind="contradiction",
    broken=lambda: _run(Forgets(2, Carrier.DATA)),
    right=lambda: _run(CountingAligner(2, Carrier.DATA)),
    right_lines=("pending", "SyncTest 1", "duplicate barrier on data channel: SyncTest 1 after barrier 1", "pending"),
)
