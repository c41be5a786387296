"""A task that has switched forwards the barrier as it came, and those behind it align.

Source
    F-DCKP-006, `take_unaligned_snapshot` answers the barrier that it was given, without the flag; "partially unaligned"
    checkpoints are an open question. Entry U-18.
What goes wrong
    Nothing unsafe, but nothing is won: the next task waits for its other inputs as if nothing were late, from a new
    start of its own clock, and so does each task behind it.
Repair
    The barrier is forwarded flagged, ahead of what it overtakes (protocol rule 16); a task that is not enabled aligns,
    and hands the flag on (rule 14).
"""

from barrierlab.impl import BarrierAlignerConfig, CheckpointBarrier, UnalignedCheckpointConfig, UnalignedCheckpointer
from barrierlab.model.defects.kinds.documented_unaligned import Documented
from barrierlab.model.defects.kinds.witness import Witness

BARRIER = CheckpointBarrier(1, 1)


def documented() -> tuple[str, ...]:
    """x has three inputs, of which the second is late; what it forwards comes to y, which has two."""
    x, y = Documented(num_inputs=3), Documented(num_inputs=2)
    x.handle_barrier(0, BARRIER, now=0)
    forwarded = x.handle_barrier(1, BARRIER, now=31).barrier
    assert forwarded is not None
    y.handle_barrier(0, forwarded, now=31)
    return f"x, {x.state}, forwards {forwarded}", f"y is {y.state}"


def sound() -> tuple[str, ...]:
    """The same."""
    config = UnalignedCheckpointConfig(True, 30)
    x = UnalignedCheckpointer(BarrierAlignerConfig(3), config)
    y = UnalignedCheckpointer(BarrierAlignerConfig(2), config)
    x.process_message(0, BARRIER, 0)
    answer = x.process_message(1, BARRIER, 31)
    assert x.barrier is not None
    return f"x, {answer.name}, forwards {x.barrier}", f"y: {y.process_message(0, x.barrier, 31).name}"


DEFECT = Witness(
    kind="timing",
    broken=documented,
    right=sound,
    right_lines=("x, TAKE_SNAPSHOT, forwards barrier 1 unaligned", "y: TAKE_SNAPSHOT"),
)
