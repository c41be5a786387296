"""A barrier that is to make a checkpoint independent of backpressure stands in line itself.

Source
    F-DCKP-001, "Goals": barriers travel "identically to data events with no special routing", and F-DCKP-006, which
    does not modify the barrier protocol, promises a duration "independent of backpressure". Entry P-16; the other
    reading is `P16_overtaken_not_recorded`.
What goes wrong
    A thousand events are queued ahead of the barrier. The task sees it when it has worked through all of them, and it
    is that which takes long under backpressure.
Repair
    A flagged barrier overtakes what is queued, which is recorded as the state of the channel (protocol rule 16).
"""

from __future__ import annotations

from barrierlab.impl import (
    Acknowledge,
    BarrierAlignerConfig,
    CheckpointBarrier,
    Event,
    OperatorTask,
    OutputExchange,
    UnalignedCheckpointer,
)
from barrierlab.model.checkpoint.scope import Tally
from barrierlab.model.defects.kinds.witness import Witness

QUEUED = tuple(Event("a", n) for n in range(1, 1001))
BARRIER = CheckpointBarrier.new_unaligned(1, 1)


def run(overtakes: bool) -> tuple[str, ...]:
    """The barrier comes to a task with one input, behind all that is queued there or ahead of it."""
    aligner = UnalignedCheckpointer(BarrierAlignerConfig(1))
    task, worked_off = OperatorTask("x", Tally(1), aligner, [OutputExchange("forward", [0])]), 0
    if overtakes:
        task.offer_overtaking(0, BARRIER, QUEUED, 0)
    else:
        for event in QUEUED:
            worked_off += task.offer(0, event, 0)
        task.offer(0, BARRIER, 0)
    (report,) = task.reports
    assert isinstance(report, Acknowledge)
    recorded = sum(len(data.events) for data in report.inflight)
    return (f"acknowledged when {worked_off} events were worked off, with {recorded} in flight",)


DEFECT = Witness(
    kind="contradiction",
    broken=lambda: run(overtakes=False),
    right=lambda: run(overtakes=True),
    right_lines=("acknowledged when 0 events were worked off, with 1000 in flight",),
)
