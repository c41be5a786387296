"""The answer does not say what it is.

Source
    F-DCKP-006, `UnalignedAction`: one `TakeSnapshot` for aligned, unaligned and switched; `LateBarrier` also while the
    task aligns, and for the last one. Entry U-17.
What goes wrong
    With nothing in flight, an aligned snapshot and a switched one are answered alike, flag and all: nobody can set
    `was_threshold_triggered` or the manifest's `is_unaligned`. That a part is complete is never said.
Repair
    A word for each: aligned, unaligned, a part that is complete; and the part says which it is (protocol rule 19).
"""

from barrierlab.impl import BarrierAlignerConfig, CheckpointBarrier, UnalignedCheckpointConfig, UnalignedCheckpointer
from barrierlab.model.defects.kinds.documented_unaligned import Documented
from barrierlab.model.defects.kinds.witness import Witness

BARRIER = CheckpointBarrier(1, 1)
TIMES = {"in time": (0, 1, 2), "second too late": (0, 31, 32)}


def documented() -> tuple[str, ...]:
    """Three inputs deliver, at these times; the threshold is 30."""
    lines = []
    for when, times in TIMES.items():
        machine = Documented(num_inputs=3)
        _, second, third = (machine.handle_barrier(i, BARRIER, now=now) for i, now in enumerate(times))
        lines.append(f"{when}: {second}, {third}")
    return tuple(lines)


def sound() -> tuple[str, ...]:
    """The same, and what the part says of itself."""
    lines = []
    for when, times in TIMES.items():
        machine = UnalignedCheckpointer(BarrierAlignerConfig(3), UnalignedCheckpointConfig(True, 30))
        answers = []
        for input_id, now_ns in enumerate(times):
            answers.append(machine.process_message(input_id, BARRIER, now_ns).name)
            if answers[-1] == "TAKE_SNAPSHOT":
                machine.begin_recording()
        kind = "switched" if machine.was_threshold_triggered else "unaligned" if machine.is_unaligned else "aligned"
        lines.append(f"{when}: {answers[1]}, {answers[2]}; {kind}, {machine.barrier}")
    return tuple(lines)


DEFECT = Witness(
    kind="contradiction",
    broken=documented,
    right=sound,
    right_lines=(
        "in time: BLOCKED, TRIGGER_SNAPSHOT; aligned, barrier 1",
        "second too late: TAKE_SNAPSHOT, PART_COMPLETE; switched, barrier 1 unaligned",
    ),
)
