"""A recovery is asked for the very state that an aligned checkpoint would have led to.

Source
    F-DCKP-006, "Recovery Procedure": "This reconstructs the exact state the operator would have been in if the aligned
    checkpoint had completed normally". Entry U-21.
What goes wrong
    Aligned, b1, which is ahead of b's barrier, comes before a1, which is behind a's. Unaligned, b1 is in flight and is
    restored, and a1 may come first. To an operator that sees the order, the states differ: a sound recovery is called
    wrong. (That channels are restored first does not order them: the task reads any input that has something.)
Repair
    Of every operator each channel's order and each event once; equality only where the order does not show (rule 23).
"""

from barrierlab.impl import (
    Acknowledge,
    BarrierAlignerConfig,
    CheckpointBarrier,
    Event,
    OperatorTask,
    TaskRestore,
    UnalignedCheckpointer,
)
from barrierlab.model.checkpoint.scope import Tally
from barrierlab.model.defects.kinds.witness import Witness

A1, B1 = Event("a", 1), Event("b", 1)


class OrderedTally(Tally):
    """Keeps what it has seen, in order."""

    seen = ""

    def process(self, input_id: int, event: Event) -> tuple[Event, ...]:
        """Nothing."""
        self.seen = f"{self.seen} {event}".lstrip()
        return ()


def task() -> OperatorTask:
    """A new one, of inputs a and b."""
    return OperatorTask("x", OrderedTally(2), UnalignedCheckpointer(BarrierAlignerConfig(2)))


def recovered() -> list[str]:
    """Return what the task sees after its recovery: if b is read first, if a is, and if what was in flight is
    forgotten."""
    barrier, failed = CheckpointBarrier.new_unaligned(1, 1), task()
    failed.offer_overtaking(0, barrier, (), 0)
    failed.offer_overtaking(1, barrier, (B1,), 0)
    (report,) = failed.reports
    assert isinstance(report, Acknowledge)
    restored_in_flight = [(data.input_id, event) for data in report.inflight for event in data.events]
    orders = []
    for messages in ([*restored_in_flight, (0, A1)], [(0, A1), *restored_in_flight], [(0, A1)]):
        new = task()
        new.recover(TaskRestore("x", report.image), 1)
        for input_id, event in messages:
            new.offer(input_id, event, 0)
        assert isinstance(new.operator, OrderedTally)
        orders.append(new.operator.seen)
    return orders


DEFECT = Witness(
    kind="contradiction",
    broken=lambda: tuple(f"{seen}: {'right' if seen == 'b1 a1' else 'wrong'}" for seen in recovered()),
    right=lambda: tuple(
        f"{seen}: {'right' if sorted(seen.split()) == ['a1', 'b1'] else 'wrong'}" for seen in recovered()
    ),
    right_lines=("b1 a1: right", "a1 b1: right", "a1: wrong"),
)
