"""A task goes unaligned where that is not enabled.

Source
    F-DCKP-006, `enabled`: "When false, aligned mode is used exclusively". `handle_barrier` in its idle branch looks at
    the flag of the barrier and at `force_unaligned`, and not at `enabled`. Entry U-15.
What goes wrong
    Flagged or forced, the snapshot is unaligned. Who has turned it off, because nothing of his restores what was in
    flight, loses that.
Repair
    Not enabled goes before flag and force, and the mismatch is counted (protocol rule 14).
"""

from barrierlab.impl import BarrierAlignerConfig, CheckpointBarrier, UnalignedCheckpointConfig, UnalignedCheckpointer
from barrierlab.model.defects.kinds.documented_unaligned import Documented
from barrierlab.model.defects.kinds.witness import Witness

CASES = (("flagged", CheckpointBarrier.new_unaligned(1, 1), False), ("forced", CheckpointBarrier(1, 1), True))


def documented() -> tuple[str, ...]:
    """The first barrier of two."""
    answers = {
        name: Documented(enabled=False, force_unaligned=force).handle_barrier(0, barrier)
        for name, barrier, force in CASES
    }
    return tuple(f"{name}: {answer}" for name, answer in answers.items())


def sound() -> tuple[str, ...]:
    """The same, and how often that was noticed."""
    lines = []
    for name, barrier, force in CASES:
        config = UnalignedCheckpointConfig(enabled=False, force_unaligned=force)
        machine = UnalignedCheckpointer(BarrierAlignerConfig(2), config)
        answer = machine.process_message(0, barrier)
        lines.append(f"{name}: {answer.name}, {machine.flag_mismatches} mismatch")
    return tuple(lines)


DEFECT = Witness(
    kind="contradiction",
    broken=documented,
    right=sound,
    right_lines=("flagged: BLOCKED, 1 mismatch", "forced: BLOCKED, 1 mismatch"),
)
