"""A sink prepares its transaction before all barriers are in.

Source
    F-DCKP-006, "Threshold-Based Switching": any operator switches; nothing excepts sinks. Entry U-19.
What goes wrong
    The transaction of the checkpoint is without what was ahead of the missing barriers: the checkpoint is complete, and
    not all that it covers is visible. (Nothing is lost where a recovery restores what was recorded: the transaction
    after has it. So no run of the world shows it; what a reader sees does.)
Repair
    Sinks always align (protocol rule 14).
"""

from barrierlab.impl import (
    BarrierAlignerConfig,
    CheckpointBarrier,
    Event,
    Ledger,
    SinkTask,
    SinkWriter,
    UnalignedCheckpointer,
)
from barrierlab.impl.checkpoint.report import silent
from barrierlab.model.checkpoint.scope import Tally
from barrierlab.model.defects.kinds.witness import Witness

BARRIER = CheckpointBarrier.new_unaligned(1, 1)


def visible(is_sink: bool) -> tuple[str, ...]:
    """Return what a reader sees when checkpoint 1 is complete: a1 and b1 are ahead of its barriers, a2 is behind."""
    ledger = Ledger()
    aligner = UnalignedCheckpointer(BarrierAlignerConfig(2), is_sink=is_sink)
    sink = SinkTask("s", Tally(2), aligner, silent, SinkWriter("s", ledger, "exactly_once", silent))
    for input_id, message in ((0, Event("a", 1)), (0, BARRIER), (0, Event("a", 2)), (1, Event("b", 1)), (1, BARRIER)):
        sink.offer(input_id, message, 0)
    while sink.drain_next(0):
        pass
    sink.notify(1, 0)
    return (f"visible: {' '.join(map(str, ledger.visible('s')))}",)


DEFECT = Witness(
    kind="safety",
    broken=lambda: visible(is_sink=False),
    right=lambda: visible(is_sink=True),
    right_lines=("visible: a1 b1",),
)
