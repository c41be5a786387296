"""With 64 inputs, the mask of all inputs is that of none.

Source
    F-DCKP-006, `handle_barrier`: `(1u64 << self.num_inputs) - 1`, where the constructor allows 64. Entry U-07.
What goes wrong
    A shift by 64 wraps round to one by 0 in a release build, so that the mask is 0 and no checkpoint ever ends there;
    in a debug build it panics.
Repair
    Count who is missing (protocol rule 12: 1 to 128 inputs in both modes).
"""

from barrierlab.impl import BarrierAlignerConfig, CheckpointBarrier, UnalignedCheckpointer
from barrierlab.model.defects.kinds.documented_unaligned import Documented
from barrierlab.model.defects.kinds.witness import Witness

BARRIER = CheckpointBarrier.new_unaligned(1, 1)
SIZES = (63, 64)


def documented() -> tuple[str, ...]:
    """Every input delivers, once."""
    machines = {inputs: Documented(num_inputs=inputs) for inputs in SIZES}
    for inputs, machine in machines.items():
        for input_id in range(inputs):
            machine.handle_barrier(input_id, BARRIER)
    return tuple(f"{n} inputs, {n} barriers: {machine.state}" for n, machine in machines.items())


def sound() -> tuple[str, ...]:
    """The same."""
    machines = {inputs: UnalignedCheckpointer(BarrierAlignerConfig(inputs)) for inputs in SIZES}
    for inputs, machine in machines.items():
        machine.process_message(0, BARRIER)
        machine.begin_recording()
        for input_id in range(1, inputs):
            last = machine.process_message(input_id, BARRIER)
        assert last.name == "PART_COMPLETE"
        machine.complete_alignment()
    return tuple(
        f"{n} inputs, {n} barriers: {'waiting' if machine.is_aligning() else 'Idle'}" for n, machine in machines.items()
    )


DEFECT = Witness(
    kind="liveness",
    broken=documented,
    right=sound,
    right_lines=("63 inputs, 63 barriers: Idle", "64 inputs, 64 barriers: Idle"),
)
