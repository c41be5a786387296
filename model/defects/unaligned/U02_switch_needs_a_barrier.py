"""Lateness does not switch: only one barrier more does, and not the last.

Source
    F-DCKP-006, `handle_barrier`: the threshold is looked at when a barrier comes, after the test whether all are in.
    `should_switch_to_unaligned` answers a question, and no method switches. Entry U-02.
What goes wrong
    With two inputs there is never a switch: the second barrier is the last, however late; and until it comes nothing
    happens, which is just what the aligned_with_timeout is for. With three it needs a second barrier that comes late.
Repair
    The switch has a deadline and comes by time (protocol rule 15): `on_time`.
"""

from barrierlab.impl import BarrierAlignerConfig, CheckpointBarrier, UnalignedCheckpointConfig, UnalignedCheckpointer
from barrierlab.model.defects.kinds.documented_unaligned import Documented
from barrierlab.model.defects.kinds.witness import Witness

BARRIER = CheckpointBarrier(1, 1)


def documented() -> tuple[str, ...]:
    """Two inputs, a threshold of 30, and the second barrier at 100."""
    machine = Documented(num_inputs=2, threshold=30)
    machine.handle_barrier(0, BARRIER, now=0)
    later = f"should it switch: {machine.should_switch_to_unaligned(now=40)}; it is {machine.state}"
    last = machine.handle_barrier(1, BARRIER, now=100)
    return f"at 40 {later}", f"at 100 {last}", f"{machine.threshold_switches} switches"


def sound() -> tuple[str, ...]:
    """The same; the clock is all that comes at 40."""
    machine = UnalignedCheckpointer(BarrierAlignerConfig(2), UnalignedCheckpointConfig(True, 30))
    machine.process_message(0, BARRIER, 0)
    later = f"should it switch: {machine.should_switch_to_unaligned(40)}; it does: {machine.on_time(40)}"
    machine.begin_recording()
    last = machine.process_message(1, BARRIER, 100)
    return f"at 40 {later}", f"at 100 {last.name}", f"{machine.threshold_switches} switches"


DEFECT = Witness(
    kind="timing",
    broken=documented,
    right=sound,
    right_lines=("at 40 should it switch: True; it does: True", "at 100 PART_COMPLETE", "1 switches"),
)
