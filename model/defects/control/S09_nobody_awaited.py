"""Without upstreams, a barrier is pending for ever.

Source
    barrier-control-signals, "Barrier Alignment Mechanism": "If `expected_upstreams == 1`, the barrier is immediately
    complete"; of 0 it says nothing, and `arrived_count` is never 0 once something has arrived. Entry S-09.
What goes wrong
    A wiring mistake shows as a barrier that does not come through.
Repair
    No upstreams is a configuration error, when the aligner is made (protocol rule 26).
"""

from barrierlab.impl import ContractError
from barrierlab.impl.control import BarrierControlSignal, Carrier, CountingAligner
from barrierlab.model.defects.kinds.control import answers, headline, sync
from barrierlab.model.defects.kinds.witness import Witness


class Unchecked(CountingAligner):
    """Takes any number of upstreams, and compares as the document does."""

    def __init__(self, expected_upstreams: int, carrier: Carrier) -> None:
        super().__init__(1, carrier)
        self.expected_upstreams = expected_upstreams

    def align(self, upstream: int, barrier: BarrierControlSignal) -> BarrierControlSignal | None:
        self.arrived_count += 1
        return barrier if self.arrived_count == self.expected_upstreams else None


def _sound() -> tuple[str, ...]:
    try:
        return answers(CountingAligner(0, Carrier.DATA), (0, sync(1)))
    except ContractError as error:
        return (headline(error),)


DEFECT = Witness(
    kind="liveness",
    broken=lambda: answers(Unchecked(0, Carrier.DATA), (0, sync(1))),
    right=_sound,
    right_lines=("no upstreams on the data channel",),
)
